"""Kernels, their parameters and checks, and the resolution of columns.

A *cue* is a set of columns of ``X``; a *kernel* compares two samples on one cue.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from cuelearn.expect import expect, expect_distinct, expect_list, expect_shape, expect_word, warn_user

METRICS = ("euclidean", "sqeuclidean", "cityblock", "chi2", "precomputed")

# Sensitive to the units of columns.
OF_SCALE = {"euclidean", "sqeuclidean", "cityblock"}

# Computed without making sparse columns dense.
SPARSE = {"product", "euclidean", "sqeuclidean"}

# Larger entries of X would overflow float64 when squared.
LARGEST = 1e150

# The same for float32, with a margin for polynomials.
LARGEST_SINGLE = 1e15

# Largest accepted |K - K.T|, relative to the largest entry.
SYMMETRY_TOLERANCE = 1e-5

# Range of a kernel's largest diagonal entry, for products with coefficients in float32.
SMALLEST_KERNEL = 1e-20
LARGEST_KERNEL = 1e20

MISSING = ("error", "zero")

# Fewest samples for which spreads are compared, and most that are used.
SPREAD_SAMPLES = 20, 1000

# Largest spread of a cue's columns, relative to the median. On five sets an RBF kernel with a fifth of the
# columns 20 times as wide lost 2 to 18 points.
LARGEST_SPREAD = 20

# Block size for k(x, x) of a function.
OWN_ROWS = 64


@dataclass(frozen=True)
class Kernel:
    """Base class of the kernels: an immutable, hashable set of parameters, checked at construction.

    :class:`KernelBank` binds it to columns of ``X``, resolves ``scale="mean"`` and computes it. `quantity` is
    its input: "product", a distance, or a precomputed "distance matrix" or "kernel matrix".

    Examples
    --------
    >>> from cuelearn.kernels import RBF, Kernel
    >>> isinstance(RBF(gamma=2.0), Kernel), RBF(gamma=2.0).get_params()
    (True, {'gamma': 2.0, 'scale': 'mean', 'factor': 1.0})
    """

    # of products; not annotated, hence no parameters
    degree = 1
    coef0 = 0.0

    def __post_init__(self):
        name = type(self).__name__
        gamma = getattr(self, "gamma", None)
        if gamma is not None:
            expect(f"{name}: gamma", gamma, above=0, hint="the papers' divisor is scale")
        if not hasattr(self, "scale"):
            return
        expect(f"{name}: scale", self.scale, above=0, words=("mean",))
        if gamma is not None and self.scale != "mean":
            raise ValueError(f"{name}: give gamma or scale, got gamma={gamma!r} and scale={self.scale!r}.")
        expect(f"{name}: factor", self.factor, above=0)
        if self.factor != 1 and not self.unresolved:
            raise ValueError(f"{name}: factor multiplies scale='mean' only, got {self}.")

    def __reduce__(self):  # a pickle calls the constructor
        return partial(type(self), **self.get_params()), ()

    @property
    def unresolved(self) -> bool:
        """Whether the scale is still to be computed from training samples."""
        return getattr(self, "scale", None) == "mean" and self.gamma is None

    def divisor(self, n_columns: int) -> float:
        """Divisor of the distance, or of the inner product of n_columns columns: 1 / gamma."""
        if getattr(self, "gamma", None) is not None:
            return 1.0 / float(self.gamma)
        return getattr(self, "scale", n_columns)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Linear(Kernel):
    r"""The linear kernel :math:`k(x, z) = \langle x, z \rangle`; normalised, the cosine similarity.

    Examples
    --------
    >>> from cuelearn.kernels import KernelBank, Linear
    >>> KernelBank([("length", Linear(), [0])], [[1.0], [2.0]], normalize=False).stack[0].tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """

    quantity = "product"

    def divisor(self, n_columns):
        return 1.0


@dataclass(frozen=True)
class FeatureMap(Linear):
    r"""The kernel of explicit features, :math:`k(x, z) = \langle \phi(x), \phi(z) \rangle`.

    A model of OM2, OBSCURE, PegasosMKL or UFOMKL with a hinge loss and only feature maps, or `Linear` beside
    one, keeps no samples: class scores are ``sum_f kernel_weights_[f] * features_f @ blocks_[f]``, with a
    list `blocks_` of weights (n_features, n_classes). Nor do KernelPerceptron with a feature map as kernel,
    PassiveAggressive and OnlineGradientDescent with one as `features`, alone or in OMCL: their scores are
    ``features @ coef_.T``.

    Parameters
    ----------
    transformer : transformer of scikit-learn, "passthrough" or None
        From columns to features, maybe sparse. One of texts, such as HashingVectorizer, gets one column of a
        DataFrame. A copy is fitted to the first samples; a fitted transformer is used as it is. "passthrough"
        and None leave the columns unchanged. Float32 columns of an array stay in float32, which takes half
        the time.

    Examples
    --------
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> from cuelearn.kernels import FeatureMap, KernelBank
    >>> bank = KernelBank([("size", FeatureMap(RBFSampler(random_state=0)), [0])], [[0.0], [1.0]])
    >>> bank.stack.shape, bank.diagonal.tolist()
    ((1, 2, 2), [[1.0, 1.0]])
    """

    transformer: Any = None

    def __post_init__(self):
        known = self.is_identity or hasattr(self.transformer, "transform")
        if not known or isinstance(self.transformer, type):
            raise TypeError(
                "FeatureMap: transformer must be a transformer of scikit-learn, 'passthrough' or None, got "
                f"{self.transformer!r}"
            )

    @property
    def is_identity(self) -> bool:
        return self.transformer in (None, "passthrough")

    @cached_property
    def takes_text(self) -> bool:
        """Whether the cue is a column of texts."""
        if self.is_identity:
            return False
        from sklearn.utils import get_tags  # slow to import

        tags = get_tags(self.transformer).input_tags
        return tags.string and not tags.two_d_array

    def __sklearn_clone__(self):
        return self  # nothing changes it, and a fitted transformer stays fitted

    def fit(self, columns: Any) -> Self:
        """The map with a fitted transformer."""
        if self.is_identity:
            return self
        from sklearn.base import clone
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        try:
            check_is_fitted(self.transformer)
        except NotFittedError:
            return replace(self, transformer=clone(self.transformer).fit(columns))
        return self

    def columns_of(self, X: Any, index: Sequence[int] | np.ndarray, name: str, missing: bool = False) -> Any:
        """Numbers, as in `extract_columns`, or one column of texts."""
        if not self.takes_text:
            return extract_columns(X, index, name, missing=missing, single=True)
        if len(index) != 1:
            raise ValueError(f"cue {name!r}: texts must be one column, got {len(index)}")
        column = X.iloc[:, index[0]] if is_frame(X) else X[:, index[0]]
        return np.array([str(text) for text in column], dtype=object)  # str would be as wide as the longest

    def transform(self, columns: Any, name: str = "features") -> Any:
        """Features (n, n_features), float32 or float64, maybe sparse; ValueError if they are not finite."""
        if self.is_identity:
            return columns.copy()
        features = self.transformer.transform(columns)
        features = csr_array(features) if issparse(features) else np.asarray(features)
        entries = features.data if issparse(features) else features
        if features.ndim != 2 or not largest_entry(entries) <= LARGEST:
            raise ValueError(f"cue {name!r}: features must be finite, of shape (n_samples, n_features)")
        return features if features.dtype == np.float32 else features.astype(np.float64, copy=False)


@dataclass(frozen=True)
class Poly(Kernel):
    r"""The polynomial kernel :math:`k(x, z) = (\gamma \langle x, z \rangle + c_0)^{\text{degree}}`,
    scikit-learn's ``polynomial_kernel`` before normalisation.

    Parameters
    ----------
    degree : int >= 1, default=2
    coef0 : float >= 0, default=1.0
        :math:`c_0`; a negative value would not give a kernel.
    gamma : float > 0, optional
        By keyword; default 1 / number of columns of the cue.

    Examples
    --------
    >>> from cuelearn.kernels import Poly
    >>> Poly(degree=3)
    Poly(degree=3, coef0=1.0, gamma=None)
    """

    quantity = "product"
    degree: int = 2
    coef0: float = 1.0
    gamma: float | None = field(default=None, kw_only=True)

    def __post_init__(self):
        expect("Poly: degree", self.degree, kind="int", low=1)
        expect("Poly: coef0", self.coef0, low=0)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class RBF(Kernel):
    r"""The Gaussian kernel :math:`k(x, z) = \exp(-\gamma \|x - z\|^2)`, or :math:`\exp(-\|x - z\|^2 /
    \text{scale})`.

    Parameters are by keyword; give `gamma` or `scale`.

    Parameters
    ----------
    gamma : float > 0, optional
        As in scikit-learn's ``rbf_kernel``.
    scale : "mean" or float > 0, default="mean"
        The divisor of the papers, in the squared unit of the cue; ``"mean"`` is `factor` times the mean of
        :math:`\|x_i - x_{i'}\|^2` over all training pairs :math:`i \ne i'`.
    factor : float > 0, default=1.0
        Only with ``scale="mean"``.

    Examples
    --------
    >>> from cuelearn.kernels import RBF, KernelBank
    >>> bank = KernelBank([("size", RBF(), [0])], [[0.0], [1.0], [3.0]])
    >>> round(bank.kernels_[0].scale, 3)  # the mean of 1, 4 and 9
    4.667
    """

    quantity = "sqeuclidean"
    gamma: float | None = None
    scale: float | Literal["mean"] = "mean"
    factor: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Chi2(Kernel):
    r"""The exponential chi-squared kernel for histograms, :math:`k(x, z) = \exp(-\gamma d(x, z))`, or
    :math:`\exp(-d(x, z) / \text{scale})`.

    .. math:: d(x, z) = \sum_c \frac{(x_c - z_c)^2}{x_c + z_c}, \qquad 0/0 = 0 .

    The cue must be non-negative.

    Parameters
    ----------
    gamma, scale, factor
        As in `RBF`, with this distance; `gamma` as in scikit-learn's ``chi2_kernel``.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import Chi2, kernel_values
    >>> kernel_values(Chi2(gamma=1.0), np.array([[3.0, 1.0]]), np.array([[1.0, 3.0]])).round(3)  # exp(-2)
    array([[0.135]])
    """

    quantity = "chi2"
    gamma: float | None = None
    scale: float | Literal["mean"] = "mean"
    factor: float = 1.0


@dataclass(frozen=True)
class ExpDistance(Kernel):
    r"""The exponential of a distance, :math:`k(x, z) = \exp(-\gamma d(x, z))`, or :math:`\exp(-d(x, z) /
    \text{scale})`.

    Parameters
    ----------
    metric : {"euclidean", "sqeuclidean", "cityblock", "chi2", "precomputed"}, default="euclidean"
        The distance d; "sqeuclidean" is :class:`RBF`, "chi2" :class:`Chi2`. With ``"precomputed"`` the cue's
        columns are the distances to the training samples, in their order: (n, n) for training, symmetric,
        non-negative, with zero diagonal; (rows, n) for new samples.
    gamma, scale, factor
        As in `RBF`, with this distance.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import ExpDistance, kernel_values
    >>> steps = ExpDistance("cityblock", gamma=0.5)
    >>> kernel_values(steps, np.zeros((1, 2)), np.ones((1, 2))).round(3)  # exp(-0.5 * 2)
    array([[0.368]])
    """

    metric: Literal["euclidean", "sqeuclidean", "cityblock", "chi2", "precomputed"] = "euclidean"
    gamma: float | None = field(default=None, kw_only=True)
    scale: float | Literal["mean"] = field(default="mean", kw_only=True)
    factor: float = field(default=1.0, kw_only=True)

    def __post_init__(self):
        expect_word("ExpDistance: metric", self.metric, METRICS)
        super().__post_init__()

    @property
    def quantity(self) -> str:
        if self.metric == "precomputed":
            return "distance matrix"
        return self.metric


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A precomputed kernel: the cue's columns are its values with the training samples, in their order.

    They are (n, n) for training, symmetric with a non-negative diagonal, and (rows, n) for new samples; they
    are not normalised, since the diagonal of new samples is unknown.

    Examples
    --------
    >>> from cuelearn.kernels import KernelBank, Precomputed
    >>> KernelBank([("given", Precomputed(), [0, 1])], [[1.0, 0.5], [0.5, 1.0]]).stack[0].tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """

    quantity = "kernel matrix"


