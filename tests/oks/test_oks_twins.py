"""The estimators against their plain twins."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oks_problems import CUES, RECIPES, signs
from oks_twins import make_data, outputs, perceptron, plan, run_om1, run_selection, vote
from plain_kernels import plain_stack
from sklearn.model_selection import train_test_split

from cuelearn.kernels import KernelBank
from cuelearn.oks import OKS, OM1, SOM, MuTron, OKSRegret


def same_predictors(model, predictors):
    assert len(model.support_) == len(model.dual_coef_) == len(predictors)
    for support, coef, wanted in zip(model.support_, model.dual_coef_, predictors, strict=True):
        assert_array_equal(support, list(wanted))  # also in the order of joining
        assert_allclose(coef, list(wanted.values()), rtol=1e-9, atol=1e-9)


def check(model, twin, new, new_K):
    assert_array_equal(model.visits_, twin.order)
    assert_array_equal(model.drawn_, twin.drawn)
    assert_array_equal(model.online_errors_, twin.mistakes)
    assert_allclose(model.kernel_probabilities_, twin.q, atol=1e-9)
    assert_allclose(model.sampling_probabilities_, twin.last_p, atol=1e-9)
    same_predictors(model, twin.predictors)
    assert (model.n_updates_, model.n_evaluations_) == (twin.n_updates, twin.n_evaluations)
    assert model.best_index_ == int(np.argmax(twin.q))
    history = model.history_
    last = history.iloc[-1]
    assert (last.step, last.n_updates) == (len(twin.drawn), twin.n_updates)
    assert last.n_evaluations == twin.n_evaluations
    assert history.n_support.iloc[-1] == sum(map(len, twin.predictors))
    assert_allclose(history.online_error, [np.mean(twin.mistakes[:s]) for s in history.step])
    reached = [twin.q_used[s] if s < len(twin.q_used) else twin.q for s in history.step]
    assert_allclose(model.probability_history_, reached, atol=1e-9)
    wanted = outputs(new_K, twin.predictors)[model.best_index_]
    assert_allclose(model.decision_function(new), wanted, atol=1e-9 * (1.0 + np.abs(wanted).max()))
    assert_array_equal(model.predict(new), model.classes_[(wanted > 0.0).astype(int)])


def streams(n, seed, normalize=True, **options):
    X, y = make_data(n, seed=seed, **options)
    new = make_data(25, seed=4)[0]
    return X, y, new, *(plain_stack(RECIPES, Z, X, normalize) for Z in (X, new))


def weights_of(n):
    return np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.5], n)


@pytest.mark.parametrize(
    "options",
    [
        {"delta": 0.3, "n_epochs": 1, "shuffle": False},
        {"delta": (0.9, 0.5, 0.01), "n_epochs": 4},
        {"delta": 1e-3, "eta": 2.0},
        {"normalize": False},
    ],
    ids=str,
)
def test_oks_computed_and_precomputed(options):
    X, y, new, K, new_K = streams(90, 3, options.get("normalize", True), zeros=0.05)
    twin_options = {"delta": (0.5, 0.2), **options}
    twin_options.pop("normalize", None)
    options = {"n_epochs": 2, **options}
    twin = run_selection("oks", K, signs(y), seed=7, **twin_options)
    model = OKS(CUES, random_state=7, **options).fit(X, y)
    check(model, twin, new, new_K)
    assert model.best_kernel_ == CUES[model.best_index_][0]
    bank = KernelBank.from_stack(K, names=[name for name, _, _ in CUES])
    given = OKS("precomputed", random_state=7, **options).fit(bank, y)
    check(given, twin, new_K, new_K)
    assert given.best_kernel_ == model.best_kernel_
    twin = run_selection("oks", K, signs(y), seed=7, weights=weights_of(90), **twin_options)
    check(OKS(CUES, random_state=7, **options).fit(X, y, weights_of(90)), twin, new, new_K)


@pytest.mark.parametrize("options", [{}, {"delta": (0.9, 0.05), "step": 0.01, "eta": 0.2}], ids=str)
@pytest.mark.parametrize("loss", ["hinge", "logistic", "square"])
def test_regret(loss, options):
    X, y, new, K, new_K = streams(80, 5)
    common = {"random_state": 11, "step": 0.05, **options}
    run = {"seed": 11, "loss": loss, "delta": (0.5, 0.2), "step": 0.05, **options}
    weights = weights_of(80)
    twin = run_selection("regret", K, signs(y), weights=weights, **run)
    check(OKSRegret(CUES, loss=loss, **common).fit(X, y, sample_weight=weights), twin, new, new_K)
    twin = run_selection("regret", K, signs(y), **run)
    check(OKSRegret("precomputed", loss=loss, **common).fit(K, y), twin, new_K, new_K)


@pytest.mark.parametrize("beta, delta", [(0.1, 0.9), (0.8, (0.5, 0.1))])
def test_som(beta, delta):
    X, y, new, K, new_K = streams(90, 6)
    twin = run_selection("som", K, signs(y), seed=1, beta=beta, delta=delta)
    model = SOM(CUES, beta=beta, delta=delta, random_state=1).fit(X, y)
    check(model, twin, new, new_K)
    assert {abs(c) for coef in model.dual_coef_ for c in coef} <= {0.0, 1.0, 2.0}  # no division by p
    twin = run_selection("som", K, signs(y), seed=1, beta=beta, delta=delta, weights=weights_of(90))
    model = SOM("precomputed", beta=beta, delta=delta, random_state=1)
    check(model.fit(K, y, weights_of(90)), twin, new_K, new_K)


@pytest.mark.parametrize("beta, options", [(0.8, {}), (0.3, {"shuffle": True, "n_epochs": 2})], ids=str)
def test_om1(beta, options):
    X, y, new, K, new_K = streams(90, 8)
    orders, _ = plan(90, options.get("n_epochs", 1), options.get("shuffle", False), np.random.default_rng(2))
    settings = {"beta": beta, "random_state": 2, **options}
    plain = run_om1(K, signs(y), beta=beta, order=orders.ravel())
    weighted = run_om1(K, signs(y), beta=beta, order=orders.ravel(), factors=weights_of(90))
    for model, there, twin in (
        (OM1(CUES, **settings).fit(X, y), new, plain),
        (OM1("precomputed", **settings).fit(K, y), new_K, plain),
        (OM1(CUES, **settings).fit(X, y, weights_of(90)), new, weighted),
    ):
        assert_array_equal(model.online_errors_, twin.mistakes)
        assert_array_equal(model.mistakes_per_kernel_, twin.own)
        assert_allclose(model.kernel_probabilities_, twin.q, atol=1e-9)
        same_predictors(model, twin.predictors)
        assert (model.n_updates_, model.n_evaluations_) == (twin.n_updates, twin.n_evaluations)
        wanted = vote(new_K, twin.q, twin.predictors)
        assert_allclose(model.decision_function(there), wanted, atol=1e-9)
        assert_array_equal(model.predict(there), (wanted > 0.0).astype(int))


@pytest.mark.parametrize(
    "options, weights",
    [
        ({}, weights_of(120)),
        ({"shuffle": True, "n_epochs": 2}, None),
        ({"validation": 0.25, "normalize": False}, weights_of(120)),
    ],
    ids=str,
)
def test_mutron(options, weights):
    X, y, new, K, new_K = streams(120, 10, options.get("normalize", True), noise=0.25)
    share = options.get("validation", 0.1)
    rng = np.random.default_rng(3)  # first the split, then the orders
    seed = int(rng.integers(2**31 - 1))
    counts = np.ones(120) if weights is None else weights
    rows = np.flatnonzero(counts)  # those with weight
    size = round(share * rows.size)
    options_of_split = {"test_size": size, "stratify": signs(y)[rows], "random_state": seed}
    parts = train_test_split(np.arange(rows.size), **options_of_split)
    train, held = (rows[np.sort(part)] for part in parts)
    orders, _ = plan(len(train), options.get("n_epochs", 1), options.get("shuffle", False), rng)
    twins = [perceptron(kernel, signs(y), train[orders.ravel()], weights) for kernel in K]
    scores = [outputs(kernel[None, held], [t.predictor])[0] for kernel, t in zip(K, twins, strict=True)]
    accuracy = [np.average((s > 0.0) == (y[held] == 1), weights=counts[held]) for s in scores]
    best = int(np.argmax(accuracy))
    wanted = outputs(new_K[[best]], [twins[best].predictor])[0]
    n_updates = sum(np.sum(t.mistakes & (counts[train[orders.ravel()]] > 0)) for t in twins)
    for model, there in (
        (MuTron(CUES, random_state=3, **options).fit(X, y, weights), new),
        (MuTron("precomputed", n_jobs=2, random_state=3, **options).fit(K, y, weights), new_K),
    ):
        assert_allclose(model.validation_accuracy_, accuracy, atol=1e-12)
        assert model.best_index_ == best
        assert model.n_evaluations_ == sum(t.n_evaluations for t in twins)
        assert_array_equal(model.mistakes_per_kernel_, [t.mistakes.sum() for t in twins])
        assert model.n_updates_ == n_updates
        same_predictors(model, [t.predictor for t in twins])
        assert_allclose(model.decision_function(there), wanted, atol=1e-9)


@pytest.mark.parametrize("cls", [OKS, SOM, OM1, MuTron])
def test_an_output_of_0_is_the_first_class(cls):
    K = np.zeros((1, 60, 60))
    model = cls("precomputed", random_state=0).fit(K, np.tile(["yes", "zero"], 30))
    assert_array_equal(model.decision_function(K), np.zeros(60))
    assert set(model.predict(K)) == {"yes"}
