"""Candidate sets too large to list: at most one word per region (thesis 5.6.1).

Recursions over regions and subsets of used words take O(n_regions n_words 2^n_words) time and memory.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from cuelearn.compiled import inlined, inner, loop

__all__ = ["Matching"]


class Matching(NamedTuple):
    """All ways to give every region at most one word and every word to at most one region, without all-null.

    Attributes
    ----------
    words : ndarray of int, shape (n_words, n_attributes)
        Labels of each word (a name, or a name and its verb): distinct rows, none all null.
    allowed : ndarray of bool, shape (n_regions, n_words + 1)
        Whether region m may take word w; column 0: no word.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import CandidateSet, Matching
    >>> two_faces = Matching(np.array([[1], [2]]), np.ones((2, 3), dtype=bool))
    >>> CandidateSet([two_faces], null=0).n_candidates
    [6]
    """

    words: np.ndarray
    allowed: np.ndarray


def takes(bag, m, used, order):
    """(word, used words then) that region m may take after the bit set `used`."""
    for w in order:
        if bag.allowed[m, w] and not (w and used >> w & 1):
            yield w, used | (1 << w if w else 0)


def generate(bag, null):
    """Candidates in lexical order, words before null."""
    n_regions, width = bag.allowed.shape
    labels = np.vstack([null, bag.words])

    def extend(chosen, used):
        if len(chosen) < n_regions:
            for w, then in takes(bag, len(chosen), used, [*range(1, width), 0]):
                yield from extend([*chosen, w], then)
        elif used:
            yield labels[chosen]

    yield from extend([], 0)


def counter(bag):
    """A function (region, used words): the exact number of completions."""
    n_regions, width = bag.allowed.shape

    @cache
    def count(m, used):
        if m == n_regions:
            return int(used != 0)
        return sum(count(m + 1, then) for _, then in takes(bag, m, used, range(width)))

    return count


def count_matching(bag):
    """Number of candidates, in closed form if all is allowed (5.6.1's sum lacks j!)."""
    if not np.all(bag.allowed):
        return counter(bag)(0, 0)
    n_regions, width = bag.allowed.shape
    sizes = range(1, min(n_regions, width - 1) + 1)
    return sum(math.comb(n_regions, j) * math.perm(width - 1, j) for j in sizes)


def draw_matching(bag, rng):
    """Words of a uniformly drawn candidate."""
    count = counter(bag)
    chosen = []
    used = 0
    for m, allowed in enumerate(bag.allowed):
        options = list(takes(bag, m, used, range(len(allowed))))
        ways = np.array([count(m + 1, then) for _, then in options], dtype=float)
        w, used = options[rng.choice(len(options), p=ways / ways.sum())]
        chosen.append(w)
    return chosen


# Rows of `Scratch`; those from 1 and from 5 on are for `inference`.
CHOSEN = 0
OF_WORDS, BEFORE, WAYS_BEFORE, AFTER, WAYS_AFTER = range(5)


class Scratch(NamedTuple):
    """Arrays of a bag's searches, each in a row long enough for any bag."""

    integers: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(cls, packed):
        sizes = np.diff(packed.row)
        n_words = 0
        if packed.matchings is not None:
            n_words = packed.matchings.n_words
        options = np.maximum(packed.count, n_words + 1)
        room = np.maximum((sizes * packed.n_attributes + 1) * (options + 1), (sizes + 1) << n_words).max()
        return cls(np.empty((9, room), np.int32), np.empty((17, room)))


class Words(NamedTuple):
    """A bag's words, compiled."""

    width: int  # number of words and null; 1 for a listed set
    allowed: np.ndarray  # whether region m may take word w, at m * width + w
    null: np.ndarray  # columns of the null labels


@inner
def word_column(bag, words, w, p):
    """Column of word w (from 1; 0 is null) in attribute p."""
    return words.null[p] if w == 0 else bag.labels[(w - 1) * bag.n_attributes + p]


@inner
def word_values(bag, words, scores, values):
    """Write the score of each region without a word and with each."""
    for m in range(scores.shape[0]):
        for w in range(words.width):
            total = 0.0
            for p in range(bag.n_attributes):
                total += scores[m, word_column(bag, words, w, p)]
            values[m * words.width + w] = total


@inner
def word_of(bag, words, m, labels):
    """Word of region m's labels: 0 for null, w + 1 for word w, -1 if not allowed."""
    P = bag.n_attributes
    for w in range(words.width):
        p = 0
        while p < P and labels[m * P + p] == word_column(bag, words, w, p):
            p += 1
        if p == P:
            return w if words.allowed[m * words.width + w] else -1
    return -1


@inner
def spells_words(bag, words, labels):
    """Whether a labeling is a candidate of a bag with a `Matching`."""
    used = 0
    for m in range(labels.shape[0] // bag.n_attributes):
        w = word_of(bag, words, m, labels)
        if w < 0 or (w > 0 and used >> w & 1):
            return False
        used |= 1 << w if w > 0 else 0
    return used != 0


@inner
def subset_after(words, m, subset, w):
    """Used words after region m takes word w (0: none), -1 if not allowed."""
    bit = 1 << w >> 1
    return -1 if not words.allowed[m * words.width + w] or subset & bit else subset | bit


@inner
def joined(total, number, best, known, soft):
    """Join two groups: the better total and how many reach it, up to rounding; `soft`: log-sum-exp."""
    if soft:
        high = max(total, best)
        low = min(total, best)
        return high if low == -np.inf else high + math.log1p(math.exp(low - high)), 1.0
    near = 1e-12 * (1.0 + abs(total))
    if total > best + near:
        return total, number
    return best, known + number if total >= best - near else known


@inner
def recursion(words, n_regions, values, forward, soft, total, number):
    """`joined` over regions before m that use exactly a subset of the words or, backward, over regions from m
    on after it: totals and numbers, at m * 2 ** n_words + subset."""
    n_subsets = 1 << (words.width - 1)
    for at in range((n_regions + 1) * n_subsets):
        known = at == 0 if forward else at > n_regions * n_subsets  # all null is no candidate
        total[at] = 0.0 if known else -np.inf
        number[at] = 1.0 if known else 0.0
    for step in range(n_regions):
        m = step if forward else n_regions - 1 - step
        for subset in range(n_subsets):
            for w in range(words.width):
                then = subset_after(words, m, subset, w)
                if then < 0:
                    continue
                a = m * n_subsets + subset
                b = (m + 1) * n_subsets + then
                if not forward:
                    a, b = b, a
                if number[a] > 0.0:
                    more = total[a] + values[m * words.width + w]
                    total[b], number[b] = joined(more, number[a], total[b], number[b], soft)


@loop
def matching_shares(words, n_regions, values, soft, share, numbers):
    """Write the share of best candidates that give region m word w; returns the best total. `soft`:
    probabilities, and log-sum-exp of all totals."""
    before = numbers[BEFORE]
    ways_before = numbers[WAYS_BEFORE]
    after = numbers[AFTER]
    ways_after = numbers[WAYS_AFTER]
    n_subsets = 1 << (words.width - 1)
    recursion(words, n_regions, values, True, soft, before, ways_before)
    recursion(words, n_regions, values, False, soft, after, ways_after)
    best = after[0]
    near = best - 1e-9 * (1.0 + abs(best))
    for m in range(n_regions):
        row = share[m * words.width : (m + 1) * words.width]
        row[:] = 0.0
        for subset in range(n_subsets):
            for w in range(words.width):
                then = subset_after(words, m, subset, w)
                if then < 0:
                    continue
                a = m * n_subsets + subset
                b = (m + 1) * n_subsets + then
                ways = ways_before[a] * ways_after[b]
                if ways == 0.0:
                    continue
                total = before[a] + values[m * words.width + w] + after[b]
                if soft:
                    row[w] += math.exp(total - best)
                elif total >= near:
                    row[w] += ways
        if not soft:
            number = 0.0
            for w in range(words.width):
                number += row[w]
            for w in range(words.width):
                row[w] /= number
    return best


@inner
def matching_best(words, n_regions, values, chosen, numbers):
    """Write the words (0: none) of the first candidate with the largest total; returns this total."""
    after = numbers[AFTER]
    ways = numbers[WAYS_AFTER]
    recursion(words, n_regions, values, False, False, after, ways)
    used = 0
    for m in range(n_regions):
        top = -np.inf
        gone = used
        chosen[m] = 0
        for w in range(words.width):
            then = subset_after(words, m, used, w)
            if then < 0:
                continue
            b = (m + 1 << (words.width - 1)) + then
            total = values[m * words.width + w] + after[b]
            if ways[b] > 0.0 and total > top:
                top = total
                chosen[m] = w
                gone = then
        used = gone
    return after[0]


@inlined
def matching_loss(bag, words, labels, scratch):
    P = bag.n_attributes
    n_slots = labels.shape[0]
    agree = scratch.numbers[OF_WORDS]
    for m in range(n_slots // P):
        for w in range(words.width):
            same = 0.0
            for p in range(P):
                same += labels[m * P + p] == word_column(bag, words, w, p)
            agree[m * words.width + w] = same
    chosen = scratch.integers[CHOSEN]
    return n_slots - int(matching_best(words, n_slots // P, agree, chosen, scratch.numbers))
