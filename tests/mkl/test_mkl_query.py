"""OM-2 that learns from requested labels only: its plain twin, labels never read, streams."""

import numpy as np
import pytest
from mkl_data import make_data
from mkl_twins import TwinOM2, class_scores, make_stack
from numpy.testing import assert_allclose, assert_array_equal

from cuelearn.kernels import RBF, KernelBank, Linear
from cuelearn.mkl import OM2, MarginQuery, MKLProblem, RandomQuery, ThresholdQuery, load, solve_om2

N = 80
CUES = [("shape", RBF(scale=4.0), [0, 1]), ("colour", Linear(), [2, 3])]
RULES = [MarginQuery(0.3), ThresholdQuery(0.9), RandomQuery(0.4)]


class TwinQuerying(TwinOM2):
    """Sorted scores before each step; returns whether the label was requested, and a mistake."""

    def step_within(self, i, limit):
        scores = np.sort(class_scores(self.K[:, [i]], self.A, self.point()[1], self.factor)[0])
        if scores[-1] - scores[-2] > limit:
            return False, False
        return True, self.step(i)


def labels_on_request(y, start, read):
    def label(i):
        read.append(start + i)
        return y[start + i]

    return label


@pytest.mark.parametrize("query", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("p, n_classes", [(1.05, 4), (2.0, 2)])
def test_visits_are_those_of_the_twin(p, n_classes, query):
    K, y = make_stack(np.random.default_rng(0), N, 4, n_classes)
    model = OM2("precomputed", p=p, query=query).fit(K, y)
    twin = TwinQuerying(K, y, n_classes, p)
    limits = query.limits(0, N)
    queried, mistakes = np.transpose([twin.step_within(i, limits[i]) for i in range(N)])
    assert 1 <= model.n_queries_ == queried.sum() < N
    assert_array_equal(model.queried_, queried)
    assert_array_equal(model.online_errors_, mistakes)
    assert_allclose(model.dual_coef_, twin.A[model.support_], atol=1e-9)
    assert_allclose(model.kernel_weights_, twin.point()[1], rtol=1e-9)
    assert model.history_["online_error"].item() == pytest.approx(mistakes.sum() / queried.sum())
    assert np.isnan([model.objective_, model.dual_gap_]).all()


@pytest.mark.parametrize("query", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("size", [1, 7, N])
def test_a_stream_reads_requested_labels_only(size, query):
    """In batches of any size as in `fit`; labels that are not requested may be anything."""
    K, y = make_stack(np.random.default_rng(0), N, 4, 3)
    wanted = OM2("precomputed", query=query).fit(K, y)
    model = OM2("precomputed", query=query)
    read = []
    for start in range(0, N, size):
        end = min(start + size, N)
        labels = labels_on_request(y, start, read)
        model.partial_fit(K[:, start:end, :end], labels, classes=[0, 1, 2])
    assert_array_equal(read, np.flatnonzero(model.queried_))
    assert_array_equal(model.queried_, wanted.queried_)
    assert_allclose(model.decision_function(K), wanted.decision_function(K), atol=1e-9)
    other = np.where(wanted.queried_, y, (y + 1) % 3)
    assert_array_equal(OM2("precomputed", query=query).fit(K, other).dual_coef_, wanted.dual_coef_)


def test_visits_without_a_request_change_nothing():
    K, y = make_stack(np.random.default_rng(0), N, 4, 3)
    model = OM2("precomputed", query=MarginQuery(0.2)).partial_fit(K[:, :40, :40], y[:40], classes=[0, 1, 2])
    before = model.decision_function(K[:, :, :40])
    model.set_params(query=RandomQuery(0.0)).partial_fit(K[:, 40:], lambda i: 1 / 0)
    assert_array_equal(model.decision_function(K), before)
    assert not model.queried_[40:].any() and model.n_seen_ == N


def test_all_requested_is_om2():
    """The same bits, in several epochs, with rows on demand; and a loaded stream goes on."""
    X, y = make_data(N)
    options = {"p": 1.1, "n_epochs": 3, "shuffle": True, "random_state": 0}
    wanted = OM2(CUES, **options).fit(X, y)
    for memory in (2e9, 0.0):
        model = OM2(CUES, query=RandomQuery(1.0), memory=memory, **options).fit(X, y)
        assert_array_equal(model.online_errors_, wanted.online_errors_)
        assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=1e-5)
    assert wanted.n_queries_ == model.n_queries_ == 3 * N


def test_weights_and_saving(tmp_path):
    """Class weights with labels on request; samples of weight 0 are not requested."""
    X, y = make_data(N)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 2.0], N)
    options = {"class_weight": {0: 2.0}, "query": MarginQuery(0.5)}
    wanted = OM2(CUES, **options).fit(X, y, weights)
    model = OM2(CUES, **options)
    read = []
    first = labels_on_request(y, 0, read)
    model.partial_fit(X[:40], first, classes=[0, 1, 2], sample_weight=weights[:40])
    model.save(tmp_path / "stream.npz")
    model = load(tmp_path / "stream.npz")
    model.partial_fit(X[40:], labels_on_request(y, 40, read), sample_weight=weights[40:])
    assert_array_equal(read, model.visits_[model.queried_])
    assert (weights[read] > 0.0).all()
    assert_array_equal(model.queried_, wanted.queried_)
    assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=1e-5)


def test_bad_input():
    X, y = make_data(N)
    classes = [0, 1, 2]
    with pytest.raises(ValueError, match="y must be an array of labels without a query, got a function"):
        OM2(CUES).partial_fit(X, lambda i: y[i], classes=classes)
    model = OM2(CUES, query=MarginQuery()).partial_fit(X[:40], y[:40], classes=classes)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=r"y holds labels outside classes: \[9\]"):
        model.partial_fit(X[40:], lambda i: 9 if i > 5 else y[i])
    assert_array_equal(model.decision_function(X), before)
    assert model.n_seen_ == 40
    with pytest.raises(ValueError, match="tol must be None with a query"):
        OM2(CUES, query=MarginQuery(), tol=0.1).fit(X, y)
    with pytest.raises(ValueError, match="class_weight must be None or a dict with a query"):
        OM2(CUES, query=MarginQuery(), class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="'query' parameter of OM2 must be"):
        OM2(CUES, query=0.5).fit(X, y)


def test_the_solver_stops_after_an_epoch_without_an_update():
    K, y = make_stack(np.random.default_rng(0), N, 4, 3)
    problem = MKLProblem(KernelBank.from_stack(K), y, 3, p=1.1)
    given = {"n_epochs": 50, "until_no_loss": True, "rng": np.random.default_rng(0)}
    result = solve_om2(problem, query=ThresholdQuery(0.5), **given)
    assert result.extra["queried"].size == N * result.n_iter == result.online_errors.size
