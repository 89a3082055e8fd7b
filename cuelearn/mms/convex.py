r"""The convex problem of a round: hyperplanes in two spaces, dual steps and subgradient steps on them.

Bags are visited one by one within blocks, whose scores, inner products and moves are matrix products:
sequential methods run at the speed of these.

Pairwise Frank-Wolfe with line search, bag by bag. With dual variables :math:`\alpha_i(Z) \ge 0`,
:math:`\sum_Z \alpha_i(Z) \le 1`, bag weights :math:`v_i` of mean 1, and :math:`w = \frac1{\lambda N} \sum_i
v_i \sum_Z \alpha_i(Z) (\bar\Phi_i - \Phi(\mathcal X_i, Z))`, the dual value is :math:`\frac1N \sum_i v_i
\sum_Z \alpha_i(Z) \Delta_A(Z, \mathcal Z_i) - \frac\lambda2 \|w\|^2`. A visit finds the bag's most violating
labeling and moves mass to it from the least violating labeling with mass, by line search; then up to `INNER`
more such moves between known labelings.

Pegasos (thesis Algorithm 9). Step t on a bag with a loss, of weight v, most violating labeling :math:`\hat Z`
and mean joint feature vector :math:`\bar\Phi` of its best candidates:

.. math:: w \leftarrow (1 - 1/t) w + \frac{v}{\lambda t} (\bar\Phi - \Phi(\mathcal X, \hat Z)),
    \qquad w \leftarrow \min(1, R / \|w\|)\, w

References
----------
Lacoste-Julien, Jaggi, Schmidt and Pletscher, ICML 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cuelearn.compiled import inlined, inner, loop
from cuelearn.kernels.matrices import warn_indefinite
from cuelearn.kernels.rows import combine, combined_kernel
from cuelearn.mms.candidates import bag_of, words_of
from cuelearn.mms.inference import TIE, best_candidate, find, reached

__all__ = ["LinearSpace"]

ROWS = 2048


class Block(NamedTuple):
    """Bags as compiled loops visit them, their instances side by side."""

    bags: np.ndarray
    first: np.ndarray  # first row of each bag in the block, and the end
    scores: np.ndarray  # (n_rows, n_columns), by unscaled hyperplanes
    products: np.ndarray  # (n_attributes, n_rows, n_rows): inner products of the instances
    target: np.ndarray  # (n_rows, n_columns): mean label indicators of the best candidates
    delta: np.ndarray  # (n_rows, n_columns): changes by instance and hyperplane
    weights: np.ndarray  # of the bags' losses


class Space:
    """Base: `weights` are the hyperplanes of all labels, `columns` those of each attribute."""

    indefinite = {}  # {name: how} of indefinite kernels, which leave no certified bound

    def __init__(self, n_rows, n_labels):
        self.n_rows = n_rows
        self.n_columns = int(sum(n_labels))
        ends = np.cumsum(n_labels)
        self.columns = [slice(end - size, end) for size, end in zip(n_labels, ends, strict=True)]
        self._taken = None, None

    def at(self, rows: slice | np.ndarray) -> Any:
        """`read` with a cache of the last block."""
        if rows is not self._taken[0]:
            self._taken = rows, self.read(rows)
        return self._taken[1]

    def squared_norm(self) -> float:
        return self.inner(self.weights)


class LinearSpace(Space):
    """Hyperplanes as vectors of the feature space, for `solve_mms`.

    Parameters
    ----------
    X : ndarray of float32 or float64, shape (n_instances, n_features)
        With a column of ones for a bias.
    n_labels : sequence of int
        Labels of each attribute.

    Attributes
    ----------
    weights : ndarray, shape (sum of n_labels, n_features)
        In the precision of X; initially zero.
    columns : list of slice
        The rows of `weights` of each attribute.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import LinearSpace
    >>> LinearSpace(np.eye(4), [2, 3]).weights.shape
    (5, 4)
    """

    def __init__(self, X: np.ndarray, n_labels: Sequence[int]):
        super().__init__(len(X), n_labels)
        self.X = X
        self.width = X.shape[1]
        self.weights = np.zeros((self.n_columns, self.width), dtype=X.dtype)

    def read(self, rows: slice | np.ndarray) -> np.ndarray:
        return self.X[rows]

    def scores(self, rows: slice | np.ndarray) -> np.ndarray:
        x = self.at(rows)
        scores = [x @ self.weights[columns].T for columns in self.columns]
        return np.concatenate(scores, axis=1).astype(np.float64, copy=False)

    def products(self, rows: slice | np.ndarray) -> np.ndarray:
        x = self.at(rows)
        products = (x @ x.T).astype(np.float64, copy=False)
        if len(self.columns) == 1:
            return products[None]
        return np.stack([products] * len(self.columns))

    def move(self, rows: slice | np.ndarray, delta: np.ndarray, scale: float = 1.0) -> None:
        """``w <- scale w + sum_m delta[m] x_m`` over some instances."""
        x = self.at(rows)
        dtype = self.weights.dtype
        if scale != 1.0:
            self.weights *= dtype.type(scale)
        for columns in self.columns:
            part = delta[:, columns]
            weights = self.weights[columns]
            touched = np.flatnonzero(part.any(axis=0))  # few labels of many
            if touched.size:
                weights[touched] += part[:, touched].T.astype(dtype) @ x

    def place(self, coef: np.ndarray) -> None:
        """``w <- sum_m coef[m] x_m`` over all instances."""
        self.weights[:] = 0.0
        for start in range(0, self.n_rows, ROWS):
            rows = slice(start, start + ROWS)
            self.move(rows, coef[rows])

    def inner(self, weights: np.ndarray) -> float:
        """Inner product with other hyperplanes."""
        pairs = [(self.weights[columns], weights[columns]) for columns in self.columns]
        return float(sum(np.einsum("ij,ij->", w, v, dtype=np.float64) for w, v in pairs))


def mean_weights(bank):
    return np.full(bank.n_kernels, 1.0 / bank.n_kernels)


class MeanKernel:
    """The mean of a bank's kernels plus 1: one matrix if it fits, else rows on demand."""

    def __init__(self, bank, memory):
        self.bank = bank
        self.weights = mean_weights(bank)
        self.held = None
        if bank.dtype.itemsize * bank.n_samples**2 <= memory:
            out = np.empty((bank.n_samples, bank.n_samples))
            self.held = combined_kernel(bank, self.weights, 1.0, out=out).astype(bank.dtype)
            self.held += bank.dtype.type(1.0)

    def rows(self, rows):
        if self.held is not None:
            return self.held[rows]
        index = np.arange(self.bank.n_samples)[rows]
        step = max(1, self.bank.block_rows())
        parts = [index[k : k + step] for k in range(0, len(index), step)]
        parts = [combine(self.bank.rows(part), self.weights) for part in parts]
        return np.concatenate(parts) + self.bank.dtype.type(1.0)


