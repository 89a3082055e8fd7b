"""Every method of the chapter through its estimator: registry, choice of parameters, timed fits, curves.

A further method takes a file with its estimator and one line in `METHODS`. It needs ``fit(bank, y)`` with
``kernels="precomputed"`` and ``predict``; with `history_` and `callback` it gets curves too.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold

from companion.mkl import ALPHA_GRID, C_GRID, LARGER_C, P_GRID, get_task
from companion.mkl.runs import SOLVERS, many_kernels, rows_read, suboptimality, training_curve
from companion.protocol import FIRST_STAGE, fitted, grid_points, in_turn, looks, timed
from companion.study import Study, at_edges, best_of, interval
from cuelearn import mkl
from cuelearn.kernels import RBF, CrossBank, KernelBank
from cuelearn.mkl.rivals.alternating import OneVersusAllMKL
from cuelearn.mkl.rivals.single import FOLDS
from cuelearn.mkl.stochastic.training import draw_order
from cuelearn.omcl import OMCL, KernelPerceptron, PassiveAggressive

# a fit that takes less than this many seconds is timed several times; the median counts
SHORT = 0.1
REPEATS = 5
HELD = 4e8  # bytes of test kernels that are held for several models
POINTS = 20  # of a curve of the online error, at least


class OMCLOnKernels(ClassifierMixin, BaseEstimator):
    """OMCL-PERC on a bank: a Perceptron for each kernel, PA-I on their scores, averaged (thesis 3.3).
    Later epochs visit the training samples in a new order, as samples of their own.
    """

    def __init__(self, kernels="precomputed", *, C=1.0, n_epochs=1, random_state=None):
        self.kernels = kernels
        self.C = C
        self.n_epochs = n_epochs
        self.random_state = random_state

    def fit(self, bank, y):
        self.classes_, labels = np.unique(y, return_inverse=True)
        n, classes = labels.size, np.arange(self.classes_.size)
        rng = np.random.default_rng(self.random_state)
        learners = [(f"cue {j}", KernelPerceptron("precomputed"), j) for j in range(bank.n_kernels)]
        self.model_ = OMCL(learners, PassiveAggressive(C=self.C))
        orders = [draw_order(n, rng, shuffle=epoch > 0) for epoch in range(self.n_epochs)]
        self.order_ = np.concatenate(orders)
        for epoch, now in enumerate(orders):
            seen = self.order_[: (epoch + 1) * n]
            rows = np.ascontiguousarray(bank.rows(now)[:, :, seen])
            self.model_.partial_fit(rows, labels[now], classes=classes)
        self.online_errors_ = self.model_.online_errors_[:n]
        self.kernel_weights_ = np.ones(bank.n_kernels)
        return self

    def predict(self, X):
        blocks = [b for _, b in X.blocks()] if isinstance(X, CrossBank) else [np.asarray(X)]
        parts = [self.model_.predict(np.ascontiguousarray(b[:, :, self.order_])) for b in blocks]
        return self.classes_[np.concatenate(parts)]


class Method(NamedTuple):
    """It takes over the choice of the method `like` it; its `own` parameter the estimator chooses."""

    estimator: type
    grid: dict = {}
    options: dict = {}
    like: str = ""
    own: str = ""


# all stop at this certified gap, of their own problem: the stochastic solvers, after their epochs, by dual
# ascent on the same problem; "OBSCURE steps" takes as many epochs as it needs, "OBSCURE 300" those of the
# batch stage in the authors' demo
BATCH = {"tol": 0.05}
CERTIFIED = {"n_epochs": 5, "finish": True, **BATCH}
STEPS = {"n_epochs": 3000, "finish": False, **BATCH}
DEMO = {"n_epochs": 300, "finish": False, "tol": None}
ONE_PASS = {"n_epochs": 1, "shuffle": True}
METHODS = {
    "OM2": Method(mkl.OM2, {"p": P_GRID}, ONE_PASS),
    "OBSCURE": Method(mkl.OBSCURE, {"C": C_GRID, "p": P_GRID}, FIRST_STAGE | CERTIFIED),
    "OBSCURE online": Method(mkl.OBSCURE, options=FIRST_STAGE | {"n_epochs": 0, "tol": None}, like="OBSCURE"),
    "OBSCURE steps": Method(mkl.OBSCURE, options=FIRST_STAGE | STEPS, like="OBSCURE"),
    "OBSCURE 300": Method(mkl.OBSCURE, options=FIRST_STAGE | DEMO, like="OBSCURE"),
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
    "KernelPA": Method(mkl.KernelPA, {"C": C_GRID}, {"kernel": "average", **ONE_PASS}),
    "KernelPA best": Method(mkl.KernelPA, {"C": C_GRID}, {"kernel": "best", **ONE_PASS}),
    "OMCL-PERC": Method(OMCLOnKernels, {"C": C_GRID}),
}
ONLINE = ("OM2", "OMCL-PERC", "KernelPA", "KernelPA best")
#: Ends of the grids that nothing lies beyond.
NATURAL = {"p": (2.0,), "alpha": (0.0,)}


def plain(method):
    """A method's name in the registry, without a C of its own behind it."""
    return method.partition(", C = ")[0]


