"""Real images from folders: any labelled folder, KTH-IDOL2, ETH-80 and Oxford Flowers-17.

Every loader returns an `ImageData` of tier ``"original"`` whose images are read from their files when asked
for, so that a data set need not fit in memory; `image_cues` turns it into cues. A folder that is not laid out
as described is a `DataFileError`."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .base import DataFileError, ImageData, Provenance
from .cues import foreground_mask

__all__ = ["ImageFiles", "MaskFiles", "load_eth80", "load_flowers17", "load_idol2", "load_image_folder"]

#: File names that count as images, in lower case.
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".gif", ".webp")

_NUMBER = r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_NO_LICENCE = "none stated with the data"


class _Layout(NamedTuple):
    """A published set: its name, the layout of its folder and its images (for messages), its origin."""

    name: str
    folder: str
    image_name: re.Pattern | None = None
    image: str = ""
    citation: str = ""
    source: str = ""


_FOLDER = _Layout(
    "a folder of classes",
    "one directory per class with the class's images in it, <folder>/<class>/<image>.png (or another image "
    "format), "
    "optionally masks <class>/maps/<image>-map.png and scans <class>/<image>.scan",
)
_ETH80 = _Layout(
    "ETH-80",
    "one directory per object, named by its category and number, with the object's views and masks, such as "
    "apple1/apple1-000-000.png and apple1/maps/apple1-000-000-map.png",
    re.compile(r"([a-z]+\d+)-(\d{3})-(\d{3})"),
    "{directory}-<zenith>-<azimuth>.png",
    "Leibe, B. and Schiele, B. (2003). Analyzing appearance and contour based methods for object "
    "categorization. CVPR.",
    "ETH-80 image database, eth80-cropped-close128",
)
_IDOL2 = _Layout(
    "KTH-IDOL2",
    "one directory per sequence, such as dum_cloudy1, with the images in its subdirectory png, named "
    "t<seconds>_r<room>_x<metres>_y<metres>_a<radians>.png, and the laser scans in its file scans.tdf",
    re.compile(rf"t{_NUMBER}_r([A-Z]+)_x{_NUMBER}_y{_NUMBER}_a{_NUMBER}"),
    "t<seconds>_r<room>_x<metres>_y<metres>_a<radians>.png",
    "Luo, J., Pronobis, A., Caputo, B. and Jensfelt, P. (2006). The KTH-IDOL2 database. KTH technical report "
    "CVAP304.",
    "KTH-IDOL2 image database, sequences of the robot {robot}",
)
_FLOWERS17 = _Layout(
    "Flowers-17",
    "the images image_0001.jpg to image_1360.jpg, in the directory jpg or directly in the folder",
    re.compile(r"image_(\d{4})"),
    "image_0001.jpg to image_1360.jpg",
    "Nilsback, M.-E. and Zisserman, A. (2006). A visual vocabulary for flower classification. CVPR.",
    "17 Category Flower Dataset, Visual Geometry Group, University of Oxford, 17flowers.tgz",
)
_ETH80_CATEGORIES = ("apple", "car", "cow", "cup", "dog", "horse", "pear", "tomato")
#: In the order of the files, 80 images each.
_FLOWERS17_CLASSES = (
    *(
        "Daffodil",
        "Snowdrop",
        "Lily Valley",
        "Bluebell",
        "Crocus",
        "Iris",
        "Tigerlily",
        "Tulip",
        "Fritillary",
    ),
    *("Sunflower", "Daisy", "Colts' Foot", "Dandelion", "Cowslip", "Buttercup", "Windflower", "Pansy"),
)
_ROOMS = ("OO", "CR", "TO", "KT", "PA")
# The database's own codes of the two offices are their owners' initials.
_ROOM_OF_CODE = {**{room: room for room in _ROOMS}, "BO": "OO", "EO": "TO"}


# ------------------------------------------------------------------------------------------------------ files


def _open_image(path):
    """Read an image file with Pillow, all of it; every failure names the file."""
    from PIL import Image

    if not path.is_file():
        raise DataFileError(f"The image {path} is missing.")
    if path.stat().st_size == 0:
        raise DataFileError(f"The image {path} is empty (0 bytes).")
    try:
        image = Image.open(path)
        image.load()
    except Exception as error:  # of several kinds, depending on the format
        raise DataFileError(f"The image {path} cannot be read: {error}") from None
    return image


class ImageFiles:
    """A read-only sequence of images, read from their files anew at every access.

    Parameters
    ----------
    paths : sequence of path-like
        Files of any format that Pillow reads, of any sizes. Grey images become RGB with three equal channels,
        transparency is dropped, 16 bits per channel are cut to 8.

    Raises
    ------
    DataFileError
        On access, if the file is missing, empty or unreadable; the message names it.

    Notes
    -----
    ``images[i]`` is an array of shape (height, width, 3) of uint8; a slice is another `ImageFiles` and reads
    nothing.
    """

    def __init__(self, paths):
        self.paths = [None if path is None else Path(path) for path in paths]

    def __len__(self):
        return len(self.paths)

    def __repr__(self):
        return f"{type(self).__name__}({len(self)} files)"

    def __getitem__(self, i):
        if isinstance(i, slice):
            return ImageFiles(self.paths[i])
        image = _open_image(self.paths[i])
        if image.mode.startswith("I"):  # 16 bits, which Pillow would clip to 255 instead of scaling
            grey = (np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)
            return np.repeat(grey[:, :, None], 3, axis=2)
        return np.array(image.convert("RGB"))


class MaskFiles(ImageFiles):
    """Object masks, bool arrays of shape (height, width), read from their files when asked for.

    Parameters
    ----------
    paths : sequence of path-like or None
        Image files that are bright on the object: above half of their largest grey value counts as object.
        Where an entry is None, the mask is segmented from the image by `foreground_mask`.
    images : sequence of ndarray, optional
        The images, for entries that are None.

    Raises
    ------
    DataFileError
        On access, if the file is missing, empty or unreadable; the message names it.
    """

    def __init__(self, paths, images=None):
        super().__init__(paths)
        self.images = images

    def __getitem__(self, i):
        if isinstance(i, slice):
            return MaskFiles(self.paths[i], None if self.images is None else self.images[i])
        if self.paths[i] is None:
            return foreground_mask(self.images[i])
        grey = np.asarray(_open_image(self.paths[i]).convert("L"))
        return grey > grey.max() / 2


def _directory(path, layout):
    """The folder, which must be there."""
    path = Path(path)
    if not path.is_dir():
        raise DataFileError(f"The folder {path} does not exist; expected there: {layout.folder}.")
    return path


def _subdirectories(path):
    return sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def _images_in(directory, root, layout):
    """Image files directly in a directory, by name; there must be some."""
    found = sorted(
        entry
        for entry in directory.iterdir()
        if entry.suffix.lower() in SUFFIXES and not entry.name.startswith(".") and entry.is_file()
    )
    if not found:
        raise DataFileError(
            f"The directory {directory} holds no images; expected in {root}: {layout.folder}."
        )
    return found


def _fields(file, layout):
    """What an image's name says, as its layout has it."""
    named = layout.image_name.fullmatch(file.stem)
    if named is None:
        wanted = layout.image.format(directory=file.parent.name)
        raise DataFileError(f"The image {file} is not named as in {layout.name}, {wanted}.")
    return named.groups()


