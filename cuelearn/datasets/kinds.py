r"""Fifteen kinds of features of small grey images, groups of columns of two tables, and four kernels on each.

The paper on online kernel selection (Yang, Mahdavi, Jin, Yi and Hoi, AAAI 2012) starts from 15 kinds of INRIA
image features (TagProp: Guillaumin et al., ICCV 2009) and puts four kernels on each. `ImageKinds` describes
small grey images, such as digits, by 15 kinds in the same spirit, strong and weak ones."""

from __future__ import annotations

import math
import numbers
from functools import lru_cache

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from cuelearn.core.optional import require

from .base import check_rows, side_by_side
from .bundled import pooling
from .cues import in_tasks
from .descriptors import crfh, dense_descriptors
from .words import BagOfWords

__all__ = [
    *("IMAGE_KINDS", "ImageKinds", "image_kinds", "kind_kernels", "letter_groups", "satimage_groups"),
    "stack_kinds",
]

#: Names of the 15 kinds, in their order.
IMAGE_KINDS = (
    *("lbp", "lbp-3x1", "dense-words", "dense-words-3x1", "gist", "directions", "projections"),
    *("corner-words", "corner-words-3x1", "hog4", "hog7", "grey", "grey-3x1", "pixels", "fourier"),
)

#: Pixels per side of the images taken.
SMALLEST, LARGEST = 15, 128

_BANDS = 3
_LBP_PATTERNS = 59  # of eight neighbours: 58 uniform ones, told apart, and all others
_GREY_BINS = 32
_SECTORS = 36
_HOG_ORIENTATIONS = {4: 8, 7: 6}  # by cells per side
_GIST_ORIENTATIONS = 6
_GIST_WAVELENGTHS = (2.0, 2.0 * math.sqrt(2.0), 4.0)  # in units of _unit
_GIST_CELLS = 4
_PIXELS = 7
_FREQUENCIES = 7  # cycles per image side, at most
_MAX_CORNERS = 50
_CORNER_THRESHOLD = 0.01  # of the image's strongest
_CORNER_NOISE = 1e-12  # far below the answer to a contrast of one grey level, far above that of rounding
_DESCRIPTORS_PER_WORD = 200
_MAX_IMAGES = 500


