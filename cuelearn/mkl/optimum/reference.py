"""A certified reference optimum of the MKL problem, by dual ascent alone."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.run import Run
from cuelearn.mkl.optimum.dual import ROUNDS, finish_dual
from cuelearn.mkl.optimum.problem import Result
from cuelearn.warn import warn_user

__all__ = ["solve_reference"]


def solve_reference(problem, *, tol=1e-4, max_rounds=ROUNDS, time_limit=None, start=None, verbose=False):
    """Solve the MKL problem, see `MKLProblem`, to a certified relative gap.

    Parameters
    ----------
    problem : MKLProblem
    tol : float
        Stop at this relative duality gap.
    max_rounds, time_limit : int, and float or None
        Maximum alternations of SVM and group weights; seconds.
    start : ndarray, shape (n_samples, n_classes), optional
        A dual point, default 0.
    verbose : bool

    Returns
    -------
    Result
        The best primal point; `extra["dual_point"]` holds a (for a `LossProblem` B), shape (n_samples,
        n_classes), of dual value ``objective - dual_gap``.

    Warns
    -----
    ConvergenceWarning
        If the tolerance was not reached.

    References
    ----------
    Alternation at alpha = 0: Kloft, Brefeld, Sonnenburg, Zien (2011); SVM: Crammer and Singer (2002).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mkl import MKLProblem, solve_reference
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = KernelBank([("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])], X)
    >>> result = solve_reference(MKLProblem(bank, y, 3, C=10), tol=1e-3)
    >>> result.converged, bool(result.dual_gap <= 1e-3 * result.objective)
    (True, True)
    """
    n = problem.bank.n_samples
    run = Run(verbose=verbose)
    certifiable = not problem.bank.indefinite

    def record(number, value, gap):
        run.add(epoch=number, objective=value, dual_gap=gap if certifiable else np.nan)

    if start is None:
        start = np.zeros((n, problem.n_classes))
    options = {"tol": tol, "max_rounds": max_rounds, "time_limit": time_limit}
    with run.under_bar("reference", unit="look"):
        solution = finish_dual(problem, start, record=record, **options)
    if certifiable:
        gap = solution.gap
    else:
        gap = np.nan
    relative = gap / max(solution.objective, np.finfo(float).tiny)
    if relative > tol:
        warn_user(
            f"solve_reference stopped at a relative duality gap of {relative:.2g} > tol={tol:g} "
            f"after {solution.n_rounds} rounds",
            ConvergenceWarning,
        )
    return Result(
        dual_coef=solution.dual_coef,
        kernel_weights=solution.group_weights,
        history=run.history(),
        objective=solution.objective,
        dual_gap=gap,
        n_iter=solution.n_rounds,
        n_updates=solution.n_updates,
        converged=relative <= tol,
        block_norms_sq=solution.norms_sq,
        extra={"dual_point": problem.dual_variables(solution.dual_point)},
    )
