r"""Dual ascent from any dual point to a certified optimum, alternating with the group weights.

For fixed primal group weights, :math:`w^g = d_g \theta^g`, the problem is the Crammer-Singer SVM without bias
on the kernel :math:`\sum_j d_j K_j`, solved by compiled block-coordinate ascent; prior scores are a linear
part of the class scores. For a fixed dual point the regulariser

.. math:: h(m) = \frac\lambda2 \|m\|_p^2 + \alpha \|m\|_1, \qquad m_g = \|w^g\|_2 ,

is concave in the squares :math:`m_g^2` (p <= 2), so :math:`h(m) \le \frac12 \sum_g m_g^2/d_g + const` with
equality at the next weights :math:`d_g = m_g / (\lambda \|m\|_p^{2-p} m_g^{p-1} + \alpha)`, for :math:`\alpha
= 0` the closed form of p-norm MKL.

The alternation runs on a working set: the samples with a coefficient, and the worst inside the margin. Once
its gap is a share of the whole one, all samples are checked.
"""

import math
import time
from typing import NamedTuple

import numpy as np

from cuelearn.compiled import loop, njit
from cuelearn.core.formulas import group_norm, margins
from cuelearn.kernels.rows import (
    BLOCK_ROWS,
    combine_block,
    combined_kernel,
    full_dot,
    kernel_norms_sq,
    support_rows,
)
from cuelearn.kernels.tiles import gather_rows

# within this share of a sample's limit, a coefficient is at its bound
ROUNDING = 1e-14
# maximum sweeps, and updates per sample, between two face steps
FACE_SWEEPS = 30
FACE_UPDATES = 3
# face step: maximum iterations, residual as share of the gradient, maximum halvings
FACE_ITERATIONS = 20
FACE_SHARE = 0.1
FACE_HALVINGS = 12


class Machine(NamedTuple):
    kernel: np.ndarray  # (m, m)
    labels: np.ndarray
    limits: np.ndarray
    n: int  # divisor
    priors: np.ndarray  # (m, K)
    of_priors: np.ndarray  # their weights, (n_classes, K)


@njit(cache=True)
def best_response(gradient, upper, curvature, order, out):
    r"""Solve :math:`\max_b -\sum_c b_c g_c - \frac12 \sum_c \kappa_c b_c^2` over :math:`b_c \le u_c`,
    :math:`\sum_c b_c = 0`, into `out`; `order` is scratch.

    :math:`b_c = \min(u_c, (\beta - g_c)/\kappa_c)`, with beta from the sorted breakpoints :math:`g_c +
    \kappa_c u_c` (Crammer and Singer 2002, section 5). Curvatures are all positive or all 0.
    """
    n_classes = gradient.shape[0]
    if curvature[0] <= 0.0:
        top = 0
        label = 0
        for c in range(n_classes):
            out[c] = 0.0
            if gradient[c] > gradient[top]:
                top = c
            if upper[c] > 0.0:
                label = c
        if gradient[top] > gradient[label]:
            out[label] = upper[label]
            out[top] = -upper[label]
        return
    # insertion sort by breakpoint, largest first; a bound is active if beta exceeds the breakpoint
    bounded = 0.0
    for c in range(n_classes):
        bounded += upper[c]
        key = gradient[c] + curvature[c] * upper[c]
        k = c
        while k > 0 and gradient[order[k - 1]] + curvature[order[k - 1]] * upper[order[k - 1]] < key:
            order[k] = order[k - 1]
            k -= 1
        order[k] = c
    pull = 0.0
    give = 0.0
    beta = 0.0
    for k in range(n_classes):
        c = order[k]
        pull += gradient[c] / curvature[c]
        give += 1.0 / curvature[c]
        bounded -= upper[c]
        beta = (pull - bounded) / give
        if k + 1 == n_classes:
            break
        following = order[k + 1]
        if beta >= gradient[following] + curvature[following] * upper[following]:
            break
    for c in range(n_classes):
        out[c] = min(upper[c], (beta - gradient[c]) / curvature[c])


