"""What the claims of the chapter are judged by: OM-2 and the bounds here, batch methods in `claims_batch`."""

import numpy as np

from companion.mkl.claims_batch import picked  # whose claims register themselves
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


def clearest(verdicts):
    """One verdict for "at least one of these": the clearest that holds, its p times their number."""
    verdicts = sorted(verdicts, key=lambda verdict: (verdict.verdict not in HOLDING, verdict.p))
    first = verdicts[0]
    if first.verdict in HOLDING:
        first = first._replace(p=min(1.0, len(verdicts) * first.p))
        tried = f"It holds alone, not as one of {len(verdicts)} that were tried."
        return first if first.p <= LEVEL else first._replace(verdict="undecided", text=tried)
    undecided = [verdict for verdict in verdicts if verdict.verdict == "undecided"]
    return undecided[0] if undecided else verdicts[-1]


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
    redundant = []
    for task, part in results.table("thesis-fig-4.2").groupby("task", sort=False):
        at = part.pivot(index="seed", columns="p", values="test_error")
        for p in at.columns.drop(2.0):
            if task.startswith("pyramid"):
                measure = f"redundant cues: error at p = {p:g} minus at 2"
                redundant.append(results.judge(Part("", measure, at[p], at[2.0], at_most=0.0)))
            else:
                says = f"no redundant cue: p = 2 is at most 0.2 points worse than p = {p:g}"
                measure = f"no redundant cue: error at p = 2 minus at {p:g}"
                yield Part(says, measure, at[2.0], at[p], at_most=SAME_ERROR)
    yield Part("redundant cues: some p below 2 is better than 2", verdict=clearest(redundant))


@judges("om2-3", "thesis-fig-4.2")
def om2_3(results):
    table = results.table("thesis-fig-4.2")
    names = {"different": "no redundant cue", "pyramid": "redundant cues"}
    parts = []
    notes = []
    for task, part in table.groupby("task", sort=False):
        name = names[task.split("-")[0]]
        done = rows(part, converged=True)
        done = done[done.groupby("seed")["p"].transform("size") >= 3]
        notes.append(f"{name}, {(~part['converged']).sum()} of {len(part)}")
        for column in ("updates", "visits"):
            says = f"{name}: fewer {column} for larger p"
            measure = f"{name}: exponent of {column} in p - 1"
            falling = {"x": done["p"] - 1, "units": done["seed"], "at_most": 0.0}
            decides = done["seed"].nunique() > 1
            parts.append(Part(says, measure, done[column], **falling) if decides else Part(says))
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
    # per split the first look at which it is level, or the last of all
    near = tests[tests["error"] <= tests["seed"].map(silp["test_error"]) + MORE_ERROR]
    level = near.groupby("seed").first().reindex(silp.index).fillna(om2)
    says = "after all epochs its error is at most 0.5 points above 1-vs-All SILP's"
    measure = "test error of OM-2 minus 1-vs-All SILP"
    yield Part(says, measure, om2["error"], silp["test_error"], at_most=MORE_ERROR)
    seconds = np.exp(np.log(level["seconds"] / silp["seconds"]).mean())
    every = np.exp(np.log(om2["rows"] / silp["rows"]).mean())
    text = f"OM-2 is level after {level['at'].median():g} epochs. In seconds {seconds:.2g}. With all "
    text += f"{om2['at'].max()} epochs {every:.3g} times the rows. {picked(batch, 'SILPMKL')}"
    says = "it reads at most half as many kernel rows until then"
    measure = "kernel rows read by OM-2 over those by SILP"
    yield Part(says, measure, level["rows"], silp["rows"], ratio=True, at_most=FRACTION, text=text)


@judges("om2-6", "thesis-fig-4.4")
def om2_6(results):
    tests = rows(results.table("thesis-fig-4.4"), what="test")
    equal = tests.groupby("method")["at"].max().min()
    tests = rows(tests, at=equal).pivot(index="seed", columns="method", values="error")
    batch = results.table("thesis-fig-4.4.batch")
    silp = rows(batch, method="SILPMKL").set_index("seed")["test_error"].loc[tests.index]
    names = {"OM2": "OM-2", "OMCL-PERC": "OMCL", "KernelPA": "PA-I on the average kernel"}
    for method, name in names.items():
        says = f"{name} has a lower test error than 1-vs-All SILP"
        measure = f"error of {name} after {equal} epochs minus 1-vs-All SILP"
        yield Part(says, measure, tests[method], silp, at_most=0.0)
    yield picked(batch, "SILPMKL")


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
    says = f"mistakes grow at most like F^{LOGARITHM:g}, slower than ln F"
    yield Part(says, measure, own["mistakes"], at_most=LOGARITHM, **curves)
    says = "control: on the same streams they grow faster at p = 2"
    measure += ": at p = 2 minus at p of the corollary"
    yield Part(says, measure, exponent["2.0"], exponent["auto"], at_least=0.0, relevant=0.0, **streams)
    per_log = results.judge(Part("", "", own["mistakes"], at_least=0.0, log_y=False, **curves))
    text = f"Mistakes per unit of ln F: {per_log.number:.2f} ({per_log.low:.2f} to {per_log.high:.2f})"
    text += ": only the upper bound is tried, and no price at all is seen." if per_log.high < 0.0 else "."
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
