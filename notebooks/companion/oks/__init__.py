"""Experiments of the OKS chapter (Yang, Mahdavi, Jin, Yi, Hoi, AAAI 2012).

`describe_pairs` gives features and 60 kernels; the point functions of `compare` (tables, figures) and
`theorems` run in a `Sweep`, and their tables go to `plots.oks`.
"""

from companion import protocol
from companion.oks.compare import (
    METHODS,
    RANDOM,
    as_printed,
    beside,
    by_method,
    compare,
    compare_all,
    edges,
    every_kernel,
    every_kernel_again,
    of_the_paper,
    pictures_of,
    probabilities,
    selections,
    warm_up,
)
from companion.oks.settings import ORIGINAL_TASKS, settings
from companion.oks.tasks import Pair, describe_pairs, pairs
from companion.oks.theorems import (
    KINDS,
    STREAMS,
    expectations,
    mistakes_at,
    quality_at,
    quantiles,
    regret_against_bound,
)
from companion.protocol import load_set


def printed(number):
    """Table 1 or 2 of the paper: task, method, seconds, accuracy, sd (over five seeds), kernels."""
    return protocol.printed(f"oks-tab-{number}")
