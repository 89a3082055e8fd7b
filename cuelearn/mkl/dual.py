r"""From OBSCURE's last point to the optimum: dual coordinate ascent in alternation with the group weights.

OBSCURE comes near the optimum fast and then slows down; its dual point is a good start for what ends fast.
With the primal weights of the groups held, :math:`w^g = d_g \theta^g`, the problem is the SVM of Crammer and
Singer with a kernel of its own for every class, :math:`k_y = \sum_j d_j k_j + \sum_z d_{yz} s_z s_z'`; its
dual is raised two variables of one sample at a time, where the score part of every class score is formed from
the blocks and no kernel matrix of scores is made. The new weights follow from the block norms in closed form,
as in `cuelearn.mkl.solve_reference`.
"""

import math

import numpy as np
from numba import njit

from cuelearn.core.groupnorm import group_norm
from cuelearn.mkl.problem import combined_kernel
from cuelearn.mkl.state import full_dot

__all__ = ["ascend_pairs", "finish_dual"]

# most sweeps over the samples before the objective is measured and the group weights may move again
SWEEPS = 50
# most rounds of weights
ROUNDS = 2000
# partners of a sample in the sweeps lie so far apart
STRIDE = 7919
# logarithms of group weights stay this near to the largest: further below they count for nothing
LONGEST_WAY = 80.0


@njit(cache=True, fastmath=True)
def bend(diagonal, weights, mine):
    """Curvature of one class score of a sample in its own coefficient."""
    total = diagonal
    for z in range(weights.shape[0]):
        total += weights[z] * mine[z] * mine[z]
    return total


@njit(cache=True)
def move(rising, falling, row, change):
    """Add a multiple of a row to one vector and take it from another."""
    for k in range(row.shape[0]):
        rising[k] += change * row[k]
        falling[k] -= change * row[k]


@njit(cache=True)
def class_values(i, label, mine, effective, scores, value):
    """Class scores of a sample, the wrong ones raised by 1."""
    for c in range(value.shape[0]):
        value[c] = scores[c, i] + full_dot(effective[c], mine) + (0.0 if c == label else 1.0)


@njit(cache=True)
def swap(
    i, j, kernel, prior, of_scores, labels, limits, coef, scores, theta, effective, value, other, threshold
):
    r"""Two samples exchange coefficients of two classes: i gains in a and loses in b, j the opposite.

    The sum of each class's coefficients stays, and with it what all samples' scores have in common. Where the
    scores of the priors are much alike (most of them near -1, say), any single sample that moves would move
    that too, and could only creep.

    Returns
    -------
    bool
        Whether there was anything to gain.
    """
    n, n_classes = coef.shape
    class_values(i, labels[i], prior[i], effective, scores, value)
    class_values(j, labels[j], prior[j], effective, scores, other)
    up, down = -1, -1
    for c in range(n_classes):
        value[c] -= other[c]
        if (limits[i] if c == labels[i] else 0.0) - coef[i, c] > 1e-14 * limits[i] and (
            up < 0 or value[c] < value[up]
        ):
            up = c
        if (limits[j] if c == labels[j] else 0.0) - coef[j, c] > 1e-14 * limits[j] and (
            down < 0 or value[c] > value[down]
        ):
            down = c
    if up < 0 or down < 0 or up == down or value[down] - value[up] <= threshold:
        return False
    between = kernel[i, i] + kernel[j, j] - 2.0 * kernel[i, j]
    both = 2.0 * between
    for z in range(theta.shape[1]):
        both += (of_scores[up, z] + of_scores[down, z]) * (prior[i, z] - prior[j, z]) ** 2
    room_i = (limits[i] if up == labels[i] else 0.0) - coef[i, up]
    room_j = (limits[j] if down == labels[j] else 0.0) - coef[j, down]
    step = min(room_i, room_j)
    if both > 0.0:
        step = min(step, n * (value[down] - value[up]) / both)
    coef[i, up] = (limits[i] if up == labels[i] else 0.0) if step == room_i else coef[i, up] + step
    coef[j, down] = (limits[j] if down == labels[j] else 0.0) if step == room_j else coef[j, down] + step
    coef[i, down] -= step
    coef[j, up] -= step
    change = step / n
    move(scores[up], scores[down], kernel[i], change)
    move(scores[down], scores[up], kernel[j], change)
    for z in range(theta.shape[1]):
        moved = change * (prior[i, z] - prior[j, z])
        theta[up, z] += moved
        theta[down, z] -= moved
        effective[up, z] = of_scores[up, z] * theta[up, z]
        effective[down, z] = of_scores[down, z] * theta[down, z]
    return True