def certified(chosen, tol):
    """The same choice, to another gap where a method stops at one."""
    stops = {method for method in chosen if METHODS[plain(method)].options.get("tol")}
    return {method: own | {"tol": tol} if method in stops else own for method, own in chosen.items()}


def with_larger_C(chosen):
    """The same choice, beside SILP with the least C, which keeps all kernels, also with larger ones."""
    if chosen["SILPMKL"]["C"] > min(C_GRID):
        return chosen
    return chosen | {f"SILPMKL, C = {C:g}": {"C": C} for C in LARGER_C}


def build(method, params, seed, labels=None, groups=None, **more):
    """The estimator of a method on precomputed kernels; its own folds keep `groups` of samples together."""
    entry = METHODS[plain(method)]
    options = {"random_state": seed, **entry.options, **params, **more}
    takes = entry.estimator("precomputed").get_params()
    if groups is not None and "folds" in takes:
        options["folds"] = folds_of(labels, groups, FOLDS, seed)
    return entry.estimator("precomputed", **{k: v for k, v in options.items() if k in takes})


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
    if groups is None:
        groups = np.arange(labels.size)
    _, first, which = np.unique(groups, return_index=True, return_inverse=True)
    n_folds = min(n_folds, np.bincount(labels[first]).min())
    drawn = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(first, labels[first])
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
        predicted = model.predict(np.ascontiguousarray(bank.rows(test)[:, :, train]))
        right.append(predicted == labels[test])
    return {"accuracy": float(np.mean(np.concatenate(right)))}


def own_choice(method, params, seed, **where):
    """The parameter that an estimator chooses by its own cross-validation, others given."""
    bank, labels, groups = to_choose_on(seed, **where)
    own = METHODS[plain(method)].own
    model = fitted(build(method, params, seed, labels, groups), bank, labels)
    return {own: float(getattr(model, f"{own}_"))}


def choose(sweep, task, n_train, methods, seed, *, grids=None, papers=None, options=None, data=(), **more):
    """Parameters of several methods and a table of all points; `more`: n_folds, n_kernels, every.

    `grids` are tried first, then what lies beyond, where the best is at an end, of the whole grids: those of
    `METHODS`, or of the `papers` for one experiment.
    """
    where = {"task": task, "n_train": n_train, "seed": seed, "n_kernels": None, "every": 1, **more}
    best = {}
    tables = []
    for method in dict.fromkeys(METHODS[m].like or m for m in methods):
        whole = {name: (papers or {}).get(name, values) for name, values in METHODS[method].grid.items()}
        grid = {name: (grids or {}).get(name, values) for name, values in whole.items()}
        fixed = {"method": method, "options": (options or {}).get(method)}
        table = tried(sweep, {**where, **fixed}, grid, whole, data)
        best[method] = table.loc[table["chosen"], list(grid)].iloc[0].to_dict()
        tables.append(table)
    chosen = {method: best[METHODS[method].like or method] for method in methods}
    del where["n_folds"]
    points = [{**where, "method": m, "params": chosen[m]} for m in chosen if METHODS[m].own]
    for point, own in zip(points, sweep.run(own_choice, points, data=data), strict=True):
        chosen[point["method"]] = point["params"] | own
    return chosen, pd.concat(tables, ignore_index=True)


