r"""Experiments of the MKTL chapter (thesis chapter 6).

Path of the data: loader -> `load_task` or `binary_task` (new classes on one cue; scores of priors that were
trained before on other cues) -> `draw` (training samples) -> `compare.Trial` (one kernel for all methods) ->
`validated` chooses C and p -> `accuracies` -> a `Sweep` -> `multiclass`, `binary`, `negative`: a DataFrame ->
`plots.mktl`. `transfer_weights` and `along_p` show one fitted model, `training_time` times it. The methods
stand in `compare.METHODS`, sizes and grids in `settings`.
"""

from cuelearn.experiments.mktl.compare import (
    BINARY,
    METHODS,
    MULTICLASS,
    along_p,
    binary,
    multiclass,
    negative,
    transfer_weights,
    useless_scores,
)
from cuelearn.experiments.mktl.settings import BUNDLED, C_RANGE, N_NEGATIVE, SIMULATED, VALIDATED, settings
from cuelearn.experiments.mktl.tasks import (
    BACKGROUND,
    TASKS,
    Prior,
    TransferTask,
    binary_targets,
    binary_task,
    draw,
    draw_binary,
    load_set,
    load_task,
)
from cuelearn.experiments.mktl.timing import random_problem, training_time
