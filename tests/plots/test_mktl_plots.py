"""Figures of the MKTL chapter from random tables."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pages import check_curve, check_curves, drawn, labels_of, legend, named, shuffled

from companion.intervals import interval
from companion.mktl.compare import BINARY, MULTICLASS
from companion.mktl.tasks import Prior
from companion.plots import mktl as draw
from companion.protocol import where

pytestmark = pytest.mark.usefixtures("house_style")

MODELS = [
    Prior(name, tuple(classes), (), None, None, 1.0)
    for name, classes in (("boosted trees on box", "BCD"), ("SVM on edges", "AKL"))
]
LETTERS = list("BCDAKL")
FEW, SEEDS = (1, 3, 10, 30), range(7)


def made(columns, points):
    table = pd.DataFrame(list(points), columns=columns)
    return table.assign(accuracy=np.random.default_rng(0).uniform(0.4, 0.9, len(table)))


def binary():
    return made(["target", "seed", "n_positive", "method"], itertools.product("ABCDEFG", SEEDS, FEW, BINARY))


def multi():
    tasks = (("objects", 14), ("objects", 23), ("animals", 40))
    points = [
        (*task, n, s, m)
        for task, n, s, m in itertools.product(tasks, FEW, SEEDS, MULTICLASS)
        if (task[1], m) != (14, "NoTransfer")
    ]
    return made(["name", "n_priors", "n_per_class", "seed", "method"], points)


def useless():
    methods = ("AverageTL", "MultiKT", "MKTL", "MKTL auto")
    kinds = {"none": ("NoTransfer", "MKTL"), "shuffled": methods, "noise 17": methods}
    points = [(n, k, s, m) for n in FEW for k, own in kinds.items() for s in SEEDS for m in own]
    return made(["n_per_class", "useless", "seed", "method"], points)


def path():
    table = made(["p", "seed"], itertools.product((1.01, 1.1, 1.5, 2.0), SEEDS))
    table = table.assign(used=7.0, p_found=table["p"])
    auto = pd.DataFrame({"p": "auto", "seed": SEEDS, "accuracy": 0.5, "used": 7.0, "p_found": 1.1104})
    return pd.concat([table.astype({"p": object}), auto])


def weights(scale=1.0):
    pairs = pd.DataFrame(itertools.product(("E", "giant panda"), LETTERS), columns=["new", "prior"])
    return pairs.assign(weight=scale * np.random.default_rng(4).normal(size=len(pairs)), kernel=1.0)


def things():
    methods = ("NoTransfer", "PriorFeatures", "MKTL")
    rows = itertools.product(methods, ("cow", "bat"), ("bat",), (1.0,))
    table = pd.DataFrame(rows, columns=["method", "true", "said", "share"])
    known, new = (np.zeros((20, n, 8, 8, 4), dtype=np.uint8) for n in (1, 5))
    return draw.things(known, new, table, methods)


def schematic():
    scores, part = np.random.default_rng(0).normal(size=(2, len(LETTERS)))
    parts = pd.DataFrame({"prior": LETTERS, "score": scores, "weight": part / scores, "part": part})
    return draw.schematic(parts, 0.62, MODELS)


@pytest.mark.parametrize(
    "make, n_axes",
    [
        (draw.idea, 8),
        (things, 5),
        (schematic, 3),
        (lambda: draw.binary_mean(binary()), 4),
        (lambda: draw.binary_classes(binary()), 2),
        (lambda: draw.multiclass(multi()), 3),
        (lambda: draw.along_priors(multi().query("name == 'objects' and n_per_class == 10")), 1),
        (lambda: draw.weights(weights(), MODELS), 1),
        (lambda: draw.weights(weights(0.0), MODELS), 1),
        (lambda: draw.negative(useless()), 3),
        (lambda: draw.along_p(path(), n_priors=17), 2),
    ],
)
def test_every_figure_is_drawn(make, n_axes):
    fig = drawn(make())
    assert len(fig.axes) == n_axes
    assert all(ax.lines or ax.patches or ax.images or ax.collections for ax in fig.axes if ax.get_visible())


def test_figure_6_1_adds_up():
    widths = [patch.get_width() for patch in schematic().axes[2].patches]
    assert len(widths) == len(LETTERS) + 2
    assert_allclose(sum(widths[:-1]), widths[-1])


def test_means_of_targets_and_their_differences():
    """Targets are the unit of repetition, not draws; differences are paired by target."""
    table = binary()
    equal, gains, printed, _ = draw.binary_mean(shuffled(table)).axes
    each = table.groupby(["target", "n_positive", "method"], as_index=False)["accuracy"].mean()
    means = 100.0 * each.groupby(["n_positive", "method"])["accuracy"].mean().unstack()
    for ax, methods in ((equal, draw.EQUAL), (printed, draw.AS_PRINTED)):
        for line, method in zip(ax.lines, methods, strict=True):
            assert_allclose(line.get_ydata(), means[method])
    grid = 100.0 * each.pivot(index="target", columns=["method", "n_positive"], values="accuracy")
    gain = (grid["MKTL weighted"] - grid["MultiKT"])[[1, 3]].mean(axis=1)
    assert gains.get_yticklabels()[0].get_text() == "Multi-KT, 1 to 3"
    assert_allclose(gains.lines[0].get_xdata(), interval(gain)[1:])


def test_a_target_s_difference_is_paired_by_draw():
    table = binary()
    gains = draw.gains_by_target(shuffled(table))
    runs = 100.0 * where(table, target="C").groupby(["seed", "method"])["accuracy"].mean().unstack()
    assert_allclose(gains.loc["C"], interval(runs["MKTL weighted"] - runs["PriorFeatures weighted"]))


def test_multiclass_curves_are_means_of_the_draws():
    table = multi()
    fig = draw.multiclass(table)
    assert sorted(legend(fig)) == labels_of(MULTICLASS)
    for ax in fig.axes:
        name, _, k = ax.get_title().removesuffix(" priors").partition(": ")
        rows = table[(table["name"] == name) & (table["n_priors"] == int(k))]
        check_curves(ax, rows, "n_per_class", "accuracy", set(rows["method"]))


def test_useless_priors_are_drawn_against_no_transfer():
    table = useless()
    grids = {
        key: 100.0 * rows.pivot(index="seed", columns="n_per_class", values="accuracy")
        for key, rows in table.groupby(["useless", "method"])
    }
    fig = draw.negative(table)
    for ax, kind in zip(fig.axes, ("none", "shuffled", "noise 17"), strict=True):
        check_curve(ax, named(ax, "MKTL"), grids[kind, "MKTL"] - grids["none", "NoTransfer"])


def test_sliders():
    fig, axes = plt.subplots(1, 2)
    draw.at_p(axes, {1.01: (np.array([3.0, 0.5, 0.0, 0.5]), 40.0), 2.0: (np.ones(4), 60.0)}, 1.01)
    assert "75%" in axes[0].texts[0].get_text()
    assert_allclose(axes[1].lines[-1].get_xydata(), [[0.01, 40.0]])
    fig, axes = plt.subplots(1, 2)
    draw.samples_and_priors(axes, multi(), 10, 14)
    assert all(len(ax.texts) == len(MULTICLASS) for ax in axes)
