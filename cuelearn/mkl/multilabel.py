r"""Several labels per sample: what the multi-label methods share (NIPS 2010).

Every class k is a binary problem with signs :math:`y^k`, and all use the same kernels. A class that has no positive or no negative
sample in training cannot be learnt: it is not trained, its score is the constant -1 or 1, its kernel weights are 0, it is named in
`skipped_classes_`, and means over classes leave it out.
"""

import numbers
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score
from sklearn.utils.validation import check_is_fitted

from cuelearn.mkl.base import KernelClassifier, two_columns

__all__ = ["MeanAUC", "MultiLabelMKL", "is_indicator", "mean_auc", "signs_of"]


class MeanAUC(NamedTuple):
    """Areas under precision-recall curves.

    Attributes
    ----------
    mean : float
        Over the classes that have positives and negatives and are not left out; NaN if there is none.
    per_class : ndarray, shape (n_classes,)
        NaN for the others.
    skipped : list of int
        Numbers of the others, in ascending order.
    """

    mean: float
    per_class: np.ndarray
    skipped: list


def mean_auc(scores, targets, skip=()):
    """Area under the precision-recall curve, averaged over classes (NIPS 2010, section 3.4).

    Parameters
    ----------
    scores : array-like of finite numbers, shape (n, n_classes), or (n,) for one class
        Decision values.
    targets : array-like or sparse matrix, shape (n, n_classes), or (n,) for one class
        Indicator matrix: 0 and 1, or False and True, or -1 and 1.
    skip : array-like of int, default ()
        Numbers of further classes to leave out: a model's `skipped_classes_`, whose scores are constants.

    Returns
    -------
    MeanAUC
        By average precision, which does not interpolate between the curve's points.

    Raises
    ------
    ValueError
        With one sentence that names the argument, on any bad input.
    """
    scores = _numbers("scores", scores)
    if not np.isfinite(scores).all():
        raise ValueError("scores must be finite, got NaN or infinite values")
    if scores.ndim == 1:
        scores = scores[:, None]
    if scores.ndim != 2:
        raise ValueError(f"scores must have shape (n, n_classes), got {scores.shape}")
    targets = _dense("targets", targets)
    positive = (
        signs_of(targets[:, None] if targets.ndim == 1 else targets, len(scores), name="targets").T > 0.0
    )
    if scores.shape != positive.shape:
        raise ValueError(f"scores must have the shape of targets, {positive.shape}, got {scores.shape}")
    usable = positive.any(axis=0) & ~positive.all(axis=0)
    usable[_column_numbers("skip", skip, usable.size)] = False
    found = np.full(usable.size, np.nan)
    for k in np.flatnonzero(usable):
        found[k] = average_precision_score(positive[:, k], scores[:, k])
    return MeanAUC(
        float(found[usable].mean()) if usable.any() else np.nan, found, np.flatnonzero(~usable).tolist()
    )


def _column_numbers(name, values, n_columns):
    """Numbers of columns as an array, or an error that names the argument."""
    try:
        found = np.asarray(values)
    except ValueError:
        found = None
    if found is not None and found.size == 0:
        return np.empty(0, dtype=np.int64)
    if (
        found is None
        or found.ndim != 1
        or found.dtype.kind not in "iu"
        or found.min() < 0
        or found.max() >= n_columns
    ):
        raise ValueError(f"{name} must hold numbers of classes, 0 to {n_columns - 1}, got {values!r:.60}")
    return found


def _dense(name, values):
    """Values as an array, sparse or not, or an error that names the argument."""
    if hasattr(values, "toarray"):
        return values.toarray()
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array, got rows of unequal length") from None


def _is_numeric(values):
    """Whether an array holds real numbers, if need be as objects."""
    return values.dtype.kind in "biuf" or (
        values.dtype.kind == "O" and all(isinstance(v, numbers.Real) for v in values.flat)
    )


def _numbers(name, values):
    """Values as an array of float64, or an error that names the argument."""
    found = _dense(name, values)
    if not _is_numeric(found):
        raise ValueError(f"{name} must hold numbers, got {found.ravel()[:3].tolist()!r:.60}")
    return found.astype(np.float64)


