r"""Searches over labelings: the best candidates, and the most violating labeling (thesis Algorithm 10), with
the largest :math:`U(\bar Z) = \Delta_A(\bar Z, \mathcal Z) + S_w(\mathcal X, \bar Z)` outside them.

The algorithm replaces the joint loss by the number of labels outside the :math:`\mathcal Z(m)`, which is
never larger, so its U may be below the largest. In each slot only the best outside label can be part of an
answer.
"""

import numpy as np
from numba import njit

from cuelearn.core.compiled import allocating, inner, loop
from cuelearn.mms.candidates import ambiguous_loss, check_candidates, contains
from cuelearn.mms.matching import (
    matching_best,
    matching_shares,
    word_column,
    word_of,
    word_values,
    words_allowed,
)
from cuelearn.mms.relaxation import TIE, branch_and_bound, slot_lists

__all__ = ["best_labelings", "most_violating"]

#: The exact search of a bag ends without proof after this many partial labelings.
MOST_NODES = 1_000_000
#: Searches, by the most partial labelings of branch and bound: negative without the relaxation.
METHODS = {"algorithm-10": -1, "lp": 0, "exact": MOST_NODES}


@allocating
def listed_values(packed, i, scores, as_log):
    """Scores of listed candidates times priors over the largest (remark 5.1); `as_log`: log-likelihoods plus
    log-priors."""
    P = packed.n_attributes
    values = np.empty(packed.count[i])
    at = packed.start[i]
    for c in range(values.shape[0]):
        weight = packed.weight[packed.listed_start[i] + c]
        total = np.log(weight) if as_log else 0.0
        for s in range(scores.shape[0] * P):
            total += scores[s // P, packed.labels[at]]
            at += 1
        values[c] = total if as_log else weight * total
    return values


@inner
def largest(values):
    first = 0
    for c in range(1, values.shape[0]):
        if values[c] > values[first]:
            first = c
    return first


@allocating
def best_candidate(packed, matchings, i, scores, as_log, labels):
    """Write the first best candidate of bag i; returns its score, prior included."""
    if matchings is not None and matchings.n_words[i] > 0:
        best, words = matching_best(packed, i, word_values(packed, i, scores))
        for s in range(labels.shape[0]):
            labels[s] = word_column(packed, i, words[s // packed.n_attributes], s % packed.n_attributes)
        return best
    values = listed_values(packed, i, scores, as_log)
    first = largest(values)
    at = packed.start[i] + first * labels.shape[0]
    for s in range(labels.shape[0]):
        labels[s] = packed.labels[at + s]
    return values[first]


@allocating
def mean_candidate(packed, matchings, i, scores, soft, target, slack):
    """Write the mean label indicators of all best candidates (section 5.4.4), each times its prior, into
    `target`; returns the best score. `soft`: weight candidates by their posteriors of log-likelihoods;
    returns log sum_Z w(Z) p(X | Z), w the priors."""
    P = packed.n_attributes
    for m in range(target.shape[0]):
        for k in range(target.shape[1]):
            target[m, k] = 0.0
    if matchings is not None and matchings.n_words[i] > 0:
        best, share = matching_shares(packed, i, word_values(packed, i, scores), soft)
        for m in range(scores.shape[0]):
            for w in range(share.shape[1]):
                for p in range(P):
                    target[m, word_column(packed, i, w, p)] += share[m, w]
        return best
    values = listed_values(packed, i, scores, soft)
    best = values[largest(values)]
    number = 0.0
    near = best - 1e-9 * (1.0 + abs(best)) - slack
    for c in range(values.shape[0]):
        values[c] = np.exp(values[c] - best) if soft else 1.0 * (values[c] >= near)
        number += values[c]
    at = packed.start[i]
    for c in range(values.shape[0]):
        part = values[c] / number if soft else values[c] * packed.weight[packed.listed_start[i] + c] / number
        for s in range(scores.shape[0] * P):
            target[s // P, packed.labels[at]] += part
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


@allocating
def heap_search(packed, i, first, label, value, labels):
    """Algorithm 10: labelings in descending sum of `value` until one is no candidate; returns whether there
    is one. Each has one parent, whose last raised place is one lower."""
    n_slots = first.shape[0] - 1
    room = 1 + packed.count[i] * n_slots
    cost = np.empty(room)
    parent = np.empty(room, np.int32)
    raised = np.empty(room, np.int32)
    heap = np.empty(room, np.int32)
    place = np.empty(n_slots, np.int64)
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
        if not contains(packed, packed.matchings, i, labels):
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


@allocating
def matching_search(packed, i, scores, first, label, value, labels):
    """Algorithm 10's answer for a matching: the best labeling that is all null, has a region without allowed
    word, or repeats a word."""
    P = packed.n_attributes
    n_regions = scores.shape[0]
    for s in range(labels.shape[0]):
        labels[s] = label[first[s]]
    if not contains(packed, packed.matchings, i, labels):
        return
    top = np.empty(labels.shape[0], np.int32)
    trial = np.empty(labels.shape[0], np.int32)
    copy_into(top, labels)
    copy_into(trial, labels)
    start, own = 0.0, np.zeros(n_regions)  # each region's best value
    for s in range(n_regions * P):
        start += value[first[s]]
        own[s // P] += value[first[s]]
    best = 0.0  # all null
    for s in range(n_regions * P):
        slot = packed.row[i] * P + s
        labels[s] = packed.matchings.null[s % P]
        lost = 1.0
        for at in range(packed.slot[slot], packed.slot[slot + 1]):
            if packed.slot_labels[at] == labels[s]:
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
            if total > best + TIE and word_of(packed, i, m, trial) < 0:
                best = total
                copy_into(labels, trial)
        for s in range(m * P, (m + 1) * P):
            trial[s] = top[s]
    words = word_values(packed, i, scores)
    allowed = words_allowed(packed, i)
    for w in range(1, words.shape[1]):  # the two regions that lose least by sharing a word
        low1 = np.inf
        low2 = np.inf
        m1 = -1
        m2 = -1
        for m in range(n_regions):
            if not allowed[m, w]:
                continue
            lost = own[m] - words[m, w]
            if lost < low1:
                low1, low2, m1, m2 = lost, low1, m, m1
            elif lost < low2:
                low2 = lost
                m2 = m
        if m2 >= 0 and start - low1 - low2 > best + TIE:
            best = start - low1 - low2
            copy_into(labels, top)
            for p in range(P):
                labels[m1 * P + p] = labels[m2 * P + p] = word_column(packed, i, w, p)


@njit(cache=True, _nrt=True, no_cfunc_wrapper=True)
def find(packed, matchings, i, scores, labels, most_nodes):
    """Write the most violating labeling by a search of `METHODS`; returns its U by the joint loss (-inf if
    every labeling is a candidate), that loss, and a bound on U."""
    first, label, value = slot_lists(packed, i, scores, 1.0)
    if matchings is not None and matchings.n_words[i] > 0:
        matching_search(packed, i, scores, first, label, value, labels)
    elif not heap_search(packed, i, first, label, value, labels):
        return -np.inf, 0, -np.inf
    total = 0.0
    for s in range(labels.shape[0]):
        total += scores[s // packed.n_attributes, labels[s]]
    loss = ambiguous_loss(packed, matchings, i, labels)
    total += loss
    if total == -np.inf or labels.shape[0] == 1:  # the sum of losses is the joint loss
        return total, loss, total
    if most_nodes < 0:
        return total, loss, np.inf
    return branch_and_bound(packed, matchings, i, scores, labels, most_nodes, total, loss)


@njit(cache=True, no_cfunc_wrapper=True, nogil=True)
def best_candidates(packed, scores, as_log, labels):
    """`best_candidate` of every bag; returns their scores, shape (n_bags,)."""
    P = packed.n_attributes
    best = np.empty(packed.count.shape[0])
    for i in range(best.shape[0]):
        low = packed.row[i]
        high = packed.row[i + 1]
        best[i] = best_candidate(
            packed, packed.matchings, i, scores[low:high], as_log, labels[low * P : high * P]
        )
    return best


@njit(cache=True, no_cfunc_wrapper=True, nogil=True)
def mean_candidates(packed, first, last, scores, soft, target, slack=0.0):
    """`mean_candidate` of bags `first` to ``last - 1``, with the rows of `scores`."""
    best = np.empty(last - first)
    for i in range(first, last):
        low = packed.row[i] - packed.row[first]
        high = packed.row[i + 1] - packed.row[first]
        best[i - first] = mean_candidate(
            packed, packed.matchings, i, scores[low:high], soft, target[low:high], slack
        )
    return best


@inner
def reached(target, scores):
    """Score of the mean best candidate."""
    total = 0.0
    for m in range(target.shape[0]):
        for k in range(target.shape[1]):
            if target[m, k] != 0.0:
                total += target[m, k] * scores[m, k]
    return total


@loop
def losses_of_bags(packed, first, last, scores, target, most_nodes, labels, losses):
    """Write rows of `losses`: relaxed losses (5.5), by the score of `target`, ambiguous surrogate losses
    (5.2), and whether these are unproven, of bags `first` to ``last - 1``; `labels` has room for a bag's."""
    for i in range(first, last):
        low = packed.row[i] - packed.row[first]
        high = packed.row[i + 1] - packed.row[first]
        part = scores[low:high]
        own = labels[: (high - low) * packed.n_attributes]
        value, _, bound = find(packed, packed.matchings, i, part, own, most_nodes)
        best = best_candidate(packed, packed.matchings, i, part, False, own)
        aim = reached(target[low:high], part)
        losses[0, i - first] = value - aim
        losses[1, i - first] = value - best
        for row in range(2):
            if losses[row, i - first] < 0.0:
                losses[row, i - first] = 0.0
        losses[2, i - first] = bound > max(value, min(aim, best)) + TIE * (1.0 + abs(value))


def side_by_side(scores, candidates, n_rows):
    """Scores of all attributes as one float64 matrix."""
    wanted = [(n_rows, size) for size in candidates.n_labels]
    alone = len(wanted) == 1 and np.ndim(scores) != 3
    parts = [np.asarray(part, dtype=np.float64) for part in ([scores] if alone else scores)]
    shapes = [part.shape for part in parts]
    if shapes != wanted:
        raise ValueError(f"scores must have one matrix per attribute, of shapes {wanted}, got {shapes}")
    whole = np.ascontiguousarray(np.concatenate(parts, axis=1))
    if not np.isfinite(whole).all():
        raise ValueError("scores must be finite, got NaN or infinite values")
    return whole


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
    if method not in METHODS:
        raise ValueError(f"method must be one of {tuple(METHODS)}, got {method!r}")
    i = candidates.check_bag(bag)
    packed = candidates.packed
    scores = side_by_side(scores, candidates, int(candidates.bag_sizes[i]))
    labels = np.empty(scores.shape[0] * candidates.n_attributes, np.int32)
    value, _, bound = find(packed, packed.matchings, i, scores, labels, METHODS[method])
    if value == -np.inf:
        raise ValueError(f"every labeling of bag {i} is a candidate; none outside can be found")
    labeling = labels.reshape(-1, candidates.n_attributes).astype(np.int64) - packed.column[:-1]
    return (labeling, float(value), float(bound)) if return_bound else (labeling, float(value))


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
    best_candidates(candidates.packed, scores, False, labels.reshape(-1))
    return labels.astype(np.int64) - candidates.packed.column[:-1]
