r"""Multi-label MKL with one kernel combination for all classes (NIPS 2010).

With :math:`H_k(p)` the SVM optimum of class k on :math:`K(p) = \sum_a p_a K_a`, ML-MKL-SA solves
:math:`\min_p \max_\gamma L(p, \gamma) = \sum_k \gamma_k H_k(p)`.
"""

from __future__ import annotations

import functools
import warnings
from numbers import Real
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from cuelearn.core.docs import documented
from cuelearn.core.estimator import COUNT, POSITIVE, Number, StrOptions, parameters
from cuelearn.core.run import Run
from cuelearn.core.samples import as_generator
from cuelearn.expect import expect, warn_user
from cuelearn.kernels.types import ArrayLike, Callback, RandomState, SampleWeight
from cuelearn.mkl.base import CombinedKernel
from cuelearn.mkl.rivals.perclass import CuttingPlanes, MultiLabelMKL
from cuelearn.mkl.rivals.svm import SharedProblem

TEXTS = {
    "C": ("float > 0", "Of the SVMs (without bias, no division by n)."),
    "callback": (
        "callable(estimator, step)",
        "Called after each iteration, all SVMs solved, the clock stopped; True ends the run.",
    ),
    "class_objectives_": (
        "ndarray, of the shape of `gamma_`",
        "H of each class at the end; NaN for skipped ones.",
    ),
    "history_": (
        "DataFrame",
        "step, seconds, n_updates (SVMs), objective (drawn class, or sum), change (stopping rule).",
    ),
    "n_iter_": ("int", "Iterations."),
    "n_updates_": ("int", "As `n_solved_`: SVMs of the iterations, not the final ones."),
    "converged_": ("bool", "Whether the stopping rule ended the run; only `saddle_gap` certifies."),
}
documented = functools.partial(documented, texts=TEXTS)
# iterations before the stopping rule of ML-MKL-SA
MIN_ITER = 100
# maximum rounds of cutting planes
MOST_PLANES = 500


class Entropic:
    r"""Weights on a simplex, :math:`w_i \propto \exp(-\eta \sum_\tau g_{\tau i})`.

    eta "auto" is AdaHedge, :math:`\ln n` over the cost of the steps so far (de Rooij, van Erven, Grünwald,
    Koolen, JMLR 2014).
    """

    def __init__(self, size, eta="auto"):
        self.adaptive = isinstance(eta, str) and eta == "auto"
        self.eta = np.inf if self.adaptive else expect("eta", eta, above=0)
        self.weights = np.full(size, 1.0 / size)
        self._total = np.zeros(size)
        self._cost = 0.0

    def descend(self, gradient):
        if self.adaptive:
            least = gradient[self.weights > 0.0].min()
            mixed = 0.0
            if self.eta < np.inf:
                above = np.maximum(0.0, gradient - least)
                mixed = -np.log(self.weights @ np.exp(-self.eta * above)) / self.eta
            self._cost += max(0.0, float(self.weights @ gradient) - least - mixed)
            if self._cost > 0.0:
                self.eta = np.log(max(2, self.weights.size)) / self._cost
        self._total += gradient
        if self.eta < np.inf:  # else all weights are equal
            shifted = np.exp(-self.eta * (self._total - self._total.min()))
            self.weights = shifted / shifted.sum()


class MLResult(NamedTuple):
    kernel_weights: np.ndarray  # (n_kernels,); SA: average over iterations, Sum: best
    gamma: np.ndarray  # (n_problems,); SA: average, Sum: equal weights
    path: np.ndarray  # (n_iter + 1, n_kernels): averaged (SA) or current weights
    iterates: np.ndarray  # current weights
    drawn: np.ndarray  # (n_iter,); SA: class of each iteration
    history: object
    n_iter: int
    n_solved: int
    converged: bool  # by the stopping rule; True if there is none
    stopped: bool  # by the callback


