"""UFO-MKL (thesis Algorithm 7)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuelearn.compiled import loop
from cuelearn.core.estimator import parameters
from cuelearn.expect import expect
from cuelearn.mkl.base import BatchMKL, documented
from cuelearn.mkl.cluster import Cluster, is_collection
from cuelearn.mkl.optimum.losses import add_response, output_scores, respond
from cuelearn.mkl.optimum.problem import MKLProblem, Result
from cuelearn.mkl.stochastic.training import Training, add_update, predict, refresh_link


@loop
def visit_ufo(order, start, mistakes, run):
    r"""Thesis Algorithm 7, as in `visit_om2`. With :math:`\alpha > 0` the weights change at every visit."""
    alpha = run.setting.alpha
    now = run.dual.now
    for position in range(start, order.shape[0]):
        i = order[position]
        if alpha > 0.0:
            refresh_link(alpha * now.step, run)
        rival, margin = predict(i, 1.0 / (max(1.0, now.step) * run.setting.regularization), run)
        if rival < 0:
            return position
        mistakes[position] = margin <= 0.0
        now.step += 1.0
        if margin < 1.0:
            add_update(i, rival, run.samples.cost[i], run)
            refresh_link(alpha * now.step, run)
    return order.shape[0]


@loop
def visit_ufo_loss(order, start, mistakes, run, loss, response):
    """For any loss, with implicit steps, see `cuelearn.mkl.optimum.losses`."""
    alpha = run.setting.alpha
    now = run.dual.now
    for position in range(start, order.shape[0]):
        i = order[position]
        if run.rows.place[i] < 0:
            return position
        if alpha > 0.0:
            refresh_link(alpha * now.step, run)
        mistakes[position] = output_scores(i, 1.0 / (max(1.0, now.step) * run.setting.regularization), run)
        now.step += 1.0
        smoothness = (run.setting.q - 1.0) / (now.step * run.setting.regularization)
        if respond(i, smoothness, loss, response, run) > 0.0:
            add_response(i, run.samples.cost[i], response, run)
            refresh_link(alpha * now.step, run)
    return order.shape[0]


def solve_ufo(problem: MKLProblem, *, n_epochs: int = 50, **options: Any) -> Result:
    """Run UFO-MKL, see `UFOMKL`, for `n_epochs` >= 1 epochs on an `MKLProblem`; a `Result`.

    `options` as in `solve_obscure`. With ``sampling="iid"`` a sample's visits may exceed the epochs; they are
    clipped, which loosens the bound.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mkl import MKLProblem, solve_ufo
    >>> problem = MKLProblem(KernelBank.from_stack(np.eye(4)), [0, 0, 1, 1], 2, C=10, alpha=0.05)
    >>> solve_ufo(problem, tol=0.01, finish=True).converged
    True
    """
    training = Training(problem, name="UFO-MKL", **options)
    visit = problem.visits(visit_ufo, visit_ufo_loss)
    n_epochs = expect("n_epochs", n_epochs, kind="whole", low=1)
    training.run_stage("batch", *visit, n_epochs=n_epochs, averages=True)
    return training.finish()


@documented
@parameters
class UFOMKL(BatchMKL):
    r"""UFO-MKL, sparse multi-kernel learning with an elastic group norm.

    .. math:: \min_{\bar w} \frac\lambda2\|\bar w\|_{2,p}^2 + \alpha\|\bar w\|_{2,1}
        + \frac1n\sum_i\ell(\bar w; x_i, y_i),
        \qquad p = \frac{2\ln F}{2\ln F - 1}, \quad \lambda = \frac1{Cn}

    A visit with loss sets :math:`\bar\theta \leftarrow \bar\theta - \bar z_t`; the primal vector is the
    gradient of the conjugate at :math:`\bar\theta/t`, so kernels with :math:`\|\theta^j\| \le \alpha t` have
    weight exactly 0 and are not computed at prediction.

    Samples of Dask, with feature maps, stay where they are: training is a consensus between dual ascents on
    the partitions, see `cuelearn.mkl.optimum.partitions`, of `n_epochs` rounds if there is no `tol` or no
    `finish`; `history_` has the bytes sent.

    Parameters
    ----------
    $kernels $p $C $loss $class_weight
    alpha : float >= 0, default 0.0
        Sparsity; 0 is the p-norm problem of OBSCURE. Which kernels are exactly 0 is certain only at the
        optimum: at the default `tol` one with a small part in the objective may be missing, so select
        kernels with ``tol=1e-3``.
    $n_epochs $tol $finish $run

    Attributes
    ----------
    $classes_ $of_run_ $online_errors_ $visits_

    See Also
    --------
    solve_ufo : The solver, on an `MKLProblem`.
    OBSCURE : The problem with alpha = 0 in two stages.

    References
    ----------
    Thesis 4.5: equation 4.9, Algorithm 7, theorems 4.5 and 4.6. Unlike in OM-2, line 8 has no 1/q.
    In partitions: Boyd et al. (2011), Foundations and Trends in Machine Learning 3, section 7.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mkl import UFOMKL
    >>> X, y = load_iris(return_X_y=True)
    >>> cues = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> model = UFOMKL(kernels=cues, C=10, alpha=0.05, random_state=0).fit(X, y)
    >>> float(model.kernel_weights_[0])
    0.0
    """

    alpha: float = 0.0

    def _start(self, X, y, sample_weight=None):
        if not is_collection(X):
            return super()._start(X, y, sample_weight)
        if not self._takes_blocks():
            raise ValueError("X of Dask needs kernels that are all a FeatureMap, and a hinge loss")
        if sample_weight is not None:
            raise ValueError("sample_weight must be None where X is of Dask; class_weight is supported")
        self._cluster = cluster = Cluster(X, y)
        first = cluster.first_samples()
        self._checked(first[:1], reset=True)
        self.classes_ = self._all_classes = cluster.classes
        for name in ("absent_", "untrained_classes_", "online_errors_", "visits_"):
            vars(self).pop(name, None)
        # a class stands for its samples, with their number as weight
        self.bank_ = self._bank_of(self.kernels, first, self.memory).on()
        self.bank_.n_samples = cluster.classes.size
        return np.arange(cluster.classes.size), cluster.counts.astype(np.float64)

    def _solve(self, problem, options):
        cluster = vars(self).pop("_cluster", None)
        if cluster is None:
            return solve_ufo(problem, n_epochs=self.n_epochs, **options)
        bank = self.bank_.on()
        self.bank_.n_samples = cluster.n
        given = {"loss": self.loss, "seed": int(options["rng"].integers(2**31)), "tol": self.tol}
        if self.tol is None or not self.finish:
            given["max_rounds"] = self.n_epochs
        given["callback"] = self._watch(lambda consensus: self._show(problem, *consensus.point()))
        return cluster.solve(problem, bank, verbose=self.verbose, **given)