@dataclass(frozen=True)
class Function(Kernel):
    """A kernel computed by a function, which can be passed in place of it.

    Parameters
    ----------
    function : callable
        ``function(A, B)`` maps float64 arrays (a, d) and (b, d) of one cue to the matrix (a, b) of
        :math:`k(x, z)`, symmetric, positive semidefinite, finite. It is called for tiles of the matrix,
        possibly in several threads. A model with it cannot be saved.

    Examples
    --------
    >>> from sklearn.metrics.pairwise import cosine_similarity
    >>> from cuelearn.kernels import Function, KernelBank
    >>> bank = KernelBank([("angle", cosine_similarity, [0, 1])], [[1.0, 0.0], [0.0, 2.0]])
    >>> bank.kernels_[0] == Function(cosine_similarity), bank.stack[0].tolist()
    (True, [[1.0, 0.0], [0.0, 1.0]])
    """

    quantity = "function"
    function: Callable

    def __post_init__(self):
        if not callable(self.function) or isinstance(self.function, type):
            raise TypeError(
                "a kernel must be a Kernel such as RBF(), a name in KERNELS or a function of two arrays, got "
                f"{self.function!r}."
            )

    def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """The matrix of A (a, d) and B (b, d), float64; ValueError unless it is finite, of shape (a, b)."""
        A = np.asarray(A, dtype=np.float64)
        B = np.asarray(B, dtype=np.float64)
        name = f"kernel {self.function!r}"
        values = expect(name, self.function(A, B), shape=(len(A), len(B)), least=0)
        check_entries(values, name)
        return np.ascontiguousarray(values)

    def own(self, A: np.ndarray) -> np.ndarray:
        """k(x, x) of each row; ValueError if the values on these rows are not those of a kernel."""
        diagonals = [np.zeros(0)]
        for start in range(0, len(A), OWN_ROWS):
            part = A[start : start + OWN_ROWS]
            values = self(part, part)
            rounding = SYMMETRY_TOLERANCE * np.abs(values).max()
            check_symmetric(values, f"kernel {self.function!r}")
            diagonals.append(np.diagonal(values))
            if np.abs(values[diagonals[-1] == 0.0]).max(initial=0.0) > rounding:
                raise ValueError(
                    f"kernel {self.function!r} must not have k(x, x) = 0 where k(x, z) is not 0; for a "
                    "distance d, use exp(-d)."
                )
        own = np.concatenate(diagonals)
        expect(f"the diagonal of kernel {self.function!r}", own, shape=("n",), low=0, least=0)
        check_entries(own, f"kernel {self.function!r}")
        return own


