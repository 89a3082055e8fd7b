r"""Samples, labels and weights of estimators, checked; values in unused columns are ignored.

With sample weights :math:`s_i`, :math:`W = \sum_i s_i` and class weights :math:`c`, every regularised problem
of the package becomes

.. math:: \frac\lambda2 \|w\|^2 + \alpha \|w\|_{2,1} + \frac1W \sum_i s_i c_{y_i} \ell_i(w), \qquad
          \lambda = \frac1{CW} .

Weight 2 duplicates a sample, weight 0 omits it. Multiplied by :math:`CW`, the losses have the factors
:math:`C s_i c_{y_i}`, as in scikit-learn's SVC.
"""

import warnings
from collections.abc import Callable, Iterable
from numbers import Integral, Number
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from cuelearn.expect import expect, expect_among, expect_list, expect_shape, warn_user
from cuelearn.kernels.bank import CrossBank, KernelBank
from cuelearn.kernels.specifications import (
    as_samples,
    check_kernels,
    check_samples,
    extract_columns,
    feature_places,
    is_frame,
    resolve_columns,
)
from cuelearn.kernels.stack import KernelStack, refuse_kernels
from cuelearn.kernels.types import MatrixLike

Batches = Iterable[tuple[Any, Any]]
#: Samples, kernels, or batches of samples and labels.
InputLike = MatrixLike | KernelBank | CrossBank | KernelStack | Batches | Callable[[], Batches]


def given_kernels(kernels):
    if kernels is None:
        return kernels
    return check_kernels(kernels)


def validate_samples(estimator, X, *y, used, **options):
    """scikit-learn's `validate_data`, for invalid numbers in columns that no cue uses; `used` returns the
    triples of all cues."""
    if issparse(X) and "accept_sparse" not in options:
        remedy = "use X.toarray(), or TruncatedSVD(100).fit_transform(X)"
        raise TypeError(f"{type(estimator).__name__} takes dense samples, got a sparse X: {remedy}")
    missing = estimator.missing == "zero"
    if missing:
        options["ensure_all_finite"] = "allow-nan"
    try:
        return validate_data(estimator, X, *y, **options)
    except (TypeError, ValueError):
        width = None
        if not options.get("reset", True):
            width = estimator.n_features_in_
        usable = _without_unused(X, used, width, missing)
        if usable is None:
            raise
    return validate_data(estimator, usable, *y, **options)


def training_samples(estimator, X, y, *, used, **options):
    """Checked samples, an array or the DataFrame, and y; see `validate_samples`."""
    refuse_kernels(X)
    X = as_samples(X)
    checked, y = validate_samples(estimator, X, y, used=used, dtype=FLOATS, **options)
    return X if is_frame(X) else checked, y


def new_samples(estimator, X, *, used, **options):
    """Samples to predict, an array or the DataFrame, whose columns the kernels check."""
    X = as_samples(X)
    if is_frame(X) and len(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)
        return X
    return validate_samples(estimator, X, used=used, dtype=FLOATS, reset=False, **options)


def _without_unused(X, used, width=None, missing=False):
    """X with zeros in unused columns; None if that does not help."""
    try:
        X, _, n_features, feature_names = check_samples(X)
    except (TypeError, ValueError):
        return None
    if np.iscomplexobj(X) or n_features == 0 or width not in (None, n_features):
        return None
    places = feature_places(feature_names)
    unused = np.ones(n_features, dtype=bool)
    triples = used()
    for name, kernel, columns in [("rbf", None, slice(None))] if triples is None else triples:
        index = resolve_columns(name, columns, X, n_features, places)
        if getattr(kernel, "takes_text", False):
            if not is_frame(X):
                raise ValueError(f"cue {name!r}: texts need a DataFrame")
            continue
        extract_columns(X, index, name, missing=missing)
        unused[index] = False
    if not unused.any():
        return None
    X = X.copy()
    if issparse(X):
        X.data[unused[X.indices]] = 0
        return X
    for i in np.flatnonzero(unused):
        if is_frame(X):
            X.isetitem(i, 0.0)
        else:
            X[:, i] = 0
    return X


#: Types of samples; others are converted to the first.
FLOATS = [np.float64, np.float32]


def as_generator(random_state):
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    whole = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if random_state is not None and not (whole and random_state >= 0):
        raise ValueError(
            f"random_state must be None, an integer >= 0, a Generator or a RandomState, got {random_state!r}"
        )
    return np.random.default_rng(random_state)


def classes_of_stream(estimator, classes, fitted="classes_"):
    """Classes of an online learner, and whether this is the first call of `partial_fit`."""
    if isinstance(classes, (set, frozenset)):
        classes = list(classes)
    if hasattr(estimator, fitted):
        if classes is not None and not np.array_equal(np.unique(classes), estimator.classes_):
            raise ValueError("classes must not change between calls of partial_fit")
        return estimator.classes_, False
    if classes is None:
        raise ValueError("classes must be given at the first call of partial_fit")
    known = np.unique(classes)
    expect_list("classes", known, "different labels", least=2)
    return known, True


def single_samples(rows, labels):
    """Rows whose class has no other row, and the remaining ones; ValueError if none remain."""
    _, places, counts = np.unique(labels[rows], return_inverse=True, return_counts=True)
    several = counts[places] > 1
    if not several.any():
        raise ValueError("y must hold at least 2 samples of a class, so that some can be held back")
    return rows[~several], rows[several]


