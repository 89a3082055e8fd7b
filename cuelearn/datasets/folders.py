"""Real images from folders: any labelled folder, KTH-IDOL2, ETH-80 and Oxford Flowers-17.

Images are read on access. `DataFileError` names what is missing, empty, unreadable, or not laid out as
described.
"""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuelearn.core.optional import require

from .base import DataFileError, ImageData, Provenance

__all__ = ["load_eth80", "load_flowers17", "load_idol2", "load_image_folder", "read_image"]

#: Suffixes of images, in lower case.
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".gif", ".webp")
#: Largest difference in seconds between an image of IDOL2 and its scan.
MAX_DELAY = 0.5

#: Directories of a split, in the order of the rows.
_PARTS = ("train", "test")
#: Of IDOL2, whose codes of the two offices are their owners' initials.
_ROOMS = ("OO", "CR", "TO", "KT", "PA")
_ROOM_OF_CODE = {"BO": "OO", "EO": "TO"}


class Layout(NamedTuple):
    """The layout of a set: `folder` in words, `images` as a pattern of their names."""

    name: str
    folder: str
    images: str = ""
    citation: str = "the folder's owner"
    source: str = ""

    def refusal(self, wrong):
        return DataFileError(f"{wrong}; expected there: {self.folder}.")

    def open(self, path):
        path = Path(path)
        if not path.is_dir():
            raise self.refusal(f"The folder {path} {'is a file' if path.exists() else 'does not exist'}")
        return path

    def images_in(self, directory):
        files = _images_in(directory)
        if not files:
            raise self.refusal(f"The directory {directory} holds no images")
        return files

    def parts_of(self, file):
        named = re.fullmatch(self.images, file.stem)
        if named is None:
            raise self.refusal(f"The image {file} is not named as in {self.name}")
        return named.groups()

    def provenance(self):
        licence = "none stated with the data"
        return Provenance(self.name, "original", licence, None, self.citation, self.source)


def _open_image(path, least=None):
    require("images", "PIL")
    from PIL import Image

    try:
        image = Image.open(path)
        if least is not None:
            image.draft(None, (least, least))
        image.load()
    except Exception as error:  # the kind depends on the format
        raise DataFileError(f"The image {path} cannot be read: {error}") from None
    return image


def read_image(path, least=None):
    """Read an image as RGB bytes: grey becomes three equal channels, transparency is dropped, 16 bits are cut
    to 8.

    A JPEG file is decoded at a half, a quarter or an eighth of its size if that leaves `least` pixels on each
    side, which takes a tenth of the time for a large photograph.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from cuelearn.datasets import read_image
    >>> with TemporaryDirectory() as directory:
    ...     Image.new("L", (4, 3), 90).save(f"{directory}/grey.png")
    ...     found = read_image(f"{directory}/grey.png")
    >>> found.shape, found[0, 0].tolist()
    ((3, 4, 3), [90, 90, 90])
    """
    image = _open_image(path, least)
    if image.mode.startswith("I"):  # 16 bits, which Pillow would clip to 255
        grey = (np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)
        return np.repeat(grey[:, :, None], 3, axis=2)
    return np.array(image.convert("RGB"))


def read_mask(path):
    """The mask of an object, bool, from a map in which it is bright."""
    grey = np.asarray(_open_image(path).convert("L"))
    return grey > grey.max() / 2


class ImageFiles:
    """A sequence of images, read from files at every access; a slice or an array of rows reads nothing."""

    def __init__(self, paths, read=read_image):
        self.paths = list(paths)
        self.read = read

    def __len__(self):
        return len(self.paths)

    def __repr__(self):
        return f"ImageFiles({len(self)} files)"

    def shrunk(self, least):
        """The same images, read by `read_image` with `least`; masks are unchanged."""
        return ImageFiles(self.paths, partial(read_image, least=least)) if self.read is read_image else self

    def __getitem__(self, i):
        if isinstance(i, slice | np.ndarray):
            return ImageFiles(np.array(self.paths, dtype=object)[i], self.read)
        return self.read(self.paths[i])


def _masks(files):
    """The masks of images, None if there are no maps."""
    maps = [file.parent / "maps" / f"{file.stem}-map.png" for file in files]
    lacking = [place for place in maps if not place.is_file()]
    if 0 < len(lacking) < len(maps):
        file = files[maps.index(lacking[0])]
        raise DataFileError(f"The image {file} has no mask: {lacking[0]} is missing, other images have one.")
    return None if lacking else ImageFiles(maps, read_mask)


def _images_in(directory):
    files = (entry for entry in directory.iterdir() if entry.suffix.lower() in SUFFIXES)
    return sorted(file for file in files if not file.name.startswith(".") and file.is_file())


