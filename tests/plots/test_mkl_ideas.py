"""Idea pictures of the MKL chapter say what is true; its sliders' drawings say what their tables hold."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from pages import apart, drawn

from companion.plots import mkl_ideas as ideas


def test_dots_agree_best_with_theta():
    theta = np.array([1.0, 0.6])
    fig = ideas.norm_balls(theta)
    apart(drawn(fig))
    lines = fig.axes[0].get_lines()
    for p, edge, dot in zip(ideas.EXPONENTS, lines[::2], lines[1::2], strict=True):
        point = dot.get_xydata()[0]
        assert (point**p).sum() == pytest.approx(1.0)
        assert theta @ point >= (edge.get_xydata() @ theta).max() - 1e-9


def test_sliders_draw_what_the_tables_hold():
    fits = pd.DataFrame({"C": 1.0, "alpha": [0.1, 0.2], "shape": [3.0, 0.0], "colour": [1.0, 0.0]})
    fits["test_error"] = [0.25, 0.5]
    fig, axes = plt.subplots(1, 2)
    ideas.kept_and_error(axes, fits, 1.0, 0.1)
    assert [bar.get_height() for bar in axes[0].patches] == [0.75, 0.25]
    for ax in axes:
        ax.clear()
    ideas.weights_and_errors(axes, ["a", "b"], np.array([1.0, 3.0]), np.array([True, False]))
    assert [bar.get_height() for bar in axes[0].patches] == [0.25, 0.75]
    assert list(axes[1].get_lines()[0].get_ydata()) == [100.0, 50.0]
