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

from cuelearn.core.compiled import allocating, inner
from cuelearn.mms.candidates import ambiguous_loss
from cuelearn.mms.matching import matching_best, recursion, subset_after, word_column, words_allowed

#: Closer scores tie; the first label or labeling wins, so that rounding does not decide the steps.
TIE = 1e-9
#: Steps of fictitious play.
PRICE_STEPS = 10


@allocating
def slot_lists(packed, i, scores, outside_loss):
    """Labels of each slot that an answer can hold, best first: Z(m), and the best outside it plus
    `outside_loss`; returns starts of slots, labels and values."""
    P = packed.n_attributes
    n_slots = scores.shape[0] * P
    row = packed.row[i] * P
    first = np.zeros(n_slots + 1, np.int64)
    size = packed.slot[row + n_slots] - packed.slot[row] + n_slots
    label = np.empty(size, np.int32)
    value = np.empty(size)
    n = 0
    for s in range(n_slots):
        m = s // P
        p = s % P
        at = packed.slot[row + s]
        high = packed.slot[row + s + 1]
        begin = n
        outside = -1
        top = -np.inf
        for k in range(packed.column[p], packed.column[p + 1]):
            if at < high and packed.slot_labels[at] == k:
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
    return first, label[:n], value[:n]


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


@allocating
def option_places(packed, matchings, i, first, label):
    """Place in `label` of what each option gives each slot (-1: none); options are the listed candidates, or
    null and the words of a `Matching`."""
    P = packed.n_attributes
    n_slots = first.shape[0] - 1
    n_options = packed.count[i]
    if matchings is not None and matchings.n_words[i] > 0:
        n_options = matchings.n_words[i] + 1
    place = np.empty((n_slots, n_options), np.int64)
    for s in range(n_slots):
        for o in range(n_options):
            place[s, o] = -1
            if matchings is not None and matchings.n_words[i] > 0:
                k = word_column(packed, i, o, s % P)
            else:
                k = packed.labels[packed.start[i] + o * n_slots + s]
            for j in range(first[s], first[s + 1]):
                if label[j] == k:
                    place[s, o] = j
    return place


