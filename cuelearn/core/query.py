"""Rules for requesting labels in a stream (selective sampling).

Before the label, a visit shows only its margin: the best class score minus the second best. A rule draws a
limit for each visit in advance; the label is requested if the margin is at most the limit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from cuelearn.compiled import njit
from cuelearn.core.formulas import competitor
from cuelearn.core.samples import labels_of, labels_within
from cuelearn.expect import expect


@njit(cache=True)
def score_margin(scores):
    """Best class score minus the second best."""
    best = 0
    for c in range(1, scores.shape[0]):
        if scores[c] > scores[best]:
            best = c
    return competitor(scores, best)[1]


class Query(ABC):
    @abstractmethod
    def limits(self, start: int, n: int) -> np.ndarray:
        """The largest margins at which visits start, ..., start + n - 1 request the label, shape (n,)."""


def uniform_draws(seed, start, n):
    """The same for any division of a stream into batches."""
    return np.random.Generator(np.random.PCG64(seed).advance(start)).random(n)


@dataclass(frozen=True)
class MarginQuery(Query):
    r"""Request a label with probability :math:`b / (b + m)`, where m is the margin of the scores.

    OM2 and OMCL update below a margin of 1, which is the unit of `b`. For a Perceptron of two classes on
    separable data with inputs of norm at most X, :math:`b = X^2` keeps the bound on the (expected) mistakes
    that all labels give: the paper's :math:`X^2 / 2` refers to :math:`|w \cdot x|`, half the margin of two
    class scores. Smaller values request fewer labels; the book's page on few labels has measured errors.

    Parameters
    ----------
    b : float > 0, default 1.0
        Margin at which half of the labels are requested.
    seed : int >= 0, default 0
        Of the draws, one per visit.

    References
    ----------
    Cesa-Bianchi, Gentile, Zaniboni: Worst-case analysis of selective sampling for linear classification, JMLR
    7 (2006), figure 1, theorem 1.

    Examples
    --------
    >>> from cuelearn.omcl import MarginQuery
    >>> MarginQuery(b=0.5).limits(0, 1000).shape  # the largest margins at which a label is requested
    (1000,)
    """

    b: float = 1.0
    seed: int = 0

    def __post_init__(self):
        expect("b", self.b, above=0)
        expect("seed", self.seed, kind="whole", low=0)

    def limits(self, start, n):
        u = uniform_draws(self.seed, start, n)
        return self.b * u / (1.0 - u)


@dataclass(frozen=True)
class ThresholdQuery(Query):
    """Request a label if the margin of the scores is at most a threshold.

    With a small threshold a stream may never request again: one update can lift all later margins above it.

    Parameters
    ----------
    threshold : float >= 0, default 1.0
        The default is the margin below which OM2 and OMCL update.

    Examples
    --------
    >>> from cuelearn.omcl import ThresholdQuery
    >>> ThresholdQuery(0.2).limits(0, 3)
    array([0.2, 0.2, 0.2])
    """

    threshold: float = 1.0

    def __post_init__(self):
        expect("threshold", self.threshold, low=0)

    def limits(self, start, n):
        return np.full(n, float(self.threshold))


@dataclass(frozen=True)
class RandomQuery(Query):
    """Request a label with the same probability at every visit.

    Parameters
    ----------
    rate : float in [0, 1], default 0.5
    seed : int >= 0, default 0
        Of the draws, one per visit.

    Examples
    --------
    >>> from cuelearn.omcl import RandomQuery
    >>> float((RandomQuery(0.3).limits(0, 1000) > 0.0).mean().round(1))
    0.3
    """

    rate: float = 0.5
    seed: int = 0

    def __post_init__(self):
        expect("rate", self.rate, low=0, high=1)
        expect("seed", self.seed, kind="whole", low=0)

    def limits(self, start, n):
        return np.where(uniform_draws(self.seed, start, n) < self.rate, np.inf, -np.inf)


class RequestedLabels:
    """Labels that a function of the position in a batch returns on request; as an array, class indices.

    Slices stay unread.
    """

    def __init__(self, estimator, read, classes, positions):
        self.given = estimator, read, classes
        self.positions = positions
        self.size = positions.size

    def __getitem__(self, part):
        return RequestedLabels(*self.given, self.positions[part])

    def __array__(self, dtype=None, copy=None):
        estimator, read, classes = self.given
        labels = [read(int(i)) for i in self.positions]
        return labels_within(labels_of(estimator, labels, len(labels)), classes)


def requested_labels(estimator, y, n):
    """The `RequestedLabels` of a batch of n samples from a function y; ValueError without a query."""
    if estimator.query is None:
        raise ValueError("y must be an array of labels without a query, got a function")
    return RequestedLabels(estimator, y, estimator.classes_, np.arange(n))