#: Kernels with default parameters by name. Entries can be added: ``KERNELS["mine"] = RBF(gamma=2.0)``, or a
#: function.
KERNELS = {
    "linear": Linear(),
    "poly": Poly(),
    "rbf": RBF(),
    "laplacian": ExpDistance("cityblock"),
    "exponential": ExpDistance(),
    "chi2": Chi2(),
    "precomputed": Precomputed(),
}


def as_kernel(kernel: Kernel | str | Callable) -> Kernel:
    """A `Kernel`, a name in `KERNELS` or a function of two arrays as a `Kernel`.

    TypeError for other types, ValueError for an unknown name.

    Examples
    --------
    >>> from cuelearn.kernels import as_kernel
    >>> as_kernel("chi2")
    Chi2(gamma=None, scale='mean', factor=1.0)
    """
    if isinstance(kernel, str):
        kernel = KERNELS[expect_word("a kernel's name", kernel, KERNELS)]
    if isinstance(kernel, Kernel):
        return kernel
    return Function(kernel)


def check_kernels(kernels):
    """Checked (name, Kernel, columns) triples with unique names.

    A kernel or its name without columns is that of all columns, as is a kernel in place of the list.
    """
    if isinstance(kernels, Kernel):
        kernels = [kernels]
    checked = []
    for number, triple in enumerate(expect_list("kernels", kernels, "(name, kernel, columns) triples")):
        if isinstance(triple, (str, Kernel)):
            name = triple
            if not isinstance(triple, str):
                name = type(triple).__name__.lower()
            known = {name for name, _, _ in checked}
            triple = f"{name} {number}" if name in known else name, triple, slice(None)
        if not isinstance(triple, Sequence) or len(triple) != 3 or not isinstance(triple[0], str):
            raise ValueError(
                f"kernels must hold (name, kernel, columns) triples with a string as name, got {triple!r}."
            )
        name, kernel, columns = triple
        try:
            checked.append((name, as_kernel(kernel), columns))
        except (TypeError, ValueError) as error:
            raise type(error)(f"kernels: {name!r} must come with a kernel: {error}") from None
    expect_distinct("the names of kernels", [name for name, _, _ in checked])
    return checked


