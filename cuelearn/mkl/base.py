"""Base of the kernel estimators: input, prediction, saving, and plots in scikit-learn's Display style."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pandas as pd
from scipy.special import log_softmax, softmax
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from cuelearn.core import docs
from cuelearn.core.estimator import (
    NON_NEGATIVE,
    Estimator,
    HasMethods,
    ScoreClassifier,
    StrOptions,
    parameters,
    validated,
)
from cuelearn.core.formulas import KERNEL_FACTOR
from cuelearn.core.samples import (
    FLOATS,
    InputLike,
    as_generator,
    check_sample_weight,
    classes_and_labels,
    given_kernels,
    labels_of,
    new_samples,
    repeated_rows,
    training_samples,
    validate_samples,
    warn_of_classes,
    with_weight,
)
from cuelearn.expect import expect_word, require
from cuelearn.kernels import CrossBank, FeatureScaleWarning, KernelBank, KernelStack
from cuelearn.kernels.features import Batches, FeatureBank, are_batches, has_only_features, taken
from cuelearn.kernels.fitted import MEAN_SUBSAMPLE
from cuelearn.kernels.matrices import one_warning, zero_blocks
from cuelearn.kernels.rows import block_scores, combine, combined_kernel, quadratic_forms
from cuelearn.kernels.stack import checked_cross, new_kernels, training_bank
from cuelearn.kernels.types import (
    ArrayLike,
    Callback,
    ClassWeight,
    KernelList,
    Missing,
    RandomState,
    SampleWeight,
)
from cuelearn.mkl.optimum.blocks import BlockProblem
from cuelearn.mkl.optimum.losses import Logistic, Loss
from cuelearn.mkl.optimum.problem import LossProblem, MKLProblem, weights_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Constraint of a loss given as an object.
LOSS = [HasMethods(["value", "dual", "clip", "step"])]


def two_columns(values, axis=-1):
    """One decision value of two classes as two scores: -1/2 and 1/2 of it."""
    return np.concatenate([-0.5 * values, 0.5 * values], axis=axis)


@parameters
class KernelModel(Estimator):
    """Base of classifiers and regressors on many kernels.

    Subclasses set `dual_coef_`, `support_` and `kernel_weights_`: scores are ``sum_j kernel_weights_[j] *
    K_j[:, support_] @ dual_coef_``; weights (n_classes, n_kernels) have a row per class.
    """

    kernels: KernelList = field(default=None, kw_only=False)
    normalize: bool = True
    missing: Missing = "error"

    _multi_output = False  # whether y may be an indicator matrix
    _answer = "decision_function"  # the method that a loaded model is tried with
    _validation = {"ensure_min_samples": 2}

    def _is_precomputed(self):
        return isinstance(self.kernels, str)

    def _start(self, X, y, sample_weight=None):
        """Set `bank_`; class indices or numbers, and weights."""
        vars(self).pop("absent_", None)
        precomputed = self._is_precomputed()
        if precomputed:
            bank = training_bank(X, self.memory, self.missing)
            n = self.n_features_in_ = bank.n_samples
            if self.missing == "zero":
                self.absent_ = bank.diagonal == 0.0
        else:
            samples, y = self._given_samples(X, y)
            n = samples.shape[0]
        weights = check_sample_weight(sample_weight, n)
        labels = self._labels(y, n, weights)
        if not precomputed:
            bank = self._bank_of(self._scaled_kernels(samples, weights), samples, self.memory)
        vars(bank).pop("_announced", None)  # see `announce_matrix`
        self.bank_: KernelBank = bank
        return labels, weights

    def _bank_of(self, kernels, samples, memory):
        kind = FeatureBank if self._takes_blocks() else KernelBank
        return kind(kernels, samples, normalize=self.normalize, memory=memory, missing=self.missing)

    def _takes_blocks(self):
        """Whether the model keeps blocks of features in place of samples."""
        return False

    def _has_blocks(self):
        return isinstance(getattr(self, "bank_", None), FeatureBank)

    def _given_samples(self, X, y):
        """Samples and y, checked; memory maps and batches as they are read."""
        blocks = self._takes_blocks()
        if are_batches(X) and not blocks:
            raise ValueError("X in batches needs kernels that are all a FeatureMap, and a hinge loss")
        if blocks and isinstance(X, np.memmap):
            X = Batches([(X, y)])
        elif blocks and are_batches(X):
            X = Batches(X, y)
        else:
            options = {"accept_sparse": "csr", "multi_output": self._multi_output, **self._validation}
            return training_samples(self, X, y, used=lambda: given_kernels(self.kernels), **options)
        self._checked(X.first[:1], reset=True)
        return X, X.labels

    def _checked(self, X, reset=False, **options):
        def used():
            if reset:
                return given_kernels(self.kernels)
            return self.bank_.triples

        options |= {"accept_sparse": "csr", "dtype": FLOATS, "reset": reset}
        return validate_samples(self, X, used=used, **options)

    def _scaled_kernels(self, samples, sample_weight):
        """The kernels; with unequal weights ``scale="mean"`` is that of the repeated samples."""
        if sample_weight is None or np.ptp(sample_weight) == 0.0:
            return self.kernels
        triples = given_kernels(self.kernels)
        if triples is not None and not any(kernel.unresolved for _, kernel, _ in triples):
            return self.kernels
        chosen = taken(samples, repeated_rows(sample_weight, MEAN_SUBSAMPLE))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FeatureScaleWarning)  # issued for all samples
            return self._bank_of(triples, chosen, 0.0).triples

    @docs.documented
    @validated
    def fit(self, X: InputLike, y: ArrayLike | None = None, sample_weight: SampleWeight = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or sparse, shape (n, n_features), or (n_kernels, n, n), KernelBank or KernelStack
            A model that keeps no samples, see `FeatureMap`, also takes a memory map, and batches (X, y): an
            iterable, a function that returns one, or an iterator, which is copied to temporary files.
            Transformers are fitted to at most 5,000 samples, of the first batch. UFOMKL also takes an array
            or DataFrame of Dask, whose partitions by rows stay with the workers of the running client.
        y : array-like, shape (n,), or (n, n_classes) for multi-label methods
            None for batches; or the name of the column of labels in DataFrames; of Dask as X is.
        $sample_weight

        Returns
        -------
        self

        Raises
        ------
        ValueError
            On invalid input.

        Warns
        -----
        ConvergenceWarning, IndefiniteKernelWarning, UserWarning
            If `tol` was not reached; if a kernel is not positive semidefinite; if a class of an indicator
            matrix cannot be trained.
        """
        labels, weights = self._start(X, y, sample_weight)
        with one_warning(self.bank_.indefinite):
            self._train(labels, weights)
        self._finish()
        if self._has_blocks():
            self.bank_ = self.bank_.on()
        return self

    def _finish(self):
        """Hook after training."""

    def _keep_blocks(self, blocks, kernel_weights, n_seen):
        """Of features: `blocks_` (n_features, n_classes) in place of a support."""
        self._keep(np.zeros((0, blocks.shape[1])), kernel_weights)
        self.blocks_: list[np.ndarray] = np.split(blocks, self.bank_.starts[1:-1])
        self.n_seen_ = n_seen

    def _keep(self, dual_coef, kernel_weights):
        self.support_: np.ndarray = np.flatnonzero(np.any(dual_coef != 0.0, axis=1))
        self.dual_coef_: np.ndarray = dual_coef[self.support_]
        self.kernel_weights_: np.ndarray = kernel_weights
        self.bank_support_ = self.support_
        vars(self).pop("blocks_", None)
        self.n_seen_ = len(dual_coef)

    def _watch(self, show=None):
        """The user's callback, with the fitted attributes set before each call."""

        if self.callback is None:
            return None

        def call(run, step):
            (show or self._show_training)(run)
            return self.callback(self, step)

        return call

    def _show_training(self, training):
        self._show(training.problem, *training.stream.point()[:2])
        self.n_updates_: int = training.stream.n_updates
        self.history_: pd.DataFrame = training.run.history()

    def _show(self, problem, coef, weights):
        if problem.explicit:
            self._keep_blocks(problem.factor * coef, weights, self.bank_.n_samples)
        else:
            self._keep(problem.factor * coef, weights)

    def _take_run(self, result):
        self.history_ = result.history
        if result.online_errors is not None:
            self.online_errors_: np.ndarray = result.online_errors
            self.visits_: np.ndarray = result.extra["visits"]
        self.n_updates_ = result.n_updates
        self.n_iter_: int = result.n_iter
        self.converged_: bool = result.converged
        self.objective_: float = result.objective
        self.dual_gap_: float = result.dual_gap

    def _new_samples(self, X):
        n_kernels = self.kernel_weights_.shape[-1]
        if isinstance(X, KernelStack) and self._is_precomputed():
            X = X.cross()
        if isinstance(X, CrossBank):
            return checked_cross(X, n_kernels, self.n_seen_)
        if self._is_precomputed():
            if hasattr(self, "absent_"):
                X, _ = zero_blocks(X, self.absent_)
            return new_kernels(X, n_kernels, self.n_features_in_)
        return new_samples(self, X, used=lambda: self.bank_.triples, accept_sparse="csr")

    def _blocks(self, X, every=False):
        """Number of new samples, kernels with weight, blocks of these against the support or `every` training
        sample."""
        check_is_fitted(self)
        support = self.support_
        if every:
            support = np.arange(self.n_seen_)
        X = self._new_samples(X)
        active = np.flatnonzero(np.atleast_2d(self.kernel_weights_).any(axis=0))
        crossed = isinstance(X, CrossBank)
        given = self._is_precomputed() and not crossed
        if crossed:
            n_rows = X.n_rows
        else:
            n_rows = X.shape[1 if given else 0]
        if active.size == 0 or support.size == 0:
            return n_rows, active, ()
        if given:
            return n_rows, active, [(slice(None), (X[j][:, support] for j in active))]
        if crossed:
            cross = X.select(active, support)
        else:
            cross = self.bank_.cross(X, active, support if every else self.bank_support_)
        return n_rows, active, cross.blocks(reuse=True)

    def _class_scores(self, X):
        if self._has_blocks():
            blocks = np.ascontiguousarray(np.concatenate(self.blocks_).T)
            if not isinstance(X, np.memmap):  # which is checked as it is read
                X = self._new_samples(X)
            return self.bank_.scores(X, blocks, self.kernel_weights_)
        n_rows, active, blocks = self._blocks(X)
        scores = np.zeros((n_rows, self.dual_coef_.shape[1]))
        for rows, block in blocks:
            scores[rows] = block_scores(block, self.dual_coef_, self.kernel_weights_[..., active])
        return scores

    def summary(self) -> pd.DataFrame:
        """Importance of each kernel in the fitted model.

        Returns
        -------
        DataFrame
            One row per kernel, or per class and kernel: (class,) name, weight, share of the absolute weights,
            norm of the primal block (NaN if kernels have own coefficients or a loaded model has no kernels),
            support (number of samples with a coefficient).
        """
        check_is_fitted(self)
        weights = np.atleast_2d(self.kernel_weights_)
        bank = getattr(self, "bank_", None)
        names = [f"k{j}" for j in range(weights.shape[1])]
        if bank is not None:
            names = bank.names
        norms_sq = np.full(weights.shape, np.nan)
        if self._has_blocks():
            norms_sq = np.array([[np.vdot(block, block) for block in self.blocks_]])
        elif bank is not None and self.dual_coef_.ndim == 2:
            norms_sq = quadratic_forms(bank, self.dual_coef_, self.bank_support_).T
            if len(weights) == 1:
                norms_sq = norms_sq.sum(axis=0)[None]
        norms = np.abs(weights) * np.sqrt(norms_sq)
        return kernel_summary(names, weights, norms, self.support_.size, getattr(self, "classes_", None))

    @property
    def transform(self) -> Any:
        name = type(self).__name__
        raise AttributeError(f"{name} has no transform: it needs one combination of kernels, as in OBSCURE")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = tags.input_tags.sparse = not self._is_precomputed()
        tags.input_tags.three_d_array = tags.input_tags.pairwise = self._is_precomputed()
        return tags

    def _score_ones(self):
        n_kernels = self.kernel_weights_.shape[-1]
        shape = (1, self.n_features_in_)
        if self._is_precomputed():
            shape = (n_kernels, *shape)
        elif n_kernels != self.bank_.n_kernels:
            raise ValueError(f"{n_kernels} weights for {self.bank_.n_kernels} kernels")
        return getattr(self, self._answer)(np.ones(shape), *self._given_ones())

    def _given_ones(self):
        return ()

    def _saved_parameters(self):
        parameters = super()._saved_parameters()
        if hasattr(self, "bank_") and not self._is_precomputed():
            # with the resolved scale and columns
            parameters["kernels"] = self.bank_.triples
        return parameters

    def __deepcopy__(self, memo):
        """With all training kernels, unlike a pickle."""
        copied = memo[id(self)] = type(self).__new__(type(self))
        attributes = {name: value for name, value in vars(self).items() if name != "_checkpoint"}
        vars(copied).update(copy.deepcopy(attributes, memo))
        return copied

    def __getstate__(self):
        """With the kernels of a saved file, or for `transform` of all training samples."""
        state = super().__getstate__()
        if "bank_" in state:
            kept = self._fitted_state()
            if "bank_" in kept and hasattr(self, "transform"):
                whole = self.bank_.restrict(slice(None), resident=False)
                kept |= {"bank_": whole, "bank_support_": self.bank_support_}
            for name in ("bank_", "bank_support_"):
                state.pop(name, None)
                if name in kept:
                    state[name] = kept[name]
        return state

    def _fitted_state(self):
        """The bank is cut to the support; precomputed kernels need none."""
        state = super()._fitted_state()
        bank = state.pop("bank_", None)
        if bank is not None and not self._is_precomputed():
            support = [0]
            if self.support_.size:
                support = self.bank_support_
            state["bank_"] = bank.restrict(support, resident=False)
            state["bank_support_"] = np.arange(len(self.dual_coef_))
        return state


class CombinedKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Mixin of models with one combination of kernels."""

    @property
    def _n_features_out(self):
        if self._has_blocks():
            return self.bank_.n_features
        return self.n_seen_

    def transform(self, X: InputLike) -> Any:
        r"""The combined kernel, for any machine with ``kernel="precomputed"``.

        Of explicit features these, times the roots of the weights. Divide the kernel by its mean diagonal
        where the scale matters, as with the C of an SVM.

        Parameters
        ----------
        X : as in `predict`

        Returns
        -------
        ndarray of float64, shape (n, n_train), or array or csr_array of float32, shape (n, n_features)
            Of kernels columns are the training samples in order; those of `support_` times `dual_coef_` are
            the class scores, up to a bias.

        Raises
        ------
        ValueError
            After `partial_fit`, and from a file of `save`, unlike a pickle: only samples with coefficients
            are known.

        Examples
        --------
        Novelty detection: a species that was not in training.

        >>> from sklearn.datasets import load_iris
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.svm import OneClassSVM
        >>> from cuelearn.mkl import OBSCURE
        >>> X, y = load_iris(return_X_y=True)
        >>> known = y < 2
        >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
        >>> machine = OneClassSVM(kernel="precomputed", nu=0.05)
        >>> detector = make_pipeline(OBSCURE(cues, random_state=0), machine).fit(X[known], y[known])
        >>> accepted = detector.predict(X) > 0
        >>> bool(accepted[known].mean() > 0.9), bool(accepted[~known].mean() < 0.2)
        (True, True)
        """
        check_is_fitted(self)
        if self._has_blocks():
            return self.bank_.weighted(self._new_samples(X), np.sqrt(self.kernel_weights_))
        if not self._is_precomputed() and self.bank_.n_samples != self.n_seen_:
            raise ValueError(
                "transform needs all training samples, which partial_fit and files of save do not keep: use "
                "fit, and pickle"
            )
        n_rows, active, blocks = self._blocks(X, every=True)
        combined = np.zeros((n_rows, self.n_seen_))
        for rows, block in blocks:
            combined[rows] = combine(block, self.kernel_weights_[active], np.float64)
        return combined

    def fit_transform(self, X: InputLike, y: ArrayLike | None = None, **fit_params: Any) -> Any:
        """`fit`; returns `transform` of the training samples."""
        self.fit(X, y, **fit_params)
        if self._has_blocks():
            return self.transform(X)
        return combined_kernel(self.bank_, self.kernel_weights_, 1.0)


class KernelClassifier(ScoreClassifier, KernelModel):
    """Base of classifiers. Training sees only classes with weight, as `classes_`; the others' samples, of
    weight 0, count to the first."""

    def _labels(self, y, n_samples, sample_weight):
        classes, labels = classes_and_labels(labels_of(self, y, n_samples))
        present = with_weight(labels, classes.size, sample_weight)
        self.classes_ = classes[present]
        vars(self).pop("untrained_classes_", None)
        self._all_classes = classes
        return np.where(present, np.cumsum(present) - 1, 0)[labels]

    def _finish(self):
        absent = np.flatnonzero(~np.isin(self._all_classes, self.classes_))
        if absent.size:
            self.classes_ = self._all_classes
            self.untrained_classes_: np.ndarray = absent
        del self._all_classes

    def _of_all_classes(self, scores, value=None):
        """Columns of all classes; untrained ones by default get scores that never win."""
        absent = getattr(self, "untrained_classes_", ())
        if len(absent) == 0:
            return scores
        if value is None:
            value = scores.min(axis=1, keepdims=True) - 1.0
        return np.insert(scores, absent - np.arange(absent.size), value, axis=1)

    def _decision_of(self, scores):
        return super()._decision_of(self._of_all_classes(scores))

    def _classes_of(self, scores):
        return super()._classes_of(self._of_all_classes(scores))


@parameters
class Stochastic(CombinedKernel, KernelModel):
    """Base of stochastic methods; `_solve` calls the solver."""

    p: float | Literal["auto"] = "auto"
    C: float = 1.0
    tol: float | None = None
    memory: float = 2e9
    random_state: RandomState = None
    callback: Callback = None
    verbose: bool = False

    finish = False  # a parameter of the batch methods

    _parameter_constraints = {"tol": [*NON_NEGATIVE, None]}

    def _run(self, problem):
        options = {"tol": self.tol, "finish": self.finish, "rng": as_generator(self.random_state)}
        options |= {"callback": self._watch(), "verbose": self.verbose, "certify": problem.certified}
        result = self._solve(problem, options)
        self._show(problem, result.dual_coef, result.kernel_weights)
        self.block_norms_sq_: np.ndarray = result.block_norms_sq
        self.p_: float = problem.p
        self.q_: float = problem.q
        self._take_run(result)


@parameters
class StochasticMKL(KernelClassifier, Stochastic):
    class_weight: ClassWeight = None

    def _train(self, labels, sample_weight):
        weights = weights_of(self.class_weight, self.classes_, labels, sample_weight)
        given = {"p": self.p, "C": self.C, "alpha": getattr(self, "alpha", 0.0)}
        self._run(self._problem(labels, {**given, **weights}))

    def _problem(self, labels, options):
        if self._has_blocks():
            certified = self.tol is not None
            return BlockProblem(self.bank_, labels, self.classes_.size, certified=certified, **options)
        return MKLProblem(self.bank_, labels, self.classes_.size, **options)

    def _takes_blocks(self):
        return has_only_features(self.kernels)


TEXTS = {
    "tol": (
        "float or None",
        "Relative duality gap to reach, (objective - certified bound) / objective. A larger final gap warns. "
        "None: no requirement.",
    ),
    "loss": (
        '"multiclass", "hinge", "logistic", "squared_hinge" or a loss',
        "Of the class scores: the multiclass hinge, of two classes also the binary one, or a loss of "
        "`cuelearn.mkl.optimum.losses`, which needs a kernel matrix of all samples to finish.",
    ),
    "finish": (
        "bool",
        "Whether dual ascent reaches `tol`: after OBSCURE's online stage, or the first epoch, if the samples "
        "with a coefficient fit in `memory`, else after all epochs. False is the published algorithm; with "
        "``tol=None`` all of its epochs run.",
    ),
}
#: Of `BatchMKL`.
documented = functools.partial(docs.documented, texts=TEXTS)


class OfLogisticLoss:
    """Decorator of a method that exists where the loss is the logistic one; else an AttributeError says so
    (scikit-learn's `available_if` hides the reason)."""

    def __init__(self, method):
        functools.update_wrapper(self, method)
        self.method = method

    def __get__(self, model: Any, owner: Any = None) -> Callable[[InputLike], np.ndarray]:
        if model is not None and model.loss != "logistic" and not isinstance(model.loss, Logistic):
            name = type(model).__name__
            raise AttributeError(
                f"{name}.{self.__name__} needs {name}(loss='logistic'), got loss={model.loss!r}"
            )
        if model is None:
            return self.method
        return self.method.__get__(model)


@parameters
class BatchMKL(StochasticMKL):
    """Base of OBSCURE, PegasosMKL and UFOMKL: stochastic epochs, then ascent in the dual."""

    loss: Literal["multiclass", "hinge", "logistic", "squared_hinge"] | Loss = "multiclass"
    C: float = 10.0
    n_epochs: int = 50
    tol: float | None = 0.01
    finish: bool = True

    _parameter_constraints = {
        "loss": [StrOptions({*KERNEL_FACTOR, "logistic", "squared_hinge"}), *LOSS],
        "finish": ["boolean"],
    }

    def _train(self, labels, sample_weight):
        if self._has_blocks() and self.bank_.in_batches and self.tol is None and self.n_epochs == 1:
            warn_of_classes(self, labels, "batches once, one after another", "Mix the classes in each batch.")
        super()._train(labels, sample_weight)

    def _problem(self, labels, options):
        if isinstance(self.loss, str) and self.loss in KERNEL_FACTOR:
            return super()._problem(labels, {**options, "loss": self.loss})
        return LossProblem(self.bank_, labels, self.loss, self.classes_.size, **options)

    def _takes_blocks(self):
        return isinstance(self.loss, str) and self.loss in KERNEL_FACTOR and super()._takes_blocks()

    @OfLogisticLoss
    def predict_proba(self, X: InputLike) -> np.ndarray:
        """Probabilities of the classes under the logistic loss, shape (n, n_classes); X as in `fit`."""
        return self._of_all_classes(softmax(self._class_scores(X), axis=1), 0.0)

    @OfLogisticLoss
    def predict_log_proba(self, X: InputLike) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        return self._of_all_classes(log_softmax(self._class_scores(X), axis=1), -np.inf)


def kernel_summary(names, weights, norms, support, classes=None):
    """`weights` and `norms` have one row, or one per class."""
    n_rows, n_kernels = weights.shape
    total = np.abs(weights).sum(axis=1, keepdims=True)
    columns = {
        "name": np.tile(np.array(names, dtype=object), n_rows),
        "weight": weights.ravel(),
        "share": (np.abs(weights) / np.where(total > 0.0, total, 1.0)).ravel(),
        "norm": np.ravel(norms),
        "support": np.broadcast_to(support, weights.shape).ravel(),
    }
    if n_rows > 1:
        columns = {"class": np.repeat(classes, n_kernels), **columns}
    return pd.DataFrame(columns)


def axes_of(ax):
    require("plots", "matplotlib")
    import matplotlib.pyplot as plt

    if ax is None:
        return plt.subplots(layout="constrained")[1]
    return ax


def check_has(estimator, attribute):
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise ValueError(f"estimator must have {attribute}, got {type(estimator).__name__}")


class KernelWeightsDisplay:
    r"""Bar chart of the kernels' shares, :math:`|\alpha_j|/\sum_k |\alpha_k|`.

    Parameters
    ----------
    summary : DataFrame
        ``model.summary()``.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects, once drawn

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.kernels import RBF
    >>> from cuelearn.mkl import OBSCURE, KernelWeightsDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OBSCURE([("sepal", RBF(), [0, 1]), ("petal", RBF(), [2, 3])], random_state=0).fit(X, y)
    >>> KernelWeightsDisplay.from_estimator(model).ax_.get_xlabel()
    'share of the kernel weights'
    """

    def __init__(self, summary: pd.DataFrame):
        self.summary = summary

    @classmethod
    def from_estimator(cls, estimator: Estimator, *, ax: Axes | None = None, most: int = 30) -> Self:
        """Draw the `most` largest weights of a fitted estimator."""
        check_has(estimator, "summary")
        return cls(estimator.summary()).plot(ax, most=most)

    def plot(self, ax: Axes | None = None, *, most: int = 30) -> Self:
        """Draw on `ax` or a new figure; returns self."""
        self.ax_ = axes_of(ax)
        self.figure_ = self.ax_.figure
        shares = self.summary.groupby("name", sort=False)["share"].mean()
        shown = shares.sort_values()[-most:]
        self.ax_.barh(np.arange(shown.size), shown.to_numpy())
        self.ax_.set_yticks(np.arange(shown.size), shown.index)
        self.ax_.set_xlabel("share of the kernel weights")
        left = shares.size - shown.size
        if left:
            rest = float(shares.sum() - shown.sum())
            self.ax_.set_title(f"{left} further kernels have {rest:.1%} together", fontsize="small")
        return self


class ConvergenceDisplay:
    """Objective and certified lower bound during a fit, with the final relative gap.

    For online learners: the share of mistakes so far; for `MLMKLSA`: the change of the kernel weights.

    Parameters
    ----------
    history : DataFrame
        A model's `history_`.
    x : str
        Its column "seconds", "epoch" or "step".
    y : {"objective", "online_error", "change"}

    Attributes
    ----------
    ax_, figure_ : matplotlib objects, once drawn

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import OBSCURE, ConvergenceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OBSCURE(C=100, random_state=0).fit(X, y)
    >>> ConvergenceDisplay.from_estimator(model).ax_.get_xlabel()
    'seconds of training'
    """

    X = {"seconds": "seconds of training", "epoch": "epochs", "step": "steps"}
    Y = {"objective": "objective", "online_error": "share of mistakes so far"}
    Y |= {"change": "relative change of the kernel weights"}

    def __init__(
        self,
        history: pd.DataFrame,
        x: Literal["seconds", "epoch", "step"] = "seconds",
        y: Literal["objective", "online_error", "change"] = "objective",
    ):
        for name, value, known in (("x", x, self.X), ("y", y, self.Y)):
            there = [column for column in known if column in history]
            expect_word(f"{name}, a column of history_,", value, there)
        self.history = history
        self.x = x
        self.y = y

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        *,
        x: Literal["seconds", "epoch", "step"] = "seconds",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the `history_` of a fitted estimator."""
        check_has(estimator, "history_")
        history = estimator.history_
        measured = "objective" if "objective" in history else "online_error"
        return cls(history, x, getattr(estimator, "_convergence", measured)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax` or a new figure; returns self."""
        self.ax_ = axes_of(ax)
        self.figure_ = self.ax_.figure
        seen = self.history.dropna(subset=[self.x, self.y])
        if seen.empty:
            raise ValueError(
                f"history_ holds no measured {self.y}: fit with tol= or measure it in a callback"
            )
        runs = seen.groupby("target") if "target" in seen else [(self.y.replace("_", " "), seen)]
        for label, run in runs:
            self.ax_.plot(run[self.x], run[self.y], marker=".", label=str(label))
        self.ax_.set_xlabel(self.X[self.x])
        self.ax_.set_ylabel(self.Y[self.y])
        bound = self._draw_bound(seen)
        if (seen[self.y] > 0.0).all() and (bound > 0.0).all() and self.y != "online_error":
            self.ax_.set_yscale("log")
        self.ax_.legend()
        return self

    def _draw_bound(self, seen):
        # gaps of "relaxed" problems are no bounds
        if self.y != "objective" or "dual_gap" not in seen or "relaxed" in seen:
            return np.zeros(0)
        measured = seen.dropna(subset=["dual_gap"])
        bound = np.maximum.accumulate((measured["objective"] - measured["dual_gap"]).to_numpy())
        if bound.size:
            self.ax_.plot(measured[self.x], bound, marker=".", label="certified lower bound")
            last = measured.iloc[-1]
            gap = last["dual_gap"] / max(last["objective"], np.finfo(float).tiny)
            self.ax_.set_title(f"relative gap at the end {gap:.1e}", fontsize="small")
        return bound
