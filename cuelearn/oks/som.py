"""SOM (Jin, Hoi and Yang, ALT 2010, Algorithm 3)."""

import math

from cuelearn.codecache import njit
from cuelearn.core.estimator import parameters
from cuelearn.oks.base import documented
from cuelearn.oks.predictors import add, set_probabilities
from cuelearn.oks.selection import SamplingKernels, Selector, ask, shares

__all__ = ["SOM", "som_pass"]


@njit(cache=True, nogil=True)
def som_pass(kernels, samples, visits, weights, predictors, rates):
    """If the drawn kernel errs: w_i <- beta w_i, f_i <- f_i + y k_i(x, .); eta is -log(beta)."""
    n_updates = 0
    n_evaluations = 0
    for t in range(visits.order.shape[0]):
        j, _ = ask(kernels, samples, visits, weights, predictors, t)
        i = visits.order[t]
        n_evaluations += predictors.count[j]
        visits.losses[t] = visits.mistakes[t]
        factor = visits.sample_weights[i]
        if visits.mistakes[t] and factor > 0.0:
            add(predictors, j, i, factor * rates.step * visits.targets[i])
            n_updates += 1
            weights.log_weights[j] -= factor * rates.eta
            set_probabilities(weights, rates.delta)
    return n_updates, n_evaluations


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
    $n_epochs $shuffle $one_vs_rest $normalize $n_jobs $random_state $callback $verbose

    Attributes
    ----------
    $classes_ $kernel_probabilities_ $sampling_probabilities_ $best_index_ $best_kernel_ $support_ $dual_coef_
    $drawn_ $visits_ $online_errors_ $n_updates_ $n_evaluations_ $history_ $probability_history_

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
    delta: object = 0.2

    def _learner(self, kernels, rng, n_rounds):
        options = {"eta": -math.log(self.beta), "n_rounds": n_rounds}
        return Selector(kernels, rng, rule=som_pass, delta=shares(self.delta, "[0"), **options)
