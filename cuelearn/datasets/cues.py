r"""From images and laser scans to the papers' cues (thesis section 3.4 and appendix A).

`image_cues` turns an `ImageData` into a `CueData`; the functions before it describe one image each. Every
range and number of bins is fixed, so that a descriptor depends on its image alone. What is learnt, the
vocabulary of the bag of words and the scale of the laser features, comes from the rows named ``train``."""

from __future__ import annotations

import math
import numbers

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from cuelearn.core.optional import require

from .base import CueData, DataFileError, check_integer, check_rows, side_by_side
from .laser import LASER_FEATURE_NAMES, laser_features

__all__ = [
    *("BagOfWords", "IMAGE_CUES", "LASER_FEATURE_NAMES", "OBJECT_CUES", "ROBOT_CUES", "centred_mask", "crfh"),
    *("cue_kernels", "dense_descriptors", "foreground_mask", "image_cues", "laser_features"),
    *("in_tasks", "rgb_histogram"),
]

#: All cues that `image_cues` knows.
IMAGE_CUES = ("colour", "LxLy", "DirC", "bow", "laser", "shape")
#: The four of table 3.1, in its order (its CRFH is ``LxLy``).
ROBOT_CUES = ("colour", "LxLy", "bow", "laser")
#: The four of table 3.2, in its order.
OBJECT_CUES = ("LxLy", "DirC", "colour", "shape")

#: Scale-normalised derivatives from -RESPONSE_RANGE to RESPONSE_RANGE are told apart (grey values run from 0
#: to 1). An edge from black to white responds with 1/sqrt(2 pi) = 0.40 at every scale.
RESPONSE_RANGE = 0.2
#: Below this scale-normalised gradient magnitude, an edge of 6 grey levels, a pixel has no direction.
FLAT_MAGNITUDE = 0.01

#: Scales and bins of the receptive field histograms, by filters.
_FILTERS = {"LxLy": ((1.0, 2.0, 4.0), 15), "DirC": ((1.0, 4.0), 16)}
#: Bins of the cues whose columns form a grid.
_GRIDS = {"colour": (8, 8, 8), "LxLy": (3, 15, 15), "DirC": (17, 17), "shape": (24, 24)}

#: Images handed to one worker at a time.
IMAGES_PER_TASK = 64


def _check_image(image):
    """Refuse what is not an RGB image of bytes."""
    shape, dtype = getattr(image, "shape", None), getattr(image, "dtype", None)
    if shape is None or len(shape) != 3 or shape[2] != 3 or dtype != np.uint8 or 0 in shape:
        found = type(image).__name__ if shape is None else f"shape {tuple(shape)} of {dtype}"
        raise ValueError(f"image must be an array of shape (height, width, 3) of uint8, got {found}.")


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
    _check_image(image)
    level = (image >> 5).astype(np.int32)
    return _share((level[..., 0] * 8 + level[..., 1]) * 8 + level[..., 2], 512, mask)


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
    from scipy.ndimage import gaussian_filter

    grey = _grey(image)
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

    shares, index = [], np.zeros(grey.shape, dtype=np.int32)
    for scale in scales:
        lx, ly = (
            np.float32(scale) * gaussian_filter(grey, float(scale), order=order, mode="nearest")
            for order in ((0, 1), (1, 0))
        )
        if filters == "LxLy":
            x, y = (
                np.clip((r + RESPONSE_RANGE) * (bins / (2 * RESPONSE_RANGE)), 0, bins - 1).astype(np.int32)
                for r in (lx, ly)
            )
            shares.append(_share(x * bins + y, bins**2, mask) / np.float32(len(scales)))
        else:
            turns = np.arctan2(ly, lx) * np.float32(bins / (2 * math.pi))
            sector = np.floor(turns + np.float32(0.5)).astype(np.int32) % bins
            sector[lx * lx + ly * ly < FLAT_MAGNITUDE**2] = bins
            index = index * (bins + 1) + sector
    return np.concatenate(shares) if shares else _share(index, size, mask)


def dense_descriptors(image, step=8):
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
    words_ : ndarray of float32, shape (n_words, 128)
        The centres.

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
        """Learn the vocabulary from images, or from their `dense_descriptors`, read where drawn.

        `rows` are those of `images` that are training images; all by default.
        """
        from sklearn.cluster import MiniBatchKMeans
        from threadpoolctl import threadpool_limits

        self._validate_params()
        rows = np.arange(len(images)) if rows is None else rows
        if len(rows) == 0:
            raise ValueError("images must hold at least one image, got none.")
        rng = np.random.default_rng(self.random_state)
        drawn = rows[np.sort(rng.permutation(len(rows))[: self.max_images])]
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

    def _descriptors(self, image):
        if getattr(image, "ndim", None) != 2:
            return dense_descriptors(image, self.step)
        if image.shape[1] != 128 or image.dtype != np.uint8 or len(image) == 0:
            raise ValueError(
                f"descriptors must be of shape (n_patches, 128) of uint8, got {image.shape} of {image.dtype}."
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
    side, (size, _) = 3.0 * math.sqrt(area), _GRIDS["shape"]
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


def in_tasks(describe, sequences, *arguments, n_jobs=None):
    """List of what `describe` makes of blocks of the sequences; blocks do not depend on n_jobs."""
    from joblib import Parallel, delayed

    from cuelearn.core.progress import progress

    starts = range(0, len(sequences[0]), IMAGES_PER_TASK)
    parts = (
        [None if items is None else items[start : start + IMAGES_PER_TASK] for items in sequences]
        for start in starts
    )
    done = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(describe)(*part, *arguments) for part in parts
    )
    return list(progress(done, name="cues", total=len(starts), verbose=True))


