r"""SVMs in turn with kernel weights: SILP, SimpleMKL and p-norm MKL for each class, MC-MKL for all.

The problem of a class, against the rest and with a bias, is that of `LpMKL` for p in [1, 2], with the dual
:math:`\max_a \sum_i a_i - \frac12 \|(a^\top Y K_j Y a)_j^{1/2}\|_q^2` over :math:`0 \le a_i \le C`,
:math:`a^\top y = 0`. For fixed kernel weights *d* libsvm solves it. MC-MKL has one multiclass SVM.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core import docs
from cuelearn.core.estimator import POSITIVE, parameters
from cuelearn.core.formulas import group_norm, margins, resolve_p
from cuelearn.core.run import Run
from cuelearn.expect import warn_user
from cuelearn.kernels.rows import combined_kernel
from cuelearn.kernels.types import Callback, ClassWeight
from cuelearn.mkl.base import CombinedKernel, KernelClassifier
from cuelearn.mkl.optimum.dual import ascend, optimal_scaling, plain_machine
from cuelearn.mkl.optimum.problem import MKLProblem, Result, weights_of
from cuelearn.mkl.rivals.perclass import ClassSubproblem, CuttingPlanes, PerClassMKL, documented, run_classes
from cuelearn.mkl.rivals.svm import fit_svc, is_hard

# libsvm's first and smallest tolerance
SVM_TOLERANCE = 1e-3
SMALLEST_TOLERANCE = 1e-9
# largest share of the wanted gap due to the SVM
OWN_SHARE = 0.2


class Solution(NamedTuple):
    """SVM for fixed kernel weights: libsvm's dual point, and a primal point from it."""

    weights: np.ndarray
    coef: np.ndarray  # a_i y_i
    total: float  # sum of a_i
    quadratic: float  # coef @ K_d @ coef
    multiple: float  # the primal coefficients are multiple * coef, see `best_multiple`
    bias: float  # of the primal point
    hinge: float  # sum of the losses

    @property
    def dual(self):
        return self.total - 0.5 * self.quadratic

    def primal(self, C):
        return 0.5 * self.multiple**2 * self.quadratic + C * self.hinge


def best_multiple(margins, quadratic, C, weights=None):
    r"""The t > 0 that minimises :math:`\frac{t^2}{2} Q + C \sum_i c_i [1 - t m_i]_+`; 1 instead of 0.

    libsvm's float32 kernel shifts the margins :math:`m_i` by 1e-7 or more; at large C these losses exceed the
    norm.
    """
    weighted = margins
    if weights is not None:
        weighted = weights * margins
    order = np.argsort(margins)[::-1]
    order = order[margins[order] > 0.0]
    positive = margins[order]
    if quadratic <= 0.0 or positive.size == 0:
        return 1.0
    # C times the sum of the margins below 1 once the largest 0, 1, 2, ... exceed it
    pull = C * (weighted[margins < 0.0].sum() + np.r_[np.cumsum(weighted[order[::-1]])[::-1], 0.0])
    k = int(np.argmax(np.r_[quadratic / positive >= pull[1:], True]))
    knots = np.r_[0.0, 1.0 / positive, np.inf]
    multiple = min(max(pull[k] / quadratic, knots[k]), knots[k + 1])
    if multiple > 0.0:
        return multiple
    return 1.0


class BinaryMKL(NamedTuple):
    bank: object
    signs: np.ndarray  # a row per problem
    C: float
    p: float  # in [1, 2]
    weights: np.ndarray | None  # factors on C


