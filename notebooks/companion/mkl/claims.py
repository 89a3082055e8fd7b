"""What the claims of the chapter are judged by: OM-2 and the bounds here, batch methods in `claims_batch`."""

import numpy as np
from scipy.stats import gmean

from companion.mkl import claims_losses  # noqa: F401  its claims register
from companion.mkl.claims_batch import INFORM, beside, dropped, picked, smaller_C  # its claims register
from companion.protocol import where as rows
from companion.run.claims import HOLDING, LEVEL, Part, Verdict, judges

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
#: Verdicts from the clearest.
ORDER = ("holds", "holds, smaller", "undecided", "fails")


def weakest(verdicts):
    """One verdict for "all of these"."""
    return max(verdicts, key=lambda verdict: (ORDER.index(verdict.verdict), verdict.p))


def clearest(verdicts):
    """One verdict for "at least one of these": the clearest that holds, its p times their number."""
    verdicts = sorted(verdicts, key=lambda verdict: (ORDER.index(verdict.verdict), verdict.p))
    first = verdicts[0]
    if first.verdict in HOLDING:
        first = first._replace(p=min(1.0, len(verdicts) * first.p))
        tried = f"It holds on its own, but not as one of {len(verdicts)} that were tested."
        return first if first.p <= LEVEL else first._replace(verdict="undecided", text=tried)
    return first if first.verdict == "undecided" else verdicts[-1]


@judges("om2-1", "thesis-fig-4.1")
def om2_1(results):
    for method, figure in (("OM2", "thesis-fig-4.1"), ("OBSCURE", "jmlr-fig-1")):
        on_4 = rows(results.table(figure), method=method, kernel=4)["weight"]
        says = f"{method} puts at least 95% on kernel 4"
        yield Part(says, f"weight of {method} on kernel 4", on_4, at_least=0.95, figure=figure)
    silp = rows(results.table("thesis-fig-4.1"), method="SILPMKL")
    right = [
        set(weights.loc[weights["weight"] > 1e-3, "kernel"]) == SEPARATES[target]
        for (target, _), weights in silp.groupby(["target", "seed"])
    ]
    says = "every binary SILP picks exactly the two kernels that separate its class"
    measure = "share of binary problems with exactly those two"
    yield Part(says, measure, true=all(right), number=np.mean(right), n=silp["seed"].nunique())


@judges("om2-2", "thesis-fig-4.2")
def om2_2(results):
    for task, part in results.table("thesis-fig-4.2").groupby("task", sort=False):
        at = part.pivot(index="seed", columns="p", values="test_error")
        least, most = at.columns.min(), at.columns.max()
        cues = task.split("-")[0]
        if cues == "pyramid":
            yield Part("redundant cues: some p inside beats both ends", verdict=best_inside(results, at))
        elif cues not in INFORM:
            error = at.mean()
            best = f"least error {error.min():.1%} at p = {error.idxmin():g}"
            yield f"Beside, on categories: {best}, {error[most]:.1%} at p = {most:g}."
        else:
            name = INFORM[cues]
            says = f"{name}: p = {most:g} has a lower error than p = {least:g}"
            measure = f"{name}: error at p = {most:g} minus at {least:g}"
            yield Part(says, measure, at[most], at[least], at_most=0.0, of=cues)
            for p in at.columns.drop(most):
                says = f"{name}: p = {most:g} is at most {100 * SAME_ERROR:g} points worse than p = {p:g}"
                measure = f"{name}: error at p = {most:g} minus at {p:g}, at most {SAME_ERROR:g}"
                yield Part(says, measure, at[most], at[p], at_most=SAME_ERROR, of=cues)


def best_inside(results, at):
    """The verdict on "some p inside has a lower error than both ends", of errors in a column for each p."""
    ends = [at.columns.min(), at.columns.max()]
    inside = []
    for p in at.columns.drop(ends):
        measures = {end: f"redundant cues: error at p = {p:g} minus at {end:g}" for end in ends}
        parts = [Part("", measures[end], at[p], at[end], at_most=0.0, of="emoji") for end in ends]
        inside.append(weakest([results.judge(part) for part in parts]))
    return clearest(inside)


