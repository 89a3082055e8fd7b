"""Plain oracles of the rivals: the binary problem with bias from a conic solver, values from fitted
attributes in NumPy.

Everything is in the package's scaling, the sum over the binary problems of

    1/(2 C n) ||w||_{2,p}^2 + 1/n sum_i [1 - y_i (w . phi(x_i) + b)]_+ .

Nothing here calls a solver of the package or libsvm.
"""

import warnings

import cvxpy as cp
import numpy as np
from mkl_twins import make_stack
from plain_mkl import dual_exponent, features_of, plain_norm


def signs_of(y):
    """Labels -1 and 1 of the binary problems, (n_problems, n): one for two classes, else one for each."""
    classes = np.unique(y)
    return np.array([np.where(y == c, 1.0, -1.0) for c in (classes if classes.size > 2 else classes[1:])])


def conic_binary(K, signs, p, C, bias=True, tolerance=1e-10):
    """Optimum of one binary problem by an interior-point conic solver."""
    n = signs.size
    used = [features for features in map(features_of, K) if features.shape[1]]
    blocks = [cp.Variable(features.shape[1]) for features in used]
    offset = cp.Variable() if bias else 0.0
    slack = cp.Variable(n, nonneg=True)
    scores = sum((features @ block for features, block in zip(used, blocks, strict=True)), np.zeros(n))
    constraints = [1.0 - cp.multiply(signs, scores + offset) <= slack]
    objective, size = cp.sum(slack) / n, cp.Variable()
    if used:
        norms = cp.hstack([cp.norm(block, 2) for block in blocks])
        if p == 1.0:
            length = cp.sum(norms)
        else:
            length = cp.norm(norms, 2) if p == 2.0 else cp.pnorm(norms, p, max_denom=1 << 16)
        constraints.append(length <= size)
        objective += cp.square(size) / (2.0 * C * n)
    value = 1.0
    for _ in range(2):  # the solver's tolerances are absolute: the second time the optimum is 1
        problem = cp.Problem(cp.Minimize(objective / value), constraints)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.solve(
                solver=cp.CLARABEL, tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance
            )
        value *= float(problem.value)
    return value


def conic_one_versus_all(K, y, p, C, **options):
    return np.array([conic_binary(K, signs, p, C, **options) for signs in signs_of(y)])


def plain_block_norms(K, coef):
    """``sqrt(coef' K_j coef)``."""
    return np.sqrt(
        np.maximum(0.0, np.einsum("i,jik,k->j", coef, np.asarray(K, dtype=np.float64), coef, optimize=True))
    )


def binary_columns(model, n):
    """Coefficients (n_problems, n), kernel weights and biases of the binary problems."""
    coef = np.zeros((n, model.classes_.size))
    coef[model.support_] = model.dual_coef_
    if model.classes_.size == 2:  # the decision value is the difference of the two columns
        return (
            (coef[:, 1] - coef[:, 0])[None],
            model.kernel_weights_[:1],
            (model.intercept_[1:] - model.intercept_[:1]),
        )
    return coef.T, model.kernel_weights_, model.intercept_


def plain_objectives(K, y, model, p, C):
    """Objectives of the binary problems at the point that the fitted attributes describe."""
    K, n = np.asarray(K, dtype=np.float64), y.size
    out = []
    for signs, coef, weights, bias in zip(signs_of(y), *binary_columns(model, n), strict=True):
        scores = sum(weight * kernel for weight, kernel in zip(weights, K, strict=True)) @ coef + bias
        length = plain_norm(weights * plain_block_norms(K, coef), p)
        out.append(0.5 * length**2 / (C * n) + np.maximum(0.0, 1.0 - signs * scores).mean())
    return np.array(out)


def plain_bounds(K, y, model, p, C):
    """Dual values of the coefficients, shrunk into the box where the best multiple left it."""
    n = y.size
    out = []
    for signs, coef, _, _ in zip(signs_of(y), *binary_columns(model, n), strict=True):
        coef = coef * min(1.0, C / np.abs(coef).max())
        a = coef * signs
        assert a.min() >= 0.0 and abs(coef.sum()) <= 1e-9 * a.sum()
        norms = plain_block_norms(K, coef)
        size = norms.max() if p == 1.0 else plain_norm(norms, dual_exponent(p))
        out.append((a.sum() - 0.5 * size**2) / (C * n))
    return np.array(out)


def plain_cuts(constants, slopes):
    """Least over the simplex of the largest cut, by an interior-point conic solver."""
    d, top = cp.Variable(slopes.shape[1], nonneg=True), cp.Variable()
    problem = cp.Problem(cp.Minimize(top), [constants - slopes @ d <= top, cp.sum(d) == 1.0])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


def make_binary(seed, n=40, n_kernels=5):
    return make_stack(np.random.default_rng(seed), n, n_kernels, 2)
