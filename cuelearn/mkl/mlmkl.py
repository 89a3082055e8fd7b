r"""Multi-label MKL with one kernel combination for all classes: by stochastic approximation, and by the sum of the losses (NIPS 2010).

With :math:`H_k(p)` the SVM optimum of class k on :math:`K(p) = \sum_a p_a K_a`, ML-MKL-SA seeks the p that is best for the worst class,

.. math:: \min_{p \in \Delta_s} \max_{\gamma \in \Delta_m} \sum_k \gamma_k H_k(p), \qquad
          H_k(p) = \max_{0 \le \alpha \le C} \alpha^\top 1 - \tfrac12 (\alpha \circ y^k)^\top K(p) (\alpha \circ y^k) ,

and asks one class per iteration, drawn from :math:`\gamma`; ML-MKL-Sum minimises :math:`\sum_k H_k(p)` and solves the SVMs of all
classes in each. Both take C as the SVM's own (no division by n).
"""

import sys
import warnings
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from cuelearn.checks import as_generator, check_count, check_positive
from cuelearn.mkl.boxsvm import solve_box_svm
from cuelearn.mkl.multilabel import MultiLabelMKL
from cuelearn.mkl.problem import combined_kernel, quadratic_forms
from cuelearn.mkl.stream import History
from cuelearn.mkl.training import BAR_AFTER

__all__ = ["MLMKLSA", "MLMKLSum", "MLResult", "SaddleGap", "SharedProblem", "saddle_gap", "solve_mlmkl_sa", "solve_mlmkl_sum"]

# relative gap of every SVM
SVM_TOL = 1e-3


class SharedProblem:
    """Binary SVMs of several classes on one combination of kernels, with warm starts.

    Parameters
    ----------
    bank : KernelBank
    signs : ndarray of float64, shape (n_problems, n)
    C : float > 0
    svm_tol : float
        Relative gap of every SVM.

    Attributes
    ----------
    alphas : ndarray, shape (n_problems, n)
        The last solution of each class, from which the next starts.
    n_solved : int
        SVMs solved.
    """

    def __init__(self, bank, signs, C, svm_tol=SVM_TOL):
        self.bank, self.signs, self.C, self.svm_tol = bank, signs, check_positive("C", C), check_positive("svm_tol", svm_tol)
        self.alphas = np.zeros_like(signs)
        self.n_solved = 0
        self._weights, self._kernel = None, None

    @property
    def n_problems(self):
        """Classes."""
        return len(self.signs)

    def kernel(self, weights):
        """The combined kernel, the one matrix that is made: (n, n)."""
        if self._weights is None or not np.array_equal(weights, self._weights):
            self._kernel = combined_kernel(self.bank, weights, 1.0, out=self._kernel)  # in place: the old combination is gone
            self._weights = weights.copy()
        return self._kernel

    def solve(self, k, weights):
        """The SVM of class k, from its last solution; returns a `BoxSolution`."""
        found = solve_box_svm(self.kernel(weights), self.signs[k], self.C, tol=self.svm_tol, alpha=self.alphas[k])
        self.alphas[k] = found.alpha
        self.n_solved += 1
        return found

    def quadratics(self, problems):
        """``(alpha o y) K_a (alpha o y)`` of the last solutions of some classes, (n_kernels, n_classes), in one read of the kernels."""
        return quadratic_forms(self.bank, (self.alphas[problems] * self.signs[problems]).T)


def softmax(logs):
    """Weights from their logarithms."""
    shifted = np.exp(logs - logs.max())
    return shifted / shifted.sum()


class MLResult(NamedTuple):
    """What `solve_mlmkl_sa` and `solve_mlmkl_sum` return.

    Attributes
    ----------
    kernel_weights : ndarray, shape (n_kernels,)
        SA: the average over iterations; Sum: the best met.
    gamma : ndarray, shape (n_problems,)
        SA: the average weights of the classes; Sum: 1 for each.
    path : ndarray, shape (n_iter + 1, n_kernels)
        Averaged (SA) or present (Sum) kernel weights after 0, 1, ... iterations.
    gammas : ndarray, shape (n_iter, n_problems)
        SA: the weights that each iteration drew from, before smoothing.
    drawn : ndarray of int, shape (n_iter,)
        SA: the class of each iteration.
    history : DataFrame
        step, seconds, n_updates (SVMs solved), objective (of the SVM, or of all), change (relative, of the kernel weights).
    n_iter, n_solved : int
    converged : bool
    """

    kernel_weights: np.ndarray
    gamma: np.ndarray
    path: np.ndarray
    gammas: np.ndarray
    drawn: np.ndarray
    history: object
    n_iter: int
    n_solved: int
    converged: bool


