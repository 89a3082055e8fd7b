"""OM-2 as an online learner: batches of any size, of either form of input, interrupted and gone on with."""

import numpy as np
import pandas as pd
import pytest
from mkl_data import CUES, make_data
from mkl_twins import TwinOM2, make_stack
from numpy.testing import assert_allclose, assert_array_equal

from cuelearn.kernels import RBF, KernelBank, Linear, Poly
from cuelearn.mkl import OM2, load

N = 80
# numbers for scale: the mean rule would depend on the first batch
GIVEN = [("shape", RBF(scale=4.0), [0, 1]), ("colour", Linear(), [2, 3]), ("texture", Poly(degree=2), [4, 5])]
BATCHES = {"one by one": 1, "batches of 7": 7, "all at once": 80}


def batches(n, size):
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def feed_stack(model, K, y, parts, classes):
    """Precomputed kernels of each batch with all samples so far and with itself."""
    for part in parts:
        model.partial_fit(K[:, part, : part.stop], y[part], classes=classes)
    return model


def feed(model, X, y, parts, classes):
    for part in parts:
        model.partial_fit(X[part], y[part], classes=classes)
    return model


def check_same_run(model, wanted, tolerance):
    for name in ("online_errors_", "support_", "classes_", "n_updates_"):
        assert_array_equal(getattr(model, name), getattr(wanted, name))
    top = np.abs(wanted.dual_coef_).max()
    assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=tolerance * top)
    for name, tiny in (("kernel_weights_", 1e-300), ("block_norms_sq_", 0.0)):
        assert_allclose(getattr(model, name), getattr(wanted, name), rtol=10 * tolerance, atol=tiny)
    assert model.n_seen_ == N


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("p", [1.05, "auto"])
@pytest.mark.parametrize("size", BATCHES.values(), ids=BATCHES)
def test_precomputed_batches_are_one_pass(size, p, n_classes):
    K, y = make_stack(np.random.default_rng(0), N, 4, n_classes)
    wanted = OM2("precomputed", p=p).fit(K, y)
    model = feed_stack(OM2("precomputed", p=p), K, y, batches(N, size), np.unique(y))
    check_same_run(model, wanted, 1e-9)
    assert_allclose(model.decision_function(K), wanted.decision_function(K), atol=1e-9)
    assert model.n_features_in_ == N
    assert (model.p_, model.q_) == (wanted.p_, wanted.q_)


@pytest.mark.parametrize("normalize, p", [(True, 1.05), (False, 2.0)])
@pytest.mark.parametrize("size", BATCHES.values(), ids=BATCHES)
def test_batches_of_samples_are_one_pass(size, p, normalize):
    X, y = make_data(N)
    new, _ = make_data(30, seed=1)
    wanted = OM2(GIVEN, p=p, normalize=normalize).fit(X, y)
    model = feed(OM2(GIVEN, p=p, normalize=normalize), X, y, batches(N, size), np.unique(y))
    check_same_run(model, wanted, 1e-5)
    scores = wanted.decision_function(new)
    assert_allclose(model.decision_function(new), scores, atol=1e-4 * np.abs(scores).max())
    assert_array_equal(model.predict(new), wanted.predict(new))
    assert_array_equal(model.support_vectors_, X[model.support_])  # no sample without a coefficient is kept
    assert model.n_features_in_ == 6


def test_the_plain_twin_one_by_one():
    """Every call does what one step of thesis Algorithm 4 does."""
    K, y = make_stack(np.random.default_rng(1), 40, 3, 3)
    twin, model = TwinOM2(K, y, 3, 1.1), OM2("precomputed", p=1.1)
    for i in range(40):
        mistake = twin.step(i)
        model.partial_fit(K[:, i : i + 1, : i + 1], y[i : i + 1], classes=[0, 1, 2])
        assert model.online_errors_[-1] == mistake and model.online_errors_.size == i + 1
        coef, weights = twin.point()
        assert_array_equal(model.support_, np.flatnonzero(coef.any(axis=1)))
        assert_allclose(model.dual_coef_, coef[model.support_], atol=1e-10)
        assert_allclose(model.kernel_weights_, weights, rtol=1e-9)


