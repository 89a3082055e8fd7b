r"""Transfer tasks: a few new classes on one cue, and priors for other classes, trained on other cues.

A task divides a data set twice. Its *classes* are either new or known to the priors, so a prior never saw a
new class. Its *cues* are either the new task's or the priors', as the thesis describes new images by PHOG and
trains the priors on other descriptors; Multi-KT, which needs priors of its own kind, gets a second set of
priors on the new task's cue (`TransferTask.same`). `load_task` makes the multiclass tasks of figure 6.3,
`binary_task` those of figure 6.2, where every letter in turn is to be told from a background letter.

What is random here (which rows train the priors, which are held back for tests) is drawn once from fixed
seeds: the same for every method, seed and profile of the same sizes. `draw` and `draw_binary` choose training
samples within a task, by a seed.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from cuelearn import datasets
from cuelearn.core.checks import check_count
from cuelearn.datasets import AWA_TEST_CLASSES
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import AverageKernelSVM

#: The letter that the most other letters are sometimes taken for: 21 of 25, by an SVM on the training
#: samples. Fixed before any transfer.
BACKGROUND = "H"
#: C of all priors that are SVMs: the middle of the thesis's range for C, not tuned.
PRIOR_C = 10.0
#: Boosted trees: as many, so deep. Deeper ones fit the few training samples of mfeat at once, and boosting
#: would end there.
N_TREES, DEPTH = 100, 2
# first entries of the seeds of this file's draws, so that no two draws share a stream
_SPLIT, _DRAW, _DRAW_BINARY = 60, 61, 62


class Prior(NamedTuple):
    """One fitted model of old classes.

    `name` says learner and cues, such as "boosted trees on box, edges". `classes` are old ones, one per
    column of its scores; a binary prior has one, which it tells from the background. `columns` of the data
    set's X are what `model` takes, `train` the rows that it was trained on; `accuracy` is on `n_held_out`
    other samples of its own classes, NaN where there are none.
    """

    name: str
    classes: tuple
    columns: list
    model: object
    train: np.ndarray
    accuracy: float
    n_held_out: int

    def __repr__(self):
        known = f"{len(self.classes)} classes, {self.train.size} samples"
        return f"<{self.name}: {known}, accuracy {self.accuracy:.2f}>"

    def scores(self, X):
        """Scores of rows of the data set's X, shape (n, number of classes)."""
        return self.model.decision_function(X[:, self.columns]).reshape(len(X), -1)


class TransferTask(NamedTuple):
    """A task with few samples, and what priors say of its samples.

    Attributes
    ----------
    name : str
    X : ndarray of float64, shape (n, d)
        The new task's cue, for all rows of its classes.
    y : ndarray, shape (n,)
        Names of the new classes; in a binary task 0 for the background and 1 for the target.
    scores, same : ndarray of float64, shape (n, K)
        What priors say of these rows: on other cues, by other learners; and priors of the same classes on the
        new task's cue with its kernel, as Multi-KT asks. The same in binary tasks.
    prior_names : tuple of str
        The old class that each of the K columns stands for; the first `n_first` are the smaller set of
        priors.
    n_first : int
    pool, test : ndarray of int
        Rows of X that training samples are drawn from, class after class, equally many of each; rows for
        tests.
    data : CueData
    rows, columns
        Rows and columns of `data.X` that those of X are.
    priors, same_priors : tuple of Prior
        The fitted models behind `scores` and `same`, in the order of the columns.
    gamma : float
        Width of the RBF of `same`, and of all methods on the new task: the mean squared distance among the
        samples that priors were trained on; in binary tasks those of all 25 letters, the target's too, which
        have no part in its priors.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    scores: np.ndarray
    same: np.ndarray
    prior_names: tuple
    n_first: int
    pool: np.ndarray
    test: np.ndarray
    data: object
    rows: np.ndarray
    columns: list
    priors: tuple
    same_priors: tuple
    gamma: float

    def __repr__(self):
        classes = f"{np.unique(self.y).size} new classes, {len(self.prior_names)} old"
        return f"<{self.name}: X {self.X.shape}, {classes}, pool {self.pool.size}, test {self.test.size}>"


class _Group(NamedTuple):
    """Old classes whose prior is one model: how it learns, from which cues, which classes."""

    learner: str
    cues: tuple
    classes: tuple


class _Setup(NamedTuple):
    """A multiclass task: new classes, their cue, groups of priors (the first so many classes are the smaller
    set), and sizes per class unless the caller gives others."""

    classes: tuple
    cue: str
    groups: tuple
    n_first: int
    prior_rows: int
    pool_rows: int
    test_rows: int


def _letter():
    known = (("trees", "BCDFJN"), ("svm", "OUWY"), ("svm", "AKLSTXZ"))
    groups = tuple(_Group(learner, ("box", "edges"), tuple(letters)) for learner, letters in known)
    return _Setup(tuple("EGHIMPQRV"), "moments", groups, 10, 200, 400, 150)


def _mfeat():
    groups = _Group("trees", ("kar", "mor"), tuple("012")), _Group("svm", ("pix", "fac"), tuple("467"))
    return _Setup(tuple("3589"), "fou", groups, 6, 100, 100, 100)


def _awa():
    old = tuple(name for name in load_set("awa").target_names if name not in AWA_TEST_CLASSES)
    # rgsift in place of the thesis's colour histogram, which is not in the file
    return _Setup(AWA_TEST_CLASSES, "phog", (_Group("svm", ("rgsift", "surf"), old),), len(old), 50, 50, 50)


#: Multiclass tasks by name; "awa" is the thesis's own data (tier original).
TASKS = {"letter": _letter, "mfeat": _mfeat, "awa": _awa}


@lru_cache(maxsize=3)
def load_set(name):
    """Data set of a task by the task's name."""
    return datasets.load_original("awa") if name == "awa" else getattr(datasets, f"load_{name}")()


