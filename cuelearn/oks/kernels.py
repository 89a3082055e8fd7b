"""Kernels of the online learners: columns of X or given matrices, and compiled predictors, one per kernel;
kernel values are computed, and counted, only when needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from cuelearn.compiled import njit
from cuelearn.kernels import (
    RBF,
    Chi2,
    CrossBank,
    FeatureMap,
    Function,
    Kernel,
    KernelBank,
    KernelStack,
    Linear,
    Poly,
)
from cuelearn.kernels.growing import inverse_root
from cuelearn.kernels.matrices import warn_indefinite
from cuelearn.kernels.specifications import check_kernels, check_nonnegative, extract_columns
from cuelearn.kernels.stack import new_kernels, training_bank
from cuelearn.kernels.tiles import (
    CHI2,
    CITYBLOCK,
    EUCLIDEAN,
    PRODUCT,
    QUANTITIES,
    chi2,
    cityblock,
    product,
    squared_distance,
)
from cuelearn.kernels.types import ColumnSpec

#: In place of a quantity: the kernel's values are given.
GIVEN = -1


class Kernels(NamedTuple):
    """Arrays of shape (n_kernels,): quantity, parameters, and the columns of `Samples.data`."""

    quantity: np.ndarray
    divisor: np.ndarray
    offset: np.ndarray
    degree: np.ndarray
    start: np.ndarray
    stop: np.ndarray


class Samples(NamedTuple):
    """Input of the kernels; unused parts are empty."""

    data: np.ndarray  # (n, total width): each kernel's columns side by side
    scale: np.ndarray  # (n, n_kernels): 1/sqrt(k(x, x)) for normalised kernels, else 1
    stack: np.ndarray  # (n_kernels, n, n_train): given kernel values


class Predictors(NamedTuple):
    """`support` and `coef` (n_kernels, capacity), of which `count[j]` entries are used."""

    support: np.ndarray
    coef: np.ndarray
    count: np.ndarray


class Weights(NamedTuple):
    """Log-weights of the kernels, q = w / sum w, and the sampling probabilities p."""

    log_weights: np.ndarray
    q: np.ndarray
    p: np.ndarray


class Visits(NamedTuple):
    """Samples in visit order, and records. Samples of weight 0 change nothing."""

    order: np.ndarray
    targets: np.ndarray  # by sample
    sample_weights: np.ndarray  # by sample
    uniforms: np.ndarray  # in [0, 1), by visit
    drawn: np.ndarray  # written: the kernel drawn
    mistakes: np.ndarray  # written: whether it erred
    losses: np.ndarray  # written: its loss


@njit(cache=True, nogil=True, error_model="numpy")
def kernel_value(kernels, j, x, z):
    """k_j(x, z), not normalised."""
    quantity = kernels.quantity[j]
    divisor = kernels.divisor[j]
    if quantity == PRODUCT:
        base = product(x, z) / divisor + kernels.offset[j]
        power = 1.0
        for _ in range(kernels.degree[j]):
            power *= base
        return power
    if quantity == CITYBLOCK:
        distance = cityblock(x, z)
    elif quantity == CHI2:
        distance = chi2(x, z)
    else:
        distance = squared_distance(x, z)
        if quantity == EUCLIDEAN:
            distance = math.sqrt(distance)
    return math.exp(-distance / divisor)


@njit(cache=True, nogil=True)
def self_values(kernels, data, out):
    """Write k(x, x) of all samples and kernels into `out`."""
    for j in range(kernels.quantity.shape[0]):
        for i in range(data.shape[0]):
            x = data[i, kernels.start[j] : kernels.stop[j]]
            out[i, j] = kernel_value(kernels, j, x, x)


@njit(cache=True, nogil=True)
def output(kernels, predictors, j, here, i, held):
    """The predictor of kernel j, with support in `held`, at sample i of `here`."""
    support = predictors.support[j]
    coef = predictors.coef[j]
    total = 0.0
    if kernels.quantity[j] == GIVEN:
        row = here.stack[j, i]
        for s in range(predictors.count[j]):
            total += coef[s] * row[support[s]]
        return total
    start = kernels.start[j]
    stop = kernels.stop[j]
    x = here.data[i, start:stop]
    for s in range(predictors.count[j]):
        z = held.data[support[s], start:stop]
        total += coef[s] * kernel_value(kernels, j, x, z) * held.scale[support[s], j]
    return total * here.scale[i, j]


@njit(cache=True, nogil=True)
def outputs(kernels, predictors, members, here, held, out):
    """Write predictions of some kernels on `here` into `out` (n, len(members))."""
    for i in range(out.shape[0]):
        for k in range(members.shape[0]):
            out[i, k] = output(kernels, predictors, members[k], here, i, held)


@njit(cache=True, nogil=True)
def add(predictors, j, i, amount):
    """Add to the coefficient of sample i in predictor j."""
    support = predictors.support[j]
    count = predictors.count[j]
    place = 0
    while place < count and support[place] != i:
        place += 1
    if place == count:
        support[place] = i
        predictors.coef[j, place] = 0.0
        predictors.count[j] = count + 1
    predictors.coef[j, place] += amount


@njit(cache=True, nogil=True)
def set_probabilities(weights, delta):
    """q = w / sum w, p = (1 - delta) q + delta / m; log-weights get a maximum of 0."""
    log_weights = weights.log_weights
    q = weights.q
    p = weights.p
    m = log_weights.shape[0]
    largest = log_weights.max()
    total = 0.0
    for j in range(m):
        log_weights[j] -= largest
        q[j] = math.exp(log_weights[j])
        total += q[j]
    for j in range(m):
        q[j] /= total
        p[j] = (1.0 - delta) * q[j] + delta / m


#: Most samples for ``scale="mean"``: all pairs would cost a kernel matrix.
MEAN_SAMPLES = 500


def check_computed(triples):
    """ValueError for a kernel that is not computed from X."""
    for name, kernel, _ in triples:
        if kernel.quantity not in QUANTITIES:
            raise ValueError(
                f"kernels must be computed from X here, got {kernel!r} for {name!r}; kernels='precomputed' "
                "takes kernel matrices"
            )


class Columns:
    """Kernels computed from columns of X; `triples` have resolved scales."""

    given = False

    def __init__(self, triples, normalize):
        check_computed(triples)
        self.triples = list(triples)
        self.names = [name for name, _, _ in triples]
        kernels = [kernel for _, kernel, _ in triples]
        columns = [tuple(c) for _, _, c in triples]
        divisors = [k.divisor(len(c)) for _, k, c in triples]
        distinct = list(dict.fromkeys(columns))  # kernels may share columns
        places = dict(zip(distinct, np.cumsum([0, *map(len, distinct)]).tolist(), strict=False))
        start = np.array([places[c] for c in columns])
        self.kernels = Kernels(
            np.array([QUANTITIES.index(kernel.quantity) for kernel in kernels]),
            np.array(divisors, dtype=np.float64),
            np.array([float(k.coef0) for k in kernels]),
            np.array([int(k.degree) for k in kernels]),
            start,
            start + [len(c) for c in columns],
        )
        self._columns = np.concatenate(distinct)
        self.width = self._columns.size
        self._scaled = (self.kernels.quantity == PRODUCT) & bool(normalize)

    def __len__(self):
        return len(self.names)

    def pack(self, X):
        """`Samples` of a checked array or DataFrame."""
        values = X.iloc[:, self._columns] if hasattr(X, "iloc") else X[:, self._columns]
        try:
            data = np.ascontiguousarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            data = np.array([np.nan])
        if not np.isfinite(data).all():
            for name, _, columns in self.triples:  # names the invalid columns
                extract_columns(X, np.asarray(columns), name)
        for j in np.flatnonzero(self.kernels.quantity == CHI2):
            own = data[:, self.kernels.start[j] : self.kernels.stop[j]]
            check_nonnegative(own, f"cue {self.names[j]!r}")
        scale = np.ones((len(data), len(self)))
        if self._scaled.any():
            values = np.empty_like(scale)
            self_values(self.kernels, data, values)
            scale[:, self._scaled] = inverse_root(values[:, self._scaled])
        return Samples(data, scale, np.empty((0, 0, 0)))


class Given:
    given = True
    width = 0

    def __init__(self, n_kernels, n_train, names=None):
        self.names = names or [str(j) for j in range(n_kernels)]
        self.n_train = n_train
        zeros = np.zeros(n_kernels, dtype=np.int64)
        self.kernels = Kernels(
            np.full(n_kernels, GIVEN), np.ones(n_kernels), np.zeros(n_kernels), zeros, zeros, zeros
        )

    def __len__(self):
        return len(self.names)

    def pack(self, X):
        """`Samples` of an array (n_kernels, n, n_train) or a bank in memory."""
        if isinstance(X, KernelStack):
            X = X.cross()
        if isinstance(X, CrossBank):
            X = np.concatenate([block for _, block in X.blocks()], axis=1)
        if isinstance(X, KernelBank):  # already checked; no copy
            stack = X.stack
        else:
            stack = np.ascontiguousarray(new_kernels(X, len(self), self.n_train))
        nothing = np.empty((stack.shape[1], 0))
        return Samples(nothing, nothing, stack)


def has_functions(triples):
    return any(isinstance(kernel, (FeatureMap, Function)) for _, kernel, _ in triples)


class Evaluated(Given):
    """Kernels of which some are user functions: all are evaluated as matrices."""

    given = False

    def __init__(self, triples, X, normalize):
        self.bank = KernelBank(triples, X, normalize=normalize)
        if not self.bank.resident:
            raise ValueError(
                f"kernels that are functions need the matrices of all {X.shape[0]} samples in memory"
            )
        super().__init__(self.bank.n_kernels, self.bank.n_samples, list(self.bank.names))
        self.triples = self.bank.triples

    def pack(self, X):
        return super().pack(X if isinstance(X, KernelBank) else self.bank.cross(X))


def kind_kernels(groups: Mapping[str, ColumnSpec]) -> list[tuple[str, Kernel, ColumnSpec]]:
    r"""Linear, polynomial, chi-squared and Gaussian kernel on each kind of features, in the paper's order.

    The last two set their widths from the training samples. The paper does not print its polynomial; here it
    is homogeneous, :math:`\langle x, z \rangle^2`, since with an offset of 1 histograms of unit sum, whose
    products are tiny, would all look alike.

    `groups` maps names to column numbers or slices of nonnegative values, e.g. the ``cues`` of a `CueData`.
    Returns a list of (name, kernel, columns): kernel k (from 1) of the paper is entry k - 1.

    Examples
    --------
    >>> from cuelearn.oks import kind_kernels
    >>> [name for name, _, _ in kind_kernels({"gist": slice(0, 288)})]
    ['gist linear', 'gist poly', 'gist chi2', 'gist rbf']
    """
    four = {"linear": Linear(), "poly": Poly(degree=2, coef0=0.0), "chi2": Chi2(), "rbf": RBF()}.items()
    return [
        (f"{group} {name}", kernel, columns) for group, columns in groups.items() for name, kernel in four
    ]


def with_widths(kernels, X, normalize=True):
    """The kernels with resolved scales and columns, from some samples."""
    rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], MEAN_SAMPLES)).astype(int)
    return KernelBank(
        kernels, X.iloc[rows] if hasattr(X, "iloc") else X[rows], normalize=normalize, memory=0.0
    ).triples


def bank_of(estimator, X):
    """Source and samples of an estimator's training data."""
    if not isinstance(estimator.kernels, str):
        triples = [] if estimator.kernels is None else check_kernels(estimator.kernels)
        if has_functions(triples):
            source = Evaluated(triples, X, estimator.normalize)
            warn_indefinite(source.bank.indefinite)
            return source, source.pack(source.bank)
        check_computed(triples)  # matrices cannot be subsampled
        source = Columns(with_widths(estimator.kernels, X, estimator.normalize), estimator.normalize)
        return source, source.pack(X)
    bank = training_bank(X)
    if not bank.resident:
        raise ValueError(
            "X is a KernelBank that computes its rows on demand; give kernels= and X itself instead"
        )
    warn_indefinite(bank.indefinite)
    source = Given(bank.n_kernels, bank.n_samples, list(bank.names))
    return source, source.pack(bank)
