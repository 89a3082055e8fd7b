r"""Candidate labeling sets: for every bag of instances, the labelings that are possible (thesis section 5.3).

A bag of M instances with P attributes each has M * P *slots*, slot ``m * P + p`` for attribute p of instance m. A candidate
labeling vector gives every slot a label. Sets that can be listed are; a set of all ways to hand at most one word to each region, too
large to list, is kept as its words and constraints (`Matching`), from which candidates are generated and searched on the fly.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from numba import njit

from cuelearn.core.checks import as_generator, check_count

__all__ = ["CandidateSet", "Matching", "PackedCandidates"]

#: A `Matching` is searched over all subsets of its words.
MOST_WORDS = 16


class Matching(NamedTuple):
    """All ways to give every region of a bag at most one word, and every word to at most one region, but for the all-null one.

    Attributes
    ----------
    words : ndarray of int, shape (n_words, n_attributes)
        Labels that come with each word: a name, or a name and its verb. Distinct rows, none of them null in all attributes.
    allowed : ndarray of bool, shape (n_regions, n_words + 1)
        Whether region m may take word w; column 0 says whether it may take none.
    """

    words: np.ndarray
    allowed: np.ndarray


class PackedCandidates(NamedTuple):
    """The sets of all bags in flat arrays, as the compiled searches read them.

    Attributes
    ----------
    n_attributes : int
    column : ndarray of int64, shape (n_attributes + 1,)
        First column of each attribute's labels where all labels stand side by side.
    row : ndarray of int64, shape (n_bags + 1,)
        First instance of each bag.
    count : ndarray of int64, shape (n_bags,)
        Listed candidates; 0 for a `Matching`.
    start : ndarray of int64, shape (n_bags,)
        Where the bag's list begins in `labels`; a `Matching` has its words there.
    labels : ndarray of int32
        Candidate after candidate, slot after slot; columns where all labels stand side by side.
    listed_start : ndarray of int64, shape (n_bags,)
        Where the bag's listed candidates begin in `weight`, `hash` and `hash_index`.
    weight : ndarray of float64
        Prior of each listed candidate over the largest of its bag.
    hash, hash_index : ndarrays
        Hashes of the listed candidates, ascending within a bag, and the candidates they belong to.
    slot : ndarray of int64, shape (n_instances * n_attributes + 1,)
        Where the labels possible in a slot begin in `slot_labels`.
    slot_labels : ndarray of int32
        The set Z(m) of every slot, ascending.
    n_words : ndarray of int64, shape (n_bags,)
        Of a `Matching`; 0 for a listed set.
    allowed_start : ndarray of int64, shape (n_bags,)
    allowed : ndarray of bool
        Of all matchings, row after row.
    null : ndarray of int32, shape (n_attributes,)
        Columns of the null labels; -1 without one.
    """

    n_attributes: int
    column: np.ndarray
    row: np.ndarray
    count: np.ndarray
    start: np.ndarray
    labels: np.ndarray
    listed_start: np.ndarray
    weight: np.ndarray
    hash: np.ndarray
    hash_index: np.ndarray
    slot: np.ndarray
    slot_labels: np.ndarray
    n_words: np.ndarray
    allowed_start: np.ndarray
    allowed: np.ndarray
    null: np.ndarray


@njit(cache=True)
def hash_labels(labels):
    """A 63-bit hash of one labeling (the Fowler-Noll-Vo scheme on whole labels)."""
    value = np.uint64(14695981039346656037)
    for k in range(labels.shape[0]):
        value = (value ^ np.uint64(labels[k])) * np.uint64(1099511628211)
        value = value ^ (value >> np.uint64(29))
    return np.int64(value >> np.uint64(1))


@njit(cache=True)
def hash_rows(flat, n_slots, counts, starts, out):
    """Hashes of the listed candidates of all bags."""
    n = 0
    for i in range(counts.shape[0]):
        size = n_slots[i]
        for c in range(counts[i]):
            at = starts[i] + c * size
            out[n] = hash_labels(flat[at : at + size])
            n += 1


@njit(cache=True)
def listed(packed, i, labels):
    """Number of the listed candidate of bag i that equals `labels`, or -1."""
    value = hash_labels(labels)
    low, high = packed.listed_start[i], packed.listed_start[i] + packed.count[i]
    end = high
    while low < high:
        middle = (low + high) // 2
        if packed.hash[middle] < value:
            low = middle + 1
        else:
            high = middle
    while low < end and packed.hash[low] == value:
        candidate = packed.hash_index[low]
        at = packed.start[i] + candidate * labels.shape[0]
        same = True
        for k in range(labels.shape[0]):
            if packed.labels[at + k] != labels[k]:
                same = False
                break
        if same:
            return candidate
        low += 1
    return -1


@njit(cache=True)
def word_of(packed, i, m, labels):
    """Word of a matching that the labels of region m spell: 0 for null, w + 1 for word w, -1 for none that the region may take."""
    P = packed.n_attributes
    first = m * P
    n_words = packed.n_words[i]
    allowed = packed.allowed_start[i] + m * (n_words + 1)
    null = True
    for p in range(P):
        if labels[first + p] != packed.null[p]:
            null = False
    if null:
        return 0 if packed.allowed[allowed] else -1
    for w in range(n_words):
        at = packed.start[i] + w * P
        same = True
        for p in range(P):
            if packed.labels[at + p] != labels[first + p]:
                same = False
                break
        if same:
            return w + 1 if packed.allowed[allowed + w + 1] else -1
    return -1


@njit(cache=True)
def contains(packed, i, labels):
    """Whether a labeling, in columns, is a candidate of bag i."""
    if packed.n_words[i] == 0:
        return listed(packed, i, labels) >= 0
    used, P = 0, packed.n_attributes
    for m in range(labels.shape[0] // P):
        w = word_of(packed, i, m, labels)
        if w < 0:
            return False
        if w > 0:
            if used >> w & 1:
                return False
            used |= 1 << w
    return used != 0


@njit(cache=True)
def matching_dp(packed, i, values, first_way):
    """Best totals of a matching's regions, from both ends, by the words that the first regions use.

    Parameters
    ----------
    values : ndarray, shape (n_regions, n_words + 1)
        What a region adds with each word; column 0 without one.
    first_way : int
        0, or 1 for the second half of what is returned alone.

    Returns
    -------
    forward, backward : ndarrays, shape (n_regions + 1, 2 ** n_words)
        Best total of the regions before m that use exactly the words of a subset, and of the regions from m on where these are used up.
    ahead, behind : ndarrays of the same shape
        How many assignments reach it; 0 where none does.
    """
    n_regions, n_words = values.shape[0], values.shape[1] - 1
    allowed, first = packed.allowed, packed.allowed_start[i]
    n_subsets = 1 << n_words
    forward = np.full((n_regions + 1, n_subsets), -np.inf)
    backward = np.full((n_regions + 1, n_subsets), -np.inf)
    ahead, behind = np.zeros((n_regions + 1, n_subsets)), np.zeros((n_regions + 1, n_subsets))
    forward[0, 0], ahead[0, 0] = 0.0, 1.0
    for subset in range(1, n_subsets):  # the empty one would be the all-null labeling, no candidate
        backward[n_regions, subset], behind[n_regions, subset] = 0.0, 1.0
    for way in range(first_way, 2):
        for step in range(n_regions):
            m = step if way == 0 else n_regions - 1 - step
            for subset in range(n_subsets):
                if way == 0 and ahead[m, subset] == 0.0:
                    continue
                for w in range(n_words + 1):
                    if not allowed[first + m * (n_words + 1) + w] or (w > 0 and subset >> (w - 1) & 1):
                        continue
                    used = subset if w == 0 else subset | 1 << (w - 1)
                    if way == 0:
                        total, number, old = (
                            forward[m, subset] + values[m, w],
                            ahead[m, subset],
                            forward[m + 1, used],
                        )
                    else:
                        total, number, old = (
                            backward[m + 1, used] + values[m, w],
                            behind[m + 1, used],
                            backward[m, subset],
                        )
                    if number == 0.0:
                        continue
                    near = 1e-12 * (1.0 + abs(total))
                    better = total > old + near
                    equal = not better and total >= old - near
                    if way == 0:
                        if better:
                            forward[m + 1, used], ahead[m + 1, used] = total, number
                        elif equal:
                            ahead[m + 1, used] += number
                    elif better:
                        backward[m, subset], behind[m, subset] = total, number
                    elif equal:
                        behind[m, subset] += number
    return forward, backward, ahead, behind


@njit(cache=True)
def matching_marginals(packed, i, values):
    """Share of a matching's best candidates that give region m word w, and their common total.

    Parameters
    ----------
    values : ndarray, shape (n_regions, n_words + 1)

    Returns
    -------
    best : float
    number : float
        Of best candidates; all of them where `values` is zero.
    share : ndarray, shape (n_regions, n_words + 1)

    Notes
    -----
    Time and memory O(n_regions n_words 2^n_words).
    """
    n_regions, n_words = values.shape[0], values.shape[1] - 1
    forward, backward, ahead, behind = matching_dp(packed, i, values, 0)
    best, number = backward[0, 0], behind[0, 0]
    near = 1e-9 * (1.0 + abs(best))
    share = np.zeros((n_regions, n_words + 1))
    allowed, first = packed.allowed, packed.allowed_start[i]
    for m in range(n_regions):
        for subset in range(1 << n_words):
            if ahead[m, subset] == 0.0:
                continue
            for w in range(n_words + 1):
                if not allowed[first + m * (n_words + 1) + w] or (w > 0 and subset >> (w - 1) & 1):
                    continue
                used = subset if w == 0 else subset | 1 << (w - 1)
                if (
                    behind[m + 1, used] > 0.0
                    and forward[m, subset] + values[m, w] + backward[m + 1, used] >= best - near
                ):
                    share[m, w] += ahead[m, subset] * behind[m + 1, used]
    for m in range(n_regions):
        total = share[m].sum()
        for w in range(n_words + 1):
            share[m, w] /= total
    return best, number, share


@njit(cache=True)
def matching_best(packed, i, values):
    """The first best candidate of a matching, as the words that its regions take (0 for none), and its total.

    Returns
    -------
    best : float
    words : ndarray of int64, shape (n_regions,)
    """
    n_regions, n_words = values.shape[0], values.shape[1] - 1
    _, backward, _, behind = matching_dp(packed, i, values, 1)
    words = np.zeros(n_regions, np.int64)
    allowed, first = packed.allowed, packed.allowed_start[i]
    used = 0
    for m in range(n_regions):
        top, chosen = -np.inf, 0
        for w in range(n_words + 1):
            if not allowed[first + m * (n_words + 1) + w] or (w > 0 and used >> (w - 1) & 1):
                continue
            then = used if w == 0 else used | 1 << (w - 1)
            if behind[m + 1, then] > 0.0 and values[m, w] + backward[m + 1, then] > top:
                top, chosen = values[m, w] + backward[m + 1, then], w
        words[m] = chosen
        if chosen > 0:
            used |= 1 << (chosen - 1)
    return backward[0, 0], words


@njit(cache=True)
def word_values(packed, i, scores):
    """What each region of a matching scores with each word, from the scores of all labels, shape (n_regions, n_columns)."""
    P, n_words = packed.n_attributes, packed.n_words[i]
    values = np.zeros((scores.shape[0], n_words + 1))
    for m in range(scores.shape[0]):
        for p in range(P):
            values[m, 0] += scores[m, packed.null[p]]
        for w in range(n_words):
            for p in range(P):
                values[m, w + 1] += scores[m, packed.labels[packed.start[i] + w * P + p]]
    return values


@njit(cache=True)
def ambiguous_loss(packed, i, labels):
    """Least number of slots in which a labeling, in columns, differs from a candidate of bag i."""
    n_slots = labels.shape[0]
    if packed.n_words[i] == 0:
        best, at = n_slots, packed.start[i]
        for _ in range(packed.count[i]):
            apart = 0
            for k in range(n_slots):
                if packed.labels[at + k] != labels[k]:
                    apart += 1
            best = min(best, apart)
            at += n_slots
        return best
    P, n_words = packed.n_attributes, packed.n_words[i]
    agree = np.zeros((n_slots // P, n_words + 1))
    for m in range(n_slots // P):
        for p in range(P):
            agree[m, 0] += labels[m * P + p] == packed.null[p]
        for w in range(n_words):
            for p in range(P):
                agree[m, w + 1] += labels[m * P + p] == packed.labels[packed.start[i] + w * P + p]
    return n_slots - int(matching_best(packed, i, agree)[0])


def _as_sizes(n_labels, P):
    if n_labels is None:
        return None
    sizes = (n_labels,) * P if np.isscalar(n_labels) else tuple(n_labels)
    if len(sizes) != P:
        raise ValueError(
            f"n_labels must give the number of labels of each of the {P} attributes, got {n_labels!r}"
        )
    return tuple(check_count("n_labels", size) for size in sizes)


def _listed_bag(i, given, P):
    """One bag's list as an int array (L, M, P), or an error that says which bag and what is wrong."""
    try:
        array = np.asarray(given)
    except ValueError:
        array = None
    if array is None or array.dtype == object or array.ndim not in (2, 3):
        raise ValueError(
            f"candidates[{i}] must be an array of shape (n_candidates, n_instances) or (n_candidates, n_instances, n_attributes); "
            f"its labeling vectors must have one length"
        )
    if array.shape[0] == 0:
        raise ValueError(f"candidates[{i}] must hold at least one labeling vector, got an empty set")
    array = array[:, :, None] if array.ndim == 2 else array
    if array.shape[1] == 0 or array.shape[2] == 0:
        raise ValueError(
            f"candidates[{i}] must label at least one instance with one attribute, got shape {array.shape}"
        )
    if P is not None and array.shape[2] != P:
        raise ValueError(
            f"candidates[{i}] must have {P} attributes, as the bags before it, got {array.shape[2]}"
        )
    if array.dtype.kind not in "iu" and not (array.dtype.kind == "f" and np.all(array == np.floor(array))):
        raise ValueError(f"candidates[{i}] must hold labels as integers, got {array.dtype}")
    if array.max() >= 2**31:
        raise ValueError(f"candidates[{i}] must hold labels below 2^31, got {array.max()}")
    return array.astype(np.int32)


