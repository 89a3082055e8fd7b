r"""One class against the rest with a bias and own kernel weights: SILP, SimpleMKL, p-norm MKL.

The problem of each class is that of `LpMKL` for p in [1, 2], with the dual :math:`\max_a \sum_i a_i - \frac12
\|(a^\top Y K_j Y a)_j^{1/2}\|_q^2` over :math:`0 \le a_i \le C`, :math:`a^\top y = 0`. For fixed kernel
weights *d* libsvm solves it; `BinarySubproblem.move` updates *d*.
"""

from typing import NamedTuple

import numpy as np

from cuelearn.core.estimator import parameters
from cuelearn.core.groupnorm import group_norm
from cuelearn.kernels.rows import combined_kernel
from cuelearn.mkl.perclass import ClassSubproblem, PerClassMKL, run_classes
from cuelearn.mkl.svm import fit_svc

__all__ = ["BinaryMKL", "BinarySubproblem", "OneVersusAllMKL", "Solution", "best_multiple"]

# libsvm's first and smallest tolerance, tightened only when the SVM's own gap dominates
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
    r"""The t > 0 that minimises :math:`\frac{t^2}{2} Q + C \sum_i c_i [1 - t m_i]_+`, exactly; 1 instead of
    0.

    libsvm's float32 kernel shifts the margins :math:`m_i` by 1e-7 or more; at large C these losses exceed the
    norm.
    """
    weighted = margins if weights is None else weights * margins
    order = np.argsort(margins)[::-1]
    order = order[margins[order] > 0.0]
    positive = margins[order]
    if quadratic <= 0.0 or positive.size == 0:
        return 1.0
    # C times the sum of the margins below 1 once the largest 0, 1, 2, ... exceed it
    pull = C * (weighted[margins < 0.0].sum() + np.r_[np.cumsum(weighted[order[::-1]])[::-1], 0.0])
    k = int(np.argmax(np.r_[quadratic / positive >= pull[1:], True]))
    low = 1.0 / positive[k - 1] if k > 0 else 0.0
    high = 1.0 / positive[k] if k < positive.size else np.inf
    multiple = min(max(pull[k] / quadratic, low), high)
    return multiple if multiple > 0.0 else 1.0


class BinaryMKL(NamedTuple):
    """Binary problems, one per row of `signs`, with p in [1, 2]; `weights` are factors on C."""

    bank: object
    signs: np.ndarray
    C: float
    p: float
    weights: np.ndarray | None = None


class BinarySubproblem(ClassSubproblem):
    """One class: an SVM, then ``move(norms_sq)``, with ``coef @ K_j @ coef``, which sets `weights`."""

    better = 1e-12  # above rounding

    def __init__(self, problem, k, tol):
        super().__init__(problem, k, tol)
        power = problem.p / (2.0 - problem.p) if problem.p < 2.0 else np.inf
        n_kernels = problem.bank.n_kernels
        self.weights = np.full(n_kernels, n_kernels ** (-1.0 / power))  # equal and feasible
        self.tolerance = SVM_TOLERANCE
        self.solution = None
        self.loss_weights = None if problem.weights is None else problem.weights[k]

    def svm(self, weights):
        """The `Solution` at some weights and libsvm's current tolerance, cached."""
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
        """SVM at the current weights, accurate enough for the gap."""
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
    """Base of SILP, SimpleMKL and p-norm MKL. Objectives and gaps are divided by C times the sum of the
    sample weights."""

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
