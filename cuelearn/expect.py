"""The one way to check what a caller gives: the value as it is used, or a sentence that names it.

A check stands where the value enters; inner functions trust it. Constructor parameters of estimators are
checked by their `_parameter_constraints` instead.
"""

import math
import numbers
import sys
import warnings
from importlib.util import find_spec

import numpy as np

#: Kinds of a value: a number, the entries of an array, numpy's codes of the entries' types, their type.
KINDS = {
    "float": ("a number", "numbers", "fiub", np.float64),
    "real": ("a number", "real numbers", "fiub", None),
    "int": ("an integer", "integers", "iu", np.int64),
    "whole": ("an integer", "integers", "fiu", np.int64),
    "bool": ("True or False", "booleans", "biuf", bool),
}


#: Accepted values that a message lists.
MOST_NAMED = 20


def expect(
    name,
    value,
    *,
    kind="float",
    shape=(),
    low=None,
    high=None,
    above=None,
    finite=True,
    least=1,
    words=(),
    hint="",
):
    """The number or array `value`, or a ValueError in one sentence.

    Parameters
    ----------
    name : str
        Of the argument, with which the message begins.
    kind : {"float", "real", "int", "whole", "bool"}
        Numbers become float, int or bool, arrays float64, int64 or bool. "real" leaves float32, float64 and
        integers as they are, "whole" takes floats without fraction for integers, "bool" takes 0 and 1 in an
        array.
    shape : tuple, or list of tuples to choose from
        An axis is a length, or a name for any length, the same one where it is repeated: ``("n", "n")``. A
        number has the shape ().
    low, high, above : number, or array that broadcasts
        Least and largest value, and the largest value that is too small.
    finite : bool
        Whether infinite values are refused; NaN passes only without `finite` and limits.
    least : int
        Fewest entries.
    words : tuple of str
        Accepted in place of a number.
    hint : str
        A remedy, after the message.

    Examples
    --------
    >>> from cuelearn.expect import expect
    >>> expect("tol", 1, above=0), expect("labels", [[0], [2]], kind="int", shape=("n", 1)).dtype.name
    (1.0, 'int64')
    >>> expect("priors", [[0.5, -0.5]], shape=(1, "k"), low=0)
    Traceback (most recent call last):
    ValueError: priors must have shape (1, k) and hold finite numbers >= 0, got -0.5
    """
    if isinstance(value, str) and value in words:
        return value
    limits = {"low": low, "high": high, "above": above, "finite": finite and kind in ("float", "real")}
    if shape == ():
        number = as_number(value, kind)
        if number is not None and good_entries(np.asarray(number), **limits).all():
            return number
        given = repr(value)
    else:
        entries, given = as_entries(value, kind)
        if entries is not None and (entries.size < least or not fits(entries.shape, shape)):
            given = f"shape {entries.shape}"
        elif entries is not None:
            good = good_entries(entries, **limits)
            if good.all():
                return entries
            given = str(entries[~good][0])
    if hint:
        given = f"{given}; {hint}"
    raise ValueError(f"{name} must {description(kind, shape, words, **limits)}, got {given}")


def as_number(value, kind):
    """A number as int, float or bool; None for others."""
    is_flag = isinstance(value, (bool, np.bool_))
    if is_flag != (kind == "bool") or not (is_flag or isinstance(value, numbers.Real)):
        return None
    if kind in ("int", "whole"):
        whole = kind == "whole" and math.isfinite(value) and int(value) == value
        if whole or isinstance(value, numbers.Integral):
            return int(value)
        return None
    if is_flag:
        return bool(value)
    return float(value)


def as_entries(value, kind):
    """An array of this kind, or None and what was given instead."""
    try:
        entries = np.asarray(value)
        if entries.dtype == object:  # such as the columns of a DataFrame, of several types
            entries = np.array(entries.tolist())
    except ValueError:
        return None, "rows of different lengths"
    _, _, codes, dtype = KINDS[kind]
    if entries.size == 0:
        codes += "f"  # of an empty list
    if entries.dtype.kind not in codes:
        return None, f"dtype {entries.dtype} of shape {entries.shape}"
    if kind == "real":
        return in_single_or_double(entries), ""
    wrong = np.zeros(entries.shape, dtype=bool)
    if kind == "bool":
        wrong = (entries != 0) & (entries != 1)
    elif kind != "float" and entries.dtype.kind == "f":
        wrong = (entries != np.floor(entries)) | ~(np.abs(entries) < 2**63)
    if wrong.any():
        return None, str(entries[wrong][0])
    return entries.astype(dtype, copy=False), ""


