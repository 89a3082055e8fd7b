r"""Searches over labelings: the best candidates, and the most violating labeling (thesis Algorithm 10), with
the largest :math:`U(\bar Z) = \Delta_A(\bar Z, \mathcal Z) + S_w(\mathcal X, \bar Z)` outside them.

The algorithm replaces the joint loss by the number of labels outside the :math:`\mathcal Z(m)`, which is
never larger, so its U may be below the largest. In each slot only the best outside label can be part of an
answer.
"""

import numpy as np

from cuelearn.core.compiled import inlined, inner, loop
from cuelearn.expect import expect, expect_list, expect_word
from cuelearn.mms.candidates import ambiguous_loss, bag_of, check_candidates, contains, words_of
from cuelearn.mms.matching import (
    CHOSEN,
    COST,
    FIRST,
    HEAP,
    LABEL,
    OF_WORDS,
    PARENT,
    PLACE,
    RAISED,
    SHARE,
    TOTAL,
    TRIAL,
    VALUE,
    Scratch,
    matching_best,
    matching_shares,
    word_column,
    word_of,
    word_values,
)
from cuelearn.mms.relaxation import TIE, branch_and_bound, option_places, relaxed, rest_bounds, slot_lists

__all__ = ["best_labelings", "most_violating"]

#: The exact search of a bag ends without proof after this many partial labelings.
MOST_NODES = 1_000_000
#: Searches, by the most partial labelings of branch and bound: negative without the relaxation.
METHODS = {"algorithm-10": -1, "lp": 0, "exact": MOST_NODES}


