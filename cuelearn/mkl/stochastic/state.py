r"""State of a stochastic MKL run, as named tuples for compiled loops, and the shared steps.

One coefficient matrix serves all kernels (thesis 4.3.3): :math:`\theta^j = \sum_{i,y} A_{iy}\, \phi^j(x_i,
y)`. Class scores have two routes: "recompute" combines the visited kernel rows, best if most visits update;
"maintain" keeps the scores of all samples per kernel and class, best if few do, and needs kernel rows only
for updates. Prior scores (thesis 6.3) are scalar blocks :math:`\theta_{yz} = \sum_i A_{iy} s_{iz}` after the
kernels.
"""

import math
from typing import NamedTuple

import numpy as np

from cuelearn.codecache import njit
from cuelearn.core.compiled import loop
from cuelearn.core.groupnorm import link_weights
from cuelearn.core.losses import competitor
from cuelearn.kernels.rows import combine_rows, full_dot, gathered_dot

# the lazy scale is applied below this, long before float32 overflows
SMALLEST_SCALE = 1e-6
inlined = njit(cache=True, inline="always")


class Rows(NamedTuple):
    """Row i of kernel j: ``flat[place[i] * row_stride + j * kernel_stride :][:n]``; missing if ``place[i] <
    0``."""

    flat: np.ndarray
    place: np.ndarray
    row_stride: int
    kernel_stride: int


class Samples(NamedTuple):
    """Labels (n,), diagonals (n_kernels, n), ||z||_{2,q}^2 (n,), loss weights (n,), prior scores (n, K)."""

    labels: np.ndarray
    diagonal: np.ndarray
    gradient_norm_sq: np.ndarray
    cost: np.ndarray
    priors: np.ndarray


class Entries(NamedTuple):
    """Per class: samples ``index[c, :count[c]]``, ``value``; ``place[c, i]`` is the slot of i or -1."""

    place: np.ndarray
    index: np.ndarray
    value: np.ndarray
    count: np.ndarray


class Dual(NamedTuple):
    """The dual vector; all but `norms` and `weights` up to the lazy factor ``now.scale``."""

    coef: np.ndarray  # (n_classes, n), float64 as all
    norms_sq: np.ndarray  # (n_groups,)
    norms: np.ndarray
    weights: np.ndarray  # link factors
    active: np.ndarray  # (n_kernels,): the first `now.n_active` are above rounding
    entries: Entries
    maintained: np.ndarray  # (n_classes, n_kernels, n), empty on the route "recompute"
    theta: np.ndarray  # (n_classes, K), of the prior scores
    effective: np.ndarray  # theta times weights
    now: np.record  # of NOW


# norm: ||theta||_{2,q} at scale 1; strength: s_t; step: t
NOW = [(name, np.float64) for name in ("scale", "norm", "strength", "step")]
NOW += [(name, np.int64) for name in ("n_updates", "n_active")]


class Work(NamedTuple):
    combined: np.ndarray
    cast_weights: np.ndarray
    difference: np.ndarray
    products: np.ndarray
    scores: np.ndarray


class Setting(NamedTuple):
    """`rounding`: kernels below this share are skipped; `shared`: classes share the prior scores' blocks."""

    q: float
    regularization: float
    alpha: float
    factor: float
    rounding: float
    shared: bool


class Run(NamedTuple):
    samples: Samples
    rows: Rows
    dual: Dual
    work: Work
    setting: Setting


