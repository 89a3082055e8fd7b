r"""Kernel matrices: checks of given ones, and whether one is positive semidefinite up to rounding.

Two cheap tests: :math:`|k(x, z)|^2 \le k(x, x)\, k(z, z)` for all pairs, and the smallest eigenvalue among a
few hundred samples, a bound from above on that among all.
"""

import contextlib
import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigvalsh
from scipy.linalg.lapack import dpotrf, spotrf
from sklearn.exceptions import ConvergenceWarning

from cuelearn.compiled import njit
from cuelearn.expect import expect, expect_shape, warn_user
from cuelearn.kernels import tiles
from cuelearn.kernels.specifications import (
    LARGEST_KERNEL,
    SMALLEST_KERNEL,
    SYMMETRY_TOLERANCE,
    check_scale,
    lacking,
    largest_entry,
    refuse_empty,
)
from cuelearn.kernels.tiles import LARGEST_RATIO, count_excess, planes_of

# Rounding: a negative eigenvalue relative to the largest, and the relative excess of |k(x, z)| over its
# bound; the second value is for matrices in half precision.
ROUNDING = LARGEST_RATIO - 1.0
HALF_ROUNDING = 1e-2
# The same for a diagonal entry, relative to the largest.
SMALL_DIAGONAL = 1e-6
# Samples whose eigenvalues are tested: one in SAMPLE_EVERY, from SMALL_SAMPLE to MOST_SAMPLES; fewer, from
# LEAST_SAMPLES, if the operations for all kernels would exceed OPERATIONS.
SAMPLE_EVERY = 20
SMALL_SAMPLE = 128
MOST_SAMPLES = 256
OPERATIONS = 1e9
LEAST_SAMPLES = 64
# A larger ratio means that k(x, x) is 0.
LARGEST_NAMED = 1e12
# Kernels named in a warning; the others are counted.
MOST_NAMED = 3


class IndefiniteKernelWarning(UserWarning):
    """A kernel is not positive semidefinite, so results that rest on convexity do not hold.

    It is issued once per fit. Solvers still run, but duality gaps are NaN, and `converged_` is False where it
    refers to a gap. OBSCURE and related methods run all epochs and do not ascend in the dual.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from cuelearn.kernels import IndefiniteKernelWarning
    >>> from cuelearn.mkl import UFOMKL
    >>> K, y = np.eye(40) - 0.5, np.tile([0, 1], 20)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     model = UFOMKL("precomputed").fit(K, y)
    >>> caught[0].category is IndefiniteKernelWarning, model.dual_gap_, model.converged_
    (True, nan, False)
    """


class Indefinite(NamedTuple):
    """How far a matrix is from positive semidefinite."""

    smallest: float  # eigenvalue among `n_samples` samples
    largest: float
    n_samples: int
    ratio: float  # largest |k(x, z)| / sqrt(k(x, x) k(z, z)); NaN if not computed

    def __str__(self):
        words = []
        if self.smallest < 0.0:
            span = f"from {self.smallest:.3g} to {self.largest:.3g}"
            words.append(f"its eigenvalues on {self.n_samples} samples range {span}")
        if self.ratio > LARGEST_NAMED:
            words.append("k(x, x) is 0 where k(x, z) is not, as for distances d: try exp(-d)")
        elif self.ratio > 1.0:
            words.append(f"|k(x, z)| is up to {self.ratio:.3g} times sqrt(k(x, x) k(z, z))")
        return " and ".join(words)


# ---- tests


