"""Losses beyond the hinge."""

from functools import partial

import cvxpy as cp
import numpy as np
import pytest
from mkl_data import blocks_of_the_book
from numpy.testing import assert_allclose
from plain_mkl import (
    TwinBatch,
    block_norms,
    class_scores,
    conic_solution,
    features_of,
    make_stack,
    plain_link,
    plain_norm,
)
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.kernel_ridge import KernelRidge

from cuelearn.kernels import KernelBank
from cuelearn.mkl import (
    OBSCURE,
    EpsilonInsensitive,
    Huber,
    Logistic,
    LossProblem,
    OBSCURERegressor,
    Squared,
    SquaredHinge,
    UFOMKLRegressor,
    load,
    solve_obscure,
    solve_reference,
    solve_ufo,
)
from cuelearn.mkl.optimum.losses import LossMachine, ascend_loss
from cuelearn.mkl.stochastic.obscure import solve_pegasos_mkl, visit_obscure, visit_obscure_loss
from cuelearn.mkl.stochastic.training import Stream
from cuelearn.mkl.stochastic.ufo import visit_ufo, visit_ufo_loss

OF_NUMBERS = [Squared(), Huber(0.7), EpsilonInsensitive(0.2)]
OF_CLASSES = [Logistic(), SquaredHinge()]
EVERY = [*OF_NUMBERS, *OF_CLASSES]
names = [type(loss).__name__ for loss in EVERY]
every_loss = pytest.mark.parametrize("loss", EVERY, ids=names)


def targets_of(loss, rng, n):
    return (
        rng.normal(size=n) if loss.target == "number" else np.append([0, 1, 2], rng.integers(3, size=n - 3))
    )


def make_problem(loss, n=24, n_kernels=3, seed=0, weight=None, **options):
    rng = np.random.default_rng(seed)
    K, _ = make_stack(rng, n, n_kernels, 3)
    y = targets_of(loss, rng, n)
    n_outputs = 1 if loss.target == "number" else 3
    bank = KernelBank.from_stack(K)
    return K, y, LossProblem(bank, y, loss, n_outputs, sample_weight=weight, **options)


# --- the losses


@every_loss
def test_steps_are_the_maxima_and_duals_the_conjugates(loss):
    """Fenchel: the value is the supremum of the duals, attained by the step."""
    rng = np.random.default_rng(0)
    n_outputs = 1 if loss.target == "number" else 4
    for _ in range(300):
        y = rng.normal() if n_outputs == 1 else int(rng.integers(4))
        gradient = rng.normal(size=n_outputs) * rng.choice([0.1, 1.0, 30.0])
        curvature, limit = float(rng.choice([0.0, 1e-3, 1.0, 50.0])), float(rng.choice([0.3, 1.0, 3.0]))
        row = np.zeros(n_outputs)
        loss.step(gradient, curvature, y, limit, row)
        scores = gradient + curvature * row
        size = max(1.0, limit * loss.value(scores, y))
        assert abs(limit * loss.value(scores, y) - loss.dual(row, y, limit) + row @ scores) < 1e-9 * size
        kept = row.copy()
        loss.clip(kept, y, limit)
        assert_allclose(kept, row, atol=1e-12)
        other = row + rng.normal(size=n_outputs)
        loss.clip(other, y, limit)
        if n_outputs > 1:
            assert abs(other.sum()) < 1e-12
        scores = 3.0 * rng.normal(size=n_outputs)
        assert limit * loss.value(scores, y) - loss.dual(other, y, limit) + other @ scores > -1e-9
        assert loss.value(scores, y) >= 0.0


# --- visits


class TwinLoss(TwinBatch):
    """Thesis Algorithms 7 and 5 for any loss, with implicit steps; infinite `radius`: Pegasos."""

    def __init__(self, K, y, n_outputs, p, loss, C, alpha=0.0, radius=None):
        super().__init__(K, y, n_outputs, p, C=C, radius=radius)
        self.loss, self.alpha = loss, alpha

    def point(self):
        if self.radius is None:
            t = max(1, self.t)
            return self.A.copy(), plain_link(self.norms(), self.q, self.alpha * t) / (t * self.lam)
        return super().point()

    def response(self, i, curvature, scores):
        row = np.zeros(scores.size)
        self.loss.step(scores, curvature * self.length(i) ** 2, self.y[i], 1.0, row)
        return row

    def length(self, i):
        return plain_norm(np.sqrt(self.K[:, i, i]), self.q)

    def step(self, i):
        scores = self.scores([i], self.point()[1])[0]
        if self.radius is None:
            self.t += 1
            self.A[i] += self.response(i, (self.q - 1.0) / (self.t * self.lam), scores)
            return
        eta = self.shrink(np.linalg.norm(self.response(i, 0.0, scores)) * self.length(i))
        self.A[i] += eta * self.response(i, (self.q - 1.0) * eta / self.q, scores)
        self.project()


