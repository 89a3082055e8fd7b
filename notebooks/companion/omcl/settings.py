"""Sizes and grids of the chapter's experiments: fixed before anything is run."""

import math
from functools import partial

from companion.protocol import settings_of

# up to the residual of the first sample, sqrt(2), beyond which every update is projected; close to it, since
# narrow kernels leave 99% of an update outside the span of what is kept
ETAS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.35, 1.38, 1.4, 1.41, 1.413, 1.414, math.sqrt(2.0))
C_GRID = (1e-4, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
#: What is tried of the methods of table 2.1 that learn in batch, and of OM-2.
LEVELS = {
    "SVM on the long vector": {"C": (0.1, 1.0, 10.0, 100.0), "factor": (1 / 8, 0.25, 0.5, 1.0, 2.0)},
    "OBSCURE": {"C": (0.01, 0.1, 1.0), "p": (1.01, 1.05, 1.25, 2.0)},
    "OM-2": {"p": (1.01, 1.05, 1.25, 1.5, 2.0)},
    "stacked SVMs": {"C": (0.1, 1.0, 10.0, 100.0)},
}
#: Ends that nothing can lie beyond.
NATURAL = {"eta": (math.sqrt(2.0),), "p": (2.0,)}
STANDARD_ERRORS = {"OMCL-BM": 1.0, "OMCL-BM sparser": 2.0}

# smoke, quick, full
TABLE = {
    "idol2": {"permutations": (2, 6, 12)},
    "objects": {"n_views": (3, 20, 41), "permutations": (2, 24, 160)},
    "categories": {"n_categories": (5, 30, 30), "n_learn": (6, 30, 30), "permutations": (2, 6, 24)},
    "things": {"permutations": (2, 6, 20)},
    "integration": (2, 4, 10),  # permutations of the categories
    "htad": {"n_train": (200, 900, 900), "n_test": (300, 486, 486), "permutations": (2, 10, 80)},
    "mfeat": {"n_train": (200, 1000, 1000), "n_test": (300, 700, 1000), "permutations": (2, 8, 20)},
}
#: Sizes for a profile, "smoke", "quick" or "full".
settings = partial(settings_of, TABLE)
