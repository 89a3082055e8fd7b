"""Solvers of multi-label MKL, ML-MKL-SA, ML-MKL-Sum, GMKL and VSKL, against plain twins and conic oracles."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from mkl_data import several_labels as toy
from numpy.testing import assert_allclose
from plain_mkl import box_svm, conic_solution, features_of, minimum
from sklearn.exceptions import ConvergenceWarning

from cuelearn.kernels import KernelBank
from cuelearn.mkl.mlmkl import (
    MLMKLSA,
    Entropic,
    MLMKLSum,
    sa_gradients,
    saddle_gap,
    solve_mlmkl_sa,
    solve_mlmkl_sum,
)
from cuelearn.mkl.perlabel import resolve_groups, solve_gmkl, solve_vskl
from cuelearn.mkl.rivals.svm import SharedProblem, solve_box_svm


def make_task(seed, n=24, n_classes=3, n_kernels=3):
    """Random kernels of rank below n with unit diagonal, and signs (n_classes, n) that some explain."""
    rng = np.random.default_rng(seed)
    stack, hidden = [], []
    for _ in range(n_kernels):
        F = rng.normal(size=(n, 5))
        F /= np.linalg.norm(F, axis=1, keepdims=True)
        stack.append(F @ F.T)
        hidden.append(F[:, 0])
    signs = np.array(
        [
            np.where(hidden[k % n_kernels] + 0.3 * rng.normal(size=n) > 0.0, 1.0, -1.0)
            for k in range(n_classes)
        ]
    )
    signs[:, 0], signs[:, 1] = 1.0, -1.0
    return np.array(stack), signs


def svm_optimum(kernel, signs, C):
    return l1_mkl(kernel[None], signs, C)


def l1_mkl(stack, signs, C):
    """min over the simplex of the SVM's optimum."""
    value = conic_solution(stack, (signs > 0.0).astype(int), 1.0, C, loss="hinge")[0]
    return value * C * signs.size


def hinge(features, blocks, signs, C):
    scores = sum(F @ w for F, w in zip(features, blocks, strict=True))
    return C * cp.sum(cp.pos(1.0 - cp.multiply(signs, scores)))


def value_at(p, stack, signs, C):
    """Of one class, whose blocks w_a have |w_a|^2 / p_a in its regulariser: jointly convex."""
    features = [features_of(kernel) for kernel in stack]
    blocks = [cp.Variable(F.shape[1]) for F in features]
    size = sum(cp.quad_over_lin(w, p[a]) for a, w in enumerate(blocks))
    return 0.5 * size + hinge(features, blocks, signs, C)


def _shared(stack, signs, C, combine):
    """min over p in the simplex."""
    p = cp.Variable(len(stack), nonneg=True)
    value = minimum(combine([value_at(p, stack, y, C) for y in signs]), [cp.sum(p) == 1])
    return value, p.value


def saddle_point(stack, signs, C):
    return _shared(stack, signs, C, lambda values: cp.maximum(*values) if len(values) > 1 else values[0])


def sum_optimum(stack, signs, C, gamma=None):
    weights = np.ones(len(signs)) if gamma is None else gamma
    return _shared(stack, signs, C, lambda values: sum(g * v for g, v in zip(weights, values, strict=True)))


def shared(seed, C=1.0, tol=1e-8, **sizes):
    stack, signs = make_task(seed, **sizes)
    return stack, signs, SharedProblem(KernelBank.from_stack(stack, dtype=np.float64), signs, C, tol)


# --- the SVM without bias


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(2))
def test_box_svm_is_the_conic_optimum_and_certified(seed, C):
    stack, signs = make_task(seed)
    kernel = np.ascontiguousarray(stack.mean(axis=0))
    best = svm_optimum(kernel, signs[0], C)
    for tol in (1e-2, 1e-6):
        found = solve_box_svm(kernel, signs[0], C, tol=tol)
        assert found.value <= best * (1.0 + 1e-7) + 1e-9 <= (found.value + found.gap) * (1.0 + 2e-7) + 2e-9
        assert found.gap <= tol * (found.value + found.gap)
        assert found.alpha.min() >= 0.0 and found.alpha.max() <= C
    assert_allclose(found.value, best, rtol=1e-5)


