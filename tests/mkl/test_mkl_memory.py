"""Runs whose kernels do not fit in memory, and what runs hold of it."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from companion.mkl import kernel_set
from cuelearn import datasets
from cuelearn.kernels import RBF, Chi2, ExpDistance, KernelBank
from cuelearn.kernels.rows import BLOCK_ROWS, combined_kernel, quadratic_forms
from cuelearn.mkl import MLMKLSA, VSKL, AverageKernelSVM
from cuelearn.mkl.optimum.problem import MKLProblem
from cuelearn.mkl.stochastic.obscure import solve_obscure, solve_pegasos_mkl
from cuelearn.mkl.stochastic.om2 import solve_om2
from cuelearn.mkl.stochastic.ufo import solve_ufo

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"

SOLVERS = {
    "om2": (solve_om2, {"n_epochs": 2, "shuffle": True}),
    "obscure": (solve_obscure, {"n_epochs_online": 2, "n_epochs": 3}),
    "pegasos": (solve_pegasos_mkl, {"n_epochs": 3}),
    "ufo": (solve_ufo, {"n_epochs": 3}),
    "ufo-iid": (solve_ufo, {"n_epochs": 3, "sampling": "iid"}),
}


def run(name, bank, y, **more):
    solver, options = SOLVERS[name]
    problem = MKLProblem(bank, y, 10, p=1.05, C=10.0)
    return solver(problem, rng=np.random.default_rng(0), **options, **more)


def task(name, n):
    if name == "mnist":
        data = datasets.load_mnist(n_train=n, n_test=1)
        return kernel_set("mnist-12", data), data.X[data.train], data.y[data.train]
    data = datasets.load_mfeat()
    pixels, profiles = data.cues["pix"], data.cues["fac"]
    kernels = [(f"cityblock*{f}", ExpDistance("cityblock", factor=f), pixels) for f in (0.1, 1.0, 10.0)]
    kernels += [("chi2", Chi2(), pixels), ("profiles", Chi2(), profiles)]
    chosen = np.random.default_rng(0).permutation(len(data.y))[:n]
    return kernels, data.X[chosen], data.y[chosen]


def on_demand(*arguments):
    code = f"import json, bench_mkl; print(json.dumps(bench_mkl.on_demand(*{arguments!r})))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], str(BENCHMARKS)])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert not result["resident"]
    return result


@pytest.mark.parametrize("name, scores", [("mnist", "recompute"), ("mfeat", "maintain")])
@pytest.mark.parametrize("solver", SOLVERS)
def test_results_are_the_same_for_any_budget(solver, name, scores):
    kernels, X, y = task(name, 200)
    size = len(kernels) * 200**2 * 4
    results = []
    for memory in (2 * size, 0.5 * size, 0.05 * size):
        bank = KernelBank(kernels, X, memory=memory)
        assert bank.resident == (memory > size)
        results.append(run(solver, bank, y, scores=scores))
    wanted = results[0]
    assert wanted.n_updates > 30
    tolerance = 0.0 if name == "mfeat" else 2e-4
    for result in results[1:]:
        assert result.n_updates == wanted.n_updates
        assert_array_equal(result.online_errors, wanted.online_errors)
        top = np.abs(wanted.dual_coef).max()
        assert_allclose(result.dual_coef, wanted.dual_coef, rtol=0.0, atol=tolerance * top)
        assert_allclose(result.kernel_weights, wanted.kernel_weights, rtol=tolerance)
        assert_allclose(result.block_norms_sq, wanted.block_norms_sq, rtol=tolerance)
        assert result.objective == pytest.approx(wanted.objective, rel=max(1e-6, tolerance))
        assert result.dual_gap == pytest.approx(wanted.dual_gap, rel=max(1e-6, tolerance))


def test_a_run_on_demand_keeps_to_its_budget():
    """3,000 digits of 12 kernels, 0.43 GB, on 0.1 GB."""
    found = on_demand("mnist-12", 3000, 1e8, "OBSCURE", 2)
    samples = 2 * 3000 * 784 * 4
    scores = 2 * 10 * 12 * 3000 * 4
    assert found["peak"] - found["peak_before"] < 1e8 + samples + scores + 5e7
    assert found["rows"][-1] == found["updates"][-1]


# --- several labels: kernels are combined in place, and nothing grows with their number


N, S, M = 400, 12, 3
# one float64 combination is 2 float32 kernel matrices; libsvm's users take the columns of the support
# samples out of it, 2 more
LIMIT = 5.0
METHODS = [
    MLMKLSA("precomputed", n_iter=3, random_state=0),
    VSKL("precomputed", max_iter=2),
    AverageKernelSVM("precomputed"),
]


def samples(n=N):
    """Features of which all tell something, and labels that leave most samples in the support."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, S + 4))
    Y = (X[:, :M] + 0.5 * rng.normal(size=(n, M)) > 0.0).astype(int)
    return X, Y


def cues():
    return [(f"cue {j}", RBF(), slice(j, j + 5)) for j in range(S)]


@pytest.mark.parametrize("method", METHODS, ids=lambda model: type(model).__name__)
def test_a_fit_holds_few_kernel_matrices_beyond_the_stack(method, peak_of):
    X, Y = samples()
    stack = KernelBank(cues(), X).stack

    def fit():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clone(method).fit(stack, Y)

    assert peak_of(fit) < LIMIT * stack[0].nbytes


@pytest.mark.parametrize("budget", [0.1, 3.0])
def test_kernels_on_demand_keep_to_their_budget(budget, peak_of):
    """Rows of all kernels are computed together."""
    X, rng = samples()[0], np.random.default_rng(1)
    matrix = 4 * N * N
    here, there = KernelBank(cues(), X), KernelBank(cues(), X, memory=budget * matrix)
    assert here.resident and not there.resident
    for coefs in (rng.normal(size=(N, 1)), rng.normal(size=(N, 3)) * (rng.random(N) < 0.2)[:, None]):
        assert_allclose(quadratic_forms(there, coefs), quadratic_forms(here, coefs), rtol=1e-5)
        # tiles of distances come on top of the block
        assert (
            peak_of(lambda coefs=coefs: quadratic_forms(there, coefs))
            < (0.5 * budget + 1.5 + BLOCK_ROWS * 8 / (4 * N)) * matrix
        )
    weights, out = rng.random(S), np.empty((N, N))
    assert combined_kernel(there, weights, 0.5, out=out) is out
    assert_allclose(out, 0.5 * np.tensordot(weights, here.stack, 1), rtol=1e-4, atol=1e-5)
    assert peak_of(lambda: combined_kernel(there, weights, 0.5, out=out)) < (budget + 1.5) * matrix
