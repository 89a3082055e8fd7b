r"""From images and laser scans to the papers' cues.

What the thesis takes from an image (appendix A): a joint RGB colour histogram; composed receptive field
histograms of the first Gaussian derivatives (``LxLy``) and of the gradient direction (``DirC``); a bag of
words over dense local descriptors (``bow``); the centred mask as a global shape (``shape``); and, from a
laser scan, simple geometric features (``laser``). `image_cues` turns an `ImageData` into a `CueData` with any
of them as cues; the functions before it serve one image each.

Every range and every number of bins is fixed, never taken from the data, so that a descriptor of an image
depends on that image alone. Three things are learnt, from the rows named ``train`` and no others: the
vocabulary of the bag of words, and the mean and the standard deviation of each laser feature.

References
----------
Jie Luo (2011). Open-ended Learning of Visual and Multi-modal Patterns. EPFL thesis 5233, section 3.4 and
appendix A."""

from __future__ import annotations

import math
import numbers

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .base import CueData, DataFileError, check_integer, check_rows, side_by_side
from .laser import LASER_FEATURE_NAMES, laser_features

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

#: Scale-normalised derivatives from -RESPONSE_RANGE to RESPONSE_RANGE are told apart (grey values run from 0
#: to 1). An ideal edge from black to white responds with 1/sqrt(2 pi) = 0.40 at every scale; half that
#: contrast fills the range.
RESPONSE_RANGE = 0.2
#: Below this scale-normalised gradient magnitude a pixel has no direction: the response to an edge of 6 grey
#: levels in 255.
FLAT_MAGNITUDE = 0.01

#: Scales and bins of the receptive field histograms, by filters.
_FILTERS = {"LxLy": ((1.0, 2.0, 4.0), 15), "DirC": ((1.0, 4.0), 16)}

