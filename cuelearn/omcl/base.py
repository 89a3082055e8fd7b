r"""Base of the chapter's estimators, and compiled steps of a visit.

Averaging (thesis section 3.3) is nearly free. With the change :math:`\delta_s` of the coefficients at visit
s, and the sum :math:`S_s` of the weights of the visits up to it,

.. math:: \sum_{t=1}^T (S_t - S_{t-1}) A_t = S_T A_T - \sum_s S_{s-1}\, \delta_s ,

so a second array, `delayed`, changes only where the coefficients do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from cuelearn.checkpoint import Changing
from cuelearn.compiled import inner
from cuelearn.core import docs
from cuelearn.core.estimator import ScoreClassifier, parameters, validated
from cuelearn.core.formulas import competitor, margins
from cuelearn.core.run import Record, Run
from cuelearn.core.samples import (
    FLOATS,
    InputLike,
    as_generator,
    classes_and_labels,
    classes_of_stream,
    labels_of,
    labels_within,
    validate_samples,
    visit_weights,
    warn_if_sorted,
)
from cuelearn.kernels.features import FeatureRows, taken
from cuelearn.kernels.matrices import check_batch, indefinite_batch, warn_indefinite
from cuelearn.kernels.specifications import as_samples, check_size, is_frame
from cuelearn.kernels.stack import new_kernels
from cuelearn.kernels.types import ArrayLike, Callback, RandomState, SampleWeight

#: Indices of the counters.
SIZE, SEEN, N_UPDATES, N_PROJECTED, N_LOG, N_LOG_VALUES, INEXACT, REFACTOR_FROM = range(8)


class Log(NamedTuple):
    """The updates of one batch, if requested.

    By an entry (visit, label, rival, start, length, slot) coefficients 0 .. length - 1 of `label` grew by
    ``values[start : start + length]`` or, if length is 0, that at `slot` by the sample's weight; those of
    `rival` fell.
    """

    entries: np.ndarray
    values: np.ndarray


class Trace(NamedTuple):
    scores: np.ndarray  # (n, n_classes), before each update
    sizes: np.ndarray  # (n,), of the support set after each visit
    log: Log | None = None
    sums_before: np.ndarray | None = None  # (n, n_classes, d): sum of the hyperplanes before each visit
    rows: FeatureRows | None = None  # explicit features: the log's values are their factors


def open_log(counts, n_visits, width, wanted):
    """An empty log with room for `width` coefficients per visit."""
    counts[N_LOG] = counts[N_LOG_VALUES] = 0
    n = n_visits if wanted else 0
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
    """Add ``step * x[:n]`` to `label`, subtract it from `rival`; `earlier` is the weight of visits before."""
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
        """Add weights of visits; returns the weight before each."""
        before = self.weight + np.concatenate([[0.0], np.cumsum(weights)])
        self.weight = float(before[-1])
        return before[:-1]

    def coefficients(self, average):
        """Of the last hypothesis or the mean; shape (n_classes, width)."""
        coef = self.coef[:, : self.width].copy()
        if average and self.weight:
            coef -= self.delayed[:, : self.width] / self.weight
        return coef

    def _state(self):
        return dict(vars(self))

    def __getstate__(self):  # for pickle: without spare room
        return self._state()

    @classmethod
    def _from_state(cls, state):
        new = cls.__new__(cls)
        vars(new).update(state)
        return new


CHUNK = 256  # samples between updates of history, callback and progress

TEXTS = {
    "kernel": (
        'Kernel, str, callable or None, or "precomputed"',
        "One of `cuelearn.kernels`, a name of its `KERNELS` or a function f(A, B); None is ``RBF()``, "
        "scaled by the mean squared distance of the first batch.",
    ),
    "eta": (
        "float >= 0",
        r"Largest residual :math:`\Delta` of a projection, on the scale of :math:`\sqrt{k(x,x)}`; from "
        r":math:`\sqrt 2` on, a normalised kernel has a single support sample. With 0 the Projectron "
        "predicts as the Perceptron.",
    ),
    "cues": (
        "list of (name, learner, columns), or None",
        "Learners of this chapter or others with `partial_fit` and `decision_function` (or "
        "`predict_proba`); columns as in ColumnTransformer. For precomputed kernels X has shape (F, n, "
        "n_seen), and `columns` is the kernel's number. None is one `ProjectronPlusPlus` on all columns.",
    ),
    "features": ("FeatureMap or None", "Its features replace the columns, at length 1 with `normalize`."),
    "average": (
        "bool",
        "Predict with the mean of all hypotheses instead of the last; may be changed after training.",
    ),
    "record": ("bool", "Keep mistake, loss and support size of every visit (14 bytes each)."),
    "callback": (
        "callable(estimator, step)",
        f"Called by `fit` after every {CHUNK} visits; a true return value ends the run.",
    ),
    "sample_weight": (
        "array-like of float >= 0, shape (n,), or None",
        "Factors on the updates (in `PassiveAggressive`, `ProjectronPlusPlus` on the longest), and on "
        "the hypotheses in their mean. Samples of weight 0 are only predicted and recorded. Weight 2 "
        "differs from two visits, the second of which sees the first update.",
    ),
    "dual_coef_": ("ndarray, shape (n_support, n_classes)", "Averaged, or of the last hypothesis."),
    "support_": ("ndarray of int", "Visits at which the support samples joined."),
    "support_vectors_": ("ndarray, shape (n_support, n_features)", ""),
    "coef_": ("ndarray, shape (n_classes, n_features)", "Averaged, or of the last hypothesis."),
    "n_projected_": ("int", "Updates without a new support sample."),
    "inverse_error_": ("float", "Largest entry of :math:`|K K^{-1} - I|`; costs O(S^3)."),
    "n_seen_": ("int", "Visits."),
    "n_mistakes_": ("int", "Visits that were mistakes; a tie is one."),
    "cumulative_loss_": ("float", "Sum of the multiclass hinge losses before each update."),
    "history_": ("DataFrame", "Of `fit`: step, epoch, seconds, n_updates, n_support, online_error."),
    "online_losses_": ("ndarray, shape (n_visits,)", "Multiclass hinge losses before the updates."),
    "support_sizes_": ("ndarray, shape (n_visits,)", "Support set after each visit, of all cues."),
}
GROUPS = {
    "run": "$n_epochs $shuffle $record $random_state $callback $verbose",
    "visits": "$classes_ $n_seen_ $n_updates_ $n_mistakes_ $cumulative_loss_ $history_ $online_errors_ "
    "$online_losses_",
}


documented = functools.partial(docs.documented, texts=TEXTS, groups=GROUPS)


#: Recorded at every visit.
RECORDED = [("mistake", bool), ("queried", bool), ("loss", float), ("n_support", np.int32)]


@parameters
class OnlineClassifier(ScoreClassifier):
    """Base of the online learners.

    Subclasses implement ``_open(X, n_classes)``, which restarts with the first batch; ``_observe(X, labels,
    weights)``, which visits a batch and returns its `Trace`; ``_check_batch(X)``, which raises its errors;
    ``_scores(X, average)``; ``_n_support()`` and ``_count_updates()``.
    """

    _parameter_constraints = {"average": ["boolean"], "record": ["boolean"]}
    _learnt = ()  # saved attributes without a trailing "_"
    _kernel_dims = 2  # of precomputed X: 2 for a matrix, 3 for a stack
    _doubted = False  # whether an indefinite kernel was seen
    _map = None  # the `FeatureMap` of a learner of one cue

    average: bool = True
    n_epochs: int = 1
    shuffle: bool = False
    record: bool = True
    random_state: RandomState = None
    callback: Callback = None
    verbose: bool = False

    def _is_precomputed(self):
        return False

    def _explicit(self):
        """Whether all cues are explicit features."""
        return self._map is not None

    def _n_labels(self):
        """Number of visits with a label."""
        return self.n_seen_

    @documented
    @validated
    def fit(self, X: InputLike, y: ArrayLike, sample_weight: SampleWeight = None) -> Self:
        """Train from scratch; the first pass keeps the given order unless `shuffle` is set.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or (n, n) for precomputed kernels
        y : array-like, shape (n,)
        $sample_weight

        Returns
        -------
        self
        """
        X, y = self._check_samples(X, y, first=True)
        classes, labels = classes_and_labels(y)
        weights = self._check_weights(sample_weight, labels.size)
        if self._is_precomputed() and (self.n_epochs > 1 or self.shuffle):
            raise ValueError(
                "n_epochs must be 1 and shuffle False with precomputed kernels: permute rows and columns of "
                "X instead"
            )
        self._start(X, classes)
        self._warn_once(X)
        warn_if_sorted(self, labels, self.n_epochs)
        rng = as_generator(self.random_state)

        def state():
            self.history_: pd.DataFrame = run.history()
            return self

        run = Run(self.callback, verbose=self.verbose)
        with run.under_bar(type(self).__name__, labels.size * self.n_epochs, "sample"):
            for epoch, part in self._batches(labels.size, rng):
                self._learn(self._rows_of(X, part), labels[part], weights[part])
                run.pause()
                row = {"epoch": epoch, "n_updates": self.n_updates_, "n_support": self._n_support()}
                row["online_error"] = self.n_mistakes_ / self._n_labels()
                if run.end(self.n_seen_, state, done=labels[part].size, **row):
                    break
        return state()

    def _check_weights(self, sample_weight, n_samples, stream=False):
        return visit_weights(sample_weight, n_samples, stream)

    def _batches(self, n, rng):
        """Epoch and samples of every batch: slices in the given order, else indices."""
        for epoch in range(1, self.n_epochs + 1):
            order = None
            if self.shuffle or epoch > 1:
                order = rng.permutation(n)
            for part in gen_batches(n, CHUNK):
                yield epoch, part if order is None else order[part]

    def _rows_of(self, X, part, seen=0):
        """Part of X; of precomputed kernels the columns up to its end."""
        if self._is_precomputed():
            return X[..., part, : seen + part.stop]
        return taken(X, part)

    @documented
    @validated
    def partial_fit(
        self,
        X: InputLike,
        y: ArrayLike | Callable[[int], Any],
        classes: ArrayLike | None = None,
        sample_weight: SampleWeight = None,
    ) -> Self:
        """Continue training on a batch of any size; a rejected batch changes nothing.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
            For precomputed kernels (n, n_seen + n), with all samples seen so far, in order, and the batch.
        y : array-like, shape (n,)
            `OMCL` with a `query` also takes a function of the position in the batch, called for requested
            labels only; if it raises, the visits before remain.
        classes : array-like, optional
            All classes; needed at the first call.
        $sample_weight

        Returns
        -------
        self
        """
        X, labels, weights = self._admit_batch(X, y, classes, sample_weight)
        seen = self.n_seen_
        for part in gen_batches(labels.size, CHUNK):  # bounded memory for any batch
            self._learn(self._rows_of(X, part, seen), labels[part], weights[part])
        return self

    def _admit_batch(self, X, y, classes, sample_weight):
        known, first = classes_of_stream(self, classes)
        X, y = self._check_samples(X, y, first)
        labels = labels_within(y, known)
        weights = self._check_weights(sample_weight, labels.size, stream=True)
        if first:
            self._start(X, known)
        else:
            self._check_batch(X)
        self._warn_once(X)
        return X, labels, weights

    def _check_samples(self, X, y, first):
        if not self._is_precomputed():
            given = as_samples(X)
            X, y = self._validated(given, y, first=first)
            if first:  # later `labels_within` checks
                labels_of(self, y, len(y))
                self._set_columns(given, X)
            return self._usable(given, X), y
        X = self._check_precomputed(X)
        y = labels_of(self, y, X.shape[-2])
        check_batch(X, 0 if first else self.n_seen_)
        if first:
            self._set_columns(X, X)
        return X, y

    def _validated(self, given, *y, first):
        options = {"dtype": FLOATS, "reset": first, "order": "C"}
        if self._explicit():
            options["accept_sparse"] = "csr"
        return validate_samples(self, given, *y, used=lambda: self._used(first), **options)

    def _usable(self, given, X):
        """The validated samples X, or the DataFrame if a cue of it is of texts."""
        if issparse(X):  # the features are checked
            return X
        X = self._within_range(X)
        texts = [getattr(kernel, "takes_text", False) for _, kernel, _ in self._used(False) or ()]
        return given if any(texts) and is_frame(given) else X

    def _set_columns(self, given, X):
        """Hook for the columns of each cue."""

    def _used(self, first):
        """(name, `FeatureMap` or None, columns) of all cues; None for all columns."""
        if self._map is None:
            return None
        return [("features", self._map, slice(None))]

    def _warn_once(self, X):
        """Warn at the first batch on which a kernel is indefinite."""
        if not self._doubted:
            self._doubted = warn_indefinite(self._doubts(X))

    def _doubts(self, X):
        """{name: how} of kernels that are indefinite on the next batch."""
        if self._is_precomputed():
            return indefinite_batch(X, self.n_seen_)
        return {}

    def _check_precomputed(self, X):
        if self._kernel_dims == 3:
            return new_kernels(X, "n_kernels", "n_seen")
        return new_kernels(X, 1, "n_seen")[0]

    def _start(self, X, classes):
        self._open(X, classes.size)
        self.classes_ = classes
        self.n_seen_: int = 0
        self.n_updates_: int = 0
        self.n_mistakes_: int = 0
        self._doubted = False
        self.cumulative_loss_: float = 0.0
        self._start_record()
        vars(self).pop("history_", None)

    def _start_record(self):
        self._record = Record(RECORDED) if self.record else None

    def _learn(self, X, labels, weights, **wanted):
        """Observe and record a batch; returns its `Trace`."""
        trace = self._observe(X, labels, weights, **wanted)
        margin = margins(trace.scores, labels)
        losses = np.maximum(0.0, 1.0 - margin)
        self.n_seen_ += labels.size
        self.n_mistakes_ += int(np.sum(margin <= 0.0))
        self.cumulative_loss_ += float(losses.sum())
        self.n_updates_ = self._count_updates()
        if self._record is not None:
            values = {"mistake": margin <= 0.0, "loss": losses, "n_support": trace.sizes}
            self._record.add(labels.size, queried=True, **values)
        return trace

    def _skip(self, X, weight):
        """A visit without a label: its hypothesis, unchanged, is part of the mean."""
        self.n_seen_ += 1
        if self._record is not None:
            self._record.add(1, mistake=False, queried=False, loss=0.0, n_support=self._n_support())

    def _recorded(self, name):
        """One of `RECORDED`."""
        check_is_fitted(self, "classes_")
        if self._record is None:
            raise AttributeError(f"{type(self).__name__} keeps no sequences with record=False")
        return self._record[name]

    @property
    def online_errors_(self) -> np.ndarray:
        return self._recorded("mistake")

    @property
    def online_losses_(self) -> np.ndarray:
        return self._recorded("loss")

    @property
    def support_sizes_(self) -> np.ndarray:
        return self._recorded("n_support")

    def _check_new(self, X):
        check_is_fitted(self, "classes_")
        if self._is_precomputed():
            return self._check_precomputed(X)
        given = as_samples(X)
        return self._usable(given, self._validated(given, first=False))

    def _within_range(self, X):
        return check_size(X, np.float64)

    def _class_scores(self, X):
        return self._scores(self._check_new(X), self.average)

    def _score_ones(self):
        if not self._is_precomputed():
            return super()._score_ones()
        n_kernels = 1 + max(getattr(self, "_columns", [0]))
        return self.decision_function(np.ones((n_kernels, 1, self.n_seen_)))

    def _fitted_state(self):
        """Without the records of visits."""
        return super()._fitted_state() | {name: getattr(self, name) for name in self._learnt}

    def _set_fitted_state(self, state):
        super()._set_fitted_state(state)
        self._start_record()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._explicit()
        if self._kernel_dims == 3 and self._is_precomputed():
            tags.input_tags.two_d_array = False
            tags.input_tags.three_d_array = True
        return tags
