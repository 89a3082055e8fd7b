r"""Experiments of the MKL chapter (thesis chapter 4, JMLR 2012 section 5).

Path of the data: `load_task` (loader -> cues -> kernel bank, split into train and test; `tasks`) -> one of the point functions
(`runs`: the stochastic solvers; `rivals`: every method through its estimator; `theorems`) -> a `Sweep` -> a DataFrame ->
`plots.mkl`. Several labels: `multilabel_task` -> the point functions (all in `multilabel`) -> `plots.mkl_multilabel`. Every point
function takes numbers and text only, so that its results can be stored and resumed; sizes, seeds and grids of a profile stand in
`settings` and nowhere else.
"""

from cuelearn.experiments.mkl.online import ONLINE, online_curves
from cuelearn.experiments.mkl.rivals import (
    METHODS,
    Method,
    against_bounds,
    choose,
    compare,
    compare_all,
    curves_of,
    in_words,
    many_compare,
    rival_curve,
    with_ratios,
)
from cuelearn.experiments.mkl.runs import (
    all_of_mnist,
    many_kernels,
    online_run,
    optimum,
    solve,
    suboptimality,
    three_class,
    time_to,
    training_curve,
    two_stages,
    warm_up,
)
from cuelearn.experiments.mkl.settings import ALPHA_GRID, C_GRID, P_GRID, settings
from cuelearn.experiments.mkl.tasks import (
    Task,
    evenly,
    get_task,
    handed,
    kernel_set,
    load_data,
    load_task,
    test_error,
)
from cuelearn.experiments.mkl.theorems import (
    mistake_bound,
    suboptimality_bound,
    update_bound,
    useless_kernels,
)

__all__ = [
    "ALPHA_GRID",
    "C_GRID",
    "METHODS",
    "Method",
    "ONLINE",
    "P_GRID",
    "Task",
    "against_bounds",
    "all_of_mnist",
    "choose",
    "compare",
    "compare_all",
    "curves_of",
    "evenly",
    "get_task",
    "handed",
    "in_words",
    "kernel_set",
    "load_data",
    "load_task",
    "many_kernels",
    "many_compare",
    "mistake_bound",
    "online_curves",
    "online_run",
    "optimum",
    "rival_curve",
    "settings",
    "solve",
    "suboptimality",
    "suboptimality_bound",
    "test_error",
    "three_class",
    "time_to",
    "training_curve",
    "two_stages",
    "update_bound",
    "useless_kernels",
    "warm_up",
    "with_ratios",
]
