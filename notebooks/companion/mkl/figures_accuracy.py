"""Figures of the MKL chapter on accuracy: single cues, all methods, growing training sets, learning online,
and what p does.
"""

from functools import cache, partial
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import gmean

from companion import pictures
from companion.mkl import described_pictures, kernels_among, mistaken, rivals
from companion.mkl.claims import LEVEL, SETTLED, SPARSE, errors_of_learners
from companion.mkl.runs import online_run, optimum, two_stages
from companion.originals import load_original
from companion.plots import mkl as draw
from companion.plots.common import intervals
from companion.protocol import FIRST_STAGE, original, where
from companion.run.figures import enumerated, name_of
from companion.run.records import row_of
from companion.run.registry import figure
from companion.study import at_edges, interval
from cuelearn import datasets

ALL = 10_000  # test samples: as many as there are
RIVALS = ("SILPMKL", "LpMKL", "MCMKL", "LPBeta")
EVERYONE = ("OBSCURE", "OBSCURE online", "UFOMKL", *RIVALS, "AverageKernelSVM")
FEW_CLASSES = ("flowers", "pendigits", "mnist", "scene15", "mfeat", "htad")


class Place(NamedTuple):
    """Where methods are compared: a task, its samples, the data it is made of, and in words what it is."""

    task: str
    n_train: int | str
    data: object
    text: str
    n_test: int = ALL
    n_jobs: int | None = None

    @property
    def fixed(self):
        """What is the same at all points of a sweep."""
        return {"task": self.task, "n_train": self.n_train, "n_test": self.n_test}


def of_sizes(place, sizes):
    """The place for a figure of several training sizes."""
    return place._replace(n_train=f"{min(sizes)} to {max(sizes)}")


@cache
def tasks_of(run):
    """The tasks on emoji."""
    size = run.size
    n_things = size["objects"]["n_classes"]
    n_groups = size["categories"]["n_classes"]
    described_pictures("objects", n_things, n_jobs=run.n_jobs)
    described_pictures("categories", n_groups, n_jobs=run.n_jobs)
    emoji = pictures.emoji().provenance
    things = f"emoji, {n_things} things, split by drawing"
    groups = f"emoji, {n_groups} subgroups of Unicode's, tested on things never seen"
    n = size["cues"]
    digits = datasets.load_mfeat().provenance
    activities = datasets.load_htad().provenance
    return SimpleNamespace(
        n_things=n_things,
        objects=Place(f"objects-{n_things}", size["objects"]["n_train"], emoji, things),
        categories=Place(f"categories-{n_groups}", size["categories"]["n_train"], emoji, groups),
        informs=(
            Place("mfeat-6", n["mfeat"], digits, "handwritten digits, six cues"),
            Place("htad-2", n["htad"], activities, "activities at home, two cues"),
        ),
        different=Place(f"different-{n_groups}", n["different"], emoji, f"{groups}, six cues"),
        pyramid=Place(f"pyramid-{n_things}", n["pyramid"], emoji, f"{things}, four cues"),
    )


@cache
def objects_or_flowers(run):
    """Objects; with DATA=original Flowers-17, in one process: each would describe its photographs."""
    size = run.size["flowers"]
    if run.data_tier == "original":
        if pictures.have_flowers():
            data = load_original("flowers17").provenance
            return Place("flowers-7", 1020, data, data.name, size["n_test"], n_jobs=1)
        print("CUELEARN_DATA names no directory with flowers17/ in it: emoji in its place")
    return tasks_of(run).objects._replace(n_train=size["n_train"], n_test=size["n_test"])


def choose(run, name, place, methods, seed=None, **options):
    """What cross-validation chooses for each method on one split, and all that was tried."""
    size = run.size["choose"]
    every = 1 if place.task.startswith(FEW_CLASSES) else size["every"]
    n_train = place.n_train
    if place.task.startswith(("pendigits", "mnist", "mfeat", "htad")):
        n_train = min(n_train, size["n_train"])
    common = {"n_folds": size["n_folds"], "every": every, "grids": size["grids"], "data": place.data}
    sweep = run.sweep(f"choose-{name}", place.n_jobs)
    seed = run.seed if seed is None else seed
    return rivals.choose(sweep, place.task, n_train, methods, seed, **common | options)


