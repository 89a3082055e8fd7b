"""Figures of the MKL chapter on training time: OBSCURE against Pegasos and the batch methods."""

from functools import cache

import numpy as np
import pandas as pd

from companion.mkl import rivals
from companion.mkl.claims_batch import FROM, HALF_POINT, OF_SVC, at_the_end, work_to
from companion.mkl.figures_shared import (
    Place,
    against_optimum,
    at_end,
    choose,
    chosen_for_objects,
    compare,
    least,
    listed,
    objects_or_flowers,
    of_sizes,
    save,
    tasks_of,
)
from companion.mkl.runs import first_stages, gap_on_all_digits, times_beside_svm
from companion.plots import mkl as draw
from companion.protocol import grid_points, where
from companion.run.registry import figure
from cuelearn import datasets

STOCHASTIC = ("OBSCURE", "PegasosMKL", "UFOMKL")
HARD = 1000.0  # the papers' largest C
DEMO_P = 1.05  # with which the authors' published demo of their flowers experiment runs OBSCURE


@cache
def chosen_for_time(run):
    methods = ["OBSCURE", "PegasosMKL", "SILPMKL", "SimpleMKL", "LpMKL", "MCMKL", "AverageKernelSVM"]
    place = objects_or_flowers(run)
    return choose(run, place.task, place, methods)


@cache
def chosen_for_pendigits(run):
    methods = ["OBSCURE", "PegasosMKL", "SILPMKL", "LpMKL", "MCMKL", "AverageKernelSVM"]
    return choose(run, "pendigits", pendigits(run), methods)


def pendigits(run):
    size = run.size["pendigits"]
    return Place("pendigits-4", size["n_train"], datasets.load_pendigits(), "Pendigits", size["n_test"])


def mean_ratio(numbers, others):
    """Geometric mean of ratios of runs."""
    return np.exp(np.log(numbers / others).mean())


def _to_error_of(table, rival):
    """CPU seconds and kernel rows of OBSCURE to half a point above a rival's last error, over the rival's."""
    ends = at_the_end(where(table, method=rival), "seed")
    levels = ends["test_error"] + HALF_POINT
    work = work_to(where(table, method="OBSCURE"), "test_error", levels, smooth=False)
    return mean_ratio(work, ends[["seconds", "rows"]])


def _against_pegasos(table, name):
    """A title: OBSCURE's time to the lowest level that both reach, at the lowest 1% above the optimum."""
    methods = ("OBSCURE", "PegasosMKL")
    least = table.groupby(["seed", "method"])["suboptimality"].min().unstack()[[*methods]]
    levels = least.max(axis=1).clip(lower=0.01)
    work = [work_to(where(table, method=method), "suboptimality", levels) for method in methods]
    ratio = mean_ratio(*work)
    return f"""
{name} OBSCURE needs {ratio["seconds"]:.2g} times Pegasos-MKL's CPU seconds to reach
{1.0 + levels.median():.3g} times the optimum."""


def _chosen(tried):
    """How parameters were chosen, runs end and bounds are, in words."""
    note = f"parameters by cross-validation{rivals.edges(tried)}; batch methods end at a certified gap of 5%"
    return f"{note}. Bounds are certified, of each method's own problem"


@figure("thesis-fig-4.5", claims="obs-2")
def time_on_objects(run):
    """Is OBSCURE faster than SILP and SimpleMKL at equal accuracy?"""
    size = run.size["flowers"]
    place = objects_or_flowers(run)
    chosen, tried = chosen_for_time(run)
    seeds = run.seeds(size)
    methods = [method for method in chosen if method != "AverageKernelSVM"]
    curves = against_optimum(run, "flowers", place, methods, chosen, seeds, size["n_epochs"])
    svm = compare(run, "flowers-svm", place, ["AverageKernelSVM"], chosen, seeds)
    tables = {"": curves, "svm": svm, "choice": tried}
    save(run, "thesis-fig-4.5", place, tables, _chosen(tried), draw.convergence(curves, svm))


