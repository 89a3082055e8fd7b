"""Compiled visits to a block of bags, one bag after the other: Pegasos steps (thesis Algorithm 9) and block Frank-Wolfe steps.

``base`` holds the block's scores by the unscaled hyperplanes and is kept up to date through the inner products `gram` as bags of the block
are visited; ``delta`` collects by how much each instance moves each hyperplane.
"""

import numpy as np
from numba import njit

from cuelearn.mms.inference import exact_violator, violator

#: Entries of the state: steps counted from 1, scale of the hyperplanes, their squared norm, sum of the losses of the steps' labelings,
#: updates, projections, 1 where an exact search gave up.
STEP, SCALE, NORM, LOSS, UPDATES, PROJECTIONS, FAILED = range(7)


@njit(cache=True)
def find(packed, i, scores, labels, exact, most_nodes):
    """The most violating labeling of a bag by the chosen search."""
    if exact:
        return exact_violator(packed, i, scores, labels, most_nodes)
    return violator(packed, i, scores, labels)


@njit(cache=True)
def reached(target, scores):
    """Score of the mean best candidate."""
    total = 0.0
    for m in range(target.shape[0]):
        for k in range(target.shape[1]):
            if target[m, k] != 0.0:
                total += target[m, k] * scores[m, k]
    return total


@njit(cache=True)
def attributes_of(packed):
    """Attribute of every column."""
    of = np.empty(packed.column[-1], np.int64)
    for p in range(packed.n_attributes):
        of[packed.column[p] : packed.column[p + 1]] = p
    return of


@njit(cache=True)
def pegasos_block(packed, bags, first, base, gram, target, delta, state, lam, radius, batch, exact, most_nodes):
    r"""Steps of Algorithm 9 over a block of bags, `batch` of them per step.

    .. math:: w \leftarrow (1 - 1/t) w + \frac{1}{\lambda K t} \sum_{k \in A_t^+} (\bar\Phi_k - \Phi(\mathcal X_k, \hat Z_k)),
              \qquad w \leftarrow \min(1, R / \|w\|)\, w

    Parameters
    ----------
    bags : ndarray of int64, shape (n,)
    first : ndarray of int64, shape (n + 1,)
        First row of each in the block.
    base, delta : ndarrays, shape (n_rows, n_columns)
    gram : ndarray, shape (n_attributes, n_rows, n_rows)
    target : ndarray, shape (n_rows, n_columns)
    state : ndarray, shape (7,)
    """
    of = attributes_of(packed)
    P = packed.n_attributes
    room = base.shape[0] * base.shape[1]
    row_of, column_of = np.empty(room, np.int64), np.empty(room, np.int64)
    size_of, score_of = np.empty(room), np.empty(room)
    labels = np.empty(base.shape[0] * P, np.int32)
    for low in range(0, bags.shape[0], batch):
        high = min(low + batch, bags.shape[0])
        n, scale = 0, state[SCALE]
        for b in range(low, high):
            i = bags[b]
            scores = base[first[b] : first[b + 1]] * scale
            aim = target[first[b] : first[b + 1]]
            n_slots = scores.shape[0] * P
            value, loss = find(packed, i, scores, labels[:n_slots], exact, most_nodes)
            if np.isnan(value):
                state[FAILED] = 1.0
                return
            if value - reached(aim, scores) <= 0.0:
                continue
            state[UPDATES] += 1.0
            state[LOSS] += loss / (high - low)
            for m in range(scores.shape[0]):
                for p in range(P):
                    worst = labels[m * P + p]
                    for k in range(packed.column[p], packed.column[p + 1]):
                        size = aim[m, k]
                        if k == worst:
                            size -= 1.0
                        if size != 0.0:
                            row_of[n], column_of[n], size_of[n], score_of[n] = first[b] + m, k, size, scores[m, k]
                            n += 1
        t = state[STEP]
        state[STEP] = t + 1.0
        shrink = 1.0 - 1.0 / t
        norm = state[NORM] * shrink * shrink
        if shrink == 0.0:  # the first step of all: nothing is left of what was
            base[:] = 0.0
            delta[:] = 0.0
            scale = 1.0
        else:
            scale *= shrink
        step = 1.0 / (lam * (high - low) * t)
        for e in range(n):
            norm += 2.0 * shrink * step * size_of[e] * score_of[e]
            for f in range(n):
                if column_of[f] == column_of[e]:
                    norm += step * step * size_of[e] * size_of[f] * gram[of[column_of[e]], row_of[e], row_of[f]]
        for e in range(n):
            size, k = step * size_of[e] / scale, column_of[e]
            delta[row_of[e], k] += size
            products = gram[of[k], row_of[e]]
            for r in range(first[high], base.shape[0]):  # rows of bags visited before are not needed again
                base[r, k] += size * products[r]
        norm = max(norm, 0.0)
        if norm > radius * radius:
            scale *= radius / np.sqrt(norm)
            norm = radius * radius
            state[PROJECTIONS] += 1.0
        state[NORM], state[SCALE] = norm, scale


