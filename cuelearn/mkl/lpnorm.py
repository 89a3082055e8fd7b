r"""p-norm MKL of Kloft et al., one class against the rest."""

import numpy as np

from cuelearn.core.groupnorm import group_norm, resolve_p
from cuelearn.mkl.onevsall import Machine, OneVersusAllMKL

__all__ = ["LpMKL"]


class ClosedFormMachine(Machine):
    """Kernel weights in closed form from the norms of the blocks."""

    def move(self, norms_sq):
        r""":math:`d_j = \|w^j\|^{2-p} / \|\bar w\|_{2,p}^{2-p}`, the minimiser of :math:`\sum_j \|w^j\|^2/d_j` over the feasible set."""
        p = self.problem.p
        norms = self.solution.weights * np.sqrt(norms_sq)
        length = group_norm(norms, p)
        if length > 0.0:
            self.weights = (norms / length) ** (2.0 - p) if p < 2.0 else np.ones_like(norms)


class LpMKL(OneVersusAllMKL):
    r"""1-vs-All p-norm MKL: an SVM and the kernel weights in turn, the weights in closed form.

    For each class against the rest

    .. math:: \min_{\bar w, b} \frac12 \|\bar w\|_{2,p}^2 + C \sum_i \big[1 - y_i (\bar w\cdot\bar\phi(x_i) + b)\big]_+ .

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        See `OM2`.
    p : float in (1, 2] or "auto", default 1.25
        Exponent of the group norm, as `OBSCURE` has it. Kloft et al. constrain :math:`\|d\|_{p'} \le 1` with
        :math:`p' = p/(2-p)`; p = 2 is :math:`p' = \infty`, equal weights.
    C : float > 0, default 1.0
        libsvm's, the same number as the C of `OBSCURE`.
    tol : float > 0, default 1e-3
        A class stops when its duality gap is at most this share of its objective.
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
    classes_, dual_coef_, support_, intercept_
    kernel_weights_ : ndarray, shape (n_classes, n_kernels)
        :math:`\sum_j d_j^{p'} = 1` in each row; never exactly 0 for a kernel that is not 0 itself.
    objective_, dual_gap_, objectives_, dual_gaps_, history_, path_, skipped_classes_, n_iter_, n_updates_, n_solved_, converged_
        As of `SILPMKL`.
    p_ : float

    Notes
    -----
    Cost as of `SILPMKL`, without the linear programme; tens of rounds, more the nearer p is to 1.

    References
    ----------
    Kloft, Brefeld, Sonnenburg, Zien, JMLR 12 (2011), algorithm 1 (2009 in the papers); JMLR 13 (2012), section 5 for the two p.
    """

    machine = ClosedFormMachine

    def __init__(
        self,
        kernels=None,
        *,
        p=1.25,
        C=1.0,
        tol=1e-3,
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
        self.p = p

    def _exponent(self, n_kernels):
        self.p_, _ = resolve_p(self.p, n_kernels)
        return self.p_
