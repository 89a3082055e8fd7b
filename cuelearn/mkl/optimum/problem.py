r"""The regularised MKL problem P (thesis 4.3, 4.9), its dual D and the duality gap.

With F kernels, n samples, :math:`\lambda = 1/(Cn)`, :math:`a_{iy'} \ge 0`, :math:`\sum_{y'} a_{iy'} \le 1`,
and :math:`\theta^j = \frac1n \sum_{i,y'} a_{iy'} (\phi^j(x_i,y_i) - \phi^j(x_i,y'))` (theorem 4.6),

.. math:: P(\bar w) = \frac{\lambda}{2} \|\bar w\|_{2,p}^2 + \alpha \|\bar w\|_{2,1} + \frac1n \sum_i
    \ell(\bar w; x_i, y_i), \quad D(a) = \frac1n \sum_{i,y'} a_{iy'} - \frac{1}{2\lambda} \Big\|
    \big[\|\theta^j\| - \alpha\big]_+ \Big\|_q^2 \le \min P .

Coefficients are stored as B, (n, n_classes): :math:`B_{iy_i} = \sum_{y'} a_{iy'}`, :math:`B_{iy'} =
-a_{iy'}`. With sample weights, a sample's bound of 1 becomes its limit, and their sum replaces n in
:math:`\lambda`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from cuelearn.core.formulas import group_norm, kernel_factor, link_weights, mean_loss, resolve_p
from cuelearn.core.samples import check_sample_weight, class_weights, classes_and_labels, loss_weights
from cuelearn.expect import expect
from cuelearn.kernels import KernelBank
from cuelearn.kernels.matrices import warn_indefinite
from cuelearn.kernels.rows import (
    BLOCK_ROWS,
    combine,
    combine_block,
    kernel_norms_sq,
    row_blocks,
    sparse_scores,
)
from cuelearn.kernels.types import ArrayLike, SampleWeight
from cuelearn.mkl.optimum.dual import Ascent
from cuelearn.mkl.optimum.losses import (
    Loss,
    LossAscent,
    clip_rows,
    compiled_for,
    resolve_loss,
    sum_duals,
    sum_values,
)

# below this share of nonzero coefficients scores are sparse sums, in double precision
SPARSE = 0.1


class Certificate(NamedTuple):
    """Objective of a primal point, value of a dual point, and their difference.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mkl import Certificate, duality_gap
    >>> result = duality_gap(np.eye(4)[None], [0, 0, 1, 1], np.zeros((4, 2)))
    >>> result == Certificate(objective=1.0, dual_value=0.0, gap=1.0)  # at zero nothing is known yet
    True
    """

    objective: float
    dual_value: float
    gap: float


class Result(NamedTuple):
    """Result of an MKL solver.

    Attributes
    ----------
    dual_coef : ndarray, shape (n_samples, n_classes)
        Coefficients shared by all kernels.
    kernel_weights : ndarray, shape (n_kernels,), or (n_groups,) with prior scores
        Decision values are ``sum_j kernel_weights[j] * K_j @ dual_coef``.
    history : DataFrame
        One row per epoch: stage, step, epoch, seconds, n_updates, n_support, online_error, objective,
        dual_gap.
    objective, dual_gap : float
        Of the returned point; ``objective - dual_gap`` never exceeds the optimum. NaN on indefinite kernels.
    n_iter, n_updates : int
        Epochs, and visits that changed the model.
    converged : bool
        Whether the relative gap reached the tolerance; True without one.
    online_errors : ndarray of bool, or None
        Whether each online visit was a mistake.
    block_norms_sq : ndarray, shape (n_kernels,), or None
        Squared norms of the dual blocks, to continue a run.
    extra : dict
        Specific to the algorithm. Stochastic ones: `stopped` by the callback, and the `visits`, sample
        numbers in order.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mkl import MKLProblem, Result, solve_om2
    >>> result = solve_om2(MKLProblem(KernelBank.from_stack(np.eye(4)), [0, 0, 1, 1], 2), n_epochs=2)
    >>> isinstance(result, Result), result.n_iter, result.dual_coef.shape
    (True, 2, (4, 2))
    """

    dual_coef: np.ndarray
    kernel_weights: np.ndarray
    history: pd.DataFrame
    objective: float
    dual_gap: float
    n_iter: int
    n_updates: int
    converged: bool
    online_errors: np.ndarray | None = None
    block_norms_sq: np.ndarray | None = None
    extra: dict = {}


class Point(NamedTuple):
    """A primal point with blocks ``weights[g] * theta^g``."""

    dual_coef: np.ndarray  # (n_samples, n_classes)
    weights: np.ndarray  # (n_groups,)
    norms: np.ndarray  # (n_groups,)
    scores: np.ndarray | None  # (n_samples, n_classes), None if not computed


class MKLProblem:
    """One MKL training problem.

    Parameters
    ----------
    bank : KernelBank
        Training kernels. Indefinite kernels raise a warning and make duality gaps NaN.
    labels : ndarray of int, shape (n_samples,)
        Class indices 0 .. n_classes - 1.
    n_classes : int
    p : float in (1, 2] or "auto"
    C : float > 0
        The regularisation is ``1 / (C * n_samples)``.
    alpha : float >= 0
        Weight of the (2,1) norm.
    loss : {"multiclass", "hinge"}
    scores : ndarray of float64, shape (n_samples, K), optional
        Prior scores: one scalar group per class and score (thesis 6.2); with the hinge loss one per score.
    sample_weight, class_weight
        Loss weights s >= 0, shape (n_samples,), of sum W, and c, see `cuelearn.core.samples`; keys of a dict
        are class indices, and "positive" weights the second of two classes.

    Attributes
    ----------
    n_groups : int
        Kernels first, then prior scores, class by class.
    loss_weights, limits : ndarray, shape (n_samples,)
        :math:`s_i c_{y_i}`, and this times n / W: loss weights in the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mkl import MKLProblem
    >>> problem = MKLProblem(KernelBank.from_stack(np.eye(4)), [0, 0, 1, 1], n_classes=2, C=10)
    >>> problem.p, problem.n_groups, problem.regularization
    (2.0, 1, 0.025)
    """

    many_kernels = True  # kernels may be skipped, and samples visited without all their rows
    keeps_scores = True  # stochastic loops may maintain class scores
    explicit = False  # blocks of features in place of kernel rows, see `BlockProblem`
    certified = True  # solvers keep dual variables

    def __init__(
        self,
        bank: KernelBank,
        labels: ArrayLike,
        n_classes: int,
        *,
        p: float | Literal["auto"] = "auto",
        C: float = 1.0,
        alpha: float = 0.0,
        loss: Literal["multiclass", "hinge"] = "multiclass",
        scores: ArrayLike | None = None,
        sample_weight: SampleWeight = None,
        class_weight: Mapping[int, float] | None = None,
    ):
        n = bank.n_samples
        self.bank = bank
        self.n_classes = int(n_classes)
        self.loss = loss
        warn_indefinite(bank.indefinite)
        self.labels = np.ascontiguousarray(expect("y", labels, kind="whole", shape=(n,)))
        self.C = expect("C", C, above=0)
        self.alpha = expect("alpha", alpha, low=0)
        self.factor = kernel_factor(loss, self.n_classes)
        if scores is None:
            scores = np.zeros((n, 0))
        self.scores = np.ascontiguousarray(expect("scores", scores, shape=(n, "k"), least=0))
        self.rows = self.n_classes
        if loss == "hinge":
            self.rows = 1
        self.n_groups = bank.n_kernels + self.rows * self.scores.shape[1]
        self.p, self.q = self._resolve_p(p)
        sample_weight = check_sample_weight(sample_weight, n)
        total = n
        if sample_weight is not None:
            total = sample_weight.sum()
        classes = np.arange(self.n_classes)
        self.loss_weights = loss_weights(sample_weight, class_weight, classes, self.labels)
        if self.loss_weights is None:
            self.loss_weights = np.ones(n)
        self.regularization = 1.0 / (self.C * total)
        self.limits = self.loss_weights * (n / total)

    def _resolve_p(self, p):
        return resolve_p(p, self.n_groups)

    def visits(self, hinge: Callable, general: Callable) -> tuple:
        """The loop to run, of these for the hinge losses and for any, and its first parameters."""
        return (hinge,)

    def score_blocks(self, coef: np.ndarray) -> np.ndarray:
        return coef.T @ self.scores

    def split(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the kernels, and of the prior scores, (n_classes, K)."""
        n_kernels = self.bank.n_kernels
        n_scores = self.scores.shape[1]
        per_class = weights[n_kernels:].reshape(self.rows, n_scores)
        return weights[:n_kernels], np.broadcast_to(per_class, (self.n_classes, n_scores))

    def join(self, kernel_values: np.ndarray, blocks_sq: np.ndarray) -> np.ndarray:
        """Inverse of `split`, from the squares of the prior scores' blocks."""
        values = blocks_sq if self.rows > 1 else self.factor * blocks_sq.sum(axis=0)
        return np.concatenate([kernel_values, values.ravel()])

    def training_scores(self, coef: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """For the primal blocks ``weights[j] * theta^j``."""
        of_kernels, of_scores = self.split(weights)
        scores = self.factor * self._kernel_scores(coef, of_kernels)
        if self.scores.shape[1]:
            scores = scores + self.factor * self.scores @ (of_scores * self.score_blocks(coef)).T
        return scores

    def _kernel_scores(self, coef, kernel_weights):
        bank = self.bank
        n = bank.n_samples
        active = np.flatnonzero(kernel_weights)
        support = np.flatnonzero(coef.any(axis=1))
        scores = np.zeros((n, coef.shape[1]))
        if active.size == 0 or support.size == 0:
            return scores
        cast = coef.astype(bank.dtype)
        if bank.resident:
            weights = kernel_weights.astype(bank.dtype)
            if np.count_nonzero(coef) < SPARSE * coef.size:
                lists = csr_array(coef.T)
                lists = lists.indptr, lists.indices.astype(np.uint32), lists.data
                for _, *places in row_blocks(bank, np.arange(n), n):
                    sparse_scores(*places, weights, active, lists, np.empty(n, bank.dtype), scores)
                return scores
            block = np.empty((BLOCK_ROWS, n), dtype=bank.dtype)
            for rows, *places in row_blocks(bank, np.arange(n), BLOCK_ROWS):
                combine_block(*places, weights, active, block[: rows.size])
                scores[rows] = block[: rows.size] @ cast
            return scores
        chosen = bank.select(active)
        cast = cast[support]
        step = max(1, min(BLOCK_ROWS, chosen.block_rows()))
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            scores[rows] = combine(chosen.rows(rows), kernel_weights[active])[:, support] @ cast
        return scores

    def block_norms_sq(self, coef: np.ndarray) -> np.ndarray:
        """Squared norms of ``theta^j = sum_iy coef[i, y] phi^j(x_i, y)``."""
        return self.join(self.factor * kernel_norms_sq(self.bank, coef), self.score_blocks(coef) ** 2)

    def point(self, coef: np.ndarray, weights: np.ndarray, norms_sq: np.ndarray | None = None) -> Point:
        """`norms_sq` is of the blocks ``theta^g``."""
        if norms_sq is None:
            norms_sq = self.block_norms_sq(coef)
        return Point(coef, weights, weights * np.sqrt(norms_sq), self.training_scores(coef, weights))

    def primal(self, point: Point) -> float:
        """Objective P of a point with scores."""
        return self.regularizer(point.norms) + self.mean_loss(point.scores)

    def mean_loss(self, scores: np.ndarray) -> float:
        return mean_loss(scores, self.labels, self.limits)

    @property
    def mean_loss_at_zero(self) -> float:
        return float(np.mean(self.limits))

    def regularizer(self, primal_norms: np.ndarray) -> float:
        primal_norms = np.abs(primal_norms)
        value = 0.5 * self.regularization * group_norm(primal_norms, self.p) ** 2
        return value + self.alpha * float(primal_norms.sum())

    def dual_value(self, total: float, norms: np.ndarray) -> float:
        """D for ``total = sum a / n`` and the norms of theta."""
        excess = np.maximum(0.0, norms - self.alpha)
        return total - group_norm(excess, self.q) ** 2 / (2.0 * self.regularization)

    def dual_bound(
        self, dual_coef: np.ndarray, norms_sq: np.ndarray | None = None
    ) -> tuple[float, float, np.ndarray]:
        """Largest dual value along the ray of B, the multiple, and B (rows above their limit scaled back)."""
        n = self.bank.n_samples
        own = dual_coef[np.arange(n), self.labels]
        with np.errstate(divide="ignore"):  # samples without weight
            share = np.divide(own, self.limits, out=np.zeros(n), where=own > 0.0)
        if np.any(own > self.limits):
            dual_coef = dual_coef / np.maximum(1.0, share)[:, None]
            own = np.minimum(own, self.limits)
            share = np.minimum(share, 1.0)
            norms_sq = None
        if norms_sq is None:
            norms_sq = self.block_norms_sq(dual_coef)
        norms = np.sqrt(norms_sq) / n
        total = float(own.sum()) / n
        largest = float(np.max(share, initial=0.0))
        if total <= 0.0:
            return 0.0, 0.0, dual_coef
        limit = 1.0 / largest
        if self.alpha == 0.0:
            curvature = group_norm(norms, self.q) ** 2 / self.regularization
            scale = limit if curvature <= total / limit else total / curvature
        else:
            options = {"bounds": (0.0, limit), "method": "bounded", "options": {"xatol": 1e-10 * limit}}
            minimum = minimize_scalar(lambda s: -self.dual_value(s * total, s * norms), **options)
            scale = max((float(minimum.x), limit), key=lambda s: self.dual_value(s * total, s * norms))
        return max(0.0, self.dual_value(scale * total, scale * norms)), scale, dual_coef

    def dual_variables(self, dual_coef: np.ndarray) -> np.ndarray:
        """a of a dual point B: 0 for the label, minus B for the other classes."""
        a = np.maximum(0.0, -dual_coef)
        a[np.arange(len(a)), self.labels] = 0.0
        return a

    def ascent(self, dual_coef: np.ndarray, norms_sq: np.ndarray | None = None) -> Ascent:
        return Ascent(self, dual_coef, norms_sq)

    def primal_weights(self, norms: np.ndarray) -> np.ndarray:
        """Primal group weights for dual block norms (gradient of the conjugate)."""
        weights = np.empty_like(norms)
        link_weights(norms, self.alpha, self.q, weights)
        return weights / self.regularization


class LossProblem(MKLProblem):
    """An MKL training problem with any loss of `cuelearn.mkl.optimum.losses`.

    Parameters
    ----------
    bank : KernelBank
    targets : ndarray, shape (n_samples,)
        Numbers, or class indices 0 .. n_outputs - 1.
    loss : str or loss
        A name, such as "squared", or a named tuple, such as ``Huber(delta=0.5)``.
    n_outputs : int, default 1
        Number of classes, or 1 for numbers.
    **options
        p, C, alpha, sample_weight and class_weight as in `MKLProblem`.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.kernels import KernelBank
    >>> from cuelearn.mkl import LossProblem, solve_ufo
    >>> problem = LossProblem(KernelBank.from_stack(np.eye(4)), [0.0, 1.0, 2.0, 3.0], "squared", C=1)
    >>> result = solve_ufo(problem, tol=1e-9, finish=True)
    >>> result.dual_coef.ravel() * result.kernel_weights  # ridge regression on the identity: y / 2
    array([0. , 0.5, 1. , 1.5])
    """

    keeps_scores = False

    def __init__(
        self, bank: KernelBank, targets: ArrayLike, loss: str | Loss, n_outputs: int = 1, **options: Any
    ):
        kind = "number"
        limits = {}
        if n_outputs > 1:
            kind = "class"
            limits = {"kind": "whole", "low": 0, "high": n_outputs - 1}
        targets = expect("targets", targets, shape=("n_samples",), **limits)
        labels = targets if n_outputs > 1 else np.zeros(targets.shape)
        super().__init__(bank, labels, n_outputs, **options)
        self.loss = resolve_loss(loss, kind)
        self.labels = np.ascontiguousarray(targets)

    def visits(self, hinge, general):
        return compiled_for(self.loss, general), self.loss, np.zeros(self.n_classes)

    def dual_variables(self, dual_coef):
        return dual_coef

    def ascent(self, dual_coef, norms_sq=None):
        return LossAscent(self, dual_coef, norms_sq)

    def weighted_loss(self, scores: np.ndarray, targets: np.ndarray, limits: np.ndarray) -> float:
        return compiled_for(self.loss, sum_values)(self.loss, scores, targets, limits) / targets.size

    def mean_loss(self, scores):
        return self.weighted_loss(np.ascontiguousarray(scores), self.labels, self.limits)

    @property
    def mean_loss_at_zero(self):
        return self.mean_loss(np.zeros((self.labels.size, self.n_classes)))

    def dual_bound(self, dual_coef, norms_sq=None):
        """Largest dual value of multiples in [0, 1] of B, the multiple, and B with feasible rows."""
        n = self.bank.n_samples
        feasible = np.array(dual_coef, order="C")
        compiled_for(self.loss, clip_rows)(self.loss, feasible, self.labels, self.limits)
        if np.array_equal(feasible, dual_coef):
            feasible = dual_coef
        if norms_sq is None or feasible is not dual_coef:
            norms_sq = self.block_norms_sq(feasible)
        norms = np.sqrt(norms_sq) / n
        duals = compiled_for(self.loss, sum_duals)

        def bound(multiple):
            total = duals(self.loss, multiple * feasible, self.labels, self.limits) / n
            return self.dual_value(total, multiple * norms)

        inside = minimize_scalar(lambda multiple: -bound(multiple), bounds=(0.0, 1.0), method="bounded").x
        scale = max(float(inside), 1.0, key=bound)
        return max(0.0, bound(scale)), scale, feasible


def _problem(kernels, y, options):
    bank = kernels
    if not isinstance(kernels, KernelBank):
        bank = KernelBank.from_stack(np.asarray(kernels))
    classes, labels = classes_and_labels(np.asarray(y))
    sample_weight = check_sample_weight(options.pop("sample_weight", None), bank.n_samples)
    weights = weights_of(options.pop("class_weight", None), classes, labels, sample_weight)
    return MKLProblem(bank, labels, classes.size, **weights, **options)


def weights_of(class_weight, classes, labels, sample_weight):
    """Weight options of an `MKLProblem`, with class weights keyed by label."""
    known = class_weights(class_weight, classes, labels, sample_weight)
    return {"sample_weight": sample_weight, "class_weight": dict(enumerate(known.values()))}


def objective(
    kernels: KernelBank | np.ndarray,
    y: ArrayLike,
    dual_coef: np.ndarray,
    kernel_weights: np.ndarray,
    **options: Any,
) -> float:
    """Objective P of the MKL problem at a given point, thesis equation 4.9, a float.

    Parameters
    ----------
    kernels : KernelBank or ndarray, shape (n_kernels, n_samples, n_samples)
    y : array-like, shape (n_samples,)
        Class labels; columns of `dual_coef` follow their sorted order.
    dual_coef, kernel_weights : ndarray, shape (n_samples, n_classes) and (n_kernels,)
        As in estimators: class scores are ``sum_j kernel_weights[j] * K_j @ dual_coef``.
    **options
        p, C, alpha, loss, sample_weight and class_weight, as in estimators.

    Notes
    -----
    Cost: two reads of the kernel stack, O(n^2 F + n^2 F M) operations.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mkl import objective
    >>> objective(np.eye(4)[None], [0, 0, 1, 1], np.zeros((4, 2)), np.ones(1))  # at zero every loss is 1
    1.0
    """
    problem = _problem(kernels, y, options)
    return problem.primal(_given_point(problem, dual_coef, kernel_weights))


def duality_gap(
    kernels: KernelBank | np.ndarray,
    y: ArrayLike,
    dual_point: np.ndarray,
    *,
    dual_coef: np.ndarray | None = None,
    kernel_weights: np.ndarray | None = None,
    **options: Any,
) -> Certificate:
    r"""Certified distance from the optimum: objective of a primal point minus the value of a dual point.

    Parameters
    ----------
    kernels, y, **options
        As in `objective`.
    dual_point : ndarray, shape (n_samples, n_classes)
        :math:`a_{iy'} \ge 0`; the column of the true class is ignored. Rows above their limit are scaled
        back, and the best multiple of the point is taken.
    dual_coef, kernel_weights : ndarray, optional
        Primal point; default: that of the dual point (gradient of the conjugate, theorem 4.6).

    Returns
    -------
    Certificate
        ``objective - gap`` never exceeds the optimum. With an indefinite kernel `dual_value` and `gap` are
        NaN.

    Raises
    ------
    ValueError
        If an array has a wrong shape or non-finite entries, or `dual_point` has negative entries.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mkl import duality_gap
    >>> result = duality_gap(np.eye(4)[None], [0, 0, 1, 1], np.ones((4, 2)))
    >>> round(result.objective, 3), abs(round(result.gap, 6))  # the samples are alike: an optimum
    (0.25, 0.0)
    """
    problem = _problem(kernels, y, options)
    a = expect("dual_point", dual_point, shape=(problem.bank.n_samples, problem.n_classes)).copy()
    rows = np.arange(len(a))
    a[rows, problem.labels] = 0.0
    expect("dual_point", a, shape=a.shape, low=0)
    coef = -a
    coef[rows, problem.labels] = a.sum(axis=1)
    bound, scale, coef = problem.dual_bound(coef)
    if (dual_coef is None) != (kernel_weights is None):
        raise ValueError("dual_coef and kernel_weights must be given together")
    if dual_coef is None:
        coef = coef * (scale / len(a))
        norms_sq = problem.block_norms_sq(coef)
        point = problem.point(coef, problem.primal_weights(np.sqrt(norms_sq)), norms_sq)
    else:
        point = _given_point(problem, dual_coef, kernel_weights)
    value = problem.primal(point)
    if problem.bank.indefinite:
        bound = np.nan
    return Certificate(value, bound, value - bound)


def _given_point(problem, dual_coef, kernel_weights):
    coef = expect("dual_coef", dual_coef, shape=(problem.bank.n_samples, problem.n_classes))
    weights = expect("kernel_weights", kernel_weights, shape=(problem.bank.n_kernels,))
    return problem.point(coef / problem.factor, weights)
