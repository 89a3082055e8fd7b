"""Oxford Flowers-17 (appendix A): photographs -> seven cues -> chi-squared distances -> kernels.

The papers take distances that the data's authors published, of segmented flowers. Here the cues are
extracted anew from the photographs, without segmentation, and splits are drawn, of the published sizes:
accuracies compare methods with each other, not with the papers' numbers.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuelearn.datasets import load_original
from cuelearn.datasets.cues import BagOfWords, crfh, dense_descriptors, rgb_histogram
from cuelearn.experiments.protocol import MEMORY_MANY, Task
from cuelearn.kernels import ExpDistance, KernelBank, distance_matrix

PLAIN_CUES = ("RGB", "HSV", "LxLy", "DirC", "shape pyramid")
WORD_CUES = ("words", "large words")
#: The cues, in the order of the kernels.
FLOWER_CUES = PLAIN_CUES + WORD_CUES
# of the 1,400 kernels, times the mean distance: 200 for each of seven distances (thesis section 4.5.4)
WIDTHS = np.geomspace(0.01, 100.0, 200)

# per class: the published splits have 40 for training, 20 for validation (by folds here), 20 for tests
N_TRAIN, N_TEST = 60, 20
N_WORDS = 400
# photographs are scaled down to this shorter side, so that copies of any size give nearly the same cues
SHORTER_SIDE = 240
SMALLEST_SIDE = 64  # one large patch
HSV_BINS = (16, 4, 4)
STEP = 8  # of the patches, in pixels; large ones have it in the image at half size
PYRAMID = (1, 2, 4)  # cells per side
PYRAMID_SECTORS = 16
PYRAMID_SMOOTHING = 1.5


class Description(NamedTuple):
    """What is known of an image before a vocabulary is learnt.

    `histograms` of the plain cues, float32; for each cue of words the local descriptors as uint8,
    (n_patches, 128), and which of these patches are centred in the middle of the image.
    """

    histograms: dict
    patches: dict
    central: dict


def scaled(image, factor):
    """The image at another size, by Lanczos' filter."""
    from PIL import Image

    size = tuple(max(1, round(factor * side)) for side in image.shape[1::-1])
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.LANCZOS))


def in_the_middle(rows, columns, height, width):
    """Which points lie in the central ellipse with semi-axes a third of the sides: 35 % of the area."""
    return ((rows - height / 2) / (height / 3)) ** 2 + ((columns - width / 2) / (width / 3)) ** 2 <= 1