def sample_of(n, n_kernels=1):
    fit = int((OPERATIONS / max(1, n_kernels)) ** (1.0 / 3.0))
    size = min(n, max(LEAST_SAMPLES, min(max(SMALL_SAMPLE, n // SAMPLE_EVERY), MOST_SAMPLES, fit)))
    return np.sort(np.random.default_rng(0).choice(n, size, replace=False))


@njit(nogil=True, cache=True)
def _lower_part(matrix, chosen, out):
    for i in range(chosen.shape[0]):
        row = matrix[chosen[i]]
        for j in range(i + 1):
            out[i, j] = row[chosen[j]]


def part_of(matrix, chosen):
    """The lower triangle of the matrix among the samples `chosen`."""
    part = np.zeros((len(chosen), len(chosen)), matrix.dtype)
    _lower_part(matrix, chosen, part)
    return part


@njit(nogil=True, cache=True)
def _largest_ratio(flat, width, scale):
    """Largest ``|k_ij| scale_i scale_j`` above the diagonal, NaN if none is above `LARGEST_RATIO`."""
    n = scale.shape[0]
    largest = 0.0
    for i in range(n):
        row = flat[i * width : i * width + n]
        if count_excess(row, i, scale) > 0:
            for j in range(i + 1, n):
                largest = max(largest, abs(row[j]) * scale[j] * scale[i])
    return largest if largest > 0.0 else np.nan


def inverse_lengths(diagonal, dtype):
    """1 / sqrt(k(x, x)), with rounding errors raised; very large if all are 0."""
    top = float(diagonal.max())
    if top <= 0.0:
        return np.full(len(diagonal), np.finfo(dtype).max ** 0.25, dtype)
    return (1.0 / np.sqrt(np.maximum(diagonal.astype(np.float64), SMALL_DIAGONAL * top))).astype(dtype)


def ratio_of(matrix):
    """`Indefinite.ratio` of a finite symmetric matrix with contiguous rows; NaN up to `LARGEST_RATIO`."""
    planes = planes_of(matrix)
    scale = inverse_lengths(np.diagonal(matrix), matrix.dtype)
    return float(_largest_ratio(planes.flat, planes.width, scale))


def indefinite(part, ratio=np.nan, tolerance=ROUNDING):
    """An `Indefinite`, or None, from the lower triangle among some samples and the `ratio` among all."""
    top = float(np.diagonal(part).max())  # at most the largest eigenvalue
    unit = top if top > 0.0 else float(np.abs(part).max()) or 1.0
    within = not ratio > 1.0 + tolerance
    if within:
        shifted = part / unit
        shifted.ravel()[:: len(part) + 1] += tolerance
        factorise = dpotrf
        if part.dtype == np.float32:
            factorise = spotrf
        # ten times faster than eigenvalues
        if factorise(shifted.T, clean=False, overwrite_a=True)[1] == 0:
            return None
    values = eigvalsh(part.astype(np.float64) / unit, check_finite=False) * unit
    result = Indefinite(float(values[0]), float(values[-1]), len(part), float(ratio))
    if not within or result.smallest < -tolerance * abs(result.largest):
        return result
    return None


def indefinite_rows(rows, left, right):
    """An `Indefinite` of values that exceed the bound from k(x, x) of both sides, or None."""
    if rows.size == 0:
        return None
    least = max(SMALL_DIAGONAL * max(left.max(), right.max()), np.finfo(float).tiny)
    bounds = np.sqrt(np.outer(np.maximum(left, least), np.maximum(right, least)))
    ratio = float((np.abs(rows) / bounds).max())
    if ratio > 1.0 + HALF_ROUNDING:
        return Indefinite(0.0, 0.0, 0, ratio)
    return None


def indefinite_matrix(matrix, tolerance=ROUNDING):
    chosen = sample_of(len(matrix))
    return indefinite(part_of(matrix, chosen), ratio_of(matrix), tolerance)


# ---- consequences


def warn_indefinite(doubts):
    """Warn of {name: Indefinite} at the user's line; returns whether it is non-empty."""
    if not doubts:
        return False
    names = [f"kernel {name!r}: {how}" for name, how in list(doubts.items())[:MOST_NAMED]]
    if len(doubts) > MOST_NAMED:
        names.append(f"and {len(doubts) - MOST_NAMED} more")
    warn_user(
        f"not positive semidefinite: {'; '.join(names)}. The solution may be useless, and no duality "
        "gap is certified (NaN). Use another kernel, or clip or shift negative eigenvalues of the matrix by "
        "cuelearn.kernels.nearest_psd",
        IndefiniteKernelWarning,
    )
    return True


@contextlib.contextmanager
def one_warning(doubts):
    """One warning for a fit on indefinite kernels, none of missing certificates."""
    if not warn_indefinite(doubts):
        yield
        return
    with warnings.catch_warnings():
        for category in (IndefiniteKernelWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", category)
        yield


def zero_blocks(X, known=None):
    """Kernels X, (n_kernels, n, m) or (n, m), with zeros for samples whose rows are all NaN, and which
    samples of the columns lack which kernel: those `known`, then those of the rows if columns follow."""
    shapes = [("n_kernels", "n", "m"), ("n", "m")]
    X = expect("X", X, kind="real", shape=shapes, finite=False, least=0)
    if X.ndim == 2:
        X = X[None]
    n_kernels, n, m = X.shape
    if known is None:
        known = np.zeros((n_kernels, 0), dtype=bool)
    absent = np.array([np.isnan(kernel).all(axis=1) for kernel in X]).reshape(n_kernels, n)
    columns = known
    if m == known.shape[1] + n:
        columns = np.concatenate([known, absent], axis=1)
    if columns.shape != (n_kernels, m):  # refused later
        return X, known
    refuse_empty(absent)
    if absent.any() or columns.any():
        X = X.copy()
        for kernel, rows, own in zip(X, absent, columns, strict=True):
            kernel[rows] = 0.0
            kernel[:, own] = 0.0
    for j, kernel in enumerate(X):
        lacking(kernel, f"kernel {j} of X")
    return X, columns


BATCH_TOLERANCE = 1e-3  # of the symmetry of a batch in a stream


def look_at(matrix, what, least=SMALLEST_KERNEL, tolerance=SYMMETRY_TOLERANCE):
    """How many |k(x, z)| of a precomputed matrix exceed sqrt(k(x, x) k(z, z)); ValueError for its problem.

    A symmetric matrix times random factors has equal row and column sums; all pairs are compared only if
    these differ or are too large.
    """
    diagonal = np.diagonal(matrix)
    n = len(matrix)
    if not np.isfinite(diagonal).all():
        raise ValueError(f"{what} holds NaN or infinite values.")
    lowest = float(diagonal.min())
    check_scale(what, diagonal, least)
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
        return n_above
    problem = compared_problem(matrix, what, lowest, tolerance)
    if problem:
        raise ValueError(problem)
    return n_above


def compared_problem(matrix, what, lowest, tolerance):
    """The message of `look_at`, or None, from a comparison of all pairs."""
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
    if lowest < 0:
        return f"{what} must have a non-negative diagonal, got {lowest:.3g}."
    return None


def checked_stack(K, names):
    """Check a stack (F, n, n); names of the kernels with |k(x, z)| <= sqrt(k(x, x) k(z, z)) everywhere."""
    within = set()

    def look(f):
        if look_at(K[f], f"kernel {names[f]!r} of the stack") == 0:
            within.add(names[f])

    tiles.run(look, range(len(K)), K.size)
    return within


def check_batch(X, seen):
    """ValueError unless the kernels of a batch, maybe a stack, have the shape (n, seen + n), and those with
    itself are symmetric."""
    *stack, n, _ = X.shape
    expect_shape("X", X, (*stack, n, seen + n), "its columns are all samples seen so far, then the batch")
    for j, own in enumerate(own_blocks(X, seen)):
        what = ("X" if X.ndim == 2 else f"kernel {j} of X") + ", a batch with itself,"
        # looser: only rows are used, of any dtype
        look_at(own, what, 0.0 if seen else SMALLEST_KERNEL, BATCH_TOLERANCE)


def own_blocks(X, seen):
    for own in X[..., seen:].reshape(-1, X.shape[-2], X.shape[-2]):
        yield np.ascontiguousarray(own, dtype=own.dtype if own.dtype.kind == "f" else np.float64)


def indefinite_batch(X, seen):
    """{name: how} of the indefinite kernels of a batch with itself."""
    results = {f"k{j}": indefinite_matrix(own, HALF_ROUNDING) for j, own in enumerate(own_blocks(X, seen))}
    return {name: how for name, how in results.items() if how is not None}
