r"""The loop that OM-2, OBSCURE, Pegasos-MKL and UFO-MKL share, compiled.

One coefficient matrix serves all kernels (thesis 4.3.3): :math:`\theta^j = \sum_{i,y} A_{iy}\, \phi^j(x_i, y)`. A visit to sample
*i* needs its class scores :math:`s_y = \sum_j \alpha_j\, \theta^j \cdot \phi^j(x_i, y)`, and an update in addition the product of
every block with the gradient, :math:`\theta^j \cdot \phi^j(x_i, y_i) - \theta^j \cdot \phi^j(x_i, r)`, from which the block norms
follow incrementally. There are two ways to get them:

recompute
    Combine the visited rows first, :math:`k = \sum_j \alpha_j K_j[i]`, then the class scores from *k* and the sparse coefficients; on
    an update, the products of the still cached rows with the difference of two coefficient columns. One read of the visited rows,
    independent of the number of classes. Right while most visits update.
maintain
    Keep the scores of all samples per kernel and class up to date (memory F M n). A visit costs F M operations and reads no kernel
    row, an update five streams over one row per kernel. Right when few visits update, and the only way that spares kernels which
    have to be computed on demand.

Kernel rows are passed as a flat array with the strides of a sample and of a kernel, so that a stack in either order serves without
a copy; with the rows of one sample side by side (sample-major) a pass runs at memory speed, kernel-major at about two thirds of it.
Where a row is not at hand the compiled loop returns its position and the caller fetches rows (`stream.py`).
"""

import math

from numba import njit

from cuelearn.core.groupnorm import link_weights
from cuelearn.core.losses import competitor
from cuelearn.mkl.rules import BATCH, DUAL_AVERAGING, FIXED, OM2, om2_step_size, proximal_strength

# positions in the arrays of scalars that a visit reads and writes
SCALE, DUAL_NORM, STRENGTH, STEP = 0, 1, 2, 3
Q, ETA, LAMBDA, RADIUS, ALPHA, FACTOR, ROUNDING = 0, 1, 2, 3, 4, 5, 6
N_UPDATES, N_MISTAKES, N_ACTIVE = 0, 1, 2

# a lazily scaled dual vector is brought back to scale 1 below this value, far from where float32 scores would overflow
SMALLEST_SCALE = 1e-6


@njit(cache=True, fastmath=True)
def combine_rows(flat, base, kernel_stride, weights, active, n_active, out):
    """``out = sum_j weights[j] * row_j`` over the active kernels.

    Adjacent rows (sample-major) are read one after the other, as one stream that the processor prefetches; rows far apart four at a
    time, so that several memory streams are under way at once.
    """
    n = out.shape[0]
    out[:] = 0
    a = 0
    if kernel_stride != n:
        while a + 4 <= n_active:
            j0, j1, j2, j3 = active[a], active[a + 1], active[a + 2], active[a + 3]
            w0, w1, w2, w3 = weights[j0], weights[j1], weights[j2], weights[j3]
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


@njit(cache=True, fastmath=True)
def gathered_dot(row, index, value, count):
    """``sum_s value[s] * row[index[s]]`` in double precision; unsigned indices spare the test for negative ones and let the loop
    gather."""
    total = 0.0
    for s in range(count):
        total += value[s] * row[index[s]]
    return total


@njit(cache=True, fastmath=True)
def full_dot(row, dense):
    """Dot product in double precision."""
    total = 0.0
    for i in range(row.shape[0]):
        total += row[i] * dense[i]
    return total


@njit(cache=True, fastmath=True)
def class_scores(combined, entry_index, entry_value, entry_count, scores):
    """Class scores of one sample from its combined kernel row and the sparse coefficients of each class."""
    for c in range(scores.shape[0]):
        scores[c] = gathered_dot(combined, entry_index[c], entry_value[c], entry_count[c])


@njit(cache=True)
def pair_products(
    flat, base, kernel_stride, label, rival, coef, entry_index, entry_value, entry_count, difference, out
):
    """Products of every block with the gradient's direction, from the rows of the visited sample.

    Sparse while the two classes hold few coefficients, else against the dense difference of their columns.
    """
    n = coef.shape[1]
    n_kernels = out.shape[0]
    if 4 * (entry_count[label] + entry_count[rival]) < n:
        for j in range(n_kernels):
            row = flat[base + j * kernel_stride : base + j * kernel_stride + n]
            out[j] = gathered_dot(
                row, entry_index[label], entry_value[label], entry_count[label]
            ) - gathered_dot(row, entry_index[rival], entry_value[rival], entry_count[rival])
    else:
        for i in range(n):
            difference[i] = coef[label, i] - coef[rival, i]
        for j in range(n_kernels):
            out[j] = full_dot(flat[base + j * kernel_stride : base + j * kernel_stride + n], difference)


