"""GMKL and VSKL."""

import cvxpy as cp
import numpy as np
import pytest
from mlmkl_twins import l1_mkl, make_task, svm_optimum
from numpy.testing import assert_allclose
from plain_mkl import features_of, minimum

from cuelearn.kernels import KernelBank
from cuelearn.mkl.gmkl import solve_gmkl
from cuelearn.mkl.mlmkl import SharedProblem
from cuelearn.mkl.vskl import resolve_groups, solve_vskl


def shared(seed, C=1.0, **sizes):
    stack, signs = make_task(seed, **sizes)
    return stack, signs, SharedProblem(KernelBank.from_stack(stack, dtype=np.float64), signs, C)


def full_rank(seed, n=24, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    signs = np.array([np.where(x + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0) for x in X.T[:n_classes]])
    signs[:, 0], signs[:, 1] = 1.0, -1.0
    return np.array([np.exp(-(np.subtract.outer(x, x) ** 2)) for x in X.T]), signs


def hinge(features, blocks, signs, C):
    scores = sum(F @ w for F, w in zip(features, blocks, strict=True))
    return C * cp.sum(cp.pos(1.0 - cp.multiply(signs, scores)))


def gmkl_optimum(stack, signs, C):
    """Over blocks and kernel weights together: 1/2 |w_a|^2 / d_a is jointly convex."""
    features = [features_of(kernel) for kernel in stack]
    blocks, d = [cp.Variable(F.shape[1]) for F in features], cp.Variable(len(stack))
    norms = sum(0.5 * cp.quad_over_lin(w, d[a]) for a, w in enumerate(blocks))
    return minimum(norms + cp.sum(d) + hinge(features, blocks, signs, C), [d >= 0.0])


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
    [
        (2.0, [0, 1, 1], 30.0),
        (3.0, [0, 1, 1], 0.1),
        (3.0, [0, 1, 2], 30.0),
        (np.inf, [0, 0, 0], 0.1),
        (np.inf, [0, 1, 1], 30.0),
        (np.inf, [0, 1, 2], 0.1),
    ],
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


@pytest.mark.parametrize("s", [2.0, np.inf])
def test_vskl_with_one_group_is_l1_mkl(s):
    stack, signs, problem = shared(3)
    result = solve_vskl(problem, s=s, tol=5e-4)
    for k, y in enumerate(signs):
        best = l1_mkl(stack, y, 1.0)
        assert_allclose(result.objectives[k], best, rtol=1e-3)
        assert abs(result.kernel_weights[k].sum() - 1.0) < 1e-9
        combined = np.tensordot(result.kernel_weights[k], stack, 1)
        assert_allclose(svm_optimum(combined, y, 1.0), best, rtol=1e-3)


def test_gmkl_is_l1_mkl_at_another_C():
    """With D the sum of its weights: at C D."""
    stack, signs, problem = shared(3)
    result = solve_gmkl(problem, tol=1e-5)
    for d, y in zip(result.kernel_weights, signs, strict=True):
        C = float(d.sum())
        assert_allclose(svm_optimum(np.tensordot(d / C, stack, 1), y, C), l1_mkl(stack, y, C), rtol=1e-3)


def test_groups_of_all_forms():
    assert resolve_groups(None, 5).tolist() == [0, 0, 0, 0, 0]
    for groups in ([7, 7, 3, 7, 9], list("aabac"), np.array([1, 1, 0, 1, 2])):
        assert resolve_groups(groups, 5).tolist() == [0, 0, 1, 0, 2]
    with pytest.raises(ValueError, match="groups must be"):
        resolve_groups([0, [1], 2, 3, 4], 5)


def test_classes_do_not_see_each_other():
    stack, signs = full_rank(2, n_classes=3)
    for solve, options in ((solve_gmkl, {}), (solve_vskl, {"groups": [0, 1, 1]})):
        bank = KernelBank.from_stack(stack, dtype=np.float64)
        together = solve(SharedProblem(bank, signs, 1.0), **options)
        for k in range(3):
            alone = solve(SharedProblem(bank, signs[k : k + 1], 1.0), **options)
            assert_allclose(alone.kernel_weights[0], together.kernel_weights[k], rtol=1e-6)
            assert_allclose(alone.objectives[0], together.objectives[k], rtol=1e-9)
