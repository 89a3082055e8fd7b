"""OMCL that learns from requested labels only; tests/core has what all learners that take a query do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from omcl_twins import TwinKernel, TwinOMCL, make_stream
from plain_kernels import plain_kernel

from cuelearn.kernels import RBF
from cuelearn.omcl import OMCL, KernelPerceptron, MarginQuery, ProjectronPlusPlus, RandomQuery

N = 150
X, Y = make_stream(N, 8, 3, seed=1)
CUES = [
    ("first", KernelPerceptron(RBF(scale=1.5)), [0, 1, 2, 3]),
    ("second", ProjectronPlusPlus(RBF(scale=1.0), eta=0.3), [4, 5, 6, 7]),
]
K = np.stack(
    [plain_kernel("sqeuclidean", part, part, scale=s) for part, s in ((X[:, :4], 1.5), (X[:, 4:], 1.0))]
)
QUERY = MarginQuery(0.3)


@pytest.mark.parametrize("query", [QUERY, RandomQuery(0.4)])
def test_visits_are_those_of_the_twin(query):
    layers = [TwinKernel("perceptron", K[0], 3), TwinKernel("projectron++", K[1], 3, 0.3)]
    twin = TwinOMCL([(layer, range(N)) for layer in layers], 3, C=1.0).run(Y, limits=query.limits(0, N))
    queried = twin.queried
    model = OMCL(CUES, query=query).fit(X, Y)
    assert 20 < model.n_queries_ == queried.sum() < N - 20
    assert_array_equal(model.queried_, queried)
    assert_array_equal(model.online_errors_[queried], twin.second.mistakes)
    assert not model.online_errors_[~queried].any()
    assert model.cumulative_loss_ == pytest.approx(twin.second.losses.sum())
    assert_allclose(model.decision_function(X), sum(K[j] @ twin.products[j].T for j in range(2)), atol=1e-8)
    S = np.concatenate([K[j] @ learner.A.T for j, (learner, _) in enumerate(twin.cues)], axis=1)
    last = model.set_params(average=False).decision_function(X)
    assert_allclose(last, S @ twin.second.A.T, atol=1e-8)
    for learner, (plain, _) in zip(model.learners_, twin.cues, strict=True):
        assert_array_equal(learner.support_, plain.support)
