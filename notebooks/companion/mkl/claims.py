"""What the claims of the chapter are judged by: OM-2 and the bounds here, batch methods in `claims_batch`."""

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import gmean

from companion.mkl.claims_batch import INFORM, beside, picked, smaller_C  # its claims register
from companion.mkl.losses import PAIRS, PROBABILISTIC
from companion.protocol import where as rows
from companion.run.claims import (
    All,
    Bound,
    Each,
    Finding,
    Growth,
    Mean,
    NotJudged,
    Slope,
    Time,
    claim,
    dropped,
)

#: How much more error than at another p still counts as none.
SAME_ERROR = 0.002
#: Of batch MKL's error and work, for "matches" and "at a fraction".
MORE_ERROR, FRACTION = 0.005, 0.5
#: Exponent in the number of kernels F that ln F has at F = 55: below its mean over all F that are tried.
LOGARITHM = 0.25
#: Kernels of the three-class problem that tell each class from the rest.
SEPARATES = {1: {2, 4}, 2: {3, 4}, 3: {1, 4}}
#: Online learners; all but the last combine cues.
LEARNERS = {
    "OM2": "OM-2",
    "OMCL-PERC": "OMCL",
    "KernelPA": "PA-I on the average kernel",
    "KernelPA best": "PA-I on the best cue",
}
#: The best p in the thesis's figure 4.2, with redundant kernels.
BEST_P = 1.1


on_4 = Mean("{a} puts at least 95% on kernel 4", "weight of {a} on kernel 4", "weight", at_least=0.95)
kernel_4 = "method == '{a}' and kernel == 4"


@claim(
    "om2-1",
    "thesis-fig-4.1",
    Each(on_4, where=kernel_4, a=["OM2"]),
    Each(replace(on_4, figure="jmlr-fig-1"), table="jmlr-fig-1", where=kernel_4, a=["OBSCURE"]),
)
def om2_1(results):
    silp = rows(results.table("thesis-fig-4.1"), method="SILPMKL")
    right = [
        set(weights.loc[weights["weight"] > 1e-3, "kernel"]) == SEPARATES[target]
        for (target, _), weights in silp.groupby(["target", "seed"])
    ]
    says = "every binary SILP picks exactly the two kernels that separate its class"
    measure = "share of binary problems with exactly those two"
    yield Finding(says, measure, all(right), np.mean(right), n=silp["seed"].nunique())


@claim("om2-2", "thesis-fig-4.2")
def om2_2(results):
    for task, part in results.table("thesis-fig-4.2").groupby("task", sort=False):
        at = part.pivot(index="seed", columns="p", values="test_error")
        least, most = at.columns.min(), at.columns.max()
        cues = task.split("-")[0]
        if cues == "pyramid":
            for end in (least, most):
                says = f"p = {BEST_P:g} has a lower error than p = {end:g}"
                measure = f"error at p = {BEST_P:g} minus at {end:g}"
                place = {"of": "emoji", "on": "redundant cues"}
                yield Mean(says, measure, at[BEST_P], at[end], at_most=0.0, **place)
        elif cues not in INFORM:
            error = at.mean()
            best = f"least error {error.min():.1%} at p = {error.idxmin():g}"
            yield f"Beside, on categories: {best}, {error[most]:.1%} at p = {most:g}."
        else:
            name = INFORM[cues]
            place = {"of": cues, "on": name}
            says = f"p = {most:g} has a lower error than p = {least:g}"
            measure = f"error at p = {most:g} minus at {least:g}"
            yield Mean(says, measure, at[most], at[least], at_most=0.0, **place)
            smaller = []
            for p in at.columns.drop(most):
                measure = f"error at p = {most:g} minus at {p:g}"
                smaller.append(Mean(f"{p:g}", measure, at[most], at[p], at_most=SAME_ERROR, **place))
            says = f"p = {most:g} at most {100 * SAME_ERROR:g} points worse than every smaller p"
            yield All(says, parts=smaller, **place)


@claim("om2-3", "thesis-fig-4.2")
def om2_3(results):
    table = results.table("thesis-fig-4.2")
    names = INFORM | {"pyramid": "redundant cues"}
    parts = []
    notes = []
    for task, part in table[~table["task"].str.startswith("different")].groupby("task", sort=False):
        cues = task.split("-")[0]
        name = names[cues]
        done = rows(part, converged=True)
        done = done[done.groupby("seed")["p"].transform("size") >= 3]
        notes.append(f"{name}, {(~part['converged']).sum()} of {len(part)}")
        place = {"of": cues if cues in INFORM else "emoji", "on": name}
        falling = {"units": done["seed"], "at_most": 0.0, **place}
        updates = "fewer updates for larger p"
        time = "less time for larger p"
        if done["seed"].nunique() < 2:
            parts += [NotJudged(updates, on=name), NotJudged(time, on=name)]
            continue
        measure = f"{name}: exponent of updates in p - 1"
        parts.append(Slope(updates, measure, done["updates"], done["p"] - 1, **falling))
        measure = f"{name}: exponent of CPU seconds in p - 1"
        falling |= {"counts": done["visits"], "counted": "visits"}
        parts.append(Growth(time, measure, done["seconds"], done["p"] - 1, **falling))
    if all(isinstance(part, NotJudged) for part in parts):
        parts = [replace(part, verdict="not testable here") for part in parts]
        return [*parts, "No two splits have runs that converge at three values of p."]
    most = table["most_epochs"].max()
    return [*parts, f"Left out are the slowest runs, not converged after {most} epochs: {'; '.join(notes)}."]


