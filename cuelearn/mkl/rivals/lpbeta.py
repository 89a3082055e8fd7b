r"""LP-beta and LP-B: one SVM per kernel, and a linear program for the weights of their decision values.

With decision values :math:`f_{m,c}(x)` of kernel *m* for class *c*, and :math:`\beta` shared by all classes
(LP-beta) or per class (LP-B),

.. math:: \min_{\beta,\xi,\rho} -\rho + \frac{1}{\nu W} \sum_i s_i \xi_i \quad\text{with}\quad
    \sum_m \beta_{y_i m} f_{m,y_i}(x_i) - \beta_{cm} f_{m,c}(x_i) + \xi_i \ge \rho \;\; \forall i,\, c
    \ne y_i, \quad \xi, \beta \ge 0,\; \sum_m \beta_{cm} = 1 .

The sample weights :math:`s_i`, default 1, have the sum W.
"""

from __future__ import annotations

from numbers import Real
from typing import Literal, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from scipy.optimize import linprog

from cuelearn.core.docs import documented
from cuelearn.core.estimator import Number, StrOptions, parameters
from cuelearn.core.formulas import first_best
from cuelearn.core.run import progress
from cuelearn.core.samples import loss_weights
from cuelearn.expect import expect
from cuelearn.kernels.types import ClassWeight, Folds, RandomState
from cuelearn.mkl.base import KernelClassifier
from cuelearn.mkl.rivals.perclass import check_solved
from cuelearn.mkl.rivals.single import FOLDS, kernel_alone, stratified_folds
from cuelearn.mkl.rivals.svm import one_versus_rest, problem_weights, targets_of

NU_GRID = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SHARE = Number(Real, 0, 1, closed="neither")
# maximum wrong classes added per sample and round (measured)
ADDED = 3
# above this number of weights the interior-point method is faster (measured)
MANY_WEIGHTS = 500
# relative to the largest output: tolerances of margins and of the gap
VIOLATED = 1e-9
CLOSED = 1e-6
# HiGHS's tolerance; smaller weights are 0
SMALLEST_WEIGHT = 1e-8


class LPSolution(NamedTuple):
    weights: np.ndarray  # (n_kernels,) or (n_classes, n_kernels), on the simplex
    margin: float  # rho: at most a share nu of the samples has a smaller margin
    objective: float  # over all samples and classes
    dual_gap: float  # certified
    n_rounds: int  # linear programs solved
    n_rows: int  # (sample, wrong class) pairs in the last one


def weighted(outputs, weights):
    scores = np.zeros(outputs.shape[1:])
    for m in np.flatnonzero(np.atleast_2d(weights).any(axis=0)):
        scores += outputs[m] * weights[..., m]
    return scores


