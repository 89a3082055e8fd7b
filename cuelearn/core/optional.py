"""Packages that only parts of the library need come as extras: what to install where one is missing."""

import sys
from importlib.util import find_spec

__all__ = ["require"]


def require(extra, *packages):
    """`ImportError` with the command that installs the extra, if one of its packages is not there."""
    for package in packages:
        if sys.modules.get(package) is None and find_spec(package) is None:
            raise ImportError(f'{package} is not installed: pip install "cuelearn[{extra}]"', name=package)
