r"""LP-beta and LP-B: an SVM for every kernel, a linear programme for what each of them counts.

Other methods of this package combine the kernels and then train; this one trains on every kernel and then
combines the decision values :math:`f_{m,c}(x)` of kernel *m* for class *c*: the score is :math:`\sum_m
\beta_m f_{m,c}(x)`,

.. math:: \min_{\beta,\xi,\rho} -\rho + \frac{1}{\nu n} \sum_i \xi_i \quad\text{with}\quad
          \sum_m \beta_m \big(f_{m,y_i}(x_i) - f_{m,c}(x_i)\big) + \xi_i \ge \rho \;\; \forall i,\, c \ne y_i,
          \quad \xi \ge 0,\; \beta \ge 0,\; \sum_m \beta_m = 1 .

LP-B has weights of its own for each class, :math:`B_{cm} \ge 0` with :math:`\sum_m B_{cm} = 1`, and
:math:`\sum_m B_{y_i m} f_{m,y_i}(x_i) - B_{cm} f_{m,c}(x_i)` in the constraints. For fixed weights the best
:math:`\xi, \rho` are known: with :math:`\mu_i(\beta)` the margin of sample *i* over its best wrong class, the
objective is minus the mean of the :math:`\nu n` smallest margins. So the weights maximise the mean margin of
the worst share :math:`\nu` of the samples.

The dual is solved, because it is small where the primal is not:

.. math:: \min_{a \ge 0,\, \gamma} \gamma \quad\text{with}\quad \sum_{i,c} a_{ic} = 1, \quad
          \sum_c a_{ic} \le \frac{1}{\nu n} \;\;\forall i, \quad
          \sum_{i,c} a_{ic} \big(f_{m,y_i}(x_i) - f_{m,c}(x_i)\big) \le \gamma \;\; \forall m

(LP-B: one :math:`\gamma_c` per class, their sum is minimised); the weights are the multipliers of the last
constraints. It starts with one wrong class per sample: as long as a sample has but one, its second constraint
is a bound of a variable and a basis of the simplex method has only as many rows as there are weights. Wrong
classes that turn out to be violated are added until none is, so the result is that of the whole programme.
"""

from dataclasses import field
from numbers import Real
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from scipy.optimize import linprog

from cuelearn.core.checks import as_generator
from cuelearn.core.docs import documented
from cuelearn.core.estimator import POSITIVE, Number, StrOptions, parameters
from cuelearn.core.progress import progress
from cuelearn.mkl.base import KernelClassifier
from cuelearn.mkl.single import FOLDS, kernel_alone, stratified_folds
from cuelearn.mkl.svm import one_versus_rest
from cuelearn.mkl.training import Rounds

__all__ = ["LPBeta", "LPSolution", "MarginProgramme", "solve_lp_beta"]

C_GRID = (0.1, 1.0, 10.0, 100.0, 1000.0)
NU_GRID = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SHARE = Number(Real, 0, 1, closed="neither")
# wrong classes that one round adds for one sample, at most: measured, fewer cost rounds and more cost columns
ADDED = 3
# with more weights than this the interior-point method is faster than the simplex method (measured)
MANY_WEIGHTS = 500
# relative to the largest output: below this a margin counts as kept, and the gap as closed
VIOLATED = 1e-9
CLOSED = 1e-6
# weights below HiGHS's own tolerance are 0
SMALLEST_WEIGHT = 1e-8


class LPSolution(NamedTuple):
    """What `solve_lp_beta` returns."""

    weights: np.ndarray  # (n_kernels,) or (n_classes, n_kernels): on the simplex, or each row
    margin: float  # rho: at most the share nu of the samples has a smaller margin
    objective: float  # at the weights, over all samples and classes
    dual_gap: float  # its certified distance from the optimum
    n_rounds: int  # linear programmes solved
    n_rows: int  # pairs of a sample and a wrong class in the last of them


def weighted(outputs, weights):
    """Scores (n_samples, n_classes): a sum over the kernels with weight."""
    scores = np.zeros(outputs.shape[1:])
    for m in np.flatnonzero(np.atleast_2d(weights).any(axis=0)):
        scores += outputs[m] * weights[..., m]
    return scores


