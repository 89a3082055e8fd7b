"""The theorems of thesis chapter 4, measured on real and random streams."""

import math
import warnings

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.groupnorm import group_norm
from cuelearn.core.losses import margins
from cuelearn.experiments.mkl.runs import solve
from cuelearn.experiments.mkl.tasks import load_task
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl.obscure import solve_obscure
from cuelearn.mkl.om2 import solve_om2
from cuelearn.mkl.problem import MKLProblem
from cuelearn.mkl.reference import solve_reference


def comparators(problem, C_grid=(0.1, 1.0, 10.0, 100.0)):
    """Batch optima for several C as comparators u: their norm and their loss on every sample."""
    found = []
    for C in C_grid:
        batch = MKLProblem(problem.bank, problem.labels, problem.n_classes, p=problem.p, C=C)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # any u will do
            result = solve_reference(batch, tol=1e-3, time_limit=10.0)
        norms = result.kernel_weights * np.sqrt(batch.block_norms_sq(result.dual_coef))
        own = margins(batch.training_scores(result.dual_coef, result.kernel_weights), batch.labels)
        for scale in (0.25, 0.5, 1.0, 2.0, 4.0):
            found.append((scale * group_norm(norms, batch.p), np.maximum(0.0, 1.0 - scale * own)))
    return found


def stream_problem(kind, n_samples, seed, n_kernels=6, p="auto", C=1.0):
    """A stream for the mistake bounds: real ("mfeat-6"), random labels ("random"), or one useful kernel among useless ones."""
    if kind == "mfeat-6":
        task = load_task("mfeat-6", n_samples, 1, seed)
        return MKLProblem(task.bank, task.labels, task.n_classes, p=p, C=C)
    rng = np.random.default_rng([seed, 3])
    # "random": labels that no kernel explains; "one useful": only the first kernel does
    labels = rng.integers(5, size=n_samples)
    labels[:5] = np.arange(5)
    features = rng.normal(size=(n_samples, n_kernels, 5))
    if kind == "one useful":
        features[:, 0] = 0.6 * features[:, 0] + 2.0 * np.eye(5)[labels]
    triples = [(f"k{j}", RBF(), slice(5 * j, 5 * j + 5)) for j in range(n_kernels)]
    return MKLProblem(KernelBank(triples, features.reshape(n_samples, -1)), labels, 5, p=p, C=C)


def mistake_bound(kind, n_samples, seed, p):
    """Theorem 4.1 on one pass: mistakes of OM-2 and the bound, at the best comparator."""
    problem = stream_problem(kind, n_samples, seed, p=p)
    result = solve_om2(problem, n_epochs=1, rng=np.random.default_rng(seed), shuffle=False)
    mistakes = int(result.online_errors.sum())
    eta_sum = float(result.dual_coef[np.arange(n_samples), problem.labels].sum())
    lipschitz_sq = float(np.max(2.0 * group_norm(np.ones(problem.bank.n_kernels), problem.q / 2.0)))
    bounds = []
    for norm, losses in comparators(problem):
        c, s = problem.q * lipschitz_sq * norm**2, float(losses.sum())
        bounds.append(c + s + math.sqrt(s * c) - (eta_sum - mistakes))
    return {"mistakes": mistakes, "bound": min(bounds), "updates": result.n_updates}


def useless_kernels(n_kernels, n_samples, seed):
    """Corollary 4.1: mistakes of OM-2 at p = 2 ln F / (2 ln F - 1) with one useful kernel among F."""
    problem = stream_problem("one useful", n_samples, seed, n_kernels=n_kernels, p="auto")
    result = solve_om2(problem, n_epochs=1, rng=np.random.default_rng(seed), shuffle=False)
    return {
        "mistakes": int(result.online_errors.sum()),
        "weight": float(result.kernel_weights[0] / result.kernel_weights.sum()),
    }


def update_bound(n_samples, seed, p, eta, C=10.0, most_epochs=200):
    """Theorem 4.3: updates of the online stage until it converges, its R, and both bounds."""
    problem = stream_problem("mfeat-6", n_samples, seed, p=p, C=C)
    result = solve_obscure(
        problem, n_epochs_online=most_epochs, n_epochs=0, eta=eta, rng=np.random.default_rng(seed)
    )
    strength = problem.q * (2.0 / eta + 2.0 * group_norm(np.ones(problem.bank.n_kernels), problem.q / 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        batch = solve_reference(problem, tol=1e-3, time_limit=20.0)
    optimum_norm = group_norm(
        batch.kernel_weights * np.sqrt(problem.block_norms_sq(batch.dual_coef)), problem.p
    )
    bounds = []
    for norm, losses in comparators(problem):
        # losses of the rounds with an update: at most all visits of all epochs, counted at their largest
        total = float(losses.sum()) * result.n_iter
        bounds.append(strength * norm**2 + total + norm * math.sqrt(strength * total))
    return {
        "updates": result.n_updates,
        "bound": min(bounds),
        "radius": result.extra["radius_online"],
        "optimum_norm": optimum_norm,
        "epochs": result.n_iter,
    }


def suboptimality_bound(method, n_samples, seed, C, p, n_epochs, streams):
    """Theorems 4.2 and 4.5: mean suboptimality over independent draws (as both assume) and the bound, over the steps.

    The bound of UFO-MKL holds with probability 1 - delta; delta = 1 is the bound of the expectation it is derived from.
    """
    problem = stream_problem("mfeat-6", n_samples, seed, p=p, C=C)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        reference = solve_reference(problem, tol=1e-4, time_limit=20.0)
    rows = []
    for stream in range(streams):
        options = {"n_epochs_online": 2} if method == "OBSCURE" else {}
        result = solve(
            method,
            problem,
            n_epochs=n_epochs,
            seed=1000 * seed + stream,
            sampling="iid",
            measure="geometric",
            **options,
        )
        history = result.history[result.history.stage == "batch"].dropna(subset=["objective"])
        steps = (history.epoch - history.epoch.iloc[0] + 1) * n_samples
        radius = result.extra.get("radius", np.inf)
        L = math.sqrt(2.0 * group_norm(np.ones(problem.bank.n_kernels), problem.q / 2.0))
        c, logs = problem.regularization * radius + L, 1.0 + np.log(steps)
        if method == "OBSCURE":
            first = c * np.sqrt(problem.q * logs) / (problem.regularization * steps)
            bound = c * np.sqrt(problem.q * logs) * np.minimum(first, 4.0 * radius / np.sqrt(steps))
        else:
            bound = (
                math.e
                * 2.0
                * logs
                * max(1.0, math.log(problem.bank.n_kernels))
                / (problem.regularization * steps)
            )
        rows.append(
            pd.DataFrame(
                {
                    "stream": stream,
                    "step": steps,
                    "suboptimality": history.objective - (reference.objective - reference.dual_gap),
                    "bound": bound,
                }
            )
        )
    return pd.concat(rows, ignore_index=True)
