"""Oxford Flowers-17 (appendix A): photographs -> seven cues -> chi-squared distances -> kernels.

The papers take distances that the data's authors published, of segmented flowers. Here the cues are
extracted anew from the photographs, without segmentation, and splits are drawn, of the published sizes:
accuracies compare methods with each other, not with the papers' numbers.
"""

import os
from functools import lru_cache
from pathlib import Path

import numpy as np

from companion.data.originals import load_original
from companion.protocol import MEMORY_MANY, Task
from cuelearn.datasets.cues import CUES, PHOTO_CUES, describe
from cuelearn.datasets.descriptors import BagOfWords, count_words
from cuelearn.kernels import ExpDistance, KernelBank, distance_matrix

WORD_CUES = tuple(cue for cue in PHOTO_CUES if CUES[cue].words)
# of the 1,400 kernels, times the mean distance: 200 for each of seven distances (thesis section 4.5.4)
WIDTHS = np.geomspace(0.01, 100.0, 200)

# per class: the published splits have 40 for training, 20 for validation (by folds here), 20 for tests
N_TRAIN, N_TEST = 60, 20
N_WORDS = 400


def flower_split(y, seed, n_train_per_class=None):
    """A training part, in random order, and a test part, ascending, balanced over the classes.

    One seed has one test part, and smaller training parts are subsets of larger ones.
    """
    n_train = N_TRAIN if n_train_per_class is None else n_train_per_class
    rng = np.random.default_rng([seed, 5])
    rows = [rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]
    train = np.concatenate([of_class[N_TEST : N_TEST + n_train] for of_class in rows])
    return rng.permutation(train), np.sort(np.concatenate([of_class[:N_TEST] for of_class in rows]))


def distance_kernels(cues, n_train, n_kernels=None, widths=WIDTHS):
    """Kernels, as (name, ExpDistance, columns), on distances side by side, of `n_train` columns for each cue.

    By default one for each cue, of the mean distance, as in the papers' comparison. More, a multiple of the
    number of cues: so many of `widths` for every distance, spread evenly.
    """
    n_widths = (n_kernels or len(cues)) // len(cues)
    # the midpoints of n_widths equal parts of the range: all of them when there are as many parts as widths
    middle = ((np.arange(n_widths) + 0.5) * len(widths) / n_widths).astype(int)
    factors = {"": 1.0} if n_widths == 1 else {f"*{f:.4g}": f for f in np.asarray(widths)[middle].tolist()}
    kernels = []
    for j, cue in enumerate(cues):
        columns = slice(j * n_train, (j + 1) * n_train)
        for word, factor in factors.items():
            kernels.append((cue + word, ExpDistance("precomputed", factor=factor), columns))
    return kernels


def have_flowers():
    """Whether the directory that ``CUELEARN_DATA`` names has a directory flowers17."""
    place = os.environ.get("CUELEARN_DATA")
    return bool(place) and (Path(place) / "flowers17").is_dir()


@lru_cache(maxsize=1)
def described_flowers(place):
    """The photographs below `place`, which is ``CUELEARN_DATA``: classes, descriptions, plain distances."""
    images = load_original("flowers17")
    described = describe(images, PHOTO_CUES)
    plain = [distance_matrix(described[cue], "chi2") for cue in PHOTO_CUES if cue not in WORD_CUES]
    return images.y, described, plain


@lru_cache(maxsize=4)
def flower_distances(place, n_train_per_class, seed):
    """One split, the seven distances of all photographs, (7, n, n), and their classes."""
    y, described, distances = described_flowers(place)
    train, test = flower_split(y, seed, n_train_per_class)
    for cue in WORD_CUES:  # learnt from the training part alone
        words = BagOfWords(N_WORDS, random_state=seed)
        words.fit([described[cue][i].descriptors for i in np.unique(train)])
        distances = [*distances, distance_matrix(count_words(words, described[cue]), "chi2")]
    return train, test, np.stack(distances), y


def load_flowers(n_train_per_class=None, seed=0, n_kernels=len(PHOTO_CUES)):
    """A `Task` of the MKL chapter on Oxford Flowers-17, by default 1,020 training and 340 test images.

    The first call of a process describes the 1,360 images, in a minute or two; about 1 GB at most.
    """
    place = os.environ.get("CUELEARN_DATA")
    train, test, distances, y = flower_distances(place, n_train_per_class, seed)
    inside, across = (np.concatenate(distances[:, rows][:, :, train], axis=1) for rows in (train, test))
    bank = KernelBank(distance_kernels(PHOTO_CUES, train.size, n_kernels), inside, memory=MEMORY_MANY)
    return Task(bank, y[train], bank.cross(across), y[test], int(y.max()) + 1)