#: Images handed to one worker at a time.
IMAGES_PER_TASK = 64


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
    check_integer("bins", bins, 1, 32)
    if mask is not None:
        mask = _check_mask(mask, image.shape[:2])
    level = (np.arange(256) * bins // 256).astype(np.int32)[image]
    return _share((level[..., 0] * bins + level[..., 1]) * bins + level[..., 2], bins**3, mask)


def crfh(image, filters="LxLy", scales=None, bins=None, mask=None):
    r"""Composed receptive field histogram of the grey image.

    At scale :math:`\sigma` the filters are the scale-normalised first derivatives of the image smoothed by a
    Gaussian,

    .. math:: L_x = \sigma\, \partial_x (g_\sigma * f), \qquad L_y = \sigma\, \partial_y (g_\sigma * f) ,

    for grey values f from 0 to 1.

    ``"LxLy"``
        The joint histogram of :math:`(L_x, L_y)` at each scale, one scale after the other. Bins are equally
        wide from -0.2 to 0.2; stronger responses count in the outermost bins. With an odd number of bins flat
        regions fall in the middle of one.
    ``"DirC"``
        The gradient direction :math:`\operatorname{atan2}(L_y, L_x)`, in `bins` equal sectors of the circle
        of which the first is centred on the x axis, and one bin more for pixels whose magnitude is below
        0.01; binned jointly over all scales. It forgets contrast, which the derivatives keep.

    Outside the image the nearest pixel is repeated.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3)
    filters : {"LxLy", "DirC"}, default="LxLy"
    scales : sequence of float, optional
        Standard deviations :math:`\sigma` in pixels, positive; (1, 2, 4) for LxLy, as Leibe and Schiele use
        for these derivatives, and (1, 4) for DirC.
    bins : int, optional
        Bins per derivative, 15, or sectors, 16.
    mask : ndarray of bool, shape (height, width), optional
        Count only the pixels where it is True. The filters still see what surrounds them.

    Returns
    -------
    ndarray of float32
        Shares of the pixels, sum 1. LxLy: shape (n_scales * bins**2,), bin (s, x, y) at ``(s * bins + x) *
        bins + y``, each scale with sum 1 / n_scales. DirC: shape ((bins + 1)**n_scales,), the last scale's
        index running fastest, the flat bin last.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described, the mask is empty, or the histogram would have more than 10,000
        bins.

    References
    ----------
    O. Linde and T. Lindeberg (2004). Object recognition using composed receptive field histograms of higher
    dimensionality. ICPR.
    B. Leibe and B. Schiele (2003). Analyzing appearance and contour based methods for object categorization.
    CVPR.

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
    scales = _FILTERS[filters][0] if scales is None else tuple(scales)
    bins = _FILTERS[filters][1] if bins is None else bins
    if not scales or not all(isinstance(s, numbers.Real) and math.isfinite(s) and s > 0 for s in scales):
        raise ValueError(f"scales must be positive numbers of pixels, at least one, got {scales}.")
    check_integer("bins", bins, 1)
    size = len(scales) * bins**2 if filters == "LxLy" else (bins + 1) ** len(scales)
    if size > 10_000:
        raise ValueError(f"bins and scales must give at most 10,000 bins in all, got {size}.")
    if mask is not None:
        mask = _check_mask(mask, image.shape[:2])
    return receptive_fields(_grey(image), filters, scales, bins, mask)


def receptive_fields(grey, filters, scales, bins, mask):
    """Histogram of `crfh`, of a grey image and valid parameters."""
    if filters == "LxLy":
        shares = []
        for scale in scales:
            x, y = (
                np.clip((r + RESPONSE_RANGE) * (bins / (2 * RESPONSE_RANGE)), 0, bins - 1).astype(np.int32)
                for r in _derivatives(grey, scale)
            )
            shares.append(_share(x * bins + y, bins**2, mask) / np.float32(len(scales)))
        return np.concatenate(shares)
    index = np.zeros(grey.shape, dtype=np.int32)
    for scale in scales:
        lx, ly = _derivatives(grey, scale)
        turns = np.arctan2(ly, lx) * np.float32(bins / (2 * math.pi))
        sector = np.floor(turns + np.float32(0.5)).astype(np.int32) % bins
        sector[lx * lx + ly * ly < FLAT_MAGNITUDE**2] = bins
        index = index * (bins + 1) + sector
    return _share(index, (bins + 1) ** len(scales), mask)


def _derivatives(grey, scale):
    """Scale-normalised Lx (along the columns) and Ly (along the rows), float32."""
    from scipy.ndimage import gaussian_filter

    return tuple(
        np.float32(scale) * gaussian_filter(grey, float(scale), order=order, mode="nearest")
        for order in ((0, 1), (1, 0))
    )


def dense_descriptors(image, step=8):
    """Dense local descriptors of the grey image, laid out and normalised as SIFT's.

    Square patches on a grid, each described by 4 x 4 cells of 8 orientations, normalised to unit length, cut
    at 0.2 and normalised again, and stored as bytes, ``min(512 v, 255)``. Unlike SIFT's, they have one fixed
    size, keep upright, and opposite gradients count as one orientation. scikit-image's `hog` does the work.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3)
        At least `4 * step` pixels high and wide.
    step : int, default=8
        Side of a cell and distance of neighbouring patches in pixels; a patch covers ``4 * step``. At least
        2.

    Returns
    -------
    ndarray of uint8, shape (n_patches, 128)
        ``(height // step - 3) * (width // step - 3)`` patches, row by row. All zero where the patch is of one
        colour.

    Raises
    ------
    ValueError, TypeError
        If the image is not as described or smaller than one patch.

    References
    ----------
    D. Lowe (2004). Distinctive image features from scale-invariant keypoints. IJCV 60.

    Examples
    --------
    >>> import numpy as np
    >>> dense_descriptors(np.zeros((96, 128, 3), np.uint8)).shape
    (117, 128)
    """
    _check_image(image)
    check_integer("step", step, 2)
    if min(image.shape[:2]) < 4 * step:
        raise ValueError(
            f"image must be at least 4 * step = {4 * step} pixels high and wide, "
            f"got {image.shape[0]} x {image.shape[1]}."
        )
    return grey_descriptors(_grey(image), step)


def grey_descriptors(grey, step):
    """`dense_descriptors` of a grey image."""
    from skimage.feature import hog

    blocks = hog(
        grey, orientations=8, pixels_per_cell=(step, step), cells_per_block=(4, 4), feature_vector=False
    )
    return np.minimum(np.rint(512 * blocks.reshape(-1, 128)), 255).astype(np.uint8)


class BagOfWords(TransformerMixin, BaseEstimator):
    """Histograms of visual words: local descriptors replaced by their nearest of `n_words` cluster centres.

    `fit` clusters descriptors of the images it is given with scikit-learn's `MiniBatchKMeans`; hand it
    training images only. `transform` counts how many of an image's descriptors lie nearest to each centre.
    Both take images, or their `dense_descriptors` where one set of images is described with several
    vocabularies.

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
        Seed of the draws and of the clustering: the same seed and images give the same bits for any number of
        threads.

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

    References
    ----------
    J. Sivic and A. Zisserman (2003). Video Google: a text retrieval approach to object matching in videos.
    ICCV.

    Examples
    --------
    >>> import numpy as np
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

        self._validate_params()
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
        """Count the words: shares of the patches, float32 of shape (n_images, n_words), each row with sum 1.

        Parameters
        ----------
        images : sequence of ndarray
            As for `fit`.
        """
        from threadpoolctl import threadpool_limits

        check_is_fitted(self)
        with threadpool_limits(1):
            rows = [self._shares(self._descriptors(images[i])) for i in range(len(images))]
        return np.array(rows, dtype=np.float32).reshape(len(rows), len(self.words_))

    def _descriptors(self, image):
        if getattr(image, "ndim", None) != 2:
            return dense_descriptors(image, self.step)
        if image.shape[1] != 128 or image.dtype != np.uint8 or len(image) == 0:
            raise ValueError(
                f"descriptors must be of shape (n_patches, 128) of uint8, got {image.shape} of {image.dtype}."
            )
        return image

    def _shares(self, descriptors):
        # |d - w|^2 without the part that all words share.
        distance = descriptors.astype(np.float32) @ self.words_.T
        distance *= -2
        distance += (self.words_.astype(np.float64) ** 2).sum(axis=1).astype(np.float32)
        return _share(distance.argmin(axis=1), len(self.words_), None)


def centred_mask(mask, size=24, extent=3.0):
    r"""Global shape: the silhouette moved to its centroid, scaled to unit area, and sampled on a small grid.

    The grid is a square of side :math:`e \sqrt A`, A the silhouette's area in pixels and e the `extent`,
    centred on the centroid; a cell's value is the share of it that the silhouette covers, computed exactly.
    So the vector does not change when the silhouette moves by whole pixels, and hardly when it is scaled.
    What lies outside the image counts as background.

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
    B. Leibe and B. Schiele (2003). Analyzing appearance and contour based methods for object categorization.
    CVPR. Thesis appendix A.

    Examples
    --------
    >>> import numpy as np
    >>> square = np.zeros((40, 40), bool)
    >>> square[3:13, 20:30] = True
    >>> centred_mask(square, size=6).reshape(6, 6)[2]
    array([0., 0., 1., 1., 0., 0.], dtype=float32)
    """
    mask = _check_mask(mask)
    check_integer("size", size, 1)
    if not (isinstance(extent, numbers.Real) and math.isfinite(extent) and extent > 0):
        raise ValueError(f"extent must be a positive number, got {extent!r}.")
    rows, columns = mask.sum(axis=1), mask.sum(axis=0)
    area = int(rows.sum())
    side = extent * math.sqrt(area)
    edges = side * (np.arange(size + 1) / size - 0.5)
    covered = mask.astype(np.float64)
    for axis, counts in enumerate((rows, columns)):
        # Integers all through, so that the centroid moves with the silhouette to the last bit of the
        # division.
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
    where that is less: Otsu's alone would cut an object of two colours in two.

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


def default_kernels():
    r"""Kernel of each cue, as the thesis has it: exponential :math:`\chi^2` for what comes from images,
    Gaussian for the laser.

    The masks' kernel is not named apart in the thesis (appendix A); they come from images and take the
    :math:`\chi^2` kernel too.

    Returns
    -------
    dict of str to Kernel
        One for each of `IMAGE_CUES`, with ``gamma="mean"``.

    Examples
    --------
    >>> default_kernels()["laser"]
    RBF(gamma='mean', factor=1.0)
    """
    # Here and not above: it loads compiled code, which describing images does not need.
    from cuelearn.kernels import RBF, Chi2

    return {cue: RBF() if cue == "laser" else Chi2() for cue in IMAGE_CUES}


def cue_kernels(data, cues=None):
    """Pair the cues of a `CueData` made by `image_cues`, or those named, with their `default_kernels`.

    Returns
    -------
    list of (name, kernel, columns)
        As the estimators' ``kernels=`` and `cuelearn.kernels.KernelBank` take them; `ValueError` if a cue is
        unknown.
    """
    kernels = default_kernels()
    wanted = data.cues if cues is None else cues
    return [triple for cue in wanted for triple in data.triples(kernels.get(cue), [cue])]


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
):
    """Describe images by several cues.

    Parameters
    ----------
    data : ImageData
        From `make_robot`, `make_objects`, `load_image_folder`, `load_idol2` or `load_eth80`.
    cues : sequence of {"colour", "LxLy", "DirC", "bow", "laser", "shape"}
        In the order wanted. The thesis' choices are `ROBOT_CUES` and `OBJECT_CUES`.
    train : array of int or of bool, optional
        Rows from which the vocabulary of ``bow`` and the scale of ``laser`` are learnt. Needed for these two
        cues, so that nothing of the test rows enters by oversight; ``np.arange(n)`` takes all.
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

    Returns
    -------
    CueData
        `X` float32 of shape (n, d): colour 512 columns, LxLy 675, DirC 289, bow `n_words`, laser 45
        (standardised to mean 0 and standard deviation 1 over the training rows), shape 576. Classes, names,
        provenance and tier are those of `data`.

    Raises
    ------
    ValueError
        If a cue is unknown or given twice, needs masks or laser scans that `data` lacks, or needs `train`; if
        an image or a mask is not as it must be, or a frame has no laser scan, with the name of the frame.
    DataFileError
        If an image file cannot be read.

    Notes
    -----
    Per image of 128 x 128 pixels on one core: colour 0.2 ms, LxLy 2 ms, DirC 2 ms, bow 3 ms, shape 0.2 ms. A
    progress bar appears after two seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets import ImageData, Provenance
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 40, 40, 3), dtype=np.uint8)
    >>> origin = Provenance("noise", "generated", "none", None, "none", "an example")
    >>> frames = {"name": np.array(["a", "b"])}
    >>> data = ImageData(images, np.array([0, 1]), ["x", "y"], frames, None, None, None, "Noise.", origin)
    >>> image_cues(data, ["colour", "DirC"])
    <noise, generated: X (2, 801) float32, cues colour (512), DirC (289)>
    """
    from joblib import Parallel, delayed

    from cuelearn.core.progress import progress

    cues = _check_cues(data, cues)
    n, names, learnt, blocks = len(data.y), data.frames.get("name"), [], {}
    if ("bow" in cues and vocabulary is None) or "laser" in cues:
        if train is None:
            raise ValueError(
                "train must name the rows that the cues 'bow' and 'laser' learn from (np.arange(n) takes "
                "all), got None."
            )
        train = check_rows("train", train, n)

    if "bow" in cues and vocabulary is None:
        vocabulary = BagOfWords(n_words, random_state=random_state)
        try:
            vocabulary.fit(_Picked(data.images, train))
        except ValueError as error:
            raise ValueError(f"The vocabulary of cue 'bow' cannot be learnt: {error}") from None
        learnt.append(f"{n_words} words learnt from {len(train)} images")
    if "laser" in cues:
        scans = laser_features(data.laser, data.laser_angles, max_range, names)
        scale = scans[train].std(axis=0)
        blocks["laser"] = (scans - scans[train].mean(axis=0)) / np.where(scale > 0, scale, 1)
        learnt.append(f"laser features standardised over {len(train)} frames")

    drawn = [cue for cue in cues if cue != "laser"]
    if drawn:
        masks = data.masks if masked or "shape" in drawn else None
        tasks = [
            delayed(_describe)(
                *(_part(held, start) for held in (data.images, masks, names)),
                drawn,
                masked,
                vocabulary,
                start,
            )
            for start in range(0, n, IMAGES_PER_TASK)
        ]
        parts = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        parts = list(progress(parts, name="cues", total=len(tasks)))
        blocks |= {cue: np.concatenate([part[j] for part in parts]) for j, cue in enumerate(drawn)}

    X, columns = side_by_side({cue: blocks[cue] for cue in cues}, np.float32)
    how = f" ({'; '.join(learnt)})" if learnt else ""
    return CueData(
        X,
        data.y,
        columns,
        None,
        None,
        [name for cue in cues for name in _feature_names(cue, blocks[cue].shape[1])],
        list(data.target_names),
        f"{data.description.rstrip('. ')}. Described by {', '.join(cues)}{how}.",
        data.provenance,
    )


def _check_cues(data, cues):
    """The cues as a tuple, each known, given once, and with what it needs in the data."""
    cues = (cues,) if isinstance(cues, str) else tuple(cues)
    if not cues or not set(cues) <= set(IMAGE_CUES) or len(set(cues)) < len(cues):
        raise ValueError(f"cues must be some of {list(IMAGE_CUES)}, each once, got {list(cues)}.")
    if "laser" in cues and (data.laser is None or data.laser_angles is None):
        raise ValueError(
            "The cue 'laser' needs laser scans with their angles, but data.laser or data.laser_angles is "
            "None."
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


class _Picked:
    """Some items of a sequence, read when asked for."""

    def __init__(self, items, rows):
        self.items, self.rows = items, rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.items[int(self.rows[i])]


def _part(items, start):
    """One task's share of a sequence, or None: a slice where the sequence can be sliced."""
    if items is None:
        return None
    stop = min(start + IMAGES_PER_TASK, len(items))
    try:
        return items[start:stop]
    except TypeError:
        return _Picked(items, np.arange(start, stop))


def _describe(images, masks, names, cues, masked, vocabulary, start):
    """Describe one task's images: one float32 array of shape (n_images, width) per cue."""
    rows = []
    for i in range(len(images)):
        try:
            mask = None if masks is None else masks[i]
            rows.append(_describe_one(images[i], mask, cues, masked, vocabulary))
        except DataFileError:
            raise
        except ValueError as error:
            known = "" if names is None else f" ({names[i]})"
            raise ValueError(f"Image {start + i}{known} cannot be described: {error}") from None
    columns = dict(zip(cues, zip(*rows, strict=True), strict=True))
    if "bow" in cues:
        columns["bow"] = vocabulary.transform(columns["bow"])
    return [np.asarray(column, dtype=np.float32) for column in columns.values()]


def _describe_one(image, mask, cues, masked, vocabulary):
    """Descriptors of one image, in the order of the cues; for ``bow`` its local descriptors."""
    _check_image(image)
    shape = None if mask is None else _check_mask(mask, image.shape[:2])
    inside = shape if masked else None
    describe = {
        "colour": lambda: rgb_histogram(image, mask=inside),
        "LxLy": lambda: crfh(image, "LxLy", mask=inside),
        "DirC": lambda: crfh(image, "DirC", mask=inside),
        "bow": lambda: dense_descriptors(image, vocabulary.step),
        "shape": lambda: centred_mask(shape),
    }
    return [describe[cue]() for cue in cues]


def _feature_names(cue, width):
    """One name per column."""
    if cue == "laser":
        return [f"laser {name}" for name in LASER_FEATURE_NAMES]
    if cue == "colour":
        side = range(round(width ** (1 / 3)))
        return [f"colour r{r} g{g} b{b}" for r in side for g in side for b in side]
    if cue == "LxLy":
        scales, bins = _FILTERS[cue]
        return [f"LxLy scale {s:g} x{x} y{y}" for s in scales for x in range(bins) for y in range(bins)]
    if cue == "DirC":
        (fine, coarse), bins = _FILTERS[cue]
        sectors = [*map(str, range(bins)), "flat"]
        return [f"DirC scale {fine:g} {a}, scale {coarse:g} {b}" for a in sectors for b in sectors]
    if cue == "shape":
        side = range(math.isqrt(width))
        return [f"shape row {i} column {j}" for i in side for j in side]
    return [f"word {i}" for i in range(width)]
