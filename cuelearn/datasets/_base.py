"""What a data set is here, and how a bundled file is read and checked."""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["CueData", "DataFileError", "ImageData", "Provenance"]


class DataFileError(OSError):
    """A bundled data file is missing or is not the one that the registry names."""


class Provenance(NamedTuple):
    """Where data comes from, for captions and for the record kept with every figure.

    Attributes
    ----------
    name : str
        Short name, such as ``"pendigits"``.
    tier : {"bundled", "generated", "original"}
        Real data shipped with the project, simulated data, or the papers' own data.
    licence : str
        Licence of the data and who states it.
    sha256 : str or None
        Of the file; None for generated data.
    citation : str
        How to cite the data.
    source : str
        Where it was published; for generated data, the call that made it.
    word : {"simulated", "rendered", "composed"}, optional
        How generated data is called wherever it is shown; simulated by default.
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
        One row per sample, float32 or float64 as the loader says.
    y : ndarray of shape (n,) or (n, n_labels)
        Classes 0..M-1 (int64), or a 0/1 matrix (int8) for multi-label data.
    cues : dict of str to slice
        The columns of `X` that belong to each cue. Together they cover all columns.
    train, test : ndarray of int or None
        Row numbers of the two parts of the published split, ascending; None where none was published.
    feature_names : list of str
        One per column.
    target_names : list of str
        One per class (or label), in the order of `y`.
    description : str
        What was measured, in what unit, and what to know before using it.
    provenance : Provenance
        Origin, tier, licence, checksum and citation.
    pixels : ndarray of int or None
        Only of image data: the pixel, counted row by row, that each column holds, so that ``images[:, pixels] = X``
        restores the images.
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

    def triples(self, kernels, cues=None):
        """Pair kernels with cues, as the ``kernels=`` argument of the estimators takes them.

        Parameters
        ----------
        kernels : kernel or dict of str to kernel
            One kernel for every cue, or several by name.
        cues : list of str, optional
            The cues to use, in this order; all by default.

        Returns
        -------
        list of (name, kernel, columns)
            Cue after cue. The name is the cue's, with ``-<kernel's name>`` appended when several kernels are given.

        Raises
        ------
        ValueError
            If a cue is unknown.

        Examples
        --------
        >>> from cuelearn.datasets import make_three_class
        >>> [name for name, _, _ in make_three_class().triples({"lin": None, "rbf": None}, cues=["cue 1", "cue 4"])]
        ['cue 1-lin', 'cue 1-rbf', 'cue 4-lin', 'cue 4-rbf']
        """
        wanted = list(self.cues) if cues is None else list(cues)
        unknown = [cue for cue in wanted if cue not in self.cues]
        if unknown:
            raise ValueError(f"cues must be among {list(self.cues)}, got {unknown}.")
        if not isinstance(kernels, dict):
            return [(cue, kernels, self.cues[cue]) for cue in wanted]
        return [
            (f"{cue}-{name}", kernel, self.cues[cue]) for cue in wanted for name, kernel in kernels.items()
        ]

    def __repr__(self):
        cues = ", ".join(
            f"{cue} ({len(range(self.X.shape[1])[columns])})" for cue, columns in self.cues.items()
        )
        return (
            f"<{self.provenance.name}, {self.provenance.tier}: X {self.X.shape} {self.X.dtype}, cues {cues}>"
        )


class ImageData(NamedTuple):
    """Labelled images, with the laser scans or the object masks taken along with them.

    Attributes
    ----------
    images : sequence of ndarray of shape (height, width, 3), uint8
        RGB. One array of shape (n, height, width, 3) where simulated; read from the files on demand where loaded from a folder.
    y : ndarray of int64, shape (n,)
        Classes 0..M-1.
    target_names : list of str
        One per class.
    frames : dict of str to ndarray of shape (n,)
        What is known of each image: ``name`` always; of a robot's frames ``sequence``, ``weather``, ``session``, ``repeat``, ``time``
        in seconds, ``x``, ``y`` in metres and ``heading`` in radians; of objects ``object`` (its number within the category),
        ``elevation`` and ``azimuth`` in degrees.
    masks : sequence of ndarray of shape (height, width), bool, or None
        True on the object.
    laser : ndarray of float32, shape (n, n_beams), or None
        Ranges in metres.
    laser_angles : ndarray of float64, shape (n_beams,), or None
        Directions of the beams in radians, counted from the heading, ascending.
    description : str
    provenance : Provenance
    """

    images: object
    y: np.ndarray
    target_names: list[str]
    frames: dict[str, np.ndarray]
    masks: object
    laser: np.ndarray | None
    laser_angles: np.ndarray | None
    description: str
    provenance: Provenance

    def __repr__(self):
        known = [name for name in ("masks", "laser") if getattr(self, name) is not None]
        size = f"{len(self.y)} images of {len(self.target_names)} classes"
        return f"<{self.provenance.name}, {self.provenance.tier}: {', '.join([size, *known])}>"


def data_directory():
    """Return the directory of the bundled data: ``CUELEARN_BUNDLED``, or ``data/`` beside the package.

    Raises
    ------
    DataFileError
        If it holds no ``datasets.json``.
    """
    named = os.environ.get("CUELEARN_BUNDLED")
    directory = Path(named) if named else Path(__file__).resolve().parents[2] / "data"
    if not (directory / "datasets.json").is_file():
        raise DataFileError(
            f"The bundled data was not found: {directory} holds no datasets.json. "
            "Set CUELEARN_BUNDLED to the data/ directory of a checkout of the project."
        )
    return directory


class BundledFile:
    """One bundled file, checked against the registry and ready to be read.

    The sum is taken over the very bytes that are parsed, on every load: it costs 5 to 30 ms for MNIST and less than a
    millisecond for most others, and leaves no gap between check and use.

    Parameters
    ----------
    name : str
        Key of ``datasets.json``.

    Attributes
    ----------
    entry : dict
        The registry's entry.

    Raises
    ------
    DataFileError
        If the file is missing or its sha256 differs; the message names the file, both sums and the mending command.
    """

    def __init__(self, name):
        directory = data_directory()
        self.name = name
        self.entry = json.loads((directory / "datasets.json").read_text(encoding="utf-8"))[name]
        path = directory / self.entry["file"]
        mend = f"Mend it with `python data/build.py {name}`."
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise DataFileError(
                f"The data file {path} is missing (expected sha256 {self.entry['sha256']}, found no file). {mend}"
            ) from None
        found = hashlib.sha256(content).hexdigest()
        if found != self.entry["sha256"]:
            raise DataFileError(
                f"The data file {path} is damaged: expected sha256 {self.entry['sha256']}, found {found}. {mend}"
            )
        self._archive = np.load(io.BytesIO(content), allow_pickle=False)

    def __getitem__(self, array):
        return self._archive[array]

    def first(self, array, n):
        """Return the first `n` items of an array without unpacking what follows."""
        with self._archive.zip.open(f"{array}.npy") as member:
            np.lib.format.read_magic(member)
            shape, _, dtype = np.lib.format.read_array_header_1_0(member)
            n = min(n, shape[0])
            size = n * dtype.itemsize * int(np.prod(shape[1:]))
            return np.frombuffer(member.read(size), dtype=dtype).reshape(n, *shape[1:])

    def provenance(self):
        """Return the registry's account of where the data comes from."""
        entry = self.entry
        return Provenance(
            name=self.name,
            tier="bundled",
            licence=f"{entry['licence']} ({entry['licence_basis']})",
            sha256=entry["sha256"],
            citation=entry["citation"],
            source=entry["source"],
        )


# --- files that the user put in place ----------------------------------------------------------------------------------------


def read_content(file, what):
    """The bytes of a file, or a `DataFileError` that says what needs it."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise DataFileError(f"{file} is missing; {what} needs it.") from None
    except OSError as error:
        raise DataFileError(f"{file} cannot be read ({error}).") from None


def original_provenance(name, contents, citation, source):
    """`Provenance` of one of the papers' own sets, with the sums of its files."""
    sums = " and ".join(hashlib.sha256(content).hexdigest() for content in contents)
    return Provenance(name, "original", "not stated; for research", sums, citation, source)
