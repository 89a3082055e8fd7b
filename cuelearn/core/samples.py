"""Samples of estimators; values in unused columns are ignored."""

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from cuelearn.core.checks import FLOATS
from cuelearn.kernels.specifications import (
    as_samples,
    check_kernels,
    check_samples,
    extract_columns,
    feature_places,
    is_frame,
    resolve_columns,
)
from cuelearn.kernels.stack import refuse_kernels

__all__ = ["given_kernels", "new_samples", "training_samples", "validate_samples"]


def given_kernels(kernels):
    """The parameter `kernels` as checked triples, or None."""
    if kernels is None:
        return kernels
    return check_kernels(kernels)


def validate_samples(estimator, X, *y, used, **options):
    """scikit-learn's `validate_data`, with zeros for invalid numbers in columns that no cue uses; `used`
    returns the triples of all cues."""
    if issparse(X) and "accept_sparse" not in options:
        remedy = "use X.toarray(), or TruncatedSVD(100).fit_transform(X)"
        raise TypeError(f"{type(estimator).__name__} takes dense samples, got a sparse X: {remedy}")
    try:
        return validate_data(estimator, X, *y, **options)
    except (TypeError, ValueError):
        width = None
        if not options.get("reset", True):
            width = estimator.n_features_in_
        usable = _without_unused(X, used, width)
        if usable is None:
            raise
    return validate_data(estimator, usable, *y, **options)


def training_samples(estimator, X, y, *, used, **options):
    """Checked samples, an array or the DataFrame, and y; see `validate_samples`."""
    refuse_kernels(X)
    X = as_samples(X)
    checked, y = validate_samples(estimator, X, y, used=used, dtype=FLOATS, **options)
    return X if hasattr(X, "iloc") else checked, y


def new_samples(estimator, X, *, used, **options):
    """Samples to predict, an array or the DataFrame; the kernels check the columns of the latter."""
    X = as_samples(X)
    if is_frame(X) and len(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)
        return X
    return validate_samples(estimator, X, used=used, dtype=FLOATS, reset=False, **options)


def _without_unused(X, used, width=None):
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
    for name, _, columns in [("rbf", None, slice(None))] if triples is None else triples:
        index = resolve_columns(name, columns, X, n_features, places)
        extract_columns(X, index, name)
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
