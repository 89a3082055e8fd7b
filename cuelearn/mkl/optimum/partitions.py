r"""MKL problems whose samples are in K partitions: consensus between local dual ascents.

With the losses of partition k as :math:`f_k`, the problem is :math:`\min_W g(W) + \sum_k f_k(W)`. In a round
the coordinator sends one point, each partition ascends in its dual variables, and returns their sum
:math:`\theta_k = \frac1n \sum_i \phi(x_i) B_i^\top` with two numbers. With a step s and :math:`\tau = s/K`,

.. math:: \tilde W &= \arg\min_W g(W) + \frac{1}{2\tau} \Big\|W - Z - \tau \sum_k c_k\Big\|^2 , \\
    \theta_k &= \arg\max_\theta -f_k^*(-\theta) - \langle \theta, 2\tilde W - Z \rangle
        - \frac s2 \|\theta - c_k\|^2 , \\
    Z &\leftarrow Z + \rho\,(\tilde W - Z), \qquad c_k \leftarrow c_k + \rho\,(\theta_k - c_k),

consensus ADMM (Boyd et al. 2011, section 7) as an over-relaxed primal-dual method (Chambolle and Pock 2011;
Condat 2013). No bound on dual variables involves two samples, so those of all partitions are always a dual
point; with the losses of :math:`\tilde W`, summed where the samples are, it gives each round's certificate.
Features are scaled so that of each cue the second moment is the metric: without, some directions take many
times as many rounds.

The step balances the two terms of the method's bound, :math:`K\|Z\|^2/s` and :math:`s \sum_k \|c_k\|^2`.
"""

from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.formulas import group_norm, margins
from cuelearn.core.run import Run
from cuelearn.expect import warn_user
from cuelearn.kernels.features import score_rows
from cuelearn.mkl.optimum.blocks import BlockAscent, BlockProblem
from cuelearn.mkl.optimum.problem import Result

# maximum rounds, and sweeps of a partition in a round
ROUNDS = 2000
SWEEPS = 2
# over-relaxation, below 2
RELAXATION = 1.8
# violation at which a partition stops: share of the gap, least and largest share of the objective
LOCAL_SHARE = 0.05
LEAST = 1e-3
LARGEST = 1e-2
# first step, and later ones, as share of the estimate
FIRST_STEP = 0.5
STEP = 0.7
# iterations of the regulariser's minimisation, and their change at the end
WEIGHT_ROUNDS = 200
WEIGHT_CHANGE = 1e-10


class Message(NamedTuple):
    """To a partition. Matrices sent are in single precision."""

    number: int  # of the round, from 1
    candidate: np.ndarray  # (n_classes, n_features)
    step: float
    tolerance: float
    state: tuple = ()  # Z and its c, if it has lost its own


class Report(NamedTuple):
    loss: float  # its share of the candidate's mean loss
    total: float  # and of the sum of dual variables
    theta: np.ndarray  # (n_classes, n_features)
    n_updates: int


def scaled_bank(bank, moments, n):
    """The bank without samples, with scaled features: per cue its second moment plus its mean is the metric.

    `moments` are those of all partitions, of n samples. `metric` (n_features,) has the eigenvalues.
    """
    new = bank.on()
    new.scaling = []
    metric = []
    for parts in zip(*moments, strict=True):
        values = sum(parts) / n
        basis = 1.0
        if values.ndim == 2:
            values, basis = np.linalg.eigh(values)
        values = np.maximum(values, 0.0)
        values = values + (values.mean() or 1.0)
        scaling = basis * (1.0 / np.sqrt(values))
        new.scaling.append(scaling.astype(bank.dtype))
        metric.append(values)
    new.metric = np.concatenate(metric)
    return new


