r"""The transfer problem: kernels on the new samples and one scalar group for every pair of new class and prior score.

With the scores :math:`s_{iz}` of K priors, M new classes and F0 kernels (thesis 6.2, 6.3),

.. math::

    P(\bar w) = \frac\lambda2 \|\bar w\|_{2,p}^2 + \frac1n \sum_i c_i\, \ell(\bar w; x_i, y_i), \qquad
    \bar w = [w^1, \dots, w^{F_0}, w^{(1,1)}, \dots, w^{(M,K)}],

F0 + M K groups in all. The block of a score group is one number, :math:`\theta^{(y,z)} = \sum_i A_{iy} s_{iz}`: with the one
coefficient matrix A of chapter 4 its whole matrix is :math:`A^\top S`, and neither kernel matrices nor score vectors per group are
ever made. Two classes with the hinge loss have one group per score.

Equation 6.2 prints a sum of losses beside :math:`\lambda = 1/(CN)`; taken here is the mean, as in equation 4.3.
"""

import numpy as np

from cuelearn.core.groupnorm import resolve_p
from cuelearn.mkl.problem import MKLProblem

__all__ = ["TransferProblem", "resolve_transfer_p"]


def resolve_transfer_p(p, n_groups, n_scores):
    """Check the exponent; returns it with its conjugate.

    Parameters
    ----------
    p : float in (1, 2], "auto" or "auto-priors"
        "auto" is q = 2 ln F with F all groups, as section 6.3 has it and theorem 4.2 asks; "auto-priors" is the q = 2 ln K that
        section 6.5.2 prints. Both are clipped to q >= 2.
    n_groups, n_scores : int
        F and K.

    Returns
    -------
    p, q : float
    """
    if isinstance(p, str) and p not in ("auto", "auto-priors"):
        raise ValueError(
            f"p must be a number in (1, 2], a sequence of them, 'auto', 'auto-priors' or 'cv', got {p!r}"
        )
    if isinstance(p, str):
        return resolve_p("auto", n_scores if p == "auto-priors" else n_groups)
    return resolve_p(p, n_groups)


class TransferProblem(MKLProblem):
    """An MKL problem with score groups, see the module.

    Parameters
    ----------
    bank : KernelBank
        Training kernels of the new samples.
    labels : ndarray of int, shape (n_samples,)
    n_classes : int
    scores : ndarray of float64, shape (n_samples, K)
        Scores of the priors, scaled as they shall be used; K may be 0.
    p : float in (1, 2], "auto" or "auto-priors"
    C : float > 0
    loss : {"multiclass", "hinge"}
    sample_weight : ndarray of float64, shape (n_samples,), optional
        c, positive; 1 by default.

    Attributes
    ----------
    n_groups : int
        F; groups are ordered kernels first, then class by class.
    rows : int
        Classes that have score groups of their own: M, or 1 for the hinge loss, where both share them.
    """

    def __init__(
        self, bank, labels, n_classes, scores, *, p="auto", C=1.0, loss="multiclass", sample_weight=None
    ):
        super().__init__(bank, labels, n_classes, p=2.0, C=C, loss=loss)
        self.scores = np.ascontiguousarray(scores, dtype=np.float64)
        if self.scores.ndim != 2 or len(self.scores) != bank.n_samples:
            raise ValueError(
                f"scores must have one row per training sample, {bank.n_samples}, got shape {self.scores.shape}"
            )
        self.rows = 1 if loss == "hinge" else self.n_classes
        self.n_groups = bank.n_kernels + self.rows * self.scores.shape[1]
        self.p, self.q = resolve_transfer_p(p, self.n_groups, self.scores.shape[1])
        if sample_weight is not None:
            self.limits = np.ascontiguousarray(sample_weight, dtype=np.float64)
            if self.limits.shape != (bank.n_samples,) or not (
                np.isfinite(self.limits).all() and self.limits.min() > 0.0
            ):
                raise ValueError(
                    f"sample_weight must hold one positive number per training sample, {bank.n_samples}"
                )

    def score_blocks(self, coef):
        """Blocks of the score groups, class by class: shape (n_classes, K)."""
        return coef.T @ self.scores

    def split(self, group_weights):
        """Group weights as those of the kernels (F0,) and of every class and score (n_classes, K)."""
        n_kernels = self.bank.n_kernels
        per_class = group_weights[n_kernels:].reshape(self.rows, self.scores.shape[1])
        return group_weights[:n_kernels], np.broadcast_to(per_class, (self.n_classes, self.scores.shape[1]))

    def join(self, kernel_values, blocks_sq):
        """Values of all groups from those of the kernels and squares of every class and score (hinge: half the sum of both classes)."""
        values = blocks_sq if self.rows > 1 else self.factor * blocks_sq.sum(axis=0)
        return np.concatenate([kernel_values, values.ravel()])

    def block_norms_sq(self, coef, dtype=None):
        """Squared norms of all blocks, shape (n_groups,)."""
        return self.join(super().block_norms_sq(coef, dtype), self.score_blocks(coef) ** 2)

    def training_scores(self, coef, group_weights):
        """Class scores of all training samples, shape (n_samples, n_classes)."""
        of_kernels, of_scores = self.split(group_weights)
        return (
            super().training_scores(coef, of_kernels)
            + self.factor * self.scores @ (of_scores * self.score_blocks(coef)).T
        )