class SharedRun(Run):
    """`half`: the rule compares with half as many iterations."""

    def __init__(self, problem, name, n_iter, tol, callback, verbose, half=False, min_iter=1):
        super().__init__(callback, verbose=verbose)
        self.problem = problem
        self.name = name
        self.half = half
        self.min_iter = min(min_iter, n_iter)
        self.tol = tol
        if tol is not None:
            self.tol = expect("tol", tol, above=0)
        even = np.full(problem.bank.n_kernels, 1.0 / problem.bank.n_kernels)
        self.path = [even]
        self.iterates = [even]
        self.drawn = []
        self.changes = []
        self.converged = tol is None
        self.before = problem.n_solved

    @property
    def n_solved(self):
        return self.problem.n_solved - self.before

    def record(self, t, weights, iterate, value, best, gamma, gap=None):
        """Whether to stop after an iteration. A `gap` replaces the change in the stopping rule."""
        self.kernel_weights = best.copy()
        self.gamma = gamma.copy()
        before = self.path[t // 2 if self.half else -1]
        change = float(np.linalg.norm(weights - before) / np.linalg.norm(weights))
        self.changes.append(change if gap is None else gap)
        self.path.append(weights.copy())
        self.iterates.append(iterate.copy())
        row = {"stage": self.name, "epoch": t, "n_updates": self.n_solved, "objective": value}
        self.end(t, lambda: self, change=self.changes[-1], **row)
        if self.tol is not None:
            self.converged = weights.size == 1 or (t >= self.min_iter and self.changes[-1] < self.tol)
        return self.stopped or (self.tol is not None and self.converged)

    def result(self):
        return MLResult(
            kernel_weights=self.kernel_weights,
            gamma=self.gamma,
            path=np.array(self.path),
            iterates=np.array(self.iterates),
            drawn=np.array(self.drawn, dtype=int),
            history=self.history(),
            n_iter=len(self.changes),
            n_solved=self.n_solved,
            converged=bool(self.converged),
            stopped=self.stopped,
        )


def sa_gradients(problem, k, weights, smoothed, gamma=None, level=0.0):
    r"""Estimated gradients of L for p and :math:`\gamma_k` (equations 8, 9), and :math:`H_k(p)`."""
    solution = problem.solve(k, weights)
    share = 1.0
    if gamma is not None:
        share = gamma[k] / smoothed[k]
    of_p = -0.5 * share * problem.quadratics([k])[:, 0]
    return of_p, (solution.value - level) / smoothed[k], solution.value


def loss_level(last, smoothed):
    met = np.isfinite(last)
    if not met.any():
        return np.nan
    weight = smoothed[met].sum()
    return float(smoothed[met] @ last[met] / weight if weight > 0.0 else last[met].mean())


def solve_mlmkl_sa(
    problem,
    *,
    n_iter=2000,
    delta=0.2,
    eta="auto",
    corrected=True,
    tol=0.05,
    rng=None,
    callback=None,
    verbose=False,
):
    r"""ML-MKL-SA (algorithm 1) on a `SharedProblem`: mirror descent on p, ascent on gamma; an `MLResult`.

    Equation 9 is divided by the probability :math:`\gamma'_k = (1 - \delta) \gamma_k + \delta / m` of the
    draw. `corrected` (not in the paper) multiplies the estimate for p by :math:`\gamma_k / \gamma'_k`,
    subtracts the mean of the latest losses, weighted by :math:`\gamma'`, from equation 9, and stops by the
    change since half as many iterations: that since the last one is about 1/t anyway.
    """
    rng = np.random.default_rng(rng)
    expect("delta", delta, low=0, high=1)
    s = problem.bank.n_kernels
    m = problem.n_problems
    for_p = Entropic(s, eta)
    for_gamma = Entropic(m, eta)
    mean_p = np.zeros(s)
    mean_gamma = np.zeros(m)
    last = np.full(m, np.nan)
    run = SharedRun(problem, "ML-MKL-SA", n_iter, tol, callback, verbose, bool(corrected), MIN_ITER)
    for t in run.rounds(n_iter, run.name, "iteration"):
        p = for_p.weights
        gamma = for_gamma.weights
        smoothed = (1.0 - delta) * gamma + delta / m
        k = int(rng.choice(m, p=smoothed / smoothed.sum()))
        level = 0.0
        if corrected:
            level = loss_level(last, smoothed)
        of_p, of_gamma, value = sa_gradients(problem, k, p, smoothed, gamma if corrected else None, level)
        last[k] = value
        run.drawn.append(k)
        mean_p += (p - mean_p) / t
        mean_gamma += (gamma - mean_gamma) / t
        for_p.descend(of_p)
        if np.isfinite(level):
            ascent = np.zeros(m)
            ascent[k] = of_gamma
            for_gamma.descend(-ascent)
        if run.record(t, mean_p, for_p.weights, value, mean_p, mean_gamma):
            break
    return run.result()


def solve_mlmkl_sum(problem, *, n_iter=200, tol=0.01, cutting_planes=False, callback=None, verbose=False):
    """ML-MKL-Sum (equations 1 and 2) on a `SharedProblem`, with SA's steps; an `MLResult`. With
    `cutting_planes` the stopping rule uses their relative gap."""
    m = problem.n_problems
    for_p = Entropic(problem.bank.n_kernels)
    planes = CuttingPlanes(problem.bank.n_kernels)
    p = for_p.weights
    least = np.inf
    gap = None
    run = SharedRun(problem, "ML-MKL-Sum", n_iter, tol, callback, verbose)
    for t in run.rounds(n_iter, run.name, "iteration"):
        value = sum(problem.solve(k, p).value for k in range(m))
        if value < least:
            least = value
            best = p
        slopes = 0.5 * problem.quadratics(np.arange(m)).sum(axis=1)
        if cutting_planes:
            planes.add(problem.alphas.sum(), slopes)
            p = planes.solve()
            gap = max(0.0, 1.0 - planes.bound / least)
        else:
            for_p.descend(-slopes)
            p = for_p.weights
        if run.record(t, p, p, value, best, np.full(m, 1.0 / m), gap):
            break
    return run.result()


class SaddleGap(NamedTuple):
    """Distance from the saddle point, equation 11."""

    gap: float  # at least gap - slack
    worst: float  # upper bound of the worst class's optimum at p
    least: float  # lower bound of min over p' of sum_k gamma_k H_k(p')
    slack: float


def saddle_gap(
    problem: SharedProblem | SharedMKL,
    kernel_weights: ArrayLike,
    gamma: ArrayLike,
    *,
    tol: float = 1e-4,
    threshold: float | None = None,
    sample_weight: SampleWeight = None,
) -> SaddleGap:
    r"""Saddle-point gap :math:`\max_k H_k(p) - \min_{p'} \sum_k \gamma_k H_k(p')`, to a certified accuracy.

    ``saddle_gap(model, X, Y)`` takes a fitted `MLMKLSA` or `MLMKLSum` and its training data.

    Parameters
    ----------
    problem : SharedProblem
        Its counts and accuracy are not changed.
    kernel_weights, gamma : array-like, shape (n_kernels,) and (n_problems,)
        Non-negative, summing to 1.
    tol : float
        Required slack, relative to `worst`; a ConvergenceWarning if missed.
    threshold : float or None
        Relative to `worst`: stop once the gap is known to be above or not above it.
    sample_weight : array-like, optional
        For a model: as in its `fit`.

    Returns
    -------
    SaddleGap

    Notes
    -----
    NIPS 2010, equation 11 and proposition 2: for any alpha, :math:`\alpha_k^\top 1 - \frac12 \sum_a p_a
    q_{ak}` bounds :math:`H_k(p)` from below at every p, up to HiGHS's 1e-7 of `worst`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mkl import SharedProblem, saddle_gap
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = KernelBank([("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])], X)
    >>> problem = SharedProblem(bank, np.where(y == [[0], [1], [2]], 1.0, -1.0), C=10)
    >>> result = saddle_gap(problem, [0.5, 0.5], np.full(3, 1 / 3), tol=0.01)
    >>> bool(result.gap > 0), bool(result.slack <= 0.01 * result.worst)
    (True, True)
    """
    if isinstance(problem, SharedMKL):
        problem, kernel_weights, gamma = problem._point_on(kernel_weights, gamma, sample_weight)
    tol = expect("tol", tol, above=0)
    p = simplex_point("kernel_weights", kernel_weights, problem.bank.n_kernels)
    gamma = simplex_point("gamma", gamma, problem.n_problems)
    active = np.flatnonzero(gamma > 0.0)
    planes = []
    totals = []
    upper = np.inf
    lower = -np.inf
    decided = False
    with problem.uncounted(0.1 * tol, solutions=True):
        solutions = [problem.solve(k, p) for k in range(problem.n_problems)]
        worst = max(f.value + f.gap for f in solutions)
        inner = max(f.gap for f in solutions)
        for _ in range(MOST_PLANES):
            solved = [problem.solve(k, p) for k in active]
            cost = sum(gamma[k] * (f.value + f.gap) for k, f in zip(active, solved, strict=True))
            upper = min(upper, float(cost))
            # in units of `worst`: HiGHS's tolerance is absolute
            planes.append(-0.5 * problem.quadratics(active).T / worst)
            totals.append(problem.alphas[active].sum(axis=1) / worst)
            program = least_mixture(planes, totals, gamma[active])
            if program.status != 0:
                break
            lower = float(program.fun) * worst
            p = np.maximum(0.0, program.x[: p.size])
            p = p / p.sum()
            decided = threshold is not None and (
                worst - lower <= threshold * worst or worst - inner - upper > threshold * worst
            )
            if decided or upper - lower <= 0.5 * tol * worst:
                break
    slack = inner + max(0.0, upper - lower)
    if not (decided or slack <= tol * worst):
        message = f"saddle_gap has a slack of {slack / worst:.2g} of the worst class, above tol={tol:g}"
        warn_user(message, ConvergenceWarning)
    if problem.bank.indefinite:
        lower = np.nan
    return SaddleGap(worst - lower, worst, lower, slack)


def least_mixture(planes, totals, gamma):
    """Minimise sum_k gamma_k max(total_k + plane_k . p) over p on the simplex."""
    s = planes[0].shape[1]
    m = gamma.size
    thetas = sparse.kron(np.ones((len(planes), 1)), -sparse.eye_array(m))
    at_most = sparse.hstack([np.concatenate(planes), thetas]).tocsr()
    rows = {"A_ub": at_most, "b_ub": -np.concatenate(totals)}
    rows |= {"A_eq": np.r_[np.ones(s), np.zeros(m)][None], "b_eq": [1.0]}
    bounds = [(0.0, None)] * s + [(None, None)] * m
    return linprog(np.r_[np.zeros(s), gamma], **rows, bounds=bounds, method="highs")


def simplex_point(name, values, size):
    values = expect(name, values, shape=(size,), low=0)
    if abs(values.sum() - 1.0) > 1e-6:
        raise ValueError(f"{name} must be of sum 1, got {values.sum():g}")
    return values


@parameters
class SharedMKL(CombinedKernel, MultiLabelMKL):
    _one_column = True

    callback: Callback = None
    verbose: bool = False

    _parameter_constraints = {"n_iter": COUNT, "tol": [*POSITIVE, None]}

    def _train(self, signs, sample_weight):
        problem = self._problem(signs, sample_weight)

        def show(run):  # solves all SVMs, with the clock stopped
            with problem.uncounted():
                self._take(problem, run.result())

        options = {"n_iter": self.n_iter, "tol": self.tol, "verbose": self.verbose}
        result = self._solve(problem, callback=self._watch(show), **options)
        self._take(problem, result)
        messages = []
        if not (result.converged or result.stopped):
            change = result.history["change"].iloc[-1]
            messages.append(
                f"the stopping rule's value {change:.2g} is above tol={self.tol:g} after {result.n_iter} "
                "iterations; raise n_iter or tol"
            )
        if problem.n_missed:
            messages.append(
                f"{problem.n_missed} of {problem.n_solved} SVMs did not reach a relative gap of "
                f"{problem.svm_tol:g} in {problem.max_sweeps} sweeps; lower C"
            )
        for message in messages:
            warn_user(f"{type(self).__name__}: {message}", ConvergenceWarning)

    def _problem(self, signs, sample_weight):
        return SharedProblem(self.bank_, signs, self.C, weights=self._problem_weights(signs, sample_weight))

    def _point_on(self, X, Y, sample_weight):
        check_is_fitted(self)
        bare = clone(self)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "classes without positive or without negative samples")
            signs, sample_weight = bare._start(X, Y, sample_weight)
        if bare.indicator_ != self.indicator_ or not np.array_equal(bare.classes_, self.classes_):
            raise ValueError("Y must hold the labels that the model was fitted to")
        gamma = np.delete(self.gamma_, bare.skipped_classes_)
        return bare._problem(signs, sample_weight), self.kernel_weights_, gamma

    def _take(self, problem, result):
        solutions = [problem.solve(k, result.kernel_weights) for k in range(problem.n_problems)]
        self._keep_problems((problem.alphas * problem.signs).T, result.kernel_weights)
        self.class_objectives_ = self._fill([f.value + f.gap for f in solutions], np.nan)
        self.gamma_ = self._fill(result.gamma, 0.0)
        self.path_ = result.path
        self.history_ = result.history
        if result.drawn.size:
            classes = np.delete(np.arange(self.gamma_.size), self.skipped_classes_)
            self.drawn_ = classes[result.drawn].astype(np.min_scalar_type(self.gamma_.size))
        self.n_iter_ = result.n_iter
        self.n_solved_ = result.n_solved
        self.n_updates_ = result.n_solved
        self.converged_ = result.converged


