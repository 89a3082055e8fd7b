"""Figures and tables of the chapter on several labels, in the order of its notebook."""

from functools import cache

import numpy as np
import pandas as pd

from companion import multilabel as experiments
from companion.multilabel import claims
from companion.multilabel.claims import AS_PRINTED, PER_CLASS, SUMS
from companion.plots import multilabel as draw
from companion.protocol import original, printed, where
from companion.run.claims import RELEVANT
from companion.run.figures import certain, enumerated, interval, name_of
from companion.run.registry import figure
from companion.study import Study, at_edges

LEARNING = ("MLMKLSA 0.001", "MLMKLSum planes", "GMKL", "MLMKLSA", "MLMKLSum", "VSKL")
SHARED = (*AS_PRINTED, "MLMKLSA", *SUMS)
PRINTED = "MLMKLSA printed"
#: The table of all methods on all draws.
RUNS = "mlmkl-tab-1.runs"


def listed(values, form):
    return ", ".join(f"{value:{form}} ({name_of(method)})" for method, value in values.items())


@cache
def sets_of(run):
    """The sets of table 1, with those of the originals that the user has put in place."""
    of_papers = [name for name in ("scene", "corel5k") if original(run, name) is not None]
    return ["yeast", "emoji", *of_papers]


def data_of(names):
    return [experiments.load_multilabel(name).data for name in names]


def about(names, n_train, text):
    """Where numbers come from; in a note data, training samples by set, and what else there is to say."""
    description = experiments.load_multilabel("emoji").data.description
    sizes = ", ".join(f"{name} {n_train[name]}" for name in names)
    note = f"emoji: {description}; training samples: {sizes}; {text}"
    return {"provenance": data_of(names), "note": note}


def save_figure(run, name, drawing, table, sets, text, n_train=None):
    run.save_figure(drawing, name, table, **about(sets, n_train or run.size["n_train"], text))


def sample(run, name):
    return {"name": name, "n_train": run.size["n_train"][name], "n_classes": run.size["n_classes"][name]}


def study_of(run):
    """All methods on all sets and draws, C chosen on the first draw; and its points."""
    names = sets_of(run)
    how = {
        "by": tuple(sample(run, names[0])),
        "choosing": {"seed": run.seed, "grid": list(run.size["C"])},
        "plain": lambda method: method.removesuffix(" long"),
        "data": data_of(names),
    }
    study = Study(run.sweep, "table", experiments.compare_multilabel, experiments.chosen_C, **how)
    draws = [(name, seed) for name in names for seed in run.seeds(run.size)]
    points = [{**sample(run, name), "seed": seed, "n_test": run.size["n_test"]} for name, seed in draws]
    return study, [(point, experiments.METHODS) for point in points]


@cache
def chosen_C(run):
    """By set and method: the best on a quarter of the training samples of the first draw."""
    study, points = study_of(run)
    return {(place[0], place[-1]): found["C"] for place, found in study.choices(points).items()}


# --- table 1


@cache
def table_runs(run):
    study, points = study_of(run)
    return study.table(points)


def groups_of(run):
    return table_runs(run).groupby(["method", "name"], sort=False)


def by_method(run, columns):
    parts = [columns.xs(name, level="name").add_prefix(f"{name}: ") for name in sets_of(run)]
    return pd.concat(parts, axis=1).rename(name_of)


def of_paper(column):
    table = printed("mlmkl-tab-1").pivot(index="method", columns="name", values=column)
    return table.rename(name_of).add_suffix(f": {column}")


def save_table(run, suffix, tables, text, paper=None):
    text = f"{run.size['n_test']} test samples, {run.size['seeds']} draws; {text}"
    origin = about(sets_of(run), run.size["n_train"], text)
    run.save_table(tables, "mlmkl-tab-1", suffix, paper=paper, **origin)


@figure("mlmkl-tab-1", claims="mlmkl-1")
def accuracy_of_methods(run):
    """Does sharing one combination of kernels cost accuracy?"""
    auc = groups_of(run)["auc"].agg(AUC="mean", **{"+-": lambda v: interval(v).high - v.mean()})
    tables = {"": by_method(run, auc), "runs": table_runs(run)}
    save_table(run, None, tables, "+-: half the 95% interval of the mean", of_paper("AUC"))


