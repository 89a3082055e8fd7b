"""Descriptors of one picture: histograms of colours and derivatives, local patches, the silhouette.

Every range and number of bins is fixed, so that a descriptor depends on its image alone."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cuelearn.core.optional import require

from .base import check_integer

__all__ = [
    *("FILTERS", "HSV_BINS", "RESPONSE_RANGE", "SHAPE_CELLS", "STEP"),
    *("Cue", "LocalDescriptors", "Picture", "centred_mask", "check_image", "check_mask"),
    *(
        "dense_descriptors",
        "direction_sectors",
        "dense_patches",
        "field_bins",
        "foreground_mask",
        "hsv_bins",
        "in_the_middle",
        "large_patches",
        "rgb_bins",
    ),
    *("scaled", "shape_pyramid", "share", "shares", "with_middle"),
]

#: Scale-normalised derivatives from -RESPONSE_RANGE to RESPONSE_RANGE are told apart (grey values run from 0
#: to 1). An edge from black to white responds with 1/sqrt(2 pi) = 0.40 at every scale.
RESPONSE_RANGE = 0.2
#: Below this scale-normalised gradient magnitude, an edge of 6 grey levels, a pixel has no direction.
FLAT_MAGNITUDE = 0.01
#: Scales and bins of the receptive field histograms, by filters.
FILTERS = {"LxLy": ((1.0, 2.0, 4.0), 15), "DirC": ((1.0, 4.0), 16)}
HSV_BINS = (16, 4, 4)
SHAPE_CELLS = 24  # per side
STEP = 8  # of the patches, in pixels
_CUT, _FLAT = 0.2, 1e-5  # of a patch: the largest value, and the norm that counts as none
_PYRAMID = (1, 2, 4)  # cells per side, by level
_PYRAMID_SECTORS = 16
_PYRAMID_SMOOTHING = 1.5


class Picture:
    """An image as descriptors see it; what several of them need is made once, when first asked for.

    `image` is uint8 (height, width, 3), or already grey, float32 (height, width); `mask`, bool, is the
    object's, or None.
    """

    def __init__(self, image, mask=None):
        self.image, self.mask = image, mask
        self._found = {}

    def once(self, find, *arguments):
        """``find(picture, *arguments)``, found when it is first asked for."""
        if (find, *arguments) not in self._found:
            self._found[find, *arguments] = find(self, *arguments)
        return self._found[find, *arguments]

    @cached_property
    def grey(self):
        """Luma, float32 from 0 to 1."""
        return grey_levels(self.image)

    @cached_property
    def half(self):
        """The picture at half its size."""
        return Picture(scaled(self.image, 0.5))

    @cached_property
    def middle(self):
        """Where most photographers put what they mean: bool, the ellipse of `in_the_middle`."""
        height, width = self.image.shape[:2]
        rows, columns = np.mgrid[:height, :width] + 0.5
        return in_the_middle(rows, columns, height, width)

    def derivatives(self, scale):
        """Scale-normalised Gaussian derivatives (Lx, Ly), float32."""
        return self.once(_derivatives, scale)


def _derivatives(picture, scale):
    from scipy.ndimage import gaussian_filter

    return [
        np.float32(scale) * gaussian_filter(picture.grey, float(scale), order=order, mode="nearest")
        for order in ((0, 1), (1, 0))
    ]


class LocalDescriptors(NamedTuple):
    """What a cue of words finds in one image: (n, width) descriptors, and where.

    Where `central`, bool (n,), is given, half of the histogram of words is that of these alone; where `cell`,
    int (n,), is, each of `n_cells` cells has a histogram.
    """

    descriptors: np.ndarray
    central: np.ndarray | None = None
    cell: np.ndarray | None = None
    n_cells: int = 1


class Cue(NamedTuple):
    """A way to describe a picture.

    `describe` takes a `Picture` and gives float32 (width,). A cue of words names their vocabulary, `words`:
    it takes the step of the patches in pixels too and gives `LocalDescriptors`, which the vocabulary turns
    into a histogram. The columns are named by their place on `grid`.
    """

    describe: Callable
    grid: tuple[int, ...] | None = None
    words: str | None = None


def scaled(image, factor):
    """The image at another size, by Lanczos' filter; what is much too large is halved by means first."""
    require("images", "PIL")
    from PIL import Image

    size = tuple(max(1, round(factor * side)) for side in image.shape[1::-1])
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0))


