"""Figures and tables of the MKL chapter on accuracy: single cues, all methods, growing training sets."""

from functools import cache

import numpy as np
import pandas as pd

from companion import pictures
from companion.mkl import rivals
from companion.mkl.figures_shared import (
    ALL,
    EVERYONE,
    against_sizes,
    as_judged,
    at_most_objects,
    choose,
    chosen_for_objects,
    compared_on_objects,
    every_cue_alone,
    tasks_of,
    trained_longest,
)
from companion.mkl.tasks import kernels_among, mistaken
from companion.plots import mkl as draw
from companion.protocol import at_edges
from companion.run.figures import method_style
from companion.run.registry import figure
from cuelearn import datasets
from cuelearn.datasets import DataFileError

#: What some cues look at.
LOOKS_AT = {
    "HSV 2x2": "colour",
    "shape": "outline",
    "LBP 2x2": "texture",
    "PHOG 2": "edges",
    "words 2x2": "visual words",
    "average": "all 39",
}


def name_of(method):
    """A method as figures name it."""
    return method_style(method)["label"]


@figure("thesis-fig-4.3-things")
def what_each_cue_confuses(run):
    """What does each cue take a new drawing for?"""
    tasks = tasks_of(run)
    alone = every_cue_alone(run)
    alone = alone[(alone["task"] == tasks.objects) & (alone["seed"] == run.seed)].set_index("cue")
    C = run.size["alone"]["C"]
    at_end = sum(bool(at_edges({"C": C}, {"C": chosen})) for chosen in alone["C"])
    single = [cue for cue in LOOKS_AT if cue != "average"]
    per_class = tasks.n_objects // tasks.n_things
    wrong = mistaken(alone["predicted"], single, "objects", tasks.n_things, per_class, run.seed, 6)
    emoji = pictures.emoji()
    rows = np.unique(wrong)
    images = emoji.on_backgrounds(rows=rows, random_state=pictures.SEED).images
    images = dict(zip(rows, images, strict=True))
    kernels = kernels_among(LOOKS_AT, "objects", tasks.n_things, 10)
    drawing = draw.things(images, wrong, kernels, alone["test_error"], LOOKS_AT)
    wrong = wrong.assign(thing=emoji.names[emoji.thing[wrong["drawing"]]])
    tables = {"": wrong, "errors": alone[["C", "test_error"]].reset_index()}
    shows = "new drawings, and what single cues and all kernels take them for"
    note = (
        f"{tasks.things_are}, one split. Above: kernels among eight drawings of ten things. Below: drawings "
        "that all cues name right, and what an SVM on one cue takes each for. C by cross-validation: for "
        f"{at_end} of {len(alone)} the smallest or largest tried"
    )
    run.save_figure(
        drawing, "thesis-fig-4.3", tables, "things", provenance=[tasks.emoji], shows=shows, note=note
    )


@what_each_cue_confuses.see
def _(results):
    error = results.table("thesis-fig-4.3-things.errors").set_index("cue")["test_error"]
    single = error.drop("average")
    return f"""
What a cue takes a drawing for tells what it looks at. Colour alone is nearly blind, since backgrounds are
drawn at random ({error["HSV 2x2"]:.0%} errors); the best single cue, *{single.idxmin()}*, errs on
{single.min():.0%}, the plain average of all on {error["average"]:.0%}."""


@figure("thesis-fig-4.9-cues")
def accuracy_of_single_cues(run):
    """How far does one cue get, on things that were seen in other drawings and on things never seen?"""
    tasks = tasks_of(run)
    columns = {}
    for task, name in ((tasks.objects, "objects"), (tasks.categories, "categories")):
        accuracy = _cues_in_order(run, task)
        columns |= {f"{name}: {column}": accuracy[column] for column in accuracy}
    note = f"accuracy [%] of an SVM on one cue, mean and 95% interval over {run.size['seeds']} splits"
    run.save_table(
        pd.DataFrame(columns).rename_axis("cue").loc[_cues_in_order(run, tasks.objects).index],
        "thesis-fig-4.9",
        "cues",
        provenance=[tasks.emoji],
        shows="accuracy of one cue",
        note=note,
    )


def _cues_in_order(run, task):
    """Accuracies of single cues on a task, the best first."""
    alone = every_cue_alone(run)
    alone = alone[(alone["task"] == task) & (alone["cue"] != "average")]
    return rivals.with_intervals(alone, "cue").sort_values("accuracy", ascending=False)


