r"""Candidate labeling sets: for every bag of instances, the labelings that are possible (thesis section 5.3).

A bag of M instances with P attributes each has M * P *slots*, slot ``m * P + p`` for attribute p of instance
m. A candidate labeling vector gives every slot a label. Sets that can be listed are; a set of all ways to
hand at most one word to each region, too large to list, is kept as its words and constraints (`Matching`).
"""

import copy
import itertools
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import njit

from cuelearn.core.checks import as_generator, check_count
from cuelearn.mms.matching import (
    Matching,
    count_matching,
    draw_matching,
    generate,
    matching_best,
    matching_marginals,
    word_column,
    word_of,
)

__all__ = ["CandidateSet", "Matching", "PackedCandidates", "check_candidates"]

#: A `Matching` is searched over all subsets of its words.
MOST_WORDS = 16


class PackedCandidates(NamedTuple):
    """The sets of all bags in flat arrays, as the compiled searches read them. A label is a *column* where
    the labels of all attributes stand side by side."""

    n_attributes: int
    column: np.ndarray  # first column of each attribute, and the end
    row: np.ndarray  # first instance of each bag, and the end
    count: np.ndarray  # of each bag's listed candidates; 0 for a Matching
    start: np.ndarray  # where a bag's list begins in `labels`; a Matching has its words there
    labels: np.ndarray  # columns, candidate after candidate, slot after slot
    listed_start: np.ndarray  # where a bag's candidates begin in `weight` and `order`
    weight: np.ndarray  # prior of each listed candidate over the largest of its bag
    order: np.ndarray  # numbers of a bag's listed candidates in lexical order
    slot: np.ndarray  # where the labels possible in each slot begin in `slot_labels`, and the end
    slot_labels: np.ndarray  # the set Z(m) of every slot, ascending
    n_words: np.ndarray  # of a Matching; 0 for a listed set
    allowed_start: np.ndarray  # where a Matching's mask begins in `allowed`
    allowed: np.ndarray  # which words each region may take, row after row
    null: np.ndarray  # columns of the null labels; -1 without


# ------------------------------------------------------------------ compiled questions


@njit(cache=True)
def is_listed(packed, i, labels):
    """Whether a labeling, as columns, is on the list of bag i: binary search in lexical order."""
    n = labels.shape[0]
    low, high = packed.listed_start[i], packed.listed_start[i] + packed.count[i]
    while low < high:
        middle = (low + high) // 2
        at, k = packed.start[i] + packed.order[middle] * n, 0
        while k < n and packed.labels[at + k] == labels[k]:
            k += 1
        if k == n:
            return True
        if packed.labels[at + k] < labels[k]:
            low = middle + 1
        else:
            high = middle
    return False


