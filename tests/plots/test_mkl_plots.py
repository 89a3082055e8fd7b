"""The MKL chapter's first picture."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba

from companion.plots import mkl as draw
from companion.plots.common import FEW, each_run, paired
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


def test_few_runs_are_lines_and_many_a_band():
    fig, ax = plt.subplots()
    each_run(ax, [1, 2], [[1.0, 4.0], [4.0, 16.0]], geometric=True)
    mean, *thin = ax.lines
    assert mean.get_ydata() == pytest.approx([2.0, 8.0]) and not ax.collections
    assert [list(line.get_ydata()) for line in thin] == [[1.0, 4.0], [4.0, 16.0]]
    assert {line.get_color() for line in thin} == {mean.get_color()}
    each_run(ax, [1, 2], np.arange(2.0 * (FEW + 1)).reshape(-1, 2))
    assert len(ax.lines) == 4 and len(ax.collections) == 1


def _reference(*names):
    return [pd.read_csv(CHECKOUT / "figures" / "reference" / f"{name}.csv") for name in names]


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
def test_a_page_is_read_at_its_width(name):
    """Eight inches wide, no word under 7 points, one legend beside the panels, no two names in one look."""
    with plt.rc_context(STYLE):
        fig = getattr(draw, name)(*_reference(*PAGES[name]))
    assert fig.get_figwidth() == draw.WIDTH
    assert min(text.get_fontsize() for text in fig.findobj(plt.Text) if text.get_text()) >= 7
    (key,) = fig.legends
    looks = [
        (to_rgba(h.get_color()), h.get_linestyle()) for h in key.legend_handles if isinstance(h, plt.Line2D)
    ]
    assert len(set(looks)) == len(looks)


def test_no_curve_against_p_is_cut():
    """The slower method's panel shares the axis of the faster one's."""
    *axes, _ = draw.p_curves(*_reference("jmlr-fig-3")).axes
    (ends,) = {ax.get_xlim() for ax in axes}
    reach = np.array([ax.dataLim.intervalx for ax in axes])
    assert ends[0] <= reach.min() and reach.max() <= ends[1]


def test_updates_are_drawn_where_every_run_converged():
    grid = pd.MultiIndex.from_product([(1, 3, 9), (0, 1)], names=["n_kernels", "seed"]).to_frame(index=False)
    same = {"n_train": 60, "p": 1.25, "final_error": 0.5, "batch_error": 0.4, "converged": True}
    table = grid.assign(updates=1000.0 / grid["n_kernels"], **same)
    table.loc[0, "converged"] = False  # one run with one kernel
    work, error = draw.online_against_kernels(table).axes
    assert {x for line in work.lines for x in line.get_xdata()} == {3, 9}
    assert {x for line in error.lines for x in line.get_xdata()} == {1, 3, 9}
    assert work.get_xlim() == error.get_xlim()
    work, error = draw.online_against_kernels(table.assign(converged=False)).axes
    assert not work.lines and len(error.lines)
