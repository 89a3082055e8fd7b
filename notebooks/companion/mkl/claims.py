"""What the claims of the chapter are judged by: OM-2 and the bounds here, batch methods in `claims_batch`."""

import numpy as np

from companion.mkl.claims_batch import picked  # whose claims register themselves
from companion.protocol import where as rows
from companion.run.claims import LEVEL, combine, judge_slope, judges, not_testable

#: How much more error than at another p still counts as none.
SAME_ERROR = 0.002
#: Of batch MKL's error and work, for "matches" and "at a fraction".
MORE_ERROR, FRACTION = 0.005, 0.5
#: Exponent in the number of kernels F that ln F has at F = 55: below its mean over all F that are tried.
LOGARITHM = 0.25
#: Kernels of the three-class problem that tell each class from the rest.
SEPARATES = {1: {2, 4}, 2: {3, 4}, 3: {1, 4}}


def clearest(verdicts):
    """One verdict for "at least one of these": the clearest that holds, its p times their number.

    Fails if all fail; else undecided, with the one that is nearest to holding.
    """
    verdicts = sorted(verdicts, key=lambda verdict: (verdict.verdict != "holds", verdict.p))
    first = verdicts[0]
    if first.verdict == "holds":
        first = first._replace(p=min(1.0, len(verdicts) * first.p))
        tried = f"It holds alone, not as one of {len(verdicts)} that were tried."
        return first if first.p <= LEVEL else first._replace(verdict="undecided", text=tried)
    undecided = [verdict for verdict in verdicts if verdict.verdict == "undecided"]
    return undecided[0] if undecided else verdicts[-1]


@judges("om2-1")
def om2_1(results):
    """Weights on the simulated problem: on kernel 4, and of every binary SILP."""
    parts = {}
    for method, figure in (("OM2", "thesis-fig-4.1"), ("OBSCURE", "jmlr-fig-1")):
        on_4 = rows(results.table(figure), method=method, kernel=4)["weight"]
        measure = f"weight of {method} on kernel 4"
        parts[f"{method} puts at least 95% on kernel 4"] = results.mean(
            figure, on_4, at_least=0.95, measure=measure
        )
    silp = rows(results.table("thesis-fig-4.1"), method="SILPMKL")
    right = [
        set(weights.loc[weights["weight"] > 1e-3, "kernel"]) == SEPARATES[target]
        for (target, _), weights in silp.groupby(["target", "seed"])
    ]
    measure = "share of binary problems with exactly those two"
    options = {"number": np.mean(right), "measure": measure, "n": silp["seed"].nunique()}
    what = "every binary SILP picks exactly the two kernels that separate its class"
    parts[what] = results.exact("thesis-fig-4.1", all(right), **options)
    return combine("om2-1", parts)


@judges("om2-2")
def om2_2(results):
    """Error at each p below 2 against that at 2, split by split."""
    table, parts, redundant = results.table("thesis-fig-4.2"), {}, []
    for task, part in table.groupby("task", sort=False):
        at = part.pivot(index="seed", columns="p", values="test_error")
        for p in at.columns.drop(2.0):
            if task.startswith("pyramid"):
                options = {"at_most": 0.0, "measure": f"redundant cues: error at p = {p:g} minus at 2"}
                redundant.append(results.mean("thesis-fig-4.2", at[p], at[2.0], **options))
            else:
                measure = f"no redundant cue: error at p = 2 minus at {p:g}"
                what = f"no redundant cue: p = 2 is at most 0.2 points worse than p = {p:g}"
                parts[what] = results.mean(
                    "thesis-fig-4.2", at[2.0], at[p], at_most=SAME_ERROR, measure=measure
                )
    parts["redundant cues: some p below 2 is better than 2"] = clearest(redundant)
    return combine("om2-2", parts)


