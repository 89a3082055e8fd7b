r"""The regularised MKL problem, its objective, its dual and the certificate between them.

With F kernels, n samples, :math:`\lambda = 1/(Cn)` and block vectors :math:`\bar w`,

.. math::

    P(\bar w) = \frac{\lambda}{2} \|\bar w\|_{2,p}^2 + \alpha \|\bar w\|_{2,1}
                + \frac1n \sum_i \ell(\bar w; x_i, y_i) .

For :math:`a_{iy'} \ge 0`, :math:`a_{iy_i} = 0`, :math:`\sum_{y'} a_{iy'} \le 1` and
:math:`\theta^j = \frac1n \sum_{i,y'} a_{iy'} (\phi^j(x_i,y_i) - \phi^j(x_i,y'))`, weak duality gives

.. math::

    D(a) = \frac1n \sum_{i,y'} a_{iy'} - \frac{1}{2\lambda} \Big\| \big[\|\theta^j\| - \alpha\big]_+
    \Big\|_q^2
           \;\le\; \min_{\bar w} P .

Every solver hands over such an *a*, so the difference P - D bounds how far its answer is from the optimum,
whatever its route.

Coefficients are stored as B, shape (n, n_classes), with :math:`B_{iy_i} = \sum_{y'} a_{iy'}` and
:math:`B_{iy'} = -a_{iy'}`.

References
----------
Thesis equations 4.3 and 4.9; theorem 4.6 gives the conjugate of the regulariser.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.optimize import minimize_scalar

from cuelearn.core.checks import check_non_negative, check_positive
from cuelearn.core.groupnorm import group_norm, link_weights, resolve_p
from cuelearn.core.losses import kernel_factor, mean_loss
from cuelearn.mkl.state import combine_block

__all__ = ["MKLProblem", "Certificate", "combined_kernel", "objective", "duality_gap"]

# rows of combined kernel per block; a constant, so that sums do not depend on the machine
BLOCK_ROWS = 256
# the same where rows are computed on demand: any reasonable budget holds as many
ON_DEMAND_ROWS = 64
# rows of one kernel that a quadratic form holds in float64: they stay in the cache for their product
QUADRATIC_ROWS = 64
# from how many vectors on, share of the samples up to which it pays to pick single columns out of a row
MOST_GATHERED = ((16, 0.8), (2, 0.4), (0, 0.2))


class Certificate(NamedTuple):
    """Objective of a primal point, value of a dual point, and their difference."""

    objective: float
    dual_value: float
    gap: float


class MKLProblem:
    """One MKL training problem: kernels, labels and regularisation.

    Parameters
    ----------
    bank : KernelBank
        Training kernels.
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
        Scores of priors. Each is a block of one number for every class (thesis 6.2); with the hinge loss two
        classes share it.

    Attributes
    ----------
    n_groups : int
        Blocks: kernels first, then scores of priors, class by class.
    rows : int
        Classes that have blocks of their own for the scores: n_classes, or 1 for the hinge loss.
    limits : float or ndarray, shape (n_samples,)
        Of a sample's dual variables: the weight of its loss.
    """

    many_kernels = (
        True  # whether it pays to leave out kernels, and to visit samples without computing all rows
    )

    def __init__(
        self, bank, labels, n_classes, *, p="auto", C=1.0, alpha=0.0, loss="multiclass", scores=None
    ):
        self.bank = bank
        self.labels = np.ascontiguousarray(labels, dtype=np.int64)
        self.n_classes = int(n_classes)
        self.C = check_positive("C", C)
        self.alpha = check_non_negative("alpha", alpha)
        self.loss = loss
        self.factor = kernel_factor(loss, self.n_classes)
        self.regularization = 1.0 / (self.C * bank.n_samples)
        self.limits = 1.0
        if self.labels.shape != (bank.n_samples,):
            raise ValueError(
                f"y must have {bank.n_samples} entries, one per training sample, got shape "
                f"{self.labels.shape}"
            )
        scores = np.zeros((bank.n_samples, 0)) if scores is None else scores
        self.scores = np.ascontiguousarray(scores, dtype=np.float64)
        if self.scores.ndim != 2 or len(self.scores) != bank.n_samples:
            raise ValueError(
                f"scores must have one row per training sample, {bank.n_samples}, got shape "
                f"{self.scores.shape}"
            )
        self.rows = 1 if loss == "hinge" else self.n_classes
        self.n_groups = bank.n_kernels + self.rows * self.scores.shape[1]
        self.p, self.q = self._resolve_p(p)

    def _resolve_p(self, p):
        return resolve_p(p, self.n_groups)

    # ---------------------------------------------------------------- blocks of the scores of priors

    def score_blocks(self, coef):
        """Blocks of the scores, class by class: shape (n_classes, K)."""
        return coef.T @ self.scores

    def split(self, weights):
        """Weights of all blocks as those of the kernels (n_kernels,) and of every class and score
        (n_classes, K)."""
        n_kernels, n_scores = self.bank.n_kernels, self.scores.shape[1]
        per_class = weights[n_kernels:].reshape(self.rows, n_scores)
        return weights[:n_kernels], np.broadcast_to(per_class, (self.n_classes, n_scores))

    def join(self, kernel_values, blocks_sq):
        """Values of all blocks from those of the kernels and the squares of every class and score."""
        values = blocks_sq if self.rows > 1 else self.factor * blocks_sq.sum(axis=0)
        return np.concatenate([kernel_values, values.ravel()])

    # ---------------------------------------------------------------- reads of the kernels

    def training_scores(self, coef, weights):
        """Class scores of all training samples, shape (n_samples, n_classes), for the primal blocks
        ``weights[j] * theta^j``."""
        of_kernels, of_scores = self.split(weights)
        scores = self.factor * self._kernel_scores(coef, of_kernels)
        if self.scores.shape[1]:
            scores = scores + self.factor * self.scores @ (of_scores * self.score_blocks(coef)).T
        return scores

    def _kernel_scores(self, coef, kernel_weights):
        bank, active = self.bank, np.flatnonzero(kernel_weights)
        support = np.flatnonzero(np.any(coef != 0.0, axis=1))
        scores = np.zeros((bank.n_samples, coef.shape[1]))
        if active.size == 0 or support.size == 0:
            return scores
        if bank.resident:
            block = np.empty((BLOCK_ROWS, bank.n_samples), dtype=bank.dtype)
            view, weights, cast = (
                flat_view(bank.stack),
                kernel_weights.astype(bank.dtype),
                coef.astype(bank.dtype),
            )
            for start in range(0, bank.n_samples, BLOCK_ROWS):
                rows = np.arange(start, min(start + BLOCK_ROWS, bank.n_samples))
                flat, row_stride, kernel_stride = view
                combine_block(flat, rows, row_stride, kernel_stride, weights, active, block[: rows.size])
                scores[rows] = block[: rows.size] @ cast
            return scores
        chosen, cast = bank.select(active), coef[support].astype(bank.dtype)
        step = max(1, min(BLOCK_ROWS, chosen.block_rows()))
        for start in range(0, bank.n_samples, step):
            rows = slice(start, min(start + step, bank.n_samples))
            scores[rows] = combine(chosen.rows(rows), kernel_weights[active])[:, support] @ cast
        return scores

    def block_norms_sq(self, coef, dtype=None):
        """Squared norms of the blocks ``theta^j = sum_i sum_y coef[i, y] phi^j(x_i, y)``, shape (n_groups,).

        Products are formed in `dtype`, by default the bank's.
        """
        of_kernels = self._kernel_norms_sq(coef, self.bank.dtype if dtype is None else dtype)
        return self.join(of_kernels, self.score_blocks(coef) ** 2)

    def _kernel_norms_sq(self, coef, dtype):
        bank = self.bank
        support = np.flatnonzero(np.any(coef != 0.0, axis=1))
        out = np.zeros(bank.n_kernels)
        if support.size == 0:
            return out
        if not bank.resident:
            # the rows of all kernels in one product; blocks of a fixed size, half the budget at most (the
            # caller holds rows too)
            cast = np.ascontiguousarray(coef, dtype=dtype)
            step = max(1, min(ON_DEMAND_ROWS, bank.block_rows() // 2))
            block = np.empty((step, bank.n_kernels, bank.n_samples), dtype=bank.dtype)
            for start in range(0, support.size, step):
                chosen = support[start : start + step]
                rows = block[: chosen.size]
                bank.rows_into(chosen, rows.transpose(1, 0, 2))
                products = rows.reshape(-1, bank.n_samples).astype(dtype, copy=False) @ cast
                products = products.reshape(*rows.shape[:2], -1)
                out += np.einsum("ic,ijc->j", coef[chosen], products, dtype=np.float64)
            return np.maximum(0.0, self.factor * out)
        # with many support samples whole rows are used as they lie; with few, their square is picked out
        whole = support.size > 0.3 * bank.n_samples
        if whole:
            support = np.arange(bank.n_samples)
        cast = np.ascontiguousarray(coef[support], dtype=dtype)
        for start in range(0, support.size, BLOCK_ROWS):
            chosen = support[start : start + BLOCK_ROWS]
            picked = slice(chosen[0], chosen[-1] + 1) if whole else np.ix_(chosen, support)
            for j in range(bank.n_kernels):
                products = bank.stack[j][picked].astype(dtype, copy=False) @ cast
                out[j] += np.einsum("ic,ic->", coef[chosen], products, dtype=np.float64)
        return np.maximum(0.0, self.factor * out)

    # ---------------------------------------------------------------- values

    def primal(self, coef, kernel_weights, norms_sq=None):
        """Objective P of the blocks ``kernel_weights[j] * theta^j``; their squared norms may be handed in
        where known."""
        norms_sq = self.block_norms_sq(coef) if norms_sq is None else norms_sq
        scores = self.training_scores(coef, kernel_weights)
        return self.regularizer(kernel_weights * np.sqrt(norms_sq)) + self.mean_loss(scores)

    def mean_loss(self, scores):
        """Mean of the training samples' losses, weighted by `limits`, at given class scores; at w = 0 it is
        `mean_loss_at_zero`."""
        return mean_loss(scores, self.labels, self.limits)

    @property
    def mean_loss_at_zero(self):
        """The objective at w = 0, which bounds the optimum's norm."""
        return float(np.mean(self.limits))

    def regularizer(self, primal_norms):
        """Regulariser of given primal block norms (a block with a negative weight has the norm of its
        opposite)."""
        primal_norms = np.abs(primal_norms)
        value = 0.5 * self.regularization * group_norm(primal_norms, self.p) ** 2
        return value + self.alpha * float(primal_norms.sum())

    def dual_value(self, total, norms):
        """D for ``total = sum a / n`` and the block norms of theta."""
        excess = np.maximum(0.0, norms - self.alpha)
        return total - group_norm(excess, self.q) ** 2 / (2.0 * self.regularization)

    def dual_bound(self, dual_coef, norms_sq=None):
        """Best lower bound along the ray of a dual point.

        Parameters
        ----------
        dual_coef : ndarray, shape (n_samples, n_classes)
            B of a non-negative `a`; rows whose sum exceeds their limit (1) are scaled back to it.
        norms_sq : ndarray, shape (n_groups,), optional
            Squared block norms of ``sum_i sum_y B[i, y] phi(x_i, y)``, used if no row has to be scaled back.

        Returns
        -------
        value : float
            D at the best feasible multiple of the point, at least 0 (the value of a = 0).
        scale : float
        feasible : ndarray, shape (n_samples, n_classes)
            The point before scaling.
        """
        n = self.bank.n_samples
        own = dual_coef[np.arange(n), self.labels]
        if np.any(own > self.limits):
            dual_coef = dual_coef / np.maximum(1.0, own / self.limits)[:, None]
            own = np.minimum(own, self.limits)
            norms_sq = None
        if norms_sq is None:
            norms_sq = self.block_norms_sq(dual_coef)
        norms = np.sqrt(norms_sq) / n
        total, largest = float(own.sum()) / n, float(np.max(own / self.limits, initial=0.0))
        if total <= 0.0:
            return 0.0, 0.0, dual_coef
        limit = 1.0 / largest
        if self.alpha == 0.0:
            curvature = group_norm(norms, self.q) ** 2 / self.regularization
            scale = limit if curvature <= total / limit else total / curvature
        else:
            found = minimize_scalar(
                lambda s: -self.dual_value(s * total, s * norms),
                bounds=(0.0, limit),
                method="bounded",
                options={"xatol": 1e-10 * limit},
            )
            scale = max((float(found.x), limit), key=lambda s: self.dual_value(s * total, s * norms))
        return max(0.0, self.dual_value(scale * total, scale * norms)), scale, dual_coef

    def primal_weights(self, norms):
        """Kernel weights of the primal point that belongs to a dual point with these block norms (gradient
        of the conjugate)."""
        weights = np.empty_like(norms)
        link_weights(norms, self.alpha, self.q, weights)
        return weights / self.regularization


