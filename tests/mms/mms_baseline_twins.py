"""Slow and plain versions of the rivals of MMS, and their problems for a conic solver."""

import cvxpy as cp
import numpy as np
from plain_mkl import minimum
from scipy.spatial.distance import directed_hausdorff


def svm_optimum(X, signs, bounds, free_bias=True):
    """Least objective of a linear SVM and its solution, bounds the C of each sample."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = bounds @ cp.pos(1 - cp.multiply(signs, X @ w + b))
    objective = 0.5 * cp.sum_squares(w) + loss + (0 if free_bias else 0.5 * cp.square(b))
    return minimum(objective), w.value, float(b.value)


def m3miml_optimum(bags, label_sets, n_labels, C):
    """M3MIML as one program over all labels, its constraints written down bag by bag."""
    W, b = cp.Variable((n_labels, bags[0].shape[1])), cp.Variable(n_labels)
    terms = [0.5 * cp.sum_squares(W)]
    for bag, labels in zip(bags, label_sets, strict=True):
        for k in range(n_labels):
            if k in labels:
                terms.append(C * cp.pos(1 - (bag.mean(axis=0) @ W[k] + b[k])))
            else:
                terms += [C * cp.pos(1 + x @ W[k] + b[k]) for x in bag]
    return minimum(sum(terms)), W.value, b.value


def m3miml_primal(bags, label_sets, W, b, C):
    """The objective that `m3miml_optimum` minimises, in plain loops."""
    total = 0.5 * np.sum(W**2)
    for bag, labels in zip(bags, label_sets, strict=True):
        for k in range(len(W)):
            if k in labels:
                total += C * max(0.0, 1.0 - (np.mean(bag, axis=0) @ W[k] + b[k]))
            else:
                total += C * sum(max(0.0, 1.0 + x @ W[k] + b[k]) for x in bag)
    return total


def hausdorff(A, B):
    return max(directed_hausdorff(A, B)[0], directed_hausdorff(B, A)[0])


def clusters(distances, medoids):
    """The alternation of k-medoids from given first medoids, in plain loops; medoids ascending."""
    medoids = sorted(int(m) for m in medoids)
    while True:
        members = {m: [m] for m in medoids}
        for i in range(len(distances)):
            if i not in members:
                members[min(medoids, key=lambda m, i=i: (distances[i, m], m))].append(i)
        updated = []
        for m, items in members.items():
            totals = {i: float(np.sum(distances[i, sorted(items)], dtype=np.float64)) for i in sorted(items)}
            best = min(totals, key=totals.get)
            updated.append(best if totals[best] < totals[m] else m)
        updated.sort()
        if updated == medoids:
            return medoids
        medoids = updated


def possible(candidates, i):
    """For each instance of bag i the labels of its candidates, one set per attribute."""
    bag = candidates.bag(i)
    return [[set(bag[:, m, p].tolist()) for p in range(bag.shape[2])] for m in range(bag.shape[1])]


def best_candidate(scores, candidates):
    """The first candidate with the largest sum of scores, for every bag; scores is a list by attribute."""
    rows = []
    for i in range(candidates.n_bags):
        first = candidates.bag_starts[i]
        best, top = None, -np.inf
        for labeling in candidates.iterate(i):
            total = sum(
                scores[p][first + m, k] for m, labels in enumerate(labeling) for p, k in enumerate(labels)
            )
            if total > top:
                best, top = labeling, total
        rows.append(best)
    return np.concatenate(rows)
