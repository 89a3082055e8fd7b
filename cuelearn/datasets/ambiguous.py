"""Ambiguous labels: bags from any labelled set (Luo and Orabona, NIPS 2010), and files of partial labels."""

from __future__ import annotations

import hashlib
import io
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.io
from scipy import sparse

from cuelearn.compiled import njit
from cuelearn.core.samples import as_generator, classes_and_labels
from cuelearn.datasets.base import DataFileError, Provenance
from cuelearn.expect import expect, expect_shape
from cuelearn.kernels.types import ArrayLike, MatrixLike, RandomState
from cuelearn.mms import CandidateSet

__all__ = ["AmbiguousData", "make_ambiguous", "PartialData", "load_partial_labels"]

#: Most draws per labeling vector and instance of a bag, a limit that was never reached.
_DRAWS = 100


class AmbiguousData(NamedTuple):
    """Instances in bags, with candidate labeling vectors and, separately, the true labels.

    Attributes
    ----------
    X : ndarray or csr_matrix, shape (n, d)
        Rows by bag: ``X[order]`` of the input.
    y : ndarray, shape (n,)
        True class of each row, for evaluation only.
    candidates : CandidateSet
        Labeling vectors of each bag, the true one once; labels are positions in its ``classes[0]``.
    order : ndarray of int, shape (n,)
        A permutation of all rows.
    correlated, ambiguous : ndarray, shape (n_pairs, 2)
        Pairs of classes that often share a bag, and pairs of which each is a likely wrong label for the
        other.
    description : str

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets import AmbiguousData, make_ambiguous
    >>> data = make_ambiguous(np.eye(12), np.arange(12) % 3, bag_size=4, n_candidates=5, random_state=0)
    >>> isinstance(data, AmbiguousData), bool((data.X == np.eye(12)[data.order]).all())
    (True, True)
    """

    X: np.ndarray
    y: np.ndarray
    candidates: CandidateSet
    order: np.ndarray
    correlated: np.ndarray
    ambiguous: np.ndarray
    description: str

    def labels(self) -> np.ndarray:
        """True labels in the coding of the candidates, ints of shape (n,)."""
        return np.searchsorted(self.candidates.classes[0], self.y)

    def co_occurrence(self) -> pd.DataFrame:
        """Share of instances of class y (row) to which some candidate gives label z (column): a DataFrame
        (n_classes, n_classes), 1 on the diagonal, 0 for a class without instances."""
        classes = self.candidates.classes[0]
        labels = self.labels()
        counts = np.zeros((classes.size, classes.size))
        np.add.at(counts, labels, self.candidates.mask())
        shares = counts / np.maximum(np.bincount(labels, minlength=classes.size), 1)[:, None]
        return pd.DataFrame(shares, pd.Index(classes, name="true"), pd.Index(classes, name="also"))


