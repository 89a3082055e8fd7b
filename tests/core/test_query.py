"""Rules for requesting labels: their shares, their draws, and bad parameters."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import binomtest

from cuelearn.core.query import score_margin
from cuelearn.mkl import MarginQuery, RandomQuery, ThresholdQuery

N = 20_000


@pytest.mark.parametrize("b, margin", [(0.1, 0.1), (1.0, 0.25), (0.5, 4.5), (2.0, 0.0)])
def test_the_margin_rule_has_its_probability(b, margin):
    requested = int(np.sum(margin <= MarginQuery(b).limits(0, N)))
    assert binomtest(requested, N, b / (b + margin)).pvalue > 1e-3


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_random_requests_ignore_the_margin(rate):
    limits = RandomQuery(rate).limits(0, N)
    assert np.isinf(limits).all() and binomtest(int((limits > 0).sum()), N, rate).pvalue > 1e-3


@pytest.mark.parametrize("query", [MarginQuery(0.3, seed=7), RandomQuery(0.3, seed=7), ThresholdQuery(0.2)])
def test_draws_belong_to_visits(query):
    """Batches of any size have those of one; another seed has others."""
    whole = query.limits(0, 50)
    assert_array_equal(
        np.concatenate([query.limits(0, 13), query.limits(13, 0), query.limits(13, 37)]), whole
    )
    if not isinstance(query, ThresholdQuery):
        assert not np.array_equal(type(query)(0.3, seed=8).limits(0, 50), whole)


def test_the_margin_of_scores():
    for scores, margin in (
        ([1.0, 3.0, 2.5], 0.5),
        ([2.0, 2.0], 0.0),
        ([-1.0, -4.0], 3.0),
        ([5, 0, 1.0], 4.0),
    ):
        assert score_margin(np.array(scores)) == margin


@pytest.mark.parametrize(
    "rule, value, message",
    [
        (MarginQuery, 0.0, "b must be a positive number, got 0.0"),
        (MarginQuery, np.inf, "b must be a positive number"),
        (ThresholdQuery, -0.1, "threshold must be a non-negative number"),
        (RandomQuery, 1.5, "rate must be at most 1, got 1.5"),
        (RandomQuery, "half", "rate must be a non-negative number"),
    ],
)
def test_bad_parameters(rule, value, message):
    with pytest.raises(ValueError, match=message):
        rule(value)
    if rule is not ThresholdQuery:
        with pytest.raises(ValueError, match="seed must be an integer >= 0, got -1"):
            rule(0.5, seed=-1)
