r"""Stochastic subgradient steps on the convex problem of a round (thesis Algorithm 9).

Step t on a bag with a loss, of weight v (mean 1), most violating labeling :math:`\hat Z` and mean joint
feature vector :math:`\bar\Phi` of its best candidates:

.. math:: w \leftarrow (1 - 1/t) w + \frac{v}{\lambda t} (\bar\Phi - \Phi(\mathcal X, \hat Z)),
    \qquad w \leftarrow \min(1, R / \|w\|)\, w
"""

from typing import NamedTuple

import numpy as np

from cuelearn.core.compiled import inner, loop
from cuelearn.mms.candidates import bag_of, words_of
from cuelearn.mms.inference import find, reached

__all__ = ["pegasos"]


class State(NamedTuple):
    step: float  # number of the next step
    scale: float  # factor on the hyperplanes of the scores
    squared_norm: float
    loss: float  # of the labelings moved away from; NaN: overflow
    n_updates: int
    n_projections: int


class Work(NamedTuple):
    """Arrays of a block's steps."""

    labels: np.ndarray  # the most violating labeling
    scores: np.ndarray  # by scaled hyperplanes
    row: np.ndarray  # a step's sparse direction: `size` by row and column, with the `score` there
    column: np.ndarray
    size: np.ndarray
    score: np.ndarray

    @classmethod
    def of(cls, block, n_attributes):
        n_entries = block.scores.size
        row, column = np.empty((2, n_entries), np.int64)
        size, score = np.empty((2, n_entries))
        labels = np.empty(len(block.scores) * n_attributes, np.int32)
        return cls(labels, np.empty_like(block.scores), row, column, size, score)


@inner
def fill_entries(packed, scores, target, labels, first_row, weight, work):
    """A bag's direction, weight times (target - most violating labeling); returns the number of entries."""
    P = packed.n_attributes
    n = 0
    for m in range(scores.shape[0]):
        for p in range(P):
            for k in range(packed.column[p], packed.column[p + 1]):
                size = target[m, k] - 1.0 if k == labels[m * P + p] else target[m, k]
                if size != 0.0:
                    work.row[n] = first_row + m
                    work.column[n] = k
                    work.size[n] = weight * size
                    work.score[n] = scores[m, k]
                    n += 1
    return n


@loop
def pegasos_block(packed, block, work, state, lam, radius, most_nodes, scratch):
    bags, first, base, products, target, delta, weights = block
    of = packed.attribute
    step, scale, norm, total_loss, n_updates, n_projections = state
    row = work.row
    column = work.column
    size = work.size
    score = work.score
    for b in range(bags.shape[0]):
        scores = work.scores[: first[b + 1] - first[b]]
        for m in range(scores.shape[0]):
            for k in range(scores.shape[1]):
                scores[m, k] = base[first[b] + m, k] * scale
        aim = target[first[b] : first[b + 1]]
        own = work.labels[: scores.shape[0] * packed.n_attributes]
        words = words_of(packed.matchings, bags[b])
        value, loss, _ = find(bag_of(packed, bags[b]), words, scores, own, most_nodes, scratch)
        if np.isnan(value):
            return State(step, scale, norm, np.nan, n_updates, n_projections)
        n = 0
        if weights[b] > 0.0 and value - reached(aim, scores) > 0.0:
            n_updates += 1
            total_loss += weights[b] * loss
            n = fill_entries(packed, scores, aim, own, first[b], weights[b], work)
        shrink = 1.0 - 1.0 / step
        norm = norm * shrink * shrink
        scale *= shrink
        eta = 1.0 / (lam * step)
        step += 1.0
        for e in range(n):
            norm += 2.0 * shrink * eta * size[e] * score[e]
            for f in range(n):
                if column[f] == column[e]:
                    norm += eta * eta * size[e] * size[f] * products[of[column[e]], row[e], row[f]]
        for e in range(n):
            move = eta * size[e] / scale
            k = column[e]
            delta[row[e], k] += move
            line = products[of[k], row[e]]
            for r in range(first[b + 1], base.shape[0]):  # only rows still to be visited
                base[r, k] += move * line[r]
        norm = max(norm, 0.0)
        if norm > radius * radius:
            scale *= radius / np.sqrt(norm)
            norm = radius * radius
            n_projections += 1
    return State(step, scale, norm, total_loss, n_updates, n_projections)


def pegasos(problem, n_epochs, bar):
    """Algorithm 9 on a `ConvexProblem` from the current hyperplanes, which count as one step per bag; returns
    a lower bound on the optimum (NaN if none) and the `State`."""
    space = problem.space
    candidates = problem.candidates
    lam = problem.lam
    before = space.weights.copy()
    norm_before = space.squared_norm()
    start = candidates.n_bags
    radius = np.sqrt(2.0 * candidates.bag_sizes.max() * candidates.n_attributes / lam)
    state = State(start + 1.0, 1.0, norm_before, 0.0, 0, 0)
    for _ in range(n_epochs):
        for rows, block in problem.blocks():
            state = state._replace(scale=1.0)
            setting = lam, radius, problem.most_nodes, problem.scratch
            work = Work.of(block, candidates.n_attributes)
            state = pegasos_block(candidates.packed, block, work, state, *setting)
            problem.refuse_unfinished(state.loss)
            space.move(rows, block.delta * state.scale, state.scale)
            problem.visits.append(block.bags.astype(np.min_scalar_type(candidates.n_bags)))
        state = state._replace(squared_norm=space.squared_norm())
        bar.update(candidates.n_bags)
    steps = state.step - 1.0 - start
    if state.n_projections > 0:
        return np.nan, state
    # (start + T) w = start w_0 + T v, v dual feasible since all bags are visited equally often
    total = start + steps
    along = 2.0 * total * start * space.inner(before)
    norm = (total**2 * space.squared_norm() - along + start**2 * norm_before) / steps**2
    return state.loss / steps - 0.5 * lam * norm, state