class MarginProgramme:
    """The linear programme for any nu; rows (`used`) that were needed once are kept for the next."""

    def __init__(self, outputs, labels, per_class):
        self.outputs, self.labels, self.per_class = outputs, labels, per_class
        self.n_kernels, self.n_samples, self.n_classes = outputs.shape
        self.scale = float(np.abs(outputs).max()) or 1.0
        self.samples = np.arange(self.n_samples)
        scores = outputs.mean(axis=0)
        scores[self.samples, labels] = -np.inf
        self.used = np.zeros(scores.shape, dtype=np.bool_)
        self.used[self.samples, scores.argmax(axis=1)] = True  # one row each, which makes the dual feasible

    def margins(self, weights):
        """Margins over every class, shape (n_samples, n_classes); infinite for the label."""
        scores = weighted(self.outputs, weights)
        margins = scores[self.samples, self.labels][:, None] - scores
        margins[self.samples, self.labels] = np.inf
        return margins

    def value(self, margins, nu):
        """Objective and rho for given margins over the best wrong class."""
        rank = max(1, int(np.ceil(nu * self.n_samples * (1.0 - 1e-12))))
        rho = float(np.partition(margins, rank - 1)[rank - 1])
        return float(np.maximum(0.0, rho - margins).sum() / (nu * self.n_samples)) - rho, rho

    def solve(self, nu):
        """The optimum of the whole programme; returns a `LPSolution`."""
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
            # a row is violated if it would raise the sample's slack
            limit = np.minimum(kept, self.value(kept, nu)[1]) - VIOLATED * self.scale
            new = margins < limit[:, None]
            if not new.any():
                return LPSolution(weights, rho, objective, max(0.0, objective - bound), rounds, i.size)
            if self.n_classes > ADDED:
                largest = np.partition(margins, ADDED - 1, axis=1)[:, ADDED - 1]
                new &= margins <= largest[:, None]
            self.used |= new

    def solve_rows(self, i, c, nu):
        """Optimal weights for some rows, and the value of a dual point."""
        share = max(1.0, nu * self.n_samples)  # fewer than one sample: a margin without slack
        products = self.products(i, c)
        n_weights, n_rows = products.shape
        n_sums = self.n_classes if self.per_class else 1
        sums = sparse.kron(sparse.eye_array(n_sums), np.ones((self.n_kernels, 1)))
        several = np.flatnonzero(np.bincount(i, minlength=self.n_samples) > 1)
        place = np.full(self.n_samples, -1)
        place[several] = np.arange(several.size)
        shared = np.flatnonzero(place[i] >= 0)
        caps = sparse.csr_array(
            (np.ones(shared.size), (place[i[shared]], shared)), shape=(several.size, n_rows + n_sums)
        )
        # the variables are a times nu n, so that they and the products are numbers around 1: HiGHS's
        # tolerances are absolute
        programme = {
            "c": np.r_[np.zeros(n_rows), np.ones(n_sums)],
            "A_ub": sparse.vstack([sparse.hstack([products, -sums]), caps]).tocsc(),
            "b_ub": np.r_[np.zeros(n_weights), np.ones(several.size)],
            "A_eq": sparse.csr_array(np.r_[np.ones(n_rows), np.zeros(n_sums)][None]),
            "b_eq": [share],
            "bounds": np.r_[np.tile([0.0, 1.0], (n_rows, 1)), np.tile([-np.inf, np.inf], (n_sums, 1))],
        }
        methods = ["highs-ds", "highs-ipm"]
        for method in methods[::-1] if n_weights > MANY_WEIGHTS else methods:
            found = linprog(method=method, **programme)
            if found.status == 0:
                break
        else:
            raise RuntimeError(f"the linear programme over the kernel weights failed: {found.message}")
        weights = -np.asarray(found.ineqlin.marginals)[:n_weights].reshape(n_sums, self.n_kernels)
        weights[weights < SMALLEST_WEIGHT] = 0.0
        weights /= weights.sum(axis=1, keepdims=True)
        point = self.feasible(np.asarray(found.x)[:n_rows], i, share) / share
        largest = (products @ point).reshape(n_sums, self.n_kernels).max(axis=1)
        return weights if self.per_class else weights[0], -self.scale * float(largest.sum())

    def products(self, i, c):
        """Coefficients of the weights (rows) in the margins of the pairs (columns), divided by `scale`."""
        own, other = self.outputs[:, i, self.labels[i]] / self.scale, self.outputs[:, i, c] / self.scale
        if not self.per_class:
            return sparse.csr_array(own - other)
        kernels = np.arange(self.n_kernels)[:, None]
        places = np.stack([self.labels[i] * self.n_kernels + kernels, c * self.n_kernels + kernels])
        columns = np.broadcast_to(np.arange(i.size), places.shape)
        return sparse.csr_array(
            (np.stack([own, -other]).ravel(), (places.ravel(), columns.ravel())),
            shape=(self.n_classes * self.n_kernels, i.size),
        )

    def feasible(self, point, i, share):
        """The solver's dual point without its tolerances: at most 1 for each sample, `share` in all."""
        point = np.clip(point, 0.0, 1.0)
        point /= np.maximum(1.0, np.bincount(i, point, self.n_samples))[i]
        total = point.sum()
        if total >= share:
            return point * (share / total)
        room = np.maximum(0.0, 1.0 - np.bincount(i, point, self.n_samples))
        first = np.unique(i, return_index=True)[1]
        point[first] += room * min(1.0, (share - total) / room.sum())
        return point