@accuracy_of_methods.facts
def _(results):
    against = []
    values = []
    for name, auc in claims.by_set(results.table(RUNS), "auc"):
        mean = auc.mean()
        rival = mean[[*SUMS, *PER_CLASS, "AverageKernelSVM"]].idxmax()
        gain = auc["MLMKLSA 0.001"] - auc[rival]
        word = certain(gain, "below", RELEVANT)
        against.append(f"{word} that of {draw.short(rival)} on {name} ({gain.mean():+.3f})")
        best = mean.drop([PRINTED, "MLMKLSA", claims.LONG]).idxmax()
        as_printed = " and ".join(f"{mean[form]:.3f}" for form in AS_PRINTED)
        values.append(
            f"Mean AUC on {name}: {mean.min():.3f} to {mean.max():.3f} over all methods, "
            f"{mean['AverageKernelSVM']:.3f} with equal weights, {as_printed} with SA as printed (steps "
            f"0.001 and 0.0001), {mean['MLMKLSA']:.3f} with SA corrected; best of the paper's methods: "
            f"{draw.short(best)}."
        )
    return {"against": enumerated(against), "values": " ".join(sorted(values))}


accuracy_of_methods.title("Against the best rival, the AUC of SA (step 0.001) is {against}.")
accuracy_of_methods.see("{values}")


@figure("mlmkl-tab-1-work")
def work_of_methods(run):
    """How many SVMs does each method solve, and how often does it combine the kernels?"""
    columns = {"n_solved": "SVMs", "n_combined": "combinations"}
    work = groups_of(run)[list(columns)].mean().rename(columns=columns)
    save_table(run, "work", by_method(run, work), "SVMs: with those of all classes at the end")


@work_of_methods.facts
def _(results):
    runs = where(results.table(RUNS), name="emoji")
    means = runs.groupby("method")[["n_solved", "n_combined"]].mean()
    combined = means["n_combined"]
    per_class = combined[list(PER_CLASS)].agg(["min", "max"])
    return {
        "combined": combined,
        "per_class": per_class,
        "times": per_class / combined["MLMKLSA 0.001"],
        "solved": listed(means["n_solved"][[*SHARED, *PER_CLASS]], ",.0f"),
    }


work_of_methods.title("""
On emoji SA (step 0.001) combines the kernels {combined[MLMKLSA 0.001]:,.0f} times, a method with weights per
class {per_class[min]:,.0f} to {per_class[max]:,.0f} times.""")
work_of_methods.see("""
Number of SVMs on emoji, with each method's stopping rule and $C$ and with warm starts: {solved}. SA combines
all kernels anew for each of its SVMs, Sum once for those of all classes; a method with a combination for each
class needs {times[min]:.0f} to {times[max]:.0f} times the combinations of SA as printed.""")


@figure("mlmkl-tab-1-seconds", claims=("mlmkl-2", "mlmkl-8"))
def seconds_of_methods(run):
    """How long does the training take?"""
    seconds = by_method(run, groups_of(run)[["seconds"]].mean())
    text = "CPU seconds of training, kernels in memory, all methods in turn on one draw; the paper's of 2010"
    save_table(run, "seconds", seconds, text, of_paper("seconds"))


@seconds_of_methods.facts
def _(results):
    runs = results.table(RUNS)
    seconds = np.log(runs["seconds"]).groupby([runs["name"], runs["method"]], sort=False).mean().unstack()
    times = np.exp(seconds.sub(seconds["MLMKLSA 0.001"], axis=0))
    fastest = times[list(PER_CLASS)].min(axis=1)
    columns = [*SHARED[1:], *PER_CLASS]
    of_sets = [f"{name}: {listed(row[columns], '.2g')}" for name, row in times.iterrows()]
    likeness = runs[runs["method"].isin(AS_PRINTED)].groupby("name")[["like GMKL", "like VSKL"]].mean()
    like = [f"{name} {gmkl:.2f} and {vskl:.2f}" for name, gmkl, vskl in likeness.itertuples()]
    return {
        "fastest": enumerated([f"{1 / ratio:.2g} ({name})" for name, ratio in fastest.items()]),
        "times": "; ".join(of_sets),
        "like": "; ".join(like),
    }


seconds_of_methods.title("""
SA (step 0.001) takes {fastest} times the CPU seconds of the fastest method with weights per class.""")
seconds_of_methods.see("""
CPU seconds in units of those of SA with step 0.001, geometric means: {times}. Rank correlation of the kernel
weights of SA as printed with those of GMKL and of VSKL: {like}.""")


