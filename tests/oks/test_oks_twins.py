"""The estimators and the compiled passes against their plain twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oks_engine import State
from oks_problems import signs
from oks_twins import (
    Selection,
    make_data,
    make_stack,
    normalized,
    outputs,
    perceptron,
    plan,
    run_om1,
    run_selection,
    vote,
)
from plain_kernels import plain_stack
from sklearn.model_selection import train_test_split

from cuelearn.kernels import RBF, Chi2, ExpDistance, KernelBank, Linear, Poly
from cuelearn.oks import OKS, OM1, SOM, MuTron, OKSRegret

LEFT, RIGHT, MIXED = slice(0, 3), [3, 4, 5], [5, 0, 2]
# (name, kernel of the package, the plain one's name and arguments, columns)
KERNELS = [
    ("linear", Linear(), ("linear", {}), LEFT),
    ("poly", Poly(), ("poly", {"scale": "dim"}), RIGHT),
    (
        "cubic",
        Poly(degree=3, coef0=0.5, gamma=0.5),
        ("poly", {"degree": 3, "coef0": 0.5, "scale": 2.0}),
        MIXED,
    ),
    ("rbf", RBF(scale=0.5), ("sqeuclidean", {"scale": 0.5}), MIXED),
    ("wide rbf", RBF(scale=20.0), ("sqeuclidean", {"scale": 20.0}), slice(None)),
    ("chi2", Chi2(scale=0.5), ("chi2", {"scale": 0.5}), RIGHT),
    ("euclidean", ExpDistance("euclidean", scale=1.0), ("euclidean", {"scale": 1.0}), LEFT),
    ("squares", ExpDistance("sqeuclidean", scale=0.3), ("sqeuclidean", {"scale": 0.3}), LEFT),
    ("cityblock", ExpDistance("cityblock", scale=2.0), ("cityblock", {"scale": 2.0}), RIGHT),
    ("chi2 by distance", ExpDistance("chi2", scale=1.0), ("chi2", {"scale": 1.0}), MIXED),
]


def triples():
    return [(name, kernel, columns) for name, kernel, _, columns in KERNELS]


def recipes():
    return [(*plain, columns) for _, _, plain, columns in KERNELS]


def same_predictors(model, predictors, tolerance=1e-9):
    assert len(model.support_) == len(model.dual_coef_) == len(predictors)
    for support, coef, wanted in zip(model.support_, model.dual_coef_, predictors, strict=True):
        assert_array_equal(support, list(wanted))  # also in the order of joining
        assert_allclose(coef, list(wanted.values()), rtol=tolerance, atol=tolerance)


def check(model, twin, new=None, new_K=None):
    """Everything that a run leaves behind."""
    assert_array_equal(model.drawn_, twin.drawn)
    assert_array_equal(model.online_errors_, twin.mistakes)
    assert_allclose(model.kernel_probabilities_, twin.q, atol=1e-9)
    assert_allclose(model.sampling_probabilities_, twin.last_p, atol=1e-9)
    assert model.kernel_probabilities_.sum() == pytest.approx(1.0, abs=1e-12)
    same_predictors(model, twin.predictors)
    assert (model.n_updates_, model.n_evaluations_) == (twin.n_updates, twin.n_evaluations)
    assert model.best_index_ == int(np.argmax(twin.q))
    history = model.history_
    for column in ("step", "n_updates", "n_evaluations"):
        assert history[column].iloc[-1] == {"step": len(twin.drawn)}.get(column, getattr(twin, column, None))
    assert history.n_support.iloc[-1] == sum(map(len, twin.predictors))
    assert_allclose(history.online_error, [np.mean(twin.mistakes[:s]) for s in history.step])
    assert model.probability_history_.shape == (len(history), len(twin.predictors))
    reached = [twin.q_used[s] if s < len(twin.q_used) else twin.q for s in history.step]
    assert_allclose(model.probability_history_, reached, atol=1e-9)
    if new is not None:
        wanted = outputs(new_K, twin.predictors)[model.best_index_]
        assert_allclose(model.decision_function(new), wanted, atol=1e-9 * (1.0 + np.abs(wanted).max()))
        assert_array_equal(model.predict(new), model.classes_[(wanted > 0.0).astype(int)])


# ------------------------------------------------------------------ estimators

RUNS = [
    {},
    {"delta": 0.3, "n_epochs": 1, "shuffle": False},
    {"delta": (0.9, 0.5, 0.01), "n_epochs": 4},
    {"delta": [0.5], "eta": 0.5, "n_epochs": 3, "shuffle": False},
    {"delta": 1.0, "eta": 0.1},
    {"delta": 1e-3, "eta": 2.0},
    {"n_epochs": 1},
]


def weights_of(n):
    return np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.5], n)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("options", RUNS, ids=str)
def test_oks_computed_and_precomputed(options, normalize):
    X, y = make_data(90, seed=3, zeros=0.05)
    new = make_data(25, seed=4)[0]
    K, new_K = plain_stack(recipes(), X, X, normalize), plain_stack(recipes(), new, X, normalize)
    twin_options = {"delta": (0.5, 0.2), **options}
    twin = run_selection("oks", K, signs(y), seed=7, **twin_options)
    common = dict(random_state=7, **options)
    model = OKS(triples(), normalize=normalize, **common).fit(X, y)
    check(model, twin, new, new_K)
    assert model.best_kernel_ == KERNELS[model.best_index_][0]
    given = OKS("precomputed", **common).fit(K, y)
    check(given, twin, new_K, new_K)
    bank = OKS("precomputed", **common).fit(KernelBank.from_stack(K, names=[k[0] for k in KERNELS]), y)
    check(bank, twin, new_K, new_K)
    twin = run_selection("oks", K, signs(y), seed=7, weights=weights_of(90), **twin_options)
    weighted = OKS(triples(), normalize=normalize, **common).fit(X, y, weights_of(90))
    check(weighted, twin, new, new_K)
    assert bank.best_kernel_ == model.best_kernel_


@pytest.mark.parametrize(
    "options",
    [{}, {"delta": 0.3, "eta": 0.2, "n_epochs": 1, "shuffle": False}, {"delta": (0.9, 0.05), "step": 0.01}],
    ids=str,
)
@pytest.mark.parametrize("loss", ["hinge", "logistic", "square"])
def test_regret(loss, options):
    X, y = make_data(80, seed=5)
    new = make_data(25, seed=4)[0]
    K, new_K = plain_stack(recipes(), X, X), plain_stack(recipes(), new, X)
    common = {"random_state": 11, "step": 0.05, **options}
    run = {"seed": 11, "loss": loss, "delta": (0.5, 0.2), "step": 0.05, **options}
    weights = weights_of(80)
    twin = run_selection("regret", K, signs(y), weights=weights, **run)
    check(OKSRegret(triples(), loss=loss, **common).fit(X, y, sample_weight=weights), twin, new, new_K)
    twin = run_selection("regret", K, signs(y), **run)
    check(OKSRegret(triples(), loss=loss, **common).fit(X, y), twin, new, new_K)
    check(OKSRegret("precomputed", loss=loss, **common).fit(K, y), twin, new_K, new_K)
    assert len({round(c, 6) for p in twin.predictors for c in p.values()}) > 20


@pytest.mark.parametrize("beta, delta", [(0.8, 0.2), (0.1, 0.9), (0.99, 0.01), (0.5, (0.5, 0.1))])
def test_som(beta, delta):
    X, y = make_data(90, seed=6)
    new = make_data(25, seed=4)[0]
    K, new_K = plain_stack(recipes(), X, X), plain_stack(recipes(), new, X)
    twin = run_selection("som", K, signs(y), seed=1, beta=beta, delta=delta)
    model = SOM(triples(), beta=beta, delta=delta, random_state=1).fit(X, y)
    check(model, twin, new, new_K)
    assert {abs(c) for coef in model.dual_coef_ for c in coef} <= {0.0, 1.0, 2.0}  # no division by p
    model = SOM("precomputed", beta=beta, delta=delta, random_state=1)
    check(model.fit(K, y), twin, new_K, new_K)
    weights = weights_of(90)
    twin = run_selection("som", K, signs(y), seed=1, beta=beta, delta=delta, weights=weights)
    check(model.fit(K, y, weights), twin, new_K, new_K)


@pytest.mark.parametrize("options", [{}, {"n_epochs": 3}, {"shuffle": True, "n_epochs": 2}], ids=str)
@pytest.mark.parametrize("beta", [0.8, 0.3])
def test_om1(beta, options):
    X, y = make_data(90, seed=8)
    new = make_data(40, seed=9)[0]
    K, new_K = plain_stack(recipes(), X, X), plain_stack(recipes(), new, X)
    orders, _ = plan(90, options.get("n_epochs", 1), options.get("shuffle", False), np.random.default_rng(2))
    settings = {"beta": beta, "random_state": 2, **options}
    plain = run_om1(K, signs(y), beta=beta, order=orders.ravel())
    weighted = run_om1(K, signs(y), beta=beta, order=orders.ravel(), factors=weights_of(90))
    for model, there, twin in (
        (OM1(triples(), **settings).fit(X, y), new, plain),
        (OM1("precomputed", **settings).fit(K, y), new_K, plain),
        (OM1(triples(), **settings).fit(X, y, weights_of(90)), new, weighted),
    ):
        assert_array_equal(model.online_errors_, twin.mistakes)
        assert_array_equal(model.mistakes_per_kernel_, twin.own)
        assert_allclose(model.kernel_probabilities_, twin.q, atol=1e-9)
        same_predictors(model, twin.predictors)
        assert (model.n_updates_, model.n_evaluations_) == (twin.n_updates, twin.n_evaluations)
        wanted = vote(new_K, twin.q, twin.predictors)
        assert_allclose(model.decision_function(there), wanted, atol=1e-9)
        assert_array_equal(model.predict(there), (wanted > 0.0).astype(int))


def test_the_vote_is_not_its_members():
    """The vote of OM-1 errs at other visits than the best of its kernels, and no more often than the worst
    of them."""
    X, y = make_data(200, seed=8)
    model = OM1(triples(), random_state=0).fit(X, y)
    own = model.mistakes_per_kernel_
    assert model.online_errors_.sum() < own.max()
    assert np.argmin(own) == np.argmax(model.kernel_probabilities_) == model.best_index_
    assert_allclose(model.kernel_probabilities_, normalized(np.log(0.8) * own), atol=1e-12)


@pytest.mark.parametrize("cls, rule", [(OKS, "oks"), (OKSRegret, "regret")])
def test_a_fit_is_replayed_from_its_visits_and_draws(cls, rule):
    X, y = make_data(60, seed=3)
    model = cls(triples(), eta=0.05, delta=0.3, random_state=np.random.default_rng()).fit(X, y)
    step = 1.0 if rule == "oks" else np.sqrt(0.3 / (len(KERNELS) * 120))
    twin = Selection(rule, plain_stack(recipes(), X, X), signs(y))
    for i, j in zip(model.visits_, model.drawn_, strict=True):
        twin.learn(i, j, 0.7 * twin.q + 0.3 / twin.m, twin.q, 0.05, step)
    assert model.visits_.dtype == np.uint8 and sorted(model.visits_[60:]) == list(range(60))
    assert_array_equal(model.online_errors_, twin.mistakes)
    assert_allclose(model.kernel_probabilities_, twin.q, atol=1e-9)
    same_predictors(model, twin.predictors)


@pytest.mark.parametrize(
    "options", [{}, {"n_epochs": 2}, {"shuffle": True}, {"validation": 0.25, "normalize": False}], ids=str
)
@pytest.mark.parametrize("weights", [None, weights_of(120)], ids=["equal", "weights"])
def test_mutron(options, weights):
    """A Perceptron per kernel, the best on the samples held back; the chosen one is that Perceptron."""
    X, y = make_data(120, seed=10, noise=0.25)
    new = make_data(25, seed=4)[0]
    normalize = options.get("normalize", True)
    K, new_K = plain_stack(recipes(), X, X, normalize), plain_stack(recipes(), new, X, normalize)
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
    common = {"random_state": 3, **options}
    for n_jobs in (None, 2):
        for model, there in (
            (MuTron(triples(), n_jobs=n_jobs, **common).fit(X, y, weights), new),
            (MuTron("precomputed", n_jobs=n_jobs, **common).fit(K, y, weights), new_K),
        ):
            assert_allclose(model.validation_accuracy_, accuracy, atol=1e-12)
            assert model.best_index_ == best
            assert model.n_evaluations_ == sum(t.n_evaluations for t in twins)
            assert_array_equal(model.mistakes_per_kernel_, [t.mistakes.sum() for t in twins])
            assert model.n_updates_ == sum(
                np.sum(t.mistakes & (counts[train[orders.ravel()]] > 0)) for t in twins
            )
            same_predictors(model, [t.predictor for t in twins])
            assert_allclose(model.decision_function(there), wanted, atol=1e-9)


def test_mutron_needs_weight_among_what_it_holds_back():
    X, y = make_data(60, seed=3)
    model = MuTron(triples(), validation=np.arange(5))
    with pytest.raises(ValueError, match="validation must have a sample with sample_weight > 0"):
        model.fit(X, y, np.arange(60) >= 5)


def test_an_output_of_0_is_the_first_class():
    """In what is held back as in prediction: a kernel of zeros is right about the samples of the first
    class."""
    K, y = make_stack(60, 2, seed=1)
    K[0] = 0.0
    y = np.where(np.arange(60) % 3 == 0, 1, 0)
    model = MuTron("precomputed", random_state=0).fit(K, y)
    seed = int(np.random.default_rng(0).integers(2**31 - 1))
    held = train_test_split(np.arange(60), test_size=6, stratify=y, random_state=seed)[1]
    assert model.validation_accuracy_[0] == np.mean(y[held] == 0) == pytest.approx(4 / 6)
    for cls in (OKS, SOM, OM1, MuTron):
        model = cls("precomputed", random_state=0).fit(K[:1], np.array(["yes", "zero"])[y])
        assert_array_equal(model.decision_function(K[:1]), np.zeros(60))
        assert set(model.predict(K[:1])) == {"yes"}


def test_mutron_takes_the_first_of_equals():
    X, y = make_data(80, seed=10)
    copies = [(str(c), RBF(scale=2.0), slice(None)) for c in range(4)]
    model = MuTron([("none", Linear(), [0]), *copies], random_state=0).fit(X, y)
    assert model.validation_accuracy_[1:].min() == model.validation_accuracy_.max()
    assert model.best_index_ == int(np.argmax(model.validation_accuracy_)) <= 1


# ------------------------------------------------------------------ the compiled pass on random problems


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.sampled_from(["oks", "regret", "som"]),
    st.sampled_from(["hinge", "logistic", "square"]),
    st.sampled_from([1e-4, 0.05, 0.2, 0.7, 1.0]),
    st.sampled_from([1e-3, 0.1, 2.0]),
    st.sampled_from([1e-3, 0.1, 1.0]),
)
@settings(max_examples=50)
def test_any_stream(seed, m, rule, loss, delta, eta, step):
    """Random kernels and orders with repeated visits; the parameters change on the way."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    K, y = make_stack(n, m, seed=int(rng.integers(1000)))
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    targets = signs(y) if rule != "regret" or loss != "square" else rng.normal(size=n)
    order, uniforms = rng.integers(0, n, 60), rng.random(60)
    twin = Selection(rule, K, targets, loss=loss, beta=np.exp(-eta), weights=weights)
    state = State(K, rule, loss)
    for start, (d, e, s) in ((0, (delta, eta, step)), (30, (1.0 - 0.5 * delta, 0.5 * eta, 2.0 * step))):
        rows = slice(start, start + 30)
        state.p[:] = (1.0 - d) * state.q + d / m
        if rule == "som":
            twin.beta = np.exp(-e)
        for i, u in zip(order[rows], uniforms[rows], strict=True):
            twin.visit(i, u, d, e, s)
        drawn, mistakes, losses = state.run(order[rows], targets, uniforms[rows], d, e, s, weights)
        top = 1.0 + max(twin.losses)
        if top > 1e8:  # square losses may run away from step sizes that are too long
            return
        assert_array_equal(drawn, twin.drawn[rows])
        assert_array_equal(mistakes, twin.mistakes[rows])
        assert_allclose(losses, twin.losses[rows], rtol=1e-9, atol=1e-9)
        assert_allclose(state.q, twin.q, atol=1e-9)
        assert_allclose(state.p, (1.0 - d) * twin.q + d / m, atol=1e-9)
    for found, wanted in zip(state.dictionaries(), twin.predictors, strict=True):
        assert list(found) == list(wanted)
        assert_allclose(list(found.values()), list(wanted.values()), rtol=1e-9, atol=1e-9)
    assert (state.n_updates, state.n_evaluations) == (twin.n_updates, twin.n_evaluations)
