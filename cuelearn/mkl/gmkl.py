r"""GMKL: projected gradient descent on the kernel weights of each class (Varma and Babu), and what methods with weights per class share.

Each class k has a problem of its own, an SVM without bias on :math:`K(d) = \sum_a d_a K_a` whose kernel weights are learnt too. The
classes run in lock step: a *round* is one step of every class that has not converged, so that a classifier of all classes exists after
each round. A method is a generator of one step (`ClassMachine.step`); wherever it needs the quadratic forms
:math:`q_a = (\alpha \circ y)^\top K_a (\alpha \circ y)` of its last SVM it yields, and the loop computes them for all classes that wait,
in one read of the kernels.
"""

import sys
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from cuelearn.core.checks import check_count, check_positive
from cuelearn.core.progress import BAR_AFTER
from cuelearn.mkl.mlmkl import SharedProblem
from cuelearn.mkl.multilabel import MultiLabelMKL
from cuelearn.mkl.training import History

__all__ = [
    "GMKL",
    "ClassMachine",
    "ClassesResult",
    "GradientMachine",
    "PerClassMKL",
    "run_classes",
    "solve_gmkl",
]

# share of the wanted gap that an SVM's own gap may take, and the least accuracy, relative to the objective
OWN_SHARE = 0.1
SMALLEST_TOL = 1e-10
# Armijo's rule: share of the promised descent that a step must bring, and what a refused step shrinks by
ARMIJO = 0.01
SHRINK = 0.3
MOST_TRIALS = 25
# an SVM in the line search is this much finer than the descent that it has to show
FINER = 0.1


class ClassesResult(NamedTuple):
    """Kernel weights and SVMs of all classes.

    Attributes
    ----------
    kernel_weights : ndarray, shape (n_problems, n_kernels)
    dual_coef : ndarray, shape (n_samples, n_problems)
        :math:`\\alpha \\circ y` of each class at its weights.
    objectives : ndarray, shape (n_problems,)
        Upper ends of the optima: the objective at each class's point.
    dual_gaps : ndarray, shape (n_problems,)
        Certified distances of these objectives from the optima.
    path : ndarray, shape (n_iter + 1, n_problems, n_kernels)
        Kernel weights at the start and after each round.
    history : DataFrame
    n_iter : int
        Rounds.
    n_solved : int
        SVMs solved.
    converged : ndarray of bool, shape (n_problems,)
    stopped : bool
        Whether the callback ended the run.
    extra : list of dict
        What a method knows besides, for each class.
    """

    kernel_weights: np.ndarray
    dual_coef: np.ndarray
    objectives: np.ndarray
    dual_gaps: np.ndarray
    path: np.ndarray
    history: object
    n_iter: int
    n_solved: int
    converged: np.ndarray
    stopped: bool
    extra: list


class ClassMachine:
    """One class on its way: present kernel weights, the best point and the best lower bound so far.

    A method is a subclass with the generators `start` and `step`, which yield where they need the quadratic forms of the last SVM and
    call `measure`.

    Parameters
    ----------
    problem : SharedProblem
    k : int
        Number of the class in it.
    tol : float
        Wanted gap relative to the objective.

    Attributes
    ----------
    weights : ndarray, shape (n_kernels,)
    objective, lower : float
        Of the best point; best lower bound.
    best : tuple of ndarray and dict
        Kernel weights and alpha of the best point, and what a method adds.
    stalled : bool
        Nothing can be made more accurate.
    """

    def __init__(self, problem, k, tol):
        self.problem, self.k, self.tol = problem, k, tol
        self.weights = np.full(problem.bank.n_kernels, 1.0 / problem.bank.n_kernels)
        self.objective, self.lower, self.best = np.inf, 0.0, None
        self.stalled = False
        self.limit = OWN_SHARE * tol

    def svm(self, weights, accuracy):
        """The SVM at some kernel weights, from the last solution, to an accuracy relative to its objective."""
        self.problem.svm_tol = min(max(accuracy, SMALLEST_TOL), self.limit)
        return self.problem.solve(self.k, weights)

    def measure(self, weights, alpha, objective, lower, **extra):
        """Take over a point (with what a method adds) and a lower bound, each where it is better."""
        if objective < self.objective:
            self.objective, self.best = objective, (weights.copy(), alpha.copy(), extra)
        self.lower = max(self.lower, lower)

    @property
    def gap(self):
        """Certified distance of the best point from the optimum."""
        return max(0.0, self.objective - self.lower)

    @property
    def converged(self):
        """Whether it is small enough."""
        return self.gap <= self.tol * abs(self.objective)


