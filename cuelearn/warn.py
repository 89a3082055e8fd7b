"""Warnings that point to the user's line."""

import sys
import warnings

__all__ = ["warn_user"]

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