def compare(run, name, place, methods, chosen, seeds, sizes=None):
    """Methods with their chosen parameters on the place's samples, or on sets of several `sizes`."""
    setting = (place.task, [place.n_train] if sizes is None else sizes, place.n_test)
    sweep = partial(run.sweep, n_jobs=place.n_jobs)
    return rivals.compare_all(sweep, name, *setting, methods, chosen, seeds, data=place.data)


def as_judged(size):
    """Online learners are validated after as many epochs as they are judged after."""
    epochs = dict.fromkeys(rivals.ONLINE, size["judged"]) | {"OMCL-PERC": max(size["omcl_epochs"])}
    return {method: {"n_epochs": n} for method, n in epochs.items()}


def trained(run, chosen):
    """The same choice, OM-2 with the epochs after which it is judged."""
    return chosen | {"OM2": chosen["OM2"] | {"n_epochs": run.size["online"]["judged"]}}


@cache
def chosen_for_objects(run):
    methods = [*EVERYONE, "OM2"]
    return choose(run, "objects", tasks_of(run).objects, methods, options=as_judged(run.size["online"]))


def with_the_papers(chosen):
    """The same choice, also with p-norm MKL at the papers' p."""
    return chosen | {"LpMKL sparse": chosen["LpMKL"] | {"p": SPARSE}}


@cache
def against_sizes(run):
    """All methods on growing sets of objects, one after the other at each point; dearest first. With as many
    drawings as there are SILP also at larger C."""
    size = run.size["sizes"]
    place = tasks_of(run).objects
    chosen = with_the_papers(trained(run, chosen_for_objects(run)[0]))
    chosen |= {"OBSCURE steps": chosen["OBSCURE"]}
    together = list(chosen)
    chosen = rivals.with_larger_C(chosen)
    quickest = ["OBSCURE", "OBSCURE online", "UFOMKL", "OM2", "AverageKernelSVM"]
    fewer = [n for n in size["n_train"] if n <= size["rivals_up_to"] and n != place.n_train]
    beyond = [n for n in size["n_train"] if n > size["rivals_up_to"]]
    parts = (([place.n_train], list(chosen)), (fewer, together), (beyond, quickest))
    seeds = run.seeds(size)
    tables = [
        compare(run, "sizes", place, methods, chosen, seeds, sizes) for sizes, methods in parts if sizes
    ]
    return pd.concat(tables, ignore_index=True)


def settled(run, chosen):
    """The same choice to the gap `SETTLED`, OBSCURE also in the authors' epochs."""
    chosen = with_the_papers(trained(run, chosen)) | {"OBSCURE 300": chosen["OBSCURE"]}
    return rivals.certified(chosen, SETTLED)


@cache
def at_most_objects(run):
    """Errors of all methods with as many drawings as there are to train from."""
    chosen = settled(run, chosen_for_objects(run)[0])
    seeds = run.seeds(run.size["tables"])
    return compare(run, "errors", tasks_of(run).objects, list(chosen), chosen, seeds)


@cache
def every_cue_alone(run):
    """An SVM on each cue, and on their average, C by cross-validation: objects and categories."""
    size = run.size["alone"]
    tasks = tasks_of(run)
    places = (tasks.objects, tasks.categories)
    more = {"C": size["C"], "n_folds": run.size["choose"]["n_folds"], "seed": run.seed}
    data = tasks.objects.data
    points = [{"task": place.task, "n_train": place.n_train, **more} for place in places]
    chosen = run.sweep("alone-parameters").run(rivals.choose_alone, points, data=data)
    points = [
        {**place.fixed, "chosen": parameters, "seed": seed}
        for place, parameters in zip(places, chosen, strict=True)
        for seed in run.seeds(run.size)
    ]
    return run.sweep("alone").frame(rivals.each_alone, points, data=data)


def against_optimum(run, name, place, params, seeds, n_epochs):
    """Curves of methods with their parameters, and how far they are from their certified optimum."""
    sweep = run.sweep(name, place.n_jobs)
    until = {"n_epochs": n_epochs, "tol": 0.008, "data": place.data}  # below 1%, where work is compared
    curves = rivals.curves_of(sweep, *place.fixed.values(), list(params), params, seeds, **until)
    problem = {"task": place.task, "n_train": place.n_train, **params["OBSCURE"]}
    points = [{**problem, "seed": seed} for seed in seeds]
    exact = run.sweep(f"{name}-optimum", place.n_jobs).frame(optimum, points, data=place.data)
    return rivals.against_bounds(curves, exact)


