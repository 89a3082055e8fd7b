"""What the tests of several chapters share: samples, norms, losses and exact optima from a conic solver."""

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