def sa_gradients(problem, k, weights, smoothed):
    r"""Estimated gradients of :math:`L(p, \gamma')` from one class: equations 8 and 9, divided by the weight that it was drawn with.

    Returns
    -------
    of_p : ndarray, shape (n_kernels,)
        :math:`-\frac12 (\alpha \circ y^k)^\top K_a (\alpha \circ y^k)`.
    of_gamma : float
        Entry k of the estimate for gamma, :math:`H_k(p) / \gamma'_k`; the others are 0.
    value : float
        :math:`H_k(p)`.
    """
    found = problem.solve(k, weights)
    return -0.5 * problem.quadratics([k])[:, 0], found.value / smoothed[k], found.value


def step_sizes(eta, problem, n_iter, delta, weights):
    r"""Step sizes for p and gamma: given ones, or those that balance the terms of the analysis.

    "auto" is :math:`\eta_p = \sqrt{2 \ln s / T} / G` and :math:`\eta_\gamma = \sqrt{2 (1 - \delta) \ln m / (m T)} / H`, with G the
    largest difference of gradient entries for p and H the largest SVM optimum of all classes at equal weights (one SVM for each class,
    not counted as iterations).
    """
    if eta != "auto" or isinstance(eta, (list, tuple)):
        pair = tuple(eta) if isinstance(eta, (list, tuple)) else (eta, eta)
        if isinstance(eta, str) or len(pair) != 2:
            raise ValueError(f"eta must be 'auto', a positive number or a pair of them, got {eta!r}")
        return tuple(check_positive("eta", value) for value in pair)
    values = [problem.solve(k, weights).value for k in range(problem.n_problems)]
    found = problem.quadratics(np.arange(problem.n_problems))
    largest = 0.5 * (found.max(axis=0) - found.min(axis=0)).max()  # what all kernels have in common moves no weight
    m, s = problem.n_problems, weights.size
    of_p = np.sqrt(2.0 * np.log(max(2, s)) / n_iter) / max(largest, 1e-300)
    of_gamma = np.sqrt(2.0 * (1.0 - min(delta, 0.99)) * np.log(max(2, m)) / (m * n_iter)) / max(max(values), 1e-300)
    return of_p, of_gamma


def progress(total, name, verbose):
    """A bar that shows itself after two seconds."""
    return tqdm(total=total, desc=name, unit="iteration", delay=BAR_AFTER, leave=False, disable=not verbose, file=sys.stderr)


def relative_change(new, old):
    """Of the kernel weights: what the paper's stopping rule looks at."""
    return float(np.linalg.norm(new - old) / np.linalg.norm(new))