# --- gradients


def test_gradients_are_those_of_finite_differences():
    stack, signs, problem = shared(2)
    p = np.array([0.5, 0.3, 0.2])
    smoothed = np.array([0.5, 0.25, 0.25])
    of_p, of_gamma, value = sa_gradients(problem, 1, p, smoothed)
    for a in range(3):
        step = 1e-5 * np.eye(3)[a]
        up, down = (svm_optimum(np.tensordot(p + s * step, stack, 1), signs[1], 1.0) for s in (1, -1))
        assert_allclose(of_p[a], (up - down) / 2e-5, rtol=2e-2, atol=1e-2)
    assert_allclose(value, svm_optimum(np.tensordot(p, stack, 1), signs[1], 1.0), rtol=1e-5)
    assert_allclose(of_gamma, value / 0.25)


def test_gradients_are_unbiased_at_the_smoothed_weights():
    """Proposition 1 at gamma': means over the class that is drawn, whose chances are known."""
    _, _, problem = shared(3, n_classes=4)
    p, gamma, delta = np.full(3, 1 / 3), np.array([0.85, 0.1, 0.049, 0.001]), 0.2
    smoothed = (1 - delta) * gamma + delta / 4
    of_p, of_gamma, values = map(np.array, zip(*(sa_gradients(problem, k, p, smoothed) for k in range(4))))
    assert_allclose(smoothed * of_gamma, values)
    # with a level taken off, the means fall by that level for every class
    level = float(smoothed @ values)
    centred = [sa_gradients(problem, k, p, smoothed, level=level)[1] for k in range(4)]
    assert_allclose(smoothed * centred, values - level)
    # and p's estimate, weighted, is without bias at gamma
    weighted = [sa_gradients(problem, k, p, smoothed, gamma)[0] for k in range(4)]
    assert_allclose(smoothed @ weighted, gamma @ of_p)


# --- the saddle point


@pytest.mark.parametrize("seed", range(2))
def test_saddle_gap_brackets_the_conic_value(seed):
    stack, signs, problem = shared(seed)
    value, p = saddle_point(stack, signs, 1.0)
    rng = np.random.default_rng(seed)
    for gamma in (np.full(3, 1 / 3), rng.dirichlet(np.ones(3)), np.array([1.0, 0.0, 0.0])):
        gap = saddle_gap(problem, np.maximum(0, p) / np.maximum(0, p).sum(), gamma)
        least, _ = sum_optimum(stack, signs, 1.0, gamma)
        assert_allclose(gap.worst, value, rtol=1e-4)
        assert_allclose(gap.least, least, rtol=1e-3)
        assert gap.least <= value * (1 + 1e-4) and gap.gap >= -1e-4 * value
        assert 0.0 <= gap.slack <= 2e-4 * gap.worst


def test_saddle_gap_of_a_fitted_model():
    X, Y, cues = toy()
    model = MLMKLSA(cues, n_iter=100, tol=None, random_state=0).fit(X, Y)
    problem = SharedProblem(KernelBank(cues, X), np.where(Y.T > 0, 1.0, -1.0), model.C)
    wanted = saddle_gap(problem, model.kernel_weights_, model.gamma_)
    assert_allclose(saddle_gap(model, X, Y), wanted, rtol=1e-6)
    with_none = np.c_[Y[:, :2], 0 * Y[:, :1]]
    with pytest.warns(UserWarning, match="not trained"):
        model = MLMKLSum(cues, n_iter=3, tol=None).fit(X, with_none)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert saddle_gap(model, X, with_none).gap >= 0.0
    with pytest.raises(ValueError, match="Y must hold the labels that the model was fitted to"):
        saddle_gap(model, X, Y[:, :2])


