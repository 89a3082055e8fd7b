"""Figures and tables of the chapter on several labels, in the order of its notebook."""

from functools import cache

import numpy as np
import pandas as pd

from companion import multilabel as experiments
from companion.multilabel import claims  # noqa: F401  the verdicts
from companion.plots import multilabel as draw
from companion.protocol import at_edges, printed
from companion.run.figures import interval, method_style
from companion.run.registry import figure

LEARNING = ("MLMKLSA", "MLMKLSum", "GMKL", "VSKL")
PER_CLASS = ("GMKL", "SimpleMKL", "VSKL")
PRINTED = "MLMKLSA printed"


def label(method):
    return method_style(method)["label"]


@cache
def sets_of(run):
    return experiments.available_sets(run.data_tier == "original")


def data_of(names):
    return [experiments.load_multilabel(name).data for name in names]


def emoji():
    return experiments.load_multilabel("emoji")


def description():
    return f"emoji: {emoji().data.description}"


def sample(run, name):
    return {"name": name, "n_train": run.size["n_train"][name], "n_classes": run.size["n_classes"][name]}


@cache
def chosen_C(run):
    """By set and method: the best on a quarter of the training samples of the first draw."""
    names = sets_of(run)
    points = [
        {**sample(run, name), "method": method, "seed": run.seed, "grid": list(run.size["C"])}
        for name in names[::-1]
        for method in experiments.METHODS
    ]
    results = run.sweep("C").run(experiments.chosen_C, points, data=data_of(names))
    return {(p["name"], p["method"]): result["C"] for p, result in zip(points, results, strict=True)}


# ---------------------------------------------------------------- table 1


@cache
def table_runs(run):
    size = run.size
    names = sets_of(run)
    points = [
        {
            **sample(run, name),
            "method": method,
            "seed": seed,
            "n_test": size["n_test"],
            "C": chosen_C(run)[name, method],
        }
        for name in names
        for seed in run.seeds(size)
        for method in experiments.METHODS
    ]
    return run.sweep("table").frame(experiments.compare_multilabel, points, data=data_of(names))


def by_method(run, columns):
    parts = [columns.xs(name, level="name").add_prefix(f"{name}: ") for name in sets_of(run)]
    return pd.concat(parts, axis=1).rename(label)


def of_paper(column, heading):
    table = printed("mlmkl-tab-1").rename(columns={"AUC": "auc"})
    table = table.pivot(index="method", columns="name", values=column)
    return table.rename(label).add_suffix(f": {heading}")


def note_of_table(run):
    size = run.size
    sizes = ", ".join(f"{name}: {size['n_train'][name]}" for name in sets_of(run))
    return f"{description()}. {sizes} training samples, {size['n_test']} test samples, {size['seeds']} draws"


def groups_of(run):
    return table_runs(run).groupby(["method", "name"], sort=False)


@figure("mlmkl-tab-1", claims="mlmkl-1")
def accuracy_of_all_methods(run):
    """Does sharing one combination of kernels cost accuracy?"""
    names = sets_of(run)
    auc = groups_of(run)["auc"].agg(AUC="mean", **{"+-": lambda v: interval(v).high - v.mean()})
    note = f"{note_of_table(run)}; +-: half the 95% interval of the mean over draws"
    tables = {"": by_method(run, auc), "runs": table_runs(run)}
    paper = of_paper("auc", "AUC")
    run.save_table(tables, "mlmkl-tab-1", provenance=data_of(names), paper=paper, note=note)


@accuracy_of_all_methods.see
def _(results):
    runs = results.table("mlmkl-tab-1.runs")
    means = runs.groupby(["method", "name"], sort=False)["auc"].mean().unstack("name")
    parts = []
    for name in means:
        column = means[name].drop(PRINTED)
        parts.append(f"on {name} from {column.min():.3f} to {column.max():.3f}, SA {column['MLMKLSA']:.3f}")
    return f"""
All methods, equal weights among them, are close to each other: {"; ".join(parts)}. Keywords of things never
seen are hard, and the drawings show little of most of them."""


@figure("mlmkl-tab-1-work", claims="mlmkl-2")
def work_of_all_methods(run):
    """How many SVMs does each method solve, and how often does it combine the kernels?"""
    columns = {"n_solved": "SVMs", "n_combined": "combinations"}
    work = groups_of(run)[list(columns)].mean().rename(columns=columns)
    note = f"{note_of_table(run)}; SVMs: with those of all classes at the end; combinations of all kernels"
    run.save_table(by_method(run, work), "mlmkl-tab-1", "work", provenance=data_of(sets_of(run)), note=note)


