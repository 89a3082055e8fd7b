"""Pairs of classes with 60 kernels: 15 kinds of features times linear, polynomial, chi-squared and Gaussian."""

from typing import NamedTuple

import numpy as np

from cuelearn import datasets
from cuelearn.datasets.kinds import (
    IMAGE_KINDS,
    ImageKinds,
    kind_kernels,
    letter_groups,
    satimage_groups,
    stack_kinds,
)
from cuelearn.oks.sources import with_widths


class Pair(NamedTuple):
    """A binary task.

    Attributes
    ----------
    X_train, X_test : ndarray, shape (n, n_features)
    y_train, y_test : ndarray of int
        0 and 1.
    kernels : list of (name, kernel, columns)
        With numbers for gamma.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    kernels: list


def load_set(name):
    """Data set of a task, by the task's name."""
    kind = name.split()[0]
    if kind == "corel5k":
        return datasets.load_original(kind)
    return {"mnist": datasets.load_mnist, "letter": datasets.load_letter, "satimage": datasets.load_satimage}[
        kind
    ]()


def _rows_of(name, data):
    """Training and test rows of the two classes of a task, and their labels (0 and 1, by row of the data)."""
    kind, _, rest = name.partition(" ")
    suffix = " soil" if kind == "satimage" else ""
    one, two = (
        list(map(str, data.target_names)).index(f"{part}{suffix}")
        for part in rest.removesuffix(suffix).split("/")
    )
    if (
        kind == "corel5k"
    ):  # images with one of the keywords and not the other; no published split: a tenth tests, as in the paper
        labels = data.y[:, two].astype(np.int64)
        rows = np.random.default_rng([5, 0]).permutation(np.flatnonzero(data.y[:, one] != data.y[:, two]))
        return rows[rows.size // 10 :], rows[: rows.size // 10], labels
    labels = (data.y == two).astype(np.int64)
    both = np.isin(data.y, (one, two))
    return data.train[both[data.train]], data.test[both[data.test]], labels


def describe_pair(name, n_train, n_test, seed):
    """Features of a pair: a random part of the official training samples, and the first official test samples.

    Parameters
    ----------
    name : str
        "mnist 4/9", "letter I/J", "satimage damp grey/very damp grey soil", "corel5k sky/people", ...
    n_train, n_test : int
        At most.
    seed : int
        Of the choice of training samples, and of the visual words, which are learnt from them alone.

    Returns
    -------
    dict of ndarray
        X_train, y_train, X_test, y_test, and for digits `ends`, where each kind's columns end.
    """
    data = load_set(name)
    train, test, labels = _rows_of(name, data)
    train, test = np.random.default_rng([seed, 4]).permutation(train)[:n_train], test[:n_test]
    out = {"y_train": labels[train], "y_test": labels[test]}
    if not name.startswith("mnist"):
        return {**out, "X_train": data.X[train].astype(np.float64), "X_test": data.X[test].astype(np.float64)}
    rows = np.concatenate([train, test])
    images = np.empty((rows.size, 784), dtype=np.float32)
    images[:, data.pixels] = data.X[rows]
    images = images.reshape(-1, 28, 28)
    kinds = ImageKinds(random_state=seed).fit(images[: train.size]).transform(images)
    X, groups = stack_kinds(kinds)
    return {
        **out,
        "X_train": X[: train.size],
        "X_test": X[train.size :],
        "ends": np.array([s.stop for s in groups.values()]),
    }


def pair_of(name, described):
    """The task with its 60 kernels, widths set.

    Parameters
    ----------
    name : str
    described : dict
        Of `describe_pair`.

    Returns
    -------
    Pair
    """
    if "ends" in described:
        ends = np.concatenate([[0], described["ends"]])
        groups = {
            kind: slice(int(a), int(b)) for kind, a, b in zip(IMAGE_KINDS, ends[:-1], ends[1:], strict=True)
        }
    else:
        groups = {
            "letter": letter_groups,
            "satimage": satimage_groups,
            "corel5k": lambda: {"terms": slice(0, 499)},
        }[name.split()[0]]()
    X = np.asarray(described["X_train"], dtype=np.float64)
    kernels = with_widths(kind_kernels(groups), X)  # the same numbers for every method
    return Pair(
        X,
        described["y_train"],
        np.asarray(described["X_test"], dtype=np.float64),
        described["y_test"],
        kernels,
    )
