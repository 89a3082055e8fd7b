"""Candidate labeling sets of bags (thesis section 5.3).

Slot ``m * P + p`` of a bag is attribute p of instance m. Sets are lists of labelings, or a `Matching`.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numba import types
from numba.extending import overload
from scipy.sparse import csr_array, issparse

from cuelearn.compiled import inner, loop
from cuelearn.core.samples import as_generator, check_sample_weight
from cuelearn.expect import expect, expect_distinct, expect_instance, expect_list, expect_shape
from cuelearn.kernels.types import ArrayLike, MatrixLike, RandomState
from cuelearn.mms.matching import (
    Matching,
    Scratch,
    Words,
    count_matching,
    draw_matching,
    generate,
    matching_loss,
    matching_shares,
    spells_words,
)

__all__ = ["CandidateSet", "Matching"]

MOST_WORDS = 16
#: Labels are stored as int32.
LARGEST_LABEL = 2**31 - 1
#: Largest `Matching` that `CandidateSet.bag` lists.
MOST_LISTED = 10_000
SPLITTING = "scikit-learn's tools split bags by groups=candidates.bag_of with cv=GroupKFold(n_splits)"


class PackedMatchings(NamedTuple):
    n_words: np.ndarray  # 0 for a listed set
    allowed_start: np.ndarray  # start of each mask in `allowed`
    allowed: np.ndarray  # words that each region may take, row by row
    null: np.ndarray  # columns of the null labels


class PackedCandidates(NamedTuple):
    """All sets in flat arrays; labels are *columns*, numbered across attributes."""

    n_attributes: int
    column: np.ndarray  # first column of each attribute, and the end
    attribute: np.ndarray  # of each column
    row: np.ndarray  # first instance of each bag, and the end
    count: np.ndarray  # listed candidates of each bag; 0 for a Matching
    start: np.ndarray  # start of each bag's list, or of its words for a Matching, in `labels`
    labels: np.ndarray  # columns, by candidate and slot
    listed_start: np.ndarray  # start of each bag in `weight` and `order`
    weight: np.ndarray  # prior of each listed candidate over its bag's largest
    order: np.ndarray  # lexical order of a bag's listed candidates
    slot: np.ndarray  # start of each slot in `slot_labels`, and the end
    slot_labels: np.ndarray  # the set Z(m) of every slot, ascending
    matchings: PackedMatchings | None  # None if all sets are listed


class Bag(NamedTuple):
    """One bag's part of `PackedCandidates`."""

    n_attributes: int
    column: np.ndarray
    labels: np.ndarray  # by candidate and slot, or by word and attribute
    weight: np.ndarray
    order: np.ndarray
    slot: np.ndarray
    slot_labels: np.ndarray


@inner
def bag_of(packed, i):
    n = packed.count[i]
    at = packed.listed_start[i]
    return Bag(
        packed.n_attributes,
        packed.column,
        packed.labels[packed.start[i] :],
        packed.weight[at : at + n],
        packed.order[at : at + n],
        packed.slot[packed.row[i] * packed.n_attributes :],
        packed.slot_labels,
    )


@inner
def words_in(matchings, i):
    return Words(matchings.n_words[i] + 1, matchings.allowed[matchings.allowed_start[i] :], matchings.null)


def words_of(matchings, i):
    """A bag's words; None, a type of its own, if all sets are listed."""
    if matchings is None:
        return None
    return words_in(matchings, i)


@overload(words_of, jit_options={"_nrt": False})
def compiled_words_of(matchings, i):
    return (lambda matchings, i: None) if matchings is types.none else words_in


@inner
def is_listed(bag, labels):
    """Whether a bag lists a labeling: binary search in lexical order."""
    n = labels.shape[0]
    low = 0
    high = bag.order.shape[0]
    while low < high:
        middle = (low + high) // 2
        at = bag.order[middle] * n
        k = 0
        while k < n and bag.labels[at + k] == labels[k]:
            k += 1
        if k == n:
            return True
        if bag.labels[at + k] < labels[k]:
            low = middle + 1
        else:
            high = middle
    return False