@judges("om2-3", "thesis-fig-4.2")
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
        place = {"of": cues if cues in INFORM else "emoji"}
        falling = {"x": done["p"] - 1, "units": done["seed"], "at_most": 0.0, **place}
        visits = {"counts": done["visits"], "counted": "visits"}
        for less, column, counts in (("fewer updates", "updates", {}), ("less time", "seconds", visits)):
            says = f"{name}: {less} for larger p"
            measure = f"{name}: exponent of {column.replace('seconds', 'CPU seconds')} in p - 1"
            decides = done["seed"].nunique() > 1
            parts.append(Part(says, measure, done[column], **falling, **counts) if decides else Part(says))
    if all(part.is_open for part in parts):
        text = "no two splits have runs that converge at three values of p"
        about = {"data": results.about("thesis-fig-4.2")["data"], "figure": "thesis-fig-4.2"}
        return [Part("", verdict=Verdict("om2-3", "not testable here", text=text, p=1.0, **about))]
    most = table["most_epochs"].max()
    return [*parts, f"Left out are the slowest runs, not converged after {most} epochs: {'; '.join(notes)}."]


@judges("om2-4", "thesis-fig-4.3")
def om2_4(results):
    online = rows(results.table("thesis-fig-4.3"), what="online").sort_values("at")
    last = online.groupby(["method", "seed"])["error"].last().unstack("method")
    names = {"OMCL-PERC": "OMCL", "KernelPA": "PA-I, average kernel", "KernelPA best": "PA-I, best kernel"}
    for method, name in names.items():
        both = last[["OM2", method]].dropna()
        measure = f"online error of OM-2 minus {name}"
        yield Part(f"lower online error than {name}", measure, both["OM2"], both[method], at_most=0.0)


@judges("om2-5", "thesis-fig-4.3")
def om2_5(results):
    tests = rows(results.table("thesis-fig-4.3"), method="OM2", what="test").sort_values("at")
    batch = results.table("thesis-fig-4.3.batch")
    silp = rows(batch, method="SILPMKL").set_index("seed")
    om2 = tests.groupby("seed").last().loc[silp.index]
    epochs = f"{om2['at'].max():g} epochs"
    says = f"after {epochs} its error is at most 0.5 points above 1-vs-All SILP's"
    measure = "test error of OM-2 minus 1-vs-All SILP"
    yield Part(says, measure, om2["error"], silp["test_error"], at_most=MORE_ERROR)
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
    counts = {"counts": (om2["rows"], silp["rows"]), "counted": "kernel rows"}
    fraction = {"ratio": True, "at_most": FRACTION, "text": text}
    yield Part(says, measure, om2["seconds"], silp["seconds"], **counts, **fraction)
    yield smaller_C(batch, "SILPMKL")


def of_learners(results, cues):
    """By split: errors of the first pass; test errors after as many epochs as every learner has, beside
    SILP's. And the table of the methods of batch."""
    table = results.table("thesis-fig-4.4")
    table = table[table["task"].str.startswith(cues)]
    first = rows(table, what="online").sort_values("at").groupby(["method", "seed"])["error"].last()
    tests = rows(table, what="test")
    equal = tests.groupby("method")["at"].max().min()
    tests = rows(tests, at=equal).pivot(index="seed", columns="method", values="error")
    batch = results.table("thesis-fig-4.4.batch")
    batch = batch[batch["task"].str.startswith(cues)]
    silp = rows(batch, method="SILPMKL").set_index("seed")["test_error"].rename("SILPMKL")
    return first.unstack("method"), tests.join(silp, how="inner"), batch


def better_than_silp(errors, name, of):
    """Parts on the online combinations against 1-vs-All SILP."""
    for method in list(LEARNERS)[:-1]:
        says = f"{name}: {LEARNERS[method]} has a lower test error than 1-vs-All SILP"
        measure = f"{name}: error of {LEARNERS[method]} minus 1-vs-All SILP"
        yield Part(says, measure, errors[method], errors["SILPMKL"], at_most=0.0, of=of)


@judges("om2-6", "thesis-fig-4.4")
def om2_6(results):
    for cues, name in INFORM.items():
        _, errors, batch = of_learners(results, cues)
        yield from better_than_silp(errors, name, cues)
        yield f"On {name} {picked(batch, 'SILPMKL')} {smaller_C(batch, 'SILPMKL')}".strip()
    _, errors, _ = of_learners(results, "different")
    yield beside(results, better_than_silp(errors, "categories", "emoji"))


