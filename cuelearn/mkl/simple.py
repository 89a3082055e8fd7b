r"""SimpleMKL: reduced gradient over the simplex of kernel weights, one class against the rest."""

import math

import numpy as np

from cuelearn.mkl.onevsall import Machine, OneVersusAllMKL

__all__ = ["SimpleMKL"]

# weights below this are 0
ZERO_WEIGHT = 1e-8
# share of the step interval at which the golden section search ends; tightened tenfold when a search gains nothing
FIRST_PRECISION = 0.1
LAST_PRECISION = 1e-8
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


class ReducedGradientMachine(Machine):
    """Kernel weights by reduced gradient descent with an exact line search."""

    def __init__(self, problem, k, tol):
        super().__init__(problem, k, tol)
        self.precision = FIRST_PRECISION

    def exhausted(self):
        """Whether neither the line search nor the SVM can be made more accurate."""
        return self.precision <= LAST_PRECISION and super().exhausted()

    def value(self, weights):
        """J(d): the optimum of the SVM for these weights."""
        return self.svm(weights).dual

    def move(self, norms_sq):
        """One step of algorithm 1: take the descent direction to the boundary as long as that helps, then search along it."""
        d, start = self.weights, self.solution.dual
        gradient = -0.5 * norms_sq
        top = int(np.argmax(d))
        direction = gradient[top] - gradient
        direction[(d <= 0.0) & (direction <= 0.0)] = 0.0
        direction[top] = 0.0
        direction[top] = -direction.sum()
        value, best = start, self.solution
        limit, leaving = self._to_boundary(d, direction)
        while limit > 0.0:
            moved = self._step(d, direction, limit)
            there = self.value(moved)
            if not there < value:
                break
            # the kernel at the boundary leaves: its share of the direction goes to the largest one
            d, value, best = moved, there, self.solution
            top = int(np.argmax(d))
            out = (d <= 0.0) & (direction < 0.0)
            out[leaving] = True
            direction[out] = 0.0
            direction[top] = 0.0
            direction[top] = -direction.sum()
            limit, leaving = self._to_boundary(d, direction)
        if limit > 0.0:
            d, value, best = self._search(d, direction, limit, value, best)
        if not value < start:
            self.precision = max(LAST_PRECISION, 0.1 * self.precision)
        self.weights, self.solution = d, best

    @staticmethod
    def _to_boundary(d, direction):
        """Largest step that keeps all weights non-negative, and the kernel that reaches 0 there."""
        falling = np.flatnonzero(direction < 0.0)
        if falling.size == 0:
            return 0.0, None
        steps = -d[falling] / direction[falling]
        first = int(np.argmin(steps))
        return float(steps[first]), int(falling[first])

    @staticmethod
    def _step(d, direction, length):
        moved = d + length * direction
        moved[moved < ZERO_WEIGHT] = 0.0
        return moved / moved.sum()

    def _search(self, d, direction, limit, value, best):
        """Golden section search for the least J on [0, limit]."""
        low, high = 0.0, limit
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        found = {}

        def at(length):
            found[length] = (self.value(self._step(d, direction, length)), self.solution)
            return found[length][0]

        at_left, at_right = at(left), at(right)
        while high - low > self.precision * limit:
            if at_left < at_right:
                high, right, at_right = right, left, at_left
                left = high - GOLDEN * (high - low)
                at_left = at(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + GOLDEN * (high - low)
                at_right = at(right)
        length = min(found, key=lambda s: found[s][0])
        if found[length][0] < value:
            return self._step(d, direction, length), *found[length]
        return d, value, best


class SimpleMKL(OneVersusAllMKL):
    r"""1-vs-All SimpleMKL: reduced gradient descent on the kernel weights, an SVM at every point tried.

    For each class against the rest it solves the problem of `SILPMKL`,

    .. math:: \min_{d \ge 0,\ \sum_j d_j = 1} J(d), \qquad J(d) = \max_a \sum_i a_i - \frac12 \sum_j d_j\, a^\top Y K_j Y a ,

    with :math:`\partial J/\partial d_j = -\frac12 a^\top Y K_j Y a`. The direction is reduced by the largest weight's entry; it is followed
    to the boundary while J falls, then searched by golden section.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        See `OM2`.
    C : float > 0, default 1.0
        libsvm's, the same number as the C of `OBSCURE`.
    tol : float > 0, default 1e-2
        A class stops when its duality gap is at most this share of its objective, as in the paper.
    max_iter : int, default 500
        Most rounds; a round is a whole step with its line search.
    normalize : bool, default True
    memory : float, default 2e9
    n_jobs : int or None
        Threads over classes.
    callback : callable(estimator, step) or None
        Called after every round; a true result ends the run.
    verbose : bool, default False

    Attributes
    ----------
    path_ : ndarray, shape (n_iter_ + 1, n_classes, n_kernels)
        Kernel weights at the start and after each round; entry t + 1 belongs to row t of `history_`, which has the seconds. Each row sums
        to 1, and is 0 for skipped classes. `kernel_weights_` are those of the best point of each class, hence of one of the rounds.
    objectives_, dual_gaps_ : ndarray, shape (n_classes,), or (1,) for two class labels, which are one problem
        NaN for skipped classes.
    skipped_classes_ : ndarray of int
        Classes without positive or without negative samples.
    classes_, dual_coef_, support_, intercept_, kernel_weights_, objective_, dual_gap_, history_, n_iter_, n_updates_, n_solved_, converged_
        As of `SILPMKL`; `n_updates_` and `n_solved_` count the SVMs of line searches too.

    Notes
    -----
    A round costs for each class about ten SVMs of libsvm, each with a read of the kernels with weight, and one read of all kernels for
    all classes together.

    References
    ----------
    Rakotomamonjy, Bach, Canu, Grandvalet, JMLR 9 (2008), algorithm 1 and section 3.4 (stopping).
    """

    machine = ReducedGradientMachine

    def __init__(
        self,
        kernels=None,
        *,
        C=1.0,
        tol=1e-2,
        max_iter=500,
        normalize=True,
        memory=2e9,
        n_jobs=None,
        callback=None,
        verbose=False,
    ):
        super().__init__(
            kernels,
            C=C,
            tol=tol,
            max_iter=max_iter,
            normalize=normalize,
            memory=memory,
            n_jobs=n_jobs,
            callback=callback,
            verbose=verbose,
        )
