r"""Cutting planes over the simplex of kernel weights: the master problem of SILP and MC-MKL.

For a fixed SVM dual point the dual value is affine in the kernel weights *d*: MKL with :math:`\|\bar
w\|_{2,1}` is :math:`\min_{d \ge 0, \sum_j d_j = 1} \max_t s_t - \sum_j d_j g_{tj}`, with one function (*cut*)
per solved SVM.
"""

import numpy as np
from scipy.optimize import linprog

__all__ = ["CuttingPlanes"]


class CuttingPlanes:
    """Linear program over the cuts so far; `bound` is a lower bound of the optimum."""

    def __init__(self, n_kernels):
        self.n_kernels = n_kernels
        self.bound = -np.inf
        self._constants = []
        self._slopes = []

    def add(self, constant, slopes):
        """Add the cut ``constant - d @ slopes``."""
        self._constants.append(float(constant))
        self._slopes.append(np.array(slopes, dtype=np.float64))

    def solve(self):
        """Minimise the largest cut over the simplex; RuntimeError if HiGHS fails."""
        slopes = np.array(self._slopes)
        constants = np.array(self._constants)
        # HiGHS has absolute tolerances (1e-7) and drops coefficients below 1e-9, but early cuts are steep,
        # late ones flat: scale rows to around 1; the unit of the value is the flattest cut's size
        size = np.maximum(np.maximum(np.abs(slopes).max(axis=1), np.abs(constants)), np.finfo(float).tiny)
        unit = max(size.min(), 1e-8 * size.max())
        size = np.maximum(size, 1e-9 * unit)  # a cut may be 0, as before the first update
        at_most = {
            "A_ub": np.column_stack([-slopes / size[:, None], -unit / size]),
            "b_ub": -constants / size,
        }
        of_sum = {"A_eq": np.r_[np.ones(self.n_kernels), 0.0][None], "b_eq": [1.0]}
        bounds = [(0.0, None)] * self.n_kernels + [(None, None)]
        cost = np.r_[np.zeros(self.n_kernels), 1.0]
        solution = linprog(cost, **at_most, **of_sum, bounds=bounds, method="highs-ds")
        if solution.status != 0:
            raise RuntimeError(f"the linear program over the kernel weights failed: {solution.message}")
        d = np.maximum(0.0, solution.x[:-1])
        d /= d.sum()
        # dual value of the feasible multipliers: a bound for any tolerance
        share = np.maximum(0.0, -np.asarray(solution.ineqlin.marginals)) * unit / size
        if share.sum() > 0.0:
            share /= share.sum()
            self.bound = max(self.bound, float(share @ constants - (share @ slopes).max()))
        return d
