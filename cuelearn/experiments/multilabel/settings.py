"""Sizes, seeds and grids of the chapter's experiments: fixed before anything is run."""

from cuelearn.experiments.protocol import settings_of

C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)

# smoke, quick, full
GAP = {"wanted": (0.2, 0.05, 0.05), "C": (10.0, 10.0, 10.0)}
TABLE = {
    "n_train": {
        "yeast": (120, 200, 800),
        "emoji": (150, 200, 1000),
        "scene": (120, 200, 800),
        "corel5k": (410, 450, 800),
    },
    "n_classes": {
        "yeast": (None, None, None),
        "emoji": (20, None, None),
        "scene": (None, None, None),
        "corel5k": (20, 60, None),
    },
    "n_test": (200, 600, 4000),
    "seeds": (2, 4, 5),
    "C": ((1.0, 10.0), C_GRID, C_GRID),
    "n_iter": (100, 500, 2000),
    "passes": (10, 20, 100),
    "cost": {
        "n_train": (150, 150, 300),
        "n_classes": ((2, 4, 8), (2, 8, 32, 131), (2, 4, 8, 16, 32, 64, 131)),
        "most": (300, 10_000, 40_000),
        **GAP,
        "wanted": (0.2, 0.1, 0.05),
        "seeds": (2, 4, 10),
    },
    "original": {
        "n_train": (410, 450, 600),
        "n_classes": ((2, 8, 32), (2, 8, 32, 128, 374), (2, 4, 8, 16, 32, 64, 128, 256, 374)),
        "most": (300, 10_000, 60_000),
        **GAP,
        "seeds": (1, 2, 3),
    },
    "gap": ((25, 50, 100, 200), (100, 200, 400, 800, 1600), (100, 200, 400, 800, 1600, 3200, 6400)),
}


def settings(profile):
    """Sizes of all experiments of the chapter for a profile, "smoke", "quick" or "full".

    `n_train` and `n_classes` (None: all) are by set, `cost` and `original` the sizes of the cost against the
    number of classes, without and with Corel5k; at C = 1 equal weights are within 2% of Sum's optimum
    already. 150 drawings of emoji suffice for two of every keyword.
    """
    return settings_of(TABLE, profile)