@njit(cache=True)
def contains(packed, i, labels):
    """Whether a labeling, as columns, is a candidate of bag i."""
    if packed.n_words[i] == 0:
        return is_listed(packed, i, labels)
    used = 0
    for m in range(labels.shape[0] // packed.n_attributes):
        w = word_of(packed, i, m, labels)
        if w < 0 or (w > 0 and used >> w & 1):
            return False
        used |= 1 << w if w > 0 else 0
    return used != 0


@njit(cache=True)
def ambiguous_loss(packed, i, labels):
    """Least number of slots in which a labeling, as columns, differs from a candidate of bag i."""
    n_slots = labels.shape[0]
    if packed.n_words[i] == 0:
        best, at = n_slots, packed.start[i]
        for _ in range(packed.count[i]):
            apart = 0
            for k in range(n_slots):
                apart += packed.labels[at + k] != labels[k]
            best = min(best, apart)
            at += n_slots
        return best
    P = packed.n_attributes
    agree = np.zeros((n_slots // P, packed.n_words[i] + 1))
    for m in range(agree.shape[0]):
        for w in range(agree.shape[1]):
            for p in range(P):
                agree[m, w] += labels[m * P + p] == word_column(packed, i, w, p)
    return n_slots - int(matching_best(packed, i, agree)[0])


# ------------------------------------------------------------------ checks of what is given


def is_count(value, least=0):
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= least


def check_candidates(candidates, n_rows=None, classes=None, name="X"):
    """An error if this is no CandidateSet, has not as many instances as X has rows, or other labels."""
    if not isinstance(candidates, CandidateSet):
        raise TypeError(f"candidates must be a CandidateSet, got {type(candidates).__name__}")
    if n_rows is not None and n_rows != candidates.n_instances:
        wanted = candidates.n_instances
        raise ValueError(f"{name} must have one row per instance of candidates, {wanted}, got {n_rows}")
    if classes is not None:
        same = len(candidates.classes) == len(classes)
        if not same or not all(map(np.array_equal, candidates.classes, classes)):
            sizes = tuple(map(len, classes))
            what = "the labels of training in their order"
            raise ValueError(f"candidates must have {what}, {sizes} of them, got others")


def _listed_bag(i, given):
    """One bag's list as an int array (L, M, P)."""
    what = f"candidates[{i}] must"
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype == object or array.ndim not in (2, 3):
        shape = "(n_candidates, n_instances[, n_attributes])"
        raise ValueError(f"{what} be an array of shape {shape}; its labeling vectors must have one length")
    if array.shape[0] == 0:
        raise ValueError(f"{what} hold at least one labeling vector, got an empty set")
    if 0 in array.shape:
        raise ValueError(f"{what} label at least one instance, got shape {array.shape}")
    whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and np.all(array == np.floor(array)))
    if not whole or array.max() >= 2**31:
        raise ValueError(f"{what} hold labels as integers below 2^31, got {array.dtype} up to {array.max()}")
    return np.atleast_3d(array).astype(np.int32)


def _matching_bag(i, given):
    what = f"candidates[{i}] must"
    words, allowed = np.asarray(given.words), np.asarray(given.allowed, dtype=bool)
    words = words[:, None] if words.ndim == 1 else words
    if words.ndim != 2 or words.shape[0] == 0 or words.dtype.kind not in "iu":
        raise ValueError(f"{what} be a Matching with integer words of shape (n_words, n_attributes)")
    if len(words) > MOST_WORDS:
        raise ValueError(f"{what} have at most {MOST_WORDS} words, got {len(words)}")
    if len(np.unique(words, axis=0)) != len(words):
        raise ValueError(f"{what} have distinct words, got the same labels twice")
    width = len(words) + 1
    if allowed.ndim != 2 or allowed.shape[1] != width or len(allowed) == 0:
        wanted = f"which of null and its words are allowed, (n_regions, {width})"
        raise ValueError(f"{what} say for each region {wanted}, got {allowed.shape}")
    return Matching(words.astype(np.int32), allowed)


def _checked_bags(candidates):
    """The bags, and their number of attributes."""
    bags = []
    for i, given in enumerate(candidates):
        bag = _matching_bag(i, given) if isinstance(given, Matching) else _listed_bag(i, given)
        bags.append(bag)
        P, first = (np.shape(b.words if isinstance(b, Matching) else b)[-1] for b in (bag, bags[0]))
        if P != first:
            raise ValueError(f"candidates[{i}] must have {first} attributes, as the bags before it, got {P}")
    return bags, first


def _checked_priors(bags, priors):
    if priors is None:
        return [None] * len(bags)
    if not hasattr(priors, "__len__") or len(priors) != len(bags):
        raise ValueError(f"priors must have one entry per bag, {len(bags)} of them")
    checked = []
    for i, (bag, given) in enumerate(zip(bags, priors, strict=True)):
        if given is not None:
            if isinstance(bag, Matching):
                raise ValueError(f"priors[{i}] must be None: the candidates of a Matching are not listed")
            given = np.asarray(given, dtype=float)
            good = given.shape == (len(bag),) and np.all(np.isfinite(given)) and np.all(given >= 0.0)
            if not good or not np.any(given > 0.0):
                wanted = f"{len(bag)} numbers >= 0, not all 0"
                raise ValueError(f"priors[{i}] must hold {wanted}, got shape {given.shape}")
        checked.append(given)
    return checked


def _without_repeats(bag, prior):
    """Vectors given twice once, where they came first; their priors add up, those of prior 0 are left out."""
    if not isinstance(bag, Matching) and len(bag) > 1:
        flat = bag.reshape(len(bag), -1)
        _, first, inverse = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        if len(first) < len(bag):
            if prior is not None:
                prior = np.bincount(inverse.ravel(), weights=prior)[np.argsort(first)]
            bag = bag[np.sort(first)]
    if prior is not None and np.any(prior == 0.0):
        bag, prior = bag[prior > 0.0], prior[prior > 0.0]
    return bag, prior


class CandidateSet:
    r"""Candidate labeling sets of many bags.

    Bag :math:`\mathcal X_i = \{x_{i,1}, \dots, x_{i,M_i}\}` comes with
    :math:`\mathcal Z_i = \{Z_{i,1}, \dots, Z_{i,L_i}\}`, of which one vector is the true labeling. The
    instances of all bags are the rows of one matrix, bag after bag.

    Parameters
    ----------
    candidates : sequence of Matching or array-like of int, shape (n_candidates, n_instances[, n_attributes])
        One entry per bag. Labels count from 0 in each attribute. A vector given twice counts once.
    n_labels : int or sequence of int, optional
        Number of labels of each attribute; from `classes` or from the largest label by default.
    classes : sequence of sequences, optional
        What the labels of each attribute are called; the integers by default. For one attribute also the
        plain sequence of names.
    null : int or sequence of int, optional
        The label of each attribute that says "none of the words". Needed where a bag is a `Matching`.
    priors : sequence of array-like, shape (n_candidates,), optional
        Prior probability of each candidate (remark 5.1), in any scale, None for bags without; a candidate
        with prior 0 is left out. In `MMS` a candidate's score is multiplied by its prior over the bag's
        largest, so equal priors change nothing. A small prior raises a negative score: that is how the remark
        has it.
    max_listed : int, default 10,000
        `bag` lists a `Matching` of at most that many candidates.

    Attributes
    ----------
    n_bags, n_instances, n_attributes : int
    n_labels : tuple of int
    classes : list of ndarray
    null : tuple of int, or None
    bag_sizes : ndarray of int, shape (n_bags,)
    bag_starts : ndarray of int, shape (n_bags + 1,)
    bag_of : ndarray of int, shape (n_instances,)
    n_candidates : list of int
        Exact, however large.
    packed : PackedCandidates

    Raises
    ------
    ValueError
        On an empty set, vectors of different lengths, a label outside the classes, priors that do not fit.

    References
    ----------
    Thesis section 5.3; remark 5.1.

    Examples
    --------
    Two faces and two names, as in thesis figure 5.4; 0 is null.

    >>> faces = CandidateSet([[[1, 2], [1, 0], [0, 2], [2, 1], [0, 1], [2, 0]]], null=0)
    >>> faces.n_candidates, faces.contains(0, [2, 1]), faces.loss(0, [1, 1])
    ([6], True, 1)
    """

    def __init__(self, candidates, *, n_labels=None, classes=None, null=None, priors=None, max_listed=10_000):
        if isinstance(candidates, (str, bytes)) or not hasattr(candidates, "__len__"):
            kind = type(candidates).__name__
            raise TypeError(f"candidates must be a sequence with one candidate set per bag, got {kind}")
        if len(candidates) == 0:
            raise ValueError("candidates must hold at least one bag, got none")
        self.max_listed = check_count("max_listed", max_listed)
        bags, self.n_attributes = _checked_bags(candidates)
        self._name_labels(bags, n_labels, classes, null)
        pairs = zip(bags, _checked_priors(bags, priors), strict=True)
        self._hold([_without_repeats(bag, prior) for bag, prior in pairs])

    def _name_labels(self, bags, n_labels, classes, null):
        P = self.n_attributes
        sizes = None
        if n_labels is not None:
            sizes = (n_labels,) * P if np.isscalar(n_labels) else tuple(n_labels)
            if len(sizes) != P:
                raise ValueError(f"n_labels must have a number for each of {P} attributes, got {sizes}")
            sizes = tuple(check_count("n_labels", size) for size in sizes)
        if classes is not None:
            classes = list(classes)
            nested = len(classes) == 1 and not isinstance(classes[0], str) and hasattr(classes[0], "__len__")
            classes = [np.asarray(c) for c in ([classes] if P == 1 and not nested else classes)]
            if len(classes) != P:
                raise ValueError(f"classes must name the labels of {P} attributes, got {len(classes)}")
            named = tuple(len(c) for c in classes)
            if sizes not in (None, named):
                raise ValueError(f"classes must have as many names as n_labels says, {sizes}, got {named}")
            if any(len(np.unique(c)) != len(c) for c in classes):
                raise ValueError("classes must hold every name once")
            sizes = named
        limit = np.full(P, 2**31) if sizes is None else np.array(sizes)
        largest = np.zeros(P, dtype=int)
        for i, bag in enumerate(bags):
            labels = bag.words if isinstance(bag, Matching) else bag.reshape(-1, P)
            low, high = labels.min(), labels.max(axis=0)
            if low < 0 or np.any(high >= limit):
                wrong = low if low < 0 else high[high >= limit][0]
                inside = "" if sizes is None else f", at most {max(sizes) - 1}"
                outside = f"holds the label {wrong} outside the classes"
                raise ValueError(f"candidates[{i}] {outside}; labels count from 0{inside}")
            largest = np.maximum(largest, high)
        if null is not None:
            null = (null,) * P if np.isscalar(null) else tuple(null)
            if len(null) != P or not all(map(is_count, null)):
                raise ValueError(f"null must give one label >= 0 for each of {P} attributes, got {null!r}")
            if np.any(np.array(null) >= limit):
                raise ValueError(f"null must be among the labels, at most {tuple(limit - 1)}, got {null}")
            null = tuple(map(int, null))
            largest = np.maximum(largest, null)
        for i, bag in enumerate(bags):
            if isinstance(bag, Matching):
                if null is None:
                    raise ValueError("null must be given where a bag is a Matching")
                if np.any(np.all(bag.words == null, axis=1)):
                    raise ValueError(f"candidates[{i}] must have no word whose labels are all null")
        self.null = null
        self.n_labels = sizes if sizes is not None else tuple(int(k) + 1 for k in largest)
        self.classes = classes if classes is not None else [np.arange(size) for size in self.n_labels]

    def _hold(self, pairs):
        """Keep bags with their priors, all checked."""
        self._bags, self._priors = map(list, zip(*pairs, strict=True))
        sizes = [bag.allowed.shape[0] if isinstance(bag, Matching) else bag.shape[1] for bag in self._bags]
        self.n_bags = len(sizes)
        self.bag_sizes = np.array(sizes, dtype=np.int64)
        self.bag_starts = np.concatenate([[0], np.cumsum(self.bag_sizes)])
        self.bag_of = np.repeat(np.arange(self.n_bags), self.bag_sizes)
        self.n_instances = int(self.bag_starts[-1])
        self.n_candidates = [count_matching(b) if isinstance(b, Matching) else len(b) for b in self._bags]
        if 0 in self.n_candidates:
            i = self.n_candidates.index(0)
            what = "at least one labeling vector, its Matching allows none"
            raise ValueError(f"candidates[{i}] must allow {what}")

    @classmethod
    def from_labels(cls, y, bag_sizes=None, **options):
        """Sets with one candidate each, the truth: labels (n_instances,) or (n_instances, n_attributes),
        sizes of the bags (one instance each by default), options of the class."""
        y = np.asarray(y)
        if y.ndim not in (1, 2) or len(y) == 0:
            raise ValueError(f"y must have shape (n_instances[, n_attributes]), got {y.shape}")
        sizes = np.ones(len(y), dtype=int) if bag_sizes is None else np.asarray(bag_sizes)
        if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or np.any(sizes < 1) or sizes.sum() != len(y):
            raise ValueError(f"bag_sizes must be integers >= 1 that add up to the {len(y)} instances")
        return cls([part[None] for part in np.split(y, np.cumsum(sizes)[:-1])], **options)

    # ------------------------------------------------------------------ reading

    def __len__(self):
        return self.n_bags

    def __repr__(self):
        sizes = ", ".join(map(str, self.n_labels))
        counts = f"{self.n_bags} bags, {self.n_instances} instances, labels {sizes}"
        return f"<CandidateSet: {counts}, {sum(self.n_candidates)} candidates>"

    def check_bag(self, i):
        """A bag's number, from the end where negative."""
        if not is_count(i, -self.n_bags) or i >= self.n_bags:
            raise IndexError(f"bag must be an integer below {self.n_bags}, got {i!r}")
        return int(i) % self.n_bags

    def is_listed(self, i):
        """Whether the candidates of bag i are kept as a list."""
        return not isinstance(self._bags[self.check_bag(i)], Matching)

    def bag(self, i):
        """All candidates of bag i, shape (n_candidates, n_instances, n_attributes); an error for a `Matching`
        of more than `max_listed`, which `iterate` goes through."""
        i = self.check_bag(i)
        if self.is_listed(i):
            return self._bags[i]
        if self.n_candidates[i] > self.max_listed:
            many = f"{self.n_candidates[i]} candidates, more than max_listed = {self.max_listed}"
            raise ValueError(f"bag {i} has {many}; iterate goes through them")
        return np.stack(list(self.iterate(i)))

    def priors(self, i):
        """Priors of the candidates of bag i over their largest, shape (n_candidates,), or None."""
        prior = self._priors[self.check_bag(i)]
        return None if prior is None else prior / prior.max()

    def iterate(self, i, start=0, stop=None):
        """Go through the candidates of bag i from `start` to before `stop`, made on the fly where they are
        not listed; each of shape (n_instances, n_attributes)."""
        bag = self._bags[self.check_bag(i)]
        if isinstance(bag, Matching):
            bag = generate(bag, np.array(self.null, dtype=np.int32))
        yield from itertools.islice(bag, start, stop)

    def _slots(self, i, labeling):
        """A labeling of bag i as columns, slot after slot."""
        labeling = np.asarray(labeling)
        shape = (int(self.bag_sizes[i]), self.n_attributes)
        if labeling.size != shape[0] * shape[1] or labeling.dtype.kind not in "iu":
            given = f"{labeling.dtype} {labeling.shape}"
            raise ValueError(f"labeling must hold integers of shape {shape} for bag {i}, got {given}")
        labeling = labeling.reshape(shape)
        if labeling.min() < 0 or np.any(labeling.max(axis=0) >= self.n_labels):
            last = tuple(k - 1 for k in self.n_labels)
            raise ValueError(f"labeling must hold labels 0 to {last}, got {labeling.tolist()}")
        return (labeling + self.packed.column[:-1]).astype(np.int32).ravel()

    def contains(self, i, labeling):
        """Whether a labeling, shape (n_instances, n_attributes), is a candidate of bag i."""
        i = self.check_bag(i)
        return bool(contains(self.packed, i, self._slots(i, labeling)))

    def loss(self, i, labeling):
        r"""Ambiguous loss :math:`\Delta_A(Z, \mathcal Z_i)`: the least number of slots in which a labeling
        differs from a candidate (thesis 5.4.2)."""
        i = self.check_bag(i)
        return int(ambiguous_loss(self.packed, i, self._slots(i, labeling)))

    def mask(self, attribute=0):
        """Labels that some candidate gives an instance, Z(m); shape (n_instances, n_labels[attribute])."""
        p, packed = self._check_attribute(attribute), self.packed
        slot = np.repeat(np.arange(packed.slot.size - 1), np.diff(packed.slot))
        of_p = slot % self.n_attributes == p
        mask = np.zeros((self.n_instances, self.n_labels[p]), dtype=bool)
        mask[slot[of_p] // self.n_attributes, packed.slot_labels[of_p] - packed.column[p]] = True
        return mask

    def bag_mask(self, attribute=0):
        """Labels that some candidate gives some instance of a bag, shape (n_bags, n_labels[attribute])."""
        return np.logical_or.reduceat(self.mask(attribute), self.bag_starts[:-1], axis=0)

    def _check_attribute(self, attribute):
        if not is_count(attribute) or attribute >= self.n_attributes:
            raise ValueError(f"attribute must be an integer below {self.n_attributes}, got {attribute!r}")
        return int(attribute)

    def _as_bags(self, bags):
        """Bag numbers, from numbers or a mask."""
        bags = np.asarray(bags)
        if bags.dtype == bool and bags.shape == (self.n_bags,):
            bags = np.flatnonzero(bags)
        whole = bags.ndim == 1 and bags.size > 0 and bags.dtype.kind in "iu"
        if not whole or bags.min() < 0 or bags.max() >= self.n_bags:
            raise ValueError(
                f"bags must be integers below {self.n_bags}, at least one, or a mask of the bags"
            )
        return bags.astype(np.int64)

    def rows(self, bags):
        """Rows of the instances of some bags (numbers or a mask), in the bags' order; ndarray of int."""
        bags = self._as_bags(bags)
        sizes = self.bag_sizes[bags]
        ends = np.cumsum(sizes)
        return np.repeat(self.bag_starts[bags] - (ends - sizes), sizes) + np.arange(ends[-1])

    def take(self, bags):
        """The `CandidateSet` of some bags (numbers or a mask), in the order given."""
        made = copy.copy(self)
        vars(made).pop("packed", None)
        made._hold([(self._bags[i], self._priors[i]) for i in self._as_bags(bags)])
        return made

    def attribute(self, attribute):
        """The `CandidateSet` of one attribute alone, vectors that it does not tell apart once; an error where
        two words of a `Matching` have the same label."""
        p = self._check_attribute(attribute)
        bags = []
        for i, bag in enumerate(self._bags):
            if not isinstance(bag, Matching):
                bags.append(bag[:, :, p])
                continue
            words = bag.words[:, [p]]
            if len(np.unique(words)) < len(words) or np.any(words == self.null[p]):
                what = f"the words of bag {i} apart, which is a Matching"
                raise ValueError(f"attribute {p} does not tell {what}; list its candidates")
            bags.append(Matching(words, bag.allowed))
        null = None if self.null is None else self.null[p]
        return CandidateSet(
            bags, classes=[self.classes[p]], null=null, priors=self._priors, max_listed=self.max_listed
        )

    def draw(self, random_state=None):
        """A candidate of every bag, uniformly, shape (n_instances, n_attributes): what RANDOM answers."""
        rng = as_generator(random_state)
        drawn = []
        for bag in self._bags:
            if isinstance(bag, Matching):
                drawn.append(np.vstack([self.null, bag.words])[draw_matching(bag, rng)])
            else:
                drawn.append(bag[rng.integers(len(bag))])
        return np.concatenate(drawn).astype(np.int64)

    def named(self, labels):
        """Label numbers, shape (n, n_attributes), as names: objects of that shape, (n,) for one attribute."""
        return named(labels, self.classes)

    # ------------------------------------------------------------------ packing

    @cached_property
    def packed(self):
        P = self.n_attributes
        column = np.concatenate([[0], np.cumsum(self.n_labels)]).astype(np.int64)
        shift = column[:-1].astype(np.int32)
        none, no_mask = np.zeros((0, 1, P), np.int32), np.zeros((0, 0), bool)
        is_matching = [isinstance(bag, Matching) for bag in self._bags]
        lists = [none if matching else bag for bag, matching in zip(self._bags, is_matching, strict=True)]
        masks = [bag.allowed if isinstance(bag, Matching) else no_mask for bag in self._bags]
        flat = [(bag.words if isinstance(bag, Matching) else bag) + shift for bag in self._bags]
        count = np.array([len(part) for part in lists])
        n_words = np.where(is_matching, [len(part) for part in flat], 0)
        weight = np.ones(count.sum())
        listed_start = starts_of(count)
        order = np.empty(count.sum(), np.int64)
        for i, (bag, prior) in enumerate(zip(lists, self._priors, strict=True)):
            here = slice(listed_start[i], listed_start[i] + count[i])
            order[here] = np.lexsort(bag.reshape(len(bag), bag[0].size if len(bag) else 1).T[::-1])
            if prior is not None:
                weight[here] = prior / prior.max()
        packed = PackedCandidates(
            n_attributes=P,
            column=column,
            row=self.bag_starts,
            count=count,
            start=starts_of([part.size for part in flat]),
            labels=np.concatenate([part.ravel() for part in flat]),
            listed_start=listed_start,
            weight=weight,
            order=order,
            slot=np.zeros(1, np.int64),
            slot_labels=np.zeros(0, np.int32),
            n_words=n_words,
            allowed_start=starts_of([mask.size for mask in masks]),
            allowed=np.concatenate([mask.ravel() for mask in masks]),
            null=np.full(P, -1, np.int32) if self.null is None else (self.null + shift).astype(np.int32),
        )
        for i in np.flatnonzero(n_words):  # a region takes only what some candidate gives it
            at = packed.allowed_start[i]
            shares = matching_marginals(packed, i, np.zeros(masks[i].shape))[1].ravel()
            packed.allowed[at : at + shares.size] = shares > 0.0
        slot, slot_labels = self._possible(packed, flat)
        return packed._replace(slot=slot, slot_labels=slot_labels)

    def _possible(self, packed, flat):
        """The sets Z(m) of all slots, one after the other, each ascending; and where each begins."""
        P, width = self.n_attributes, int(packed.column[-1])
        keys = []
        for i, part in enumerate(flat):
            if packed.n_words[i] == 0:
                slots = np.arange(packed.row[i] * P, packed.row[i + 1] * P)
                keys.append(np.unique(slots * width + part.reshape(len(part), -1)))
                continue
            shape = (self.bag_sizes[i], len(part) + 1)
            at = packed.allowed_start[i]
            m, w = np.nonzero(packed.allowed[at : at + shape[0] * shape[1]].reshape(shape))
            slots = (packed.row[i] + m)[:, None] * P + np.arange(P)
            keys.append(np.unique(slots * width + np.vstack([packed.null, part])[w]))
        keys = np.concatenate(keys)
        slot = np.searchsorted(keys, np.arange(self.n_instances * P + 1) * width)
        return slot, (keys % width).astype(np.int32)


def starts_of(sizes):
    """Where parts of these sizes begin, one after the other."""
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)


def named(labels, classes):
    """Label numbers, shape (n, n_attributes), as names: objects of that shape, (n,) for one attribute."""
    labels = np.asarray(labels)
    if len(classes) == 1:
        return classes[0][labels.reshape(-1)]
    return np.stack([c[column].astype(object) for c, column in zip(classes, labels.T, strict=True)], axis=1)
