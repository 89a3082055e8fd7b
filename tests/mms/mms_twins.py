"""Plain twins of the operations on candidate labeling sets, by enumerating all labelings; and bags for them.

A labeling is a tuple of tuples, ``labeling[m][p]``; a candidate set a list of labelings; the scores of a bag
a list of one matrix per attribute, ``scores[p][m][k]``.
"""

import heapq
import itertools

import numpy as np


def tuples(array):
    """Labelings of an array (L, M) or (L, M, P)."""
    array = np.asarray(array)
    array = array[:, :, None] if array.ndim == 2 else array
    return [tuple(tuple(int(k) for k in row) for row in labeling) for labeling in array]


def all_labelings(n_instances, n_labels):
    one = list(itertools.product(*(range(k) for k in n_labels)))
    return list(itertools.product(one, repeat=n_instances))


def matching_labelings(words, allowed, null):
    """All ways to give regions a word or null, no word twice, not all null; words in order, null last."""
    n_regions, width = np.shape(allowed)
    found = []
    for choice in itertools.product([*range(1, width), 0], repeat=n_regions):
        used = [w for w in choice if w > 0]
        if used and len(set(used)) == len(used) and all(allowed[m][w] for m, w in enumerate(choice)):
            found.append(
                tuple(tuple(null) if w == 0 else tuple(int(k) for k in words[w - 1]) for w in choice)
            )
    return found


def hamming(first, second):
    return sum(a != b for x, z in zip(first, second, strict=True) for a, b in zip(x, z, strict=True))


def ambiguous_loss(labeling, candidates):
    return min(hamming(labeling, other) for other in candidates)


def slot_set(candidates, m, p):
    """Z(m): labels of attribute p that some candidate gives instance m."""
    return {labeling[m][p] for labeling in candidates}


def slot_loss(labeling, candidates):
    """Sum over slots of the single-instance ambiguous losses."""
    return sum(
        k not in slot_set(candidates, m, p) for m, row in enumerate(labeling) for p, k in enumerate(row)
    )


def score(scores, labeling):
    return sum(float(scores[p][m][k]) for m, row in enumerate(labeling) for p, k in enumerate(row))


def best_value(scores, candidates, priors=None):
    """Largest candidate score, each multiplied by its prior over the largest."""
    return max(weighted(scores, candidates, priors))


def weighted(scores, candidates, priors=None):
    weights = np.ones(len(candidates)) if priors is None else np.asarray(priors, dtype=float) / max(priors)
    return [w * score(scores, labeling) for w, labeling in zip(weights, candidates, strict=True)]


def best_average(scores, candidates, n_labels, priors=None):
    """Mean label indicators of the best candidates, a matrix per attribute: the subgradient of 5.4.4."""
    values = weighted(scores, candidates, priors)
    best = [c for c, v in enumerate(values) if v >= max(values) - 1e-9 * (1.0 + abs(max(values)))]
    out = [np.zeros((len(candidates[0]), k)) for k in n_labels]
    for c in best:
        for m, row in enumerate(candidates[c]):
            for p, k in enumerate(row):
                out[p][m, k] += (1.0 if priors is None else priors[c] / max(priors)) / len(best)
    return out


def violation(scores, labeling, candidates):
    """U of a labeling: joint ambiguous loss plus score."""
    return ambiguous_loss(labeling, candidates) + score(scores, labeling)


def most_violating(scores, candidates, n_labels):
    outside = [z for z in all_labelings(len(candidates[0]), n_labels) if z not in set(candidates)]
    if not outside:
        return -np.inf, []
    values = [violation(scores, z, candidates) for z in outside]
    best = max(values)
    return best, [z for z, v in zip(outside, values, strict=False) if v >= best - 1e-9]


def best_by_slots(scores, candidates, n_labels):
    """Largest score plus *sum of slot losses* outside the candidates: what Algorithm 10 looks for."""
    outside = [z for z in all_labelings(len(candidates[0]), n_labels) if z not in set(candidates)]
    return max((slot_loss(z, candidates) + score(scores, z) for z in outside), default=-np.inf)


def algorithm_10(scores, candidates, n_labels, *, printed=False):
    """Thesis Algorithm 10, line by line.

    As printed, the sums of lines 5 and 12 leave out the losses by which line 3 sorts, an index vector is
    pushed once for each of its parents, and an index may run past the last label, which ends in an
    IndexError. Corrected, the sums hold the losses, visited index vectors are remembered, and no index passes
    the last label.
    Returns a labeling, None where every labeling is a candidate, and the number of iterations.
    """
    P, slots = len(n_labels), [(m, p) for m in range(len(candidates[0])) for p in range(len(n_labels))]
    gained = {
        (m, p): [float(scores[p][m][k]) + (k not in slot_set(candidates, m, p)) for k in range(n_labels[p])]
        for m, p in slots
    }
    ranked = {s: sorted(range(n_labels[s[1]]), key=lambda k, s=s: -gained[s][k]) for s in slots}

    def entry(j):
        chosen = [ranked[s][at] for s, at in zip(slots, j, strict=True)]
        if printed:
            total = sum(float(scores[p][m][k]) for (m, p), k in zip(slots, chosen, strict=True))
        else:
            total = sum(gained[s][k] for s, k in zip(slots, chosen, strict=True))
        labeling = tuple(tuple(chosen[m * P : m * P + P]) for m in range(len(candidates[0])))
        return -total, j, labeling

    start = (0,) * len(slots)
    heap, visited, inside, pops = [entry(start)], {start}, set(candidates), 0
    while heap:
        _, j, labeling = heapq.heappop(heap)
        pops += 1
        for at in range(len(slots)):
            raised = (*j[:at], j[at] + 1, *j[at + 1 :])
            if printed:
                heapq.heappush(heap, entry(raised))
            elif raised not in visited and raised[at] < n_labels[slots[at][1]]:
                visited.add(raised)
                heapq.heappush(heap, entry(raised))
        if labeling not in inside:
            return labeling, pops
    return None, pops


def surrogate(scores, candidates, n_labels, priors=None):
    """The loss (5.2), with the exact search."""
    value, _ = most_violating(scores, candidates, n_labels)
    return max(0.0, value - best_value(scores, candidates, priors))


def prediction(scores, n_instances):
    """What a classifier says without a caption: the first best label of every slot."""
    return tuple(tuple(int(np.argmax(part[m])) for part in scores) for m in range(n_instances))


def random_listed(rng, n_instances, n_labels, most=8):
    every = all_labelings(n_instances, n_labels)
    number = int(rng.integers(1, min(most, len(every)) + 1))
    return [every[k] for k in rng.permutation(len(every))[:number]]


def random_matching(rng, n_regions, n_labels, null, most_words=3):
    """Words and what each region may take, with at least one candidate."""
    every = [word for word in itertools.product(*(range(k) for k in n_labels)) if word != tuple(null)]
    number = int(rng.integers(1, min(most_words, len(every)) + 1))
    words = np.array([every[k] for k in rng.permutation(len(every))[:number]], dtype=np.int64)
    while True:
        allowed = rng.random((n_regions, number + 1)) < rng.choice([0.5, 0.8, 1.0])
        if matching_labelings(words, allowed, null):
            return words, allowed


def random_scores(rng, n_instances, n_labels, spread=None):
    """Scores of a bag; small whole numbers (with ties) or normal ones."""
    spread = rng.choice([0.1, 1.0, 3.0]) if spread is None else spread
    whole = rng.random() < 0.3
    return [
        rng.integers(-2, 3, (n_instances, k)).astype(float)
        if whole
        else spread * rng.normal(size=(n_instances, k))
        for k in n_labels
    ]
