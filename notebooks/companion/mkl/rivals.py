"""Every method of the chapter through its estimator: registry, choice of parameters, timed fits, curves.

A further method takes a file with its estimator and one line in `METHODS`. It needs ``fit(bank, y)`` with
``kernels="precomputed"`` and ``predict``; with `history_` and `callback` it gets curves too.
"""

import inspect
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from companion.mkl.online import OMCLOnKernels
from companion.mkl.runs import SOLVERS, many_kernels, rows_read, suboptimality, training_curve
from companion.mkl.settings import ALPHA_GRID, C_GRID, P_GRID
from companion.mkl.tasks import get_task
from companion.protocol import at_edges, best_of, fitted, gathered, grid_points, looks, timed
from cuelearn import mkl
from cuelearn.core.intervals import interval
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl.onevsall import OneVersusAllMKL
from cuelearn.mkl.single import FOLDS

# a fit that takes less than this many seconds is timed several times; the median counts
SHORT = 0.1
REPEATS = 5
HELD = 4e8  # bytes of test kernels that are held for several models
POINTS = 20  # of a curve of the online error, at least


class Method(NamedTuple):
    """A method: parameters chosen by cross-validation, fixed `options`, the method `like` it with the same
    problem, whose choice is taken over, and its `own` parameter, which the estimator chooses itself.
    """

    estimator: type
    grid: dict = {}
    options: dict = {}
    like: str = ""
    own: str = ""


# all stop at this certified gap, of their own problem: the stochastic solvers, after their epochs, by dual
# ascent on the same problem
BATCH = {"tol": 0.05}
CERTIFIED = {"n_epochs": 5, "finish": True, **BATCH}
METHODS = {
    "OM2": Method(mkl.OM2, {"p": P_GRID}, {"shuffle": True}),
    "OBSCURE": Method(mkl.OBSCURE, {"C": C_GRID, "p": P_GRID}, CERTIFIED),
    "OBSCURE online": Method(mkl.OBSCURE, options={"n_epochs": 0, "tol": None}, like="OBSCURE"),
    "PegasosMKL": Method(mkl.PegasosMKL, options=CERTIFIED, like="OBSCURE"),
    "UFOMKL": Method(mkl.UFOMKL, {"C": C_GRID, "alpha": ALPHA_GRID}, CERTIFIED),
    "SILPMKL": Method(mkl.SILPMKL, {"C": C_GRID}, BATCH),
    "SimpleMKL": Method(mkl.SimpleMKL, options=BATCH, like="SILPMKL"),
    "LpMKL": Method(mkl.LpMKL, {"C": C_GRID, "p": P_GRID}, BATCH),
    "LpMKL sparse": Method(mkl.LpMKL, options=BATCH, like="LpMKL"),  # its C, at the papers' p
    "MCMKL": Method(mkl.MCMKL, {"C": C_GRID}, BATCH),
    "LPBeta": Method(mkl.LPBeta, {"C": C_GRID}, own="nu"),
    "LPBeta per class": Method(mkl.LPBeta, options={"per_class": True}, like="LPBeta", own="nu"),
    "AverageKernelSVM": Method(mkl.AverageKernelSVM, {"C": C_GRID}),
    "BestKernelSVM": Method(mkl.BestKernelSVM, {"C": C_GRID}),
    "KernelPA": Method(mkl.KernelPA, {"C": C_GRID}, {"kernel": "average", "shuffle": True}),
    "KernelPA best": Method(mkl.KernelPA, {"C": C_GRID}, {"kernel": "best", "shuffle": True}),
    "OMCL-PERC": Method(OMCLOnKernels, {"C": (0.01, 0.1, 1.0, 10.0)}),
}
ONLINE = ("OM2", "OMCL-PERC", "KernelPA", "KernelPA best")
#: Ends of the grids that nothing lies beyond.
NATURAL = {"p": (2.0,), "alpha": (0.0,)}


def build(method, params, seed, labels=None, groups=None, **more):
    """The estimator of a method on precomputed kernels; its own folds keep `groups` of samples together."""
    entry = METHODS[method]
    takes = inspect.signature(entry.estimator).parameters
    settings = {"random_state": seed, **entry.options, **params, **more}
    if groups is not None and "folds" in takes:
        settings["folds"] = folds_of(labels, groups, FOLDS, seed)
    return entry.estimator("precomputed", **{k: v for k, v in settings.items() if k in takes})


