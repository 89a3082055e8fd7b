"""Kernels fitted to training samples: cues, scales, what they share, and what of them is kept in memory."""

import math
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from cuelearn.expect import expect_shape
from cuelearn.kernels import tiles
from cuelearn.kernels.matrices import look_at
from cuelearn.kernels.specifications import (
    OF_SCALE,
    SPARSE,
    SYMMETRY_TOLERANCE,
    FeatureMap,
    Function,
    Linear,
    as_range,
    check_nonnegative,
    check_samples,
    extract_columns,
    feature_places,
    lacking,
    largest_entry,
    place_of,
    refuse_empty,
    resolve_columns,
    uneven_spread,
    warn_of_spread,
)
from cuelearn.kernels.tiles import COLUMN_PAD, ROW_PAD, Form, Pair, Root, Rows, Side

MATRICES = {"distance matrix", "kernel matrix"}
# Most sparse columns of a cue that are made dense for a kernel without sparse products.
MOST_DENSE = 1_000
# Above the limit, the mean of a distance without a closed form uses MEAN_SUBSAMPLE `spaced` samples.
MEAN_EXACT_LIMIT = 20_000
MEAN_SUBSAMPLE = 5_000

# One product serves products and distances of a cue if centring reduces the mean squared norm by at most this
# factor, which cancellation costs the distances in digits.
SHARED_PRODUCT_LIMIT = 16.0

# A row with a norm below this fraction of its cue's largest entry counts as zero.
ZERO_NORM = 1e-15


def spaced(n):
    """At most `MEAN_SUBSAMPLE` of n samples, evenly spaced."""
    return np.linspace(0, n - 1, min(n, MEAN_SUBSAMPLE)).round().astype(np.intp)


