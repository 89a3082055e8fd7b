"""Learners of one pass over sorted classes say so: they forget the first ones."""

import inspect
import warnings

import numpy as np
import pytest
from estimators import ESTIMATORS, OF_SAMPLES, data, make

from cuelearn.kernels import FeatureMap
from cuelearn.mkl import UFOMKL

ONLINE = [n for n in OF_SAMPLES if "shuffle" in inspect.signature(ESTIMATORS[n]).parameters]


def messages(name, X, y, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(name, **options).fit(X, y)
    return [str(w.message) for w in caught if "sorted by class" in str(w.message)]


@pytest.mark.parametrize("name", ONLINE)
def test_sorted_classes_are_noticed(name):
    X, y = data(name)
    order = np.argsort(y, kind="stable")
    n_warnings = [len(messages(name, X[order], y[order], shuffle=s, n_epochs=1)) for s in (False, True)]
    assert n_warnings == [1, 0]
    assert not messages(name, X[order], y[order], shuffle=False, n_epochs=2)
    assert not messages(name, X, y, shuffle=False, n_epochs=1)


def test_batches_of_one_class_each_are_noticed():
    X, y = data("UFOMKL")
    cues = [("all", FeatureMap(None), slice(None))]
    order = np.argsort(y, kind="stable")
    sorted_batches = list(zip(np.array_split(X[order], 5), np.array_split(y[order], 5), strict=True))
    model = UFOMKL(cues, tol=None, n_epochs=1, random_state=0)
    with pytest.warns(UserWarning, match="Mix the classes in each batch"):
        model.fit(sorted_batches)
    for other, options in ((sorted_batches, {"tol": 0.01}), ([(X, y), (X, y)], {})):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            model.set_params(**options).fit(other)
