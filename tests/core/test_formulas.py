"""Group norms, link functions and losses of score matrices."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuelearn.core.groupnorm import group_norm, link_weights

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

norms_lists = st.lists(st.floats(0.0, 1e3).map(lambda v: 0.0 if v < 1e-6 else v), min_size=1, max_size=8).map(
    np.array
)


def link(norms, threshold, q):
    out = np.full(len(norms), np.nan)
    return out, link_weights(np.asarray(norms, dtype=np.float64), threshold, q, out)


@given(norms_lists, st.sampled_from([2.0, 50.0, 101.0, 10001.0, 1e9]))
def test_group_norm_at_large_exponents(norms, exponent):
    """Between the largest entry and n^(1/r) times it; nothing overflows."""
    found = group_norm(norms, exponent)
    assert (
        norms.max() * (1.0 - 1e-12) <= found <= norms.max() * norms.size ** (1.0 / exponent) * (1.0 + 1e-12)
    )


@given(norms_lists, st.sampled_from([2.0, 101.0, 10001.0, 1e12]), st.floats(0.0, 100.0))
def test_link_is_finite_and_ordered(norms, q, threshold):
    weights, size = link(norms, threshold, q)
    assert np.isfinite(weights).all() and math.isfinite(size)
    assert (weights >= 0.0).all() and (weights <= 1.0 + 1e-9).all()
    np.testing.assert_array_equal(weights[norms <= threshold], 0.0)  # exact zeros
    order = np.argsort(norms)
    assert (np.diff(weights[order]) >= 0.0).all()  # a larger block never gets a smaller factor
    if norms.max() > threshold:
        assert weights.max() > 0.0
