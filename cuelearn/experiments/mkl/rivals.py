r"""Every method of the chapter through its estimator: one registry, one choice of parameters, timed fits and curves for all.

A further method takes a file with its estimator and one line in `METHODS`; everything here then takes it by name. An estimator needs ``fit(bank, y)`` with ``kernels="precomputed"`` and ``predict``; with
`history_` and `callback` it gets curves too.
"""

import inspect
import itertools
import time
import warnings
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from cuelearn.experiments.mkl.runs import SOLVERS, many_kernels, training_curve
from cuelearn.experiments.mkl.settings import ALPHA_GRID, C_GRID, P_GRID
from cuelearn.experiments.mkl.tasks import get_task
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import (
    MCMKL,
    OBSCURE,
    OM2,
    SILPMKL,
    UFOMKL,
    AverageKernelSVM,
    BestKernelSVM,
    KernelPA,
    LPBeta,
    LpMKL,
    PegasosMKL,
    SimpleMKL,
)

# a fit that takes less than this many seconds is timed several times; the median counts
SHORT = 0.1
REPEATS = 5
# bytes of test kernels that are held for several models
HELD = 4e8


class Method(NamedTuple):
    """A method of the comparisons.

    Attributes
    ----------
    estimator : type
    grid : dict of str to tuple
        Parameters chosen by cross-validation, with the papers' values.
    options : dict
        Parameters that are fixed.
    like : str
        Name of another method that solves the same problem (or is its first stage), whose choice is taken over.
    own : dict of str to str
        Parameters that the estimator chooses by cross-validation itself when given "cv", and the attributes that hold the choice. They
        are chosen last, with what `grid` or `like` gave; while the grid is searched every fit chooses its own.
    """

    estimator: type
    grid: dict = {}
    options: dict = {}
    like: str = ""
    own: dict = {}


# the stochastic solvers stop at this certified gap, or after so many epochs; batch methods by the rules of their papers
CERTIFIED = {"n_epochs": 1000, "tol": 0.05}
METHODS = {
    "OM2": Method(OM2, {"p": P_GRID}, {"shuffle": True}),
    "OBSCURE": Method(OBSCURE, {"C": C_GRID, "p": P_GRID}, CERTIFIED),
    "OBSCURE online": Method(OBSCURE, options={"n_epochs": 0}, like="OBSCURE"),
    "PegasosMKL": Method(PegasosMKL, options=CERTIFIED, like="OBSCURE"),
    "UFOMKL": Method(UFOMKL, {"C": C_GRID, "alpha": ALPHA_GRID}, CERTIFIED),
    "SILPMKL": Method(SILPMKL, {"C": C_GRID}),
    "SimpleMKL": Method(SimpleMKL, like="SILPMKL"),
    "LpMKL": Method(LpMKL, {"C": C_GRID, "p": P_GRID}),
    "LpMKL sparse": Method(LpMKL, like="LpMKL"),  # its C, at the papers' p
    "MCMKL": Method(MCMKL, {"C": C_GRID}),
    "LPBeta": Method(LPBeta, {"C": C_GRID}, own={"nu": "nu_"}),
    "LPBeta per class": Method(LPBeta, options={"per_class": True}, like="LPBeta", own={"nu": "nu_"}),
    "AverageKernelSVM": Method(AverageKernelSVM, {"C": C_GRID}),
    "BestKernelSVM": Method(BestKernelSVM, {"C": C_GRID}),
    "KernelPA": Method(KernelPA, {"C": C_GRID}, {"kernel": "average", "shuffle": True}),
    "KernelPA best": Method(KernelPA, {"C": C_GRID}, {"kernel": "best", "shuffle": True}),
}


def build(method, params, seed, **more):
    """The estimator of a method on precomputed kernels, with its own random state where it has one."""
    entry = METHODS[method]
    takes = inspect.signature(entry.estimator).parameters
    settings = {"random_state": seed, "verbose": False, **entry.options, **params, **more}
    return entry.estimator(
        "precomputed", **{name: value for name, value in settings.items() if name in takes}
    )


def quiet_fit(model, bank, labels):
    """Fit; a missed tolerance is no warning here, since the gap itself is reported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(bank, labels)


@cache
def warm_up_method(method):
    """Compile and load all that a method's timed fits will use."""
    rng = np.random.default_rng(0)
    bank = KernelBank([("a", RBF(), [0]), ("b", RBF(), [1])], rng.normal(size=(30, 2)), memory=1e6)
    model = quiet_fit(build(method, dict.fromkeys(METHODS[method].own, "cv"), 0), bank, np.arange(30) % 3)
    model.predict(bank.stack[:, :5])