@njit(cache=True)
def balance(b, label, limit):
    """Make coefficients sum to 0: by the label's, at its limit by the largest other one."""
    top = -1
    total = 0.0
    for c in range(b.shape[0]):
        if c != label:
            total += b[c]
            if top < 0 or b[c] < b[top]:
                top = c
    if b[label] < limit:
        b[label] = min(limit, -total)
    else:
        b[top] -= total + limit


@njit(cache=True)
def class_values(i, machine, effective, scores, value):
    """Class scores of a sample, plus 1 for wrong classes."""
    priors = machine.priors[i]
    for c in range(value.shape[0]):
        value[c] = scores[c, i] + full_dot(effective[c], priors) + (0.0 if c == machine.labels[i] else 1.0)


@njit(cache=True)
def move(c, i, change, machine, scores, theta, effective):
    target = scores[c]
    row = machine.kernel[i]
    for k in range(row.shape[0]):
        target[k] += change * row[k]
    for z in range(theta.shape[1]):
        theta[c, z] += change * machine.priors[i, z]
        effective[c, z] = machine.of_priors[c, z] * theta[c, z]


@loop
def sweep_samples(machine, coef, scores, theta, effective, work, order, tolerance, max_sweeps, max_updates):
    """Sweeps of `ascend`; `effective`: weighted `theta`; `work`: zeros (4, n_classes)."""
    n_samples, n_classes = coef.shape
    kernel = machine.kernel
    labels = machine.labels
    limits = machine.limits
    n = machine.n
    gradient = work[0]
    curvature = work[1]
    new = work[2]
    upper = work[3]
    n_priors = theta.shape[1]
    threshold = tolerance
    worst = 0.0
    updates = 0
    for sweep in range(max_sweeps):
        worst = 0.0
        for i in range(n_samples):
            label = labels[i]
            class_values(i, machine, effective, scores, gradient)
            largest = -np.inf
            least = np.inf
            for c in range(n_classes):
                largest = max(largest, gradient[c])
                if (limits[i] if c == label else 0.0) - coef[i, c] > ROUNDING * limits[i]:
                    least = min(least, gradient[c])
            violation = largest - least
            worst = max(worst, violation)
            if violation <= threshold:
                continue
            updates += 1
            for c in range(n_classes):
                total = kernel[i, i] + 0.0
                for z in range(n_priors):
                    total += machine.of_priors[c, z] * machine.priors[i, z] ** 2
                curvature[c] = total / n
                gradient[c] -= coef[i, c] * curvature[c]
            upper[label] = limits[i]
            best_response(gradient, upper, curvature, order, new)
            upper[label] = 0.0
            balance(new, label, limits[i])
            for c in range(n_classes):
                change = new[c] - coef[i, c]
                if change != 0.0:
                    coef[i, c] = new[c]
                    move(c, i, change / n, machine, scores, theta, effective)
        if worst <= tolerance or updates >= max_updates:
            return sweep + 1, worst, updates
        threshold = max(tolerance, 0.1 * worst)  # postpone small violations
    return max_sweeps, worst, updates


@loop
def project(coef, labels, limits, work, order):
    """Nearest feasible coefficients, in place; scratch: zeros (3, n_classes), integers (n_classes,)."""
    gradient = work[0]
    ones = work[1]
    upper = work[2]
    for i in range(coef.shape[0]):
        for c in range(coef.shape[1]):
            gradient[c] = -coef[i, c]
            ones[c] = 1.0
        upper[labels[i]] = limits[i]
        best_response(gradient, upper, ones, order, coef[i])
        balance(coef[i], labels[i], limits[i])
        upper[labels[i]] = 0.0