# ----------------------------------------------------------------
# rows


def _split(data, name, n_test=0):
    """Rows of a class in an order drawn once: those that may train, and those for tests.

    With a published split these are its two parts, each whole; without one the last `n_test` of a permutation
    are for tests, whatever the number that train.
    """
    label = data.target_names.index(name)
    rng = np.random.default_rng([_SPLIT, label])
    if data.train is None:
        rows = rng.permutation(np.flatnonzero(data.y == label))
        return rows[: max(rows.size - n_test, 0)], rows[::-1][:n_test]
    return tuple(rng.permutation(part[data.y[part] == label]) for part in (data.train, data.test))


def _take(rows, size, parameter, name):
    """The first `size` rows, or an error that names the parameter."""
    size = check_count(parameter, size)
    if size > rows.size:
        left = f"{rows.size}, the samples left of class {name!r}"
        raise ValueError(f"{parameter} must be at most {left}, got {size}")
    return rows[:size]


def _task_rows(data, name, pool_rows, test_rows):
    """Rows of a new class that training samples are drawn from, and rows for tests."""
    pool, test = _split(data, name, check_count("test_rows", test_rows))
    test = _take(test, test_rows, "test_rows", name)
    return _take(pool, pool_rows, "pool_rows", name), test


def _prior_rows(data, names, prior_rows):
    """Rows that train a prior of some classes, and all that it never saw of these classes."""
    train, held_out = [], []
    for name in names:
        first, second = _split(data, name)
        train.append(_take(first, prior_rows, "prior_rows", name))
        held_out.append(second if data.train is not None else first[prior_rows:])
    return np.concatenate(train), np.concatenate(held_out)


# ----------------------------------------------------------------
# priors


def _trees():
    return AdaBoostClassifier(DecisionTreeClassifier(max_depth=DEPTH), n_estimators=N_TREES, random_state=0)


def _svm(kernels):
    return AverageKernelSVM(kernels, C=PRIOR_C)


def _columns(data, cues):
    """Columns of some cues, and the triples of one RBF per cue among these columns."""
    parts = [range(*data.cues[cue].indices(data.X.shape[1])) for cue in cues]
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    triples = [(cue, RBF(), slice(*pair)) for cue, pair in zip(cues, zip(ends, ends[1:]), strict=True)]
    return [c for part in parts for c in part], triples


def _fitted(name, classes, data, columns, labels, model, train, held_out):
    """Train a prior; `labels` are those of all rows of the data."""
    model.fit(data.X[np.ix_(train, columns)], labels[train])
    accuracy = model.score(data.X[np.ix_(held_out, columns)], labels[held_out]) if held_out.size else np.nan
    return Prior(name, tuple(classes), columns, model, train, float(accuracy), held_out.size)


