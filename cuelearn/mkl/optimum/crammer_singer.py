"""Crammer and Singer's multiclass SVM without bias: compiled block-coordinate ascent in the dual.

Prior scores are a linear part of the class scores; no kernel matrix of them is formed.
"""

from typing import NamedTuple

import numpy as np

from cuelearn.codecache import njit
from cuelearn.core.compiled import loop
from cuelearn.core.losses import margins
from cuelearn.kernels.rows import full_dot
from cuelearn.kernels.tiles import gather_rows

__all__ = ["Machine", "ascend", "best_response", "optimal_scaling", "plain_machine"]

# within this share of a sample's limit, a coefficient is at its bound
ROUNDING = 1e-14
# maximum sweeps, and updates per sample, between two face steps
FACE_SWEEPS = 30
FACE_UPDATES = 3
# face step: maximum iterations, residual as share of the gradient, maximum halvings
FACE_ITERATIONS = 20
FACE_SHARE = 0.1
FACE_HALVINGS = 12


class Machine(NamedTuple):
    """SVM: combined kernel (m, m), labels and limits (m,), divisor n, prior scores (m, K), their weights
    (n_classes, K)."""

    kernel: np.ndarray
    labels: np.ndarray
    limits: np.ndarray
    n: int
    priors: np.ndarray
    of_priors: np.ndarray


@njit(cache=True)
def best_response(gradient, upper, curvature, order, out):
    r"""Solve :math:`\max_b -\sum_c b_c g_c - \frac12 \sum_c \kappa_c b_c^2` over :math:`b_c \le u_c`,
    :math:`\sum_c b_c = 0`, into `out`; `order` is scratch.

    :math:`b_c = \min(u_c, (\beta - g_c)/\kappa_c)`, with beta from the sorted breakpoints :math:`g_c +
    \kappa_c u_c` (Crammer and Singer 2002, section 5). Curvatures are all positive or all 0.
    """
    n_classes = gradient.shape[0]
    if curvature[0] <= 0.0:
        top = 0
        label = 0
        for c in range(n_classes):
            out[c] = 0.0
            if gradient[c] > gradient[top]:
                top = c
            if upper[c] > 0.0:
                label = c
        if gradient[top] > gradient[label]:
            out[label] = upper[label]
            out[top] = -upper[label]
        return
    # insertion sort by breakpoint, largest first; a bound is active if beta exceeds the breakpoint
    bounded = 0.0
    for c in range(n_classes):
        bounded += upper[c]
        key = gradient[c] + curvature[c] * upper[c]
        k = c
        while k > 0 and gradient[order[k - 1]] + curvature[order[k - 1]] * upper[order[k - 1]] < key:
            order[k] = order[k - 1]
            k -= 1
        order[k] = c
    pull = 0.0
    give = 0.0
    beta = 0.0
    for k in range(n_classes):
        c = order[k]
        pull += gradient[c] / curvature[c]
        give += 1.0 / curvature[c]
        bounded -= upper[c]
        beta = (pull - bounded) / give
        if k + 1 == n_classes:
            break
        following = order[k + 1]
        if beta >= gradient[following] + curvature[following] * upper[following]:
            break
    for c in range(n_classes):
        out[c] = min(upper[c], (beta - gradient[c]) / curvature[c])


@njit(cache=True)
def balance(b, label, limit):
    """Make a sample's coefficients sum to 0: by the label's, at its limit by the largest other one."""
    top = -1
    total = 0.0
    for c in range(b.shape[0]):
        if c != label:
            total += b[c]
            if top < 0 or b[c] < b[top]:
                top = c
    if b[label] < limit:
        b[label] = min(limit, -total)
    else:
        b[top] -= total + limit


@njit(cache=True)
def class_values(i, machine, effective, scores, value):
    """Class scores of a sample, plus 1 for wrong classes."""
    priors = machine.priors[i]
    for c in range(value.shape[0]):
        value[c] = scores[c, i] + full_dot(effective[c], priors) + (0.0 if c == machine.labels[i] else 1.0)


@njit(cache=True)
def move(c, i, change, machine, scores, theta, effective):
    target = scores[c]
    row = machine.kernel[i]
    for k in range(row.shape[0]):
        target[k] += change * row[k]
    for z in range(theta.shape[1]):
        theta[c, z] += change * machine.priors[i, z]
        effective[c, z] = machine.of_priors[c, z] * theta[c, z]


