r"""MKL with any convex loss (JMLR 13, section 6; thesis 4.6): losses, and dual ascent for them.

A loss is a named tuple with four methods, which compiled loops call by the tuple's class. For a sample with
target y, M outputs s (the class scores, or one number) and limit c (its weight), with the conjugate
:math:`\ell^*` of the loss, and a row b of the dual point:

=================== ================================================================================
``value``           :math:`\ell(s; y) \ge 0`, with infimum 0 over s
``dual``            :math:`-c\, \ell^*(-b/c; y)` for a feasible row b
``clip``            makes a row b feasible, in place; a feasible row stays
``step``            :math:`\arg\max_b -c\,\ell^*(-b/c) - b^\top g - \frac\kappa2 \|b\|^2`, into `out`
=================== ================================================================================

With :math:`\kappa = 0` a step is c times a negative subgradient at g. Conjugates: Shalev-Shwartz and Zhang,
JMLR 14 (2013), section 5, for M = 1.

Problem. With :math:`\theta^j = \frac1n \sum_i B_i \phi^j(x_i)`,

.. math:: \min_{\bar w} \frac\lambda2 \|\bar w\|_{2,p}^2 + \alpha \|\bar w\|_{2,1} + \frac1n \sum_i c_i
    \ell(\bar w; x_i, y_i) \ge \max_B -\frac1n \sum_i c_i \ell^*(-B_i / c_i; y_i) - \frac{1}{2\lambda} \Big\|
    \big[\|\theta^j\| - \alpha\big]_+ \Big\|_q^2 .

Visits. The algorithms' bounds assume bounded subgradients, which the squared losses do not have. So a visit
takes the subgradient at the scores after its step (an implicit update: Kulis and Bartlett, ICML 2010), with
the curvature :math:`(q - 1) \eta \|\phi(x_i)\|_{2,q}^2` that bounds the link function's. Where the loss is
linear this is the papers' step.

Ascent. For fixed group weights a sweep maximises over one row of B after the other. After `DEPTH` sweeps
follows a Newton step for one output, and for more the best affine combination of the last points (Anderson
acceleration: Bertrand and Massias, AISTATS 2021).
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple, Protocol

import numpy as np
from numba.extending import overload
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from cuelearn.compiled import inlined, loop, njit
from cuelearn.core.formulas import competitor
from cuelearn.expect import expect
from cuelearn.kernels.rows import combine_rows, full_dot
from cuelearn.mkl.optimum.dual import UPDATES, Ascent


class Loss(Protocol):
    """A loss of class scores; its methods are compiled."""

    def value(self, scores: np.ndarray, target: float) -> float: ...
    def dual(self, row: np.ndarray, target: float, limit: float) -> float: ...
    def clip(self, row: np.ndarray, target: float, limit: float) -> None: ...
    def step(
        self, gradient: np.ndarray, curvature: float, target: float, limit: float, out: np.ndarray
    ) -> None: ...


class Squared(NamedTuple):
    r"""Squared loss :math:`\frac12 (s - y)^2`: with one kernel, kernel ridge regression.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mkl import Squared
    >>> float(Squared().value(np.array([3.0]), 1.0))
    2.0
    """

    @property
    def target(self) -> str:
        return "number"

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

    @property
    def target(self) -> str:
        return "number"

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

    @property
    def target(self) -> str:
        return "number"

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

    @property
    def target(self) -> str:
        return "class"

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

    @property
    def target(self) -> str:
        return "class"

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
    """A loss, or the one of a name, with float parameters; `target` is "number" or "class"."""
    known = sorted(name for name, one in LOSSES.items() if one.target == target)
    if isinstance(loss, str):
        loss = LOSSES.get(loss, loss)
    if getattr(loss, "target", None) != target or not isinstance(loss, tuple):
        raise ValueError(f"loss must be one of {known} or a loss whose target is a {target}, got {loss!r}")
    numbers = [expect(name, number, low=0) for name, number in loss._asdict().items()]
    return type(loss)(*numbers)


def callable_method(name):
    """A function for compiled loops that calls this method of a tuple."""

    def call(self, *arguments):
        return getattr(self, name)(*arguments)

    # not strict: a loss may name its parameters as it likes
    @overload(call, strict=False)
    def _(self, *arguments):
        return getattr(self.instance_class, name)

    return call


value = callable_method("value")
dual = callable_method("dual")
clip = callable_method("clip")
step = callable_method("step")


@functools.cache
def _uncached(loop, cls):
    return njit(_nrt=False)(loop.py_func)


def compiled_for(loss, loop):
    """A compiled loop for a loss; for one of another package without the cache on disk, which would not see
    changes."""
    if type(loss).__module__.startswith("cuelearn."):
        return loop
    return _uncached(loop, type(loss))


# sweeps between two extrapolations
DEPTH = 5
# Newton steps: relative width of differences, their number, maximum halvings, change of a solution
DIFFERENCE = 1e-6
NEWTON_STEPS = 12
HALVINGS = 12
SETTLED_CHANGE = 1e-9
# damping at first, as share of the mean curvature, and its factors after success and failure
DAMPING = 1e-6
LESS_DAMPING = 0.1
MORE_DAMPING = 30.0
# samples with this share of the tolerated gap are skipped
SMALL_SHARE = 0.1


@inlined
def output_scores(i, prefactor, run):
    """Scores into `run.work.scores`; whether the label's is not the largest of several."""
    dual_state = run.dual
    scores = run.work.scores
    n_active = dual_state.now.n_active
    scores[:] = 0.0
    if n_active > 0:
        for a in range(n_active):
            run.work.cast_weights[dual_state.active[a]] = dual_state.weights[dual_state.active[a]]
        rows = run.rows
        base = rows.place[i] * rows.row_stride
        combined = run.work.combined
        weights = run.work.cast_weights
        combine_rows(rows.flat, base, rows.kernel_stride, weights, dual_state.active, n_active, combined)
        for c in range(scores.shape[0]):
            scores[c] = prefactor * full_dot(combined, dual_state.coef[c])
    return scores.shape[0] > 1 and competitor(scores, int(run.samples.labels[i]))[1] <= 0.0


