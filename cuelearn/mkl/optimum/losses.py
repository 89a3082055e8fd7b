r"""Convex losses as named tuples with four methods, which compiled loops call by the tuple's class.

For a sample with target y, M outputs s (the class scores, or one number) and limit c (its weight), with the
conjugate :math:`\ell^*` of the loss, and a row b of the dual point:

=================== ================================================================================
``value``           :math:`\ell(s; y) \ge 0`, with infimum 0 over s
``dual``            :math:`-c\, \ell^*(-b/c; y)` for a feasible row b
``clip``            makes a row b feasible, in place; a feasible row stays
``step``            :math:`\arg\max_b -c\,\ell^*(-b/c) - b^\top g - \frac\kappa2 \|b\|^2`, into `out`
=================== ================================================================================

With :math:`\kappa = 0` a step is c times a negative subgradient at g, which may be all that the papers'
algorithms ask of a loss. A method is plain Python that numba compiles; it also runs uncompiled. Conjugates:
Shalev-Shwartz and Zhang, JMLR 14 (2013), section 5, for M = 1.
"""

import functools
import math
from typing import NamedTuple

from numba.extending import overload

from cuelearn.codecache import njit
from cuelearn.core.losses import competitor
from cuelearn.expect import expect

__all__ = [
    "EpsilonInsensitive",
    "Huber",
    "Logistic",
    "Squared",
    "SquaredHinge",
    "compiled_for",
    "resolve_loss",
]


class Squared(NamedTuple):
    r"""Squared loss :math:`\frac12 (s - y)^2`: with one kernel, kernel ridge regression.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mkl import Squared
    >>> float(Squared().value(np.array([3.0]), 1.0))
    2.0
    """

    target = "number"

    def value(self, scores, target):
        return 0.5 * (scores[0] - target) ** 2

    def dual(self, row, target, limit):
        return row[0] * target - 0.5 * row[0] ** 2 / limit

    def clip(self, row, target, limit):
        pass

    def step(self, gradient, curvature, target, limit, out):
        out[0] = limit * (target - gradient[0]) / (1.0 + limit * curvature)


class Huber(NamedTuple):
    r"""Huber's loss: squared up to a residual of `delta` > 0, then linear, so that outliers weigh less.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mkl import Huber
    >>> float(Huber(delta=1.0).value(np.array([3.0]), 1.0))
    1.5
    """

    delta: float = 1.0

    target = "number"

    def value(self, scores, target):
        distance = abs(scores[0] - target)
        inside = min(distance, self.delta)
        return inside * (distance - 0.5 * inside)

    def dual(self, row, target, limit):
        return row[0] * target - 0.5 * row[0] ** 2 / limit

    def clip(self, row, target, limit):
        row[0] = min(max(row[0], -limit * self.delta), limit * self.delta)

    def step(self, gradient, curvature, target, limit, out):
        free = limit * (target - gradient[0]) / (1.0 + limit * curvature)
        out[0] = min(max(free, -limit * self.delta), limit * self.delta)


class EpsilonInsensitive(NamedTuple):
    r"""Loss of support vector regression, :math:`[|s - y| - \epsilon]_+`, with `epsilon` >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mkl import EpsilonInsensitive
    >>> float(EpsilonInsensitive(epsilon=0.5).value(np.array([3.0]), 1.0))
    1.5
    """

    epsilon: float = 0.1

    target = "number"

    def value(self, scores, target):
        return max(0.0, abs(scores[0] - target) - self.epsilon)

    def dual(self, row, target, limit):
        return row[0] * target - self.epsilon * abs(row[0])

    def clip(self, row, target, limit):
        row[0] = min(max(row[0], -limit), limit)

    def step(self, gradient, curvature, target, limit, out):
        residual = target - gradient[0]
        excess = max(0.0, abs(residual) - self.epsilon)
        size = limit if excess >= curvature * limit else excess / curvature
        out[0] = math.copysign(size, residual) if excess > 0.0 else 0.0


@njit(cache=True)
def log_response(x, tau):
    """The z with z + tau exp(z) = x, by Newton steps, which fall to it from z = x or from log(x / tau)."""
    z = x
    if tau > 0.0 and x > 1.0:
        z = min(x, math.log(x / tau))
    for _ in range(50):
        slope = tau * math.exp(z)
        change = (z + slope - x) / (1.0 + slope)
        z -= change
        if abs(change) <= 1e-15 * max(1.0, abs(z)):
            break
    return z