@inlined
def predict(i, prefactor, run):
    """Best wrong class (-1 if kernel rows are missing) and margin; primal = `prefactor` * weighted dual."""
    dual = run.dual
    scores = run.work.scores
    place = run.rows.place[i]
    n_active = dual.now.n_active
    if n_active == 0:
        scores[:] = 0.0
    elif dual.maintained.shape[0] > 0:
        for c in range(scores.shape[0]):
            total = 0.0
            for a in range(n_active):
                total += dual.weights[dual.active[a]] * dual.maintained[c, dual.active[a], i]
            scores[c] = total
    else:
        if place < 0:
            return -1, 0.0
        for a in range(n_active):
            run.work.cast_weights[dual.active[a]] = dual.weights[dual.active[a]]
        rows = run.rows
        combined = run.work.combined
        base = place * rows.row_stride
        weights = run.work.cast_weights
        combine_rows(rows.flat, base, rows.kernel_stride, weights, dual.active, n_active, combined)
        class_scores(combined, dual.entries, scores)
    for c in range(dual.effective.shape[0]):
        for z in range(dual.effective.shape[1]):
            scores[c] += dual.effective[c, z] * run.samples.priors[i, z]
    rival, margin = competitor(scores, run.samples.labels[i])
    margin *= run.setting.factor * prefactor
    if margin < 1.0 and place < 0:
        rival = -1
    return rival, margin


@inlined
def add_update(i, rival, step, run):
    r""":math:`\bar\theta \leftarrow \bar\theta + step\,(\bar\phi(x_i, y_i) - \bar\phi(x_i, r))`, with norms
    and scores."""
    dual = run.dual
    rows = run.rows
    products = run.work.products
    label = run.samples.labels[i]
    base = rows.place[i] * rows.row_stride
    maintain = dual.maintained.shape[0] > 0
    if maintain:
        for j in range(products.shape[0]):
            products[j] = dual.maintained[label, j, i]
            products[j] -= dual.maintained[rival, j, i]
    else:
        pair_products(rows, base, label, rival, dual.coef, dual.entries, run.work.difference, products)
    factor = run.setting.factor
    diagonal = run.samples.diagonal
    for j in range(products.shape[0]):
        dual.norms_sq[j] += factor * step * (2.0 * products[j] + 2.0 * step * diagonal[j, i])
    add_coefficient(dual.coef, label, i, step, dual.entries)
    add_coefficient(dual.coef, rival, i, -step, dual.entries)
    if maintain:
        add_row(dual.maintained, label, rival, rows.flat, base, rows.kernel_stride, step)
    move_priors(i, label, rival, step, run)
    dual.now.n_updates += 1


@inlined
def move_priors(i, label, rival, step, run):
    """Update the prior scores' blocks and norms of two classes."""
    theta = run.dual.theta
    norms_sq = run.dual.norms_sq
    priors = run.samples.priors
    n_scores = theta.shape[1]
    first = run.work.products.shape[0]
    for z in range(n_scores):
        theta[label, z] += step * priors[i, z]
        theta[rival, z] -= step * priors[i, z]
        if run.setting.shared:
            norms_sq[first + z] = run.setting.factor * (theta[label, z] ** 2 + theta[rival, z] ** 2)
        else:
            norms_sq[first + label * n_scores + z] = theta[label, z] ** 2
            norms_sq[first + rival * n_scores + z] = theta[rival, z] ** 2


@inlined
def refresh_link(threshold, run):
    """Primal weights from dual norms; which kernels contribute more than rounding."""
    dual = run.dual
    n_kernels = run.dual.active.shape[0]
    norms = dual.norms
    weights = dual.weights
    active = dual.active
    for j in range(norms.shape[0]):
        norms[j] = math.sqrt(max(0.0, dual.norms_sq[j]))
    dual.now.norm = link_weights(norms, threshold, run.setting.q, weights)
    largest = 0.0
    for j in range(n_kernels):
        largest = max(largest, weights[j] * norms[j])
    n_active = 0
    for j in range(n_kernels):
        if weights[j] * norms[j] > run.setting.rounding * largest:
            active[n_active] = j
            n_active += 1
    if 2 * n_active > n_kernels:  # an update reads all rows anyway: stream them
        for j in range(n_kernels):
            active[j] = j
        n_active = n_kernels
    dual.now.n_active = n_active
    n_scores = dual.theta.shape[1]
    for c in range(dual.theta.shape[0]):
        first = n_kernels + (0 if run.setting.shared else c * n_scores)
        for z in range(n_scores):
            dual.effective[c, z] = weights[first + z] * dual.theta[c, z]


