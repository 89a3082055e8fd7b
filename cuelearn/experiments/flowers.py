r"""Oxford Flowers-17 (appendix A): photographs -> seven cues -> chi-squared distances -> kernels.

The papers take seven distance matrices that the data's authors published, of segmented flowers. Here the cues
are extracted anew from the photographs, without segmentation (`flower_cues`): histograms of colour, shape and
texture too, which become kernels in the same way, :math:`\exp(-d / \gamma)` with d the chi-squared distance
and :math:`\gamma` a multiple of its mean over the training pairs. The published splits are not used either;
`flower_split` draws splits of the same sizes. So accuracies compare methods with each other, not with the
papers' numbers.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from PIL import Image
from skimage.color import rgb2gray, rgb2hsv
from skimage.feature import hog
from skimage.filters import gaussian

from cuelearn.datasets import CueData, load_original
from cuelearn.datasets.cues import BagOfWords, crfh, dense_descriptors, rgb_histogram
from cuelearn.experiments.protocol import MEMORY_MANY, Task
from cuelearn.kernels import ExpDistance, KernelBank, distance_matrix

#: The cues, in the order of the kernels.
FLOWER_CUES = ("RGB", "HSV", "LxLy", "DirC", "shape pyramid", "words", "large words")
_WORD_CUES = FLOWER_CUES[5:]
#: Widths of the 1,400 kernels, times the mean distance: 200 for each of seven distances (thesis section
#: 4.5.4).
WIDTHS = np.geomspace(0.01, 100.0, 200)

N_TRAIN, N_TEST = (
    60,
    20,
)  # per class: the published splits have 40 for training, 20 for validation, 20 for tests
N_WORDS = 400
# Photographs are scaled down to this shorter side, so that copies of any size give nearly the same cues.
SHORTER_SIDE = 240
SMALLEST_SIDE = 64  # one large patch
HSV_BINS = (16, 4, 4)
STEP = 8  # of the patches, in pixels; large ones have it in the image at half size
PYRAMID = (1, 2, 4)  # cells per side
PYRAMID_SECTORS = 16
PYRAMID_SMOOTHING = 1.5
_IMAGES_PER_TASK = 20


class Description(NamedTuple):
    """What is known of images before a vocabulary is learnt; shared by all splits.

    The first five of `FLOWER_CUES` as float32 histograms, (n, width); for the two cues of words the local
    descriptors of each image as uint8, (n_patches, 128), and which of these patches are centred in the middle
    of the image.
    """

    images: object
    histograms: dict
    patches: dict
    central: dict


def _scaled(image, factor):
    """The image at another size, by Lanczos' filter."""
    size = tuple(max(1, round(factor * side)) for side in image.shape[1::-1])
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.LANCZOS))


def _central(rows, columns, height, width):
    """Which points lie in the central ellipse with semi-axes a third of the sides: 35 % of the area."""
    return ((rows - height / 2) / (height / 3)) ** 2 + ((columns - width / 2) / (width / 3)) ** 2 <= 1


def _hsv_histogram(levels, mask):
    """Joint histogram of hue, saturation and value, given the bin of each pixel."""
    return np.bincount(levels[mask], minlength=np.prod(HSV_BINS)) / mask.sum()


