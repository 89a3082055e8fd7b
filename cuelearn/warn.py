"""Warnings that point to the user's line, however deep in the package the fault was seen."""

import sys
import warnings

__all__ = ["warn_user"]

# Packages whose lines a warning does not point to.
INNER = ("contextlib", "cuelearn", "joblib", "sklearn")


def warn_user(message, category=UserWarning):
    """Warn at the line that called the package."""
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INNER:
        level += 1
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)
