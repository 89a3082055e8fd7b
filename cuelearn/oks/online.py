"""Online learners of many kernels: a visit trains a drawn one (OKS, OKSRegret, SOM) or all (OM1, MuTron)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cuelearn.compiled import njit
from cuelearn.core.estimator import POSITIVE, Number, StrOptions, parameters
from cuelearn.core.formulas import first_best
from cuelearn.expect import warn_user
from cuelearn.kernels.types import ArrayLike
from cuelearn.oks.base import Learner, OnlineKernels, StreamingKernels, documented, held_back
from cuelearn.oks.kernels import Samples, add, output, set_probabilities

#: Numbers of OKSRegret's losses in compiled code.
LOSSES = {"hinge": 0, "logistic": 1, "square": 2}


class Rates(NamedTuple):
    delta: float | Sequence[float]  # share of uniform draws
    eta: float | Literal["auto"]  # step of the weights
    step: float | Literal["auto"]  # of the predictors
    loss: Literal["hinge", "logistic", "square"]  # in `LOSSES`
    unbiased: bool  # whether steps are divided by the probability of the draw


@njit(cache=True, nogil=True)
def draw(p, uniform):
    """Index drawn from the probabilities p."""
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
    """Draw a kernel; returns its number and prediction."""
    i = visits.order[t]
    j = draw(weights.p, visits.uniforms[t])
    value = output(kernels, predictors, j, samples, i, samples)
    visits.drawn[t], visits.mistakes[t] = j, visits.targets[i] * value <= 0.0
    return j, value


class Selector(Learner):
    """State of a selection algorithm, the pass `rule`, on one binary problem; see `Rates`.

    `delta` has one value per epoch, the last persists; `eta` and `step` are those of `OKSRegret`, with T =
    `n_rounds`, which doubles when exceeded. Without an estimator: ``Selector(source.kernels, rng,
    ...).run(source.pack(X), targets, n_epochs)`` with a `Columns` or `Given` as source.
    """

    SAVED = (*Learner.SAVED, "delta", "n_rounds")

    def __init__(
        self, kernels, rng, *, rule, delta, eta="auto", step=1.0, loss="hinge", unbiased=True, n_rounds=1
    ):
        super().__init__(kernels, rng)
        self.rule = rule
        self.unbiased = unbiased
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
        if self.eta != "auto":
            return float(self.eta)
        m = self.q.size
        return math.sqrt(2.0 * (1.0 - self.delta) * math.log(m) / (m * self.n_rounds))

    @property
    def step_length(self):
        if self.step != "auto":
            return float(self.step)
        return math.sqrt(min(self.deltas) / (self.q.size * self.n_rounds))

    def visit(self, samples, order, targets, sample_weights, uniforms):
        done = 0
        while done < order.size:
            if self.n_seen >= self.n_rounds:
                self._double()
            part = slice(done, done + self.n_rounds - self.n_seen)
            super().visit(samples, order[part], targets, sample_weights, uniforms[part])
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

    def _pass(self, samples, visits):
        rates = Rates(self.delta, self.rate, self.step_length, self.loss, self.unbiased)
        return self.rule(self.kernels, samples, visits, self.weights, self.predictors, rates)


def shares(delta, least="(0"):
    """`delta` as a list; `least` is "(0" or "[0"."""
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

    @property
    def sampling_probabilities_(self) -> np.ndarray:
        return self._of_learners(lambda learner: learner.p.copy())

    @property
    def drawn_(self) -> np.ndarray | Any:
        return self._of_learners(lambda learner: learner.record["drawn"], list)


@njit(cache=True, nogil=True)
def oks_pass(kernels, samples, visits, weights, predictors, rates):
    """If the drawn kernel errs: w_i <- w_i exp(-eta / p_i), f_i <- f_i + lambda y k_i(x, .) / p_i.

    SOM, which is not `unbiased`, has 1 in place of p_i, and eta is -log(beta).
    """
    n_updates = 0
    n_evaluations = 0
    for t in range(visits.order.shape[0]):
        j, _ = ask(kernels, samples, visits, weights, predictors, t)
        i = visits.order[t]
        n_evaluations += predictors.count[j]
        visits.losses[t] = visits.mistakes[t]
        factor = visits.sample_weights[i]
        if visits.mistakes[t] and factor > 0.0:
            probability = 1.0
            if rates.unbiased:
                probability = weights.p[j]
            add(predictors, j, i, factor * rates.step * visits.targets[i] / probability)
            n_updates += 1
            weights.log_weights[j] -= factor * rates.eta / probability
            set_probabilities(weights, rates.delta)
    return n_updates, n_evaluations


@documented
@parameters
class OKS(SamplingKernels):
    r"""Online kernel selection for classification: finds a good kernel among many at the cost of one.

    Each visit draws one kernel from :math:`p = (1-\delta) q + \delta/m`. If its predictor errs, :math:`z =
    1[y f_i(x) \le 0]`,

    .. math:: w_i \leftarrow w_i \exp(-\eta z / p_i), \qquad
              f_i \leftarrow f_i + y z\, k_i(x, \cdot) / p_i, \qquad q = w / \textstyle\sum_j w_j .

    Division by the probability makes both estimates unbiased. Sample weights multiply z. The paper's step
    :math:`\lambda` of the predictors is 1, as draws, mistakes and probabilities do not depend on it.

    Parameters
    ----------
    $kernels $delta $eta $run

    Attributes
    ----------
    $selection

    See Also
    --------
    SOM : Without the unbiased estimates.
    OM1 : All kernels in every visit.
    OKSRegret : Any convex loss, as in the theorems.

    Notes
    -----
    A visit costs O(S d + m): values of the drawn kernel with its S support samples of d features. With
    one_vs_rest the attributes hold one entry per class.

    References
    ----------
    Yang, Mahdavi, Jin, Yi, Hoi: Online Kernel Selection, AAAI 2012, Algorithm 2 and theorem 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.oks import OKS
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> OKS(cues, n_epochs=5, random_state=0).fit(X, y == 2).best_kernel_
    'petal'
    """

    n_epochs: int = 5
    delta: float | Sequence[float] = (0.5, 0.2)
    eta: float | Literal["auto"] = "auto"

    def _learner(self, kernels, rng, n_rounds):
        options = {"delta": shares(self.delta), "eta": self.eta}
        return Selector(kernels, rng, rule=oks_pass, n_rounds=n_rounds, **options)


@documented
@parameters
class SOM(SamplingKernels):
    r"""Stochastic online multiple kernel learning with a single update: OKS without its unbiased estimates.

    One kernel is drawn from :math:`p = (1-\delta) q + \delta/m`; if it errs, :math:`w_i \leftarrow \beta w_i`
    and :math:`f_i \leftarrow f_i + y\, k_i(x, \cdot)`. A sample weight s makes these :math:`\beta^s` and
    :math:`s y`.

    Parameters
    ----------
    $kernels $beta
    delta : float in [0, 1] or a sequence of them, default 0.2
        Share of uniform draws.
    $run

    Attributes
    ----------
    $selection

    References
    ----------
    Jin, Hoi, Yang: Online multiple kernel learning: algorithms and mistake bounds, ALT 2010, Algorithm 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.oks import SOM
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> SOM(cues, n_epochs=5, random_state=0).fit(X, y == 2).best_kernel_
    'petal'
    """

    beta: float = 0.8
    delta: float | Sequence[float] = 0.2

    def _learner(self, kernels, rng, n_rounds):
        options = {"delta": shares(self.delta, "[0"), "eta": -math.log(self.beta), "unbiased": False}
        return Selector(kernels, rng, rule=oks_pass, n_rounds=n_rounds, **options)


DIVERGED = 1e6  # loss that shows divergence
HINGE = LOSSES["hinge"]
SQUARE = LOSSES["square"]


@njit(cache=True, nogil=True)
def loss_and_slope(loss, output, y):
    """A convex loss of a real prediction, and its (sub)derivative."""
    if loss == SQUARE:
        return 0.5 * (output - y) ** 2, output - y
    if loss == HINGE:
        return (1.0 - y * output, -y) if y * output < 1.0 else (0.0, 0.0)
    margin = y * output
    if margin > 0.0:
        small = math.exp(-margin)
        return math.log1p(small), -y * small / (1.0 + small)
    small = math.exp(margin)
    return math.log1p(small) - margin, -y / (1.0 + small)


@njit(cache=True, nogil=True)
def regret_pass(kernels, samples, visits, weights, predictors, rates):
    """For the drawn kernel: w_i <- w_i exp(-eta l / p_i), f_i <- f_i - lambda l' k_i(x, .) / p_i."""
    n_updates = 0
    n_evaluations = 0
    for t in range(visits.order.shape[0]):
        j, output = ask(kernels, samples, visits, weights, predictors, t)
        i = visits.order[t]
        n_evaluations += predictors.count[j]
        value, slope = loss_and_slope(rates.loss, output, visits.targets[i])
        visits.losses[t] = value
        factor = visits.sample_weights[i]
        price = factor * rates.eta * value / weights.p[j]
        amount = -factor * rates.step * slope / weights.p[j]
        if amount != 0.0:
            add(predictors, j, i, amount)
            n_updates += 1
        if price != 0.0:
            weights.log_weights[j] -= price
            set_probabilities(weights, rates.delta)
    return n_updates, n_evaluations