@cache
def warm_up_method(method):
    """Compile and load all that a method's timed fits will use."""
    rng = np.random.default_rng(0)
    bank = KernelBank([("a", RBF(), [0]), ("b", RBF(), [1])], rng.normal(size=(30, 2)), memory=1e6)
    fitted(build(method, {}, 0), bank, np.arange(30) % 3).predict(bank.stack[:, :5])


def held_kernels(task):
    """The test kernels of a task as one array, if they are small; else the cross bank."""
    bank = task.bank
    if task.cross.n_rows * bank.n_kernels * bank.n_samples * bank.dtype.itemsize > HELD:
        return task.cross
    return np.concatenate([block for _, block in task.cross.blocks()], axis=1)


def error_of(model, test, task):
    return float(np.mean(model.predict(test) != task.test_labels))


def folds_of(labels, groups, n_folds, seed):
    """Stratified folds that keep samples of a group, all of one class, on one side."""
    ids, first, which = np.unique(
        np.arange(labels.size) if groups is None else groups, return_index=True, return_inverse=True
    )
    n_folds = min(n_folds, np.bincount(labels[first]).min())
    drawn = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(ids, labels[first])
    sides = [np.isin(which, test) for _, test in drawn]
    return [(np.flatnonzero(~side), np.flatnonzero(side)) for side in sides]


def to_choose_on(seed, every=1, **where):
    """Kernels, labels and groups of what parameters are chosen on: one of `every` few classes."""
    task = get_task(n_test=1, seed=seed, **where)
    rows = np.flatnonzero(task.labels % every == 0)
    bank = task.bank if every == 1 else task.bank.restrict(rows)
    return bank, task.labels[rows] // every, None if task.groups is None else task.groups[rows]


def validation_accuracy(method, params, n_folds, seed, options=None, **where):
    """Accuracy of one choice of parameters on held-back training samples."""
    bank, labels, groups = to_choose_on(seed, **where)
    right = []
    for train, test in folds_of(labels, groups, n_folds, seed):
        own = None if groups is None else groups[train]
        model = build(method, params, seed, labels[train], own, **(options or {}))
        fitted(model, bank.restrict(train), labels[train])
        for rows in np.split(test, range(128, test.size, 128)):
            predicted = model.predict(np.ascontiguousarray(bank.rows(rows)[:, :, train]))
            right.append(predicted == labels[rows])
    return {"accuracy": float(np.mean(np.concatenate(right)))}


def own_choice(method, params, seed, **where):
    """The parameter that an estimator chooses by its own cross-validation, others given."""
    bank, labels, groups = to_choose_on(seed, **where)
    own = METHODS[method].own
    model = fitted(build(method, params, seed, labels, groups), bank, labels)
    return {own: float(getattr(model, f"{own}_"))}


def choose(
    sweep,
    task,
    n_train,
    methods,
    seed,
    *,
    n_folds,
    every=1,
    grids=None,
    n_kernels=None,
    options=None,
    data=(),
):
    """Parameters of several methods, all by one validation, and a table of all points tried.

    `grids` replaces some of the papers' values; where the best of these is the first or last, the papers'
    next value is tried too, until none is better. Ties: the smaller C, the larger p and alpha. `options` are
    further fixed parameters by method.
    """
    where = {"task": task, "n_train": n_train, "seed": seed, "n_kernels": n_kernels, "every": every}
    source = {m: METHODS[m].like or m for m in methods}  # whose choice it takes over
    grid_of = {
        m: {name: (grids or {}).get(name, values) for name, values in METHODS[m].grid.items()}
        for m in dict.fromkeys(source.values())
        if METHODS[m].grid
    }
    wanted = {m: grid_points(**grid) for m, grid in grid_of.items()}
    rows, chosen = {m: [] for m in grid_of}, {}
    while any(wanted.values()):
        points = [
            {**where, "n_folds": n_folds, "method": m, "options": (options or {}).get(m), "params": params}
            for m, further in wanted.items()
            for params in further
        ]
        for point, result in zip(points, sweep.run(validation_accuracy, points, data=data), strict=True):
            rows[point["method"]].append({**point["params"], **result})
        for m in [m for m, further in wanted.items() if further]:
            best = best_of(rows[m], [r["accuracy"] for r in rows[m]], smaller=["C"], larger=["p", "alpha"])
            chosen[m] = {name: rows[m][best][name] for name in grid_of[m]}
            wanted[m] = next_to(chosen[m], rows[m], grid_of[m], METHODS[m].grid)
    for m in rows:
        tried = {name: {row[name] for row in rows[m]} for name in grid_of[m]}
        edge = at_edges(tried, chosen[m], NATURAL)
        for row in rows[m]:
            is_chosen = chosen[m].items() <= row.items()
            row |= {"chosen": is_chosen, "edge": edge if is_chosen else ""}
    table = pd.DataFrame([{"method": m, **row} for m in rows for row in rows[m]])
    chosen |= {m: chosen.get(source[m], {}) for m in methods}
    points = [{**where, "method": m, "params": chosen[m]} for m in methods if METHODS[m].own]
    for point, own in zip(points, sweep.run(own_choice, points, data=data), strict=True):
        chosen[point["method"]] = point["params"] | own
    return {m: chosen[m] for m in methods}, table


