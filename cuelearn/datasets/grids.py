"""Descriptors over the cells of a picture, and sets of them: the 39 cues of emoji, the 15 kinds of INRIA.

A histogram is taken in each cell of 1 x 1, 3 x 1 (bands), 2 x 2 or 4 x 4 equal cells and divided by the
number of pixels (patches, corners) of the whole picture, so that a cue has sum 1 whatever its cells. Lengths
grow with the picture: `_unit` pixels, of which the shorter side has 32. Only ``moments``, and ``shape`` of
`descriptors`, look at the mask."""

from __future__ import annotations

import itertools
import math
from functools import cache, lru_cache, partial

import numpy as np

from cuelearn.core.optional import require

from .descriptors import (
    RESPONSE_RANGE,
    Cue,
    LocalDescriptors,
    check_mask,
    dense_patches,
    direction_sectors,
    field_bins,
    grey_levels,
    hsv_bins,
    large_patches,
    rgb_bins,
    scaled,
)

__all__ = ["EMOJI_CUES", "GRID_CUES", "KIND_CUES", "VALUES"]

_HSV_BINS = (8, 3, 3)
_LAB_BINS = 8  # per channel; lightness from 0 to 100, colours from -_LAB_RANGE to _LAB_RANGE
_LAB_RANGE = 110.0
_LBP_PATTERNS = 59  # of eight neighbours: 58 uniform ones, told apart, and all others
_DERIVATIVE_BINS, _SECTORS = 8, 36
_PHOG_SECTORS = 12  # of half a turn; signed: twice as many
_HOG_CELLS, _HOG_ORIENTATIONS = 8, 8
_GIST_SIDE, _GIST_CELLS, _GIST_ORIENTATIONS = 32, 4, 6
_GIST_WAVELENGTHS = (4.0, 4.0 * math.sqrt(2.0), 8.0)  # of a picture of 32 pixels
_PIXELS = 8  # per side
_HUES = 36
_RADII, _ANGLES = (2, 3, 4, 5), 12  # of self-similarity, in units
_NOISE = 0.02**2  # mean squared difference of grey values that counts as none
_MAX_CORNERS = 50
_CORNER_THRESHOLD = 0.01  # of the picture's strongest
_CORNER_NOISE = 1e-12  # far below the answer to a contrast of one grey level, far above that of rounding