@lru_cache(maxsize=4)
def _priors(name, prior_rows):
    """Priors of a multiclass task: on the other cues, on the new task's cue, and the latter's width."""
    data, setup = load_set(name), TASKS[name]()
    labels = np.array(data.target_names)[data.y]
    other, same = [], []
    columns, _ = _columns(data, (setup.cue,))
    split = [_prior_rows(data, group.classes, prior_rows) for group in setup.groups]
    gamma = _width(data, columns, np.concatenate([train for train, _ in split]))
    for group, rows in zip(setup.groups, split, strict=True):
        classes = sorted(group.classes)  # the order of a fitted model's columns
        others, triples = _columns(data, group.cues)
        model, kind = (_trees(), "boosted trees") if group.learner == "trees" else (_svm(triples), "SVM")
        of_cues = f"{kind} on {', '.join(group.cues)}"
        other.append(_fitted(of_cues, classes, data, others, labels, model, *rows))
        own = _svm([(setup.cue, RBF(gamma=gamma), slice(None))])
        same.append(_fitted(f"SVM on {setup.cue}", classes, data, columns, labels, own, *rows))
    return tuple(other), tuple(same), gamma


def _width(data, columns, rows):
    """The mean squared distance that ``RBF(gamma="mean")`` would take from these rows."""
    bank = KernelBank([("all", RBF(), slice(None))], data.X[np.ix_(rows, columns)], memory=0)
    return float(bank.triples[0][1].gamma)


def _scores(priors, data, rows):
    X = data.X[rows]
    with threadpool_limits(1, user_api="blas"):  # the same bits for any number of threads
        return np.hstack([prior.scores(X) for prior in priors])


# ----------------------------------------------------------------
# tasks


@lru_cache(maxsize=4)
def load_task(name, prior_rows=None, pool_rows=None, test_rows=None):
    """A multiclass `TransferTask` of figure 6.3: the same object for the same arguments, not to be changed.

    Parameters
    ----------
    name : {"letter", "mfeat", "awa"}
        ``letter``: nine new letters on the cue moments; boosted trees and SVMs on box and edges know 10
        others, with a further SVM all 17 others. ``mfeat``: digits 3, 5, 8 and 9 on Fourier coefficients;
        boosted trees on kar and mor know 0, 1 and 2, an SVM on pix and fac knows 4, 6 and 7. ``awa``: the ten
        test classes of Animals with Attributes on PHOG; an SVM on rgsift and SURF knows the 40 others.
    prior_rows, pool_rows, test_rows : int, optional
        Samples per class: of an old class for its prior, of a new class to draw training samples from, of a
        new class for tests. By default 200, 400, 150 for letter, 100 each for mfeat, 50 each for awa.

    Raises
    ------
    ValueError
        If the name is unknown or a class has fewer samples.
    DataFileError
        If the data is not there.
    """
    if name not in TASKS:
        raise ValueError(f"name must be one of {sorted(TASKS)}, got {name!r}")
    data, setup = load_set(name), TASKS[name]()
    prior_rows = setup.prior_rows if prior_rows is None else prior_rows
    pool_rows = setup.pool_rows if pool_rows is None else pool_rows
    test_rows = setup.test_rows if test_rows is None else test_rows
    parts = [_task_rows(data, new, pool_rows, test_rows) for new in setup.classes]
    priors, same_priors, gamma = _priors(name, prior_rows)
    rows = np.concatenate([pool for pool, _ in parts] + [test for _, test in parts])
    return TransferTask(
        name=name,
        X=data.X[np.ix_(rows, same_priors[0].columns)].astype(np.float64),
        y=np.array(data.target_names)[data.y[rows]],
        scores=_scores(priors, data, rows),
        same=_scores(same_priors, data, rows),
        prior_names=tuple(c for prior in priors for c in prior.classes),
        n_first=setup.n_first,
        pool=np.arange(len(parts) * pool_rows),
        test=np.arange(len(parts) * pool_rows, rows.size),
        data=data,
        rows=rows,
        columns=same_priors[0].columns,
        priors=priors,
        same_priors=same_priors,
        gamma=gamma,
    )


def binary_targets():
    """The 25 letters that are targets in turn: all but the background."""
    return [name for name in load_set("letter").target_names if name != BACKGROUND]