def next_to(best, tried, begun, whole):
    """Neighbours of the best point, one step on in each parameter, that were not tried: among the first
    values, and those of the whole grid beyond their ends; one value alone is fixed.
    """
    neighbours = []
    for name, value in best.items():
        ends = min(begun[name]), max(begun[name])
        further = [] if len(begun[name]) == 1 else [v for v in whole[name] if not ends[0] <= v <= ends[1]]
        line = sorted({*begun[name], *further})
        at = line.index(value)
        neighbours += [{**best, name: v} for v in (*line[max(0, at - 1) : at], *line[at + 1 : at + 2])]
    known = [{name: point[name] for name in best} for point in tried]
    return [point for point in neighbours if point not in known]


def edges(table):
    """What `choose` found at the edges of its grids, for the note of a figure."""
    at_edge = table[table["edge"] != ""]
    listed = "; ".join(at_edge["method"] + ": " + at_edge["edge"])
    return f"; at the edge of the grid: {listed}" if listed else ""


def choose_alone(C, n_folds, seed, **where):
    """C of every kernel alone, and as "average" of their mean, by folds; ties: the smaller C. The values of C
    rise: where no coefficient of an SVM is at its bound, a larger C has the same one.
    """
    task, chosen = get_task(n_test=1, seed=seed, **where), {}
    folds = folds_of(task.labels, task.groups, n_folds, seed)
    for name in (*task.bank.names, "average"):
        bank, right = alone(task.bank, name), np.zeros(len(C))
        for train, test in folds:
            part, across = bank.restrict(train), np.ascontiguousarray(bank.rows(test)[:, :, train])
            bounded = True
            for k, c in enumerate(C):
                if bounded:
                    model = fitted(mkl.AverageKernelSVM("precomputed", C=c), part, task.labels[train])
                    hits = np.sum(model.predict(across) == task.labels[test])
                    bounded = np.abs(model.dual_coef_).max() > 0.999 * c
                right[k] += hits
        chosen[name] = C[int(np.argmax(right))]
    return chosen


def alone(bank, name):
    return bank if name == "average" else bank.select([bank.names.index(name)])


def each_alone(chosen, seed, **where):
    """An SVM on every kernel that `chosen` gives a C: its test error and its predictions."""
    task = get_task(seed=seed, **where)
    test, rows = held_kernels(task), []
    for name, C in chosen.items():
        own = test if name == "average" else test[[task.bank.names.index(name)]]
        model = fitted(mkl.AverageKernelSVM("precomputed", C=C), alone(task.bank, name), task.labels)
        predicted = model.predict(own)
        error = float(np.mean(predicted != task.test_labels))
        rows.append({"cue": name, "C": C, "test_error": error, "predicted": predicted.tolist()})
    return pd.DataFrame(rows)


def in_words(params):
    """Chosen parameters as text."""
    return ", ".join(f"{name}={value:g}" for name, value in params.items())