def in_the_middle(rows, columns, height, width):
    """Which points lie in the central ellipse with semi-axes a third of the sides: 35 % of the area."""
    return ((rows - height / 2) / (height / 3)) ** 2 + ((columns - width / 2) / (width / 3)) ** 2 <= 1


def check_image(image):
    """Refuse what is not an RGB image of bytes."""
    shape, dtype = getattr(image, "shape", None), getattr(image, "dtype", None)
    if shape is None or len(shape) != 3 or shape[2] != 3 or dtype != np.uint8 or 0 in shape:
        given = type(image).__name__ if shape is None else f"shape {tuple(shape)} of {dtype}"
        hint = " read_image(path) opens a file." if isinstance(image, str | os.PathLike) else ""
        raise ValueError(f"image must be an array of shape (height, width, 3) of uint8, got {given}.{hint}")


def check_mask(mask, shape=None):
    """The mask as an array; it must be of bool, of the image's size, and not empty."""
    mask = np.asarray(mask)
    if mask.ndim != 2 or mask.dtype != np.bool_ or (shape is not None and mask.shape != shape):
        wanted = "(height, width)" if shape is None else str(shape)
        raise ValueError(
            f"mask must be an array of shape {wanted} of bool, got shape {mask.shape} of {mask.dtype}."
        )
    if not mask.any():
        raise ValueError("mask must be True on at least one pixel, got none.")
    return mask


def grey_levels(image):
    """Luma of an RGB image, float32 from 0 to 1; a grey image of float32 as it is."""
    if getattr(image, "dtype", None) == np.float32 and image.ndim == 2:
        return image
    check_image(image)
    weights = (np.float32(weight / 255) for weight in (0.299, 0.587, 0.114))
    red, green, blue = (image[..., channel] * weight for channel, weight in enumerate(weights))
    return red + green + blue


def share(index, n_bins, mask=None):
    """Share of the pixels in each bin, float32, sum 1."""
    index = index.ravel() if mask is None else index[check_mask(mask, index.shape)]
    return (np.bincount(index, minlength=n_bins) / index.size).astype(np.float32)


def shares(bins, mask=None):
    """Histograms one after the other, sum 1, of (index arrays, number of bins of each)."""
    indices, n_bins = bins
    return np.concatenate([share(index, n_bins, mask) / np.float32(len(indices)) for index in indices])


def with_middle(bins, picture):
    """Half for the whole picture, half for its middle."""
    return np.concatenate([shares(bins), shares(bins, picture.middle)]) / np.float32(2)


def rgb_bins(picture):
    """Of each pixel, the joint bin of red, green and blue, eight each: [index array], 512."""
    check_image(picture.image)
    level = (picture.image >> 5).astype(np.int32)
    return [(level[..., 0] * 8 + level[..., 1]) * 8 + level[..., 2]], 512


def hsv_levels(image):
    """Hue, saturation and value of an RGB image, float64 from 0 to 1, each (height, width).

    The numbers of scikit-image's `rgb2hsv`, which reduces over the three channels of every pixel and takes
    five times as long.
    """
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


def hsv_bins(picture, bins=HSV_BINS):
    """Of each pixel, the joint bin of hue, saturation and value: [index array], number of bins."""
    check_image(picture.image)
    levels = zip(hsv_levels(picture.image), bins, strict=True)
    hue, saturation, value = (np.minimum((level * n).astype(np.intp), n - 1) for level, n in levels)
    return [(hue * bins[1] + saturation) * bins[2] + value], math.prod(bins)


def field_bins(picture, filters, scales, bins):
    r"""Of each pixel, the bin of its derivatives: [index array, ...], number of bins of each.

    Composed receptive field histograms (Linde and Lindeberg, 2004) of the grey values f, from 0 to 1. The
    filters at scale :math:`\sigma` are :math:`L_x = \sigma\, \partial_x (g_\sigma * f)` and :math:`L_y =
    \sigma\, \partial_y (g_\sigma * f)`; outside the image the nearest pixel is repeated.

    ``"LxLy"``
        At each scale the joint bin of :math:`(L_x, L_y)`, ``x * bins + y``. Bins are equally wide from -0.2
        to 0.2; stronger responses count in the outermost.
    ``"DirC"``
        The direction :math:`\operatorname{atan2}(L_y, L_x)` in `bins` sectors, of which the first is centred
        on the x axis, and one more for magnitudes below 0.01, jointly over all scales, of which the last runs
        fastest. It forgets contrast.
    """
    if filters == "LxLy":
        size, indices = bins**2, []
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
    """Number of the direction's sector, the first centred on the x axis; n where the picture is flat."""
    turns = np.arctan2(ly, lx) * np.float32(n / (2 * math.pi))
    sector = np.floor(turns + np.float32(0.5)).astype(np.int32) % n
    sector[lx * lx + ly * ly < FLAT_MAGNITUDE**2] = n
    return sector


