"""What the estimators of the chapter do beside learning: warnings, what a callback sees, errors that name
the argument."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from oks_twins import make_data
from sklearn.exceptions import ConvergenceWarning

from cuelearn.kernels import RBF, ExpDistance
from cuelearn.oks import OKS, OKSRegret, load, select_then_fit

KERNELS = [(str(k), RBF(scale=1.0 + k), slice(None)) for k in range(10)]


def test_a_step_that_is_too_long_for_the_square_loss_is_said():
    X, y = make_data(300, seed=2, noise=0.2)
    with pytest.warns(ConvergenceWarning, match="step=1.0 is too long for the square loss"):
        OKSRegret(KERNELS, loss="square", step=1.0, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OKSRegret(KERNELS, loss="square", random_state=0).fit(X, y)


def test_a_callback_sees_the_history_so_far_and_ends_the_run():
    X, y = make_data(300, seed=2)
    seen = []

    def look(model, step):
        seen.append(
            (step, len(model.history_), model.probability_history_.shape, model.kernel_probabilities_.sum())
        )
        return len(seen) == 3

    model = OKS(KERNELS, random_state=0, callback=look).fit(X, y)
    assert [s[1] for s in seen] == [1, 2, 3]
    assert seen[-1][2] == (3, 10)
    assert all(abs(s[3] - 1.0) < 1e-12 for s in seen)
    assert model.history_["step"].iloc[-1] == seen[-1][0] and len(model.history_) == 3


def test_selection_that_was_made_before_counts_as_selection():
    X, y = make_data(200, seed=2)
    selector = OKS(KERNELS, random_state=0).fit(X, y)
    model = select_then_fit(selector, X, y, C=(1.0, 10.0), random_state=0)
    assert model.selector_ is selector
    assert model.seconds_["selection"] == selector.history_["seconds"].iloc[-1]
    assert model.seconds_["total"] >= model.seconds_["selection"] + model.seconds_["training"]
    again = select_then_fit(OKS(KERNELS, random_state=0), X, y, C=(1.0, 10.0), random_state=0)
    assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_a_selected_svm_is_saved_with_its_selector(tmp_path):
    X, y = make_data(200, seed=2)
    model = select_then_fit(OKS(KERNELS, random_state=0), X, y, C=(1.0, 10.0), random_state=0)
    model.save(tmp_path / "model.npz")
    found = load(tmp_path / "model.npz")
    assert_array_equal(found.selector_.kernel_probabilities_, model.selector_.kernel_probabilities_)
    assert found.fit(X, y).score(X, y) > 0.5


def test_a_fitted_selector_gets_the_columns_and_classes_it_knows():
    X, y = make_data(120, seed=2)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    selector = OKS([("a", RBF(), ["a", "b"]), ("c", RBF(), ["c", "d"])], random_state=0)
    selector.fit(frame, y)
    assert select_then_fit(selector, frame, y, C=1.0).score(frame, y) > 0.5
    with pytest.raises(ValueError, match="feature names"):
        select_then_fit(selector, frame[list("fedcba")], y, C=1.0)
    with pytest.raises(ValueError, match="y must hold the classes that the selector was fitted on"):
        select_then_fit(selector, frame, y + 1, C=1.0)


def test_matrices_among_the_columns_are_refused_at_any_size():
    D = np.abs(np.subtract.outer(np.arange(600.0), np.arange(600.0)))
    with pytest.raises(ValueError, match="kernels must be computed from X here"):
        OKS([("d", ExpDistance("precomputed"), slice(None))]).fit(D, np.arange(600) % 2)
