"""Products, distances and kernels of two sets of samples, tile by tile.

Kernels on the same columns share their *root*: one matrix product serves `Linear`, `Poly` and `RBF`, one
distance all kernels that differ only in gamma. The last bits of an OpenBLAS product depend on the number of
threads. Roots are therefore computed in tiles of fixed shape, each by one BLAS thread.
"""

import math
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

import numpy as np
from joblib import cpu_count
from scipy.sparse import issparse
from threadpoolctl import ThreadpoolController

from cuelearn.compiled import njit

# Zero padding makes BLAS compute every entry in the same inner loop: a row computed on demand equals that of
# a resident stack bitwise, and the tile of (j, i) is the transpose of that of (i, j).
ROW_PAD = 16
COLUMN_PAD = 64
TILE_ROWS = 256
TILE_ENTRIES = 2**17  # half a megabyte of float32: two such tiles stay in a core's cache
TILE_COLUMNS = 4096
STACK_TILE = 256

# Distances below this, relative to |x|^2 + |z|^2, are computed from x - z instead of the product: equal
# samples have distance exactly 0, and the square root of a Euclidean distance does not magnify rounding.
NEAR = 1e-5
NEAR_EUCLIDEAN = 1e-2

# Largest |k(x, z)| / sqrt(k(x, x) k(z, z)): 1 plus the rounding of float32.
LARGEST_RATIO = 1.0 + 1e-4

# Smaller blocks are computed by the calling thread alone.
WORTH_THREADS = 100_000


# ---- compiled loops
# All are bitwise symmetric in (i, j): the two sides are combined by a commutative operation first. Tiles are
# C-contiguous scratch arrays, maybe larger than the tile. Blocks are written through a flat view, which is
# vectorised.


# Reassociation allows vectorised sums, whose order depends on the number of columns only.
_SUMS = {"reassoc", "nsz", "nnan", "ninf"}


# `squared_distance` without contraction, which changes the last bits; a function of its own, since numba's
# files do not tell two compilations of one apart.
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

    Distances below `near` (|left_i|^2 + |right_j|^2) are computed from x - z.
    """
    zero = out.dtype.type(0)
    n_columns = sq_right.shape[0]
    for i in range(sq_left.shape[0]):
        row = product[i]
        target = out[i]
        own = sq_left[i]
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
def _sparse_near_into(left, right, sq_left, sq_right, near, out):
    """Distances below `near` (|left_i|^2 + |right_j|^2) from x - z; the rows are (data, indices, indptr)."""
    x, x_column, x_start = left
    z, z_column, z_start = right
    for i in range(sq_left.shape[0]):
        for j in range(sq_right.shape[0]):
            if not out[i, j] < near * (sq_left[i] + sq_right[j]):
                continue
            total = 0.0
            a = x_start[i]
            b = z_start[j]
            while a < x_start[i + 1] or b < z_start[j + 1]:
                of_x = b == z_start[j + 1] or (a < x_start[i + 1] and x_column[a] <= z_column[b])
                of_z = a == x_start[i + 1] or (b < z_start[j + 1] and z_column[b] <= x_column[a])
                difference = 0.0
                if of_x:
                    difference += x[a]
                    a += 1
                if of_z:
                    difference -= z[b]
                    b += 1
                total += difference * difference
            out[i, j] = total


@njit(nogil=True, cache=True)
def _poly_into(product, slope, intercept, degree, left, right, flat, offset, width):
    """flat[offset + i width + j] = ((slope product[i, j] + intercept) left_i right_j)^degree."""
    n_columns = right.shape[0]
    for i in range(left.shape[0]):
        row = product[i]
        factor = left[i]
        target = flat[offset + i * width : offset + i * width + n_columns]
        target[:] = 1
        for _ in range(degree):
            for j in range(n_columns):
                target[j] *= (row[j] * slope + intercept) * (factor * right[j])


_LOG2_E, _LN2_HIGH, _LN2_LOW = np.float32([1.44269504088896341, 0.693359375, -2.12194440e-4])
_ROUNDING = np.float32(1.5 * 2**23)  # adding and subtracting it rounds to an integer
_LOWEST_EXPONENT = np.float32(-87.0)  # below it, exp is no normal float32: 0
# Cephes' coefficients for (exp(r) - 1 - r) / r^2 on |r| <= log(2) / 2
_E0, _E1, _E2 = np.float32([1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3])
_E3, _E4, _E5 = np.float32([4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1])


@njit(nogil=True, cache=True)
def exp_into(distance, n_rows, n_columns, slopes, offsets, flat, width):
    """flat[offsets[k] + i width + j] = exp(slopes[k] distance[i, j]) in float32, slopes <= 0.

    exp(x) = 2^k exp(r), k = round(x / log 2), |r| <= log(2) / 2, within 1e-7 relative; 0 for x < -87.
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
                y = (y * (r * r) + r) + np.float32(1.0)
                bits = (np.int32(whole) + np.int32(127)) << np.int32(23)
                y *= np.int32(bits).view(np.float32)
                target[j] = y if exponent >= _LOWEST_EXPONENT else np.float32(0.0)