def held_kernels(loaded):
    """The test kernels of a task as one array if they are small, for tests by several models; else the cross bank."""
    size = loaded.cross.n_rows * loaded.bank.n_kernels * loaded.bank.n_samples * loaded.bank.dtype.itemsize
    return (
        np.concatenate([block for _, block in loaded.cross.blocks()], axis=1)
        if size <= HELD
        else loaded.cross
    )


# --------------------------------------------------------- choice of parameters


def grid_points(method, grids):
    """All combinations of a method's grid; `grids` replaces the papers' values of some parameters (short profiles)."""
    grid = {name: grids.get(name, values) for name, values in METHODS[method].grid.items()}
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def folds_of(loaded, n_folds, seed):
    """Where parameters are chosen: the task's own validation part if it has one, else stratified folds of the training part."""
    if loaded.validation is not None:
        return [loaded.validation]
    labels = loaded.labels
    return list(
        StratifiedKFold(min(n_folds, np.bincount(labels).min()), shuffle=True, random_state=seed).split(
            labels, labels
        )
    )


def predict_rows(model, bank, rows, train, chunk=128):
    """Predictions for rows of a bank by a model that was fitted on its rows `train`."""
    parts = [rows[start : start + chunk] for start in range(0, rows.size, chunk)]
    return np.concatenate(
        [model.predict(np.ascontiguousarray(bank.rows(part)[:, :, train])) for part in parts]
    )


def validation_accuracy(
    task, n_train, method, params, n_folds, seed, n_kernels=None, options=None, cues=None
):
    """Accuracy of one choice of parameters on held-back training samples."""
    loaded = get_task(task, n_train, 1, seed, n_kernels, cues)
    bank, labels = loaded.bank, loaded.labels
    right, held = 0, 0
    for train, test in folds_of(loaded, n_folds, seed):
        model = build(method, {**dict.fromkeys(METHODS[method].own, "cv"), **params}, seed, **(options or {}))
        quiet_fit(model, bank.restrict(train), labels[train])
        right += int(np.sum(predict_rows(model, bank, test, train) == labels[test]))
        held += test.size
    return {"accuracy": right / held}


def own_choice(task, n_train, method, params, grids, seed, n_kernels=None, cues=None):
    """Parameters that an estimator chose by its own cross-validation on the training part, others given; `grids` as in `choose`."""
    loaded = get_task(task, n_train, 1, seed, n_kernels, cues)
    entry = METHODS[method]
    model = quiet_fit(
        build(
            method,
            {**params, **dict.fromkeys(entry.own, "cv")},
            seed,
            **{f"{k}_grid": v for k, v in grids.items()},
        ),
        loaded.bank,
        loaded.labels,
    )
    return {name: np.asarray(getattr(model, attribute)) for name, attribute in entry.own.items()}


def choose(
    sweep,
    task,
    n_train,
    methods,
    seed,
    *,
    n_folds,
    grids=None,
    n_kernels=None,
    options=None,
    data=(),
    cues=None,
):
    """Parameters of several methods, all by the same validation.

    Ties go to the smaller C, the larger p and the larger alpha: the plainer model.

    Parameters
    ----------
    sweep : Sweep
    task : str
    n_train : int
    methods : sequence of str
        Names in `METHODS`.
    seed : int
    n_folds : int
    grids : dict, optional
        Values that replace the papers' ones.
    n_kernels : int, optional
    options : dict of str to dict, optional
        Further fixed parameters, by method.
    data : optional
        Identity of the data, for the store of results.
    cues : dict, optional
        Of a task that is handed over, see `get_task`.

    Returns
    -------
    chosen : dict of str to dict
    table : DataFrame
        Columns method, the parameters, accuracy, chosen.
    """
    grids, options = grids or {}, options or {}
    common = {} if cues is None else {"cues": cues}
    where = {"task": task, "n_train": n_train, "n_folds": n_folds, "seed": seed, "n_kernels": n_kernels}
    searched = [m for m in dict.fromkeys(METHODS[m].like or m for m in methods) if METHODS[m].grid]
    points = [
        dict(where, method=m, params=params, options=options.get(m))
        for m in searched
        for params in grid_points(m, grids)
    ]
    found = sweep.run(validation_accuracy, points, common=common, data=data)
    table = pd.DataFrame(
        [
            {"method": p["method"], **p["params"], "accuracy": f["accuracy"]}
            for p, f in zip(points, found, strict=True)
        ]
    )
    table["chosen"] = False
    chosen = {}
    for m in searched:
        mine = table[table["method"] == m]
        keys = {"accuracy": False, "C": True, "p": False, "alpha": False}
        keys = {k: up for k, up in keys.items() if k in mine and mine[k].notna().all()}
        best = mine.sort_values(list(keys), ascending=list(keys.values())).index[0]
        table.loc[best, "chosen"] = True
        chosen[m] = {name: points[best]["params"][name] for name in METHODS[m].grid}
    alone = {name: value for name, value in where.items() if name != "n_folds"}
    own = [m for m in dict.fromkeys([*(METHODS[m].like for m in methods), *methods]) if m and METHODS[m].own]
    for wave in ([m for m in own if not METHODS[m].like], [m for m in own if METHODS[m].like]):
        given = [chosen.get(METHODS[m].like or m, {}) for m in wave]
        points = [
            {**alone, "method": m, "params": params, "grids": grids}
            for m, params in zip(wave, given, strict=True)
        ]
        for m, found in zip(wave, sweep.run(own_choice, points, common=common, data=data), strict=True):
            chosen[m] = {
                **chosen.get(METHODS[m].like or m, {}),
                **{name: np.asarray(value).tolist() for name, value in found.items()},
            }
    return {m: chosen[m] if m in chosen else chosen[METHODS[m].like] for m in methods}, table


