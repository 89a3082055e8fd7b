"""Runs of the stochastic solvers; every function takes the arguments of `get_task` as ``**where``."""

import time
from functools import cache

import numpy as np
import pandas as pd
from sklearn.svm import SVC

from companion.mkl.tasks import get_task, kernel_set, predicted, test_error
from companion.protocol import FIRST_STAGE, in_turn, looks, quiet, timed
from cuelearn import datasets, mkl
from cuelearn.kernels import RBF, KernelBank, Linear
from cuelearn.kernels.rows import combined_kernel
from cuelearn.mkl import MKLProblem

SOLVERS = {
    "OM2": mkl.solve_om2,
    "OBSCURE": mkl.solve_obscure,
    "PegasosMKL": mkl.solve_pegasos_mkl,
    "UFOMKL": mkl.solve_ufo,
}


def solve(method, problem, *, n_epochs, seed, **options):
    """Run a solver by name with its own generator, silent where it does not converge."""
    if method == "OBSCURE":
        options = FIRST_STAGE | options
    with quiet():
        return SOLVERS[method](problem, n_epochs=n_epochs, rng=np.random.default_rng([seed, 2]), **options)


def reference(problem, tol=1e-3, time_limit=20.0, **options):
    with quiet():
        return mkl.solve_reference(problem, tol=tol, time_limit=time_limit, **options)


def loaded(seed, p="auto", C=1.0, alpha=0.0, **where):
    """A task and the problem that it poses, everything compiled that a timed run will use."""
    warm_up()
    task = get_task(seed=seed, **where)
    return task, MKLProblem(task.bank, task.labels, task.n_classes, p=p, C=C, alpha=alpha)


def outcome(task, result, stage=""):
    """Of a run: its test error, updates, kernel rows (without those of a dual ascent) and seconds."""
    last = result.history.ffill().iloc[-1]
    return {
        f"{stage or 'test_'}error": test_error(task, result.dual_coef, result.kernel_weights),
        f"{stage}updates": int(result.n_updates),
        f"{stage}rows": int(rows_read(task.bank, last)),
        f"{stage}seconds": float(last["seconds"]),
    }


def rows_read(bank, history):
    """Rows of single kernels that a stochastic run has read: a visit those of all, an update again."""
    return bank.n_kernels * (history["step"] + history["n_updates"])


