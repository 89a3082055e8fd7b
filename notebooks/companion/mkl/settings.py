"""Sizes, seeds and grids of the chapter's experiments: fixed before anything is run."""

from companion.protocol import settings_of

# the papers' grids, which decide
P_GRID = (1.01, 1.05, 1.10, 1.25, 1.50, 1.75, 2.0)
C_GRID = (0.1, 1.0, 10.0, 100.0, 1000.0)
ALPHA_GRID = (0.0001, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.02)
#: Below the papers' C: tried where their smallest is chosen, and shown beside if it is better.
SMALLER_C = 0.01

# smoke, quick, full
TABLE = {
    "seeds": (2, 3, 10),
    "tables": {"seeds": (2, 3, 12)},
    "three_class": {"seeds": (2, 5, 20)},
    "objects": {"n_classes": (12, 34, 102), "n_train": (60, 136, 510)},
    "categories": {"n_classes": (4, 10, 30), "n_train": (120, 100, 900), "seeds": (2, 3, 5)},
    "choose": {
        "n_folds": (2, 2, 3),
        "n_train": (100, 150, 1000),
        "every": (2, 2, 2),
        "grids": (
            {"C": (1.0,), "p": (1.05, 2.0), "alpha": (0.005,)},
            {"C": (1.0, 10.0), "p": (1.05, 1.25), "alpha": (0.005, 0.02)},
            {},
        ),
    },
    "alone": {"C": ((1.0,), (1.0, 10.0, 100.0), C_GRID)},
    # cues that all inform, on tables and on categories; redundant ones, on objects
    "cues": {
        "mfeat": (120, 200, 1000),
        "htad": (120, 200, 900),
        "different": (120, 120, 600),
        "pyramid": (60, 136, 510),
    },
    "p_sweep": {
        "n_epochs": (3, 10, 50),
        "most_epochs": (30, 100, 300),
        "p_grid": ((1.05, 1.5, 2.0), P_GRID, P_GRID),
        "seeds": (2, 3, 20),
    },
    "obscure_p": {
        "n_epochs": (10, 2000, 2000),
        "tol": (0.3, 0.01, 0.01),
        "p_grid": ((1.05, 1.5, 2.0), (1.01, 1.05, 1.25, 2.0), P_GRID),
        "seeds": (2, 3, 10),
    },
    "online": {
        "epochs": ((1, 2), (1, 2, 5, 10, 20, 50), (1, 2, 3, 5, 10, 20, 50, 100, 150)),
        "omcl_epochs": ((1,), (1,), (1,)),
        "omcl_seeds": (2, 3, 12),
        "seeds": (3, 6, 20),
    },
    "online_cues": {
        "epochs": ((1, 2), (1, 2, 5, 10, 20), (1, 2, 3, 5, 10, 20, 50, 100, 150)),
        "omcl_epochs": ((1, 2), (1, 2, 5), (1, 2, 5, 10)),
        "omcl_seeds": (2, 3, 12),
        "seeds": (2, 3, 12),
    },
    "leaves": {"n_train": (200, 200, 600), "seeds": (2, 3, 5)},
    "scene15": {"n_train": (150, 450, 900), "seeds": (2, 8, 20)},
    "flowers": {
        "n_train": (24, 68, 306),
        "n_test": (1700,) * 3,
        "n_epochs": (10, 3500, 5000),
        "n_epochs_hard": (10, 300, 1000),
        "seeds": (2, 3, 8),
    },
    "pendigits": {
        "n_train": (150, 300, 7494),
        "n_test": (300, 1000, 3498),
        "n_epochs": (10, 3000, 1000),
        "n_epochs_hard": (10, 1000, 300),
        "seeds": (2, 3, 5),  # of orders of visits, where all learn
    },
    "first_stage": {
        "n_train": ((150, 24), (200, 68), (2000, 306)),
        "epochs": ((1, 5, 20), (1, 5, 20, 100), (1, 5, 20, 100)),
        "n_epochs": (5, 50, 300),
        "seeds": (2, 2, 3),
    },
    "objects_p": {
        "n_train": (24, 68, 306),
        "n_test": (1700,) * 3,
        "n_epochs": (5, 2000, 3000),
        "p_grid": ((1.05, 2.0), P_GRID[::2], P_GRID),
        "seeds": (2, 3, 6),
    },
    "pendigits_p": {
        "n_train": (100, 300, 7494),
        "n_test": (300, 1000, 3498),
        "n_epochs": (5, 5000, 5000),
        "p_grid": ((1.05, 2.0), P_GRID[::2], P_GRID),
        "seeds": (2, 3, 6),
    },
    "sizes": {
        "n_train": ((24, 60), (68, 136), (204, 306, 510, 1020, 2040)),
        "rivals_up_to": (60, 136, 510),
        "seeds": (2, 3, 6),
    },
    "n_kernels": {
        "n_train": (60, 102, 510),
        "params": ({"C": 1.0, "p": 1.05},) * 3,
        "counts": ((5, 20, 39), (1, 3, 6, 12, 24, 39), (1, 3, 6, 12, 24, 39)),
        "n_epochs": (5, 1000, 1000),
        "seeds": (2, 4, 12),
    },
    "mnist": {
        "n_train": ((100, 200, 400), (200, 400, 800), (500, 1000, 2000, 5000)),
        "n_test": (300, 1000, 10000),
        "n_epochs": (8, 50, 50),
        "most_epochs": (20, 1000, 1000),
        "seeds": (2, 3, 5),
        "svm_up_to": (400, 400, 2000),
        "choose_epochs": (5, 30, 200),
    },
    "mnist_all": {
        # the longest run first: beside it one core gets through the three orders of visits
        "n_train": ((), (), (20_000, 60_000)),
        "n_epochs": ((), (), (500, 10)),
        "runs": ((), (), (1, 3)),
        "n_test": (10_000,) * 3,
    },
    "speed": {
        "n_train": ((100, 200), (500, 2000), (500, 1000, 2000, 4000, 7494)),
        "C": ((1.0,), (0.1, 1.0, 10.0, 100.0), (0.1, 1.0, 10.0, 100.0)),
        "repeats": (1, 3, 3),
        "seeds": (2, 3, 5),
        "digits": (0, 0, 60_000),
    },
    "ufo": {"n_train": (24, 68, 306), "n_epochs": (10, 500, 2000), "seeds": (2, 3, 6)},
    "many": {
        "n_train": (60, 68, 306),
        "counts": ((35, 70), (35, 1400), (35, 350, 700, 1400)),
        "n_epochs": (3, 10, 20),
        "most_epochs": (10, 300, 1000),
        "alphas": ((0.001, 0.01, 0.02), (0.0001, 0.005, 0.02), (0.0001, 0.001, 0.005, 0.02)),
        "seeds": (2, 3, 5),
    },
    "theorems": {
        "n_train": (80, 150, 500),
        "n_epochs": (10, 100, 300),
        "streams": (3, 5, 30),
        "counts": ((2, 8, 32), (2, 4, 16, 64, 256), (2, 4, 8, 16, 32, 64, 128, 256, 512)),
        "p_grid": ((1.05, 2.0), (1.05, 2.0), P_GRID),
    },
    # other losses: the grids are those of all methods
    "losses": {
        "n_train": (100, 100, 200),
        "n_test": (100, 500, 1000),
        "n_folds": (2, 2, 3),
        "C": ((10.0,), (10.0, 100.0), C_GRID),
        "p": ((1.1,), (1.1, 2.0), (1.1, 1.5, 2.0)),
        "alpha": ((0.01,), (0.01,), (0.001, 0.01, 0.1)),
        "seeds": (2, 3, 8),
    },
}


def settings(profile):
    """Sizes of all experiments of the chapter for a profile, "smoke", "quick" or "full".

    `seeds` are those of entries with none of their own. Beyond five drawings of each object `sizes` takes
    views of them. `online` has all epochs on as many splits as `tables`, on others the first pass.
    `n_epochs_hard` are those at C = 1000.
    """
    return settings_of(TABLE, profile)
