"""Slow, plain NumPy twins of the algorithms of the MKL chapter, and exact optima from a conic solver.

Each twin is its pseudo-code line by line: every step forms scores and block norms anew in float64.

A kernel stack K has shape (F, n, n), labels are 0 .. M-1, coefficients A have shape (n, M). `factor` is 1 for
the multiclass loss and 1/2 for the hinge loss (see `cuelearn.core.losses`).
"""

import numpy as np
from plain_mkl import dual_exponent, plain_competitor, plain_losses, plain_norm


def plain_link(norms, q, threshold=0.0):
    """Factors of thesis equation 4.4 (threshold 0, without the 1/q) and of Algorithm 7, lines 7 and 8
    (without 1/(t lambda))."""
    v = np.maximum(norms - threshold, 0.0)
    size = plain_norm(v, q)
    out = np.zeros_like(v)
    used = v > 0.0
    out[used] = v[used] / norms[used] * (v[used] / size) ** (q - 2.0)
    return out


def block_norms(K, A, factor=1.0):
    return np.sqrt(np.maximum(0.0, factor * np.einsum("ic,jik,kc->j", A, K, A, optimize=True)))


def class_scores(K, A, weights, factor=1.0):
    """Scores (n, M) of all samples for the primal blocks ``weights[j] * theta^j``."""
    return factor * np.tensordot(weights, K, 1) @ A


def plain_objective(K, y, A, weights, p, C, alpha=0.0, factor=1.0):
    """P(w) for ``w^j = weights[j] * theta^j(A)``."""
    norms = np.abs(weights) * block_norms(K, A, factor)
    loss = plain_losses(class_scores(K, A, weights, factor), y).mean()
    return 0.5 / (C * y.size) * plain_norm(norms, p) ** 2 + alpha * norms.sum() + loss


def plain_dual(K, y, a, p, C, alpha=0.0, factor=1.0):
    """D(a) of a feasible dual point a (n, M)."""
    n = y.size
    B = -a / n
    B[np.arange(n), y] = a.sum(axis=1) / n
    excess = np.maximum(0.0, block_norms(K, B, factor) - alpha)
    return a.sum() / n - 0.5 * C * n * plain_norm(excess, dual_exponent(p)) ** 2


class PlainDual:
    """The dual vector of a run and one visit after the other, everything from scratch.

    `cost` are the weights of the losses; C is then the one for which lambda is 1/(C n).
    """

    def __init__(self, K, y, n_classes, p, factor=1.0, cost=None):
        self.K, self.y, self.q, self.factor = np.asarray(K, dtype=np.float64), y, dual_exponent(p), factor
        self.cost = np.ones(y.size) if cost is None else cost
        self.A = np.zeros((y.size, n_classes))

    def visit(self, i, weights):
        """Rival and margin of sample i under the primal blocks ``weights[j] * theta^j``."""
        scores = class_scores(self.K[:, [i]], self.A, weights, self.factor)[0]
        rival = plain_competitor(scores, self.y[i])
        return rival, scores[self.y[i]] - scores[rival]

    def norms(self):
        return block_norms(self.K, self.A, self.factor)

    def gradient_norm(self, i):
        """``||z||_{2,q}`` of a subgradient at sample i: two blocks of opposite sign per kernel."""
        return plain_norm(np.sqrt(2.0 * self.factor * self.K[:, i, i]), self.q)

    def add(self, i, rival, step):
        self.A[i, self.y[i]] += self.cost[i] * step
        self.A[i, rival] -= self.cost[i] * step