def _image_map(file):
    return file.parent / "maps" / f"{file.stem}-map.png"


def _image_data(paths, y, classes, frames, description, provenance, masks=None, laser=None, angles=None):
    y = np.asarray(y, dtype=np.int64)
    return ImageData(
        ImageFiles(paths), y, list(classes), frames, masks, laser, angles, description, provenance
    )


def _published(layout, **words):
    source = layout.source.format(**words)
    return Provenance(layout.name, "original", _NO_LICENCE, None, layout.citation, source)


# ------------------------------------------------------------------------------------------------- any folder


def load_image_folder(path):
    """Load a folder of images, one directory per class.

    The layout is ::

        <folder>/<class>/<image>.png             png, jpg, jpeg, bmp, ppm, pgm, tif, tiff, gif or webp
        <folder>/<class>/maps/<image>-map.png    optional: the object is bright
        <folder>/<class>/<image>.scan            optional: a laser scan taken with the image

    Classes, and the images of each, come in alphabetical order. Masks and scans are for all images or for
    none. A scan is a text file with two numbers per line, a beam's direction in radians (from the heading,
    ascending) and its range in metres; all scans have the same directions.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    ImageData
        Images as `ImageFiles`; ``frames["name"]`` is ``<class>/<image>.png``; tier ``"original"``.

    Raises
    ------
    DataFileError
        If the folder does not have this layout, with its name and the layout; if some images have a mask or a
        scan and others have none, with the first image that has none and the file that was expected; on
        access of an image that is missing, empty or unreadable, with its name.

    Examples
    --------
    >>> load_image_folder("no/such/folder")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    cuelearn.datasets.base.DataFileError: The folder no/such/folder does not exist; expected there: one...
    """
    path = _directory(path, _FOLDER)
    classes = _subdirectories(path)
    if not classes:
        raise DataFileError(f"The folder {path} holds no directories; expected there: {_FOLDER.folder}.")
    files = [_images_in(directory, path, _FOLDER) for directory in classes]
    paths = [file for found in files for file in found]
    masks = _companions(paths, "mask", [_image_map(file) for file in paths])
    scans = _companions(paths, "laser scan", [file.with_suffix(".scan") for file in paths])
    laser, angles = _read_scans(scans) if scans else (None, None)
    known = [what for what, there in (("mask", masks), ("laser scan", scans)) if there]
    said = f", with a {' and a '.join(known)} each." if known else "."
    return _image_data(
        paths,
        np.repeat(np.arange(len(classes)), [len(found) for found in files]),
        [directory.name for directory in classes],
        {"name": np.array([f"{file.parent.name}/{file.name}" for file in paths])},
        f"{len(paths)} images of {len(classes)} classes from the folder {path.name}{said}",
        Provenance(path.name, "original", _NO_LICENCE, None, "the folder's owner", f"the folder {path.name}"),
        MaskFiles(masks) if masks else None,
        laser,
        angles,
    )


