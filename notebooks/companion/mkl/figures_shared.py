"""What several figures of the MKL chapter share: tasks, chosen parameters, comparisons."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd

from companion import flowers, pictures
from companion.mkl import rivals
from companion.mkl.runs import optimum
from companion.mkl.tasks import described_pictures
from companion.run.figures import name_methods
from cuelearn import datasets

ALL = 10_000  # test samples: as many as there are
RIVALS = ("SILPMKL", "LpMKL", "MCMKL", "LPBeta")
EVERYONE = ("OBSCURE", "OBSCURE online", "UFOMKL", *RIVALS, "AverageKernelSVM")

name_methods(rivals.METHODS)  # a method that was added to the registry gets a style of its own


@cache
def tasks_of(run):
    """Names of the tasks on emoji, their training samples, and in words what they are."""
    size = run.size
    n_things = size["objects"]["n_classes"]
    n_groups = size["categories"]["n_classes"]
    described_pictures("objects", n_things, n_jobs=run.n_jobs)
    described_pictures("categories", n_groups, n_jobs=run.n_jobs)
    return SimpleNamespace(
        emoji=pictures.emoji().provenance,
        n_things=n_things,
        objects=f"objects-{n_things}",
        categories=f"categories-{n_groups}",
        different=f"different-{n_groups}",
        pyramid=f"pyramid-{n_groups}",
        n_objects=size["objects"]["n_train"],
        n_categories=size["categories"]["n_train"],
        things_are=f"emoji, {n_things} things, split by drawing",
        groups_are=f"emoji, {n_groups} subgroups of Unicode's, tested on things never seen",
    )


@cache
def objects_or_flowers(run):
    """Objects with 39 kernels; with DATA=original Flowers-17, in one process: each would describe its
    photographs."""
    size = run.size["flowers"]
    if run.data_tier == "original":
        if flowers.have_flowers():
            data = datasets.load_original("flowers17").provenance
            many = "flowers-1400"
            return SimpleNamespace(
                original=True, task="flowers-7", many=many, data=data, n_train=1020, n_jobs=1, are=data.name
            )
        print("CUELEARN_DATA names no directory with flowers17/ in it: emoji in its place")
    tasks = tasks_of(run)
    return SimpleNamespace(
        original=False,
        task=tasks.objects,
        many=f"{tasks.objects}-1400",
        data=tasks.emoji,
        n_train=size["n_train"],
        n_jobs=None,
        are=tasks.things_are,
    )


def choose(run, name, task, methods, n_train, **options):
    """What cross-validation on the first split chooses for each method, and all that was tried."""
    size = run.size["choose"]
    n_jobs = 1 if task.startswith("flowers") else None
    every = size["every"]
    if task.startswith(("flowers", "pendigits", "mnist", "scene15")):  # few classes
        every = 1
    if task.startswith(("pendigits", "mnist")):
        n_train = min(n_train, size["n_train"])
    options = {"n_folds": size["n_folds"], "every": every, "grids": size["grids"]} | options
    sweep = run.sweep(f"choose-{name}", n_jobs)
    return rivals.choose(sweep, task, n_train, methods, run.seed, **options)


def as_judged(size):
    """Online learners are validated after as many epochs as they are judged after."""
    epochs = {method: max(size["epochs"]) for method in rivals.ONLINE}
    epochs["OMCL-PERC"] = max(size["omcl_epochs"])
    return {method: {"n_epochs": n} for method, n in epochs.items()}


def trained_longest(run, chosen):
    """The same choice, OM-2 with as many epochs as the figures of its curves have."""
    return chosen | {"OM2": chosen["OM2"] | {"n_epochs": max(run.size["online"]["epochs"])}}


@cache
def chosen_for_objects(run):
    tasks = tasks_of(run)
    methods = [*EVERYONE, *run.size["slow"], *rivals.ONLINE]
    options = as_judged(run.size["online"])
    return choose(run, "objects", tasks.objects, methods, tasks.n_objects, options=options, data=tasks.emoji)


@cache
def compared_on_objects(run):
    """What the methods have in one run, the papers' p-norm MKL (p = 1.01 for Kloft's 1.02) among them."""
    chosen, _ = chosen_for_objects(run)
    return trained_longest(run, chosen) | {"LpMKL sparse": chosen["LpMKL"] | {"p": 1.01}}


@cache
def against_sizes(run):
    """All methods on growing sets of objects, one after the other at each point; dearest first."""
    size = run.size["sizes"]
    tasks = tasks_of(run)
    most = size["rivals_up_to"]
    chosen = compared_on_objects(run)
    together = [*EVERYONE, "OM2", "LpMKL sparse"]
    quickest = ["OBSCURE", "OBSCURE online", "UFOMKL", "OM2", "AverageKernelSVM"]
    fewer = [n for n in size["n_train"] if n <= most and n != tasks.n_objects]
    beyond = [n for n in size["n_train"] if n > most]
    few = run.seeds(run.size["sizes"])
    parts = [([tasks.n_objects], together, run.seeds(run.size["tables"])), (fewer, together, few)]
    parts.append((beyond, quickest, few))
    tables = []
    for sizes, methods, splits in parts:
        if sizes:
            sweep = run.sweep("sizes")
            task = tasks.objects
            table = rivals.compare_all(sweep, task, sizes, ALL, methods, chosen, splits, data=tasks.emoji)
            tables.append(table)
    return pd.concat(tables, ignore_index=True)


def at_most_objects(run):
    """Of all methods, the splits with as many drawings as there are to train from."""
    table = against_sizes(run)
    return table[table["n_train"] == tasks_of(run).n_objects]


@cache
def every_cue_alone(run):
    """An SVM on each cue, and on their average, C by cross-validation: objects and categories."""
    size = run.size["alone"]
    tasks = tasks_of(run)
    n_train = {tasks.objects: tasks.n_objects, tasks.categories: tasks.n_categories}
    n_folds = run.size["choose"]["n_folds"]
    points = [
        {"task": task, "n_train": n, "C": size["C"], "n_folds": n_folds, "seed": run.seed}
        for task, n in n_train.items()
    ]
    sweep = run.sweep("alone-parameters")
    chosen = sweep.run(rivals.choose_alone, points, data=tasks.emoji)
    chosen = dict(zip(n_train, chosen, strict=True))
    points = [
        {"task": task, "n_train": n, "n_test": ALL, "chosen": chosen[task], "seed": seed}
        for task, n in n_train.items()
        for seed in run.seeds(run.size)
    ]
    return run.sweep("alone").frame(rivals.each_alone, points, data=tasks.emoji)


def against_optimum(run, name, task, n_train, n_test, methods, chosen, seeds, n_epochs, data, n_jobs=None):
    """Curves of the methods, with how far they are from the certified optimum of their own problem."""
    until = {"n_epochs": n_epochs, "tol": 0.008, "data": data}  # below 1%, where work is compared
    sweep = run.sweep(name, n_jobs)
    curves = rivals.curves_of(sweep, task, n_train, n_test, methods, chosen, seeds, **until)
    points = [{"task": task, "n_train": n_train, "seed": seed, **chosen["OBSCURE"]} for seed in seeds]
    exact = run.sweep(f"{name}-optimum", n_jobs).frame(optimum, points, data=data)
    return rivals.against_bounds(curves, exact)


def svm_on_the_average(run, name, task, n_train, n_test, chosen, seeds, data, n_jobs=None):
    sweep = run.sweep(f"{name}-svm", n_jobs)
    methods = ["AverageKernelSVM"]
    return rivals.compare_all(sweep, task, [n_train], n_test, methods, chosen, seeds, data=data)


def percent(errors):
    """Errors of methods in words."""
    return {method: f"{error:.0%}" for method, error in errors.items()}


def times(factor, digits=2):
    """A factor in words; it is NaN where no run of a short profile counts."""
    if not np.isfinite(factor):
        return "an unknown number of times"
    number = f"{factor:.{digits}g}"
    return "1.0 times" if number == "1" else f"{number} times"