def check_first_batch(kernels, n_samples):
    """ValueError if a stream's first batch of one sample should set the scale of a kernel."""
    for kernel in kernels:
        if n_samples < 2 and kernel.unresolved:
            raise ValueError(
                f"kernel {kernel!r} takes its scale from the first batch, which must hold at least 2 samples "
                f"(better some dozens), got {n_samples}: give gamma or scale as a number"
            )


def is_frame(X):
    return hasattr(X, "iloc") and hasattr(X, "columns")


def as_samples(X):
    """X; a list of blocks of columns, some sparse, as one csr_array, and data frames of other libraries, such
    as polars, as those of pandas."""
    if isinstance(X, (list, tuple)) and any(map(issparse, X)):
        shapes = [np.shape(block) for block in X]
        if any(len(shape) != 2 for shape in shapes) or len({shape[0] for shape in shapes}) > 1:
            raise ValueError(f"X as a list of blocks must hold matrices of the same samples, got {shapes}")
        return csr_array(hstack(X))
    names = getattr(X, "columns", None)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return X
    import pandas as pd  # slow to import

    return pd.DataFrame({name: np.asarray(X[name]) for name in names})


def check_samples(X, name="X"):
    """X as a DataFrame, a 2-D array or a csr_array, its shape, and its column names or None."""
    X = as_samples(X)
    if is_frame(X):
        return X, *X.shape, list(X.columns)
    X = csr_array(X) if issparse(X) else np.asarray(X)
    hint = "precomputed stacks (n_kernels, n, n) go to KernelBank.from_stack"
    expect_shape(name, X, ("n_samples", "n_features"), hint)
    return X, *X.shape, None