#: Compiled code knows them by number.
QUANTITIES = ("product", "sqeuclidean", "euclidean", "cityblock", "chi2")
PRODUCT, _, EUCLIDEAN, CITYBLOCK, CHI2 = range(5)


# error_model="numpy": checks for zero divisors would prevent vectorisation.
pair_value = njit(nogil=True, cache=True, fastmath={"reassoc", "contract"}, error_model="numpy")


@pair_value
def product(x, z):
    total = x.dtype.type(0)
    for c in range(x.shape[0]):
        total += x[c] * z[c]
    return total


@pair_value
def squared_distance(x, z):
    total = x.dtype.type(0)
    for c in range(x.shape[0]):
        difference = x[c] - z[c]
        total += difference * difference
    return total


@pair_value
def cityblock(x, z):
    total = x.dtype.type(0)
    for c in range(x.shape[0]):
        total += abs(x[c] - z[c])
    return total


@pair_value
def chi2(x, z):
    total = x.dtype.type(0)
    tiny = np.finfo(x.dtype).tiny  # 0/0 = 0 without a branch
    for c in range(x.shape[0]):
        difference = x[c] - z[c]
        total += difference * difference / max(x[c] + z[c], tiny)
    return total


# Loops instead of matrix products: results are bitwise equal for any batch size and number of threads.
@njit(nogil=True, cache=True)
def quantities_into(quantity, left, right, out):
    """out[i, j] = the quantity of left[i] and right[j]; squared for "euclidean"."""
    for i in range(left.shape[0]):
        x = left[i]
        if quantity == PRODUCT:
            for j in range(right.shape[0]):
                out[i, j] = product(x, right[j])
        elif quantity == CITYBLOCK:
            for j in range(right.shape[0]):
                out[i, j] = cityblock(x, right[j])
        elif quantity == CHI2:
            for j in range(right.shape[0]):
                out[i, j] = chi2(x, right[j])
        else:
            for j in range(right.shape[0]):
                out[i, j] = squared_distance(x, right[j])


@njit(nogil=True, cache=True)
def _mirror(flat, start, width, r0, r1, c0, c1):
    if r0 == c0:
        for i in range(r0, r1):
            for j in range(i + 1, c1):
                flat[start + j * width + i] = flat[start + i * width + j]
        return
    for c in range(c0, c1, 32):  # small squares stay in cache
        for r in range(r0, r1, 32):
            height = min(32, r1 - r)
            for j in range(c, min(c + 32, c1)):
                target = flat[start + j * width + r : start + j * width + r + height]
                for i in range(height):
                    target[i] = flat[start + (r + i) * width + j]


def mirror(planes, plane, tile):
    """Copy a tile of a plane to its mirror image; on the diagonal, its upper triangle."""
    _mirror(planes.flat, plane * planes.plane, planes.width, *tile)


@njit(nogil=True, cache=True, fastmath=_SUMS)
def count_excess(row, i, scale):
    """Number of ``|row[j]| scale[i] scale[j]``, j > i, above `LARGEST_RATIO`; a maximum is not vectorised."""
    n_above = 0
    limit = row.dtype.type(LARGEST_RATIO) / scale[i]
    row, scale = row[i + 1 :], scale[i + 1 :]  # indices from 0 need no test for negative ones
    for j in range(row.shape[0]):
        n_above += abs(row[j]) * scale[j] > limit
    return n_above