def dense_descriptors(image, step=STEP):
    """Dense local descriptors of the grey image, laid out and normalised as SIFT's (Lowe, 2004).

    Square patches on a grid, each of 4 x 4 cells of 8 orientations, normalised to unit length, cut at 0.2 and
    normalised again, and stored as bytes, ``min(512 v, 255)``. Unlike SIFT's, they have one fixed size, keep
    upright, and opposite gradients count as one orientation.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3), or of float32, shape (height, width)
        In colour, or grey; at least ``4 * step`` pixels high and wide, a patch.
    step : int, default=8
        Side of a cell and distance of neighbouring patches in pixels; at least 2.

    Returns
    -------
    ndarray of uint8, shape ((height // step - 3) * (width // step - 3), 128)
        Row by row. All zero where the patch is of one colour.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets import dense_descriptors
    >>> dense_descriptors(np.zeros((96, 128, 3), np.uint8)).shape
    (117, 128)
    """
    grey = grey_levels(image)
    check_integer("step", step, 2)
    if min(grey.shape) < 4 * step:
        raise ValueError(
            f"image must be at least 4 * step = {4 * step} pixels high and wide, "
            f"got {grey.shape[0]} x {grey.shape[1]}: lower the step, or leave out cues of words."
        )
    patches = np.lib.stride_tricks.sliding_window_view(_edge_cells(grey, step), (4, 4), axis=(0, 1))
    histograms = patches.transpose(0, 1, 3, 4, 2).reshape(-1, 128)
    for most in (_CUT, 1.0):
        histograms = np.minimum(
            histograms / np.sqrt((histograms**2).sum(axis=1, keepdims=True) + _FLAT**2), most
        )
    return np.minimum(np.rint(512 * histograms), 255).astype(np.uint8)


