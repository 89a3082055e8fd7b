"""Row algebra: weighted sums, scores, quadratic forms and norms from rows of a kernel bank."""

import numpy as np

from cuelearn.compiled import njit
from cuelearn.expect import warn_user
from cuelearn.kernels.tiles import planes_of

# rows per block; constant, so that sums do not depend on the machine
BLOCK_ROWS = 256
QUADRATIC_ROWS = 64
# (least number of vectors, largest share of samples) for which gathering columns is faster
MOST_GATHERED = ((16, 0.8), (2, 0.4), (0, 0.2))


@njit(cache=True, fastmath=True)
def combine_rows(flat, base, kernel_stride, weights, active, n_active, out):
    """``out = sum_j weights[j] * row_j`` over active kernels, distant rows four at a time."""
    n = out.shape[0]
    out[:] = 0
    a = 0
    if kernel_stride != n:
        while a + 4 <= n_active:
            j0 = active[a]
            j1 = active[a + 1]
            j2 = active[a + 2]
            j3 = active[a + 3]
            w0 = weights[j0]
            w1 = weights[j1]
            w2 = weights[j2]
            w3 = weights[j3]
            r0 = flat[base + j0 * kernel_stride : base + j0 * kernel_stride + n]
            r1 = flat[base + j1 * kernel_stride : base + j1 * kernel_stride + n]
            r2 = flat[base + j2 * kernel_stride : base + j2 * kernel_stride + n]
            r3 = flat[base + j3 * kernel_stride : base + j3 * kernel_stride + n]
            for i in range(n):
                out[i] += (w0 * r0[i] + w1 * r1[i]) + (w2 * r2[i] + w3 * r3[i])
            a += 4
    while a < n_active:
        w = weights[active[a]]
        r = flat[base + active[a] * kernel_stride : base + active[a] * kernel_stride + n]
        for i in range(n):
            out[i] += w * r[i]
        a += 1


@njit(cache=True)
def combine_block(flat, starts, kernel_stride, weights, active, out):
    """``out[b] = sum_j weights[j] * K_j[row_b]``; kernel 0's rows begin at `starts`."""
    for b in range(starts.shape[0]):
        combine_rows(flat, starts[b], kernel_stride, weights, active, active.shape[0], out[b])


@njit(cache=True, fastmath=True)
def gathered_dot(row, index, value, count):
    """``sum_s value[s] * row[index[s]]`` in double precision."""
    total = 0.0
    for s in range(count):
        total += value[s] * row[index[s]]
    return total


@njit(cache=True)
def sparse_scores(flat, starts, kernel_stride, weights, active, coef, combined, out):
    """Class scores ``out[b, c]`` of the rows at `starts`, for sparse `coef` (indptr, indices, data)."""
    begin, samples, values = coef
    for b in range(starts.shape[0]):
        combine_rows(flat, starts[b], kernel_stride, weights, active, active.shape[0], combined)
        for c in range(out.shape[1]):
            first = begin[c]
            last = begin[c + 1]
            out[b, c] = gathered_dot(combined, samples[first:last], values[first:last], last - first)


@njit(cache=True, fastmath=True)
def full_dot(row, dense):
    """Dot product in double precision."""
    total = 0.0
    for i in range(row.shape[0]):
        total += row[i] * dense[i]
    return total


def flat_view(stack):
    """A stack with contiguous rows as a flat array, with the strides of rows and kernels."""
    planes = planes_of(stack)
    if planes is None:
        raise ValueError("the rows of a kernel stack must be contiguous")
    return planes.flat, planes.width, planes.plane


def row_blocks(bank, samples, step):
    """`step` samples at a time: samples, flat array, starts of kernel 0's rows, kernel stride."""
    block = bank.stack
    if not bank.resident:
        block = np.empty((bank.n_kernels, step, bank.n_samples), dtype=bank.dtype)
    flat, row_stride, kernel_stride = flat_view(block)
    for start in range(0, samples.size, step):
        rows = places = samples[start : start + step]
        if not bank.resident:
            bank.rows_into(rows, block[:, : rows.size])
            places = np.arange(rows.size)
        yield rows, flat, places * row_stride, kernel_stride


def combine(block, kernel_weights, dtype=None):
    combined = None
    for part, weight in zip(block, kernel_weights, strict=True):
        scaled = np.dtype(dtype or part.dtype).type(weight) * part
        if combined is None:
            combined = scaled
        else:
            combined = np.add(combined, scaled, out=combined)
    return combined


def block_scores(block, coef, kernel_weights):
    """Scores in float64, so that those of a row do not depend on the other rows."""
    if kernel_weights.ndim == 1:
        return combine(block, kernel_weights) @ coef
    return sum((part @ coef) * weights for part, weights in zip(block, kernel_weights.T, strict=True))


