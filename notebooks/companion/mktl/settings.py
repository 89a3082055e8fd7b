"""Sizes, seeds and grids of the chapter's experiments, fixed before a run: grids are the thesis's (6.5), in
quick up to C = 100, for all methods; numbers of draws come from the spread of earlier runs."""

from functools import partial

from companion.protocol import made_here, settings_of
from cuelearn.mktl import P_RANGE

C_RANGE = (0.1, 1.0, 10.0, 100.0, 1000.0)
#: Beside it for the two weighted methods of figure 6.2, which often want its smallest value.
C_WIDER = (0.001, 0.01, *C_RANGE, 10_000.0)
#: An end of a grid that nothing lies beyond: at p = 1.01 one group takes nearly all.
NATURAL = {"p": (1.01,)}
#: Multiclass tasks of figure 6.3; with the original data present, "awa" comes first.
BUNDLED = ("animals", "objects")
#: Background samples beside the few of the target: many, as in the thesis, whose number is not printed.
N_NEGATIVE = 80

#: For the notes of figures.
DRAWN = "emoji; 8 drawings of a new thing in 4 mildly changed views, 5 to train and 3 to test"
VALIDATED = (
    "C and p of every method chosen on other things with the same priors, by draws of the same kind, "
    "each run by a sample of these with replacement"
)
SIMULATED = made_here("random samples and scores", "companion.mktl.timing.random_problem")
USELESS = made_here("useless scores", "companion.mktl.compare.useless_scores")

_AWA = ((1, 5), (1, 5, 10, 20, 50), (1, 5, 10, 20, 30, 50))
_FINE_P = (1.01, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.6, 1.75, 2.0)
# samples per class: up to five are as many drawings, from there on further views of these
_FEW = (1, 5, 20)
_ALL = (1, 2, 3, 5, 10, 15, 20)
# smoke, quick, full
TABLE = {
    "C": ((10.0,), C_RANGE[:-1], C_RANGE),
    "wider C": ((1.0, 10.0), C_WIDER[1:-2], C_WIDER),
    # quick: the conjugate exponents q are 21 and 4.3
    "p": ((1.05, 1.5), (1.05, 1.3), P_RANGE),
    # 0: ascent in the dual from zero; at a gap of 1% accuracies would still depend on where a solver stops
    "effort": {"n_epochs": (0, 0, 0), "tol": (1e-2, 1e-3, 1e-3)},
    "binary": {
        "n_positive": ((1, 5), _FEW, _ALL),
        "seeds": (2, 3, 24),  # draws of each target, of its own
        "targets": (2, 12, 30),
        "draws": (1, 1, 2),  # of each target that parameters are chosen on
    },
    "multiclass": {
        "animals": ((1, 5), _FEW, _ALL),
        "objects": ((1, 5), _FEW, _ALL),
        "awa": _AWA,
        "seeds": (2, 5, 50),
        "more_seeds": (3, 24, 250),  # of MKTL alone, where two numbers of priors are compared
        "draws": (1, 2, 6),  # that parameters are chosen on
    },
    "priors": {
        "n_priors": ((14, 23), (10, 23, 100), (10, 14, 23, 35, 50, 75, 100)),
        "n_per_class": (5, 10, 10),
        "seeds": (2, 3, 20),
        "draws": (1, 2, 4),
    },
    "negative": {
        "n_per_class": ((1, 5), (1, 5), (1, 2, 5, 20)),
        "n_noise": ((0, 40), (0, 100), (0, 40, 100)),
        "seeds": (2, 3, 20),
        "draws": (1, 2, 4),
    },
    "path": {
        "p": ((1.01, 1.1, 1.5, 2.0), tuple(p for p in _FINE_P if p not in (1.15, 1.4, 1.6, 1.75)), _FINE_P),
        "n_per_class": (5, 10, 10),
        "seeds": (2, 3, 10),
    },
    "timing": {"n_per_class": ((20,), (100,), (25, 50, 75, 100)), "sparse": ((1.0,), (1.0,), C_RANGE)},
}
#: Sizes for a profile, "smoke", "quick" or "full".
settings = partial(settings_of, TABLE)
