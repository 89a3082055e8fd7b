"""Descriptors of one picture: histograms of colours and patterns, edges, the silhouette, visual words.

Ranges and bins are fixed. Histograms over cells are shares of the pixels of the whole picture; lengths scale
with the picture by `unit`. Functions of patches return descriptors (n, width), rows and columns of the
centres, and the picture's shape.
"""

from __future__ import annotations

import itertools
import math
import numbers
import os
from collections.abc import Sequence
from functools import cache, cached_property, lru_cache
from importlib import import_module
from typing import NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from cuelearn.expect import expect_list, require
from cuelearn.kernels.types import ArrayLike, RandomState

__all__ = ["BagOfWords", "count_words"]

#: Scale-normalised derivatives are clipped to +-RESPONSE_RANGE, for grey values from 0 to 1. An edge from
#: black to white has response 1/sqrt(2 pi) = 0.40 at every scale.
RESPONSE_RANGE = 0.2
#: Least scale-normalised gradient magnitude of a pixel with a direction, an edge of 6 grey levels.
FLAT_MAGNITUDE = 0.01
PYRAMID = (1, 2, 4)  # cells per side, by level
LAB_BINS = 8  # per channel; lightness from 0 to 100, colours from -LAB_RANGE to LAB_RANGE
LAB_RANGE = 110.0
DERIVATIVE_BINS = 8
PHOG_SECTORS = 12  # of half a turn; signed: twice as many
GIST_ORIENTATIONS = 6
GIST_WAVELENGTHS = (4.0, 4.0 * math.sqrt(2.0), 8.0)  # of a picture of 32 pixels


@cache
def skimage(module):
    """A module of scikit-image, cached for thousands of pictures."""
    require("images", "skimage")
    return import_module(f"skimage.{module}")


class Picture:
    """An image, uint8 (height, width, 3), and its mask; caches what several descriptors need."""

    def __init__(self, image, mask=None):
        self.image = image
        self._mask = mask
        self._made = {}

    def once(self, make, *arguments):
        if (make, *arguments) not in self._made:
            self._made[make, *arguments] = make(self, *arguments)
        return self._made[make, *arguments]

    @cached_property
    def mask(self):
        if self._mask is None:
            return None
        return check_mask(self._mask, self.image.shape[:2])

    @cached_property
    def grey(self):
        return grey_levels(self.image)

    @cached_property
    def half(self):
        return Picture(scaled(self.image, 0.5))

    @cached_property
    def middle(self):
        height, width = self.image.shape[:2]
        rows, columns = np.mgrid[:height, :width] + 0.5
        return in_the_middle(rows, columns, height, width)

    @property
    def unit(self):
        """1/32 of the shorter side in pixels, the unit of cells and filters."""
        return max(1, min(self.image.shape[:2]) // 32)

    def derivatives(self, scale):
        """Scale-normalised Gaussian derivatives (Lx, Ly), float32."""
        return self.once(_derivatives, scale)


def _derivatives(picture, scale):
    from scipy.ndimage import gaussian_filter

    return [
        np.float32(scale) * gaussian_filter(picture.grey, float(scale), order=order, mode="nearest")
        for order in ((0, 1), (1, 0))
    ]


def scaled(image, factor):
    """The image at another size, by Lanczos' filter."""
    require("images", "PIL")
    from PIL import Image

    size = tuple(max(1, round(factor * side)) for side in image.shape[1::-1])
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0))


def in_the_middle(rows, columns, height, width):
    """Whether points lie in the central ellipse with semi-axes a third of the sides."""
    return ((rows - height / 2) / (height / 3)) ** 2 + ((columns - width / 2) / (width / 3)) ** 2 <= 1


def check_image(image):
    """ValueError unless `image` is RGB, uint8."""
    shape = getattr(image, "shape", None)
    dtype = getattr(image, "dtype", None)
    if shape is None or len(shape) != 3 or shape[2] != 3 or dtype != np.uint8 or 0 in shape:
        given = type(image).__name__
        if shape is not None:
            given = f"shape {tuple(shape)} of {dtype}"
        hint = ""
        if isinstance(image, str | os.PathLike):
            hint = " read_image(path) opens a file."
        raise ValueError(f"image must be an array of shape (height, width, 3) of uint8, got {given}.{hint}")


