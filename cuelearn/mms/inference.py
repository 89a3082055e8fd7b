r"""Searches over labelings: the best candidates, and the most violating labeling, with the largest
:math:`U(\bar Z) = \Delta_A(\bar Z, \mathcal Z) + S_w(\mathcal X, \bar Z)` outside them.

Thesis Algorithm 10 replaces the joint loss by the number of labels outside the :math:`\mathcal Z(m)`, which
is never larger, so its U may be below the largest. Only the best outside label of a slot can be in an answer.

Linear programming (thesis 7.2.2), proven by branch and bound: with :math:`x_{sk} = 1` where slot s has label
k of score :math:`S_{sk}`, the largest U outside the candidates :math:`\mathcal Z` is

.. math:: \max_{x, \theta} \sum_{s,k} S_{sk} x_{sk} + \theta, \quad \sum_k x_{sk} = 1, \quad
    x_{sk} \in \{0, 1\}, \quad 1 \le \theta \le \sum_s (1 - x_{s z_s}) \ \forall z \in \mathcal Z.

Prices :math:`\pi` in the convex hull of the candidates (of a `Matching`: the matching polytope) bound it by

.. math:: U(x) \le \sum_s \max_k (S_{sk} + 1 - \pi_{sk}),

and the least such bound is the value of the relaxation to :math:`x \ge 0, \theta \ge 0`. Fictitious play
finds prices near it: labels answer the prices, and the candidate nearest to the mean answer enters their
mean. A single candidate as prices, with its distance so far, bounds what is left after some slots.

References
----------
Wang and Mori, ECCV 2010 (linear programs for tags). Robinson, Annals of Mathematics 54, 1951 (fictitious
play).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from cuelearn.compiled import inlined, inner, loop
from cuelearn.expect import expect, expect_list, expect_word
from cuelearn.kernels.types import ArrayLike
from cuelearn.mms.candidates import CandidateSet, ambiguous_loss, bag_of, check_candidates, contains, words_of
from cuelearn.mms.matching import (
    CHOSEN,
    OF_WORDS,
    WAYS_AFTER,
    Scratch,
    matching_best,
    matching_shares,
    recursion,
    subset_after,
    word_column,
    word_of,
    word_values,
)

__all__ = ["best_labelings", "most_violating"]

#: Closer scores tie; the first label or labeling wins, so that rounding does not decide the steps.
TIE = 1e-9
#: Steps of fictitious play.
PRICE_STEPS = 10
# Rows of `Scratch`, beside those of `matching`.
FIRST, LABEL, PLACE, TRIAL, OPTION, PARENT, RAISED, HEAP = range(1, 9)
VALUE, REDUCED, PRICED, PRICE, ANSWERS, REST, APART, COST, AHEAD, TOTAL, SPENT, SHARE = range(5, 17)


@inner
def slot_lists(bag, scores, outside_loss, scratch):
    """Write labels of each slot that an answer can hold, best first: Z(m), and the best outside it plus
    `outside_loss`: starts of slots, labels and values."""
    P = bag.n_attributes
    first = scratch.integers[FIRST]
    label = scratch.integers[LABEL]
    value = scratch.numbers[VALUE]
    first[0] = n = 0
    for s in range(scores.shape[0] * P):
        m = s // P
        p = s % P
        at = bag.slot[s]
        high = bag.slot[s + 1]
        begin = n
        outside = -1
        top = -np.inf
        for k in range(bag.column[p], bag.column[p + 1]):
            if at < high and bag.slot_labels[at] == k:
                insert(label, value, begin, n, k, scores[m, k])
                at += 1
                n += 1
            elif scores[m, k] > top + TIE:
                outside = k
                top = scores[m, k]
        if outside >= 0:
            insert(label, value, begin, n, outside, top + outside_loss)
            n += 1
        first[s + 1] = n


@inner
def insert(label, value, begin, n, k, v):
    """Insert label k with value v in a descending list."""
    j = n
    while j > begin and value[j - 1] < v - TIE:
        value[j] = value[j - 1]
        label[j] = label[j - 1]
        j -= 1
    value[j] = v
    label[j] = k


@inner
def option_places(bag, words, n_slots, scratch):
    """Write the place in `label` of what each option, a listed candidate or null or a word of a `Matching`,
    gives each slot (-1: none), at s * n_options + option. Returns the number of options."""
    P = bag.n_attributes
    first = scratch.integers[FIRST]
    label = scratch.integers[LABEL]
    option = scratch.integers[OPTION]
    n_options = bag.weight.shape[0]
    if words is not None and words.width > 1:
        n_options = words.width
    for s in range(n_slots):
        for o in range(n_options):
            if words is not None and words.width > 1:
                k = word_column(bag, words, o, s % P)
            else:
                k = bag.labels[o * n_slots + s]
            place = -1
            for j in range(first[s], first[s + 1]):
                if label[j] == k:
                    place = j
            option[s * n_options + o] = place
    return n_options


@inner
def add_nearest(bag, words, n_slots, n_options, step, scratch):
    """Move prices by `step` to the candidate with the largest sum of answers."""
    P = bag.n_attributes
    option = scratch.integers[OPTION]
    answers = scratch.numbers[ANSWERS]
    price = scratch.numbers[PRICE]
    for j in range(scratch.integers[FIRST, n_slots]):
        price[j] *= 1.0 - step
    if words is not None and words.width > 1:
        near = scratch.numbers[OF_WORDS]
        for m in range(n_slots // P):
            for w in range(n_options):
                total = 0.0
                for s in range(m * P, (m + 1) * P):
                    if option[s * n_options + w] >= 0:
                        total += answers[option[s * n_options + w]]
                near[m * n_options + w] = total
        chosen = scratch.integers[CHOSEN]
        matching_best(words, n_slots // P, near, chosen, scratch.numbers)
        for s in range(n_slots):
            price[option[s * n_options + chosen[s // P]]] += step
        return
    nearest = 0
    most = -1.0
    for c in range(n_options):
        total = 0.0
        for s in range(n_slots):
            total += answers[option[s * n_options + c]]
        if total > most:
            most = total
            nearest = c
    for s in range(n_slots):
        price[option[s * n_options + nearest]] += step


@inner
def best_places(first, value, place):
    """Write the place of the first best value of each slot; returns their sum."""
    total = 0.0
    for s in range(place.shape[0]):
        best = first[s]
        for j in range(first[s] + 1, first[s + 1]):
            if value[j] > value[best] + TIE:
                best = j
        place[s] = best
        total += value[best]
    return total


@inlined
def relaxed(bag, words, n_options, answer, labels, best, best_loss, near, scratch):
    """Write scores plus one less the best prices, and, with `answer`, the best labeling that answered prices
    if it is better than `labels` of value `best`. Returns its value and loss, and a bound, at most `near`."""
    n_slots = labels.shape[0]
    first = scratch.integers[FIRST]
    label = scratch.integers[LABEL]
    place = scratch.integers[PLACE, :n_slots]
    trial = scratch.integers[TRIAL, :n_slots]
    value = scratch.numbers[VALUE]
    price = scratch.numbers[PRICE]
    answers = scratch.numbers[ANSWERS]
    reduced = scratch.numbers[REDUCED]
    priced = scratch.numbers[PRICED]
    size = first[n_slots]
    for j in range(size):
        price[j] = answers[j] = 0.0
    bound = np.inf
    for step in range(PRICE_STEPS + 1 if near > best + TIE else 0):
        if step > 0:
            add_nearest(bag, words, n_slots, n_options, 1.0 / step, scratch)
        for j in range(size):
            priced[j] = value[j] + 1.0 - price[j]
        total = best_places(first, priced, place)
        if total < bound or step == 0:
            bound = total
            for j in range(size):
                reduced[j] = priced[j]
        if answer:
            total = 0.0
            for s in range(n_slots):
                trial[s] = label[place[s]]
                total += value[place[s]]
            loss = ambiguous_loss(bag, words, trial, scratch)
            if loss > 0 and total + loss > best + TIE:
                best = total + loss
                best_loss = loss
                for s in range(n_slots):
                    labels[s] = trial[s]
        if not bound > best + TIE:
            break
        for s in range(n_slots):
            answers[place[s]] += 1.0
    bound = min(bound, near)
    return best, best_loss, bound if bound > best + TIE else best


@inner
def rest_bounds(bag, words, n_slots, n_options, scratch):
    """Write the most that slots s and later gain in score and distance from each listed candidate, at s *
    n_options + candidate, or regions m and later from those of a `Matching` that use a subset of words before
    m, at m * 2 ** n_words + subset; and distances before all slots. Returns the bound."""
    P = bag.n_attributes
    first = scratch.integers[FIRST]
    option = scratch.integers[OPTION]
    value = scratch.numbers[VALUE]
    rest = scratch.numbers[REST]
    lost = scratch.numbers[OF_WORDS]
    apart = scratch.numbers[APART]
    n_columns = n_options
    by_word = words is not None and words.width > 1
    for at in range(n_options):
        rest[n_slots * n_options + at] = 0.0
    for at in range(n_slots // P * n_options if by_word else 0):
        lost[at] = 0.0
    for back in range(n_slots):
        s = back if by_word else n_slots - 1 - back
        top = first[s]
        for o in range(n_options):
            gain = value[top] + 1.0
            if option[s * n_options + o] == top:
                gain = value[top]
                if top + 1 < first[s + 1]:
                    gain = max(value[top], value[top + 1] + 1.0)
            if by_word:
                lost[s // P * n_options + o] -= gain
            else:
                rest[s * n_options + o] = rest[(s + 1) * n_options + o] + gain
    if words is not None and words.width > 1:
        n_regions = n_slots // P
        recursion(words, n_regions, lost, False, False, rest, scratch.numbers[WAYS_AFTER])
        n_columns = 1 << (words.width - 1)
        for at in range((n_regions + 1) * n_columns):
            rest[at] = -rest[at]
    bound = np.inf
    for c in range(n_columns):
        apart[c] = np.inf if by_word and c > 0 else 0.0
        bound = min(bound, apart[c] + rest[c])
    return bound


@inner
def extend(bag, words, n_options, n_columns, s, scratch):
    """Write distances of the labels up to slot s from the candidates, in the rows of `rest`; returns the
    least, and the least with the rest's bound (infinite within a region)."""
    P = bag.n_attributes
    option = scratch.integers[OPTION]
    place = scratch.integers[PLACE]
    apart = scratch.numbers[APART]
    rest = scratch.numbers[REST]
    least = np.inf
    bound = np.inf
    if words is not None and words.width > 1:
        if (s + 1) % P > 0:
            return least, bound
        m = s // P
        row = (m + 1) * n_columns
        for subset in range(n_columns):
            apart[row + subset] = np.inf
        for w in range(n_options):
            away = 0.0
            for slot in range(s + 1 - P, s + 1):
                away += option[slot * n_options + w] != place[slot]
            for subset in range(n_columns):
                then = subset_after(words, m, subset, w)
                if then >= 0:
                    apart[row + then] = min(apart[row + then], apart[m * n_columns + subset] + away)
    else:
        row = (s + 1) * n_columns
        for c in range(n_columns):
            apart[row + c] = apart[s * n_columns + c] + (option[s * n_columns + c] != place[s])
    for c in range(n_columns):
        if rest[row + c] < np.inf:
            least = min(least, apart[row + c])
            bound = min(bound, apart[row + c] + rest[row + c])
    return least, bound


