"""The state of a selection algorithm on given kernel matrices, visit by visit."""

import copy

import numpy as np

from cuelearn.core.run import Record
from cuelearn.oks.base import RECORDED
from cuelearn.oks.kernels import Given, Predictors, Samples
from cuelearn.oks.online import Selector, oks_pass, regret_pass

RULES = {
    "oks": {"rule": oks_pass},
    "regret": {"rule": regret_pass},
    "som": {"rule": oks_pass, "unbiased": False},
}


class State(Selector):
    """On a stack (n_kernels, n, n), of which values that are not read may be NaN."""

    def __init__(self, K, rule="oks", loss="hinge"):
        K = np.ascontiguousarray(K, dtype=np.float64)
        kernels = Given(*K.shape[:2]).kernels
        super().__init__(kernels, None, **RULES[rule], delta=[0.0], loss=loss, n_rounds=10**9)
        self.samples = Samples(np.empty((0, 0)), np.empty((0, 0)), K)
        self.reserve(K.shape[1])

    def copy(self):
        other = copy.copy(self)
        other.predictors = Predictors(*(values.copy() for values in self.predictors))
        other.log_weights, other.q, other.p = self.log_weights.copy(), self.q.copy(), self.p.copy()
        return other

    def run(self, order, targets, uniforms, delta, eta, step):
        """Visits; what was drawn, whether it erred, and its loss."""
        self.delta, self.eta, self.step = float(delta), float(eta), float(step)
        self.record = Record(RECORDED)
        targets = np.asarray(targets, dtype=np.float64)
        visits = (np.asarray(order, dtype=np.int64), targets, np.ones(targets.size), np.asarray(uniforms))
        self.visit(self.samples, *visits)
        return self.record["drawn"], self.record["mistakes"], self.record["losses"]

    def dictionaries(self):
        """Of each predictor, coefficients by sample."""
        rows = zip(*self.predictors, strict=True)
        return [dict(zip(support[:c], coef[:c], strict=True)) for support, coef, c in rows]

    def values_at(self, i):
        """Every predictor at one sample, by plain sums."""
        values = self.samples.stack[:, i]
        pairs = enumerate(self.dictionaries())
        return np.array([sum(c * values[j, s] for s, c in members.items()) for j, members in pairs])
