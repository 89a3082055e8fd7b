"""OM-2 that learns from requested labels only."""

import numpy as np
import pytest
from mkl_data import make_data
from mkl_twins import TwinOM2, class_scores, make_stack
from numpy.testing import assert_allclose, assert_array_equal

from cuelearn.kernels import RBF, Linear
from cuelearn.mkl import OM2
from cuelearn.omcl import MarginQuery, RandomQuery, ThresholdQuery

N = 80
CUES = [("shape", RBF(scale=4.0), [0, 1]), ("colour", Linear(), [2, 3])]
RULES = [MarginQuery(0.3), ThresholdQuery(0.4), RandomQuery(0.4)]
THREE = {"classes": [0, 1, 2]}


class TwinQuerying(TwinOM2):
    def step_within(self, i, limit):
        """Whether the label was requested, and a mistake."""
        scores = np.sort(class_scores(self.K[:, [i]], self.A, self.point()[1], self.factor)[0])
        if scores[-1] - scores[-2] > limit:
            return False, False
        return True, self.step(i)


@pytest.mark.parametrize("query", RULES)
@pytest.mark.parametrize("p, n_classes", [(1.05, 4), (2.0, 2)])
def test_visits_are_those_of_the_twin(p, n_classes, query):
    K, y = make_stack(np.random.default_rng(0), N, 4, n_classes)
    model = OM2("precomputed", p=p, query=query).fit(K, y)
    twin = TwinQuerying(K, y, n_classes, p)
    limits = query.limits(0, N)
    queried, mistakes = np.transpose([twin.step_within(i, limits[i]) for i in range(N)])
    assert 1 <= model.n_queries_ == queried.sum() <= N
    assert_array_equal(model.queried_, queried)
    assert_array_equal(model.online_errors_, mistakes)
    assert_allclose(model.dual_coef_, twin.A[model.support_], atol=1e-9)
    assert_allclose(model.kernel_weights_, twin.point()[1], rtol=1e-9)
    assert model.history_["online_error"].item() == pytest.approx(mistakes.sum() / queried.sum())
    assert np.isnan([model.objective_, model.dual_gap_]).all()


@pytest.mark.parametrize("memory", [2e9, 0.0])
def test_epochs(memory):
    X, y = make_data(N)
    options = {"p": 1.1, "n_epochs": 3, "shuffle": True, "random_state": 0, "memory": memory}
    wanted = OM2(CUES, **options).fit(X, y)
    model = OM2(CUES, query=RandomQuery(1.0), **options).fit(X, y)
    assert_array_equal(model.online_errors_, wanted.online_errors_)
    assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=1e-5)
    assert wanted.n_queries_ == model.n_queries_ == 3 * N


def test_weights():
    X, y = make_data(N)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 2.0], N)
    options = {"class_weight": {0: 2.0}, "query": MarginQuery(0.5)}
    wanted = OM2(CUES, **options).fit(X, y, weights)
    model = OM2(CUES, **options)
    model.partial_fit(X[:40], lambda i: y[i], sample_weight=weights[:40], **THREE)
    model.partial_fit(X[40:], lambda i: y[40 + i], sample_weight=weights[40:])
    assert (weights[model.visits_] > 0.0).all()
    assert_array_equal(model.queried_, wanted.queried_)
    assert_allclose(model.dual_coef_, wanted.dual_coef_, atol=1e-5)


def test_bad_input():
    X, y = make_data(N)
    model = OM2(CUES, query=MarginQuery()).partial_fit(X[:40], y[:40], **THREE)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match=r"outside classes: \[9\]"):  # forgets the batch
        model.partial_fit(X[40:], lambda i: 9 if i > 5 else y[i])
    assert_array_equal(model.decision_function(X), before)
    for options, message in (
        ({"tol": 0.1}, "tol must be None with a query"),
        ({"class_weight": "balanced"}, "class_weight must be None or a dict with a query"),
    ):
        with pytest.raises(ValueError, match=message):
            OM2(CUES, query=MarginQuery(), **options).fit(X, y)