def _matching_bag(i, given, P):
    words, allowed = np.asarray(given.words), np.asarray(given.allowed, dtype=bool)
    words = words[:, None] if words.ndim == 1 else words
    if words.ndim != 2 or words.shape[0] == 0 or words.dtype.kind not in "iu":
        raise ValueError(
            f"candidates[{i}] must be a Matching with integer words of shape (n_words, n_attributes), got shape {words.shape}"
        )
    if P is not None and words.shape[1] != P:
        raise ValueError(
            f"candidates[{i}] must have {P} attributes, as the bags before it, got {words.shape[1]}"
        )
    if words.shape[0] > MOST_WORDS:
        raise ValueError(
            f"candidates[{i}] must have at most {MOST_WORDS} words, whose subsets are searched, got {words.shape[0]}"
        )
    if len(np.unique(words, axis=0)) != len(words):
        raise ValueError(f"candidates[{i}] must have distinct words, got the same labels twice")
    if allowed.ndim != 2 or allowed.shape[1] != words.shape[0] + 1 or allowed.shape[0] == 0:
        raise ValueError(
            f"candidates[{i}] must say for each region which of null and its {words.shape[0]} words are allowed, "
            f"shape (n_regions, {words.shape[0] + 1}), got {allowed.shape}"
        )
    return Matching(words.astype(np.int32), allowed)


