"""The published layouts of ETH-80, KTH-IDOL2 and Oxford Flowers-17; geometric features of laser scans, after
Mozos, Stachniss and Burgard.
"""

import math
import re

import numpy as np
from scipy.ndimage import minimum_filter1d

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


# --- laser scans --------------------------------------------------------------------------------------------

_CLIPS = (2.5, 5.0, 10.0)
_GAPS = (0.3, 0.5, 1.0, 2.0)
_HARMONICS = (*range(-8, 0), *range(2, 9))
# A minimum is the smallest of this many neighbouring beams, so that one obstacle has one.
_MINIMUM_BEAMS = 11
_FRAMES_PER_BLOCK = 1024
_MAX_RANGE = 20.0  # metres

#: Columns of `laser_features`.
LASER_FEATURE_NAMES = (
    *("beam difference mean", "beam difference std"),
    *(f"beam difference {what}, cut at {clip:g} m" for clip in _CLIPS for what in ("mean", "std")),
    *("beam length mean", "beam length std"),
    *(f"gaps above {gap:g} m" for gap in _GAPS),
    *("distance of the two nearest minima", "angle of the two nearest minima"),
    *("area", "perimeter", "area / perimeter", "centroid distance mean", "centroid distance std"),
    *("normalised centroid distance mean", "normalised centroid distance std"),
    *("circularity", "normalised circularity", "compactness", "eccentricity"),
    *("ellipse major axis", "ellipse minor axis", "ellipse axis ratio"),
    *(f"Fourier coefficient {k}" for k in _HARMONICS),
)


def laser_features(ranges, angles, names=None):
    r"""Geometric features of laser scans (Mozos, Stachniss and Burgard, 2005), float64 (n_frames, 45).

    `ranges`, (n_frames, n_beams), are in metres, clipped to 20; `angles` are the directions of the beams in
    radians, ascending; if they cover the circle, the last beam neighbours the first. The Fourier coefficients
    of the polygon of end points, :math:`c_k = \frac 1 P \int_0^P z(t)\, e^{-2 \pi i k t / P} dt` at arc
    length t, are exact, from its edges; :math:`|c_1| \pm |c_{-1}|` are the semi-axes of the approximating
    ellipse. 0/0 counts as 0.
    """
    ranges = np.asarray(ranges)
    angles = np.asarray(angles, dtype=np.float64)
    shaped = ranges.ndim == 2 and ranges.shape[1] >= 3 and angles.shape == ranges.shape[1:]
    if not shaped or ranges.dtype.kind not in "fiu":
        raise ValueError(
            "ranges must be numbers of shape (n_frames, n_beams) with at least 3 beams, and angles have one "
            f"entry per beam, got shapes {ranges.shape} of {ranges.dtype} and {angles.shape}."
        )
    steps = np.diff(angles)
    span = angles[-1] - angles[0]
    if not (np.isfinite(angles).all() and (steps > 0).all() and span < 2 * math.pi):
        raise ValueError("angles must be finite and ascend within less than a full circle.")
    bad = ~(np.isfinite(ranges) & (ranges >= 0)).all(axis=1) | ~ranges.any(axis=1)
    if bad.any():
        first = int(bad.argmax())
        known = "" if names is None else f" ({names[first]})"
        raise ValueError(
            f"Frame {first}{known} has no usable laser scan: all its {ranges.shape[1]} ranges must be finite "
            f"and not negative and one must be positive; {int(bad.sum())} of {len(bad)} frames are affected."
        )
    # Closed if the gap between the last beam and the first is at most 1.5 times the largest step.
    closed = 2 * math.pi - span <= 1.5 * steps.max()
    features = np.empty((len(ranges), len(LASER_FEATURE_NAMES)))
    for start in range(0, len(ranges), _FRAMES_PER_BLOCK):
        block = slice(start, start + _FRAMES_PER_BLOCK)
        r = np.minimum(ranges[block].astype(np.float64), _MAX_RANGE)
        beams = _beam_features(r, angles, closed)
        features[block] = np.column_stack(beams + _polygon_features(r * np.exp(1j * angles)))
    return features


def _ratio(numerator, denominator):
    """Quotient, 0 where the denominator is 0."""
    out = np.zeros(np.broadcast_shapes(np.shape(numerator), np.shape(denominator)))
    return np.divide(numerator, denominator, out=out, where=denominator != 0)