@documented
@parameters
class MLMKLSA(SharedMKL):
    r"""Multi-label MKL by stochastic approximation: one kernel combination for all classes.

    .. math:: \min_{p \in \Delta_s} \max_{1 \le k \le m} H_k(p), \qquad
        H_k(p) = \min_f \frac12 \|f\|^2_{K(p)} + C \sum_i [1 - y^k_i f(x_i)]_+

    Each iteration draws a class, more often the larger its loss, solves its SVM and moves the kernel weights.
    At the end each class gets an SVM on the averaged combination.

    Parameters
    ----------
    $kernels $C $class_weight
    n_iter : int, default 2000
        Maximum number of iterations.
    delta : float in [0, 1], default 0.2
        Share of uniform draws; with 0, a class that lost its weight is never drawn.
    eta : float > 0 or "auto", default "auto"
        Step size of kernel and class weights: AdaHedge, or constant as in the paper (0.001 or 0.0001).
    corrected : bool, default True
        Remove bias and most noise of the gradients, and use a stopping rule that does not hold automatically.
        False is the paper's way, with ``tol=0.01``.
    tol : float or None, default 0.05
        Stop, after at least 100 iterations, at this relative change of the averaged kernel weights from half
        as many iterations (paper: from the last one); None runs all.
    $missing $normalize $memory
    random_state : int, Generator or None
    $callback $verbose

    Attributes
    ----------
    kernel_weights_ : ndarray, shape (n_kernels,)
        p, the average over iterations; sums to 1.
    gamma_ : ndarray, shape (n_classes,), or (1,) for two class labels, which are one problem
        Averaged class weights, large for difficult classes.
    drawn_ : ndarray of int, shape (n_iter,)
        Class number of each iteration.
    path_ : ndarray, shape (n_iter + 1, n_kernels)
        Averaged kernel weights after each iteration.
    $shared_

    See Also
    --------
    MLMKLSum : The sum of the classes' objectives instead of the worst.
    saddle_gap : Distance of a model from the saddle point.

    Notes
    -----
    Cost per iteration: a read of the kernels, a warm-started SVM, and a read of its support samples' rows.

    References
    ----------
    Bucak, Jin, Jain, NIPS 2010, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mkl import MLMKLSA
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.integers(0, 2, size=(60, 3))
    >>> X = np.hstack([Y + 0.4 * rng.normal(size=(60, 3)), rng.normal(size=(60, 3))])
    >>> cues = [("useful", "rbf", slice(3)), ("noise", "rbf", slice(3, 6))]
    >>> model = MLMKLSA(cues, random_state=0).fit(X, Y)
    >>> bool(model.kernel_weights_[0] > 0.7), model.decision_function(X).shape
    (True, (60, 3))
    """

    _convergence = "change"  # what a display draws

    n_iter: int = 2000
    delta: float = 0.2
    eta: float | Literal["auto"] = "auto"
    corrected: bool = True
    tol: float | None = 0.05
    random_state: RandomState = None

    _parameter_constraints = {
        "delta": [Number(Real, 0, 1, closed="both")],
        "eta": [*POSITIVE, StrOptions({"auto"})],
        "corrected": ["boolean"],
    }

    def _solve(self, problem, **options):
        options |= {"delta": self.delta, "eta": self.eta, "corrected": self.corrected}
        options["rng"] = as_generator(self.random_state)
        return solve_mlmkl_sa(problem, **options)