def _shape_pyramid(image):
    """Orientation of edges, by contrast, in the image, its quarters, its sixteenths: levels of sum 1/3."""
    grey = gaussian(rgb2gray(image), PYRAMID_SMOOTHING)
    n = PYRAMID[-1]
    cell = (grey.shape[0] // n, grey.shape[1] // n)
    grey = grey[: n * cell[0], : n * cell[1]]
    # one block that covers the image: all cells are divided by the same norm
    cells = hog(grey, PYRAMID_SECTORS, cell, (n, n), block_norm="L1", feature_vector=False).reshape(n, n, -1)
    levels = [
        cells.reshape(side, n // side, side, n // side, -1).sum(axis=(1, 3)).ravel() for side in PYRAMID
    ]
    total = levels[0].sum()
    if total == 0:  # no edge: every orientation alike
        levels, total = [np.full(level.size, 1 / level.size) for level in levels], 1.0
    return np.concatenate(levels) / (len(PYRAMID) * total)


def _describe_one(image):
    """Five histograms, and for the two sizes of patches the descriptors and which of them are central."""
    height, width = image.shape[:2]
    if min(height, width) < SMALLEST_SIDE:
        least = f"it must be at least {SMALLEST_SIDE} pixels high and wide"
        raise ValueError(f"{least}, got {height} x {width}.")
    factor = SHORTER_SIDE / min(image.shape[:2])
    if factor < 1:
        image = _scaled(image, factor)
    height, width = image.shape[:2]
    rows, columns = np.mgrid[:height, :width] + 0.5
    regions = (np.ones((height, width), bool), _central(rows, columns, height, width))

    bins = np.array(HSV_BINS)
    hue, saturation, value = np.moveaxis(np.minimum((rgb2hsv(image) * bins).astype(np.intp), bins - 1), 2, 0)
    levels = (hue * bins[1] + saturation) * bins[2] + value
    histograms = {
        "RGB": [rgb_histogram(image, mask=region) for region in regions],
        "HSV": [_hsv_histogram(levels, region) for region in regions],
        "LxLy": [crfh(image, "LxLy", (1.0, 2.0), mask=region) for region in regions],
        "DirC": [crfh(image, "DirC", mask=region) for region in regions],
        "shape pyramid": [2 * _shape_pyramid(image)],
    }
    patches, central = [], []
    for part in (image, _scaled(image, 0.5)):
        height, width = part.shape[:2]
        corners = [np.arange(side // STEP - 3) * STEP for side in (height, width)]
        rows, columns = np.meshgrid(*(corner + 2 * STEP for corner in corners), indexing="ij")
        patches.append(dense_descriptors(part, STEP))
        central.append(_central(rows, columns, height, width).ravel())
    # each region weighs one half
    return [np.concatenate(parts).astype(np.float32) / 2 for parts in histograms.values()], patches, central


def _describe(images, names):
    """Describe one task's images; a failure names the image."""
    described = []
    for image, name in zip(images, names, strict=True):
        try:
            described.append(_describe_one(image))
        except ValueError as error:
            raise ValueError(f"The image {name} cannot be described: {error}") from None
    return described


def describe_flowers(images, n_jobs=1):
    """Describe photographs, an ImageData, by all that does not depend on a training set.

    Photographs of at least 64 x 64 pixels; those whose shorter side is above 240 are scaled down to it. The
    result, 170 kB for an image of 240 x 320 pixels, has the same bits for any number of processes. A
    ValueError names an image that is too small, a DataFileError one that cannot be read.

    Returns
    -------
    Description
    """
    names, starts = images.frames["name"], range(0, len(images.y), _IMAGES_PER_TASK)
    parts = [slice(i, i + _IMAGES_PER_TASK) for i in starts]
    tasks = (delayed(_describe)(images.images[part], names[part]) for part in parts)
    described = [one for part in Parallel(n_jobs=n_jobs)(tasks) for one in part]
    histograms, patches, central = zip(*described, strict=True)
    plain = [np.array(part) for part in zip(*histograms, strict=True)]
    by_words = (
        dict(zip(_WORD_CUES, map(list, zip(*part, strict=True)), strict=True)) for part in (patches, central)
    )
    return Description(images, dict(zip(FLOWER_CUES, plain, strict=False)), *by_words)


def flower_cues(images, train, *, n_words=N_WORDS, n_jobs=1, random_state=0):
    r"""Describe photographs of flowers by seven cues, each a histogram with sum 1.

    =================  ===========  ==========================================================================
    cue                columns      what is counted
    =================  ===========  ==========================================================================
    ``RGB``            2 x 512      pixels by colour: red, green, blue
    ``HSV``            2 x 256      pixels by hue (16), saturation (4), value (4)
    ``LxLy``           2 x 450      pixels by their two first derivatives, at scales of 1 and 2 pixels
    ``DirC``           2 x 289      pixels by the gradient's direction at scales of 1 and 4 pixels
    ``shape pyramid``  336          contrast by orientation, in the image, its quarters and its sixteenths
    ``words``          2 x n_words  patches of 32 x 32 pixels by the nearest of `n_words` visual words
    ``large words``    2 x n_words  patches of 64 x 64 pixels likewise
    =================  ===========  ==========================================================================

    All but the pyramid are counted twice: over the image, and over an ellipse in its middle, where most
    photographers put the flower. Both halves have sum 1/2.

    `images` are as `describe_flowers` takes or gives them; the words are learnt from the rows `train` alone,
    by a random state. The result has the same bits for any number of processes.

    Returns
    -------
    CueData
        `X` float32. Classes, names and provenance are those of the images.

    Raises
    ------
    ValueError
        If an image is too small, with its name; if `train` is empty, names rows that are not there, or gives
        fewer patches than words.
    DataFileError
        If an image file cannot be read.

    References
    ----------
    A. Bosch, A. Zisserman and X. Munoz (2007). Representing shape with a spatial pyramid kernel. CIVR
    (``shape pyramid``). For the others see `cuelearn.datasets.cues`.
    """
    described = images if isinstance(images, Description) else describe_flowers(images, n_jobs)
    images, n = described.images, len(described.images.y)
    train = np.unique(train)
    if train.ndim != 1 or train.size == 0 or train.dtype.kind not in "iu" or train[0] < 0 or train[-1] >= n:
        raise ValueError(f"train must be row numbers from 0 to {n - 1}, at least one.")
    parts = dict(described.histograms)
    for cue in _WORD_CUES:
        patches = described.patches[cue]
        words = BagOfWords(n_words, STEP, random_state=random_state).fit([patches[i] for i in train])
        middle = [rows[inside] for rows, inside in zip(patches, described.central[cue], strict=True)]
        parts[cue] = np.concatenate([words.transform(patches), words.transform(middle)], axis=1) / 2
    cues, end = {}, 0
    for cue in FLOWER_CUES:
        cues[cue] = slice(end, end + parts[cue].shape[1])
        end = cues[cue].stop
    by = f"Described by {', '.join(FLOWER_CUES)}"
    learnt = f"two vocabularies of {n_words} words learnt from {train.size} images"
    return CueData(
        X=np.concatenate([parts[cue] for cue in FLOWER_CUES], axis=1),
        y=images.y,
        cues=cues,
        train=None,
        test=None,
        feature_names=[f"{cue} {i}" for cue in FLOWER_CUES for i in range(parts[cue].shape[1])],
        target_names=list(images.target_names),
        description=f"{images.description.rstrip('. ')}. {by} ({learnt}).",
        provenance=images.provenance,
    )


def flower_split(y, seed, n_train_per_class=None, n_test_per_class=None):
    """Draw a training part, in random order, and a test part, ascending, balanced over the classes.

    By default 60 and 20 of each: validation is by cross-validation here, so its published part trains. One
    seed has one test part, and smaller training parts are subsets of larger ones. ValueError if a part is
    empty or a class has too few samples.
    """
    n_train = N_TRAIN if n_train_per_class is None else n_train_per_class
    n_test = N_TEST if n_test_per_class is None else n_test_per_class
    fewest = int(np.unique(y, return_counts=True)[1].min())
    if n_train < 1 or n_test < 1 or n_train + n_test > fewest:
        wanted = f"at least one sample of each class, together at most {fewest}"
        raise ValueError(f"Both parts must have {wanted}, got {n_train} and {n_test}.")
    rng = np.random.default_rng([seed, 5])
    rows = [rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]
    train = np.concatenate([some[n_test : n_test + n_train] for some in rows])
    return rng.permutation(train), np.sort(np.concatenate([some[:n_test] for some in rows]))


def flower_kernels(n_train, n_kernels=len(FLOWER_CUES)):
    """Kernels, as (name, ExpDistance, columns), on the distances that `load_flowers` lays side by side.

    `n_train` are the columns of each distance. 7 kernels: the mean distance, as in the papers' comparison.
    More, a multiple of 7 of at most 1,400: so many of `WIDTHS` for every distance, spread evenly over their
    range.
    """
    n_widths, rest = divmod(n_kernels, len(FLOWER_CUES))
    most = len(FLOWER_CUES) * WIDTHS.size
    if rest or not 1 <= n_widths <= WIDTHS.size:
        raise ValueError(f"n_kernels must be a multiple of 7 from 7 to {most}, got {n_kernels!r}.")
    # the midpoints of n_widths equal parts of the range: all of them when there are as many parts as widths
    middle = ((np.arange(n_widths) + 0.5) * WIDTHS.size / n_widths).astype(int)
    factors = [1.0] if n_widths == 1 else WIDTHS[middle].tolist()
    triples = []
    for j, cue in enumerate(FLOWER_CUES):
        for factor in factors:
            name = cue if n_widths == 1 else f"{cue}*{factor:.4g}"
            kernel = ExpDistance("precomputed", factor=factor)
            triples.append((name, kernel, slice(j * n_train, (j + 1) * n_train)))
    return triples


def have_flowers():
    """Whether the directory that ``CUELEARN_DATA`` names has a directory flowers17."""
    place = os.environ.get("CUELEARN_DATA")
    return bool(place) and (Path(place) / "flowers17").is_dir()


@lru_cache(maxsize=1)
def _described(place, n_jobs):
    """The photographs below `place`, which is ``CUELEARN_DATA``, described once for all splits."""
    return describe_flowers(load_original("flowers17"), n_jobs)


@lru_cache(maxsize=1)
def _plain_distances(place, n_jobs):
    """Distances of all photographs by the cues that learn nothing, in order."""
    return [distance_matrix(X, "chi2", n_jobs=n_jobs) for X in _described(place, n_jobs).histograms.values()]


@lru_cache(maxsize=4)
def _distances(place, n_train_per_class, n_test_per_class, seed, n_jobs):
    """One split and the seven distances of all photographs, (7, n, n)."""
    described = _described(place, n_jobs)
    train, test = flower_split(described.images.y, seed, n_train_per_class, n_test_per_class)
    data = flower_cues(described, train, n_words=N_WORDS, random_state=seed)
    learnt = [distance_matrix(data.X[:, data.cues[cue]], "chi2", n_jobs=n_jobs) for cue in _WORD_CUES]
    return train, test, np.stack(_plain_distances(place, n_jobs) + learnt), described.images.y


def load_flowers(
    n_train_per_class=None, seed=0, n_kernels=len(FLOWER_CUES), *, n_test_per_class=None, n_jobs=1
):
    """A `Task` of the MKL chapter on Oxford Flowers-17, by default 1,020 training and 340 test images.

    Sizes, the seed (of the split and of the vocabularies, which are learnt from its training part) and
    kernels as in `flower_split` and `flower_kernels`; the thesis's 1,400 kernels have 40 training images of
    each class. The bank takes rows from seven distances where the kernels do not fit the memory that many
    kernels are allowed. DataFileError if the data is not there (`have_flowers`), is not whole, or holds an
    image that cannot be read.

    On two cores the first call of a process describes the 1,360 images in about 45 seconds; another split
    takes 6 seconds, other kernels on the same split next to nothing. About 1 GB at most.
    """
    train, test, distances, y = _distances(
        os.environ.get("CUELEARN_DATA"), n_train_per_class, n_test_per_class, seed, n_jobs
    )
    inside, across = (np.concatenate(distances[:, rows][:, :, train], axis=1) for rows in (train, test))
    bank = KernelBank(flower_kernels(train.size, n_kernels), inside, memory=MEMORY_MANY)
    return Task(bank, y[train], bank.cross(across), y[test], int(y.max()) + 1)
