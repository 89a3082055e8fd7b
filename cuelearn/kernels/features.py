"""Explicit features of many cues, computed in parts, for solvers that keep no kernel rows."""

from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import NamedTuple

import joblib
import numpy as np
from scipy.sparse import csr_array, diags_array, hstack, issparse, vstack

from cuelearn.compiled import njit
from cuelearn.expect import expect_shape
from cuelearn.kernels import tiles
from cuelearn.kernels.fitted import FittedKernels, spaced
from cuelearn.kernels.rows import full_dot, gathered_dot
from cuelearn.kernels.specifications import FeatureMap, Linear, check_kernels, check_samples, is_frame

# samples whose features are computed at a time, and in one thread
CHUNK = 2048
TASK_ROWS = 1024
# features of a cue up to which all their products are summed, not only squares
WIDEST = 2000


def has_only_features(kernels):
    """Whether blocks of weights can represent a model: of feature maps, and `Linear` beside them."""
    if kernels is None or isinstance(kernels, str):
        return False
    kinds = [type(kernel) for _, kernel, _ in check_kernels(kernels)]
    return FeatureMap in kinds and set(kinds) <= {FeatureMap, Linear}


class FeatureRows(NamedTuple):
    """Features: sample i has those of cue f in ``flat[begin[r, f] : begin[r, f + 1]]``, ``r = place[i]``;
    `columns` has their places among all features, and is empty if no row leaves any out."""

    flat: np.ndarray
    begin: np.ndarray
    columns: np.ndarray
    place: np.ndarray

    @classmethod
    def of(cls, features, starts):
        """Of an array or csr_array; cue f begins at column ``starts[f]``."""
        n, width = features.shape
        places = np.arange(n)
        if not issparse(features):
            return cls(features.reshape(-1), places[:, None] * width + starts, np.zeros(0, np.uint32), places)
        parts = [features[:, first:end] for first, end in zip(starts, starts[1:], strict=False)]
        counts = [features.indptr[:-1], *(np.diff(part.indptr) for part in parts)]
        begin = np.cumsum(np.stack(counts, axis=1), axis=1, dtype=np.int64)
        return cls(features.data, begin, features.indices.astype(np.uint32), places)


@njit(cache=True)
def block_product(rows, row, f, block):
    """Product of the features of cue f with their part of a class's weights (n_features,)."""
    begin = rows.begin[row, f]
    end = rows.begin[row, f + 1]
    part = rows.flat[begin:end]
    if rows.columns.shape[0] > 0:
        return gathered_dot(block, rows.columns[begin:end], part, part.shape[0])
    first = rows.begin[row, 0]
    return full_dot(part, block[begin - first : end - first])


@njit(cache=True)
def row_scores(rows, row, weights, blocks, out):
    """Class scores of a row, for weights of the cues and blocks (n_classes, n_features)."""
    out[:] = 0.0
    for f in range(weights.shape[0]):
        if weights[f] != 0.0:
            for c in range(out.shape[0]):
                out[c] += weights[f] * block_product(rows, row, f, blocks[c])


@njit(cache=True)
def score_rows(rows, weights, blocks):
    """`row_scores` of all samples, (n, n_classes)."""
    out = np.empty((rows.place.shape[0], blocks.shape[0]))
    for i in range(out.shape[0]):
        row_scores(rows, rows.place[i], weights, blocks, out[i])
    return out


@njit(cache=True, fastmath=True)
def add_row_to(rows, row, amount, block):
    """``block += amount * features`` of a row."""
    first = rows.begin[row, 0]
    source = rows.flat[first : rows.begin[row, rows.begin.shape[1] - 1]]
    columns = rows.columns[first : first + source.shape[0]]
    if columns.shape[0] == 0:
        for k in range(source.shape[0]):
            block[k] += amount * source[k]
    for k in range(columns.shape[0]):
        block[columns[k]] += amount * source[k]


@njit(cache=True)
def add_rows(rows, coef, blocks):
    """``blocks[c] += sum_i coef[i, c] * features_i``."""
    for i in range(coef.shape[0]):
        for c in range(coef.shape[1]):
            if coef[i, c] != 0.0:
                add_row_to(rows, rows.place[i], coef[i, c], blocks[c])


@njit(cache=True)
def own_products(rows):
    """Squared lengths of the features of each cue, (n_cues, n)."""
    out = np.empty((rows.begin.shape[1] - 1, rows.place.shape[0]))
    for f in range(out.shape[0]):
        for i in range(out.shape[1]):
            part = rows.flat[rows.begin[rows.place[i], f] : rows.begin[rows.place[i], f + 1]]
            out[f, i] = full_dot(part, part)
    return out


