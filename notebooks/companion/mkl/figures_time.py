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
def chosen_for_pendigits(run):
    methods = ["OBSCURE", "PegasosMKL", "SILPMKL", "LpMKL", "MCMKL", "AverageKernelSVM"]
    return choose(run, "pendigits", pendigits(run), methods)


def pendigits(run):
    size = run.size["pendigits"]
    return Place("pendigits-4", size["n_train"], datasets.load_pendigits(), "Pendigits", size["n_test"])


def mean_ratio(numbers, others):
    """Geometric mean of ratios of runs."""
    return np.exp(np.log(numbers / others).mean())


def _save_curves(run, name, labels, place, params, chosen, size, n_epochs, note, **tables):
    """Curves of methods to their optimum, beside them the SVM on the average kernel as it was `chosen`."""
    curves_label, svm_label = labels
    seeds = run.seeds(size)
    curves = against_optimum(run, curves_label, place, params, seeds, n_epochs)
    svm = compare(run, svm_label, place, ["AverageKernelSVM"], chosen, seeds)
    save(run, name, place, {"": curves, "svm": svm, **tables}, note, draw.convergence(curves, svm))


def _curves_of_all(run, name, labels, place, choice, size):
    """All methods with the parameters that were chosen for each."""
    chosen, tried = choice
    params = {method: own for method, own in chosen.items() if method != "AverageKernelSVM"}
    note = (
        f"parameters by cross-validation{rivals.edges(tried)}; batch methods end at a certified gap of 5%. "
        "Bounds are certified, of each method's own problem"
    )
    _save_curves(run, name, labels, place, params, chosen, size, size["n_epochs"], note, choice=tried)


@figure("thesis-fig-4.5", claims="obs-2")
def time_on_objects(run):
    """Is OBSCURE faster than SILP and SimpleMKL at equal accuracy?"""
    place = objects_or_flowers(run)
    methods = ["OBSCURE", "PegasosMKL", "SILPMKL", "SimpleMKL", "LpMKL", "MCMKL", "AverageKernelSVM"]
    choice = choose(run, place.task, place, methods)
    labels = ("flowers", "flowers-svm")
    _curves_of_all(run, "thesis-fig-4.5", labels, place, choice, run.size["flowers"])


@time_on_objects.facts
def _(results):
    table = results.table()
    ends = at_the_end(where(table, method="SILPMKL"), "seed")
    levels = ends["test_error"] + HALF_POINT
    work = work_to(where(table, method="OBSCURE"), "test_error", levels, smooth=False)
    ratio = mean_ratio(work, ends[["seconds", "rows"]])
    times = f"{ratio['seconds']:.2g} times SILP's CPU seconds, {ratio['rows']:.2g} times its rows"
    level = f"; OBSCURE is level after {times}"
    end = at_end(table, ["test_error", "rows"], "method")
    return {"end": end, "errors": listed(end["test_error"]), "level": "" if ratio.isna().any() else level}


time_on_objects.title(
    "OBSCURE ends at {end[test_error][OBSCURE]:.0%} errors, SILP at {end[test_error][SILPMKL]:.0%}{level}."
)
time_on_objects.see("""
Errors at the end: {errors}. SILP ends after {end[rows][SILPMKL]:,.0f} kernel rows, OBSCURE after
{end[rows][OBSCURE]:,.0f}. SILP, SimpleMKL and p-norm MKL begin with *equal* weights.""")


def _against_pegasos(results):
    """OBSCURE's time to the lowest level that Pegasos-MKL reaches, too, at the lowest 1% above the optimum;
    what both begin and end with."""
    table = results.table()
    methods = ["OBSCURE", "PegasosMKL"]
    reached = table.groupby(["seed", "method"])["suboptimality"].min().unstack()[methods]
    levels = reached.max(axis=1).clip(lower=0.01)
    work = [work_to(where(table, method=method), "suboptimality", levels) for method in methods]
    first = table.groupby(["method", "seed"])["suboptimality"].first().groupby("method").mean()
    stages = where(table, method="OBSCURE").groupby(["stage", "seed"])["suboptimality"]
    end = at_end(table, ["test_error", "suboptimality"], "method")
    return {
        "times": mean_ratio(*work)["seconds"],
        "level": 1.0 + levels.median(),
        "first": first["PegasosMKL"] / first["OBSCURE"],
        "online": stages.last()["online"].mean(),
        "batch": stages.first()["batch"].mean(),
        "errors": listed(end["test_error"], ".1%"),
        "above": end["suboptimality"],
    }