def solve_lp_beta(outputs, labels, nu, per_class=False):
    """Solve the linear programme of LP-beta, or of LP-B with `per_class`, which heads this module, exactly.

    Parameters
    ----------
    outputs : ndarray, shape (n_kernels, n_samples, n_classes)
        Decision values f of each kernel's classifiers, on samples they were not trained on.
    labels : ndarray of int, shape (n_samples,)
        From 0 to n_classes - 1.
    nu : float in (0, 1)
        Share of the samples whose margins count; below 1/n it is the programme without slack.
    per_class : bool, default False

    Returns
    -------
    LPSolution
        Of LP-B it need not be unique: at small nu any weights may do for a class none of whose constraints is
        active.

    Raises
    ------
    ValueError, RuntimeError
        With one sentence that names the argument; with HiGHS's message if it fails.

    Notes
    -----
    HiGHS gets programmes of ``n_weights + n`` constraints at most and of little more than n columns. Measured
    on one core: 0.05 s for 300 samples, 39 kernels and 10 classes, 1 to 5 s for 3,060 samples, 39 kernels and
    102 classes (with all rows at once: 35 s), the same with weights per class 50 s.

    References
    ----------
    Gehler and Nowozin, On feature combination for multiclass object classification, ICCV 2009. The binary
    programme is that of Demiriz, Bennett and Shawe-Taylor, Machine Learning 46 (2002).

    Examples
    --------
    Two kernels: the first is right about every sample, the second about every other one.

    >>> import numpy as np
    >>> labels = np.array([0, 1, 0, 1])
    >>> right = np.where(labels[:, None] == [0, 1], 1.0, -1.0)
    >>> found = solve_lp_beta(np.stack([right, right * [[1], [1], [-1], [-1]]]), labels, nu=0.5)
    >>> found.weights
    array([1., 0.])
    >>> found.margin, found.objective
    (2.0, -2.0)
    """
    outputs, labels = np.asarray(outputs, dtype=np.float64), np.asarray(labels)
    if not SHARE.is_satisfied_by(nu):
        raise ValueError(f"nu must be a number in (0, 1), got {nu!r}")
    if outputs.ndim != 3 or 0 in outputs.shape or outputs.shape[2] < 2:
        raise ValueError(
            f"outputs must have shape (n_kernels, n_samples, n_classes >= 2), got {outputs.shape}"
        )
    if not np.isfinite(outputs).all():
        raise ValueError("outputs holds NaN or infinite values")
    _, n, n_classes = outputs.shape
    if (
        labels.shape != (n,)
        or labels.dtype.kind not in "iu"
        or not np.isin(labels, np.arange(n_classes)).all()
    ):
        raise ValueError(f"labels must hold {n} integers, from 0 to {n_classes - 1}")
    return MarginProgramme(outputs, labels, bool(per_class)).solve(float(nu))