class BinarySubproblem(ClassSubproblem):
    """One class: an SVM, then ``move(norms_sq)``, with ``coef @ K_j @ coef``, which sets `weights`."""

    better = 1e-12  # above rounding

    def __init__(self, problem, k, tol):
        super().__init__(problem, k, tol)
        power = np.inf
        if problem.p < 2.0:
            power = problem.p / (2.0 - problem.p)
        n_kernels = problem.bank.n_kernels
        self.weights = np.full(n_kernels, n_kernels ** (-1.0 / power))  # equal and feasible
        self.tolerance = SVM_TOLERANCE
        self.solution = None
        self.loss_weights = None
        if problem.weights is not None:
            self.loss_weights = problem.weights[k]

    def svm(self, weights):
        """The `Solution` at libsvm's current tolerance, cached."""
        if self.solution is not None and np.array_equal(self.solution.weights, weights):
            return self.solution
        signs = self.problem.signs[self.k]
        C = self.problem.C
        kernel = combined_kernel(self.problem.bank, weights, 1.0)
        svm = fit_svc(kernel, signs, C, self.tolerance, self.loss_weights)
        coef = np.zeros(signs.size)
        coef[svm.support] = svm.coef
        scores = kernel[:, svm.support] @ svm.coef
        margins = signs * (scores + svm.intercept)
        quadratic = float(coef @ scores)
        multiple = best_multiple(margins, quadratic, C, self.loss_weights)
        losses = np.maximum(0.0, 1.0 - multiple * margins)
        hinge = float(losses.sum() if self.loss_weights is None else self.loss_weights @ losses)
        total = float(np.abs(coef).sum())
        bias = multiple * svm.intercept
        self.solution = Solution(weights, coef, total, quadratic, multiple, bias, hinge)
        self.n_solved += 1
        self.n_updates += svm.n_iter
        self.stalled = self.stalled or not svm.converged
        return self.solution

    def value(self, solution, norms_sq):
        norms = solution.multiple * solution.weights * np.sqrt(norms_sq)
        return 0.5 * group_norm(norms, self.problem.p) ** 2 + self.problem.C * solution.hinge

    def bound(self, solution, norms_sq):
        p = self.problem.p
        if p == 1.0:
            return solution.total - 0.5 * norms_sq.max()
        return solution.total - 0.5 * (group_norm(np.sqrt(norms_sq), p / (p - 1.0)) ** 2)

    def solve(self):
        """SVM at the current weights, accurate enough."""
        while True:
            solution = self.svm(self.weights)
            own = solution.primal(self.problem.C) - solution.dual
            limit = OWN_SHARE * max(self.tol * abs(solution.dual), 0.1 * min(self.gap, abs(solution.dual)))
            if own <= limit or self.tolerance <= SMALLEST_TOLERANCE or self.stalled:
                return solution
            self.refine()

    def refine(self):
        self.tolerance = max(SMALLEST_TOLERANCE, 0.1 * self.tolerance)
        self.solution = None

    def exhausted(self):
        return self.tolerance <= SMALLEST_TOLERANCE

    def step(self):
        solution = self.solve()
        norms_sq = yield solution.coef
        value = self.value(solution, norms_sq)
        bound = self.bound(solution, norms_sq)
        self.measure(solution.weights, solution.multiple * solution.coef, value, bound, solution.bias)
        if not self.converged:
            before = self.weights
            self.move(norms_sq)
            if np.array_equal(before, self.weights):  # only more accuracy can help
                self.stalled = self.stalled or self.exhausted()
                self.refine()


@parameters
class OneVersusAllMKL(PerClassMKL):
    """Objectives and gaps are divided by C times the sum of the sample weights."""

    C: float = 10.0
    tol: float = 1e-3
    max_iter: int = 500
    n_jobs: int | None = None

    subproblem = BinarySubproblem

    def _exponent(self, n_kernels):
        return 1.0

    def _solve(self, signs, weights, total, **options):
        problem = BinaryMKL(self.bank_, signs, self.C, self._exponent(self.bank_.n_kernels), weights)
        subproblems = [self.subproblem(problem, k, self.tol) for k in range(len(signs))]
        options |= {"name": type(self).__name__, "n_jobs": self.n_jobs}
        return run_classes(subproblems, scale=self.C * total, **options)

    def _exhausted(self):
        return "libsvm's accuracy is exhausted, raise tol"


