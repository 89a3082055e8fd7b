"""Checks of parameters, with one-sentence messages."""

import numbers
import warnings

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from cuelearn.warn import warn_user

__all__ = [
    "FLOATS",
    "as_generator",
    "classes_and_labels",
    "classes_of_stream",
    "labels_of",
    "labels_within",
    "single_samples",
    "warn_if_sorted",
]

#: Data types of samples; others are converted to the first.
FLOATS = [np.float64, np.float32]


def as_generator(random_state):
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    whole = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    if random_state is not None and not (whole and random_state >= 0):
        raise ValueError(
            f"random_state must be None, an integer >= 0, a Generator or a RandomState, got {random_state!r}"
        )
    return np.random.default_rng(random_state)


def classes_of_stream(estimator, classes, fitted="classes_"):
    """Classes of an online learner, set in the first call of `partial_fit`, and whether this is the first."""
    if isinstance(classes, (set, frozenset)):
        classes = list(classes)
    if hasattr(estimator, fitted):
        if classes is not None and not np.array_equal(np.unique(classes), estimator.classes_):
            raise ValueError("classes must not change between calls of partial_fit")
        return estimator.classes_, False
    if classes is None:
        raise ValueError("classes must be given at the first call of partial_fit")
    known = np.unique(classes)
    if known.size < 2:
        raise ValueError(f"classes must hold at least 2 classes, got {known.size}")
    return known, True


def single_samples(rows, labels):
    """Those of the rows whose class has no other row, and the remaining ones."""
    _, places, counts = np.unique(labels[rows], return_inverse=True, return_counts=True)
    several = counts[places] > 1
    return rows[~several], rows[several]


def labels_of(estimator, y, n_samples):
    """y as a 1-D array of one label per sample, or a ValueError."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    if callable(y):
        raise ValueError("y must be an array of labels; a function is for partial_fit with a query")
    with warnings.catch_warnings():  # a batch of a stream may hold few samples of many classes
        warnings.filterwarnings("ignore", "The number of unique classes")
        check_classification_targets(y)
    y = column_or_1d(y, warn=True)
    if y.shape[0] != n_samples:
        raise ValueError(f"y must have one label per sample, {n_samples}, got {y.shape[0]}")
    return y


def classes_and_labels(y):
    """Sorted classes of y, at least two, and the index of each sample's class."""
    classes, labels = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise ValueError(f"y must hold at least 2 classes, got 1 class: {classes[0]!r}")
    return classes, labels


def labels_within(y, classes):
    """Indices of y in `classes`, or a ValueError that names unknown labels."""
    labels = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    if np.any(classes[labels] != y):
        raise ValueError(f"y holds labels outside classes: {sorted(set(y.tolist()) - set(classes.tolist()))}")
    return labels


def warn_if_sorted(estimator, labels, n_epochs):
    """Warn if the single pass of a learner sees the classes one after another."""
    if estimator.shuffle or n_epochs > 1:
        return
    n_classes = np.unique(labels).size
    blocks = np.count_nonzero(np.diff(labels)) + 1 == n_classes
    if blocks and labels.size >= 10 * n_classes:
        name = type(estimator).__name__
        warn_user(
            f"y is sorted by class, and {name} visits the samples once in this order: it forgets the first "
            "classes. Set shuffle=True, or permute the samples."
        )
