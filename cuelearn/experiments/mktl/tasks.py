"""Transfer tasks: a few new classes on one cue, and priors for other classes, trained on other cues.

Multi-KT, which needs priors of its own kind, gets a second set on the new task's cue (`TransferTask.same`).
Which rows train the priors and which are for tests is drawn once from fixed seeds, the same for every method,
seed and profile; `draw` and `draw_binary` choose training samples within a task, by a seed.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from cuelearn.datasets import AWA_TEST_CLASSES
from cuelearn.experiments.protocol import load_set
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import AverageKernelSVM

#: The letter that the most other letters are sometimes taken for: 21 of 25, by an SVM on the training
#: samples.
#: Fixed before any transfer.
BACKGROUND = "H"
#: C of all priors that are SVMs: the middle of the thesis's range for C, not tuned.
PRIOR_C = 10.0
#: Boosted trees: as many, so deep. Deeper ones fit mfeat's few training samples at once, and boosting would
#: end.
N_TREES, DEPTH = 100, 2
# first entries of the seeds of this file's draws, so that no two draws share a stream
_SPLIT, _DRAW, _DRAW_BINARY = 60, 61, 62


class Setup(NamedTuple):
    """A multiclass task: new classes and their cue, models of old classes (learner, cues, classes), sizes."""

    classes: tuple
    cue: str
    known: tuple
    n_first: int  # so many classes of `known` are the smaller set of priors
    prior_rows: int  # of each old class, for its prior
    pool_rows: int  # of each new class, to draw training samples from
    test_rows: int  # of each new class


_BOTH = ("box", "edges")
_LETTERS = ("trees", _BOTH, "BCDFJN"), ("svm", _BOTH, "OUWY"), ("svm", _BOTH, "AKLSTXZ")
_DIGITS = ("trees", ("kar", "mor"), "012"), ("svm", ("pix", "fac"), "467")
# rgsift in place of the thesis's colour histogram, which is not in the file; all other classes are known
_ANIMALS = (("svm", ("rgsift", "surf"), None),)
#: Multiclass tasks of figure 6.3 by name; "awa" is the thesis's own data (tier original).
TASKS = {
    "letter": Setup(tuple("EGHIMPQRV"), "moments", _LETTERS, 10, 200, 400, 150),
    "mfeat": Setup(tuple("3589"), "fou", _DIGITS, 6, 100, 100, 100),
    "awa": Setup(AWA_TEST_CLASSES, "phog", _ANIMALS, 40, 50, 50, 50),
}
#: Of binary tasks: samples of each letter and of the background that train the priors, of the target and of
#: the
#: background to draw from, of both for tests.
PRIOR_ROWS, POOL_ROWS, BACKGROUND_ROWS, TEST_ROWS = 200, 100, 300, 150


class Prior(NamedTuple):
    """A fitted model of old classes, one per column of its scores; a binary one has a single class.

    `columns` of the data set's X are what `model` takes, `train` the rows that it was trained on; `accuracy`
    is on other samples of its own classes, NaN where there are none.
    """

    name: str
    classes: tuple
    columns: list
    model: object
    train: np.ndarray
    accuracy: float

    def scores(self, X):
        """Scores of rows of the data set's X, shape (n, number of classes)."""
        return self.model.decision_function(X[:, self.columns]).reshape(len(X), -1)


class TransferTask(NamedTuple):
    """A task with few samples, and what priors say of its samples."""

    X: np.ndarray  # (n, d): the new task's cue, for all rows of its classes
    y: np.ndarray  # names of the new classes; in a binary task 0 for the background and 1 for the target
    scores: np.ndarray  # (n, K), of priors on other cues, by other learners
    same: np.ndarray  # (n, K), of priors of the same classes on the new task's cue with its kernel
    prior_names: tuple  # the old class that each of the K columns stands for
    n_first: int  # so many columns are the smaller set of priors
    pool: np.ndarray  # rows of X that training samples are drawn from, class after class
    test: np.ndarray  # rows of X for tests
    data: object
    rows: np.ndarray  # rows and columns of data.X that those of X are
    columns: list
    priors: tuple  # the models behind `scores` and `same`
    same_priors: tuple
    gamma: float  # width of `same` and of all methods: the mean squared distance among the priors' samples


