r"""One binary problem per class on the same kernels: labels, rounds over classes, cutting planes.

A class without positive or without negative training samples (with weight) is not trained: its score is the
constant -1 or 1, its kernel weights are 0, and means over classes exclude it (NIPS 2010).

A *round* is one step of every unconverged class, a generator (`ClassSubproblem.step`) that yields
coefficients c to get :math:`c^\top K_j c`, computed for all classes in one read of the kernels.

For a fixed SVM dual point the dual value is affine in the kernel weights *d*: MKL with :math:`\|\bar
w\|_{2,1}` is :math:`\min_{d \ge 0, \sum_j d_j = 1} \max_t s_t - \sum_j d_j g_{tj}`, with one function (*cut*)
per solved SVM (`CuttingPlanes`, of SILP and MC-MKL).
"""

from __future__ import annotations

import functools
from numbers import Real
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted

from cuelearn.core.docs import documented
from cuelearn.core.estimator import POSITIVE, parameters
from cuelearn.core.run import Run
from cuelearn.core.samples import InputLike, class_weights
from cuelearn.expect import expect, expect_shape, warn_user
from cuelearn.kernels.rows import quadratic_forms
from cuelearn.kernels.types import ArrayLike, Callback, ClassWeight, MatrixLike
from cuelearn.mkl.base import KernelClassifier, two_columns
from cuelearn.mkl.rivals.svm import problem_weights, targets_of


def check_solved(solution):
    if solution.status != 0:
        raise RuntimeError(f"the linear program over the kernel weights failed: {solution.message}")


class CuttingPlanes:
    """Linear program over the cuts so far; `bound` is a lower bound of the optimum."""

    def __init__(self, n_kernels):
        self.n_kernels = n_kernels
        self.bound = -np.inf
        self._constants = []
        self._slopes = []

    def add(self, constant, slopes):
        self._constants.append(constant)
        self._slopes.append(slopes)

    def solve(self):
        """Minimise the largest cut over the simplex; RuntimeError if HiGHS fails."""
        slopes = np.array(self._slopes)
        constants = np.array(self._constants)
        # HiGHS has absolute tolerances (1e-7) and drops coefficients below 1e-9, but early cuts are steep:
        # scale rows to around 1; the unit of the value is the flattest cut's size
        size = np.maximum(np.maximum(np.abs(slopes).max(axis=1), np.abs(constants)), np.finfo(float).tiny)
        unit = max(size.min(), 1e-8 * size.max())
        size = np.maximum(size, 1e-9 * unit)  # a cut may be 0, as before the first update
        at_most = {
            "A_ub": np.column_stack([-slopes / size[:, None], -unit / size]),
            "b_ub": -constants / size,
        }
        of_sum = {"A_eq": np.r_[np.ones(self.n_kernels), 0.0][None], "b_eq": [1.0]}
        bounds = [(0.0, None)] * self.n_kernels + [(None, None)]
        cost = np.r_[np.zeros(self.n_kernels), 1.0]
        solution = linprog(cost, **at_most, **of_sum, bounds=bounds, method="highs-ds")
        check_solved(solution)
        d = np.maximum(0.0, solution.x[:-1])
        d /= d.sum()
        # dual value of the feasible multipliers: a bound for any tolerance
        share = np.maximum(0.0, -np.asarray(solution.ineqlin.marginals)) * unit / size
        if share.sum() > 0.0:
            share /= share.sum()
            self.bound = max(self.bound, float(share @ constants - (share @ slopes).max()))
        return d


class MeanAUC(NamedTuple):
    """Mean area, areas of all classes (NaN if skipped), skipped classes."""

    mean: float
    per_class: np.ndarray
    skipped: list