def _beam_features(r, angles, closed):
    def differences(clip):
        cut = np.minimum(r, clip)
        return np.abs(np.roll(cut, -1, axis=1) - cut if closed else np.diff(cut, axis=1))

    columns = []
    for values in (*(differences(clip) for clip in (np.inf, *_CLIPS)), r):
        columns += [values.mean(axis=1), values.std(axis=1)]
    columns += [(differences(np.inf) > gap).sum(axis=1) for gap in _GAPS]

    size = min(_MINIMUM_BEAMS, r.shape[1])
    lowest = minimum_filter1d(r, size, axis=1, mode="wrap" if closed else "nearest")
    # The first beam of a plateau.
    before = np.roll(r, 1, axis=1)
    if not closed:
        before[:, 0] = np.inf
    minima = np.where((r == lowest) & (r < before), r, np.inf)
    first, second = np.argsort(minima, axis=1, kind="stable")[:, :2].T
    rows = np.arange(len(r))
    valid = np.isfinite(minima[rows, second])
    points = r * np.exp(1j * angles)
    angle = np.abs(angles[first] - angles[second])
    angle = np.minimum(angle, 2 * math.pi - angle)
    distance = np.abs(points[rows, first] - points[rows, second])
    return [*columns, np.where(valid, distance, 0), np.where(valid, angle, 0)]


def _polygon_features(z):
    """Columns of features of the polygons with complex vertices `z`, (n, n_vertices)."""
    following = np.roll(z, -1, axis=1)
    edge = following - z
    length = np.abs(edge)
    perimeter = length.sum(axis=1)

    # Moments of the area by Green's theorem, about the robot, then about the centroid.
    x = z.real
    y = z.imag
    x1 = following.real
    y1 = following.imag
    cross = x * y1 - x1 * y
    signed = cross.sum(axis=1) / 2
    area = np.abs(signed)
    cx, cy = (_ratio(((a + b) * cross).sum(axis=1), 6 * signed) for a, b in ((x, x1), (y, y1)))
    mu20 = np.abs((cross * (x * x + x * x1 + x1 * x1)).sum(axis=1) / 12 - signed * cx * cx)
    mu02 = np.abs((cross * (y * y + y * y1 + y1 * y1)).sum(axis=1) / 12 - signed * cy * cy)
    mu11 = (cross * (x * y1 + 2 * x * y + 2 * x1 * y1 + x1 * y)).sum(axis=1) / 24 - signed * cx * cy

    distance = np.abs(z - (cx + 1j * cy)[:, None])
    relative = _ratio(distance, distance.max(axis=1, keepdims=True))
    moments = mu20 + mu02
    columns = [
        *(area, perimeter, _ratio(area, perimeter)),
        *(part for values in (distance, relative) for part in (values.mean(axis=1), values.std(axis=1))),
        *(_ratio(perimeter**2, area), _ratio(4 * math.pi * area, perimeter**2)),
        *(_ratio(area**2, 2 * math.pi * moments), _ratio(np.hypot(mu20 - mu02, 2 * mu11), moments)),
    ]

    # Integration by parts gives c_k = P / (2 pi k)^2 * sum over edges of u (e_k(end) - e_k(start)) with the
    # edge's direction u, e_k(t) = exp(-2 pi i k t / P) = e_1(t)^k, and e_-k its conjugate.
    direction = np.divide(edge, length, out=np.zeros_like(edge), where=length > 0)
    end = np.cumsum(length, axis=1)
    one = np.exp(-2j * math.pi * _ratio(end, perimeter[:, None]))
    one[:, -1] = 1
    power = np.ones_like(one)
    coefficient = {}
    for k in range(1, max(_HARMONICS) + 1):
        power = power * one
        change = power - np.roll(power, 1, axis=1)
        scale = perimeter / (2 * math.pi * k) ** 2
        coefficient[k] = scale * np.abs((direction * change).sum(axis=1))
        coefficient[-k] = scale * np.abs((direction * change.conj()).sum(axis=1))
    major = coefficient[1] + coefficient[-1]
    minor = np.abs(coefficient[1] - coefficient[-1])
    columns += [major, minor, _ratio(minor, major)]
    return columns + [_ratio(coefficient[k], coefficient[1]) for k in _HARMONICS]