def check_label_form(y):
    """Refuse what is neither a vector of labels nor a matrix, label sets above all, with one sentence that names y."""
    if y is None or hasattr(y, "toarray"):
        return
    try:
        values = np.asarray(y)
    except (TypeError, ValueError):
        got = "rows of unequal length"
    else:
        if values.dtype == object and any(
            isinstance(v, (list, tuple, set, frozenset, np.ndarray)) for v in values.flat
        ):
            got = "label sets"
        elif values.ndim not in (1, 2):
            got = f"shape {values.shape}"
        else:
            return
    raise ValueError(
        "y must be class labels, shape (n,), or an indicator matrix of 0 and 1, shape (n, n_classes), which scikit-learn's "
        f"MultiLabelBinarizer makes of label sets; got {got}"
    )


def is_indicator(y):
    """Whether labels come as a matrix with a column per class: two-dimensional, and not a column of words or numbers beyond -1, 0, 1."""
    if y is None or not hasattr(y, "ndim") and not isinstance(y, (list, tuple)):
        return hasattr(y, "toarray")
    check_label_form(y)
    values = _dense("y", y)
    return values.ndim == 2 and (
        values.shape[1] != 1 or (values.dtype.kind in "biuf" and np.isin(values, (-1, 0, 1)).all())
    )


def signs_of(y, n_samples, name="y"):
    """An indicator matrix as signs.

    Parameters
    ----------
    y : array-like or sparse matrix, shape (n, n_classes)
        0 and 1, or False and True, or -1 and 1.
    n_samples : int
    name : str
        Of the argument, for errors.

    Returns
    -------
    ndarray of float64, shape (n_classes, n)
        -1 or 1.

    Raises
    ------
    ValueError
    """
    values = _dense(name, y)
    if values.ndim != 2 or len(values) != n_samples or values.shape[1] == 0:
        raise ValueError(
            f"{name} must have one row per sample, {n_samples}, and a column per class, got shape {values.shape}"
        )
    found = np.unique(values) if _is_numeric(values) else values.ravel()
    if not (_is_numeric(values) and (np.isin(found, (0, 1)).all() or np.isin(found, (-1, 1)).all())):
        raise ValueError(
            f"{name} must hold 0 and 1 (or -1 and 1) where it is an indicator matrix, got {found[:5].tolist()!r:.60}"
        )
    return np.ascontiguousarray(np.where(values > 0, 1.0, -1.0).T)


def learnable(signs):
    """Which problems, rows of -1 and 1, have samples of both signs: ndarray of bool, shape (n_classes,)."""
    return (signs > 0).any(axis=1) & (signs < 0).any(axis=1)


