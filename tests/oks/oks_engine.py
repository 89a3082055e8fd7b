"""The compiled passes on given kernel matrices, called directly."""

import copy

import numpy as np

from cuelearn.oks.oks import oks_pass
from cuelearn.oks.predictors import GIVEN, Kernels, Predictors, Samples, Visits, Weights
from cuelearn.oks.regret import regret_pass
from cuelearn.oks.selection import LOSSES, Rates
from cuelearn.oks.som import som_pass

RULES = {"oks": oks_pass, "regret": regret_pass, "som": som_pass}


class State:
    """Kernels, predictors and probabilities of a run of a selection pass on a stack (n_kernels, n, n)."""

    def __init__(self, K, rule="oks", loss="hinge"):
        K = np.ascontiguousarray(K, dtype=np.float64)
        m, n = K.shape[:2]
        zeros = np.zeros(m, dtype=np.int64)
        self.kernels = Kernels(np.full(m, GIVEN), np.ones(m), np.zeros(m), zeros, zeros, zeros)
        self.samples = Samples(np.empty((0, 0)), np.empty((0, 0)), K)
        support, count = np.zeros((m, n), dtype=np.int64), np.zeros(m, dtype=np.int64)
        self.predictors = Predictors(support, np.zeros((m, n)), count)
        self.rule, self.loss = RULES[rule], LOSSES[loss]
        self.log_weights, self.q, self.p = np.zeros(m), np.full(m, 1.0 / m), np.full(m, 1.0 / m)
        self.n_updates = self.n_evaluations = 0

    def copy(self):
        other = copy.copy(self)
        other.predictors = Predictors(*(a.copy() for a in self.predictors))
        other.log_weights, other.q, other.p = self.log_weights.copy(), self.q.copy(), self.p.copy()
        return other

    def run(self, order, targets, uniforms, delta, eta, step, weights=None):
        """Visits; what was drawn, whether it erred, and its loss."""
        order = np.asarray(order, dtype=np.int64)
        drawn = np.empty(order.size, dtype=np.int64)
        mistakes = np.empty(order.size, dtype=np.bool_)
        losses = np.empty(order.size)
        targets, uniforms = np.asarray(targets, dtype=np.float64), np.asarray(uniforms, dtype=np.float64)
        factors = np.ones(targets.size) if weights is None else weights
        visits = Visits(order, targets, factors, uniforms, drawn, mistakes, losses)
        weights = Weights(self.log_weights, self.q, self.p)
        rates = Rates(float(delta), float(eta), float(step), self.loss)
        updates, evaluations = self.rule(self.kernels, self.samples, visits, weights, self.predictors, rates)
        self.n_updates += updates
        self.n_evaluations += evaluations
        return drawn, mistakes, losses

    def dictionaries(self):
        """Predictors as dictionaries from samples to coefficients."""
        p = self.predictors
        return [
            dict(zip(p.support[j, :c].tolist(), p.coef[j, :c].tolist(), strict=True))
            for j, c in enumerate(p.count)
        ]

    def outputs(self, i):
        """Every predictor at one sample, by plain sums."""
        return np.array(
            [
                sum(c * self.samples.stack[j, i, s] for s, c in d.items())
                for j, d in enumerate(self.dictionaries())
            ]
        )