def check_mask(mask, shape):
    """The mask as a non-empty array of bool of the image's size."""
    mask = np.asarray(mask)
    if mask.dtype != np.bool_ or mask.shape != shape:
        raise ValueError(
            f"mask must be an array of shape {shape} of bool, got shape {mask.shape} of {mask.dtype}."
        )
    if not mask.any():
        raise ValueError("mask must be True on at least one pixel, got none.")
    return mask


def grey_levels(image):
    """Luma of an RGB image, float32 from 0 to 1."""
    check_image(image)
    weights = (np.float32(weight / 255) for weight in (0.299, 0.587, 0.114))
    red, green, blue = (image[..., channel] * weight for channel, weight in enumerate(weights))
    return red + green + blue


# ---- bins of pixels: (indices, number of bins)


def rgb_bins(picture):
    level = (picture.image >> 5).astype(np.int32)
    return [(level[..., 0] * 8 + level[..., 1]) * 8 + level[..., 2]], 512


def hsv_levels(image):
    """Hue, saturation and value from 0 to 1, as scikit-image's `rgb2hsv`, in a fifth of its time."""
    red, green, blue = np.ascontiguousarray(np.moveaxis(image, 2, 0)) * (1.0 / 255)
    value = np.maximum(np.maximum(red, green), blue)
    delta = value - np.minimum(np.minimum(red, green), blue)
    is_blue = blue == value
    is_green = green == value
    difference = np.where(is_blue, red - green, np.where(is_green, blue - red, green - blue))
    offset = np.where(is_blue, 4.0, np.where(is_green, 2.0, 0.0))
    grey = delta == 0.0
    with np.errstate(invalid="ignore"):
        hue = (offset + difference / delta) / 6.0
        saturation = delta / value
    hue = np.where(hue < 0.0, hue + 1.0, hue)
    hue[grey] = 0.0
    saturation[grey] = 0.0
    return hue, saturation, value


def hsv_bins(picture, bins=(16, 4, 4)):
    levels = zip(hsv_levels(picture.image), bins, strict=True)
    hue, saturation, value = (np.minimum((level * n).astype(np.intp), n - 1) for level, n in levels)
    return [(hue * bins[1] + saturation) * bins[2] + value], math.prod(bins)


def lab_bins(picture):
    low = np.array([0.0, -LAB_RANGE, -LAB_RANGE])
    width = np.array([100.0, 2 * LAB_RANGE, 2 * LAB_RANGE])
    level = (skimage("color").rgb2lab(picture.image) - low) * (LAB_BINS / width)
    lightness, a, b = np.moveaxis(np.clip(level, 0, LAB_BINS - 1).astype(np.int32), 2, 0)
    return [(lightness * LAB_BINS + a) * LAB_BINS + b], LAB_BINS**3


def lbp_bins(picture):
    """Local binary patterns (Ojala, Pietikainen and Maenpaa, 2002) of eight neighbours, one unit away: 58
    uniform ones, and one for all others."""
    radius = picture.unit
    levels = np.rint(picture.grey * 255).astype(np.uint8)
    framed = np.pad(levels, radius + 1, mode="edge")
    patterns = skimage("feature").local_binary_pattern(framed, 8, radius, method="nri_uniform")
    return [patterns[radius + 1 : -radius - 1, radius + 1 : -radius - 1].astype(np.int32)], 59


def field_bins(picture, filters, scales, bins):
    """Bins of derivatives: composed receptive field histograms (Linde and Lindeberg, 2004). "LxLy": both
    derivatives jointly at each scale; "DirC": sectors of the direction, one of flat pixels, at all scales
    jointly."""
    if filters == "LxLy":
        size = bins**2
        indices = []
        for scale in scales:
            x, y = (
                np.clip((r + RESPONSE_RANGE) * (bins / (2 * RESPONSE_RANGE)), 0, bins - 1).astype(np.int32)
                for r in picture.derivatives(scale)
            )
            indices.append(x * bins + y)
        return indices, size
    index = np.zeros(picture.grey.shape, dtype=np.int32)
    for scale in scales:
        index = index * (bins + 1) + direction_sectors(*picture.derivatives(scale), bins)
    return [index], (bins + 1) ** len(scales)


