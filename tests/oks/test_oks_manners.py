"""What the estimators of the chapter do beside learning: warnings, what a callback sees, errors that name the argument."""

import warnings

import numpy as np
import pytest
from oks_twins import make_data, make_stack
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from cuelearn.kernels import RBF
from cuelearn.oks import OKS, SOM, OKSRegret, SelectedSVM, select_then_fit

KERNELS = [(str(k), RBF(gamma=1.0 + k), slice(None)) for k in range(10)]


def test_a_step_that_is_too_long_for_the_square_loss_is_said():
    X, y = make_data(300, seed=2, noise=0.2)
    with pytest.warns(ConvergenceWarning, match="step=1.0 is too long for the square loss"):
        OKSRegret(KERNELS, loss="square", step=1.0, random_state=0, verbose=False).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OKSRegret(KERNELS, loss="square", random_state=0, verbose=False).fit(X, y)


def test_a_callback_sees_the_history_so_far_and_ends_the_run():
    X, y = make_data(300, seed=2)
    seen = []

    def look(model, step):
        seen.append((step, len(model.history_), model.probability_history_.shape, model.kernel_probabilities_.sum()))
        return len(seen) == 3

    model = OKS(KERNELS, random_state=0, callback=look, verbose=False).fit(X, y)
    assert [s[1] for s in seen] == [1, 2, 3] and seen[-1][2] == (3, 10) and all(abs(s[3] - 1.0) < 1e-12 for s in seen)
    assert model.history_["step"].iloc[-1] == seen[-1][0] and len(model.history_) == 3


def test_errors_name_what_is_wrong():
    X, y = make_data(60, seed=2)
    with pytest.raises(NotFittedError):
        SelectedSVM(None).predict(X)
    K, labels = make_stack(60, 3)
    with pytest.raises(ValueError, match=r"X must have shape \(n_kernels, n, n\)"):
        OKS("precomputed").fit(K[:, :59], labels)
    with pytest.raises(ValueError, match=r"delta must be a number in \[0, 1\]"):
        SOM(KERNELS, delta=-0.1).fit(X, y)
    with pytest.raises(ValueError, match=r"delta must be a number in \(0, 1\]"):
        OKS(KERNELS, delta=0.0).fit(X, y)


def test_selection_that_was_made_before_counts_as_selection():
    X, y = make_data(200, seed=2)
    selector = OKS(KERNELS, random_state=0, verbose=False).fit(X, y)
    model = select_then_fit(selector, X, y, C=(1.0, 10.0), random_state=0)
    assert model.selector_ is selector and model.seconds_["selection"] == selector.history_["seconds"].iloc[-1]
    assert model.seconds_["total"] >= model.seconds_["selection"] + model.seconds_["training"]
    again = select_then_fit(OKS(KERNELS, random_state=0, verbose=False), X, y, C=(1.0, 10.0), random_state=0)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
