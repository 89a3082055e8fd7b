"""Multi-label learning with one binary problem per class on the same kernels (NIPS 2010).

A class without positive or without negative training samples (with weight) is not trained: its score is the
constant -1 or 1, its kernel weights are 0, and means over classes exclude it.
"""

from dataclasses import field
from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from cuelearn.core.estimator import parameters
from cuelearn.core.weights import class_weights
from cuelearn.expect import expect
from cuelearn.mkl.base import KernelClassifier, two_columns
from cuelearn.mkl.rivals.svm import problem_weights
from cuelearn.warn import warn_user

__all__ = ["MultiLabelMKL", "is_indicator", "learnable", "mean_auc", "numbers_of", "signs_of"]


class MeanAUC(NamedTuple):
    """Mean area, areas of all classes (NaN if skipped), skipped classes."""

    mean: float
    per_class: np.ndarray
    skipped: list


def mean_auc(scores, targets, skip=()):
    """Area under the precision-recall curve by average precision, mean over classes (NIPS 2010, section 3.4).

    Parameters
    ----------
    scores : array-like of finite numbers, shape (n, n_classes), or (n,) for one class
    targets : array-like or sparse matrix of the same shape
        0 and 1, False and True, or -1 and 1. Classes without both values are skipped.
    skip : array-like of int, default ()
        Further classes to skip: a model's `skipped_classes_`, whose scores are constant.

    Returns
    -------
    MeanAUC
        The mean is NaN if no class is left.

    Raises
    ------
    ValueError
        On invalid arguments.

    Examples
    --------
    >>> from cuelearn.mkl import mean_auc
    >>> result = mean_auc([[0.9, 0.1], [0.5, 0.8], [0.2, 0.3]], [[1, 0], [0, 0], [1, 0]])
    >>> round(result.mean, 3), result.skipped  # the second class has no positive sample
    (0.833, [1])
    """
    scores = check_array(scores, dtype=np.float64, ensure_2d=False, input_name="scores")
    targets = as_array("targets", targets)
    scores, targets = (x[:, None] if x.ndim == 1 else x for x in (scores, targets))
    signs = signs_of(targets, len(scores), name="targets")
    scores = expect("scores", scores, shape=signs.T.shape)
    n_classes = len(signs)
    usable = learnable(signs)
    skip = list(skip)
    usable[expect("skip", skip, kind="int", shape=("k",), low=0, high=n_classes - 1, least=0)] = False
    areas = np.full(n_classes, np.nan)
    areas[usable] = _average_precision(scores[:, usable], signs[usable].T > 0.0)
    if usable.any():
        mean = float(areas[usable].mean())
    else:
        mean = np.nan
    return MeanAUC(mean, areas, np.flatnonzero(~usable).tolist())


def _average_precision(scores, positive):
    """Per column; equal scores are one threshold. 30 times faster than scikit-learn by column."""
    order = np.argsort(-scores, axis=0)
    scores, hits = (np.take_along_axis(x, order, axis=0) for x in (scores, positive))
    precision = np.cumsum(hits, axis=0) / np.arange(1, len(hits) + 1)[:, None]
    last = np.where(np.diff(scores, axis=0, append=-np.inf) < 0, np.arange(len(hits))[:, None], len(hits))
    last = np.minimum.accumulate(last[::-1], axis=0)[::-1]
    return (hits * np.take_along_axis(precision, last, axis=0)).sum(axis=0) / hits.sum(axis=0)


def as_array(name, values):
    try:
        if hasattr(values, "toarray"):
            return values.toarray()
        return np.asarray(values)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array, got rows of unequal length") from None


def holds_numbers(values):
    if values.dtype.kind == "O":
        return all(isinstance(v, Real) for v in values.flat)
    return values.dtype.kind in "biuf"


def is_indicator(y, one_column=False):
    """Whether y is a matrix of two or more class columns, or with `one_column` one of -1, 0 and 1."""
    if y is None:
        return False
    try:
        values = as_array("y", y)
    except ValueError:
        got = "rows of unequal length"
    else:
        sets = (list, tuple, set, frozenset, np.ndarray)
        plain = values.ndim in (1, 2)
        if plain and not (values.dtype == object and any(isinstance(v, sets) for v in values.flat)):
            if values.ndim == 1 or values.shape[1] > 1:
                return values.ndim == 2
            return one_column and values.dtype.kind in "biuf" and bool(np.isin(values, (-1, 0, 1)).all())
        got = "label sets"
        if not plain:
            got = f"shape {values.shape}"
    raise ValueError(
        "y must be class labels, shape (n,), or an indicator matrix of 0 and 1, shape (n, n_classes), which "
        f"scikit-learn's MultiLabelBinarizer makes of label sets; got {got}"
    )


def signs_of(y, n_samples, name="y"):
    """An indicator matrix (0/1 or -1/1, or sparse) as signs, (n_classes, n)."""
    values = as_array(name, y)
    if values.ndim != 2 or len(values) != n_samples or values.shape[1] == 0:
        raise ValueError(
            f"{name} must have one row per sample, {n_samples}, and a column per class, got shape "
            f"{values.shape}"
        )
    numeric = holds_numbers(values)
    levels = np.unique(values) if numeric else values.ravel()
    if not numeric or not (np.isin(levels, (0, 1)).all() or np.isin(levels, (-1, 1)).all()):
        given = repr(levels[:5].tolist())[:60]
        raise ValueError(
            f"{name} must hold 0 and 1 (or -1 and 1) where it is an indicator matrix, got {given}"
        )
    return np.ascontiguousarray(np.where(values > 0, 1.0, -1.0).T)