def direction_sectors(lx, ly, n):
    """Sector of the direction, the first centred on the x axis; n for flat pixels."""
    turns = np.arctan2(ly, lx) * np.float32(n / (2 * math.pi))
    sector = np.floor(turns + np.float32(0.5)).astype(np.int32) % n
    sector[lx * lx + ly * ly < FLAT_MAGNITUDE**2] = n
    return sector


def derivative_bins(picture):
    """ "LxLy" at half a unit, fewer bins."""
    x, y = (
        np.clip((response / RESPONSE_RANGE + 1) * (DERIVATIVE_BINS / 2), 0, DERIVATIVE_BINS - 1)
        for response in picture.derivatives(picture.unit / 2)
    )
    return [x.astype(np.int32) * DERIVATIVE_BINS + y.astype(np.int32)], DERIVATIVE_BINS**2


def direction_bins(picture):
    """ "DirC" at half a unit."""
    return field_bins(picture, "DirC", (picture.unit / 2,), 36)


# ---- histograms of bins, float32


def share(index, n_bins):
    """Share of entries in each bin, float32, sum 1."""
    index = index.ravel()
    return (np.bincount(index, minlength=n_bins) / index.size).astype(np.float32)


def shares(bins, mask=None):
    indices, n_bins = bins
    parts = [share(index if mask is None else index[mask], n_bins) for index in indices]
    return np.concatenate([part / np.float32(len(indices)) for part in parts])


def with_middle(bins, picture):
    """One half for the whole picture, one for its middle."""
    return np.concatenate([shares(bins), shares(bins, picture.middle)]) / np.float32(2)


