"""The MKL chapter's drawings, and what its idea pictures and sliders say."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba
from pages import apart, drawn

from companion.plots import mkl as draw
from companion.plots import mkl_ideas as ideas
from companion.run.figures import CHECKOUT, GREEN, RED, STYLE


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


PAGES = {
    "accuracies": ("thesis-fig-4.9-leaves.runs",),
    "convergence": ("thesis-fig-4.5", "thesis-fig-4.5.svm"),
    "many_kernels": ("thesis-fig-4.10", "thesis-fig-4.10.alpha"),
    "mistake_bounds": ("thesis-thm-4.1", "thesis-thm-4.1.useless"),
    "online_panels": ("thesis-fig-4.3", "thesis-fig-4.3.batch"),
    "training_sizes": ("thesis-fig-4.8", "thesis-fig-4.8.gap"),
    "suboptimality_bounds": ("thesis-thm-4.2",),
    "update_bounds": ("thesis-thm-4.3",),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_drawn(name):
    """Every panel has data and labels, and every page a legend where it does not name what it draws."""
    tables = [pd.read_csv(CHECKOUT / "figures" / "reference" / f"{table}.csv") for table in PAGES[name]]
    with plt.rc_context(STYLE):
        fig = getattr(draw, name)(*tables)
    assert all(ax.has_data() and ax.get_xlabel() for ax in fig.axes)
    assert any(ax.get_ylabel() for ax in fig.axes) or name == "accuracies"
    assert len(fig.legends) == (name not in ("accuracies", "many_kernels", "online_panels"))
    plt.close(fig)


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