@inner
def contains(bag, words, labels):
    if words is not None and words.width > 1:
        return spells_words(bag, words, labels)
    return is_listed(bag, labels)


@inner
def ambiguous_loss(bag, words, labels, scratch):
    """Least number of slots in which a labeling differs from a candidate."""
    if words is not None and words.width > 1:
        return matching_loss(bag, words, labels, scratch)
    n_slots = labels.shape[0]
    best = n_slots
    at = 0
    for _ in range(bag.weight.shape[0]):
        apart = 0
        for k in range(n_slots):
            apart += bag.labels[at + k] != labels[k]
        best = min(best, apart)
        at += n_slots
    return best


#: For calls from Python.
compiled_contains = loop(contains)
compiled_loss = loop(ambiguous_loss)


def check_candidates(candidates, n_rows=None, classes=None):
    expect_instance("candidates", candidates, CandidateSet)
    n = candidates.n_instances
    if n_rows not in (None, n):
        raise ValueError(f"X must have one row per instance of candidates, {n}, got {n_rows}")
    if classes is not None:
        same = len(candidates.classes) == len(classes)
        if not same or not all(map(np.array_equal, candidates.classes, classes)):
            raise ValueError("candidates must have the labels of training in their order, got others")


def check_bag_weights(sample_weight, candidates):
    """Bag weights, or None; also from weights per instance, as scikit-learn's tools index them."""
    if np.shape(sample_weight) == (candidates.n_instances,):
        of_instances = np.asarray(sample_weight)
        sample_weight = of_instances[candidates.bag_starts[:-1]]
        if not np.array_equal(sample_weight[candidates.bag_of], of_instances, equal_nan=True):
            raise ValueError("sample_weight must be the same for all instances of a bag")
    hint = "one weight per bag of candidates; in cross-validation give w[candidates.bag_of], one per instance"
    expect_shape("sample_weight", sample_weight, [(), (candidates.n_bags,)], hint)
    return check_sample_weight(sample_weight, candidates.n_bags)


def starts_of_bags(bag_sizes, n_rows):
    sizes = expect("bag_sizes", bag_sizes, kind="int", shape=("n_bags",), low=1)
    if sizes.sum() != n_rows:
        raise ValueError(f"bag_sizes must add up to the {n_rows} rows, got a sum of {sizes.sum()}")
    return np.append(0, np.cumsum(sizes))


def listed_bag(name, given):
    """One bag's list as an int array (L, M, P)."""
    shapes = [("n_candidates", "n_instances"), ("n_candidates", "n_instances", "n_attributes")]
    hint = "names of labels go to classes="
    labels = expect(name, given, kind="whole", shape=shapes, low=0, high=LARGEST_LABEL, hint=hint)
    return np.atleast_3d(labels).astype(np.int32)


def matching_bag(name, given):
    """One bag's `Matching`, words of shape (n_words, n_attributes)."""
    shapes = [("n_words",), ("n_words", "n_attributes")]
    words = expect(f"{name}.words", given.words, kind="int", shape=shapes, low=0, high=LARGEST_LABEL)
    words = words.reshape(len(words), -1).astype(np.int32)
    if len(words) > MOST_WORDS:
        raise ValueError(f"{name} must have at most {MOST_WORDS} words, got {len(words)}")
    expect_distinct(f"{name}.words", list(map(tuple, words.tolist())))
    shape = ("n_regions", len(words) + 1)
    return Matching(words, expect(f"{name}.allowed", given.allowed, kind="bool", shape=shape))


def checked_prior(i, bag, given):
    if given is None:
        return None
    if isinstance(bag, Matching):
        raise ValueError(f"priors[{i}] must be None: the candidates of a Matching are not listed")
    prior = expect(f"priors[{i}]", given, shape=(len(bag),), low=0)
    if not prior.any():
        raise ValueError(f"priors[{i}] must not be all 0")
    return prior


def once_or_each(name, value, P, is_once=np.isscalar):
    """P values, given once (as `is_once` tells) or per attribute."""
    if is_once(value):
        return [value] * P
    return expect_list(name, value, "values, one for each attribute", P)


