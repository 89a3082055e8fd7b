"""Figures of the MKL chapter on learning online, and on what p does."""

import pandas as pd

from companion.mkl import rivals
from companion.mkl.figures_shared import (
    as_judged,
    at_end,
    at_most_objects,
    choose,
    chosen_for_objects,
    least,
    listed,
    mean_error,
    save,
    tasks_of,
)
from companion.mkl.runs import online_run, two_stages
from companion.plots import mkl as draw
from companion.protocol import FIRST_STAGE
from companion.run.registry import figure
from companion.run.words import enumerated

#: The p that the thesis found best on its own data, by the first word of our task.
BEST_P = {"mfeat": 2.0, "htad": 2.0, "pyramid": 1.10}
#: Epochs after which the thesis's OM-2 is level with SILP.
LEVEL = 80
BATCH = ("SILPMKL", "LPBeta")


def places_against_p(run):
    """Cues that all inform: on tables, and on categories of things never seen; redundant cues."""
    tasks = tasks_of(run)
    return [*tasks.informs, tasks.different, tasks.pyramid]


def name_of_cues(task):
    return draw.CUES[task.split("-")[0]]


def short_name(task):
    return name_of_cues(task).split(",")[0]


def _best_on_each_set(table):
    """Which p errs least on each set, and how much p matters, in words."""
    parts = []
    for task, part in table.groupby("task", sort=False):
        error = part.groupby("p")["test_error"].mean()
        parts.append(f"on {name_of_cues(task)}, {least(error)} ({error.max():.1%} at the worst $p$)")
    return "; ".join(parts)


def _best_p(table):
    """The p of the least mean error on each set, in words."""
    error = table.groupby(["task", "p"], sort=False)["test_error"].mean()
    best = {short_name(task): part.idxmin()[1] for task, part in error.groupby("task", sort=False)}
    return enumerated([f"{p:g} ({cues})" for cues, p in best.items()])


@figure("thesis-fig-4.2", claims=["om2-2", "om2-3"])
def online_errors_and_work_against_p(run):
    """Which p is best for OM-2, with and without redundant cues, and at which is it fastest?"""
    size = run.size["p_sweep"]
    places = places_against_p(run)
    epochs = {"n_epochs": size["n_epochs"], "most_epochs": size["most_epochs"]}
    points = [
        {**place.fixed, "p": p, "seed": seed, **epochs}
        for place in places
        for seed in run.seeds(size)
        for p in size["p_grid"]
    ]
    table = run.sweep("p").frame(online_run, points, data=[place.data for place in places])
    done = table.groupby(["task", "p"])["converged"].transform("all")
    drawn = table.assign(method="OM2", updates=table["updates"].where(done))
    drawing = draw.against_p(drawn, "updates", BEST_P)
    paper = {f"best p, {name_of_cues(name)} (the thesis: other data)": p for name, p in BEST_P.items()}
    note = (
        f"errors after {size['n_epochs']} epochs; updates to convergence where all runs converge, in "
        f"{size['most_epochs']} epochs at most"
    )
    save(run, "thesis-fig-4.2", places, table, note, drawing, paper=paper)


@online_errors_and_work_against_p.title
def _(results):
    return f"OM-2 has its lowest error at p = {_best_p(results.table('thesis-fig-4.2'))}."


@online_errors_and_work_against_p.see
def _(results):
    table = results.table("thesis-fig-4.2")
    done = table[table.groupby(["task", "p"])["converged"].transform("all")]
    updates = done.groupby(["task", "p"], sort=False)["updates"].mean().groupby("task", sort=False)
    more = (updates.first() / updates.last()).rename(name_of_cues)
    times = "; ".join(f"{name} {ratio:.2g}" for name, ratio in more.items())
    return f"""
OM-2's lowest errors: {_best_on_each_set(table)}. The thesis found $p = {BEST_P["mfeat"]:g}$ best on its
places and {BEST_P["pyramid"]:g} on its pyramid. At the smallest $p$ at which all runs converge,
the updates are these multiples of those at the largest $p$: {times}."""


