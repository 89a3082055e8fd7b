r"""From images and laser scans to cues: the papers' (thesis section 3.4, appendix A), and for photographs.

`image_cues` turns an `ImageData` into a `CueData`. Each cue is an entry of `CUES`: a function of a `Picture`.
Every range and number of bins is fixed, so that a descriptor depends on its image alone. What is learnt, the
vocabularies of visual words and the scale of the laser features, comes from the rows named ``train``."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from cuelearn.core.optional import require

from .base import CueData, ImageData, check_integer, check_rows, side_by_side
from .laser import LASER_FEATURE_NAMES, laser_features

__all__ = [
    *("BagOfWords", "CUES", "Cue", "IMAGE_CUES", "LASER_FEATURE_NAMES", "LocalDescriptors", "OBJECT_CUES"),
    *("PHOTO_CUES", "Picture", "ROBOT_CUES", "centred_mask", "count_words", "crfh", "cue_kernels"),
    *("describe", "dense_descriptors", "foreground_mask", "image_cues", "in_tasks", "laser_features"),
    *("rgb_histogram", "scaled", "shape_pyramid"),
]

#: The four of table 3.1, in its order (its CRFH is ``LxLy``).
ROBOT_CUES = ("colour", "LxLy", "bow", "laser")
#: The four of table 3.2, in its order.
OBJECT_CUES = ("LxLy", "DirC", "colour", "shape")
#: Seven for photographs: two of colour, two of derivatives, edges in a pyramid, words of two sizes.
PHOTO_CUES = ("RGB", "HSV", "derivatives", "directions", "shape pyramid", "words", "large words")

#: Scale-normalised derivatives from -RESPONSE_RANGE to RESPONSE_RANGE are told apart (grey values run from 0
#: to 1). An edge from black to white responds with 1/sqrt(2 pi) = 0.40 at every scale.
RESPONSE_RANGE = 0.2
#: Below this scale-normalised gradient magnitude, an edge of 6 grey levels, a pixel has no direction.
FLAT_MAGNITUDE = 0.01

#: Scales and bins of the receptive field histograms, by filters.
_FILTERS = {"LxLy": ((1.0, 2.0, 4.0), 15), "DirC": ((1.0, 4.0), 16)}
_HSV_BINS = (16, 4, 4)
_SHAPE_CELLS = 24  # per side
_STEP = 8  # of the patches, in pixels
_PYRAMID = (1, 2, 4)  # cells per side, by level
_PYRAMID_SECTORS = 16
_PYRAMID_SMOOTHING = 1.5

#: Images handed to one worker at a time.
IMAGES_PER_TASK = 16


class Picture:
    """An image as descriptors see it; what several of them need is made once, when first asked for.

    `image` is uint8 (height, width, 3), or already grey, float32 (height, width); `mask`, bool, is the
    object's, or None.
    """

    def __init__(self, image, mask=None):
        self.image, self.mask = image, mask
        self._derivatives = {}

    @cached_property
    def grey(self):
        """Luma, float32 from 0 to 1."""
        return _grey(self.image)

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
        if scale not in self._derivatives:
            from scipy.ndimage import gaussian_filter

            self._derivatives[scale] = [
                np.float32(scale) * gaussian_filter(self.grey, float(scale), order=order, mode="nearest")
                for order in ((0, 1), (1, 0))
            ]
        return self._derivatives[scale]


class LocalDescriptors(NamedTuple):
    """What a cue of words finds in one image: (n, width) descriptors, and which of them are in the middle.

    Where `central`, bool (n,), is given, half of the histogram of words is that of these alone.
    """

    descriptors: np.ndarray
    central: np.ndarray | None = None


class Cue(NamedTuple):
    """A way to describe a picture.

    `describe` takes a `Picture` and gives float32 (width,); where the cue is `local` it takes the step of the
    patches in pixels too and gives `LocalDescriptors`, which a vocabulary turns into a histogram. The columns
    are named by their place on `grid`.
    """

    describe: Callable
    grid: tuple[int, ...] | None = None
    local: bool = False


def scaled(image, factor):
    """The image at another size, by Lanczos' filter; what is much too large is halved by means first."""
    require("images", "PIL")
    from PIL import Image

    size = tuple(max(1, round(factor * side)) for side in image.shape[1::-1])
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0))


