"""Experiments of the OKS chapter (Yang, Mahdavi, Jin, Yi, Hoi, AAAI 2012): pairs, methods, theorems.

*Pairs* of keywords and of categories of emoji, 15 kinds of features times four kernels; pairs of leaves. A
label takes part if 100 drawings of ten families have it (`full`: 60 of eight), and a pair if as much is left
on either side without the things that have both. A seed draws pairs, no label twice; the larger side is cut,
so that chance is one half. Of the hundred species of leaves groups of four are drawn, and a pair is one group
against the next. The paper's own pairs are those of Corel5k.

*Methods* of tables 1 and 2 are timed from the features on, as the paper does: CPU seconds of one thread. What
a method chooses, it chooses on the same samples, whole families that are held back from training. OKS, SOM
and OM-2 have as many rounds as in the paper, 2,374 to 6,868: two passes there, ten over our smaller sets.

*Theorems* 1 and 3 and corollary 2 speak of every kernel's predictor at every visit, the algorithms evaluate
only the one they draw: so a run is replayed. Comparators enter with a certified lower bound.
"""

import math
from functools import cache, lru_cache, partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve
from scipy.special import entr, expit
from sklearn.model_selection import StratifiedGroupKFold

from companion import pictures
from companion.pictures import described, drawings_of, emoji, things
from companion.protocol import load_set, made_here, quiet, settings_of, timed
from companion.study import interval
from cuelearn import datasets
from cuelearn.core.formulas import first_best
from cuelearn.datasets import KIND_CUES
from cuelearn.kernels import RBF, KernelBank, Linear
from cuelearn.mkl import OM2, SimpleMKL
from cuelearn.mkl.optimum.problem import MKLProblem
from cuelearn.mkl.optimum.reference import solve_reference
from cuelearn.oks import OKS, OM1, SOM, AlignmentSVM, MuSVM, MuTron, SelectedSVM
from cuelearn.oks.batch import C_GRID
from cuelearn.oks.kernels import Columns, Given, kind_kernels, with_widths
from cuelearn.oks.online import Selector, oks_pass, regret_pass

# the paper's ranges; nothing depends on its lambda
BETA_RANGE = tuple(round(0.1 + 0.04 * k, 2) for k in range(21))
P_GRID = (1.01, 1.05, 1.10, 1.25, 1.50, 1.75, 2.0)  # OM-2's, of chapter mkl

#: The paper's own, where Corel5k is present, on the four kernels of its visual terms.
ORIGINAL_TASKS = ("corel5k sky/people", "corel5k water/tree", "corel5k sky/grass")

# smoke, quick, full
TABLE = {
    "n_pairs": (2, 5, 99),  # of keywords (there are 22 in full), and as many of categories (16)
    "least": ((100, 10), (100, 10), (60, 8)),  # drawings and families of a label
    "n_leaves": (2, 12, 12),  # pairs of species of leaves: all without a common one
    "more_leaves": (3, 36, 48),  # on which every kernel is alone, species drawn three or four times
    # splits by thing on which every kernel is alone; the first is drawn, and quick has no other
    "alone": {"keyword": (1, 1, 3), "category": (1, 1, 3), "leaves": (2, 1, 8)},
    "pairs": {"n_drawings": (30, 85, 130), "n_views": (1, 2, 3), "n_pictures": (90, 400, 1500)},
    "grids": {
        "C": ((1.0, 2.0**5), (2.0**-5, 1.0, 2.0**5), C_GRID),
        "beta": ((0.3, 0.7), (0.1, 0.5, 0.9), BETA_RANGE),
        "p": ((1.25,), (1.01, 1.05, 1.25, 2.0), P_GRID),
    },
    "selectors": (2, 1, 4),  # splits by thing, each with draws of its own, of the methods in `repeated`
    # SimpleMKL takes longer than all others together
    "repeated": (("MuSVM", "OM2", "SOM", "OKS", "OKS two passes"),) * 3,
    "selections": {
        "judged": (6, 20, 60),
        "seeds": (4, 5, 10),  # but of two passes, which are judged on more
        "n_epochs": ((1, 2, 10), (1, 2, 10), (1, 2, 5, 10, 20)),
    },
    "mistakes": {
        "n_samples": ((40, 80, 160), (75, 200, 600), (75, 150, 300, 600, 1200, 2400)),
        "seeds": (1, 3, 10),
        "draws": (8, 20, 60),
    },
    "regret": {
        "n_samples": ((40, 80), (75, 150, 300), (100, 400, 1600)),
        "seeds": (1, 3, 3),
        "draws": (8, 10, 100),
    },
    "quality": {
        "n_visits": ((50, 100, 200), (100, 200, 400, 800), (100, 200, 400, 800, 1600)),
        "n_samples": (200, 800, 1600),
        "n_held": (500, 1000, 3000),
        "seeds": (1, 3, 10),
        "draws": (20, 60, 300),
    },
}
#: Sizes for a profile, "smoke", "quick" or "full".
settings = partial(settings_of, TABLE)