class MarginProgram:
    r"""The linear program for any nu; rows (`used`) that were needed once are kept.

    For fixed weights the objective is minus the mean of the :math:`\nu W` smallest margins over the best
    wrong class. The dual is solved, which is small; its multipliers are the weights:

    .. math:: \min_{a \ge 0,\, \gamma} \sum_c \gamma_c \quad\text{with}\quad \sum_{i,c} a_{ic} = 1, \quad
        \sum_c a_{ic} \le \frac{s_i}{\nu W} \;\;\forall i, \quad
        \sum_{i: y_i = c} \sum_{c'} a_{ic'} f_{m,c}(x_i) - \sum_i a_{ic} f_{m,c}(x_i) \le \gamma_c \;\;
        \forall m, c
    """

    def __init__(self, outputs, labels, per_class, sample_weight):
        self.outputs = outputs
        self.labels = labels
        self.per_class = per_class
        self.n_kernels, self.n_samples, self.n_classes = outputs.shape
        self.scale = float(np.abs(outputs).max()) or 1.0
        self.samples = np.arange(self.n_samples)
        self.caps = sample_weight
        self.total = float(sample_weight.sum())
        scores = outputs.mean(axis=0)
        scores[self.samples, labels] = -np.inf
        self.used = np.zeros(scores.shape, dtype=np.bool_)
        self.used[self.samples, scores.argmax(axis=1)] = True  # one row each makes the dual feasible

    def margins(self, weights):
        """Margins over every class; infinite for the label."""
        scores = weighted(self.outputs, weights)
        margins = scores[self.samples, self.labels][:, None] - scores
        margins[self.samples, self.labels] = np.inf
        return margins

    def value(self, margins, nu):
        """Objective and rho."""
        order = np.argsort(margins)
        rank = int(np.searchsorted(np.cumsum(self.caps[order]), nu * self.total * (1.0 - 1e-12)))
        rho = float(margins[order[rank]])
        return float((self.caps * np.maximum(0.0, rho - margins)).sum() / (nu * self.total)) - rho, rho

    def solve(self, nu):
        if self.n_kernels == 1:
            weights = np.ones((self.n_classes, 1) if self.per_class else 1)
            objective, rho = self.value(self.margins(weights).min(axis=1), nu)
            return LPSolution(weights, rho, objective, 0.0, 0, 0)
        rounds = 0
        while True:
            rounds += 1
            i, c = np.nonzero(self.used)
            weights, bound = self.solve_rows(i, c, nu)
            margins = self.margins(weights)
            objective, rho = self.value(margins.min(axis=1), nu)
            kept = np.where(self.used, margins, np.inf).min(axis=1)
            # violated rows would raise the sample's slack
            limit = np.minimum(kept, self.value(kept, nu)[1]) - VIOLATED * self.scale
            new = margins < limit[:, None]
            if not new.any():
                return LPSolution(weights, rho, objective, max(0.0, objective - bound), rounds, i.size)
            if self.n_classes > ADDED:
                largest = np.partition(margins, ADDED - 1, axis=1)[:, ADDED - 1]
                new &= margins <= largest[:, None]
            self.used |= new

    def solve_rows(self, i, c, nu):
        share = max(float(self.caps.min()), nu * self.total)  # nu below any sample: no slack
        products = self.products(i, c)
        n_weights, n_rows = products.shape
        n_sums = 1
        if self.per_class:
            n_sums = self.n_classes
        sums = sparse.kron(sparse.eye_array(n_sums), np.ones((self.n_kernels, 1)))
        every = sparse.csr_array(
            (np.ones(n_rows), (i, np.arange(n_rows))), shape=(self.n_samples, n_rows + n_sums)
        )
        several = np.flatnonzero(np.bincount(i, minlength=self.n_samples) > 1)
        caps = every[several]
        # HiGHS's tolerances are absolute: the variables are a nu W, around 1
        program = {
            "c": np.r_[np.zeros(n_rows), np.ones(n_sums)],
            "A_ub": sparse.vstack([sparse.hstack([products, -sums]), caps]).tocsc(),
            "b_ub": np.r_[np.zeros(n_weights), self.caps[several]],
            "A_eq": sparse.csr_array(np.r_[np.ones(n_rows), np.zeros(n_sums)][None]),
            "b_eq": [share],
            "bounds": np.r_[np.c_[np.zeros(n_rows), self.caps[i]], np.tile([-np.inf, np.inf], (n_sums, 1))],
        }
        methods = ["highs-ds", "highs-ipm"]
        for method in methods[::-1] if n_weights > MANY_WEIGHTS else methods:
            solution = linprog(method=method, **program)
            if solution.status == 0:
                break
        check_solved(solution)
        weights = -np.asarray(solution.ineqlin.marginals)[:n_weights].reshape(n_sums, self.n_kernels)
        weights[weights < SMALLEST_WEIGHT] = 0.0
        weights /= weights.sum(axis=1, keepdims=True)
        point = self.feasible(np.asarray(solution.x)[:n_rows], i, share) / share
        largest = (products @ point).reshape(n_sums, self.n_kernels).max(axis=1)
        return weights if self.per_class else weights[0], -self.scale * float(largest.sum())

    def products(self, i, c):
        """Coefficients of the weights (rows) in the pairs' margins (columns), divided by `scale`."""
        own = self.outputs[:, i, self.labels[i]] / self.scale
        other = self.outputs[:, i, c] / self.scale
        if not self.per_class:
            return sparse.csr_array(own - other)
        rows = np.stack([self.labels[i], c])[:, None] * self.n_kernels + np.arange(self.n_kernels)[:, None]
        columns = np.broadcast_to(np.arange(i.size), rows.shape)
        places = (rows.ravel(), columns.ravel())
        shape = (self.n_classes * self.n_kernels, i.size)
        return sparse.csr_array((np.stack([own, -other]).ravel(), places), shape=shape)

    def feasible(self, point, i, share):
        """Make the dual point feasible: at most `caps` per sample, `share` in all."""
        point = np.clip(point, 0.0, self.caps[i])
        point /= np.maximum(1.0, np.bincount(i, point, self.n_samples) / self.caps)[i]
        total = point.sum()
        if total >= share:
            return point * (share / total)
        room = np.maximum(0.0, self.caps - np.bincount(i, point, self.n_samples))
        first = np.unique(i, return_index=True)[1]
        point[first] += room * min(1.0, (share - total) / room.sum())
        return point


