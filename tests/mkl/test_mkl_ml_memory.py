"""Memory of the multi-label methods: kernels are combined in place, and nothing grows with their number."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from cuelearn.kernels import RBF, KernelBank
from cuelearn.kernels.rows import BLOCK_ROWS, combined_kernel, quadratic_forms
from cuelearn.mkl import MLMKLSA, VSKL, AverageKernelSVM

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
