r"""MC-MKL of Zien and Ong: cutting planes around a multiclass SVM."""

import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tqdm.auto import tqdm

from cuelearn.core.checks import check_count, check_positive
from cuelearn.core.losses import mean_loss
from cuelearn.core.progress import BAR_AFTER
from cuelearn.mkl.base import KernelClassifier
from cuelearn.mkl.crammer_singer import ascend
from cuelearn.mkl.cutting import CuttingPlanes
from cuelearn.mkl.problem import MKLProblem, combined_kernel
from cuelearn.mkl.training import History, Result

__all__ = ["MCMKL", "solve_mc_mkl"]

# most sweeps of the SVM before the kernel weights move again
SWEEPS = 1000
# the SVM's violation in its last sweep is kept below this share of the gap that is wanted, or of the gap that remains
OWN_SHARE = 0.1


def solve_mc_mkl(problem, *, tol=1e-3, max_iter=500, callback=None, verbose=False):
    r"""Solve the multiclass MKL problem with :math:`\|\bar w\|_{2,1}` by cutting planes.

    .. math:: \min_{d \ge 0, \sum_j d_j = 1} \max_B\; \frac1n \sum_i B_{iy_i} - \frac{1}{2\lambda} \sum_j d_j \|\theta^j(B)\|^2

    Parameters
    ----------
    problem : MKLProblem
        Its p and alpha play no part: the exponent is 1.
    tol : float > 0
        Stop when objective - bound is at most this share of the objective.
    max_iter : int
        Most rounds of SVM and linear programme.
    callback : callable(coef, weights, history, round) -> bool, optional
        Called with the best point so far, with the clock stopped; a true result ends the run.
    verbose : bool

    Returns
    -------
    Result
        `dual_coef` and `kernel_weights` (weights of the blocks, :math:`d_j/\lambda`) are the best primal point met.

    Warns
    -----
    ConvergenceWarning
        If the tolerance was not reached.

    References
    ----------
    Zien and Ong, ICML 2007, sections 3 and 4; the SVM is Crammer and Singer's (2002), without bias, warm-started.
    """
    bank, labels = problem.bank, problem.labels
    n, n_kernels, n_classes = bank.n_samples, bank.n_kernels, problem.n_classes
    lam = problem.regularization
    history, planes = History(), CuttingPlanes(n_kernels)
    B = np.zeros((n, n_classes))
    d = np.full(n_kernels, 1.0 / n_kernels)
    best = (np.inf, B, d)
    bound, relative, updates, precision = 0.0, 1.0, 0, OWN_SHARE
    bar = tqdm(
        total=max_iter,
        desc="MCMKL",
        unit="round",
        delay=BAR_AFTER,
        leave=False,
        disable=not verbose,
        file=sys.stderr,
    )
    with bar:
        for step in range(1, max_iter + 1):
            kernel = combined_kernel(bank, d, problem.factor / lam)
            scores = np.ascontiguousarray((kernel @ B).T / n)
            value = best[0] if np.isfinite(best[0]) else 1.0
            _, _, done = ascend(
                kernel, labels, B, scores, precision * max(0.3 * relative, tol) * value, SWEEPS
            )
            updates += done
            norms_sq = problem.block_norms_sq(B, np.float64)
            norms = np.sqrt(norms_sq) / n
            # w^j = d_j theta^j / lambda
            objective = float(0.5 * (d @ norms) ** 2 / lam + mean_loss(scores.T, labels))
            if objective < best[0]:
                best = (objective, B.copy(), d)
            total = float(B[np.arange(n), labels].sum()) / n
            planes.add(total, norms**2 / (2.0 * lam))
            following = planes.solve()
            bound = max(bound, planes.bound, float(total - norms.max() ** 2 / (2.0 * lam)))
            gap = best[0] - bound
            relative = gap / max(best[0], np.finfo(float).tiny)
            history.pause()
            history.add(
                stage="batch",
                step=step,
                epoch=step,
                seconds=history.seconds,
                n_updates=updates,
                n_support=int(np.count_nonzero(np.any(best[1] != 0.0, axis=1))),
                objective=best[0],
                dual_gap=gap,
            )
            bar.update()
            bar.set_postfix_str(f"relative gap {relative:.1e}", refresh=False)
            stop = (
                bool(callback(best[1] / n, best[2] / lam, history, step)) if callback is not None else False
            )
            history.go()
            if stop or relative <= tol:
                break
            if np.array_equal(following, d):  # only a more accurate SVM can bring anything new
                if precision < 1e-6:
                    break
                precision *= 0.1
            d = following
    converged = bool(relative <= tol)
    if not converged and not stop:
        warnings.warn(
            f"MCMKL did not reach tol={tol:g}: the relative duality gap is {relative:.2g} after {step} rounds; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
    coef, weights = best[1] / n, best[2] / lam
    return Result(
        coef,
        weights,
        history.frame(),
        best[0],
        gap,
        step,
        updates,
        converged,
        np.zeros(0, dtype=np.bool_),
        problem.block_norms_sq(coef),
        {},
    )


class MCMKL(KernelClassifier):
    r"""Multiclass MKL by cutting planes: one set of kernel weights for all classes, and the multiclass loss.

    .. math:: \min_{\bar w} \frac\lambda2 \Big(\sum_j \|w^j\|\Big)^2
              + \frac1n \sum_i \Big[1 - \bar w\cdot\bar\phi(x_i,y_i) + \max_{y'\ne y_i} \bar w\cdot\bar\phi(x_i,y')\Big]_+

    the problem of `OBSCURE` as p goes to 1, without bias. A Crammer-Singer SVM on the weighted kernels gives a dual point, the linear
    programme over all points so far gives the next weights.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        See `OM2`.
    C : float > 0, default 1.0
        :math:`\lambda = 1/(Cn)`.
    tol : float > 0, default 1e-3
        Stop when the duality gap is at most this share of the objective.
    max_iter : int, default 500
        Most rounds.
    normalize : bool, default True
    memory : float, default 2e9
    callback : callable(estimator, step) or None
        Called after every round; a true result ends the run.
    verbose : bool, default False

    Attributes
    ----------
    classes_, dual_coef_, support_
    kernel_weights_ : ndarray, shape (n_kernels,)
        :math:`d_j/\lambda` with *d* on the simplex; most are exactly 0.
    objective_, dual_gap_ : float
        In the scaling of `objective`: comparable with `OBSCURE` and `solve_reference` near p = 1.
    history_ : DataFrame
        One row per round: seconds, n_updates (visits of the SVM that changed coefficients), n_support, objective, dual_gap.
    n_iter_, n_updates_, converged_

    Notes
    -----
    A round costs the SVM's sweeps (each O(n^2) times the classes that move; it starts from the last round's solution), two reads of the
    kernels and a linear programme. Memory: one (n, n) matrix besides the bank.

    References
    ----------
    Zien and Ong, Multiclass multiple kernel learning, ICML 2007. "MC-MKL" of the thesis's chapter 4 and JMLR 13 (2012).
    """

    def __init__(
        self,
        kernels=None,
        *,
        C=1.0,
        tol=1e-3,
        max_iter=500,
        normalize=True,
        memory=2e9,
        callback=None,
        verbose=False,
    ):
        self.kernels = kernels
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.normalize = normalize
        self.memory = memory
        self.callback = callback
        self.verbose = verbose

    def fit(self, X, y):
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or (n_kernels, n, n) for precomputed kernels, or a KernelBank
        y : array-like, shape (n,)

        Returns
        -------
        self

        Raises
        ------
        ValueError
            With one sentence that names the argument, on any bad input.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` rounds did not reach `tol`.
        """
        C, tol, max_iter = (
            check_positive("C", self.C),
            check_positive("tol", self.tol),
            check_count("max_iter", self.max_iter),
        )
        self._check_callback()
        labels = self._start(X, y)
        problem = MKLProblem(self.bank_, labels, self.classes_.size, C=C)

        def watch(coef, weights, history, step):
            self._keep(problem.factor * coef, weights)
            self.history_, self.n_updates_ = history.frame(), int(history.rows[-1]["n_updates"])
            return self.callback(self, step)

        result = solve_mc_mkl(
            problem,
            tol=tol,
            max_iter=max_iter,
            callback=None if self.callback is None else watch,
            verbose=self.verbose,
        )
        self._keep(problem.factor * result.dual_coef, result.kernel_weights)
        self.history_, self.objective_, self.dual_gap_ = result.history, result.objective, result.dual_gap
        self.n_iter_, self.n_updates_, self.converged_ = result.n_iter, result.n_updates, result.converged
        return self
