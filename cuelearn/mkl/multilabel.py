r"""Several labels per sample: what the multi-label methods share (NIPS 2010).

Every class k is a binary problem with signs :math:`y^k`, and all use the same kernels. A class that has no positive or no negative
sample in training cannot be learnt: it is not trained, its score is the constant -1 or 1, it is named in `skipped_classes_`, and means
over classes leave it out.
"""

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
        Over the classes that have positives and negatives; NaN if there is none.
    per_class : ndarray, shape (n_classes,)
        NaN for the others.
    skipped : list of int
        Numbers of the others.
    """

    mean: float
    per_class: np.ndarray
    skipped: list


def mean_auc(scores, targets):
    """Area under the precision-recall curve, averaged over classes (NIPS 2010, section 3.4).

    Parameters
    ----------
    scores : array-like, shape (n, n_classes)
        Decision values.
    targets : array-like, shape (n, n_classes)
        Indicator matrix, 0 and 1.

    Returns
    -------
    MeanAUC
        By average precision, which does not interpolate between the curve's points.
    """
    scores, targets = np.asarray(scores, dtype=np.float64), np.asarray(targets)
    if scores.ndim == 1:
        scores = scores[:, None]
    if targets.ndim == 1:
        targets = targets[:, None]
    if scores.shape != targets.shape:
        raise ValueError(f"scores must have the shape of targets, {targets.shape}, got {scores.shape}")
    positive = targets > 0
    usable = positive.any(axis=0) & ~positive.all(axis=0)
    found = np.full(targets.shape[1], np.nan)
    for k in np.flatnonzero(usable):
        found[k] = average_precision_score(positive[:, k], scores[:, k])
    return MeanAUC(float(found[usable].mean()) if usable.any() else np.nan, found, np.flatnonzero(~usable).tolist())


def is_indicator(y):
    """Whether labels come as a matrix with a column per class: two-dimensional, and not a column of words or numbers beyond -1, 0, 1."""
    if y is None or not hasattr(y, "ndim") and not isinstance(y, (list, tuple)):
        return hasattr(y, "toarray")
    values = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
    return values.ndim == 2 and (values.shape[1] != 1 or (values.dtype.kind in "biuf" and np.isin(values, (-1, 0, 1)).all()))


def signs_of(y, n_samples):
    """An indicator matrix as signs.

    Parameters
    ----------
    y : array-like, shape (n, n_classes)
        0 and 1, or False and True, or -1 and 1.
    n_samples : int

    Returns
    -------
    ndarray of float64, shape (n_classes, n)
        -1 or 1.

    Raises
    ------
    ValueError
    """
    values = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
    if values.ndim != 2 or len(values) != n_samples or values.shape[1] == 0:
        raise ValueError(f"y must have one row per sample, {n_samples}, and a column per class, got shape {values.shape}")
    found = np.unique(values)
    if not (np.isin(found, (0, 1)).all() or np.isin(found, (-1, 1)).all()):
        raise ValueError(f"y must hold 0 and 1 (or -1 and 1) where it is an indicator matrix, got {found[:5].tolist()}")
    return np.ascontiguousarray(np.where(values > 0, 1.0, -1.0).T)


class MultiLabelMKL(KernelClassifier):
    """Base of the methods with a binary problem per class that take an indicator matrix as well as class labels.

    A subclass calls `_start` as ever, trains the binary problems of `_problem_signs`, and hands their coefficients to `_keep_problems`.
    """

    _multi_output = True

    def _labels(self, y, n_samples):
        self.indicator_ = is_indicator(y)
        if not self.indicator_:
            return super()._labels(y, n_samples)
        signs = signs_of(y, n_samples)
        usable = (signs > 0).any(axis=1) & (signs < 0).any(axis=1)
        if not usable.any():
            raise ValueError("y must have a class with positive and negative samples")
        self.classes_, self.skipped_classes_ = np.arange(len(signs)), np.flatnonzero(~usable)
        if not usable.all():
            skipped = self.skipped_classes_.tolist()
            warnings.warn(f"classes without positive or without negative samples are not trained: {skipped}", stacklevel=4)
        return signs

    def _problem_signs(self, labels):
        """Signs of the binary problems, (n_problems, n), from what `_start` returned: two labels are one problem, for the second."""
        if self.indicator_:
            self._signs_of_skipped = labels[self.skipped_classes_, 0]
            return np.delete(labels, self.skipped_classes_, axis=0)
        self.skipped_classes_, self._signs_of_skipped = self.classes_[:0], np.empty(0)
        wanted = (1,) if self.classes_.size == 2 else range(self.classes_.size)
        return np.stack([np.where(labels == c, 1.0, -1.0) for c in wanted])

    def _columns(self, values, skipped=0.0):
        """Values of the problems, (..., n_problems), for all columns of scores: skipped classes filled in, two labels in two halves."""
        values = np.asarray(values)
        if self.indicator_:
            out = np.empty((*values.shape[:-1], self.classes_.size))
            out[..., self.skipped_classes_] = skipped
            out[..., np.setdiff1d(self.classes_, self.skipped_classes_)] = values
            return out
        return two_columns(values) if values.shape[-1] == 1 else values

    def _keep_problems(self, coef, kernel_weights, bias=None):
        """Set the fitted attributes: coefficients (n, n_problems), kernel weights shared (n_kernels,) or per problem, biases."""
        if kernel_weights.ndim == 2:
            if self.indicator_:
                full = np.full((self.classes_.size, kernel_weights.shape[1]), 1.0 / kernel_weights.shape[1])
                full[np.setdiff1d(self.classes_, self.skipped_classes_)] = kernel_weights
                kernel_weights = full
            elif len(kernel_weights) == 1:
                kernel_weights = np.repeat(kernel_weights, 2, axis=0)
        self._keep(self._columns(coef), kernel_weights)
        if bias is not None or self.skipped_classes_.size:
            self.intercept_ = self._columns(np.zeros(coef.shape[1]) if bias is None else bias, self._signs_of_skipped)
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
            Shape (n, n_classes); for two class labels shape (n,), the second class's score minus the first's.
        """
        check_is_fitted(self)
        return self._class_scores(X) if self.indicator_ else super().decision_function(X)

    def predict(self, X):
        """Classes with a positive score as an indicator matrix, or, for class labels, the one with the largest score.

        Parameters
        ----------
        X : as in `decision_function`

        Returns
        -------
        ndarray
            Shape (n, n_classes) of 0 and 1, or (n,).
        """
        check_is_fitted(self)
        return (self._class_scores(X) > 0.0).astype(np.int64) if self.indicator_ else super().predict(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
