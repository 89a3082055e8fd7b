"""Real images from folders: any labelled folder, KTH-IDOL2, ETH-80 and Oxford Flowers-17.

Every loader returns an `ImageData` of tier ``"original"`` whose images are read from their files when asked for, so that a
data set need not fit in memory; `image_cues` turns it into cues. Nothing here downloads: `load_original` looks under the
directory that the environment variable ``CUELEARN_DATA`` names.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import numpy as np

from ._base import DataFileError, ImageData, Provenance
from .awa import AWA_FILE, load_awa
from .cues import foreground_mask
from .multilabel import SCENE_FILES, load_corel5k, load_scene
from .partial import USPS_FORMS, load_lost, load_msrcv2, load_usps

__all__ = [
    "ImageFiles",
    "MaskFiles",
    "load_eth80",
    "load_flowers17",
    "load_idol2",
    "load_image_folder",
    "load_original",
]

#: File names that count as images, in lower case.
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".gif", ".webp")

FOLDER_LAYOUT = (
    "one directory per class with the class's images in it, <folder>/<class>/<image>.png (or another image format), optionally "
    "masks <class>/maps/<image>-map.png and scans <class>/<image>.scan"
)
ETH80_LAYOUT = (
    "one directory per object, named by its category and number, with the object's views and masks, such as "
    "apple1/apple1-000-000.png and apple1/maps/apple1-000-000-map.png"
)
IDOL2_LAYOUT = (
    "one directory per sequence, such as dum_cloudy1, with the images in its subdirectory png, named "
    "t<seconds>_r<room>_x<metres>_y<metres>_a<radians>.png, and the laser scans in its file scans.tdf"
)
FLOWERS17_LAYOUT = (
    "the images image_0001.jpg to image_1360.jpg, in the directory jpg or directly in the folder"
)

_ETH80_CATEGORIES = ("apple", "car", "cow", "cup", "dog", "horse", "pear", "tomato")

#: In the order of the files, 80 images each.
_FLOWERS17_CLASSES = (
    "Daffodil",
    "Snowdrop",
    "Lily Valley",
    "Bluebell",
    "Crocus",
    "Iris",
    "Tigerlily",
    "Tulip",
    "Fritillary",
    "Sunflower",
    "Daisy",
    "Colts' Foot",
    "Dandelion",
    "Cowslip",
    "Buttercup",
    "Windflower",
    "Pansy",
)
_FLOWERS17_PER_CLASS = 80

_ROOMS = ("OO", "CR", "TO", "KT", "PA")
# The database's own codes of the two offices are their owners' initials.
_ROOM_OF_CODE = {**{room: room for room in _ROOMS}, "BO": "OO", "EO": "TO"}
_ROBOTS = {"dumbo": "dum", "minnie": "min"}
_WEATHERS = ("cloudy", "sunny", "night")
_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_IDOL2_NAME = re.compile(
    rf"t(?P<t>{_NUMBER})_r(?P<room>[A-Z]+)_x(?P<x>{_NUMBER})_y(?P<y>{_NUMBER})_a(?P<a>{_NUMBER})"
)
_FLOWERS17_NAME = re.compile(r"image_(?P<number>\d{4})")
_ETH80_NAME = re.compile(r"(?P<object>[a-z]+\d+)-(?P<polar>\d{3})-(?P<azimuth>\d{3})")


def _open_image(path):
    """Read an image file with Pillow, all of it; every failure names the file."""
    from PIL import Image

    path = Path(path)
    try:
        if path.stat().st_size == 0:
            raise DataFileError(f"The image {path} is empty (0 bytes).")
        image = Image.open(path)
        image.load()
    except DataFileError:
        raise
    except FileNotFoundError:
        raise DataFileError(f"The image {path} is missing.") from None
    # Pillow reports damage by several kinds of error, depending on the format.
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise DataFileError(f"The image {path} cannot be read: {error}") from None
    return image


class _Files:
    """A read-only sequence of what files hold, read anew at every access."""

    def __init__(self, paths):
        self.paths = [Path(path) for path in paths]

    def __len__(self):
        return len(self.paths)

    def __repr__(self):
        return f"{type(self).__name__}({len(self)} files)"


class ImageFiles(_Files):
    """Images read from their files when asked for.

    Parameters
    ----------
    paths : sequence of path-like
        Files of any format that Pillow reads. Grey images become RGB with three equal channels, transparency is dropped, 16
        bits per channel are cut to 8.

    Raises
    ------
    DataFileError
        On access, if the file is missing, empty or unreadable; the message names it.

    Notes
    -----
    ``images[i]`` reads image i, a new array of shape (height, width, 3) of uint8; a slice gives another `ImageFiles` and
    reads nothing. Images may differ in size. Nothing is kept in memory.
    """

    def __getitem__(self, i):
        if isinstance(i, slice):
            return ImageFiles(self.paths[i])
        image = _open_image(self.paths[i])
        if image.mode.startswith("I"):  # 16 bits, which Pillow would clip to 255 instead of scaling
            grey = (np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)
            return np.repeat(grey[:, :, None], 3, axis=2)
        return np.array(image.convert("RGB"))


class MaskFiles(_Files):
    """Object masks read from their files when asked for.

    Parameters
    ----------
    paths : sequence of path-like or None
        Image files that are bright on the object: above half of their largest grey value counts as object. Where an entry is
        None, the mask is segmented from the image by `foreground_mask`.
    images : sequence of ndarray, optional
        The images, for entries that are None.

    Raises
    ------
    DataFileError
        On access, if the file is missing, empty or unreadable; the message names it.
    """

    def __init__(self, paths, images=None):
        self.paths = [None if path is None else Path(path) for path in paths]
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
        raise DataFileError(f"The folder {path} does not exist; expected there: {layout}.")
    return path


def _subdirectories(path):
    return sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def _images_in(directory):
    """Image files directly in a directory, by name."""
    return sorted(
        entry
        for entry in directory.iterdir()
        if entry.suffix.lower() in SUFFIXES and not entry.name.startswith(".") and entry.is_file()
    )


def _original(name, citation, source, licence="none stated with the data"):
    return Provenance(
        name=name, tier="original", licence=licence, sha256=None, citation=citation, source=source
    )


def load_image_folder(path):
    """Load a folder of images, one directory per class.

    The layout is ::

        <folder>/<class>/<image>.png             png, jpg, jpeg, bmp, ppm, pgm, tif, tiff, gif or webp, upper or lower case
        <folder>/<class>/maps/<image>-map.png    optional: the object is bright
        <folder>/<class>/<image>.scan            optional: a laser scan taken with the image

    Classes, and the images of each, come in alphabetical order. Masks and scans are for all images or for none. A scan is a
    text file with two numbers per line, a beam's direction in radians (from the heading, ascending) and its range in metres;
    all scans have the same directions.

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
        If the folder does not have this layout, with its name and the layout; if some images have a mask or a scan and
        others have none, with the first image that has none and the file that was expected; on access of an image that is
        missing, empty or unreadable, with its name.

    Examples
    --------
    >>> load_image_folder("no/such/folder")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    cuelearn.datasets._base.DataFileError: The folder no/such/folder does not exist; expected there: one directory per class...
    """
    path = _directory(path, FOLDER_LAYOUT)
    classes = _subdirectories(path)
    files = [_images_in(directory) for directory in classes]
    if not classes:
        raise DataFileError(f"The folder {path} holds no directories; expected there: {FOLDER_LAYOUT}.")
    for directory, found in zip(classes, files, strict=False):
        if not found:
            raise DataFileError(
                f"The folder {directory} holds no images; expected in {path}: {FOLDER_LAYOUT}."
            )
    y = np.repeat(np.arange(len(classes)), [len(found) for found in files])
    paths = [file for found in files for file in found]

    companions = {
        "mask": [file.parent / "maps" / f"{file.stem}-map.png" for file in paths],
        "laser scan": [file.with_suffix(".scan") for file in paths],
    }
    for what, expected in companions.items():
        there = [file.is_file() for file in expected]
        if any(there) and not all(there):
            i = there.index(False)
            raise DataFileError(
                f"The image {paths[i]} has no {what}: {expected[i]} is missing, though other images have theirs."
            )
        if not any(there):
            companions[what] = None
    laser = laser_angles = None
    if companions["laser scan"]:
        laser, laser_angles = _read_scans(companions["laser scan"])
    known = [what for what in companions if companions[what]]
    return ImageData(
        images=ImageFiles(paths),
        y=y,
        target_names=[directory.name for directory in classes],
        frames={"name": np.array([f"{file.parent.name}/{file.name}" for file in paths])},
        masks=MaskFiles(companions["mask"]) if companions["mask"] else None,
        laser=laser,
        laser_angles=laser_angles,
        description=(
            f"{len(paths)} images of {len(classes)} classes from the folder {path.name}"
            + (f", with a {' and a '.join(known)} each." if known else ".")
        ),
        provenance=_original(path.name, "the folder's owner", f"the folder {path.name}"),
    )


def _read_scans(files):
    """Read scan files of two columns: ranges (n, n_beams) float32 and the directions that all of them share."""
    scans = []
    for file in files:
        try:
            scan = np.loadtxt(file, ndmin=2)
        except ValueError:
            scan = np.empty((0, 0))
        if scan.shape[1:] != (2,):
            raise DataFileError(
                f"The laser scan {file} must hold two numbers per line, a direction and a range, and does not."
            )
        if scans and not np.array_equal(scan[:, 0], scans[0][:, 0]):
            raise DataFileError(
                f"The laser scan {file} has other directions than {files[0]}; all scans must have the same."
            )
        scans.append(scan)
    return np.array([scan[:, 1] for scan in scans], dtype=np.float32), scans[0][:, 0].copy()


def load_eth80(path):
    """Load ETH-80 as published: 80 objects of eight categories, 41 views each.

    The layout is that of the published ``eth80-cropped-close128`` (128 x 128 pixels) and ``eth80-cropped256``, one directory
    per object, ::

        apple1/apple1-000-000.png
        apple1/maps/apple1-000-000-map.png

    where the two angles are the view's distance from the zenith and its azimuth, in degrees: 000-000 is the view from above
    and 090-xxx are views from the side. The cars published bear the numbers 1, 2, 3, 5, 6, 7, 9, 11, 12 and 14. Where a map
    is missing, the mask is segmented by `foreground_mask`.

    Parameters
    ----------
    path : path-like
        The directory that holds the objects' directories, or that holds ``eth80-cropped-close128``.

    Returns
    -------
    ImageData
        By category, object and view. ``frames``: ``object`` counts the objects of a category from 1 in the order of their
        numbers; ``elevation`` (90 minus the first angle) and ``azimuth`` in degrees; ``name``, such as ``car14-090-045``.

    Raises
    ------
    DataFileError
        If the folder does not have this layout, with its name and the layout; on access of an image that is missing, empty or
        unreadable, with its name.

    References
    ----------
    B. Leibe and B. Schiele (2003). Analyzing appearance and contour based methods for object categorization. CVPR.
    """
    path = _directory(path, ETH80_LAYOUT)
    inner = sorted(path.glob("eth80-cropped*"))
    if len(inner) == 1 and inner[0].is_dir():
        path = inner[0]
    objects = []
    for directory in _subdirectories(path):
        named = re.fullmatch(r"([a-z]+)(\d+)", directory.name)
        if named and named[1] in _ETH80_CATEGORIES:
            objects.append((_ETH80_CATEGORIES.index(named[1]), int(named[2]), directory))
        elif named:
            raise DataFileError(
                f"The directory {directory} is not named by one of ETH-80's categories, {', '.join(_ETH80_CATEGORIES)}; "
                f"expected in {path}: {ETH80_LAYOUT}."
            )
    if not objects:
        raise DataFileError(f"The folder {path} is not ETH-80; expected there: {ETH80_LAYOUT}.")
    objects.sort()
    present = sorted({category for category, _, _ in objects})

    paths, rows = [], []
    for category, number, directory in objects:
        rank = 1 + sum(other == category and below < number for other, below, _ in objects)
        found = _images_in(directory)
        if not found:
            raise DataFileError(
                f"The directory {directory} holds no images; expected in {path}: {ETH80_LAYOUT}."
            )
        for file in found:
            view = _ETH80_NAME.fullmatch(file.stem)
            if view is None or view["object"] != directory.name:
                raise DataFileError(
                    f"The image {file} is not named as in ETH-80, {directory.name}-<zenith>-<azimuth>.png."
                )
            paths.append(file)
            rows.append((present.index(category), rank, 90.0 - int(view["polar"]), float(view["azimuth"])))
    y, rank, elevation, azimuth = (np.array(column) for column in zip(*rows, strict=False))
    maps = [file.parent / "maps" / f"{file.stem}-map.png" for file in paths]
    maps = [file if file.is_file() else None for file in maps]
    images = ImageFiles(paths)
    missing = maps.count(None)
    return ImageData(
        images=images,
        y=y.astype(np.int64),
        target_names=[_ETH80_CATEGORIES[category] for category in present],
        frames={
            "object": rank.astype(np.int64),
            "elevation": elevation.astype(np.float64),
            "azimuth": azimuth.astype(np.float64),
            "name": np.array([file.stem for file in paths]),
        },
        masks=MaskFiles(maps, images),
        laser=None,
        laser_angles=None,
        description=(
            f"ETH-80: {len(paths)} views of {len(objects)} objects of {len(present)} categories before a blue background"
            + (f"; {missing} masks segmented for want of a map file." if missing else ", with masks.")
        ),
        provenance=_original(
            "ETH-80",
            "Leibe, B. and Schiele, B. (2003). Analyzing appearance and contour based methods for object categorization. CVPR.",
            "ETH-80 image database, eth80-cropped-close128",
        ),
    )


def load_idol2(path, robot="dumbo", laser=True, max_delay=0.5):
    """Load the image sequences of one robot of KTH-IDOL2.

    The layout is ::

        dum_cloudy1/png/t1152902094.641331_rPA_x1.02_y-0.35_a1.5708.png
        dum_cloudy1/scans.tdf

    with one directory per sequence: ``dum_`` or ``min_`` for the robots Dumbo and Minnie, the weather (cloudy, sunny, night),
    and a number; 1 and 2 were taken in a first session, 3 and 4 in a second one months later. An image's name carries the time
    in seconds, the room, and the robot's position in metres and heading in radians. Rooms: BO one-person office, CR corridor,
    EO two-person office, KT kitchen, PA printer area; OO and TO are understood too.

    The directories and the order of the fields are those of the published archives. The spelling of the fields and the scan
    file are those of the COLD database, recorded by the same group with the same software; they could not be checked against
    IDOL2 itself. An own copy that differs is brought into this form by renaming. A line of ``scans.tdf`` (it may also lie in
    ``odom_scans/``) is a scan: of its numbers the third is the number n of beams, the fourth and fifth are the time in seconds
    and microseconds, and the last n are the ranges in metres, from -90 degrees (right) to 90 degrees. Lines that begin with #
    are passed over. An image gets the scan nearest in time.

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
        By sequence (those of the first session, cloudy 1 and 2, sunny 1 and 2, night 1 and 2, and then those of the second) and
        time, with the rooms in the order of table 3.1. ``frames``: ``sequence`` 0 to 11, ``weather``, ``session``, ``repeat``
        (1 or 2), ``time`` since the sequence's first image, ``x``, ``y``, ``heading``, ``name``, as `make_robot` has them.
        Sequences that are not there are left out.

    Raises
    ------
    ValueError
        If `robot` is unknown or `max_delay` is negative.
    DataFileError
        If the folder does not have this layout, with its name and the layout; if an image is not named as described, with its
        name; if an image has no scan, with its name and the file where it was expected; on access of an image that is
        missing, empty or unreadable, with its name.

    References
    ----------
    A. Pronobis, O. Martinez Mozos, B. Caputo and P. Jensfelt (2010). Multi-modal semantic place classification. International
    Journal of Robotics Research 29. Thesis appendix A. J. Luo, A. Pronobis, B. Caputo and P. Jensfelt (2006). The KTH-IDOL2
    database. KTH technical report CVAP304.
    """
    if robot not in _ROBOTS:
        raise ValueError(f"robot must be one of {list(_ROBOTS)}, got {robot!r}.")
    if not max_delay >= 0:
        raise ValueError(f"max_delay must be a number of seconds, not negative, got {max_delay!r}.")
    path = _directory(path, IDOL2_LAYOUT)
    sequences = [
        (weather, 2 * session - 2 + repeat)
        for session in (1, 2)
        for weather in _WEATHERS
        for repeat in (1, 2)
    ]
    paths, rows, scans = [], [], []
    for number, (weather, k) in enumerate(sequences):
        directory = path / f"{_ROBOTS[robot]}_{weather}{k}"
        if not directory.is_dir():
            continue
        found = _images_in(directory / "png") if (directory / "png").is_dir() else _images_in(directory)
        if not found:
            raise DataFileError(
                f"The directory {directory} holds no images; expected in {path}: {IDOL2_LAYOUT}."
            )
        frames = sorted((_idol2_frame(file), file) for file in found)
        times = np.array([frame[0] for frame, _ in frames])
        if laser:
            scans.append(_idol2_scans(directory, times, [file for _, file in frames], max_delay))
        for (t, room, x, y, heading), file in frames:
            rows.append(
                (
                    number,
                    weather,
                    1 if k <= 2 else 2,
                    (k - 1) % 2 + 1,
                    t - times[0],
                    x,
                    y,
                    heading,
                    file.stem,
                    room,
                )
            )
            paths.append(file)
    if not rows:
        raise DataFileError(
            f"The folder {path} holds no sequence of {robot}; expected there: {IDOL2_LAYOUT}."
        )
    if len({scan.shape[1] for scan in scans}) > 1:
        raise DataFileError(f"The sequences in {path} have scans of different numbers of beams.")
    columns = ("sequence", "weather", "session", "repeat", "time", "x", "y", "heading", "name", "room")
    frames = {name: np.array(column) for name, column in zip(columns, zip(*rows, strict=False), strict=False)}
    room = frames.pop("room")
    n_beams = scans[0].shape[1] if laser else 0
    return ImageData(
        images=ImageFiles(paths),
        y=np.array([_ROOMS.index(code) for code in room], dtype=np.int64),
        target_names=list(_ROOMS),
        frames=frames,
        masks=None,
        laser=np.concatenate(scans) if laser else None,
        laser_angles=np.linspace(-math.pi / 2, math.pi / 2, n_beams) if laser else None,
        description=(
            f"KTH-IDOL2, robot {robot.capitalize()}: {len(paths)} images of five rooms in {len(set(frames['sequence'].tolist()))} "
            "sequences" + (", each with the laser scan nearest in time." if laser else ".")
        ),
        provenance=_original(
            "KTH-IDOL2",
            "Luo, J., Pronobis, A., Caputo, B. and Jensfelt, P. (2006). The KTH-IDOL2 database. KTH technical report CVAP304.",
            f"KTH-IDOL2 image database, sequences of the robot {robot.capitalize()}",
        ),
    )


def _idol2_frame(file):
    """Time, room, x, y and heading from the name of an image."""
    named = _IDOL2_NAME.fullmatch(file.stem)
    if named is None:
        raise DataFileError(
            f"The image {file} is not named as in KTH-IDOL2, t<seconds>_r<room>_x<metres>_y<metres>_a<radians>{file.suffix}."
        )
    if named["room"] not in _ROOM_OF_CODE:
        raise DataFileError(
            f"The image {file} names the room {named['room']}; known are {', '.join(sorted(_ROOM_OF_CODE))}."
        )
    return (
        float(named["t"]),
        _ROOM_OF_CODE[named["room"]],
        float(named["x"]),
        float(named["y"]),
        float(named["a"]),
    )


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
                f"Line {number} of {source} is no scan: expected two numbers, the number of beams (the same in every line), "
                "seconds, microseconds, and at the end the ranges."
            ) from None
        stamps.append(seconds + 1e-6 * microseconds)
    order = np.argsort(stamps, kind="stable")
    stamps = np.array(stamps, dtype=np.float64)[order]
    if len(stamps):
        after = np.searchsorted(stamps, times).clip(0, len(stamps) - 1)
        before = np.maximum(after - 1, 0)
        nearest = np.where(np.abs(stamps[before] - times) <= np.abs(stamps[after] - times), before, after)
        delay = np.abs(stamps[nearest] - times)
    else:
        delay = np.full(len(times), np.inf)
    if (delay > max_delay).any():
        i = int((delay > max_delay).argmax())
        raise DataFileError(
            f"The image {files[i]} has no laser scan: none in {source} was taken within {max_delay:g} s of it "
            f"({int((delay > max_delay).sum())} of {len(times)} images of the sequence have none)."
        )
    return np.array(scans)[order[nearest]]


def load_flowers17(path):
    """Load Oxford Flowers-17 as published: 17 kinds of flowers, 80 photographs of each.

    The layout is that of the published ``17flowers.tgz``, ::

        jpg/image_0001.jpg ... jpg/image_1360.jpg

    where image i is of class ``(i - 1) // 80``. The classes, in the order of the files, are Daffodil, Snowdrop, Lily Valley,
    Bluebell, Crocus, Iris, Tigerlily, Tulip, Fritillary, Sunflower, Daisy, Colts' Foot, Dandelion, Cowslip, Buttercup,
    Windflower and Pansy. Images may have any size; copies scaled down will do.

    Parameters
    ----------
    path : path-like
        The directory that holds ``jpg``, or the images themselves.

    Returns
    -------
    ImageData
        By number; images as `ImageFiles`, no masks; ``frames["name"]`` is ``image_0001`` and so on; tier ``"original"``.

    Raises
    ------
    DataFileError
        If the folder does not have this layout, with its name and the layout; if an image is missing, or is not numbered from
        1 to 1360, or two have one number, with its name; on access of an image that is empty or unreadable, with its name.

    References
    ----------
    M.-E. Nilsback and A. Zisserman (2006). A visual vocabulary for flower classification. CVPR. Thesis appendix A.
    """
    path = _directory(path, FLOWERS17_LAYOUT)
    directory = path / "jpg" if (path / "jpg").is_dir() else path
    n = len(_FLOWERS17_CLASSES) * _FLOWERS17_PER_CLASS
    found = _images_in(directory)
    if not found:
        raise DataFileError(
            f"The folder {directory} holds no images; expected in {path}: {FLOWERS17_LAYOUT}."
        )
    files = {}
    for file in found:
        named = _FLOWERS17_NAME.fullmatch(file.stem)
        if named is None or not 1 <= int(named["number"]) <= n:
            raise DataFileError(
                f"The image {file} is not named as in Flowers-17, image_0001.jpg to image_{n:04d}.jpg."
            )
        other = files.setdefault(int(named["number"]), file)
        if other is not file:
            raise DataFileError(
                f"The image {file} has the number of {other}; expected in {path}: {FLOWERS17_LAYOUT}."
            )
    missing = [i for i in range(1, n + 1) if i not in files]
    if missing:
        raise DataFileError(
            f"The image {directory / f'image_{missing[0]:04d}.jpg'} is missing ({len(missing)} of {n} are); expected in {path}: "
            f"{FLOWERS17_LAYOUT}."
        )
    paths = [files[i] for i in range(1, n + 1)]
    return ImageData(
        images=ImageFiles(paths),
        y=np.repeat(np.arange(len(_FLOWERS17_CLASSES)), _FLOWERS17_PER_CLASS),
        target_names=list(_FLOWERS17_CLASSES),
        frames={"name": np.array([file.stem for file in paths])},
        masks=None,
        laser=None,
        laser_angles=None,
        description=f"Oxford Flowers-17: photographs of {len(_FLOWERS17_CLASSES)} kinds of flowers, {_FLOWERS17_PER_CLASS} each.",
        provenance=_original(
            "Flowers-17",
            "Nilsback, M.-E. and Zisserman, A. (2006). A visual vocabulary for flower classification. CVPR.",
            "17 Category Flower Dataset, Visual Geometry Group, University of Oxford, 17flowers.tgz",
        ),
    )


#: The papers' own data sets that `load_original` knows, and what reads each.
_ORIGINALS = {
    "awa": load_awa,
    "corel5k": load_corel5k,
    "eth80": load_eth80,
    "flowers17": load_flowers17,
    "idol2": load_idol2,
    "lost": load_lost,
    "msrcv2": load_msrcv2,
    "scene": load_scene,
    "usps": load_usps,
}
#: Sets that may lie in the directory itself, and the files by any of which they are known.
_FILES = {
    "awa": (AWA_FILE,),
    "corel5k": ("corel5k.mat",),
    "lost": ("lost.mat",),
    "msrcv2": ("MSRCv2.mat",),
    "scene": SCENE_FILES[:1],
    "usps": tuple(form[0] for form in USPS_FORMS),
}


def load_original(name, **options):
    """Load one of the papers' own data sets from the directory ``CUELEARN_DATA``.

    Parameters
    ----------
    name : {"awa", "corel5k", "eth80", "flowers17", "idol2", "lost", "msrcv2", "scene", "usps"}
        It is looked for in the directory of that name below the one that the environment variable ``CUELEARN_DATA`` names; the files
        of AwA, Corel5k, Lost, MSRCv2, scene and USPS may lie in the latter itself.
    **options
        Handed to the loader, `load_awa`, `load_corel5k`, `load_eth80`, `load_flowers17`, `load_idol2`, `load_lost`, `load_msrcv2`,
        `load_scene` or `load_usps`, which say what layout they expect.

    Returns
    -------
    ImageData, CueData or PartialData
        Tier ``"original"``.

    Raises
    ------
    ValueError
        If the name is unknown.
    DataFileError
        If ``CUELEARN_DATA`` is not set or holds no such directory, or by the loader.
    """
    if name not in _ORIGINALS:
        raise ValueError(f"name must be one of {sorted(_ORIGINALS)}, got {name!r}.")
    place = os.environ.get("CUELEARN_DATA")
    if not place:
        raise DataFileError(
            f"The original data {name!r} was not looked for: set CUELEARN_DATA to the directory that holds the directory {name}."
        )
    path = Path(place) / name
    if not path.is_dir() and any((Path(place) / file).is_file() for file in _FILES.get(name, ())):
        path = Path(place)
    if not path.is_dir():
        raise DataFileError(
            f"The original data {name!r} was not found: CUELEARN_DATA is {place}, and {path} does not exist."
        )
    return _ORIGINALS[name](path, **options)
