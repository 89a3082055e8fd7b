r"""Experiments of the OKS chapter (Yang, Mahdavi, Jin, Yi, Hoi, AAAI 2012).

Path of the data: `describe_pair` (loader -> 15 kinds of features; kept by a sweep) -> `pair_of` (60 kernels)
-> one of the point functions (`compare`: the tables; `every_kernel`, `selections`, `probabilities`: figures;
`theorems`) -> a `Sweep` -> a DataFrame -> `plots.oks`. Sizes, seeds and grids of a profile stand in
`settings`.
"""

from cuelearn.experiments import protocol
from cuelearn.experiments.oks.compare import (
    METHODS,
    RANDOM,
    as_printed,
    compare,
    compare_all,
    every_kernel,
    probabilities,
    selections,
    warm_up,
)
from cuelearn.experiments.oks.settings import (
    BETA_RANGE,
    C_RANGE,
    IMAGE_TASKS,
    ORIGINAL_TASKS,
    TABLE_TASKS,
    settings,
)
from cuelearn.experiments.oks.tasks import Pair, describe_pair, load_set, pair_of
from cuelearn.experiments.oks.theorems import (
    KINDS,
    STREAMS,
    expectations,
    mistakes_against_bound,
    quantiles,
    regret_against_bound,
    selection_quality,
)


def printed(number):
    """Table 1 or 2 of the paper: task, method, seconds, accuracy, sd (over five seeds), kernels."""
    return protocol.printed(f"oks-tab-{number}")
