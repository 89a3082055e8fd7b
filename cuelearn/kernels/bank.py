"""F kernels on the same samples, in blocks of rows."""

import math
import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from cuelearn.kernels import tiles
from cuelearn.kernels.definite import (
    HALF_ROUNDING,
    ROUNDING,
    indefinite,
    indefinite_matrix,
    inverse_lengths,
    part_of,
    ratio_of,
    sample_of,
)
from cuelearn.kernels.specifications import (
    LARGEST_KERNEL,
    OF_SCALE,
    RBF,
    SPARSE,
    SYMMETRY_TOLERANCE,
    Function,
    Linear,
    Precomputed,
    as_range,
    check_entries,
    check_kernels,
    check_names,
    check_nonnegative,
    check_samples,
    extract_columns,
    feature_places,
    largest_entry,
    place_of,
    real_values,
    resolve_columns,
    scale_problem,
    uneven_spread,
    warn_of_spread,
)
from cuelearn.kernels.tiles import COLUMN_PAD, ROW_PAD, Form, Pair, Root, Rows, Side

__all__ = ["CrossBank", "KernelBank", "check_batch"]

# Most columns of a cue of sparse samples that are made dense for a kernel without sparse products.
MOST_DENSE = 1_000
# Above the limit, the mean of a distance without a closed form uses MEAN_SUBSAMPLE evenly spaced samples.
MEAN_EXACT_LIMIT = 20_000
MEAN_SUBSAMPLE = 5_000

# One product serves products and distances of a cue if centring reduces the mean squared norm by at most this
# factor; beyond it, cancellation would cost the distances that factor in digits.
SHARED_PRODUCT_LIMIT = 16.0

# A row with a norm below this fraction of its cue's largest entry counts as zero: its products would leave
# the range of float32.
ZERO_NORM = 1e-15

BATCH_TOLERANCE = 1e-3  # of the symmetry of a batch in a stream
DEFAULT_BLOCK_BYTES = 2**27
# rows per task of a copy
GATHER_ROWS = 128

# Quantities whose kernels may be indefinite; all others are positive semidefinite by construction.
DOUBTFUL = ("kernel matrix", "distance matrix", "function")


