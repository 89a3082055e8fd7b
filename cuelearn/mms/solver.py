r"""Maximum Margin Set: the concave-convex procedure (thesis Algorithm 8) around Pegasos (Algorithm 9) or pairwise Frank-Wolfe steps."""

import sys
import time
from typing import NamedTuple

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from cuelearn.mms.blocks import (
    FAILED,
    LOSS,
    NORM,
    PROJECTIONS,
    SCALE,
    STEP,
    UPDATES,
    frank_wolfe_block,
    pegasos_block,
)
from cuelearn.mms.inference import MOST_NODES, losses_of_bags, targets_of_bags

__all__ = ["MMSResult", "objective_of", "solve_mms"]

BAR_AFTER = 2.0
#: Instances of a block, at most. The inner products within a block cost as much as the scores when it has as many instances as there are
#: labels; up to `CHEAP` multiplications an instance they are nothing beside the steps themselves.
MOST_ROWS = 192
CHEAP = 50_000
#: Dual values below it count as this large where gaps are compared with them.
FINEST = 1e-7
#: Rounds in a row that may end above the best one: a stochastic solver's rounds scatter by their gaps.
PATIENCE = 2
#: Steps between labelings that are known, after each search.
INNER = 3
#: Labelings of a bag that a dual solver keeps at most.
MOST_LABELINGS = 256


class MMSResult(NamedTuple):
    """What `solve_mms` returns; the hyperplanes are left in the space.

    Attributes
    ----------
    objective : float
        Of (5.3), at the round that is kept: the one where it is least.
    history : DataFrame
        One row per round: round, n_epochs, seconds, objective, relaxed (value of the convex problem 5.5), dual_bound (a value that no
        hyperplanes can go below in that problem; NaN where there is none), dual_gap, n_changed (bags whose best candidates changed
        before the round), n_updates, n_projections.
    n_rounds : int
    converged : bool
        Whether the best candidates stopped changing, or the objective stopped falling.
    target : ndarray, shape (n_instances, sum of labels)
        Mean label indicators of the best candidates that the kept round was trained with.
    """

    objective: float
    history: pd.DataFrame
    n_rounds: int
    converged: bool
    target: np.ndarray