def test_sa_is_replayed_from_its_draws():
    stack, signs = make_task(0)
    model = MLMKLSA("precomputed", n_iter=30, corrected=False, tol=None, random_state=0)
    model.fit(stack, (signs.T > 0).astype(int))
    rule_p, rule_gamma, iterates = Entropic(3), Entropic(3), []
    for k in model.drawn_:
        iterates.append(rule_p.weights)
        kernel = np.tensordot(rule_p.weights, stack, 1)
        alpha, value = box_svm(kernel, signs[k], np.ones(signs[k].size), tol=1e-8)
        of_p = -0.5 * np.array([(alpha * signs[k]) @ K @ (alpha * signs[k]) for K in stack])
        smoothed = 0.8 * rule_gamma.weights + 0.2 / 3
        rule_p.descend(of_p)
        rule_gamma.descend(-np.eye(3)[k] * value / smoothed[k])
    assert model.drawn_.shape == (30,) and model.drawn_.dtype == np.uint8
    assert_allclose(model.kernel_weights_, np.mean(iterates, axis=0), atol=1e-3)


@pytest.mark.parametrize(
    "seed, n_iter, within",
    [*((s, 3000, 0.01) for s in range(2)), pytest.param(0, 40_000, 0.003, marks=pytest.mark.long)],
)
def test_sa_comes_to_the_saddle_point(seed, n_iter, within):
    stack, signs, problem = shared(seed, tol=1e-6)
    value, p = saddle_point(stack, signs, 1.0)
    result = solve_mlmkl_sa(problem, n_iter=n_iter, tol=None, rng=np.random.default_rng(seed))
    gap = saddle_gap(problem, result.kernel_weights, result.gamma)
    assert gap.gap <= within * value  # relative to the saddle value
    assert_allclose(result.kernel_weights, p, atol=0.03)
    assert abs(gap.worst - value) <= within * value
    assert result.n_iter == n_iter == len(result.drawn) and len(result.path) == n_iter + 1
    assert_allclose(result.path[-1], result.kernel_weights)


def test_gaps_along_a_run_bound_what_is_above_the_saddle_value():
    stack, signs, problem = shared(1, tol=1e-6)
    value, _ = saddle_point(stack, signs, 1.0)
    gaps = []
    for n_iter in (1, 10, 100, 1000):  # of one run
        result = solve_mlmkl_sa(problem, n_iter=n_iter, tol=None, rng=np.random.default_rng(0))
        gap = saddle_gap(problem, result.kernel_weights, result.gamma)
        kernel = np.tensordot(result.kernel_weights, stack, 1)
        worst = max(svm_optimum(kernel, y, 1.0) for y in signs)
        assert_allclose(gap.worst, worst, rtol=1e-3)
        assert gap.least <= value * (1.0 + 1e-4)
        assert gap.gap >= worst - value - 1e-4 * value
        gaps.append(gap.gap)
    assert gaps[-1] < 0.1 * gaps[0]


@pytest.mark.parametrize("corrected", [True, pytest.param(False, marks=pytest.mark.long)])
def test_gap_falls_like_the_root_of_t(corrected):
    """Log-log slope of the averaged iterates' gap in T: -0.4 or steeper, mean over seeds."""
    lengths = (100, 400, 1600) if corrected else (400, 1600, 6400)
    n_seeds = 3 if corrected else 6
    gaps = np.zeros((n_seeds, len(lengths)))
    for seed in range(n_seeds):
        _, _, problem = shared(seed, tol=1e-6)
        for t, T in enumerate(lengths):
            options = {"corrected": corrected, "tol": None, "rng": np.random.default_rng([seed, T])}
            result = solve_mlmkl_sa(problem, n_iter=T, **options)
            gaps[seed, t] = saddle_gap(problem, result.kernel_weights, result.gamma, tol=1e-6).gap
    slope = np.polyfit(np.log(lengths), np.log(gaps.mean(axis=0)), 1)[0]
    assert slope <= -0.4


