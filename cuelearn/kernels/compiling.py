"""A notice at the first compilation of a process, which otherwise only looks slow."""

import multiprocessing
import os
import sys

from numba.core.event import Listener, register

__all__ = ["TEXT", "CompilationNotice", "tell_of_compiling"]

TEXT = "cuelearn: compiling, once on this machine; the next start is quick"


class CompilationNotice(Listener):
    """Prints `TEXT` when the first function of this package is compiled, not when it is loaded from the
    cache.

    It goes to stderr, in a notebook to stdout, since Jupyter shows stderr in red. The listener stays
    registered, because numba iterates over its listeners while it notifies them.
    """

    announced = False

    def on_start(self, event):
        module = getattr(event.data["dispatcher"], "__module__", None) or ""
        if not self.announced and module.startswith("cuelearn"):
            self.announced = True
            in_notebook = "ipykernel" in sys.modules
            print(TEXT, file=sys.stdout if in_notebook else sys.stderr, flush=True)

    def on_end(self, event):
        """Required by numba."""


def tell_of_compiling():
    """Register a `CompilationNotice`, except in workers and in notebooks run by `make figures`."""
    if multiprocessing.parent_process() is None and "CUELEARN_RUN" not in os.environ:
        register("numba:compile", CompilationNotice())
