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
from companion.plots.common import distinct
from companion.protocol import FIRST_STAGE, where
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


def _errors_by_p(table):
    """The p of the least mean error on each set; with this error, and how much p matters."""
    best = []
    errors = []
    for task, part in table.groupby("task", sort=False):
        error = part.groupby("p")["test_error"].mean()
        best.append(f"{error.idxmin():g} ({short_name(task)})")
        errors.append(f"on {name_of_cues(task)}, {least(error)} ({error.max():.1%} at the worst $p$)")
    return {"best_p": enumerated(best), "errors": "; ".join(errors)}


@figure("thesis-fig-4.2", claims=["om2-2", "om2-3"])
def online_against_p(run):
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


@online_against_p.facts
def _(results):
    table = results.table()
    done = table[table.groupby(["task", "p"])["converged"].transform("all")]
    updates = done.groupby(["task", "p"], sort=False)["updates"].mean().groupby("task", sort=False)
    more = updates.first() / updates.last()
    times = "; ".join(f"{name_of_cues(task)} {ratio:.2g}" for task, ratio in more.items())
    return {**_errors_by_p(table), "theirs": BEST_P, "times": times}


online_against_p.title("OM-2 has its lowest error at p = {best_p}.")
online_against_p.see("""
OM-2's lowest errors: {errors}. The thesis found $p = {theirs[mfeat]:g}$ best on its places and
{theirs[pyramid]:g} on its pyramid. At the smallest $p$ at which all runs converge, the updates are these
multiples of those at the largest $p$: {times}.""")


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


@both_stages_against_p.facts
def _(results):
    table = results.table()
    return {**_errors_by_p(table), "mean": table[["online_error", "test_error"]].mean()}


both_stages_against_p.title("""
Averaged over all p and data, OBSCURE's online stage errs on {mean[online_error]:.1%}, both stages together on
{mean[test_error]:.1%}.""")
both_stages_against_p.see("OBSCURE's lowest errors: {errors}.")


def _pass_by_pass(run, name, place, chosen, size, with_all_epochs, batch=BATCH):
    """The first pass on all splits (OMCL on fewer); on the splits `with_all_epochs` every epoch, and methods
    of `batch`. Two tables."""
    splits = run.seeds(size)
    online = [method for method in chosen if rivals.plain(method) in rivals.ONLINE]
    of_batch = {method: own for method, own in chosen.items() if rivals.plain(method) in batch}
    points = []
    for seed in splits:
        whole = seed in with_all_epochs
        learners = []
        for method in online:
            is_slow = rivals.plain(method) == "OMCL-PERC"
            if is_slow and seed not in splits[: size["omcl_seeds"]]:
                continue
            epochs = list(size["omcl_epochs" if is_slow else "epochs"])
            learners.append([method, chosen[method], epochs if whole else epochs[:1]])
        point = {**place.fixed, "seed": seed, "learners": learners}
        points.append({**point, "batch": of_batch if whole else {}})
    table = run.sweep(name).frame(rivals.online_curves, points, data=place.data)
    table = table.drop(columns=["learners", "batch"])
    is_batch = table["what"] == "batch"
    return [rows.dropna(axis=1, how="all") for rows in (table[~is_batch], table[is_batch])]


def _errors(table, batch):
    """Mean errors at the end of the first pass; on new samples, a row for each epoch; of all at the end."""
    first = at_end(where(table, what="online"), "error", "method")
    tests = where(table, what="test").rename(columns={"error": "test_error"})
    last = tests[tests["at"] == tests.groupby("method")["at"].transform("max")]
    by_epoch = tests.groupby(["at", "method"])["test_error"].mean().unstack()
    return first, by_epoch, pd.concat([mean_error(last), mean_error(batch)])


@figure("thesis-fig-4.3", claims=["om2-4", "om2-5"])
def online_on_objects(run):
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


@online_on_objects.facts
def _(results):
    table = results.table().sort_values("at")
    first, tests, ends = _errors(table, results.table("thesis-fig-4.3.batch"))
    return {
        "n_epochs": tests.index[-1],
        "error": ends,
        "of_pass": first,
        "first": listed(first),
        "ends": listed(ends),
    }


online_on_objects.title("""
After {n_epochs:.0f} epochs OM-2 errs on {error[OM2]:.0%} of new drawings, SILP on {error[SILPMKL]:.0%}; in
the first pass it errs on {of_pass[OM2]:.0%}.""")
online_on_objects.see("""
Mistakes in the first pass: {first}. Errors on new drawings at the ends of the curves: {ends}.""")


@figure("thesis-fig-4.4", claims=["om2-6", "om2-9"])
def online_on_cues(run):
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


@online_on_cues.facts
def _(results):
    table = results.table()
    ordered = table.sort_values("at")
    batch = results.table("thesis-fig-4.4.batch")
    pairs = []
    ends = []
    for task in distinct(table["task"]):
        _, tests, last = _errors(where(ordered, task=task), where(batch, task=task))
        om2 = tests.dropna()["OM2"]  # after epochs that every learner has
        pairs.append(f"{om2.iloc[-1]:.0%} and {last['SILPMKL']:.0%} ({short_name(task)})")
        ends.append(f"Errors on {name_of_cues(task)} at the ends of the curves: {listed(last, '.1%')}.")
    return {"n_epochs": om2.index[-1], "pairs": enumerated(pairs), "ends": " ".join(ends)}


online_on_cues.title("OM-2 ({n_epochs:.0f} epochs) and SILP err on {pairs}.")
online_on_cues.see("{ends}")