def in_the_middle(rows, columns, height, width):
    """Which points lie in the central ellipse with semi-axes a third of the sides: 35 % of the area."""
    return ((rows - height / 2) / (height / 3)) ** 2 + ((columns - width / 2) / (width / 3)) ** 2 <= 1


def _check_image(image):
    """Refuse what is not an RGB image of bytes."""
    shape, dtype = getattr(image, "shape", None), getattr(image, "dtype", None)
    if shape is None or len(shape) != 3 or shape[2] != 3 or dtype != np.uint8 or 0 in shape:
        found = type(image).__name__ if shape is None else f"shape {tuple(shape)} of {dtype}"
        hint = " read_image(path) opens a file." if isinstance(image, str | os.PathLike) else ""
        raise ValueError(f"image must be an array of shape (height, width, 3) of uint8, got {found}.{hint}")


def _check_mask(mask, shape=None):
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


def _grey(image):
    """Luma of an RGB image, float32 from 0 to 1; a grey image of float32 as it is."""
    if getattr(image, "dtype", None) == np.float32 and image.ndim == 2:
        return image
    _check_image(image)
    weights = (np.float32(weight / 255) for weight in (0.299, 0.587, 0.114))
    red, green, blue = (image[..., channel] * weight for channel, weight in enumerate(weights))
    return red + green + blue


def _share(index, n_bins, mask=None):
    """Share of the pixels in each bin, float32, sum 1."""
    index = index.ravel() if mask is None else index[_check_mask(mask, index.shape)]
    return (np.bincount(index, minlength=n_bins) / index.size).astype(np.float32)


def _shares(bins, mask=None):
    """Histograms one after the other, sum 1, of (index arrays, number of bins of each)."""
    indices, n_bins = bins
    return np.concatenate([_share(index, n_bins, mask) / np.float32(len(indices)) for index in indices])


def _twice(bins, picture):
    """Half for the whole picture, half for its middle."""
    return np.concatenate([_shares(bins), _shares(bins, picture.middle)]) / np.float32(2)


def _rgb_bins(picture):
    _check_image(picture.image)
    level = (picture.image >> 5).astype(np.int32)
    return [(level[..., 0] * 8 + level[..., 1]) * 8 + level[..., 2]], 512


def _hsv_bins(picture):
    require("images", "skimage")
    from skimage.color import rgb2hsv

    bins = np.array(_HSV_BINS)
    hue, saturation, value = np.moveaxis(
        np.minimum((rgb2hsv(picture.image) * bins).astype(np.intp), bins - 1), 2, 0
    )
    return [(hue * bins[1] + saturation) * bins[2] + value], int(bins.prod())


def _field_bins(picture, filters, scales, bins):
    """Of each pixel, the bin of its derivatives: at each scale (LxLy), or of all scales together (DirC)."""
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
        lx, ly = picture.derivatives(scale)
        turns = np.arctan2(ly, lx) * np.float32(bins / (2 * math.pi))
        sector = np.floor(turns + np.float32(0.5)).astype(np.int32) % bins
        sector[lx * lx + ly * ly < FLAT_MAGNITUDE**2] = bins
        index = index * (bins + 1) + sector
    return [index], (bins + 1) ** len(scales)


def rgb_histogram(image, mask=None):
    """Joint histogram of red, green and blue, eight bins each: float32 (512,), sum 1.

    `image` is uint8 of shape (height, width, 3). Only the pixels where `mask`, bool (height, width), is True
    count, at least one. Bin (r, g, b) stands at ``(r * 8 + g) * 8 + b``.

    Examples
    --------
    >>> red = np.zeros((4, 4, 3), np.uint8)
    >>> red[..., 0] = 255
    >>> int(rgb_histogram(red).argmax())
    448
    """
    return _shares(_rgb_bins(Picture(image)), mask)


