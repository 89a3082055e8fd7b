r"""Whether kernel matrices are positive semidefinite but for rounding, and what follows where they are not.

Two tests find what is no kernel at little cost: :math:`|k(x, z)|^2 \le k(x, x)\, k(z, z)` for all pairs, and
the smallest eigenvalue among a few hundred samples, which is never below that among all.
"""

import contextlib
import warnings
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.linalg import eigh, eigvalsh
from scipy.linalg.lapack import dpotrf, spotrf
from sklearn.exceptions import ConvergenceWarning

from cuelearn.kernels.specifications import real_values
from cuelearn.kernels.tiles import LARGEST_RATIO, count_excess, planes_of
from cuelearn.warn import warn_user

__all__ = ["IndefiniteKernelWarning", "nearest_psd"]

# What counts as rounding: a negative eigenvalue as a share of the largest, and by what share |k(x, z)| may
# exceed its bound. The second number is for matrices that were given in half precision.
ROUNDING = LARGEST_RATIO - 1.0
HALF_ROUNDING = 1e-2
# The same for a diagonal entry, as a share of the largest.
SMALL_DIAGONAL = 1e-6
# Samples whose eigenvalues are looked at: one of so many, but within these limits; fewer (the last number at
# least) where the operations for all kernels would be more than so many.
SAMPLE_EVERY = 20
SMALL_SAMPLE = 128
MOST_SAMPLES = 256
OPERATIONS = 1e9
LEAST_SAMPLES = 64
# From here on a ratio means that k(x, x) is 0.
LARGEST_NAMED = 1e12
# Kernels that a warning describes; the others are counted.
MOST_NAMED = 3


class IndefiniteKernelWarning(UserWarning):
    """A kernel is not positive semidefinite, so nothing that rests on convexity holds.

    One is issued for each fit. Solvers run all the same, but no duality gap is certified: gaps are NaN, and
    `converged_` is False where it stands for a gap. OBSCURE and its like run all their epochs and do not
    ascend in the dual.

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
    """How far a matrix is from a kernel."""

    smallest: float  # eigenvalue among `n_samples` samples, as
    largest: float
    n_samples: int
    ratio: float  # largest |k(x, z)| / sqrt(k(x, x) k(z, z)); NaN where not looked at

    def __str__(self):
        words = []
        if self.smallest < 0.0:
            span = f"from {self.smallest:.3g} to {self.largest:.3g}"
            words.append(f"its eigenvalues on {self.n_samples} samples range {span}")
        if self.ratio > LARGEST_NAMED:
            words.append("k(x, x) is 0 where k(x, z) is not, as of distances d: try exp(-d)")
        elif self.ratio > 1.0:
            words.append(f"|k(x, z)| is up to {self.ratio:.3g} times sqrt(k(x, x) k(z, z))")
        return " and ".join(words)


# ------------------------------------------------------------ tests


def sample_of(n, n_kernels=1):
    """The samples whose eigenvalues are looked at: the same for the same numbers of samples and kernels."""
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
    """The matrix among the samples `chosen`, of which only the lower triangle is filled in: time goes to
    values that no cache has."""
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
    """1 / sqrt(k(x, x)), where what is rounding beside the largest is taken for larger; very large where all
    are 0."""
    top = float(diagonal.max())
    if top <= 0.0:
        return np.full(len(diagonal), np.finfo(dtype).max ** 0.25, dtype)
    return (1.0 / np.sqrt(np.maximum(diagonal.astype(np.float64), SMALL_DIAGONAL * top))).astype(dtype)


def ratio_of(matrix):
    """Largest ``|k(x, z)| / sqrt(k(x, x) k(z, z))`` of a finite symmetric matrix with contiguous rows; NaN if
    it is not above `LARGEST_RATIO`."""
    planes = planes_of(matrix)
    scale = inverse_lengths(np.diagonal(matrix), matrix.dtype)
    return float(_largest_ratio(planes.flat, planes.width, scale))


def indefinite(part, ratio=np.nan, tolerance=ROUNDING):
    """An `Indefinite` of the matrix `part` among some samples, whose lower triangle is looked at, and the
    `ratio` among all, or None."""
    top = float(np.diagonal(part).max())  # at most the largest eigenvalue
    unit = top if top > 0.0 else float(np.abs(part).max()) or 1.0
    within = not ratio > 1.0 + tolerance
    if within:
        shifted = part / unit
        shifted.ravel()[:: len(part) + 1] += tolerance
        factorise = spotrf if part.dtype == np.float32 else dpotrf  # ten times as fast as the eigenvalues
        if factorise(shifted.T, clean=False, overwrite_a=True)[1] == 0:
            return None
    values = eigvalsh(part.astype(np.float64) / unit, check_finite=False) * unit
    result = Indefinite(float(values[0]), float(values[-1]), len(part), float(ratio))
    return result if not within or result.smallest < -tolerance * abs(result.largest) else None


def indefinite_rows(rows, left, right):
    """An `Indefinite` of values that exceed what the k(x, x) of both sides allow, or None."""
    if rows.size == 0:
        return None
    least = max(SMALL_DIAGONAL * max(left.max(), right.max()), np.finfo(float).tiny)
    bounds = np.sqrt(np.outer(np.maximum(left, least), np.maximum(right, least)))
    ratio = float((np.abs(rows) / bounds).max())
    return Indefinite(0.0, 0.0, 0, ratio) if ratio > 1.0 + HALF_ROUNDING else None


def indefinite_matrix(matrix, tolerance=ROUNDING):
    """An `Indefinite` of a finite symmetric matrix, or None."""
    chosen = sample_of(len(matrix))
    return indefinite(part_of(matrix, chosen), ratio_of(matrix), tolerance)


# ------------------------------------------------------------ consequences


def warn_indefinite(doubts):
    """Warn of {name: Indefinite} at the user's line; returns whether there is one."""
    if not doubts:
        return False
    names = [f"kernel {name!r}: {how}" for name, how in list(doubts.items())[:MOST_NAMED]]
    others = f"; and {len(doubts) - MOST_NAMED} more" if len(doubts) > MOST_NAMED else ""
    warn_user(
        f"not positive semidefinite: {'; '.join(names)}{others}. The solution may be of no use, and no "
        "duality gap is certified (NaN). Use another kernel, or clip or shift the negative eigenvalues of "
        "the matrix by cuelearn.kernels.nearest_psd",
        IndefiniteKernelWarning,
    )
    return True


