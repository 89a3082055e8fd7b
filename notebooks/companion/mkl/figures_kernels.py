"""Figures of the MKL chapter on many kernels and on many samples."""

from functools import cache

import numpy as np
import pandas as pd

from companion.mkl import rivals
from companion.mkl.claims_batch import GAP, at_the_end, with_gap, work_to
from companion.mkl.figures_shared import (
    ALL,
    Place,
    against_optimum,
    at_end,
    choose,
    compare,
    listed,
    objects_or_flowers,
    of_sizes,
    save,
    tasks_of,
)
from companion.mkl.runs import against_alpha, all_of_mnist, online_run, training_curve
from companion.plots import mkl as draw
from companion.protocol import FIRST_STAGE, MEMORY_MANY, load_set, where
from companion.run.registry import figure


def _subsets(run):
    return tasks_of(run).objects._replace(n_train=run.size["n_kernels"]["n_train"])


def _of_subsets(run, name, function, **more):
    """Runs with so many of the 39 kernels, drawn at random."""
    size = run.size["n_kernels"]
    place = _subsets(run)
    points = [
        {**place.fixed, "n_kernels": n, "seed": seed, **more}
        for seed in run.seeds(size)
        for n in size["counts"]
    ]
    return run.sweep(name).frame(function, points, data=place.data)


def few_and_many(values):
    """The first and the last of some values with their index."""
    return {"few": values.reset_index().iloc[0], "many": values.reset_index().iloc[-1]}


@cache
def both_stages_by_kernels(run):
    size = run.size["n_kernels"]
    more = {"method": "OBSCURE", **size["params"], "n_epochs": size["n_epochs"], "tol": 0.008}
    return _of_subsets(run, "kernels-batch", training_curve, **more)


@figure("thesis-fig-4.6")
def error_by_kernels(run):
    """Does OBSCURE need fewer epochs with more kernels?"""
    table = both_stages_by_kernels(run)
    note = f"{rivals.in_words(run.size['n_kernels']['params'])}; the jump is the start of the batch stage"
    drawing = draw.against(table.rename(columns={"n_kernels": "F"}), ("epoch", "test_error"), by="F")
    save(run, "thesis-fig-4.6", _subsets(run), table, note, drawing)


@error_by_kernels.facts
def _(results):
    error = at_end(results.table().sort_values("epoch"), "test_error", "n_kernels")
    values = ", ".join(f"{value:.0%} with {n}" for n, value in error.items())
    return {**few_and_many(error), "values": values}


error_by_kernels.title("""
OBSCURE errs on {few[test_error]:.0%} of the new drawings with {few[n_kernels]:.0f} of the 39 kernels, on
{many[test_error]:.0%} with {many[n_kernels]:.0f}.""")
error_by_kernels.see("""
Errors at the end, at a certified gap of 1% where the epochs suffice, by the number of kernels: {values}.""")


@figure("jmlr-fig-5", claims=["obs-4", "obs-5"])
def updates_by_kernels(run):
    """Does the online stage need fewer updates with more kernels, and is it enough by itself?"""
    size = run.size["n_kernels"]
    more = {"p": size["params"]["p"], "method": "OBSCURE", "n_epochs": 1}
    more["most_epochs"] = FIRST_STAGE["n_epochs_online"]
    online = _of_subsets(run, "kernels-online", online_run, **more)
    last = both_stages_by_kernels(run).sort_values("epoch").groupby(["n_kernels", "seed"]).last()
    table = online.set_index(["n_kernels", "seed"])
    table = table.assign(batch_error=last["test_error"], batch_seconds=last["seconds"]).reset_index()
    done = table.groupby("n_kernels")["converged"].transform("all")
    online = table.assign(updates=table["updates"].where(done), test_error=table["final_error"])
    stages = [
        online.assign(method="OBSCURE online"),
        table.assign(method="OBSCURE", updates=np.nan, test_error=table["batch_error"]),
    ]
    drawing = draw.against(pd.concat(stages), ("n_kernels", "updates"), ("n_kernels", "test_error"))
    note = f"{rivals.in_words(size['params'])}; updates where all runs come to an epoch without one"
    save(run, "jmlr-fig-5", _subsets(run), table, note, drawing)


