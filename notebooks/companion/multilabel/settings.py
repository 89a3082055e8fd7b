"""Sizes, seeds and grids of the chapter's experiments: fixed before anything is run."""

from companion.protocol import settings_of

C_GRID = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)

# smoke, quick, full
TABLE = {
    "n_train": {
        "yeast": (60, 150, 500),
        "emoji": (60, 200, 500),
        "scene": (60, 200, 500),
        "corel5k": (410, 450, 600),
    },
    "n_classes": {
        "yeast": (None, None, None),
        "emoji": (20, 40, None),
        "scene": (None, None, None),
        "corel5k": (20, 60, None),
    },
    "n_test": (100, 400, 4000),
    "seeds": (2, 3, 10),
    "C": ((1.0,), C_GRID[3:6], C_GRID),
    "n_iter": (60, 400, 1000),
    "passes": (10, 10, 20),
    "over_time": {"seeds": (2, 3, 8)},
    "steps": {"seeds": (2, 3, 14)},
    "cost": {
        "n_train": {"emoji": (60, 150, 200), "leaves": (60, 150, 200), "corel5k": (410, 450, 600)},
        "n_classes": {
            "emoji": ((4, 6, 8), (4, 16, 64), (4, 8, 16, 32, 64, 131)),
            "leaves": ((4, 6, 8), (4, 16, 64), (4, 8, 16, 32, 64, 100)),
            "corel5k": ((4, 8, 32), (4, 40, 374), (4, 16, 64, 128, 374)),
        },
        "most": (300, 20_000, 100_000),
        "wanted": (0.2, 0.1, 0.05),
        "C": (10.0, 10.0, 10.0),
        "printed": (("emoji", "leaves"), ("emoji",), ("emoji", "leaves")),  # the paper's estimates too
        "seeds": (2, 3, 6),
    },
    "gap": {
        "at": ((15, 30, 60), (50, 100, 200, 400), (100, 200, 400, 800, 1600, 3200)),
        "n_classes": (4, 4, 4),
        "n_train": (60, 150, 300),
        "C": (1.0, 1.0, 1.0),
        "seeds": (2, 3, 12),
    },
}


def settings(profile):
    """Sizes of all experiments for a profile, "smoke", "quick" or "full".

    `n_classes` None are all. `seeds` in full are as many draws as the claims need by the spread of an earlier
    run. At C = 0.001 every coefficient is at C: smaller ones give the same ranking.
    """
    return settings_of(TABLE, profile)