def _companions(paths, what, expected):
    """The files that go with the images, which all have one or none has: then an empty list."""
    there = [file.is_file() for file in expected]
    if any(there) and not all(there):
        i = there.index(False)
        raise DataFileError(
            f"The image {paths[i]} has no {what}: {expected[i]} is missing, though other images have theirs."
        )
    return expected if any(there) else []


def _read_scans(files):
    """Read scan files of two columns: ranges (n, n_beams) float32 and the directions that all share."""
    scans = []
    for file in files:
        try:
            scan = np.loadtxt(file, ndmin=2)
        except ValueError:
            scan = np.empty((0, 0))
        if scan.shape[1:] != (2,):
            raise DataFileError(
                f"The laser scan {file} must hold two numbers per line, a direction and a range, and does "
                "not."
            )
        if scans and not np.array_equal(scan[:, 0], scans[0][:, 0]):
            raise DataFileError(
                f"The laser scan {file} has other directions than {files[0]}; all scans must have the same."
            )
        scans.append(scan)
    return np.array([scan[:, 1] for scan in scans], dtype=np.float32), scans[0][:, 0].copy()


# ----------------------------------------------------------------------------------------------------- ETH-80


def load_eth80(path):
    """Load ETH-80 as published: 80 objects of eight categories, 41 views each.

    The layout is that of the published ``eth80-cropped-close128`` (128 x 128 pixels) and
    ``eth80-cropped256``, one directory per object, ::

        apple1/apple1-000-000.png
        apple1/maps/apple1-000-000-map.png

    where the two angles are the view's distance from the zenith and its azimuth, in degrees: 000-000 is the
    view from above and 090-xxx are views from the side. The cars published bear the numbers 1, 2, 3, 5, 6, 7,
    9, 11, 12 and 14. Where a map is missing, the mask is segmented by `foreground_mask`.

    Parameters
    ----------
    path : path-like
        The directory that holds the objects' directories, or that holds ``eth80-cropped-close128``.

    Returns
    -------
    ImageData
        By category, object and view. ``frames``: ``object`` counts the objects of a category from 1 in the
        order of their numbers; ``elevation`` (90 minus the first angle) and ``azimuth`` in degrees; ``name``,
        such as ``car14-090-045``.

    Raises
    ------
    DataFileError
        If the folder does not have this layout, with its name and the layout; on access of an image that is
        missing, empty or unreadable, with its name.

    References
    ----------
    B. Leibe and B. Schiele (2003). Analyzing appearance and contour based methods for object categorization.
    CVPR.
    """
    path = _directory(path, _ETH80)
    inner = sorted(path.glob("eth80-cropped*"))
    if len(inner) == 1 and inner[0].is_dir():
        path = inner[0]
    objects = []
    for directory in _subdirectories(path):
        named = re.fullmatch(r"([a-z]+)(\d+)", directory.name)
        if named and named[1] not in _ETH80_CATEGORIES:
            raise DataFileError(
                f"The directory {directory} is not named by one of ETH-80's categories, "
                f"{', '.join(_ETH80_CATEGORIES)}; expected in {path}: {_ETH80.folder}."
            )
        if named:
            objects.append((named[1], int(named[2]), directory))
    if not objects:
        raise DataFileError(f"The folder {path} is not ETH-80; expected there: {_ETH80.folder}.")
    objects.sort()
    present = sorted({category for category, _, _ in objects})

    paths, rows = [], []
    for category, number, directory in objects:
        rank = 1 + sum(other == category and below < number for other, below, _ in objects)
        for file in _images_in(directory, path, _ETH80):
            named, zenith, azimuth = _fields(file, _ETH80)
            if named != directory.name:
                wanted = _ETH80.image.format(directory=directory.name)
                raise DataFileError(f"The image {file} is not named as in ETH-80, {wanted}.")
            paths.append(file)
            rows.append((present.index(category), rank, 90 - int(zenith), int(azimuth)))
    y, rank, elevation, azimuth = np.array(rows).T
    maps = [_image_map(file) if _image_map(file).is_file() else None for file in paths]
    segmented = maps.count(None)
    how = f"; {segmented} masks segmented for want of a map file." if segmented else ", with masks."
    return _image_data(
        paths,
        y,
        present,
        {
            "object": rank,
            "elevation": elevation.astype(np.float64),
            "azimuth": azimuth.astype(np.float64),
            "name": np.array([file.stem for file in paths]),
        },
        f"ETH-80: {len(paths)} views of {len(objects)} objects of {len(present)} categories before a blue "
        f"background{how}",
        _published(_ETH80),
        MaskFiles(maps, ImageFiles(paths)),
    )


