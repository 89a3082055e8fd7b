"""What a run shows and writes down: the one progress bar of the package, and the rows of a history."""

import sys
import time

import numpy as np
import pandas as pd

__all__ = ["BAR_AFTER", "History", "progress"]

# a bar appears on runs that take longer than this many seconds
BAR_AFTER = 2.0


def progress(items=None, *, name, total=None, unit="it", verbose=False):
    """A bar on stderr over `items`, or counted up by `update`; it appears late and leaves nothing behind."""
    from tqdm.auto import tqdm  # looks for notebooks, which takes long

    options = {"desc": name, "total": total, "unit": unit, "delay": BAR_AFTER, "leave": False}
    return tqdm(items, disable=not verbose, file=sys.stderr, **options)


class History:
    """Rows of the training history; the clock stops while the history itself is measured.

    `clock` gives seconds: time that passes, or, if set to `time.process_time`, time of the processor.
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
        """Stop the clock: `seconds` are those of training so far."""
        self.seconds += self.clock() - self._started

    def add(self, **values):
        """Append a row; columns not given are NaN, the seconds the present ones."""
        self.rows.append({**dict.fromkeys(self.columns, np.nan), "seconds": self.seconds, **values})

    def frame(self):
        return pd.DataFrame(self.rows, columns=self.columns)
