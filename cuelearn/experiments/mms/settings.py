"""Sizes, seeds and grids of the chapter's experiments: fixed here, for every profile, before anything is run."""

from cuelearn.datasets import Provenance

#: The papers' range (thesis 5.5), for every method.
C_RANGE = (0.1, 1.0, 10.0, 100.0, 1000.0)
#: The thesis's names: at least 20 occurrences in protocol I, 3 in protocol II.
OCCURRENCES = {"I": 20, "II": 3}
#: Data of figure 5.3. MNIST, Pendigits and satimage stand in for usps, news20 and covtype; letter is the thesis's own.
ARTIFICIAL = ("mnist", "letter", "pendigits", "satimage")
BAG_SIZE = 5
#: Parameters are validated there, once per data set, and then kept along the curves of `quick`.
MIDDLE = {"n_candidates": 20, "p_correlated": 0.25, "p_ambiguous": 0.25}

#: For the notes of figures.
VALIDATED = "parameters of all methods chosen on held-back training bags, by their candidates"
RANDOM_BAGS = Provenance(
    "random bags",
    "generated",
    "of this project",
    None,
    "this project",
    "cuelearn.experiments.mms.theorems.random_bag",
)


def settings(profile):
    """Sizes of all experiments of the chapter for a profile.

    Parameters
    ----------
    profile : {"smoke", "quick", "full"}

    Returns
    -------
    dict
        `seeds`: of figure 5.3; `grid`: of C; `effort`: epochs and rounds of `MMS`; `artificial`: bags, test samples, values of L, pairs
        (P_c, P_a); `rounds`: the concave-convex procedure round by round; `naming`: items and identities of the composed corpus, which are
        fewer in the same proportion, so that names occur as often, and seeds; `poses`; `search`: random bags; `bound`: proposition 5.2.
    """
    sizes = {
        "smoke": {
            "seeds": 2,
            "grid": (1.0, 100.0),
            "effort": {"n_epochs": 5, "n_rounds": 3},
            "artificial": {
                "names": ("letter", "pendigits"),
                "n_bags": 40,
                "n_test": 300,
                "L": (5, 20),
                "hardness": ((0.0, 0.0), (0.5, 0.5)),
            },
            "rounds": {"names": ("letter",), "n_bags": 40, "L": 20, "n_epochs": 10, "seeds": 2},
            "naming": {"n_items": 300, "n_names": 30, "occurrences": {"I": 4, "II": 2}, "seeds": 2},
            "poses": {
                "n_items": 150,
                "n_test": 30,
                "n_names": 30,
                "seeds": 2,
                "widths": (0.5,),
                "C": (10.0,),
            },
            "search": {
                "n_bags": 60,
                "trained": {"names": ("letter",), "n_bags": 15, "n_items": 100, "seeds": 2},
            },
            "bound": {"n_bags": 40, "names": ("pendigits",), "seeds": 1},
        },
        "quick": {
            "seeds": 3,
            "grid": C_RANGE,
            "effort": {"n_epochs": 20, "n_rounds": 5},
            "artificial": {
                "names": ARTIFICIAL,
                "n_bags": 80,
                "n_test": 2000,
                "L": (5, 20, 100),
                "hardness": ((0.0, 0.0), (0.5, 0.5)),
            },
            "rounds": {"names": ARTIFICIAL, "n_bags": 80, "L": 100, "n_epochs": 25, "seeds": 3},
            "naming": {"n_items": 1000, "n_names": 30, "occurrences": OCCURRENCES, "seeds": 3},
            "poses": {
                "n_items": 800,
                "n_test": 200,
                "n_names": 30,
                "seeds": 3,
                "widths": (0.25, 1.0),
                "C": (1.0, 10.0, 100.0),
            },
            "search": {
                "n_bags": 1000,
                "trained": {"names": ("letter", "satimage"), "n_bags": 40, "n_items": 400, "seeds": 3},
            },
            "bound": {"n_bags": 100, "names": ARTIFICIAL, "seeds": 2},
        },
        "full": {
            "seeds": 3,
            "grid": C_RANGE,
            "effort": {"n_epochs": 40, "n_rounds": 8},
            "artificial": {
                "names": ARTIFICIAL,
                "n_bags": 300,
                "n_test": 10_000,
                "L": (5, 20, 100),
                "hardness": ((0.0, 0.0), (0.0, 0.5), (0.5, 0.0), (0.25, 0.25), (0.5, 0.5)),
            },
            "rounds": {"names": ARTIFICIAL, "n_bags": 300, "L": 200, "n_epochs": 100, "seeds": 3},
            "naming": {"n_items": 6000, "n_names": 78, "occurrences": OCCURRENCES, "seeds": 3},
            "poses": {
                "n_items": 1703,
                "n_test": 103,
                "n_names": 60,
                "seeds": 5,
                "widths": (0.25, 0.5, 1.0),
                "C": C_RANGE,
            },
            "search": {
                "n_bags": 1000,
                "trained": {"names": ARTIFICIAL, "n_bags": 100, "n_items": 2000, "seeds": 3},
            },
            "bound": {"n_bags": 300, "names": ARTIFICIAL, "seeds": 3},
        },
    }
    return sizes[profile]
