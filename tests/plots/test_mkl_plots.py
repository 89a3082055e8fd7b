"""The MKL chapter's drawings say what their tables say."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from pages import apart, drawn

from companion.plots import mkl as draw
from companion.plots.common import panels
from companion.run.figures import GREEN, RED


def test_things_frames_tell_right_from_wrong():
    images = {row: np.full((4, 4, 3), 40 * row, np.uint8) for row in range(4)}
    table = pd.DataFrame({"drawing": [0, 1], "shape": [2, 3], "average": [2, 2]})
    kernels = {"shape": np.eye(3), "average": np.eye(3)}
    errors, labels = {"shape": 0.5, "average": 0.25}, {"shape": "outline", "average": "all"}
    fig = draw.things(images, table, kernels, errors, labels)
    rows = np.reshape(fig.axes, (3, 3))[1:]
    frames = [[ax.spines["left"].get_edgecolor() for ax in row[1:]] for row in rows]
    assert frames == [[to_rgba(GREEN), to_rgba(GREEN)], [to_rgba(RED), to_rgba(GREEN)]]
    shown = [[int(ax.images[0].get_array()[0, 0, 0]) // 40 for ax in row] for row in rows]
    assert shown == table.to_numpy().tolist()


def test_dots_agree_best_with_theta():
    theta = np.array([1.0, 0.6])
    fig = draw.norm_balls(theta)
    apart(drawn(fig))
    lines = fig.axes[0].get_lines()
    for p, edge, dot in zip(draw.EXPONENTS, lines[::2], lines[1::2], strict=True):
        point = dot.get_xydata()[0]
        assert (point**p).sum() == pytest.approx(1.0)
        assert theta @ point >= (edge.get_xydata() @ theta).max() - 1e-9


def test_errors_are_drawn_minus_the_baseline_split_by_split():
    errors = pd.DataFrame({"OBSCURE": [20.0, 40.0], "SILPMKL": [22.0, 42.1], "OM2": [19.0, 39.1]})
    _, ((ax,),) = panels(1, size=(4, 2))
    draw.minus(ax, errors, "OBSCURE", "OBSCURE's")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["OM-2", "SILP (1-vs-All)"]
    assert [text.get_text() for text in ax.texts] == ["-0.9", "+2.1"]
    assert ax.get_xlabel() == "test error minus OBSCURE's 30.0% [points]"


def test_curves_of_growing_sets_are_named_apart_where_they_begin():
    points = itertools.product(("OBSCURE", "SILPMKL", "LpMKL sparse"), (200, 500), range(3))
    table = pd.DataFrame(points, columns=["method", "n_train", "seed"]).assign(test_error=0.2)
    table["seconds"] = table["n_train"] * table["method"].map(
        {"OBSCURE": 1.0, "SILPMKL": 1.1, "LpMKL sparse": 9}
    )
    table["test_error"] += 0.01 * table["seed"]
    fig = draw.growing_sets(table)
    apart(drawn(fig))
    assert [text.get_position()[0] for text in fig.axes[0].texts] == [draw.NAMES] * 3


def test_an_arrow_leads_from_the_fewest_kernels_to_the_most():
    points = itertools.product(("UFOMKL", "AverageKernelSVM"), (35, 700, 1400), range(3))
    counts = pd.DataFrame(points, columns=["method", "n_kernels", "seed"])
    counts["seconds"] = counts["n_kernels"] / np.where(counts["method"] == "UFOMKL", 1, 100)
    counts["test_error"] = 0.3 + counts["n_kernels"] / 1e4 + counts["seed"] / 100
    fig = draw.many_kernels(counts)
    apart(drawn(fig))
    arrow = fig.axes[0].texts[0]
    assert (arrow.xyann, arrow.xy) == (pytest.approx((35, 31.35)), pytest.approx((1400, 45.0)))