def test_going_on_after_fit_in_a_frame():
    """`fit` on the first half, `partial_fit` on the second: one pass over both; and `fit` starts anew."""
    X, y = make_data(N)
    wanted = OM2(GIVEN, p=1.1).fit(X, y)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = OM2(GIVEN, p=1.1).fit(frame[:40], y[:40]).partial_fit(frame[40:], y[40:])
    check_same_run(model, wanted, 1e-5)
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(frame[list("fedcba")], y)
    check_same_run(model.fit(frame, y), wanted, 0.0)


@pytest.mark.parametrize("first_by", ["fit", "partial_fit"])
@pytest.mark.parametrize("form", ["X", "precomputed"])
def test_going_on_after_loading(form, first_by, tmp_path):
    """A stream interrupted, saved, loaded and continued is the same stream."""
    X, y = make_data(N)
    K = KernelBank(GIVEN, X, dtype=np.float64).stack
    if form == "X":
        cues, whole, first, rest, new, near = GIVEN, X, X[:40], X[40:], make_data(30, seed=1)[0], 1e-5
    else:
        cues, whole, first, rest, new, near = "precomputed", K, K[:, :40, :40], K[:, 40:], K, 1e-9
    model = OM2(cues, p=1.1)
    if first_by == "fit":
        model.fit(first, y[:40])
    else:
        model.partial_fit(first, y[:40], classes=[0, 1, 2])
    model.save(tmp_path / "stream.npz")
    loaded = load(tmp_path / "stream.npz")
    for each in (model, loaded):
        each.partial_fit(rest, y[40:])
    for name in ("online_errors_", "dual_coef_", "kernel_weights_"):
        assert_array_equal(getattr(loaded, name), getattr(model, name))
    check_same_run(loaded, OM2(cues, p=1.1).fit(whole, y), near)
    loaded.save(tmp_path / "again.npz")
    for each in (loaded, load(tmp_path / "again.npz")):
        assert_array_equal(each.decision_function(new), model.decision_function(new))


def test_the_mean_rule_is_set_by_the_first_batch():
    X, y = make_data(N)
    first = KernelBank(CUES, X[:40])
    given = list(first.triples)
    assert all(not isinstance(kernel, RBF) or isinstance(kernel.scale, float) for _, kernel, _ in given)
    model = feed(OM2(CUES, p=1.1), X, y, batches(N, 40), np.unique(y))
    check_same_run(model, OM2(given, p=1.1).fit(X, y), 1e-5)


def test_a_first_batch_of_one_sample():
    """The mean of no distances is no reason to stop."""
    X, y = make_data(N)
    model = feed(OM2(CUES, p=1.1), X, y, batches(N, 1), np.unique(y))
    assert np.isfinite(model.dual_coef_).all() and np.isfinite(model.kernel_weights_).all()
    assert model.online_errors_.mean() < 0.5


def test_labels_as_strings_and_classes_not_yet_seen():
    X, y = make_data(N)
    names = np.array(["ant", "bee", "cat"])
    model = feed(OM2(GIVEN, p=1.1), X, names[y], batches(N, 8), ["dog", "cat", "bee", "ant"])
    assert list(model.classes_) == ["ant", "bee", "cat", "dog"]
    assert model.dual_coef_.shape[1] == 4
    numbered = feed(OM2(GIVEN, p=1.1), X, y, batches(N, 8), [0, 1, 2, 3])
    assert_array_equal(model.dual_coef_, numbered.dual_coef_)
    assert_array_equal(model.predict(X), np.append(names, "dog")[numbered.predict(X)])
    # a batch of one class alone is fine
    model.partial_fit(X[:3], ["dog", "dog", "dog"])
    assert model.n_seen_ == N + 3


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_samples_that_every_kernel_maps_to_zero():
    """Nothing can be learnt from them, nothing is kept, and the stream goes on."""
    cues = [("linear", Linear(), [0, 1])]
    X, y = make_data(20)
    empty = np.zeros((4, 6))
    model = OM2(cues, p=1.5).partial_fit(empty, [0, 1, 2, 0], classes=[0, 1, 2])
    assert model.support_.size == 0 and model.online_errors_.all() and model.n_seen_ == 4
    assert_array_equal(model.decision_function(X), np.zeros((20, 3)))
    model.partial_fit(X, y).partial_fit(empty, [0, 1, 2, 0])
    assert model.n_seen_ == 28 and model.support_.min() >= 4 and model.support_.max() < 24
    wanted = OM2(cues, p=1.5).fit(X, y)
    assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=1e-5)


