"""Multi-label MKL (NIPS 2010): the methods on genes and letters, kernel weights and AUC over time, cost against the number of classes.

A further method takes one line in `METHODS`.
"""

import functools
import time
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from cuelearn import datasets
from cuelearn.datasets.kinds import letter_groups
from cuelearn.kernels import RBF, KernelBank, Linear, Poly
from cuelearn.mkl import AverageKernelSVM, MLMKLSA, MLMKLSum, SimpleMKL, mean_auc, saddle_gap
from cuelearn.mkl.gmkl import GMKL
from cuelearn.mkl.mlmkl import SharedProblem, solve_mlmkl_sa, solve_mlmkl_sum, step_sizes
from cuelearn.mkl.vskl import VSKL

#: Samples of the training part that are held back to choose C.
VALIDATION = 1 / 4
# first entry of the seeds of this file's draws
_DRAW, _CLASSES = 70, 71


class MultiLabelTask(NamedTuple):
    """Kernels on training samples, and samples for tests.

    Attributes
    ----------
    X_train, X_test : ndarray
    Y_train, Y_test : ndarray of int, shape (n, n_classes)
        Indicators.
    kernels : list of (name, kernel, columns)
    names : tuple of str
        Of the classes.
    data : CueData
    """

    X_train: np.ndarray
    Y_train: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray
    kernels: list
    names: tuple
    data: object


def _families(cues):
    """A linear, a quadratic and an RBF kernel for each group of columns."""
    kinds = (("linear", Linear()), ("quadratic", Poly(degree=2)), ("RBF", RBF()))
    return [(f"{cue} {kind}", kernel, columns) for cue, columns in cues for kind, kernel in kinds]


def _yeast():
    data = datasets.load_yeast()
    everything = slice(0, data.X.shape[1])
    return data, data.y, _families([*data.cues.items(), ("both", everything)])


def _letter():
    data, groups = datasets.load_letter(), letter_groups()
    Y = (data.y[:, None] == np.arange(len(data.target_names))).astype(np.int8)
    return data, Y, _families([(cue, groups[cue]) for cue in ("box", "moments", "edges")])


#: Sets by name: nine kernels each.
SETS = {"yeast": _yeast, "letter": _letter}


@functools.lru_cache(maxsize=4)
def load_multilabel(name):
    """A set by its name: data, indicators, kernels."""
    return SETS[name]()


def multilabel_task(name, seed, n_train, n_test, n_classes=None):
    """Training and test samples of a set.

    Parameters
    ----------
    name : str
        Of `SETS`.
    seed : int
        Of the samples, and of the classes where not all are taken.
    n_train, n_test : int
        At most; drawn from the published training and test parts.
    n_classes : int, optional

    Returns
    -------
    MultiLabelTask
    """
    data, Y, kernels = load_multilabel(name)
    rng = np.random.default_rng([_DRAW, seed])
    train, test = rng.permutation(data.train)[:n_train], rng.permutation(data.test)[:n_test]
    classes = np.arange(Y.shape[1])
    if n_classes is not None:
        classes = np.sort(np.random.default_rng([_CLASSES, seed]).permutation(Y.shape[1])[:n_classes])
    names = tuple(str(data.target_names[c]) for c in classes)
    pick = lambda rows: (data.X[rows], Y[np.ix_(rows, classes)].astype(np.int64))  # noqa: E731
    return MultiLabelTask(*pick(train), *pick(test), kernels, names, data)


#: Of the nine kernels, for VSKL: one group for each group of columns.
GROUPS = (0, 0, 0, 1, 1, 1, 2, 2, 2)
#: Methods of table 1: a function of C and a seed.
METHODS = {
    "MLMKLSA": lambda C, seed: MLMKLSA("precomputed", C=C, random_state=seed),
    "GMKL": lambda C, seed: GMKL("precomputed", C=C),
    "MLMKLSum": lambda C, seed: MLMKLSum("precomputed", C=C),
    "SimpleMKL": lambda C, seed: SimpleMKL("precomputed", C=C),
    "VSKL": lambda C, seed: VSKL("precomputed", C=C, groups=GROUPS),
    "AverageKernelSVM": lambda C, seed: AverageKernelSVM("precomputed", C=C),
}


