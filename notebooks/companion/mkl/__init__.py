"""Experiments of the MKL chapter (thesis chapter 4, JMLR 2012 section 5).

The functions of `figures`: `get_task` (data -> cues -> kernel bank, split) -> a point function (`runs`: the
stochastic solvers; `rivals`: every method through its estimator; `theorems`) -> a `Sweep` -> a DataFrame ->
`plots.mkl`. Sizes, seeds and grids are in `settings`.
"""

from companion.mkl.rivals import (
    METHODS,
    ONLINE,
    against_bounds,
    choose,
    choose_alone,
    compare,
    compare_all,
    curves_of,
    each_alone,
    edges,
    in_words,
    many_compare,
    online_curves,
    rival_curve,
    with_intervals,
    with_ratios,
)
from companion.mkl.runs import (
    against_alpha,
    all_of_mnist,
    many_kernels,
    online_run,
    optimum,
    solve,
    suboptimality,
    three_class,
    training_curve,
    two_stages,
    warm_up,
)
from companion.mkl.settings import ALPHA_GRID, C_GRID, P_GRID, settings
from companion.mkl.tasks import (
    described_pictures,
    get_task,
    kernel_set,
    kernels_among,
    load_data,
    load_pictures,
    load_task,
    mistaken,
    picture_split,
    test_error,
)
from companion.mkl.theorems import mistake_bound, suboptimality_bound, update_bound, useless_kernels
from companion.protocol import Task
