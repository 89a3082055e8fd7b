"""What the online learners remember between samples, and the calls of the compiled passes on it."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from cuelearn.omcl import engine
from cuelearn.omcl.engine import (
    INEXACT,
    N_COUNTS,
    N_LOG,
    N_LOG_VALUES,
    N_MISTAKES,
    N_PROJECTED,
    N_UPDATES,
    REFACTOR_FROM,
    SEEN,
    SIZE,
)

__all__ = ["KernelState", "LinearState", "Trace"]


class Trace(NamedTuple):
    """What happened at the visits of one batch.

    Attributes
    ----------
    scores : ndarray of float64, shape (n, n_classes)
        Before each update.
    sizes : ndarray of int64, shape (n,)
        Size of the support set after each visit; 0 for linear learners.
    log, log_values : ndarray
        Every update, see `engine.kernel_pass`; empty unless asked for.
    n_log : int
    sums_before : ndarray, shape (n, n_classes, d) or None
        Of linear learners, when asked for: the sum of all hyperplanes before each visit.
    """

    scores: np.ndarray
    sizes: np.ndarray
    log: np.ndarray
    log_values: np.ndarray
    n_log: int
    sums_before: np.ndarray | None = None


def _open_log(counts, n, values_per_visit, wanted):
    counts[N_LOG] = counts[N_LOG_VALUES] = 0
    if not wanted:
        return np.empty((0, 6), dtype=np.int64), np.empty(0)
    return np.empty((n, 6), dtype=np.int64), np.empty(n * max(1, values_per_visit))


class _State:
    """Coefficients, their average, and counters."""

    n_classes: int

    @property
    def seen(self):
        """Samples seen."""
        return int(self.counts[SEEN])

    @property
    def n_updates(self):
        """Visits that changed the coefficients."""
        return int(self.counts[N_UPDATES])

    @property
    def n_mistakes(self):
        """Visits whose margin was not positive."""
        return int(self.counts[N_MISTAKES])

    def hypothesis(self, average):
        """Coefficients of the last hypothesis, or of the mean of all of them; shape (n_classes, size or d)."""
        last = self.coef[:, : self.width]
        return last - self.delayed[:, : self.width] / self.seen if average and self.seen else last.copy()


class KernelState(_State):
    """Expansion over a support set: Perceptron, Projectron, Projectron++.

    Parameters
    ----------
    rule : int
        Of `engine`.
    n_classes : int
    eta : float

    Attributes
    ----------
    coef, delayed : ndarray of float64, shape (n_classes, capacity)
    gram, root : ndarray of float64, shape (capacity, capacity), or empty for the Perceptron
    n_refactored : int
        How often the inverse was computed afresh.
    """

    def __init__(self, rule, n_classes, eta=0.0):
        self.rule, self.n_classes, self.eta = rule, n_classes, eta
        self.counts = np.zeros(N_COUNTS, dtype=np.int64)
        self.n_refactored = 0
        self.coef, self.delayed = np.zeros((n_classes, 0)), np.zeros((n_classes, 0))
        self.gram, self.root = np.zeros((0, 0)), np.zeros((0, 0))

    @property
    def size(self):
        """Size of the support set."""
        return int(self.counts[SIZE])

    width = size

    @property
    def n_projected(self):
        """Updates that were projected on the support set."""
        return int(self.counts[N_PROJECTED])

    def _reserve(self, needed):
        have, size = self.coef.shape[1], self.size
        if needed <= have:
            return
        # the matrices grow by half at most: doubling would hold four times the memory in use
        capacity = max(needed, have + have // 2, 64)

        for name in ("coef", "delayed"):
            new = np.zeros((self.n_classes, capacity))
            new[:, :size] = getattr(self, name)[:, :size]
            setattr(self, name, new)
        if self.rule != engine.PERCEPTRON:
            for name in ("gram", "root"):
                new = np.zeros((capacity, capacity))
                new[:size, :size] = getattr(self, name)[:size, :size]
                setattr(self, name, new)

    def learn(self, rows, diagonal, labels, columns, places, log=False):
        """Visit the samples of a batch in order.

        Parameters
        ----------
        rows, diagonal, columns, places
            From `SupportSet.batch`.
        labels : ndarray of int64, shape (n,)
        log : bool
            Record every update.

        Returns
        -------
        trace : Trace
        chosen : ndarray of int64
            Rows of the batch that joined the support set.
        """
        n, size = rows.shape[0], self.size
        self._reserve(size + n)
        all_columns = np.empty(self.coef.shape[1], dtype=np.int64)
        all_columns[:size] = columns
        scores, sizes = np.empty((n, self.n_classes)), np.empty(n, dtype=np.int64)
        updates, values = _open_log(self.counts, n, size + n, log)
        position = 0
        while position < n:
            position = engine.kernel_pass(
                self.rule,
                rows,
                diagonal,
                labels,
                places,
                position,
                all_columns,
                self.coef,
                self.delayed,
                self.gram,
                self.root,
                self.eta,
                scores,
                sizes,
                self.counts,
                updates,
                values,
            )
            if self.counts[INEXACT]:
                self.refactor()
        chosen = all_columns[size : self.size] - (places[0] if n else 0)
        return Trace(scores, sizes, updates, values, int(self.counts[N_LOG])), chosen

    @property
    def inverse(self):
        """Inverse of the support set's kernel matrix, shape (size, size)."""
        root = self.root[: self.size, : self.size]
        return root.T @ root

    def refactor(self):
        """Compute the factor of the inverse afresh."""
        size = self.size
        factor, failed = dpotrf(self.gram[:size, :size], lower=1)
        if not failed:  # else numerically dependent samples: the factor grown row by row is the better one
            self.root[:size, :size] = np.tril(dtrtri(factor, lower=1)[0])
        self.counts[INEXACT] = 0
        self.counts[REFACTOR_FROM] = size + max(
            8, size // 8
        )  # an ill-conditioned matrix would ask for it at every sample
        self.n_refactored += not failed

    def inverse_error(self):
        """Largest entry of ``|K K^-1 - I|`` over the support set; 0 when empty."""
        size = self.size
        if size == 0 or self.rule == engine.PERCEPTRON:
            return 0.0
        return float(np.abs(self.gram[:size, :size] @ self.inverse - np.eye(size)).max())

    def arrays(self):
        """What has to be stored to go on from here."""
        size = self.size
        held = {"coef": self.coef[:, :size], "delayed": self.delayed[:, :size], "counts": self.counts}
        if self.rule != engine.PERCEPTRON:
            held |= {"gram": self.gram[:size, :size], "root": self.root[:size, :size]}
        return held

    def restore(self, held):
        """Take over what `arrays` gave."""
        for name in self.arrays():
            setattr(self, name, np.ascontiguousarray(held[name]))