class Partition(BlockAscent):
    """The samples of a partition with their dual variables.

    `bank` is a `scaled_bank`, `n` the number of samples in all partitions.
    """

    def __init__(self, bank, X, labels, class_weights, n, *, loss="multiclass", number=0, seed=0):
        bank = bank.on(X)
        bank.hold()
        self.problem = BlockProblem(bank, labels, class_weights.size, loss=loss)
        self.labels = self.problem.labels
        self.limits = class_weights[self.labels]
        self.n = n
        self.B = bank.zeros(class_weights.size)
        self.theta = np.zeros((class_weights.size, bank.n_features))
        self.primal = np.zeros_like(self.theta)
        self.center = np.zeros_like(self.theta)
        self.rounds = 0
        self.n_updates = 0
        self.seed = [seed, number]

    def round(self, message):
        """The `Report` on a message, or None if those before it are not known here."""
        if message.state:
            self.primal, self.center = (np.array(part) for part in message.state)
        elif message.number != self.rounds + 1:
            return None
        self.rounds = message.number
        bank = self.problem.bank
        candidate = message.candidate.astype(np.float64)
        factors = np.full(bank.n_kernels, self.problem.factor)
        # scores are those of `step * blocks`
        start = (2.0 * candidate - self.primal) / message.step + self.theta - self.center
        self.blocks = start.copy()
        order = np.random.default_rng([*self.seed, self.rounds]).permutation(bank.n_samples)
        loss = 0.0
        for chosen, visits, rows in bank.chunks(bank.arranged(order)):
            margin = margins(score_rows(rows, factors, candidate), self.labels[chosen])
            loss += float(self.limits[chosen] @ np.maximum(0.0, 1.0 - margin))
            rows = rows._replace(place=rows.place[visits])
            self._sweep(chosen[visits], rows, factors * message.step, message.tolerance, SWEEPS)
        self.theta += self.blocks - start
        sent = self.theta.astype(bank.dtype)
        self.primal += RELAXATION * (candidate - self.primal)
        self.center += RELAXATION * (sent - self.center)
        total = float(self.B[np.arange(bank.n_samples), self.labels].sum())
        return Report(loss / self.n, total / self.n, sent, self.n_updates)