def _edge_cells(grey, side):
    """Mean contrast of edges of eight orientations in square cells: (rows, columns, 8)."""
    height, width = (length // side for length in grey.shape)
    dy, dx = np.zeros(grey.shape), np.zeros(grey.shape)
    dy[1:-1], dx[:, 1:-1] = grey[2:] - grey[:-2], grey[:, 2:] - grey[:, :-2]
    dy, dx = dy[: height * side, : width * side], dx[: height * side, : width * side]
    orientation = (np.rad2deg(np.arctan2(dy, dx)) % 180 * (8 / 180)).astype(np.intp) % 8
    rows, columns = np.ogrid[: height * side, : width * side]
    place = ((rows // side) * width + columns // side) * 8 + orientation
    total = np.bincount(place.ravel(), np.hypot(dx, dy).ravel(), minlength=height * width * 8)
    return total.reshape(height, width, 8) / side**2


def dense_patches(picture, step):
    """`dense_descriptors` of a picture, rows and columns of the patches' centres, its height and width."""
    shape = picture.grey.shape
    centres = [np.arange(side // step - 3) * step + 2 * step for side in shape]
    rows, columns = np.meshgrid(*centres, indexing="ij")
    return dense_descriptors(picture.grey, step), rows.ravel(), columns.ravel(), shape


def large_patches(picture, step):
    """The same of the picture at half its size."""
    height, width = picture.image.shape[:2]
    if min(height, width) < 8 * step:
        raise ValueError(
            f"image must be at least 8 * step = {8 * step} pixels high and wide, got {height} x {width}: "
            "leave out the cue 'large words', or lower the step of vocabulary=BagOfWords(n_words, step=4)."
        )
    return dense_patches(picture.half, step)


def centred_mask(mask):
    r"""Global shape: the silhouette moved to its centroid, scaled to unit area, on a grid of 24 x 24 cells.

    The grid is a square of side :math:`3 \sqrt A`, A the silhouette's area in pixels, centred on the
    centroid; a cell's value is the share of it that the silhouette covers, computed exactly. So the vector
    does not change when the silhouette moves by whole pixels, and hardly when it is scaled. `mask`, bool
    (height, width), is True on the object, on at least one pixel. Returns float32 (576,) from 0 to 1, row by
    row.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets import centred_mask
    >>> square = np.zeros((40, 40), bool)
    >>> square[3:13, 20:30] = True
    >>> centred_mask(square).reshape(24, 24)[12, ::4]
    array([0., 0., 1., 1., 0., 0.], dtype=float32)
    """
    mask = check_mask(mask)
    rows, columns = mask.sum(axis=1), mask.sum(axis=0)
    area = int(rows.sum())
    side, size = 3.0 * math.sqrt(area), SHAPE_CELLS
    edges = side * (np.arange(size + 1) / size - 0.5)
    covered = mask.astype(np.float64)
    for axis, counts in enumerate((rows, columns)):
        # integers all through: the centroid moves with the silhouette to the last bit of the division
        centre = int(counts @ np.arange(len(counts))) / area + 0.5
        covered = _between(covered, centre + edges, axis)
    return np.clip(covered / (side / size) ** 2, 0, 1).ravel().astype(np.float32)


def _between(values, edges, axis):
    """Integrals of a step function, value i on [i, i + 1), along one axis between successive edges."""
    values = np.moveaxis(values, axis, 0)
    n = len(values)
    total = np.zeros((n + 1, values.shape[1]))
    np.cumsum(values, axis=0, out=total[1:])
    edges = np.clip(edges, 0, n)
    below = np.minimum(edges.astype(np.intp), n - 1)
    at_edges = total[below] + (edges - below)[:, None] * values[below]
    return np.moveaxis(np.diff(at_edges, axis=0), 0, axis)


def foreground_mask(image):
    """Segment one object before a plain background, such as the blue of ETH-80.

    The background's colour is the median along the border of the image. What differs from it in CIELAB by
    more than a threshold is foreground, of which the largest connected piece is kept and its holes are
    filled. The threshold is Otsu's (1979), or four times the median difference along the border (at least 10)
    where that is less: Otsu's alone would cut an object of two colours in two. An
    image of one colour gives False everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets import foreground_mask
    >>> image = np.full((40, 40, 3), (20, 60, 200), np.uint8)
    >>> image[10:30, 12:28] = (180, 30, 20)
    >>> int(foreground_mask(image).sum())
    320
    """
    require("images", "skimage")
    from scipy import ndimage
    from skimage.color import rgb2lab
    from skimage.filters import threshold_otsu

    check_image(image)

    def border(values):
        return np.concatenate([values[0], values[-1], values[:, 0], values[:, -1]])

    lab = rgb2lab(image)
    distance = np.linalg.norm(lab - np.median(border(lab), axis=0), axis=-1)
    if np.ptp(distance) < 1:  # less than a just noticeable difference
        return np.zeros(distance.shape, dtype=bool)
    threshold = min(threshold_otsu(distance), max(4 * np.median(border(distance)), 10.0))
    pieces, n_pieces = ndimage.label(distance > threshold)
    sizes = np.bincount(pieces.ravel(), minlength=n_pieces + 1)[1:]
    return ndimage.binary_fill_holes(pieces == 1 + int(sizes.argmax()))


def shape_pyramid(image):
    """Orientation of edges, by contrast, in the image, its quarters, its sixteenths: float32 (336,), sum 1.

    A level's histograms have sum 1/3; an image without edges counts every orientation alike. `image` is uint8
    (height, width, 3).

    References
    ----------
    A. Bosch, A. Zisserman and X. Munoz (2007). Representing shape with a spatial pyramid kernel. CIVR.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets import shape_pyramid
    >>> found = shape_pyramid(np.zeros((64, 64, 3), dtype=np.uint8))
    >>> found.shape, round(float(found.sum()), 3)
    ((336,), 1.0)
    """
    require("images", "skimage")
    from skimage.color import rgb2gray
    from skimage.feature import hog
    from skimage.filters import gaussian

    check_image(image)
    grey = gaussian(rgb2gray(image), _PYRAMID_SMOOTHING)
    n = _PYRAMID[-1]
    cell = (grey.shape[0] // n, grey.shape[1] // n)
    grey = grey[: n * cell[0], : n * cell[1]]
    # one block that covers the image: all cells are divided by the same norm
    cells = hog(grey, _PYRAMID_SECTORS, cell, (n, n), block_norm="L1", feature_vector=False)
    cells = cells.reshape(n, n, -1)
    parts = [cells.reshape(side, n // side, side, n // side, -1) for side in _PYRAMID]
    levels = [part.sum(axis=(1, 3)).ravel() for part in parts]
    total = levels[0].sum()
    if total == 0:
        levels, total = [np.full(level.size, 1 / level.size) for level in levels], 1.0
    return (np.concatenate(levels) / (len(_PYRAMID) * total)).astype(np.float32)
