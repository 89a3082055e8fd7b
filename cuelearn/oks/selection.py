"""Base of OKS, OKSRegret and SOM: each visit draws one kernel.

A pass is a compiled function ``(kernels, samples, visits, weights, predictors, rates)`` that returns the
numbers of updates and kernel values.
"""

import math
from numbers import Real
from typing import NamedTuple

import numpy as np

from cuelearn.codecache import njit
from cuelearn.core.estimator import POSITIVE, Number, StrOptions, parameters
from cuelearn.oks.base import Learner, StreamingKernels, of_learners
from cuelearn.oks.predictors import Visits, output, set_probabilities

__all__ = ["Rates", "SamplingKernels", "Selector", "ask", "draw"]

#: Numbers of OKSRegret's losses in compiled code.
LOSSES = {"hinge": 0, "logistic": 1, "square": 2}


class Rates(NamedTuple):
    """Share of uniform draws, steps of weights and predictors, number of the loss."""

    delta: float
    eta: float
    step: float
    loss: int


@njit(cache=True, nogil=True)
def draw(p, uniform):
    """Index drawn from the probabilities p by a uniform number in [0, 1)."""
    passed = 0.0
    last = 0
    for j in range(p.shape[0]):
        if p[j] > 0.0:
            last = j
            passed += p[j]
            if uniform < passed:
                return j
    return last  # rounding: the sum is a little below 1


@njit(cache=True, nogil=True)
def ask(kernels, samples, visits, weights, predictors, t):
    """Draw a kernel and predict; returns its number and the prediction."""
    i = visits.order[t]
    j = draw(weights.p, visits.uniforms[t])
    value = output(kernels, predictors, j, samples, i, samples)
    visits.drawn[t], visits.mistakes[t] = j, visits.targets[i] * value <= 0.0
    return j, value


class Selector(Learner):
    r"""State of a selection algorithm, the pass `rule`, on one binary problem.

    `delta` has one value per epoch; the last persists. "auto" is :math:`\sqrt{2(1-\delta)\ln m/(mT)}` for
    `eta`, with the epoch's delta, and :math:`\sqrt{\delta/(mT)}` for `step`, with the smallest; T is
    `n_rounds`, and doubles when exceeded. Without an estimator: ``Selector(source.kernels, rng,
    ...).run(source.pack(X), targets, n_epochs)`` with a `Columns` or `Given` as source.
    """

    SAVED = (*Learner.SAVED, "delta", "n_rounds")

    def __init__(self, kernels, rng, *, rule, delta, eta="auto", step=1.0, loss="hinge", n_rounds=1):
        super().__init__(kernels, rng)
        self.rule = rule
        self.deltas = delta
        self.eta = eta
        self.n_rounds = n_rounds
        self.step = step
        self.loss = LOSSES[loss]
        self.delta = delta[0]

    def start_epoch(self, epoch):
        self.delta = self.deltas[min(epoch, len(self.deltas) - 1)]
        set_probabilities(self.weights, self.delta)

    @property
    def rate(self):
        """Current eta."""
        if self.eta != "auto":
            return float(self.eta)
        m = self.q.size
        return math.sqrt(2.0 * (1.0 - self.delta) * math.log(m) / (m * self.n_rounds))

    @property
    def step_length(self):
        """lambda, the step of the predictors."""
        if self.step != "auto":
            return float(self.step)
        return math.sqrt(min(self.deltas) / (self.q.size * self.n_rounds))

    def visit(self, samples, order, targets, sample_weights, uniforms):
        done = 0
        while done < order.size:
            if self.n_seen >= self.n_rounds:
                self._double()
            part = slice(done, done + self.n_rounds - self.n_seen)
            self._visit_part(samples, order[part], targets, sample_weights, uniforms[part])
            done = part.stop

    def _double(self):
        """Double T: "auto" steps, log-weights and predictors shrink by sqrt(1/2), and remain a step times a
        sum over all visits (dual averaging), for which the regret bounds hold."""
        self.n_rounds *= 2
        if self.eta == "auto":
            self.log_weights *= math.sqrt(0.5)
            set_probabilities(self.weights, self.delta)
        if self.step == "auto":
            self.predictors.coef[:] *= math.sqrt(0.5)

    def _visit_part(self, samples, order, targets, sample_weights, uniforms):
        n = order.size
        notes = {"drawn": np.empty(n, np.int32), "mistakes": np.empty(n, np.bool_), "losses": np.empty(n)}
        visits = Visits(order, targets, sample_weights, uniforms, **notes)
        rates = Rates(self.delta, self.rate, self.step_length, self.loss)
        counts = self.rule(self.kernels, samples, visits, self.weights, self.predictors, rates)
        self.note(n, *counts, int(notes["mistakes"].sum()), **notes)


def shares(delta, least="(0"):
    """`delta` as list of numbers up to 1, one per epoch; `least` is "(0" or "[0"."""
    values = np.atleast_1d(np.asarray(delta, dtype=object)).tolist()
    constraint = Number(Real, 0, 1, closed="both" if least == "[0" else "right")
    if not values or not all(constraint.is_satisfied_by(value) for value in values):
        raise ValueError(f"delta must be a number in {least}, 1], or one per epoch, got {delta!r}")
    return [float(value) for value in values]


@parameters
class SamplingKernels(StreamingKernels):
    _parameter_constraints = {"eta": [*POSITIVE, StrOptions({"auto"})]}

    n_epochs: int = 2
    shuffle: bool = True

    sampling_probabilities_ = of_learners(lambda learner: learner.p.copy())
    drawn_ = of_learners(lambda learner: learner.record("drawn"), list)