class KernelBank:
    r"""F kernels on n training samples, in blocks of shape (F, rows, n).

    .. math:: K_j[i, i'] = \frac{k_j(x_i, x_{i'})}{\sqrt{k_j(x_i, x_i)\, k_j(x_{i'}, x_{i'})}}

    The bank is *resident* if all F matrices fit `memory`; otherwise rows are computed on demand. If the
    distances (or products) that the kernels share fit half of `memory`, they are kept, and a row costs only
    its exponentials: 1,400 kernels from 7 distances.

    Parameters
    ----------
    kernels : list of (name, kernel, columns) or None
        As in scikit-learn's ColumnTransformer: unique names; kernels as in `as_kernel`; `columns` a slice, an
        integer or a name, a list of them, a boolean mask, or a callable that maps X to any of these. Names
        need a DataFrame. None means one `RBF()` on all columns.
    X : ndarray, DataFrame or scipy.sparse array or matrix of shape (n, n_features)
        Training samples: real, finite, at most 1e150. Cues of a sparse X, such as the output of a
        ColumnTransformer or ``scipy.sparse.hstack(blocks)``, are not made dense; they take `Linear`, `Poly`,
        `RBF` and Euclidean distances.
    normalize : bool, default=True
        Divide by the square roots of the diagonal, as theorems 4.1 to 4.6 assume. A zero vector (norm below
        1e-15 of the cue's largest entry, or below 1e-165) keeps 0 in row, column and diagonal. `Precomputed`
        kernels are never normalised.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Of blocks and storage; means, norms and diagonals are summed in float64.
    memory : float, default=2e9
        Bytes for the stack, or for kept distances and one block; the cues (at most two copies of the selected
        columns in `dtype`; one of sparse columns in float64) are extra.

    Attributes
    ----------
    n_kernels, n_samples : int
        F and n.
    names : list of str
    dtype : numpy.dtype
    kernels_ : list of Kernel
        With a number in place of ``scale="mean"``.
    resident : bool
    stack : ndarray of shape (F, n, n) or None
        Exactly symmetric; None if not resident. Computed from X, its memory order is (sample, kernel,
        column): the rows of one sample are adjacent. A precomputed stack keeps its order.
    diagonal : ndarray of shape (F, n), float64
        :math:`K_j[i, i]` after normalisation: exactly 1 where normalised, 0 for zero vectors.
    indefinite : dict
        {name: distance from positive semidefinite} of the kernels known to be indefinite, see
        `IndefiniteKernelWarning`. Precomputed matrices, functions and exponentials of precomputed distances
        are tested on first access.

    Notes
    -----
    ``scale="mean"`` averages over all pairs :math:`i \ne i'`; for n > 20,000, without a closed form, over
    those of 5,000 evenly spaced samples. A cue with identical samples gets scale 1.

    Errors of a float32 kernel stay within a few 1e-6; rows on demand agree with the stack to 1e-6 on
    normalised kernels. Results are bitwise equal for any number of threads. A block of b rows costs one
    product of (b, d) by (d, n) per cue and a few passes over its F b n entries; the stack costs half of n
    rows. A sparse cue costs d and its nonzero entries in place of d n.

    References
    ----------
    J. Luo, thesis 5233, EPFL, 2011: appendix A (the mean rule), figure 4.10 (1,400 kernels). P. Gehler,
    S. Nowozin, "On feature combination for multiclass object classification", ICCV 2009.

    Examples
    --------
    >>> from cuelearn.kernels import RBF, KernelBank, Linear
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 6))
    >>> bank = KernelBank([("shape", RBF(), slice(0, 4)), ("colour", Linear(), [4, 5])], X)
    >>> bank.n_kernels, bank.n_samples, bank.resident
    (2, 50, True)
    >>> bank.rows([3, 7]).shape
    (2, 2, 50)
    >>> for rows, block in bank.cross(X[:5]).blocks():
    ...     print(rows, block.shape)
    slice(0, 5, None) (2, 5, 50)
    """

    def __init__(self, kernels, X, *, normalize=True, dtype=np.float32, memory=2e9):
        self._start(dtype, memory)
        self.normalize = _flag("normalize", normalize)
        X, self.n_samples, self._n_features, feature_names = check_samples(X)
        if self.n_samples == 0:
            raise ValueError("X must have at least one row, got none.")
        named = feature_names is not None and all(isinstance(name, str) for name in feature_names)
        self._feature_names = feature_names if named else None
        triples = check_kernels([("rbf", RBF(), slice(None))] if kernels is None else kernels)
        self.names = [name for name, _, _ in triples]

        # 1. Cues: one per distinct set of columns, in order of appearance, and the quantities each provides.
        cues = []
        wanted = []
        cue_of = []
        numbers = {}
        places = feature_places(feature_names)
        for name, kernel, columns in triples:
            index = resolve_columns(name, columns, X, self._n_features, places)
            if issparse(X) and kernel.quantity not in SPARSE and len(index) > MOST_DENSE:
                usable = "use Linear, Poly, RBF or Euclidean distances, or X.toarray()"
                raise ValueError(
                    f"kernel {name!r} takes at most {MOST_DENSE:,} sparse columns, got {len(index):,} for "
                    f"{kernel!r}: {usable}."
                )
            function = kernel if isinstance(kernel, Function) else None
            key = *index.tolist(), function
            if key not in numbers:
                numbers[key] = len(cues)
                cues.append(Cue(name, index, function=function))
                wanted.append(set())
            wanted[numbers[key]].add(kernel.quantity)
            cue_of.append(numbers[key])
        self._cues = []
        arrays = []
        mean_squares = []
        uneven = []
        for cue, quantities in zip(cues, wanted, strict=True):
            if quantities - SPARSE:
                cue = cue._replace(dense=True)
            values = cue.columns_of(X, cue.index)
            if quantities & OF_SCALE and uneven_spread(values):
                uneven.append(cue.name)
            fitted, held, mean_square = _fit_cue(cue, values, quantities, self.dtype)
            self._cues.append(fitted)
            arrays.append(held)
            mean_squares.append(mean_square)
        if uneven:
            warn_of_spread(uneven)
        self._train = Side(self.n_samples, arrays)

        # 2. Roots, numeric scales, and the form of each kernel.
        self._roots = []
        self.kernels_ = []
        self._forms = []
        means = {}
        for (_, kernel, _), c in zip(triples, cue_of, strict=True):
            root = self._root_of(kernel.quantity, c, wanted[c])
            if kernel.unresolved:
                key = root, kernel.quantity
                if key not in means:
                    means[key] = self._mean_distance(*key, mean_squares[c])
                scale = kernel.factor * means[key]  # 0: all samples are equal, and any scale gives k = 1
                kernel = replace(kernel, scale=scale if scale > 0 else 1.0, factor=1.0)
            self.kernels_.append(kernel)
            self._forms.append(self._form(kernel, root))
        factors = self._factors(self._train, range(self.n_kernels))
        self._train = self._train._replace(factors=factors)
        self.diagonal = self._diagonal()
        for name, diagonal in zip(self.names, self.diagonal, strict=True):
            problem = scale_problem(f"kernel {name!r}", diagonal)
            if problem:
                raise ValueError(problem)

        # 3. The stack if it fits the budget, or else the shared quantities.
        matrix_bytes = self.n_samples**2 * self.dtype.itemsize
        kept = [r for r, root in enumerate(self._roots) if root.kind != "matrix"]
        if self.n_kernels * matrix_bytes <= self.memory:
            self._build_stack()
        elif len(kept) < self.n_kernels and len(kept) * matrix_bytes <= self.memory / 2:
            self._keep(kept)

    def _start(self, dtype, memory):
        try:
            known = np.dtype(dtype) in (np.float32, np.float64)
        except (TypeError, ValueError):
            known = False
        if not known:
            raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")
        if isinstance(memory, bool) or not isinstance(memory, numbers.Real) or not memory >= 0:
            raise ValueError(f"memory must be a number of bytes, at least 0, got {memory!r}.")
        self.dtype = np.dtype(dtype)
        self.memory = float(memory)
        self.stack = None
        self._stored = {}
        self._all_groups = None
        self._indefinite = None
        self._within = set()
        self._rounding = ROUNDING

    def _root_of(self, quantity, c, wanted):
        kind = "matrix" if quantity.endswith("matrix") else quantity
        if kind in ("euclidean", "sqeuclidean"):
            kind = "product" if self._cues[c].shared else "sqeuclidean"
        near = tiles.NEAR_EUCLIDEAN if "euclidean" in wanted else tiles.NEAR
        root = Root(c, kind, near, self._cues[c].function)
        if root not in self._roots:
            self._roots.append(root)
        return self._roots.index(root)

    def _mean_distance(self, r, metric, mean_square):
        """Mean distance of training pairs i != i', in fixed tiles unless it has a closed form."""
        side = self._train
        n = self.n_samples
        if n == 1:
            return 0.0
        if metric == "sqeuclidean":
            return 2.0 * mean_square * n / (n - 1)
        if n > MEAN_EXACT_LIMIT and metric != "distance matrix":
            chosen = np.linspace(0, n - 1, MEAN_SUBSAMPLE).round().astype(np.intp)
            side = side.take(chosen, COLUMN_PAD)
            n = len(chosen)
        sums = {}

        def add(r, tile, base, pair):
            distance = pair.distance(self._roots[r], metric, tile, base)[tile.part]
            total = float(np.sum(distance, dtype=np.float64))
            if tile.r0 == tile.c0:  # rounding leaves the diagonal above 0
                sums[tile] = total - float(np.trace(distance, dtype=np.float64))
            else:
                sums[tile] = 2.0 * total

        self._upper(add, [r], side)
        total = float(np.sum([sums[tile] for tile in tiles.upper_tiles(n)]))
        return total / (n * (n - 1)) * self._unit(r, metric)

    def _unit(self, r, metric):
        """One unit of a root's scaled distance, in units of X."""
        cue = self._cues[self._roots[r].cue]
        scale = cue.centred_scale if self._roots[r].source == "centred" else cue.scale
        return scale**2 if metric == "sqeuclidean" else scale

    def _form(self, kernel, r):
        quantity = kernel.quantity
        cue = self._cues[self._roots[r].cue]
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
        form = self._forms[f]
        return side.arrays[self._roots[form.root].cue]["plain"].norm * form.slope + form.offset

    def _factors(self, side, kernels):
        factors = {}
        for f in kernels:
            if self._forms[f].quantity == "product" and self.normalize:
                own = self._own(side, f)
                zero = own <= ZERO_NORM**2
                factors[f] = np.where(zero, 0.0, 1.0 / np.sqrt(np.where(zero, 1.0, own))).astype(self.dtype)
            elif self._forms[f].quantity == "product":
                factors[f] = np.full(side.n, self._forms[f].pivot, self.dtype)
        return factors

    def _diagonal(self):
        diagonal = np.ones((self.n_kernels, self.n_samples))
        for f, form in enumerate(self._forms):
            if form.quantity == "kernel matrix":
                matrix = self._train.arrays[self._roots[form.root].cue]["matrix"]
                diagonal[f] = np.diagonal(matrix.values)
            elif form.quantity == "product" and self.normalize:
                diagonal[f] = self._train.factors[f] > 0
            elif form.quantity == "product":
                diagonal[f] = (self._own(self._train, f) * form.pivot**2) ** form.degree
        return diagonal

    def _upper(self, work, roots, side):
        """Call ``work(r, tile, base, pair)`` for the upper triangles of the roots."""
        pair = Pair(side, side)

        def compute(task):
            r, tile = task
            work(r, tile, pair.base(self._roots[r], tile), pair)

        tasks = [(r, tile) for r in roots for tile in tiles.upper_tiles(side.n)]
        tiles.run(compute, tasks, len(roots) * side.n**2)

    def _build_stack(self):
        groups = self._groups()
        out = _empty_stack(self.n_kernels, self.n_samples, self.dtype)
        planes = tiles.planes_of(out)
        numbers = {r: [] for r in groups}
        for plane, form in enumerate(self._forms):
            numbers[form.root].append(plane)

        def fill(r, tile, base, pair):
            pair.write(self._roots[r], groups[r], tile, base, planes)
            for plane in numbers[r]:
                tiles.mirror(planes, plane, tile)

        self._upper(fill, groups, self._train)
        every = np.arange(self.n_samples)
        out[:, every, every] = self.diagonal
        self.stack = out

    def _keep(self, roots):
        self._stored = {r: np.empty((self.n_samples, self.n_samples), self.dtype) for r in roots}
        planes = {r: tiles.planes_of(kept) for r, kept in self._stored.items()}

        def fill(r, tile, base, pair):
            self._stored[r][tile.place] = base[tile.part]
            tiles.mirror(planes[r], 0, tile)

        self._upper(fill, roots, self._train)

    @classmethod
    def from_stack(cls, K, *, names=None, dtype=None, validate=True, memory=2e9):
        """A resident bank of precomputed kernel matrices, which are not normalised.

        Parameters
        ----------
        K : array-like of shape (F, n, n), or (n, n) for one kernel
            Symmetric (up to 1e-5 of the largest entry), with non-negative diagonals. A C-contiguous float32
            or float64 array is used without a copy and must not be changed afterwards.
        names : list of str, optional
            Default: "k0", "k1", ...
        dtype : {numpy.float32, numpy.float64}, optional
            Default: that of `K`, or else float32.
        validate : bool, default=True
            Check all values (one pass), and later that they are kernels; shapes are always checked.
        memory : float, default=2e9
            Bytes for blocks and solvers, without the stack.

        Examples
        --------
        >>> from cuelearn.kernels import KernelBank
        >>> import numpy as np
        >>> X = np.arange(6.0).reshape(3, 2)
        >>> KernelBank.from_stack([X @ X.T, np.eye(3)]).diagonal
        array([[ 1., 13., 41.],
               [ 1.,  1.,  1.]])
        """
        given = np.asarray(K)
        K = given[None] if given.ndim == 2 else given
        if K.ndim != 3 or K.shape[1] != K.shape[2] or 0 in K.shape:
            raise ValueError(f"a precomputed stack must have shape (n_kernels, n, n), got {given.shape}.")
        K = real_values(K, "a precomputed stack")
        if dtype is None:
            dtype = K.dtype if K.dtype in (np.float32, np.float64) else np.float32
        self = cls.__new__(cls)
        self._start(dtype, memory)
        if K.dtype != self.dtype or not K.transpose(1, 0, 2).flags.c_contiguous:
            with np.errstate(over="ignore"):  # inf is refused below
                K = np.ascontiguousarray(K, dtype=self.dtype)
        self._rounding = HALF_ROUNDING if given.dtype == np.float16 else ROUNDING
        F, self.n_samples = K.shape[:2]
        self.names = [f"k{f}" for f in range(F)] if names is None else names
        listed = isinstance(self.names, Sequence) and len(self.names) == F
        if not listed or not all(isinstance(name, str) for name in self.names):
            raise ValueError(f"names must be {F} strings, got {names!r}.")
        self.names = list(self.names)
        check_names(self.names)
        if _flag("validate", validate):
            looks = [None] * F

            def look(f):
                looks[f] = look_at(K[f], f"kernel {self.names[f]!r} of the stack")

            tiles.run(look, range(F), K.size)
            for problem, _ in looks:
                if problem:
                    raise ValueError(problem)
            self._within = {
                name for name, (_, n_above) in zip(self.names, looks, strict=True) if n_above == 0
            }
        else:
            self._indefinite = {}
        self.normalize = False
        self.stack = K
        self.kernels_ = [Precomputed()] * F
        self.diagonal = np.einsum("fii->fi", K).astype(np.float64)
        self._n_features = self._feature_names = self._train = None
        self._cues = []
        self._roots = []
        self._forms = []
        return self

    @property
    def n_kernels(self):
        return len(self.names)

    @property
    def resident(self):
        return self.stack is not None

    @property
    def _given(self):
        return self._train is None

    @property
    def indefinite(self):
        if self._indefinite is None:
            self._indefinite = self._find_indefinite()
        return self._indefinite

    def _find_indefinite(self):
        doubtful = [f for f, kernel in enumerate(self.kernels_) if kernel.quantity in DOUBTFUL]
        if not doubtful:
            return {}
        chosen = sample_of(self.n_samples, len(doubtful))
        results = {}
        near = None if self.resident else self.select(doubtful).restrict(chosen, resident=True).stack

        def look(task):
            place, f = task
            part = part_of(self.stack[f], chosen) if near is None else near[place]
            results[f] = indefinite(part, self._ratio(f), self._rounding)

        tiles.run(look, list(enumerate(doubtful)), len(doubtful) * self.n_samples**2)
        return {self.names[f]: results[f] for f in doubtful if results[f] is not None}

    def _ratio(self, f):
        """`ratio_of` kernel f; NaN for exponentials, and if the matrix is not in memory."""
        if self.names[f] in self._within or self.kernels_[f].quantity == "distance matrix":
            return np.nan
        if self.resident:
            return ratio_of(self.stack[f])
        if self.kernels_[f].quantity == "kernel matrix":
            return ratio_of(self._train.arrays[self._roots[self._forms[f].root].cue]["matrix"].values)
        return np.nan

    @property
    def triples(self):
        """(name, kernel with a numeric scale, columns), for such a bank on other samples."""
        columns = (self._cues[self._roots[form.root].cue].index for form in self._forms)
        return [(n, k, c.tolist()) for n, k, c in zip(self.names, self.kernels_, columns, strict=True)]

    def __repr__(self):
        kind = "resident" if self.resident else "on demand"
        return (
            f"KernelBank(n_kernels={self.n_kernels}, n_samples={self.n_samples}, "
            f"dtype={self.dtype.name}, {kind})"
        )

    def block_rows(self, memory=None):
        """Number of rows of all kernels, 1 to n, that fit into `memory` bytes (default: the budget)."""
        if memory is None:
            memory = self.memory - sum(kept.nbytes for kept in self._stored.values())
        return _rows_that_fit(memory, self.n_kernels * self.n_samples * self.dtype.itemsize, self.n_samples)

    def rows(self, indices):
        """Rows of all kernels of b training samples, shape (F, b, n).

        `indices` is a slice, or an array of int or bool; b is at most ``block_rows()`` unless the bank is
        resident. A slice of a resident bank gives a view, which must not be changed.
        """
        if self.resident and isinstance(indices, slice):
            return self.stack[:, indices]
        index = _as_index(indices, self.n_samples)
        if not self.resident and len(index) > self.block_rows():
            raise ValueError(
                f"indices select {len(index)} rows, but only {self.block_rows()} fit the bank's memory of "
                f"{self.memory:.3g} bytes."
            )
        return self.rows_into(index, np.empty((self.n_kernels, len(index), self.n_samples), self.dtype))

    def rows_into(self, indices, out):
        """Write `rows` into `out`, (F, b, n) of the bank's dtype, any slice of a C-contiguous array."""
        index = _as_index(indices, self.n_samples)
        _check_out(out, (self.n_kernels, len(index), self.n_samples), self.dtype)
        if self.resident:
            for plane, matrix in zip(out, self.stack, strict=True):
                plane[...] = matrix[index]
            return out
        if self._given:
            raise ValueError("this bank was saved without its stack and has no training rows.")
        groups = self._groups()
        # kept distances suffice
        with_factors = ("product", "function")
        bare = all(r in self._stored and self._roots[r].kind not in with_factors for r in groups)
        left = None if bare else self._train.take(index, ROW_PAD)
        self._fill(groups, left, self._train, out, stored_rows=index)
        out[:, np.arange(len(index)), index] = self.diagonal[:, index]
        return out

    def _groups(self):
        if self._all_groups is None:
            self._all_groups = tiles.group_kernels(self._forms, range(self.n_kernels), self.dtype)
        return self._all_groups

    def _fill(self, groups, left, right, out, stored_rows=None):
        if out.size == 0:
            return
        planes = tiles.planes_of(out)
        if planes is None:
            dense = np.empty(out.shape, out.dtype)
            self._fill(groups, left, right, dense, stored_rows)
            out[...] = dense
            return
        pair = Pair(left, right)

        def compute(task):
            r, tile = task
            if stored_rows is not None and r in self._stored:
                base = self._stored[r][stored_rows[tile.r0 : tile.r1], tile.c0 : tile.c1]
            else:
                base = pair.base(self._roots[r], tile)
            pair.write(self._roots[r], groups[r], tile, base, planes)

        strips = tiles.block_tiles(*out.shape[1:])
        tiles.run(compute, [(r, tile) for strip in strips for r in groups for tile in strip], out.size)

    def cross(self, X_new, kernels=None, support=None):
        """The `CrossBank` of new samples with the training samples, normalised alike.

        Parameters
        ----------
        X_new : ndarray, DataFrame or sparse of shape (rows, n_features), or (F, rows, n)
            New samples, sparse or not; for a bank made by `from_stack`, their precomputed kernels.
        kernels, support : slice, or array-like of int or bool, optional
            The kernels, and the training samples (columns of the blocks); all by default.
        """
        kernels = _as_index(slice(None) if kernels is None else kernels, self.n_kernels, "kernels")
        support = None if support is None else _as_index(support, self.n_samples, "support")
        new = self._given_rows(X_new) if self._given else self._new_side(X_new, self._cues_of(kernels))
        return CrossBank(self, new, kernels, support)

    def between(self, rows, columns):
        """A CrossBank of training samples `rows` with `columns`, two arrays of int."""
        new = RowsOf(self.stack, rows) if self.resident else self._train.take(rows, ROW_PAD)
        return CrossBank(self, new, np.arange(self.n_kernels), columns)

    def _cues_of(self, kernels):
        return {self._roots[self._forms[f].root].cue for f in kernels}

    def _given_rows(self, X_new):
        X_new = real_values(X_new, "X_new")
        if X_new.ndim != 3 or (X_new.shape[0], X_new.shape[2]) != (self.n_kernels, self.n_samples):
            raise ValueError(
                f"X_new must have shape ({self.n_kernels}, rows, {self.n_samples}) for a bank of precomputed "
                f"kernels, got {X_new.shape}."
            )
        return X_new

    def _new_side(self, X_new, needed):
        X_new, rows, n_features, feature_names = check_samples(X_new, "X_new")
        by_name = self._feature_names is not None and feature_names is not None
        if not by_name and n_features != self._n_features:
            raise ValueError(
                f"X_new has {n_features} columns, but the bank was made from {self._n_features}."
            )
        places = feature_places(feature_names)
        arrays = []
        for c, cue in enumerate(self._cues):
            if c not in needed:
                arrays.append({})
                continue
            index = cue.index
            if by_name:
                index = np.array([place_of(cue.name, self._feature_names[i], places) for i in index])
            arrays.append(cue.arrays(cue.columns_of(X_new, index), self.dtype))
        return Side(rows, arrays)

    def _clone(self):
        new = KernelBank.__new__(KernelBank)
        vars(new).update(vars(self), _all_groups=None)
        return new

    def restrict(self, train_idx, *, resident=None):
        """The bank on a subset of the training samples, with the same scales.

        `train_idx` is a slice or an array of int or bool, in the requested order. ``resident=False`` omits
        the stack; by default a resident bank gives a copy. For `from_stack` banks, new samples then have
        shape (F, rows, number of samples kept).
        """
        index = _as_index(train_idx, self.n_samples, "train_idx")
        if len(index) == 0:
            raise ValueError("train_idx must select at least one sample, got none.")
        new = self._clone()
        new.n_samples = len(index)
        new.diagonal = self.diagonal[:, index].copy()
        new._indefinite = None if self._indefinite else self._indefinite  # part of a kernel is one
        new.stack = None
        new._stored = {}
        if not self._given:
            new._train = self._train.take(index, COLUMN_PAD)._replace(index=None)
            new._cues = [
                cue if cue.take is None else cue._replace(take=cue.take[index]) for cue in self._cues
            ]
            for held in new._train.arrays:
                if "matrix" in held:
                    held["matrix"] = Rows(np.ascontiguousarray(held["matrix"].values[:, index]))
        if resident is None or resident:
            if self.resident:
                new.stack = stack = _empty_stack(self.n_kernels, len(index), self.dtype)
                places = index.astype(np.uint64)

                def copy(first):
                    rows = slice(first, first + GATHER_ROWS)
                    tiles.gather_rows(self.stack, places[rows], places, stack[:, rows])

                tiles.run(copy, range(0, len(index), GATHER_ROWS), stack.size)
            elif resident and not self._given:
                new._build_stack()
            else:
                new._stored = {r: kept[np.ix_(index, index)] for r, kept in self._stored.items()}
        return new

    def select(self, kernel_idx):
        """The bank with a subset of the kernels (slice, mask, or integers in the requested order).

        It shares the samples, the kept distances and, if the kernels are consecutive, the stack.
        """
        index = _as_index(kernel_idx, self.n_kernels, "kernel_idx")
        if len(index) == 0:
            raise ValueError("kernel_idx must select at least one kernel, got none.")
        if len(np.unique(index)) < len(index):
            raise ValueError("kernel_idx must name each kernel at most once.")
        new = self._clone()
        new.names = [self.names[f] for f in index]
        if self._indefinite is not None:
            new._indefinite = {name: how for name, how in self._indefinite.items() if name in new.names}
        new.kernels_ = [self.kernels_[f] for f in index]
        run = as_range(index)
        new.diagonal = self.diagonal[index if run is None else run]
        if self.resident and run is not None:
            new.stack = self.stack[run]
        elif self.resident:
            new.stack = _empty_stack(len(index), self.n_samples, self.dtype)
            for plane, f in zip(new.stack, index, strict=True):
                plane[...] = self.stack[f]
        if self._given:
            return new
        new._forms = [self._forms[f] for f in index]
        used = {form.root for form in new._forms}
        new._stored = {r: kept for r, kept in self._stored.items() if r in used}
        factors = {k: self._train.factors[f] for k, f in enumerate(index) if f in self._train.factors}
        new._train = self._train._replace(factors=factors)
        return new

    _SAVED = ("names", "kernels_", "normalize", "n_samples", "memory", "diagonal")
    _SAVED += ("_n_features", "_feature_names", "_cues", "_roots", "_forms", "_train")

    def _state(self):
        """All but the stack, for `core.storage`. A bank made from X computes its rows again."""
        return {name: getattr(self, name) for name in self._SAVED} | {"dtype": self.dtype.name}

    @classmethod
    def _from_state(cls, state):
        self = cls.__new__(cls)
        self._start(state["dtype"], state["memory"])
        vars(self).update({name: state[name] for name in cls._SAVED})
        widths = [{len(self.names), len(self.kernels_), len(self.diagonal)}]
        for cue, held in zip(self._cues, self._train.arrays if self._train else (), strict=True):
            read = [rows.values.shape[1] for source, rows in held.items() if source != "matrix"]
            widths.append({len(cue.index), *read} | (set() if cue.centre is None else {len(cue.centre)}))
        if any(len(sizes) > 1 for sizes in widths):
            raise ValueError("a bank with kernels or cues of different widths")
        return self