class FittedKernels:
    """Kernels fitted to training samples X: cues, shared quantities, numeric scales, and the form of each.

    A *root* is a product or distance of one cue that several kernels share, a *form* says how a kernel
    follows from its root; `kernels` have numbers in place of ``scale="mean"``, and `train` holds the training
    rows.
    """

    missing = False  # of older files

    def __init__(self, triples, X, normalize, dtype, missing=False):
        X, n_samples, self.n_features, feature_names = check_samples(X)
        if n_samples == 0:
            raise ValueError("X must have at least one row, got none.")
        self.feature_names = None
        if feature_names is not None and all(isinstance(name, str) for name in feature_names):
            self.feature_names = feature_names
        self.normalize = normalize
        self.dtype = dtype
        self.missing = missing
        cues, wanted, cue_of = self._distinct_cues(triples, X, feature_places(feature_names))
        mean_squares = self._fit_cues(cues, wanted, X, n_samples)
        self.roots = []
        self.kernels = []
        self.forms = []
        means = {}
        for (_, kernel, _), c in zip(triples, cue_of, strict=True):
            if isinstance(kernel, FeatureMap):
                kernel = self.cues[c].map
            root = self._root_of(kernel.quantity, c, wanted[c])
            if kernel.unresolved:
                key = root, kernel.quantity
                if key not in means:
                    means[key] = self._mean_distance(*key, mean_squares[c])
                scale = kernel.factor * means[key]  # 0: all samples are equal, and any scale gives k = 1
                kernel = replace(kernel, scale=scale if scale > 0 else 1.0, factor=1.0)
            self.kernels.append(kernel)
            self.forms.append(self._form(kernel, root))
        factors = self.factors(self.train, range(len(self.forms)))
        self.train = self.train._replace(factors=factors)

    def _distinct_cues(self, triples, X, places):
        """One cue per distinct set of columns; the quantities of each; the number of each kernel's cue."""
        cues = []
        wanted = []
        cue_of = []
        numbers = {}
        for name, kernel, columns in triples:
            index = resolve_columns(name, columns, X, self.n_features, places)
            if issparse(X) and kernel.quantity not in SPARSE and len(index) > MOST_DENSE:
                raise ValueError(
                    f"kernel {name!r} takes at most {MOST_DENSE:,} sparse columns, got {len(index):,} for "
                    f"{kernel!r}: use Linear, Poly, RBF or Euclidean distances, or X.toarray()."
                )
            own = {}
            if isinstance(kernel, Function):
                own["function"] = kernel
            if isinstance(kernel, FeatureMap):
                own["map"] = kernel
            key = *index.tolist(), *own.values()
            if key not in numbers:
                numbers[key] = len(cues)
                cues.append(Cue(name, index, **own))
                wanted.append(set())
            wanted[numbers[key]].add(kernel.quantity)
            cue_of.append(numbers[key])
        return cues, wanted, cue_of

    def _fit_cues(self, cues, wanted, X, n_samples):
        """Set cues and training rows; returns each cue's mean squared norm after centring."""
        self.cues = []
        arrays = []
        mean_squares = []
        uneven = []
        absent = []
        for cue, quantities in zip(cues, wanted, strict=True):
            if quantities - SPARSE:
                cue = cue._replace(dense=True)
            values = cue.columns_of(X, cue.index, self.missing, {})
            lacks = np.zeros(n_samples, dtype=bool)
            if self.missing:
                if quantities & MATRICES and values.shape[1] == n_samples:
                    values = values[:, ~np.isnan(values).all(axis=1)]
                lacks = cue.absent(values)
                absent.append(lacks)
            if cue.map is not None:
                cue = cue._replace(map=cue.map.fit(_present(values, lacks)))
                values = cue.features(values, lacks)
            values = _present(values, lacks)
            if lacks.all():
                values = np.zeros((1, max(1, values.shape[1])))
            if quantities & OF_SCALE and uneven_spread(values):
                uneven.append(cue.name)
            fitted, held, mean_square = _fit_cue(cue, values, quantities, self.dtype)
            if lacks.any():
                fitted, held = _with_absent(fitted, held, lacks)
            self.cues.append(fitted)
            arrays.append(held)
            mean_squares.append(mean_square)
        if uneven:
            warn_of_spread(uneven)
        refuse_empty(absent)
        self.train = Side(n_samples, arrays, absent=absent)
        return mean_squares

    def _root_of(self, quantity, c, wanted):
        kind = quantity
        if quantity.endswith("matrix"):
            kind = "matrix"
        if kind in ("euclidean", "sqeuclidean"):
            kind = "sqeuclidean"
            if self.cues[c].shared:
                kind = "product"
        if "euclidean" in wanted:
            near = tiles.NEAR_EUCLIDEAN
        else:
            near = tiles.NEAR
        root = Root(c, kind, near, self.cues[c].function)
        if root not in self.roots:
            self.roots.append(root)
        return self.roots.index(root)

    def _mean_distance(self, r, metric, mean_square):
        """Mean distance of training pairs i != i', in fixed tiles unless it has a closed form."""
        side = self.train
        if side.absent:
            c = self.roots[r].cue
            here = np.flatnonzero(~side.absent[c])
            if here.size == 0:
                name = self.cues[c].name
                raise ValueError(f"cue {name!r}: no sample of X has it, so give gamma or scale as a number")
            side = side.take(here, COLUMN_PAD)
        n = side.n
        if n == 1:
            return 0.0
        if metric == "sqeuclidean":
            return 2.0 * mean_square * n / (n - 1)
        if n > MEAN_EXACT_LIMIT and metric != "distance matrix":
            side = side.take(spaced(n), COLUMN_PAD)
            n = side.n
        sums = {}

        def add(r, tile, base, pair):
            distance = pair.distance(self.roots[r], metric, tile, base)[tile.part]
            total = float(np.sum(distance, dtype=np.float64))
            if tile.r0 == tile.c0:  # rounding leaves the diagonal above 0
                sums[tile] = total - float(np.trace(distance, dtype=np.float64))
            else:
                sums[tile] = 2.0 * total

        self.upper(add, [r], side)
        total = float(np.sum([sums[tile] for tile in tiles.upper_tiles(n)]))
        return total / (n * (n - 1)) * self._unit(r, metric)

    def _unit(self, r, metric):
        """One unit of a root's scaled distance, in units of X."""
        cue = self.cues[self.roots[r].cue]
        if self.roots[r].source == "centred":
            scale = cue.centred_scale
        else:
            scale = cue.scale
        if metric == "sqeuclidean":
            return scale**2
        return scale

    def _form(self, kernel, r):
        quantity = kernel.quantity
        cue = self.cues[self.roots[r].cue]
        scale = cue.scale
        if quantity == "kernel matrix":
            return Form(r, quantity)
        if quantity == "function":  # like a product, with k(x, x) in place of the squared norm
            return Form(r, "product", scale**-2, pivot=scale)
        if quantity != "product":
            return Form(r, quantity, -self._unit(r, quantity) / kernel.divisor(len(cue.index)))
        if isinstance(kernel, Linear):
            return Form(r, quantity, pivot=scale)
        # gamma <x, z> + c0 = m p + c0 with p the product of scaled rows; the larger of m and c0 goes into
        # the factors, so that the constants stay in the range of float32
        m = scale**2 / kernel.divisor(len(cue.index))
        largest = max(m, float(kernel.coef0))
        return Form(r, quantity, m / largest, kernel.coef0 / largest, int(kernel.degree), math.sqrt(largest))

    def _own(self, side, f):
        """k(x, x) of a linear or polynomial kernel, before pivot and degree."""
        form = self.forms[f]
        return side.arrays[self.roots[form.root].cue]["plain"].norm * form.slope + form.offset

    def factors(self, side, kernels):
        factors = {}
        for f in kernels:
            if self.forms[f].quantity == "product" and self.normalize:
                own = self._own(side, f)
                zero = own <= ZERO_NORM**2
                factors[f] = np.where(zero, 0.0, 1.0 / np.sqrt(np.where(zero, 1.0, own))).astype(self.dtype)
            elif self.forms[f].quantity == "product":
                factors[f] = np.full(side.n, self.forms[f].pivot, self.dtype)
        return factors

    def diagonal(self):
        diagonal = np.ones((len(self.forms), self.train.n))
        for f, form in enumerate(self.forms):
            if form.quantity == "kernel matrix":
                diagonal[f] = np.diagonal(self.matrix_of(f))
            elif form.quantity == "product" and self.normalize:
                diagonal[f] = self.train.factors[f] > 0
            elif form.quantity == "product":
                diagonal[f] = (self._own(self.train, f) * form.pivot**2) ** form.degree
            if self.train.absent:
                diagonal[f, self.train.absent[self.roots[form.root].cue]] = 0.0
        return diagonal

    def upper(self, work, roots, side):
        """Call ``work(r, tile, base, pair)`` for the upper triangles of the roots."""
        pair = Pair(side, side)

        def compute(task):
            r, tile = task
            work(r, tile, pair.base(self.roots[r], tile), pair)

        tasks = [(r, tile) for r in roots for tile in tiles.upper_tiles(side.n)]
        tiles.run(compute, tasks, len(roots) * side.n**2)

    def cues_of(self, kernels):
        return {self.roots[self.forms[f].root].cue for f in kernels}

    def new_side(self, X_new, needed):
        X_new, rows, _, feature_names = check_samples(X_new, "X_new")
        by_name = self.feature_names is not None and feature_names is not None
        if not by_name:
            expect_shape("X_new", X_new, ("n_samples", self.n_features))
        places = feature_places(feature_names)
        arrays = []
        absent = []
        shared = {}
        for c, cue in enumerate(self.cues):
            if c not in needed and not self.missing:
                arrays.append({})
                continue
            index = cue.index
            if by_name:
                index = np.array([place_of(cue.name, self.feature_names[i], places) for i in index])
            raw = cue.columns_of(X_new, index, self.missing, shared)
            lacks = np.zeros(rows, dtype=bool)
            if self.missing:
                known = slice(None)
                if cue.take is not None:
                    known = cue.take[~self.train.absent[c]]
                lacks = cue.absent(raw, known)
                absent.append(lacks)
            if c not in needed:
                arrays.append({})
                continue
            if cue.map is not None:
                raw = cue.features(raw, lacks)
            elif self.missing and not issparse(raw):
                if cue.function is not None:
                    raw[lacks] = self.train.arrays[c]["plain"].values[0]
                raw[np.isnan(raw)] = 0.0
            arrays.append(cue.arrays(raw, self.dtype))
        refuse_empty(absent)
        return Side(rows, arrays, absent=absent)

    @property
    def columns(self):
        return [self.cues[self.roots[form.root].cue].index.tolist() for form in self.forms]

    def matrix_of(self, f):
        return self.train.arrays[self.roots[self.forms[f].root].cue]["matrix"].values

    def restrict(self, index):
        """The same kernels on the training samples `index`."""
        new = copy(self)
        new.train = self.train.take(index, COLUMN_PAD)._replace(index=None)
        new.cues = [cue if cue.take is None else cue._replace(take=cue.take[index]) for cue in self.cues]
        for held in new.train.arrays:
            if "matrix" in held:
                held["matrix"] = Rows(np.ascontiguousarray(held["matrix"].values[:, index]))
        return new

    def select(self, index):
        new = copy(self)
        new.kernels = [self.kernels[f] for f in index]
        new.forms = [self.forms[f] for f in index]
        factors = {k: self.train.factors[f] for k, f in enumerate(index) if f in self.train.factors}
        new.train = self.train._replace(factors=factors)
        return new

    def _state(self):
        return {**vars(self), "dtype": self.dtype.name}

    @classmethod
    def _from_state(cls, state):
        self = cls.__new__(cls)
        vars(self).update(state, dtype=np.dtype(state["dtype"]))
        widths = [{len(self.kernels), len(self.forms)}]
        for cue, held in zip(self.cues, self.train.arrays, strict=True):
            read = [rows.values.shape[1] for source, rows in held.items() if source != "matrix"]
            if cue.map is None:
                read.append(len(cue.index))
            widths.append({*read} | (set() if cue.centre is None else {len(cue.centre)}))
        if any(len(sizes) > 1 for sizes in widths):
            raise ValueError("a bank with kernels or cues of different widths")
        return self


