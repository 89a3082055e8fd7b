"""Sizes, seeds and grids of the chapter's experiments: fixed here, for every profile, before anything is run."""

# the papers' grids
P_GRID = (1.01, 1.05, 1.10, 1.25, 1.50, 1.75, 2.0)
C_GRID = (0.1, 1.0, 10.0, 100.0, 1000.0)
ALPHA_GRID = (0.0001, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.02)


def settings(profile):
    """Sizes of all experiments of the chapter for a profile.

    Multiple features trains on 30 samples of each class, as Caltech-101 does in the papers.

    Parameters
    ----------
    profile : {"smoke", "quick", "full"}

    Returns
    -------
    dict
        One entry per experiment; `seeds` is how many splits (or streams) each is repeated over, where an entry has none of its own.
        `choose` is the cross-validation of every method: `n_train` the most samples it uses, `grids` what replaces the papers' grids
        in the short profiles. Places have 300 frames a drive and Pendigits 5,000 training samples in `full`: beyond, the slowest
        methods would take the chapter past its 150 minutes on two cores. In `multilabel`, `keywords` is how many of Corel5k's 374 the
        table takes, `cost` and `original` the sizes of the cost against the number of classes, without and with Corel5k; at C = 1
        equal kernel weights are within 2% of Sum's optimum already, so C is 10 there.
    """
    sizes = {
        "smoke": {
            "seeds": 2,
            "three_class": {"seeds": 2},
            "choose": {
                "n_folds": 2,
                "n_train": 100,
                "grids": {"C": (1.0, 100.0), "p": (1.05, 2.0), "alpha": (0.005,)},
            },
            "robot": {"frames": 10, "height": 48, "width": 64, "permutations": (0, 2)},
            "p_sweep": {
                "n_train": 100,
                "n_test": 300,
                "n_epochs": 3,
                "most_epochs": 30,
                "p_grid": (1.05, 1.5, 2.0),
                "seeds": 2,
            },
            "obscure_p": {"n_epochs": 10, "tol": 0.3},
            "online": {"n_train": 100, "n_test": 300, "epochs": (1, 2), "omcl_epochs": (1,), "seeds": 2},
            "flowers": {"n_train": 100, "n_test": 300, "n_epochs": 10, "seeds": 2},
            "pendigits": {"n_train": 150, "n_test": 300, "n_epochs": 10, "seeds": 2},
            "pendigits_p": {"n_train": 100, "n_test": 300, "n_epochs": 5, "p_grid": (1.05, 2.0), "seeds": 2},
            "sizes": {"n_train": (50, 100), "n_test": 300, "seeds": 2},
            "n_kernels": {
                "n_train": 100,
                "n_test": 300,
                "counts": (5, 20, 39),
                "n_epochs": 5,
                "most_epochs": 30,
                "seeds": 2,
            },
            "mnist": {
                "n_train": (100, 200, 400),
                "n_test": 300,
                "n_epochs": 8,
                "svm_up_to": 400,
                "choose_epochs": 5,
            },
            "ufo": {"n_train": 100, "n_test": 300, "n_epochs": 10},
            "many": {
                "n_train": 100,
                "n_test": 300,
                "counts": (7, 70),
                "rivals_up_to": 7,
                "n_epochs": 3,
                "alphas": (0.001, 0.01, 0.02),
            },
            "theorems": {
                "n_train": 80,
                "n_epochs": 10,
                "streams": 3,
                "counts": (2, 8, 32),
                "p_grid": (1.05, 2.0),
            },
            "multilabel": {
                "n_train": 120,
                "n_test": 200,
                "seeds": 2,
                "C": (1.0, 10.0),
                "n_iter": 100,
                "passes": 10,
                "keywords": 20,
                "cost": {
                    "n_train": 60,
                    "n_classes": (2, 4, 8),
                    "most": 300,
                    "wanted": 0.2,
                    "C": 10.0,
                    "seeds": 2,
                },
                "original": {
                    "n_train": 410,
                    "n_classes": (2, 8, 32),
                    "most": 300,
                    "wanted": 0.2,
                    "C": 10.0,
                    "seeds": 1,
                },
                "gap": (25, 50, 100, 200),
            },
        },
        "quick": {
            "seeds": 3,
            "three_class": {"seeds": 6},
            "choose": {
                "n_folds": 2,
                "n_train": 300,
                "grids": {"p": (1.05, 1.25, 2.0), "alpha": (0.001, 0.005, 0.02)},
            },
            "robot": {"frames": 90, "height": 96, "width": 128, "permutations": (0, 1, 2, 3)},
            "p_sweep": {
                "n_train": 300,
                "n_test": 1700,
                "n_epochs": 10,
                "most_epochs": 300,
                "p_grid": P_GRID,
                "seeds": 5,
            },
            "obscure_p": {"n_epochs": 500, "tol": 0.1},
            "online": {
                "n_train": 300,
                "n_test": 1700,
                "epochs": (1, 2, 3, 5, 10, 20, 50),
                "omcl_epochs": (1, 2, 3),
                "seeds": 4,
            },
            "flowers": {"n_train": 300, "n_test": 1700, "n_epochs": 2000, "seeds": 3},
            "pendigits": {"n_train": 500, "n_test": 2000, "n_epochs": 1000, "seeds": 3},
            "pendigits_p": {"n_train": 500, "n_test": 2000, "n_epochs": 100, "p_grid": P_GRID, "seeds": 3},
            "sizes": {"n_train": (50, 150, 300), "n_test": 1700, "seeds": 3},
            "n_kernels": {
                "n_train": 300,
                "n_test": 1700,
                "counts": (1, 3, 6, 12, 24, 39),
                "n_epochs": 600,
                "most_epochs": 300,
                "seeds": 3,
            },
            "mnist": {
                "n_train": (400, 800, 1600),
                "n_test": 2000,
                "n_epochs": 15,
                "svm_up_to": 800,
                "choose_epochs": 30,
            },
            "ufo": {"n_train": 300, "n_test": 1700, "n_epochs": 1500},
            "many": {
                "n_train": 300,
                "n_test": 600,
                "counts": (7, 70, 1400),
                "rivals_up_to": 70,
                "n_epochs": 10,
                "alphas": (0.0001, 0.005, 0.02),
            },
            "theorems": {
                "n_train": 250,
                "n_epochs": 100,
                "streams": 10,
                "counts": (2, 4, 8, 16, 32, 64, 128, 256),
                "p_grid": (1.05, 2.0),
            },
            "multilabel": {
                "n_train": 200,
                "n_test": 1000,
                "seeds": 4,
                "C": (0.1, 1.0, 10.0, 100.0, 1000.0),
                "n_iter": 800,
                "passes": 40,
                "keywords": 60,
                "cost": {
                    "n_train": 100,
                    "n_classes": (2, 4, 8, 16, 26),
                    "most": 10_000,
                    "wanted": 0.05,
                    "C": 10.0,
                    "seeds": 4,
                },
                "original": {
                    "n_train": 450,
                    "n_classes": (2, 8, 32, 128, 374),
                    "most": 10_000,
                    "wanted": 0.05,
                    "C": 10.0,
                    "seeds": 2,
                },
                "gap": (100, 200, 400, 800, 1600),
            },
        },
        "full": {
            "seeds": 10,
            "three_class": {"seeds": 20},
            "choose": {"n_folds": 5, "n_train": 1000, "grids": {}},
            "robot": {"frames": 300, "height": 96, "width": 128, "permutations": tuple(range(12))},
            "p_sweep": {
                "n_train": 300,
                "n_test": 1700,
                "n_epochs": 50,
                "most_epochs": 1000,
                "p_grid": P_GRID,
                "seeds": 10,
            },
            "obscure_p": {"n_epochs": 1000, "tol": 0.1},
            "online": {
                "n_train": 300,
                "n_test": 1700,
                "epochs": (1, 2, 3, 5, 10, 20, 50, 100, 150),
                "omcl_epochs": (1, 2, 3, 5),
                "seeds": 10,
            },
            "flowers": {"n_train": 300, "n_test": 1700, "n_epochs": 10000, "seeds": 10},
            "pendigits": {"n_train": 5000, "n_test": 3498, "n_epochs": 300, "seeds": 3},
            "pendigits_p": {"n_train": 2000, "n_test": 3498, "n_epochs": 200, "p_grid": P_GRID, "seeds": 3},
            "sizes": {"n_train": (50, 100, 150, 200, 250, 300), "n_test": 1700, "seeds": 10},
            "n_kernels": {
                "n_train": 300,
                "n_test": 1700,
                "counts": (1, 3, 6, 12, 24, 39),
                "n_epochs": 3000,
                "most_epochs": 1000,
                "seeds": 10,
            },
            "mnist": {
                "n_train": (1000, 2000, 5000, 10000),
                "n_test": 10000,
                "n_epochs": 30,
                "svm_up_to": 2000,
                "choose_epochs": 200,
            },
            "ufo": {"n_train": 300, "n_test": 1700, "n_epochs": 10000},
            "many": {
                "n_train": 680,
                "n_test": 1320,
                "counts": (7, 70, 350, 700, 1400),
                "rivals_up_to": 350,
                "n_epochs": 50,
                "alphas": ALPHA_GRID,
            },
            "theorems": {
                "n_train": 500,
                "n_epochs": 300,
                "streams": 30,
                "counts": (2, 4, 8, 16, 32, 64, 128, 256, 512),
                "p_grid": P_GRID,
            },
            "multilabel": {
                "n_train": 800,
                "n_test": 4000,
                "seeds": 5,
                "C": (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0),
                "n_iter": 2000,
                "passes": 100,
                "keywords": 374,
                "cost": {
                    "n_train": 200,
                    "n_classes": (2, 4, 8, 16, 26),
                    "most": 20_000,
                    "wanted": 0.05,
                    "C": 10.0,
                    "seeds": 10,
                },
                "original": {
                    "n_train": 600,
                    "n_classes": (2, 4, 8, 16, 32, 64, 128, 256, 374),
                    "most": 60_000,
                    "wanted": 0.05,
                    "C": 10.0,
                    "seeds": 3,
                },
                "gap": (100, 200, 400, 800, 1600, 3200, 6400),
            },
        },
    }
    return sizes[profile]