@inlined
def shrink(factor, run):
    run.dual.now.scale *= factor
    if run.dual.now.scale < SMALLEST_SCALE:
        fold_scale(run.dual)


@inlined
def project(radius, dual):
    r"""Project :math:`\bar\theta` onto the ball :math:`\|\bar\theta\|_{2,q} \le radius`."""
    length = dual.now.scale * dual.now.norm
    if length > radius:
        dual.now.scale *= radius / length


@njit(cache=True)
def fold_scale(dual):
    """Apply the lazy scale (a scale of 0 resets exactly)."""
    now = dual.now
    multiply(dual.norms_sq, now.scale * now.scale)
    for c in range(dual.coef.shape[0]):
        multiply(dual.coef[c], now.scale)
        multiply(dual.theta[c], now.scale)
        multiply(dual.effective[c], now.scale)
    for c in range(dual.entries.value.shape[0]):
        multiply(dual.entries.value[c], now.scale)
    for c in range(dual.maintained.shape[0]):
        for j in range(dual.maintained.shape[1]):
            multiply(dual.maintained[c, j], now.scale)
    now.norm *= now.scale
    now.scale = 1.0
    if now.norm == 0.0:
        now.n_active = 0
        dual.weights[:] = 0.0
        dual.effective[:] = 0.0


@loop
def multiply(values, factor):
    for k in range(values.shape[0]):
        values[k] *= factor


@njit(cache=True, fastmath=True)
def class_scores(combined, entries, scores):
    for c in range(scores.shape[0]):
        scores[c] = gathered_dot(combined, entries.index[c], entries.value[c], entries.count[c])


@njit(cache=True)
def pair_products(rows, base, label, rival, coef, entries, difference, out):
    """Products of every block with the gradient; sparse for few coefficients."""
    n = coef.shape[1]
    count = entries.count
    sparse = 4 * (count[label] + count[rival]) < n
    if not sparse:
        for i in range(n):
            difference[i] = coef[label, i] - coef[rival, i]
    for j in range(out.shape[0]):
        first = base + j * rows.kernel_stride
        row = rows.flat[first : first + n]
        if sparse:
            out[j] = gathered_dot(row, entries.index[label], entries.value[label], count[label])
            out[j] -= gathered_dot(row, entries.index[rival], entries.value[rival], count[rival])
        else:
            out[j] = full_dot(row, difference)


@njit(cache=True)
def add_coefficient(coef, c, i, amount, entries):
    coef[c, i] += amount
    if entries.place.shape[0] == 0:
        return
    slot = entries.place[c, i]
    if slot < 0:
        slot = entries.count[c]
        entries.place[c, i] = slot
        entries.index[c, slot] = i
        entries.count[c] += 1
    entries.value[c, slot] = coef[c, i]


@njit(cache=True)
def index_entries(coef, entries):
    for c in range(coef.shape[0]):
        for i in range(coef.shape[1]):
            entries.place[c, i] = -1
            if coef[c, i] != 0.0:
                add_coefficient(coef, c, i, 0.0, entries)


@njit(cache=True, fastmath=True)
def add_row(scores, label, rival, flat, base, kernel_stride, amount):
    """Add ``amount * row`` to the label's scores, subtract it from the rival's."""
    n = scores.shape[2]
    amount = flat.dtype.type(amount)
    for j in range(scores.shape[1]):
        row = flat[base + j * kernel_stride : base + j * kernel_stride + n]
        up = scores[label, j]
        down = scores[rival, j]
        for i in range(n):
            change = amount * row[i]
            up[i] += change
            down[i] -= change