@njit(cache=True)
def add_coefficient(coef, c, i, amount, entry_of, entry_index, entry_value, entry_count):
    """Add to one coefficient and to its place in the sparse lists of its class."""
    coef[c, i] += amount
    if entry_of.shape[0] == 0:
        return
    slot = entry_of[c, i]
    if slot < 0:
        slot = entry_count[c]
        entry_of[c, i] = slot
        entry_index[c, slot] = i
        entry_count[c] += 1
    entry_value[c, slot] = coef[c, i]


@njit(cache=True)
def index_entries(coef, entry_of, entry_index, entry_value, entry_count):
    """Sparse lists of the coefficients of each class, rebuilt from the dense matrix."""
    for c in range(coef.shape[0]):
        count = 0
        for i in range(coef.shape[1]):
            entry_of[c, i] = -1
            if coef[c, i] != 0.0:
                entry_of[c, i] = count
                entry_index[c, count] = i
                entry_value[c, count] = coef[c, i]
                count += 1
        entry_count[c] = count


@njit(cache=True, fastmath=True)
def add_row(scores, label, rival, flat, base, kernel_stride, amount):
    """Maintained scores after an update: ``+ amount * row`` for the label, ``- amount * row`` for its rival, every kernel."""
    n = scores.shape[2]
    amount = flat.dtype.type(amount)
    for j in range(scores.shape[1]):
        row = flat[base + j * kernel_stride : base + j * kernel_stride + n]
        up, down = scores[label, j], scores[rival, j]
        for i in range(n):
            change = amount * row[i]
            up[i] += change
            down[i] -= change


@njit(cache=True)
def refresh_link(norms_sq, norms, weights, threshold, q, rounding, active, reals, counts):
    """Primal weights of the blocks from their dual norms, and the list of kernels whose contribution is above rounding."""
    largest = 0.0
    for j in range(norms.shape[0]):
        norms[j] = math.sqrt(max(0.0, norms_sq[j]))
    reals[DUAL_NORM] = link_weights(norms, threshold, q, weights)
    for j in range(norms.shape[0]):
        largest = max(largest, weights[j] * norms[j])
    n_active = 0
    for j in range(norms.shape[0]):
        if weights[j] * norms[j] > rounding * largest:
            active[n_active] = j
            n_active += 1
    if 2 * n_active > norms.shape[0]:  # an update reads all rows anyway: let them come as one stream
        for j in range(norms.shape[0]):
            active[j] = j
        n_active = norms.shape[0]
    counts[N_ACTIVE] = n_active


@njit(cache=True)
def fold_scale(coef, norms_sq, maintained, entry_value, reals):
    """Bring the lazily scaled dual vector back to scale 1 (a scale of 0 forgets everything exactly)."""
    scale = reals[SCALE]
    coef *= scale
    norms_sq *= scale * scale
    entry_value *= scale
    for c in range(maintained.shape[0]):
        for j in range(maintained.shape[1]):
            for i in range(maintained.shape[2]):
                maintained[c, j, i] *= scale
    reals[DUAL_NORM] *= scale
    reals[SCALE] = 1.0


