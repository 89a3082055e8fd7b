r"""Learners of one cue: kernel Perceptron, Projectron, Projectron++ (thesis 3.2.1), and linear ones (3.2.2).

Class scores of kernels are expansions :math:`s(x, y) = \sum_i A_{yi}\, k(x_i, x)`; ``rows[t, columns[i]]`` is
the kernel of sample t with support sample i, so that kernel matrices are used without a copy.

Projectron (Algorithm 2, lines 9 to 21). With P the projection on the span of the support set and K its
kernel matrix, :math:`\|PU\|^2 = 2\, k^T K^{-1} k`. :math:`K^{-1} = R^T R` with R the inverse of K's Cholesky
factor: its entries grow only with the root of K's condition number, and rounding cannot make the inverse
indefinite.
"""

from __future__ import annotations

import math
from dataclasses import field
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from cuelearn.compiled import inner, njit, with_steps
from cuelearn.core.estimator import NON_NEGATIVE, POSITIVE, KernelLike, Number, parameters
from cuelearn.kernels import RBF, FeatureMap, Kernel
from cuelearn.kernels.growing import FeatureSupport, PrecomputedSupport, SupportSet, filled
from cuelearn.kernels.specifications import KERNELS
from cuelearn.kernels.types import KernelSpec
from cuelearn.omcl import blocks
from cuelearn.omcl.base import (
    INEXACT,
    N_PROJECTED,
    N_UPDATES,
    REFACTOR_FROM,
    SEEN,
    SIZE,
    Hypothesis,
    OnlineClassifier,
    Trace,
    documented,
    dot,
    move,
    open_log,
    predict,
    write_log,
)


class Hyperplanes(NamedTuple):
    counts: np.ndarray
    coef: np.ndarray  # (n_classes, d), as below
    delayed: np.ndarray
    sums: np.ndarray  # of all hyperplanes, weighted; written on request


@inner
def look_at(X, t, coef, label, out):
    """`predict` for sample t; returns its squared length too."""
    d = X.shape[1]
    rival, margin = predict(coef, X[t], d, label, out)
    return rival, margin, dot(X[t], X[t], d)


@inner
def move_by(X, t, planes, log, label, rival, step, earlier):
    move(planes, log, t, label, rival, step, X[t], X.shape[1], earlier)


@njit(cache=True)
def linear_pass(X, labels, weights, earlier, planes, step_rule, scores, sums_before, log):
    """Visits in order; `step_rule` is that of `CueLearner._step`."""
    aggressiveness, passive, on_mistakes = step_rule
    counts = planes.counts
    coef = planes.coef
    sums = planes.sums
    n_classes, d = coef.shape
    for t in range(labels.shape[0]):
        rival, margin, length_sq = look_at(X, t, coef, labels[t], scores[t])
        counts[SEEN] += 1
        wrong = margin <= 0.0 or margin < 1.0 and not on_mistakes
        if wrong and length_sq > 0.0 and weights[t] > 0.0:
            step = aggressiveness * weights[t]
            if passive:
                step = min(step, (1.0 - margin) / (2.0 * length_sq))
            if not step < math.inf:  # PA on a sample whose square underflows
                step = 0.0
            move_by(X, t, planes, log, labels[t], rival, step, earlier[t])
        if sums_before.shape[0] > 0:
            for c in range(n_classes):
                for i in range(d):
                    sums_before[t, c, i] = sums[c, i]
                    sums[c, i] += weights[t] * coef[c, i]


feature_pass = with_steps(linear_pass, (blocks.look_at, blocks.move_by), njit(cache=True))


