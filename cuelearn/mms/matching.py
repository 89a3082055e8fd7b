"""Candidate sets too large to list: at most one word per region (thesis 5.6.1).

Recursions over regions and subsets of used words take O(n_regions n_words 2^n_words) time and memory.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import njit

from cuelearn.core.compiled import allocating

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
    n_regions = bag.allowed.shape[0]
    n_words = bag.allowed.shape[1] - 1
    sizes = range(1, min(n_regions, n_words) + 1)
    return sum(math.comb(n_regions, j) * math.comb(n_words, j) * math.factorial(j) for j in sizes)


def draw_matching(bag, rng):
    """Words of a uniformly drawn candidate."""
    count = counter(bag)
    chosen = []
    used = 0
    for m in range(len(bag.allowed)):
        options = list(takes(bag, m, used, range(bag.allowed.shape[1])))
        ways = np.array([count(m + 1, then) for _, then in options], dtype=float)
        w, used = options[rng.choice(len(options), p=ways / ways.sum())]
        chosen.append(w)
    return chosen


@allocating
def word_column(packed, i, w, p):
    """Column of word w (from 1; 0 is null) in attribute p."""
    return (
        packed.matchings.null[p]
        if w == 0
        else packed.labels[packed.start[i] + (w - 1) * packed.n_attributes + p]
    )


@allocating
def word_values(packed, i, scores):
    """Score of each region without a word (column 0) and with each."""
    values = np.zeros((scores.shape[0], packed.matchings.n_words[i] + 1))
    for m in range(values.shape[0]):
        for w in range(values.shape[1]):
            for p in range(packed.n_attributes):
                values[m, w] += scores[m, word_column(packed, i, w, p)]
    return values


@allocating
def words_allowed(packed, i):
    shape = packed.row[i + 1] - packed.row[i], packed.matchings.n_words[i] + 1
    at = packed.matchings.allowed_start[i]
    return packed.matchings.allowed[at : at + shape[0] * shape[1]].reshape(shape)


@allocating
def word_of(packed, i, m, labels):
    """Word of region m's labels: 0 for null, w + 1 for word w, -1 if not allowed."""
    P = packed.n_attributes
    for w in range(packed.matchings.n_words[i] + 1):
        p = 0
        while p < P and labels[m * P + p] == word_column(packed, i, w, p):
            p += 1
        if p == P:
            return w if words_allowed(packed, i)[m, w] else -1
    return -1


@allocating
def spells_words(packed, i, labels):
    """Whether a labeling is a candidate of a bag with a `Matching`."""
    used = 0
    for m in range(labels.shape[0] // packed.n_attributes):
        w = word_of(packed, i, m, labels)
        if w < 0 or (w > 0 and used >> w & 1):
            return False
        used |= 1 << w if w > 0 else 0
    return used != 0


@allocating
def subset_after(allowed, m, subset, w):
    """Used words after region m takes word w (0: none), -1 if not allowed."""
    bit = 1 << w >> 1
    return -1 if not allowed[m, w] or subset & bit else subset | bit


@allocating
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


@allocating
def recursion(packed, i, values, forward, soft):
    """`joined` over regions before m that use exactly a subset of the words or, backward, over regions from m
    on after it: totals and numbers, (n_regions + 1, 2 ** n_words)."""
    allowed = words_allowed(packed, i)
    n_regions, width = values.shape
    shape = (n_regions + 1, 1 << (width - 1))
    total = np.full(shape, -np.inf)
    number = np.zeros(shape)
    if forward:
        total[0, 0] = 0.0
        number[0, 0] = 1.0
    else:
        total[n_regions, 1:] = 0.0  # all null is no candidate
        number[n_regions, 1:] = 1.0
    for step in range(n_regions):
        m = step if forward else n_regions - 1 - step
        for subset in range(shape[1]):
            for w in range(width):
                then = subset_after(allowed, m, subset, w)
                if then < 0:
                    continue
                a, u, b, v = (m, subset, m + 1, then) if forward else (m + 1, then, m, subset)
                if number[a, u] > 0.0:
                    more = total[a, u] + values[m, w]
                    known = total[b, v]
                    total[b, v], number[b, v] = joined(more, number[a, u], known, number[b, v], soft)
    return total, number


@njit(cache=True, no_cfunc_wrapper=True)
def matching_shares(packed, i, values, soft):
    """Best total, and the share of best candidates that give region m word w; `soft`: log-sum-exp of all, and
    probabilities."""
    allowed = words_allowed(packed, i)
    n_regions, width = values.shape
    before, ways_before = recursion(packed, i, values, True, soft)
    after, ways_after = recursion(packed, i, values, False, soft)
    best = after[0, 0]
    near = best - 1e-9 * (1.0 + abs(best))
    share = np.zeros((n_regions, width))
    for m in range(n_regions):
        for subset in range(1 << (width - 1)):
            for w in range(width):
                then = subset_after(allowed, m, subset, w)
                ways = ways_before[m, subset] * ways_after[m + 1, then] if then >= 0 else 0.0
                if ways == 0.0:
                    continue
                total = before[m, subset] + values[m, w] + after[m + 1, then]
                if soft:
                    share[m, w] += math.exp(total - best)
                elif total >= near:
                    share[m, w] += ways
        if not soft:
            number = 0.0
            for w in range(width):
                number += share[m, w]
            for w in range(width):
                share[m, w] /= number
    return best, share


@allocating
def matching_best(packed, i, values):
    """The largest total, and the words (0: none) of the first candidate with it."""
    allowed = words_allowed(packed, i)
    n_regions, width = values.shape
    after, ways = recursion(packed, i, values, False, False)
    words = np.zeros(n_regions, np.int64)
    used = 0
    for m in range(n_regions):
        top = -np.inf
        gone = used
        for w in range(width):
            then = subset_after(allowed, m, used, w)
            if then >= 0 and ways[m + 1, then] > 0.0 and values[m, w] + after[m + 1, then] > top:
                top = values[m, w] + after[m + 1, then]
                words[m] = w
                gone = then
        used = gone
    return after[0, 0], words


@allocating
def matching_loss(packed, i, labels):
    P = packed.n_attributes
    n_slots = labels.shape[0]
    agree = np.zeros((n_slots // P, packed.matchings.n_words[i] + 1))
    for m in range(agree.shape[0]):
        for w in range(agree.shape[1]):
            for p in range(P):
                agree[m, w] += labels[m * P + p] == word_column(packed, i, w, p)
    return n_slots - int(matching_best(packed, i, agree)[0])