class ImageKinds(BaseEstimator):
    r"""The 15 kinds of features, with visual words learnt from training images.

    With u = max(2, side // 14) pixels, the shorter side counted (2 for images of 28 x 28):

    ====================  =========  ======================================================================
    name                  columns    what
    ====================  =========  ======================================================================
    ``lbp``               59         local binary patterns: eight neighbours at distance u / 2, uniform
    ``lbp-3x1``           177        the same in three bands
    ``dense-words``       n_words    visual words of dense patches: 4 x 4 cells of u x u pixels, every u
    ``dense-words-3x1``   3 n_words  the same in three bands
    ``gist``              288        Gabor filters, 3 wavelengths x 6 orientations, in 4 x 4 cells
    ``directions``        37         gradient directions: 36 sectors, and one bin for flat pixels
    ``projections``       h + w      mean of each row, then of each column
    ``corner-words``      n_words    visual words of the same patches, at Harris corners only
    ``corner-words-3x1``  3 n_words  the same in three bands
    ``hog4``              288        oriented gradients: 4 x 4 cells, 8 orientations, blocks of 2 x 2 cells
    ``hog7``              294        oriented gradients: 7 x 7 cells, 6 orientations, normalised as a whole
    ``grey``              32         grey values
    ``grey-3x1``          96         the same in three bands
    ``pixels``            49         the image at 7 x 7 pixels, averaged by area
    ``fourier``           113        magnitudes of Fourier coefficients, up to 7 cycles per side
    ====================  =========  ======================================================================

    Bands are three horizontal ones of equal height, a histogram each, divided by the number of pixels
    (patches, corners) of the whole image. Every entry is finite and not negative, as the chi-squared kernel
    asks. The kinds were chosen before any kernel was tried. Dense words are numbers 3 and 4 and the grey
    histogram number 12, so that their kernels have the numbers of the paper's dense SIFT (9 to 16) and Lab
    colours (45 to 48).

    Parameters
    ----------
    n_words : int, default=100
        Size of each of the two vocabularies, learnt from at most 500 images, drawn at random; at least 2.
    n_jobs : int, optional
        Processes that describe images; None is 1, -1 all cores. The result has the same bits for any number.
    random_state : int, default=0
        Seed of the draws and of the clustering.

    Attributes
    ----------
    dense_vocabulary_, corner_vocabulary_ : BagOfWords
    image_shape_ : (int, int)
        Height and width in pixels.

    Notes
    -----
    Images are described at 256 levels, so that bytes and their 255th parts give the same bits. 4 ms and 9 kB
    per image of 28 x 28 pixels on one core; learning the words takes about 2 s more.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (14, 28, 28), dtype=np.uint8)
    >>> ImageKinds(n_words=20).fit(images[:10]).transform(images[10:])["dense-words-3x1"].shape
    (4, 60)
    """

    _parameter_constraints = {
        "n_words": [Interval(numbers.Integral, 2, None, closed="left")],
        "n_jobs": [None, numbers.Integral],
        "random_state": [Interval(numbers.Integral, 0, None, closed="left")],
    }

    def __init__(self, n_words=100, n_jobs=None, random_state=0):
        self.n_words = n_words
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, images, y=None):
        """Learn the two vocabularies from training images, (n, height, width): uint8, or floats from 0 to 1.

        Sides of 15 to 128 pixels. `ValueError` if the images give fewer descriptors than words.
        """
        require("images", "skimage")
        self._validate_params()
        levels = _levels(images)
        seeds = np.random.default_rng(self.random_state)
        drawn = np.sort(seeds.permutation(len(levels))[:_MAX_IMAGES])
        seed = int(seeds.integers(2**31))
        described = sum(in_tasks(_locally, [levels[drawn]], n_jobs=self.n_jobs), [])
        for which in ("dense", "corner"):
            descriptors = [part[which][0] for part in described if len(part[which][0])]
            found = sum(map(len, descriptors))
            if found < self.n_words:
                raise ValueError(
                    f"images must give at least n_words = {self.n_words} descriptors for the {which} words, "
                    f"got {found} from {len(drawn)} images."
                )
            quota = _DESCRIPTORS_PER_WORD * self.n_words
            vocabulary = BagOfWords(
                self.n_words, max_images=len(descriptors), max_descriptors=quota, random_state=seed
            )
            setattr(self, f"{which}_vocabulary_", vocabulary.fit(descriptors))
        self.image_shape_ = levels.shape[1:]
        return self

    def transform(self, images):
        """Describe images of the size of those of `fit`: float32 (n, n_columns) for each of `IMAGE_KINDS`."""
        check_is_fitted(self)
        levels = _levels(images)
        if levels.shape[1:] != self.image_shape_:
            found, wanted = (f"{height} x {width}" for height, width in (levels.shape[1:], self.image_shape_))
            raise ValueError(f"images must be of {wanted} pixels as those that were fitted, got {found}.")
        words = {"dense": self.dense_vocabulary_, "corner": self.corner_vocabulary_}
        parts = in_tasks(_describe, [levels], words, n_jobs=self.n_jobs)
        return {name: np.concatenate([part[name] for part in parts]) for name in IMAGE_KINDS}


def image_kinds(images, *, n_jobs=None, random_state=0, words_from=None):
    """Describe small grey images by 15 kinds of features: `ImageKinds` fitted and applied.

    Parameters
    ----------
    images, n_jobs, random_state
        As `ImageKinds` has them.
    words_from : array of int or of bool, optional
        Rows of `images` from which the visual words are learnt, the training rows; all by default.

    Examples
    --------
    >>> images = np.random.default_rng(0).integers(0, 256, (60, 28, 28), dtype=np.uint8)
    >>> X, groups = stack_kinds(image_kinds(images, words_from=np.arange(50)))
    >>> X.shape, len(kind_kernels(groups))
    ((60, 2289), 60)
    """
    levels = _levels(images)
    rows = slice(None) if words_from is None else check_rows("words_from", words_from, len(levels))
    return ImageKinds(n_jobs=n_jobs, random_state=random_state).fit(levels[rows]).transform(levels)


