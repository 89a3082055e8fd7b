"""Pairs of classes with 60 kernels: 15 kinds of features times four kinds of kernels."""

from typing import NamedTuple

import numpy as np

from cuelearn.datasets import kinds
from cuelearn.experiments.protocol import load_set
from cuelearn.oks.sources import with_widths


class Pair(NamedTuple):
    """A binary task, labels 0 and 1; `kernels` are (name, kernel, columns) with numbers for gamma."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    kernels: list


def _rows_of(name, data):
    """Training and test rows of the two classes of a task, and their labels (0 and 1, by row of the data)."""
    kind, _, rest = name.partition(" ")
    suffix = " soil" if kind == "satimage" else ""
    classes = [str(c) for c in data.target_names]
    one, two = (classes.index(part + suffix) for part in rest.removesuffix(suffix).split("/"))
    if kind == "corel5k":
        # images with one of the keywords, not both; no published split: a tenth tests, as in the paper
        labels = data.y[:, two].astype(np.int64)
        rows = np.random.default_rng([5, 0]).permutation(np.flatnonzero(data.y[:, one] != data.y[:, two]))
        return rows[rows.size // 10 :], rows[: rows.size // 10], labels
    both = np.isin(data.y, (one, two))
    labels = (data.y == two).astype(np.int64)
    return data.train[both[data.train]], data.test[both[data.test]], labels


def describe_pair(name, n_train, n_test, seed):
    """Features of a pair: random official training samples, and the first official test samples.

    The seed is of the choice of training samples, and of the visual words, learnt from them alone. Arrays
    X_train, y_train, X_test, y_test, and for digits ends, where each kind's columns end.
    """
    data = load_set(name)
    train, test, labels = _rows_of(name, data)
    train, test = np.random.default_rng([seed, 4]).permutation(train)[:n_train], test[:n_test]
    rows, n, ends = np.concatenate([train, test]), train.size, {}
    if name.startswith("mnist"):
        images = np.empty((rows.size, 784), dtype=np.float32)
        images[:, data.pixels] = data.X[rows]
        images = images.reshape(-1, 28, 28)
        described = kinds.ImageKinds(random_state=seed).fit(images[:n]).transform(images)
        X, groups = kinds.stack_kinds(described)
        ends["ends"] = np.array([s.stop for s in groups.values()])
    else:
        X = data.X[rows].astype(np.float64)
    out = {"y_train": labels[train], "y_test": labels[test], "X_train": X[:n], "X_test": X[n:]}
    return out | ends


def pair_of(name, described):
    """The task with its 60 kernels, widths set: the same for every method; `described` by `describe_pair`."""
    kind = name.split()[0]
    if kind == "mnist":
        ends = [0, *described["ends"].tolist()]
        groups = dict(zip(kinds.IMAGE_KINDS, map(slice, ends[:-1], ends[1:]), strict=True))
    elif kind == "corel5k":
        groups = {"terms": slice(0, 499)}
    else:
        groups = {"letter": kinds.letter_groups, "satimage": kinds.satimage_groups}[kind]()
    X, X_test = (np.asarray(described[part], dtype=np.float64) for part in ("X_train", "X_test"))
    kernels = with_widths(kinds.kind_kernels(groups), X)
    return Pair(X, described["y_train"], X_test, described["y_test"], kernels)