@pytest.mark.parametrize("cutting_planes", [False, True])
def test_sum_comes_to_its_optimum(cutting_planes):
    stack, signs, problem = shared(5)
    value, _ = sum_optimum(stack, signs, 1.0)
    result = solve_mlmkl_sum(problem, n_iter=100, tol=None, cutting_planes=cutting_planes)
    reached = sum(svm_optimum(np.tensordot(result.kernel_weights, stack, 1), y, 1.0) for y in signs)
    assert value * (1 - 1e-6) <= reached <= value * (1 + 1e-3)
    assert result.n_solved == 100 * 3
    ruled = solve_mlmkl_sum(problem, cutting_planes=cutting_planes)
    assert ruled.converged and not ruled.stopped and ruled.n_iter < 100
    if cutting_planes:  # whose rule certifies
        reached = sum(svm_optimum(np.tensordot(ruled.kernel_weights, stack, 1), y, 1.0) for y in signs)
        assert reached <= value * 1.011


def adahedge(gradients):
    """Weights before each gradient, as the algorithm stands in the paper: mixability gaps one by one."""
    total, cost, found = np.zeros(gradients.shape[1]), 0.0, []
    for g in gradients:
        if cost == 0.0:
            w = (total == total.min()) / (total == total.min()).sum()
            mix = (total + g).min() - total.min()
        else:
            eta = np.log(g.size) / cost
            w = np.exp(-eta * (total - total.min()))
            w /= w.sum()
            mix = -np.log(w @ np.exp(-eta * g)) / eta
        found.append(w)
        cost += w @ g - mix
        total += g
    return np.array(found)


def test_entropic_steps_follow_their_formula():
    gradients = np.random.default_rng(0).normal(size=(40, 4)) * 5.0
    auto, fixed = Entropic(4), Entropic(4, 0.03)
    for t, w in enumerate(adahedge(gradients)):
        assert_allclose(auto.weights, w, rtol=1e-9, atol=1e-12)
        products = np.exp(-0.03 * gradients[:t].sum(axis=0))
        assert_allclose(fixed.weights, products / products.sum(), rtol=1e-9)
        auto.descend(gradients[t])
        fixed.descend(gradients[t])