class CuttingSubproblem(BinarySubproblem):
    def __init__(self, problem, k, tol):
        super().__init__(problem, k, tol)
        self.planes = CuttingPlanes(problem.bank.n_kernels)

    def move(self, norms_sq):
        self.planes.add(self.solution.total, 0.5 * norms_sq)
        self.weights = self.planes.solve()
        self.lower = max(self.lower, self.planes.bound)


@documented
@parameters
class SILPMKL(OneVersusAllMKL):
    r"""1-vs-All MKL by semi-infinite linear programming: cutting planes around an SVM.

    For each class against the rest

    .. math:: \min_{\bar w, b} \frac12 \Big(\sum_j \|w^j\|\Big)^2
        + C \sum_i \big[1 - y_i (\bar w\cdot\bar\phi(x_i) + b)\big]_+

    is solved as :math:`\min_{d} \max_a \sum_i a_i - \frac12 \sum_j d_j\, a^\top Y K_j Y a` with *d* on the
    simplex: an SVM gives a dual point, and a linear program (HiGHS) over all points so far the next weights
    and a lower bound.

    Parameters
    ----------
    $kernels $rounds $n_jobs $callback $verbose

    Attributes
    ----------
    $of_classes_ $intercept_

    Notes
    -----
    Weights are on the simplex, most exactly 0. Coefficients are libsvm's times a factor near 1 that corrects
    for its float32 kernel, so they may exceed C by as much. Cost per round: one SVM, two reads of the kernels
    with weight and a linear program per class, and one read of all kernels. Memory: one (n, n) matrix per
    thread.

    References
    ----------
    Sonnenburg, Raetsch, Schaefer, Schoelkopf, JMLR 7 (2006), algorithm 1. "1vA-MKL" and "SILP" of thesis
    chapter 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import SILPMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = SILPMKL(cues).fit(X, y)
    >>> model.kernel_weights_.sum(axis=1).round(6), model.converged_
    (array([1., 1., 1.]), True)
    """

    subproblem = CuttingSubproblem


# smaller weights are 0
ZERO_WEIGHT = 1e-8
# final share of the step interval in the golden section search; divided by ten when a search fails
FIRST_PRECISION = 0.1
LAST_PRECISION = 1e-8
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


class ReducedGradientSubproblem(BinarySubproblem):
    def __init__(self, problem, k, tol):
        super().__init__(problem, k, tol)
        self.precision = FIRST_PRECISION

    def exhausted(self):
        return self.precision <= LAST_PRECISION and super().exhausted()

    def move(self, norms_sq):
        """Follow the direction to the boundary while J falls, then search along it."""
        d = self.weights
        best = self.solution
        start = best.dual
        gradient = -0.5 * norms_sq
        direction = gradient[np.argmax(d)] - gradient
        direction = without(direction, (d <= 0.0) & (direction <= 0.0), d)
        limit, leaving = to_boundary(d, direction)
        while limit > 0.0:
            moved = step_along(d, direction, limit)
            there = self.svm(moved)
            if not there.dual < best.dual:
                break
            # the kernel at the boundary leaves; the largest one takes its share of the direction
            d = moved
            best = there
            out = (d <= 0.0) & (direction < 0.0)
            out[leaving] = True
            direction = without(direction, out, d)
            limit, leaving = to_boundary(d, direction)
        if limit > 0.0:
            moved, there = self.search(d, direction, limit)
            if there.dual < best.dual:
                d = moved
                best = there
        if not best.dual < start:
            self.precision = max(LAST_PRECISION, 0.1 * self.precision)
        self.weights = d
        self.solution = best

    def search(self, d, direction, limit):
        """Golden section search on (0, limit): weights and SVM."""
        tried = {}

        def at(length):
            moved = step_along(d, direction, length)
            tried[length] = moved, self.svm(moved)
            return tried[length][1].dual

        low = 0.0
        high = limit
        left = high - GOLDEN * (high - low)
        right = low + GOLDEN * (high - low)
        at_left = at(left)
        at_right = at(right)
        while high - low > self.precision * limit:
            if at_left < at_right:
                high = right
                right = left
                at_right = at_left
                left = high - GOLDEN * (high - low)
                at_left = at(left)
            else:
                low = left
                left = right
                at_left = at_right
                right = low + GOLDEN * (high - low)
                at_right = at(right)
        return min(tried.values(), key=lambda point: point[1].dual)