def fold_outputs(kernel, labels, n_classes, C, train, test):
    """Decision values of the test part from SVMs of the training part."""
    square = np.ascontiguousarray(kernel[np.ix_(train, train)])
    coef, bias = one_versus_rest(square, labels[train], n_classes, C)
    # not by BLAS, whose last bits follow the number of its threads
    return np.einsum("ik,kc->ic", kernel[np.ix_(test, train)], coef) + bias


def checked_grid(name, values, kind):
    """The values to choose from in rising order, or an error that names them."""
    values = list(np.asarray(values, dtype=object))
    if not values or not all(kind.is_satisfied_by(value) for value in values):
        raise ValueError(f"{name} must hold one or more of {kind}, got {values!r}")
    return sorted(float(value) for value in values)


def n_right(scores, labels):
    """Samples classified correctly."""
    return np.sum(np.argmax(scores, axis=1) == labels)


@documented
@parameters
class LPBeta(KernelClassifier):
    r"""LP-beta and LP-B: SVMs on single kernels, their decision values weighted by a linear programme.

    A sample is scored by :math:`\sum_m \beta_m f_{m,c}(x)`, with :math:`f_{m,c}` the decision value, bias
    included, of an SVM of class *c* against the rest on kernel *m*. The weights maximise the mean of the
    smallest margins (`solve_lp_beta`), on decision values from SVMs that were trained without the sample
    (stratified folds); then the SVMs of the kernels with weight are trained on all samples.

    Parameters
    ----------
    $kernels
    C : float > 0, sequence of such, or "cv", default 1.0
        libsvm's C, of all kernels or one for each. "cv": each kernel takes the value of `C_grid` with the
        best cross-validated accuracy of its own SVMs, the smaller one on ties.
    nu : float in (0, 1) or "cv", default "cv"
        Share of the samples, those with the smallest margins, whose mean margin is maximised. "cv": the value
        of `nu_grid` whose programme, trained on all folds but one, classifies that one best; the larger one
        on ties. Where the worst share has negative margins under every good kernel, the programme prefers
        kernels with decision values near 0, which are good for nothing: nu must not be small then.
    per_class : bool, default False
        LP-B: kernel weights for each class. (Two classes have the same decision values, hence the same
        weights.)
    cv : int >= 2, default 5
        Stratified folds; fewer where a class has fewer samples.
    C_grid : sequence of float > 0, default (0.1, 1, 10, 100, 1000)
        For ``C="cv"``.
    nu_grid : sequence of float in (0, 1), default (0.05, 0.1, 0.2, ..., 0.9)
        For ``nu="cv"``.
    $normalize $memory $n_jobs
    random_state : int, default 0
        Of the folds.
    $verbose

    Attributes
    ----------
    kernel_weights_ : ndarray, shape (n_kernels,), or (n_classes, n_kernels) with `per_class`
        On the simplex, or each row; most are exactly 0.
    dual_coefs_, intercepts_ : ndarray, shape (n_kernels, n_support, n_classes) and (n_kernels, n_classes)
        Of each kernel's SVMs; 0 for kernels without weight, whose SVMs on all samples are not needed.
    $classes_ $support_
    kernel_C_, nu_ : ndarray, shape (n_kernels,), and float
        The C of each kernel; the share.
    kernel_accuracy_, C_accuracy_ : ndarray, shape (n_kernels,), and (n_kernels, n_grid) with ``C="cv"``
        Cross-validated accuracy of every kernel alone, with its `kernel_C_` and with all of `C_grid` in
        rising order.
    nu_accuracy_ : ndarray, shape (n_grid,), with ``nu="cv"``
        The same of the second stage for all of `nu_grid`, in rising order.
    margin_, objective_, dual_gap_ : float
        Of the linear programme: :math:`\rho`, its value at the weights, its certified distance from the
        optimum.
    history_ : DataFrame
        One row for each stage ("outputs" of the folds, "programme" with the choice of nu, "machines" on all
        samples): seconds, n_updates (SVMs trained so far, one class each), n_support, objective, dual_gap.
    n_iter_, n_updates_ : int
        Linear programmes solved for the weights; SVMs trained.
    converged_ : bool
        Whether the gap is below a millionth of the largest decision value.

    Notes
    -----
    A fit trains ``n_kernels * cv * n_classes`` SVMs on a share of the samples, times the size of `C_grid`
    where C is chosen, then ``n_classes`` for every kernel with weight; and solves 51 linear programmes where
    nu is chosen, else one. Memory: one (n, n) matrix and a part of it for each thread besides the bank, and
    the decision values, ``8 * n_kernels * n * n_classes`` bytes.

    References
    ----------
    Gehler and Nowozin, On feature combination for multiclass object classification, ICCV 2009. "LP-beta" of
    the thesis's section 4.4.5 and JMLR 13 (2012), with their grid of C; the grid of nu is ours.
    """

    kernels: object = field(default=None, kw_only=False)
    C: object = 1.0
    nu: float | str = "cv"
    per_class: bool = False
    cv: int = 5
    C_grid: tuple = C_GRID
    nu_grid: tuple = NU_GRID
    normalize: bool = True
    memory: float = 2e9
    n_jobs: int | None = None
    random_state: object = 0
    verbose: bool = False

    _parameter_constraints = {
        **KernelClassifier._parameter_constraints,
        "C": [*POSITIVE, StrOptions({"cv"}), "array-like"],
        "nu": [SHARE, StrOptions({"cv"})],
        "per_class": ["boolean"],
        "cv": FOLDS,
        "C_grid": ["array-like"],
        "nu_grid": ["array-like"],
    }

    # ---------------------------------------------------------------- training

    def _train(self, labels):
        nus, grid = self._nus(), self._grid()
        folds, _ = stratified_folds(labels, self.cv, as_generator(self.random_state))
        n_machines = 1 if self.classes_.size == 2 else self.classes_.size
        stages = Rounds("LP-beta", 3, None, False)
        outputs = self._cross_validated_outputs(labels, folds, grid)
        self.n_updates_ = grid.size * len(folds) * n_machines
        stages.end(1, stage="outputs", n_updates=self.n_updates_)
        found = self._weigh(outputs, labels, folds, nus)
        self.kernel_weights_, self.margin_, self.n_iter_ = found.weights, found.margin, found.n_rounds
        self.objective_, self.dual_gap_ = found.objective, found.dual_gap
        self.converged_ = bool(found.dual_gap <= CLOSED * np.abs(outputs).max())
        known = {"objective": self.objective_, "dual_gap": self.dual_gap_}
        stages.end(2, stage="programme", n_updates=self.n_updates_, **known)
        self._fit_machines(labels)
        self.n_updates_ += self._active().size * n_machines
        known["n_support"] = self.support_.size
        stages.end(3, stage="machines", n_updates=self.n_updates_, **known)
        self.history_ = stages.history.frame()

    def _nus(self):
        """The values of nu to choose from."""
        if self.nu != "cv":
            return [float(self.nu)]
        return checked_grid("nu_grid", self.nu_grid, SHARE)

    def _grid(self):
        """The values of C to choose from, shape (n_kernels, n_grid)."""
        n_kernels = self.bank_.n_kernels
        if isinstance(self.C, str):
            return np.tile(checked_grid("C_grid", self.C_grid, *POSITIVE), (n_kernels, 1))
        values = np.asarray([self.C] * n_kernels if np.ndim(self.C) == 0 else self.C, dtype=object)
        if values.shape != (n_kernels,) or not all(map(POSITIVE[0].is_satisfied_by, values)):
            raise ValueError(f"C must be 'cv', or one or {n_kernels} positive numbers, got {self.C!r}")
        return values.astype(np.float64)[:, None]

    def _cross_validated_outputs(self, labels, folds, grid):
        """Decision values (n_kernels, n, n_classes) of SVMs trained without the sample's fold."""
        n_kernels, n_grid = grid.shape
        n_classes = self.classes_.size
        outputs = np.empty((n_kernels, labels.size, n_classes))
        accuracy = np.empty(grid.shape)
        with Parallel(n_jobs=self.n_jobs, prefer="threads") as parallel:
            for j in progress(range(n_kernels), name="SVMs of the folds", verbose=self.verbose):
                kernel = kernel_alone(self.bank_, j)
                found = parallel(
                    delayed(fold_outputs)(kernel, labels, n_classes, C, *fold)
                    for C in grid[j]
                    for fold in folds
                )
                candidates = np.empty((n_grid, *outputs.shape[1:]))
                for k in range(n_grid):
                    for (_, test), part in zip(folds, found[k * len(folds) :], strict=False):
                        candidates[k, test] = part
                    accuracy[j, k] = n_right(candidates[k], labels) / labels.size
                outputs[j] = candidates[np.argmax(accuracy[j])]
        self.kernel_accuracy_ = accuracy.max(axis=1)
        self.kernel_C_ = grid[np.arange(n_kernels), accuracy.argmax(axis=1)]
        if isinstance(self.C, str):
            self.C_accuracy_ = accuracy
        return outputs

    def _weigh(self, outputs, labels, folds, nus):
        """The second stage: choose nu, then the weights."""
        # the two columns of two classes are one decision value and its negative: weights of their own could
        # not be told apart
        per_class = bool(self.per_class) and self.classes_.size > 2
        self.nu_ = nus[0]
        if isinstance(self.nu, str):
            right = np.zeros(len(nus))
            for train, test in progress(folds, name="choosing nu", verbose=self.verbose):
                programme = MarginProgramme(outputs[:, train], labels[train], per_class)
                for k, nu in enumerate(nus):
                    right[k] += n_right(weighted(outputs[:, test], programme.solve(nu).weights), labels[test])
            self.nu_accuracy_ = right / labels.size
            self.nu_ = nus[int(np.flatnonzero(right == right.max())[-1])]
        solution = MarginProgramme(outputs, labels, per_class).solve(self.nu_)
        if self.per_class and not per_class:
            solution = solution._replace(weights=np.tile(solution.weights, (2, 1)))
        return solution

    def _fit_machines(self, labels):
        """SVMs on all samples of the kernels with weight."""
        n_kernels, n_classes, active = self.bank_.n_kernels, self.classes_.size, self._active()
        coefs = np.zeros((active.size, labels.size, n_classes))
        self.intercepts_ = np.zeros((n_kernels, n_classes))
        for k, j in enumerate(progress(active, name="SVMs of all samples", verbose=self.verbose)):
            kernel = kernel_alone(self.bank_, j)
            found = one_versus_rest(kernel, labels, n_classes, self.kernel_C_[j], self.n_jobs)
            coefs[k], self.intercepts_[j] = found
        self.support_ = np.flatnonzero(coefs.any(axis=(0, 2)))
        self.dual_coefs_ = np.zeros((n_kernels, self.support_.size, n_classes))
        self.dual_coefs_[active] = coefs[:, self.support_]
        self.bank_support_, self.n_seen_ = self.support_, labels.size

    # -------------------------------------------------------------- prediction

    @property
    def dual_coef_(self):
        """`dual_coefs_` with the samples first: kernels share no coefficients."""
        return self.dual_coefs_.transpose(1, 0, 2)

    def _active(self):
        """Kernels with weight."""
        return np.flatnonzero(np.atleast_2d(self.kernel_weights_).any(axis=0))

    def _class_scores(self, X):
        n_rows, active, blocks = self._blocks(X)
        weights = np.broadcast_to(self.kernel_weights_, self.intercepts_.T.shape).T[active]
        coefs, scores = self.dual_coefs_[active] * weights[:, None], np.zeros((n_rows, weights.shape[1]))
        for rows, block in blocks:
            for part, coef in zip(block, coefs, strict=True):
                scores[rows] += part @ coef
        return scores + (self.intercepts_[active] * weights).sum(axis=0)