class RowsOf:
    """Rows of a resident stack, indexed like an array (F, rows, n) without a copy."""

    def __init__(self, stack, index):
        self.stack = stack
        self.index = index
        self.dtype = stack.dtype
        self.shape = len(stack), len(index), stack.shape[2]

    def __getitem__(self, key):
        kernels, rows = key
        return self.stack[kernels, self.index[rows]]


class CrossBank:
    """Kernels between `n_rows` new samples and training samples, in blocks; made by `KernelBank.cross`.

    `n_kernels` and `n_columns` count the selected kernels F' and training samples; `dtype` is the bank's.

    Examples
    --------
    >>> from cuelearn.kernels import CrossBank, KernelBank
    >>> bank = KernelBank([("first", "rbf", [0]), ("second", "linear", [1])], [[0.0, 1.0], [1.0, 2.0]])
    >>> new = bank.cross([[0.5, 1.0]])
    >>> isinstance(new, CrossBank), [block.shape for _, block in new.blocks()]
    (True, [(2, 1, 2)])
    """

    def __init__(self, bank, new, kernels, support):
        self._bank = bank
        self._new = new
        self._kernels = kernels
        self._support = support
        self.dtype = bank.dtype
        self.n_kernels = len(kernels)
        self.n_columns = bank.n_samples if support is None else len(support)
        self.n_rows = new.n if isinstance(new, Side) else new.shape[1]
        if isinstance(new, Side):
            self._groups = tiles.group_kernels(bank._forms, kernels, bank.dtype)
            self._left = new._replace(factors=bank._factors(new, kernels.tolist()))
            self._right = bank._train
            if support is not None:
                self._right = bank._train.take(support, COLUMN_PAD, bank._cues_of(kernels), matrix=False)

    def select(self, kernels, support):
        """A CrossBank of these kernels and training samples, by their positions in this one."""
        support = np.asarray(support) if self._support is None else self._support[np.asarray(support)]
        return CrossBank(self._bank, self._new, self._kernels[np.asarray(kernels)], support)

    def _block_bytes(self, memory):
        return min(DEFAULT_BLOCK_BYTES, self._bank.memory) if memory is None else memory

    def block_rows(self, memory=None):
        """Number of rows, 1 to `n_rows`, that fit into `memory` bytes (default as in `blocks`)."""
        memory = self._block_bytes(memory)
        return _rows_that_fit(memory, self.n_kernels * self.n_columns * self.dtype.itemsize, self.n_rows)

    def rows_into(self, rows, out):
        """Write the block of a slice of new samples into `out`, (F', b, n_columns), and return it."""
        index = np.arange(self.n_rows)[rows]
        _check_out(out, (self.n_kernels, len(index), self.n_columns), self.dtype)
        if isinstance(self._new, Side):
            self._bank._fill(self._groups, self._left.take(index, ROW_PAD), self._right, out)
            return out
        for plane, f in zip(out, self._kernels, strict=True):
            part = self._new[f, rows]
            plane[...] = part if self._support is None else part[:, self._support]
        return _checked(out)

    def blocks(self, memory=None, reuse=False):
        """Iterate over (slice of new samples, block (F', b, n_columns)); blocks are read-only.

        A block takes at most `memory` bytes, by default 128 MiB or the bank's budget if smaller, or one row.
        ``reuse=True`` overwrites one array for all blocks and halves the memory.
        """
        memory = self._block_bytes(memory)
        given = not isinstance(self._new, Side) and self._support is None and self._new.dtype == self.dtype
        run = as_range(self._kernels) if given else None
        # the caller holds one block while the next is computed
        step = self.block_rows(memory if reuse or run is not None else memory / 2)
        buffer = None
        for start in range(0, self.n_rows, step):
            rows = slice(start, min(start + step, self.n_rows))
            if run is not None:
                yield rows, _checked(self._new[run, rows])
                continue
            size = rows.stop - rows.start
            if buffer is None or not reuse or buffer.shape[1] != size:
                buffer = np.empty((self.n_kernels, size, self.n_columns), self.dtype)
            yield rows, self.rows_into(rows, buffer)


