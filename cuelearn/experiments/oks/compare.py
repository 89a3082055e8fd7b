r"""The methods of tables 1 and 2, timed as the paper counts: everything from the features on; and again with all at hand.

A further method takes one line in `METHODS`: a function that learns a pair and returns what the tables show.
"""

import functools
import itertools
import time
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from cuelearn.datasets.kinds import kind_kernels
from cuelearn.experiments.oks.tasks import Pair, pair_of
from cuelearn.kernels import KernelBank
from cuelearn.mkl import OM2, SimpleMKL
from cuelearn.mkl.svm import fit_svc
from cuelearn.oks import OKS, OM1, SOM, AlignmentSVM, MuSVM, MuTron, SelectedSVM
from cuelearn.oks.batch import best_place, scores_of_C, single_kernel
from cuelearn.oks.sources import with_widths
from cuelearn.oks.validation import held_back

VALIDATION = 0.1
MEMORY = 4e9  # the 60 matrices of 3,400 samples take 2.8 GB
TWO_EPOCHS = {"n_epochs": 2, "shuffle": True}


class Outcome(NamedTuple):
    """What a method returns.

    Attributes
    ----------
    model : estimator
        Fitted on all training samples.
    index : int or None
        Number of the chosen (or heaviest) kernel.
    chosen : dict
        Parameters found by validation.
    again : callable(bank) or None
        Trains once more, parameters known and kernels at hand.
    """

    model: object
    index: int | None
    chosen: dict
    again: object


def best_value(values, judge):
    """The value with the best accuracy on held-back samples, ties by the hinge loss there, as the SVMs choose theirs."""
    found = np.array([judge(value) for value in values])
    return values[best_place(found[:, 0], found[:, 1])]


def judged(model, X, y):
    """Accuracy and mean hinge loss of a fitted model; y holds 0 and 1."""
    signs, decided = np.where(y == 1, 1.0, -1.0), model.decision_function(X)
    return np.mean(np.where(decided > 0.0, 1.0, -1.0) == signs), np.maximum(0.0, 1.0 - signs * decided).mean()


class _Split:
    """Training part of a pair, its tenth held back, and the kernel matrices where a method needs them all."""

    def __init__(self, pair, seed, oks=None):
        self.pair, self.seed, self.oks = pair, seed, oks or {}
        self.train, self.test = held_back(pair.y_train, VALIDATION, np.random.default_rng([seed, 5]))

    def bank(self):
        """All kernel matrices of the training samples."""
        return KernelBank(self.pair.kernels, self.pair.X_train, memory=MEMORY)

    def on_features(self, make, values):
        """The value with which an estimator on the features does best on the held-back samples."""
        X, y = self.pair.X_train, self.pair.y_train
        return best_value(
            values, lambda v: judged(make(v).fit(X[self.train], y[self.train]), X[self.test], y[self.test])
        )

    def on_bank(self, bank, make, values):
        """The same for an estimator on kernel matrices, which are computed once."""
        y = self.pair.y_train
        inner = bank.restrict(self.train, resident=True)
        outer = np.ascontiguousarray(bank.rows(self.test)[:, :, self.train])
        return best_value(values, lambda v: judged(make(v).fit(inner, y[self.train]), outer, y[self.test]))


def _mutron(split, grids):
    make = functools.partial(MuTron, validation=VALIDATION, random_state=split.seed, verbose=False)
    model = make(split.pair.kernels).fit(split.pair.X_train, split.pair.y_train)
    return Outcome(
        model, model.best_index_, {}, lambda bank: make("precomputed").fit(bank, split.pair.y_train)
    )


def _om1(split, grids):
    def make(beta, kernels="precomputed"):
        return OM1(kernels, beta=beta, shuffle=True, random_state=split.seed, verbose=False)

    beta = split.on_bank(split.bank(), make, grids["beta"])
    model = make(beta, split.pair.kernels).fit(split.pair.X_train, split.pair.y_train)
    return Outcome(
        model, model.best_index_, {"beta": beta}, lambda bank: make(beta).fit(bank, split.pair.y_train)
    )


def _om2(split, grids):
    def make(p):
        return OM2("precomputed", p=p, random_state=split.seed, verbose=False, **TWO_EPOCHS)

    bank = split.bank()
    p = split.on_bank(bank, make, grids["p"])
    return Outcome(
        make(p).fit(bank, split.pair.y_train),
        None,
        {"p": p},
        lambda bank: make(p).fit(bank, split.pair.y_train),
    )


def _simple(split, grids):
    def make(C):
        return SimpleMKL("precomputed", C=C, verbose=False)

    bank = split.bank()
    C = split.on_bank(bank, make, grids["C"])
    model = make(C).fit(bank, split.pair.y_train)
    index = int(np.argmax(np.atleast_2d(model.kernel_weights_)[0]))
    return Outcome(model, index, {"C": C}, lambda bank: make(C).fit(bank, split.pair.y_train))