@inlined
def respond(i, smoothness, loss, response, run):
    """Negative subgradient into `response`, and the norm of the step; `smoothness`: step size times the
    link's."""
    cost = run.samples.cost[i]
    length_sq = 0.5 * run.samples.gradient_norm_sq[i]
    step(loss, run.work.scores, smoothness * cost * length_sq, run.samples.labels[i], 1.0, response)
    size = 0.0
    for c in range(response.shape[0]):
        size += response[c] ** 2
    return cost * math.sqrt(size * length_sq)


@inlined
def add_response(i, amount, response, run):
    r""":math:`\theta^j \leftarrow \theta^j + amount\, response\, \phi^j(x_i)`, with norms."""
    rows = run.rows
    coef = run.dual.coef
    direction = run.work.difference
    direction[:] = 0.0
    size = 0.0
    for c in range(response.shape[0]):
        size += response[c] ** 2
        if response[c] != 0.0:
            for k in range(direction.shape[0]):
                direction[k] += response[c] * coef[c, k]
    base = rows.place[i] * rows.row_stride
    for j in range(run.work.products.shape[0]):
        first = base + j * rows.kernel_stride
        product = full_dot(rows.flat[first : first + direction.shape[0]], direction)
        run.dual.norms_sq[j] += amount * (2.0 * product + amount * size * run.samples.diagonal[j, i])
    for c in range(response.shape[0]):
        coef[c, i] += amount * response[c]
    run.dual.now.n_updates += 1


class LossMachine(NamedTuple):
    kernel: np.ndarray
    targets: np.ndarray
    limits: np.ndarray
    n: int


