"""The compiled learners against their plain twins."""

import numpy as np
import pytest
from omcl_twins import TwinKernel, TwinLinear, chi2_distances, make_stream, plain_kernel, sq_distances

from cuelearn.kernels import RBF, Chi2, ExpDistance, Linear, Poly
from cuelearn.omcl import KernelPerceptron, OnlineGradientDescent, PassiveAggressive, Projectron, ProjectronPlusPlus
from cuelearn.support import SupportSet

QUIET = dict(verbose=False)
CLASSES = {"perceptron": KernelPerceptron, "projectron": Projectron, "projectron++": ProjectronPlusPlus}
# name -> (kernel of the package, arguments of the plain one, normalise)
KERNELS = {
    "rbf": (RBF(gamma=1.5), ("rbf", dict(gamma=1.5)), True),
    "chi2": (Chi2(gamma=1.0), ("chi2", dict(gamma=1.0)), True),
    "chi2 by distance": (ExpDistance("chi2", gamma=1.0), ("chi2", dict(gamma=1.0)), True),
    "euclidean": (ExpDistance("euclidean", gamma=2.0), ("euclidean", dict(gamma=2.0)), True),
    "cityblock": (ExpDistance("cityblock", gamma=4.0), ("cityblock", dict(gamma=4.0)), True),
    "linear": (Linear(), ("linear", {}), True),
    "linear, as it is": (Linear(), ("linear", dict(normalize=False)), False),
    "poly": (Poly(degree=2, coef0=1.0, gamma=2.0), ("poly", dict(gamma=2.0)), True),
    "poly, as it is": (Poly(degree=3, coef0=0.5, gamma=8.0), ("poly", dict(gamma=8.0, degree=3, coef0=0.5, normalize=False)), False),
}


def make(rule, kernel, eta=None, **options):
    eta = {} if rule == "perceptron" else {"eta": eta}
    return CLASSES[rule](kernel, **eta, **QUIET, **options)


def check(model, twin, tolerance=1e-9):
    """Everything that a twin keeps; coefficients relative to the largest."""
    np.testing.assert_array_equal(model.online_errors_, twin.mistakes)
    np.testing.assert_array_equal(model.support_, twin.support)
    assert model.n_mistakes_ == twin.mistakes.sum()
    # a margin of exactly 1, as after an update that mended all of a loss, is a loss of 0 or of a rounding error
    assert abs(model.n_updates_ - twin.n_updates) <= np.sum(np.abs(np.array(twin.margins) - 1.0) < 1e-12)
    np.testing.assert_allclose(model.online_losses_, twin.losses, atol=tolerance * max(1.0, twin.losses.max()))
    assert model.cumulative_loss_ == pytest.approx(twin.losses.sum(), rel=1e-8)
    for average, wanted in ((True, twin.mean), (False, twin.A)):
        found = model.set_params(average=average).dual_coef_.T
        np.testing.assert_allclose(found, wanted[:, twin.support], atol=tolerance * max(1.0, np.abs(twin.A).max()), rtol=0.0)


# ------------------------------------------------------------------ kernels of a support set


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 3e-5)])
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_values(name, dtype, tolerance):
    """Batch rows, diagonal and rows of new samples, all by the kernel's formula; one sample at a time gives the same bits."""
    kernel, (plain, options), normalize = KERNELS[name]
    X = make_stream(30, 6, 3, zeros=0.1)[0].astype(dtype)
    wanted = plain_kernel(plain, X.astype(float), X.astype(float), **options)
    support = SupportSet(kernel, normalize, X)
    support.add(X, np.array([3, 4, 11]))
    support.add(X, np.array([12], dtype=np.int64))
    rows, diagonal, columns, places = support.batch(X[15:])
    assert rows.dtype == dtype
    limit = tolerance * np.abs(wanted).max()
    np.testing.assert_allclose(rows[:, columns], wanted[15:, [3, 4, 11, 12]], atol=limit)
    np.testing.assert_allclose(rows[:, places], wanted[15:, 15:], atol=limit)
    np.testing.assert_allclose(diagonal, np.diag(wanted)[15:], atol=limit)
    np.testing.assert_array_equal(support.samples, X[[3, 4, 11, 12]])
    cross = support.cross(X)
    np.testing.assert_allclose(cross, wanted[:, [3, 4, 11, 12]], atol=limit)
    np.testing.assert_array_equal(np.concatenate([support.cross(X[i : i + 1]) for i in range(30)]), cross)
    np.testing.assert_array_equal(np.concatenate([support.batch(X[i : i + 1])[0][:, :4] for i in range(15, 30)]), rows[:, :4])


# ------------------------------------------------------------------ kernel learners


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("eta", [0.0, 0.05, 0.1, 0.3, 0.7, 1.2])
@pytest.mark.parametrize("rule", ["projectron", "projectron++"])
def test_projections_are_exact(rule, eta, n_classes):
    """RBF and chi-squared kernels over six eta; the stream repeats samples, holds zero vectors and wrong labels."""
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