def in_single_or_double(entries):
    """Half precision as float32, more than double as float64, others as they are."""
    if entries.dtype == np.float16:
        return entries.astype(np.float32)
    if entries.dtype.kind == "f" and entries.dtype not in (np.float32, np.float64):
        return entries.astype(np.float64)
    return entries


def fits(given, shape):
    """Whether a shape is the wanted one, or one of a list of these."""
    if isinstance(shape, list):
        return any(fits(given, one) for one in shape)
    if len(given) != len(shape):
        return False
    lengths = {}
    for axis, length in zip(shape, given, strict=True):
        wanted = axis
        if isinstance(axis, str):
            wanted = lengths.setdefault(axis, length)
        if length != wanted:
            return False
    return True


def good_entries(entries, low, high, above, finite):
    """Which entries are within the limits; a single True where there is none."""
    good = np.True_
    if finite:
        good = good & np.isfinite(entries)
    if low is not None:
        good = good & (entries >= low)
    if high is not None:
        good = good & (entries <= high)
    if above is not None:
        good = good & (entries > above)
    return good


def description(kind, shape, words, low, high, above, finite):
    """What is expected, after "must"."""
    number, entries, *_ = KINDS[kind]
    within = ""
    if above is not None:
        within = f" > {limit(above)}"
    if low is not None:
        within = f" >= {limit(low)}"
    if high is not None:
        within = f"{within} and <= {limit(high)}"
    if low is not None and high is not None:
        within = f" from {limit(low)} to {limit(high)}"
    if finite:
        number = number.replace("a ", "a finite ")
        entries = f"finite {entries}"
    if shape == ():
        return f"be {listed([*map(repr, words), number + within])}"
    if len(shape) == 1 and isinstance(shape[0], str):
        return f"be a list of {entries}{within}"
    return f"have shape {shape_text(shape)} and hold {entries}{within}"


def limit(value):
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def shape_text(shape):
    """A shape, or several ones to choose from."""
    shapes = [shape]
    if isinstance(shape, list):
        shapes = shape
    return listed([str(tuple(lengths)).replace("'", "") for lengths in shapes])


def listed(texts):
    *first, last = texts
    if first:
        return f"{', '.join(first)} or {last}"
    return last


def expect_shape(name, value, shape, hint=""):
    """`value`, an array, matrix or DataFrame of this shape, as in `expect`, or a ValueError."""
    given = np.shape(value)
    if not fits(given, shape):
        remedy = hint and f"; {hint}"
        raise ValueError(f"{name} must have shape {shape_text(shape)}, got shape {given}{remedy}")
    return value


def expect_among(name, values, known):
    """`values`, each of which is in `known`, or a ValueError that names one that is not."""
    known = dict.fromkeys(known)
    for value in values:
        if value not in known:
            words = list(map(repr, known))
            if len(words) > MOST_NAMED:
                words[MOST_NAMED:] = ["..."]
            raise ValueError(f"{name} must be among {', '.join(words)}, got {value!r}")
    return values


def expect_distinct(name, values):
    """`values`, or a ValueError that names one that comes twice."""
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{name} must be distinct, got {value!r} twice")
        seen.add(value)
    return values


def expect_word(name, value, words):
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{name} must be {listed(map(repr, words))}, got {value!r}")
    return value


def expect_instance(name, value, cls):
    if not isinstance(value, cls):
        raise TypeError(f"{name} must be a {cls.__name__}, got {type(value).__name__}")
    return value


def expect_list(name, value, items, length=None, least=1):
    """`value` as a list of this length, or at least of `least`; `items` says of what."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__") or getattr(value, "ndim", 1) == 0:
        raise TypeError(f"{name} must be a list of {items}, got {value!r}")
    values = list(value)
    wanted = f"{items}, at least {least}"
    enough = len(values) >= least
    if length is not None:
        wanted = f"{length} {items}"
        enough = len(values) == length
    if not enough:
        raise ValueError(f"{name} must be a list of {wanted}, got {len(values)}")
    return values


# Packages that are skipped.
INNER = ("contextlib", "cuelearn", "joblib", "sklearn")


def warn_user(message, category=UserWarning):
    """Warn at the line that called the package."""
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INNER:
        level += 1
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)


def require(extra, *packages):
    """`ImportError` with the command that installs the extra of a missing package."""
    for package in packages:
        if sys.modules.get(package) is None and find_spec(package) is None:
            hint = f'pip install "cuelearn[{extra}]"'
            raise ImportError(f"{package} is not installed: {hint}", name=package)