@allocating
def add_nearest(packed, matchings, i, option, answers, price, step):
    """Move prices by `step` to the candidate with the largest sum of `answers`."""
    n_slots, n_options = option.shape
    for j in range(price.shape[0]):
        price[j] *= 1.0 - step
    if matchings is not None and matchings.n_words[i] > 0:
        near = np.zeros((n_slots // packed.n_attributes, n_options))
        for s in range(n_slots):
            for w in range(n_options):
                if option[s, w] >= 0:
                    near[s // packed.n_attributes, w] += answers[option[s, w]]
        _, words = matching_best(packed, i, near)
        for s in range(n_slots):
            price[option[s, words[s // packed.n_attributes]]] += step
        return
    nearest = 0
    most = -1.0
    for c in range(n_options):
        total = 0.0
        for s in range(n_slots):
            total += answers[option[s, c]]
        if total > most:
            most = total
            nearest = c
    for s in range(n_slots):
        price[option[s, nearest]] += step


@inner
def best_places(first, value, place):
    """Write the place of the first best value of each slot; returns their sum."""
    total = 0.0
    for s in range(place.shape[0]):
        place[s] = first[s]
        for j in range(first[s] + 1, first[s + 1]):
            if value[j] > value[place[s]] + TIE:
                place[s] = j
        total += value[place[s]]
    return total


@allocating
def relaxed(packed, matchings, i, first, label, value, option, answer, labels, best, best_loss):
    """Bound by the prices of at most `PRICE_STEPS`, scores plus one less prices (their sum over the best of
    every slot is the bound), and, with `answer`, the best labeling that answered prices, if it is better than
    `labels`."""
    price = np.zeros(value.shape[0])
    answers = np.zeros(value.shape[0])
    reduced = np.empty(value.shape[0])
    priced = np.empty(value.shape[0])
    place = np.empty(labels.shape[0], np.int64)
    trial = np.empty(labels.shape[0], np.int32)
    bound = np.inf
    for step in range(PRICE_STEPS + 1):
        if step > 0:
            add_nearest(packed, matchings, i, option, answers, price, 1.0 / step)
        for j in range(value.shape[0]):
            priced[j] = value[j] + 1.0 - price[j]
        total = best_places(first, priced, place)
        if total < bound or step == 0:
            bound = total
            reduced, priced = priced, reduced
        if answer:
            total = 0.0
            for s in range(place.shape[0]):
                trial[s] = label[place[s]]
                total += value[place[s]]
            loss = ambiguous_loss(packed, packed.matchings, i, trial)
            if loss > 0 and total + loss > best + TIE:
                best = total + loss
                best_loss = loss
                for s in range(place.shape[0]):
                    labels[s] = trial[s]
        if not bound > best + TIE:
            break
        for s in range(place.shape[0]):
            answers[place[s]] += 1.0
    return bound, reduced, best, best_loss


@allocating
def rest_bounds(packed, matchings, i, first, value, option):
    """Most that slots s and later gain in score and distance from each listed candidate, (n_slots + 1, L), or
    regions m and later from those of a `Matching` that use each subset of words before m."""
    n_slots, n_options = option.shape
    P = packed.n_attributes
    gain = np.empty((n_slots, n_options))
    for s in range(n_slots):
        top = first[s]
        for o in range(n_options):
            gain[s, o] = value[top] + 1.0
            if option[s, o] == top:
                gain[s, o] = value[top]
                if top + 1 < first[s + 1]:
                    gain[s, o] = max(value[top], value[top + 1] + 1.0)
    if matchings is not None and matchings.n_words[i] > 0:
        of_words = np.zeros((n_slots // P, n_options))
        for s in range(n_slots):
            for w in range(n_options):
                of_words[s // P, w] -= gain[s, w]
        total, _ = recursion(packed, i, of_words, False, False)
        for m in range(total.shape[0]):
            for subset in range(total.shape[1]):
                total[m, subset] = -total[m, subset]
        return total
    rest = np.zeros((n_slots + 1, n_options))
    for s in range(n_slots - 1, -1, -1):
        for c in range(n_options):
            rest[s, c] = rest[s + 1, c] + gain[s, c]
    return rest


@allocating
def extend(packed, matchings, i, option, place, s, apart, rest):
    """Write distances of the labels up to slot s, given by `place`, from the candidates: rows of `apart` are
    those of `rest`; returns the least, and the least with the rest's bound (infinite within a region)."""
    P = packed.n_attributes
    least = np.inf
    bound = np.inf
    if matchings is not None and matchings.n_words[i] > 0:
        if (s + 1) % P > 0:
            return least, bound
        row = s // P + 1
        allowed = words_allowed(packed, i)
        for subset in range(apart.shape[1]):
            apart[row, subset] = np.inf
        for w in range(option.shape[1]):
            away = 0.0
            for slot in range(s + 1 - P, s + 1):
                away += option[slot, w] != place[slot]
            for subset in range(apart.shape[1]):
                then = subset_after(allowed, row - 1, subset, w)
                if then >= 0:
                    apart[row, then] = min(apart[row, then], apart[row - 1, subset] + away)
    else:
        row = s + 1
        for c in range(option.shape[1]):
            apart[row, c] = apart[s, c] + (option[s, c] != place[s])
    for c in range(apart.shape[1]):
        if rest[row, c] < np.inf:
            least = min(least, apart[row, c])
            bound = min(bound, apart[row, c] + rest[row, c])
    return least, bound


@allocating
def branch_and_bound(packed, matchings, i, scores, labels, most_nodes, best, best_loss):
    """Improve `labels` of value `best` to the labeling with the largest U: depth-first over slots, best
    labels first, bounded by the relaxation's prices and by the distances from all candidates.

    Returns U, loss, and a bound on U: U itself, or that of the root beyond `most_nodes` partial labelings;
    with none, only labelings that answered prices are tried."""
    P = packed.n_attributes
    first, label, value = slot_lists(packed, i, scores, 0.0)
    option = option_places(packed, matchings, i, first, label)
    rest = rest_bounds(packed, matchings, i, first, value, option)
    apart = np.empty(rest.shape)
    near = np.inf
    for c in range(rest.shape[1]):
        used = matchings is not None and matchings.n_words[i] > 0 and c > 0
        apart[0, c] = np.inf if used else 0.0
        near = min(near, apart[0, c] + rest[0, c])
    if not near > best + TIE:
        return best, best_loss, best
    root, reduced, best, best_loss = relaxed(
        packed, matchings, i, first, label, value, option, most_nodes == 0, labels, best, best_loss
    )
    root = min(root, near)
    if not root > best + TIE:
        return best, best_loss, best
    if most_nodes == 0:
        return best, best_loss, root
    n_slots = labels.shape[0]
    ahead = np.zeros(n_slots + 1)  # best reduced scores of slots s and later
    for s in range(n_slots - 1, -1, -1):
        most = reduced[first[s]]
        for j in range(first[s] + 1, first[s + 1]):
            most = max(most, reduced[j])
        ahead[s] = ahead[s + 1] + most
    total = np.zeros(n_slots + 1)
    spent = np.zeros(n_slots + 1)  # reduced scores before slot s
    place = np.empty(n_slots, np.int64)
    for s in range(n_slots):
        place[s] = first[s]
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
        least, bound = extend(packed, matchings, i, option, place, s, apart, rest)
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
