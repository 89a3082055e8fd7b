"""Runs whose kernels do not fit in memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from companion.mkl.tasks import kernel_set
from cuelearn import datasets
from cuelearn.kernels import Chi2, ExpDistance, KernelBank
from cuelearn.mkl.obscure import solve_obscure
from cuelearn.mkl.om2 import solve_om2
from cuelearn.mkl.pegasos import solve_pegasos_mkl
from cuelearn.mkl.problem import MKLProblem
from cuelearn.mkl.ufo import solve_ufo

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
    """Visits in windows, with rows in chunks, are the visits of a resident bank."""
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
