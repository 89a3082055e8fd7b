"""Every batch fit ends certified or says that it does not; dual ascent takes over where its samples fit."""

import warnings

import numpy as np
import pytest
from mkl_data import SOLVERS
from numpy.testing import assert_array_equal
from plain_mkl import all_coefficients, plain_losses
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
    solve_reference,
    solve_ufo,
)
from cuelearn.mkl.optimum.dual import Machine, ascend, finish_dual, own_gap, plain_machine


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
    options = {"dual_coef": all_coefficients(model), "kernel_weights": model.kernel_weights_, "p": p, "C": C}
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


def test_a_memory_that_is_too_small_says_so(monkeypatch, digits):
    cues, X, y = digits
    monkeypatch.setattr("cuelearn.mkl.optimum.dual.LEAST_ROOM", 20)
    with pytest.warns(ConvergenceWarning, match="raise n_epochs or tol or memory"):
        model = OBSCURE(cues, p=1.05, n_epochs=4, memory=1e5, random_state=0).fit(X, y)
    epochs = model.history_[model.history_.stage != "dual"]
    assert model.objective_ <= epochs.objective.iloc[-1]
    assert (epochs.stage == "batch").sum() == 4 and not model.converged_


def in_halves(n, memory=2e9):
    X, y = load_digits(return_X_y=True)
    cues = [("upper", RBF(), slice(0, 32)), ("lower", RBF(), slice(32, 64))]
    return y[:n], KernelBank(cues, X[:n], memory=memory)


@pytest.mark.parametrize("solver", [solve_obscure, solve_ufo])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_the_ascent_replaces_the_epochs_that_follow(solver, C):
    y, bank = in_halves(700)
    problem = MKLProblem(bank, y, 10, p=1.25, C=C)
    result = solver(problem, tol=0.01, finish=True, rng=np.random.default_rng(0))
    stages = result.history.stage[result.history.stage != "dual"]
    assert set(stages) == {"online"} if solver is solve_obscure else list(stages) == ["batch"]
    assert result.converged and result.n_iter == len(stages) <= 5


@pytest.mark.parametrize("start, memory", [("zero", 2e9), ("few samples", 4e6), ("all samples", 2e9)])
def test_any_start_ends_at_the_optimum_of_all_samples(start, memory):
    y, bank = in_halves(1500, memory)
    assert bank.resident == (memory > 1e9)
    problem = MKLProblem(bank, y, 10, p=1.5, C=10.0)
    B = np.zeros((1500, 10))
    chosen = {"zero": [], "few samples": np.arange(0, 1500, 15), "all samples": np.arange(1500)}[start]
    B[chosen, y[chosen]] = 1.0
    B[chosen, (y[chosen] + 1) % 10] = -1.0
    result = finish_dual(problem, B, tol=1e-4)
    assert result.fits and result.gap <= 1e-4 * result.objective
    rough = finish_dual(problem, B, tol=2.0)
    assert np.isfinite(rough.objective) and rough.gap <= 2.0 * rough.objective
    assert result.objective == pytest.approx(solve_reference(problem, tol=1e-4).objective, rel=2e-4)


@pytest.mark.parametrize("n_classes", [2, 10, 60])
def test_newton_steps_change_the_time_and_not_the_optimum(monkeypatch, n_classes):
    rng = np.random.default_rng(0)
    y = np.arange(180) % n_classes
    X = rng.normal(size=(180, 5)) + rng.normal(size=(n_classes, 5))[y]
    machine = plain_machine(np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2)) * 300.0, y, n_classes)
    values = []
    for steps in (True, False):
        if not steps:
            monkeypatch.setattr("cuelearn.mkl.optimum.dual.face_step", lambda *_: None)
        B = np.zeros((180, n_classes))
        scores = np.zeros((n_classes, 180))
        theta = np.zeros((n_classes, 0))
        _, solved, _ = ascend(machine, B, scores, theta, 1e-6, 100_000, 10**8)
        assert solved and own_gap(machine, B, scores, theta) <= 1e-5
        np.testing.assert_allclose(scores, B.T @ machine.kernel / 180, atol=1e-9)
        values.append(B[np.arange(180), y].sum() / 180 - 0.5 * np.sum(B * scores.T) / 180)
    assert values[0] == pytest.approx(values[1], abs=1e-5)


def test_the_own_gap_is_that_of_the_best_multiple():
    """By plain sums, with priors and weights; the divisor counts more samples than these."""
    rng = np.random.default_rng(0)
    y = np.arange(12) % 3
    rows = np.arange(12)
    X = rng.normal(size=(12, 5))
    S = rng.normal(size=(12, 4))
    machine = Machine(X @ X.T, y, rng.uniform(1.0, 2.0, 12), 20, S, rng.random((3, 4)))
    B = -0.5 * rng.random((12, 3))
    B[rows, y] = 0.0
    B[rows, y] = -B.sum(axis=1)
    scores = B.T @ machine.kernel / 20
    theta = B.T @ S / 20
    values = scores.T + S @ (machine.of_priors * theta).T
    quadratic = 0.5 * np.sum(B * values) / 20
    multiples = np.linspace(0.0, 5.0, 5001)
    primal = min(s**2 * quadratic + machine.limits @ plain_losses(s * values, y) / 20 for s in multiples)
    dual = B[rows, y].sum() / 20 - quadratic
    assert own_gap(machine, B, scores, theta) == pytest.approx(primal - dual, rel=1e-4)
