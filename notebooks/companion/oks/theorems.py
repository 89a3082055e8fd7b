"""Theorems 1 and 3 and corollary 2 of the OKS paper, measured on real and random streams.

The bounds speak of every kernel's predictor at every visit, the algorithms evaluate only the one they draw:
so a run is replayed. Comparators enter with a certified lower bound.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve
from scipy.special import entr, expit

from companion.intervals import interval
from companion.protocol import made_here, quiet
from cuelearn import datasets
from cuelearn.kernels import RBF, KernelBank, Linear
from cuelearn.mkl.optimum.problem import MKLProblem
from cuelearn.mkl.optimum.reference import solve_reference
from cuelearn.oks.kernels import Given
from cuelearn.oks.online import Selector, oks_pass, regret_pass

#: Steps of a predictor times sqrt(m T) over which theorem 3 is minimised.
RADII = tuple(2.0**k for k in range(-4, 5))
KINDS = ("pendigits", "random", "one useful")
C_GRID = (0.01, 0.1, 1.0, 10.0)
SIDES = ("drawn", "largest")
N_KERNELS = 8
MEMORY = 4e9
STREAMS = made_here("random streams", "companion.oks.theorems.stream_of")


class Stream(NamedTuple):
    """Samples in their order, and held-back ones: kernel values, at most 1 on the diagonal, and signs."""

    names: list
    stack: np.ndarray  # (n_kernels, n, n)
    signs: np.ndarray
    held: np.ndarray  # (n_kernels, n_held, n)
    held_signs: np.ndarray


@lru_cache(maxsize=1)
def stream_of(kind, n_samples, seed, n_held=0):
    """A `Stream` with eight kernels; streams of one seed begin with the same samples.

    "pendigits": odd against even digits, a linear and a Gaussian kernel on each of four representations.
    Simulated: "random", labels that no kernel explains; "one useful", only the first does.
    """
    n = n_samples + n_held
    if kind == "pendigits":
        data = datasets.load_pendigits()
        rows = np.random.default_rng([seed, 11]).permutation(data.y.size)[:n]
        X, labels = data.X[rows], data.y[rows] % 2
        kernels = (("linear", Linear()), ("rbf", RBF()))
        triples = [(f"{cue} {name}", k, columns) for cue, columns in data.cues.items() for name, k in kernels]
    else:
        labels = np.random.default_rng([seed, 12]).integers(2, size=n)
        features = np.random.default_rng([seed, 13]).normal(size=(n, N_KERNELS, 5))
        if kind == "one useful":
            features[:, 0] = 0.6 * features[:, 0]
            features[:, 0, 0] += 2.0 * (2.0 * labels - 1.0)
        X = features.reshape(n, -1)
        triples = [(f"k{j}", RBF(), slice(5 * j, 5 * j + 5)) for j in range(N_KERNELS)]
    bank = KernelBank(triples, X[:n_samples], memory=MEMORY)
    signs = 2.0 * labels - 1.0
    held = np.empty((len(triples), 0, n_samples))
    if n_held:
        held = np.concatenate([block for _, block in bank.cross(X[n_samples:]).blocks()], axis=1)
    stack = np.ascontiguousarray(bank.stack)
    return Stream(list(bank.names), stack, signs[:n_samples], held, signs[n_samples:])


def runs_of(stream, draws, seeds, passes=None, **rates):
    """One pass in order for each of some draws: learners, what visits drew, and what they lost."""
    n = stream.signs.size
    source = Given(*stream.stack.shape[:2])
    samples = source.pack(stream.stack)
    passes = passes or {"chunk": n}
    learners = [
        Selector(source.kernels, rng, n_rounds=n, **rates).run(samples, stream.signs, 1, **passes)
        for rng in np.random.default_rng(seeds).spawn(draws)
    ]
    drawn = np.array([learner.record["drawn"] for learner in learners])
    return learners, drawn, np.array([learner.record["losses"] for learner in learners])


def replay(drawn, losses, n_kernels, delta, eta):
    """Weights q before every visit, (n_runs, n_visits, n_kernels), from what the visits drew and lost."""
    runs = np.arange(len(drawn))
    log_weights = np.zeros((runs.size, n_kernels))
    weights = np.empty((*drawn.shape, n_kernels))
    for t in range(drawn.shape[1]):
        w = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        q = w / w.sum(axis=1, keepdims=True)
        weights[:, t] = q
        j = drawn[:, t]
        log_weights[runs, j] -= eta * losses[:, t] / ((1.0 - delta) * q[runs, j] + delta / n_kernels)
    return weights


def coefficients(learners, j, n, dtype=float):
    """What the runs added to the predictor of kernel j, shape (n, n_runs)."""
    added = np.zeros((n, len(learners)), dtype=dtype)
    for run, learner in enumerate(learners):
        added[learner.support[j], run] = learner.dual_coef[j]
    return added


def outputs_before(stack, learners):
    """Every predictor at every visit of one pass in order, before the visit: (n_runs, n, n_kernels)."""
    n = stack.shape[1]
    outputs = [
        (np.tril(kernel, -1).astype(np.float64) @ coefficients(learners, j, n)).T
        for j, kernel in enumerate(stack)
    ]
    return np.stack(outputs, axis=2)


def loss_of(loss, outputs, signs):
    """Losses of outputs, and the sizes of their slopes; "mistake" is the loss of Algorithm 2."""
    if loss == "square":
        return 0.5 * (outputs - signs) ** 2, np.abs(outputs - signs)
    margins = signs * outputs
    if loss == "mistake":
        return margins <= 0.0, np.ones(1)
    if loss == "hinge":
        return np.maximum(0.0, 1.0 - margins), (margins < 1.0).astype(float)
    return np.logaddexp(0.0, -margins), expit(-margins)


def least_loss(kernel, signs, step, loss="hinge", *, tol=1e-3, start=None, max_rounds=100):
    """The least sum of losses + |f|^2 / (2 step) of a kernel's functions, from below by weak duality.

    Returns the bound, the coefficients of a function whose value is within the relative gap `tol`, and the
    dual point, from which an SVM (hinge, without bias) can `start`.
    """
    n = signs.size
    if loss == "hinge":
        labels = (signs > 0.0).astype(np.int64)
        bank = KernelBank.from_stack(kernel[None], validate=False)
        problem = MKLProblem(bank, labels, 2, p=2.0, C=step, loss="hinge")
        if start is not None:
            rows = np.tile(-start[:, None], (1, 2))
            rows[np.arange(n), labels] = start
            start = rows
        with quiet():  # its bound holds all the same
            result = solve_reference(problem, tol=tol, start=start, max_rounds=max_rounds)
        coef = 0.5 * result.kernel_weights[0] * (result.dual_coef[:, 1] - result.dual_coef[:, 0])
        return n * (result.objective - result.dual_gap), coef, result.extra["dual_point"].sum(axis=1)
    K = kernel.astype(np.float64)
    if loss == "square":
        b = cho_solve(cho_factor(np.eye(n) + step * K, lower=True, overwrite_a=True), signs)
        return float(b @ signs - 0.5 * b @ b - 0.5 * step * b @ (K @ b)), step * b, signs * b
    # logistic, by accelerated gradient descent: f = K c has the gradient c / step - y sigma(-y f), as
    # coefficients; strong convexity 1 / step
    smooth = 1.0 / step + 0.25 * float(np.abs(K).sum(axis=1).max())
    ratio = math.sqrt(smooth * step)
    momentum = (ratio - 1.0) / (ratio + 1.0)
    c = np.zeros(n)
    ahead = np.zeros(n)
    best = (-np.inf, None)
    for count in range(100_000):
        f = K @ ahead
        a = expit(-signs * f)
        if count % 10 == 0:
            dual = float(entr(a).sum() + entr(1.0 - a).sum() - 0.5 * step * (signs * a) @ (K @ (signs * a)))
            value = float(np.logaddexp(0.0, -signs * f).sum() + 0.5 / step * ahead @ f)
            best = max(best, (dual, a), key=lambda pair: pair[0])
            if value - best[0] <= tol * value:
                break
        moved = ahead - (ahead / step - signs * a) / smooth
        ahead = moved + momentum * (moved - c)
        c = moved
    return best[0], ahead, best[1]


@lru_cache(maxsize=64)
def _least_losses(kind, n_samples, seed, loss, steps):
    """`least_loss` of every kernel of a stream for rising steps, shape (n_kernels, n_steps)."""
    stream = stream_of(kind, n_samples, seed)
    values = np.empty((len(stream.stack), len(steps)))
    for j, kernel in enumerate(stream.stack):
        start = None
        for k, step in enumerate(steps):
            values[j, k], _, start = least_loss(kernel, stream.signs, step, loss, start=start)
    return values


@lru_cache(maxsize=8)
def batch_predictors(kind, n_samples, seed, n_held):
    """SVMs of every kernel as comparators, by rising C, at each of which the better half goes on."""
    stream = stream_of(kind, n_samples, seed, n_held)
    rows = []
    going = dict.fromkeys(range(len(stream.stack)))
    for C in C_GRID:
        losses = {}
        for j, start in going.items():
            options = {"tol": 0.02, "start": start, "max_rounds": 3}
            _, coef, going[j] = least_loss(stream.stack[j], stream.signs, C, **options)
            losses[j] = float(loss_of("hinge", stream.held[j] @ coef, stream.held_signs)[0].mean())
            norm = math.sqrt(max(0.0, float(coef @ (stream.stack[j] @ coef))))
            rows.append({"kernel": stream.names[j], "C": C, "norm": norm, "loss": losses[j]})
        better = sorted(losses, key=losses.get)[: (len(losses) + 1) // 2]
        going = {j: going[j] for j in better}
    return pd.DataFrame(rows)


def weights_step(n_kernels, n_samples, delta):
    """eta of the theorems: sqrt(2 (1 - delta) ln m / (m T))."""
    return math.sqrt(2.0 * (1.0 - delta) * math.log(n_kernels) / (n_kernels * n_samples))


def surplus(n_kernels, n_samples, delta, eta, step, slope=1.0, largest=1.0):
    """What theorems 1 and 3 add to the comparator's value; G is `slope`, L `largest`."""
    m, T = n_kernels, n_samples
    predictors = step * m * T * slope**2 / (2.0 * delta)
    return predictors + eta * m * T * largest**2 / (2.0 * (1.0 - delta)) + math.log(m) / eta