def without_repeats(bag, prior):
    """Merge repeated vectors, adding their priors; drop prior 0."""
    if not isinstance(bag, Matching) and len(bag) > 1:
        flat = bag.reshape(len(bag), -1)
        _, first, inverse = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        if len(first) < len(bag):
            if prior is not None:
                prior = np.bincount(inverse.ravel(), weights=prior)[np.argsort(first)]
            bag = bag[np.sort(first)]
    if prior is not None:
        bag = bag[prior > 0.0]
        prior = prior[prior > 0.0]
    return bag, prior


def labels_in(bag):
    if isinstance(bag, Matching):
        return bag.words
    return bag


class CandidateSet:
    r"""Candidate labeling sets of many bags.

    Bag :math:`\mathcal X_i = \{x_{i,1}, \dots, x_{i,M_i}\}` has candidates :math:`\mathcal Z_i = \{Z_{i,1},
    \dots, Z_{i,L_i}\}`, one of which is the true labeling. The instances of all bags are the rows of one
    matrix X, bag after bag.

    Parameters
    ----------
    candidates : sequence of Matching or array-like of int, shape (n_candidates, n_instances[, n_attributes])
        One entry per bag. Labels count from 0 in each attribute. Repeated vectors count once.
    n_labels : int or sequence of int, optional
        Number of labels of each attribute; by default from `classes` or the largest label.
    classes : sequence of sequences, optional
        Label names of each attribute (for one attribute also a plain sequence); by default the integers.
    null : int or sequence of int, optional
        The label of each attribute that means "none of the words". Required if a bag is a `Matching`.
    priors : sequence of array-like, shape (n_candidates,), optional
        Prior probability of each candidate (remark 5.1), in any scale, or None for a bag; candidates with
        prior 0 are dropped. `MMS` multiplies scores by priors over the bag's largest, as in the remark, so a
        small prior raises a negative score.

    Attributes
    ----------
    n_bags, n_instances, n_attributes : int
    n_labels : tuple of int
    classes : list of ndarray
    null : tuple of int, or None
    bag_sizes, bag_starts : ndarray of int, shapes (n_bags,) and (n_bags + 1,)
    bag_of : ndarray of int, shape (n_instances,)
    n_candidates : list of int
        Exact, however large.
    packed : PackedCandidates

    Raises
    ------
    ValueError
        If a set is empty, its vectors differ in length, a label is outside the classes, or priors do not fit.

    References
    ----------
    Thesis section 5.3; remark 5.1.

    Examples
    --------
    Two faces and two names, as in thesis figure 5.4; 0 is null.

    >>> from cuelearn.mms import CandidateSet
    >>> faces = CandidateSet([[[1, 2], [1, 0], [0, 2], [2, 1], [0, 1], [2, 0]]], null=0)
    >>> faces.n_candidates, faces.contains(0, [2, 1]), faces.loss(0, [1, 1])
    ([6], True, 1)

    Cross-validation splits X and candidates by bags; bags of one instance need no groups.

    >>> import numpy as np
    >>> from sklearn.model_selection import GroupKFold, cross_val_score
    >>> from cuelearn.mms import MMS
    >>> X = np.eye(2)[[0, 1] * 6]
    >>> bags = CandidateSet([[[0, 1], [1, 0]], [[0, 1]]] * 3)
    >>> options = {"groups": bags.bag_of, "cv": GroupKFold(3)}  # any search takes them too
    >>> cross_val_score(MMS(random_state=0), X, bags, **options)
    array([1., 1., 1.])
    """

    def __init__(
        self,
        candidates: Sequence[Matching | ArrayLike],
        *,
        n_labels: int | Sequence[int] | None = None,
        classes: Sequence | None = None,
        null: int | Sequence[int] | None = None,
        priors: Sequence[ArrayLike | None] | None = None,
    ):
        bags = []
        for i, given in enumerate(expect_list("candidates", candidates, "candidate sets, one per bag")):
            read = listed_bag
            if isinstance(given, Matching):
                read = matching_bag
            bags.append(read(f"candidates[{i}]", given))
        self.n_attributes = labels_in(bags[0]).shape[-1]
        shapes = [("n_words", self.n_attributes), ("n_candidates", "n_instances", self.n_attributes)]
        for i, bag in enumerate(bags):
            expect_shape(f"candidates[{i}]", labels_in(bag), shapes, "all bags have the same attributes")
        self._name_labels(n_labels, classes)
        self._check_labels(bags, null)
        if priors is None:
            priors = [None] * len(bags)
        priors = expect_list("priors", priors, "entries, one per bag", len(bags))
        priors = [checked_prior(i, bag, prior) for i, (bag, prior) in enumerate(zip(bags, priors))]
        self._hold([without_repeats(bag, prior) for bag, prior in zip(bags, priors)])

    def _name_labels(self, n_labels, classes):
        P = self.n_attributes
        sizes = None
        if n_labels is not None:
            sizes = once_or_each("n_labels", n_labels, P)
            sizes = tuple(expect("n_labels", size, kind="whole", low=1) for size in sizes)
        if classes is not None:
            classes = expect_list("classes", classes, "names, or of such lists, one per attribute")
            nested = len(classes) == 1 and not isinstance(classes[0], str) and hasattr(classes[0], "__len__")
            classes = [np.asarray(c) for c in ([classes] if P == 1 and not nested else classes)]
            n_names = tuple(map(len, classes))
            if len(classes) != P or sizes not in (None, n_names):
                wanted = f"the labels of {P} attributes, as many as n_labels says"
                raise ValueError(f"classes must name {wanted}, got {n_names}")
            for names in classes:
                expect_distinct("classes", names.tolist())
            sizes = n_names
        self.n_labels = sizes
        self.classes = classes

    def _check_labels(self, bags, null):
        """Check labels; set `null` and missing `n_labels` and `classes`."""
        P = self.n_attributes
        last = np.full(P, LARGEST_LABEL)
        if self.n_labels is not None:
            last = np.array(self.n_labels) - 1
        largest = np.zeros(P, dtype=int)
        for i, bag in enumerate(bags):
            labels = labels_in(bag).reshape(-1, P)
            if np.any(labels > last):
                raise ValueError(
                    f"candidates[{i}] must hold labels from 0 to {last.max()}, got {labels[labels > last][0]}"
                )
            largest = np.maximum(largest, labels.max(axis=0))
        if null is not None:
            null = once_or_each("null", null, P)
            null = tuple(expect("null", null, kind="int", shape=(P,), low=0, high=last).tolist())
            largest = np.maximum(largest, null)
        for i, bag in enumerate(bags):
            if isinstance(bag, Matching):
                if null is None:
                    raise ValueError("null must be given where a bag is a Matching")
                if np.any(np.all(bag.words == null, axis=1)):
                    raise ValueError(f"candidates[{i}] must have no word whose labels are all null")
        self.null = null
        if self.n_labels is None:
            self.n_labels = tuple(int(k) + 1 for k in largest)
        if self.classes is None:
            self.classes = [np.arange(size) for size in self.n_labels]

    def _hold(self, pairs):
        self._bags, self._priors = map(list, zip(*pairs, strict=True))
        sizes = [bag.allowed.shape[0] if isinstance(bag, Matching) else bag.shape[1] for bag in self._bags]
        self.n_bags = len(sizes)
        self.n_instances = sum(sizes)
        self.bag_sizes = np.array(sizes, dtype=np.int64)
        self.bag_starts = np.append(0, np.cumsum(self.bag_sizes))
        self.bag_of = np.repeat(np.arange(self.n_bags), self.bag_sizes)
        self.n_candidates = [count_matching(b) if isinstance(b, Matching) else len(b) for b in self._bags]
        for i, number in enumerate(self.n_candidates):
            if number == 0:
                raise ValueError(f"candidates[{i}] must allow at least one labeling vector")

    @classmethod
    def from_labels(cls, y: ArrayLike, bag_sizes: Sequence[int] | None = None, **options: Any) -> Self:
        """Sets with one candidate, the true labeling, from labels (n_instances[, n_attributes]), bag sizes
        (by default 1) and options of the class."""
        y = expect("y", y, kind="whole", shape=[("n_instances",), ("n_instances", "n_attributes")])
        if bag_sizes is None:
            bag_sizes = np.ones(len(y), dtype=int)
        starts = starts_of_bags(bag_sizes, len(y))
        return cls([part[None] for part in np.split(y, starts[1:-1])], **options)

    @classmethod
    def from_indicator(cls, possible: MatrixLike, **options: Any) -> Self:
        """Partial labels: one bag per instance, with the labels allowed by a 0/1 matrix (dense, sparse or
        DataFrame) whose columns are the classes, and options of the class. A row without a label is an
        error."""
        if hasattr(possible, "columns"):
            options.setdefault("classes", [list(possible.columns)])
        if issparse(possible):
            allowed = csr_array(possible, copy=True)
            allowed.data = expect("possible", allowed.data, kind="bool", shape=("n",), least=0)
            allowed.eliminate_zeros()
            allowed.sort_indices()
        else:
            shape = ("n_instances", "n_classes")
            allowed = csr_array(expect("possible", possible, kind="bool", shape=shape))
        empty = np.flatnonzero(np.diff(allowed.indptr) == 0)
        if empty.size:
            raise ValueError(f"possible must allow each instance a label, row {empty[0]} has none")
        if "classes" not in options:
            options.setdefault("n_labels", allowed.shape[1])
        return cls(np.split(allowed.indices[:, None], allowed.indptr[1:-1]), **options)

    def __len__(self) -> int:
        return self.n_bags

    @property
    def shape(self) -> tuple[int]:
        """(n_instances,), so that scikit-learn's tools can index a set by instances."""
        return (self.n_instances,)

    def __getitem__(self, rows: slice | ArrayLike) -> Self:
        """The `CandidateSet` of whole bags, given by their rows of X."""
        index = np.arange(self.n_instances)[rows]
        bags = self.bag_of[np.atleast_1d(index)]
        bags = bags[index == self.bag_starts[bags]]
        if index.ndim != 1 or bags.size == 0 or not np.array_equal(self.rows(bags), index):
            raise ValueError(f"rows must be those of whole bags, one bag after the other; {SPLITTING}")
        return self.take(bags)

    def __repr__(self):
        n_candidates = sum(self.n_candidates)
        return f"<CandidateSet: {self.n_bags} bags, {self.n_instances} instances, {n_candidates} candidates>"

    def check_bag(self, i: int) -> int:
        """A bag's number; negative ones count from the end."""
        return expect("bag", i, kind="int", low=-self.n_bags, high=self.n_bags - 1) % self.n_bags

    def is_listed(self, i: int) -> bool:
        """Whether the candidates of bag i are stored as a list."""
        return not isinstance(self._bags[self.check_bag(i)], Matching)

    def bag(self, i: int) -> np.ndarray:
        """All candidates of bag i, shape (n_candidates, n_instances, n_attributes); an error for a `Matching`
        of more than 10,000 (use `iterate`)."""
        if self.is_listed(i):
            return self._bags[i]
        if self.n_candidates[i] > MOST_LISTED:
            raise ValueError(
                f"bag {i} has {self.n_candidates[i]} candidates, more than {MOST_LISTED} that are listed; "
                "iterate goes through them"
            )
        return np.stack(list(self.iterate(i)))

    def priors(self, i: int) -> np.ndarray | None:
        """Priors of bag i's candidates over their largest, shape (n_candidates,), or None."""
        prior = self._priors[self.check_bag(i)]
        if prior is None:
            return None
        return prior / prior.max()

    def iterate(self, i: int, start: int = 0, stop: int | None = None) -> Iterator[np.ndarray]:
        """Yield candidates `start` to ``stop - 1`` of bag i, each of shape (n_instances, n_attributes)."""
        bag = self._bags[self.check_bag(i)]
        if isinstance(bag, Matching):
            bag = generate(bag, np.array(self.null, dtype=np.int32))
        yield from itertools.islice(bag, start, stop)

    def _bag_and_slots(self, i, labeling):
        i = self.check_bag(i)
        packed = self.packed
        labeling = np.asarray(labeling)
        shape = (int(self.bag_sizes[i]), self.n_attributes)
        if labeling.size == shape[0] * shape[1]:
            labeling = labeling.reshape(shape)
        last = np.array(self.n_labels) - 1
        labeling = expect("labeling", labeling, kind="int", shape=shape, low=0, high=last)
        slots = (labeling + packed.column[:-1]).astype(np.int32).ravel()
        return bag_of(packed, i), words_of(packed.matchings, i), slots

    def contains(self, i: int, labeling: ArrayLike) -> bool:
        """Whether a labeling, shape (n_instances, n_attributes), is a candidate of bag i."""
        return bool(compiled_contains(*self._bag_and_slots(i, labeling)))

    def loss(self, i: int, labeling: ArrayLike) -> int:
        r"""Ambiguous loss :math:`\Delta_A(Z, \mathcal Z_i)`: least number of slots in which a labeling
        differs from a candidate (thesis 5.4.2)."""
        return int(compiled_loss(*self._bag_and_slots(i, labeling), Scratch.of(self.packed)))

    def mask(self, attribute: int = 0) -> np.ndarray:
        """Labels Z(m) that the candidates give each instance, shape (n_instances, n_labels[attribute])."""
        p = expect("attribute", attribute, kind="int", low=0, high=self.n_attributes - 1)
        packed = self.packed
        slot = np.repeat(np.arange(packed.slot.size - 1), np.diff(packed.slot))
        of_p = slot % self.n_attributes == p
        mask = np.zeros((self.n_instances, self.n_labels[p]), dtype=bool)
        mask[slot[of_p] // self.n_attributes, packed.slot_labels[of_p] - packed.column[p]] = True
        return mask

    def bag_mask(self, attribute: int = 0) -> np.ndarray:
        """Labels that the candidates give any instance of each bag, shape (n_bags, n_labels[attribute])."""
        return np.logical_or.reduceat(self.mask(attribute), self.bag_starts[:-1], axis=0)

    def _as_bags(self, bags):
        bags = np.asarray(bags)
        if bags.dtype == bool and bags.shape == (self.n_bags,):
            bags = np.flatnonzero(bags)
        return expect("bags", bags, kind="int", shape=("n",), low=0, high=self.n_bags - 1)

    def rows(self, bags: ArrayLike) -> np.ndarray:
        """Rows of X of some bags (numbers or a mask), in the order of the bags; ndarray of int."""
        bags = self._as_bags(bags)
        sizes = self.bag_sizes[bags]
        ends = np.cumsum(sizes)
        return np.repeat(self.bag_starts[bags] - (ends - sizes), sizes) + np.arange(ends[-1])

    def take(self, bags: ArrayLike) -> Self:
        """The `CandidateSet` of some bags (numbers or a mask), in the given order."""
        return self._with([(self._bags[i], self._priors[i]) for i in self._as_bags(bags)])

    def without_priors(self) -> Self:
        """The same bags and candidates, all equally probable."""
        return self._with([(bag, None) for bag in self._bags])

    def _with(self, pairs):
        made = copy.copy(self)
        vars(made).pop("packed", None)
        made._hold(pairs)
        return made

    def attribute(self, attribute: int) -> CandidateSet:
        """The `CandidateSet` of one attribute, with repeated vectors merged; an error if two words of a
        `Matching` share a label, or one has the label of null."""
        p = expect("attribute", attribute, kind="int", low=0, high=self.n_attributes - 1)
        bags = []
        for i, bag in enumerate(self._bags):
            labels = labels_in(bag)[..., [p]]
            if not isinstance(bag, Matching):
                bags.append(labels)
                continue
            if len(np.unique(labels)) < len(labels) or np.any(labels == self.null[p]):
                problem = f"attribute {p} does not tell the words of bag {i} apart, which is a Matching"
                raise ValueError(f"{problem}; list its candidates")
            bags.append(bag._replace(words=labels))
        null = None
        if self.null is not None:
            null = self.null[p]
        return CandidateSet(bags, classes=[self.classes[p]], null=null, priors=self._priors)

    def draw(self, random_state: RandomState = None) -> np.ndarray:
        """A uniformly random candidate of every bag, shape (n_instances, n_attributes) (RANDOM)."""
        rng = as_generator(random_state)
        drawn = []
        for bag in self._bags:
            if isinstance(bag, Matching):
                drawn.append(np.vstack([self.null, bag.words])[draw_matching(bag, rng)])
            else:
                drawn.append(bag[rng.integers(len(bag))])
        return np.concatenate(drawn).astype(np.int64)

    def named(self, labels: np.ndarray) -> np.ndarray:
        """Names of label numbers (n, n_attributes): objects of that shape, or (n,) for one attribute."""
        return named(labels, self.classes)

    @cached_property
    def packed(self):
        P = self.n_attributes
        column = np.append(0, np.cumsum(self.n_labels)).astype(np.int64)
        shift = column[:-1].astype(np.int32)
        flat = [labels_in(bag) + shift for bag in self._bags]
        masks = [b.allowed if isinstance(b, Matching) else np.zeros((0, 0), bool) for b in self._bags]
        listed = np.array([mask.size == 0 for mask in masks])
        count = np.where(listed, [len(part) for part in flat], 0)
        weight = [np.zeros(0)]
        order = [np.zeros(0, np.int64)]
        for i in np.flatnonzero(listed):
            prior = self.priors(i)
            weight.append(np.ones(count[i]) if prior is None else prior)
            order.append(np.lexsort(flat[i].reshape(count[i], -1).T[::-1]))
        matchings = None
        if not listed.all():
            matchings = PackedMatchings(
                n_words=np.array([len(part) for part in flat]) - count,
                allowed_start=starts_of([mask.size for mask in masks]),
                allowed=np.concatenate([mask.ravel() for mask in masks]),
                null=(self.null + shift).astype(np.int32),
            )
        packed = PackedCandidates(
            n_attributes=P,
            column=column,
            attribute=np.repeat(np.arange(P), self.n_labels),
            row=self.bag_starts,
            count=count,
            start=starts_of([part.size for part in flat]),
            labels=np.concatenate([part.ravel() for part in flat]),
            listed_start=starts_of(count),
            weight=np.concatenate(weight),
            order=np.concatenate(order),
            slot=np.zeros(1, np.int64),
            slot_labels=np.zeros(0, np.int32),
            matchings=matchings,
        )
        width = int(column[-1])
        keys = []
        scratch = Scratch.of(packed)
        for i, part in enumerate(flat):
            slots = np.arange(packed.row[i] * P, packed.row[i + 1] * P)
            if listed[i]:
                keys.append(np.unique(slots * width + part.reshape(count[i], -1)))
                continue
            shares = np.zeros(masks[i].shape)
            words = words_of(matchings, i)
            matching_shares(words, len(shares), np.zeros(shares.size), False, shares.ravel(), scratch.numbers)
            start = matchings.allowed_start[i]
            matchings.allowed[start : start + shares.size] = shares.ravel() > 0.0
            m, w = np.nonzero(shares > 0.0)
            keys.append(np.unique(slots.reshape(-1, P)[m] * width + np.vstack([matchings.null, part])[w]))
        keys = np.concatenate(keys)
        slot = np.searchsorted(keys, np.arange(self.n_instances * P + 1) * width)
        return packed._replace(slot=slot, slot_labels=(keys % width).astype(np.int32))


def batches(starts, most_rows):
    """Ranges of consecutive bags with at most `most_rows` rows, or one larger bag."""
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + most_rows, side="right")) - 1)
        yield first, last
        first = last


def starts_of(sizes):
    return np.append(0, np.cumsum(sizes)[:-1]).astype(np.int64)


def named(labels, classes):
    labels = np.asarray(labels)
    if len(classes) == 1:
        return classes[0][labels.reshape(-1)]
    return np.stack([c[column].astype(object) for c, column in zip(classes, labels.T, strict=True)], axis=1)