def solve_lp_beta(outputs: np.ndarray, labels: np.ndarray, nu: float, per_class: bool = False) -> LPSolution:
    """Solve the linear program of LP-beta, or of LP-B with `per_class`.

    Parameters
    ----------
    outputs : ndarray, shape (n_kernels, n_samples, n_classes)
        Decision values f of each kernel's classifiers, on samples not used to train them.
    labels : ndarray of int, shape (n_samples,)
        From 0 to n_classes - 1.
    nu : float in (0, 1)
        Share of the samples whose margins count; below 1/n the program has no slack.
    per_class : bool, default False

    Returns
    -------
    LPSolution
        For LP-B not always unique: at small nu a class may have no active constraint.

    Raises
    ------
    ValueError, RuntimeError
        On invalid arguments; if HiGHS fails.

    Notes
    -----
    Time on one core, 39 kernels: 0.05 s for 300 samples, 10 classes; 1 to 5 s for 3,060 samples, 102 classes,
    50 s with weights per class.

    References
    ----------
    Gehler and Nowozin, ICCV 2009. Binary program: Demiriz, Bennett and Shawe-Taylor, Machine Learning 46
    (2002).

    Examples
    --------
    Two kernels: the first is right about every sample, the second about every other one.

    >>> from cuelearn.mkl import solve_lp_beta
    >>> import numpy as np
    >>> labels = np.array([0, 1, 0, 1])
    >>> right = np.where(labels[:, None] == [0, 1], 1.0, -1.0)
    >>> result = solve_lp_beta(np.stack([right, right * [[1], [1], [-1], [-1]]]), labels, nu=0.5)
    >>> result.weights
    array([1., 0.])
    >>> result.margin, result.objective
    (2.0, -2.0)
    """
    outputs = expect("outputs", outputs, shape=("n_kernels", "n_samples", "n_classes"))
    _, n, n_classes = outputs.shape
    labels = expect("labels", labels, kind="int", shape=(n,), low=0, high=n_classes - 1)
    if not SHARE.is_satisfied_by(nu):
        raise ValueError(f"nu must be a number in (0, 1), got {nu!r}")
    if n_classes < 2:
        raise ValueError(f"outputs must have at least 2 classes, got shape {outputs.shape}")
    return MarginProgram(outputs, labels, bool(per_class), np.ones(n)).solve(float(nu))


def fold_outputs(kernel, labels, n_classes, C, weights, train, test):
    square = np.ascontiguousarray(kernel[np.ix_(train, train)])
    if weights is not None:
        weights = weights[:, train]
    coef, bias = one_versus_rest(square, labels[train], n_classes, C, weights=weights)
    # not by BLAS, whose last bits depend on its threads
    return np.einsum("ik,kc->ic", kernel[np.ix_(test, train)], coef) + bias


def weight_right(scores, labels, weights):
    return np.sum(weights * (np.argmax(scores, axis=1) == labels))


