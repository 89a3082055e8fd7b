r"""From images and laser scans to the papers' cues.

What the thesis takes from an image (appendix A): a joint RGB colour histogram; composed receptive field histograms of the
first Gaussian derivatives (``LxLy``) and of the gradient direction (``DirC``); a bag of words over dense local descriptors
(``bow``); the centred mask as a global shape (``shape``); and, from a laser scan, simple geometric features (``laser``).
`image_cues` turns an `ImageData` into a `CueData` with any of them as cues; the functions below it serve one image each.

Every range and every number of bins is fixed, never taken from the data, so that a descriptor of an image depends on that
image alone. Three things are learnt, from the rows named ``train`` and no others: the vocabulary of the bag of words, and the
mean and the standard deviation of each laser feature.

References
----------
Jie Luo (2011). Open-ended Learning of Visual and Multi-modal Patterns. EPFL thesis 5233, section 3.4 and appendix A.
"""

from __future__ import annotations

import math
import numbers

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ._base import CueData, DataFileError

__all__ = [
    "BagOfWords",
    "IMAGE_CUES",
    "LASER_FEATURE_NAMES",
    "OBJECT_CUES",
    "ROBOT_CUES",
    "centred_mask",
    "crfh",
    "cue_kernels",
    "default_kernels",
    "dense_descriptors",
    "foreground_mask",
    "image_cues",
    "laser_features",
    "rgb_histogram",
]

#: All cues that `image_cues` knows.
IMAGE_CUES = ("colour", "LxLy", "DirC", "bow", "laser", "shape")
#: The four of table 3.1, in its order (its CRFH is ``LxLy``).
ROBOT_CUES = ("colour", "LxLy", "bow", "laser")
#: The four of table 3.2, in its order.
OBJECT_CUES = ("LxLy", "DirC", "colour", "shape")

#: Scale-normalised derivatives from -RESPONSE_RANGE to RESPONSE_RANGE are told apart (grey values run from 0 to 1). An ideal
#: edge from black to white responds with 1/sqrt(2 pi) = 0.40 at every scale; half that contrast fills the range.
RESPONSE_RANGE = 0.2
#: Below this scale-normalised gradient magnitude a pixel has no direction: the response to an edge of 6 grey levels in 255.
FLAT_MAGNITUDE = 0.01

_FILTERS = {"LxLy": {"scales": (1.0, 2.0, 4.0), "bins": 15}, "DirC": {"scales": (1.0, 4.0), "bins": 16}}

_CLIPS = (2.5, 5.0, 10.0)
_GAPS = (0.3, 0.5, 1.0, 2.0)
_HARMONICS = (*range(-8, 0), *range(2, 9))
# Two returns of one obstacle are not two minima: a minimum is the smallest of this many neighbouring beams.
_MINIMUM_BEAMS = 11

#: Columns of `laser_features`.
LASER_FEATURE_NAMES = (
    "beam difference mean",
    "beam difference std",
    *(f"beam difference {what}, cut at {clip:g} m" for clip in _CLIPS for what in ("mean", "std")),
    "beam length mean",
    "beam length std",
    *(f"gaps above {gap:g} m" for gap in _GAPS),
    "distance of the two nearest minima",
    "angle of the two nearest minima",
    "area",
    "perimeter",
    "area / perimeter",
    "centroid distance mean",
    "centroid distance std",
    "normalised centroid distance mean",
    "normalised centroid distance std",
    "circularity",
    "normalised circularity",
    "compactness",
    "eccentricity",
    "ellipse major axis",
    "ellipse minor axis",
    "ellipse axis ratio",
    *(f"Fourier coefficient {k}" for k in _HARMONICS),
)

# Images handed to one worker at a time; frames whose scans are described in one go.
_IMAGES_PER_TASK = 64
_FRAMES_PER_BLOCK = 1024


def _check_image(image):
    """Refuse what is not an RGB image of bytes."""
    shape, dtype = getattr(image, "shape", None), getattr(image, "dtype", None)
    if shape is None or len(shape) != 3 or shape[2] != 3 or dtype != np.uint8 or 0 in shape:
        found = type(image).__name__ if shape is None else f"shape {tuple(shape)} of {dtype}"
        raise ValueError(f"image must be an array of shape (height, width, 3) of uint8, got {found}.")


def _check_mask(mask, shape=None):
    """Return the mask as an array; it must be of bool, of the image's size, and not empty."""
    mask = np.asarray(mask)
    if mask.ndim != 2 or mask.dtype != np.bool_ or (shape is not None and mask.shape != shape):
        wanted = "(height, width)" if shape is None else str(shape)
        raise ValueError(
            f"mask must be an array of shape {wanted} of bool, got shape {mask.shape} of {mask.dtype}."
        )
    if not mask.any():
        raise ValueError("mask must be True on at least one pixel, got none.")
    return mask


def _check_integer(name, value, low, high=None):
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}.")
    if value < low or (high is not None and value > high):
        raise ValueError(
            f"{name} must be at least {low}" + (f" and at most {high}" if high else "") + f", got {value}."
        )


def _grey(image):
    """Luma of an RGB image, float32 from 0 to 1."""
    red, green, blue = (
        image[..., channel] * np.float32(weight / 255) for channel, weight in enumerate((0.299, 0.587, 0.114))
    )
    return red + green + blue