def in_words(params):
    """Chosen parameters as text for a table."""

    def word(value):
        if isinstance(value, (list, tuple)):
            return " ".join(f"{v:g}x{n}" for v, n in zip(*np.unique(value, return_counts=True), strict=True))
        return f"{value:g}"

    return ", ".join(f"{name}={word(value)}" for name, value in params.items())


# ---------------------------------------------------------------- timed fits


def compare(task, n_train, n_test, seed, methods, n_kernels=None, cues=None):
    """Several methods on the same kernels, one after the other in one run.

    Parameters
    ----------
    task : str
    n_train, n_test, seed : int
    methods : list of [str, dict]
        Name and chosen parameters.
    n_kernels : int, optional
    cues : dict, optional

    Returns
    -------
    DataFrame
        Columns method, chosen, seconds (whole fit, kernels at hand, warmed up), test_error, n_used (kernels with weight),
        objective, dual_gap (each of the method's own problem), converged.
    """
    loaded = get_task(task, n_train, n_test, seed, n_kernels, cues)
    rows, test = [], held_kernels(loaded)
    for method, params in methods:
        warm_up_method(method)
        times = []
        while not times or (sum(times) < SHORT and len(times) < REPEATS):
            model = build(method, params, seed)
            began = time.perf_counter()
            quiet_fit(model, loaded.bank, loaded.labels)
            times.append(time.perf_counter() - began)
        weights = np.atleast_2d(model.kernel_weights_)
        rows.append(
            {
                "method": method,
                "chosen": in_words(params),
                "seconds": float(np.median(times)),
                "test_error": float(np.mean(model.predict(test) != loaded.test_labels)),
                "n_used": int(np.any(weights != 0, axis=0).sum()),
                "objective": float(getattr(model, "objective_", np.nan)),
                "dual_gap": float(getattr(model, "dual_gap_", np.nan)),
                "converged": float(getattr(model, "converged_", True)),
            }
        )
    return pd.DataFrame(rows)


def many_compare(task, n_train, n_test, n_kernels, n_epochs, methods, seed):
    """Several methods on up to 1,400 kernels, one after the other in one run (thesis figure 4.10).

    Parameters
    ----------
    methods : list of dict
        name, method, and the parameters C and, for the stochastic solvers, p and alpha.

    Returns
    -------
    DataFrame
        Columns method (the name), seconds, test_error, n_used, objective, dual_gap.
    """
    rows = []
    for entry in methods:
        entry = dict(entry)
        name, method = entry.pop("name"), entry.pop("method")
        if method in SOLVERS:
            found = many_kernels(
                task, n_kernels, n_train, n_test, method, n_epochs=n_epochs, seed=seed, **entry
            )
        else:
            found = compare(task, n_train, n_test, seed, [[method, entry]], n_kernels).iloc[0]
        rows.append(
            {
                "method": name,
                **{k: float(found[k]) for k in ("seconds", "test_error", "n_used", "objective", "dual_gap")},
            }
        )
    return pd.DataFrame(rows)


def with_ratios(table, by, to="OBSCURE"):
    """Mean and deviation over seeds of a comparison, with the ratio of times to one method, taken run by run.

    Parameters
    ----------
    table : DataFrame
        Of `compare`, with a column seed and the columns `by`.
    by : list of str
        Columns that make a row of the result together with the method.

    Returns
    -------
    DataFrame
    """
    base = table[table["method"] == to].set_index([*by, "seed"])["seconds"]
    keys = pd.MultiIndex.from_frame(table[[*by, "seed"]]) if by else pd.Index(table["seed"])
    table = table.assign(ratio=table["seconds"].to_numpy() / base.reindex(keys).to_numpy())
    grouped = table.groupby([*by, "method"], sort=False)
    out = grouped.agg(
        seconds=("seconds", "mean"),
        ratio=("ratio", "mean"),
        error=("test_error", "mean"),
        error_sd=("test_error", "std"),
        kernels=("n_used", "mean"),
        converged=("converged", "mean"),
        chosen=("chosen", "first"),
    )
    relative = (
        (table["dual_gap"] / table["objective"].abs())
        .groupby([table[b] for b in [*by, "method"]], sort=False)
        .max()
    )
    return out.assign(relative_gap=relative).reset_index().rename(columns={"ratio": f"times {to}"})


