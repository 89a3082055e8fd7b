"""Kernels on cues and the bank that hands out their rows, for solvers and for online learners."""

from cuelearn.kernels.bank import (
    RBF,
    Chi2,
    CrossBank,
    ExpDistance,
    Kernel,
    KernelBank,
    Linear,
    Poly,
    Precomputed,
)

__all__ = ["Kernel", "Linear", "Poly", "RBF", "Chi2", "ExpDistance", "Precomputed", "KernelBank", "CrossBank"]
