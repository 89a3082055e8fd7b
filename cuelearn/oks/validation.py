"""The held-back tenth on which the papers choose parameters and kernels."""

import numbers

import numpy as np
from sklearn.model_selection import train_test_split

__all__ = ["held_back"]


def held_back(labels, share, rng):
    """Training and held-back samples, with every class in both.

    Parameters
    ----------
    labels : ndarray, shape (n,)
    share : float in (0, 1)
        At least one sample of each class is held back.
    rng : Generator

    Returns
    -------
    train, test : ndarray of int
        Sorted: the training part keeps the order of the samples.

    Raises
    ------
    ValueError
        If `share` is out of range, or a class has a single sample.
    """
    if not isinstance(share, numbers.Real) or isinstance(share, bool) or not 0.0 < share < 1.0:
        raise ValueError(f"validation must be a number in (0, 1), got {share!r}")
    classes, counts = np.unique(labels, return_counts=True)
    if counts.min() < 2:
        raise ValueError("y must hold at least 2 samples of every class, to hold one back")
    n = len(labels)
    size = min(max(round(share * n), classes.size), n - classes.size)
    train, test = train_test_split(
        np.arange(n), test_size=size, stratify=labels, random_state=int(rng.integers(2**31 - 1))
    )
    return np.sort(train), np.sort(test)