def _all_losses(stream, draws, seed, loss, delta, eta, step):
    """The sum in the theorems' expectation and that over drawn kernels, by run; the largest loss, slope."""
    rule = {"rule": oks_pass} if loss == "mistake" else {"rule": regret_pass, "loss": loss}
    learners, drawn, own = runs_of(stream, draws, [seed, 14], delta=[delta], eta=eta, step=step, **rule)
    q = replay(drawn, own, len(stream.stack), delta, eta)
    losses, slopes = loss_of(loss, outputs_before(stream.stack, learners), stream.signs[:, None])
    return (q * losses).sum(axis=(1, 2)), own.sum(axis=1), float(losses.max()), float(slopes.max())


def mistakes_against_bound(kind, n_samples, seed, deltas, draws=30, radius=4.0):
    """Theorem 3 on `draws` passes of Algorithm 2, a row per run.

    bound: the least over lambda = r / sqrt(mT), r of `RADII`; loss: the least hinge loss over functions of
    norm at most `radius`, from below; allowed: what the theorem lets the mistakes exceed that loss by.
    """
    stream = stream_of(kind, n_samples, seed)
    m = len(stream.stack)
    T = n_samples
    steps = np.array(RADII) / math.sqrt(m * T)
    values = _least_losses(kind, T, seed, "hinge", tuple(steps))
    # Lagrange: sum of losses >= value - radius^2 / (2 lambda) in the ball, for every lambda
    loss = max(0.0, float((values - 0.5 * radius**2 / steps).max(axis=1).min()))
    tables = []
    for delta in deltas:
        eta = weights_step(m, T, delta)
        bounds = values.min(axis=0) + np.array([surplus(m, T, delta, eta, step) for step in steps])
        mistakes, drawn, *_ = _all_losses(stream, draws, seed, "mistake", delta, eta, 1.0)
        columns = {
            "run": np.arange(draws),
            "mistakes": mistakes,
            "drawn_mistakes": drawn,
            "bound": bounds.min(),
            "bound_step": steps[bounds.argmin()],
            "loss": loss,
            "allowed": radius * math.sqrt(m * T / delta) + 2.0 * math.log(m) / eta,
            "delta": delta,
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True).assign(radius=radius, n_kernels=m)