@loop
def sweep_samples(machine, coef, scores, theta, effective, work, order, tolerance, max_sweeps, max_updates):
    """Sweeps of `ascend`; `effective`: weighted `theta`; `work`: zeros (4, n_classes)."""
    n_samples, n_classes = coef.shape
    kernel = machine.kernel
    labels = machine.labels
    limits = machine.limits
    n = machine.n
    gradient = work[0]
    curvature = work[1]
    new = work[2]
    upper = work[3]
    n_priors = theta.shape[1]
    threshold = tolerance
    worst = 0.0
    updates = 0
    for sweep in range(max_sweeps):
        worst = 0.0
        for i in range(n_samples):
            label = labels[i]
            class_values(i, machine, effective, scores, gradient)
            largest = -np.inf
            least = np.inf
            for c in range(n_classes):
                largest = max(largest, gradient[c])
                if (limits[i] if c == label else 0.0) - coef[i, c] > ROUNDING * limits[i]:
                    least = min(least, gradient[c])
            violation = largest - least
            worst = max(worst, violation)
            if violation <= threshold:
                continue
            updates += 1
            for c in range(n_classes):
                total = kernel[i, i] + 0.0
                for z in range(n_priors):
                    total += machine.of_priors[c, z] * machine.priors[i, z] ** 2
                curvature[c] = total / n
                gradient[c] -= coef[i, c] * curvature[c]
            upper[label] = limits[i]
            best_response(gradient, upper, curvature, order, new)
            upper[label] = 0.0
            balance(new, label, limits[i])
            for c in range(n_classes):
                change = new[c] - coef[i, c]
                if change != 0.0:
                    coef[i, c] = new[c]
                    move(c, i, change / n, machine, scores, theta, effective)
        if worst <= tolerance or updates >= max_updates:
            return sweep + 1, worst, updates
        threshold = max(tolerance, 0.1 * worst)  # postpone small violations
    return max_sweeps, worst, updates


@loop
def project(coef, labels, limits, work, order):
    """Nearest feasible coefficients, in place; scratch: zeros (3, n_classes), integers (n_classes,)."""
    gradient = work[0]
    ones = work[1]
    upper = work[2]
    for i in range(coef.shape[0]):
        for c in range(coef.shape[1]):
            gradient[c] = -coef[i, c]
            ones[c] = 1.0
        upper[labels[i]] = limits[i]
        best_response(gradient, upper, ones, order, coef[i])
        balance(coef[i], labels[i], limits[i])
        upper[labels[i]] = 0.0


def face_step(machine, coef, scores, theta):
    """Newton step on the face of the current point (conjugate gradients), projected, and halved until it
    improves."""
    n = machine.n
    every = np.arange(len(coef))
    upper = np.zeros_like(coef)
    upper[every, machine.labels] = machine.limits
    free = coef < upper - ROUNDING * machine.limits[:, None]
    chosen = np.flatnonzero(coef.any(axis=1) & (free.sum(axis=1) > 1))
    if chosen.size == 0:
        return
    free = free[chosen]
    labels = machine.labels[chosen]
    limits = machine.limits[chosen]
    n_free = free.sum(axis=1)
    priors = machine.priors[chosen]
    gradient = scores.T[chosen] + priors @ (machine.of_priors * theta).T + 1.0
    gradient[np.arange(chosen.size), labels] -= 1.0

    # directions hold the free coefficients alone, class by class
    places = np.nonzero(free.T)[::-1]
    sizes = free.sum(axis=0)
    ends = np.cumsum(sizes)[:-1]
    separate = np.sum(sizes**2) <= chosen.size**2
    members = chosen.astype(np.uint64)
    groups = [members]
    if separate:
        groups = np.split(members[places[0]], ends)
    blocks = [np.empty((rows.size, rows.size), dtype=np.float32) for rows in groups]
    for rows, block in zip(groups, blocks, strict=True):
        gather_rows(machine.kernel[None], rows, rows, block[None])

    def matrix(direction):
        out = np.zeros(free.shape)
        out[places] = direction
        return out

    def of_priors(change):
        return priors @ (machine.of_priors * (change.T @ priors)).T

    def curved(direction):
        """Curvature times a direction."""
        if separate:
            parts = np.split(direction.astype(np.float32), ends)
            products = [block @ part for block, part in zip(blocks, parts, strict=True)]
            out = np.concatenate(products, dtype=np.float64)
        else:
            out = (blocks[0] @ matrix(direction).astype(np.float32))[places].astype(np.float64)
        if priors.shape[1]:
            out += of_priors(matrix(direction))[places]
        return out / n

    def within(direction):
        """Its part whose rows sum to 0."""
        sums = np.bincount(places[0], direction, chosen.size)
        return direction - (sums / n_free)[places[0]]

    residual = within(-gradient[places])
    direction = residual
    step = np.zeros_like(residual)
    size = residual @ residual
    enough = FACE_SHARE**2 * size
    for _ in range(FACE_ITERATIONS):
        change = within(curved(direction))
        curvature = direction @ change
        if size <= enough or curvature <= 0.0:
            break
        step += size / curvature * direction
        residual = residual - size / curvature * change
        before = size
        size = residual @ residual
        direction = residual + size / before * direction
    step = matrix(step)

    work = np.zeros((3, coef.shape[1]))
    order = np.empty(coef.shape[1], dtype=np.int64)
    whole = np.zeros_like(coef)
    for _ in range(FACE_HALVINGS):
        moved = coef[chosen] + step
        project(moved, labels, limits, work, order)
        change = moved - coef[chosen]
        whole[chosen] = change
        of_scores = whole.T @ machine.kernel / n
        if np.sum(change * (gradient + 0.5 * (of_scores.T[chosen] + of_priors(change) / n))) < 0.0:
            coef[chosen] = moved
            scores += of_scores
            theta += change.T @ priors / n
            return
        step *= 0.5