@contextlib.contextmanager
def one_warning(doubts):
    """A fit on kernels of which {name: Indefinite} are not positive semidefinite: a single warning, and no
    other that a solver issues for want of a certificate."""
    if not warn_indefinite(doubts):
        yield
        return
    with warnings.catch_warnings():
        for category in (IndefiniteKernelWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", category)
        yield


def nearest_psd(K, method="clip", *, new=None):
    r"""A positive semidefinite matrix in place of a symmetric one that is not.

    With the eigenvalues and eigenvectors :math:`K = U \,\mathrm{diag}(\lambda)\, U^\top`, "clip" gives
    :math:`U \,\mathrm{diag}(\max(0, \lambda))\, U^\top`, the nearest one in the Frobenius norm, and "shift"
    :math:`K + \max(0, -\min_i \lambda_i)\, I`, which keeps all values but the diagonal.

    Parameters
    ----------
    K : array-like, shape (n, n) or (n_kernels, n, n), or KernelStack
        Real, finite, symmetric; what little they are not is averaged away. A `KernelStack` is repaired before
        it is split, so it takes no `new`.
    method : {"clip", "shift"}
    new : array-like, shape (m, n) or (n_kernels, m, n), optional
        Values of new samples with those of `K`, as for prediction; "clip" projects them on the directions
        that are kept, a shift does not change them.

    Returns
    -------
    ndarray of the shape and floating type of `K`, or a pair of it and such an array for `new`; a KernelStack
    of the same names for a KernelStack

    Raises
    ------
    ValueError
        If an array has a wrong shape or values that are not real and finite, or `method` is none of the two.

    Notes
    -----
    Cost O(n^3) for each matrix. A kernel from a distance is often repaired better at its source.

    References
    ----------
    Chen, Garcia, Gupta, Rahimi, Cazzanti, Similarity-based classification: concepts and algorithms, JMLR 10
    (2009), section 3; Higham, Computing a nearest symmetric positive semidefinite matrix, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import nearest_psd
    >>> K = np.array([[1.0, 2.0], [2.0, 1.0]])  # eigenvalues -1 and 3
    >>> nearest_psd(K).round(3).tolist()
    [[1.5, 1.5], [1.5, 1.5]]
    >>> nearest_psd(K, "shift").round(3).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    >>> K, K_new = nearest_psd(K, new=np.array([[1.0, 0.0]]))
    >>> K_new.round(3).tolist()
    [[0.5, 0.5]]
    """
    if method not in ("clip", "shift"):
        raise ValueError(f"method must be 'clip' or 'shift', got {method!r}")
    from cuelearn.kernels.stack import KernelStack  # which needs this module

    if isinstance(K, KernelStack):
        if new is not None:
            raise ValueError("new must be None where K is a KernelStack: repair it before it is split")
        bank = K.bank()
        return KernelStack(nearest_psd(bank.rows(np.arange(bank.n_samples)), method), names=K.names)
    K = real_values(K, "K")
    if K.ndim not in (2, 3) or K.shape[-1] != K.shape[-2] or K.size == 0:
        raise ValueError(f"K must have shape (n, n) or (n_kernels, n, n), got {K.shape}")
    rows = None if new is None else real_values(new, "new")
    if rows is not None and (rows.ndim != K.ndim or rows.shape[:-2] + rows.shape[-1:] != K.shape[:-1]):
        raise ValueError(f"new must hold rows of the kernels of shape {K.shape}, got shape {rows.shape}")
    for name, values in (("K", K), ("new", rows)):
        if values is not None and not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite")
    dtype = K.dtype if K.dtype.kind == "f" else np.float64
    stack = K.reshape(-1, *K.shape[-2:])
    repaired = np.empty(stack.shape, dtype)
    projected = None if rows is None else rows.reshape(-1, *rows.shape[-2:]).astype(dtype)
    for j, matrix in enumerate(stack):
        matrix = 0.5 * (matrix.astype(np.float64) + matrix.T)
        values, vectors = eigh(matrix)
        if method == "shift":
            repaired[j] = matrix + max(0.0, -values[0]) * np.eye(len(matrix))
            continue
        kept = vectors[:, values > 0.0]
        repaired[j] = (kept * values[values > 0.0]) @ kept.T
        if rows is not None:
            projected[j] = projected[j] @ kept @ kept.T
    repaired = repaired.reshape(K.shape)
    return repaired if rows is None else (repaired, projected.reshape(rows.shape))
