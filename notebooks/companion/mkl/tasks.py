"""Tasks of the MKL chapter: data set -> kernels -> a bank split into training and test part: `get_task`."""

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from companion import cue_tasks, flowers, pictures
from companion.protocol import MEMORY_MANY, Task, load_set
from cuelearn.datasets import EMOJI_CUES
from cuelearn.kernels import RBF, ExpDistance, KernelBank, Linear, Poly, distance_matrix, mean_rule
from cuelearn.mkl.problem import combine

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
    "pyramid": ("categories", PYRAMID),
}
#: Of the kernels on leaves and on scenes, times the mean distance.
LEAF_WIDTHS = (0.25, 1.0, 4.0)
#: What learns: of an object's eight drawings, of a category's eight things, which have five drawings each.
LEARN = {"objects": 5, "categories": 6}
CATEGORY_THINGS, THING_DRAWINGS = 8, 5


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
    """The drawings of "objects", all of each, or "categories", drawn once for all splits; names of the
    classes, and of each row its class and drawing.
    """
    if kind == "objects":
        things = np.sort(pictures.objects(n_classes))[:, None]
        names, rows = pictures.emoji().names[things[:, 0]].tolist(), pictures.drawings_of(things)
    else:
        names, things = category_things(n_classes)
        rng = np.random.default_rng([pictures.SEED, 4])
        drawn = [rng.permutation(pictures.drawings_of(k))[:THING_DRAWINGS] for k in things.ravel()]
        rows = np.sort(np.concatenate(drawn))
    classes = np.empty(things.max() + 1, dtype=np.int64)
    classes[things] = np.arange(len(things))[:, None]
    data = pictures.described(rows, EMOJI_CUES, n_views=n_views, n_jobs=n_jobs)
    return data, names, classes[data.y], np.repeat(rows, n_views)


def cues_and_pictures(kind, n_classes, n_views=1):
    """`described_pictures`, and `Pictures` of them without distances."""
    data, names, labels, drawing = described_pictures(kind, n_classes, n_views)
    group, view = drawing if kind == "objects" else data.y, np.arange(labels.size) % n_views
    return data, Pictures(None, labels, names, group, drawing, view)


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
    """`Pictures` of `described_pictures`."""
    data, shown = cues_and_pictures(kind, n_classes, n_views)
    return shown._replace(distances=_distances(data, slice(None)))


