r"""MKL with any convex loss: the problem, its dual, visits and dual ascent (JMLR 13, section 6; thesis 4.6).

With a loss :math:`\ell` of M outputs, limits :math:`c_i` and :math:`\theta^j = \frac1n \sum_i B_i
\phi^j(x_i)`, of which `cuelearn.mkl.optimum.problem` is the case of the multiclass hinge,

.. math:: \min_{\bar w} \frac\lambda2 \|\bar w\|_{2,p}^2 + \alpha \|\bar w\|_{2,1} + \frac1n \sum_i c_i
    \ell(\bar w; x_i, y_i) \ge \max_B -\frac1n \sum_i c_i \ell^*(-B_i / c_i; y_i) - \frac{1}{2\lambda} \Big\|
    \big[\|\theta^j\| - \alpha\big]_+ \Big\|_q^2 .

Visits. The algorithms' bounds assume bounded subgradients, which the squared losses do not have. So a visit
takes the subgradient at the scores after its step (an implicit update: Kulis and Bartlett, ICML 2010), with
the curvature :math:`(q - 1) \eta \|\phi(x_i)\|_{2,q}^2` that bounds the link function's from above. Where the
loss is linear this is the papers' step.

Ascent. For fixed group weights a sweep maximises over one row of B after the other. After `DEPTH` sweeps
follows a Newton step for one output, and for more the best affine combination of the last points (Anderson
acceleration: Bertrand and Massias, AISTATS 2021).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from cuelearn.core.compiled import inlined, loop
from cuelearn.core.losses import competitor
from cuelearn.kernels.rows import combine_rows, full_dot
from cuelearn.mkl.optimum.dual import UPDATES, Ascent
from cuelearn.mkl.optimum.losses import clip, compiled_for, dual, step, value

__all__ = ["LossAscent", "add_response", "ascend_loss", "output_scores", "respond"]

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
    """Scores of a sample into `run.work.scores`; whether the label's is not the largest of several."""
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
    """The loss's negative subgradient into `response`, and the norm of the step; `smoothness` is the step
    size times the link's."""
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
    """Fixed-weight problem: kernel (m, m), targets and limits (m,), divisor n."""

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
    """Sum of the weighted losses of score rows (m, M)."""
    total = 0.0
    for i in range(scores.shape[0]):
        total += limits[i] * value(loss, scores[i], targets[i])
    return total


@loop
def sum_duals(loss, coef, targets, limits):
    """Sum of the dual values of the rows (m, M)."""
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
    """For one output: the rows that one update each would give, and minus their derivative by the gradient,
    from central differences; scratch `ends` (3, 1)."""
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
    Returns whether it was reached, and the number of updates. The gap of a sweep, in which each row is seen
    before its own update, may be far below that of its end point."""
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
    """Move to the affine combination of the points with the shortest combined step, if it is better."""
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
        problem = self.problem
        machine = LossMachine(kernel, self.labels[W], self.limits[W], problem.bank.n_samples)
        return ascend_loss(problem.loss, machine, B, scores, tolerance, UPDATES)

    def _primal(self, weights, scores, labels, limits):
        loss = self.problem.weighted_loss(np.ascontiguousarray(scores), labels, limits)
        return 1.0, self.problem.regularizer(weights * self.norms) + loss, np.zeros(labels.size)