def face_step(machine, coef, scores, theta):
    """Newton step on the face of the point (conjugate gradients), projected, halved until it improves."""
    n = machine.n
    every = np.arange(len(coef))
    upper = np.zeros_like(coef)
    upper[every, machine.labels] = machine.limits
    free = coef < upper - ROUNDING * machine.limits[:, None]
    chosen = np.flatnonzero(coef.any(axis=1) & (free.sum(axis=1) > 1))
    if chosen.size == 0:
        return
    free = free[chosen]
    labels = machine.labels[chosen]
    limits = machine.limits[chosen]
    n_free = free.sum(axis=1)
    priors = machine.priors[chosen]
    gradient = scores.T[chosen] + priors @ (machine.of_priors * theta).T + 1.0
    gradient[np.arange(chosen.size), labels] -= 1.0

    # directions hold the free coefficients alone, class by class
    places = np.nonzero(free.T)[::-1]
    sizes = free.sum(axis=0)
    ends = np.cumsum(sizes)[:-1]
    separate = np.sum(sizes**2) <= chosen.size**2
    members = chosen.astype(np.uint64)
    groups = [members]
    if separate:
        groups = np.split(members[places[0]], ends)
    blocks = [np.empty((rows.size, rows.size), dtype=np.float32) for rows in groups]
    for rows, block in zip(groups, blocks, strict=True):
        gather_rows(machine.kernel[None], rows, rows, block[None])

    def matrix(direction):
        out = np.zeros(free.shape)
        out[places] = direction
        return out

    def of_priors(change):
        return priors @ (machine.of_priors * (change.T @ priors)).T

    def curved(direction):
        """Curvature times a direction."""
        if separate:
            parts = np.split(direction.astype(np.float32), ends)
            products = [block @ part for block, part in zip(blocks, parts, strict=True)]
            out = np.concatenate(products, dtype=np.float64)
        else:
            out = (blocks[0] @ matrix(direction).astype(np.float32))[places].astype(np.float64)
        if priors.shape[1]:
            out += of_priors(matrix(direction))[places]
        return out / n

    def within(direction):
        """Its part whose rows sum to 0."""
        sums = np.bincount(places[0], direction, chosen.size)
        return direction - (sums / n_free)[places[0]]

    residual = within(-gradient[places])
    direction = residual
    step = np.zeros_like(residual)
    size = residual @ residual
    enough = FACE_SHARE**2 * size
    for _ in range(FACE_ITERATIONS):
        change = within(curved(direction))
        curvature = direction @ change
        if size <= enough or curvature <= 0.0:
            break
        step += size / curvature * direction
        residual = residual - size / curvature * change
        before = size
        size = residual @ residual
        direction = residual + size / before * direction
    step = matrix(step)

    work = np.zeros((3, coef.shape[1]))
    order = np.empty(coef.shape[1], dtype=np.int64)
    whole = np.zeros_like(coef)
    for _ in range(FACE_HALVINGS):
        moved = coef[chosen] + step
        project(moved, labels, limits, work, order)
        change = moved - coef[chosen]
        whole[chosen] = change
        of_scores = whole.T @ machine.kernel / n
        if np.sum(change * (gradient + 0.5 * (of_scores.T[chosen] + of_priors(change) / n))) < 0.0:
            coef[chosen] = moved
            scores += of_scores
            theta += change.T @ priors / n
            return
        step *= 0.5


def optimal_scaling(margin, limits, quadratic, linear):
    r"""The s of least :math:`s^2 quadratic + s\,linear + \frac1n \sum_i c_i [1 - s m_i]_+`, and this."""
    n = margin.size
    if quadratic + linear <= 0.0:
        return 1.0, float(limits @ np.maximum(0.0, 1.0 - margin)) / n
    positive = margin > 0.0
    knots = 1.0 / margin[positive]
    order = np.argsort(knots)
    knots = knots[order]
    slopes = (limits[positive] * margin[positive])[order] / n
    # left of a knot its sample has a loss
    pull = np.append(np.cumsum(slopes[::-1])[::-1], 0.0) + float(limits[~positive] @ margin[~positive]) / n
    ends = np.append(knots, np.inf)
    slope = np.append(2.0 * quadratic * knots, np.inf if quadratic > 0.0 else 0.0)
    first = int(np.argmax(pull - linear <= slope))
    start = 0.0
    if first != 0:
        start = float(knots[first - 1])
    stretch = min(max((pull[first] - linear) / max(2.0 * quadratic, 1e-300), start), float(ends[first]))
    if not 0.0 < stretch < np.inf:
        stretch = 1.0
    loss = float(limits @ np.maximum(0.0, 1.0 - stretch * margin)) / n
    return stretch, float(stretch**2 * quadratic + stretch * linear + loss)


