"""Figures and tables of the MKL chapter on accuracy: single cues, all methods, growing training sets."""

import numpy as np
import pandas as pd
from scipy.stats import gmean

from companion import pictures
from companion.data.originals import load_original
from companion.mkl import rivals
from companion.mkl.figures_shared import (
    EVERYONE,
    Place,
    against_sizes,
    as_judged,
    at_most_objects,
    choose,
    chosen_for_objects,
    compare,
    every_cue_alone,
    listed,
    mean_error,
    name_of,
    of_sizes,
    save,
    tasks_of,
    trained_longest,
)
from companion.mkl.tasks import kernels_among, mistaken
from companion.plots import mkl as draw
from companion.run.registry import figure
from companion.study import at_edges
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


@figure("thesis-fig-4.3-things")
def what_each_cue_confuses(run):
    """What does each cue take a new drawing for?"""
    tasks = tasks_of(run)
    place = tasks.objects
    alone = every_cue_alone(run)
    alone = alone[(alone["task"] == place.task) & (alone["seed"] == run.seed)].set_index("cue")
    C = run.size["alone"]["C"]
    at_end = sum(bool(at_edges({"C": C}, {"C": chosen})) for chosen in alone["C"])
    *single, _ = LOOKS_AT
    per_class = place.n_train // tasks.n_things
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
        "one split. Above: kernels among eight drawings of ten things. Below: the drawings that most of "
        "these cues mistake of those that all 39 name right, and what an SVM on one cue takes each for, "
        f"green where right. C by cross-validation: for {at_end} of {len(alone)} the smallest or largest "
        "tried"
    )
    save(run, "thesis-fig-4.3-things", place, tables, note, drawing, shows=shows)


@what_each_cue_confuses.title
def _(results):
    error = results.table("thesis-fig-4.3-things.errors").set_index("cue")["test_error"]
    single = error.drop("average")
    return f"""
The best single cue errs on {single.min():.0%} of the new drawings, the plain average of all {single.size} on
{error["average"]:.0%}."""


@what_each_cue_confuses.see
def _(results):
    error = results.table("thesis-fig-4.3-things.errors").set_index("cue")["test_error"]
    return f"""
The mistakes of a cue show what it looks at. Backgrounds have random colours: colour alone errs on
{error["HSV 2x2"]:.0%}. The best single cue is *{error.drop("average").idxmin()}*."""


@figure("thesis-fig-4.9-cues")
def accuracy_of_single_cues(run):
    """How far does one cue get, on things that were seen in other drawings and on things never seen?"""
    tasks = tasks_of(run)
    objects = _cues_in_order(run, tasks.objects).add_prefix("objects: ", axis=1)
    categories = _cues_in_order(run, tasks.categories).add_prefix("categories: ", axis=1)
    table = objects.join(categories).rename_axis("cue")
    note = (
        f"of categories: {tasks.categories.text}, n = {tasks.categories.n_train}; accuracy [%] of an SVM on "
        f"one cue, mean and 95% interval over {run.size['seeds']} splits"
    )
    save(run, "thesis-fig-4.9-cues", tasks.objects, table, note, shows="accuracy of one cue")


def _cues_in_order(run, place):
    """Accuracies of single cues on a task, the best first."""
    alone = every_cue_alone(run)
    alone = alone[(alone["task"] == place.task) & (alone["cue"] != "average")]
    return rivals.with_intervals(alone, "cue").sort_values("accuracy", ascending=False)


@accuracy_of_single_cues.title
def _(results):
    table = results.table("thesis-fig-4.9-cues")
    best = table[["objects: accuracy", "categories: accuracy"]].max()
    return f"""
The best of {len(table)} cues names {best.iloc[0]:.0f}% of the objects and {best.iloc[1]:.0f}% of the
categories of things never seen."""


@accuracy_of_single_cues.see
def _(results):
    table = results.table("thesis-fig-4.9-cues").set_index("cue")
    objects = table["objects: accuracy"]
    categories = table["categories: accuracy"]
    return f"""
The best cue for the objects is *{objects.idxmax()}*; the worst names {objects.min():.0f}%. The best for the
categories is *{categories.idxmax()}*; the worst names {categories.min():.0f}%."""


