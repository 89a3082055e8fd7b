"""The published layouts of ETH-80, KTH-IDOL2 and Oxford Flowers-17."""

import re

import numpy as np

from cuelearn.datasets import DataFileError, ImageData
from cuelearn.datasets.images import ImageFiles, masks_of, subdirectories

#: Largest difference in seconds between an image of IDOL2 and its scan.
MAX_DELAY = 0.5
#: Of IDOL2, whose codes of the two offices are their owners' initials.
_ROOMS = ("OO", "CR", "TO", "KT", "PA")
_ROOM_OF_CODE = {"BO": "OO", "EO": "TO"}


def _parts_of(layout, pattern, file):
    """What is in the name of an image."""
    named = re.fullmatch(pattern, file.stem)
    if named is None:
        raise layout.refusal(f"The image {file} is not named as in {layout.name}")
    return named.groups()


def load_eth80(layout, path, pattern):
    """ETH-80 as published; the angles in a name are distance from the zenith and azimuth, in degrees."""
    path = layout.open(path)
    inner = sorted(path.glob("eth80-cropped*"))
    if len(inner) == 1 and inner[0].is_dir():
        path = inner[0]
    objects = []
    for directory in subdirectories(path):
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
            zenith, azimuth = _parts_of(layout, pattern, file)
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
        masks_of(paths),
        description=f"ETH-80: {size} before a blue background.",
        provenance=layout.provenance(),
    )


def load_idol2(layout, path, pattern):
    """The available image sequences of the robot Dumbo of KTH-IDOL2 (thesis appendix A).

    Of each image ``frames`` has time in seconds, place in metres, heading in radians, and, if there are
    scans, ``laser``: ranges in metres, from -90 to 90 degrees. File names are those of the COLD database of
    the same group; they could not be checked against IDOL2. Rooms are in the order of table 3.1.
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
        frames = sorted((_idol2_frame(layout, pattern, file), file) for file in files)
        times = np.array([time for (time, *_), _ in frames])
        for (time, room, *pose), file in frames:
            rows.append((room, sequence, weather, session, repeat, time - times[0], *pose, file.stem))
            paths.append(file)
        scans.append((directory / "scans.tdf", times, paths[-len(files) :]))
    if not rows:
        raise layout.refusal(f"The folder {path} holds no sequence of Dumbo")
    y, *columns = (np.array(column) for column in zip(*rows, strict=True))
    names = ("sequence", "weather", "session", "repeat", "time", "x", "y", "heading", "name")
    frames = dict(zip(names, columns, strict=True))
    if any(source.is_file() for source, _, _ in scans):
        frames["laser"] = np.concatenate([_idol2_scans(*taken) for taken in scans])
    return ImageData(
        ImageFiles(paths),
        y,
        list(_ROOMS),
        frames,
        description=f"KTH-IDOL2, robot Dumbo: {len(paths)} images of five rooms in {len(scans)} sequences.",
        provenance=layout.provenance(),
    )


def _idol2_frame(layout, pattern, file):
    time, room, *pose = _parts_of(layout, pattern, file)
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


def load_flowers17(layout, path, pattern, classes):
    """Oxford Flowers-17 as published (thesis appendix A); image i is of class ``(i - 1) // 80``."""
    path = layout.open(path)
    directory = path / "jpg" if (path / "jpg").is_dir() else path
    paths = layout.images_in(directory)
    for file in paths:
        _parts_of(layout, pattern, file)
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
