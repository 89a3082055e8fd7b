r"""The exact reference: a certified optimum of the MKL problem, by ascent in its dual.

For fixed kernel weights *d* the dual is that of a Crammer-Singer SVM on the combined kernel
:math:`\sum_j d_j K_j`; for a fixed dual point the regulariser

.. math:: h(m) = \frac\lambda2 \|m\|_p^2 + \alpha \|m\|_1, \qquad m_j = \|w^j\|_2 ,

is a concave function of the squares :math:`m_j^2` (p <= 2), so
:math:`h(m) \le \frac12 \sum_j m_j^2/d_j + const` with equality at
:math:`d_j = m_j / (\lambda \|m\|_p^{2-p} m_j^{p-1} + \alpha)`. Alternating the two decreases the primal
objective; for :math:`\alpha = 0` it is the closed-form step of p-norm MKL. The weights of useless kernels
fall geometrically, so tens of rounds do, also near p = 1. (Anderson extrapolation of their logarithms was
tried: it cycles at p = 1.01.) Every round measures the certified gap, which alone decides when to stop.
"""

import math
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.groupnorm import group_norm
from cuelearn.core.progress import progress
from cuelearn.mkl.crammer_singer import ascend
from cuelearn.mkl.problem import combined_kernel
from cuelearn.mkl.training import Result

__all__ = ["solve_reference"]

# most sweeps of the SVM before the kernel weights move again
SWEEPS = 400
# a weight this far below the largest one is out of reach of float64 arithmetic
SMALLEST_RATIO = 1e-280


def solve_reference(
    problem, *, tol=1e-4, max_rounds=2000, time_limit=None, callback=None, start=None, verbose=False
):
    r"""Solve the MKL problem to a certified relative gap.

    .. math:: \min_{\bar w} \frac\lambda2\|\bar w\|_{2,p}^2 + \alpha\|\bar w\|_{2,1}
              + \frac1n\sum_i\ell(\bar w; x_i, y_i)

    Parameters
    ----------
    problem : MKLProblem
    tol : float
        Stop when objective - bound is at most `tol` times the objective.
    max_rounds : int
        Most alternations of SVM and kernel weights.
    time_limit : float, optional
        Seconds.
    callback : callable(round, objective, gap), optional
    start : ndarray, shape (n_samples, n_classes), optional
        B of a dual point to start from.
    verbose : bool
        Show the relative gap in a progress line once the run takes more than two seconds.

    Returns
    -------
    Result
        `dual_coef` and `kernel_weights` are the best primal point met; `extra["dual_point"]` holds a, shape
        (n_samples, n_classes), whose value is ``objective - dual_gap``.

    Warns
    -----
    ConvergenceWarning
        If the tolerance was not reached.

    Notes
    -----
    Memory: one combined kernel besides the bank. A round costs two reads of the stack, O(n^2 F M) operations
    for the block norms, and the sweeps of the SVM, each O(n^2) times the classes that move.

    References
    ----------
    Kloft, Brefeld, Sonnenburg, Zien (2011) for the alternation at alpha = 0; Crammer and Singer (2002) for
    the SVM.
    """
    bank, labels = problem.bank, problem.labels
    n, n_kernels, n_classes = bank.n_samples, bank.n_kernels, problem.n_classes
    lam, p, alpha = problem.regularization, problem.p, problem.alpha
    began, rows = time.perf_counter(), []
    B = np.zeros((n, n_classes)) if start is None else np.array(start, dtype=np.float64)
    # equal weights of a size that a first guess of the norm suggests; the first rounds correct it
    log_d = np.full(n_kernels, -math.log(lam) - (2.0 / p - 1.0) * math.log(n_kernels))
    log_d[bank.diagonal.max(axis=1) <= 0.0] = -np.inf
    best = (np.inf, np.zeros((n, n_classes)), np.zeros(n_kernels))
    bound, dual_point, relative = 0.0, np.zeros((n, n_classes)), 1.0
    rounds = progress(range(1, max_rounds + 1), name="reference", unit="round", verbose=verbose)
    for number in rounds:
        d = np.exp(log_d)
        kernel = combined_kernel(bank, d, problem.factor)
        scores = np.ascontiguousarray((kernel @ B).T / n)
        # the SVM's own gap is at most its mean violation: a tenth of the gap that remains
        tolerance = 0.1 * max(relative, tol) * (best[0] if np.isfinite(best[0]) else 1.0)
        sweeps, _, _ = ascend(kernel, labels, B, scores, tolerance, SWEEPS)
        norms = np.sqrt(problem.block_norms_sq(B, np.float64)) / n
        primal_norms = d * norms
        value = problem.regularizer(primal_norms) + problem.mean_loss(scores.T)
        if value < best[0]:
            best = (value, B.copy(), d.copy())
        new_bound, scale, point = problem.dual_bound(B, norms**2 * n**2)
        if new_bound > bound:
            bound, dual_point = new_bound, scale * point
        gap = best[0] - bound
        relative = gap / max(best[0], np.finfo(float).tiny)
        rows.append((number, time.perf_counter() - began, sweeps, best[0], gap))
        rounds.set_postfix_str(f"relative gap {relative:.1e}", refresh=False)
        if callback is not None:
            callback(number, best[0], gap)
        if relative <= tol or (time_limit is not None and rows[-1][1] > time_limit):
            break
        length = group_norm(primal_norms, p)
        if length == 0.0:
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            curvature = lam * length ** (2.0 - p) * primal_norms ** (p - 1.0) + alpha
            target = np.where(primal_norms > 0.0, np.log(primal_norms) - np.log(curvature), -np.inf)
        log_d = np.where(target - target.max() < math.log(SMALLEST_RATIO), -np.inf, target)
    rounds.close()
    if relative > tol:
        warnings.warn(
            f"solve_reference stopped at a relative duality gap of {relative:.2g} > tol={tol:g} "
            f"after {len(rows)} rounds",
            ConvergenceWarning,
            stacklevel=2,
        )
    history = pd.DataFrame(rows, columns=["epoch", "seconds", "sweeps", "objective", "dual_gap"])
    a = np.maximum(0.0, -dual_point)
    a[np.arange(n), labels] = 0.0
    return Result(
        dual_coef=best[1] / n,
        kernel_weights=best[2],
        history=history,
        objective=best[0],
        dual_gap=gap,
        n_iter=len(rows),
        n_updates=int(history.sweeps.sum()),
        converged=relative <= tol,
        online_errors=np.zeros(0, dtype=np.bool_),
        block_norms_sq=problem.block_norms_sq(best[1] / n),
        extra={"dual_point": a},
    )
