"""Selection by sampling, and the chapter's estimators as their users meet them."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oks_engine import State
from oks_problems import CUES, signs
from oks_twins import make_data, make_stack, plan, run_selection
from plain_kernels import distances
from scipy.special import softmax
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

from cuelearn.kernels import RBF, Chi2, KernelBank, Linear, Precomputed
from cuelearn.oks import OKS, OM1, SOM, MuSVM, MuTron, OKSRegret
from cuelearn.oks.online import draw

ALL = [OKS, OKSRegret, SOM, OM1, MuTron]


def test_draw_at_the_edges():
    p = np.array([0.0, 0.5, 0.0, 0.5, 0.0])
    edges = [0.0, np.nextafter(0.5, 0.0), 0.5, np.nextafter(1.0, 0.0)]
    assert [draw(p, u) for u in edges] == [1, 1, 3, 3]
    tenth = np.full(10, 0.1)  # adds up to a little less than 1
    assert np.cumsum(tenth)[-1] < 1.0 and draw(tenth, np.nextafter(1.0, 0.0)) == 9


@pytest.mark.parametrize(
    "rule, delta, eta", [("oks", 1e-9, 1e3), ("oks", 0.5, 1e9), ("regret", 1e-6, 10.0), ("som", 0.0, 0.1)]
)
def test_a_million_rounds(rule, delta, eta):
    """Weights stay finite and probabilities sum to 1, where the first kernel always errs, the second never
    again after one update, the others one visit in two."""
    K, y = np.ones((5, 2, 2)), np.array([1.0, -1.0])
    K[0] = 0.0
    K[1] = np.outer(y, y)
    n, rng = 1_000_000, np.random.default_rng(0)
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
    if rule == "oks":
        assert np.argmax(state.q) == 1 and state.q[1] > 0.999 and not mistakes[drawn == 1].any()


@pytest.mark.parametrize("rule", ["oks", "som", "regret"])
def test_nothing_else_is_read(rule):
    """All kernel values but those of the drawn kernel with its own support are NaN: the run is the same."""
    K, y = make_stack(80, 6, seed=2)
    twin = run_selection(rule, K, signs(y), seed=3, delta=0.2, beta=0.8, eta=0.05, step=0.1)
    _, uniforms = plan(80, 2, True, np.random.default_rng(3))
    poisoned = np.full_like(K, np.nan)
    for entry in twin.entries:
        poisoned[entry] = K[entry]
    assert np.isnan(poisoned).mean() > (0.3 if rule == "regret" else 0.8)
    eta = -np.log(0.8) if rule == "som" else 0.05
    state = State(poisoned, rule)
    drawn, mistakes, losses = state.run(twin.order, signs(y), uniforms.ravel(), 0.2, eta, 0.1)
    assert_array_equal(drawn, twin.drawn)
    assert_array_equal(mistakes, twin.mistakes)
    assert_allclose(losses, twin.losses, atol=1e-9)
    assert_allclose(state.q, twin.q, atol=1e-9)
    assert state.n_evaluations == twin.n_evaluations


def test_no_kernel_matrix_is_ever_formed(peak_of):
    X, y = make_data(4000, seed=2, noise=0.02, spread=0.05)
    cues = [("rbf", RBF(), slice(0, 3)), ("chi2", Chi2(), slice(3, 6)), ("all", RBF(), slice(0, 6))]
    model = OKS(cues, n_epochs=2, random_state=0)
    assert peak_of(lambda: model.fit(X, y)) < 0.1 * 4 * 4000**2
    assert model.n_evaluations_ < 0.01 * 3 * 4000**2
    assert len(model._held.data) < 0.2 * 4000  # only support samples are kept


def test_scales_by_the_rule_of_the_mean():
    X, y = make_data(900, seed=2)
    cues = [("rbf", RBF(), slice(0, 3)), ("chi2", Chi2(factor=2.0), slice(3, 6))]
    triples = OKS(cues, random_state=0).fit(X, y)._source.triples
    assert OKS(cues, random_state=1).fit(X, y)._source.triples == triples
    part = X[np.linspace(0, 899, 500).astype(int)]
    sums = [distances("sqeuclidean", part[:, :3], part[:, :3]).sum()]
    sums.append(2.0 * distances("chi2", part[:, 3:], part[:, 3:]).sum())
    scales = [kernel.scale for _, kernel, _ in triples]
    assert_allclose(scales, np.array(sums) / (len(part) * (len(part) - 1)), rtol=1e-5)


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


@pytest.mark.parametrize("cls", [OKS, OKSRegret])
def test_default_steps_of_a_stream(cls):
    X, y = make_data(150, seed=2)
    model = cls(CUES, random_state=0)
    for start in range(0, 150, 7):
        model.partial_fit(X[start : start + 7], y[start : start + 7], classes=[0, 1])
    probabilities, outputs = stream_by_hand(cls, X, y)
    assert_allclose(model.kernel_probabilities_, probabilities, rtol=1e-6)
    assert_allclose(model.decision_function(X), outputs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("cls, options", [(OKS, {}), (MuTron, {}), (MuSVM, {"C": (0.3, 10.0)})])
def test_the_same_bits_for_any_number_of_jobs(cls, options):
    X, y = load_digits(return_X_y=True)
    X, y = X[:200] / 16.0, y[:200]
    cues = [("top", RBF(scale=8.0), slice(0, 32)), ("bottom", Chi2(scale=5.0), slice(32, 64))]
    options = {"one_vs_rest": True, "random_state": 7, **options}
    wanted, found = (cls(cues, n_jobs=n, **options).fit(X, y) for n in (1, 2))
    assert_array_equal(found.decision_function(X), wanted.decision_function(X))
    record = "validation_accuracy_" if cls is MuSVM else "probability_history_"
    assert_array_equal(getattr(found, record), getattr(wanted, record))


@pytest.mark.parametrize("cls", ALL)
def test_one_versus_rest(cls):
    X, y = load_iris(return_X_y=True)
    X = X[::2] / X.max(axis=0)
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y[::2]]
    cues = [("a", RBF(), [0, 1]), ("b", RBF(factor=0.3), [2, 3]), ("c", Linear(), slice(None))]
    options = {"step": 0.1} if cls is OKSRegret else {}
    model = cls(cues, one_vs_rest=True, random_state=0, **options).fit(X, names)
    values = model.decision_function(X)
    assert_array_equal(model.predict(X), model.classes_[np.argmax(values, axis=1)])
    assert [cues[b][0] for b in model.best_index_] == model.best_kernel_
    assert len(model.support_) == len(model.n_updates_) == len(model.probability_history_) == 3
    assert model.history_.target.nunique() == 3
    for c, rng in enumerate(np.random.default_rng(0).spawn(3)):
        if cls is not MuTron:  # which also draws what it holds back
            alone = cls(cues, random_state=rng, **options).fit(X, names == model.classes_[c])
            assert_array_equal(alone.decision_function(X), values[:, c])


X, Y = make_data(60, seed=2)
K = make_stack(60, 3, seed=2)[0]


def test_no_delta_of_a_sequence_is_0():
    with pytest.raises(ValueError, match=r"\bdelta\b.* must be"):
        OKS(CUES, delta=(0.5, 0.0)).fit(X, Y)


@pytest.mark.parametrize(
    "kernels, given, match",
    [
        (CUES, -X, "chi2 and distances need non-negative values"),
        (CUES, KernelBank(CUES, X), "KernelBank"),
        ([("a", Precomputed(), slice(None))], K[0], "kernels must be computed from X here"),
        ("precomputed", K[0, :9], r"shape \(n_kernels, n, n\)"),
        ("precomputed", KernelBank(CUES, X, memory=1e3), "KernelBank that computes its rows on demand"),
    ],
)
def test_bad_kernels_and_data(kernels, given, match):
    with pytest.raises(ValueError, match=match):
        OKS(kernels, random_state=0).fit(given, Y)


def test_bad_samples_to_predict():
    with pytest.raises(ValueError, match="cue 'chi2': chi2 and distances need non-negative values"):
        OKS(CUES, random_state=0).fit(X, Y).predict(-X)
    with pytest.raises(ValueError, match=r"X must have shape \(3, n, 60\)"):
        OKS("precomputed", random_state=0).fit(K, Y).predict(K[:2])


@pytest.mark.parametrize(
    "kernels, match",
    [
        ("precomputed", "kernels must be computed from X for partial_fit"),
        ([("a", np.inner, slice(None))], "for partial_fit, got a function"),
        (None, "scale from the first batch"),
    ],
)
def test_no_stream_of_these_kernels(kernels, match):
    model = OKS(kernels)
    with pytest.raises(ValueError, match=match):
        model.partial_fit(X[:1], Y[:1], classes=[0, 1])
    assert not hasattr(model, "classes_")


def test_a_stream_of_several_classes_needs_to_be_asked_for():
    with pytest.raises(ValueError, match="must hold 2 classes.*got 3.*one_vs_rest=True"):
        OM1().partial_fit(X, Y, classes=[0, 1, 2])


def test_a_step_too_long_for_the_square_loss_is_warned_of():
    X, y = make_data(300, seed=2, noise=0.2)
    with pytest.warns(ConvergenceWarning, match="step=1.0 is too long for the square loss"):
        OKSRegret(CUES, loss="square", step=1.0, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OKSRegret(CUES, loss="square", random_state=0).fit(X, y)
