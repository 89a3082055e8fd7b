"""MKTL as kernels of groups for the plain twins, exact optima from a conic solver, and random tasks.

Kernels have shape (F0, n, n), scores (n, K) as scaled by the caller, labels are 0 .. M-1, `weight` holds the
c_i of the samples.
"""

import numpy as np
from plain_mkl import conic_solution, make_stack


def n_groups(n_kernels, n_scores, n_classes, loss):
    return n_kernels + n_scores * (n_classes if loss == "multiclass" else 1)


def groups(K, S, n_classes, loss):
    """Kernels of all groups, of the scores class by class, and which classes each knows (section 6.3).

    With the hinge loss a column of scores is a group of both classes.
    """
    products = np.einsum("iz,kz->zik", S, S)
    known = np.ones((len(K), n_classes)), np.ones((S.shape[1], n_classes))
    if loss == "multiclass":
        products = np.tile(products, (n_classes, 1, 1))
        known = known[0], np.repeat(np.eye(n_classes), S.shape[1], axis=0)
    return np.concatenate([K, products]), np.concatenate(known)


def conic_optimum(K, S, y, p, C, loss="multiclass", weight=None):
    """The value, and the primal norms of all groups; samples of a class have one weight."""
    of_class = None if weight is None else np.array([weight[y == c][0] for c in range(int(y.max()) + 1)])
    return conic_solution(K, y, p, C, loss=loss, of_class=of_class, S=S)[:2]


def make_task(seed, n=24, n_kernels=1, n_classes=3, n_scores=4, useful=2):
    """RBF kernels, labels with every class present, and score columns of which the first know a class."""
    rng = np.random.default_rng(seed)
    K, y = make_stack(rng, n, n_kernels, n_classes)
    S = rng.normal(size=(n, n_scores))
    for z in range(min(useful, n_scores)):
        S[:, z] += np.where(y == z % n_classes, 1.2, -0.8)
    S /= np.sqrt((S**2).mean(axis=0)) if n_scores else 1.0
    return K, S, y
