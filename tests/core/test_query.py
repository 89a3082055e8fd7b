"""Rules for requesting labels, and streams of all learners that take one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from plain_kernels import plain_kernel
from scipy.stats import binomtest
from sklearn.linear_model import SGDClassifier

from cuelearn.core.estimator import load
from cuelearn.kernels import RBF
from cuelearn.mkl import OM2
from cuelearn.omcl import OMCL, KernelPerceptron, MarginQuery, ProjectronPlusPlus, RandomQuery, ThresholdQuery

N = 20_000
rng = np.random.default_rng(0)
Y = rng.integers(0, 3, 150)
X = rng.normal(size=(150, 4)) + np.eye(3, 4)[Y] + np.eye(3, 4, 1)[Y]
K = np.stack([plain_kernel("sqeuclidean", X[:, i : i + 2], X[:, i : i + 2], scale=1.5) for i in (0, 2)])
CUES = [("a", RBF(scale=1.5), [0, 1]), ("b", RBF(scale=1.5), [2, 3])]
LEARNERS = [
    ("a", KernelPerceptron(CUES[0][1]), [0, 1]),
    ("b", ProjectronPlusPlus(CUES[1][1], eta=0.3), [2, 3]),
]
GIVEN = [("a", KernelPerceptron("precomputed"), 0), ("b", ProjectronPlusPlus("precomputed", eta=0.3), 1)]
THREE = {"classes": [0, 1, 2]}
QUERY = MarginQuery(0.3)
FORMS = [
    (OM2, CUES, X, 1e-5),
    (OM2, "precomputed", K, 1e-9),
    (OMCL, LEARNERS, X, 1e-9),
    (OMCL, GIVEN, K, 1e-9),
]
streams = pytest.mark.parametrize("method, cues, data, tolerance", FORMS)


@pytest.mark.parametrize(
    "query, margin, share",
    [
        (MarginQuery(0.1), 0.1, 0.5),
        (MarginQuery(), 0.25, 0.8),
        (MarginQuery(0.5), 4.5, 0.1),
        (RandomQuery(0.3), 1e9, 0.3),
        (RandomQuery(0.0), 0.0, 0.0),
        (ThresholdQuery(0.2), 0.2, 1.0),
        (ThresholdQuery(0.2), 0.21, 0.0),
    ],
)
def test_shares(query, margin, share):
    requested = int(np.sum(margin <= query.limits(0, N)))
    assert binomtest(requested, N, share).pvalue > 1e-3


@pytest.mark.parametrize("rule", [MarginQuery, RandomQuery])
def test_draws_belong_to_visits(rule):
    query = rule(0.3, seed=7)
    whole = query.limits(0, 50)
    parts = [query.limits(start, end - start) for start, end in ((0, 13), (13, 13), (13, 50))]
    assert_array_equal(np.concatenate(parts), whole)
    assert not np.array_equal(rule(0.3, seed=8).limits(0, 50), whole)


def batch(data, start, end):
    return data[:, start:end, :end] if data.ndim == 3 else data[start:end]


@streams
@pytest.mark.parametrize("size", [1, 40, 150])
def test_a_stream_reads_requested_labels_only(size, method, cues, data, tolerance, tmp_path):
    wanted = method(cues, query=QUERY).fit(data, Y)
    scores = wanted.decision_function(data)
    model = method(cues, query=QUERY)
    read = []
    for start in range(0, 150, size):

        def label(i, start=start):
            read.append(start + i)
            return Y[start + i]

        model.partial_fit(batch(data, start, min(start + size, 150)), label, **THREE)
        if start == 40:
            model.save(tmp_path / "stream.npz")
            model = load(tmp_path / "stream.npz")
    assert_array_equal(read, np.flatnonzero(wanted.queried_))
    assert 20 < model.n_queries_ == wanted.n_queries_ < 130 and model.n_seen_ == 150
    assert_allclose(model.decision_function(data), scores, rtol=tolerance, atol=tolerance)
    other = method(cues, query=QUERY).fit(data, np.where(wanted.queried_, Y, (Y + 1) % 3))
    assert_array_equal(other.decision_function(data), scores)


@streams
def test_visits_without_a_request_change_nothing(method, cues, data, tolerance):
    last = {"average": False} if method is OMCL else {}  # the mean goes on to the last hypothesis
    model = method(cues, query=QUERY, **last).partial_fit(batch(data, 0, 100), Y[:100], **THREE)
    before = model.decision_function(batch(data, 0, 100))
    model.set_params(query=RandomQuery(0.0)).partial_fit(batch(data, 100, 150), lambda i: 1 / 0)
    after = model.decision_function(data)[:100]
    assert_allclose(after, before, atol=0.0 if data.ndim == 3 or method is OMCL else tolerance)
    assert model.n_seen_ == 150 and model.queried_.sum() == model.n_queries_ < 100


SGD = {"integrator": SGDClassifier(random_state=0), "average": False}


@pytest.mark.parametrize(
    "method, cues, options",
    [
        (OM2, CUES, {"p": 1.1, "shuffle": True, "memory": 2e9}),
        (OM2, CUES, {"p": 1.1, "shuffle": True, "memory": 0.0}),
        (OMCL, LEARNERS, {}),
        (OMCL, LEARNERS, SGD),
    ],
)
def test_epochs_with_all_labels_requested(method, cues, options):
    options = {"n_epochs": 2, "random_state": 0, **options}
    wanted = method(cues, **options).fit(X, Y)
    model = method(cues, query=RandomQuery(1.0), **options).fit(X, Y)
    assert_array_equal(model.online_errors_, wanted.online_errors_)
    near = 1e-5 if method is OM2 else 1e-9
    assert_allclose(model.decision_function(X), wanted.decision_function(X), rtol=near, atol=near)
    assert model.n_queries_ == 2 * len(Y)
    assert method is OMCL or wanted.n_queries_ == 2 * len(Y)


@pytest.mark.parametrize(
    "method, cues, options", [(OM2, CUES, {"class_weight": {0: 2.0}}), (OMCL, LEARNERS, {})]
)
def test_weights(method, cues, options):
    weights = np.random.default_rng(1).choice([0.0, 0.5, 2.0], len(Y))
    wanted = method(cues, query=QUERY, **options).fit(X, Y, weights)
    model = method(cues, query=QUERY, **options)
    model.partial_fit(X[:40], lambda i: Y[i], sample_weight=weights[:40], **THREE)
    model.partial_fit(X[40:], lambda i: Y[40 + i], sample_weight=weights[40:])
    assert_array_equal(model.queried_, wanted.queried_)
    assert_allclose(model.decision_function(X), wanted.decision_function(X), atol=1e-5)
    if method is OM2:
        assert (weights[model.visits_] > 0.0).all()
    else:
        every = method(cues, query=RandomQuery(1.0)).fit(X, Y, weights)
        assert_array_equal(every.queried_, weights > 0.0)


def test_a_label_outside_the_classes():
    """OM-2 forgets the batch, OMCL goes on from there."""
    model = OM2(CUES, query=QUERY).partial_fit(X[:40], Y[:40], **THREE)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=r"outside classes: \[9\]"):
        model.partial_fit(X[40:], lambda i: 9 if i > 5 else Y[i])
    assert_array_equal(model.decision_function(X), before)
    model = OMCL(LEARNERS, query=RandomQuery(1.0))
    with pytest.raises(ValueError, match=r"outside classes: \[9\]"):
        model.partial_fit(X, lambda i: 9 if i == 5 else Y[i], **THREE)
    assert model.n_seen_ == 5
    model.partial_fit(X[5:], lambda i: Y[5 + i])
    wanted = OMCL(LEARNERS).fit(X, Y)
    assert_allclose(model.decision_function(X), wanted.decision_function(X), atol=1e-9)


def test_what_does_not_go_with_a_query():
    for model, message in (
        (OM2(CUES, query=QUERY, tol=0.1), "tol must be None with a query"),
        (OM2(CUES, query=QUERY, class_weight="balanced"), "class_weight must be None or a dict with a query"),
        (OMCL(LEARNERS, KernelPerceptron(), query=QUERY), "integrator must not have a kernel with a query"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y)
    for model in (OM2(CUES), OMCL(LEARNERS)):
        with pytest.raises(ValueError, match="y must be an array of labels without a query, got a function"):
            model.partial_fit(X, lambda i: Y[i], **THREE)
    for rule, value in ((MarginQuery, 0.0), (ThresholdQuery, -0.1), (RandomQuery, 1.5)):
        with pytest.raises(ValueError, match="^(b|threshold|rate) must"):
            rule(value)


def test_the_bound_of_a_perceptron_with_two_classes():
    """With b = X^2 and margins 2 |w x| the mistakes stay, in the mean, below (X |u|)^2; u has margin 1."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=5)
    samples = rng.normal(size=(400, 5))
    samples = samples[np.abs(samples @ u) >= 1.0]
    radius_sq = (samples**2).sum(axis=1).max()
    mistakes = 0
    for seed in range(10):
        w = np.zeros(5)
        limits = MarginQuery(radius_sq, seed=seed).limits(0, len(samples))
        for x, limit in zip(samples, limits, strict=True):
            wrong = np.sign(u @ x) * (w @ x) <= 0.0
            mistakes += wrong
            if wrong and 2.0 * abs(w @ x) <= limit:
                w += np.sign(u @ x) * x
    assert 0 < mistakes / 10 <= radius_sq * (u @ u)