# --- pairs --------------------------------------------------------------------------------------------------

SEED = 0  # of the pairs and their drawings; what varies with the seeds of a run are the splits
LEAST = (100, 10)  # drawings and families of a label
TEST_PARTS = 3  # a third of the families, or of the leaves of each species, tests
HELD_PARTS = 4  # a quarter of the training families is held back
TENTH = 10  # as in the paper, of Corel5k's pictures a tenth tests, and a tenth is held back
GROUP = 4  # species on either side of a pair of leaves


class Pair(NamedTuple):
    """A binary task, labels 0 and 1; `kernels` with numbers for scale."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    kernels: list
    families: np.ndarray  # of the training samples: one is never on both sides
    half: np.ndarray  # 0 or 1 of each test sample: what is ranked on one half is judged on the other
    held_parts: int = HELD_PARTS
    drawings: tuple = ()  # rows of the emoji


def _has(kind, label):
    """Which things have a label."""
    if kind == "keyword":
        return emoji().keywords[:, emoji().keyword_names.tolist().index(label)] == 1
    return emoji().subgroup == label


@cache
def _only(kind, label, other=None):
    """Things that have a label and not the other."""
    among = _has(kind, label)
    return things(among=among if other is None else among & ~_has(kind, other))


def _many(side, least):
    """Whether things are enough for one side of a pair."""
    enough = emoji().n_drawings()[side].sum() >= least[0]
    return enough and np.unique(emoji().family[side]).size >= least[1]


@cache
def pairs(kind, n, least=LEAST):
    """The first n tasks of the rule, such as "keyword bird/fruit"; "leaves 3/4" are groups of species."""
    if kind == "leaves":
        return [f"leaves {k}/{k + 1}" for k in range(1, 2 * n, 2)]
    labels = emoji().keyword_names.tolist() if kind == "keyword" else np.unique(emoji().subgroup).tolist()
    labels = [label for label in labels if _many(_only(kind, label), least)]
    fit = [p for p in combinations(labels, 2) if all(_many(_only(kind, *q), least) for q in (p, p[::-1]))]
    chosen = []
    taken = set()
    for k in np.random.default_rng([SEED, kind == "keyword"]).permutation(len(fit)):
        if taken.isdisjoint(fit[k]):
            chosen.append(f"{kind} {'/'.join(fit[k])}")
            taken.update(fit[k])
    return chosen[:n]


def apart(labels, groups, n_parts, rng):
    """Rows that learn, and one of n_parts that does not: whole groups, of each class as many as they let."""
    folds = StratifiedGroupKFold(n_parts, shuffle=True, random_state=int(rng.integers(2**31)))
    return list(folds.split(labels, labels, groups))[int(rng.integers(n_parts))]


def held_apart(pair, rng):
    """Training rows of a pair that learn, and that choose parameters."""
    return apart(pair.y_train, pair.families, pair.held_parts, rng)


def _pair(X_train, y_train, X_test, y_test, kernels, families, test_families, rng, **more):
    """A `Pair`; its halves have whole families, or single samples where one would lack a label."""
    for groups in (test_families, np.arange(y_test.size)):
        half = np.zeros(y_test.size, dtype=int)
        half[apart(y_test, groups, 2, rng)[1]] = 1
        if np.unique(np.stack([y_test, half]), axis=1).shape[1] == 2 * np.unique(y_test).size:
            break
    return Pair(X_train, y_train, X_test, y_test, with_widths(kernels, X_train), families, half, **more)


def _of_corel5k(name, n_pictures, rng):
    """Images with one of two keywords, not both, described by their visual terms."""
    data = load_set("corel5k")
    first, second = (list(data.target_names).index(word) for word in name.partition(" ")[2].split("/"))
    rows = np.flatnonzero(data.y[:, first] != data.y[:, second])
    labels = data.y[rows, second].astype(np.int64)
    X = data.X[rows].astype(np.float64)
    train, test = apart(labels, rows, TENTH, rng)
    train = rng.permutation(train)[:n_pictures]
    kernels = kind_kernels({"terms": slice(0, 499)})
    samples = X[train], labels[train], X[test], labels[test]
    return _pair(*samples, kernels, rows[train], test, rng, held_parts=TENTH)


def _species(group):
    """The species of a group, counted from 1."""
    rng = np.random.default_rng([SEED, 2])
    species = np.unique(load_set("leaves").y)
    drawn, group = divmod(group - 1, species.size // GROUP // 2 * 2)
    order = [rng.permutation(species) for _ in range(drawn + 1)][-1]
    return order[GROUP * group : GROUP * (group + 1)]


def _of_leaves(name, rng):
    """Leaves of one group of species and of another; of each species as many test."""
    data = load_set("leaves")
    sides = [_species(int(group)) for group in name.partition(" ")[2].split("/")]
    rows = np.flatnonzero(np.isin(data.y, sides))
    labels = np.isin(data.y[rows], sides[1]).astype(np.int64)
    X = data.X[rows]
    train, test = apart(data.y[rows], rows, TEST_PARTS, rng)
    train = rng.permutation(train)
    samples = X[train], labels[train], X[test], labels[test]
    return _pair(*samples, kind_kernels(data.cues), rows[train], test, rng)


def drawings(name, n_drawings, rng):
    """Rows of a pair's drawings, as many on either side, n_drawings at most, and their labels."""
    kind, _, rest = name.partition(" ")
    words = rest.split("/")
    sides = [rng.permutation(drawings_of(_only(kind, *pair))) for pair in (words, words[::-1])]
    n = min(n_drawings, *map(len, sides))
    return np.concatenate([side[:n] for side in sides]), np.repeat([0, 1], n)


