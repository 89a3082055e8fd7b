"""A stochastic run on one problem: state, route to class scores, kernel rows."""

import numpy as np

from cuelearn.core.groupnorm import group_norm, link_weights
from cuelearn.kernels.rows import flat_view
from cuelearn.mkl.optimum.problem import Point
from cuelearn.mkl.stochastic import state
from cuelearn.mkl.stochastic.state import NOW, Dual, Entries, Rows, Run, Samples, Setting, Work

__all__ = ["Stream"]

# below this share of updating visits, maintaining scores is cheaper than recomputing them
MAINTAIN_BELOW = 0.3
# with at most so many samples per class, recomputing reads less (measured)
SAMPLES_PER_CLASS = 5
# maintained scores of this size stay in a core's cache
CACHE_BYTES = 1 << 20
# updates per sample until scores and norms are recomputed against rounding drift
REFRESH_AFTER = 50
# kernel rows per matrix product
FETCH_ROWS = 128
# rows per partial sum; constant, so that bits do not depend on the memory
SUM_ROWS = 16
# maximum bytes of a window's kernels: cheapest near this on 60,000 digits
WINDOW_BYTES = 128e6


class Stream:
    """State of a stochastic run over an `MKLProblem`, for compiled loops.

    `scores`, the route to class scores, is "recompute", "maintain", or "auto", which maintains once few
    visits update and memory allows. A run continues from `start`: coefficients (m, n_classes) of the first
    samples, and squared block norms. `rows` are those of all samples to visit, if the bank cannot provide
    them; `cost` (n_samples,) scales the updates.
    """

    def __init__(self, problem, *, scores="auto", long_run=True, start=None, rows=None, cost=None):
        if scores not in ("auto", "recompute", "maintain"):
            raise ValueError(f"scores must be 'auto', 'recompute' or 'maintain', got {scores!r}")
        self.problem = problem
        self.bank = problem.bank
        if not problem.keeps_scores:
            scores = "recompute"
        self.route_rule = scores
        bank = self.bank
        n = self.bank.n_samples
        n_kernels = self.bank.n_kernels
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
        now = np.zeros(1, dtype=NOW).view(np.recarray)[0]
        now.scale = 1.0
        groups = [np.zeros(problem.n_groups) for _ in range(3)]
        active = np.zeros(n_kernels, dtype=np.int64)
        theta, effective = (np.zeros((n_classes, problem.scores.shape[1])) for _ in range(2))
        self.dual = Dual(np.zeros((n_classes, n)), *groups, active, None, None, theta, effective, now)
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
            state.refresh_link(0.0, self.run)

    @property
    def run(self):
        return Run(self.samples, self.rows, self.dual, self.work, self.setting)

    def _open_rows(self):
        bank = self.bank
        n = self.bank.n_samples
        n_kernels = self.bank.n_kernels
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
        if route == "recompute":
            listed = (n_classes, n)
        types = np.int32, np.uint32, self.bank.dtype
        entries = Entries(*(np.zeros(listed, dtype=t) for t in types), np.zeros(listed[0], dtype=np.int64))
        kept = (0, 0, 0)
        if route == "maintain":
            kept = (n_classes, self.bank.n_kernels, n)
        self.dual = self.dual._replace(entries=entries, maintained=np.zeros(kept, dtype=self.bank.dtype))
        if route == "recompute":
            state.index_entries(self.dual.coef, entries)
        elif self.dual.coef.any():
            self._refresh_scores()

    def _refresh_scores(self):
        bank = self.bank
        problem = self.problem
        coef, maintained = (self.dual.coef, self.dual.maintained)
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
            state.refresh_link(0.0, self.run)
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
        """Begin a stage; with `averages` the primal point is that of the mean of the steps."""
        self.loop = loop
        self.parameters = parameters
        self.averages = averages
        self.dual.now.step = self.dual.now.strength = 0.0

    def visit(self, order):
        """Visit samples in order; returns the mistakes."""
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
        """Visit samples with maintained scores and kernels computed on demand.

        Visits use the kernels among the window's samples; then the rows of the updated samples are added to
        all scores. The bits are those of single visits.
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
        given = ("labels", "gradient_norm_sq", "cost", "priors")
        samples = Samples(
            diagonal=np.ascontiguousarray(near.diagonal, dtype=np.float64),
            **{name: getattr(self.samples, name)[window] for name in given},
        )
        dual = self.dual._replace(coef=steps, maintained=np.take(self.dual.maintained, window, axis=2))
        run = Run(samples, Rows(flat, places, *strides), dual, self.work, self.setting)
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
                state.add_row(self.dual.maintained, label, rival, self.rows.flat, base, stride, amount)

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
        """B and its squared block norms: UFO's counts per epoch, or OBSCURE's ``coef * lambda n / q``, to be
        clipped."""
        n = self.bank.n_samples
        if self.averages:
            factor = n / max(1.0, self.dual.now.step)
        else:
            factor = self.scale * self.problem.regularization * n / self.problem.q
        return self.dual.coef.T * factor, np.maximum(0.0, self.dual.norms_sq) * factor**2


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
