r"""A sum of hinge losses in a Euclidean ball, solved to a certified gap by an interior-point method.

What Multi-KT needs to choose the weights of its priors; nothing here knows of kernels or priors.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from cuelearn.core.linear_svm import SHORT, longest_step

__all__ = ["BallSolution", "hinge_in_ball"]

#: Steps; 37 were the most seen on 4,400 random problems of all shapes and scales.
MAX_ITER = 100
#: So many steps without progress are the end of the accuracy of the numbers.
PATIENCE = 4
#  The search for the shortest of the near-optimal points ends at this share of the tolerance: 3 more steps
# than the tolerance asks for.
FINE = 1e-6
#: Slopes above this would overflow.
LARGEST = 1e100


class BallSolution(NamedTuple):
    r"""Solution of `hinge_in_ball`: :math:`\beta`, the feasible :math:`\alpha` whose dual value is `dual`,
    the objective at beta, that lower bound on the least one, and the steps."""

    beta: np.ndarray
    dual_coef: np.ndarray
    objective: float
    dual: float
    n_iter: int

    @property
    def gap(self):
        """Certified distance from the optimum."""
        return max(0.0, self.objective - self.dual)


def longest_in_cone(x, direction):
    r"""Largest step in [0, 1] that keeps x, inside the cone :math:`\|x_1\| \le x_0`, in it."""
    square = length_in_cone(x) ** 2
    slope = x[0] * direction[0] - float(x[1:] @ direction[1:])
    bend = direction[0] ** 2 - float(direction[1:] @ direction[1:])
    # the smallest positive root of square + 2 slope t + bend t^2
    inner = slope**2 - bend * square
    if slope >= 0.0:
        return 1.0 if bend >= 0.0 else min(1.0, (slope + np.sqrt(inner)) / -bend)
    return 1.0 if inner < 0.0 else min(1.0, square / (np.sqrt(inner) - slope))


def length_in_cone(x):
    r""":math:`(x_0^2 - \|x_1\|^2)^{1/2}`."""
    edge = float(np.linalg.norm(x[1:]))
    return np.sqrt((x[0] - edge) * (x[0] + edge))


def jordan(x, y):
    """The product that belongs to the cone."""
    return np.append(x @ y, x[0] * y[1:] + y[0] * x[1:])


class ConeScaling:
    r"""The symmetric W with :math:`W z = W^{-1} s`, for two points inside the cone (Nesterov and Todd):
    :math:`W^2 = size^2 (2\, point\, point^\top - J)` with J = diag(1, -1, ..., -1); `both` is W z."""

    def __init__(self, s, z):
        length_s, length_z = length_in_cone(s), length_in_cone(z)
        self.size = np.sqrt(length_s / length_z)
        s, z = s / length_s, z / length_z
        self.point = np.append(s[0] + z[0], s[1:] - z[1:]) / np.sqrt(2.0 * (1.0 + s @ z))
        self._root = self.point.copy()
        self._root[0] += 1.0
        self._root /= np.sqrt(2.0 * self._root[0])
        self.both = self.forth(z * length_z)

    def forth(self, x):
        """W x."""
        out = 2.0 * (self._root @ x) * self._root
        out[0] -= x[0]
        out[1:] += x[1:]
        return self.size * out

    def back(self, x):
        """The inverse of W, times x."""
        out = 2.0 * (self._root[0] * x[0] - self._root[1:] @ x[1:]) * self._root
        out[0] -= x[0]
        out[1:] = x[1:] - out[1:]
        return out / self.size

    def divide(self, x):
        """The y with ``jordan(both, y) = x``."""
        first, rest = self.both[0], self.both[1:]
        head = (first * x[0] - rest @ x[1:]) / length_in_cone(self.both) ** 2
        return np.append(head, (x[1:] - head * rest) / first)


class Point(NamedTuple):
    """Where the method stands (or a direction): beta, alpha, excess and lack of the margins, multiplier of
    the ball."""

    beta: np.ndarray
    a: np.ndarray
    v: np.ndarray
    xi: np.ndarray
    z: np.ndarray

    def after(self, step, move):
        """The point reached by a step."""
        return Point(*(x + step * dx for x, dx in zip(self, move, strict=True)))


class Newton:
    r"""The optimality conditions linearised at a point.

    .. math::

        v_i - \xi_i = g_i \cdot \beta - c_i , \qquad \sum_i a_i g_i + z_1 = \delta \beta , \qquad
        a_i v_i = (\omega_i - a_i) \xi_i = \tau , \qquad s \circ z = \tau e , \quad s = (R, \beta) ,

    with `tau` the present mean of the products.
    """

    def __init__(self, c, G, omega, radius, delta, point):
        self.G, self.omega, self.radius, self.point = G, omega, radius, point
        beta, a, v, xi, z = point
        self.room = omega - a
        self.s = np.append(radius, beta)
        self.cone = ConeScaling(self.s, z)
        self.square = jordan(self.cone.both, self.cone.both)
        self.tau = self.mean_product(point)
        self.lack = c - G @ beta - xi + v
        self.slope = a @ G + z[1:] - delta * beta
        self.D = 1.0 / (xi / self.room + v / a)
        w, size_sq = self.cone.point, self.cone.size**2
        matrix = (G.T * self.D) @ G + (2.0 / size_sq) * np.outer(w[1:], w[1:])
        matrix[np.diag_indices_from(matrix)] += delta + 1.0 / size_sq
        self.factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

    def mean_product(self, point):
        """Of a point with the same s_0; 0 at the optimum."""
        beta, a, v, xi, z = point
        products = a @ v + (self.omega - a) @ xi + self.radius * z[0] + beta @ z[1:]
        return float(products) / (2 * a.size + 1)

    def move(self, tau, ahead=None):
        """The direction to products `tau`, corrected for the products of the changes along the direction
        `ahead`."""
        _, a, v, xi, _ = self.point
        to_v, to_xi, to_z = tau - a * v, tau - self.room * xi, -self.square
        to_z[0] += tau
        if ahead is not None:
            to_v -= ahead.a * ahead.v
            to_xi += ahead.a * ahead.xi
            to_z -= jordan(self.cone.back(np.append(0.0, ahead.beta)), self.cone.forth(ahead.z))
        target = self.D * (self.lack - to_xi / self.room + to_v / a)
        q = self.cone.back(self.cone.divide(to_z))
        step = cho_solve(self.factor, target @ self.G + self.slope + q[1:], check_finite=False)
        da = target - self.D * (self.G @ step)
        dz = q - self.cone.back(self.cone.back(np.append(0.0, step)))
        return Point(step, da, (to_v - v * da) / a, (to_xi + xi * da) / self.room, dz)

    def reach(self, move):
        """Largest step in [0, 1] that stays inside."""
        _, a, v, xi, z = self.point
        pairs = (a, move.a), (self.room, -move.a), (v, move.v), (xi, move.xi)
        linear = min(longest_step(*pair) for pair in pairs)
        return min(linear, longest_in_cone(self.s, np.append(0.0, move.beta)), longest_in_cone(z, move.z))

    def next(self):
        """The point after one step of predictor and corrector; None where no step is possible."""
        ahead = self.move(0.0)
        left = self.mean_product(self.point.after(self.reach(ahead), ahead)) / self.tau
        move = self.move(self.tau * left**3, ahead)
        step = SHORT * self.reach(move)
        if step < 0.1:  # the corrector went astray: back towards the middle
            other = self.move(0.5 * self.tau)
            if SHORT * self.reach(other) > step:
                move, step = other, SHORT * self.reach(other)
        return self.point.after(step, move) if step > 1e-12 and np.isfinite(move.beta).all() else None


def hinge_in_ball(offsets, slopes, weights, radius=1.0, tol=1e-6):
    r"""Smallest weighted mean of hinge losses in a ball.

    .. math::

        \min_{\|\beta\|_2 \le R} f(\beta) = \frac1n \sum_i \omega_i\, [c_i - g_i \cdot \beta]_+ , \qquad
        \max_{0 \le \alpha_i \le \omega_i} \frac1n \Big( \sum_i \alpha_i c_i
            - R\, \Big\| \sum_i \alpha_i g_i \Big\|_2 \Big) ,

    where the weights are scaled to mean 1. Where many points are equally good the answer tends to the
    shortest of them (exactly: to the minimiser of :math:`f(\beta) + \frac{tol}{2} \|\beta\|^2 / R^2`), so
    what no sample asks for stays 0 and equal columns share.

    Parameters
    ----------
    offsets, weights : ndarray of float64, shape (n,)
        c, and :math:`\omega > 0`.
    slopes : ndarray of float64, shape (n, K)
        Rows :math:`g_i`; K may be 0.
    radius : float > 0
        R.
    tol : float > 0
        Largest gap between the two values, as share of the objective where that is above 1.

    Returns
    -------
    BallSolution
        The gap may be larger than `tol` where double precision ends; it is certified nevertheless.

    Raises
    ------
    OverflowError
        If slopes are above 1e100, or not numbers.

    Notes
    -----
    Mehrotra's predictor and corrector on the optimality conditions of `Newton`, with the ball as a
    second-order cone scaled as Nesterov and Todd do; as the quadratic constraint :math:`\|\beta\|^2 \le R^2`
    it makes the same steps jam in small balls. Columns are first reduced to the row space of the slopes, in
    which the shortest solution lies. A step costs n r^2 operations, r the rank; some 12 steps are usual.

    References
    ----------
    Mehrotra, SIAM J. Optimization 2 (1992); the scaling: Nesterov, Todd, Mathematics of Operations Research
    22 (1997).

    Examples
    --------
    Both columns lower the loss alike: they share what is needed.

    >>> import numpy as np
    >>> found = hinge_in_ball(np.ones(4), np.full((4, 2), 2.0), np.ones(4))
    >>> found.beta.round(3), found.gap <= 1e-6
    (array([0.25, 0.25]), True)
    """
    n, K = slopes.shape
    omega = weights / weights.mean()
    if not np.abs(slopes).max(initial=0.0) <= LARGEST:
        raise OverflowError("slopes must be numbers of at most 1e100")

    def solution(beta, alpha, n_iter):
        value = float(np.mean(omega * np.maximum(0.0, offsets - slopes @ beta)))
        dual = float(alpha @ offsets - radius * np.linalg.norm(alpha @ slopes)) / n
        return BallSolution(beta, alpha, value, dual, n_iter)

    still = solution(np.zeros(K), omega * (offsets > 0.0), 0)
    left, values, right = np.linalg.svd(slopes, full_matrices=False)
    size = float(np.mean(np.abs(offsets)))
    if still.objective == 0.0 or radius * values.max(initial=0.0) <= np.finfo(np.float64).eps * size:
        return still  # nothing to gain, or nothing that can be done
    usable = values > max(n, K) * np.finfo(np.float64).eps * values[0]
    # In units in which offsets and rows are of size 1.
    length = values[0] / np.sqrt(n)
    c, G, R = offsets / size, left[:, usable] * (values[usable] / length), radius * length / size
    delta = n * tol / size / R**2

    z = np.zeros(G.shape[1] + 1)
    z[0] = max(0.5 * float(np.linalg.norm(omega @ G)), 1.0 / R)
    point = Point(z[1:].copy(), 0.5 * omega, np.ones(n), np.ones(n), z)
    best, best_dual = (np.inf, point.beta), (-np.inf, point.a)
    least, waited = np.inf, 0
    with np.errstate(all="ignore"):
        for n_iter in range(MAX_ITER + 1):
            # Both values with the extra curvature: what the steps bring together.
            value = float(omega @ np.maximum(0.0, c - G @ point.beta))
            pull = float(np.linalg.norm(point.a @ G))
            primal = value + 0.5 * delta * float(point.beta @ point.beta)
            best = min(best, (primal, point.beta), key=lambda pair: pair[0])
            dual = float(point.a @ c) - (
                pull**2 / (2.0 * delta) if pull <= delta * R else R * pull - 0.5 * delta * R**2
            )
            best_dual = max(best_dual, (dual, point.a), key=lambda pair: pair[0])
            gap = best[0] - best_dual[0]
            waited = 0 if gap < 0.9 * least else waited + 1
            least = min(least, gap)
            if gap <= FINE * tol * max(n / size, value) or waited == PATIENCE or n_iter == MAX_ITER:
                break
            try:
                following = Newton(c, G, omega, R, delta, point).next()
            except LinAlgError:
                break
            if following is None:
                break
            point = following
    beta = (best[1] @ right[usable]) * (size / length)
    norm = float(np.linalg.norm(beta))
    beta = beta * (radius / norm if norm > radius else 1.0)
    return solution(beta, np.clip(best_dual[1], 0.0, omega), n_iter)
