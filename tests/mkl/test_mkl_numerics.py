"""Extremes and limits: the right answer or one clear error, never NaN and never a floating-point warning."""

import numpy as np
import pytest
from mkl_data import SINGLE, STOCHASTIC, solved
from numpy.testing import assert_allclose, assert_array_equal
from plain_mkl import conic_solution, make_stack, plain_objective

from cuelearn.kernels import KernelBank
from cuelearn.mkl import OBSCURE, UFOMKL, BestKernelSVM, MKLProblem, solve_reference

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def stack(n=24, n_kernels=3, n_classes=3, seed=0):
    return make_stack(np.random.default_rng(seed), n, n_kernels, n_classes)


def one_zero(K):
    return K * np.array([1.0, 0.0, 1.0])[:, None, None]


def zero_sample(K):
    K[:, :, 3], K[:, 3, :] = 0.0, 0.0
    return K


unchanged = np.asarray
#: What is extreme: size of the problem, change of its kernels, settings.
CASES = {
    "p = 1 + 1e-9": ({}, unchanged, {"p": 1.0 + 1e-9}),
    "p = 2": ({}, unchanged, {"p": 2.0}),
    "F = 1": ({"n_kernels": 1}, unchanged, {"p": 1.0001}),
    "kernels alike": ({"n_kernels": 1}, lambda K: np.repeat(K, 6, axis=0), {"p": 1.0001}),
    "constant kernels": ({}, np.ones_like, {}),
    "identity kernels": ({}, lambda K: np.stack([np.eye(K.shape[1])] * 3), {}),
    "one kernel zero": ({}, one_zero, {"p": 1.0001}),
    "all kernels zero": ({}, np.zeros_like, {}),
    "a sample that every kernel maps to 0": ({}, zero_sample, {}),
    "unnormalised": ({}, lambda K: K * np.array([1e-3, 1.0, 1e3])[:, None, None], {"p": 1.0001}),
    "tiny kernels": ({}, lambda K: 1e-9 * K, {}),
    "huge kernels": ({}, lambda K: 1e9 * K, {}),
    "hinge": ({"n_classes": 2}, unchanged, {"loss": "hinge", "p": 1.0001}),
    "every class once": ({"n": 8, "n_classes": 8}, unchanged, {}),
    "two samples": ({"n": 2, "n_classes": 2}, unchanged, {}),
    "huge C": ({}, unchanged, {"C": 1e8}),
    "tiny C": ({}, unchanged, {"C": 1e-8}),
    "huge alpha": ({}, unchanged, {"alpha": 1e3}),
}


@pytest.fixture(params=list(CASES))
def case(request):
    size, change, settings = CASES[request.param]
    K, y = stack(**size)
    return change(K), y, settings


def by_hand(problem, result, K, y):
    settings = problem.p, problem.C, problem.alpha, problem.factor
    return plain_objective(K, y, result.dual_coef, result.kernel_weights, *settings)


def optimum(K, y, tol=1e-7, **settings):
    problem = MKLProblem(KernelBank.from_stack(K), y, int(y.max()) + 1, **settings)
    return problem, solve_reference(problem, tol=tol)


@pytest.mark.parametrize("scores, dtype", [("recompute", np.float64), ("maintain", np.float32)])
@pytest.mark.parametrize("cls", STOCHASTIC)
def test_extremes(case, cls, dtype, scores):
    K, y, settings = case
    K = K.astype(dtype)
    problem, result = solved(cls, K, y, n_epochs=4, scores=scores, **settings)
    for value in (result.dual_coef, result.kernel_weights, result.objective, result.dual_gap):
        assert np.isfinite(value).all()
    assert (result.kernel_weights >= 0.0).all()
    value = by_hand(problem, result, K.astype(np.float64), y)
    assert result.objective == pytest.approx(value, rel=1e-3 if dtype == np.float32 else 1e-6)
    if dtype == np.float64:
        assert result.dual_gap >= -1e-9 * result.objective
        assert result.objective - result.dual_gap <= 1.0 + 1e-12  # w = 0 is worth 1


@pytest.mark.parametrize("cls", [OBSCURE, UFOMKL, *SINGLE])
def test_extremes_of_the_estimators(case, cls):
    K, y, settings = case
    known = cls().get_params()
    model = cls("precomputed", **{name: value for name, value in settings.items() if name in known})
    if cls is BestKernelSVM and np.bincount(y).max() < 2:
        with pytest.raises(ValueError, match="y must hold at least 2 samples of a class"):
            model.fit(K, y)
        return
    model.fit(K, y)
    for name, value in vars(model).items():
        if name.endswith("_") and name not in ("history_", "bank_", "folds_"):
            assert np.asarray(value).dtype.kind != "f" or np.isfinite(value).all(), name
    assert np.isfinite(model.decision_function(K)).all()


