r"""Methods with own kernel weights for each class: one run over all classes, one base of estimators.

A *round* is one step of every unconverged class. A method is a generator of one step (`ClassSubproblem.step`)
that yields coefficients c to get :math:`c^\top K_j c`, computed for all classes in one read of the kernels.
"""

import functools
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.docs import documented
from cuelearn.core.estimator import POSITIVE, parameters
from cuelearn.core.run import Run
from cuelearn.kernels.rows import quadratic_forms
from cuelearn.mkl.rivals.multilabel import MultiLabelMKL
from cuelearn.warn import warn_user

__all__ = ["ClassSubproblem", "ClassPoint", "ClassesResult", "PerClassMKL", "documented", "run_classes"]

TEXTS = {
    "C": ("float > 0", "C of the SVMs (not divided by n)."),
    "tol": (
        "float > 0",
        "A class stops at this relative duality gap. Objectives of methods with a bias are divided by C n.",
    ),
    "kernel_weights_": (
        "ndarray, shape (n_classes, n_kernels)",
        "At the best point of each class; 0 for skipped ones. Two class labels have equal rows.",
    ),
    "n_updates_": ("int", "SVM iterations, each changing two coefficients; without bias, SVMs."),
}
documented = functools.partial(documented, texts=TEXTS)


class ClassPoint(NamedTuple):
    """Decision values of one class are ``sum_j weights[j] * K_j @ coef + bias``."""

    weights: np.ndarray
    coef: np.ndarray
    bias: float | None
    extra: dict  # specific to the method


class ClassSubproblem:
    """Class k of a problem with a `bank`; subclasses define the generator `step`.

    `measure` keeps the `best` `ClassPoint`, its `objective` and the best bound `lower`. `stalled`: no more
    accuracy is possible.
    """

    better = 0.0  # required relative improvement

    def __init__(self, problem, k, tol):
        self.problem = problem
        self.k = k
        self.tol = tol
        self.weights = np.full(problem.bank.n_kernels, 1.0 / problem.bank.n_kernels)
        self.best = None
        self.objective = np.inf
        self.lower = 0.0
        self.n_solved = 0
        self.n_updates = 0
        self.stalled = False

    def start(self):
        """Generator run before the first step."""
        yield from ()

    def measure(self, weights, coef, objective, lower, bias=None, **extra):
        """Keep point and bound, each if better."""
        if objective < self.objective * (1.0 - self.better):
            self.objective = objective
            self.best = ClassPoint(weights, coef, bias, extra)
        self.lower = max(self.lower, lower)

    @property
    def gap(self):
        return max(0.0, self.objective - self.lower)

    @property
    def converged(self):
        return self.gap <= self.tol * self.objective


def advance(bank, generators, parallel):
    """Run generators, with their quadratic forms computed together."""
    answers = [None] * len(generators)
    while generators:
        requests = parallel(delayed(resume)(*each) for each in zip(generators, answers, strict=True))
        waiting = [k for k, coef in enumerate(requests) if coef is not None]
        generators = [generators[k] for k in waiting]
        if waiting:
            forms = quadratic_forms(bank, np.stack([requests[k] for k in waiting], axis=1))
            answers = [forms[:, i] for i in range(len(waiting))]


def resume(generator, answer):
    try:
        return generator.send(answer)
    except StopIteration:
        return None


class ClassesResult(NamedTuple):
    kernel_weights: np.ndarray  # (n_problems, n_kernels)
    dual_coef: np.ndarray  # (n_samples, n_problems)
    intercept: np.ndarray | None  # (n_problems,)
    objectives: np.ndarray  # (n_problems,)
    dual_gaps: np.ndarray  # (n_problems,), certified
    path: np.ndarray  # (n_iter + 1, n_problems, n_kernels): weights after 0, 1, ... rounds
    history: object
    n_iter: int
    n_solved: int  # SVMs
    n_updates: int  # steps of the SVMs
    converged: np.ndarray  # (n_problems,)
    stopped: bool  # by the callback
    extra: list  # of dict, for each class