def crfh(image, filters="LxLy", scales=None, bins=None, mask=None):
    r"""Composed receptive field histogram of the grey image (Linde and Lindeberg, 2004).

    At scale :math:`\sigma` the filters are :math:`L_x = \sigma\, \partial_x (g_\sigma * f)` and :math:`L_y =
    \sigma\, \partial_y (g_\sigma * f)`, for grey values f from 0 to 1; outside the image the nearest pixel is
    repeated.

    ``"LxLy"``
        The joint histogram of :math:`(L_x, L_y)` at each scale, one after the other. Bins are equally wide
        from -0.2 to 0.2; stronger responses count in the outermost.
    ``"DirC"``
        The gradient direction :math:`\operatorname{atan2}(L_y, L_x)` in `bins` equal sectors, of which the
        first is centred on the x axis, and one bin more for magnitudes below 0.01; binned jointly over all
        scales. It forgets contrast.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3), or of float32, shape (height, width)
        In colour, or grey.
    filters : {"LxLy", "DirC"}, default="LxLy"
    scales : sequence of float, optional
        :math:`\sigma` in pixels, positive; (1, 2, 4) for LxLy, as Leibe and Schiele (2003) use, (1, 4) for
        DirC.
    bins : int, optional
        Bins per derivative, 15, or sectors, 16. At most 10,000 bins in all.
    mask : ndarray of bool, shape (height, width), optional
        Count only the pixels where it is True. The filters still see what surrounds them.

    Returns
    -------
    ndarray of float32
        Shares of the pixels, sum 1. LxLy: shape (n_scales * bins**2,), bin (s, x, y) at ``(s * bins + x) *
        bins + y``. DirC: shape ((bins + 1)**n_scales,), the last scale running fastest, the flat bin last.

    Examples
    --------
    >>> flat = np.full((32, 32, 3), 90, np.uint8)
    >>> crfh(flat).shape, crfh(flat, "DirC").shape
    ((675,), (289,))
    """
    if filters not in _FILTERS:
        raise ValueError(f"filters must be one of {list(_FILTERS)}, got {filters!r}.")
    scales = _FILTERS[filters][0] if scales is None else tuple(scales)
    bins = _FILTERS[filters][1] if bins is None else bins
    if not scales or not all(isinstance(s, numbers.Real) and math.isfinite(s) and s > 0 for s in scales):
        raise ValueError(f"scales must be positive numbers of pixels, at least one, got {scales}.")
    check_integer("bins", bins, 1)
    size = len(scales) * bins**2 if filters == "LxLy" else (bins + 1) ** len(scales)
    if size > 10_000:
        raise ValueError(f"bins and scales must give at most 10,000 bins in all, got {size}.")

    return _shares(_field_bins(Picture(image), filters, scales, bins), mask)