@lru_cache(maxsize=2)
def _binary_priors(prior_rows):
    """One prior per letter, each against the same rows of the background; and the width of all."""
    data = load_set("letter")
    columns = list(range(data.X.shape[1]))
    background = _prior_rows(data, (BACKGROUND,), prior_rows)
    split = {name: _prior_rows(data, (name,), prior_rows) for name in binary_targets()}
    gamma = _width(data, columns, np.concatenate([background[0], *(train for train, _ in split.values())]))
    priors = {}
    for name, own in split.items():
        labels = (data.y == data.target_names.index(name)).astype(np.int64)
        rows = [np.concatenate(both) for both in zip(own, background, strict=True)]
        model, told = _svm([("all", RBF(gamma=gamma), slice(None))]), f"SVM of {name} against {BACKGROUND}"
        priors[name] = _fitted(told, (name,), data, columns, labels, model, *rows)
    return priors, gamma


@lru_cache(maxsize=2)
def _background(prior_rows, background_rows, test_rows):
    """Rows of the background that trained no prior, for training and for tests; all priors' scores."""
    data = load_set("letter")
    pool, test = _split(data, BACKGROUND)
    pool = _take(pool[prior_rows:], background_rows, "background_rows", BACKGROUND)
    test = _take(test, test_rows, "test_rows", BACKGROUND)
    priors, _ = _binary_priors(prior_rows)
    return pool, test, _scores(priors.values(), data, np.concatenate([pool, test]))


@lru_cache(maxsize=64)
def binary_task(target, prior_rows=200, pool_rows=100, background_rows=300, test_rows=150):
    """A letter against the background (figure 6.2), with 24 priors for the other letters.

    Priors and new task use all 16 attributes and the same kernel. The background's rows that train the
    priors, those that the new task may train on and those for tests are disjoint. What the 25 targets share
    is computed once.

    Parameters
    ----------
    target : str
        One of `binary_targets`.
    prior_rows, pool_rows, background_rows, test_rows : int
        Samples of each old letter, and of the background, that train the priors; of the target and of the
        background to draw training samples from; of the target, and as many of the background, for tests.

    Returns
    -------
    TransferTask
        The same object for the same arguments: not to be changed. In its pool the target's rows stand first.
    """
    if target not in binary_targets():
        raise ValueError(f"target must be one of {binary_targets()}, got {target!r}")
    data = load_set("letter")
    priors, gamma = _binary_priors(prior_rows)
    others = tuple(prior for name, prior in priors.items() if name != target)
    pool, test = _task_rows(data, target, pool_rows, test_rows)
    background_pool, background_test, known = _background(prior_rows, background_rows, test_rows)
    own = _scores(others, data, np.concatenate([pool, test]))
    known = np.delete(known, binary_targets().index(target), axis=1)
    rows = np.concatenate([pool, background_pool, test, background_test])
    halves = own[:pool_rows], known[:background_rows], own[pool_rows:], known[background_rows:]
    scores, n_pool = np.concatenate(halves), pool_rows + background_rows
    return TransferTask(
        name=f"letter {target}/{BACKGROUND}",
        X=data.X[rows].astype(np.float64),
        y=(data.y[rows] == data.target_names.index(target)).astype(np.int64),
        scores=scores,
        same=scores,
        prior_names=tuple(prior.classes[0] for prior in others),
        n_first=len(others),
        pool=np.arange(n_pool),
        test=np.arange(n_pool, rows.size),
        data=data,
        rows=rows,
        columns=others[0].columns,
        priors=others,
        same_priors=others,
        gamma=gamma,
    )


# ----------------------------------------------------------------
# draws


def draw(task, n_per_class, seed):
    """Rows of a multiclass task's X to train on: one of each class, then another of each, and so on.

    A smaller draw of the same seed is a part of a larger one. ValueError if the pool holds fewer samples of a
    class.
    """
    rng = np.random.default_rng([_DRAW, seed])
    labels = task.y[task.pool]
    orders = [rng.permutation(task.pool[labels == label]) for label in np.unique(labels)]
    taken = [_take(order, n_per_class, "n_per_class", str(task.y[order[0]])) for order in orders]
    return np.stack(taken, axis=1).ravel()


def draw_binary(task, n_positive, n_negative, seed):
    """Rows of a binary task's X to train on, the target's first.

    A smaller draw of the same seed is a part of a larger one, on either side. ValueError if the pool holds
    fewer samples.
    """
    rng = np.random.default_rng([_DRAW_BINARY, seed])
    negative, positive = (rng.permutation(task.pool[task.y[task.pool] == label]) for label in (0, 1))
    positive = _take(positive, n_positive, "n_positive", "target")
    return np.concatenate([positive, _take(negative, n_negative, "n_negative", "background")])
