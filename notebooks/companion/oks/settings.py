"""Sizes, seeds and grids of the chapter's experiments: fixed before anything is run."""

from functools import partial

from companion.protocol import settings_of
from cuelearn.oks.batch import C_GRID

# the paper's ranges; nothing depends on its lambda
BETA_RANGE = tuple(round(0.1 + 0.04 * k, 2) for k in range(21))
P_GRID = (1.01, 1.05, 1.10, 1.25, 1.50, 1.75, 2.0)  # OM-2's, of chapter mkl

#: The paper's own, where Corel5k is present, on the four kernels of its visual terms.
ORIGINAL_TASKS = ("corel5k sky/people", "corel5k water/tree", "corel5k sky/grass")

# smoke, quick, full
TABLE = {
    "n_pairs": (2, 5, 99),  # of keywords (there are 22 in full), and as many of categories (16)
    "least": ((100, 10), (100, 10), (60, 8)),  # drawings and families of a label
    "n_leaves": (2, 12, 12),  # pairs of species of leaves: all without a common one
    "more_leaves": (3, 36, 48),  # on which every kernel is alone, species drawn three or four times
    # splits by thing on which every kernel is alone; the first is drawn, and quick has no other
    "alone": {"keyword": (1, 1, 3), "category": (1, 1, 3), "leaves": (2, 1, 8)},
    "pairs": {"n_drawings": (30, 85, 130), "n_views": (1, 2, 3), "n_pictures": (90, 600, 1500)},
    "grids": {
        "C": ((1.0, 2.0**5), (2.0**-5, 1.0, 2.0**5), C_GRID),
        "beta": ((0.3, 0.7), (0.1, 0.5, 0.9), BETA_RANGE),
        "p": ((1.25,), (1.01, 1.05, 1.25, 2.0), P_GRID),
    },
    "selectors": (2, 1, 4),  # splits by thing, each with draws of its own, of the methods in `repeated`
    "repeated": (("MuSVM", "SimpleMKL", "OM2", "SOM", "OKS"),) * 3,
    "selections": {
        "judged": (6, 20, 60),
        "seeds": (4, 5, 10),  # but of two passes, which are judged on more
        "n_epochs": ((1, 2), (1, 2, 5), (1, 2, 5, 10, 20)),
    },
    "mistakes": {
        "n_samples": ((40, 80, 160), (75, 200, 600), (75, 150, 300, 600, 1200, 2400)),
        "seeds": (1, 3, 10),
        "draws": (8, 20, 60),
    },
    "regret": {
        "n_samples": ((40, 80), (75, 150, 300), (100, 400, 1600)),
        "seeds": (1, 3, 3),
        "draws": (8, 10, 100),
    },
    "quality": {
        "n_visits": ((50, 100, 200), (100, 200, 400, 800), (100, 200, 400, 800, 1600)),
        "n_samples": (200, 800, 1600),
        "n_held": (500, 1000, 3000),
        "seeds": (1, 3, 10),
        "draws": (20, 60, 300),
    },
}
#: Sizes for a profile, "smoke", "quick" or "full".
settings = partial(settings_of, TABLE)
