"""Visual words: vocabularies learnt from local descriptors, and histograms of the nearest words."""

from __future__ import annotations

import numbers

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .descriptors import dense_descriptors, share

__all__ = ["BagOfWords", "count_words"]


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
    >>> import numpy as np
    >>> from cuelearn.datasets import BagOfWords
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

        with threadpool_limits(1):
            rows = [share(self.nearest(image), len(self.words_)) for image in images]
        return np.array(rows, dtype=np.float32).reshape(len(images), len(self.words_))

    def nearest(self, image):
        """Number of the nearest word of each patch, or of each local descriptor."""
        check_is_fitted(self)
        descriptors = self._descriptors(image)
        if len(descriptors) == 0:
            raise ValueError("descriptors must be those of one patch at least, got none.")
        distance = descriptors.astype(np.float32) @ self.words_.T
        distance *= -2
        # |d - w|^2 without the part that all words share
        distance += (self.words_.astype(np.float64) ** 2).sum(axis=1).astype(np.float32)
        return distance.argmin(axis=1)

    def drawn(self, rows):
        """Of these training rows, those that `fit` reads."""
        return self._draw(rows, np.random.default_rng(self.random_state))

    def _draw(self, rows, rng):
        return rows[np.sort(rng.permutation(len(rows))[: self.max_images])]

    def _descriptors(self, image):
        if getattr(image, "ndim", None) != 2:
            return dense_descriptors(image, self.step)
        if image.dtype not in (np.uint8, np.float32):
            raise ValueError(
                f"descriptors must be of shape (n_patches, width) of uint8 or float32, got {image.shape} "
                f"of {image.dtype}."
            )
        return image


def count_words(vocabulary, described, known=None):
    """Histograms of words, float32 (n, width), from the `LocalDescriptors` of n images.

    `known`, a dict, keeps the words of what cues with other cells found too.
    """
    known = {} if known is None else known
    if described[0].cell is not None:
        return np.array([_count_in_cells(vocabulary, one, known) for one in described])
    counts = vocabulary.transform([one.descriptors for one in described])
    if described[0].central is None:
        return counts
    middle = vocabulary.transform([one.descriptors[one.central] for one in described])
    return np.concatenate([counts, middle], axis=1) / np.float32(2)


def _count_in_cells(vocabulary, described, known):
    """Histogram of each cell, in shares of all patches; zeros where there are none."""
    n_words, n = len(vocabulary.words_), len(described.descriptors)
    if n == 0:
        return np.zeros(described.n_cells * n_words, dtype=np.float32)
    key = id(described.descriptors)
    if key not in known:
        known[key] = vocabulary.nearest(described.descriptors)
    place = described.cell * n_words + known[key]
    return (np.bincount(place, minlength=described.n_cells * n_words) / n).astype(np.float32)
