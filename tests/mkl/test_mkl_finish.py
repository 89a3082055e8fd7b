"""Every batch fit ends certified or says that it does not."""

import warnings

import numpy as np
import pytest
from mkl_data import SOLVERS
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import OBSCURE, UFOMKL, MKLProblem, PegasosMKL, duality_gap, solve_reference
from cuelearn.mkl.dual import finish_dual


@pytest.fixture(scope="module")
def digits():
    """240 digits in four strips, half of one of them noise."""
    X, y = load_digits(return_X_y=True)
    X = X[:240].copy()
    X[:, 48:] = np.random.default_rng(0).normal(size=(240, 16))
    cues = [(f"rows {2 * k}", RBF(), slice(16 * k, 16 * k + 16)) for k in range(4)]
    return cues, X, y[:240]


@pytest.mark.parametrize("C", [0.1, 1000.0])
@pytest.mark.parametrize("p", [1.001, 2.0, "auto"])
def test_defaults_end_certified_by_an_independent_computation(digits, C, p):
    cues, X, y = digits
    bank = KernelBank(cues, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = OBSCURE(cues, p=p, C=C, random_state=0).fit(X, y)
    assert model.converged_ and model.dual_gap_ <= 0.01 * model.objective_
    result = solve_reference(MKLProblem(bank, y, 10, p=p, C=C), tol=1e-3)
    best = result.objective - result.dual_gap
    assert best * (1 - 1e-9) <= model.objective_ <= result.objective * 1.01
    coef = np.zeros((len(y), 10))
    coef[model.support_] = model.dual_coef_
    options = {"dual_coef": coef, "kernel_weights": model.kernel_weights_, "p": p, "C": C}
    certificate = duality_gap(bank, y, result.extra["dual_point"], **options)
    assert certificate.objective == pytest.approx(model.objective_, rel=1e-3)  # in single precision
    assert certificate.gap <= 0.012 * certificate.objective


@pytest.mark.parametrize("estimator", [OBSCURE, UFOMKL, PegasosMKL])
def test_without_finish_it_is_the_published_algorithm_and_a_gap_is_said(digits, estimator):
    cues, X, y = digits
    model = estimator(cues, p=1.25, C=10.0, finish=False, random_state=3)
    with pytest.warns(ConvergenceWarning, match="relative duality gap is .*finish=True"):
        model.fit(X, y)
    problem = MKLProblem(KernelBank(cues, X), y, 10, p=1.25, C=10.0)
    wanted = SOLVERS[estimator](problem, rng=np.random.default_rng(3))
    assert_array_equal(model.dual_coef_, wanted.dual_coef[model.support_])
    assert_array_equal(model.kernel_weights_, wanted.kernel_weights)
    assert not model.converged_ and set(model.history_.stage) <= {"online", "batch"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.set_params(tol=None).fit(X, y)
        model.set_params(finish=True, tol=0.01).fit(X, y)
    assert model.history_.stage.iloc[-1] == "dual" and model.converged_


def test_sparse_weights_end_exactly_at_zero(digits):
    (cues, X, y), alpha = digits, 0.08
    model = UFOMKL(cues, p=1.5, C=1.0, alpha=alpha, tol=1e-5, random_state=0).fit(X, y)
    assert model.converged_ and model.kernel_weights_[3] == 0.0 and model.kernel_weights_[1] > 0.0
    bank = KernelBank(cues, X)
    reference = solve_reference(MKLProblem(bank, y, 10, p=1.5, C=1.0, alpha=alpha), tol=1e-6)
    assert model.objective_ == pytest.approx(reference.objective, rel=1e-5)
    assert_array_equal(model.kernel_weights_ > 0.0, reference.kernel_weights > 0.0)


def test_the_working_set_changes_nothing():
    """More samples than are always worked on together: the optimum is that of all of them."""
    rng = np.random.default_rng(0)
    y = np.arange(2600) % 5
    X = rng.normal(size=(2600, 6)) + 1.3 * rng.normal(size=(5, 6))[y]
    cues = [("a", RBF(), [0, 1, 2]), ("b", RBF(), [3, 4, 5])]
    whole, small = (KernelBank(cues, X, memory=memory) for memory in (2e9, 4e6))
    assert whole.resident and not small.resident
    results = []
    for bank in (whole, small):
        result = finish_dual(MKLProblem(bank, y, 5, p=1.25, C=10.0), np.zeros((2600, 5)), tol=1e-3)
        assert result.gap <= 1e-3 * result.objective
        assert np.count_nonzero(result.dual_coef.any(axis=1)) < 2600
        results.append(result.objective)
    assert results[0] == pytest.approx(results[1], rel=1e-3)


def test_a_memory_that_is_too_small_says_so(monkeypatch, digits):
    cues, X, y = digits
    monkeypatch.setattr("cuelearn.mkl.dual.LEAST_ROOM", 20)
    with pytest.warns(ConvergenceWarning, match="raise n_epochs or tol or memory"):
        found = OBSCURE(cues, p=1.05, n_epochs=1, memory=1e5, random_state=0).fit(X, y)
    # no worse than what the epochs reached
    epochs = found.history_[found.history_.stage != "dual"].objective
    assert found.objective_ <= epochs.iloc[-1]
