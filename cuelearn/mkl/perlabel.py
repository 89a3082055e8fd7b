r"""Several labels, one combination of kernels for each: GMKL and VSKL.

The objective T(d) of GMKL has :math:`\partial T / \partial d_a = 1 - \frac12 q_a(\alpha)`,
:math:`q_a(\alpha) = (\alpha \circ y)^\top K_a (\alpha \circ y)`. Any SVM's alpha, scaled optimally, certifies
a gap by the dual :math:`\max_{0 \le \alpha \le C} \{ \alpha^\top 1 : q_a(\alpha) \le 2 \}`.

VSKL is mirror descent over simplices. For kernel k of group j and :math:`1/r = 1 - 1/s`, its problem has the
optimal value

.. math:: \max_{0 \le \alpha \le C} \alpha^\top 1 - \tfrac12 \|(\max_k
    q_{jk}(\alpha)^{1/2})_j\|_r^2 = \min_{\lambda_j \in \Delta} G(\lambda), \quad G(\lambda) = \max_{0
    \le \alpha \le C,\ \gamma} \alpha^\top 1 - \tfrac12 \sum_j \frac{1}{\gamma_j} \sum_k \lambda_{jk}
    q_{jk}(\alpha)

with :math:`\gamma \ge 0`, :math:`\sum_j \gamma_j^{s/(s-2)} \le 1` (s = 2: :math:`\gamma_j \le 1`). The kernel
weights are :math:`d_{jk} = \lambda_{jk} / \gamma_j`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

import numpy as np

from cuelearn.core.estimator import SEQUENCE, Number, parameters
from cuelearn.core.formulas import group_norm
from cuelearn.expect import expect
from cuelearn.mkl.rivals.perclass import ClassSubproblem, PerClassMKL, documented, run_classes
from cuelearn.mkl.rivals.svm import SharedProblem

# largest share of the wanted gap due to an SVM, and its smallest relative accuracy
OWN_SHARE = 0.1
SMALLEST_TOL = 1e-10
# Armijo's rule: required share of the predicted descent, and factor on a refused step
ARMIJO = 0.01
SHRINK = 0.3
MOST_TRIALS = 25
# accuracy of line-search SVMs relative to the predicted descent
FINER = 0.1


def largest_multiple(alpha, limits):
    """Largest feasible multiple of a nonzero alpha."""
    positive = alpha > 0.0
    return float((np.broadcast_to(limits, alpha.shape)[positive] / alpha[positive]).min())


def dual_bound(alpha, quadratics, limits):
    """Largest dual value on the ray of alpha."""
    total = float(alpha.sum())
    largest = float(quadratics.max(initial=0.0))
    if total <= 0.0:
        return 0.0
    limit = largest_multiple(alpha, limits)
    return total * (min(limit, np.sqrt(2.0 / largest)) if largest > 0.0 else limit)


class BoxSubproblem(ClassSubproblem):
    """One class of a `SharedProblem`: warm-started SVMs without bias."""

    def __init__(self, problem, k, tol):
        super().__init__(problem, k, tol)
        self.limit = OWN_SHARE * tol
        self.limits = problem.C * problem.weights[k]

    def svm(self, weights, accuracy):
        self.problem.svm_tol = min(max(accuracy, SMALLEST_TOL), self.limit)
        self.n_solved = self.n_updates = self.n_solved + 1
        before = self.problem.n_missed
        solution = self.problem.solve(self.k, weights)
        if self.problem.hard and self.problem.n_missed > before:
            self.stalled = True
        return solution

    def signed(self, alpha):
        return alpha * self.problem.signs[self.k]


class GradientSubproblem(BoxSubproblem):
    def __init__(self, problem, k, tol):
        super().__init__(problem, k, tol)
        self.length = None

    def arrive(self, weights, solution):
        self.weights = weights
        self.solution = solution
        self.present = value(solution, weights)
        coef = self.signed(solution.alpha)
        quadratics = yield coef
        self.slope = 1.0 - 0.5 * quadratics
        self.measure(weights, coef, self.present, dual_bound(solution.alpha, quadratics, self.limits))

    def start(self):
        yield from self.arrive(self.weights, self.svm(self.weights, self.limit))

    def step(self):
        d = self.weights
        slope = self.slope
        present = self.present
        kept = self.solution
        length = self.length or max(d.max(), 1.0 / d.size) / max(np.abs(slope).max(), 1e-300)
        for _ in range(MOST_TRIALS):
            new = np.maximum(0.0, d - length * slope)
            descent = float(slope @ (d - new))
            if descent <= SMALLEST_TOL * abs(present):
                break
            solution = self.svm(new, FINER * descent / abs(present))
            if value(solution, new) <= present - ARMIJO * descent:
                yield from self.arrive(new, solution)
                moved = new - d
                bend = float(moved @ (self.slope - slope))
                self.length = float(moved @ moved) / bend if bend > 0.0 else 10.0 * length
                return
            length *= SHRINK
        # no step descends: only more accuracy can help
        self.problem.alphas[self.k] = kept.alpha
        if self.limit <= SMALLEST_TOL:
            self.stalled = True
            return
        self.limit = max(SMALLEST_TOL, 0.1 * self.limit)
        self.length = None
        yield from self.arrive(d, self.svm(d, self.limit))


def value(solution, weights):
    """Upper bound of T."""
    return solution.value + solution.gap + float(weights.sum())


def solve_gmkl(problem, *, tol=1e-2, max_iter=200, callback=None, verbose=False):
    """GMKL of every class of a `SharedProblem`, whose `svm_tol` changes; a `ClassesResult`. Step lengths:
    Barzilai and Borwein (Jain, Vishwanathan, Varma, KDD 2012)."""
    tol = expect("tol", tol, above=0)
    subproblems = [GradientSubproblem(problem, k, tol) for k in range(problem.n_problems)]
    return run_classes(subproblems, max_iter, name="GMKL", callback=callback, verbose=verbose)


@documented
@parameters
class GMKL(PerClassMKL):
    r"""Generalised multiple kernel learning: kernel weights for each class by projected gradient descent.

    .. math:: \min_{d \ge 0,\, f} \frac12 \|f\|^2_{K(d)} + C \sum_i [1 - y_i f(x_i)]_+ + \sum_a d_a, \qquad
        K(d) = \sum_a d_a K_a

    for each class. The weights are sparse and need not sum to 1.

    Parameters
    ----------
    $kernels $rounds $callback $verbose

    Attributes
    ----------
    $of_classes_

    Notes
    -----
    Cost per step: one or two SVMs per class, each with a read of the kernels, and one read of all kernels for
    all classes together. At large C and low rank (linear, C = 1000) kernels in float32 are too coarse and the
    gap stays open: pass float64 matrices.

    With :math:`D = \sum_a d_a` at the optimum, d / D solves :math:`\ell_1` MKL (`VSKL` with one group) with C
    D in place of C: the same C regularises less here.

    References
    ----------
    Varma and Babu, ICML 2009. The paper allows any differentiable K(d) and regulariser of d;
    here K is linear, the weights are summed, the SVM has no bias, and a certified gap ends the run.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mkl import GMKL
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.integers(0, 2, size=(60, 2))
    >>> X = np.hstack([Y + 0.3 * rng.normal(size=(60, 2)), rng.normal(size=(60, 2))])
    >>> model = GMKL([("first", "rbf", [0]), ("second", "rbf", [1]), ("noise", "rbf", [2, 3])]).fit(X, Y)
    >>> model.kernel_weights_.argmax(axis=1), bool(model.dual_gap_ < 0.01 * model.objective_)
    (array([0, 1]), True)
    """

    def _solve(self, signs, weights, total, **options):
        problem = SharedProblem(self.bank_, signs, self.C, weights=weights)
        return solve_gmkl(problem, tol=self.tol, **options)


# maximum SVMs per value of G
MOST_INNER = 20
# shares of the wanted gap: error of G, and of that, of its SVM
INNER_SHARE = 0.1
SVM_SHARE = 0.3
LEAST_INNER_SHARE = 1e-3
# largest extrapolation of gamma
LONGEST = 4.0
# steps without gain after which a class is abandoned
PATIENCE = 20
# simplex weights below this are 0 in the combined kernel
ZERO_WEIGHT = 1e-12
GROW = 2.0
MOST_MIRROR_TRIALS = 8


def resolve_groups(groups, n_kernels):
    """Group number of each kernel, by first appearance."""
    if groups is None:
        return np.zeros(n_kernels, dtype=np.int64)
    try:
        labels = np.asarray(groups).tolist()
    except (TypeError, ValueError):
        labels = None
    known = isinstance(labels, list) and all(isinstance(g, (int, str)) for g in labels)
    if not known or len(labels) != n_kernels:
        raise ValueError(f"groups must be None or {n_kernels} labels, one per kernel, got {groups!r}")
    seen = {}
    return np.array([seen.setdefault(label, len(seen)) for label in labels], dtype=np.int64)


def group_scales(quadratics, s, least=0.0):
    r"""Optimal :math:`\gamma_j = (D_j^{r/2} / \sum_l D_l^{r/2})^{1 - 2/s}` for `quadratics` D, shares at
    least `least`."""
    if s == 2.0 or quadratics.size == 1:
        return np.ones_like(quadratics)
    largest = quadratics.max()
    shares = (quadratics / largest) ** (0.5 * dual_exponent(s)) if largest > 0.0 else np.ones_like(quadratics)
    shares = np.maximum(shares / shares.sum(), least)
    return (shares / shares.sum()) ** (1.0 - 2.0 / s)


def dual_exponent(s):
    """r with 1/r + 1/s = 1."""
    if math.isinf(s):
        return 1.0
    return s / (s - 1.0)


class MirrorSubproblem(BoxSubproblem):
    """Entropic mirror descent; SVM and gamma alternate for each G."""

    def __init__(self, problem, k, tol, groups, s):
        super().__init__(problem, k, tol)
        self.groups = groups
        self.s = s
        sizes = np.bincount(groups)
        self.members = [np.flatnonzero(groups == j) for j in range(sizes.size)]
        self.logs = -np.log(sizes[groups].astype(float))  # of lambda
        self.gamma = np.full(sizes.size, sizes.size ** -(1.0 - 2.0 / s))
        self.weights = np.exp(self.logs) / self.gamma[groups]
        self.share = INNER_SHARE
        self.floor = 0.0
        self.idle = 0
        self.length = None
        self.value = None
        self.slope = None
        # group shares are gamma to this power
        self.power = 1.0
        if s > 2.0:
            self.power = 1.0 / (1.0 - 2.0 / s)

    def wanted(self):
        return self.share * max(self.tol * self.objective, 0.5 * self.gap)

    def least(self):
        """Smallest group share, of a cost below the error of G."""
        return max(self.floor, 0.5 * self.wanted() / self.objective / self.gamma.size)

    def towards(self, gamma, best, before):
        """Next gamma, extrapolated (Aitken, in logarithms); the next `before`: distance to the best, step."""
        ahead = np.log(best / gamma)
        factor = np.ones_like(ahead)
        if before is not None:
            last, taken = before
            moved = np.abs(taken) > 1e-12
            factor[moved] = 1.0 / np.clip((last[moved] - ahead[moved]) / taken[moved], 1.0 / LONGEST, 1.0)
        shares = np.exp(self.power * (np.log(gamma) + factor * ahead))
        shares = np.maximum(shares / shares.sum(), self.least())
        new = (shares / shares.sum()) ** (1.0 / self.power)
        return new, (ahead, np.log(new / gamma))

    def evaluate(self, simplex, gamma):
        """G by alternation: a lower bound, gradient, gamma, kernel weights of the last SVM."""
        group = self.groups
        s = self.s
        before = None
        used = np.where(simplex < ZERO_WEIGHT, 0.0, simplex)
        for _ in range(MOST_INNER):
            weights = used / gamma[group]
            known = math.isfinite(self.objective)
            accuracy = self.wanted() / self.objective if known else self.share * self.tol
            solution = self.svm(weights, SVM_SHARE * accuracy)
            missed = solution.gap > 1.5 * self.problem.svm_tol * (solution.value + solution.gap)
            quadratics = yield self.signed(solution.alpha)
            total = float(solution.alpha.sum())
            losses = max(0.0, 2.0 * solution.value + solution.gap - total)  # C times the hinge losses
            inner = np.bincount(group, used * quadratics)
            value = total - 0.5 * group_norm(np.sqrt(inner), dual_exponent(s)) ** 2
            above = 0.5 * group_norm(np.sqrt(inner) / gamma, s) ** 2 + losses
            self.certify(solution.alpha, weights, simplex, quadratics, losses)
            best = group_scales(inner, s, self.least())
            if above - value <= self.wanted() or self.converged or self.stalled:
                break
            if missed:  # weights too unequal for the SVM solver
                smallest = float((gamma**self.power).min())
                self.floor = max(self.floor, min(smallest, 0.25 * self.tol / gamma.size))
            gamma, before = self.towards(gamma, best, before)
        return value, -0.5 * quadratics / best[group], best, weights

    def certify(self, alpha, weights, simplex, quadratics, losses):
        norms = np.sqrt(quadratics)
        lengths = np.bincount(self.groups, weights * norms)
        objective = 0.5 * group_norm(lengths, self.s) ** 2 + losses
        largest = np.array([norms[members].max() for members in self.members])
        total = float(alpha.sum())
        squared = group_norm(largest, dual_exponent(self.s)) ** 2
        scale = 0.0
        if total > 0.0:
            scale = largest_multiple(alpha, self.limits)
        if squared > 0.0:
            scale = min(scale, total / squared)
        lower = scale * total - 0.5 * scale**2 * squared
        weights = np.where(norms > 0.0, weights, 0.0)
        self.measure(weights, self.signed(alpha), objective, lower, simplex=simplex.copy())

    def start(self):
        first = yield from self.evaluate(np.exp(self.logs), self.gamma)
        self.value, self.slope, self.gamma, self.weights = first

    def moved(self, length, slope):
        logs = self.logs - length * slope
        for members in self.members:
            logs[members] -= np.logaddexp.reduce(logs[members])
        return logs

    def step(self):
        slope = self.slope.copy()
        old = np.exp(self.logs)
        gap = self.gap
        for members in self.members:  # constants within a group have no effect
            slope[members] -= slope[members].min()
        spread = float(slope.max())
        length = 0.0
        if spread > 0.0:
            length = self.length or 1.0 / spread
        for trial in range(MOST_MIRROR_TRIALS):
            logs = self.moved(length, slope)
            new = np.exp(logs)
            evaluated = yield from self.evaluate(new, self.gamma)
            if length == 0.0 or self.converged or self.stalled or trial == MOST_MIRROR_TRIALS - 1:
                break
            divergence = float(new @ np.maximum(logs - self.logs, -700.0))
            promised = self.value + float(self.slope @ (new - old)) + divergence / length
            if evaluated[0] <= promised + self.wanted():
                break
            length *= SHRINK
        self.logs = logs
        self.length = None
        if length > 0.0:
            self.length = GROW * length
        self.value, self.slope, self.gamma, self.weights = evaluated
        if self.gap > 0.99 * gap:  # slow: make the inner values more accurate
            self.idle += self.share <= LEAST_INNER_SHARE
            self.stalled = self.stalled or self.idle >= PATIENCE
            self.share = max(LEAST_INNER_SHARE, 0.5 * self.share)


def solve_vskl(problem, *, groups=None, s=np.inf, tol=1e-2, max_iter=500, callback=None, verbose=False):
    r"""VSKL of every class of a `SharedProblem`, whose `svm_tol` changes; a `ClassesResult`, with
    :math:`\lambda` in `extra` as ``simplex``."""
    s = expect("s", s, low=2, finite=False)
    how = resolve_groups(groups, problem.bank.n_kernels), s
    tol = expect("tol", tol, above=0)
    subproblems = [MirrorSubproblem(problem, k, tol, *how) for k in range(problem.n_problems)]
    return run_classes(subproblems, max_iter, name="VSKL", callback=callback, verbose=verbose)


@documented
@parameters
class VSKL(PerClassMKL):
    r"""Variable sparsity kernel learning: a sparse choice of kernels within each group, no sparsity across
    groups.

    .. math:: \min_w \frac12 \Big\| \Big( \sum_k \|w_{jk}\| \Big)_j \Big\|_s^2
        + C \sum_i \big[1 - y_i \textstyle\sum_{jk} w_{jk} \cdot \phi_{jk}(x_i)\big]_+

    for each class, k running over the kernels of group j. With s infinite no group can be left out for
    another; with one group this is the :math:`\ell_1` MKL of `SimpleMKL` (without bias) for any s.

    Parameters
    ----------
    $kernels
    groups : None or sequence, default None
        A label (int or str) for each kernel; None is one group.
    s : float in [2, inf], default inf
        Exponent of the norm across groups; 2 does not couple them.
    $rounds $callback $verbose

    Attributes
    ----------
    simplex_weights_ : ndarray, shape (n_classes, n_kernels)
        :math:`\lambda`, of sum 1 in every group, 0 for skipped classes; `kernel_weights_` are
        :math:`\lambda_{jk} / \gamma_j`.
    groups_ : ndarray of int, shape (n_kernels,)
        Group of each kernel.
    $of_classes_

    Notes
    -----
    Cost per step: one SVM with one group or s = 2, else a few, each with a read of the kernels, and one read
    of all kernels for all classes together.

    References
    ----------
    Saketha Nath et al., NIPS 2009 (s infinite); Aflalo et al., JMLR 12 (2011). Duals and constants are
    derived here; no bias; a certified gap ends the run.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mkl import VSKL
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([-1, 1], 30)
    >>> X = rng.normal(size=(60, 4))
    >>> X[:, [0, 2]] += y[:, None] * [2.0, 1.0]
    >>> model = VSKL([(f"k{j}", "rbf", [j]) for j in range(4)], groups=["a", "a", "b", "b"]).fit(X, y)
    >>> model.groups_, bool(model.simplex_weights_[0, 0] > 0.9)  # the second kernel is useless
    (array([0, 0, 1, 1]), True)
    """

    groups: Sequence | np.ndarray | None = None
    s: float = np.inf
    max_iter: int = 500

    _parameter_constraints = {"groups": [*SEQUENCE, None], "s": [Number(Real, 2, None, closed="both")]}

    def _solve(self, signs, weights, total, **options):
        self.groups_ = resolve_groups(self.groups, self.bank_.n_kernels)
        problem = SharedProblem(self.bank_, signs, self.C, weights=weights)
        return solve_vskl(problem, groups=self.groups_, s=self.s, tol=self.tol, **options)

    def _take(self, result):
        super()._take(result)
        self.simplex_weights_ = self._rows(np.array([extra["simplex"] for extra in result.extra]))