def flat_view(stack):
    """A resident stack as a flat array with the strides of a sample and of a kernel, without a copy.

    Parameters
    ----------
    stack : ndarray, shape (n_kernels, n_rows, n_train)
        With contiguous rows: kernel by kernel, or sample by sample (the transpose of an (n_rows, n_kernels,
        n_train) array).

    Returns
    -------
    flat : ndarray, one-dimensional
    row_stride, kernel_stride : int
        In elements.
    """
    size = stack.itemsize
    kernel_stride, row_stride, step = stack.strides
    if step != size or min(kernel_stride, row_stride) < 0:
        raise ValueError("the rows of a kernel stack must be contiguous")
    length = (
        sum((extent - 1) * stride for extent, stride in zip(stack.shape, stack.strides, strict=True)) // size
        + 1
    )
    flat = np.lib.stride_tricks.as_strided(stack, (length,), (size,))
    return flat, row_stride // size, kernel_stride // size


def combined_scores(cross, coef, kernel_weights):
    """Scores of a cross bank's rows, block by block: kernels that all classes share are combined first, then
    multiplied with the coefficients in float64, so that a row's scores do not depend on the rows beside it.

    Parameters
    ----------
    cross : CrossBank
    coef : ndarray, shape (n_columns, n_classes)
    kernel_weights : ndarray, shape (n_kernels,) or (n_classes, n_kernels)

    Returns
    -------
    ndarray, shape (n_rows, n_classes)
    """
    scores = np.zeros((cross.n_rows, coef.shape[1]))
    for rows, block in cross.blocks(reuse=True):
        if kernel_weights.ndim == 1:
            scores[rows] = combine(block, kernel_weights) @ coef
            continue
        for j, weights in enumerate(kernel_weights.T):
            scores[rows] += (block[j] @ coef) * weights
    return scores