def _share(index, n_bins, mask):
    """Share of the pixels in each bin, float32, sum 1."""
    index = index.ravel() if mask is None else index[mask]
    return (np.bincount(index, minlength=n_bins) / index.size).astype(np.float32)


def rgb_histogram(image, bins=8, mask=None):
    """Joint colour histogram of an RGB image.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3)
    bins : int, default=8
        Bins per channel, equally wide over 0..255; 1 to 32.
    mask : ndarray of bool, shape (height, width), optional
        Count only the pixels where it is True.

    Returns
    -------
    ndarray of float32, shape (bins**3,)
        Shares of the pixels, sum 1. Bin (r, g, b) stands at ``(r * bins + g) * bins + b``.

    Raises
    ------
    ValueError, TypeError
        If the image, the mask or `bins` is not as described, or the mask is empty.

    References
    ----------
    M. Swain and D. Ballard (1991). Color indexing. IJCV 7. Thesis appendix A.

    Examples
    --------
    >>> import numpy as np
    >>> red = np.zeros((4, 4, 3), np.uint8)
    >>> red[..., 0] = 255
    >>> int(rgb_histogram(red, bins=2).argmax())
    4
    """
    _check_image(image)
    _check_integer("bins", bins, 1, 32)
    if mask is not None:
        mask = _check_mask(mask, image.shape[:2])
    level = (np.arange(256) * bins // 256).astype(np.int32)[image]
    return _share((level[..., 0] * bins + level[..., 1]) * bins + level[..., 2], bins**3, mask)


def crfh(image, filters="LxLy", scales=None, bins=None, mask=None):
    r"""Composed receptive field histogram of the grey image.

    At scale :math:`\sigma` the filters are the scale-normalised first derivatives of the image smoothed by a Gaussian,

    .. math:: L_x = \sigma\, \partial_x (g_\sigma * f), \qquad L_y = \sigma\, \partial_y (g_\sigma * f), \qquad f \in [0, 1] .

    ``"LxLy"``
        The joint histogram of :math:`(L_x, L_y)` at each scale, one scale after the other. Bins are equally wide from -0.2 to
        0.2, and stronger responses count in the outermost bins. (Linde and Lindeberg also bin all scales jointly, which takes
        sparse histograms: 15 bins in six dimensions are eleven million.) With an odd number of bins flat regions fall in the
        middle of one, not on a border.
    ``"DirC"``
        The gradient direction :math:`\operatorname{atan2}(L_y, L_x)`, in `bins` equal sectors of the circle of which the first
        is centred on the x axis, and one bin more for pixels whose magnitude is below 0.01, which have no direction; binned
        jointly over all scales. It forgets contrast, which the derivatives keep.

    Outside the image the nearest pixel is repeated.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3)
    filters : {"LxLy", "DirC"}, default="LxLy"
    scales : sequence of float, optional
        Standard deviations :math:`\sigma` in pixels, positive; (1, 2, 4) for LxLy, as Leibe and Schiele use for these
        derivatives, and (1, 4) for DirC.
    bins : int, optional
        Bins per derivative, 15, or sectors, 16.
    mask : ndarray of bool, shape (height, width), optional
        Count only the pixels where it is True. The filters still see what surrounds them.

    Returns
    -------
    ndarray of float32
        Shares of the pixels, sum 1. LxLy: shape (n_scales * bins**2,), bin (s, x, y) at ``(s * bins + x) * bins + y``, each
        scale with sum 1 / n_scales. DirC: shape ((bins + 1)**n_scales,), the last scale's index running fastest, the flat bin
        last.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described, the mask is empty, or the histogram would have more than 10,000 bins.

    References
    ----------
    O. Linde and T. Lindeberg (2004). Object recognition using composed receptive field histograms of higher dimensionality.
    ICPR. B. Schiele and J. Crowley (2000). Recognition without correspondence using multidimensional receptive field
    histograms. IJCV 36. B. Leibe and B. Schiele (2003). Analyzing appearance and contour based methods for object
    categorization. CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> flat = np.full((32, 32, 3), 90, np.uint8)
    >>> crfh(flat).shape, crfh(flat, "DirC").shape
    ((675,), (289,))
    """
    _check_image(image)
    if filters not in _FILTERS:
        raise ValueError(f"filters must be one of {list(_FILTERS)}, got {filters!r}.")
    scales = _FILTERS[filters]["scales"] if scales is None else tuple(scales)
    bins = _FILTERS[filters]["bins"] if bins is None else bins
    if not scales or not all(isinstance(s, numbers.Real) and math.isfinite(s) and s > 0 for s in scales):
        raise ValueError(f"scales must be positive numbers of pixels, at least one, got {scales}.")
    _check_integer("bins", bins, 1)
    size = len(scales) * bins**2 if filters == "LxLy" else (bins + 1) ** len(scales)
    if size > 10_000:
        raise ValueError(f"bins and scales must give at most 10,000 bins in all, got {size}.")
    if mask is not None:
        mask = _check_mask(mask, image.shape[:2])
    return _crfh(_grey(image), filters, scales, bins, mask)


def _crfh(grey, filters, scales, bins, mask):
    """Histogram of `crfh`, of a grey image and valid parameters."""
    if filters == "LxLy":
        shares = []
        for scale in scales:
            responses = _derivatives(grey, scale)
            x, y = (
                np.clip((r + RESPONSE_RANGE) * (bins / (2 * RESPONSE_RANGE)), 0, bins - 1).astype(np.int32)
                for r in responses
            )
            shares.append(_share(x * bins + y, bins**2, mask) / np.float32(len(scales)))
        return np.concatenate(shares)
    index = np.zeros(grey.shape, dtype=np.int32)
    for scale in scales:
        lx, ly = _derivatives(grey, scale)
        sector = (
            np.floor(np.arctan2(ly, lx) * np.float32(bins / (2 * math.pi)) + np.float32(0.5)).astype(np.int32)
            % bins
        )
        sector[lx * lx + ly * ly < FLAT_MAGNITUDE**2] = bins
        index = index * (bins + 1) + sector
    return _share(index, (bins + 1) ** len(scales), mask)


def _derivatives(grey, scale):
    """Scale-normalised Lx (along the columns) and Ly (along the rows), float32."""
    from scipy.ndimage import gaussian_filter

    scale = float(scale)
    return tuple(
        np.float32(scale) * gaussian_filter(grey, scale, order=order, mode="nearest")
        for order in ((0, 1), (1, 0))
    )


def dense_descriptors(image, step=8):
    """Dense local descriptors of the grey image, laid out and normalised as SIFT's.

    Square patches stand on a grid; each is described by 4 x 4 cells of 8 orientations, normalised to unit length, cut at 0.2
    and normalised again, and stored as bytes, ``min(512 v, 255)``. Unlike SIFT's, the patches have one fixed size, keep upright,
    and opposite gradients count as one orientation. scikit-image's `hog` does the work.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3)
        At least `4 * step` pixels high and wide.
    step : int, default=8
        Side of a cell and distance of neighbouring patches in pixels; a patch covers ``4 * step``. At least 2.

    Returns
    -------
    ndarray of uint8, shape (n_patches, 128)
        ``(height // step - 3) * (width // step - 3)`` patches, row by row. All zero where the patch is of one colour.

    Raises
    ------
    ValueError, TypeError
        If the image is not as described or smaller than one patch.

    References
    ----------
    D. Lowe (2004). Distinctive image features from scale-invariant keypoints. IJCV 60. N. Dalal and B. Triggs (2005).
    Histograms of oriented gradients for human detection. CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> dense_descriptors(np.zeros((96, 128, 3), np.uint8)).shape
    (117, 128)
    """
    _check_image(image)
    _check_integer("step", step, 2)
    if min(image.shape[:2]) < 4 * step:
        raise ValueError(
            f"image must be at least 4 * step = {4 * step} pixels high and wide, got {image.shape[0]} x {image.shape[1]}."
        )
    return _dense_descriptors(_grey(image), step)


def _dense_descriptors(grey, step):
    from skimage.feature import hog

    blocks = hog(
        grey, orientations=8, pixels_per_cell=(step, step), cells_per_block=(4, 4), feature_vector=False
    )
    return np.minimum(np.rint(512 * blocks.reshape(-1, 128)), 255).astype(np.uint8)


class BagOfWords(TransformerMixin, BaseEstimator):
    """Histograms of visual words: local descriptors replaced by their nearest of `n_words` cluster centres.

    `fit` draws descriptors of the images it is given and clusters them with scikit-learn's `MiniBatchKMeans`; hand it training
    images only. `transform` counts how many of an image's descriptors lie nearest to each centre. Both take images, or their
    `dense_descriptors` where one set of images is described with several vocabularies.

    Parameters
    ----------
    n_words : int, default=300
        Size of the vocabulary (thesis appendix A); at least 2.
    step : int, default=8
        Of `dense_descriptors`, in pixels.
    max_images : int, default=500
        At most this many images, drawn at random, make the vocabulary.
    max_descriptors : int, default=50000
        At most this many of their descriptors, drawn at random and equally many of each image.
    random_state : int, default=0
        Seed of the draws and of the clustering: the same seed and images give the same bits for any number of threads.

    Attributes
    ----------
    words_ : ndarray of float32, shape (n_words, 128)
        The centres.
    n_features_in_ : int
        128, the length of a descriptor.

    Raises
    ------
    ValueError
        If there are fewer descriptors than words, or an image is smaller than a patch.

    Notes
    -----
    Describing an image of 128 x 128 pixels takes about 3 ms, counting its words 0.2 ms; learning 300 words from 50,000
    descriptors about 1 s.

    References
    ----------
    J. Sivic and A. Zisserman (2003). Video Google: a text retrieval approach to object matching in videos. ICCV.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.random.default_rng(0).integers(0, 256, (6, 64, 64, 3), dtype=np.uint8)
    >>> BagOfWords(n_words=10).fit(images[:4]).transform(images).shape
    (6, 10)
    """

    def __init__(self, n_words=300, step=8, max_images=500, max_descriptors=50_000, random_state=0):
        self.n_words = n_words
        self.step = step
        self.max_images = max_images
        self.max_descriptors = max_descriptors
        self.random_state = random_state

    def fit(self, images, y=None):
        """Learn the vocabulary.

        Parameters
        ----------
        images : sequence of ndarray
            Images of shape (height, width, 3), or their descriptors of shape (n_patches, 128), both of uint8.
        y : ignored

        Returns
        -------
        self
        """
        from sklearn.cluster import MiniBatchKMeans
        from threadpoolctl import threadpool_limits

        for name, low in (
            ("n_words", 2),
            ("step", 2),
            ("max_images", 1),
            ("max_descriptors", 1),
            ("random_state", 0),
        ):
            _check_integer(name, getattr(self, name), low)
        if len(images) == 0:
            raise ValueError("images must hold at least one image, got none.")
        rng = np.random.default_rng(self.random_state)
        drawn = np.sort(rng.permutation(len(images))[: self.max_images])
        quota = -(-self.max_descriptors // len(drawn))
        sample = []
        for i in drawn:
            descriptors = self._descriptors(images[int(i)])
            sample.append(descriptors[np.sort(rng.permutation(len(descriptors))[:quota])])
        sample = np.concatenate(sample).astype(np.float32)
        if len(sample) < self.n_words:
            raise ValueError(
                f"images must give at least n_words = {self.n_words} descriptors, got {len(sample)} from {len(drawn)} images."
            )
        clusters = MiniBatchKMeans(
            self.n_words, batch_size=2048, n_init=1, max_iter=20, random_state=int(rng.integers(2**31))
        )
        # More threads would add in another order.
        with threadpool_limits(1):
            clusters.fit(sample)
        self.words_ = clusters.cluster_centers_.astype(np.float32)
        self.n_features_in_ = self.words_.shape[1]
        return self

    def transform(self, images):
        """Count the words.

        Parameters
        ----------
        images : sequence of ndarray
            As for `fit`.

        Returns
        -------
        ndarray of float32, shape (n_images, n_words)
            Shares of the patches, each row with sum 1.
        """
        from threadpoolctl import threadpool_limits

        check_is_fitted(self)
        with threadpool_limits(1):
            rows = [self._count(self._descriptors(images[i])) for i in range(len(images))]
        return np.array(rows, dtype=np.float32).reshape(len(rows), len(self.words_))

    def _descriptors(self, image):
        if getattr(image, "ndim", None) != 2:
            return dense_descriptors(image, self.step)
        if image.shape[1] != 128 or image.dtype != np.uint8 or len(image) == 0:
            raise ValueError(
                f"descriptors must be of shape (n_patches, 128) of uint8, got {image.shape} of {image.dtype}."
            )
        return image

    def _count(self, descriptors):
        # |d - w|^2 without the part that all words share.
        distance = descriptors.astype(np.float32) @ self.words_.T
        distance *= -2
        distance += (self.words_.astype(np.float64) ** 2).sum(axis=1).astype(np.float32)
        return (np.bincount(distance.argmin(axis=1), minlength=len(self.words_)) / len(descriptors)).astype(
            np.float32
        )


def centred_mask(mask, size=24, extent=3.0):
    r"""Global shape: the silhouette moved to its centroid, scaled to unit area, and sampled on a small grid.

    The grid is a square of side :math:`e \sqrt A`, A the silhouette's area in pixels and e the `extent`, centred on the
    centroid; a cell's value is the share of it that the silhouette covers, computed exactly. So the vector does not change
    when the silhouette moves by whole pixels, and hardly when it is scaled. What lies outside the image counts as background,
    and so do parts of very long objects beyond the grid.

    Parameters
    ----------
    mask : ndarray of bool, shape (height, width)
        True on the object, on at least one pixel.
    size : int, default=24
        Cells per side.
    extent : float, default=3.0
        Side of the grid in units of :math:`\sqrt A`, positive: 3 holds bars up to nine times as long as wide.

    Returns
    -------
    ndarray of float32, shape (size**2,)
        From 0 to 1, row by row.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.

    References
    ----------
    B. Leibe and B. Schiele (2003). Analyzing appearance and contour based methods for object categorization. CVPR. Thesis
    appendix A.

    Examples
    --------
    >>> import numpy as np
    >>> square = np.zeros((40, 40), bool)
    >>> square[3:13, 20:30] = True
    >>> centred_mask(square, size=6).reshape(6, 6)[2]
    array([0., 0., 1., 1., 0., 0.], dtype=float32)
    """
    mask = _check_mask(mask)
    _check_integer("size", size, 1)
    if not (isinstance(extent, numbers.Real) and math.isfinite(extent) and extent > 0):
        raise ValueError(f"extent must be a positive number, got {extent!r}.")
    rows, columns = mask.sum(axis=1), mask.sum(axis=0)
    area = int(rows.sum())
    side = extent * math.sqrt(area)
    edges = side * (np.arange(size + 1) / size - 0.5)
    covered = mask.astype(np.float64)
    for axis, counts in enumerate((rows, columns)):
        # Integers all through, so that the centroid moves with the silhouette to the last bit of the division.
        centre = int(counts @ np.arange(len(counts))) / area + 0.5
        covered = _between(covered, centre + edges, axis)
    return np.clip(covered / (side / size) ** 2, 0, 1).ravel().astype(np.float32)


def _between(values, edges, axis):
    """Integrals of a step function (value i on [i, i + 1), 0 elsewhere) along one axis between successive edges."""
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

    The background's colour is the median along the border of the image. What differs from it in CIELAB by more than a
    threshold is foreground, of which the largest connected piece is kept and its holes are filled. The threshold is Otsu's, or
    four times the median difference along the border (at least 10) where that is less: Otsu's alone would cut an object of
    two colours in two. Meant for images that come without masks; ETH-80's own masks are better, for blue objects above all.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3)

    Returns
    -------
    ndarray of bool, shape (height, width)
        True on the object. All False if the image is of one colour.

    Raises
    ------
    ValueError
        If the image is not as described.

    References
    ----------
    N. Otsu (1979). A threshold selection method from gray-level histograms. IEEE Transactions on Systems, Man, and
    Cybernetics 9.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.full((40, 40, 3), (20, 60, 200), np.uint8)
    >>> image[10:30, 12:28] = (180, 30, 20)
    >>> int(foreground_mask(image).sum())
    320
    """
    _check_image(image)
    from scipy import ndimage
    from skimage.color import rgb2lab
    from skimage.filters import threshold_otsu

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


def laser_features(ranges, angles, max_range=20.0, names=None):
    r"""Geometric features of laser scans.

    After Mozos, Stachniss and Burgard. Of the beams: mean and standard deviation of the difference between neighbouring beams,
    as they are and cut at 2.5, 5 and 10 m; of the beam lengths; the number of gaps, neighbours that differ by more than 0.3,
    0.5, 1 and 2 m; distance and angle between the two nearest local minima (the smallest of 11 neighbouring beams; 0 where
    there are fewer than two). Of the polygon of the beams' end points: area A, perimeter P and A/P; mean and standard deviation
    of the distance of the end points from the centroid, in metres and as shares of the largest; the circularity
    :math:`P^2/A` and the normalised circularity :math:`4 \pi A / P^2`; compactness :math:`A^2 / (2 \pi (\mu_{20} +
    \mu_{02}))`, 1 for a disc, and eccentricity :math:`\sqrt{(\mu_{20} - \mu_{02})^2 + 4 \mu_{11}^2} / (\mu_{20} + \mu_{02})`
    from the second moments; and from the Fourier coefficients of the boundary,

    .. math:: c_k = \frac 1 P \int_0^P z(t)\, e^{-2 \pi i k t / P} dt, \qquad z = x + i y \text{ at arc length } t,

    computed exactly from the edges, the semi-axes :math:`|c_1| \pm |c_{-1}|` of the approximating ellipse, their ratio (minor
    over major), and the invariants :math:`|c_k| / |c_1|` for k from -8 to -1 and from 2 to 8. Polygon features do not depend on
    the robot's heading. What is 0/0 counts as 0. Left out of the original list: the number of beams on extracted lines, Hu's
    moments, and Fourier coefficients beyond the eighth.

    Parameters
    ----------
    ranges : ndarray, shape (n_frames, n_beams)
        Metres, not negative; at least 3 beams.
    angles : ndarray, shape (n_beams,)
        Directions of the beams in radians, ascending, over at most a full circle. Where they go round the circle the last beam
        neighbours the first; otherwise the polygon is closed by a straight line.
    max_range : float, default=20.0
        Longer readings are cut to it, in metres: scanners mark a beam without return by a number of their own, such as 81.9.
    names : sequence of str, optional
        Names of the frames for error messages.

    Returns
    -------
    ndarray of float64, shape (n_frames, 45)
        Columns are `LASER_FEATURE_NAMES`. Lengths in metres, angles in radians.

    Raises
    ------
    ValueError
        If a frame has no scan (a reading is not finite or negative, or all are zero), with the frame's name, or if shapes,
        angles or `max_range` are not as described.

    Notes
    -----
    Time O(n_frames n_beams): 10,000 scans of 181 beams take less than a second.

    References
    ----------
    O. Martinez Mozos, C. Stachniss and W. Burgard (2005). Supervised learning of places from range data using AdaBoost. ICRA.
    F. Kuhl and C. Giardina (1982). Elliptic Fourier features of a closed contour. Computer Graphics and Image Processing 18.

    Examples
    --------
    >>> import numpy as np
    >>> angles = np.arange(360) * np.pi / 180
    >>> features = dict(zip(LASER_FEATURE_NAMES, laser_features(np.full((1, 360), 2.0), angles)[0]))
    >>> round(float(features["area"]), 2), round(float(features["normalised circularity"]), 3)
    (12.57, 1.0)
    """
    ranges = np.asarray(ranges)
    angles = np.asarray(angles, dtype=np.float64)
    if ranges.ndim != 2 or ranges.shape[1] < 3 or ranges.dtype.kind not in "fiu":
        raise ValueError(
            "ranges must be numbers of shape (n_frames, n_beams) with at least 3 beams, "
            f"got shape {ranges.shape} of {ranges.dtype}."
        )
    if angles.shape != ranges.shape[1:]:
        raise ValueError(
            f"angles must have one entry per beam, shape ({ranges.shape[1]},), got {angles.shape}."
        )
    steps = np.diff(angles)
    span = angles[-1] - angles[0]
    if not (np.isfinite(angles).all() and (steps > 0).all() and span < 2 * math.pi):
        raise ValueError("angles must be finite and ascend within less than a full circle.")
    if not (isinstance(max_range, numbers.Real) and max_range > 0):
        raise ValueError(f"max_range must be a positive number of metres, got {max_range!r}.")
    bad = ~(np.isfinite(ranges) & (ranges >= 0)).all(axis=1) | ~ranges.any(axis=1)
    if bad.any():
        first = int(bad.argmax())
        known = "" if names is None else f" ({names[first]})"
        raise ValueError(
            f"Frame {first}{known} has no usable laser scan: all its {ranges.shape[1]} ranges must be finite and not negative and "
            f"one must be positive; {int(bad.sum())} of {len(bad)} frames are affected."
        )
    # Round the circle when the gap between the last beam and the first is no wider than between neighbours.
    closed = 2 * math.pi - span <= 1.5 * steps.max()
    features = np.empty((len(ranges), len(LASER_FEATURE_NAMES)))
    for start in range(0, len(ranges), _FRAMES_PER_BLOCK):
        block = slice(start, start + _FRAMES_PER_BLOCK)
        r = np.minimum(ranges[block].astype(np.float64), max_range)
        beams = _beam_features(r, angles, closed)
        features[block] = np.column_stack(beams + _polygon_features(r * np.exp(1j * angles)))
    return features


def _ratio(numerator, denominator):
    """Quotient, 0 where the denominator is 0."""
    out = np.zeros(np.broadcast_shapes(np.shape(numerator), np.shape(denominator)))
    return np.divide(numerator, denominator, out=out, where=denominator != 0)


def _beam_features(r, angles, closed):
    """Features of the raw beams: list of columns."""
    from scipy.ndimage import minimum_filter1d

    columns = []

    def differences(clip=np.inf):
        cut = np.minimum(r, clip)
        return np.abs(np.roll(cut, -1, axis=1) - cut if closed else np.diff(cut, axis=1))

    for clip in (np.inf, *_CLIPS):
        difference = differences(clip)
        columns += [difference.mean(axis=1), difference.std(axis=1)]
    columns += [r.mean(axis=1), r.std(axis=1)]
    difference = differences()
    columns += [(difference > gap).sum(axis=1) for gap in _GAPS]

    size = min(_MINIMUM_BEAMS, r.shape[1])
    lowest = minimum_filter1d(r, size, axis=1, mode="wrap" if closed else "nearest")
    # On a plateau only its first beam counts.
    before = np.roll(r, 1, axis=1)
    if not closed:
        before[:, 0] = np.inf
    minima = np.where((r == lowest) & (r < before), r, np.inf)
    two = np.argsort(minima, axis=1, kind="stable")[:, :2]
    rows = np.arange(len(r))
    first, second = two.T
    found = np.isfinite(minima[rows, second])
    points = r * np.exp(1j * angles)
    angle = np.abs(angles[first] - angles[second])
    angle = np.minimum(angle, 2 * math.pi - angle)
    columns += [
        np.where(found, np.abs(points[rows, first] - points[rows, second]), 0),
        np.where(found, angle, 0),
    ]
    return columns


def _polygon_features(z):
    """Features of the polygons with vertices `z`, complex, shape (n, n_vertices): list of columns."""
    following = np.roll(z, -1, axis=1)
    edge = following - z
    length = np.abs(edge)
    perimeter = length.sum(axis=1)

    # Moments of the area by Green's theorem, about the robot and then about the centroid.
    x, y, x1, y1 = z.real, z.imag, following.real, following.imag
    cross = x * y1 - x1 * y
    signed = cross.sum(axis=1) / 2
    area = np.abs(signed)
    cx, cy = (_ratio(((a + b) * cross).sum(axis=1), 6 * signed) for a, b in ((x, x1), (y, y1)))
    mu20 = np.abs((cross * (x * x + x * x1 + x1 * x1)).sum(axis=1) / 12 - signed * cx * cx)
    mu02 = np.abs((cross * (y * y + y * y1 + y1 * y1)).sum(axis=1) / 12 - signed * cy * cy)
    mu11 = (cross * (x * y1 + 2 * x * y + 2 * x1 * y1 + x1 * y)).sum(axis=1) / 24 - signed * cx * cy

    distance = np.abs(z - (cx + 1j * cy)[:, None])
    relative = _ratio(distance, distance.max(axis=1, keepdims=True))
    columns = [area, perimeter, _ratio(area, perimeter)]
    columns += [distance.mean(axis=1), distance.std(axis=1), relative.mean(axis=1), relative.std(axis=1)]
    columns += [_ratio(perimeter**2, area), _ratio(4 * math.pi * area, perimeter**2)]
    columns += [
        _ratio(area**2, 2 * math.pi * (mu20 + mu02)),
        _ratio(np.hypot(mu20 - mu02, 2 * mu11), mu20 + mu02),
    ]

    # Integrating by parts, c_k = P / (2 pi k)^2 * sum over edges of u (e_k(end) - e_k(start)), u the edge's direction and
    # e_k(t) = exp(-2 pi i k t / P); e_k is the k-th power of e_1 and e_-k its conjugate.
    direction = _directions(edge, length)
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
    major, minor = coefficient[1] + coefficient[-1], np.abs(coefficient[1] - coefficient[-1])
    columns += [major, minor, _ratio(minor, major)]
    return columns + [_ratio(coefficient[k], coefficient[1]) for k in _HARMONICS]


def _directions(edge, length):
    """Unit complex numbers along the edges, 0 for edges of no length."""
    return np.divide(edge, length, out=np.zeros_like(edge), where=length > 0)


def default_kernels():
    r"""Kernel of each cue, as the thesis has it: exponential :math:`\chi^2` for what comes from images, Gaussian for the laser.

    The masks' kernel is not named apart in the thesis; they come from images and have entries from 0 to 1, so they take the
    :math:`\chi^2` kernel too.

    Returns
    -------
    dict of str to Kernel
        One for each of `IMAGE_CUES`, with ``gamma="mean"``.

    References
    ----------
    Thesis appendix A.

    Examples
    --------
    >>> default_kernels()["laser"]
    RBF(gamma='mean', factor=1.0)
    """
    # Here and not above: it loads compiled code, which describing images does not need.
    from cuelearn.kernels import RBF, Chi2

    return {cue: RBF() if cue == "laser" else Chi2() for cue in IMAGE_CUES}


def cue_kernels(data, cues=None):
    """Pair the cues of a `CueData` made by `image_cues` with their `default_kernels`.

    Parameters
    ----------
    data : CueData
    cues : sequence of str, optional
        The cues to use, in this order; all by default.

    Returns
    -------
    list of (name, kernel, columns)
        As the estimators' ``kernels=`` and `cuelearn.kernels.KernelBank` take them.

    Raises
    ------
    ValueError
        If a cue is unknown.
    """
    kernels = default_kernels()
    return [
        triple
        for cue in (data.cues if cues is None else cues)
        for triple in data.triples(kernels.get(cue), [cue])
    ]


def image_cues(
    data,
    cues,
    *,
    train=None,
    masked=True,
    n_words=300,
    max_range=20.0,
    vocabulary=None,
    random_state=0,
    n_jobs=1,
    progress=False,
):
    """Describe images by several cues.

    Parameters
    ----------
    data : ImageData
        From `make_robot`, `make_objects`, `load_image_folder`, `load_idol2` or `load_eth80`.
    cues : sequence of {"colour", "LxLy", "DirC", "bow", "laser", "shape"}
        In the order wanted. The thesis' choices are `ROBOT_CUES` and `OBJECT_CUES`.
    train : array of int or of bool, optional
        Rows from which the vocabulary of ``bow`` and the scale of ``laser`` are learnt. Needed for these two cues, so that
        nothing of the test rows enters by oversight; ``np.arange(n)`` takes all.
    masked : bool, default=True
        Take the histograms colour, LxLy and DirC over the object only, where masks are known.
    n_words : int, default=300
        Size of the vocabulary.
    max_range : float, default=20.0
        Of `laser_features`, in metres.
    vocabulary : BagOfWords, optional
        A fitted one, in place of learning it.
    random_state : int, default=0
        Seed of the vocabulary.
    n_jobs : int, default=1
        Processes that describe images; -1 takes all cores. The result has the same bits for any number.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    CueData
        `X` float32 of shape (n, d): colour 512 columns, LxLy 675, DirC 289, bow `n_words`, laser 45 (standardised to mean 0 and
        standard deviation 1 over the training rows), shape 576. Classes, names, provenance and tier are those of `data`.

    Raises
    ------
    ValueError
        If a cue is unknown or given twice, needs masks or laser scans that `data` lacks, or needs `train`; if an image or a
        mask is not as it must be, or a frame has no laser scan, with the name of the frame.
    DataFileError
        If an image file cannot be read.

    Notes
    -----
    Per image of 128 x 128 pixels on one core: colour 0.2 ms, LxLy 2 ms, DirC 2 ms, bow 3 ms, shape 0.2 ms.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets._base import ImageData, Provenance
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 40, 40, 3), dtype=np.uint8)
    >>> origin = Provenance("noise", "generated", "none", None, "none", "an example")
    >>> names = np.array(["a", "b", "c", "d"])
    >>> data = ImageData(images, np.array([0, 0, 1, 1]), ["x", "y"], {"name": names}, None, None, None, "Noise.", origin)
    >>> image_cues(data, ["colour", "DirC"])
    <noise, generated: X (4, 801) float32, cues colour (512), DirC (289)>
    """
    from joblib import Parallel, delayed

    cues = _check_cues(data, cues)
    n = len(data.y)
    rows = None
    if ("bow" in cues and vocabulary is None) or "laser" in cues:
        rows = _check_rows(train, n)
    if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0 or n_jobs < -1:
        raise ValueError(f"n_jobs must be -1 or a positive integer, got {n_jobs!r}.")
    names = data.frames.get("name")
    learnt = []

    if "bow" in cues:
        if vocabulary is None:
            vocabulary = BagOfWords(n_words, random_state=random_state)
            try:
                vocabulary.fit(_Picked(data.images, rows))
            except ValueError as error:
                raise ValueError(f"The vocabulary of cue 'bow' cannot be learnt: {error}") from None
            learnt.append(f"{n_words} words learnt from {len(rows)} images")
        check_is_fitted(vocabulary)

    columns = {}
    if "laser" in cues:
        scans = laser_features(data.laser, data.laser_angles, max_range, names)
        scale = scans[rows].std(axis=0)
        columns["laser"] = (scans - scans[rows].mean(axis=0)) / np.where(scale > 0, scale, 1)
        learnt.append(f"laser features standardised over {len(rows)} frames")

    drawn = tuple(cue for cue in cues if cue != "laser")
    if drawn:
        starts = range(0, n, _IMAGES_PER_TASK)
        tasks = (
            delayed(_describe)(
                _part(data.images, start),
                None if data.masks is None or not (masked or "shape" in drawn) else _part(data.masks, start),
                drawn,
                masked,
                vocabulary if "bow" in drawn else None,
                start,
                None if names is None else names[start : start + _IMAGES_PER_TASK],
            )
            for start in starts
        )
        parts = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        if progress:
            from tqdm.auto import tqdm

            parts = tqdm(parts, total=len(starts), desc="cues", unit_scale=_IMAGES_PER_TASK, unit="image")
        parts = list(parts)
        for j, cue in enumerate(drawn):
            columns[cue] = np.concatenate([part[j] for part in parts])

    slices, feature_names, end = {}, [], 0
    for cue in cues:
        width = columns[cue].shape[1]
        slices[cue] = slice(end, end + width)
        end += width
        feature_names += _feature_names(cue, width)
    X = np.empty((n, end), dtype=np.float32)
    for cue in cues:
        X[:, slices[cue]] = columns[cue]
    said = (
        f"{data.description.rstrip('. ')}. Described by {', '.join(cues)}"
        + (f" ({'; '.join(learnt)})" if learnt else "")
        + "."
    )
    return CueData(
        X=X,
        y=data.y,
        cues=slices,
        train=None,
        test=None,
        feature_names=feature_names,
        target_names=list(data.target_names),
        description=said,
        provenance=data.provenance,
    )


def _check_cues(data, cues):
    """The cues as a tuple, each known, given once, and with what it needs in the data."""
    cues = (cues,) if isinstance(cues, str) else tuple(cues)
    unknown = [cue for cue in cues if cue not in IMAGE_CUES]
    if unknown or not cues or len(set(cues)) < len(cues):
        raise ValueError(f"cues must be some of {list(IMAGE_CUES)}, each once, got {list(cues)}.")
    if "laser" in cues and (data.laser is None or data.laser_angles is None):
        raise ValueError(
            "The cue 'laser' needs laser scans with their angles, but data.laser or data.laser_angles is None."
        )
    if "shape" in cues and data.masks is None:
        raise ValueError(
            "The cue 'shape' needs masks, but data.masks is None; foreground_mask can make them."
        )
    for name in ("images", "masks", "laser"):
        held = getattr(data, name)
        if held is not None and len(held) != len(data.y):
            raise ValueError(f"data.{name} must hold one entry per image, {len(data.y)}, got {len(held)}.")
    return cues


def _check_rows(train, n):
    """Training rows as ascending row numbers."""
    if train is None:
        raise ValueError(
            "train must name the rows that the cues 'bow' and 'laser' learn from (np.arange(n) takes all), got None."
        )
    rows = np.asarray(train)
    if rows.dtype == np.bool_ and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.size == 0 or rows.min() < 0 or rows.max() >= n:
        raise ValueError(
            f"train must be row numbers from 0 to {n - 1}, at least one, or a mask of shape ({n},)."
        )
    return np.unique(rows)


class _Picked:
    """Some items of a sequence, read when asked for."""

    def __init__(self, items, rows):
        self.items, self.rows = items, rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.items[int(self.rows[i])]


def _part(items, start):
    """One task's share of a sequence: a slice where the sequence can be sliced."""
    stop = min(start + _IMAGES_PER_TASK, len(items))
    try:
        return items[start:stop]
    except TypeError:
        return _Picked(items, np.arange(start, stop))


