"""Extremes and limits: the right answer or one clear error, never NaN and never a floating-point warning."""

import numpy as np
import pytest
from mkl_data import SINGLE, STOCHASTIC, solved
from mkl_twins import class_scores, conic_optimum, conic_solution, make_stack, plain_losses, plain_objective
from numpy.testing import assert_allclose, assert_array_equal

from cuelearn.kernels import KernelBank
from cuelearn.mkl import (
    OBSCURE,
    UFOMKL,
    BestKernelSVM,
    MKLProblem,
    solve_obscure,
    solve_om2,
    solve_pegasos_mkl,
    solve_reference,
    solve_ufo,
)

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def stack(n=24, n_kernels=3, n_classes=3, seed=0):
    return make_stack(np.random.default_rng(seed), n, n_kernels, n_classes)


def with_kernels(change):
    K, y = stack()
    return change(K), y, {}


def one_zero(K):
    K[1] = 0.0
    return K


def zero_samples(K):
    K[:, :, 3], K[:, 3, :] = 0.0, 0.0
    return K


CASES = {
    "p = 1 + 1e-9": lambda: (*stack(), {"p": 1.0 + 1e-9}),
    "p = 2": lambda: (*stack(), {"p": 2.0}),
    "F = 1": lambda: (*stack(n_kernels=1), {}),
    "F = 1, p = 1.0001": lambda: (*stack(n_kernels=1), {"p": 1.0001}),
    "kernels alike, p = 1.0001": lambda: (np.repeat(stack()[0][:1], 6, axis=0), stack()[1], {"p": 1.0001}),
    "constant kernels": lambda: with_kernels(np.ones_like),
    "identity kernels": lambda: with_kernels(lambda K: np.stack([np.eye(K.shape[1])] * 3)),
    "one kernel zero, p = 1.0001": lambda: (*with_kernels(one_zero)[:2], {"p": 1.0001}),
    "all kernels zero": lambda: with_kernels(np.zeros_like),
    "a sample that every kernel maps to 0": lambda: with_kernels(zero_samples),
    "unnormalised kernels, p = 1.0001": lambda: (
        *with_kernels(lambda K: K * np.array([1e-3, 1.0, 1e3])[:, None, None])[:2],
        {"p": 1.0001},
    ),
    "tiny kernels": lambda: with_kernels(lambda K: 1e-9 * K),
    "huge kernels": lambda: with_kernels(lambda K: 1e9 * K),
    "two classes": lambda: (*stack(n_classes=2), {}),
    "two classes, hinge, p = 1.0001": lambda: (*stack(n_classes=2), {"loss": "hinge", "p": 1.0001}),
    "every class once": lambda: (*stack(n=8, n_classes=8), {}),
    "two samples": lambda: (*stack(n=2, n_classes=2), {}),
    "huge C": lambda: (*stack(), {"C": 1e8}),
    "tiny C": lambda: (*stack(), {"C": 1e-8}),
    "huge alpha": lambda: (*stack(), {"alpha": 1e3}),
    "equal samples of different classes": lambda: (np.ones((2, 12, 12)), np.arange(12) % 3, {}),
}


@pytest.fixture(params=list(CASES))
def case(request):
    return CASES[request.param]()


def by_hand(problem, result, K, y):
    """The objective of a result by plain formulas."""
    settings = problem.p, problem.C, problem.alpha, problem.factor
    return plain_objective(K, y, result.dual_coef, result.kernel_weights, *settings)


def optimum(K, y, tol=1e-7, **settings):
    """A problem of three classes, and what the reference says of it."""
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
    assert np.isfinite(result.history[["objective", "dual_gap"]].iloc[-1].to_numpy(dtype=float)).all()

    # what is reported is what the point is worth
    K = K.astype(np.float64)
    assert result.objective == pytest.approx(
        by_hand(problem, result, K, y), rel=1e-3 if dtype == np.float32 else 1e-6
    )
    # and no better than the optimum
    if dtype == np.float64:
        assert result.dual_gap >= -1e-9 * result.objective
        assert result.objective - result.dual_gap <= 1.0 + 1e-12  # w = 0 is worth 1


@pytest.mark.parametrize("cls", STOCHASTIC + SINGLE)
def test_extremes_of_the_estimators(case, cls):
    K, y, settings = case
    known = cls().get_params()
    model = cls("precomputed", **{name: value for name, value in settings.items() if name in known})
    if cls is BestKernelSVM and np.bincount(y).min() < 2:
        with pytest.raises(ValueError, match="y must hold at least 2 samples of every class"):
            model.fit(K, y)
        return
    model.fit(K, y)
    for name, value in vars(model).items():
        if name.endswith("_") and name not in ("history_", "bank_", "folds_"):
            assert np.asarray(value).dtype.kind != "f" or np.isfinite(value).all(), name
    assert np.isfinite(model.decision_function(K)).all()


