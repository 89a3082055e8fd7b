"""Linear support vector machines by an interior-point method, accurate for any C.

The number of passes of LIBLINEAR's coordinate ascent grows with C.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs
from sklearn.exceptions import ConvergenceWarning

from cuelearn.expect import warn_user

#: Bytes of a block of scaled rows.
BLOCK = 2_000_000
#: Largest step, relative to the step to the boundary.
SHORT = 0.995


class LinearSolution(NamedTuple):
    """`dual_coef` is feasible, with the objective `dual`, a lower bound."""

    coef: np.ndarray
    intercept: float
    dual_coef: np.ndarray
    primal: float
    dual: float
    n_iter: int

    @property
    def gap(self):
        if self.primal > 0.0:
            return (self.primal - self.dual) / self.primal
        return 0.0


def normal_matrix(X, weights):
    """Lower triangle of ``X.T @ diag(weights) @ X``, by blocks of rows."""
    n, d = X.shape
    step = max(1, BLOCK // (8 * d))
    root = np.sqrt(weights)[:, None]
    out = np.zeros((d, d), order="F")
    for start in range(0, n, step):
        rows = slice(start, start + step)
        out = dsyrk(1.0, (X[rows] * root[rows]).T, beta=1.0, c=out, lower=1, overwrite_c=1)
    return out


def longest_step(values, direction):
    """Largest step in [0, 1] that keeps `values` non-negative."""
    falling = direction < 0.0
    return min(1.0, float((values[falling] / -direction[falling]).min(initial=1.0)))


def factorise(matrix, diagonal):
    """Lower Cholesky factor; the entries at `diagonal` are increased if rounding requires it."""
    extra = 1e-15 * float(matrix[diagonal].max())
    for _ in range(8):
        factor, failed = dpotrf(matrix, lower=1, clean=0)
        if not failed:
            return factor
        matrix[diagonal] += extra
        extra *= 10.0
    return None


def linear_svm(X, signs, C, *, weights=None, free_bias=True, tol=1e-5, max_iter=200):
    r"""Linear SVM with the hinge loss, to a relative duality gap of `tol`, or with a ConvergenceWarning.

    .. math::

        \min_{w, b}\ \frac12\|w\|^2 + \frac\beta2 b^2 + C \sum_i c_i\, [1 - s_i (w \cdot x_i + b)]_+ ,
        \qquad \beta = 0 \text{ with `free_bias`, else } 1

    `signs` are -1.0 and 1.0, `weights` :math:`c_i > 0`. Mehrotra's predictor and corrector (SIAM J.
    Optimization 2, 1992; for SVMs Ferris and Munson, 13, 2002) with :math:`s_i (w \cdot x_i + b) = 1 + v_i -
    \xi_i`, :math:`a_i v_i = (C c_i - a_i)\, \xi_i = \mu \to 0`. The dual objective is that of a feasible
    point.
    """
    n, d = X.shape
    one_sided = signs.min() == signs.max()
    if one_sided and free_bias:
        return LinearSolution(np.zeros(d), float(signs[0]), np.zeros(n), 0.0, 0.0, 0)
    # in units of C: a in [0, c], features times sqrt(C), objective over C
    scale = np.sqrt(C)
    c = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    column = scale
    if free_bias:
        column = 1.0
    penalty = np.append(np.ones(d), 0.0 if free_bias else 1.0)
    positive = signs > 0.0

    def outputs(beta):
        return scale * (X @ beta[:d]) + column * beta[d]

    def combined(values):  # sums of the rows (scale x_i, column)
        sums = np.empty(d + 1)
        np.multiply(scale, values @ X, out=sums[:d])
        sums[d] = column * values.sum()
        return sums

    diagonal = np.diag_indices(d + 1)
    a = 0.5 * c
    v = np.ones(n)
    xi = np.ones(n)
    beta = np.zeros(d + 1)
    best_primal = (np.inf, beta)
    best_dual = (-np.inf, a)
    for n_iter in range(max_iter + 1):
        margins = signs * outputs(beta)
        primal = 0.5 * float(penalty @ beta**2) + float(c @ np.maximum(0.0, 1.0 - margins))
        if primal < best_primal[0]:
            best_primal = primal, beta
        sums = combined(a * signs)
        feasible = a
        if free_bias:
            up = float(a[positive].sum())
            down = float(a[~positive].sum())
            feasible = np.where(positive, min(1.0, down / up), min(1.0, up / down)) * a
            dual = float(feasible.sum()) - 0.5 * float(np.sum(combined(feasible * signs)[:d] ** 2))
        else:
            dual = float(a.sum()) - 0.5 * float(sums @ sums)
        if dual > best_dual[0]:
            best_dual = dual, feasible
        if best_primal[0] - best_dual[0] <= tol * best_primal[0] or n_iter == max_iter:
            break
        room = c - a
        mu = float(a @ v + room @ xi) / (2 * n)
        lack = 1.0 + v - xi - margins
        positives = np.concatenate([a, room, v, xi])
        slope = sums - penalty * beta
        D = 1.0 / (xi / room + v / a)
        matrix = np.zeros((d + 1, d + 1), order="F")
        matrix[:d, :d] = normal_matrix(X, C * D)
        matrix[d, :] = column * combined(D)
        matrix[diagonal] += penalty
        factor = factorise(matrix, diagonal)
        if factor is None:
            break

        def direction(to_v, to_xi):
            target = D * (lack - to_xi / room + to_v / a)
            step, _ = dpotrs(factor, combined(target * signs) + slope, lower=1)
            da = target - D * signs * outputs(step)
            return step, da, (to_v - v * da) / a, (to_xi + xi * da) / room

        _, da, dv, dxi = direction(-a * v, -room * xi)
        length = longest_step(positives, np.concatenate([da, -da, dv, dxi]))
        ahead = (a + length * da) @ (v + length * dv) + (room - length * da) @ (xi + length * dxi)
        centre = mu * (float(ahead) / (2 * n) / mu) ** 3
        step, da, dv, dxi = direction(centre - a * v - da * dv, centre - room * xi + da * dxi)
        length = longest_step(positives, np.concatenate([da, -da, dv, dxi]))
        length = min(1.0, SHORT * length)
        if not length > 1e-12:
            break
        beta = beta + length * step
        a = a + length * da
        v = v + length * dv
        xi = xi + length * dxi
    primal, beta = best_primal
    dual, a = best_dual
    if primal - dual > tol * primal:
        warn_user(
            f"the SVM stopped after {n_iter} steps with a relative duality gap of "
            f"{(primal - dual) / primal:.1e}, above tol = {tol:g}",
            ConvergenceWarning,
        )
    return LinearSolution(scale * beta[:d], float(column * beta[d]), C * a, C * primal, C * dual, n_iter)
