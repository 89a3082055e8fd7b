"""A run of an iterative method: its clock, history, progress bar and callback."""

import sys
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd

from cuelearn.checkpoint import Changing

# seconds before a bar appears
BAR_AFTER = 2.0

#: Columns of histories, in their order; a method has those that it records.
COLUMNS = (
    *("stage", "start", "step", "epoch", "n_epochs", "seconds", "n_updates", "n_support", "online_error"),
    *("n_evaluations", "log_likelihood", "objective", "relaxed", "dual_bound", "dual_gap", "change"),
    *("n_changed", "n_projections", "n_unproven", "bytes"),
)


def progress(items=None, *, name, total=None, unit="it", verbose=False):
    """A bar on stderr over `items`, or counted by `update`, which is removed at the end."""
    from tqdm.auto import tqdm  # looks for notebooks, which takes long

    options = {"desc": name, "total": total, "unit": unit, "delay": BAR_AFTER, "leave": False}
    return tqdm(items, disable=not verbose, file=sys.stderr, **options)


class Run:
    """A loop over rounds, epochs or batches, each ended by `end`.

    `callback` is called, with the clock stopped, with the state of the run and the step; a true result sets
    `stopped`. Several runs may share a `bar`. `clock` returns seconds, or processor time with
    `time.process_time`.
    """

    clock = time.perf_counter

    def __init__(self, callback=None, *, verbose=False, bar=None):
        self.callback = callback
        self.verbose = verbose
        self.bar = bar
        self.stopped = False
        self.rows = []
        self.seconds = 0.0
        self.go()

    def rounds(self, n_rounds, name, unit="round"):
        """Numbers from 1 to `n_rounds`, under a bar."""
        with self.under_bar(name, n_rounds, unit):
            yield from range(1, n_rounds + 1)

    @contextmanager
    def under_bar(self, name, total=None, unit="round"):
        """A progress bar in place of an outer one."""
        outer = self.bar
        try:
            with progress(name=name, total=total, unit=unit, verbose=self.verbose) as self.bar:
                yield self.bar
        finally:
            self.bar = outer

    def go(self):
        self._started = self.clock()

    def pause(self):
        if self._started is not None:
            self.seconds += self.clock() - self._started
        self._started = None

    def add(self, *, done=1, note="", **row):
        """Append a row to the history; the bar advances by `done`."""
        self.pause()
        row["seconds"] = self.seconds
        self.rows.append({name: row[name] for name in COLUMNS if name in row})
        if self.bar is not None:
            self.bar.set_postfix_str(note, refresh=False)
            self.bar.update(done)
        self.go()

    def end(self, step, state, *, done=1, note="", **row):
        """Record a round and call back with ``state()``; returns whether to stop."""
        self.add(done=done, note=note, step=step, **row)
        if self.callback is not None:
            self.pause()
            self.stopped = bool(self.callback(state(), step))
            self.go()
        return self.stopped

    def history(self):
        return history_of(self.rows)


def history_of(rows):
    known = {name for row in rows for name in row}
    return pd.DataFrame(rows, columns=[name for name in COLUMNS if name in known])


class Record(Changing):
    """Values of all visits of an online learner, by name; `kind` lists (name, type)."""

    APPENDED = ("_held",)

    def __init__(self, kind):
        self.n = 0
        self._held = np.empty(0, kind)

    def add(self, n_visits, **values):
        end = self.n + n_visits
        if self._held.size < end:
            grown = np.empty(max(end, 2 * self._held.size), self._held.dtype)
            grown[: self.n] = self._held[: self.n]
            self._held = grown
        for name, value in values.items():
            self._held[name][self.n : end] = value
        self.n = end

    def __getitem__(self, name):
        return self._held[name][: self.n].copy()