@figure("jmlr-fig-4")
def both_stages_against_p(run):
    """Which p is best for OBSCURE, run to a certified gap, and what do its two stages cost?"""
    size = run.size["obscure_p"]
    places = places_against_p(run)
    common = {name: size[name] for name in ("n_epochs", "tol")}
    points = []
    chosen = []
    for place in places:
        params, tried = choose(run, place.task, place, ["OBSCURE"])
        C = params["OBSCURE"]["C"]
        chosen.append(f"{name_of_cues(place.task)} {C:g}{rivals.edges(tried)}")
        points += [
            {**place.fixed, "p": p, "seed": seed, "C": C, **common}
            for seed in run.seeds(size)
            for p in size["p_grid"]
        ]
    table = run.sweep("p-obscure").frame(two_stages, points, data=[place.data for place in places])
    online = table.assign(
        method="OBSCURE online", test_error=table["online_error"], rows=table["online_rows"]
    )
    drawing = draw.against_p(pd.concat([online, table.assign(method="OBSCURE")]), "rows")
    note = (
        f"C by cross-validation: {', '.join(chosen)}; online stage of at most "
        f"{FIRST_STAGE['n_epochs_online']} epochs, batch stage to a certified gap of {size['tol']:.0%}"
    )
    save(run, "jmlr-fig-4", places, table, note, drawing)


@both_stages_against_p.title
def _(results):
    error = results.table("jmlr-fig-4")[["online_error", "test_error"]].mean()
    return f"""
Averaged over all p and data, OBSCURE's online stage errs on {error["online_error"]:.1%}, both stages
together on {error["test_error"]:.1%}."""


@both_stages_against_p.see
def _(results):
    return f"OBSCURE's lowest errors: {_best_on_each_set(results.table('jmlr-fig-4'))}."


def _pass_by_pass(run, name, place, chosen, size, with_all_epochs, batch=BATCH):
    """The first pass on all splits (OMCL on fewer); on the splits `with_all_epochs` every epoch, and methods
    of `batch`. Two tables."""
    splits = run.seeds(size)
    online = [method for method in chosen if rivals.plain(method) in rivals.ONLINE]
    of_batch = {method: own for method, own in chosen.items() if rivals.plain(method) in batch}
    points = []
    for seed in splits:
        learners = []
        for method in online:
            is_slow = rivals.plain(method) == "OMCL-PERC"
            if is_slow and seed not in splits[: size["omcl_seeds"]]:
                continue
            epochs = size["omcl_epochs" if is_slow else "epochs"]
            if seed not in with_all_epochs:
                epochs = epochs[:1]
            learners.append([method, chosen[method], list(epochs)])
        points.append(
            {
                **place.fixed,
                "seed": seed,
                "learners": learners,
                "batch": of_batch if seed in with_all_epochs else {},
            }
        )
    table = run.sweep(name).frame(rivals.online_curves, points, data=place.data)
    table = table.drop(columns=["learners", "batch"])
    is_batch = table["what"] == "batch"
    return [rows.dropna(axis=1, how="all") for rows in (table[~is_batch], table[is_batch])]


def _errors(results, name, task="", form=".0%"):
    """Errors of the online learners after the first pass, and of all methods at the end, in words."""
    table = results.table(name).sort_values("at").rename(columns={"error": "test_error"})
    table = table[table["task"] == task] if task else table
    first = at_end(table[table["what"] == "online"], "test_error", "method")
    tests = table[table["what"] == "test"]
    ends = mean_error(tests[tests["at"] == tests.groupby("method")["at"].transform("max")])
    batch = results.table(f"{name}.batch")
    batch = mean_error(batch[batch["task"] == task] if task else batch)
    return listed(first, form), listed(pd.concat([ends, batch]), form)


def _tests(table):
    """Mean test errors, a row for each epoch, a column for each learner."""
    tests = table[table["what"] == "test"]
    return tests.groupby(["at", "method"])["error"].mean().unstack()


