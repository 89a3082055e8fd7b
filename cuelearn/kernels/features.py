"""Explicit features of many cues, computed batch by batch for solvers that keep no kernel rows."""

from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import NamedTuple

import joblib
import numpy as np
from scipy.sparse import csr_array, diags_array, hstack, issparse, vstack

from cuelearn.compiled import njit
from cuelearn.expect import expect, expect_shape
from cuelearn.kernels import tiles
from cuelearn.kernels.fitted import MEAN_SUBSAMPLE, FittedKernels
from cuelearn.kernels.rows import full_dot, gathered_dot
from cuelearn.kernels.specifications import FeatureMap, Linear, as_samples, check_kernels, is_frame

__all__ = ["Batches", "FeatureBank", "FeatureRows", "are_batches", "has_only_features"]

# samples whose features are computed at a time, and in one thread
CHUNK = 2048
TASK_ROWS = 1024


def has_only_features(kernels):
    """Whether a model of these kernels can keep blocks of weights: feature maps, and `Linear` beside them."""
    if kernels is None or isinstance(kernels, str):
        return False
    found = [kernel for _, kernel, _ in check_kernels(kernels)]
    linear = all(isinstance(kernel, Linear) for kernel in found)
    return linear and any(isinstance(kernel, FeatureMap) for kernel in found)


class FeatureRows(NamedTuple):
    """Features of b samples, for compiled loops.

    Sample i has those of cue f in ``flat[begin[place[i], f] : begin[place[i], f + 1]]``; their numbers among
    the features of all cues are in the same part of `columns`, which is empty if none is left out.
    """

    flat: np.ndarray  # float32
    begin: np.ndarray  # (rows, n_cues + 1)
    columns: np.ndarray
    place: np.ndarray  # (b,)

    @classmethod
    def of(cls, features, starts):
        """Of an array or csr_array (n, n_features) with the first columns of the cues, and the end."""
        n, width = features.shape
        places = np.arange(n)
        if not issparse(features):
            return cls(features.reshape(-1), places[:, None] * width + starts, np.zeros(0, np.uint32), places)
        begin = np.empty((n, len(starts)), dtype=np.int64)
        begin[:, 0] = features.indptr[:-1]
        for f in range(1, len(starts)):
            counts = np.diff(features[:, starts[f - 1] : starts[f]].indptr)
            begin[:, f] = begin[:, f - 1] + counts
        return cls(features.data, begin, features.indices.astype(np.uint32), places)


@njit(cache=True, fastmath=True)
def weigh_row(rows, row, weights, out):
    """The features of a row times the weights of their cues, into `out`; returns how many."""
    first = rows.begin[row, 0]
    for f in range(weights.shape[0]):
        begin = rows.begin[row, f]
        end = rows.begin[row, f + 1]
        source = rows.flat[begin:end]
        target = out[begin - first : end - first]
        weight = weights[f]
        for k in range(source.shape[0]):
            target[k] = weight * source[k]
    return rows.begin[row, weights.shape[0]] - first


@njit(cache=True)
def row_scores(rows, row, values, count, blocks, out):
    """Products of `values`, in place of the features of a row, with each of `blocks` (n_classes, width)."""
    first = rows.begin[row, 0]
    columns = rows.columns[first : first + count]
    for c in range(out.shape[0]):
        if columns.shape[0] == 0:
            out[c] = full_dot(values[:count], blocks[c])
        else:
            out[c] = gathered_dot(blocks[c], columns, values, count)


@njit(cache=True, fastmath=True)
def add_row_to(rows, row, amount, target):
    """``target += amount * features`` of a row."""
    first = rows.begin[row, 0]
    source = rows.flat[first : rows.begin[row, rows.begin.shape[1] - 1]]
    columns = rows.columns[first : first + source.shape[0]]
    if columns.shape[0] == 0:
        for k in range(source.shape[0]):
            target[k] += amount * source[k]
    else:
        for k in range(source.shape[0]):
            target[columns[k]] += amount * source[k]