def _unit(picture):
    """Length in pixels with which cells and filters grow."""
    return max(1, min(picture.image.shape[:2]) // 32)


# ---------------------------------------------------------------- pixels


def _lab_bins(picture):
    from skimage.color import rgb2lab

    low = np.array([0.0, -_LAB_RANGE, -_LAB_RANGE])
    level = (rgb2lab(picture.image) - low) * (_LAB_BINS / np.array([100.0, 2 * _LAB_RANGE, 2 * _LAB_RANGE]))
    lightness, a, b = np.moveaxis(np.clip(level, 0, _LAB_BINS - 1).astype(np.int32), 2, 0)
    return [(lightness * _LAB_BINS + a) * _LAB_BINS + b], _LAB_BINS**3


def _lbp_bins(picture):
    """Local binary patterns (Ojala, Pietikainen and Maenpaa, 2002): of eight neighbours, one unit away."""
    from skimage.feature import local_binary_pattern

    radius = _unit(picture)
    levels = np.rint(picture.grey * 255).astype(np.uint8)
    framed = np.pad(levels, radius + 1, mode="edge")
    patterns = local_binary_pattern(framed, 8, radius, method="nri_uniform").astype(np.int32)
    return [patterns[radius + 1 : -radius - 1, radius + 1 : -radius - 1]], _LBP_PATTERNS


def _derivative_bins(picture):
    x, y = (
        np.clip((response / RESPONSE_RANGE + 1) * (_DERIVATIVE_BINS / 2), 0, _DERIVATIVE_BINS - 1)
        for response in picture.derivatives(_unit(picture) / 2)
    )
    return [x.astype(np.int32) * _DERIVATIVE_BINS + y.astype(np.int32)], _DERIVATIVE_BINS**2


def _direction_bins(picture):
    return field_bins(picture, "DirC", (_unit(picture) / 2,), _SECTORS)


def _cell_of(rows, columns, shape, cells):
    """Number of the cell, row by row, in which each pixel lies."""
    return (rows * cells[0] // shape[0]) * cells[1] + columns * cells[1] // shape[1]


def _in_cells(bins, cells, picture):
    """Histogram of each cell, one after the other; each pixel counts alike."""
    (index,), n_bins = picture.once(bins)
    rows, columns = np.ogrid[: index.shape[0], : index.shape[1]]
    place = _cell_of(rows, columns, index.shape, cells) * n_bins + index
    counts = np.bincount(place.ravel(), minlength=cells[0] * cells[1] * n_bins)
    return (counts / index.size).astype(np.float32)


def _phog(level, signed, picture):
    """Orientations of edges by contrast in 2^level x 2^level cells (Bosch, Zisserman and Munoz, 2007)."""
    n = 2**level
    sectors = 2 * _PHOG_SECTORS
    x, y = picture.derivatives(_unit(picture) / 2)
    sector, contrast = direction_sectors(x, y, sectors), np.hypot(x, y)
    edge = sector < sectors
    kept = sectors if signed else _PHOG_SECTORS  # unsigned: opposite directions count as one
    rows, columns = np.nonzero(edge)
    place = _cell_of(rows, columns, x.shape, (n, n)) * kept + sector[edge] % kept
    total = np.bincount(place, contrast[edge], minlength=n * n * kept)
    return (total / max(total.sum(), 1e-12)).astype(np.float32)


# ---------------------------------------------------------------- the whole picture


def _hog(picture):
    """Oriented gradients (Dalal and Triggs, 2005): 8 x 8 cells, blocks of 2 x 2."""
    from skimage.feature import hog

    size = tuple(side // _HOG_CELLS for side in picture.grey.shape)
    return hog(picture.grey, _HOG_ORIENTATIONS, size, (2, 2)).astype(np.float32)


@lru_cache(maxsize=4)
def _gabor_bank(shape):
    """Spectra of Gabor filters that answer 0 to a flat picture, and the margin."""
    from skimage.filters import gabor_kernel

    filters = []
    for wavelength in _GIST_WAVELENGTHS:
        for k in range(_GIST_ORIENTATIONS):
            values = gabor_kernel(1 / wavelength, theta=math.pi * k / _GIST_ORIENTATIONS)
            envelope = np.abs(values)
            filters.append(values - envelope * (values.sum() / envelope.sum()))
    margin = max(max(values.shape) for values in filters) // 2
    bank = np.zeros((len(filters), shape[0] + 2 * margin, shape[1] + 2 * margin), dtype=np.complex128)
    for spectrum, values in zip(bank, filters, strict=True):
        height, width = values.shape
        spectrum[:height, :width] = values
        spectrum[...] = np.fft.fft2(np.roll(spectrum, (-(height // 2), -(width // 2)), axis=(0, 1)))
    return bank.astype(np.complex64), margin


def _gist(picture):
    """Mean magnitude of each Gabor filter in each of 4 x 4 cells (Oliva and Torralba, 2001)."""
    from scipy.fft import fft2, ifft2

    factor = _GIST_SIDE / min(picture.image.shape[:2])
    grey = grey_levels(scaled(picture.image, factor)) if factor < 1 else picture.grey
    bank, margin = _gabor_bank(grey.shape)
    spectrum = fft2(np.pad(grey, margin, mode="symmetric"))
    inner = tuple(slice(margin, margin + side) for side in grey.shape)
    return _pooled(np.abs(ifft2(bank * spectrum))[:, *inner], _GIST_CELLS)


def _pooled(values, n):
    """Means over n x n cells of the last two axes, flat."""
    for axis in (-2, -1):
        edges = np.arange(n) * values.shape[axis] // n
        sizes = np.diff([*edges, values.shape[axis]])
        sums = np.add.reduceat(values, edges, axis=axis)
        values = sums / (sizes[:, None] if axis == -2 else sizes)
    return values.ravel().astype(np.float32)


def _pixels(picture):
    return _pooled(np.moveaxis(picture.image, 2, 0) / np.float32(255), _PIXELS)


def _moments(picture):
    """Central moments of the silhouette, free of its size, up to order 4, and Hu's seven invariants (1962).

    Of each the root that makes it grow like a length, times 1 or -1.
    """
    from skimage.measure import moments_central, moments_hu, moments_normalized

    mask = check_mask(picture.mask, picture.image.shape[:2]).astype(float)
    central = moments_normalized(moments_central(mask, order=4), order=4)
    orders = [(p, q) for p in range(5) for q in range(5) if 2 <= p + q <= 4]
    values = np.array([central[order] for order in orders] + [*moments_hu(central)])
    degrees = np.array([p + q for p, q in orders] + [2, 4, 6, 6, 12, 8, 12])
    return (np.sign(values) * np.abs(values) ** (1 / degrees)).astype(np.float32)


# ---------------------------------------------------------------- local descriptors


def _hue_patches(picture, step):
    """Hue, counted by chroma, in the same patches (after van de Weijer and Schmid, 2006)."""
    red, green, blue = (picture.image[..., c].astype(np.float32) / 255 for c in range(3))
    first, second = (red - green) / math.sqrt(2.0), (red + green - 2 * blue) / math.sqrt(6.0)
    chroma = np.hypot(first, second)
    turns = np.arctan2(first, second) * (_HUES / (2 * math.pi))
    hue = np.floor(turns + 0.5).astype(np.int32) % _HUES
    height, width = (side // step for side in chroma.shape)
    rows, columns = np.ogrid[: height * step, : width * step]
    place = ((rows // step) * width + columns // step) * _HUES + hue[: height * step, : width * step]
    weights = chroma[: height * step, : width * step].ravel()
    cells = np.bincount(place.ravel(), weights, minlength=height * width * _HUES)
    cells = cells.reshape(height, width, _HUES) / (step * step)
    windows = np.lib.stride_tricks.sliding_window_view(cells, (4, 4), axis=(0, 1))
    histograms = windows.mean(axis=(3, 4)).reshape(-1, _HUES).astype(np.float32)
    return histograms, *picture.once(dense_patches, step)[1:]


def _self_similarity(picture, step):
    """How like its surroundings each patch is, at 12 angles and 4 distances (Shechtman and Irani, 2007)."""
    from scipy.ndimage import uniform_filter

    unit, grey = _unit(picture), picture.grey
    _, rows, columns, shape = picture.once(dense_patches, step)
    margin = max(_RADII) * unit
    wide = np.pad(grey, margin, mode="edge")
    others = np.empty((len(_RADII) * _ANGLES, *shape), dtype=np.float32)
    for k, (radius, a) in enumerate(itertools.product(_RADII, range(_ANGLES))):
        angle = 2 * math.pi * a / _ANGLES
        dy, dx = round(radius * unit * math.sin(angle)), round(radius * unit * math.cos(angle))
        others[k] = wide[margin + dy : margin + dy + shape[0], margin + dx : margin + dx + shape[1]]
    patch = (1, 2 * unit + 1, 2 * unit + 1)
    apart = uniform_filter((grey - others) ** 2, patch, mode="nearest")
    distances = np.ascontiguousarray(apart[:, rows, columns].T)
    # what differs among nearest neighbours is texture, no dissimilarity
    scale = np.maximum(distances[:, :_ANGLES].mean(axis=1, keepdims=True), _NOISE)
    return np.exp(-distances / scale), rows, columns, shape


def _at_corners(local, picture, step):
    """The patch nearest to each of Harris's corners; a corner counts in the cell in which it lies itself."""
    descriptors, _, _, shape = picture.once(local, step)
    rows, columns = picture.once(_corners).T
    width = shape[1] // step - 3
    i = np.clip(np.rint((rows - 2 * step) / step).astype(int), 0, shape[0] // step - 4)
    j = np.clip(np.rint((columns - 2 * step) / step).astype(int), 0, width - 1)
    return descriptors[i * width + j], rows, columns, shape


def _corners(picture):
    """Rows and columns of Harris's corners, (n, 2)."""
    from skimage.feature import corner_harris, corner_peaks

    unit = _unit(picture)
    margin = 4 * unit + 1  # as far as the filters reach: else the frame would make corners
    response = corner_harris(np.pad(picture.grey, margin, mode="edge"), sigma=unit / 2)
    return corner_peaks(
        response[margin:-margin, margin:-margin],
        min_distance=unit,
        threshold_abs=_CORNER_NOISE,
        threshold_rel=_CORNER_THRESHOLD,
        num_peaks=_MAX_CORNERS,
        exclude_border=False,
    )


def _found_in_cells(local, cells, picture, step):
    descriptors, rows, columns, shape = picture.once(local, step)
    return LocalDescriptors(descriptors, cell=_cell_of(rows, columns, shape, cells), n_cells=math.prod(cells))


# ---------------------------------------------------------------- the cues

_ONE, _BANDS, _QUARTERS, _SIXTEENTHS = (1, 1), (3, 1), (2, 2), (4, 4)
_PIXEL_BINS = {
    "RGB": rgb_bins,
    "HSV": partial(hsv_bins, bins=_HSV_BINS),
    "LAB": _lab_bins,
    "LBP": _lbp_bins,
    "derivatives": _derivative_bins,
    "directions": _direction_bins,
}
_LOCAL = {
    "words": dense_patches,
    "large words": large_patches,
    "hue words": _hue_patches,
    "self-similarity": _self_similarity,
    "corner words": partial(_at_corners, dense_patches),
    "corner hue words": partial(_at_corners, _hue_patches),
}


@cache
def _require_skimage():
    """Looked up once: a corpus has thousands of pictures, each of several cues."""
    require("images", "skimage")


def _needs_skimage(describe):
    """Say which extra is missing where scikit-image is."""

    def checked(picture, *step):
        _require_skimage()
        return describe(picture, *step)

    return checked


def _all_cues():
    cues = {}
    for cells in (_ONE, _BANDS, _QUARTERS, _SIXTEENTHS):
        where = f"{cells[0]}x{cells[1]}"
        for name, bins in _PIXEL_BINS.items():
            cues[f"{name} {where}"] = Cue(partial(_in_cells, bins, cells))
        for name, local in _LOCAL.items():
            cues[f"{name} {where}"] = Cue(partial(_found_in_cells, local, cells), words=name)
    for level in range(4):
        for signed in (False, True):
            cues[f"PHOG {level}{' signed' * signed}"] = Cue(partial(_phog, level, signed))
    cues |= {"HOG": Cue(_hog), "gist": Cue(_gist), "moments": Cue(_moments), "pixels": Cue(_pixels)}
    return {name: cue._replace(describe=_needs_skimage(cue.describe)) for name, cue in cues.items()}


def _pyramids(names):
    return [f"{name} {where}" for name in names for where in ("1x1", "2x2", "4x4")]


#: Cues by name; "words", "hue words" and so on share a vocabulary, whatever the cells.
GRID_CUES = _all_cues()
#: Those that are no histograms.
VALUES = ("HOG", "gist", "moments", "pixels")
#: 39 of 18 descriptors, as many as the papers' kernels of Caltech-101: colour, texture, edges, words, shape.
EMOJI_CUES = (
    *_pyramids(["HSV", "hue words", "LBP", "self-similarity", "words", "large words", "derivatives"]),
    *(name for name in GRID_CUES if name.startswith("PHOG")),
    *("RGB 1x1", "LAB 1x1", "directions 1x1", "corner words 1x1", "corner hue words 1x1"),
    *("HOG", "gist", "moments", "shape", "pixels"),
)
#: The 15 kinds of features of TagProp (Guillaumin et al., ICCV 2009), from which online kernel selection
#: starts: three colour histograms and four kinds of words, each also in three bands, and gist.
KIND_CUES = (
    *(f"{name} {where}" for name in ("RGB", "LAB", "HSV") for where in ("1x1", "3x1")),
    *(
        f"{name} {where}"
        for name in _LOCAL
        if "words" in name and "large" not in name
        for where in ("1x1", "3x1")
    ),
    "gist",
)