@work_of_all_methods.see
def _(results):
    runs = results.table("mlmkl-tab-1.runs")
    solved = runs[runs["name"] == "emoji"].groupby("method")["n_solved"].mean()
    others = ", ".join(f"{label(m)} {solved[m]:,.0f}" for m in ("MLMKLSum", *PER_CLASS))
    ratio = solved[list(PER_CLASS)] / solved["MLMKLSA"]
    return f"""
SVMs on emoji, each by its own stopping rule and $C$: SA {solved["MLMKLSA"]:,.0f}, {others}. SA combines all
kernels anew for each of its SVMs, Sum once for those of all classes. With warm starts, to a certified gap of
1%, the methods with a combination for each class solve from {ratio.min():.1f} to {ratio.max():.1f} times as
many SVMs as SA."""


@figure("mlmkl-tab-1-seconds")
def seconds_of_all_methods(run):
    """And how long does the training take?"""
    seconds = by_method(run, groups_of(run)[["seconds"]].mean())
    note = f"{note_of_table(run)}; training, kernels in memory, one thread; the paper's of 2010"
    about = {"paper": of_paper("seconds", "seconds"), "note": note}
    run.save_table(seconds, "mlmkl-tab-1", "seconds", provenance=data_of(sets_of(run)), **about)


@figure("mlmkl-tab-1-choices")
def choices_of_all_methods(run):
    """Which C was chosen, and which kernels have the largest weights?"""
    grid = run.size["C"]
    first = groups_of(run).agg(C=("C", "first"), skipped=("skipped", "max"), kernels=("kernels", "first"))
    table = first.reset_index()
    table = table.assign(method=table["method"].map(label))[["name", "method", "C", "skipped", "kernels"]]
    edges = {key: at_edges({"C": grid}, {"C": C}, {"C": [0.001]}) for key, C in chosen_C(run).items()}
    edges = "; ".join(f"{name}, {label(m)}: {words}" for (name, m), words in edges.items() if words)
    note = f"{note_of_table(run)}; skipped: classes without positives; kernels: of the first draw. {edges}"
    run.save_table(table, "mlmkl-tab-1", "choices", provenance=data_of(sets_of(run)), note=note)


# ---------------------------------------------------------------- weights and accuracy over time


@figure("mlmkl-fig-1")
def weights_over_time(run):
    """Where do the kernel weights go over the training time?"""
    C = {method: chosen_C(run)["emoji", method] for method in LEARNING}
    points = [{**sample(run, "emoji"), "method": m, "seed": run.seed, "C": C[m]} for m in LEARNING]
    data = emoji().data
    paths = run.sweep("paths").frame(experiments.weight_paths, points, data=data)
    chosen = ", ".join(f"{label(method)} {C[method]:g}" for method in LEARNING)
    n_train = run.size["n_train"]["emoji"]
    note = f"{description()}; {n_train} training samples, the first draw; colours: what a cue sees; "
    note += f"dotted: the end by each one's stopping rule; C: {chosen}"
    drawing = draw.weights_over_time(paths, list(data.cues), emoji().groups)
    run.save_figure(drawing, "mlmkl-fig-1", paths, provenance=data, note=note)


@weights_over_time.see
def _(results):
    table = results.table("mlmkl-fig-1")
    kernels = list(table.columns)[list(table.columns).index("seconds") + 1 :]
    last = table.groupby("method").last()[kernels]
    largest = {m: f"{last.loc[m].idxmax()} {last.loc[m].max():.2f}" for m in LEARNING}
    parts = "; ".join(f"{label(method)} {weight}" for method, weight in largest.items())
    return f"""
Sum's weights zigzag in the first steps, while AdaHedge learns how long a step may be. SA's look smooth
because they are averages. The largest weights at the end: {parts}."""


@figure("mlmkl-fig-2", claims="mlmkl-4")
def accuracy_over_time(run):
    """How does the AUC of the two methods that share change over the training time?"""
    size = run.size
    names = sets_of(run)[:2]
    after_start = np.linspace(20, size["n_iter"], 10).astype(int).tolist()
    iterations = {
        "MLMKLSA": sorted({*range(0, 20, 3), *after_start}),
        "MLMKLSum": [*range(6), *range(6, size["passes"] + 1, 5)],
    }
    C = {name: chosen_C(run)[name, "MLMKLSA"] for name in names}
    n_test = size["n_test"]
    points = [
        {**sample(run, name), "n_test": n_test, "method": method, "seed": seed, "C": C[name]}
        | {"n_iter": max(at), "at": at}
        for name in names
        for method, at in iterations.items()
        for seed in run.seeds(size["over_time"])
    ]
    data = data_of(names)
    course = run.sweep("time").frame(experiments.over_time, points, data=data).drop(columns="at")
    sizes = ", ".join(f"{name}: {size['n_train'][name]} train, C = {C[name]:g}" for name in names)
    note = f"{description()}; no stopping rule; {size['over_time']['seeds']} draws; {sizes}"
    run.save_figure(draw.auc_over_time(course), "mlmkl-fig-2", course, provenance=data, note=note)