class TwinOM2(PlainDual):
    """Thesis Algorithm 4 with the step sizes of equation 4.5, or with a fixed one (equation 4.6)."""

    def __init__(self, *args, eta=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.eta = eta

    def point(self):
        return self.A.copy(), plain_link(self.norms(), self.q) / self.q

    def step(self, i):
        """Visit sample i; returns whether it was a mistake."""
        rival, margin = self.visit(i, self.point()[1])
        if 1.0 - margin > 0.0:
            size = self.gradient_norm(i) ** 2
            if self.eta is not None:
                step = self.eta
            else:
                step = 0.0 if size == 0.0 else max(0.0, min(1.0 - 2.0 * margin / size, 1.0))
            self.add(i, rival, step)
        return margin <= 0.0

    def radius(self, C):
        """R of thesis section 4.4.4."""
        A, weights = self.point()
        norm = plain_norm(weights * self.norms(), dual_exponent(self.q))
        loss = plain_losses(class_scores(self.K, A, weights, self.factor), self.y).sum()
        lam = 1.0 / (C * self.y.size)
        return np.sqrt(norm**2 + 2.0 / (lam * self.y.size) * loss)


class TwinBatch(PlainDual):
    """Thesis Algorithm 5 from a given dual vector; R infinite is Pegasos-MKL."""

    def __init__(self, *args, C, radius=np.inf, A=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.lam, self.radius, self.s, self.t = 1.0 / (C * self.y.size), radius, 0.0, 0
        if A is not None:
            self.A = A.copy()

    def point(self):
        return self.A.copy(), plain_link(self.norms(), self.q) / self.q

    def step(self, i):
        q, lam = self.q, self.lam
        self.t += 1
        rival, margin = self.visit(i, self.point()[1])
        has_loss = 1.0 - margin > 0.0
        if np.isfinite(self.radius):
            d = lam * self.t + self.s
            gradient_norm = self.cost[i] * self.gradient_norm(i) if has_loss else 0.0
            bound = lam / q * plain_norm(self.norms(), q) + gradient_norm
            self.s += 0.5 * (np.sqrt(d**2 + q * bound**2 / self.radius**2) - d)
        eta = q / (lam * self.t + self.s)
        self.A *= 1.0 - lam * eta / q
        if has_loss:
            self.add(i, rival, eta)
        size = plain_norm(self.norms(), q)
        if size > q * self.radius:
            self.A *= q * self.radius / size
        return margin <= 0.0


class TwinUFO(PlainDual):
    """Thesis Algorithm 7."""

    def __init__(self, *args, C, alpha=0.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.lam, self.alpha, self.t = 1.0 / (C * self.y.size), alpha, 0

    def point(self):
        t = max(1, self.t)
        return self.A.copy(), plain_link(self.norms(), self.q, self.alpha * self.t) / (t * self.lam)

    def step(self, i):
        rival, margin = self.visit(i, self.point()[1])
        self.t += 1
        if 1.0 - margin > 0.0:
            self.add(i, rival, 1.0)
        return margin <= 0.0


def twin_passive_aggressive(kernel, y, n_classes, C, order, weights=None):
    """Multiclass PA-I: coefficients and mistakes after every visit."""
    weights = np.ones(y.size) if weights is None else weights
    A = np.zeros((y.size, n_classes))
    for i in order:
        scores = kernel[i] @ A
        rival = plain_competitor(scores, y[i])
        margin = scores[y[i]] - scores[rival]
        loss = max(0.0, 1.0 - margin)
        if loss > 0.0 and kernel[i, i] > 0.0:
            tau = min(weights[i] * C, loss / (2.0 * kernel[i, i]))
            A[i, y[i]] += tau
            A[i, rival] -= tau
        yield A.copy(), margin <= 0.0


def make_stack(rng, n, n_kernels, n_classes, dtype=np.float64):
    """RBF kernels of which some tell the classes apart better than others, and labels with every class
    present."""
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    rng.shuffle(y)
    kernels = []
    for _ in range(n_kernels):
        Z = rng.normal(size=(n, 5)) + rng.normal(size=(n_classes, 5))[y] * rng.uniform(0.0, 2.0)
        distance = ((Z[:, None] - Z) ** 2).sum(-1)
        kernels.append(np.exp(-distance / distance.mean()))
    return np.array(kernels, dtype=dtype), y