def first_pass(results):
    """Of each learner and split the error of the first pass."""
    online = rows(results.table("thesis-fig-4.3"), what="online").sort_values("at")
    return online.groupby(["method", "seed"], as_index=False)["error"].last()


lower = "lower online error than {b_title}", "online error of OM-2 minus {b_title}", "OM2", "{b}"
names = {"OMCL-PERC": "OMCL", "KernelPA": "PA-I, average kernel", "KernelPA best": "PA-I, best kernel"}
claim("om2-4", "thesis-fig-4.3", Mean(*lower, at_most=0.0), table=first_pass, wide="error", lost="", b=names)


@claim("om2-5", "thesis-fig-4.3")
def om2_5(results):
    tests = rows(results.table("thesis-fig-4.3"), method="OM2", what="test").sort_values("at")
    batch = results.table("thesis-fig-4.3.batch")
    silp = rows(batch, method="SILPMKL").set_index("seed")
    om2 = tests.groupby("seed").last().loc[silp.index]
    epochs = f"{om2['at'].max():g} epochs"
    says = f"after {epochs} its error is at most 0.5 points above 1-vs-All SILP's"
    measure = "test error of OM-2 minus 1-vs-All SILP"
    yield Mean(says, measure, om2["error"], silp["test_error"], at_most=MORE_ERROR)
    # beside: per split the first look at which it is level, or the last of all
    near = tests[tests["error"] <= tests["seed"].map(silp["test_error"]) + MORE_ERROR]
    level = near.groupby("seed").first().reindex(silp.index).fillna(om2)
    until = [gmean(level[work] / silp[work]) for work in ("seconds", "rows")]
    text = (
        f"It is first level with SILP at epoch {level['at'].median():g}, with {until[0]:.2g} times the "
        f"CPU seconds and {until[1]:.2g} times the rows. {picked(batch, 'SILPMKL')}"
    )
    says = f"these {epochs} take at most half the CPU seconds"
    measure = f"CPU seconds, OM-2 with {epochs} over 1-vs-All SILP"
    counts = {"counts": om2["rows"], "baseline_counts": silp["rows"], "counted": "kernel rows"}
    yield Time(says, measure, om2["seconds"], silp["seconds"], **counts, at_most=FRACTION, text=text)
    yield smaller_C(batch, "SILPMKL")


def of_learners(results):
    """By cues and split: errors of the first pass; test errors after as many epochs as every learner has,
    with SILP's."""
    table = results.table("thesis-fig-4.4")
    batch = results.table("thesis-fig-4.4.batch")
    tables = []
    for cues, name in {**INFORM, "different": "categories"}.items():
        runs = table[table["task"].str.startswith(cues)]
        online = rows(runs, what="online").sort_values("at").groupby(["method", "seed"])["error"].last()
        tests = rows(runs, what="test")
        equal = tests.groupby("method")["at"].max().min()
        tests = rows(tests, at=equal).pivot(index="seed", columns="method", values="error")
        silp = rows(batch[batch["task"].str.startswith(cues)], method="SILPMKL").set_index("seed")
        tests = tests.join(silp["test_error"].rename("SILPMKL"), how="inner").add_prefix("test ")
        of = cues if cues in INFORM else "emoji"
        tables.append(
            online.unstack("method").add_prefix("online ").join(tests).assign(cues=cues, name=name, of=of)
        )
    return pd.concat(tables)


says = "{a_title} has a lower test error than 1-vs-All SILP"
measure = "error of {a_title} minus 1-vs-All SILP"
combine = dict(list(LEARNERS.items())[:-1])
better = Mean(says, measure, "test {a}", "test SILPMKL", at_most=0.0, on="{name}")
LEARNT = {"table": of_learners, "by": "cues", "lost": ""}
informs = "cues != 'different'"


@claim("om2-6", "thesis-fig-4.4", better, where=informs, a=combine, **LEARNT)
def om2_6(results):
    batch = results.table("thesis-fig-4.4.batch")
    for cues, name in INFORM.items():
        runs = batch[batch["task"].str.startswith(cues)]
        yield f"On {name} {picked(runs, 'SILPMKL')} {smaller_C(runs, 'SILPMKL')}".strip()
    yield beside(results, Each(better, where="cues == 'different'", a=combine, **LEARNT).declared(results))