def compare(methods, seed, **where):
    """Several methods, a list of [name, parameters], on the same kernels, one after the other.

    `seconds` are of a whole fit, kernels in memory, warmed up; `n_used` kernels have weight; objective and
    dual_gap are of the method's own problem; `rows`: kernel rows read, of SILP and its like.
    """
    task = get_task(seed=seed, **where)
    rows, test = [], held_kernels(task)
    for method, params in methods:
        warm_up_method(method)
        times, per_class = [], issubclass(METHODS[method].estimator, OneVersusAllMKL)
        while not times or (sum(times) < SHORT and len(times) < REPEATS):
            solved = []
            watch = {"callback": lambda model, _, solved=solved: solved.append(model.n_solved_)}
            model = build(method, params, seed, task.labels, task.groups, **(watch if per_class else {}))
            model, seconds = timed(fitted, model, task.bank, task.labels)
            times.append(seconds)
        row = {"method": method, "chosen": in_words(params), "seconds": float(np.median(times))}
        row["test_error"] = error_of(model, test, task)
        row["n_used"] = int(np.any(np.atleast_2d(model.kernel_weights_) != 0, axis=0).sum())
        for name, missing in (("objective", np.nan), ("dual_gap", np.nan), ("converged", True)):
            row[name] = float(getattr(model, f"{name}_", missing))
        read = rows_of_rounds(model, solved, task.bank)[-1] if per_class else np.nan
        rows.append({**row, "rows": float(read)})
    return pd.DataFrame(rows)


def many_compare(n_epochs, methods, seed, **where):
    """Several methods, dicts of name, method and parameters, on up to 1,400 kernels (thesis figure 4.10)."""
    rows = []
    for entry in methods:
        params = {k: v for k, v in entry.items() if k not in ("name", "method")}
        if entry["method"] in SOLVERS:
            result = many_kernels(entry["method"], n_epochs=n_epochs, seed=seed, **params, **where)
        else:
            result = compare([[entry["method"], params]], seed, **where).iloc[0]
        columns = ("seconds", "rows", "test_error", "n_used", "objective", "dual_gap")
        rows.append({"method": entry["name"], **{k: float(result.get(k, np.nan)) for k in columns}})
    return pd.DataFrame(rows)


def compare_all(sweep, task, sizes, n_test, methods, chosen, seeds, data=()):
    """`compare` over training sizes and seeds, `chosen` as by `choose`."""
    place = {"task": task, "n_test": n_test, "methods": [[m, chosen[m]] for m in methods]}
    points = [{**place, "n_train": n, "seed": s} for s in seeds for n in sizes]
    return gathered(sweep, compare, points, "n_train", "seed", data=data)


def with_ratios(table, by):
    """Means and deviations over seeds of a `compare`, with the ratio of times to OBSCURE's, run by run."""
    base = table[table["method"] == "OBSCURE"].rename(columns={"seconds": "base"})
    table = table.merge(base[[*by, "seed", "base"]], how="left", on=[*by, "seed"])
    table = table.assign(
        ratio=table["seconds"] / table["base"], gap=table["dual_gap"] / table["objective"].abs()
    )
    means = table.groupby([*by, "method"], sort=False).agg(
        **{"seconds": ("seconds", "mean"), "times OBSCURE": ("ratio", "mean")},
        error=("test_error", "mean"),
        error_sd=("test_error", "std"),
        kernels=("n_used", "mean"),
        converged=("converged", "mean"),
        chosen=("chosen", "first"),
        relative_gap=("gap", "max"),
    )
    return means.reset_index()


def with_intervals(table, by):
    """Accuracy in percent over the splits: mean and 95% interval by the columns `by`."""
    groups = table.groupby(by, sort=False)["test_error"]
    rows = [interval(100 * (1 - errors.to_numpy())) for _, errors in groups]
    return pd.DataFrame(rows, columns=["accuracy", "low", "high"], index=groups.first().index)


