"""Selection by sampling, and the chapter's estimators as their users meet them."""

import os
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oks_engine import State
from oks_twins import (
    automatic_eta,
    distances,
    first_above,
    make_data,
    make_stack,
    perceptron,
    plain_kernel,
    plan,
    run_selection,
)
from scipy.special import softmax
from scipy.stats import binom
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import MinMaxScaler

from cuelearn.kernels import RBF, Chi2, ExpDistance, KernelBank, Linear, Poly, Precomputed
from cuelearn.oks import OKS, OM1, SOM, MuTron, OKSRegret, load, solve_selection
from cuelearn.oks.oks import oks_pass
from cuelearn.oks.regret import loss_and_slope
from cuelearn.oks.selection import draw
from cuelearn.oks.sources import Given
from cuelearn.omcl import KernelPerceptron

QUIET = {"verbose": False}
SAMPLING = [OKS, OKSRegret, SOM]
ALL = [*SAMPLING, OM1, MuTron]
#: Numbers in place of "auto", which depends on how many visits there are.
STEPS = {OKS: {"eta": 0.03}, OKSRegret: {"eta": 0.03, "step": 0.02}}
CUES = [
    ("linear", Linear(), [0, 1, 2]),
    ("poly", Poly(), slice(3, 6)),
    ("rbf", RBF(scale=0.5), slice(None)),
    ("chi2", Chi2(scale=1.0), [0, 5]),
    ("cityblock", ExpDistance("cityblock", scale=1.0), [1, 2]),
]
RECIPES = [
    ("linear", {}, [0, 1, 2]),
    ("poly", {"scale": "dim"}, slice(3, 6)),
    ("sqeuclidean", {"scale": 0.5}, slice(None)),
    ("chi2", {"scale": 1.0}, [0, 5]),
    ("cityblock", {"scale": 1.0}, [1, 2]),
]


def signs(y):
    return np.where(y == np.max(y), 1.0, -1.0)


FROZEN = """
    classes_ kernel_probabilities_ sampling_probabilities_ best_index_ best_kernel_ support_ dual_coef_
    n_updates_ n_evaluations_ drawn_ online_errors_ online_losses_ probability_history_ mistakes_per_kernel_
    validation_accuracy_""".split()


def frozen(model):
    """All that a fit leaves behind, except times."""
    kept = {name: getattr(model, name) for name in FROZEN if hasattr(model, name)}
    if hasattr(model, "history_"):
        kept["history_"] = model.history_.drop(columns="seconds").to_numpy()
    return kept


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if isinstance(value, list):
            assert len(found[name]) == len(value), name
            assert_same(dict(enumerate(found[name])), dict(enumerate(value)))
        else:
            assert_array_equal(found[name], value, err_msg=str(name))


def within_bonferroni(counts, p, level=0.01):
    """Counts of independent draws against their exact two-sided limits, at `level` over all kernels
    together."""
    n, share = counts.sum(), level / (2.0 * len(p))
    return np.all((counts >= binom.ppf(share, n, p)) & (counts <= binom.ppf(1.0 - share, n, p)))


# ------------------------------------------------------------------ the sampling is unbiased


def trained_state(rule="regret", loss="logistic", m=8, delta=0.2):
    """A state in which the probabilities of the kernels and their losses at sample 0 differ."""
    K, y = make_stack(60, m, seed=1)
    state, targets, rng = State(K, rule, loss), signs(y), np.random.default_rng(3)
    state.run(
        rng.integers(0, 60, 400), targets, rng.random(400), delta, 0.02, 0.02 if loss == "square" else 0.3
    )
    assert state.p.min() >= delta / m and state.p.max() > 1.5 * state.p.min()
    return state, targets


@pytest.mark.parametrize(
    "rule, loss", [("oks", "hinge"), ("regret", "hinge"), ("regret", "logistic"), ("regret", "square")]
)
def test_the_estimated_losses_are_unbiased(rule, loss):
    """10,000 draws from one state: the mean of the importance-weighted losses is the true loss vector."""
    state, targets = trained_state(rule, loss)
    m, eta, uniforms = len(state.p), 0.02, np.random.default_rng(0).random(10_000)
    sample = next(
        i for i in range(60) if rule != "oks" or 0 < np.sum(targets[i] * state.outputs(i) <= 0.0) < m
    )
    pairs = np.array(
        [loss_and_slope(state.loss, output, targets[sample]) for output in state.outputs(sample)]
    )
    true = pairs[:, 0] if rule == "regret" else (targets[sample] * state.outputs(sample) <= 0.0).astype(float)
    counts, total = np.zeros(m), np.zeros(m)
    for u in uniforms:
        child = state.copy()
        drawn, _, losses = child.run([sample], targets, [u], 0.2, eta, 0.02)
        j = drawn[0]
        counts[j] += 1
        total[j] += losses[0] / state.p[j]
        # what the weights were discounted by is that same estimate; a common shift of the log-weights does
        # not count
        change = child.log_weights - state.log_weights
        assert change[j] - change[j - 1] == pytest.approx(-eta * losses[0] / state.p[j], abs=1e-9)
        assert np.ptp(np.delete(change, j)) <= 1e-12
    assert within_bonferroni(counts, state.p)
    assert_array_equal(counts, np.bincount([draw(state.p, u) for u in uniforms], minlength=m))
    spread = np.sqrt((1.0 / state.p - 1.0) / 10_000)
    # 3.4 is Bonferroni's bound at 0.5% for 8 kernels
    assert np.all(np.abs(total / 10_000 - true) <= 3.5 * true * spread)
    assert_allclose(total / 10_000, true * counts / (10_000 * state.p), rtol=1e-9)


