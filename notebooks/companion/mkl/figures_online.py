"""Figures of the MKL chapter on learning online, and on what p does."""

import numpy as np
import pandas as pd

from companion.mkl import rivals
from companion.mkl.figures_shared import (
    ALL,
    as_judged,
    at_most_objects,
    choose,
    chosen_for_objects,
    percent,
    tasks_of,
)
from companion.mkl.runs import online_run, two_stages
from companion.plots import mkl as draw
from companion.run.registry import figure

#: Sets of categories by the first word of their task, and the p that the thesis found best on its own data.
SETS = {"different": "six different cues", "pyramid": "pyramid of edges"}
BEST_P = {"different": 2.0, "pyramid": 1.10}
#: Epochs after which the thesis's OM-2 is level with SILP.
LEVEL = 80
BATCH = ("SILPMKL", "LPBeta")


def by_set(table):
    """The parts of a table by their set of cues."""
    return table.groupby(table["task"].str.split("-").str[0], sort=False)


def _best_on_each_set(table, method):
    """Which p errs least on each set, in words."""
    parts = []
    for name, part in by_set(table):
        error = part.groupby("p")["test_error"].mean()
        best = f"on the {SETS[name]} {method} errs least at $p = {error.idxmin():g}$"
        parts.append(f"{best} ({error.min():.1%}; at 2 {error[2.0]:.1%})")
    return " and ".join(parts)


def _ranges(table):
    """Between which p the error differs most, in points, on each set."""
    errors = [part.groupby("p")["test_error"].mean() for _, part in by_set(table)]
    return " and ".join(f"{100 * np.ptp(error):.1f}" for error in errors)


@figure("thesis-fig-4.2", claims=["om2-2", "om2-3"])
def online_errors_and_work_against_p(run):
    """Which p is best for OM-2, with and without redundant cues, and at which is it fastest?"""
    size = run.size["p_sweep"]
    tasks = tasks_of(run)
    best = {tasks.different: BEST_P["different"], tasks.pyramid: BEST_P["pyramid"]}
    n_train = size["n_train"]
    epochs = {"n_epochs": size["n_epochs"], "most_epochs": size["most_epochs"]}
    points = [
        {"task": task, "n_train": n_train, "n_test": ALL, "p": p, "seed": seed, **epochs}
        for task in best
        for seed in run.seeds(run.size["p_sweep"])
        for p in size["p_grid"]
    ]
    table = run.sweep("p").frame(online_run, points, data=tasks.emoji)
    paper = {f"best p, {SETS[name]} (other pictures)": p for name, p in BEST_P.items()}
    note = f"OM-2; {tasks.groups_are}. Work where all runs converge, in {size['most_epochs']} epochs at most"
    drawing = draw.p_sweep(table, best)
    run.save_figure(drawing, "thesis-fig-4.2", table, provenance=[tasks.emoji], paper=paper, note=note)


@online_errors_and_work_against_p.see
def _(results):
    table = results.table("thesis-fig-4.2")
    different = dict(list(by_set(table)))["different"]
    work = different.groupby("p")[["converged", "updates"]].mean()
    work = work.loc[work["converged"] == 1, "updates"]
    updates = ", ".join(f"{n:,.0f} at $p = {p:g}$" for p, n in work.items())
    counted = f"OM-2's updates to convergence on the six cues: {updates}. " if updates else ""
    return f"""
Sparser is slower. {counted}On the mean over splits {_best_on_each_set(table, "OM-2")}; over $p$ the error
differs by up to {_ranges(table)} points on the two sets. The thesis found $p = {BEST_P["different"]:g}$
best on its places and {BEST_P["pyramid"]:g} on its pyramid."""


@figure("jmlr-fig-4")
def both_stages_against_p(run):
    """Which p is best for OBSCURE, which is run to a certified gap, and what do its two stages cost?"""
    size = run.size["obscure_p"]
    tasks = tasks_of(run)
    n_train = run.size["p_sweep"]["n_train"]
    common = {name: size[name] for name in ("n_epochs_online", "n_epochs", "tol")}
    points = []
    chosen = []
    for task in (tasks.different, tasks.pyramid):
        params, tried = choose(run, task, task, ["OBSCURE"], n_train, data=tasks.emoji)
        C = params["OBSCURE"]["C"]
        chosen.append(f"{SETS[task.split('-')[0]]} {C:g}{rivals.edges(tried)}")
        place = {"task": task, "n_train": n_train, "n_test": ALL}
        points += [
            {**place, "p": p, "seed": seed, "C": C, **common, "eta": run.eta}
            for seed in run.seeds(run.size["obscure_p"])
            for p in size["p_grid"]
        ]
    table = run.sweep("p-obscure").frame(two_stages, points, data=tasks.emoji)
    note = f"{tasks.groups_are}; C by cross-validation: {', '.join(chosen)}; online stage of at most "
    note += f"{size['n_epochs_online']} epochs, batch stage to a certified gap of {size['tol']:.0%}"
    drawing = draw.obscure_against_p(table)
    run.save_figure(drawing, "jmlr-fig-4", table, provenance=[tasks.emoji], note=note)


@both_stages_against_p.see
def _(results):
    table = results.table("jmlr-fig-4")
    stages = []
    for name, part in by_set(table):
        error = part[["online_error", "test_error"]].mean()
        stages.append(f"{error['online_error']:.1%} and {error['test_error']:.1%} on the {SETS[name]}")
    return f"""
On the mean over splits {_best_on_each_set(table, "OBSCURE")}; over $p$ its error differs by up to
{_ranges(table)} points on the two sets. On the mean over all $p$ its errors after the online stage and at
the end are {"; ".join(stages)}."""