def _fitted(method, C, seed, bank, Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConvergenceWarning))
        warnings.simplefilter("ignore", UserWarning)
        return METHODS[method](C, seed).fit(bank, Y)


def _bank_and_rows(task, rows=None, held=None):
    """Kernels of (some) training samples, and between them and the samples to judge."""
    X = task.X_train if rows is None else task.X_train[rows]
    bank = KernelBank(task.kernels, X)
    judged = task.X_test if held is None else task.X_train[held]
    return bank, next(iter(bank.cross(judged).blocks(memory=8e9)))[1]


def chosen_C(name, method, seed, n_train, grid):
    """The C with the best mean AUC on a quarter of the training samples.

    Returns
    -------
    dict
        C, validation.
    """
    task = multilabel_task(name, seed, n_train, 1)
    held = np.arange(int(VALIDATION * len(task.X_train)))
    rows = np.arange(held.size, len(task.X_train))
    bank, cross = _bank_and_rows(task, rows, held)
    found = [mean_auc(_fitted(method, C, seed, bank, task.Y_train[rows]).decision_function(cross), task.Y_train[held]).mean for C in grid]
    best = int(np.nanargmax(found))
    return {"C": float(grid[best]), "validation": float(found[best])}


def compare_multilabel(name, method, seed, n_train, n_test, C):
    """AUC, training time and counts of one method on one draw; kernels are at hand before the clock starts.

    Returns
    -------
    dict
        auc, seconds, n_solved (SVMs; NaN where not counted), skipped (classes), kernels (largest weights, as text).
    """
    task = multilabel_task(name, seed, n_train, n_test)
    bank, cross = _bank_and_rows(task)
    begun = time.perf_counter()
    model = _fitted(method, C, seed, bank, task.Y_train)
    seconds = time.perf_counter() - begun
    found = mean_auc(model.decision_function(cross), task.Y_test)
    weights = np.atleast_2d(model.kernel_weights_).mean(axis=0)
    largest = np.argsort(-weights)[:3]
    return {
        "auc": found.mean, "seconds": seconds, "n_solved": float(getattr(model, "n_solved_", np.nan)), "skipped": len(found.skipped),
        "kernels": ", ".join(f"{task.kernels[a][0]} {weights[a] / weights.sum():.2f}" for a in largest),
    }  # fmt: skip


def cost_to_gap(name, method, seed, n_train, n_classes, C, wanted, most, delta=0.2):
    """SVMs and seconds until the certified saddle-point gap (SA) or the distance from the best objective (Sum) is small enough.

    The gap of the averaged iterate is measured at 25, 50, 100, ... iterations, with the clock stopped.

    Returns
    -------
    dict
        n_solved, seconds, n_iter, gap (relative, reached), reached (whether it was).
    """
    task = multilabel_task(name, seed, n_train, 1, n_classes)
    bank = KernelBank(task.kernels, task.X_train)
    signs = np.where(task.Y_train > 0, 1.0, -1.0).T.copy()
    problem, judge = SharedProblem(bank, signs, C), SharedProblem(bank, signs, C, 1e-4)
    n_iter, rng = 25, np.random.default_rng(seed)
    while True:
        problem.alphas[...], problem.n_solved = 0.0, 0
        if method == "MLMKLSA":
            result = solve_mlmkl_sa(problem, n_iter=n_iter, delta=delta, tol=None, rng=rng)
            gamma = result.gamma
        else:
            result = solve_mlmkl_sum(problem, n_iter=n_iter, tol=None)
            gamma = np.full(len(signs), 1.0 / len(signs))
        found = saddle_gap(judge, result.kernel_weights, gamma, tol=0.1 * wanted)
        if method == "MLMKLSum":  # its own problem: mean of the classes, at these weights and at the best ones
            values = [judge.solve(k, result.kernel_weights) for k in range(len(signs))]
            gap = float(np.mean([v.value + v.gap for v in values])) - found.least
            scale = found.least
        else:
            gap, scale = found.gap, found.worst
        if gap <= wanted * scale or n_iter >= most:
            seconds = float(result.history["seconds"].iloc[-1])
            return {"n_solved": result.n_solved, "seconds": seconds, "n_iter": n_iter, "gap": gap / scale, "reached": gap <= wanted * scale}
        n_iter *= 2


