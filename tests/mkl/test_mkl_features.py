"""Models on explicit features: those of the kernels, without samples; streams, files and certificates."""

import pickle

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from mkl_data import EXPLICIT_CUES as CUES
from mkl_data import STOCHASTIC, make_data
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler

from cuelearn.core.estimator import load
from cuelearn.datasets import load_mnist
from cuelearn.kernels import RBF, FeatureMap, KernelBank, Linear
from cuelearn.kernels.features import FeatureBank
from cuelearn.mkl import OBSCURE, OM2, UFOMKL, PegasosMKL
from cuelearn.mkl.optimum.blocks import BlockProblem
from cuelearn.mkl.optimum.dual import finish_dual
from cuelearn.omcl import MarginQuery

N = 90
X, Y = make_data(N)
NEW = make_data(30, seed=1)[0]


def kernels(X_new=None, **options):
    bank = KernelBank(CUES, X, dtype=np.float64, **options)
    if X_new is None:
        return bank.stack
    return np.concatenate([block for _, block in bank.cross(X_new).blocks()], axis=1)


def fitted(cls, n_epochs=3, **options):
    if cls is not OM2:
        options.setdefault("tol", None)
    model = cls(CUES, n_epochs=n_epochs, random_state=0, **options)
    given = cls("precomputed", n_epochs=n_epochs, random_state=0, **options)
    return model, given


@pytest.mark.parametrize("cls", STOCHASTIC)
@pytest.mark.parametrize(
    "options", [{}, {"p": 1.2, "C": 0.3, "class_weight": "balanced"}, {"normalize": False}]
)
def test_the_model_is_that_of_the_kernels(cls, options):
    model, given = fitted(cls, **options)
    weights = np.random.default_rng(0).integers(0, 3, N)
    model.fit(X, Y, sample_weight=weights)
    normalize = options.get("normalize", True)
    given.fit(kernels(normalize=normalize), Y, sample_weight=weights)
    wanted = given.decision_function(kernels(NEW, normalize=normalize))
    assert_allclose(model.decision_function(NEW), wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())
    assert_allclose(model.kernel_weights_, given.kernel_weights_, rtol=1e-6)
    assert_array_equal(model.online_errors_, given.online_errors_)
    assert [block.shape for block in model.blocks_] == [(8, 3), (8, 3), (2, 3)]
    assert model.support_.size == 0 and model.dual_coef_.shape == (0, 3)
    assert_allclose(model.summary()["norm"], given.summary()["norm"], rtol=1e-5)


def test_sparse_and_binary_models_are_those_of_the_kernels():
    for options, y in (({"alpha": 0.05}, Y), ({"loss": "hinge", "alpha": 0.01}, Y > 0)):
        model, given = fitted(UFOMKL, **options)
        model.fit(X, y)
        given.fit(kernels(), y)
        assert_allclose(model.decision_function(NEW), given.decision_function(kernels(NEW)), atol=1e-5)
        assert_array_equal(model.kernel_weights_ == 0.0, given.kernel_weights_ == 0.0)


def test_without_ascent_the_gap_is_that_of_the_kernels():
    for cls in (OBSCURE, PegasosMKL, UFOMKL):
        model, given = fitted(cls, n_epochs=9, tol=1e-4, finish=False, C=0.1)
        with pytest.warns(ConvergenceWarning):
            model.fit(X, Y)
            given.fit(kernels(), Y)
        for name in ("objective_", "dual_gap_"):
            assert_allclose(getattr(model, name), getattr(given, name), rtol=1e-5)


def test_without_tol_nothing_is_certified():
    model, _ = fitted(UFOMKL, n_epochs=1)
    model.fit(X, Y)
    assert np.isnan(model.objective_) and np.isnan(model.dual_gap_) and len(model.visits_) == N


def features():
    bank = FeatureBank(CUES, X)
    return bank, bank.features(X).astype(np.float64)


def plain_values(bank, Phi, blocks, weights, B, p, C, alpha):
    """Objective of a primal point and value of a dual one, by their definitions."""
    n = len(Phi)
    lam = 1.0 / (C * n)
    q = p / (p - 1.0)
    cues = [slice(*pair) for pair in zip(bank.starts, bank.starts[1:], strict=False)]
    W = np.concatenate([w * blocks[cue] for w, cue in zip(weights, cues, strict=True)])
    norms = np.array([np.linalg.norm(W[cue]) for cue in cues])
    scores = Phi @ W
    own = scores[np.arange(n), Y]
    scores[np.arange(n), Y] = -np.inf
    loss = np.maximum(0.0, 1.0 - own + scores.max(axis=1)).mean()
    primal = lam / 2 * np.sum(norms**p) ** (2 / p) + alpha * norms.sum() + loss
    theta = Phi.T @ B / n
    excess = np.maximum(0.0, [np.linalg.norm(theta[cue]) - alpha for cue in cues])
    dual = B[np.arange(n), Y].sum() / n - np.sum(excess**q) ** (2 / q) / (2 * lam)
    return primal, dual


