"""Sources of kernel values: columns of X, or given matrices."""

import numpy as np

from cuelearn.kernels import RBF, Chi2, CrossBank, Function, KernelBank, KernelStack, Linear, Poly
from cuelearn.kernels.definite import warn_indefinite
from cuelearn.kernels.growing import inverse_root
from cuelearn.kernels.specifications import check_kernels, extract_columns
from cuelearn.kernels.stack import new_kernels, training_bank
from cuelearn.oks.predictors import (
    CHI2,
    CITYBLOCK,
    EUCLIDEAN,
    GIVEN,
    LINEAR,
    POLY,
    SQEUCLIDEAN,
    Kernels,
    Samples,
    self_values,
)

__all__ = ["Columns", "Given", "kind_kernels"]

#: Most samples for ``scale="mean"``: all pairs would cost a kernel matrix.
MEAN_SAMPLES = 500
KINDS = {"product": LINEAR, "euclidean": EUCLIDEAN, "sqeuclidean": SQEUCLIDEAN, "cityblock": CITYBLOCK}
KINDS["chi2"] = CHI2


def kind_of(name, kernel):
    """A kernel's number in compiled code; ValueError if not computed from X."""
    kind = POLY if isinstance(kernel, Poly) else KINDS.get(kernel.quantity)
    if kind is None:
        raise ValueError(
            f"kernels must be computed from X here, got {kernel!r} for {name!r}; kernels='precomputed' takes "
            "kernel matrices"
        )
    return kind


class Columns:
    """Kernels computed from columns of X; `triples` have resolved scales."""

    given = False

    def __init__(self, triples, normalize):
        self.triples = list(triples)
        self.names = [name for name, _, _ in triples]
        kernels = [kernel for _, kernel, _ in triples]
        columns = [tuple(c) for _, _, c in triples]
        distinct = list(dict.fromkeys(columns))  # kernels may share columns
        places = dict(zip(distinct, np.cumsum([0, *map(len, distinct)]).tolist(), strict=False))
        start = np.array([places[c] for c in columns])
        self.kernels = Kernels(
            np.array([kind_of(name, kernel) for name, kernel in zip(self.names, kernels, strict=True)]),
            np.array([k.divisor(len(c)) for k, c in zip(kernels, columns, strict=True)], dtype=np.float64),
            np.array([float(getattr(k, "coef0", 0.0)) for k in kernels]),
            np.array([int(getattr(k, "degree", 1)) for k in kernels]),
            start,
            start + [len(c) for c in columns],
        )
        self._columns = np.concatenate(distinct)
        self.width = self._columns.size
        self._scaled = np.isin(self.kernels.kind, (LINEAR, POLY)) & bool(normalize)

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
        for j in np.flatnonzero(self.kernels.kind == CHI2):
            if np.any(data[:, self.kernels.start[j] : self.kernels.stop[j]] < 0.0):
                name = self.names[j]
                raise ValueError(
                    f"X must not be negative in the columns of {name!r}, which has a chi-squared kernel"
                )
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
        if isinstance(X, KernelBank):  # already checked; no copy
            return Samples(np.empty((X.n_samples, 0)), np.empty((X.n_samples, 0)), X.stack)
        X = X.cross() if isinstance(X, KernelStack) else X
        if isinstance(X, CrossBank):
            X = np.concatenate([block for _, block in X.blocks()], axis=1)
        X = new_kernels(X, len(self), self.n_train)
        X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
        return Samples(np.empty((X.shape[1], 0)), np.empty((X.shape[1], 0)), X)


def has_functions(triples):
    return any(isinstance(kernel, Function) for _, kernel, _ in triples)


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


def kind_kernels(groups):
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
        for name, kernel, _ in triples:  # reject matrices, which cannot be subsampled
            kind_of(name, kernel)
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