def test_reference_at_extremes(case):
    K, y, settings = case
    problem, result = optimum(K, y, tol=1e-4, **{"p": "auto", "C": 1.0, **settings})
    assert result.converged and result.dual_gap <= 1e-4 * result.objective
    assert np.isfinite(result.dual_coef).all() and np.isfinite(result.kernel_weights).all()
    assert result.objective == pytest.approx(by_hand(problem, result, K, y), rel=1e-7)


def test_prediction_does_not_need_kernels_of_weight_0():
    K, y = stack(n=60, n_kernels=6, seed=3)
    model = UFOMKL("precomputed", alpha=0.2, C=10.0, n_epochs=30, random_state=0).fit(K, y)
    assert 0 < np.count_nonzero(model.kernel_weights_) < 6
    garbage = K.copy()
    garbage[model.kernel_weights_ == 0.0] = 1e6
    assert_array_equal(model.decision_function(K), model.decision_function(garbage))


@pytest.mark.parametrize(
    "p, size, settings",
    [(p, {"n_kernels": 1}, {}) for p in (1.0001, 1.3, "auto")]
    + [(p, {"n_classes": 2}, {"loss": "hinge"}) for p in (1.0001, 1.05, 2.0)]
    + [(1.05, {"n_kernels": 4}, {"C": 10.0, "alpha": 0.01}), (2.0, {"n_kernels": 4}, {"C": 10.0})],
)
def test_the_reference_agrees_with_the_conic_solver_to_many_digits(p, size, settings):
    """One kernel is the plain SVM whatever p; hinge is the binary problem without bias."""
    K, y = stack(n=35, seed=5, **size)
    settings = {"C": 1.0, **settings}
    wanted, norms, scores = conic_solution(K, y, 2.0 if len(K) == 1 else p, **settings)
    problem, result = optimum(K, y, p=p, tol=1e-8, **settings)
    assert result.objective == pytest.approx(wanted, rel=1e-7)
    # strongly convex: the optimum itself is close too
    found = result.kernel_weights * np.sqrt(problem.block_norms_sq(result.dual_coef))
    assert_allclose(found, norms, atol=2e-3 * norms.max())
    found = problem.training_scores(result.dual_coef, result.kernel_weights)
    found = found[:, 1:] - found[:, :1] if "loss" in settings else found
    assert_allclose(found, scores, atol=5e-3)


@pytest.mark.parametrize("cls", STOCHASTIC)
def test_p_2_is_the_unweighted_sum(cls):
    K, y = stack(n=40, n_kernels=4)
    options = {"C": 2.0, "n_epochs": 10, "p": 2.0, "tol": None, "random_state": 0}
    many = cls("precomputed", **options).fit(K, y)
    one = cls("precomputed", **options).fit(K.sum(axis=0)[None], y)
    assert np.ptp(many.kernel_weights_) == 0.0
    assert many.kernel_weights_[0] == pytest.approx(one.kernel_weights_[0], rel=1e-12)
    assert_allclose(many.dual_coef_, one.dual_coef_, atol=1e-9)
    assert many.objective_ == pytest.approx(one.objective_, rel=1e-9)
    assert many.dual_gap_ == pytest.approx(one.dual_gap_, rel=1e-6)


def test_duplicated_kernels_share_their_weight_and_change_little_near_p_1():
    """At p = 1 a group of equal kernels is worth a single one: ||(m/k, ..., m/k)||_1 = m."""
    K, y = stack(n=40, n_kernels=3)
    for cls in STOCHASTIC:
        model = cls("precomputed", p=1.0001, n_epochs=10, random_state=0).fit(K[[0, 1, 1, 2, 1]], y)
        weights = model.kernel_weights_
        assert weights[1] == weights[2] == weights[4]
    single, double, single_at_2, double_at_2 = (
        optimum(K[chosen], y, tol=1e-6, p=p, C=1.0)[1]
        for p in (1.0001, 2.0)
        for chosen in ([0, 1, 2], [0, 0, 1, 2])
    )
    assert double.objective == pytest.approx(single.objective, rel=1e-3)
    assert double.kernel_weights[0] == pytest.approx(double.kernel_weights[1], rel=1e-9)
    assert double.kernel_weights[:2].sum() == pytest.approx(single.kernel_weights[0], rel=2e-2)
    assert double_at_2.objective < 0.97 * single_at_2.objective