# ------------------------------------------------------------------------------------------------------ IDOL2


def load_idol2(path, robot="dumbo", laser=True, max_delay=0.5):
    """Load the image sequences of one robot of KTH-IDOL2.

    The layout is ::

        dum_cloudy1/png/t1152902094.641331_rPA_x1.02_y-0.35_a1.5708.png
        dum_cloudy1/scans.tdf

    with one directory per sequence: ``dum_`` or ``min_`` for the robots Dumbo and Minnie, the weather
    (cloudy, sunny, night), and a number; 1 and 2 were taken in a first session, 3 and 4 in a second one
    months later. An image's name carries the time in seconds, the room, and the robot's position in metres
    and heading in radians. Rooms: BO one-person office, CR corridor, EO two-person office, KT kitchen, PA
    printer area; OO and TO are understood too.

    The directories and the order of the fields are those of the published archives; the spelling of the
    fields and the scan file are those of the COLD database, recorded by the same group, and could not be
    checked against IDOL2 itself. A line of ``scans.tdf`` (it may also lie in ``odom_scans/``) is a scan: of
    its numbers the third is the number n of beams, the fourth and fifth are the time in seconds and
    microseconds, and the last n are the ranges in metres, from -90 degrees (right) to 90 degrees. Lines that
    begin with # are passed over. An image gets the scan nearest in time.

    Parameters
    ----------
    path : path-like
        The directory that holds the sequences' directories.
    robot : {"dumbo", "minnie"}, default="dumbo"
        The thesis uses Dumbo's 12 sequences.
    laser : bool, default=True
        Read the scans; False loads images only.
    max_delay : float, default=0.5
        An image has no scan if the nearest one was taken more than this many seconds before or after it.

    Returns
    -------
    ImageData
        By sequence (those of the first session, cloudy 1 and 2, sunny 1 and 2, night 1 and 2, and then those
        of the second) and time, with the rooms in the order of table 3.1. ``frames``: ``sequence`` 0 to 11,
        ``weather``, ``session``, ``repeat`` (1 or 2), ``time`` since the sequence's first image, ``x``,
        ``y``, ``heading``, ``name``, as `make_robot` has them. Sequences that are not there are left out.

    Raises
    ------
    ValueError
        If `robot` is unknown or `max_delay` is negative.
    DataFileError
        If the folder does not have this layout, with its name and the layout; if an image is not named as
        described, with its name; if an image has no scan, with its name and the file where it was expected;
        on access of an image that is missing, empty or unreadable, with its name.

    References
    ----------
    J. Luo, A. Pronobis, B. Caputo and P. Jensfelt (2006). The KTH-IDOL2 database. KTH technical report
    CVAP304. Thesis appendix A.
    """
    if robot not in ("dumbo", "minnie"):
        raise ValueError(f"robot must be one of ['dumbo', 'minnie'], got {robot!r}.")
    if not max_delay >= 0:
        raise ValueError(f"max_delay must be a number of seconds, not negative, got {max_delay!r}.")
    path = _directory(path, _IDOL2)
    paths, rows, scans = [], [], []
    for sequence in range(12):
        session, place, repeat = sequence // 6 + 1, sequence % 6 // 2, sequence % 2 + 1
        weather = ("cloudy", "sunny", "night")[place]
        directory = path / f"{robot[:3]}_{weather}{2 * session - 2 + repeat}"
        if not directory.is_dir():
            continue
        inner = directory / "png"
        found = _images_in(inner if inner.is_dir() else directory, path, _IDOL2)
        frames = sorted((_idol2_frame(file), file) for file in found)
        times = np.array([time for (time, *_), _ in frames])
        if laser:
            scans.append(_idol2_scans(directory, times, [file for _, file in frames], max_delay))
        for (time, room, *pose), file in frames:
            rows.append((room, sequence, weather, session, repeat, time - times[0], *pose, file.stem))
            paths.append(file)
    if not rows:
        raise DataFileError(
            f"The folder {path} holds no sequence of {robot}; expected there: {_IDOL2.folder}."
        )
    if len({scan.shape[1] for scan in scans}) > 1:
        raise DataFileError(f"The sequences in {path} have scans of different numbers of beams.")
    room, *columns = (np.array(column) for column in zip(*rows, strict=True))
    names = ("sequence", "weather", "session", "repeat", "time", "x", "y", "heading", "name")
    there, name = len(np.unique(columns[0])), robot.capitalize()
    how = ", each with the laser scan nearest in time." if laser else "."
    ranges = np.concatenate(scans) if laser else None
    return _image_data(
        paths,
        [_ROOMS.index(code) for code in room],
        _ROOMS,
        dict(zip(names, columns, strict=True)),
        f"KTH-IDOL2, robot {name}: {len(paths)} images of five rooms in {there} sequences{how}",
        _published(_IDOL2, robot=name),
        None,
        ranges,
        np.linspace(-math.pi / 2, math.pi / 2, ranges.shape[1]) if laser else None,
    )


