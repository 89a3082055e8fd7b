r"""Compiled passes of the chapter: kernel values one at a time, where an algorithm asks for them, and the updates that follow.

Nothing here ever forms a kernel matrix. A value :math:`k_j(x_i, x_s)` is computed when the predictor of kernel j is evaluated at sample
i, for the samples s in its own support, and at no other time; every pass returns how many it computed.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

# kinds of kernels
LINEAR, POLY, SQEUCLIDEAN, EUCLIDEAN, CITYBLOCK, CHI2, GIVEN = range(7)
# rules of `selection_pass`
OKS_RULE, REGRET_RULE, SOM_RULE = range(3)
# losses of `REGRET_RULE`
HINGE, LOGISTIC, SQUARE = range(3)


class Kernels(NamedTuple):
    """The kernels as arrays, each of shape (n_kernels,): kind, divisor, offset, degree, and the columns of `Samples.data`."""

    kind: np.ndarray
    gamma: np.ndarray
    offset: np.ndarray
    degree: np.ndarray
    start: np.ndarray
    stop: np.ndarray


class Samples(NamedTuple):
    """What the kernels see of samples.

    `data` has shape (n, total width), each kernel's columns side by side; `scale` (n, n_kernels) holds 1/sqrt(k(x, x)) for kernels that
    are normalised, else 1; `stack` (n_kernels, n, n_train) holds given kernel values. What is not used is empty.
    """

    data: np.ndarray
    scale: np.ndarray
    stack: np.ndarray


class Predictors(NamedTuple):
    """One predictor per kernel: `support` and `coef` of shape (n_kernels, capacity), of which the first `count[j]` count.

    `slot` (n_kernels, n) says where a sample stands in a support, or -1: a sample that is updated twice keeps one place.
    """

    support: np.ndarray
    coef: np.ndarray
    count: np.ndarray
    slot: np.ndarray


_SUMS = {"reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=_SUMS, error_model="numpy")
def _value(kind, gamma, offset, degree, x, z):
    total = 0.0
    if kind == LINEAR or kind == POLY:
        for c in range(x.shape[0]):
            total += x[c] * z[c]
        if kind == LINEAR:
            return total
        base, power = total / gamma + offset, 1.0
        for _ in range(degree):
            power *= base
        return power
    if kind == CITYBLOCK:
        for c in range(x.shape[0]):
            total += abs(x[c] - z[c])
    elif kind == CHI2:
        for c in range(x.shape[0]):
            difference = x[c] - z[c]
            total += difference * difference / max(x[c] + z[c], 2.3e-308)  # 0/0 counts as 0
    else:
        for c in range(x.shape[0]):
            difference = x[c] - z[c]
            total += difference * difference
        if kind == EUCLIDEAN:
            total = math.sqrt(total)
    return math.exp(-total / gamma)


@njit(cache=True, nogil=True)
def self_values(kernels, data, out):
    """k(x, x) of every sample for every kernel, into `out` (n, n_kernels)."""
    for j in range(kernels.kind.shape[0]):
        for i in range(data.shape[0]):
            x = data[i, kernels.start[j] : kernels.stop[j]]
            out[i, j] = _value(kernels.kind[j], kernels.gamma[j], kernels.offset[j], kernels.degree[j], x, x)


@njit(cache=True, nogil=True)
def _output(kernels, j, here, i, held, support, coef, count):
    """The predictor of kernel j at sample i of `here`; its support lies in `held`."""
    total = 0.0
    if kernels.kind[j] == GIVEN:
        row = here.stack[j, i]
        for s in range(count):
            total += coef[s] * row[support[s]]
        return total
    start, stop = kernels.start[j], kernels.stop[j]
    x = here.data[i, start:stop]
    for s in range(count):
        z = held.data[support[s], start:stop]
        value = _value(kernels.kind[j], kernels.gamma[j], kernels.offset[j], kernels.degree[j], x, z)
        total += coef[s] * value * held.scale[support[s], j]
    return total * here.scale[i, j]


@njit(cache=True, nogil=True)
def outputs(kernels, members, here, held, predictors, out):
    """Predictions of some kernels at all samples of `here`, into `out` (n, len(members))."""
    for i in range(out.shape[0]):
        for k in range(members.shape[0]):
            j = members[k]
            out[i, k] = _output(
                kernels, j, here, i, held, predictors.support[j], predictors.coef[j], predictors.count[j]
            )


@njit(cache=True, nogil=True)
def _add(predictors, j, i, amount):
    """Add to the coefficient of sample i in predictor j."""
    place = predictors.slot[j, i]
    if place < 0:
        place = predictors.count[j]
        predictors.slot[j, i] = place
        predictors.support[j, place] = i
        predictors.coef[j, place] = 0.0
        predictors.count[j] = place + 1
    predictors.coef[j, place] += amount


@njit(cache=True, nogil=True)
def loss_and_slope(loss, output, y):
    """A convex loss of a real prediction, and its derivative (a subgradient for the hinge)."""
    if loss == SQUARE:
        return 0.5 * (output - y) ** 2, output - y
    if loss == HINGE:
        return (1.0 - y * output, -y) if y * output < 1.0 else (0.0, 0.0)
    margin = y * output
    if margin > 0.0:
        small = math.exp(-margin)
        return math.log1p(small), -y * small / (1.0 + small)
    small = math.exp(margin)
    return math.log1p(small) - margin, -y / (1.0 + small)


@njit(cache=True, nogil=True)
def set_probabilities(log_weights, delta, q, p):
    """q = w / sum w and p = (1 - delta) q + delta / m from log-weights, which are shifted to a largest value of 0."""
    m = log_weights.shape[0]
    largest = log_weights.max()
    total = 0.0
    for j in range(m):
        log_weights[j] -= largest
        q[j] = math.exp(log_weights[j])
        total += q[j]
    for j in range(m):
        q[j] /= total
        p[j] = (1.0 - delta) * q[j] + delta / m


@njit(cache=True, nogil=True)
def draw(p, uniform):
    """Index drawn from the probabilities p by a uniform number in [0, 1)."""
    passed = 0.0
    last = 0
    for j in range(p.shape[0]):
        if p[j] > 0.0:
            last = j
            passed += p[j]
            if uniform < passed:
                return j
    return last  # rounding left the sum a little below 1


@njit(cache=True, nogil=True)
def selection_pass(
    kernels,
    samples,
    order,
    targets,
    uniforms,
    rule,
    delta,
    eta,
    step,
    loss,
    log_weights,
    q,
    p,
    predictors,
    drawn,
    mistakes,
    losses,
):
    """Visits of OKS (Algorithms 1 and 2) or of SOM: one kernel is drawn, evaluated and perhaps updated at each.

    Parameters
    ----------
    order : ndarray of int
        Samples in the order of the visits.
    targets : ndarray
        -1 or 1 (any real number for the square loss), by sample.
    uniforms : ndarray
        One random number in [0, 1) per visit.
    rule, loss : int
    eta : float
        Step of the weights; for SOM -log(beta).
    step : float
        Step of the predictors.
    log_weights, q, p, predictors
        The state, changed in place.
    drawn, mistakes, losses : ndarray
        Receive what happened at each visit.

    Returns
    -------
    n_updates, n_evaluations : int
    """
    n_updates, n_evaluations = 0, 0
    for t in range(order.shape[0]):
        i = order[t]
        y = targets[i]
        j = draw(p, uniforms[t])
        output = _output(
            kernels, j, samples, i, samples, predictors.support[j], predictors.coef[j], predictors.count[j]
        )
        n_evaluations += predictors.count[j]
        wrong = y * output <= 0.0
        drawn[t], mistakes[t] = j, wrong
        if rule == REGRET_RULE:
            value, slope = loss_and_slope(loss, output, y)
            losses[t] = value
            price, amount = eta * value / p[j], -step * slope / p[j]
        else:
            losses[t] = 1.0 if wrong else 0.0
            if not wrong:
                continue
            price, amount = eta, step * y
            if rule == OKS_RULE:
                price, amount = price / p[j], amount / p[j]
        if amount != 0.0:
            _add(predictors, j, i, amount)
            n_updates += 1
        if price != 0.0:
            log_weights[j] -= price
            set_probabilities(log_weights, delta, q, p)
    return n_updates, n_evaluations


@njit(cache=True, nogil=True)
def committee_pass(
    kernels, members, samples, order, targets, discount, log_weights, q, p, predictors, mistakes, own_mistakes
):
    """Visits of OM-1: every kernel's Perceptron is evaluated and learns from its own mistakes; the weighted vote predicts.

    With `discount` 0 the weights stay: Perceptrons side by side.

    Parameters
    ----------
    members : ndarray of int
        The kernels that take part.
    discount : float
        -log(beta).
    mistakes : ndarray of bool, shape (n_visits,)
        Receives the mistakes of the vote.
    own_mistakes : ndarray of int, shape (n_kernels,)
        Counts those of each kernel.

    Returns
    -------
    n_updates, n_evaluations : int
    """
    n_updates, n_evaluations = 0, 0
    for t in range(order.shape[0]):
        i = order[t]
        y, vote, changed = targets[i], 0.0, False
        for k in range(members.shape[0]):
            j = members[k]
            output = _output(
                kernels,
                j,
                samples,
                i,
                samples,
                predictors.support[j],
                predictors.coef[j],
                predictors.count[j],
            )
            n_evaluations += predictors.count[j]
            if output > 0.0:
                vote += q[j]
            elif output < 0.0:
                vote -= q[j]
            if y * output <= 0.0:
                _add(predictors, j, i, y)
                own_mistakes[j] += 1
                n_updates += 1
                log_weights[j] -= discount
                changed = True
        mistakes[t] = y * vote <= 0.0
        if changed and discount > 0.0:
            set_probabilities(log_weights, 0.0, q, p)
    return n_updates, n_evaluations
