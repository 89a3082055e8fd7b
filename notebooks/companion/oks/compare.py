"""The methods of tables 1 and 2, timed from the features on, as the paper does: CPU seconds of one thread.

Whatever a method chooses, it chooses on the same samples, whole families that are held back from training.
"""

import math
from functools import lru_cache

import numpy as np
import pandas as pd

from companion import pictures
from companion.oks.tasks import Pair, held_apart
from companion.protocol import quiet, timed
from cuelearn.core.formulas import first_best
from cuelearn.kernels import KernelBank
from cuelearn.mkl import OM2, SimpleMKL
from cuelearn.oks import OKS, OM1, SOM, AlignmentSVM, MuSVM, MuTron, SelectedSVM, kind_kernels
from cuelearn.oks.kernels import Columns, with_widths
from cuelearn.oks.online import Selector, oks_pass

SOM_DELTA = 0.2
MEMORY = 4e9  # the 60 matrices of 3,400 samples take 2.8 GB
#: The paper's columns, in its order.
METHODS = ("MuTron", "OM1", "OM2", "AlignmentSVM", "MuSVM", "SimpleMKL", "SOM", "OKS")
#: The parameter of a method that is chosen on what is held back.
TUNED = {"OM1": "beta", "OM2": "p", "SimpleMKL": "C", "SOM": "beta"}
CHOOSES_C = ("AlignmentSVM", "MuSVM", "SOM", "OKS")  # itself, from the grid
COMBINES = ("OM2", "SimpleMKL")  # all kernel matrices, computed once for tuning and training
NATURAL = {"p": (2.0,)}  # ends of grids that nothing lies beyond


class Trial:
    """A pair, and what of its training part is held back (`train`, `test`) for all methods."""

    def __init__(self, pair, seed, oks=None):
        self.pair = pair
        self.seed = seed
        self.oks = oks or {}
        self.train, self.test = held_apart(pair, np.random.default_rng([seed, 5]))

    def bank(self):
        """All kernel matrices of the training samples."""
        return KernelBank(self.pair.kernels, self.pair.X_train, memory=MEMORY)

    def estimator(self, method, kernels, C=None, **chosen):
        """Not fitted; of OKS and SOM without C the selector alone, which is what is tuned."""
        random = {"random_state": self.seed}
        held = {"validation": self.test, **random}
        match method:
            case "MuTron":
                return MuTron(kernels, **held)
            case "OM1":
                return OM1(kernels, shuffle=True, **random, **chosen)
            case "OM2":
                return OM2(kernels, n_epochs=2, shuffle=True, **random, **chosen)
            case "SimpleMKL":
                return SimpleMKL(kernels, C=C)
            case "AlignmentSVM":
                return AlignmentSVM(kernels, C=C, memory=MEMORY, **held)
            case "MuSVM":
                return MuSVM(kernels, C=C, memory=MEMORY, **held)
            case "SOM":
                selector = SOM(kernels, **random, **chosen)
            case "OKS":
                selector = OKS(kernels, n_epochs=2, **random, **self.oks)
        return selector if C is None else SelectedSVM(selector, C=C, **held)

    def best_value(self, method, values, bank):
        """The value with the best accuracy on held-back samples, ties by the hinge loss there; the models."""
        kernels = self.pair.kernels
        inner = self.pair.X_train[self.train]
        outer = self.pair.X_train[self.test]
        if bank is not None:
            kernels = "precomputed"
            inner = bank.restrict(self.train, resident=True)
            outer = np.ascontiguousarray(bank.rows(self.test)[:, :, self.train])
        signs = np.where(self.pair.y_train[self.test] == 1, 1.0, -1.0)
        models, accuracies, losses = [], [], []
        for value in values:
            model = self.estimator(method, kernels, **{TUNED[method]: value})
            scores = model.fit(inner, self.pair.y_train[self.train]).decision_function(outer)
            models.append(model)
            accuracies.append(np.mean((scores > 0.0) == (signs > 0.0)))
            losses.append(np.maximum(0.0, 1.0 - signs * scores).mean())
        return values[first_best(accuracies, losses)], models

    def run(self, method, grids):
        """A method from the features on: the fitted estimator, what was chosen, its work, tuning included."""
        pair = self.pair
        bank = self.bank() if method in ("OM1", *COMBINES) else None
        chosen = {"C": grids["C"]} if method in CHOOSES_C else {}
        tried = []
        if method in TUNED:
            name = TUNED[method]
            chosen[name], tried = self.best_value(method, grids[name], bank)
        kernels, X = ("precomputed", bank) if method in COMBINES else (pair.kernels, pair.X_train)
        model = self.estimator(method, kernels, **chosen).fit(X, pair.y_train)
        if method in CHOOSES_C:
            chosen["C"] = model.C_
        # what was tuned on the bank's matrices computed nothing more
        computing = [model] if bank else [*tried, model]
        values = sum(getattr(m, "n_evaluations_", 0) for m in computing)
        if bank:
            values += bank.n_kernels * bank.n_samples * (bank.n_samples + 1) // 2
        svms = sum(getattr(m, "n_solved_", 0) for m in [*tried, model])
        return model, {**chosen, "kernel_values": values, "svms": svms}

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
    trial = Trial(pair, seed, oks)
    rows = []
    for method in methods:
        with quiet():  # SimpleMKL at the range's ends; its gap is not what is compared
            (model, work), seconds = timed(trial.run, method, grids)
        index = getattr(model, "best_index_", -1)
        if method == "SimpleMKL":  # its heaviest kernel counts as the chosen one
            index = int(np.argmax(np.atleast_2d(model.kernel_weights_)[0]))
        row = {"method": method, "seconds": seconds, "accuracy": trial.accuracy(model), "kernel": index + 1}
        rows.append({**row, **dict.fromkeys(grids, np.nan), **work})
    chance = np.bincount(pair.y_test).max() / pair.y_test.size
    return pd.DataFrame(rows).assign(n_train=pair.y_train.size, n_kernels=len(pair.kernels), chance=chance)


