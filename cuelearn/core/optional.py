"""Packages that only parts of the library need come as extras: what to install where one is missing."""

import sys
from importlib.util import find_spec

__all__ = ["require"]


def require(extra, *packages, instead=""):
    """`ImportError` with the command, in a checkout, that installs the extra whose package is not there;
    `instead` names another way."""
    for package in packages:
        if sys.modules.get(package) is None and find_spec(package) is None:
            hint = f'in a checkout of cuelearn, pip install ".[{extra}]"'
            raise ImportError(f"{package} is not installed: {hint}{instead}", name=package)