@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("memory", [2e9, 0.0], ids=["in memory", "on disk"])
def test_the_certificate_is_that_of_the_definitions(alpha, memory):
    bank, Phi = features()
    bank = FeatureBank(CUES, X, memory=memory)
    problem = BlockProblem(bank, Y, 3, p=1.3, C=2.0, alpha=alpha)
    bank.hold()
    ascent = problem.ascent(np.zeros((N, 3)))
    for _ in range(40):
        ascent.round(1e-3)
        ascent.reweigh(True)
    ascent.measure()
    blocks, weights, _ = ascent.best
    B = np.asarray(ascent.B)
    assert np.all(np.abs(B.sum(axis=1)) < 1e-12)
    assert np.all(np.delete(B.ravel(), np.arange(N) * 3 + Y) <= 0.0) and B.max() <= 1.0
    assert_allclose(ascent.blocks.T, Phi.T @ B / N, atol=1e-12)
    primal, dual = plain_values(bank, Phi, blocks, weights, B, 1.3, 2.0, alpha)
    assert_allclose(ascent.objective, primal, rtol=1e-6)
    assert dual - 1e-9 <= ascent.bound <= primal


def general_optimum(Phi, starts, labels, p, C, alpha):
    """Of the primal problem, by an interior-point method."""
    n, width = Phi.shape
    is_class = np.eye(labels.max() + 1)[labels]
    W = cp.Variable((width, is_class.shape[1]))
    scores = Phi @ W
    own = cp.sum(cp.multiply(scores, is_class), axis=1)
    rivals = cp.max(scores - 1e3 * is_class, axis=1)
    norms = cp.hstack([cp.norm(W[a:b], "fro") for a, b in zip(starts, starts[1:], strict=False)])
    value = cp.square(cp.pnorm(norms, p)) / (2 * C * n) + alpha * cp.sum(norms)
    value += cp.sum(cp.pos(1 - own + rivals)) / n
    return cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL)


def assert_certified(model, optimum, tol):
    assert model.dual_gap_ <= tol * model.objective_
    rounding = 1e-6 * optimum
    assert model.objective_ - model.dual_gap_ - rounding <= optimum <= model.objective_ + rounding


@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_the_certificate_holds_the_optimum_of_a_general_solver(alpha):
    bank, Phi = features()
    optimum = general_optimum(Phi, bank.starts, Y, 1.5, 2.0, alpha)
    model = UFOMKL(CUES, p=1.5, C=2.0, alpha=alpha, tol=1e-3, random_state=0).fit(X, Y)
    assert_certified(model, optimum, 1e-3)


@pytest.mark.long
def test_the_certificate_of_2000_digits_holds_the_optimum():
    data = load_mnist(n_train=6000, n_test=0)
    rows = np.flatnonzero(data.y < 4)[:2000]
    digits, labels = data.X[rows], data.y[rows]
    maps = [FeatureMap(RBFSampler(gamma=0.02, n_components=16, random_state=k)) for k in range(4)]
    cues = list(zip(data.cues, maps, data.cues.values(), strict=True))
    model = UFOMKL(cues, p=1.2, C=1.0, alpha=0.01, random_state=0).fit(digits, labels)
    Phi = model.bank_.features(digits).astype(float)
    optimum = general_optimum(Phi, model.bank_.starts, labels, 1.2, 1.0, 0.01)
    assert_certified(model, optimum, 1e-2)


def test_the_ascent_starts_from_any_dual_point():
    problem = BlockProblem(features()[0], Y, 3, C=5.0)
    B = -np.random.default_rng(0).random((N, 3))
    B[np.arange(N), Y] = 0.0
    B[np.arange(N), Y] = -B.sum(axis=1)  # beyond the limit of 1
    first = finish_dual(problem, np.zeros((N, 3)), tol=1e-3)
    second = finish_dual(problem, B, tol=1e-3)
    assert abs(first.objective - second.objective) <= 1e-3 * first.objective
    assert max(first.gap, second.gap) <= 1e-3 * first.objective