def weight_paths(name, method, seed, n_train, C):
    """Kernel weights of a method against training time; the mean over classes where each has its own.

    Returns
    -------
    DataFrame
        Columns seconds, and one for each kernel: shares of the sum.
    """
    task = multilabel_task(name, seed, n_train, 1)
    model = _fitted(method, C, seed, KernelBank(task.kernels, task.X_train), task.Y_train)
    path = model.path_ if model.path_.ndim == 2 else model.path_.mean(axis=1)
    seconds = np.concatenate([[0.0], model.history_["seconds"].to_numpy()])[: len(path)]
    shares = path[: len(seconds)] / path[: len(seconds)].sum(axis=1, keepdims=True)
    return pd.DataFrame({"seconds": seconds, **{kernel[0]: shares[:, a] for a, kernel in enumerate(task.kernels)}})


def over_time(name, method, seed, n_train, n_test, C, n_iter, at):
    """AUC against training time of ML-MKL-SA (averaged kernel weights) or -Sum (present ones), no stopping rule.

    Returns
    -------
    DataFrame
        Columns iteration, seconds, auc, and one for each kernel's weight.
    """
    task = multilabel_task(name, seed, n_train, n_test)
    bank, cross = _bank_and_rows(task)
    problem = SharedProblem(bank, np.where(task.Y_train > 0, 1.0, -1.0).T.copy(), C)
    if method == "MLMKLSA":
        result = solve_mlmkl_sa(problem, n_iter=n_iter, tol=None, rng=np.random.default_rng(seed))
    else:
        result = solve_mlmkl_sum(problem, n_iter=n_iter, tol=None)
    return _along(task, bank, cross, problem, result, at)


def over_iterations(name, seed, n_train, n_test, C, n_iter, delta, factor, at):
    """AUC of the SVMs on SA's averaged kernel weights after some numbers of iterations, for `factor` times the automatic step sizes.

    Returns
    -------
    DataFrame
        Columns iteration, seconds, auc, and one for each kernel's weight.
    """
    task = multilabel_task(name, seed, n_train, n_test)
    bank, cross = _bank_and_rows(task)
    signs = np.where(task.Y_train > 0, 1.0, -1.0).T.copy()
    problem = SharedProblem(bank, signs, C)
    even = np.full(bank.n_kernels, 1.0 / bank.n_kernels)
    eta = tuple(factor * step for step in step_sizes("auto", problem, n_iter, delta, even))
    result = solve_mlmkl_sa(problem, n_iter=n_iter, delta=delta, eta=eta, tol=None, rng=np.random.default_rng(seed))
    return _along(task, bank, cross, problem, result, at)


def _along(task, bank, cross, problem, result, at):
    rows = []
    for t in (t for t in at if t <= result.n_iter):
        weights = result.path[t]
        coef = np.stack([problem.solve(k, weights).alpha * problem.signs[k] for k in range(problem.n_problems)], axis=1)
        scores = np.tensordot(weights.astype(cross.dtype), cross, axes=1) @ coef
        seconds = 0.0 if t == 0 else float(result.history["seconds"].iloc[t - 1])
        rows.append({"iteration": t, "seconds": seconds, "auc": mean_auc(scores, task.Y_test).mean,
                     **{kernel[0]: float(w) for kernel, w in zip(task.kernels, weights, strict=True)}})  # fmt: skip
    return pd.DataFrame(rows)


def gap_after(name, seed, n_train, n_classes, C, n_iter):
    """Saddle-point gap (equation 11) of ML-MKL-SA's averages after a number of iterations, step sizes set for that number.

    Returns
    -------
    dict
        gap (relative to the worst class), slack.
    """
    task = multilabel_task(name, seed, n_train, 1, n_classes)
    bank, signs = KernelBank(task.kernels, task.X_train), np.where(task.Y_train > 0, 1.0, -1.0).T.copy()
    result = solve_mlmkl_sa(SharedProblem(bank, signs, C), n_iter=n_iter, tol=None, rng=np.random.default_rng([seed, n_iter]))
    found = saddle_gap(SharedProblem(bank, signs, C, 1e-5), result.kernel_weights, result.gamma, tol=1e-4)
    return {"gap": found.gap / found.worst, "slack": found.slack / found.worst}
