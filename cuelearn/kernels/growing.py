"""Growing support sets of one cue, kernel values against them, and matrices of distances.

Unlike a `KernelBank`, a `SupportSet` computes single rows without preparation and grows at no cost.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import issparse

from cuelearn.checkpoint import Changing
from cuelearn.expect import expect, expect_shape, expect_word
from cuelearn.kernels.bank import KernelBank
from cuelearn.kernels.features import FeatureBank, FeatureRows
from cuelearn.kernels.matrices import indefinite_matrix, indefinite_rows, sample_of
from cuelearn.kernels.specifications import (
    OF_SCALE,
    FeatureMap,
    Function,
    Kernel,
    Linear,
    as_kernel,
    check_first_batch,
    check_nonnegative,
    check_size,
    uneven_spread,
    warn_of_spread,
)
from cuelearn.kernels.tiles import QUANTITIES, mirror, planes_of, quantities_into, upper_tiles

# Largest k(x, x) before normalisation.
LARGEST_SQUARE = 1e30


def resolve_kernel(kernel, X):
    """The kernel with a numeric scale: "mean" is that of the samples X, (n, d)."""
    kernel = as_kernel(kernel)
    if kernel.quantity.endswith("matrix"):
        raise ValueError(
            f"kernel must be computed from X here, got {kernel!r}; matrices need kernel='precomputed'"
        )
    check_first_batch([kernel], X.shape[0])
    if isinstance(kernel, FeatureMap):
        return kernel.fit(X)
    if kernel.unresolved:  # the bank issues the FeatureScaleWarning
        return KernelBank([("kernel", kernel, slice(None))], X, memory=0.0).kernels_[0]
    if kernel.quantity in OF_SCALE and uneven_spread(X):
        warn_of_spread(["kernel"])
    return kernel


def quantities(name, left, right):
    out = np.empty((left.shape[0], right.shape[0]), dtype=left.dtype)
    quantities_into(QUANTITIES.index(name), left, right, out)
    return out


def kernel_values(kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Kernel of all pairs of rows of X (n, d) and Z (m, d), not normalised, in their dtype.

    The kernel has a numeric scale; X and Z are C-contiguous, of the same floating type.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import RBF, kernel_values
    >>> kernel_values(RBF(gamma=1.0), np.array([[0.0], [1.0]]), np.array([[0.0]])).round(3)
    array([[1.   ],
           [0.368]])
    """
    number = X.dtype.type
    if isinstance(kernel, Function):
        return kernel(X, Z).astype(X.dtype)
    X = features_of(kernel, X)
    Z = features_of(kernel, Z)
    out = quantities(kernel.quantity, X, Z)
    if isinstance(kernel, Linear):
        return out
    if kernel.quantity == "product":
        return (out / number(kernel.divisor(X.shape[1])) + number(kernel.coef0)) ** kernel.degree
    if kernel.quantity == "euclidean":
        np.sqrt(out, out=out)
    out *= number(-1.0 / kernel.divisor(X.shape[1]))
    return np.exp(out, out=out)


def features_of(kernel, X):
    if not isinstance(kernel, FeatureMap):
        return X
    features = kernel.transform(X)
    if issparse(features):
        features = features.toarray()
    return np.ascontiguousarray(features, dtype=X.dtype)


def _self_values(kernel, X):
    if isinstance(kernel, Function):
        return kernel.own(X)
    if kernel.quantity != "product":
        return np.ones(X.shape[0])
    X = features_of(kernel, X)
    own = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return (own / kernel.divisor(X.shape[1]) + kernel.coef0) ** kernel.degree


def filled(X):
    """X with zeros in rows of NaN, which lack the cue, and which these are."""
    if not isinstance(X, np.ndarray):
        return X, np.zeros(X.shape[0], dtype=bool)
    absent = np.isnan(X[:, 0])
    if absent.any():
        X = np.where(absent[:, None], 0.0, X)
    return X, absent


def inverse_root(values):
    """1 / sqrt of each value, 0 for values that are not positive."""
    return np.where(values > 0.0, 1.0 / np.sqrt(np.maximum(values, np.finfo(float).tiny)), 0.0)


