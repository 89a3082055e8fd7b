r"""A stochastic MKL run: its state for compiled loops, its route to class scores, its epochs and result.

One coefficient matrix serves all kernels (thesis 4.3.3): :math:`\theta^j = \sum_{i,y} A_{iy}\, \phi^j(x_i,
y)`. Class scores have two routes: "recompute" combines the visited kernel rows, best if most visits update;
"maintain" keeps the scores of all samples per kernel and class, and needs kernel rows only for updates. Prior
scores (thesis 6.3) are scalar blocks :math:`\theta_{yz} = \sum_i A_{iy} s_{iz}` after the kernels.
"""

import math
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cuelearn.compiled import loop, njit
from cuelearn.core.formulas import competitor, group_norm, link_weights
from cuelearn.core.run import Run
from cuelearn.expect import expect, expect_word, warn_user
from cuelearn.kernels.rows import combine_rows, flat_view, full_dot, gathered_dot
from cuelearn.mkl.optimum.dual import finish_dual
from cuelearn.mkl.optimum.problem import Point, Result

# the lazy scale is applied below this, long before float32 overflows
SMALLEST_SCALE = 1e-6
inlined = njit(cache=True, inline="always")


class Rows(NamedTuple):
    """Row i of kernel j: ``flat[place[i] * row_stride + j * kernel_stride :][:n]``, if ``place[i] >= 0``."""

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


def zero_dual(problem, width, entries=None, maintained=None):
    """The `Dual` at 0 with coefficients (n_classes, width)."""
    now = np.zeros(1, dtype=NOW).view(np.recarray)[0]
    now.scale = 1.0
    groups = [np.zeros(problem.n_groups) for _ in range(3)]
    active = np.zeros(problem.bank.n_kernels, dtype=np.int64)
    theta, effective = np.zeros((2, problem.n_classes, problem.scores.shape[1]))
    coef = np.zeros((problem.n_classes, width))
    return Dual(coef, *groups, active, entries, maintained, theta, effective, now)


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


class State(NamedTuple):
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
    r""":math:`\bar\theta \leftarrow \bar\theta + step\,(\bar\phi(x_i, y_i) - \bar\phi(x_i, r))` and norms."""
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
    """Apply the lazy scale; 0 resets exactly."""
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


# below this share of updating visits, maintaining scores is cheaper
MAINTAIN_BELOW = 0.3
# with at most so many samples per class, recomputing reads less (measured)
SAMPLES_PER_CLASS = 5
# maintained scores of this size stay in a core's cache
CACHE_BYTES = 1 << 20
# updates per sample until scores and norms are recomputed
REFRESH_AFTER = 50
# kernel rows per matrix product
FETCH_ROWS = 128
# rows per partial sum; constant, so that bits do not depend on the memory
SUM_ROWS = 16
# maximum bytes of a window's kernels (measured)
WINDOW_BYTES = 128e6


