"""The papers' own multi-label sets, from the files that the user put in place."""

import io
import xml.etree.ElementTree
from pathlib import Path

import numpy as np

from ._base import CueData, DataFileError, original_provenance, read_content

__all__ = ["load_corel5k", "load_scene"]

#: Files of scene: the published training part, then the test part.
SCENE_FILES = ("scene-train.arff", "scene-test.arff")
_SCENE_LABELS = ("Beach", "Sunset", "FallFoliage", "Field", "Mountain", "Urban")
_SCENE_CHANNELS = ("L", "u", "v")
_SCENE_GRID = 7


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
    contents = [read_content(file, "Corel5k") for file in files]
    try:
        held = scipy.io.loadmat(io.BytesIO(contents[0]), variable_names=("X", "Y"))
        X, y = np.asarray(held["X"])[:, :499].astype(np.float32), np.asarray(held["Y"]).astype(np.int8)
        names = [label.get("name") for label in xml.etree.ElementTree.fromstring(contents[1])]
    except Exception as error:
        raise DataFileError(
            f"{path} does not hold Corel5k in the form of the Mulan repository ({error})."
        ) from error
    if (
        X.shape[1] != 499
        or y.ndim != 2
        or len(X) != len(y)
        or y.shape[1] != len(names)
        or not np.isin(y, (0, 1)).all()
    ):
        raise DataFileError(
            f"{files[0]} must hold X with 499 or more columns and 0/1 labels Y with {len(names)} columns, got {X.shape}, {y.shape}."
        )
    return CueData(
        X,
        y,
        {"visual terms": slice(0, 499)},
        None,
        None,
        [f"term {k}" for k in range(499)],
        names,
        "Photographs with 1 to 5 keywords; term k is 1 where the image has a region of kind k.",
        original_provenance(
            "corel5k",
            contents,
            "Duygulu, Barnard, de Freitas and Forsyth, ECCV 2002",
            "Mulan / KDIS multi-label repository, corel5k",
        ),
    )


def load_scene(path):
    """Load scene, 2,407 photographs described by the colours of 7 x 7 blocks, with six kinds of scenes.

    Parameters
    ----------
    path : str or path-like
        Directory with ``scene-train.arff`` and ``scene-test.arff`` as the Mulan repository gives them: a line for each photograph with 294
        numbers in [0, 1], then six labels, 0 or 1, in the order Beach, Sunset, FallFoliage, Field, Mountain, Urban. Where the header names
        the attributes, it must agree with this; a file without a header is taken to.

    Returns
    -------
    CueData
        `X` (2407, 294), float32, every column scaled to [0, 1] as published; cues ``"L"``, ``"u"`` and ``"v"``, the channels of the CIE Luv
        colours, 98 columns each: the means of the 49 blocks, then the variances, row of blocks after row of blocks from the top; `y`
        (2407, 6), int8, 1 to 3 labels each, 1.07 on average; `train` the first 1,211 rows, `test` the other 1,196, the published split.

    Raises
    ------
    DataFileError
        If a file is missing or is not of that form.

    Notes
    -----
    The files do not name the columns' meaning; the order follows from the values of all 2,407 rows:

    - The correlation of a column with the next is 0.78 on average within a row of seven blocks, 0.41 from the end of a row to the next
      row, and at most 0.11 in size where a run of 49 columns begins.
    - A block's variance goes with the squared differences of its mean to the means of the blocks beside, above and below it. Their
      correlation, averaged over the blocks, is 0.39 (L), 0.56 (u) and 0.49 (v) within a channel and at most 0.18 between two.
    - Where the first channel is below 0.01, black, the other two vary little (standard deviations 0.10 and 0.09, in all blocks 0.18 and
      0.24), as u and v do, and it falls from 0.69 in the first row of blocks to 0.52 in the last: it is L, and the rows count from the top.
    - The second channel is lowest in fields (green) and highest in sunsets (red): u. The third is low in the upper rows (sky) and high in
      fields and autumn leaves (yellow): v.

    Whether the blocks of a row count from the left cannot be seen in the values.

    References
    ----------
    M. R. Boutell, J. Luo, X. Shen and C. M. Brown (2004). Learning multi-label scene classification. Pattern Recognition 37, 1757-1771.
    """
    files = [Path(path) / name for name in SCENE_FILES]
    contents = [read_content(file, "scene") for file in files]
    n_blocks = _SCENE_GRID**2
    d = 2 * n_blocks * len(_SCENE_CHANNELS)
    parts = []
    for file, content in zip(files, contents, strict=False):
        try:
            names, rows = _read_arff(content)
        except ValueError as error:
            raise DataFileError(
                f"{file} does not hold scene in the form of the Mulan repository ({error})."
            ) from None
        fits = (
            rows.shape[1] == d + len(_SCENE_LABELS)
            and ((rows >= 0) & (rows <= 1)).all()
            and np.isin(rows[:, d:], (0, 1)).all()
        )
        if not fits or (names and (len(names) != rows.shape[1] or tuple(names[d:]) != _SCENE_LABELS)):
            raise DataFileError(
                f"{file} must hold rows of {d} numbers in [0, 1] and the 0/1 labels {', '.join(_SCENE_LABELS)}, in this order, got shape "
                f"{rows.shape}"
                + (f" and last attributes {', '.join(names[-len(_SCENE_LABELS) :])}." if names else ".")
            )
        parts.append(rows)
    rows, n = np.concatenate(parts), len(parts[0])
    return CueData(
        rows[:, :d].astype(np.float32),
        rows[:, d:].astype(np.int8),
        {
            channel: slice(2 * n_blocks * k, 2 * n_blocks * (k + 1))
            for k, channel in enumerate(_SCENE_CHANNELS)
        },
        np.arange(n),
        np.arange(n, len(rows)),
        [
            f"{channel} {moment} {row},{column}"
            for channel in _SCENE_CHANNELS
            for moment in ("mean", "variance")
            for row in range(_SCENE_GRID)
            for column in range(_SCENE_GRID)
        ],
        list(_SCENE_LABELS),
        "Photographs of six kinds of scenes, some of several; mean and variance of the Luv colours in 7 x 7 blocks, scaled to [0, 1].",
        original_provenance(
            "scene",
            contents,
            "Boutell, Luo, Shen and Brown, Pattern Recognition 37, 2004",
            "Mulan multi-label repository, scene",
        ),
    )


def _read_arff(content):
    """Read an ARFF file of numbers: the attributes' names, none where the header is absent, and the rows (n, d) in float64."""
    lines = [line.strip() for line in content.decode().splitlines()]
    declared = [line.split() for line in lines if line.lower().startswith("@attribute")]
    names = [words[1].strip("'\"") for words in declared if len(words) > 1]
    data = [line for line in lines if line and line[0] not in "@%"]
    if not data:
        raise ValueError("it has no rows")
    return names, np.loadtxt(data, delimiter=",", comments=None, ndmin=2)