def combine(block, kernel_weights, dtype=None):
    """Weighted sum of a block's kernels, shape (rows, columns), in `dtype` or the block's precision."""
    weights = kernel_weights.astype(block.dtype if dtype is None else dtype)
    combined = weights[0] * block[0]
    for j in range(1, block.shape[0]):
        combined += weights[j] * block[j]
    return combined


@njit(cache=True, fastmath=True)
def gather(flat, starts, length, columns, out):
    """``out[b] = row_b[columns]`` in the precision of `out`, for rows of a flat array; a plain copy where
    `columns` are all.

    Unsigned columns spare the test for negative ones.
    """
    for b in range(starts.size):
        row = flat[starts[b] : starts[b] + length]
        if columns.size == length:
            for k in range(length):
                out[b, k] = row[k]
        else:
            for k in range(columns.size):
                out[b, k] = row[columns[k]]


@njit(cache=True, fastmath=True)
def dots(flat, starts, length, columns, vector, out):
    """``out[b] = row_b[columns] @ vector`` in double precision, without an array in between; see `gather`."""
    for b in range(starts.size):
        row = flat[starts[b] : starts[b] + length]
        total = 0.0
        if columns.size == length:
            for k in range(length):
                total += vector[k] * row[k]
        else:
            for k in range(columns.size):
                total += vector[k] * row[columns[k]]
        out[b] = total


