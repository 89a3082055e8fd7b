r"""SILP: multiple kernel learning as a semi-infinite linear programme, one class against the rest."""

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


class SILPMKL(OneVersusAllMKL):
    r"""1-vs-All MKL by semi-infinite linear programming: cutting planes around an SVM.

    For each class against the rest

    .. math:: \min_{\bar w, b} \frac12 \Big(\sum_j \|w^j\|\Big)^2 + C \sum_i \big[1 - y_i (\bar w\cdot\bar\phi(x_i) + b)\big]_+

    is solved in its form :math:`\min_{d} \max_a \sum_i a_i - \frac12 \sum_j d_j\, a^\top Y K_j Y a` with *d* on the simplex: an SVM
    for the present weights gives a dual point, the linear programme over all points so far (HiGHS) gives the next weights.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        See `OM2`.
    C : float > 0, default 1.0
        libsvm's, the same number as the C of `OBSCURE`.
    tol : float > 0, default 1e-3
        A class stops when its objective is at most this share above the best lower bound (the linear programme's, or the dual value
        of a dual point), as in the paper.
    max_iter : int, default 500
        Most rounds.
    normalize : bool, default True
    memory : float, default 2e9
    n_jobs : int or None
        Threads over classes.
    callback : callable(estimator, step) or None
        Called after every round; a true result ends the run.
    verbose : bool, default False

    Attributes
    ----------
    classes_, support_, intercept_
    dual_coef_ : ndarray, shape (n_support, n_classes)
        Of each class's SVM, times a factor near 1 that makes up for libsvm's float32 kernel: an entry may exceed C by as much.
    kernel_weights_ : ndarray, shape (n_classes, n_kernels)
        One row per class, on the simplex; most entries are exactly 0.
    objective_, dual_gap_ : float
        Sums over the binary problems, in the scaling of `objective` (the problem above divided by :math:`C n`); `objectives_` and
        `dual_gaps_` hold them one by one. Not comparable with the multiclass objective of `OBSCURE`.
        NaN for skipped classes; one number for two class labels, which are one problem.
    skipped_classes_ : ndarray of int
        Classes of an indicator matrix without positive or without negative samples.
    path_ : ndarray, shape (n_iter_ + 1, n_classes, n_kernels)
        Kernel weights at the start and after each round; entry t + 1 belongs to row t of `history_`.
    history_ : DataFrame
        One row per round: seconds, n_updates (iterations of libsvm so far, each changes two coefficients), n_support, objective, dual_gap.
    n_iter_, n_updates_, converged_
        Rounds, iterations of libsvm, whether every class reached `tol`.
    n_solved_ : int
        SVMs solved.

    Notes
    -----
    A round costs for each class one SVM of libsvm, two reads of the kernels with weight and a linear programme of F variables and one
    row per round so far; and one read of all kernels for all classes together. Memory: one (n, n) matrix per thread besides the bank.

    References
    ----------
    Sonnenburg, Raetsch, Schaefer, Schoelkopf, JMLR 7 (2006), algorithm 1. "1vA-MKL" and "SILP" of the thesis's chapter 4.
    """

    machine = CuttingMachine
