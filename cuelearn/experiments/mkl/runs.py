"""Runs of the stochastic solvers: curves over the training time, the certified optimum, growing sets of kernels and samples."""

import time
import warnings
from functools import lru_cache

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from cuelearn import datasets
from cuelearn.experiments.mkl.tasks import Task, kernel_set, load_data, load_task, test_blocks, test_error
from cuelearn.kernels import KernelBank, Linear, RBF
from cuelearn.mkl.obscure import solve_obscure, solve_pegasos_mkl
from cuelearn.mkl.om2 import solve_om2
from cuelearn.mkl.problem import MKLProblem, combine
from cuelearn.mkl.reference import combined_kernel, solve_reference
from cuelearn.mkl.single import AverageKernelSVM, BestKernelSVM
from cuelearn.mkl.ufo import solve_ufo

SOLVERS = {"OM2": solve_om2, "OBSCURE": solve_obscure, "PegasosMKL": solve_pegasos_mkl, "UFOMKL": solve_ufo}


def solve(method, problem, *, n_epochs, seed, **options):
    """Run a solver by name with its own generator; epochs are whole permutations unless `sampling` says otherwise."""
    return SOLVERS[method](problem, n_epochs=n_epochs, rng=np.random.default_rng([seed, 2]), **options)


@lru_cache(maxsize=1)
def warm_up():
    """Compile every routine that a timed run will use, so that no time contains a compilation."""
    rng = np.random.default_rng(0)
    labels = np.arange(12) % 3
    for memory in (1e6, 0.0):
        bank = KernelBank([("a", RBF(), [0]), ("b", RBF(), [1])], rng.normal(size=(12, 2)), memory=memory)
        for scores in ("recompute", "maintain"):
            for method in SOLVERS:
                solve(method, MKLProblem(bank, labels, 3, p=1.5), n_epochs=2, seed=0, scores=scores, measure="every", shuffle=True)
        solve("UFOMKL", MKLProblem(bank, labels, 3, alpha=0.01), n_epochs=2, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solve_reference(MKLProblem(bank, labels, 3), max_rounds=2)


def three_class(seed, p_om2=1.01, p_obscure=1.0001, C=10.0, noise=0.05):
    """Kernel weights, normalised to sum 1, on the simulated three-class problem (thesis figure 4.1, JMLR figure 1)."""
    data = datasets.make_three_class(noise=noise, random_state=seed)
    bank = KernelBank(data.triples(Linear()), data.X)
    options = dict(n_epochs=5, seed=seed, shuffle=True)
    online = solve("OM2", MKLProblem(bank, data.y, 3, p=p_om2), **options)
    batch = solve("OBSCURE", MKLProblem(bank, data.y, 3, p=p_obscure, C=C), n_epochs=50, seed=seed)
    rows = []
    for method, p, result in (("OM2", p_om2, online), ("OBSCURE", p_obscure, batch)):
        share = result.kernel_weights / result.kernel_weights.sum()
        rows += [{"method": method, "p": p, "kernel": j + 1, "weight": w} for j, w in enumerate(share)]
    return pd.DataFrame(rows)


def cross_validation(task, n_train, method, C, p, n_epochs, n_folds, seed):
    """Cross-validated accuracy of one choice of parameters, on the training part only."""
    loaded = load_task(task, n_train, 1, seed)
    bank, labels = loaded.bank, loaded.labels
    correct = 0
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(labels, labels):
        problem = MKLProblem(bank.restrict(train), labels[train], loaded.n_classes, p=p, C=C)
        result = solve(method, problem, n_epochs=n_epochs, seed=seed)
        support = np.flatnonzero(np.any(result.dual_coef != 0.0, axis=1))
        for start in range(0, test.size, 256):
            rows = test[start : start + 256]
            block = bank.rows(rows)[:, :, train[support]]
            scores = combine(block, result.kernel_weights) @ result.dual_coef[support].astype(block.dtype)
            correct += int(np.sum(np.argmax(scores, axis=1) == labels[rows]))
    return {"accuracy": correct / labels.size}


def choose(sweep, task, n_train, method, seed, *, n_folds, n_epochs, C_grid, p_grid):
    """Best C and p over the grid by cross-validation; ties go to the smaller C, then the larger p.

    Returns
    -------
    best : dict
        C and p.
    table : DataFrame
        Accuracy of every grid point.
    """
    points = [
        dict(task=task, n_train=n_train, method=method, C=C, p=p, n_epochs=n_epochs, n_folds=n_folds, seed=seed)
        for C in C_grid
        for p in p_grid
    ]
    table = sweep.frame(cross_validation, points, data=load_data(task).provenance)
    best = table.sort_values(["accuracy", "C", "p"], ascending=[False, True, False]).iloc[0]
    return {"C": float(best.C), "p": float(best.p)}, table


def training_curve(task, n_train, n_test, method, C, p, n_epochs, seed, alpha=0.0, n_kernels=None, hold_test=True, **options):
    """Test error, objective and gap over the training time of one solver.

    The clock of the history stops while objective and test error are measured.
    """
    warm_up()
    key = (task, n_train, n_test, seed, n_kernels)
    loaded = load_task(*key)
    blocks = test_blocks(*key) if hold_test else None
    problem = MKLProblem(loaded.bank, loaded.labels, loaded.n_classes, p=p, C=C, alpha=alpha)
    rows = []

    def watch(training, step):
        row = training.history.rows[-1]
        if np.isfinite(row["objective"]):
            coef, weights = training.stream.point()
            rows.append({**row, "test_error": test_error(loaded, coef, weights, blocks)})

    result = solve(method, problem, n_epochs=n_epochs, seed=seed, measure="geometric", callback=watch, **options)
    if rows[-1]["step"] != result.history.step.iloc[-1]:
        last = dict(result.history.iloc[-1])
        rows.append({**last, "test_error": test_error(loaded, result.dual_coef, result.kernel_weights, blocks)})
    frame = pd.DataFrame(rows)
    frame["n_kernels_used"] = float(np.count_nonzero(result.kernel_weights))
    frame["stage"] = frame["stage"].astype(str)
    return frame


def optimum(task, n_train, seed, C, p, alpha=0.0, n_kernels=None, tol=1e-4, time_limit=60.0):
    """Certified optimum: the best objective known and the lower bound."""
    loaded = load_task(task, n_train, 1, seed, n_kernels)
    problem = MKLProblem(loaded.bank, loaded.labels, loaded.n_classes, p=p, C=C, alpha=alpha)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap itself is reported
        result = solve_reference(problem, tol=tol, time_limit=time_limit)
    return {
        "objective": result.objective, "lower": result.objective - result.dual_gap, "seconds": float(result.history.seconds.iloc[-1])
    }  # fmt: skip


def online_run(task, n_train, n_test, p, n_epochs, most_epochs, seed, n_kernels=None, eta=None, C=1.0):
    """OM-2 (or, with `eta`, OBSCURE's online stage) after some epochs, and run on until an epoch passes without an update.

    Returns
    -------
    dict
        Test errors after `n_epochs` and at the end; epochs, updates and seconds to convergence; whether it converged.
    """
    warm_up()
    loaded = load_task(task, n_train, n_test, seed, n_kernels)
    problem = MKLProblem(loaded.bank, loaded.labels, loaded.n_classes, p=p, C=C)

    def run(epochs):
        if eta is None:
            return solve("OM2", problem, n_epochs=epochs, seed=seed, shuffle=True, until_no_loss=True)
        return solve("OBSCURE", problem, n_epochs=0, n_epochs_online=epochs, seed=seed, eta=eta)

    early, late = run(n_epochs), run(most_epochs)
    updates = np.diff(np.r_[0, late.history.n_updates.to_numpy()])
    return {
        "test_error": test_error(loaded, early.dual_coef, early.kernel_weights),
        "online_error": float(early.online_errors[: loaded.labels.size].mean()),
        "final_error": test_error(loaded, late.dual_coef, late.kernel_weights),
        "epochs": int(late.n_iter), "updates": int(late.n_updates), "seconds": float(late.history.seconds.iloc[-1]),
        "converged": bool(updates[-1] == 0),
    }  # fmt: skip


def single_kernel(task, n_train, n_test, method, C_grid, n_folds, seed):
    """SVM on the average or the best kernel; C (and the kernel) by cross-validation on the training part, like for every method."""
    loaded = load_task(task, n_train, n_test, seed)
    bank = KernelBank.from_stack(combined(loaded.bank)[None], validate=False) if method == "AverageKernelSVM" else loaded.bank
    # on a bank of one kernel, the best kernel's cross-validated accuracy is that of the average
    accuracy = [
        BestKernelSVM("precomputed", C=C, cv=n_folds, random_state=seed).fit(bank, loaded.labels).kernel_accuracy_.max() for C in C_grid
    ]
    C = C_grid[int(np.argmax(accuracy))]
    estimator = {"AverageKernelSVM": AverageKernelSVM, "BestKernelSVM": BestKernelSVM}[method]
    began = time.perf_counter()
    model = estimator("precomputed", C=C).fit(loaded.bank, loaded.labels)
    seconds = time.perf_counter() - began
    return {"C": C, "seconds": seconds, "test_error": float(np.mean(model.predict(loaded.cross) != loaded.test_labels))}


def combined(bank):
    """Unweighted mean of a bank's kernels."""
    return combined_kernel(bank, np.full(bank.n_kernels, 1.0 / bank.n_kernels), 1.0)


def many_kernels(n_kernels, n_train, n_test, method, C, p, alpha, n_epochs, seed):
    """One solver on up to 1,400 kernels: error, seconds, kernels with weight."""
    warm_up()
    loaded = load_task("mfeat-1400", n_train, n_test, seed, n_kernels)
    problem = MKLProblem(loaded.bank, loaded.labels, loaded.n_classes, p=p, C=C, alpha=alpha)
    result = solve(method, problem, n_epochs=n_epochs, seed=seed)
    share = result.kernel_weights / max(result.kernel_weights.max(), 1e-300)
    return {
        "seconds": float(result.history.seconds.iloc[-1]), "test_error": test_error(loaded, result.dual_coef, result.kernel_weights),
        "n_used": int(np.count_nonzero(result.kernel_weights)), "n_above_1e-3": int(np.sum(share > 1e-3)),
        "objective": result.objective, "dual_gap": result.dual_gap, "n_updates": result.n_updates,
    }  # fmt: skip


def all_of_mnist(n_test, C, p, n_epochs, seed, memory=1e9):
    """OBSCURE on all 60,000 training digits, kernels computed on the fly (claim obs-8)."""
    warm_up()
    data = load_data("mnist-12")
    bank = KernelBank(kernel_set("mnist-12", data), data.X[data.train], memory=memory)
    test = data.test[:n_test]
    task = Task(bank, data.y[data.train], bank.cross(data.X[test]), data.y[test], 10)
    problem = MKLProblem(bank, task.labels, 10, p=p, C=C)
    rows = []

    def watch(training, step):
        coef, weights = training.stream.point()
        rows.append({**training.history.rows[-1], "test_error": test_error(task, coef, weights)})

    solve("OBSCURE", problem, n_epochs=n_epochs - 1, n_epochs_online=1, seed=seed, callback=watch, certify=False)
    frame = pd.DataFrame(rows).drop(columns=["objective", "dual_gap"])
    return frame.assign(stage=frame["stage"].astype(str))


def time_to(frame, column, level):
    """First second of a curve at which a column is at most a level; NaN if it never is."""
    reached = frame.loc[frame[column] <= level, "seconds"]
    return float(reached.iloc[0]) if len(reached) else np.nan


def suboptimality(curve, lower):
    """Relative distance of a curve's objective from a certified lower bound of the optimum: an upper bound of the true one."""
    return (curve["objective"] - lower) / lower