@loop
def sweep_rows(loss, machine, coef, scores, work, threshold):
    """One sweep over the rows of `coef` (m, M) with a gap above `threshold`; `scores` (M, m) follow. Returns
    the gap before the updates, and their number; scratch `work` (2, M)."""
    kernel = machine.kernel
    n = machine.n
    gradient = work[0]
    new = work[1]
    total = 0.0
    updates = 0
    for i in range(coef.shape[0]):
        limit = machine.limits[i]
        target = machine.targets[i]
        if limit == 0.0:
            continue
        product = 0.0
        for c in range(new.shape[0]):
            gradient[c] = scores[c, i]
            product += scores[c, i] * coef[i, c]
        gap = limit * value(loss, gradient, target) - dual(loss, coef[i], target, limit) + product
        total += gap
        if gap <= threshold:
            continue
        updates += 1
        curvature = kernel[i, i] / n
        for c in range(new.shape[0]):
            gradient[c] -= curvature * coef[i, c]
        step(loss, gradient, curvature, target, limit, new)
        for c in range(new.shape[0]):
            change = new[c] - coef[i, c]
            if change != 0.0:
                coef[i, c] = new[c]
                for k in range(coef.shape[0]):
                    scores[c, k] += change / n * kernel[i, k]
    return total / n, updates


@loop
def sum_values(loss, scores, targets, limits):
    total = 0.0
    for i in range(scores.shape[0]):
        total += limits[i] * value(loss, scores[i], targets[i])
    return total


@loop
def sum_duals(loss, coef, targets, limits):
    total = 0.0
    for i in range(coef.shape[0]):
        if limits[i] > 0.0:
            total += dual(loss, coef[i], targets[i], limits[i])
    return total


@loop
def clip_rows(loss, coef, targets, limits):
    for i in range(coef.shape[0]):
        if limits[i] > 0.0:
            clip(loss, coef[i], targets[i], limits[i])
        else:
            coef[i] = 0.0


@loop
def responses(loss, machine, coef, scores, damping, ends, out, slope):
    """For one output: the rows that one update each would give, and minus their derivative by the gradient;
    scratch `ends` (3, 1)."""
    for i in range(coef.shape[0]):
        limit = machine.limits[i]
        out[i] = slope[i] = 0.0
        if limit == 0.0:
            continue
        curvature = machine.kernel[i, i] / machine.n + damping
        gradient = scores[0, i] - curvature * coef[i, 0]
        width = DIFFERENCE * max(1.0, abs(gradient))
        for k in range(3):
            point = ends[k]
            point[0] = gradient + (k - 1) * width
            step(loss, point, curvature, machine.targets[i], limit, point)
        out[i] = ends[1, 0]
        slope[i] = max(0.0, ends[0, 0] - ends[2, 0]) / (2.0 * width) if curvature > 0.0 else 0.0


def ascend_loss(loss, machine, coef, scores, tolerance, max_sweeps):
    """Dual ascent to a gap of about `tolerance`; changes `coef` (m, M) and `scores`, ``coef.T @ kernel / n``.
    Returns whether it was reached, and the number of updates. The gap of a sweep may be far below that of its
    end point."""
    sweep = compiled_for(loss, sweep_rows)
    work = np.zeros((2, coef.shape[1]))
    threshold = SMALL_SHARE * tolerance
    updates = 0
    path = []
    damping = DAMPING * float(np.mean(np.diag(machine.kernel))) / machine.n
    for _ in range(max_sweeps):
        gap, changed = sweep(loss, machine, coef, scores, work, threshold)
        updates += changed
        if gap <= tolerance and own_gap(loss, machine, coef, scores) <= tolerance:
            return True, updates
        path.append((coef.copy(), scores.copy()))
        if len(path) > DEPTH:
            if coef.shape[1] == 1:
                damping = newton_steps(loss, machine, coef, scores, damping)
            else:
                extrapolate(loss, machine, coef, scores, path)
            path = []
    return False, updates


def dual_value(loss, machine, coef, scores):
    duals = compiled_for(loss, sum_duals)(loss, coef, machine.targets, machine.limits)
    return duals - 0.5 * float(np.sum(coef.T * scores))