def picture_split(shown, kind, per_class, seed):
    """Rows to train and to test, in random order, so many of each class. Smaller training parts are subsets
    of larger ones: of an object first its drawings, then their views.
    """
    rng, parts = np.random.default_rng([seed, 6]), []
    for c in range(len(shown.names)):
        rows = np.flatnonzero(shown.labels == c)
        group, view = shown.group[rows], shown.view[rows]
        groups = rng.permutation(np.unique(group))
        train = np.isin(group, groups[: LEARN[kind]])
        if kind == "objects":
            drawings = groups[: min(per_class, LEARN[kind])]
            chosen = rows[np.isin(group, drawings) & (view < per_class // drawings.size)]
        else:
            chosen = rng.permutation(rows[train])[:per_class]
        parts.append((rows[~train & (view == 0)], chosen))
    test, train = (rng.permutation(np.concatenate(rows)) for rows in zip(*parts, strict=True))
    return train, test


def kernels_among(cues, kind, n_classes, n_shown):
    """Kernels among all drawings of the first classes, sorted by class, by cue; "average": their mean."""
    data, shown = cues_and_pictures(kind, n_classes)
    rows = np.argsort(shown.labels, kind="stable")
    rows = rows[shown.labels[rows] < n_shown]
    picked = zip(EMOJI_CUES, _distances(data, rows), strict=True)
    kernels = {cue: np.exp(-distance / mean_rule(distance)) for cue, distance in picked}
    kernels["average"] = sum(kernels.values()) / len(kernels)
    return {cue: kernels[cue] for cue in cues}


def mistaken(predicted, cues, kind, n_classes, per_class, seed, most):
    """Test drawings that the average kernel names right and the cues mostly do not, worst first: their row,
    and a drawing of what each cue takes them for.
    """
    _, shown = cues_and_pictures(kind, n_classes)
    train, test = picture_split(shown, kind, per_class, seed)
    classes = {cue: np.asarray(predicted[cue]) for cue in (*cues, "average")}
    wrong = {cue: named != shown.labels[test] for cue, named in classes.items()}
    n_wrong = sum(wrong[cue] for cue in cues)
    worst = np.flatnonzero(~wrong["average"])
    worst = worst[np.argsort(-n_wrong[worst], kind="stable")][:most]
    example = np.array([shown.drawing[train[shown.labels[train] == c]].min() for c in range(n_classes)])
    table = {"drawing": shown.drawing[test[worst]]}
    return pd.DataFrame(table | {cue: example[named[worst]] for cue, named in classes.items()})


@lru_cache(maxsize=1)  # with four views of a drawing 1 GB
def load_picture_task(name, n_train, n_test, seed, n_kernels=None):
    """A `Task` of emoji, such as "objects-102", with one kernel for each cue of its set; "objects-102-1400"
    has 40 widths of 35 distances; `n_kernels` takes some, a multiple of 35, of other sets a random subset.
    """
    word, n_classes, *many = name.split("-")
    kind, cues = SETS[word]
    cues, per_class = MANY if many else cues, n_train // int(n_classes)
    n_views = max(1, per_class // LEARN[kind]) if kind == "objects" else 1
    shown = load_pictures(kind, int(n_classes), n_views)
    train, test = picture_split(shown, kind, per_class, seed)
    test = test[:n_test]
    if n_kernels is not None and not many:
        subset = np.random.default_rng([seed, 7]).choice(len(cues), n_kernels, replace=False)
        cues = [cues[j] for j in np.sort(subset)]
    places = [EMOJI_CUES.index(cue) for cue in cues]
    inside, across = (
        np.concatenate([shown.distances[j][np.ix_(rows, train)] for j in places], axis=1)
        for rows in (train, test)
    )
    triples = flowers.distance_kernels(cues, train.size, n_kernels if many else None, WIDTHS)
    bank = KernelBank(triples, inside, memory=MEMORY_MANY if many else MEMORY)
    labels, truth = shown.labels[train], shown.labels[test]
    return Task(bank, labels, bank.cross(across), truth, int(n_classes), shown.group[train])


def kernel_set(name, data):
    """The kernels of a named task as (name, kernel, columns) triples."""
    if name in ("mfeat-6", "pendigits-4"):
        kinds = {"": RBF()}
    elif name == "mnist-12":
        kinds = {"-linear": Linear(), "-poly": Poly(), "-rbf": RBF()}
    elif name in ("leaves-18", "scene15-18"):
        metrics = [(metric, factor) for metric in ("chi2", "sqeuclidean") for factor in LEAF_WIDTHS]
        kinds = {f"-{metric}*{f:g}": ExpDistance(metric, factor=f) for metric, f in metrics}
    else:
        raise ValueError(f"unknown task {name!r}")
    return [(c + word, kernel, s) for c, s in data.cues.items() for word, kernel in kinds.items()]


@cache
def load_data(name):
    """Data set of a table's task, by the task's name."""
    return load_set.__wrapped__(name.split("-")[0])


@lru_cache(maxsize=2)
def load_task(name, n_train, n_test, seed):
    """A `Task` of `kernel_set`, split by the seed, stratified; multiple features are scaled by the training
    part. Pendigits and MNIST keep their parts: a random subset to train, and the first test samples.
    """
    data = load_data(name)
    rng = np.random.default_rng([seed, 1])
    if data.train is None:
        split = {"train_size": n_train, "stratify": data.y, "random_state": seed}
        train, test = train_test_split(np.arange(data.y.size), **split)
        train, test = rng.permutation(train), test[:n_test]
        X = cue_tasks.standardised(data.X, train) if name.startswith("mfeat") else data.X
    else:
        train = data.train if n_train >= data.train.size else rng.choice(data.train, n_train, replace=False)
        test, X = data.test[:n_test], data.X
    bank = KernelBank(kernel_set(name, data), X[train], memory=MEMORY)
    return Task(bank, data.y[train], bank.cross(X[test]), data.y[test], int(data.y.max()) + 1)


def get_task(task, n_train, n_test, seed, n_kernels=None):
    """A `Task` by name: of `SETS` with the number of classes ("objects-102"), of `kernel_set`, or the
    originals "flowers-7" and "flowers-1400".
    """
    if task.startswith("flowers"):
        return flowers.load_flowers(n_train // 17, seed, n_kernels or 7)
    if task.split("-")[0] in SETS:
        return load_picture_task(task, n_train, n_test, seed, n_kernels)
    return load_task(task, n_train, n_test, seed)


def predicted(task, dual_coef, kernel_weights, blocks=None):
    """Classes of the test samples; `blocks`: the test kernels where they are in memory."""
    active, support = np.flatnonzero(kernel_weights), np.flatnonzero(np.any(dual_coef != 0.0, axis=1))
    classes = np.zeros(task.test_labels.size, dtype=np.int64)
    if active.size and support.size:
        if blocks is None:
            blocks = task.cross.select(active, support).blocks(reuse=True)
            kernel_weights, dual_coef = kernel_weights[active], dual_coef[support]
        for rows, block in blocks:
            scores = combine(block, kernel_weights) @ dual_coef.astype(block.dtype)
            classes[rows] = np.argmax(scores, axis=1)
    return classes


def test_error(task, dual_coef, kernel_weights, blocks=None):
    """Share of test samples predicted wrongly."""
    return float(np.mean(predicted(task, dual_coef, kernel_weights, blocks) != task.test_labels))