@cache
def warm_up():
    """No time contains a compilation."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    labels = np.arange(12) % 3
    for memory in (1e6, 0.0):
        bank = KernelBank([("a", RBF(), [0]), ("b", RBF(), [1])], X, memory=memory)
        for scores in ("recompute", "maintain"):
            options = {"n_epochs": 2, "seed": 0, "scores": scores, "measure": "every", "shuffle": True}
            for method in SOLVERS:
                solve(method, MKLProblem(bank, labels, 3, p=1.5), **options)
        solve("UFOMKL", MKLProblem(bank, labels, 3, alpha=0.01), n_epochs=2, seed=0)
    reference(MKLProblem(bank, labels, 3), max_rounds=2)


def three_class(seed, p_om2=1.01, p_obscure=1.0001, C=10.0, noise=0.05):
    """Weights, of sum 1, on the three-class problem; `target`: the class told from the rest, 0 for all."""
    data = datasets.make_three_class(noise=noise, random_state=seed)
    bank = KernelBank(data.triples(Linear()), data.X)
    online = solve("OM2", MKLProblem(bank, data.y, 3, p=p_om2), n_epochs=5, seed=seed, shuffle=True)
    batch = solve("OBSCURE", MKLProblem(bank, data.y, 3, p=p_obscure, C=C), n_epochs=50, seed=seed)
    binary = mkl.SILPMKL("precomputed", C=C, tol=1e-4).fit(bank, data.y)
    drawn = [("SILPMKL", c + 1, 1.0, weights) for c, weights in enumerate(binary.kernel_weights_)]
    drawn += [("OM2", 0, p_om2, online.kernel_weights), ("OBSCURE", 0, p_obscure, batch.kernel_weights)]
    rows = [(m, t, p, j + 1, w) for m, t, p, weights in drawn for j, w in enumerate(weights / weights.sum())]
    return pd.DataFrame(rows, columns=["method", "target", "p", "kernel", "weight"])


def training_curve(method, n_epochs, seed, C=1.0, p="auto", alpha=0.0, hold_test=True, tol=None, **where):
    """Test error, objective and gap over time and work of one solver, the clock stopped meanwhile."""
    task, problem = loaded(seed, p, C, alpha, **where)
    blocks = list(task.cross.blocks(memory=2e8)) if hold_test else None
    rows = []

    def note(row, *point):
        rows.append({**row, "test_error": test_error(task, *point, blocks)})

    def watch(training, step):
        row = training.run.rows[-1]
        if np.isfinite(row["objective"]):
            note(row, *training.stream.point()[:2])

    options = {"measure": "geometric", "callback": watch, "tol": tol}
    result = solve(method, problem, n_epochs=n_epochs, seed=seed, **options)
    if rows[-1]["step"] != result.history.step.iloc[-1]:
        note(result.history.iloc[-1], result.dual_coef, result.kernel_weights)
    frame = pd.DataFrame(rows).assign(n_kernels_used=float(np.count_nonzero(result.kernel_weights)))
    return frame.assign(stage=frame["stage"].astype(str), rows=rows_read(task.bank, frame))


def optimum(C, p, seed, **where):
    """Certified optimum: the best objective known and the lower bound."""
    _, problem = loaded(seed, p, C, n_test=1, **where)
    result = reference(problem, tol=1e-4, time_limit=30.0)
    seconds = float(result.history.seconds.iloc[-1])
    return {"objective": result.objective, "lower": result.objective - result.dual_gap, "seconds": seconds}


def alike(bank, labels):
    """Number of samples that no kernel tells from one of another class: a loss on one of these stays."""
    same = np.min(bank.stack, axis=0) > 1.0 - 1e-6
    return int((same & (labels[:, None] != labels)).any(axis=1).sum())


def online_run(p, n_epochs, most_epochs, seed, method="OM2", **where):
    """OM-2, or OBSCURE's online stage, until it updates on no more visits than samples are `alike`."""
    task, problem = loaded(seed, p, **where)
    n = task.labels.size
    n_alike = alike(task.bank, task.labels)

    def run(epochs):
        if method == "OM2":
            return solve("OM2", problem, n_epochs=epochs, seed=seed, shuffle=True, until_no_loss=True)
        return solve("OBSCURE", problem, n_epochs=0, n_epochs_online=epochs, seed=seed)

    early = run(n_epochs)
    late = run(most_epochs)
    done = np.flatnonzero(np.diff(late.history["n_updates"], prepend=0) <= n_alike)
    at = late.history.iloc[done[0] if done.size else -1]
    return {
        "test_error": test_error(task, early.dual_coef, early.kernel_weights),
        "online_error": float(early.online_errors[:n].mean()),
        "final_error": test_error(task, late.dual_coef, late.kernel_weights),
        "epochs": int(at["epoch"]),
        "visits": int(at["epoch"]) * n,
        "updates": int(at["n_updates"]),
        "rows": int(rows_read(task.bank, at)),
        "seconds": float(at["seconds"]),
        "alike": n_alike,
        "converged": bool(done.size),
    }


def two_stages(p, C, n_epochs, tol, seed, **where):
    """OBSCURE's online stage alone, and both stages to a certified gap."""
    task, problem = loaded(seed, p, C, **where)
    online = solve("OBSCURE", problem, n_epochs=0, seed=seed)
    both = solve("OBSCURE", problem, n_epochs=n_epochs, tol=tol, seed=seed)
    end = {
        "relative_gap": both.dual_gap / both.objective,
        "converged": bool(both.converged),
        "online_epochs": online.n_iter,
        "epochs": both.n_iter,
    }
    return outcome(task, online, "online_") | outcome(task, both) | end


def many_kernels(method, C, p, n_epochs, seed, alpha=0.0, tol=None, finish=False, **where):
    """One solver on up to 1,400 kernels; a visit reads the rows of those with weight when its epoch ended."""
    task, problem = loaded(seed, p, C, alpha, **where)
    active = []

    def watch(training, step):
        active.append(int(training.stream.dual.now.n_active))

    options = {"tol": tol, "finish": finish, "callback": watch}
    result = solve(method, problem, n_epochs=n_epochs, seed=seed, **options)
    end = outcome(task, result)
    share = result.kernel_weights / max(result.kernel_weights.max(), 1e-300)
    return {
        "seconds": end["seconds"],
        "rows": task.bank.n_samples * sum(active) + task.bank.n_kernels * end["updates"],
        "test_error": end["test_error"],
        "n_used": int(np.count_nonzero(result.kernel_weights)),
        "n_above_1e-3": int(np.sum(share > 1e-3)),
        "objective": result.objective,
        "dual_gap": result.dual_gap,
        "n_updates": end["updates"],
    }


def against_alpha(runs, seed, **where):
    """`many_kernels` of UFO-MKL at several C, alpha and tol, a list of dicts, in turn on one split: steps,
    and where there is a tolerance ascent to it."""
    where |= {"p": "auto", "seed": seed}
    rows = [
        run | many_kernels("UFOMKL", finish=run["tol"] is not None, **run, **where)
        for run in in_turn(runs, seed)
    ]
    return pd.DataFrame(rows)