def feature_places(feature_names):
    """{column name: index}, -1 for a duplicate name; None without names."""
    if feature_names is None:
        return None
    places = {}
    for i, label in enumerate(feature_names):
        places[label] = -1 if label in places else i
    return places


def place_of(name, label, places, kind="cue"):
    if places is None:
        raise ValueError(f"{kind} {name!r}: columns by name need a DataFrame, got {label!r}.")
    if places.get(label, -1) < 0:
        raise ValueError(f"{kind} {name!r}: column {label!r} is not in X, or more than once.")
    return places[label]


def resolve_columns(name, columns, X, n_features, places, kind="cue"):
    """The integer indices, at least one, that a ColumnTransformer column specification selects.

    `places` comes from `feature_places`; `kind` ("cue", "prior") describes `name` in errors.
    """
    where = f"{kind} {name!r}: columns"
    if callable(columns):
        columns = columns(X)
    if isinstance(columns, slice):
        start = columns.start
        stop = columns.stop
        if isinstance(start, str) or isinstance(stop, str):  # by label, the stop included
            if start is not None:
                start = place_of(name, start, places, kind)
            if stop is not None:
                stop = place_of(name, stop, places, kind) + 1
        for end in (start, stop):
            if end is not None:
                expect(where, end, kind="int", low=-n_features, high=n_features)
        index = np.arange(n_features)[slice(start, stop, columns.step)]
    else:
        items = [columns]
        if hasattr(columns, "__iter__") and not isinstance(columns, str):
            items = list(columns)
        kinds = set(map(type, items))
        if kinds & {bool, np.bool_}:
            index = np.flatnonzero(expect(where, items, kind="bool", shape=(n_features,)))
        else:
            if any(issubclass(kind, str) for kind in kinds):
                items = [place_of(name, i, places, kind) if isinstance(i, str) else i for i in items]
            limits = {"low": -n_features, "high": n_features - 1, "least": 0}
            hint = "names, a mask, a slice and a function are accepted, too"
            index = expect(where, items, kind="int", shape=("n",), **limits, hint=hint) % n_features
    expect_list(where, index, "columns")
    return index.astype(np.intp)