@figure("thesis-fig-4.7-choice")
def parameters_of_all_methods(run):
    """Which parameters does cross-validation choose for each method?"""
    place = tasks_of(run).objects
    _, tried = chosen_for_objects(run)
    note = f"cross-validated accuracy of every point tried; chosen ones marked{rivals.edges(tried)}"
    shows = "parameters of all methods, tried by cross-validation"
    save(run, "thesis-fig-4.7-choice", place, tried, note, shows=shows)


@parameters_of_all_methods.title
def _(results):
    table = results.table("thesis-fig-4.7-choice")
    chosen = table[table["chosen"]]
    return f"""
Cross-validation chooses C from {chosen["C"].min():g} to {chosen["C"].max():g};
{chosen["edge"].notna().sum()} of {len(chosen)} choices are at an end of the grid."""


@parameters_of_all_methods.see
def _(results):
    table = results.table("thesis-fig-4.7-choice")
    C = table[table["chosen"]].set_index("method")["C"].dropna()
    C = C[~C.index.str.endswith(rivals.SMALLER)]  # their C is in their names
    return f"Chosen values of C: {listed(C, 'g')}. The other parameters are in the table."


def _sizes(run):
    """All methods on growing sets, on the splits that all sizes have."""
    table = against_sizes(run)
    return table[table["seed"].isin(run.seeds(run.size["sizes"]))].sort_values("n_train", kind="stable")


def _against_size(run, row, methods):
    table = _sizes(run)
    table = table[table["method"].isin(methods)]
    drawing = draw.against(table, ("n_train", "seconds"), ("n_train", "test_error"))
    save(run, row, _growing(run), table, "39 kernels in memory", drawing)


def _growing(run):
    return of_sizes(tasks_of(run).objects, run.size["sizes"]["n_train"])


@figure("thesis-fig-4.7", claims="obs-11")
def time_and_error_against_size(run):
    """How do training time and error grow with the training set?"""
    methods = ["OBSCURE", "OBSCURE steps", "SILPMKL", "LpMKL", "MCMKL", "LPBeta", "AverageKernelSVM"]
    _against_size(run, "thesis-fig-4.7", methods)


@time_and_error_against_size.title
def _(results):
    table = results.table("thesis-fig-4.7")
    n = table.loc[table["method"] == "SILPMKL", "n_train"].max()
    table = table[table["n_train"] == n].pivot(index="seed", columns="method")
    seconds, error = table["seconds"], table["test_error"].mean()
    ratio = gmean(seconds["OBSCURE"] / seconds["SILPMKL"])
    return f"""
With {n:,} samples OBSCURE takes {ratio:.2g} times SILP's CPU seconds; it errs on {error["OBSCURE"]:.0%}, SILP
on {error["SILPMKL"]:.0%}."""


@time_and_error_against_size.see
def _(results):
    table = results.table("thesis-fig-4.7")
    parts = []
    for n in (table["n_train"].min(), table["n_train"].max()):
        parts.append(f"Errors with {n:,} samples: {listed(mean_error(table[table['n_train'] == n]))}.")
    return " ".join(parts)


@figure("jmlr-fig-6")
def time_and_error_of_more_methods(run):
    """How do time and error grow for more methods, such as OBSCURE's online stage alone?"""
    methods = ["OBSCURE", "OBSCURE online", "SILPMKL", "LpMKL", "LpMKL sparse", "MCMKL", "AverageKernelSVM"]
    _against_size(run, "jmlr-fig-6", methods)
    note = "39 kernels in memory; seconds of one run; relative_gap: largest, of the method's own problem"
    save(run, "jmlr-fig-6-table", _growing(run), rivals.with_ratios(_sizes(run), ["n_train"]), note)


@time_and_error_of_more_methods.title
def _(results):
    n, ratio = _times_obscure(results)
    return f"""
With {n:,} samples SILP takes {ratio["SILPMKL"]:.2g} times OBSCURE's CPU seconds, the SVM on the average
kernel {ratio["AverageKernelSVM"]:.2g} times."""


