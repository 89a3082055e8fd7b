"""Objective and duality gap: equal to plain computations, and never wrong about the optimum."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mkl_data import solved as run
from numpy.testing import assert_allclose
from plain_mkl import (
    auto_p,
    block_norms,
    class_scores,
    conic_optimum,
    make_stack,
    plain_dual,
    plain_norm,
    plain_objective,
)

from cuelearn.kernels import KernelBank
from cuelearn.mkl import OBSCURE, UFOMKL, MKLProblem, PegasosMKL, duality_gap, objective, solve_reference

PROBLEMS = [
    {"n": 25, "n_kernels": 3, "n_classes": 3, "p": 1.3, "C": 1.0, "alpha": 0.0, "loss": "multiclass"},
    {"n": 30, "n_kernels": 4, "n_classes": 4, "p": "auto", "C": 10.0, "alpha": 0.01, "loss": "multiclass"},
    {"n": 20, "n_kernels": 2, "n_classes": 2, "p": 2.0, "C": 0.1, "alpha": 0.0, "loss": "hinge"},
    {"n": 25, "n_kernels": 5, "n_classes": 2, "p": 1.01, "C": 1.0, "alpha": 0.05, "loss": "hinge"},
    {"n": 20, "n_kernels": 1, "n_classes": 5, "p": 1.5, "C": 100.0, "alpha": 0.0, "loss": "multiclass"},
]


@functools.cache
def solved(index):
    """Problem number `index`: kernels, labels, settings, numeric p, factor, optimum."""
    settings = dict(PROBLEMS[index])
    K, y = make_stack(
        np.random.default_rng(index), settings.pop("n"), settings.pop("n_kernels"), settings.pop("n_classes")
    )
    p = auto_p(len(K)) if settings["p"] == "auto" else settings["p"]
    optimum, _ = conic_optimum(K, y, p, settings["C"], settings["alpha"], settings["loss"])
    return K, y, settings, p, 0.5 if settings["loss"] == "hinge" else 1.0, optimum


def random_dual_point(index, seed, share, size):
    """a >= 0 with zeros at the labels: the share of samples and the scale vary, feasible up to size 1."""
    K, y, *_ = solved(index)
    rng = np.random.default_rng(seed)
    a = rng.exponential(size=(y.size, int(y.max()) + 1)) * rng.integers(2, size=(y.size, int(y.max()) + 1))
    a[np.arange(y.size), y] = 0.0
    rows = a.sum(axis=1, keepdims=True)
    a = size * np.divide(a, rows, out=np.zeros_like(a), where=rows > 0.0) * rng.uniform(size=(y.size, 1))
    return a * (rng.uniform(size=(y.size, 1)) < share)


points = st.tuples(
    st.integers(0, len(PROBLEMS) - 1),
    st.integers(0, 2**32 - 1),
    st.floats(0.0, 1.0),
    st.sampled_from([1e-6, 0.01, 0.3, 1.0, 5.0]),
)


@given(points)
@settings(max_examples=150)
def test_weak_duality(point):
    """The bound is the best multiple of the point, below the optimum."""
    index, seed, share, size = point
    K, y, keywords, p, factor, optimum = solved(index)
    a = random_dual_point(index, seed, share, size)
    certificate = duality_gap(K, y, a, **keywords)
    assert certificate.gap == certificate.objective - certificate.dual_value
    assert certificate.gap >= 0.0
    assert certificate.dual_value <= optimum * (1.0 + 1e-7)
    assert certificate.objective >= optimum * (1.0 - 1e-7)

    feasible = a / np.maximum(1.0, a.sum(axis=1, keepdims=True))
    value = plain_dual(K, y, feasible, p, keywords["C"], keywords["alpha"], factor)
    assert certificate.dual_value >= value - 1e-9 * abs(value)
    largest = feasible.sum(axis=1).max()
    if largest > 0.0:  # the ray of multiples, sampled
        B = -feasible / y.size
        B[np.arange(y.size), y] = feasible.sum(axis=1) / y.size
        norms, total = block_norms(K, B, factor), feasible.sum() / y.size
        scales = np.concatenate([np.linspace(0.0, 1.0, 60), np.geomspace(1e-8, 1.0, 80)]) / largest
        excess = np.maximum(0.0, scales[:, None] * norms - keywords["alpha"])
        lengths = np.array([plain_norm(row, p / (p - 1.0)) for row in excess])
        best = (scales * total - 0.5 * keywords["C"] * y.size * lengths**2).max()
        assert certificate.dual_value >= best - 1e-9
        assert certificate.dual_value == pytest.approx(best, rel=2e-2, abs=1e-6)


@given(points, st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_objective_is_a_plain_computation(point, seed):
    index, dual_seed, share, size = point
    K, y, keywords, p, factor, optimum = solved(index)
    rng = np.random.default_rng(seed)
    A = random_dual_point(index, dual_seed, share, size) * rng.normal()
    weights = rng.normal(size=len(K)) * rng.integers(2, size=len(K))
    # dual_coef as estimators hold it: scores are sum_j weights[j] K_j @ dual_coef
    dual_coef = factor * A
    wanted = plain_objective(K, y, A, weights, p, keywords["C"], keywords["alpha"], factor)
    assert_allclose(class_scores(K, A, weights, factor), np.tensordot(weights, K, 1) @ dual_coef)
    for kernels in (K, KernelBank.from_stack(K)):
        assert objective(kernels, y, dual_coef, weights, **keywords) == pytest.approx(wanted, rel=1e-10)
    assert wanted >= optimum * (1.0 - 1e-7)

    other = random_dual_point(index, dual_seed, 1.0, 1.0)
    certificate = duality_gap(K, y, other, dual_coef=dual_coef, kernel_weights=weights, **keywords)
    assert certificate.objective == pytest.approx(wanted, rel=1e-10)
    assert certificate.gap >= 0.0


@pytest.mark.parametrize(
    "change, message",
    [
        ({"dual_point": np.full((25, 3), -0.1)}, "dual_point must be non-negative"),
        ({"dual_coef": np.zeros((25, 3))}, "kernel_weights"),
        ({"y": np.zeros(25)}, "y must hold at least 2 classes"),
        ({"kernels": np.zeros((3, 25, 24))}, "n_kernels, n, n"),
        ({"loss": "hinge"}, "loss='hinge' needs exactly 2 classes"),
    ],
)
def test_bad_arguments(change, message):
    K, y, *_ = solved(0)
    with pytest.raises(ValueError, match=message):
        duality_gap(**{"kernels": K, "y": y, "dual_point": np.zeros((25, 3)), **change})


@pytest.mark.parametrize("p", [1.25, 2.0])
@pytest.mark.parametrize("cls, alpha", [(OBSCURE, 0.0), (UFOMKL, 0.05), (PegasosMKL, 0.0)])
def test_weighted_gaps_hold_the_optimum(cls, p, alpha):
    rng = np.random.default_rng(7)
    K, y = make_stack(rng, 24, 3, 3)
    weight, of_class = rng.integers(0, 4, size=24) * rng.uniform(0.5, 2.0, size=24), {0: 0.4, 1: 3.0, 2: 1.0}
    exact = {"weight": weight, "of_class": np.array(list(of_class.values()))}
    optimum, _ = conic_optimum(K, y, p, 2.0, alpha, **exact)
    options = {"p": p, "C": 2.0, "class_weight": of_class, "random_state": 0}
    options |= {"alpha": alpha} if cls is UFOMKL else {}
    for ends in ({"tol": 1e-4}, {"tol": None, "n_epochs": 10}):
        model = cls("precomputed", **options, **ends).fit(K, y, sample_weight=weight)
        assert model.objective_ >= optimum * (1.0 - 1e-6)
        assert model.objective_ - model.dual_gap_ <= optimum * (1.0 + 1e-6)
    given = {"p": p, "C": 2.0, "alpha": alpha, "sample_weight": weight, "class_weight": of_class}
    reference = solve_reference(MKLProblem(KernelBank.from_stack(K), y, 3, **given), tol=1e-5)
    assert reference.objective == pytest.approx(optimum, rel=2e-5)
    a = reference.extra["dual_point"]
    assert duality_gap(K, y, a, **given).dual_value == pytest.approx(optimum, rel=2e-5)
    a[np.flatnonzero(weight == 0.0)[0]] = 1.0  # counts for nothing
    assert duality_gap(K, y, a, **given).dual_value <= optimum * (1.0 + 1e-6)


# --- the solvers against the optima of a conic solver


# what the conic solver's own tolerance leaves uncertain, relative to the optimum
SLACK = 1e-6


def random_problem(seed):
    """Problem number `seed`: the grid of p, C and alpha, with kernels, classes and loss at random."""
    rng = np.random.default_rng([seed, 11])
    smallest, largest = (24, 49) if seed < 20 else (30, 91)
    n, n_kernels = int(rng.integers(smallest, largest)), int(rng.integers(1, 7))
    n_classes = 2 if seed % 4 == 1 else int(rng.integers(2, 6))
    loss = "hinge" if seed % 4 == 1 else "multiclass"
    K, y = make_stack(rng, n, n_kernels, n_classes)
    C = (0.1, 1.0)[seed % 2]
    p = (1.01, 1.25, 2.0, "auto")[seed // 2 % 4]
    alpha = (0.0, 0.01)[seed // 8 % 2]
    return K, y, {"p": p, "C": C, "alpha": alpha, "loss": loss}


def number(p, n_kernels):
    return auto_p(n_kernels) if p == "auto" else p


def conic_value(K, y, p, C, alpha, loss):
    return conic_optimum(K, y, number(p, len(K)), C, alpha, loss)[0]


def check(cls, K, y, settings, best, precision, **options):
    problem, result = run(cls, K, y, **settings, **options)
    suboptimality = result.objective - best
    assert suboptimality >= -SLACK * best
    assert result.dual_gap >= suboptimality - SLACK * best
    if precision is not None:
        assert suboptimality <= precision * best
    p = number(settings["p"], len(K))
    by_hand = plain_objective(
        K, y, result.dual_coef, result.kernel_weights, p, settings["C"], problem.alpha, problem.factor
    )
    assert result.objective == pytest.approx(by_hand, rel=1e-9)


# half of the first 16, in which every p meets every C and alpha
QUICK = [0, 3, 5, 6, 9, 10, 12, 15]
LONG = [pytest.param(seed, marks=pytest.mark.long) for seed in range(100) if seed not in QUICK]


@pytest.mark.parametrize("seed", QUICK + LONG)
def test_solvers_reach_the_conic_optimum(seed):
    n_epochs = 6000 if seed < 20 else 20_000
    K, y, settings = random_problem(seed)
    best = conic_value(K, y, **settings)

    check(UFOMKL, K, y, settings, best, 1e-3, n_epochs=n_epochs, seed=seed)
    # OBSCURE and Pegasos-MKL solve the problem without the (2,1) norm
    plain = {**settings, "alpha": 0.0}
    plain_best = best if settings["alpha"] == 0.0 else conic_value(K, y, **plain)
    check(OBSCURE, K, y, plain, plain_best, 1e-3, n_epochs=n_epochs, seed=seed)
    # Pegasos-MKL is slower; its certificate is as honest
    check(PegasosMKL, K, y, plain, plain_best, None, n_epochs=n_epochs // 10, seed=seed)

    reference = solve_reference(MKLProblem(KernelBank.from_stack(K), y, y.max() + 1, **settings), tol=1e-4)
    assert reference.converged
    assert reference.dual_gap <= 1e-4 * reference.objective
    assert -SLACK * best <= reference.objective - best <= reference.dual_gap + SLACK * best
    # the lower bound is the value of the dual point handed over, by a plain computation
    factor = 0.5 if settings["loss"] == "hinge" else 1.0
    a = reference.extra["dual_point"]
    assert a.min() >= 0.0 and a.sum(axis=1).max() <= 1.0 + 1e-12
    value = plain_dual(K, y, a, number(settings["p"], len(K)), settings["C"], settings["alpha"], factor)
    assert value == pytest.approx(reference.objective - reference.dual_gap, rel=1e-9)