@accuracy_over_time.see
def _(results):
    table = results.table("mlmkl-fig-2")
    runs = table.groupby(["name", "method", "seed"], sort=False)
    way = runs[["moved", "swing"]].sum().groupby(["name", "method"], sort=False).mean()
    ratio = way.xs("MLMKLSum", level="method") / way.xs("MLMKLSA", level="method")
    returned = " and ".join(f"{value:.2f} times as far ({name})" for name, value in ratio["moved"].items())
    present = " and ".join(f"{value:.2f} times as far ({name})" for name, value in ratio["swing"].items())
    gain = runs["auc"].agg(lambda values: values.iloc[-1] - values.iloc[0])
    gain = gain.groupby(["name", "method"], sort=False).mean()
    gains = ", ".join(f"{label(method)} {value:+.3f} ({name})" for (name, method), value in gain.items())
    return f"""
Sum's weights travel {returned} as SA's averages, and {present} as the weights that SA uses
from iteration to iteration. AUC at the end minus that of equal weights at the same $C$: {gains}."""


# ---------------------------------------------------------------- delta and the step size

STEPS = [(0.0, 30.0), (0.2, 30.0), (0.6, 30.0), (1.0, 30.0), (0.0, 3.0), (0.0, 0.3)]  # delta, step


@cache
def step_runs(run):
    """AUC over the iterations for the pairs of `STEPS`, with the paper's estimates."""
    size = run.size
    at = sorted({0, 5, 10, 20, *np.linspace(40, size["n_iter"], 6).astype(int).tolist()})
    place = {**sample(run, "emoji"), "method": PRINTED, "n_test": size["n_test"]}
    place |= {"C": chosen_C(run)["emoji", PRINTED], "n_iter": size["n_iter"], "at": at}
    points = [
        {**place, "seed": seed, "delta": delta, "factor": factor}
        for delta, factor in STEPS
        for seed in run.seeds(size["steps"])
    ]
    table = run.sweep("steps").frame(experiments.over_time, points, data=emoji().data)
    return table.drop(columns=["at", "method"])


def note_of_steps(run):
    n_draws = run.size["steps"]["seeds"]
    note = f"{description()}; the paper's estimates, constant steps; {run.size['n_train']['emoji']} train, "
    return note + f"{n_draws} draws, C = {chosen_C(run)['emoji', PRINTED]:g}"


def ends_of(table, column):
    last = table[table["iteration"] == table["iteration"].max()]
    return last.groupby(column)["auc"].mean()


@figure("mlmkl-fig-3")
def shares_of_uniform_draws(run):
    """How much of the draws should be left to chance?"""
    table = step_runs(run)
    table = table[table["factor"] == 30.0]
    drawing = draw.auc_over_iterations(table, "delta", r"$\delta$ = {:g}", 0.2)
    run.save_figure(drawing, "mlmkl-fig-3", table, provenance=emoji().data, note=note_of_steps(run))


@shares_of_uniform_draws.see
def _(results):
    ends = ends_of(results.table("mlmkl-fig-3"), "delta")
    return f"""
With the largest step $\\delta = 0$ ends at an AUC of {ends[0.0]:.3f}, 0.2 at {ends[0.2]:.3f}, 0.6 at
{ends[0.6]:.3f}, 1 at {ends[1.0]:.3f}. At $\\delta = 0$ a class whose weight has fallen is never drawn again;
at $\\delta = 1$ all classes are drawn alike, and $p$ follows Sum's gradient."""


@figure("mlmkl-fig-4", claims="mlmkl-5")
def sizes_of_the_step(run):
    """How long should a step be?"""
    table = step_runs(run)
    table = table[table["delta"] == 0.0]
    drawing = draw.auc_over_iterations(table, "factor", r"$\eta$ = {:g} / (nC)", 3.0)
    run.save_figure(drawing, "mlmkl-fig-4", table, provenance=emoji().data, note=note_of_steps(run))


