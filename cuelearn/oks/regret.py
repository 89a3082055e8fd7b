"""OKS for any convex loss (Yang et al., AAAI 2012, Algorithm 1)."""

import math

from sklearn.exceptions import ConvergenceWarning

from cuelearn.codecache import njit
from cuelearn.core.estimator import POSITIVE, StrOptions, parameters, validated
from cuelearn.oks.base import documented, of_learners
from cuelearn.oks.predictors import add, set_probabilities
from cuelearn.oks.selection import LOSSES, SamplingKernels, Selector, ask, shares
from cuelearn.warn import warn_user

__all__ = ["OKSRegret", "loss_and_slope", "regret_pass"]

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
    $n_epochs $shuffle $one_vs_rest $normalize $n_jobs $random_state $callback $verbose

    Attributes
    ----------
    online_losses_ : ndarray, shape (n_visits,)
        The loss of the drawn kernel.
    $classes_ $kernel_probabilities_ $sampling_probabilities_ $best_index_ $best_kernel_ $support_ $dual_coef_
    $drawn_ $visits_ $online_errors_ $n_updates_ $n_evaluations_ $history_ $probability_history_

    References
    ----------
    Yang, Mahdavi, Jin, Yi, Hoi: Online Kernel Selection, AAAI 2012, Algorithm 1, theorem 1, corollary 2.

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

    loss: str = "hinge"
    delta: object = (0.5, 0.2)
    eta: object = "auto"
    step: object = "auto"

    def _learner(self, kernels, rng, n_rounds):
        options = {"eta": self.eta, "step": self.step, "loss": self.loss, "n_rounds": n_rounds}
        return Selector(kernels, rng, rule=regret_pass, delta=shares(self.delta), **options)

    @validated
    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        largest = max(learner.record("losses").max() for learner in self._learners)
        if not largest < DIVERGED:
            warn_user(
                f"OKSRegret: losses grew to {largest:.3g}; step={self.step!r} is too long for the "
                f"{self.loss} loss",
                ConvergenceWarning,
            )
        return self

    fit.__doc__ = SamplingKernels.fit.__doc__

    online_losses_ = of_learners(lambda learner: learner.record("losses"), list)
