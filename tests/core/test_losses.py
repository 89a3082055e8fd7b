"""Multiclass and hinge loss on score matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_mkl import plain_competitor

from cuelearn.core.losses import competitor, kernel_factor, margins, mean_loss


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


def test_kernel_factor():
    assert kernel_factor("multiclass", 2) == kernel_factor("multiclass", 7) == 1.0
    assert kernel_factor("hinge", 2) == 0.5
    with pytest.raises(ValueError, match="loss must be one of .* got 'square'"):
        kernel_factor("square", 2)
    with pytest.raises(ValueError, match="loss='hinge' needs exactly 2 classes, y has 3"):
        kernel_factor("hinge", 3)