def make_ambiguous(
    X: MatrixLike,
    y: ArrayLike,
    *,
    bag_size: int = 5,
    n_candidates: int = 10,
    p_correlated: float = 0.0,
    p_ambiguous: float = 0.0,
    random_state: RandomState = None,
) -> AmbiguousData:
    r"""Group labelled instances into bags with ambiguous labeling vectors (thesis 5.5).

    1. Two random pairings of the classes: *correlated* and *ambiguous* pairs.
    2. Instances are grouped at random into bags of B. An instance (of the smaller class of a pair) has, with
       probability at least :math:`P_c`, one of its class's correlated partner in its bag.
    3. Each bag has a pool of labels: its own, and for each, with probability :math:`P_a`, the ambiguous
       partner.
    4. L labeling vectors are made from the correct one: b is drawn uniformly from 1, ..., B, then b
       instances; each gets a label drawn uniformly from the pool without its own.
    5. The correct vector is inserted at a random position.

    Parameters
    ----------
    X : ndarray or sparse matrix, shape (n, d)
        Copied; its type is kept.
    y : array-like, shape (n,)
        At least two classes, numbers or text.
    bag_size : int, default=5
        B. The last bag is smaller if B does not divide n.
    n_candidates : int >= 0, default=10
        L, the number of distinct ambiguous vectors. A pool of q labels has :math:`q^B - 1`: a bag with fewer
        than L gets all.
    p_correlated, p_ambiguous : float in [0, 1], default=0
        :math:`P_c` and :math:`P_a`. `ValueError` if the bags cannot hold that many couples.
    random_state : int, Generator or None
        For a seed, pairs do not depend on other parameters, nor bags on `n_candidates` and `p_ambiguous`.

    Returns
    -------
    AmbiguousData

    Notes
    -----
    The thesis does not define the event with probability at least :math:`P_c`. Here, of a pair of classes of
    sizes :math:`n_a \ge n_b`, :math:`\lceil P_c n_b \rceil` couples are put into random bags first. Chance
    adds to this: of ten equal classes in bags of five 35%, 51% and 68% meet for :math:`P_c` = 0, 0.25 and
    0.5. Vectors of a bag depend on its labels only, as in proposition 5.2. 60,000 instances with L = 100 take
    2 s.

    Examples
    --------
    >>> from cuelearn.datasets import make_ambiguous
    >>> import numpy as np
    >>> data = make_ambiguous(np.eye(12), np.arange(12) % 3, bag_size=4, n_candidates=5, random_state=0)
    >>> data.candidates.n_bags, data.candidates.bag(0).shape
    (3, (6, 4, 1))
    """
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    y = np.asarray(y)
    expect_shape("y", y, ("n_instances",))
    expect_shape("X", X, (y.size, "n_features"))
    classes, labels = classes_and_labels(y)
    size = expect("bag_size", bag_size, kind="whole", low=1, high=y.size)
    L = expect("n_candidates", n_candidates, kind="whole", low=0)
    expect("p_correlated", p_correlated, low=0, high=1)
    expect("p_ambiguous", p_ambiguous, low=0, high=1)
    n_pairs = classes.size // 2
    of_pairs, of_bags, of_vectors = as_generator(random_state).spawn(3)
    correlated = of_pairs.permutation(classes.size)[: 2 * n_pairs].reshape(n_pairs, 2)
    ambiguous = of_pairs.permutation(classes.size)[: 2 * n_pairs].reshape(n_pairs, 2)
    order, starts = _group(labels, size, correlated, p_correlated, of_bags)
    partner = np.full(classes.size, -1)
    partner[ambiguous] = ambiguous[:, ::-1]

    labels = labels[order]
    pools, ends = _pools(labels, starts, partner, p_ambiguous, classes.size, of_vectors)
    sizes = np.diff(starts)
    with np.errstate(over="ignore"):
        wrong = np.minimum(np.diff(ends).astype(float) ** sizes - 1.0, float(L)).astype(np.int64)
    counts, entries = _vectors(labels, starts, pools, ends, wrong, of_vectors)
    places = np.cumsum((wrong + 1) * sizes)
    bags = [part[: n * m].reshape(n, m) for part, n, m in zip(np.split(entries, places), counts, sizes)]
    last = ""
    if sizes[-1] != size:
        last = f" (the last of {sizes[-1]})"
    chances = f"P_c = {p_correlated:g}, P_a = {p_ambiguous:g}"
    return AmbiguousData(
        X[order],
        y[order],
        CandidateSet(bags, classes=[classes]),
        order,
        classes[correlated],
        classes[ambiguous],
        f"{len(bags)} bags of {size} instances{last}, {classes.size} classes, {L} ambiguous labeling vectors "
        f"and the correct one, {chances}, {n_pairs} pairs of classes.",
    )


def _group(labels, size, correlated, p_correlated, rng):
    """Step 2: the order of the instances, and the bags' boundaries."""
    n = labels.size
    starts = np.append(np.arange(0, n, size), n)
    shuffled = rng.permutation(n)
    couples = []
    for a, b in correlated:
        first = shuffled[labels[shuffled] == a]
        second = shuffled[labels[shuffled] == b]
        needed = math.ceil(p_correlated * min(first.size, second.size) - 1e-9)  # 0.07 * 100 > 7
        couples.append(np.column_stack([first[:needed], second[:needed]]))
    couples = np.concatenate(couples)
    seats = np.concatenate([np.arange(a, b - 1, 2) for a, b in zip(starts[:-1], starts[1:])])
    if len(couples) > seats.size:
        raise ValueError(
            f"p_correlated must be smaller for bags of {size}: they have room for {seats.size} couples, and "
            f"{p_correlated:g} asks for {len(couples)}"
        )
    order = np.full(n, -1)
    taken = rng.permutation(seats)[: len(couples)]
    order[taken] = couples[:, 0]
    order[taken + 1] = couples[:, 1]
    alone = np.ones(n, dtype=bool)
    alone[couples] = False
    order[order < 0] = shuffled[alone[shuffled]]
    within = np.lexsort((rng.random(n), np.repeat(np.arange(starts.size - 1), np.diff(starts))))
    return order[within], starts