def without(direction, out, d):
    """Remove kernels from a direction; the largest weight's entry keeps the sum."""
    direction = np.where(out, 0.0, direction)
    top = int(np.argmax(d))
    direction[top] = 0.0
    direction[top] = -direction.sum()
    return direction


def to_boundary(d, direction):
    """Largest feasible step, and the kernel that reaches 0."""
    falling = np.flatnonzero(direction < 0.0)
    if falling.size == 0:
        return 0.0, None
    steps = -d[falling] / direction[falling]
    first = int(np.argmin(steps))
    return float(steps[first]), int(falling[first])


def step_along(d, direction, length):
    moved = d + length * direction
    moved[moved < ZERO_WEIGHT] = 0.0
    return moved / moved.sum()


@documented
@parameters
class SimpleMKL(OneVersusAllMKL):
    r"""1-vs-All SimpleMKL: reduced gradient descent on the kernel weights, an SVM at every point tried.

    For each class against the rest it solves the problem of `SILPMKL`,

    .. math:: \min_{d \ge 0,\ \sum_j d_j = 1} J(d), \qquad
        J(d) = \max_a \sum_i a_i - \frac12 \sum_j d_j\, a^\top Y K_j Y a ,

    with :math:`\partial J/\partial d_j = -\frac12 a^\top Y K_j Y a`. The direction is reduced by the largest
    weight's entry, followed to the boundary while J falls, then searched by golden section.

    Parameters
    ----------
    $kernels $rounds $n_jobs $callback $verbose

    Attributes
    ----------
    $of_classes_ $intercept_

    Notes
    -----
    Weights are on the simplex. Cost per round: about ten SVMs per class, each with a read of the kernels with
    weight, and one read of all kernels for all classes together.

    References
    ----------
    Rakotomamonjy, Bach, Canu, Grandvalet, JMLR 9 (2008), algorithm 1 and section 3.4 (stopping).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import SimpleMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = SimpleMKL(cues).fit(X, y)
    >>> model.kernel_weights_.sum(axis=1).round(6), model.converged_
    (array([1., 1., 1.]), True)
    """

    tol: float = 1e-2

    subproblem = ReducedGradientSubproblem


class ClosedFormSubproblem(BinarySubproblem):
    def move(self, norms_sq):
        r""":math:`\sum_j \|w^j\|^2/d_j` is least at :math:`d_j = (\|w^j\| / \|\bar w\|_{2,p})^{2-p}`."""
        p = self.problem.p
        norms = self.solution.weights * np.sqrt(norms_sq)
        length = group_norm(norms, p)
        if length > 0.0:
            self.weights = (norms / length) ** (2.0 - p) if p < 2.0 else np.ones_like(norms)