def rival_curve(method, params, seed, n_epochs=None, tol=None, **where):
    """Test error, objective, gap and updates over time and work of any method with a history.

    The stochastic solvers run `n_epochs` epochs, or to a certified gap of `tol`; batch methods end by their
    own rule. The clock stops while the test error is measured. `lower` bounds the method's own problem.
    """
    if method in SOLVERS:
        frame = training_curve(method, n_epochs, seed, tol=tol, **params, **where)
        return frame.assign(lower=(frame["objective"] - frame["dual_gap"]).max())
    warm_up_method(method)
    task = get_task(seed=seed, **where)
    rows, solved, at, test = [], [], looks(1.5), held_kernels(task)

    def note(model):
        rows.append({**model.history_.iloc[-1].drop("stage"), "test_error": error_of(model, test, task)})

    def watch(model, step):
        solved.append(getattr(model, "n_solved_", 0))
        if step in at:
            note(model)

    model = fitted(build(method, params, seed, callback=watch), task.bank, task.labels)
    if not rows or rows[-1]["step"] != model.history_["step"].iloc[-1]:
        note(model)
    frame = pd.DataFrame(rows).astype(float).drop(columns=["online_error"])
    read = rows_of_rounds(model, np.array(solved), task.bank)[frame["step"].astype(int) - 1]
    return frame.assign(lower=frame["objective"].iloc[-1] - frame["dual_gap"].iloc[-1], rows=read)


def rows_of_rounds(model, solved, bank):
    """Kernel rows that a batch method has read after each of its rounds, `solved` being the SVMs until then.

    A round reads all rows for the norms. Before an SVM those of the kernels with weight are combined: their
    mean over the classes when the round began; at first weights are equal, combined once for all classes.
    Each of its iterations reads two combined rows. MC-MKL: one SVM a round, whose updates read one.
    """
    n, updates = bank.n_samples, model.history_["n_updates"].to_numpy()
    norms = n * bank.n_kernels * np.arange(1, updates.size + 1)
    if not hasattr(model, "path_"):
        return 2 * norms + updates
    svms = np.diff(solved, prepend=0.0)
    svms[0] -= model.path_.shape[1] - 1
    combined = n * svms * np.count_nonzero(model.path_[:-1], axis=2).mean(axis=1)
    return norms + np.cumsum(combined) + 2 * updates


def curves_of(sweep, task, n_train, n_test, methods, chosen, seeds, *, n_epochs, tol=None, data=()):
    """`rival_curve` of several methods over seeds: its columns, method, seed, chosen."""
    place = {"task": task, "n_train": n_train, "n_test": n_test, "n_epochs": n_epochs, "tol": tol}
    points = [{**place, "method": m, "params": chosen[m], "seed": s} for s in seeds for m in methods]
    curves = gathered(sweep, rival_curve, points, "method", "seed", data=data)
    return curves.assign(chosen=curves["method"].map({m: in_words(chosen[m]) for m in methods}))


def against_bounds(curves, exact):
    """Curves with their certified suboptimality; rows of `optimum` bound the solvers'."""
    bound = exact.set_index("seed")["lower"]
    own = ~curves["method"].isin(list(SOLVERS))
    curves = curves.assign(lower=curves["lower"].where(own, curves["seed"].map(bound)))
    return curves.assign(suboptimality=suboptimality(curves, curves["lower"]))


def online_curves(learners, seed, **where):
    """Online learners, a list of [method, parameters, epochs], on one split: the error over the first pass,
    in the order of the task, and on new samples after some epochs, a fit for each.
    """
    task = get_task(seed=seed, **where)
    test = held_kernels(task)
    return pd.concat([learner_curve(task, test, seed, *entry) for entry in learners], ignore_index=True)


def learner_curve(task, test, seed, method, params, epochs):
    warm_up_method(method)
    rows, chosen = [], in_words(params)
    for n_epochs in epochs:
        model = build(method, params, seed, task.labels, task.groups, n_epochs=n_epochs, shuffle=False)
        _, seconds = timed(model.fit, task.bank, task.labels)
        if hasattr(model, "best_kernel_"):  # chosen once, on the training part
            params = {**params, "kernel": model.best_kernel_}
        read = rows_read(task, model.history_).iloc[-1] if method == "OM2" else np.nan
        rows.append(("test", n_epochs, error_of(model, test, task), seconds, float(read)))
    mistakes = model.online_errors_[: task.labels.size]
    # the same points for permutations of different length
    step = 10 ** max(0, int(np.log10(mistakes.size / POINTS)))
    at = np.unique(np.r_[1, np.arange(step, mistakes.size + 1, step)])
    running = np.cumsum(mistakes)[at - 1] / at
    rows += [("online", int(a), float(e), np.nan, np.nan) for a, e in zip(at, running, strict=True)]
    frame = pd.DataFrame(rows, columns=["what", "at", "error", "seconds", "rows"])
    return frame.assign(method=method, params=chosen)