@time_on_objects.title
def _(results):
    table = results.table("thesis-fig-4.5")
    error = at_end(table, "test_error", "method")
    says = f"OBSCURE ends at {error['OBSCURE']:.0%} errors, SILP at {error['SILPMKL']:.0%}"
    ratio = _to_error_of(table, "SILPMKL")
    if ratio.isna().any():
        return f"{says}."
    return f"""
{says}; OBSCURE is level after {ratio["seconds"]:.2g} times SILP's CPU seconds, {ratio["rows"]:.2g} times its
rows."""


@time_on_objects.see
def _(results):
    end = at_end(results.table("thesis-fig-4.5"), ["test_error", "rows"], "method")
    return f"""
Errors at the end: {listed(end["test_error"])}. SILP ends after {end.loc["SILPMKL", "rows"]:,.0f} kernel rows,
OBSCURE after {end.loc["OBSCURE", "rows"]:,.0f}. SILP, SimpleMKL and p-norm MKL begin with *equal*
weights."""


@figure("jmlr-fig-2-pendigits", claims="obs-12")
def time_on_pendigits(run):
    """On Pendigits, which method is first to reach the optimum of its problem, and its final error?"""
    size = run.size["pendigits"]
    place = pendigits(run)
    chosen, tried = chosen_for_pendigits(run)
    seeds = run.seeds(size)
    methods = [method for method in chosen if method != "AverageKernelSVM"]
    name = "jmlr-2-pendigits"
    curves = against_optimum(run, name, place, methods, chosen, seeds, size["n_epochs"])
    svm = compare(run, "pendigits-svm", place, ["AverageKernelSVM"], chosen, seeds)
    tables = {"": curves, "choice": tried, "svm": svm}
    save(run, "jmlr-fig-2-pendigits", place, tables, _chosen(tried), draw.convergence(curves, svm))


@time_on_pendigits.title
def _(results):
    return _against_pegasos(results.table("jmlr-fig-2-pendigits"), "On Pendigits")


@time_on_pendigits.see
def _(results):
    end = at_end(results.table("jmlr-fig-2-pendigits"), ["test_error", "suboptimality"], "method")
    above = end["suboptimality"]
    return f"""
Errors on new digits at the end: {listed(end["test_error"], ".1%")}. OBSCURE is then
{above["OBSCURE"]:.2%} above the certified bound of its optimum, Pegasos-MKL, on the same problem,
{above["PegasosMKL"]:.2%}."""


def _hard(run, name, place, size, p, chosen):
    """The stochastic methods at C = 1000, as a panel of JMLR figure 2; `chosen` are the SVM's parameters."""
    params = dict.fromkeys(STOCHASTIC, {"C": HARD, "p": p})
    seeds = run.seeds(size)
    n_epochs = size["n_epochs_hard"]
    curves = against_optimum(run, f"jmlr-2-{name}-C1000", place, STOCHASTIC, params, seeds, n_epochs)
    svm = compare(run, f"{name}-svm", place, ["AverageKernelSVM"], chosen, seeds)
    tables = {"": curves, "svm": svm}
    note = f"C = 1000, p = {p:g}"
    save(run, f"jmlr-fig-2-{name}-C1000", place, tables, note, draw.convergence(curves, svm))


def _between_the_stages(table):
    """What the suboptimality is at the end of OBSCURE's online stage and where its batch stage begins."""
    runs = where(table, method="OBSCURE").groupby(["stage", "seed"])["suboptimality"]
    last, first = runs.last().groupby("stage").mean(), runs.first().groupby("stage").mean()
    return f"""
OBSCURE's suboptimality is {last["online"]:,.4g} at the end of the online stage and {first["batch"]:,.4g}
after the first epoch of the batch stage."""


@figure("jmlr-fig-2-pendigits-C1000")
def hard_problem_on_pendigits(run):
    """On Pendigits at C = 1000, does OBSCURE get near the optimum before Pegasos-MKL and UFO-MKL?"""
    chosen, _ = chosen_for_pendigits(run)
    _hard(run, "pendigits", pendigits(run), run.size["pendigits"], chosen["OBSCURE"]["p"], chosen)


@hard_problem_on_pendigits.title
def _(results):
    return _against_pegasos(results.table("jmlr-fig-2-pendigits-C1000"), "At C = 1000 on Pendigits")