def test_stopping_rules():
    _, _, problem = shared(0, tol=1e-4)
    paper = solve_mlmkl_sa(problem, tol=0.01, corrected=False, rng=np.random.default_rng(0))
    assert paper.converged and paper.n_iter == 100 and paper.history["change"].iloc[-1] < 0.01
    half = solve_mlmkl_sa(problem, rng=np.random.default_rng(0))
    assert half.converged and half.n_iter >= 100
    moved = np.linalg.norm(half.path[-1] - half.path[half.n_iter // 2]) / np.linalg.norm(half.path[-1])
    assert_allclose(half.history["change"].iloc[-1], moved)
    assert moved < 0.05
    never = solve_mlmkl_sa(problem, n_iter=150, tol=1e-9, rng=np.random.default_rng(0))
    assert not never.converged and never.n_iter == 150


def test_svms_that_run_out_of_sweeps_warn():
    _, Y, _ = toy()
    F = np.random.default_rng(0).normal(size=(3, 80, 3))
    with pytest.warns(ConvergenceWarning, match="lower C"):
        MLMKLSA("precomputed", C=1e6, n_iter=2, tol=None, random_state=0).fit(F @ F.transpose(0, 2, 1), Y)


# --- GMKL and VSKL


def full_rank(seed, n=24, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    signs = np.array([np.where(x + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0) for x in X.T[:n_classes]])
    signs[:, 0], signs[:, 1] = 1.0, -1.0
    return np.array([np.exp(-(np.subtract.outer(x, x) ** 2)) for x in X.T]), signs


def gmkl_optimum(stack, signs, C):
    d = cp.Variable(len(stack))
    return minimum(value_at(d, stack, signs, C) + cp.sum(d), [d >= 0.0])


def vskl_optimum(stack, signs, C, groups, s):
    """Over the blocks, with the mixed norm as it stands."""
    features = [features_of(kernel) for kernel in stack]
    blocks = [cp.Variable(F.shape[1]) for F in features]
    of_group = lambda j: sum(cp.norm(w) for w, g in zip(blocks, groups, strict=True) if g == j)
    lengths = cp.hstack([of_group(j) for j in sorted(set(groups))])
    size = cp.Variable()
    norm = cp.max(lengths) if np.isinf(s) else cp.pnorm(lengths, s)
    objective = 0.5 * cp.square(size) + hinge(features, blocks, signs, C)
    return minimum(objective, [norm <= size])


def check_values(result, bests):
    """Near the optima, which lie within the certified gaps, at every round for their sum."""
    assert result.converged.all() and (result.dual_gaps <= 5e-4 * result.objectives).all()
    assert (result.objectives - result.dual_gaps <= bests * (1.0 + 1e-6)).all()
    assert (bests * (1.0 + 1e-6) <= result.objectives * (1.0 + 1e-5)).all()
    assert_allclose(result.objectives, bests, rtol=1e-3)
    lower = result.history["objective"] - result.history["dual_gap"]
    assert (lower <= bests.sum() * (1.0 + 1e-6)).all()
    assert (result.history["objective"] >= bests.sum() * (1.0 - 1e-5)).all()
    assert result.history["n_updates"].iloc[-1] == result.n_solved


def objective_of(stack, signs, C, weights, coef):
    """SVM primal value of the fitted coefficients on the fitted kernel, and the block norms."""
    kernel = np.tensordot(weights, stack, 1)
    norms = weights * np.sqrt(np.maximum(0.0, np.einsum("i,aij,j->a", coef, stack, coef)))
    return 0.5 * coef @ kernel @ coef, C * np.maximum(0.0, 1.0 - signs * (kernel @ coef)).sum(), norms


# --- optima


@pytest.mark.parametrize("C", [0.1, 7.0, 200.0])
def test_gmkl_reaches_the_conic_optimum(C):
    stack, signs, problem = shared(1, C)
    result = solve_gmkl(problem, tol=5e-4)
    check_values(result, np.array([gmkl_optimum(stack, y, C) for y in signs]))
    assert result.n_solved == problem.n_solved
    for k, y in enumerate(signs):
        d = result.kernel_weights[k]
        half, losses, _ = objective_of(stack, y, C, d, result.dual_coef[:, k])
        assert_allclose(half + losses + d.sum(), result.objectives[k], rtol=1e-9)


@pytest.mark.parametrize(
    "s, groups, C",
    [(2.0, [0, 0, 0], 1.0), (3.0, [0, 1, 1], 0.1), (np.inf, [0, 1, 1], 30.0), (np.inf, [0, 1, 2], 0.1)],
)
def test_vskl_reaches_the_conic_optimum(s, groups, C):
    stack, signs = full_rank(1)
    problem = SharedProblem(KernelBank.from_stack(stack, dtype=np.float64), signs, C)
    result = solve_vskl(problem, groups=groups, s=s, tol=5e-4)
    check_values(result, np.array([vskl_optimum(stack, y, C, groups, s) for y in signs]))
    assert result.n_solved == problem.n_solved
    for k, y in enumerate(signs):
        _, losses, norms = objective_of(stack, y, C, result.kernel_weights[k], result.dual_coef[:, k])
        lengths = np.bincount(groups, norms)
        assert_allclose(0.5 * np.linalg.norm(lengths, s) ** 2 + losses, result.objectives[k], rtol=1e-8)
        simplex = result.extra[k]["simplex"]
        assert_allclose(np.bincount(groups, simplex), 1.0)


def test_vskl_certifies_kernels_of_low_rank():
    """A group that costs nothing at the optimum: its scale tends to 0, its kernel weight to infinity."""
    stack, signs, problem = shared(1)
    result = solve_vskl(problem, groups=[0, 1, 2], tol=1e-3)
    assert result.converged.all() and np.isfinite(result.kernel_weights).all()
    for k, y in enumerate(signs):
        assert_allclose(result.objectives[k], vskl_optimum(stack, y, 1.0, [0, 1, 2], np.inf), rtol=1.1e-3)


def test_groups_of_all_forms():
    assert resolve_groups(None, 5).tolist() == [0, 0, 0, 0, 0]
    for groups in ([7, 7, 3, 7, 9], list("aabac"), np.array([1, 1, 0, 1, 2])):
        assert resolve_groups(groups, 5).tolist() == [0, 0, 1, 0, 2]
    with pytest.raises(ValueError, match="groups must be"):
        resolve_groups([0, [1], 2, 3, 4], 5)