# ------------------------------------------------------------------ errors


def test_errors_about_classes():
    X, y = make_data(N)
    for classes, message in (
        (None, "classes must be given at the first call of partial_fit"),
        ([0], "classes must hold at least 2 classes, got 1"),
        ([0, 1], r"y holds labels outside classes: \[2\]"),
    ):
        with pytest.raises(ValueError, match=message):
            OM2(GIVEN).partial_fit(X, y, classes=classes)
    model = OM2(GIVEN).partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="classes must not change between calls of partial_fit"):
        model.partial_fit(X, y, classes=[0, 1, 2, 3])
    for labels in ([0, 7], ["0", "1"]):
        with pytest.raises(ValueError, match="y holds labels outside classes"):
            model.partial_fit(X[:2], labels)


@pytest.mark.parametrize("later", [False, True])
def test_errors_about_shapes(later):
    X, y = make_data(N)
    model = OM2(GIVEN)
    if later:
        model.partial_fit(X[:10], y[:10], classes=[0, 1, 2])
    for bad in (y[:9], None, 3):
        with pytest.raises(
            ValueError, match="y must have one label per sample, 10, got|y to be passed|array-like"
        ):
            model.partial_fit(X[:10], bad, classes=[0, 1, 2])
    for bad in (np.full((3, 6), np.nan), np.zeros(6)):
        with pytest.raises(ValueError, match="NaN|2D"):
            model.partial_fit(bad, y[:3], classes=[0, 1, 2])
    if later:
        with pytest.raises(ValueError, match="5 features, but OM2 is expecting 6 features"):
            model.partial_fit(X[:3, :5], y[:3])

    K, y = make_stack(np.random.default_rng(0), 30, 3, 3)
    model = OM2("precomputed")
    if later:
        model.partial_fit(K[:, :10, :10], y[:10], classes=[0, 1, 2])
    n_seen = 10 if later else 0
    shape = rf"X must be finite, of shape \(n_kernels, n, {n_seen} \+ n\)"
    for bad, words in (
        (K[:, 10:15, : n_seen + 4], shape),
        (K[0, 10:15, : n_seen + 5], shape),
        (np.full((3, 5, n_seen + 5), np.nan), "X holds NaN"),
        (None, "X must hold real numbers"),
        (np.arange(75.0 + 15 * n_seen).reshape(3, 5, -1), "must be symmetric"),
    ):
        with pytest.raises(ValueError, match=words):
            model.partial_fit(bad, y[10:15], classes=[0, 1, 2])
    if later:
        with pytest.raises(ValueError, match="3 kernels|kernels"):
            model.partial_fit(K[:2, 10:15, :15], y[10:15])


def test_a_failed_call_changes_nothing():
    """A stream survives a bad batch, at the first call too."""
    X, y = make_data(N)
    model = OM2(GIVEN, p=7.0)
    with pytest.raises(ValueError, match="'p' parameter"):
        model.partial_fit(X[:20], y[:20], classes=[0, 1, 2])
    model.set_params(p=1.1)
    with pytest.raises(ValueError, match="y holds labels outside classes"):
        model.partial_fit(X[:20], y[:20] + 5, classes=[0, 1, 2])
    model.partial_fit(X[:20], y[:20], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="y must have one label per sample"):
        model.partial_fit(X[20:50], y[20:49])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((3, 6), np.nan), y[:3])
    model.set_params(p=0.0)
    with pytest.raises(ValueError, match="'p' parameter"):
        model.partial_fit(X[20:50], y[20:50])
    model.set_params(p=1.1)
    for part in batches(N, 20)[1:]:
        model.partial_fit(X[part], y[part])
    check_same_run(model, OM2(GIVEN, p=1.1).fit(X, y), 1e-5)