@lru_cache(maxsize=1)
def _all_emoji(places, n_drawings, n_views, n_jobs):
    """Drawings and labels by name of a pair, all drawings, their description: the same for every split."""
    parts = {name: drawings(name, n_drawings, np.random.default_rng([SEED, 4, k])) for k, name in places}
    union = np.unique(np.concatenate([rows for rows, _ in parts.values()]))
    return parts, union, described(union, KIND_CUES, n_views=n_views, n_jobs=n_jobs)


def _of_emoji(name, n_views, rng, parts, union, data):
    """Training samples are all views of a drawing, in a random order; test samples the drawings."""
    rows, labels = parts[name]
    families = emoji().family[emoji().thing[rows]]
    X = data.X.reshape(union.size, n_views, -1)[np.searchsorted(union, rows)]
    train, test = apart(labels, families, TEST_PARTS, rng)
    views = rng.permutation((train[:, None] * n_views + np.arange(n_views)).ravel())
    train, view = np.divmod(views, n_views)
    samples = X[train, view], labels[train], X[test, 0], labels[test]
    sides = {"drawings": (rows[train], rows[test])}
    return _pair(*samples, kind_kernels(data.cues), families[train], families[test], rng, **sides)


def describe_pairs(names, seed, n_drawings, n_views=1, n_pictures=None, n_jobs=1, only=None):
    """A `Pair` for each task by name, or for `only` some; the seed is of the splits by family."""
    numbered = list(enumerate(names))
    places = tuple((k, name) for k, name in numbered if name.split()[0] in ("keyword", "category"))
    pairs_by_name = {}
    for k, name in numbered:
        if only is not None and name not in only:
            continue
        rng = np.random.default_rng([seed, 6, k])
        if name.startswith("leaves"):
            pairs_by_name[name] = _of_leaves(name, rng)
        elif name.startswith("corel5k"):
            pairs_by_name[name] = _of_corel5k(name, n_pictures, rng)
        else:
            described_emoji = _all_emoji(places, n_drawings, n_views, n_jobs)
            pairs_by_name[name] = _of_emoji(name, n_views, rng, *described_emoji)
    return pairs_by_name


