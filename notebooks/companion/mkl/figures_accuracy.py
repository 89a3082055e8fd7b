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
from companion.protocol import where
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
def confused_things(run):
    """What does each cue take a new drawing for?"""
    tasks = tasks_of(run)
    place = tasks.objects
    alone = where(every_cue_alone(run), task=place.task, seed=run.seed).set_index("cue")
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


@confused_things.facts
def _(results):
    error = results.table("thesis-fig-4.3-things.errors").set_index("cue")["test_error"]
    single = error.drop("average")
    return {"error": error, "least": single.min(), "best": single.idxmin(), "n": single.size}


confused_things.title("""
The best single cue errs on {least:.0%} of the new drawings, the plain average of all {n} on
{error[average]:.0%}.""")
confused_things.see("""
The mistakes of a cue show what it looks at. Backgrounds have random colours: colour alone errs on
{error[HSV 2x2]:.0%}. The best single cue is *{best}*.""")


@figure("thesis-fig-4.9-cues")
def single_cues(run):
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
    alone = where(every_cue_alone(run), task=place.task).query("cue != 'average'")
    return rivals.with_intervals(alone, "cue").sort_values("accuracy", ascending=False)


@single_cues.facts
def _(results):
    table = results.table().set_index("cue")
    objects = table["objects: accuracy"].agg(["idxmax", "max", "min"])
    categories = table["categories: accuracy"].agg(["idxmax", "max", "min"])
    return {"n": len(table), "objects": objects, "categories": categories}


single_cues.title("""
The best of {n} cues names {objects[max]:.0f}% of the objects and {categories[max]:.0f}% of the categories of
things never seen.""")
single_cues.see("""
The best cue for the objects is *{objects[idxmax]}*; the worst names {objects[min]:.0f}%. The best for the
categories is *{categories[idxmax]}*; the worst names {categories[min]:.0f}%.""")


@figure("thesis-fig-4.7-choice")
def parameters(run):
    """Which parameters does cross-validation choose for each method?"""
    place = tasks_of(run).objects
    _, tried = chosen_for_objects(run)
    note = f"cross-validated accuracy of every point tried; chosen ones marked{rivals.edges(tried)}"
    shows = "parameters of all methods, tried by cross-validation"
    save(run, "thesis-fig-4.7-choice", place, tried, note, shows=shows)


@parameters.facts
def _(results):
    table = results.table()
    chosen = table[table["chosen"]].set_index("method")
    C = chosen["C"].dropna()
    by_method = C[~C.index.str.endswith(rivals.SMALLER)]  # their C is in their names
    return {
        "C": C.agg(["min", "max"]),
        "at_end": chosen["edge"].notna().sum(),
        "n": len(chosen),
        "values": listed(by_method, "g"),
    }


parameters.title("""
Cross-validation chooses C from {C[min]:g} to {C[max]:g}; {at_end} of {n} choices are at an end of the
grid.""")
parameters.see("Chosen values of C: {values}. The other parameters are in the table.")


def _against_size(run, row, methods):
    """Time and error of some methods on growing sets, on the splits that all sizes have.

    Returns the place, and these runs of all methods.
    """
    size = run.size["sizes"]
    place = of_sizes(tasks_of(run).objects, size["n_train"])
    runs = against_sizes(run)
    runs = runs[runs["seed"].isin(run.seeds(size))].sort_values("n_train", kind="stable")
    table = runs[runs["method"].isin(methods)]
    drawing = draw.against(table, ("n_train", "seconds"), ("n_train", "test_error"))
    save(run, row, place, table, "39 kernels in memory", drawing)
    return place, runs


@figure("thesis-fig-4.7", claims="obs-11")
def growing_sets(run):
    """How do training time and error grow with the training set?"""
    methods = ["OBSCURE", "OBSCURE steps", "SILPMKL", "LpMKL", "MCMKL", "LPBeta", "AverageKernelSVM"]
    _against_size(run, "thesis-fig-4.7", methods)


