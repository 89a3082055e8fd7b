"""Compile ahead: examples of the documentation call what the chapters need, while cores are idle.

The runner starts ``python -m companion.run.warm`` where numba's cache is empty. Nothing waits for it: what it
has not reached yet, a chapter compiles itself.
"""

import contextlib
import doctest
import importlib
import io
import os

__all__ = ["MODULES", "compile_ahead"]

#: What is slow to compile, as the chapters come to it.
MODULES = ("mkl.obscure", "mkl.om2", "mkl.ufo", "mms.mms", "mktl.mktl", "oks.oks")


def compile_ahead(modules=MODULES):
    """Run the examples of modules, whatever comes out: that is for the tests."""
    for name in modules:
        with contextlib.redirect_stdout(io.StringIO()):
            doctest.testmod(importlib.import_module(f"cuelearn.{name}"))


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(19)
    compile_ahead()
