"""OMCL that learns from requested labels only: its plain twin, labels never read, streams."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from omcl_twins import TwinKernel, TwinOMCL, make_stream
from plain_kernels import plain_kernel
from sklearn.linear_model import SGDClassifier

from cuelearn.kernels import RBF
from cuelearn.omcl import (
    OMCL,
    KernelPerceptron,
    MarginQuery,
    PassiveAggressive,
    ProjectronPlusPlus,
    RandomQuery,
    ThresholdQuery,
    load,
)

N = 150
CUES = [
    ("first", KernelPerceptron(RBF(scale=1.5)), [0, 1, 2, 3]),
    ("second", ProjectronPlusPlus(RBF(scale=1.0), eta=0.3), [4, 5, 6, 7]),
]
RULES = [MarginQuery(0.3), ThresholdQuery(0.9), RandomQuery(0.4)]
ids = {"ids": lambda rule: type(rule).__name__}


def stacked(X):
    """Precomputed cues: learners and kernels."""
    parts = ((X[:, :4], 1.5), (X[:, 4:], 1.0))
    K = np.stack([plain_kernel("sqeuclidean", part, part, scale=scale) for part, scale in parts])
    learners = KernelPerceptron("precomputed"), ProjectronPlusPlus("precomputed", eta=0.3)
    return [(name, learner, j) for j, (name, learner) in enumerate(zip("ab", learners, strict=True))], K


def twin_run(K, y, limits, n_classes):
    """The plain two layers, which learn where the margin is at most the limit; what was requested."""
    first = [TwinKernel("perceptron", K[0], n_classes), TwinKernel("projectron++", K[1], n_classes, 0.3)]
    twin = TwinOMCL([(learner, range(len(y))) for learner in first], n_classes, C=1.0)
    queried = np.zeros(len(y), dtype=bool)
    n_products = 0
    for t, label in enumerate(y):
        S = np.concatenate([learner.A @ learner.K[:, t] for learner in first])
        scores = np.sort(twin.second.A @ S)
        queried[t] = scores[-1] - scores[-2] <= limits[t]
        if not queried[t]:
            continue
        for learner in first:
            learner.learn(t, label)
        twin.second.learn(S, label)
        n_products += 1
        for j, learner in enumerate(first):
            block = twin.second.A[:, j * n_classes : (j + 1) * n_classes]
            twin.totals[j] += block @ learner.A
    return queried, [total / n_products for total in twin.totals], twin


@pytest.mark.parametrize("query", RULES, **ids)
def test_visits_are_those_of_the_twin(query):
    """Of features and of precomputed kernels; with the average over the requested visits."""
    X, y = make_stream(N, 8, 3, seed=1)
    given, K = stacked(X)
    queried, products, twin = twin_run(K, y, query.limits(0, N), 3)
    for cues, data, new in ((CUES, X, X[:20]), (given, K, K[:, :20])):
        model = OMCL(cues, PassiveAggressive(C=1.0), query=query).fit(data, y)
        assert 1 < model.n_queries_ == queried.sum() < N
        assert_array_equal(model.queried_, queried)
        assert_array_equal(model.online_errors_[queried], twin.second.mistakes)
        assert not model.online_errors_[~queried].any()
        assert_allclose(model.cumulative_loss_, twin.second.losses.sum(), rtol=1e-8)
        wanted = sum(K[j][:20] @ products[j].T for j in range(2))
        assert_allclose(model.decision_function(new), wanted, atol=1e-8)
        last = model.set_params(average=False).decision_function(new)
        S = np.concatenate([K[j][:20] @ twin.cues[j][0].A.T for j in range(2)], axis=1)
        assert_allclose(last, S @ twin.second.A.T, atol=1e-8)
        assert_array_equal(model.learners_[0].support_, twin.cues[0][0].support)


@pytest.mark.parametrize("size", [1, 40, N])
@pytest.mark.parametrize("precomputed", [False, True])
def test_a_stream_reads_requested_labels_only(precomputed, size, tmp_path):
    """In batches of any size as in `fit`, saved on the way; labels not requested may be anything."""
    X, y = make_stream(N, 8, 3, seed=1)
    cues, data = stacked(X) if precomputed else (CUES, X)
    query = MarginQuery(0.3)
    wanted = OMCL(cues, query=query).fit(data, y)
    model = OMCL(cues, query=query)
    read = []
    queried = []
    for start in range(0, N, size):
        end = min(start + size, N)

        def label(i, start=start):
            read.append(start + i)
            return y[start + i]

        batch = data[:, start:end, :end] if precomputed else data[start:end]
        model.partial_fit(batch, label, classes=[0, 1, 2])
        queried.append(model.queried_[-(end - start) :])
        if start == 40:
            model.save(tmp_path / "stream.npz")
            model = load(tmp_path / "stream.npz")
    assert_array_equal(read, np.flatnonzero(wanted.queried_))
    assert_array_equal(np.concatenate(queried), wanted.queried_)
    assert model.n_queries_ == wanted.n_queries_ and model.n_seen_ == N
    new = data[:, :20] if precomputed else X[:20]
    assert_allclose(model.decision_function(new), wanted.decision_function(new), rtol=1e-9, atol=1e-12)
    other = np.where(wanted.queried_, y, (y + 1) % 3)
    again = OMCL(cues, query=query).fit(data, other)
    assert_array_equal(again.decision_function(new), wanted.decision_function(new))


def test_visits_without_a_request_change_nothing():
    X, y = make_stream(N, 8, 3, seed=1)
    weights = np.r_[np.ones(100), np.zeros(50)]
    model = OMCL(CUES, query=MarginQuery(0.3)).fit(X[:100], y[:100])
    before = model.decision_function(X)
    model.set_params(query=RandomQuery(0.0)).partial_fit(X[100:], lambda i: 1 / 0)
    assert_array_equal(model.decision_function(X), before)
    assert model.n_seen_ == N and not model.queried_[100:].any()
    model = OMCL(CUES, query=RandomQuery(1.0)).fit(X, y, weights)
    assert_array_equal(model.queried_, weights > 0)


def test_all_requested_is_omcl():
    X, y = make_stream(N, 8, 3, seed=1)
    for options in ({}, {"integrator": SGDClassifier(random_state=0), "average": False}):
        wanted = OMCL(CUES, n_epochs=2, random_state=0, **options).fit(X, y)
        model = OMCL(CUES, n_epochs=2, random_state=0, query=RandomQuery(1.0), **options).fit(X, y)
        assert_array_equal(model.online_errors_, wanted.online_errors_)
        assert_allclose(model.decision_function(X), wanted.decision_function(X), atol=1e-9)
        assert model.n_queries_ == wanted.n_queries_ == 2 * N
        assert wanted.queried_.all()


def test_bad_input():
    X, y = make_stream(N, 8, 3, seed=1)
    classes = [0, 1, 2]
    with pytest.raises(ValueError, match="y must be an array of labels without a query, got a function"):
        OMCL(CUES).partial_fit(X, lambda i: y[i], classes=classes)
    with pytest.raises(ValueError, match="integrator must not have a kernel with a query"):
        OMCL(CUES, KernelPerceptron(RBF(scale=1.0)), average=False, query=MarginQuery()).fit(X, y)
    with pytest.raises(ValueError, match="'query' parameter of OMCL must be"):
        OMCL(CUES, query=0.5).fit(X, y)
    model = OMCL(CUES, query=RandomQuery(1.0))
    with pytest.raises(ValueError, match=r"y holds labels outside classes: \[9\]"):
        model.partial_fit(X, lambda i: 9 if i == 5 else y[i], classes=classes)
    assert model.n_seen_ == 5  # the stream goes on from there
    model.partial_fit(X[5:], lambda i: y[5 + i])
    wanted = OMCL(CUES).fit(X, y)
    assert_allclose(model.decision_function(X), wanted.decision_function(X), atol=1e-9)
