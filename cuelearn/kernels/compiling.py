"""A line at the first compilation of a process, which otherwise just looks slow."""

import multiprocessing
import os
import sys

from numba.core.event import Listener, register

__all__ = ["TEXT", "CompilationNotice", "tell_of_compiling"]

TEXT = "cuelearn: compiling, once on this machine; the next start is quick"


class CompilationNotice(Listener):
    """Writes `TEXT` when the first function of this package is compiled, which a load from the cache is not.

    It goes to stderr; in a notebook to stdout, since Jupyter shows stderr as a red box. The listener stays
    registered: numba goes through its list of listeners while it tells them.
    """

    announced = False

    def on_start(self, event):
        """Numba begins with a function."""
        module = getattr(event.data["dispatcher"], "__module__", None) or ""
        if not self.announced and module.startswith("cuelearn"):
            self.announced = True
            in_notebook = "ipykernel" in sys.modules
            print(TEXT, file=sys.stdout if in_notebook else sys.stderr, flush=True)

    def on_end(self, event):
        """Numba is done with it."""


def tell_of_compiling():
    """Register a `CompilationNotice`, but not in workers and in notebooks that `make figures` runs."""
    if multiprocessing.parent_process() is None and "CUELEARN_RUN" not in os.environ:
        register("numba:compile", CompilationNotice())
