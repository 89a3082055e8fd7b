"""Curves of the MKTL chapter are the means of their tables."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pages import shuffled

from companion.mktl import BINARY
from companion.plots import mktl as draw
from companion.protocol import where
from companion.study import interval

pytestmark = pytest.mark.usefixtures("house_style")
FEW, SEEDS = (1, 3, 10, 30), range(7)


def made(columns, points):
    table = pd.DataFrame(list(points), columns=columns)
    return table.assign(accuracy=np.random.default_rng(0).uniform(0.4, 0.9, len(table)))


def binary():
    return made(["target", "seed", "n_positive", "method"], itertools.product("ABCDEFG", SEEDS, FEW, BINARY))


def test_means_of_targets_and_their_differences():
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