def own_gap(machine, coef, scores, theta):
    """Dual gap at the best multiple of the coefficients."""
    n = machine.n
    values = np.ascontiguousarray(scores.T + machine.priors @ (machine.of_priors * theta).T)
    quadratic = 0.5 * float(np.sum(coef * values)) / n
    limits = machine.limits * (len(coef) / n)
    primal = optimal_scaling(margins(values, machine.labels), limits, quadratic, 0.0)[1]
    return primal + quadratic - float(coef[np.arange(len(coef)), machine.labels].sum()) / n


def ascend(machine, coef, scores, theta, tolerance, max_sweeps, max_updates, gap=0.0):
    r"""Dual ascent, all coefficients of a sample at once, with `face_step` in between.

    .. math:: \max_B -\frac1n \sum_{i,c} B_{ic} \Delta_{ic} - \frac{1}{2n^2} \sum_c B_c^\top
        (K + S D_c S^\top) B_c, \qquad
        B_{ic} \le c_i [c = y_i], \quad \sum_c B_{ic} = 0

    Changes `coef`, B (m, n_classes), `scores`, :math:`B^\top K / n`, and `theta`, :math:`B^\top S / n`. Stops
    when no violation exceeds `tolerance` or the own gap is at most `gap`; returns sweeps, whether so,
    updates.
    """
    sweeps = updates = 0
    work = np.zeros((4, coef.shape[1]))
    order = np.empty(coef.shape[1], dtype=np.int64)
    while True:
        share = min(max_updates - updates, FACE_UPDATES * len(coef))
        limits = tolerance, min(max_sweeps - sweeps, FACE_SWEEPS), share
        effective = machine.of_priors * theta
        done, violation, changed = sweep_samples(
            machine, coef, scores, theta, effective, work, order, *limits
        )
        sweeps = sweeps + done
        updates = updates + changed
        solved = violation <= tolerance or gap > 0.0 and own_gap(machine, coef, scores, theta) <= gap
        if solved or updates >= max_updates or sweeps >= max_sweeps:
            return sweeps, solved, updates
        face_step(machine, coef, scores, theta)


def plain_machine(kernel, labels, n_classes, limits=None):
    n = len(kernel)
    labels = np.ascontiguousarray(labels, dtype=np.int64)
    if limits is None:
        limits = np.ones(n)
    return Machine(kernel, labels, limits, n, np.zeros((n, 0)), np.zeros((n_classes, 0)))


# maximum rounds
ROUNDS = 2000
# maximum sweeps, and updates per sample, between two weight updates
SWEEPS = 1000
UPDATES = 50
FIRST_UPDATES = 5
# maximum rounds that weights wait for an unsolved SVM
PATIENCE = 1
# SVM tolerance as share of the remaining gap, working set's as share of the wanted gap
OWN_SHARE = 0.2
NEAR_SHARE = 0.5
# maximum distance of log weights from the largest
LONGEST_WAY = 80.0
# the same at the start
FIRST_WAY = 3.0
# step factors: while the gap falls, else, and of the longest step after a failure
GROW = 1.5
SHRINK = 0.25
LESS = 0.7
# longest step, over log weights within LIVE of the largest
LONGEST_STEP = 1.0
LIVE = 10.0
# rows per block of a look, which stay in cache
LOOK_ROWS = 32
# so many samples, or more than half, are all in the working set
WHOLE = 500
# a support of at most this share of the samples is the first working set
FEW = 0.3
# largest working set, over its support
GROWTH = 2.0
# gap of a working set over that of all samples, before these are checked
INNER_SHARE = 0.1
# share of its room that the support may take if samples wait outside
CROWDED = 0.95
# working set allowed for any memory: its combined kernel has 32 MB
LEAST_ROOM = 2000
# relative gap below which samples may leave the working set
SETTLED = 0.2
# groups below this share of the largest are zero by the (2,1) norm
NOTHING = 1e-10
# starting coefficients this far beyond the margin are dropped
SLACK = 0.5