def _levels(images):
    """The images as bytes."""
    images = np.asarray(images)
    sized = (
        images.ndim == 3
        and len(images)
        and SMALLEST <= min(images.shape[1:]) <= max(images.shape[1:]) <= LARGEST
    )
    if not sized or (images.dtype != np.uint8 and images.dtype.kind != "f"):
        raise ValueError(
            f"images must be of shape (n, height, width), n >= 1, with sides of {SMALLEST} to {LARGEST} "
            f"pixels, of uint8 or of floats from 0 to 1, got shape {images.shape} of {images.dtype}."
        )
    if images.dtype == np.uint8:
        return images
    lowest, highest = images.min(), images.max()
    if not (lowest >= 0 and highest <= 1):  # NaN fails both
        raise ValueError(
            f"images of floats must have grey values from 0 to 1, got {lowest:g} to {highest:g}."
        )
    return np.rint(images * 255).astype(np.uint8)


def _unit(shape):
    """Length of u in pixels, with which cells and filters grow."""
    return max(2, min(shape) // 14)


def _describe(levels, words):
    """All kinds of a block of images: dict of float32 arrays of shape (n_images, n_columns)."""
    kinds = {name: [] for name in IMAGE_KINDS}
    with threadpool_limits(1):
        for image in levels:
            grey = image * np.float32(1 / 255)
            for name, counts in (("lbp", _lbp_bands(image)), ("grey", _banded(image >> 3, _GREY_BINS))):
                kinds[name].append(counts.sum(axis=0) / image.size)
                kinds[f"{name}-3x1"].append(counts.ravel() / image.size)
            means = grey.mean(axis=1, dtype=np.float64), grey.mean(axis=0, dtype=np.float64)
            kinds["gist"].append(_gist(grey))
            kinds["directions"].append(crfh(grey, "DirC", (1.0,), _SECTORS))
            kinds["projections"].append(np.concatenate(means))
            kinds["hog4"].append(_hog(image, 4, 2))
            kinds["hog7"].append(_hog(image, 7, 7))
            kinds["pixels"].append(_pooled(grey, _PIXELS))
            kinds["fourier"].append(_fourier(grey))
    local = _locally(levels)
    for which, vocabulary in words.items():
        counts = _word_bands(vocabulary, [part[which] for part in local])
        total = np.maximum(counts.sum(axis=(1, 2)), 1)[:, None]  # an image without corners has zeros
        kinds[f"{which}-words"] = counts.sum(axis=1) / total
        kinds[f"{which}-words-3x1"] = counts.reshape(len(counts), -1) / total
    return {name: np.asarray(rows, dtype=np.float32) for name, rows in kinds.items()}


def _band_of(rows, height):
    """Band of each row, the third of the image in which the pixel's centre lies; exact on borders."""
    return ((2 * np.asarray(rows) + 1) * _BANDS // (2 * height)).astype(np.int64)


def _banded(index, n_bins):
    """Number of pixels in each bin, by band: shape (3, n_bins)."""
    band = _band_of(np.arange(index.shape[0]), index.shape[0])
    counts = np.bincount((band[:, None] * n_bins + index).ravel(), minlength=_BANDS * n_bins)
    return counts.reshape(_BANDS, n_bins)


def _pooled(values, cells):
    """Means over cells x cells equal cells of the last two axes, flat."""
    height, width = values.shape[-2:]
    return (pooling(height, cells) @ values @ pooling(width, cells).T).ravel()


def _framed(image, margin, describe):
    """What `describe` says of an image beyond which its nearest pixel is repeated."""
    described = describe(np.pad(image, margin, mode="edge"))
    return described[margin:-margin, margin:-margin]


def _lbp_bands(image):
    from skimage.feature import local_binary_pattern

    radius = _unit(image.shape) / 2

    def patterns(framed):
        return local_binary_pattern(framed, 8, radius, method="nri_uniform")

    return _banded(_framed(image, math.ceil(radius) + 1, patterns).astype(np.int64), _LBP_PATTERNS)


def _locally(levels):
    """Descriptors of each image's patches, ``"dense"``, and at corners, ``"corner"``, with the band of each.

    Patch (i, j) has its centre at row u (i + 2) - 1/2 and column u (j + 2) - 1/2; all lie within the image. A
    corner takes the patch whose centre is nearest to it, and counts in the band in which it lies itself.
    """
    from skimage.feature import corner_harris, corner_peaks

    height, width = levels.shape[1:]
    unit = _unit((height, width))
    last = height // unit - 4, width // unit - 4
    dense_bands = _band_of(unit * (np.repeat(np.arange(last[0] + 1), last[1] + 1) + 2) - 0.5, height)
    margin = 2 * unit + 1  # as far as the detector's filters reach: else the frame would make corners
    described = []
    for image in levels:
        # whole numbers: gradients are exact, none crosses the border of a bin by rounding
        descriptors = dense_descriptors(image.astype(np.float32), unit)
        grey = image * np.float32(1 / 255)
        corners = corner_peaks(
            _framed(grey, margin, lambda framed: corner_harris(framed, sigma=unit / 2)),
            min_distance=max(1, unit // 2),
            threshold_abs=_CORNER_NOISE,
            threshold_rel=_CORNER_THRESHOLD,
            num_peaks=_MAX_CORNERS,
            exclude_border=False,
        )
        i, j = np.clip(np.rint((corners + 0.5) / unit - 2).astype(np.int64), 0, last).T
        nearest = descriptors[i * (last[1] + 1) + j], _band_of(corners[:, 0], height)
        described.append({"dense": (descriptors, dense_bands), "corner": nearest})
    return described


def _word_bands(vocabulary, local):
    """Number of each image's descriptors in each word, by band: shape (n_images, 3, n_words)."""
    counts = np.zeros((len(local), _BANDS, vocabulary.n_words), dtype=np.int64)
    places, parts = [], []
    for n, (descriptors, band) in enumerate(local):
        for b in np.unique(band):  # the vocabulary takes no empty bags
            places.append((n, b))
            parts.append(descriptors[band == b])
    if parts:
        sizes = np.array([len(part) for part in parts])
        counts[tuple(np.transpose(places))] = np.rint(vocabulary.transform(parts) * sizes[:, None])
    return counts


def _hog(image, n_cells, block):
    """Oriented gradients of n_cells x n_cells cells; what is left over is cut from all four sides."""
    from skimage.feature import hog

    cell = tuple(side // n_cells for side in image.shape)
    first = [(side - n_cells * size) // 2 for side, size in zip(image.shape, cell, strict=True)]
    inner = image[tuple(slice(a, a + n_cells * size) for a, size in zip(first, cell, strict=True))]
    return hog(inner.astype(np.float32), _HOG_ORIENTATIONS[n_cells], cell, (block, block))


@lru_cache(maxsize=4)
def _gabor_bank(shape):
    """Spectra of Gabor filters that answer 0 to a flat image, and the margin."""
    from skimage.filters import gabor_kernel

    unit = _unit(shape)
    filters = []
    for wavelength in _GIST_WAVELENGTHS:
        for k in range(_GIST_ORIENTATIONS):
            values = gabor_kernel(1 / (wavelength * unit), theta=math.pi * k / _GIST_ORIENTATIONS)
            envelope = np.abs(values)
            filters.append(values - envelope * (values.sum() / envelope.sum()))
    margin = max(max(values.shape) for values in filters) // 2
    bank = np.zeros((len(filters), shape[0] + 2 * margin, shape[1] + 2 * margin), dtype=np.complex128)
    for spectrum, values in zip(bank, filters, strict=True):
        height, width = values.shape
        spectrum[:height, :width] = values
        spectrum[...] = np.fft.fft2(np.roll(spectrum, (-(height // 2), -(width // 2)), axis=(0, 1)))
    return bank.astype(np.complex64), margin


def _gist(grey):
    """Mean magnitude of each Gabor filter in each cell; beyond the image its mirror image."""
    from scipy.fft import fft2, ifft2

    bank, margin = _gabor_bank(grey.shape)
    spectrum = fft2(np.pad(grey, margin, mode="symmetric"))
    inner = tuple(slice(margin, margin + side) for side in grey.shape)
    return _pooled(np.abs(ifft2(bank * spectrum))[:, *inner], _GIST_CELLS)


def _fourier(grey):
    """Magnitudes of one of each pair of conjugate coefficients; those of column frequency 0 first."""
    from scipy.fft import rfft2

    spectrum = np.abs(rfft2(grey)) / grey.size
    rows = np.arange(-_FREQUENCIES, _FREQUENCIES + 1)
    return np.concatenate([spectrum[: _FREQUENCIES + 1, 0], spectrum[rows, 1 : _FREQUENCIES + 1].ravel()])


def stack_kinds(kinds):
    """Lay arrays of features, each (n, n_columns) by name, side by side: float32 (n, d), and columns by name.

    Examples
    --------
    >>> X, groups = stack_kinds({"a": np.ones((5, 2)), "b": np.zeros((5, 3))})
    >>> X.shape, groups
    ((5, 5), {'a': slice(0, 2, None), 'b': slice(2, 5, None)})
    """
    kinds = {name: np.asarray(array) for name, array in kinds.items()}
    shapes = {name: array.shape for name, array in kinds.items()}
    if {len(shape) for shape in shapes.values()} != {2} or len({shape[0] for shape in shapes.values()}) > 1:
        raise ValueError(f"kinds must hold matrices with equally many rows, got shapes {shapes}.")
    return side_by_side(kinds, np.float32)


def letter_groups():
    """15 groups of the 16 attributes of `load_letter`: dict of str to column numbers, ascending.

    Six elementary ones (``position`` and ``size`` of the box, first moments ``centre``, second ``spread``,
    third ``skew``, ``edges``) and nine unions that have a meaning, such as ``shape``, all that does not
    depend on where the box lies or how large it is. None has a single column, on which linear and polynomial
    kernels of unit length are constant.

    Examples
    --------
    >>> letter_groups()["skew"]
    [10, 11]
    """
    box, moments = "x-box y-box width high onpix", "x-bar y-bar x2bar y2bar xybar x2ybr xy2br"
    edges = "x-ege xegvy y-ege yegvx"
    everything = f"{box} {moments} {edges}".split()
    groups = {
        "position": "x-box y-box",
        "size": "width high",
        "size-ink": "width high onpix",
        "box": box,
        "centre": "x-bar y-bar",
        "spread": "x2bar y2bar xybar",
        "skew": "x2ybr xy2br",
        "moments": moments,
        "edge-counts": "x-ege y-ege",
        "edge-correlations": "xegvy yegvx",
        "edges": edges,
        "left-right": "x-box width x-bar x2bar x-ege xegvy",
        "bottom-top": "y-box high y-bar y2bar y-ege yegvx",
        "shape": f"{moments} {edges}",
        "all": " ".join(everything),
    }
    return {name: [everything.index(word) for word in words.split()] for name, words in groups.items()}


def satimage_groups():
    """15 groups of the 36 columns of `load_satimage`: dict of str to column numbers.

    Each band at all pixels, ``visible`` (bands 1 and 2), ``infrared`` (3 and 4), the pixel at the ``centre``,
    which the class is of, the ``cross`` of it and its four neighbours, each row, each column, and ``all``.

    Examples
    --------
    >>> satimage_groups()["centre"]
    [16, 17, 18, 19]
    """
    columns = np.arange(36).reshape(3, 3, 4)  # row, column, band
    pixels = columns.reshape(9, 4)
    groups = {f"band {band + 1}": pixels[:, band] for band in range(4)}
    groups |= {"visible": pixels[:, :2], "infrared": pixels[:, 2:]}
    groups |= {"centre": pixels[4], "cross": pixels[[1, 3, 4, 5, 7]]}
    groups |= {f"{name} row": columns[row] for row, name in enumerate(("top", "middle", "bottom"))}
    groups |= {f"{name} column": columns[:, k] for k, name in enumerate(("left", "centre", "right"))}
    groups["all"] = columns
    return {name: group.ravel().tolist() for name, group in groups.items()}


def kind_kernels(groups):
    r"""Linear, polynomial, chi-squared and Gaussian kernel on each group of columns, in the paper's order.

    The last two take their widths from the training samples (``gamma="mean"``). The paper does not print its
    polynomial; here it is homogeneous, :math:`\langle x, z \rangle^2`: with an offset of 1 histograms of unit
    sum, whose products are tiny, would all look alike. Normalised to a unit diagonal, all four are free of
    the features' unit.

    `groups` maps names to column numbers or slices, of values that are not negative, as `letter_groups`,
    `satimage_groups` and `stack_kinds` return them. Returns a list of (name, kernel, columns), four per
    group: kernel number k (from 1) of the paper is entry k - 1.

    Examples
    --------
    >>> [name for name, _, _ in kind_kernels({"hog4": slice(0, 288)})]
    ['hog4 linear', 'hog4 poly', 'hog4 chi2', 'hog4 rbf']
    """
    # Here and not above: it loads compiled code, which describing images does not need.
    from cuelearn.kernels import RBF, Chi2, Linear, Poly

    four = {"linear": Linear(), "poly": Poly(degree=2, coef0=0.0), "chi2": Chi2(), "rbf": RBF()}.items()
    return [
        (f"{group} {name}", kernel, columns) for group, columns in groups.items() for name, kernel in four
    ]
