r"""Compiled steps of a visit.

Averaging (thesis section 3.3) is nearly free. With the change :math:`\delta_s` of the coefficients at visit
s, and the sum :math:`S_s` of the weights of the visits up to it,

.. math:: \sum_{t=1}^T (S_t - S_{t-1}) A_t = S_T A_T - \sum_s S_{s-1}\, \delta_s ,

so a second array, `delayed`, changes only where the coefficients do.
"""

from typing import NamedTuple

import numpy as np

from cuelearn.checkpoint import Changing
from cuelearn.core.compiled import inner
from cuelearn.core.losses import competitor

__all__ = ["Hypothesis", "Log", "Trace", "dot", "move", "open_log", "predict", "write_log"]

#: Indices of the counters.
SIZE, SEEN, N_UPDATES, N_PROJECTED, N_LOG, N_LOG_VALUES, INEXACT, REFACTOR_FROM = range(8)


class Log(NamedTuple):
    """The updates of one batch, if requested.

    In a row (visit, label, rival, start, length, slot) of `entries`, coefficients 0 .. length - 1 of `label`
    grew by ``values[start : start + length]`` or, if length is 0, that at `slot` by the sample's weight;
    those of `rival` fell.
    """

    entries: np.ndarray
    values: np.ndarray


class Trace(NamedTuple):
    scores: np.ndarray  # (n, n_classes), before each update
    sizes: np.ndarray  # (n,), of the support set after each visit
    log: Log | None = None
    sums_before: np.ndarray | None = None  # (n, n_classes, d): sum of the hyperplanes before each visit


def open_log(counts, n_visits, width, wanted):
    """An empty log with room for `width` coefficients per visit."""
    counts[N_LOG] = counts[N_LOG_VALUES] = 0
    n = 0
    if wanted:
        n = n_visits
    return Log(np.empty((n, 6), dtype=np.int64), np.empty(n * width))


@inner
def write_log(log, counts, t, label, rival, step, values, length, slot):
    """Log an update by ``step * values[:length]``."""
    if log.entries.shape[0] == 0:
        return
    start = counts[N_LOG_VALUES]
    entry = log.entries[counts[N_LOG]]
    entry[0] = t
    entry[1] = label
    entry[2] = rival
    entry[3] = start
    entry[4] = length
    entry[5] = slot
    for i in range(length):
        log.values[start + i] = step * values[i]
    counts[N_LOG] += 1
    counts[N_LOG_VALUES] += length


@inner(fastmath={"reassoc", "contract"})
def dot(a, b, n):
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@inner
def predict(coef, x, n, label, out):
    """Write class scores into `out`; returns the best wrong class and the margin."""
    for c in range(out.shape[0]):
        out[c] = dot(coef[c], x, n)
    return competitor(out, label)


@inner
def move(hypothesis, log, t, label, rival, step, x, n, earlier):
    """Add ``step * x[:n]`` to the coefficients of `label`, subtract it from `rival`; `earlier` is the weight
    of earlier visits."""
    counts = hypothesis.counts
    coef = hypothesis.coef
    delayed = hypothesis.delayed
    for i in range(n):
        change = step * x[i]
        coef[label, i] += change
        coef[rival, i] -= change
        delayed[label, i] += earlier * change
        delayed[rival, i] -= earlier * change
    counts[N_UPDATES] += 1
    write_log(log, counts, t, label, rival, step, x, n, -1)


class Hypothesis(Changing):
    """Coefficients, what their mean needs, and counters."""

    def __init__(self, n_classes, n_columns):
        self.weight = 0.0  # of all visits
        self.counts = np.zeros(8, dtype=np.int64)
        self.coef = np.zeros((n_classes, n_columns))
        self.delayed = np.zeros((n_classes, n_columns))

    @property
    def size(self):
        return int(self.counts[SIZE])

    @property
    def width(self):
        return self.coef.shape[1]

    def weigh(self, weights):
        """Count weights of visits; returns the weight before each."""
        before = self.weight + np.concatenate([[0.0], np.cumsum(weights)])
        self.weight = float(before[-1])
        return before[:-1]

    def coefficients(self, average):
        """Of the last hypothesis or the mean; shape (n_classes, width)."""
        last = self.coef[:, : self.width]
        if average and self.weight:
            return last - self.delayed[:, : self.width] / self.weight
        return last.copy()

    def _state(self):
        return dict(vars(self))

    def __getstate__(self):
        """For pickle: without spare room."""
        return self._state()

    @classmethod
    def _from_state(cls, state):
        new = cls.__new__(cls)
        vars(new).update(state)
        return new
