"""Decorators of compiled functions. Wrappers for calls from C are never used, and take time to compile."""

from numba.extending import register_jitable

from cuelearn.codecache import njit

__all__ = ["inlined", "inner", "loop"]

#: Called from Python. It makes no arrays: without reference counting a loop takes a third of the time.
loop = njit(cache=True, _nrt=False, no_cfunc_wrapper=True)


def inner(function=None, **options):
    """Called by compiled functions only: without a wrapper for Python, where it runs uncompiled; no new
    arrays."""
    decorate = register_jitable(_nrt=False, no_cfunc_wrapper=True, **options)
    if function is None:
        return decorate
    return decorate(function)


#: For functions with one caller: written into it before it is compiled, one level less at which all that they
#: call is compiled again.
inlined = njit(inline="always", _nrt=False, no_cfunc_wrapper=True)
