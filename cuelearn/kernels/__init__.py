"""Kernels on cues, the bank that computes their rows, and support sets for online learners."""

from cuelearn.kernels.bank import CrossBank, KernelBank
from cuelearn.kernels.growing import distance_matrix, kernel_values, mean_rule
from cuelearn.kernels.matrices import IndefiniteKernelWarning
from cuelearn.kernels.specifications import (
    KERNELS,
    RBF,
    Chi2,
    ExpDistance,
    FeatureMap,
    FeatureScaleWarning,
    Function,
    Kernel,
    Linear,
    Poly,
    Precomputed,
    as_kernel,
)
from cuelearn.kernels.stack import KernelStack, nearest_psd

__all__ = [
    "KERNELS",
    "Chi2",
    "CrossBank",
    "ExpDistance",
    "FeatureMap",
    "FeatureScaleWarning",
    "Function",
    "IndefiniteKernelWarning",
    "Kernel",
    "KernelBank",
    "KernelStack",
    "Linear",
    "Poly",
    "Precomputed",
    "RBF",
    "as_kernel",
    "distance_matrix",
    "kernel_values",
    "mean_rule",
    "nearest_psd",
]
