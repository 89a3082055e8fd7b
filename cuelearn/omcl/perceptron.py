r"""The multiclass kernel Perceptron, and its base in common with the Projectron (thesis 3.2.1).

Class scores are expansions :math:`s(x, y) = \sum_i A_{yi}\, k(x_i, x)`; ``rows[t, columns[i]]`` is the kernel
of sample t with support sample i, so that kernel matrices are used without a copy.
"""

from dataclasses import field
from typing import NamedTuple

import numpy as np

from cuelearn.codecache import njit
from cuelearn.core.compiled import inner
from cuelearn.core.estimator import KernelLike, parameters
from cuelearn.kernels import RBF
from cuelearn.kernels.growing import PrecomputedSupport, SupportSet
from cuelearn.omcl.base import CueLearner, documented
from cuelearn.omcl.visits import (
    N_PROJECTED,
    N_UPDATES,
    SEEN,
    SIZE,
    Hypothesis,
    Trace,
    open_log,
    predict,
    write_log,
)

__all__ = ["KernelLearner", "KernelPerceptron", "join", "look"]


class Visits(NamedTuple):
    """A batch, and records of its visits."""

    rows: np.ndarray  # (n, n_columns): kernel rows
    diagonal: np.ndarray  # (n,): k(x, x)
    labels: np.ndarray
    places: np.ndarray  # (n,): a sample's column if it joins the support set
    weights: np.ndarray
    earlier: np.ndarray  # (n,): weight of all earlier visits
    scores: np.ndarray  # written, (n, n_classes)
    sizes: np.ndarray  # written, (n,): of the support set


class Expansion(NamedTuple):
    """Coefficients over a support set, with room for more."""

    counts: np.ndarray
    coef: np.ndarray  # (n_classes, capacity)
    delayed: np.ndarray  # (n_classes, capacity)
    columns: np.ndarray  # (capacity,): the support samples' columns in the rows
    gram: np.ndarray  # (capacity, capacity): kernel matrix K; empty for the Perceptron
    root: np.ndarray  # (capacity, capacity): lower triangular R, K^-1 = R'R


@inner
def look(visits, expansion, t, k):
    """Write kernel values into k, and scores; returns best wrong class and margin."""
    size = expansion.counts[SIZE]
    for i in range(size):
        k[i] = visits.rows[t, expansion.columns[i]]
    expansion.counts[SEEN] += 1
    visits.sizes[t] = size
    return predict(expansion.coef, k, size, visits.labels[t], visits.scores[t])


@inner
def join(visits, expansion, log, t, rival):
    """Add the sample to the support set: s <- s + weight U."""
    counts = expansion.counts
    coef = expansion.coef
    delayed = expansion.delayed
    size = counts[SIZE]
    label = visits.labels[t]
    weight = visits.weights[t]
    for c in range(coef.shape[0]):
        coef[c, size] = delayed[c, size] = 0.0
    coef[label, size] = weight
    coef[rival, size] = -weight
    delayed[label, size] = visits.earlier[t] * weight
    delayed[rival, size] = -visits.earlier[t] * weight
    expansion.columns[size] = visits.places[t]
    counts[N_UPDATES] += 1
    counts[SIZE] = visits.sizes[t] = size + 1
    write_log(log, counts, t, label, rival, 1.0, coef[0], 0, size)


@njit(cache=True)
def perceptron_pass(visits, expansion, log):
    k = np.empty(expansion.coef.shape[1])
    for t in range(visits.rows.shape[0]):
        rival, margin = look(visits, expansion, t, k)
        if margin <= 0.0 and visits.diagonal[t] > 0.0 and visits.weights[t] > 0.0:
            join(visits, expansion, log, t, rival)


