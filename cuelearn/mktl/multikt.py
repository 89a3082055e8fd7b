"""Multi-KT: a least-squares SVM near priors, whose weights minimise its leave-one-out loss."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dtrtri
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.estimator import POSITIVE, parameters
from cuelearn.core.weights import loss_weights
from cuelearn.kernels.rows import combined_kernel
from cuelearn.kernels.tiles import linear_algebra
from cuelearn.mkl.rivals.svm import balance_weights
from cuelearn.mktl.ball import hinge_in_ball
from cuelearn.mktl.base import TransferClassifier, documented
from cuelearn.warn import warn_user

__all__ = ["MultiKT", "MultiKTSolution", "solve_multikt"]


class LeastSquares(NamedTuple):
    """Least-squares SVMs for k targets; `diagonal` of the system's inverse is the same for all."""

    dual_coef: np.ndarray  # (n, k)
    intercept: np.ndarray  # (k,)
    diagonal: np.ndarray  # (n,)


def least_squares_svm(kernel, targets, ridge):
    r"""Weighted least-squares SVMs with bias on one kernel matrix, ready for leave-one-out.

    .. math:: \begin{pmatrix} K + \mathrm{diag}(r) & 1 \\ 1^\top & 0 \end{pmatrix}
        \begin{pmatrix} a \\ b \end{pmatrix} = \begin{pmatrix} t \\ 0 \end{pmatrix} .

    With P the upper left block of the inverse, :math:`a = P t`, and without sample i the SVM predicts
    :math:`t_i - a_i / P_{ii}` for it. Targets t are (n, k), ridges r > 0 (n,); a kernel that is not positive
    semidefinite on vectors summing to 0 is a ValueError.

    As :math:`1^\top a = 0`, a Householder reflection reduces the system to n - 1 dimensions orthogonal to 1,
    where :math:`P = W^\top W` with W from a Cholesky factor: no cancellation for any r. 2/3 n^3 + O(n^2 k)
    operations. Suykens, Vandewalle, Neural Processing Letters 9 (1999); Cawley, IJCNN 2006.
    """
    n = len(kernel)
    system = kernel + np.diag(ridge)
    # the reflection I - 2 v v' maps 1 to the first axis
    v = np.full(n, 1.0 / np.sqrt(n))
    v[0] += 1.0
    v /= np.linalg.norm(v)
    image = system @ v
    image = 2.0 * (image - (v @ image) * v)
    inner = (system - np.outer(v, image) - np.outer(image, v))[1:, 1:]
    try:
        factor = cholesky(inner, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        raise ValueError(
            "kernels must be positive semidefinite: their mean is too far from it for this C, lower C"
        ) from None
    inverse, _ = dtrtri(factor, lower=1, overwrite_c=1)
    W = np.outer(-2.0 * (inverse @ v[1:]), v)
    W[:, 1:] += inverse
    coef = W.T @ (W @ targets)
    return LeastSquares(coef, (targets - system @ coef).mean(axis=0), np.einsum("ij,ij->j", W, W))


class MultiKTSolution(NamedTuple):
    """Binary problems: the second of two classes, or each class against the rest.

    `objective` is the weighted mean hinge loss of `leave_one_out`, `gap` certified.
    """

    dual_coef: np.ndarray  # (n, n_problems)
    intercept: np.ndarray  # (n_problems,), as below
    beta: np.ndarray  # (n_problems, K)
    leave_one_out: np.ndarray  # (n, n_problems)
    objective: np.ndarray
    gap: np.ndarray
    n_iter: np.ndarray
    converged: bool


def solve_multikt(
    kernel,
    labels,
    n_classes,
    scores,
    *,
    C=1.0,
    weights="balanced",
    sample_weight=None,
    max_radius=1.0,
    tol=1e-6,
):
    """Multi-KT on a kernel matrix (n, n) and scores (n, K); arguments as in `MultiKT`, not checked.

    `weights` are "balanced" per binary problem, or (n,); `sample_weight` > 0 multiplies them.
    """
    labels = np.asarray(labels)
    per_problem = isinstance(weights, str)
    n = labels.size
    classes = [1] if n_classes == 2 else range(n_classes)
    coefs = []
    biases = []
    balls = []
    left_out = []
    machine = None
    with linear_algebra().limit(limits=1):  # the same bits for any number of threads
        signs = np.where(labels[:, None] == np.array(classes), 1.0, -1.0)
        for k in range(len(classes)):
            if machine is None or per_problem:
                zeta = np.ones(n) if weights is None else weights
                if per_problem:
                    zeta = balance_weights(signs[:, k], sample_weight)
                zeta = zeta * (1.0 if sample_weight is None else sample_weight)
                machine = least_squares_svm(kernel, np.concatenate([signs, scores], axis=1), 1.0 / (C * zeta))
            own = machine.dual_coef[:, k]
            of_scores = machine.dual_coef[:, len(classes) :]
            # 1 - y_i yhat_i(beta) = c_i - g_i . beta
            turn = signs[:, k] / machine.diagonal
            try:
                ball = hinge_in_ball(turn * own, turn[:, None] * of_scores, zeta, max_radius, tol)
            except OverflowError:
                raise ValueError(
                    "scores are too large: they overflow in the leave-one-out predictions"
                ) from None
            balls.append(ball)
            coefs.append(own - of_scores @ ball.beta)
            biases.append(machine.intercept[k] - machine.intercept[len(classes) :] @ ball.beta)
            left_out.append(signs[:, k] - coefs[k] / machine.diagonal)
    objective = np.array([ball.objective for ball in balls])
    gap = np.array([ball.gap for ball in balls])
    missed = gap > tol * np.maximum(1.0, objective)
    if missed.any():
        warn_user(
            f"Multi-KT did not reach tol={tol:g} for {missed.sum()} of {len(balls)} binary problems: the "
            f"largest gap of the leave-one-out loss is {gap.max():.2g}; scores of very different sizes may "
            "be the reason, see scaling, or raise tol",
            ConvergenceWarning,
        )
    return MultiKTSolution(
        np.stack(coefs, axis=1),
        np.array(biases),
        np.stack([ball.beta for ball in balls]),
        np.stack(left_out, axis=1),
        objective,
        gap,
        np.array([ball.n_iter for ball in balls]),
        not missed.any(),
    )


@documented
@parameters
class MultiKT(TransferClassifier):
    r"""Multi-KT: an LS-SVM near the combination of priors with the best leave-one-out loss; one class against
    the rest.

    For fixed weights :math:`\beta` of K priors with hyperplanes :math:`u_z`, labels :math:`y_i = \pm1`,

    .. math:: \min_{w, b} \frac12 \Big\| w - \sum_z \beta_z u_z \Big\|^2
        + \frac C2 \sum_i \zeta_i \big(y_i - w\cdot\phi(x_i) - b\big)^2

    is a linear system. Its solution :math:`w = \sum_z \beta_z u_z + \sum_i a_i \phi(x_i)` and its
    leave-one-out predictions :math:`\hat y_i(\beta) = y_i - a_i / P_{ii}` (P: the inverse of the system) are
    affine in beta. The weights are

    .. math:: \beta = \arg\min_{\|\beta\|_2 \le 1} \frac1n \sum_i \zeta_i\,
        \big[1 - y_i\, \hat y_i(\beta)\big]_+ .

    Only the scores :math:`u_z \cdot \phi(x)` are needed, so any prior can be used.

    Parameters
    ----------
    $kernels $priors
    C : float > 0, default 1.0
    class_weight : "balanced", None, or dict of class to weight, default "balanced"
        Weights zeta, times `sample_weight`. "balanced", as published: for each binary problem n/(2 n+) for
        its class and n/(2 n-) for the others. A dict: weights of the samples' own classes, default 1.
    max_radius : float > 0, default 1.0
        Radius of the ball of beta.
    tol : float > 0, default 1e-6
        Duality gap of the problem in beta (times the objective, if above 1); a ConvergenceWarning if missed.
        Among points within it the shorter is preferred.
    $scaling $normalize $memory

    Attributes
    ----------
    $classes_ $dual_coef_ $support_ $kernel_weights_ $prior_names_ $score_scale_ $intercept_
    transfer_weights_ : ndarray, shape (n_classes, K)
        `beta_`; for two classes the rows are -beta/2 and beta/2.
    beta_ : ndarray, shape (n_problems, K)
        Weights of the scaled scores; two classes are one problem.
    leave_one_out_ : ndarray, shape (n, n_problems)
        Leave-one-out decision values of the training samples, for fixed beta and zeta. A sample is left out
        with its whole weight: beta differs from that of repeated samples.
    loo_objective_, loo_gap_ : ndarray, shape (n_problems,)
        Weighted mean hinge loss of `leave_one_out_`, and its certified gap in the ball.
    n_iter_ : int
        Most interior-point steps of a binary problem.
    converged_ : bool

    Notes
    -----
    Differences from the paper: beta is solved for exactly and certified (of many minimisers the shortest, so
    a useless prior has weight 0), not by projected subgradient steps; scores can be scaled (not with
    ``scaling=None``) and several kernels averaged; more than two classes are one against the rest, as in the
    thesis.

    Cost: per binary problem (once, unless "balanced") 2/3 n^3 operations, and some 10 steps of n K^2; four n
    x n matrices in float64.

    References
    ----------
    Tommasi, Orabona, Caputo, CVPR 2010; thesis 6.4, 6.5; Cawley, IJCNN 2006, for leave-one-out.

    Examples
    --------
    A prior that knows the answer is all that is needed, one that guesses gets little weight:

    >>> import numpy as np
    >>> from cuelearn.mktl import MultiKT
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 3)), np.tile(["new", "old"], 30)
    >>> scores = np.stack([np.where(y == "old", 1.0, -1.0), rng.normal(size=60)], axis=1)
    >>> model = MultiKT(C=1.0).fit(X, y, scores=scores)
    >>> print(model.beta_.round(2), model.loo_gap_.max() <= 1e-6)
    [[1. 0.]] True
    """

    class_weight: object = "balanced"
    max_radius: float = 1.0
    tol: float = 1e-6
    memory: float = 2e9

    _parameter_constraints = {"max_radius": POSITIVE, "tol": POSITIVE}

    def _train(self, labels, S, sample_weight):
        bank = self.bank_
        zeta = self.class_weight
        if isinstance(zeta, dict):
            zeta = loss_weights(None, zeta, self.classes_, labels)
        weights = np.full(bank.n_kernels, 1.0 / bank.n_kernels)
        kernel = combined_kernel(bank, weights, 1.0)
        options = {"C": self.C, "max_radius": self.max_radius, "tol": self.tol}
        kept = np.arange(labels.size) if sample_weight is None else np.flatnonzero(sample_weight)
        within = kernel if kept.size == labels.size else kernel[np.ix_(kept, kept)]
        options["weights"] = zeta[kept] if isinstance(zeta, np.ndarray) else zeta
        options["sample_weight"] = None if sample_weight is None else sample_weight[kept]
        solution = solve_multikt(within, labels[kept], self.classes_.size, S[kept], **options)
        beta = solution.beta
        bias = solution.intercept
        coef = np.zeros((labels.size, beta.shape[0]))
        coef[kept] = solution.dual_coef
        left_out = solution.leave_one_out
        if kept.size < labels.size:
            left_out = kernel @ coef + S @ beta.T + bias
            left_out[kept] = solution.leave_one_out
        self.beta_ = beta
        self.leave_one_out_ = left_out
        self.loo_objective_ = solution.objective
        self.loo_gap_ = solution.gap
        self.n_iter_ = int(solution.n_iter.max())
        self.converged_ = bool(solution.converged)
        if bank.indefinite:
            self.loo_gap_ = np.full_like(solution.gap, np.nan)
            self.converged_ = False
        self._set(coef, weights, beta, bias)
