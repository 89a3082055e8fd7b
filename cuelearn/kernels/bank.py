"""F kernels on the same samples, in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from cuelearn.expect import expect, expect_distinct, expect_instance, expect_list, expect_word
from cuelearn.kernels import tiles
from cuelearn.kernels.fitted import FittedKernels, Store, fill
from cuelearn.kernels.matrices import (
    HALF_ROUNDING,
    ROUNDING,
    checked_stack,
    indefinite,
    part_of,
    ratio_of,
    sample_of,
    zero_blocks,
)
from cuelearn.kernels.specifications import (
    MISSING,
    RBF,
    Kernel,
    Precomputed,
    as_range,
    check_entries,
    check_kernels,
    check_scale,
)
from cuelearn.kernels.tiles import COLUMN_PAD, ROW_PAD, Side
from cuelearn.kernels.types import ArrayLike, DTypeLike, Index, KernelList, MatrixLike, Missing

DEFAULT_BLOCK_BYTES = 2**27

# Quantities whose kernels may be indefinite.
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
        integer or a name, a list of them, a boolean mask, or a callable that maps X to any of these. None
        means one `RBF()` on all columns.
    X : ndarray, DataFrame or scipy.sparse array or matrix of shape (n, n_features)
        Training samples: real, finite, at most 1e150. Cues of a sparse X are not made dense; they take
        `Linear`, `Poly`, `RBF` and Euclidean distances.
    normalize : bool, default=True
        Divide by the square roots of the diagonal, as theorems 4.1 to 4.6 assume. A zero vector (norm below
        1e-15 of the cue's largest entry, or below 1e-165) keeps 0 in row, column and diagonal. `Precomputed`
        kernels are never normalised.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Of blocks and storage; means, norms and diagonals are summed in float64.
    memory : float, default=2e9
        Bytes for the stack, or for kept distances and one block; the cues (at most two copies of the selected
        columns) are extra.
    missing : {"error", "zero"}, default="error"
        "zero": a sample whose columns of a cue are all NaN lacks it. Its kernels are 0 with all samples and
        itself, which keeps them positive semidefinite; scales come from the other samples.

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
        column).
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

    Errors of a float32 kernel stay within a few 1e-6. Results are bitwise equal for any number of threads. A
    block of b rows costs one product of (b, d) by (d, n) per cue and a few passes over its F b n entries; the
    stack costs half of n rows. A sparse cue costs d and its nonzero entries in place of d n.

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

    def __init__(
        self,
        kernels: KernelList,
        X: MatrixLike,
        *,
        normalize: bool = True,
        dtype: DTypeLike = np.float32,
        memory: float = 2e9,
        missing: Missing = "error",
    ):
        self._start(dtype, memory)
        self.normalize = expect("normalize", normalize, kind="bool")
        triples = check_kernels([("rbf", RBF(), slice(None))] if kernels is None else kernels)
        self.names: list[str] = [name for name, _, _ in triples]
        missing = expect_word("missing", missing, MISSING) == "zero"
        self._fitted = FittedKernels(triples, X, self.normalize, self.dtype, missing)
        self.n_samples: int = self._fitted.train.n
        self.kernels_: list[Kernel] = self._fitted.kernels
        self.diagonal: np.ndarray = self._fitted.diagonal()
        for name, diagonal in zip(self.names, self.diagonal, strict=True):
            check_scale(f"kernel {name!r}", diagonal)
        self._store = Store.within(self.memory, self._fitted, self.diagonal)

    def _start(self, dtype, memory):
        try:
            self.dtype: np.dtype = np.dtype(dtype)
        except (TypeError, ValueError):
            self.dtype = None
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")
        self.memory = expect("memory", memory, low=0, finite=False)
        self._store = Store()
        self._fitted = None
        self._all_groups = None
        self._indefinite = None
        self._within = set()
        self._rounding = ROUNDING

    @classmethod
    def from_stack(
        cls,
        K: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        dtype: DTypeLike | None = None,
        validate: bool = True,
        memory: float = 2e9,
        missing: Missing = "error",
    ) -> Self:
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
        missing : {"error", "zero"}, default="error"
            "zero": rows that are all NaN, and their columns, become zeros, in a copy.

        Examples
        --------
        >>> from cuelearn.kernels import KernelBank
        >>> import numpy as np
        >>> X = np.arange(6.0).reshape(3, 2)
        >>> KernelBank.from_stack([X @ X.T, np.eye(3)]).diagonal
        array([[ 1., 13., 41.],
               [ 1.,  1.,  1.]])
        """
        half = getattr(K, "dtype", None) == np.float16
        shapes = [("n_kernels", "n", "n"), ("n", "n")]
        K = expect("a precomputed stack", K, kind="real", shape=shapes, finite=False)
        if K.ndim == 2:
            K = K[None]
        if expect_word("missing", missing, MISSING) == "zero":
            K, _ = zero_blocks(K)
        if dtype is None:
            dtype = np.float32
            if K.dtype.kind == "f":
                dtype = K.dtype
        self = cls.__new__(cls)
        self._start(dtype, memory)
        if K.dtype != self.dtype or not K.transpose(1, 0, 2).flags.c_contiguous:
            with np.errstate(over="ignore"):  # inf is refused below
                K = np.ascontiguousarray(K, dtype=self.dtype)
        if half:
            self._rounding = HALF_ROUNDING
        F, self.n_samples = K.shape[:2]
        if names is None:
            names = [f"k{f}" for f in range(F)]
        self.names = expect_list("names", names, "strings", F)
        for name in self.names:
            expect_instance("a name", name, str)
        expect_distinct("names", self.names)
        if expect("validate", validate, kind="bool"):
            self._within = checked_stack(K, self.names)
        else:
            self._indefinite = {}
        self.normalize = False
        self._store = Store(K)
        self.kernels_ = [Precomputed()] * F
        self.diagonal = np.einsum("fii->fi", K).astype(np.float64)
        return self

    @property
    def n_kernels(self) -> int:
        return len(self.names)

    @property
    def stack(self) -> np.ndarray | None:
        return self._store.stack

    @property
    def resident(self) -> bool:
        return self.stack is not None

    @property
    def indefinite(self) -> dict[str, float]:
        if self._indefinite is None:
            self._indefinite = self._find_indefinite()
        return self._indefinite

    def _find_indefinite(self):
        doubtful = [f for f, kernel in enumerate(self.kernels_) if kernel.quantity in DOUBTFUL]
        if not doubtful:
            return {}
        chosen = sample_of(self.n_samples, len(doubtful))
        results = {}
        if not self.resident:
            near = self.select(doubtful).restrict(chosen, resident=True).stack

        def look(task):
            place, f = task
            part = part_of(self.stack[f], chosen) if self.resident else near[place]
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
            return ratio_of(self._fitted.matrix_of(f))
        return np.nan

    @property
    def triples(self) -> list[tuple[str, Kernel, np.ndarray]]:
        """(name, kernel with a numeric scale, columns), for such a bank on other samples."""
        return list(zip(self.names, self.kernels_, self._fitted.columns, strict=True))

    def __repr__(self):
        kind = "on demand"
        if self.resident:
            kind = "resident"
        sizes = f"n_kernels={self.n_kernels}, n_samples={self.n_samples}"
        return f"KernelBank({sizes}, dtype={self.dtype.name}, {kind})"

    def block_rows(self, memory: float | None = None) -> int:
        """Number of rows of all kernels, 1 to n, that fit into `memory` bytes (default: the budget)."""
        if memory is None:
            memory = self.memory - self._store.nbytes
        return _rows_that_fit(memory, self.n_kernels * self.n_samples * self.dtype.itemsize, self.n_samples)

    def rows(self, indices: Index) -> np.ndarray:
        """Rows of all kernels of b training samples, shape (F, b, n).

        `indices` is a slice, or an array of int or bool; b is at most ``block_rows()`` unless the bank is
        resident. A slice of a resident bank gives a view.
        """
        if self.resident and isinstance(indices, slice):
            return self.stack[:, indices]
        index = _as_index(indices, self.n_samples)
        if not self.resident and len(index) > self.block_rows():
            raise ValueError(
                f"indices select {len(index)} rows, but only {self.block_rows()} fit the bank's memory of "
                f"{self.memory:.3g} bytes."
            )
        return self._fill(index, np.empty((self.n_kernels, len(index), self.n_samples), self.dtype))

    def rows_into(self, indices: Index, out: np.ndarray) -> np.ndarray:
        """Write `rows` into `out`, (F, b, n) of the bank's dtype, any slice of a C-contiguous array."""
        index = _as_index(indices, self.n_samples)
        _check_out(out, (self.n_kernels, len(index), self.n_samples), self.dtype)
        return self._fill(index, out)

    def _fill(self, index, out):
        if self.resident:
            for plane, matrix in zip(out, self.stack, strict=True):
                plane[...] = matrix[index]
            return out
        fitted = self._fitted
        if fitted is None:
            raise ValueError("this bank was saved without its stack and has no training rows.")
        groups = self._groups()
        # kept distances suffice
        with_factors = ("product", "function")
        bare = not fitted.train.absent and all(
            r in self._store.shared and fitted.roots[r].kind not in with_factors for r in groups
        )
        left = None
        if not bare:
            left = fitted.train.take(index, ROW_PAD)
        fill(fitted, groups, left, fitted.train, out, self._store, index)
        out[:, np.arange(len(index)), index] = self.diagonal[:, index]
        return out

    def _groups(self):
        if self._all_groups is None:
            self._all_groups = tiles.group_kernels(self._fitted.forms, range(self.n_kernels), self.dtype)
        return self._all_groups

    def cross(
        self, X_new: MatrixLike, kernels: Index | None = None, support: Index | None = None
    ) -> CrossBank:
        """The `CrossBank` of new samples with the training samples, normalised alike.

        Parameters
        ----------
        X_new : ndarray, DataFrame or sparse of shape (rows, n_features), or (F, rows, n)
            New samples; for a bank made by `from_stack`, their precomputed kernels.
        kernels, support : slice, or array-like of int or bool, optional
            The kernels, and the training samples (columns of the blocks); all by default.
        """
        kernels = _as_index(slice(None) if kernels is None else kernels, self.n_kernels, "kernels")
        if support is not None:
            support = _as_index(support, self.n_samples, "support")
        if self._fitted is None:
            shape = (self.n_kernels, "rows", self.n_samples)
            new = expect("X_new", X_new, kind="real", shape=shape, finite=False, least=0)
        else:
            new = self._fitted.new_side(X_new, self._fitted.cues_of(kernels))
        return CrossBank(self, new, kernels, support)

    def between(self, rows: np.ndarray, columns: np.ndarray) -> CrossBank:
        """A CrossBank of training samples `rows` with `columns`, two arrays of int."""
        new = RowsOf(self.stack, rows) if self.resident else self._fitted.train.take(rows, ROW_PAD)
        return CrossBank(self, new, np.arange(self.n_kernels), columns)

    def _clone(self):
        new = copy(self)
        new._all_groups = None
        return new

    def restrict(self, train_idx: Index, *, resident: bool | None = None) -> Self:
        """The bank on a subset of the training samples, with the same scales.

        `train_idx` is a slice or an array of int or bool, in the requested order. ``resident=False`` omits
        the stack; by default a resident bank gives a copy.
        """
        index = _as_index(train_idx, self.n_samples, "train_idx", least=1)
        new = self._clone()
        new.n_samples = len(index)
        new.diagonal = self.diagonal[:, index].copy()
        if self._indefinite:  # a kernel may be definite on fewer samples: tested again
            new._indefinite = None
        if self._fitted is not None:
            new._fitted = self._fitted.restrict(index)
        if resident is False:
            new._store = Store()
        elif resident and not self.resident and self._fitted is not None:
            new._store = Store.of_stack(new._fitted, new.diagonal)
        else:
            new._store = self._store.restrict(index)
        return new

    def select(self, kernel_idx: Index) -> Self:
        """The bank with a subset of the kernels (slice, mask, or integers in the requested order), which
        shares the samples, the kept distances and, if the kernels are consecutive, the stack."""
        index = _as_index(kernel_idx, self.n_kernels, "kernel_idx", least=1)
        expect_distinct("kernel_idx", index.tolist())
        new = self._clone()
        new.names = [self.names[f] for f in index]
        if self._indefinite is not None:
            new._indefinite = {name: how for name, how in self._indefinite.items() if name in new.names}
        new.kernels_ = [self.kernels_[f] for f in index]
        run = as_range(index)
        new.diagonal = self.diagonal[index if run is None else run]
        roots = ()
        if self._fitted is not None:
            new._fitted = self._fitted.select(index)
            roots = {form.root for form in new._fitted.forms}
        new._store = self._store.select(index, roots)
        return new

    _SAVED = ("names", "kernels_", "normalize", "n_samples", "memory", "diagonal", "_fitted")

    def _state(self):
        """All but the stack, for `core.storage`."""
        return {name: getattr(self, name) for name in self._SAVED} | {"dtype": self.dtype.name}

    @classmethod
    def _from_state(cls, state):
        self = cls.__new__(cls)
        self._start(state["dtype"], state["memory"])
        vars(self).update({name: state[name] for name in cls._SAVED})
        if len({len(self.names), len(self.kernels_), len(self.diagonal)}) > 1:
            raise ValueError("a bank with different numbers of kernels")
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

    def __init__(self, bank: KernelBank, new: Any, kernels: np.ndarray, support: np.ndarray | None):
        self._bank = bank
        self._new = new
        self._kernels = kernels
        self._support = support
        self.dtype = bank.dtype
        self.n_kernels = len(kernels)
        self.n_columns = bank.n_samples if support is None else len(support)
        self.n_rows = new.n if isinstance(new, Side) else new.shape[1]
        if isinstance(new, Side):
            self._groups = tiles.group_kernels(bank._fitted.forms, kernels, bank.dtype)
            self._left = new._replace(factors=bank._fitted.factors(new, kernels.tolist()))
            self._right = bank._fitted.train
            if support is not None:
                needed = bank._fitted.cues_of(kernels)
                self._right = self._right.take(support, COLUMN_PAD, needed, matrix=False)

    def select(self, kernels: ArrayLike, support: ArrayLike) -> CrossBank:
        """Of these kernels and training samples, by their positions in this one."""
        support = np.asarray(support)
        if self._support is not None:
            support = self._support[support]
        return CrossBank(self._bank, self._new, self._kernels[np.asarray(kernels)], support)

    def _block_bytes(self, memory):
        if memory is None:
            return min(DEFAULT_BLOCK_BYTES, self._bank.memory)
        return memory

    def block_rows(self, memory: float | None = None) -> int:
        """Number of rows, 1 to `n_rows`, that fit into `memory` bytes (default as in `blocks`)."""
        memory = self._block_bytes(memory)
        return _rows_that_fit(memory, self.n_kernels * self.n_columns * self.dtype.itemsize, self.n_rows)

    def rows_into(self, rows: slice, out: np.ndarray) -> np.ndarray:
        """Write the block of a slice of new samples into `out`, (F', b, n_columns), and return it."""
        index = np.arange(self.n_rows)[rows]
        _check_out(out, (self.n_kernels, len(index), self.n_columns), self.dtype)
        if isinstance(self._new, Side):
            fill(self._bank._fitted, self._groups, self._left.take(index, ROW_PAD), self._right, out)
            return out
        for plane, f in zip(out, self._kernels, strict=True):
            part = self._new[f, rows]
            plane[...] = part if self._support is None else part[:, self._support]
        return _checked(out)

    def blocks(self, memory: float | None = None, reuse: bool = False) -> Iterator[tuple[slice, np.ndarray]]:
        """Iterate over (slice of new samples, block (F', b, n_columns)); blocks are read-only.

        A block takes at most `memory` bytes, by default 128 MiB or the bank's budget if smaller, or one row.
        ``reuse=True`` overwrites one array for all blocks and halves the memory.
        """
        memory = self._block_bytes(memory)
        run = None
        if not isinstance(self._new, Side) and self._support is None and self._new.dtype == self.dtype:
            run = as_range(self._kernels)
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


def _as_index(indices, n, name="indices", least=0):
    """A slice, mask or integers as integers in [0, n)."""
    if not isinstance(indices, slice):
        indices = np.atleast_1d(np.asarray(indices))
        if indices.dtype == bool:
            expect(name, indices, kind="bool", shape=(n,))
        else:
            indices = expect(name, indices, kind="int", shape=("k",), low=-n, high=n - 1, least=0)
    return expect(name, np.arange(n)[indices], kind="int", shape=("k",), least=least)


def _check_out(out, shape, dtype):
    if (np.shape(out), getattr(out, "dtype", None)) != (shape, dtype):
        raise ValueError(f"out must be an array of shape {shape}, dtype {dtype}, got shape {np.shape(out)}.")


def _checked(block):
    check_entries(block, "X_new")
    return block


def _rows_that_fit(memory, row, n_rows):
    return int(max(1, min(memory / max(row, 1), n_rows)))
