"""Plain twins and conic oracles of multi-label MKL: nothing here is taken from the package."""

import cvxpy as cp
import numpy as np
from plain_mkl import conic_solution, features_of, minimum


def make_task(seed, n=24, n_classes=3, n_kernels=3):
    """Random kernels of rank below n with unit diagonal, and signs that some of them explain.

    Returns
    -------
    stack : ndarray, shape (n_kernels, n, n)
    signs : ndarray, shape (n_classes, n)
    """
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


def _shared(stack, signs, C, combine):
    """min over p in the simplex: each class has blocks w_a with |w_a|^2 / p_a in its regulariser."""
    roots, p = [features_of(K) for K in stack], cp.Variable(len(stack), nonneg=True)
    values = []
    for y in signs:
        blocks = [cp.Variable(F.shape[1]) for F in roots]
        fit = sum(F @ w for F, w in zip(roots, blocks, strict=True))
        size = sum(cp.quad_over_lin(w, p[a]) for a, w in enumerate(blocks))
        values.append(0.5 * size + C * cp.sum(cp.pos(1 - cp.multiply(y, fit))))
    value = minimum(combine(values), [cp.sum(p) == 1])
    return value, p.value


def saddle_point(stack, signs, C):
    return _shared(stack, signs, C, lambda values: cp.maximum(*values) if len(values) > 1 else values[0])


def sum_optimum(stack, signs, C, gamma=None):
    weights = np.ones(len(signs)) if gamma is None else gamma
    return _shared(stack, signs, C, lambda values: sum(g * v for g, v in zip(weights, values, strict=True)))
