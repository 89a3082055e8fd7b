r"""Kernels on cues, and a bank that hands their rows out block by block.

A *cue* is a set of columns of ``X`` (colour, shape, one feature set among
many); a *kernel* says how two samples are compared on one cue.  Learning from
many cues means learning from many kernels on the same samples, and the work of
every solver in this package is to stream rows of their matrices

.. math:: K_j[i, i'] = k_j(x_i, x_{i'}), \qquad j = 1 \dots F .

:class:`KernelBank` owns these matrices.  It keeps them all in memory when they
fit a stated budget and computes the rows asked for when they do not, so that a
solver is written once, against blocks of shape (F, rows, n).

Conventions
-----------
* ``gamma`` is the divisor of the papers: :math:`k = \exp(-d / \gamma)`, and
  ``gamma="mean"`` is their rule, the mean of that same *d* over the training
  pairs (thesis appendix A, Flowers and Pendigits; Gehler and Nowozin 2009).
* Kernels computed from ``X`` are normalised to a unit diagonal by default,
  :math:`k(x,z) / \sqrt{k(x,x)\,k(z,z)}`, because the bounds of the thesis
  assume :math:`\|\phi^j(x)\| \le 1` (thesis theorems 4.1 to 4.5).
* Storage is float32 unless float64 is asked for.  Means, norms and diagonals
  are always summed in float64.

How blocks are computed
-----------------------
Kernels on the same columns share what they have in common: one matrix product
serves `Linear`, `Poly` and `RBF`, one distance serves every kernel that
differs only in gamma.  The product is computed in tiles of fixed shape, each
by one BLAS thread, and the tiles are dealt to as many threads as BLAS would
have used.  OpenBLAS splits one large product differently for different numbers
of threads, and its last bits follow the split; fixed tiles make the result the
same bits for any number of threads.
"""

from __future__ import annotations

import copy
import itertools
import math
import numbers
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from threadpoolctl import ThreadpoolController

from cuelearn.kernels.specifications import (
    RBF,
    Chi2,
    Kernel,
    Linear,
    Poly,
    Precomputed,
    as_range,
    check_kernels,
    check_nonnegative,
    check_samples,
    extract_columns,
    feature_places,
    largest_entry,
    place_of,
    resolve_columns,
)

__all__ = ["KernelBank", "CrossBank"]

# Tiles of the matrix product.  Rows are padded to ROW_PAD and columns to
# COLUMN_PAD (with zeros), so that every entry is computed by the same inner
# loop of BLAS wherever it lies: then a row computed on demand has the bits of
# the same row in a resident stack, and the tile of (j, i) is the transpose of
# the tile of (i, j).
ROW_PAD = 16
COLUMN_PAD = 64
TILE_ROWS = 256
TILE_ENTRIES = 2**17  # half a megabyte of float32: two such tiles stay in a core's cache
TILE_COLUMNS = 4096
STACK_TILE = 256

# Above this many samples the mean of a distance that has no closed form is
# taken over MEAN_SUBSAMPLE evenly spaced samples.
MEAN_EXACT_LIMIT = 20_000
MEAN_SUBSAMPLE = 5_000

# One gemm serves both products and distances of a cue while the mean squared
# norm is at most this multiple of the mean squared norm after centring; beyond
# it, the distances would lose that factor in digits to cancellation.
SHARED_PRODUCT_LIMIT = 16.0

# Pairs nearer than this, relative to |x|^2 + |z|^2, get their distance from the difference
# x - z instead of the product: equal samples are then at distance exactly 0, and the square
# root of a Euclidean distance does not magnify the rounding of the product.
NEAR = 1e-5
NEAR_EUCLIDEAN = 1e-2

# A row whose norm is below this fraction of its cue's largest entry counts as
# a zero vector: its products would leave the range of float32.
ZERO_NORM = 1e-15

# Blocks of fewer entries than this are computed by the calling thread alone.
WORTH_THREADS = 20_000

# Largest |K - K.T| accepted in a precomputed matrix, relative to its largest entry.
SYMMETRY_TOLERANCE = 1e-5

# Blocks handed out by iteration, unless the caller says otherwise (bytes).
DEFAULT_BLOCK_BYTES = 2**27


# --------------------------------------------------------------------------
# Compiled inner loops.  All are symmetric in (i, j) bit by bit: whatever is
# combined from the two sides is combined by one commutative operation first.
# Tiles come in C-contiguous scratch arrays that may be larger than the tile, and blocks go
# out through a flat view with an offset: then the compiler knows that neighbours in a row are
# neighbours in memory, and vectorises.
# --------------------------------------------------------------------------


# Reassociation lets the compiler keep several accumulators of a sum in a vector.  The order of
# the sum then depends on the number of columns only, not on i, j or threads.
_SUMS = {"reassoc", "nsz", "nnan", "ninf"}


@njit(nogil=True, cache=True, fastmath=_SUMS)
def _direct_squared_distance(x, z):
    total = x.dtype.type(0)
    for c in range(x.shape[0]):
        difference = x[c] - z[c]
        total += difference * difference
    return total


@njit(nogil=True, cache=True)
def _squared_distance_into(product, left, right, sq_left, sq_right, near, out):
    """out[i, j] = |left_i|^2 + |right_j|^2 - 2 product[i, j], at least 0; `out` may be `product`.

    Pairs nearer than `near` (|left_i|^2 + |right_j|^2) are computed from their difference.
    """
    zero = out.dtype.type(0)
    n_columns = sq_right.shape[0]
    for i in range(sq_left.shape[0]):
        row, target, own = product[i], out[i], sq_left[i]
        n_near = 0
        for j in range(n_columns):
            both = own + sq_right[j]
            d = both - (row[j] + row[j])
            target[j] = max(d, zero)
            n_near += d < near * both
        if n_near > 0:
            for j in range(n_columns):
                if target[j] < near * (own + sq_right[j]):
                    target[j] = _direct_squared_distance(left[i], right[j])


@njit(nogil=True, cache=True)
def _linear_into(product, left, right, flat, offset, width):
    """flat[offset + i width + j] = product[i, j] left_i right_j."""
    n_columns = right.shape[0]
    for i in range(left.shape[0]):
        row, factor = product[i], left[i]
        target = flat[offset + i * width : offset + i * width + n_columns]
        for j in range(n_columns):
            target[j] = row[j] * (factor * right[j])


@njit(nogil=True, cache=True)
def _poly_into(product, slope, intercept, degree, left, right, flat, offset, width):
    """flat[offset + i width + j] = ((slope product[i, j] + intercept) left_i right_j)^degree."""
    n_columns = right.shape[0]
    for i in range(left.shape[0]):
        row, factor = product[i], left[i]
        target = flat[offset + i * width : offset + i * width + n_columns]
        for j in range(n_columns):
            target[j] = (row[j] * slope + intercept) * (factor * right[j])
        if degree == 2:
            for j in range(n_columns):
                target[j] *= target[j]
        elif degree > 2:
            for j in range(n_columns):
                t = target[j]
                power = t * t
                for _ in range(degree - 2):
                    power *= t
                target[j] = power


