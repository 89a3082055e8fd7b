"""Partial-label files: instances with candidate labels, one of which is true."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.io
from scipy import sparse

from cuelearn.mms import CandidateSet

from .base import DataFileError, Provenance

__all__ = ["PartialData", "load_partial_labels"]


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
    >>> sets = CandidateSet.from_indicator([[1, 1, 0], [0, 1, 1]])
    >>> PartialData(np.eye(2, dtype=np.float32), np.array([0, 2]), sets, [], ["a", "b", "c"], "Two.", origin)
    <toy, original: X (2, 2), 3 classes, 2.0 candidates each>
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


def load_partial_labels(path):
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
        raise DataFileError(
            f"{file} must give in tr and te, for each fold, two parts that have each of the {len(X)} rows "
            "once."
        )
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
    dense = [arrays[key].toarray() if sparse.issparse(arrays[key]) else arrays[key] for key in keys]
    X, possible, truth = (np.asarray(array) for array in dense)
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