@inner
def branch_and_bound(bag, words, n_options, scores, labels, most_nodes, best, best_loss, root, scratch):
    """Improve `labels` of value `best` to the labeling with the largest U: depth-first over slots, best
    labels first, bounded by prices and by the distances from all candidates. Returns U, loss, and a bound on
    U: U itself, or `root` beyond `most_nodes` partial labelings."""
    P = bag.n_attributes
    n_slots = labels.shape[0]
    n_columns = n_options
    if words is not None and words.width > 1:
        n_columns = 1 << (n_options - 1)
    first = scratch.integers[FIRST]
    label = scratch.integers[LABEL]
    place = scratch.integers[PLACE]
    ahead = scratch.numbers[AHEAD]  # best reduced scores of slots s and later
    reduced = scratch.numbers[REDUCED]
    total = scratch.numbers[TOTAL]
    spent = scratch.numbers[SPENT]  # reduced scores before slot s
    ahead[n_slots] = total[0] = spent[0] = 0.0
    for s in range(n_slots - 1, -1, -1):
        place[s] = first[s]
        most = reduced[first[s]]
        for j in range(first[s] + 1, first[s + 1]):
            most = max(most, reduced[j])
        ahead[s] = ahead[s + 1] + most
    s = 0
    nodes = 0
    while True:
        if place[s] == first[s + 1]:  # back
            if s == 0:
                return best, best_loss, best
            place[s] = first[s]
            s -= 1
            place[s] += 1
            continue
        nodes += 1
        if nodes > most_nodes:
            return best, best_loss, root
        spent[s + 1] = spent[s] + reduced[place[s]]
        if not spent[s + 1] + ahead[s + 1] > best + TIE:
            place[s] += 1
            continue
        total[s + 1] = total[s] + scores[s // P, label[place[s]]]
        least, bound = extend(bag, words, n_options, n_columns, s, scratch)
        if not total[s + 1] + bound > best + TIE:
            place[s] += 1
        elif s + 1 < n_slots:
            s += 1
        else:
            if least > 0.0:  # no candidate
                best = total[n_slots] + least
                best_loss = int(least)
                for r in range(n_slots):
                    labels[r] = label[place[r]]
            place[s] += 1


#: The exact search of a bag ends without proof after this many partial labelings.
MOST_NODES = 1_000_000
#: Searches, by the most partial labelings of branch and bound: negative without the relaxation.
METHODS = {"algorithm-10": -1, "lp": 0, "exact": MOST_NODES}
Inference = Literal["auto", "exact", "lp", "algorithm-10"]


@inner
def listed_values(bag, scores, as_log, values):
    """Write scores of listed candidates times priors (remark 5.1); `as_log`: log-likelihoods plus log-priors.
    Returns the first of the best."""
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
    """Write the mean label indicators of all best candidates (section 5.4.4), each times its prior; returns
    the best score. `soft`: weighted by posteriors of log-likelihoods; returns log sum_Z w(Z) p(X | Z), w the
    priors."""
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
    is one. Each has one parent, with its last raised place one lower."""
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
    """Algorithm 10's answer for a matching: all null, with a region without allowed word, or a repeated
    word."""
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
    """Write Algorithm 10's answer; returns its U (-inf if every labeling is a candidate) and loss."""
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
    """Write the most violating labeling by a search of `METHODS`; returns its U (-inf if every labeling is a
    candidate), its loss, and a bound on U: U itself, that of the relaxation, or infinity without it."""
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


find_one = loop(find.py_func)


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


def most_violating(
    scores: ArrayLike | Sequence[ArrayLike],
    candidates: CandidateSet,
    bag: int = 0,
    method: Literal["algorithm-10", "lp", "exact"] = "algorithm-10",
    *,
    return_bound: bool = False,
) -> tuple:
    r"""The labeling outside a bag's candidates that violates the margin most.

    .. math:: \hat Z = \arg\max_{\bar Z \notin \mathcal Z} \Delta_A(\bar Z, \mathcal Z)
        + \sum_m s(x_m, \bar z_m)

    Parameters
    ----------
    scores : array-like, shape (n_instances of the bag, n_labels), or a list of one such matrix per attribute
    candidates : CandidateSet
    bag : int, default 0
    method : {"algorithm-10", "lp", "exact"}
        Algorithm 10 ranks labelings by the sum of their slots' losses; "lp" adds those that answer the prices
        of a linear relaxation (thesis 7.2.2), "exact" branch and bound on it.
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
    takes O(L M log(L M)); for a `Matching` O(M (K + W)), and O(M W 2^W) for its joint loss. Each of at most
    ten steps of the relaxation takes O(L M), for a `Matching` O(M W 2^W), a partial labeling of the exact
    search O(L) or O(W 2^W). That is exponential in M at worst, and ends without proof after a million partial
    labelings.

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
    bag = bag_of(packed, i)
    words = words_of(packed.matchings, i)
    value, _, bound = find_one(bag, words, scores, labels, METHODS[method], Scratch.of(packed))
    if value == -np.inf:
        raise ValueError(f"every labeling of bag {i} is a candidate; none outside can be found")
    labeling = labels.reshape(-1, candidates.n_attributes) - packed.column[:-1]
    if return_bound:
        return labeling, float(value), float(bound)
    return labeling, float(value)


def best_columns(scores, candidates, as_log=False):
    """`best_candidate` of every bag, (n_instances, n_attributes), and their scores."""
    columns = np.empty((candidates.n_instances, candidates.n_attributes), np.int32)
    best = np.empty(candidates.n_bags)
    packed = candidates.packed
    best_candidates(packed, scores, as_log, columns.reshape(-1), best, Scratch.of(packed))
    return columns, best


def best_labelings(scores: ArrayLike | Sequence[ArrayLike], candidates: CandidateSet) -> np.ndarray:
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
    columns, _ = best_columns(side_by_side(scores, candidates, candidates.n_instances), candidates)
    return columns - candidates.packed.column[:-1]