@figure("mlmkl-tab-1-choices")
def choices_of_methods(run):
    """Which C was chosen, and which kernels have the largest weights?"""
    first = groups_of(run).agg(C=("C", "first"), skipped=("skipped", "max"), kernels=("kernels", "first"))
    table = first.rename(name_of, level="method").reset_index()
    table = table[["name", "method", "C", "skipped", "kernels"]]
    grid = {"C": run.size["C"]}
    edges = {key: at_edges(grid, {"C": C}, {"C": [0.001]}) for key, C in chosen_C(run).items()}
    edges = "; ".join(f"{name}, {name_of(m)}: {edge}" for (name, m), edge in edges.items() if edge)
    text = f"skipped: classes without positives; kernels: of the first draw. {edges}"
    save_table(run, "choices", table, text)


@choices_of_methods.facts
def _(results):
    grids = results.table().groupby("name", sort=False)["C"]
    return {"C": enumerated([f"{C.min():g} to {C.max():g} on {name}" for name, C in grids])}


choices_of_methods.title("The chosen C: {C}.")


# --- weights and accuracy over time


@figure("mlmkl-fig-1")
def weights_over_time(run):
    """Where do the kernel weights go over the training time?"""
    emoji = experiments.load_multilabel("emoji")
    C = {method: chosen_C(run)["emoji", method] for method in LEARNING}
    points = [{**sample(run, "emoji"), "method": m, "seed": run.seed, "C": C[m]} for m in LEARNING]
    paths = run.sweep("paths").frame(experiments.weight_paths, points, data=emoji.data)
    chosen = ", ".join(f"{name_of(method)} {C[method]:g}" for method in LEARNING)
    text = f"the first draw, each method by its own rule to stop; C: {chosen}"
    drawing = draw.weights_over_time(paths, list(emoji.data.cues))
    save_figure(run, "mlmkl-fig-1", drawing, paths, ["emoji"], text)


@weights_over_time.facts
def _(results):
    table = results.table().set_index("method")
    weights = table.loc[:, "seconds":].drop(columns="seconds").groupby("method")
    last = weights.last().loc[list(LEARNING)]
    ends = [f"{name_of(method)}: {row.idxmax()} ({row.max():.2f})" for method, row in last.iterrows()]
    return {"largest": weights.max().max(axis=1), "ends": "; ".join(ends)}


weights_over_time.title("""
A kernel weight on emoji reaches at most {largest[MLMKLSA 0.001]:.2f} with SA (step 0.001),
{largest[MLMKLSum planes]:.2f} with Sum (cutting planes) and {largest[GMKL]:.2f} with GMKL.""")
weights_over_time.see("""
The curves show SA's averages, and the weights that Sum uses in each step. The largest weights at the end:
{ends}.""")


@figure("mlmkl-fig-2", claims=("mlmkl-4", "mlmkl-7"))
def accuracy_over_time(run):
    """How does the AUC of the methods with shared weights change over the training time?"""
    size = run.size
    names = sets_of(run)[:2]
    at = [*range(min(11, size["passes"])), *range(15, size["passes"] + 1, 5)]
    C = {name: chosen_C(run)[name, "MLMKLSA 0.001"] for name in names}
    points = [
        {**sample(run, name), "n_test": size["n_test"], "method": method, "seed": seed, "C": C[name]}
        | {"at": at, "passes": True}
        for name in names
        for method in SHARED
        for seed in run.seeds(size["over_time"])
    ]
    course = run.sweep("time").frame(experiments.over_time, points, data=data_of(names))
    chosen = ", ".join(f"{name} {C[name]:g}" for name in names)
    text = f"C: {chosen}; no stopping rule; AUC after as many SVMs of every class, of the weights in use; "
    text += f"{size['over_time']['seeds']} draws"
    save_figure(run, "mlmkl-fig-2", draw.auc_over_time(course), course, names, text)


@accuracy_over_time.facts
def _(results):
    table = results.table()
    swing = table.groupby(["name", "method", "seed"], sort=False)["swing"].sum()
    runs = pd.DataFrame({"fall": claims.largest_falls(table), "swing": swing})
    means = runs.groupby(["method", "name"], sort=False).mean()
    parts = []
    for method in SHARED:
        rows = means.loc[method].itertuples()
        values = ", ".join(f"{fall:.3f} and {swing:.1f} ({name})" for name, fall, swing in rows)
        parts.append(f"{name_of(method)}: {values}")
    return {"fall": means["fall"], "parts": "; ".join(parts)}