@figure("thesis-fig-4.3", claims=["om2-4", "om2-5"])
def online_learning_of_objects(run):
    """Online, does OM-2 err less than its rivals, and does it reach the error of batch MKL?"""
    place = tasks_of(run).objects
    chosen, _ = chosen_for_objects(run)
    whole = run.seeds(run.size["tables"])
    size = run.size["online"]
    online, silp = _pass_by_pass(run, "online", place, chosen, size, whole, ["SILPMKL"])
    table = at_most_objects(run)
    table = table[table["method"].map(rivals.plain) == "LPBeta"].assign(task=place.task)
    batch = pd.concat([silp, table])
    paper = {
        "best p": 1.01,
        "epochs until OM-2 is level with SILP": LEVEL,
        "minutes of OM-2's 150 epochs": 15,
        "minutes of SILP and of LP-beta, more than": 120,
    }
    drawing = draw.online_panels(online, batch, LEVEL)
    save(run, "thesis-fig-4.3", place, {"": online, "batch": batch}, "39 kernels", drawing, paper=paper)


@online_learning_of_objects.title
def _(results):
    table = results.table("thesis-fig-4.3").sort_values("at")
    first = at_end(table[table["what"] == "online"], "error", "method")["OM2"]
    tests = _tests(table)["OM2"]
    silp = mean_error(results.table("thesis-fig-4.3.batch"))["SILPMKL"]
    return f"""
After {tests.index[-1]:.0f} epochs OM-2 errs on {tests.iloc[-1]:.0%} of new drawings, SILP on {silp:.0%}; in
the first pass it errs on {first:.0%}."""


@online_learning_of_objects.see
def _(results):
    first, ends = _errors(results, "thesis-fig-4.3")
    return f"Mistakes in the first pass: {first}. Errors on new drawings at the ends of the curves: {ends}."


@figure("thesis-fig-4.4", claims=["om2-6", "om2-9"])
def online_learning_where_every_cue_informs(run):
    """Where every cue is informative, is batch MKL worse than all online methods?"""
    size = run.size["online_cues"]
    tasks = tasks_of(run)
    places = [*tasks.informs, tasks.different]
    splits = run.seeds(size)
    methods = [*rivals.ONLINE, *BATCH]
    tables = []
    for place in places:
        chosen, tried = choose(run, f"online-{place.task}", place, methods, options=as_judged(size))
        curves = _pass_by_pass(run, f"online-{place.task}", place, chosen, size, splits)
        tables.append([table.assign(task=place.task) for table in (*curves, tried)])
    online, batch, tried = (pd.concat(parts, ignore_index=True) for parts in zip(*tables, strict=True))
    at_edge = {name_of_cues(task): rivals.edges(rows) for task, rows in tried.groupby("task", sort=False)}
    note = "parameters by cross-validation" + "".join(f"; {cues}{at}" for cues, at in at_edge.items() if at)
    tables = {"": online, "batch": batch, "choice": tried}
    paper = {"best p": BEST_P["mfeat"]}
    save(run, "thesis-fig-4.4", places, tables, note, draw.online_panels(online, batch), paper=paper)


@online_learning_where_every_cue_informs.title
def _(results):
    parts = []
    batch = results.table("thesis-fig-4.4.batch")
    for task, table in results.table("thesis-fig-4.4").groupby("task", sort=False):
        tests = _tests(table).dropna()  # epochs that every learner has
        silp = mean_error(batch[batch["task"] == task])["SILPMKL"]
        parts.append(f"{tests['OM2'].iloc[-1]:.0%} and {silp:.0%} ({short_name(task)})")
    return f"OM-2 ({tests.index[-1]:.0f} epochs) and SILP err on {enumerated(parts)}."


@online_learning_where_every_cue_informs.see
def _(results):
    parts = []
    for task in results.table("thesis-fig-4.4")["task"].unique():
        _, ends = _errors(results, "thesis-fig-4.4", task, ".1%")
        parts.append(f"Errors on {name_of_cues(task)} at the ends of the curves: {ends}.")
    return " ".join(parts)
