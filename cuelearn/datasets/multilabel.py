"""The papers' own multi-label sets, from the files that the user put in place."""

import xml.etree.ElementTree
from pathlib import Path

import numpy as np

from ._base import CueData, DataFileError, Provenance

__all__ = ["load_corel5k"]


def load_corel5k(path):
    """Load Corel5k, 5,000 photographs described by 499 visual terms, with 374 keywords.

    Parameters
    ----------
    path : str or path-like
        Directory with ``corel5k.mat`` (a variable ``X`` whose first 499 columns are the terms, and ``Y`` of shape (5000, 374)) and
        ``corel5k_labels.xml`` (the keywords in the order of the columns of Y), as the Mulan and KDIS repositories give them.

    Returns
    -------
    CueData
        `X` (5000, 499), float32, 0 or 1; one cue, "visual terms"; `y` (5000, 374), int8; no published split: the repositories' order does
        not say which 500 images are the test part.

    Raises
    ------
    DataFileError
        If a file is missing or is not of that form.

    Notes
    -----
    The papers describe these images by 15 kinds of features; the terms, which images share a kind of region with which, are all that
    is still to be had. Files that hold the keywords behind the terms in X are cut after column 499.

    References
    ----------
    P. Duygulu, K. Barnard, J. de Freitas and D. Forsyth (2002). Object recognition as machine translation. ECCV.
    """
    import scipy.io

    path = Path(path)
    files = path / "corel5k.mat", path / "corel5k_labels.xml"
    for file in files:
        if not file.is_file():
            raise DataFileError(f"{file} is missing; Corel5k comes as corel5k.mat and corel5k_labels.xml.")
    try:
        held = scipy.io.loadmat(files[0], variable_names=("X", "Y"))
        X, y = np.asarray(held["X"])[:, :499].astype(np.float32), np.asarray(held["Y"]).astype(np.int8)
        names = [label.get("name") for label in xml.etree.ElementTree.parse(files[1]).getroot()]
    except Exception as error:
        raise DataFileError(f"{path} does not hold Corel5k in the form of the Mulan repository ({error}).") from error
    if X.shape[1] != 499 or y.ndim != 2 or len(X) != len(y) or y.shape[1] != len(names) or not np.isin(y, (0, 1)).all():
        raise DataFileError(
            f"{files[0]} must hold X with 499 or more columns and 0/1 labels Y with {len(names)} columns, got {X.shape}, {y.shape}."
        )
    provenance = Provenance(
        "corel5k", "original", "not stated; for research", None, "Duygulu, Barnard, de Freitas and Forsyth, ECCV 2002",
        "Mulan / KDIS multi-label repository, corel5k",
    )  # fmt: skip
    return CueData(
        X, y, {"visual terms": slice(0, 499)}, None, None, [f"term {k}" for k in range(499)], names,
        "Photographs with 1 to 5 keywords; term k is 1 where the image has a region of kind k.", provenance,
    )  # fmt: skip
