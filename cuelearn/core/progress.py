"""The progress bar of the package, and training histories."""

import sys
import time

import numpy as np
import pandas as pd

__all__ = ["BAR_AFTER", "History", "progress"]

# seconds before a bar appears
BAR_AFTER = 2.0


def progress(items=None, *, name, total=None, unit="it", verbose=False):
    """A bar on stderr over `items`, or counted by `update`; it appears after `BAR_AFTER` and is removed at
    the end."""
    from tqdm.auto import tqdm  # looks for notebooks, which takes long

    options = {"desc": name, "total": total, "unit": unit, "delay": BAR_AFTER, "leave": False}
    return tqdm(items, disable=not verbose, file=sys.stderr, **options)


class History:
    """Rows of the training history; the clock stops while the history is computed.

    `clock` returns seconds: elapsed time, or processor time with `time.process_time`.
    """

    clock = time.perf_counter

    def __init__(self, columns):
        self.columns = columns
        self.rows = []
        self.seconds = 0.0
        self.go()

    def go(self):
        self._started = self.clock()

    def pause(self):
        """Stop the clock."""
        self.seconds += self.clock() - self._started

    def add(self, **values):
        """Append a row with the present `seconds`; missing columns are NaN."""
        self.rows.append({**dict.fromkeys(self.columns, np.nan), "seconds": self.seconds, **values})

    def frame(self):
        return pd.DataFrame(self.rows, columns=self.columns)
