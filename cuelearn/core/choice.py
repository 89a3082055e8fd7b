"""One rule for every choice by a score, such that none hangs on the last digit of a sum."""

import numpy as np

__all__ = ["ROUNDING", "SOLVED", "first_best"]

#: Scores nearer than this are equal. Shares of n samples differ by 1 / n if they do; sums are rounded.
ROUNDING = 1e-9
#: Losses of solvers that stop at a tolerance are equal if they differ by less than this part of the least.
SOLVED = 1e-3


def first_best(scores, losses=None):
    """Index of the first of the highest scores, or, with `losses`, of the first with the least loss of these.

    Equal are scores within `ROUNDING` of the highest and losses within `SOLVED` of the least; NaN is never
    chosen. List the simplest first, and it is what a tie gives.

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