def extract_columns(X, index, name, kind="cue", missing=False, single=False):
    """A float64 copy of the columns `index` of X, which must be real, finite and at most `LARGEST`; sparse
    columns without zeros, in order. With `missing` dense columns may hold NaN; with `single`, columns of an
    array that float32 holds stay in it."""
    frame = is_frame(X)
    try:
        run = as_range(index)
        values = X.iloc[:, index] if frame else X[:, index if run is None else run]
        if frame:
            dtypes = values.dtypes
        else:
            dtypes = [values.dtype]
        if any(dtype.kind in "cmM" for dtype in dtypes):
            raise ValueError("got complex numbers or times")
        if frame:
            values = values.to_numpy(np.float64, copy=True, na_value=np.nan)
        else:
            narrow = single and np.can_cast(values.dtype, np.float32)
            values = values.astype(np.float32 if narrow else np.float64)
    except (TypeError, ValueError) as error:
        if len(index) > 1 and not issparse(X):
            for i in index:  # find the column
                extract_columns(X, np.array([i]), name, kind, missing)
        category = ValueError
        if isinstance(error, TypeError):
            category = TypeError
        raise category(f"{_column(X, index[0], name, kind)} must hold real numbers ({error}).") from None
    entries = values
    if issparse(values):
        values.sum_duplicates()
        values.eliminate_zeros()
        entries = values.data
    elif missing:
        entries = np.where(np.isnan(values), 0.0, values)
    if not largest_entry(entries) <= LARGEST:
        invalid = ~(np.abs(entries) <= LARGEST)
        c = values.indices[np.argmax(invalid)] if issparse(values) else np.argmax(invalid.any(axis=0))
        column = _column(X, index[c], name, kind)
        raise ValueError(f"{column} holds NaN or infinite values, or values beyond {LARGEST:g}.")
    return values


def lacking(values, what):
    """Which rows are all NaN, (n,); ValueError for a row that is so in part."""
    unknown = np.isnan(values)
    absent = unknown.all(axis=1)
    partial = np.flatnonzero(unknown.any(axis=1) & ~absent)
    if partial.size:
        raise ValueError(
            f"{what}: sample {partial[0]} must have numbers in all columns, or NaN in all if it lacks the cue"
        )
    return absent


def refuse_empty(absent):
    """ValueError for a sample that lacks all cues; `absent` has a row for each cue, or none."""
    empty = np.flatnonzero(np.all(absent, axis=0))
    if len(absent) and empty.size:
        raise ValueError(f"X must hold at least one cue of every sample, got none of sample {empty[0]}")


def _column(X, i, name, kind):
    return f"{kind} {name!r}: column {X.columns[i] if is_frame(X) else int(i)!r} of X"


class FeatureScaleWarning(UserWarning):
    """The columns of a cue differ so much in spread that a distance depends on few of them.

    It is issued once per fit if the interquartile range of a column is at least 20 times the median of all
    columns. Columns with interquartile range 0, such as mostly empty bins of a histogram, do not count. Use a
    `StandardScaler` in a `Pipeline`.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from cuelearn.kernels import FeatureScaleWarning
    >>> from cuelearn.mkl import AverageKernelSVM
    >>> X, y = load_wine(return_X_y=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", FeatureScaleWarning)
    ...     raw = AverageKernelSVM().fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    >>> scaled = make_pipeline(StandardScaler(), AverageKernelSVM()).fit(X[::2], y[::2])
    >>> bool(scaled.score(X[1::2], y[1::2]) > raw + 0.1)
    True
    """


