r"""Formulas that chapters share: multiclass hinge loss, group norms, the choice by a score.

Losses. Of score rows with a column per class,

.. math:: \ell^{MC} = \Big[1 - s_{y_i} + \max_{y' \ne y_i} s_{y'}\Big]_+

is a convex upper bound of the 0/1 loss; the maximum is over *wrong* classes, the lowest index on ties. The
binary hinge loss :math:`[1 - y f(x)]_+` is the same loss with two classes and halved kernel values: with
:math:`f = s_1 - s_0` the block norms agree. Thesis 1.3 and 4.2; Crammer and Singer (2002).

Norms. A block vector :math:`\bar w = [w^1, \dots, w^F]`, one block per kernel, has the group norm
:math:`\|\bar w\|_{2,p} = \| [\|w^1\|_2, \dots, \|w^F\|_2] \|_p`. The gradient of its conjugate only rescales
blocks, so all functions take the *F* block norms. With p near 1, q = p/(p-1) is in the thousands: powers are
computed from logarithms of ratios to the largest norm. Thesis 4.2, equations 4.3, 4.4, 4.8, theorem 4.6; JMLR
13 (2012), lemma 1.
"""

import math

import numpy as np

from cuelearn.compiled import njit
from cuelearn.expect import expect, expect_word

KERNEL_FACTOR = {"multiclass": 1.0, "hinge": 0.5}


def kernel_factor(loss, n_classes):
    """Factor on all kernel values that turns `loss` into the multiclass loss."""
    expect_word("loss", loss, KERNEL_FACTOR)
    if loss == "hinge" and n_classes != 2:
        raise ValueError(
            f"loss='hinge' needs exactly 2 classes, y has {n_classes}; use loss='multiclass' or "
            "OneVsRestClassifier"
        )
    return KERNEL_FACTOR[loss]


@njit(cache=True)
def competitor(scores, label):
    """Best wrong class of one sample (lowest index on ties) and the margin over it: a mistake if <= 0, a loss
    if < 1."""
    rival = -1
    for c in range(scores.shape[0]):
        if c != label and (rival < 0 or scores[c] > scores[rival]):
            rival = c
    return rival, scores[label] - scores[rival]


@njit(cache=True)
def margins(scores, labels):
    """Margins of score rows (n_samples, n_classes) over their best wrong class, float64."""
    out = np.empty(labels.shape[0])
    for i in range(labels.shape[0]):
        out[i] = competitor(scores[i], labels[i])[1]
    return out


def mean_loss(scores, labels, weights=1.0):
    """Weighted mean multiclass hinge loss of score rows (n_samples, n_classes)."""
    margin = margins(np.ascontiguousarray(scores), labels)
    return float((weights * np.maximum(0.0, 1.0 - margin)).mean())


def resolve_p(p, n_kernels):
    r"""The group-norm exponent in (1, 2] and its conjugate, floats p, q; or a ValueError.

    ``"auto"`` is :math:`q = 2 \ln F` (thesis corollary 4.1, equation 4.8), at least 2 (below, the regulariser
    is not strongly convex).
    """
    p = expect("p", p, above=1, high=2, words=("auto",))
    if p == "auto":
        q = max(2.0, 2.0 * math.log(max(1, n_kernels)))
        return q / (q - 1.0), q
    return p, p / (p - 1.0)


@njit(cache=True)
def group_norm(norms, exponent):
    r""":math:`\|v\|_r = (\sum_j v_j^r)^{1/r}` of block norms, stable for exponents r >= 1 in the
    thousands."""
    largest = 0.0
    for j in range(norms.shape[0]):
        largest = max(largest, norms[j])
    if largest == 0.0:
        return 0.0
    total = 0.0
    for j in range(norms.shape[0]):
        ratio = norms[j] / largest
        if ratio == 1.0:
            total += 1.0
        elif ratio > 0.0:
            total += math.exp(exponent * math.log(ratio))
    return largest * math.exp(math.log(total) / exponent)


@njit(cache=True)
def link_weights(norms, threshold, q, out):
    r"""Factors `out` that map dual blocks to primal ones (thesis theorem 4.6; threshold 0: equation 4.4).

    .. math:: w^j = \frac{v_j}{\|\theta^j\|_2} \Big(\frac{v_j}{\|v\|_q}\Big)^{q-2} \theta^j, \qquad
              v_j = [\|\theta^j\|_2 - \tau]_+ ,

    the gradient of the conjugate of :math:`\frac12 \|\bar w\|_{2,p}^2 + \tau \|\bar w\|_{2,1}`; exactly 0 if
    :math:`v_j` is. Returns :math:`\|v\|_q`.
    """
    n_kernels = norms.shape[0]
    largest = 0.0
    for j in range(n_kernels):
        largest = max(largest, norms[j] - threshold)
    if largest <= 0.0:
        for j in range(n_kernels):
            out[j] = 0.0
        return 0.0
    total = 0.0
    for j in range(n_kernels):
        excess = norms[j] - threshold
        if excess > 0.0:
            out[j] = math.log(excess / largest)
            total += math.exp(q * out[j])
    log_norm = math.log(total) / q
    for j in range(n_kernels):
        excess = norms[j] - threshold
        if excess > 0.0:
            out[j] = excess / norms[j] * math.exp((q - 2.0) * (out[j] - log_norm))
        else:
            out[j] = 0.0
    return largest * math.exp(log_norm)


#: Scores that differ by less are equal.
ROUNDING = 1e-9
#: Relative difference below which losses of solvers that stop at a tolerance are equal.
SOLVED = 1e-3


def first_best(scores, losses=None):
    """Index of the first of the highest scores, or, with `losses`, of the first of these with the least loss.

    Scores within `ROUNDING` of the highest are equal, as are losses within `SOLVED` of the least; NaN is
    never chosen.

    Examples
    --------
    >>> from cuelearn.core.formulas import first_best
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
