"""p-norm MKL of Kloft et al."""

import numpy as np

from cuelearn.core.estimator import parameters
from cuelearn.core.groupnorm import group_norm, resolve_p
from cuelearn.mkl.onevsall import BinarySubproblem, OneVersusAllMKL
from cuelearn.mkl.perclass import documented

__all__ = ["LpMKL"]


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
    $C $class_weight $tol $max_iter $normalize $memory $n_jobs $callback $verbose

    Attributes
    ----------
    p_ : float
    $classes_ $kernel_weights_ $dual_coef_ $support_ $intercept_ $path_ $objectives_ $dual_gaps_ $history_
    $objective_ $dual_gap_ $skipped_classes_ $n_solved_ $n_updates_ $n_iter_ $converged_

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

    p: float | str = 1.25

    subproblem = ClosedFormSubproblem

    def _exponent(self, n_kernels):
        self.p_, _ = resolve_p(self.p, n_kernels)
        return self.p_
