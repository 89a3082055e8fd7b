r"""The passes of the online learners, compiled.

A kernel learner keeps class scores as expansions over its support set, :math:`s(x, y) = \sum_i A_{yi}\, k(x_i, x)`, and visits samples
one after the other. Kernel values come in as rows: ``rows[t, columns[i]]`` is the kernel of sample t with support sample i, so that a
full kernel matrix, or a block of a batch against support set and itself, serves without a copy.

Averaging (thesis section 3.3) costs next to nothing. With the change :math:`\delta_s` of the coefficients at visit s,

.. math:: \sum_{t=1}^T A_t = T A_T - \sum_s (s - 1)\, \delta_s ,

and for the product with the second layer's :math:`W_t`, with :math:`V_s = \sum_{t \le s} W_t`,

.. math:: \sum_{t=1}^T W_t A_t = V_T A_T - \sum_s V_{s-1}\, \delta_s ,

so the sums are touched only where the coefficients are.
"""

import math

import numpy as np
from numba import njit

from cuelearn.core.losses import competitor

PERCEPTRON, PROJECTRON, PROJECTRON_PLUS_PLUS = 0, 1, 2
PASSIVE_AGGRESSIVE, GRADIENT = 0, 1

# positions in the array of counts
SIZE, SEEN, N_UPDATES, N_PROJECTED, N_MISTAKES, N_LOG, N_LOG_VALUES, INEXACT, REFACTOR_FROM = range(9)
N_COUNTS = 9

# a squared residual below this share of k(x, x) counts as linear dependence: the inverse would only amplify rounding
DEPENDENT = 1e-10
DEPENDENT_SINGLE = 1e-6  # with kernel values in float32
# |K d - k| of a new support sample above which the factor of the inverse is computed afresh, relative to the largest entry of k
INACCURATE = 1e-9


@njit(cache=True, fastmath={"reassoc", "contract"})
def _dot(a, b, n):
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@njit(cache=True)
def _solve(root, k, size, work, out):
    """``out = K^-1 k`` with ``K^-1 = R^T R``, R lower triangular."""
    for i in range(size):
        work[i] = _dot(root[i], k, i + 1)
        out[i] = 0.0
    for i in range(size):
        row, factor = root[i], work[i]
        for j in range(i + 1):
            out[j] += factor * row[j]


@njit(cache=True)
def _projection(k, k_xx, gram, root, size, solution, work, rest, dependent, refine):
    """Coefficients of the projection of k(x, .) on the span of the support set, and its squared residual.

    `refine` improves the solution by one step of iterative refinement and returns how wrong it was.
    """
    _solve(root, k, size, work, solution)
    residual_sq, error = k_xx - _dot(work, work, size), 0.0
    if refine:
        largest = 0.0
        for i in range(size):
            rest[i] = k[i] - _dot(gram[i], solution, size)
            error = max(error, abs(rest[i]))
            largest = max(largest, abs(k[i]))
        error = error / largest if largest > 0.0 else 0.0
        change = np.empty(size)
        _solve(root, rest, size, work, change)
        for i in range(size):
            solution[i] += change[i]
        residual_sq = k_xx - _dot(k, solution, size)
    if residual_sq <= dependent * k_xx:
        residual_sq = 0.0
    return residual_sq, error


@njit(cache=True)
def _extend(k, k_xx, gram, root, size, solution, residual_sq):
    r"""Add a sample to the Gram matrix and to R, :math:`K^{-1} = R^T R`.

    With :math:`\delta^2 = k(x,x) - k^T K^{-1} k`, the Schur complement, the new row of R is :math:`[-K^{-1} k,\; 1] / \delta`.
    """
    scale = 1.0 / math.sqrt(residual_sq)
    for i in range(size):
        gram[i, size] = k[i]
        gram[size, i] = k[i]
        root[size, i] = -scale * solution[i]
        root[i, size] = 0.0
    gram[size, size] = k_xx
    root[size, size] = scale


@njit(cache=True)
def _write_log(log, log_values, counts, t, label, rival, step, values, length, slot):
    e, start = counts[N_LOG], counts[N_LOG_VALUES]
    log[e, 0], log[e, 1], log[e, 2], log[e, 3], log[e, 4], log[e, 5] = t, label, rival, start, length, slot
    if length == 0:
        log_values[start] = step
        counts[N_LOG_VALUES] += 1
    else:
        for i in range(length):
            log_values[start + i] = step * values[i]
        counts[N_LOG_VALUES] += length
    counts[N_LOG] += 1