class Cue(NamedTuple):
    """One set of columns: how raw rows become the arrays from which tiles are computed.

    ``plain = x / scale`` and ``centred = (x - centre) / centred_scale``; the scales are powers of two
    (division is exact) that bring entries into [-1, 1], so that squares stay in the range of float32.
    """

    name: str  # of the first kernel, for messages
    index: np.ndarray  # columns of X
    sources: tuple = ()  # which of centred and plain, in this order
    nonnegative: bool = False  # whether negative entries are an error
    scale: float = 1.0
    centre: np.ndarray | None = None
    centred_scale: float = 1.0
    shared: bool = False  # one product serves products and distances
    dense: bool = False  # whether its columns of sparse samples are made dense
    take: np.ndarray | None = None  # of a precomputed matrix: columns of the training samples
    function: Function | None = None  # gets the raw rows
    sparse: bool = False  # the training rows are; not centred, both scales are equal
    map: FeatureMap | None = None  # from the columns to the rows

    def columns_of(self, X, index, missing, shared):
        """The cue's columns of X; `shared` keeps those of feature maps, which do not change them."""
        if self.map is not None:
            key = self.map.takes_text, *index.tolist()
            if key not in shared:
                shared[key] = self.map.columns_of(X, index, self.name, missing)
            return shared[key]
        values = extract_columns(X, index, self.name, missing=missing)
        if self.dense and issparse(values):
            return values.toarray()
        return values

    def absent(self, columns, known=slice(None)):
        """Which samples lack the cue: all their `known` columns are NaN."""
        if issparse(columns) or columns.dtype == object:
            return np.zeros(columns.shape[0], dtype=bool)
        return lacking(columns[:, known], f"cue {self.name!r}")

    def features(self, columns, absent):
        """Those of a feature map, 0 for samples that lack the cue."""
        if not absent.any():
            return self.map.transform(columns, self.name)
        features = self.map.transform(np.where(absent[:, None], 0.0, columns), self.name)
        if issparse(features):
            raise ValueError(f"cue {self.name!r}: missing='zero' needs features that are not sparse")
        features[absent] = 0.0
        return features

    def scaled(self, raw):
        """{source: (scaled rows, squared norms)} in float64; overwrites `raw`."""
        scaled = {}
        for source in self.sources:
            if source == "centred":
                rows = raw - self.centre
                rows /= self.centred_scale
            else:  # the last source
                rows = np.divide(raw, self.scale, out=raw)
            scaled[source] = rows, np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        return scaled

    def arrays(self, raw, dtype):
        if self.sparse:
            rows = csr_array(raw) / self.scale
            return dict.fromkeys(self.sources, Rows(rows, rows.power(2).sum(axis=1)))
        if issparse(raw):
            raw = raw.toarray()
        if self.nonnegative:
            check_nonnegative(raw, f"cue {self.name!r}")
        if self.take is not None:
            return {"matrix": Rows(raw[:, self.take].astype(dtype))}
        if self.function is not None:
            return {"plain": Rows(tiles.padded(raw, np.float64, ROW_PAD), self.function.own(raw))}
        return {
            source: Rows(tiles.padded(rows, dtype, ROW_PAD), norm)
            for source, (rows, norm) in self.scaled(raw).items()
        }


