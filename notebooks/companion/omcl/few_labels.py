"""Learning from requested labels only (thesis 7.2.1): one pass of OM-2 and OMCL under each rule.

Kernel widths are chosen for each cue on the validation part, whose labels are all known; nothing else is
chosen. OMCL has Perceptrons in the first layer; all other parameters are the defaults.
"""

import numpy as np
import pandas as pd

from companion.cue_tasks import Permutation, mean_error
from companion.omcl.settings import QUERIES
from cuelearn.mkl import OM2
from cuelearn.omcl import OMCL, KernelPerceptron


def shortened(split, n_train, n_test):
    """The first training samples of a split, and as many tests, evenly chosen."""
    tests = np.linspace(0, split.test.size - 1, min(n_test, split.test.size)).astype(int)
    inner = split.inner[split.inner < n_train]
    held = split.held[split.held < n_train]
    return split._replace(train=split.train[:n_train], test=split.test[tests], inner=inner, held=held)


def queries(seed):
    """Rule, value of its parameter, query; first the one that requests all labels."""
    yield "all", 1.0, None
    for rule, (query, name, grid) in QUERIES.items():
        draws = {} if rule == "threshold" else {"seed": seed}
        for value in grid:
            yield rule, value, query(**{name: value}, **draws)


def few_labels_run(permutation, task):
    """Share of labels requested and test error of both methods under all rules, on one permutation."""
    run = Permutation(task, task.splits[permutation])
    factors, _ = run.choose_widths(run.cues)
    inside, across = run.kernels(run.cues, factors)
    cues = [(cue, KernelPerceptron("precomputed"), j) for j, cue in enumerate(run.cues)]
    rows = []
    for rule, value, query in queries(permutation):
        for method, model in {"OM2": OM2("precomputed", n_epochs=1), "OMCL": OMCL(cues)}.items():
            model.set_params(query=query).fit(inside, run.labels)
            error = mean_error(model.predict(across) != run.truth, run.truth, run.n_classes)
            row = {"permutation": permutation, "method": method, "rule": rule, "value": value}
            rows.append(row | {"requested": model.n_queries_ / run.labels.size, "test_error": error})
    return pd.DataFrame(rows)