def save(run, name, places, tables, note, drawing=None, **about):
    """Save a figure, or a table where nothing is drawn, by its row of the catalogue and its suffix."""
    places = [places] if isinstance(places, Place) else places
    provenance = list({id(place.data): place.data for place in places}.values())
    texts = [f"{place.text}, n = {place.n_train}" for place in places]
    row = row_of(name)
    suffix = name.removeprefix(row).removeprefix("-") or None
    about = {"provenance": provenance, "note": "; ".join([*texts, note]), **about}
    if drawing is None:
        run.save_table(tables, row, suffix, **about)
    else:
        run.save_figure(drawing, row, tables, suffix, **about)


def at_end(table, columns, *by):
    """Means over the seeds of what runs end with."""
    return table.groupby([*by, "seed"])[columns].last().groupby(list(by)).mean()


def mean_error(table):
    return table.groupby("method", sort=False)["test_error"].mean()


def minus(table, baseline):
    """Of every other method the test error minus the baseline's in points: mean and 95% interval."""
    errors = 100 * table.pivot(index="seed", columns="method", values="test_error")
    return intervals(errors.drop(columns=baseline).sub(errors[baseline], axis=0))


def least(error):
    """The least of errors by p, in words."""
    return f"{error.min():.1%} at $p = {error.idxmin():g}$"


def listed(values, form=".0%"):
    """Numbers of methods in words."""
    return "; ".join(f"{name_of(method)} {value:{form}}" for method, value in values.items())


# --- accuracy -----------------------------------------------------------------------------------------------

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
On new drawings the best single cue has an error of {least:.0%}, the plain average of all {n} kernels
{error[average]:.0%}.""")
confused_things.see("""
The mistakes of a cue show what it looks at. Backgrounds have random colours: the error of
colour alone is {error[HSV 2x2]:.0%}. The best single cue is *{best}*.""")


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
    return {
        "C": C.agg(["min", "max"]),
        "at_end": chosen["edge"].notna().sum(),
        "n": len(chosen),
        "values": listed(C, "g"),
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
    table = runs[runs["method"].map(rivals.plain).isin(methods)]
    drawn = table[table["method"].isin(methods)]
    save(run, row, place, table, "39 kernels in memory", draw.growing_sets(drawn))
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
        "minus": minus(where(table, n_train=n), "OBSCURE")["number"],
        "sizes": sizes,
        "errors": {end: listed(mean_error(where(table, n_train=n))) for end, n in sizes.items()},
    }


growing_sets.title("""
With {n:,} samples OBSCURE takes {ratio:.2g} times SILP's CPU seconds; SILP's error minus OBSCURE's is
{minus[SILPMKL]:+.1f} points, LP-beta's {minus[LPBeta]:+.1f}.""")
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
    points = minus(where(results.table(), n_train=n), "OBSCURE")["number"]
    return {"n": n, "ratio": ratio, "ratios": listed(ratio.drop("OBSCURE"), ".2g"), "minus": points}


more_methods.title("""
With {n:,} samples SILP takes {ratio[SILPMKL]:.2g} times OBSCURE's CPU seconds, the SVM on the average kernel
{ratio[AverageKernelSVM]:.2g} times; their errors minus OBSCURE's are {minus[SILPMKL]:+.1f} and
{minus[AverageKernelSVM]:+.1f} points.""")
more_methods.see("Seconds as multiples of OBSCURE's with {n:,} samples: {ratios}.")


@figure("thesis-fig-4.9-leaves")
def on_leaves(run):
    """Do the methods differ on a hundred species of leaves, where nearly all kernels are redundant?"""
    data = datasets.load_leaves().provenance
    methods = ["OBSCURE", "UFOMKL", "OM2", "SILPMKL", "LpMKL", "AverageKernelSVM"]
    place = Place("leaves-18", run.size["leaves"]["n_train"], data, "100 species of leaves")
    _save_errors(run, "thesis-fig-4.9-leaves", place, *_compared(run, "leaves", place, methods))


def _compared(run, name, place, methods, form=trained):
    """Runs of all methods in the given form, and all that was tried."""
    chosen, tried = choose(run, name, place, methods, options=as_judged(run.size["online"]))
    chosen = form(run, chosen)
    return compare(run, name, place, list(chosen), chosen, run.seeds(run.size[name])), tried


