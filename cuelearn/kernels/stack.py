"""Kernels on one set of samples in the form that scikit-learn's splitters index."""

import numpy as np

from cuelearn.kernels.bank import KernelBank
from cuelearn.kernels.specifications import check_entries, real_values

__all__ = ["KernelStack", "checked_cross", "new_kernels", "refuse_kernels", "training_bank"]


class KernelStack:
    """Several kernels on the same samples as one object of shape (n, n), for cross-validation.

    `GridSearchCV`, `cross_val_score` and `Pipeline` split a kernel matrix by indexing its first two axes, as
    in ``K[np.ix_(test, train)]``. This view takes such indices for all kernels together. The kernels are not
    copied by that; `fit` copies those among the samples of a fold, or computes them on demand where the bank
    does. `train_test_split` and `resample` take rows with all columns, as of any kernel matrix.

    Parameters
    ----------
    kernels : array-like, shape (n_kernels, n, n) or (n, n), or KernelBank
        Symmetric kernels among all samples that there are, checked once.
    names : list of str, optional
        Of the kernels in a stack.

    Attributes
    ----------
    shape : tuple
        (n_rows, n_columns); n_kernels stands apart.

    Raises
    ------
    ValueError
        If the kernels are not square, symmetric and finite.

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

    def __init__(self, kernels, *, names=None):
        bank = kernels if isinstance(kernels, KernelBank) else KernelBank.from_stack(kernels, names=names)
        self._bank = bank
        self._rows = np.arange(bank.n_samples)
        self._columns = self._rows

    @property
    def shape(self):
        """(n_rows, n_columns)."""
        return self._rows.size, self._columns.size

    @property
    def n_kernels(self):
        """Number of kernels."""
        return self._bank.n_kernels

    @property
    def names(self):
        """Names of the kernels."""
        return self._bank.names

    @property
    def dtype(self):
        """Precision of the kernels."""
        return self._bank.dtype

    def __len__(self):
        return self._rows.size

    def __repr__(self):
        return f"KernelStack of {self.n_kernels} kernels, shape {self.shape}, {self.dtype}"

    def __getitem__(self, index):
        rows, columns = index if isinstance(index, tuple) else (index, ...)
        view = object.__new__(KernelStack)
        view._bank = self._bank
        view._rows = _taken(self._rows, rows)
        view._columns = _taken(self._columns, columns)
        return view

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "a KernelStack is several kernels and no matrix, which OneVsOneClassifier, BaggingClassifier and "
            "other tools make of X. Give these the numbers of the samples, X=np.arange(n)[:, None], and "
            "kernels=[(name, function, [0]), ...] with normalize=False, where each function looks one kernel "
            "up, lambda A, B: K0[np.ix_(A[:, 0].astype(int), B[:, 0].astype(int))]. K.bank().stack is the "
            "array (n_kernels, n, n)"
        )

    def bank(self):
        """The `KernelBank` among these samples, for training."""
        if not np.array_equal(self._rows, self._columns):
            raise ValueError(
                f"X must be the kernels of the training samples with each other, got {self!r}; where K was "
                "split by rows, take K[np.ix_(train, train)] for training, K[np.ix_(test, train)] later"
            )
        self._bank.indefinite  # noqa: B018 - looked at once, not in every fold
        everything = np.array_equal(self._rows, np.arange(self._bank.n_samples))
        return self._bank if everything else self._bank.restrict(self._rows)

    def cross(self):
        """The `CrossBank` of the rows with the columns, for prediction."""
        return self._bank.between(self._rows, self._columns)


def _taken(numbers, index):
    """Some of the numbers, by a slice, an ellipsis, integers or a mask."""
    return numbers[index if isinstance(index, slice) or index is Ellipsis else np.ravel(index)]


def training_bank(X, memory=2e9):
    """The `KernelBank` of what is given for ``kernels="precomputed"``: a bank, a `KernelStack`, an array of
    shape (n_kernels, n, n), or of shape (n, n) where there is one kernel."""
    if isinstance(X, KernelBank):
        return X
    return X.bank() if isinstance(X, KernelStack) else KernelBank.from_stack(X, memory=memory)


def new_kernels(X, n_kernels, n_train):
    """Precomputed kernels of new samples with those of training as an array (n_kernels, n, n_train); where
    there is one kernel, (n, n_train) will do. ValueError for another shape, or values of no kernel."""
    X = real_values(X, "X")
    X = X[None] if X.ndim == 2 and n_kernels == 1 else X
    if X.ndim != 3 or (X.shape[0], X.shape[2]) != (n_kernels, n_train):
        wanted = f"({n_kernels}, n, {n_train}), a stack (n_kernels, n, n_train)"
        raise ValueError(f"X must have shape {wanted}, got {X.shape}")
    check_entries(X, "X")
    return X


def checked_cross(X, n_kernels, n_train):
    """The `CrossBank` itself; ValueError unless it has so many kernels and training samples."""
    if (X.n_kernels, X.n_columns) != (n_kernels, n_train):
        wanted = f"a cross bank of {n_kernels} kernels and {n_train} training samples"
        raise ValueError(f"X must be {wanted}, got one of {X.n_kernels} and {X.n_columns}")
    return X


def refuse_kernels(X):
    """ValueError if X holds kernels where samples are wanted."""
    if isinstance(X, (KernelBank, KernelStack)):
        raise ValueError(f"X is a {type(X).__name__}, which needs kernels='precomputed'")