# ---- cues


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

    def columns_of(self, X, index):
        """The cue's columns of X, see `extract_columns`."""
        values = extract_columns(X, index, self.name)
        return values.toarray() if self.dense and issparse(values) else values

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
        raw = raw.toarray() if issparse(raw) else raw
        if self.nonnegative:
            check_nonnegative(raw, self.name)
        if self.take is not None:
            return {"matrix": Rows(raw[:, self.take].astype(dtype))}
        if self.function is not None:
            return {"plain": Rows(tiles.padded(raw, np.float64, ROW_PAD), self.function.own(raw))}
        return {
            source: Rows(tiles.padded(rows, dtype, ROW_PAD), norm)
            for source, (rows, norm) in self.scaled(raw).items()
        }


def _fit_cue(cue, raw, wanted, dtype):
    """The fitted cue, its arrays, and their mean squared norm after centring."""
    name = cue.name
    if issparse(raw):
        return _fit_sparse_cue(cue, raw, wanted)
    if cue.function is not None:
        arrays = cue.arrays(raw, dtype)
        return cue._replace(scale=_power_of_two(np.sqrt(arrays["plain"].norm))), arrays, 0.0
    cue = cue._replace(nonnegative=bool(wanted & {"chi2", "distance matrix"}))
    if wanted & {"distance matrix", "kernel matrix"}:
        if len(wanted) > 1:
            raise ValueError(
                f"cue {name!r}: columns of a precomputed matrix cannot be used by other kernels, got "
                f"{sorted(wanted)}."
            )
        matrix = _training_matrix(raw, name, cue.nonnegative, dtype)
        return cue._replace(take=np.arange(len(raw))), {"matrix": Rows(matrix)}, 0.0
    if cue.nonnegative:
        check_nonnegative(raw, name)
    euclidean = bool(wanted & {"sqeuclidean", "euclidean"})
    if euclidean or "cityblock" in wanted:
        centre = raw.mean(axis=0)
        scale = _power_of_two(np.stack([raw.min(axis=0), raw.max(axis=0)]) - centre)
        cue = cue._replace(sources=("centred",), centre=centre, centred_scale=scale)
    if wanted & {"product", "chi2"}:
        cue = cue._replace(sources=(*cue.sources, "plain"), scale=_power_of_two(raw))
    scaled = cue.scaled(raw)
    mean_square = float(scaled["centred"][1].mean()) * cue.centred_scale**2 if euclidean else 0.0
    if euclidean and "product" in wanted:
        plain_square = float(scaled["plain"][1].mean()) * cue.scale**2
        cue = cue._replace(shared=plain_square <= SHARED_PRODUCT_LIMIT * mean_square)
        if cue.shared and "cityblock" not in wanted:
            cue = cue._replace(sources=("plain",))
            del scaled["centred"]
    arrays = {s: Rows(tiles.padded(rows, dtype, COLUMN_PAD), norm) for s, (rows, norm) in scaled.items()}
    return cue, arrays, mean_square


