"""The state of an OBSCURE run over kernels and score groups."""

import numpy as np

from cuelearn.core.groupnorm import group_norm, link_weights
from cuelearn.mkl.rules import BATCH, FIXED
from cuelearn.mkl.stream import Stream
from cuelearn.mktl import engine

__all__ = ["TransferStream"]


class TransferStream(Stream):
    """A `Stream` whose blocks are those of a `TransferProblem`. Scores are always maintained; only OBSCURE's rules are known.

    Parameters
    ----------
    problem : TransferProblem
    scores : {"auto", "maintain"}
    long_run : bool
        Without effect.
    """

    def __init__(self, problem, *, scores="auto", long_run=True):
        if scores not in ("auto", "maintain"):
            raise ValueError(f"scores must be 'auto' or 'maintain' with score groups, got {scores!r}")
        n_groups, n_scores = problem.n_groups, problem.scores.shape[1]
        self.theta, self.effective = (np.zeros((problem.n_classes, n_scores)) for _ in range(2))
        super().__init__(problem, scores="maintain")
        self.norms_sq, self.norms, self.weights = (np.zeros(n_groups) for _ in range(3))
        self.active = np.zeros(n_groups, dtype=np.int64)
        self.cost = np.broadcast_to(
            np.asarray(problem.limits, dtype=np.float64), (problem.bank.n_samples,)
        ).copy()
        if n_scores:
            self.gradient_norm_sq = self._gradient_norms_sq()

    def _gradient_norms_sq(self):
        """A gradient has the norms sqrt(2 k(x, x)) and, for the two classes that it concerns, the absolute scores."""
        problem = self.problem
        absolute = np.abs(problem.scores)
        of_scores = absolute if problem.rows == 1 else np.concatenate([absolute, absolute], axis=1)
        norms = np.concatenate([np.sqrt(2.0 * problem.factor * self.diagonal).T, of_scores], axis=1)
        return np.array([group_norm(row, problem.q) ** 2 for row in norms])

    def start_stage(self, rule, **params):
        """Begin a stage, see `Stream.start_stage`."""
        if rule not in (FIXED, BATCH):
            raise ValueError("a TransferStream knows OBSCURE's two rules only")
        super().start_stage(rule, **params)

    def visit(self, order):
        """Visit samples in the given order; returns the mistakes, in order."""
        order = np.ascontiguousarray(order, dtype=np.int64)
        mistakes = np.zeros(order.size, dtype=np.bool_)
        if self.update_share is not None:
            self._reconsider_route(self.update_share)
        before = self.n_updates
        position = 0
        while True:
            position = engine.visit_samples(
                self.rule,
                self.flat,
                self.row_of,
                self.row_stride,
                self.kernel_stride,
                order,
                position,
                self.problem.labels,
                self.diagonal,
                self.gradient_norm_sq,
                self.cost,
                self.problem.scores,
                self.problem.rows == 1,
                self.coef,
                self.theta,
                self.effective,
                self.norms_sq,
                self.norms,
                self.weights,
                self.active,
                self.maintained,
                self.scores,
                self.params,
                self.reals,
                self.counts,
                mistakes,
            )
            if position >= order.size:
                break
            self._fetch_coming(order, position)
        if order.size:
            self.update_share = (self.n_updates - before) / order.size
        return mistakes

    def _refresh_scores(self):
        """Maintained scores, blocks and norms anew from the coefficients."""
        n_kernels = self.bank.n_kernels
        everything, self.norms_sq = self.norms_sq, np.zeros(n_kernels)
        super()._refresh_scores()
        of_kernels, self.norms_sq = self.norms_sq, everything
        self.theta[...] = self.problem.score_blocks(self.coef.T)
        self.norms_sq[:] = self.problem.join(of_kernels, self.theta**2)
        engine.refresh_link(
            self.norms_sq,
            self.norms,
            self.weights,
            0.0,
            self.problem.q,
            self.params[engine.ROUNDING],
            self.active,
            self.reals,
            self.counts,
        )
        engine.refresh_effective(self.theta, self.weights, n_kernels, self.problem.rows == 1, self.effective)

    def scores_now(self, dual_coef, group_weights):
        """Class scores of all training samples at the present point."""
        of_kernels, of_scores = self.problem.split(group_weights)
        kernel_part = np.einsum(
            "cji,j->ic", self.maintained, of_kernels.astype(self.bank.dtype), optimize=True
        )
        return (
            self.problem.factor
            * self.scale
            * (kernel_part + self.problem.scores @ (of_scores * self.theta).T)
        )

    def point(self):
        """The present primal point: coefficients and weights of all groups."""
        weights = np.zeros_like(self.norms_sq)
        link_weights(np.sqrt(np.maximum(0.0, self.norms_sq)), 0.0, self.problem.q, weights)
        return self.coef.T * self.scale, weights / self.problem.q
