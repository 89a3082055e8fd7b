r"""Multi-label MKL with one kernel combination for all classes: by stochastic approximation, and by the sum of the losses (NIPS 2010).

With :math:`H_k(p)` the SVM optimum of class k on :math:`K(p) = \sum_a p_a K_a`, ML-MKL-SA seeks the p that is best for the worst class,

.. math:: \min_{p \in \Delta_s} \max_{\gamma \in \Delta_m} \sum_k \gamma_k H_k(p), \qquad
          H_k(p) = \max_{0 \le \alpha \le C} \alpha^\top 1 - \tfrac12 (\alpha \circ y^k)^\top K(p) (\alpha \circ y^k) ,

and asks one class per iteration, drawn from :math:`\gamma`; ML-MKL-Sum minimises :math:`\sum_k H_k(p)` and solves the SVMs of all
classes in each. Both take C as the SVM's own (no division by n).
"""

import contextlib
import numbers
import sys
import warnings
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from cuelearn.core.checks import as_generator, check_count, check_positive, unchanged_on_error
from cuelearn.core.progress import BAR_AFTER
from cuelearn.kernels import KernelBank
from cuelearn.mkl.boxsvm import solve_box_svm
from cuelearn.mkl.multilabel import MultiLabelMKL
from cuelearn.mkl.problem import combined_kernel, quadratic_forms
from cuelearn.mkl.training import History

__all__ = [
    "MLMKLSA",
    "MLMKLSum",
    "MLResult",
    "SaddleGap",
    "SharedProblem",
    "saddle_gap",
    "solve_mlmkl_sa",
    "solve_mlmkl_sum",
]

# relative gap of every SVM
SVM_TOL = 1e-3
# stopping rules: the kernel weights now against those after half as many iterations, or against those of the iteration before
RULES = ("half", "paper")


class SharedProblem:
    """Binary SVMs of several classes on one combination of kernels, with warm starts.

    Parameters
    ----------
    bank : KernelBank
    signs : array-like, shape (n_problems, n)
        -1 and 1.
    C : float > 0
    svm_tol : float
        Relative gap of every SVM.
    max_sweeps : int
        Of every SVM.

    Attributes
    ----------
    alphas : ndarray, shape (n_problems, n)
        The last solution of each class, from which the next starts.
    n_solved, n_missed : int
        SVMs solved, and those among them that did not come to `svm_tol` within `max_sweeps`.
    """

    def __init__(self, bank, signs, C, svm_tol=SVM_TOL, max_sweeps=10_000):
        if not isinstance(bank, KernelBank):
            raise ValueError(f"bank must be a KernelBank, got {type(bank).__name__}")
        self.signs = np.ascontiguousarray(signs, dtype=np.float64)
        if (
            self.signs.ndim != 2
            or not len(self.signs)
            or self.signs.shape[1] != bank.n_samples
            or not np.isin(self.signs, (-1, 1)).all()
        ):
            raise ValueError(
                f"signs must be -1 and 1 and have a row for each problem and {bank.n_samples} columns, got shape {self.signs.shape}"
            )
        self.bank, self.C, self.svm_tol = bank, check_positive("C", C), check_positive("svm_tol", svm_tol)
        self.max_sweeps = check_count("max_sweeps", max_sweeps)
        self.alphas = np.zeros_like(self.signs)
        self.n_solved, self.n_missed = 0, 0
        self._weights, self._kernel = None, None

    @property
    def n_problems(self):
        """Classes."""
        return len(self.signs)

    def kernel(self, weights):
        """The combined kernel, the one matrix that is made: (n, n)."""
        if self._weights is None or not np.array_equal(weights, self._weights):
            self._kernel = combined_kernel(
                self.bank, weights, 1.0, out=self._kernel
            )  # in place: the old combination is gone
            self._weights = weights.copy()
        return self._kernel

    def solve(self, k, weights):
        """The SVM of class k, from its last solution; returns a `BoxSolution`."""
        kernel = self.kernel(weights)
        found = solve_box_svm(
            kernel, self.signs[k], self.C, tol=self.svm_tol, alpha=self.alphas[k], max_sweeps=self.max_sweeps
        )
        self.alphas[k] = found.alpha
        self.n_solved += 1
        self.n_missed += found.gap > self.svm_tol * (found.value + found.gap)
        return found

    @contextlib.contextmanager
    def uncounted(self, svm_tol=None, solutions=False):
        """A block whose SVMs are not counted, to another accuracy if that is finer; it leaves no solutions behind unless `solutions`."""
        kept, counts, accuracy = (
            None if solutions else self.alphas.copy(),
            (self.n_solved, self.n_missed),
            self.svm_tol,
        )
        self.svm_tol = self.svm_tol if svm_tol is None else min(self.svm_tol, svm_tol)
        try:
            yield
        finally:
            (self.n_solved, self.n_missed), self.svm_tol = counts, accuracy
            if kept is not None:
                self.alphas[...] = kept

    def quadratics(self, problems):
        """``(alpha o y) K_a (alpha o y)`` of the last solutions of some classes, (n_kernels, n_classes), in one read of the kernels."""
        return quadratic_forms(self.bank, (self.alphas[problems] * self.signs[problems]).T)


