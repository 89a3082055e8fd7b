"""The MKL chapter's first picture."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba

from companion.plots import mkl as draw
from companion.run.figures import CHECKOUT, GREEN, RED, STYLE


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


PAGES = {
    "against_size": ("jmlr-fig-6",),
    "convergence": ("thesis-fig-4.5", "thesis-fig-4.5.svm"),
    "many_kernels": ("thesis-fig-4.10", "thesis-fig-4.10.alpha"),
    "number_of_kernels": ("thesis-fig-4.6",),
    "obscure_against_p": ("jmlr-fig-4",),
    "online_panels": ("thesis-fig-4.3", "thesis-fig-4.3.batch"),
    "p_curves": ("jmlr-fig-3-objects",),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_drawn(name):
    """One legend beside the panels, no two names in one look, every panel labelled and not empty."""
    tables = [pd.read_csv(CHECKOUT / "figures" / "reference" / f"{table}.csv") for table in PAGES[name]]
    with plt.rc_context(STYLE):
        fig = getattr(draw, name)(*tables)
    assert all(ax.has_data() for ax in fig.axes)
    assert any(ax.get_xlabel() for ax in fig.axes) and any(ax.get_ylabel() for ax in fig.axes)
    (key,) = fig.legends
    lines = [handle for handle in key.legend_handles if isinstance(handle, plt.Line2D)]
    looks = {(to_rgba(line.get_color()), line.get_linestyle()) for line in lines}
    assert len(looks) == len(lines)
