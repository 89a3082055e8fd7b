"""Compiled visits to a block of bags, one bag after the other: Pegasos steps (thesis Algorithm 9) and pairwise Frank-Wolfe steps.

``base`` holds the block's scores by the unscaled hyperplanes and is kept up to date through the inner products `gram` as bags of the block
are visited; ``delta`` collects by how much each instance moves each hyperplane.
"""

import numpy as np
from numba import njit

from cuelearn.mms.inference import find

#: Entries of the state: steps counted from 1, scale of the hyperplanes, their squared norm, sum of the losses of the steps' labelings,
#: updates, projections, 1 where an exact search gave up.
STEP, SCALE, NORM, LOSS, UPDATES, PROJECTIONS, FAILED = range(7)


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
def pegasos_block(packed, bags, first, base, gram, target, delta, state, lam, radius, batch, most_nodes):
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
            value, loss = find(packed, i, scores, labels[:n_slots], most_nodes)
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
                            row_of[n], column_of[n], size_of[n], score_of[n] = (
                                first[b] + m,
                                k,
                                size,
                                scores[m, k],
                            )
                            n += 1
        t = state[STEP]
        state[STEP] = t + 1.0
        shrink = 1.0 - 1.0 / t
        norm = state[NORM] * shrink * shrink
        if shrink == 0.0:  # the first step of all: nothing is left of what was
            for r in range(base.shape[0]):
                for k in range(base.shape[1]):
                    base[r, k] = delta[r, k] = 0.0
            scale = 1.0
        else:
            scale *= shrink
        step = 1.0 / (lam * (high - low) * t)
        for e in range(n):
            norm += 2.0 * shrink * step * size_of[e] * score_of[e]
            for f in range(n):
                if column_of[f] == column_of[e]:
                    norm += (
                        step * step * size_of[e] * size_of[f] * gram[of[column_of[e]], row_of[e], row_of[f]]
                    )
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
def violations(aim_score, scores, P, labels, losses, count, out):
    """Loss plus score minus the candidates' score of a bag's active labelings, each a row of `labels`."""
    n_slots = scores.shape[0] * P
    for v in range(count):
        total = 0.0
        for s in range(n_slots):
            total += scores[s // P, labels[v, s]]
        out[v] = losses[v] + total - aim_score


@njit(cache=True)
def direction(aim, P, to, away, labels, unit, row_of, column_of, size_of):
    """Entries by which w moves when dual mass goes from one labeling to another; -1 is no labeling. Returns their number."""
    n_regions = aim.shape[0]
    n = 0
    if to < 0 or away < 0:
        sign = unit if to >= 0 else -unit
        for m in range(n_regions):
            for k in range(aim.shape[1]):
                if aim[m, k] != 0.0:
                    row_of[n], column_of[n], size_of[n] = m, k, sign * aim[m, k]
                    n += 1
    for s in range(n_regions * P):
        if to >= 0 and away >= 0 and labels[to, s] == labels[away, s]:
            continue
        if to >= 0:
            row_of[n], column_of[n], size_of[n] = s // P, labels[to, s], -unit
            n += 1
        if away >= 0:
            row_of[n], column_of[n], size_of[n] = s // P, labels[away, s], unit
            n += 1
    return n


@njit(cache=True)
def frank_wolfe_block(
    packed,
    bags,
    first,
    base,
    gram,
    target,
    active,
    share,
    loss,
    count,
    delta,
    state,
    lam,
    n_bags,
    inner,
    most_nodes,
):
    r"""Dual ascent over a block of bags by pairwise Frank-Wolfe steps.

    With dual variables :math:`\alpha_i(Z) \ge 0`, :math:`\sum_Z \alpha_i(Z) \le 1` and
    :math:`w = \frac1{\lambda N} \sum_i \sum_Z \alpha_i(Z) (\bar\Phi_i - \Phi(\mathcal X_i, Z))`, the dual value is
    :math:`\frac1N \sum_i \sum_Z \alpha_i(Z) \Delta_A(Z, \mathcal Z_i) - \frac\lambda2 \|w\|^2`. A visit finds the bag's most violating
    labeling and moves mass to it from the least violating labeling that has some, as far as pays; then up to `inner` more such moves
    between labelings that are known already.

    Parameters
    ----------
    active : ndarray of int32, shape (room, n_slots of the block)
        Known labelings of the block's bags, as columns.
    share, loss : ndarrays, shape (n_bags, room)
        Of all bags: dual variables and ambiguous losses of the known labelings.
    count : ndarray of int64, shape (n_bags,)

    Returns
    -------
    float
        Sum of the bags' duality gaps, each when it was visited.
    """
    of = attributes_of(packed)
    P = packed.n_attributes
    room = active.shape[0]
    labels = np.empty(base.shape[0] * P, np.int32)
    unit = 1.0 / (lam * n_bags)
    violation = np.empty(room)
    gaps = 0.0
    for b in range(bags.shape[0]):
        i = bags[b]
        low, high = first[b], first[b + 1]
        n_regions = high - low
        n_slots = n_regions * P
        scores, aim = base[low:high], target[low:high]
        known = active[:, low * P : high * P]
        value, found_loss = find(packed, i, scores, labels[:n_slots], most_nodes)
        if np.isnan(value):
            state[FAILED] = 1.0
            return gaps
        aim_score = reached(aim, scores)
        to = -1
        if value - aim_score > 0.0:
            for v in range(count[i]):
                same = True
                for s in range(n_slots):
                    if known[v, s] != labels[s]:
                        same = False
                        break
                if same:
                    to = v
                    break
            if (
                to < 0 and count[i] == room
            ):  # one that carries nothing makes place; else the bag waits for more room
                for v in range(room):
                    if share[i, v] == 0.0:
                        to = v
                        break
                if to >= 0:
                    for s in range(n_slots):
                        known[to, s] = labels[s]
                    loss[i, to] = found_loss
            elif to < 0:
                to = count[i]
                count[i] += 1
                for s in range(n_slots):
                    known[to, s] = labels[s]
                share[i, to], loss[i, to] = 0.0, found_loss
        violations(aim_score, scores, P, known, loss[i], count[i], violation)
        held = 0.0
        for v in range(count[i]):
            held += share[i, v] * violation[v]
        gaps += max(0.0, max(0.0, value - aim_score) - held) / n_bags
        entries = n_regions * scores.shape[1] + 2 * n_slots
        row_of, column_of, size_of = (
            np.empty(entries, np.int64),
            np.empty(entries, np.int64),
            np.empty(entries),
        )
        change = np.zeros(scores.shape)
        moved = False
        for step in range(inner + 1):
            if step > 0:
                to, best = -1, 0.0
                for v in range(count[i]):
                    if violation[v] > best:
                        to, best = v, violation[v]
            total = 0.0
            for v in range(count[i]):
                total += share[i, v]
            away, least, most = -1, 0.0, 1.0 - total
            if most <= 1e-15:
                least = np.inf
            for v in range(count[i]):
                if share[i, v] > 0.0 and violation[v] < least:
                    away, least, most = v, violation[v], share[i, v]
            gain = (violation[to] if to >= 0 else 0.0) - least
            if to == away or gain <= 1e-12:
                break
            n = direction(aim, P, to, away, known, unit, row_of, column_of, size_of)
            length, along = 0.0, 0.0
            for e in range(n):
                along += size_of[e] * scores[row_of[e], column_of[e]]
                for f in range(n):
                    if column_of[f] == column_of[e]:
                        length += (
                            size_of[e] * size_of[f] * gram[of[column_of[e]], low + row_of[e], low + row_of[f]]
                        )
            size = most if length <= 0.0 else min(most, gain / (n_bags * lam * length))
            if size >= most and away >= 0:
                share[i, away] = 0.0
            elif away >= 0:
                share[i, away] -= size
            if to >= 0:
                share[i, to] += size
            state[NORM] += 2.0 * size * along + size * size * length
            state[UPDATES] += 1.0
            moved = True
            for e in range(n):
                k, part = column_of[e], size * size_of[e]
                change[row_of[e], k] += part
                products = gram[of[k], low + row_of[e]]
                for m in range(n_regions):
                    scores[m, k] += part * products[low + m]
            if step < inner:
                violations(reached(aim, scores), scores, P, known, loss[i], count[i], violation)
        if not moved:
            continue
        for m in range(n_regions):
            for k in range(scores.shape[1]):
                if change[m, k] != 0.0:
                    delta[low + m, k] += change[m, k]
                    products = gram[of[k], low + m]
                    for r in range(high, base.shape[0]):
                        base[r, k] += change[m, k] * products[r]
    return gaps
