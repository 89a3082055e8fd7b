r"""The binary SVM without bias on one kernel matrix: coordinate ascent in its dual, compiled, from any start, to a certified gap.

libsvm cannot leave its bias out, and methods that train one SVM after another on kernels that hardly change want to go on from the last
solution.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = ["BoxSolution", "box_ascent", "solve_box_svm"]

# most sweeps between two looks at the gap
LOOK = 20
# share of the largest violation below which others wait
WAITING = 0.3
# factor on the tolerance when it was met and the gap is still too large
TIGHTER = 0.5


class BoxSolution(NamedTuple):
    r"""A solved SVM.

    Attributes
    ----------
    alpha : ndarray of float64, shape (n,)
    value : float
        Dual value :math:`\alpha^\top 1 - \frac12 (\alpha \circ y)^\top K (\alpha \circ y)`, never above the optimum.
    gap : float
        Certified distance of `value` from the optimum.
    sweeps : int
    """

    alpha: np.ndarray
    value: float
    gap: float
    sweeps: int


@njit(cache=True)
def box_ascent(kernel, signs, C, alpha, scores, tolerance, max_sweeps):
    r"""Coordinate ascent for :math:`\max_{0 \le \alpha \le C} \alpha^\top 1 - \frac12 (\alpha \circ y)^\top K (\alpha \circ y)`.

    Parameters
    ----------
    kernel : ndarray, shape (n, n)
        float32 or float64; sums are formed in float64.
    signs : ndarray of float64, shape (n,)
        -1 or 1.
    C : float
    alpha : ndarray of float64, shape (n,)
        Changed in place.
    scores : ndarray of float64, shape (n,)
        :math:`K (\alpha \circ y)`, kept up to date.
    tolerance : float
        Largest violation of the optimality conditions, in units of a margin.
    max_sweeps : int

    Returns
    -------
    sweeps : int
    violation : float
        Largest met in the last sweep.
    """
    n = alpha.shape[0]
    threshold, worst = tolerance, 0.0
    for sweep in range(max_sweeps):
        worst = 0.0
        for i in range(n):
            slope = 1.0 - signs[i] * scores[i]
            if (slope > 0.0 and alpha[i] >= C) or (slope < 0.0 and alpha[i] <= 0.0):
                continue
            worst = max(worst, abs(slope))
            if abs(slope) <= threshold:
                continue
            curvature = np.float64(kernel[i, i])
            if curvature > 0.0:
                new = min(C, max(0.0, alpha[i] + slope / curvature))
            else:
                new = C if slope > 0.0 else 0.0
            step = (new - alpha[i]) * signs[i]
            alpha[i] = new
            if step != 0.0:
                row = kernel[i]
                for k in range(n):
                    scores[k] += step * row[k]
        if worst <= tolerance:
            return sweep + 1, worst
        threshold = max(tolerance, WAITING * worst)  # small violations wait while large ones remain
    return max_sweeps, worst


def solve_box_svm(kernel, signs, C, *, tol=1e-3, alpha=None, max_sweeps=10_000):
    r"""Binary SVM without bias in its dual.

    .. math:: H = \max_{0 \le \alpha \le C} \alpha^\top 1 - \frac12 (\alpha \circ y)^\top K (\alpha \circ y)
              = \min_f \frac12 \|f\|^2 + C \sum_i [1 - y_i f(x_i)]_+

    Parameters
    ----------
    kernel : ndarray, shape (n, n), C-contiguous
    signs : ndarray of -1.0 and 1.0, shape (n,)
    C : float > 0
    tol : float
        Gap to reach, relative to the primal objective.
    alpha : ndarray, shape (n,), optional
        Start, in [0, C].
    max_sweeps : int

    Returns
    -------
    BoxSolution

    Notes
    -----
    A sweep costs O(n), and O(n) more for every coefficient that moves. The primal point is the one that belongs to alpha.

    References
    ----------
    Equation 2 of Bucak, Jin, Jain, NIPS 2010; coordinate ascent: Hsieh et al., ICML 2008.
    """
    signs = np.ascontiguousarray(signs, dtype=np.float64)
    alpha = np.zeros(signs.size) if alpha is None else np.clip(np.array(alpha, dtype=np.float64), 0.0, C)
    coef = alpha * signs
    scores = (
        np.asarray(kernel @ coef.astype(kernel.dtype), dtype=np.float64)
        if coef.any()
        else np.zeros(signs.size)
    )
    tolerance, sweeps = 0.1, 0
    while True:
        done, _ = box_ascent(
            kernel, signs, float(C), alpha, scores, tolerance, min(LOOK, max_sweeps - sweeps)
        )
        sweeps += done
        quadratic = float((alpha * signs) @ scores)
        value = float(alpha.sum()) - 0.5 * quadratic
        primal = 0.5 * quadratic + C * float(np.maximum(0.0, 1.0 - signs * scores).sum())
        gap = max(0.0, primal - value)
        if gap <= tol * primal or sweeps >= max_sweeps:
            return BoxSolution(alpha, value, gap, sweeps)
        if done < LOOK:
            tolerance *= TIGHTER