class MultiLabelMKL(KernelClassifier):
    """Base of the methods with a binary problem per class that take an indicator matrix as well as class labels.

    A subclass calls `_start` as ever, trains the binary problems of `_problem_signs`, and hands their coefficients to `_keep_problems`.

    Attributes
    ----------
    classes_ : ndarray
        Class labels; for an indicator matrix the numbers of its columns, and for one of a single column the two values that `predict`
        answers with, as scikit-learn's scorers of two classes expect.
    indicator_ : bool
        Whether y was an indicator matrix.
    n_outputs_ : int
        Columns of the indicator matrix; 1 for class labels.
    coding_ : ndarray of int, shape (2,)
        What stands for no and yes: 0 and 1, or -1 and 1 where an indicator matrix holds those. Indicator matrices only.
    skipped_classes_ : ndarray of int
        Columns without positive or without negative samples.
    """

    _multi_output = True

    def _start(self, X, y):
        self._check_labels(y)
        return super()._start(X, y)

    def _check_labels(self, y):
        """Refuse a form of y before anything is computed."""
        check_label_form(y)

    def _labels(self, y, n_samples):
        self.indicator_ = is_indicator(y)
        if not self.indicator_:
            self.n_outputs_ = 1
            vars(self).pop("coding_", None)
            return super()._labels(y, n_samples)
        signs = signs_of(y, n_samples)
        usable = learnable(signs)
        if not usable.any():
            raise ValueError("y must have a class with positive and negative samples")
        self.n_outputs_, self.skipped_classes_ = len(signs), np.flatnonzero(~usable)
        self.coding_ = np.array([int(_dense("y", y).min()), 1])  # some class has both values
        self.classes_ = self.coding_.copy() if self.n_outputs_ == 1 else np.arange(self.n_outputs_)
        if not usable.all():
            skipped = self.skipped_classes_.tolist()
            warnings.warn(
                f"classes without positive or without negative samples are not trained: {skipped}",
                stacklevel=5,
            )
        return signs

    def _problem_signs(self, labels):
        """Signs of the binary problems, (n_problems, n), from what `_start` returned: two labels are one problem, for the second."""
        if self.indicator_:
            self._signs_of_skipped = labels[self.skipped_classes_, 0]
            return np.delete(labels, self.skipped_classes_, axis=0)
        self.skipped_classes_, self._signs_of_skipped = np.empty(0, dtype=np.int64), np.empty(0)
        wanted = (1,) if self.classes_.size == 2 else range(self.classes_.size)
        return np.stack([np.where(labels == c, 1.0, -1.0) for c in wanted])

    def _fill(self, values, skipped):
        """Values of the problems, (..., n_problems), for all columns of an indicator matrix, those of skipped classes filled in."""
        values = np.asarray(values)
        out = np.empty((*values.shape[:-1], self.n_outputs_))
        out[..., self.skipped_classes_] = skipped
        out[..., np.setdiff1d(np.arange(self.n_outputs_), self.skipped_classes_)] = values
        return out

    def _columns(self, values, skipped=0.0):
        """Values of the problems, (..., n_problems), for all columns of scores: skipped classes filled in, two labels in two halves."""
        if self.indicator_:
            return self._fill(values, skipped)
        values = np.asarray(values)
        return two_columns(values) if values.shape[-1] == 1 else values

    def _one_by_one(self, values, skipped=np.nan):
        """Numbers of the problems, (n_problems,), for all classes, those of skipped ones filled in; one number for two class labels."""
        return self._fill(values, skipped) if self.indicator_ else np.asarray(values)

    def _rows(self, values):
        """Rows of the problems, (..., n_problems, n), as rows of the columns of scores: 0 for skipped classes, two labels in two."""
        if self.indicator_:
            return np.swapaxes(self._fill(np.swapaxes(values, -1, -2), 0.0), -1, -2)
        return np.repeat(values, 2, axis=-2) if values.shape[-2] == 1 else values

    def _keep_problems(self, coef, kernel_weights, bias=None):
        """Set the fitted attributes: coefficients (n, n_problems), kernel weights shared (n_kernels,) or per problem, biases."""
        self._keep(
            self._columns(coef), self._rows(kernel_weights) if kernel_weights.ndim == 2 else kernel_weights
        )
        if bias is not None or self.skipped_classes_.size:
            self.intercept_ = self._columns(
                np.zeros(coef.shape[1]) if bias is None else bias, self._signs_of_skipped
            )
        else:
            vars(self).pop("intercept_", None)

    def _class_scores(self, X):
        scores = super()._class_scores(X)
        return scores + self.intercept_ if hasattr(self, "intercept_") else scores

    def decision_function(self, X):
        """Decision values.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or for precomputed kernels (n_kernels, n, n_train), or a CrossBank

        Returns
        -------
        ndarray
            Shape (n, n_classes), (n, 1) for an indicator matrix of one column; for two class labels shape (n,), the second class's
            score minus the first's.

        Notes
        -----
        scikit-learn's scorers take scores of shape (n, 1); its `cross_val_predict` with ``method="decision_function"`` takes a column of
        labels only as a vector, ``y[:, 0]``.
        """
        check_is_fitted(self)
        return self._class_scores(X) if self.indicator_ else super().decision_function(X)

    def predict(self, X):
        """Classes with a positive score as an indicator matrix in the coding of y, or, for class labels, the one with the largest score.

        Parameters
        ----------
        X : as in `decision_function`

        Returns
        -------
        ndarray
            Shape (n, n_classes) of 0 and 1, or of -1 and 1 where the y of `fit` held those; or (n,).
        """
        check_is_fitted(self)
        return (
            self.coding_[(self._class_scores(X) > 0.0).astype(np.int64)]
            if self.indicator_
            else super().predict(X)
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
