"""OM-1 (Jin, Hoi and Yang, ALT 2010, Algorithm 1)."""

import math

import numpy as np

from cuelearn.codecache import njit
from cuelearn.core.estimator import parameters
from cuelearn.oks.base import Learner, StreamingKernels, documented, of_learners
from cuelearn.oks.kernels import add, output, set_probabilities

__all__ = ["Committee", "OM1", "committee_pass"]


@njit(cache=True, nogil=True)
def committee_pass(
    kernels, samples, order, targets, sample_weights, discount, weights, predictors, mistakes, own_mistakes
):
    """A pass of `OM1`, `discount` = -log(beta); returns the numbers of updates and kernel values. Writes
    `mistakes` of the vote by visit and `own_mistakes` by kernel."""
    n_updates = 0
    n_evaluations = 0
    for t in range(order.shape[0]):
        i = order[t]
        y = targets[i]
        factor = sample_weights[i]
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
        mistakes[t] = y * vote <= 0.0
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

    def visit(self, samples, order, targets, sample_weights, uniforms):
        mistakes = np.zeros(order.size, dtype=np.bool_)
        counts = committee_pass(
            self.kernels,
            samples,
            order,
            targets,
            sample_weights,
            self.discount,
            self.weights,
            self.predictors,
            mistakes,
            self.own_mistakes,
        )
        self.note(order, *counts, mistakes)


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
    $kernels $beta $n_epochs $shuffle $one_vs_rest $normalize $n_jobs $random_state $callback $verbose

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

    mistakes_per_kernel_ = of_learners(lambda learner: learner.own_mistakes.copy())