def advance(problem, machines, generators):
    """Run one generator of each machine to its end, with the quadratic forms that they ask for computed together."""
    waiting = []

    def resume(machine, generator, answer):
        try:
            generator.send(answer)
        except StopIteration:
            return
        waiting.append((machine, generator))

    for machine, generator in zip(machines, generators, strict=True):
        resume(machine, generator, None)
    while waiting:
        asked, waiting = waiting, []
        found = problem.quadratics(np.array([machine.k for machine, _ in asked]))
        for column, (machine, generator) in enumerate(asked):
            resume(machine, generator, found[:, column])


def _result(problem, machines, path, history, step, before, stopped):
    weights = np.stack([m.best[0] for m in machines])
    coef = np.stack([m.best[1] * problem.signs[m.k] for m in machines], axis=1)
    objectives, gaps = np.array([m.objective for m in machines]), np.array([m.gap for m in machines])
    return ClassesResult(
        weights,
        coef,
        objectives,
        gaps,
        np.array(path),
        history.frame().dropna(axis=1, how="all"),
        step,
        problem.n_solved - before,
        np.array([m.converged for m in machines]),
        stopped,
        [m.best[2] for m in machines],
    )


def run_classes(problem, machines, max_iter, *, callback=None, verbose=False, name=""):
    """Rounds over all classes until each has converged.

    Parameters
    ----------
    problem : SharedProblem
    machines : list of ClassMachine
        One for each class of the problem.
    max_iter : int
    callback : callable(result, step) or None
        Called after each round with a `ClassesResult`, the clock stopped; a true result ends the run.
    verbose : bool
    name : str
        For the progress bar.

    Returns
    -------
    ClassesResult
    """
    history, before, stopped = History(), problem.n_solved, False
    path = [np.stack([m.weights for m in machines])]
    bar = tqdm(
        total=max_iter,
        desc=name,
        unit="round",
        delay=BAR_AFTER,
        leave=False,
        disable=not verbose,
        file=sys.stderr,
    )
    with bar:
        advance(problem, machines, [m.start() for m in machines])
        for step in range(1, max_iter + 1):
            active = [m for m in machines if step == 1 or not (m.converged or m.stalled)]
            advance(problem, active, [m.step() for m in active])
            path.append(np.stack([m.weights for m in machines]))
            history.pause()
            history.add(
                stage="batch",
                step=step,
                epoch=step,
                seconds=history.seconds,
                n_updates=problem.n_solved - before,
                n_support=int(np.count_nonzero(np.any([m.best[1] > 0.0 for m in machines], axis=0))),
                objective=float(sum(m.objective for m in machines)),
                dual_gap=float(sum(m.gap for m in machines)),
            )
            bar.update()
            bar.set_postfix_str(f"{sum(not m.converged for m in machines)} classes to go", refresh=False)
            if callback is not None:
                stopped = bool(callback(_result(problem, machines, path, history, step, before, False), step))
            history.go()
            if stopped or all(m.converged or m.stalled for m in machines):
                break
    return _result(problem, machines, path, history, step, before, stopped)


def dual_bound_l1(alpha, quadratics, C, sigma):
    r"""Best value of :math:`\alpha^\top 1` on the ray of a point, under :math:`\alpha \le C` and :math:`q_a(\alpha) \le 2 \sigma`."""
    total, largest = float(alpha.sum()), float(quadratics.max(initial=0.0))
    if total <= 0.0:
        return 0.0
    limit = C / float(alpha.max())
    return total * (min(limit, np.sqrt(2.0 * sigma / largest)) if largest > 0.0 else limit)


def dual_bound_l2(alpha, quadratics, C, sigma):
    r"""Best value of :math:`\alpha^\top 1 - \frac{1}{8\sigma} \sum_a q_a(\alpha)^2` on the ray of a point, under :math:`\alpha \le C`."""
    total, squares = float(alpha.sum()), float(quadratics @ quadratics)
    if total <= 0.0:
        return 0.0
    limit = C / float(alpha.max())
    scale = min(limit, float(np.cbrt(2.0 * sigma * total / squares))) if squares > 0.0 else limit
    return scale * total - scale**4 * squares / (8.0 * sigma)


