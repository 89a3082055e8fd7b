r"""Dual steps on the convex problem of a round: pairwise Frank-Wolfe with line search, bag by bag.

With dual variables :math:`\alpha_i(Z) \ge 0`, :math:`\sum_Z \alpha_i(Z) \le 1`, bag weights :math:`v_i` of
mean 1, and :math:`w = \frac1{\lambda N} \sum_i v_i \sum_Z \alpha_i(Z) (\bar\Phi_i - \Phi(\mathcal X_i, Z))`,
the dual value is :math:`\frac1N \sum_i v_i \sum_Z \alpha_i(Z) \Delta_A(Z, \mathcal Z_i) - \frac\lambda2
\|w\|^2`. A visit finds the bag's most violating labeling and moves mass to it from the least violating
labeling with mass, by line search; then up to `INNER` more such moves between known labelings.

References
----------
Lacoste-Julien, Jaggi, Schmidt and Pletscher, ICML 2013.
"""

from typing import NamedTuple

import numpy as np

from cuelearn.core.compiled import inlined, inner, loop
from cuelearn.mms.candidates import bag_of, words_of
from cuelearn.mms.inference import best_candidate, find, reached
from cuelearn.mms.relaxation import TIE
from cuelearn.mms.spaces import Block

__all__ = ["FINEST", "Dual", "frank_wolfe"]

#: Steps between known labelings after each search.
INNER = 3
#: Most labelings kept per bag.
MOST_LABELINGS = 256
#: Lower limit of the dual value to which gaps are relative.
FINEST = 1e-7


class Dual(NamedTuple):
    """Dual variables of all bags: known labelings, their shares and losses."""

    labels: np.ndarray  # (room, n_slots): one labeling of every bag per row, as columns
    share: np.ndarray  # (n_bags, room)
    loss: np.ndarray  # (n_bags, room)
    count: np.ndarray  # (n_bags,)

    @classmethod
    def empty(cls, n_bags, n_slots):
        share, loss = np.zeros((2, n_bags, 8))
        return cls(np.zeros((8, n_slots), np.int32), share, loss, np.zeros(n_bags, np.int64))

    def with_room(self, bag_of_slot):
        """If a bag is full, drop labelings without mass, and double the room if needed."""
        room = len(self.labels)
        if self.count.max() < room:
            return self
        held = self.share > 0.0
        order = np.argsort(~held, axis=1, kind="stable")
        count = held.sum(axis=1)
        values = [np.take_along_axis(a, order, axis=1) for a in (self.share, self.loss)]
        labels = np.take_along_axis(self.labels, order[bag_of_slot].T, axis=0)
        if 2 * count.max() > room and room < MOST_LABELINGS:
            values = [np.concatenate([a, np.zeros_like(a)], axis=1) for a in values]
            labels = np.concatenate([labels, np.zeros_like(labels)])
        return Dual(labels, *values, count)

    def coefficients(self, candidates, target):
        """Each instance's part of each hyperplane, times lambda N."""
        coef = self.share.sum(axis=1)[candidates.bag_of, None] * target
        instance = np.repeat(np.arange(candidates.n_instances), candidates.n_attributes)
        for v, labels in enumerate(self.labels):
            share = self.share[candidates.bag_of[instance], v]
            used = share > 0.0
            np.subtract.at(coef, (instance[used], labels[used]), share[used])
        return coef


@inner
def remember(known, share, loss, count, i, labels, new_loss):
    """Number of a labeling of bag i, added if new; -1 without room."""
    for v in range(count[i]):
        s = 0
        while s < labels.shape[0] and known[v, s] == labels[s]:
            s += 1
        if s == labels.shape[0]:
            return v
    place = count[i]
    if place < known.shape[0]:
        count[i] += 1
    else:
        place = 0
        for v in range(1, share.shape[1]):
            if share[i, v] < share[i, place]:
                place = v
        if share[i, place] != 0.0:
            return -1
    for s in range(labels.shape[0]):
        known[place, s] = labels[s]
    share[i, place] = 0.0
    loss[i, place] = new_loss
    return place