class CueLearner(OnlineClassifier):
    """Base of the learners of one cue; here of those that add multiples of samples, or of their explicit
    features, to the weights of classes.

    `_step()` returns the largest multiple, whether what removes the loss limits it, and whether only mistakes
    count. `_observe` returns on request a `log` of updates and the `sums` of hypotheses before each visit.
    """

    _learnt = ("_hypothesis", "_support")
    _support = None  # of older files

    @property
    def _map(self):
        kernel = getattr(self, "kernel", None) or getattr(self, "features", None)
        if isinstance(kernel, str):
            kernel = KERNELS.get(kernel)
        return kernel if isinstance(kernel, FeatureMap) else None

    def _open(self, X, n_classes):
        width = sums = X.shape[1]
        self._support = None
        if self._explicit():
            self._support = FeatureSupport.of(self._map, self.normalize, X)
            width, sums = self._support.bank.n_features, 0
        self._hypothesis = Hypothesis(n_classes, width)
        self._hypothesis.sums = np.zeros((n_classes, sums))

    def _observe(self, X, labels, weights, log=False, sums=False):
        n = labels.size
        hypothesis = self._hypothesis
        hypothesis._own()
        n_classes, d = hypothesis.coef.shape
        scores = np.empty((n, n_classes))
        before = np.empty((n if sums else 0, n_classes, d))
        planes = Hyperplanes(hypothesis.counts, hypothesis.coef, hypothesis.delayed, hypothesis.sums)
        earlier = hypothesis.weigh(weights)
        rows = None
        if self._support is None:
            X = np.ascontiguousarray(filled(X)[0], dtype=np.float64)
            visit = linear_pass
        else:
            X = rows = self._support.batch(X)
            visit, log, d = feature_pass, True, 1
        updates = open_log(hypothesis.counts, n, d, log)
        visit(X, labels, weights, earlier, planes, self._step(), scores, before, updates)
        return Trace(scores, np.zeros(n, dtype=np.int64), updates, before, rows)

    def _check_batch(self, X):
        pass

    def _products(self, X, coef):
        """Class scores for coefficients (n_classes, width)."""
        if isinstance(self._support, FeatureSupport):
            return self._support.scores(X, coef)
        return filled(X)[0] @ coef.T

    def _scores(self, X, average=None):
        if average is None:
            average = self.average
        return self._products(X, self._hypothesis.coefficients(average))

    def _skip(self, X, weight):
        super()._skip(X, weight)
        self._hypothesis._own()
        self._hypothesis.counts[SEEN] += 1
        self._hypothesis.weight += weight

    def _n_support(self):
        return self._hypothesis.size

    def _count_updates(self):
        return int(self._hypothesis.counts[N_UPDATES])

    @property
    def coef_(self) -> np.ndarray:
        return self._hypothesis.coefficients(self.average)


class Visits(NamedTuple):
    """A batch of n samples; all but rows and scores have shape (n,)."""

    rows: np.ndarray  # (n, n_columns): kernel rows
    diagonal: np.ndarray  # k(x, x)
    labels: np.ndarray
    places: np.ndarray  # a sample's column if it joins the support set
    weights: np.ndarray
    earlier: np.ndarray  # weight of all earlier visits
    scores: np.ndarray  # written, (n, n_classes)
    sizes: np.ndarray  # written: of the support set


class Expansion(NamedTuple):
    """Coefficients over a support set, with room for more."""

    counts: np.ndarray
    coef: np.ndarray  # (n_classes, capacity)
    delayed: np.ndarray  # (n_classes, capacity)
    columns: np.ndarray  # (capacity,): the support samples' columns in the rows
    gram: np.ndarray  # (capacity, capacity): K, empty for the Perceptron, as is R
    root: np.ndarray  # (capacity, capacity): lower triangular R, K^-1 = R'R