@njit(cache=True)
def frank_wolfe_block(packed, bags, first, base, gram, target, mass, taken, loss_part, delta, state, lam, n_bags, exact, most_nodes):
    r"""Dual ascent over a block of bags: each bag's dual variables move to the vertex of its most violating labeling by exact line search.

    With :math:`w = \frac1{\lambda N} \sum_i (a_i \bar\Phi_i - \sum_Z \alpha_i(Z) \Phi(\mathcal X_i, Z))`, :math:`a_i = \sum_Z \alpha_i(Z) \le 1`,
    the dual value is :math:`\frac1N \sum_i \sum_Z \alpha_i(Z) \Delta_A(Z, \mathcal Z_i) - \frac\lambda2 \|w\|^2`.

    Parameters
    ----------
    mass : ndarray, shape (n_bags,)
        :math:`a_i` of all bags.
    taken : ndarray, shape (n_rows, n_columns)
        Of the block: by how much of `mass` each label is taken by the violating labelings.
    loss_part : ndarray, shape (n_bags,)
        :math:`\sum_Z \alpha_i(Z) \Delta_A`.

    Returns
    -------
    float
        Sum of the bags' duality gaps, each when it was visited.
    """
    of = attributes_of(packed)
    P = packed.n_attributes
    labels = np.empty(base.shape[0] * P, np.int32)
    unit = 1.0 / (lam * n_bags)
    gaps = 0.0
    for b in range(bags.shape[0]):
        i = bags[b]
        low, high = first[b], first[b + 1]
        scores, aim, own = base[low:high], target[low:high], taken[low:high]
        n_slots = scores.shape[0] * P
        value, loss = find(packed, i, scores, labels[:n_slots], exact, most_nodes)
        if np.isnan(value):
            state[FAILED] = 1.0
            return gaps
        violated = value - reached(aim, scores) > 0.0
        new_mass, new_loss = (1.0, float(loss)) if violated else (0.0, 0.0)
        change = np.empty(scores.shape)  # of the instance's part in w
        along = 0.0
        for m in range(scores.shape[0]):
            for k in range(scores.shape[1]):
                there = -1.0 if violated and labels[m * P + of[k]] == k else 0.0
                there += new_mass * aim[m, k]
                here = mass[i] * aim[m, k] - own[m, k]
                change[m, k] = unit * (there - here)
                along += change[m, k] * scores[m, k]
        gap = (new_loss - loss_part[i]) / n_bags - lam * along
        gaps += max(gap, 0.0)
        length = 0.0
        for k in range(scores.shape[1]):
            products = gram[of[k]]
            for m in range(scores.shape[0]):
                if change[m, k] == 0.0:
                    continue
                for o in range(scores.shape[0]):
                    length += change[m, k] * change[o, k] * products[low + m, low + o]
        if gap <= 0.0:
            continue
        if length <= 0.0:
            size = 1.0
        else:
            size = min(1.0, gap / (lam * length))
        state[UPDATES] += 1.0
        state[NORM] += 2.0 * size * along + size * size * length
        mass[i] += size * (new_mass - mass[i])
        loss_part[i] += size * (new_loss - loss_part[i])
        for m in range(scores.shape[0]):
            for k in range(scores.shape[1]):
                own[m, k] *= 1.0 - size
                if violated and labels[m * P + of[k]] == k:
                    own[m, k] += size
                if change[m, k] != 0.0:
                    moved = size * change[m, k]
                    delta[low + m, k] += moved
                    products = gram[of[k], low + m]
                    for r in range(high, base.shape[0]):
                        base[r, k] += moved * products[r]
    return gaps