SOONER = """
OBSCURE needs {times:.2g} times Pegasos-MKL's CPU seconds to reach {level:.3g} times the optimum."""
BETWEEN_THE_STAGES = """
OBSCURE's suboptimality is {online:,.4g} at the end of the online stage and {batch:,.4g} after the first epoch
of the batch stage."""


@figure("jmlr-fig-2-pendigits", claims="obs-12")
def time_on_pendigits(run):
    """On Pendigits, which method is first to reach the optimum of its problem, and its final error?"""
    labels = ("jmlr-2-pendigits", "pendigits-svm")
    choice = chosen_for_pendigits(run)
    _curves_of_all(run, "jmlr-fig-2-pendigits", labels, pendigits(run), choice, run.size["pendigits"])


time_on_pendigits.facts(_against_pegasos)
time_on_pendigits.title(f"On Pendigits {SOONER}")
time_on_pendigits.see("""
Errors on new digits at the end: {errors}. OBSCURE is then {above[OBSCURE]:.2%} above the certified bound of
its optimum, Pegasos-MKL, on the same problem, {above[PegasosMKL]:.2%}.""")


def _hard(run, name, place, size, p, chosen):
    """The stochastic methods at C = 1000, as a panel of JMLR figure 2; `chosen` are the SVM's parameters."""
    params = dict.fromkeys(STOCHASTIC, {"C": HARD, "p": p})
    labels = (f"jmlr-2-{name}-C1000", f"{name}-svm")
    row = f"jmlr-fig-2-{name}-C1000"
    n_epochs = size["n_epochs_hard"]
    _save_curves(run, row, labels, place, params, chosen, size, n_epochs, f"C = 1000, p = {p:g}")


@figure("jmlr-fig-2-pendigits-C1000")
def hard_on_pendigits(run):
    """On Pendigits at C = 1000, does OBSCURE get near the optimum before Pegasos-MKL and UFO-MKL?"""
    chosen, _ = chosen_for_pendigits(run)
    _hard(run, "pendigits", pendigits(run), run.size["pendigits"], chosen["OBSCURE"]["p"], chosen)


hard_on_pendigits.facts(_against_pegasos)
hard_on_pendigits.title(f"At C = 1000 on Pendigits {SOONER}")
hard_on_pendigits.see(f"""
{BETWEEN_THE_STAGES} At $\\alpha = 0$ UFO-MKL and Pegasos-MKL are the same recursion. At the end UFO-MKL is
above the certified bound by {{above[UFOMKL]:,.3g}} times its value, Pegasos-MKL by
{{above[PegasosMKL]:,.3g}}, OBSCURE by {{above[OBSCURE]:,.3g}}.""")


@figure("jmlr-fig-2-objects-C1000", claims="obs-1")
def hard_on_objects(run):
    """On objects at C = 1000, does OBSCURE get near the optimum before Pegasos-MKL and UFO-MKL?"""
    size = run.size["flowers"]
    place = tasks_of(run).objects._replace(n_train=size["n_train"], n_test=size["n_test"])
    chosen, _ = chosen_for_objects(run)
    _hard(run, "objects", place, size, DEMO_P, chosen)


hard_on_objects.facts(_against_pegasos)
hard_on_objects.title(f"At C = 1000 on objects {SOONER}")
hard_on_objects.see(f"""
{BETWEEN_THE_STAGES} At its first point Pegasos-MKL has {{first:,.0f}} times OBSCURE's suboptimality. At the
end OBSCURE is above the certified bound by {{above[OBSCURE]:,.3g}} times its value, Pegasos-MKL by
{{above[PegasosMKL]:,.3g}} times. The claim compares the time of both to a common level.""")


