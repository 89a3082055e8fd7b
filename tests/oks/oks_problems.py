"""Kernels of the package, the recipes of their twins in `oks_twins`, and what a fit leaves behind."""

import numpy as np
from numpy.testing import assert_array_equal

from cuelearn.kernels import RBF, Chi2, ExpDistance, Linear, Poly

CUES = [
    ("linear", Linear(), [0, 1, 2]),
    ("poly", Poly(), slice(3, 6)),
    ("rbf", RBF(scale=0.5), slice(None)),
    ("chi2", Chi2(scale=1.0), [0, 5]),
    ("cityblock", ExpDistance("cityblock", scale=1.0), [1, 2]),
]
RECIPES = [
    ("linear", {}, [0, 1, 2]),
    ("poly", {"scale": "dim"}, slice(3, 6)),
    ("sqeuclidean", {"scale": 0.5}, slice(None)),
    ("chi2", {"scale": 1.0}, [0, 5]),
    ("cityblock", {"scale": 1.0}, [1, 2]),
]
FITTED = """
    classes_ kernel_probabilities_ sampling_probabilities_ best_index_ best_kernel_ support_ dual_coef_
    n_updates_ n_evaluations_ drawn_ online_errors_ online_losses_ probability_history_ mistakes_per_kernel_
    validation_accuracy_""".split()


def signs(y):
    return np.where(y == np.max(y), 1.0, -1.0)


def frozen(model):
    """All that a fit leaves behind, except times."""
    kept = {name: getattr(model, name) for name in FITTED if hasattr(model, name)}
    if hasattr(model, "history_"):
        kept["history_"] = model.history_.drop(columns="seconds").to_numpy()
    return kept


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if isinstance(value, list):
            assert len(found[name]) == len(value), name
            assert_same(dict(enumerate(found[name])), dict(enumerate(value)))
        else:
            assert_array_equal(found[name], value, err_msg=str(name))