@time_and_error_of_more_methods.see
def _(results):
    n, ratio = _times_obscure(results)
    return f"Seconds as multiples of OBSCURE's with {n:,} samples: {listed(ratio.drop('OBSCURE'), '.2g')}."


def _times_obscure(results):
    """The largest number of samples that all methods have, and seconds as multiples of OBSCURE's."""
    table = results.table("jmlr-fig-6-table")
    n = table.loc[table["method"] == "SILPMKL", "n_train"].max()
    return n, table[table["n_train"] == n].set_index("method")["times OBSCURE"]


@figure("thesis-fig-4.9-leaves")
def accuracy_on_leaves(run):
    """Do the methods differ on a hundred species of leaves, where nearly all kernels are redundant?"""
    data = datasets.load_leaves().provenance
    methods = ["OBSCURE", "UFOMKL", "OM2", "SILPMKL", "LpMKL", "AverageKernelSVM"]
    place = Place("leaves-18", run.size["leaves"]["n_train"], data, "100 species of leaves")
    _accuracy_of_tables(run, "leaves", place, methods)


def _accuracy_of_tables(run, name, place, methods, more=()):
    """All methods on leaves or scenes; `more` take over the choice of p-norm MKL at p = 1.01."""
    chosen, tried = choose(run, name, place, methods, options=as_judged(run.size["online"]))
    chosen |= {method: chosen["LpMKL"] | {"p": 1.01} for method in more}
    chosen = trained_longest(run, chosen)
    seeds = run.seeds(run.size[name])
    runs = compare(run, name, place, list(chosen), chosen, seeds)
    tables = {"": rivals.with_ratios(runs, ["n_train"]), "runs": runs, "choice": tried}
    note = (
        f"18 kernels, {len(seeds)} splits, error_sd: standard deviation over them; batch methods stop at a "
        f"certified gap of 5%{rivals.edges(tried)}"
    )
    row = "scenes" if name == "scene15" else name
    save(run, f"thesis-fig-4.9-{row}", place, tables, note, shows="accuracy of all methods")


@accuracy_on_leaves.title
def _(results):
    error = results.table("thesis-fig-4.9-leaves").set_index("method")["error"].sort_values()
    return f"""
On leaves of 100 species errors go from {error.iloc[0]:.1%} ({name_of(error.index[0])}) to
{error.iloc[-1]:.1%} ({name_of(error.index[-1])})."""


@accuracy_on_leaves.see
def _(results):
    error = results.table("thesis-fig-4.9-leaves").set_index("method")["error"]
    return f"Errors: {listed(error, '.1%')}."


@figure("thesis-fig-4.9-scenes")
def accuracy_on_scenes(run):
    """With DATA=original: do the methods differ on fifteen scenes with three cues of unknown kinds?"""
    if run.data_tier != "original":
        return
    try:
        data = load_original("scene15").provenance
    except DataFileError as error:
        print(error)
        return
    n_train = run.size["scene15"]["n_train"]
    place = Place("scene15-18", n_train, data, "photographs of 15 kinds of scenes")
    _accuracy_of_tables(run, "scene15", place, [*EVERYONE, "OM2"], ["LpMKL sparse"])


@accuracy_on_scenes.title
def _(results):
    error = results.table("thesis-fig-4.9-scenes").set_index("method")["error"].sort_values()
    return f"""
On fifteen scenes errors go from {error.iloc[0]:.0%} ({name_of(error.index[0])}) to {error.iloc[-1]:.0%}
({name_of(error.index[-1])})."""


