"""Drawings of the OKS chapter: every kernel inside its figure, words apart, the slider's numbers."""

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


def test_extremes_of_four_kernels_are_drawn():
    """Corel5k has four kernels only."""
    accuracy = {"kernel": [1, 2, 3, 4], "kernel_name": list("abcd"), "accuracy": [0.6, 0.9, 0.7, 0.8]}
    table = pd.DataFrame({"name": "pair", **accuracy})
    chosen = pd.DataFrame({"name": "pair", "method": ["MuSVM", "OKS", "SOM"], "accuracy": [0.9, 0.8, 0.7]})
    chosen = pd.concat([chosen.assign(seed=0), chosen.assign(seed=1, accuracy=0.1)]).assign(chance=0.5)
    dots = {line.get_label(): line for line in draw.extremes(table, chosen).axes[0].lines}
    assert dots["best kernels"].get_xdata().round() == pytest.approx([90, 80])
    assert dots["worst kernels"].get_xdata().round() == pytest.approx([70, 60])
    assert dots["OKS-SVM"].get_xdata() == pytest.approx([80, 80])  # the dots' split, the first


def test_a_bad_kernel_lies_inside_its_figure_and_every_name_can_be_read():
    points = itertools.product(("keyword a/b", "keyword c/d"), range(1, 61))
    table = pd.DataFrame(points, columns=["name", "kernel"])
    table["kernel_name"] = "corner hue words 3x1 k" + table["kernel"].astype(str)
    table["accuracy"] = np.random.default_rng(0).uniform(0.25, 1.0, len(table))
    methods = itertools.product(table["name"].unique(), ("MuSVM", "OKS", "SOM"))
    chosen = pd.DataFrame(methods, columns=["name", "method"]).assign(seed=0, accuracy=0.8, chance=0.5)
    fig = drawn(draw.extremes(table, chosen))
    apart(fig)
    assert fig.axes[0].get_xlim()[0] < 100 * table["accuracy"].min()


def test_the_largest_probabilities_are_named_and_nothing_leaves_the_figure():
    points = pd.DataFrame(itertools.product((10, 20, 30), range(1, 9)), columns=["step", "kernel"])
    rising = points.assign(probability=0.01 * points["kernel"] * points["step"] / 30)
    quality = pd.DataFrame({"kernel": range(1, 9), "kernel_name": list("abcdefgh"), "accuracy": 0.5})
    fig = drawn(
        draw.probabilities(
            {"x, 2 passes": rising, "x, 5 passes": rising.assign(step=2 * rising["step"])}, quality
        )
    )
    told = [text.get_text() for text in fig.axes[0].get_legend().get_texts()]
    assert [words[0] for words in told] == list("hgfed") and told[0] == "h: 0.08 (50%)"
    assert fig.axes[0].get_ylim()[1] > 0.08 and len(fig.axes[2].lines) == 2


def test_the_idea_and_the_slider_are_drawn():
    drawn(draw.idea())
    show = draw.bandit(stream_of("one useful", 60, 0))
    fig, axes = plt.subplots(1, 2)
    show(axes, delta=0.2, eta=0.1, n_kernels=4)
    left, right = axes
    assert len(left.lines) == 4 and sum(bar.get_width() for bar in right.patches) == pytest.approx(1.0)
    ends = [line.get_ydata()[-1] for line in left.lines]
    assert np.argmax(ends) == 0 and sum(ends) == pytest.approx(1.0)


def test_passes_are_drawn_pair_by_pair():
    """Means over pairs of means over seeds, of which two passes have more; below, the paired difference."""
    points = [
        (n, m, e, s)
        for n in ("keyword a/b", "keyword c/d", "leaves 1/2")
        for m in ("OKS", "SOM")
        for e, seeds in ((1, 3), (2, 9), (5, 3))
        for s in range(seeds)
    ]
    table = pd.DataFrame(points, columns=["name", "method", "n_epochs", "seed"])
    table["accuracy"] = 0.3 + 0.1 * table["n_epochs"] + 0.04 * (table["method"] == "OKS")
    table["accuracy"] += 0.02 * (table["name"] == "keyword c/d") * (table["method"] == "OKS")
    fig = draw.selection_against_passes(table, dict.fromkeys(table["name"], 0.9))
    top, below = fig.axes[0].get_lines(), fig.axes[2].get_lines()
    assert_allclose(top[0].get_ydata(), [45.0, 55.0, 85.0])
    assert_allclose(top[1].get_ydata(), [40.0, 50.0, 80.0])
    assert_allclose([line.get_ydata()[0] for line in below], [4.0, 6.0, 0.0, 5.0], atol=1e-9)