@intrinsic
def _float_of_bits(typing_context, bits):
    """The float32 whose bits are those of an int32."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


_LOG2_E = np.float32(1.44269504088896341)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_ROUNDING = np.float32(1.5 * 2**23)  # adding and subtracting it rounds to an integer
_LOWEST_EXPONENT = np.float32(-87.0)  # exp of less leaves float32's normal numbers: 0
_ONE = np.float32(1.0)
# Cephes' coefficients for (exp(r) - 1 - r) / r^2 on |r| <= log(2) / 2
_E0, _E1, _E2, _E3, _E4, _E5 = (
    np.float32(c)
    for c in (
        1.9875691500e-4,
        1.3981999507e-3,
        8.3334519073e-3,
        4.1665795894e-2,
        1.6666665459e-1,
        5.0000001201e-1,
    )
)


@njit(nogil=True, cache=True)
def _exp_into(distance, n_rows, n_columns, slopes, offsets, flat, width):
    """flat[offsets[k] + i width + j] = exp(slopes[k] distance[i, j]) in float32, slopes <= 0.

    exp(x) = 2^k exp(r), k = round(x / log 2), |r| <= log(2) / 2, within 1e-7 relative; 0 for
    x < -87.  One pass over the output, 2.4 times as fast as NumPy's multiply and exp, and
    without a Python call per kernel; it is what a block of 1,400 kernels spends its time on.
    """
    for k in range(slopes.shape[0]):
        slope = slopes[k]
        for i in range(n_rows):
            row = distance[i]
            start = offsets[k] + i * width
            target = flat[start : start + n_columns]
            for j in range(n_columns):
                exponent = row[j] * slope
                x = max(exponent, _LOWEST_EXPONENT)
                whole = (x * _LOG2_E + _ROUNDING) - _ROUNDING
                r = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
                y = ((((_E0 * r + _E1) * r + _E2) * r + _E3) * r + _E4) * r + _E5
                y = (y * (r * r) + r) + _ONE
                bits = (types.int32(whole) + types.int32(127)) << types.int32(23)
                y *= _float_of_bits(types.int32(bits))
                target[j] = y if exponent >= _LOWEST_EXPONENT else types.float32(0.0)


@njit(nogil=True, cache=True, fastmath=_SUMS)
def cityblock_into(left, right, out):
    """out[i, j] = sum_c |left[i, c] - right[j, c]|."""
    for j in range(out.shape[1]):
        z = right[j]
        for i in range(out.shape[0]):
            x = left[i]
            total = out.dtype.type(0)
            for c in range(x.shape[0]):
                total += abs(x[c] - z[c])
            out[i, j] = total


# error_model="numpy": a check for zero divisors at every term would keep the loop scalar
@njit(nogil=True, cache=True, fastmath=_SUMS, error_model="numpy")
def chi2_into(left, right, tiny, out):
    """out[i, j] = sum_c (left[i, c] - right[j, c])^2 / (left[i, c] + right[j, c]).

    `tiny` is the smallest normal number: it makes 0/0 a zero without a branch.
    """
    for j in range(out.shape[1]):
        z = right[j]
        for i in range(out.shape[0]):
            x = left[i]
            total = out.dtype.type(0)
            for c in range(x.shape[0]):
                difference = x[c] - z[c]
                total += difference * difference / max(x[c] + z[c], tiny)
            out[i, j] = total


@njit(nogil=True, cache=True)
def _mirror(flat, start, n, r0, r1, c0, c1):
    """Copy the tile [r0:r1, c0:c1] of the square matrix at `start`, rows `n` entries apart, to its mirror image.

    A tile on the diagonal gets its upper triangle copied to its lower one.
    """
    if r0 == c0:
        for i in range(r0, r1):
            for j in range(i + 1, c1):
                flat[start + j * n + i] = flat[start + i * n + j]
        return
    for cc in range(c0, c1, 32):  # small squares: their cache lines are still there
        cc1 = min(cc + 32, c1)
        for rr in range(r0, r1, 32):
            rr1 = min(rr + 32, r1)
            for j in range(cc, cc1):
                target = flat[start + j * n + rr : start + j * n + rr1]
                for i in range(rr1 - rr):
                    target[i] = flat[start + (rr + i) * n + j]


@njit(nogil=True, cache=True)
def _gather_square(matrix, index, out):
    """out[i, j] = matrix[index[i], index[j]]."""
    for i in range(index.shape[0]):
        row, target = matrix[index[i]], out[i]
        for j in range(index.shape[0]):
            target[j] = row[index[j]]


@njit(nogil=True, cache=True)
def _count_not_finite(values, highest):
    count = 0
    for j in range(values.shape[0]):
        count += not (abs(values[j]) <= highest)
    return count


@njit(nogil=True, cache=True, fastmath=_SUMS)
def _largest_entries(row, other, largest, asymmetry):
    for j in range(row.shape[0]):
        a, b = row[j], other[j]
        largest = max(largest, max(abs(a), abs(b)))
        asymmetry = max(asymmetry, abs(a - b))
    return largest, asymmetry


@njit(nogil=True, cache=True)
def _inspect(matrix, highest):
    """Return (number of entries not finite, largest |entry|, largest |K - K.T|, lowest diagonal).

    One pass: a tile and its mirror image are read together.
    """
    n = matrix.shape[0]
    zero = matrix.dtype.type(0)
    n_bad, largest, asymmetry, lowest = 0, zero, zero, matrix[0, 0]
    size, small = 128, 32
    mirror = np.empty((size, size + 16), matrix.dtype)
    for r0 in range(0, n, size):
        r1 = min(r0 + size, n)
        for c0 in range(r0, n, size):
            c1 = min(c0 + size, n)
            for j0 in range(c0, c1, small):
                j1 = min(j0 + small, c1)
                for i0 in range(r0, r1, small):
                    for i in range(i0, min(i0 + small, r1)):
                        target = mirror[i - r0]
                        for j in range(j0, j1):
                            target[j - c0] = matrix[j, i]
            for j in range(c0, c1):
                n_bad += _count_not_finite(matrix[j, r0:r1], highest)
            for i in range(r0, r1):
                row = matrix[i, c0:c1]
                n_bad += _count_not_finite(row, highest)
                largest, asymmetry = _largest_entries(row, mirror[i - r0, : c1 - c0], largest, asymmetry)
        for i in range(r0, r1):
            lowest = min(lowest, matrix[i, i])
    return n_bad, largest, asymmetry, lowest


# --------------------------------------------------------------------------
# Threads
# --------------------------------------------------------------------------


class _Crew:
    """Deals tasks to threads while BLAS is held at one thread each.

    As many threads work as BLAS would have used, so that the usual switches
    (``OPENBLAS_NUM_THREADS``, ``threadpool_limits``, joblib's inner limit)
    govern this module too and never more threads than cores are busy.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._inside = 0
        self._saved = []
        self._libraries = None
        self._reset()

    def _reset(self):
        # A forked child has none of its parent's threads.
        self._lock = threading.Lock()
        self._pool = None
        self._pool_size = 0
        self._inside = 0

    def _enter(self):
        with self._lock:
            if self._libraries is None:
                self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            self._inside += 1
            if self._inside > 1:
                return 1  # another thread of the user holds the cores already
            self._saved = [library.num_threads or 1 for library in self._libraries]
            n_threads = max(self._saved, default=1)
            if n_threads > 1:
                for library in self._libraries:
                    library.set_num_threads(1)
            return min(n_threads, _n_cores())

    def _leave(self):
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and max(self._saved, default=1) > 1:
                for library, number in zip(self._libraries, self._saved, strict=False):
                    library.set_num_threads(number)

    def run(self, function, tasks, work_size):
        """Call ``function(task, buffers)`` for every task; order of execution is not fixed.

        `buffers` is a dict private to one thread, for scratch arrays that
        outlive a task.  `work_size` (number of matrix entries to be written)
        tells whether threads are worth waking.
        """
        n_threads = self._enter()
        try:
            n_threads = min(n_threads, len(tasks))
            if n_threads <= 1 or work_size < WORTH_THREADS:
                buffers = {}
                for task in tasks:
                    function(task, buffers)
                return
            counter = itertools.count()  # next() on it is atomic
            stopped = threading.Event()

            def work():
                buffers = {}
                try:
                    while (number := next(counter)) < len(tasks) and not stopped.is_set():
                        function(tasks[number], buffers)
                except BaseException:
                    stopped.set()
                    raise

            with self._lock:
                if self._pool_size < n_threads - 1:
                    if self._pool is not None:
                        self._pool.shutdown(wait=False)
                    self._pool_size = n_threads - 1
                    self._pool = ThreadPoolExecutor(self._pool_size, "cuelearn-kernels")
                pool = self._pool
            futures = [pool.submit(work) for _ in range(n_threads - 1)]
            try:
                work()
            finally:
                errors = [future.exception() for future in futures]
            for error in errors:
                if error is not None:
                    raise error
        finally:
            self._leave()


def _n_cores():
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no affinity call
        return os.cpu_count() or 1


_CREW = _Crew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_CREW._reset)


def _scratch(buffers, name, shape, dtype):
    """Return a C-contiguous scratch array of `shape`, reusing the thread's buffer."""
    size = math.prod(shape)
    buffer = buffers.get(name)
    if buffer is None or buffer.size < size or buffer.dtype != dtype:
        buffer = buffers[name] = np.empty(size, dtype)
    return buffer[:size].reshape(shape)


