"""Pegasos-MKL (JMLR 5.3)."""

import math

from cuelearn.core.estimator import parameters
from cuelearn.expect import expect
from cuelearn.mkl.base import BatchMKL, documented
from cuelearn.mkl.stochastic.obscure import visit_obscure, visit_obscure_loss
from cuelearn.mkl.stochastic.training import Training

__all__ = ["PegasosMKL", "solve_pegasos_mkl"]


def solve_pegasos_mkl(problem, *, n_epochs=50, **options):
    """Run Pegasos-MKL, OBSCURE's batch stage from 0 without a norm bound; a `Result`.

    `problem` is an `MKLProblem` with alpha = 0; `n_epochs` >= 1; `options` as in `solve_obscure`.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mkl import MKLProblem, solve_pegasos_mkl
    >>> problem = MKLProblem(KernelBank.from_stack(np.eye(4)[None]), [0, 0, 1, 1], 2, C=10)
    >>> solve_pegasos_mkl(problem, tol=0.01, finish=True).converged
    True
    """
    if problem.alpha != 0.0:
        raise ValueError(f"alpha must be 0 for Pegasos-MKL, got {problem.alpha!r}")
    training = Training(problem, name="Pegasos-MKL", **options)
    visit = problem.visits(visit_obscure, visit_obscure_loss)
    training.run_stage(
        "batch", *visit, False, math.inf, n_epochs=expect("n_epochs", n_epochs, kind="whole", low=1)
    )
    return training.finish()


@documented
@parameters
class PegasosMKL(BatchMKL):
    r"""Pegasos extended to MKL: OBSCURE's problem, step size :math:`q/(\lambda t)`, no online stage.

    Parameters
    ----------
    $kernels $p $C $loss $class_weight $n_epochs $tol $finish $normalize $memory $random_state $callback
    $verbose

    Attributes
    ----------
    $classes_ $dual_coef_ $support_ $kernel_weights_ $n_updates_ $history_ $objective_ $dual_gap_
    $online_errors_ $visits_

    References
    ----------
    Orabona, Jie, Caputo, JMLR 13 (2012), section 5.3; Shalev-Shwartz, Singer, Srebro (2007).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import PegasosMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> PegasosMKL(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def _solve(self, problem, options):
        return solve_pegasos_mkl(problem, n_epochs=self.n_epochs, **options)
