"""Rivals of MKTL: no transfer, priors alone, both with equal weights, and Multi-KT.

The first three are one-against-rest SVMs with hinge loss and bias. Multi-KT is a least-squares SVM near
priors, whose weights minimise its leave-one-out loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dgeqrf, dtrtri
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.estimator import POSITIVE, parameters
from cuelearn.core.linear_svm import SHORT, linear_svm, longest_step
from cuelearn.core.samples import loss_weights
from cuelearn.expect import warn_user
from cuelearn.kernels.rows import combined_kernel
from cuelearn.kernels.tiles import linear_algebra
from cuelearn.kernels.types import ClassWeight
from cuelearn.mkl.rivals.svm import balance_weights, one_versus_rest, problem_weights, targets_of
from cuelearn.mktl.base import TransferClassifier, documented


@parameters
class OneSVM(TransferClassifier):
    """Base: one SVM per class on the mean kernel, which includes the scores if `averages_scores`."""

    memory: float = 2e9
    n_jobs: int | None = None

    averages_scores = False

    def _train(self, labels, S, sample_weight):
        n_kernels = self.bank_.n_kernels
        n_classes = self.classes_.size
        share = 1.0 / (n_kernels + (S.shape[1] if self.averages_scores else 0))
        weights = np.full(n_kernels, share)
        transfer = np.zeros((n_classes, S.shape[1]))
        kernel = combined_kernel(self.bank_, weights, 1.0)
        if self.averages_scores:  # not by BLAS, whose sums may depend on its threads
            kernel += share * np.einsum("ik,jk->ij", S, S)
        targets = targets_of(labels, n_classes)
        losses = problem_weights(targets, sample_weight, self.class_weight, self.classes_, labels)
        coef, bias = one_versus_rest(kernel, labels, n_classes, self.C, self.n_jobs, losses)
        if self.averages_scores:
            transfer = share * np.einsum("ic,ik->ck", coef, S)
        self._set(coef, weights, transfer, bias)


@documented
class NoTransfer(OneSVM):
    r"""SVM on the kernels of the new samples alone; scores of priors are read but not used.

    .. math:: \min_{w,b} \frac12\|w\|^2 + C \sum_i \big[1 - y_i (w\cdot\phi(x_i) + b)\big]_+
        \quad\text{with}\quad \phi\cdot\phi' = \frac1{F_0} \sum_j k_j , \quad y_i = \pm1 ,

    one class against the rest: `cuelearn.mkl.AverageKernelSVM` with the arguments of the transfer learners.
    A method below it has negative transfer.

    Parameters
    ----------
    $kernels $priors $C $class_weight $scaling $missing $normalize $memory $n_jobs

    Attributes
    ----------
    $classes_ $dual_coef_ $support_ $kernel_weights_ $prior_names_ $score_scale_ $intercept_
    transfer_weights_ : ndarray, shape (n_classes, K)
        Zeros.

    Notes
    -----
    Cost: libsvm's n^2 to n^3 operations per class; one n x n matrix in float64.

    References
    ----------
    "No-Transfer" of thesis 6.5; libsvm through scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mktl import NoTransfer
    >>> y = np.arange(60) % 3
    >>> X = np.eye(3)[y] + 0.2 * np.random.default_rng(0).normal(size=(60, 3))
    >>> NoTransfer().fit(X, y).score(X, y)
    1.0
    """


@documented
@parameters
class PriorFeatures(TransferClassifier):
    r"""Linear SVM on the scores of the priors alone; the kernels are not used.

    .. math:: \min_{v,b} \frac12\|v\|^2 + C \sum_i \big[1 - y_i (v\cdot s_i + b)\big]_+ , \quad y_i = \pm1 ,

    with :math:`s_i` the scaled scores of all priors on sample i (at least one column), one class against the
    rest.

    Parameters
    ----------
    $kernels $priors $C $class_weight $scaling $missing $normalize $memory

    Attributes
    ----------
    $classes_ $dual_coef_ $support_ $prior_names_ $score_scale_ $intercept_
    kernel_weights_ : ndarray, shape (n_kernels,)
        Zeros.
    transfer_weights_ : ndarray, shape (n_classes, K)
        The hyperplanes v.

    Notes
    -----
    Cost: some twenty interior-point steps of O(n K^2) operations per class for any C; libsvm, used in the
    thesis, needs minutes at C = 1000 for the same hyperplane. If the optimal biases form an interval, the
    bias may differ from libsvm's.

    References
    ----------
    "Prior-Features" of thesis 6.5; after the classemes of Torresani, Szummer, Fitzgibbon, ECCV 2010.

    Examples
    --------
    Each new class has a prior that resembles it:

    >>> import numpy as np
    >>> from cuelearn.mktl import PriorFeatures
    >>> y = np.arange(60) % 3
    >>> X = np.eye(3)[y] + 0.2 * np.random.default_rng(0).normal(size=(60, 3))
    >>> model = PriorFeatures(priors=[("resemblance", "passthrough")]).fit(X, y)
    >>> model.transfer_weights_.argmax(axis=1), float(model.score(X, y))
    (array([0, 1, 2]), 1.0)
    """

    memory: float = 2e9

    _uses_kernels = False

    def _train(self, labels, S, sample_weight):
        if S.shape[1] == 0:
            raise ValueError(
                "PriorFeatures needs at least one column of scores: pass priors, or scores to fit"
            )
        machines = []
        targets = targets_of(labels, self.classes_.size)
        coef = np.zeros((labels.size, len(targets)))
        losses = problem_weights(targets, sample_weight, self.class_weight, self.classes_, labels)
        for k, target in enumerate(targets):
            signs = np.where(target, 1.0, -1.0)
            weights = np.ones(labels.size) if losses is None else losses[k]
            kept = np.flatnonzero(weights)
            machines.append(linear_svm(S[kept], signs[kept], self.C, weights=weights[kept], tol=1e-8))
            coef[kept, k] = signs[kept] * machines[k].dual_coef
        transfer = np.array([machine.coef for machine in machines])
        bias = np.array([machine.intercept for machine in machines])
        self._set(coef, np.zeros(self.bank_.n_kernels), transfer, bias)


@documented
class AverageTL(OneSVM):
    r"""SVM on the mean of all kernels: those of the new samples, and a linear one per column of scores.

    .. math:: \min_{w,b} \frac12\|w\|^2 + C \sum_i \big[1 - y_i (w\cdot\phi(x_i) + b)\big]_+
        \quad\text{with}\quad
        \phi\cdot\phi' = \frac1{F_0 + K} \Big( \sum_{j=1}^{F_0} k_j + \sum_{z=1}^K s_z s_z' \Big), \quad
        y_i = \pm1 ,

    one class against the rest; :math:`s_z` is the scaled score of prior z. More priors reduce the weight of
    the sample's own kernels. Without scores this is `NoTransfer`.

    Parameters
    ----------
    $kernels $priors $C $class_weight $scaling $missing $normalize $memory $n_jobs

    Attributes
    ----------
    $classes_ $dual_coef_ $support_ $prior_names_ $score_scale_ $intercept_
    kernel_weights_ : ndarray, shape (n_kernels,)
        All 1/(F0 + K).
    transfer_weights_ : ndarray, shape (n_classes, K)
        The hyperplanes in the scores.

    Notes
    -----
    Costs as much as `NoTransfer`.

    References
    ----------
    "Average-TL" of thesis 6.5; averaging as a rival of learned weights: Gehler, Nowozin, ICCV 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mktl import AverageTL
    >>> y = np.arange(60) % 3
    >>> X = np.eye(3)[y] + 0.2 * np.random.default_rng(0).normal(size=(60, 3))
    >>> model = AverageTL(priors=[("resemblance", "passthrough")]).fit(X, y)
    >>> model.kernel_weights_, float(model.score(X, y))
    (array([0.25]), 1.0)
    """

    averages_scores = True


#: At most 37 steps were seen on 5,500 random problems of all shapes and scales.
MAX_ITER = 100
#: Steps without progress until numerical accuracy is exhausted.
PATIENCE = 8
#: The search for the shortest near-optimal point ends at this share of the tolerance.
FINE = 1e-6
#: Larger slopes would overflow.
LARGEST = 1e100


class BallSolution(NamedTuple):
    r""":math:`\beta` with its `objective`, a feasible :math:`\alpha` with its value `dual`."""

    beta: np.ndarray
    dual_coef: np.ndarray
    objective: float
    dual: float
    n_iter: int

    @property
    def gap(self):
        return max(0.0, self.objective - self.dual)


def step_in_ball(curvature, slope, start, radius):
    """The s with start + s in the ball that minimises s . (curvature s) / 2 - slope . s."""
    multiplier = 0.0
    for _ in range(50):
        shifted = curvature + multiplier
        s = (slope - multiplier * start) / shifted
        square = (start + s) ** 2
        norm = np.sqrt(square.sum())
        if not norm > radius * (1.0 + 1e-14):
            break
        # 1 / norm is concave in the multiplier: Newton from below never overshoots
        multiplier += (norm / radius - 1.0) * norm**2 / (square @ (1.0 / shifted))
    return s


def hinge_in_ball(offsets, slopes, weights, radius=1.0, tol=1e-6):
    r"""Minimise a weighted mean of hinge losses in a ball.

    .. math:: \min_{\|\beta\|_2 \le R} f(\beta) = \frac1n \sum_i \omega_i\, [c_i - g_i \cdot \beta]_+ , \qquad
        \max_{0 \le \alpha_i \le \omega_i} \frac1n \Big( \sum_i \alpha_i c_i
        - R\, \Big\| \sum_i \alpha_i g_i \Big\|_2 \Big) ,

    with offsets c and weights :math:`\omega > 0` (n,), scaled to mean 1, and slopes (n, K) with rows
    :math:`g_i`. The answer minimises :math:`f(\beta) + \frac{tol}{2} \|\beta\|^2 / R^2`, so it tends to the
    shortest minimiser: irrelevant entries stay 0, equal columns share. `tol` bounds the gap, relative to
    objectives above 1; at the limit of double precision the gap may be larger, but is certified.

    Mehrotra's predictor-corrector as in `cuelearn.core.linear_svm`, with excess v and lack xi of each margin:
    :math:`g_i \cdot \beta = c_i + v_i - \xi_i`, :math:`a_i v_i = (\omega_i - a_i)\, \xi_i = \tau \to 0`.
    Directions in beta minimise their quadratic model in the ball (a secular equation; Moré, Sorensen, SIAM J.
    Scientific and Statistical Computing 4, 1983). Columns are first reduced to the row space of the slopes,
    of rank r: O(n r^2) operations per step, usually some 12 steps.
    """
    n, K = slopes.shape
    omega = weights / weights.mean()
    if not np.abs(slopes).max(initial=0.0) <= LARGEST:
        raise ValueError("scores are too large: they overflow in the leave-one-out predictions")

    def solution(beta, alpha, n_iter):
        value = float(np.mean(omega * np.maximum(0.0, offsets - slopes @ beta)))
        dual = float(alpha @ offsets - radius * np.linalg.norm(alpha @ slopes)) / n
        return BallSolution(beta, alpha, value, dual, n_iter)

    still = solution(np.zeros(K), omega * (offsets > 0.0), 0)
    left, values, right = np.linalg.svd(slopes, full_matrices=False)
    size = float(np.mean(np.abs(offsets)))
    if still.objective == 0.0 or radius * values.max(initial=0.0) <= np.finfo(np.float64).eps * size:
        return still  # beta = 0 is optimal, or slopes are negligible
    usable = values > max(n, K) * np.finfo(np.float64).eps * values[0]
    # units in which offsets and rows have size 1
    length = values[0] / np.sqrt(n)
    c = offsets / size
    G = left[:, usable] * (values[usable] / length)
    R = radius * length / size
    delta = n * tol / size / R**2

    def support(pulled):
        """Maximum of b . pulled - delta |b|^2 / 2 over the ball."""
        pull = float(np.linalg.norm(pulled))
        if pull <= delta * R:
            return pull**2 / (2.0 * delta)
        return R * pull - 0.5 * delta * R**2

    def mean_product(beta, a, v, xi):
        """Mean complementarity: a v, (omega - a) xi, and the ball's; 0 at the optimum."""
        pulled = a @ G
        offered = support(pulled) - float(pulled @ beta - 0.5 * delta * beta @ beta)
        return float(a @ v + (omega - a) @ xi + max(0.0, offered)) / (2 * n)

    def direction(to_v, to_xi):
        """Direction to the products a v + to_v, (omega - a) xi + to_xi, and its feasible share."""
        target = D * (lack - to_xi / room + to_v / a)
        step = axes.T @ step_in_ball(curvature, axes @ (target @ G + slope), axes @ beta, R)
        da = target - D * (G @ step)
        dv = (to_v - v * da) / a
        dxi = (to_xi + xi * da) / room
        reach = [longest_step(*pair) for pair in ((a, da), (room, -da), (v, dv), (xi, dxi))]
        return (step, da, dv, dxi), min(reach)

    beta = np.zeros(G.shape[1])
    a = 0.5 * omega
    v = 1.0 + np.maximum(0.0, -c)
    xi = 1.0 + np.maximum(0.0, c)
    best = (np.inf, beta)
    best_dual = (-np.inf, a)
    least = np.inf
    waited = 0
    with np.errstate(all="ignore"):
        for n_iter in range(MAX_ITER + 1):
            # primal and dual values with the extra curvature delta
            short = c - G @ beta
            pulled = a @ G
            value = float(omega @ np.maximum(0.0, short))
            best = min(best, (value + 0.5 * delta * float(beta @ beta), beta), key=lambda pair: pair[0])
            best_dual = max(best_dual, (float(a @ c) - support(pulled), a), key=lambda pair: pair[0])
            gap = best[0] - best_dual[0]
            waited = 0 if gap < 0.9 * least else waited + 1
            least = min(least, gap)
            if gap <= FINE * tol * max(n / size, value) or waited == PATIENCE:
                break
            room = omega - a
            lack = short - xi + v
            slope = pulled - delta * beta
            D = 1.0 / (xi / room + v / a)
            tau = mean_product(beta, a, v, xi)
            rows = np.multiply(np.sqrt(D)[:, None], G, order="F")
            if not np.isfinite(rows).all():
                break
            _, roots, axes = np.linalg.svd(np.triu(dgeqrf(rows, overwrite_a=True)[0][: beta.size]))
            curvature = roots**2 + delta
            move, t = direction(-a * v, -room * xi)
            ahead = mean_product(*(x + t * dx for x, dx in zip((beta, a, v, xi), move, strict=True)))
            centre = tau * (ahead / tau) ** 3
            bend = t * move[1]
            move, t = direction(centre - a * v - bend * move[2], centre - room * xi + bend * move[3])
            t = min(1.0, SHORT * t)
            if not (t > 1e-12 and np.isfinite(move[0]).all()):
                break
            beta, a, v, xi = (x + t * dx for x, dx in zip((beta, a, v, xi), move, strict=True))
    beta = (best[1] @ right[usable]) * (size / length)
    norm = float(np.linalg.norm(beta))
    beta *= radius / norm if norm > radius else 1.0
    return solution(beta, np.clip(best_dual[1], 0.0, omega), n_iter)


class LeastSquares(NamedTuple):
    """For k targets; `diagonal` of the system's inverse is the same for all."""

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
    """Of binary problems, the second of two classes or each class against the rest: as in `MultiKT`."""

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
    classes = [1]
    if n_classes != 2:
        classes = range(n_classes)
    n = labels.size
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
            ball = hinge_in_ball(turn * own, turn[:, None] * of_scores, zeta, max_radius, tol)
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
    $scaling $missing $normalize $memory

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

    class_weight: ClassWeight = "balanced"
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
        kept = np.arange(labels.size)
        if sample_weight is not None:
            kept = np.flatnonzero(sample_weight)
            options["sample_weight"] = sample_weight[kept]
        within = kernel
        if kept.size < labels.size:
            within = kernel[np.ix_(kept, kept)]
        options["weights"] = zeta[kept] if isinstance(zeta, np.ndarray) else zeta
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
