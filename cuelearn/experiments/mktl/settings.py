"""Sizes, seeds and grids of the chapter's experiments. Grids and protocol were fixed first; sizes follow the time that they take."""

from cuelearn.datasets import Provenance
from cuelearn.mktl import P_RANGE

#: The thesis's range (6.5), for every method.
C_RANGE = (0.1, 1.0, 10.0, 100.0, 1000.0)
#: Multiclass tasks of figure 6.3; with the original data present, "awa" comes first.
BUNDLED = ("letter", "mfeat")
#: Background samples beside the few of the target: many, as in the thesis, whose number is not printed.
N_NEGATIVE = 80

#: For the notes of figures.
VALIDATED = "C and p of every method chosen on other samples of the training pool, by the same draws"
SIMULATED = Provenance(
    "random samples and scores",
    "generated",
    "of this project",
    None,
    "this project",
    "cuelearn.experiments.mktl.timing.random_problem",
)


def settings(profile):
    """Sizes of all experiments of the chapter for a profile.

    Parameters
    ----------
    profile : {"smoke", "quick", "full"}

    Returns
    -------
    dict
        `C`, `p`: grids; `effort`: of MKTL; `binary`: figure 6.2 (numbers of positives, seeds, targets, targets and draws to validate on);
        `multiclass`: figure 6.3 (samples per class, seeds, draws to validate on, held samples per class); `negative`: useless priors;
        `path`: values of p for the sparsity figure; `timing`: samples per class, and values of C that p = 1.01 is timed with.
    """
    sizes = {
        "smoke": {
            "C": (1.0, 100.0),
            "p": (1.05, 1.5),
            "effort": {"n_epochs": 5, "tol": 1e-2},
            "binary": {"n_positive": (1, 3, 10), "seeds": 2, "targets": 4, "validated": 2, "draws": 1},
            "multiclass": {
                "letter": (1, 5, 10),
                "mfeat": (1, 5),
                "awa": (1, 5),
                "seeds": 2,
                "draws": 1,
                "held": 10,
            },
            "negative": {"n_per_class": (1, 5), "n_noise": (0, 17), "seeds": 2},
            "path": {"p": (1.01, 1.1, 1.5, 2.0), "n_per_class": 5, "seeds": 2},
            "timing": {"n_per_class": (20,), "repeats": 1, "sparse": (1.0,)},
        },
        "quick": {
            "C": C_RANGE,
            "p": (1.01, 1.05, 1.2, 1.5),
            "effort": {"n_epochs": 20, "tol": 1e-2},
            "binary": {
                "n_positive": (1, 3, 5, 10, 30),
                "seeds": 4,
                "targets": 25,
                "validated": 7,
                "draws": 1,
            },
            "multiclass": {
                "letter": (1, 3, 5, 10, 30),
                "mfeat": (1, 3, 5, 10, 30),
                "awa": (1, 5, 10, 20, 50),
                "seeds": 10,
                "draws": 1,
                "held": 40,
            },
            "negative": {"n_per_class": (1, 3, 10), "n_noise": (0, 17, 100), "seeds": 10},
            "path": {
                "p": (1.01, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5, 1.75, 2.0),
                "n_per_class": 10,
                "seeds": 5,
            },
            "timing": {"n_per_class": (100,), "repeats": 1, "sparse": (0.1, 1.0, 10.0)},
        },
        "full": {
            "C": C_RANGE,
            "p": P_RANGE,
            "effort": {"n_epochs": 20, "tol": 1e-2},
            "binary": {
                "n_positive": (1, 3, 5, 10, 15, 20, 25, 30),
                "seeds": 5,
                "targets": 25,
                "validated": 9,
                "draws": 1,
            },
            "multiclass": {
                "letter": (1, 3, 5, 10, 15, 20, 30, 50),
                "mfeat": (1, 3, 5, 10, 15, 20, 30, 50),
                "awa": (1, 5, 10, 20, 30, 50),
                "seeds": 10,
                "draws": 2,
                "held": 50,
            },
            "negative": {"n_per_class": (1, 3, 5, 10, 20), "n_noise": (0, 17, 100), "seeds": 20},
            "path": {
                "p": (1.01, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.6, 1.75, 2.0),
                "n_per_class": 10,
                "seeds": 10,
            },
            "timing": {"n_per_class": (25, 50, 75, 100), "repeats": 3, "sparse": C_RANGE},
        },
    }
    return sizes[profile]