@documented
@parameters
class LPBeta(KernelClassifier):
    r"""LP-beta and LP-B: SVMs on single kernels, their decision values weighted by a linear program.

    The score of class *c* is :math:`\sum_m \beta_m f_{m,c}(x)`, with :math:`f_{m,c}` the decision value of an
    SVM of class *c* against the rest on kernel *m*. The weights maximise the mean of the smallest margins
    (`solve_lp_beta`) on cross-validated decision values; then the SVMs of the kernels with weight are trained
    on all samples.

    Parameters
    ----------
    $kernels
    C : float > 0, default 10.0
        libsvm's C, for all kernels.
    $class_weight
    nu : float in (0, 1) or "cv", default "cv"
        Share of the samples, those with the smallest margins, whose mean margin is maximised. "cv" selects
        from 0.05, 0.1, 0.2, ..., 0.9 by the cross-validated accuracy of the program, the larger one on ties.
        A small nu on a hard problem prefers kernels with decision values near 0.
    per_class : bool, default False
        LP-B: kernel weights for each class (with two classes the same).
    $folds $missing $normalize $memory $n_jobs
    random_state : int, default 0
        Seed of the folds.
    $verbose

    Attributes
    ----------
    kernel_weights_ : ndarray, shape (n_kernels,), or (n_classes, n_kernels) with `per_class`
        On the simplex; most are exactly 0.
    dual_coefs_, intercepts_ : ndarray, shape (n_kernels, n_support, n_classes) and (n_kernels, n_classes)
        SVMs of each kernel; 0 for kernels without weight.
    $classes_ $support_ $kernel_accuracy_ $folds_
    nu_, nu_accuracy_ : float, and ndarray, shape (10,), with ``nu="cv"``
        The share used, and the cross-validated accuracy for all values.
    margin_, objective_, dual_gap_ : float
        :math:`\rho`, objective and certified gap of the linear program.
    n_iter_, n_updates_ : int
        Linear programs solved for the weights; SVMs trained.
    converged_ : bool
        Whether the gap is below a millionth of the largest decision value.

    Notes
    -----
    Cost: ``5 * n_kernels * n_classes`` SVMs on a share of the samples, ``n_classes`` per kernel with weight,
    and 51 linear programs with ``nu="cv"``, else one. Memory: one (n, n) matrix and a part of it per thread,
    and ``8 * n_kernels * n * n_classes`` bytes. A weight of 2 is not exactly the sample twice, as folds may
    separate the copies.

    References
    ----------
    Gehler and Nowozin, ICCV 2009. "LP-beta" of thesis 4.4.5 and JMLR 13 (2012); the grid of nu is ours.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import LPBeta
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = LPBeta(cues, nu=0.3).fit(X, y)
    >>> bool(model.kernel_weights_[1] > 0.5), model.converged_
    (True, True)
    """

    C: float = 10.0
    class_weight: ClassWeight = None
    nu: float | Literal["cv"] = "cv"
    per_class: bool = False
    folds: Folds = None
    memory: float = 2e9
    n_jobs: int | None = None
    random_state: RandomState = 0
    verbose: bool = False

    _parameter_constraints = {
        "nu": [SHARE, StrOptions({"cv"})],
        "per_class": ["boolean"],
        "folds": [list, None],
    }

    def _train(self, labels, sample_weight):
        folds = stratified_folds(labels, FOLDS, self.random_state, self.folds, sample_weight)
        self.folds_ = folds
        targets = targets_of(labels, self.classes_.size)
        weights = problem_weights(targets, sample_weight, self.class_weight, self.classes_, labels)
        outputs = self._fold_outputs(labels, folds, weights)
        counts = np.zeros(labels.size)
        tested = np.concatenate([test for _, test in folds])
        counts[tested] = 1.0 if sample_weight is None else sample_weight[tested]
        self.kernel_accuracy_ = np.array([weight_right(f, labels, counts) / counts.sum() for f in outputs])
        solution = self._weigh(outputs, labels, folds, counts)
        self.kernel_weights_ = solution.weights
        self.margin_ = solution.margin
        self.objective_ = solution.objective
        self.n_iter_ = solution.n_rounds
        self.dual_gap_ = np.nan if self.bank_.indefinite else solution.dual_gap
        self.converged_ = bool(self.dual_gap_ <= CLOSED * np.abs(outputs).max())
        n_fits = len(outputs) * len(folds) + self._fit_machines(labels, weights)
        self.n_updates_ = n_fits * len(targets)

    def _fold_outputs(self, labels, folds, weights):
        """Cross-validated decision values (n_kernels, n, n_classes)."""
        n_kernels = self.bank_.n_kernels
        n_classes = self.classes_.size
        outputs = np.zeros((n_kernels, labels.size, n_classes))
        with Parallel(n_jobs=self.n_jobs, require="sharedmem") as parallel:
            for j in progress(range(n_kernels), name="SVMs of the folds", verbose=self.verbose):
                arguments = kernel_alone(self.bank_, j), labels, n_classes, self.C, weights
                parts = parallel(delayed(fold_outputs)(*arguments, *fold) for fold in folds)
                for (_, test), part in zip(folds, parts, strict=True):
                    outputs[j, test] = part
        return outputs

    def _weigh(self, outputs, labels, folds, counts):
        """Choose nu, then weights; samples of count 0 have no margins."""
        costs = loss_weights(counts, self.class_weight, self.classes_, labels)

        def program(rows):
            rows = np.asarray(rows)[counts[rows] > 0.0]
            return MarginProgram(outputs[:, rows], labels[rows], per_class, costs[rows])

        # with two classes f_1 = -f_0: separate weights are not identifiable
        per_class = bool(self.per_class) and self.classes_.size > 2
        self.nu_ = self.nu
        if self.nu == "cv":
            right = np.zeros(len(NU_GRID))
            for train, test in progress(folds, name="choosing nu", verbose=self.verbose):
                of_fold = program(train)
                for k, nu in enumerate(NU_GRID):
                    scores = weighted(outputs[:, test], of_fold.solve(nu).weights)
                    right[k] += weight_right(scores, labels[test], counts[test])
            self.nu_accuracy_ = right / counts.sum()
            self.nu_ = NU_GRID[-1 - first_best(right[::-1])]
        solution = program(np.arange(labels.size)).solve(float(self.nu_))
        if self.per_class and not per_class:
            solution = solution._replace(weights=np.tile(solution.weights, (2, 1)))
        return solution

    def _fit_machines(self, labels, weights):
        """Train the kernels with weight; returns their number."""
        n_kernels = self.bank_.n_kernels
        n_classes = self.classes_.size
        active = np.flatnonzero(np.atleast_2d(self.kernel_weights_).any(axis=0))
        coefs = np.zeros((active.size, labels.size, n_classes))
        self.intercepts_ = np.zeros((n_kernels, n_classes))
        for k, j in enumerate(progress(active, name="SVMs of all samples", verbose=self.verbose)):
            kernel = kernel_alone(self.bank_, j)
            coefs[k], self.intercepts_[j] = one_versus_rest(
                kernel, labels, n_classes, self.C, self.n_jobs, weights
            )
        self.support_ = np.flatnonzero(coefs.any(axis=(0, 2)))
        self.dual_coefs_ = np.zeros((n_kernels, self.support_.size, n_classes))
        self.dual_coefs_[active] = coefs[:, self.support_]
        self.bank_support_ = self.support_
        self.n_seen_ = labels.size
        return active.size

    @property
    def dual_coef_(self) -> np.ndarray:  # type: ignore[override]
        """`dual_coefs_` with the samples first."""
        return self.dual_coefs_.transpose(1, 0, 2)

    def _class_scores(self, X):
        n_rows, active, blocks = self._blocks(X)
        weights = np.broadcast_to(self.kernel_weights_, self.intercepts_.T.shape).T[active]
        coefs = self.dual_coefs_[active] * weights[:, None]
        scores = np.zeros((n_rows, weights.shape[1]))
        for rows, block in blocks:
            for part, coef in zip(block, coefs, strict=True):
                scores[rows] += part @ coef
        return scores + (self.intercepts_[active] * weights).sum(axis=0)
