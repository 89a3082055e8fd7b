"""Comparisons: parameters chosen on held-back data, then all methods on the same draws; means with their 95%
intervals, and what to say of choices at the ends of their grids.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from companion.run.sweep import beside
from cuelearn.core.formulas import first_best

__all__ = ["CONFIDENCE", "Interval", "interval"]

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A mean and its 95% interval; arrays for several means."""

    mean: float | np.ndarray
    low: float | np.ndarray
    high: float | np.ndarray


def interval(values):
    """Mean of repeated measurements, (n_repetitions, ...), and its 95% interval from Student's t
    distribution; NaN with any NaN, and a NaN interval for one measurement."""
    from scipy.stats import t

    values = np.asarray(values, dtype=float)
    n = len(values)
    if n == 0:
        raise ValueError("values is empty: an interval needs at least one measurement")
    mean = values.mean(axis=0)
    half = np.full_like(mean, np.nan)
    if n > 1:
        half = t.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
    answer = Interval(mean, mean - half, mean + half)
    return answer if np.ndim(mean) else Interval(*map(float, answer))


# --- comparisons --------------------------------------------------------------------------------------------


class Study(NamedTuple):
    """Methods compared on tasks.

    A point is what is compared at: a dict of numbers and text, such as the name of a task, its size and the
    seed of a draw. ``compare(chosen, **point)`` gives a table with a row, or some, for each method of
    `chosen`, a dict of their parameters.

    ``choose(method, **place)`` returns the parameters of a method; it is called once for all points that have
    the same values of the names `by`. Methods of one name by `plain` share a choice. ``pick(choice, method,
    point)`` returns the parameters where `choose` returned more than these. Without `choose` the methods
    choose for themselves, within ``compare(methods, **point)``.

    `columns` are chosen parameters that the table ends with, "" for methods without. `choosing` and
    `comparing` are further arguments of the two functions; `sweep` makes a `Sweep` of a name.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import pandas as pd
    >>> from companion.run.sweep import Sweep
    >>> from companion.study import Study
    >>> def error(methods, n):
    ...     return pd.DataFrame({"method": methods, "error": [1 / n] * len(methods)})
    >>> study = Study(lambda name: Sweep(mkdtemp(), name), "sizes", error)
    >>> study.table([({"n": 2}, ["OM2", "OBSCURE"]), ({"n": 4}, ["OM2"])])
       n   method  error
    0  2      OM2   0.50
    1  2  OBSCURE   0.50
    2  4      OM2   0.25
    """

    sweep: Callable
    label: str
    compare: Callable
    choose: Callable | None = None
    by: tuple = ()
    choosing: dict = {}
    comparing: dict = {}
    columns: tuple = ()
    plain: Callable = str
    pick: Callable | None = None
    data: Any = ()

    def choices(self, points):
        """What `choose` returned, by the values of `by` and a method's plain name."""
        requests = {}
        for point, methods in points:
            place = {name: point[name] for name in self.by}
            for method in map(self.plain, methods):
                requests[*place.values(), method] = {**place, **self.choosing, "method": method}
        requests = dict(reversed(requests.items()))  # the last, mostly the longest, start first
        sweep = self.sweep(f"{self.label}-parameters")
        results = sweep.run(self.choose, list(requests.values()), data=self.data)
        return dict(zip(requests, results, strict=True))

    def table(self, points, **more):
        """All methods at all points, which are pairs of a point and its methods; `more` goes to the sweep."""
        places = [point for point, _ in points]
        if self.choose is None:
            return self._compared(places, [{"methods": list(methods)} for _, methods in points], **more)
        choices = self.choices(points)

        def parameters(method, point):
            choice = choices[*(point[name] for name in self.by), self.plain(method)]
            if self.pick is None:
                return choice
            return self.pick(choice, method, point)

        chosen = [{m: parameters(m, point) for m in methods} for point, methods in points]
        return self.with_parameters(places, chosen, **more)

    def with_parameters(self, points, chosen, **more):
        """The same with parameters that are known: a dict by method for each point."""
        return self._compared(points, [{"chosen": own} for own in chosen], **more)

    def _compared(self, points, given, **more):
        calls = [{**point, **own, **self.comparing} for point, own in zip(points, given, strict=True)]
        results = self.sweep(self.label).run(self.compare, calls, data=self.data, **more)
        tables = []
        for point, own, table in zip(points, given, results, strict=True):
            for column in self.columns:
                table[column] = [own["chosen"][method].get(column, "") for method in table["method"]]
            tables.append(beside(point, table))
        return pd.concat(tables, ignore_index=True)


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
            end = "smallest" if value == tried[0] else "largest"
            notes.append(f"{name} = {value:g}, the {end} tried")
    return ", ".join(notes)


def edges(chosen, grids, natural=None, by=()):
    """What lies at the ends of its grid and how often: "OMCL: 2 of 8 choices are C = 10, the
    largest tried", or "".

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
                    notes.append(f"{prefix}{n} of {len(values)} choices are {note}")
    return "; ".join(notes)
