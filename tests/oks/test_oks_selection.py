"""Selection by sampling, and the chapter's estimators as their users meet them."""

import os
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oks_engine import State
from oks_problems import CUES, assert_same, frozen, signs
from oks_twins import automatic_eta, first_above, make_data, make_stack, perceptron, plan, run_selection
from plain_kernels import distances, plain_kernel
from scipy.special import softmax
from scipy.stats import binom
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

from cuelearn.kernels import RBF, Chi2, ExpDistance, KernelBank, Linear, Poly, Precomputed
from cuelearn.oks import OKS, OM1, SOM, MuTron, OKSRegret, load, solve_selection
from cuelearn.oks.oks import oks_pass
from cuelearn.oks.regret import loss_and_slope
from cuelearn.oks.selection import draw
from cuelearn.oks.sources import Given
from cuelearn.omcl import KernelPerceptron

SAMPLING = [OKS, OKSRegret, SOM]
ALL = [*SAMPLING, OM1, MuTron]


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
    """4,000 draws from one state: the mean of the importance-weighted losses is the true loss vector."""
    state, targets = trained_state(rule, loss)
    m, eta, uniforms = len(state.p), 0.02, np.random.default_rng(0).random(4_000)
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
    spread = np.sqrt((1.0 / state.p - 1.0) / 4_000)
    # 3.4 is Bonferroni's bound at 0.5% for 8 kernels
    assert np.all(np.abs(total / 4_000 - true) <= 3.5 * true * spread)
    assert_allclose(total / 4_000, true * counts / (4_000 * state.p), rtol=1e-9)


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
        ("oks", 1e-9, 1e3),
        ("oks", 1.0, 10.0),
        ("oks", 0.5, 1e9),
        ("regret", 0.2, None),
        ("regret", 1e-6, 10.0),
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


# ------------------------------------------------------------------ kernels are evaluated only where they are
# needed


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
    cls(cues, random_state=0).fit(X[:100], y[:100])
    tracemalloc.start()
    try:
        model = cls(cues, random_state=0).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.1 * 4 * 4000**2
    if cls is not OKSRegret:
        assert model.n_evaluations_ < 0.01 * 3 * 4000**2


@pytest.mark.parametrize("n", [60, 900])
def test_scales_by_the_rule_of_the_mean(n):
    """The mean distance over the pairs of at most 500 evenly spaced samples, whatever the seed."""
    X, y = make_data(n, seed=2)
    cues = [("rbf", RBF(), slice(0, 3)), ("chi2", Chi2(factor=2.0), slice(3, 6))]
    triples = OKS(cues, random_state=0).fit(X, y)._source.triples
    assert OKS(cues, random_state=1).fit(X, y)._source.triples == triples
    part = X[np.linspace(0, n - 1, min(n, 500)).astype(int)]
    sums = [distances("sqeuclidean", part[:, :3], part[:, :3]).sum()]
    sums.append(2.0 * distances("chi2", part[:, 3:], part[:, 3:]).sum())
    scales = [kernel.scale for _, kernel, _ in triples]
    assert_allclose(scales, np.array(sums) / (len(part) * (len(part) - 1)), rtol=1e-5)
    default = OKS([("rbf", RBF(), slice(None))], random_state=0).fit(X, y).decision_function(X)
    assert_array_equal(OKS(random_state=0).fit(X, y).decision_function(X), default)


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
    K, rng = plain_kernel("sqeuclidean", X, X, scale=0.5), np.random.default_rng(6)
    rng.random(150)  # the draws of the first epoch, from among one kernel
    twin = perceptron(K, signs(y), np.concatenate([np.arange(150), rng.permutation(150)]))
    one = [("one", RBF(scale=0.5), slice(None))]
    options = {"delta": delta, "shuffle": False, "random_state": 6}
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
    model = cls(CUES, random_state=0)
    for start in range(0, 150, size):
        model.partial_fit(X[start : start + size], y[start : start + size], classes=[0, 1])
    probabilities, outputs = stream_by_hand(cls, X, y)
    assert_allclose(model.kernel_probabilities_, probabilities, rtol=1e-6)
    assert_allclose(model.decision_function(X), outputs, rtol=1e-6, atol=1e-9)