class Consensus:
    """The coordinator: Z in `primal`, c of all partitions in `centers`, the best points so far."""

    def __init__(self, problem, bank, n_partitions):
        self.problem = problem
        self.bank = bank
        self.root = np.sqrt(bank.metric)
        self.primal = np.zeros((problem.n_classes, bank.n_features))
        self.centers = np.zeros((n_partitions, *self.primal.shape))
        self.step = FIRST_STEP * n_partitions * bank.metric.mean() / problem.regularization
        self.number = 0
        self.n_updates = 0
        self.bytes = 0
        self.best = self.primal
        self.objective = problem.mean_loss_at_zero
        self.bound = 0.0

    @property
    def gap(self):
        return max(0.0, self.objective - self.bound)

    def round(self, ask):
        problem = self.problem
        K = len(self.centers)
        self.number += 1
        shift = self.step / K
        sent = self._least(self.primal + shift * self.centers.sum(axis=0), shift).astype(self.bank.dtype)
        candidate = sent.astype(np.float64)
        tolerance = np.clip(LOCAL_SHARE * self.gap, LEAST * self.objective, LARGEST * self.objective)
        reports = ask(Message(self.number, sent, self.step, float(tolerance)), self._state)
        self.n_updates = sum(report.n_updates for report in reports)
        self.bytes += sum(sent.nbytes + report.theta.nbytes for report in reports)
        value = problem.regularizer(self._norms(candidate)) + sum(report.loss for report in reports)
        if value < self.objective:
            self.objective = value
            self.best = candidate
        theta = np.sum([report.theta for report in reports], axis=0, dtype=np.float64)
        norms = np.sqrt(problem.norms_sq_of(theta * self.root))
        self.bound = max(self.bound, problem.dual_value(sum(report.total for report in reports), norms))
        self.primal = self.primal + RELAXATION * (candidate - self.primal)
        for center, report in zip(self.centers, reports, strict=True):
            center += RELAXATION * (report.theta - center)
        length = np.linalg.norm(self.primal)
        if length > 0.0 and self.centers.any():
            estimate = np.sqrt(K) * length / np.linalg.norm(self.centers)
            self.step = np.sqrt(self.step * STEP * estimate)
        else:  # as long as no cue has weight
            self.step *= 0.5

    def _state(self, k):
        self.bytes += 2 * self.primal.nbytes
        return self.primal, self.centers[k]

    def _norms(self, blocks):
        return np.sqrt(self.problem.norms_sq_of(blocks / self.root))

    def _weights(self, norms):
        r"""Weights of the cues, :math:`m_f / (\lambda \|m\|_p^{2-p} m_f^{p-1} + \alpha)`, of norms m."""
        problem = self.problem
        slope = problem.regularization * group_norm(norms, problem.p) ** (2.0 - problem.p)
        slope = slope * norms ** (problem.p - 1.0) + problem.alpha
        return np.divide(norms, slope, out=np.zeros_like(norms), where=norms > 0.0)

    def _least(self, point, shift):
        r"""Minimum of :math:`g(W) + \|W - point\|^2 / (2 shift)`; g is majorised as in
        `cuelearn.mkl.optimum.dual`."""
        problem = self.problem
        starts = self.bank.starts
        squares = problem.factor * (point**2).sum(axis=0) / self.bank.metric
        norms = np.sqrt(np.add.reduceat(squares, starts[:-1]))
        norms[np.sqrt(problem.norms_sq_of(point * self.root)) <= shift * problem.alpha] = 0.0
        for _ in range(WEIGHT_ROUNDS):
            curved = np.repeat(self._weights(norms), np.diff(starts)) * self.bank.metric
            shrunk = curved / (curved + shift)
            last = norms
            norms = np.sqrt(np.add.reduceat(squares * shrunk**2, starts[:-1]))
            if np.abs(norms - last).max() <= WEIGHT_CHANGE * last.max():
                break
        return point * shrunk

    def point(self):
        """Blocks (n_features, n_classes) of the features before scaling, and weights; the best ones."""
        norms = self._norms(self.best)
        weights = self._weights(norms)
        blocks = []
        parts = np.split(self.best.T, self.bank.starts[1:-1])
        for part, scaling, weight in zip(parts, self.bank.scaling, weights, strict=True):
            block = scaling @ part if scaling.ndim == 2 else scaling[:, None] * part
            blocks.append(block / (weight or 1.0))
        return np.concatenate(blocks), weights


def solve_partitions(
    problem, bank, n_partitions, ask, *, tol=0.01, max_rounds=ROUNDS, callback=None, verbose=False
):
    """Solve a problem in partitions to the relative gap `tol`, or warn; a `Result` with blocks.

    `problem`, a `BlockProblem`, has a sample for each class, with the number of its samples as weight; `bank`
    is a `scaled_bank`. ``ask(message, state_of)`` returns the `Report` of each partition, in their order; to
    one that returns None the message goes again, with ``state=state_of(k)``. With ``tol=None`` there are
    `max_rounds`. `history` has the bytes sent both ways.

    A round costs a partition three passes over its samples, O(n_features n_classes) a visit. Sums are in the
    order of the partitions: the same ones give the same bits wherever they are.
    """
    run = Run(callback, verbose=verbose)
    consensus = Consensus(problem, bank, n_partitions)
    for number in run.rounds(max_rounds, "UFO-MKL"):
        consensus.round(ask)
        relative = consensus.gap / consensus.objective
        row = {name: getattr(consensus, name) for name in ("objective", "bytes", "n_updates")}
        row |= {"stage": "partitions", "epoch": number, "dual_gap": consensus.gap}
        run.end(number, lambda: consensus, note=f"relative gap {relative:.1e}", **row)
        if run.stopped or tol is not None and relative <= tol:
            break
    converged = tol is None or relative <= tol
    if not converged:
        warn_user(
            f"UFO-MKL did not reach tol={tol:g}: the relative duality gap is {relative:.2g} after {number} "
            "rounds; raise tol",
            ConvergenceWarning,
        )
    blocks, weights = consensus.point()
    ends = run.history(), consensus.objective, consensus.gap, number, consensus.n_updates, converged
    return Result(blocks, weights, *ends, block_norms_sq=problem.norms_sq_of(blocks.T))
