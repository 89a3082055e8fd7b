"""Checks of precomputed kernel matrices."""

import numpy as np

from cuelearn.kernels import tiles
from cuelearn.kernels.definite import HALF_ROUNDING, indefinite_matrix, inverse_lengths
from cuelearn.kernels.specifications import (
    LARGEST_KERNEL,
    SYMMETRY_TOLERANCE,
    check_entries,
    largest_entry,
    scale_problem,
)

__all__ = ["check_batch", "checked_stack", "indefinite_batch", "look_at"]

BATCH_TOLERANCE = 1e-3  # of the symmetry of a batch in a stream


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
    if lowest < 0:
        return f"{what} must have a non-negative diagonal, got {lowest:.3g}."
    return None


def checked_stack(K, names):
    """Check a stack (F, n, n); names of the kernels with |k(x, z)| <= sqrt(k(x, x) k(z, z)) everywhere."""
    looks = [None] * len(K)

    def look(f):
        looks[f] = look_at(K[f], f"kernel {names[f]!r} of the stack")

    tiles.run(look, range(len(K)), K.size)
    for problem, _ in looks:
        if problem:
            raise ValueError(problem)
    return {name for name, (_, n_above) in zip(names, looks, strict=True) if n_above == 0}


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
