"""Saved models: the same bits after loading, no pickle."""

import os
import pickle

import joblib
import numpy as np
import pytest
from estimators import ESTIMATORS, OF_SAMPLES, attached, data, make, outputs
from sklearn.base import clone

from cuelearn.core.estimator import Estimator, load
from cuelearn.core.storage import pack

#: Attributes that a saved model holds cut down, or not at all.
CUT = ("bank_", "bank_support_", "selector_", "learners_", "integrator_", "learner_", "machines_")


def packed(value):
    """A value with all of its types, as text and bytes; tests/core/test_storage.py has what comes back."""
    plain, arrays = pack(value)
    return repr(plain), {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


def attributes(model):
    return {k: v for k, v in vars(model).items() if k.endswith("_") and k not in CUT}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_round_trip(name, fitted, tmp_path):
    model, X, given = fitted(name)
    wanted = outputs(model, name, X, given)
    model.save(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]  # the name as given, nothing besides
    with np.load(tmp_path / "model", allow_pickle=False) as archive:
        assert all(archive[key].dtype.kind in "biufU" for key in archive.files)
    load(tmp_path / "model").save(tmp_path / "again")
    for found in (load(tmp_path / "model"), type(model).load(str(tmp_path / "again"))):
        assert type(found) is type(model)
        attached(found, model)
        np.testing.assert_equal(outputs(found, name, X, given), wanted)
        held = attributes(found)
        assert attributes(model).keys() - held.keys() <= {"history_", "probability_history_", "n_iter_"}
        for key, value in attributes(model).items():
            if key in held:
                assert packed(held[key]) == packed(value), key


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_two_words_come_back(name, tmp_path):
    X, y = data(name, 40)
    model = make(name).fit(X, np.array(["ant", "bee", "bee"])[y])
    model.save(tmp_path / "model")
    found = attached(load(tmp_path / "model"), model)
    assert packed(found.classes_) == packed(model.classes_)
    assert packed(found.predict(X)) == packed(model.predict(X))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_come_back(name, fitted, tmp_path):
    """But a callback and a generator; a clone learns the same model."""
    model, X, given = fitted(name)
    left = {"callback": lambda *_: None, "random_state": np.random.default_rng(0)}
    model.set_params(**{k: v for k, v in left.items() if k in model.get_params()})
    model.save(tmp_path / "model")
    found = load(tmp_path / "model")
    parameters = found.get_params(deep=False)
    assert parameters.keys() == model.get_params(deep=False).keys()
    assert parameters.get("callback") is None and parameters.get("random_state") is None
    for key, value in model.get_params(deep=False).items():
        if isinstance(value, (bool, int, float, str, type(None))) and key not in left:
            assert packed(parameters[key]) == packed(value), key
    if name in OF_SAMPLES and "priors" not in parameters:
        if "random_state" in parameters:
            found.set_params(random_state=0)
        again = clone(found).fit(X, given)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_file_of_another_class(fitted, tmp_path):
    fitted("KernelPA")[0].save(tmp_path / "new" / "folder" / "model.npz")
    path = tmp_path / "new" / "folder" / "model.npz"
    with pytest.raises(ValueError, match=r"model\.npz holds a KernelPA, not a OM2"):
        ESTIMATORS["OM2"].load(path)
    assert isinstance(Estimator.load(path), ESTIMATORS["KernelPA"])


@pytest.mark.parametrize("name", [name for name in OF_SAMPLES if hasattr(ESTIMATORS[name], "partial_fit")])
def test_learning_goes_on_from_a_file_that_is_mapped_read_only(name, tmp_path):
    X, y = data(name)
    model = make(name).partial_fit(X[:40], y[:40], classes=[0, 1, 2])
    joblib.dump(model, tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    for each in (model, mapped):
        each.partial_fit(X[40:], y[40:])
    np.testing.assert_array_equal(mapped.decision_function(X), model.decision_function(X))
    assert (tmp_path / "model").read_bytes() == before


def test_a_broken_model_does_not_replace_a_good_file(tmp_path):
    X, y = data("KernelPerceptron")
    model = make("KernelPerceptron").fit(X, y)
    model.save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    model._support.size -= 1
    with pytest.raises(ValueError, match="the KernelPerceptron was not saved, it is damaged: "):
        model.save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize(
    "name", ["OBSCURE", "OM2", "AverageKernelSVM", "LPBeta", "MuSVM", "ProjectronPlusPlus"]
)
def test_a_pickle_holds_what_predicting_needs(name):
    X, y = data(name, n=600)
    model = make(name).fit(X, y)
    content = pickle.dumps(model)
    assert len(content) < 0.25 * 3 * 4 * len(X) ** 2  # of three kernel matrices
    np.testing.assert_array_equal(pickle.loads(content).decision_function(X), model.decision_function(X))