def solve_mlmkl_sa(problem, *, n_iter=500, delta=0.2, eta="auto", tol=0.01, min_iter=100, rng=None, callback=None, verbose=False):
    r"""ML-MKL-SA: stochastic mirror descent on the kernel weights, ascent on the weights of the classes.

    Parameters
    ----------
    problem : SharedProblem
    n_iter : int
        Most iterations T; each solves one SVM.
    delta : float in [0, 1]
        Share of uniform draws: a class is drawn from :math:`\gamma' = (1 - \delta) \gamma + \delta / m`.
    eta : "auto", float or pair of float
        Step sizes of p and gamma, see `step_sizes`.
    tol : float or None
        The paper's stopping rule: relative change of the averaged kernel weights; None runs all iterations.
    min_iter : int
        The rule is not asked before: the first iterations, from equal weights, hardly move.
    rng : numpy.random.Generator
    callback : callable(step, kernel_weights) or None
        A true result ends the run.
    verbose : bool

    Returns
    -------
    MLResult

    References
    ----------
    NIPS 2010, Algorithm 1. Equation 9 is divided by the smoothed weight :math:`\gamma'_k`: the class was drawn with it, and only then
    is the estimate without bias (at :math:`\gamma'`). Equation 7 prints both updates as descents; gamma ascends.
    """
    rng = np.random.default_rng() if rng is None else rng
    n_iter, min_iter = check_count("n_iter", n_iter), check_count("min_iter", min_iter)
    if not (isinstance(delta, (int, float)) and 0.0 <= delta <= 1.0):
        raise ValueError(f"delta must be a number in [0, 1], got {delta!r}")
    tol = None if tol is None else check_positive("tol", tol)
    s, m = problem.bank.n_kernels, problem.n_problems
    log_p, log_gamma = np.zeros(s), np.zeros(m)
    p, gamma = np.full(s, 1.0 / s), np.full(m, 1.0 / m)
    history = History()
    eta_p, eta_gamma = step_sizes(eta, problem, n_iter, delta, p)
    before = problem.n_solved
    mean_p, mean_gamma = np.zeros(s), np.zeros(m)
    path, gammas, drawn, converged = [p.copy()], [], [], tol is None
    with progress(n_iter, "ML-MKL-SA", verbose) as bar:
        for t in range(1, n_iter + 1):
            smoothed = (1.0 - delta) * gamma + delta / m
            k = int(rng.choice(m, p=smoothed / smoothed.sum()))
            of_p, of_gamma, value = sa_gradients(problem, k, p, smoothed)
            gammas.append(gamma)
            drawn.append(k)
            mean_p += (p - mean_p) / t
            mean_gamma += (gamma - mean_gamma) / t
            log_p -= eta_p * of_p
            log_gamma[k] += eta_gamma * of_gamma
            p, gamma = softmax(log_p), softmax(log_gamma)
            change = relative_change(mean_p, path[-1])
            path.append(mean_p.copy())
            history.pause()
            history.add(stage="SA", step=t, epoch=t, seconds=history.seconds, n_updates=problem.n_solved - before, objective=value)
            history.rows[-1]["change"] = change
            bar.update()
            stop = callback is not None and callback(t, mean_p)
            history.go()
            converged = converged or (t >= min_iter and change < tol)
            if stop or (tol is not None and converged):
                break
    return MLResult(mean_p, mean_gamma, np.array(path), np.array(gammas), np.array(drawn), _frame(history), t, problem.n_solved - before,
                    bool(converged or stop))  # fmt: skip


def _frame(history):
    table = history.frame()
    table["change"] = [row["change"] for row in history.rows]
    return table.dropna(axis=1, how="all")


def onto_simplex(point):
    """The nearest point of the simplex."""
    falling = np.sort(point)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, point.size + 1)
    return np.maximum(0.0, point - excess[np.flatnonzero(falling > excess)[-1]])


def solve_mlmkl_sum(problem, *, n_iter=200, eta="auto", tol=0.01, callback=None, verbose=False):
    r"""ML-MKL-Sum: projected subgradient descent on :math:`\sum_k H_k(p)`.

    Parameters
    ----------
    problem : SharedProblem
    n_iter : int
        Most iterations; each solves the SVMs of all classes.
    eta : "auto" or float
        Length of a step along the normalised subgradient at iteration 1; it falls like :math:`1/\sqrt t` ("auto": 1). A number is the
        constant factor of the plain subgradient.
    tol : float or None
        Stop at this relative change of the kernel weights.
    callback : callable(step, kernel_weights) or None
    verbose : bool

    Returns
    -------
    MLResult
        `kernel_weights` are the best met, by the objective.

    References
    ----------
    NIPS 2010, equations 1 and 2; the derivative is :math:`-\frac12 \sum_k (\alpha^k \circ y^k)^\top K_a (\alpha^k \circ y^k)`.
    """
    n_iter, s = check_count("n_iter", n_iter), problem.bank.n_kernels
    tol = None if tol is None else check_positive("tol", tol)
    eta = None if eta == "auto" else check_positive("eta", eta)
    everyone = np.arange(problem.n_problems)
    p, best, before = np.full(s, 1.0 / s), (np.inf, None), problem.n_solved
    history, path, converged = History(), [p.copy()], tol is None
    with progress(n_iter, "ML-MKL-Sum", verbose) as bar:
        for t in range(1, n_iter + 1):
            value = sum(problem.solve(k, p).value for k in everyone)
            if value < best[0]:
                best = value, p.copy()
            slope = -0.5 * problem.quadratics(everyone).sum(axis=1)
            sideways = slope - slope.mean()
            length = np.linalg.norm(sideways)
            step = eta * slope if eta is not None else sideways / max(length, 1e-300) / np.sqrt(t)
            new = onto_simplex(p - step)
            change = relative_change(new, p)
            p = new
            path.append(p.copy())
            history.pause()
            history.add(stage="Sum", step=t, epoch=t, seconds=history.seconds, n_updates=problem.n_solved - before, objective=value)
            history.rows[-1]["change"] = change
            bar.update()
            stop = callback is not None and callback(t, best[1])
            history.go()
            converged = converged or change < (tol or 0.0)
            if stop or (tol is not None and change < tol):
                break
    return MLResult(best[1], np.ones(problem.n_problems), np.array(path), np.empty((0, problem.n_problems)), np.empty(0, dtype=int),
                    _frame(history), t, problem.n_solved - before, converged)  # fmt: skip


