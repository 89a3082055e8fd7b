"""SILP."""

from cuelearn.core.estimator import parameters
from cuelearn.mkl.cutting import CuttingPlanes
from cuelearn.mkl.onevsall import BinarySubproblem, OneVersusAllMKL
from cuelearn.mkl.perclass import documented

__all__ = ["SILPMKL"]


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
    $kernels $C $class_weight $tol $max_iter $normalize $memory $n_jobs $callback $verbose

    Attributes
    ----------
    $classes_ $kernel_weights_ $dual_coef_ $support_ $intercept_ $path_ $objectives_ $dual_gaps_ $history_
    $objective_ $dual_gap_ $skipped_classes_ $n_solved_ $n_updates_ $n_iter_ $converged_

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
