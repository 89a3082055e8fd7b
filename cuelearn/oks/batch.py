"""Batch SVMs on one kernel: best, best aligned, or selected online."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import field
from typing import Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import column_or_1d

from cuelearn.core.estimator import REGULARIZATION, SEQUENCE, parameters, validated
from cuelearn.core.formulas import first_best
from cuelearn.core.samples import InputLike, as_generator, check_sample_weight, validate_samples
from cuelearn.expect import expect, expect_list, warn_user
from cuelearn.kernels import FeatureScaleWarning, KernelBank
from cuelearn.kernels.matrices import IndefiniteKernelWarning, one_warning
from cuelearn.kernels.specifications import as_samples
from cuelearn.kernels.types import ArrayLike, ClassWeight, KernelList, RandomState, SampleWeight
from cuelearn.mkl.base import KernelClassifier, two_columns
from cuelearn.mkl.rivals.single import kernel_alone
from cuelearn.mkl.rivals.svm import fit_svc, problem_weights
from cuelearn.oks import base
from cuelearn.oks.base import OnlineKernels, held_back, refuse_many_classes, signs_of

#: The paper's range of C.
C_GRID = tuple(2.0**k for k in range(-10, 11))

documented = functools.partial(
    base.documented,
    texts={
        **{name: base.TEXTS[name] for name in ("best_kernel_", "one_vs_rest")},
        "n_jobs": ("int or None", "Threads over the kernels; equal results for any number."),
        "random_state": ("int, Generator or None", "Of the samples held out."),
        "validation": (
            "float in (0, 1), or array of int",
            "Share of training samples held out, with every class in it, in up to ten draws until there are "
            "200; or their indices.",
        ),
        "kernel_weights_": (
            "ndarray, shape (n_kernels,), or (n_classes, n_kernels)",
            "A single 1, per class.",
        ),
        "best_index_": ("int", "The chosen kernel; with one_vs_rest one per class."),
        "C_": ("float", "The chosen C, likewise."),
        "validation_accuracy_": (
            "ndarray, shape (number of C,), or (n_classes, number of C)",
            "Of the chosen kernel on held-out samples; NaN for a single C, and for values not tried because "
            "libsvm did not solve an SVM of a smaller C.",
        ),
        "n_evaluations_": (
            "int",
            "Kernel values computed in training, n (n + 1) / 2 per matrix, including a selector's.",
        ),
    },
)


def alignment(
    kernel: np.ndarray, labels: ArrayLike, centered: bool = True, sample_weight: SampleWeight = None
) -> float:
    r"""Alignment of a kernel matrix with the labels.

    .. math:: \frac{\langle K, Y\rangle_F}{\|K\|_F\,\|Y\|_F}, \qquad Y_{ii'} = y_i y_{i'}

    for labels of +1 and -1; for more classes :math:`Y_{ii'} = 1[y_i = y_{i'}]`. Centring maps both matrices
    by :math:`M \to HMH`, :math:`H = I - 11^\top/n`.

    Parameters
    ----------
    kernel : ndarray, shape (n, n)
        Symmetric.
    labels : array-like, shape (n,)
    centered : bool
    sample_weight : ndarray of float >= 0, shape (n,), or None
        Row and column i of both matrices count :math:`s_i` times.

    Returns
    -------
    float in [-1, 1]
        0 if one of the matrices vanishes.

    References
    ----------
    Cristianini et al. (2001); centred: Cortes, Mohri, Rostamizadeh, ICML 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.oks import alignment
    >>> y = np.array([1, 1, -1, -1])
    >>> alignment(np.outer(y, y), y), round(alignment(np.eye(4), y), 3)
    (1.0, 0.577)
    """
    labels = np.asarray(labels)
    kernel = expect("kernel", kernel, shape=(labels.size, labels.size), finite=False)
    classes = np.unique(labels)
    target = (labels[:, None] == classes).astype(np.float64)  # Y = target target'
    if classes.size == 2:
        target = (target[:, 1] - target[:, 0])[:, None]
    n = labels.size
    weighted = kernel
    if sample_weight is not None:
        roots = np.sqrt(sample_weight)
        n = float(sample_weight.sum())
        weighted = kernel * np.outer(roots, roots)
    size_sq = float(np.vdot(weighted, weighted))
    nothing = 1e-12 * size_sq  # rounding of a constant kernel
    if centered:  # without another matrix: |HKH|^2 from sums of K, H Y H from the centred target
        rows = np.average(kernel, axis=1, weights=sample_weight)
        mean = float(np.average(rows, weights=sample_weight))
        if sample_weight is not None:
            rows = roots * rows
        size_sq += n * (n * mean**2 - 2.0 * float(rows @ rows))
        target = target - np.average(target, axis=0, weights=sample_weight)
    if sample_weight is not None:
        target = roots[:, None] * target
    product = float(np.sum(target * (weighted @ target)))
    size = 0.0
    if size_sq > nothing:
        size = float(np.sqrt(size_sq) * np.linalg.norm(target.T @ target))
    if size > 0.0:
        return product / size
    return 0.0


#: Redraw splits with fewer than ENOUGH held-out samples, MOST_DRAWS in all.
ENOUGH = 200
MOST_DRAWS = 10
#: Most libsvm steps per sample: of one SVM, and for the choice of C of one kernel.
SVM_STEPS = 50_000
CHOICE_STEPS = 300_000


def draws_held_back(labels, share, rng, sample_weight):
    splits = [held_back(labels, share, rng, sample_weight)]
    if np.ndim(share) == 1:
        return splits
    more = min(math.ceil(ENOUGH / splits[0][1].size), MOST_DRAWS) - 1
    return splits + [held_back(labels, share, rng, sample_weight) for _ in range(more)]


def scores_of_C(kernel, signs, C_values, splits, loss_weights, sample_weight):
    """Held-out accuracy and mean hinge loss for ascending C, and number of SVMs solved; NaN from the first C
    not solved in the steps allowed, but at least one split of the smallest."""
    accuracy, hinge = np.full((2, len(splits), len(C_values)), np.nan)
    squares = [np.ascontiguousarray(kernel[np.ix_(train, train)]) for train, _ in splits]
    crosses = [kernel[np.ix_(test, train)] for train, test in splits]
    steps = CHOICE_STEPS * len(kernel)
    n_solved = 0
    for c, C in enumerate(C_values):
        for s, (train, test) in enumerate(splits):
            weights = None if loss_weights is None else loss_weights[train]
            most = max(1, min(steps, SVM_STEPS * len(kernel)))
            svm = fit_svc(squares[s], signs[train], C, weights=weights, max_iter=most)
            steps -= svm.n_iter
            n_solved += 1
            if not svm.converged and c > 0:
                accuracy[:, c] = hinge[:, c] = np.nan
                break
            values = crosses[s][:, svm.support] @ svm.coef + svm.intercept
            counts = None if sample_weight is None else sample_weight[test]
            right = np.where(values > 0.0, 1.0, -1.0) == signs[test]
            accuracy[s, c] = np.average(right, weights=counts)
            hinge[s, c] = np.average(np.maximum(0.0, 1.0 - signs[test] * values), weights=counts)
            if not svm.converged:
                accuracy = accuracy[: s + 1]
                hinge = hinge[: s + 1]
                break
        if not svm.converged:
            break
    return accuracy.mean(axis=0), hinge.mean(axis=0), n_solved


@parameters
class OneKernelSVM(KernelClassifier):
    """Base: ``_choose(problems, score, sample_weight)`` returns a kernel and C for each binary problem and
    held-out accuracies; SVMs use all samples."""

    _parameter_constraints = {**OnlineKernels._parameter_constraints, "C": [*REGULARIZATION, *SEQUENCE]}

    kernels: KernelList = field(default=None, kw_only=False)
    C: float | Sequence[float] = C_GRID
    class_weight: ClassWeight = None
    validation: float | ArrayLike = 0.1
    one_vs_rest: bool = False
    normalize: bool = True
    memory: float = 2e9
    n_jobs: int | None = None
    random_state: RandomState = None

    @documented
    @validated
    def fit(self, X: InputLike, y: ArrayLike, sample_weight: SampleWeight = None) -> Self:
        """Choose and train.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or (n_kernels, n, n) if precomputed, or a KernelBank
        y : array-like, shape (n,)
            Two classes; more with ``one_vs_rest=True``.
        $sample_weight

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            If libsvm did not solve an SVM within the steps allowed; larger C are then not tried.
        """
        self._C_values()
        labels, weights = self._start(X, y, sample_weight)
        refuse_many_classes(self, self.classes_)
        with one_warning(self.bank_.indefinite):
            self._train(labels, weights)
        self._finish()
        return self

    def _train(self, labels, sample_weight):
        rng = as_generator(self.random_state)
        C_values = self._C_values()
        n = labels.size
        targets = signs_of(labels, self.classes_.size)
        weights = problem_weights(targets, sample_weight, self.class_weight, self.classes_, labels)
        problems = list(zip(targets, [None] * len(targets) if weights is None else weights, strict=True))
        splits = draws_held_back(labels, self.validation, rng, sample_weight)
        solved = [len(targets)]
        self._computed = []  # kernels

        def score(kernel, target, loss_weights):
            *scores, n_solved = scores_of_C(kernel, target, C_values, splits, loss_weights, sample_weight)
            solved.append(n_solved)
            return scores

        chosen, tables = self._choose(problems, score, sample_weight)
        converged = tried_all = C_values.size == 1 or not np.isnan(tables).any()
        coef = np.zeros((n, len(targets)))
        intercept = np.zeros(len(targets))
        for k, (j, C) in enumerate(chosen):
            kernel = self._kernel(j)
            svm = fit_svc(kernel, targets[k], C, weights=problems[k][1], max_iter=SVM_STEPS * n)
            converged = converged and svm.converged
            coef[svm.support, k] = svm.coef
            intercept[k] = svm.intercept
        index = np.array([j for j, _ in chosen])
        weights = np.eye(self.bank_.n_kernels)[index]
        self.best_index_ = index
        self.best_kernel_ = [self.bank_.names[j] for j in index]
        self.C_ = np.array([C for _, C in chosen])
        self.validation_accuracy_ = np.asarray(tables)
        if len(targets) == 1:  # the decision value is the columns' difference
            coef = two_columns(coef)
            intercept = two_columns(intercept)
            weights = weights[0]
            self.best_index_, self.best_kernel_ = int(index[0]), self.best_kernel_[0]
            self.C_ = float(self.C_[0])
            self.validation_accuracy_ = tables[0]
        self._keep(coef, weights)
        self.intercept_ = intercept
        n_matrices = len(self._computed)
        del self._computed
        if self.bank_.resident and not self._is_precomputed():
            n_matrices = self.bank_.n_kernels
        self.n_evaluations_ = n_matrices * (n * (n + 1) // 2)
        self.n_solved_ = sum(solved)
        if not converged:
            untried = ""
            if not tried_all:
                untried = ", so that larger C were not tried"
            warn_user(
                f"{type(self).__name__}: libsvm did not solve an SVM in the steps allowed{untried}; lower C, "
                "or divide the kernels by their mean diagonal",
                ConvergenceWarning,
            )

    def _C_values(self):
        values = [self.C]
        if not np.isscalar(self.C):
            values = expect_list("C", self.C, "numbers")
        return np.array(sorted(expect("C", C, low=1e-30, high=1e30) for C in values))

    def _kernel(self, j):
        if not self.bank_.resident:
            self._computed.append(j)
        return kernel_alone(self.bank_, j)

    def _of_each_kernel(self, judge):
        def judge_kernel(j):
            return judge(self._kernel(j))

        tasks = (delayed(judge_kernel)(j) for j in range(self.bank_.n_kernels))
        return Parallel(n_jobs=self.n_jobs, require="sharedmem")(tasks)

    def _tune(self, best, problems, score):
        """C for the kernel of each problem."""
        values = self._C_values()
        chosen = []
        tables = []
        for j, problem in zip(best, problems, strict=True):
            if values.size == 1:
                C = values[0]
                accuracy = np.full(1, np.nan)
            else:
                accuracy, hinge = score(self._kernel(j), *problem)
                C = values[first_best(accuracy, hinge)]
            tables.append(accuracy)
            chosen.append((j, float(C)))
        return chosen, tables

    def _class_scores(self, X):
        return super()._class_scores(X) + self.intercept_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = bool(self.one_vs_rest)
        return tags


@documented
@parameters
class MuSVM(OneKernelSVM):
    """MuSVM: the kernel and C whose SVM errs least on held-out samples.

    Parameters
    ----------
    $kernels
    C : float > 0 or sequence of them, default 2^-10 to 2^10
        Values tried.
    $class_weight $validation $one_vs_rest $missing $normalize
    memory : float, default 2e9
        Bytes for all kernel matrices; beyond, kernels are computed one at a time when tried.
    $n_jobs $random_state

    Attributes
    ----------
    $svm
    validation_accuracy_ : ndarray, shape (n_kernels, number of C), or (n_classes, n_kernels, number of C)
        Ties are decided by the smaller hinge loss.
    $n_evaluations_ $n_solved_

    Notes
    -----
    Cost O(m n^2 d) for the kernels and one libsvm run per kernel and C. A ``scale="mean"`` uses all samples,
    in `OKS` 500: give numbers (``KernelBank(...).triples``) to compare both.

    References
    ----------
    Yang et al., AAAI 2012, "MuSVM"; libsvm.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.oks import MuSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = MuSVM(cues, C=(1.0, 100.0), random_state=0).fit(X, y == 2)
    >>> model.best_kernel_, model.validation_accuracy_.shape
    ('petal', (2, 2))
    """

    def _choose(self, problems, score, sample_weight):
        values = self._C_values()

        def judge(kernel):
            return [score(kernel, *problem) for problem in problems]

        chosen = []
        accuracies = []
        for scores in zip(*self._of_each_kernel(judge), strict=True):  # of one problem
            accuracy, hinge = np.stack(scores, axis=1)
            j, c = np.unravel_index(first_best(accuracy, hinge), accuracy.shape)
            chosen.append((int(j), float(values[c])))
            accuracies.append(accuracy)
        return chosen, accuracies


@documented
@parameters
class AlignmentSVM(OneKernelSVM):
    """AlSVM: an SVM on the kernel best aligned with the labels.

    Parameters
    ----------
    $kernels
    C : float > 0 or sequence of them, default 2^-10 to 2^10
        The best on held-out samples is used.
    centered : bool, default True
        Use the centred alignment.
    $class_weight $validation $one_vs_rest $missing $normalize $memory $n_jobs $random_state

    Attributes
    ----------
    $svm
    alignment_ : ndarray, shape (n_kernels,), or (n_classes, n_kernels)
    $validation_accuracy_ $n_evaluations_ $n_solved_

    References
    ----------
    Cortes, Mohri, Rostamizadeh: Two-stage learning kernel algorithms, ICML 2010; Yang et al., AAAI 2012,
    "AlSVM".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.oks import AlignmentSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = AlignmentSVM(cues, C=(1.0, 100.0), random_state=0).fit(X, y == 2)
    >>> model.best_kernel_, bool(model.alignment_[1] > model.alignment_[0])
    ('petal', True)
    """

    _parameter_constraints = {"centered": ["boolean"]}

    centered: bool = True

    def _choose(self, problems, score, sample_weight):
        def judge(kernel):
            return [alignment(kernel, target, self.centered, sample_weight) for target, _ in problems]

        aligned = np.array(self._of_each_kernel(judge)).T
        self.alignment_ = aligned if len(problems) > 1 else aligned[0]
        return self._tune([first_best(row) for row in aligned], problems, score)


@documented
class SelectedSVM(OneKernelSVM):
    """An SVM on the kernel selected by an online learner: OKS-SVM, SOM-SVM.

    Parameters
    ----------
    selector : OKS, OKSRegret, SOM, OM1 or MuTron
        Cloned and fitted; the choice is among its kernels.
    C : float > 0 or sequence of them, default 2^-10 to 2^10
        The best on held-out samples is used.
    $class_weight $validation $random_state

    Attributes
    ----------
    selector_ : estimator
        Fitted.
    $svm
    $validation_accuracy_ $n_evaluations_ $n_solved_

    References
    ----------
    Yang et al., AAAI 2012, "OKS-SVM", "SOM-SVM".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.oks import OKS, SelectedSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = SelectedSVM(OKS(cues, random_state=0), C=100.0, random_state=0).fit(X, y == 2)
    >>> model.best_kernel_ == model.selector_.best_kernel_
    True
    """

    _parameter_constraints = {**OneKernelSVM._parameter_constraints, "selector": [OnlineKernels]}

    def __init__(
        self,
        selector: OnlineKernels,
        *,
        C: float | Sequence[float] = C_GRID,
        class_weight: ClassWeight = None,
        validation: float | ArrayLike = 0.1,
        random_state: RandomState = None,
    ):
        self.selector = selector
        self.C = C
        self.class_weight = class_weight
        self.validation = validation
        self.random_state = random_state

    kernels = property(lambda self: getattr(self.selector, "kernels", None))
    normalize = property(lambda self: getattr(self.selector, "normalize", True))
    one_vs_rest = property(lambda self: getattr(self.selector, "one_vs_rest", False))

    @validated
    def fit(  # type: ignore[override]
        self, X: InputLike, y: ArrayLike, sample_weight: SampleWeight = None
    ) -> Self:
        """Select, then train.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or (n_kernels, n, n) if precomputed
        y : array-like, shape (n,)
        sample_weight : array-like of float >= 0, shape (n,), or None
            As in the selector's `fit`; then factors on the losses of the SVM.

        Returns
        -------
        self
        """
        self._C_values()
        if y is not None:
            y = column_or_1d(y, warn=True)
        with warnings.catch_warnings():
            for category in (IndefiniteKernelWarning, FeatureScaleWarning):  # issued below
                warnings.simplefilter("ignore", category)
            selector = clone(self.selector).fit(X, y, sample_weight=sample_weight)
        return self._fit_selected(selector, X, y, sample_weight)

    def _fit_selected(self, selector, X, y, sample_weight=None):
        if not np.array_equal(np.unique(np.asarray(y)), selector.classes_):
            raise ValueError(
                f"y must hold the classes that the selector was fitted on, {selector.classes_.tolist()}"
            )
        self.selector_ = selector
        if self._is_precomputed():
            labels, weights = self._start(X, y, sample_weight)
        else:  # same columns and order, with the selector's scales
            X = as_samples(X)
            options = {"reset": False, "skip_check_array": hasattr(X, "iloc")}
            X = validate_samples(selector, X, used=selector._used(), **options)
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(selector, name):
                    setattr(self, name, getattr(selector, name))
            if not hasattr(X, "iloc"):
                X = np.asarray(X, dtype=np.float64)
            triples = selector._source.triples
            self.bank_ = KernelBank(triples, X, normalize=self.normalize, memory=0.0)
            weights = check_sample_weight(sample_weight, len(X))
            labels = self._labels(y, len(X), weights)
            self._samples = X
            self._made = {}
        try:
            with one_warning(self.bank_.indefinite):
                self._train(labels, weights)
        finally:
            self._samples = self._made = None
        self._finish()
        self.n_evaluations_ += int(np.sum(selector.n_evaluations_))
        return self

    def _kernel(self, j):
        if self._is_precomputed():
            return super()._kernel(j)
        if j not in self._made:  # compute only this kernel, once
            self._computed.append(j)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FeatureScaleWarning)  # issued for the bank
                triple = self.bank_.triples[j]
                options = {"normalize": self.normalize, "memory": np.inf}
                self._made[j] = kernel_alone(KernelBank([triple], self._samples, **options), 0)
        return self._made[j]

    def _choose(self, problems, score, sample_weight):
        best = np.atleast_1d(self.selector_.best_index_)
        return self._tune(best.tolist(), problems, score)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False  # as the selector
        return tags

    def _saved_parameters(self):
        parameters = super()._saved_parameters()
        parameters.pop("kernels", None)  # the selector's
        return parameters

    def _set_fitted_state(self, state):
        super()._set_fitted_state(state)
        self.selector = clone(self.selector_)  # with kernels as fitted


def select_then_fit(
    selector: OnlineKernels,
    X: InputLike,
    y: ArrayLike,
    *,
    C: float | Sequence[float] = C_GRID,
    validation: float | ArrayLike = 0.1,
    random_state: RandomState = None,
    sample_weight: SampleWeight = None,
) -> SelectedSVM:
    """Two stages: an online learner selects a kernel, on which an SVM is trained.

    Parameters
    ----------
    selector : OKS, SOM, ...
        Fitted on X and y, or else cloned and fitted. TypeError for other estimators.
    X, y
        As in `OKS.fit`.
    C, validation, random_state
        As in `SelectedSVM`.
    sample_weight
        As in `SelectedSVM.fit`; a fitted selector keeps its own.

    Returns
    -------
    SelectedSVM
        Fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.oks import OKS, select_then_fit
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = select_then_fit(OKS(cues, random_state=0), X, y == 2, random_state=0)
    >>> bool(model.score(X, y == 2) > 0.9)
    True
    """
    model = SelectedSVM(selector, C=C, validation=validation, random_state=random_state)
    model._validate_params()
    if not hasattr(selector, "classes_"):
        return model.fit(X, y, sample_weight=sample_weight)
    model._C_values()
    return model._fit_selected(selector, X, y, sample_weight)