def uneven_spread(values):
    """Whether a `FeatureScaleWarning` is due; not for histograms, whose rows have equal sums."""
    least, most = SPREAD_SAMPLES
    n = values.shape[0]
    if n < least:
        return False
    rows = np.linspace(0, n - 1, min(n, most)).astype(int)
    values = values[rows]
    sums = np.asarray(values.sum(axis=1))
    if values.shape[1] > 2 and values.min() >= 0.0 and np.ptp(sums) <= 0.01 * sums.max():
        return False
    if issparse(values):  # fewer entries than a quarter leave the range at 0
        n_entries = np.bincount(values.indices, minlength=values.shape[1])
        values = values[:, np.flatnonzero(4 * n_entries > len(rows) - 1)].toarray()
    low, high = np.percentile(values, [25, 75], axis=0)
    spreads = np.sort((high - low)[high > low])
    return spreads.size > 1 and spreads[-1] >= LARGEST_SPREAD * spreads[(spreads.size - 1) // 2]


def warn_of_spread(names):
    """`names` are those of cues, or "kernel" for a learner without cues."""
    owner = "the kernel"
    if names != ["kernel"]:
        owner = f"cue {', '.join(map(repr, names))}"
    warn_user(
        f"the columns of {owner} differ in spread by a factor of {LARGEST_SPREAD} "
        "or more, so distances depend on few of them; unless they are counts, scale them: "
        "make_pipeline(StandardScaler(), model)",
        FeatureScaleWarning,
    )


def check_nonnegative(values, what):
    lowest = values.min(initial=0.0)
    if lowest < 0:
        raise ValueError(f"{what}: chi2 and distances need non-negative values, got {lowest:.3g}.")


def check_symmetric(matrix, what):
    asymmetry = np.abs(matrix - matrix.T).max()
    if asymmetry > SYMMETRY_TOLERANCE * np.abs(matrix).max():
        raise ValueError(f"{what} must be symmetric, got entries that differ by {asymmetry:.3g}")


def largest_entry(values):
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def check_entries(values, name):
    """ValueError for kernel values, maybe a stack, that are not finite or so large that sums overflow."""
    if values.ndim == 3 and len(values) > 1:
        for j, kernel in enumerate(values):
            check_entries(kernel, f"kernel {j} of {name}")
        return
    largest = largest_entry(values)
    if not math.isfinite(largest):
        raise ValueError(f"{name} holds NaN or infinite values.")
    if largest > LARGEST_KERNEL:
        raise ValueError(
            f"{name} holds kernel values up to {largest:.3g}, which must be at most {LARGEST_KERNEL:g}: "
            "divide by the mean diagonal of the training kernel."
        )


def check_size(X, dtype):
    """X; ValueError if squares of its entries overflow `dtype`."""
    dtype = np.dtype(dtype)
    limit = LARGEST
    if dtype == np.float32:
        limit = LARGEST_SINGLE
    largest = largest_entry(X)
    if largest > limit:
        raise ValueError(
            f"X must hold no values beyond {limit:g} in {dtype}, got {largest:.3g}: scale it, or use float64 "
            "for all samples"
        )
    return X


def check_scale(what, diagonal, least=SMALLEST_KERNEL):
    """ValueError for the scale of a kernel with this diagonal; zeros are allowed."""
    largest = float(diagonal.max(initial=0.0))
    if largest != 0.0 and not least <= largest <= LARGEST_KERNEL:
        raise ValueError(
            f"{what} must have a largest diagonal entry between {SMALLEST_KERNEL:g} and {LARGEST_KERNEL:g}, "
            f"got {largest:.3g}: divide it by its mean diagonal."
        )


def as_range(index):
    """`index` as a slice if it is a run of consecutive integers, else None."""
    if len(index) and index[-1] - index[0] == len(index) - 1 and np.all(np.diff(index) == 1):
        return slice(int(index[0]), int(index[-1]) + 1)
    return None
