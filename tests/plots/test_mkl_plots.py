"""The MKL chapter's first picture."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba

from cuelearn.book.figures import GREEN, RED
from cuelearn.plots import mkl as draw
from cuelearn.plots.common import paired


def test_things_frames_tell_right_from_wrong():
    images = {row: np.full((4, 4, 3), 40 * row, np.uint8) for row in range(4)}
    table = pd.DataFrame({"drawing": [0, 1], "shape": [2, 3], "average": [2, 2]})
    kernels = {"shape": np.eye(3), "average": np.eye(3)}
    errors, labels = {"shape": 0.5, "average": 0.25}, {"shape": "outline", "average": "all"}
    fig = draw.things(images, table, kernels, errors, labels)
    assert len(fig.axes) == 2 + 2 * 3
    assert [ax.get_title() for ax in fig.axes[:2]] == ["outline\n50% errors", "all\n25% errors"]
    frames = [ax.spines["left"].get_edgecolor() for ax in fig.axes[2:]]
    assert frames[1] == frames[2] == frames[5] == to_rgba(GREEN) and frames[4] == to_rgba(RED)
    shown = [int(ax.images[0].get_array()[0, 0, 0]) // 40 for ax in fig.axes[2:]]
    assert shown == [0, 2, 2, 1, 3, 2]
    plt.close(fig)


def test_paired_differences_are_run_by_run():
    """A constant difference has no band, however far the runs are apart."""
    rows = [
        (m, s, n, 10.0 * s + n + d)
        for m, d in (("OM2", 0.0), ("OBSCURE", -2.0))
        for s in range(3)
        for n in (1, 2)
    ]
    table = pd.DataFrame(rows, columns=["method", "seed", "n", "error"])
    fig, ax = plt.subplots()
    paired(ax, table, "n", "error", "OM2")
    zero, line = ax.get_lines()
    assert line.get_ydata() == pytest.approx([-2.0, -2.0]) and list(zero.get_ydata()) == [0.0, 0.0]
    plt.close(fig)
