r"""A stochastic MKL run: its state, the route by which scores are had, and the supply of kernel rows.

`Stream` keeps what `engine.visit_samples` reads and writes. It decides between the two routes (see `engine`), fetches kernel rows
where the bank computes them on demand, and hands out coefficients, objective and certificate. It knows nothing of a particular
algorithm: those are sequences of `Stream.visit` calls in `om2.py`, `obscure.py`, `pegasos.py` and `ufo.py`.
"""

import time
from typing import NamedTuple

import numpy as np
import pandas as pd

from cuelearn.core.groupnorm import group_norm, link_weights
from cuelearn.mkl import engine
from cuelearn.mkl.problem import flat_view
from cuelearn.mkl.rules import DUAL_AVERAGING

__all__ = ["Stream", "History", "Result", "draw_order"]

# below this share of visits that update, keeping scores up to date is cheaper than recomputing them
MAINTAIN_BELOW = 0.3
# scores of this size are cheap to maintain whatever happens: they stay in a core's cache
CACHE_BYTES = 1 << 20
# maintained scores and norms drift by rounding; they are recomputed after this many updates per sample
REFRESH_AFTER = 50
# kernel rows computed at a time, where they are computed on demand: the matrix product behind them reads all samples once per call
FETCH_ROWS = 128
# rows per partial sum of recomputed scores: a constant, so that their last bits do not depend on how many rows fit the memory
SUM_ROWS = 16
# most bytes of kernels among the samples of a window, see `Stream._visit_window`: larger windows cost more kernels within the
# window, smaller ones more fetches; on 60,000 digits the sum is lowest near this
WINDOW_BYTES = 128e6


class Result(NamedTuple):
    """What every MKL solver returns.

    Attributes
    ----------
    dual_coef : ndarray, shape (n_samples, n_classes)
        Coefficients A shared by all kernels.
    kernel_weights : ndarray, shape (n_kernels,)
        Decision values are ``sum_j kernel_weights[j] * K_j @ dual_coef``.
    history : DataFrame
        One row per epoch: step, epoch, seconds, n_updates, n_support, online_error, objective, dual_gap.
    objective, dual_gap : float
        Of the returned point; ``objective - dual_gap`` never exceeds the optimum.
    n_iter : int
        Epochs run.
    n_updates : int
    converged : bool
        Whether the relative gap fell to the tolerance (True where no tolerance was set).
    online_errors : ndarray of bool
        The 0/1 sequence of mistakes of the online visits.
    block_norms_sq : ndarray, shape (n_kernels,)
        Squared norms of the dual blocks, from which an online run goes on.
    extra : dict
        What is particular to one algorithm; of those that run a `Training`, `stopped`: whether the callback ended it.
    """

    dual_coef: np.ndarray
    kernel_weights: np.ndarray
    history: pd.DataFrame
    objective: float
    dual_gap: float
    n_iter: int
    n_updates: int
    converged: bool
    online_errors: np.ndarray
    block_norms_sq: np.ndarray
    extra: dict


class History:
    """Rows of the training history; the clock stops while the history itself is measured."""

    COLUMNS = (
        "stage",
        "step",
        "epoch",
        "seconds",
        "n_updates",
        "n_support",
        "online_error",
        "objective",
        "dual_gap",
    )

    def __init__(self):
        self.rows = []
        self._spent = 0.0
        self._started = time.perf_counter()

    def pause(self):
        """Stop the clock."""
        self._spent += time.perf_counter() - self._started

    def go(self):
        """Let the clock run on."""
        self._started = time.perf_counter()

    @property
    def seconds(self):
        """Seconds of training so far (while paused)."""
        return self._spent

    def add(self, **values):
        """Append a row; columns not given are NaN."""
        self.rows.append({**dict.fromkeys(self.COLUMNS, np.nan), **values})

    def frame(self):
        """The history as a DataFrame."""
        return pd.DataFrame(self.rows, columns=list(self.COLUMNS))


