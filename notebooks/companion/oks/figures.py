"""Figures and tables of the OKS chapter, in the order of its notebook."""

from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy.stats import gmean

from companion import oks as experiments
from companion import pictures
from companion.oks import claims  # noqa: F401  the verdicts
from companion.plots import oks as draw
from companion.protocol import grid_points, original, printed, where
from companion.run.claims import Results
from companion.run.figures import certain, enumerated, name_of
from companion.run.registry import figure
from companion.study import Study, edges
from cuelearn import datasets

#: Methods that choose a kernel; those that are compared in words.
CHOOSING = ("MuSVM", "OKS", "SOM")
COMPARED = ("MuSVM", "SimpleMKL", "OM2", "SOM", "OKS")
#: What OKS-SVM is to OM-2 in accuracy -> what to do where all kernel values can be computed.
ADVICE = {
    "behind": "use all kernels: first their plain average, then OM-2",
    "tied with": "take either of the two",
    "ahead of": "choose one kernel, by OKS-SVM",
}
#: Tables of which the practical lesson is drawn.
EMOJI = ("oks-tab-1-pairs", "oks-tab-2-pairs")


@cache
def pairs_of(run):
    """The pairs of labels of each table and the data they are of; further pairs of leaves."""
    size = run.size
    names = {
        "tab-1": experiments.pairs("keyword", size["n_pairs"], size["least"]),
        "tab-2": experiments.pairs("category", size["n_pairs"], size["least"]),
        "leaves": experiments.pairs("leaves", size["n_leaves"]),
    }
    emoji = pictures.emoji()
    data = {"tab-1": emoji, "tab-2": emoji, "leaves": datasets.load_leaves()}
    corel5k = original(run, "corel5k", "Categories of emoji in its place.")
    if corel5k is not None:
        data["tab-2"] = corel5k
        names["tab-2"] = list(experiments.ORIGINAL_TASKS)
    further = experiments.pairs("leaves", size["more_leaves"])[size["n_leaves"] :]
    return SimpleNamespace(names=names, data=data, all=sum(names.values(), []), further=further)


def common_of(run, names, seed):
    """What the points of a sweep over some pairs have in common: the pairs, their things split by a seed."""
    pairs = pairs_of(run)
    options = {**run.size["pairs"], "n_jobs": run.n_jobs, "only": names}
    return {"pairs": experiments.describe_pairs([*pairs.all, *pairs.further], seed, **options)}


@cache
def common_of_all(run, seed):
    return common_of(run, pairs_of(run).all, seed)


def data_of(run):
    """Every data set of the chapter's pairs, once."""
    return list({data.provenance.name: data for data in pairs_of(run).data.values()}.values())


def kernels_alone(run, names, seed, common):
    """Accuracy of an SVM on every kernel alone."""
    points = [{"name": name, "seed": seed, "grids": run.size["grids"]} for name in names]
    table = run.sweep("every-kernel").frame(
        experiments.every_kernel, points, common=common, data=data_of(run)
    )
    return table.drop(columns="grids", errors="ignore")


@cache
def every_kernel(run):
    """All kernels of all pairs on the first split."""
    return kernels_alone(run, pairs_of(run).all, run.seed, partial(common_of_all, run, run.seed))


@cache
def every_kernel_again(run):
    """The same on further splits by thing, and on further pairs of leaves."""
    pairs = pairs_of(run)
    splits = []
    for kind, n_splits in run.size["alone"].items():
        names = [name for name in pairs.all if name.split()[0] == kind]
        splits += [(names, run.seed + k) for k in range(1, n_splits)]
    splits += [(pairs.further, run.seed + k) for k in range(run.size["alone"]["leaves"])]
    tables = [every_kernel(run)]
    for names, seed in splits:
        tables.append(kernels_alone(run, names, seed, partial(common_of, run, names, seed)))
    return pd.concat(tables, ignore_index=True)


