"""SILP, SimpleMKL, p-norm MKL and MC-MKL.

Plain oracles: the binary problem with bias from a conic solver, values from fitted attributes in NumPy, all
in the package's scaling, the sum over the binary problems of

    1/(2 C n) ||w||_{2,p}^2 + 1/n sum_i [1 - y_i (w . phi(x_i) + b)]_+ .
"""

import warnings

import numpy as np
import pytest
import sklearn.svm
from mkl_data import CUES, ONE_VERSUS_ALL, ROUNDS, make_data, plain_svms
from numpy.testing import assert_allclose, assert_array_equal
from plain_mkl import (
    all_coefficients,
    auto_p,
    block_norms,
    conic_solution,
    dual_exponent,
    make_stack,
    plain_norm,
    plain_objective,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from cuelearn.kernels import KernelBank
from cuelearn.kernels.rows import combined_kernel
from cuelearn.mkl import GMKL, MCMKL, SILPMKL, VSKL, LpMKL, MKLProblem, SimpleMKL, solve_reference
from cuelearn.mkl.rivals import svm


def signs_of(y):
    """Labels -1 and 1 of the binary problems, (n_problems, n): one for two classes, else one for each."""
    classes = np.unique(y)
    return np.array([np.where(y == c, 1.0, -1.0) for c in (classes if classes.size > 2 else classes[1:])])


def conic_binary(K, signs, p, C):
    return conic_solution(K, (signs > 0.0).astype(int), p, C, loss="hinge", bias=True)[0]


def conic_one_versus_all(K, y, p, C):
    return np.array([conic_binary(K, signs, p, C) for signs in signs_of(y)])


def binary_columns(model):
    coef = all_coefficients(model)
    if model.classes_.size == 2:  # the decision value is the difference of the two columns
        return (
            (coef[:, 1] - coef[:, 0])[None],
            model.kernel_weights_[:1],
            (model.intercept_[1:] - model.intercept_[:1]),
        )
    return coef.T, model.kernel_weights_, model.intercept_


def plain_objectives(K, y, model, p, C):
    """Objectives of the binary problems at the point that the fitted attributes describe."""
    n, out = y.size, []
    for signs, coef, weights, bias in zip(signs_of(y), *binary_columns(model), strict=True):
        scores = np.tensordot(weights, K, 1) @ coef + bias
        length = plain_norm(weights * block_norms(K, coef[:, None]), p)
        out.append(0.5 * length**2 / (C * n) + np.maximum(0.0, 1.0 - signs * scores).mean())
    return np.array(out)


def plain_bounds(K, y, model, p, C):
    """Dual values of the coefficients, shrunk into the box where the best multiple left it."""
    n = y.size
    out = []
    for signs, coef, _, _ in zip(signs_of(y), *binary_columns(model), strict=True):
        coef = coef * min(1.0, C / np.abs(coef).max())
        a = coef * signs
        assert a.min() >= 0.0 and abs(coef.sum()) <= 1e-9 * a.sum()
        norms = block_norms(K, coef[:, None])
        size = norms.max() if p == 1.0 else plain_norm(norms, dual_exponent(p))
        out.append((a.sum() - 0.5 * size**2) / (C * n))
    return np.array(out)


def make_binary(seed, n=40, n_kernels=5):
    return make_stack(np.random.default_rng(seed), n, n_kernels, 2)


SLACK = 1e-6  # what the conic solver leaves uncertain, relative to the optimum


def with_long(values, *more):
    """Values of a parameter, and further ones for `make test-long`."""
    return [*values, *(pytest.param(value, marks=pytest.mark.long) for value in more)]


def exponent(model, n_kernels):
    if isinstance(model, LpMKL):
        return auto_p(n_kernels) if model.p == "auto" else model.p
    return 1.0


def check_certificate(model, best):
    history = model.history_
    assert (history.objective >= best * (1.0 - SLACK)).all()
    assert (history.objective - history.dual_gap <= best * (1.0 + SLACK)).all()
    assert model.objective_ == pytest.approx(history.objective.iloc[-1], rel=1e-12)
    assert model.dual_gap_ == pytest.approx(history.dual_gap.iloc[-1], rel=1e-9)


def close(found, wanted, share):
    assert_allclose(found, wanted, atol=share * np.abs(wanted).max())


# --- optima

KINDS = {
    "plain": lambda K: K,
    "a zero kernel": lambda K: np.concatenate([K, np.zeros_like(K[:1])]),
    "duplicates": lambda K: np.concatenate([K, K[:2], K[:1]]),
    "one large": lambda K: np.concatenate([K[:3], 1e3 * K[3:4]]),
    "one small": lambda K: np.concatenate([K[:3], 1e-8 * K[3:4]]),
    "a constant kernel": lambda K: np.concatenate([K, np.ones_like(K[:1])]),
    "the identity": lambda K: np.concatenate([K, np.eye(K.shape[1])[None]]),
    "nothing but zeros": lambda K: np.zeros_like(K[:2]),
}


@pytest.mark.parametrize("C", with_long([100.0], 0.1, 1e4))
@pytest.mark.parametrize("seed", with_long([3], 10, 11))
@pytest.mark.parametrize("kind", KINDS)
def test_silp_and_simple_mkl_reach_the_same_optimum(kind, seed, C):
    K, y = make_binary(seed, n=30 + 5 * (seed % 4), n_kernels=4 + seed % 3)
    K = KINDS[kind](K)
    best = conic_binary(K, signs_of(y)[0], 1.0, C)
    for cls in (SILPMKL, SimpleMKL):
        model = cls("precomputed", C=C, tol=5e-5).fit(K, y)
        assert model.converged_ and model.dual_gap_ <= 5e-5 * model.objective_
        check_certificate(model, best)
        assert model.objective_ == pytest.approx(best, rel=1e-4)
        assert_allclose(plain_objectives(K, y, model, 1.0, C), model.objectives_, rtol=1e-7)
        assert (plain_bounds(K, y, model, 1.0, C) <= best * (1.0 + SLACK)).all()
        weights = model.kernel_weights_
        assert (weights >= 0.0).all() and (weights[0] == weights[1]).all()
        assert kind != "a zero kernel" or weights[:, -1].max() < 1e-12
        assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("C", [0.1, 1000.0])
@pytest.mark.parametrize("kind", with_long(["plain", "a zero kernel"], *list(KINDS)[2:]))
@pytest.mark.parametrize("p", [1.01, 1.5, 2.0, "auto"])
def test_p_norm_mkl_reaches_the_conic_optimum(p, kind, C):
    K, y = make_binary(5, n=36, n_kernels=6)
    K = KINDS[kind](K)
    number = auto_p(len(K)) if p == "auto" else p
    best = conic_one_versus_all(K, y, number, C)
    model = LpMKL("precomputed", p=p, C=C, tol=2e-4).fit(K, y)
    assert model.converged_ and model.p_ == pytest.approx(number)
    check_certificate(model, best.sum())
    assert_allclose(model.objectives_, best, rtol=1e-3)
    assert_allclose(plain_objectives(K, y, model, number, C), model.objectives_, rtol=1e-7)
    assert (plain_bounds(K, y, model, number, C) <= best * (1.0 + SLACK)).all()
    weights = model.kernel_weights_
    size = weights.max(axis=1) if number == 2.0 else (weights ** (number / (2.0 - number))).sum(axis=1)
    assert_allclose(size, 1.0, rtol=1e-9)
    assert kind != "a zero kernel" or number == 2.0 or not weights[:, -1].any()


@pytest.mark.parametrize("cls", ONE_VERSUS_ALL)
def test_more_classes_are_problems_of_their_own(cls):
    K, y = make_stack(np.random.default_rng(8), 40, 4, 4)
    model = cls("precomputed", C=3.0, tol=1e-4).fit(K, y)
    p = exponent(model, 4)
    best = conic_one_versus_all(K, y, p, 3.0)
    assert_allclose(model.objectives_, best, rtol=2e-4)
    assert (model.objectives_ >= best * (1.0 - SLACK)).all()
    assert (model.objectives_ - model.dual_gaps_ <= best * (1.0 + SLACK)).all()
    assert model.objective_ == pytest.approx(model.objectives_.sum())
    assert model.dual_gap_ == pytest.approx(model.dual_gaps_.sum())
    check_certificate(model, best.sum())
    assert_allclose(plain_objectives(K, y, model, p, 3.0), model.objectives_, rtol=1e-7)


# --- MC-MKL


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize(
    "kind", with_long(["plain", "a zero kernel"], "duplicates", "one small", "the identity")
)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_mc_mkl_reaches_the_multiclass_optimum(n_classes, kind, C):
    K, y = make_stack(np.random.default_rng(n_classes), 40, 4, n_classes)
    K = KINDS[kind](K)
    best, _, scores = conic_solution(K, y, 1.0, C)
    model = MCMKL("precomputed", C=C, tol=1e-4).fit(K, y)
    assert model.converged_
    scores = scores[:, 1] - scores[:, 0] if n_classes == 2 else scores
    close(model.decision_function(K), scores, 0.02)
    check_certificate(model, best)
    assert model.objective_ == pytest.approx(best, rel=2e-4)
    by_hand = plain_objective(K, y, all_coefficients(model), model.kernel_weights_, 1.0, C)
    assert model.objective_ == pytest.approx(by_hand, rel=1e-7)
    assert_allclose(model.kernel_weights_.sum(), C * y.size, rtol=1e-9)
    assert kind != "a zero kernel" or abs(model.kernel_weights_[-1]) < 1e-12
    # near p = 1 the package's own reference
    problem = MKLProblem(KernelBank.from_stack(K), y, n_classes, p=1.0001, C=C)
    assert model.objective_ == pytest.approx(solve_reference(problem, tol=1e-3).objective, rel=1e-2)


# --- limits


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("cls", ONE_VERSUS_ALL)
def test_one_kernel_is_libsvm(cls, n_classes, C):
    K, y = make_stack(np.random.default_rng(7), 60, 1, n_classes)
    train, test = np.arange(45), np.arange(45, 60)
    model = cls("precomputed", C=C, tol=1e-6).fit(K[:, :45, :45], y[train])
    close(model.decision_function(K[:, 45:, :45]), plain_svms(K[0], y, train, test, C, tol=1e-8), 1e-3)
    assert_allclose(model.kernel_weights_, 1.0)


@pytest.mark.parametrize("cls", ROUNDS)
def test_nothing_to_learn_from(cls):
    """Kernels of zeros: the bias alone, and the objective that goes with it."""
    y = np.array([0] * 6 + [1] * 3 + [2] * 3)
    model = cls("precomputed").fit(np.zeros((2, 12, 12)), y)
    assert model.converged_ and np.isfinite(model.decision_function(np.zeros((2, 5, 12)))).all()
    if cls is MCMKL:
        assert model.objective_ == pytest.approx(1.0)
    else:
        assert_allclose(model.objectives_, [1.0, 0.5, 0.5], rtol=1e-6)


# --- rounds: history, callback, warnings


@pytest.mark.parametrize("cls", [*ROUNDS, GMKL, VSKL])
def test_history(cls):
    X, y = make_data(90)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = cls(CUES, tol=1e-4).fit(X, y)
    history = model.history_
    assert history.step.tolist() == history.epoch.tolist() == list(range(1, model.n_iter_ + 1))
    assert history.seconds.is_monotonic_increasing and history.seconds.iloc[0] > 0.0
    assert history.n_updates.is_monotonic_increasing and history.n_updates.iloc[-1] == model.n_updates_
    assert history.n_support.iloc[-1] == model.support_.size
    assert (history.objective.diff().dropna() <= 0.0).all()
    lower = history.objective - history.dual_gap
    assert (lower.diff().dropna() >= -1e-12 * lower.max()).all()
    assert model.converged_ is True and model.dual_gap_ <= 1e-4 * model.objective_
    if cls is not MCMKL:
        assert model.path_.shape == (model.n_iter_ + 1, 3, 3)
        assert (model.dual_gaps_ <= 1e-4 * model.objectives_).all()
        assert model.n_updates_ >= model.n_solved_ >= model.n_iter_
    with pytest.warns(ConvergenceWarning, match=f"{cls.__name__} did not reach tol=1e-08"):
        model = cls(CUES, tol=1e-8, max_iter=2).fit(X, y)
    assert len(model.history_) == 2 and not model.converged_ and model.score(X, y) > 0.8


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_libsvm_called_directly_gives_the_bits_of_svc(C, direct, monkeypatch):
    X, y = make_data(90, n_classes=2)
    kernel, target = combined_kernel(KernelBank(CUES, X), np.ones(len(CUES)), 1.0), np.where(y == y[0], 1, -1)
    # directly, and not by way of the class that is compared with; or the other way round
    monkeypatch.setattr(sklearn.svm, "SVC" if direct else "_libsvm", None)
    result = svm.fit_svc(kernel, target, C, 1e-4)
    wanted = SVC(C=C, kernel="precomputed", tol=1e-4).fit(kernel, target)
    assert_array_equal(result.support, wanted.support_)
    assert_array_equal(result.coef, wanted.dual_coef_[0])
    assert result.intercept == wanted.intercept_[0] and result.n_iter == wanted.n_iter_[0]


# --- the problem of figure 4.1
