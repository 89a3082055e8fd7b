"""transform: the combined kernel of new with training samples."""

import pickle

import numpy as np
import pytest
from estimators import CUES, ESTIMATORS, data, make
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, OneClassSVM

from cuelearn.core.estimator import load
from cuelearn.kernels import KernelBank, KernelStack
from cuelearn.mkl import OBSCURE, OM2

COMBINED = [name for name in sorted(ESTIMATORS) if hasattr(make(name), "transform")]
#: Each class, or each kernel's machine, has its own combination.
OTHERS = ("SimpleMKL", "GMKL", "LPBeta", "MKTL")


@pytest.mark.parametrize("name", COMBINED)
def test_the_combined_kernel(name, tmp_path):
    X, y = data(name)
    X[::4, :2] = np.nan
    model = make(name, missing="zero").fit(X[:40], y[:40])
    bank = KernelBank(CUES, X[:40], missing="zero")
    rows = np.concatenate([block for _, block in bank.cross(X).blocks()], axis=1)
    wanted = np.einsum("j,jik->ik", model.kernel_weights_, rows.astype(np.float64))
    close = {"rtol": 0, "atol": 1e-6 * wanted.max()}
    np.testing.assert_allclose(model.transform(X), wanted, **close)
    square = make(name, missing="zero").fit_transform(X[:40], y[:40])
    np.testing.assert_allclose(square, wanted[:40], **close)
    given = make(name, kernels="precomputed").fit(bank.stack, y[:40])
    given.save(tmp_path / "model")
    for found in (given.transform(bank.cross(X)), load(tmp_path / "model").transform(rows)):
        np.testing.assert_allclose(found, wanted, **close)
    assert found.dtype == np.float64 and model.get_feature_names_out()[39] == f"{name.lower()}39"


@pytest.mark.parametrize("name", OTHERS)
def test_what_has_none(name):
    assert len(COMBINED) == 12
    with pytest.raises(AttributeError, match=f"{name} has no transform: it needs one combination"):
        make(name).transform  # noqa: B018


def test_in_a_pipeline(tmp_path):
    """A pickle knows all training samples, a saved file and a stream the support."""
    X, y = data("OBSCURE")
    known = y < 2
    first = OBSCURE(CUES, random_state=0)
    detector = make_pipeline(first, OneClassSVM(kernel="precomputed", nu=0.1)).fit(X[known], y[known])
    wanted = detector.decision_function(X)
    assert wanted[known].mean() > wanted[~known].mean()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(detector)).decision_function(X), wanted)
    first.save(tmp_path / "model")
    for shrunk in (load(tmp_path / "model"), OM2(CUES).partial_fit(X, y, classes=range(3))):
        with pytest.raises(ValueError, match="transform needs all training samples"):
            shrunk.transform(X)
    stack = KernelStack(KernelBank(CUES, X).stack)
    machines = make_pipeline(OBSCURE("precomputed", random_state=0), SVC(kernel="precomputed"))
    assert GridSearchCV(machines, {"obscure__C": [0.1, 10.0]}, cv=2).fit(stack, y).best_score_ > 0.6