@njit(cache=True)
def visit_samples(
    rule,
    flat,
    row_of,
    row_stride,
    kernel_stride,
    order,
    start,
    labels,
    diagonal,
    gradient_norm_sq,
    coef,
    norms_sq,
    norms,
    weights,
    active,
    maintained,
    entry_of,
    entry_index,
    entry_value,
    entry_count,
    combined,
    cast_weights,
    difference,
    products,
    scores,
    params,
    reals,
    counts,
    mistakes,
):
    r"""Visit samples in order under one of the update rules; returns the position reached.

    Parameters
    ----------
    rule : {OM2, FIXED, BATCH, DUAL_AVERAGING}
        See `rules.py`: OM-2, OBSCURE's online stage, OBSCURE's batch stage (with radius infinity: Pegasos-MKL), UFO-MKL.
    flat, row_of, row_stride, kernel_stride
        Row of kernel j at sample i: ``flat[row_of[i] * row_stride + j * kernel_stride :][:n]``; ``row_of[i] < 0``: not at hand.
    order : ndarray of int, start : int
        Samples to visit, and the position to begin at.
    labels : ndarray of int, shape (n,)
    diagonal : ndarray of float64, shape (n_kernels, n)
    gradient_norm_sq : ndarray of float64, shape (n,)
        :math:`\|ar z\|_{2,q}^2` of a gradient at each sample.
    coef : ndarray of float64, shape (n_classes, n)
        Coefficients of the dual vector up to the lazy scale.
    norms_sq, norms, weights : ndarray of float64, shape (n_kernels,)
        Squared block norms (unscaled), block norms, link factors.
    active : ndarray of int, shape (n_kernels,)
        Kernels whose contribution is above rounding, `counts[N_ACTIVE]` of them.
    maintained : ndarray, shape (n_classes, n_kernels, n) or empty
        Scores per class and kernel; empty selects the recompute route.
    entry_of, entry_index, entry_value, entry_count
        Sparse lists per class for the recompute route; empty in the other.
    combined, cast_weights, difference, products, scores
        Work arrays.
    params, reals, counts : ndarray
        Scalars, see the constants of this module.
    mistakes : ndarray of bool, shape of order
        Receives the 0/1 sequence of mistakes.

    Returns
    -------
    int
        ``len(order)``, or the first position whose kernel rows are missing; nothing of that visit has happened yet.
    """
    coef.shape[1]
    n_kernels = norms_sq.shape[0]
    maintain = maintained.shape[0] > 0
    q, factor = params[Q], params[FACTOR]
    rounding = params[ROUNDING]
    threshold = 0.0
    for position in range(start, order.shape[0]):
        i = order[position]
        label = labels[i]
        row = row_of[i]
        base = row * row_stride
        # factor that turns weights[j] * coef into the primal vector of this visit
        if rule == DUAL_AVERAGING:
            prefactor = 1.0 / (max(1.0, reals[STEP]) * params[LAMBDA])
            if params[ALPHA] > 0.0:
                refresh_link(
                    norms_sq, norms, weights, params[ALPHA] * reals[STEP], q, rounding, active, reals, counts
                )
        else:
            prefactor = reals[SCALE] / q
        n_active = counts[N_ACTIVE]

        if n_active == 0:
            scores[:] = 0.0
        elif maintain:
            for c in range(scores.shape[0]):
                total = 0.0
                for a in range(n_active):
                    total += weights[active[a]] * maintained[c, active[a], i]
                scores[c] = total
        else:
            if row < 0:
                return position
            for a in range(n_active):
                cast_weights[active[a]] = weights[active[a]]
            combine_rows(flat, base, kernel_stride, cast_weights, active, n_active, combined)
            class_scores(combined, entry_index, entry_value, entry_count, scores)
        rival, margin = competitor(scores, label)
        margin *= factor * prefactor
        has_loss = margin < 1.0

        step_size = 0.0
        if has_loss:
            if row < 0:
                return position
            if rule == OM2:
                step_size = om2_step_size(margin, gradient_norm_sq[i])
            elif rule == FIXED:
                step_size = params[ETA]
            elif rule == DUAL_AVERAGING:
                step_size = 1.0
        mistakes[position] = margin <= 0.0
        counts[N_MISTAKES] += margin <= 0.0
        reals[STEP] += 1.0

        if rule == BATCH:
            gradient_norm = math.sqrt(gradient_norm_sq[i]) if has_loss else 0.0
            reals[STRENGTH] = proximal_strength(
                reals[STRENGTH],
                reals[STEP],
                params[LAMBDA],
                q,
                reals[SCALE] * reals[DUAL_NORM],
                gradient_norm,
                params[RADIUS],
            )
            denominator = params[LAMBDA] * reals[STEP] + reals[STRENGTH]
            reals[SCALE] *= max(0.0, 1.0 - params[LAMBDA] / denominator)
            if reals[SCALE] < SMALLEST_SCALE:
                fold_scale(coef, norms_sq, maintained, entry_value, reals)
                if reals[DUAL_NORM] == 0.0:
                    counts[N_ACTIVE] = 0
                    weights[:] = 0.0
            if has_loss:
                step_size = q / denominator / reals[SCALE]

        if step_size > 0.0:
            if maintain:
                for j in range(n_kernels):
                    products[j] = maintained[label, j, i]
                    products[j] -= maintained[rival, j, i]
            else:
                pair_products(
                    flat,
                    base,
                    kernel_stride,
                    label,
                    rival,
                    coef,
                    entry_index,
                    entry_value,
                    entry_count,
                    difference,
                    products,
                )
            for j in range(n_kernels):
                norms_sq[j] += factor * step_size * (2.0 * products[j] + 2.0 * step_size * diagonal[j, i])
            add_coefficient(coef, label, i, step_size, entry_of, entry_index, entry_value, entry_count)
            add_coefficient(coef, rival, i, -step_size, entry_of, entry_index, entry_value, entry_count)
            if maintain:
                add_row(maintained, label, rival, flat, base, kernel_stride, step_size)
            counts[N_UPDATES] += 1
            if rule == DUAL_AVERAGING:
                threshold = params[ALPHA] * reals[STEP]
            refresh_link(norms_sq, norms, weights, threshold, q, rounding, active, reals, counts)
        if rule == BATCH:
            # projection on the ball of radius R (line 10), on a visit without loss too: the start may lie outside a capped R
            length = reals[SCALE] * reals[DUAL_NORM]
            if length > q * params[RADIUS]:
                reals[SCALE] *= q * params[RADIUS] / length
    return order.shape[0]


@njit(cache=True)
def combine_block(flat, rows, row_stride, kernel_stride, weights, active, out):
    """Combined kernel rows ``out[b] = sum_j weights[j] * K_j[rows[b]]`` of several samples."""
    for b in range(rows.shape[0]):
        combine_rows(flat, rows[b] * row_stride, kernel_stride, weights, active, active.shape[0], out[b])