def draw_order(n_samples, rng, *, shuffle=True, sampling="permutation"):
    """Order of one epoch's visits.

    Parameters
    ----------
    n_samples : int
    rng : numpy.random.Generator
    shuffle : bool
        A fresh permutation; False keeps the given order.
    sampling : {"permutation", "iid"}
        "iid" draws every visit independently, as the convergence theorems assume.

    Returns
    -------
    ndarray of int, shape (n_samples,)
    """
    if sampling == "iid":
        return rng.integers(n_samples, size=n_samples)
    if sampling != "permutation":
        raise ValueError(f"sampling must be 'permutation' or 'iid', got {sampling!r}")
    return rng.permutation(n_samples) if shuffle else np.arange(n_samples)


class Stream:
    """State of a stochastic run over one `MKLProblem`.

    Parameters
    ----------
    problem : MKLProblem
    scores : {"auto", "recompute", "maintain"}
        Route to class scores; "auto" maintains once few visits update and memory allows, and from the start if all scores fit
        a core's cache or kernels are computed on demand.
    long_run : bool
        Whether several epochs are planned; a single pass recomputes.
    start : (dual_coef, block_norms_sq), optional
        Coefficients of the first samples, shape (m, n_classes), and squared block norms, to go on from.
    """

    def __init__(self, problem, *, scores="auto", long_run=True, start=None):
        if scores not in ("auto", "recompute", "maintain"):
            raise ValueError(f"scores must be 'auto', 'recompute' or 'maintain', got {scores!r}")
        self.problem = problem
        self.bank = bank = problem.bank
        n, n_kernels, n_classes = bank.n_samples, bank.n_kernels, problem.n_classes
        self.diagonal = np.ascontiguousarray(bank.diagonal, dtype=np.float64)
        gradient_sq = 2.0 * problem.factor * self.diagonal
        largest = np.maximum(gradient_sq.max(axis=0), np.finfo(float).tiny)
        ratios = np.power(gradient_sq / largest, problem.q / 2.0).sum(axis=0)
        self.gradient_norm_sq = np.where(
            ratios > 0.0, largest * np.power(np.maximum(ratios, 1e-300), 2.0 / problem.q), 0.0
        )
        self.coef = np.zeros((n_classes, n))
        self.norms_sq, self.norms, self.weights = (np.zeros(n_kernels) for _ in range(3))
        self.active = np.zeros(n_kernels, dtype=np.int64)
        self.reals = np.zeros(4)
        self.reals[engine.SCALE] = 1.0
        self.counts = np.zeros(3, dtype=np.int64)
        self.params = np.zeros(7)
        self.params[engine.Q], self.params[engine.FACTOR] = problem.q, problem.factor
        self.params[engine.LAMBDA], self.params[engine.ALPHA] = problem.regularization, problem.alpha
        self.params[engine.RADIUS] = np.inf
        self.params[engine.ROUNDING] = 1e-2 * np.finfo(bank.dtype).eps
        self.combined = np.zeros(n, dtype=bank.dtype)
        self.cast_weights = np.zeros(n_kernels, dtype=bank.dtype)
        self.difference = np.zeros(n)
        self.products = np.zeros(n_kernels)
        self.scores = np.zeros(n_classes)
        self.score_bytes = n * n_kernels * n_classes * np.dtype(bank.dtype).itemsize
        self.route_rule = scores
        self.updates_at_refresh = 0
        self.rule = None
        self.update_share = None
        if start is not None:
            self.coef[:, : len(start[0])] = start[0].T
            self.norms_sq[:] = start[1]
            engine.refresh_link(
                self.norms_sq,
                self.norms,
                self.weights,
                0.0,
                problem.q,
                self.params[engine.ROUNDING],
                self.active,
                self.reals,
                self.counts,
            )
        self._open_rows()
        small = long_run and self.score_bytes <= CACHE_BYTES
        wants_scores = scores == "maintain" or (
            scores == "auto" and self._scores_fit() and (small or not bank.resident)
        )
        self._set_route("maintain" if wants_scores else "recompute")

    # ---------------------------------------------------------------- rows

    def _open_rows(self):
        bank = self.bank
        self.buffer = None
        if bank.resident:
            self.flat, self.row_stride, self.kernel_stride = flat_view(bank.stack)
            self.row_of = np.arange(bank.n_samples)
            return
        if hasattr(bank, "rows_at_hand"):
            self.flat, self.row_of, self.row_stride, self.kernel_stride = bank.rows_at_hand
            return
        itemsize = np.dtype(bank.dtype).itemsize
        row_bytes = bank.n_samples * bank.n_kernels * itemsize
        capacity = int(min(FETCH_ROWS, max(1, 0.5 * bank.memory // row_bytes)))
        capacity -= capacity % SUM_ROWS if capacity > SUM_ROWS else 0
        window_bytes = min(WINDOW_BYTES, 0.25 * bank.memory)
        self.window = int(min(bank.n_samples, max(2, np.sqrt(window_bytes / (bank.n_kernels * itemsize)))))
        self.buffer = np.empty((capacity, bank.n_kernels, bank.n_samples), dtype=bank.dtype)
        self.flat = self.buffer.reshape(-1)
        self.row_stride, self.kernel_stride = bank.n_kernels * bank.n_samples, bank.n_samples
        self.row_of = np.full(bank.n_samples, -1)

    def _fetch(self, samples):
        """Compute the kernel rows of some samples, at most as many as the buffer holds, into its first places."""
        self.bank.rows_into(samples, self.buffer[: samples.size].transpose(1, 0, 2))

    def _fetch_coming(self, order, position):
        """Bring the rows of the coming visits to hand, where every visit needs its row."""
        coming = order[position : position + self.buffer.shape[0]]
        coming = coming[np.sort(np.unique(coming, return_index=True)[1])]
        self.row_of[:] = -1
        self._fetch(coming)
        self.row_of[coming] = np.arange(coming.size)

    # ---------------------------------------------------------------- routes

    def _scores_fit(self):
        return self.score_bytes <= 0.5 * self.bank.memory

    def _set_route(self, route):
        n, n_classes = self.bank.n_samples, self.problem.n_classes
        self.route = route
        bank_dtype = self.bank.dtype
        if route == "maintain":
            self.entry_of = np.empty((0, 0), dtype=np.int32)
            self.entry_index = np.empty((0, 0), dtype=np.uint32)
            self.entry_value = np.empty((0, 0), dtype=bank_dtype)
            self.entry_count = np.empty(0, dtype=np.int64)
            self.maintained = np.zeros((n_classes, self.bank.n_kernels, n), dtype=self.bank.dtype)
            if self.coef.any():
                self._refresh_scores()
        else:
            self.maintained = np.empty((0, 0, 0), dtype=self.bank.dtype)
            self.entry_of = np.empty((n_classes, n), dtype=np.int32)
            self.entry_index = np.empty((n_classes, n), dtype=np.uint32)
            self.entry_value = np.zeros((n_classes, n), dtype=bank_dtype)
            self.entry_count = np.zeros(n_classes, dtype=np.int64)
            engine.index_entries(
                self.coef, self.entry_of, self.entry_index, self.entry_value, self.entry_count
            )

    def _refresh_scores(self):
        """Maintained scores (and block norms) anew from the coefficients."""
        bank = self.bank
        support = np.flatnonzero(self.coef.any(axis=0))
        cast = np.ascontiguousarray(self.coef[:, support], dtype=bank.dtype)
        everything = support.size == bank.n_samples
        if bank.resident:
            for j in range(bank.n_kernels):
                rows = bank.stack[j] if everything else bank.stack[j][support]
                self.maintained[:, j, :] = cast @ rows
        else:
            self.maintained[...] = 0
            capacity = self.buffer.shape[0]
            for start in range(0, support.size, capacity):
                self._fetch(support[start : start + capacity])
                stop = min(start + capacity, support.size)
                for first in range(start, stop, SUM_ROWS):
                    last = min(first + SUM_ROWS, stop)
                    for j in range(bank.n_kernels):
                        self.maintained[:, j, :] += (
                            cast[:, first:last] @ self.buffer[first - start : last - start, j]
                        )
        self.norms_sq[:] = self.problem.factor * np.einsum(
            "ci,cji->j", self.coef, self.maintained, dtype=np.float64
        )
        self.updates_at_refresh = self.counts[engine.N_UPDATES]

    def _reconsider_route(self, update_share):
        if self.route_rule == "auto" and self.bank.resident:
            few = update_share < (MAINTAIN_BELOW if self.route == "recompute" else 2.0 * MAINTAIN_BELOW)
            small = self.route == "maintain" and self.score_bytes <= CACHE_BYTES
            wanted = "maintain" if (few or small) and self._scores_fit() else "recompute"
            if wanted != self.route:
                self._set_route(wanted)
        drift = self.counts[engine.N_UPDATES] - self.updates_at_refresh
        if drift > REFRESH_AFTER * self.bank.n_samples:
            if self.route == "maintain":
                self._refresh_scores()
            else:
                self.norms_sq[:] = self.problem.block_norms_sq(self.coef.T)
                self.updates_at_refresh = self.counts[engine.N_UPDATES]

    # ---------------------------------------------------------------- visits

    def start_stage(self, rule, *, eta=0.0, radius=np.inf):
        """Begin a stage: its rule and parameters; steps count from 1 again (ALGORITHMS, OBSCURE)."""
        self.rule = rule
        self.params[engine.ETA], self.params[engine.RADIUS] = eta, radius
        self.reals[engine.STEP] = 0.0
        self.reals[engine.STRENGTH] = 0.0

    def visit(self, order):
        """Visit samples in the given order.

        Parameters
        ----------
        order : ndarray of int

        Returns
        -------
        ndarray of bool
            Mistakes, in order.
        """
        order = np.ascontiguousarray(order, dtype=np.int64)
        mistakes = np.zeros(order.size, dtype=np.bool_)
        if self.update_share is not None:
            self._reconsider_route(self.update_share)
        before = self.counts[engine.N_UPDATES]
        position = 0
        while True:
            position = engine.visit_samples(
                self.rule,
                self.flat,
                self.row_of,
                self.row_stride,
                self.kernel_stride,
                order,
                position,
                self.problem.labels,
                self.diagonal,
                self.gradient_norm_sq,
                self.coef,
                self.norms_sq,
                self.norms,
                self.weights,
                self.active,
                self.maintained,
                self.entry_of,
                self.entry_index,
                self.entry_value,
                self.entry_count,
                self.combined,
                self.cast_weights,
                self.difference,
                self.products,
                self.scores,
                self.params,
                self.reals,
                self.counts,
                mistakes,
            )
            if position >= order.size:
                break
            if self.maintained.size:
                stop = min(order.size, position + self.window)
                self._visit_window(order[position:stop], mistakes[position:stop])
                position = stop
            else:
                self._fetch_coming(order, position)
        if order.size:
            self.update_share = (self.counts[engine.N_UPDATES] - before) / order.size
        return mistakes

    def _visit_window(self, window, mistakes):
        """Visit a few samples whose kernels are computed on demand, with maintained scores.

        Until the window's end, an update matters only to the samples that are visited in it. So the visits run on the kernels among
        those alone, a small stack; afterwards the full rows of the samples that did update, and of no others, are computed in one
        go and added to the scores of all samples. The steps are those of single visits, in the same order, to the last bit.
        """
        size = window.size
        near = self.bank.restrict(window, resident=True)
        _, sample = np.unique(window, return_inverse=True)
        if (
            sample.max() < size - 1
        ):  # a sample drawn twice meets itself: its kernels are the diagonal, free of rounding
            one, other = np.nonzero(sample[:, None] == sample)
            near.stack[:, one, other] = near.diagonal[:, one]
        flat, row_stride, kernel_stride = flat_view(near.stack)
        places = np.arange(size)
        # one entry more, a 1, shows by what factor the coefficients were rescaled on the way
        steps = np.zeros((self.problem.n_classes, size + 1))
        steps[0, size] = 1.0
        labels = self.problem.labels[window]
        engine.visit_samples(
            self.rule,
            flat,
            places,
            row_stride,
            kernel_stride,
            places,
            0,
            labels,
            near.diagonal,
            self.gradient_norm_sq[window],
            steps,
            self.norms_sq,
            self.norms,
            self.weights,
            self.active,
            np.take(self.maintained, window, axis=2),
            self.entry_of,
            self.entry_index,
            self.entry_value,
            self.entry_count,
            self.combined,
            self.cast_weights,
            self.difference,
            self.products,
            self.scores,
            self.params,
            self.reals,
            self.counts,
            mistakes,
        )
        if steps[0, size] != 1.0:
            self.coef *= steps[0, size]
            self.maintained *= self.maintained.dtype.type(steps[0, size])
        updated = np.flatnonzero(steps[:, :size].any(axis=0))
        for start in range(0, updated.size, self.buffer.shape[0]):
            chunk = updated[start : start + self.buffer.shape[0]]
            self._fetch(window[chunk])
            for row, place in enumerate(chunk):
                label, rival = labels[place], np.argmin(steps[:, place])
                amount = steps[label, place]
                self.coef[label, window[place]] += amount
                self.coef[rival, window[place]] -= amount
                engine.add_row(
                    self.maintained,
                    label,
                    rival,
                    self.flat,
                    row * self.row_stride,
                    self.kernel_stride,
                    amount,
                )

    # ---------------------------------------------------------------- what a run has reached

    @property
    def n_updates(self):
        """Updates so far."""
        return int(self.counts[engine.N_UPDATES])

    @property
    def scale(self):
        """Lazy factor on coefficients and block norms (1 in UFO-MKL, whose sums are never rescaled)."""
        return self.reals[engine.SCALE]

    @property
    def n_support(self):
        """Samples with a coefficient."""
        return int(np.count_nonzero(self.coef.any(axis=0)))

    def point(self):
        """The present primal point.

        Returns
        -------
        dual_coef : ndarray, shape (n_samples, n_classes)
            Coefficients of the dual vector at its true scale.
        kernel_weights : ndarray, shape (n_kernels,)
        """
        coef = self.coef.T.copy()
        norms = np.sqrt(np.maximum(0.0, self.norms_sq))
        if self.rule == DUAL_AVERAGING:
            step = max(1.0, self.reals[engine.STEP])
            weights = np.zeros_like(norms)
            link_weights(norms, self.params[engine.ALPHA] * step, self.problem.q, weights)
            return coef, weights / (step * self.problem.regularization)
        weights = np.zeros_like(norms)
        link_weights(norms, 0.0, self.problem.q, weights)
        return coef * self.scale, weights / self.problem.q

    def scores_now(self, dual_coef, kernel_weights):
        """Class scores of all training samples at the present point."""
        if self.maintained.size:
            return (
                self.problem.factor
                * self.scale
                * np.einsum(
                    "cji,j->ic", self.maintained, kernel_weights.astype(self.bank.dtype), optimize=True
                )
            )
        return self.problem.training_scores(dual_coef, kernel_weights)

    def objective(self):
        """Objective at the present point, with the mean loss."""
        coef, weights = self.point()
        norms = weights * self.scale * np.sqrt(np.maximum(0.0, self.norms_sq))
        loss = self.problem.mean_loss(self.scores_now(coef, weights))
        return self.problem.regularizer(norms) + loss, loss, float(group_norm(norms, self.problem.p))

    def bound(self):
        """Lower bound of the optimum from the coefficients of the run (ALGORITHMS, certificate).

        Over whole permutations UFO's update counts per epoch are a feasible dual point; OBSCURE's coefficients times
        ``lambda n / q`` are one after clipping.
        """
        n = self.bank.n_samples
        if self.rule == DUAL_AVERAGING:
            factor = n / max(1.0, self.reals[engine.STEP])
        else:
            factor = self.scale * self.problem.regularization * n / self.problem.q
        value, _, _ = self.problem.dual_bound(
            self.coef.T * factor, np.maximum(0.0, self.norms_sq) * factor**2
        )
        return value