@cache
def showcase(run):
    """Of the pairs of keywords the one whose five best and five worst kernels differ most on held-back things
    of the training part: where a kernel matters."""
    names = pairs_of(run).names["tab-1"]
    held = every_kernel(run).groupby("name")["held"]
    gaps = held.agg(lambda right: right.nlargest(5).mean() - right.nsmallest(5).mean())
    return gaps.round(9)[names].idxmax()


def options_of_oks(run):
    return {"delta": list(run.delta), "eta": run.eta}


@cache
def every_method(run):
    """All methods on the first split; those of `repeated` on further ones."""
    options = {"grids": run.size["grids"], "oks": options_of_oks(run)}
    study = Study(run.sweep, "compare", experiments.compare, comparing=options, data=data_of(run))
    tables = []
    for seed in range(run.seed, run.seed + run.size["selectors"]):
        every = (*experiments.METHODS, *experiments.TWICE)
        methods = every if seed == run.seed else run.size["repeated"]
        points = [({"name": name, "seed": seed}, methods) for name in pairs_of(run).all]
        tables.append(study.table(points, common=partial(common_of_all, run, seed)))
    return pd.concat(tables, ignore_index=True)


def rows_of(table, names):
    return table[table["name"].isin(names)]


@figure("oks-fig-1-pictures")
def sixty_kernels_on_one_pair(run):
    """Which kinds of features tell two words apart?"""
    name = showcase(run)
    task = common_of_all(run, run.seed)["pairs"][name]
    table = rows_of(every_kernel(run), [name])
    choices = where(every_method(run), name=name, seed=run.seed)
    choices = choices[choices["method"].isin(CHOOSING)]
    taken = choices["method"].map(name_of).groupby(choices["kernel"]).agg(" and ".join)
    table = table.assign(taken=table["kernel"].map(taken).fillna(""))
    note = (
        f"{task.y_train.size} training samples, {task.y_test.size} test samples; the pair of keywords whose "
        "five best and five worst kernels differ most on things held back from training"
    )
    chance = choices["chance"].iloc[0]
    drawing = draw.kinds(table, chance, experiments.pictures_of(name, task, table), name)
    data = pairs_of(run).data["tab-1"]
    run.save_figure(drawing, "oks-fig-1", table, "pictures", provenance=data, note=note)


@sixty_kernels_on_one_pair.facts
def _(results):
    table = results.table().set_index("kernel_name")
    right = table["accuracy"]
    colour = set(table.loc["HSV 1x1 chi2", "mistaken"].split())
    words = set(table.loc["words 3x1 chi2", "mistaken"].split())
    taken = table[table["taken"].notna()]
    choices = [f"{row.accuracy:.0%} ({row.taken})" for row in taken.itertuples()]
    return {
        "pair": table["name"].iloc[0],
        "n": len(table),
        "most": right.max(),
        "mean": right.mean(),
        "choices": enumerated(choices),
        "best": right.idxmax(),
        "worst": right.nsmallest(5).mean(),
        "mistakes": len(colour | words),
        "alone": len(colour ^ words),
    }


sixty_kernels_on_one_pair.title("""
On {pair} the best of {n} kernels is right on {most:.0%} of the tests, the mean one on {mean:.0%}, those that
are chosen on {choices}.""")
sixty_kernels_on_one_pair.see("""
The best kernel is {best}; the five worst are right on {worst:.0%} of the drawings of unseen things. A colour
kernel and a kernel of visual words make {mistakes} mistakes together; {alone} of these are made by one of the
two alone.""")


def _best_and_worst(run, table, row, suffix=None):
    """Every kernel of the pairs of a table, and what the methods reach."""
    pairs = pairs_of(run)
    names = pairs.names[table]
    everything = every_kernel_again(run)
    of_kind = everything["name"].str.split().str[0] == names[0].split()[0]
    kernels = everything[of_kind].drop(columns="mistaken")
    first_split = rows_of(kernels[kernels["seed"] == run.seed], names)
    note = "best and worst by test accuracy; the first split is drawn"
    drawing = draw.extremes(first_split, every_method(run))
    run.save_figure(drawing, row, kernels, suffix, provenance=pairs.data[table], note=note)


