"""OM-2 as an online learner: batches of kernels; tests/common has what all streams do."""

import numpy as np
import pytest
from mkl_data import make_data
from numpy.testing import assert_allclose, assert_array_equal
from plain_mkl import make_stack

from cuelearn.kernels import Linear
from cuelearn.mkl import OM2
from cuelearn.omcl import MarginQuery

N = 80


def batches(n, size):
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


@pytest.mark.parametrize("n_classes, p", [(2, "auto"), (4, 1.05)])
@pytest.mark.parametrize("size", [1, 7, N])
def test_precomputed_batches_are_one_pass(size, p, n_classes):
    K, y = make_stack(np.random.default_rng(0), N, 4, n_classes)
    wanted = OM2("precomputed", p=p, n_epochs=1).fit(K, y)
    model = OM2("precomputed", p=p)
    for part in batches(N, size):  # kernels of each batch with all samples so far and with itself
        model.partial_fit(K[:, part, : part.stop], y[part], classes=np.unique(y))
    for name in ("online_errors_", "support_", "classes_", "n_updates_"):
        assert_array_equal(getattr(model, name), getattr(wanted, name))
    assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=1e-9 * np.abs(wanted.dual_coef_).max())
    for name in ("kernel_weights_", "block_norms_sq_"):
        assert_allclose(getattr(model, name), getattr(wanted, name), rtol=1e-8)
    assert model.n_seen_ == N
    assert_allclose(model.decision_function(K), wanted.decision_function(K), atol=1e-9)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_samples_that_every_kernel_maps_to_zero():
    cues = [("linear", Linear(), [0, 1])]
    X, y = make_data(20)
    empty = np.zeros((4, 6))
    model = OM2(cues, p=1.5, normalize=False).partial_fit(empty, [0, 1, 2, 0], classes=[0, 1, 2])
    assert model.support_.size == 0 and model.online_errors_.all() and model.n_seen_ == 4
    assert_array_equal(model.decision_function(X), np.zeros((20, 3)))
    model.partial_fit(X, y).partial_fit(empty, [0, 1, 2, 0])
    assert model.n_seen_ == 28 and model.support_.min() >= 4 and model.support_.max() < 24
    wanted = OM2(cues, p=1.5, n_epochs=1, normalize=False).fit(X, y)
    assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=1e-5)
    assert_array_equal(model.support_vectors_, X[wanted.support_])  # without samples of no coefficient


def test_kernels_of_a_batch_are_with_all_samples_so_far():
    K, y = make_stack(np.random.default_rng(0), 30, 3, 3)
    model = OM2("precomputed")
    with pytest.raises(ValueError, match=r"X must have shape \(3, 5, 5\)"):
        model.partial_fit(K[:, :5, :4], y[:5], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="must be symmetric"):
        model.partial_fit(np.arange(75.0).reshape(3, 5, 5), y[:5], classes=[0, 1, 2])
    model.partial_fit(K[:, :10, :10], y[:10], classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"X must have shape \(3, 5, 15\)"):
        model.partial_fit(K[:, 10:15, :14], y[10:15])
    with pytest.raises(ValueError, match=r"X must have shape \(3, n, n_seen \+ n\)"):
        model.partial_fit(K[:2, 10:15, :15], y[10:15])
    with pytest.raises(ValueError, match="class_weight must be None or a dict .* for partial_fit"):
        OM2("precomputed", class_weight="balanced").partial_fit(K, y, classes=[0, 1, 2])


@pytest.mark.parametrize("given", [True, False])
def test_who_answers_may_ask_the_model(given):
    """Within a batch it predicts as before the batch."""
    if given:
        K, y = make_stack(np.random.default_rng(0), 60, 3, 3)
        kernels = "precomputed"
        first, second = K[:, :40, :40], K[:, 40:]
    else:
        X, y = make_data(60)
        kernels = [("all", Linear(), slice(None))]
        first, second = X[:40], X[40:]
    model = OM2(kernels, query=MarginQuery(1.0)).partial_fit(first, y[:40], classes=[0, 1, 2])
    before = model.decision_function(first)
    asked = []

    def answer(i):
        asked.append(i)
        assert_array_equal(model.decision_function(first), before)
        return y[40 + i]

    model.partial_fit(second, answer)
    assert asked