@njit(cache=True)
def kernel_pass(
    rule,
    rows,
    diagonal,
    labels,
    places,
    start,
    columns,
    coef,
    delayed,
    gram,
    root,
    eta,
    scores,
    sizes,
    counts,
    log,
    log_values,
):
    r"""Visit samples in order with the Perceptron, Projectron or Projectron++; returns the position reached.

    With :math:`U = k((x,y),\cdot) - k((x,r),\cdot)` for the best wrong class r, the residual of its projection on the support set is
    :math:`\Delta = \sqrt 2\,(k(x,x) - k^T K^{-1} k)^{1/2}` and :math:`\|PU\|^2 = 2\, k^T K^{-1} k`.

    Parameters
    ----------
    rule : {PERCEPTRON, PROJECTRON, PROJECTRON_PLUS_PLUS}
    rows : ndarray, shape (n, n_columns)
        Kernel rows of the samples to visit.
    diagonal : ndarray of float64, shape (n,)
        Their k(x, x).
    labels : ndarray of int64, shape (n,)
    places : ndarray of int64, shape (n,)
        Column that each of them gets when it joins the support set.
    start : int
        Position to begin at.
    columns : ndarray of int64, shape (capacity,)
        Column of each support sample.
    coef, delayed : ndarray of float64, shape (n_classes, capacity)
        Coefficients, and the sums :math:`\sum_s (s-1)\delta_s` for their average.
    gram, root : ndarray of float64, shape (capacity, capacity)
        Kernel matrix K of the support set, and the lower triangular R of :math:`K^{-1} = R^T R`; empty for the Perceptron. R is the
        inverse of K's Cholesky factor: its entries grow with the root of K's condition number only, and no rounding can make the
        inverse indefinite.
    eta : float
        Largest residual of a projection.
    scores : ndarray of float64, shape (n, n_classes)
        Receives the scores before each update.
    sizes : ndarray of int64, shape (n,)
        Receives the size of the support set after each visit.
    counts : ndarray of int64
        Counters, see the constants of this module.
    log : ndarray of int64, shape (n, 6) or (0, 6)
        Receives one row for each update (visit, label, rival, start and number of its values, place in the support set or -1).
    log_values : ndarray of float64
        The values that the rows of `log` point to.

    Returns
    -------
    int
        ``n``, or the position after which the inverse's factor has to be computed afresh.
    """
    n_classes, capacity = coef.shape
    k = np.empty(capacity)
    solution = np.empty(capacity)
    work, rest = np.empty(capacity), np.empty(capacity)
    here = np.empty(n_classes)
    dependent = DEPENDENT if rows.itemsize == 8 else DEPENDENT_SINGLE
    for t in range(start, rows.shape[0]):
        size = counts[SIZE]
        for i in range(size):
            k[i] = rows[t, columns[i]]
        for c in range(n_classes):
            here[c] = _dot(coef[c], k, size)
            scores[t, c] = here[c]
        label = labels[t]
        rival, margin = competitor(here, label)
        mistake = margin <= 0.0
        counts[N_MISTAKES] += mistake
        earlier = float(counts[SEEN])
        counts[SEEN] += 1
        sizes[t] = size
        k_xx = diagonal[t]
        if not (mistake or (rule == PROJECTRON_PLUS_PLUS and margin < 1.0)) or k_xx <= 0.0:
            continue

        project, step, residual_sq, error = False, 1.0, 0.0, 0.0
        if rule != PERCEPTRON and size > 0:
            residual_sq, error = _projection(
                k, k_xx, gram, root, size, solution, work, rest, dependent, False
            )
            residual = math.sqrt(2.0 * residual_sq)
            project = residual <= eta or not mistake
            if not project:  # the sample is about to join for good: decide with a refined solution
                residual_sq, error = _projection(
                    k, k_xx, gram, root, size, solution, work, rest, dependent, True
                )
                residual = math.sqrt(2.0 * residual_sq)
                project = residual <= eta
            if rule == PROJECTRON_PLUS_PLUS and project:
                loss = 1.0 - margin
                gain = loss - (
                    residual / eta if residual > 0.0 and eta > 0.0 else (math.inf if residual > 0.0 else 0.0)
                )
                length_sq = 2.0 * _dot(k, solution, size)
                step = 0.0
                if gain > 0.0 and length_sq > 0.0:
                    step = min(1.0, loss / length_sq, 2.0 * gain / length_sq)  # thesis Algorithm 2, line 16
        elif rule != PERCEPTRON:
            residual_sq = k_xx
            if not mistake:  # a margin error needs scores, and there are none without a support set
                continue
        if project and step > 0.0:
            counts[N_UPDATES] += 1
            counts[N_PROJECTED] += 1
            for i in range(size):
                change = step * solution[i]
                coef[label, i] += change
                coef[rival, i] -= change
                delayed[label, i] += earlier * change
                delayed[rival, i] -= earlier * change
            if log.shape[0] > 0:
                _write_log(log, log_values, counts, t, label, rival, step, solution, size, -1)
        elif not project:
            counts[N_UPDATES] += 1
            for c in range(n_classes):
                coef[c, size] = 0.0
                delayed[c, size] = 0.0
            coef[label, size] = 1.0
            coef[rival, size] = -1.0
            delayed[label, size] = earlier
            delayed[rival, size] = -earlier
            columns[size] = places[t]
            if log.shape[0] > 0:
                _write_log(log, log_values, counts, t, label, rival, 1.0, solution, 0, size)
            if rule != PERCEPTRON:
                _extend(k, k_xx, gram, root, size, solution, residual_sq)
            counts[SIZE] = sizes[t] = size + 1
        if error > INACCURATE and size >= counts[REFACTOR_FROM]:
            counts[INEXACT] = 1
            return t + 1
    return rows.shape[0]