def image_cues(data, cues, *, train=None, n_words=300, vocabulary=None, random_state=0, n_jobs=1):
    """Describe images by several cues.

    Parameters
    ----------
    data : ImageData
        From `make_robot`, `make_objects`, `load_image_folder`, `load_idol2` or `load_eth80`.
    cues : sequence of {"colour", "LxLy", "DirC", "bow", "laser", "shape"}
        In the order wanted. The thesis's choices are `ROBOT_CUES` and `OBJECT_CUES`.
    train : array of int or of bool, optional
        Rows from which the vocabulary of ``bow`` and the scale of ``laser`` are learnt. These two cues need
        it, so that nothing of the test rows enters by oversight; ``np.arange(n)`` takes all.
    n_words : int, default=300
        Size of the vocabulary.
    vocabulary : BagOfWords, optional
        A fitted one, in place of learning it.
    random_state : int, default=0
        Seed of the vocabulary.
    n_jobs : int, default=1
        Processes that describe images; -1 takes all cores. The result has the same bits for any number.

    Returns
    -------
    CueData
        `X` float32 of shape (n, d): colour 512 columns, LxLy 675 and DirC 289, over the object only where
        masks are known, bow `n_words`, laser 45 (`laser_features` standardised over the training rows), shape
        576. The rest is that of `data`.

    Raises
    ------
    ValueError
        If a cue needs masks, laser scans or `train`, which are not there; if an image, a mask or a scan is
        not as it must be, with the name of the frame.

    Notes
    -----
    Per image of 128 x 128 pixels on one core: colour 0.2 ms, LxLy 2 ms, DirC 2 ms, bow 3 ms, shape 0.2 ms.

    Examples
    --------
    >>> from cuelearn.datasets import make_robot
    >>> image_cues(make_robot(5, 32, 32), ["colour", "DirC"])
    <robot, generated: X (60, 801) float32, cues colour (512), DirC (289)>
    """
    cues = _check_cues(data, cues)
    names, learnt, blocks = data.frames.get("name"), [], {}
    if ("bow" in cues and vocabulary is None) or "laser" in cues:
        if train is None:
            raise ValueError(
                "train must name the rows that the cues 'bow' and 'laser' learn from (np.arange(n) takes "
                "all), got None."
            )
        train = check_rows("train", train, len(data.y))
    if "bow" in cues and vocabulary is None:
        vocabulary = BagOfWords(n_words, random_state=random_state)
        try:
            vocabulary.fit(data.images, rows=train)
        except ValueError as error:
            raise ValueError(f"The vocabulary of cue 'bow' cannot be learnt: {error}") from None
        learnt.append(f"{n_words} words learnt from {len(train)} images")
    if "laser" in cues:
        scans = laser_features(data.laser, data.laser_angles, names=names)
        scale = scans[train].std(axis=0)
        blocks["laser"] = (scans - scans[train].mean(axis=0)) / np.where(scale > 0, scale, 1)
        learnt.append(f"laser features standardised over {len(train)} frames")
    drawn = [cue for cue in cues if cue != "laser"]
    if drawn:
        sequences = np.arange(len(data.y)), data.images, data.masks, names
        parts = in_tasks(_describe, sequences, drawn, vocabulary, n_jobs=n_jobs)
        blocks |= {cue: np.concatenate([part[cue] for part in parts]) for cue in drawn}
    X, columns = side_by_side({cue: blocks[cue] for cue in cues}, np.float32)
    features = []
    for cue in cues:
        if cue == "laser":
            features += [f"laser {name}" for name in LASER_FEATURE_NAMES]
        else:  # by the place in the histogram or on the grid
            places = np.ndindex(_GRIDS.get(cue, (blocks[cue].shape[1],)))
            features += [f"{cue} {','.join(map(str, place))}" for place in places]
    how = f" ({'; '.join(learnt)})" if learnt else ""
    description = f"{data.description.rstrip('. ')}. Described by {', '.join(cues)}{how}."
    targets = list(data.target_names)
    return CueData(X, data.y, columns, None, None, features, targets, description, data.provenance)


def _check_cues(data, cues):
    """The cues as a tuple, each known, given once, and with what it needs in the data."""
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


def _describe(rows, images, masks, names, cues, vocabulary):
    """Describe one task's images: by cue, float32 of shape (n_images, width)."""
    describe = {
        "colour": rgb_histogram,
        "LxLy": lambda image, mask: crfh(image, "LxLy", mask=mask),
        "DirC": lambda image, mask: crfh(image, "DirC", mask=mask),
        "bow": lambda image, mask: dense_descriptors(image, vocabulary.step),
        "shape": lambda image, mask: centred_mask(_check_mask(mask, image.shape[:2])),
    }
    columns = {cue: [] for cue in cues}
    for i, row in enumerate(rows):
        try:
            image, mask = images[i], None if masks is None else masks[i]
            for cue in cues:
                columns[cue].append(describe[cue](image, mask))
        except DataFileError:
            raise
        except ValueError as error:
            known = "" if names is None else f" ({names[i]})"
            raise ValueError(f"Image {row}{known} cannot be described: {error}") from None
    if "bow" in cues:
        columns["bow"] = vocabulary.transform(columns["bow"])
    return {cue: np.asarray(column, dtype=np.float32) for cue, column in columns.items()}