@hard_problem_on_pendigits.see
def _(results):
    table = results.table("jmlr-fig-2-pendigits-C1000")
    end = at_end(table, "suboptimality", "method")
    return f"""
{_between_the_stages(table)}
At $\\alpha = 0$ UFO-MKL and Pegasos-MKL are the same recursion. At the end UFO-MKL is above the
certified bound by {end["UFOMKL"]:,.3g} times its value, Pegasos-MKL by {end["PegasosMKL"]:,.3g}, OBSCURE by
{end["OBSCURE"]:,.3g}."""


@figure("jmlr-fig-2-objects-C1000", claims="obs-1")
def hard_problem_on_objects(run):
    """On objects at C = 1000, does OBSCURE get near the optimum before Pegasos-MKL and UFO-MKL?"""
    size = run.size["flowers"]
    place = tasks_of(run).objects._replace(n_train=size["n_train"], n_test=size["n_test"])
    chosen, _ = chosen_for_objects(run)
    _hard(run, "objects", place, size, DEMO_P, chosen)


@hard_problem_on_objects.title
def _(results):
    return _against_pegasos(results.table("jmlr-fig-2-objects-C1000"), "At C = 1000 on objects")


@hard_problem_on_objects.see
def _(results):
    table = results.table("jmlr-fig-2-objects-C1000")
    first = table.groupby(["method", "seed"])["suboptimality"].first().groupby("method").mean()
    end = at_end(table, "suboptimality", "method")
    return f"""
{_between_the_stages(table)}
At its first point Pegasos-MKL has {first["PegasosMKL"] / first["OBSCURE"]:,.0f} times OBSCURE's
suboptimality. At the end OBSCURE is above the certified bound by {end["OBSCURE"]:,.3g} times its value,
Pegasos-MKL by {end["PegasosMKL"]:,.3g} times. The claim compares the time of both to a common level."""


def _hard_at_the_librarys_step(results):
    table = results.table("jmlr-fig-2-first-stage")
    return table[(table["C"] == table["C"].max()) & (table["eta"] == "auto")]


@figure("jmlr-fig-2-first-stage")
def what_the_first_stage_decides(run):
    """How long must OBSCURE's online stage run, and with which step size?"""
    size = run.size["first_stage"]
    problems = {
        "Pendigits": (pendigits(run)._replace(n_train=size["n_train"][0]), 1.25),
        "objects": (tasks_of(run).objects._replace(n_train=size["n_train"][1]), DEMO_P),
    }
    stages = grid_points(n_epochs_online=size["epochs"], eta=(0.5, 2.0, "auto"))
    tables = []
    for name, (place, p) in problems.items():
        fixed = {**place.fixed, "p": p, "n_epochs": size["n_epochs"], "stages": stages}
        points = [{**fixed, "C": C, "seed": seed} for C in (1.0, HARD) for seed in run.seeds(size)]
        table = run.sweep("first-stage").frame(first_stages, points, data=place.data)
        tables.append(table.drop(columns="stages").assign(data=name))
    table = pd.concat(tables, ignore_index=True)
    place = problems["objects"][0]._replace(n_train=size["n_train"][1])
    digits = problems["Pendigits"][0]
    note = (
        f"Pendigits, n = {digits.n_train}. The online stage ends after an epoch without loss, or after the "
        f"epochs at most; then {size['n_epochs']} epochs of the batch stage. auto: F^(-2/q)"
    )
    provenance = [place.data, digits.data]
    drawing = draw.first_stages(table)
    save(run, "jmlr-fig-2-first-stage", place, table, note, drawing, provenance=provenance)


@what_the_first_stage_decides.title
def _(results):
    table = _hard_at_the_librarys_step(results)
    means = table.groupby(["data", "n_epochs_online"], sort=False)["suboptimality"].mean().unstack()
    listed = ", ".join(f"{row.iloc[0]:.3g} to {row.iloc[-1]:.2g} ({data})" for data, row in means.iterrows())
    return f"""
At C = 1000, from {means.columns[0]} to {means.columns[-1]} online epochs, suboptimality goes from
{listed}."""