@inner
def listed_values(bag, scores, as_log, values):
    """Write scores of listed candidates times priors over the largest (remark 5.1); `as_log`: log-likelihoods
    plus log-priors. Returns the first of the best."""
    P = bag.n_attributes
    first = at = 0
    for c in range(bag.weight.shape[0]):
        total = np.log(bag.weight[c]) if as_log else 0.0
        for s in range(scores.shape[0] * P):
            total += scores[s // P, bag.labels[at]]
            at += 1
        values[c] = total if as_log else bag.weight[c] * total
        if values[c] > values[first]:
            first = c
    return first


@inner
def best_candidate(bag, words, scores, as_log, labels, scratch):
    """Write a bag's first best candidate; returns its score, prior included."""
    values = scratch.numbers[OF_WORDS]
    if words is not None and words.width > 1:
        chosen = scratch.integers[CHOSEN]
        word_values(bag, words, scores, values)
        best = matching_best(words, scores.shape[0], values, chosen, scratch.numbers)
        for s in range(labels.shape[0]):
            labels[s] = word_column(bag, words, chosen[s // bag.n_attributes], s % bag.n_attributes)
        return best
    first = listed_values(bag, scores, as_log, values)
    for s in range(labels.shape[0]):
        labels[s] = bag.labels[first * labels.shape[0] + s]
    return values[first]


@inner
def mean_candidate(bag, words, scores, soft, target, slack, scratch):
    """Write the mean label indicators of all best candidates (section 5.4.4), each times its prior, into
    `target`; returns the best score. `soft`: weight candidates by their posteriors of log-likelihoods;
    returns log sum_Z w(Z) p(X | Z), w the priors."""
    P = bag.n_attributes
    for m in range(target.shape[0]):
        for k in range(target.shape[1]):
            target[m, k] = 0.0
    values = scratch.numbers[OF_WORDS]
    if words is not None and words.width > 1:
        share = scratch.numbers[SHARE]
        word_values(bag, words, scores, values)
        best = matching_shares(words, scores.shape[0], values, soft, share, scratch.numbers)
        for m in range(scores.shape[0]):
            for w in range(words.width):
                for p in range(P):
                    target[m, word_column(bag, words, w, p)] += share[m * words.width + w]
        return best
    best = values[listed_values(bag, scores, soft, values)]
    number = 0.0
    near = best - 1e-9 * (1.0 + abs(best)) - slack
    for c in range(bag.weight.shape[0]):
        values[c] = np.exp(values[c] - best) if soft else 1.0 * (values[c] >= near)
        number += values[c]
    at = 0
    for c in range(bag.weight.shape[0]):
        part = values[c] / number if soft else values[c] * bag.weight[c] / number
        for s in range(scores.shape[0] * P):
            target[s // P, bag.labels[at]] += part
            at += 1
    return best + np.log(number) if soft else best


@inner
def comes_before(cost, a, b):
    return cost[a] < cost[b] - TIE or (cost[a] <= cost[b] + TIE and a < b)


@inner
def push(heap, n, cost, node):
    at = n
    while at > 0 and comes_before(cost, node, heap[(at - 1) // 2]):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = node


@inner
def pop(heap, n, cost):
    first = heap[0]
    last = heap[n - 1]
    at = 0
    child = 1
    while child < n - 1:
        if child + 1 < n - 1 and comes_before(cost, heap[child + 1], heap[child]):
            child += 1
        if comes_before(cost, last, heap[child]):
            break
        heap[at] = heap[child]
        at = child
        child = 2 * child + 1
    heap[at] = last
    return first


@inlined
def heap_search(bag, words, labels, scratch):
    """Algorithm 10: labelings in descending sum of values until one is no candidate; returns whether there
    is one. Each has one parent, whose last raised place is one lower."""
    n_slots = labels.shape[0]
    first = scratch.integers[FIRST]
    label = scratch.integers[LABEL]
    place = scratch.integers[PLACE]
    parent = scratch.integers[PARENT]
    raised = scratch.integers[RAISED]
    heap = scratch.integers[HEAP]
    value = scratch.numbers[VALUE]
    cost = scratch.numbers[COST]
    cost[0] = parent[0] = raised[0] = heap[0] = 0
    for s in range(n_slots):
        cost[0] -= value[first[s]]
    n_open = n_nodes = 1
    while n_open > 0:
        node = pop(heap, n_open, cost)
        n_open -= 1
        for s in range(n_slots):
            place[s] = first[s]
        above = node
        while above > 0:
            place[raised[above]] += 1
            above = parent[above]
        for s in range(n_slots):
            labels[s] = label[place[s]]
        if not contains(bag, words, labels):
            return True
        for s in range(raised[node], n_slots):
            if place[s] + 1 == first[s + 1]:
                continue
            cost[n_nodes] = cost[node] + value[place[s]] - value[place[s] + 1]
            parent[n_nodes] = node
            raised[n_nodes] = s
            push(heap, n_open, cost, n_nodes)
            n_open += 1
            n_nodes += 1
    return False


@inner
def copy_into(labels, others):
    for s in range(labels.shape[0]):
        labels[s] = others[s]


@inlined
def matching_search(bag, words, scores, labels, scratch):
    """Algorithm 10's answer for a matching: the best labeling that is all null, has a region without allowed
    word, or repeats a word."""
    P = bag.n_attributes
    n_regions = scores.shape[0]
    first = scratch.integers[FIRST]
    label = scratch.integers[LABEL]
    value = scratch.numbers[VALUE]
    for s in range(labels.shape[0]):
        labels[s] = label[first[s]]
    if not contains(bag, words, labels):
        return
    trial = scratch.integers[TRIAL, : labels.shape[0]]
    own = scratch.numbers[TOTAL]  # each region's best value
    copy_into(trial, labels)
    start = 0.0
    for m in range(n_regions):
        own[m] = 0.0
        for s in range(m * P, (m + 1) * P):
            start += value[first[s]]
            own[m] += value[first[s]]
    best = 0.0  # all null
    for s in range(n_regions * P):
        labels[s] = words.null[s % P]
        lost = 1.0
        for at in range(bag.slot[s], bag.slot[s + 1]):
            if bag.slot_labels[at] == labels[s]:
                lost = 0.0
        best += scores[s // P, labels[s]] + lost
    for m in range(n_regions):  # one region without a word: all of its label combinations
        number = 1
        for s in range(m * P, (m + 1) * P):
            number *= first[s + 1] - first[s]
        for combination in range(number):
            total = start - own[m]
            for s in range(m * P, (m + 1) * P):
                at = first[s] + combination % (first[s + 1] - first[s])
                combination //= first[s + 1] - first[s]
                trial[s] = label[at]
                total += value[at]
            if total > best + TIE and word_of(bag, words, m, trial) < 0:
                best = total
                copy_into(labels, trial)
        for s in range(m * P, (m + 1) * P):
            trial[s] = label[first[s]]
    of_words = scratch.numbers[OF_WORDS]
    word_values(bag, words, scores, of_words)
    for w in range(1, words.width):  # the two regions that lose least by sharing a word
        low1 = np.inf
        low2 = np.inf
        m1 = -1
        m2 = -1
        for m in range(n_regions):
            if not words.allowed[m * words.width + w]:
                continue
            lost = own[m] - of_words[m * words.width + w]
            if lost < low1:
                low1, low2, m1, m2 = lost, low1, m, m1
            elif lost < low2:
                low2 = lost
                m2 = m
        if m2 >= 0 and start - low1 - low2 > best + TIE:
            best = start - low1 - low2
            copy_into(labels, trial)
            for p in range(P):
                labels[m1 * P + p] = labels[m2 * P + p] = word_column(bag, words, w, p)


@inner
def first_answer(bag, words, scores, labels, scratch):
    """Write Algorithm 10's answer; returns its U by the joint loss (-inf if every labeling is a candidate),
    and that loss."""
    if words is not None and words.width > 1:
        matching_search(bag, words, scores, labels, scratch)
    elif not heap_search(bag, words, labels, scratch):
        return -np.inf, 0
    total = 0.0
    for s in range(labels.shape[0]):
        total += scores[s // bag.n_attributes, labels[s]]
    loss = ambiguous_loss(bag, words, labels, scratch)
    return total + loss, loss


@inlined
def find(bag, words, scores, labels, most_nodes, scratch):
    """Write the most violating labeling by a search of `METHODS`; returns its U by the joint loss (-inf if
    every labeling is a candidate), that loss, and a bound on U: U itself, that of the relaxation, or infinity
    without it."""
    slot_lists(bag, scores, 1.0, scratch)
    value, loss = first_answer(bag, words, scores, labels, scratch)
    bound = value
    if value != -np.inf and labels.shape[0] > 1:  # else the sum of losses is the joint loss
        bound = np.inf
        if most_nodes >= 0:
            slot_lists(bag, scores, 0.0, scratch)
            n_options = option_places(bag, words, labels.shape[0], scratch)
            bound = rest_bounds(bag, words, labels.shape[0], n_options, scratch)
            answer = most_nodes == 0
            value, loss, bound = relaxed(bag, words, n_options, answer, labels, value, loss, bound, scratch)
            if most_nodes > 0 and bound > value:
                value, loss, bound = branch_and_bound(
                    bag, words, n_options, scores, labels, most_nodes, value, loss, bound, scratch
                )
    return value, loss, bound


@loop
def find_one(bag, words, scores, labels, most_nodes, scratch):
    return find(bag, words, scores, labels, most_nodes, scratch)


@loop
def best_candidates(packed, scores, as_log, labels, best, scratch):
    """`best_candidate` of every bag; writes their scores into `best`."""
    P = packed.n_attributes
    for i in range(best.shape[0]):
        low = packed.row[i]
        high = packed.row[i + 1]
        own = labels[low * P : high * P]
        words = words_of(packed.matchings, i)
        best[i] = best_candidate(bag_of(packed, i), words, scores[low:high], as_log, own, scratch)


@loop
def mean_candidates(packed, first, last, scores, soft, target, slack, best, scratch):
    """`mean_candidate` of bags `first` to ``last - 1``, with the rows of `scores`."""
    for i in range(first, last):
        low = packed.row[i] - packed.row[first]
        high = packed.row[i + 1] - packed.row[first]
        words = words_of(packed.matchings, i)
        own = target[low:high]
        best[i - first] = mean_candidate(
            bag_of(packed, i), words, scores[low:high], soft, own, slack, scratch
        )


@inner
def reached(target, scores):
    """Score of the mean best candidate."""
    total = 0.0
    for m in range(target.shape[0]):
        for k in range(target.shape[1]):
            if target[m, k] != 0.0:
                total += target[m, k] * scores[m, k]
    return total


def side_by_side(scores, candidates, n_rows):
    """Scores of all attributes as one float64 matrix."""
    if candidates.n_attributes == 1 and np.ndim(scores) != 3:
        scores = [scores]
    parts = expect_list("scores", scores, "matrices, one per attribute", candidates.n_attributes)
    sizes = enumerate(candidates.n_labels)
    parts = [expect(f"scores[{p}]", parts[p], shape=(n_rows, size)) for p, size in sizes]
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def most_violating(scores, candidates, bag=0, method="algorithm-10", *, return_bound=False):
    r"""The labeling outside a bag's candidates that violates the margin most.

    .. math:: \hat Z = \arg\max_{\bar Z \notin \mathcal Z} \Delta_A(\bar Z, \mathcal Z)
        + \sum_m s(x_m, \bar z_m)

    Parameters
    ----------
    scores : array-like, shape (n_instances of the bag, n_labels), or a list of one such matrix per attribute
    candidates : CandidateSet
    bag : int, default 0
    method : {"algorithm-10", "lp", "exact"}
        Algorithm 10 ranks labelings by the sum of their slots' losses. "lp" continues with the labelings that
        answer the prices of a linear relaxation (thesis 7.2.2), "exact" with branch and bound on it.
    return_bound : bool, default False

    Returns
    -------
    labeling : ndarray of int, shape (n_instances, n_attributes)
    value : float
    bound : float, if `return_bound`
        No labeling outside has a larger value; `value` where it is proven the largest. Infinite for Algorithm
        10 with bags of several labels.

    Raises
    ------
    ValueError
        If every labeling is a candidate.

    Notes
    -----
    Thesis Algorithm 10, corrected so that the sums include the losses and no index vector is pushed twice,
    takes at most O(L M log(L M)); for a `Matching` O(M (K + W)), and O(M W 2^W) for its joint loss. Each of
    at most ten steps of the relaxation takes O(L M), a partial labeling of the exact search O(L); for a
    `Matching` O(M W 2^W) and O(W 2^W). The exact search is exponential in M at worst, and ends without proof
    after a million partial labelings.

    Examples
    --------
    The thesis's example: two instances, candidates [1, 2] and [2, 1]; labels are counted from 0 here.

    >>> from cuelearn.mms import CandidateSet, most_violating
    >>> pair = CandidateSet([[[0, 1], [1, 0]]], n_labels=3)
    >>> scores = [[3, 2, 1], [1, 1, 0.99]]
    >>> for method in ("algorithm-10", "lp", "exact"):
    ...     labeling, value, bound = most_violating(scores, pair, method=method, return_bound=True)
    ...     print(labeling.ravel() + 1, value, round(bound, 3))
    [1 3] 4.99 inf
    [1 1] 5.0 5.0
    [1 1] 5.0 5.0
    """
    check_candidates(candidates)
    expect_word("method", method, METHODS)
    i = candidates.check_bag(bag)
    packed = candidates.packed
    scores = side_by_side(scores, candidates, int(candidates.bag_sizes[i]))
    labels = np.empty(scores.shape[0] * candidates.n_attributes, np.int32)
    bag, words = bag_of(packed, i), words_of(packed.matchings, i)
    value, _, bound = find_one(bag, words, scores, labels, METHODS[method], Scratch.of(packed))
    if value == -np.inf:
        raise ValueError(f"every labeling of bag {i} is a candidate; none outside can be found")
    labeling = labels.reshape(-1, candidates.n_attributes).astype(np.int64) - packed.column[:-1]
    if return_bound:
        return (labeling, float(value), float(bound))
    return (labeling, float(value))


def best_labelings(scores, candidates):
    r"""Best candidate of every bag: the prediction with a caption, :math:`\arg\max_{Z \in \mathcal Z}
    S_w(\mathcal X, Z)`.

    `scores` have shape (n_instances, n_labels), or are a list of one such matrix per attribute. Returns label
    numbers, int of shape (n_instances, n_attributes); the first of several best.

    Examples
    --------
    >>> from cuelearn.mms import CandidateSet, best_labelings
    >>> pair = CandidateSet([[[0, 1], [1, 0]]], n_labels=2)
    >>> best_labelings([[3, 2], [5, 1]], pair).ravel()  # 2 + 5 is more than 3 + 1
    array([1, 0])
    """
    check_candidates(candidates)
    scores = side_by_side(scores, candidates, candidates.n_instances)
    labels = np.empty((candidates.n_instances, candidates.n_attributes), np.int32)
    best = np.empty(candidates.n_bags)
    scratch = Scratch.of(candidates.packed)
    best_candidates(candidates.packed, scores, False, labels.reshape(-1), best, scratch)
    return labels.astype(np.int64) - candidates.packed.column[:-1]
