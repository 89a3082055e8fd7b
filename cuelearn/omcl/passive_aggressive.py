"""Online linear learners (thesis 3.2.2)."""

import math
from dataclasses import field
from numbers import Real
from typing import NamedTuple

import numpy as np

from cuelearn.codecache import njit
from cuelearn.core.estimator import POSITIVE, Number, parameters
from cuelearn.omcl.base import CueLearner, documented
from cuelearn.omcl.visits import SEEN, Hypothesis, Trace, dot, move, open_log, predict

__all__ = ["LinearLearner", "OnlineGradientDescent", "PassiveAggressive"]


class Hyperplanes(NamedTuple):
    """Coefficients (n_classes, d) and, on request, weighted sums of all hyperplanes."""

    counts: np.ndarray
    coef: np.ndarray
    delayed: np.ndarray
    sums: np.ndarray


@njit(cache=True)
def linear_pass(X, labels, weights, earlier, planes, aggressiveness, passive, scores, sums_before, log):
    """Visits in order; `passive` limits the step to what removes the loss."""
    counts = planes.counts
    coef = planes.coef
    sums = planes.sums
    n_classes, d = coef.shape
    for t in range(X.shape[0]):
        rival, margin = predict(coef, X[t], d, labels[t], scores[t])
        counts[SEEN] += 1
        length_sq = dot(X[t], X[t], d)
        if margin < 1.0 and length_sq > 0.0 and weights[t] > 0.0:
            step = aggressiveness * weights[t]
            if passive:
                step = min(step, (1.0 - margin) / (2.0 * length_sq))
            if not step < math.inf:  # PA on a sample whose square underflows
                step = 0.0
            move(planes, log, t, labels[t], rival, step, X[t], d, earlier[t])
        if sums_before.shape[0] > 0:
            for c in range(n_classes):
                for i in range(d):
                    sums_before[t, c, i] = sums[c, i]
                    sums[c, i] += weights[t] * coef[c, i]


class LinearLearner(CueLearner):
    """Base of linear learners; `_step()` returns the largest step and `passive`."""

    _learnt = ("_hypothesis",)

    def _open(self, X, n_classes):
        self._hypothesis = Hypothesis(n_classes, X.shape[1])
        self._hypothesis.sums = np.zeros((n_classes, X.shape[1]))

    def _observe(self, X, labels, weights, log=False, sums=False):
        X = np.ascontiguousarray(X, dtype=np.float64)
        n = labels.size
        hypothesis = self._hypothesis
        hypothesis._own()
        n_classes, d = hypothesis.coef.shape
        scores = np.empty((n, n_classes))
        before = np.empty((n if sums else 0, n_classes, d))
        updates = open_log(hypothesis.counts, n, d, log)
        planes = Hyperplanes(hypothesis.counts, hypothesis.coef, hypothesis.delayed, hypothesis.sums)
        earlier = hypothesis.weigh(weights)
        linear_pass(X, labels, weights, earlier, planes, *self._step(), scores, before, updates)
        return Trace(scores, np.zeros(n, dtype=np.int64), updates, before)

    def _skip(self, X, weight):
        super()._skip(X, weight)
        self._hypothesis.sums += weight * self._hypothesis.coef

    @property
    def coef_(self):
        return self._hypothesis.coefficients(self.average)


@documented
@parameters
class PassiveAggressive(LinearLearner):
    r"""Linear multiclass Passive-Aggressive, PA and PA-I.

    With loss :math:`\ell = [1 - w_y \cdot x + w_r \cdot x]_+`, r the best wrong class, a visit updates

    .. math:: w_y \leftarrow w_y + \tau x, \quad w_r \leftarrow w_r - \tau x, \qquad
              \tau = \min\Big\{C, \frac{\ell}{2\|x\|^2}\Big\} .

    There is no bias. Samples of zeros change nothing. Sample weights multiply C.

    Parameters
    ----------
    C : float > 0 or None, default 1.0
        The largest step (PA-I). None or infinity is PA, which removes every loss in full.
    $average $n_epochs $shuffle $record $random_state $callback $verbose

    Attributes
    ----------
    $coef_ $classes_ $n_seen_ $n_updates_ $n_mistakes_ $cumulative_loss_ $history_ $online_errors_
    $online_losses_

    Notes
    -----
    Cost per visit O(M d). For any u, with losses :math:`\ell^*_t`, PA-I satisfies :math:`\sum_t \tau_t \ell_t
    \le \|u\|^2 + 2 C \sum_t \ell^*_t`, and its mistakes are below :math:`\max\{\max_t 2\|x_t\|^2, 1/C\}`
    times that.

    References
    ----------
    Thesis equation 3.1, Algorithm 2 lines 23 to 26. Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, JMLR 7
    (2006), lemma 1, theorem 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.omcl import PassiveAggressive
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PassiveAggressive(C=0.1, shuffle=True, n_epochs=5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _parameter_constraints = {"C": [Number(Real, 0, None, closed="right"), None]}

    C: object = field(default=1.0, kw_only=False)

    def _step(self):
        return math.inf if self.C is None else float(self.C), True


@documented
@parameters
class OnlineGradientDescent(LinearLearner):
    r"""Linear multiclass learner with gradient steps of fixed size on the multiclass hinge loss.

    Its regret against any u has a computable bound, as theorem 3.1 requires of the second layer:

    .. math:: \sum_t \ell_t(w_t) - \sum_t \ell_t(u)
              \le \frac{\|u\|^2}{2\tau} + \frac{\tau}{2} \sum_{t: \ell_t > 0} 2\|x_t\|^2 .

    Parameters
    ----------
    step : float > 0, default 0.1
        :math:`\tau`, multiplied by sample weights.
    $average $n_epochs $shuffle $record $random_state $callback $verbose

    Attributes
    ----------
    $coef_ $classes_ $n_seen_ $n_updates_ $n_mistakes_ $cumulative_loss_ $history_ $online_errors_
    $online_losses_

    References
    ----------
    Zinkevich (2003); thesis theorem 3.1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.omcl import OnlineGradientDescent
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OnlineGradientDescent(0.01, shuffle=True, n_epochs=5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _parameter_constraints = {"step": POSITIVE}

    step: float = field(default=0.1, kw_only=False)

    def _step(self):
        return float(self.step), False