@inner
def look(visits, expansion, t, k):
    """Write kernel values into k, then `predict`."""
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

    def _used(self):
        """The arrays by name, without spare room."""
        size = self.size
        used = {"coef": self.coef[:, :size], "delayed": self.delayed[:, :size]}
        if self.gram is not None:
            used |= {"gram": self.gram[:size, :size], "root": self.root[:size, :size]}
        return used

    def reserve(self, needed):
        have = self.coef.shape[1]
        if needed <= have:
            return
        # grow by at most half: doubling would hold four times the memory in use
        capacity = max(needed, have + have // 2, 64)
        for name, used in self._used().items():
            height = len(used) if name in ("coef", "delayed") else capacity
            grown = np.zeros((height, capacity))
            grown[: len(used), : self.size] = used
            setattr(self, name, grown)

    def expansion(self, columns):
        held = np.empty(self.coef.shape[1], dtype=np.int64)
        held[: self.size] = columns
        matrices = self.gram, self.root
        if self.gram is None:
            matrices = np.zeros((2, 0, 0))
        return Expansion(self.counts, self.coef, self.delayed, held, *matrices)

    def _state(self):
        return super()._state() | {name: used.copy() for name, used in self._used().items()}


@parameters
class KernelLearner(CueLearner):
    """Base of learners of one kernel; `_pass(visits, expansion, log)` visits a batch."""

    _parameter_constraints = {"kernel": [KernelLike(), None]}
    _learnt = ("_hypothesis", "_support", "_joined")
    _with_gram = False

    kernel: KernelSpec | None = field(default=None, kw_only=False)
    normalize: bool = True

    def _is_precomputed(self):
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _open(self, X, n_classes):
        self._joined = np.empty(0, dtype=np.int64)
        if self._explicit():
            return super()._open(X, n_classes)
        if self._is_precomputed():
            self._support = PrecomputedSupport()
        else:
            self._support = SupportSet(RBF() if self.kernel is None else self.kernel, self.normalize, X)
        self._hypothesis = KernelHypothesis(n_classes, self._with_gram)

    def _check_batch(self, X):
        self._support.check(X)

    def _doubts(self, X):
        doubts = super()._doubts(X)
        seen = self.n_seen_
        # do not call a user's function for every sample
        doubled = (seen + X.shape[0]).bit_length() > seen.bit_length()
        if doubts or not (doubled or self._is_precomputed()):
            return doubts
        how = self._support.doubt(X)
        if how is None:
            return {}
        return {"kernel": how}

    def _observe(self, X, labels, weights, log=False, sums=False):
        if isinstance(self._support, FeatureSupport):
            return super()._observe(X, labels, weights, log)
        rows, diagonal, columns, places = self._support.batch(X)
        hypothesis = self._hypothesis
        n = rows.shape[0]
        size = hypothesis.size
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

    def _products(self, X, coef):
        if isinstance(self._support, FeatureSupport):
            return super()._products(X, coef)
        return self._support.cross(X) @ coef.T

    @property
    def kernel_(self) -> Kernel:
        """The kernel with a resolved scale."""
        return self._support.kernel

    @property
    def dual_coef_(self) -> np.ndarray:
        return self._hypothesis.coefficients(self.average).T[: self._hypothesis.size]

    @property
    def coef_(self) -> np.ndarray:
        if not isinstance(self._support, FeatureSupport):
            raise AttributeError("coef_ needs a FeatureMap; see dual_coef_")
        return super().coef_

    @property
    def support_(self) -> np.ndarray:
        return self._joined.copy()

    @property
    def support_vectors_(self) -> np.ndarray:
        if not isinstance(self._support, SupportSet):
            raise AttributeError("features and precomputed kernels have no support vectors; see support_")
        return self._support.samples.copy()

    @property
    def n_projected_(self) -> int:
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
    $kernel $normalize $average $run

    Attributes
    ----------
    $dual_coef_ $support_ $support_vectors_ $visits $support_sizes_
    coef_ : ndarray, shape (n_classes, n_features)
        Weights of the features of a `FeatureMap`, in place of a support set.

    Notes
    -----
    Cost per visit: the kernel of the sample with the support set, O(S d), and the scores, O(S M); with a
    `FeatureMap` O(n_features M) at any visit, for X that may be sparse or a DataFrame of texts.

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

    def _step(self):
        return 1.0, False, True


# smaller squared residuals relative to k(x, x) are linear dependence, in float64 and float32
DEPENDENT = 1e-10
DEPENDENT_SINGLE = 1e-6
# above this |K d - k| of a new support sample, relative to the largest entry of k, R is recomputed
INACCURATE = 1e-9


class Work(NamedTuple):
    """Kernel values with the support set, their projection, scratch space; each (capacity,)."""

    k: np.ndarray
    solution: np.ndarray
    half: np.ndarray
    rest: np.ndarray
    change: np.ndarray


@inner
def solve(root, k, size, half, out):
    """``half = R k`` and ``out = K^-1 k = R^T half``."""
    for i in range(size):
        half[i] = dot(root[i], k, i + 1)
        out[i] = 0.0
    for i in range(size):
        row = root[i]
        factor = half[i]
        for j in range(i + 1):
            out[j] += factor * row[j]


@inner
def project(expansion, work, size, k_xx, dependent, limit):
    """Write the projection of k(x, .) into `work.solution`; returns the squared residual and, if Delta
    exceeds `limit`, so that the sample joins, the error that a step of iterative refinement corrected."""
    k = work.k
    solution = work.solution
    rest = work.rest
    solve(expansion.root, k, size, work.half, solution)
    residual_sq = k_xx - dot(work.half, work.half, size)
    if residual_sq <= dependent * k_xx:
        residual_sq = 0.0
    if math.sqrt(2.0 * residual_sq) <= limit:
        return residual_sq, 0.0
    error = 0.0
    largest = 0.0
    for i in range(size):
        rest[i] = k[i] - dot(expansion.gram[i], solution, size)
        error = max(error, abs(rest[i]))
        largest = max(largest, abs(k[i]))
    change = work.change
    solve(expansion.root, rest, size, work.half, change)
    for i in range(size):
        solution[i] += change[i]
    residual_sq = k_xx - dot(k, solution, size)
    return 0.0 if residual_sq <= dependent * k_xx else residual_sq, error / largest if largest > 0.0 else 0.0


@inner
def extend(expansion, work, size, k_xx, residual_sq):
    r"""Add a sample to K and R, whose new row is :math:`[-K^{-1} k,\; 1] / \delta`, :math:`\delta^2` the
    squared residual."""
    gram = expansion.gram
    root = expansion.root
    scale = 1.0 / math.sqrt(residual_sq)
    for i in range(size):
        gram[i, size] = gram[size, i] = work.k[i]
        root[size, i] = -scale * work.solution[i]
        root[i, size] = 0.0
    gram[size, size] = k_xx
    root[size, size] = scale


@inner
def step_length(loss, delta, eta, length_sq, most):
    """Thesis Algorithm 2, line 16, with `most` in place of 1; 0 if the loss is at most Delta / eta."""
    price = 0.0
    if delta > 0.0:
        price = delta / eta if eta > 0.0 else math.inf
    gain = loss - price
    if gain > 0.0 and length_sq > 0.0:
        return min(most, loss / length_sq, 2.0 * gain / length_sq)
    return 0.0


@njit(cache=True)
def projectron_pass(visits, expansion, log, eta, plus, start):
    """Visits from `start`, with `plus` of Projectron++; returns the end, or where R must be recomputed."""
    capacity = expansion.coef.shape[1]
    counts = expansion.counts
    scratch = np.empty((5, capacity))
    work = Work(scratch[0], scratch[1], scratch[2], scratch[3], scratch[4])
    dependent = DEPENDENT if visits.rows.itemsize == 8 else DEPENDENT_SINGLE
    for t in range(start, visits.rows.shape[0]):
        rival, margin = look(visits, expansion, t, work.k)
        size = visits.sizes[t]
        k_xx = visits.diagonal[t]
        mistake = margin <= 0.0
        weight = visits.weights[t]
        if weight == 0.0 or k_xx <= 0.0 or not (mistake or (plus and margin < 1.0 and size > 0)):
            continue
        residual_sq = k_xx
        error = 0.0
        if size > 0:
            limit = eta if mistake else math.inf
            residual_sq, error = project(expansion, work, size, k_xx, dependent, limit)
        delta = math.sqrt(2.0 * residual_sq)
        if mistake and (size == 0 or delta > eta):
            extend(expansion, work, size, k_xx, residual_sq)
            join(visits, expansion, log, t, rival)
        else:
            step = weight
            if plus:
                length_sq = 2.0 * dot(work.k, work.solution, size)
                step = step_length(1.0 - margin, delta, eta, length_sq, weight)
            if step > 0.0:
                label = visits.labels[t]
                earlier = visits.earlier[t]
                move(expansion, log, t, label, rival, step, work.solution, size, earlier)
                counts[N_PROJECTED] += 1
        if error > INACCURATE and size >= counts[REFACTOR_FROM]:
            counts[INEXACT] = 1
            return t + 1
    return visits.rows.shape[0]


def refactor(hypothesis):
    """Recompute R from K, in a new array."""
    size = hypothesis.size
    counts = hypothesis.counts
    factor, failed = dpotrf(hypothesis.gram[:size, :size], lower=1)
    if not failed:  # else the samples are numerically dependent: keep R
        hypothesis.root = np.zeros_like(hypothesis.root)
        hypothesis.root[:size, :size] = np.tril(dtrtri(factor, lower=1)[0])
    counts[INEXACT] = 0
    # else an ill-conditioned matrix is refactored at every sample
    counts[REFACTOR_FROM] = size + max(8, size // 8)


@documented
@parameters
class Projectron(KernelLearner):
    r"""Multiclass Projectron: a Perceptron that projects updates with a small residual.

    On a mistake let P be the projection on the span of the support set and

    .. math:: \Delta = \|U - P U\| = \sqrt{2\,(k(x,x) - k^T K^{-1} k)} .

    If :math:`\Delta \le \eta`, the update is :math:`s \leftarrow s + P U` and the support set is unchanged;
    else the sample joins it as in the Perceptron. Sample weights multiply the update, not the U of
    :math:`\Delta`.

    Parameters
    ----------
    $kernel $eta $normalize $average $run

    Attributes
    ----------
    $dual_coef_ $support_ $support_vectors_ $n_projected_ $inverse_error_ $visits
    $support_sizes_

    Notes
    -----
    The support set is bounded for a kernel on a compact set: its members are at least :math:`\eta/\sqrt 2`
    from the span of earlier ones. Cost per visit O(S d + S M), per update O(S^2); memory O(S^2). A squared
    residual below 1e-10 k(x, x), in float32 1e-6 k(x, x), counts as zero. A `FeatureMap`,
    which needs no support, is refused: unprojected, the Projectron is `KernelPerceptron`, Projectron++
    ``PassiveAggressive(1.0)``.

    References
    ----------
    Thesis section 3.2.1; Orabona, Keshet, Caputo: Bounded kernel-based online learning, JMLR 10 (2009),
    figures 2 and 4, theorem 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.omcl import Projectron
    >>> X, y = load_iris(return_X_y=True)
    >>> models = [Projectron(eta=eta, shuffle=True, random_state=0).fit(X, y) for eta in (0.01, 1.0)]
    >>> len(models[0].support_) > len(models[1].support_)
    True
    """

    _parameter_constraints = {"eta": NON_NEGATIVE}
    _with_gram = True
    _plus = False

    eta: float = 0.1

    def _open(self, X, n_classes):
        if self._explicit():
            raise ValueError(
                "kernel must not be a FeatureMap, which needs no projections: use KernelPerceptron, or "
                "PassiveAggressive(features=...) for ProjectronPlusPlus"
            )
        super()._open(X, n_classes)

    def _pass(self, visits, expansion, log):
        position = 0
        eta = float(self.eta)
        while position < visits.labels.size:
            position = projectron_pass(visits, expansion, log, eta, self._plus, position)
            if expansion.counts[INEXACT]:
                refactor(self._hypothesis)
                expansion = expansion._replace(root=self._hypothesis.root)

    @property
    def inverse_error_(self) -> float:
        used = self._hypothesis._used()
        root = used["root"]
        error = np.abs(used["gram"] @ (root.T @ root) - np.eye(len(root)))
        return float(error.max(initial=0.0))


@documented
class ProjectronPlusPlus(Projectron):
    r"""Multiclass Projectron++: a Projectron that also updates on margin errors, without growing.

    With :math:`\ell = [1 - s(x, y) + s(x, r)]_+` and :math:`\Delta` as in `Projectron`, a margin error, or a
    mistake with :math:`\Delta \le \eta`, makes the projected update

    .. math:: s \leftarrow s + \alpha\, P U, \qquad
              \alpha = \min\Big\{\frac{\ell}{\|PU\|^2},\; 2\,\frac{\ell - \Delta/\eta}{\|PU\|^2},\; 1\Big\},

    and none if :math:`\ell \le \Delta/\eta` (0/0 counts as 0). A mistake with :math:`\Delta > \eta` adds the
    sample as in the Perceptron. For :math:`\eta \to 0` it differs from the Perceptron, as margin errors
    within the span still update. A sample weight replaces the 1 in the minimum, and multiplies an added
    sample.

    Parameters
    ----------
    $kernel $eta $normalize $average $run

    Attributes
    ----------
    $dual_coef_ $support_ $support_vectors_ $n_projected_ $inverse_error_ $visits
    $support_sizes_

    References
    ----------
    Thesis Algorithm 2, lines 9 to 21 (line 16 has one coefficient for mistakes and margin errors; the paper
    uses 1 on mistakes); Orabona, Keshet, Caputo, JMLR 10 (2009), figures 3 and 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.omcl import KernelPerceptron, ProjectronPlusPlus
    >>> X, y = load_iris(return_X_y=True)
    >>> options = dict(shuffle=True, n_epochs=5, random_state=0)
    >>> sparse = ProjectronPlusPlus(eta=0.3, **options).fit(X, y)
    >>> len(sparse.support_) < len(KernelPerceptron(**options).fit(X, y).support_)
    True
    """

    _plus = True


@parameters
class LinearLearner(CueLearner):
    """Base of learners on columns or explicit features."""

    _parameter_constraints = {"features": [FeatureMap, None]}

    features: FeatureMap | None = None
    normalize: bool = True

    def _skip(self, X, weight):
        super()._skip(X, weight)
        sums = self._hypothesis.sums
        sums += weight * self._hypothesis.coef[:, : sums.shape[1]]


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
    $features $normalize $average $run

    Attributes
    ----------
    $coef_ $visits

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

    C: float | None = field(default=1.0, kw_only=False)

    def _step(self):
        return math.inf if self.C is None else float(self.C), True, False


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
    $features $normalize $average $run

    Attributes
    ----------
    $coef_ $visits

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
        return float(self.step), False, False
