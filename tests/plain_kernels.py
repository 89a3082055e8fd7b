"""Kernels by their formulas, the oracle of the online learners; nothing here comes from the package."""

import numpy as np


def distances(metric, X, Z):
    """All pairs: "sqeuclidean", "euclidean", "cityblock" or "chi2", whose 0/0 is 0."""
    difference = X[:, None, :] - Z[None, :, :]
    if metric == "sqeuclidean":
        return (difference**2).sum(axis=2)
    if metric == "euclidean":
        return np.sqrt((difference**2).sum(axis=2))
    if metric == "cityblock":
        return np.abs(difference).sum(axis=2)
    below = X[:, None, :] + Z[None, :, :]
    return np.divide(difference**2, below, out=np.zeros_like(difference), where=below > 0.0).sum(axis=2)


def plain_kernel(name, X, Z, *, scale=1.0, degree=2, coef0=1.0, normalize=True):
    """Kernel matrix; `name` is "linear", "poly" or a metric, scale the papers' divisor, "dim" the number of
    columns.

    Linear and polynomial kernels are divided by the roots of k(x, x) if `normalize`; 0 where one is 0.
    """
    if name not in ("linear", "poly"):
        return np.exp(-distances(name, X, Z) / scale)
    values, own_x, own_z = X @ Z.T, (X**2).sum(axis=1), (Z**2).sum(axis=1)
    if name == "poly":
        divisor = X.shape[1] if scale == "dim" else scale
        values, own_x, own_z = ((v / divisor + coef0) ** degree for v in (values, own_x, own_z))
    if not normalize:
        return values
    size = np.sqrt(np.outer(own_x, own_z))
    return np.divide(values, size, out=np.zeros_like(values), where=size > 0.0)


def plain_stack(recipes, X, train, normalize=True):
    """Kernels of X with the training samples, shape (n_kernels, n, n_train); recipes are (name, options,
    columns)."""
    return np.stack(
        [
            plain_kernel(name, X[:, c], train[:, c], normalize=normalize, **options)
            for name, options, c in recipes
        ]
    )


def whole_of(cross):
    """All blocks of a CrossBank in one array."""
    return np.concatenate([block for _, block in cross.blocks()], axis=1)
