"""MC-MKL of Zien and Ong."""

from dataclasses import field

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.docs import documented
from cuelearn.core.estimator import POSITIVE, parameters
from cuelearn.core.losses import margins
from cuelearn.core.run import Run
from cuelearn.kernels.rows import combined_kernel
from cuelearn.mkl.base import KernelClassifier
from cuelearn.mkl.optimum.crammer_singer import ascend, optimal_scaling, plain_machine
from cuelearn.mkl.optimum.problem import MKLProblem, Result, weights_of
from cuelearn.mkl.rivals.cutting import CuttingPlanes
from cuelearn.mkl.rivals.svm import is_hard
from cuelearn.warn import warn_user

__all__ = ["MCMKL", "solve_mc_mkl"]

# of the SVM per round
SWEEPS = 1000
# largest share of the wanted gap, or of a part of the remaining gap, due to the SVM
OWN_SHARE = 0.5
# rounds without a gap reduced by a tenth until a hard problem is abandoned
PATIENCE = 10


def solve_mc_mkl(problem, *, tol=1e-3, max_iter=500, callback=None, verbose=False):
    r"""Solve the multiclass MKL problem with :math:`\|\bar w\|_{2,1}` by cutting planes; a `Result`.

    .. math:: \min_{d \ge 0, \sum_j d_j = 1} \max_B\; \frac1n \sum_i B_{iy_i} - \frac{1}{2\lambda} \sum_j d_j
        \|\theta^j(B)\|^2

    `callback(result, step)` gets the best point so far. Zien and Ong, ICML 2007, sections 3 and 4.
    """
    bank = problem.bank
    labels = problem.labels
    lam = problem.regularization
    n = bank.n_samples
    run = Run(callback, verbose=verbose)
    planes = CuttingPlanes(bank.n_kernels)
    B = np.zeros((n, problem.n_classes))
    no_theta = np.zeros((problem.n_classes, 0))
    d = np.full(bank.n_kernels, 1.0 / bank.n_kernels)
    best = (np.inf, B, d)
    bound = 0.0
    relative = 1.0
    updates = 0
    precision = OWN_SHARE
    certifiable = not bank.indefinite
    hard = is_hard(bank, problem.C) or not certifiable
    least = np.inf
    idle = 0

    def result():
        point = (best[1] / n, best[2] / lam)
        done = certifiable and bool(relative <= tol)
        known = gap
        if not certifiable:
            known = np.nan
        return Result(*point, run.history(), best[0], known, step, updates, converged=done)

    for step in run.rounds(max_iter, "MCMKL"):
        kernel = combined_kernel(bank, d, problem.factor / lam)
        scores = np.ascontiguousarray((kernel @ B).T / n)
        if np.isfinite(best[0]):
            value = best[0]
        else:
            value = problem.mean_loss_at_zero
        own = precision * max(0.3 * relative, tol) * value
        machine = plain_machine(kernel, labels, problem.n_classes, problem.limits)
        _, _, done = ascend(machine, B, scores, no_theta, own, SWEEPS, np.iinfo(int).max, own)
        updates += done
        norms = np.sqrt(problem.block_norms_sq(B)) / n
        # w^j = d_j theta^j / lambda
        margin = margins(np.ascontiguousarray(scores.T), labels)
        scale, objective = optimal_scaling(margin, machine.limits, 0.5 * (d @ norms) ** 2 / lam, 0.0)
        if objective < best[0]:
            best = (objective, scale * B, d)
        total = float(B[np.arange(n), labels].sum()) / n
        planes.add(total, norms**2 / (2.0 * lam))
        following = planes.solve()
        bound = max(bound, planes.bound, float(total - norms.max() ** 2 / (2.0 * lam)))
        gap = best[0] - bound
        relative = gap / max(best[0], np.finfo(float).tiny)
        row = {"stage": "batch", "epoch": step, "n_updates": updates}
        row |= {"n_support": int(np.count_nonzero(best[1].any(axis=1)))}
        row |= {"objective": best[0], "dual_gap": gap if certifiable else np.nan}
        stop = run.end(step, result, note=f"relative gap {relative:.1e}", **row)
        idle = 0 if relative < 0.9 * least else idle + 1
        least = min(least, relative)
        if stop or relative <= tol or hard and idle >= PATIENCE:
            break
        if np.array_equal(following, d):  # only a more accurate SVM can help
            if precision < 1e-6:
                break
            precision *= 0.1
        d = following
    if relative > tol and certifiable and not stop:
        advice = "raise max_iter or tol"
        if hard:
            advice = "divide the kernels by their mean diagonal, or lower C"
        warn_user(
            f"MCMKL did not reach tol={tol:g}: the relative duality gap is {relative:.2g} after {step} "
            f"rounds; {advice}",
            ConvergenceWarning,
        )
    return result()


@documented
@parameters
class MCMKL(KernelClassifier):
    r"""Multiclass MKL by cutting planes: one set of kernel weights for all classes, and the multiclass loss.

    .. math:: \min_{\bar w} \frac\lambda2 \Big(\sum_j \|w^j\|\Big)^2 + \frac1n \sum_i
        \Big[1 - \bar w\cdot\bar\phi(x_i,y_i) + \max_{y'\ne y_i} \bar w\cdot\bar\phi(x_i,y')\Big]_+

    the problem of `OBSCURE` as p goes to 1, without bias. A Crammer-Singer SVM gives a dual point, and a
    linear program over all points so far the next weights.

    Parameters
    ----------
    $kernels $C $class_weight
    tol : float > 0, default 1e-3
        Stop at this relative duality gap.
    $max_iter $normalize $memory $callback $verbose

    Attributes
    ----------
    $classes_ $dual_coef_ $support_
    kernel_weights_ : ndarray, shape (n_kernels,)
        :math:`d_j/\lambda` with *d* on the simplex; most are exactly 0.
    objective_, dual_gap_ : float
        Scaled as `objective`: comparable with `OBSCURE` and `solve_reference` near p = 1.
    n_updates_ : int
        SVM visits that changed coefficients.
    $history_ $n_iter_ $converged_

    Notes
    -----
    Cost per round: the SVM's sweeps, each O(n^2) times the classes that move, two reads of the kernels and a
    linear program. Memory: one (n, n) matrix besides the bank.

    References
    ----------
    Zien and Ong, Multiclass multiple kernel learning, ICML 2007. "MC-MKL" of thesis chapter 4 and JMLR 13
    (2012).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import MCMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = MCMKL(cues, C=10, tol=0.01).fit(X, y)
    >>> int(model.kernel_weights_.argmax()), model.converged_
    (1, True)
    """

    kernels: object = field(default=None, kw_only=False)
    C: float = 10.0
    class_weight: object = None
    tol: float = 1e-3
    max_iter: int = 500
    normalize: bool = True
    memory: float = 2e9
    callback: object = None
    verbose: bool = False

    _parameter_constraints = {"tol": POSITIVE}

    def _train(self, labels, sample_weight):
        weights = weights_of(self.class_weight, self.classes_, labels, sample_weight)
        problem = MKLProblem(self.bank_, labels, self.classes_.size, C=self.C, **weights)

        def show(result):
            self._show(problem, result.dual_coef, result.kernel_weights)
            self._take_run(result)

        options = {"tol": self.tol, "max_iter": self.max_iter, "verbose": self.verbose}
        show(solve_mc_mkl(problem, callback=self._watch(show), **options))
