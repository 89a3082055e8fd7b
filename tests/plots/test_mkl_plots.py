"""The MKL chapter's drawings, from the committed results."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba

import companion.mkl.figures_shared  # noqa: F401  (methods at a smaller C get their styles)
from companion.plots import mkl as draw
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