def _fit_sparse_cue(cue, raw, wanted):
    """As `_fit_cue`: without centring, which would fill the zeros, and therefore in float64."""
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
    else:
        sources = ("centred", "plain") if product else ("centred",)
    cue = cue._replace(sources=sources, shared=shared, centred_scale=cue.scale)
    return cue, dict.fromkeys(sources, Rows(rows, norm)), mean_square * cue.scale**2


def _training_matrix(raw, name, distance, dtype):
    """A checked precomputed matrix, made exactly symmetric."""
    what = f"cue {name!r}: the precomputed {'distance' if distance else 'kernel'} matrix"
    n = len(raw)
    if raw.shape != (n, n):
        raise ValueError(f"{what} must be square (n, n), got shape {raw.shape}.")
    matrix = np.ascontiguousarray(raw, dtype=dtype)
    problem, _ = look_at(matrix, what)
    if problem:
        raise ValueError(problem)
    if distance:
        check_nonnegative(raw, name)
        if np.abs(np.diagonal(raw)).max() > SYMMETRY_TOLERANCE * raw.max():
            raise ValueError(f"{what} must have a zero diagonal.")
        np.fill_diagonal(matrix, 0)
    for tile in tiles.upper_tiles(n):
        tiles.mirror(tiles.planes_of(matrix), 0, tile)
    return matrix


