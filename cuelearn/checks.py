"""Checks of parameters, with one sentence that names what is wrong."""

import contextlib
import math
import numbers

import numpy as np

__all__ = ["as_generator", "check_count", "check_non_negative", "check_positive", "unchanged_on_error"]


def _is_number(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def check_positive(name, value):
    """`value` as a float, or an error that names the parameter."""
    if not _is_number(value) or value <= 0:
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    return float(value)


def check_non_negative(name, value):
    """`value` as a float >= 0, or an error that names the parameter."""
    if not _is_number(value) or value < 0:
        raise ValueError(f"{name} must be a non-negative number, got {value!r}")
    return float(value)


def check_count(name, value, least=1):
    """`value` as an int >= `least`, or an error that names the parameter."""
    if not _is_number(value) or int(value) != value or value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    return int(value)


def as_generator(random_state):
    """A NumPy Generator from None, an int, a Generator or a RandomState."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    whole = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    if random_state is not None and not (whole and random_state >= 0):
        raise ValueError(f"random_state must be None, an integer >= 0, a Generator or a RandomState, got {random_state!r}")
    return np.random.default_rng(random_state)


@contextlib.contextmanager
def unchanged_on_error(estimator):
    """An estimator whose `fit` raises keeps the attributes that it had: a refused fit is no fit.

    Parameters
    ----------
    estimator : object
        Its attributes may be assigned in the block, not changed in place.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