@updates_by_kernels.facts
def _(results):
    table = results.table()
    n = table["n_kernels"].max()
    done = table.groupby("n_kernels")["converged"].transform("all")
    updates = table[done].groupby("n_kernels")["updates"].mean()
    return {
        "n": n,
        "error": where(table, n_kernels=n)[["final_error", "batch_error"]].mean(),
        "updates": ", ".join(f"{value:,.0f} with {n}" for n, value in updates.items()),
    }


updates_by_kernels.title("""
With {n} kernels OBSCURE's online stage alone errs on {error[final_error]:.1%}, both stages on
{error[batch_error]:.1%}.""")
updates_by_kernels.see("""
Updates of the online stage by the number of kernels, where all runs reach an epoch without an update:
{updates}.""")


@figure("thesis-fig-4.9-left", claims="ufo-1")
def ufo_and_obscure(run):
    """With the same regulariser, is OBSCURE ahead at first and does UFO-MKL converge sooner?"""
    size = run.size["ufo"]
    place = tasks_of(run).objects._replace(n_train=size["n_train"])
    q = 2.0 * np.log(39)
    params = dict.fromkeys(["OBSCURE", "UFOMKL"], {"C": 1000.0, "p": float(q / (q - 1.0))})
    table = against_optimum(run, "ufo", place, params, run.seeds(size), size["n_epochs"])
    drawing = draw.against(table, ("seconds", "objective"), ("rows", "suboptimality"))
    save(run, "thesis-fig-4.9-left", place, table, "39 kernels, C = 1000, q = 2 ln F", drawing)


@ufo_and_obscure.facts
def _(results):
    table = results.table()
    runs = table.groupby(["method", "seed"])["objective"]
    first, last = (end.groupby("method").mean() for end in (runs.first(), runs.last()))
    return {
        "first": first["UFOMKL"] / first["OBSCURE"],
        "last": last["UFOMKL"] / last["OBSCURE"],
        "end": at_end(table, "suboptimality", "method"),
    }


ufo_and_obscure.title("""
UFO-MKL's objective is {first:,.0f} times OBSCURE's after one epoch and {last:,.1f} times at the end.""")
ufo_and_obscure.see("""
At the end UFO-MKL is above the optimum by {end[UFOMKL]:,.3g} times its value, OBSCURE by {end[OBSCURE]:,.3g}
times.""")


@figure("thesis-fig-4.10", claims=["ufo-2", "ufo-3", "ufo-6", "ufo-7"])
def many_kernels(run):
    """With up to 1,400 kernels, do exact zeros make UFO-MKL faster, and what does alpha do?"""
    size = run.size["many"]
    place = objects_or_flowers(run)
    task = "flowers-1400" if place.task == "flowers-7" else f"{place.task}-1400"
    place = place._replace(task=task, n_train=size["n_train"], n_test=ALL)
    methods = ["OBSCURE", "UFOMKL", "SILPMKL", "MCMKL", "AverageKernelSVM"]
    grids = {**run.size["choose"]["grids"], "p": (1.01,), "alpha": (0.0,)}
    chosen, tried = choose(run, "many", place, methods, grids=grids, n_kernels=min(size["counts"]))
    counts = _by_number(run, place, chosen)
    alphas = _by_alpha(run, place, chosen)
    note = (
        f"C chosen with {min(size['counts'])} kernels{rivals.edges(tried)}. Above, runs end at a certified "
        f"gap of 5%, stochastic ones after {size['most_epochs']} epochs at the latest. Below, "
        f"{size['n_epochs']} epochs, at the chosen C then ascent to a certified gap of 5%"
    )
    tables = {"": counts, "alpha": alphas, "choice": tried}
    paper = {"time of OBSCURE over UFO-MKL": "3 to 5"}
    save(run, "thesis-fig-4.10", place, tables, note, draw.many_kernels(counts, alphas), paper=paper)


