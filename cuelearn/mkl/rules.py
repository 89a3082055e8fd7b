r"""Update rules of the stochastic MKL algorithms, one small compiled function each.

All of them keep one dual vector :math:`\bar\theta` whose blocks share one coefficient matrix, and differ in three things only: the
step size of a visit with loss, what happens to :math:`\bar\theta` on a visit without one, and the link to the primal vector. The
rules below are the first of these; `engine.visit_samples` is the loop around them.
"""

import math

from numba import njit

OM2, FIXED, BATCH, DUAL_AVERAGING = 0, 1, 2, 3


@njit(cache=True)
def om2_step_size(margin, gradient_norm_sq):
    r"""Step size of OM-2, thesis equation 4.5, with :math:`\bar w_t \cdot \bar z_t = -` margin.

    A mistake (margin <= 0) gives 1. With kernels of unit diagonal the value lies in (0, 1]; without, it can turn negative and is
    clipped at 0: such a visit does not update.

    Parameters
    ----------
    margin : float, below 1
    gradient_norm_sq : float
        :math:`\|\bar z_t\|_{2,q}^2`; 0 for a sample that every kernel maps to 0, which cannot update.
    """
    if gradient_norm_sq <= 0.0:
        return 0.0
    return max(0.0, min(1.0, 1.0 - 2.0 * margin / gradient_norm_sq))


@njit(cache=True)
def proximal_strength(strength, t, regularization, q, dual_norm, gradient_norm, radius):
    r"""Next :math:`s_t` of OBSCURE's batch stage, thesis Algorithm 5 lines 6 and 7.

    Parameters
    ----------
    strength : float
        :math:`s_{t-1}`.
    t : float
        Step, counted from 1 at the start of the batch stage.
    regularization : float
        :math:`\lambda`.
    q : float
    dual_norm, gradient_norm : float
        :math:`\|\bar\theta_t\|_{2,q}` and :math:`\|\bar z_t\|_{2,q}`.
    radius : float
        Upper bound R of the optimum's norm; infinity gives Pegasos-MKL (:math:`s_t = 0`).
    """
    if math.isinf(radius):
        return 0.0
    d = regularization * t + strength
    bound = (regularization / q * dual_norm + gradient_norm) / radius
    return strength + 0.5 * (math.sqrt(d * d + q * bound * bound) - d)
