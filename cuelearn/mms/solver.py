"""Maximum Margin Set: the concave-convex procedure (thesis Algorithm 8)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_array, check_is_fitted

from cuelearn.core.estimator import Estimator
from cuelearn.core.run import Run
from cuelearn.core.samples import InputLike
from cuelearn.expect import expect
from cuelearn.kernels.types import Callback, RandomState, SampleWeight
from cuelearn.mms.candidates import CandidateSet, batches, check_bag_weights, check_candidates
from cuelearn.mms.convex import ROWS, Block, LinearSpace, Space, frank_wolfe, losses_of_bags, pegasos
from cuelearn.mms.inference import METHODS, Inference, mean_candidates
from cuelearn.mms.matching import Scratch

__all__ = ["common_objective", "solve_mms"]

#: Most instances of a block: with as many as labels, inner products cost as much as scores; up to `CHEAP`
#: multiplications per instance they are negligible.
MOST_ROWS = 192
CHEAP = 50_000
#: Successive rounds allowed above the best, as stochastic rounds scatter by their gaps.
PATIENCE = 2
#: "auto" searches exactly up to so many slots of a bag, and slots times listed candidates: mostly below 0.1
#: ms, at scores near 0 some milliseconds.
EXACT_SLOTS = 12
EXACT_SIZE = 1000
#: A round must lower the objective by more than tol / SETTLED.
SETTLED = 10.0
N_ROUNDS = {"pegasos": 10, "frank-wolfe": 50}
#: Passes of a Pegasos round; most passes of a dual round, or `DUAL_VISITS` visits of bags if these are more.
PEGASOS_EPOCHS = 20
DUAL_EPOCHS = 300
DUAL_VISITS = 100_000
#: What a round gives, as in the history.
SOLVED = ("dual_bound", "relaxed", "objective", "n_epochs", "n_updates", "n_projections")


class MMSResult(NamedTuple):
    """Result of `solve_mms`, which explains the fields."""

    objective: float
    history: pd.DataFrame
    kept: int
    converged: bool
    ended: bool
    at_zero: float
    visits: np.ndarray
    unfinished: int


class ConvexProblem:
    """The convex problem (5.5) of a round, the candidates' part fixed to `target`; `weights` have mean 1."""

    def __init__(self, space, candidates, lam, inference="algorithm-10", rng=None, weights=None):
        self.space = space
        self.candidates = candidates
        self.lam = lam
        if weights is None:
            weights = np.ones(candidates.n_bags)
        self.weights = weights * (candidates.n_bags / weights.sum())
        self.rng = rng
        self.visits = []
        self.most_nodes = METHODS[inference]
        self.n_unproven = 0
        self.target = np.zeros((candidates.n_instances, space.n_columns))
        self.scratch = Scratch.of(candidates.packed)
        self.rows_of_block = min(MOST_ROWS, max(space.n_columns, CHEAP // space.width))

    def fresh_target(self, slack=0.0):
        """Average candidates within `slack` of the best; returns the number of changed bags."""
        packed = self.candidates.packed
        starts = self.candidates.bag_starts
        old = self.target
        self.target = np.empty_like(self.target)
        for first, last in batches(starts, ROWS):
            rows = slice(int(starts[first]), int(starts[last]))
            scores = self.space.scores(rows)
            target = self.target[rows]
            best = np.empty(last - first)
            mean_candidates(packed, first, last, scores, False, target, slack, best, self.scratch)
        changed = np.any(np.abs(self.target - old) > 1e-12, axis=1)
        in_bags = np.logical_or.reduceat(changed, starts[:-1])
        return int(np.count_nonzero(in_bags & (self.weights > 0.0)))

    def draw_target(self):
        labels = self.candidates.draw(self.rng) + self.candidates.packed.column[:-1]
        self.target = np.zeros_like(self.target)
        np.put_along_axis(self.target, labels, 1.0, axis=1)
        return self.candidates.n_bags

    def value(self):
        """Relaxed value (5.5) and objective (5.3); counts bags in `n_unproven` whose loss may be larger."""
        losses = np.empty((3, self.candidates.n_bags))
        for first, last in batches(self.candidates.bag_starts, ROWS):
            losses[:, first:last] = losses_of_bags(self, first, last).T
        relaxed, losses, unproven = self.weights * losses
        self.n_unproven = np.count_nonzero(unproven)
        ridge = 0.5 * self.lam * self.space.squared_norm()
        self.refuse_unfinished(ridge + relaxed.sum())
        return ridge + relaxed.mean(), ridge + losses.mean()

    def refuse_unfinished(self, value):
        if not np.isfinite(value):
            remedies = "standardise the features, lower C, or take 'frank-wolfe'"
            raise ValueError(f"the hyperplanes overflow: {remedies}")

    def blocks(self):
        """An epoch's blocks of bags in a new order: rows of X and `Block`."""
        sets = self.candidates
        order = self.rng.permutation(sets.n_bags)
        ends = np.cumsum(sets.bag_sizes[order])
        for begin, end in batches(np.append(0, ends), self.rows_of_block):
            bags = order[begin:end]
            rows = sets.rows(bags)
            first = np.append(0, np.cumsum(sets.bag_sizes[bags]))
            scores = self.space.scores(rows)
            products = np.ascontiguousarray(self.space.products(rows))  # one type for numba
            delta = np.zeros_like(scores)
            yield rows, Block(bags, first, scores, products, self.target[rows], delta, self.weights[bags])


class Kept(NamedTuple):
    objective: float
    weights: np.ndarray
    row: int  # of the history


def solver_of(problem, solver, n_epochs, tol, bar):
    """A function (best objective) that solves from the current hyperplanes; returns `SOLVED`."""
    dual = None

    def dual_steps(best):
        nonlocal dual
        *result, dual = frank_wolfe(problem, dual, n_epochs, tol, bar, best)
        return *result, 0

    def subgradient_steps(_):
        try:
            bound, state = pegasos(problem, n_epochs, bar)
        except ZeroDivisionError:  # the projections shrank the scale to 0
            problem.refuse_unfinished(np.inf)
        return bound, *problem.value(), n_epochs, state.n_updates, state.n_projections

    if solver == "pegasos":
        return subgradient_steps
    return dual_steps


def concave_convex(problem, solve, start, run, n_rounds, tol, sound):
    """Rounds from one start; if `sound`, gaps decide ties and when no round can be better. Returns `Kept`
    and whether the rounds converged."""
    problem.space.weights[:] = 0.0
    kept = None
    rises = 0
    near = 0.0
    for number in range(1, n_rounds + 1):
        # the first round averages all candidates, a further start draws one per bag
        changed = problem.draw_target() if start and number == 1 else problem.fresh_target(near)
        if number > 1 and changed == 0:
            return kept, True
        if kept is None:
            best = np.inf
        else:
            best = kept.objective
        solved = solve(best)
        bound, relaxed, objective, *_ = solved
        if sound and objective > best and bound >= (1.0 - tol) * best:
            return kept, True  # this round cannot beat the kept hyperplanes
        row = {"start": start, "n_changed": changed, "n_unproven": problem.n_unproven, "dual_gap": np.nan}
        row |= dict(zip(SOLVED, solved, strict=True))
        if problem.n_unproven == 0:  # else `relaxed` is no upper bound
            row["dual_gap"] = relaxed - bound
        near = 0.0
        if sound:
            near = min(max(0.0, relaxed - bound), tol * abs(objective))
        settled = kept is not None and 0.0 <= best - objective <= tol / SETTLED * abs(best)
        if objective <= best:
            kept = Kept(objective, problem.space.weights.copy(), len(run.rows))
            rises = 0
        else:
            rises += 1
        if run.end(number, lambda: problem.space, done=0, **row):
            return kept, False
        if settled or rises == PATIENCE:
            return kept, settled
    return kept, False


def solve_mms(
    space: Space,
    candidates: CandidateSet,
    *,
    lam: float,
    sample_weight: SampleWeight = None,
    solver: Literal["frank-wolfe", "pegasos"] = "frank-wolfe",
    n_init: int = 1,
    n_rounds: int | None = None,
    n_epochs: int | None = None,
    tol: float = 1e-2,
    inference: Inference = "auto",
    rng: RandomState = None,
    callback: Callback = None,
    verbose: bool = False,
) -> MMSResult:
    """Minimise the objective of `MMS` by the concave-convex procedure (thesis Algorithm 8).

    Parameters
    ----------
    space : LinearSpace or KernelSpace
        Of the instances; its `weights` become the hyperplanes.
    candidates : CandidateSet
    lam : float > 0
        The objective's lambda.
    sample_weight : ndarray, shape (n_bags,), optional
        Weights of the bags in the mean of their losses, not all zero.
    rng : None, int or Generator
    callback : callable(space, round), optional
        Called after each round with the present hyperplanes; True ends the training.
    solver, n_init, n_rounds, n_epochs, tol, inference, verbose
        As in `MMS`.

    Returns
    -------
    MMSResult
        Fields objective, history (that of `MMS`), kept (row of the round with the least objective), converged
        (a next round would not lower it), ended (by the callback), at_zero (objective of w = 0), visits
        (`visits_` of `MMS`), unfinished (bags of the kept round whose exact search ended without proof).

    Raises
    ------
    ValueError
        If Pegasos steps overflow.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import CandidateSet, LinearSpace, solve_mms
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 1.0]])
    >>> sets = CandidateSet([[[0, 1], [1, 0]], [[0, 1]]])
    >>> space = LinearSpace(X, sets.n_labels)
    >>> result = solve_mms(space, sets, lam=0.5, rng=0)
    >>> result.converged, np.argmax(X @ space.weights.T, axis=1)
    (True, array([0, 1, 0, 1]))
    """
    few = solver
    if space.indefinite:  # without a gap to end a round
        few = "pegasos"
    n_rounds = n_rounds or N_ROUNDS[few]
    if n_epochs is None:
        n_epochs = max(DUAL_EPOCHS, DUAL_VISITS // candidates.n_bags)
        if few == "pegasos":
            n_epochs = PEGASOS_EPOCHS
    if inference == "auto":
        slots = candidates.bag_sizes * candidates.n_attributes
        small = slots.max() <= EXACT_SLOTS and np.max(slots * candidates.packed.count) <= EXACT_SIZE
        inference = "algorithm-10" if solver == "pegasos" else "exact" if small else "lp"
    rng = np.random.default_rng(rng)
    problem = ConvexProblem(space, candidates, lam, inference, rng, sample_weight)
    space.weights[:] = 0.0
    at_zero = problem.value()[1]
    least = None
    run = Run(callback, verbose=verbose)
    with run.under_bar("MMS", n_init * n_rounds * n_epochs * candidates.n_bags, "bag") as bar:
        for start in range(n_init):
            solve = solver_of(problem, solver, n_epochs, tol, bar)
            kept, converged = concave_convex(problem, solve, start, run, n_rounds, tol, solver != "pegasos")
            if least is None or kept.objective < least[0].objective:
                least = kept, converged
            if run.stopped:
                break
    (objective, space.weights, row), converged = least
    history = run.history()
    if space.indefinite:
        history[["dual_bound", "dual_gap"]] = np.nan
        converged = False
    visits = np.concatenate([np.zeros(0, dtype=np.uint8), *problem.visits]).reshape(-1, candidates.n_bags)
    unfinished = 0
    if inference == "exact":
        unfinished = int(history["n_unproven"][row])
    return MMSResult(objective, history, row, converged, run.stopped, at_zero, visits, unfinished)


def objective_of(space, candidates, lam, inference="algorithm-10", weights=None):
    return ConvexProblem(space, candidates, lam, inference, weights=weights).value()[1]


def common_objective(
    model: Estimator,
    X: InputLike,
    candidates: CandidateSet,
    *,
    sample_weight: SampleWeight = None,
    C: float = 1.0,
    inference: Inference = "exact",
) -> float:
    r"""The objective of `MMS` at the hyperplanes of any linear model.

    Parameters
    ----------
    model : fitted estimator with `coef_` and `intercept_`, or lists of these for several attributes
        Rows of `coef_` are the candidates' labels in order; biases are weights of a constant feature.
    X : array-like, shape (n_instances, n_features)
    candidates : CandidateSet
    sample_weight : array-like, shape (n_bags,) or (n_instances,), optional
    C : float > 0, default 1.0
        :math:`\lambda = 1/(C W)`, W the sum of the bags' weights.
    inference : {"exact", "lp", "algorithm-10"}
        Search for the most violating labelings; `MMS.objective_` uses that of `MMS`.

    Returns
    -------
    float

    Notes
    -----
    Costs O(n d K) for the scores of K labels, and a search per bag, for "exact" exponential in its size at
    worst.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import MMS, CandidateSet, common_objective
    >>> X = np.eye(3)
    >>> sets = CandidateSet([[[0], [1]], [[1]], [[2]]])
    >>> model = MMS().fit(X, sets)
    >>> bool(abs(common_objective(model, X, sets) - model.objective_) < 1e-9)
    True
    """
    check_is_fitted(model)
    if not hasattr(model, "coef_"):
        raise ValueError("model must be linear: it has no coef_")
    X = check_array(X, dtype=np.float64)
    check_candidates(candidates, len(X))
    bag_weights = check_bag_weights(sample_weight, candidates)
    total = candidates.n_bags
    if bag_weights is not None:
        total = bag_weights.sum()
    parts = [(model.coef_, model.intercept_)]
    if isinstance(model.coef_, list):
        parts = zip(model.coef_, model.intercept_, strict=True)
    weights = [np.column_stack([coef, np.broadcast_to(b, len(coef))]) for coef, b in parts]
    shapes = [w.shape for w in weights]
    wanted = [(size, X.shape[1] + 1) for size in candidates.n_labels]
    if shapes != wanted:
        raise ValueError(f"coef_ and intercept_ must be of shapes {wanted} together, got {shapes}")
    space = LinearSpace(np.column_stack([X, np.ones(len(X))]), candidates.n_labels)
    space.weights[:] = np.concatenate(weights)
    lam = 1.0 / (expect("C", C, above=0) * total)
    return float(objective_of(space, candidates, lam, inference, bag_weights))
