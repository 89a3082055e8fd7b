r"""The multiclass SVM of Crammer and Singer on one kernel matrix, without bias: block-coordinate ascent in
its dual, compiled.

What the reference solution and MC-MKL put around it is the choice of kernel weights.
"""

import numpy as np
from numba import njit

__all__ = ["ascend", "best_response", "solve_crammer_singer"]


@njit(cache=True)
def best_response(gradient, upper, curvature, order, out):
    r"""Solve :math:`\max_b -\sum_c b_c g_c - \frac\kappa2 \|b\|^2` over :math:`b_c \le u_c`, :math:`\sum_c
    b_c = 0`.

    The solution is :math:`b_c = \min(u_c, (\beta - g_c)/\kappa)`, with beta found by sorting the breakpoints
    :math:`g_c + \kappa u_c` (Crammer and Singer 2002, section 5). For curvature 0 all of the label's mass
    goes to the largest gradient.

    Parameters
    ----------
    gradient, upper : ndarray, shape (n_classes,)
        u is 1 for the label, 0 for the others.
    curvature : float >= 0
    order : ndarray of int, shape (n_classes,)
        Work space.
    out : ndarray, shape (n_classes,)
        Receives b.
    """
    n_classes = gradient.shape[0]
    if curvature <= 0.0:
        top, label = 0, 0
        for c in range(n_classes):
            out[c] = 0.0
            if gradient[c] > gradient[top]:
                top = c
            if upper[c] > 0.0:
                label = c
        if gradient[top] > gradient[label]:
            out[label] = 1.0
            out[top] = -1.0
        return
    # insertion sort by breakpoint, largest first: below beta's breakpoints the bound is active
    for c in range(n_classes):
        key = gradient[c] + curvature * upper[c]
        k = c
        while k > 0 and gradient[order[k - 1]] + curvature * upper[order[k - 1]] < key:
            order[k] = order[k - 1]
            k -= 1
        order[k] = c
    # free classes are those with breakpoint above beta; add them one by one
    bounded = 0.0
    for c in range(n_classes):
        bounded += upper[c]
    free_sum = 0.0
    beta = 0.0
    for k in range(n_classes):
        c = order[k]
        free_sum += gradient[c]
        bounded -= upper[c]
        beta = (free_sum - curvature * bounded) / (k + 1)
        if k + 1 == n_classes:
            break
        following = order[k + 1]
        if beta >= gradient[following] + curvature * upper[following]:
            break
    for c in range(n_classes):
        out[c] = min(upper[c], (beta - gradient[c]) / curvature)


@njit(cache=True)
def ascend(kernel, labels, coef, scores, tolerance, max_sweeps):
    r"""Dual block-coordinate ascent for the Crammer-Singer SVM without bias.

    .. math:: \max_B -\frac1n \sum_{i,c} B_{ic} \Delta_{ic} - \frac{1}{2n^2} \sum_c B_c^\top K B_c, \qquad
              B_{ic} \le [c = y_i], \quad \sum_c B_{ic} = 0

    Parameters
    ----------
    kernel : ndarray, shape (n, n)
        Combined kernel.
    labels : ndarray of int, shape (n,)
    coef : ndarray of float64, shape (n, n_classes)
        B, changed in place.
    scores : ndarray of float64, shape (n_classes, n)
        :math:`B^\top K / n`, kept up to date.
    tolerance : float
        Largest violation of the optimality conditions, in units of a score.
    max_sweeps : int

    Returns
    -------
    sweeps : int
    violation : float
        Largest violation met in the last sweep over all samples.
    updates : int
        Visits that changed coefficients.
    """
    n, n_classes = coef.shape
    gradient, new = np.empty(n_classes), np.empty(n_classes)
    upper = np.zeros(n_classes)
    order = np.empty(n_classes, dtype=np.int64)
    threshold = tolerance
    worst = 0.0
    updates = 0
    for sweep in range(max_sweeps):
        worst = 0.0
        for i in range(n):
            label = labels[i]
            largest, least = -np.inf, np.inf
            for c in range(n_classes):
                value = scores[c, i] + (0.0 if c == label else 1.0)
                gradient[c] = value
                largest = max(largest, value)
                if coef[i, c] < (1.0 if c == label else 0.0):
                    least = min(least, value)
            violation = largest - least
            worst = max(worst, violation)
            if violation <= threshold:
                continue
            updates += 1
            curvature = kernel[i, i] / n
            for c in range(n_classes):
                gradient[c] -= coef[i, c] * curvature
            upper[label] = 1.0
            best_response(gradient, upper, curvature, order, new)
            upper[label] = 0.0
            row = kernel[i]
            for c in range(n_classes):
                change = new[c] - coef[i, c]
                if change != 0.0:
                    coef[i, c] = new[c]
                    target = scores[c]
                    change /= n
                    for k in range(n):
                        target[k] += change * row[k]
        if worst <= tolerance:
            return sweep + 1, worst, updates
        # small violations wait while large ones remain
        threshold = max(tolerance, 0.1 * worst)
    return max_sweeps, worst, updates


def solve_crammer_singer(kernel, labels, n_classes, *, C=1.0, tol=1e-6, max_sweeps=10_000, coef=None):
    r"""Crammer-Singer SVM without bias on one kernel matrix.

    Parameters
    ----------
    kernel : ndarray, shape (n, n)
    labels : ndarray of int, shape (n,)
    n_classes : int
    C : float > 0
        The objective is :math:`\frac{1}{2Cn}\|w\|^2 + \frac1n\sum_i\ell_i`.
    tol : float
        Largest violation of the optimality conditions.
    max_sweeps : int
    coef : ndarray, shape (n, n_classes), optional
        Warm start: B of an earlier solution.

    Returns
    -------
    dual_coef : ndarray, shape (n, n_classes)
        Scores are ``kernel @ dual_coef``.
    sweeps : int
    """
    n = kernel.shape[0]
    B = np.zeros((n, n_classes)) if coef is None else np.array(coef, dtype=np.float64)
    # lambda = 1/(C n): dividing the objective by it puts C n in front of the kernel
    scaled = np.ascontiguousarray(kernel) * kernel.dtype.type(C * n)
    scores = np.ascontiguousarray((scaled @ B / n).T, dtype=np.float64)
    sweeps, _, _ = ascend(scaled, np.ascontiguousarray(labels, dtype=np.int64), B, scores, tol, max_sweeps)
    return C * B, sweeps