class Entropic:
    r"""Weights on a simplex that follow gradients by exponentiated updates (mirror descent with the entropy), kept as logarithms.

    Parameters
    ----------
    size : int
    eta : float or None
        Constant step size, :math:`w_i \propto \exp(-\eta \sum_\tau g_{\tau i})`; None is AdaHedge,

        .. math:: \eta_t = \ln n \Big/ \sum_{\tau < t} \Big( w_\tau \cdot g_\tau
                  + \tfrac{1}{\eta_\tau} \ln \sum_i w_{\tau i} \, e^{-\eta_\tau g_{\tau i}} \Big) ,

        which needs neither the scale of the gradients nor the number of steps: the sum is what the steps cost so far.

    Attributes
    ----------
    weights : ndarray, shape (size,)
        Equal at the start.

    References
    ----------
    De Rooij, van Erven, Grünwald and Koolen, Follow the leader if you can, hedge if you must, JMLR 2014.
    """

    def __init__(self, size, eta):
        self.eta, self.weights = eta, np.full(size, 1.0 / size)
        self._total, self._cost = np.zeros(size), 0.0

    def descend(self, gradient):
        """One step against a gradient."""
        if self.eta is None:
            least = gradient[self.weights > 0.0].min()
            mixed, length = 0.0, self._length()
            if length < np.inf:
                mixed = -np.log(self.weights @ np.exp(-length * np.maximum(0.0, gradient - least))) / length
            self._cost += max(0.0, float(self.weights @ gradient) - least - mixed)
        self._total += gradient
        length = self._length()
        if length < np.inf:  # else no step has cost anything: all weights are as good
            shifted = np.exp(-length * (self._total - self._total.min()))
            self.weights = shifted / shifted.sum()

    def _length(self):
        if self.eta is not None:
            return self.eta
        return np.log(max(2, self.weights.size)) / self._cost if self._cost > 0.0 else np.inf


def constant_steps(eta):
    """Step sizes of p and of gamma: None, None for "auto", or the given ones, or an error that names eta."""
    if isinstance(eta, str) and eta == "auto":
        return None, None
    pair = tuple(eta) if np.ndim(eta) == 1 else (eta, eta)
    if isinstance(eta, str) or len(pair) != 2:
        raise ValueError(f"eta must be 'auto', a positive number or a pair of them, got {eta!r}")
    return tuple(check_positive("eta", value) for value in pair)


class MLResult(NamedTuple):
    """What `solve_mlmkl_sa` and `solve_mlmkl_sum` return.

    Attributes
    ----------
    kernel_weights : ndarray, shape (n_kernels,)
        SA: the average over iterations; Sum: the best met.
    gamma : ndarray, shape (n_problems,)
        SA: the average weights of the classes; Sum: equal ones.
    path : ndarray, shape (n_iter + 1, n_kernels)
        Averaged (SA) or present (Sum) kernel weights after 0, 1, ... iterations.
    iterates : ndarray, shape (n_iter + 1, n_kernels)
        The present ones.
    drawn : ndarray of int, shape (n_iter,)
        SA: the class of each iteration.
    history : DataFrame
        step, seconds, n_updates (SVMs solved), objective (of the SVM, or of all), change (relative, of the kernel weights).
    n_iter, n_solved : int
    converged : bool
        Whether the stopping rule ended the run (True where there is none).
    stopped : bool
        Whether the callback did.
    """

    kernel_weights: np.ndarray
    gamma: np.ndarray
    path: np.ndarray
    iterates: np.ndarray
    drawn: np.ndarray
    history: object
    n_iter: int
    n_solved: int
    converged: bool
    stopped: bool