def mean_auc(scores: ArrayLike, targets: MatrixLike, skip: ArrayLike = ()) -> MeanAUC:
    """Area under the precision-recall curve by average precision, mean over classes (NIPS 2010, section 3.4).

    Parameters
    ----------
    scores : array-like of finite numbers, shape (n, n_classes), or (n,) for one class
    targets : array-like or sparse matrix of the same shape
        0 and 1, False and True, or -1 and 1. Classes without both values are skipped.
    skip : array-like of int, default ()
        Further classes to skip: a model's `skipped_classes_`, whose scores are constant.

    Returns
    -------
    MeanAUC
        The mean is NaN if no class is left.

    Raises
    ------
    ValueError
        On invalid arguments.

    Examples
    --------
    >>> from cuelearn.mkl import mean_auc
    >>> result = mean_auc([[0.9, 0.1], [0.5, 0.8], [0.2, 0.3]], [[1, 0], [0, 0], [1, 0]])
    >>> round(result.mean, 3), result.skipped  # the second class has no positive sample
    (0.833, [1])
    """
    scores = check_array(scores, dtype=np.float64, ensure_2d=False, input_name="scores")
    targets = as_array("targets", targets)
    scores, targets = (x[:, None] if x.ndim == 1 else x for x in (scores, targets))
    signs = signs_of(targets, len(scores), name="targets")
    scores = expect("scores", scores, shape=signs.T.shape)
    n_classes = len(signs)
    usable = learnable(signs)
    skip = list(skip)
    usable[expect("skip", skip, kind="int", shape=("k",), low=0, high=n_classes - 1, least=0)] = False
    areas = np.full(n_classes, np.nan)
    areas[usable] = _average_precision(scores[:, usable], signs[usable].T > 0.0)
    mean = np.nan
    if usable.any():
        mean = float(areas[usable].mean())
    return MeanAUC(mean, areas, np.flatnonzero(~usable).tolist())


def _average_precision(scores, positive):
    """Per column; equal scores are one threshold. 30 times faster than scikit-learn by column."""
    order = np.argsort(-scores, axis=0)
    scores, hits = (np.take_along_axis(x, order, axis=0) for x in (scores, positive))
    precision = np.cumsum(hits, axis=0) / np.arange(1, len(hits) + 1)[:, None]
    last = np.where(np.diff(scores, axis=0, append=-np.inf) < 0, np.arange(len(hits))[:, None], len(hits))
    last = np.minimum.accumulate(last[::-1], axis=0)[::-1]
    return (hits * np.take_along_axis(precision, last, axis=0)).sum(axis=0) / hits.sum(axis=0)


def as_array(name, values):
    try:
        if hasattr(values, "toarray"):
            return values.toarray()
        return np.asarray(values)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array, got rows of unequal length") from None


def holds_numbers(values):
    if values.dtype.kind == "O":
        return all(isinstance(v, Real) for v in values.flat)
    return values.dtype.kind in "biuf"


def is_indicator(y, one_column=False):
    """Whether y is a matrix of several columns, or with `one_column` one of -1, 0 and 1."""
    if y is None:
        return False
    try:
        values = as_array("y", y)
    except ValueError:
        got = "rows of unequal length"
    else:
        sets = (list, tuple, set, frozenset, np.ndarray)
        plain = values.ndim in (1, 2)
        if plain and not (values.dtype == object and any(isinstance(v, sets) for v in values.flat)):
            if values.ndim == 1 or values.shape[1] > 1:
                return values.ndim == 2
            return one_column and values.dtype.kind in "biuf" and bool(np.isin(values, (-1, 0, 1)).all())
        got = "label sets"
        if not plain:
            got = f"shape {values.shape}"
    raise ValueError(
        "y must be class labels, shape (n,), or an indicator matrix of 0 and 1, shape (n, n_classes), which "
        f"scikit-learn's MultiLabelBinarizer makes of label sets; got {got}"
    )


def signs_of(y, n_samples, name="y"):
    """An indicator matrix (0/1 or -1/1, or sparse) as signs, (n_classes, n)."""
    values = as_array(name, y)
    expect_shape(name, values, (n_samples, "n_classes"))
    numeric = holds_numbers(values)
    levels = np.unique(values) if numeric else values.ravel()
    if not numeric or not (np.isin(levels, (0, 1)).all() or np.isin(levels, (-1, 1)).all()):
        given = repr(levels[:5].tolist())[:60]
        raise ValueError(
            f"{name} must hold 0 and 1 (or -1 and 1) where it is an indicator matrix, got {given}"
        )
    return np.ascontiguousarray(np.where(values > 0, 1.0, -1.0).T)


