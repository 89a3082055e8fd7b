"""Drawings of the OKS chapter: all points inside, words apart, the numbers of the slider and of the means."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pages import apart, drawn

from companion.oks.theorems import stream_of
from companion.plots import oks as draw

pytestmark = pytest.mark.usefixtures("house_style")


@pytest.mark.parametrize("n_kernels", [4, 60])  # Corel5k has four kernels only
def test_every_kernel_lies_inside_its_figure(n_kernels):
    points = itertools.product(("keyword a/b", "keyword c/d"), range(1, n_kernels + 1))
    table = pd.DataFrame(points, columns=["name", "kernel"])
    table["kernel_name"] = "corner hue words 3x1 k" + table["kernel"].astype(str)
    table["accuracy"] = np.random.default_rng(0).uniform(0.25, 1.0, len(table))
    methods = itertools.product(table["name"].unique(), ("MuSVM", "OKS", "SOM"))
    chosen = pd.DataFrame(methods, columns=["name", "method"]).assign(seed=0, accuracy=0.8, chance=0.5)
    fig = drawn(draw.extremes(table, chosen))
    apart(fig)
    assert fig.axes[0].get_xlim()[0] < 100 * table["accuracy"].min()


def test_probabilities_the_idea_and_the_slider_are_drawn():
    points = pd.DataFrame(itertools.product((10, 20, 30), range(1, 9)), columns=["step", "kernel"])
    rising = points.assign(probability=0.01 * points["kernel"] * points["step"] / 30)
    quality = pd.DataFrame({"kernel": range(1, 9), "kernel_name": list("abcdefgh"), "accuracy": 0.5})
    drawn(draw.probabilities({"x, 2 passes": rising, "x, 5 passes": rising}, quality))
    drawn(draw.idea())
    fig, (left, right) = plt.subplots(1, 2)
    draw.bandit(stream_of("one useful", 60, 0))((left, right), delta=0.2, eta=0.1, n_kernels=4)
    assert sum(bar.get_width() for bar in right.patches) == pytest.approx(1.0)
    assert sum(line.get_ydata()[-1] for line in left.lines) == pytest.approx(1.0)


def test_passes_are_drawn_pair_by_pair():
    """Means over pairs of means over seeds, of which two passes have more; below, the paired difference."""
    rows = []
    for n, m in itertools.product(("keyword a/b", "keyword c/d", "leaves 1/2"), ("OKS", "SOM")):
        for e, n_seeds in ((1, 3), (2, 9), (5, 3)):
            accuracy = 0.3 + 0.1 * e + (m == "OKS") * (0.04 + 0.02 * (n == "keyword c/d"))
            rows += [{"name": n, "method": m, "n_epochs": e, "accuracy": accuracy}] * n_seeds
    table = pd.DataFrame(rows)
    fig = draw.selection_against_passes(table, dict.fromkeys(table["name"], 0.9))
    top, below = fig.axes[0].get_lines(), fig.axes[2].get_lines()
    assert_allclose(top[0].get_ydata(), [45.0, 55.0, 85.0])
    assert_allclose(top[1].get_ydata(), [40.0, 50.0, 80.0])
    assert_allclose([line.get_ydata()[0] for line in below], [4.0, 6.0, 0.0, 5.0], atol=1e-9)
