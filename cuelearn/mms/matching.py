"""Sets of labelings too large to list: all ways to hand at most one word to each region (thesis 5.6.1).

Best candidates, counts and posteriors come from recursions over the regions and the subsets of the words that
are used, in O(n_regions n_words 2^n_words) time and memory. ``packed`` is a `PackedCandidates`, i a bag.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = ["Matching"]


class Matching(NamedTuple):
    """All ways to give every region at most one word and every word to at most one region, all-null left out.

    Attributes
    ----------
    words : ndarray of int, shape (n_words, n_attributes)
        Labels that come with each word: a name, or a name and its verb; distinct rows, none all null.
    allowed : ndarray of bool, shape (n_regions, n_words + 1)
        Whether region m may take word w; column 0 says whether it may take none.
    """

    words: np.ndarray
    allowed: np.ndarray


# ------------------------------------------------------------------ one by one


def takes(bag, m, used, order):
    """What region m may take while the words of the bit set `used` are gone: (word, words gone then)."""
    for w in order:
        if bag.allowed[m, w] and not (w and used >> w & 1):
            yield w, used | (1 << w if w else 0)


def generate(bag, null):
    """Candidates in lexical order, words before null."""
    n_regions, width = bag.allowed.shape
    labels = np.vstack([null, bag.words])
    order = [*range(1, width), 0]

    def extend(chosen, used):
        if len(chosen) < n_regions:
            for w, then in takes(bag, len(chosen), used, order):
                yield from extend([*chosen, w], then)
        elif used:
            yield labels[chosen]

    yield from extend([], 0)


def counter(bag):
    """A function of a region and the words used before it: in how many ways one can go on, exactly."""
    n_regions, width = bag.allowed.shape

    @cache
    def count(m, used):
        if m == n_regions:
            return int(used != 0)
        return sum(count(m + 1, then) for _, then in takes(bag, m, used, range(width)))

    return count


def count_matching(bag):
    """Number of candidates; where all is allowed in closed form (the sum in section 5.6.1 lacks j!)."""
    if not np.all(bag.allowed):
        return counter(bag)(0, 0)
    n_regions, n_words = bag.allowed.shape[0], bag.allowed.shape[1] - 1
    sizes = range(1, min(n_regions, n_words) + 1)
    return sum(math.comb(n_regions, j) * math.comb(n_words, j) * math.factorial(j) for j in sizes)


def draw_matching(bag, rng):
    """Words of the regions in a candidate drawn uniformly."""
    count = counter(bag)
    chosen, used = [], 0
    for m in range(len(bag.allowed)):
        options = list(takes(bag, m, used, range(bag.allowed.shape[1])))
        ways = np.array([count(m + 1, then) for _, then in options], dtype=float)
        w, used = options[rng.choice(len(options), p=ways / ways.sum())]
        chosen.append(w)
    return np.array(chosen)


# ------------------------------------------------------------------ all at once


@njit(cache=True)
def word_values(packed, i, scores):
    """What each region scores without a word (column 0) and with each, from the scores of all labels."""
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
def word_of(packed, i, m, labels):
    """Word that the labels of region m spell: 0 for null, w + 1 for word w, -1 for none that it may take."""
    P, n_words = packed.n_attributes, packed.n_words[i]
    allowed = packed.allowed_start[i] + m * (n_words + 1)
    for w in range(n_words + 1):
        p = 0
        while p < P and labels[m * P + p] == word_column(packed, i, w, p):
            p += 1
        if p == P:
            return w if packed.allowed[allowed + w] else -1
    return -1


@njit(cache=True)
def word_column(packed, i, w, p):
    """Column of the label of attribute p that word w, from 1, gives; 0 is null."""
    return packed.null[p] if w == 0 else packed.labels[packed.start[i] + (w - 1) * packed.n_attributes + p]


@njit(cache=True)
def subset_after(packed, i, m, subset, w):
    """The subset of used words after region m takes word w (0 for none), -1 where it may not."""
    if not packed.allowed[packed.allowed_start[i] + m * (packed.n_words[i] + 1) + w]:
        return -1
    if w == 0:
        return subset
    return -1 if subset >> (w - 1) & 1 else subset | 1 << (w - 1)


@njit(cache=True)
def better_of(total, number, best, known):
    """The larger of two totals, and how many assignments reach it; within rounding both count."""
    near = 1e-12 * (1.0 + abs(total))
    if total > best + near:
        return total, number
    return best, known + number if total >= best - near else known


@njit(cache=True)
def best_to_come(packed, i, values):
    """Best total of the regions from m on where the words of a subset are used up, and how many reach it,
    both of shape (n_regions + 1, 2 ** n_words); `values` are of `word_values`' shape.
    """
    n_regions, width = values.shape
    shape = (n_regions + 1, 1 << (width - 1))
    total, number = np.full(shape, -np.inf), np.zeros(shape)
    total[n_regions, 1:] = 0.0  # not the empty subset: the all-null labeling is no candidate
    number[n_regions, 1:] = 1.0
    for step in range(n_regions):
        m = n_regions - 1 - step
        for subset in range(shape[1]):
            for w in range(width):
                then = subset_after(packed, i, m, subset, w)
                if then >= 0 and number[m + 1, then] > 0.0:
                    total[m, subset], number[m, subset] = better_of(
                        total[m + 1, then] + values[m, w], number[m + 1, then],
                        total[m, subset], number[m, subset],
                    )  # fmt: skip
    return total, number


@njit(cache=True)
def best_so_far(packed, i, values):
    """Best total of the regions before m that use exactly the words of a subset, and how many reach it."""
    n_regions, width = values.shape
    shape = (n_regions + 1, 1 << (width - 1))
    total, number = np.full(shape, -np.inf), np.zeros(shape)
    total[0, 0], number[0, 0] = 0.0, 1.0
    for m in range(n_regions):
        for subset in range(shape[1]):
            for w in range(width if number[m, subset] > 0.0 else 0):
                then = subset_after(packed, i, m, subset, w)
                if then >= 0:
                    total[m + 1, then], number[m + 1, then] = better_of(
                        total[m, subset] + values[m, w], number[m, subset],
                        total[m + 1, then], number[m + 1, then],
                    )  # fmt: skip
    return total, number


@njit(cache=True)
def matching_marginals(packed, i, values):
    """Total of the best candidates, and the share of them that give region m word w, shape of `values`."""
    n_regions, width = values.shape
    before, ways_before = best_so_far(packed, i, values)
    after, ways_after = best_to_come(packed, i, values)
    best = after[0, 0]
    near = 1e-9 * (1.0 + abs(best))
    share = np.zeros((n_regions, width))
    for m in range(n_regions):
        for subset in range(1 << (width - 1)):
            for w in range(width if ways_before[m, subset] > 0.0 else 0):
                then = subset_after(packed, i, m, subset, w)
                if then < 0 or ways_after[m + 1, then] == 0.0:
                    continue
                if before[m, subset] + values[m, w] + after[m + 1, then] >= best - near:
                    share[m, w] += ways_before[m, subset] * ways_after[m + 1, then]
        total = share[m].sum()
        for w in range(width):
            share[m, w] /= total
    return best, share


@njit(cache=True)
def matching_best(packed, i, values):
    """The largest total, and the words that the regions take in the first candidate with it (0 for none)."""
    n_regions, width = values.shape
    after, ways = best_to_come(packed, i, values)
    words = np.zeros(n_regions, np.int64)
    used = 0
    for m in range(n_regions):
        top, chosen, gone = -np.inf, 0, used
        for w in range(width):
            then = subset_after(packed, i, m, used, w)
            if then >= 0 and ways[m + 1, then] > 0.0 and values[m, w] + after[m + 1, then] > top:
                top, chosen, gone = values[m, w] + after[m + 1, then], w, then
        words[m], used = chosen, gone
    return after[0, 0], words


@njit(cache=True, nogil=True)
def log_add(a, b):
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + math.log1p(math.exp(b - a))


@njit(cache=True, nogil=True)
def matching_posterior(packed, i, values, posterior):
    """Add each label's posterior probability, shape (n_regions, n_columns), from log-likelihoods `values`;
    returns the logarithm of the sum over all candidates.
    """
    n_regions, width = values.shape
    shape = (n_regions + 1, 1 << (width - 1))
    before, after = np.full(shape, -np.inf), np.full(shape, -np.inf)
    before[0, 0] = 0.0
    after[n_regions, 1:] = 0.0
    for m in range(n_regions):
        for subset in range(shape[1]):
            for w in range(width if before[m, subset] > -np.inf else 0):
                then = subset_after(packed, i, m, subset, w)
                if then >= 0:
                    total = before[m, subset] + values[m, w]
                    before[m + 1, then] = log_add(before[m + 1, then], total)
    for step in range(n_regions):
        m = n_regions - 1 - step
        for subset in range(shape[1]):
            for w in range(width):
                then = subset_after(packed, i, m, subset, w)
                if then >= 0:
                    after[m, subset] = log_add(after[m, subset], after[m + 1, then] + values[m, w])
    for m in range(n_regions):
        for w in range(width):
            share = 0.0
            for subset in range(shape[1]):
                then = subset_after(packed, i, m, subset, w)
                if then >= 0:
                    share += math.exp(before[m, subset] + values[m, w] + after[m + 1, then] - after[0, 0])
            for p in range(packed.n_attributes):
                posterior[m, word_column(packed, i, w, p)] += share
    return after[0, 0]