class _Round:
    """One convex problem (5.5): the candidates' part is fixed by `target`."""

    def __init__(self, space, candidates, lam, exact, rng, shuffle):
        self.space, self.set, self.packed = space, candidates, candidates.packed
        self.lam, self.rng, self.shuffle = lam, rng, shuffle
        self.most_nodes = MOST_NODES if exact else None  # None compiles the searches without the exact one
        self.n_bags = candidates.n_bags
        self.target = np.zeros((candidates.n_instances, int(self.packed.column[-1])))
        self.rows_of_block = min(MOST_ROWS, max(self.target.shape[1], CHEAP // space.width))
        self.dual = None
        self.state = np.zeros(7)

    def fresh_target(self):
        """Best candidates by the present hyperplanes; returns in how many bags they changed."""
        new = np.empty_like(self.target)
        for first, _last, rows in self.space.batches(self.set.bag_starts):
            targets_of_bags(self.packed, first, self.space.scores(rows), new[rows])
        changed = np.logical_or.reduceat(
            np.any(np.abs(new - self.target) > 1e-12, axis=1), self.set.bag_starts[:-1]
        )
        self.target = new
        return int(changed.sum())

    def value(self):
        """Relaxed value (5.5) and objective (5.3) at the present hyperplanes."""
        relaxed, losses = np.zeros(self.n_bags), np.zeros(self.n_bags)
        for first, last, rows in self.space.batches(self.set.bag_starts):
            fine = losses_of_bags(
                self.packed,
                first,
                last - first,
                self.space.scores(rows),
                self.target[rows],
                self.most_nodes,
                relaxed[first:last],
                losses[first:last],
            )
            self._found(fine)
        ridge = 0.5 * self.lam * self.space.squared_norm()
        return ridge + relaxed.mean(), ridge + losses.mean()

    def _found(self, fine):
        if not fine:
            raise ValueError(
                f"inference='exact' needs more than {MOST_NODES} partial labelings for one bag; 'heap' does not"
            )

    def blocks(self, batch=1):
        """One epoch's blocks of whole batches: bags, their first rows in the block, rows."""
        order = self.rng.permutation(self.n_bags) if self.shuffle else np.arange(self.n_bags)
        ends = np.cumsum(self.set.bag_sizes[order])
        begin = 0
        while begin < self.n_bags:
            done = ends[begin - 1] if begin else 0
            end = int(np.searchsorted(ends, done + self.rows_of_block, side="right"))
            end = min(begin + max(batch, (end - begin) // batch * batch), self.n_bags)
            bags = order[begin:end]
            yield bags, np.concatenate([[0], np.cumsum(self.set.bag_sizes[bags])]), self.set.rows(bags)
            begin = end

    # ---------------------------------------------------------------- Pegasos

    def pegasos(self, n_epochs, batch, start, bar):
        """Epochs of Algorithm 9 from the present hyperplanes; returns a lower bound of the problem, NaN where there is none."""
        space, state = self.space, self.state
        if start == 0:  # the first step leaves nothing of them
            space.reset()
        before = space.state()
        norm_before = space.squared_norm()
        radius = np.sqrt(2.0 * self.set.bag_sizes.max() * self.packed.n_attributes / self.lam)
        state[:] = 0.0
        state[STEP], state[SCALE], state[NORM] = start + 1.0, 1.0, norm_before
        for _ in range(n_epochs):
            for bags, first, rows in self.blocks(batch):
                base, gram = space.block(rows)
                delta = np.zeros_like(base)
                state[SCALE] = 1.0
                pegasos_block(
                    self.packed,
                    bags,
                    first,
                    base,
                    gram,
                    self.target[rows],
                    delta,
                    state,
                    self.lam,
                    radius,
                    batch,
                    self.most_nodes,
                )
                self._found(not state[FAILED])
                space.move(rows, delta * state[SCALE], state[SCALE])
            state[NORM] = space.squared_norm()
            bar.update(self.n_bags)
        steps = state[STEP] - 1.0 - start
        if batch > 1 or state[PROJECTIONS] > 0:
            return np.nan
        # (start + T) w = start w_0 + T v, and v is feasible in the dual: every bag was visited equally often
        total = start + steps
        norm = (
            total**2 * space.squared_norm()
            - 2.0 * total * start * space.inner(before)
            + start**2 * norm_before
        ) / steps**2
        return state[LOSS] / steps - 0.5 * self.lam * norm

    # ---------------------------------------------------------------- pairwise Frank-Wolfe

    def frank_wolfe(self, n_epochs, gap_tol, bar):
        """Epochs of dual steps until the gap is small; returns the dual value and the number of epochs."""
        space, state, P = self.space, self.state, self.packed.n_attributes
        if self.dual is None:
            self.dual = _Dual(self.n_bags, self.set.n_instances * P)
        dual = self.dual
        # the dual point of the round before stays feasible: its labelings keep their shares, the candidates' part is new
        space.place(dual.coefficients(self.set, self.target) / (self.lam * self.n_bags))
        state[:] = 0.0
        state[NORM] = space.squared_norm()
        for epoch in range(1, n_epochs + 1):
            dual.make_room()
            gaps = 0.0
            for bags, first, rows in self.blocks():
                base, gram = space.block(rows)
                delta = np.zeros_like(base)
                slots = rows if P == 1 else (rows[:, None] * P + np.arange(P)).ravel()
                active = dual.labels[:, slots]
                gaps += frank_wolfe_block(
                    self.packed,
                    bags,
                    first,
                    base,
                    gram,
                    self.target[rows],
                    active,
                    dual.share,
                    dual.loss,
                    dual.count,
                    delta,
                    state,
                    self.lam,
                    self.n_bags,
                    INNER,
                    self.most_nodes,
                )
                self._found(not state[FAILED])
                dual.labels[:, slots] = active
                space.move(rows, delta)
            state[NORM] = space.squared_norm()
            bar.update(self.n_bags)
            bound = float((dual.share * dual.loss).sum() / self.n_bags - 0.5 * self.lam * state[NORM])
            if gaps <= gap_tol * max(bound, FINEST):
                break
        return bound, epoch


class _Dual:
    """Dual variables of all bags: the labelings known so far, their shares and losses."""

    def __init__(self, n_bags, n_slots):
        self.labels = np.zeros((8, n_slots), np.int32)
        self.share, self.loss = np.zeros((n_bags, 8)), np.zeros((n_bags, 8))
        self.count = np.zeros(n_bags, np.int64)

    def make_room(self):
        """Twice the room where a bag has no more, within `MOST_LABELINGS`."""
        room = len(self.labels)
        if self.count.max() < room or room >= MOST_LABELINGS:
            return
        self.labels = np.concatenate([self.labels, np.zeros_like(self.labels)])
        self.share, self.loss = (
            np.concatenate([a, np.zeros_like(a)], axis=1) for a in (self.share, self.loss)
        )

    def coefficients(self, candidates, target):
        """What each instance adds to each hyperplane, but for 1 / (lambda N)."""
        P = candidates.n_attributes
        coef = self.share.sum(axis=1)[candidates.bag_of, None] * target
        instance = np.repeat(np.arange(candidates.n_instances), P)
        for v in range(len(self.labels)):
            share = self.share[candidates.bag_of[instance], v]
            some = share > 0.0
            np.subtract.at(coef, (instance[some], self.labels[v][some]), share[some])
        return coef


def solve_mms(
    space,
    candidates,
    *,
    lam,
    solver="pegasos",
    n_rounds=10,
    n_epochs=20,
    batch_size=1,
    start=None,
    tol=1e-3,
    gap_tol=1e-2,
    inference="heap",
    shuffle=True,
    rng=None,
    callback=None,
    verbose=False,
):
    r"""Minimise the MMS objective by the concave-convex procedure.

    .. math:: \min_w \frac\lambda2 \|w\|^2 + \frac1N \sum_i \Big| \max_{\bar Z \notin \mathcal Z_i} \big(\Delta_A(\bar Z, \mathcal Z_i)
              + S_w(\mathcal X_i, \bar Z)\big) - \max_{Z \in \mathcal Z_i} S_w(\mathcal X_i, Z) \Big|_+

    Parameters
    ----------
    space : LinearSpace or KernelSpace
    candidates : CandidateSet
    lam : float > 0
    solver, n_rounds, n_epochs, batch_size, start, tol, gap_tol, inference, shuffle
        As of `MMS`.
    rng : Generator
    callback : callable(round), optional
        True ends the training.
    verbose : bool

    Returns
    -------
    MMSResult
    """
    rng = np.random.default_rng(rng)
    work = _Round(space, candidates, lam, inference == "exact", rng, shuffle)
    space.reset()
    start = candidates.n_bags if start is None else start
    rows, kept, rises, converged, began = [], None, 0, False, time.perf_counter()
    with tqdm(
        total=n_rounds * n_epochs * candidates.n_bags,
        desc="MMS",
        unit="bag",
        delay=BAR_AFTER,
        leave=False,
        disable=not verbose,
        file=sys.stderr,
    ) as bar:
        for number in range(1, n_rounds + 1):
            changed = work.fresh_target()
            if number > 1 and changed == 0:
                converged = True
                break
            if solver == "pegasos":
                bound, epochs = work.pegasos(n_epochs, batch_size, start, bar), n_epochs
            else:
                bound, epochs = work.frank_wolfe(n_epochs, gap_tol, bar)
            relaxed, objective = work.value()
            rows.append(
                (
                    number,
                    epochs,
                    time.perf_counter() - began,
                    objective,
                    relaxed,
                    bound,
                    relaxed - bound,
                    changed,
                    int(work.state[UPDATES]),
                    int(work.state[PROJECTIONS]),
                )
            )
            rises = 0 if kept is None or objective <= kept[0] else rises + 1
            enough = rises == PATIENCE or (
                kept is not None and 0.0 <= kept[0] - objective <= tol * abs(kept[0])
            )
            if rises == 0:
                kept = objective, space.state(), work.target
            if callback is not None and callback(number):
                break
            if enough:
                converged = True
                break
    objective, state, target = kept
    space.restore(state)
    columns = [
        "round",
        "n_epochs",
        "seconds",
        "objective",
        "relaxed",
        "dual_bound",
        "dual_gap",
        "n_changed",
        "n_updates",
        "n_projections",
    ]
    return MMSResult(objective, pd.DataFrame(rows, columns=columns), len(rows), converged, target)


def objective_of(space, candidates, lam, inference="heap"):
    """The objective (5.3) at a space's hyperplanes."""
    work = _Round(space, candidates, lam, inference == "exact", np.random.default_rng(0), False)
    return work.value()[1]
