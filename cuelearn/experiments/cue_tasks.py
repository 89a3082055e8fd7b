"""Tasks made of cues: images or tables -> samples by cue -> permutations -> distances -> kernels.

The chapters `omcl` and `mkl` learn places and objects from the same images under the same permutations.
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


# ---------------------------------------------------------------- splits


class Split(NamedTuple):
    """One permutation: rows that learn, in their order, and rows that test.

    `inner` and `held` are places in `train` that learn and that validate; `rounds` numbers of samples seen
    at which the predictors are tested, the last is all.
    """

    train: np.ndarray
    test: np.ndarray
    inner: np.ndarray | None = None
    held: np.ndarray | None = None
    rounds: np.ndarray | None = None


def even_rounds(n):
    return np.linspace(0, n, N_ROUNDS + 1)[1:].astype(int)


def robot_permutation(permutation):
    """Order of the weathers, and the repeat (1 or 2) that learns: twelve, alternating between the repeats."""
    order = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)][permutation % 6]
    return order, 1 + (permutation + permutation // 6) % 2


def robot_split(frames, permutation):
    """One of twelve permutations of the robot's drives (thesis 3.4.1): six learn, their counterparts test.

    The first session comes before the second. Predictors are tested after each fifth of a drive; the last
    drive validates. `frames` are those of an `ImageData`.
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
    inner, held = np.split(np.arange(train.size), [train.size - parts[-1].size])
    return Split(train, np.flatnonzero(~mine), inner, held, np.cumsum(sizes))


