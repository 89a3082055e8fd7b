"""Binary SVMs on one kernel matrix: with bias (libsvm), or without, warm-started (coordinate ascent)."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from cuelearn.compiled import njit
from cuelearn.core.samples import loss_weights
from cuelearn.expect import expect, expect_instance, warn_user
from cuelearn.kernels import KernelBank
from cuelearn.kernels.matrices import warn_indefinite
from cuelearn.kernels.rows import combined_kernel, quadratic_forms
from cuelearn.kernels.types import ArrayLike, Index
from cuelearn.mkl.base import two_columns

# maximum steps of libsvm, fewer for hard problems, which rounding may keep from converging
MOST_STEPS = 10_000_000
FEW_STEPS = 100_000
HARD = 1e7
# maximum sweeps without bias for hard problems
FEW_SWEEPS = 1000
# maximum sweeps between two gap computations
LOOK = 20
# violations below this share of the largest are postponed
WAITING = 0.3
# factor on a tolerance that left too large a gap
TIGHTER = 0.5


class BinarySVM(NamedTuple):
    support: np.ndarray
    coef: np.ndarray  # signed
    intercept: float
    n_iter: int  # steps of libsvm
    converged: bool  # whether these were enough


def fit_svc(kernel, target, C, tol=1e-3, weights=None, max_iter=None):
    """libsvm on a validated kernel matrix, with the bits of scikit-learn's `SVC`; a `BinarySVM`.

    The checks of `SVC` take ten times as long as a small SVM, so libsvm is called directly, and `SVC` if that
    fails. With `max_iter` the caller checks `converged`.
    """
    from sklearn import svm  # slow to import

    libsvm = getattr(svm, "_libsvm", None)
    low = target.min()
    high = target.max()
    if weights is not None and not weights.all():  # weight 0 leaves a sample out
        kept = np.flatnonzero(weights)
        within = np.ascontiguousarray(kernel[np.ix_(kept, kept)])
        machine = fit_svc(within, target[kept], C, tol, weights[kept], max_iter)
        return machine._replace(support=kept[machine.support])
    hardness = C * float(np.trace(kernel)) / len(kernel) * (1.0 if weights is None else weights.max())
    most = MOST_STEPS
    if hardness > HARD:
        most = FEW_STEPS
    if max_iter is not None:
        most = min(most, max_iter)

    def checked(*result):
        machine = BinarySVM(*result, converged=result[-1] < most)
        if max_iter is None and not machine.converged:
            warn_user(
                f"an SVM did not converge in {machine.n_iter} steps: C times the mean diagonal of the kernel "
                f"is {hardness:.2g}; lower C, or divide the kernels by their mean diagonal",
                ConvergenceWarning,
            )
        return machine

    if libsvm is not None and low < high:
        with contextlib.suppress(AttributeError, TypeError, ValueError):
            libsvm.set_verbosity_wrap(0)
            options = {"svm_type": 0, "kernel": "precomputed", "C": float(C), "tol": float(tol)}
            options |= {"cache_size": 1000.0, "class_weight": np.ones(2), "max_iter": most}
            if weights is not None:
                options["sample_weight"] = np.ascontiguousarray(weights, dtype=np.float64)
            signs = (target == high).astype(np.float64)
            support, _, _, coef, intercept, *_, n_iter = libsvm.fit(kernel, signs, **options)
            n_iter = int(np.ravel(n_iter)[0])
            return checked(support, -coef[0], -float(intercept[0]), n_iter)
    with config_context(assume_finite=True, skip_parameter_validation=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = svm.SVC(C=C, kernel="precomputed", tol=tol, cache_size=1000, max_iter=most)
        machine.fit(kernel, target, sample_weight=weights)
    bias = float(machine.intercept_[0])
    n_iter = int(machine.n_iter_[0])
    return checked(machine.support_, machine.dual_coef_[0], bias, n_iter)


def balance_weights(target, sample_weight=None):
    """Weights n / (2 n_side) of both sides, counted by `sample_weight`."""
    positive = np.asarray(target) > 0
    weights = sample_weight
    if sample_weight is None:
        weights = np.ones(positive.size)
    total = weights.sum()
    of_positive = weights[positive].sum()
    of_negative = total - of_positive
    return total / (2.0 * np.where(positive, of_positive or 1.0, of_negative or 1.0))


def problem_weights(targets, sample_weight, class_weight, classes, labels):
    """Loss weights of binary problems, (n_problems, n), or None if all are 1."""
    if class_weight == "balanced":
        sides = np.array([balance_weights(target, sample_weight) for target in targets])
        if sample_weight is None:
            return sides
        return sides * sample_weight
    weights = loss_weights(sample_weight, class_weight, classes, labels)
    if weights is None:
        return None
    return np.tile(weights, (len(targets), 1))


def targets_of(labels, n_classes):
    """0/1 targets: one for two classes, else one class against the rest."""
    return [(labels == c).astype(int) for c in ([1] if n_classes == 2 else range(n_classes))]


def one_versus_rest(kernel, labels, n_classes, C, n_jobs=None, weights=None):
    """`svms_of` for `targets_of`; for two classes half in each column."""
    coef, bias = svms_of(kernel, targets_of(labels, n_classes), C, n_jobs, weights)
    if n_classes == 2:
        return two_columns(coef), two_columns(bias)
    return coef, bias


def svms_of(kernel, targets, C, n_jobs=None, weights=None):
    """SVMs with bias: coefficients (n, n_targets), biases."""
    coef = np.zeros((kernel.shape[0], len(targets)))
    bias = np.empty(len(targets))

    def fit(target, of_target):
        sides = np.unique(target if of_target is None else target[of_target > 0.0])
        if sides.size == 1:  # a class that no sample, or every one, belongs to
            return BinarySVM(np.zeros(0, np.int64), np.zeros(0), 2.0 * sides[0] - 1.0, 0, converged=True)
        return fit_svc(kernel, target, C, weights=of_target)

    problems = list(zip(targets, [None] * len(targets) if weights is None else weights, strict=True))
    fits = itertools.starmap(fit, problems)  # starting a pool takes longer than a small SVM
    if n_jobs not in (None, 1):
        pool = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
        fits = pool(delayed(fit)(*problem) for problem in problems)
    for k, svm in enumerate(fits):
        coef[svm.support, k] = svm.coef
        bias[k] = svm.intercept
    return coef, bias


class BoxSolution(NamedTuple):
    """The optimum is between the dual `value` and ``value + gap``."""

    alpha: np.ndarray
    value: float
    gap: float
    sweeps: int


@njit(cache=True)
def box_ascent(kernel, signs, C, weights, alpha, scores, tolerance, max_sweeps):
    """Coordinate ascent until no violation exceeds `tolerance`; returns the sweeps."""
    n = alpha.shape[0]
    threshold = tolerance
    for sweep in range(max_sweeps):
        worst = 0.0
        for i in range(n):
            slope = 1.0 - signs[i] * scores[i]
            limit = C * weights[i]
            if (slope > 0.0 and alpha[i] >= limit) or (slope < 0.0 and alpha[i] <= 0.0):
                continue
            worst = max(worst, abs(slope))
            if abs(slope) <= threshold:
                continue
            curvature = np.float64(kernel[i, i])
            if curvature > 0.0:
                new = min(limit, max(0.0, alpha[i] + slope / curvature))
            else:
                new = limit if slope > 0.0 else 0.0
            step = (new - alpha[i]) * signs[i]
            alpha[i] = new
            if step != 0.0:
                row = kernel[i]
                for k in range(n):
                    scores[k] += step * row[k]
        if worst <= tolerance:
            return sweep + 1
        threshold = max(tolerance, WAITING * worst)  # postpone small violations
    return max_sweeps


@njit(cache=True)
def box_svm(kernel, signs, C, weights, alpha, tol, max_sweeps):
    """`box_ascent` until the gap is small; returns value, gap and sweeps."""
    n = alpha.shape[0]
    scores = np.zeros(n)
    for i in range(n):
        if alpha[i] != 0.0:
            row = kernel[i]
            coef = alpha[i] * signs[i]
            for k in range(n):
                scores[k] += coef * row[k]
    tolerance = 0.1
    sweeps = 0
    while True:
        most = min(LOOK, max_sweeps - sweeps)
        done = box_ascent(kernel, signs, C, weights, alpha, scores, tolerance, most)
        sweeps += done
        total = 0.0
        quadratic = 0.0
        losses = 0.0
        for i in range(n):
            margin = signs[i] * scores[i]
            total += alpha[i]
            quadratic += alpha[i] * margin
            losses += weights[i] * max(0.0, 1.0 - margin)
        value = total - 0.5 * quadratic
        primal = 0.5 * quadratic + C * losses
        gap = max(0.0, primal - value)
        if gap <= tol * primal or sweeps >= max_sweeps:
            return value, gap, sweeps
        if done < LOOK:
            tolerance *= TIGHTER


def solve_box_svm(kernel, signs, C, *, weights=None, tol=1e-3, alpha=None, max_sweeps=10_000):
    r"""Binary SVM without bias to a gap of `tol` relative to the primal objective; a `BoxSolution`.

    .. math:: H = \max_{0 \le \alpha_i \le C c_i} \alpha^\top 1 - \frac12 (\alpha \circ y)^\top K (\alpha
        \circ y) = \min_f \frac12 \|f\|^2 + C \sum_i c_i [1 - y_i f(x_i)]_+

    `signs` are -1.0 and 1.0, `weights` the :math:`c_i`, `alpha` a start. Bucak, Jin, Jain, NIPS 2010,
    equation 2; Hsieh et al., ICML 2008.
    """
    signs = np.ascontiguousarray(signs, dtype=np.float64)
    if weights is None:
        weights = np.ones(signs.size)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if alpha is None:
        alpha = np.zeros(signs.size)
    alpha = np.clip(np.array(alpha, np.float64), 0.0, C * weights)
    value, gap, sweeps = box_svm(kernel, signs, float(C), weights, alpha, float(tol), int(max_sweeps))
    return BoxSolution(alpha, value, gap, sweeps)


def is_hard(bank, C):
    """Whether C is so large that rounding may prevent convergence."""
    return bool(C * float(bank.diagonal.mean(axis=1).max()) > HARD)


class SharedProblem:
    """Binary SVMs without bias of several classes on combinations of the same kernels, with warm starts.

    Parameters
    ----------
    bank : KernelBank
    signs : array-like, shape (n_problems, n)
        -1 and 1.
    C, svm_tol : float > 0
        C and relative gap of every SVM.
    max_sweeps : int
        Per SVM; at most 1,000 for very large C.
    weights : ndarray of float >= 0, shape (n_problems, n), optional
        Factors on C, default 1.

    Attributes
    ----------
    alphas : ndarray, shape (n_problems, n)
        Last solution of each class, the start of the next.
    n_solved, n_missed : int
        SVMs solved, and those that did not reach `svm_tol`.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mkl import SharedProblem
    >>> problem = SharedProblem(KernelBank.from_stack(np.eye(4)), [[1, 1, -1, -1]], C=10)
    >>> solution = problem.solve(0, np.ones(1))
    >>> solution.alpha, problem.n_solved
    (array([1., 1., 1., 1.]), 1)
    """

    def __init__(
        self,
        bank: KernelBank,
        signs: ArrayLike,
        C: float,
        svm_tol: float = 1e-3,
        max_sweeps: int = 10_000,
        *,
        weights: np.ndarray | None = None,
    ):
        expect_instance("bank", bank, KernelBank)
        self.signs = np.ascontiguousarray(signs, dtype=np.float64)
        shape = self.signs.shape
        n = bank.n_samples
        if len(shape) != 2 or not shape[0] or shape[1] != n or not np.isin(self.signs, (-1, 1)).all():
            raise ValueError(
                f"signs must be -1 and 1, with a row for each problem and {n} columns, got shape {shape}"
            )
        warn_indefinite(bank.indefinite)
        self.bank = bank
        self.C = expect("C", C, above=0)
        self.svm_tol = expect("svm_tol", svm_tol, above=0)
        self.weights = weights
        if weights is None:
            self.weights = np.ones_like(self.signs)
        self.hard = is_hard(bank, self.C * self.weights.max())
        self.max_sweeps = expect("max_sweeps", max_sweeps, kind="whole", low=1)
        if self.hard:
            self.max_sweeps = min(self.max_sweeps, FEW_SWEEPS)
        self.alphas = np.zeros_like(self.signs)
        self.n_problems = len(self.signs)
        self.n_solved = 0
        self.n_missed = 0
        self._weights = None
        self._kernel: np.ndarray = None

    def kernel(self, weights: np.ndarray) -> np.ndarray:
        if self._weights is None or not np.array_equal(weights, self._weights):
            self._kernel = combined_kernel(self.bank, weights, 1.0, out=self._kernel)
            self._weights = weights.copy()
        return self._kernel

    def solve(self, k: int, weights: np.ndarray) -> BoxSolution:
        """SVM of class k, from its last solution; a `BoxSolution`."""
        how = {"weights": self.weights[k], "tol": self.svm_tol, "max_sweeps": self.max_sweeps}
        solution = solve_box_svm(self.kernel(weights), self.signs[k], self.C, alpha=self.alphas[k], **how)
        self.alphas[k] = solution.alpha
        self.n_solved += 1
        self.n_missed += solution.gap > self.svm_tol * (solution.value + solution.gap)
        return solution

    def quadratics(self, problems: Index) -> np.ndarray:
        """``(alpha o y) K_a (alpha o y)`` of the last solutions, (n_kernels, n_classes)."""
        return quadratic_forms(self.bank, (self.alphas[problems] * self.signs[problems]).T)

    @contextlib.contextmanager
    def uncounted(self, svm_tol: float = np.inf, solutions: bool = False) -> Iterator[None]:
        """Context of uncounted SVMs, to `svm_tol` or better; may keep their `solutions`."""
        before = self.alphas.copy(), self.n_solved, self.n_missed, self.svm_tol
        self.svm_tol = min(self.svm_tol, svm_tol)
        try:
            yield
        finally:
            alphas, self.n_solved, self.n_missed, self.svm_tol = before
            if not solutions:
                self.alphas[...] = alphas