def dense_descriptors(image, step=_STEP):
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
    >>> dense_descriptors(np.zeros((96, 128, 3), np.uint8)).shape
    (117, 128)
    """
    require("images", "skimage")
    from skimage.feature import hog

    grey = _grey(image)
    check_integer("step", step, 2)
    if min(grey.shape) < 4 * step:
        raise ValueError(
            f"image must be at least 4 * step = {4 * step} pixels high and wide, "
            f"got {grey.shape[0]} x {grey.shape[1]}."
        )
    blocks = hog(grey, 8, (step, step), cells_per_block=(4, 4), feature_vector=False)
    return np.minimum(np.rint(512 * blocks.reshape(-1, 128)), 255).astype(np.uint8)


class BagOfWords(TransformerMixin, BaseEstimator):
    """Histograms of visual words (Sivic and Zisserman, 2003): each patch counts for the nearest of `n_words`.

    Parameters
    ----------
    n_words : int, default=300
        Size of the vocabulary (thesis appendix A); at least 2.
    step : int, default=8
        Of `dense_descriptors`, in pixels.
    max_images, max_descriptors : int, default=500 and 50000
        The vocabulary is learnt from at most so many images, drawn at random, and so many of their
        descriptors, equally many of each image.
    random_state : int, default=0
        The same seed and images give the same bits for any number of threads.

    Attributes
    ----------
    words_ : ndarray of float32, shape (n_words, width)
        The centres; width 128 for `dense_descriptors`.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (6, 64, 64, 3), dtype=np.uint8)
    >>> BagOfWords(n_words=10).fit(images[:4]).transform(images).shape
    (6, 10)
    """

    _parameter_constraints = {
        "n_words": [Interval(numbers.Integral, 2, None, closed="left")],
        "step": [Interval(numbers.Integral, 2, None, closed="left")],
        "max_images": [Interval(numbers.Integral, 1, None, closed="left")],
        "max_descriptors": [Interval(numbers.Integral, 1, None, closed="left")],
        "random_state": [Interval(numbers.Integral, 0, None, closed="left")],
    }

    def __init__(self, n_words=300, step=8, max_images=500, max_descriptors=50_000, random_state=0):
        self.n_words = n_words
        self.step = step
        self.max_images = max_images
        self.max_descriptors = max_descriptors
        self.random_state = random_state

    def fit(self, images, y=None, rows=None):
        """Learn the vocabulary from images, or from local descriptors of each, read where drawn.

        `rows` are those of `images` that are training images; all by default.
        """
        from sklearn.cluster import MiniBatchKMeans
        from threadpoolctl import threadpool_limits

        self._validate_params()
        rows = np.arange(len(images)) if rows is None else rows
        if len(rows) == 0:
            raise ValueError("images must hold at least one image, got none.")
        rng = np.random.default_rng(self.random_state)
        drawn = self._draw(rows, rng)
        quota = -(-self.max_descriptors // len(drawn))
        sample = []
        for i in drawn:
            descriptors = self._descriptors(images[int(i)])
            sample.append(descriptors[np.sort(rng.permutation(len(descriptors))[:quota])])
        sample = np.concatenate(sample).astype(np.float32)
        if len(sample) < self.n_words:
            raise ValueError(
                f"images must give at least n_words = {self.n_words} descriptors, got {len(sample)} "
                f"from {len(drawn)} images."
            )
        seed = int(rng.integers(2**31))
        clusters = MiniBatchKMeans(self.n_words, batch_size=2048, n_init=1, max_iter=20, random_state=seed)
        with threadpool_limits(1):  # more threads would add in another order
            clusters.fit(sample)
        self.words_ = clusters.cluster_centers_.astype(np.float32)
        self.n_features_in_ = self.words_.shape[1]
        return self

    def transform(self, images):
        """Shares of each image's patches by word, float32 (n_images, n_words), each row with sum 1."""
        from threadpoolctl import threadpool_limits

        check_is_fitted(self)
        rows = np.empty((len(images), len(self.words_)), dtype=np.float32)
        # |d - w|^2 without the part that all words share
        constant = (self.words_.astype(np.float64) ** 2).sum(axis=1).astype(np.float32)
        with threadpool_limits(1):
            for i in range(len(images)):
                distance = self._descriptors(images[i]).astype(np.float32) @ self.words_.T
                distance *= -2
                distance += constant
                rows[i] = _share(distance.argmin(axis=1), len(self.words_))
        return rows

    def drawn(self, rows):
        """Of these training rows, those that `fit` reads."""
        return self._draw(rows, np.random.default_rng(self.random_state))

    def _draw(self, rows, rng):
        return rows[np.sort(rng.permutation(len(rows))[: self.max_images])]

    def _descriptors(self, image):
        if getattr(image, "ndim", None) != 2:
            return dense_descriptors(image, self.step)
        if image.dtype not in (np.uint8, np.float32) or len(image) == 0:
            raise ValueError(
                f"descriptors must be of shape (n_patches, width) of uint8 or float32, got {image.shape} "
                f"of {image.dtype}."
            )
        return image


