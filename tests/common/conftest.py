"""One fit of each estimator serves all tests of this folder."""

import copy
import functools

import estimators
import pytest


@functools.cache
def _fitted(name):
    X, y = estimators.data(name)
    return estimators.make(name).fit(X, y), X, y


@pytest.fixture
def fitted():
    """Called with a name: a fitted estimator, a copy, and what it was fitted on."""
    return lambda name: copy.deepcopy(_fitted(name))