@njit(cache=True, nogil=True)
def _pools(labels, starts, partner, chance, n_labels, rng):
    """Step 3: the bags' pools of labels, and their boundaries."""
    n_bags = starts.size - 1
    pools = np.empty(2 * labels.size, dtype=np.int32)
    ends = np.zeros(n_bags + 1, dtype=np.int64)
    last = np.full(n_labels, -1)  # the last bag that has the label in its pool
    end = 0
    for i in range(n_bags):
        begin = end
        for m in range(starts[i], starts[i + 1]):
            if last[labels[m]] != i:
                last[labels[m]] = i
                pools[end] = labels[m]
                end += 1
        for k in range(begin, end):
            other = partner[pools[k]]
            # one draw per label, even if its partner is in the pool already
            if other >= 0 and rng.random() < chance and last[other] != i:
                last[other] = i
                pools[end] = other
                end += 1
        ends[i + 1] = end
    return pools[:end], ends


@njit(cache=True, nogil=True)
def _vectors(labels, starts, pools, ends, wrong, rng):
    """Steps 4 and 5: number of vectors of each bag, at most ``wrong[i] + 1``, and all entries."""
    n_bags = starts.size - 1
    total = int(np.sum((wrong + 1) * np.diff(starts)))
    entries = np.empty(total, dtype=np.int32)
    counts = np.empty(n_bags, dtype=np.int64)
    who = np.empty(np.diff(starts).max(), dtype=np.int64)
    begin = 0
    for i in range(n_bags):
        first = starts[i]
        size = starts[i + 1] - starts[i]
        q = ends[i + 1] - ends[i]
        vectors = entries[begin : begin + (wrong[i] + 1) * size].reshape(wrong[i] + 1, size)
        vectors[0] = labels[first : first + size]  # the truth, so that it is not drawn
        vector = np.empty(size, dtype=np.int32)
        n_vectors = 1
        tries = 0
        while n_vectors <= wrong[i] and tries < _DRAWS * size * (wrong[i] + 1):
            for m in range(size):
                who[m] = m
                vector[m] = labels[first + m]
            b = rng.integers(1, size + 1)
            for k in range(b):
                swap = rng.integers(k, size)
                m = who[swap]
                who[swap] = who[k]
                # uniform over the pool without the own label, which the last one replaces
                z = pools[ends[i] + rng.integers(0, q - 1)]
                vector[m] = pools[ends[i] + q - 1] if z == vector[m] else z
            if not _holds(vectors, n_vectors, vector):
                vectors[n_vectors] = vector
                n_vectors += 1
            tries += 1
        counts[i] = n_vectors
        swap = rng.integers(0, n_vectors)
        for m in range(size):
            vectors[0, m], vectors[swap, m] = vectors[swap, m], vectors[0, m]
        begin += (wrong[i] + 1) * size
    return counts, entries


@njit(cache=True, nogil=True)
def _holds(vectors, n, vector):
    for k in range(n):
        m = 0
        while m < vector.size and vectors[k, m] == vector[m]:
            m += 1
        if m == vector.size:
            return True
    return False


class PartialData(NamedTuple):
    """Instances with a set of candidate labels each, one of which is true: bags of one instance.

    Attributes
    ----------
    X : ndarray of float32, shape (n, d)
    y : ndarray of int64, shape (n,)
        True class of each instance, 0..K-1.
    candidates : CandidateSet
        Bag i is row i.
    folds : list of (train, test)
        The published folds: ascending row numbers; every row is in one test part.
    target_names : list of str
        One per class; some classes may never be true.
    description : str
    provenance : Provenance

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets import PartialData, Provenance
    >>> from cuelearn.mms import CandidateSet
    >>> origin = Provenance("toy", "original", "none", None, "none", "made here")
    >>> PartialData(np.eye(2), [0, 1], CandidateSet([[[0], [1]], [[1]]]), [], ["a", "b"], "Two.", origin)
    <toy, original: X (2, 2), 2 classes, 1.5 candidates each>
    """

    X: np.ndarray
    y: np.ndarray
    candidates: CandidateSet
    folds: list[tuple[np.ndarray, np.ndarray]]
    target_names: list[str]
    description: str
    provenance: Provenance

    def __repr__(self):
        mean = np.mean(self.candidates.n_candidates)
        classes = f"{len(self.target_names)} classes, {mean:.1f} candidates each"
        return f"<{self.provenance.name}, original: X {self.X.shape}, {classes}>"


