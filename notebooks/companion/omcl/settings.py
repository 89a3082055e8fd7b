"""Sizes and grids of the chapter's experiments: fixed before anything is run."""

import math
from functools import partial

from companion.cue_tasks import FACTORS
from companion.protocol import settings_of
from cuelearn.omcl import MarginQuery, RandomQuery, ThresholdQuery

# up to the residual of the first sample, sqrt(2), beyond which every update is projected; close to it, since
# narrow kernels leave 99% of an update outside the span of what is kept
ETAS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.35, 1.38, 1.4, 1.41, 1.413, 1.414, math.sqrt(2.0))
# the thesis gives no grid. Nearest to 1 first, which ties take: where C is so small that no step mends a
# loss, or so large that none is cut, the predictions are the same for all further values
C_GRID = (1.0, 0.1, 10.0, 0.01, 100.0, 1e-3, 1000.0, 1e-4, 1e-5, 1e-6)
#: What is tried of the methods of table 2.1 that learn in batch, and of OM-2.
LEVELS = {
    "SVM on the long vector": {"C": (0.1, 1.0, 10.0, 100.0), "factor": (1 / 8, 0.25, 0.5, 1.0, 2.0, 4.0)},
    "OBSCURE": {"C": (0.01, 0.1, 1.0, 10.0, 100.0), "p": (1.01, 1.25, 2.0)},
    "OM-2": {"p": (1.01, 1.05, 1.25, 1.5, 2.0)},
    "stacked SVMs": {"C": (0.1, 1.0, 10.0, 100.0)},
}
#: Ends that nothing can lie beyond.
NATURAL = {"eta": (math.sqrt(2.0),), "p": (2.0,)}
STANDARD_ERRORS = {"OMCL-BM": 1.0, "OMCL-BM sparser": 2.0}

#: Rules for requesting labels and their grids, fixed after runs on pendigits, satimage and letter.
QUERIES = {
    "margin": (MarginQuery, "b", (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)),
    "threshold": (ThresholdQuery, "threshold", (0.03, 0.1, 0.3, 1.0, 2.0)),
    "random": (RandomQuery, "rate", (0.25, 0.5, 0.75)),
}
#: Data of the few labels.
FEW_LABELS = ("objects", "leaves", "mfeat")

# smoke, quick, full
TABLE = {
    # of what is chosen by validation
    "grids": {
        "C": (C_GRID, C_GRID[:6], C_GRID),
        "eta": (ETAS, ETAS[::2], ETAS),
        "width": (FACTORS, FACTORS[1::2], FACTORS),
    },
    "few labels": {"n_train": (100, 480, 960), "n_test": (100, 500, 1000), "permutations": (2, 3, 30)},
    "idol2": {"permutations": (2, 6, 12)},
    "objects": {"n_views": (3, 10, 41), "permutations": (2, 6, 64)},
    "categories": {"n_categories": (5, 12, 30), "n_learn": (6, 20, 30), "permutations": (2, 3, 6)},
    "things": {"permutations": (2, 3, 10)},
    "integration": (2, 3, 10),  # permutations of the numerals
    "htad": {"n_train": (200, 900, 900), "n_test": (300, 486, 486), "permutations": (2, 4, 60)},
    "mfeat": {"n_train": (200, 800, 1000), "n_test": (300, 700, 1000), "permutations": (2, 4, 30)},
    # in full as many as its training set has: mistakes are rare only after thousands
    "pendigits": {"n_train": (300, 2200, 7494), "n_test": (300, 500, 2000), "permutations": (2, 3, 8)},
}
#: Sizes for a profile, "smoke", "quick" or "full".
settings = partial(settings_of, TABLE)
#: The whole grids.
GRIDS = settings("full")["grids"]