def learnable(signs):
    positive = signs > 0
    return positive.any(axis=1) & ~positive.all(axis=1)


def numbers_of(signs):
    """Class numbers (n,) from the signs of their problems."""
    if len(signs) > 1:
        return signs.argmax(axis=0)
    return (signs[0] > 0.0).astype(int)


@parameters
class MultiLabelMKL(KernelClassifier):
    """Base of the methods with a binary problem per class, for indicator matrices and class labels.

    A subclass has `_train(signs, sample_weight)`, with a row of -1 and 1 per problem, which calls
    `_keep_problems`. `coding_` holds the values for no and yes in an indicator matrix.
    """

    kernels: object = field(default=None, kw_only=False)
    C: float = 1.0
    class_weight: object = None
    normalize: bool = True
    memory: float = 2e9

    _multi_output = True
    _one_column = False  # a single column is an indicator

    def _start(self, X, y, sample_weight=None):
        self.indicator_ = is_indicator(y, self._one_column)  # scikit-learn's message says less
        return super()._start(X, y, sample_weight)

    def _labels(self, y, n_samples, sample_weight):
        """Signs (n_problems, n); two labels are one problem, for the second."""
        if not self.indicator_:
            self.n_outputs_ = 1
            self.skipped_classes_ = np.empty(0, dtype=np.int64)
            self._signs_of_skipped = np.empty(0)
            vars(self).pop("coding_", None)
            labels = super()._labels(y, n_samples, sample_weight)
            wanted = (1,)
            if self.classes_.size != 2:
                wanted = range(self.classes_.size)
            return np.stack([np.where(labels == c, 1.0, -1.0) for c in wanted])
        signs = signs_of(y, n_samples)
        with_weight = signs
        if sample_weight is not None:
            with_weight = signs[:, sample_weight > 0.0]
        usable = learnable(with_weight)
        if not usable.any():
            raise ValueError("y must have a class with positive and negative samples")
        self.n_outputs_ = len(signs)
        self.skipped_classes_ = np.flatnonzero(~usable)
        self.coding_ = np.array([int(as_array("y", y).min()), 1])  # some class has both values
        self.classes_ = self.coding_.copy() if self.n_outputs_ == 1 else np.arange(self.n_outputs_)
        self._all_classes = self.classes_
        if not usable.all():
            message = "classes without positive or without negative samples are not trained"
            warn_user(f"{message}: {self.skipped_classes_.tolist()}")
        self._signs_of_skipped = with_weight[self.skipped_classes_, 0]
        return signs[usable]

    def _problem_weights(self, signs, sample_weight):
        if isinstance(self.class_weight, dict) and self.indicator_ and self.n_outputs_ > 1:
            of_columns = class_weights(self.class_weight, self.classes_, None)
            of_problems = np.delete(list(of_columns.values()), self.skipped_classes_)[:, None]
            sides = np.where(signs > 0.0, of_problems, 1.0)
            if sample_weight is None:
                return sides
            return sides * sample_weight
        return problem_weights(signs, sample_weight, self.class_weight, self.classes_, numbers_of(signs))

    def _fill(self, values, skipped, axis=-1):
        places = self.skipped_classes_ - np.arange(self.skipped_classes_.size)
        return np.insert(np.ascontiguousarray(values, dtype=np.float64), places, skipped, axis=axis)

    def _columns(self, values, skipped=0.0):
        """Values (..., n_problems) for all score columns; two labels get halves."""
        values = self._fill(values, skipped)
        if not self.indicator_ and values.shape[-1] == 1:
            return two_columns(values)
        return values

    def _rows(self, values):
        """Kernel weights (..., n_problems, n_kernels) for all classes; two labels get equal rows."""
        values = self._fill(values, 0.0, axis=-2)
        if not self.indicator_ and values.shape[-2] == 1:
            return np.repeat(values, 2, axis=-2)
        return values

    def _keep_problems(self, coef, kernel_weights, bias=None):
        weights = kernel_weights
        if kernel_weights.ndim == 2:
            weights = self._rows(kernel_weights)
        self._keep(self._columns(coef), weights)
        vars(self).pop("intercept_", None)
        if bias is not None or self.skipped_classes_.size:
            if bias is None:
                bias = np.zeros(coef.shape[1])
            self.intercept_ = self._columns(bias, self._signs_of_skipped)

    def _class_scores(self, X):
        scores = super()._class_scores(X)
        if hasattr(self, "intercept_"):
            return scores + self.intercept_
        return scores

    def decision_function(self, X):
        """Decision values, (n, n_classes); for two class labels (n,), the second's score minus the first's.

        X is as in `fit`, or a CrossBank. scikit-learn's `cross_val_predict` needs a one-column indicator
        matrix as a vector, ``y[:, 0]``.
        """
        check_is_fitted(self)
        if self.indicator_:
            return self._class_scores(X)
        return super().decision_function(X)

    def predict(self, X):
        """Classes with a positive score, coded as y, (n, n_classes); for class labels the best class."""
        check_is_fitted(self)
        if not self.indicator_:
            return super().predict(X)
        return self.coding_[(self._class_scores(X) > 0.0).astype(np.int64)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
