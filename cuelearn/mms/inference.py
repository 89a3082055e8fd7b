r"""Searches over labelings: the best candidate, and the labeling outside the candidates that violates the margin most.

Both work on one bag's scores of all labels. The second is the dear step of training (thesis 5.6.2):

.. math:: \hat Z = \arg\max_{\bar Z \notin \mathcal Z} U(\bar Z), \qquad U(\bar Z) = \Delta_A(\bar Z, \mathcal Z) + S_w(\mathcal X, \bar Z).

Algorithm 10 replaces the joint loss by the sum of the slots' losses, :math:`\sum_m 1(\bar z_m \notin \mathcal Z(m))`, which is never
larger, and so finds a labeling whose U may fall short of the largest. Labels outside :math:`\mathcal Z(m)` all lose the same there, so of
these only the best can be part of an answer: each slot has at most ``len(Z(m)) + 1`` labels to go through, however many classes there are.
"""

import numpy as np
from numba import njit

from cuelearn.mms.candidates import (
    CandidateSet,
    ambiguous_loss,
    contains,
    matching_best,
    matching_marginals,
    word_of,
    word_values,
)

__all__ = ["assign", "best_labelings", "most_violating"]

METHODS = ("heap", "exact")
#: The exact search gives up after that many partial labelings.
MOST_NODES = 50_000_000