@documented
@parameters
class LpMKL(OneVersusAllMKL):
    r"""1-vs-All p-norm MKL: alternates an SVM and the kernel weights in closed form.

    For each class against the rest

    .. math:: \min_{\bar w, b} \frac12 \|\bar w\|_{2,p}^2
        + C \sum_i \big[1 - y_i (\bar w\cdot\bar\phi(x_i) + b)\big]_+ .

    Parameters
    ----------
    $kernels
    p : float in (1, 2] or "auto", default 1.25
        Exponent of the group norm, as in `OBSCURE`. Kloft et al. constrain :math:`\|d\|_{p'} \le 1` with
        :math:`p' = p/(2-p)`; p = 2 is :math:`p' = \infty`, equal weights.
    $rounds $n_jobs $callback $verbose

    Attributes
    ----------
    p_ : float
    $of_classes_ $intercept_

    Notes
    -----
    The weights of a class satisfy :math:`\sum_j d_j^{p'} = 1`, none exactly 0. Cost as for `SILPMKL` without
    the linear program; tens of rounds, more as p nears 1.

    References
    ----------
    Kloft, Brefeld, Sonnenburg, Zien, JMLR 12 (2011), algorithm 1; JMLR 13 (2012), section 5 for the two p.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import LpMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = LpMKL(cues, p=1.25).fit(X, y)
    >>> model.kernel_weights_.argmax(axis=1), model.converged_
    (array([1, 1, 1]), True)
    """

    p: float | Literal["auto"] = 1.25

    subproblem = ClosedFormSubproblem

    def _exponent(self, n_kernels):
        self.p_, _ = resolve_p(self.p, n_kernels)
        return self.p_


# of the SVM per round
SWEEPS = 1000
# largest share of the wanted gap, or of part of the remaining one, due to the SVM
MACHINE_SHARE = 0.5
# rounds without a gap reduced by a tenth until a hard problem is abandoned
PATIENCE = 10


def solve_mc_mkl(problem, *, tol=1e-3, max_iter=500, callback=None, verbose=False):
    r"""Solve the multiclass MKL problem with :math:`\|\bar w\|_{2,1}` by cutting planes; a `Result`.

    .. math:: \min_{d \ge 0, \sum_j d_j = 1} \max_B\; \frac1n \sum_i B_{iy_i} - \frac{1}{2\lambda} \sum_j d_j
        \|\theta^j(B)\|^2

    `callback(result, step)` gets the best point so far. Zien and Ong, ICML 2007, sections 3 and 4.
    """
    bank = problem.bank
    labels = problem.labels
    lam = problem.regularization
    n = bank.n_samples
    run = Run(callback, verbose=verbose)
    planes = CuttingPlanes(bank.n_kernels)
    B = np.zeros((n, problem.n_classes))
    no_theta = np.zeros((problem.n_classes, 0))
    d = np.full(bank.n_kernels, 1.0 / bank.n_kernels)
    best = (np.inf, B, d)
    bound = 0.0
    relative = 1.0
    updates = 0
    precision = MACHINE_SHARE
    certifiable = not bank.indefinite
    hard = is_hard(bank, problem.C) or not certifiable
    least = np.inf
    idle = 0

    def result():
        point = best[1] / n, best[2] / lam
        done = certifiable and bool(relative <= tol)
        known = gap if certifiable else np.nan
        return Result(*point, run.history(), best[0], known, step, updates, converged=done)

    for step in run.rounds(max_iter, "MCMKL"):
        kernel = combined_kernel(bank, d, problem.factor / lam)
        scores = np.ascontiguousarray((kernel @ B).T / n)
        value = problem.mean_loss_at_zero
        if np.isfinite(best[0]):
            value = best[0]
        own = precision * max(0.3 * relative, tol) * value
        machine = plain_machine(kernel, labels, problem.n_classes, problem.limits)
        _, _, done = ascend(machine, B, scores, no_theta, own, SWEEPS, np.iinfo(int).max, own)
        updates += done
        norms = np.sqrt(problem.block_norms_sq(B)) / n
        # w^j = d_j theta^j / lambda
        margin = margins(np.ascontiguousarray(scores.T), labels)
        scale, objective = optimal_scaling(margin, machine.limits, 0.5 * (d @ norms) ** 2 / lam, 0.0)
        if objective < best[0]:
            best = (objective, scale * B, d)
        total = float(B[np.arange(n), labels].sum()) / n
        planes.add(total, norms**2 / (2.0 * lam))
        following = planes.solve()
        bound = max(bound, planes.bound, float(total - norms.max() ** 2 / (2.0 * lam)))
        gap = best[0] - bound
        relative = gap / max(best[0], np.finfo(float).tiny)
        row = {"stage": "batch", "epoch": step, "n_updates": updates}
        row |= {"n_support": int(np.count_nonzero(best[1].any(axis=1)))}
        row |= {"objective": best[0], "dual_gap": gap if certifiable else np.nan}
        stop = run.end(step, result, note=f"relative gap {relative:.1e}", **row)
        idle = 0 if relative < 0.9 * least else idle + 1
        least = min(least, relative)
        if stop or relative <= tol or hard and idle >= PATIENCE:
            break
        if np.array_equal(following, d):  # only a more accurate SVM can help
            if precision < 1e-6:
                break
            precision *= 0.1
        d = following
    if relative > tol and certifiable and not stop:
        advice = "raise max_iter or tol"
        if hard:
            advice = "divide the kernels by their mean diagonal, or lower C"
        warn_user(
            f"MCMKL did not reach tol={tol:g}: the relative duality gap is {relative:.2g} after {step} "
            f"rounds; {advice}",
            ConvergenceWarning,
        )
    return result()


