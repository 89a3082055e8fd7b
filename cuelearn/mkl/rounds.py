"""Rounds of a batch method: their numbers, history, progress bar and callback."""

from cuelearn.core.progress import progress
from cuelearn.mkl.training import History

__all__ = ["Rounds"]


class Rounds:
    """Iterates over 1, 2, ..., `max_iter`; each round ends by `end`, during which the clock of the history
    stops.

    `callback` is None or called with what `end` is told to show and the number of the round; a true result
    ends the run.
    """

    def __init__(self, name, max_iter, callback, verbose, unit="round"):
        self.max_iter, self.callback, self.stopped = max_iter, callback, False
        self.bar = progress(name=name, total=max_iter, unit=unit, verbose=verbose)
        self.history = History()

    def __iter__(self):
        with self.bar:
            yield from range(1, self.max_iter + 1)

    def end(self, step, show=None, words="", **row):
        """Write a round down and call back with ``*show()``; whether the run is to end."""
        self.history.pause()
        self.history.add(step=step, epoch=step, seconds=self.history.seconds, **row)
        self.bar.update()
        self.bar.set_postfix_str(words, refresh=False)
        self.stopped = self.callback is not None and bool(self.callback(*show(), step))
        self.history.go()
        return self.stopped