class DualSolution(NamedTuple):
    """The best points; primal blocks are ``group_weights[g] * theta^g``."""

    dual_coef: np.ndarray  # (n_samples, n_classes)
    group_weights: np.ndarray  # (n_groups,)
    dual_point: np.ndarray  # (n_samples, n_classes): B, feasible
    norms_sq: np.ndarray  # (n_groups,), of theta
    objective: float
    gap: float
    n_rounds: int
    n_updates: int
    fits: bool  # whether the memory suffices for the working set


def kernel_scores(bank, coef, weights):
    """``sum_j weights[j] K_j @ coef`` in float64."""
    scores = np.zeros((bank.n_samples, coef.shape[1]))
    active = np.flatnonzero(weights)
    combined = np.empty((BLOCK_ROWS, bank.n_samples))
    for rows, *places in support_rows(bank, coef, LOOK_ROWS):
        combine_block(*places, weights, active, combined[: rows.size])
        scores += combined[: rows.size].T @ coef[rows]
    return scores


class Ascent:
    few = FEW
    inner_share = INNER_SHARE

    def __init__(self, problem, dual_point, norms_sq=None):
        n = problem.bank.n_samples
        dual_point = np.array(dual_point, dtype=np.float64)
        if norms_sq is None:
            norms_sq = problem.block_norms_sq(dual_point)
        bound, scale, B = problem.dual_bound(dual_point, norms_sq)
        self._begin(problem, bound)
        self.dual_point = np.zeros_like(dual_point)
        self.B = np.ascontiguousarray(scale * B)
        self.norms = scale * np.sqrt(norms_sq) / n
        if scale > 0.0 and B is not dual_point:
            self.norms = np.sqrt(problem.block_norms_sq(self.B)) / n
        self.usable = usable_groups(problem)
        self._start_weights()
        support = np.flatnonzero(self.B.any(axis=1))
        if 0 < support.size <= min(self.few * n, self.room):  # solve it before all samples are checked
            self.fits = True
            self.take(support)
        else:
            margin = self.measure()
            if n > WHOLE:
                self.B[margin > 1.0 + SLACK] = 0.0
            self.fits = self.take_from(margin)

    def _begin(self, problem, bound):
        self.problem = problem
        self.labels = problem.labels
        self.limits = problem.limits
        self.bound = bound
        self.dual_point = None
        self.n_updates = 0
        self.objective = np.inf
        self.value = None  # primal value at the present weights
        self.best = None
        self.relative = 1.0
        self.near_relative = 1.0
        self.stride = 1.0
        self.longest = 1.0 / (problem.p - 1.0)

    def _start_weights(self):
        problem = self.problem
        start = problem.primal_weights(self.norms)
        if start.any():
            with np.errstate(divide="ignore"):
                log_weights = np.maximum(np.log(start), math.log(start.max()) - FIRST_WAY)
        else:  # equal weights, from a guess of the norm
            guess = -math.log(problem.regularization) - (2.0 / problem.p - 1.0) * math.log(problem.n_groups)
            log_weights = np.full(problem.n_groups, guess)
        log_weights[~self.usable] = -np.inf
        self.log_weights = log_weights

    @property
    def room(self):
        bank = self.problem.bank
        if bank.resident:
            return bank.n_samples
        return max(LEAST_ROOM, int(math.sqrt(bank.memory / 16.0)))

    def take(self, samples):
        """Set the working set: the whole bank if most samples are in it."""
        bank = self.problem.bank
        n = bank.n_samples
        everything = bank.resident and (samples.size > n // 2 or n <= WHOLE)
        if everything:
            self.samples = np.arange(n)
            self.near = bank
            return
        copied = bank.n_kernels * samples.size**2 * np.dtype(bank.dtype).itemsize
        self.samples = samples
        self.near = bank.restrict(samples, resident=bank.resident or copied <= 0.5 * bank.memory)

    def take_from(self, margin):
        """Take samples with a coefficient or inside the margin; whether as many as fit are enough."""
        support = self.B.any(axis=1)
        chosen = np.flatnonzero(support | (margin < 1.0))
        n_support = np.count_nonzero(support)
        most = self.room
        if n_support:
            most = min(most, max(WHOLE, int(GROWTH * n_support)))
        enough = chosen.size <= self.room or n_support <= CROWDED * self.room
        if chosen.size > most:
            chosen = np.sort(chosen[np.lexsort((margin[chosen], ~support[chosen]))][:most])
        self.take(chosen)
        return enough

    def shrink(self, margin):
        """Drop samples without coefficient beyond the margin, if they are many."""
        kept = np.flatnonzero(self.B[self.samples].any(axis=1) | (margin < 1.0))
        if kept.size < 0.8 * self.samples.size and kept.size <= 0.5 * self.problem.bank.n_samples:
            if self.near.resident:
                self.near = self.near.restrict(kept)
                self.samples = self.samples[kept]
            else:
                self.take(self.samples[kept])

    def round(self, target):
        """Solve the SVM of the working set: relative gap, whether weights may move, margins."""
        problem = self.problem
        near = self.near
        W = self.samples
        n = problem.bank.n_samples
        weights = np.exp(self.log_weights)
        of_kernels, of_scores = problem.split(problem.factor * weights)
        priors = problem.scores[W]
        B = self.B[W]
        kernel = combined_kernel(near, of_kernels, 1.0, out=np.empty((near.n_samples, near.n_samples)))
        scores = B.T @ kernel / n
        theta = np.ascontiguousarray(B.T @ priors / n)
        limits = self.limits[W] * W.size / n

        def primal():
            values = scores.T + priors @ (of_scores * theta).T
            return self._primal(weights, values, self.labels[W], limits)

        if self.value is None:
            self.value = primal()[1]
        tolerance = OWN_SHARE * max(self.near_relative, target) * self.value
        solved, updates = self._solve(kernel, B, scores, theta, priors, of_scores, tolerance)
        self.n_updates += updates
        self.B[W] = B
        of_kernels = problem.factor * kernel_norms_sq(near, B)
        self.norms = np.sqrt(problem.join(of_kernels, (B.T @ priors) ** 2)) / n
        _, self.value, margin = primal()
        return (self.value - self._bound()) / self.value, solved, margin

    def _solve(self, kernel, B, scores, theta, priors, of_scores, tolerance):
        """Ascend, changing B, scores and theta; whether it is solved, and the updates."""
        W = self.samples
        n = self.problem.bank.n_samples
        machine = Machine(kernel, self.labels[W], self.limits[W], n, priors, np.array(of_scores, order="C"))
        most = W.size * (UPDATES if self.near_relative < SETTLED else FIRST_UPDATES)
        _, solved, updates = ascend(machine, B, scores, theta, tolerance, SWEEPS, most, tolerance)
        return solved, updates

    def _primal(self, weights, scores, labels, limits):
        """Best multiple of a primal point, its objective, and the margins."""
        norms = weights * self.norms
        linear = self.problem.alpha * float(norms.sum())
        margin = margins(np.ascontiguousarray(scores), labels)
        quadratic = self.problem.regularizer(norms) - linear
        return *optimal_scaling(margin, limits, quadratic, linear), margin

    def _bound(self):
        n = self.problem.bank.n_samples
        bound, scale, point = self.problem.dual_bound(self.B, self.norms**2 * n**2)
        if bound > self.bound:
            self.bound = bound
            self.dual_point = scale * point
        return bound

    def measure(self):
        """Certify over all samples; returns the margins, infinite without weight."""
        problem = self.problem
        weights = np.exp(self.log_weights)
        if problem.alpha > 0.0:
            primal = weights * self.norms
            weights[(self.norms <= problem.alpha) | (primal <= NOTHING * primal.max())] = 0.0
        scores = self._all_scores(weights)
        stretch, self.value, margin = self._primal(weights, scores, self.labels, self.limits)
        if self.value < self.objective:
            self.objective, self.best = self.value, (self._coefficients(), stretch * weights, self.norms**2)
        self.relative = self.near_relative = self.gap / max(self.objective, np.finfo(float).tiny)
        return np.where(self.limits > 0.0, margin, np.inf)

    def _all_scores(self, weights):
        problem = self.problem
        n = problem.bank.n_samples
        of_kernels, of_scores = problem.split(problem.factor * weights)
        scores = kernel_scores(problem.bank, self.B, of_kernels) / n
        if problem.scores.shape[1]:
            scores += problem.scores @ (of_scores * (self.B.T @ problem.scores / n)).T
        return scores

    def _coefficients(self):
        return self.B / self.problem.bank.n_samples

    @property
    def gap(self):
        return max(0.0, self.objective - self.bound)

    def reweigh(self, better):
        r"""Next group weights; no usable group reaches 0, which it could not leave. Near p = 1, while the gap
        falls, steps are longer than the closed form, on the surface :math:`\|d\|_{p/(2-p)} = 1/\lambda`."""
        problem = self.problem
        p = problem.p
        usable = self.usable
        with np.errstate(divide="ignore"):
            log_primal = np.where(self.norms > 0.0, self.log_weights + np.log(self.norms), -np.inf)
        length = group_norm(np.exp(log_primal), p)
        if length == 0.0 or (p == 2.0 and problem.alpha == 0.0):
            return
        slope = math.log(problem.regularization) + (2.0 - p) * math.log(length)
        if problem.alpha > 0.0:
            target = log_primal - np.logaddexp(slope + (p - 1.0) * log_primal, math.log(problem.alpha))
        else:
            target = (2.0 - p) * log_primal - slope
            if not better:
                self.longest = max(1.0, LESS * self.stride)
            self.stride *= GROW if better else SHRINK
            change = np.where(usable, np.maximum(target, -1e3), 0.0) - np.where(usable, self.log_weights, 0.0)
            longest = np.abs(change[self.log_weights > self.log_weights.max() - LIVE]).max()
            self.stride = max(1.0, min(self.stride, self.longest, LONGEST_STEP / max(longest, 1e-300)))
            target = np.where(usable, self.log_weights + self.stride * change, -np.inf)
            power = p / (2.0 - p)
            size = group_norm(np.exp(target - target.max()), power)
            target -= target.max() + math.log(size * problem.regularization)
        self.log_weights = np.where(usable, np.maximum(target, target.max() - LONGEST_WAY), -np.inf)


def finish_dual(problem, dual_point, *, tol, norms_sq=None, max_rounds=ROUNDS, time_limit=None, record=None):
    """Solve an MKL or transfer problem to a relative gap `tol`, from a dual point B (n_samples, n_classes).

    `record(round, objective, gap)` is called after each pass over all samples; `time_limit` is in seconds.
    """
    began = time.perf_counter()
    ascent = problem.ascent(dual_point, norms_sq)
    target = NEAR_SHARE * tol
    rounds = 0
    last = np.inf
    waited = 0
    while (ascent.best is None or ascent.relative > tol) and ascent.fits:
        rounds += 1
        goal = max(target, ascent.inner_share * ascent.relative)
        relative, solved, margin = ascent.round(goal)
        late = time_limit is not None and time.perf_counter() - began > time_limit
        over = rounds >= max_rounds or late or not ascent.norms.any()
        if relative <= goal or over:
            margin = ascent.measure()
            if record is not None:
                record(rounds, ascent.objective, ascent.gap)
            if ascent.relative <= tol or over:
                break
            outside = np.ones(margin.size, dtype=bool)
            outside[ascent.samples] = False
            if goal == target and not np.any(outside & (margin < 1.0)):
                target *= 0.5
            ascent.fits = ascent.take_from(margin)
        else:
            ascent.near_relative = relative
            if relative < SETTLED:
                ascent.shrink(margin)
        waited += 1
        if solved or relative < last or waited > PATIENCE:
            ascent.reweigh(relative < last)
            last = relative
            waited = 0
    coef, weights, norms_sq = ascent.best
    reached = ascent.objective, ascent.gap, rounds, ascent.n_updates, ascent.fits
    return DualSolution(coef, weights, ascent.dual_point, norms_sq, *reached)


def usable_groups(problem):
    columns = np.tile(problem.scores.any(axis=0), (problem.n_classes, 1))
    return problem.join(problem.bank.diagonal.max(axis=1), columns.astype(np.float64)) > 0.0
