"""Learners whose updates add a multiple of the sample to the weights of a class: on columns, or features."""

import math
from typing import NamedTuple

import numpy as np

from cuelearn.compiled import inner, njit, with_steps
from cuelearn.kernels.growing import FeatureSupport, filled
from cuelearn.kernels.specifications import as_kernel
from cuelearn.omcl import blocks
from cuelearn.omcl.base import SEEN, CueLearner, Hypothesis, Trace, dot, move, open_log, predict

__all__ = ["PlaneLearner"]


class Hyperplanes(NamedTuple):
    """Coefficients (n_classes, d) and, on request, weighted sums of all hyperplanes."""

    counts: np.ndarray
    coef: np.ndarray
    delayed: np.ndarray
    sums: np.ndarray


@inner
def look_at(X, t, coef, label, out):
    """Write class scores of sample t; returns best wrong class, margin and squared length."""
    d = X.shape[1]
    rival, margin = predict(coef, X[t], d, label, out)
    return rival, margin, dot(X[t], X[t], d)


@inner
def move_by(X, t, planes, log, label, rival, step, earlier):
    move(planes, log, t, label, rival, step, X[t], X.shape[1], earlier)


@njit(cache=True)
def linear_pass(X, labels, weights, earlier, planes, step_rule, scores, sums_before, log):
    """Visits in order; `step_rule` is that of `PlaneLearner`."""
    aggressiveness, passive, on_mistakes = step_rule
    counts = planes.counts
    coef = planes.coef
    sums = planes.sums
    n_classes, d = coef.shape
    for t in range(labels.shape[0]):
        rival, margin, length_sq = look_at(X, t, coef, labels[t], scores[t])
        counts[SEEN] += 1
        wrong = margin <= 0.0 or margin < 1.0 and not on_mistakes
        if wrong and length_sq > 0.0 and weights[t] > 0.0:
            step = aggressiveness * weights[t]
            if passive:
                step = min(step, (1.0 - margin) / (2.0 * length_sq))
            if not step < math.inf:  # PA on a sample whose square underflows
                step = 0.0
            move_by(X, t, planes, log, labels[t], rival, step, earlier[t])
        if sums_before.shape[0] > 0:
            for c in range(n_classes):
                for i in range(d):
                    sums_before[t, c, i] = sums[c, i]
                    sums[c, i] += weights[t] * coef[c, i]


feature_pass = with_steps(linear_pass, (blocks.look_at, blocks.move_by), njit(cache=True))


class PlaneLearner(CueLearner):
    """Base of learners of hyperplanes; `_step()` returns the largest step, whether it is limited to what
    removes the loss, and whether only mistakes count. `_support` is None or a `FeatureSupport`."""

    _learnt = ("_hypothesis", "_support")
    _support = None  # of older files

    def _open(self, X, n_classes):
        width = sums = X.shape[1]
        self._support = None
        if self._explicit():
            self._support = FeatureSupport(as_kernel(self.kernel), self.normalize, X)
            width = self._support.bank.n_features
            sums = 0
        self._hypothesis = Hypothesis(n_classes, width)
        self._hypothesis.sums = np.zeros((n_classes, sums))

    def _observe(self, X, labels, weights, log=False, sums=False):
        n = labels.size
        hypothesis = self._hypothesis
        hypothesis._own()
        n_classes, d = hypothesis.coef.shape
        scores = np.empty((n, n_classes))
        before = np.empty((n if sums else 0, n_classes, d))
        planes = Hyperplanes(hypothesis.counts, hypothesis.coef, hypothesis.delayed, hypothesis.sums)
        earlier = hypothesis.weigh(weights)
        visits = labels, weights, earlier, planes, self._step(), scores, before
        sizes = np.zeros(n, dtype=np.int64)
        if self._support is None:
            X = np.ascontiguousarray(filled(X)[0], dtype=np.float64)
            updates = open_log(hypothesis.counts, n, d, log)
            linear_pass(X, *visits, updates)
            return Trace(scores, sizes, updates, before)
        rows = self._support.batch(X)
        updates = open_log(hypothesis.counts, n, 1, log)
        feature_pass(rows, *visits, updates)
        return Trace(scores, sizes, updates, rows=rows)

    def _products(self, X, coef):
        if isinstance(self._support, FeatureSupport):
            return self._support.scores(X, coef)
        return super()._products(X, coef)

    @property
    def coef_(self):
        return self._hypothesis.coefficients(self.average)