class SupportSet(Changing):
    """Support samples of one cue; the first batch, (n, d), sets the scale "mean" and the dtype."""

    APPENDED = ("_held", "_scale")

    def __init__(self, kernel, normalize, first):
        self.kernel = resolve_kernel(kernel, first[~filled(first)[1]])
        self.normalize = bool(normalize) and self.kernel.quantity in ("product", "function")
        self._held = np.empty((16, first.shape[1]), dtype=first.dtype)
        self._scale = np.ones(16)
        self.size = 0
        self.check(first)

    @property
    def samples(self):
        return self._held[: self.size]

    def check(self, X):
        """X in the set's dtype; ValueError if the kernel is not defined on it."""
        X, _ = filled(X)
        single = self._held.dtype == np.float32
        X = np.ascontiguousarray(check_size(X, np.float32) if single else X, dtype=self._held.dtype)
        expect_shape("X", X, ("n_samples", self._held.shape[1]))
        if self.kernel.quantity == "chi2":
            check_nonnegative(X, "X")
        if self.kernel.quantity == "product":
            with np.errstate(over="ignore"):
                largest = _self_values(self.kernel, X).max(initial=0.0)
            if largest > LARGEST_SQUARE:
                raise ValueError(
                    f"X must be scaled so that k(x, x) of {self.kernel} is at most {LARGEST_SQUARE:g}, got "
                    f"{largest:.3g}"
                )
        return X

    def doubt(self, X):
        """How indefinite a function is on a sample of the batch X and the set, or None."""
        if not isinstance(self.kernel, Function):
            return None
        chosen = sample_of(self.size + len(X))
        samples = np.concatenate([self.samples, self.check(X)])[chosen]
        self.kernel.own(samples)  # raises for an asymmetric function
        return indefinite_matrix(self.kernel(samples, samples))

    def batch(self, X):
        """Kernel rows (n, size + n) of a batch X (n, d) against the set and itself, their diagonal, and the
        columns of both."""
        absent = filled(X)[1]
        X = self.check(X)
        n = X.shape[0]
        size = self.size
        diagonal = _self_values(self.kernel, X)
        rows = np.empty((n, size + n), dtype=X.dtype)
        if size:
            rows[:, :size] = kernel_values(self.kernel, X, self.samples)
        rows[:, size:] = kernel_values(self.kernel, X, X) if n > 1 else diagonal
        if self.normalize:
            scale = inverse_root(diagonal)
            rows *= scale[:, None].astype(X.dtype)
            rows[:, :size] *= self._scale[:size].astype(X.dtype)
            rows[:, size:] *= scale.astype(X.dtype)
            diagonal = (diagonal > 0.0).astype(np.float64)
        if absent.any():
            rows[absent] = 0.0
            rows[:, size:][:, absent] = 0.0
            diagonal[absent] = 0.0
        return rows, diagonal, np.arange(size), np.arange(size, size + n)

    def add(self, X, chosen):
        """Append the rows `chosen` of a batch, in this order."""
        new = self.size + len(chosen)
        if new > len(self._held):
            more = max(new, 2 * len(self._held)) - self.size
            self._held = np.concatenate([self.samples, np.empty((more, X.shape[1]), self._held.dtype)])
            self._scale = np.concatenate([self._scale[: self.size], np.ones(more)])
        self._held[self.size : new] = X[chosen]
        if self.normalize:
            own = _self_values(self.kernel, self._held[self.size : new])
            self._scale[self.size : new] = inverse_root(own)
        self.size = new

    def cross(self, X):
        """Kernel of new samples with the set, shape (n, size)."""
        absent = filled(X)[1]
        X = self.check(X)
        rows = kernel_values(self.kernel, X, self.samples)
        if self.normalize:
            rows *= inverse_root(_self_values(self.kernel, X))[:, None].astype(X.dtype)
            rows *= self._scale[: self.size].astype(X.dtype)
        if absent.any():
            rows[absent] = 0.0
        return rows

    def _state(self):
        return {"kernel": self.kernel, "normalize": self.normalize, "samples": self.samples}

    @classmethod
    def _from_state(cls, state):
        self = cls(state["kernel"], state["normalize"], state["samples"])
        self.add(state["samples"], np.arange(len(state["samples"])))
        return self


