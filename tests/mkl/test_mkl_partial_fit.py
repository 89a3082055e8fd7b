"""OM-2 as an online learner: batches of kernels and of samples; tests/common has what all streams do."""

import numpy as np
import pytest
from mkl_data import make_data
from numpy.testing import assert_allclose, assert_array_equal
from plain_mkl import make_stack

from cuelearn.kernels import RBF, Linear, Poly
from cuelearn.mkl import OM2

N = 80
# numbers for scale: the mean rule would depend on the first batch
GIVEN = [("shape", RBF(scale=4.0), [0, 1]), ("colour", Linear(), [2, 3]), ("texture", Poly(degree=2), [4, 5])]


def batches(n, size):
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def feed(model, X, y, parts, classes):
    """Samples, or precomputed kernels of each batch with all samples so far and with itself."""
    for part in parts:
        batch = X[:, part, : part.stop] if X.ndim == 3 else X[part]
        model.partial_fit(batch, y[part], classes=classes)
    return model


def check_same_run(model, wanted, tolerance):
    for name in ("online_errors_", "support_", "classes_", "n_updates_"):
        assert_array_equal(getattr(model, name), getattr(wanted, name))
    top = np.abs(wanted.dual_coef_).max()
    assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=tolerance * top)
    for name, tiny in (("kernel_weights_", 1e-300), ("block_norms_sq_", 0.0)):
        assert_allclose(getattr(model, name), getattr(wanted, name), rtol=10 * tolerance, atol=tiny)
    assert model.n_seen_ == N


@pytest.mark.parametrize("n_classes, p", [(2, "auto"), (4, 1.05)])
@pytest.mark.parametrize("size", [1, 7, N])
def test_precomputed_batches_are_one_pass(size, p, n_classes):
    K, y = make_stack(np.random.default_rng(0), N, 4, n_classes)
    wanted = OM2("precomputed", p=p, n_epochs=1).fit(K, y)
    model = feed(OM2("precomputed", p=p), K, y, batches(N, size), np.unique(y))
    check_same_run(model, wanted, 1e-9)
    assert_allclose(model.decision_function(K), wanted.decision_function(K), atol=1e-9)


@pytest.mark.parametrize("normalize, p", [(True, 1.05), (False, 2.0)])
@pytest.mark.parametrize("size", [7, N])  # single samples: tests/common/test_streams.py
def test_batches_of_samples_are_one_pass(size, p, normalize):
    X, y = make_data(N)
    new, _ = make_data(30, seed=1)
    wanted = OM2(GIVEN, p=p, n_epochs=1, normalize=normalize).fit(X, y)
    model = feed(OM2(GIVEN, p=p, normalize=normalize), X, y, batches(N, size), np.unique(y))
    check_same_run(model, wanted, 1e-5)
    scores = wanted.decision_function(new)
    assert_allclose(model.decision_function(new), scores, atol=1e-4 * np.abs(scores).max())
    assert_array_equal(model.support_vectors_, X[model.support_])  # no sample without a coefficient is kept


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_samples_that_every_kernel_maps_to_zero():
    cues = [("linear", Linear(), [0, 1])]
    X, y = make_data(20)
    empty = np.zeros((4, 6))
    model = OM2(cues, p=1.5).partial_fit(empty, [0, 1, 2, 0], classes=[0, 1, 2])
    assert model.support_.size == 0 and model.online_errors_.all() and model.n_seen_ == 4
    assert_array_equal(model.decision_function(X), np.zeros((20, 3)))
    model.partial_fit(X, y).partial_fit(empty, [0, 1, 2, 0])
    assert model.n_seen_ == 28 and model.support_.min() >= 4 and model.support_.max() < 24
    wanted = OM2(cues, p=1.5, n_epochs=1).fit(X, y)
    assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=1e-5)


X, Y = make_data(N)
K, _ = make_stack(np.random.default_rng(0), 30, 3, 3)
THREE = {"classes": [0, 1, 2]}
FIRST = [
    (X, Y, {"classes": [0]}, "classes must hold at least 2 classes, got 1"),
    (X[:10], Y[:9], THREE, "y must have one label per sample, 10, got"),
    (K[:, :5, :4], Y[:5], THREE, r"X must have shape \(n_kernels, n, 0 \+ n\)"),
    (np.arange(75.0).reshape(3, 5, 5), Y[:5], THREE, "must be symmetric"),
]
LATER = [
    (X[10:20], Y[10:19], {}, "y must have one label per sample, 10, got"),
    (K[:, 10:15, :14], Y[10:15], {}, r"X must have shape \(n_kernels, n, 10 \+ n\)"),
    (K[:2, 10:15, :15], Y[10:15], {}, r"X must have shape \(3, n, n_seen \+ n\)"),
]


@pytest.mark.parametrize("later, batch", [(False, b) for b in FIRST] + [(True, b) for b in LATER])
def test_bad_batches(later, batch):
    bad, labels, classes, message = batch
    whole = K if bad.ndim == 3 else X
    model = OM2("precomputed" if bad.ndim == 3 else GIVEN)
    if later:
        feed(model, whole, Y, [slice(0, 10)], [0, 1, 2])
    with pytest.raises(ValueError, match=message):
        model.partial_fit(bad, labels, **classes)