@figure("jmlr-fig-2-first-stage")
def first_stage(run):
    """How long must OBSCURE's online stage run, and with which step size?"""
    size = run.size["first_stage"]
    digits = pendigits(run)._replace(n_train=size["n_train"][0])
    objects = tasks_of(run).objects._replace(n_train=size["n_train"][1])
    stages = grid_points(n_epochs_online=size["epochs"], eta=(0.5, 2.0, "auto"))
    tables = []
    for data, place, p in (("Pendigits", digits, 1.25), ("objects", objects, DEMO_P)):
        fixed = {**place.fixed, "p": p, "n_epochs": size["n_epochs"], "stages": stages}
        points = [{**fixed, "C": C, "seed": seed} for C in (1.0, HARD) for seed in run.seeds(size)]
        table = run.sweep("first-stage").frame(first_stages, points, data=place.data)
        tables.append(table.drop(columns="stages").assign(data=data))
    table = pd.concat(tables, ignore_index=True)
    note = (
        f"Pendigits, n = {digits.n_train}. The online stage ends after an epoch without loss, or after the "
        f"epochs at most; then {size['n_epochs']} epochs of the batch stage. auto: F^(-2/q)"
    )
    both = [objects.data, digits.data]
    save(run, "jmlr-fig-2-first-stage", objects, table, note, draw.first_stages(table), provenance=both)


