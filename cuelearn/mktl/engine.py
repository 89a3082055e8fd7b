r"""OBSCURE's visits with score groups, compiled.

The kernels' part is the route "maintain" of `cuelearn.mkl.engine`: scores of all samples per class and kernel are kept up to date. The
score groups need none of that: a block is one number, kept as :math:`\theta_{yz}`, and its contribution
:math:`\alpha_{yz} \theta_{yz} s_{iz}` is formed at the visit. So a visit costs O(M (F0 + K)), an update O(n F0 + M K), and the
memory for the scores is that of theta and its weights, O(M K) (thesis 6.3).
"""

import math

import numpy as np
from numba import njit

from cuelearn.core.losses import competitor
from cuelearn.mkl.engine import (
    DUAL_NORM,
    ETA,
    FACTOR,
    LAMBDA,
    N_ACTIVE,
    N_MISTAKES,
    N_UPDATES,
    RADIUS,
    ROUNDING,
    SCALE,
    SMALLEST_SCALE,
    STEP,
    STRENGTH,
    Q,
    add_row,
    fold_scale,
    refresh_link,
)
from cuelearn.mkl.rules import BATCH, FIXED, proximal_strength


@njit(cache=True)
def refresh_effective(theta, weights, n_kernels, shared, effective):
    """Primal weights of the scores: group weight times block, for every class and score."""
    n_scores = theta.shape[1]
    for c in range(theta.shape[0]):
        first = n_kernels + (0 if shared else c * n_scores)
        for z in range(n_scores):
            effective[c, z] = weights[first + z] * theta[c, z]


@njit(cache=True)
def move_blocks(theta, prior, label, rival, step, factor, norms_sq, n_kernels, shared):
    """Add a step of one sample's scores to the blocks of two classes, and bring the squared norms up to date."""
    n_scores = theta.shape[1]
    for z in range(n_scores):
        theta[label, z] += step * prior[z]
        theta[rival, z] -= step * prior[z]
        if shared:
            norms_sq[n_kernels + z] = factor * (theta[label, z] ** 2 + theta[rival, z] ** 2)
        else:
            norms_sq[n_kernels + label * n_scores + z] = theta[label, z] ** 2
            norms_sq[n_kernels + rival * n_scores + z] = theta[rival, z] ** 2


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
    cost,
    prior,
    shared,
    coef,
    theta,
    effective,
    norms_sq,
    norms,
    weights,
    active,
    maintained,
    scores,
    params,
    reals,
    counts,
    mistakes,
):
    r"""Visit samples in order under OBSCURE's online or batch rule; returns the position reached.

    Parameters
    ----------
    rule : {FIXED, BATCH}
    flat, row_of, row_stride, kernel_stride, order, start, labels, diagonal
        As in `cuelearn.mkl.engine.visit_samples`.
    gradient_norm_sq : ndarray of float64, shape (n,)
        :math:`\|\bar z\|_{2,q}^2` over all groups of a gradient with cost 1.
    cost : ndarray of float64, shape (n,)
        Weights of the losses.
    prior : ndarray of float64, shape (n, K)
        Scores of the priors.
    shared : bool
        Whether the classes share their score groups (hinge loss).
    coef : ndarray of float64, shape (n_classes, n)
    theta, effective : ndarray of float64, shape (n_classes, K)
        Blocks of the score groups (up to the lazy scale), and those times their weights.
    norms_sq, norms, weights, active : ndarrays, shape (n_groups,)
    maintained : ndarray, shape (n_classes, n_kernels, n)
    scores : ndarray, shape (n_classes,)
        Work array.
    params, reals, counts
        Scalars, see `cuelearn.mkl.engine`.
    mistakes : ndarray of bool, shape of order

    Returns
    -------
    int
        ``len(order)``, or the first position whose kernel rows are missing; nothing of that visit has happened yet.
    """
    n_classes, n_kernels = maintained.shape[0], maintained.shape[1]
    n_scores = theta.shape[1]
    q, factor = params[Q], params[FACTOR]
    nothing = np.empty((0, 0))
    for position in range(start, order.shape[0]):
        i = order[position]
        label, row, mine = labels[i], row_of[i], prior[i]
        for c in range(n_classes):
            total = 0.0
            for j in range(n_kernels):
                total += weights[j] * maintained[c, j, i]
            for z in range(n_scores):
                total += effective[c, z] * mine[z]
            scores[c] = total
        rival, margin = competitor(scores, label)
        margin *= factor * (reals[SCALE] / q)
        has_loss = margin < 1.0
        if has_loss and row < 0:
            return position
        mistakes[position] = margin <= 0.0
        counts[N_MISTAKES] += margin <= 0.0
        reals[STEP] += 1.0

        step_size = 0.0
        if has_loss and rule == FIXED:
            step_size = params[ETA] * cost[i]
        if rule == BATCH:
            gradient_norm = cost[i] * math.sqrt(gradient_norm_sq[i]) if has_loss else 0.0
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
                theta *= reals[SCALE]
                effective *= reals[SCALE]
                fold_scale(coef, norms_sq, maintained, nothing, reals)
                if reals[DUAL_NORM] == 0.0:
                    counts[N_ACTIVE] = 0
                    weights[:] = 0.0
                    effective[:] = 0.0
            if has_loss:
                step_size = q / denominator / reals[SCALE] * cost[i]

        if step_size > 0.0:
            base = row * row_stride
            for j in range(n_kernels):
                product = np.float64(maintained[label, j, i]) - np.float64(maintained[rival, j, i])
                norms_sq[j] += factor * step_size * (2.0 * product + 2.0 * step_size * diagonal[j, i])
            coef[label, i] += step_size
            coef[rival, i] -= step_size
            add_row(maintained, label, rival, flat, base, kernel_stride, step_size)
            move_blocks(theta, mine, label, rival, step_size, factor, norms_sq, n_kernels, shared)
            counts[N_UPDATES] += 1
            refresh_link(norms_sq, norms, weights, 0.0, q, params[ROUNDING], active, reals, counts)
            refresh_effective(theta, weights, n_kernels, shared, effective)
        if rule == BATCH:
            length = reals[SCALE] * reals[DUAL_NORM]
            if length > q * params[RADIUS]:
                reals[SCALE] *= q * params[RADIUS] / length
    return order.shape[0]