def centred_mask(mask):
    r"""Global shape: the silhouette moved to its centroid, scaled to unit area, on a grid of 24 x 24 cells.

    The grid is a square of side :math:`3 \sqrt A`, A the silhouette's area in pixels, centred on the
    centroid; a cell's value is the share of it that the silhouette covers, computed exactly. So the vector
    does not change when the silhouette moves by whole pixels, and hardly when it is scaled. `mask`, bool
    (height, width), is True on the object, on at least one pixel. Returns float32 (576,) from 0 to 1, row by
    row.

    Examples
    --------
    >>> square = np.zeros((40, 40), bool)
    >>> square[3:13, 20:30] = True
    >>> centred_mask(square).reshape(24, 24)[12, ::4]
    array([0., 0., 1., 1., 0., 0.], dtype=float32)
    """
    mask = _check_mask(mask)
    rows, columns = mask.sum(axis=1), mask.sum(axis=0)
    area = int(rows.sum())
    side, size = 3.0 * math.sqrt(area), _SHAPE_CELLS
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
    >>> image = np.full((40, 40, 3), (20, 60, 200), np.uint8)
    >>> image[10:30, 12:28] = (180, 30, 20)
    >>> int(foreground_mask(image).sum())
    320
    """
    require("images", "skimage")
    from scipy import ndimage
    from skimage.color import rgb2lab
    from skimage.filters import threshold_otsu

    _check_image(image)

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


def cue_kernels(data, cues=None):
    r"""The thesis's kernel on each cue of a `CueData` made by `image_cues`, or on those named.

    Exponential :math:`\chi^2` for what comes from images (masks are not named apart there), Gaussian for the
    laser, with ``gamma="mean"``: a list of (name, kernel, columns). `ValueError` if a cue is unknown.
    """
    # Here and not above: it loads compiled code, which describing images does not need.
    from cuelearn.kernels import RBF, Chi2

    wanted = list(data.cues) if cues is None else cues
    return [triple for cue in wanted for triple in data.triples(RBF() if cue == "laser" else Chi2(), [cue])]


def shape_pyramid(image):
    """Orientation of edges, by contrast, in the image, its quarters, its sixteenths: float32 (336,), sum 1.

    A level's histograms have sum 1/3; an image without edges counts every orientation alike. `image` is uint8
    (height, width, 3).

    References
    ----------
    A. Bosch, A. Zisserman and X. Munoz (2007). Representing shape with a spatial pyramid kernel. CIVR.
    """
    require("images", "skimage")
    from skimage.color import rgb2gray
    from skimage.feature import hog
    from skimage.filters import gaussian

    _check_image(image)
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


def _patches(picture, step):
    """Patches of 4 x 4 cells, and which of them have their centres in the middle."""
    descriptors = dense_descriptors(picture.grey, step)
    height, width = picture.grey.shape
    centres = [np.arange(side // step - 3) * step + 2 * step for side in (height, width)]
    rows, columns = np.meshgrid(*centres, indexing="ij")
    return LocalDescriptors(descriptors, in_the_middle(rows, columns, height, width).ravel())


def _large_patches(picture, step):
    """The same, twice as large."""
    height, width = picture.image.shape[:2]
    if min(height, width) < 8 * step:
        raise ValueError(
            f"image must be at least 8 * step = {8 * step} pixels high and wide, got {height} x {width}."
        )
    return _patches(picture.half, step)


def _silhouette(picture):
    return centred_mask(_check_mask(picture.mask, picture.image.shape[:2]))


def _fields(filters):
    return lambda picture: _shares(_field_bins(picture, filters, *_FILTERS[filters]), picture.mask)


#: How each cue describes a picture.
CUES = {
    "colour": Cue(lambda picture: _shares(_rgb_bins(picture), picture.mask), (8, 8, 8)),
    "LxLy": Cue(_fields("LxLy"), (3, 15, 15)),
    "DirC": Cue(_fields("DirC"), (17, 17)),
    "bow": Cue(lambda picture, step: LocalDescriptors(dense_descriptors(picture.grey, step)), local=True),
    "shape": Cue(_silhouette, (_SHAPE_CELLS, _SHAPE_CELLS)),
    "RGB": Cue(lambda picture: _twice(_rgb_bins(picture), picture), (2, 8, 8, 8)),
    "HSV": Cue(lambda picture: _twice(_hsv_bins(picture), picture), (2, *_HSV_BINS)),
    "derivatives": Cue(
        lambda picture: _twice(_field_bins(picture, "LxLy", (1.0, 2.0), 15), picture), (2, 2, 15, 15)
    ),
    "directions": Cue(
        lambda picture: _twice(_field_bins(picture, "DirC", (1.0, 4.0), 16), picture), (2, 17, 17)
    ),
    "shape pyramid": Cue(lambda picture: shape_pyramid(picture.image)),
    "words": Cue(_patches, local=True),
    "large words": Cue(_large_patches, local=True),
}
#: All cues that `image_cues` knows.
IMAGE_CUES = (*CUES, "laser")


def count_words(vocabulary, found):
    """Histograms of words, float32 (n, width), from the `LocalDescriptors` of n images."""
    counts = vocabulary.transform([one.descriptors for one in found])
    if found[0].central is None:
        return counts
    middle = vocabulary.transform([one.descriptors[one.central] for one in found])
    return np.concatenate([counts, middle], axis=1) / np.float32(2)


def in_tasks(describe, sequences, *arguments, rows=None, n_jobs=None, verbose=False, name="cues"):
    """List of what `describe` makes of blocks of the sequences, or of these rows; the same for any n_jobs."""
    from joblib import Parallel, delayed

    from cuelearn.core.progress import progress

    n = len(sequences[0]) if rows is None else len(rows)
    blocks = [slice(start, min(start + IMAGES_PER_TASK, n)) for start in range(0, n, IMAGES_PER_TASK)]
    if rows is not None:
        blocks = [rows[block] for block in blocks]
    parts = ([_taken(items, block) for items in sequences] for block in blocks)
    done = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(describe)(*part, *arguments) for part in parts
    )
    return list(progress(done, name=name, total=len(blocks), verbose=verbose))


def _taken(items, block):
    """The rows of an array, of image files, or of a list; None stays."""
    if isinstance(items, list | tuple) and not isinstance(block, slice):
        return [items[row] for row in block]
    return None if items is None else items[block]


def describe(data, cues, *, rows=None, vocabularies=None, size=240, n_jobs=None, verbose=False, name="cues"):
    """What `CUES` say of images: for each cue an array float32 (n, width).

    For a local cue without an entry in `vocabularies`, a dict of fitted `BagOfWords`: a list of
    `LocalDescriptors`. `rows` are those described, all by default; the rest is as for `image_cues`.
    """
    images, names = data.images, data.frames.get("name")
    if size is not None and data.masks is None and hasattr(images, "shrunk"):  # masks have the full size
        images = images.shrunk(2 * size)
    sequences = np.arange(len(data.y)), images, data.masks, names
    options = {"rows": rows, "n_jobs": n_jobs, "verbose": verbose, "name": name}
    words = vocabularies or {}
    parts = in_tasks(_describe, sequences, cues, words, size, **options)
    found = {cue: [one for part in parts for one in part[cue]] for cue in cues}
    counted = [cue for cue in cues if cue in words or not CUES[cue].local]
    return found | {cue: np.array(found[cue], dtype=np.float32) for cue in counted}


def _describe(rows, images, masks, names, cues, words, size):
    """Describe one task's images: by cue, a row or the local descriptors of each image."""
    found = {cue: [] for cue in cues}
    for i, row in enumerate(rows):
        try:
            picture = _at_size(images[i], None if masks is None else masks[i], size)
            for cue in cues:
                step = [words[cue].step if cue in words else _STEP] if CUES[cue].local else []
                found[cue].append(CUES[cue].describe(picture, *step))
        except ValueError as error:
            known = "" if names is None else f" ({names[i]})"
            raise ValueError(f"Image {row}{known} cannot be described: {error}") from None
    return found | {cue: count_words(words[cue], found[cue]) for cue in cues if cue in words}