@judges("om2-3")
def om2_3(results):
    """Updates and visits to convergence against p - 1, split by split."""
    figure = "thesis-fig-4.2"
    table, parts, open_parts, notes = results.table(figure), {}, [], []
    names = {"different": "no redundant cue", "pyramid": "redundant cues"}
    for task, part in table.groupby("task", sort=False):
        name, done = names[task.split("-")[0]], rows(part, converged=True)
        done = done[done.groupby("seed")["p"].transform("size") >= 3]
        notes.append(f"{name}: {(~part['converged']).sum()} of {len(part)} runs left out")
        for column in ("updates", "visits"):
            what = f"{name}: fewer {column} for larger p"
            options = {"runs": done["seed"], "measure": f"{name}: exponent of {column} in p - 1"}
            if done["seed"].nunique() < 2:
                open_parts.append(what)
            else:
                parts[what] = results.slope(figure, done["p"] - 1, done[column], at_most=0.0, **options)
    if not parts:
        why = "no two splits have runs that converge at three values of p"
        return not_testable("om2-3", why, data=results.about(figure)["data"], figure=figure)
    most = f"that had not converged after {table['most_epochs'].max()} epochs, the slowest"
    return combine("om2-3", parts, open_parts=open_parts, text=f"{'; '.join(notes)} {most}.")


@judges("om2-4")
def om2_4(results):
    """Mistakes of the first pass."""
    online = rows(results.table("thesis-fig-4.3"), what="online").sort_values("at")
    last = online.groupby(["method", "seed"])["error"].last().unstack("method")
    names = {"OMCL-PERC": "OMCL", "KernelPA": "PA-I, average kernel", "KernelPA best": "PA-I, best kernel"}
    parts = {}
    for method, name in names.items():
        both = last[["OM2", method]].dropna()
        options = {"at_most": 0.0, "measure": f"online error of OM-2 minus {name}"}
        part = results.mean("thesis-fig-4.3", both["OM2"], both[method], **options)
        parts[f"lower online error than {name}"] = part
    return combine("om2-4", parts)


@judges("om2-5")
def om2_5(results):
    """The ends of the figure's curves against SILP, and kernel rows read until OM-2 is level with it."""
    figure = "thesis-fig-4.3"
    tests = rows(results.table(figure), method="OM2", what="test").sort_values("at")
    batch = results.table(f"{figure}.batch")
    silp = rows(batch, method="SILPMKL").set_index("seed")
    om2 = tests.groupby("seed").last().loc[silp.index]
    # per split the first look at which it is level, or the last of all
    near = tests[tests["error"] <= tests["seed"].map(silp["test_error"]) + MORE_ERROR]
    level = near.groupby("seed").first().reindex(silp.index).fillna(om2)
    seconds = np.exp(np.log(level["seconds"] / silp["seconds"]).mean())
    every = np.exp(np.log(om2["rows"] / silp["rows"]).mean())
    text = f"OM-2 is level after {level['at'].median():g} epochs. In seconds {seconds:.2g}. With all "
    text += f"{om2['at'].max()} epochs {every:.3g} times the rows. {picked(batch, 'SILPMKL')}"
    error = {"at_most": MORE_ERROR, "measure": "test error of OM-2 minus 1-vs-All SILP"}
    work = {"ratio": True, "at_most": FRACTION, "text": text}
    work["measure"] = "kernel rows read by OM-2 over those by SILP"
    parts = {
        "after all epochs its error is at most 0.5 points above 1-vs-All SILP's": results.mean(
            figure, om2["error"], silp["test_error"], **error
        ),
        "it reads at most half as many kernel rows until then": results.mean(
            figure, level["rows"], silp["rows"], **work
        ),
    }
    return combine("om2-5", parts)


