"""Original data of chapter 5: USPS digits, and two real sets with ambiguous labels, Lost and MSRCv2."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ._base import CueData, DataFileError, Provenance, original_provenance, read_content
from ._hdf5 import read_hdf5

__all__ = ["PartialData", "load_lost", "load_msrcv2", "load_usps"]

#: Files that hold USPS, in the order in which they are looked for.
USPS_FORMS = (("usps.h5",), ("usps.bz2", "usps.t.bz2"), ("usps", "usps.t"))


class PartialData(NamedTuple):
    """Instances with a set of candidate labels each, one of them right: bags of a single instance.

    Attributes
    ----------
    X : ndarray of float32, shape (n, d)
    y : ndarray of int64, shape (n,)
        True class of each instance, 0..K-1.
    candidates : CandidateSet
        n bags of one instance, so that bags and rows have the same numbers.
    folds : list of (train, test)
        The published folds: row numbers, ascending; every row is in one test part.
    target_names : list of str
        One per class, of which some may only ever be wrong.
    description : str
    provenance : Provenance
    """

    X: np.ndarray
    y: np.ndarray
    candidates: object
    folds: list[tuple[np.ndarray, np.ndarray]]
    target_names: list[str]
    description: str
    provenance: Provenance

    def __repr__(self):
        mean = np.mean(self.candidates.n_candidates)
        return f"<{self.provenance.name}, original: X {self.X.shape}, {len(self.target_names)} classes, {mean:.1f} candidates each>"


def load_usps(path):
    """Load USPS, 9,298 handwritten digits of 16 x 16 pixels (thesis figure 5.3).

    Parameters
    ----------
    path : str or path-like
        Directory with ``usps.h5`` (arrays ``train/data``, ``train/target``, ``test/data`` and ``test/target``, grey values in [0, 1]), or
        with ``usps.bz2`` and ``usps.t.bz2`` as the LIBSVM page gives them, or with these unpacked.

    Returns
    -------
    CueData
        `X` (9298, 256), float32, grey values in [-1, 1] as on the LIBSVM page, row by row; one cue, "pixels"; `y` the digit; `train` the
        first 7,291 rows, `test` the other 2,007.

    Raises
    ------
    DataFileError
        If the files are missing, damaged, or not of that form.

    References
    ----------
    J. J. Hull (1994). A database for handwritten text recognition research. PAMI 16. Thesis section 5.5.
    """
    path = Path(path)
    files = next(([path / name for name in form] for form in USPS_FORMS if (path / form[0]).is_file()), None)
    if files is None:
        raise DataFileError(
            f"{path / 'usps.h5'} is missing; USPS comes as usps.h5, or as usps.bz2 and usps.t.bz2 of the LIBSVM page."
        )
    contents = [read_content(file, "USPS") for file in files]
    try:
        parts = _usps_of_h5(contents[0]) if files[0].suffix == ".h5" else _usps_of_libsvm(files)
    except Exception as error:  # whatever the parsers find wrong
        raise DataFileError(f"{files[0]} does not hold USPS in the form of its source ({error}).") from error
    for file, (X, y) in zip(files * (3 - len(files)), parts, strict=False):
        fits = (
            X.ndim == 2
            and X.shape[1] == 256
            and y.shape == (len(X),)
            and len(X) > 0
            and np.isfinite(X).all()
            and np.abs(X).max() <= 1.0
        )
        if not fits or not np.isin(y, np.arange(10)).all():
            raise DataFileError(
                f"{file} must hold images of 256 grey values and as many digits, got shapes {X.shape} and {y.shape}."
            )
    (X_train, y_train), (X_test, y_test) = parts
    n, total = len(X_train), len(X_train) + len(X_test)
    return CueData(
        np.concatenate([X_train, X_test]).astype(np.float32),
        np.concatenate([y_train, y_test]).astype(np.int64),
        {"pixels": slice(0, 256)},
        np.arange(n),
        np.arange(n, total),
        [f"pixel {row},{column}" for row in range(16) for column in range(16)],
        [str(digit) for digit in range(10)],
        "Digits from envelopes of the U.S. Postal Service, 16 x 16 pixels, grey values from -1 (paper) to 1 (ink).",
        original_provenance(
            "usps", contents, "Hull, PAMI 16, 1994", "LIBSVM data page, usps.bz2 and usps.t.bz2; OpenML 41082"
        ),
        np.arange(256),
    )


def _usps_of_h5(content):
    arrays = read_hdf5(content)
    # 0 to 1 in this form
    return [
        (2.0 * arrays[f"{part}/data"].astype(np.float64) - 1.0, arrays[f"{part}/target"])
        for part in ("train", "test")
    ]


def _usps_of_libsvm(files):
    from sklearn.datasets import load_svmlight_files

    X_train, y_train, X_test, y_test = load_svmlight_files([str(file) for file in files], n_features=256)
    # digits count from 1 there, the zero being 1
    return [(X_train.toarray(), y_train - 1.0), (X_test.toarray(), y_test - 1.0)]


def load_lost(path):
    """Load Lost, 1,122 faces from a television series, each with the names that a screenplay allows.

    Parameters
    ----------
    path : str or path-like
        Directory with ``lost.mat``, as the benchmark pages of partial-label learning give it: ``features`` (n, d), ``p_labels`` and
        ``logitlabels`` (n, n_classes), 0 or 1, ``tr`` and ``te`` with the rows of five folds, counted from 1.

    Returns
    -------
    PartialData
        `X` (1122, 108): principal components of the pixels, as given, in the thousands: standardise them. 2.2 names for a face on average;
        of the 16 names two are right for no face.

    Raises
    ------
    DataFileError
        If the file is missing, damaged, or not of that form.

    References
    ----------
    T. Cour, B. Sapp, C. Jordan and B. Taskar (2009). Learning from ambiguously labeled images. CVPR.
    """
    return _load_partial(
        path,
        "lost",
        "lost.mat",
        "name",
        "Faces from the series Lost, with the names that the screenplay has near them.",
        "Cour, Sapp, Jordan and Taskar, CVPR 2009",
    )


def load_msrcv2(path):
    """Load MSRCv2, 1,758 image regions of 23 classes, each with the classes that occur in its image.

    Parameters
    ----------
    path : str or path-like
        Directory with ``MSRCv2.mat``, of the form that `load_lost` describes.

    Returns
    -------
    PartialData
        `X` (1758, 48): histogram features in [0, 1]; 3.2 classes for a region on average.

    Raises
    ------
    DataFileError
        If the file is missing, damaged, or not of that form.

    References
    ----------
    L. Liu and T. Dietterich (2012). A conditional multinomial mixture model for superset label learning. NIPS.
    """
    return _load_partial(
        path,
        "msrcv2",
        "MSRCv2.mat",
        "class",
        "Regions of Microsoft Research Cambridge images, with the classes that their image has.",
        "Liu and Dietterich, NIPS 2012",
    )


def _load_partial(path, name, file, noun, description, citation):
    import scipy.io

    from ..mms.candidates import (
        CandidateSet,  # not at the top: data sets can be had without compiling a chapter's algorithms
    )

    file = Path(path) / file
    content = read_content(file, name)
    try:
        held = scipy.io.loadmat(str(file))
        X, possible, truth = (
            np.asarray(_dense(held[key])) for key in ("features", "p_labels", "logitlabels")
        )
        parts = zip(held["tr"].flat, held["te"].flat, strict=False)
        folds = [
            tuple(np.sort(np.asarray(part, dtype=np.int64).ravel() - 1) for part in fold) for fold in parts
        ]
        fits = (
            X.ndim == 2
            and np.isfinite(X).all()
            and possible.shape == truth.shape
            and len(possible) == len(X) > 0
            and np.isin(possible, (0, 1)).all()
            and np.isin(truth, (0, 1)).all()
        )
    except Exception as error:  # whatever the parser finds wrong
        raise DataFileError(
            f"{file} does not hold {name} in the form of the partial-label benchmarks ({error})."
        ) from error
    if not fits:
        raise DataFileError(
            f"{file} must hold features (n, d), and 0/1 matrices p_labels and logitlabels (n, n_classes)."
        )
    possible, truth, rows = possible.astype(bool), truth.astype(bool), np.arange(len(X))
    if np.any(truth.sum(axis=1) != 1) or np.any(truth & ~possible):
        raise DataFileError(
            f"{file} must give each row one true label in logitlabels that is among its candidates in p_labels."
        )
    if not folds or any(not np.array_equal(np.sort(np.concatenate(fold)), rows) for fold in folds):
        raise DataFileError(
            f"{file} must give in tr and te, for each fold, two parts that hold each of the {len(X)} rows once."
        )
    K = possible.shape[1]
    return PartialData(
        X.astype(np.float32),
        truth.argmax(axis=1),
        CandidateSet([np.flatnonzero(row)[:, None] for row in possible], n_labels=K),
        folds,
        [f"{noun} {k}" for k in range(K)],
        f"{description} The files do not say which {noun} is which.",
        original_provenance(
            name, [content], citation, f"pages of the partial-label learning benchmarks, {file.name}"
        ),
    )


def _dense(array):
    return array.toarray() if hasattr(array, "toarray") else array
