"""Extras: the installation command for a missing optional package."""

import sys
from importlib.util import find_spec

__all__ = ["require"]


def require(extra, *packages):
    """`ImportError` with the command that installs the extra of a missing package."""
    for package in packages:
        if sys.modules.get(package) is None and find_spec(package) is None:
            hint = f'in a checkout of cuelearn, pip install ".[{extra}]"'
            raise ImportError(f"{package} is not installed: {hint}", name=package)