class Regularizer(NamedTuple):
    """A regulariser of kernel weights.

    Attributes
    ----------
    value, gradient : callable(weights, sigma)
    dual_bound : callable(alpha, quadratics, C, sigma)
        A lower bound of the optimum from any alpha in the box, by duality.
    """

    value: object
    gradient: object
    dual_bound: object


REGULARIZERS = {
    "l1": Regularizer(
        lambda d, sigma: sigma * float(d.sum()), lambda d, sigma: np.full(d.size, sigma), dual_bound_l1
    ),
    "l2": Regularizer(lambda d, sigma: 0.5 * sigma * float(d @ d), lambda d, sigma: sigma * d, dual_bound_l2),
}


class GradientMachine(ClassMachine):
    """Projected gradient descent with Armijo's rule on d >= 0.

    Parameters
    ----------
    problem, k, tol
        As of `ClassMachine`.
    regularizer : Regularizer
    sigma : float
    """

    def __init__(self, problem, k, tol, regularizer, sigma):
        super().__init__(problem, k, tol)
        self.regularizer, self.sigma = regularizer, sigma
        self.solution, self.slope, self.length = None, None, None

    def value(self, found, weights):
        """T at some weights, its upper end."""
        return found.value + found.gap + self.regularizer.value(weights, self.sigma)

    def gradient(self, weights, quadratics):
        """Of T: :math:`-\\frac12 q_a + \\partial r / \\partial d_a`."""
        return self.regularizer.gradient(weights, self.sigma) - 0.5 * quadratics

    def start(self):
        """Measure the first point."""
        yield from self._solved(self.weights, self.svm(self.weights, self.limit))

    def _solved(self, weights, found):
        """Take over a solved point; asks for its quadratic forms."""
        self.weights, self.solution, self.present = weights, found, self.value(found, weights)
        quadratics = yield
        self.slope = self.gradient(weights, quadratics)
        self.measure(
            weights,
            found.alpha,
            self.present,
            self.regularizer.dual_bound(found.alpha, quadratics, self.problem.C, self.sigma),
        )

    def step(self):
        """One step of the descent."""
        d, slope, present, kept = self.weights, self.slope, self.present, self.solution
        length = self.length or max(d.max(), 1.0 / d.size) / max(np.abs(slope).max(), 1e-300)
        for _ in range(MOST_TRIALS):
            new = np.maximum(0.0, d - length * slope)
            descent = float(slope @ (d - new))
            if descent <= SMALLEST_TOL * abs(present):
                break
            found = self.svm(new, FINER * descent / abs(present))
            if self.value(found, new) <= present - ARMIJO * descent:
                yield from self._solved(new, found)
                moved, bent = new - d, self.slope - slope
                bend = float(moved @ bent)
                self.length = float(moved @ moved) / bend if bend > 0.0 else 10.0 * length
                return
            length *= SHRINK
        # no step shows a descent: only more accuracy can bring anything new
        self.problem.alphas[self.k] = kept.alpha
        if self.limit <= SMALLEST_TOL:
            self.stalled = True
            return
        self.limit, self.length = max(SMALLEST_TOL, 0.1 * self.limit), None
        yield from self._solved(d, self.svm(d, self.limit))


