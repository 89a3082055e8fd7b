"""Real images from labelled folders.

Images are read on access. `DataFileError` names what is missing, empty, unreadable, or not laid out as
described.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuelearn.core.optional import require

from .base import DataFileError, ImageData, Provenance

__all__ = ["load_image_folder", "read_image"]

#: Suffixes of images, in lower case.
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".gif", ".webp")
#: Directories of a split, in the order of the rows.
_PARTS = ("train", "test")


class Layout(NamedTuple):
    """The layout of a set, `folder` in words."""

    name: str
    folder: str
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
        if self.read is read_image:
            return ImageFiles(self.paths, partial(read_image, least=least))
        return self

    def __getitem__(self, i):
        if isinstance(i, slice | np.ndarray):
            return ImageFiles(np.array(self.paths, dtype=object)[i], self.read)
        return self.read(self.paths[i])


def masks_of(files):
    """The masks of images, None if there are no maps."""
    maps = [file.parent / "maps" / f"{file.stem}-map.png" for file in files]
    lacking = [place for place in maps if not place.is_file()]
    if 0 < len(lacking) < len(maps):
        file = files[maps.index(lacking[0])]
        raise DataFileError(f"The image {file} has no mask: {lacking[0]} is missing, other images have one.")
    if lacking:
        return None
    return ImageFiles(maps, read_mask)


def _images_in(directory):
    files = (entry for entry in directory.iterdir() if entry.suffix.lower() in SUFFIXES)
    return sorted(file for file in files if not file.name.startswith(".") and file.is_file())


def subdirectories(path):
    return sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))


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
        masks_of(paths),
        description=f"{len(paths)} images of {len(targets)} classes from the folder {name}.",
        provenance=layout.provenance(),
        train=train,
        test=test,
    )


def _class_directories(layout, path):
    """Directories of the classes, and none; or those in train, and those in test."""
    classes = subdirectories(path)
    if not classes:
        raise layout.refusal(f"The folder {path} holds no directories")
    names = [entry.name for entry in classes]
    parts = [path / part for part in _PARTS if part in names and not _images_in(path / part)]
    if len(parts) == 2 and len(classes) == 2:
        return tuple(map(subdirectories, parts))
    if parts and (len(parts) == 2 or subdirectories(parts[0])):
        raise layout.refusal(f"The folder {path} holds {', '.join(names)}, not train and test alone")
    return classes, []