def test_reference_at_extremes(case):
    """Certified, and by the plain formulas too: a gap from both sides, so the answer is right."""
    K, y, settings = case
    problem, result = optimum(K, y, tol=1e-4, **{"p": "auto", "C": 1.0, **settings})
    assert result.converged and result.dual_gap <= 1e-4 * result.objective
    assert np.isfinite(result.dual_coef).all() and np.isfinite(result.kernel_weights).all()
    assert result.objective == pytest.approx(by_hand(problem, result, K, y), rel=1e-7)


@pytest.mark.parametrize("solve", [solve_om2, solve_obscure, solve_pegasos_mkl, solve_ufo])
def test_fewer_samples_than_classes(solve):
    """A problem may know of classes that no sample has (the first batches of a stream)."""
    K, y = stack(n=5, n_classes=3)
    problem = MKLProblem(KernelBank.from_stack(K), 3 * y, 20, p=1.2)
    result = solve(problem, n_epochs=5, rng=np.random.default_rng(0))
    assert result.dual_coef.shape == (5, 20)
    assert np.isfinite(result.dual_coef).all() and np.isfinite(result.objective)
    scores = class_scores(K, result.dual_coef, result.kernel_weights)
    assert (scores.argmax(axis=1) == 3 * y).mean() >= 0.8


# ------------------------------------------------------------------ right answers in the limits


@pytest.mark.parametrize("p", [1.0001, 1.3, 2.0, "auto"])
def test_one_kernel_is_the_plain_svm_whatever_p(p):
    K, y = stack(n=30, n_kernels=1, seed=1)
    wanted, _, scores = conic_solution(K, y, 2.0, 1.0)
    problem, result = optimum(K, y, p=p, C=1.0)
    assert result.objective == pytest.approx(wanted, rel=1e-6)
    assert_allclose(problem.training_scores(result.dual_coef, result.kernel_weights), scores, atol=2e-3)

    # with one kernel q only sets the pace of OBSCURE, and does not enter UFO-MKL at all
    options = {"p": p, "C": 1.0, "n_epochs": 5000, "tol": None, "random_state": 0}
    model = UFOMKL("precomputed", **options).fit(K, y)
    assert model.objective_ == pytest.approx(wanted, rel=1e-3)
    model = OBSCURE("precomputed", **options).fit(K, y)
    assert model.objective_ == pytest.approx(wanted, rel=5e-3 if p == 1.0001 else 1e-3)


@pytest.mark.parametrize("cls", STOCHASTIC)
def test_p_2_is_the_unweighted_sum(cls):
    """At q = 2 every run is the run on the one kernel that is their sum."""
    K, y = stack(n=40, n_kernels=4)
    options = {"C": 2.0, "n_epochs": 10, "p": 2.0, "tol": None, "random_state": 0}
    many = cls("precomputed", **options).fit(K, y)
    one = cls("precomputed", **options).fit(K.sum(axis=0)[None], y)
    assert np.ptp(many.kernel_weights_) == 0.0
    assert many.kernel_weights_[0] == pytest.approx(one.kernel_weights_[0], rel=1e-12)
    assert_allclose(many.dual_coef_, one.dual_coef_, atol=1e-9)
    assert many.objective_ == pytest.approx(one.objective_, rel=1e-9)
    assert many.dual_gap_ == pytest.approx(one.dual_gap_, rel=1e-6)


def test_p_2_is_the_unweighted_sum_in_the_optimum():
    K, y = stack(n=40, n_kernels=4)
    wanted, _ = conic_optimum(K.sum(axis=0)[None], y, 2.0, 2.0)
    assert optimum(K, y, p=2.0, C=2.0)[1].objective == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("p", [1.05, 1.5])
def test_ufo_without_alpha_solves_the_p_norm_problem(p):
    K, y = stack(n=40, n_kernels=4, seed=2)
    wanted, _ = conic_optimum(K, y, p, 1.0)
    options = {"p": p, "C": 1.0, "n_epochs": 5000, "tol": None, "random_state": 0}
    ufo, obscure = (cls("precomputed", **options).fit(K, y) for cls in (UFOMKL, OBSCURE))
    assert ufo.objective_ == pytest.approx(wanted, rel=1e-3)
    assert obscure.objective_ == pytest.approx(wanted, rel=1e-3)
    assert_allclose(ufo.decision_function(K), obscure.decision_function(K), atol=0.1)