def pairs(size=40):
    for start in range(0, N, size):
        yield X[start : start + size], Y[start : start + size]


def frames():
    table = pd.DataFrame(X)
    table["label"] = Y
    return (table[start : start + 40] for start in range(0, N, 40))


SOURCES = {"function": pairs, "generator": pairs(), "list": list(pairs()), "frames": frames()}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_stream_is_the_array(source):
    y = "label" if source is not pairs and not isinstance(source, list) and "frames" in str(source) else None
    model = OM2(CUES, n_epochs=1).fit(source, y)
    wanted = OM2(CUES, n_epochs=1).fit(X, Y)
    assert_allclose(model.decision_function(NEW), wanted.decision_function(NEW), atol=1e-9)
    assert model.n_features_in_ == X.shape[1] and model.n_seen_ == N


@pytest.mark.parametrize("memory", [2e9, 0.0])
def test_batches_and_maps_are_certified(memory, tmp_path):
    optimum = UFOMKL(CUES, tol=1e-4, random_state=0).fit(X, Y).objective_
    given = np.memmap(tmp_path / "X", dtype=np.float32, mode="w+", shape=X.shape)
    given[:] = X
    on_disk = np.memmap(tmp_path / "X", dtype=np.float32, mode="r", shape=X.shape)
    for source, y in ((pairs, None), (on_disk, Y)):
        model = UFOMKL(CUES, tol=1e-2, memory=memory, random_state=0).fit(source, y)
        assert model.converged_ and abs(model.objective_ / optimum - 1.0) < 1e-2
        assert sorted(model.visits_) == list(range(N))
        assert model.support_.size == 0 and not model.history_["n_support"].fillna(0).any()
    assert_allclose(model.decision_function(on_disk), model.decision_function(X), atol=1e-4)


def test_sparse_features_beyond_the_memory_are_tried_once():
    counts = sparse.csr_array(np.random.default_rng(0).binomial(3, 0.1, (N, 40)).astype(float))
    cues = [("words", FeatureMap(None), slice(None))]
    bank = FeatureBank(cues, counts, memory=1000.0)
    calls = []
    bank.features = lambda X: calls.append(X.shape[0]) or FeatureBank.features(bank, X)
    for some in (np.arange(N), np.arange(N), np.arange(N - 1)):
        bank.hold(some)
    assert calls == [N] and bank.held is None
    bank.hold(np.arange(3))
    assert calls == [N, 3] and bank.holds(np.arange(3)) and not bank.holds(np.arange(4))


def test_whole_numbers_of_a_map_are_read_in_parts(tmp_path):
    given = np.memmap(tmp_path / "X", dtype=np.uint8, mode="w+", shape=(N, 4))
    given[:] = np.random.default_rng(0).integers(0, 255, (N, 4))
    cues = [("map", FeatureMap(RBFSampler(gamma=1e-4, random_state=0)), slice(None))]
    model = UFOMKL(cues, tol=None, n_epochs=1, random_state=0).fit(given, Y)
    wanted = UFOMKL(cues, tol=None, n_epochs=1, random_state=0).fit(np.asarray(given, dtype=np.float32), Y)
    assert_allclose(model.decision_function(given), wanted.decision_function(np.asarray(given)), rtol=1e-3)


def test_partial_fit_is_one_pass():
    wanted = OM2(CUES, p=1.2, n_epochs=1).fit(X, Y)
    model = OM2(CUES, p=1.2)
    for part, labels in pairs(17):
        model.partial_fit(part, labels, classes=np.unique(Y))
    assert_allclose(model.decision_function(NEW), wanted.decision_function(NEW), atol=1e-9)
    assert_array_equal(model.online_errors_, wanted.online_errors_)
    assert model.n_seen_ == N and model.n_updates_ == wanted.n_updates_
    more = wanted.partial_fit(X, Y).partial_fit(X, Y)
    assert_allclose(
        more.decision_function(NEW),
        model.partial_fit(X, Y).partial_fit(X, Y).decision_function(NEW),
        atol=1e-9,
    )


def test_queries_are_those_of_the_kernels():
    query = {"p": 1.2, "query": MarginQuery(0.2)}
    model = OM2(CUES, **query).partial_fit(X, lambda i: Y[i], classes=np.unique(Y))
    wanted = OM2("precomputed", **query).partial_fit(kernels(), lambda i: Y[i], classes=np.unique(Y))
    assert_array_equal(model.queried_, wanted.queried_)
    assert 0 < model.n_queries_ < N