def _subdirectories(path):
    return sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))


# ---- any folder


def load_image_folder(path):
    """Load a folder of images, one directory per class, optionally in train/ and test/.

    The layout is ::

        <folder>/<class>/<image>.png             png, jpg, jpeg, bmp, ppm, pgm, tif, tiff, gif or webp
        <folder>/<class>/maps/<image>-map.png    the object is bright; for all images or for none

    or ``<folder>/train/<class>/...`` and ``<folder>/test/<class>/...``, which give ``train`` and ``test`` of
    the `ImageData` and of `image_cues`, which reads the images. Classes and their images are in alphabetical
    order (an online learner needs ``shuffle=True``); ``frames["name"]`` is ``<class>/<image>.png``, or
    ``train/<class>/<image>.png``.

    Examples
    --------
    >>> from cuelearn.datasets import load_image_folder
    >>> load_image_folder("no/such/folder")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    cuelearn.datasets.base.DataFileError: The folder no/such/folder does not exist; expected there: one...
    """
    name = Path(path).name
    layout = Layout(
        name,
        "one directory per class with its images in it, <folder>/<class>/<image>.png (or another image "
        "format), or such directories in <folder>/train and <folder>/test",
        source=f"the folder {name}",
    )
    path = layout.open(path)
    learnt, tested = _class_directories(layout, path)
    targets = sorted(directory.name for directory in learnt)
    paths = []
    y = []
    n_train = 0
    for directory in [*learnt, *tested]:
        if directory.name not in targets:
            raise layout.refusal(f"The class of {directory} has no directory in {path / 'train'}")
        files = layout.images_in(directory)
        paths += files
        y += len(files) * [targets.index(directory.name)]
        n_train += len(files) * (directory in learnt)
    train = test = None
    if tested:
        train, test = np.split(np.arange(len(y)), [n_train])
    return ImageData(
        ImageFiles(paths),
        np.array(y),
        targets,
        {"name": np.array([file.relative_to(path).as_posix() for file in paths])},
        _masks(paths),
        description=f"{len(paths)} images of {len(targets)} classes from the folder {name}.",
        provenance=layout.provenance(),
        train=train,
        test=test,
    )


def _class_directories(layout, path):
    """Directories of the classes, and none; or those in train, and those in test."""
    classes = _subdirectories(path)
    if not classes:
        raise layout.refusal(f"The folder {path} holds no directories")
    names = [entry.name for entry in classes]
    parts = [path / part for part in _PARTS if part in names and not _images_in(path / part)]
    if len(parts) == 2 and len(classes) == 2:
        return tuple(map(_subdirectories, parts))
    if parts and (len(parts) == 2 or _subdirectories(parts[0])):
        raise layout.refusal(f"The folder {path} holds {', '.join(names)}, not train and test alone")
    return classes, []


# ---- the papers' own


def load_eth80(layout, path):
    """ETH-80 as published; the angles in a name are distance from the zenith and azimuth, in degrees."""
    path = layout.open(path)
    inner = sorted(path.glob("eth80-cropped*"))
    if len(inner) == 1 and inner[0].is_dir():
        path = inner[0]
    objects = []
    for directory in _subdirectories(path):
        named = re.fullmatch(r"([a-z]+)(\d+)", directory.name)
        if named:
            objects.append((named[1], int(named[2]), directory))
    if not objects:
        raise layout.refusal(f"The folder {path} is not ETH-80")
    objects.sort()
    present = sorted({category for category, _, _ in objects})

    paths = []
    rows = []
    seen = []
    for category, _, directory in objects:
        seen.append(category)
        for file in layout.images_in(directory):
            zenith, azimuth = layout.parts_of(file)
            paths.append(file)
            rows.append((present.index(category), seen.count(category), 90.0 - int(zenith), int(azimuth)))
    y, number, elevation, azimuth = np.array(rows).T
    size = f"{len(paths)} views of {len(objects)} objects of {len(present)} categories"
    frames = {"object": number.astype(np.int64), "elevation": elevation, "azimuth": azimuth}
    return ImageData(
        ImageFiles(paths),
        y.astype(np.int64),
        present,
        frames | {"name": np.array([file.stem for file in paths])},
        _masks(paths),
        description=f"ETH-80: {size} before a blue background.",
        provenance=layout.provenance(),
    )


