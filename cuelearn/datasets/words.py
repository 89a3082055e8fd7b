"""Visual words: local descriptors of patches, vocabularies, histograms of the nearest words.

Functions of patches return descriptors (n, width), rows and columns of the centres, and the picture's shape.
"""

from __future__ import annotations

import itertools
import math
import numbers
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .descriptors import Picture, cell_of, in_the_middle, share, skimage

__all__ = ["BagOfWords", "count_words"]

LARGEST_VALUE, FLAT_NORM = 0.2, 1e-5  # of a patch: clipping, and the norm that counts as 0
HUES = 36
RADII, ANGLES = (2, 3, 4, 5), 12  # of self-similarity, in units
NOISE = 0.02**2  # mean squared difference of grey values that counts as 0
MAX_CORNERS = 50
MAX_IMAGES, MAX_DESCRIPTORS = 500, 50_000  # for a vocabulary
CORNER_THRESHOLD = 0.01  # relative to the strongest corner
CORNER_NOISE = 1e-12  # far below the response to one grey level, far above rounding


class LocalDescriptors(NamedTuple):
    """The (n, width) descriptors of one image for a cue of words, and their positions.

    Those `central` give half of the histogram; or each of `n_cells` cells has its own histogram.
    """

    descriptors: np.ndarray
    central: np.ndarray | None = None
    cell: np.ndarray | None = None
    n_cells: int = 1


# ---- patches


def dense_patches(picture, step):
    """Upright patches on a grid with the layout of SIFT (Lowe, 2004): 4 x 4 cells of 8 orientations.

    Descriptors are normalised, clipped at 0.2, normalised again and stored as bytes; opposite gradients are
    equal.
    """
    grey = picture.grey
    if min(grey.shape) < 4 * step:
        raise ValueError(
            f"image must be at least 4 * step = {4 * step} pixels high and wide (for large words at half its "
            f"size), got {grey.shape[0]} x {grey.shape[1]}: lower the step, or leave out cues of words."
        )
    patches = np.lib.stride_tricks.sliding_window_view(_edge_cells(grey, step), (4, 4), axis=(0, 1))
    histograms = patches.transpose(0, 1, 3, 4, 2).reshape(-1, 128)
    for most in (LARGEST_VALUE, 1.0):
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
        threshold_rel=CORNER_THRESHOLD,
        num_peaks=MAX_CORNERS,
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

    def __init__(self, n_words=300, step=8, random_state=0):
        self.n_words = n_words
        self.step = step
        self.random_state = random_state

    def fit(self, images, y=None, rows=None):
        """Learn the vocabulary from images, or from the local descriptors of each.

        `rows` are the training images; all by default. Only drawn images are read.
        """
        from sklearn.cluster import MiniBatchKMeans
        from threadpoolctl import threadpool_limits

        self._validate_params()
        if rows is None:
            rows = np.arange(len(images))
        if len(rows) == 0:
            raise ValueError("images must hold at least one image, got none.")
        rng = np.random.default_rng(self.random_state)
        drawn = self.drawn(rows, rng)
        quota = -(-MAX_DESCRIPTORS // len(drawn))
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
        with threadpool_limits(1):  # fixes the order of sums
            clusters.fit(sample)
        self.words_ = clusters.cluster_centers_.astype(np.float32)
        self.n_features_in_ = self.words_.shape[1]
        return self

    def transform(self, images):
        """Shares of each image's patches by word, float32 (n_images, n_words), each row with sum 1."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            rows = [share(self.nearest(image), len(self.words_)) for image in images]
        return np.array(rows, dtype=np.float32).reshape(len(images), len(self.words_))

    def nearest(self, image):
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

    def drawn(self, rows, rng=None):
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