def optimal_scaling(margin, limits, quadratic, linear):
    r"""Minimise :math:`s^2 quadratic + s\,linear + \frac1n \sum_i c_i [1 - s m_i]_+` over s; returns s and
    the value."""
    n = margin.size
    if quadratic + linear <= 0.0:
        return 1.0, float(limits @ np.maximum(0.0, 1.0 - margin)) / n
    positive = margin > 0.0
    knots = 1.0 / margin[positive]
    order = np.argsort(knots)
    knots = knots[order]
    slopes = (limits[positive] * margin[positive])[order] / n
    # left of a knot its sample has a loss
    pull = np.append(np.cumsum(slopes[::-1])[::-1], 0.0) + float(limits[~positive] @ margin[~positive]) / n
    ends = np.append(knots, np.inf)
    slope = np.append(2.0 * quadratic * knots, np.inf if quadratic > 0.0 else 0.0)
    first = int(np.argmax(pull - linear <= slope))
    start = 0.0
    if first != 0:
        start = float(knots[first - 1])
    stretch = min(max((pull[first] - linear) / max(2.0 * quadratic, 1e-300), start), float(ends[first]))
    if not 0.0 < stretch < np.inf:
        stretch = 1.0
    loss = float(limits @ np.maximum(0.0, 1.0 - stretch * margin)) / n
    return stretch, float(stretch**2 * quadratic + stretch * linear + loss)


def own_gap(machine, coef, scores, theta):
    """Dual gap at the best multiple of the coefficients."""
    n = machine.n
    values = np.ascontiguousarray(scores.T + machine.priors @ (machine.of_priors * theta).T)
    quadratic = 0.5 * float(np.sum(coef * values)) / n
    limits = machine.limits * (len(coef) / n)
    primal = optimal_scaling(margins(values, machine.labels), limits, quadratic, 0.0)[1]
    return primal + quadratic - float(coef[np.arange(len(coef)), machine.labels].sum()) / n


def ascend(machine, coef, scores, theta, tolerance, max_sweeps, max_updates, gap=0.0):
    r"""Dual ascent, all coefficients of a sample at once, with `face_step` in between.

    .. math:: \max_B -\frac1n \sum_{i,c} B_{ic} \Delta_{ic} - \frac{1}{2n^2} \sum_c B_c^\top
        (K + S D_c S^\top) B_c, \qquad
        B_{ic} \le c_i [c = y_i], \quad \sum_c B_{ic} = 0

    Changes `coef`, B (m, n_classes), `scores`, :math:`B^\top K / n`, and `theta`, :math:`B^\top S / n`. Stops
    when no violation exceeds `tolerance` or the own gap is at most `gap`; returns sweeps, whether so,
    updates.
    """
    sweeps = updates = 0
    work = np.zeros((4, coef.shape[1]))
    order = np.empty(coef.shape[1], dtype=np.int64)
    while True:
        share = min(max_updates - updates, FACE_UPDATES * len(coef))
        limits = tolerance, min(max_sweeps - sweeps, FACE_SWEEPS), share
        effective = machine.of_priors * theta
        done, violation, changed = sweep_samples(
            machine, coef, scores, theta, effective, work, order, *limits
        )
        sweeps = sweeps + done
        updates = updates + changed
        solved = violation <= tolerance or gap > 0.0 and own_gap(machine, coef, scores, theta) <= gap
        if solved or updates >= max_updates or sweeps >= max_sweeps:
            return sweeps, solved, updates
        face_step(machine, coef, scores, theta)


def plain_machine(kernel, labels, n_classes, limits=None):
    n = len(kernel)
    labels = np.ascontiguousarray(labels, dtype=np.int64)
    if limits is None:
        limits = np.ones(n)
    return Machine(kernel, labels, limits, n, np.zeros((n, 0)), np.zeros((n_classes, 0)))
