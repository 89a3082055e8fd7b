"""Saved models: the same bits after loading, no pickle, and a clear word about a damaged file."""

import os

import numpy as np
import pandas as pd
import pytest
from mkl_data import ALL, COLUMNS, CUES, NAMED, make, make_data
from sklearn.base import clone

from cuelearn.kernels import KernelBank, Linear
from cuelearn.mkl import OBSCURE, UFOMKL, KernelPA, load

NEW, _ = make_data(40, seed=1)


def fitted_attributes(model):
    return {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and name not in ("bank_", "bank_support_")
    }


def check_equal(loaded, model):
    assert type(loaded) is type(model)
    wanted, found = fitted_attributes(model), fitted_attributes(loaded)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if isinstance(value, pd.DataFrame):
            pd.testing.assert_frame_equal(found[name], value)
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(found[name], value)
            if value.dtype != object:  # of strings
                assert found[name].dtype == value.dtype
        else:
            assert found[name] == value and type(found[name]) is type(value), name


@pytest.mark.parametrize("cls", ALL)
def test_round_trip_of_precomputed(cls, tmp_path):
    X, y = make_data(60)
    bank = KernelBank(CUES, X)
    cross = np.concatenate([block for _, block in bank.cross(NEW).blocks()], axis=1)
    model = make(cls, "precomputed").fit(bank.stack, y)
    model.save(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]  # the name as given, nothing besides
    loaded = load(tmp_path / "model")
    check_equal(loaded, model)
    np.testing.assert_array_equal(loaded.decision_function(cross), model.decision_function(cross))
    # the file holds the model, not the kernels
    assert (tmp_path / "model").stat().st_size < bank.stack.nbytes / 2
    again = clone(loaded).fit(bank.stack, y)
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)


@pytest.mark.parametrize("cls", ALL)
def test_round_trip_with_named_columns(cls, tmp_path):
    X, y = make_data(60)
    model = make(cls, NAMED).fit(pd.DataFrame(X, columns=COLUMNS), y)
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    frame = pd.DataFrame(NEW, columns=COLUMNS)
    np.testing.assert_array_equal(loaded.decision_function(frame), model.decision_function(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[COLUMNS[::-1]])


def test_infinite_attributes_and_missing_history_entries(tmp_path):
    X, y = make_data(60)
    model = OBSCURE(CUES, n_epochs=3, random_state=0).fit(X, y)
    model.radius_ = np.inf
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert loaded.radius_ == np.inf
    check_equal(loaded, model)


def test_a_model_without_support(tmp_path):
    """alpha so large that w = 0, and kernels that are all 0."""
    X, y = make_data(60)
    for model in (
        UFOMKL(CUES, alpha=1e6, random_state=0).fit(X, y),
        KernelPA([("zero", Linear(), [0])]).fit(0.0 * X, y),
    ):
        model.save(tmp_path / "model.npz")
        loaded = load(tmp_path / "model.npz")
        check_equal(loaded, model)
        np.testing.assert_array_equal(loaded.decision_function(NEW), np.zeros((40, 3)))