@documented
@parameters
class MLMKLSum(SharedMKL):
    r"""Multi-label MKL by the sum of the losses: :math:`\min_{p \in \Delta_s} \sum_k H_k(p)`.

    Parameters
    ----------
    $kernels $C $class_weight
    n_iter : int, default 200
        Maximum number of iterations, each with the SVMs of all classes.
    tol : float or None, default 0.01
        Stop at this relative change of the kernel weights; with cutting planes, at this relative gap.
    cutting_planes : bool, default False
        Instead of a subgradient step, take the optimal weights for all SVM coefficients so far, as SILP does.
    $missing $normalize $memory $callback $verbose

    Attributes
    ----------
    kernel_weights_ : ndarray, shape (n_kernels,)
        The weights with the smallest objective; they sum to 1.
    gamma_ : ndarray, shape (n_classes,)
        Equal weights; 0 for skipped classes.
    path_ : ndarray, shape (n_iter + 1, n_kernels)
        Weights after each iteration.
    $shared_

    References
    ----------
    Bucak, Jin, Jain, NIPS 2010, section 2; Tang, Chen, Ye, IJCAI 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mkl import MLMKLSum
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.integers(0, 2, size=(60, 3))
    >>> X = np.hstack([Y + 0.4 * rng.normal(size=(60, 3)), rng.normal(size=(60, 3))])
    >>> model = MLMKLSum([("useful", "rbf", slice(0, 3)), ("noise", "rbf", slice(3, 6))]).fit(X, Y)
    >>> bool(model.kernel_weights_[0] > 0.7), model.predict(X).shape
    (True, (60, 3))
    """

    n_iter: int = 200
    tol: float | None = 0.01
    cutting_planes: bool = False

    _parameter_constraints = {"cutting_planes": ["boolean"]}

    def _solve(self, problem, **options):
        return solve_mlmkl_sum(problem, cutting_planes=self.cutting_planes, **options)
