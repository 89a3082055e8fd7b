"""Compiled predictors, one per kernel; kernel values are computed, and counted, only when needed."""

import math
from typing import NamedTuple

import numpy as np

from cuelearn.codecache import njit

# kinds of kernels
LINEAR, POLY, SQEUCLIDEAN, EUCLIDEAN, CITYBLOCK, CHI2, GIVEN = range(7)


class Kernels(NamedTuple):
    """Arrays of shape (n_kernels,): kind, parameters, and the columns of `Samples.data`."""

    kind: np.ndarray
    divisor: np.ndarray
    offset: np.ndarray
    degree: np.ndarray
    start: np.ndarray
    stop: np.ndarray


class Samples(NamedTuple):
    """Input of the kernels; unused parts are empty."""

    data: np.ndarray  # (n, total width): each kernel's columns side by side
    scale: np.ndarray  # (n, n_kernels): 1/sqrt(k(x, x)) for normalised kernels, else 1
    stack: np.ndarray  # (n_kernels, n, n_train): given kernel values


class Predictors(NamedTuple):
    """`support` and `coef` (n_kernels, capacity), of which `count[j]` entries are used."""

    support: np.ndarray
    coef: np.ndarray
    count: np.ndarray


class Weights(NamedTuple):
    """Log-weights of the kernels, q = w / sum w, and the sampling probabilities p."""

    log_weights: np.ndarray
    q: np.ndarray
    p: np.ndarray


class Visits(NamedTuple):
    """Samples in visit order, and records. Samples of weight 0 change nothing."""

    order: np.ndarray
    targets: np.ndarray  # by sample
    sample_weights: np.ndarray  # by sample
    uniforms: np.ndarray  # in [0, 1), by visit
    drawn: np.ndarray  # written: the kernel drawn
    mistakes: np.ndarray  # written: whether it erred
    losses: np.ndarray  # written: its loss


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def kernel_value(kernels, j, x, z):
    """k_j(x, z), not normalised."""
    kind = kernels.kind[j]
    divisor = kernels.divisor[j]
    total = 0.0
    if kind == LINEAR or kind == POLY:
        for c in range(x.shape[0]):
            total += x[c] * z[c]
        if kind == LINEAR:
            return total
        base = total / divisor + kernels.offset[j]
        power = 1.0
        for _ in range(kernels.degree[j]):
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
    return math.exp(-total / divisor)


@njit(cache=True, nogil=True)
def self_values(kernels, data, out):
    """Write k(x, x) of all samples and kernels into `out`."""
    for j in range(kernels.kind.shape[0]):
        for i in range(data.shape[0]):
            x = data[i, kernels.start[j] : kernels.stop[j]]
            out[i, j] = kernel_value(kernels, j, x, x)


@njit(cache=True, nogil=True)
def output(kernels, predictors, j, here, i, held):
    """The predictor of kernel j, with support in `held`, at sample i of `here`."""
    support = predictors.support[j]
    coef = predictors.coef[j]
    total = 0.0
    if kernels.kind[j] == GIVEN:
        row = here.stack[j, i]
        for s in range(predictors.count[j]):
            total += coef[s] * row[support[s]]
        return total
    start = kernels.start[j]
    stop = kernels.stop[j]
    x = here.data[i, start:stop]
    for s in range(predictors.count[j]):
        z = held.data[support[s], start:stop]
        total += coef[s] * kernel_value(kernels, j, x, z) * held.scale[support[s], j]
    return total * here.scale[i, j]


@njit(cache=True, nogil=True)
def outputs(kernels, predictors, members, here, held, out):
    """Write predictions of some kernels on `here` into `out` (n, len(members))."""
    for i in range(out.shape[0]):
        for k in range(members.shape[0]):
            out[i, k] = output(kernels, predictors, members[k], here, i, held)


@njit(cache=True, nogil=True)
def add(predictors, j, i, amount):
    """Add to the coefficient of sample i in predictor j."""
    support = predictors.support[j]
    count = predictors.count[j]
    place = 0
    while place < count and support[place] != i:
        place += 1
    if place == count:
        support[place] = i
        predictors.coef[j, place] = 0.0
        predictors.count[j] = count + 1
    predictors.coef[j, place] += amount


@njit(cache=True, nogil=True)
def set_probabilities(weights, delta):
    """q = w / sum w, p = (1 - delta) q + delta / m; log-weights get a maximum of 0."""
    log_weights = weights.log_weights
    q = weights.q
    p = weights.p
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