class SaddleGap(NamedTuple):
    """Distance of a pair (p, gamma) from the saddle point, equation 11.

    Attributes
    ----------
    gap : float
        Certified upper end: `worst` - `least`.
    worst : float
        Upper end of the worst class's optimum at p.
    least : float
        Lower end of the least that the classes, weighted by gamma, can cost under any kernel weights.
    slack : float
        How much of `gap` is due to inexact solutions: the gap is between ``gap - slack`` and ``gap``.
    """

    gap: float
    worst: float
    least: float
    slack: float


def saddle_gap(problem, kernel_weights, gamma, *, tol=1e-4, max_iter=500):
    r"""Saddle-point gap :math:`\max_k H_k(p) - \min_{p'} \sum_k \gamma_k H_k(p')`, by cutting planes to a certified accuracy.

    Parameters
    ----------
    problem : SharedProblem
        Its `svm_tol` bounds the accuracy of each SVM; it should be a tenth of `tol` or less.
    kernel_weights : ndarray, shape (n_kernels,)
    gamma : ndarray, shape (n_problems,)
    tol : float
        Wanted slack, relative to `worst`.
    max_iter : int
        Most cutting planes.

    Returns
    -------
    SaddleGap

    Notes
    -----
    A cutting plane costs one SVM for every class with a positive gamma; the second term is a linear program in n_kernels + 1 variables
    (HiGHS): for any alphas, :math:`\sum_k \gamma_k (\alpha_k^\top 1 - \frac12 \sum_a p_a q_{ak})` is below the sum at every p.

    References
    ----------
    NIPS 2010, equation 11 and proposition 2.
    """
    gamma = np.asarray(gamma, dtype=np.float64)
    found = [problem.solve(k, kernel_weights) for k in range(problem.n_problems)]
    worst, inner = max(f.value + f.gap for f in found), max(f.gap for f in found)
    active = np.flatnonzero(gamma > 0.0)
    s, p = problem.bank.n_kernels, np.asarray(kernel_weights, dtype=np.float64)
    rows, totals, upper, lower = [], [], np.inf, -np.inf
    for _ in range(max_iter):
        solved = [problem.solve(k, p) for k in active]
        upper = min(upper, float(sum(gamma[k] * (f.value + f.gap) for k, f in zip(active, solved, strict=True))))
        rows.append(-0.5 * problem.quadratics(active) @ gamma[active])
        totals.append(float(sum(gamma[k] * problem.alphas[k].sum() for k in active)))
        # least theta with theta >= total + row . p
        program = linprog(
            np.r_[np.zeros(s), 1.0], A_ub=np.c_[np.array(rows), -np.ones(len(rows))], b_ub=-np.array(totals),
            A_eq=np.r_[np.ones(s), 0.0][None], b_eq=[1.0], bounds=[(0.0, None)] * s + [(None, None)], method="highs",
        )  # fmt: skip
        lower, p = float(program.fun), np.maximum(0.0, program.x[:s])
        p = p / p.sum()
        if upper - lower <= tol * abs(worst):
            break
    return SaddleGap(worst - lower, worst, lower, inner + max(0.0, upper - lower))