@every_loss
@pytest.mark.parametrize("p", [1.2, 2.0])
@pytest.mark.parametrize("radius, alpha", [(None, 0.0), (None, 0.02), (1.5, 0.0), (np.inf, 0.0)])
def test_visits(loss, p, radius, alpha):
    K, y, problem = make_problem(loss, p=p, C=2.0, alpha=alpha)
    twin = TwinLoss(K, y, problem.n_classes, problem.p, loss, 2.0, alpha, radius)
    stream = Stream(problem)
    if radius is None:
        stream.start_stage(*problem.visits(visit_ufo, visit_ufo_loss), averages=True)
    else:
        stream.start_stage(*problem.visits(visit_obscure, visit_obscure_loss), False, radius)
    seen = np.random.default_rng(1).integers(y.size, size=40)
    for i in seen:
        stream.visit(np.array([i]))
        twin.step(i)
        coef, weights, *_ = stream.point()
        wanted, wanted_weights = twin.point()
        assert_allclose(coef, wanted, atol=1e-8 * max(np.abs(wanted).max(), 1.0))
        assert_allclose(weights, wanted_weights, atol=1e-8 * max(1.0, wanted_weights.max()))
    if radius is None:  # a mean of feasible points, up to the number of visits
        B = stream.dual_point()[0] * min(1.0, 40 / (y.size * np.bincount(seen).max()))
        assert_allclose(problem.dual_bound(B)[2], B, atol=1e-9)


# --- exact optima


def conic_losses(loss, scores, y):
    if isinstance(loss, Squared):
        return 0.5 * cp.square(scores[:, 0] - y)
    if isinstance(loss, Huber):
        return 0.5 * cp.huber(scores[:, 0] - y, loss.delta)
    if isinstance(loss, EpsilonInsensitive):
        return cp.pos(cp.abs(scores[:, 0] - y) - loss.epsilon)
    own = cp.sum(cp.multiply(scores, np.eye(3)[y]), axis=1)
    if isinstance(loss, Logistic):
        return cp.log_sum_exp(scores, axis=1) - own
    wrong = 1.0 - np.eye(3)[y]
    return cp.square(cp.pos(cp.max(scores + wrong, axis=1) - own))


def optimum(K, y, problem, loss, C, alpha, weight):
    options = {"loss": partial(conic_losses, loss), "weight": weight, "width": problem.n_classes}
    return conic_solution(K, y, problem.p, C, alpha, **options)[0]


@every_loss
@pytest.mark.parametrize("p, C, alpha", [(2.0, 10.0, 0.0), (1.25, 1.0, 0.0), ("auto", 20.0, 0.02)])
def test_the_gap_holds_the_optimum(loss, p, C, alpha):
    weight = np.random.default_rng(5).integers(0, 4, size=24).astype(float)
    K, y, problem = make_problem(loss, p=p, C=C, alpha=alpha, weight=weight)
    best = optimum(K, y, problem, loss, C, alpha, weight)
    solvers = [solve_ufo] if alpha else [solve_ufo, solve_obscure, solve_pegasos_mkl]
    for solve in solvers:
        for ends in ({"n_epochs": 8}, {"n_epochs": 3, "tol": 1e-5, "finish": True}):
            result = solve(problem, rng=np.random.default_rng(0), **ends)
            assert result.objective >= best * (1.0 - 1e-6)
            assert result.objective - result.dual_gap <= best * (1.0 + 1e-6)
            by_hand = problem.regularizer(result.kernel_weights * block_norms(K, result.dual_coef))
            scores = class_scores(K, result.dual_coef, result.kernel_weights)
            losses = [loss.value(row, target) for row, target in zip(scores, y, strict=True)]
            by_hand += weight @ losses / weight.sum()
            assert result.objective == pytest.approx(by_hand, rel=1e-9)
        assert result.converged and result.dual_gap <= 1e-5 * result.objective
    reference = solve_reference(problem, tol=1e-5)
    assert reference.objective == pytest.approx(best, rel=2e-5)


# --- limits

EXACT = {"tol": 1e-12, "random_state": 0, "n_epochs": 5}


def kernel_and_numbers(n=40, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    kernel = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(-1))
    return kernel, np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=n) + 3.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cls", [OBSCURERegressor, UFOMKLRegressor])
