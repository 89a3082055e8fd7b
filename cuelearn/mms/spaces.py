"""Hyperplanes of all labels, in feature space or as coefficients of the training instances.

Bags are visited one by one within blocks, whose scores, inner products and moves are matrix products:
sequential methods run at the speed of these.
"""

from typing import NamedTuple

import numpy as np

from cuelearn.kernels.definite import warn_indefinite
from cuelearn.kernels.rows import combine, combined_kernel

__all__ = ["ROWS", "Block", "KernelSpace", "LinearSpace", "mean_weights"]

ROWS = 2048


class Block(NamedTuple):
    """Bags as compiled loops visit them, their instances side by side."""

    bags: np.ndarray
    first: np.ndarray  # first row of each bag in the block, and the end
    scores: np.ndarray  # (n_rows, n_columns), by unscaled hyperplanes; updated through `products`
    products: np.ndarray  # (n_attributes, n_rows, n_rows): inner products of the instances
    target: np.ndarray  # (n_rows, n_columns): mean label indicators of the best candidates
    delta: np.ndarray  # (n_rows, n_columns): changes by instance and hyperplane
    weights: np.ndarray  # of the bags' losses


class Space:
    """Base: `weights` are the hyperplanes of all labels, `columns` those of each attribute."""

    indefinite = {}  # {name: how} of indefinite kernels, which leave no certified bound

    def __init__(self, n_rows, n_labels):
        self.n_rows = n_rows
        self.n_columns = int(sum(n_labels))
        ends = np.cumsum(n_labels)
        self.columns = [slice(end - size, end) for size, end in zip(n_labels, ends, strict=True)]
        self._taken = None, None

    def at(self, rows):
        """`read` with a cache of the last block."""
        if rows is not self._taken[0]:
            self._taken = rows, self.read(rows)
        return self._taken[1]

    def squared_norm(self):
        return self.inner(self.weights)


class LinearSpace(Space):
    """Hyperplanes as vectors of the feature space, for `solve_mms`.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n_instances, n_features)
        With a column of ones for a bias.
    n_labels : sequence of int
        Labels of each attribute.

    Attributes
    ----------
    weights : ndarray, shape (sum of n_labels, n_features)
        In the precision of X; initially zero.
    columns : list of slice
        The rows of `weights` of each attribute.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import LinearSpace
    >>> LinearSpace(np.eye(4), [2, 3]).weights.shape
    (5, 4)
    """

    def __init__(self, X, n_labels):
        super().__init__(len(X), n_labels)
        self.X = X
        self.width = X.shape[1]
        self.weights = np.zeros((self.n_columns, self.width), dtype=X.dtype)

    def read(self, rows):
        return self.X[rows]

    def scores(self, rows):
        x = self.at(rows)
        scores = [x @ self.weights[columns].T for columns in self.columns]
        return np.concatenate(scores, axis=1).astype(np.float64, copy=False)

    def products(self, rows):
        x = self.at(rows)
        products = (x @ x.T).astype(np.float64, copy=False)
        if len(self.columns) == 1:
            return products[None]
        return np.stack([products] * len(self.columns))

    def move(self, rows, delta, scale=1.0):
        """``w <- scale w + sum_m delta[m] x_m`` over some instances."""
        x = self.at(rows)
        dtype = self.weights.dtype
        if scale != 1.0:
            self.weights *= dtype.type(scale)
        for columns in self.columns:
            part = delta[:, columns]
            weights = self.weights[columns]
            touched = np.flatnonzero(part.any(axis=0))  # few labels of many
            if touched.size:
                weights[touched] += part[:, touched].T.astype(dtype) @ x

    def place(self, coef):
        """``w <- sum over all instances of coef``, shape (n_rows, n_columns)."""
        self.weights[:] = 0.0
        for start in range(0, self.n_rows, ROWS):
            rows = slice(start, start + ROWS)
            self.move(rows, coef[rows])

    def inner(self, weights):
        """Inner product with other hyperplanes."""
        pairs = [(self.weights[columns], weights[columns]) for columns in self.columns]
        return float(sum(np.einsum("ij,ij->", w, v, dtype=np.float64) for w, v in pairs))


def mean_weights(bank):
    return np.full(bank.n_kernels, 1.0 / bank.n_kernels)


class MeanKernel:
    """The mean of a bank's kernels plus 1: one matrix if it fits, else row blocks on demand."""

    def __init__(self, bank, memory):
        self.bank = bank
        self.weights = mean_weights(bank)
        self.held = None
        if bank.dtype.itemsize * bank.n_samples**2 <= memory:
            out = np.empty((bank.n_samples, bank.n_samples))
            self.held = combined_kernel(bank, self.weights, 1.0, out=out).astype(bank.dtype)
            self.held += bank.dtype.type(1.0)

    def rows(self, rows):
        if self.held is not None:
            return self.held[rows]
        index = np.arange(self.bank.n_samples)[rows]
        step = max(1, self.bank.block_rows())
        parts = [index[k : k + step] for k in range(0, len(index), step)]
        parts = [combine(self.bank.rows(part), self.weights) for part in parts]
        return np.concatenate(parts) + self.bank.dtype.type(1.0)


class KernelSpace(Space):
    """Hyperplanes as coefficients, `weights` of shape (n_rows, sum of n_labels); one bank per attribute,
    possibly shared."""

    width = 1  # inner products are known

    def __init__(self, banks, n_labels, memory):
        super().__init__(banks[0].n_samples, n_labels)
        kernels = {id(bank): MeanKernel(bank, memory) for bank in banks}
        self.kernels = [kernels[id(bank)] for bank in banks]
        for p, bank in enumerate(banks):
            of_attribute = ""
            if len(kernels) > 1:
                of_attribute = f" of attribute {p}"
            self.indefinite = self.indefinite | {
                name + of_attribute: how for name, how in bank.indefinite.items()
            }
        warn_indefinite(self.indefinite)
        self.weights = np.zeros((self.n_rows, self.n_columns))

    def read(self, rows):
        """Kernel rows of every attribute, shared ones once."""
        taken = {id(kernel): kernel.rows(rows) for kernel in self.kernels}
        return [taken[id(kernel)] for kernel in self.kernels]

    def scores(self, rows):
        pairs = zip(self.at(rows), self.columns, strict=True)
        scores = [K @ self.weights[:, columns].astype(K.dtype, copy=False) for K, columns in pairs]
        return np.concatenate(scores, axis=1).astype(np.float64, copy=False)

    def products(self, rows):
        index = np.arange(self.n_rows)[rows]
        return np.stack([K[:, index] for K in self.at(rows)]).astype(np.float64, copy=False)

    def move(self, rows, delta, scale=1.0):
        if scale != 1.0:
            self.weights *= scale
        self.weights[rows] += delta

    def place(self, coef):
        self.weights = np.array(coef, dtype=np.float64)

    def inner(self, weights):
        total = 0.0
        for start in range(0, self.n_rows, ROWS):
            rows = slice(start, min(start + ROWS, self.n_rows))
            total += float(np.einsum("ij,ij->", self.scores(rows), weights[rows]))
        return total