def look_at(matrix, what, least=None, tolerance=SYMMETRY_TOLERANCE):
    """The problem of a precomputed matrix, or None; and how many |k(x, z)| exceed sqrt(k(x, x) k(z, z)).

    A symmetric matrix times random factors has equal row and column sums; all pairs are compared only if
    these differ by a quarter of the tolerance or are too large.
    """
    diagonal = np.diagonal(matrix)
    n = len(matrix)
    if not np.isfinite(diagonal).all():
        return f"{what} holds NaN or infinite values.", 0
    lowest = float(diagonal.min())
    problem = scale_problem(what, diagonal, least)
    if problem:
        return problem, 0
    factors = np.random.default_rng(0).uniform(0.5, 1.0, n)
    by_rows = np.empty(n)
    by_columns = np.empty(n)
    planes = tiles.planes_of(matrix)
    scale = inverse_lengths(diagonal, matrix.dtype)
    n_above = tiles.sums_both_ways(planes.flat, 0, planes.width, factors, scale, by_rows, by_columns)
    with np.errstate(invalid="ignore"):
        differ = np.abs(by_rows - by_columns).max()
        largest_sum = np.abs(by_rows).max()
    largest = max(largest_sum / n, float(diagonal.max()))  # a lower bound
    if lowest >= 0.0 and largest_sum <= LARGEST_KERNEL and differ <= 0.25 * tolerance * largest:
        return None, n_above
    return compared_problem(matrix, what, lowest, tolerance), n_above


