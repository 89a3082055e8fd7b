"""A certified reference optimum of the MKL problem by dual ascent alone, and any model in this problem."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from cuelearn.core.formulas import group_norm, kernel_factor, mean_loss, resolve_p
from cuelearn.core.run import Run
from cuelearn.core.samples import InputLike, check_sample_weight, labels_of, labels_within, loss_weights
from cuelearn.expect import expect, warn_user
from cuelearn.kernels.rows import quadratic_forms
from cuelearn.kernels.types import ArrayLike, ClassWeight, SampleWeight
from cuelearn.mkl.base import KernelModel
from cuelearn.mkl.optimum.dual import ROUNDS, finish_dual
from cuelearn.mkl.optimum.problem import MKLProblem, Result


def solve_reference(
    problem: MKLProblem,
    *,
    tol: float = 1e-4,
    max_rounds: int = ROUNDS,
    time_limit: float | None = None,
    start: np.ndarray | None = None,
    verbose: bool = False,
) -> Result:
    """Solve the MKL problem, see `MKLProblem`, to a certified relative gap.

    Parameters
    ----------
    problem : MKLProblem
    tol : float
        Stop at this relative duality gap.
    max_rounds, time_limit : int, and float or None
        Alternations of SVM and group weights; seconds.
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
    >>> import numpy as np
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mkl import MKLProblem, solve_reference
    >>> problem = MKLProblem(KernelBank.from_stack(np.eye(4)), [0, 0, 1, 1], 2, C=10)
    >>> result = solve_reference(problem, tol=1e-3)
    >>> result.converged, bool(result.dual_gap <= 1e-3 * result.objective)
    (True, True)
    """
    run = Run(verbose=verbose)
    certifiable = not problem.bank.indefinite

    def record(number, value, gap):
        run.add(epoch=number, objective=value, dual_gap=gap if certifiable else np.nan)

    if start is None:
        start = np.zeros((problem.bank.n_samples, problem.n_classes))
    options = {"tol": tol, "max_rounds": max_rounds, "time_limit": time_limit}
    with run.under_bar("reference", unit="look"):
        solution = finish_dual(problem, start, record=record, **options)
    gap = np.nan
    if certifiable:
        gap = solution.gap
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


def block_norms(model):
    if hasattr(model, "block_norms_"):  # for two classes, norms of their difference
        return model.block_norms_ * np.sqrt(kernel_factor("hinge", 2) if model.classes_.size == 2 else 1.0)
    bank = getattr(model, "bank_", None)
    if bank is None:
        raise ValueError("model must not be loaded from a file: precomputed kernels are not saved")
    coef = model.dual_coef_
    support = model.bank_support_
    if coef.ndim == 3:  # coefficients per kernel
        kernels = range(bank.n_kernels)
        forms = np.concatenate([quadratic_forms(bank.select([j]), coef[:, j], support) for j in kernels])
    else:
        forms = quadratic_forms(bank, coef, support)
    return np.sqrt((np.atleast_2d(model.kernel_weights_).T ** 2 * forms).sum(axis=1))


def common_objective(
    model: KernelModel,
    X: InputLike,
    y: ArrayLike,
    *,
    C: float = 1.0,
    p: float | Literal["auto"] = "auto",
    alpha: float = 0.0,
    sample_weight: SampleWeight = None,
    class_weight: ClassWeight = None,
    **given: Any,
) -> float:
    r"""Objective of a fitted model's hyperplanes in one problem, whatever problem the model solved.

    .. math:: \frac\lambda2 \|\bar w\|_{2,p}^2 + \alpha \|\bar w\|_{2,1} + \frac1n \sum_i
        \Big[1 - s_{y_i}(x_i) + \max_{y' \ne y_i} s_{y'}(x_i)\Big]_+, \qquad \lambda = \frac{1}{C n},

    with a block :math:`w^j = [w^j_1, \dots, w^j_M]` per kernel. Biases are not penalised. One-against-all
    methods aim at margins of 2, this loss at 1.

    Parameters
    ----------
    model : fitted estimator of `cuelearn.mkl`, or `MKTL`
    X, y : as in `fit`
        Samples of the losses: the training samples for the problem above. y holds class labels.
    C : float > 0, default 1.0
    p : float in [1, 2] or "auto", default "auto"
    alpha : float >= 0, default 0.0
    sample_weight, class_weight
        As in the estimators; n is the sum of the sample weights.
    **given
        Further arguments of the model's `decision_function`, as `scores`.

    Returns
    -------
    float
        For `OM2`, `OBSCURE`, `UFOMKL`, `PegasosMKL` and `MKTL` (more than two classes) their `objective_`, at
        their own C, p, alpha and weights; for `MCMKL` at p = 1.

    Raises
    ------
    ValueError
        If y does not have one training class per row of X, or a loaded model has no training kernels.

    Notes
    -----
    Cost: one prediction of X and one read of the training kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import OBSCURE, SimpleMKL, common_objective
    >>> X, y = load_iris(return_X_y=True)
    >>> best, other = (model.fit(X, y) for model in (OBSCURE(C=10, random_state=0), SimpleMKL(C=10)))
    >>> bool(abs(common_objective(best, X, y, C=10) - best.objective_) < 1e-6)
    True
    >>> common_objective(other, X, y, C=10) > best.objective_
    True
    """
    check_is_fitted(model)
    C = expect("C", C, above=0)
    alpha = expect("alpha", alpha, low=0)
    norms = block_norms(model)
    p = 1.0 if not isinstance(p, str) and p == 1 else resolve_p(p, norms.size)[0]
    scores = model.decision_function(X, **given)
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    y = labels_of(model, y, len(scores))
    labels = labels_within(y, model.classes_)
    sample_weight = check_sample_weight(sample_weight, len(y))
    weights = loss_weights(sample_weight, class_weight, model.classes_, labels)
    total = len(y) if sample_weight is None else sample_weight.sum()
    losses = mean_loss(scores, labels, 1.0 if weights is None else weights * (len(y) / total))
    return 0.5 * float(group_norm(norms, p)) ** 2 / (C * total) + alpha * float(norms.sum()) + losses
