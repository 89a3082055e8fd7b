"""Notices of compilation, which otherwise only looks slow."""

import multiprocessing
import os
import sys
from time import perf_counter

from numba.core.event import Listener, register

__all__ = ["CompilationNotice", "tell_of_compiling"]

#: Seconds of compilation from one notice to the next.
PATIENCE = 3.0


class CompilationNotice(Listener):
    """Names the function of this package that is being compiled, not loaded from the cache, every `PATIENCE`
    seconds of compilation.

    It looks at the clock when a function begins or ends, also one that is called by the named one. It prints
    to stderr, in a notebook to stdout, since Jupyter shows stderr in red. The listener stays registered,
    because numba iterates over its listeners while it notifies them.
    """

    def __init__(self):
        self.names = []  # a function and those that it calls
        self.began = 0.0
        self.seconds = 0.0  # of finished functions
        self.announced = 0.0  # seconds at the last notice

    def on_start(self, event):
        dispatcher = event.data["dispatcher"]
        module = getattr(dispatcher, "__module__", None)
        if not self.names:
            self.began = perf_counter()
        self.names.append(f"{module}.{getattr(dispatcher, '__name__', '')}")
        self.tell()

    def on_end(self, event):
        seconds = self.tell()
        self.names.pop()
        if not self.names:
            self.seconds = seconds

    def tell(self):
        """Seconds so far, after a notice if it is due."""
        if not self.names[0].startswith("cuelearn."):
            return self.seconds
        seconds = self.seconds + perf_counter() - self.began
        if seconds >= self.announced + PATIENCE:
            self.announced = seconds
            message = f"compiling {self.names[0]}, kept on disk for the next start; {seconds:.0f} s so far"
            in_notebook = "ipykernel" in sys.modules
            print(f"cuelearn: {message}", file=sys.stdout if in_notebook else sys.stderr, flush=True)
        return seconds


def tell_of_compiling():
    """Register a `CompilationNotice`, except in workers and in notebooks run by `make figures`."""
    if multiprocessing.parent_process() is None and "CUELEARN_RUN" not in os.environ:
        register("numba:compile", CompilationNotice())