def _at_size(image, mask, size):
    """The picture, scaled down with its mask where its shorter side has more than `size` pixels."""
    _check_image(image)
    factor = 1 if size is None else size / min(image.shape[:2])
    if factor >= 1:
        return Picture(image, mask)
    if mask is not None:
        mask = scaled(_check_mask(mask, image.shape[:2]).astype(np.uint8) * 255, factor) >= 128
    return Picture(scaled(image, factor), mask)


def image_cues(
    data,
    cues=PHOTO_CUES,
    *,
    train=None,
    size=240,
    n_words=300,
    vocabulary=None,
    random_state=0,
    n_jobs=1,
    verbose=False,
):
    """Describe images by several cues.

    =============  =======  =====================================================================
    cue            columns  what it counts
    =============  =======  =====================================================================
    colour         512      red, green and blue jointly (`rgb_histogram`)
    LxLy           675      derivatives at three scales (`crfh`)
    DirC           289      gradient directions at two scales jointly (`crfh`)
    bow            n_words  patches of 32 x 32 pixels, by the nearest visual word
    shape          576      silhouette (`centred_mask`); needs masks
    laser          45       `laser_features`, standardised over the training rows; needs scans
    RGB            1024     as colour
    HSV            512      hue, saturation and value jointly
    derivatives    900      as LxLy, at two scales
    directions     578      as DirC
    shape pyramid  336      edges by orientation, in the image, its quarters and sixteenths
    words          2n_words  as bow
    large words    2n_words  the same with patches of 64 x 64 pixels
    =============  =======  =====================================================================

    The first three count over the object only where masks are known. From RGB on they are for photographs,
    `PHOTO_CUES`: they need no masks; one half of each, besides the pyramid, counts the whole image, the other
    an ellipse in its middle, where most photographers put what they mean.

    Parameters
    ----------
    data : ImageData
        From `load_image_folder`, `load_idol2`, `load_eth80`, `load_flowers17`, `make_robot`, `make_objects`,
        or `load_emoji` by its method `on_backgrounds`;
        ``ImageData(images, y, names_of_classes)`` takes images at hand.
    cues : sequence of str, default=PHOTO_CUES
        In the order wanted. The thesis's choices are `ROBOT_CUES` and `OBJECT_CUES`.
    train : array of int or of bool, optional
        Rows from which vocabularies and the scale of ``laser`` are learnt; ``data.train`` by default. Cues
        that learn need it, so that nothing of the test rows enters by oversight; ``np.arange(n)`` takes all.
    size : int or None, default=240
        Images whose shorter side has more pixels are scaled down to it (with their masks); None leaves all.
    n_words : int, default=300
        Size of each vocabulary.
    vocabulary : BagOfWords or dict of cue to BagOfWords, optional
        Fitted ones, in place of learning them.
    random_state : int, default=0
        Seed of the vocabularies.
    n_jobs : int, default=1
        Processes that describe images; -1 takes all cores. The result has the same bits for any number.
    verbose : bool, default=False
        Progress bars.

    Returns
    -------
    CueData
        `X` float32 of shape (n, d). The rest is that of `data`.

    Raises
    ------
    TypeError
        If data is no `ImageData`, such as a path.
    ValueError
        If a cue needs masks, laser scans or `train`, which are not there; if an image, a mask or a scan is
        not as it must be, with the name of the frame.

    Notes
    -----
    A photograph of 320 x 240 pixels takes 25 ms with colour, LxLy, DirC and bow, 50 ms with `PHOTO_CUES`, on
    one core. What scales images, looks at patches or hue, or makes the pyramid, needs the extra ``images``.

    Examples
    --------
    >>> from cuelearn.datasets import make_robot
    >>> image_cues(make_robot(5, 32, 32), ["colour", "DirC"])
    <robot, generated: X (60, 801) float32, cues colour (512), DirC (289)>
    """
    cues = _check_cues(data, cues)
    if size is not None:
        check_integer("size", size, 16)
    local = [cue for cue in cues if cue in CUES and CUES[cue].local]
    words = vocabulary
    if not isinstance(vocabulary, dict):
        words = {} if vocabulary is None else dict.fromkeys(local, vocabulary)
    unlearnt = [cue for cue in local if cue not in words]
    options, learnt, blocks = {"size": size, "n_jobs": n_jobs, "verbose": verbose}, [], {}
    scanned = ["laser"] if "laser" in cues else []
    if unlearnt or scanned:
        train = data.train if train is None else train
        if train is None:
            raise ValueError(
                f"train must name the rows that the cues {[*unlearnt, *scanned]} learn from "
                "(np.arange(n) takes all), got None."
            )
        train = check_rows("train", train, len(data.y))
    if unlearnt:
        bag = BagOfWords(n_words, random_state=random_state)
        drawn = bag.drawn(train)
        found = describe(data, unlearnt, rows=drawn, name="words", **options)
        for cue in unlearnt:
            described = dict(zip(drawn.tolist(), (one.descriptors for one in found[cue]), strict=True))
            try:
                words = words | {cue: clone(bag).fit(described, rows=train)}
            except ValueError as error:
                raise ValueError(f"The vocabulary of cue {cue!r} cannot be learnt: {error}") from None
        learnt.append(f"{n_words} words learnt from {len(train)} images")
    if scanned:
        scans = laser_features(data.laser, data.laser_angles, names=data.frames.get("name"))
        scale = scans[train].std(axis=0)
        blocks["laser"] = (scans - scans[train].mean(axis=0)) / np.where(scale > 0, scale, 1)
        learnt.append(f"laser features standardised over {len(train)} frames")
    drawn = [cue for cue in cues if cue != "laser"]
    if drawn:
        blocks |= describe(data, drawn, vocabularies=words, **options)
    X, columns = side_by_side({cue: blocks[cue] for cue in cues}, np.float32)
    features = []
    for cue in cues:
        if cue == "laser":
            features += [f"laser {name}" for name in LASER_FEATURE_NAMES]
        else:  # by the place in the histogram or on the grid
            places = np.ndindex(CUES[cue].grid or (blocks[cue].shape[1],))
            features += [f"{cue} {','.join(map(str, place))}" for place in places]
    how = f" ({'; '.join(learnt)})" if learnt else ""
    description = f"{data.description.rstrip('. ')}. Described by {', '.join(cues)}{how}."
    split, targets = (data.train, data.test), list(data.target_names)
    return CueData(X, data.y, columns, *split, features, targets, description, data.provenance)


