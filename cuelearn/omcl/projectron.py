r"""Projectron and Projectron++ (thesis 3.2.1, Algorithm 2 lines 9 to 21).

With P the projection on the span of the support set and K its kernel matrix, :math:`\|PU\|^2 = 2\, k^T K^{-1}
k`. :math:`K^{-1} = R^T R` with R the inverse of K's Cholesky factor: its entries grow only with the root of
K's condition number, and rounding cannot make the inverse indefinite.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from cuelearn.codecache import njit
from cuelearn.core.compiled import inner
from cuelearn.core.estimator import NON_NEGATIVE, parameters
from cuelearn.omcl.base import documented
from cuelearn.omcl.perceptron import KernelLearner, join, look
from cuelearn.omcl.visits import INEXACT, N_PROJECTED, REFACTOR_FROM, dot, move

__all__ = ["Projectron", "ProjectronPlusPlus"]

# smaller squared residuals relative to k(x, x) are linear dependence, in float64 and float32
DEPENDENT = 1e-10
DEPENDENT_SINGLE = 1e-6
# above this |K d - k| of a new support sample, relative to the largest entry of k, R is recomputed
INACCURATE = 1e-9


class Work(NamedTuple):
    """Kernel values with the support set, projection, and scratch space."""

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
    exceeds `limit` (the sample will join), the error corrected by a step of iterative refinement."""
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
    """Visits from `start`, with `plus` of Projectron++; returns the position reached: the end, or where R
    must be recomputed."""
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
    $kernel $eta $normalize $average $n_epochs $shuffle $record $random_state $callback $verbose

    Attributes
    ----------
    $dual_coef_ $support_ $support_vectors_ $n_projected_ $inverse_error_ $classes_ $n_seen_
    $n_updates_ $n_mistakes_ $cumulative_loss_ $history_ $online_errors_ $online_losses_ $support_sizes_

    Notes
    -----
    The support set is bounded for a kernel on a compact set: its members are at least :math:`\eta/\sqrt 2`
    from the span of earlier ones. Cost per visit O(S d + S M), per update O(S^2); memory O(S^2). A squared
    residual below 1e-10 k(x, x), in float32 1e-6 k(x, x), counts as zero.

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

    def _pass(self, visits, expansion, log):
        position = 0
        eta = float(self.eta)
        while position < visits.labels.size:
            position = projectron_pass(visits, expansion, log, eta, self._plus, position)
            if expansion.counts[INEXACT]:
                refactor(self._hypothesis)
                expansion = expansion._replace(root=self._hypothesis.root)

    @property
    def inverse_error_(self):
        hypothesis = self._hypothesis
        size = self._hypothesis.size
        root = hypothesis.root[:size, :size]
        error = np.abs(hypothesis.gram[:size, :size] @ (root.T @ root) - np.eye(size))
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
    $kernel $eta $normalize $average $n_epochs $shuffle $record $random_state $callback $verbose

    Attributes
    ----------
    $dual_coef_ $support_ $support_vectors_ $n_projected_ $inverse_error_ $classes_ $n_seen_
    $n_updates_ $n_mistakes_ $cumulative_loss_ $history_ $online_errors_ $online_losses_ $support_sizes_

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