def regret_against_bound(kind, loss, n_samples, seed, delta=0.2, draws=30, radius=1.0):
    """Theorem 1 on `draws` passes of Algorithm 1, a row per run.

    The step is `radius` sqrt(delta / (mT)), which balances the terms for a comparator of this norm. losses:
    the sum in the expectation; comparator: the minimum, from below; largest: L; slope: G.
    """
    stream = stream_of(kind, n_samples, seed)
    m = len(stream.stack)
    T = n_samples
    eta = weights_step(m, T, delta)
    step = radius * math.sqrt(delta / (m * T))
    value = float(_least_losses(kind, T, seed, loss, (step,)).min())
    losses, drawn, L, G = _all_losses(stream, draws, seed, loss, delta, eta, step)
    columns = {
        "run": np.arange(draws),
        "losses": losses,
        "drawn_losses": drawn,
        "bound": value + surplus(m, T, delta, eta, step, G, L),
        "comparator": value,
        "largest": L,
        "slope": G,
        "step": step,
    }
    return pd.DataFrame(columns).assign(delta=delta, radius=radius, n_kernels=m)


def selection_quality(kind, visits, seed, n_samples=2000, n_held=3000, delta=0.2, draws=100):
    """Corollary 2: held-out hinge loss of what Algorithm 1 ends with, above the best, by run."""
    stream = stream_of(kind, n_samples, seed, n_held)
    batch = batch_predictors(kind, n_samples, seed, n_held)
    tables = [_quality_after(T, stream, batch, seed, delta, draws) for T in visits]
    return pd.concat(tables, ignore_index=True)


