"""Regression on many kernels (JMLR 13, section 6, thesis 4.6: "and even to regression losses")."""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from cuelearn.core import docs
from cuelearn.core.estimator import StrOptions, parameters
from cuelearn.core.samples import InputLike
from cuelearn.expect import expect
from cuelearn.mkl import base
from cuelearn.mkl.base import LOSS, Stochastic
from cuelearn.mkl.optimum.losses import Loss
from cuelearn.mkl.optimum.problem import LossProblem
from cuelearn.mkl.stochastic.obscure import CONSTRAINTS, OBSCURE
from cuelearn.mkl.stochastic.ufo import UFOMKL

#: Coefficients are kept in single precision.
LARGEST_TARGET = 1e20


#: Of the regressors, where they differ from the classifiers'.
TEXTS = {
    "loss": (
        '"squared", "huber", "epsilon_insensitive" or a loss',
        "A name stands for the loss with its default parameter; others are ``Huber(delta=0.5)`` and "
        "``EpsilonInsensitive(epsilon=0.05)``, in units of y.",
    ),
    "dual_coef_": ("ndarray, shape (n_support, 1)", ""),
    "intercept_": (
        "float",
        "The (weighted) mean of y, whatever the loss: the kernel part is trained on y minus this. Outliers "
        "shift it.",
    ),
}
documented = functools.partial(docs.documented, texts={**base.TEXTS, **TEXTS})


@parameters
class MKLRegressor(RegressorMixin, Stochastic):
    """Base of the regressors: y is centred, then a `LossProblem` is solved."""

    C: float = 10.0
    loss: Literal["squared", "huber", "epsilon_insensitive"] | Loss = "squared"
    n_epochs: int = 50
    tol: float | None = 0.01
    finish: bool = True

    _parameter_constraints = {
        "loss": [StrOptions({"squared", "huber", "epsilon_insensitive"}), *LOSS],
        "finish": ["boolean"],
    }
    _answer = "predict"
    _validation = {"ensure_min_samples": 2, "y_numeric": True}

    def _labels(self, y, n_samples, sample_weight):
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but y is None.")
        y = column_or_1d(y, warn=True, dtype=np.float64)
        hint = "divide larger targets by their standard deviation"
        return expect("y", y, shape=(n_samples,), low=-LARGEST_TARGET, high=LARGEST_TARGET, hint=hint)

    def _train(self, y, sample_weight):
        self.intercept_ = float(np.average(y, weights=sample_weight))
        options = {"p": self.p, "C": self.C, "alpha": getattr(self, "alpha", 0.0)}
        targets = y - self.intercept_
        self._run(LossProblem(self.bank_, targets, self.loss, sample_weight=sample_weight, **options))

    def _take_run(self, result):
        history = result.history.drop(columns="online_error")
        super()._take_run(result._replace(history=history, online_errors=None))

    def predict(self, X: InputLike) -> np.ndarray:
        """Predicted numbers, shape (n,).

        X has shape (n, n_features), or holds precomputed kernels with the training samples, as in `fit`.
        """
        check_is_fitted(self)
        return self.intercept_ + self._class_scores(X)[:, 0]

    def _try_out(self):
        """Predict a sample: inconsistent arrays raise or give NaN."""
        with np.errstate(all="ignore"):
            predicted = self._score_ones()
        if not np.isfinite(predicted).all():
            raise ValueError("its arrays do not give a finite prediction")


@documented
@parameters
class OBSCURERegressor(MKLRegressor):
    r"""Regression by OBSCURE, with a (2,p) group norm.

    .. math:: \min_{\bar w} \frac\lambda2 \|\bar w\|_{2,p}^2 + \frac1n\sum_i \ell(\bar w \cdot
        \bar\phi(x_i);\, y_i - \bar y), \qquad \lambda = \frac1{Cn}

    Parameters
    ----------
    $kernels $p $C $loss
    n_epochs_online : int >= 0, default 5
        Maximum epochs of the online stage.
    eta : float > 0 or "auto", default 0.5
        Its step size, see `OBSCURE`.
    $n_epochs $tol $finish $run

    Attributes
    ----------
    $intercept_ $of_run_
    radius_ : float
        R as used; `radius_online_` before the cap.

    See Also
    --------
    UFOMKLRegressor : The same problem, and a sparser one, without an online stage.
    LossProblem : The problem of the solvers, also for other losses.

    Notes
    -----
    With one kernel: scikit-learn's ``KernelRidge(alpha=1/C)`` and, for the epsilon-insensitive loss, an SVR
    without bias. With p = 2 kernels are summed without weights. Cost of a visit: two reads of its kernel
    rows, O(n F); of the dual ascent: O(n^2 F) a round and O(n^3) a Newton step, with two (n, n) matrices.

    References
    ----------
    Orabona, Jie, Caputo, JMLR 13 (2012), Algorithms 1 and 2 and section 6; thesis 4.6.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cuelearn.mkl import OBSCURERegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> cues = [("body", "rbf", [0, 1, 2, 3]), ("blood", "rbf", slice(4, 10))]
    >>> model = OBSCURERegressor(kernels=cues, loss="squared", random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.5), bool(model.dual_gap_ <= 0.01 * model.objective_)
    (True, True)
    """

    _parameter_constraints = CONSTRAINTS

    n_epochs_online: int = 5
    eta: float | Literal["auto"] = 0.5

    _solve = OBSCURE._solve


@documented
@parameters
class UFOMKLRegressor(MKLRegressor):
    r"""Regression by UFO-MKL, with an elastic group norm: kernels can have weight exactly 0.

    .. math:: \min_{\bar w} \frac\lambda2\|\bar w\|_{2,p}^2 + \alpha\|\bar w\|_{2,1}
        + \frac1n\sum_i\ell(\bar w \cdot \bar\phi(x_i);\, y_i - \bar y), \qquad \lambda = \frac1{Cn}

    Parameters
    ----------
    $kernels $p $C $loss
    alpha : float >= 0, default 0.0
        Sparsity, in units of the loss's slope: larger for larger y. Select kernels with ``tol=1e-3``, see
        `UFOMKL`.
    $n_epochs $tol $finish $run

    Attributes
    ----------
    $intercept_ $of_run_

    See Also
    --------
    OBSCURERegressor : Also on limits and cost.

    References
    ----------
    Thesis 4.5, 4.6: equation 4.9, Algorithm 7.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cuelearn.mkl import Huber, UFOMKLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> cues = [(str(k), "rbf", [k]) for k in range(10)]
    >>> model = UFOMKLRegressor(cues, C=1.0, loss=Huber(50.0), alpha=5.0, tol=1e-3, random_state=0).fit(X, y)
    >>> model.kernel_weights_.nonzero()[0]  # body mass index, blood pressure, log of triglycerides
    array([2, 3, 8])
    """

    alpha: float = 0.0

    _solve = UFOMKL._solve