def own_gap(loss, machine, coef, scores):
    values = np.ascontiguousarray(scores.T)
    losses = compiled_for(loss, sum_values)(loss, values, machine.targets, machine.limits)
    primal = losses + 0.5 * float(np.sum(coef * values))
    return (primal - dual_value(loss, machine, coef, scores)) / machine.n


def extrapolate(loss, machine, coef, scores, path):
    """Move to the affine combination of points with the shortest combined step, if it is better."""
    before = dual_value(loss, machine, coef, scores)
    pairs = zip(path, path[1:], strict=False)
    steps = np.array([(after[0] - earlier[0]).ravel() for earlier, after in pairs])
    gram = steps @ steps.T
    gram += 1e-12 * np.trace(gram) * np.eye(DEPTH)
    shares = np.linalg.lstsq(gram, np.ones(DEPTH), rcond=None)[0]
    shares /= shares.sum()
    for k, array in enumerate((coef, scores)):
        array[:] = sum(share * point[k] for share, point in zip(shares, path[1:], strict=True))
    # an update of every row makes the point feasible
    work = np.zeros((2, coef.shape[1]))
    compiled_for(loss, sweep_rows)(loss, machine, coef, scores, work, -np.inf)
    if not dual_value(loss, machine, coef, scores) > before:
        coef[:], scores[:] = path[-1]


def newton_steps(loss, machine, coef, scores, damping):
    r"""Semismooth Newton steps for one output on ``row = response(row)``, for the dual less
    :math:`\frac\rho2 \|b - b_0\|^2`, clipped, and halved until they improve; returns the next damping rho.
    """
    kernel = machine.kernel
    n = machine.n
    response = np.empty(len(coef))
    slope = np.empty(len(coef))
    centre = coef[:, 0].copy()
    best = dual_value(loss, machine, coef, scores)
    for _ in range(NEWTON_STEPS):
        pull = scores + damping * (coef[:, 0] - centre)
        ends = np.zeros((3, 1))
        compiled_for(loss, responses)(loss, machine, coef, pull, damping, ends, response, slope)
        change = response - coef[:, 0]
        if np.abs(change).max() <= SETTLED_CHANGE * np.abs(coef).max():
            return LESS_DAMPING * damping
        free = np.flatnonzero(slope > 0.0)
        if free.size:
            system = kernel[np.ix_(free, free)] / n
            system[np.diag_indices(free.size)] = np.maximum(1.0 / slope[free], np.diag(system) + damping)
            bound = change.copy()
            bound[free] = 0.0
            right = change[free] / slope[free] - (kernel @ bound)[free] / n
            try:
                change[free] = cho_solve(cho_factor(system, overwrite_a=True, check_finite=False), right)
            except LinAlgError:  # kernels definite up to rounding
                break
        for _ in range(HALVINGS + 1):
            moved = coef + change[:, None]
            compiled_for(loss, clip_rows)(loss, moved, machine.targets, machine.limits)
            images = scores + (moved - coef).T @ kernel / n
            found = dual_value(loss, machine, moved, images)
            found -= 0.5 * damping * float(np.sum((moved[:, 0] - centre) ** 2))
            if found > best:
                break
            change *= 0.5
        if not found > best:
            break
        best = found
        coef[:] = moved
        scores[:] = images
    return MORE_DAMPING * damping


class LossAscent(Ascent):
    """`Ascent` for a `LossProblem`. All samples with weight stay in the working set."""

    few = 0.0

    def take_from(self, margin):
        """Take all samples with weight; whether they fit."""
        chosen = np.flatnonzero(self.limits > 0.0)
        self.take(chosen)
        return chosen.size <= self.room

    def _solve(self, kernel, B, scores, theta, priors, of_scores, tolerance):
        W = self.samples
        machine = LossMachine(kernel, self.labels[W], self.limits[W], self.problem.bank.n_samples)
        return ascend_loss(self.problem.loss, machine, B, scores, tolerance, UPDATES)

    def _primal(self, weights, scores, labels, limits):
        loss = self.problem.weighted_loss(np.ascontiguousarray(scores), labels, limits)
        return 1.0, self.problem.regularizer(weights * self.norms) + loss, np.zeros(labels.size)
