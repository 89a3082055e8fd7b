r"""Online linear learners: Passive-Aggressive (thesis 3.2.2) and gradient descent."""

import math

import numpy as np

from cuelearn.core.checks import check_positive
from cuelearn.omcl.base import OnlineClassifier
from cuelearn.omcl.engine import GRADIENT, PASSIVE_AGGRESSIVE
from cuelearn.omcl.states import LinearState

__all__ = ["OnlineGradientDescent", "PassiveAggressive"]


class _LinearLearner(OnlineClassifier):
    """Base of the linear learners."""

    def _open(self, X, n_classes):
        self._state = LinearState(self._rule, n_classes, X.shape[1], self._aggressiveness())

    def _observe(self, X, labels, log=False, sums=False):
        return self._state.learn(np.ascontiguousarray(X, dtype=np.float64), labels, log, sums)

    def _scores(self, X):
        return X @ self._state.hypothesis(self.average).T

    @property
    def coef_(self):
        """Hyperplanes of the predictor, averaged or last, shape (n_classes, n_features)."""
        return self._state.hypothesis(self.average)

    def _pack_state(self, prefix, arrays):
        arrays |= {f"{prefix}state/{name}": value for name, value in self._state.arrays().items()}
        return {}

    def _unpack_state(self, plain, prefix, arrays):
        start = f"{prefix}state/"
        held = {name[len(start) :]: value for name, value in arrays.items() if name.startswith(start)}
        self._state = LinearState(self._rule, *held["coef"].shape, self._aggressiveness())
        self._state.restore(held)


class PassiveAggressive(_LinearLearner):
    r"""Linear multiclass Passive-Aggressive, PA and PA-I.

    A visit with loss :math:`\ell = [1 - w_y \cdot x + w_r \cdot x]_+`, r the best wrong class, makes the smallest change that mends it,

    .. math:: w_y \leftarrow w_y + \tau x, \quad w_r \leftarrow w_r - \tau x, \qquad
              \tau = \min\Big\{C, \frac{\ell}{2\|x\|^2}\Big\} .

    There is no bias. A sample of zeros changes nothing.

    Parameters
    ----------
    C : float > 0 or None, default 1.0
        Aggressiveness: the largest step (PA-I). None or infinity is PA, which mends every loss in full.
    average, n_epochs, shuffle, record, random_state, callback, verbose
        See `KernelPerceptron`.

    Attributes
    ----------
    coef_ : ndarray, shape (n_classes, n_features)
        Averaged, or with ``average=False`` of the last hypothesis.
    classes_, n_seen_, n_updates_, n_mistakes_, cumulative_loss_, history_, online_errors_, online_losses_
        See `KernelPerceptron`.

    Notes
    -----
    Cost per visit O(M d). For any u, with :math:`\ell^*_t` its losses, PA-I keeps
    :math:`\sum_t \tau_t \ell_t \le \|u\|^2 + 2 C \sum_t \ell^*_t`, so that its mistakes are at most
    :math:`\max\{\max_t 2\|x_t\|^2, 1/C\}\, (\|u\|^2 + 2 C \sum_t \ell^*_t)`.

    References
    ----------
    Thesis equation 3.1, Algorithm 2 lines 23 to 26. Crammer, Dekel, Keshet, Shalev-Shwartz, Singer, JMLR 7 (2006), lemma 1, theorem 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.omcl import PassiveAggressive
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(PassiveAggressive(C=0.1, shuffle=True, n_epochs=5, random_state=0).fit(X, y).score(X, y) > 0.9)
    True
    """

    _rule = PASSIVE_AGGRESSIVE

    def __init__(
        self,
        C=1.0,
        *,
        average=True,
        n_epochs=1,
        shuffle=False,
        record=True,
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.C = C
        self.average = average
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.record = record
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _aggressiveness(self):
        return math.inf if self.C is None or self.C == math.inf else check_positive("C", self.C)


class OnlineGradientDescent(_LinearLearner):
    r"""Linear multiclass learner with gradient steps of fixed size on the multiclass hinge loss.

    Its regret against any u has a bound that can be computed, which theorem 3.1 asks of the second layer:

    .. math:: \sum_t \ell_t(w_t) - \sum_t \ell_t(u) \le \frac{\|u\|^2}{2\tau} + \frac{\tau}{2} \sum_{t: \ell_t > 0} 2\|x_t\|^2 .

    Parameters
    ----------
    step : float > 0, default 0.1
        :math:`\tau`.
    average, n_epochs, shuffle, record, random_state, callback, verbose
        See `KernelPerceptron`.

    Attributes
    ----------
    coef_ : ndarray, shape (n_classes, n_features)
    classes_, n_seen_, n_updates_, n_mistakes_, cumulative_loss_, history_, online_errors_, online_losses_
        See `KernelPerceptron`.

    References
    ----------
    Zinkevich (2003); thesis theorem 3.1.
    """

    _rule = GRADIENT

    def __init__(
        self,
        step=0.1,
        *,
        average=True,
        n_epochs=1,
        shuffle=False,
        record=True,
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.step = step
        self.average = average
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.record = record
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _aggressiveness(self):
        return check_positive("step", self.step)