def _check_cues(data, cues):
    """The cues as a tuple, each known, given once, and with what it needs in the data."""
    if not isinstance(data, ImageData):
        found = (
            f"the path {os.fspath(data)!r}" if isinstance(data, str | os.PathLike) else type(data).__name__
        )
        raise TypeError(
            f"data must be an ImageData, got {found}: load_image_folder(path) opens a folder of images, "
            "ImageData(images, y, names_of_classes) takes arrays."
        )
    cues = (cues,) if isinstance(cues, str) else tuple(cues)
    if not cues or not set(cues) <= set(IMAGE_CUES) or len(set(cues)) < len(cues):
        raise ValueError(f"cues must be some of {list(IMAGE_CUES)}, each once, got {list(cues)}.")
    if "laser" in cues and (data.laser is None or data.laser_angles is None):
        raise ValueError("The cue 'laser' needs laser scans with their angles, but data has none.")
    if "shape" in cues and data.masks is None:
        raise ValueError("The cue 'shape' needs masks, but data has none; foreground_mask can make them.")
    for name in ("images", "masks", "laser"):
        held = getattr(data, name)
        if held is not None and len(held) != len(data.y):
            raise ValueError(f"data.{name} must hold one entry per image, {len(data.y)}, got {len(held)}.")
    return cues