def quadratic_forms(bank, coefs):
    """``coefs[:, c] @ K_j @ coefs[:, c]`` for all kernels and several coefficient vectors, in one read of
    the kernels.

    Parameters
    ----------
    bank : KernelBank
    coefs : ndarray of float64, shape (n_samples, n_vectors)

    Returns
    -------
    ndarray, shape (n_kernels, n_vectors)
        In float64: at large C a gap is a difference of nearly equal numbers.

    Notes
    -----
    Only rows of samples with a coefficient are read. Of a resident bank at most `QUADRATIC_ROWS` rows of one
    kernel are copied at a time; of another the rows of all kernels are computed together, `BLOCK_ROWS` or
    half the budget at most.
    """
    n, n_vectors = coefs.shape
    support = np.flatnonzero(coefs.any(axis=1))
    out = np.zeros((bank.n_kernels, n_vectors))
    # with few support samples their square is picked out; with many, rows are read as they lie
    one = n_vectors == 1
    picked = support.size <= next(share for least, share in MOST_GATHERED if n_vectors >= least) * n
    columns = support if picked else np.arange(n)
    cast, unsigned = np.ascontiguousarray(coefs[columns]), columns.astype(np.uint64)
    if bank.resident:
        step = QUADRATIC_ROWS
        flat, row_stride, kernel_stride = flat_view(bank.stack)
    else:
        step = max(1, min(BLOCK_ROWS, bank.block_rows() // 2, support.size))
        computed = np.empty((bank.n_kernels, step, n), dtype=bank.dtype)
        flat, row_stride, kernel_stride = flat_view(computed)
    block = np.empty((step, 1 if one else columns.size))
    for start in range(0, support.size, step):
        rows = support[start : start + step]
        if bank.resident:
            starts = rows * row_stride
        else:
            bank.rows_into(rows, computed[:, : rows.size])
            starts = np.arange(rows.size) * row_stride
        part, chosen = block[: rows.size], coefs[rows]
        for j in range(bank.n_kernels):
            if one:
                dots(flat, starts + j * kernel_stride, n, unsigned, cast[:, 0], part[:, 0])
                out[j] += chosen[:, 0] @ part[:, 0]
            else:
                gather(flat, starts + j * kernel_stride, n, unsigned, part)
                out[j] += np.einsum("ic,ic->c", chosen, part @ cast)
    return np.maximum(0.0, out)


def combined_kernel(bank, kernel_weights, factor, out=None):
    """``factor * sum_j kernel_weights[j] * K_j`` as one (n, n) matrix in float64, written to `out` where it
    is given.

    At large C the dual value is a difference of nearly equal numbers; sums in float32 would limit the gap to
    some 1e-4.
    """
    n = bank.n_samples
    out = np.empty((n, n)) if out is None else out
    active = np.flatnonzero(kernel_weights)
    weights = factor * kernel_weights
    if bank.resident:
        flat, row_stride, kernel_stride = flat_view(bank.stack)
        combine_block(flat, np.arange(n), row_stride, kernel_stride, weights, active, out)
        return out
    step = max(1, min(BLOCK_ROWS, bank.block_rows()))
    block = np.empty((bank.n_kernels, step, n), dtype=bank.dtype)
    flat, row_stride, kernel_stride = flat_view(block)
    for start in range(0, n, step):
        stop = min(start + step, n)
        bank.rows_into(slice(start, stop), block[:, : stop - start])
        combine_block(
            flat, np.arange(stop - start), row_stride, kernel_stride, weights, active, out[start:stop]
        )
    return out


def _problem(kernels, y, p, C, alpha, loss):
    from cuelearn.kernels import KernelBank

    bank = kernels if isinstance(kernels, KernelBank) else KernelBank.from_stack(np.asarray(kernels))
    classes, labels = np.unique(np.asarray(y), return_inverse=True)
    if classes.size < 2:
        raise ValueError(f"y must hold at least 2 classes, got {classes.size}")
    return MKLProblem(bank, labels, classes.size, p=p, C=C, alpha=alpha, loss=loss)


def objective(kernels, y, dual_coef, kernel_weights, *, p="auto", C=1.0, alpha=0.0, loss="multiclass"):
    r"""Objective of the MKL problem at a given point.

    .. math:: P = \frac{\lambda}{2}\|\bar w\|_{2,p}^2 + \alpha\|\bar w\|_{2,1}
              + \frac1n\sum_i \ell(\bar w; x_i, y_i)

    with :math:`w^j` = ``kernel_weights[j]`` times the block with coefficients `dual_coef` and
    :math:`\lambda = 1/(Cn)`.

    Parameters
    ----------
    kernels : KernelBank or ndarray, shape (n_kernels, n_samples, n_samples)
        Training kernels.
    y : array-like, shape (n_samples,)
        Class labels; columns of `dual_coef` follow their sorted order.
    dual_coef : ndarray, shape (n_samples, n_classes)
        As estimators hold it: class scores are ``sum_j kernel_weights[j] * K_j @ dual_coef``.
    kernel_weights : ndarray, shape (n_kernels,)
    p : float in (1, 2] or "auto"
    C : float > 0
    alpha : float >= 0
    loss : {"multiclass", "hinge"}

    Returns
    -------
    float

    Notes
    -----
    Cost: two reads of the kernel stack, O(n^2 F + n^2 F M) operations for the norms.

    References
    ----------
    Thesis equations 4.3 (alpha = 0) and 4.9.
    """
    problem = _problem(kernels, y, p, C, alpha, loss)
    coef = _check_coef("dual_coef", dual_coef, problem) / problem.factor
    return problem.primal(coef, _check_weights(kernel_weights, problem))


def duality_gap(
    kernels,
    y,
    dual_point,
    *,
    dual_coef=None,
    kernel_weights=None,
    p="auto",
    C=1.0,
    alpha=0.0,
    loss="multiclass",
):
    r"""Certified distance from the optimum: objective of a primal point minus the dual value of a feasible
    dual point.

    Parameters
    ----------
    kernels, y, p, C, alpha, loss
        As in `objective`.
    dual_point : ndarray, shape (n_samples, n_classes)
        :math:`a_{iy'} \ge 0`; the column of the true class is ignored. Rows with a sum above 1 are scaled
        back, and the best multiple of the point is taken.
    dual_coef, kernel_weights : ndarray, optional
        Primal point; by default the one that belongs to the dual point (gradient of the conjugate
        regulariser).

    Returns
    -------
    Certificate
        `objective`, `dual_value` and `gap`; ``objective - gap`` never exceeds the optimum.

    Raises
    ------
    ValueError
        If `dual_point` has a wrong shape or negative or non-finite entries.

    References
    ----------
    Weak duality for thesis equation 4.9; the conjugate is that of theorem 4.6.
    """
    problem = _problem(kernels, y, p, C, alpha, loss)
    a = _check_coef("dual_point", dual_point, problem).copy()
    rows = np.arange(a.shape[0])
    a[rows, problem.labels] = 0.0
    if a.min(initial=0.0) < 0.0:
        raise ValueError("dual_point must be non-negative")
    coef = -a
    coef[rows, problem.labels] = a.sum(axis=1)
    bound, scale, coef = problem.dual_bound(coef)
    if (dual_coef is None) != (kernel_weights is None):
        raise ValueError("dual_coef and kernel_weights must be given together, they are one primal point")
    if dual_coef is None:
        coef = coef * (scale / a.shape[0])
        norms_sq = problem.block_norms_sq(coef)
        value = problem.primal(coef, problem.primal_weights(np.sqrt(norms_sq)), norms_sq)
    else:
        coef = _check_coef("dual_coef", dual_coef, problem) / problem.factor
        value = problem.primal(coef, _check_weights(kernel_weights, problem))
    return Certificate(value, bound, value - bound)


def _check_coef(name, coef, problem):
    coef = np.asarray(coef, dtype=np.float64)
    expected = (problem.bank.n_samples, problem.n_classes)
    if coef.shape != expected:
        raise ValueError(f"{name} must have shape {expected} (n_samples, n_classes), got {coef.shape}")
    if not np.isfinite(coef).all():
        raise ValueError(f"{name} must be finite")
    return coef


def _check_weights(kernel_weights, problem):
    weights = np.asarray(kernel_weights, dtype=np.float64)
    if weights.shape != (problem.bank.n_kernels,):
        raise ValueError(f"kernel_weights must have shape ({problem.bank.n_kernels},), got {weights.shape}")
    if not np.isfinite(weights).all():
        raise ValueError("kernel_weights must be finite")
    return weights