def first_stages(stages, p, C, n_epochs, seed, **where):
    """What OBSCURE comes to after online stages of several lengths and step sizes, a list of dicts."""
    task, problem = loaded(seed, p, C, **where)
    best = reference(problem)
    rows = []
    for stage in stages:
        result = solve("OBSCURE", problem, n_epochs=n_epochs, seed=seed, measure="geometric", **stage)
        history = result.history
        online = history[history["stage"] == "online"]
        end = outcome(task, result)
        row = {"n_epochs_online": stage["n_epochs_online"], "eta": str(stage["eta"]), "epochs": len(online)}
        row |= {"radius": result.extra["radius"], "suboptimality": history["objective"].min()}
        rows.append(row | {name: end[name] for name in ("test_error", "rows", "seconds")})
    frame = pd.DataFrame(rows)
    lower = best.objective - best.dual_gap
    return frame.assign(suboptimality=(frame["suboptimality"] - lower) / lower)


def all_of_mnist(n_train, n_test, C, p, n_epochs, seed):
    """OBSCURE on up to 60,000 digits, kernels computed on demand; `wrong`: digits mistaken at last.

    The online stage takes one epoch where there are too few for it to end.
    """
    task, problem = loaded(seed, p, C, task="mnist-12", n_train=n_train, n_test=n_test)
    at = looks(1.3)
    rows = []

    def note(row, *point):
        mistaken = predicted(task, *point) != task.test_labels
        wrong = np.flatnonzero(mistaken).tolist()
        rows.append({**row, "test_error": float(mistaken.mean()), "wrong": wrong})

    def watch(training, step):
        if training.epoch in at:
            note(training.run.rows[-1], *training.stream.point()[:2])

    online = FIRST_STAGE["n_epochs_online"]
    online = online if n_epochs > online else 1
    options = {"n_epochs_online": online, "callback": watch, "certify": False}
    result = solve("OBSCURE", problem, n_epochs=n_epochs - online, seed=seed, **options)
    note(result.history.iloc[-1], result.dual_coef, result.kernel_weights)
    frame = pd.DataFrame(rows).drop(columns=["objective", "dual_gap"])
    return frame.assign(stage=frame["stage"].astype(str))


def times_beside_svm(n_train, C, repeats, seed):
    """CPU seconds of default fits on kernels in memory, and of SVC on their average, for each C: medians.

    `averaging` is SVC's own, `ascent` the share of the dual ascent, without the time of its certificates.
    """
    task = get_task("pendigits-4", n_train, 1, seed)
    runs = []
    for n in (min(100, n_train), n_train):  # the first compiles
        bank = task.bank if n == n_train else task.bank.restrict(np.arange(n))
        runs = [
            {"C": value, "method": method, **time_of_fit(method, bank, task.labels[:n], value, seed)}
            for value in C
            for _ in range(repeats)
            for method in in_turn(["OBSCURE", "UFOMKL", "AverageKernelSVM"], seed)
        ]
    return pd.DataFrame(runs).groupby(["C", "method"], sort=False).median().reset_index()


def time_of_fit(method, bank, labels, C, seed):
    if method == "AverageKernelSVM":
        average, averaging = timed(combined_kernel, bank, np.full(bank.n_kernels, 1.0 / bank.n_kernels), 1.0)
        _, seconds = timed(SVC(C=C, kernel="precomputed").fit, average, labels)
        return {"seconds": seconds, "averaging": averaging}
    model = getattr(mkl, method)("precomputed", C=C, random_state=seed)
    _, seconds = timed(model.fit, bank, labels)
    history = model.history_
    epochs = history.loc[history["stage"] != "dual", "seconds"].iloc[-1]
    parts = {"epochs": epochs, "ascent": history["seconds"].iloc[-1] - epochs}
    return {"seconds": seconds, **parts, "gap": model.dual_gap_ / model.objective_}


def gap_on_all_digits(n_train, tol, seed):
    """Certified gap of a default fit on MNIST over CPU seconds, 12 kernels computed on demand in 2 GB."""
    warm_up()
    data = datasets.load_mnist(n_train=n_train, n_test=1)
    rows = []
    start = time.process_time()

    def watch(model, step):
        rows.append({"stage": "epoch", "seconds": time.process_time() - start, "gap": np.nan})

    options = {"C": 1.0, "tol": tol, "random_state": seed, "callback": watch}
    model = mkl.OBSCURE(kernel_set("mnist-12", data), **options)
    with quiet():
        model.fit(data.X[:n_train], data.y[:n_train])
    rows.append(
        {"stage": "end", "seconds": time.process_time() - start, "gap": model.dual_gap_ / model.objective_}
    )
    return pd.DataFrame(rows).assign(n_support=model.support_.size)


def suboptimality(curve, lower):
    """Relative distance of a curve's objective from a certified lower bound of the optimum."""
    return (curve["objective"] - lower) / lower