@njit(cache=True)
def total_score(packed, i, c, scores):
    """Score of listed candidate c of bag i, without its prior."""
    n_slots = scores.shape[0] * packed.n_attributes
    at = packed.start[i] + c * n_slots
    total = 0.0
    for s in range(n_slots):
        total += scores[s // packed.n_attributes, packed.labels[at + s]]
    return total


@njit(cache=True)
def write_words(packed, i, words, labels):
    """Write the labels of a matching's regions, which take these words (0 for none), as columns."""
    P = packed.n_attributes
    for m in range(words.shape[0]):
        for p in range(P):
            labels[m * P + p] = (
                packed.null[p] if words[m] == 0 else packed.labels[packed.start[i] + (words[m] - 1) * P + p]
            )


@njit(cache=True)
def write_listed(packed, i, c, labels):
    """Write listed candidate c of bag i, as columns."""
    at = packed.start[i] + c * labels.shape[0]
    for s in range(labels.shape[0]):
        labels[s] = packed.labels[at + s]


@njit(cache=True)
def best_candidate(packed, i, scores, labels):
    """Write the first best candidate of bag i, as columns, into `labels`; returns its score with its prior."""
    if packed.n_words[i] > 0:
        best, words = matching_best(packed, i, word_values(packed, i, scores))
        write_words(packed, i, words, labels)
        return best
    best, first = -np.inf, 0
    for c in range(packed.count[i]):
        total = packed.weight[packed.listed_start[i] + c] * total_score(packed, i, c, scores)
        if total > best:
            best, first = total, c
    write_listed(packed, i, first, labels)
    return best


@njit(cache=True)
def best_average(packed, i, scores, target):
    """Write the mean label indicators of all best candidates of bag i (the subgradient of section 5.4.4) into `target`.

    Parameters
    ----------
    scores, target : ndarrays, shape (n_regions, n_columns)

    Returns
    -------
    float
        Score of a best candidate, priors included.

    Notes
    -----
    Candidates within 1e-9 (relative) of the best count as best; with all scores zero these are all of them. With priors an indicator
    is multiplied by its candidate's prior over the largest.
    """
    P = packed.n_attributes
    for m in range(target.shape[0]):
        for k in range(target.shape[1]):
            target[m, k] = 0.0
    n_regions = scores.shape[0]
    if packed.n_words[i] > 0:
        best, _, share = matching_marginals(packed, i, word_values(packed, i, scores))
        for m in range(n_regions):
            for p in range(P):
                target[m, packed.null[p]] += share[m, 0]
                for w in range(packed.n_words[i]):
                    target[m, packed.labels[packed.start[i] + w * P + p]] += share[m, w + 1]
        return best
    totals = np.empty(packed.count[i])
    best = -np.inf
    for c in range(packed.count[i]):
        totals[c] = packed.weight[packed.listed_start[i] + c] * total_score(packed, i, c, scores)
        best = max(best, totals[c])
    near = best - 1e-9 * (1.0 + abs(best))
    number = 0
    for c in range(packed.count[i]):
        number += totals[c] >= near
    n_slots = n_regions * P
    for c in range(packed.count[i]):
        if totals[c] >= near:
            part = packed.weight[packed.listed_start[i] + c] / number
            at = packed.start[i] + c * n_slots
            for s in range(n_slots):
                target[s // P, packed.labels[at + s]] += part
    return best


@njit(cache=True)
def insert(label, value, begin, n, k, v):
    """Put label k with value v where it belongs in a descending list that runs from `begin` to n - 1; returns n + 1."""
    j = n
    while j > begin and value[j - 1] < v:
        value[j], label[j] = value[j - 1], label[j - 1]
        j -= 1
    value[j], label[j] = v, k
    return n + 1


@njit(cache=True)
def slot_lists(packed, i, scores, inside_loss):
    """For every slot the labels that an answer can hold, best first: Z(m) and the best label outside it, which gains `inside_loss`.

    Returns
    -------
    first : ndarray of int64, shape (n_slots + 1,)
    label : ndarray of int32
    value : ndarray of float64
        Score plus loss.
    """
    P = packed.n_attributes
    n_slots = scores.shape[0] * P
    row = packed.row[i] * P
    first = np.zeros(n_slots + 1, np.int64)
    size = packed.slot[row + n_slots] - packed.slot[row] + n_slots
    label, value = np.empty(size, np.int32), np.empty(size)
    n = 0
    for s in range(n_slots):
        m, p = s // P, s % P
        low, high = packed.slot[row + s], packed.slot[row + s + 1]
        begin = n
        at = low
        outside, top = -1, -np.inf
        for k in range(packed.column[p], packed.column[p + 1]):
            if at < high and packed.slot_labels[at] == k:
                at += 1
                n = insert(label, value, begin, n, k, scores[m, k])
            elif scores[m, k] > top:
                outside, top = k, scores[m, k]
        if outside >= 0:
            n = insert(label, value, begin, n, outside, top + inside_loss)
        first[s + 1] = n
    return first, label, value


@njit(cache=True)
def heap_search(packed, i, first, label, value, labels):
    """Algorithm 10: go through labelings in descending sum of `value` until one is no candidate.

    Every index vector is reached from one parent only, the one with its last positive entry lowered, so that none is pushed twice and
    no visited ones need to be remembered.

    Returns
    -------
    float
        The sum of `value`; -inf where every labeling is a candidate.
    """
    n_slots = first.shape[0] - 1
    start = 0.0
    for s in range(n_slots):
        start += value[first[s]]
        labels[s] = label[first[s]]
    if not contains(packed, i, labels):
        return start
    room = 64
    index = np.zeros((room, n_slots), np.int32)
    total = np.empty(room)
    heap = np.empty(room, np.int64)
    total[0], heap[0] = start, 0
    n_nodes, n_heap = 1, 1
    while n_heap > 0:
        node = heap[0]
        n_heap -= 1
        last = heap[n_heap]
        j = 0
        while True:  # sift down
            child = 2 * j + 1
            if child >= n_heap:
                break
            if child + 1 < n_heap and total[heap[child + 1]] > total[heap[child]]:
                child += 1
            if total[heap[child]] <= total[last]:
                break
            heap[j] = heap[child]
            j = child
        if n_heap > 0:
            heap[j] = last
        for s in range(n_slots):
            labels[s] = label[first[s] + index[node, s]]
        if not contains(packed, i, labels):
            return total[node]
        lowest = n_slots - 1
        while lowest > 0 and index[node, lowest] == 0:
            lowest -= 1
        for s in range(lowest, n_slots):
            place = first[s] + index[node, s]
            if place + 1 >= first[s + 1]:
                continue
            if n_nodes == room:
                room *= 2
                wider, longer, deeper = (
                    np.zeros((room, n_slots), np.int32),
                    np.empty(room),
                    np.empty(room, np.int64),
                )
                for j in range(n_nodes):
                    longer[j] = total[j]
                    for k in range(n_slots):
                        wider[j, k] = index[j, k]
                for j in range(n_heap):
                    deeper[j] = heap[j]
                index, total, heap = wider, longer, deeper
            for k in range(n_slots):
                index[n_nodes, k] = index[node, k]
            index[n_nodes, s] += 1
            total[n_nodes] = total[node] - value[place] + value[place + 1]
            j = n_heap
            n_heap += 1
            while j > 0 and total[heap[(j - 1) // 2]] < total[n_nodes]:
                heap[j] = heap[(j - 1) // 2]
                j = (j - 1) // 2
            heap[j] = n_nodes
            n_nodes += 1
    return -np.inf


@njit(cache=True)
def loss_of_slot(packed, s, label):
    """1 where no candidate gives slot s, counted over all bags, the label."""
    for k in range(packed.slot[s], packed.slot[s + 1]):
        if packed.slot_labels[k] == label:
            return 0.0
    return 1.0


@njit(cache=True)
def matching_search(packed, i, scores, first, label, value, labels):
    """What Algorithm 10 answers for a matching, found directly.

    A labeling is no candidate if all is null, if a region's labels are not a word that it may take, or if two regions share a word.
    The best of each kind is found in turn, which takes time linear in the regions instead of up to one step per candidate.

    Returns
    -------
    float
        The sum of `value`.
    """
    P = packed.n_attributes
    n_slots = first.shape[0] - 1
    n_regions, n_words = n_slots // P, packed.n_words[i]
    start = 0.0
    for s in range(n_slots):
        start += value[first[s]]
        labels[s] = label[first[s]]
    if not contains(packed, i, labels):
        return start
    top, trial = np.empty_like(labels), np.empty_like(labels)
    for s in range(n_slots):
        top[s] = trial[s] = labels[s]
    words = word_values(packed, i, scores)
    own = np.empty(n_regions)  # what each region has at its best
    for m in range(n_regions):
        own[m] = 0.0
        for p in range(P):
            own[m] += value[first[m * P + p]]
    best = 0.0  # all null
    for s in range(n_slots):
        labels[s] = packed.null[s % P]
        best += scores[s // P, labels[s]] + loss_of_slot(packed, packed.row[i] * P + s, labels[s])
    place = np.zeros(P, np.int64)
    for m in range(n_regions):  # one region off its words
        for p in range(P):
            place[p] = 0
        while True:
            total = start - own[m]
            for p in range(P):
                s = m * P + p
                trial[s] = label[first[s] + place[p]]
                total += value[first[s] + place[p]]
            if total > best and word_of(packed, i, m, trial) < 0:
                best = total
                for s in range(n_slots):
                    labels[s] = trial[s]
            p = 0
            while p < P:
                place[p] += 1
                if first[m * P + p] + place[p] < first[m * P + p + 1]:
                    break
                place[p] = 0
                p += 1
            if p == P:
                break
        for p in range(P):
            trial[m * P + p] = top[m * P + p]
    for w in range(n_words):  # two regions with the same word
        low1, low2, m1, m2 = np.inf, np.inf, -1, -1
        for m in range(n_regions):
            if not packed.allowed[packed.allowed_start[i] + m * (n_words + 1) + w + 1]:
                continue
            lost = own[m] - words[m, w + 1]
            if lost < low1:
                low1, low2, m1, m2 = lost, low1, m, m1
            elif lost < low2:
                low2, m2 = lost, m
        if m2 >= 0 and start - low1 - low2 > best:
            best = start - low1 - low2
            for s in range(n_slots):
                labels[s] = top[s]
            for p in range(P):
                name = packed.labels[packed.start[i] + w * P + p]
                labels[m1 * P + p], labels[m2 * P + p] = name, name
    return best


@njit(cache=True)
def violator(packed, i, scores, labels):
    """Write Algorithm 10's answer for bag i, as columns, into `labels`.

    Returns
    -------
    value : float
        Its U, with the joint ambiguous loss; -inf where every labeling is a candidate.
    loss : int
        That loss.
    """
    first, label, value = slot_lists(packed, i, scores, 1.0)
    if packed.n_words[i] > 0:
        total = matching_search(packed, i, scores, first, label, value, labels)
    else:
        total = heap_search(packed, i, first, label, value, labels)
    if total == -np.inf:
        return total, 0
    return labels_value(packed, i, scores, labels)


@njit(cache=True)
def labels_value(packed, i, scores, labels):
    """U of a labeling given as columns, and its ambiguous loss."""
    n_slots = scores.shape[0] * packed.n_attributes
    total = 0.0
    for s in range(n_slots):
        total += scores[s // packed.n_attributes, labels[s]]
    loss = ambiguous_loss(packed, i, labels[:n_slots])
    return total + loss, loss


@njit(cache=True)
def exact_violator(packed, i, scores, labels, most_nodes):
    """Write the labeling with the largest U into `labels`: branch and bound over the slots, depth first.

    A partial labeling is given up when its score, the best scores of the slots to come, and the least distance to a candidate that can
    still result do not exceed the best U so far. The search starts from Algorithm 10's answer.

    Returns
    -------
    value : float
        -inf where every labeling is a candidate; NaN where the search took more than `most_nodes` partial labelings.
    loss : int
    """
    best, best_loss = violator(packed, i, scores, labels)
    if best == -np.inf:
        return best, best_loss
    first, label, value = slot_lists(packed, i, scores, 0.0)
    n_slots = first.shape[0] - 1
    P = packed.n_attributes
    L = packed.count[i]
    start = packed.start[i]
    ahead = np.zeros(n_slots + 1)  # best scores of the slots from s on
    for s in range(n_slots - 1, -1, -1):
        ahead[s] = ahead[s + 1] + value[first[s]]
    apart = np.zeros((n_slots + 1, L), np.int32)
    total = np.zeros(n_slots + 1)
    place = np.zeros(n_slots, np.int64)
    chosen = np.empty(n_slots, np.int32)
    s, nodes = 0, 0
    while s >= 0:
        if place[s] >= first[s + 1] - first[s]:
            place[s] = 0
            s -= 1
            if s >= 0:
                place[s] += 1
            continue
        nodes += 1
        if nodes > most_nodes:
            return np.nan, 0
        k = label[first[s] + place[s]]
        chosen[s] = k
        total[s + 1] = total[s] + scores[s // P, k]
        least = n_slots
        for c in range(L):
            apart[s + 1, c] = apart[s, c] + (packed.labels[start + c * n_slots + s] != k)
            least = min(least, apart[s + 1, c])
        bound = total[s + 1] + ahead[s + 1] + least + (n_slots - 1 - s)
        if bound <= best:
            place[s] += 1
            continue
        if s + 1 == n_slots:
            if least > 0:  # no candidate
                best, best_loss = total[n_slots] + least, least
                for o in range(n_slots):
                    labels[o] = chosen[o]
            place[s] += 1
            continue
        s += 1
    return best, best_loss


@njit(cache=True)
def find(packed, i, scores, labels, most_nodes):
    """The most violating labeling of a bag: by Algorithm 10 where `most_nodes` is None, which compiles without the exact search."""
    if most_nodes is None:
        return violator(packed, i, scores, labels)
    return exact_violator(packed, i, scores, labels, most_nodes)


@njit(cache=True)
def best_of_bags(packed, scores, labels):
    """Best candidate of every bag, slot after slot, from the scores of all instances; returns their totals."""
    P = packed.n_attributes
    totals = np.empty(packed.count.shape[0])
    for i in range(packed.count.shape[0]):
        low, high = packed.row[i], packed.row[i + 1]
        totals[i] = best_candidate(packed, i, scores[low:high], labels[low * P : high * P])
    return totals


@njit(cache=True)
def targets_of_bags(packed, first, scores, target):
    """Mean label indicators of the best candidates of the bags from `first` on, whose instances are the rows of `scores`."""
    i, low = first, 0
    totals = 0.0
    while low < scores.shape[0]:
        high = low + packed.row[i + 1] - packed.row[i]
        totals += best_average(packed, i, scores[low:high], target[low:high])
        low = high
        i += 1
    return totals


@njit(cache=True)
def losses_of_bags(packed, first, n_bags, scores, target, most_nodes, relaxed, losses):
    """Relaxed and ambiguous surrogate losses (5.5) and (5.2) of bags `first` to ``first + n_bags - 1``.

    Parameters
    ----------
    scores, target : ndarrays, shape (n_rows, n_columns)
    most_nodes : int or None
        As of `find`.
    relaxed, losses : ndarrays, shape (n_bags,)
        Written: with the score of `target` in place of the largest candidate's, and with the latter.

    Returns
    -------
    bool
        False where an exact search gave up.
    """
    origin = packed.row[first]
    P = packed.n_attributes
    longest = 0
    for i in range(first, first + n_bags):
        longest = max(longest, packed.row[i + 1] - packed.row[i])
    labels = np.empty(longest * P, np.int32)
    for b in range(n_bags):
        i = first + b
        low, high = packed.row[i] - origin, packed.row[i + 1] - origin
        part = scores[low:high]
        answer = labels[: (high - low) * P]
        value, _ = find(packed, i, part, answer, most_nodes)
        if np.isnan(value):
            return False
        reached = 0.0
        for m in range(low, high):
            for k in range(scores.shape[1]):
                if target[m, k] != 0.0:
                    reached += target[m, k] * scores[m, k]
        relaxed[b] = max(0.0, value - reached)
        losses[b] = max(0.0, value - best_candidate(packed, i, part, answer))
    return True


def side_by_side(scores, candidates, n_rows):
    """Scores given per attribute as one float64 matrix (n_rows, sum of labels), or an error that names what does not fit."""
    several = candidates.n_attributes > 1 or (
        isinstance(scores, list) and len(scores) == 1 and np.ndim(scores[0]) == 2
    )
    parts = list(scores) if isinstance(scores, (list, tuple)) and several else [scores]
    if candidates.n_attributes > 1 and len(parts) == 1:
        whole = np.asarray(parts[0], dtype=np.float64)
        if whole.ndim == 2 and whole.shape[1] == sum(candidates.n_labels):
            parts = np.split(whole, np.cumsum(candidates.n_labels)[:-1], axis=1)
    shapes = [(n_rows, size) for size in candidates.n_labels]
    parts = [np.asarray(part, dtype=np.float64) for part in parts]
    if [part.shape for part in parts] != shapes:
        raise ValueError(
            f"scores must have one matrix per attribute, of shapes {shapes}, got {[part.shape for part in parts]}"
        )
    whole = np.ascontiguousarray(np.concatenate(parts, axis=1))
    if not np.isfinite(whole).all():
        raise ValueError("scores must be finite, got NaN or infinite values")
    return whole


def _check_set(candidates):
    if not isinstance(candidates, CandidateSet):
        raise TypeError(f"candidates must be a CandidateSet, got {type(candidates).__name__}")


def most_violating(scores, candidates, bag=0, method="heap"):
    r"""The labeling outside a bag's candidates that violates the margin most.

    .. math:: \hat Z = \arg\max_{\bar Z \notin \mathcal Z} \Delta_A(\bar Z, \mathcal Z) + \sum_m s(x_m, \bar z_m)

    Parameters
    ----------
    scores : array-like, shape (n_instances of the bag, n_labels), or a list of one such matrix per attribute
        :math:`s(x_m, y)`.
    candidates : CandidateSet
    bag : int, default 0
    method : {"heap", "exact"}
        Algorithm 10, which ranks labelings by the sum of their slots' losses, or branch and bound on U itself.

    Returns
    -------
    labeling : ndarray of int, shape (n_instances, n_attributes)
    value : float
        Its U, with the joint ambiguous loss.

    Raises
    ------
    ValueError
        If every labeling is a candidate; if the exact search is asked for a bag whose candidates are not listed, or takes more than
        50 million partial labelings.

    Notes
    -----
    Algorithm 10 takes O(L M log(L M)) at most; for a `Matching` its answer is found in O(M (K + W)) without a heap, and its joint loss in
    O(M W 2^W). The exact search is exponential in M at worst.

    References
    ----------
    Thesis Algorithm 10, with the corrections that the sums hold the losses and that no index vector is pushed twice.

    Examples
    --------
    The thesis's example: two instances, candidates [1, 2] and [2, 1]; labels are counted from 0 here.

    >>> pair = CandidateSet([[[0, 1], [1, 0]]], n_labels=3)
    >>> scores = [[3, 2, 1], [1, 1, 0.99]]
    >>> most_violating(scores, pair)[0].ravel() + 1, most_violating(scores, pair, method="exact")[0].ravel() + 1
    (array([1, 3]), array([1, 1]))
    """
    _check_set(candidates)
    if method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    i = candidates._check_bag(bag)
    P = candidates.n_attributes
    scores = side_by_side(scores, candidates, int(candidates.bag_sizes[i]))
    labels = np.empty(scores.shape[0] * P, np.int32)
    packed = candidates.packed
    if method == "heap":
        value, _ = violator(packed, i, scores, labels)
    else:
        refuse_exact(candidates, [i])
        value, _ = exact_violator(packed, i, scores, labels, MOST_NODES)
    if np.isnan(value):
        raise ValueError(
            f"method 'exact' needs more than {MOST_NODES} partial labelings for bag {i}; method 'heap' does not"
        )
    if value == -np.inf:
        raise ValueError(f"every labeling of bag {i} is a candidate; none outside can be found")
    return labels.reshape(-1, P).astype(np.int64) - packed.column[:-1], float(value)


def refuse_exact(candidates, bags):
    """An error where an exact search is asked for bags whose candidates are not listed."""
    unlisted = [i for i in bags if not candidates.is_listed(i)]
    if unlisted:
        raise ValueError(
            f"method 'exact' needs listed candidates; bag {unlisted[0]} is a Matching, give its list or take 'heap'"
        )


def best_labelings(scores, candidates):
    """Best candidate of every bag: the prediction with a caption, :math:`\\arg\\max_{Z \\in \\mathcal Z} S_w(\\mathcal X, Z)`.

    Parameters
    ----------
    scores : array-like, shape (n_instances, n_labels), or a list of one such matrix per attribute
    candidates : CandidateSet

    Returns
    -------
    ndarray of int, shape (n_instances, n_attributes)
        The first best where several are.
    """
    _check_set(candidates)
    scores = side_by_side(scores, candidates, candidates.n_instances)
    labels = np.empty(candidates.n_instances * candidates.n_attributes, np.int32)
    best_of_bags(candidates.packed, scores, labels)
    return labels.reshape(-1, candidates.n_attributes).astype(np.int64) - candidates.packed.column[:-1]


def assign(scores, candidates):
    """`best_labelings` by the candidates' own names."""
    return candidates.named(best_labelings(scores, candidates))