def _present(rows, absent):
    if absent.any():
        return rows[~absent]
    return rows


def _with_absent(cue, held, absent):
    """Cue and arrays of all samples; absent ones get a neighbour's."""
    places = np.maximum(0, np.cumsum(~absent) - 1)
    held = Side(len(places), [held]).take(places, COLUMN_PAD).arrays[0]
    if cue.take is not None:
        held = {"matrix": Rows(np.ascontiguousarray(held["matrix"].values[:, places]))}
        cue = cue._replace(take=np.arange(len(places)))
    return cue, held


def _fit_cue(cue, raw, wanted, dtype):
    """The fitted cue, its arrays, and their mean squared norm after centring."""
    name = cue.name
    if issparse(raw):
        return _fit_sparse_cue(cue, raw, wanted)
    if cue.function is not None:
        arrays = cue.arrays(raw, dtype)
        return cue._replace(scale=_power_of_two(np.sqrt(arrays["plain"].norm))), arrays, 0.0
    cue = cue._replace(nonnegative=bool(wanted & {"chi2", "distance matrix"}))
    if wanted & MATRICES:
        if len(wanted) > 1:
            raise ValueError(
                f"cue {name!r}: columns of a precomputed matrix cannot be used by other kernels, got "
                f"{sorted(wanted)}."
            )
        matrix = _training_matrix(raw, name, cue.nonnegative, dtype)
        return cue._replace(take=np.arange(len(raw))), {"matrix": Rows(matrix)}, 0.0
    if cue.nonnegative:
        check_nonnegative(raw, f"cue {name!r}")
    euclidean = bool(wanted & {"sqeuclidean", "euclidean"})
    if euclidean or "cityblock" in wanted:
        centre = raw.mean(axis=0)
        scale = _power_of_two(np.stack([raw.min(axis=0), raw.max(axis=0)]) - centre)
        cue = cue._replace(sources=("centred",), centre=centre, centred_scale=scale)
    if wanted & {"product", "chi2"}:
        cue = cue._replace(sources=(*cue.sources, "plain"), scale=_power_of_two(raw))
    scaled = cue.scaled(raw)
    mean_square = 0.0
    if euclidean:
        mean_square = float(scaled["centred"][1].mean()) * cue.centred_scale**2
    if euclidean and "product" in wanted:
        plain_square = float(scaled["plain"][1].mean()) * cue.scale**2
        cue = cue._replace(shared=plain_square <= SHARED_PRODUCT_LIMIT * mean_square)
        if cue.shared and "cityblock" not in wanted:
            cue = cue._replace(sources=("plain",))
            del scaled["centred"]
    arrays = {s: Rows(tiles.padded(rows, dtype, COLUMN_PAD), norm) for s, (rows, norm) in scaled.items()}
    return cue, arrays, mean_square


