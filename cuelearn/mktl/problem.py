r"""The transfer problem: kernels on the new samples and one scalar block per new class and prior score.

With scores :math:`s_{iz}` of K priors, M new classes and F0 kernels (thesis 6.2, 6.3), F0 + M K blocks in
all,

.. math:: P(\bar w) = \frac\lambda2 \|\bar w\|_{2,p}^2 + \frac1n \sum_i c_i\, \ell(\bar w; x_i, y_i), \qquad
    \bar w = [w^1, \dots, w^{F_0}, w^{(1,1)}, \dots, w^{(M,K)}] .

A score's block is one number, :math:`\theta^{(y,z)} = \sum_i A_{iy} s_{iz}`: with the coefficient matrix A of
chapter 4 all are :math:`A^\top S`, without kernel matrices or score vectors per block. Two classes with the
hinge loss have one block per score.

Equation 6.2 prints a sum of losses with :math:`\lambda = 1/(CN)`; here it is the mean, as in equation 4.3.
"""

from cuelearn.core.groupnorm import resolve_p
from cuelearn.mkl.problem import MKLProblem

__all__ = ["TransferProblem"]


class TransferProblem(MKLProblem):
    """An MKL problem with scores of priors and weights of the losses, see the module.

    Parameters
    ----------
    bank, labels, n_classes
        As in `MKLProblem`: kernels of the new samples and their classes.
    scores : ndarray of float64, shape (n_samples, K)
        Scores of the priors, already scaled; K may be 0.
    p : float in (1, 2], "auto" or "auto-priors"
        "auto": q = 2 ln F with F all blocks (section 6.3, theorem 4.2); "auto-priors": q = 2 ln K (section
        6.5.2). Both are clipped to q >= 2.
    C, loss, sample_weight, class_weight
        As in `MKLProblem`: the weights c above are :math:`s_i c_{y_i} n / W`.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mktl import TransferProblem
    >>> y = np.arange(60) % 3
    >>> X = np.eye(3)[y] + 0.2 * np.random.default_rng(0).normal(size=(60, 3))
    >>> problem = TransferProblem(KernelBank([("all", "rbf", [0, 1, 2])], X), y, 3, scores=X[:, :2])
    >>> problem.n_groups  # a kernel, and two scores for each of three classes
    7
    """

    many_kernels = False

    def __init__(self, bank, labels, n_classes, scores, **options):
        super().__init__(bank, labels, n_classes, scores=scores, **options)

    def _resolve_p(self, p):
        if isinstance(p, str) and p == "auto-priors":
            return resolve_p("auto", self.scores.shape[1])
        return resolve_p(p, self.n_groups)
