"""Kernels on one set of samples, indexable by scikit-learn's splitters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy.linalg import eigh

from cuelearn.expect import expect, expect_word
from cuelearn.kernels.bank import CrossBank, KernelBank
from cuelearn.kernels.specifications import check_entries, check_symmetric
from cuelearn.kernels.types import ArrayLike, Missing


class KernelStack:
    """Several kernels on the same samples as one object of shape (n, n), for cross-validation.

    `GridSearchCV`, `cross_val_score` and `Pipeline` index it like one kernel matrix, as in
    ``K[np.ix_(test, train)]``, without a copy; `fit` copies the kernels among the samples of a fold, or
    computes them on demand if the bank does. `train_test_split` and `resample` select rows with all columns,
    as for any kernel matrix.

    Parameters
    ----------
    kernels : array-like, shape (n_kernels, n, n) or (n, n), or KernelBank
        Kernels among all samples, checked once: `ValueError` unless square, symmetric and finite.
    names : list of str, optional
        Of the kernels in a stack.
    missing : {"error", "zero"}, default="error"
        As in `KernelBank.from_stack`.

    Attributes
    ----------
    shape : tuple
        (n_rows, n_columns), without n_kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from cuelearn.kernels import KernelStack
    >>> from cuelearn.mkl import AverageKernelSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> K = KernelStack([X[:, :2] @ X[:, :2].T, X[:, 2:] @ X[:, 2:].T])
    >>> bool(cross_val_score(AverageKernelSVM("precomputed"), K, y).mean() > 0.9)
    True

    One split, by the numbers of the samples:

    >>> import numpy as np
    >>> from sklearn.model_selection import train_test_split
    >>> train, test = train_test_split(np.arange(len(K)), stratify=y, random_state=0)
    >>> model = AverageKernelSVM("precomputed").fit(K[np.ix_(train, train)], y[train])
    >>> bool(model.score(K[np.ix_(test, train)], y[test]) > 0.8)
    True
    """

    ndim = 2

    def __init__(
        self,
        kernels: ArrayLike | KernelBank,
        *,
        names: Sequence[str] | None = None,
        missing: Missing = "error",
    ):
        bank = kernels
        if not isinstance(kernels, KernelBank):
            bank = KernelBank.from_stack(kernels, names=names, missing=missing)
        self._bank: KernelBank = bank
        self._rows = np.arange(bank.n_samples)
        self._columns = self._rows

    @property
    def shape(self) -> tuple[int, int]:
        return self._rows.size, self._columns.size

    @property
    def n_kernels(self) -> int:
        return self._bank.n_kernels

    @property
    def names(self) -> list[str]:
        return self._bank.names

    @property
    def dtype(self) -> np.dtype:
        return self._bank.dtype

    def __len__(self) -> int:
        return self._rows.size

    def __repr__(self):
        return f"KernelStack of {self.n_kernels} kernels, shape {self.shape}, {self.dtype}"

    def __getitem__(self, index: Any) -> KernelStack:
        rows, columns = index if isinstance(index, tuple) else (index, ...)
        view = object.__new__(KernelStack)
        view._bank = self._bank
        view._rows = _taken(self._rows, rows)
        view._columns = _taken(self._columns, columns)
        return view

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "a KernelStack is several kernels and cannot be converted to a matrix, as OneVsOneClassifier, "
            "BaggingClassifier and other tools do. Use the numbers of the samples, X=np.arange(n)[:, None], "
            "and kernels=[(name, function, [0]), ...] with normalize=False, where each function looks up one "
            "kernel, lambda A, B: K0[np.ix_(A[:, 0].astype(int), B[:, 0].astype(int))]. K.bank().stack is "
            "the array (n_kernels, n, n)"
        )

    def bank(self) -> KernelBank:
        """The `KernelBank` among these samples, for training."""
        if not np.array_equal(self._rows, self._columns):
            raise ValueError(
                f"X must be the kernels of the training samples with each other, got {self!r}; if K was "
                "split by rows, use K[np.ix_(train, train)] for training, K[np.ix_(test, train)] later"
            )
        self._bank.indefinite  # noqa: B018 - tested once, not in every fold
        if np.array_equal(self._rows, np.arange(self._bank.n_samples)):
            return self._bank
        return self._bank.restrict(self._rows)

    def cross(self) -> CrossBank:
        """The `CrossBank` of the rows with the columns, for prediction."""
        return self._bank.between(self._rows, self._columns)


def _taken(numbers, index):
    return numbers[index if isinstance(index, slice) or index is Ellipsis else np.ravel(index)]


def training_bank(X, memory=2e9, missing="error"):
    """The `KernelBank` of X with ``kernels="precomputed"``: a bank, a `KernelStack`, or an array."""
    if isinstance(X, KernelBank):
        return X
    if isinstance(X, KernelStack):
        return X.bank()
    return KernelBank.from_stack(X, memory=memory, missing=missing)


def new_kernels(X, n_kernels, n_train, least=0):
    """Precomputed kernels of new with training samples, (n_kernels, n, n_train), or (n, n_train) for one
    kernel, checked, in float32 or float64; `n_kernels` and `n_train` may be names, for any number."""
    shapes = [(n_kernels, "n", n_train)]
    if n_kernels in (1, "n_kernels"):
        shapes.append(("n", n_train))
    X = expect("X", X, kind="real", shape=shapes, finite=False, least=least)
    if X.ndim == 2:
        X = X[None]
    check_entries(X, "X")
    if X.dtype.kind == "f":
        return X
    return X.astype(np.float64)


def checked_cross(X, n_kernels, n_train):
    """The `CrossBank` X; ValueError for other numbers of kernels or training samples."""
    if (X.n_kernels, X.n_columns) != (n_kernels, n_train):
        raise ValueError(
            f"X must be a cross bank of {n_kernels} kernels and {n_train} training samples, got one of "
            f"{X.n_kernels} and {X.n_columns}"
        )
    return X


def refuse_kernels(X):
    """ValueError if X holds kernels instead of samples."""
    if isinstance(X, (KernelBank, KernelStack)):
        raise ValueError(f"X is a {type(X).__name__}, which needs kernels='precomputed'")


def nearest_psd(
    K: ArrayLike | KernelStack, method: Literal["clip", "shift"] = "clip", *, new: ArrayLike | None = None
) -> Any:
    r"""Replace an indefinite symmetric matrix by a positive semidefinite one.

    With the eigendecomposition :math:`K = U \,\mathrm{diag}(\lambda)\, U^\top`, "clip" gives
    :math:`U \,\mathrm{diag}(\max(0, \lambda))\, U^\top`, the nearest one in the Frobenius norm, and "shift"
    :math:`K + \max(0, -\min_i \lambda_i)\, I`, which changes only the diagonal. Cost O(n^3) per matrix. For a
    kernel from a distance, another distance is often the better repair.

    Parameters
    ----------
    K : array-like, shape (n, n) or (n_kernels, n, n), or KernelStack
        Real, finite, symmetric; differences up to 1e-5 of the largest entry, as by rounding, are averaged.
        Repair a `KernelStack` before it is split, without `new`.
    method : {"clip", "shift"}
    new : array-like, shape (m, n) or (n_kernels, m, n), optional
        Values of new samples with those of `K`, for prediction; "clip" projects them on the kept directions,
        a shift does not change them.

    Returns
    -------
    ndarray of the shape and floating type of `K`, or a pair of it and such an array for `new`; a KernelStack
    with the same names for a KernelStack

    Raises
    ------
    ValueError
        Unless all matrices are real, finite, square and symmetric.

    References
    ----------
    Chen, Garcia, Gupta, Rahimi, Cazzanti, Similarity-based classification: concepts and algorithms, JMLR 10
    (2009), section 3; Higham, Computing a nearest symmetric positive semidefinite matrix, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import nearest_psd
    >>> K = np.array([[1.0, 2.0], [2.0, 1.0]])  # eigenvalues -1 and 3
    >>> nearest_psd(K).round(3).tolist()
    [[1.5, 1.5], [1.5, 1.5]]
    >>> nearest_psd(K, "shift").round(3).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    >>> K, K_new = nearest_psd(K, new=np.array([[1.0, 0.0]]))
    >>> K_new.round(3).tolist()
    [[0.5, 0.5]]
    """
    expect_word("method", method, ("clip", "shift"))
    if isinstance(K, KernelStack):
        if new is not None:
            raise ValueError("new must be None where K is a KernelStack: repair it before it is split")
        bank = K.bank()
        return KernelStack(nearest_psd(bank.rows(np.arange(bank.n_samples)), method), names=K.names)
    K = expect("K", K, kind="real", shape=[("n", "n"), ("n_kernels", "n", "n")])
    rows = None
    if new is not None:
        rows = expect("new", new, kind="real", shape=(*K.shape[:-2], "m", K.shape[-1]), least=0)
    dtype = np.float64
    if K.dtype.kind == "f":
        dtype = K.dtype
    stack = K.reshape(-1, *K.shape[-2:])
    repaired = np.empty(stack.shape, dtype)
    if rows is not None:
        projected = rows.reshape(-1, *rows.shape[-2:]).astype(dtype)
    for j, matrix in enumerate(stack):
        check_symmetric(matrix, "K" if K.ndim == 2 else f"kernel {j} of K")
        matrix = 0.5 * (matrix.astype(np.float64) + matrix.T)
        values, vectors = eigh(matrix)
        if method == "shift":
            repaired[j] = matrix + max(0.0, -values[0]) * np.eye(len(matrix))
            continue
        kept = vectors[:, values > 0.0]
        repaired[j] = (kept * values[values > 0.0]) @ kept.T
        if rows is not None:
            projected[j] = projected[j] @ kept @ kept.T
    repaired = repaired.reshape(K.shape)
    if rows is None:
        return repaired
    return repaired, projected.reshape(rows.shape)