def cell_of(rows, columns, shape, cells):
    """Cell of each pixel, numbered row by row."""
    return (rows * cells[0] // shape[0]) * cells[1] + columns * cells[1] // shape[1]


def in_cells(bins, cells, picture):
    """Concatenated histograms of the cells; all pixels have equal weight."""
    (index,), n_bins = picture.once(bins)
    rows, columns = np.ogrid[: index.shape[0], : index.shape[1]]
    place = cell_of(rows, columns, index.shape, cells) * n_bins + index
    counts = np.bincount(place.ravel(), minlength=cells[0] * cells[1] * n_bins)
    return (counts / index.size).astype(np.float32)


# ---- edges, pixels, the silhouette


def phog(level, signed, picture):
    """Orientations of edges, weighted by contrast, in 2^level x 2^level cells (Bosch, Zisserman and Munoz,
    2007)."""
    n = 2**level
    sectors = 2 * PHOG_SECTORS
    x, y = picture.derivatives(picture.unit / 2)
    sector = direction_sectors(x, y, sectors)
    contrast = np.hypot(x, y)
    edge = sector < sectors
    # unsigned: opposite directions count as one
    kept = PHOG_SECTORS
    if signed:
        kept = sectors
    rows, columns = np.nonzero(edge)
    place = cell_of(rows, columns, x.shape, (n, n)) * kept + sector[edge] % kept
    total = np.bincount(place, contrast[edge], minlength=n * n * kept)
    return (total / max(total.sum(), 1e-12)).astype(np.float32)


def shape_pyramid(picture):
    """Orientations of edges, weighted by contrast, in the image, its quarters and sixteenths (Bosch et al.,
    2007)."""
    grey = skimage("filters").gaussian(skimage("color").rgb2gray(picture.image), sigma=1.5)
    n = PYRAMID[-1]
    cell = (grey.shape[0] // n, grey.shape[1] // n)
    grey = grey[: n * cell[0], : n * cell[1]]
    # one block for the image: all cells have the same norm
    cells = skimage("feature").hog(grey, 16, cell, (n, n), block_norm="L1", feature_vector=False)
    cells = cells.reshape(n, n, -1)
    parts = [cells.reshape(side, n // side, side, n // side, -1) for side in PYRAMID]
    levels = [part.sum(axis=(1, 3)).ravel() for part in parts]
    total = levels[0].sum()
    if total == 0:
        levels, total = [np.full(level.size, 1 / level.size) for level in levels], 1.0
    return (np.concatenate(levels) / (len(PYRAMID) * total)).astype(np.float32)


def hog(picture):
    """Eight orientations of gradients (Dalal and Triggs, 2005): 8 x 8 cells, blocks of 2 x 2."""
    size = tuple(side // 8 for side in picture.grey.shape)
    return skimage("feature").hog(picture.grey, 8, size, (2, 2)).astype(np.float32)


@lru_cache(maxsize=4)
def _gabor_bank(shape):
    """Spectra of Gabor filters with response 0 to a constant picture, and the margin."""
    filters = []
    for wavelength in GIST_WAVELENGTHS:
        for k in range(GIST_ORIENTATIONS):
            values = skimage("filters").gabor_kernel(1 / wavelength, theta=math.pi * k / GIST_ORIENTATIONS)
            envelope = np.abs(values)
            filters.append(values - envelope * (values.sum() / envelope.sum()))
    margin = max(max(values.shape) for values in filters) // 2
    bank = np.zeros((len(filters), shape[0] + 2 * margin, shape[1] + 2 * margin), dtype=np.complex128)
    for spectrum, values in zip(bank, filters, strict=True):
        height, width = values.shape
        spectrum[:height, :width] = values
        spectrum[...] = np.fft.fft2(np.roll(spectrum, (-(height // 2), -(width // 2)), axis=(0, 1)))
    return bank.astype(np.complex64), margin


def gist(picture):
    """Mean magnitude of each Gabor filter in each of 4 x 4 cells (Oliva and Torralba, 2001)."""
    from scipy.fft import fft2, ifft2

    factor = 32 / min(picture.image.shape[:2])
    grey = picture.grey
    if factor < 1:
        grey = grey_levels(scaled(picture.image, factor))
    bank, margin = _gabor_bank(grey.shape)
    spectrum = fft2(np.pad(grey, margin, mode="symmetric"))
    inner = tuple(slice(margin, margin + side) for side in grey.shape)
    return pooled(np.abs(ifft2(bank * spectrum))[:, *inner], 4)


def pooled(values, n):
    """Means over n x n cells of the last two axes, flattened."""
    for axis in (-2, -1):
        edges = np.arange(n) * values.shape[axis] // n
        sizes = np.diff([*edges, values.shape[axis]])
        sums = np.add.reduceat(values, edges, axis=axis)
        values = sums / (sizes[:, None] if axis == -2 else sizes)
    return values.ravel().astype(np.float32)


def pixels(picture):
    return pooled(np.moveaxis(picture.image, 2, 0) / np.float32(255), 8)


def moments(picture):
    """Central moments of the silhouette up to order 4, and Hu's seven invariants, as signed lengths."""
    measure = skimage("measure")
    mask = picture.mask.astype(float)
    central = measure.moments_normalized(measure.moments_central(mask, order=4), order=4)
    orders = [(p, q) for p in range(5) for q in range(5) if 2 <= p + q <= 4]
    values = np.array([central[order] for order in orders] + [*measure.moments_hu(central)])
    degrees = np.array([p + q for p, q in orders] + [2, 4, 6, 6, 12, 8, 12])
    return (np.sign(values) * np.abs(values) ** (1 / degrees)).astype(np.float32)


def silhouette(picture):
    """Covered share of 24 x 24 cells of a square of side 3 sqrt(area) about the centroid."""
    mask = picture.mask
    rows = mask.sum(axis=1)
    columns = mask.sum(axis=0)
    area = int(rows.sum())
    side = 3.0 * math.sqrt(area)
    size = 24
    edges = side * (np.arange(size + 1) / size - 0.5)
    covered = mask.astype(np.float64)
    for axis, counts in enumerate((rows, columns)):
        # integers: the centroid moves exactly with the silhouette up to the division
        centre = int(counts @ np.arange(len(counts))) / area + 0.5
        covered = _between(covered, centre + edges, axis)
    return np.clip(covered / (side / size) ** 2, 0, 1).ravel().astype(np.float32)


def _between(values, edges, axis):
    """Integrals, between successive edges along one axis, of the step function with value i on [i, i + 1)."""
    values = np.moveaxis(values, axis, 0)
    n = len(values)
    total = np.zeros((n + 1, values.shape[1]))
    np.cumsum(values, axis=0, out=total[1:])
    edges = np.clip(edges, 0, n)
    below = np.minimum(edges.astype(np.intp), n - 1)
    at_edges = total[below] + (edges - below)[:, None] * values[below]
    return np.moveaxis(np.diff(at_edges, axis=0), 0, axis)


FLAT_NORM = 1e-5  # of a patch, counts as 0
HUES = 36
RADII, ANGLES = (2, 3, 4, 5), 12  # of self-similarity, in units
NOISE = 0.02**2  # mean squared difference of grey values that counts as 0
MAX_IMAGES, MAX_DESCRIPTORS = 500, 50_000  # for a vocabulary
CORNER_NOISE = 1e-12  # far below the response to one grey level, far above rounding


class LocalDescriptors(NamedTuple):
    """Descriptors (n, width) of one image: those `central` give half of the histogram, or each of `n_cells`
    cells has its own."""

    descriptors: np.ndarray
    central: np.ndarray | None = None
    cell: np.ndarray | None = None
    n_cells: int = 1


# ---- patches


def dense_patches(picture, step):
    """Upright patches on a grid, as in SIFT (Lowe, 2004): 4 x 4 cells of 8 orientations, opposite ones equal,
    normalised, clipped at 0.2, normalised again and stored as bytes."""
    grey = picture.grey
    if min(grey.shape) < 4 * step:
        raise ValueError(
            f"image must be at least 4 * step = {4 * step} pixels high and wide (for large words at half its "
            f"size), got {grey.shape[0]} x {grey.shape[1]}: lower the step, or leave out cues of words."
        )
    patches = np.lib.stride_tricks.sliding_window_view(_edge_cells(grey, step), (4, 4), axis=(0, 1))
    histograms = patches.transpose(0, 1, 3, 4, 2).reshape(-1, 128)
    for most in (0.2, 1.0):
        lengths = np.sqrt((histograms**2).sum(axis=1, keepdims=True) + FLAT_NORM**2)
        histograms = np.minimum(histograms / lengths, most)
    descriptors = np.minimum(np.rint(512 * histograms), 255).astype(np.uint8)
    centres = [np.arange(side // step - 3) * step + 2 * step for side in grey.shape]
    rows, columns = np.meshgrid(*centres, indexing="ij")
    return descriptors, rows.ravel(), columns.ravel(), grey.shape


def _edge_cells(grey, side):
    """Mean contrast of edges of eight orientations in square cells: (rows, columns, 8)."""
    dy = np.zeros(grey.shape)
    dx = np.zeros(grey.shape)
    dy[1:-1] = grey[2:] - grey[:-2]
    dx[:, 1:-1] = grey[:, 2:] - grey[:, :-2]
    orientation = (np.rad2deg(np.arctan2(dy, dx)) % 180 * (8 / 180)).astype(np.intp) % 8
    return _in_cells(orientation, np.hypot(dx, dy), 8, side)


def _in_cells(index, weights, n, side):
    """Weight of each of n indices per pixel of square cells: (rows, columns, n)."""
    height, width = (length // side for length in index.shape)
    whole = np.s_[: height * side, : width * side]
    rows, columns = np.ogrid[whole]
    place = ((rows // side) * width + columns // side) * n + index[whole]
    total = np.bincount(place.ravel(), weights[whole].ravel(), minlength=height * width * n)
    return total.reshape(height, width, n) / side**2


def large_patches(picture, step):
    return dense_patches(picture.half, step)


def hue_patches(picture, step):
    """Histograms of hue, weighted by chroma, of the same patches (after van de Weijer and Schmid, 2006)."""
    red, green, blue = (picture.image[..., c].astype(np.float32) / 255 for c in range(3))
    first = (red - green) / math.sqrt(2.0)
    second = (red + green - 2 * blue) / math.sqrt(6.0)
    chroma = np.hypot(first, second)
    turns = np.arctan2(first, second) * (HUES / (2 * math.pi))
    hue = np.floor(turns + 0.5).astype(np.int32) % HUES
    cells = _in_cells(hue, chroma, HUES, step)
    windows = np.lib.stride_tricks.sliding_window_view(cells, (4, 4), axis=(0, 1))
    histograms = windows.mean(axis=(3, 4)).reshape(-1, HUES).astype(np.float32)
    return histograms, *picture.once(dense_patches, step)[1:]


def self_similarity(picture, step):
    """Similarity of each patch to its surroundings at 12 angles and 4 distances (Shechtman and Irani,
    2007)."""
    from scipy.ndimage import uniform_filter

    unit = picture.unit
    grey = picture.grey
    _, rows, columns, shape = picture.once(dense_patches, step)
    margin = max(RADII) * unit
    wide = np.pad(grey, margin, mode="edge")
    others = np.empty((len(RADII) * ANGLES, *shape), dtype=np.float32)
    for k, (radius, a) in enumerate(itertools.product(RADII, range(ANGLES))):
        angle = 2 * math.pi * a / ANGLES
        dy = round(radius * unit * math.sin(angle))
        dx = round(radius * unit * math.cos(angle))
        others[k] = wide[margin + dy : margin + dy + shape[0], margin + dx : margin + dx + shape[1]]
    patch = (1, 2 * unit + 1, 2 * unit + 1)
    apart = uniform_filter((grey - others) ** 2, patch, mode="nearest")
    distances = np.ascontiguousarray(apart[:, rows, columns].T)
    # differences of nearest neighbours are texture
    scale = np.maximum(distances[:, :ANGLES].mean(axis=1, keepdims=True), NOISE)
    return np.exp(-distances / scale), rows, columns, shape


def at_corners(local, picture, step):
    """The patch nearest to each Harris corner; a corner belongs to the cell that contains it."""
    descriptors, _, _, shape = picture.once(local, step)
    rows, columns = picture.once(_corners).T
    width = shape[1] // step - 3
    i = np.clip(np.rint((rows - 2 * step) / step).astype(int), 0, shape[0] // step - 4)
    j = np.clip(np.rint((columns - 2 * step) / step).astype(int), 0, width - 1)
    return descriptors[i * width + j], rows, columns, shape


def _corners(picture):
    feature = skimage("feature")
    unit = picture.unit
    margin = 4 * unit + 1  # support of the filters: no corners from the frame
    response = feature.corner_harris(np.pad(picture.grey, margin, mode="edge"), sigma=unit / 2)
    return feature.corner_peaks(
        response[margin:-margin, margin:-margin],
        min_distance=unit,
        threshold_abs=CORNER_NOISE,
        threshold_rel=0.01,
        num_peaks=50,
        exclude_border=False,
    )


def in_middle_too(patches, picture, step):
    descriptors, rows, columns, shape = patches(picture, step)
    return LocalDescriptors(descriptors, in_the_middle(rows, columns, *shape))


def patches_in_cells(patches, cells, picture, step):
    descriptors, rows, columns, shape = picture.once(patches, step)
    return LocalDescriptors(descriptors, cell=cell_of(rows, columns, shape, cells), n_cells=math.prod(cells))


# ---- words


class BagOfWords(TransformerMixin, BaseEstimator):
    """Histograms of visual words (Sivic and Zisserman, 2003): each patch counts for the nearest of `n_words`.

    Parameters
    ----------
    n_words : int >= 2, default=300
        Size of the vocabulary (thesis appendix A). It is learnt from 50,000 descriptors at most, equally many
        of each of at most 500 images, drawn at random.
    step : int, default=8
        Side of the cells of patches, 4 x 4 each, and distance of patches, in pixels.
    random_state : int, default=0
        Results for a seed are bitwise equal for any number of threads.

    Attributes
    ----------
    words_ : ndarray of float32, shape (n_words, width)
        The centres; width 128 for patches of edges.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets import BagOfWords
    >>> images = np.random.default_rng(0).integers(0, 256, (6, 64, 64, 3), dtype=np.uint8)
    >>> BagOfWords(n_words=10).fit(images[:4]).transform(images).shape
    (6, 10)
    """

    _parameter_constraints = {
        "n_words": [Interval(numbers.Integral, 2, None, closed="left")],
        "step": [Interval(numbers.Integral, 2, None, closed="left")],
        "random_state": [Interval(numbers.Integral, 0, None, closed="left")],
    }

    def __init__(self, n_words: int = 300, step: int = 8, random_state: RandomState = 0):
        self.n_words = n_words
        self.step = step
        self.random_state = random_state

    def fit(self, images: Sequence, y: ArrayLike | None = None, rows: ArrayLike | None = None) -> Self:
        """Learn the vocabulary from images or the local descriptors of each, of `rows` or all; only drawn
        ones are read."""
        from sklearn.cluster import MiniBatchKMeans
        from threadpoolctl import threadpool_limits

        self._validate_params()
        if rows is None:
            rows = np.arange(len(images))
        expect_list("images", rows, "images")
        rng = np.random.default_rng(self.random_state)
        drawn = self.drawn(rows, rng)
        quota = -(-MAX_DESCRIPTORS // len(drawn))
        sample = []
        for i in drawn:
            descriptors = self._descriptors(images[int(i)])
            sample.append(descriptors[np.sort(rng.permutation(len(descriptors))[:quota])])
        sample = np.concatenate(sample).astype(np.float32)
        if len(sample) < self.n_words:
            wanted = f"at least n_words = {self.n_words} descriptors"
            raise ValueError(f"images must give {wanted}, got {len(sample)} from {len(drawn)} images.")
        seed = int(rng.integers(2**31))
        clusters = MiniBatchKMeans(self.n_words, batch_size=2048, n_init=1, max_iter=20, random_state=seed)
        with threadpool_limits(1):  # fixes the order of sums
            clusters.fit(sample)
        self.words_ = clusters.cluster_centers_.astype(np.float32)
        self.n_features_in_ = self.words_.shape[1]
        return self

    def transform(self, images: Sequence) -> np.ndarray:
        """Shares of each image's patches by word, float32 (n_images, n_words), each row with sum 1."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            rows = [share(self.nearest(image), len(self.words_)) for image in images]
        return np.array(rows, dtype=np.float32).reshape(len(images), len(self.words_))

    def nearest(self, image: np.ndarray | LocalDescriptors) -> np.ndarray:
        """Nearest word of each patch or local descriptor."""
        check_is_fitted(self)
        descriptors = self._descriptors(image)
        if len(descriptors) == 0:
            raise ValueError("descriptors must be those of one patch at least, got none.")
        distance = descriptors.astype(np.float32) @ self.words_.T
        distance *= -2
        # |d - w|^2 without |d|^2
        distance += (self.words_.astype(np.float64) ** 2).sum(axis=1).astype(np.float32)
        return distance.argmin(axis=1)

    def drawn(self, rows: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        """The training rows that `fit` reads."""
        if rng is None:
            rng = np.random.default_rng(self.random_state)
        return rows[np.sort(rng.permutation(len(rows))[:MAX_IMAGES])]

    def _descriptors(self, image):
        if getattr(image, "ndim", None) != 2:
            return dense_patches(Picture(image), self.step)[0]
        if image.dtype not in (np.uint8, np.float32):
            raise ValueError(
                f"descriptors must be of shape (n_patches, width) of uint8 or float32, got {image.shape} "
                f"of {image.dtype}."
            )
        return image


def count_words(vocabulary, described, known=None):
    """Histograms of words, float32 (n, width), of `LocalDescriptors`; `known` caches nearest words."""
    if described[0].cell is not None:
        if known is None:
            known = {}
        return np.array([_count_in_cells(vocabulary, one, known) for one in described])
    counts = vocabulary.transform([one.descriptors for one in described])
    if described[0].central is None:
        return counts
    middle = vocabulary.transform([one.descriptors[one.central] for one in described])
    return np.concatenate([counts, middle], axis=1) / np.float32(2)


def _count_in_cells(vocabulary, described, known):
    """Histogram of each cell, in shares of all patches; zeros without patches."""
    n_words = len(vocabulary.words_)
    n = len(described.descriptors)
    if n == 0:
        return np.zeros(described.n_cells * n_words, dtype=np.float32)
    key = id(described.descriptors)
    if key not in known:
        known[key] = vocabulary.nearest(described.descriptors)
    place = described.cell * n_words + known[key]
    return (np.bincount(place, minlength=described.n_cells * n_words) / n).astype(np.float32)