@pytest.mark.parametrize("duplicates", [0.0, 0.3])
@pytest.mark.parametrize("name", ["rbf", "chi2", "linear"])
def test_projectron_with_eta_0_predicts_as_the_perceptron(name, duplicates):
    """Also where samples come again, which it projects and the Perceptron adds."""
    kernel, _, _ = KERNELS[name]
    for n_classes in (2, 3, 7):
        X, y = make_stream(600, 8, n_classes, seed=5, noise=0.3, duplicates=duplicates)
        perceptron, projectron = make("perceptron", kernel).fit(X, y), make("projectron", kernel, 0.0).fit(X, y)
        np.testing.assert_array_equal(projectron.online_errors_, perceptron.online_errors_)
        np.testing.assert_allclose(projectron.online_losses_, perceptron.online_losses_, atol=1e-8)
        new = make_stream(200, 8, n_classes, seed=6)[0]
        for average in (True, False):
            scores = [m.set_params(average=average).decision_function(new) for m in (perceptron, projectron)]
            np.testing.assert_allclose(scores[1], scores[0], atol=1e-8)
        if name == "linear":
            assert len(projectron.support_) <= 8  # the span of 8 features
        assert (len(projectron.support_) < len(perceptron.support_)) == (duplicates > 0.0 or name == "linear")


def test_projectron_plus_plus_with_eta_0_is_not_the_perceptron():
    """Margin errors on samples within the span are still used."""
    X, y = make_stream(600, 3, 3, seed=5, noise=0.3)
    models = [make(rule, Linear(), 0.0).fit(X, y) for rule in CLASSES]
    assert len(models[2].support_) == 3
    assert np.any(models[2].online_errors_ != models[0].online_errors_)


# ------------------------------------------------------------------ the inverse of the Gram matrix


@pytest.mark.parametrize("rule", ["projectron", "projectron++"])
@pytest.mark.parametrize("eta", [0.1, 0.3])
def test_inverse_over_10000_updates(rule, eta):
    """Labels at random make every other visit an update; the features fill a square."""
    rng = np.random.default_rng(0)
    model, worst = make(rule, RBF(gamma=0.5), eta, record=False), 0.0
    while model.n_updates_ < 10_000 if hasattr(model, "classes_") else True:
        X, y = rng.random((500, 2)), rng.integers(0, 3, 500)
        model.partial_fit(X, y, classes=[0, 1, 2])
        worst = max(worst, model.inverse_error_)
    S = len(model.support_)
    assert S < 60 and model.n_projected_ >= 10_000 - S
    assert worst <= 1e-6
    # and against the matrix formed afresh
    K = plain_kernel("rbf", model.support_vectors_, model.support_vectors_, gamma=0.5)
    np.testing.assert_allclose(model._state.gram[:S, :S], K, atol=1e-14)
    assert np.abs(K @ model._state.inverse - np.eye(S)).max() <= 1e-6


def test_inverse_of_a_large_support_set():
    """Ten thousand updates of which a thousand enlarge the support set."""
    rng = np.random.default_rng(1)
    X, y = rng.random((20_000, 4)), rng.integers(0, 4, 20_000)
    model = make("projectron++", RBF(gamma=0.4), 0.3, record=False).fit(X, y)
    assert model.n_updates_ >= 10_000 and len(model.support_) > 500
    assert model.inverse_error_ <= 1e-6


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("eta", [0.0, 1e-4, 1e-2])
def test_inverse_of_nearly_dependent_samples(eta, dtype):
    """On a line, with a wide kernel: rounding makes the Gram matrix indefinite, scores and coefficients stay finite."""
    rng = np.random.default_rng(2)
    X = rng.random((1500, 1)).astype(dtype)
    y = np.where(rng.random(1500) < 0.1, rng.integers(0, 2, 1500), (X[:, 0] > 0.5).astype(int))
    for rule in ("projectron", "projectron++"):
        model = make(rule, RBF(gamma=2.0), eta).fit(X, y)
        assert np.isfinite(model.dual_coef_).all() and np.isfinite(model._state.inverse).all()
        assert np.isfinite(model.online_losses_).all()
        # a projection's error is in the scores at the support set itself: K d = k up to the accuracy of the kernel values
        new = np.linspace(0.0, 1.0, 50, dtype=dtype)[:, None]
        K = plain_kernel("rbf", model.support_vectors_.astype(float), model.support_vectors_.astype(float), gamma=2.0)
        k = plain_kernel("rbf", model.support_vectors_.astype(float), new.astype(float), gamma=2.0)
        S = len(model.support_)
        inexact = np.abs(K @ (model._state.inverse @ k) - k).max()
        print(rule, eta, dtype.__name__, S, model.n_updates_, model.n_refactored_, model.inverse_error_, inexact, model.n_mistakes_, np.abs(model.dual_coef_).max())
