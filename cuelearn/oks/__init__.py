"""Online kernel selection: which of many kernels is worth training (Yang, Mahdavi, Jin, Yi, Hoi 2012)."""

from cuelearn.oks.base import load
from cuelearn.oks.batch import AlignmentSVM, MuSVM, SelectedSVM, alignment, select_then_fit
from cuelearn.oks.committee import OM1, MuTron
from cuelearn.oks.selection import OKS, SOM, OKSRegret, solve_selection

__all__ = [
    "AlignmentSVM",
    "MuSVM",
    "MuTron",
    "OKS",
    "OKSRegret",
    "OM1",
    "SOM",
    "SelectedSVM",
    "alignment",
    "load",
    "select_then_fit",
    "solve_selection",
]