def check_rule(rule):
    """Which stopping rule, or an error that names it."""
    if not isinstance(rule, str) or rule not in RULES:
        raise ValueError(f"rule must be 'half' or 'paper', got {rule!r}")
    return rule


class SharedRun:
    """A run of one of the two: the path of the kernel weights, the history, the end; its clock stops while they are written down.

    Attributes
    ----------
    kernel_weights, gamma : ndarray
        What the run would return now.
    """

    def __init__(self, problem, name, n_iter, tol, rule, min_iter, callback, verbose):
        self.problem, self.name, self.callback = problem, name, callback
        s, self.before, self.kernel_weights, self.gamma = problem.bank.n_kernels, problem.n_solved, None, None
        self.tol, self.rule, self.min_iter = (
            None if tol is None else check_positive("tol", tol),
            check_rule(rule),
            min(min_iter, n_iter),
        )
        self.path, self.iterates, self.drawn = [np.full(s, 1.0 / s)], [np.full(s, 1.0 / s)], []
        self.changes, self.converged, self.stopped = [], tol is None, False
        self.bar = tqdm(
            total=n_iter,
            desc=name,
            unit="iteration",
            delay=BAR_AFTER,
            leave=False,
            disable=not verbose,
            file=sys.stderr,
        )
        self.history = History()

    def record(self, weights, iterate, value, best, gamma):
        """Write an iteration down; whether it was the last. `best` and `gamma` are what the run would return now."""
        self.history.pause()
        t, self.kernel_weights, self.gamma = len(self.path), best.copy(), gamma.copy()
        before = self.path[t // 2 if self.rule == "half" else -1]
        self.changes.append(float(np.linalg.norm(weights - before) / np.linalg.norm(weights)))
        self.path.append(weights.copy())
        self.iterates.append(iterate.copy())
        solved = self.problem.n_solved - self.before
        self.history.add(
            stage=self.name, step=t, epoch=t, seconds=self.history.seconds, n_updates=solved, objective=value
        )
        self.bar.update()
        if self.callback is not None:
            self.stopped = bool(self.callback(self, t))
        if self.tol is not None:
            self.converged = weights.size == 1 or (t >= self.min_iter and self.changes[-1] < self.tol)
        self.history.go()
        return self.stopped or (self.tol is not None and self.converged)

    def result(self):
        """A `MLResult` of the run so far."""
        table = self.history.frame()
        table["change"] = self.changes
        return MLResult(
            self.kernel_weights.copy(),
            self.gamma.copy(),
            np.array(self.path),
            np.array(self.iterates),
            np.array(self.drawn, dtype=int),
            table.dropna(axis=1, how="all"),
            len(self.changes),
            self.problem.n_solved - self.before,
            bool(self.converged),
            self.stopped,
        )


def sa_gradients(problem, k, weights, smoothed, gamma=None, level=0.0):
    r"""Estimated gradients of :math:`L` from one class: equations 8 and 9, the latter divided by the weight that the class was drawn with.

    Parameters
    ----------
    problem : SharedProblem
    k : int
        The class.
    weights : ndarray, shape (n_kernels,)
    smoothed : ndarray, shape (n_problems,)
        :math:`\gamma'`, which the class was drawn from.
    gamma : ndarray, shape (n_problems,), optional
        Where the estimate for p is to be without bias; by default :math:`\gamma'`.
    level : float
        Taken off :math:`H_k`, see `solve_mlmkl_sa`.

    Returns
    -------
    of_p : ndarray, shape (n_kernels,)
        :math:`-\frac12 (\alpha \circ y^k)^\top K_a (\alpha \circ y^k)`, times :math:`\gamma_k / \gamma'_k` where gamma is given.
    of_gamma : float
        Entry k of the estimate for gamma, :math:`(H_k(p) - level) / \gamma'_k`; the others are 0.
    value : float
        :math:`H_k(p)`.
    """
    found = problem.solve(k, weights)
    share = 1.0 if gamma is None else gamma[k] / smoothed[k]
    return -0.5 * share * problem.quadratics([k])[:, 0], (found.value - level) / smoothed[k], found.value


def solve_mlmkl_sa(
    problem,
    *,
    n_iter=2000,
    delta=0.2,
    eta="auto",
    corrected=True,
    tol=0.05,
    rule="half",
    min_iter=100,
    rng=None,
    callback=None,
    verbose=False,
):
    r"""ML-MKL-SA: stochastic mirror descent on the kernel weights, ascent on the weights of the classes.

    Parameters
    ----------
    problem : SharedProblem
    n_iter : int
        Most iterations T; each solves one SVM.
    delta : float in [0, 1]
        Share of uniform draws: a class is drawn from :math:`\gamma' = (1 - \delta) \gamma + \delta / m`.
    eta : "auto", float or pair of float
        Step sizes of p and gamma: those of `Entropic`, or constants as in the paper.
    corrected : bool
        False: the paper's estimates, divided by :math:`\gamma'_k`. True mends two things. Drawing from :math:`\gamma'` makes the
        estimate for p right at :math:`\gamma'` and not at :math:`\gamma`, which keeps the pair away from the saddle point however long
        it runs: it is multiplied by :math:`\gamma_k / \gamma'_k \le 1/(1 - \delta)`. And what all losses have in common moves no
        :math:`\gamma` but makes most of the noise of equation 9: a level is taken off, the mean, weighted by :math:`\gamma'`, of what each
        class met when it was last drawn. The level is known before the draw, so the estimate's mean changes by the same constant for every
        class; the first draw only sets it.
    tol : float or None
        Stop at this relative change of the averaged kernel weights; None runs all iterations.
    rule : {"half", "paper"}
        Change since half as many iterations, or since the last iteration. The latter is the paper's rule, with 0.01; the last of t
        iterations moves an average by a share of about 1/t wherever it stands, so that rule says little but that t is large.
    min_iter : int
        The rule is not asked before; the paper has no such number, and its rule would stop at the first iteration, which leaves the
        average where it was. Neither rule means anything where constant steps are very small.
    rng : numpy.random.Generator
    callback : callable(run, step) or None
        Called after each iteration with the `SharedRun`, the clock stopped; a true result ends the run.
    verbose : bool

    Returns
    -------
    MLResult

    References
    ----------
    NIPS 2010, Algorithm 1. Equation 9 is divided by the smoothed weight :math:`\gamma'_k`: the class was drawn with it, and only then
    is the estimate without bias (at :math:`\gamma'`). Equation 7 prints both updates as descents; gamma ascends. `corrected` and
    "auto" are not in the paper.
    """
    rng = np.random.default_rng() if rng is None else rng
    n_iter, min_iter = check_count("n_iter", n_iter), check_count("min_iter", min_iter)
    if isinstance(delta, bool) or not (isinstance(delta, numbers.Real) and 0.0 <= delta <= 1.0):
        raise ValueError(f"delta must be a number in [0, 1], got {delta!r}")
    if not isinstance(corrected, (bool, np.bool_)):
        raise ValueError(f"corrected must be True or False, got {corrected!r}")
    s, m = problem.bank.n_kernels, problem.n_problems
    for_p, for_gamma = (Entropic(size, step) for size, step in zip((s, m), constant_steps(eta), strict=True))
    mean_p, mean_gamma, last = np.zeros(s), np.zeros(m), np.full(m, np.nan)
    run = SharedRun(problem, "ML-MKL-SA", n_iter, tol, rule, min_iter, callback, verbose)
    with run.bar:
        for t in range(1, n_iter + 1):
            p, gamma = for_p.weights, for_gamma.weights
            smoothed = (1.0 - delta) * gamma + delta / m
            k = int(rng.choice(m, p=smoothed / smoothed.sum()))
            level = _level(last, smoothed) if corrected else 0.0
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
            if run.record(mean_p, for_p.weights, value, mean_p, mean_gamma):
                break
    return run.result()


def _level(last, smoothed):
    """Weighted mean of the losses met last, over the classes drawn so far; NaN before the first draw."""
    met = np.isfinite(last)
    weight = smoothed[met].sum()
    return (
        float(smoothed[met] @ last[met] / weight)
        if weight > 0.0
        else (float(last[met].mean()) if met.any() else np.nan)
    )


def solve_mlmkl_sum(problem, *, n_iter=200, eta="auto", tol=0.01, rule="paper", callback=None, verbose=False):
    r"""ML-MKL-Sum: subgradient descent on :math:`\sum_k H_k(p)`, with SA's update of the kernel weights and the gradient of all classes.

    Parameters
    ----------
    problem : SharedProblem
    n_iter : int
        Most iterations; each solves the SVMs of all classes.
    eta : "auto" or float
        Step size of `Entropic`.
    tol : float or None
        Stop at this relative change of the kernel weights, which are no averages.
    rule, callback
        As of `solve_mlmkl_sa`.
    verbose : bool

    Returns
    -------
    MLResult
        `kernel_weights` are the best met, by the objective.

    References
    ----------
    NIPS 2010, equations 1 and 2; the derivative is :math:`-\frac12 \sum_k (\alpha^k \circ y^k)^\top K_a (\alpha^k \circ y^k)`. The paper
    leaves the steps to SimpleMKL's subgradients or to Tang et al.; here they are the exponentiated ones of SA, so that the two differ by
    nothing but the sampling of classes.
    """
    n_iter = check_count("n_iter", n_iter)
    if np.ndim(eta) > 0:
        raise ValueError(f"eta must be 'auto' or a positive number, got {eta!r}")
    everyone, even = np.arange(problem.n_problems), np.full(problem.n_problems, 1.0 / problem.n_problems)
    for_p, best = Entropic(problem.bank.n_kernels, constant_steps(eta)[0]), (np.inf, None)
    run = SharedRun(problem, "ML-MKL-Sum", n_iter, tol, rule, 1, callback, verbose)
    with run.bar:
        for _ in range(n_iter):
            p = for_p.weights
            value = sum(problem.solve(k, p).value for k in everyone)
            if value < best[0]:
                best = value, p
            for_p.descend(-0.5 * problem.quadratics(everyone).sum(axis=1))
            if run.record(for_p.weights, for_p.weights, value, best[1], even):
                break
    return run.result()


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


def saddle_gap(problem, kernel_weights, gamma, *, tol=1e-4, threshold=None, max_iter=500):
    r"""Saddle-point gap :math:`\max_k H_k(p) - \min_{p'} \sum_k \gamma_k H_k(p')`, by cutting planes to a certified accuracy.

    Parameters
    ----------
    problem : SharedProblem
        Counts and accuracy are as before afterwards; the solutions are those of the last plane, from which the next call starts.
    kernel_weights : array-like, shape (n_kernels,)
    gamma : array-like, shape (n_problems,)
        Both not negative, of sum 1.
    tol : float
        Wanted slack, relative to `worst`; the SVMs are solved to a tenth of it.
    threshold : float or None
        Relative to `worst`: stop as soon as the gap is known to be above or not above it, however large the slack.
    max_iter : int
        Most rounds of cutting planes.

    Returns
    -------
    SaddleGap

    Warns
    -----
    ConvergenceWarning
        If the slack stays above `tol`.

    Notes
    -----
    A round of cutting planes costs one SVM for every class with a positive gamma; the second term is a linear program with a variable
    for each kernel and class (HiGHS): for any alpha, :math:`\alpha_k^\top 1 - \frac12 \sum_a p_a q_{ak}` is below :math:`H_k(p)` at
    every p, up to HiGHS's 1e-7 of `worst`. The gap of an `MLMKLSA` that was fitted to a bank is
    ``saddle_gap(SharedProblem(bank, signs, C), model.kernel_weights_, gamma)`` with the signs and entries of `gamma_` of the classes that
    are not in `skipped_classes_`.

    References
    ----------
    NIPS 2010, equation 11 and proposition 2.
    """
    tol, max_iter = check_positive("tol", tol), check_count("max_iter", max_iter)
    p = _on_simplex("kernel_weights", kernel_weights, problem.bank.n_kernels)
    gamma = _on_simplex("gamma", gamma, problem.n_problems)
    active, s = np.flatnonzero(gamma > 0.0), p.size
    rows, totals, upper, lower, decided = [], [], np.inf, -np.inf, False
    with problem.uncounted(0.1 * tol, solutions=True):
        found = [problem.solve(k, p) for k in range(problem.n_problems)]
        worst, inner = max(f.value + f.gap for f in found), max(f.gap for f in found)
        for _ in range(max_iter):
            solved = [problem.solve(k, p) for k in active]
            upper = min(
                upper, float(sum(gamma[k] * (f.value + f.gap) for k, f in zip(active, solved, strict=True)))
            )
            rows.append(-0.5 * problem.quadratics(active).T / worst)
            totals.append(problem.alphas[active].sum(axis=1) / worst)
            # least sum of gamma_k theta_k with theta_k >= total_k + row_k . p, in units of `worst`: the program's accuracy is absolute
            thetas = sparse.kron(np.ones((len(rows), 1)), -sparse.eye_array(active.size))
            program = linprog(
                np.r_[np.zeros(s), gamma[active]],
                A_ub=sparse.hstack([np.concatenate(rows), thetas]).tocsr(),
                b_ub=-np.concatenate(totals),
                A_eq=np.r_[np.ones(s), np.zeros(active.size)][None],
                b_eq=[1.0],
                bounds=[(0.0, None)] * s + [(None, None)] * active.size,
                method="highs",
            )
            if program.status != 0:
                break
            lower, p = float(program.fun) * worst, np.maximum(0.0, program.x[:s])
            p = p / p.sum()
            decided = threshold is not None and (
                worst - lower <= threshold * worst or worst - inner - upper > threshold * worst
            )
            if decided or upper - lower <= 0.5 * tol * worst:
                break
    slack = inner + max(0.0, upper - lower)
    if not (decided or slack <= tol * worst):
        warnings.warn(
            f"saddle_gap is known to {slack / worst:.2g} of the worst class only, tol={tol:g}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return SaddleGap(worst - lower, worst, lower, slack)


def _on_simplex(name, values, size):
    """Weights as float64, or an error that names them."""
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (size,) or not (values >= 0.0).all() or abs(values.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"{name} must be {size} numbers >= 0 of sum 1, got shape {values.shape} and sum {values.sum():g}"
        )
    return values


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
        with unchanged_on_error(self):
            signs = self._problem_signs(self._start(X, y))
            problem = SharedProblem(self.bank_, signs, self.C, self.svm_tol)
            result = self._solve(problem, self._watch(problem))
            self._take(problem, result)
        name = type(self).__name__
        if not (result.converged or result.stopped):
            warnings.warn(
                f"{name}: the kernel weights still changed by {result.history['change'].iloc[-1]:.2g} after {result.n_iter} iterations, "
                f"tol={self.tol:g}; raise n_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        if problem.n_missed:
            warnings.warn(
                f"{name}: {problem.n_missed} of {problem.n_solved} SVMs did not come to svm_tol={self.svm_tol:g} in {problem.max_sweeps} "
                "sweeps; lower C or raise svm_tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _take(self, problem, result):
        """Fitted attributes of a result: the SVMs of all classes at its kernel weights."""
        found = [problem.solve(k, result.kernel_weights) for k in range(problem.n_problems)]
        self._keep_problems((problem.alphas * problem.signs).T, result.kernel_weights)
        self.class_objectives_ = self._one_by_one([f.value + f.gap for f in found])
        self.gamma_ = self._one_by_one(result.gamma, skipped=0.0)
        self.path_, self.iterates_, self.history_ = result.path, result.iterates, result.history
        self.n_iter_, self.n_solved_, self.n_updates_ = result.n_iter, result.n_solved, result.n_solved
        self.converged_ = result.converged

    def _watch(self, problem):
        """The user's callback(estimator, step); the SVMs of all classes are solved for it, with the clock stopped."""
        if self.callback is None:
            return None

        def call(run, step):
            with problem.uncounted():
                self._take(problem, run.result())
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
    n_iter : int, default 2000
        Most iterations.
    delta : float in [0, 1], default 0.2
        Share of uniform draws of classes. 1 is sampling uniformly, 0 gives no class a chance that has lost its weight.
    eta : "auto", float or pair of float, default "auto"
        Step sizes of kernel weights and class weights: from the spread of the gradients met so far, or constants. The paper takes one
        number for both (0.0001 to 0.01); what is small depends on the scale of the losses, n C.
    corrected : bool, default True
        Take the bias of the smoothing and most of the noise out of the gradients (see `solve_mlmkl_sa`). False keeps the paper's
        estimates; its algorithm has besides a number for `eta`, ``rule="paper"`` and ``tol=0.01``.
    tol : float or None, default 0.05
        Stops when the averaged kernel weights change by less, relatively; None runs all iterations.
    rule : {"half", "paper"}, default "half"
        Change since half as many iterations, or, the paper's rule (with `tol` 0.01), since the last one.
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
        Averaged weights of the classes: large where learning is hard. One entry where two class labels are one problem. With one kernel
        there is nothing to learn and they stay equal.
    dual_coef_, support_, classes_
        As of all estimators of this package.
    path_, iterates_ : ndarray, shape (n_iter_ + 1, n_kernels)
        Averaged and present kernel weights after each iteration.
    history_ : DataFrame
        step, seconds, n_updates (SVMs solved), objective (of the class drawn), change (which `rule` looks at).
    class_objectives_ : ndarray, shape (n_classes,)
        H of every class at the end; NaN for skipped ones; one entry where two class labels are one problem.
    skipped_classes_ : ndarray
        Classes without positive or without negative samples.
    n_iter_, n_solved_, n_updates_ : int
        Iterations; SVMs that they solved (twice). The SVMs of all classes at the end are not counted and not in ``seconds``.
    converged_ : bool
        Whether the rule ended the run, which certifies nothing: `saddle_gap` does.

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
        self,
        kernels=None,
        *,
        C=1.0,
        n_iter=2000,
        delta=0.2,
        eta="auto",
        corrected=True,
        tol=0.05,
        rule="half",
        min_iter=100,
        svm_tol=1e-3,
        normalize=True,
        memory=2e9,
        random_state=None,
        callback=None,
        verbose=False,
    ):
        self.kernels = kernels
        self.C = C
        self.n_iter = n_iter
        self.delta = delta
        self.eta = eta
        self.corrected = corrected
        self.tol = tol
        self.rule = rule
        self.min_iter = min_iter
        self.svm_tol = svm_tol
        self.normalize = normalize
        self.memory = memory
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _solve(self, problem, watch):
        return solve_mlmkl_sa(
            problem,
            n_iter=self.n_iter,
            delta=self.delta,
            eta=self.eta,
            corrected=self.corrected,
            tol=self.tol,
            rule=self.rule,
            min_iter=self.min_iter,
            rng=as_generator(self.random_state),
            callback=watch,
            verbose=self.verbose,
        )


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
        Step size, as of `MLMKLSA`.
    tol : float or None, default 0.01
        Stops at this relative change of the kernel weights.

    Attributes
    ----------
    kernel_weights_, dual_coef_, support_, classes_, path_, iterates_, history_, class_objectives_, skipped_classes_
        As of `MLMKLSA`; the weights are those with the least objective met, `path_` and `iterates_` those of every iteration.
    gamma_ : ndarray, shape (n_classes,)
        Equal weights; 0 for skipped classes.
    n_iter_, n_solved_, n_updates_, converged_
        As of `MLMKLSA`.

    References
    ----------
    Bucak, Jin, Jain, NIPS 2010, section 2; Tang, Chen, Ye, IJCAI 2009.
    """

    def __init__(
        self,
        kernels=None,
        *,
        C=1.0,
        n_iter=200,
        eta="auto",
        tol=0.01,
        svm_tol=1e-3,
        normalize=True,
        memory=2e9,
        callback=None,
        verbose=False,
    ):
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
        return solve_mlmkl_sum(
            problem, n_iter=self.n_iter, eta=self.eta, tol=self.tol, callback=watch, verbose=self.verbose
        )