def run_classes(subproblems, max_iter, *, name, scale=1.0, n_jobs=None, callback=None, verbose=False):
    """Rounds until all classes have converged; a `ClassesResult`, objectives divided by `scale`."""
    run = Run(callback, verbose=verbose)
    bank = subproblems[0].problem.bank
    path = [np.stack([m.weights for m in subproblems])]
    if bank.indefinite:
        known = np.nan
    else:
        known = 1.0 / scale

    def result():
        weights, coefs, bias, extra = zip(*(m.best for m in subproblems), strict=True)
        return ClassesResult(
            kernel_weights=np.stack(weights),
            dual_coef=np.stack(coefs, axis=1),
            intercept=None if None in bias else np.array(bias),
            objectives=np.array([m.objective for m in subproblems]) / scale,
            dual_gaps=np.array([m.gap for m in subproblems]) * known,
            path=np.array(path),
            history=run.history(),
            n_iter=len(path) - 1,
            n_solved=sum(m.n_solved for m in subproblems),
            n_updates=sum(m.n_updates for m in subproblems),
            converged=np.array([m.converged and not bank.indefinite for m in subproblems]),
            stopped=run.stopped,
            extra=list(extra),
        )

    with Parallel(n_jobs=n_jobs, require="sharedmem") as parallel:
        advance(bank, [m.start() for m in subproblems], parallel)
        active = subproblems
        for step in run.rounds(max_iter, name):
            advance(bank, [m.step() for m in active], parallel)
            path.append(np.stack([m.weights for m in subproblems]))
            active = [m for m in subproblems if not (m.converged or m.stalled)]
            row = {"stage": "batch", "epoch": step, "n_updates": sum(m.n_updates for m in subproblems)}
            row["n_support"] = int(
                np.count_nonzero(np.any([m.best.coef != 0.0 for m in subproblems], axis=0))
            )
            row["objective"] = float(np.sum([m.objective for m in subproblems])) / scale
            row["dual_gap"] = float(np.sum([m.gap for m in subproblems])) * known
            note = f"{sum(not m.converged for m in subproblems)} classes to go"
            stop = run.end(step, result, note=note, **row)
            if stop or not active:
                break
    return result()


@parameters
class PerClassMKL(MultiLabelMKL):
    """Base of estimators with `_solve(signs, weights, total, **options)`; total sample weight `total`."""

    tol: float = 1e-2
    max_iter: int = 200
    callback: object = None
    verbose: bool = False

    _parameter_constraints = {"tol": POSITIVE}

    def _train(self, signs, sample_weight):
        options = {"max_iter": self.max_iter, "verbose": self.verbose, "callback": self._watch(self._take)}
        weights = self._problem_weights(signs, sample_weight)
        if sample_weight is None:
            total = signs.shape[1]
        else:
            total = float(sample_weight.sum())
        result = self._solve(signs, weights, total, **options)
        self._take(result)
        missed = ~result.converged
        if missed.any() and not result.stopped:
            worst = float((result.dual_gaps / result.objectives)[missed].max())
            advice = "raise max_iter or tol"
            if result.n_iter != self.max_iter:
                advice = self._exhausted()
            warn_user(
                f"{type(self).__name__} did not reach tol={self.tol:g} for {missed.sum()} of {missed.size} "
                f"classes: the largest relative duality gap is {worst:.2g} after {result.n_iter} rounds; "
                f"{advice}",
                ConvergenceWarning,
            )

    def _exhausted(self):
        finer = ""
        if self.bank_.dtype == np.float32:
            finer = ", or give the kernels as float64 matrices"
        return f"the SVMs' accuracy is exhausted, raise tol{finer}"

    def _take(self, result):
        self._keep_problems(result.dual_coef, result.kernel_weights, result.intercept)
        self.path_ = self._rows(result.path)
        self.history_ = result.history
        self.objectives_ = self._fill(result.objectives, np.nan)
        self.dual_gaps_ = self._fill(result.dual_gaps, np.nan)
        self.objective_ = float(result.objectives.sum())
        self.dual_gap_ = float(result.dual_gaps.sum())
        self.n_iter_ = result.n_iter
        self.n_solved_ = result.n_solved
        self.n_updates_ = result.n_updates
        self.converged_ = bool(result.converged.all())
