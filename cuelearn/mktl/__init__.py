"""Transfer learning from unconstrained priors (thesis chapter 6).

`MKTL` learns new classes from few samples and the scores of any models of other classes. Baselines with the
same arguments: `MultiKT` (Tommasi et al., 2010), `AverageTL`, `PriorFeatures` and `NoTransfer`.
"""

from cuelearn.core.estimator import load
from cuelearn.mktl.baselines import AverageTL, MultiKT, NoTransfer, PriorFeatures
from cuelearn.mktl.mktl import MKTL, P_RANGE, TransferProblem, solve_mktl

__all__ = [
    "AverageTL",
    "MKTL",
    "MultiKT",
    "NoTransfer",
    "P_RANGE",
    "PriorFeatures",
    "TransferProblem",
    "load",
    "solve_mktl",
]