@accuracy_of_single_cues.see
def _(results):
    table = results.table("thesis-fig-4.9-cues").set_index("cue")
    listed = []
    for name in ("objects", "categories"):
        accuracy = table[f"{name}: accuracy"]
        listed.append(
            f"{name}: {accuracy.idxmax()} {accuracy.max():.0f}%, the median one {accuracy.median():.0f}%, "
            f"{accuracy.idxmin()} {accuracy.min():.0f}%"
        )
    return f"The best, the median and the worst of {len(table)} cues. Of {'; of '.join(listed)}."


@figure("thesis-fig-4.7-choice")
def parameters_of_all_methods(run):
    """Which parameters does cross-validation choose for each method?"""
    tasks = tasks_of(run)
    _, tried = chosen_for_objects(run)
    note = f"{tasks.things_are}: cross-validated accuracy of every point tried; chosen ones marked"
    run.save_table(
        tried,
        "thesis-fig-4.7",
        "choice",
        provenance=[tasks.emoji],
        shows="parameters of all methods, tried by cross-validation",
        note=note + rivals.edges(tried),
    )


@parameters_of_all_methods.see
def _(results):
    table = results.table("thesis-fig-4.7-choice")
    names = [name for name in ("C", "p", "alpha") if name in table]
    listed = []
    for _, row in table[table["chosen"]].iterrows():
        params = row[names].dropna().astype(float)
        listed.append(f"{name_of(row['method'])} {rivals.in_words(params)}")
    return f"Chosen are: {'; '.join(listed)}."


def _stops(run):
    """How runs of all methods on objects end, in words."""
    size = run.size["sizes"]
    note = f"{tasks_of(run).things_are}, 39 kernels. All stop at a certified gap of 5%. "
    if max(size["n_train"]) > size["rivals_up_to"]:
        note += "Up to five drawings of each thing; beyond, views of these. "
    return note


def _sizes(run):
    """All methods on growing sets, on the splits that all sizes have."""
    table = against_sizes(run)
    return table[table["seed"].isin(run.seeds(run.size["sizes"]))].sort_values("n_train", kind="stable")


def _against_size(run, row, methods):
    table = _sizes(run)
    table = table[table["method"].isin(methods)]
    emoji = tasks_of(run).emoji
    run.save_figure(draw.against_size(table), row, table, provenance=[emoji], note=_stops(run))


@figure("thesis-fig-4.7")
def time_and_error_against_size(run):
    """How do training time and error grow with the training set?"""
    methods = ["OBSCURE", "SILPMKL", "MCMKL", "LPBeta", "AverageKernelSVM"]
    _against_size(run, "thesis-fig-4.7", methods)


@time_and_error_against_size.see
def _(results):
    table = results.table("thesis-fig-4.7")
    error = table.groupby(["method", "n_train"])["test_error"].mean()
    listed = []
    for method in table["method"].unique():
        part = error[method]
        listed.append(
            f"{name_of(method)} from {part.iloc[0]:.0%} to {part.iloc[-1]:.0%} (n = {part.index[-1]:,})"
        )
    return f"From {table['n_train'].min():,} samples on the errors fall: {'; '.join(listed)}."


@figure("jmlr-fig-6")
def time_and_error_of_more_methods(run):
    """The same with OBSCURE's online stage and p-norm MKL: who is fastest?"""
    methods = ["OBSCURE", "OBSCURE online", "SILPMKL", "LpMKL", "LpMKL sparse", "MCMKL", "AverageKernelSVM"]
    _against_size(run, "jmlr-fig-6", methods)
    note = f"{_stops(run)}Seconds measured in one run; relative_gap: largest, of the method's own problem"
    table = rivals.with_ratios(_sizes(run), ["n_train"])
    run.save_table(table, "jmlr-fig-6", "table", provenance=[tasks_of(run).emoji], note=note)


@time_and_error_of_more_methods.see
def _(results):
    table = results.table("jmlr-fig-6-table")
    most = table.loc[table["method"] == "SILPMKL", "n_train"].max()
    ratio = table[table["n_train"] == most].set_index("method")["times OBSCURE"]
    listed = ", ".join(f"{name_of(method)} {times:.2g}" for method, times in ratio.drop("OBSCURE").items())
    return f"Seconds as multiples of OBSCURE's with {most:,} samples: {listed}."


@figure("thesis-fig-4.9-leaves")
def accuracy_on_leaves(run):
    """Do the methods differ on a hundred species of leaves, where nearly all kernels are redundant?"""
    leaves = datasets.load_leaves().provenance
    methods = ["OBSCURE", "UFOMKL", "OM2", "SILPMKL", "LpMKL", "AverageKernelSVM"]
    _accuracy_of_tables(run, "leaves", methods, leaves, "100 species of leaves")


