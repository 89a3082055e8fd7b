"""Slow, plain NumPy twins of the algorithms of the OKS chapter, and streams for them.

Each twin is its pseudo-code line by line in float64, on whole kernel matrices: predictors are dictionaries
from samples to coefficients, probabilities are formed anew at every visit. Nothing here comes from the
package. Labels are -1 and 1 (any real number for the square loss).
"""

import math
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
from plain_mkl import box_svm, features_of


def make_data(n, d=6, seed=0, *, noise=0.1, zeros=0.0, spread=0.25):
    """Non-negative features in two clusters with label noise and zero vectors; both labels present."""
    rng = np.random.default_rng(seed)
    centres = rng.random((2, d))
    y = rng.integers(0, 2, n)
    X = np.abs(centres[y] + spread * rng.normal(size=(n, d)))
    y = np.where(rng.random(n) < noise, 1 - y, y)
    y[:2] = 0, 1
    X[2:][rng.random(n - 2) < zeros] = 0.0
    return X, y


def make_stack(n, n_kernels, seed=0, *, noise=0.2):
    """Kernel matrices of unit diagonal, the later ones ever less related to the labels; labels 0 and 1."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    sides = np.where(rng.random(n) < noise, 1 - y, y)
    K = np.empty((n_kernels, n, n))
    for j in range(n_kernels):
        Z = rng.normal(size=(n, 4)) * (0.3 + j) + np.outer(2 * sides - 1, np.ones(4)) / (1.0 + j)
        K[j] = np.exp(-((Z[:, None] - Z[None]) ** 2).sum(axis=2) / (4.0 + 8.0 * j))
    return K, y


def first_above(p, uniform):
    """First kernel whose cumulative probability exceeds the uniform number."""
    passed = 0.0
    for j, share in enumerate(p):
        passed += share
        if passed > uniform:
            return j
    return max(j for j, share in enumerate(p) if share > 0.0)


def normalized(log_weights):
    raised = np.exp(np.asarray(log_weights) - np.max(log_weights))
    return raised / raised.sum()


def automatic_eta(delta, n_kernels, horizon):
    return math.sqrt(2.0 * (1.0 - delta) * math.log(n_kernels) / (n_kernels * horizon))


def delta_of(delta, epoch):
    """`epoch` counts from 0; the last of a sequence persists."""
    return float(delta) if np.ndim(delta) == 0 else float(delta[min(epoch, len(delta) - 1)])


def plan(n, n_epochs, shuffle, rng):
    """Orders and uniform numbers of the epochs, one row each."""
    orders, uniforms = [], []
    for epoch in range(n_epochs):
        orders.append(rng.permutation(n) if shuffle or epoch else np.arange(n))
        uniforms.append(rng.random(n))
    return np.array(orders), np.array(uniforms)


def plain_loss(loss, output, y):
    if loss == "square":
        return 0.5 * (output - y) ** 2, output - y
    if loss == "hinge":
        return max(0.0, 1.0 - y * output), (-y if 1.0 - y * output > 0.0 else 0.0)
    return np.logaddexp(0.0, -y * output), -y * np.exp(-np.logaddexp(0.0, y * output))


def value_of(K, j, i, predictor):
    return sum(c * K[j, i, s] for s, c in predictor.items())


def outputs(K, predictors):
    """Outputs of every predictor, shape (n_kernels, n): K of shape (n_kernels, n, n_train)."""
    out = np.zeros(K.shape[:2])
    for j, predictor in enumerate(predictors):
        for s, c in predictor.items():
            out[j] += c * K[j, :, s]
    return out


class Selection:
    """Algorithm 2 ("oks"), Algorithm 1 ("regret") or SOM ("som"), one visit at a time.

    K is the stack of kernels (n_kernels, n, n), y the labels by sample; `weights` of the samples multiply
    what is learnt from them. `entries` are the kernel values that were needed.
    """

    def __init__(self, rule, K, y, *, loss="hinge", beta=None, weights=None):
        self.weights = np.ones(len(y)) if weights is None else weights
        self.rule, self.K, self.y, self.loss, self.beta = rule, K, y, loss, beta
        self.m = len(K)
        self.log_weights = [0.0] * self.m
        self.predictors = [{} for _ in range(self.m)]
        self.n_updates = self.n_evaluations = 0
        self.drawn, self.mistakes, self.losses = [], [], []
        self.q_used = []
        self.entries = set()

    @property
    def q(self):
        return normalized(self.log_weights)

    def visit(self, i, uniform, delta, eta, step):
        q = self.q
        p = (1.0 - delta) * q + delta / self.m
        j = first_above(p, uniform)
        predictor, y = self.predictors[j], self.y[i]
        output = value_of(self.K, j, i, predictor)
        self.n_evaluations += len(predictor)
        self.entries |= {(j, i, s) for s in predictor}
        z = 1.0 if y * output <= 0.0 else 0.0
        if self.rule == "regret":
            loss, slope = plain_loss(self.loss, output, y)
            penalty, amount = eta * loss / p[j], -step * slope / p[j]
        elif self.rule == "oks":
            loss, penalty, amount = z, eta * z / p[j], step * y * z / p[j]
        else:
            loss, penalty, amount = z, -math.log(self.beta) * z, step * y * z
        self.drawn.append(j)
        self.mistakes.append(z == 1.0)
        self.losses.append(loss)
        self.q_used.append(q)
        self.log_weights[j] -= self.weights[i] * penalty
        amount *= self.weights[i]
        if amount != 0.0:
            predictor[i] = predictor.get(i, 0.0) + amount
            self.n_updates += 1


def run_selection(
    rule,
    K,
    y,
    *,
    seed=0,
    delta=0.2,
    eta="auto",
    step=1.0,
    n_epochs=2,
    shuffle=True,
    loss="hinge",
    beta=None,
    weights=None,
):
    n, m = len(y), len(K)
    total = n * n_epochs
    twin = Selection(rule, K, y, loss=loss, beta=beta, weights=weights)
    orders, uniforms = plan(n, n_epochs, shuffle, np.random.default_rng(seed))
    for epoch in range(n_epochs):
        d = delta_of(delta, epoch)
        e = automatic_eta(d, m, total) if eta == "auto" and rule != "som" else eta
        for i, u in zip(orders[epoch], uniforms[epoch], strict=True):
            twin.visit(i, u, d, e, step)
    twin.last_p = (1.0 - d) * twin.q + d / m
    twin.order = orders.ravel()
    return twin


def perceptron(kernel, y, order, weights=None):
    predictor, mistakes, asked = {}, [], 0
    weights = np.ones(len(y)) if weights is None else weights
    for i in order:
        asked += len(predictor)
        wrong = y[i] * sum(c * kernel[i, s] for s, c in predictor.items()) <= 0.0
        mistakes.append(bool(wrong))
        if wrong and weights[i]:
            predictor[i] = predictor.get(i, 0.0) + weights[i] * y[i]
    return SimpleNamespace(predictor=predictor, mistakes=np.array(mistakes), n_evaluations=asked)


def run_om1(K, y, *, beta=0.8, order=None, factors=None):
    """Jin, Hoi and Yang (2010), Algorithm 1: Perceptrons side by side and the vote of their signs."""
    order = range(len(y)) if order is None else order
    factors = np.ones(len(y)) if factors is None else factors
    m, n_updates = len(K), 0
    weights, predictors, own = np.ones(m), [{} for _ in range(m)], np.zeros(m, dtype=int)
    mistakes, asked = [], 0
    for i in order:
        q = weights / weights.sum()
        values = np.array([value_of(K, j, i, predictors[j]) for j in range(m)])
        asked += sum(len(p) for p in predictors)
        mistakes.append(bool(y[i] * (q @ np.sign(values)) <= 0.0))
        for j in range(m):
            if y[i] * values[j] <= 0.0:
                own[j] += 1
                if factors[i]:
                    weights[j] *= beta ** factors[i]
                    predictors[j][i] = predictors[j].get(i, 0.0) + factors[i] * y[i]
                    n_updates += 1
    return SimpleNamespace(
        q=weights / weights.sum(),
        predictors=predictors,
        own=own,
        mistakes=np.array(mistakes),
        n_evaluations=asked,
        n_updates=n_updates,
    )


def vote(K, q, predictors):
    return q @ np.sign(outputs(K, predictors))


def plain_alignment(kernel, target, centered):
    """<K, T> / (|K| |T|), both centred with H = I - 1 1'/n if asked for."""
    if centered:
        H = np.eye(len(target)) - 1.0 / len(target)
        kernel, target = H @ kernel @ H, H @ target @ H
    return (kernel * target).sum() / (np.linalg.norm(kernel) * np.linalg.norm(target))


def best_in_space(kernel, y, step, loss="hinge", weights=None):
    r"""The least :math:`\sum_t c_t \ell(f(x_t), y_t) + \|f\|^2 / (2\lambda)`, from below: the dual.

    Hinge loss: an SVM without bias, by coordinate ascent. Square loss: a closed form.
    """
    c = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    if loss == "square":
        used = c > 0.0
        S = kernel[np.ix_(used, used)] + np.diag(1.0 / (step * c[used]))
        return 0.5 / step * y[used] @ np.linalg.solve(S, y[used])
    return box_svm(kernel, y, step * c, tol=1e-13 * max(1.0, step))[1] / step


def convex(kernel, signs, loss, weights=1.0):
    """Features of a kernel, a weight vector, and the sum of its losses, for a conic solver."""
    features = features_of(kernel)
    w = cp.Variable(features.shape[1])
    f = features @ w
    margins = cp.multiply(signs, f)
    each = {
        "hinge": cp.pos(1 - margins),
        "logistic": cp.logistic(-margins),
        "square": cp.square(f - signs) / 2,
    }
    return w, cp.sum(cp.multiply(weights, each[loss]))