@njit(nogil=True, cache=True, fastmath=_SUMS - {"nnan", "ninf"})
def sums_both_ways(flat, start, width, factors, scale, by_rows, by_columns):
    """Sums of a square matrix times `factors` along rows and columns; returns `count_excess` of all rows."""
    n = factors.shape[0]
    n_above = 0
    by_columns[:] = 0.0
    for i in range(0, n - 1, 2):
        first = flat[start + i * width : start + i * width + n]
        second = flat[start + (i + 1) * width : start + (i + 1) * width + n]
        f = factors[i]
        s = factors[i + 1]
        total_f = 0.0
        total_s = 0.0
        for j in range(n):
            total_f += first[j] * factors[j]
            total_s += second[j] * factors[j]
            by_columns[j] += first[j] * f + second[j] * s
        by_rows[i] = total_f
        by_rows[i + 1] = total_s
        n_above += count_excess(first, i, scale) + count_excess(second, i + 1, scale)
    if n % 2:
        last = flat[start + (n - 1) * width : start + (n - 1) * width + n]
        total = 0.0
        for j in range(n):
            total += last[j] * factors[j]
            by_columns[j] += last[j] * factors[n - 1]
        by_rows[n - 1] = total
    return n_above


@njit(nogil=True, cache=True)
def gather_rows(stack, rows, columns, out):
    """out[f, i, j] = stack[f, rows[i], columns[j]]; indices are uint64, whose sign needs no test."""
    for i in range(rows.shape[0]):
        for f in range(stack.shape[0]):
            row = stack[f, rows[i]]
            target = out[f, i]
            for j in range(columns.shape[0]):
                target[j] = row[columns[j]]


# ---- threads


@cache
def linear_algebra():
    """The loaded BLAS libraries; cached, since the search takes longer than a small fit."""
    return ThreadpoolController().select(user_api="blas")


class _Held:
    """BLAS is limited to one thread while a reference to this is alive."""

    def limit(self):
        """Limit BLAS; the number of threads that it would have used, with ``OPENBLAS_NUM_THREADS`` and
        joblib's inner limit."""
        libraries = linear_algebra()
        n_threads = max((library.num_threads or 1 for library in libraries.lib_controllers), default=1)
        if n_threads > 1:
            weakref.finalize(self, libraries.limit(limits=1).restore_original_limits).atexit = False
        return min(n_threads, CORES)


class _OneBlasThread:
    """The limit that concurrent callers share, without a lock, which an interruption could leave locked."""

    def __init__(self):
        self.current = lambda: None

    def hold(self):
        """A `_Held` to keep, and the number of threads to use: 1 for a second caller."""
        held = self.current()
        if held is not None:
            return held, 1
        held = _Held()
        self.current = weakref.ref(held)
        return held, held.limit()


CORES = cpu_count()
ONE_BLAS_THREAD = _OneBlasThread()


def run(function, tasks, n_entries):
    """Call ``function(task)`` for every task, in any order, in as many threads as BLAS would use if enough
    matrix entries, `n_entries`, are written."""
    held, n_threads = ONE_BLAS_THREAD.hold()
    try:
        _deal(function, tasks, n_threads if n_entries >= WORTH_THREADS else 1)
    finally:
        del held  # a traceback that is kept must not keep it


def _deal(function, tasks, n_threads):
    dealt = iter(tasks)  # next() on it is atomic

    def work():
        for task in dealt:
            function(task)

    n_threads = min(n_threads, len(tasks))
    if n_threads <= 1:
        work()
        return
    with ThreadPoolExecutor(n_threads - 1) as pool:  # joblib.Parallel polls: 10 ms for each call
        others = [pool.submit(work) for _ in range(n_threads - 1)]
        work()
        for other in others:
            other.result()


# ---- inputs of tiles


