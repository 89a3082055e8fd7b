"""The MKL chapter's drawings say what their tables say."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba
from pages import apart, drawn

from companion.plots import mkl as draw
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
