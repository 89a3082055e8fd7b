"""Online kernel selection: which of many kernels is worth training (Yang, Mahdavi, Jin, Yi, Hoi 2012)."""

from cuelearn.core.estimator import load
from cuelearn.oks.batch import AlignmentSVM, MuSVM, SelectedSVM, alignment, select_then_fit
from cuelearn.oks.kernels import kind_kernels
from cuelearn.oks.online import OKS, OM1, SOM, MuTron, OKSRegret

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
    "kind_kernels",
    "load",
    "select_then_fit",
]