def _levels(results):
    """By pair, on the first split, accuracies of the best kernel, the mean one and the worst ones, which are
    five or half of all: means over pairs, and where the choice matters most and least."""
    table = results.table()
    first = table[table["seed"] == table["seed"].min()]
    pairs = first.groupby("name")["accuracy"]
    few = min(5, table["kernel"].nunique() // 2)
    worst = pairs.apply(lambda accuracies: accuracies.nsmallest(few).mean())
    levels = pd.DataFrame({"best": pairs.max(), "mean": pairs.mean(), "worst": worst})
    gap = 100 * (levels["best"] - levels["worst"])
    where = {"least_on": gap.idxmin(), "most_on": gap.idxmax(), "least": gap.min(), "most": gap.max()}
    return {"n": len(levels), "few": few, **levels.mean(), **where}


LEVELS = """
Over {{n}} pairs of {} the best kernel is right on {{best:.0%}}, the mean one on {{mean:.0%}}, the {{few}}
worst on {{worst:.0%}}."""
SPREAD = """
The best kernel is ahead of the {few} worst by {least:.0f} points on {least_on}, the smallest distance, and by
{most:.0f} points on {most_on}, the largest."""


@figure("oks-fig-1")
def best_and_worst_on_keywords(run):
    """Does it matter which kernel is used for pairs of keywords?"""
    _best_and_worst(run, "tab-1", "oks-fig-1")


best_and_worst_on_keywords.facts(_levels)
best_and_worst_on_keywords.title(LEVELS.format("keywords"))
best_and_worst_on_keywords.see(f"""{SPREAD} The kernels are ranked on the test itself, so the distances are in
part luck. The verdict does not rest on them.""")


@figure("oks-fig-2")
def best_and_worst_on_categories(run):
    """Does it matter which kernel is used for pairs of categories?"""
    _best_and_worst(run, "tab-2", "oks-fig-2")


best_and_worst_on_categories.facts(_levels)
best_and_worst_on_categories.title(LEVELS.format("categories"))
best_and_worst_on_categories.see(SPREAD)


@figure("oks-fig-1-leaves", claims="oks-5")
def best_and_worst_on_leaves(run):
    """Does it matter which kernel is used for pairs of leaves?"""
    _best_and_worst(run, "leaves", "oks-fig-1", "leaves")


best_and_worst_on_leaves.facts(_levels)
best_and_worst_on_leaves.title(LEVELS.format("leaves"))
best_and_worst_on_leaves.see(f"{SPREAD} Only the first pairs are drawn.")


def _note_on_methods(run, pairs):
    numbers = " or ".join(map(str, sorted(set(pairs["n_train"].map(experiments.passes)))))
    return (
        f"passes of OKS, SOM, OM-2: {numbers}, so that they have as many rounds as in the paper, or two; "
        f"splits by thing: {run.size['selectors']} for {', '.join(run.size['repeated'])}; 1 for the others "
        "and for what is chosen. kernel_values, svms, CPU seconds: tuning and training, from the features "
        "on, on the first split, all methods in turn in one process on one thread"
    )


@cache
def _as_printed(run, table):
    return experiments.as_printed(rows_of(every_method(run), pairs_of(run).names[table]))


def _table_of_methods(run, table):
    """Means by method with the paper's beside, and each pair."""
    row = f"oks-{table}"
    data = pairs_of(run).data[table]
    paper = printed(row)
    pairs = _as_printed(run, table)
    note = _note_on_methods(run, pairs)
    methods = experiments.by_method(pairs)
    means = f"{note}. Means over {pairs['name'].nunique()} pairs, the paper's over three"
    run.save_table(methods, row, provenance=data, paper=experiments.beside(paper, methods.index), note=means)
    at_ends = edges(every_method(run), run.size["grids"], experiments.NATURAL)
    each = f"{note}. At the ends of grids: {at_ends or 'none'}"
    of_paper = experiments.of_the_paper(pairs, paper)
    run.save_table(pairs, row, "pairs", provenance=data, paper=of_paper, note=each)


def _by_pair(results, *names):
    """Accuracy in percent, CPU seconds and kernel values, of the methods compared, by pair and method.

    Accuracies are means over all splits of a method: SimpleMKL has the first only.
    """
    rows = pd.concat([results.table(name) for name in names])
    rows = rows[rows["method"].isin(COMPARED)]
    rows = rows.assign(right=100 * rows["accuracy"])
    return [
        rows.pivot(index="name", columns="method", values=c) for c in ("right", "seconds", "kernel_values")
    ]


def _choice(results):
    """Of the table's pairs: means of the methods compared, and times as much as OKS-SVM takes."""
    name = results.claim if results.claim.endswith("leaves") else f"{results.claim}-pairs"
    sizes = results.table(name)
    n_passes = sizes["n_train"].map(experiments.passes)
    right, seconds, values = _by_pair(results, name)
    of_oks = seconds.div(seconds["OKS"], axis=0)
    return {
        "n": len(right),
        "right": right.mean(),
        "seconds": of_oks.apply(gmean),
        "values": gmean(values["MuSVM"] / values["OKS"]),
        "visits": (n_passes * sizes["n_train"] / sizes["n_kernels"]).median(),
        "passes": n_passes.max(),
        "twice": 100 * sizes.set_index("method").loc["OKS two passes", "accuracy"].mean(),
    }


CHOICE = """
On {{n}} pairs of {} OKS-SVM is right on {{right[OKS]:.1f}}%; OM-2 on {{right[OM2]:.1f}}%, in
{{seconds[OM2]:.2g}} times the CPU seconds of OKS-SVM."""
ACCURACIES = """
MuSVM, which tries all kernels, reaches {right[MuSVM]:.1f}%, SOM-SVM {right[SOM]:.1f}% and SimpleMKL,
which combines all kernels, {right[SimpleMKL]:.1f}% on the first split alone. MuSVM takes
{seconds[MuSVM]:.2g} times as long as OKS-SVM, SimpleMKL {seconds[SimpleMKL]:.2g} times. OM-2, MuSVM and
SimpleMKL compute {values:.2g} times as many kernel values as OKS-SVM."""


def compared(directory):
    """The methods compared on the pairs of emoji: mean accuracy in percent, seconds and kernel values."""
    right, seconds, values = _by_pair(Results(directory, "oks-7"), *EMOJI)
    columns = {"right": right.mean(), "seconds": np.exp(np.log(seconds).mean())}
    return pd.DataFrame(columns | {"kernel_values": np.exp(np.log(values).mean())})


def lesson(directory):
    """What the tables of a directory say to one who has to choose a method."""
    right, *_ = _by_pair(Results(directory, "oks-7"), *EMOJI)
    methods = compared(directory)
    times = methods / methods.loc["OKS"]
    mean = methods["right"]
    word = certain(right["OKS"] - right["OM2"], "behind", 1.0)
    text = f"""
**The lesson in practice.** Over {len(right)} pairs OKS-SVM is right on {mean["OKS"]:.1f}% of the tests,
{word} OM-2 ({mean["OM2"]:.1f}%; differences below one point, or uncertain, are ties). OM-2 takes
{times.loc["OM2", "seconds"]:.2g} times the CPU seconds of OKS-SVM and
{times.loc["OM2", "kernel_values"]:.2g} times its kernel values; MuSVM takes
{times.loc["MuSVM", "seconds"]:.2g} times the seconds, SimpleMKL {times.loc["SimpleMKL", "seconds"]:.2g}
times. So where all kernel values can be computed, as here, {ADVICE[word]}. Where a kernel value is expensive,
choose by the number of values: OKS computes one kernel at a visit."""
    return " ".join(text.split())


@figure("oks-tab-1")
def all_methods_on_keywords(run):
    """How good is the kernel that each method finds for pairs of keywords, and what does the search cost?"""
    _table_of_methods(run, "tab-1")


all_methods_on_keywords.facts(_choice)
all_methods_on_keywords.title(CHOICE.format("keywords"))
all_methods_on_keywords.see(f"""{ACCURACIES}
In {{passes}} passes each of the sixty kernels is drawn about {{visits:.0f}} times, in the paper's two passes
over its larger sets 40 to 114 times. After two passes OKS-SVM is right on {{twice:.1f}}%.""")


@figure("oks-tab-2")
def all_methods_on_categories(run):
    """How good is the kernel that each method finds for pairs of categories?"""
    _table_of_methods(run, "tab-2")


all_methods_on_categories.facts(_choice)
all_methods_on_categories.title(CHOICE.format("categories"))
all_methods_on_categories.see(ACCURACIES)


@figure("oks-tab-1-leaves", claims=["oks-1", "oks-7"])
def all_methods_on_leaves(run):
    """How good is the kernel, of twelve, that each method finds for pairs of leaves?"""
    table = _as_printed(run, "leaves")
    data = pairs_of(run).data["leaves"]
    run.save_table(table, "oks-tab-1", "leaves", provenance=data, note=_note_on_methods(run, table))


all_methods_on_leaves.facts(_choice)
all_methods_on_leaves.title(CHOICE.format("leaves"))
all_methods_on_leaves.see(ACCURACIES)


@figure("oks-alg-2-passes", claims="oks-2")
def kernels_chosen_by_oks_and_som(run):
    """Does OKS choose better kernels than SOM, its forerunner?"""
    size = run.size["selections"]
    names = pairs_of(run).all
    methods = every_method(run)
    of_som = where(methods, seed=run.seed).set_index(["method", "name"])["beta"]
    points = grid_points(name=names, method=("OKS", "SOM"), n_epochs=size["n_epochs"])
    for point in points:  # two passes, which are judged, have more seeds
        few = point["n_epochs"] <= experiments.PASSES
        n_seeds = size["judged" if point["n_epochs"] == experiments.PASSES else "seeds"]
        point["beta"] = of_som["SOM two passes" if few else "SOM", point["name"]]
        point["seeds"] = run.seeds({"seeds": n_seeds})
        point["oks"] = options_of_oks(run)
    options = {"common": partial(common_of_all, run, run.seed), "data": data_of(run)}
    chosen = run.sweep("selections").frame(experiments.selections, points, **options)
    accuracies = every_kernel(run)[["name", "kernel", "kernel_name", "accuracy"]]
    chosen = chosen.drop(columns=["seeds", "beta", "oks"]).merge(accuracies, on=["name", "kernel"])
    musvm = where(methods, method="MuSVM", seed=run.seed).set_index("name")["accuracy"]
    note = (
        f"means of {size['seeds']} seeds, of two passes {size['judged']}; OKS: delta {run.delta}, eta "
        f"{run.eta}, the first delta in the first half of the passes; SOM: delta 0.2, beta on things held "
        "back, up to two passes that of two, above that of the tables; all on the first split"
    )
    drawing = draw.selection_against_passes(chosen, musvm)
    run.save_figure(drawing, "oks-alg-2", chosen, "passes", provenance=data_of(run), note=note)


@kernels_chosen_by_oks_and_som.facts
def _(results):
    chosen = results.table()
    by_pair = 100 * chosen.groupby(["n_epochs", "name", "method"])["accuracy"].mean().unstack()
    after_two = by_pair.loc[2]
    most = chosen["n_epochs"].max()
    return {
        "n": len(after_two),
        "mean": after_two.mean(),
        "word": certain(after_two["OKS"] - after_two["SOM"], "worse", 1.0),
        "ahead": (after_two["OKS"] > after_two["SOM"]).sum(),
        "most": most,
        "last": by_pair.loc[most].mean(),
    }


kernels_chosen_by_oks_and_som.title("""
After two passes the kernels of OKS are right on {mean[OKS]:.1f}%, {word} those of SOM ({mean[SOM]:.1f}%),
over {n} pairs.""")
kernels_chosen_by_oks_and_som.see("""
After two passes OKS is ahead on {ahead} of {n} pairs, leaves included. After {most} passes
its kernels reach {last[OKS]:.1f}%, those of SOM {last[SOM]:.1f}%. Both methods count mistakes on
drawings of things already seen in other styles. A kernel that recognises seen things need not be
good at new ones.""")


@figure("oks-alg-2-probabilities")
def probabilities_over_the_visits(run):
    """How do the probabilities of sixty kernels move over the visits of one run?"""
    name = showcase(run)
    passes = (2, max(run.size["selections"]["n_epochs"]))
    points = [{"name": name, "seed": run.seed, **options_of_oks(run), "n_epochs": n} for n in passes]
    options = {"common": partial(common_of_all, run, run.seed), "data": data_of(run)}
    weights = run.sweep("probabilities").run(experiments.probabilities, points, **options)
    tables = {f"{n}": table for n, table in zip(passes, weights, strict=True)}
    drawing = draw.probabilities(tables, rows_of(every_kernel(run), [name]))
    note = f"{name}, one run; delta {run.delta}, eta {run.eta}, seed {run.seed}"
    data = pairs_of(run).data["tab-1"]
    run.save_figure(drawing, "oks-alg-2", tables, "probabilities", provenance=data, note=note)


@probabilities_over_the_visits.facts
def _(results):
    tables = results.tables(results.claim)
    values = []
    kernels = []
    for n_passes in sorted(tables, key=int):
        table = tables[n_passes]
        last = where(table, step=table["step"].max()).set_index("kernel")["probability"]
        values.append(f"{last.max():.2f} after {n_passes} passes")
        kernels.append(f"{last.idxmax()} after {n_passes} passes")
    return {"values": " and ".join(values), "kernels": " and ".join(kernels)}


probabilities_over_the_visits.title("The largest probability of a kernel is {values}.")
probabilities_over_the_visits.see("""
The five largest probabilities at the end have a colour and a name. The largest is that of kernel {kernels}.
The step $\\eta$ is the theorem's. The kernel with the largest weight need not be a good one: compare the
percentages next to the names, the accuracy of an SVM on each kernel.""")


def _streams(run, sizes, **values):
    """Points of the streams: every kind, seed and length, long ones first."""
    lengths = sizes["n_samples"][::-1]
    points = grid_points(kind=experiments.KINDS, seed=run.seeds(sizes), n_samples=lengths)
    return [{**point, "draws": sizes["draws"], **values} for point in points]


def _save_streams(run, name, drawing, table, sizes, note=""):
    note = f"{sizes['seeds']} streams of each kind, eight kernels, {sizes['draws']} draws of them{note}"
    run.save_figure(
        drawing, name, table, provenance=[datasets.load_pendigits(), experiments.STREAMS], note=note
    )


@figure("oks-thm-3", claims="oks-3")
def mistakes_and_their_bound(run):
    """Do the mistakes of Algorithm 2 stay below the bound of theorem 3?"""
    sizes = run.size["mistakes"]
    points = _streams(run, sizes, deltas=[0.2, 0.5])
    table = run.sweep("theorem-3").frame(
        experiments.mistakes_against_bound, points, data=datasets.load_pendigits()
    )
    by = ["kind", "n_samples", "seed", "delta"]
    table = experiments.expectations(table.drop(columns="deltas"), "mistakes", by)
    columns = {"mean": "mistakes", "bound": "bound", "loss": "best kernel's hinge loss"}
    guides = [
        ("all visits", "black", lambda visits: visits),
        (r"slope of $\sqrt{T}$", "grey", lambda visits: 2.0 * np.sqrt(visits)),
    ]
    drawing = draw.streams({"expected mistakes": (table, columns, ["delta"])}, "n_samples", guides)
    drawing.axes[0].set_ylim(bottom=5.0)  # a loss near 0 would stretch the axis
    _save_streams(run, "oks-thm-3", drawing, table, sizes, "; losses below 5 are not drawn")


@mistakes_and_their_bound.facts
def _(results):
    table = results.table()
    fewer = table["mean"] <= table["loss"]
    return {
        "share": (table["high"] / table["bound"]).max(),
        "above": (table["bound"] >= table["n_samples"]).mean(),
        "fewer": fewer.mean(),
        "random": (table.loc[fewer, "kind"] == "random").mean(),
    }


mistakes_and_their_bound.title(
    "Algorithm 2 makes at most {share:.0%} of the mistakes that the bound of theorem 3 allows."
)
mistakes_and_their_bound.see("""
At {above:.0%} of the points the bound on mistakes is above the number of visits itself: its terms contain
the number of kernels, as $\\sqrt{{mT}}$. At {fewer:.0%} of the points, {random:.0%} of which have
random labels, the mistakes of Algorithm 2 are at most the hinge loss of the best predictor of moderate norm,
which can be more than 1 for a sample.""")


@figure("oks-thm-1", claims="oks-4")
def regret_and_its_bound(run):
    """Does the regret of Algorithm 1 stay below the bound of theorem 1, for three losses?"""
    sizes = run.size["regret"]
    points = [
        {**point, "loss": loss, "delta": delta, "radius": radius}
        for point in _streams(run, sizes)
        for loss in ("hinge", "logistic", "square")
        for delta, radius in ((0.5, 1.0), (0.2, 4.0))
    ]
    table = run.sweep("theorem-1").frame(
        experiments.regret_against_bound, points, data=datasets.load_pendigits()
    )
    by = ["kind", "loss", "n_samples", "seed", "delta", "radius"]
    table = experiments.expectations(table, "losses", by)
    note = "; r: norm of the predictor that the step is made for"
    _save_streams(run, "oks-thm-1", draw.shares_of_bound(table), table, sizes, note)


@regret_and_its_bound.facts
def _(results):
    table = results.table()
    share = table["high"] / table["bound"]
    largest = share.groupby(table["loss"], sort=False).max()
    shares = ", ".join(f"{value:.0%} ({loss})" for loss, value in largest.items())
    return {"share": share.max(), "shares": shares}


regret_and_its_bound.title(
    "The loss of Algorithm 1 reaches at most {share:.0%} of the bound of theorem 1, for three losses."
)
regret_and_its_bound.see("""
At its worst point Algorithm 1 reaches {shares} of its bound, with the steps that
balance the terms of the bound.""")


@figure("oks-cor-2", claims="oks-6")
def excess_of_the_chosen_kernel(run):
    """How far is the chosen kernel's loss from the best, after how many visits?"""
    sizes = run.size["quality"]
    fixed = {name: sizes[name] for name in ("n_samples", "n_held", "draws")}
    points = [
        {"kind": kind, "seed": seed, "visits": sizes["n_visits"], **fixed}
        for kind in ("pendigits", "one useful")
        for seed in run.seeds(sizes)
    ]
    table = run.sweep("corollary-2").frame(
        experiments.selection_quality, points, data=datasets.load_pendigits()
    )
    table = experiments.quantiles(table, (0.5, 0.2, 0.1))
    excess = {"drawn": "drawn from $q_T$", "largest": "largest in $q_T$"}
    shares = {"drawn_best": "below: drawn is the best", "largest_best": "below: largest is the best"}
    rows = {
        "held-out loss above the best": (table, excess, ["epsilon"]),
        "share of runs": (table[table["epsilon"] == 0.1], shares, []),
    }
    drawing = draw.streams(rows, "n_visits")
    _save_streams(run, "oks-cor-2", drawing, table, sizes)


@excess_of_the_chosen_kernel.facts
def _(results):
    table = where(results.table(), kind="pendigits", epsilon=0.1)
    return where(table, n_visits=table["n_visits"].max()).mean(numeric_only=True)


excess_of_the_chosen_kernel.title("""
After {n_visits:.0f} visits of Pendigits the kernel with the largest weight is the best in
{largest_best:.0%} of the runs.""")
excess_of_the_chosen_kernel.see("""
The kernel drawn from $q_T$ is the best of the eight in {drawn_best:.0%} of the runs of Pendigits.
In nine runs of ten the excess of the kernel with the largest weight is at most {largest:.2f}. The
excess that remains with the best kernel comes from the training of its predictor. The constant of the proof
is not drawn.""")
