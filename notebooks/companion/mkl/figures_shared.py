"""What several figures of the MKL chapter share: tasks, chosen parameters, comparisons, numbers in words."""

from functools import cache, partial
from types import SimpleNamespace
from typing import NamedTuple

import pandas as pd

from companion import flowers, pictures
from companion.data.originals import load_original
from companion.mkl import rivals
from companion.mkl.runs import optimum
from companion.mkl.tasks import described_pictures
from companion.run.figures import method_style
from companion.run.records import row_of
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
        if flowers.have_flowers():
            data = load_original("flowers17").provenance
            return Place("flowers-7", 1020, data, data.name, size["n_test"], n_jobs=1)
        print("CUELEARN_DATA names no directory with flowers17/ in it: emoji in its place")
    return tasks_of(run).objects._replace(n_train=size["n_train"], n_test=size["n_test"])


def choose(run, name, place, methods, **options):
    """What cross-validation on the first split chooses for each method, and all that was tried."""
    size = run.size["choose"]
    every = 1 if place.task.startswith(FEW_CLASSES) else size["every"]
    n_train = place.n_train
    if place.task.startswith(("pendigits", "mnist", "mfeat", "htad")):
        n_train = min(n_train, size["n_train"])
    common = {"n_folds": size["n_folds"], "every": every, "grids": size["grids"], "data": place.data}
    sweep = run.sweep(f"choose-{name}", place.n_jobs)
    return rivals.choose(sweep, place.task, n_train, methods, run.seed, **common | options)


def compare(run, name, place, methods, chosen, seeds, sizes=None):
    """Methods with their chosen parameters on the place's samples, or on sets of several `sizes`."""
    setting = (place.task, [place.n_train] if sizes is None else sizes, place.n_test)
    sweep = partial(run.sweep, n_jobs=place.n_jobs)
    return rivals.compare_all(sweep, name, *setting, methods, chosen, seeds, data=place.data)


def as_judged(size):
    """Online learners are validated after as many epochs as they are judged after."""
    epochs = dict.fromkeys(rivals.ONLINE, max(size["epochs"])) | {"OMCL-PERC": max(size["omcl_epochs"])}
    return {method: {"n_epochs": n} for method, n in epochs.items()}


def trained_longest(run, chosen):
    """The same choice, OM-2 with as many epochs as the figures of its curves have."""
    return chosen | {"OM2": chosen["OM2"] | {"n_epochs": max(run.size["online"]["epochs"])}}


@cache
def chosen_for_objects(run):
    methods = [*EVERYONE, *rivals.ONLINE]
    return choose(run, "objects", tasks_of(run).objects, methods, options=as_judged(run.size["online"]))


@cache
def against_sizes(run):
    """All methods on growing sets of objects, one after the other at each point; dearest first.

    Among them are the papers' p-norm MKL, p = 1.01 for Kloft's 1.02, and methods at C below the papers' grid.
    """
    size = run.size["sizes"]
    place = tasks_of(run).objects
    chosen, _ = chosen_for_objects(run)
    chosen = trained_longest(run, chosen)
    smaller = [m for m in chosen if m.endswith(rivals.SMALLER) and rivals.plain(m) not in rivals.ONLINE]
    chosen |= {"LpMKL sparse": chosen["LpMKL"] | {"p": 1.01}, "OBSCURE steps": chosen["OBSCURE"]}
    together = [*EVERYONE, "OBSCURE steps", "OM2", "LpMKL sparse", *smaller]
    quickest = ["OBSCURE", "OBSCURE online", "UFOMKL", "OM2", "AverageKernelSVM"]
    fewer = [n for n in size["n_train"] if n <= size["rivals_up_to"] and n != place.n_train]
    beyond = [n for n in size["n_train"] if n > size["rivals_up_to"]]
    parts = (
        ([place.n_train], together, run.seeds(run.size["tables"])),
        (fewer, together, run.seeds(size)),
        (beyond, quickest, run.seeds(size)),
    )
    tables = [
        compare(run, "sizes", place, methods, chosen, seeds, sizes)
        for sizes, methods, seeds in parts
        if sizes
    ]
    return pd.concat(tables, ignore_index=True)


def at_most_objects(run):
    """Of all methods, the splits with as many drawings as there are to train from."""
    table = against_sizes(run)
    return table[table["n_train"] == tasks_of(run).objects.n_train]


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
    """Mean test error of each method."""
    return table.groupby("method", sort=False)["test_error"].mean()


def least(error):
    """The least of errors by p, in words."""
    return f"{error.min():.1%} at $p = {error.idxmin():g}$"


def name_of(method):
    """A method as figures name it."""
    return method_style(method)["label"]


def listed(values, form=".0%"):
    """Numbers of methods in words."""
    return "; ".join(f"{name_of(method)} {value:{form}}" for method, value in values.items())