class KernelHypothesis(Hypothesis):
    """A growing expansion, `with_gram` also K and R."""

    APPENDED = ("gram", "root")

    def __init__(self, n_classes, with_gram):
        super().__init__(n_classes, 0)
        self.gram = self.root = np.zeros((0, 0)) if with_gram else None

    width = Hypothesis.size

    def reserve(self, needed):
        have = self.coef.shape[1]
        size = self.size
        if needed <= have:
            return
        # grow by at most half: doubling would hold four times the memory in use
        capacity = max(needed, have + have // 2, 64)
        for name in ("coef", "delayed", "gram", "root"):
            old = getattr(self, name)
            if old is not None:
                new = np.zeros((capacity if name in ("gram", "root") else old.shape[0], capacity))
                new[: old.shape[0], :size] = old[:, :size]
                setattr(self, name, new)

    def expansion(self, columns):
        held = np.empty(self.coef.shape[1], dtype=np.int64)
        held[: self.size] = columns
        nothing = np.zeros((0, 0))
        gram, root = (nothing, nothing) if self.gram is None else (self.gram, self.root)
        return Expansion(self.counts, self.coef, self.delayed, held, gram, root)

    def _state(self):
        size = self.size
        state = super()._state()
        for name in ("coef", "delayed"):
            state[name] = state[name][:, :size].copy()
        if self.gram is not None:
            state |= {name: state[name][:size, :size].copy() for name in ("gram", "root")}
        return state


@parameters
class KernelLearner(CueLearner):
    """Base of learners on one kernel; `_pass(visits, expansion, log)` visits a batch."""

    _parameter_constraints = {"kernel": [KernelLike(), None]}
    _learnt = ("_hypothesis", "_support", "_joined")
    _with_gram = False

    kernel: object = field(default=None, kw_only=False)
    normalize: bool = True

    def _is_precomputed(self):
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _open(self, X, n_classes):
        if self._is_precomputed():
            self._support = PrecomputedSupport()
        else:
            self._support = SupportSet(RBF() if self.kernel is None else self.kernel, self.normalize, X)
        self._hypothesis = KernelHypothesis(n_classes, self._with_gram)
        self._joined = np.empty(0, dtype=np.int64)

    def _check_batch(self, X):
        self._support.check(X)

    def _doubts(self, X):
        doubts = super()._doubts(X)
        seen = self.n_seen_
        # do not call a user's function for every sample
        doubled = (seen + len(X)).bit_length() > seen.bit_length()
        if doubts or not (doubled or self._is_precomputed()):
            return doubts
        how = self._support.doubt(X)
        if how is None:
            return {}
        return {"kernel": how}

    def _observe(self, X, labels, weights, log=False, sums=False):
        rows, diagonal, columns, places = self._support.batch(X)
        hypothesis = self._hypothesis
        n = rows.shape[0]
        size = self._hypothesis.size
        hypothesis._own()
        hypothesis.reserve(size + n)
        expansion = hypothesis.expansion(columns)
        before = int(hypothesis.counts[SEEN])
        earlier = hypothesis.weigh(weights)
        scores = np.empty((n, hypothesis.coef.shape[0]))
        sizes = np.empty(n, dtype=np.int64)
        visits = Visits(rows, diagonal, labels, places, weights, earlier, scores, sizes)
        updates = open_log(hypothesis.counts, n, size + n, log)
        self._pass(visits, expansion, updates)
        chosen = expansion.columns[size : hypothesis.size] - places[0]
        self._support.add(X, chosen)
        if chosen.size:
            self._joined = np.concatenate([self._joined, before + chosen])
        return Trace(scores, sizes, updates)

    def _skip(self, X, weight):
        super()._skip(X, weight)
        self._support.add(X, np.empty(0, dtype=np.int64))

    def _inputs(self, X):
        return self._support.cross(X)

    @property
    def kernel_(self):
        """The kernel with a resolved scale."""
        return self._support.kernel

    @property
    def dual_coef_(self):
        return self._hypothesis.coefficients(self.average).T

    @property
    def support_(self):
        return self._joined.copy()

    @property
    def support_vectors_(self):
        if self._support.precomputed:
            raise AttributeError("precomputed kernels have no support vectors; see support_")
        return self._support.samples.copy()

    @property
    def n_projected_(self):
        return int(self._hypothesis.counts[N_PROJECTED])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags


@documented
class KernelPerceptron(KernelLearner):
    r"""Multiclass kernel Perceptron.

    On a mistake (margin over the best wrong class r not positive) the sample joins the support set,

    .. math:: s \leftarrow s + U, \qquad U = k((x_t, y_t), \cdot) - k((x_t, r), \cdot) ,

    times the sample's weight.

    Parameters
    ----------
    $kernel $normalize $average $n_epochs $shuffle $record $random_state $callback $verbose

    Attributes
    ----------
    $dual_coef_ $support_ $support_vectors_ $classes_ $n_seen_ $n_updates_ $n_mistakes_ $cumulative_loss_
    $history_ $online_errors_ $online_losses_ $support_sizes_

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

    def _pass(self, visits, expansion, log):
        perceptron_pass(visits, expansion, log)