def every_kernel(name, seed, grids, pairs):
    """Of an SVM on each kernel alone its accuracy on training things held back and on the test, on either
    half of it too, and its mistakes."""
    pair = pairs[name]
    trial = Trial(pair, seed)
    bank = trial.bank()
    rows = []
    for j, (kernel_name, _, _) in enumerate(pair.kernels):
        alone = bank.select([j])
        svm = trial.estimator("MuSVM", "precomputed", C=grids["C"]).fit(alone, pair.y_train)
        right = svm.predict(alone.cross(pair.X_test)) == pair.y_test
        row = {
            "kernel": j + 1,
            "kernel_name": kernel_name,
            "C": svm.C_,
            "held": svm.validation_accuracy_.max(),
            "accuracy": right.mean(),
            "accuracy_0": right[pair.half == 0].mean(),
            "accuracy_1": right[pair.half == 1].mean(),
            "mistaken": " ".join(map(str, np.flatnonzero(~right))),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def pictures_of(name, pair, quality):
    """Drawings of a pair of emoji by title: one of each training thing; what two kernels mistake."""
    train, test = pair.drawings
    groups = {}
    for label, word in enumerate(name.partition(" ")[2].split("/")):
        rows = train[pair.y_train == label]
        groups[word] = rows[np.unique(pictures.emoji().thing[rows], return_index=True)[1]]
    mistaken = quality.set_index("kernel_name")["mistaken"].str.split().map(set)
    colour = mistaken["HSV 1x1 chi2"]
    words = mistaken["words 3x1 chi2"]
    errors = {
        "only HSV 1x1 chi2 errs": colour - words,
        "only words 3x1 chi2 errs": words - colour,
        "both err": colour & words,
    }
    groups |= {title: test[sorted(map(int, samples))] for title, samples in errors.items()}
    on_backgrounds = pictures.emoji().on_backgrounds
    return {k: on_backgrounds(rows=v, random_state=pictures.SEED).images for k, v in groups.items()}


def selections(name, method, n_epochs, seeds, beta, pairs, oks=None):
    """Kernels that "OKS" or "SOM" finds with many seeds, and what they cost."""
    pair = pairs[name]
    source = Columns(pair.kernels, normalize=True)
    samples = source.pack(pair.X_train)
    signs = 2.0 * pair.y_train - 1.0
    options = oks or {}
    if method == "SOM":
        options = {"unbiased": False, "delta": [SOM_DELTA], "eta": -math.log(beta)}
    rows = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        learner = Selector(source.kernels, rng, rule=oks_pass, n_rounds=n_epochs * signs.size, **options)
        learner.run(samples, signs, n_epochs, shuffle=True)
        row = {
            "seed": seed,
            "kernel": learner.best + 1,
            "probability": learner.q.max(),
            "evaluations": learner.n_evaluations,
            "updates": learner.n_updates,
            "mistakes": learner.n_mistakes / learner.n_seen,
        }
        rows.append(row)
    return pd.DataFrame(rows)


def probabilities(name, seed, delta, eta, n_epochs, pairs):
    """Kernel probabilities of OKS over the visits."""
    pair = pairs[name]
    model = OKS(pair.kernels, delta=delta, eta=eta, n_epochs=n_epochs, random_state=seed)
    model.fit(pair.X_train, pair.y_train)
    table = pd.DataFrame(model.probability_history_).rename(columns=lambda j: j + 1)
    table = table.assign(step=model.history_["step"]).melt(
        "step", var_name="kernel", value_name="probability"
    )
    return table.sort_values(["step", "kernel"], ignore_index=True)


def as_printed(table):
    """A row per pair and method: accuracies over all splits, on the "first", and what that one costs, where
    all methods run in turn in one process; "chosen" is of it, too."""
    chosen = table[["C", "beta", "p"]].apply(
        lambda row: ", ".join(f"{name}={value:g}" for name, value in row.dropna().items()), axis=1
    )
    groups = table.assign(chosen=chosen).groupby(["name", "method"], sort=False)
    columns = [
        groups[["n_train", "n_kernels", "chance"]].first(),
        groups["accuracy"].agg(["mean", "std"]).set_axis(["accuracy", "sd"], axis=1),
        groups["accuracy"].first().rename("first"),
        groups[["kernel_values", "svms", "seconds"]].first(),
        groups["kernel"].agg(lambda k: ",".join(str(v) for v in sorted(k) if v)).rename("kernels"),
        groups["chosen"].first(),
    ]
    return pd.concat(columns, axis=1).reset_index()


def of_the_paper(printed, paper):
    """The paper's accuracy for each row of `as_printed`, where the pairs are its own; else None."""
    paper = paper.assign(name="corel5k " + paper["task"].str.replace(" vs ", "/"))
    columns = ["name", "method", "accuracy"]
    accuracy = printed[columns[:2]].merge(paper[columns], how="left")[["accuracy"]]
    return None if accuracy["accuracy"].isna().all() else accuracy


def by_method(table):
    """Means over pairs, a row per method; "times OKS": ratio of seconds to OKS-SVM's."""
    columns = ["accuracy", "sd", "first", "kernel_values", "svms", "seconds"]
    means = table.groupby("method", sort=False)[[c for c in columns if c in table]].mean()
    return means.assign(**{"times OKS": means["seconds"] / means.loc["OKS", "seconds"]})


def beside(paper, methods):
    """The paper's table as `by_method` has ours: means over its pairs, and what it prints for each."""
    groups = paper.groupby("method", sort=False)
    means = by_method(paper)
    means["accuracy by pair"] = groups["accuracy"].agg(lambda values: ", ".join(f"{v:.3f}" for v in values))
    means["kernels by pair"] = groups["kernels"].agg(lambda t: "; ".join(t.fillna("")).strip("; "))
    return means.loc[list(methods)]