@documented
@parameters
class OKSRegret(SamplingKernels):
    r"""Online kernel selection for any convex loss.

    Each visit draws one kernel from :math:`p = (1-\delta) q + \delta/m` and, right or wrong, updates

    .. math:: w_i \leftarrow w_i \exp(-\eta\, \ell(f_i(x), y) / p_i), \qquad
              f_i \leftarrow f_i - \lambda\, \ell'(f_i(x), y)\, k_i(x, \cdot) / p_i .

    Sample weights multiply the loss.

    Parameters
    ----------
    $kernels
    loss : {"hinge", "logistic", "square"}, default "hinge"
        :math:`[1 - yf]_+`, :math:`\ln(1 + e^{-yf})`, :math:`\frac12(f - y)^2`, with y of -1 or 1. If losses
        diverge (a long step on the square loss), `fit` issues a ConvergenceWarning.
    $delta $eta
    step : float > 0 or "auto", default "auto"
        Step :math:`\lambda`; "auto" is :math:`\sqrt{\delta/(mT)}` with the smallest delta and the T of `eta`,
        which balances theorem 1's terms for a comparator of norm 1 and slopes up to 1.
    $run

    Attributes
    ----------
    online_losses_ : ndarray, shape (n_visits,)
        The loss of the drawn kernel.
    $selection

    References
    ----------
    Yang et al., AAAI 2012, Algorithm 1, theorem 1, corollary 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.oks import OKSRegret
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = OKSRegret(cues, loss="logistic", random_state=0).fit(X, y == 2)
    >>> float(model.kernel_probabilities_.sum().round(6))
    1.0
    """

    _parameter_constraints = {"loss": [StrOptions(set(LOSSES))], "step": [*POSITIVE, StrOptions({"auto"})]}

    loss: Literal["hinge", "logistic", "square"] = "hinge"
    delta: float | Sequence[float] = (0.5, 0.2)
    eta: float | Literal["auto"] = "auto"
    step: float | Literal["auto"] = "auto"

    def _learner(self, kernels, rng, n_rounds):
        options = {"eta": self.eta, "step": self.step, "loss": self.loss, "n_rounds": n_rounds}
        return Selector(kernels, rng, rule=regret_pass, delta=shares(self.delta), **options)

    def _finish(self):
        largest = max(learner.record["losses"].max() for learner in self._learners)
        if not largest < DIVERGED:
            warn_user(
                f"OKSRegret: losses grew to {largest:.3g}; step={self.step!r} is too long for the "
                f"{self.loss} loss",
                ConvergenceWarning,
            )

    @property
    def online_losses_(self) -> np.ndarray | Any:
        return self._of_learners(lambda learner: learner.record["losses"], list)