def _describe(images, masks, cues, masked, vocabulary, start, names):
    """Describe one task's images: one float32 array of shape (n_images, width) per cue."""
    step = 8 if vocabulary is None else vocabulary.step
    rows = []
    for i in range(len(images)):
        try:
            rows.append(_describe_one(images[i], None if masks is None else masks[i], cues, masked, step))
        except DataFileError:
            raise
        except ValueError as error:
            known = "" if names is None else f" ({names[i]})"
            raise ValueError(f"Image {start + i}{known} cannot be described: {error}") from None
    columns = [[row[j] for row in rows] for j in range(len(cues))]
    if "bow" in cues:
        j = cues.index("bow")
        columns[j] = vocabulary.transform(columns[j])
    return [np.asarray(column, dtype=np.float32) for column in columns]


def _describe_one(image, mask, cues, masked, step):
    """Descriptors of one image, in the order of the cues; for ``bow`` its local descriptors."""
    _check_image(image)
    shape = None if mask is None else _check_mask(mask, image.shape[:2])
    inside = shape if masked else None
    grey = _grey(image) if {"LxLy", "DirC"} & set(cues) else None
    described = []
    for cue in cues:
        if cue == "colour":
            described.append(rgb_histogram(image, mask=inside))
        elif cue == "bow":
            described.append(dense_descriptors(image, step))
        elif cue == "shape":
            described.append(centred_mask(shape))
        else:
            described.append(_crfh(grey, cue, _FILTERS[cue]["scales"], _FILTERS[cue]["bins"], inside))
    return described


def _feature_names(cue, width):
    """One name per column."""
    if cue == "laser":
        return [f"laser {name}" for name in LASER_FEATURE_NAMES]
    if cue == "colour":
        side = round(width ** (1 / 3))
        return [f"colour r{r} g{g} b{b}" for r in range(side) for g in range(side) for b in range(side)]
    if cue == "LxLy":
        bins, scales = _FILTERS[cue]["bins"], _FILTERS[cue]["scales"]
        return [f"LxLy scale {s:g} x{x} y{y}" for s in scales for x in range(bins) for y in range(bins)]
    if cue == "DirC":
        sectors = [*(f"{i}" for i in range(_FILTERS[cue]["bins"])), "flat"]
        fine, coarse = (f"{s:g}" for s in _FILTERS[cue]["scales"])
        return [f"DirC scale {fine} {a}, scale {coarse} {b}" for a in sectors for b in sectors]
    if cue == "shape":
        side = math.isqrt(width)
        return [f"shape row {i} column {j}" for i in range(side) for j in range(side)]
    return [f"word {i}" for i in range(width)]