@growing_sets.facts
def _(results):
    table = results.table()
    n = where(table, method="SILPMKL")["n_train"].max()
    last = where(table, n_train=n).pivot(index="seed", columns="method")
    sizes = table["n_train"].agg(["min", "max"])
    return {
        "n": n,
        "ratio": gmean(last["seconds"]["OBSCURE"] / last["seconds"]["SILPMKL"]),
        "error": last["test_error"].mean(),
        "sizes": sizes,
        "errors": {end: listed(mean_error(where(table, n_train=n))) for end, n in sizes.items()},
    }


growing_sets.title("""
With {n:,} samples OBSCURE takes {ratio:.2g} times SILP's CPU seconds; it errs on {error[OBSCURE]:.0%}, SILP
on {error[SILPMKL]:.0%}.""")
growing_sets.see("""
Errors with {sizes[min]:,} samples: {errors[min]}. Errors with {sizes[max]:,} samples: {errors[max]}.""")


@figure("jmlr-fig-6")
def more_methods(run):
    """How do time and error grow for more methods, such as OBSCURE's online stage alone?"""
    methods = ["OBSCURE", "OBSCURE online", "SILPMKL", "LpMKL", "LpMKL sparse", "MCMKL", "AverageKernelSVM"]
    place, runs = _against_size(run, "jmlr-fig-6", methods)
    note = "39 kernels in memory; seconds of one run; relative_gap: largest, of the method's own problem"
    save(run, "jmlr-fig-6-table", place, rivals.with_ratios(runs, ["n_train"]), note)


@more_methods.facts
def _(results):
    table = results.table("jmlr-fig-6-table")
    n = where(table, method="SILPMKL")["n_train"].max()  # the most that all methods have
    ratio = where(table, n_train=n).set_index("method")["times OBSCURE"]
    return {"n": n, "ratio": ratio, "ratios": listed(ratio.drop("OBSCURE"), ".2g")}


more_methods.title("""
With {n:,} samples SILP takes {ratio[SILPMKL]:.2g} times OBSCURE's CPU seconds, the SVM on the average kernel
{ratio[AverageKernelSVM]:.2g} times.""")
more_methods.see("Seconds as multiples of OBSCURE's with {n:,} samples: {ratios}.")


@figure("thesis-fig-4.9-leaves")
def on_leaves(run):
    """Do the methods differ on a hundred species of leaves, where nearly all kernels are redundant?"""
    data = datasets.load_leaves().provenance
    methods = ["OBSCURE", "UFOMKL", "OM2", "SILPMKL", "LpMKL", "AverageKernelSVM"]
    place = Place("leaves-18", run.size["leaves"]["n_train"], data, "100 species of leaves")
    _save_errors(run, "thesis-fig-4.9-leaves", place, *_compared(run, "leaves", place, methods))


def _compared(run, name, place, methods, more=()):
    """Runs of all methods, and all that was tried; `more` take over the choice of p-norm MKL at p = 1.01."""
    chosen, tried = choose(run, name, place, methods, options=as_judged(run.size["online"]))
    chosen |= {method: chosen["LpMKL"] | {"p": 1.01} for method in more}
    chosen = trained_longest(run, chosen)
    return compare(run, name, place, list(chosen), chosen, run.seeds(run.size[name])), tried


def _save_errors(run, name, place, runs, tried):
    """Errors and seconds of all methods on leaves or scenes."""
    tables = {"": rivals.with_ratios(runs, ["n_train"]), "runs": runs, "choice": tried}
    note = (
        f"18 kernels, {runs['seed'].nunique()} splits, error_sd: standard deviation over them; batch methods "
        f"stop at a certified gap of 5%{rivals.edges(tried)}"
    )
    save(run, name, place, tables, note, shows="accuracy of all methods")