accuracy_over_time.title("""
The largest fall of AUC on emoji between two looks: {fall[MLMKLSum][emoji]:.3f} with Sum,
{fall[MLMKLSum planes][emoji]:.3f} with Sum (cutting planes) and {fall[MLMKLSA 0.001][emoji]:.3f} with SA
(step 0.001).""")
accuracy_over_time.see("""
The largest fall of AUC from one look to the next, and the total variation of the weights in use: {parts}. A
look is taken after as many SVMs as there are classes, one pass of Sum; after the tenth pass, only every fifth
time.""")


# --- delta and the step size

STEPS = [(0.0, 0.01), (0.2, 0.01), (0.6, 0.01), (1.0, 0.01), (0.0, 0.001), (0.0, 0.0001)]  # delta, step


@cache
def step_runs(run):
    """AUC over the iterations for the pairs of `STEPS`, with the paper's estimates."""
    size = run.size
    at = sorted({0, 5, 10, 20, *np.linspace(40, size["n_iter"], 6).astype(int).tolist()})
    place = {**sample(run, "emoji"), "method": PRINTED, "n_test": size["n_test"], "at": at}
    place["C"] = chosen_C(run)["emoji", "MLMKLSA 0.001"]
    points = [
        {**place, "seed": seed, "options": {"delta": delta, "eta": eta}}
        for delta, eta in STEPS
        for seed in run.seeds(size["steps"])
    ]
    table = run.sweep("steps").frame(experiments.over_time, points, data=data_of(["emoji"]))
    options = pd.DataFrame(table["options"].tolist())
    return table.drop(columns=["options", "method"]).join(options)


def save_steps(run, name, table, column):
    C = chosen_C(run)["emoji", "MLMKLSA 0.001"]
    text = f"the paper's estimates and steps; {run.size['steps']['seeds']} draws, C = {C:g}"
    drawing = draw.auc_over_iterations(table, column, rf"$\{column}$ = {{:g}}")
    save_figure(run, name, drawing, table, ["emoji"], text)


def ends_of(results, column, base, *values):
    """AUC at the end by the values of a column, and of some against that of `base`, draw by draw."""
    auc = claims.at_the_end(results.table(), column)
    words = []
    for value in values:
        gain = auc[value] - auc[base]
        words.append(f"{certain(gain, 'below')} that of {base:g} ({gain.mean():+.4f})")
    small, large = words
    ends = ", ".join(f"{mean:.3f} at {value:g}" for value, mean in auc.mean().items())
    return {"small": small, "large": large, "ends": ends}


@figure("mlmkl-fig-3")
def uniform_draws(run):
    """What share of the draws should be uniform?"""
    save_steps(run, "mlmkl-fig-3", where(step_runs(run), eta=0.01), "delta")


@uniform_draws.facts
def _(results):
    return ends_of(results, "delta", 0.2, 0.0, 1.0)


uniform_draws.title("The AUC of delta = 0 ends {small}, the AUC of delta = 1 {large}.")
uniform_draws.see("""
AUC at the end, with the largest step, by $\\delta$: {ends}. At $\\delta = 0$ a class whose weight has fallen
is never drawn again; at $\\delta = 1$ all classes are drawn alike, and $p$ follows Sum's gradient.""")


@figure("mlmkl-fig-4", claims="mlmkl-5")
def sizes_of_the_step(run):
    """How long should a step be?"""
    save_steps(run, "mlmkl-fig-4", where(step_runs(run), delta=0.0), "eta")


@sizes_of_the_step.facts
def _(results):
    return ends_of(results, "eta", 0.001, 0.0001, 0.01)


sizes_of_the_step.title("The AUC of step 0.0001 ends {small}, the AUC of step 0.01 {large}.")
sizes_of_the_step.see("AUC at the end, by the step: {ends}.")


# --- what m classes cost


def exponents_of_cost(cost, column="n_solved"):
    return experiments.exponents(cost[cost["reached"]], column, "n_classes", ["name", "method"])