class CandidateSet:
    r"""Candidate labeling sets of many bags.

    Bag :math:`\mathcal X_i = \{x_{i,1}, \dots, x_{i,M_i}\}` comes with :math:`\mathcal Z_i = \{Z_{i,1}, \dots, Z_{i,L_i}\}`, of which one
    vector is the true labeling. The instances of all bags are the rows of one matrix, bag after bag.

    Parameters
    ----------
    candidates : sequence of array-like of int, shape (n_candidates, n_instances) or (n_candidates, n_instances, n_attributes), or Matching
        One entry per bag. Labels count from 0 in each attribute. A vector given twice counts once.
    n_labels : int or sequence of int, optional
        Number of labels of each attribute; from `classes` or from the largest label by default.
    classes : sequence of sequences, optional
        What the labels of each attribute are called; the integers by default. For one attribute also the plain sequence of names.
    null : int or sequence of int, optional
        The label of each attribute that says "none of the words". Needed where a bag is a `Matching`.
    priors : sequence of array-like, shape (n_candidates,), optional
        Prior probability of each candidate (remark 5.1), in any scale, None for bags without; a candidate with prior 0 is left out. In
        `MMS` the score of a candidate is multiplied by its prior over the bag's largest, so equal priors change nothing. A small prior
        raises a negative score: that is how the remark has it.
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

    Examples
    --------
    Two faces and two names, as in thesis figure 5.4; 0 is null.

    >>> faces = CandidateSet([[[1, 2], [1, 0], [0, 2], [2, 1], [0, 1], [2, 0]]], null=0)
    >>> faces.n_candidates, faces.contains(0, [2, 1]), faces.loss(0, [1, 1])
    ([6], True, 1)

    References
    ----------
    Thesis section 5.3; remark 5.1.
    """

    def __init__(self, candidates, *, n_labels=None, classes=None, null=None, priors=None, max_listed=10_000):
        if isinstance(candidates, (str, bytes)) or not hasattr(candidates, "__len__"):
            raise TypeError(
                f"candidates must be a sequence with one candidate set per bag, got {type(candidates).__name__}"
            )
        if len(candidates) == 0:
            raise ValueError("candidates must hold at least one bag, got none")
        self.max_listed = check_count("max_listed", max_listed)
        bags, P = [], None
        for i, given in enumerate(candidates):
            bag = _matching_bag(i, given, P) if isinstance(given, Matching) else _listed_bag(i, given, P)
            P = bag.words.shape[1] if isinstance(bag, Matching) else bag.shape[2]
            bags.append(bag)
        self._name_labels(bags, P, n_labels, classes, null)
        priors = self._checked_priors(bags, priors)
        bags, priors = self._without_repeats(bags, priors)
        self._bags, self._priors = bags, priors
        self._count()

    # ------------------------------------------------------------------ making

    def _name_labels(self, bags, P, n_labels, classes, null):
        sizes = _as_sizes(n_labels, P)
        if classes is not None:
            classes = list(classes)
            if P == 1 and (
                len(classes) != 1 or isinstance(classes[0], str) or not hasattr(classes[0], "__len__")
            ):
                classes = [classes]
            if len(classes) != P:
                raise ValueError(
                    f"classes must name the labels of each of the {P} attributes, got {len(classes)} sequences"
                )
            classes = [np.asarray(c) for c in classes]
            named = tuple(len(c) for c in classes)
            if sizes is not None and sizes != named:
                raise ValueError(f"classes must have as many names as n_labels says, {sizes}, got {named}")
            if any(len(np.unique(c)) != len(c) for c in classes):
                raise ValueError("classes must hold every name once")
            sizes = named
        largest = np.full(P, -1)
        for i, bag in enumerate(bags):
            labels = bag.words if isinstance(bag, Matching) else bag.reshape(-1, P)
            if labels.min() < 0 or (sizes is not None and np.any(labels.max(axis=0) >= sizes)):
                wrong = (
                    labels.min() if labels.min() < 0 else labels.max(axis=0)[labels.max(axis=0) >= sizes][0]
                )
                inside = "" if sizes is None else f", at most {max(sizes) - 1}"
                raise ValueError(
                    f"candidates[{i}] holds the label {wrong} outside the classes; labels count from 0{inside}"
                )
            largest = np.maximum(largest, labels.max(axis=0))
        if null is not None:
            null = (null,) * P if np.isscalar(null) else tuple(null)
            if len(null) != P or any(
                not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 0 for k in null
            ):
                raise ValueError(
                    f"null must give one label >= 0 for each of the {P} attributes, got {null!r}"
                )
            null = tuple(int(k) for k in null)
            if sizes is not None and any(k >= size for k, size in zip(null, sizes, strict=True)):
                raise ValueError(
                    f"null must be among the labels, at most {tuple(s - 1 for s in sizes)}, got {null}"
                )
            largest = np.maximum(largest, null)
        elif any(isinstance(bag, Matching) for bag in bags):
            raise ValueError("null must be given where a bag is a Matching")
        self.n_attributes, self.null = P, null
        self.n_labels = sizes if sizes is not None else tuple(int(k) + 1 for k in largest)
        self.classes = classes if classes is not None else [np.arange(size) for size in self.n_labels]
        for i, bag in enumerate(bags):
            if isinstance(bag, Matching) and np.any(np.all(bag.words == np.array(null), axis=1)):
                raise ValueError(f"candidates[{i}] must have no word whose labels are all null")

    @staticmethod
    def _checked_priors(bags, priors):
        if priors is None:
            return None
        if not hasattr(priors, "__len__") or len(priors) != len(bags):
            raise ValueError(f"priors must have one entry per bag, {len(bags)} of them")
        checked = []
        for i, (bag, given) in enumerate(zip(bags, priors, strict=True)):
            if given is None:
                checked.append(None)
                continue
            if isinstance(bag, Matching):
                raise ValueError(f"priors[{i}] must be None: the candidates of a Matching are not listed")
            try:
                given = np.asarray(given, dtype=float)
            except (TypeError, ValueError):
                raise ValueError(f"priors[{i}] must hold {len(bag)} numbers >= 0, got {given!r}") from None
            if (
                given.shape != (len(bag),)
                or not np.all(np.isfinite(given))
                or np.any(given < 0.0)
                or not np.any(given > 0.0)
            ):
                raise ValueError(
                    f"priors[{i}] must hold {len(bag)} numbers >= 0, not all 0, got shape {given.shape}"
                )
            checked.append(given)
        return checked

    @staticmethod
    def _without_repeats(bags, priors):
        """Vectors given twice once, in the order of their first appearance; their priors add up."""
        kept, kept_priors = [], None if priors is None else []
        for i, bag in enumerate(bags):
            prior = None if priors is None else priors[i]
            if not isinstance(bag, Matching) and len(bag) > 1:
                _, first, inverse = np.unique(
                    bag.reshape(len(bag), -1), axis=0, return_index=True, return_inverse=True
                )
                if len(first) < len(bag):
                    order = np.sort(first)
                    if prior is not None:
                        sums = np.bincount(inverse.ravel(), weights=prior)
                        prior = sums[np.argsort(first)]
                    bag = bag[order]
            if prior is not None and np.any(prior == 0.0):  # what cannot be is no candidate
                bag, prior = bag[prior > 0.0], prior[prior > 0.0]
            kept.append(bag)
            if kept_priors is not None:
                kept_priors.append(prior)
        return kept, kept_priors

    def _count(self):
        sizes = [bag.allowed.shape[0] if isinstance(bag, Matching) else bag.shape[1] for bag in self._bags]
        self.n_bags = len(sizes)
        self.bag_sizes = np.array(sizes, dtype=np.int64)
        self.bag_starts = np.concatenate([[0], np.cumsum(self.bag_sizes)])
        self.bag_of = np.repeat(np.arange(self.n_bags), self.bag_sizes)
        self.n_instances = int(self.bag_starts[-1])
        self._packed = None
        self.n_candidates = [_count_matching(b) if isinstance(b, Matching) else len(b) for b in self._bags]
        for i, number in enumerate(self.n_candidates):
            if number == 0:
                raise ValueError(
                    f"candidates[{i}] must allow at least one labeling vector, its Matching allows none"
                )

    @classmethod
    def _made_of(cls, bags, priors, like):
        """A set from bags that were checked before."""
        made = cls.__new__(cls)
        made._bags, made._priors, made.max_listed = bags, priors, like.max_listed
        made.n_attributes, made.n_labels, made.classes, made.null = (
            like.n_attributes,
            like.n_labels,
            like.classes,
            like.null,
        )
        made._count()
        return made

    @classmethod
    def from_labels(cls, y, bag_sizes=None, **options):
        """Sets with one candidate each: the truth is known.

        Parameters
        ----------
        y : array-like of int, shape (n_instances,) or (n_instances, n_attributes)
        bag_sizes : array-like of int, optional
            One instance per bag by default.
        **options
            As of the class.

        Returns
        -------
        CandidateSet
        """
        y = np.asarray(y)
        if y.ndim not in (1, 2) or len(y) == 0:
            raise ValueError(
                f"y must have shape (n_instances,) or (n_instances, n_attributes), got {y.shape}"
            )
        sizes = np.ones(len(y), dtype=int) if bag_sizes is None else np.asarray(bag_sizes)
        if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or np.any(sizes < 1) or sizes.sum() != len(y):
            raise ValueError(f"bag_sizes must be integers >= 1 that add up to the {len(y)} instances")
        return cls([part[None] for part in np.split(y, np.cumsum(sizes)[:-1])], **options)

    # ------------------------------------------------------------------ reading

    def __len__(self):
        return self.n_bags

    def __repr__(self):
        sizes = ", ".join(str(k) for k in self.n_labels)
        return f"<CandidateSet: {self.n_bags} bags, {self.n_instances} instances, labels {sizes}, {sum(self.n_candidates)} candidates>"

    def _check_bag(self, i):
        if not isinstance(i, (int, np.integer)) or isinstance(i, bool) or not -self.n_bags <= i < self.n_bags:
            raise IndexError(f"bag must be an integer below {self.n_bags}, got {i!r}")
        return int(i) % self.n_bags

    def is_listed(self, i):
        """Whether the candidates of bag i are kept as a list."""
        return not isinstance(self._bags[self._check_bag(i)], Matching)

    def bag(self, i):
        """All candidates of bag i.

        Parameters
        ----------
        i : int

        Returns
        -------
        ndarray of int32, shape (n_candidates, n_instances, n_attributes)

        Raises
        ------
        ValueError
            If the set is a `Matching` of more than `max_listed`; `iterate` goes through it.
        """
        i = self._check_bag(i)
        if self.is_listed(i):
            return self._bags[i]
        if self.n_candidates[i] > self.max_listed:
            many = self.n_candidates[i]
            raise ValueError(
                f"bag {i} has {many} candidates, more than max_listed = {self.max_listed}; iterate goes through them"
            )
        return np.stack(list(self.iterate(i)))

    def priors(self, i):
        """Priors of the candidates of bag i over their largest, shape (n_candidates,), or None."""
        prior = None if self._priors is None else self._priors[self._check_bag(i)]
        return None if prior is None else prior / prior.max()

    def iterate(self, i, start=0, stop=None):
        """Go through the candidates of bag i, made on the fly where they are not listed.

        Parameters
        ----------
        i : int
        start, stop : int
            First candidate, and the one before which to end.

        Yields
        ------
        ndarray of int32, shape (n_instances, n_attributes)
        """
        bag = self._bags[self._check_bag(i)]
        if isinstance(bag, Matching):
            yield from itertools.islice(_generate(bag, np.array(self.null, dtype=np.int32)), start, stop)
        else:
            yield from bag[start:stop]

    def _slots(self, i, labeling):
        """A labeling of bag i as columns, slot after slot."""
        labeling = np.asarray(labeling)
        shape = (int(self.bag_sizes[i]), self.n_attributes)
        if labeling.size != shape[0] * shape[1] or labeling.dtype.kind not in "iu":
            raise ValueError(
                f"labeling must hold integers of shape {shape} for bag {i}, got {labeling.dtype} {labeling.shape}"
            )
        labeling = labeling.reshape(shape)
        if labeling.min() < 0 or np.any(labeling.max(axis=0) >= self.n_labels):
            raise ValueError(
                f"labeling must hold labels 0 to {tuple(k - 1 for k in self.n_labels)}, got {labeling.tolist()}"
            )
        return (labeling + self.packed.column[:-1]).astype(np.int32).ravel()

    def contains(self, i, labeling):
        """Whether a labeling, shape (n_instances, n_attributes), is a candidate of bag i."""
        i = self._check_bag(i)
        return bool(contains(self.packed, i, self._slots(i, labeling)))

    def loss(self, i, labeling):
        r"""Ambiguous loss :math:`\Delta_A(Z, \mathcal Z_i) = \min_{Z' \in \mathcal Z_i} \Delta_{01}(Z, Z')` (thesis 5.4.2)."""
        i = self._check_bag(i)
        return int(ambiguous_loss(self.packed, i, self._slots(i, labeling)))

    def mask(self, attribute=0):
        """Labels that some candidate gives an instance: Z(m).

        Parameters
        ----------
        attribute : int

        Returns
        -------
        ndarray of bool, shape (n_instances, n_labels[attribute])
        """
        p = self._check_attribute(attribute)
        packed = self.packed
        counts = np.diff(packed.slot)
        instance = np.repeat(np.arange(self.n_instances * self.n_attributes), counts)
        of_p = instance % self.n_attributes == p
        mask = np.zeros((self.n_instances, self.n_labels[p]), dtype=bool)
        mask[instance[of_p] // self.n_attributes, packed.slot_labels[of_p] - packed.column[p]] = True
        return mask

    def bag_mask(self, attribute=0):
        """Labels that some candidate gives some instance of a bag, shape (n_bags, n_labels[attribute])."""
        return np.logical_or.reduceat(self.mask(attribute), self.bag_starts[:-1], axis=0)

    def _check_attribute(self, attribute):
        if (
            not isinstance(attribute, (int, np.integer))
            or isinstance(attribute, bool)
            or not 0 <= attribute < self.n_attributes
        ):
            raise ValueError(f"attribute must be an integer below {self.n_attributes}, got {attribute!r}")
        return int(attribute)

    def _as_bags(self, bags):
        """Bag numbers, from numbers or a mask."""
        bags = np.asarray(bags)
        if bags.dtype == bool and bags.shape == (self.n_bags,):
            bags = np.flatnonzero(bags)
        if (
            bags.ndim != 1
            or bags.size == 0
            or bags.dtype.kind not in "iu"
            or bags.min() < 0
            or bags.max() >= self.n_bags
        ):
            raise ValueError(
                f"bags must be integers below {self.n_bags}, at least one, or a mask with one entry per bag"
            )
        return bags.astype(np.int64)

    def rows(self, bags):
        """Rows of the instances of some bags, in the bags' order.

        Parameters
        ----------
        bags : array-like of int or bool

        Returns
        -------
        ndarray of int
        """
        bags = self._as_bags(bags)
        sizes = self.bag_sizes[bags]
        first = np.repeat(self.bag_starts[:-1][bags] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        return first + np.arange(sizes.sum())

    def take(self, bags):
        """The sets of some bags, in the order given.

        Parameters
        ----------
        bags : array-like of int or bool

        Returns
        -------
        CandidateSet
        """
        bags = self._as_bags(bags)
        priors = None if self._priors is None else [self._priors[i] for i in bags]
        return self._made_of([self._bags[i] for i in bags], priors, self)

    def attribute(self, attribute):
        """One attribute alone, vectors that it no longer tells apart once.

        Parameters
        ----------
        attribute : int

        Returns
        -------
        CandidateSet

        Raises
        ------
        ValueError
            If two words of a `Matching` have the same label, which a set of distinct words cannot say.
        """
        p = self._check_attribute(attribute)
        bags = []
        for i, bag in enumerate(self._bags):
            if not isinstance(bag, Matching):
                bags.append(bag[:, :, p])
                continue
            words = bag.words[:, [p]]
            if len(np.unique(words)) < len(words) or np.any(words == self.null[p]):
                raise ValueError(
                    f"attribute {p} does not tell the words of bag {i} apart, which is a Matching; list its candidates"
                )
            bags.append(Matching(words, bag.allowed))
        null = None if self.null is None else self.null[p]
        return CandidateSet(
            bags, classes=[self.classes[p]], null=null, priors=self._priors, max_listed=self.max_listed
        )

    def draw(self, random_state=None):
        """A candidate of every bag, uniformly: what RANDOM answers.

        Parameters
        ----------
        random_state : None, int or Generator

        Returns
        -------
        ndarray of int, shape (n_instances, n_attributes)
        """
        rng = as_generator(random_state)
        drawn = np.empty((self.n_instances, self.n_attributes), dtype=np.int64)
        for i, bag in enumerate(self._bags):
            rows = slice(self.bag_starts[i], self.bag_starts[i + 1])
            if isinstance(bag, Matching):
                words = _draw_matching(bag, rng)
                labels = np.vstack([np.array(self.null), bag.words])
                drawn[rows] = labels[words]
            else:
                drawn[rows] = bag[rng.integers(len(bag))]
        return drawn

    def named(self, labels):
        """Label numbers, shape (n, n_attributes), as names: shape (n,) for one attribute, else (n, n_attributes) of objects."""
        labels = np.asarray(labels)
        if self.n_attributes == 1:
            return self.classes[0][labels.reshape(-1)]
        return np.stack(
            [self.classes[p][labels[:, p]].astype(object) for p in range(self.n_attributes)], axis=1
        )

    # ------------------------------------------------------------------ packing

    @property
    def packed(self):
        if self._packed is None:
            self._packed = self._pack()
        return self._packed

    def _pack(self):
        P = self.n_attributes
        column = np.concatenate([[0], np.cumsum(self.n_labels)]).astype(np.int64)
        shift = column[:-1].astype(np.int32)
        lists = [bag.words + shift if isinstance(bag, Matching) else bag + shift for bag in self._bags]
        lengths = np.array([part.size for part in lists], dtype=np.int64)
        count = np.array([0 if isinstance(bag, Matching) else len(bag) for bag in self._bags], dtype=np.int64)
        listed_start = np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64)
        start = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
        labels = np.concatenate([part.ravel() for part in lists]).astype(np.int32)
        hashes = np.empty(count.sum(), np.int64)
        hash_rows(labels, self.bag_sizes * P, count, start, hashes)
        order = np.lexsort((hashes, np.repeat(np.arange(self.n_bags), count)))
        hashes, index = hashes[order], order - np.repeat(listed_start, count)
        weight = np.ones(count.sum())
        if self._priors is not None:
            for i, prior in enumerate(self._priors):
                if prior is not None:
                    weight[listed_start[i] : listed_start[i] + count[i]] = prior / prior.max()
        masks = [bag.allowed.ravel() for bag in self._bags if isinstance(bag, Matching)]
        allowed = np.concatenate(masks) if masks else np.zeros(0, dtype=bool)
        allowed_size = np.array(
            [bag.allowed.size if isinstance(bag, Matching) else 0 for bag in self._bags], dtype=np.int64
        )
        n_words = np.array(
            [len(bag.words) if isinstance(bag, Matching) else 0 for bag in self._bags], dtype=np.int64
        )
        null = (
            np.full(P, -1, np.int32) if self.null is None else (np.array(self.null) + shift).astype(np.int32)
        )
        packed = PackedCandidates(
            P,
            column,
            self.bag_starts.astype(np.int64),
            count,
            start,
            labels,
            listed_start,
            weight,
            hashes,
            index,
            np.zeros(1, np.int64),
            np.zeros(0, np.int32),
            n_words,
            np.concatenate([[0], np.cumsum(allowed_size)[:-1]]).astype(np.int64),
            allowed,
            null,
        )
        for i in np.flatnonzero(
            n_words
        ):  # what no candidate gives a region is not allowed: null alone, for the only region
            size = (int(self.bag_sizes[i]), int(n_words[i]) + 1)
            share = matching_marginals(packed, i, np.zeros(size))[2]
            allowed[packed.allowed_start[i] : packed.allowed_start[i] + share.size] = share.ravel() > 0.0
        slot, slot_labels = possible_labels(packed, int(column[-1]))
        return packed._replace(slot=slot, slot_labels=slot_labels.copy())


@njit(cache=True)
def possible_labels(packed, n_columns):
    """The sets Z(m) of all slots, one after the other, each ascending."""
    P = packed.n_attributes
    n_bags = packed.count.shape[0]
    slot = np.zeros(packed.row[n_bags] * P + 1, np.int64)
    seen = np.zeros(n_columns, np.bool_)
    found = np.empty(1024, np.int32)
    total = 0
    for i in range(n_bags):
        n_slots = (packed.row[i + 1] - packed.row[i]) * P
        for s in range(n_slots):
            p = s % P
            if packed.n_words[i] == 0:
                for c in range(packed.count[i]):
                    seen[packed.labels[packed.start[i] + c * n_slots + s]] = True
            else:
                first = packed.allowed_start[i] + (s // P) * (packed.n_words[i] + 1)
                if packed.allowed[first]:
                    seen[packed.null[p]] = True
                for w in range(packed.n_words[i]):
                    if packed.allowed[first + w + 1]:
                        seen[packed.labels[packed.start[i] + w * P + p]] = True
            for k in range(packed.column[p], packed.column[p + 1]):
                if seen[k]:
                    seen[k] = False
                    if total == found.shape[0]:
                        larger = np.empty(2 * total, np.int32)
                        for j in range(total):
                            larger[j] = found[j]
                        found = larger
                    found[total] = k
                    total += 1
            slot[packed.row[i] * P + s + 1] = total
    return slot, found[:total]


def _generate(bag, null):
    """Candidates of a matching in lexical order, words before null."""
    n_regions, width = bag.allowed.shape
    labels = np.vstack([null, bag.words])
    order = [*range(1, width), 0]  # words before null
    chosen = np.zeros(n_regions, dtype=np.int64)

    def extend(m, used):
        if m == n_regions:
            if used:
                yield labels[chosen]
            return
        for w in order:
            if bag.allowed[m, w] and not (w and used >> w & 1):
                chosen[m] = w
                yield from extend(m + 1, used | (1 << w if w else 0))

    yield from extend(0, 0)


def _completions(bag):
    """A function of a region m and the words used before it that counts the ways to go on, exactly."""
    n_regions, width = bag.allowed.shape
    ways = [{} for _ in range(n_regions)] + [None]

    def count(m, used):
        if m == n_regions:
            return int(used != 0)
        known = ways[m].get(used)
        if known is None:
            known = 0
            for w in range(width):
                if bag.allowed[m, w] and not (w and used >> w & 1):
                    known += count(m + 1, used | (1 << w if w else 0))
            ways[m][used] = known
        return known

    return count


def _count_matching(bag):
    if np.all(bag.allowed):  # closed form; the sum that section 5.6.1 prints lacks j!
        faces, words = bag.allowed.shape[0], bag.allowed.shape[1] - 1
        return sum(
            math.comb(faces, j) * math.comb(words, j) * math.factorial(j)
            for j in range(1, min(faces, words) + 1)
        )
    return _completions(bag)(0, 0)


def _draw_matching(bag, rng):
    """Words of the regions in a candidate drawn uniformly from a matching."""
    count = _completions(bag)
    n_regions, width = bag.allowed.shape
    chosen, used = np.zeros(n_regions, dtype=np.int64), 0
    for m in range(n_regions):
        options = [w for w in range(width) if bag.allowed[m, w] and not (w and used >> w & 1)]
        ways = np.array([count(m + 1, used | (1 << w if w else 0)) for w in options], dtype=float)
        w = options[rng.choice(len(options), p=ways / ways.sum())]
        chosen[m], used = w, used | (1 << w if w else 0)
    return chosen
