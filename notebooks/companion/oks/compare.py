"""The methods of tables 1 and 2, timed from the features on, as the paper does.

Whatever a method chooses, it chooses on the same samples, whole families that are held back from training.
"""

import math
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from companion import pictures
from companion.oks.tasks import Pair, held_apart
from companion.protocol import quiet, timed
from cuelearn.kernels import KernelBank
from cuelearn.mkl import OM2, SimpleMKL
from cuelearn.oks import OKS, OM1, SOM, AlignmentSVM, MuSVM, MuTron, SelectedSVM, kind_kernels
from cuelearn.oks.batch import best_place
from cuelearn.oks.oks import oks_pass
from cuelearn.oks.selection import Selector
from cuelearn.oks.som import som_pass
from cuelearn.oks.sources import Columns, with_widths

SOM_DELTA = 0.2
MEMORY = 4e9  # the 60 matrices of 3,400 samples take 2.8 GB


class Method(NamedTuple):
    """How a method enters the comparison: `make(kernels, trial, **chosen)` gives its estimator."""

    make: object
    tuned: str = ""  # the parameter that is chosen on what is held back, if any
    bank: str = ""  # kernel matrices are computed once for the "tuning", or for "all", the training too
    own_C: bool = False  # it is given the grid of C and chooses itself


def _made(cls, **options):
    return lambda kernels, trial, **chosen: cls(kernels, random_state=trial.seed, **options, **chosen)


def _holding(cls, **options):
    """A method that holds samples back itself."""
    return lambda kernels, trial, **chosen: cls(
        kernels, validation=trial.test, random_state=trial.seed, **options, **chosen
    )


def _simple(kernels, trial, **chosen):
    return SimpleMKL(kernels, **chosen)


def _selected(cls):
    """An SVM on the kernel that a selector finds; without C the selector alone, which is what is tuned."""

    def make(kernels, trial, C=None, **chosen):
        options = {"random_state": trial.seed} | (trial.oks if cls is OKS else {})
        selector = cls(kernels, **options, **chosen)
        if C is None:
            return selector
        return SelectedSVM(selector, C=C, validation=trial.test, random_state=trial.seed)

    return make


#: The paper's columns, in its order.
METHODS = {
    "MuTron": Method(_holding(MuTron)),
    "OM1": Method(_made(OM1, shuffle=True), "beta", "tuning"),
    "OM2": Method(_made(OM2, n_epochs=2, shuffle=True), "p", "all"),
    "AlignmentSVM": Method(_holding(AlignmentSVM, memory=MEMORY), own_C=True),
    "MuSVM": Method(_holding(MuSVM, memory=MEMORY), own_C=True),
    "SimpleMKL": Method(_simple, "C", "all"),
    "SOM": Method(_selected(SOM), "beta", own_C=True),
    "OKS": Method(_selected(OKS), own_C=True),
}
NATURAL = {"p": (2.0,)}  # ends of grids that nothing lies beyond


def judged(model, X, y):
    """Accuracy and mean hinge loss of a fitted model; y holds 0 and 1."""
    signs, decided = np.where(y == 1, 1.0, -1.0), model.decision_function(X)
    return np.mean(np.where(decided > 0.0, 1.0, -1.0) == signs), np.maximum(0.0, 1.0 - signs * decided).mean()