class _SharedMKL(MultiLabelMKL):
    """Base of the two: kernel weights first, then an SVM of every class on the combination."""

    def fit(self, X, y):
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or (n_kernels, n, n) for precomputed kernels, or a KernelBank
        y : array-like, shape (n, n_classes) or (n,)
            An indicator matrix, or class labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            With one sentence that names the argument, on any bad input.

        Warns
        -----
        ConvergenceWarning
            If the kernel weights still moved after `n_iter` iterations.
        UserWarning
            If a class has no positive or no negative sample.
        """
        self._check_callback()
        C = check_positive("C", self.C)
        signs = self._problem_signs(self._start(X, y))
        problem = SharedProblem(self.bank_, signs, C, self.svm_tol)
        result = self._solve(problem, self._watch(problem))
        self._take(problem, result.kernel_weights)
        self.gamma_ = self._of_classes(result.gamma, 0.0)
        self.path_, self.history_ = result.path, result.history
        self.n_iter_, self.n_solved_, self.converged_ = result.n_iter, result.n_solved, result.converged
        self.n_updates_ = result.n_solved
        if not result.converged:
            warnings.warn(
                f"{type(self).__name__}: the kernel weights still changed by {result.history['change'].iloc[-1]:.2g} after {result.n_iter} "
                f"iterations, tol={self.tol:g}; raise n_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _of_classes(self, values, skipped):
        """Values of the problems with those of skipped classes filled in."""
        return self._columns(values, skipped) if self.indicator_ else np.asarray(values)

    def _take(self, problem, weights):
        """The SVMs of all classes at these kernel weights."""
        found = [problem.solve(k, weights) for k in range(problem.n_problems)]
        self._keep_problems((problem.alphas * problem.signs).T, np.array(weights))
        self.class_objectives_ = self._of_classes([f.value + f.gap for f in found], np.nan)

    def _watch(self, problem):
        """The user's callback(estimator, step); the SVMs of all classes are solved for it, with the clock stopped."""
        if self.callback is None:
            return None

        def call(step, weights):
            kept, counted = problem.alphas.copy(), problem.n_solved
            self._take(problem, weights)
            problem.alphas[...], problem.n_solved = kept, counted
            return self.callback(self, step)

        return call