@judges("om2-6")
def om2_6(results):
    """Errors after as many epochs as all have, against SILP."""
    tests = rows(results.table("thesis-fig-4.4"), what="test")
    equal = tests.groupby("method")["at"].max().min()
    tests = rows(tests, at=equal).pivot(index="seed", columns="method", values="error")
    batch = results.table("thesis-fig-4.4.batch")
    silp = rows(batch, method="SILPMKL").set_index("seed")["test_error"].loc[tests.index]
    names = {"OM2": "OM-2", "OMCL-PERC": "OMCL", "KernelPA": "PA-I on the average kernel"}
    parts = {}
    for method, name in names.items():
        measure = f"error of {name} after {equal} epochs minus 1-vs-All SILP"
        part = results.mean("thesis-fig-4.4", tests[method], silp, at_most=0.0, measure=measure)
        parts[f"{name} has a lower test error than 1-vs-All SILP"] = part
    return combine("om2-6", parts, text=picked(batch, "SILPMKL"))


@judges("om2-7")
def om2_7(results):
    """Theorem 4.1 on every stream."""
    table = results.table("thesis-thm-4.1")
    kinds = {"mfeat-6": ("real digits", "mfeat"), "random": ("random labels", "random streams")}
    parts = {}
    for kind, (name, data) in kinds.items():
        part = rows(table, kind=kind)
        parts[name] = results.bound("thesis-thm-4.1", part["mistakes"], part["bound"], data, n=len(part))
    return combine("om2-7", parts)


@judges("om2-8")
def om2_8(results):
    """Exponent of mistakes in the number of kernels, stream by stream, and its control at p = 2."""
    table, exponent = results.table("thesis-thm-4.1.useless"), {}
    for p, part in table.groupby("p"):
        streams = [np.log(stream[["n_kernels", "mistakes"]]) for _, stream in part.groupby("seed")]
        fits = [np.polyfit(stream["n_kernels"], stream["mistakes"], 1)[0] for stream in streams]
        exponent[p] = np.array(fits)
    own = rows(table, p="auto")
    x, y, runs = own["n_kernels"], own["mistakes"], own["seed"]
    per_log = judge_slope("om2-8", x, y, at_least=0.0, log_y=False, runs=runs)
    text = f"Mistakes per unit of ln F: {per_log.number:.2f} ({per_log.low:.2f} to {per_log.high:.2f})"
    text += ": only the upper bound is tried, and no price at all is seen." if per_log.high < 0.0 else "."
    place = {"figure": "thesis-thm-4.1", "of": "random streams"}
    measure = "exponent of mistakes in F"
    control = {"at_least": 0.0, "relevant": 0.0}
    control["measure"] = f"{measure}: at p = 2 minus at p of the corollary"
    parts = {
        f"mistakes grow at most like F^{LOGARITHM:g}, slower than ln F": results.slope(
            x=x, y=y, at_most=LOGARITHM, runs=runs, measure=measure, **place
        ),
        "control: on the same streams they grow faster at p = 2": results.mean(
            "thesis-thm-4.1", exponent["2.0"], exponent["auto"], of="random streams", **control
        ),
    }
    return combine("om2-8", parts, text=f"{text} At p = 2 the exponent is {exponent['2.0'].mean():.2f}.")


def expected_bound(results, figure):
    """A bound on an expectation: means over independent streams."""
    table = results.table(figure)
    mean = table.groupby(["p", "C", "step"], as_index=False)[["suboptimality", "bound"]].mean()
    return results.bound(figure, mean["suboptimality"], mean["bound"], n=table["stream"].nunique())


@judges("obs-9")
def obs_9(results):
    """Theorem 4.2."""
    return expected_bound(results, "thesis-thm-4.2")


@judges("obs-10")
def obs_10(results):
    """Theorem 4.3, and the radius."""
    figure = "thesis-thm-4.3"
    stage = results.table(figure)
    norm = {"slack": 1e-3, "measure": "norm over R, largest", "n": len(stage)}
    parts = {
        "updates stay under the bound": results.bound(figure, stage["updates"], stage["bound"], n=len(stage)),
        "R bounds the optimum's norm": results.bound(figure, stage["optimum_norm"], stage["radius"], **norm),
    }
    return combine("obs-10", parts)


@judges("ufo-4")
def ufo_4(results):
    """Theorem 4.5."""
    return expected_bound(results, "thesis-thm-4.5")