def pad_up(n, multiple):
    """n rounded up to a multiple."""
    return -(-n // multiple) * multiple


def padded(rows, dtype, multiple):
    """Copy rows into a zero array whose number of rows is a multiple; sparse rows stay as they are."""
    if issparse(rows):
        return rows
    out = np.zeros((pad_up(max(len(rows), 1), multiple), rows.shape[1]), dtype)
    out[: len(rows)] = rows
    return out


class Rows(NamedTuple):
    values: np.ndarray  # padded; a precomputed matrix (n, n_train) is not, nor a csr_array, in float64
    norm: np.ndarray | None = None  # squared norms, float64


class Side(NamedTuple):
    n: int
    arrays: list  # of each cue: {"plain", "centred" or "matrix": Rows}
    factors: dict = {}  # row factors of each linear or polynomial kernel
    index: np.ndarray | None = None  # of a subset of training samples: columns in precomputed matrices
    absent: list = []  # of each cue, if some may: which samples lack it; their rows hold values of others

    def take(self, index, multiple, cues=None, matrix=True):
        """The rows `index`, of all or some cues; ``matrix=False`` keeps all rows of precomputed matrices."""

        def chosen(source, rows):
            if source == "matrix":
                if matrix:
                    return Rows(rows.values[index])
                return rows
            return Rows(padded(rows.values[index], rows.values.dtype, multiple), rows.norm[index])

        arrays = [
            {source: chosen(source, rows) for source, rows in held.items() if cues is None or c in cues}
            for c, held in enumerate(self.arrays)
        ]
        factors = {f: factor[index] for f, factor in self.factors.items()}
        absent = [lacks[index] for lacks in self.absent]
        return Side(len(index), arrays, factors, index, absent)


class Root(NamedTuple):
    """A quantity computed once per tile: a product, a distance or precomputed columns of one cue."""

    cue: int
    kind: str  # product, sqeuclidean, cityblock, chi2, matrix, function
    near: float = NEAR
    function: object = None

    @property
    def source(self):
        if self.kind == "matrix":
            return "matrix"
        if self.kind in ("product", "chi2", "function"):
            return "plain"
        return "centred"


class Form(NamedTuple):
    """How a kernel follows from its root: exp(slope d), (slope product + offset)^degree, or unchanged."""

    root: int
    quantity: str  # product, kernel matrix, or a distance
    slope: float = 1.0  # of a distance: -1 / gamma in the root's unit
    offset: float = 0.0
    degree: int = 1
    pivot: float = 1.0  # of a product: row factor if not normalised


def group_kernels(forms, kernels, dtype):
    """{root: (others, exponentials)}: its kernels, as (number of the kernel, form, plane of the block), or as
    (metric, slopes, planes) of a distance."""
    members = {}
    for plane, f in enumerate(kernels):
        members.setdefault(forms[f].root, []).append((int(f), forms[f], plane))
    lowest = float(np.finfo(dtype).min)  # -inf times a distance of 0 would be NaN
    groups = {}
    for root, entries in members.items():
        by_metric = {}
        for _, form, plane in entries:
            if form.quantity not in ("product", "kernel matrix"):
                by_metric.setdefault(form.quantity, []).append((max(form.slope, lowest), plane))
        exponentials = [
            (metric, np.array([slope for slope, _ in pairs], dtype), np.array([plane for _, plane in pairs]))
            for metric, pairs in by_metric.items()
        ]
        others = [member for member in entries if member[1].quantity not in by_metric]
        groups[root] = others, exponentials
    return groups


# ---- tiles


class Tile(NamedTuple):
    r0: int
    r1: int
    c0: int
    c1: int

    @property
    def place(self):
        """Its slices in a block."""
        return np.s_[self.r0 : self.r1, self.c0 : self.c1]

    @property
    def part(self):
        """Its slices in a scratch array."""
        return np.s_[: self.r1 - self.r0, : self.c1 - self.c0]


def block_tiles(n_rows, n_columns):
    height = min(TILE_ROWS, pad_up(n_rows, ROW_PAD))
    width = min(TILE_COLUMNS, TILE_ENTRIES // height // COLUMN_PAD * COLUMN_PAD)
    return [
        [Tile(r, min(r + height, n_rows), c, min(c + width, n_columns)) for c in range(0, n_columns, width)]
        for r in range(0, n_rows, height)
    ]


def upper_tiles(n):
    starts = range(0, n, STACK_TILE)
    return [
        Tile(r, min(r + STACK_TILE, n), c, min(c + STACK_TILE, n)) for r in starts for c in starts if c >= r
    ]


class Planes(NamedTuple):
    """A block (planes, rows, columns), with a flat view and its strides in entries."""

    block: np.ndarray
    flat: np.ndarray
    plane: int
    width: int


def planes_of(block):
    """The `Planes` of a block or a C-contiguous matrix; None if rows are not contiguous."""
    if block.ndim == 2:
        block = block.reshape(1, *block.shape)
    size = block.itemsize
    plane, width, step = block.strides
    if step != size or min(plane, width) < 0 or plane % size or width % size:
        return None
    length = sum((extent - 1) * stride for extent, stride in zip(block.shape, block.strides, strict=True))
    flat = np.lib.stride_tricks.as_strided(block, (length // size + 1,), (size,))
    return Planes(block, flat, plane // size, width // size)


_OWN = threading.local()


def _scratch(name, shape, dtype):
    """An array that a thread reuses for one purpose, which avoids page faults."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = getattr(_OWN, name, None)
    if buffer is None or buffer.size < size:
        buffer = np.empty(size, np.uint8)
        setattr(_OWN, name, buffer)
    return buffer[:size].view(dtype).reshape(shape)


class Pair(NamedTuple):
    left: Side
    right: Side

    def base(self, root, tile):
        """One tile of a root, as the first rows and columns of a C-contiguous array."""
        r0, r1, c0, c1 = tile
        x = self.left.arrays[root.cue][root.source].values
        if root.kind == "matrix":
            index = self.right.index
            return np.ascontiguousarray(x[r0:r1, slice(c0, c1) if index is None else index[c0:c1]])
        z = self.right.arrays[root.cue][root.source].values
        if root.kind == "function":
            return root.function(x[r0:r1], z[c0:c1])
        if issparse(x):  # sums in the order of columns: the same bits in any tile
            x = x[r0:r1]
            z = z[c0:c1]
            if r1 - r0 >= c1 - c0:  # the transposed side, which is rearranged, is the smaller
                out = (x @ z.T).toarray()
            else:
                out = np.ascontiguousarray((z @ x.T).toarray().T)
            if root.kind == "product":
                return out
            return self._squared_distance(root, tile, out, out)
        if root.kind in ("product", "sqeuclidean"):
            x = x[r0 : pad_up(r1, ROW_PAD)]
            z = z[c0 : pad_up(c1, COLUMN_PAD)]
            out = np.matmul(x, z.T, out=_scratch("product", (len(x), len(z)), x.dtype))
            if root.kind == "product":
                return out
            return self._squared_distance(root, tile, out, out)
        out = _scratch("distance", (r1 - r0, c1 - c0), x.dtype)
        quantities_into(QUANTITIES.index(root.kind), x[r0:r1], z[c0:c1], out)
        return out

    def _squared_distance(self, root, tile, product, out):
        r0, r1, c0, c1 = tile
        x, x_norm = self.left.arrays[root.cue][root.source]
        z, z_norm = self.right.arrays[root.cue][root.source]
        x = x[r0:r1]
        z = z[c0:c1]
        x_norm = x_norm[r0:r1].astype(product.dtype)
        z_norm = z_norm[c0:c1].astype(product.dtype)
        near = product.dtype.type(root.near)
        if issparse(x):
            left, right = ((rows.data, rows.indices, rows.indptr) for rows in (x, z))
            _squared_distance_into(product, out, out, x_norm, z_norm, near * 0, out)
            _sparse_near_into(left, right, x_norm, z_norm, near, out)
        else:
            _squared_distance_into(product, x, z, x_norm, z_norm, near, out)
        return out

    def distance(self, root, metric, tile, base):
        """The distance for an exponential kernel, from its root's tile."""
        if root.kind == "product":
            base = self._squared_distance(root, tile, base, _scratch("squared", base.shape, base.dtype))
        if metric != "euclidean":
            return base
        out = _scratch("root", base.shape, base.dtype)
        np.sqrt(base[tile.part], out=out[tile.part])
        return out

    def write(self, root, group, tile, base, out):
        base = base.astype(out.block.dtype, copy=False)  # float64 from a function
        place = tile.r0 * out.width + tile.c0
        kind = base.dtype.type
        others, exponentials = group
        for f, form, plane in others:
            if form.quantity == "kernel matrix":
                out.block[plane][tile.place] = base
                continue
            left = self.left.factors[f][tile.r0 : tile.r1]
            right = self.right.factors[f][tile.c0 : tile.c1]
            slope = kind(form.slope)
            offset = kind(form.offset)
            start = plane * out.plane + place
            _poly_into(base, slope, offset, form.degree, left, right, out.flat, start, out.width)
        for metric, slopes, planes in exponentials:
            distance = self.distance(root, metric, tile, base)
            if kind is np.float32:
                shape = distance[tile.part].shape
                starts = planes * out.plane + place
                exp_into(distance, *shape, slopes, starts, out.flat, out.width)
                continue
            with np.errstate(under="ignore", over="ignore"):
                for slope, plane in zip(slopes, planes, strict=True):
                    block = out.block[plane][tile.place]
                    np.multiply(distance[tile.part], slope, out=block)
                    np.exp(block, out=block)
        if self.right.absent:
            self.clear(root.cue, group, tile, out)

    def clear(self, cue, group, tile, out):
        """Write zeros for samples that lack the cue."""
        rows = self.left.absent[cue][tile.r0 : tile.r1]
        columns = self.right.absent[cue][tile.c0 : tile.c1]
        others, exponentials = group
        planes = [plane for *_, plane in others]
        planes += [plane for *_, several in exponentials for plane in several]
        for plane in planes:
            block = out.block[plane][tile.place]
            block[rows] = 0.0
            block[:, columns] = 0.0
