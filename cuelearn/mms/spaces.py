"""Hyperplanes of all labels, held in the feature space or as coefficients of the training instances.

The solvers visit bags in blocks. A block needs the scores of its instances and their inner products, both one matrix product; within it
one bag after the other is visited exactly as if each had been scored by itself (`blocks`), and at its end the hyperplanes are moved by one
further product. So a sequential method runs at the speed of matrix products.
"""

import numpy as np

from cuelearn.kernels import KernelBank
from cuelearn.mkl.problem import combine, combined_kernel, combined_scores

__all__ = ["KernelSpace", "LinearSpace"]

ROWS = 2048


class _Space:
    """Base: attributes with `n_labels` each; hyperplanes of all labels side by side, scaled by `scale`."""

    def __init__(self, n_rows, n_labels):
        self.n_rows, self.n_labels = n_rows, tuple(n_labels)
        self.column = np.concatenate([[0], np.cumsum(n_labels)])

    def columns(self, p):
        return slice(self.column[p], self.column[p + 1])

    def scores(self, rows):
        """Scores of some instances (a slice or indices), shape (n_rows, sum of labels), float64."""
        return self.block(rows, products=False)[0]

    def batches(self, starts):
        """Slices of consecutive bags with some thousand instances each: first bag, bag after the last, rows."""
        first, n_bags = 0, len(starts) - 1
        while first < n_bags:
            last = max(first + 1, int(np.searchsorted(starts, starts[first] + ROWS, side="right")) - 1)
            yield first, last, slice(int(starts[first]), int(starts[last]))
            first = last


class LinearSpace(_Space):
    """Hyperplanes as vectors.

    Parameters
    ----------
    parts : list of ndarray, shape (n_rows, n_features)
        Features of each attribute, float32 or float64; the same array where attributes share it.
    n_labels : sequence of int
    """

    def __init__(self, parts, n_labels):
        super().__init__(len(parts[0]), n_labels)
        self.parts = parts
        self.width = max(X.shape[1] for X in parts)
        self._rows = self._held = None
        self.reset()

    def reset(self):
        self.weights = [
            np.zeros((size, X.shape[1]), dtype=X.dtype)
            for size, X in zip(self.n_labels, self.parts, strict=True)
        ]

    def state(self):
        return [w.copy() for w in self.weights]

    def restore(self, state):
        self.weights = [w.copy() for w in state]

    def block(self, rows, products=True):
        """Scores of some instances and, if asked, their inner products per attribute, shape (n_attributes, b, b); float64."""
        features = self._features(rows)
        scores = np.concatenate(
            [x @ w.T for x, w in zip(features, self.weights, strict=True)], axis=1
        ).astype(np.float64, copy=False)
        if not products:
            return scores, None
        grams = {id(x): (x @ x.T).astype(np.float64, copy=False) for x in features}
        return scores, np.stack([grams[id(x)] for x in features])

    def _features(self, rows):
        """Rows of every attribute's features; those of the block just scored are at hand when it is moved."""
        if rows is not self._rows:
            held = {}
            for X in self.parts:
                if id(X) not in held:
                    held[id(X)] = X[rows]
            self._rows, self._held = rows, [held[id(X)] for X in self.parts]
        return self._held

    def move(self, rows, delta, scale=1.0):
        """``w <- scale w + sum_m delta[m] x_m`` over some instances."""
        for p, (x, w) in enumerate(zip(self._features(rows), self.weights, strict=True)):
            if scale != 1.0:
                w *= w.dtype.type(scale)
            part = delta[:, self.columns(p)]
            touched = np.flatnonzero(part.any(axis=0))  # few labels of many
            if touched.size:
                w[touched] += part[:, touched].T.astype(w.dtype) @ x

    def place(self, coef):
        """``w <- sum over all instances of coef``, shape (n_rows, sum of labels)."""
        self.reset()
        for start in range(0, self.n_rows, ROWS):
            rows = slice(start, start + ROWS)
            self.move(rows, coef[rows])

    def squared_norm(self):
        return float(sum(np.einsum("ij,ij->", w, w, dtype=np.float64) for w in self.weights))

    def inner(self, state):
        """Inner product with hyperplanes kept before."""
        return float(
            sum(
                np.einsum("ij,ij->", w, v, dtype=np.float64) for w, v in zip(self.weights, state, strict=True)
            )
        )


