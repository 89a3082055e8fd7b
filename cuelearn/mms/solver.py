r"""Maximum Margin Set: the concave-convex procedure (thesis Algorithm 8)."""

import time
from typing import NamedTuple

import numpy as np
import pandas as pd

from cuelearn.core.checks import check_count
from cuelearn.core.progress import progress
from cuelearn.mms.candidates import batches
from cuelearn.mms.frank_wolfe import frank_wolfe
from cuelearn.mms.inference import MOST_NODES, losses_of_bags, mean_candidates
from cuelearn.mms.pegasos import pegasos
from cuelearn.mms.spaces import ROWS, Block

__all__ = ["ConvexProblem", "MMSResult", "objective_of", "solve_mms"]

#: Instances of a block, at most. The inner products within a block cost as much as the scores when it has as
#: many instances as there are labels; up to `CHEAP` multiplications an instance they are nothing.
MOST_ROWS = 192
CHEAP = 50_000
#: Rounds in a row that may end above the best one: a stochastic solver's rounds scatter by their gaps.
PATIENCE = 2
HISTORY = "round n_epochs seconds objective relaxed dual_bound dual_gap n_changed n_updates n_projections"
HISTORY = HISTORY.split()


class MMSResult(NamedTuple):
    """What `solve_mms` returns. `history` has a row per round: round, n_epochs, seconds, objective, relaxed
    (value of the convex problem 5.5), dual_bound (which no hyperplanes can go below there; NaN where
    there is none), dual_gap, n_changed (bags whose best candidates changed before the round), n_updates,
    n_projections."""

    objective: float  # of (5.3), at the kept round, where it is least
    history: pd.DataFrame
    n_rounds: int
    converged: bool  # whether the best candidates stopped changing, or the objective stopped falling
    target: np.ndarray  # (n_instances, sum of labels): mean label indicators of the kept round's candidates


class ConvexProblem:
    """The convex problem (5.5) of a round: the candidates' part is fixed by `target`."""

    def __init__(self, space, candidates, lam, exact=False, rng=None, shuffle=True):
        self.space, self.candidates, self.lam = space, candidates, lam
        self.rng, self.shuffle = rng, shuffle
        self.most_nodes = MOST_NODES if exact else None
        self.target = np.zeros((candidates.n_instances, space.n_columns))
        self.rows_of_block = min(MOST_ROWS, max(space.n_columns, CHEAP // space.width))

    def fresh_target(self):
        """Best candidates by the present hyperplanes; returns in how many bags they changed."""
        starts, old, self.target = self.candidates.bag_starts, self.target, np.empty_like(self.target)
        for first, last in batches(starts, ROWS):
            rows = slice(int(starts[first]), int(starts[last]))
            scores, target = self.space.scores(rows), self.target[rows]
            mean_candidates(self.candidates.packed, first, last, scores, False, target)
        changed = np.any(np.abs(self.target - old) > 1e-12, axis=1)
        return int(np.logical_or.reduceat(changed, starts[:-1]).sum())

    def value(self):
        """Relaxed value (5.5) and objective (5.3) at the present hyperplanes."""
        packed, starts = self.candidates.packed, self.candidates.bag_starts
        losses = np.empty((2, self.candidates.n_bags))
        for first, last in batches(starts, ROWS):
            rows = slice(int(starts[first]), int(starts[last]))
            scores, target = self.space.scores(rows), self.target[rows]
            found = losses_of_bags(packed, first, last, scores, target, self.most_nodes)
            self.refuse_unfinished(found.max())
            losses[:, first:last] = found
        relaxed, losses = losses
        ridge = 0.5 * self.lam * self.space.squared_norm()
        return ridge + relaxed.mean(), ridge + losses.mean()

    def refuse_unfinished(self, value):
        if np.isnan(value):
            many = f"more than {MOST_NODES} partial labelings for one bag"
            raise ValueError(f"inference='exact' needs {many}; 'heap' does not")

    def blocks(self, batch=1):
        """One epoch's blocks, of whole batches of bags: rows of X and `Block`."""
        sets = self.candidates
        order = self.rng.permutation(sets.n_bags) if self.shuffle else np.arange(sets.n_bags)
        ends = np.cumsum(sets.bag_sizes[order])
        begin = 0
        while begin < sets.n_bags:
            done = ends[begin - 1] if begin else 0
            end = int(np.searchsorted(ends, done + self.rows_of_block, side="right"))
            end = min(begin + max(batch, (end - begin) // batch * batch), sets.n_bags)
            bags = order[begin:end]
            rows, first = sets.rows(bags), np.concatenate([[0], np.cumsum(sets.bag_sizes[bags])])
            scores = self.space.scores(rows)
            products = self.space.products(rows)
            yield rows, Block(bags, first, scores, products, self.target[rows], np.zeros_like(scores))
            begin = end


def solve_mms(
    space,
    candidates,
    *,
    lam,
    solver="pegasos",
    n_rounds=10,
    n_epochs=20,
    batch_size=1,
    tol=1e-3,
    gap_tol=1e-2,
    inference="heap",
    shuffle=True,
    rng=None,
    callback=None,
    verbose=False,
):
    """Minimise the objective that `MMS` writes out, by the concave-convex procedure (thesis Algorithm 8).

    `space` is a LinearSpace or KernelSpace, in which the hyperplanes are left; lambda is `lam`; `batch_size`
    bags make a Pegasos step (K in Algorithm 9); with `shuffle` each pass has a new order of the bags;
    ``callback(round)`` returns True to end the training; the other parameters are those of `MMS`. Returns an
    `MMSResult`.
    """
    batch_size = check_count("batch_size", batch_size)
    rng = np.random.default_rng(rng)
    problem = ConvexProblem(space, candidates, lam, inference == "exact", rng, shuffle)
    space.weights[:] = 0.0
    rounds, kept, rises, converged, dual = [], None, 0, False, None
    began, total = time.perf_counter(), n_rounds * n_epochs * candidates.n_bags
    with progress(name="MMS", total=total, unit="bag", verbose=verbose) as bar:
        for number in range(1, n_rounds + 1):
            changed = problem.fresh_target()  # the first round averages over all candidates
            if number > 1 and changed == 0:
                converged = True
                break
            if solver == "pegasos":
                bound, state = pegasos(problem, n_epochs, batch_size, bar)
                epochs, updates, projections = n_epochs, state.n_updates, state.n_projections
            else:
                bound, epochs, updates, dual = frank_wolfe(problem, dual, n_epochs, gap_tol, bar)
                projections = 0
            relaxed, objective = problem.value()
            gap, seconds = relaxed - bound, time.perf_counter() - began
            row = number, epochs, seconds, objective, relaxed, bound, gap, changed, updates, projections
            rounds.append(row)
            settled = kept is not None and 0.0 <= kept[0] - objective <= tol * abs(kept[0])
            if kept is None or objective <= kept[0]:
                kept, rises = (objective, space.weights.copy(), problem.target), 0
            else:
                rises += 1
            if callback is not None and callback(number):
                break
            if settled or rises == PATIENCE:
                converged = True
                break
    objective, space.weights, target = kept
    return MMSResult(objective, pd.DataFrame(rounds, columns=HISTORY), len(rounds), converged, target)


def objective_of(space, candidates, lam, inference="heap"):
    """The objective (5.3) at a space's hyperplanes."""
    return ConvexProblem(space, candidates, lam, inference == "exact").value()[1]
