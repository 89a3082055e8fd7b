"""Plain oracles of the rivals: the binary problem with bias from a conic solver, values from fitted
attributes in NumPy.

Everything is in the package's scaling, the sum over the binary problems of

    1/(2 C n) ||w||_{2,p}^2 + 1/n sum_i [1 - y_i (w . phi(x_i) + b)]_+ .

Nothing here calls a solver of the package or libsvm.
"""

import cvxpy as cp
import numpy as np
from plain_mkl import (
    all_coefficients,
    block_norms,
    conic_solution,
    dual_exponent,
    make_stack,
    minimum,
    plain_norm,
)


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


def plain_cuts(constants, slopes):
    """Least over the simplex of the largest cut, by an interior-point conic solver."""
    d, top = cp.Variable(slopes.shape[1], nonneg=True), cp.Variable()
    return minimum(top, [constants - slopes @ d <= top, cp.sum(d) == 1.0])


def make_binary(seed, n=40, n_kernels=5):
    return make_stack(np.random.default_rng(seed), n, n_kernels, 2)