def _by_number(run, place, chosen):
    """All methods against the number of kernels, to a certified gap of 5%."""
    size = run.size["many"]
    ufo = {**chosen["UFOMKL"], "method": "UFOMKL", "p": "auto"}
    methods = [
        {"name": "OBSCURE", "method": "OBSCURE", "alpha": 0.0, **chosen["OBSCURE"]},
        {**ufo, "name": "UFOMKL"},
        {**ufo, "name": "UFOMKL sparse", "alpha": 0.005},
    ]
    batch = ("SILPMKL", "MCMKL", "AverageKernelSVM")
    methods += [{"name": method, "method": method, **chosen[method]} for method in batch]
    fixed = {"task": place.task, "n_test": ALL, "n_train": place.n_train, "methods": methods}
    fixed |= {"n_epochs": size["most_epochs"], "tol": 0.05}
    points = [
        {**fixed, "n_kernels": n, "seed": seed} for n in reversed(size["counts"]) for seed in run.seeds(size)
    ]
    sweep = run.sweep("many", place.n_jobs)
    return sweep.frame(rivals.many_compare, points, data=place.data).drop(columns="methods")


def _by_alpha(run, place, chosen):
    """UFO-MKL against alpha: in equal epochs at the thesis's C = 1000; at the chosen C to a gap of 5%."""
    size = run.size["many"]
    runs = [{"C": 1000.0, "tol": None, "alpha": alpha} for alpha in size["alphas"]]
    runs += [{"C": chosen["UFOMKL"]["C"], "tol": 0.05, "alpha": alpha} for alpha in size["alphas"]]
    fixed = {"task": place.task, "n_test": ALL, "n_train": place.n_train, "n_epochs": size["n_epochs"]}
    fixed |= {"n_kernels": max(size["counts"]), "runs": runs}
    points = [{**fixed, "seed": seed} for seed in run.seeds(size)]
    sweep = run.sweep("many-alpha", place.n_jobs)
    return sweep.frame(against_alpha, points, data=place.data).drop(columns="runs")


@many_kernels.facts
def _(results):
    table = results.table()
    seconds = table.groupby(["method", "n_kernels"])["seconds"].mean().unstack()
    steps = np.log(seconds).diff(axis=1) / np.diff(np.log(seconds.columns), prepend=np.nan)
    counts = seconds.columns.to_series()
    n = table["n_train"].iloc[0]
    memory = 4.0 * n**2 * counts
    most = where(table, n_kernels=counts.max()).pivot(index="seed", columns="method")
    mean = most[["seconds", "rows", "test_error"]].mean().unstack(0)
    choice = results.table("thesis-fig-4.10.choice")
    return {
        "most": counts.max(),
        "mean": mean,
        "errors": listed(mean["test_error"]),
        "times": mean.loc["UFOMKL sparse"] / mean.loc["OBSCURE"],
        "runs": len(most),
        "reached": (most["dual_gap"] <= 0.05 * most["objective"]).sum(),
        "C": choice[choice["chosen"]].set_index("method")["C"],
        "power": steps.T.agg(["min", "max"]),
        "n": n,
        "megabytes": memory.agg(["min", "max"]) / 1e6,
        "fit": (memory <= MEMORY_MANY).sum(),
        "counts": len(counts),
        "memory": MEMORY_MANY / 1e6,
    }