@njit(cache=True)
def ascend_pairs(kernel, prior, of_scores, labels, limits, coef, scores, theta, tolerance, max_sweeps):
    r"""Dual ascent of the Crammer-Singer SVM with a linear score part of its own for every class, two
    variables at a time.

    .. math:: \max_B -\frac1n \sum_{i,c} B_{ic} \Delta_{ic} - \frac{1}{2n^2} \sum_c B_c^\top
              (K + S D_c S^\top) B_c, \qquad
              B_{ic} \le c_i [c = y_i], \quad \sum_c B_{ic} = 0

    Parameters
    ----------
    kernel : ndarray, shape (n, n)
        Combined kernel of the new samples.
    prior : ndarray, shape (n, K)
        S.
    of_scores : ndarray, shape (n_classes, K)
        Diagonals D of the weights.
    labels : ndarray of int, shape (n,)
    limits : ndarray, shape (n,)
    coef : ndarray, shape (n, n_classes)
        B, changed in place.
    scores : ndarray, shape (n_classes, n)
        Kernel part of the class scores, :math:`B^\top K / n`, kept up to date.
    theta : ndarray, shape (n_classes, K)
        :math:`B^\top S / n`, kept up to date.
    tolerance : float
        Largest violation of the optimality conditions, in units of a score.
    max_sweeps : int

    Returns
    -------
    sweeps : int
    violation : float
        Largest met in the last sweep.
    steps : int
    """
    n, n_classes = coef.shape
    n_scores = prior.shape[1]
    value, other, curvature = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    effective = of_scores * theta
    threshold, worst, steps = tolerance, 0.0, 0
    for sweep in range(max_sweeps):
        worst = 0.0
        for i in range(n):
            label, mine = labels[i], prior[i]
            class_values(i, label, mine, effective, scores, value)
            curvature[:] = -1.0
            before = steps
            for attempt in range(2 * n_classes):
                down, up = 0, -1
                for c in range(n_classes):
                    if value[c] > value[down]:
                        down = c
                    room = (limits[i] if c == label else 0.0) - coef[i, c]
                    if room > 1e-14 * limits[i] and (up < 0 or value[c] < value[up]):
                        up = c
                if up < 0:
                    break
                violation = value[down] - value[up]
                if attempt == 0:
                    worst = max(worst, violation)
                if violation <= threshold:
                    break
                for c in (down, up):
                    if curvature[c] < 0.0:
                        curvature[c] = bend(kernel[i, i], of_scores[c], mine)
                room = (limits[i] if up == label else 0.0) - coef[i, up]
                both = curvature[down] + curvature[up]
                step = min(room, n * violation / both) if both > 0.0 else room
                steps += 1
                coef[i, up] = (limits[i] if up == label else 0.0) if step == room else coef[i, up] + step
                coef[i, down] -= step
                value[up] += step * curvature[up] / n
                value[down] -= step * curvature[down] / n
                change = step / n
                move(scores[up], scores[down], kernel[i], change)
                for z in range(n_scores):
                    theta[up, z] += change * mine[z]
                    theta[down, z] -= change * mine[z]
                    effective[up, z] = of_scores[up, z] * theta[up, z]
                    effective[down, z] = of_scores[down, z] * theta[down, z]
            if steps > before and n_scores > 0 and n > 1:
                j = (i + 1 + (sweep * STRIDE) % (n - 1)) % n
                steps += swap(
                    i,
                    j,
                    kernel,
                    prior,
                    of_scores,
                    labels,
                    limits,
                    coef,
                    scores,
                    theta,
                    effective,
                    value,
                    other,
                    threshold,
                )
        if worst <= tolerance:
            return sweep + 1, worst, steps
        threshold = max(tolerance, 0.1 * worst)  # small violations wait while large ones remain
    return max_sweeps, worst, steps


def usable_groups(problem):
    """Groups that are not zero on all samples."""
    columns = np.broadcast_to(
        np.any(problem.scores != 0.0, axis=0), (problem.n_classes, problem.scores.shape[1])
    )
    return problem.join(problem.bank.diagonal.max(axis=1), columns.astype(np.float64)) > 0.0