@figure("mlmkl-cor-1", claims="mlmkl-3")
def many_classes(run):
    """How does the number of SVMs grow with the number of classes?"""
    size = run.size["cost"]
    names = ["emoji", "leaves"]
    if "corel5k" in sets_of(run):
        names.append("corel5k")
    points = [
        {"name": name, "method": method, "seed": seed, "n_train": size["n_train"][name], "n_classes": n}
        | {key: size[key] for key in ("C", "wanted", "most")}
        for name in names
        for method in ("MLMKLSA", PRINTED, "MLMKLSum")
        for n in size["n_classes"][name]
        for seed in run.seeds(size)
        if method != PRINTED or name in (*size["printed"], "corel5k")
    ]
    cost = run.sweep("cost").frame(experiments.cost_to_gap, points, data=data_of(names))
    text = f"{size['seeds']} draws, C = {size['C']:g}, delta = 0.2, "
    text += f"relative gap {size['wanted']:g}, at most {size['most']:,} SVMs"
    exponents = {column: exponents_of_cost(cost, column) for column in ("seconds", "n_solved")}
    drawing = draw.cost_against_classes(cost, exponents)
    save_figure(run, "mlmkl-cor-1", drawing, cost, names, text, size["n_train"])


@many_classes.facts
def _(results):
    cost = results.table()
    exponents = exponents_of_cost(cost)
    of_time = exponents_of_cost(cost, "seconds")
    most = cost[cost["n_classes"] == cost.groupby("name")["n_classes"].transform("max")]
    solved = most.groupby(["name", "method"])["n_solved"].mean()
    powers = []
    parts = []
    for (name, method), power in exponents.items():
        time = of_time[name, method]
        parts.append(
            f"{name_of(method)}, on {name}: {power:.2f} and {time:.2f} ({solved[name, method]:,.0f})"
        )
        if name == "emoji" and method != PRINTED:
            powers.append(f"m^{time:.2f} and m^{power:.2f} with {draw.short(method)}")
    growth = f"CPU seconds and SVMs to a fixed gap go like {', '.join(powers)}"
    return {"growth": growth if powers else "no power of m can be fitted", "parts": "; ".join(parts)}


many_classes.title("On emoji {growth}.")
many_classes.see("""
The exponents of $m$ in SVMs and in CPU seconds, means over draws; in brackets the SVMs at the curve's end:
{parts}. Sampling one of $m$ classes gives, by the analysis of bandits, an error like $\\sqrt{{m \\ln m/T}}$,
hence about $m \\ln m$ SVMs. SA combines the kernels for every SVM, Sum once a pass.""")


# --- the saddle point


def exponents_of_gap(gaps):
    return experiments.exponents(gaps, "gap", "n_iter", ["method"])


@figure("mlmkl-thm-1", claims="mlmkl-6")
def gap_over_iterations(run):
    """How fast does the saddle-point gap of SA's averages fall?"""
    size = run.size["gap"]
    points = [
        {"name": "emoji", "method": method, "seed": seed, "at": list(size["at"])}
        | {key: size[key] for key in ("n_train", "n_classes", "C")}
        for method in ("MLMKLSA", PRINTED)
        for seed in run.seeds(size)
    ]
    sweep = run.sweep("gap")
    gaps = sweep.frame(experiments.gap_after, points, data=data_of(["emoji"])).drop(columns="at")
    text = f"{size['n_classes']} keywords a draw, {size['seeds']} draws, C = {size['C']:g}, delta = 0.2"
    drawing = draw.gap_over_iterations(gaps, exponents_of_gap(gaps))
    save_figure(run, "mlmkl-thm-1", drawing, gaps, ["emoji"], text, {"emoji": size["n_train"]})


@gap_over_iterations.facts
def _(results):
    gaps = results.table()
    powers = [f"T^{power:.2f} with {draw.short(method)}" for method, power in exponents_of_gap(gaps).items()]
    log_gap = np.log(gaps["gap"]).groupby(gaps["method"]).mean()
    return {"powers": ", ".join(powers), "ratio": np.exp(log_gap[PRINTED] - log_gap["MLMKLSA"])}


gap_over_iterations.title("The saddle-point gap goes like {powers}; theorem 1 promises T^-0.5.")
gap_over_iterations.see("""
With the paper's estimates the gap is {ratio:.1f} times that with the corrected ones, in the geometric mean.
The paper's estimate for $p$ is right at $\\gamma'$, the corrected one at $\\gamma$.""")