def compared_problem(matrix, what, lowest, tolerance):
    """The problem found by `look_at`, from a comparison of all pairs."""
    largest = asymmetry = 0.0
    for tile in tiles.upper_tiles(len(matrix)):
        part = matrix[tile.place]
        mirrored = matrix[tile.c0 : tile.c1, tile.r0 : tile.r1].T
        if not (np.isfinite(part).all() and np.isfinite(mirrored).all()):
            return f"{what} holds NaN or infinite values."
        largest = max(largest, largest_entry(part), largest_entry(mirrored))
        asymmetry = max(asymmetry, np.abs(part - mirrored).max())
    if largest > LARGEST_KERNEL:
        return f"{what} must hold values up to {LARGEST_KERNEL:g}, got {largest:.3g}."
    if asymmetry > tolerance * largest:
        return (
            f"{what} must be symmetric, got entries that differ from their mirror image by {asymmetry:.3g}."
        )
    return f"{what} must have a non-negative diagonal, got {lowest:.3g}." if lowest < 0 else None


def check_batch(X, seen):
    """ValueError unless the kernels of a batch with all samples, (n, seen + n) or a stack, are finite, and
    those with itself symmetric."""
    check_entries(X, "X")
    for j, own in enumerate(own_blocks(X, seen)):
        what = ("X" if X.ndim == 2 else f"kernel {j} of X") + ", a batch with itself,"
        # looser: only rows are used, of any dtype
        problem, _ = look_at(own, what, 0.0 if seen else None, BATCH_TOLERANCE)
        if problem:
            raise ValueError(problem)


