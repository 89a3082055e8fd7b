"""Multiclass and hinge loss on score matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_mkl import plain_competitor

from cuelearn.core.losses import KERNEL_FACTOR, competitor, kernel_factor, margins, mean_loss


@st.composite
def scored(draw):
    n_classes = draw(st.integers(2, 6))
    n = draw(st.integers(1, 8))
    values = st.one_of(st.sampled_from([-1.0, 0.0, 1.0]), st.floats(-1e6, 1e6))
    rows = draw(st.lists(st.lists(values, min_size=n_classes, max_size=n_classes), min_size=n, max_size=n))
    labels = draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n))
    return np.array(rows), np.array(labels)


def plain(row, label):
    rival = plain_competitor(row, label)
    return rival, row[label] - row[rival]


@given(scored())
def test_competitor_margin_and_loss(case):
    scores, labels = case
    found = [competitor(row, label) for row, label in zip(scores, labels, strict=True)]
    assert found == [plain(row, label) for row, label in zip(scores, labels, strict=True)]
    np.testing.assert_array_equal(margins(scores, labels), [margin for _, margin in found])
    assert mean_loss(scores, labels) == pytest.approx(
        np.mean([max(0.0, 1.0 - margin) for _, margin in found]), rel=1e-12
    )


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.integers(0, 1)), min_size=1, max_size=10))
def test_hinge_is_the_two_class_loss(pairs):
    """With f = s_1 - s_0 the multiclass loss of two classes is [1 - y f]_+ for y in {-1, 1}."""
    f, labels = np.array([value for value, _ in pairs]), np.array([label for _, label in pairs])
    scores = np.stack([-0.5 * f, 0.5 * f], axis=1)
    assert mean_loss(scores, labels) == pytest.approx(
        np.maximum(0.0, 1.0 - (2.0 * labels - 1.0) * f).mean(), rel=1e-12, abs=1e-12
    )


def test_hinge_factor_makes_norms_agree():
    """f = w . phi with w = sum_i a_i phi(x_i): the two-class block (-a, a) has norm 2 a'Ka, halved a'Ka."""
    rng = np.random.default_rng(0)
    root, a = rng.normal(size=(6, 6)), rng.normal(size=6)
    K, A = root @ root.T, np.stack([-a, a], axis=1)
    factor = KERNEL_FACTOR["hinge"]
    assert factor * np.einsum("ic,ij,jc->", A, K, A) == pytest.approx(a @ K @ a)
    scores = factor * K @ A
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], K @ a)


def test_kernel_factor():
    assert kernel_factor("multiclass", 2) == kernel_factor("multiclass", 7) == 1.0
    assert kernel_factor("hinge", 2) == 0.5
    with pytest.raises(ValueError, match="loss must be one of .* got 'square'"):
        kernel_factor("square", 2)
    with pytest.raises(ValueError, match="loss='hinge' needs exactly 2 classes, y has 3"):
        kernel_factor("hinge", 3)