def _one_svm(cls):
    def run(split, grids):
        make = functools.partial(cls, validation=VALIDATION, random_state=split.seed, memory=MEMORY)
        model = make(split.pair.kernels, C=grids["C"]).fit(split.pair.X_train, split.pair.y_train)
        again = lambda bank: make("precomputed", C=model.C_).fit(bank, split.pair.y_train)  # noqa: E731
        return Outcome(model, model.best_index_, {"C": model.C_}, again)

    return run


def _selected(selector, tuned):
    def run(split, grids):
        X, y, kernels = split.pair.X_train, split.pair.y_train, split.pair.kernels
        options = {"random_state": split.seed, "verbose": False, **(split.oks if selector is OKS else {})}

        def make(value=None, kernels=kernels):
            return selector(kernels, **options, **({tuned: value} if tuned else {}))

        value = split.on_features(make, grids[tuned]) if tuned else None
        model = SelectedSVM(make(value), C=grids["C"], validation=VALIDATION, random_state=split.seed).fit(
            X, y
        )
        chosen = {"C": model.C_, **({tuned: value} if tuned else {})}

        def again(bank):
            return SelectedSVM(
                make(value, "precomputed"), C=model.C_, validation=VALIDATION, random_state=split.seed
            ).fit(bank, y)

        return Outcome(model, model.best_index_, chosen, again)

    return run


#: The paper's columns, in its order. Random ones are repeated over seeds.
METHODS = {
    "MuTron": _mutron,
    "OM1": _om1,
    "OM2": _om2,
    "AlignmentSVM": _one_svm(AlignmentSVM),
    "MuSVM": _one_svm(MuSVM),
    "SimpleMKL": _simple,
    "SOM": _selected(SOM, "beta"),
    "OKS": _selected(OKS, None),
}
RANDOM = ("SOM", "OKS")


@functools.lru_cache(maxsize=1)
def warm_up():
    """Compile all that the timed methods use."""
    rng = np.random.default_rng(0)
    X = rng.random((40, 3))
    y = (X[:, 0] > 0.5).astype(np.int64)
    kernels = with_widths(kind_kernels({"all": slice(0, 3)}), X)
    pair = Pair(X, y, X, y, kernels)
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            outcome = METHODS[method](_Split(pair, 0), {"C": (1.0,), "beta": (0.5,), "p": (1.5,)})
            outcome.model.score(_features(outcome.model, KernelBank(kernels, X), X), y)
            outcome.again(KernelBank(kernels, X, memory=MEMORY))


def _features(model, bank, X):
    """New samples as a model takes them: itself on features, or kernel matrices."""
    return bank.cross(X) if model.kernels == "precomputed" else X


def compare(name, methods, seed, grids, described, oks=None):
    """Several methods on the same pair, one after the other in one run.

    Parameters
    ----------
    name : str
        Of the pair.
    methods : list of str
    seed : int
        Of the held-back tenth and of all draws.
    grids : dict
        Values of C, beta and p.
    described : dict
        Of `describe_pair`, by name.
    oks : dict, optional
        delta and eta of `OKS`.

    Returns
    -------
    DataFrame
        Columns method, n_train, n_test, seconds (from the features on: kernels, tuning, training), core_seconds (parameters known,
        matrices at hand), accuracy (on the test samples), kernel (the paper's number, from 1; 0 where there is none), kernel_name, chosen, beta.
    """
    warm_up()
    pair = pair_of(name, described[name])
    split, rows = _Split(pair, seed, oks), []
    bank = split.bank()
    for method in methods:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # SimpleMKL at the range's ends; its gap is not what is compared
            begun = time.perf_counter()
            outcome = METHODS[method](split, grids)
            seconds = time.perf_counter() - begun
            begun = time.perf_counter()
            outcome.again(bank)
            core = time.perf_counter() - begun
        accuracy = outcome.model.score(_features(outcome.model, bank, pair.X_test), pair.y_test)
        index = outcome.index
        rows.append(
            {
                "method": method,
                "n_train": pair.y_train.size,
                "n_test": pair.y_test.size,
                "seconds": seconds,
                "core_seconds": core,
                "accuracy": float(accuracy),
                "kernel": 0 if index is None else index + 1,
                "kernel_name": "" if index is None else pair.kernels[index][0],
                "chosen": ", ".join(f"{k}={v:g}" for k, v in outcome.chosen.items()),
                "beta": outcome.chosen.get("beta", np.nan),
            }
        )
    return pd.DataFrame(rows)