@pytest.mark.parametrize("C", [0.1, 1000.0])
def test_one_kernel_is_kernel_ridge(cls, C):
    kernel, y = kernel_and_numbers()
    weight = np.arange(y.size) % 4 + 0.5
    model = cls("precomputed", C=C, **EXACT).fit(kernel[None], y, sample_weight=weight)
    centre = np.average(y, weights=weight)
    ridge = KernelRidge(alpha=1.0 / C, kernel="precomputed").fit(kernel, y - centre, sample_weight=weight)
    assert_allclose(model.predict(kernel[None]), ridge.predict(kernel) + centre, atol=1e-6)
    assert model.intercept_ == pytest.approx(centre) and model.dual_gap_ >= 0.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_kernel_is_kernel_logistic_regression():
    kernel, numbers = kernel_and_numbers()
    y = np.digitize(numbers, [2.6, 3.4])
    model = OBSCURE("precomputed", C=5.0, loss="logistic", **EXACT).fit(kernel[None], y)
    maps = features_of(kernel)

    def objective(flat):
        w = flat.reshape(maps.shape[1], 3)
        scores = maps @ w
        value = 0.5 * np.sum(w**2) + 5.0 * np.sum(logsumexp(scores, axis=1) - scores[np.arange(y.size), y])
        return value, (w + 5.0 * maps.T @ (softmax(scores, axis=1) - np.eye(3)[y])).ravel()

    options = {"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-10}
    best = minimize(objective, np.zeros(3 * maps.shape[1]), jac=True, method="L-BFGS-B", options=options)
    wanted = softmax(maps @ best.x.reshape(-1, 3), axis=1)
    assert_allclose(model.predict_proba(kernel[None]), wanted, atol=1e-6)
    assert_allclose(np.exp(model.predict_log_proba(kernel[None])), wanted, atol=1e-6)


def test_the_ascent_ends_by_the_gap_of_its_end_point():
    """With a nearly constant kernel an update moves all scores: the gap during a sweep is far below it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = (X[:, 0] + 0.3 * rng.normal(size=200) > 0.0).astype(np.int64)
    kernel = 3e4 * np.exp(-0.05 * np.square(X[:, None] - X).sum(axis=2))
    machine = LossMachine(kernel, y, np.ones(200), 200)
    B = np.zeros((200, 2))
    scores = np.zeros((2, 200))
    for tolerance in (0.05, 0.02, 0.01):
        solved, _ = ascend_loss(Logistic(), machine, B, scores, tolerance, 5000)
        of_samples = kernel @ B / 200
        losses = logsumexp(of_samples, axis=1) - of_samples[np.arange(200), y]
        shares = np.eye(2)[y] - B
        entropy = -np.sum(shares * np.log(np.maximum(shares, 1e-300)), axis=1)
        assert solved and np.mean(losses - entropy + np.sum(B * of_samples, axis=1)) <= 1.001 * tolerance


# --- estimators


def test_learned_weights_ignore_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=150)
    cues = [(str(k), "rbf", [k]) for k in range(4)]
    for cls, more in ((OBSCURERegressor, {"p": 1.1}), (UFOMKLRegressor, {"alpha": 0.1})):
        model = cls(cues, C=10.0, random_state=0, **more).fit(X[:100], y[:100])
        assert model.kernel_weights_.argmax() == 0 and model.score(X[100:], y[100:]) > 0.7
        assert model.dual_gap_ <= 0.01 * model.objective_ and model.converged_
        assert "online_error" not in model.history_ and not hasattr(model, "online_errors_")
        assert model.summary()["share"].iloc[0] > 0.5
    assert not model.kernel_weights_[1:].any()


def test_a_loss_is_saved_and_a_broken_regressor_is_not(tmp_path):
    kernel, y = kernel_and_numbers()
    model = UFOMKLRegressor("precomputed", loss=Huber(0.5), random_state=0).fit(kernel[None], y)
    model.save(tmp_path / "model.npz")
    assert load(tmp_path / "model.npz").loss == Huber(0.5)
    model.intercept_ = np.nan
    with pytest.raises(ValueError, match="was not saved.*finite prediction"):
        model.save(tmp_path / "broken.npz")


def test_losses_of_other_targets_and_large_targets_are_refused():
    kernel, y = kernel_and_numbers(20)
    for model, target, message in (
        (OBSCURE("precomputed", loss=Squared()), y > 3.0, "loss must be one of .'logistic'"),
        (OBSCURERegressor("precomputed", loss=Logistic()), y, "loss must be one of .'epsilon_insensitive'"),
        (OBSCURERegressor("precomputed", loss=Huber(-1.0)), y, "delta must be"),
        (UFOMKLRegressor("precomputed"), 1e40 * y, "y must .* to 1e.20"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(kernel[None], target)
    bank = KernelBank.from_stack(kernel[None])
    for targets, loss, n_outputs, message in (
        (np.full(20, np.nan), "squared", 1, "targets must be a list of finite numbers"),
        (np.arange(20), "logistic", 3, "targets must be a list of integers from 0 to 2"),
    ):
        with pytest.raises(ValueError, match=message):
            LossProblem(bank, targets, loss, n_outputs)
    assert not hasattr(OBSCURE(), "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        OBSCURE(loss="squared_hinge").predict_proba(kernel)


def test_kernels_on_demand():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] ** 2
    cues = [(str(k), "rbf", [k]) for k in range(3)]
    options = {"random_state": 0, "n_epochs": 5, "tol": None}
    models = [OBSCURERegressor(cues, memory=m, **options).fit(X, y) for m in (1e9, 1e4)]
    assert_allclose(models[0].predict(X), models[1].predict(X), rtol=1e-5, atol=1e-7)


def test_the_added_loss_of_the_book():
    """Quantiles; its duals are the conjugates, the gap is certified."""
    added = {}
    exec(compile(blocks_of_the_book("A loss")[0], "extend.md", "exec"), added)
    assert 0.85 < added["below"] < 0.95
    assert 0.0 <= added["model"].dual_gap_ <= 0.01 * added["model"].objective_
    test_steps_are_the_maxima_and_duals_the_conjugates(added["Quantile"](0.3))