# -------------------------------------------------------------------- curves


def rival_curve(task, n_train, n_test, method, params, seed, n_epochs=None, n_kernels=None, cues=None):
    """Test error, objective, gap and updates over the training time of any method with a history.

    The stochastic solvers run `n_epochs` epochs; batch methods end by their own stopping rule. The clock stops while the test error is
    measured.

    Returns
    -------
    DataFrame
        Columns epoch (or round), seconds, n_updates, n_support, objective, dual_gap, lower (a certified lower bound of the method's
        own problem, its last), test_error.
    """
    if method in SOLVERS:
        plain = {"C": 1.0, "p": "auto", **params}
        frame = training_curve(
            task,
            n_train,
            n_test,
            method,
            n_epochs=n_epochs,
            seed=seed,
            n_kernels=n_kernels,
            cues=cues,
            **plain,
        )
        return frame.assign(lower=(frame["objective"] - frame["dual_gap"]).max())
    warm_up_method(method)
    loaded = get_task(task, n_train, n_test, seed, n_kernels, cues)
    rows, following, test = [], 1, held_kernels(loaded)

    def note(model):
        rows.append(
            {
                **model.history_.iloc[-1].drop("stage"),
                "test_error": float(np.mean(model.predict(test) != loaded.test_labels)),
            }
        )

    def watch(model, step):
        nonlocal following
        if step >= following:
            following = max(following + 1, int(1.5 * following))
            note(model)

    model = quiet_fit(build(method, params, seed, callback=watch), loaded.bank, loaded.labels)
    if not rows or rows[-1]["step"] != model.history_["step"].iloc[-1]:
        note(model)
    frame = pd.DataFrame(rows).astype(float).drop(columns=["online_error"])
    return frame.assign(lower=frame["objective"].iloc[-1] - frame["dual_gap"].iloc[-1])


# ------------------------------------------------------------ whole sweeps


def compare_all(sweep, task, sizes, n_test, methods, chosen, seeds, *, data=(), cues=None, n_kernels=None):
    """`compare` over training sizes and seeds.

    Parameters
    ----------
    sweep : Sweep
        With one job: the methods are timed.
    task : str
    sizes : sequence of int
        Numbers of training samples.
    n_test : int
    methods : sequence of str
    chosen : dict of str to dict
        Of `choose`.
    seeds : sequence of int
    data, cues, n_kernels
        See `choose`.

    Returns
    -------
    DataFrame
        Columns of `compare`, n_train and seed.
    """
    points = [
        {
            "task": task,
            "n_train": n,
            "n_test": n_test,
            "seed": s,
            "methods": [[m, chosen[m]] for m in methods],
            "n_kernels": n_kernels,
        }
        for s in seeds
        for n in sizes
    ]
    common = {} if cues is None else {"cues": cues}
    frames = sweep.run(compare, points, common=common, data=data)
    return pd.concat(
        [f.assign(n_train=p["n_train"], seed=p["seed"]) for p, f in zip(points, frames, strict=True)],
        ignore_index=True,
    )


def curves_of(sweep, task, n_train, n_test, methods, chosen, seeds, *, n_epochs, data=(), cues=None):
    """`rival_curve` of several methods over seeds.

    Returns
    -------
    DataFrame
        Columns of `rival_curve`, method, seed, chosen.
    """
    points = [
        {
            "task": task,
            "n_train": n_train,
            "n_test": n_test,
            "method": m,
            "params": chosen[m],
            "seed": s,
            "n_epochs": n_epochs,
        }
        for s in seeds
        for m in methods
    ]
    common = {} if cues is None else {"cues": cues}
    frames = sweep.run(rival_curve, points, common=common, data=data)
    named = [
        f.assign(method=p["method"], seed=p["seed"], chosen=in_words(p["params"]))
        for p, f in zip(points, frames, strict=True)
    ]
    return pd.concat(named, ignore_index=True)


def against_bounds(curves, exact):
    """Curves with their certified suboptimality; `exact` bounds the stochastic solvers' common problem.

    Parameters
    ----------
    curves : DataFrame
        Of `curves_of`.
    exact : DataFrame
        Of `optimum`, with a column seed.

    Returns
    -------
    DataFrame
    """
    bound = exact.set_index("seed")["lower"]
    stochastic = curves["method"].isin(list(SOLVERS))
    lower = curves["lower"].where(~stochastic, curves["seed"].map(bound))
    return curves.assign(lower=lower, suboptimality=(curves["objective"] - lower) / lower)