many_kernels.title("""
With {most:,} kernels UFO-MKL errs on {mean[test_error][UFOMKL]:.0%} after {mean[seconds][UFOMKL]:.2g} CPU
seconds, OBSCURE on {mean[test_error][OBSCURE]:.0%} after {mean[seconds][OBSCURE]:.2g} seconds.""")
many_kernels.see("""
Errors with {most:,} kernels: {errors}. At $\\alpha = 0.005$ UFO-MKL takes {times[seconds]:.2g} times the time
of OBSCURE (in the thesis a third to a fifth) and reads {times[rows]:.2g} times the kernel rows. Of {runs}
runs of each method, {reached[UFOMKL sparse]} of UFO-MKL and {reached[OBSCURE]} of OBSCURE reach the gap of
5%; any others end at the limit of epochs. Validation chose C = {C[OBSCURE]:g} for OBSCURE and {C[UFOMKL]:g}
for UFO-MKL, of equally accurate values the smallest.

From one number of kernels to the next, time goes like
$F$ to the power of {power[OBSCURE][min]:.2f} to {power[OBSCURE][max]:.2f} for OBSCURE and
{power[UFOMKL][min]:.2f} to {power[UFOMKL][max]:.2f} for UFO-MKL. The matrices of {n} samples take
{megabytes[min]:.0f} to {megabytes[max]:.0f} MB, and {memory:.0f} MB are set aside: all matrices fit for {fit}
of {counts} numbers of kernels. Where they do not fit, rows are computed at each visit.""")


#: Errors that the papers print.
PRINTED = {"60,000 samples, 10 epochs": 0.0195, "20,000 samples, 500 epochs": 0.0240}


def _mnist(run):
    size = run.size["mnist"]
    return Place("mnist-12", max(size["n_train"]), load_set("mnist"), "MNIST", size["n_test"])


@cache
def _chosen_for_mnist(run):
    methods = ["OBSCURE", "AverageKernelSVM", "BestKernelSVM"]
    n_epochs = run.size["mnist"]["choose_epochs"]
    quick_look = {"OBSCURE": {"n_epochs": n_epochs, "tol": None, "finish": False}}
    return choose(run, "mnist", _mnist(run), methods, options=quick_look)


@figure("thesis-fig-4.8", claims="obs-7")
def work_on_mnist(run):
    """Does the time to the optimum grow about linearly with the number of training samples?"""
    size = run.size["mnist"]
    place = _mnist(run)
    chosen, tried = _chosen_for_mnist(run)
    fixed = {"task": place.task, "n_test": place.n_test, "method": "OBSCURE", "n_epochs": size["n_epochs"]}
    points = [
        {**fixed, **chosen["OBSCURE"], "n_train": n, "seed": seed, "hold_test": n <= 5000}
        for n in size["n_train"]
        for seed in run.seeds(size)
    ]
    table = run.sweep("mnist").frame(training_curve, points, data=place.data)
    sizes = [n for n in size["n_train"] if n <= size["svm_up_to"]]
    svm = compare(run, "mnist-svm", place, ["AverageKernelSVM", "BestKernelSVM"], chosen, [run.seed], sizes)
    gap = _to_one_gap(run, place, chosen["OBSCURE"]["p"])
    note = (
        f"left: parameters by cross-validation{rivals.edges(tried)}; right: to a certified gap of 5%; "
        "kernels in memory up to 6,700 samples, beyond computed on demand"
    )
    tables = {"": table, "svm": svm, "gap": gap, "choice": tried}
    most = max(size["n_train"])
    if run.size["mnist_all"]["n_train"]:
        most = min(run.size["mnist_all"]["n_train"])  # on one split, its errors only
        table = pd.concat([table, where(_on_all_digits(run), n_train=most).drop(columns="wrong")])
    place = of_sizes(place, [*size["n_train"], most])
    save(run, "thesis-fig-4.8", place, tables, note, draw.training_sizes(table, gap), paper=PRINTED)


def _to_one_gap(run, place, p):
    """OBSCURE to a certified gap of 5% with growing sets, at a fixed C and at a fixed lambda."""
    size = run.size["mnist"]
    fixed = {"task": place.task, "n_test": 1, "method": "OBSCURE", "p": p}
    fixed |= {"n_epochs": size["most_epochs"], "tol": 0.05}
    tables = []
    for name, C_of in {"C = 1": lambda n: 1.0, "lambda = 0.001": lambda n: 1000.0 / n}.items():
        points = [
            {**fixed, "C": C_of(n), "n_train": n, "seed": seed}
            for n in size["n_train"]
            for seed in run.seeds(size)
        ]
        table = run.sweep("mnist-gap").frame(training_curve, points, data=place.data)
        tables.append(table.assign(fixed=name))
    return pd.concat(tables, ignore_index=True)