def test_draw_follows_the_cumulative_probabilities():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        m = int(rng.integers(1, 8))
        p = rng.random(m) * (rng.random(m) < 0.7)
        if p.sum() == 0.0:
            p[-1] = 1.0
        p /= p.sum()
        u = rng.random()
        j = draw(p, u)
        assert j == first_above(p, u) and p[j] > 0.0
    p = np.array([0.0, 0.5, 0.0, 0.5, 0.0])
    edges = [0.0, np.nextafter(0.5, 0.0), 0.5, np.nextafter(1.0, 0.0)]
    assert [draw(p, u) for u in edges] == [1, 1, 3, 3]
    tenth = np.full(10, 0.1)  # adds up to a little less than 1
    assert np.cumsum(tenth)[-1] < 1.0 and draw(tenth, np.nextafter(1.0, 0.0)) == 9


# ------------------------------------------------------------------ a million rounds


def extremes(m):
    """Kernels on two samples: the first always errs (it is 0), the second never again after one update, the
    others one visit in two."""
    y = np.array([1.0, -1.0])
    K = np.ones((m, 2, 2))
    K[0] = 0.0
    K[1] = np.outer(y, y)
    return K, y


@pytest.mark.parametrize(
    "rule, delta, eta",
    [
        ("oks", 0.2, None),
        ("oks", 0.2, 1.0),
        ("oks", 1e-9, 1e-3),
        ("oks", 1e-9, 1e3),
        ("oks", 1.0, 10.0),
        ("oks", 0.5, 1e9),
        ("regret", 0.2, None),
        ("regret", 1e-6, 10.0),
        ("som", 0.2, -np.log(0.8)),
        ("som", 1e-9, -np.log(1e-9)),
        ("som", 0.0, 0.1),
    ],
)
def test_a_million_rounds(rule, delta, eta):
    """Weights stay finite and probabilities sum to 1 whatever happens."""
    K, y = extremes(5)
    n, rng = 1_000_000, np.random.default_rng(0)
    eta = automatic_eta(delta, 5, n) if eta is None else eta
    state = State(K, rule)
    state.p[:] = (1.0 - delta) * state.q + delta / 5
    order = rng.integers(0, 2, n)
    for part in range(4):
        rows = slice(part * n // 4, (part + 1) * n // 4)
        drawn, mistakes, _ = state.run(order[rows], y, rng.random(n // 4), delta, eta, 1e-3)
        assert np.isfinite(state.log_weights).all() and state.log_weights.max() == 0.0
        for v in (state.q, state.p):
            assert np.isfinite(v).all() and v.min() >= 0.0 and v.sum() == pytest.approx(1.0, abs=1e-12)
        assert state.p.min() >= delta / 5 * (1.0 - 1e-12)
        assert np.isfinite(state.predictors.coef).all()
        assert mistakes[drawn == 0].all()
    if rule != "regret" and 0.0 < delta < 1e-3 or eta >= 1.0 and rule == "oks":
        assert np.argmax(state.q) == 1 and state.q[1] > 0.999 and not mistakes[drawn == 1].any()


def test_a_million_rounds_of_kernels_that_all_err():
    """Nothing to choose: the shift of the log-weights keeps them in range although each has been discounted
    beyond any float."""
    K = np.zeros((4, 2, 2))
    state, rng = State(K), np.random.default_rng(0)
    state.run(rng.integers(0, 2, 1_000_000), np.array([1.0, -1.0]), rng.random(1_000_000), 0.1, 1.0, 1.0)
    assert np.isfinite(state.log_weights).all()
    assert state.log_weights.min() > -1e5  # a random walk; the discounts of each add up to ten times that
    assert state.q.sum() == pytest.approx(1.0, abs=1e-12)
    assert state.n_updates == 1_000_000


# ------------------------------------------------------------------ the same bits


@pytest.mark.parametrize("state", [7, "generator"])
@pytest.mark.parametrize("cls", [OKS, SOM, OM1, MuTron])
def test_the_same_bits_for_any_number_of_jobs(cls, state):
    """One problem per class, in threads."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:400] / 16.0, y[:400]
    cues = [
        ("top", RBF(scale=8.0), slice(0, 32)),
        ("bottom", Chi2(scale=5.0), slice(32, 64)),
        ("all", Linear(), slice(None)),
    ]

    def run(n_jobs):
        rng = np.random.default_rng(7) if state == "generator" else state
        return cls(cues, one_vs_rest=True, random_state=rng, n_jobs=n_jobs, **QUIET).fit(X, y)

    wanted = run(1)
    values = wanted.decision_function(X)
    assert values.shape == (400, 10)
    for n_jobs in (2, 4, 1, None):
        model = run(n_jobs)
        assert_same(frozen(model), frozen(wanted))
        assert_array_equal(model.decision_function(X), values)


# ------------------------------------------------------------------ kernels are evaluated only where they are
# needed


@pytest.mark.parametrize("cls", SAMPLING)
def test_evaluations(cls):
    """The count, from nothing but the draws and the mistakes; and it is a small part of all kernel values."""
    X, y = make_data(300, seed=2, noise=0.05, spread=0.1)
    model = cls(CUES, random_state=4, **({"step": 0.1} if cls is OKSRegret else {}), **QUIET).fit(X, y)
    orders, _ = plan(300, 2, True, np.random.default_rng(4))
    members, count = [set() for _ in CUES], 0
    changed = model.online_losses_ > 0.0 if cls is OKSRegret else model.online_errors_
    counts = []
    for i, j, update in zip(orders.ravel(), model.drawn_, changed, strict=True):
        count += len(members[j])
        counts.append(count)
        if update:
            members[j].add(int(i))
    assert model.n_evaluations_ == count
    assert_array_equal(model.history_.n_evaluations, np.array(counts)[model.history_.step - 1])
    assert model.n_updates_ == changed.sum()
    if cls is not OKSRegret:
        assert count < 0.05 * len(CUES) * 300 * 300
        om1 = OM1(CUES, n_epochs=2, **QUIET).fit(X, y)
        assert count < 0.5 * om1.n_evaluations_


@pytest.mark.parametrize("rule", ["oks", "som", "regret"])
def test_nothing_else_is_read(rule):
    """All kernel values but those of the drawn kernel with its own support are NaN: the run has the same
    bits."""
    K, y = make_stack(80, 6, seed=2)
    twin = run_selection(rule, K, signs(y), seed=3, delta=0.2, beta=0.8, eta=0.05, step=0.1)
    _, uniforms = plan(80, 2, True, np.random.default_rng(3))
    poisoned = np.full_like(K, np.nan)
    for j, i, s in twin.entries:
        poisoned[j, i, s] = K[j, i, s]
    assert np.isnan(poisoned).mean() > (0.3 if rule == "regret" else 0.8)
    eta = -np.log(0.8) if rule == "som" else 0.05
    states = [State(stack, rule) for stack in (K, poisoned)]
    for state in states:
        drawn, mistakes, losses = state.run(twin.order, signs(y), uniforms.ravel(), 0.2, eta, 0.1)
        assert_array_equal(drawn, twin.drawn)
        assert_array_equal(mistakes, twin.mistakes)
        assert np.isfinite(losses).all() and state.n_evaluations == twin.n_evaluations
    for name in ("log_weights", "q", "p"):
        assert_array_equal(getattr(states[0], name), getattr(states[1], name))
    for a, b in zip(states[0].predictors, states[1].predictors, strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("cls", SAMPLING)
def test_no_kernel_matrix_is_ever_formed(cls):
    """Neither for the kernels nor for their scale: memory grows with the samples, not with their square."""
    X, y = make_data(4000, seed=2, noise=0.02, spread=0.05)
    cues = [
        ("rbf", RBF(), slice(0, 3)),
        ("chi2", Chi2(), slice(3, 6)),
        ("cityblock", ExpDistance("cityblock"), slice(0, 6)),
    ]
    cls(cues, random_state=0, **QUIET).fit(X[:100], y[:100])
    tracemalloc.start()
    try:
        model = cls(cues, random_state=0, **QUIET).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.1 * 4 * 4000**2
    if cls is not OKSRegret:
        assert model.n_evaluations_ < 0.01 * 3 * 4000**2


def test_scale_of_many_samples(tmp_path):
    """The mean rule over 500 evenly spaced samples: close to that over all, and not drawn at random."""
    X, y = make_data(1500, seed=2)
    cues = [("rbf", RBF(), slice(0, 3)), ("chi2", Chi2(factor=2.0), slice(3, 6))]
    found = []
    for seed in (0, 1):
        OKS(cues, random_state=seed, **QUIET).fit(X, y).save(tmp_path / "model")
        found.append([kernel.scale for _, kernel, _ in load(tmp_path / "model").kernels])
    assert found[0] == found[1]
    for some, tolerance in ((X, 0.1), (X[np.linspace(0, 1499, 500).astype(int)], 1e-5)):
        n = len(some)
        sums = [
            distances("sqeuclidean", some[:, :3], some[:, :3]).sum(),
            2.0 * distances("chi2", some[:, 3:], some[:, 3:]).sum(),
        ]
        assert_allclose(found[0], np.array(sums) / (n * (n - 1)), rtol=tolerance)


# ------------------------------------------------------------------ what must not matter


def test_the_step_changes_no_sign():
    """Algorithm 2 sees signs only: any step makes the same draws and probabilities, and scales predictors."""
    K, y = make_stack(150, 3, seed=2)
    source = Given(3, 150)

    def run(step):
        return solve_selection(source, source.pack(K), signs(y), rule=oks_pass, step=step, rng=1)

    wanted = run(1.0)
    for step in (2.0**-10, 2.0**10, 0.3, 1e-6, 1e6):
        found = run(step)
        for name in ("kernel_probabilities", "sampling_probabilities", "probability_history"):
            assert_array_equal(getattr(found, name), getattr(wanted, name))
        for name in ("drawn", "mistakes"):
            assert_array_equal(found.learner.record(name), wanted.learner.record(name))
        for one, other in zip(found.dual_coef, wanted.dual_coef, strict=True):
            assert_allclose(one, step * other, rtol=1e-12)


@pytest.mark.parametrize("delta", [0.01, 0.5, 1.0, (0.7, 0.1)])
def test_one_kernel_is_the_perceptron(delta):
    """There is nothing to choose, and no parameter matters."""
    X, y = make_data(150, seed=2)
    K, rng = plain_kernel("sqeuclidean", X, X, X, scale=0.5), np.random.default_rng(6)
    rng.random(150)  # the draws of the first epoch, from among one kernel
    twin = perceptron(K, signs(y), np.concatenate([np.arange(150), rng.permutation(150)]))
    one = [("one", RBF(scale=0.5), slice(None))]
    options = dict(delta=delta, shuffle=False, random_state=6, **QUIET)
    for model in (OKS(one, **options), OKS(one, eta=3.0, **options), SOM(one, **options)):
        model.fit(X, y)
        assert_array_equal(model.online_errors_, twin.mistakes)
        assert_array_equal(model.support_[0], list(twin.predictor))
        assert_allclose(model.dual_coef_[0], list(twin.predictor.values()), atol=1e-12)
        assert model.kernel_probabilities_ == model.sampling_probabilities_ == [1.0]
        assert not model.drawn_.any()
    once = OKS(one, n_epochs=1, **options).fit(X, y)
    other = KernelPerceptron(RBF(scale=0.5), average=False).fit(X, y)
    assert_array_equal(once.online_errors_, other.online_errors_)
    assert_allclose(2.0 * once.decision_function(X), other.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("rule", ["oks", "regret", "som"])
def test_the_order_of_the_kernels(rule):
    """Permuted kernels with permuted draws make the permuted run."""
    K, y = make_stack(60, 5, seed=2)
    places = np.array([3, 0, 4, 1, 2])
    one, other = State(K, rule), State(K[places], rule)
    rng = np.random.default_rng(0)
    for i, u in zip(rng.integers(0, 60, 200), rng.random(200), strict=True):
        j = draw(one.p, u)
        k = int(np.flatnonzero(places == j)[0])
        above = np.cumsum(other.p)
        one.run([i], signs(y), [u], 0.2, 0.1, 0.5)
        assert other.run([i], signs(y), [above[k] - 0.5 * other.p[k]], 0.2, 0.1, 0.5)[0][0] == k
        assert_allclose(other.q, one.q[places], rtol=1e-9)
    expected = [one.dictionaries()[j].keys() for j in places]
    assert [other.dictionaries()[k].keys() for k in range(5)] == expected


@pytest.mark.parametrize("size", [1, 7, 64, 150])
@pytest.mark.parametrize("cls", [*SAMPLING, OM1])
def test_fit_is_partial_fit(cls, size):
    """One pass in the given order, in batches of any size."""
    X, y = make_data(150, seed=2, zeros=0.02)
    new = make_data(30, seed=3)[0]
    options = dict(n_epochs=1, shuffle=False, random_state=2, **QUIET)
    options |= STEPS.get(cls, {})
    whole, parts = cls(CUES, **options).fit(X, y), cls(CUES, **options)
    for start in range(0, 150, size):
        assert parts.partial_fit(X[start : start + size], y[start : start + size], classes=[0, 1]) is parts
    found, wanted = frozen(parts), frozen(whole)
    for name in ("history_", "probability_history_"):
        wanted.pop(name), found.pop(name, None)
    assert_same(found, wanted)
    assert_array_equal(parts.decision_function(new), whole.decision_function(new))
    assert_array_equal(parts.predict(new), whole.predict(new))


@pytest.mark.parametrize("cls", [*SAMPLING, OM1])
def test_learning_goes_on(cls):
    """After `fit`, and for several classes."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:500] / 16.0, y[:500]
    cues = [("top", RBF(scale=8.0), slice(0, 32)), ("all", Linear(), slice(None))]
    options = dict(one_vs_rest=True, random_state=0, n_epochs=1, shuffle=False, **QUIET)
    options |= STEPS.get(cls, {})
    whole, parts = cls(cues, **options).fit(X, y), cls(cues, **options).fit(X[:300], y[:300])
    parts.partial_fit(X[300:], y[300:])
    assert_array_equal(parts.decision_function(X), whole.decision_function(X))
    for found, wanted in zip(parts.support_, whole.support_, strict=True):
        assert_same(dict(enumerate(found)), dict(enumerate(wanted)))
    parts.fit(X, y)
    assert_same(frozen(parts), frozen(whole))


def stream_by_hand(cls, X, y, delta=0.5):
    """Probabilities, and outputs of the best kernel, after a stream with steps for 1, 2, 4, ... visits."""
    m, T, rng = len(CUES), 1, np.random.default_rng(0)
    losses, members = np.zeros(m), [{} for _ in range(m)]
    values = KernelBank(CUES, X, dtype=np.float64).stack

    def outputs(j, i):
        step = np.sqrt(0.2 / (m * T)) if cls is OKSRegret else 1.0
        return step * sum(c * values[j, i, s] for s, c in members[j].items())

    def probabilities():
        eta = np.sqrt(2 * (1 - delta) * np.log(m) / (m * T))
        return softmax(-eta * losses)

    for t, sign in enumerate(2.0 * y - 1.0):
        T = 2 * T if t == T else T
        p = (1 - delta) * probabilities() + delta / m
        j = int(np.searchsorted(np.cumsum(p), rng.random(), side="right"))
        margin = sign * outputs(j, t)
        loss = float(margin <= 0) if cls is OKS else max(0.0, 1 - margin)
        if loss > 0:
            members[j][t] = sign / p[j]
            losses[j] += loss / p[j]
    return probabilities(), outputs(int(np.argmin(losses)), slice(None))


@pytest.mark.parametrize("size", [1, 7, 64, 150])
@pytest.mark.parametrize("cls", [OKS, OKSRegret])
def test_default_steps_of_a_stream(cls, size):
    """They suit the next power of two of visits, for all visits alike, however the stream is cut."""
    X, y = make_data(150, seed=2)
    model = cls(CUES, random_state=0, **QUIET)
    for start in range(0, 150, size):
        model.partial_fit(X[start : start + size], y[start : start + size], classes=[0, 1])
    probabilities, outputs = stream_by_hand(cls, X, y)
    assert_allclose(model.kernel_probabilities_, probabilities, rtol=1e-6)
    assert_allclose(model.decision_function(X), outputs, rtol=1e-6, atol=1e-9)


def test_more_visits_than_the_first_support_has_room_for():
    X, y = make_data(400, seed=2, noise=0.5)
    model = OKS(CUES, eta=0.01, random_state=0, **QUIET)
    for _ in range(10):
        model.partial_fit(X, y, classes=[0, 1])
    assert max(map(len, model.support_)) > 100 and len(model.drawn_) == 4000
    # each visit is a sample of its own
    assert model.n_updates_ == model.online_errors_.sum() == sum(map(len, model.support_))


# ------------------------------------------------------------------ several classes


@pytest.mark.parametrize("cls", ALL)
def test_several_classes_need_to_be_asked_for(cls):
    X, y = load_iris(return_X_y=True)
    refused(lambda: cls(**QUIET).fit(X, y), ValueError, r"y must hold 2 classes.*got 3.*one_vs_rest=True")
    if cls is not MuTron:
        match = "must hold 2 classes.*got 3.*one_vs_rest=True"
        refused(lambda: cls(**QUIET).partial_fit(X, y, classes=[0, 1, 2]), ValueError, match)


@pytest.mark.parametrize("cls", ALL)
def test_one_versus_rest(cls):
    """Better than chance by far on iris and digits; each problem is the binary one of its class with a
    generator of its own."""
    for load_data, chance, columns in (
        (load_iris, 1 / 3, [[0, 1], [2, 3]]),
        (load_digits, 0.1, [slice(0, 32), slice(32, 64)]),
    ):
        X, y = load_data(return_X_y=True)
        X, y = MinMaxScaler().fit_transform(X)[::2], y[::2]
        names = np.array([f"class {c}" for c in range(10)], dtype=object)
        cues = [("a", RBF(), columns[0]), ("b", RBF(factor=0.3), columns[1]), ("c", Linear(), slice(None))]
        model = cls(
            cues, one_vs_rest=True, random_state=0, **({"step": 0.1} if cls is OKSRegret else {}), **QUIET
        ).fit(X, names[y])
        n_classes = len(model.classes_)
        values = model.decision_function(X)
        assert values.shape == (len(X), n_classes)
        assert_array_equal(model.predict(X), model.classes_[np.argmax(values, axis=1)])
        assert model.score(X, names[y]) > chance + 0.3
        assert model.kernel_probabilities_.shape == (n_classes, 3) and model.best_index_.shape == (n_classes,)
        assert [cues[b][0] for b in model.best_index_] == model.best_kernel_
        assert (
            len(model.support_)
            == len(model.dual_coef_)
            == len(model.n_updates_)
            == len(model.n_evaluations_)
            == n_classes
        )
        assert model.history_.target.nunique() == n_classes and len(model.probability_history_) == n_classes
        if cls is not MuTron:  # which also draws what it holds back
            rngs = np.random.default_rng(0).spawn(n_classes)
            options = {
                k: v
                for k, v in model.get_params(deep=False).items()
                if k not in ("random_state", "one_vs_rest")
            }
            for c in (0, n_classes - 1):
                alone = cls(random_state=rngs[c], **options).fit(X, y == c)
                assert_array_equal(alone.decision_function(X), values[:, c])


def test_two_classes_are_one_problem_also_one_versus_rest():
    X, y = make_data(100, seed=2)
    found, wanted = (
        frozen(OKS(CUES, one_vs_rest=o, random_state=0, **QUIET).fit(X, y)) for o in (True, False)
    )
    assert_same(found, wanted)


# ------------------------------------------------------------------ records


@pytest.mark.parametrize("cls", ALL)
def test_records(cls):
    X, y = make_data(300, seed=2)
    seen = []

    def watch(model, step):
        seen.append(step)
        assert model.kernel_probabilities_.shape == (len(CUES),)
        assert model.decision_function(X[:5]).shape == (5,)

    n_epochs = 2
    model = cls(CUES, n_epochs=n_epochs, random_state=0, callback=watch, **QUIET).fit(X, y)
    history = model.history_
    columns = "step epoch seconds n_updates n_support online_error n_evaluations"
    assert list(history.columns) == columns.split()
    n = 300 if cls is not MuTron else 270
    assert seen == history.step.tolist() and seen[-1] == n * n_epochs
    assert history.epoch.tolist() == [1 + (s > n) for s in history.step]
    for column in ("step", "seconds", "n_updates", "n_evaluations"):
        assert (history[column].diff()[1:] >= 0).all()
    assert_same(frozen(model), frozen(cls(CUES, n_epochs=n_epochs, random_state=0, **QUIET).fit(X, y)))
    stopped = cls(CUES, n_epochs=5, random_state=0, callback=lambda model, step: step >= 100, **QUIET)
    stopped.fit(X, y)
    assert 100 <= stopped.history_.step.iloc[-1] < 300 and stopped.predict(X).shape == (300,)
    silent = cls(CUES, random_state=0, verbose=True).fit(X, y)
    assert silent.n_updates_ > 0


# ------------------------------------------------------------------ bad input: one clear sentence each


def refused(call, error, match):
    with pytest.raises(error, match=match):
        call()


NO_SHARE = (0.0, -0.1, 1.1, np.nan, np.inf, "half", None, [], (0.5, 0.0), ["a"], True, [[0.5]], np.array(2.0))
NO_STEP = (0.0, -1.0, np.nan, np.inf, "big", None, True)
NO_PART = (0.0, 1.0, -0.5, 1.5, np.nan, "a", None, True)
NO_KERNELS = ("rbf", 3, [RBF()], [("a", RBF())], [], {"a": RBF()}, [("a", "gaus", [0])])
BAD = [
    *((cls, "delta", NO_SHARE) for cls in (OKS, OKSRegret)),
    (SOM, "delta", (-0.1, 1.1, np.nan, "half", None, [], (0.5, 2.0))),
    *((cls, name, NO_STEP) for cls, name in ((OKS, "eta"), (OKSRegret, "eta"), (OKSRegret, "step"))),
    (OKSRegret, "loss", ("zero-one", None, 1, ["hinge"])),
    *((cls, name, NO_PART) for cls, name in ((SOM, "beta"), (OM1, "beta"), (MuTron, "validation"))),
    *((cls, "kernels", NO_KERNELS) for cls in ALL),
]


@pytest.mark.parametrize("cls, name, values", BAD, ids=lambda v: getattr(v, "__name__", None) or str(v)[:20])
def test_bad_parameters(cls, name, values):
    """One sentence that names the argument; a new model stays unfitted, a fitted one what it was."""
    X, y = make_data(60, seed=2)
    fitted = cls(CUES, random_state=0, **QUIET).fit(X, y)
    before, scores = frozen(fitted), fitted.decision_function(X)
    for bad in values:
        model = cls(**{"kernels": CUES, **QUIET, name: bad})
        match = "kernel" if name == "kernels" else f"\\b{name}\\b.* must be"
        refused(lambda: model.fit(X, y), (ValueError, TypeError), match)
        refused(lambda: model.predict(X), NotFittedError, "not fitted yet")
        fitted.set_params(**{name: bad})
        refused(lambda: fitted.fit(X[:40], 3 * y[:40]), (ValueError, TypeError), match)
    assert_same(frozen(fitted), before)
    assert_array_equal(fitted.decision_function(X), scores)


@pytest.mark.parametrize("cls", ALL)
def test_bad_data(cls):
    X, y = make_data(60, seed=2)
    model = cls(CUES, random_state=0, **QUIET).fit(X, y)
    for call in (lambda: clone(model).fit(-X, y), lambda: model.predict(-X)):
        refused(call, ValueError, "X must not be negative|'chi2'")
    refused(lambda: cls([("a", RBF(), [6])], **QUIET).fit(X, y), (ValueError, IndexError), "'a'|column")
    refused(lambda: cls([("a", RBF(), [0]), ("a", RBF(), [1])], **QUIET).fit(X, y), ValueError, "'a'|names")


@pytest.mark.parametrize("cls", ALL)
def test_bad_kernel_matrices(cls):
    K, y = make_stack(60, 3, seed=2)
    X = make_data(60, seed=2)[0]
    on_demand = KernelBank(CUES, X, memory=1e3)
    assert not on_demand.resident
    square = make_data(60, d=60, seed=2)[0]
    square = np.exp(-((square[:, None] - square[None]) ** 2).sum(axis=2))
    given, apart = [("a", Precomputed(), slice(None))], [("a", ExpDistance("precomputed"), slice(None))]
    for kernels, bad, match in (
        ("precomputed", K[0, :9], r"shape \(n_kernels, n, n\)"),
        ("precomputed", K[:, :59], "must have|shape"),
        ("precomputed", K[:, :59, :59], "y must have one label per sample, 59, got 60"),
        ("precomputed", K[:0], "shape|y must have"),
        ("precomputed", on_demand, "KernelBank"),
        (CUES, K, "Found array with dim 3|KernelBank"),
        (CUES, KernelBank(CUES, X), "KernelBank"),
        (given, square, "kernels must be computed from X"),
        (apart, square.max() - square, "kernels must be computed from X"),
    ):
        refused(lambda: cls(kernels, random_state=0, **QUIET).fit(bad, y), ValueError, match)
    model = cls("precomputed", random_state=0, **QUIET).fit(K, y)
    shape = r"X must have shape \(3, n, 60\)"
    for bad, match in ((K[:2], shape), (K[:, :, :50], shape), (K[0], "must have shape")):
        refused(lambda: model.predict(bad), ValueError, match)
    assert model.predict(K[:, :7]).shape == (7,)


@pytest.mark.parametrize("cls", [*SAMPLING, OM1])
def test_bad_batches(cls):
    """A refused batch leaves no trace."""
    X, y = make_data(60, seed=2)
    options = dict(random_state=0, **QUIET) | STEPS.get(cls, {})
    both, mean = {"classes": [0, 1]}, "scale from the first batch.*give gamma or scale as a number"
    own = {OKS: {"delta": 2.0}, OKSRegret: {"loss": "big"}, SOM: {"beta": 2.0}, OM1: {"beta": 2.0}}[cls]
    cases = [
        ({}, (X, y), {}, "classes must be given at the first call of partial_fit"),
        ({}, (X, y), {"classes": [1]}, "classes|at least 2"),
        ({}, (X, y + 1), both, r"y holds labels outside classes: \[2\]"),
        (own, (X, y), both, next(iter(own))),
        ({"kernels": "precomputed"}, (X, y), both, "kernels must be computed from X for partial_fit"),
        ({"kernels": [("a", RBF(), slice(None))]}, (X[:1], y[:1]), both, mean),
        ({"kernels": None}, (X[:1], y[:1]), both, mean),
    ]
    for more, batch, classes, match in cases:
        model = cls(**{"kernels": CUES, **options, **more})
        refused(lambda: model.partial_fit(*batch, **classes), ValueError, match)
        refused(lambda: model.predict(X), NotFittedError, "not fitted yet")
    model, sound = (cls(CUES, **options).partial_fit(X[:30], y[:30], **both) for _ in range(2))
    before = frozen(model)
    for batch, classes, match in (
        ((X, y), {"classes": [0, 2]}, "classes must not change"),
        ((X, y + 1), {}, "outside classes"),
        ((-X, y), {}, "negative"),
        ((X[:, :4], y), {}, "features"),
        ((X + np.nan, y), {}, "NaN"),
        ((X, y[:5]), {}, "inconsistent numbers"),
    ):
        refused(lambda: model.partial_fit(*batch, **classes), ValueError, match)
        assert_same(frozen(model), before)
    for each in (model, sound):
        each.partial_fit(X[30:], y[30:])
    assert_same(frozen(model), frozen(sound))


NUMBERS = [RBF(scale=1.0), RBF(gamma=1), Poly(), Poly(gamma=0.5), Linear(), Chi2(scale=np.float32(0.5))]


@pytest.mark.parametrize("kernel", [*NUMBERS, ExpDistance("euclidean", scale=3)], ids=str)
def test_single_samples_need_no_first_batch(kernel):
    """Where gamma or scale is a number."""
    X, y = make_data(40, seed=2)
    options = dict(eta=0.1, random_state=0, shuffle=False, n_epochs=1, **QUIET)
    model, whole = (OKS([("a", kernel, slice(None)), ("b", kernel, [0, 1])], **options) for _ in range(2))
    for t in range(40):
        model.partial_fit(X[t : t + 1], y[t : t + 1], classes=[0, 1])
    assert_array_equal(model.decision_function(X), whole.fit(X, y).decision_function(X))


# ------------------------------------------------------------------ saving


MODELS = {
    "OKS": OKS(CUES, delta=(0.7, 0.3), random_state=3, **QUIET),
    "OKS with arrays": OKS(
        CUES, delta=np.array([0.7, 0.3]), random_state=np.int64(3), eta=np.float32(0.5), **QUIET
    ),
    "OKS with lists": OKS(CUES, delta=[0.7, 0.3], eta=0.1, **QUIET),
    "OKS with defaults": OKS(**QUIET),
    "OKSRegret": OKSRegret(CUES, loss="logistic", **QUIET),
    "SOM": SOM(CUES, delta=(0.5, 0.1), normalize=False, **QUIET),
    "OM1": OM1(CUES, beta=0.5, **QUIET),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_learns_on(name, tmp_path):
    X, y = make_data(120, seed=2)
    more = make_data(60, seed=3)
    model = clone(MODELS[name]).fit(X, y)
    model.save(tmp_path / "model")
    one, other = load(tmp_path / "model"), load(tmp_path / "model")
    assert_array_equal(one.decision_function(more[0]), model.decision_function(more[0]))
    if name.startswith("OKS"):  # goes on with the rates of the model that was saved
        assert one._learners[0].delta == model._learners[0].delta
        assert one._learners[0].rate == model._learners[0].rate
    for each in (one, other):
        each.partial_fit(*more)
        assert np.isfinite(each.kernel_probabilities_).all() and each.predict(X).shape == (120,)
    if MODELS[name].random_state is not None or name == "OM1":
        assert_array_equal(one.decision_function(X), other.decision_function(X))
    if name == "OM1":
        assert_array_equal(model.partial_fit(*more).decision_function(X), one.decision_function(X))


@pytest.mark.parametrize("cls", ALL)
def test_saving_kernel_matrices_and_frames(cls, tmp_path):
    K, y = make_stack(60, 3, seed=2)
    frame = pd.DataFrame(make_data(60, seed=2)[0], columns=list("abcdef"))
    for kernels, data in (("precomputed", K), ([("p", RBF(), ["a", "b"]), ("q", Linear(), ["c"])], frame)):
        model = cls(kernels, random_state=0, **QUIET).fit(data, y)
        model.save(tmp_path / "model")
        assert os.path.getsize(tmp_path / "model") < 50_000  # matrices stay behind
        loaded = load(tmp_path / "model")
        assert_array_equal(loaded.decision_function(data), model.decision_function(data))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[list("fedcba")])


def test_a_fitted_model_forgets_what_it_does_not_use():
    """Only support samples are kept."""
    X, y = make_data(2000, seed=2, noise=0.0, spread=0.02)
    model = OKS(CUES, random_state=0, **QUIET).fit(X, y)
    assert len(pickle.dumps(model._held)) < 0.2 * X.nbytes