def shape_pyramid(image):
    """Orientation of edges, by contrast, in the image, its quarters, its sixteenths: levels of sum 1/3.

    A. Bosch, A. Zisserman and X. Munoz (2007). Representing shape with a spatial pyramid kernel. CIVR.
    """
    from skimage.color import rgb2gray
    from skimage.feature import hog
    from skimage.filters import gaussian

    grey = gaussian(rgb2gray(image), PYRAMID_SMOOTHING)
    n = PYRAMID[-1]
    cell = (grey.shape[0] // n, grey.shape[1] // n)
    grey = grey[: n * cell[0], : n * cell[1]]
    # one block that covers the image: all cells are divided by the same norm
    cells = hog(grey, PYRAMID_SECTORS, cell, (n, n), block_norm="L1", feature_vector=False).reshape(n, n, -1)
    parts = [cells.reshape(side, n // side, side, n // side, -1) for side in PYRAMID]
    levels = [part.sum(axis=(1, 3)).ravel() for part in parts]
    total = levels[0].sum()
    if total == 0:  # no edge: every orientation alike
        levels, total = [np.full(level.size, 1 / level.size) for level in levels], 1.0
    return np.concatenate(levels) / (len(PYRAMID) * total)


def describe_one(image, name=""):
    """All that does not depend on a training set. ValueError with its name if the image is too small.

    All but the pyramid are counted twice, half a sum each: over the image, and over an ellipse in its
    middle, where most photographers put the flower.
    """
    from skimage.color import rgb2hsv

    height, width = image.shape[:2]
    if min(height, width) < SMALLEST_SIDE:
        least = f"it must be at least {SMALLEST_SIDE} pixels high and wide, got {height} x {width}."
        raise ValueError(f"The image {name} cannot be described: {least}")
    if min(height, width) > SHORTER_SIDE:
        image = scaled(image, SHORTER_SIDE / min(height, width))
        height, width = image.shape[:2]
    rows, columns = np.mgrid[:height, :width] + 0.5
    regions = (np.ones((height, width), bool), in_the_middle(rows, columns, height, width))

    bins = np.array(HSV_BINS)
    hue, saturation, value = np.moveaxis(np.minimum((rgb2hsv(image) * bins).astype(np.intp), bins - 1), 2, 0)
    levels = (hue * bins[1] + saturation) * bins[2] + value
    histograms = {
        "RGB": [rgb_histogram(image, mask=region) for region in regions],
        "HSV": [np.bincount(levels[region], minlength=bins.prod()) / region.sum() for region in regions],
        "LxLy": [crfh(image, "LxLy", (1.0, 2.0), mask=region) for region in regions],
        "DirC": [crfh(image, "DirC", mask=region) for region in regions],
        "shape pyramid": [2 * shape_pyramid(image)],
    }
    histograms = {cue: np.concatenate(parts).astype(np.float32) / 2 for cue, parts in histograms.items()}
    patches, central = {}, {}
    for cue, part in zip(WORD_CUES, (image, scaled(image, 0.5)), strict=True):
        height, width = part.shape[:2]
        corners = [np.arange(side // STEP - 3) * STEP for side in (height, width)]
        rows, columns = np.meshgrid(*(corner + 2 * STEP for corner in corners), indexing="ij")
        patches[cue] = dense_descriptors(part, STEP)
        central[cue] = in_the_middle(rows, columns, height, width).ravel()
    return Description(histograms, patches, central)


def describe_flowers(images):
    """Descriptions of photographs, an ImageData: 170 kB each."""
    return [describe_one(*one) for one in zip(images.images, images.frames["name"], strict=True)]


def plain_histograms(described):
    """The cues that learn nothing, as arrays (n, width) by cue."""
    return {cue: np.array([one.histograms[cue] for one in described]) for cue in PLAIN_CUES}


def word_histograms(described, train, *, n_words=None, random_state=0):
    """The two cues of words: patches of 32 x 32 (64 x 64) pixels by the nearest of the visual words.

    The words are learnt from the rows `train` alone. Arrays (n, 2 `n_words`) by cue, with sum 1.
    """
    found = {}
    for cue in WORD_CUES:
        patches = [one.patches[cue] for one in described]
        middle = [one.patches[cue][one.central[cue]] for one in described]
        words = BagOfWords(n_words or N_WORDS, STEP, random_state=random_state)
        words.fit([patches[i] for i in np.unique(train)])
        found[cue] = np.concatenate([words.transform(patches), words.transform(middle)], axis=1) / 2
    return found


def flower_split(y, seed, n_train_per_class=None):
    """A training part, in random order, and a test part, ascending, balanced over the classes.

    One seed has one test part, and smaller training parts are subsets of larger ones.
    """
    n_train = N_TRAIN if n_train_per_class is None else n_train_per_class
    most = int(np.unique(y, return_counts=True)[1].min()) - N_TEST
    if not 1 <= n_train <= most:
        raise ValueError(f"n_train_per_class must be from 1 to {most}, got {n_train}.")
    rng = np.random.default_rng([seed, 5])
    rows = [rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]
    train = np.concatenate([some[N_TEST : N_TEST + n_train] for some in rows])
    return rng.permutation(train), np.sort(np.concatenate([some[:N_TEST] for some in rows]))


def flower_kernels(n_train, n_kernels=len(FLOWER_CUES)):
    """Kernels, as (name, ExpDistance, columns), on seven distances side by side, of `n_train` columns each.

    7 kernels: the mean distance, as in the papers' comparison. More, a multiple of 7: so many of `WIDTHS`
    for every distance, spread evenly.
    """
    n_widths, rest = divmod(n_kernels, len(FLOWER_CUES))
    most = len(FLOWER_CUES) * WIDTHS.size
    if rest or not 1 <= n_widths <= WIDTHS.size:
        raise ValueError(f"n_kernels must be a multiple of 7 from 7 to {most}, got {n_kernels!r}.")
    # the midpoints of n_widths equal parts of the range: all of them when there are as many parts as widths
    middle = ((np.arange(n_widths) + 0.5) * WIDTHS.size / n_widths).astype(int)
    factors = {"": 1.0} if n_widths == 1 else {f"*{f:.4g}": f for f in WIDTHS[middle].tolist()}
    return [
        (cue + word, ExpDistance("precomputed", factor=factor), slice(j * n_train, (j + 1) * n_train))
        for j, cue in enumerate(FLOWER_CUES)
        for word, factor in factors.items()
    ]


def have_flowers():
    """Whether the directory that ``CUELEARN_DATA`` names has a directory flowers17."""
    place = os.environ.get("CUELEARN_DATA")
    return bool(place) and (Path(place) / "flowers17").is_dir()


@lru_cache(maxsize=1)
def described_flowers(place):
    """The photographs below `place`, which is ``CUELEARN_DATA``: classes, descriptions, plain distances."""
    images = load_original("flowers17")
    described = describe_flowers(images)
    return images.y, described, [distance_matrix(X, "chi2") for X in plain_histograms(described).values()]


@lru_cache(maxsize=4)
def flower_distances(place, n_train_per_class, seed):
    """One split, the seven distances of all photographs, (7, n, n), and their classes."""
    y, described, plain = described_flowers(place)
    train, test = flower_split(y, seed, n_train_per_class)
    words = word_histograms(described, train, random_state=seed)
    return train, test, np.stack(plain + [distance_matrix(X, "chi2") for X in words.values()]), y


def load_flowers(n_train_per_class=None, seed=0, n_kernels=len(FLOWER_CUES)):
    """A `Task` of the MKL chapter on Oxford Flowers-17, by default 1,020 training and 340 test images.

    The seed is of the split and of the vocabularies, which are learnt from its training part. DataFileError
    if the data is not there (`have_flowers`) or not whole. The first call of a process describes the 1,360
    images, in a minute or two; about 1 GB at most.
    """
    place = os.environ.get("CUELEARN_DATA")
    train, test, distances, y = flower_distances(place, n_train_per_class, seed)
    inside, across = (np.concatenate(distances[:, rows][:, :, train], axis=1) for rows in (train, test))
    bank = KernelBank(flower_kernels(train.size, n_kernels), inside, memory=MEMORY_MANY)
    return Task(bank, y[train], bank.cross(across), y[test], int(y.max()) + 1)