def _rows(data, name, size, n_rest=None):
    """The first `size` rows of a class, in an order drawn once, and rows that are never among these.

    With a published split the latter are of its test part, without one from the end of the order.
    """
    label = data.target_names.index(name)
    rng = np.random.default_rng([_SPLIT, label])
    if data.train is None:
        rows = rng.permutation(np.flatnonzero(data.y == label))
        return rows[:size], rows[size:][::-1][:n_rest]
    rows, rest = (rng.permutation(part[data.y[part] == label]) for part in (data.train, data.test))
    return rows[:size], rest[:n_rest]


def _svm(kernels):
    return AverageKernelSVM(kernels, C=PRIOR_C)


def _columns(data, cues):
    """Columns of some cues, and the triples of one RBF per cue among these columns."""
    parts = [range(*data.cues[cue].indices(data.X.shape[1])) for cue in cues]
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    triples = [(cue, RBF(), slice(*pair)) for cue, pair in zip(cues, zip(ends, ends[1:]), strict=True)]
    return [c for part in parts for c in part], triples


def _prior(name, classes, data, columns, labels, model, train, rest):
    """Train a prior on some rows; `labels` are those of all rows of the data."""
    model.fit(data.X[np.ix_(train, columns)], labels[train])
    accuracy = model.score(data.X[np.ix_(rest, columns)], labels[rest]) if rest.size else np.nan
    return Prior(name, tuple(classes), columns, model, train, float(accuracy))


def _width(data, columns, rows):
    """The mean squared distance that ``RBF(gamma="mean")`` would take from these rows."""
    bank = KernelBank([("all", RBF(), slice(None))], data.X[np.ix_(rows, columns)], memory=0)
    return float(bank.triples[0][1].gamma)


def _scores(priors, data, rows):
    X = data.X[rows]
    with threadpool_limits(1, user_api="blas"):  # the same bits for any number of threads
        return np.hstack([prior.scores(X) for prior in priors])


def _task(data, rows, n_pool, priors, same_priors, **more):
    """A task from rows of the data, those of the pool first."""
    columns = same_priors[0].columns
    X = data.X[np.ix_(rows, columns)].astype(np.float64)
    places = {"pool": np.arange(n_pool), "test": np.arange(n_pool, rows.size)}
    names = tuple(c for prior in priors for c in prior.classes)
    models = {"priors": tuple(priors), "same_priors": tuple(same_priors), "prior_names": names}
    return TransferTask(X=X, data=data, rows=rows, columns=columns, **places, **models, **more)


@lru_cache(maxsize=4)
def load_task(name):
    """A `TransferTask` of figure 6.3, one of `TASKS`: the same object each time, not to be changed.

    letter: nine new letters on the cue moments; models on box and edges know 10 others, a further one all 17.
    mfeat: digits 3, 5, 8 and 9 on Fourier coefficients; models on kar and mor know 0, 1 and 2, on pix and fac
    4, 6 and 7. awa: the ten test classes of Animals with Attributes on PHOG; a model on rgsift and SURF knows
    the 40 others. DataFileError if the data is not there.
    """
    if name not in TASKS:
        raise ValueError(f"name must be one of {sorted(TASKS)}, got {name!r}")
    data, setup = load_set(name), TASKS[name]
    labels = np.array(data.target_names)[data.y]
    columns, _ = _columns(data, (setup.cue,))
    others = [c for c in data.target_names if c not in setup.classes]
    split = []
    for _, _, known in setup.known:
        parts = [_rows(data, c, setup.prior_rows) for c in known or others]
        split.append([np.concatenate(rows) for rows in zip(*parts, strict=True)])
    gamma = _width(data, columns, np.concatenate([train for train, _ in split]))
    priors, same = [], []
    for (learner, cues, known), rows in zip(setup.known, split, strict=True):
        classes = sorted(known or others)  # the order of a fitted model's columns
        own, triples = _columns(data, cues)
        model, kind = _svm(triples), "SVM"
        if learner == "trees":
            tree, kind = DecisionTreeClassifier(max_depth=DEPTH), "boosted trees"
            model = AdaBoostClassifier(tree, n_estimators=N_TREES, random_state=0)
        priors.append(_prior(f"{kind} on {', '.join(cues)}", classes, data, own, labels, model, *rows))
        model = _svm([(setup.cue, RBF(gamma=gamma), slice(None))])
        same.append(_prior(f"SVM on {setup.cue}", classes, data, columns, labels, model, *rows))
    parts = [_rows(data, new, setup.pool_rows, setup.test_rows) for new in setup.classes]
    rows = np.concatenate([pool for pool, _ in parts] + [test for _, test in parts])
    told = {"scores": _scores(priors, data, rows), "same": _scores(same, data, rows)}
    told |= {"y": labels[rows], "gamma": gamma, "n_first": setup.n_first}
    return _task(data, rows, len(parts) * setup.pool_rows, priors, same, **told)


