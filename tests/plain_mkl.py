"""What the tests of several chapters share: samples, norms, losses, exact optima from a conic solver, twins.

Each twin is its pseudo-code line by line: every step forms scores and block norms anew in float64.

A kernel stack K has shape (F, n, n), labels are 0 .. M-1, coefficients A have shape (n, M). `factor` is 1 for
the multiclass loss and 1/2 for the hinge loss (see `cuelearn.core.formulas`).
"""

import contextlib
import warnings

import cvxpy as cp
import numpy as np


def draw(n, n_classes, seed, strengths=(1.5, 0.7, 0.0)):
    """Three pairs of columns, in each of which the classes lie on a circle of some radius."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    rng.shuffle(y)
    angle = 2.0 * np.pi * y / n_classes
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return rng.normal(size=(n, 6)) + np.concatenate([radius * circle for radius in strengths], axis=1), y


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


def dual_exponent(p):
    return p / (p - 1.0)


def auto_p(n_kernels):
    """Thesis corollary 4.1, clipped to q >= 2."""
    q = max(2.0, 2.0 * np.log(max(1, n_kernels)))
    return q / (q - 1.0)


def plain_norm(v, r):
    v = np.asarray(v)
    top = v.max(initial=0.0)
    return 0.0 if top == 0.0 else top * ((v / top) ** r).sum() ** (1.0 / r)


def plain_competitor(scores, label):
    """Best wrong class, the lowest on ties."""
    best = None
    for c, s in enumerate(scores):
        if c != label and (best is None or s > scores[best]):
            best = c
    return best


def plain_losses(scores, y):
    own = scores[np.arange(y.size), y]
    others = scores.copy()
    others[np.arange(y.size), y] = -np.inf
    return np.maximum(0.0, 1.0 - own + others.max(axis=1))


def features_of(kernel):
    """Features whose inner products are the kernel."""
    values, vectors = np.linalg.eigh(np.asarray(kernel, dtype=np.float64))
    keep = values > 1e-12 * max(values.max(), 1e-300)
    return vectors[:, keep] * np.sqrt(values[keep])


def conic_optimum(*args, **options):
    """Optimal value and block norms of `conic_solution`."""
    return conic_solution(*args, **options)[:2]


def conic_solution(
    K, y, p, C, alpha=0.0, loss="multiclass", *, weight=None, of_class=None, S=None, bias=False, width=None
):
    """Optimal value, block norms and scores of the primal problem; p-norms through power cones.

    The hinge problem is stated in its own form, one binary hyperplane with labels -1 and 1. Other losses are
    functions of the scores, `width` for each sample, and of y. `weight` and `of_class` are the weights of
    samples and of classes; each class has a block of one number for each column of S.
    """
    n = y.size
    weight = np.ones(n) if weight is None else weight
    total = weight.sum()
    lam = 1.0 / (C * total)
    if of_class is not None:
        weight = weight * of_class[y]
    if loss == "hinge":
        width = 1
    elif loss == "multiclass":
        width = int(y.max()) + 1
    maps = [features_of(kernel) for kernel in K]
    blocks = [cp.Variable((features.shape[1], width)) if features.shape[1] else None for features in maps]
    used = [(features, block) for features, block in zip(maps, blocks, strict=False) if block is not None]
    scores = sum((features @ block for features, block in used), cp.Constant(np.zeros((n, width))))
    if bias:
        scores = scores + np.ones((n, 1)) @ cp.Variable((1, width))
    numbers = cp.Variable((0 if S is None else S.shape[1], width))
    if numbers.size:
        scores = scores + S @ numbers
    slack, constraints = cp.Variable(n, nonneg=True), []
    if loss == "multiclass":
        own = cp.sum(cp.multiply(scores, np.eye(width)[y]), axis=1)
        for c in range(width):
            constraints.append(cp.multiply((y != c).astype(float), 1.0 - own + scores[:, c]) <= slack)
    elif loss == "hinge":
        constraints.append(1.0 - cp.multiply(2.0 * y - 1.0, scores[:, 0]) <= slack)
    else:
        slack = loss(scores, y)
    objective = weight @ slack / total
    norms = [cp.norm(block, "fro") for _, block in used]
    norms += [cp.abs(numbers[z, c]) for c in range(width) for z in range(numbers.shape[0])]
    if norms:
        norms, bound = cp.hstack(norms), cp.Variable()
        if p == 1.0:
            length = cp.sum(norms)
        elif p == 2.0 or norms.size == 1:
            length = cp.norm(norms, 2)
        else:
            length = cp.pnorm(norms, p, max_denom=1 << 16)
        constraints.append(length <= bound)
        objective += 0.5 * lam * cp.square(bound)
        if alpha > 0.0:
            objective += alpha * cp.sum(norms)
    value = minimum(objective, constraints)
    if bias:  # the solver's tolerances are absolute: now the optimum is 1
        value *= minimum(objective / value, constraints)
    lengths = [0.0 if block is None else np.linalg.norm(block.value) for block in blocks]
    if numbers.size:
        lengths = [*lengths, *np.abs(numbers.value).ravel(order="F")]
    return value, np.array(lengths), scores.value


def minimum(objective, constraints=(), tolerance=1e-10):
    """Least value of a conic problem, whose variables then have their values."""
    problem = cp.Problem(cp.Minimize(objective), list(constraints))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for share in (1.0, 10.0, 100.0):  # its steps, though short, may stall at the last digits
            near = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), share * tolerance)
            with contextlib.suppress(cp.SolverError):
                problem.solve(solver=cp.CLARABEL, max_step_fraction=0.9, **near)
                break
    return float(problem.value)


def box_svm(kernel, signs, upper, tol=1e-13, sweeps=4000):
    """Coefficients of an SVM without bias, each from 0 to its upper bound: plain coordinate ascent."""
    Q, a = kernel * np.outer(signs, signs), np.zeros(signs.size)
    gradient = -np.ones(signs.size)  # of a'Qa/2 - sum a
    for _ in range(sweeps):
        moved = 0.0
        for t in range(signs.size):
            if Q[t, t] > 0.0:
                new = min(max(a[t] - gradient[t] / Q[t, t], 0.0), upper[t])
            else:
                new = upper[t] if gradient[t] < 0.0 else a[t]
            if new != a[t]:
                gradient += (new - a[t]) * Q[:, t]
                moved = max(moved, abs(new - a[t]))
                a[t] = new
        if moved <= tol:
            break
    return a, a.sum() - 0.5 * a @ Q @ a


def all_coefficients(model):
    """Coefficients of all training samples, zeros among them."""
    coef = np.zeros((model.bank_.n_samples, model.classes_.size))
    coef[model.support_] = model.dual_coef_
    return coef


def plain_link(norms, q, threshold=0.0):
    """Factors of thesis equation 4.4 (threshold 0, without the 1/q) and of Algorithm 7, lines 7 and 8
    (without 1/(t lambda))."""
    v = np.maximum(norms - threshold, 0.0)
    size = plain_norm(v, q)
    out = np.zeros_like(v)
    used = v > 0.0
    out[used] = v[used] / norms[used] * (v[used] / size) ** (q - 2.0)
    return out


def block_norms(K, A, factor=1.0, classes=None):
    squares = np.einsum("ic,jic->jc", A, K @ A)
    squares = squares if classes is None else squares * classes
    return np.sqrt(np.maximum(0.0, factor * squares.sum(axis=1)))


def class_scores(K, A, weights, factor=1.0, classes=None):
    """Scores (n, M) of all samples for the primal blocks ``weights[j] * theta^j``."""
    if classes is None:
        return factor * np.tensordot(weights, K, 1) @ A
    return factor * np.einsum("jc,jic->ic", weights[:, None] * classes, K @ A)


def plain_objective(K, y, A, weights, p, C, alpha=0.0, factor=1.0, *, classes=None, cost=None):
    """P(w) for ``w^j = weights[j] * theta^j(A)``."""
    norms = np.abs(weights) * block_norms(K, A, factor, classes)
    losses = plain_losses(class_scores(K, A, weights, factor, classes), y)
    loss = losses.mean() if cost is None else cost @ losses / y.size
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

    `cost` are the weights of the losses; C is then the one for which lambda is 1/(C n). `classes`, of shape
    (F, M), is 0 where a block knows nothing of a class.
    """

    def __init__(self, K, y, n_classes, p, factor=1.0, cost=None, classes=None):
        self.K, self.y, self.q, self.factor = np.asarray(K, dtype=np.float64), y, dual_exponent(p), factor
        self.cost = np.ones(y.size) if cost is None else cost
        self.classes = classes
        self.A = np.zeros((y.size, n_classes))
        self.n_updates = 0

    def scores(self, samples, weights):
        return class_scores(self.K[:, samples], self.A, weights, self.factor, self.classes)

    def visit(self, i, weights):
        """Rival and margin of sample i under the primal blocks ``weights[j] * theta^j``."""
        scores = self.scores([i], weights)[0]
        rival = plain_competitor(scores, self.y[i])
        return rival, scores[self.y[i]] - scores[rival]

    def norms(self):
        return block_norms(self.K, self.A, self.factor, self.classes)

    def gradient_norm(self, i, rival):
        """``||z||_{2,q}`` of a subgradient at sample i: two blocks of opposite sign per kernel."""
        n_blocks = 2.0 if self.classes is None else self.classes[:, self.y[i]] + self.classes[:, rival]
        return plain_norm(np.sqrt(n_blocks * self.factor * self.K[:, i, i]), self.q)

    def add(self, i, rival, step):
        self.A[i, self.y[i]] += self.cost[i] * step
        self.A[i, rival] -= self.cost[i] * step
        self.n_updates += 1


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
            size = self.gradient_norm(i, rival) ** 2
            if self.eta is not None:
                step = self.eta
            else:
                step = 0.0 if size == 0.0 else max(0.0, min(1.0 - 2.0 * margin / size, 1.0))
            self.add(i, rival, step)
        return margin <= 0.0

    def radius(self, C):
        """R of thesis section 4.4.4."""
        weights = self.point()[1]
        norm = plain_norm(weights * self.norms(), dual_exponent(self.q))
        loss = self.cost @ plain_losses(self.scores(slice(None), weights), self.y)
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

    def shrink(self, gradient_norm):
        """The next step size, and the vector shrunk before the step."""
        q, lam = self.q, self.lam
        self.t += 1
        if np.isfinite(self.radius):
            d = lam * self.t + self.s
            bound = lam / q * plain_norm(self.norms(), q) + gradient_norm
            self.s += 0.5 * (np.sqrt(d**2 + q * bound**2 / self.radius**2) - d)
        eta = q / (lam * self.t + self.s)
        self.A *= 1.0 - lam * eta / q
        return eta

    def project(self):
        size = plain_norm(self.norms(), self.q)
        if size > self.q * self.radius:
            self.A *= self.q * self.radius / size

    def step(self, i):
        rival, margin = self.visit(i, self.point()[1])
        has_loss = 1.0 - margin > 0.0
        eta = self.shrink(self.cost[i] * self.gradient_norm(i, rival) if has_loss else 0.0)
        if has_loss:
            self.add(i, rival, eta)
        self.project()
        return margin <= 0.0
