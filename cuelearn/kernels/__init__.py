"""Kernels on cues, the bank that hands out their rows, and sets that grow for online learners."""

from cuelearn.kernels.bank import CrossBank, KernelBank
from cuelearn.kernels.growing import (
    PrecomputedSupport,
    SupportSet,
    distance_matrix,
    inverse_root,
    kernel_values,
    mean_rule,
    resolve_kernel,
)
from cuelearn.kernels.specifications import (
    KERNELS,
    RBF,
    Chi2,
    ExpDistance,
    Function,
    Kernel,
    Linear,
    Poly,
    Precomputed,
    as_kernel,
    check_kernels,
    check_samples,
    extract_columns,
    feature_places,
    resolve_columns,
)
from cuelearn.kernels.stack import KernelStack, training_bank

__all__ = [
    "KERNELS",
    "RBF",
    "Chi2",
    "CrossBank",
    "ExpDistance",
    "Function",
    "Kernel",
    "KernelBank",
    "KernelStack",
    "Linear",
    "Poly",
    "Precomputed",
    "PrecomputedSupport",
    "SupportSet",
    "as_kernel",
    "check_kernels",
    "check_samples",
    "distance_matrix",
    "extract_columns",
    "feature_places",
    "inverse_root",
    "kernel_values",
    "mean_rule",
    "resolve_columns",
    "resolve_kernel",
    "training_bank",
]