def are_batches(X):
    """Whether X is an iterator, a function, or an iterable of pairs (X, y)."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and isinstance(X[0], tuple) and len(X[0]) == 2 and np.ndim(X[0][0]) == 2
    array = hasattr(X, "shape") or hasattr(X, "__array__") or isinstance(X, (str, dict, set))
    return not array and (callable(X) or hasattr(X, "__iter__"))


class Batches:
    """Samples in batches, read once for their `labels`, and again for every pass.

    `source` is as in `fit`; `target` is the column of labels of data frames.
    """

    def __init__(self, source, target=None):
        self._source = source
        self._target = target
        self._folder = None
        if hasattr(source, "__next__"):
            self._folder = TemporaryDirectory(prefix="cuelearn-")
            for number, batch in enumerate(source):
                joblib.dump(batch, Path(self._folder.name) / f"{number:09d}")
        labels = []
        for X, y in self._pairs():
            if not labels:
                self.first = X
            labels.append(expect_shape("y of a batch", np.asarray(y), (X.shape[0],)))
        if not labels:
            raise ValueError("X must hold at least one batch, got none")
        self.labels = np.concatenate(labels)
        self.ends = np.cumsum([y.size for y in labels])
        self.shape = self.labels.size, self.first.shape[1]

    def _pairs(self):
        source = self._source
        if self._folder is not None:
            source = map(joblib.load, sorted(Path(self._folder.name).iterdir()))
        elif callable(source):
            source = source()
        for batch in source:
            if self._target is not None and is_frame(batch):
                batch = batch.drop(columns=self._target), batch[self._target]
            if not isinstance(batch, (tuple, list)) or len(batch) != 2:
                kind = type(batch).__name__
                raise ValueError(f"X must hold pairs (X, y), or DataFrames with y=column name, got a {kind}")
            yield check_samples(batch[0])[0], batch[1]

    def parts(self):
        """Number of the first sample, and samples, of each batch."""
        first = 0
        for X, y in self._pairs():
            end = first + X.shape[0]
            if not np.array_equal(y, self.labels[first:end]):
                break
            yield first, X
            first = end
        if first != self.labels.size:
            raise ValueError("X must give the same batches whenever it is read")


def as_batches(X):
    return X if isinstance(X, Batches) else Batches([(X, np.zeros(X.shape[0]))])


def scaled(columns, scaling):
    """Columns times a matrix, or a factor each; sparse ones have factors."""
    if issparse(columns):
        return columns @ diags_array(scaling)
    if scaling.ndim == 2:
        return columns @ scaling
    return columns * scaling


def taken(X, index):
    return X.iloc[index] if is_frame(X) else X[index]


class FeatureBank:
    """Features of F cues on n training samples, per cue of length 1 with `normalize`.

    X is an array, DataFrame, csr_array or `Batches`. Features that take more than `memory` bytes in float32
    are computed in each pass.
    """

    dtype = np.dtype(np.float32)
    indefinite = {}
    resident = True  # no kernel rows are computed
    # per cue a matrix, or a factor per feature, that its features are multiplied by
    scaling = None

    def __init__(self, kernels, X, *, normalize=True, memory=2e9, missing="error"):
        self.memory = memory
        triples = check_kernels(kernels)
        self.names = [name for name, _, _ in triples]
        self._source = as_batches(X)
        first = self._source.first
        chosen = taken(first, spaced(first.shape[0]))
        fitted = FittedKernels(triples, chosen, normalize, self.dtype, missing == "zero")
        self._fitted = fitted.restrict(np.arange(0))
        self._set(self._source)

    def _set(self, source):
        self._source = source
        self.n_samples = 0 if source is None else source.shape[0]
        self.held = None  # features of samples, those of sample i in row place[i] unless that is -1
        fitted = self._fitted
        self.n_kernels = len(fitted.forms)
        self._cues = [fitted.roots[form.root].cue for form in fitted.forms]
        rows = [fitted.train.arrays[cue]["plain"].values for cue in self._cues]
        self.starts = np.cumsum([0, *(part.shape[1] for part in rows)])
        self.n_features = int(self.starts[-1])
        self._sparse = any(map(issparse, rows))
        # samples whose features fit the memory, of sparse ones by the mean of those seen
        self._room = np.inf if self._sparse else self.memory / (self.n_features * self.dtype.itemsize)

    def on(self, X=None):
        """The bank of other samples, or of none, for prediction."""
        new = copy(self)
        new._set(None if X is None else as_batches(X))
        return new

    @property
    def in_batches(self):
        return self._source is not None and self._source.ends.size > 1

    def restrict(self, support, *, resident=False):
        return self.on()

    @property
    def triples(self):
        return list(zip(self.names, self._fitted.kernels, self._fitted.columns, strict=True))

    def features(self, X):
        """Features of samples X, (n, n_features), in float32; a csr_array if those of a cue are sparse."""
        n = X.shape[0]
        out = None if self._sparse else np.empty((n, self.n_features), dtype=self.dtype)
        slices = [slice(start, min(start + TASK_ROWS, n)) for start in range(0, n, TASK_ROWS)]
        parts = {}

        def compute(rows):
            side = self._fitted.new_side(taken(X, rows), set(self._cues))
            factors = self._fitted.factors(side, range(self.n_kernels))
            blocks = []
            for f, cue in enumerate(self._cues):
                values = side.arrays[cue]["plain"].values[: side.n]
                if self._sparse:
                    part = diags_array(factors[f]) @ csr_array(values)
                else:
                    part = values * factors[f][:, None]
                if self.scaling is not None:
                    part = scaled(part, self.scaling[f])
                blocks.append(part)
            if self._sparse:
                parts[rows.start] = hstack(blocks, format="csr", dtype=self.dtype)
            else:
                np.concatenate(blocks, axis=1, out=out[rows])

        tiles.run(compute, slices, n * self.n_features)
        if self._sparse and n:
            return csr_array(vstack([parts[rows.start] for rows in slices], format="csr"))
        return out

    def second_moments(self):
        """Per cue the sum of the products of its features, a matrix; of their squares if sparse or many."""
        widths = np.diff(self.starts)
        shapes = [width if self._sparse or width > WIDEST else (width, width) for width in widths]
        sums = [np.zeros(shape) for shape in shapes]
        for _, _, X in self._parts(np.arange(self.n_samples)):
            features = self.features(X)
            for total, first, end in zip(sums, self.starts, self.starts[1:], strict=False):
                part = features[:, first:end]
                total += (part * part).sum(axis=0) if total.ndim == 1 else part.T @ part
        return sums

    def weighted(self, X, weights):
        """Features of samples X, those of each cue times its weight."""
        columns = np.repeat(weights, np.diff(self.starts)).astype(self.dtype)
        weighted = scaled(self.features(X), columns)
        if self._sparse:
            return csr_array(weighted)
        return weighted

    def chunks(self, order):
        """Samples in order, some at a time: their sorted numbers, the visits among these, `FeatureRows`."""
        if self.holds(order):
            samples, visits = np.unique(order, return_inverse=True)
            yield samples, visits, self.held._replace(place=self.held.place[samples])
            return
        for samples, visits, X in self._parts(order):
            yield samples, visits, FeatureRows.of(self.features(X), self.starts)

    def _parts(self, order):
        for first, X in self._source.parts():
            inside = order[(order >= first) & (order < first + X.shape[0])]
            for start in range(0, inside.size, CHUNK):
                samples, visits = np.unique(inside[start : start + CHUNK], return_inverse=True)
                yield samples, visits, taken(X, samples - first)

    def arranged(self, order):
        """The order in which `chunks` visits samples: batch by batch, unless all features are kept."""
        if self.holds(order):
            return order
        return order[np.argsort(np.searchsorted(self._source.ends, order, side="right"), kind="stable")]

    def holds(self, samples):
        return self.held is not None and (self.held.place[samples] >= 0).all()

    def hold(self, samples=None):
        """Keep the features of these samples, by default all, in place of others, if they fit the memory."""
        if samples is None:
            samples = np.arange(self.n_samples)
        if self.holds(samples) or samples.size > self._room:
            return
        self.held = None
        parts = [] if self._sparse else np.empty((samples.size, self.n_features), dtype=self.dtype)
        size = 0
        for chosen, _, X in self._parts(samples):
            features = self.features(X)
            if not self._sparse:
                parts[np.searchsorted(samples, chosen)] = features
                continue
            size += 2 * features.data.nbytes
            parts.append(features)
            if size > self.memory:
                self._room = sum(part.shape[0] for part in parts) * self.memory / size
                return
        if self._sparse:
            parts = csr_array(vstack(parts, format="csr"))
        place = np.full(self.n_samples, -1)
        place[samples] = np.arange(samples.size)
        self.held = FeatureRows.of(parts, self.starts)._replace(place=place)

    def zeros(self, n_classes):
        """Zeros (n, n_classes), in a temporary file if they take more than a quarter of the memory."""
        shape = self.n_samples, n_classes
        if 8 * self.n_samples * n_classes <= 0.25 * self.memory:
            return np.zeros(shape)
        return np.memmap(TemporaryFile(), dtype=np.float64, mode="w+", shape=shape)

    def scores(self, X, blocks, weights):
        """Class scores (n, n_classes) of samples X for blocks (n_classes, n_features)."""
        out = np.zeros((X.shape[0], len(blocks)))
        for start in range(0, len(out), CHUNK):
            part = slice(start, start + CHUNK)
            rows = FeatureRows.of(self.features(taken(X, part)), self.starts)
            out[part] = score_rows(rows, weights, blocks)
        return out

    def _state(self):
        return {name: getattr(self, name) for name in ("names", "memory", "_fitted")}

    @classmethod
    def _from_state(cls, state):
        self = cls.__new__(cls)
        vars(self).update(state)
        self._set(None)
        return self
