"""The rule for choices by a score, independent of rounding."""

import numpy as np

__all__ = ["ROUNDING", "SOLVED", "first_best"]

#: Scores that differ by less are equal. Different shares of n samples differ by at least 1 / n.
ROUNDING = 1e-9
#: Relative difference below which losses of solvers that stop at a tolerance are equal.
SOLVED = 1e-3


def first_best(scores, losses=None):
    """Index of the first of the highest scores, or, with `losses`, of the first of these with the least loss.

    Scores within `ROUNDING` of the highest are equal, as are losses within `SOLVED` of the least; NaN is
    never chosen. List the simplest first: it wins ties.

    Examples
    --------
    >>> from cuelearn.core.choice import first_best
    >>> first_best([0.5, 0.1 + 0.2, 0.3, 0.5 + 1e-16]), first_best([0.7, 0.9, 0.9], losses=[0.1, 0.5, 0.4])
    (0, 2)
    """
    scores = np.ravel(scores)
    best = np.fmax.reduce(scores)
    equal = np.flatnonzero((scores >= best - ROUNDING * max(1.0, abs(best))) | (scores == best))
    if losses is not None:
        losses = np.ravel(losses)[equal]
        equal = equal[losses <= (1.0 + SOLVED) * losses.min() + ROUNDING]
    return int(equal[0])
