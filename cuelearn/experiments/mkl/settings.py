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
        One entry per experiment; `seeds` is how many splits (or streams) each is repeated over.
    """
    sizes = {
        "smoke": dict(
            seeds=2, three_class=dict(seeds=2), choose=dict(n_folds=2, n_epochs=5, C_grid=(1.0, 100.0), p_grid=(1.05, 2.0)),
            p_sweep=dict(n_train=100, n_test=300, n_epochs=3, most_epochs=30), pendigits=dict(n_train=200, n_test=300, n_epochs=10),
            pendigits_p=dict(n_epochs=5), n_kernels=dict(n_train=100, n_test=300, counts=(5, 20, 39), n_epochs=5, most_epochs=30),
            mnist=dict(n_train=(100, 200, 400), n_test=300, n_epochs=8, svm_up_to=400), ufo=dict(n_train=100, n_test=300, n_epochs=10),
            many=dict(n_train=100, n_test=300, counts=(7, 70), n_epochs=3, alphas=(0.001, 0.01, 0.02)),
            theorems=dict(n_train=80, n_epochs=10, streams=3, counts=(2, 8, 32)),
        ),
        "quick": dict(
            seeds=5, three_class=dict(seeds=10), choose=dict(n_folds=3, n_epochs=20, C_grid=C_GRID, p_grid=(1.05, 1.25, 2.0)),
            p_sweep=dict(n_train=300, n_test=1700, n_epochs=10, most_epochs=300),
            pendigits=dict(n_train=1500, n_test=3498, n_epochs=1500), pendigits_p=dict(n_epochs=100),
            n_kernels=dict(n_train=300, n_test=1700, counts=(1, 3, 6, 12, 24, 39), n_epochs=1000, most_epochs=300),
            mnist=dict(n_train=(500, 1000, 2000, 4000), n_test=2000, n_epochs=40, svm_up_to=1000),
            ufo=dict(n_train=300, n_test=1700, n_epochs=3000), many=dict(
                n_train=680, n_test=1320, counts=(7, 70, 350, 1400), n_epochs=10, alphas=ALPHA_GRID),
            theorems=dict(n_train=300, n_epochs=100, streams=10, counts=(2, 4, 8, 16, 32, 64, 128, 256)),
        ),
        "full": dict(
            seeds=10, three_class=dict(seeds=20), choose=dict(n_folds=5, n_epochs=50, C_grid=C_GRID, p_grid=P_GRID),
            p_sweep=dict(n_train=300, n_test=1700, n_epochs=50, most_epochs=1000),
            pendigits=dict(n_train=7494, n_test=3498, n_epochs=1000), pendigits_p=dict(n_epochs=200),
            n_kernels=dict(n_train=300, n_test=1700, counts=(1, 3, 6, 12, 24, 39), n_epochs=3000, most_epochs=1000),
            mnist=dict(n_train=(1000, 2000, 5000, 10000, 20000), n_test=10000, n_epochs=100, svm_up_to=5000),
            ufo=dict(n_train=300, n_test=1700, n_epochs=10000), many=dict(
                n_train=680, n_test=1320, counts=(7, 70, 350, 700, 1400), n_epochs=50, alphas=ALPHA_GRID),
            theorems=dict(n_train=500, n_epochs=300, streams=30, counts=(2, 4, 8, 16, 32, 64, 128, 256, 512)),
        ),
    }  # fmt: skip
    return sizes[profile]
