r"""Online kernel learners of one cue: Perceptron, Projectron, Projectron++ (thesis 3.2.1)."""

import numpy as np

from cuelearn.core.checks import check_non_negative
from cuelearn.kernels import RBF, Kernel, PrecomputedSupport, SupportSet
from cuelearn.omcl.base import OnlineClassifier
from cuelearn.omcl.engine import PERCEPTRON, PROJECTRON, PROJECTRON_PLUS_PLUS
from cuelearn.omcl.states import KernelState

__all__ = ["KernelPerceptron", "Projectron", "ProjectronPlusPlus"]


class _KernelLearner(OnlineClassifier):
    """Base of the learners on one kernel."""

    _rule = PERCEPTRON

    def _is_precomputed(self):
        if isinstance(self.kernel, str) and self.kernel != "precomputed":
            raise ValueError(
                f"kernel must be one of cuelearn.kernels, None or 'precomputed', got {self.kernel!r}"
            )
        return isinstance(self.kernel, str)

    def _eta(self):
        return check_non_negative("eta", self.eta) if hasattr(self, "eta") else 0.0

    def _open(self, X, n_classes):
        eta = self._eta()
        if self._is_precomputed():
            self._support = PrecomputedSupport()
        else:
            self._support = SupportSet(RBF() if self.kernel is None else self.kernel, self.normalize, X)
        self._state = KernelState(self._rule, n_classes, eta)
        self._when = np.empty(0, dtype=np.int64)

    def _check_batch(self, X):
        self._support.check(X)

    def _observe(self, X, labels, log=False):
        rows, diagonal, columns, places = self._support.batch(X)
        before = self._state.seen
        trace, chosen = self._state.learn(rows, diagonal, labels, columns, places, log)
        self._support.add(X, chosen)
        if chosen.size:
            self._when = np.concatenate([self._when, before + chosen])
        return trace

    def _rows_of(self, X, rows, seen):
        return X[rows, :seen] if self._is_precomputed() else X[rows]

    def _scores(self, X):
        return self._support.cross(X) @ self._state.hypothesis(self.average).T

    def _n_support(self):
        return self._state.size

    # ------------------------------------------------------------ fitted attributes

    @property
    def kernel_(self):
        """The kernel with a number for gamma."""
        return self._support.kernel

    @property
    def dual_coef_(self):
        """Coefficients of the predictor, averaged or last, shape (n_support, n_classes)."""
        return self._state.hypothesis(self.average).T

    @property
    def support_(self):
        """Visits (counted from 0) at which the members of the support set joined, shape (n_support,)."""
        return self._when.copy()

    @property
    def support_vectors_(self):
        """Members of the support set, shape (n_support, n_features); not with precomputed kernels."""
        if self._support.precomputed:
            raise AttributeError("precomputed kernels have no support vectors; see support_")
        return self._support.samples.copy()

    @property
    def n_projected_(self):
        """Updates that were projected on the support set instead of enlarging it."""
        return self._state.n_projected

    # ------------------------------------------------------------ saving

    def _pack_state(self, prefix, arrays):
        arrays |= {f"{prefix}state/{name}": value for name, value in self._state.arrays().items()}
        arrays[f"{prefix}when"] = self._when
        if self._support.precomputed:
            arrays[f"{prefix}places"] = self._support.places
            return {"seen": self._support.seen}
        arrays[f"{prefix}samples"] = self._support.samples
        return {"kernel": self._support.kernel.to_dict()}

    def _unpack_state(self, plain, prefix, arrays):
        start = f"{prefix}state/"
        held = {name[len(start) :]: value for name, value in arrays.items() if name.startswith(start)}
        self._state = KernelState(self._rule, self.classes_.size, self._eta())
        self._state.restore(held)
        self._when = arrays[f"{prefix}when"]
        if self._is_precomputed():
            self._support = PrecomputedSupport()
            self._support.seen, self._support.places = plain["seen"], arrays[f"{prefix}places"]
        else:
            samples = arrays[f"{prefix}samples"]
            self._support = SupportSet(Kernel.from_dict(plain["kernel"]), self.normalize, samples)
            self._support.add(samples, np.arange(len(samples)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str)
        return tags


class KernelPerceptron(_KernelLearner):
    r"""Multiclass kernel Perceptron.

    On a mistake (margin over the best wrong class r not positive) the sample joins the support set,

    .. math:: s \leftarrow s + U, \qquad U = k((x_t, y_t), \cdot) - k((x_t, r), \cdot) .

    Parameters
    ----------
    kernel : Kernel, None or "precomputed", default None
        One of `cuelearn.kernels`; None is ``RBF()``, whose gamma is the mean squared distance of the first batch.
    normalize : bool, default True
        Scale linear and polynomial kernels to unit diagonal.
    average : bool, default True
        Predict with the mean of all hypotheses after each visit, not with the last one. May be changed after training.
    n_epochs : int, default 1
        Passes of `fit`.
    shuffle : bool, default False
        Permute the first pass too; later passes always are.
    record : bool, default True
        Keep mistake, loss and support size of every visit (13 bytes each); False keeps the counters only.
    random_state : int, Generator or None
        For the permutations.
    callback : callable(estimator, step), optional
        Called by `fit` after every 256 visits; a true return value ends the run.
    verbose : bool, default True
        A progress bar on runs of more than two seconds.

    Attributes
    ----------
    classes_, n_seen_, n_updates_, n_mistakes_, cumulative_loss_, history_
    dual_coef_ : ndarray, shape (n_support, n_classes)
    support_ : ndarray of int
        Visits at which the support samples joined.
    support_vectors_ : ndarray, shape (n_support, n_features)
    online_errors_, online_losses_, support_sizes_ : ndarray, shape (n_seen_,)

    Notes
    -----
    Cost per visit: the kernel of the sample with the support set, O(S d), and the scores, O(S M).

    References
    ----------
    Thesis section 3.2.1. Crammer and Singer, Ultraconservative online algorithms, JMLR 3 (2003).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.omcl import KernelPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelPerceptron(shuffle=True, n_epochs=5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _rule = PERCEPTRON

    def __init__(
        self,
        kernel=None,
        *,
        normalize=True,
        average=True,
        n_epochs=1,
        shuffle=False,
        record=True,
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.kernel = kernel
        self.normalize = normalize
        self.average = average
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.record = record
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose


class Projectron(_KernelLearner):
    r"""Multiclass Projectron: a Perceptron whose updates are projected where that costs little.

    On a mistake let P be the projection on the span of the support set and

    .. math:: \Delta = \|U - P U\| = \sqrt{2\,(k(x,x) - k^T K^{-1} k)} .

    If :math:`\Delta \le \eta`, the update is :math:`s \leftarrow s + P U` and the support set stays as it is; else the sample joins it
    as in the Perceptron. The inverse :math:`K^{-1} = R^T R` grows with the support set by its Schur complement, with one step of
    iterative refinement; R is computed afresh when a new row shows that it has lost accuracy.

    Parameters
    ----------
    kernel : Kernel, None or "precomputed", default None
    eta : float >= 0, default 0.1
        Largest residual :math:`\Delta` of a projection, in units of :math:`\sqrt{k(x,x)}`; from :math:`\sqrt 2` on, a normalised
        kernel never gets a second support sample. 0 gives the Perceptron's predictions.
    normalize, average, n_epochs, shuffle, record, random_state, callback, verbose
        See `KernelPerceptron`.

    Attributes
    ----------
    n_projected_ : int
        Updates without a new support sample.
    inverse_error_ : float
        Largest entry of :math:`|K K^{-1} - I|`; costs O(S^3) to ask for.
    n_refactored_ : int
        How often the inverse was computed afresh.
    classes_, dual_coef_, support_, support_vectors_, n_seen_, n_updates_, n_mistakes_, online_errors_, ...
        See `KernelPerceptron`.

    Notes
    -----
    The support set is bounded for a kernel on a compact set: its members are :math:`\eta/\sqrt 2` apart from the span of the earlier
    ones. Cost per visit O(S d + S M), per update O(S^2); memory O(S^2). A squared residual below 1e-10 k(x, x) counts as zero,
    with samples in float32 one below 1e-6 k(x, x).

    References
    ----------
    Thesis section 3.2.1; Orabona, Keshet, Caputo: Bounded kernel-based online learning, JMLR 10 (2009), figures 2 and 4, theorem 1.
    """

    _rule = PROJECTRON

    def __init__(
        self,
        kernel=None,
        *,
        eta=0.1,
        normalize=True,
        average=True,
        n_epochs=1,
        shuffle=False,
        record=True,
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.kernel = kernel
        self.eta = eta
        self.normalize = normalize
        self.average = average
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.record = record
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @property
    def inverse_error_(self):
        """Largest entry of ``|K K^-1 - I|`` over the support set."""
        return self._state.inverse_error()

    @property
    def n_refactored_(self):
        """How often the inverse was computed afresh."""
        return self._state.n_refactored


class ProjectronPlusPlus(Projectron):
    r"""Multiclass Projectron++: projects on mistakes, and learns from margin errors too without growing.

    With :math:`\ell = [1 - s(x, y) + s(x, r)]_+` and :math:`\Delta` as in `Projectron`, a visit with loss that is a margin error, or a
    mistake with :math:`\Delta \le \eta`, makes the projected update

    .. math:: s \leftarrow s + \alpha\, P U, \qquad
              \alpha = \min\Big\{\frac{\ell}{\|PU\|^2},\; 2\,\frac{\ell - \Delta/\eta}{\|PU\|^2},\; 1\Big\},

    and none where :math:`\ell \le \Delta/\eta` (0/0 counts as 0). A mistake with :math:`\Delta > \eta` adds the sample as the Perceptron
    does. So only mistakes enlarge the support set. As :math:`\eta \to 0` this does not become the Perceptron: margin errors within the
    span are still used.

    Parameters
    ----------
    kernel : Kernel, None or "precomputed", default None
    eta : float >= 0, default 0.1
    normalize, average, n_epochs, shuffle, record, random_state, callback, verbose
        See `Projectron` and `KernelPerceptron`.

    Attributes
    ----------
    See `Projectron`.

    References
    ----------
    Thesis Algorithm 2, lines 9 to 21; Orabona, Keshet, Caputo, JMLR 10 (2009), figures 3 and 4. Thesis line 16 applies one coefficient
    to mistakes and margin errors; the JMLR paper takes 1 on mistakes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.omcl import KernelPerceptron, ProjectronPlusPlus
    >>> X, y = load_iris(return_X_y=True)
    >>> options = dict(shuffle=True, n_epochs=5, random_state=0)
    >>> sparse, dense = ProjectronPlusPlus(eta=0.3, **options).fit(X, y), KernelPerceptron(**options).fit(X, y)
    >>> len(sparse.support_) < len(dense.support_)
    True
    """

    _rule = PROJECTRON_PLUS_PLUS
