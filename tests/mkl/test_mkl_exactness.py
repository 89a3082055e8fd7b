"""The solvers against the optimum of a conic solver, on random problems small enough for one."""

import numpy as np
import pytest
from mkl_data import solved
from plain_mkl import auto_p, conic_optimum, make_stack, plain_dual, plain_objective

from cuelearn.kernels import KernelBank
from cuelearn.mkl import OBSCURE, UFOMKL, MKLProblem, PegasosMKL, solve_reference

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


def optimum(K, y, p, C, alpha, loss):
    return conic_optimum(K, y, number(p, len(K)), C, alpha, loss)[0]


def check(cls, K, y, settings, best, precision, **options):
    problem, result = solved(cls, K, y, **settings, **options)
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


def solve_all(seed, n_epochs, C=None, precision=1e-3):
    K, y, settings = random_problem(seed)
    if C is not None:
        settings["C"] = C
    best = optimum(K, y, **settings)

    check(UFOMKL, K, y, settings, best, precision, n_epochs=n_epochs, seed=seed)
    # OBSCURE and Pegasos-MKL solve the problem without the (2,1) norm
    plain = {**settings, "alpha": 0.0}
    plain_best = best if settings["alpha"] == 0.0 else optimum(K, y, **plain)
    check(OBSCURE, K, y, plain, plain_best, precision, n_epochs=n_epochs, seed=seed)
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
    return best


# half of the first 16, in which every p meets every C and alpha
QUICK = [0, 3, 5, 6, 9, 10, 12, 15]
LONG = [pytest.param(seed, marks=pytest.mark.long) for seed in range(100) if seed not in QUICK]


@pytest.mark.parametrize("seed", QUICK + LONG)
def test_solvers_reach_the_conic_optimum(seed):
    solve_all(seed, 6000 if seed < 20 else 20_000)