def labels_of(estimator, y, n_samples):
    """y as a 1-D array of one label per sample, or a ValueError."""
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
    if callable(y):
        raise ValueError("y must be an array of labels; a function is for partial_fit with a query")
    with warnings.catch_warnings():  # a batch of a stream may hold few samples of many classes
        warnings.filterwarnings("ignore", "The number of unique classes")
        check_classification_targets(y)
    y = column_or_1d(y, warn=True)
    return expect_shape("y", y, (n_samples,))


def classes_and_labels(y):
    """Sorted classes of y, at least two, and the index of each sample's class."""
    classes, labels = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise ValueError(f"y must hold at least 2 classes, got 1 class: {classes[0]!r}")
    return classes, labels


def labels_within(y, classes):
    """Indices of y in `classes`, or a ValueError that names unknown labels."""
    labels = np.minimum(np.searchsorted(classes, y), classes.size - 1)
    wrong = classes[labels] != y
    if np.any(wrong):
        expect_among("y", y[wrong].tolist(), classes.tolist())
    return labels


def warn_if_sorted(estimator, labels, n_epochs):
    """Warn if the single pass of a learner sees the classes one after another."""
    if not estimator.shuffle and n_epochs == 1:
        how = "the samples once in this order"
        warn_of_classes(estimator, labels, how, "Set shuffle=True, or permute the samples.")


def warn_of_classes(estimator, labels, how, cure):
    """Warn if one class comes after another."""
    n_classes = np.unique(labels).size
    blocks = np.count_nonzero(np.diff(labels)) + 1 == n_classes
    if blocks and labels.size >= 10 * n_classes:
        name = type(estimator).__name__
        warn_user(f"y is sorted by class, and {name} visits {how}: it forgets the first classes. {cure}")


# Range of positive weights, for sums and quotients in float64.
SMALLEST_WEIGHT = 1e-50
LARGEST_WEIGHT = 1e50


def _checked(sample_weight, n_samples):
    if isinstance(sample_weight, Number):
        sample_weight = np.full(n_samples, sample_weight)
    weights = expect("sample_weight", sample_weight, shape=(n_samples,), low=0, high=LARGEST_WEIGHT)
    least = weights[weights > 0.0].min(initial=np.inf)
    if least < SMALLEST_WEIGHT:
        raise ValueError(f"sample_weight must be 0 or at least {SMALLEST_WEIGHT:g}, got {least:g}")
    return weights.copy()


def check_sample_weight(sample_weight, n_samples):
    """Sample weights as float64, or None; ValueError if all are zero."""
    if sample_weight is None:
        return None
    weights = _checked(sample_weight, n_samples)
    if not weights.any():
        raise ValueError("sample_weight must hold at least one positive weight, got zeros only")
    return weights


def with_weight(labels, n_classes, sample_weight):
    """Which classes have a sample of positive weight; ValueError if fewer than two."""
    if sample_weight is None:
        return np.ones(n_classes, dtype=bool)
    present = np.bincount(labels, weights=sample_weight, minlength=n_classes) > 0.0
    if np.count_nonzero(present) < 2:
        raise ValueError("sample_weight must be positive for samples of at least two classes")
    return present


def repeated_rows(sample_weight, most):
    """Numbers of samples, each as often as its weight, maybe divided by the mean, says; at most `most`."""
    counts = sample_weight
    if np.any(counts != np.round(counts)):
        counts = np.round(counts / counts[counts > 0.0].mean())
    ends = np.cumsum(counts)
    places = np.linspace(0.0, ends[-1] - 1.0, int(min(ends[-1], most))).round()
    return np.searchsorted(ends, places, side="right")


def visit_weights(sample_weight, n_samples, stream=False):
    """Factors on the updates of an online learner; a batch of a `stream` may have only zeros."""
    if sample_weight is None:
        return np.ones(n_samples)
    return (_checked if stream else check_sample_weight)(sample_weight, n_samples)


def class_weights(class_weight, classes, labels, sample_weight=None):
    """Weight of each class's losses, a dict class -> weight; `labels` are indices into `classes`.

    "positive" gives the second of two classes the weight n_first / n_second, the first 1.
    """
    keys = classes.tolist()
    if class_weight is None:
        return dict.fromkeys(keys, 1.0)
    if isinstance(class_weight, dict):
        unknown = set(class_weight) - set(keys)
        if unknown and not set(keys) <= set(class_weight):  # else the classes are those of all folds
            names = sorted(map(str, unknown))
            raise ValueError(f"class_weight names classes of which y has no sample with weight: {names}")
        return {c: expect(f"class_weight[{c!r}]", class_weight.get(c, 1.0), above=0) for c in keys}
    counts = np.bincount(labels, weights=sample_weight, minlength=classes.size).astype(np.float64)
    if not counts.all():
        empty = keys[int(np.argmin(counts))]
        raise ValueError(f"class_weight={class_weight!r} needs samples with weight of every class: {empty!r}")
    if class_weight == "balanced":
        return dict(zip(keys, (counts.sum() / (classes.size * counts)).tolist(), strict=True))
    if classes.size != 2:
        raise ValueError(
            f"class_weight='positive' needs exactly 2 classes, y has {classes.size}; use 'balanced' or a dict"
        )
    return {keys[0]: 1.0, keys[1]: float(counts[0] / counts[1])}


def loss_weights(sample_weight, class_weight, classes, labels):
    """Products of sample and class weights, (n_samples,), or None if all are 1."""
    if class_weight is None:
        return sample_weight
    known = class_weights(class_weight, classes, labels, sample_weight)
    per_sample = np.array([known[c] for c in classes.tolist()])[labels]
    if sample_weight is None:
        return per_sample
    return per_sample * sample_weight