@njit(cache=True)
def score_rows(rows, weights, blocks, values, out):
    """Class scores (b, n_classes) of all rows; `values` is scratch."""
    for i in range(out.shape[0]):
        count = weigh_row(rows, rows.place[i], weights, values)
        row_scores(rows, rows.place[i], values, count, blocks, out[i])


@njit(cache=True)
def add_rows(rows, coef, blocks):
    """``blocks[c] += sum_i coef[i, c] * features_i``."""
    for i in range(coef.shape[0]):
        for c in range(coef.shape[1]):
            if coef[i, c] != 0.0:
                add_row_to(rows, rows.place[i], coef[i, c], blocks[c])


@njit(cache=True)
def own_products(rows, out):
    """Squared lengths ``out[f, i]`` of the features of each cue."""
    for i in range(out.shape[1]):
        for f in range(out.shape[0]):
            part = rows.flat[rows.begin[rows.place[i], f] : rows.begin[rows.place[i], f + 1]]
            out[f, i] = full_dot(part, part)


def are_batches(X):
    """Whether X is an iterator, a function that returns one, or a list or other iterable of pairs (X, y)."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and isinstance(X[0], tuple) and len(X[0]) == 2 and np.ndim(X[0][0]) == 2
    if hasattr(X, "shape") or hasattr(X, "__array__"):
        return False
    return callable(X) or hasattr(X, "__next__") or hasattr(X, "__iter__") and not hasattr(X, "__len__")


class Batches:
    """Samples in batches, which are read once for their labels, and again for every pass.

    Parameters
    ----------
    source : iterable, or function that returns one
        Of pairs (X, y), or with `target` of data frames, such as a reader of pandas in chunks. An iterator,
        which can be read only once, is copied to temporary files.
    target : str, optional
        The column of labels.

    Attributes
    ----------
    labels : ndarray, shape (n,)
    first : array or DataFrame
        The samples of the first batch.
    """

    def __init__(self, source, target=None):
        self._source = source
        self._target = target
        self._folder = None
        if hasattr(source, "__next__"):
            self._folder = TemporaryDirectory(prefix="cuelearn-")
            for number, batch in enumerate(source):
                joblib.dump(batch, Path(self._folder.name) / f"{number:08d}")
        labels = []
        self.first = None
        for X, y in self._pairs():
            labels.append(expect_shape("y of a batch", np.asarray(y), (X.shape[0],)))
            if self.first is None:
                self.first = X
        if not labels:
            raise ValueError("X must hold at least one batch (X, y), got none")
        self.labels = np.concatenate(labels)
        self.ends = np.cumsum([len(y) for y in labels])
        self.shape = len(self.labels), self.first.shape[1]

    def _pairs(self):
        source = self._source
        if self._folder is not None:
            source = map(joblib.load, sorted(Path(self._folder.name).iterdir()))
        elif callable(source):
            source = source()
        for batch in source:
            if self._target is not None and is_frame(batch):
                yield batch.drop(columns=self._target), batch[self._target]
            elif isinstance(batch, (tuple, list)) and len(batch) == 2:
                yield as_samples(batch[0]), batch[1]
            else:
                raise ValueError(
                    "X must hold batches (X, y), or data frames with the column of labels as y, got "
                    f"{type(batch).__name__}"
                )

    def parts(self):
        """Number of the first sample, and samples, of each batch."""
        start = 0
        for (X, _), end in zip(self._pairs(), self.ends, strict=True):
            yield start, X
            start = end


def taken(X, index):
    if is_frame(X):
        return X.iloc[index]
    return X[index]


class FeatureBank:
    """Normalised features of F cues on n training samples, for solvers with a block of weights per cue.

    Parameters
    ----------
    kernels : list of (name, kernel, columns)
        `FeatureMap` and `Linear`.
    X : ndarray, memory map, DataFrame, csr_array or Batches
        Training samples. Transformers are fitted on at most 5,000 of them, evenly spaced, or on as many of
        the first batch.
    normalize : bool
        Divide each sample's features by their length, per cue, for kernels of unit diagonal; 0 stays 0.
    memory : float
        Features of all samples are kept if they take at most so many bytes, else computed in each pass.

    Attributes
    ----------
    n_kernels, n_samples, n_features : int
        F, n, and the number of features of all cues.
    names : list of str
    starts : ndarray, shape (F + 1,)
        First column of each cue among all features.
    kernels_ : list of Kernel
        With fitted transformers.
    held : FeatureRows or None
        All samples, if kept; dense ones are float32.

    Notes
    -----
    A pass costs the transformers, and O(n n_features). Features are computed with one BLAS thread per task:
    results do not depend on the number of threads.
    """

    dtype = np.dtype(np.float32)
    indefinite = {}

    def __init__(self, kernels, X, *, normalize=True, memory=2e9):
        self.normalize = expect("normalize", normalize, kind="bool")
        self.memory = expect("memory", memory, low=0, finite=False)
        triples = check_kernels(kernels)
        self.names = [name for name, _, _ in triples]
        self._source = X
        self.n_samples = X.shape[0]
        first = X
        if isinstance(X, Batches):
            first = X.first
        n_first = first.shape[0]
        chosen = np.linspace(0, n_first - 1, min(n_first, MEAN_SUBSAMPLE)).round().astype(np.intp)
        fitted = FittedKernels(triples, taken(first, chosen), normalize, self.dtype)
        self._fitted = fitted.restrict(np.zeros(0, dtype=np.intp))
        self._start()

    def _start(self):
        self.held = self._held_samples = None
        self.may_hold = True
        self.kernels_ = self._fitted.kernels
        arrays = self._fitted.train.arrays
        held = [arrays[self._cue_of(f)]["plain"].values for f in range(self.n_kernels)]
        self.starts = np.cumsum([0, *(rows.shape[1] for rows in held)])
        self.n_features = int(self.starts[-1])
        self.is_sparse = any(map(issparse, held))

    def _cue_of(self, f):
        return self._fitted.roots[self._fitted.forms[f].root].cue

    @property
    def n_kernels(self):
        return len(self.names)

    @property
    def n_batch(self):
        return self.n_samples

    @property
    def resident(self):
        return self.held is not None

    @property
    def triples(self):
        """(name, kernel with a fitted transformer, columns)."""
        return list(zip(self.names, self.kernels_, self._fitted.columns, strict=True))

    def features(self, X):
        """Normalised features of samples X as an array or csr_array (n, n_features) of float32."""
        n = X.shape[0]
        begins = range(0, n, TASK_ROWS)
        parts = [None] * len(begins)
        out = None
        if not self.is_sparse:
            out = np.empty((n, self.n_features), dtype=self.dtype)

        def compute(k):
            rows = slice(begins[k], min(begins[k] + TASK_ROWS, n))
            parts[k] = self._part(taken(X, rows), None if out is None else out[rows])

        tiles.run(compute, range(len(begins)), n * self.n_features)
        if out is not None:
            return out
        return csr_array(vstack(parts, format="csr")) if parts else csr_array((0, self.n_features))

    def _part(self, X, out):
        fitted = self._fitted
        side = fitted.new_side(X, set(range(len(fitted.cues))))
        factors = fitted.factors(side, range(self.n_kernels))
        blocks = []
        for f in range(self.n_kernels):
            values = side.arrays[self._cue_of(f)]["plain"].values
            if out is not None:
                np.multiply(values[: side.n], factors[f][:, None], out=out[:, self.starts[f] : self.starts[f + 1]])
            else:
                values = values if issparse(values) else csr_array(values[: side.n])
                blocks.append(diags_array(factors[f]) @ values)
        if out is None:
            return hstack(blocks, format="csr", dtype=self.dtype)
        return None

    def rows(self, X):
        """`FeatureRows` of samples X."""
        return FeatureRows.of(self.features(X), self.starts)

    def chunks(self, order):
        """Samples in visiting order, some at a time: their sorted numbers, the visits among them, their
        `FeatureRows`."""
        if self.held is not None:
            parts = [(0, None)]
        elif isinstance(self._source, Batches):
            parts = self._source.parts()
        else:
            parts = [(0, self._source)]
        for first, X in parts:
            inside = order
            if isinstance(self._source, Batches) and X is not None:
                inside = order[(order >= first) & (order < first + X.shape[0])]
            for start in range(0, inside.size, CHUNK):
                samples, visits = np.unique(inside[start : start + CHUNK], return_inverse=True)
                if X is None:
                    places = samples
                    if self._held_samples is not None:
                        places = np.searchsorted(self._held_samples, samples)
                    rows = self.held._replace(place=places)
                else:
                    rows = self.rows(taken(X, samples - first))
                yield samples, visits, rows

    def arranged(self, order):
        """An order of visits in which batches come one after another, unless all features are kept."""
        if self.held is not None or not isinstance(self._source, Batches):
            return order
        batches = np.searchsorted(self._source.ends, order, side="right")
        return order[np.argsort(batches, kind="stable")]

    def hold(self):
        """Keep the features of all samples if they fit the memory."""
        if self.may_hold:
            self.held = self._kept(np.arange(self.n_samples))
            self.may_hold = False

    def holding(self, samples):
        """A bank that keeps the features of some samples, sorted, if they fit the memory; else this one."""
        kept = None
        if self.held is None:
            kept = self._kept(samples)
        if kept is None:
            return self
        new = copy(self)
        new.held = kept
        new._held_samples = samples
        return new

    def _kept(self, samples):
        n = samples.size
        if not self.is_sparse and n * self.n_features * self.dtype.itemsize > self.memory:
            return None
        parts = []
        size = 0
        done = 0
        out = None
        if not self.is_sparse:
            out = np.empty((n, self.n_features), dtype=self.dtype)
        for chosen, _, rows in self.chunks(samples):
            if out is not None:
                out[done : done + chosen.size] = rows.flat.reshape(chosen.size, -1)
                done += chosen.size
                continue
            size += rows.flat.nbytes + rows.columns.nbytes + rows.begin.nbytes
            if size > self.memory:
                return None
            parts.append(rows)
        if out is not None:
            return FeatureRows.of(out, self.starts)
        lengths = np.cumsum([0, *(rows.flat.size for rows in parts)])
        return FeatureRows(
            np.concatenate([rows.flat for rows in parts]),
            np.concatenate([rows.begin + first for rows, first in zip(parts, lengths, strict=False)]),
            np.concatenate([rows.columns for rows in parts]),
            np.arange(n),
        )

    def zeros(self, n_classes):
        """Zeros (n, n_classes) in memory, or in a temporary file if they take more than a quarter of it."""
        shape = self.n_samples, n_classes
        if 8 * self.n_samples * n_classes <= 0.25 * self.memory:
            return np.zeros(shape)
        return np.memmap(TemporaryFile(), dtype=np.float64, mode="w+", shape=shape)

    def scores(self, X, blocks, weights):
        """Class scores of samples X, (n, n_classes), for `blocks` (n_classes, n_features) and weights of the
        cues."""
        out = np.zeros((X.shape[0], len(blocks)))
        for start in range(0, len(out), CHUNK):
            part = slice(start, start + CHUNK)
            self.add_scores(self.rows(taken(X, part)), blocks, weights, out[part])
        return out

    def add_scores(self, rows, blocks, weights, out):
        """Write the scores of `rows` into `out`."""
        score_rows(rows, weights, blocks, np.empty(self.n_features), out)

    def alone(self):
        """The bank without samples, for prediction."""
        new = copy(self)
        new._source = None
        new._start()
        return new

    def on(self, X):
        """The same features, of samples X."""
        new = self.alone()
        new._source = X
        new.n_samples = X.shape[0]
        return new

    _SAVED = ("names", "normalize", "memory", "n_samples", "_fitted")

    def _state(self):
        return {name: getattr(self, name) for name in self._SAVED}

    @classmethod
    def _from_state(cls, state):
        self = cls.__new__(cls)
        vars(self).update(state, _source=None)
        if len({len(self.names), len(self._fitted.kernels), len(self._fitted.forms)}) > 1:
            raise ValueError("a bank with different numbers of kernels")
        self._start()
        return self