def learnable(signs):
    positive = signs > 0
    return positive.any(axis=1) & ~positive.all(axis=1)


def numbers_of(signs):
    if len(signs) > 1:
        return signs.argmax(axis=0)
    return (signs[0] > 0.0).astype(int)


@parameters
class MultiLabelMKL(KernelClassifier):
    """Base of the methods with a binary problem per class, for indicator matrices and class labels.

    `_train(signs, sample_weight)` gets a row of -1 and 1 per problem and calls `_keep_problems`. `coding_`
    holds the values for no and yes in an indicator matrix.
    """

    C: float = 1.0
    class_weight: ClassWeight = None
    memory: float = 2e9

    _multi_output = True
    _one_column = False  # a single column is an indicator

    def _start(self, X, y, sample_weight=None):
        self.indicator_ = is_indicator(y, self._one_column)  # scikit-learn's message says less
        return super()._start(X, y, sample_weight)

    def _labels(self, y, n_samples, sample_weight):
        """Signs (n_problems, n); two labels are one problem, for the second."""
        if not self.indicator_:
            self.n_outputs_ = 1
            self.skipped_classes_ = np.empty(0, dtype=np.int64)
            self._signs_of_skipped = np.empty(0)
            vars(self).pop("coding_", None)
            labels = super()._labels(y, n_samples, sample_weight)
            return 2.0 * np.stack(targets_of(labels, self.classes_.size)) - 1.0
        signs = signs_of(y, n_samples)
        with_weight = signs
        if sample_weight is not None:
            with_weight = signs[:, sample_weight > 0.0]
        usable = learnable(with_weight)
        if not usable.any():
            raise ValueError("y must have a class with positive and negative samples")
        self.n_outputs_ = len(signs)
        self.skipped_classes_ = np.flatnonzero(~usable)
        self.coding_ = np.array([int(as_array("y", y).min()), 1])  # some class has both values
        self.classes_ = self.coding_.copy() if self.n_outputs_ == 1 else np.arange(self.n_outputs_)
        self._all_classes = self.classes_
        if not usable.all():
            skipped = self.skipped_classes_.tolist()
            warn_user(f"classes without positive or without negative samples are not trained: {skipped}")
        self._signs_of_skipped = with_weight[self.skipped_classes_, 0]
        return signs[usable]

    def _problem_weights(self, signs, sample_weight):
        if isinstance(self.class_weight, dict) and self.indicator_ and self.n_outputs_ > 1:
            of_columns = class_weights(self.class_weight, self.classes_, None)
            of_problems = np.delete(list(of_columns.values()), self.skipped_classes_)[:, None]
            sides = np.where(signs > 0.0, of_problems, 1.0)
            if sample_weight is None:
                return sides
            return sides * sample_weight
        return problem_weights(signs, sample_weight, self.class_weight, self.classes_, numbers_of(signs))

    def _fill(self, values, skipped, axis=-1):
        places = self.skipped_classes_ - np.arange(self.skipped_classes_.size)
        return np.insert(np.ascontiguousarray(values, dtype=np.float64), places, skipped, axis=axis)

    def _columns(self, values, skipped=0.0):
        """Values (..., n_problems) of all score columns; two labels get halves."""
        values = self._fill(values, skipped)
        if not self.indicator_ and values.shape[-1] == 1:
            return two_columns(values)
        return values

    def _rows(self, values):
        """Kernel weights (..., n_problems, n_kernels) for all classes; two labels get equal rows."""
        values = self._fill(values, 0.0, axis=-2)
        if not self.indicator_ and values.shape[-2] == 1:
            return np.repeat(values, 2, axis=-2)
        return values

    def _keep_problems(self, coef, kernel_weights, bias=None):
        if kernel_weights.ndim == 2:
            kernel_weights = self._rows(kernel_weights)
        self._keep(self._columns(coef), kernel_weights)
        vars(self).pop("intercept_", None)
        if bias is None and self.skipped_classes_.size:
            bias = np.zeros(coef.shape[1])
        if bias is not None:
            self.intercept_ = self._columns(bias, self._signs_of_skipped)

    def _class_scores(self, X):
        scores = super()._class_scores(X)
        if hasattr(self, "intercept_"):
            return scores + self.intercept_
        return scores

    def decision_function(self, X: InputLike) -> np.ndarray:
        """Decision values, (n, n_classes); for two class labels (n,), the second's score minus the first's.

        X is as in `fit`, or a CrossBank. scikit-learn's `cross_val_predict` needs a one-column indicator
        matrix as a vector, ``y[:, 0]``.
        """
        check_is_fitted(self)
        if self.indicator_:
            return self._class_scores(X)
        return super().decision_function(X)

    def predict(self, X: InputLike) -> np.ndarray:
        """Classes with a positive score, coded as y, (n, n_classes); for class labels the best class."""
        check_is_fitted(self)
        if not self.indicator_:
            return super().predict(X)
        return self.coding_[(self._class_scores(X) > 0.0).astype(np.int64)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


TEXTS = {
    "C": ("float > 0", "C of the SVMs (not divided by n)."),
    "tol": (
        "float > 0",
        "A class stops at this relative duality gap. Objectives of methods with a bias are divided by C n.",
    ),
    "kernel_weights_": (
        "ndarray, shape (n_classes, n_kernels)",
        "At the best point of each class; 0 for skipped ones. Two class labels have equal rows.",
    ),
    "n_updates_": ("int", "SVM iterations, each changing two coefficients; without bias, SVMs."),
}
documented = functools.partial(documented, texts=TEXTS)


class ClassPoint(NamedTuple):
    """Decision values of one class are ``sum_j weights[j] * K_j @ coef + bias``."""

    weights: np.ndarray
    coef: np.ndarray
    bias: float | None
    extra: dict  # specific to the method


class ClassSubproblem:
    """Class k of a problem with a `bank`; subclasses define the generator `step`.

    `stalled`: no more accuracy is possible.
    """

    better = 0.0  # required relative improvement

    def __init__(self, problem, k, tol):
        self.problem = problem
        self.k = k
        self.tol = tol
        self.weights = np.full(problem.bank.n_kernels, 1.0 / problem.bank.n_kernels)
        self.best = None
        self.objective = np.inf
        self.lower = 0.0
        self.n_solved = 0
        self.n_updates = 0
        self.stalled = False

    def start(self):
        """Generator run before the first step."""
        yield from ()

    def measure(self, weights, coef, objective, lower, bias=None, **extra):
        """Keep the point as `best`, and the bound as `lower`, each if better."""
        if objective < self.objective * (1.0 - self.better):
            self.objective = objective
            self.best = ClassPoint(weights, coef, bias, extra)
        self.lower = max(self.lower, lower)

    @property
    def gap(self):
        return max(0.0, self.objective - self.lower)

    @property
    def converged(self):
        return self.gap <= self.tol * self.objective


def advance(bank, generators, parallel):
    """Run generators, with their quadratic forms computed together."""
    answers = [None] * len(generators)
    while generators:
        requests = parallel(delayed(resume)(*each) for each in zip(generators, answers, strict=True))
        waiting = [k for k, coef in enumerate(requests) if coef is not None]
        generators = [generators[k] for k in waiting]
        if waiting:
            forms = quadratic_forms(bank, np.stack([requests[k] for k in waiting], axis=1))
            answers = [forms[:, i] for i in range(len(waiting))]


def resume(generator, answer):
    try:
        return generator.send(answer)
    except StopIteration:
        return None


class ClassesResult(NamedTuple):
    kernel_weights: np.ndarray  # (n_problems, n_kernels)
    dual_coef: np.ndarray  # (n_samples, n_problems)
    intercept: np.ndarray | None  # (n_problems,)
    objectives: np.ndarray  # (n_problems,)
    dual_gaps: np.ndarray  # (n_problems,), certified
    path: np.ndarray  # (n_iter + 1, n_problems, n_kernels): weights after 0, 1, ... rounds
    history: object
    n_iter: int
    n_solved: int  # SVMs
    n_updates: int  # steps of the SVMs
    converged: np.ndarray  # (n_problems,)
    stopped: bool  # by the callback
    extra: list  # of dict, for each class


def run_classes(subproblems, max_iter, *, name, scale=1.0, n_jobs=None, callback=None, verbose=False):
    """A `ClassesResult`, objectives divided by `scale`."""
    run = Run(callback, verbose=verbose)
    bank = subproblems[0].problem.bank
    path = [np.stack([m.weights for m in subproblems])]
    known = np.nan
    if not bank.indefinite:
        known = 1.0 / scale

    def result():
        weights, coefs, bias, extra = zip(*(m.best for m in subproblems), strict=True)
        return ClassesResult(
            kernel_weights=np.stack(weights),
            dual_coef=np.stack(coefs, axis=1),
            intercept=None if None in bias else np.array(bias),
            objectives=np.array([m.objective for m in subproblems]) / scale,
            dual_gaps=np.array([m.gap for m in subproblems]) * known,
            path=np.array(path),
            history=run.history(),
            n_iter=len(path) - 1,
            n_solved=sum(m.n_solved for m in subproblems),
            n_updates=sum(m.n_updates for m in subproblems),
            converged=np.array([m.converged and not bank.indefinite for m in subproblems]),
            stopped=run.stopped,
            extra=list(extra),
        )

    with Parallel(n_jobs=n_jobs, require="sharedmem") as parallel:
        advance(bank, [m.start() for m in subproblems], parallel)
        active = subproblems
        for step in run.rounds(max_iter, name):
            advance(bank, [m.step() for m in active], parallel)
            path.append(np.stack([m.weights for m in subproblems]))
            active = [m for m in subproblems if not (m.converged or m.stalled)]
            row = {"stage": "batch", "epoch": step, "n_updates": sum(m.n_updates for m in subproblems)}
            row["n_support"] = np.count_nonzero(np.any([m.best.coef for m in subproblems], axis=0))
            row["objective"] = float(np.sum([m.objective for m in subproblems])) / scale
            row["dual_gap"] = float(np.sum([m.gap for m in subproblems])) * known
            note = f"{sum(not m.converged for m in subproblems)} classes to go"
            if run.end(step, result, note=note, **row) or not active:
                break
    return result()


@parameters
class PerClassMKL(MultiLabelMKL):
    """Base of estimators with `_solve(signs, weights, total, **options)`; `total` is that of the samples."""

    tol: float = 1e-2
    max_iter: int = 200
    callback: Callback = None
    verbose: bool = False

    _parameter_constraints = {"tol": POSITIVE}

    def _train(self, signs, sample_weight):
        options = {"max_iter": self.max_iter, "verbose": self.verbose, "callback": self._watch(self._take)}
        weights = self._problem_weights(signs, sample_weight)
        total = signs.shape[1] if sample_weight is None else float(sample_weight.sum())
        result = self._solve(signs, weights, total, **options)
        self._take(result)
        missed = ~result.converged
        if missed.any() and not result.stopped:
            worst = float((result.dual_gaps / result.objectives)[missed].max())
            advice = "raise max_iter or tol"
            if result.n_iter != self.max_iter:
                advice = self._exhausted()
            warn_user(
                f"{type(self).__name__} did not reach tol={self.tol:g} for {missed.sum()} of {missed.size} "
                f"classes: the largest relative duality gap is {worst:.2g} after {result.n_iter} rounds; "
                f"{advice}",
                ConvergenceWarning,
            )

    def _exhausted(self):
        finer = ""
        if self.bank_.dtype == np.float32:
            finer = ", or give the kernels as float64 matrices"
        return f"the SVMs' accuracy is exhausted, raise tol{finer}"

    def _take(self, result):
        self._keep_problems(result.dual_coef, result.kernel_weights, result.intercept)
        self.path_ = self._rows(result.path)
        self.history_ = result.history
        self.objectives_ = self._fill(result.objectives, np.nan)
        self.dual_gaps_ = self._fill(result.dual_gaps, np.nan)
        self.objective_ = float(result.objectives.sum())
        self.dual_gap_ = float(result.dual_gaps.sum())
        self.n_iter_ = result.n_iter
        self.n_solved_ = result.n_solved
        self.n_updates_ = result.n_updates
        self.converged_ = bool(result.converged.all())