def combined_scores(cross, coef, kernel_weights):
    """Scores of a cross bank for weights (n_kernels,) or (n_classes, n_kernels)."""
    scores = np.zeros((cross.n_rows, coef.shape[1]))
    for rows, block in cross.blocks(reuse=True):
        scores[rows] = block_scores(block, coef, kernel_weights)
    return scores


@njit(cache=True, fastmath=True)
def gather(flat, starts, length, columns, out):
    """``out[b] = row_b[columns]``; unsigned columns need no test for negative ones."""
    for b in range(starts.size):
        row = flat[starts[b] : starts[b] + length]
        if columns.size == length:
            for k in range(length):
                out[b, k] = row[k]
        else:
            for k in range(columns.size):
                out[b, k] = row[columns[k]]


@njit(cache=True, fastmath=True)
def dots(flat, starts, length, columns, vector, out):
    """``out[b] = row_b[columns] @ vector`` in double precision."""
    for b in range(starts.size):
        row = flat[starts[b] : starts[b] + length]
        total = 0.0
        if columns.size == length:
            for k in range(length):
                total += vector[k] * row[k]
        else:
            for k in range(columns.size):
                total += vector[k] * row[columns[k]]
        out[b] = total


def quadratic_forms(bank, coefs, support=None):
    """``coefs[:, c] @ K_j @ coefs[:, c]``, (n_kernels, n_vectors); `coefs` cover all samples or `support`."""
    n = bank.n_samples
    n_vectors = coefs.shape[1]
    if support is not None:
        given = coefs
        coefs = np.zeros((n, n_vectors))
        coefs[support] = given
    support = np.flatnonzero(coefs.any(axis=1))
    out = np.zeros((bank.n_kernels, n_vectors))
    # gather the columns of few support samples, read whole rows for many
    most = next(share for least, share in MOST_GATHERED if n_vectors >= least) * n
    columns = support if support.size <= most else np.arange(n)
    cast = np.ascontiguousarray(coefs[columns])
    unsigned = columns.astype(np.uint64)
    step = max(1, min(BLOCK_ROWS, bank.block_rows() // 2, support.size))
    if bank.resident:
        step = QUADRATIC_ROWS
    block = np.empty((step, 1 if n_vectors == 1 else columns.size))
    for rows, flat, starts, kernel_stride in row_blocks(bank, support, step):
        part = block[: rows.size]
        chosen = coefs[rows]
        for j in range(bank.n_kernels):
            places = flat, starts + j * kernel_stride, n, unsigned
            if n_vectors == 1:
                dots(*places, cast[:, 0], part[:, 0])
                out[j] += chosen[:, 0] @ part[:, 0]
            else:
                gather(*places, part)
                out[j] += np.einsum("ic,ic->c", chosen, part @ cast)
    return np.maximum(0.0, out)


@njit(cache=True)
def add_products(flat, starts, kernel_stride, factors, out):
    """``out[j] += sum_bk factors[b, k] * K_j[row_b, k]``."""
    length = factors.shape[1]
    for b in range(starts.shape[0]):
        for j in range(out.shape[0]):
            base = starts[b] + j * kernel_stride
            out[j] += full_dot(flat[base : base + length], factors[b])


def support_rows(bank, coef, resident_rows=BLOCK_ROWS):
    step = resident_rows
    if not bank.resident:
        step = max(1, min(BLOCK_ROWS, bank.block_rows() // 2))
    return row_blocks(bank, np.flatnonzero(coef.any(axis=1)), step)


def kernel_norms_sq(bank, coef):
    """Squared norms of the kernels' blocks."""
    out = np.zeros(bank.n_kernels)
    for rows, *places in support_rows(bank, coef):
        add_products(*places, coef[rows] @ coef.T, out)
    return np.maximum(0.0, out)


def announce_matrix(bank):
    """Warn, once per bank and fit, if an (n, n) float64 matrix exceeds the memory budget."""
    n = bank.n_samples
    mark = object()
    size = 8.0 * n * n
    # of several threads, `setdefault` lets one warn
    if size > bank.memory and vars(bank).setdefault("_announced", mark) is mark:
        warn_user(
            f"one matrix of all {n:,} samples takes {size:.3g} bytes, more than memory={bank.memory:.3g}: "
            "raise memory, use fewer samples or a method that reads kernels row by row, such as OBSCURE"
        )


def combined_kernel(bank, kernel_weights, factor, out=None):
    """``factor * sum_j kernel_weights[j] * K_j`` in float64: float32 would limit the gap."""
    n = bank.n_samples
    active = np.flatnonzero(kernel_weights)
    if out is None:
        announce_matrix(bank)
        out = np.empty((n, n))
    step = n
    if not bank.resident:
        step = max(1, min(BLOCK_ROWS, bank.block_rows()))
    for rows, *places in row_blocks(bank, np.arange(n), step):
        combine_block(*places, factor * kernel_weights, active, out[rows[0] : rows[-1] + 1])
    return out
