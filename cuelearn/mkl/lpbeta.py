r"""LP-beta and LP-B: an SVM for every kernel, a linear programme for what each of them counts.

Other methods of this package combine the kernels and then train; this one trains on every kernel and then combines the decision
values :math:`f_{m,c}(x)` of kernel *m* for class *c*. The score of class *c* is :math:`\sum_m \beta_m f_{m,c}(x)`, with the
weights

.. math:: \min_{\beta,\xi,\rho} -\rho + \frac{1}{\nu n} \sum_i \xi_i \quad\text{with}\quad
          \sum_m \beta_m \big(f_{m,y_i}(x_i) - f_{m,c}(x_i)\big) + \xi_i \ge \rho \;\; \forall i,\, c \ne y_i, \quad
          \xi \ge 0,\; \beta \ge 0,\; \sum_m \beta_m = 1 .

For fixed weights the best :math:`\xi, \rho` are known: with :math:`\mu_i(\beta)` the margin of sample *i* over its best wrong
class, the objective is minus the mean of the :math:`\nu n` smallest margins. So the weights maximise the mean margin of the
worst share :math:`\nu` of the samples. LP-B has weights of its own for each class: :math:`B_{cm} \ge 0` with
:math:`\sum_m B_{cm} = 1`.

The dual is solved, because it is small where the primal is not:

.. math:: \min_{a \ge 0,\, \gamma} \gamma \quad\text{with}\quad \sum_{i,c} a_{ic} = 1, \quad
          \sum_c a_{ic} \le \frac{1}{\nu n} \;\;\forall i, \quad
          \sum_{i,c} a_{ic} \big(f_{m,y_i}(x_i) - f_{m,c}(x_i)\big) \le \gamma \;\; \forall m

(LP-B: one :math:`\gamma_c` per class, their sum is minimised). Its optimum is that of the primal with the sign turned, the
weights are the multipliers of the last constraints. It starts with one wrong class per sample; as long as a sample has but one,
its second constraint is a bound of a variable and a basis of the simplex method has only as many rows as there are weights.
Wrong classes that turn out to be violated are added until none is, so the result is that of the whole programme.
"""

import sys
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from scipy.optimize import linprog
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted
from tqdm.auto import tqdm

from cuelearn.core.checks import as_generator, check_count, check_positive
from cuelearn.core.progress import BAR_AFTER
from cuelearn.kernels import CrossBank
from cuelearn.mkl.base import KernelClassifier
from cuelearn.mkl.problem import combined_kernel
from cuelearn.mkl.single import one_versus_rest
from cuelearn.mkl.training import History

__all__ = ["LPBeta", "LPSolution", "solve_lp_beta"]

C_GRID = (0.1, 1.0, 10.0, 100.0, 1000.0)
NU_GRID = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
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
    """What `solve_lp_beta` returns.

    Attributes
    ----------
    weights : ndarray, shape (n_kernels,) or (n_classes, n_kernels)
        On the simplex, or each row.
    margin : float
        :math:`\\rho`: at most the share :math:`\\nu` of the samples has a smaller margin.
    objective : float
        Value of the linear programme at the weights, over all samples and classes.
    dual_gap : float
        Its distance from the value of a dual point that was made feasible to the last digit: never less than the distance from the
        optimum.
    n_rounds : int
        Linear programmes solved.
    n_rows : int
        Pairs of a sample and a wrong class in the last of them.
    """

    weights: np.ndarray
    margin: float
    objective: float
    dual_gap: float
    n_rounds: int
    n_rows: int


def _check_nu(nu, words=""):
    value = np.asarray(nu)
    if value.ndim or value.dtype.kind not in "fiu" or not 0.0 < value < 1.0:
        raise ValueError(f"nu must be a number in (0, 1){words}, got {nu!r}")
    return float(value)


