r"""Tasks made of cues: images or tables -> samples by cue -> permutations -> distances -> kernel stacks.

What the chapters `omcl` and `mkl` share: both learn places and objects from the same simulated images (or the
originals), under the same permutations.
"""

import hashlib
import os
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from cuelearn import datasets
from cuelearn.datasets.cues import OBJECT_CUES, ROBOT_CUES, image_cues
from cuelearn.kernels import distance_matrix, mean_rule
from cuelearn.omcl import KernelPerceptron

# widths, times the mean distance; the two smallest were added, for every method alike, when a first run chose
# 1/8 throughout
FACTORS = (1 / 32, 1 / 16, 1 / 8, 0.25, 0.5, 1.0, 2.0, 4.0)
WEATHERS = ("cloudy", "sunny", "night")
N_SUBSEQUENCES = 5
TRAIN_OBJECTS = 7  # of 10
N_ROUNDS = 20  # tests while a random order is learnt


# ---------------------------------------------------------------- permutations


class Split(NamedTuple):
    """One permutation of a task.

    `train` and `test` are rows, `train` in the order of learning; `inner` and `held` rows of `train` that
    learn and that validate when parameters are chosen; `rounds` numbers of samples seen at which the
    predictors are tested, the last is all.
    """

    train: np.ndarray
    test: np.ndarray
    inner: np.ndarray
    held: np.ndarray
    rounds: np.ndarray


def even_rounds(n):
    return np.linspace(0, n, N_ROUNDS + 1)[1:].astype(int)


