"""OM-2 that learns from requested labels only; tests/core has what all learners that take a query do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from plain_mkl import TwinOM2, make_stack

from cuelearn.mkl import OM2
from cuelearn.omcl import MarginQuery, RandomQuery, ThresholdQuery

N = 80
RULES = [MarginQuery(0.3), ThresholdQuery(0.4), RandomQuery(0.4)]


class TwinQuerying(TwinOM2):
    def step_within(self, i, limit):
        """Whether the label was requested, and a mistake."""
        scores = np.sort(self.scores([i], self.point()[1])[0])
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