@njit(cache=True, nogil=True)
def committee_pass(kernels, samples, visits, weights, predictors, discount, own_mistakes):
    """A pass of `OM1`, `discount` = -log(beta); mistakes are the vote's, `own_mistakes` those of kernels."""
    n_updates = 0
    n_evaluations = 0
    for t in range(visits.order.shape[0]):
        i = visits.order[t]
        y = visits.targets[i]
        factor = visits.sample_weights[i]
        vote = 0.0
        changed = False
        for j in range(own_mistakes.shape[0]):
            value = output(kernels, predictors, j, samples, i, samples)
            n_evaluations += predictors.count[j]
            vote += np.sign(value) * weights.q[j]
            if y * value <= 0.0:
                own_mistakes[j] += 1
                if factor > 0.0:
                    add(predictors, j, i, factor * y)
                    n_updates += 1
                    weights.log_weights[j] -= factor * discount
                    changed = True
        visits.mistakes[t] = y * vote <= 0.0
        if changed and discount > 0.0:
            set_probabilities(weights, 0.0)
    return n_updates, n_evaluations


class Committee(Learner):
    """A Perceptron per kernel, weights discounted by own mistakes."""

    SAVED = (*Learner.SAVED, "own_mistakes")

    def __init__(self, kernels, rng, *, discount):
        super().__init__(kernels, rng)
        self.discount = discount
        self.own_mistakes = np.zeros(self.q.size, dtype=np.int64)

    def _pass(self, samples, visits):
        own = self.weights, self.predictors, self.discount, self.own_mistakes
        return committee_pass(self.kernels, samples, visits, *own)


