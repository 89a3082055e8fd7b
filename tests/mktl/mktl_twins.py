"""Slow, plain NumPy twin of MKTL, and exact optima from a conic solver.

Every group has its joint feature map written out as an array ``phi[i, y]`` of dense vectors, for the kernels
from their eigenvectors, for the score groups as the thesis prints them (section 6.3), and every hyperplane is
a dense vector of the same length. The hinge problem has the joint features
+psi/2 for the second class and -psi/2 for the first, so that a margin is +-psi . w.

Kernels have shape (F0, n, n), scores (n, K) as scaled by the caller, labels are 0 .. M-1, `weight` holds the
c_i of the samples.
"""

import numpy as np
from plain_mkl import conic_solution, dual_exponent, features_of, plain_competitor, plain_losses, plain_norm


def n_groups(n_kernels, n_scores, n_classes, loss):
    return n_kernels + n_scores * (n_classes if loss == "multiclass" else 1)


def joint_features(K, S, n_classes, loss):
    """Arrays (n, M, d_g), one for each group: the kernels first, then the scores, class by class."""
    K, S = np.asarray(K, dtype=np.float64), np.asarray(S, dtype=np.float64)
    n = len(S)
    maps = []
    for psi in map(features_of, K):
        if loss == "hinge":
            maps.append(np.stack([-0.5 * psi, 0.5 * psi], axis=1))
            continue
        phi = np.zeros((n, n_classes, n_classes, psi.shape[1]))
        for y in range(n_classes):
            phi[:, y, y] = psi
        maps.append(phi.reshape(n, n_classes, -1))
    if loss == "hinge":
        maps.extend(np.stack([-0.5 * S[:, [z]], 0.5 * S[:, [z]]], axis=1) for z in range(S.shape[1]))
        return maps
    for y in range(n_classes):
        for z in range(S.shape[1]):
            phi = np.zeros((n, n_classes, n_classes))
            phi[:, y, y] = S[:, z]
            maps.append(phi)
    return maps


def link(theta, q):
    """Equation 4.4 without the 1/q: from dual to primal vectors."""
    norms = np.array([np.linalg.norm(t) for t in theta])
    size = plain_norm(norms, q)
    return [
        t * (norm / size) ** (q - 2.0) if norm > 0.0 else t.copy()
        for t, norm in zip(theta, norms, strict=True)
    ]


def lengths(vectors):
    return np.array([np.linalg.norm(v) for v in vectors])


def class_scores(maps, w):
    """Scores (n, M) of explicit hyperplanes."""
    return sum(phi @ block for phi, block in zip(maps, w, strict=True))


def plain_objective(maps, y, w, p, C, weight=None):
    """lambda/2 ||w||_{2,p}^2 + 1/n sum_i c_i loss_i from explicit vectors."""
    weight = np.ones(y.size) if weight is None else weight
    loss = weight @ plain_losses(class_scores(maps, w), y) / y.size
    return 0.5 / (C * y.size) * plain_norm(lengths(w), p) ** 2 + loss


class Twin:
    """OBSCURE with score groups: thesis Algorithm 4 with equation 4.6, then Algorithm 5, line by line."""

    def __init__(self, K, S, y, n_classes, p, C, loss="multiclass", weight=None):
        self.maps = joint_features(K, S, n_classes, loss)
        self.y, self.p, self.q, self.C = np.asarray(y), p, dual_exponent(p), C
        self.n = self.y.size
        self.lam = 1.0 / (C * self.n)
        self.weight = np.ones(self.n) if weight is None else np.asarray(weight, dtype=np.float64)
        self.theta = [np.zeros(phi.shape[2]) for phi in self.maps]
        self.A = np.zeros((self.n, n_classes))  # the same dual vector as coefficients, for comparison only
        self.mistakes, self.n_updates = [], 0

    def w(self):
        return [block / self.q for block in link(self.theta, self.q)]

    def subgradient(self, i):
        """-z of c_i loss_i at the present point (None without loss), its norm, the rival, the margin."""
        w = self.w()
        scores = sum(phi[i] @ block for phi, block in zip(self.maps, w, strict=True))
        own = self.y[i]
        rival = plain_competitor(scores, own)
        margin = scores[own] - scores[rival]
        if margin >= 1.0:
            return None, 0.0, rival, margin
        minus_z = [self.weight[i] * (phi[i, own] - phi[i, rival]) for phi in self.maps]
        return minus_z, plain_norm(lengths(minus_z), self.q), rival, margin

    def add(self, i, minus_z, rival, step):
        self.theta = [t + step * g for t, g in zip(self.theta, minus_z, strict=True)]
        self.A[i, self.y[i]] += step * self.weight[i]
        self.A[i, rival] -= step * self.weight[i]
        self.n_updates += 1

    def scale(self, factor):
        self.theta = [factor * t for t in self.theta]
        self.A *= factor

    def dual_norm(self):
        return plain_norm(lengths(self.theta), self.q)

    def online(self, order, eta):
        """One epoch of the online stage; returns whether it updated."""
        before = self.n_updates
        for i in order:
            minus_z, _, rival, margin = self.subgradient(i)
            self.mistakes.append(margin <= 0.0)
            if minus_z is not None:
                self.add(i, minus_z, rival, eta)
        return self.n_updates > before

    def radius(self):
        """R of section 4.4.4, and capped by the objective at 0, which is the mean weight."""
        w = self.w()
        loss = self.weight @ plain_losses(class_scores(self.maps, w), self.y) / self.n
        online = np.sqrt(plain_norm(lengths(w), self.p) ** 2 + 2.0 / self.lam * loss)
        return online, min(online, np.sqrt(2.0 * self.weight.mean() / self.lam))

    def batch(self, order, R):
        """Algorithm 5 over a sequence of visits."""
        q, lam, s = self.q, self.lam, 0.0
        for t, i in enumerate(order, start=1):
            minus_z, size, rival, margin = self.subgradient(i)
            self.mistakes.append(margin <= 0.0)
            d = lam * t + s
            if np.isfinite(R):
                s = s + 0.5 * (np.sqrt(d**2 + q * (lam / q * self.dual_norm() + size) ** 2 / R**2) - d)
            eta = q / (lam * t + s)
            self.scale(1.0 - lam * eta / q)
            if minus_z is not None:
                self.add(i, minus_z, rival, eta)
            size = self.dual_norm()
            if size > q * R:
                self.scale(q * R / size)
        return self

    def objective(self):
        return plain_objective(self.maps, self.y, self.w(), self.p, self.C, self.weight)


def conic_optimum(K, S, y, p, C, loss="multiclass", weight=None):
    """The value, and the primal norms of all groups; samples of a class have one weight."""
    of_class = None if weight is None else np.array([weight[y == c][0] for c in range(int(y.max()) + 1)])
    return conic_solution(K, y, p, C, loss=loss, of_class=of_class, S=S)[:2]


def make_task(seed, n=24, n_kernels=1, n_classes=3, n_scores=4, useful=2):
    """RBF kernels, labels with every class present, and score columns of which the first know a class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    rng.shuffle(y)
    K = []
    for _ in range(n_kernels):
        Z = rng.normal(size=(n, 4)) + 0.8 * rng.normal(size=(n_classes, 4))[y]
        distance = ((Z[:, None] - Z) ** 2).sum(-1)
        K.append(np.exp(-distance / distance.mean()))
    S = rng.normal(size=(n, n_scores))
    for z in range(min(useful, n_scores)):
        S[:, z] += np.where(y == z % n_classes, 1.2, -0.8)
    S /= np.sqrt((S**2).mean(axis=0)) if n_scores else 1.0
    return np.array(K), S, y
