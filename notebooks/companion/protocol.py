"""What all chapters' experiments share: sizes, the choice of parameters, sweeps in one table, timing.

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

from companion.data.originals import load_original
from cuelearn import datasets
from cuelearn.core.choice import first_best
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


def best_of(points, scores):
    """Number of the point with the highest score; of equal ones (`first_best`) the simplest: the smallest C,
    then the largest p and alpha, then the first."""

    def simplicity(i):
        C, p, alpha = (points[i].get(name) or 0.0 for name in ("C", "p", "alpha"))
        return C, -p, -alpha

    order = sorted(range(len(points)), key=simplicity)
    return order[first_best([scores[i] for i in order])]


def choose(points, score):
    """The best of some parameters, `score` called with each, and its score; ties as in `best_of`."""
    scores = [float(score(point)) for point in points]
    best = best_of(points, scores)
    return points[best], scores[best]


def at_edges(grid, chosen, natural=None):
    """A text for a note on what lies at the edge of its grid among chosen parameters.

    `grid` has the values tried by name, of which one alone says nothing; `natural` ends that nothing can lie
    beyond, such as 2 for p.
    """
    notes = []
    for name, value in chosen.items():
        tried = sorted(grid.get(name, ()))
        if len(tried) > 1 and value in (tried[0], tried[-1]) and value not in (natural or {}).get(name, ()):
            notes.append(f"{name} = {value:g} is the {'smallest' if value == tried[0] else 'largest'} tried")
    return ", ".join(notes)


def edges(chosen, grids, natural=None, by=()):
    """What lies at the ends of its grid and how often: "OMCL: C = 10 is the largest tried (2 of 8)", or "".

    `chosen` has a row for each choice. Of the grid "C" are the columns "C" and "C ...", such as "C colour";
    blank or missing values are no choices. The columns `by` say whose choice it is.
    """
    by = [by] if isinstance(by, str) else list(by)
    notes = []
    for owner, rows in chosen.groupby(by, sort=False) if by else [((), chosen)]:
        prefix = f"{', '.join(map(str, owner))}: " if owner else ""
        for name, grid in grids.items():
            columns = [column for column in chosen if column.split()[0] == name]
            values = pd.to_numeric(rows[columns].stack(), errors="coerce").dropna()
            for end, n in values.value_counts().sort_index().items():
                note = at_edges({name: grid}, {name: end}, natural)
                if note:
                    notes.append(f"{prefix}{note} ({n} of {len(values)})")
    return "; ".join(notes)


def gathered(sweep, function, points, *names, **data):
    """The tables of a sweep's points one below the other, their parameters `names` as last columns."""
    frames = sweep.run(function, points, **data)
    named = [f.assign(**{k: p[k] for k in names}) for p, f in zip(points, frames, strict=True)]
    return pd.concat(named, ignore_index=True)


def compared(sweep, label, choose, choices, run, points, by, columns, data=(), plain=str, pick=None):
    """Parameters chosen at the points `choices`, then `run` at `points` with what was chosen; one table.

    `sweep` makes a Sweep of a name, `points` are pairs of a point and its methods. The choice for a method is
    that at the point's values of the names `by` and of `plain` of its name; the table's last columns are
    `columns` of it, "" where nothing was. `pick` of a choice, the method and the point gives the parameters.
    """
    results = sweep(f"{label}-parameters").run(choose, choices, data=data)
    chosen = {(*(p[name] for name in by), p["method"]): r for p, r in zip(choices, results, strict=True)}

    def parameters(method, point):
        result = chosen[(*(point[name] for name in by), plain(method))]
        return result if pick is None else pick(result, method, point)

    points = [{**point, "chosen": {m: parameters(m, point) for m in methods}} for point, methods in points]
    frame = sweep(label).frame(run, points, data=data)
    own = [every[method] for every, method in zip(frame["chosen"], frame["method"], strict=True)]
    last = {column: [params.get(column, "") for params in own] for column in columns}
    return frame.drop(columns=["chosen", "effort"]).assign(**last)


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