def own_blocks(X, seen):
    for own in X[..., seen:].reshape(-1, X.shape[-2], X.shape[-2]):
        yield np.ascontiguousarray(own, dtype=own.dtype if own.dtype.kind == "f" else np.float64)


def indefinite_batch(X, seen):
    """{name: how} of the indefinite kernels of a batch with itself."""
    results = {f"k{j}": indefinite_matrix(own, HALF_ROUNDING) for j, own in enumerate(own_blocks(X, seen))}
    return {name: how for name, how in results.items() if how is not None}


def _power_of_two(values):
    """Power of two at or above the largest magnitude; 1 for zeros."""
    largest = largest_entry(values)
    return math.ldexp(1.0, min(max(math.frexp(largest)[1], -500), 500)) if largest else 1.0


def _empty_stack(n_kernels, n, dtype):
    """Empty stack (F, n, n) with the rows of a sample, which solvers visit together, adjacent."""
    return np.empty((n, n_kernels, n), dtype).transpose(1, 0, 2)


def _flag(name, value):
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def _as_index(indices, n, name="indices"):
    """`indices` (slice, mask or integers) as integers in [0, n)."""
    if not isinstance(indices, slice):
        indices = np.atleast_1d(np.asarray(indices))
        if indices.ndim != 1:
            raise ValueError(f"{name} must be 1-D, got shape {indices.shape}.")
        if indices.size == 0:
            return indices.astype(np.intp)
        if indices.dtype.kind not in "biu":
            raise TypeError(f"{name} must be integers, a mask or a slice, got dtype {indices.dtype}.")
        if indices.dtype.kind == "b" and len(indices) != n:
            raise ValueError(f"{name} as a mask must have length {n}, got {len(indices)}.")
    try:
        return np.arange(n)[indices]
    except IndexError:
        raise ValueError(f"{name} must lie in [0, {n}), got {indices.min()} to {indices.max()}.") from None


def _check_out(out, shape, dtype):
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype:
        got = f"shape {out.shape}, dtype {out.dtype}" if isinstance(out, np.ndarray) else repr(type(out))
        raise ValueError(f"out must be an array of shape {shape}, dtype {dtype}, got {got}.")


def _checked(block):
    check_entries(block, "X_new")
    return block


def _rows_that_fit(memory, row, n_rows):
    fit = n_rows if math.isinf(memory) else int(memory // max(row, 1))
    return max(1, min(fit, n_rows))