class Logistic(NamedTuple):
    r"""Multinomial logistic loss :math:`\log \sum_c e^{s_c} - s_y`: kernel logistic regression.

    The scores are logarithms of probabilities, up to a constant.

    Notes
    -----
    A row of the dual point is :math:`c\,(e_y - \pi)` with probabilities :math:`\pi`, and its value their
    entropy. A step solves :math:`\log\pi_k + \tau\pi_k = g_k + \tau [k = y] - \rho` with :math:`\tau =
    \kappa c`; :math:`\rho`, for which they sum to 1, is the root of a convex decreasing function, which
    Newton's steps approach from one side.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mkl import Logistic
    >>> round(float(Logistic().value(np.zeros(3), 0)), 3)
    1.099
    """

    target = "class"

    def value(self, scores, target):
        largest = -math.inf
        for c in range(scores.shape[0]):
            largest = max(largest, scores[c])
        total = 0.0
        for c in range(scores.shape[0]):
            total += math.exp(scores[c] - largest)
        return largest - scores[target] + math.log(total)

    def dual(self, row, target, limit):
        rest = 0.0
        entropy = 0.0
        for c in range(row.shape[0]):
            if c != target and row[c] < 0.0:
                share = -row[c] / limit
                rest += share
                entropy -= share * math.log(share)
        if rest < 1.0:
            entropy -= (1.0 - rest) * math.log1p(-rest)
        return limit * entropy

    def clip(self, row, target, limit):
        total = 0.0
        for c in range(row.shape[0]):
            if c != target:
                row[c] = min(row[c], 0.0)
                total -= row[c]
        factor = 0.0
        if total > 0.0:
            factor = min(1.0, limit / total)
        for c in range(row.shape[0]):
            row[c] *= factor
        row[target] = min(limit, factor * total)

    def step(self, gradient, curvature, target, limit, out):
        tau = curvature * limit
        n_classes = gradient.shape[0]
        level = -math.inf
        for c in range(n_classes):
            level = max(level, gradient[c] + (tau if c == target else 0.0))
        level -= tau
        for _ in range(100):
            total = -1.0
            slope = 0.0
            for c in range(n_classes):
                out[c] = math.exp(log_response(gradient[c] + (tau if c == target else 0.0) - level, tau))
                total += out[c]
                slope += out[c] / (1.0 + tau * out[c])
            if total <= 1e-14 * n_classes:
                break
            level += total / slope
        rest = 0.0
        for c in range(n_classes):
            if c != target:
                rest += out[c]
                out[c] = -limit * out[c]
        out[target] = limit * min(1.0, rest)


class SquaredHinge(NamedTuple):
    r"""Squared multiclass hinge loss :math:`[1 - s_y + \max_{r \ne y} s_r]_+^2`.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mkl import SquaredHinge
    >>> float(SquaredHinge().value(np.array([0.0, 0.5, 0.0]), 0))
    2.25
    """

    target = "class"

    def value(self, scores, target):
        return max(0.0, 1.0 - competitor(scores, target)[1]) ** 2

    def dual(self, row, target, limit):
        return row[target] - 0.25 * row[target] ** 2 / limit

    def clip(self, row, target, limit):
        total = 0.0
        for c in range(row.shape[0]):
            if c != target:
                row[c] = min(row[c], 0.0)
                total -= row[c]
        row[target] = total

    def step(self, gradient, curvature, target, limit, out):
        # a_r = [h_r - level]_+ / curvature, h_r = 1 + g_r - g_y; Newton from the left, exact after M rounds
        rival, margin = competitor(gradient, target)
        least = curvature / (curvature + 0.5 / limit)
        level = 0.0
        for _ in range(gradient.shape[0]):
            total = 0.0
            count = least
            for c in range(gradient.shape[0]):
                excess = 1.0 + gradient[c] - gradient[target]
                if c != target and excess > level:
                    total += excess
                    count += 1.0
            if total <= level * count:
                break
            level = total / count
        own = 0.0
        for c in range(gradient.shape[0]):
            excess = 1.0 + gradient[c] - gradient[target] - level
            out[c] = -excess / curvature if c != target and curvature > 0.0 and excess > 0.0 else 0.0
            own -= out[c]
        if curvature == 0.0:
            own = 2.0 * limit * max(0.0, 1.0 - margin)
            out[rival] = -own
        out[target] = own


#: Losses by name, with default parameters.
LOSSES = {
    "squared": Squared(),
    "huber": Huber(),
    "epsilon_insensitive": EpsilonInsensitive(),
    "logistic": Logistic(),
    "squared_hinge": SquaredHinge(),
}


def resolve_loss(loss, target):
    """A loss, or the one of a name, with float parameters, for a `target` "number" or "class"; or a
    ValueError."""
    known = sorted(name for name, one in LOSSES.items() if one.target == target)
    if isinstance(loss, str):
        loss = LOSSES.get(loss, loss)
    if getattr(loss, "target", None) != target or not isinstance(loss, tuple):
        raise ValueError(f"loss must be one of {known} or a loss whose target is a {target}, got {loss!r}")
    numbers = [expect(name, number, low=0) for name, number in loss._asdict().items()]
    return type(loss)(*numbers)


# What compiled loops call. The implementations are the methods of the tuple's class.
def value(self, scores, target):
    return self.value(scores, target)


def dual(self, row, target, limit):
    return self.dual(row, target, limit)


def clip(self, row, target, limit):
    return self.clip(row, target, limit)


def step(self, gradient, curvature, target, limit, out):
    return self.step(gradient, curvature, target, limit, out)


# not strict: a loss may name its parameters as it likes
@overload(value, strict=False)
def _(self, scores, target):
    return self.instance_class.value


@overload(dual, strict=False)
def _(self, row, target, limit):
    return self.instance_class.dual


@overload(clip, strict=False)
def _(self, row, target, limit):
    return self.instance_class.clip


@overload(step, strict=False)
def _(self, gradient, curvature, target, limit, out):
    return self.instance_class.step


@functools.cache
def _uncached(loop, cls):
    return njit(_nrt=False)(loop.py_func)


def compiled_for(loss, loop):
    """A compiled loop for a loss; for one of another package without the cache on disk, which would not
    see changes of its methods."""
    if type(loss).__module__.startswith("cuelearn."):
        return loop
    return _uncached(loop, type(loss))
