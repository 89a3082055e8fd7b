r"""SILP: multiple kernel learning as a semi-infinite linear programme, one class against the rest."""

from cuelearn.core.docs import documented
from cuelearn.core.estimator import parameters
from cuelearn.mkl.cutting import CuttingPlanes
from cuelearn.mkl.onevsall import Machine, OneVersusAllMKL

__all__ = ["SILPMKL"]


class CuttingMachine(Machine):
    """Kernel weights by cutting planes."""

    def __init__(self, problem, k, tol):
        super().__init__(problem, k, tol)
        self.planes = CuttingPlanes(problem.bank.n_kernels)

    def move(self, norms_sq):
        """Add the cut of the present dual point; the next weights minimise the largest cut."""
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

    is solved in its form :math:`\min_{d} \max_a \sum_i a_i - \frac12 \sum_j d_j\, a^\top Y K_j Y a` with *d*
    on the simplex: an SVM for the present weights gives a dual point, the linear programme over all points so
    far (HiGHS) gives the next weights.

    Parameters
    ----------
    $kernels $C
    tol : float > 0, default 1e-3
        A class stops when its objective is at most this share above the best lower bound (the linear
        programme's, or the dual value of a dual point), as in the paper.
    $max_iter $normalize $memory $n_jobs $callback $verbose

    Attributes
    ----------
    kernel_weights_ : ndarray, shape (n_classes, n_kernels)
        Of the best point of each class, on the simplex; most are exactly 0. 0 for skipped classes.
    dual_coef_ : ndarray, shape (n_support, n_classes)
        Of each class's SVM, times a factor near 1 that makes up for libsvm's float32 kernel: an entry may
        exceed C by as much.
    $classes_ $support_ $intercept_ $path_ $objectives_ $dual_gaps_ $history_ $skipped_classes_ $n_solved_
    objective_, dual_gap_ : float
        Sums over the classes, of the problem above divided by :math:`C n`: not comparable with `OBSCURE`'s.
    n_updates_ : int
        Iterations of libsvm, each of which changes two coefficients.
    $n_iter_ $converged_

    Notes
    -----
    A round costs for each class one SVM of libsvm, two reads of the kernels with weight and a linear
    programme of F variables and one row per round so far; and one read of all kernels for all classes
    together. Memory: one (n, n) matrix per thread besides the bank.

    References
    ----------
    Sonnenburg, Raetsch, Schaefer, Schoelkopf, JMLR 7 (2006), algorithm 1. "1vA-MKL" and "SILP" of the
    thesis's chapter 4.
    """

    machine = CuttingMachine