def tried(sweep, place, grid, whole, data):
    """The grid of a method, and beyond its ends up to those of the whole one."""
    further = grid_points(**grid)
    rows = []
    while further:
        points = [{**place, "params": params} for params in further]
        results = sweep.run(validation_accuracy, points, data=data)
        rows += [{**params, **result} for params, result in zip(further, results, strict=True)]
        best = best_of(rows, [row["accuracy"] for row in rows])
        chosen = {name: rows[best][name] for name in grid}
        further = next_to(chosen, rows, grid, whole)
    table = pd.DataFrame(rows)
    table.insert(0, "method", place["method"])
    is_best = table.index == best
    edge = at_edges({name: set(table[name]) for name in grid}, chosen, NATURAL)
    return table.assign(chosen=is_best, edge=np.where(is_best, edge, ""))


def next_to(best, tried, first, whole):
    """Neighbours of the best point not tried yet, of the first values or, beyond these, of the whole grid."""
    neighbours = []
    for name, value in best.items():
        beyond = [v for v in whole[name] if not min(first[name]) <= v <= max(first[name])]
        values = sorted([*first[name], *beyond]) if len(first[name]) > 1 else [value]
        at = values.index(value)
        neighbours += [{**best, name: v} for v in values[max(0, at - 1) : at + 2] if v != value]
    known = [{name: point[name] for name in best} for point in tried]
    return [point for point in neighbours if point not in known]


def edges(table):
    """What `choose` found at the edges of its grids, on some split, for the note of a figure."""
    at_edge = table[table["edge"] != ""]
    listed = "; ".join(dict.fromkeys(at_edge["method"] + ": " + at_edge["edge"]))
    return f"; at the edge of the grid: {listed}" if listed else ""


def choose_alone(C, n_folds, seed, **where):
    """C of every kernel alone, and as "average" of their mean, by folds; ties: the smaller C."""
    task = get_task(n_test=1, seed=seed, **where)
    folds = folds_of(task.labels, task.groups, n_folds, seed)
    chosen = {}
    for name in (*task.bank.names, "average"):
        bank = alone(task.bank, name)
        right = np.zeros(len(C))
        for train, test in folds:
            across = np.ascontiguousarray(bank.rows(test)[:, :, train])
            bounded = True  # else a larger C has the same SVM
            for k, c in enumerate(C):
                if bounded:
                    model = average_svm(bank.restrict(train), task.labels[train], c)
                    hits = np.sum(model.predict(across) == task.labels[test])
                    bounded = np.abs(model.dual_coef_).max() > 0.999 * c
                right[k] += hits
        chosen[name] = C[int(np.argmax(right))]
    return chosen


def alone(bank, name):
    return bank if name == "average" else bank.select([bank.names.index(name)])


def average_svm(bank, labels, C):
    return fitted(mkl.AverageKernelSVM("precomputed", C=C), bank, labels)


def each_alone(chosen, seed, **where):
    """An SVM on every kernel that `chosen` gives a C: its test error and its predictions."""
    task = get_task(seed=seed, **where)
    test = held_kernels(task)
    rows = []
    for name, C in chosen.items():
        model = average_svm(alone(task.bank, name), task.labels, C)
        predicted = model.predict(test if name == "average" else test[[task.bank.names.index(name)]])
        error = float(np.mean(predicted != task.test_labels))
        rows.append({"cue": name, "C": C, "test_error": error, "predicted": predicted.tolist()})
    return pd.DataFrame(rows)


def in_words(params):
    """Chosen parameters as text."""
    return ", ".join(f"{name}={value:g}" for name, value in params.items())


def timed_fit(method, params, seed, task, **more):
    """A model fitted to a task, and its seconds: the median of several fits, if one is short."""
    times = []
    while not times or (sum(times) < SHORT and len(times) < REPEATS):
        model = build(method, params, seed, task.labels, task.groups, **more)
        model, seconds = timed(fitted, model, task.bank, task.labels)
        times.append(seconds)
    return model, float(np.median(times))


def note_solved(model, step):
    """A callback that keeps the number of SVMs until each round with the model."""
    vars(model).setdefault("solved", []).append(model.n_solved_)