@first_stage.facts
def _(results):
    table = where(results.table(), C=HARD, eta="auto")
    epochs = sorted(set(table["n_epochs_online"]))
    middle = epochs[len(epochs) // 2 - 1]
    ranges = []
    parts = []
    for data, part in table.groupby("data", sort=False):
        mean = part.groupby("n_epochs_online").mean(numeric_only=True)
        first, before, after = mean.loc[min(epochs)], mean.loc[middle], mean.loc[max(epochs)]
        ranges.append(f"{first.suboptimality:.3g} to {after.suboptimality:.2g} ({data})")
        parts.append(
            f"On {data} the lowest suboptimality goes from {before.suboptimality:.3g} to "
            f"{after.suboptimality:.3g}, the test error from {before.test_error:.1%} to "
            f"{after.test_error:.1%}, $R$ from {before.radius:.3g} to {after.radius:.3g}; "
            f"{after.epochs:.0f} epochs are used."
        )
    ends = {"first": min(epochs), "middle": middle, "last": max(epochs)}
    return {**ends, "ranges": ", ".join(ranges), "parts": " ".join(parts)}


first_stage.title("At C = 1000, from {first} to {last} online epochs, suboptimality goes from {ranges}.")
first_stage.see("""
At $C = 1000$ and the library's step, the limit on online epochs goes from {middle} to {last}. {parts} A stage
that is cut off returns a radius far from the optimum's norm, and the first steps of the batch stage are as
long as this radius allows.""")


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
    ends = table.groupby(["method", "p", "seed"], sort=False).last().reset_index()
    drawing = draw.against(ends, ("p", "test_error"), ("p", "seconds"), ("p", "rows"))
    paper = {"OBSCURE sooner than p-norm MKL": "10 to 100 times"}
    save(run, name, place, table, note, drawing, paper=paper)


def _against_p_norm(results):
    """Least errors of OBSCURE and p-norm MKL, and the times to half a point above the last one of each."""
    table = results.table()
    work = []
    for method in ("OBSCURE", "LpMKL"):
        runs = where(table, method=method)
        levels = runs.groupby(["p", "seed"])["test_error"].last() + HALF_POINT
        work.append(work_to(runs, "test_error", levels, smooth=method == "OBSCURE")["seconds"])
    error = at_end(table, "test_error", "method", "p")
    return {
        "error": error.groupby("method").min(),
        "times": mean_ratio(*work),
        "at": f"OBSCURE {least(error['OBSCURE'])}, p-norm MKL {least(error['LpMKL'])}",
    }


AT_EVERY_P = """
OBSCURE errs on {error[OBSCURE]:.1%} at its best p, p-norm MKL on {error[LpMKL]:.1%}; OBSCURE takes
{times:.2g} times the CPU seconds."""


@figure("jmlr-fig-3")
def every_p_on_pendigits(run):
    """At every p, is OBSCURE on Pendigits as accurate as p-norm MKL, and is it faster?"""
    chosen, _ = chosen_for_pendigits(run)
    _at_every_p(run, "jmlr-fig-3", pendigits(run), run.size["pendigits_p"], chosen)


every_p_on_pendigits.facts(_against_p_norm)
every_p_on_pendigits.title(f"On Pendigits {AT_EVERY_P}")
every_p_on_pendigits.see("Least errors on Pendigits: {at}.")


@figure("jmlr-fig-3-objects", claims="obs-3")
def every_p_on_objects(run):
    """At every p, is OBSCURE on objects as accurate as p-norm MKL, and is it faster?"""
    chosen, _ = chosen_for_objects(run)
    at_1 = chosen["OBSCURE"] | {"C": 1.0}  # at a larger C the stochastic steps alone take too long
    chosen = chosen | {"OBSCURE": at_1}
    _at_every_p(run, "jmlr-fig-3-objects", tasks_of(run).objects, run.size["objects_p"], chosen)


every_p_on_objects.facts(_against_p_norm)
every_p_on_objects.title(f"On the objects {AT_EVERY_P}")
every_p_on_objects.see("""
Least errors on the objects: {at}. The papers' factor of 10 to 100 is a ratio of times, against SHOGUN in
2012.""")


@figure("speed-svc", claims=("speed-1", "speed-2", "speed-3"))
def beside_svc(run):
    """How much longer than scikit-learn's SVC on the average kernel do default fits take?"""
    size = run.size["speed"]
    place = of_sizes(pendigits(run), size["n_train"])
    fixed = {"C": size["C"], "repeats": size["repeats"]}
    points = [{"n_train": n, "seed": seed, **fixed} for n in size["n_train"] for seed in run.seeds(size)]
    table = run.sweep("speed").frame(times_beside_svm, points, data=place.data)
    table = table.loc[:, ~table.columns.duplicated()].drop(columns="repeats")
    note = "four RBF kernels in memory, default parameters; one thread, medians of the repetitions"
    save(run, "speed-svc", place, table, note, draw.beside_svc(table, OF_SVC))


def _over_svc(table, method):
    """A method's CPU seconds over those of SVC, with or without its averaging: the ranges, in words."""
    case = ["n_train", "C", "seed"]
    table = table[table["n_train"] >= min(FROM, table["n_train"].max())].set_index(case)
    svc = where(table, method="AverageKernelSVM")
    own = where(table, method=method)["seconds"]
    ranges = {}
    for of, base in {"all": svc["seconds"] + svc["averaging"], "SVC": svc["seconds"]}.items():
        ratio = np.exp(np.log(own / base).groupby(case[:2]).mean())
        ranges[of] = f"{ratio.min():.2g} to {ratio.max():.2g}"
    return ranges


@beside_svc.facts
def _(results):
    table = results.table()
    n = table["n_train"].max()
    largest = where(table, n_train=n).groupby("method")
    return {
        "start": min(FROM, n),
        "n": n,
        "obscure": _over_svc(table, "OBSCURE"),
        "ufo": _over_svc(table, "UFOMKL"),
        "share": largest["ascent"].sum() / largest["seconds"].sum(),
        "gap": table["gap"].max(),
    }


beside_svc.title("""
From {start:,} samples on OBSCURE takes {obscure[all]} times, UFO-MKL {ufo[all]} times the CPU seconds of SVC
on the average kernel.""")
beside_svc.see("""
Where the average is given, the ratios are {obscure[SVC]} (OBSCURE) and {ufo[SVC]} (UFO-MKL). At n = {n:,}
dual ascent is {share[OBSCURE]:.0%} of OBSCURE's time, and {share[UFOMKL]:.0%} of UFO-MKL's. Every certified
gap is at most {gap:.2%}.""")


@figure("speed-svc-60000", claims="speed-4")
def gap_on_mnist(run):
    """How long does OBSCURE take on 60,000 digits to a certified gap of 5% (profile full)?"""
    n = run.size["speed"]["digits"]
    if not n:
        return
    place = Place("mnist-12", n, datasets.load_mnist(n_train=1, n_test=1), "MNIST")
    points = [{"n_train": n, "tol": 0.05, "seed": run.seed}]
    table = run.sweep("speed-digits").frame(gap_on_all_digits, points, data=place.data)
    save(run, "speed-svc-60000", place, table, "C = 1, 12 kernels on demand in 2 GB; one thread")


@gap_on_mnist.facts
def _(results):
    table = results.table()
    epochs = where(table, stage="epoch")["seconds"]
    return {**table.iloc[-1], "n_epochs": len(epochs), "of_epochs": epochs.iloc[-1]}


gap_on_mnist.title("""
On {n_train:,} digits OBSCURE reaches a certified gap of {gap:.1%} in {seconds:,.0f} CPU seconds.""")
gap_on_mnist.see("""
The {n_epochs} epochs of the online stage end after {of_epochs:,.0f} CPU seconds; the rest is dual ascent, its
checks of all samples included. {n_support:,} samples have a coefficient.""")