def robot_permutation(permutation):
    """Order of the weathers, and the repeat (1 or 2) that learns: twelve, alternating between the repeats."""
    order = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)][permutation % 6]
    return order, 1 + (permutation + permutation // 6) % 2


def robot_split(frames, permutation):
    """Permutation (0 to 11) of the robot's sequences (thesis 3.4.1): six learn, their counterparts test.

    The twelve permutations are the six orders of the three kinds of weather, times which of the two repeats
    learns. The first session's sequences come before the second's; each is divided into five subsequences,
    after each of which the predictors are tested. The last sequence validates. `frames`, of an `ImageData`:
    sequence, weather, session, repeat, time.
    """
    order, learns = robot_permutation(permutation)
    mine = frames["repeat"] == learns
    parts, sizes = [], []
    for session in (1, 2):
        for w in order:
            rows = np.flatnonzero(mine & (frames["weather"] == WEATHERS[w]) & (frames["session"] == session))
            parts.append(rows[np.argsort(frames["time"][rows], kind="stable")])
            sizes += [part.size for part in np.array_split(rows, N_SUBSEQUENCES)]
    train = np.concatenate(parts)
    last = train.size - parts[-1].size
    inner, held = np.arange(last), np.arange(last, train.size)
    return Split(train, np.flatnonzero(~mine), inner, held, np.cumsum(sizes))


def object_split(frames, y, permutation, seed):
    """Permutation of the objects (thesis 3.4.2): seven of ten of each category learn, in random order.

    Two training objects of each category validate; every second view of the others learns then.
    """
    rng = np.random.default_rng([seed, permutation, 3])
    train, validates = np.zeros(y.size, bool), np.zeros(y.size, bool)
    for c in np.unique(y):
        numbers = rng.permutation(np.unique(frames["object"][y == c]))
        kept = max(2, round(TRAIN_OBJECTS / 10 * numbers.size))
        train |= (y == c) & np.isin(frames["object"], numbers[:kept])
        validates |= (y == c) & np.isin(frames["object"], numbers[: max(1, round(2 / 7 * kept))])
    rows = rng.permutation(np.flatnonzero(train))
    inner, held = np.flatnonzero(~validates[rows])[::2], np.flatnonzero(validates[rows])
    return Split(rows, np.flatnonzero(~train), inner, held, even_rounds(rows.size))


def random_split(y, n_train, n_test, permutation, seed):
    """Stratified random split; three tenths of the training part validate."""
    draw = {"train_size": n_train, "stratify": y, "random_state": 1000 * seed + permutation}
    train, test = train_test_split(np.arange(y.size), **draw)
    train = np.random.default_rng([seed, permutation, 4]).permutation(train)
    inner, held = np.split(np.arange(n_train), [round(0.7 * n_train)])
    return Split(train, test[:n_test], inner, held, even_rounds(n_train))


# ---------------------------------------------------------------------- tasks


class CueTask(NamedTuple):
    """Samples by cue, with what all permutations share.

    The cues `chi2` have a chi-squared kernel, whose `distances`, (n, n), are given by cue; the others have an
    RBF on columns standardised over the training part. `splits` are by permutation.
    """

    data: object
    chi2: tuple
    distances: dict
    splits: dict


@lru_cache(maxsize=4)
def load_images(name, tier, seed, n_jobs=1, **size):
    """Images of the chapter: simulated, or the originals where they are asked for and present.

    Tier "original" takes KTH-IDOL2 ("robot") or ETH-80 ("objects") from the directory CUELEARN_DATA. The size
    of simulated ones is `frames`, `height`, `width`, or `n_objects`, `size`.

    Returns an ImageData.
    """
    if tier == "original":
        original, place = {"robot": "idol2", "objects": "eth80"}[name], os.environ.get("CUELEARN_DATA")
        # what is there must be whole: a damaged copy is an error, not a reason to simulate
        if place and (Path(place) / original).is_dir():
            return datasets.load_original(original)
        print(f"{name}: simulated, since CUELEARN_DATA names no directory with {original}/ in it")
    make = datasets.make_robot if name == "robot" else datasets.make_objects
    wanted = ("frames", "height", "width") if name == "robot" else ("n_objects", "size")
    return make(*(size[k] for k in wanted), random_state=seed, n_jobs=n_jobs)


def robot_tasks(images, permutations, n_jobs=1):
    """The place-recognition task for the given permutations: one `CueTask` for each of the two training sets.

    The visual vocabulary and the scale of the laser features are learnt on the training sequences only, so
    permutations that train on the first and on the second repeats have cues of their own.
    """
    plain = [cue for cue in ROBOT_CUES if cue not in ("bow", "laser")]
    fixed = image_cues(images, plain, n_jobs=n_jobs)
    shared = distances_of(fixed, plain, n_jobs)
    tasks = []
    for learns in (1, 2):
        splits = {k: robot_split(images.frames, k) for k in permutations if robot_permutation(k)[1] == learns}
        if splits:
            train = np.sort(next(iter(splits.values())).train)
            rest = image_cues(images, ["bow", "laser"], train=train, n_jobs=n_jobs)
            distances = {**shared, **distances_of(rest, ["bow"], n_jobs)}
            tasks.append(CueTask(joined(fixed, rest, ROBOT_CUES), (*plain, "bow"), distances, splits))
    return tasks


def joined(first, second, order):
    """Cues of two descriptions of the same samples, in the order wanted."""
    columns, cues, names, at = [], {}, [], 0
    for cue in order:
        source = first if cue in first.cues else second
        columns.append(source.X[:, source.cues[cue]])
        names += source.feature_names[source.cues[cue]]
        cues[cue] = slice(at, len(names))
        at = len(names)
    return first._replace(X=np.concatenate(columns, axis=1), cues=cues, feature_names=names)


def object_task(images, permutations, seed, n_jobs=1):
    """The object-categorisation task."""
    data = image_cues(images, list(OBJECT_CUES), n_jobs=n_jobs)
    splits = {k: object_split(images.frames, images.y, k, seed) for k in permutations}
    return CueTask(data, tuple(OBJECT_CUES), distances_of(data, OBJECT_CUES, n_jobs), splits)


def table_task(data, n_train, n_test, permutations, seed):
    """A bundled set of real data; one RBF for each of its cues."""
    cues = {cue: columns for cue, columns in data.cues.items() if not cue.startswith("pix-")}
    splits = {k: random_split(data.y, n_train, n_test, k, seed) for k in permutations}
    return CueTask(data._replace(cues=cues), (), {}, splits)


def distances_of(data, cues, n_jobs=1):
    """Chi-squared distance matrices of some cues, float32."""
    return {cue: distance_matrix(data.X[:, data.cues[cue]], "chi2", n_jobs=n_jobs) for cue in cues}


def common(task):
    """What runs need of a task besides their point, as plain dicts and tuples: a sweep's `common`."""
    plain = task.data._asdict() | {"provenance": None}
    splits = {k: tuple(s) for k, s in task.splits.items()}
    return {"task": {**task._asdict(), "data": plain, "splits": splits}}


def fingerprint(task):
    """Text that identifies the samples and permutations of a task, for the store of results."""
    digest = hashlib.sha256()
    for array in (task.data.X, task.data.y, *(part for split in task.splits.values() for part in split)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return f"{task.data.provenance.source} {digest.hexdigest()}"


# ------------------------------------------------------------- one permutation


class Permutation:
    """One permutation of a task of `common`: split, cues, labels (`truth`: of the test part), distances."""

    def __init__(self, permutation, task):
        self.task, self.data = task, task["data"]
        self.split = Split(*task["splits"][permutation])
        self.y, self.n_classes = self.data["y"], len(self.data["target_names"])
        self.cues = list(self.data["cues"])
        self.labels, self.truth = self.y[self.split.train], self.y[self.split.test]

    @cached_property
    def distances(self):
        task, split = self.task, self.split
        return cue_distances(self.data, task["chi2"], task["distances"], split.train, split.test)

    def stacks(self, names, factors):
        """Kernels among all training samples, and of the test samples against them."""
        return both_kernels(self.distances, names, factors, np.arange(self.labels.size), None)

    @property
    def columns(self):
        """Numbers of the columns of every cue."""
        everything = np.arange(self.data["X"].shape[1])
        return {cue: everything[where] for cue, where in self.data["cues"].items()}

    def scaled(self):
        """Features standardised over the training part."""
        return standardised(self.data["X"].astype(np.float64), self.split.train)


def squared_distances(left, right):
    """Squared Euclidean distances, float32, from centred columns."""
    centre = right.mean(axis=0)
    left, right = (left - centre).astype(np.float32), (right - centre).astype(np.float32)
    out = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2.0 * left @ right.T
    return np.maximum(out, 0.0, out=out)


def standardised(X, train):
    """Columns with mean 0 and deviation 1 over the training rows."""
    deviation = X[train].std(axis=0)
    return (X - X[train].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


class Distances(NamedTuple):
    """Distances among training samples, and of test samples to them, by name."""

    train: dict
    test: dict


def cue_distances(data, chi2, distances, train, test):
    """Distances of one permutation: of every cue, and of the long vectors of Flat."""
    X, found = data["X"].astype(np.float64), Distances({}, {})

    def euclidean(name, part):
        found.train[name] = squared_distances(part[train], part[train])
        found.test[name] = squared_distances(part[test], part[train])

    for cue, columns in data["cues"].items():
        if cue in chi2:
            found.train[cue], found.test[cue] = (
                distances[cue][np.ix_(rows, train)] for rows in (train, test)
            )
        else:
            euclidean(cue, standardised(X[:, columns], train))
    used = np.concatenate([np.arange(X.shape[1])[columns] for columns in data["cues"].values()])
    euclidean("vectors", X[:, used])
    euclidean("vectors scaled", standardised(X[:, used], train))
    return found


def kernels(distances, names, factors, learn, rows):
    """Kernels of `rows` (of `test` if None) against the training samples `learn`, widths by the mean rule."""
    stack = []
    for name in names:
        among, new = distances.train[name], distances.test[name]
        wanted = new[:, learn] if rows is None else among[np.ix_(rows, learn)]
        width = factors[name] * mean_rule(among[np.ix_(learn, learn)])
        stack.append(np.exp(wanted * np.float32(-1.0 / width)))
    return np.stack(stack)


def both_kernels(distances, names, factors, learn, rows):
    """`kernels` among the samples `learn`, and of `rows` against them."""
    return [kernels(distances, names, factors, learn, part) for part in (learn, rows)]


def class_errors(predicted, y, n_classes, wrong=None):
    """Share of wrong predictions for each class; NaN for a class without samples."""
    wrong = predicted != y if wrong is None else wrong
    return np.array([wrong[y == c].mean() if np.any(y == c) else np.nan for c in range(n_classes)])


def overall(errors):
    """Every class counts alike, as in the thesis' tables."""
    return float(np.nanmean(errors))


def choose_widths(distances, y, split, n_classes):
    """Kernel width of every cue: where the Perceptron errs least on the validation part; and the error.

    Widths are factors, one of `FACTORS` for each name of the distances; ties go to the one nearest to 1.
    """
    y_inner, y_held = y[split.train][split.inner], y[split.train][split.held]
    factors, least = {}, {}
    for name in distances.train:
        errors = {}
        for f in FACTORS:
            inside, across = both_kernels(distances, [name], {name: f}, split.inner, split.held)
            learner = KernelPerceptron("precomputed", verbose=False)
            learner.partial_fit(inside[0], y_inner, classes=np.arange(n_classes))
            errors[f] = overall(class_errors(learner.predict(across[0]), y_held, n_classes))
        factors[name] = min(errors, key=lambda f: (errors[f], abs(np.log(f))))
        least[name] = min(errors.values())
    return factors, least