@work_on_mnist.facts
def _(results):
    error = at_end(results.table().sort_values("epoch"), "test_error", "n_train")
    time = []
    visits = []
    for fixed, runs in with_gap(results.table("thesis-fig-4.8.gap")).groupby("fixed"):
        ends = at_the_end(runs, "n_train", "seed")
        seconds = work_to(runs, "gap", pd.Series(GAP, ends.index))["seconds"].fillna(ends["seconds"])
        n = np.log(ends.index.get_level_values("n_train"))
        of_time, of_visits = (np.polyfit(n, np.log(work), 1)[0] for work in (seconds, ends["step"]))
        time.append(f"n^{of_time:.2f} at a fixed {fixed.split()[0]}")
        visits.append(f"$n^{{{of_visits:.2f}}}$ at a fixed {fixed}")
    return {**few_and_many(error), "time": " and ".join(time), "visits": " and ".join(visits)}


work_on_mnist.title("CPU seconds to one certified gap go like {time}.")
work_on_mnist.see("""
With {few[n_train]:,.0f} digits the error is {few[test_error]:.1%}, with {many[n_train]:,.0f}
{many[test_error]:.1%}. Every visit reads a row of $n$ values of each kernel, so work is linear in $n$ only if
the number of visits does not grow with $n$. Visits to one certified gap go like {visits}.""")


@cache
def _on_all_digits(run):
    """Test errors of OBSCURE on 20,000 and on all digits, and which of these are wrong."""
    size = run.size["mnist_all"]
    chosen, _ = _chosen_for_mnist(run)
    params = {"n_test": size["n_test"], **chosen["OBSCURE"]}
    points = [
        {"n_train": n, "n_epochs": n_epochs, "seed": run.seed + k, **params}
        for n, n_epochs, n_runs in zip(size["n_train"], size["n_epochs"], size["runs"], strict=True)
        for k in range(n_runs)
    ]
    return run.sweep("mnist-all").frame(all_of_mnist, points, data=_mnist(run).data)


@figure("thesis-fig-4.8-60000", claims="obs-8")
def all_digits(run):
    """After 10 epochs on all 60,000 digits (profile full), is the error the papers' 1.95%?"""
    size = run.size["mnist_all"]
    if not size["n_train"]:
        return
    place = of_sizes(_mnist(run), size["n_train"])
    runs = _on_all_digits(run)
    ends = runs.groupby(["n_train", "seed"]).last().reset_index()
    first = ends[ends["seed"] == run.seed].set_index("n_train")["wrong"]
    digits = np.arange(size["n_test"])
    wrong = {f"wrong after {n}": np.isin(digits, rows).astype(int) for n, rows in first.items()}
    table = ends[["n_train", "seed", "epoch", "test_error", "n_updates", "seconds"]]
    printed = np.where(table["n_train"] == max(size["n_train"]), *PRINTED.values())
    tables = {"": table, "digits": pd.DataFrame(wrong)}
    note = "kernels computed on demand"
    save(run, "thesis-fig-4.8-60000", place, tables, note, paper={"test_error": printed})


@all_digits.facts
def _(results):
    means = results.table().groupby("n_train")[["epoch", "test_error", "paper: test_error"]].mean()
    title = []
    errors = []
    for n, epoch, error, printed in means.itertuples():
        title.append(f"{error:.2%} ({n:,} digits, {epoch:.0f} epochs)")
        errors.append(f"{error:.2%} with {n:,} digits (the paper: {printed:.2%})")
    return {"by_epochs": " and ".join(title), "errors": ", ".join(errors)}


all_digits.title("OBSCURE errs on {by_epochs} of the test digits.")
all_digits.see("""
Errors: {errors}. The online stage has not ended after ten epochs, so that they are all of that stage.""")