def load_idol2(layout, path):
    """The available image sequences of the robot Dumbo of KTH-IDOL2 (thesis appendix A).

    File names are those of the COLD database of the same group; they could not be checked against IDOL2.
    Rooms are in the order of table 3.1.
    """
    path = layout.open(path)
    paths = []
    rows = []
    scans = []
    for sequence in range(12):
        session = sequence // 6 + 1
        place = sequence % 6 // 2
        repeat = sequence % 2 + 1
        weather = ("cloudy", "sunny", "night")[place]
        directory = path / f"dum_{weather}{2 * session - 2 + repeat}"
        if not directory.is_dir():
            continue
        inner = directory / "png"
        files = layout.images_in(inner if inner.is_dir() else directory)
        frames = sorted((_idol2_frame(layout, file), file) for file in files)
        times = np.array([time for (time, *_), _ in frames])
        for (time, room, *pose), file in frames:
            rows.append((room, sequence, weather, session, repeat, time - times[0], *pose, file.stem))
            paths.append(file)
        scans.append((directory / "scans.tdf", times, paths[-len(files) :]))
    if not rows:
        raise layout.refusal(f"The folder {path} holds no sequence of Dumbo")
    ranges = angles = None
    if any(source.is_file() for source, _, _ in scans):
        ranges = np.concatenate([_idol2_scans(*taken) for taken in scans])
        angles = np.linspace(-math.pi / 2, math.pi / 2, ranges.shape[1])
    y, *columns = (np.array(column) for column in zip(*rows, strict=True))
    names = ("sequence", "weather", "session", "repeat", "time", "x", "y", "heading", "name")
    return ImageData(
        ImageFiles(paths),
        y,
        list(_ROOMS),
        dict(zip(names, columns, strict=True)),
        None,
        ranges,
        angles,
        f"KTH-IDOL2, robot Dumbo: {len(paths)} images of five rooms in {len(scans)} sequences.",
        layout.provenance(),
    )


def _idol2_frame(layout, file):
    time, room, *pose = layout.parts_of(file)
    code = _ROOM_OF_CODE.get(room, room)
    if code not in _ROOMS:
        raise layout.refusal(f"The image {file} names the room {room}; known are BO, CR, EO, KT, OO, PA, TO")
    return float(time), _ROOMS.index(code), *map(float, pose)


def _idol2_scans(source, times, files):
    """Scans nearest in time to the images of one sequence, float32, shape (n_images, n_beams).

    In a line, number 3 is n_beams, 4 and 5 are seconds and microseconds, the last n_beams are ranges.
    """
    if not source.is_file():
        raise DataFileError(f"The image {files[0]} has no laser scan: {source} is missing.")
    lines = source.read_text(encoding="utf-8", errors="replace").splitlines()
    lines = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    try:
        table = np.loadtxt(lines, ndmin=2) if lines else np.empty((0, 5))
        n = int(table[0, 2]) if lines else 0
        if lines and (n < 3 or table.shape[1] < 5 + n or (table[:, 2] != n).any()):
            raise ValueError(f"{n} ranges in {table.shape[1]} numbers")
    except (ValueError, IndexError) as error:
        raise DataFileError(
            f"{source} does not hold scans, lines of two numbers, the number of beams (the same in every "
            f"line), seconds, microseconds, and at the end the ranges ({error})."
        ) from None
    delay = np.abs(np.subtract.outer(times, table[:, 3] + 1e-6 * table[:, 4]))
    late = delay.min(axis=1, initial=np.inf) > MAX_DELAY
    if late.any():
        raise DataFileError(
            f"The image {files[int(late.argmax())]} has no laser scan: none in {source} was taken within "
            f"{MAX_DELAY} s of it ({int(late.sum())} of {len(times)} images of the sequence have none)."
        )
    return table[delay.argmin(axis=1), -n:].astype(np.float32)


def load_flowers17(layout, path, classes):
    """Oxford Flowers-17 as published (thesis appendix A); image i is of class ``(i - 1) // 80``."""
    path = layout.open(path)
    directory = path / "jpg" if (path / "jpg").is_dir() else path
    paths = layout.images_in(directory)
    for file in paths:
        layout.parts_of(file)
    names = [file.stem for file in paths]
    missing = [f"image_{i:04d}" for i in range(1, 1361) if f"image_{i:04d}" not in names]
    if missing:
        lost = directory / f"{missing[0]}.jpg"
        raise layout.refusal(f"The image {lost} is missing ({len(missing)} of 1360 are)")
    if len(paths) > 1360:
        raise layout.refusal(f"The directory {directory} holds {len(paths)} images")
    return ImageData(
        ImageFiles(paths),
        np.repeat(np.arange(17), 80),
        list(classes),
        {"name": np.array(names)},
        description="Oxford Flowers-17: photographs of 17 kinds of flowers, 80 each.",
        provenance=layout.provenance(),
    )
