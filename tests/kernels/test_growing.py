"""Support sets of online learners, and matrices of distances."""

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from plain_kernels import distances, whole_of
from sklearn.metrics.pairwise import polynomial_kernel

from cuelearn.kernels import RBF, Chi2, ExpDistance, Function, KernelBank, Linear, Poly
from cuelearn.kernels.growing import (
    PrecomputedSupport,
    SupportSet,
    distance_matrix,
    mean_rule,
    resolve_kernel,
)

DISTANCES = [ExpDistance(metric) for metric in ("euclidean", "cityblock", "sqeuclidean")]
KERNELS = [RBF(), RBF(factor=0.5), Chi2(), *DISTANCES, Linear(), Poly(3), Function(polynomial_kernel)]


def data(n=40, d=7, seed=0):
    return np.random.default_rng(seed).random((n, d))


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_are_those_of_the_bank(kernel):
    X, new = data(), data(12, seed=1)
    bank = KernelBank([("cue", kernel, slice(None))], X, dtype=np.float64)
    support = SupportSet(kernel, True, X)
    support.add(X, np.arange(40))
    assert_allclose(support.cross(X), bank.stack[0], atol=1e-7)
    assert_allclose(support.cross(new), whole_of(bank.cross(new))[0], atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("metric", ["chi2", "cityblock", "sqeuclidean"])
def test_distance_matrix(metric, dtype):
    X = data(270, 9).astype(dtype)  # more than one tile
    X[5] = 0.0
    X[6] = X[7]
    X[8] = 0.0
    wanted = distances(metric, X.astype(float), X.astype(float))
    found = distance_matrix(X, metric)
    assert found.dtype == dtype and found[6, 7] == found[5, 8] == 0.0
    assert_allclose(found, wanted, atol=1e-12 if dtype == np.float64 else 1e-5)
    assert_array_equal(found, found.T)
    assert_array_equal(distance_matrix(X, metric, n_jobs=2), found)
    with parallel_config(backend="loky"):  # tiles are written into one array, in threads whatever is set
        assert_array_equal(distance_matrix(X, metric, n_jobs=2), found)
    assert mean_rule(found) == pytest.approx(wanted.sum() / (270 * 269), rel=1e-5)


def test_bad_input():
    X = data()
    for match, call in (
        ("kernel must be computed from X here", lambda: resolve_kernel(ExpDistance("precomputed"), X)),
        ("scale from the first batch, which must hold at least 2", lambda: resolve_kernel(RBF(), X[:1])),
        ("X: chi2 and distances need non-negative values", lambda: SupportSet(Chi2(scale=1.0), True, -X)),
        (r"X must have shape \(40, 40\)", lambda: PrecomputedSupport().batch(X)),
    ):
        with pytest.raises(ValueError, match=match):
            call()