def _quality_after(T, stream, batch, seed, delta, draws):
    """drawn, largest: excess of the kernel drawn from q_T, and of the largest in q_T, after T visits.

    bound: b of theorem 1 and Markov's inequality, least over the predictors of `batch` and f = 0.
    """
    best = batch.loc[batch["loss"].idxmin()]
    m, n_samples = stream.stack.shape[:2]
    eta = weights_step(m, T, delta)
    step = best["norm"] * math.sqrt(delta / (m * T))
    # a shuffled pass, ended after its first T visits
    passes = {"shuffle": True, "chunk": T, "watch": lambda learner, visits: True}
    rates = {"rule": regret_pass, "delta": [delta], "eta": eta, "step": step}
    learners, _, own = runs_of(stream, draws, [seed, T, 15], passes, **rates)
    excess = np.empty((draws, m))
    for j, held in enumerate(stream.held):
        outputs = held @ coefficients(learners, j, n_samples, held.dtype)
        excess[:, j] = loss_of("hinge", outputs, stream.held_signs[:, None])[0].mean(axis=0) - best["loss"]
    q = np.array([learner.q for learner in learners])
    uniforms = np.random.default_rng([seed, T, 16]).random(draws)
    drawn = np.minimum((np.cumsum(q, axis=1) <= uniforms[:, None]).sum(axis=1), m - 1)
    row = {"run": np.arange(draws)}
    for side, kernels in zip(SIDES, (drawn, q.argmax(axis=1)), strict=True):
        row[side] = excess[row["run"], kernels]
        row[f"{side}_kernel"] = np.array(stream.names)[kernels]
    row |= {f"best_{name}": best[name] for name in ("loss", "kernel", "norm")}
    of_batch = float((batch["loss"] + batch["norm"] ** 2 / (2.0 * step * T)).min())
    comparator = min(1.0, of_batch) - best["loss"]  # f = 0 has the loss 1
    bound = comparator + surplus(m, T, delta, eta, step, largest=float(own.max())) / T
    return pd.DataFrame(row | {"bound": bound, "n_visits": T})


def expectations(table, value, by):
    """Means of `value` over runs with 95% intervals, and the first of all other columns."""
    groups = table.groupby(by, sort=False)
    rest = groups.first().drop(columns=[value, "run"])
    ends = pd.DataFrame([interval(part.to_numpy())._asdict() for _, part in groups[value]], index=rest.index)
    return ends.join(rest).reset_index()


def quantiles(table, epsilons):
    """Excess that is not passed with probability 1 - epsilon, and shares of runs with the best kernel."""
    rows = []
    for (kind, n_visits, seed), part in table.groupby(["kind", "n_visits", "seed"], sort=False):
        drawn, largest = ((part[f"{side}_kernel"] == part["best_kernel"]).mean() for side in SIDES)
        for epsilon in epsilons:
            row = {"kind": kind, "n_visits": n_visits, "seed": seed, "epsilon": epsilon}
            row |= {s: np.quantile(part[s], 1.0 - epsilon, method="inverted_cdf") for s in SIDES}
            row |= {"bound": part["bound"].iloc[0] / epsilon, "drawn_best": drawn, "largest_best": largest}
            rows.append({**row, "runs": len(part)})
    return pd.DataFrame(rows)
