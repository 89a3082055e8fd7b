r"""The most violating labeling by linear programming (thesis 7.2.2), proven by branch and bound.

With :math:`x_{sk} = 1` where slot s has label k of score :math:`S_{sk}`, the largest U outside the candidates
:math:`\mathcal Z` is

.. math:: \max_{x, \theta} \sum_{s,k} S_{sk} x_{sk} + \theta, \quad \sum_k x_{sk} = 1, \quad
    x_{sk} \in \{0, 1\}, \quad 1 \le \theta \le \sum_s (1 - x_{s z_s}) \ \forall z \in \mathcal Z.

Prices :math:`\pi` in the convex hull of the candidates (of a `Matching`: the matching polytope) bound it by

.. math:: U(x) \le \sum_s \max_k (S_{sk} + 1 - \pi_{sk}),

and the least such bound is the value of the relaxation to :math:`x \ge 0, \theta \ge 0`. Fictitious play
finds prices near it: labels answer the prices, and the candidate nearest to the mean answer enters their
mean. As prices, a single candidate bounds what is left after some slots; with its distance there, so does
each of them.

References
----------
Thesis section 7.2.2. Wang and Mori, ECCV 2010 (linear programs for tags). Robinson, Annals of Mathematics 54,
1951 (fictitious play).
"""

import numpy as np

from cuelearn.core.compiled import inlined, inner
from cuelearn.mms.candidates import ambiguous_loss
from cuelearn.mms.matching import (
    AHEAD,
    ANSWERS,
    APART,
    CHOSEN,
    FIRST,
    LABEL,
    OF_WORDS,
    OPTION,
    PLACE,
    PRICE,
    PRICED,
    REDUCED,
    REST,
    SPENT,
    TOTAL,
    TRIAL,
    VALUE,
    WAYS_AFTER,
    matching_best,
    recursion,
    subset_after,
    word_column,
)

#: Closer scores tie; the first label or labeling wins, so that rounding does not decide the steps.
TIE = 1e-9
#: Steps of fictitious play.
PRICE_STEPS = 10


@inner
def slot_lists(bag, scores, outside_loss, scratch):
    """Write labels of each slot that an answer can hold, best first: Z(m), and the best outside it plus
    `outside_loss`; rows of `scratch`: starts of slots, labels and values."""
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
    """Insert label k with value v in the descending list from `begin` to n - 1."""
    j = n
    while j > begin and value[j - 1] < v - TIE:
        value[j] = value[j - 1]
        label[j] = label[j - 1]
        j -= 1
    value[j] = v
    label[j] = k


@inner
def option_places(bag, words, n_slots, scratch):
    """Write the place in `label` of what each option gives each slot (-1: none), at s * n_options + option;
    options are the listed candidates, or null and the words of a `Matching`. Returns their number."""
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
    """Write, by the prices of at most `PRICE_STEPS`, scores plus one less prices (their sum over the best of
    every slot is a bound), and, with `answer`, the best labeling that answered prices, if it is better than
    `labels` of value `best`. Returns its value and loss, and a bound, at most `near`."""
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
    n_options + candidate, or regions m and later from those of a `Matching` that use each subset of words
    before m, at m * 2 ** n_words + subset; and distances before all slots. Returns the bound of both."""
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
    """Write distances of the labels up to slot s, given by their places, from the candidates: rows of `apart`
    are those of `rest`; returns the least, and the least with the rest's bound (infinite within a region)."""
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
    labels first, bounded by the relaxation's prices and by the distances from all candidates.

    Returns U, loss, and a bound on U: U itself, or `root` beyond `most_nodes` partial labelings."""
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