@judges("om2-9", "thesis-fig-4.4")
def om2_9(results):
    for cues, name in INFORM.items():
        first, errors, _ = of_learners(results, cues)
        for method in ("OM2", "KernelPA"):
            for rival in ("OMCL-PERC", "KernelPA best"):
                ours, other = LEARNERS[method], LEARNERS[rival]
                for what, table in (("online error", first), ("test error", errors)):
                    both = table[[method, rival]].dropna()
                    says = f"{name}: {ours} has a lower {what} than {other}"
                    measure = f"{name}: {what}, {ours} minus {other}"
                    yield Part(says, measure, both[method], both[rival], at_most=0.0, of=cues)
        says = f"{name}: 1-vs-All SILP has a higher test error than PA-I on the best cue"
        measure = f"{name}: test error, 1-vs-All SILP minus PA-I on the best cue"
        yield Part(says, measure, errors["SILPMKL"], errors["KernelPA best"], at_least=0.0, of=cues)


@judges("om2-7", "thesis-thm-4.1")
def om2_7(results):
    table = results.table("thesis-thm-4.1")
    kinds = {"mfeat-6": ("real digits", "mfeat"), "random": ("random labels", "random streams")}
    for kind, (name, data) in kinds.items():
        part = rows(table, kind=kind)
        yield Part(name, values=part["mistakes"], bound=part["bound"], n=len(part), of=data)


@judges("om2-8", "thesis-thm-4.1")
def om2_8(results):
    table = results.table("thesis-thm-4.1.useless")
    exponent = {}
    for p, part in table.groupby("p"):
        streams = [np.log(stream[["n_kernels", "mistakes"]]) for _, stream in part.groupby("seed")]
        fits = [np.polyfit(stream["n_kernels"], stream["mistakes"], 1)[0] for stream in streams]
        exponent[p] = np.array(fits)
    own = rows(table, p="auto")
    streams = {"of": "random streams"}
    curves = {"x": own["n_kernels"], "units": own["seed"], **streams}
    measure = "exponent of mistakes in F"
    says = f"mistakes grow at most like F^{LOGARITHM:g} over these F, less than ln F does"
    yield Part(says, measure, own["mistakes"], at_most=LOGARITHM, **curves)
    says = "control: on the same streams they grow faster at p = 2"
    measure += ": at p = 2 minus at p of the corollary"
    yield Part(says, measure, exponent["2.0"], exponent["auto"], at_least=0.0, relevant=0.0, **streams)
    per_log = results.judge(Part("", "", own["mistakes"], at_least=0.0, log_y=False, **curves))
    text = f"Mistakes per unit of ln F: {per_log.number:.2f} ({per_log.low:.2f} to {per_log.high:.2f})"
    text += (
        ": only the upper bound is tested, and useless kernels cost nothing here."
        if per_log.high < 0.0
        else "."
    )
    yield f"{text} At p = 2 the exponent is {exponent['2.0'].mean():.2f}."


def expected_bound(results):
    """A bound on an expectation: means over independent streams."""
    table = results.table(results.figure)
    mean = table.groupby(["p", "C", "step"], as_index=False)[["suboptimality", "bound"]].mean()
    yield Part("", values=mean["suboptimality"], bound=mean["bound"], n=table["stream"].nunique())


judges("obs-9", "thesis-thm-4.2")(expected_bound)
judges("ufo-4", "thesis-thm-4.5")(expected_bound)


@judges("obs-10", "thesis-thm-4.3")
def obs_10(results):
    stage = results.table("thesis-thm-4.3")
    n = len(stage)
    yield Part("updates stay under the bound", values=stage["updates"], bound=stage["bound"], n=n)
    norm = {"values": stage["optimum_norm"], "bound": stage["radius"], "slack": 1e-3}
    yield Part("R bounds the optimum's norm", "norm over R, largest", n=n, **norm)


@judges("obs-14", "thesis-thm-4.3")
def obs_14(results):
    stage = results.table("thesis-thm-4.3")
    ended = stage[stage["without_loss"]]
    text = dropped(len(stage) - len(ended), "runs that did not end without loss")
    bound = {"values": ended["radius"], "bound": ended["separable_radius"]}
    yield Part("", "R over its bound, largest", n=len(ended), text=text, **bound)