def _accuracy_of_tables(run, name, methods, data, note, more=()):
    """All methods on leaves or scenes; `more` take over the choice of p-norm MKL at p = 1.01."""
    n_train = run.size[name]["n_train"]
    task = f"{name}-18"
    options = as_judged(run.size["online"])
    chosen, tried = choose(run, name, task, methods, n_train, options=options, data=data)
    chosen = chosen | {method: chosen["LpMKL"] | {"p": 1.01} for method in more}
    chosen = trained_longest(run, chosen)
    seeds = run.seeds(run.size[name])
    sweep = run.sweep(name)
    runs = rivals.compare_all(sweep, task, [n_train], ALL, list(chosen), chosen, seeds, data=data)
    tables = {"": rivals.with_ratios(runs, ["n_train"]), "runs": runs, "choice": tried}
    row = "leaves" if name == "leaves" else "scenes"
    note += f", n = {n_train}; 18 kernels, {len(seeds)} splits, error_sd: standard deviation over "
    note += "them; batch methods stop at a certified gap of 5%"
    note += rivals.edges(tried)
    shows = "accuracy of all methods"
    run.save_table(tables, "thesis-fig-4.9", row, provenance=[data], shows=shows, note=note)


@accuracy_on_leaves.see
def _(results):
    table = results.table("thesis-fig-4.9-leaves").set_index("method")
    error = table["error"]
    rest = error.drop("SILPMKL")
    return f"""
All methods are within {100 * np.ptp(error):.1f} points, without SILP within {100 * np.ptp(rest):.1f}. The
plain average of the kernels errs on {error["AverageKernelSVM"]:.1%}, 1-vs-All SILP, whose classes use
{table.loc["SILPMKL", "kernels"]:.0f} of the 18 kernels, on {error["SILPMKL"]:.1%}."""


@figure("thesis-fig-4.9-scenes")
def accuracy_on_scenes(run):
    """With DATA=original: do the methods differ on fifteen scenes, three cues of unknown kinds?"""
    if run.data_tier != "original":
        return
    try:
        scenes = datasets.load_original("scene15").provenance
    except DataFileError as error:
        print(error)
        return
    note = "photographs of 15 kinds of scenes"
    _accuracy_of_tables(run, "scene15", [*EVERYONE, "OM2"], scenes, note, ["LpMKL sparse"])


@cache
def _on_objects(run):
    """All methods on as many drawings as there are, those that are slow in the profile full too."""
    slow = list(run.size["slow"])
    table = at_most_objects(run)
    if not slow:
        return table.reset_index(drop=True)
    tasks = tasks_of(run)
    chosen, _ = chosen_for_objects(run)
    seeds = run.seeds(run.size["tables"])
    sweep = run.sweep("sizes")
    slowest = rivals.compare_all(
        sweep, tasks.objects, [tasks.n_objects], ALL, slow, chosen, seeds, data=tasks.emoji
    )
    return pd.concat([table, slowest], ignore_index=True)


