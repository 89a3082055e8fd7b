r"""Group norms of block vectors and their link functions.

A block vector :math:`\bar w = [w^1, \dots, w^F]`, one block per kernel, has the group norm
:math:`\|\bar w\|_{2,p} = \| [\|w^1\|_2, \dots, \|w^F\|_2] \|_p`. The gradient of its conjugate only rescales
blocks, so all functions take the *F* block norms. With p near 1, q = p/(p-1) is in the thousands: powers are
computed from logarithms of ratios to the largest norm. Thesis 4.2, equations 4.3, 4.4, 4.8, theorem 4.6; JMLR
13 (2012), lemma 1.
"""

import math

from cuelearn.codecache import njit
from cuelearn.expect import expect

__all__ = ["conjugate_exponent", "resolve_p", "group_norm", "link_weights"]


def conjugate_exponent(p):
    """Conjugate exponent ``q = p / (p - 1) >= 2`` of `p` in (1, 2]."""
    return p / (p - 1.0)


def resolve_p(p, n_kernels):
    r"""The group-norm exponent in (1, 2] and its conjugate, floats p, q; or a ValueError.

    ``"auto"`` is :math:`q = 2 \ln F` (thesis corollary 4.1, equation 4.8), at least 2 (below, the regulariser
    is not strongly convex).
    """
    p = expect("p", p, above=1, high=2, words=("auto",))
    if p == "auto":
        q = 2.0
        if n_kernels > 0:
            q = max(2.0, 2.0 * math.log(n_kernels))
        return q / (q - 1.0), q
    return p, conjugate_exponent(p)


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
