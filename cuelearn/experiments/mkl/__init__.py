r"""Experiments of the MKL chapter (thesis chapter 4, JMLR 2012 section 5).

Path of the data: `load_task` (loader -> cues -> kernel bank, split into train and test; `tasks`) -> one of the point functions
(`runs`: the stochastic solvers; `rivals`: every method through its estimator; `theorems`) -> a `Sweep` -> a DataFrame ->
`plots.mkl`. Every point function takes numbers and text only, so that its results can be stored and resumed; sizes, seeds and grids
of a profile stand in `settings` and nowhere else.
"""

from cuelearn.experiments.mkl.runs import (
    all_of_mnist, choose, many_kernels, online_run, optimum, single_kernel, solve, suboptimality, three_class, time_to, training_curve,
    warm_up,
)  # fmt: skip
from cuelearn.experiments.mkl.settings import ALPHA_GRID, C_GRID, P_GRID, settings
from cuelearn.experiments.mkl.tasks import Task, kernel_set, load_data, load_task
from cuelearn.experiments.mkl.theorems import mistake_bound, suboptimality_bound, update_bound, useless_kernels

__all__ = [
    "ALPHA_GRID", "C_GRID", "P_GRID", "Task", "all_of_mnist", "choose", "kernel_set", "load_data", "load_task", "many_kernels",
    "mistake_bound", "online_run", "optimum", "settings", "single_kernel", "solve", "suboptimality", "suboptimality_bound",
    "three_class", "time_to", "training_curve", "update_bound", "useless_kernels", "warm_up",
]  # fmt: skip