@inner
def violations(target, scores, P, known, loss, count, out):
    """Loss plus score minus the target's score of known labelings."""
    aim_score = reached(target, scores)
    for v in range(count):
        total = 0.0
        for s in range(known.shape[1]):
            total += scores[s // P, known[v, s]]
        out[v] = loss[v] + total - aim_score


@inner
def direction(target, P, to, away, known, unit, row_of, column_of, size_of):
    """Entries of the change of w when mass moves between labelings (-1: none); returns their number."""
    n = 0
    if to < 0 or away < 0:
        sign = unit if to >= 0 else -unit
        for m in range(target.shape[0]):
            for k in range(target.shape[1]):
                if target[m, k] != 0.0:
                    row_of[n] = m
                    column_of[n] = k
                    size_of[n] = sign * target[m, k]
                    n += 1
    for s in range(known.shape[1]):
        if to >= 0 and away >= 0 and known[to, s] == known[away, s]:
            continue
        if to >= 0:
            row_of[n] = s // P
            column_of[n] = known[to, s]
            size_of[n] = -unit
            n += 1
        if away >= 0:
            row_of[n] = s // P
            column_of[n] = known[away, s]
            size_of[n] = unit
            n += 1
    return n


@inner
def least_violating(violation, share, count):
    """The least violating labeling with mass (-1: none), its violation and mass."""
    away = -1
    total = 0.0
    for v in range(count):
        total += share[v]
    mass = 1.0 - total
    least = 0.0 if mass > 1e-15 else np.inf
    for v in range(count):
        if share[v] > 0.0 and violation[v] < least - TIE:
            away = v
            least = violation[v]
            mass = share[v]
    return away, least, mass


class Work(NamedTuple):
    """Scratch arrays of a block."""

    labels: np.ndarray  # the labeling found, of all bags
    violation: np.ndarray  # of known labelings
    row: np.ndarray  # entries of a step's direction
    column: np.ndarray
    size: np.ndarray

    @classmethod
    def empty(cls, room, n_slots, n_scores):
        n_entries = n_scores + 2 * n_slots
        row, column = np.empty((2, n_entries), np.int64)
        return cls(np.empty(n_slots, np.int32), np.empty(room), row, column, np.empty(n_entries))


@inlined
def write_losses(bag, words, scores, target, value, bound, labels, losses, scratch):
    """Write a bag's relaxed loss (5.5), by the score of `target`, ambiguous surrogate loss (5.2), and whether
    these are unproven."""
    best = best_candidate(bag, words, scores, False, labels, scratch)
    aim = reached(target, scores)
    losses[0] = value - aim
    losses[1] = value - best
    for row in range(2):
        if losses[row] < 0.0:
            losses[row] = 0.0
    losses[2] = bound > max(value, min(aim, best)) + TIE * (1.0 + abs(value))


@loop
def visit_bags(packed, block, work, dual, lam, n_bags, most_nodes, losses, scratch):
    """Take steps on a block, of whose bags `dual` has labelings, or, with room in `losses`, write only these;
    returns the sum of the bags' gaps, each at its visit (NaN: overflow), and the steps. It is one function as
    `find` takes seconds to compile."""
    bags, first, base, products, targets, delta, weights = block
    known_labels, share, loss, count = dual
    P = packed.n_attributes
    of = packed.attribute
    violation = work.violation
    row = work.row
    column = work.column
    size = work.size
    gaps = 0.0
    n_updates = 0
    for b in range(bags.shape[0]):
        i = bags[b]
        low = first[b]
        high = first[b + 1]
        weight = weights[b]
        if weight == 0.0:
            continue
        unit = weight / (lam * n_bags)
        scores = base[low:high]
        target = targets[low:high]
        known = known_labels[:, low * P : high * P]
        change = delta[low:high]
        labels = work.labels[low * P : high * P]
        bag = bag_of(packed, i)
        words = words_of(packed.matchings, i)
        value, found_loss, bound = find(bag, words, scores, labels, most_nodes, scratch)
        if b < losses.shape[0]:
            write_losses(bag, words, scores, target, value, bound, labels, losses[b], scratch)
            continue
        if np.isnan(value):
            return value, n_updates
        excess = value - reached(target, scores)
        to = remember(known, share, loss, count, i, labels, found_loss) if excess > TIE else -1
        n_known = count[i]
        violations(target, scores, P, known, loss[i], n_known, violation)
        held = 0.0
        for v in range(n_known):
            held += share[i, v] * violation[v]
        gaps += weight * max(0.0, max(0.0, excess) - held) / n_bags
        for step in range(INNER + 1):
            if step > 0:
                violations(target, scores, P, known, loss[i], n_known, violation)
                to = -1
                largest = 0.0
                for v in range(n_known):
                    if violation[v] > largest + TIE:
                        to = v
                        largest = violation[v]
            away, least, most = least_violating(violation, share[i], n_known)
            gain = (violation[to] if to >= 0 else 0.0) - least
            if to == away or gain <= TIE:
                break
            n_updates += 1
            n = direction(target, P, to, away, known, unit, row, column, size)
            length = 0.0
            for e in range(n):
                for f in range(n):
                    if column[f] == column[e]:
                        length += size[e] * size[f] * products[of[column[e]], low + row[e], low + row[f]]
            mass = most if length <= 0.0 else min(most, weight * gain / (n_bags * lam * length))
            if away >= 0:
                share[i, away] = 0.0 if mass >= most else share[i, away] - mass
            if to >= 0:
                share[i, to] += mass
            for e in range(n):
                part = mass * size[e]
                k = column[e]
                change[row[e], k] += part
                line = products[of[k], low + row[e]]
                for m in range(high - low):
                    scores[m, k] += part * line[low + m]
        for m in range(high - low):
            for k in range(change.shape[1]):
                if change[m, k] == 0.0:
                    continue
                line = products[of[k], low + m]
                for r in range(high, base.shape[0]):
                    base[r, k] += change[m, k] * line[r]
    return gaps, n_updates


#: Of a visit with steps.
NO_LOSSES = np.empty((0, 3))


def visit(problem, block, dual, losses=NO_LOSSES):
    work = Work.empty(*dual.labels.shape, block.scores.size)
    setting = problem.lam, problem.candidates.n_bags, problem.most_nodes
    return visit_bags(problem.candidates.packed, block, work, dual, *setting, losses, problem.scratch)


def losses_of_bags(problem, first, last):
    """`write_losses` of bags `first` to ``last - 1``, one per row."""
    starts = problem.candidates.bag_starts[first : last + 1]
    rows = slice(int(starts[0]), int(starts[-1]))
    scores = problem.space.scores(rows)
    bags = np.arange(first, last)
    products = np.empty((0, 0, 0))
    ones = np.ones(len(bags))
    block = Block(bags, starts - starts[0], scores, products, problem.target[rows], scores, ones)
    losses = np.empty((len(bags), 3))
    visit(problem, block, Dual.empty(0, scores.shape[0] * problem.candidates.n_attributes), losses)
    return losses


def frank_wolfe(problem, dual, n_epochs, tol, bar, best=np.inf):
    """Dual steps on a `ConvexProblem`, from the previous round's shares, until the gap is at most `tol` times
    the dual value, or the bound shows that `best` cannot be improved by more; returns dual value, relaxed
    value, objective, epochs, steps and `Dual`."""
    space = problem.space
    candidates = problem.candidates
    lam = problem.lam
    N = candidates.n_bags
    P = candidates.n_attributes
    if dual is None:
        dual = Dual.empty(N, candidates.n_instances * P)
    bag_of_slot = np.repeat(candidates.bag_of, P)
    coef = problem.weights[candidates.bag_of, None] * dual.coefficients(candidates, problem.target)
    space.place(coef / (lam * N))
    n_updates = 0
    for epoch in range(1, n_epochs + 1):
        dual = dual.with_room(bag_of_slot)
        gaps = 0.0
        for rows, block in problem.blocks():
            slots = rows
            if P != 1:
                slots = (rows[:, None] * P + np.arange(P)).ravel()
            own = dual._replace(labels=np.ascontiguousarray(dual.labels[:, slots]))  # one type for numba
            gap, updates = visit(problem, block, own)
            problem.refuse_unfinished(gap)
            gaps = gaps + gap
            n_updates = n_updates + updates
            dual.labels[:, slots] = own.labels
            space.move(rows, block.delta)
        bar.update(N)
        losses = problem.weights[:, None] * (dual.share * dual.loss)
        bound = float(losses.sum() / N - 0.5 * lam * space.squared_norm())
        wanted = tol * max(bound, FINEST)
        done = bound >= (1.0 - tol) * best
        if done or gaps <= wanted or epoch == n_epochs:  # the bags' gaps are from different moments
            relaxed, objective = problem.value()
            if done or relaxed - bound <= wanted:
                break
    return bound, relaxed, objective, epoch, n_updates, dual