@sizes_of_the_step.see
def _(results):
    ends = ends_of(results.table("mlmkl-fig-4"), "factor")
    return f"""
The largest step ends at {ends[30.0]:.3f}, the smaller ones at {ends[3.0]:.3f} and {ends[0.3]:.3f}: they leave
the weights near the equal ones."""


# ---------------------------------------------------------------- what m classes cost


@figure("mlmkl-cor-1", claims="mlmkl-3")
def cost_of_many_classes(run):
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
    data = data_of(names)
    cost = run.sweep("cost").frame(experiments.cost_to_gap, points, data=data)
    powers = experiments.powers(cost, "n_solved", "n_classes")
    sizes = ", ".join(f"{name}: {size['n_train'][name]} train" for name in names)
    note = f"{description()}; {sizes}; {size['seeds']} draws, C = {size['C']:g}, "
    note += f"delta = 0.2, relative gap {size['wanted']:g}, at most {size['most']:,} SVMs"
    drawing = draw.cost_against_classes(cost, powers)
    run.save_figure(drawing, "mlmkl-cor-1", cost, provenance=data, note=note)


@cost_of_many_classes.see
def _(results):
    cost = results.table("mlmkl-cor-1")
    powers = experiments.powers(cost, "n_solved", "n_classes")
    exponents = powers.groupby(["name", "method"])["exponent"].mean()
    means = cost.groupby(["name", "method", "n_classes"])[["n_solved", "seconds"]].mean()
    parts = []
    slower = []
    for name in cost["name"].unique():
        n = cost.loc[cost["name"] == name, "n_classes"].max()
        solved = means.loc[name].xs(n, level="n_classes")
        text = ", ".join(f"{label(method)} {exponent:.2f}" for method, exponent in exponents[name].items())
        counts = [f"{solved.loc[method, 'n_solved']:,.0f}" for method in ("MLMKLSA", "MLMKLSum")]
        parts.append(f"on {name} {text}, and for all {n} classes SA solves {counts[0]} SVMs, Sum {counts[1]}")
        slower.append(solved.loc["MLMKLSA", "seconds"] / solved.loc["MLMKLSum", "seconds"])
    return f"""
The exponents of $m$, in the mean over draws: {"; ".join(parts)}. Sampling one of $m$ classes gives, by the
analysis of bandits, an error like $\\sqrt{{m \\ln m/T}}$, hence about $m \\ln m$ SVMs. In seconds SA loses
more (there {min(slower):.0f} times Sum's or more): it combines the kernels for every SVM, Sum once a pass."""


# ---------------------------------------------------------------- the saddle point


@figure("mlmkl-thm-1", claims="mlmkl-6")
def gap_over_iterations(run):
    """How fast does the saddle-point gap of SA's averages fall?"""
    size = run.size["gap"]
    points = [
        {"name": "emoji", "seed": seed, "at": list(size["at"]), "corrected": corrected}
        | {key: size[key] for key in ("n_train", "n_classes", "C")}
        for corrected in (True, False)
        for seed in run.seeds(size)
    ]
    data = emoji().data
    gaps = run.sweep("gap").frame(experiments.gap_after, points, data=data).drop(columns="at")
    gaps["method"] = np.where(gaps["corrected"], "MLMKLSA", PRINTED)
    exponents = experiments.powers(gaps, "gap", "n_iter").groupby("method")["exponent"].mean()
    note = f"{description()}; {size['n_classes']} keywords a draw, {size['n_train']} train, "
    note += f"{size['seeds']} draws, C = {size['C']:g}, delta = 0.2"
    drawing = draw.gap_over_iterations(gaps, exponents)
    run.save_figure(drawing, "mlmkl-thm-1", gaps, provenance=data, note=note)


@gap_over_iterations.see
def _(results):
    gaps = results.table("mlmkl-thm-1")
    exponents = experiments.powers(gaps, "gap", "n_iter").groupby("method")["exponent"].mean()
    pairs = gaps.pivot(index=["seed", "n_iter"], columns="method", values="gap")
    ratio = np.exp(np.log(pairs[PRINTED] / pairs["MLMKLSA"]).mean())
    return f"""
With the corrected estimates the gap falls like $T^{{{exponents["MLMKLSA"]:.2f}}}$; theorem 1 promises
$T^{{-0.5}}$. With the paper's it is {ratio:.1f} times as large and falls like
$T^{{{exponents[PRINTED]:.2f}}}$, so far: the estimate for $p$ is right at $\\gamma'$, not at $\\gamma$."""