says = "{a_title} has a lower {column} error than {b_title}"
pair = "{column} {a}", "{column} {b}"
lower = Mean(says, "{column} error, {a_title} minus {b_title}", *pair, at_most=0.0, on="{name}")
says = "1-vs-All SILP has a higher test error than PA-I on the best cue"
measure = "test error, 1-vs-All SILP minus PA-I on the best cue"
claim(
    "om2-9",
    "thesis-fig-4.4",
    Each(
        lower,
        a={name: LEARNERS[name] for name in ("OM2", "KernelPA")},
        b={name: LEARNERS[name] for name in ("OMCL-PERC", "KernelPA best")},
        column=["online", "test"],
        lost="",
    ),
    Mean(says, measure, "test SILPMKL", "test KernelPA best", at_least=0.0, on="{name}"),
    where=informs,
    **LEARNT,
)

under = Bound("under the bound", "", "mistakes", "bound", n="seed.size", on="{a_title}")
claim(
    "om2-7",
    "thesis-thm-4.1",
    Each(replace(under, of="mfeat"), where="kind == '{a}'", a={"mfeat-6": "real digits"}),
    Each(replace(under, of="random streams"), where="kind == '{a}'", a={"random": "random labels"}),
)


@claim("om2-8", "thesis-thm-4.1")
def om2_8(results):
    table = results.table("thesis-thm-4.1.useless")
    exponent = {}
    for p, part in table.groupby("p"):
        streams = [np.log(stream[["n_kernels", "mistakes"]]) for _, stream in part.groupby("seed")]
        fits = [np.polyfit(stream["n_kernels"], stream["mistakes"], 1)[0] for stream in streams]
        exponent[p] = np.array(fits)
    own = rows(table, p="auto")
    streams = {"of": "random streams"}
    curves = {"units": own["seed"], **streams}
    measure = "exponent of mistakes in F"
    says = f"mistakes grow at most like F^{LOGARITHM:g} over these F, less than ln F does"
    yield Slope(says, measure, own["mistakes"], own["n_kernels"], at_most=LOGARITHM, **curves)
    says = "control: on the same streams they grow faster at p = 2"
    measure += ": at p = 2 minus at p of the corollary"
    yield Mean(says, measure, exponent["2.0"], exponent["auto"], at_least=0.0, relevant=0.0, **streams)
    slope = Slope("", "", own["mistakes"], own["n_kernels"], at_least=0.0, log_y=False, **curves)
    per_log = results.judge(slope)
    text = f"Mistakes per unit of ln F: {per_log.number:.2f} ({per_log.low:.2f} to {per_log.high:.2f})"
    if per_log.high < 0.0:
        text += ": only the upper bound is tested, and useless kernels cost nothing here"
    yield f"{text}. At p = 2 the exponent is {exponent['2.0'].mean():.2f}."


def expected(results):
    """A bound on an expectation: means over independent streams."""
    table = results.table(results.figure)
    mean = table.groupby(["p", "C", "step"], as_index=False)[["suboptimality", "bound"]].mean()
    return mean.assign(streams=table["stream"].nunique())


under = Bound("", "", "suboptimality", "bound", n="{streams}")
claim("obs-9", "thesis-thm-4.2", under, table=expected)
claim("ufo-4", "thesis-thm-4.5", under, table=expected)

norm = Bound(
    "R bounds the optimum's norm", "norm over R, largest", "optimum_norm", "radius", slack=1e-3, n="p.size"
)
updates = Bound("updates stay under the bound", "", "updates", "bound", n="p.size")
claim("obs-10", "thesis-thm-4.3", updates, norm)


@claim("obs-14", "thesis-thm-4.3")
def obs_14(results):
    stage = results.table("thesis-thm-4.3")
    ended = stage[stage["without_loss"]]
    text = dropped(len(stage) - len(ended), "runs that did not end without loss")
    columns = ended["radius"], ended["separable_radius"]
    yield Bound("", "R over its bound, largest", *columns, n=len(ended), text=text)


#: Of root mean square errors in standard deviations of y: what counts as no worse.
NO_WORSE = 0.01
#: Of calibration errors and log losses: the smallest difference that counts.
COUNTS = 0.01
TASKS = {"by": "task", "wide": "error"}


def no_worse(method, rival):
    says = f"{method} errs no more than {rival}"
    measure = "difference of root mean square errors over the deviation of y"
    return Mean(says, measure, method, rival, at_most=NO_WORSE, of="{task}", on="{task}")


claim("loss-1", "loss-regression", *(no_worse(*pair) for pair in PAIRS.items()), **TASKS)
claim("loss-2", "loss-regression", no_worse("OBSCURE, insensitive", "p-norm SVR"), **TASKS)

method, *rivals = PROBABILISTIC
texts = "a lower {column_title} than the {rival}", "difference of the {column_title}"
pair = f"{{column}} {method}", "{column} {rival}"
claim(
    "loss-3",
    "loss-reliability",
    Mean(*texts, *pair, at_most=0.0, relevant=COUNTS, of="{task}", on="{task}"),
    table=lambda results: results.table("loss-reliability").drop_duplicates(["task", "seed", "method"]),
    by="task",
    wide=["calibration", "log_loss"],
    column={"calibration": "expected calibration error", "log_loss": "log loss"},
    rival=rivals,
)
