"""Experiments of the MKTL chapter (thesis chapter 6).

`tasks` trains priors and draws samples; `compare` holds the methods, chooses C and p, and makes the tables of
figures 6.2 and 6.3, which go to `plots.mktl`; `transfer_weights`, `along_p` and `confusion` show fitted
models, `training_time` times one. Sizes and grids stand in `settings`.
"""

from companion.mktl.compare import (
    METHODS,
    along_p,
    along_priors,
    binary,
    confusion,
    edges,
    lost,
    multiclass,
    negative,
    number_of_priors,
    transfer_weights,
)
from companion.mktl.settings import (
    BUNDLED,
    C_RANGE,
    DRAWN,
    N_NEGATIVE,
    SIMULATED,
    USELESS,
    VALIDATED,
    settings,
)
from companion.mktl.tasks import (
    TASKS,
    binary_targets,
    binary_task,
    describe,
    draw,
    faces,
    known_models,
    load_task,
)
from companion.mktl.timing import random_problem, training_time