# --- methods ------------------------------------------------------------------------------------------------

SOM_DELTA = 0.2
#: Passes of OKS, SOM and OM-2: the paper's; and over fewer samples than `MANY`, for as many rounds.
PASSES = 2
PASSES_OF_FEW = 10
MANY = 1000
MEMORY = 4e9  # the 60 matrices of 3,400 samples take 2.8 GB
#: The paper's columns, in its order.
METHODS = ("MuTron", "OM1", "OM2", "AlignmentSVM", "MuSVM", "SimpleMKL", "SOM", "OKS")
#: Two passes whatever the size.
TWICE = ("SOM two passes", "OKS two passes")
#: The parameter of a method that is chosen on what is held back.
TUNED = {"OM1": "beta", "OM2": "p", "SimpleMKL": "C", "SOM": "beta", "SOM two passes": "beta"}
CHOOSES_C = ("AlignmentSVM", "MuSVM", "SOM", "OKS", *TWICE)  # itself, from the grid
COMBINES = ("OM2", "SimpleMKL")  # all kernel matrices, computed once for tuning and training
NATURAL = {"p": (2.0,)}  # ends of grids that nothing lies beyond


def passes(n_samples):
    """Passes of OKS, SOM and OM-2 with which they have as many rounds as in the paper."""
    return PASSES if n_samples >= MANY else PASSES_OF_FEW


