"""Figures and tables of the MKL chapter, in the order of its notebook."""

from companion.mkl import (  # noqa: F401  each registers its figures, the first the verdicts
    claims,
    figures_accuracy,
    figures_bounds,
    figures_kernels,
    figures_losses,
    figures_online,
    figures_time,
)
from companion.mkl.rivals import METHODS  # noqa: F401  a method that was added gets a style