def pass_by_pass(run, name, task, n_train, chosen, size, splits, with_all_epochs):
    """The first pass on all splits (OMCL on fewer), every epoch on the splits `with_all_epochs`."""
    points = []
    for seed in splits:
        learners = []
        for method in rivals.ONLINE:
            is_slow = method == "OMCL-PERC"
            if is_slow and seed not in splits[: size["omcl_seeds"]]:
                continue
            epochs = size["omcl_epochs" if is_slow else "epochs"]
            if seed not in with_all_epochs:
                epochs = epochs[:1]
            learners.append([method, chosen[method], list(epochs)])
        place = {"task": task, "n_train": n_train, "n_test": ALL, "seed": seed}
        points.append({**place, "learners": learners})
    sweep = run.sweep(name)
    table = sweep.frame(rivals.online_curves, points, data=tasks_of(run).emoji)
    return table.drop(columns="learners")


def errors_at_the_end(table):
    """Test errors on the splits on which a learner has all epochs."""
    tests = table[table["what"] == "test"]
    return tests[tests["at"] == tests.groupby("method")["at"].transform("max")]


@figure("thesis-fig-4.3", claims=["om2-4", "om2-5"])
def online_learning_of_objects(run):
    """Online, does OM-2 err less than its rivals, and does it come level with batch MKL?"""
    size = run.size["online"]
    tasks = tasks_of(run)
    chosen, tried = chosen_for_objects(run)
    splits = run.seeds(run.size["online"])
    whole = run.seeds(run.size["tables"])
    online = pass_by_pass(run, "online", tasks.objects, tasks.n_objects, chosen, size, splits, whole)
    batch = at_most_objects(run)
    batch = batch[batch["method"].isin(BATCH)]
    paper = {
        "best p": 1.01,
        "epochs until OM-2 is level with SILP": LEVEL,
        "minutes of OM-2's 150 epochs": 15,
        "minutes of SILP and of LP-beta, more than": 120,
    }
    note = f"{tasks.things_are}, 39 kernels; parameters by cross-validation{rivals.edges(tried)}"
    drawing = draw.online_panels(online, batch, LEVEL)
    tables = {"": online, "batch": batch}
    run.save_figure(drawing, "thesis-fig-4.3", tables, provenance=[tasks.emoji], paper=paper, note=note)


@online_learning_of_objects.see
def _(results):
    table = results.table("thesis-fig-4.3")
    first = table[table["what"] == "online"].sort_values("at").groupby(["method", "seed"])["error"].last()
    first = percent(first.groupby("method").mean())
    ends = errors_at_the_end(table)
    later = percent(ends.groupby("method")["error"].mean())
    later |= percent(results.table("thesis-fig-4.3.batch").groupby("method")["test_error"].mean())
    n_epochs = ends.loc[ends["method"] == "OM2", "at"].max()
    return f"""
All methods are still poor after one pass: OM-2 errs on {first["OM2"]} of it, PA-I on {first["KernelPA"]}
(average kernel) and {first["KernelPA best"]} (best kernel), OMCL on {first["OMCL-PERC"]}. After
{n_epochs} epochs OM-2 errs on {later["OM2"]} of new drawings, PA-I on {later["KernelPA"]} and
{later["KernelPA best"]}; SILP on {later["SILPMKL"]}, LP-beta on {later["LPBeta"]}."""


@figure("thesis-fig-4.4", claims="om2-6")
def online_learning_of_categories(run):
    """Where every cue informs, is batch MKL worse than all online methods?"""
    size = run.size["online_different"]
    tasks = tasks_of(run)
    n_train = size["n_train"]
    splits = run.seeds(run.size["online_different"])
    methods = [*rivals.ONLINE, *BATCH]
    chosen, tried = choose(
        run, "online-different", tasks.different, methods, n_train, options=as_judged(size), data=tasks.emoji
    )
    online = pass_by_pass(run, "online-different", tasks.different, n_train, chosen, size, splits, splits)
    compared = []
    for method, seeds in (("SILPMKL", splits), ("LPBeta", splits[:4])):  # no claim is judged by LP-beta
        sweep = run.sweep("online-different-batch")
        table = rivals.compare_all(
            sweep, tasks.different, [n_train], ALL, [method], chosen, seeds, data=tasks.emoji
        )
        compared.append(table)
    batch = pd.concat(compared)
    note = f"{tasks.groups_are}, six cues; parameters by cross-validation{rivals.edges(tried)}"
    tables = {"": online, "batch": batch, "choice": tried}
    drawing = draw.online_panels(online, batch)
    paper = {"best p": BEST_P["different"]}
    run.save_figure(drawing, "thesis-fig-4.4", tables, provenance=[tasks.emoji], paper=paper, note=note)


@online_learning_of_categories.see
def _(results):
    ends = errors_at_the_end(results.table("thesis-fig-4.4"))
    error = percent(ends.groupby("method")["error"].mean())
    batch = results.table("thesis-fig-4.4.batch")
    error |= percent(batch.groupby("method")["test_error"].mean())
    return f"""
On the places of the thesis 1-vs-All MKL was worse than every online combination. On the categories SILP
errs on {error["SILPMKL"]}; at the ends of their curves OM-2 errs on {error["OM2"]}, PA-I on the average
kernel on {error["KernelPA"]}, OMCL on {error["OMCL-PERC"]}."""