def solve_gmkl(problem, *, regularizer="l1", sigma=1.0, tol=1e-2, max_iter=200, callback=None, verbose=False):
    r"""GMKL of every class: projected gradient descent with Armijo's rule.

    .. math:: \min_{d \ge 0} T_k(d), \qquad
              T_k(d) = \max_{0 \le \alpha \le C} \alpha^\top 1 - \tfrac12 (\alpha \circ y^k)^\top K(d) (\alpha \circ y^k) + r(d)

    Parameters
    ----------
    problem : SharedProblem
        Its `svm_tol` is set anew for every SVM.
    regularizer : {"l1", "l2"}
        :math:`r(d) = \sigma \sum_a d_a` or :math:`\frac\sigma2 \|d\|^2`.
    sigma : float > 0
    tol : float > 0
        A class stops when its certified gap is at most this share of its objective.
    max_iter : int
        Most rounds.
    callback : callable(result, step) or None
    verbose : bool

    Returns
    -------
    ClassesResult

    Notes
    -----
    T is convex and, as the maximum of functions that are linear in d at a unique :math:`w`, differentiable:
    :math:`\partial T / \partial d_a = -\frac12 q_a(\alpha) + \partial r / \partial d_a`. Exchanging minimum and maximum gives the duals

    .. math:: \max_{0 \le \alpha \le C} \big\{ \alpha^\top 1 : q_a(\alpha) \le 2 \sigma \big\} \text{ (l1)}, \qquad
              \max_{0 \le \alpha \le C} \alpha^\top 1 - \tfrac{1}{8 \sigma} \sum_a q_a(\alpha)^2 \text{ (l2)},

    so that the alpha of any SVM, multiplied by the best feasible number, certifies a gap. The objective is the SVM's primal value
    plus r, and falls in every step.

    References
    ----------
    Varma and Babu, ICML 2009: projected gradient descent with Armijo's rule. The first trial of a step is the length of Barzilai and
    Borwein, as in the same group's SPG-GMKL (Jain, Vishwanathan, Varma, KDD 2012); Armijo's rule decides in every case.
    """
    if not isinstance(regularizer, str) or regularizer not in REGULARIZERS:
        raise ValueError(f"regularizer must be 'l1' or 'l2', got {regularizer!r}")
    sigma, tol, max_iter = (
        check_positive("sigma", sigma),
        check_positive("tol", tol),
        check_count("max_iter", max_iter),
    )
    machines = [
        GradientMachine(problem, k, tol, REGULARIZERS[regularizer], sigma) for k in range(problem.n_problems)
    ]
    return run_classes(problem, machines, max_iter, callback=callback, verbose=verbose, name="GMKL")


