"""OKS (Yang et al., AAAI 2012, Algorithm 2)."""

from cuelearn.codecache import njit
from cuelearn.core.estimator import parameters
from cuelearn.oks.base import documented
from cuelearn.oks.predictors import add, set_probabilities
from cuelearn.oks.selection import SamplingKernels, Selector, ask, shares

__all__ = ["OKS", "oks_pass"]


@njit(cache=True, nogil=True)
def oks_pass(kernels, samples, visits, weights, predictors, rates):
    """If the drawn kernel errs: w_i <- w_i exp(-eta / p_i), f_i <- f_i + lambda y k_i(x, .) / p_i."""
    n_updates = 0
    n_evaluations = 0
    for t in range(visits.order.shape[0]):
        j, _ = ask(kernels, samples, visits, weights, predictors, t)
        i = visits.order[t]
        n_evaluations += predictors.count[j]
        visits.losses[t] = visits.mistakes[t]
        factor = visits.sample_weights[i]
        if visits.mistakes[t] and factor > 0.0:
            add(predictors, j, i, factor * rates.step * visits.targets[i] / weights.p[j])
            n_updates += 1
            weights.log_weights[j] -= factor * rates.eta / weights.p[j]
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
    $kernels $delta $eta $n_epochs $shuffle $one_vs_rest $normalize $n_jobs $random_state $callback $verbose

    Attributes
    ----------
    $classes_ $kernel_probabilities_ $sampling_probabilities_ $best_index_ $best_kernel_ $support_ $dual_coef_
    $drawn_ $visits_ $online_errors_ $n_updates_ $n_evaluations_ $history_ $probability_history_

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
    delta: object = (0.5, 0.2)
    eta: object = "auto"

    def _learner(self, kernels, rng, n_rounds):
        options = {"rule": oks_pass, "eta": self.eta, "n_rounds": n_rounds}
        return Selector(kernels, rng, delta=shares(self.delta), **options)