class KernelSpace(Space):
    """Hyperplanes as coefficients, `weights` of shape (n_rows, sum of n_labels); one bank per attribute,
    possibly shared."""

    width = 1  # inner products are known

    def __init__(self, banks, n_labels, memory):
        super().__init__(banks[0].n_samples, n_labels)
        kernels = {id(bank): MeanKernel(bank, memory) for bank in banks}
        self.kernels = [kernels[id(bank)] for bank in banks]
        self.indefinite = {}
        for p, bank in enumerate(banks):
            of_attribute = ""
            if len(kernels) > 1:
                of_attribute = f" of attribute {p}"
            self.indefinite |= {name + of_attribute: how for name, how in bank.indefinite.items()}
        warn_indefinite(self.indefinite)
        self.weights = np.zeros((self.n_rows, self.n_columns))

    def read(self, rows):
        """Kernel rows of every attribute, shared ones once."""
        taken = {id(kernel): kernel.rows(rows) for kernel in self.kernels}
        return [taken[id(kernel)] for kernel in self.kernels]

    def scores(self, rows):
        pairs = zip(self.at(rows), self.columns, strict=True)
        scores = [K @ self.weights[:, columns].astype(K.dtype, copy=False) for K, columns in pairs]
        return np.concatenate(scores, axis=1).astype(np.float64, copy=False)

    def products(self, rows):
        index = np.arange(self.n_rows)[rows]
        return np.stack([K[:, index] for K in self.at(rows)]).astype(np.float64, copy=False)

    def move(self, rows, delta, scale=1.0):
        if scale != 1.0:
            self.weights *= scale
        self.weights[rows] += delta

    def place(self, coef):
        self.weights = np.array(coef, dtype=np.float64)

    def inner(self, weights):
        total = 0.0
        for start in range(0, self.n_rows, ROWS):
            rows = slice(start, start + ROWS)
            total += float(np.einsum("ij,ij->", self.scores(rows), weights[rows]))
        return total


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
    """Scratch arrays of a block: labelings found, entries of a step's direction, and `values`, violations of
    known labelings or scores by scaled hyperplanes."""

    labels: np.ndarray
    row: np.ndarray
    column: np.ndarray
    size: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, block, n_attributes, values):
        n_slots = len(block.scores) * n_attributes
        n_entries = block.scores.size + 2 * n_slots
        row, column = np.empty((2, n_entries), np.int64)
        return cls(np.empty(n_slots, np.int32), row, column, np.empty(n_entries), values)