def object_split(frames, y, permutation, seed):
    """Permutation of the objects (thesis 3.4.2): seven of ten of each category learn, in random order.

    Two of them validate; every second view of the others learns then.
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
    """Samples by cue, a `CueData`, and its splits by permutation.

    Cues with chi-squared `distances`, (n, n), have a kernel on these; the others an RBF on columns
    standardised over the training part.
    """

    data: datasets.CueData
    distances: dict
    splits: dict


@lru_cache(maxsize=4)
def load_images(name, tier, seed, n_jobs=1, **size):
    """Images of the "robot" or of "objects", an `ImageData`: simulated, in the given size.

    Tier "original" takes KTH-IDOL2 or ETH-80 from the directory CUELEARN_DATA, where present.
    """
    if tier == "original":
        original, place = {"robot": "idol2", "objects": "eth80"}[name], os.environ.get("CUELEARN_DATA")
        # what is there must be whole: a damaged copy is an error, not a reason to simulate
        if place and (Path(place) / original).is_dir():
            return datasets.load_original(original)
        print(f"{name}: simulated, since CUELEARN_DATA names no directory with {original}/ in it")
    if name == "robot":
        make, wanted = datasets.make_robot, ("frames", "height", "width")
    else:
        make, wanted = datasets.make_objects, ("n_objects", "size")
    return make(*(size[k] for k in wanted), random_state=seed, n_jobs=n_jobs)


def robot_tasks(images, permutations, n_jobs=1):
    """Place recognition: a `CueTask` for each of the two training sets among the permutations.

    The visual vocabulary and the scale of the laser features are learnt on the training drives only.
    """
    plain = [cue for cue in ROBOT_CUES if cue not in ("bow", "laser")]
    fixed = image_cues(images, plain, n_jobs=n_jobs)
    shared = chi2_distances(fixed, plain, n_jobs)
    tasks = []
    for learns in (1, 2):
        splits = {k: robot_split(images.frames, k) for k in permutations if robot_permutation(k)[1] == learns}
        if splits:
            train = np.sort(next(iter(splits.values())).train)
            rest = image_cues(images, ["bow", "laser"], train=train, n_jobs=n_jobs)
            distances = {**shared, **chi2_distances(rest, ["bow"], n_jobs)}
            tasks.append(CueTask(joined(fixed, rest, ROBOT_CUES), distances, splits))
    return tasks


def joined(first, second, order):
    """Cues of two descriptions of the same samples, in the order wanted."""
    columns, cues, names = [], {}, []
    for cue in order:
        source = first if cue in first.cues else second
        columns.append(source.X[:, source.cues[cue]])
        cues[cue] = slice(len(names), len(names) + columns[-1].shape[1])
        names += source.feature_names[source.cues[cue]]
    return first._replace(X=np.concatenate(columns, axis=1), cues=cues, feature_names=names)


def object_task(images, permutations, seed, n_jobs=1):
    """The object-categorisation task."""
    data = image_cues(images, list(OBJECT_CUES), n_jobs=n_jobs)
    splits = {k: object_split(images.frames, images.y, k, seed) for k in permutations}
    return CueTask(data, chi2_distances(data, OBJECT_CUES, n_jobs), splits)


def table_task(data, n_train, n_test, permutations, seed):
    """A bundled set of real data; one RBF for each of its cues."""
    cues = {cue: columns for cue, columns in data.cues.items() if not cue.startswith("pix-")}
    splits = {k: random_split(data.y, n_train, n_test, k, seed) for k in permutations}
    return CueTask(data._replace(cues=cues), {}, splits)


def chi2_distances(data, cues, n_jobs=1):
    """Matrices of some cues, float32."""
    return {cue: distance_matrix(data.X[:, data.cues[cue]], "chi2", n_jobs=n_jobs) for cue in cues}


def handed(task, name="task", **more):
    """What a sweep hands to every run: a task, as the argument `name`, and `more`; and what identifies it."""
    digest = hashlib.sha256()
    for array in (task.data.X, task.data.y, *(part for split in task.splits.values() for part in split)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return {"common": {name: task, **more}, "data": [f"{task.data.provenance.source} {digest.hexdigest()}"]}


# ------------------------------------------------------------- one permutation


class Permutation:
    """One split of a `CueTask`: its labels (`truth`: of the test part), cues, distances and kernels."""

    def __init__(self, task, split):
        self.task, self.data, self.split, self.y = task, task.data, split, task.data.y
        self.cues, self.n_classes = list(task.data.cues), len(task.data.target_names)
        self.labels, self.truth = self.y[split.train], self.y[split.test]

    @property
    def columns(self):
        """Numbers of the columns of every cue."""
        everything = np.arange(self.data.X.shape[1])
        return {cue: everything[where] for cue, where in self.data.cues.items()}

    @cached_property
    def distances(self):
        """Among the training samples, and of the test samples to them: by cue, and of Flat's long vectors."""
        train, test = self.split.train, self.split.test
        X, used = self.data.X.astype(np.float64), np.concatenate(list(self.columns.values()))
        given = self.task.distances
        plain = {cue: where for cue, where in self.data.cues.items() if cue not in given}
        vectors = {cue: standardised(X[:, where], train) for cue, where in plain.items()}
        vectors |= {"vectors": X[:, used], "vectors scaled": standardised(X[:, used], train)}
        found = {cue: [d[np.ix_(rows, train)] for rows in (train, test)] for cue, d in given.items()}
        for name, v in vectors.items():
            found[name] = [squared_distances(v[rows], v[train]) for rows in (train, test)]
        return found

    def kernels(self, names, factors, learn=None, rows=None):
        """Kernels among training samples `learn` (all), and of training samples `rows` (test) against them.

        Widths are `factors`, by name, times the mean distance. Two arrays of shape (n_kernels, n, n_learn).
        """
        learn = np.arange(self.labels.size) if learn is None else learn
        inside, across = [], []
        for name in names:
            train, test = self.distances[name]
            own = train[np.ix_(learn, learn)]
            other = test[:, learn] if rows is None else train[np.ix_(rows, learn)]
            scale = np.float32(-1.0 / (factors[name] * mean_rule(own)))
            inside.append(np.exp(own * scale))
            across.append(np.exp(other * scale))
        return np.stack(inside), np.stack(across)

    def validation_kernels(self, names, factors):
        return self.kernels(names, factors, self.split.inner, self.split.held)

    def validation_error(self, model, inside, across):
        """Of an online learner, after one pass over the inner part."""
        model.partial_fit(inside, self.labels[self.split.inner], classes=np.arange(self.n_classes))
        held = self.labels[self.split.held]
        return mean_error(model.predict(across) != held, held, self.n_classes)

    def choose_widths(self, names):
        """Width of every kernel: where the Perceptron errs least on the validation part; and that error.

        Widths are factors, of `FACTORS`; ties go to the one nearest to 1.
        """
        factors, least = {}, {}
        for name in names:
            errors = {}
            for f in FACTORS:
                (inside,), (across,) = self.validation_kernels([name], {name: f})
                learner = KernelPerceptron("precomputed")
                errors[f] = self.validation_error(learner, inside, across)
            factors[name] = min(errors, key=lambda f: (errors[f], abs(np.log(f))))
            least[name] = min(errors.values())
        return factors, least


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


def class_errors(wrong, y, n_classes):
    """Share of wrong predictions for each class; NaN for a class without samples."""
    return np.array([wrong[y == c].mean() if np.any(y == c) else np.nan for c in range(n_classes)])


def mean_error(wrong, y, n_classes):
    """Every class counts alike, as in the thesis' tables."""
    return float(np.nanmean(class_errors(wrong, y, n_classes)))
