"""One fit of each estimator serves all tests of this folder."""

import copy
import functools
import warnings

import estimators
import pytest
from sklearn.exceptions import ConvergenceWarning


@functools.cache
def _fitted(name):
    X, y = estimators.data(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimators.make(name).fit(X, y), X, y


@pytest.fixture
def fitted():
    """Called with a name: a fitted estimator, a copy, and what it was fitted on."""
    return lambda name: copy.deepcopy(_fitted(name))