def test_alpha_makes_exact_zeros_that_prediction_does_not_need():
    K, y = stack(n=60, n_kernels=6, seed=3)
    counts = []
    for alpha in (0.0, 0.05, 0.2, 10.0):
        model = UFOMKL("precomputed", alpha=alpha, C=10.0, n_epochs=30, random_state=0).fit(K, y)
        counts.append(np.count_nonzero(model.kernel_weights_))
        garbage = K.copy()
        garbage[model.kernel_weights_ == 0.0] = 1e6
        assert_array_equal(model.decision_function(K), model.decision_function(garbage))
    assert counts[0] == 6 and counts[-1] == 0
    assert counts == sorted(counts, reverse=True) and 0 < counts[2] < 6


@pytest.mark.parametrize("cls", STOCHASTIC)
@pytest.mark.parametrize("p", [1.02, 1.5])
def test_permuted_kernels_permute_the_weights(cls, p):
    K, y = stack(n=40, n_kernels=5)
    order = np.array([3, 0, 4, 1, 2])
    options = {"p": p, "n_epochs": 8, "tol": None, "random_state": 0}
    if cls is UFOMKL:
        options["alpha"] = 0.02
    model, permuted = cls("precomputed", **options).fit(K, y), cls("precomputed", **options).fit(K[order], y)
    assert_allclose(permuted.kernel_weights_, model.kernel_weights_[order], rtol=1e-8)
    assert_allclose(permuted.dual_coef_, model.dual_coef_, atol=1e-8)
    assert_array_equal(permuted.online_errors_, model.online_errors_)


def test_relabelled_classes_have_the_same_optimum():
    """In another order ties fall differently, so runs differ; the optimum does not."""
    K, y = stack(n=40, n_kernels=3)
    order = np.array([2, 0, 1])
    problem, first = optimum(K, y, tol=1e-8, p=1.2, C=1.0)
    relabelled, other = optimum(K, order[y], tol=1e-8, p=1.2, C=1.0)
    assert other.objective == pytest.approx(first.objective, rel=1e-7)
    assert_allclose(other.kernel_weights, first.kernel_weights, rtol=1e-2)
    scores = problem.training_scores(first.dual_coef, first.kernel_weights)
    renamed = relabelled.training_scores(other.dual_coef, other.kernel_weights)[:, order]
    assert_allclose(renamed, scores, atol=5e-3)


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


def test_p_1_0001_against_the_conic_solver():
    K, y = stack(n=30, n_kernels=3, seed=4)
    wanted, _ = conic_optimum(K, y, 1.0001, 1.0, tolerance=1e-9)
    assert optimum(K, y, tol=1e-6, p=1.0001, C=1.0)[1].objective == pytest.approx(wanted, rel=1e-5)
    ufo = UFOMKL("precomputed", p=1.0001, C=1.0, n_epochs=2000, random_state=0).fit(K, y)
    assert -1e-5 <= ufo.objective_ - wanted <= ufo.dual_gap_ + 1e-5


# ------------------------------------------------------------------ hinge


@pytest.mark.parametrize("p", [1.05, 2.0])
def test_hinge_is_the_binary_problem_without_bias(p):
    K, y = stack(n=40, n_kernels=3, n_classes=2, seed=5)
    wanted, _, f = conic_solution(K, y, p, 1.0, loss="hinge")
    f = f[:, 0]
    problem, result = optimum(K, y, p=p, C=1.0, loss="hinge")
    assert result.objective == pytest.approx(wanted, rel=1e-6)
    scores = problem.training_scores(result.dual_coef, result.kernel_weights)
    assert_allclose(scores[:, 1] - scores[:, 0], f, atol=5e-3)

    for cls in (OBSCURE, UFOMKL):
        problem, result = solved(cls, K, y, p=p, loss="hinge", n_epochs=3000)
        assert result.objective == pytest.approx(wanted, rel=2e-3)
        scores = class_scores(K, result.dual_coef, result.kernel_weights, 0.5)
        decision = scores[:, 1] - scores[:, 0]
        assert_allclose(decision, f, atol=0.1)
        hinge = np.maximum(0.0, 1.0 - (2.0 * y - 1.0) * decision).mean()
        assert hinge == pytest.approx(plain_losses(scores, y).mean(), rel=1e-9)
