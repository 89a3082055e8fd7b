"""SimpleMKL."""

import math

import numpy as np

from cuelearn.core.estimator import parameters
from cuelearn.mkl.onevsall import BinarySubproblem, OneVersusAllMKL
from cuelearn.mkl.perclass import documented

__all__ = ["SimpleMKL"]

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
        """Golden section search for the smallest J on (0, limit): weights and SVM."""
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
    $kernels $C $class_weight $tol $max_iter $normalize $memory $n_jobs $callback $verbose

    Attributes
    ----------
    $classes_ $kernel_weights_ $dual_coef_ $support_ $intercept_ $path_ $objectives_ $dual_gaps_ $history_
    $objective_ $dual_gap_ $skipped_classes_ $n_solved_ $n_updates_ $n_iter_ $converged_

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
