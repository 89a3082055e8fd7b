"""Kernels of the package, and the recipes of their plain twins."""

import numpy as np

from cuelearn.kernels import RBF, Chi2, ExpDistance, Linear, Poly

LEFT, RIGHT, MIXED = slice(0, 3), [3, 4, 5], [5, 0, 2]
#: Name, kernel of the package, the plain one's name and options, columns.
KERNELS = [
    ("linear", Linear(), "linear", {}, LEFT),
    ("poly", Poly(), "poly", {"scale": "dim"}, RIGHT),
    ("cubic", Poly(degree=3, coef0=0.5, gamma=0.5), "poly", {"degree": 3, "coef0": 0.5, "scale": 2.0}, MIXED),
    ("rbf", RBF(scale=0.5), "sqeuclidean", {"scale": 0.5}, slice(None)),
    ("chi2", Chi2(scale=0.5), "chi2", {"scale": 0.5}, RIGHT),
    ("euclidean", ExpDistance("euclidean", scale=1.0), "euclidean", {"scale": 1.0}, LEFT),
    ("cityblock", ExpDistance("cityblock", scale=2.0), "cityblock", {"scale": 2.0}, MIXED),
]
CUES = [(name, kernel, columns) for name, kernel, _, _, columns in KERNELS]
RECIPES = [recipe for _, _, *recipe in KERNELS]


def signs(y):
    return np.where(y == np.max(y), 1.0, -1.0)