@docs.documented
@parameters
class MCMKL(CombinedKernel, KernelClassifier):
    r"""Multiclass MKL by cutting planes: one set of kernel weights for all classes, and the multiclass loss.

    .. math:: \min_{\bar w} \frac\lambda2 \Big(\sum_j \|w^j\|\Big)^2 + \frac1n \sum_i
        \Big[1 - \bar w\cdot\bar\phi(x_i,y_i) + \max_{y'\ne y_i} \bar w\cdot\bar\phi(x_i,y')\Big]_+

    the problem of `OBSCURE` as p goes to 1, without bias. A Crammer-Singer SVM gives a dual point, and a
    linear program over all points so far the next weights.

    Parameters
    ----------
    $kernels $C $class_weight
    tol : float > 0, default 1e-3
        Stop at this relative duality gap.
    $max_iter $missing $normalize $memory $callback $verbose

    Attributes
    ----------
    $classes_ $dual_coef_ $support_
    kernel_weights_ : ndarray, shape (n_kernels,)
        :math:`d_j/\lambda` with *d* on the simplex; most are exactly 0.
    objective_, dual_gap_ : float
        Scaled as `objective`: comparable with `OBSCURE` and `solve_reference` near p = 1.
    n_updates_ : int
        SVM visits that changed coefficients.
    $history_ $n_iter_ $converged_

    Notes
    -----
    Cost per round: the SVM's sweeps, each O(n^2) times the classes that move, two reads of the kernels and a
    linear program. Memory: one (n, n) matrix besides the bank.

    References
    ----------
    Zien and Ong, Multiclass multiple kernel learning, ICML 2007. "MC-MKL" of thesis chapter 4 and JMLR 13
    (2012).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import MCMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = MCMKL(cues, C=10, tol=0.01).fit(X, y)
    >>> int(model.kernel_weights_.argmax()), model.converged_
    (1, True)
    """

    C: float = 10.0
    class_weight: ClassWeight = None
    tol: float = 1e-3
    max_iter: int = 500
    memory: float = 2e9
    callback: Callback = None
    verbose: bool = False

    _parameter_constraints = {"tol": POSITIVE}

    def _train(self, labels, sample_weight):
        weights = weights_of(self.class_weight, self.classes_, labels, sample_weight)
        problem = MKLProblem(self.bank_, labels, self.classes_.size, C=self.C, **weights)

        def show(result):
            self._show(problem, result.dual_coef, result.kernel_weights)
            self._take_run(result)

        options = {"tol": self.tol, "max_iter": self.max_iter, "verbose": self.verbose}
        show(solve_mc_mkl(problem, callback=self._watch(show), **options))