def load_partial_labels(path: str | Path) -> PartialData:
    """Load a .mat file of instances with candidate labels, one of which is true.

    Two published forms are read: ``features`` (n, d), ``p_labels`` and ``logitlabels`` (n, n_classes), with
    rows of folds in ``tr`` and ``te``, counted from 1; and ``data`` (n, d), ``partial_target`` and ``target``
    (n_classes, n). Matrices may be sparse. Returns a `PartialData` with the folds of the file, or none.

    Raises
    ------
    DataFileError
        If the file is missing, damaged or of another form.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from scipy.io import savemat
    >>> from cuelearn.datasets import load_partial_labels
    >>> arrays = {"features": np.eye(3), "p_labels": np.ones((3, 3)), "logitlabels": np.eye(3)}
    >>> with TemporaryDirectory() as directory:
    ...     savemat(f"{directory}/toy.mat", arrays)
    ...     data = load_partial_labels(f"{directory}/toy.mat")
    >>> data
    <toy, original: X (3, 3), 3 classes, 3.0 candidates each>
    """
    file = Path(path)
    name = file.stem
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise DataFileError(f"{file} is missing; {name} needs it.") from None
    try:
        X, possible, truth, folds, fits = _partial_arrays(content)
    except Exception as error:  # the kind depends on the damage
        form = f"{name} in the form of the partial-label benchmarks"
        raise DataFileError(f"{file} does not hold {form} ({error}).") from None
    if not (fits and (truth.sum(axis=1) == 1).all() and (truth <= possible).all()):
        raise DataFileError(
            f"{file} must hold features (n, d), and 0/1 matrices of candidate labels and of true labels, "
            "with one true label per row that is among its candidates."
        )
    rows = np.arange(len(X))
    if not all(np.array_equal(np.sort(np.concatenate(fold)), rows) for fold in folds):
        wanted = f"two parts that have each of the {len(X)} rows once"
        raise DataFileError(f"{file} must give in tr and te, for each fold, {wanted}.")
    return PartialData(
        X.astype(np.float32),
        truth.argmax(axis=1),
        CandidateSet.from_indicator(possible),
        folds,
        [f"class {k}" for k in range(possible.shape[1])],
        f"Partial labels from {file.name}. The files do not say which class is which.",
        Provenance(
            name,
            "original",
            "not stated; for research",
            hashlib.sha256(content).hexdigest(),
            "see the file's page",
            f"pages of the partial-label learning benchmarks, {file.name}",
        ),
    )


def _partial_arrays(content):
    """Features, candidate labels and true labels, by row; the rows of folds; whether the arrays are valid."""
    arrays = scipy.io.loadmat(io.BytesIO(content))
    turned = "partial_target" in arrays
    keys = ("features", "p_labels", "logitlabels")
    if turned:
        keys = ("data", "partial_target", "target")
    X, possible, truth = (
        arrays[key].toarray() if sparse.issparse(arrays[key]) else arrays[key] for key in keys
    )
    if turned:
        possible = possible.T
        truth = truth.T
    folds = []
    if "tr" in arrays:
        for fold in zip(arrays["tr"].flat, arrays["te"].flat):
            folds.append(tuple(np.sort(np.asarray(part, dtype=np.int64).ravel() - 1) for part in fold))
    sized = X.ndim == 2 and possible.shape == truth.shape and len(possible) == len(X) > 0
    fits = sized and np.isfinite(X).all() and _is_binary(possible) and _is_binary(truth)
    return X, possible, truth, folds, fits


def _is_binary(matrix):
    return matrix.ndim == 2 and np.isin(matrix, (0, 1)).all()