def every_kernel(name, seed, grids, described):
    """Test accuracy of an SVM on each kernel alone, C by the held-back tenth: how good each kernel is (figures 1 and 2).

    Returns
    -------
    DataFrame
        Columns kernel (from 1), kernel_name, C, accuracy.
    """
    pair = pair_of(name, described[name])
    split = _Split(pair, seed)
    signs, truth = np.where(pair.y_train == 1, 1.0, -1.0), pair.y_test == 1
    bank, rows = split.bank(), []
    values = sorted(grids["C"])
    for j, (kernel_name, _, _) in enumerate(pair.kernels):
        kernel = single_kernel(bank, j)
        C = values[best_place(*scores_of_C(kernel, signs, values, split.train, split.test))]
        svm = fit_svc(kernel, signs, C)
        cross = np.concatenate([block for _, block in bank.select([j]).cross(pair.X_test).blocks()], axis=1)[
            0
        ]
        decided = cross[:, svm.support].astype(np.float64) @ svm.coef + svm.intercept > 0.0
        rows.append(
            {
                "kernel": j + 1,
                "kernel_name": kernel_name,
                "C": float(C),
                "accuracy": float(np.mean(decided == truth)),
            }
        )
    return pd.DataFrame(rows)


def selections(name, method, n_epochs, seeds, betas, described, oks=None):
    """Kernels that a selector finds with many seeds, and what they cost.

    Parameters
    ----------
    name : str
    method : {"OKS", "SOM"}
    n_epochs : int
    seeds : sequence of int
    betas : sequence of float
        Of SOM, taken in turn: those that the validations of `compare` chose.
    described : dict
    oks : dict, optional
        delta and eta of `OKS`.

    Returns
    -------
    DataFrame
        Columns seed, kernel (from 1), probability (its q), evaluations (kernel values), updates, mistakes (share of the visits).
    """
    pair, rows = pair_of(name, described[name]), []
    for seed, beta in zip(seeds, itertools.cycle(betas), strict=False):
        options = {"n_epochs": n_epochs, "random_state": seed, "verbose": False}
        model = (
            OKS(pair.kernels, **(oks or {}), **options)
            if method == "OKS"
            else SOM(pair.kernels, beta=beta, **options)
        )
        model.fit(pair.X_train, pair.y_train)
        rows.append(
            {
                "seed": seed,
                "kernel": model.best_index_ + 1,
                "probability": float(model.kernel_probabilities_.max()),
                "evaluations": model.n_evaluations_,
                "updates": model.n_updates_,
                "mistakes": float(model.online_errors_.mean()),
            }
        )
    return pd.DataFrame(rows)


def probabilities(name, seed, delta, eta, n_epochs, described):
    """Kernel probabilities of OKS over the visits.

    Returns
    -------
    DataFrame
        Columns step, kernel (from 1), probability.
    """
    pair = pair_of(name, described[name])
    model = OKS(pair.kernels, delta=delta, eta=eta, n_epochs=n_epochs, random_state=seed, verbose=False).fit(
        pair.X_train, pair.y_train
    )
    steps = model.history_["step"].to_numpy()
    m = len(pair.kernels)
    kernels = np.tile(np.arange(1, m + 1), steps.size)
    return pd.DataFrame(
        {"step": np.repeat(steps, m), "kernel": kernels, "probability": model.probability_history_.ravel()}
    )


def compare_all(sweep, names, described, grids, seeds, data, repeated=RANDOM, oks=None):
    """Every method once, some with every seed, on several pairs.

    Parameters
    ----------
    sweep : Sweep
        With one job: the methods are timed.
    names : sequence of str
    described : dict
        Of `describe_pair`, by name.
    grids : dict
    seeds : sequence of int
        The first for every method.
    data : sequence
        Identity of the data.
    repeated : sequence of str
        Methods that run with every seed.
    oks : dict, optional
        delta and eta of `OKS`.

    Returns
    -------
    DataFrame
        Columns name, seed and those of `compare`.
    """
    points = [
        {
            "name": name,
            "methods": list(METHODS if seed == seeds[0] else repeated),
            "seed": seed,
            "grids": grids,
            "oks": oks,
        }
        for name in names
        for seed in seeds
    ]
    frames = sweep.run(compare, points, common={"described": described}, data=data)
    return pd.concat(
        [f.assign(name=p["name"], seed=p["seed"]) for p, f in zip(points, frames, strict=True)],
        ignore_index=True,
    )


def as_printed(table):
    """The comparison as the paper prints it: a row per pair and method, means over seeds.

    Returns
    -------
    DataFrame
        Columns name, method, n_train, n_test, seconds, "times OKS" (ratio to OKS-SVM), core_seconds, accuracy, sd, kernels, chosen (of
        the first seed).
    """
    grouped = table.groupby(["name", "method"], sort=False)
    out = grouped.agg(
        n_train=("n_train", "first"),
        n_test=("n_test", "first"),
        seconds=("seconds", "mean"),
        core_seconds=("core_seconds", "mean"),
        accuracy=("accuracy", "mean"),
        sd=("accuracy", "std"),
        kernels=("kernel", lambda k: ",".join(str(v) for v in sorted(k) if v)),
        chosen=("chosen", "first"),
        names=("kernel_name", lambda k: "; ".join(dict.fromkeys(v for v in k if v))),
    ).reset_index()
    base = out[out["method"] == "OKS"].set_index("name")["seconds"]
    out.insert(5, "times OKS", out["seconds"] / out["name"].map(base))
    return out
