"""Slow, plain NumPy twins of the algorithms of the OMCL chapter, and streams for them.

Each twin is its pseudo-code line by line in float64, on the whole Gram matrix of the stream: projections are
solved afresh at every visit, averages are formed by keeping every hypothesis and adding them up. Nothing here
comes from the package. Labels are 0 .. M-1.
"""

import numpy as np
from plain_mkl import plain_competitor


def make_stream(n, d, n_classes, seed=0, *, noise=0.1, duplicates=0.1, zeros=0.0, spread=0.25):
    """Non-negative features in clusters, with label noise, repeated samples (with labels of their own) and
    zero vectors."""
    rng = np.random.default_rng(seed)
    centres = rng.random((n_classes, d))
    labels = rng.integers(0, n_classes, n)
    X = np.abs(centres[labels] + spread * rng.normal(size=(n, d)))
    wrong = rng.random(n) < noise
    labels = np.where(wrong, rng.integers(0, n_classes, n), labels)
    for t in range(1, n):
        if rng.random() < duplicates:
            X[t] = X[rng.integers(0, t)]
        if rng.random() < zeros:
            X[t] = 0.0
    return X, labels


class Twin:
    """A learner that keeps all its hypotheses; `coefs[t]` are the coefficients after visit t."""

    def __init__(self, n_classes, size):
        self.A = np.zeros((n_classes, size))
        self.coefs, self.scores, self.margins, self.n_updates, self.support = [], [], [], 0, []
        self.weights = []

    @property
    def mistakes(self):
        return np.array(self.margins) <= 0.0

    @property
    def losses(self):
        return np.maximum(0.0, 1.0 - np.array(self.margins))

    @property
    def mean(self):
        return np.average(self.coefs, axis=0, weights=self.weights)

    def visit(self, phi, label):
        """`phi` such that the scores are ``A @ phi``; returns scores, rival and margin."""
        scores = self.A @ phi
        rival = plain_competitor(scores, label)
        self.scores.append(scores)
        self.margins.append(scores[label] - scores[rival])
        return rival, self.margins[-1]

    def close(self, weight):
        self.coefs.append(self.A.copy())
        self.weights.append(weight)


class TwinKernel(Twin):
    """Perceptron, Projectron and Projectron++ (thesis Algorithm 2, lines 9 to 21) with exact projections.

    K is the Gram matrix of the whole stream; A has a column for each sample of it.
    """

    def __init__(self, rule, K, n_classes, eta=0.0):
        super().__init__(n_classes, len(K))
        self.rule, self.K, self.eta, self.n_projected = rule, np.asarray(K, dtype=np.float64), eta, 0

    def projection(self, t):
        """Coefficients of the projection of k(x_t, .) on the support set, and the squared residual."""
        S = self.support
        k = self.K[S, t]
        d = np.linalg.solve(self.K[np.ix_(S, S)], k)
        residual = self.K[t, t] - k @ d
        return d, (0.0 if residual <= 1e-10 * self.K[t, t] else residual)

    def learn(self, t, label, weight=1.0):
        rival, margin = self.visit(self.K[:, t], label)
        loss, mistake = max(0.0, 1.0 - margin), margin <= 0.0
        if weight and self.K[t, t] > 0.0 and (mistake or (self.rule == "projectron++" and loss > 0.0)):
            self.update(t, label, rival, loss, mistake, weight)
        self.close(weight)

    def update(self, t, label, rival, loss, mistake, weight):
        if self.rule != "perceptron" and self.support:
            d, residual = self.projection(t)
            delta = np.sqrt(2.0 * residual)  # of U, which has two blocks
            if delta <= self.eta or not mistake:
                step = weight
                if self.rule == "projectron++":
                    length = 2.0 * (d @ self.K[np.ix_(self.support, self.support)] @ d)  # ||P U||^2
                    over = 0.0 if delta == 0.0 else delta / self.eta if self.eta > 0.0 else np.inf
                    if loss <= over or length <= 0.0:
                        return
                    step = min(loss / length, 2.0 * (loss - over) / length, weight)
                self.A[label, self.support] += step * d
                self.A[rival, self.support] -= step * d
                self.n_updates += 1
                self.n_projected += 1
                return
        self.A[label, t] += weight
        self.A[rival, t] -= weight
        self.support.append(t)
        self.n_updates += 1

    def run(self, labels, weights=None):
        for t, label in enumerate(labels):
            self.learn(t, label, 1.0 if weights is None else weights[t])
        return self


class TwinLinear(Twin):
    """Passive-Aggressive (equation 3.1; C infinite is PA) or gradient steps of fixed size."""

    def __init__(self, rule, n_features, n_classes, C):
        super().__init__(n_classes, n_features)
        self.rule, self.C = rule, C

    def learn(self, x, label, weight=1.0):
        rival, margin = self.visit(x, label)
        loss = max(0.0, 1.0 - margin)
        if loss > 0.0 and np.any(x != 0.0) and weight > 0.0:
            most = self.C * weight
            step = min(most, loss / (2.0 * (x @ x))) if self.rule == "pa" else most
            self.A[label] += step * x
            self.A[rival] -= step * x
            self.n_updates += 1
        self.close(weight)

    def run(self, X, labels, weights=None):
        weights = np.ones(len(labels)) if weights is None else weights
        for x, label, weight in zip(X, labels, weights, strict=True):
            self.learn(np.asarray(x, dtype=np.float64), label, weight)
        return self


class TwinOMCL:
    """Thesis Algorithm 1: a learner for each cue, one on all their scores; the averaged product.

    `cues` are pairs (twin learner, inputs): inputs are sample numbers for kernel learners, feature rows for
    linear ones. `products[j]` is the mean over all visits of the product of the second layer's block of cue j
    and the cue's coefficients. Visits at which the margin between the best two scores is above its limit are
    left out: they are not `queried`.
    """

    def __init__(self, cues, n_classes, C):
        self.cues = cues
        self.second = TwinLinear("pa", n_classes * len(cues), n_classes, C)
        self.n_classes, self.S = n_classes, []
        self.totals = [np.zeros_like(twin.A) for twin, _ in cues]

    def run(self, labels, weights=None, limits=None):
        M = self.n_classes
        weights = np.ones(len(labels)) if weights is None else weights
        self.queried = np.ones(len(labels), dtype=bool)
        for t, label in enumerate(labels):
            S = np.concatenate(
                [
                    twin.A @ (twin.K[:, t] if isinstance(twin, TwinKernel) else inputs[t])
                    for twin, inputs in self.cues
                ]
            )
            if limits is not None:
                scores = np.sort(self.second.A @ S)
                self.queried[t] = scores[-1] - scores[-2] <= limits[t]
            if self.queried[t]:
                for twin, inputs in self.cues:
                    twin.learn(inputs[t], label, weights[t])
                self.second.learn(S, label, weights[t])
                self.S.append(S)
            for j, (twin, _) in enumerate(self.cues):
                self.totals[j] += weights[t] * self.second.A[:, j * M : (j + 1) * M] @ twin.A
        self.products = [total / np.sum(weights) for total in self.totals]
        return self
