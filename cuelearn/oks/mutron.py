"""MuTron (Yang et al., AAAI 2012)."""

import numpy as np

from cuelearn.core.choice import first_best
from cuelearn.core.estimator import parameters
from cuelearn.oks.base import OnlineKernels, documented, held_back, of_learners
from cuelearn.oks.kernels import Samples
from cuelearn.oks.om1 import OM1, Committee

__all__ = ["MuTron"]


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

    The paper does not say how it draws held-out samples; here they are stratified. Sample weights multiply
    the updates, and count in the accuracy.

    Parameters
    ----------
    $kernels $validation $n_epochs $shuffle $one_vs_rest $normalize $n_jobs $random_state $callback $verbose

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

    validation: float = 0.1

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

    validation_accuracy_ = of_learners(lambda learner: learner.accuracy)