@what_the_first_stage_decides.see
def _(results):
    table = _hard_at_the_librarys_step(results)
    epochs = sorted(set(table["n_epochs_online"]))
    short, full = epochs[len(epochs) // 2 - 1], epochs[-1]
    parts = []
    for data, part in table.groupby("data", sort=False):
        mean = part.groupby("n_epochs_online")[["suboptimality", "test_error", "radius"]].mean()
        forms = zip(mean, (".3g", ".1%", ".3g"), strict=True)
        above, error, radius = (
            f"{mean[name][short]:{form}} to {mean[name][full]:{form}}" for name, form in forms
        )
        used = part.loc[part["n_epochs_online"] == full, "epochs"].mean()
        parts.append(
            f"On {data} the lowest suboptimality goes from {above}, the test error from {error}, $R$ from "
            f"{radius}; {used:.0f} epochs are used."
        )
    return f"""
At $C = 1000$ and the library's step, the limit on online epochs goes from {short} to {full}.
{" ".join(parts)}
A stage that is cut off returns a radius far from the optimum's norm, and the first steps of the batch stage
are as long as this radius allows."""


def _at_every_p(run, name, place, size, chosen):
    """Curves of OBSCURE and p-norm MKL at every p, saved as a panel of JMLR figure 3."""
    place = place._replace(n_train=size["n_train"], n_test=size["n_test"])
    until = {"n_epochs": size["n_epochs"], "tol": 0.05, "data": place.data}
    methods = ["OBSCURE", "LpMKL"]
    curves = []
    for p in size["p_grid"]:
        params = {method: chosen[method] | {"p": p} for method in methods}
        setting = (*place.fixed.values(), methods, params, run.seeds(size))
        curves.append(rivals.curves_of(run.sweep("by-p"), *setting, **until).assign(p=p))
    table = pd.concat(curves, ignore_index=True).sort_values("method", kind="stable", ascending=False)
    note = (
        f"C: OBSCURE {chosen['OBSCURE']['C']:g}, p-norm MKL {chosen['LpMKL']['C']:g}. Runs end at a "
        f"certified gap of 5%, or after {size['n_epochs']} epochs"
    )
    paper = {"OBSCURE sooner than p-norm MKL": "10 to 100 times"}
    ends = table.groupby(["method", "p", "seed"], sort=False).last().reset_index()
    drawing = draw.against(ends, ("p", "test_error"), ("p", "seconds"), ("p", "rows"))
    save(run, name, place, table, note, drawing, paper=paper)


def _least_errors(table):
    error = at_end(table, "test_error", "method", "p")
    return f"OBSCURE {least(error['OBSCURE'])}, p-norm MKL {least(error['LpMKL'])}"


def _against_p_norm(table, name):
    """A title: least errors of OBSCURE and p-norm MKL, and the times to half a point above their last."""
    work = []
    for method in ("OBSCURE", "LpMKL"):
        runs = where(table, method=method)
        levels = runs.groupby(["p", "seed"])["test_error"].last() + HALF_POINT
        work.append(work_to(runs, "test_error", levels, smooth=method == "OBSCURE")["seconds"])
    error = at_end(table, "test_error", "method", "p").groupby("method").min()
    return f"""
On {name} OBSCURE errs on {error["OBSCURE"]:.1%} at its best p, p-norm MKL on {error["LpMKL"]:.1%};
OBSCURE takes {mean_ratio(*work):.2g} times the CPU seconds."""


@figure("jmlr-fig-3")
def every_p_on_pendigits(run):
    """At every p, is OBSCURE on Pendigits as accurate as p-norm MKL, and is it faster?"""
    chosen, _ = chosen_for_pendigits(run)
    _at_every_p(run, "jmlr-fig-3", pendigits(run), run.size["pendigits_p"], chosen)


@every_p_on_pendigits.title
def _(results):
    return _against_p_norm(results.table("jmlr-fig-3"), "Pendigits")


@every_p_on_pendigits.see
def _(results):
    return f"Least errors on Pendigits: {_least_errors(results.table('jmlr-fig-3'))}."


@figure("jmlr-fig-3-objects", claims="obs-3")
def every_p_on_objects(run):
    """At every p, is OBSCURE on objects as accurate as p-norm MKL, and is it faster?"""
    chosen, _ = chosen_for_objects(run)
    at_1 = chosen["OBSCURE"] | {"C": 1.0}  # at a larger C the stochastic steps alone take too long
    chosen = chosen | {"OBSCURE": at_1}
    _at_every_p(run, "jmlr-fig-3-objects", tasks_of(run).objects, run.size["objects_p"], chosen)


@every_p_on_objects.title
def _(results):
    return _against_p_norm(results.table("jmlr-fig-3-objects"), "the objects")


@every_p_on_objects.see
def _(results):
    return f"""
Least errors on the objects: {_least_errors(results.table("jmlr-fig-3-objects"))}. The papers' factor of 10 to
100 is a ratio of times, against SHOGUN in 2012."""


@figure("speed-svc", claims=("speed-1", "speed-2", "speed-3"))
def beside_svc_on_pendigits(run):
    """How much longer than scikit-learn's SVC on the average kernel do default fits take?"""
    size = run.size["speed"]
    place = of_sizes(pendigits(run), size["n_train"])
    fixed = {"C": size["C"], "repeats": size["repeats"]}
    points = [{"n_train": n, "seed": seed, **fixed} for n in size["n_train"] for seed in run.seeds(size)]
    table = run.sweep("speed").frame(times_beside_svm, points, data=place.data)
    table = table.loc[:, ~table.columns.duplicated()].drop(columns="repeats")
    note = "four RBF kernels in memory, default parameters; one thread, medians of the repetitions"
    save(run, "speed-svc", place, table, note, draw.beside_svc(table, OF_SVC))


def _range_of_ratios(table, method, averaged):
    svc = where(table, method="AverageKernelSVM").set_index(["n_train", "C", "seed"])
    base = svc["seconds"] + (svc["averaging"] if averaged else 0.0)
    own = where(table, method=method).set_index(["n_train", "C", "seed"])["seconds"]
    ratio = np.exp(np.log(own / base).groupby(["n_train", "C"]).mean())
    ratio = ratio[ratio.index.get_level_values("n_train") >= min(FROM, table["n_train"].max())]
    return f"{ratio.min():.2g} to {ratio.max():.2g}"


@beside_svc_on_pendigits.title
def _(results):
    table = results.table("speed-svc")
    return f"""
From {min(FROM, table["n_train"].max()):,} samples on OBSCURE takes {_range_of_ratios(table, "OBSCURE", True)}
times, UFO-MKL {_range_of_ratios(table, "UFOMKL", True)} times the CPU seconds of SVC on the average
kernel."""


@beside_svc_on_pendigits.see
def _(results):
    table = results.table("speed-svc")
    largest = table[table["n_train"] == table["n_train"].max()].groupby("method")
    share = largest["ascent"].sum() / largest["seconds"].sum()
    return f"""
Where the average is given, the ratios are {_range_of_ratios(table, "OBSCURE", False)} (OBSCURE) and
{_range_of_ratios(table, "UFOMKL", False)} (UFO-MKL). At n = {table["n_train"].max():,} dual ascent is
{share["OBSCURE"]:.0%} of OBSCURE's time, and {share["UFOMKL"]:.0%} of UFO-MKL's. Every certified gap is at
most {table["gap"].max():.2%}."""


@figure("speed-svc-60000", claims="speed-4")
def all_digits_within_a_gap(run):
    """How long does OBSCURE take on 60,000 digits to a certified gap of 5% (profile full)?"""
    n = run.size["speed"]["digits"]
    if not n:
        return
    data = datasets.load_mnist(n_train=1, n_test=1)
    place = Place("mnist-12", n, data, "MNIST")
    table = run.sweep("speed-digits").frame(
        gap_on_all_digits, [{"n_train": n, "tol": 0.05, "seed": run.seed}], data=data
    )
    save(run, "speed-svc-60000", place, table, "C = 1, 12 kernels on demand in 2 GB; one thread")


@all_digits_within_a_gap.title
def _(results):
    end = results.table("speed-svc-60000").iloc[-1]
    return f"""
On {end["n_train"]:,} digits OBSCURE reaches a certified gap of {end["gap"]:.1%} in {end["seconds"]:,.0f} CPU
seconds."""


@all_digits_within_a_gap.see
def _(results):
    table = results.table("speed-svc-60000")
    epochs = table.loc[table["stage"] == "epoch", "seconds"]
    return f"""
The {len(epochs)} epochs of the online stage end after {epochs.iloc[-1]:,.0f} CPU seconds; the rest is dual
ascent, its checks of all samples included. {table["n_support"].iloc[-1]:,} samples have a coefficient."""
