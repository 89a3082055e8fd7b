"""Drawings of the OKS chapter."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pages import drawn

from companion.plots import oks as draw

pytestmark = pytest.mark.usefixtures("house_style")


def grid(**values):
    return pd.DataFrame(itertools.product(*values.values()), columns=list(values))


@pytest.mark.parametrize("n_kernels", [4, 60])  # Corel5k has four kernels only
def test_every_kernel_lies_inside_its_figure(n_kernels):
    table = grid(name=("keyword a/b", "keyword c/d"), kernel=range(1, n_kernels + 1))
    table["accuracy"] = np.random.default_rng(0).uniform(0.25, 1.0, len(table))
    chosen = grid(name=table["name"].unique(), method=("MuSVM", "OKS", "SOM"))
    fig = drawn(draw.extremes(table, chosen.assign(seed=0, accuracy=0.8, chance=0.5)))
    assert fig.axes[0].get_xlim()[0] < 100 * table["accuracy"].min()


def test_shares_of_the_bound_are_those_of_all_runs():
    table = grid(kind=("pendigits", "random"), loss=("hinge", "square"), n_samples=(400, 100), seed=(0, 1))
    table = table.assign(delta=0.2, radius=4.0, high=np.arange(1.0, 17.0), bound=20.0)
    (ax,) = drawn(draw.shares_of_bound(table)).axes
    shares = np.concatenate([line.get_xdata() for line in ax.lines[:-1]])
    assert_allclose(np.sort(shares), 5.0 * table["high"])
    assert_allclose(ax.lines[0].get_xdata(), [15.0, 5.0])  # from few visits to many


def test_passes_are_drawn_pair_by_pair():
    """Means over pairs of means over seeds, of which two passes have more; below, the paired difference."""
    rows = []
    for n, m in itertools.product(("keyword a/b", "keyword c/d", "leaves 1/2"), ("OKS", "SOM")):
        for e, n_seeds in ((1, 3), (2, 9), (5, 3)):
            accuracy = 0.3 + 0.1 * e + (m == "OKS") * (0.04 + 0.02 * (n == "keyword c/d"))
            rows += [{"name": n, "method": m, "n_epochs": e, "accuracy": accuracy}] * n_seeds
    table = pd.DataFrame(rows)
    fig = draw.selection_against_passes(table, pd.Series(0.9, index=table["name"].unique()))
    top, below = fig.axes[0].get_lines(), fig.axes[2].get_lines()
    assert_allclose(top[0].get_ydata(), [45.0, 55.0, 85.0])
    assert_allclose(top[1].get_ydata(), [40.0, 50.0, 80.0])
    assert_allclose(top[2].get_ydata(), 90.0)
    assert_allclose(below[1].get_ydata(), [5.0, 5.0, 5.0], atol=1e-9)
    assert all(len(ax.collections) for ax in fig.axes[0::2][:2])
