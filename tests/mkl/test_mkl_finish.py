"""Every batch fit ends certified or says that it does not."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import (
    OBSCURE,
    UFOMKL,
    MKLProblem,
    PegasosMKL,
    duality_gap,
    solve_obscure,
    solve_pegasos_mkl,
    solve_reference,
    solve_ufo,
)
from cuelearn.mkl.crammer_singer import optimal_scaling
from cuelearn.mkl.dual import finish_dual, kernel_scores
from cuelearn.mkl.problem import kernel_norms_sq

SOLVERS = {OBSCURE: solve_obscure, UFOMKL: solve_ufo, PegasosMKL: solve_pegasos_mkl}


@pytest.fixture(scope="module")
def digits():
    """240 digits in four strips, half of one of them noise."""
    X, y = load_digits(return_X_y=True)
    X = X[:240].copy()
    X[:, 48:] = np.random.default_rng(0).normal(size=(240, 16))
    cues = [(f"rows {2 * k}", RBF(), slice(16 * k, 16 * k + 16)) for k in range(4)]
    return cues, X, y[:240]


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("p", [1.001, 1.25, 2.0, "auto"])
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
    assert certificate.objective == pytest.approx(
        model.objective_, rel=1e-3
    )  # in the bank's single precision
    assert certificate.gap <= 0.012 * certificate.objective


@pytest.mark.parametrize("estimator", SOLVERS, ids=lambda e: e.__name__)
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


def test_the_history_of_an_ascent_only_falls(digits):
    cues, X, y = digits
    model = OBSCURE(cues, p=1.05, C=100.0, tol=1e-4, random_state=0).fit(X, y)
    dual = model.history_[model.history_.stage == "dual"]
    assert (np.diff(dual.objective) <= 0.0).all() and (np.diff(model.history_.seconds) >= 0.0).all()
    assert dual.dual_gap.iloc[-1] == model.dual_gap_ <= 1e-4 * model.objective_


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


def test_a_start_that_is_good_enough_is_left_alone(digits):
    cues, X, y = digits
    problem = MKLProblem(KernelBank(cues, X), y, 10, C=1.0)
    first = finish_dual(problem, np.zeros((240, 10)), tol=1e-4)
    again = finish_dual(problem, first.dual_point, tol=1e-2)
    assert again.n_rounds == 0 and again.n_updates == 0 and again.gap <= 1e-2 * again.objective


def test_norms_and_scores_by_plain_sums():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(3, 40, 8))
    K = A @ A.transpose(0, 2, 1)
    coef = rng.normal(size=(40, 4)) * (rng.random(40) < 0.5)[:, None]
    bank = KernelBank.from_stack(K)
    assert_allclose(kernel_norms_sq(bank, coef), [np.sum(coef * (k @ coef)) for k in K], rtol=1e-12)
    weights = np.array([0.5, 0.0, 2.0])
    assert_allclose(kernel_scores(bank, coef, weights), np.tensordot(weights, K, 1) @ coef, rtol=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_stretch_is_the_least_on_a_fine_grid(seed):
    rng = np.random.default_rng(seed)
    margin, limits = rng.normal(1.0, 0.5, size=30), rng.uniform(0.5, 2.0, size=30)
    quadratic, linear = rng.uniform(0.01, 1.0), rng.choice([0.0, 0.3])
    stretch, value = optimal_scaling(margin, limits, quadratic, linear)
    grid = np.linspace(0.0, 5.0, 100_001)[1:, None]
    losses = (limits * np.maximum(0.0, 1.0 - grid * margin)).mean(axis=1)
    values = grid[:, 0] ** 2 * quadratic + grid[:, 0] * linear + losses
    assert value <= values.min() + 1e-12 and (stretch == 1.0 or value >= values.min() - 1e-4)
