"""What all chapters' experiments share: sizes, data sets, points, timing, printed tables.

A *point* is a dict of numbers and text, the arguments of one function; a `Sweep` calls it at many points
and keeps what it returned.
"""

import itertools
import time
import warnings
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from companion.originals import load_original
from cuelearn import datasets
from cuelearn.datasets import Provenance
from cuelearn.kernels import KernelBank

PROFILES = ("smoke", "quick", "full")
#: OBSCURE's online stage as the papers have it: until an epoch without loss, with the step of their library.
FIRST_STAGE = {"n_epochs_online": 100, "eta": "auto"}
# bytes; the 2.6 GB of 1,400 kernels on 680 samples never fit: rows come from seven distances
MEMORY_MANY = 6e8


class Task(NamedTuple):
    """A bank of kernels with its labels, and test samples: a CrossBank against the training samples.

    `groups` are what folds keep on one side, one number for each training sample: drawings, or things.
    """

    bank: KernelBank
    labels: np.ndarray
    cross: object
    test_labels: np.ndarray
    n_classes: int
    groups: np.ndarray | None = None


def settings_of(table, profile):
    """The sizes of a profile, from nested dicts with a triple of values (smoke, quick, full) for each."""
    column = PROFILES.index(profile)
    return {k: settings_of(v, profile) if isinstance(v, dict) else v[column] for k, v in table.items()}


@lru_cache(maxsize=4)
def load_set(name):
    """A data set by the first word of a task's name: bundled, or an original that the user has put in
    place."""
    name = name.split()[0]
    if name in ("awa", "corel5k", "covtype", "scene15", "usps"):
        return load_original(name)
    return getattr(datasets, f"load_{name}")()


def original(run, name, instead=""):
    """One of the papers' own sets, with DATA=original; None where it is not in place.

    Then a line says so, and what is taken `instead`.
    """
    if run.data_tier != "original":
        return None
    try:
        return load_original(name)
    except datasets.DataFileError as error:
        print(f"{error} {instead}".strip())
        return None


def made_here(name, function):
    """Where numbers come from that a function of this package draws at random, for the notes of figures."""
    return Provenance(name, "generated", "of this project", None, "this project", function)


@contextmanager
def quiet():
    """No warning of a missed tolerance, which is compared as it is, nor of many classes with few samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The number of unique classes")
        yield


def fitted(model, *data, **more):
    """`model.fit`, silent where it did not converge."""
    with quiet():
        return model.fit(*data, **more)


def looks(growth, most=10**7):
    """1, 2, 3, ..., then further apart by a constant factor: where a curve is measured."""
    steps = [1]
    while steps[-1] < most:
        steps.append(max(steps[-1] + 1, int(steps[-1] * growth)))
    return set(steps)


def timed(work, *arguments):
    """What a call returns, and its CPU seconds."""
    start = time.process_time()
    result = work(*arguments)
    return result, time.process_time() - start


def in_turn(runs, seed):
    """What is timed on one split, in its order there: on every second split the other way round."""
    return runs[::-1] if seed % 2 else runs


def grid_points(**values):
    """All combinations of some parameters' values, the last parameter's going round fastest."""
    return [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]


def where(table, **values):
    """Rows of a table that have these values."""
    for column, value in values.items():
        table = table[table[column] == value]
    return table


def printed(name):
    """A table as a paper prints it, by its row of the catalogue."""
    file = Path(__file__).parent / "printed" / f"{name}.csv"
    blank = {"na_values": {"sd": [""], "seconds": [""]}, "keep_default_na": False}
    return pd.read_csv(file, dtype={"kernels": str}, **blank)