class Trial:
    """A pair, and what of its training part is held back (`train`, `test`) for all methods."""

    def __init__(self, pair, seed, oks=None):
        self.pair, self.seed, self.oks = pair, seed, oks or {}
        self.train, self.test = held_apart(pair, np.random.default_rng([seed, 5]))

    def bank(self):
        """All kernel matrices of the training samples."""
        return KernelBank(self.pair.kernels, self.pair.X_train, memory=MEMORY)

    def best_value(self, entry, values, bank=None):
        """The value with the best accuracy on held-back samples, ties by the hinge loss there; the models."""
        X, y, train, test = self.pair.X_train, self.pair.y_train, self.train, self.test
        kernels, inner, outer = self.pair.kernels, X[train], X[test]
        if bank is not None:
            kernels, inner = "precomputed", bank.restrict(train, resident=True)
            outer = np.ascontiguousarray(bank.rows(test)[:, :, train])
        models = [entry.make(kernels, self, **{entry.tuned: v}).fit(inner, y[train]) for v in values]
        accuracies, losses = zip(*(judged(model, outer, y[test]) for model in models), strict=True)
        return values[best_place(np.array(accuracies), np.array(losses))], models

    def run(self, method, grids):
        """A method from the features on: the fitted estimator, what was chosen, its work, tuning included."""
        entry, pair, chosen, tried = METHODS[method], self.pair, {}, []
        bank = self.bank() if entry.bank else None
        if entry.tuned:
            chosen[entry.tuned], tried = self.best_value(entry, grids[entry.tuned], bank)
        kernels, X = ("precomputed", bank) if entry.bank == "all" else (pair.kernels, pair.X_train)
        grid = {"C": grids["C"]} if entry.own_C else {}
        model = entry.make(kernels, self, **grid, **chosen).fit(X, pair.y_train)
        models = (*tried, model)
        values = [m.n_evaluations_ for m in models if hasattr(m, "n_evaluations_")]
        if bank is not None:  # what was tuned on its matrices computed nothing more
            n = bank.n_samples
            values = [*values[len(tried) :], bank.n_kernels * n * (n + 1) // 2]
        work = {"kernel_values": sum(values), "svms": sum(getattr(m, "n_solved_", 0) for m in models)}
        return model, ({"C": model.C_} if entry.own_C else {}) | chosen, work

    def accuracy(self, model):
        """On the test samples, which a model takes as features or as kernel matrices."""
        X = self.pair.X_test
        X = model.bank_.cross(X) if model.kernels == "precomputed" else X
        return float(model.score(X, self.pair.y_test))


@lru_cache(maxsize=1)
def warm_up():
    """Compile all that the timed methods use."""
    X = np.random.default_rng(0).random((40, 3))
    y = (X[:, 0] > 0.5).astype(np.int64)
    kernels = with_widths(kind_kernels({"all": slice(0, 3)}), X)
    trial = Trial(Pair(X, y, X, y, kernels, np.arange(40), y), 0)
    with quiet():
        for method in METHODS:
            trial.accuracy(trial.run(method, {"C": (1.0,), "beta": (0.5,), "p": (1.5,)})[0])


def compare(name, methods, seed, grids, pairs, oks=None):
    """Several methods on the same pair, one after the other; kernel: the paper's number, 0 where none is."""
    warm_up()
    pair = pairs[name]
    trial, rows = Trial(pair, seed, oks), []
    for method in methods:
        with quiet():  # SimpleMKL at the range's ends; its gap is not what is compared
            (model, chosen, work), seconds = timed(trial.run, method, grids)
        index = getattr(model, "best_index_", None)
        if method == "SimpleMKL":  # its heaviest kernel counts as the chosen one
            index = int(np.argmax(np.atleast_2d(model.kernel_weights_)[0]))
        row = {"method": method, "n_train": pair.y_train.size, "n_kernels": len(pair.kernels)}
        row |= {"chance": np.bincount(pair.y_test).max() / pair.y_test.size, "seconds": seconds, **work}
        row["accuracy"] = trial.accuracy(model)
        row["kernel"] = 0 if index is None else index + 1
        rows.append(row | {name: chosen.get(name, np.nan) for name in ("C", "beta", "p")})
    return pd.DataFrame(rows)


def every_kernel(name, seed, grids, pairs):
    """Test accuracy of an SVM on each kernel alone, on either half of the test too, and its mistakes."""
    pair, rows = pairs[name], []
    trial = Trial(pair, seed)
    bank, entry = trial.bank(), METHODS["MuSVM"]
    for j, (kernel_name, _, _) in enumerate(pair.kernels):
        alone = bank.select([j])
        svm = entry.make("precomputed", trial, C=grids["C"]).fit(alone, pair.y_train)
        right = svm.predict(alone.cross(pair.X_test)) == pair.y_test
        parts = {f"accuracy_{half}": right[pair.half == half].mean() for half in (0, 1)}
        row = {"kernel": j + 1, "kernel_name": kernel_name, "C": svm.C_, "accuracy": right.mean(), **parts}
        rows.append(row | {"mistaken": " ".join(map(str, np.flatnonzero(~right)))})
    return pd.DataFrame(rows)


def pictures_of(name, pair, quality):
    """Pictures of a pair of emoji by title: a drawing of each training thing; what two kernels mistake."""
    (train, test), sides = pair.drawings, {}
    for label, word in enumerate(name.partition(" ")[2].split("/")):
        rows = train[pair.y_train == label]
        sides[word] = rows[np.unique(pictures.emoji().thing[rows], return_index=True)[1]]
    first, second = "HSV 1x1 chi2", "words 3x1 chi2"
    text = quality.set_index("kernel_name")["mistaken"]
    a, b = ({int(k) for k in text[kernel].split()} for kernel in (first, second))
    errors = {f"only {first} errs": a - b, f"only {second} errs": b - a, "both err": a & b}
    errors = {title: test[sorted(mistaken)] for title, mistaken in errors.items()}
    look = partial(pictures.emoji().on_backgrounds, random_state=pictures.SEED)
    return [{k: look(rows=rows).images for k, rows in group.items()} for group in (sides, errors)]


def selections(name, method, n_epochs, seeds, beta, pairs, oks=None):
    """Kernels that "OKS" or "SOM" finds with many seeds, and what they cost."""
    pair, rows = pairs[name], []
    source = Columns(with_widths(pair.kernels, pair.X_train), normalize=True)
    samples, signs = source.pack(pair.X_train), 2.0 * pair.y_train - 1.0
    rule = {"rule": oks_pass, **(oks or {})}
    if method == "SOM":
        rule = {"rule": som_pass, "delta": [SOM_DELTA], "eta": -math.log(beta)}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        learner = Selector(source.kernels, rng, n_rounds=n_epochs * signs.size, **rule)
        learner.run(samples, signs, n_epochs, shuffle=True)
        row = {"seed": seed, "kernel": learner.best + 1, "probability": float(learner.q.max())}
        row |= {"evaluations": learner.n_evaluations, "updates": learner.n_updates}
        rows.append(row | {"mistakes": learner.n_mistakes / learner.n_seen})
    return pd.DataFrame(rows)


def probabilities(name, seed, delta, eta, n_epochs, pairs):
    """Kernel probabilities of OKS over the visits."""
    pair = pairs[name]
    model = OKS(pair.kernels, delta=delta, eta=eta, n_epochs=n_epochs, random_state=seed)
    model.fit(pair.X_train, pair.y_train)
    table = pd.DataFrame(model.probability_history_, index=model.history_["step"])
    table = table.rename(columns=lambda j: j + 1).rename_axis(columns="kernel")
    return table.stack().rename("probability").reset_index()


def as_printed(table):
    """A row per pair and method, means over seeds; "chosen" is of the first seed."""
    chosen = table[["C", "beta", "p"]].apply(
        lambda row: ", ".join(f"{name}={value:g}" for name, value in row.dropna().items()), axis=1
    )
    columns = {column: (column, "first") for column in ("n_train", "n_kernels", "chance")}
    columns |= {"accuracy": ("accuracy", "mean"), "sd": ("accuracy", "std")}
    columns |= {column: (column, "mean") for column in ("kernel_values", "svms", "seconds")}
    columns["kernels"] = ("kernel", lambda k: ",".join(str(v) for v in sorted(k) if v))
    columns["chosen"] = ("chosen", "first")
    return table.assign(chosen=chosen).groupby(["name", "method"], sort=False).agg(**columns).reset_index()


def of_the_paper(printed, paper):
    """The paper's accuracy for each row of `as_printed`, where the pairs are its own; else None."""
    name = "corel5k " + paper["task"].str.replace(" vs ", "/")
    theirs = paper.assign(name=name).set_index(["name", "method"])[["accuracy"]]
    accuracy = theirs.reindex(pd.MultiIndex.from_frame(printed[["name", "method"]])).reset_index(drop=True)
    return None if accuracy["accuracy"].isna().all() else accuracy


def by_method(printed):
    """Means over the pairs of `as_printed`, a row per method; "times OKS": ratio of seconds to OKS-SVM's."""
    columns = ["accuracy", "sd", "kernel_values", "svms", "seconds"]
    out = printed.groupby("method", sort=False)[columns].mean()
    return out.assign(**{"times OKS": out["seconds"] / out.loc["OKS", "seconds"]})


def beside(paper, methods):
    """The paper's table as `by_method` has ours: means over its pairs, and what it prints for each."""
    by = paper.groupby("method", sort=False)
    out = by[["accuracy", "sd", "seconds"]].mean()
    out["times OKS"] = out["seconds"] / out.loc["OKS", "seconds"]
    out["accuracy by pair"] = by["accuracy"].agg(lambda values: ", ".join(f"{v:.3f}" for v in values))
    out["kernels by pair"] = by["kernels"].agg(lambda texts: "; ".join(texts.fillna("")).strip("; "))
    return out.loc[list(methods)]