class PrecomputedSupport(Changing):
    """The same for precomputed kernels, against all `seen` samples; `places` are the members among them."""

    kernel = "precomputed"

    def __init__(self, seen=0, places=(), diagonal=()):
        self.seen = seen
        self.places = np.asarray(places, dtype=np.int64)
        self.diagonal = np.asarray(diagonal, dtype=np.float64)  # k(x, x) of the members

    @property
    def size(self):
        return self.places.size

    def check(self, X):
        return X

    def doubt(self, X):
        """Of kernels of a batch X with the members, not within the batch."""
        return indefinite_rows(X[:, self.places], np.diagonal(X[:, self.seen :]), self.diagonal)

    def batch(self, X):
        """X has shape (n, seen + n)."""
        n = X.shape[0]
        expect("X", X, kind="real", shape=(n, self.seen + n), finite=False)
        X = np.ascontiguousarray(X)  # one memory layout: the passes are compiled once
        own = np.arange(self.seen, self.seen + n)
        return X, X[np.arange(n), own].astype(np.float64), self.places, own

    def add(self, X, chosen):
        new = self.seen + np.asarray(chosen, dtype=np.int64)
        self.diagonal = np.concatenate([self.diagonal, X[chosen, new]])
        self.places = np.concatenate([self.places, new])
        self.seen += X.shape[0]

    def cross(self, X):
        """X has shape (n, seen)."""
        expect("X", X, kind="real", shape=("n", self.seen), finite=False, least=0)
        return X[:, self.places]

    def _state(self):
        return {"seen": self.seen, "places": self.places, "diagonal": self.diagonal}

    @classmethod
    def _from_state(cls, state):
        return cls(**state)


class FeatureSupport(NamedTuple):
    bank: FeatureBank  # of one cue

    size = 0

    @classmethod
    def of(cls, kernel, normalize, first):
        """An unfitted transformer is fitted to the samples of the first batch that have the cue."""
        first, absent = filled(first)
        if absent.all():
            kernel = kernel.fit(first[:0])  # raises unless it is fitted
        elif absent.any():
            first = first[~absent]
        cue = [("kernel", kernel, slice(None))]
        return cls(FeatureBank(cue, first, normalize=normalize, memory=0.0).on())

    @property
    def kernel(self):
        return self.bank.triples[0][1]

    def check(self, *batch):
        pass

    doubt = add = check

    def batch(self, X):
        """`FeatureRows`, empty where samples lack the cue."""
        X, absent = filled(X)
        rows = FeatureRows.of(self.bank.features(X), self.bank.starts)
        rows.begin[absent, 1] = rows.begin[absent, 0]
        return rows

    def scores(self, X, coef):
        """For weights (n_classes, n_features)."""
        X, absent = filled(X)
        scores = self.bank.scores(X, np.ascontiguousarray(coef), np.ones(1))
        scores[absent] = 0.0
        return scores


def distance_matrix(
    X: np.ndarray, metric: Literal["chi2", "cityblock", "sqeuclidean"], *, n_jobs: int | None = 1
) -> np.ndarray:
    """Distances of all pairs, (n, n) in the dtype of X.

    `metric` is "chi2" (X non-negative), "cityblock" or "sqeuclidean". Results are bitwise equal for any
    `n_jobs`. Cost O(n^2 d / 2).

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import distance_matrix
    >>> distance_matrix(np.array([[0.0, 0.0], [3.0, 4.0]]), "sqeuclidean")
    array([[ 0., 25.],
           [25.,  0.]])
    """
    expect_word("metric", metric, ("chi2", "cityblock", "sqeuclidean"))
    X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype.kind == "f" else np.float64)
    if metric == "chi2":
        check_nonnegative(X, "X")
    out = np.empty((len(X), len(X)), dtype=X.dtype)

    def fill(tile):
        out[tile.place] = quantities(metric, X[tile.r0 : tile.r1], X[tile.c0 : tile.c1])
        mirror(planes_of(out), 0, tile)

    Parallel(n_jobs=n_jobs, require="sharedmem")(delayed(fill)(tile) for tile in upper_tiles(len(X)))
    np.fill_diagonal(out, 0.0)
    return out


def mean_rule(distance: np.ndarray) -> float:
    """The papers' scale: the mean of a distance matrix over all pairs of different samples.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import mean_rule
    >>> mean_rule(np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 4.0], [9.0, 4.0, 0.0]]))  # of 1, 4 and 9
    4.666666666666667
    """
    n = distance.shape[0]
    mean = float(distance.sum(dtype=np.float64) - np.trace(distance)) / max(1, n * (n - 1))
    if 0.0 < mean < np.inf:
        return mean
    return 1.0
