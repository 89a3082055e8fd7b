"""The linear algebra libraries in use, whose threads a method may limit."""

from functools import cache

from threadpoolctl import ThreadpoolController

__all__ = ["linear_algebra"]


@cache
def linear_algebra():
    """A ThreadpoolController of them: to look for them anew at every fit would take longer than a small
    fit."""
    return ThreadpoolController().select(user_api="blas")