def binary_targets():
    """The 25 letters that are targets in turn: all but the background."""
    return [name for name in load_set("letter").target_names if name != BACKGROUND]


@lru_cache(maxsize=1)
def _shared():
    """What all targets share: priors by letter, their width, the background's rows (pool, tests), its
    scores."""
    data, targets = load_set("letter"), binary_targets()
    columns = list(range(data.X.shape[1]))
    background = _rows(data, BACKGROUND, PRIOR_ROWS)
    split = {name: _rows(data, name, PRIOR_ROWS) for name in targets}
    gamma = _width(data, columns, np.concatenate([background[0], *(train for train, _ in split.values())]))
    priors = {}
    for name, own in split.items():
        labels = (data.y == data.target_names.index(name)).astype(np.int64)
        rows = [np.concatenate(both) for both in zip(own, background, strict=True)]
        model, told = _svm([("all", RBF(gamma=gamma), slice(None))]), f"SVM of {name} against {BACKGROUND}"
        priors[name] = _prior(told, (name,), data, columns, labels, model, *rows)
    pool, test = _rows(data, BACKGROUND, PRIOR_ROWS + BACKGROUND_ROWS, TEST_ROWS)
    pool = pool[PRIOR_ROWS:]  # the others trained the priors
    return priors, gamma, pool, test, _scores(priors.values(), data, np.concatenate([pool, test]))


@lru_cache(maxsize=25)
def binary_task(target):
    """A letter against the background (figure 6.2), with 24 priors for the other letters.

    Priors and new task use all 16 attributes and the same kernel, its width from all 25 letters (the target's
    samples have no part in its priors). The background's rows for priors, training and tests are disjoint. In
    the pool the target's rows stand first. The same object each time, not to be changed.
    """
    if target not in binary_targets():
        raise ValueError(f"target must be one of {binary_targets()}, got {target!r}")
    data, (priors, gamma, background, background_test, known) = load_set("letter"), _shared()
    others = tuple(prior for name, prior in priors.items() if name != target)
    pool, test = _rows(data, target, POOL_ROWS, TEST_ROWS)
    own = _scores(others, data, np.concatenate([pool, test]))
    known = np.delete(known, binary_targets().index(target), axis=1)
    rows = np.concatenate([pool, background, test, background_test])
    halves = own[:POOL_ROWS], known[:BACKGROUND_ROWS], own[POOL_ROWS:], known[BACKGROUND_ROWS:]
    scores, y = np.concatenate(halves), (data.y[rows] == data.target_names.index(target)).astype(np.int64)
    told = {"scores": scores, "same": scores, "y": y, "gamma": gamma, "n_first": len(others)}
    return _task(data, rows, POOL_ROWS + BACKGROUND_ROWS, others, others, **told)


def _take(rows, size, parameter):
    if size > rows.size:
        raise ValueError(f"{parameter} must be at most {rows.size}, the samples in the pool, got {size}")
    return rows[:size]


def draw(task, n_per_class, seed):
    """Rows of a multiclass task's X to train on: one of each class, then another of each, and so on.

    A smaller draw of the same seed is a part of a larger one. ValueError if the pool holds fewer of a class.
    """
    rng = np.random.default_rng([_DRAW, seed])
    labels = task.y[task.pool]
    orders = [rng.permutation(task.pool[labels == label]) for label in np.unique(labels)]
    return np.stack([_take(order, n_per_class, "n_per_class") for order in orders], axis=1).ravel()


def draw_binary(task, n_positive, n_negative, seed):
    """Rows of a binary task's X to train on, the target's first; otherwise like `draw`, on either side."""
    rng = np.random.default_rng([_DRAW_BINARY, seed])
    negative, positive = (rng.permutation(task.pool[task.y[task.pool] == label]) for label in (0, 1))
    taken = _take(positive, n_positive, "n_positive"), _take(negative, n_negative, "n_negative")
    return np.concatenate(taken)