def _errors(results):
    error = results.table().set_index("method")["error"]
    ends = error.rename(name_of).agg(["min", "idxmin", "max", "idxmax"])
    return {"ends": ends, "errors": listed(error, ".1%")}


on_leaves.facts(_errors)
on_leaves.title("""
On leaves of 100 species errors go from {ends[min]:.1%} ({ends[idxmin]}) to {ends[max]:.1%}
({ends[idxmax]}).""")
on_leaves.see("Errors: {errors}.")


@figure("thesis-fig-4.9-scenes")
def on_scenes(run):
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
    compared = _compared(run, "scene15", place, [*EVERYONE, "OM2"], ["LpMKL sparse"])
    _save_errors(run, "thesis-fig-4.9-scenes", place, *compared)


on_scenes.facts(_errors)
on_scenes.title("""
On fifteen scenes errors go from {ends[min]:.0%} ({ends[idxmin]}) to {ends[max]:.0%} ({ends[idxmax]}).""")


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


def _accuracies(results):
    """Accuracies of three cues, which stand above the methods, of the average kernel and the best method."""
    accuracy = results.table().set_index("method")["accuracy"]
    methods = accuracy.iloc[3:].filter(regex=f"(?<!{rivals.SMALLER})$")
    return {
        "cue": accuracy.iloc[:3].set_axis(["best", "median", "worst"]),
        "average": accuracy[name_of("AverageKernelSVM")],
        "best": methods.idxmax(),
        "most": methods.max(),
    }


ACCURACIES = """
the best cue names {cue[best]:.0f}%, the average kernel {average:.0f}%, the best method ({best})
{most:.0f}%."""


@figure("thesis-fig-4.9-objects")
def on_objects(run):
    """How many of the objects does each method name, and how many the best cue?"""
    _save_accuracy(run, "objects", tasks_of(run).objects, at_most_objects(run), [69.4, 13.5])


@on_objects.facts
def _(results):
    return {**_accuracies(results), "printed": results.table()["paper: accuracy"].max()}


on_objects.title(f"Of the objects {ACCURACIES}")
on_objects.see("""
The worst single cue names {cue[worst]:.0f}%. On Caltech-101 the best cue names {printed:.1f}%.""")


@figure("thesis-fig-4.9-categories")
def on_categories(run):
    """How many pictures of things never seen does each method put into the right category?"""
    place = tasks_of(run).categories
    runs, _ = _compared(run, "categories", place, [*EVERYONE, "OM2"])
    _save_accuracy(run, "categories", place, runs)


on_categories.facts(_accuracies)
on_categories.title(f"Of things never seen {ACCURACIES}")
on_categories.see("The median cue names {cue[median]:.0f}%, the worst {cue[worst]:.0f}%.")


@figure("thesis-fig-4.9-right", claims=["obs-6", "obs-13", "ufo-5"])
def all_methods(run):
    """With many redundant kernels, which methods have the lowest error?"""
    place = tasks_of(run).objects
    table = at_most_objects(run).reset_index(drop=True)
    drawing = draw.accuracies(table)
    save(run, "thesis-fig-4.9-right", place, table, "39 kernels", drawing, shows="accuracy of all methods")


@all_methods.facts
def _(results):
    error = mean_error(results.table()).sort_values()
    others = error.drop("AverageKernelSVM")
    return {
        "error": error,
        "lowest": listed(others.head(3), ".1%"),
        "worse": (others > error["AverageKernelSVM"]).sum(),
        "n": others.size,
    }


all_methods.title("""
OBSCURE errs on {error[OBSCURE]:.1%} of the objects, LP-beta on {error[LPBeta]:.1%}, the average kernel on
{error[AverageKernelSVM]:.1%}, SILP on {error[SILPMKL]:.1%}.""")
all_methods.see("""
The lowest errors: {lowest}. The plain average of all kernels, which learns no weights, errs on
{error[AverageKernelSVM]:.1%}; {worse} of the {n} others have a higher error.""")
