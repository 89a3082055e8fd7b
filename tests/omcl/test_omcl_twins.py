"""The compiled learners against their plain twins."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from omcl_twins import TwinKernel, TwinLinear, make_stream
from plain_kernels import plain_kernel

from cuelearn.kernels import RBF, Chi2, ExpDistance, Linear, Poly
from cuelearn.omcl import (
    KernelPerceptron,
    OnlineGradientDescent,
    PassiveAggressive,
    Projectron,
    ProjectronPlusPlus,
)

CLASSES = {"perceptron": KernelPerceptron, "projectron": Projectron, "projectron++": ProjectronPlusPlus}
# name -> (kernel of the package, arguments of the plain one, normalise)
KERNELS = {
    "rbf": (RBF(scale=1.5), ("sqeuclidean", {"scale": 1.5}), True),
    "chi2": (Chi2(scale=1.0), ("chi2", {"scale": 1.0}), True),
    "cityblock": (ExpDistance("cityblock", scale=4.0), ("cityblock", {"scale": 4.0}), True),
    "linear": (Linear(), ("linear", {}), True),
    "poly, as it is": (
        Poly(degree=3, coef0=0.5, gamma=0.125),
        ("poly", {"scale": 8.0, "degree": 3, "coef0": 0.5, "normalize": False}),
        False,
    ),
}


def make(rule, kernel, eta=None, **options):
    eta = {} if rule == "perceptron" else {"eta": eta}
    return CLASSES[rule](kernel, **eta, **options)


def check(model, twin, tolerance=1e-9):
    """Everything that a twin keeps; coefficients relative to the largest."""
    assert_array_equal(model.online_errors_, twin.mistakes)
    assert_array_equal(model.support_, twin.support)
    assert model.n_mistakes_ == twin.mistakes.sum()
    # a margin of exactly 1, as after an update that mended all of a loss, is a loss of 0 or of a rounding
    # error
    assert abs(model.n_updates_ - twin.n_updates) <= np.sum(np.abs(np.array(twin.margins) - 1.0) < 1e-12)
    assert_allclose(model.online_losses_, twin.losses, atol=tolerance * max(1.0, twin.losses.max()))
    assert model.cumulative_loss_ == pytest.approx(twin.losses.sum(), rel=1e-8)
    for average, wanted in ((True, twin.mean), (False, twin.A)):
        found = model.set_params(average=average).dual_coef_.T
        expected = wanted[:, twin.support]
        assert_allclose(found, expected, atol=tolerance * max(1.0, np.abs(twin.A).max()), rtol=0.0)


@pytest.mark.parametrize("n_classes", [2, 7])
@pytest.mark.parametrize("eta", [0.0, 0.1, 0.3, 1.2])
@pytest.mark.parametrize("rule", ["projectron", "projectron++"])
def test_projections_are_exact(rule, eta, n_classes):
    for name in ("rbf", "chi2"):
        kernel, (plain, options), _ = KERNELS[name]
        X, y = make_stream(250, 8, n_classes, seed=n_classes, zeros=0.02)
        twin = TwinKernel(rule, plain_kernel(plain, X, X, **options), n_classes, eta).run(y)
        model = make(rule, kernel, eta).fit(X, y)
        check(model, twin)
        assert model.n_projected_ + len(model.support_) == model.n_updates_
        assert model.inverse_error_ < 1e-8
        assert twin.n_projected >= (10 if eta >= 0.3 else 1)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("rule", CLASSES)
def test_all_kernels(rule, name):
    kernel, (plain, options), normalize = KERNELS[name]
    X, y = make_stream(200, 8, 4, seed=1, zeros=0.03)
    K = plain_kernel(plain, X, X, **options)
    eta = 0.3 * np.sqrt(np.diag(K).max())
    twin = TwinKernel(rule, K, 4, eta).run(y)
    check(make(rule, kernel, eta, normalize=normalize).fit(X, y), twin)
    check(make(rule, "precomputed", eta).fit(K, y), twin)
    weights = np.random.default_rng(0).choice([0.0, 0.3, 1.0, 2.5], 200)
    twin = TwinKernel(rule, K, 4, eta).run(y, weights)
    check(make(rule, kernel, eta, normalize=normalize).fit(X, y, weights), twin)
    stream = make(rule, "precomputed", eta).partial_fit(K[:70, :70], y[:70], range(4), weights[:70])
    check(stream.partial_fit(K[70:], y[70:], sample_weight=weights[70:]), twin)


@pytest.mark.parametrize(
    "rule, n_columns, scale, eta", [("projectron", 2, 0.5, 0.1), ("projectron++", 4, 0.12, 0.3)]
)
def test_inverse_over_10000_updates(rule, n_columns, scale, eta):
    """Labels at random make every other visit an update; against the matrix formed afresh."""
    rng = np.random.default_rng(1)
    X, y = rng.random((14_000, n_columns)), rng.integers(0, 4, 14_000)
    model = make(rule, RBF(scale=scale), eta, record=False).fit(X, y)
    S = len(model.support_)
    assert model.n_updates_ >= 10_000 and (S < 60 if n_columns == 2 else S > 400)
    assert model.inverse_error_ <= 1e-6
    K = plain_kernel("sqeuclidean", model.support_vectors_, model.support_vectors_, scale=scale)
    root = model._hypothesis.root[:S, :S]
    assert np.abs(K @ root.T @ root - np.eye(S)).max() <= 1e-6


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-5), (np.float32, 0.02)])
@pytest.mark.parametrize("eta", [0.0, 1e-4, 1e-3, 1e-2])
def test_nearly_dependent_samples(eta, dtype, tolerance):
    """A wide kernel on a square: hundreds of mistakes lie in a span of some dozen numerical dimensions.

    The Projectron then has to make the Perceptron's predictions, with a support set that does not grow with
    rounding errors.
    """
    X, y = make_stream(1500, 2, 3, seed=3, noise=0.2)
    X = X.astype(dtype)
    perceptron = make("perceptron", RBF(scale=2.0)).fit(X, y)
    model = make("projectron", RBF(scale=2.0), eta).fit(X, y)
    assert_array_equal(model.online_errors_, perceptron.online_errors_)
    assert_allclose(model.online_losses_, perceptron.online_losses_, atol=max(tolerance, 2.0 * eta))
    assert len(model.support_) < 60 < model.n_updates_ / 10
    plus = make("projectron++", RBF(scale=2.0), eta).fit(X, y)
    assert np.isfinite(plus.dual_coef_).all()
    assert np.isfinite(plus.online_losses_).all()
    assert len(plus.support_) < 60
    assert model.inverse_error_ <= 1e-6 or eta < 1e-2


def test_an_inexact_inverse_is_computed_afresh():
    """The next new support sample shows the damage; the samples after it do not feel it any more."""
    X, y = make_stream(300, 8, 3, seed=4)
    model, sound = (
        make("projectron++", RBF(scale=1.5), 0.3).partial_fit(X[:150], y[:150], classes=[0, 1, 2])
        for _ in range(2)
    )
    model._hypothesis.root *= 1.0 + 1e-6
    assert model.inverse_error_ > 1e-6
    for each in (model, sound):
        each.partial_fit(X[150:], y[150:])
    assert model.inverse_error_ < 1e-11
    assert_array_equal(model.support_, sound.support_)
    assert_allclose(model.dual_coef_, sound.dual_coef_, atol=1e-3)


LINEAR = {"pa": PassiveAggressive, "gradient": OnlineGradientDescent}


@pytest.mark.parametrize("n_classes", [2, 7])
@pytest.mark.parametrize(
    "rule, C", [("pa", np.inf), ("pa", 1.0), ("pa", 0.05), ("gradient", 0.1), ("gradient", 2.0)]
)
@pytest.mark.parametrize("weights", [[1.0], [0.0, 0.3, 1.0, 2.5]])
def test_linear_learners(rule, C, n_classes, weights):
    X, y = make_stream(200, 6, n_classes, seed=n_classes, zeros=0.05)
    X -= 0.5
    weights = np.random.default_rng(0).choice(weights, 200)
    weights[0] = 1.0
    twin = TwinLinear(rule, 6, n_classes, C).run(X, y, weights)
    model = LINEAR[rule](C).fit(X, y, sample_weight=weights)
    assert_array_equal(model.online_errors_, twin.mistakes)
    assert_allclose(model.online_losses_, twin.losses, atol=1e-9 * max(1.0, twin.losses.max()))
    near = np.sum(np.abs(np.array(twin.margins) - 1.0) < 1e-9)
    assert abs(model.n_updates_ - twin.n_updates) <= near and model.n_mistakes_ == twin.mistakes.sum()
    assert_allclose(model.coef_, twin.mean, atol=1e-9 * np.abs(twin.A).max())
    assert_allclose(model.set_params(average=False).coef_, twin.A, atol=1e-9 * np.abs(twin.A).max())
    assert_array_equal(model.support_sizes_, 0)
    one_by_one = LINEAR[rule](C)
    for x, label, weight in zip(X, y, weights, strict=True):
        if weight > 0.0:
            one_by_one.partial_fit(x[None], [label], np.arange(n_classes), [weight])
    assert_array_equal(one_by_one.set_params(average=False).coef_, model.coef_)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("C", [None, 1.0])
def test_samples_of_zeros_change_nothing(C):
    X, y = np.zeros((5, 3)), [0, 1, 2, 0, 1]
    model = PassiveAggressive(C).fit(X, y)
    assert model.n_mistakes_ == 5 and model.n_updates_ == 0
    assert_array_equal(model.coef_, 0.0)
    model.partial_fit(np.full((2, 3), 1e-161), [1, 2])  # its square is not a normal number
    model.partial_fit(np.full((2, 3), 1e-170), [1, 2])  # its square is 0
    model.partial_fit(np.eye(3), [0, 1, 2])
    assert np.isfinite(model.coef_).all()