def new_weights(problem, log_weights, norms, usable):
    """Logarithms of the next primal group weights: with w^g = d_g theta^g the optimum asks for d_g =
    |w^g|^(2-p) / (lambda |w|^(2-p)).

    No usable group goes to 0, from where it could not come back.
    """
    if problem.p == 2.0:
        return np.where(usable, -math.log(problem.regularization), -np.inf)
    with np.errstate(divide="ignore"):
        log_primal = np.where(norms > 0.0, log_weights + np.log(norms), -np.inf)
    length = group_norm(np.exp(log_primal), problem.p)
    target = (2.0 - problem.p) * (log_primal - math.log(length)) - math.log(problem.regularization)
    return np.where(usable, np.maximum(target, target.max() - LONGEST_WAY), -np.inf)


def block_norms_sq(problem, B, scores, theta, weights):
    """Squared norms of all blocks of B / n; with a single kernel from its part of the class scores, which
    are at hand."""
    n = len(B)
    if problem.bank.n_kernels > 1 or weights[0] == 0.0:
        return problem.block_norms_sq(B, np.float64) / n**2
    of_kernel = np.einsum("ic,ci->", B, scores) / (n * weights[0])
    return problem.join(np.array([max(0.0, of_kernel)]), theta**2)


def finish_dual(problem, dual_point, *, tol, max_rounds=ROUNDS, record=None):
    r"""Solve a transfer problem to a certified relative gap, from a dual point.

    Parameters
    ----------
    problem : TransferProblem
    dual_point : ndarray, shape (n_samples, n_classes)
        B with rows that sum to 0, the label's entry not negative, the others not positive; scaled back where
        it is too large.
    tol : float
        Stop when objective - bound is at most `tol` times the objective.
    max_rounds : int
    record : callable(round, objective, gap), optional

    Returns
    -------
    dual_coef : ndarray, shape (n_samples, n_classes)
    group_weights : ndarray, shape (n_groups,)
        The best primal point met: blocks ``group_weights[g] * theta^g`` with theta of `dual_coef`.
    objective, gap : float
    steps : int

    Notes
    -----
    Memory: one combined kernel, and O(M K). A step costs O(n + K), a sweep without steps O(n M K).
    """
    bank, labels = problem.bank, problem.labels
    n, n_classes = bank.n_samples, problem.n_classes
    limits = np.broadcast_to(np.asarray(problem.limits, dtype=np.float64), (n,)).copy()
    bound, scale, B = problem.dual_bound(np.array(dual_point, dtype=np.float64))
    B = np.ascontiguousarray(scale * B) if scale > 0.0 else np.zeros((n, n_classes))
    usable = usable_groups(problem)
    start = problem.primal_weights(np.sqrt(problem.block_norms_sq(B, np.float64)) / n)
    if start.any():
        with np.errstate(divide="ignore"):
            log_weights = np.maximum(np.log(start), math.log(start.max()) - LONGEST_WAY)
    else:
        log_weights = np.full(
            problem.n_groups,
            -math.log(problem.regularization) - (2.0 / problem.p - 1.0) * math.log(problem.n_groups),
        )
    log_weights[~usable] = -np.inf
    best, steps, relative = (np.inf, None, None), 0, 1.0
    for round_number in range(1, max_rounds + 1):
        weights = np.exp(log_weights)
        of_kernels, of_scores = problem.split(problem.factor * weights)
        kernel = combined_kernel(bank, of_kernels / problem.factor, problem.factor)
        scores = np.ascontiguousarray((kernel @ B).T / n)
        theta = np.ascontiguousarray(problem.score_blocks(B) / n)
        tolerance = (
            0.1 * max(relative, tol) * (best[0] if np.isfinite(best[0]) else problem.mean_loss_at_zero)
        )
        done = ascend_pairs(
            kernel,
            problem.scores,
            np.ascontiguousarray(of_scores),
            labels,
            limits,
            B,
            scores,
            theta,
            tolerance,
            SWEEPS,
        )
        steps += done[2]
        norms = np.sqrt(block_norms_sq(problem, B, scores, theta, weights))
        class_scores = scores.T + problem.scores @ (of_scores * theta).T
        value = problem.regularizer(weights * norms) + problem.mean_loss(class_scores)
        improved = value < best[0]
        if improved:
            best = (value, B.copy(), weights)
        bound = max(bound, problem.dual_bound(B, norms**2 * n**2)[0])
        gap = best[0] - bound
        relative = gap / max(best[0], np.finfo(float).tiny)
        if record is not None:
            record(round_number, best[0], gap)
        if relative <= tol or not norms.any():
            break
        if improved or done[1] <= tolerance:  # weights that follow a half-solved SVM may go round in circles
            log_weights = new_weights(problem, log_weights, norms, usable)
    return best[1] / n, best[2], best[0], gap, steps