def _save_errors(run, name, place, runs, tried, gap=0.05):
    """Errors and seconds of all methods on leaves or scenes."""
    tables = {"": rivals.with_ratios(runs, ["n_train"]), "runs": runs, "choice": tried}
    note = (
        f"18 kernels, {runs['seed'].nunique()} splits, error_sd: standard deviation over them; batch methods "
        f"stop at a certified gap of {100 * gap:g}%{rivals.edges(tried)}"
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
    data = original(run, "scene15")
    if data is None:
        return
    n_train = run.size["scene15"]["n_train"]
    place = Place("scene15-18", n_train, data.provenance, "photographs of 15 kinds of scenes")
    compared = _compared(run, "scene15", place, [*EVERYONE, "OM2"], settled)
    _save_errors(run, "thesis-fig-4.9-scenes", place, *compared, SETTLED)


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
    methods = accuracy.iloc[3:]
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
    table = at_most_objects(run)
    note = f"39 kernels; errors at a certified gap of {100 * SETTLED:g}%"
    save(run, "thesis-fig-4.9-right", place, table, note, draw.accuracies(table))


@all_methods.facts
def _(results):
    table = results.table()
    others = minus(table, "OBSCURE")
    seconds = table.pivot(index="seed", columns="method", values="seconds")
    return {
        "error": mean_error(table)["OBSCURE"],
        "minus": others["number"],
        "n": len(others),
        "worse": (others["low"] > 0.0).sum(),
        "better": (others["high"] < 0.0).sum() or "none",
        "lowest": listed(mean_error(table).sort_values().head(3), ".1%"),
        "times": gmean(seconds["AverageKernelSVM"] / seconds["OBSCURE"]),
    }


all_methods.title("""
On objects the error of OBSCURE is {error:.1%}; on the same splits it is certainly better than {worse} of {n}
others and worse than {better}.""")
all_methods.see("""
Each difference is taken on the same splits, so what makes a split hard for every method cancels. The lowest
errors: {lowest}. The error of the plain average, which learns no weights, minus OBSCURE's is
{minus[AverageKernelSVM]:+.1f} points; it takes {times:.2g} times OBSCURE's CPU seconds.""")


# --- learning online ----------------------------------------------------------------------------------------

#: The p that the thesis found best on its own data, by the first word of our task.
BEST_P = {"mfeat": 2.0, "htad": 2.0, "pyramid": 1.10}


def places_against_p(run):
    """Cues that all inform: on tables, and on categories of things never seen; redundant cues."""
    tasks = tasks_of(run)
    return [*tasks.informs, tasks.different, tasks.pyramid]


def name_of_cues(task):
    return draw.CUES[task.split("-")[0]]


def short_name(task):
    return name_of_cues(task).split(",")[0]


def _errors_by_p(table):
    """The p of the least mean error on each set; with this error, and how much p matters."""
    best = []
    errors = []
    for task, part in table.groupby("task", sort=False):
        error = part.groupby("p")["test_error"].mean()
        best.append(f"{error.idxmin():g} ({short_name(task)})")
        errors.append(f"on {name_of_cues(task)}, {least(error)} ({error.max():.1%} at the worst $p$)")
    return {"best_p": enumerated(best), "errors": "; ".join(errors)}


@figure("thesis-fig-4.2", claims=["om2-2", "om2-3"])
def online_against_p(run):
    """Which p is best for OM-2, with and without redundant cues, and at which is it fastest?"""
    size = run.size["p_sweep"]
    places = places_against_p(run)
    epochs = {"n_epochs": size["n_epochs"], "most_epochs": size["most_epochs"]}
    points = [
        {**place.fixed, "p": p, "seed": seed, **epochs}
        for place in places
        for seed in run.seeds(size)
        for p in size["p_grid"]
    ]
    table = run.sweep("p").frame(online_run, points, data=[place.data for place in places])
    done = table.groupby(["task", "p"])["converged"].transform("all")
    drawn = table.assign(method="OM2", updates=table["updates"].where(done))
    drawing = draw.against_p(drawn, BEST_P)
    paper = {f"best p, {name_of_cues(name)} (the thesis: other data)": p for name, p in BEST_P.items()}
    note = (
        f"errors after {size['n_epochs']} epochs; updates to convergence where all runs converge, in "
        f"{size['most_epochs']} epochs at most"
    )
    save(run, "thesis-fig-4.2", places, table, note, drawing, paper=paper)


@online_against_p.facts
def _(results):
    table = results.table()
    done = table[table.groupby(["task", "p"])["converged"].transform("all")]
    updates = done.groupby(["task", "p"], sort=False)["updates"].mean().groupby("task", sort=False)
    more = updates.first() / updates.last()
    times = "; ".join(f"{name_of_cues(task)} {ratio:.2g}" for task, ratio in more.items())
    return {**_errors_by_p(table), "theirs": BEST_P, "times": times}


online_against_p.title("OM-2 has its lowest error at p = {best_p}.")
online_against_p.see("""
OM-2's lowest errors: {errors}. The thesis found $p = {theirs[mfeat]:g}$ best on its places and
{theirs[pyramid]:g} on its pyramid. At the smallest $p$ at which all runs converge, the updates are these
multiples of those at the largest $p$: {times}.""")


@figure("jmlr-fig-4")
def both_stages_against_p(run):
    """At which p does OBSCURE's batch stage, run to a certified gap, lower the error, and at what cost?"""
    size = run.size["obscure_p"]
    places = places_against_p(run)
    common = {name: size[name] for name in ("n_epochs", "tol")}
    points = []
    chosen = []
    for place in places:
        params, tried = choose(run, place.task, place, ["OBSCURE"])
        C = params["OBSCURE"]["C"]
        chosen.append(f"{name_of_cues(place.task)} {C:g}{rivals.edges(tried)}")
        points += [
            {**place.fixed, "p": p, "seed": seed, "C": C, **common}
            for seed in run.seeds(size)
            for p in size["p_grid"]
        ]
    table = run.sweep("p-obscure").frame(two_stages, points, data=[place.data for place in places])
    note = (
        f"C by cross-validation: {', '.join(chosen)}; online stage of at most "
        f"{FIRST_STAGE['n_epochs_online']} epochs, batch stage to a certified gap of {size['tol']:.0%}"
    )
    save(run, "jmlr-fig-4", places, table, note, draw.batch_stage(table))


@both_stages_against_p.facts
def _(results):
    table = results.table()
    table = table.assign(change=100 * (table["test_error"] - table["online_error"]))
    change = table.groupby("task", sort=False)["change"].mean()
    changes = enumerated([f"{points:+z.1f} on {short_name(task)}" for task, points in change.items()])
    times = (table["rows"] / table["online_rows"]).groupby([table["task"], table["p"]]).mean()
    return {**_errors_by_p(table), "changes": changes, "times": times.agg(["min", "max"])}


both_stages_against_p.title("""
In the mean over p OBSCURE's batch stage changes the test error of the online stage by these points:
{changes}.""")
both_stages_against_p.see("""
With the batch stage OBSCURE reads {times[min]:.0f} to {times[max]:.0f} times as many kernel rows. Its lowest
errors: {errors}.""")


def _pass_by_pass(run, name, place, size, with_all_epochs):
    """The first pass on all splits (OMCL on fewer); on the splits `with_all_epochs` tests after more epochs,
    and SILP. On each split parameters are chosen after one pass for the pass, after the epochs that are
    judged for the tests. Two tables, and all that was tried."""
    splits = run.seeds(size)
    points = []
    tried = []
    for seed in splits:
        epochs = {method: list(size["epochs"]) for method in rivals.ONLINE}
        if seed in splits[: size["omcl_seeds"]]:
            epochs["OMCL-PERC"] = list(size["omcl_epochs"])
        else:
            del epochs["OMCL-PERC"]
        choices = [choose(run, name, place, list(epochs), seed)]
        batch = {}
        if seed in with_all_epochs:
            choices.append(choose(run, name, place, [*epochs, "SILPMKL"], seed, options=as_judged(size)))
            batch = rivals.with_larger_C({"SILPMKL": choices[1][0]["SILPMKL"]})
        else:
            epochs = dict.fromkeys(epochs, [])
        first, later = choices[0][0], choices[-1][0]
        learners = [[method, first[method], later[method], at] for method, at in epochs.items()]
        points.append({**place.fixed, "seed": seed, "learners": learners, "batch": batch})
        for what, (_, table) in zip(("online", "test"), choices, strict=False):
            tried.append(table.assign(what=what, seed=seed))
    table = run.sweep(name).frame(rivals.online_curves, points, data=place.data)
    table = table.drop(columns=["learners", "batch"])
    is_batch = table["what"] == "batch"
    curves, batch = (rows.dropna(axis=1, how="all") for rows in (table[~is_batch], table[is_batch]))
    return curves, batch, pd.concat(tried, ignore_index=True)


@figure("thesis-fig-4.3", claims=["om2-4", "om2-5"])
def online_on_objects(run):
    """Online, does OM-2 make fewer mistakes than its rivals, and does it reach the error of batch MKL?"""
    place = tasks_of(run).objects
    whole = run.seeds(run.size["tables"])
    online, silp, tried = _pass_by_pass(run, "online", place, run.size["online"], whole)
    lp_beta = where(at_most_objects(run), method="LPBeta").assign(task=place.task)
    batch = pd.concat([silp, lp_beta])
    paper = {
        "best p": 1.01,
        "epochs until OM-2 is as good as SILP": LEVEL,
        "minutes of OM-2's 150 epochs": 15,
        "minutes of SILP and of LP-beta, more than": 120,
    }
    drawing = draw.online_panels(online, batch, LEVEL)
    note = f"39 kernels; parameters by cross-validation on each split{rivals.edges(tried)}"
    tables = {"": online, "batch": batch, "choice": tried}
    save(run, "thesis-fig-4.3", place, tables, note, drawing, paper=paper)


@online_on_objects.facts
def _(results):
    table = results.table().sort_values("at")
    first = at_end(where(table, what="online"), "error", "method")
    tests = where(table, what="test").rename(columns={"error": "test_error"})
    last = tests[tests["at"] == tests.groupby("method")["at"].transform("max")]
    ends = pd.concat([mean_error(last), mean_error(results.table("thesis-fig-4.3.batch"))])
    return {
        "n_epochs": tests["at"].max(),
        "error": ends,
        "of_pass": first,
        "first": listed(first),
        "ends": listed(ends),
    }


online_on_objects.title("""
After {n_epochs:.0f} epochs the error of OM-2 on new drawings is {error[OM2]:.0%}, that of SILP
{error[SILPMKL]:.0%}; in the first pass OM-2 makes {of_pass[OM2]:.0%} mistakes.""")
online_on_objects.see("""
Mistakes in the first pass: {first}. Errors on new drawings at the ends of the curves: {ends}.""")


@figure("thesis-fig-4.4", claims=["om2-6", "om2-9"])
def online_on_cues(run):
    """Where every cue is informative, is batch MKL worse than all online methods?"""
    size = run.size["online_cues"]
    places = tasks_of(run).informs
    tables = []
    for place in places:
        found = _pass_by_pass(run, f"online-{place.task}", place, size, run.seeds(size))
        tables.append([table.assign(task=place.task) for table in found])
    online, batch, tried = (pd.concat(parts, ignore_index=True) for parts in zip(*tables, strict=True))
    at_edge = {name_of_cues(task): rivals.edges(rows) for task, rows in tried.groupby("task", sort=False)}
    note = "parameters by cross-validation on each split"
    note += "".join(f"; {cues}{at}" for cues, at in at_edge.items() if at)
    tables = {"": online, "batch": batch, "choice": tried}
    shows = "differences of online and test errors where every cue informs (the thesis: place recognition)"
    about = {"paper": {"best p": BEST_P["mfeat"]}, "shows": shows}
    drawing = draw.learners(errors_of_learners(online, batch))
    save(run, "thesis-fig-4.4", places, tables, note, drawing, **about)


@online_on_cues.facts
def _(results):
    table = results.table()
    errors = errors_of_learners(table, results.table("thesis-fig-4.4.batch"))
    differences = []
    for cues, rows in errors.groupby("of", sort=False):
        points = interval(100 * (rows["test OM2"] - rows["test SILPMKL"]))
        limits = f"({points.low:+.1f} to {points.high:+.1f})"
        differences.append(f"{points.mean:+.1f} points {limits} on {short_name(cues)}")
    tests = where(table, what="test")
    last = tests[tests["at"] <= LEVEL].groupby("method")["at"].max()
    return {"epochs": last, "differences": enumerated(differences)}


online_on_cues.title("""
After {epochs[OM2]:.0f} epochs OM-2's test error minus SILP's is {differences}.""")
online_on_cues.see("""
Above, test errors after {epochs[OM2]:.0f} epochs, of OMCL after {epochs[OMCL-PERC]:.0f}, since its time grows
with their square. Below, the mistakes in the first pass.""")