def _pad_up(n, multiple):
    return -(-n // multiple) * multiple


def _padded(array, dtype, multiple):
    """Copy a 2-D array into the first rows of a zero one with a padded number of rows."""
    out = np.zeros((_pad_up(max(len(array), 1), multiple), array.shape[1]), dtype)
    out[: len(array)] = array
    return out


# --------------------------------------------------------------------------
# Columns and input
# --------------------------------------------------------------------------


def _power_of_two(values):
    """Return the power of two at or above the largest magnitude (1 for an all-zero array)."""
    largest = largest_entry(values)
    if largest == 0:
        return 1.0
    return math.ldexp(1.0, min(max(math.frexp(largest)[1], -500), 500))


def _as_index(indices, n, name="indices"):
    """Return `indices` (slice, mask or integers) as an array of integers in [0, n)."""
    if isinstance(indices, slice):
        return np.arange(n)[indices]
    index = np.atleast_1d(np.asarray(indices))
    if index.ndim != 1:
        raise ValueError(f"{name} must be 1-D, got shape {index.shape}.")
    if index.dtype == bool:
        if len(index) != n:
            raise ValueError(f"{name} as a mask must have length {n}, got {len(index)}.")
        return np.flatnonzero(index)
    if index.size == 0:
        return index.astype(np.intp)
    if not np.issubdtype(index.dtype, np.integer):
        raise TypeError(f"{name} must be integers, a mask or a slice, got dtype {index.dtype}.")
    if index.min() < -n or index.max() >= n:
        raise ValueError(f"{name} must lie in [0, {n}), got {index.min()} to {index.max()}.")
    return np.where(index < 0, index + n, index).astype(np.intp)


def _check_matrix(matrix, what, asymmetry_allowed=SYMMETRY_TOLERANCE):
    n_bad, largest, asymmetry, lowest = _inspect(matrix, np.finfo(matrix.dtype).max)
    if n_bad:
        return f"{what} holds NaN or infinite values."
    if asymmetry > asymmetry_allowed * largest:
        return (
            f"{what} must be symmetric, got entries that differ from their mirror image by {asymmetry:.3g}."
        )
    if lowest < 0:
        return f"{what} must have a non-negative diagonal, got {lowest:.3g}."
    return None


# --------------------------------------------------------------------------
# What the bank computes from
# --------------------------------------------------------------------------


class _Cue:
    """One set of columns: how raw rows become the arrays that tiles are computed from.

    Attributes
    ----------
    name : str
        The first kernel's name, for messages.
    index : ndarray of int
        Columns of X.
    scale, centre, centred_scale
        ``plain = x / scale`` and ``centred = (x - centre) / centred_scale``; the scales
        are powers of two (dividing is exact) that bring all entries into [-1, 1], so that
        squares stay in the range of float32.
    take : ndarray of int or None
        For "matrix": the columns (within the cue) of the present training samples.
    nonnegative : bool
        Whether negative entries are an error.
    """

    def __init__(self, name, index):
        self.name = name
        self.index = index
        self.scale = 1.0
        self.centre = None
        self.centred_scale = 1.0
        self.take = None
        self.nonnegative = False


@dataclass(frozen=True)
class _Root:
    """A quantity computed once per tile: a product, a distance or given columns of one cue."""

    cue: int
    kind: str  # product, sqeuclidean, cityblock, chi2, matrix
    source: str  # which array of the cue: plain, centred, matrix
    near: float = NEAR  # see NEAR; for distances from a product


@dataclass(frozen=True)
class _Form:
    """How one kernel follows from its root."""

    root: int
    kind: str  # linear, poly, exp, given
    metric: str = ""  # for exp: sqeuclidean, euclidean or direct
    # linear: unused; poly: slope, offset, degree; exp: slope (-scale / gamma)
    slope: float = 1.0
    offset: float = 0.0
    degree: int = 1
    pivot: float = 1.0  # linear, poly: the factor of a row when not normalised


class _Side:
    """Rows of one side of a block: training samples, or new ones.

    Attributes
    ----------
    n : int
    arrays : list of dict, one per cue
        "plain", "centred": padded arrays; "matrix": (n, n_train) as given;
        "sq_plain", "sq_centred": their squared row norms in the storage dtype;
        "norm": squared row norms of plain in float64.
    factors : dict of int to ndarray
        For linear and poly kernels, what normalises the rows.
    index : ndarray of int or None
        For training samples: their numbers (columns of "matrix").
    """

    def __init__(self, n, arrays, factors, index):
        self.n = n
        self.arrays = arrays
        self.factors = factors
        self.index = index

    def take(self, index, multiple, matrix=True):
        arrays = []
        for held in self.arrays:
            new = {}
            for key, value in held.items():
                if key in ("plain", "centred"):
                    new[key] = np.zeros((_pad_up(max(len(index), 1), multiple), value.shape[1]), value.dtype)
                    np.take(value, index, axis=0, out=new[key][: len(index)], mode="clip")
                elif key == "matrix":
                    if matrix:
                        new[key] = value[index]
                else:
                    new[key] = value[index]
            arrays.append(new)
        factors = {f: value[index] for f, value in self.factors.items()}
        return _Side(len(index), arrays, factors, index)


def _squared_norms(array):
    return np.einsum("ij,ij->i", array, array, dtype=np.float64)


def _squared_distances(root, product, left, right, r0, r1, c0, c1, out):
    a, b = left.arrays[root.cue], right.arrays[root.cue]
    source, squares = root.source, "sq_" + root.source
    _squared_distance_into(
        product,
        a[source][r0:r1],
        b[source][c0:c1],
        a[squares][r0:r1],
        b[squares][c0:c1],
        product.dtype.type(root.near),
        out,
    )


def _base_tile(root, left, right, r0, r1, c0, c1, buffers):
    """Compute one tile of a root, rows r0:r1 of `left` against rows c0:c1 of `right`.

    This is the only place where products and distances are computed.  Returns a C-contiguous
    array whose first r1 - r0 rows and c1 - c0 columns are the tile.
    """
    a, b = left.arrays[root.cue], right.arrays[root.cue]
    if root.kind == "matrix":
        columns = slice(c0, c1) if right.index is None else right.index[c0:c1]
        return np.ascontiguousarray(a["matrix"][r0:r1, columns])
    x, z = a[root.source], b[root.source]
    if root.kind in ("product", "sqeuclidean"):
        p1, q1 = _pad_up(r1, ROW_PAD), _pad_up(c1, COLUMN_PAD)
        tile = _scratch(buffers, "product", (p1 - r0, q1 - c0), x.dtype)
        np.matmul(x[r0:p1], z[c0:q1].T, out=tile)
        if root.kind == "sqeuclidean":
            _squared_distances(root, tile, left, right, r0, r1, c0, c1, tile)
        return tile
    tile = _scratch(buffers, "distance", (r1 - r0, c1 - c0), x.dtype)
    if root.kind == "cityblock":
        cityblock_into(x[r0:r1], z[c0:c1], tile)
    else:
        chi2_into(x[r0:r1], z[c0:c1], np.finfo(x.dtype).tiny, tile)
    return tile


def _derived(root, metric, tile, left, right, r0, r1, c0, c1, buffers):
    """Turn a root's tile into the distance that an exponential kernel needs."""
    if metric == "direct":
        return tile
    if root.kind == "product":
        out = _scratch(buffers, "squared", tile.shape, tile.dtype)
        _squared_distances(root, tile, left, right, r0, r1, c0, c1, out)
        tile = out
    if metric == "euclidean":
        out = _scratch(buffers, "root", tile.shape, tile.dtype)
        part = np.s_[: r1 - r0, : c1 - c0]
        np.sqrt(tile[part], out=out[part])
        tile = out
    return tile


def _empty_stack(n_kernels, n, dtype):
    """Empty stack of shape (F, n, n) in which the rows of one sample lie side by side.

    Solvers visit a sample's rows of all kernels together; adjacent, they come at memory speed.
    """
    return np.empty((n, n_kernels, n), dtype).transpose(1, 0, 2)


class _Target:
    """Where a block goes: a flat view of (planes, rows, columns) and its strides in entries.

    `ok` is False for arrays whose rows are not contiguous; these have no such view.
    """

    def __init__(self, out):
        size = out.itemsize
        plane, width, step = out.strides
        self.ok = step == size and min(plane, width) > 0 and plane % size == width % size == 0
        if not self.ok:
            return
        self.plane, self.width = plane // size, width // size
        length = sum((extent - 1) * stride for extent, stride in zip(out.shape, out.strides, strict=False))
        self.out = out
        self.flat = np.lib.stride_tricks.as_strided(out, (length // size + 1,), (size,))


class _Group:
    """The kernels of a block that come from one root, and where they go.

    Attributes
    ----------
    exponentials : list of (metric, slopes, positions)
        Arrays of what -d is multiplied by and of planes, one triple per distance.
    others : list of (number of the kernel, form, position)
    positions : list of int
    """

    def __init__(self, members, forms, dtype):
        self.positions = [position for _, position in members]
        self.others, by_metric = [], {}
        for f, position in members:
            if forms[f].kind == "exp":
                by_metric.setdefault(forms[f].metric, []).append((forms[f].slope, position))
            else:
                self.others.append((f, forms[f], position))
        lowest = float(np.finfo(dtype).min)  # -inf times a distance of 0 would be NaN
        self.exponentials = [
            (
                metric,
                np.array([max(slope, lowest) for slope, _ in pairs], dtype),
                np.array([position for _, position in pairs], np.int64),
            )
            for metric, pairs in by_metric.items()
        ]


def _kernels_from_tile(root, group, tile, left, right, r0, r1, c0, c1, target, buffers):
    """Write the kernels of one root's tile into rows r0:r1 and columns c0:c1 of their planes."""
    flat, width, plane = target.flat, target.width, target.plane
    place = r0 * width + c0
    kind = tile.dtype.type
    for f, form, position in group.others:
        if form.kind == "linear":
            _linear_into(
                tile, left.factors[f][r0:r1], right.factors[f][c0:c1], flat, position * plane + place, width
            )
        elif form.kind == "poly":
            _poly_into(
                tile,
                kind(form.slope),
                kind(form.offset),
                form.degree,
                left.factors[f][r0:r1],
                right.factors[f][c0:c1],
                flat,
                position * plane + place,
                width,
            )
        else:
            target.out[position, r0:r1, c0:c1] = tile
    for metric, slopes, positions in group.exponentials:
        distance = _derived(root, metric, tile, left, right, r0, r1, c0, c1, buffers)
        if kind is np.float32:
            offsets = positions * plane + place
            _exp_into(distance, r1 - r0, c1 - c0, slopes, offsets, flat, width)
            continue
        with np.errstate(under="ignore", over="ignore"):
            for slope, position in zip(slopes, positions, strict=False):
                block = target.out[position, r0:r1, c0:c1]
                np.multiply(distance[: r1 - r0, : c1 - c0], slope, out=block)
                np.exp(block, out=block)


class KernelBank:
    r"""F kernels on n training samples, handed out in blocks of rows.

    .. math:: K_j[i, i'] = \frac{k_j(x_i, x_{i'})}{\sqrt{k_j(x_i, x_i)\, k_j(x_{i'}, x_{i'})}}

    The bank is *resident* when all F matrices fit `memory`; otherwise rows are
    computed when asked for.  When the matrices do not fit but the distances (or
    products) that they share do fit half of it, these are kept, and a row costs
    only its exponentials: 1,400 kernels from 7 distances.

    Parameters
    ----------
    kernels : list of (name, kernel, columns) or None
        As in scikit-learn's ColumnTransformer.  `name` is a string, unique;
        `kernel` a :class:`Kernel`; `columns` a slice, an integer or a name, a
        list of them, a boolean mask, or a callable that gets X and returns any
        of these.  Names need a DataFrame.  None means one `RBF()` on all columns.
    X : ndarray or DataFrame of shape (n, n_features)
        The training samples: real, finite.
    normalize : bool, default=True
        Divide by the square roots of the diagonal.  A sample with
        :math:`k(x, x) = 0` (a zero feature vector) keeps 0 in its row, column and
        diagonal; a row whose norm is below 1e-15 of the cue's largest entry, or
        below 1e-165, counts as one.  `Precomputed` kernels are used as given all the same.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Of blocks and storage.
    memory : float, default=2e9
        Budget in bytes for the resident stack, or for kept distances and one
        block.  The cues themselves (at most two copies of the selected columns
        in `dtype`) come on top.

    Attributes
    ----------
    n_kernels : int
        F.
    n_samples : int
        n.
    names : list of str
    dtype : numpy.dtype
    kernels_ : list of Kernel
        With numbers for gamma: what "mean" and "dim" came to.
    resident : bool
    stack : ndarray of shape (F, n, n) or None
        Exactly symmetric; None when not resident.  Built from X its memory order is (sample, kernel,
        column), so that the rows of one sample are adjacent; a given stack keeps its own order.
    diagonal : ndarray of shape (F, n), float64
        :math:`K_j[i, i]` after normalisation: exactly 1 where normalised, 0 for
        zero feature vectors.
    bases : list of (str, str)
        What is computed once and shared: (name of the first kernel on these
        columns, "product", "sqeuclidean", "cityblock", "chi2" or "matrix").

    Raises
    ------
    ValueError, TypeError
        One sentence that names the cue or the argument: NaN or infinite
        values (or beyond 1e150), columns that X lacks, repeated names, negative
        entries for chi2, a precomputed matrix of the wrong shape or not symmetric.

    See Also
    --------
    KernelBank.from_stack : a bank on precomputed matrices.

    Notes
    -----
    *Mean rule.*  ``gamma="mean"`` averages over all pairs :math:`i \ne i'`.  For
    the squared Euclidean distance this is :math:`\frac{2}{n-1} \sum_i \|x_i -
    \bar x\|^2`, exact in O(n d).  For other distances all pairs are streamed up
    to n = 20,000; above, the pairs of 5,000 evenly spaced samples.  A cue on
    which all samples agree has mean 0 and gets gamma = 1 (its kernel is
    constantly 1).

    *Accuracy.*  Distances are computed from centred columns, or from the shared
    product where centring would gain less than a factor 16 in squared norm;
    errors of a float32 kernel stay within a few 1e-6.  Rows computed on demand
    agree with the resident stack to float32 rounding (1e-6 absolute on
    normalised kernels; the same bits with OpenBLAS as far as tried).  Results are
    the same bits for any number of threads.

    *Cost.*  A block of b rows costs one product of (b, d) by (d, n) per cue and a few
    passes over its F b n entries; the exponentials dominate when many kernels
    share one distance.  The resident stack costs half of n such rows.

    References
    ----------
    .. [1] J. Luo, "Open-ended Learning of Visual and Multi-modal Patterns", thesis 5233,
       EPFL, 2011: theorems 4.1 to 4.6 (unit norms), appendix A (the mean rule), figure
       4.10 (1,400 kernels).
    .. [2] P. Gehler and S. Nowozin, "On feature combination for multiclass object
       classification", ICCV 2009.

    Examples
    --------
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
        self.normalize = bool(normalize)
        X, n, n_features, feature_names = check_samples(X)
        if n == 0:
            raise ValueError("X must have at least one row, got none.")
        self.n_samples = n
        self._n_features = n_features
        self._feature_names = feature_names
        if kernels is None:
            kernels = [("rbf", RBF(), slice(None))]
        triples = check_kernels(kernels)
        self.names = [name for name, _, _ in triples]
        self._given = False

        # 1. Cues: one per distinct set of columns, in order of appearance.
        cues, known, cue_of = [], {}, []
        places = feature_places(feature_names)
        for name, _, columns in triples:
            index = resolve_columns(name, columns, X, n_features, places)
            key = tuple(index.tolist())
            if key not in known:
                known[key] = len(cues)
                cues.append(_Cue(name, index))
            cue_of.append(known[key])
        self._cues = cues

        # 2. What each cue must provide, and the arrays themselves.
        wanted = [set() for _ in cues]
        for (name, kernel, _), c in zip(triples, cue_of, strict=False):
            wanted[c].add(_quantity(kernel))
        arrays, shared, squares = [], [], []
        for cue, want in zip(cues, wanted, strict=False):
            held, common, mean_square = self._prepare_cue(cue, want, X)
            arrays.append(held)
            shared.append(common)
            squares.append(mean_square)
        self._train = _Side(n, arrays, {}, None)

        # 3. Roots and forms.
        self._roots, self._means, forms, fitted = [], {}, [], []
        for (name, kernel, _), c in zip(triples, cue_of, strict=False):
            root, metric = self._root_of(kernel, c, wanted[c], shared[c])
            forms.append((root, metric))
        for (name, kernel, _), c, (root, metric) in zip(triples, cue_of, forms, strict=False):
            fitted.append(self._fit_kernel(kernel, c, root, metric, squares[c]))
        self.kernels_ = fitted
        self._forms = [
            self._form(kernel, root, metric) for kernel, (root, metric) in zip(fitted, forms, strict=False)
        ]
        self._train.factors = self._factors(self._train)
        self.diagonal = self._diagonal()
        self._settle()

    # ---------------------------------------------------------------- set-up

    def _start(self, dtype, memory):
        dtype = np.dtype(dtype)
        if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype must be float32 or float64, got {dtype}.")
        if isinstance(memory, bool) or not isinstance(memory, numbers.Real) or not memory >= 0:
            raise ValueError(f"memory must be a number of bytes, at least 0, got {memory!r}.")
        self.dtype = dtype
        self.memory = float(memory)
        self.stack = None
        self._stored = {}
        self._all_groups = None

    def _prepare_cue(self, cue, want, X):
        """Read a cue's columns once; return its arrays and whether one product serves all."""
        raw = extract_columns(X, cue.index, cue.name)
        held = {}
        if want & {"distance matrix", "kernel matrix"}:
            if len(want) > 1:
                raise ValueError(
                    f"cue {cue.name!r}: columns that hold a precomputed matrix cannot serve "
                    f"other kernels too, got {sorted(want)}."
                )
            self._prepare_matrix(cue, held, raw, "distance matrix" in want)
            return held, False, 0.0
        if "chi2" in want:
            cue.nonnegative = True
            check_nonnegative(raw, cue.name)
        euclidean = bool(want & {"sqeuclidean", "euclidean"})
        mean_square = 0.0
        centred = None
        if euclidean or "cityblock" in want:
            cue.centre = raw.mean(axis=0)
            centred = raw - cue.centre
            cue.centred_scale = _power_of_two(centred)
            centred /= cue.centred_scale
            mean_square = float(_squared_norms(centred).mean()) * cue.centred_scale**2
        if want & {"product", "chi2"}:
            cue.scale = _power_of_two(raw)
            raw /= cue.scale
            norm = _squared_norms(raw)
            held["plain"] = _padded(raw, self.dtype, COLUMN_PAD)
            held["norm"] = norm
        shared = False
        if euclidean and "product" in want:
            plain_square = float(norm.mean()) * cue.scale**2
            shared = plain_square <= SHARED_PRODUCT_LIMIT * mean_square
        if shared:
            held["sq_plain"] = norm.astype(self.dtype)
        if (euclidean and not shared) or "cityblock" in want:
            held["centred"] = _padded(centred, self.dtype, COLUMN_PAD)
            held["sq_centred"] = _squared_norms(centred).astype(self.dtype)
        return held, shared, mean_square

    def _prepare_matrix(self, cue, held, raw, distance):
        what = f"cue {cue.name!r}: the precomputed {'distance' if distance else 'kernel'} matrix"
        if raw.shape != (self.n_samples, self.n_samples):
            raise ValueError(f"{what} must be square (n, n), got shape {raw.shape}.")
        matrix = np.ascontiguousarray(raw, dtype=self.dtype)
        problem = _check_matrix(matrix, what)
        if problem:
            raise ValueError(problem)
        if distance:
            cue.nonnegative = True
            check_nonnegative(raw, cue.name)
            if np.abs(np.diagonal(raw)).max() > SYMMETRY_TOLERANCE * raw.max():
                raise ValueError(f"{what} must have a zero diagonal.")
            np.fill_diagonal(matrix, 0)
        n = self.n_samples
        for r0 in range(0, n, STACK_TILE):  # differences within the tolerance: made exact
            for c0 in range(r0, n, STACK_TILE):
                ends = min(r0 + STACK_TILE, n), min(c0 + STACK_TILE, n)
                _mirror(matrix.reshape(-1), 0, n, r0, ends[0], c0, ends[1])
        cue.take = np.arange(self.n_samples)
        held["matrix"] = matrix

    def _root_of(self, kernel, c, want, shared):
        """Return (number of the root, how the kernel's distance follows from it)."""
        quantity = _quantity(kernel)
        if quantity == "product":
            root, metric = _Root(c, "product", "plain"), ""
        elif quantity in ("sqeuclidean", "euclidean"):
            root = _Root(c, "product", "plain") if shared else _Root(c, "sqeuclidean", "centred")
            metric = quantity
        elif quantity == "cityblock":
            root, metric = _Root(c, "cityblock", "centred"), "direct"
        elif quantity == "chi2":
            root, metric = _Root(c, "chi2", "plain"), "direct"
        else:
            root, metric = _Root(c, "matrix", "matrix"), "direct"
        if "euclidean" in want and root.kind in ("product", "sqeuclidean"):
            root = replace(root, near=NEAR_EUCLIDEAN)
        if root not in self._roots:
            self._roots.append(root)
        return self._roots.index(root), metric

    def _fit_kernel(self, kernel, c, root, metric, mean_square):
        """Return the kernel with numbers for gamma."""
        if isinstance(kernel, Poly):
            if kernel.gamma == "dim":
                return replace(kernel, gamma=float(len(self._cues[c].index)))
        elif getattr(kernel, "gamma", None) == "mean":
            if metric == "sqeuclidean":
                n = self.n_samples
                mean = 2.0 * mean_square * n / (n - 1) if n > 1 else 0.0
            else:
                mean = self._mean_distance(root, metric)
            gamma = kernel.factor * mean
            if not gamma > 0:
                gamma = 1.0  # all samples agree: d = 0 for every pair and any gamma gives k = 1
            return replace(kernel, gamma=gamma, factor=1.0)
        return kernel

    def _mean_distance(self, root_number, metric):
        """Mean of a distance over the training pairs i != i', streamed in fixed tiles."""
        key = (root_number, metric)
        if key in self._means:
            return self._means[key]
        root, side, n = self._roots[root_number], self._train, self.n_samples
        if n > MEAN_EXACT_LIMIT and root.kind != "matrix":
            chosen = np.linspace(0, n - 1, MEAN_SUBSAMPLE).round().astype(np.intp)
            side, n = side.take(chosen, COLUMN_PAD), len(chosen)
        tiles = [(r0, c0) for r0 in range(0, n, STACK_TILE) for c0 in range(r0, n, STACK_TILE)]
        sums = np.zeros(len(tiles))

        def one(number, buffers):
            r0, c0 = tiles[number]
            r1, c1 = min(r0 + STACK_TILE, n), min(c0 + STACK_TILE, n)
            tile = _base_tile(root, side, side, r0, r1, c0, c1, buffers)
            tile = _derived(root, metric, tile, side, side, r0, r1, c0, c1, buffers)
            tile = tile[: r1 - r0, : c1 - c0]
            total = float(np.sum(tile, dtype=np.float64))
            if r0 == c0:  # rounding leaves small distances to itself: i != i' only
                sums[number] = total - float(np.trace(tile, dtype=np.float64))
            else:
                sums[number] = 2.0 * total

        _CREW.run(one, range(len(tiles)), n * n)
        mean = float(sums.sum()) / (n * (n - 1)) if n > 1 else 0.0
        self._means[key] = mean * self._unit(root, metric)
        return self._means[key]

    def _unit(self, root, metric):
        """What one unit of a root's scaled distance is in the units of X."""
        cue = self._cues[root.cue]
        if root.kind == "matrix":
            return 1.0
        scale = cue.centred_scale if root.source == "centred" else cue.scale
        return scale**2 if metric == "sqeuclidean" else scale

    def _form(self, kernel, root_number, metric):
        root = self._roots[root_number]
        if isinstance(kernel, Precomputed):
            return _Form(root_number, "given")
        if isinstance(kernel, Linear):
            return _Form(root_number, "linear", pivot=self._cues[root.cue].scale)
        if isinstance(kernel, Poly):
            # <x, z> / gamma + c0 = m p + c0, p the product of scaled rows; the larger of
            # m and c0 goes into the factors, to keep the constants in the range of float32
            m = self._cues[root.cue].scale ** 2 / kernel.gamma
            largest = max(m, float(kernel.coef0))
            return _Form(
                root_number,
                "poly",
                slope=m / largest,
                offset=kernel.coef0 / largest,
                degree=int(kernel.degree),
                pivot=math.sqrt(largest),
            )
        return _Form(root_number, "exp", metric, slope=-self._unit(root, metric) / kernel.gamma)

    def _factors(self, side, kernels=None):
        """Return what rows of linear and poly kernels are multiplied by, per kernel."""
        factors = {}
        for f in range(self.n_kernels) if kernels is None else kernels.tolist():
            form = self._forms[f]
            if form.kind not in ("linear", "poly"):
                continue
            norm = side.arrays[self._roots[form.root].cue]["norm"]
            if not self.normalize:
                factors[f] = np.full(side.n, form.pivot, self.dtype)
                continue
            own = norm * form.slope + form.offset if form.kind == "poly" else norm
            zero = own <= ZERO_NORM**2
            factor = 1.0 / np.sqrt(np.where(zero, 1.0, own))
            factor[zero] = 0.0
            factors[f] = factor.astype(self.dtype)
        return factors

    def _diagonal(self):
        diagonal = np.ones((self.n_kernels, self.n_samples))
        for f, form in enumerate(self._forms):
            held = self._train.arrays[self._roots[form.root].cue]
            if form.kind == "given":
                diagonal[f] = np.diagonal(held["matrix"])
            elif form.kind in ("linear", "poly"):
                if self.normalize:
                    diagonal[f] = self._train.factors[f] > 0
                else:
                    own = held["norm"] * form.slope + form.offset
                    diagonal[f] = (own * form.pivot**2) ** form.degree
        return diagonal

    def _settle(self):
        """Build what fits the budget: the stack, or the quantities it is made from."""
        n, size = self.n_samples, self.dtype.itemsize
        if self.n_kernels * n * n * size <= self.memory:
            self._build_stack()
            return
        roots = [r for r, root in enumerate(self._roots) if root.kind != "matrix"]
        if len(roots) < self.n_kernels and len(roots) * n * n * size <= self.memory / 2:
            self._build_stored(roots)

    def _build_stack(self):
        n = self.n_samples
        out = _empty_stack(self.n_kernels, n, self.dtype)
        groups = self._groups()
        tasks = [
            (r, r0, c0) for r in groups for r0 in range(0, n, STACK_TILE) for c0 in range(r0, n, STACK_TILE)
        ]
        side, target = self._train, _Target(out)

        def one(task, buffers):
            r, r0, c0 = task
            r1, c1 = min(r0 + STACK_TILE, n), min(c0 + STACK_TILE, n)
            tile = _base_tile(self._roots[r], side, side, r0, r1, c0, c1, buffers)
            _kernels_from_tile(self._roots[r], groups[r], tile, side, side, r0, r1, c0, c1, target, buffers)
            for position in groups[r].positions:
                _mirror(target.flat, position * target.plane, target.width, r0, r1, c0, c1)

        _CREW.run(one, tasks, out.size)
        every = np.arange(n)
        out[:, every, every] = self.diagonal
        self.stack = out

    def _build_stored(self, roots):
        n, side = self.n_samples, self._train
        stored = {r: np.empty((n, n), self.dtype) for r in roots}
        tasks = [
            (r, r0, c0) for r in roots for r0 in range(0, n, STACK_TILE) for c0 in range(r0, n, STACK_TILE)
        ]

        def one(task, buffers):
            r, r0, c0 = task
            r1, c1 = min(r0 + STACK_TILE, n), min(c0 + STACK_TILE, n)
            tile = _base_tile(self._roots[r], side, side, r0, r1, c0, c1, buffers)
            stored[r][r0:r1, c0:c1] = tile[: r1 - r0, : c1 - c0]
            _mirror(stored[r].reshape(-1), 0, n, r0, r1, c0, c1)

        _CREW.run(one, tasks, len(roots) * n * n)
        self._stored = stored

    @classmethod
    def from_stack(cls, K, *, names=None, dtype=None, validate=True, memory=2e9):
        """Make a bank of precomputed kernel matrices, used as given.

        Parameters
        ----------
        K : array-like of shape (F, n, n)
            Symmetric matrices with non-negative diagonals.  Not normalised: the
            real diagonal is kept.  A C-contiguous float32 or float64 array is
            used without a copy and must not be changed afterwards.
        names : list of str, optional
            Default: "k0", "k1", ...
        dtype : {numpy.float32, numpy.float64}, optional
            Default: that of `K` if it is one of these, else float32.
        validate : bool, default=True
            Check all values (one pass over the stack).  Shapes are always checked.
        memory : float, default=2e9
            Budget in bytes for blocks and for what solvers keep besides; the
            stack itself does not count.

        Returns
        -------
        KernelBank
            Resident whatever its size.

        Raises
        ------
        ValueError
            When K is not 3-D and square, holds NaN or infinite values, differs
            from its transpose by more than 1e-5 of its largest entry, or has a
            negative diagonal entry; when names are repeated or their number is wrong.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.arange(6.0).reshape(3, 2)
        >>> bank = KernelBank.from_stack([X @ X.T, np.eye(3)])
        >>> bank.diagonal
        array([[ 1., 13., 41.],
               [ 1.,  1.,  1.]])
        """
        K = np.asarray(K)
        if K.ndim != 3 or K.shape[1] != K.shape[2] or 0 in K.shape:
            raise ValueError(f"a precomputed stack must have shape (n_kernels, n, n), got {K.shape}.")
        if np.iscomplexobj(K) or K.dtype.kind not in "fiub":
            raise ValueError(f"a precomputed stack must hold real numbers, got dtype {K.dtype}.")
        if dtype is None:
            dtype = K.dtype if K.dtype in (np.float32, np.float64) else np.float32
        self = cls.__new__(cls)
        self._start(dtype, memory)
        if K.dtype != self.dtype or not K.transpose(1, 0, 2).flags.c_contiguous:
            K = np.ascontiguousarray(K, dtype=self.dtype)
        F, n, _ = K.shape
        if names is None:
            names = [f"k{f}" for f in range(F)]
        self.names = list(names)
        if len(self.names) != F or not all(isinstance(name, str) for name in self.names):
            raise ValueError(f"names must be {F} strings, got {names!r}.")
        if len(set(self.names)) < F:
            raise ValueError("names must be unique, got some more than once.")
        if validate:
            problems = [None] * F

            def one(f, _):
                problems[f] = _check_matrix(K[f], f"kernel {self.names[f]!r} of the stack")

            _CREW.run(one, range(F), K.size)
            for problem in problems:
                if problem:
                    raise ValueError(problem)
        self.normalize = False
        self.n_samples = n
        self._become_given(K)
        self.diagonal = np.einsum("fii->fi", K).astype(np.float64)
        return self

    def _become_given(self, stack):
        self._given = True
        self.kernels_ = [Precomputed()] * len(self.names)
        self._cues, self._roots, self._forms = [], [], []
        self._train = None
        self._n_features = self._feature_names = None
        self.stack = stack

    # ------------------------------------------------------------ properties

    @property
    def n_kernels(self):
        """Number of kernels F."""
        return len(self.names)

    @property
    def resident(self):
        """Whether the whole stack is in memory."""
        return self.stack is not None

    @property
    def bases(self):
        """What is computed once and shared, as (name of the cue, kind) pairs."""
        return [(self._cues[root.cue].name, root.kind) for root in self._roots]

    @property
    def triples(self):
        """The kernels as (name, kernel with numbers for gamma, column numbers): a bank on other samples with these gammas.

        Only of a bank made from X.
        """
        columns = (self._cues[self._roots[form.root].cue].index for form in self._forms)
        return [(n, k, c.tolist()) for n, k, c in zip(self.names, self.kernels_, columns, strict=True)]

    def __repr__(self):
        kind = "resident" if self.resident else "on demand"
        return (
            f"KernelBank(n_kernels={self.n_kernels}, n_samples={self.n_samples}, "
            f"dtype={self.dtype.name}, {kind})"
        )

    # ---------------------------------------------------------------- blocks

    def block_rows(self, memory=None):
        """Return how many rows of all kernels fit into `memory` bytes.

        Parameters
        ----------
        memory : float, optional
            Bytes.  Default: the bank's budget, less what it keeps of distances.

        Returns
        -------
        int
            Between 1 and n.
        """
        if memory is None:
            memory = self.memory - sum(kept.nbytes for kept in self._stored.values())
        return _rows_that_fit(memory, self.n_kernels, self.n_samples, self.dtype, self.n_samples)

    def rows(self, indices):
        """Return rows of all training kernels.

        Parameters
        ----------
        indices : slice, or array-like of int or bool
            Training samples.

        Returns
        -------
        ndarray of shape (F, b, n)
            C-contiguous when computed.  A view of the stack when the bank is resident and
            `indices` is a slice: do not write to it.

        Raises
        ------
        ValueError
            When an index is out of range, or the rows would exceed the bank's
            budget (``block_rows()`` says how many fit).
        """
        if self.resident and isinstance(indices, slice):
            return self.stack[:, indices]
        index = _as_index(indices, self.n_samples)
        if not self.resident and len(index) > self.block_rows():
            raise ValueError(
                f"indices ask for {len(index)} rows, but {self.block_rows()} fit the bank's memory "
                f"of {self.memory:.3g} bytes."
            )
        out = np.empty((self.n_kernels, len(index), self.n_samples), self.dtype)
        return self.rows_into(index, out)

    def rows_into(self, indices, out):
        """Write rows of all training kernels into a given array.

        Parameters
        ----------
        indices : slice, or array-like of int or bool
            Training samples, b of them.
        out : ndarray of shape (F, b, n)
            Of the bank's dtype; any slice of a C-contiguous array will do.

        Returns
        -------
        ndarray
            `out`.

        Raises
        ------
        ValueError
            When an index is out of range or `out` does not fit.
        """
        index = _as_index(indices, self.n_samples)
        _check_out(out, (self.n_kernels, len(index), self.n_samples), self.dtype)
        if self.resident:
            for f in range(self.n_kernels):
                out[f] = self.stack[f][index]
            return out
        if self._given:
            raise ValueError("this bank was saved without its stack and has no training rows.")
        groups = self._groups()
        # kept distances need nothing else of the samples
        bare = all(r in self._stored and self._roots[r].kind != "product" for r in groups)
        left = None if bare else self._train.take(index, ROW_PAD)
        self._fill(groups, left, self._train, out, stored_rows=index)
        places = np.arange(len(index))
        out[:, places, index] = self.diagonal[:, index]
        return out

    def _groups(self, kernels=None):
        """Group kernels by what they are computed from: {root: _Group}; all by default."""
        if kernels is None and self._all_groups is not None:
            return self._all_groups
        members = {}
        for position, f in enumerate(range(self.n_kernels) if kernels is None else kernels):
            members.setdefault(self._forms[f].root, []).append((int(f), position))
        groups = {r: _Group(group, self._forms, self.dtype) for r, group in members.items()}
        if kernels is None:
            self._all_groups = groups
        return groups

    def _fill(self, groups, left, right, out, stored_rows=None):
        """Compute a block, one task per root, tile of rows and tile of columns."""
        n_rows, n_columns = out.shape[1], out.shape[2]
        if out.size == 0:
            return
        target = _Target(out)
        if not target.ok:
            dense = np.empty(out.shape, out.dtype)
            self._fill(groups, left, right, dense, stored_rows)
            out[...] = dense
            return
        # many rows at once are cheaper per row: BLAS rearranges the columns once for all of them
        tile_rows = min(TILE_ROWS, _pad_up(n_rows, ROW_PAD))
        tile_columns = min(TILE_COLUMNS, TILE_ENTRIES // tile_rows // COLUMN_PAD * COLUMN_PAD)
        tasks = [
            (r, r0, c0)
            for r0 in range(0, n_rows, tile_rows)
            for r in groups
            for c0 in range(0, n_columns, tile_columns)
        ]

        def one(task, buffers):
            r, r0, c0 = task
            r1, c1 = min(r0 + tile_rows, n_rows), min(c0 + tile_columns, n_columns)
            root = self._roots[r]
            if stored_rows is not None and r in self._stored:
                tile = self._stored[r][stored_rows[r0:r1], c0:c1]
            else:
                tile = _base_tile(root, left, right, r0, r1, c0, c1, buffers)
            _kernels_from_tile(root, groups[r], tile, left, right, r0, r1, c0, c1, target, buffers)

        _CREW.run(one, tasks, out.size)

    def cross(self, X_new, kernels=None, support=None):
        """Prepare the kernels between new samples and the training samples.

        Parameters
        ----------
        X_new : ndarray or DataFrame of shape (rows, n_features), or (F, rows, n)
            New samples in the form of X; for a bank made by `from_stack`, the
            precomputed kernels between them and the training samples.  A
            DataFrame's columns are found by name if the bank was made from one.
        kernels : slice, or array-like of int or bool, optional
            The kernels wanted; the others are not computed.
        support : slice, or array-like of int or bool, optional
            The training samples wanted (columns of the blocks).

        Returns
        -------
        CrossBank

        Raises
        ------
        ValueError
            When X_new has the wrong shape, lacks columns, holds NaN or infinite
            values, or negative ones for chi2.

        Notes
        -----
        Normalised like the training kernels: by k(z, z) of the new samples too.
        Nothing is computed before blocks are asked for, but the new samples are
        copied (at most two copies of the columns used).
        """
        kernel_index = (
            np.arange(self.n_kernels) if kernels is None else _as_index(kernels, self.n_kernels, "kernels")
        )
        support_index = None if support is None else _as_index(support, self.n_samples, "support")
        return CrossBank(self, X_new, kernel_index, support_index)

    def _new_side(self, X_new, needed):
        """Return the _Side of new samples, with the arrays of the cues in `needed`."""
        X_new, rows, n_features, feature_names = check_samples(X_new, "X_new")
        by_name = (
            self._feature_names is not None
            and feature_names is not None
            and all(isinstance(name, str) for name in self._feature_names)
        )
        if not by_name and n_features != self._n_features:
            raise ValueError(
                f"X_new has {n_features} columns, but the bank was made from {self._n_features}."
            )
        places = feature_places(feature_names)
        arrays = []
        for c, cue in enumerate(self._cues):
            held = {}
            arrays.append(held)
            if c not in needed:
                continue
            index = cue.index
            if by_name:
                index = np.array([place_of(cue.name, self._feature_names[i], places) for i in index])
            raw = extract_columns(X_new, index, cue.name)
            if cue.nonnegative:
                check_nonnegative(raw, cue.name)
            trained = self._train.arrays[c]
            if "matrix" in trained:
                held["matrix"] = raw[:, cue.take].astype(self.dtype)
                continue
            if "centred" in trained:
                centred = (raw - cue.centre) / cue.centred_scale
                held["centred"] = _padded(centred, self.dtype, ROW_PAD)
                held["sq_centred"] = _squared_norms(centred).astype(self.dtype)
            if "plain" in trained:
                raw /= cue.scale
                held["plain"] = _padded(raw, self.dtype, ROW_PAD)
                held["norm"] = _squared_norms(raw)
                if "sq_plain" in trained:
                    held["sq_plain"] = held["norm"].astype(self.dtype)
        return _Side(rows, arrays, {}, None)

    # --------------------------------------------------------------- subsets

    def _clone(self):
        new = KernelBank.__new__(KernelBank)
        new.__dict__.update(self.__dict__)
        new._all_groups = None
        return new

    def restrict(self, train_idx, *, resident=None):
        """Return the bank on a subset of the training samples, gammas kept.

        Parameters
        ----------
        train_idx : slice, or array-like of int or bool
            Training samples, in the order wanted.
        resident : bool, optional
            False leaves the sub-stack out (to save a model, for instance, which
            needs only the samples).  Default: as this bank is.

        Returns
        -------
        KernelBank
            A resident bank gives a copy of its sub-stack, others compute rows on
            demand.  For `from_stack` banks, new samples then come as (F, rows,
            number of samples kept).

        Raises
        ------
        ValueError
            When an index is out of range or none is given.
        """
        index = _as_index(train_idx, self.n_samples, "train_idx")
        if len(index) == 0:
            raise ValueError("train_idx must select at least one sample, got none.")
        new = self._clone()
        new.n_samples = len(index)
        new.diagonal = self.diagonal[:, index].copy()
        new._stored = {}
        new.stack = None
        if not self._given:
            new._train = self._train.take(index, COLUMN_PAD)
            new._train.index = None
            new._cues = [copy.copy(cue) for cue in self._cues]
            for cue, held in zip(new._cues, new._train.arrays, strict=False):
                if cue.take is not None:
                    cue.take = cue.take[index]
                    held["matrix"] = np.ascontiguousarray(held["matrix"][:, index])
        if resident is None or resident:
            if self.resident:
                new.stack = stack = _empty_stack(self.n_kernels, len(index), self.dtype)

                def one(f, _):
                    _gather_square(self.stack[f], index, stack[f])

                _CREW.run(one, range(self.n_kernels), stack.size)
            elif resident and not self._given:
                new._build_stack()
            else:
                new._stored = {r: kept[np.ix_(index, index)] for r, kept in self._stored.items()}
        return new

    def select(self, kernel_idx):
        """Return the bank with a subset of the kernels.

        Parameters
        ----------
        kernel_idx : slice, or array-like of int or bool
            Kernels, in the order wanted, each at most once.

        Returns
        -------
        KernelBank
            It shares the samples and the kept distances; it shares the stack when the
            kernels are consecutive, and copies their matrices otherwise.

        Raises
        ------
        ValueError
            When an index is out of range, repeated, or none is given.
        """
        index = _as_index(kernel_idx, self.n_kernels, "kernel_idx")
        if len(index) == 0:
            raise ValueError("kernel_idx must select at least one kernel, got none.")
        if len(np.unique(index)) < len(index):
            raise ValueError("kernel_idx must name each kernel at most once.")
        new = self._clone()
        new.names = [self.names[f] for f in index]
        new.kernels_ = [self.kernels_[f] for f in index]
        run = as_range(index)
        new.diagonal = self.diagonal[run if run is not None else index]
        if self.resident:
            if run is not None:
                new.stack = self.stack[run]
            else:
                new.stack = _empty_stack(len(index), self.n_samples, self.dtype)
                for position, f in enumerate(index):
                    new.stack[position] = self.stack[f]
        if self._given:
            return new
        used = sorted({self._forms[f].root for f in index})
        place = {r: k for k, r in enumerate(used)}
        new._roots = [self._roots[r] for r in used]
        new._forms = [replace(self._forms[f], root=place[self._forms[f].root]) for f in index]
        new._stored = {place[r]: kept for r, kept in self._stored.items() if r in place}
        cues = {root.cue for root in new._roots}
        arrays = [held if c in cues else {} for c, held in enumerate(self._train.arrays)]
        factors = {k: self._train.factors[f] for k, f in enumerate(index) if f in self._train.factors}
        new._train = _Side(self.n_samples, arrays, factors, None)
        return new

    # ---------------------------------------------------------------- saving

    def to_dict(self):
        """Return what describes the bank besides arrays, ready for JSON.

        Returns
        -------
        dict

        See Also
        --------
        arrays : the arrays that go with it.
        from_dict : rebuilds a bank from both.

        Examples
        --------
        >>> import numpy as np
        >>> bank = KernelBank(None, np.eye(4))
        >>> again = KernelBank.from_dict(bank.to_dict(), bank.arrays())
        >>> bool(np.all(again.rows([1, 2]) == bank.rows([1, 2])))
        True
        """
        names = self._feature_names
        if names is not None and not all(isinstance(name, str) for name in names):
            names = None
        return {
            "format": 1,
            "given": self._given,
            "names": list(self.names),
            "kernels": [kernel.to_dict() for kernel in self.kernels_],
            "n_samples": int(self.n_samples),
            "n_features": self._n_features,
            "feature_names": names,
            "normalize": self.normalize,
            "dtype": self.dtype.name,
            "memory": self.memory if math.isfinite(self.memory) else None,
            "cues": [
                {
                    "name": cue.name,
                    "columns": cue.index.tolist(),
                    "scale": cue.scale,
                    "centred_scale": cue.centred_scale,
                    "nonnegative": cue.nonnegative,
                    "take": None if cue.take is None else cue.take.tolist(),
                    "held": sorted(self._train.arrays[c]),
                }
                for c, cue in enumerate(self._cues)
            ],
            "roots": [[root.cue, root.kind, root.source, root.near] for root in self._roots],
            "forms": [[form.root, form.metric] for form in self._forms],
        }

    def arrays(self, stack=False):
        """Return the arrays that `from_dict` needs, by name.

        Parameters
        ----------
        stack : bool, default=False
            Include the resident stack.  Without it a bank made by `from_stack`
            can predict but has no training rows, and one made from X computes them again.

        Returns
        -------
        dict of str to ndarray
            The training samples in the form the bank computes from, restricted to the
            columns and samples it needs.  Ready for `numpy.savez`.
        """
        out = {"diagonal": self.diagonal}
        if stack and self.resident:
            out["stack"] = self.stack
        for c, cue in enumerate(self._cues):
            if cue.centre is not None:
                out[f"cue{c}_centre"] = cue.centre
            for key, value in self._train.arrays[c].items():
                padded = key in ("plain", "centred")
                out[f"cue{c}_{key}"] = value[: self.n_samples] if padded else value
        return out

    @classmethod
    def from_dict(cls, data, arrays):
        """Rebuild a bank from what `to_dict` and `arrays` returned.

        Parameters
        ----------
        data : dict
        arrays : mapping of str to ndarray
            A dict, or what `numpy.load` returns for an npz file.

        Returns
        -------
        KernelBank
            Resident only if the stack was saved.  Its blocks have the same bits.

        Raises
        ------
        ValueError
            When the format is unknown or an array is missing.
        """
        if data.get("format") != 1:
            raise ValueError(f"data['format'] must be 1, got {data.get('format')!r}.")

        def get(key):
            if key not in arrays:
                raise ValueError(f"arrays must hold {key!r}, which is missing.")
            return np.asarray(arrays[key])

        self = cls.__new__(cls)
        memory = data["memory"]
        self._start(data["dtype"], math.inf if memory is None else memory)
        self.normalize = bool(data["normalize"])
        self.names = list(data["names"])
        self.n_samples = int(data["n_samples"])
        self.diagonal = get("diagonal")
        stack = np.ascontiguousarray(get("stack")) if "stack" in arrays else None
        if data["given"]:
            self._become_given(stack)
            return self
        self._given = False
        self.stack = stack
        self.kernels_ = [Kernel.from_dict(kernel) for kernel in data["kernels"]]
        self._n_features = data["n_features"]
        self._feature_names = data["feature_names"]
        self._cues, held_arrays = [], []
        for c, saved in enumerate(data["cues"]):
            cue = _Cue(saved["name"], np.array(saved["columns"], dtype=np.intp))
            cue.scale, cue.centred_scale = saved["scale"], saved["centred_scale"]
            cue.nonnegative = bool(saved["nonnegative"])
            if saved["take"] is not None:
                cue.take = np.array(saved["take"], dtype=np.intp)
            if f"cue{c}_centre" in arrays:
                cue.centre = get(f"cue{c}_centre")
            self._cues.append(cue)
            held = {}
            for key in saved["held"]:
                value = get(f"cue{c}_{key}")
                if key in ("plain", "centred"):
                    value = _padded(value, self.dtype, COLUMN_PAD)
                held[key] = value
            held_arrays.append(held)
        self._roots = [_Root(*root) for root in data["roots"]]
        self._forms = [
            self._form(kernel, root, metric)
            for kernel, (root, metric) in zip(self.kernels_, data["forms"], strict=False)
        ]
        self._train = _Side(self.n_samples, held_arrays, {}, None)
        self._train.factors = self._factors(self._train)
        return self

    def _state(self):  # for `core.storage.pack`
        return {"data": self.to_dict(), "arrays": self.arrays()}

    @classmethod
    def _from_state(cls, state):
        return cls.from_dict(state["data"], state["arrays"])


class CrossBank:
    """Kernels between new samples and training samples, handed out in blocks.

    Made by :meth:`KernelBank.cross`.

    Attributes
    ----------
    n_rows : int
        Number of new samples.
    n_kernels : int
        F', the kernels selected.
    n_columns : int
        Training samples selected.
    dtype : numpy.dtype
    """

    def __init__(self, bank, X_new, kernels, support):
        self._begin(bank, kernels, support)
        if bank._given:
            self._start_given(X_new)
        else:
            self._share(bank._new_side(X_new, self._needed()))

    def _begin(self, bank, kernels, support):
        self._bank = bank
        self._kernels = kernels
        self._support = support
        self.dtype = bank.dtype
        self.n_kernels = len(kernels)
        self.n_columns = bank.n_samples if support is None else len(support)

    def _needed(self):
        """Return the cues that the kernels are on."""
        return {self._bank._roots[self._bank._forms[f].root].cue for f in self._kernels}

    def _share(self, left):
        """Take new samples over from a _Side, and the training samples wanted from the bank."""
        bank, needed = self._bank, self._needed()
        self._groups = bank._groups(self._kernels)
        self._left = _Side(left.n, left.arrays, {}, left.index)
        self._left.factors = bank._factors(self._left, self._kernels)
        self.n_rows = left.n
        self._right = bank._train
        if self._support is not None:
            arrays = [held if c in needed else {} for c, held in enumerate(bank._train.arrays)]
            self._right = _Side(bank.n_samples, arrays, bank._train.factors, None).take(
                self._support, COLUMN_PAD, matrix=False
            )

    def _start_given(self, X_new):
        bank = self._bank
        X_new = np.asarray(X_new)
        expected = (bank.n_kernels, "rows", bank.n_samples)
        if X_new.ndim != 3 or (X_new.shape[0], X_new.shape[2]) != (bank.n_kernels, bank.n_samples):
            raise ValueError(
                f"X_new must have shape ({expected[0]}, rows, {expected[2]}) as the bank is of "
                f"precomputed kernels, got {X_new.shape}."
            )
        if X_new.dtype.kind not in "fiub":
            raise ValueError(f"X_new must hold real numbers, got dtype {X_new.dtype}.")
        self._given = X_new
        self.n_rows = X_new.shape[1]

    def select(self, kernels, support):
        """Narrow down to some of these kernels and training samples; the new samples are shared.

        Parameters
        ----------
        kernels, support : array-like of int
            Positions in this cross bank.

        Returns
        -------
        CrossBank
        """
        kernels = self._kernels[np.asarray(kernels)]
        support = np.asarray(support) if self._support is None else self._support[np.asarray(support)]
        new = CrossBank.__new__(CrossBank)
        new._begin(self._bank, kernels, support)
        if self._bank._given:
            new._given, new.n_rows = self._given, self.n_rows
        else:
            new._share(self._left)
        return new

    def block_rows(self, memory=None):
        """Return how many rows fit into `memory` bytes (default: 128 MiB or the bank's budget).

        Parameters
        ----------
        memory : float, optional
            Bytes.

        Returns
        -------
        int
            Between 1 and `n_rows` (1 when there are none).
        """
        if memory is None:
            memory = min(DEFAULT_BLOCK_BYTES, self._bank.memory)
        return _rows_that_fit(memory, self.n_kernels, self.n_columns, self.dtype, self.n_rows)

    def rows_into(self, rows, out):
        """Write one block into a given array.

        Parameters
        ----------
        rows : slice
            Consecutive new samples, b of them.
        out : ndarray of shape (F', b, n_columns)

        Returns
        -------
        ndarray
            `out`.

        Raises
        ------
        ValueError
            When `rows` has a step or `out` does not fit.
        """
        start, stop, step = rows.indices(self.n_rows)
        if step != 1:
            raise ValueError(f"rows must be a slice with step 1, got {rows!r}.")
        stop = max(start, stop)
        _check_out(out, (self.n_kernels, stop - start, self.n_columns), self.dtype)
        bank = self._bank
        if bank._given:
            for position, f in enumerate(self._kernels):
                part = self._given[f, start:stop]
                out[position] = part if self._support is None else part[:, self._support]
            if not np.isfinite(out).all():
                raise ValueError("X_new holds NaN or infinite values.")
            return out
        left = self._left.take(np.arange(start, stop), ROW_PAD)
        bank._fill(self._groups, left, self._right, out)
        return out

    def blocks(self, memory=None, reuse=False):
        """Iterate over (slice of new samples, block of kernels).

        Parameters
        ----------
        memory : float, optional
            Bytes that a block may take.  Default: 128 MiB or the bank's budget,
            whichever is less.  A single row is always allowed.
        reuse : bool, default=False
            Hand out the same array every time, overwritten: half the memory,
            but a block must be used before the next one is asked for.

        Yields
        ------
        rows : slice
        block : ndarray of shape (F', b, n_columns)
            For precomputed stacks a view of X_new where that is possible; do not
            write to it.
        """
        if self._bank._given and self._support is None and self._given.dtype == self.dtype:
            run = as_range(self._kernels)
            if run is not None:
                step = self.block_rows(memory)
                for start in range(0, self.n_rows, step):
                    rows = slice(start, min(start + step, self.n_rows))
                    block = self._given[run, rows]
                    if not np.isfinite(block).all():
                        raise ValueError("X_new holds NaN or infinite values.")
                    yield rows, block
                return
        if memory is None:
            memory = min(DEFAULT_BLOCK_BYTES, self._bank.memory)
        # the caller still holds one block while the next is made
        step = self.block_rows(memory if reuse else memory / 2)
        buffer = None
        for start in range(0, self.n_rows, step):
            rows = slice(start, min(start + step, self.n_rows))
            size = rows.stop - rows.start
            if buffer is None or not reuse or buffer.shape[1] != size:
                buffer = np.empty((self.n_kernels, size, self.n_columns), self.dtype)
            yield rows, self.rows_into(rows, buffer)


# --------------------------------------------------------------------------
# Small helpers of the two banks
# --------------------------------------------------------------------------


def _quantity(kernel):
    """Name what a kernel is computed from."""
    if isinstance(kernel, (Linear, Poly)):
        return "product"
    if isinstance(kernel, RBF):
        return "sqeuclidean"
    if isinstance(kernel, Chi2):
        return "chi2"
    if isinstance(kernel, Precomputed):
        return "kernel matrix"
    return "distance matrix" if kernel.metric == "precomputed" else kernel.metric


def _check_out(out, shape, dtype):
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != dtype:
        got = f"shape {out.shape}, dtype {out.dtype}" if isinstance(out, np.ndarray) else repr(type(out))
        raise ValueError(f"out must be an array of shape {shape}, dtype {dtype}, got {got}.")


def _rows_that_fit(memory, n_kernels, n_columns, dtype, n_rows):
    if not memory > 0:
        return 1
    row = max(n_kernels * n_columns * dtype.itemsize, 1)
    fit = n_rows if math.isinf(memory) else int(memory // row)
    return max(1, min(fit, n_rows))