def _fit_sparse_cue(cue, raw, wanted):
    """Without centring, which would fill the zeros, and therefore in float64."""
    cue = cue._replace(sparse=True, scale=_power_of_two(raw.data), sources=("plain", "centred"))
    rows, norm = cue.arrays(raw, np.float64)["plain"]
    n = len(norm)
    mean = rows.sum(axis=0) / n
    n_zeros = n - np.bincount(rows.indices, minlength=len(mean))
    mean_square = float(np.sum((rows.data - mean[rows.indices]) ** 2) + np.sum(n_zeros * mean**2)) / n
    product = "product" in wanted
    shared = product and float(norm.mean()) <= SHARED_PRODUCT_LIMIT * mean_square
    if shared or wanted == {"product"}:
        sources = ("plain",)
    elif product:
        sources = ("centred", "plain")
    else:
        sources = ("centred",)
    cue = cue._replace(sources=sources, shared=shared, centred_scale=cue.scale)
    return cue, dict.fromkeys(sources, Rows(rows, norm)), mean_square * cue.scale**2


def _training_matrix(raw, name, distance, dtype):
    """A checked precomputed matrix, made exactly symmetric."""
    what = f"cue {name!r}: the precomputed {'distance' if distance else 'kernel'} matrix"
    n = len(raw)
    expect_shape(what, raw, ("n", "n"))
    matrix = np.ascontiguousarray(raw, dtype=dtype)
    look_at(matrix, what)
    if distance:
        check_nonnegative(raw, f"cue {name!r}")
        if np.abs(np.diagonal(raw)).max() > SYMMETRY_TOLERANCE * raw.max():
            raise ValueError(f"{what} must have a zero diagonal.")
        np.fill_diagonal(matrix, 0)
    for tile in tiles.upper_tiles(n):
        tiles.mirror(tiles.planes_of(matrix), 0, tile)
    return matrix


def _power_of_two(values):
    """Power of two at or above the largest magnitude; 1 for zeros."""
    largest = largest_entry(values)
    if largest:
        return math.ldexp(1.0, min(max(math.frexp(largest)[1], -500), 500))
    return 1.0