@inlined
def write_losses(bag, words, scores, target, value, bound, labels, losses, scratch):
    """Write a bag's relaxed loss (5.5), ambiguous surrogate loss (5.2), and whether these are unproven."""
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
    returns the sum of the bags' gaps, each at its visit (NaN: overflow), and the steps. One function, as
    `find` takes seconds to compile."""
    bags, first, base, products, targets, delta, weights = block
    known_labels, share, loss, count = dual
    P = packed.n_attributes
    of = packed.attribute
    violation = work.values
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
    work = Work.of(block, problem.candidates.n_attributes, np.empty(len(dual.labels)))
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
    """Dual steps, from the previous round's shares, until the gap is at most `tol` times the dual value, or
    `best` cannot be improved by more; returns dual value, relaxed value, objective, epochs, steps and
    `Dual`."""
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
            gaps += gap
            n_updates += updates
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


class State(NamedTuple):
    step: float  # number of the next step
    scale: float  # factor on the hyperplanes of the scores
    squared_norm: float
    loss: float  # of the labelings moved away from; NaN: overflow
    n_updates: int
    n_projections: int


@inner
def fill_entries(packed, target, labels, first_row, weight, work):
    """A bag's direction, weight times (target - most violating labeling); returns the number of entries."""
    P = packed.n_attributes
    n = 0
    for m in range(target.shape[0]):
        for p in range(P):
            for k in range(packed.column[p], packed.column[p + 1]):
                size = target[m, k] - 1.0 if k == labels[m * P + p] else target[m, k]
                if size != 0.0:
                    work.row[n] = first_row + m
                    work.column[n] = k
                    work.size[n] = weight * size
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
    for b in range(bags.shape[0]):
        low = first[b]
        scores = work.values[low : first[b + 1]]
        for m in range(scores.shape[0]):
            for k in range(scores.shape[1]):
                scores[m, k] = base[low + m, k] * scale
        aim = target[low : first[b + 1]]
        own = work.labels[: scores.shape[0] * packed.n_attributes]
        words = words_of(packed.matchings, bags[b])
        value, loss, _ = find(bag_of(packed, bags[b]), words, scores, own, most_nodes, scratch)
        if np.isnan(value):
            return State(step, scale, norm, np.nan, n_updates, n_projections)
        n = 0
        if weights[b] > 0.0 and value - reached(aim, scores) > 0.0:
            n_updates += 1
            total_loss += weights[b] * loss
            n = fill_entries(packed, aim, own, low, weights[b], work)
        shrink = 1.0 - 1.0 / step
        norm = norm * shrink * shrink
        scale *= shrink
        eta = 1.0 / (lam * step)
        step += 1.0
        for e in range(n):
            norm += 2.0 * shrink * eta * size[e] * work.values[row[e], column[e]]
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
    """Algorithm 9 from the current hyperplanes, which count as one step per bag; returns a lower bound on the
    optimum (NaN if none) and the `State`."""
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
            work = Work.of(block, candidates.n_attributes, np.empty_like(block.scores))
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
