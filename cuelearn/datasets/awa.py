"""Original data of chapter 6: Animals with Attributes, as precomputed histograms."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from ._base import CueData, DataFileError, original_provenance, read_content
from .bundled import _side_by_side

__all__ = ["AWA_TEST_CLASSES", "load_awa"]

#: The ten classes that the data set's authors keep for tests, by name.
AWA_TEST_CLASSES = (
    "chimpanzee",
    "giant panda",
    "hippopotamus",
    "humpback whale",
    "leopard",
    "persian cat",
    "pig",
    "raccoon",
    "rat",
    "seal",
)
AWA_FILE = "awa_subset.npz"
_CUES = ("phog", "surf", "rgsift", "lss")
_N_CLASSES = 50


def load_awa(path):
    """Load Animals with Attributes, 3,000 photographs of 50 kinds of animals in four cues (thesis figure 6.3, right).

    100 photographs of each of the ten classes in `AWA_TEST_CLASSES`, 50 of each other class, of the 30,475 published.

    Parameters
    ----------
    path : str or path-like
        Directory with ``awa_subset.npz``: ``phog``, ``surf``, ``rgsift`` and ``lss`` (n, d), of any float type, ``y`` (n,) and
        ``classes`` (50,), names whose words a plus sign or a blank joins.

    Returns
    -------
    CueData
        `X` (3000, 6252), float32: cues ``"phog"`` (252 columns), ``"surf"``, ``"rgsift"`` and ``"lss"`` (2000 each), histograms of sum 1
        up to the rounding of the file's 16 bits; `y` 0..49 in the order of the file's names; no split of the images: the authors
        divide the classes, not the images. The published colour histogram is not among the cues.

    Raises
    ------
    DataFileError
        If the file is missing, damaged, or not of that form.

    References
    ----------
    C. H. Lampert, H. Nickisch and S. Harmeling (2009). Learning to detect unseen object classes by between-class attribute transfer.
    CVPR. Thesis section 6.5.2.
    """
    file = Path(path) / AWA_FILE
    content = read_content(file, "Animals with Attributes")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            cues = {cue: archive[cue] for cue in _CUES}
            y, names = archive["y"], [str(name).replace("+", " ") for name in archive["classes"].tolist()]
    except Exception as error:  # whatever the reader finds wrong
        raise DataFileError(
            f"{file} does not hold Animals with Attributes in the expected form ({error})."
        ) from error
    shapes = {cue: block.shape for cue, block in cues.items()}
    if (
        y.ndim != 1
        or not y.size
        or any(len(shape) != 2 or shape[0] != y.size or not shape[1] for shape in shapes.values())
    ):
        raise DataFileError(
            f"{file} must hold one row per image in each cue and one class per image, got shapes {shapes} and {y.shape}."
        )
    broken = [
        cue
        for cue, block in cues.items()
        if block.dtype.kind != "f" or not np.isfinite(block).all() or (block < 0).any()
    ]
    if broken:
        raise DataFileError(
            f"{file} must hold histograms, finite floats and none negative; {broken[0]} is not."
        )
    if len(set(names)) != _N_CLASSES or not set(AWA_TEST_CLASSES) <= set(names):
        raise DataFileError(
            f"{file} must name {_N_CLASSES} different classes, the ten test classes among them, got {len(set(names))}."
        )
    if y.dtype.kind not in "iu" or not np.array_equal(np.unique(y), np.arange(_N_CLASSES)):
        raise DataFileError(
            f"{file} must give every image a class from 0 to {_N_CLASSES - 1} and every class an image."
        )
    X, columns = _side_by_side(cues, np.float32)
    return CueData(
        X,
        y.astype(np.int64),
        columns,
        None,
        None,
        [f"{cue} {k}" for cue, block in cues.items() for k in range(block.shape[1])],
        names,
        "Photographs of animals as histograms: PHOG (shape), and words of SURF, rgSIFT and local self-similarity.",
        original_provenance(
            "awa",
            [content],
            "Lampert, Nickisch and Harmeling, CVPR 2009",
            "Animals with Attributes, IST Austria: a part of the published histograms, 16 bits each",
        ),
    )