def _idol2_frame(file):
    """Time, room, x, y and heading from the name of an image."""
    time, room, *pose = _fields(file, _IDOL2)
    if room not in _ROOM_OF_CODE:
        raise DataFileError(
            f"The image {file} names the room {room}; known are {', '.join(sorted(_ROOM_OF_CODE))}."
        )
    return float(time), _ROOM_OF_CODE[room], *map(float, pose)


def _idol2_scans(directory, times, files, max_delay):
    """Scans nearest in time to the images of one sequence, float32, shape (n_images, n_beams)."""
    places = [directory / "scans.tdf", directory / "odom_scans" / "scans.tdf"]
    source = next((place for place in places if place.is_file()), None)
    if source is None:
        raise DataFileError(
            f"The image {files[0]} has no laser scan: {places[0]} is missing (laser=False loads images only)."
        )
    stamps, scans = [], []
    for number, line in enumerate(source.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        try:
            n, seconds, microseconds = (int(field) for field in fields[2:5])
            if n < 3 or len(fields) < 5 + n or (scans and n != len(scans[0])):
                raise ValueError
            scans.append(np.array(fields[-n:], dtype=np.float32))
        except ValueError:
            raise DataFileError(
                f"Line {number} of {source} is no scan: expected two numbers, the number of beams (the same "
                "in every "
                "line), seconds, microseconds, and at the end the ranges."
            ) from None
        stamps.append(seconds + 1e-6 * microseconds)
    delay = np.full(len(times), np.inf)
    if stamps:
        order = np.argsort(stamps, kind="stable")
        stamps = np.array(stamps)[order]
        after = np.searchsorted(stamps, times).clip(0, len(stamps) - 1)
        before = np.maximum(after - 1, 0)
        nearest = np.where(np.abs(stamps[before] - times) <= np.abs(stamps[after] - times), before, after)
        delay = np.abs(stamps[nearest] - times)
    late = delay > max_delay
    if late.any():
        raise DataFileError(
            f"The image {files[int(late.argmax())]} has no laser scan: none in {source} was taken within "
            f"{max_delay:g} s of it ({int(late.sum())} of {len(times)} images of the sequence have none)."
        )
    return np.array(scans)[order[nearest]]


# ------------------------------------------------------------------------------------------------- Flowers-17


def load_flowers17(path):
    """Load Oxford Flowers-17 as published: 17 kinds of flowers, 80 photographs of each.

    The layout is that of the published ``17flowers.tgz``, ::

        jpg/image_0001.jpg ... jpg/image_1360.jpg

    where image i is of class ``(i - 1) // 80``. The classes, in the order of the files, are Daffodil,
    Snowdrop, Lily Valley, Bluebell, Crocus, Iris, Tigerlily, Tulip, Fritillary, Sunflower, Daisy, Colts'
    Foot, Dandelion, Cowslip, Buttercup, Windflower and Pansy. Images may have any size; copies scaled down
    will do.

    Parameters
    ----------
    path : path-like
        The directory that holds ``jpg``, or the images themselves.

    Returns
    -------
    ImageData
        By number; images as `ImageFiles`, no masks; ``frames["name"]`` is ``image_0001`` and so on; tier
        ``"original"``.

    Raises
    ------
    DataFileError
        If the folder does not have this layout, with its name and the layout; if an image is missing, or is
        not numbered from 1 to 1360, or two have one number, with its name; on access of an image that is
        empty or unreadable, with its name.

    References
    ----------
    M.-E. Nilsback and A. Zisserman (2006). A visual vocabulary for flower classification. CVPR. Thesis
    appendix A.
    """
    path = _directory(path, _FLOWERS17)
    directory = path / "jpg" if (path / "jpg").is_dir() else path
    files = {}
    for file in _images_in(directory, path, _FLOWERS17):
        number = int(_fields(file, _FLOWERS17)[0])
        if not 1 <= number <= 1360:
            raise DataFileError(f"The image {file} is not named as in Flowers-17, {_FLOWERS17.image}.")
        if number in files:
            raise DataFileError(
                f"The image {file} has the number of {files[number]}; expected in {path}: "
                f"{_FLOWERS17.folder}."
            )
        files[number] = file
    missing = [i for i in range(1, 1361) if i not in files]
    if missing:
        raise DataFileError(
            f"The image {directory / f'image_{missing[0]:04d}.jpg'} is missing ({len(missing)} of 1360 are); "
            f"expected in {path}: {_FLOWERS17.folder}."
        )
    paths = [files[i] for i in range(1, 1361)]
    return _image_data(
        paths,
        np.repeat(np.arange(17), 80),
        _FLOWERS17_CLASSES,
        {"name": np.array([file.stem for file in paths])},
        "Oxford Flowers-17: photographs of 17 kinds of flowers, 80 each.",
        _published(_FLOWERS17),
    )