def _accuracy(run, task, table):
    """Of all methods, and of the best, the median and the worst cue: accuracy, seconds, what was chosen."""
    cues = _cues_in_order(run, task)
    three = cues.iloc[[0, len(cues) // 2, -1]]
    three.index = [f"SVM, one cue: the {rank} of 39 in these tests" for rank in ("best", "median", "worst")]
    named = table.assign(method=[name_of(method) for method in table["method"]])
    more = named.groupby("method").agg(seconds=("seconds", "mean"), chosen=("chosen", "first"))
    methods = rivals.with_intervals(named, "method").join(more)
    return pd.concat([three, methods]).rename_axis("method")


def _save_accuracy(run, name, accuracy, what, n_splits, tried, paper=None):
    note = (
        f"{what}; accuracy [%], mean and 95% interval over {n_splits} splits (one cue: {run.size['seeds']}); "
        f"39 kernels, parameters by cross-validation on the first split{rivals.edges(tried)}. The paper: "
        "Caltech-101, 30 images of each of 102 categories"
    )
    emoji = tasks_of(run).emoji
    shows = "accuracy of all methods"
    run.save_table(accuracy, "thesis-fig-4.9", name, provenance=[emoji], note=note, paper=paper, shows=shows)


@figure("thesis-fig-4.9-objects")
def accuracy_on_objects(run):
    """How many of the objects does each method name, how many the best cue?"""
    tasks = tasks_of(run)
    _, tried = chosen_for_objects(run)
    accuracy = _accuracy(run, tasks.objects, _on_objects(run))
    printed = pd.DataFrame({"accuracy": [69.4, 13.5]}, accuracy.index[[0, 2]])
    n_splits = len(run.seeds(run.size["tables"]))
    _save_accuracy(run, "objects", accuracy, tasks.things_are, n_splits, tried, printed)


@accuracy_on_objects.see
def _(results):
    table = results.table("thesis-fig-4.9-objects").set_index("method")
    accuracy = {method: f"{value:.0f}" for method, value in table["accuracy"].items()}
    best = table["accuracy"].iloc[0]
    at = {method: accuracy[name_of(method)] for method in (*EVERYONE, "OM2", "LpMKL sparse")}
    return f"""
The best single cue names {best:.0f}% of the objects (Caltech-101: 69.4%), the average of all 39 kernels
{at["AverageKernelSVM"]}%. OBSCURE names {at["OBSCURE"]}%, UFO-MKL {at["UFOMKL"]}, OM-2 {at["OM2"]},
LP-beta {at["LPBeta"]}, MC-MKL {at["MCMKL"]}. Of those with sparse weights for each class, SILP names
{at["SILPMKL"]}% and p-norm MKL at $p = 1.01$ {at["LpMKL sparse"]}."""


@figure("thesis-fig-4.9-categories")
def accuracy_on_categories(run):
    """How many pictures of things never seen does each method put into the right category?"""
    tasks = tasks_of(run)
    methods = [*EVERYONE, *run.size["slow"], "OM2"]
    options = as_judged(run.size["online"])
    chosen, tried = choose(
        run, "categories", tasks.categories, methods, tasks.n_categories, options=options, data=tasks.emoji
    )
    chosen = trained_longest(run, chosen)
    seeds = run.seeds(run.size["categories"])
    sweep = run.sweep("categories")
    n_train = [tasks.n_categories]
    runs = rivals.compare_all(
        sweep, tasks.categories, n_train, ALL, list(chosen), chosen, seeds, data=tasks.emoji
    )
    accuracy = _accuracy(run, tasks.categories, runs)
    _save_accuracy(run, "categories", accuracy, tasks.groups_are, len(seeds), tried)


@accuracy_on_categories.see
def _(results):
    table = results.table("thesis-fig-4.9-categories").set_index("method")
    combined = table.iloc[3:].drop([name_of("OBSCURE online"), name_of("BestKernelSVM")], errors="ignore")
    accuracy = combined["accuracy"]
    return f"""
Things never seen before are far harder. All methods that combine kernels, but OBSCURE's online stage, lie
between {accuracy.min():.0f} and {accuracy.max():.0f}%; the best single cue names
{table["accuracy"].iloc[0]:.0f}%."""


@figure("thesis-fig-4.9-right", claims=["obs-6", "ufo-5"])
def errors_of_all_methods(run):
    """With many redundant kernels, which methods err least?"""
    size = run.size["tables"]
    tasks = tasks_of(run)
    _, tried = chosen_for_objects(run)
    further = size["further"]
    seeds = range(run.seed + size["seeds"], run.seed + size["more_seeds"])
    sweep = run.sweep("sizes")
    chosen = compared_on_objects(run)
    closer = rivals.compare_all(  # of the methods that claims compare closely
        sweep, tasks.objects, [tasks.n_objects], ALL, further, chosen, seeds, data=tasks.emoji
    )
    table = pd.concat([_on_objects(run), closer], ignore_index=True)
    drawing = draw.accuracies(_on_objects(run))
    note = f"{_stops(run)}n = {tasks.n_objects}; the table has {size['more_seeds']} splits of "
    note += ", ".join(further) + rivals.edges(tried)
    shows = "accuracy of all methods"
    run.save_figure(
        drawing, "thesis-fig-4.9", table, "right", provenance=[tasks.emoji], shows=shows, note=note
    )


@errors_of_all_methods.see
def _(results):
    error = results.table("thesis-fig-4.9-right").groupby("method")["test_error"].mean().sort_values()
    at = {method: f"{value:.1%}" for method, value in error.items()}
    return f"""
{name_of(error.index[0])} errs least ({error.iloc[0]:.1%}). OBSCURE, with one set of weights for all
classes, errs on {at["OBSCURE"]} of the new drawings, SILP, with sparse weights for each class, on
{at["SILPMKL"]}. The plain average of all kernels, which learns no weights at all, errs on
{at["AverageKernelSVM"]}: try it first."""