def _weighted(outputs, weights):
    """Scores (n_samples, n_classes): a sum over the kernels with weight."""
    scores = np.zeros(outputs.shape[1:])
    for m in np.flatnonzero(np.atleast_2d(weights).any(axis=0)):
        scores += outputs[m] * weights[..., m]
    return scores


class _Programme:
    """The linear programme of given outputs for any nu; rows that were needed once are kept for the next nu."""

    def __init__(self, outputs, labels, per_class):
        self.outputs, self.labels, self.per_class = outputs, labels, per_class
        self.n_kernels, self.n_samples, self.n_classes = outputs.shape
        self.scale = float(np.abs(outputs).max()) or 1.0
        self.samples = np.arange(self.n_samples)
        scores = outputs.mean(axis=0)
        scores[self.samples, labels] = -np.inf
        self.used = np.zeros(scores.shape, dtype=np.bool_)
        self.used[self.samples, scores.argmax(axis=1)] = (
            True  # every sample has a row, which makes the dual feasible
        )

    def margins(self, weights):
        """Margins over every class, shape (n_samples, n_classes); infinite for the label."""
        scores = _weighted(self.outputs, weights)
        margins = scores[self.samples, self.labels][:, None] - scores
        margins[self.samples, self.labels] = np.inf
        return margins

    def value(self, margins, nu):
        """Objective and rho for given margins over the best wrong class."""
        rank = max(1, int(np.ceil(nu * self.n_samples * (1.0 - 1e-12))))
        rho = float(np.partition(margins, rank - 1)[rank - 1])
        return float(np.maximum(0.0, rho - margins).sum() / (nu * self.n_samples)) - rho, rho

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
        # the variables are a times nu n, so that they and the products are numbers around 1: HiGHS's tolerances are absolute
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
        """Coefficients of the weights (rows) in the margins of the pairs (columns), in units of the largest output."""
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
    r"""Solve the linear programme of LP-beta or LP-B exactly.

    .. math:: \min_{\beta,\xi,\rho} -\rho + \frac{1}{\nu n} \sum_i \xi_i \quad\text{with}\quad
              \sum_m \beta_m (f_{m,i,y_i} - f_{m,i,c}) + \xi_i \ge \rho \;\;\forall i,\, c \ne y_i,\quad
              \xi, \beta \ge 0,\; \sum_m \beta_m = 1

    and for LP-B :math:`\sum_m B_{y_i m} f_{m,i,y_i} - B_{cm} f_{m,i,c}` in place of the sum, with :math:`\sum_m B_{cm} = 1` for
    every class.

    Parameters
    ----------
    outputs : ndarray, shape (n_kernels, n_samples, n_classes)
        Decision values f of each kernel's classifiers, on samples they were not trained on.
    labels : ndarray of int, shape (n_samples,)
        From 0 to n_classes - 1.
    nu : float in (0, 1)
        Share of the samples whose margins count.
    per_class : bool, default False
        LP-B.

    Returns
    -------
    LPSolution

    Raises
    ------
    ValueError
        With one sentence that names the argument.
    RuntimeError
        If HiGHS fails, with its message.

    Notes
    -----
    The programme is feasible for every positive nu and bounded up to nu = 1: a larger margin gains 1 and costs 1/nu in the end. At
    nu = 1 its margin is not unique (the weights maximise the mean margin of all samples); below 1/n it is the programme without
    slack. The optimum of LP-B need not be unique: at small nu the weights of a class none of whose constraints is active may be
    any on the simplex.

    Rows are added as they are needed; n samples with R rows cost HiGHS a programme of ``n_weights + n`` constraints at most and R
    columns, with R a little above n. Measured on one core: 0.05 s for 300 samples, 39 kernels and 10 classes, 1 to 5 s
    for 3,060 samples, 39 kernels and 102 classes (with all rows at once: 35 s), the same with weights per class 50 s.

    References
    ----------
    Gehler and Nowozin, On feature combination for multiclass object classification, ICCV 2009, "LP-beta" and "LP-B". The binary
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
    outputs, labels, nu = np.asarray(outputs, dtype=np.float64), np.asarray(labels), _check_nu(nu)
    if outputs.ndim != 3 or 0 in outputs.shape or outputs.shape[2] < 2:
        raise ValueError(
            f"outputs must have shape (n_kernels, n_samples, n_classes) with at least 2 classes, got {outputs.shape}"
        )
    if not np.isfinite(outputs).all():
        raise ValueError("outputs holds NaN or infinite values")
    if (
        labels.shape != outputs.shape[1:2]
        or labels.dtype.kind not in "iu"
        or labels.min() < 0
        or labels.max() >= outputs.shape[2]
    ):
        raise ValueError(
            f"labels must hold one integer from 0 to {outputs.shape[2] - 1} for each of {outputs.shape[1]} samples"
        )
    return _Programme(outputs, labels, bool(per_class)).solve(nu)


def _fold_outputs(kernel, labels, n_classes, C, train, test):
    """Decision values of the test part from SVMs of the training part."""
    coef, bias = one_versus_rest(
        np.ascontiguousarray(kernel[np.ix_(train, train)]), labels[train], n_classes, C
    )
    # not by BLAS, whose last bits follow the number of its threads
    return np.einsum("ik,kc->ic", kernel[np.ix_(test, train)], coef) + bias


def _accuracy(scores, labels):
    return float(np.mean(np.argmax(scores, axis=1) == labels))


class LPBeta(KernelClassifier):
    r"""LP-beta and LP-B: SVMs on single kernels, their decision values weighted by a linear programme.

    .. math:: \min_{\beta,\xi,\rho} -\rho + \frac{1}{\nu n} \sum_i \xi_i \quad\text{with}\quad
              \sum_m \beta_m \big(f_{m,y_i}(x_i) - f_{m,c}(x_i)\big) + \xi_i \ge \rho \;\; \forall i,\, c \ne y_i, \quad
              \xi \ge 0,\; \beta \ge 0,\; \sum_m \beta_m = 1

    with :math:`f_{m,c}` the decision value, bias included, of an SVM of class *c* against the rest on kernel *m*. A sample is
    scored by :math:`\sum_m \beta_m f_{m,c}(x)`. The programme sees each sample's decision values from SVMs that were trained
    without it (stratified folds); then the SVMs of the kernels with weight are trained on all samples.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        See `OM2`.
    C : float > 0, sequence of such, or "cv", default 1.0
        libsvm's C; of all kernels, or one for each. "cv": each kernel takes the value of `C_grid` with the best cross-validated
        accuracy of its own SVMs, the smaller one on ties.
    nu : float in (0, 1) or "cv", default "cv"
        The weights maximise the mean margin of this share of the samples, those with the smallest margins. "cv": the value of
        `nu_grid` whose programme, trained on the decision values of all folds but one, classifies that one best; the larger
        one on ties. Where the worst share of the samples has negative margins under every good kernel, the programme prefers
        kernels with decision values near 0, which are good for nothing: nu must not be small then.
    per_class : bool, default False
        LP-B: kernel weights for each class. (With two classes both have the same decision values, hence the weights of LP-beta.)
    cv : int >= 2, default 5
        Stratified folds; fewer where a class has fewer samples.
    C_grid : sequence of float > 0, default (0.1, 1, 10, 100, 1000)
        For ``C="cv"``.
    nu_grid : sequence of float in (0, 1), default (0.05, 0.1, 0.2, ..., 0.9)
        For ``nu="cv"``.
    normalize : bool, default True
    memory : float, default 2e9
    n_jobs : int or None
        Threads: over the folds (and `C_grid`) of a kernel, then over the classes. The result does not depend on it.
    random_state : int, default 0
        Of the folds.
    verbose : bool, default False
        Show a progress bar once the fit takes more than two seconds.

    Attributes
    ----------
    classes_, support_
    kernel_weights_ : ndarray, shape (n_kernels,), or (n_classes, n_kernels) with `per_class`
        On the simplex, or each row; most are exactly 0.
    kernel_C_ : ndarray, shape (n_kernels,)
    nu_ : float
    dual_coefs_ : ndarray, shape (n_kernels, n_support, n_classes)
        Of each kernel's SVMs; 0 for kernels without weight, whose SVMs on all samples are not needed.
    intercepts_ : ndarray, shape (n_kernels, n_classes)
        Likewise.
    kernel_accuracy_ : ndarray, shape (n_kernels,)
        Cross-validated accuracy of every kernel alone, with its `kernel_C_`.
    C_accuracy_ : ndarray, shape (n_kernels, n_grid)
        The same for all of `C_grid`, in rising order, with ``C="cv"``.
    nu_accuracy_ : ndarray, shape (n_grid,)
        Cross-validated accuracy of the second stage for all of `nu_grid`, in rising order, with ``nu="cv"``.
    margin_ : float
        :math:`\rho`.
    objective_, dual_gap_ : float
        Of the linear programme: its value at the weights, and the certified distance from its optimum.
    history_ : DataFrame
        One row for each stage ("outputs" of the folds, "programme" with the choice of nu, "machines" on all samples): seconds,
        n_updates (SVMs trained so far, one class each), n_support, objective, dual_gap.
    n_iter_ : int
        Linear programmes solved for the weights.
    n_updates_ : int
    converged_ : bool
        Whether the gap is below a millionth of the largest decision value.

    Raises
    ------
    ValueError
        From `fit`, with one sentence that names the argument; also where a class has a single sample, since each needs one on
        either side of a fold.

    Notes
    -----
    A fit trains ``n_kernels * cv * n_classes`` SVMs on a share of the samples, times the size of `C_grid` where C is chosen, then
    ``n_classes`` for every kernel with weight; and solves 51 linear programmes where nu is chosen, else one. Memory: one (n, n)
    matrix and a part of it for each thread besides the bank, and the decision values, ``8 * n_kernels * n * n_classes`` bytes.

    References
    ----------
    Gehler and Nowozin, On feature combination for multiclass object classification, ICCV 2009. "LP-beta" of the thesis's section
    4.4.5 and JMLR 13 (2012), with their grid of C; the grid of nu is ours.
    """

    def __init__(
        self,
        kernels=None,
        *,
        C=1.0,
        nu="cv",
        per_class=False,
        cv=5,
        C_grid=C_GRID,
        nu_grid=NU_GRID,
        normalize=True,
        memory=2e9,
        n_jobs=None,
        random_state=0,
        verbose=False,
    ):
        self.kernels = kernels
        self.C = C
        self.nu = nu
        self.per_class = per_class
        self.cv = cv
        self.C_grid = C_grid
        self.nu_grid = nu_grid
        self.normalize = normalize
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ---------------------------------------------------------------- training

    def fit(self, X, y):
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or (n_kernels, n, n) for precomputed kernels, or a KernelBank
        y : array-like, shape (n,)

        Returns
        -------
        self

        Raises
        ------
        ValueError
            With one sentence that names the argument, on any bad input.
        """
        n_folds, nus = check_count("cv", self.cv, 2), self._nus()
        labels = self._start(X, y)
        grid = self._grid()
        smallest = np.bincount(labels).min()
        if smallest < 2:
            raise ValueError("y must hold at least 2 samples of every class for cross-validation")
        seed = int(as_generator(self.random_state).integers(2**31 - 1))
        folds = list(
            StratifiedKFold(min(n_folds, smallest), shuffle=True, random_state=seed).split(labels, labels)
        )
        history = History()
        outputs, n_solved = self._cross_validated_outputs(labels, folds, grid)
        self._note(history, stage="outputs", step=1, epoch=1, n_updates=n_solved)
        solution = self._weigh(outputs, labels, folds, nus)
        self.kernel_weights_, self.margin_ = solution.weights, solution.margin
        self.objective_, self.dual_gap_, self.n_iter_ = (
            solution.objective,
            solution.dual_gap,
            solution.n_rounds,
        )
        self.converged_ = bool(solution.dual_gap <= CLOSED * np.abs(outputs).max())
        known = {"objective": self.objective_, "dual_gap": self.dual_gap_}
        self._note(history, stage="programme", step=2, epoch=2, n_updates=n_solved, **known)
        self.n_updates_ = n_solved + self._train(labels)
        self._note(
            history,
            stage="machines",
            step=3,
            epoch=3,
            n_updates=self.n_updates_,
            n_support=self.support_.size,
            **known,
        )
        self.history_ = history.frame()
        return self

    @staticmethod
    def _note(history, **values):
        history.pause()
        history.add(seconds=history.seconds, **values)
        history.go()

    def _nus(self):
        """The values of nu to choose from."""
        if isinstance(self.nu, str) and self.nu == "cv":
            nus = list(np.atleast_1d(np.asarray(self.nu_grid, dtype=object)))
            if not nus:
                raise ValueError("nu_grid must hold at least one number in (0, 1), got none")
            try:
                return sorted(_check_nu(nu) for nu in nus)
            except ValueError as error:
                raise ValueError(f"nu_grid must hold numbers in (0, 1), got {self.nu_grid!r}") from error
        return [_check_nu(self.nu, " or 'cv'")]

    def _grid(self):
        """The values of C to choose from, shape (n_kernels, n_grid)."""
        n_kernels = self.bank_.n_kernels
        if isinstance(self.C, str) and self.C == "cv":
            values = list(np.atleast_1d(np.asarray(self.C_grid, dtype=object)))
            if not values:
                raise ValueError("C_grid must hold at least one positive number, got none")
            return np.tile(sorted(check_positive("each of C_grid", C) for C in values), (n_kernels, 1))
        if not isinstance(self.C, (list, tuple, np.ndarray)):
            return np.full((n_kernels, 1), check_positive("C", self.C))
        if len(self.C) != n_kernels:
            raise ValueError(
                f"C must be a number, 'cv', or a number for each of {n_kernels} kernels, got {len(self.C)} of them"
            )
        return np.array([[check_positive("C", C)] for C in self.C])

    def _kernel(self, j):
        """One kernel as an (n, n) matrix in float64; the others are not computed."""
        return combined_kernel(self.bank_.select([j]), np.ones(1), 1.0)

    def _bar(self, items, words):
        return tqdm(
            items, desc=words, delay=BAR_AFTER, leave=False, disable=not self.verbose, file=sys.stderr
        )

    @property
    def _n_machines(self):
        """SVMs for one kernel."""
        return 1 if self.classes_.size == 2 else self.classes_.size

    def _cross_validated_outputs(self, labels, folds, grid):
        """Decision values (n_kernels, n, n_classes) of SVMs trained without the sample's fold, and the number of these SVMs."""
        n_kernels, n_grid = grid.shape
        outputs = np.empty((n_kernels, labels.size, self.classes_.size))
        accuracy = np.empty(grid.shape)
        self.kernel_C_ = np.empty(n_kernels)
        with Parallel(n_jobs=self.n_jobs, prefer="threads") as parallel:
            for j in self._bar(range(n_kernels), "SVMs of the folds"):
                kernel = self._kernel(j)
                found = parallel(
                    delayed(_fold_outputs)(kernel, labels, self.classes_.size, C, train, test)
                    for C in grid[j]
                    for train, test in folds
                )
                candidates = np.empty((n_grid, *outputs.shape[1:]))
                for k in range(n_grid):
                    for (_, test), part in zip(folds, found[k * len(folds) :], strict=False):
                        candidates[k, test] = part
                    accuracy[j, k] = _accuracy(candidates[k], labels)
                best = int(np.argmax(accuracy[j]))
                outputs[j], self.kernel_C_[j] = candidates[best], grid[j, best]
        self.kernel_accuracy_ = accuracy.max(axis=1)
        if isinstance(self.C, str):
            self.C_accuracy_ = accuracy
        return outputs, grid.size * len(folds) * self._n_machines

    def _weigh(self, outputs, labels, folds, nus):
        """The second stage: choose nu, then the weights."""
        # the two columns of two classes are one decision value and its negative: weights of their own could not be told apart
        per_class = bool(self.per_class) and self.classes_.size > 2
        self.nu_ = nus[0]
        if isinstance(self.nu, str):
            right = np.zeros(len(nus))
            for train, test in self._bar(folds, "choosing nu"):
                programme = _Programme(outputs[:, train], labels[train], per_class)
                for k, nu in enumerate(nus):
                    scores = _weighted(outputs[:, test], programme.solve(nu).weights)
                    right[k] += np.sum(np.argmax(scores, axis=1) == labels[test])
            self.nu_accuracy_ = right / labels.size
            self.nu_ = nus[int(np.flatnonzero(right == right.max())[-1])]
        solution = _Programme(outputs, labels, per_class).solve(self.nu_)
        if self.per_class and not per_class:
            solution = solution._replace(weights=np.tile(solution.weights, (2, 1)))
        return solution

    def _train(self, labels):
        """SVMs on all samples of the kernels with weight; returns how many."""
        n_kernels, n = self.bank_.n_kernels, labels.size
        active = self._active()
        coefs = np.zeros((active.size, n, self.classes_.size))
        self.intercepts_ = np.zeros((n_kernels, self.classes_.size))
        for k, j in enumerate(self._bar(active, "SVMs of all samples")):
            C = self.kernel_C_[j]
            coefs[k], self.intercepts_[j] = one_versus_rest(
                self._kernel(j), labels, self.classes_.size, C, self.n_jobs
            )
        self.support_ = np.flatnonzero(coefs.any(axis=(0, 2)))
        self.dual_coefs_ = np.zeros((n_kernels, self.support_.size, self.classes_.size))
        self.dual_coefs_[active] = coefs[:, self.support_]
        self.bank_support_, self.n_seen_ = self.support_, n
        return active.size * self._n_machines

    # -------------------------------------------------------------- prediction

    @property
    def dual_coef_(self):
        """`dual_coefs_` with the samples first, (n_support, n_kernels, n_classes): no coefficients are shared by all kernels."""
        return self.dual_coefs_.transpose(1, 0, 2)

    def _active(self):
        """Kernels with weight."""
        return np.flatnonzero(np.atleast_2d(self.kernel_weights_).any(axis=0))

    def _class_scores(self, X):
        check_is_fitted(self)
        X = self._new_samples(X)
        active = self._active()
        weights = np.broadcast_to(self.kernel_weights_, self.intercepts_.T.shape).T[
            active
        ]  # a row for each kernel
        coefs, bias = (
            self.dual_coefs_[active] * weights[:, None],
            (self.intercepts_[active] * weights).sum(axis=0),
        )
        if self._is_precomputed() and not isinstance(X, CrossBank):
            if not np.isfinite(X).all():
                raise ValueError("X holds NaN or infinite values")
            dtype = X.dtype if X.dtype.kind == "f" else np.dtype(np.float64)
            scores = np.zeros((X.shape[1], bias.size))
            for j, coef in zip(active, coefs, strict=True):
                scores += X[j][:, self.support_].astype(dtype, copy=False) @ coef.astype(dtype)
            return scores + bias
        cross = X
        if isinstance(X, CrossBank):
            cross = X.select(active, self.support_)
        elif self.support_.size:
            cross = self.bank_.cross(X, kernels=active, support=self.bank_support_)
        scores = np.zeros((cross.n_rows if isinstance(cross, CrossBank) else cross.shape[0], bias.size))
        if self.support_.size:
            for rows, block in cross.blocks(reuse=True):
                for part, coef in zip(block, coefs, strict=True):
                    scores[rows] += part @ coef.astype(part.dtype)
        return scores + bias