def _save_accuracy(run, name, place, runs, printed=None):
    """Of the best, the median and the worst cue, and all methods: accuracy, seconds, what was chosen.

    `printed` are the papers' accuracies of the best and the worst cue.
    """
    cues = _cues_in_order(run, place)
    three = cues.iloc[[0, len(cues) // 2, -1]]
    three.index = [f"SVM, one cue: the {rank} of 39 in these tests" for rank in ("best", "median", "worst")]
    named = runs.assign(method=[name_of(method) for method in runs["method"]])
    more = named.groupby("method").agg(seconds=("seconds", "mean"), chosen=("chosen", "first"))
    accuracy = pd.concat([three, rivals.with_intervals(named, "method").join(more)]).rename_axis("method")
    paper = None if printed is None else pd.DataFrame({"accuracy": printed}, accuracy.index[[0, 2]])
    note = (
        f"accuracy [%], mean and 95% interval over {runs['seed'].nunique()} splits (one cue: "
        f"{run.size['seeds']}); 39 kernels. The paper: Caltech-101, 30 images of each of 102 categories"
    )
    about = {"shows": "accuracy of all methods", "paper": paper}
    save(run, f"thesis-fig-4.9-{name}", place, accuracy, note, **about)


def _best(table):
    """The best accuracies in words; above the methods are three cues."""
    accuracy = table.set_index("method")["accuracy"]
    methods = accuracy.iloc[3:].filter(regex=f"(?<!{rivals.SMALLER})$")
    average = accuracy[name_of("AverageKernelSVM")]
    return f"""the best cue names {accuracy.iloc[0]:.0f}%, the average kernel {average:.0f}%, the best method
({methods.idxmax()}) {methods.max():.0f}%"""


@figure("thesis-fig-4.9-objects")
def accuracy_on_objects(run):
    """How many of the objects does each method name, and how many the best cue?"""
    _save_accuracy(run, "objects", tasks_of(run).objects, at_most_objects(run), [69.4, 13.5])


@accuracy_on_objects.title
def _(results):
    return f"Of the objects {_best(results.table('thesis-fig-4.9-objects'))}."


@accuracy_on_objects.see
def _(results):
    table = results.table("thesis-fig-4.9-objects")
    worst = table["accuracy"].iloc[2]
    printed = table["paper: accuracy"].max()
    return f"The worst single cue names {worst:.0f}%. On Caltech-101 the best cue names {printed:.1f}%."


@figure("thesis-fig-4.9-categories")
def accuracy_on_categories(run):
    """How many pictures of things never seen does each method put into the right category?"""
    place = tasks_of(run).categories
    methods = [*EVERYONE, "OM2"]
    chosen, _ = choose(run, "categories", place, methods, options=as_judged(run.size["online"]))
    seeds = run.seeds(run.size["categories"])
    chosen = trained_longest(run, chosen)
    runs = compare(run, "categories", place, list(chosen), chosen, seeds)
    _save_accuracy(run, "categories", place, runs)


@accuracy_on_categories.title
def _(results):
    return f"Of things never seen {_best(results.table('thesis-fig-4.9-categories'))}."


@accuracy_on_categories.see
def _(results):
    accuracy = results.table("thesis-fig-4.9-categories")["accuracy"]
    return f"The median cue names {accuracy.iloc[1]:.0f}%, the worst {accuracy.iloc[:3].min():.0f}%."


@figure("thesis-fig-4.9-right", claims=["obs-6", "obs-13", "ufo-5"])
def errors_of_all_methods(run):
    """With many redundant kernels, which methods have the lowest error?"""
    place = tasks_of(run).objects
    table = at_most_objects(run).reset_index(drop=True)
    drawing = draw.accuracies(table)
    save(run, "thesis-fig-4.9-right", place, table, "39 kernels", drawing, shows="accuracy of all methods")


@errors_of_all_methods.title
def _(results):
    error = 100 * mean_error(results.table("thesis-fig-4.9-right"))
    return f"""
OBSCURE errs on {error["OBSCURE"]:.1f}% of the objects, LP-beta on {error["LPBeta"]:.1f}%, the average
kernel on {error["AverageKernelSVM"]:.1f}%, SILP on {error["SILPMKL"]:.1f}%."""


@errors_of_all_methods.see
def _(results):
    error = mean_error(results.table("thesis-fig-4.9-right")).sort_values()
    average = error.pop("AverageKernelSVM")
    return f"""
The lowest errors: {listed(error.head(3), ".1%")}. The plain average of all kernels, which learns no weights,
errs on {average:.1%}; {(error > average).sum()} of the {error.size} others have a higher error."""