def compare(chosen, seed, **where):
    """Methods with their parameters in turn on one split: CPU seconds of a whole fit, kernels in memory, and
    work."""
    task = get_task(seed=seed, **where)
    test = held_kernels(task)
    rows = []
    for method, params in in_turn(list(chosen.items()), seed):
        warm_up_method(plain(method))
        per_class = issubclass(METHODS[plain(method)].estimator, OneVersusAllMKL)
        watch = {"callback": note_solved} if per_class else {}
        model, seconds = timed_fit(method, params, seed, task, **watch)
        row = {
            "method": method,
            "chosen": in_words(params),
            "seconds": seconds,
            "test_error": error_of(model, test, task),
            "n_used": int(np.any(np.atleast_2d(model.kernel_weights_) != 0, axis=0).sum()),
            "objective": getattr(model, "objective_", np.nan),
            "dual_gap": getattr(model, "dual_gap_", np.nan),
            "converged": float(getattr(model, "converged_", True)),
            "rows": rows_of(model, task.bank),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def rows_of(model, bank):
    """Kernel rows that a fit has read; NaN where they are not counted, as in a dual ascent."""
    if hasattr(model, "solved"):
        return float(rows_of_rounds(model, model.solved, bank)[-1])
    history = getattr(model, "history_", None)
    if history is None or "stage" not in history or not set(history["stage"]) <= {"online", "batch"}:
        return np.nan
    return float(rows_read(bank, history).iloc[-1])


def many_compare(n_epochs, n_rounds, tol, methods, seed, **where):
    """Several methods, dicts of a method and its parameters, in turn on up to 1,400 kernels (thesis 4.10), in
    so many epochs, or rounds of a batch method, at most."""
    rows = []
    for entry in in_turn(methods, seed):
        params = {k: v for k, v in entry.items() if k != "method"}
        if entry["method"] in SOLVERS:
            params |= {"n_epochs": n_epochs, "tol": tol, "seed": seed}
            result = many_kernels(entry["method"], **params, **where)
        else:
            params |= {"max_iter": n_rounds, "tol": tol}
            result = compare({entry["method"]: params}, seed, **where).iloc[0]
        rows.append({**result, "method": entry["method"], "chosen": in_words(params)})
    columns = ["method", "chosen", "seconds", "rows", "test_error", "n_used", "objective", "dual_gap"]
    return pd.DataFrame(rows)[columns].astype(dict.fromkeys(columns[2:], float))


def compare_all(sweep, label, task, sizes, n_test, methods, chosen, seeds, data=()):
    """`compare` over training sizes and seeds, `chosen` as by `choose`."""
    study = Study(sweep, label, compare, comparing={"task": task, "n_test": n_test}, data=data)
    points = [{"n_train": n, "seed": s} for s in seeds for n in sizes]
    table = study.with_parameters(points, [{m: chosen[m] for m in methods}] * len(points))
    return table[[*table.columns[2:], "n_train", "seed"]]


def with_ratios(table, by):
    """Means and deviations over seeds of a `compare`, with the ratio of times to OBSCURE's, run by run."""
    base = table[table["method"] == "OBSCURE"].set_index([*by, "seed"])["seconds"]
    table = table.join(base.rename("base"), on=[*by, "seed"])
    table["ratio"] = table["seconds"] / table["base"]
    table["gap"] = table["dual_gap"] / table["objective"].abs()
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


def rival_curves(methods, seed, **options):
    """`rival_curve` of methods, [name, parameters], in turn on one split."""
    curves = [
        rival_curve(method, params, seed, **options).assign(method=method, seed=seed, chosen=in_words(params))
        for method, params in in_turn(methods, seed)
    ]
    return pd.concat(in_turn(curves, seed), ignore_index=True)


def rival_curve(method, params, seed, n_epochs=None, tol=None, **where):
    """Test error over time and work of any method, the clock stopped; `lower` bounds its own problem."""
    if method in SOLVERS:
        frame = training_curve(method, n_epochs, seed, tol=tol, **params, **where)
        return frame.assign(lower=(frame["objective"] - frame["dual_gap"]).max())
    warm_up_method(plain(method))
    task = get_task(seed=seed, **where)
    test = held_kernels(task)
    at = looks(1.5)
    rows = []
    solved = []

    def note(model):
        rows.append({**model.history_.iloc[-1].drop("stage"), "test_error": error_of(model, test, task)})

    def watch(model, step):
        solved.append(getattr(model, "n_solved_", 0))
        if step in at:
            note(model)

    model = fitted(build(method, params, seed, callback=watch), task.bank, task.labels)
    if not rows or rows[-1]["step"] != model.history_["step"].iloc[-1]:
        note(model)
    frame = pd.DataFrame(rows).astype(float)
    read = rows_of_rounds(model, solved, task.bank)[frame["step"].astype(int) - 1]
    last = frame.iloc[-1]
    return frame.assign(lower=last["objective"] - last.get("dual_gap", np.nan), rows=read)


def rows_of_rounds(model, solved, bank):
    """Kernel rows that a batch method has read after each of its rounds, `solved` being the SVMs until then.

    A round reads all rows for the norms. Before an SVM those of the kernels with weight are combined: their
    mean over the classes when the round began; at first weights are equal, combined once for all classes.
    Each of its iterations reads two combined rows. MC-MKL: one SVM a round, whose updates read one.
    """
    n = bank.n_samples
    updates = model.history_["n_updates"].to_numpy()
    norms = n * bank.n_kernels * np.arange(1, updates.size + 1)
    if not hasattr(model, "path_"):
        return 2 * norms + updates
    svms = np.diff(solved, prepend=0.0)
    svms[0] -= model.path_.shape[1] - 1
    combined = n * svms * np.count_nonzero(model.path_[:-1], axis=2).mean(axis=1)
    return norms + np.cumsum(combined) + 2 * updates


def curves_of(sweep, task, n_train, n_test, methods, chosen, seeds, *, n_epochs, tol=None, data=()):
    """`rival_curves` over seeds."""
    place = {"task": task, "n_train": n_train, "n_test": n_test, "n_epochs": n_epochs, "tol": tol}
    place["methods"] = [[m, chosen[m]] for m in methods]
    points = [{**place, "seed": seed} for seed in seeds]
    return pd.concat(sweep.run(rival_curves, points, data=data), ignore_index=True)


def against_bounds(curves, exact):
    """Curves with their certified suboptimality; rows of `optimum` bound the solvers'."""
    bound = curves["seed"].map(exact.set_index("seed")["lower"])
    lower = curves["lower"].mask(curves["method"].isin(list(SOLVERS)), bound)
    return curves.assign(lower=lower, suboptimality=suboptimality(curves, lower))


def online_curves(learners, batch, seed, **where):
    """Learners, [method, parameters for one pass, and for more, epochs], on one split: error over the first
    pass, and on new samples. After them, in the same process, methods of batch with their parameters: the
    rows of `compare`."""
    task = get_task(seed=seed, **where)
    test = held_kernels(task)
    parts = [learner_curve(task, test, seed, *entry) for entry in learners]
    if batch:
        parts.append(compare(batch, seed, **where).assign(what="batch"))
    return pd.concat(parts, ignore_index=True)


def learner_curve(task, test, seed, method, first, later, epochs):
    warm_up_method(method)
    model, _ = timed_fit(method, first, seed, task, n_epochs=1, shuffle=False)
    mistakes = model.online_errors_
    chosen = in_words(later)
    rows = []
    for n_epochs in epochs:
        model, seconds = timed_fit(method, later, seed, task, n_epochs=n_epochs, shuffle=False)
        if hasattr(model, "best_kernel_"):  # chosen once, on the training part
            later = {**later, "kernel": model.best_kernel_}
        read = float(rows_read(task.bank, model.history_).iloc[-1]) if method == "OM2" else np.nan
        rows.append(("test", n_epochs, error_of(model, test, task), seconds, read, chosen))
    # the same points for permutations of different length
    step = 10 ** max(0, int(np.log10(mistakes.size / POINTS)))
    running = np.cumsum(mistakes)
    for at in np.unique([1, *range(step, mistakes.size + 1, step)]).tolist():
        rows.append(("online", at, running[at - 1] / at, np.nan, np.nan, in_words(first)))
    columns = ["what", "at", "error", "seconds", "rows", "params"]
    return pd.DataFrame(rows, columns=columns).assign(method=method)