def test_a_fitted_model_forgets_what_it_does_not_use():
    """Only support samples are kept."""
    X, y = make_data(2000, seed=2, noise=0.0, spread=0.02)
    model = OKS(CUES, random_state=0).fit(X, y)
    assert len(pickle.dumps(model._held)) < 0.2 * X.nbytes


# ------------------------------------------------------------------ several classes, threads, records, files


@pytest.mark.parametrize("cls", [OKS, SOM, OM1, MuTron])
def test_the_same_bits_for_any_number_of_jobs(cls):
    """One problem per class, in threads."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:200] / 16.0, y[:200]
    cues = [("top", RBF(scale=8.0), slice(0, 32)), ("bottom", Chi2(scale=5.0), slice(32, 64))]
    models = []
    for n_jobs in (1, 2):
        rng = np.random.default_rng(7)
        models.append(cls(cues, one_vs_rest=True, random_state=rng, n_jobs=n_jobs).fit(X, y))
    assert_same(frozen(models[1]), frozen(models[0]))
    assert_array_equal(models[1].decision_function(X), models[0].decision_function(X))


@pytest.mark.parametrize("cls", ALL)
def test_one_versus_rest(cls):
    """Each problem is the binary one of its class with a generator of its own."""
    X, y = load_iris(return_X_y=True)
    X = X[::2] / X.max(axis=0)
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y[::2]]
    cues = [("a", RBF(), [0, 1]), ("b", RBF(factor=0.3), [2, 3]), ("c", Linear(), slice(None))]
    options = {"step": 0.1} if cls is OKSRegret else {}
    model = cls(cues, one_vs_rest=True, random_state=0, **options).fit(X, names)
    values = model.decision_function(X)
    assert values.shape == (75, 3) and model.score(X, names) > 0.63
    assert_array_equal(model.predict(X), model.classes_[np.argmax(values, axis=1)])
    assert model.kernel_probabilities_.shape == (3, 3)
    assert [cues[b][0] for b in model.best_index_] == model.best_kernel_
    for name in ("support_", "dual_coef_", "n_updates_", "n_evaluations_", "probability_history_"):
        assert len(getattr(model, name)) == 3, name
    assert model.history_.target.nunique() == 3
    for c, rng in enumerate(np.random.default_rng(0).spawn(3)):
        if cls is not MuTron:  # which also draws what it holds back
            alone = cls(cues, random_state=rng, **options).fit(X, names == model.classes_[c])
            assert_array_equal(alone.decision_function(X), values[:, c])


def test_two_classes_are_one_problem_also_one_versus_rest():
    X, y = make_data(100, seed=2)
    found, wanted = (frozen(OKS(CUES, one_vs_rest=o, random_state=0).fit(X, y)) for o in (True, False))
    assert_same(found, wanted)


@pytest.mark.parametrize("cls", ALL)
def test_records_and_callbacks(cls):
    """A callback changes nothing, sees the history so far, and may end the run."""
    X, y = make_data(300, seed=2)
    seen = []

    def watch(model, step):
        seen.append(step)
        assert len(model.history_) == len(seen)
        assert model.probability_history_.shape == (len(seen), len(CUES))
        assert model.kernel_probabilities_.sum() == pytest.approx(1.0, abs=1e-12)
        assert model.decision_function(X[:5]).shape == (5,)

    options = {"n_epochs": 2, "random_state": 0}
    model = cls(CUES, callback=watch, **options).fit(X, y)
    history = model.history_
    columns = "step epoch seconds n_updates n_support online_error n_evaluations"
    assert list(history.columns) == columns.split()
    n = 300 if cls is not MuTron else 270
    assert seen == history.step.tolist() and seen[-1] == 2 * n
    assert history.epoch.tolist() == [1 + (s > n) for s in history.step]
    for column in ("step", "seconds", "n_updates", "n_evaluations"):
        assert (history[column].diff()[1:] >= 0).all()
    assert_same(frozen(model), frozen(cls(CUES, **options).fit(X, y)))
    stopped = cls(CUES, callback=lambda model, step: step >= 100, **options).fit(X, y)
    assert 100 <= stopped.history_.step.iloc[-1] < 300 and stopped.predict(X).shape == (300,)


def test_more_visits_than_the_first_support_has_room_for():
    X, y = make_data(400, seed=2, noise=0.5)
    model = OKS(CUES, eta=0.01, random_state=0)
    for _ in range(10):
        model.partial_fit(X, y, classes=[0, 1])
    assert max(map(len, model.support_)) > 100 and len(model.drawn_) == 4000
    # each visit is a sample of its own
    assert model.n_updates_ == model.online_errors_.sum() == sum(map(len, model.support_))


def test_single_samples_need_no_first_batch():
    """Where gamma or scale is a number."""
    X, y = make_data(40, seed=2)
    numbers = [RBF(scale=1.0), RBF(gamma=1), Poly(), Poly(gamma=0.5), Chi2(scale=np.float32(0.5))]
    numbers.append(ExpDistance("euclidean", scale=3))
    cues = [(str(j), kernel, slice(None)) for j, kernel in enumerate(numbers)]
    options = {"eta": 0.1, "random_state": 0, "shuffle": False, "n_epochs": 1}
    model, whole = OKS(cues, **options), OKS(cues, **options).fit(X, y)
    for t in range(40):
        model.partial_fit(X[t : t + 1], y[t : t + 1], classes=[0, 1])
    assert_array_equal(model.decision_function(X), whole.decision_function(X))


def test_a_loaded_model_keeps_its_rates(tmp_path):
    X, y = make_data(120, seed=2)
    own = {"delta": np.array([0.7, 0.3]), "eta": np.float32(0.5), "random_state": np.int64(3)}
    for options in (own, {"delta": [0.7, 0.3]}, {}):
        model = OKS(CUES, **options).fit(X, y)
        model.save(tmp_path / "model")
        (learner,), (wanted,) = load(tmp_path / "model")._learners, model._learners
        assert (learner.delta, learner.rate) == (wanted.delta, wanted.rate)


def test_matrices_stay_behind(tmp_path):
    K, y = make_stack(90, 3, seed=2)
    OKS("precomputed", random_state=0).fit(K, y).save(tmp_path / "model")
    assert os.path.getsize(tmp_path / "model") < 50_000 < K.nbytes


def test_norms_of_functions_are_not_known():
    X, y = make_data(60, seed=2)
    model = OKS([("dot", np.inner, slice(None))], random_state=0).fit(X, y)
    assert model.summary().norm.isna().all()


# ------------------------------------------------------------------ bad input: one clear sentence each

NO_SHARE = (0.0, -0.1, 1.1, np.nan, "half", None, [], (0.5, 0.0), ["a"], True, [[0.5]], np.array(2.0))
NO_STEP = (0.0, -1.0, np.nan, np.inf, "big", None, True)
NO_PART = (0.0, 1.0, -0.5, np.nan, "a", None, True)
BAD = [
    *((cls, "delta", NO_SHARE) for cls in (OKS, OKSRegret)),
    (SOM, "delta", (-0.1, 1.1, np.nan, "half", None, [], (0.5, 2.0))),
    *((cls, name, NO_STEP) for cls, name in ((OKS, "eta"), (OKSRegret, "eta"), (OKSRegret, "step"))),
    (OKSRegret, "loss", ("zero-one", None, 1, ["hinge"])),
    *((cls, name, NO_PART) for cls, name in ((SOM, "beta"), (OM1, "beta"), (MuTron, "validation"))),
]


@pytest.mark.parametrize("cls, name, values", BAD, ids=lambda v: getattr(v, "__name__", None) or str(v)[:20])
def test_bad_parameters(cls, name, values):
    X, y = make_data(60, seed=2)
    for bad in values:
        with pytest.raises((ValueError, TypeError), match=f"\\b{name}\\b.* must be"):
            cls(CUES, **{name: bad}).fit(X, y)


X, Y = make_data(60, seed=2)
K = make_stack(60, 3, seed=2)[0]
LINE = np.abs(np.subtract.outer(np.arange(600.0), np.arange(600.0)))
NOT_FROM_X = "kernels must be computed from X here"
REFUSED = [
    *((kernels, X, "kernel") for kernels in ("rbf", 3, [RBF()], [("a", RBF())], [], {"a": RBF()})),
    ([("a", "gaus", [0])], X, "kernel"),
    ([("a", RBF(), [6])], X, "'a'|column"),
    ([("a", RBF(), [0]), ("a", RBF(), [1])], X, "'a'|names"),
    (CUES, -X, "X must not be negative|'chi2'"),
    (CUES, K, "Found array with dim 3|KernelBank"),
    (CUES, KernelBank(CUES, X), "KernelBank"),
    ([("a", Precomputed(), slice(None))], K[0], NOT_FROM_X),
    ([("a", ExpDistance("precomputed"), slice(None))], LINE[:60, :60], NOT_FROM_X),
    ([("a", ExpDistance("precomputed"), slice(None))], LINE, NOT_FROM_X),
    ("precomputed", K[0, :9], r"shape \(n_kernels, n, n\)"),
    ("precomputed", K[:, :59], "must have|shape"),
    ("precomputed", K[:, :59, :59], "y must have one label per sample, 59, got 60"),
    ("precomputed", K[:0], "shape|y must have"),
    ("precomputed", KernelBank(CUES, X, memory=1e3), "KernelBank that computes its rows on demand"),
]


@pytest.mark.parametrize("kernels, given, match", REFUSED)
def test_bad_kernels_and_data(kernels, given, match):
    labels = np.arange(600) % 2 if given is LINE else Y
    with pytest.raises((ValueError, TypeError, IndexError), match=match):
        OKS(kernels, random_state=0).fit(given, labels)


def test_bad_samples_to_predict():
    with pytest.raises(ValueError, match="X must not be negative"):
        OKS(CUES, random_state=0).fit(X, Y).predict(-X)
    model = OKS("precomputed", random_state=0).fit(K, Y)
    for bad in (K[:2], K[:, :, :50], K[0]):
        with pytest.raises(ValueError, match=r"X must have shape \(3, n, 60\)"):
            model.predict(bad)
    assert model.predict(K[:, :7]).shape == (7,)


@pytest.mark.parametrize("cls", ALL)
def test_several_classes_need_to_be_asked_for(cls):
    X, y = load_iris(return_X_y=True)
    match = "must hold 2 classes.*got 3.*one_vs_rest=True"
    with pytest.raises(ValueError, match=match):
        cls().fit(X, y)
    if cls is not MuTron:
        with pytest.raises(ValueError, match=match):
            cls().partial_fit(X, y, classes=[0, 1, 2])


MEAN = "scale from the first batch.*give gamma or scale as a number"
NO_STREAM = [
    ("precomputed", "kernels must be computed from X for partial_fit, got 'precomputed'"),
    ([("a", np.inner, slice(None))], "for partial_fit, got a function"),
    ([("a", RBF(), slice(None))], MEAN),
    (None, MEAN),
]


@pytest.mark.parametrize("kernels, match", NO_STREAM)
def test_no_stream_of_these_kernels(kernels, match):
    model = OKS(kernels)
    with pytest.raises(ValueError, match=match):
        model.partial_fit(X[:1], Y[:1], classes=[0, 1])
    assert not hasattr(model, "classes_")


def test_a_step_too_long_for_the_square_loss_is_warned_of():
    X, y = make_data(300, seed=2, noise=0.2)
    with pytest.warns(ConvergenceWarning, match="step=1.0 is too long for the square loss"):
        OKSRegret(CUES, loss="square", step=1.0, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OKSRegret(CUES, loss="square", random_state=0).fit(X, y)