def test_sparse_cues_are_dense_ones():
    table = X * (np.abs(X) > 0.7)
    cues = [("shape", FeatureMap(), slice(0, 3)), ("line", Linear(), slice(3, 6))]
    for cls, options in (
        (OM2, {"n_epochs": 2}),
        (UFOMKL, {"tol": 1e-3}),
        (UFOMKL, {"tol": 1e-2, "memory": 0}),
    ):
        model = cls(cues, random_state=0, **options).fit(sparse.csr_array(table), Y)
        wanted = cls(cues, random_state=0, **options).fit(table, Y)
        assert_allclose(model.decision_function(table), wanted.decision_function(table), rtol=1e-4, atol=1e-5)


def test_a_saved_model_has_no_samples(tmp_path):
    unfitted = [(name, FeatureMap(RBFSampler(random_state=0)), columns) for name, _, columns in CUES]
    sizes = []
    for n in (30, N):
        model = OM2(unfitted, n_epochs=1).fit(X[:n], Y[:n])
        model.save(tmp_path / "model.npz")
        for again in (load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
            assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))
            again.partial_fit(X[:9], Y[:9])
        sizes.append((tmp_path / "model.npz").stat().st_size)
    assert abs(sizes[1] - sizes[0]) < 1500  # the visits and the history


def test_errors_name_what_was_expected():
    with pytest.raises(ValueError, match="X in batches needs kernels that are all a FeatureMap"):
        UFOMKL([("near", RBF(), slice(None))]).fit(pairs())
    with pytest.raises(ValueError, match="a hinge loss"):
        UFOMKL(CUES, loss="logistic").fit(pairs())
    with pytest.raises(ValueError, match="requires y to be passed"):
        UFOMKL(CUES).fit(X)
    model = OM2(CUES).fit(X, Y)
    with pytest.raises(ValueError, match="6 features"):
        model.predict(X[:, :4])
    with pytest.raises(ValueError, match="must not change"):
        model.partial_fit(X, Y, classes=[0, 1])


def test_another_loss_uses_the_kernels():
    model = UFOMKL(CUES, loss="logistic", random_state=0).fit(X, Y)
    assert model.support_.size and not hasattr(model, "blocks_")


def without(X, seed):
    """Samples of which some lack a cue, and which cues these are."""
    lacks = np.random.default_rng(seed).random((len(X), len(CUES))) < 0.3
    lacks[lacks.all(axis=1), 0] = False
    X = X.copy()
    for (_, _, columns), absent in zip(CUES, lacks.T, strict=True):
        X[np.ix_(absent, columns)] = np.nan
    return X, lacks


@pytest.mark.parametrize("cls", STOCHASTIC)
def test_features_of_a_cue_that_a_sample_lacks_are_zeros(cls):
    X_lacking, lacks = without(X, 0)
    bank = KernelBank(CUES, X_lacking, dtype=np.float64, missing="zero")
    K = np.asarray(bank.stack)
    assert all(not K[f][absent].any() for f, absent in enumerate(lacks.T))
    model, given = fitted(cls, missing="zero")
    model.fit(X_lacking, Y)
    given.fit(K, Y)
    new, _ = without(NEW, 1)
    wanted = given.decision_function(np.concatenate([rows for _, rows in bank.cross(new).blocks()], axis=1))
    assert_allclose(model.decision_function(new), wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())
    with pytest.raises(ValueError, match="cue 'shape': sample 2 must have numbers in all columns"):
        model.fit(np.where(np.arange(N)[:, None] == 2, [np.nan] + 5 * [1.0], X), Y)
    with pytest.raises(ValueError, match="none of sample 5"):
        model.fit(np.where(np.arange(N)[:, None] == 5, np.nan, X), Y)


def test_transform_gives_features_whose_products_are_the_combined_kernel():
    model, given = fitted(UFOMKL)
    inside = model.fit_transform(X, Y)
    combined = given.fit_transform(kernels(), Y)
    assert inside.shape == (N, 18) and model.get_feature_names_out().size == 18
    assert_allclose(inside @ inside.T, combined, atol=1e-5)
    assert_allclose(model.transform(NEW) @ inside.T, given.transform(kernels(NEW)), atol=1e-5)
    assert_array_equal(pickle.loads(pickle.dumps(model)).transform(NEW), model.transform(NEW))
