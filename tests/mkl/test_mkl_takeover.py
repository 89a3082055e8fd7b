"""By default dual ascent takes over from the epochs as soon as its samples fit in memory."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import MKLProblem, duality_gap, solve_obscure, solve_reference, solve_ufo
from cuelearn.mkl.crammer_singer import ascend, own_gap, plain_machine
from cuelearn.mkl.dual import finish_dual


def digits(n, **options):
    X, y = load_digits(return_X_y=True)
    cues = [("upper", RBF(), slice(0, 32)), ("lower", RBF(), slice(32, 64))]
    return KernelBank(cues, X[:n], **options), y[:n]


def solved(solver, problem, **options):
    return solver(problem, tol=0.01, finish=True, rng=np.random.default_rng(0), **options)


@pytest.mark.parametrize("solver", [solve_obscure, solve_ufo])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_the_ascent_replaces_the_epochs_that_follow(solver, C):
    bank, y = digits(700)
    problem = MKLProblem(bank, y, 10, p=1.25, C=C)
    result = solved(solver, problem)
    stages = result.history.stage[result.history.stage != "dual"]
    assert set(stages) == {"online"} if solver is solve_obscure else list(stages) == ["batch"]
    assert result.converged and result.n_iter == len(stages) <= 5
    best = solve_reference(problem, tol=1e-4)
    assert best.objective - best.dual_gap <= result.objective <= 1.011 * best.objective
    point = {"dual_coef": result.dual_coef, "kernel_weights": result.kernel_weights, "p": 1.25, "C": C}
    certificate = duality_gap(bank, y, best.extra["dual_point"], **point)
    assert certificate.objective == pytest.approx(result.objective, rel=1e-3)  # in single precision


def test_epochs_go_on_if_the_samples_do_not_fit(monkeypatch):
    monkeypatch.setattr("cuelearn.mkl.dual.LEAST_ROOM", 20)
    bank, y = digits(300, memory=1e5)
    problem = MKLProblem(bank, y, 10, C=10.0)
    with pytest.warns(match="tol or memory"):
        result = solved(solve_obscure, problem, n_epochs=4)
    assert (result.history.stage == "batch").sum() == 4 and not result.converged


@pytest.mark.parametrize("start", ["zero", "few samples", "all samples"])
def test_any_start_ends_at_the_optimum_of_all_samples(start):
    """Working sets of few samples grow until none outside has a loss."""
    bank, y = digits(1500)
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
    """With few free classes of a sample, and with many."""
    rng = np.random.default_rng(0)
    y = np.arange(180) % n_classes
    X = rng.normal(size=(180, 5)) + rng.normal(size=(n_classes, 5))[y]
    machine = plain_machine(np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2)) * 300.0, y, n_classes)
    values = []
    for steps in (True, False):
        if not steps:
            monkeypatch.setattr("cuelearn.mkl.crammer_singer.face_step", lambda *_: None)
        B = np.zeros((180, n_classes))
        scores = np.zeros((n_classes, 180))
        theta = np.zeros((n_classes, 0))
        _, solved, _ = ascend(machine, B, scores, theta, 1e-6, 100_000, 10**8)
        assert solved and own_gap(machine, B, scores, theta) <= 1e-5
        np.testing.assert_allclose(scores, B.T @ machine.kernel / 180, atol=1e-9)
        values.append(B[np.arange(180), y].sum() / 180 - 0.5 * np.sum(B * scores.T) / 180)
    assert values[0] == pytest.approx(values[1], abs=1e-5)