class MLMKLSA(_SharedMKL):
    r"""Multi-label MKL by stochastic approximation: one kernel combination for all classes, one SVM per iteration.

    .. math:: \min_{p \in \Delta_s} \max_{1 \le k \le m} H_k(p), \qquad
              H_k(p) = \min_f \frac12 \|f\|^2_{K(p)} + C \sum_i [1 - y^k_i f(x_i)]_+

    Every iteration draws one class, from weights that grow where the loss is large, solves its SVM on the present combination and moves
    the kernel weights by its gradient. At the end every class gets its SVM on the averaged combination.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        See `OM2`.
    C : float > 0, default 1.0
        Of the SVMs (without bias).
    n_iter : int, default 500
        Most iterations.
    delta : float in [0, 1], default 0.2
        Share of uniform draws of classes. 1 is sampling uniformly, 0 gives no class a chance that has lost its weight.
    eta : "auto", float or pair of float, default "auto"
        Step sizes of kernel weights and class weights; the paper takes one number for both (0.0001 to 0.01), which depends on the
        scale of the losses, n C.
    tol : float or None, default 0.01
        Stops when the averaged kernel weights change by less, relatively.
    min_iter : int, default 100
        Not before so many iterations.
    svm_tol : float, default 1e-3
        Relative gap of every SVM.
    normalize, memory
        See `OM2`.
    random_state : int, Generator or None
    callback : callable(estimator, step) or None
        Called after every iteration, with SVMs of all classes; the clock stops meanwhile. A true result ends the run.
    verbose : bool, default False

    Attributes
    ----------
    kernel_weights_ : ndarray, shape (n_kernels,)
        p, the average over iterations; sums to 1.
    gamma_ : ndarray, shape (n_classes,)
        Averaged weights of the classes: large where learning is hard. One entry where two class labels are one problem.
    dual_coef_, support_, classes_
        As of all estimators of this package.
    path_ : ndarray, shape (n_iter_ + 1, n_kernels)
        Averaged kernel weights after each iteration.
    history_ : DataFrame
        step, seconds, n_updates (SVMs solved), objective (of the class drawn), change.
    class_objectives_ : ndarray, shape (n_classes,)
        H of every class at the end; NaN for skipped ones.
    skipped_classes_ : ndarray
        Classes without positive or without negative samples.
    n_iter_, n_solved_, converged_

    Notes
    -----
    An iteration costs one read of the kernels (to combine them in place; no copies), one SVM from the last solution of its class, and one
    more read of the rows of its support samples. `saddle_gap` measures how far the pair (p, gamma) is from the saddle point.

    References
    ----------
    Bucak, Jin, Jain, NIPS 2010, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.mkl import MLMKLSA
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.integers(0, 2, size=(60, 3))
    >>> X = np.hstack([Y + 0.4 * rng.normal(size=(60, 3)), rng.normal(size=(60, 3))])
    >>> cues = [("useful", RBF(), slice(0, 3)), ("noise", RBF(), slice(3, 6))]
    >>> model = MLMKLSA(cues, C=1.0, random_state=0).fit(X, Y)
    >>> bool(model.kernel_weights_[0] > 0.7), model.decision_function(X).shape
    (True, (60, 3))
    """

    def __init__(
        self, kernels=None, *, C=1.0, n_iter=500, delta=0.2, eta="auto", tol=0.01, min_iter=100, svm_tol=1e-3, normalize=True, memory=2e9,
        random_state=None, callback=None, verbose=False,
    ):  # fmt: skip
        self.kernels = kernels
        self.C = C
        self.n_iter = n_iter
        self.delta = delta
        self.eta = eta
        self.tol = tol
        self.min_iter = min_iter
        self.svm_tol = svm_tol
        self.normalize = normalize
        self.memory = memory
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _solve(self, problem, watch):
        return solve_mlmkl_sa(
            problem, n_iter=self.n_iter, delta=self.delta, eta=self.eta, tol=self.tol, min_iter=self.min_iter,
            rng=as_generator(self.random_state), callback=watch, verbose=self.verbose,
        )  # fmt: skip


class MLMKLSum(_SharedMKL):
    r"""Multi-label MKL by the sum of the losses: one kernel combination, the SVMs of all classes in each iteration.

    .. math:: \min_{p \in \Delta_s} \sum_k H_k(p)

    Parameters
    ----------
    kernels, C, svm_tol, normalize, memory, callback, verbose
        See `MLMKLSA`.
    n_iter : int, default 200
        Most iterations.
    eta : "auto" or float, default "auto"
        "auto": a step of length :math:`1/\sqrt t` along the normalised subgradient; a number multiplies the plain subgradient.
    tol : float or None, default 0.01
        Stops at this relative change of the kernel weights.

    Attributes
    ----------
    kernel_weights_, dual_coef_, support_, classes_, path_, history_, class_objectives_, skipped_classes_, n_iter_, n_solved_, converged_
        As of `MLMKLSA`; the weights are those with the least objective met, `path_` those of every iteration.

    References
    ----------
    Bucak, Jin, Jain, NIPS 2010, section 2; Tang, Chen, Ye, IJCAI 2009.
    """

    def __init__(
        self, kernels=None, *, C=1.0, n_iter=200, eta="auto", tol=0.01, svm_tol=1e-3, normalize=True, memory=2e9, callback=None,
        verbose=False,
    ):  # fmt: skip
        self.kernels = kernels
        self.C = C
        self.n_iter = n_iter
        self.eta = eta
        self.tol = tol
        self.svm_tol = svm_tol
        self.normalize = normalize
        self.memory = memory
        self.callback = callback
        self.verbose = verbose

    def _solve(self, problem, watch):
        return solve_mlmkl_sum(problem, n_iter=self.n_iter, eta=self.eta, tol=self.tol, callback=watch, verbose=self.verbose)