@njit(cache=True)
def linear_pass(
    rule, X, labels, aggressiveness, coef, delayed, sums, scores, counts, log, log_values, sums_before
):
    r"""Visit samples in order with a linear learner: Passive-Aggressive, or gradient steps of fixed size.

    A sample with loss moves :math:`w_y \mathrel{+}= \tau x`, :math:`w_r \mathrel{-}= \tau x` with
    :math:`\tau = \min\{C, \ell / (2\|x\|^2)\}` (C infinite: PA, else PA-I), or :math:`\tau = C` for the gradient rule. A sample of zeros
    changes nothing.

    Parameters
    ----------
    rule : {PASSIVE_AGGRESSIVE, GRADIENT}
    X : ndarray of float64, shape (n, d)
    labels : ndarray of int64, shape (n,)
    aggressiveness : float
        C, or the step.
    coef, delayed : ndarray of float64, shape (n_classes, d)
        Hyperplanes, and the sums for their average.
    sums : ndarray of float64, shape (n_classes, d)
        :math:`\sum_t W_t`; kept only when `sums_before` has rows.
    scores : ndarray of float64, shape (n, n_classes)
        Receives the scores before each update.
    counts : ndarray of int64
    log, log_values
        As in `kernel_pass`.
    sums_before : ndarray of float64, shape (n, n_classes, d) or (0, n_classes, d)
        Receives `sums` before each visit.
    """
    n_classes, d = coef.shape
    here = np.empty(n_classes)
    for t in range(X.shape[0]):
        x = X[t]
        for c in range(n_classes):
            here[c] = _dot(coef[c], x, d)
            scores[t, c] = here[c]
        label = labels[t]
        rival, margin = competitor(here, label)
        counts[N_MISTAKES] += margin <= 0.0
        earlier = float(counts[SEEN])
        counts[SEEN] += 1
        length_sq = _dot(x, x, d)
        if margin < 1.0 and length_sq > 0.0:
            step = aggressiveness
            if rule == PASSIVE_AGGRESSIVE:
                step = min(step, (1.0 - margin) / (2.0 * length_sq))
            if not step < math.inf:  # PA on a sample whose square underflows: no finite step mends the loss
                step = 0.0
            for i in range(d):
                change = step * x[i]
                coef[label, i] += change
                coef[rival, i] -= change
                delayed[label, i] += earlier * change
                delayed[rival, i] -= earlier * change
            counts[N_UPDATES] += 1
            if log.shape[0] > 0:
                _write_log(log, log_values, counts, t, label, rival, step, x, d, -1)
        if sums_before.shape[0] > 0:
            for c in range(n_classes):
                for i in range(d):
                    sums_before[t, c, i] = sums[c, i]
                    sums[c, i] += coef[c, i]


@njit(cache=True)
def add_products(log, log_values, n_log, sums_before, first, out):
    r"""Add :math:`V_{s-1}\delta_s` of every logged update of one cue to `out`, shape (n_classes of the second layer, capacity).

    Parameters
    ----------
    log, log_values : ndarray
        Written by `kernel_pass` or `linear_pass`.
    n_log : int
        Rows of `log` in use.
    sums_before : ndarray of float64, shape (n, n_classes, n_scores)
        :math:`V_{t-1}` at each visit.
    first : int
        Number of the cue's first score.
    out : ndarray of float64
    """
    for e in range(n_log):
        t, label, rival, start, length, slot = (
            log[e, 0],
            log[e, 1],
            log[e, 2],
            log[e, 3],
            log[e, 4],
            log[e, 5],
        )
        for c in range(out.shape[0]):
            weight = sums_before[t, c, first + label] - sums_before[t, c, first + rival]
            if weight == 0.0:
                continue
            if length == 0:
                out[c, slot] += weight * log_values[start]
            else:
                for i in range(length):
                    out[c, i] += weight * log_values[start + i]