class Stream:
    """State of a stochastic run over an `MKLProblem`, for compiled loops.

    `scores`, the route to class scores, is "recompute", "maintain", or "auto", which maintains once few
    visits update and memory allows. `start` has coefficients (m, n_classes) of the first samples, and squared
    block norms; `rows` are those of all samples to visit, if the bank cannot provide them; `cost`
    (n_samples,) scales the updates.
    """

    def __init__(self, problem, *, scores="auto", long_run=True, start=None, rows=None, cost=None):
        expect_word("scores", scores, ("auto", "recompute", "maintain"))
        self.problem = problem
        self.bank = problem.bank
        if not problem.keeps_scores:
            scores = "recompute"
        self.route_rule = scores
        bank = self.bank
        n = bank.n_samples
        n_kernels = bank.n_kernels
        n_classes = problem.n_classes
        diagonal = np.ascontiguousarray(bank.diagonal, dtype=np.float64)
        self.visited = np.flatnonzero(problem.limits)
        if cost is None:
            cost = problem.limits * (self.visited.size / n)
        lengths = gradient_norms_sq(problem, diagonal)
        self.samples = Samples(problem.labels, diagonal, lengths, cost, problem.scores)
        # a Python float for any dtype: numba compiles per type
        rounding = -1.0
        if problem.many_kernels:
            rounding = float(1e-2 * np.finfo(bank.dtype).eps)
        numbers = problem.q, problem.regularization, problem.alpha, problem.factor
        self.setting = Setting(*numbers, rounding, problem.rows == 1)
        self.dual = zero_dual(problem, n)
        cast = (np.zeros(size, dtype=bank.dtype) for size in (n, n_kernels))
        self.work = Work(*cast, np.zeros(n), np.zeros(n_kernels), np.zeros(n_classes))
        self.score_bytes = n * n_kernels * n_classes * np.dtype(bank.dtype).itemsize
        self.updates_at_refresh = 0
        self.update_share = None
        self.averages = False
        self.reveal = None  # a function that sets the unknown label, -1, of a sample
        self.rows = rows
        if rows is None:
            self.rows = self._open_rows()
        if start is not None:
            self.dual.coef[:, : len(start[0])] = start[0].T
            self.dual.norms_sq[:] = start[1]
        small = long_run and self.score_bytes <= CACHE_BYTES
        self.scores_fit = self.score_bytes <= 0.5 * bank.memory
        by_itself = scores == "auto" and self.scores_fit and (small or not bank.resident)
        self._set_route("maintain" if scores == "maintain" or by_itself else "recompute")
        if start is not None:
            refresh_link(0.0, self.run)

    @property
    def run(self):
        return State(self.samples, self.rows, self.dual, self.work, self.setting)

    def _open_rows(self):
        bank = self.bank
        n = bank.n_samples
        n_kernels = bank.n_kernels
        if bank.resident:
            flat, *strides = flat_view(bank.stack)
            return Rows(flat, np.arange(n), *strides)
        itemsize = np.dtype(bank.dtype).itemsize
        capacity = int(min(FETCH_ROWS, max(1, 0.5 * bank.memory // (n * n_kernels * itemsize))))
        capacity -= capacity % SUM_ROWS if capacity > SUM_ROWS else 0
        window_bytes = min(WINDOW_BYTES, 0.25 * bank.memory)
        self.window = int(min(n, max(2, np.sqrt(window_bytes / (n_kernels * itemsize)))))
        self.buffer = np.empty((capacity, n_kernels, n), dtype=bank.dtype)
        return Rows(self.buffer.reshape(-1), np.full(n, -1), n_kernels * n, n)

    def _fetch(self, samples):
        self.bank.rows_into(samples, self.buffer[: samples.size].transpose(1, 0, 2))

    def _fetch_coming(self, order, position):
        coming = order[position : position + len(self.buffer)]
        coming = coming[np.sort(np.unique(coming, return_index=True)[1])]
        self.rows.place[:] = -1
        self._fetch(coming)
        self.rows.place[coming] = np.arange(coming.size)

    def _set_route(self, route):
        n_classes, n = self.dual.coef.shape
        self.route = route
        listed = (0, 0)
        kept = (0, 0, 0)
        if route == "recompute":
            listed = (n_classes, n)
        else:
            kept = (n_classes, self.bank.n_kernels, n)
        types = np.int32, np.uint32, self.bank.dtype
        entries = Entries(*(np.zeros(listed, dtype=t) for t in types), np.zeros(listed[0], dtype=np.int64))
        self.dual = self.dual._replace(entries=entries, maintained=np.zeros(kept, dtype=self.bank.dtype))
        if route == "recompute":
            index_entries(self.dual.coef, entries)
        elif self.dual.coef.any():
            self._refresh_scores()

    def _refresh_scores(self):
        bank = self.bank
        problem = self.problem
        coef = self.dual.coef
        maintained = self.dual.maintained
        support = np.flatnonzero(coef.any(axis=0))
        cast = np.ascontiguousarray(coef[:, support], dtype=bank.dtype)
        if bank.resident:
            everything = support.size == bank.n_samples
            for j in range(bank.n_kernels):
                maintained[:, j, :] = cast @ (bank.stack[j] if everything else bank.stack[j][support])
        else:
            maintained[...] = 0
            for start in range(0, support.size, len(self.buffer)):
                chosen = support[start : start + len(self.buffer)]
                self._fetch(chosen)
                for first in range(0, chosen.size, SUM_ROWS):
                    last = min(first + SUM_ROWS, chosen.size)
                    part = cast[:, start + first : start + last]
                    for j in range(bank.n_kernels):
                        maintained[:, j, :] += part @ self.buffer[first:last, j]
        of_kernels = problem.factor * np.einsum("ci,cji->j", coef, maintained, dtype=np.float64)
        self.dual.theta[...] = problem.score_blocks(coef.T)
        self.dual.norms_sq[:] = problem.join(of_kernels, self.dual.theta**2)
        if self.dual.theta.size:
            refresh_link(0.0, self.run)
        self.updates_at_refresh = self.n_updates

    def _reconsider_route(self, update_share):
        if self.route_rule == "auto" and self.bank.resident:
            few = update_share < (MAINTAIN_BELOW if self.route == "recompute" else 2.0 * MAINTAIN_BELOW)
            few = few and self.bank.n_samples > SAMPLES_PER_CLASS * self.problem.n_classes
            small = self.route == "maintain" and self.score_bytes <= CACHE_BYTES
            wanted = "recompute"
            if (few or small) and self.scores_fit:
                wanted = "maintain"
            if wanted != self.route:
                self._set_route(wanted)
        if self.n_updates - self.updates_at_refresh > REFRESH_AFTER * self.bank.n_samples:
            if self.route == "maintain":
                self._refresh_scores()
            else:
                self.dual.norms_sq[:] = self.problem.block_norms_sq(self.dual.coef.T)
                self.updates_at_refresh = self.n_updates

    def start_stage(self, loop, *parameters, averages=False):
        """With `averages` the primal point is that of the mean of the steps."""
        self.loop = loop
        self.parameters = parameters
        self.averages = averages
        self.dual.now.step = self.dual.now.strength = 0.0

    def visit(self, order):
        """The mistakes of visits in order."""
        order = np.ascontiguousarray(order, dtype=np.int64)
        mistakes = np.zeros(order.size, dtype=np.bool_)
        if self.update_share is not None:
            self._reconsider_route(self.update_share)
        before = self.n_updates
        position = 0
        while True:
            position = self.loop(order, position, mistakes, self.run, *self.parameters)
            if position >= order.size:
                break
            if self.reveal is not None and self.samples.labels[order[position]] < 0:
                self.reveal(order[position])
            elif self.route == "maintain" and self.problem.many_kernels:
                stop = min(order.size, position + self.window)
                self._visit_window(order[position:stop], mistakes[position:stop])
                position = stop
            else:
                self._fetch_coming(order, position)
        if order.size:
            self.update_share = (self.n_updates - before) / order.size
        return mistakes

    def _visit_window(self, window, mistakes):
        """Visit samples by the kernels among them; then the rows of the updated ones are added to all scores.

        The bits are those of single visits.
        """
        size = window.size
        near = self.bank.restrict(window, resident=True)
        _, sample = np.unique(window, return_inverse=True)
        if sample.max() < size - 1:  # repeated samples: exact diagonal
            first, second = np.nonzero(sample[:, None] == sample)
            near.stack[:, first, second] = near.diagonal[:, first]
        flat, *strides = flat_view(near.stack)
        places = np.arange(size)
        # the extra entry, 1, records rescaling
        steps = np.zeros((self.problem.n_classes, size + 1))
        steps[0, size] = 1.0
        labels, _, *others = self.samples
        diagonal = np.ascontiguousarray(near.diagonal, dtype=np.float64)
        samples = Samples(labels[window], diagonal, *(values[window] for values in others))
        dual = self.dual._replace(coef=steps, maintained=np.take(self.dual.maintained, window, axis=2))
        run = State(samples, Rows(flat, places, *strides), dual, self.work, self.setting)
        self.loop(places, 0, mistakes, run, *self.parameters)
        if steps[0, size] != 1.0:
            self.dual.coef[:] *= steps[0, size]
            self.dual.maintained[:] *= self.dual.maintained.dtype.type(steps[0, size])
        updated = np.flatnonzero(steps[:, :size].any(axis=0))
        for start in range(0, updated.size, len(self.buffer)):
            chunk = updated[start : start + len(self.buffer)]
            self._fetch(window[chunk])
            for row, place in enumerate(chunk):
                label = samples.labels[place]
                rival = np.argmin(steps[:, place])
                amount = steps[label, place]
                self.dual.coef[label, window[place]] += amount
                self.dual.coef[rival, window[place]] -= amount
                base = row * self.rows.row_stride
                stride = self.rows.kernel_stride
                add_row(self.dual.maintained, label, rival, self.rows.flat, base, stride, amount)

    @property
    def n_updates(self):
        return int(self.dual.now.n_updates)

    @property
    def scale(self):
        """Lazy factor of coefficients and norms (1 in UFO-MKL)."""
        return self.dual.now.scale

    @property
    def n_support(self):
        return int(np.count_nonzero(self.dual.coef.any(axis=0)))

    def point(self, scores=False):
        norms = np.sqrt(np.maximum(0.0, self.dual.norms_sq))
        weights = np.zeros_like(norms)
        if self.averages:
            step = max(1.0, self.dual.now.step)
            link_weights(norms, self.problem.alpha * step, self.problem.q, weights)
            weights /= step * self.problem.regularization
        else:
            link_weights(norms, 0.0, self.problem.q, weights)
            weights /= self.problem.q
        coef = self.dual.coef.T * self.scale
        scores = self._scores(coef, weights) if scores else None
        return Point(coef, weights, weights * self.scale * norms, scores)

    def _scores(self, dual_coef, weights):
        if self.route == "recompute":
            return self.problem.training_scores(dual_coef, weights)
        of_kernels, of_scores = self.problem.split(weights)
        cast = of_kernels.astype(self.bank.dtype)
        scores = np.einsum("cji,j->ic", self.dual.maintained, cast, optimize=True)
        if self.dual.theta.size:
            scores = scores + self.problem.scores @ (of_scores * self.dual.theta).T
        return self.problem.factor * self.scale * scores

    def dual_point(self):
        """B, to be clipped, and squared block norms: UFO's counts per epoch, or ``coef * lambda n / q``."""
        n = self.bank.n_samples
        if self.averages:
            factor = n / max(1.0, self.dual.now.step)
        else:
            factor = self.scale * self.problem.regularization * n / self.problem.q
        return self._dual_coefficients(factor), np.maximum(0.0, self.dual.norms_sq) * factor**2

    def _dual_coefficients(self, factor):
        return self.dual.coef.T * factor


def gradient_norms_sq(problem, diagonal):
    r""":math:`\|\bar z\|_{2,q}^2` per sample, from blocks of length sqrt(2 k(x, x)) and prior scores."""
    blocks_sq = 2.0 * problem.factor * diagonal
    if problem.scores.shape[1]:
        absolute = np.abs(problem.scores)
        norms = [np.sqrt(blocks_sq).T, absolute]
        if problem.rows != 1:
            norms.append(absolute)
        norms = np.concatenate(norms, axis=1)
        return np.array([group_norm(row, problem.q) ** 2 for row in norms])
    largest = np.maximum(blocks_sq.max(axis=0), np.finfo(float).tiny)
    ratios = np.power(blocks_sq / largest, problem.q / 2.0).sum(axis=0)
    lengths = largest * np.power(np.maximum(ratios, 1e-300), 2.0 / problem.q)
    return np.where(ratios > 0.0, lengths, 0.0)


SMALLEST = np.finfo(float).tiny


def draw_order(n_samples, rng, *, shuffle=True, sampling="permutation"):
    """Visits of one epoch: a permutation, the given order, or independent draws ("iid", as the theorems
    assume)."""
    if expect_word("sampling", sampling, ("permutation", "iid")) == "iid":
        return rng.integers(n_samples, size=n_samples)
    if shuffle:
        return rng.permutation(n_samples)
    return np.arange(n_samples)


class Training:
    """One stochastic run: stages of epochs of a compiled loop, with history, callback and stopping rule.

    `measure`: objective and gap are computed, with the clock stopped, after "every" epoch; "geometric", at
    epochs 1, 2, 3, 4, 6, 9, ... and the last of a stage; at the "end"; "auto" is "geometric" if `tol` is set,
    else "end". Without `shuffle` the first epoch keeps the given order; `sampling` as in `draw_order`.
    `callback(training, step)` is called after every epoch. Without `certify` the end point is not measured.
    With `finish`, `finish_dual` takes over after the online stage or the first epoch, if the samples with a
    coefficient fit its memory, else after the last epoch; with `measure` "auto" its certificate is the first.
    `route` goes to `Stream`.
    """

    def __init__(
        self,
        problem,
        *,
        tol=None,
        measure="auto",
        rng=None,
        shuffle=True,
        sampling="permutation",
        callback=None,
        verbose=False,
        certify=True,
        finish=False,
        name="",
        **route,
    ):
        expect_word("measure", measure, ("auto", "geometric", "every", "end"))
        self.problem = problem
        self.name = name
        self.certify = certify
        self.certifiable = not problem.bank.indefinite
        self.ascends = finish and tol is not None and self.certifiable
        self.ascent = None
        self.waits = self.ascends and measure == "auto"  # for the ascent's certificate
        self.tol = None
        if tol is not None:
            self.tol = expect("tol", tol, low=0)
        self.measure = measure
        if measure == "auto":
            self.measure = "end" if tol is None else "geometric"
        self.rng = np.random.default_rng(rng)
        self.shuffle = shuffle
        self.sampling = sampling
        self.run = Run(callback, verbose=verbose)
        kind = Stream
        if problem.explicit:
            from cuelearn.mkl.stochastic.blocks import BlockStream as kind  # it extends this module
        self.stream = kind(problem, **route)
        self.step = 0
        self.epoch = 0
        self.visits = []
        self.errors = []
        self.extra = {}
        self.converged = tol is None and self.certifiable
        self._bound = 0.0
        self._measured = None  # objective and gap of the present point

    def run_stage(
        self, stage, loop, *parameters, n_epochs, averages=False, until_no_loss=False, certify=True
    ):
        """Run epochs; `until_no_loss` stops after one without update (thesis theorem 4.3); without `certify`
        there is no dual point."""
        stream = self.stream
        stream.start_stage(loop, *parameters, averages=averages)
        n = self.problem.bank.n_samples
        next_measure = 1
        visited = stream.visited
        for epoch in self.run.rounds(n_epochs, f"{self.name} {stage}".strip(), unit="epoch"):
            if certify and self.step > 0 and self.ascends and self.ascent is None:
                self.waits = False
                self.ascent = self._ascend()
                if self.ascent.fits:
                    break
            before = stream.n_updates
            shuffle = self.shuffle or self.epoch > 0
            order = visited[draw_order(visited.size, self.rng, shuffle=shuffle, sampling=self.sampling)]
            mistakes = stream.visit(order)
            self._measured = None
            self.run.pause()
            self.epoch += 1
            self.step += mistakes.size
            self.errors.append(mistakes)
            self.visits.append(order.astype(np.min_scalar_type(n)))
            ends = epoch == n_epochs or (until_no_loss and stream.n_updates == before)
            scheduled = self.measure == "every"
            if self.measure == "geometric" and (epoch >= next_measure or ends):
                scheduled = not self.waits
                next_measure = max(next_measure + 1, int(1.5 * epoch))
            value, gap = self.measure_now(certify) if scheduled else (np.nan, np.nan)
            row = {"stage": stage, "epoch": self.epoch, "online_error": float(mistakes.mean())}
            row |= {"n_updates": stream.n_updates, "n_support": stream.n_support}
            stopped = self.run.end(self.step, lambda: self, objective=value, dual_gap=gap, **row)
            if ends or stopped or (certify and self.tol is not None and self.converged):
                break

    def measure_now(self, certify=True):
        """Objective and gap of the current point."""
        value = self.problem.primal(self.stream.point(scores=True))
        if certify:
            self._bound = max(self._bound, self.problem.dual_bound(*self.stream.dual_point())[0])
        gap = np.nan
        if self.certifiable:
            gap = value - self._bound
        self._measured = value, gap
        if self.tol is not None:
            self.converged = gap <= self.tol * max(value, SMALLEST)
        return value, gap

    def finish(self, *, certify=True):
        """Measure the end point and ascend if required; the `Result`."""
        run = self.run
        run.pause()
        ascents = []
        if self.ascent is not None:
            ascents = [self.ascent]
        if ascents and self.ascent.fits:
            value = gap = np.inf
        elif self._measured is not None:
            value, gap = self._measured
        elif not self.certify:
            value = gap = np.nan
        else:
            value, gap = self.measure_now(certify)
            if run.rows:
                run.rows[-1].update(objective=value, dual_gap=gap)
        stream = self.stream
        self.extra["stopped"] = run.stopped
        self.extra["visits"] = np.concatenate([np.zeros(0, dtype=np.uint8), *self.visits])
        coef, weights, *_ = stream.point()
        norms_sq = np.maximum(0.0, stream.dual.norms_sq * stream.scale**2)
        effort = f"{self.epoch} epochs"
        if self.ascends and not self.converged and not run.stopped:
            if not ascents or not self.ascent.fits:
                ascents.append(self._ascend())
            ascent = min(ascents, key=lambda end: end.objective)
            bound = max(self._bound, *(end.objective - end.gap for end in ascents))
            if ascent.objective < value:  # not if the samples with a coefficient exceeded the memory
                value = ascent.objective
                norms_sq = ascent.norms_sq
                coef = ascent.dual_coef
                weights = ascent.group_weights
            gap = max(0.0, value - bound)
            self.converged = gap <= self.tol * max(value, SMALLEST)
            effort += f" and {ascent.n_rounds} rounds of dual ascent"
        if self.tol is not None and self.certifiable and not self.converged:
            raised = "tol"
            if not self.ascends:
                raised = "tol, or set finish=True"
            elif not self.problem.bank.resident:
                raised = "tol or memory"
            warn_user(
                f"{self.name or 'the solver'} did not reach tol={self.tol:g}: the relative duality gap is "
                f"{gap / max(value, SMALLEST):.2g} after {effort}; raise n_epochs or {raised}",
                ConvergenceWarning,
            )
        return Result(
            coef,
            weights,
            history=run.history(),
            objective=value,
            dual_gap=gap,
            n_iter=self.epoch,
            n_updates=stream.n_updates,
            converged=self.converged,
            online_errors=np.concatenate([np.zeros(0, dtype=np.bool_), *self.errors]),
            block_norms_sq=norms_sq,
            extra=self.extra,
        )

    def _ascend(self):
        """Each pass over all samples is a history row."""
        run = self.run
        run.go()

        def record(number, objective, gap):
            note = f"relative gap {gap / max(objective, SMALLEST):.1e}"
            run.add(note=note, stage="dual", epoch=number, objective=objective, dual_gap=gap)

        with run.under_bar(f"{self.name} dual".strip(), unit="look"):
            B, norms_sq = self.stream.dual_point()
            return finish_dual(self.problem, B, tol=self.tol, norms_sq=norms_sq, record=record)
