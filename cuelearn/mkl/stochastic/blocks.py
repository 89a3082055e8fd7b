"""Stochastic runs on explicit features: the loops of the algorithms, with steps on blocks of weights.

A visit costs O(n_features n_classes), for any number of samples.
"""

import numpy as np

from cuelearn.compiled import inlined, with_steps
from cuelearn.core.formulas import competitor, link_weights
from cuelearn.kernels.features import add_row_to, block_product, own_products, row_scores
from cuelearn.mkl.stochastic.training import (
    Entries,
    Samples,
    Setting,
    State,
    Stream,
    Work,
    gradient_norms_sq,
    zero_dual,
)


@inlined
def predict(i, prefactor, run):
    """Best wrong class and margin."""
    row = run.rows.place[i]
    scores = run.work.scores
    row_scores(run.rows, row, run.dual.weights, run.dual.coef, scores)
    rival, margin = competitor(scores, run.samples.labels[i])
    return rival, margin * run.setting.factor * prefactor


@inlined
def add_update(i, rival, step, run):
    """Move the blocks of two classes by the features of sample i, with norms and dual variables."""
    row = run.rows.place[i]
    label = run.samples.labels[i]
    up = run.dual.coef[label]
    down = run.dual.coef[rival]
    for f in range(run.dual.norms_sq.shape[0]):
        product = block_product(run.rows, row, f, up) - block_product(run.rows, row, f, down)
        change = 2.0 * product + 2.0 * step * run.samples.diagonal[f, i]
        run.dual.norms_sq[f] += run.setting.factor * step * change
    add_row_to(run.rows, row, step, up)
    add_row_to(run.rows, row, -step, down)
    own = run.dual.entries.value
    if own.shape[0] > 0:
        own[i, label] += step
        own[i, rival] -= step
    run.dual.now.n_updates += 1


class BlockStream(Stream):
    """`Stream` over a `BlockProblem`, whose dual has blocks (n_classes, n_features) as coefficients; in
    `start` they are transposed."""

    route = "recompute"
    reveal = None
    averages = False
    n_support = 0  # no samples are kept

    def __init__(self, problem, *, scores="auto", long_run=True, start=None, cost=None):
        self.problem = problem
        self.bank = problem.bank
        n_classes = problem.n_classes
        self.visited = np.flatnonzero(problem.limits)
        if cost is None:
            cost = problem.limits * (self.visited.size / self.bank.n_samples)
        self.samples = Samples(problem.labels, None, None, cost, None)  # the others come with the features
        self.setting = Setting(problem.q, problem.regularization, problem.alpha, problem.factor, -1.0, True)
        self.dual_coef = np.zeros((0, n_classes))
        if problem.certified:
            self.dual_coef = self.bank.zeros(n_classes)
        self.n_passes = 0
        entries = Entries(None, None, np.zeros((0, n_classes)), None)  # the value is B of a chunk
        self.dual = zero_dual(problem, self.bank.n_features, entries, np.zeros((0, 0, 0)))
        self.work = Work(None, None, None, None, np.zeros(n_classes))
        if start is not None:
            self.dual.coef[:] = start[0].T
            self.dual.norms_sq[:] = start[1]
            self.dual.now.norm = link_weights(np.sqrt(start[1]), 0.0, problem.q, self.dual.weights)

    def start_stage(self, loop, *parameters, averages=False):
        super().start_stage(with_steps(loop, (predict, add_update)), *parameters, averages=averages)

    def visit(self, order):
        """Visit samples, batches one after another, for which `order` is changed; returns the mistakes."""
        if self.n_passes == (0 if self.problem.certified else 1):  # others follow
            self.bank.hold()
        self.n_passes += 1
        order[:] = self.bank.arranged(order)
        mistakes = np.zeros(order.size, dtype=np.bool_)
        first = 0
        for chosen, visits, rows in self.bank.chunks(order):
            dual = self.dual
            if self.dual_coef.size:
                # the last row, 1, records rescaling
                own = np.concatenate([np.asarray(self.dual_coef[chosen]), np.ones((1, len(dual.coef)))])
                dual = dual._replace(entries=dual.entries._replace(value=own))
            part = mistakes[first : first + visits.size]
            first += visits.size
            done = 0
            while True:
                run = State(self._samples(chosen, rows), rows, dual, self.work, self.setting)
                done = self.loop(visits, done, part, run, *self.parameters)
                if done == visits.size:
                    break
                self.reveal(chosen[visits[done]])
            if self.dual_coef.size:
                if own[-1, 0] != 1.0:
                    self.dual_coef *= own[-1, 0]
                self.dual_coef[chosen] = own[:-1]
        self.dual.norms_sq[:] = self.problem.norms_sq_of(self.dual.coef)
        return mistakes

    def _samples(self, chosen, rows):
        diagonal = own_products(rows)
        lengths = gradient_norms_sq(self.problem, diagonal)
        given = self.samples
        priors = self.problem.scores[chosen]  # none
        return Samples(given.labels[chosen], diagonal, lengths, given.cost[chosen], priors)

    def _dual_coefficients(self, factor):
        return np.multiply(self.dual_coef, factor, out=self.bank.zeros(self.problem.n_classes))
