"""Experiments of the MKL chapter (thesis chapter 4, JMLR 2012 section 5): sizes and grids, fixed before
anything is run, and tasks: data set -> kernels -> a bank split into training and test part (`get_task`).
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from companion import pictures
from companion.protocol import MEMORY_MANY, Task, load_set, settings_of
from cuelearn.datasets import EMOJI_CUES
from cuelearn.kernels import RBF, ExpDistance, KernelBank, Linear, Poly, distance_matrix, mean_rule
from cuelearn.kernels.rows import combine

# the papers' grids, which decide
P_GRID = (1.01, 1.05, 1.10, 1.25, 1.50, 1.75, 2.0)
C_GRID = (0.1, 1.0, 10.0, 100.0, 1000.0)
ALPHA_GRID = (0.0001, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.02)
#: The thesis's C for 1,400 kernels (4.5.4).
MANY_C = C_GRID[1:]
#: Shown beside where the smallest C is chosen for SILP: there it keeps all kernels.
LARGER_C = (10.0, 1000.0)

# smoke, quick, full
TABLE = {
    "seeds": (2, 3, 10),
    "tables": {"seeds": (2, 3, 12)},
    "three_class": {"seeds": (2, 5, 20)},
    "objects": {"n_classes": (12, 34, 102), "n_train": (60, 136, 510)},
    "categories": {"n_classes": (4, 10, 30), "n_train": (120, 100, 900), "seeds": (2, 3, 5)},
    "choose": {
        "n_folds": (2, 2, 3),
        "n_train": (100, 150, 1000),
        "every": (2, 2, 2),
        "grids": (
            {"C": (1.0,), "p": (1.05, 2.0), "alpha": (0.005,)},
            {"C": (1.0, 10.0), "p": (1.05, 1.25), "alpha": (0.005, 0.02)},
            {},
        ),
    },
    "alone": {"C": ((1.0,), (1.0, 10.0, 100.0), C_GRID)},
    # cues that all inform, on tables and on categories; redundant ones, on objects
    "cues": {
        "mfeat": (120, 200, 1000),
        "htad": (120, 200, 900),
        "different": (120, 120, 600),
        "pyramid": (60, 136, 510),
    },
    "p_sweep": {
        "n_epochs": (3, 10, 50),
        "most_epochs": (30, 100, 300),
        "p_grid": ((1.05, 1.1, 2.0), P_GRID, P_GRID),
        "seeds": (2, 3, 20),
    },
    "obscure_p": {
        "n_epochs": (10, 2000, 2000),
        "tol": (0.3, 0.01, 0.01),
        "p_grid": ((1.05, 1.5, 2.0), (1.01, 1.05, 1.25, 2.0), P_GRID),
        "seeds": (2, 3, 10),
    },
    # parameters are chosen after one pass for online errors, for tests after the epochs that are judged: the
    # 80 of the thesis, of OMCL as many as it has, since its time grows with their square
    "online": {
        "epochs": ((1, 2), (1, 2, 5, 10, 20, 50), (1, 2, 3, 5, 10, 20, 50, 80, 100, 150)),
        "judged": (2, 20, 80),
        "omcl_epochs": ((1,), (1,), (1,)),
        "omcl_seeds": (2, 3, 12),
        "seeds": (3, 6, 20),
    },
    "online_cues": {
        "epochs": ((1, 2), (1, 2, 5, 10, 20), (1, 2, 3, 5, 10, 20, 50, 80, 100, 150)),
        "judged": (2, 20, 80),
        "omcl_epochs": ((1, 2), (1, 2, 5), (1, 2, 5, 10)),
        "omcl_seeds": (2, 3, 12),
        "seeds": (2, 3, 12),
    },
    "leaves": {"n_train": (200, 200, 600), "seeds": (2, 3, 5)},
    "scene15": {"n_train": (150, 450, 900), "seeds": (2, 8, 20)},
    "flowers": {
        "n_train": (24, 68, 306),
        "n_test": (1700,) * 3,
        "n_epochs": (10, 3500, 5000),
        "n_epochs_hard": (10, 300, 1000),
        "seeds": (2, 3, 8),
    },
    "pendigits": {
        "n_train": (150, 300, 7494),
        "n_test": (300, 1000, 3498),
        "n_epochs": (10, 3000, 1000),
        "n_epochs_hard": (10, 1000, 300),
        "seeds": (2, 3, 5),  # of orders of visits, where all learn
    },
    "first_stage": {
        "n_train": ((150, 24), (200, 68), (2000, 306)),
        "epochs": ((1, 5, 20), (1, 5, 20, 100), (1, 5, 20, 100)),
        "n_epochs": (5, 50, 300),
        "seeds": (2, 2, 3),
    },
    "objects_p": {
        "n_train": (24, 68, 306),
        "n_test": (1700,) * 3,
        "n_epochs": (5, 2000, 3000),
        "p_grid": ((1.05, 2.0), P_GRID[::2], P_GRID),
        "seeds": (2, 3, 6),
    },
    "pendigits_p": {
        "n_train": (100, 300, 7494),
        "n_test": (300, 1000, 3498),
        "n_epochs": (5, 5000, 5000),
        "p_grid": ((1.05, 2.0), P_GRID[::2], P_GRID),
        "seeds": (2, 3, 6),
    },
    "sizes": {
        "n_train": ((24, 60), (68, 136), (204, 306, 510, 1020, 2040)),
        "rivals_up_to": (60, 136, 510),
        "seeds": (2, 3, 6),
    },
    "n_kernels": {
        "n_train": (60, 102, 510),
        "params": ({"C": 1.0, "p": 1.05},) * 3,
        "counts": ((5, 20, 39), (1, 3, 6, 12, 24, 39), (1, 3, 6, 12, 24, 39)),
        "n_epochs": (5, 1000, 1000),
        "seeds": (2, 4, 12),
    },
    "mnist": {
        "n_train": ((100, 200, 400), (200, 400, 800), (500, 1000, 2000, 5000)),
        "n_test": (300, 1000, 10000),
        "n_epochs": (8, 50, 50),
        "most_epochs": (20, 1000, 1000),
        "seeds": (2, 3, 5),
        "svm_up_to": (400, 400, 2000),
        "choose_epochs": (5, 30, 200),
    },
    "mnist_all": {
        "n_train": ((), (), (20_000, 60_000)),
        "n_epochs": ((), (), (500, 10)),
        "orders": (0, 0, 3),
        "n_test": (10_000,) * 3,
    },
    "speed": {
        "n_train": ((100, 200), (500, 2000), (500, 1000, 2000, 4000, 7494)),
        "C": ((1.0,), (0.1, 1.0, 10.0, 100.0), (0.1, 1.0, 10.0, 100.0)),
        "repeats": (1, 3, 3),
        "seeds": (2, 3, 5),
        "digits": (0, 0, 60_000),
    },
    "ufo": {"n_train": (24, 68, 306), "n_epochs": (10, 500, 2000), "seeds": (2, 3, 6)},
    "many": {
        "n_train": (60, 68, 306),
        "counts": ((35, 70), (35, 1400), (35, 700, 1400)),
        "tol": (0.2, 0.01, 0.01),
        "most_epochs": (10, 300, 3000),
        "most_rounds": (10, 50, 100),  # of a batch method
        "alphas": ((0.001, 0.01, 0.02), (0.0001, 0.005, 0.02), (0.0001, 0.001, 0.005, 0.02)),
        "epochs": ((2, 3, 4), (5, 10, 20), (20, 200, 1000)),  # that are timed at C = 1000
        "seeds": (2, 3, 5),
        "beside": (2, 3, 3),  # of objects
        "long_seeds": (2, 2, 3),  # of those epochs
    },
    "theorems": {
        "n_train": (80, 150, 500),
        "n_epochs": (10, 100, 300),
        "streams": (3, 5, 30),
        "counts": ((2, 8, 32), (2, 4, 16, 64, 256), (2, 4, 8, 16, 32, 64, 128, 256, 512)),
        "p_grid": ((1.05, 2.0), (1.05, 2.0), P_GRID),
    },
    # other losses: the grids are those of all methods
    "losses": {
        "n_train": (100, 100, 200),
        "n_test": (100, 500, 1000),
        "n_folds": (2, 2, 3),
        "C": ((10.0,), (10.0, 100.0), C_GRID),
        "p": ((1.1,), (1.1, 2.0), (1.1, 1.5, 2.0)),
        "alpha": ((0.01,), (0.01,), (0.001, 0.01, 0.1)),
        "seeds": (2, 3, 8),
    },
    # explicit features
    "samples": {
        "n_test": (100, 1000, 10_000),
        "n": ((150, 300), (300, 1500), (1000, 3000, 10_000, 60_000, 300_000, 1_000_000)),
        "most": ({}, {}, {"UFOMKL exact": 60_000, "LinearSVC": 10_000}),
        "n_components": (16, 64, 512),
        "tol": (0.05,) * 3,
        "C": ((1.0,), (1.0,), (0.1, 1.0, 10.0, 100.0)),
        "choose_up_to": (300, 1500, 10_000),
        "repeated_up_to": (300, 1500, 60_000),
        "seeds": (2, 3, 3),
    },
    "texts": {
        "n_files": (8, 20, 10_000),
        "n_features": (2**10, 2**14, 2**18),
        "tol": (0.05, 0.01, 0.01),
        "C": ((1.0,), (1.0, 10.0), (0.1, 1.0, 10.0, 100.0)),
        "seeds": (2, 3, 6),
    },
    # cues that samples lack
    "missing": {
        "n_train": (60, 100, 200),
        "n_objects": (6, 17, 34),
        "n_test": (100, 300, 1000),
        "shares": ((0.0, 0.5), (0.0, 0.1, 0.3, 0.5, 0.7), (0.0, 0.1, 0.3, 0.5, 0.7)),
        "n_folds": (2, 2, 3),
        "C": ((10.0,), (1.0, 10.0, 100.0), C_GRID),
        "p": ((1.1,), (1.1, 2.0), (1.1, 1.5, 2.0)),
        "seeds": (2, 3, 20),
    },
    # samples in partitions
    "cluster": {
        "n_train": (200, 2000, 60_000),
        "n_features": (8, 16, 256),
        "n_partitions": ((2, 4), (2, 8, 32), (2, 4, 8, 16, 32, 64)),
        "C": ((1.0, 10.0), (1.0, 10.0), (1.0, 10.0)),
        "most_rounds": (200, 400, 1000),
        "seeds": (1, 1, 1),
    },
}


def settings(profile):
    """Sizes of all experiments of the chapter for a profile, "smoke", "quick" or "full".

    `seeds` are those of entries with none of their own. Beyond five drawings of each object `sizes` takes
    views of them. `online` has all epochs on as many splits as `tables`, on others the first pass.
    `n_epochs_hard` are those at C = 1000.
    """
    return settings_of(TABLE, profile)


# --- tasks --------------------------------------------------------------------------------------------------

# bytes of kernels that a task may hold: what does not fit is computed on demand
MEMORY = 2.2e9
#: One cue for each of colour, words, texture, self-similarity, edges, outline; the levels of one cue.
DIFFERENT = ("HSV 1x1", "words 1x1", "LBP 1x1", "self-similarity 1x1", "PHOG 2", "shape")
PYRAMID = ("PHOG 0", "PHOG 1", "PHOG 2", "PHOG 3")
#: Whose 35 distances make 1,400 kernels: those of signed edges repeat those without the sign.
MANY = tuple(cue for cue in EMOJI_CUES if not cue.endswith("signed"))
#: Of the 1,400 kernels, times the mean distance.
WIDTHS = np.geomspace(0.01, 100.0, 40)
#: Sets of pictures by the first word of a task's name: the pictures, their cues.
SETS = {
    "objects": ("objects", EMOJI_CUES),
    "categories": ("categories", EMOJI_CUES),
    "different": ("categories", DIFFERENT),
    "pyramid": ("objects", PYRAMID),
}
#: What learns: of an object's eight drawings, of a category's eight things, which have five drawings each.
LEARN = {"objects": 5, "categories": 6}
CATEGORY_THINGS = 8
THING_DRAWINGS = 5
#: Kernels on each cue of the other sets, times the mean distance where they have a factor.
WIDE = {
    f"-{metric}*{factor:g}": ExpDistance(metric, factor=factor)
    for metric in ("chi2", "sqeuclidean")
    for factor in (0.25, 1.0, 4.0)
}
KERNELS = {
    "mfeat-6": {"": RBF()},
    "htad-2": {"": RBF()},
    "pendigits-4": {"": RBF()},
    "mnist-12": {"-linear": Linear(), "-poly": Poly(), "-rbf": RBF()},
    "leaves-18": WIDE,
    "scene15-18": WIDE,
}


class Pictures(NamedTuple):
    """Emoji described: distances by cue, (n_cues, n, n), each row's class, the names of the classes; `group`,
    the drawing of an object or the thing of a category, stays on one side of a split; `view` 0 is the drawing
    itself, `drawing` its row among all.
    """

    distances: np.ndarray
    labels: np.ndarray
    names: list
    group: np.ndarray
    drawing: np.ndarray
    view: np.ndarray


def category_things(n_categories):
    """The subgroups of most things, and eight things of each, drawn once, no two of a family."""
    groups = pictures.categories(n_categories, least=THING_DRAWINGS)
    rng = np.random.default_rng([pictures.SEED, 3])
    return list(groups), np.array([rng.permutation(group)[:CATEGORY_THINGS] for group in groups.values()])


def described_pictures(kind, n_classes, n_views=1, n_jobs=1):
    """Cues and `Pictures`, without distances, of "objects" or "categories", drawn once for all splits."""
    if kind == "objects":
        things = np.sort(pictures.objects(n_classes))[:, None]
        names = pictures.emoji().names[things[:, 0]].tolist()
        rows = pictures.drawings_of(things)
    else:
        names, things = category_things(n_classes)
        rng = np.random.default_rng([pictures.SEED, 4])
        drawn = [rng.permutation(pictures.drawings_of(k))[:THING_DRAWINGS] for k in things.ravel()]
        rows = np.sort(np.concatenate(drawn))
    data = pictures.described(rows, EMOJI_CUES, n_views=n_views, n_jobs=n_jobs)
    class_of = pd.Series({thing: c for c, group in enumerate(things.tolist()) for thing in group})
    labels = class_of[data.y].to_numpy()
    drawing = np.repeat(rows, n_views)
    group = drawing if kind == "objects" else data.y
    return data, Pictures(None, labels, names, group, drawing, np.arange(labels.size) % n_views)


def _distances(data, rows):
    """Distances among some rows by cue, (n_cues, n, n)."""
    X = data.X[rows]
    distances = np.empty((len(data.cues), len(X), len(X)), dtype=np.float32)
    for j, (cue, columns) in enumerate(data.cues.items()):
        metric = "sqeuclidean" if cue in pictures.PLAIN else "chi2"
        distances[j] = distance_matrix(X[:, columns], metric)
    return distances


@lru_cache(maxsize=2)
def load_pictures(kind, n_classes, n_views=1):
    data, shown = described_pictures(kind, n_classes, n_views)
    return shown._replace(distances=_distances(data, slice(None)))


def picture_split(shown, kind, per_class, seed):
    """Rows to train and to test, in random order; smaller training parts are subsets of larger ones."""
    rng = np.random.default_rng([seed, 6])
    training = []
    tests = []
    for c in range(len(shown.names)):
        rows = np.flatnonzero(shown.labels == c)
        group = shown.group[rows]
        view = shown.view[rows]
        groups = rng.permutation(np.unique(group))
        train = np.isin(group, groups[: LEARN[kind]])
        if kind == "objects":
            drawings = groups[: min(per_class, LEARN[kind])]
            training.append(rows[np.isin(group, drawings) & (view < per_class // drawings.size)])
        else:
            training.append(rng.permutation(rows[train])[:per_class])
        tests.append(rows[~train & (view == 0)])
    test = rng.permutation(np.concatenate(tests))
    return rng.permutation(np.concatenate(training)), test


def kernels_among(cues, kind, n_classes, n_shown):
    """Kernels among all drawings of the first classes, sorted by class, by cue; "average": their mean."""
    data, shown = described_pictures(kind, n_classes)
    rows = np.argsort(shown.labels, kind="stable")
    distances = _distances(data, rows[shown.labels[rows] < n_shown])
    kernels = {c: np.exp(-d / mean_rule(d)) for c, d in zip(EMOJI_CUES, distances, strict=True)}
    kernels["average"] = sum(kernels.values()) / len(kernels)
    return {cue: kernels[cue] for cue in cues}


def mistaken(predicted, cues, kind, n_classes, per_class, seed, most):
    """Test drawings that only the average names right, worst first, and drawings of what each cue says."""
    _, shown = described_pictures(kind, n_classes)
    train, test = picture_split(shown, kind, per_class, seed)
    classes = pd.DataFrame({cue: predicted[cue] for cue in (*cues, "average")}, shown.drawing[test])
    wrong = classes.ne(shown.labels[test], axis=0)
    n_wrong = wrong[list(cues)].sum(axis=1)[~wrong["average"]]
    worst = n_wrong.sort_values(ascending=False, kind="stable").index[:most]
    example = pd.Series(shown.drawing[train]).groupby(shown.labels[train]).min()
    return classes.loc[worst].apply(lambda named: named.map(example)).rename_axis("drawing").reset_index()


@lru_cache(maxsize=1)  # with four views of a drawing 1 GB
def load_picture_task(name, n_train, n_test, seed, n_kernels=None):
    """A `Task` of emoji, a kernel for each cue ("objects-102") or of many widths ("objects-102-1400")."""
    word, n_classes, *many = name.split("-")
    n_classes = int(n_classes)
    kind, cues = SETS[word]
    per_class = n_train // n_classes
    n_views = max(1, per_class // LEARN[kind]) if kind == "objects" else 1
    shown = load_pictures(kind, n_classes, n_views)
    train, test = picture_split(shown, kind, per_class, seed)
    test = test[:n_test]
    if many:
        cues = MANY
    elif n_kernels is not None:
        subset = np.random.default_rng([seed, 7]).choice(len(cues), n_kernels, replace=False)
        cues = [cues[j] for j in np.sort(subset)]
    places = [EMOJI_CUES.index(cue) for cue in cues]
    inside, across = (
        np.concatenate([shown.distances[j][np.ix_(rows, train)] for j in places], axis=1)
        for rows in (train, test)
    )
    triples = pictures.distance_kernels(cues, train.size, n_kernels if many else None, WIDTHS)
    bank = KernelBank(triples, inside, memory=MEMORY_MANY if many else MEMORY)
    labels = shown.labels
    return Task(bank, labels[train], bank.cross(across), labels[test], n_classes, shown.group[train])


def kernel_set(name, data):
    """The kernels of a named task as (name, kernel, columns) triples."""
    kinds = KERNELS[name].items()
    return [(cue + word, kernel, columns) for cue, columns in data.cues.items() for word, kernel in kinds]


@lru_cache(maxsize=2)
def load_task(name, n_train, n_test, seed):
    """A `Task` of `KERNELS`: a stratified split by the seed, of Pendigits and MNIST their own parts."""
    data = load_set(name.split("-")[0])
    rng = np.random.default_rng([seed, 1])
    X = data.X
    if data.train is None:
        split = {"train_size": n_train, "stratify": data.y, "random_state": seed}
        train, test = train_test_split(np.arange(data.y.size), **split)
        train = rng.permutation(train)
        if name in ("mfeat-6", "htad-2"):
            X = pictures.standardised(X, train)
    else:
        train = data.train if n_train >= data.train.size else rng.choice(data.train, n_train, replace=False)
        test = data.test
    test = test[:n_test]
    bank = KernelBank(kernel_set(name, data), X[train], memory=MEMORY)
    return Task(bank, data.y[train], bank.cross(X[test]), data.y[test], int(data.y.max()) + 1)


def get_task(task, n_train, n_test, seed, n_kernels=None):
    """A `Task` by name: of `SETS` with the number of classes, of `KERNELS`, "flowers-7" or "flowers-1400"."""
    if task.startswith("flowers"):
        return pictures.load_flowers(n_train // 17, seed, n_kernels or 7)
    if task in KERNELS:
        return load_task(task, n_train, n_test, seed)
    return load_picture_task(task, n_train, n_test, seed, n_kernels)


def predicted(task, dual_coef, kernel_weights, blocks=None):
    """Classes of the test samples; `blocks`: the test kernels where they are in memory."""
    active = np.flatnonzero(kernel_weights)
    support = np.flatnonzero(np.any(dual_coef != 0.0, axis=1))
    classes = np.zeros(task.test_labels.size, dtype=np.int64)
    if active.size and support.size:
        if blocks is None:
            blocks = task.cross.select(active, support).blocks(reuse=True)
            kernel_weights = kernel_weights[active]
            dual_coef = dual_coef[support]
        for rows, block in blocks:
            scores = combine(block, kernel_weights) @ dual_coef.astype(block.dtype)
            classes[rows] = np.argmax(scores, axis=1)
    return classes


def test_error(task, dual_coef, kernel_weights, blocks=None):
    return float(np.mean(predicted(task, dual_coef, kernel_weights, blocks) != task.test_labels))