class _Matrix:
    """The mean of a bank's kernels on the training instances: one matrix where it fits the budget, else row blocks on demand."""

    def __init__(self, bank, weights, memory, constant):
        self.bank, self.weights, self.constant = bank, weights, constant
        self.n = bank.n_samples
        self.held = None
        if bank.dtype.itemsize * self.n**2 <= memory:
            self.held = combined_kernel(bank, weights, 1.0).astype(bank.dtype)
            if constant:
                self.held += bank.dtype.type(1.0)

    def rows(self, rows):
        if self.held is not None:
            return self.held[rows]
        index = np.arange(self.n)[rows]
        step = max(1, self.bank.block_rows())
        parts = [
            combine(self.bank.rows(index[k : k + step]), self.weights) for k in range(0, len(index), step)
        ]
        return np.concatenate(parts) + self.bank.dtype.type(1.0 if self.constant else 0.0)


class KernelSpace(_Space):
    """Hyperplanes as coefficients of the training instances.

    Parameters
    ----------
    banks : list of KernelBank
        One per attribute; the same object where attributes share it.
    kernel_weights : list of ndarray, shape (n_kernels,)
    n_labels : sequence of int
    memory : float
        Bytes that a combined matrix may take; beyond, its rows are computed whenever they are needed.
    constant : bool
        Add 1 to the kernels, which is a constant feature.
    """

    def __init__(self, banks, kernel_weights, n_labels, memory, constant):
        super().__init__(banks[0].n_samples, n_labels)
        held = {}
        self.matrices, self.width = [], 1  # inner products are at hand
        for bank, weights in zip(banks, kernel_weights, strict=True):
            key = (id(bank), weights.tobytes())
            if key not in held:
                held[key] = _Matrix(bank, weights, memory, constant)
            self.matrices.append(held[key])
        self.reset()

    def reset(self):
        self.coef = np.zeros((self.n_rows, int(self.column[-1])))

    def state(self):
        return self.coef.copy()

    def restore(self, state):
        self.coef = state.copy()

    def _products(self, rows):
        held = {}
        for matrix in self.matrices:
            if id(matrix) not in held:
                held[id(matrix)] = matrix.rows(rows)
        return [held[id(matrix)] for matrix in self.matrices]

    def block(self, rows, products=True):
        """As of `LinearSpace`."""
        kernels = self._products(rows)
        scores = [
            K @ self.coef[:, self.columns(p)].astype(K.dtype, copy=False) for p, K in enumerate(kernels)
        ]
        scores = np.concatenate(scores, axis=1).astype(np.float64, copy=False)
        if not products:
            return scores, None
        index = np.arange(self.n_rows)[rows]
        return scores, np.stack([K[:, index] for K in kernels]).astype(np.float64, copy=False)

    def move(self, rows, delta, scale=1.0):
        """As of `LinearSpace`."""
        if scale != 1.0:
            self.coef *= scale
        self.coef[rows] += delta

    def place(self, coef):
        """As of `LinearSpace`."""
        self.coef = np.array(coef, dtype=np.float64)

    def squared_norm(self):
        return self.inner(self.coef)

    def inner(self, state):
        """As of `LinearSpace`."""
        total = 0.0
        for start in range(0, self.n_rows, ROWS):
            rows = slice(start, min(start + ROWS, self.n_rows))
            total += float(np.einsum("ij,ij->", self.scores(rows), state[rows]))
        return total


def mean_weights(bank):
    """Equal weights that add up to 1."""
    return np.full(bank.n_kernels, 1.0 / bank.n_kernels)


def bank_of(X, kernels, normalize, memory):
    """The bank of one attribute: given, from a precomputed stack, or from features."""
    if isinstance(X, KernelBank):
        return X
    if isinstance(kernels, str):
        return KernelBank.from_stack(X, memory=memory)
    return KernelBank(kernels, X, normalize=normalize, memory=memory)


def new_scores(bank, X, coef, weights, support, precomputed, constant):
    """Scores of new instances in kernel form, shape (n_new, n_labels)."""
    if precomputed:
        X = np.asarray(X)
        combined = combine(X[:, :, support], weights, np.float64)
        scores = combined @ coef
    else:
        cross = bank.cross(X, support=support)
        scores = combined_scores(cross, coef, weights)
    return scores + coef.sum(axis=0) if constant else scores