class PerClassMKL(MultiLabelMKL):
    """Base of the estimators with kernel weights of their own for each class; a subclass has `_solve(problem, callback)`."""

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
            If `max_iter` rounds did not bring the gap of every class down to `tol`.
        UserWarning
            If a class has no positive or no negative sample.
        """
        self._check_callback()
        C = check_positive("C", self.C)
        signs = self._problem_signs(self._start(X, y))
        problem = SharedProblem(self.bank_, signs, C)

        def watch(result, step):
            self._take(result)
            return self.callback(self, step)

        result = self._solve(problem, None if self.callback is None else watch)
        self._take(result)
        missed = ~result.converged
        if missed.any() and not result.stopped:
            worst = float((result.dual_gaps / result.objectives)[missed].max())
            advice = "raise max_iter or tol" if result.n_iter == self.max_iter else self._exhausted()
            warnings.warn(
                f"{type(self).__name__} did not reach tol={self.tol:g} for {missed.sum()} of {missed.size} classes: the largest relative "
                f"duality gap is {worst:.2g} after {result.n_iter} rounds; {advice}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _exhausted(self):
        """What to do where rounds do not help."""
        wider = (
            ", or give the kernels as float64 matrices, kernels='precomputed'"
            if self.bank_.dtype == np.float32
            else ""
        )
        return f"the SVMs' accuracy is exhausted, raise tol{wider}"

    def _take(self, result):
        """Fitted attributes of a result."""
        self._keep_problems(result.dual_coef, result.kernel_weights)
        self.path_, self.history_ = self._rows(result.path), result.history
        self.objectives_, self.dual_gaps_ = (
            self._one_by_one(result.objectives),
            self._one_by_one(result.dual_gaps),
        )
        self.objective_, self.dual_gap_ = float(result.objectives.sum()), float(result.dual_gaps.sum())
        self.n_iter_, self.n_solved_, self.n_updates_ = result.n_iter, result.n_solved, result.n_solved
        self.converged_ = bool(result.converged.all())


class GMKL(PerClassMKL):
    r"""Generalised multiple kernel learning: kernel weights for each class by projected gradient descent.

    .. math:: \min_{d \ge 0} \max_{0 \le \alpha \le C} \alpha^\top 1 - \frac12 (\alpha \circ y)^\top K(d) (\alpha \circ y) + r(d)
              = \min_{d \ge 0,\, f} \frac12 \|f\|^2_{K(d)} + C \sum_i [1 - y_i f(x_i)]_+ + r(d), \qquad K(d) = \sum_a d_a K_a

    for each class, with :math:`r(d) = \sigma \sum_a d_a` or :math:`\frac\sigma2 \|d\|^2`. The weights need not sum to 1: sigma says how
    large they become. A step solves the SVM, takes the gradient :math:`-\frac12 (\alpha \circ y)^\top K_a (\alpha \circ y) + \partial r
    / \partial d_a` at its solution, and goes along it as far as Armijo's rule allows, projected onto :math:`d \ge 0`.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        See `OM2`.
    C : float > 0, default 1.0
        Of the SVMs (without bias).
    regularizer : {"l1", "l2"}, default "l1"
        "l1" gives sparse weights.
    sigma : float > 0, default 1.0
        Weight of the regulariser.
    tol : float > 0, default 1e-2
        A class stops when its duality gap is at most this share of its objective.
    max_iter : int, default 200
        Most rounds; a round is a whole step of every class.
    normalize, memory
        See `OM2`.
    callback : callable(estimator, step) or None
        Called after every round, with the best point of every class so far; the clock stops meanwhile. A true result ends the run.
    verbose : bool, default False

    Attributes
    ----------
    classes_ : ndarray
        Labels, or the numbers of the columns of an indicator matrix; the two values of a single column.
    kernel_weights_ : ndarray, shape (n_classes, n_kernels)
        d of every class; two equal rows for two class labels, 0 for skipped classes.
    dual_coef_ : ndarray, shape (n_support, n_classes)
    support_ : ndarray of int
    path_ : ndarray, shape (n_iter_ + 1, n_classes, n_kernels)
        Kernel weights at the start and after each round; entry t + 1 belongs to row t of `history_`.
    history_ : DataFrame
        One row for each round: step, seconds, n_updates (SVMs solved), n_support, objective and dual_gap, summed over the classes.
    objectives_, dual_gaps_ : ndarray, shape (n_classes,), or (1,) for two class labels, which are one problem
        Objective of every class, and its certified distance from the optimum; NaN for skipped classes.
    objective_, dual_gap_ : float
        Their sums.
    skipped_classes_ : ndarray
        Classes without positive or without negative samples.
    n_iter_, n_solved_, n_updates_ : int
        Rounds; SVMs solved (twice).
    converged_ : bool

    Notes
    -----
    A step costs for each class an SVM or two, from the class's last solution, each with a read of the kernels to combine them (no copies
    besides the one combined matrix), and one read of all kernels for all classes together. The bounds behind the gap are in `solve_gmkl`.

    Kernels of features are kept in float32. At large C on kernels of low rank (linear ones, C = 1000) that is too coarse for
    :math:`(\alpha \circ y)^\top K_a (\alpha \circ y)`, a small difference of large numbers, and the gap stays open: give the kernels as
    float64 matrices there.

    With "l1" and :math:`D = \sum_a d_a` at the optimum, d / D solves :math:`\ell_1` MKL (`VSKL` with one group) at C D in place of C:
    choose C and sigma together, or the same C means less regularisation here than elsewhere.

    References
    ----------
    Varma and Babu, "More generality in efficient multiple kernel learning", ICML 2009. It allows any differentiable K(d) and r; here K
    is linear in d, the SVM has no bias, and a certified gap ends the run.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.mkl.gmkl import GMKL
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.integers(0, 2, size=(60, 2))
    >>> X = np.hstack([Y + 0.3 * rng.normal(size=(60, 2)), rng.normal(size=(60, 2))])
    >>> cues = [("first", RBF(), [0]), ("second", RBF(), [1]), ("noise", RBF(), [2, 3])]
    >>> model = GMKL(cues).fit(X, Y)
    >>> model.kernel_weights_.argmax(axis=1), bool(model.dual_gap_ < 0.01 * model.objective_)
    (array([0, 1]), True)
    """

    def __init__(
        self,
        kernels=None,
        *,
        C=1.0,
        regularizer="l1",
        sigma=1.0,
        tol=1e-2,
        max_iter=200,
        normalize=True,
        memory=2e9,
        callback=None,
        verbose=False,
    ):
        self.kernels = kernels
        self.C = C
        self.regularizer = regularizer
        self.sigma = sigma
        self.tol = tol
        self.max_iter = max_iter
        self.normalize = normalize
        self.memory = memory
        self.callback = callback
        self.verbose = verbose

    def _solve(self, problem, callback):
        return solve_gmkl(
            problem,
            regularizer=self.regularizer,
            sigma=self.sigma,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback,
            verbose=self.verbose,
        )