def deltas(delta, n_epochs):
    """Of each pass the share of uniform draws: in the paper 0.5 in the first of two, then 0.2."""
    return [delta[epoch * len(delta) // n_epochs] for epoch in range(n_epochs)]


class Trial:
    """A pair, and what of its training part is held back (`train`, `test`) for all methods."""

    def __init__(self, pair, seed, oks=None):
        self.pair = pair
        self.seed = seed
        self.oks = {"delta": (0.5, 0.2), **(oks or {})}
        self.train, self.test = held_apart(pair, np.random.default_rng([seed, 5]))

    def bank(self):
        """All kernel matrices of the training samples."""
        return KernelBank(self.pair.kernels, self.pair.X_train, memory=MEMORY)

    def estimator(self, method, kernels, C=None, **chosen):
        """Not fitted; of OKS and SOM without C the selector alone, which is what is tuned."""
        random = {"random_state": self.seed}
        held = {"validation": self.test, **random}
        n_epochs = PASSES if method in TWICE else passes(self.pair.y_train.size)
        match method.removesuffix(" two passes"):
            case "MuTron":
                return MuTron(kernels, **held)
            case "OM1":
                return OM1(kernels, shuffle=True, **random, **chosen)
            case "OM2":
                return OM2(kernels, n_epochs=n_epochs, shuffle=True, **random, **chosen)
            case "SimpleMKL":
                return SimpleMKL(kernels, C=C)
            case "AlignmentSVM":
                return AlignmentSVM(kernels, C=C, memory=MEMORY, **held)
            case "MuSVM":
                return MuSVM(kernels, C=C, memory=MEMORY, **held)
            case "SOM":
                selector = SOM(kernels, n_epochs=n_epochs, **random, **chosen)
            case "OKS":
                options = {**self.oks, "delta": deltas(self.oks["delta"], n_epochs)}
                selector = OKS(kernels, n_epochs=n_epochs, **random, **options)
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
    if method == "OKS":
        options = {**oks, "delta": deltas(oks["delta"], n_epochs)}
    else:
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
    model = OKS(pair.kernels, delta=deltas(delta, n_epochs), eta=eta, n_epochs=n_epochs, random_state=seed)
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
    return means.reindex(list(methods))


# --- theorems -----------------------------------------------------------------------------------------------

#: Steps of a predictor times sqrt(m T) over which theorem 3 is minimised.
RADII = tuple(2.0**k for k in range(-4, 5))
KINDS = ("pendigits", "random", "one useful")
COMPARATOR_C = (0.01, 0.1, 1.0, 10.0)
SIDES = ("drawn", "largest")
N_KERNELS = 8
MEMORY = 4e9
STREAMS = made_here("random streams", "companion.oks.stream_of")


class Stream(NamedTuple):
    """Samples in their order, and held-back ones: kernel values, at most 1 on the diagonal, and signs."""

    names: list
    stack: np.ndarray  # (n_kernels, n, n)
    signs: np.ndarray
    held: np.ndarray  # (n_kernels, n_held, n)
    held_signs: np.ndarray


@lru_cache(maxsize=1)
def stream_of(kind, n_samples, seed, n_held=0):
    """A `Stream` with eight kernels; streams of one seed begin with the same samples.

    "pendigits": odd against even digits, a linear and a Gaussian kernel on each of four representations.
    Simulated: "random", labels that no kernel explains; "one useful", only the first does.
    """
    n = n_samples + n_held
    if kind == "pendigits":
        data = datasets.load_pendigits()
        rows = np.random.default_rng([seed, 11]).permutation(data.y.size)[:n]
        X, labels = data.X[rows], data.y[rows] % 2
        kernels = (("linear", Linear()), ("rbf", RBF()))
        triples = [(f"{cue} {name}", k, columns) for cue, columns in data.cues.items() for name, k in kernels]
    else:
        labels = np.random.default_rng([seed, 12]).integers(2, size=n)
        features = np.random.default_rng([seed, 13]).normal(size=(n, N_KERNELS, 5))
        if kind == "one useful":
            features[:, 0] = 0.6 * features[:, 0]
            features[:, 0, 0] += 2.0 * (2.0 * labels - 1.0)
        X = features.reshape(n, -1)
        triples = [(f"k{j}", RBF(), slice(5 * j, 5 * j + 5)) for j in range(N_KERNELS)]
    bank = KernelBank(triples, X[:n_samples], memory=MEMORY)
    signs = 2.0 * labels - 1.0
    held = np.empty((len(triples), 0, n_samples))
    if n_held:
        held = np.concatenate([block for _, block in bank.cross(X[n_samples:]).blocks()], axis=1)
    stack = np.ascontiguousarray(bank.stack)
    return Stream(list(bank.names), stack, signs[:n_samples], held, signs[n_samples:])


def runs_of(stream, draws, seeds, passes=None, **rates):
    """One pass in order for each of some draws: learners, what visits drew, and what they lost."""
    n = stream.signs.size
    source = Given(*stream.stack.shape[:2])
    samples = source.pack(stream.stack)
    passes = passes or {"chunk": n}
    learners = [
        Selector(source.kernels, rng, n_rounds=n, **rates).run(samples, stream.signs, 1, **passes)
        for rng in np.random.default_rng(seeds).spawn(draws)
    ]
    drawn = np.array([learner.record["drawn"] for learner in learners])
    return learners, drawn, np.array([learner.record["losses"] for learner in learners])


def replay(drawn, losses, n_kernels, delta, eta):
    """Weights q before every visit, (n_runs, n_visits, n_kernels), from what the visits drew and lost."""
    runs = np.arange(len(drawn))
    log_weights = np.zeros((runs.size, n_kernels))
    weights = np.empty((*drawn.shape, n_kernels))
    for t in range(drawn.shape[1]):
        w = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        q = w / w.sum(axis=1, keepdims=True)
        weights[:, t] = q
        j = drawn[:, t]
        log_weights[runs, j] -= eta * losses[:, t] / ((1.0 - delta) * q[runs, j] + delta / n_kernels)
    return weights


def coefficients(learners, j, n, dtype=float):
    """What the runs added to the predictor of kernel j, shape (n, n_runs)."""
    added = np.zeros((n, len(learners)), dtype=dtype)
    for run, learner in enumerate(learners):
        added[learner.support[j], run] = learner.dual_coef[j]
    return added


def outputs_before(stack, learners):
    """Every predictor at every visit of one pass in order, before the visit: (n_runs, n, n_kernels)."""
    n = stack.shape[1]
    outputs = [
        (np.tril(kernel, -1).astype(np.float64) @ coefficients(learners, j, n)).T
        for j, kernel in enumerate(stack)
    ]
    return np.stack(outputs, axis=2)


def loss_of(loss, outputs, signs):
    """Losses of outputs, and the sizes of their slopes; "mistake" is the loss of Algorithm 2."""
    if loss == "square":
        return 0.5 * (outputs - signs) ** 2, np.abs(outputs - signs)
    margins = signs * outputs
    if loss == "mistake":
        return margins <= 0.0, np.ones(1)
    if loss == "hinge":
        return np.maximum(0.0, 1.0 - margins), (margins < 1.0).astype(float)
    return np.logaddexp(0.0, -margins), expit(-margins)


def least_loss(kernel, signs, step, loss="hinge", *, tol=1e-3, start=None, max_rounds=100):
    """The least sum of losses + |f|^2 / (2 step) of a kernel's functions, from below by weak duality.

    Returns the bound, the coefficients of a function whose value is within the relative gap `tol`, and the
    dual point, from which an SVM (hinge, without bias) can `start`.
    """
    n = signs.size
    if loss == "hinge":
        labels = (signs > 0.0).astype(np.int64)
        bank = KernelBank.from_stack(kernel[None], validate=False)
        problem = MKLProblem(bank, labels, 2, p=2.0, C=step, loss="hinge")
        if start is not None:
            rows = np.tile(-start[:, None], (1, 2))
            rows[np.arange(n), labels] = start
            start = rows
        with quiet():  # its bound holds all the same
            result = solve_reference(problem, tol=tol, start=start, max_rounds=max_rounds)
        coef = 0.5 * result.kernel_weights[0] * (result.dual_coef[:, 1] - result.dual_coef[:, 0])
        return n * (result.objective - result.dual_gap), coef, result.extra["dual_point"].sum(axis=1)
    K = kernel.astype(np.float64)
    if loss == "square":
        b = cho_solve(cho_factor(np.eye(n) + step * K, lower=True, overwrite_a=True), signs)
        return float(b @ signs - 0.5 * b @ b - 0.5 * step * b @ (K @ b)), step * b, signs * b
    # logistic, by accelerated gradient descent: f = K c has the gradient c / step - y sigma(-y f), as
    # coefficients; strong convexity 1 / step
    smooth = 1.0 / step + 0.25 * float(np.abs(K).sum(axis=1).max())
    ratio = math.sqrt(smooth * step)
    momentum = (ratio - 1.0) / (ratio + 1.0)
    c = np.zeros(n)
    ahead = np.zeros(n)
    best = (-np.inf, None)
    for count in range(100_000):
        f = K @ ahead
        a = expit(-signs * f)
        if count % 10 == 0:
            dual = float(entr(a).sum() + entr(1.0 - a).sum() - 0.5 * step * (signs * a) @ (K @ (signs * a)))
            value = float(np.logaddexp(0.0, -signs * f).sum() + 0.5 / step * ahead @ f)
            best = max(best, (dual, a), key=lambda pair: pair[0])
            if value - best[0] <= tol * value:
                break
        moved = ahead - (ahead / step - signs * a) / smooth
        ahead = moved + momentum * (moved - c)
        c = moved
    return best[0], ahead, best[1]


@lru_cache(maxsize=64)
def _least_losses(kind, n_samples, seed, loss, steps):
    """`least_loss` of every kernel of a stream for rising steps, shape (n_kernels, n_steps)."""
    stream = stream_of(kind, n_samples, seed)
    values = np.empty((len(stream.stack), len(steps)))
    for j, kernel in enumerate(stream.stack):
        start = None
        for k, step in enumerate(steps):
            values[j, k], _, start = least_loss(kernel, stream.signs, step, loss, start=start)
    return values


@lru_cache(maxsize=8)
def batch_predictors(kind, n_samples, seed, n_held):
    """SVMs of every kernel as comparators, by rising C, at each of which the better half goes on."""
    stream = stream_of(kind, n_samples, seed, n_held)
    rows = []
    going = dict.fromkeys(range(len(stream.stack)))
    for C in COMPARATOR_C:
        losses = {}
        for j, start in going.items():
            options = {"tol": 0.02, "start": start, "max_rounds": 3}
            _, coef, going[j] = least_loss(stream.stack[j], stream.signs, C, **options)
            losses[j] = float(loss_of("hinge", stream.held[j] @ coef, stream.held_signs)[0].mean())
            norm = math.sqrt(max(0.0, float(coef @ (stream.stack[j] @ coef))))
            rows.append({"kernel": stream.names[j], "C": C, "norm": norm, "loss": losses[j]})
        better = sorted(losses, key=losses.get)[: (len(losses) + 1) // 2]
        going = {j: going[j] for j in better}
    return pd.DataFrame(rows)


def weights_step(n_kernels, n_samples, delta):
    """eta of the theorems: sqrt(2 (1 - delta) ln m / (m T))."""
    return math.sqrt(2.0 * (1.0 - delta) * math.log(n_kernels) / (n_kernels * n_samples))


def surplus(n_kernels, n_samples, delta, eta, step, slope=1.0, largest=1.0):
    """What theorems 1 and 3 add to the comparator's value; G is `slope`, L `largest`."""
    m, T = n_kernels, n_samples
    predictors = step * m * T * slope**2 / (2.0 * delta)
    return predictors + eta * m * T * largest**2 / (2.0 * (1.0 - delta)) + math.log(m) / eta


def _all_losses(stream, draws, seed, loss, delta, eta, step):
    """The sum in the theorems' expectation and that over drawn kernels, by run; the largest loss, slope."""
    rule = {"rule": oks_pass} if loss == "mistake" else {"rule": regret_pass, "loss": loss}
    learners, drawn, own = runs_of(stream, draws, [seed, 14], delta=[delta], eta=eta, step=step, **rule)
    q = replay(drawn, own, len(stream.stack), delta, eta)
    losses, slopes = loss_of(loss, outputs_before(stream.stack, learners), stream.signs[:, None])
    return (q * losses).sum(axis=(1, 2)), own.sum(axis=1), float(losses.max()), float(slopes.max())


def mistakes_against_bound(kind, n_samples, seed, deltas, draws=30, radius=4.0):
    """Theorem 3 on `draws` passes of Algorithm 2, a row per run.

    bound: the least over lambda = r / sqrt(mT), r of `RADII`; loss: the least hinge loss over functions of
    norm at most `radius`, from below; allowed: what the theorem lets the mistakes exceed that loss by.
    """
    stream = stream_of(kind, n_samples, seed)
    m = len(stream.stack)
    T = n_samples
    steps = np.array(RADII) / math.sqrt(m * T)
    values = _least_losses(kind, T, seed, "hinge", tuple(steps))
    # Lagrange: sum of losses >= value - radius^2 / (2 lambda) in the ball, for every lambda
    loss = max(0.0, float((values - 0.5 * radius**2 / steps).max(axis=1).min()))
    tables = []
    for delta in deltas:
        eta = weights_step(m, T, delta)
        bounds = values.min(axis=0) + np.array([surplus(m, T, delta, eta, step) for step in steps])
        mistakes, drawn, *_ = _all_losses(stream, draws, seed, "mistake", delta, eta, 1.0)
        columns = {
            "run": np.arange(draws),
            "mistakes": mistakes,
            "drawn_mistakes": drawn,
            "bound": bounds.min(),
            "bound_step": steps[bounds.argmin()],
            "loss": loss,
            "allowed": radius * math.sqrt(m * T / delta) + 2.0 * math.log(m) / eta,
            "delta": delta,
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True).assign(radius=radius, n_kernels=m)


def regret_against_bound(kind, loss, n_samples, seed, delta=0.2, draws=30, radius=1.0):
    """Theorem 1 on `draws` passes of Algorithm 1, a row per run.

    The step is `radius` sqrt(delta / (mT)), which balances the terms for a comparator of this norm. losses:
    the sum in the expectation; comparator: the minimum, from below; largest: L; slope: G.
    """
    stream = stream_of(kind, n_samples, seed)
    m = len(stream.stack)
    T = n_samples
    eta = weights_step(m, T, delta)
    step = radius * math.sqrt(delta / (m * T))
    value = float(_least_losses(kind, T, seed, loss, (step,)).min())
    losses, drawn, L, G = _all_losses(stream, draws, seed, loss, delta, eta, step)
    columns = {
        "run": np.arange(draws),
        "losses": losses,
        "drawn_losses": drawn,
        "bound": value + surplus(m, T, delta, eta, step, G, L),
        "comparator": value,
        "largest": L,
        "slope": G,
        "step": step,
    }
    return pd.DataFrame(columns).assign(delta=delta, radius=radius, n_kernels=m)


def selection_quality(kind, visits, seed, n_samples=2000, n_held=3000, delta=0.2, draws=100):
    """Corollary 2: held-out hinge loss of what Algorithm 1 ends with, above the best, by run."""
    stream = stream_of(kind, n_samples, seed, n_held)
    batch = batch_predictors(kind, n_samples, seed, n_held)
    tables = [_quality_after(T, stream, batch, seed, delta, draws) for T in visits]
    return pd.concat(tables, ignore_index=True)


def _quality_after(T, stream, batch, seed, delta, draws):
    """drawn, largest: excess of the kernel drawn from q_T, and of the largest in q_T, after T visits.

    bound: b of theorem 1 and Markov's inequality, least over the predictors of `batch` and f = 0.
    """
    best = batch.loc[batch["loss"].idxmin()]
    m, n_samples = stream.stack.shape[:2]
    eta = weights_step(m, T, delta)
    step = best["norm"] * math.sqrt(delta / (m * T))
    # a shuffled pass, ended after its first T visits
    passes = {"shuffle": True, "chunk": T, "watch": lambda learner, visits: True}
    rates = {"rule": regret_pass, "delta": [delta], "eta": eta, "step": step}
    learners, _, own = runs_of(stream, draws, [seed, T, 15], passes, **rates)
    excess = np.empty((draws, m))
    for j, held in enumerate(stream.held):
        outputs = held @ coefficients(learners, j, n_samples, held.dtype)
        excess[:, j] = loss_of("hinge", outputs, stream.held_signs[:, None])[0].mean(axis=0) - best["loss"]
    q = np.array([learner.q for learner in learners])
    uniforms = np.random.default_rng([seed, T, 16]).random(draws)
    drawn = np.minimum((np.cumsum(q, axis=1) <= uniforms[:, None]).sum(axis=1), m - 1)
    row = {"run": np.arange(draws)}
    for side, kernels in zip(SIDES, (drawn, q.argmax(axis=1)), strict=True):
        row[side] = excess[row["run"], kernels]
        row[f"{side}_kernel"] = np.array(stream.names)[kernels]
    row |= {f"best_{name}": best[name] for name in ("loss", "kernel", "norm")}
    of_batch = float((batch["loss"] + batch["norm"] ** 2 / (2.0 * step * T)).min())
    comparator = min(1.0, of_batch) - best["loss"]  # f = 0 has the loss 1
    bound = comparator + surplus(m, T, delta, eta, step, largest=float(own.max())) / T
    return pd.DataFrame(row | {"bound": bound, "n_visits": T})


def expectations(table, value, by):
    """Means of `value` over runs with 95% intervals, and the first of all other columns."""
    groups = table.groupby(by, sort=False)
    rest = groups.first().drop(columns=[value, "run"])
    ends = pd.DataFrame([interval(part.to_numpy())._asdict() for _, part in groups[value]], index=rest.index)
    return ends.join(rest).reset_index()


def quantiles(table, epsilons):
    """Excess that is not passed with probability 1 - epsilon, and shares of runs with the best kernel."""
    rows = []
    for (kind, n_visits, seed), part in table.groupby(["kind", "n_visits", "seed"], sort=False):
        drawn, largest = ((part[f"{side}_kernel"] == part["best_kernel"]).mean() for side in SIDES)
        for epsilon in epsilons:
            row = {"kind": kind, "n_visits": n_visits, "seed": seed, "epsilon": epsilon}
            row |= {s: np.quantile(part[s], 1.0 - epsilon, method="inverted_cdf") for s in SIDES}
            row |= {"bound": part["bound"].iloc[0] / epsilon, "drawn_best": drawn, "largest_best": largest}
            rows.append({**row, "runs": len(part)})
    return pd.DataFrame(rows)
