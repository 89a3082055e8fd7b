"""Sizes, seeds and grids of the chapter's experiments: fixed before anything is run."""

from functools import partial

from companion.protocol import made_here, settings_of

#: Of every method: the thesis's range (5.5), and below it, as 0.1 is often the best of that.
C_RANGE = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
#: The thesis's names: at least 20 occurrences in protocol I, 3 in protocol II.
OCCURRENCES = {"I": 20, "II": 3}
#: Of figure 5.3. MNIST, Pendigits and satimage stand in for usps, news20, covtype; letter is the thesis's
#: own.
ARTIFICIAL = ("mnist", "letter", "pendigits", "satimage")
BAG_SIZE = 5
#: Parameters are validated there, in every draw anew, and then kept along its curves.
MIDDLE = {"n_candidates": 20, "p_correlated": 0.25, "p_ambiguous": 0.25}

#: For the notes of figures.
VALIDATED = "parameters of all methods chosen on held-back training bags, by their candidates"
RANDOM_BAGS = made_here("random bags", "companion.mms.theorems.random_bag")

WIDTHS = (0.25, 1.0, 4.0, 16.0)  # of the kernels of faces and poses
_HARD = ((0.0, 0.0), (0.5, 0.5))  # P_c, P_a
# smoke, quick, full; numbers of seeds are those of claims.csv
TABLE = {
    "grid": ((1.0, 100.0), C_RANGE[1:-2], C_RANGE),
    "effort": {"n_epochs": (5, 20, 100), "n_rounds": (3, 5, 6)},  # enough for a small gap at most C
    "artificial": {
        "names": (("letter", "pendigits"), ARTIFICIAL, ARTIFICIAL),
        "seeds": (2, 3, 12),
        # draws and sets, the first ones, with MMS as it comes and MIMLSVM's other rule, at L = 20
        "beside": (1, 1, 2),
        "beside_sets": (2, 1, 4),
        "n_bags": (40, 40, 120),
        "n_test": (300, 1000, 10_000),
        "L": ((5, 20), (5, 20, 100), (5, 20, 100)),
        "hardness": (_HARD, _HARD, ((0.0, 0.0), (0.25, 0.25), (0.5, 0.5))),
    },
    "rounds": {
        "names": (("letter",), ARTIFICIAL, ARTIFICIAL),
        "n_bags": (40, 50, 200),
        "L": (20, 50, 200),
        "n_epochs": (10, 50, 100),
        "seeds": (2, 3, 8),
        "beside": (2, 3, 3),  # of them by Pegasos, and with the exact search
    },
    "naming": {  # identities are fewer in the proportion of the items, so that names occur as often
        "n_items": (300, 600, 3000),
        "n_names": (30, 30, 32),
        "occurrences": ({"I": 4, "II": 2}, {"I": 12, "II": 3}, OCCURRENCES),
        "seeds": (2, 3, 10),
        "placed": (2, 3, 6),  # of them in protocol II
    },
    "poses": {
        "n_items": (150, 450, 1703),
        "n_test": (30, 120, 103),
        "n_names": (30, 30, 60),
        "seeds": (2, 3, 8),
        "widths": ((0.5,), WIDTHS[1:], WIDTHS),
        "C": ((10.0,), (10.0,), (1.0, 10.0, 100.0)),
    },
    "search": {
        "n_bags": (60, 300, 1000),
        "trained": {
            "names": (("letter",), ("letter", "satimage"), ARTIFICIAL),
            "n_bags": (15, 30, 100),
            "n_items": (100, 200, 400),
            "seeds": (2, 3, 12),
            "beside": (1, 1, 3),  # of them of bags made ambiguous, which decide nothing
        },
    },
    "inference": {
        "names": (("letter",), ("letter", "satimage"), ARTIFICIAL),
        "n_bags": (15, 30, 100),
        "n_items": (40, 100, 300),
        "seeds": (2, 3, 8),
    },
    "annotators": {  # votes and links
        "names": (("mfeat",), ("mfeat", "emoji"), ("mfeat", "emoji")),
        "n_items": (60, 100, 240),
        "n_test": (200, 500, 500),
        "n_annotators": ((3, 5), (3, 7), (3, 5, 7)),
        "C": ((1.0, 100.0), C_RANGE[1:-2], C_RANGE[1:-1]),
        "seeds": (2, 3, 48),
    },
    "bound": {"n_bags": (40, 60, 300), "names": (("pendigits",), ARTIFICIAL, ARTIFICIAL), "seeds": (1, 2, 3)},
}
#: Sizes for a profile, "smoke", "quick" or "full".
settings = partial(settings_of, TABLE)