@documented
@parameters
class OM1(StreamingKernels):
    r"""OM-1: deterministic online multiple kernel learning; all kernels are trained, a weighted vote decides.

    .. math:: \hat y = \operatorname{sign} \sum_i q_i \operatorname{sign} f_i(x), \qquad
              z_i = 1[y f_i(x) \le 0], \qquad w_i \leftarrow \beta^{z_i} w_i, \qquad f_i \leftarrow f_i +
              z_i\, y\, k_i(x, \cdot) .

    Sample weights multiply :math:`z_i`.

    Parameters
    ----------
    $kernels $beta $run

    Attributes
    ----------
    $classes_ $kernel_probabilities_ $best_index_ $best_kernel_ $support_ $dual_coef_ $mistakes_per_kernel_
    $visits_ $online_errors_ $n_updates_ $n_evaluations_ $history_ $probability_history_

    Notes
    -----
    A visit costs O(m S d): every kernel with its own support.

    References
    ----------
    Jin, Hoi, Yang: Online multiple kernel learning: algorithms and mistake bounds, ALT 2010, Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.oks import OM1
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = OM1(cues, shuffle=True, random_state=0).fit(X, y == 2)
    >>> bool(model.score(X, y == 2) > 0.9)
    True
    """

    beta: float = 0.8

    def _learner(self, kernels, rng, n_rounds):
        return Committee(kernels, rng, discount=-math.log(self.beta))

    def _decide(self, learner, here, held):
        return np.sign(learner.outputs(here, held)) @ learner.q

    @property
    def mistakes_per_kernel_(self) -> np.ndarray:
        return self._of_learners(lambda learner: learner.own_mistakes.copy())


class Judged(Committee):
    """Perceptrons of which the most accurate on held-out samples is kept."""

    SAVED = (*Committee.SAVED, "accuracy")

    def __init__(self, kernels, rng):
        super().__init__(kernels, rng, discount=0.0)
        self.accuracy = np.zeros(self.q.size)

    def visit(self, samples, order, targets, sample_weights, uniforms):
        """Train; `n_mistakes` is the kernels' mean."""
        super().visit(samples, order, targets, sample_weights, uniforms)
        self.n_mistakes = float(self.own_mistakes.mean())

    @property
    def best(self):
        """The first most accurate kernel."""
        return first_best(self.accuracy)


@documented
@parameters
class MuTron(OnlineKernels):
    """MuTron: a Perceptron per kernel; the one that errs least on held-out samples is kept.

    Held-out samples are stratified; the paper does not say how it draws them. Sample weights multiply the
    updates, and count in the accuracy.

    Parameters
    ----------
    $kernels $validation $run

    Attributes
    ----------
    validation_accuracy_ : ndarray, shape (n_kernels,), or (n_classes, n_kernels)
        On the held-out samples.
    $best_index_ $best_kernel_ $mistakes_per_kernel_ $classes_ $support_ $dual_coef_ $n_updates_
    $n_evaluations_ $visits_ $history_

    Notes
    -----
    The paper's tuned step is omitted: it scales the coefficients of a Perceptron that starts from 0, and only
    signs count.

    References
    ----------
    Yang et al., AAAI 2012, "MuTron"; Rosenblatt's Perceptron with kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.oks import MuTron
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = MuTron(cues, shuffle=True, random_state=0).fit(X, y == 2)
    >>> model.best_kernel_, model.validation_accuracy_.shape
    ('petal', (2,))
    """

    validation: float | ArrayLike = 0.1

    def _learner(self, kernels, rng, n_rounds):
        return Judged(kernels, rng)

    def _run(self, learner, samples, targets, sample_weights, bar):
        train, test = held_back(targets, self.validation, learner.rng, sample_weights)
        stack = samples.stack
        if not self._source.width:
            stack = stack[:, test]
        tested = Samples(samples.data[test], samples.scale[test], stack)
        super()._run(learner, samples, targets, sample_weights, bar, train)
        right = np.where(learner.outputs(tested, samples) > 0.0, 1.0, -1.0) == targets[test][:, None]
        learner.accuracy = np.average(right, axis=0, weights=sample_weights[test])

    mistakes_per_kernel_ = OM1.mistakes_per_kernel_

    @property
    def validation_accuracy_(self) -> np.ndarray:
        return self._of_learners(lambda learner: learner.accuracy)