# rows per task of a copy
GATHER_ROWS = 128


def empty_stack(n_kernels, n, dtype):
    """Empty stack (F, n, n) with the rows of a sample, which solvers visit together, adjacent."""
    return np.empty((n, n_kernels, n), dtype).transpose(1, 0, 2)


class Store:
    """All matrices of a bank, `stack` (F, n, n); or `shared`, {root: (n, n)}; or neither."""

    def __init__(self, stack=None, shared=None):
        self.stack = stack
        self.shared = shared or {}

    @classmethod
    def within(cls, memory, fitted, diagonal):
        """The stack if it fits `memory` bytes, else shared quantities that fit half of it."""
        n_kernels, n = diagonal.shape
        matrix_bytes = n**2 * fitted.dtype.itemsize
        roots = [r for r, root in enumerate(fitted.roots) if root.kind != "matrix"]
        if n_kernels * matrix_bytes <= memory:
            return cls.of_stack(fitted, diagonal)
        if len(roots) < n_kernels and len(roots) * matrix_bytes <= memory / 2:
            return cls.of_shared(fitted, roots)
        return cls()

    @classmethod
    def of_stack(cls, fitted, diagonal):
        n_kernels, n = diagonal.shape
        groups = tiles.group_kernels(fitted.forms, range(n_kernels), fitted.dtype)
        out = empty_stack(n_kernels, n, fitted.dtype)
        planes = tiles.planes_of(out)
        numbers = {r: [] for r in groups}
        for plane, form in enumerate(fitted.forms):
            numbers[form.root].append(plane)

        def write(r, tile, base, pair):
            pair.write(fitted.roots[r], groups[r], tile, base, planes)
            for plane in numbers[r]:
                tiles.mirror(planes, plane, tile)

        fitted.upper(write, groups, fitted.train)
        every = np.arange(n)
        out[:, every, every] = diagonal
        return cls(out)

    @classmethod
    def of_shared(cls, fitted, roots):
        n = fitted.train.n
        shared = {r: np.empty((n, n), fitted.dtype) for r in roots}
        planes = {r: tiles.planes_of(matrix) for r, matrix in shared.items()}

        def write(r, tile, base, pair):
            shared[r][tile.place] = base[tile.part]
            tiles.mirror(planes[r], 0, tile)

        fitted.upper(write, roots, fitted.train)
        return cls(shared=shared)

    @property
    def nbytes(self):
        return sum(matrix.nbytes for matrix in self.shared.values())

    def restrict(self, index):
        if self.stack is None:
            return Store(shared={r: matrix[np.ix_(index, index)] for r, matrix in self.shared.items()})
        out = empty_stack(len(self.stack), len(index), self.stack.dtype)
        places = index.astype(np.uint64)

        def copy(first):
            rows = slice(first, first + GATHER_ROWS)
            tiles.gather_rows(self.stack, places[rows], places, out[:, rows])

        tiles.run(copy, range(0, len(index), GATHER_ROWS), out.size)
        return Store(out)

    def select(self, index, roots):
        """Of the kernels `index`, with these roots; a view of the stack if they are consecutive."""
        shared = {r: matrix for r, matrix in self.shared.items() if r in roots}
        run = as_range(index)
        if self.stack is None:
            return Store(shared=shared)
        if run is not None:
            return Store(self.stack[run])
        out = empty_stack(len(index), self.stack.shape[1], self.stack.dtype)
        for plane, f in zip(out, index, strict=True):
            plane[...] = self.stack[f]
        return Store(out)


def fill(fitted, groups, left, right, out, store=None, rows=None):
    """Write kernels between two sides into `out`, from the shared quantities of `store` at `rows`."""
    if out.size == 0:
        return
    planes = tiles.planes_of(out)
    if planes is None:
        dense = np.empty(out.shape, out.dtype)
        fill(fitted, groups, left, right, dense, store, rows)
        out[...] = dense
        return
    pair = Pair(left, right)
    shared = {}
    if store is not None:
        shared = store.shared

    def compute(task):
        r, tile = task
        if r in shared:
            base = shared[r][rows[tile.r0 : tile.r1], tile.c0 : tile.c1]
        else:
            base = pair.base(fitted.roots[r], tile)
        pair.write(fitted.roots[r], groups[r], tile, base, planes)

    strips = tiles.block_tiles(*out.shape[1:])
    tiles.run(compute, [(r, tile) for strip in strips for r in groups for tile in strip], out.size)