class LinearState(_State):
    """Hyperplanes: Passive-Aggressive and gradient steps.

    Parameters
    ----------
    rule : int
    n_classes, n_features : int
    aggressiveness : float
    """

    size = 0
    n_projected = 0

    def __init__(self, rule, n_classes, n_features, aggressiveness=math.inf):
        self.rule, self.n_classes, self.width, self.aggressiveness = (
            rule,
            n_classes,
            n_features,
            aggressiveness,
        )
        self.counts = np.zeros(N_COUNTS, dtype=np.int64)
        self.coef, self.delayed = np.zeros((n_classes, n_features)), np.zeros((n_classes, n_features))
        self.sums = np.zeros((n_classes, n_features))

    def learn(self, X, labels, log=False, sums=False):
        """Visit the samples of a batch in order.

        Parameters
        ----------
        X : ndarray of float64, shape (n, d), C-contiguous
        labels : ndarray of int64, shape (n,)
        log : bool
        sums : bool
            Hand over :math:`V_{t-1}`, the sum of all hyperplanes before each visit.

        Returns
        -------
        Trace
        """
        n = X.shape[0]
        scores = np.empty((n, self.n_classes))
        updates, values = _open_log(self.counts, n, self.width, log)
        before = np.empty((n if sums else 0, *self.coef.shape))
        engine.linear_pass(
            self.rule,
            X,
            labels,
            self.aggressiveness,
            self.coef,
            self.delayed,
            self.sums,
            scores,
            self.counts,
            updates,
            values,
            before,
        )
        return Trace(scores, np.zeros(n, dtype=np.int64), updates, values, int(self.counts[N_LOG]), before)

    def arrays(self):
        """What has to be stored to go on from here."""
        return {"coef": self.coef, "delayed": self.delayed, "sums": self.sums, "counts": self.counts}

    restore = KernelState.restore
