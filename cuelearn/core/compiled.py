"""Decorators of compiled functions. Wrappers for calls from C are never used, and take time to compile."""

from numba import njit
from numba.extending import register_jitable

__all__ = ["allocating", "inner", "loop"]

#: Called from Python. It makes no arrays: without reference counting a loop takes a third of the time, with
#: inlined steps two thirds.
loop = njit(cache=True, _nrt=False, no_cfunc_wrapper=True)


def inner(function=None, **options):
    """Called by compiled functions only: without a wrapper for Python, where it runs uncompiled; no new
    arrays."""
    decorate = register_jitable(_nrt=False, no_cfunc_wrapper=True, **options)
    return decorate if function is None else decorate(function)


#: As `inner`, with new arrays, also below a `loop`.
allocating = register_jitable(_nrt=True, no_cfunc_wrapper=True)
