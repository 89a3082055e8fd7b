"""Group norms and link functions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuelearn.core.groupnorm import group_norm, link_weights, resolve_p

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

norms_lists = st.lists(st.floats(0.0, 1e3).map(lambda v: 0.0 if v < 1e-6 else v), min_size=1, max_size=8).map(
    np.array
)


def link(norms, threshold, q):
    out = np.full(len(norms), np.nan)
    return out, link_weights(np.asarray(norms, dtype=np.float64), threshold, q, out)


@pytest.mark.parametrize("n_kernels", [1, 2, 3, 59])
def test_automatic_p(n_kernels):
    p, q = resolve_p("auto", n_kernels)
    assert q == pytest.approx(max(2.0, 2.0 * math.log(n_kernels)), rel=1e-12)
    assert p == pytest.approx(q / (q - 1.0), rel=1e-12)
    assert 1.0 < p <= 2.0


@pytest.mark.parametrize("p", [1, 2.0001, -1, math.nan, "Auto", None, True, [1.5]])
def test_bad_p(p):
    with pytest.raises(ValueError, match=r"p must be a number in \(1, 2\] or 'auto', got"):
        resolve_p(p, 3)


@given(norms_lists, st.sampled_from([1.0, 1.01, 1.5, 2.0, 3.0, 7.5]))
def test_group_norm_is_the_plain_one(norms, exponent):
    assert group_norm(norms, exponent) == pytest.approx(
        (norms**exponent).sum() ** (1.0 / exponent), rel=1e-9, abs=1e-300
    )


@given(norms_lists, st.sampled_from([2.0, 50.0, 101.0, 10001.0, 1e9]))
def test_group_norm_at_large_exponents(norms, exponent):
    """Between the largest entry and n^(1/r) times it; nothing overflows."""
    found = group_norm(norms, exponent)
    assert (
        norms.max() * (1.0 - 1e-12) <= found <= norms.max() * norms.size ** (1.0 / exponent) * (1.0 + 1e-12)
    )


@given(norms_lists, st.floats(0.0, 100.0), st.sampled_from([2.0, 3.0, 5.0, 20.0]))
def test_link_is_the_plain_formula(norms, threshold, q):
    """Thesis theorem 4.6, term by term."""
    weights, size = link(norms, threshold, q)
    v = np.maximum(norms - threshold, 0.0)
    if v.max() == 0.0:
        assert size == 0.0 and not weights.any()
        return
    total = v.max() * ((v / v.max()) ** q).sum() ** (1.0 / q)
    assert size == pytest.approx(total, rel=1e-12)
    wanted = np.where(v > 0.0, v / np.where(norms > 0.0, norms, 1.0) * (v / total) ** (q - 2.0), 0.0)
    np.testing.assert_allclose(weights, wanted, rtol=1e-9, atol=1e-300)


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


@given(norms_lists, st.sampled_from([2.0, 5.0, 101.0]))
def test_primal_and_dual_norm_agree(norms, q):
    """Lemma 4.2, property 4: ||w||_{2,p} = ||theta||_{2,q} for h = 1/2 ||.||^2."""
    weights, size = link(norms, 0.0, q)
    assert group_norm(weights * norms, q / (q - 1.0)) == pytest.approx(size, rel=1e-9)
    assert (weights * norms) @ norms == pytest.approx(size**2, rel=1e-9)
