"""The theorems of thesis chapter 4, measured on real and random streams."""

import math

import numpy as np
import pandas as pd

from companion.mkl.runs import reference, solve
from companion.mkl.tasks import load_task
from cuelearn.core.formulas import group_norm, margins
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import MKLProblem, solve_obscure, solve_om2

N_CLASSES = 5  # of a random stream
N_FEATURES = 5  # of each kernel
MOST_EPOCHS = 200  # of an online stage that is to end without loss


def norm_of(problem, result):
    return group_norm(result.kernel_weights * np.sqrt(problem.block_norms_sq(result.dual_coef)), problem.p)


def ones_norm(problem):
    """The (q/2)-norm of ones: what the kernels, of at most 1 on the diagonal, add to a bound."""
    return group_norm(np.ones(problem.bank.n_kernels), problem.q / 2.0)


def comparators(problem):
    """Batch optima for several C, at several lengths, as comparators u: norm, and sum of losses."""
    pairs = []
    for C in (0.1, 1.0, 10.0, 100.0):
        batch = MKLProblem(problem.bank, problem.labels, problem.n_classes, p=problem.p, C=C)
        result = reference(batch, time_limit=10.0)
        norm = norm_of(batch, result)
        own = margins(batch.training_scores(result.dual_coef, result.kernel_weights), batch.labels)
        for length in (0.25, 0.5, 1.0, 2.0, 4.0):
            pairs.append((length * norm, float(np.maximum(0.0, 1.0 - length * own).sum())))
    return pairs


def stream_problem(kind, n_samples, seed, n_kernels=6, p="auto", C=1.0):
    """A stream: "mfeat-6", of "random" labels, or with "one useful" kernel, the first, among useless ones."""
    if kind == "mfeat-6":
        task = load_task("mfeat-6", n_samples, 1, seed)
        return MKLProblem(task.bank, task.labels, task.n_classes, p=p, C=C)
    rng = np.random.default_rng([seed, 3])
    labels = rng.integers(N_CLASSES, size=n_samples)
    labels[:N_CLASSES] = np.arange(N_CLASSES)
    features = rng.normal(size=(n_samples, n_kernels, N_FEATURES))
    if kind == "one useful":
        features[:, 0] = 0.6 * features[:, 0] + 2.0 * np.eye(N_CLASSES)[labels]
    kernels = [(f"k{j}", RBF(), slice(N_FEATURES * j, N_FEATURES * (j + 1))) for j in range(n_kernels)]
    bank = KernelBank(kernels, features.reshape(n_samples, -1))
    return MKLProblem(bank, labels, N_CLASSES, p=p, C=C)


def one_pass(problem, seed):
    return solve_om2(problem, n_epochs=1, rng=np.random.default_rng(seed), shuffle=False)


def mistake_bound(kind, n_samples, seed, p):
    """Theorem 4.1 on one pass: mistakes of OM-2 and the bound, at the best comparator."""
    problem = stream_problem(kind, n_samples, seed, p=p)
    result = one_pass(problem, seed)
    mistakes = int(result.online_errors.sum())
    eta_sum = float(result.dual_coef[np.arange(n_samples), problem.labels].sum())
    lipschitz_sq = float(2.0 * ones_norm(problem))
    bounds = []
    for norm, losses in comparators(problem):
        c = problem.q * lipschitz_sq * norm**2
        bounds.append(c + losses + math.sqrt(losses * c) - (eta_sum - mistakes))
    return {"mistakes": mistakes, "bound": min(bounds), "updates": result.n_updates}


def useless_kernels(n_kernels, n_samples, seed, p="auto"):
    """Corollary 4.1: mistakes of OM-2 with one useful kernel among F."""
    result = one_pass(stream_problem("one useful", n_samples, seed, n_kernels=n_kernels, p=p), seed)
    weights = result.kernel_weights
    return {"mistakes": int(result.online_errors.sum()), "weight": float(weights[0] / weights.sum())}


def least_separator(problem, C=1000.0):
    """A certified lower bound of the norm of any classifier without loss, whose objective is lambda / 2 times
    its square and so above the lower bound of the optimum; tighter for larger C."""
    hard = MKLProblem(problem.bank, problem.labels, problem.n_classes, p=problem.p, C=C)
    best = reference(hard)
    return math.sqrt(2.0 * max(0.0, best.objective - best.dual_gap) / hard.regularization)


def update_bound(n_samples, seed, p, eta):
    """Theorem 4.3: updates of the online stage until it converges, its R, and their bounds."""
    problem = stream_problem("mfeat-6", n_samples, seed, p=p, C=10.0)
    rng = np.random.default_rng(seed)
    result = solve_obscure(problem, n_epochs_online=MOST_EPOCHS, n_epochs=0, eta=eta, rng=rng)
    step = result.extra["eta"]
    lipschitz_sq = 2.0 * ones_norm(problem)
    strength = problem.q * (2.0 / step + lipschitz_sq)
    bounds = []
    for norm, losses in comparators(problem):
        # losses of the rounds with an update: at most all visits of all epochs, counted at their largest
        total = losses * result.n_iter
        bounds.append(strength * norm**2 + total + norm * math.sqrt(strength * total))
    return {
        "updates": result.n_updates,
        "bound": min(bounds),
        "radius": result.extra["radius_online"],
        "optimum_norm": norm_of(problem, reference(problem)),
        "epochs": result.n_iter,
        "without_loss": result.n_iter < MOST_EPOCHS,
        "separable_radius": (2.0 + step * lipschitz_sq) * least_separator(problem),
    }


def suboptimality_bound(method, n_samples, seed, C, p, n_epochs, streams):
    """Theorems 4.2 and 4.5 (in expectation): suboptimality over independent draws, and the bound."""
    problem = stream_problem("mfeat-6", n_samples, seed, p=p, C=C)
    best = reference(problem, tol=1e-4)
    strength = problem.regularization
    options = {"n_epochs": n_epochs, "sampling": "iid", "measure": "geometric"}
    rows = []
    for stream in range(streams):
        result = solve(method, problem, seed=1000 * seed + stream, **options)
        history = result.history[result.history.stage == "batch"].dropna(subset=["objective"])
        steps = (history.epoch - history.epoch.iloc[0] + 1) * n_samples
        logs = 1.0 + np.log(steps)
        if method == "OBSCURE":
            radius = result.extra["radius"]
            rate = (strength * radius + math.sqrt(2.0 * ones_norm(problem))) * np.sqrt(problem.q * logs)
            bound = rate * np.minimum(rate / (strength * steps), 4.0 * radius / np.sqrt(steps))
        else:
            kernels = max(1.0, math.log(problem.bank.n_kernels))
            bound = math.e * 2.0 * logs * kernels / (strength * steps)
        gap = history.objective - (best.objective - best.dual_gap)
        rows.append(pd.DataFrame({"stream": stream, "step": steps, "suboptimality": gap, "bound": bound}))
    return pd.concat(rows, ignore_index=True)
