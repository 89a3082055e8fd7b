r"""GMKL: projected gradient descent on the kernel weights of each class (Varma and Babu).

The objective T(d) has :math:`\partial T / \partial d_a = 1 - \frac12 q_a(\alpha)`, :math:`q_a(\alpha) =
(\alpha \circ y)^\top K_a (\alpha \circ y)`. Any SVM's alpha, scaled optimally, certifies a gap by the dual
:math:`\max_{0 \le \alpha \le C} \{ \alpha^\top 1 : q_a(\alpha) \le 2 \}`.
"""

import numpy as np

from cuelearn.core.estimator import parameters
from cuelearn.expect import expect
from cuelearn.mkl.rivals.perclass import ClassSubproblem, PerClassMKL, documented, run_classes
from cuelearn.mkl.rivals.svm import SharedProblem

__all__ = ["GMKL", "BoxSubproblem", "largest_multiple", "solve_gmkl"]

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
    """GMKL of every class of a `SharedProblem`, whose `svm_tol` changes; a `ClassesResult`. First step
    length: Barzilai and Borwein (Jain, Vishwanathan, Varma, KDD 2012)."""
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
    $kernels $C $class_weight $tol $max_iter $normalize $memory $callback $verbose

    Attributes
    ----------
    $classes_ $kernel_weights_ $dual_coef_ $support_ $path_ $objectives_ $dual_gaps_ $history_
    $objective_ $dual_gap_ $skipped_classes_ $n_solved_ $n_updates_ $n_iter_ $converged_

    Notes
    -----
    Cost per step: one or two SVMs per class, each with a read of the kernels, and one read of all kernels for
    all classes together.

    Kernels computed from features are float32. At large C and low rank (linear, C = 1000) this is too coarse
    and the gap stays open: pass float64 matrices.

    With :math:`D = \sum_a d_a` at the optimum, d / D solves :math:`\ell_1` MKL (`VSKL` with one group) with C
    D in place of C: the same C regularises less here.

    References
    ----------
    Varma and Babu, ICML 2009. The paper allows any differentiable K(d) and regulariser of d;
    here K is linear, the weights are summed, the SVM has no bias, and a certified gap ends the run.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.mkl import GMKL
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.integers(0, 2, size=(60, 2))
    >>> X = np.hstack([Y + 0.3 * rng.normal(size=(60, 2)), rng.normal(size=(60, 2))])
    >>> model = GMKL([("first", RBF(), [0]), ("second", RBF(), [1]), ("noise", RBF(), [2, 3])]).fit(X, Y)
    >>> model.kernel_weights_.argmax(axis=1), bool(model.dual_gap_ < 0.01 * model.objective_)
    (array([0, 1]), True)
    """

    def _solve(self, signs, weights, total, **options):
        problem = SharedProblem(self.bank_, signs, self.C, weights=weights)
        return solve_gmkl(problem, tol=self.tol, **options)
