"""Types of data sets, reading of bundled files, and helpers of loaders."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuelearn.expect import expect, expect_among
from cuelearn.kernels.types import KernelSpec

__all__ = ["CueData", "DataFileError", "ImageData", "Provenance"]


class DataFileError(OSError):
    """A data file is missing, damaged, or of an unexpected form.

    Examples
    --------
    >>> from cuelearn.datasets import DataFileError, load_partial_labels
    >>> try:
    ...     load_partial_labels("no.mat")
    ... except DataFileError as error:
    ...     print(error)
    no.mat is missing; no needs it.
    """


class Provenance(NamedTuple):
    """Origin of data.

    `tier` is ``"bundled"`` (real, part of the repository), ``"generated"`` or ``"original"`` (the papers'
    own); `source` is the publication or the call that made it; `word` describes generated data:
    ``"simulated"`` (also if None) or ``"composed"``.

    Examples
    --------
    >>> from cuelearn.datasets import Provenance, load_mfeat
    >>> origin = load_mfeat().provenance
    >>> isinstance(origin, Provenance), origin.tier
    (True, 'bundled')
    """

    name: str
    tier: str
    licence: str
    sha256: str | None
    citation: str
    source: str
    word: str | None = None


class CueData(NamedTuple):
    """Samples described by several cues, each a set of columns of one matrix.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        One row per sample, float32 or float64, depending on the loader.
    y : ndarray of shape (n,) or (n, n_labels)
        Classes 0..M-1 (int64), or a 0/1 matrix (int8) for multi-label data.
    cues : dict of str to slice
        The columns of each cue; together they cover all.
    train, test : ndarray of int or None
        Ascending rows of the published split; None if there is none.
    feature_names, target_names : list of str
        One per column of `X`; one per class or label.
    description : str
        Quantities and units.
    provenance : Provenance
    pixels : ndarray of int or None
        Of images: the pixel, counted row by row, in each column, so that ``images[:, pixels] = X``.

    Examples
    --------
    >>> from cuelearn.datasets import CueData, load_mfeat
    >>> data = load_mfeat()
    >>> isinstance(data, CueData), data.X[:, data.cues["pix"]].shape
    (True, (2000, 240))
    """

    X: np.ndarray
    y: np.ndarray
    cues: dict[str, slice]
    train: np.ndarray | None
    test: np.ndarray | None
    feature_names: list[str]
    target_names: list[str]
    description: str
    provenance: Provenance
    pixels: np.ndarray | None = None

    def triples(
        self, kernel: KernelSpec, cues: Sequence[str] | None = None
    ) -> list[tuple[str, KernelSpec, slice]]:
        """A list of (name, kernel, columns), for the ``kernels=`` argument of estimators.

        `cues` selects and orders cues; all by default; `ValueError` for an unknown one.

        Examples
        --------
        >>> from cuelearn.datasets import make_three_class
        >>> make_three_class().triples("linear", cues=["cue 1", "cue 4"])
        [('cue 1', 'linear', slice(0, 3, None)), ('cue 4', 'linear', slice(9, 12, None))]
        """
        if cues is None:
            cues = self.cues
        return [(cue, kernel, self.cues[cue]) for cue in expect_among("cues", list(cues), self.cues)]

    def __repr__(self):
        columns = range(self.X.shape[1])
        cues = ", ".join(f"{cue} ({len(columns[part])})" for cue, part in self.cues.items())
        name, tier = self.provenance[:2]
        return f"<{name}, {tier}: X {self.X.shape} {self.X.dtype}, cues {cues}>"


class ImageData(NamedTuple):
    """Labelled images, with object masks if available.

    Attributes
    ----------
    images : sequence of ndarray of shape (height, width, 3), uint8
        RGB, of any sizes; an array, or files that are read on access.
    y : ndarray of int64, shape (n,)
        Classes 0..M-1, named by `target_names`.
    frames : dict of str to ndarray of shape (n,)
        Of each image: ``name``, and for instance ``thing`` and ``view`` of an emoji.
    masks : sequence of ndarray of shape (height, width), bool, or None
        True on the object.
    description : str
    provenance : Provenance
    train, test : ndarray of int or None
        Rows of the split, if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets import ImageData
    >>> ImageData(np.zeros((3, 32, 32, 3), dtype=np.uint8), np.array([0, 1, 1]), ["cat", "dog"])
    <images, original: 3 images of 2 classes>
    """

    images: Sequence[np.ndarray] | np.ndarray
    y: np.ndarray
    target_names: list[str]
    frames: dict[str, np.ndarray] = {}
    masks: Sequence[np.ndarray] | np.ndarray | None = None
    description: str = "Images."
    provenance: Provenance = Provenance("images", "original", "none stated", None, "none", "given as arrays")
    train: np.ndarray | None = None
    test: np.ndarray | None = None

    def __repr__(self):
        masks = ", masks"
        if self.masks is None:
            masks = ""
        size = f"{len(self.y)} images of {len(self.target_names)} classes"
        return f"<{self.provenance.name}, {self.provenance.tier}: {size}{masks}>"


def data_folders():
    """Where data files are looked up, the first first: ``CUELEARN_BUNDLED``, the data of the checkout, the
    descriptions in this package, and the files of the distribution ``cuelearn-data``."""
    package = Path(__file__).resolve().parents[1]
    folders = [package / "data"]
    if (package.parent / "pyproject.toml").is_file():
        folders.insert(0, package.parent / "data")
    if os.environ.get("CUELEARN_BUNDLED"):
        folders.insert(0, Path(os.environ["CUELEARN_BUNDLED"]))
    installed = importlib.util.find_spec("cuelearn_data")
    if installed is not None:
        folders.extend(map(Path, installed.submodule_search_locations))
    return folders


def data_file(name):
    """The path of a data file; None if it is nowhere."""
    for folder in data_folders():
        for path in (folder / name, folder / "restricted" / name):
            if path.is_file():
                return path
    return None


def data_directory():
    """The directory of ``datasets.json``."""
    path = data_file("datasets.json")
    if path is None:
        raise DataFileError("The descriptions of the data, datasets.json, are missing: reinstall cuelearn.")
    return path.parent


def data_module(name, directory=""):
    """The program ``data/<directory>/<name>.py`` as a module."""
    module = f"cuelearn_data_{name}"  # one word: numba pickles a module's types by its name
    if module not in sys.modules:
        path = data_directory() / directory / f"{name}.py"
        if not path.is_file():
            raise DataFileError(f"The program {path} is missing.")
        spec = importlib.util.spec_from_file_location(module, path)
        sys.modules[module] = loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
    return sys.modules[module]


def simulator(name):
    return data_module(name, "simulators")


def read_bundled(name):
    """A bundled set: its entry in ``datasets.json``, its arrays (an ``NpzFile``) and its `Provenance`."""
    registry = data_directory() / "datasets.json"
    entry = json.loads(registry.read_text(encoding="utf-8"))[name]
    path = data_file(entry["file"])
    if path is None:
        raise DataFileError(_missing(name, entry))
    expected = entry["sha256"]
    content = path.read_bytes()
    checksum = hashlib.sha256(content).hexdigest()
    if checksum != expected:
        problem = f"is damaged: expected sha256 {expected}, found {checksum}"
        mend = f"Run `python data/build.py {name}` in a checkout, or reinstall cuelearn-data."
        raise DataFileError(f"The data file {path} {problem}. {mend}")
    licence = f"{entry['licence']} ({entry['licence_basis']})"
    origin = Provenance(name, "bundled", licence, expected, entry["citation"], entry["source"])
    return entry, np.load(io.BytesIO(content), allow_pickle=False), origin


def _missing(name, entry):
    """Which file is missing, and how to get it."""
    make = f"`python data/build.py {name}`"
    if "restricted" in entry:
        return (
            f"The data file {entry['file']} is missing. No package has it, because {entry['restricted']}. "
            f"Use a checkout of cuelearn, where it lies in data/restricted/, or make it there by {make}, "
            f"and set CUELEARN_BUNDLED to its folder. Source: {entry['source']}"
        )
    return (
        f'The data file {entry["file"]} is missing. Install it by `pip install "cuelearn[data]"`, '
        f"or make it in a checkout by {make}."
    )


def first_items(archive, array, n):
    """The first `n` items of an array of an ``NpzFile``, without unpacking the rest."""
    with archive.zip.open(f"{array}.npy") as member:
        np.lib.format.read_magic(member)
        shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        shape = (min(n, shape[0]), *shape[1:])
        return np.frombuffer(member.read(dtype.itemsize * math.prod(shape)), dtype=dtype).reshape(shape)


def side_by_side(blocks, dtype):
    """Concatenate named blocks of columns: the matrix, and the slice of each block."""
    X = np.hstack([np.asarray(block, dtype=dtype) for block in blocks.values()])
    slices = {}
    end = 0
    for name, block in blocks.items():
        slices[name] = slice(end, end := end + block.shape[1])
    return X, slices


def check_rows(name, rows, n):
    """Unique ascending row numbers from row numbers or a mask of n rows; at least one."""
    rows = np.asarray(rows)
    if rows.dtype == np.bool_ and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    return np.unique(expect(name, rows, kind="int", shape=("k",), low=0, high=n - 1, hint="or give a mask"))
