"""MKTL as an optimiser: against plain twins, a conic solver, limits that are known, and the theorems.

Kernels have shape (F0, n, n), scores (n, K), labels are 0 .. M-1, `weight` holds the c_i of the samples.
"""

import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from plain_mkl import (
    TwinBatch,
    TwinOM2,
    all_coefficients,
    auto_p,
    conic_solution,
    dual_exponent,
    make_stack,
    plain_losses,
    plain_norm,
    plain_objective,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import MKLProblem, solve_obscure, solve_reference
from cuelearn.mkl.stochastic.training import draw_order
from cuelearn.mktl import MKTL, P_RANGE
from cuelearn.mktl.mktl import TransferProblem, solve_mktl


def n_groups(n_kernels, n_scores, n_classes, loss):
    return n_kernels + n_scores * (n_classes if loss == "multiclass" else 1)


def groups(K, S, n_classes, loss):
    """Kernels of all groups, of the scores class by class, and which classes each knows (section 6.3).

    With the hinge loss a column of scores is a group of both classes.
    """
    products = np.einsum("iz,kz->zik", S, S)
    known = np.ones((len(K), n_classes)), np.ones((S.shape[1], n_classes))
    if loss == "multiclass":
        products = np.tile(products, (n_classes, 1, 1))
        known = known[0], np.repeat(np.eye(n_classes), S.shape[1], axis=0)
    return np.concatenate([K, products]), np.concatenate(known)


def conic_optimum(K, S, y, p, C, loss="multiclass", weight=None):
    """The value, and the primal norms of all groups; samples of a class have one weight."""
    of_class = None if weight is None else np.array([weight[y == c][0] for c in range(int(y.max()) + 1)])
    return conic_solution(K, y, p, C, loss=loss, of_class=of_class, S=S)[:2]


def make_task(seed, n=24, n_kernels=1, n_classes=3, n_scores=4, useful=2):
    """RBF kernels, labels with every class present, and score columns of which the first know a class."""
    rng = np.random.default_rng(seed)
    K, y = make_stack(rng, n, n_kernels, n_classes)
    S = rng.normal(size=(n, n_scores))
    for z in range(min(useful, n_scores)):
        S[:, z] += np.where(y == z % n_classes, 1.2, -0.8)
    S /= np.sqrt((S**2).mean(axis=0)) if n_scores else 1.0
    return K, S, y


# what the conic solver's own tolerance leaves uncertain, relative to the optimum
SLACK = 1e-6
LOSSES = [("multiclass", 3), ("hinge", 2), ("multiclass", 2)]
UNFINISHED = {"tol": None, "finish": False}


def problem_of(K, S, y, *, loss="multiclass", weight=None, dtype=None, **settings):
    bank = KernelBank.from_stack(np.asarray(K) if dtype is None else np.asarray(K, dtype=dtype))
    of_classes = None if weight is None else {c: weight[y == c][0] for c in range(int(y.max()) + 1)}
    return TransferProblem(bank, y, int(y.max()) + 1, S, loss=loss, class_weight=of_classes, **settings)


def fit(K, S, y, loss="auto", **options):
    """An estimator on kernel matrices and plain score columns, taken as they are."""
    model = MKTL("precomputed", **{"scaling": None, "random_state": 0, **options})
    if loss != "auto":
        model._loss = lambda: loss
    return model.fit(K, y, scores=S)


def fitted_norms_and_scores(model, K, S, loss):
    """Lengths of the hyperplanes of all groups, and scores, from the fitted attributes of an estimator."""
    coef, weights, V = all_coefficients(model), model.kernel_weights_, model.transfer_weights_
    squares = np.einsum("ic,jik,kc->jc", coef, K, coef)
    scores = np.tensordot(weights, K, 1) @ coef + S @ V.T
    if loss == "hinge":  # dual_coef_ holds half a binary hyperplane for each class
        return np.concatenate([2.0 * weights * np.sqrt(squares[:, 1]), 2.0 * np.abs(V[1])]), scores
    return np.concatenate([weights * np.sqrt(squares.sum(axis=1)), np.abs(V).ravel()]), scores


def random_weight(y, seed=0):
    """Weights of the classes, one for each sample."""
    return np.random.default_rng([seed, 3]).uniform(0.3, 3.0, size=int(y.max()) + 1)[y]


@pytest.mark.parametrize("weighted, sampling", [(False, "permutation"), (True, "iid")])
@pytest.mark.parametrize("n_kernels, n_scores", [(1, 4), (2, 3), (1, 0)])
@pytest.mark.parametrize("loss, n_classes", LOSSES)
@pytest.mark.parametrize(
    "p, C, radius", [(1.05, 1.0, "capped"), (1.3, 30.0, "online"), (2.0, 0.1, 0.4), (1.5, 0.5, np.inf)]
)
def test_every_visit_equals_the_twin(p, C, radius, loss, n_classes, n_kernels, n_scores, weighted, sampling):
    seed = n_kernels + 10 * n_scores
    K, S, y = make_task(seed, n=21, n_kernels=n_kernels, n_classes=n_classes, n_scores=n_scores)
    S[:, 3:] = 0.0  # a column of zeros counts for nothing
    weight = random_weight(y) if weighted else np.ones(21)
    problem = problem_of(K, S, y, loss=loss, weight=weight, p=p, C=C)
    options = {"n_epochs_online": 2, "n_epochs": 4, "eta": 0.4, "radius": radius, "sampling": sampling}
    result = solve_mktl(problem, shuffle=False, rng=np.random.default_rng(9), **options, **UNFINISHED)

    rng = np.random.default_rng(9)
    kernels, known = groups(K, S, n_classes, loss)
    given = kernels, y, n_classes, p, 0.5 if loss == "hinge" else 1.0, weight, known
    online, mistakes = TwinOM2(*given, eta=0.4), []
    for epoch in range(2):
        n_updates = online.n_updates
        mistakes += [online.step(i) for i in draw_order(21, rng, shuffle=epoch > 0, sampling=sampling)]
        if online.n_updates == n_updates:
            break
    R = radius
    if isinstance(radius, str):
        R = online.radius(C)
        if radius == "capped":
            R = min(R, np.sqrt(2.0 * C * weight.sum()))
    assert result.extra["radius"] == pytest.approx(R, rel=1e-9)
    twin = TwinBatch(*given, C=C, radius=R, A=online.A)
    for _ in range(4):
        mistakes += [twin.step(i) for i in draw_order(21, rng, sampling=sampling)]

    assert_array_equal(result.online_errors, mistakes)
    assert result.n_updates == online.n_updates + twin.n_updates and result.n_iter == epoch + 5
    assert_allclose(result.dual_coef, twin.A, atol=1e-9 * np.abs(twin.A).max())
    weights = twin.point()[1]
    assert_allclose(result.kernel_weights, weights, atol=1e-9 * weights.max())
    options = {"factor": twin.factor, "classes": known, "cost": weight}
    objective = plain_objective(kernels, y, twin.A, weights, p, C, **options)
    assert result.objective == pytest.approx(objective, rel=1e-9)


LONG = [pytest.param(seed, 1e-5, marks=pytest.mark.long) for seed in range(30, 150)]


@pytest.mark.parametrize("seed, tol", [*((seed, 1e-4) for seed in range(30)), *LONG])
def test_optimum_of_the_conic_solver(seed, tol):
    """With a column twice, which share a weight, and a column of zeros, which has none."""
    rng = np.random.default_rng([seed, 17])
    loss, n_classes = LOSSES[seed % 3]
    if loss == "multiclass" and n_classes > 2:
        n_classes = int(rng.integers(3, 6))
    n_kernels, n_scores = int(rng.integers(1, 3)), int(rng.integers(1, 7))
    n = int(rng.integers(15, 41))
    p = (1.05, "auto", 1.4, 2.0, 1.01)[seed % 5]
    C = (0.1, 1.0, 10.0, 100.0)[seed // 2 % 4]
    K, S, y = make_task([seed, 5], n=n, n_kernels=n_kernels, n_classes=n_classes, n_scores=n_scores)
    S = np.column_stack([S, S[:, 0], np.zeros(n)])
    weight = random_weight(y, seed) if seed // 3 % 2 else None
    number = auto_p(n_groups(len(K), S.shape[1], n_classes, loss)) if p == "auto" else p
    best, norms = conic_optimum(K, S, y, number, C, loss, weight)

    class_weight = None if weight is None else {c: float(weight[y == c][0]) for c in range(n_classes)}
    settings = {"loss": loss, "class_weight": class_weight, "random_state": seed}
    model = fit(K, S, y, p=p, C=C, tol=tol, **settings)
    assert model.p_ == pytest.approx(number, rel=1e-12)
    assert model.converged_ and model.dual_gap_ <= tol * model.objective_
    slack = SLACK * best
    if number == 1.01:
        slack *= 5.0  # the conic solver is less exact so near to 1
    assert -slack <= model.objective_ - best <= model.dual_gap_ + slack
    assert model.objective_ - model.dual_gap_ <= best + slack
    V = model.transfer_weights_
    assert_allclose(V[:, -2], V[:, 0], atol=1e-9 * np.abs(V).max())
    assert_array_equal(V[:, -1], 0.0)
    found, scores = fitted_norms_and_scores(model, K, S, loss)
    losses = plain_losses(scores, y) if weight is None else weight * plain_losses(scores, y)
    value = 0.5 / (C * n) * plain_norm(found, number) ** 2 + losses.mean()
    assert model.objective_ == pytest.approx(value, rel=1e-8)
    # lambda/2 ||w - w*||^2 (p-1) <= P(w) - P(w*): the primal point is close, not its value only
    distance = np.abs(found - norms).max()
    away = np.sqrt(2.0 * (tol * best + SLACK * best) * C * y.size / (number - 1.0))
    assert distance <= away + 1e-3 * norms.max()


@pytest.mark.parametrize("p", [1.01, 1.3, 2.0])
@pytest.mark.parametrize("loss, n_classes", LOSSES)
def test_the_certificate_is_honest_after_any_number_of_epochs(loss, n_classes, p):
    K, S, y = make_task(2, n=25, n_classes=n_classes, n_scores=4)
    weight = random_weight(y)
    best, _ = conic_optimum(K, S, y, p, 5.0, loss, weight)
    for sampling, ending in (("permutation", {"tol": 1e-5}), ("iid", UNFINISHED)):
        options = {"n_epochs_online": 2, "n_epochs": 40, "measure": "every", "sampling": sampling}
        problem = problem_of(K, S, y, loss=loss, weight=weight, p=p, C=5.0)
        result = solve_mktl(problem, rng=np.random.default_rng(1), **options, **ending)
        history = result.history
        assert (history.objective >= best * (1.0 - SLACK)).all()
        assert (history.objective - history.dual_gap <= best * (1.0 + SLACK)).all()
        assert history.dual_gap.iloc[-1] == result.dual_gap


@pytest.mark.parametrize("class_weight", [None, "positive", "balanced", {0: 0.5, 1: 4.0}])
def test_p_2_with_the_hinge_loss_is_liblinear(class_weight):
    """One linear SVM without bias on all features side by side, with liblinear's weights of the classes."""
    K, S, _ = make_task(11, n=50, n_kernels=2, n_classes=2, n_scores=4)
    y = (np.arange(50) < 12).astype(int)
    model = fit(K, S, y, p=2.0, C=2.0, class_weight=class_weight, tol=1e-7)
    weights = {0: 1.0, 1: 38 / 12} if class_weight == "positive" else class_weight
    features = np.concatenate([np.linalg.cholesky(kernel) for kernel in K] + [S], axis=1)
    exact = {"fit_intercept": False, "tol": 1e-10, "max_iter": 1_000_000, "random_state": 0}
    svm = LinearSVC(C=2.0, loss="hinge", class_weight=weights, **exact).fit(features, y)
    wanted = svm.decision_function(features)
    assert_allclose(model.decision_function(K, scores=S), wanted, atol=5e-3 * np.abs(wanted).max())
    plane = svm.coef_[0, -4:]
    assert_allclose(model.transfer_weights_[1], 0.5 * plane, atol=5e-3 * np.abs(plane).max())
    share = np.array([model.class_weight_[c] for c in y])
    hinge = share @ np.maximum(0.0, 1.0 - (2 * y - 1) * wanted) / 50
    assert model.objective_ == pytest.approx(0.5 / 100.0 * (svm.coef_**2).sum() + hinge, rel=1e-5)


def test_automatic_p():
    sizes = (3, "multiclass", 1, 5), (2, "hinge", 2, 12), (4, "multiclass", 1, 0), (2, "hinge", 1, 1)
    for n_classes, loss, n_kernels, n_scores in sizes:
        K, S, y = make_task(16, n=20, n_kernels=n_kernels, n_classes=n_classes, n_scores=n_scores)
        every = n_groups(n_kernels, n_scores, n_classes, loss)
        for p, counted in (("auto", every), ("auto-priors", n_scores)):
            model = fit(K, S, y, p=p, tol=None, n_epochs=1)
            assert model.q_ == pytest.approx(dual_exponent(auto_p(counted))) and model.q_ >= 2.0
            assert model.p_ == pytest.approx(auto_p(counted))


def test_p_by_cross_validation():
    K, S, y = make_task(18, n=45, n_scores=8)
    assert P_RANGE == (1.01, 1.05, 1.10, 1.15, 1.20, 1.25, 1.30, 1.40, 1.50)
    for p, wanted in (("cv", P_RANGE), (np.array([1.2, 2.0]), (1.2, 2.0))):
        model = fit(K, S, y, p=p, n_epochs=5, tol=1e-3)
        assert tuple(model.p_scores_) == wanted
        assert model.p_ in wanted and model.p_scores_[model.p_] == max(model.p_scores_.values())
        alone = fit(K, S, y, p=model.p_, n_epochs=5, tol=1e-3)
        assert model.objective_ == pytest.approx(alone.objective_, rel=2e-3)
    assert fit(K, S, y, p=p, n_epochs=5, tol=1e-3).p_scores_ == model.p_scores_


@pytest.mark.parametrize(
    "n, n_classes, n_scores, scale", [(2, 2, 3, 1.0), (12, 12, 3, 1.0), (9, 3, 60, 1.0), (30, 3, 4, 30.0)]
)
def test_odd_sizes(n, n_classes, n_scores, scale):
    K, S, y = make_task(20, n=n, n_classes=n_classes, n_scores=n_scores)
    model = fit(K, scale * S, y, loss="multiclass", p="auto", C=10.0, tol=1e-4)
    best, _ = conic_optimum(K, scale * S, y, auto_p(1 + n_scores * n_classes), 10.0)
    assert -SLACK * best <= model.objective_ - best <= 1e-4 * model.objective_


def test_finishing():
    K, S, y = make_task(23, n=60, n_scores=6)
    problem = problem_of(K, S, y, p=1.1, C=100.0)

    def solve(**options):
        return solve_mktl(problem, n_epochs=3, rng=np.random.default_rng(0), **options)

    result = solve(tol=1e-3)
    assert result.converged and result.dual_gap <= 1e-3 * result.objective
    assert list(dict.fromkeys(result.history.stage)) == ["online", "dual"]
    last = result.history.iloc[-1]
    assert (last.objective, last.dual_gap) == (result.objective, result.dual_gap)
    unfinished = solve(tol=None)
    with pytest.warns(ConvergenceWarning, match="tol"):
        rough = solve(tol=1e-3, finish=False)
    assert not rough.converged and rough.dual_gap > 1e-3 * rough.objective
    assert "dual" not in {*rough.history.stage, *unfinished.history.stage}
    assert_array_equal(unfinished.dual_coef, rough.dual_coef)
    # without epochs no online stage either, or, where nothing follows, this stage alone
    model = fit(K, S, y, p=1.1, C=100.0, n_epochs=0, tol=1e-3)
    assert abs(model.objective_ - result.objective) <= 1e-3 * result.objective
    assert set(model.history_.stage) == {"dual"} and model.n_iter_ == 0
    assert set(fit(K, S, y, n_epochs=0, tol=None).history_.stage) == {"online"}


def test_memory_for_the_scores_is_that_of_their_weights(peak_of):
    n, n_classes, n_scores = 300, 20, 200
    K, S, y = make_task(26, n=n, n_classes=n_classes, n_scores=n_scores, useful=20)
    bank = KernelBank.from_stack(K.astype(np.float32))

    def solve(columns):
        problem = TransferProblem(bank, y, n_classes, S[:, :columns], p="auto", C=1.0, loss="multiclass")
        options = {"n_epochs_online": 1, "n_epochs": 2, "tol": 0.2}
        return lambda: solve_mktl(problem, rng=np.random.default_rng(0), **options)

    few, many = peak_of(solve(5)), peak_of(solve(n_scores))
    per_group = 8 * n_scores * n_classes  # one number for each group
    assert many - few < 20 * per_group + 4 * S.nbytes
    assert many < 0.5 * 8 * n * n_classes * n_scores


@pytest.mark.parametrize("memory", [2e9, 2e5])
@pytest.mark.parametrize("n_classes", [4, 2])
def test_same_bits_for_any_number_of_threads(n_classes, memory):
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("numba was started with one thread")
    rng = np.random.default_rng(0)
    y = np.arange(200) % n_classes
    X = rng.normal(size=(200, 12)) + 0.7 * rng.normal(size=(n_classes, 12))[y]
    S = rng.normal(size=(200, 30)) + 0.5 * rng.normal(size=(n_classes, 30))[y]
    cues = [("a", RBF(), slice(0, 6)), ("b", RBF(), slice(6, 12))]
    results = []
    for threads in (1, 2, 2):
        numba.set_num_threads(threads)
        with threadpool_limits(threads):
            model = MKTL(cues, C=10.0, class_weight="balanced", random_state=3)
            model.memory = memory
            model.fit(X, y, scores=S)
            scores = model.decision_function(X[::-1], scores=S[::-1])
        results.append([scores, model.dual_coef_, model.transfer_weights_, model.objective_, model.dual_gap_])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert_array_equal(one, two)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss, n_classes", LOSSES[:2])
@pytest.mark.parametrize("C, p", [(0.1, 2.0), (10.0, 1.2)])
def test_rate_of_the_batch_stage(C, p, loss, n_classes, weighted):
    """Theorem 4.2's bound of the expectation (delta = 1), over independent draws."""
    K, S, y = make_task(29, n=25, n_classes=n_classes, n_scores=4)
    S = S / np.abs(S).max(axis=0)
    weight = random_weight(y) if weighted else np.ones(25)
    kernels, known = groups(K, S, n_classes, loss)
    twin = TwinOM2(kernels, y, n_classes, p, 0.5 if loss == "hinge" else 1.0, weight, known)
    rivals = [(i, rival) for i, rival in np.ndindex(25, n_classes) if rival != y[i]]
    L = max(weight[i] * twin.gradient_norm(i, rival) for i, rival in rivals)
    q, lam = dual_exponent(p), 1.0 / (C * 25)
    best, _ = conic_optimum(K, S, y, p, C, loss, weight)
    problem = problem_of(K, S, y, loss=loss, weight=weight, p=p, C=C)
    found, radii = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        result = solve_mktl(problem, n_epochs=12, sampling="iid", measure="every", rng=rng, **UNFINISHED)
        batch = result.history[result.history.stage == "batch"]
        found.append(batch.objective.to_numpy())
        radii.append(result.extra["radius"])
    R, T = max(radii), 25.0 * np.arange(1, 13)
    c = lam * R + L
    root = c * np.sqrt(q * (1.0 + np.log(T)))
    bound = root * np.minimum(root / (lam * T), 4.0 * R / np.sqrt(T))
    assert (np.mean(found, axis=0) - best <= bound).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss, n_classes", LOSSES)
@pytest.mark.parametrize(
    "options", [{}, {"sampling": "iid", "shuffle": False, "radius": "online", "eta": 0.1}], ids=str
)
def test_without_priors_it_is_obscure(loss, n_classes, options, dtype):
    K, S, y = make_task(4, n=40, n_kernels=3, n_classes=n_classes)
    problem = problem_of(K, S[:, :0], y, loss=loss, dtype=dtype, p=1.2, C=5.0)
    plain = MKLProblem(problem.bank, y, n_classes, p=1.2, C=5.0, loss=loss)
    options = {"n_epochs_online": 3, "n_epochs": 6, **options}
    found = solve_mktl(problem, tol=None, rng=np.random.default_rng(7), **options)
    wanted = solve_obscure(plain, rng=np.random.default_rng(7), **options)
    for name in ("dual_coef", "kernel_weights", "online_errors", "n_updates", "n_iter", "extra"):
        np.testing.assert_equal(getattr(found, name), getattr(wanted, name))
    assert found.objective == pytest.approx(wanted.objective, rel=1e-12)
    assert found.dual_gap == pytest.approx(wanted.dual_gap, rel=1e-9)
    if dtype == np.float64 and len(options) == 2:
        reference = solve_reference(plain, tol=1e-7)
        finished = solve_mktl(problem, tol=1e-6, rng=np.random.default_rng(7), **options)
        assert finished.objective == pytest.approx(reference.objective, rel=2e-6)
        assert finished.dual_gap <= 1e-6 * finished.objective
