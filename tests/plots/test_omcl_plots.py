"""Drawings of the OMCL chapter."""

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose
from pages import drawn

from companion.plots import omcl as draw


def test_confused_categories_are_side_by_side():
    names = list("acbd")
    shares = np.array([[70, 0, 30, 0], [0, 60, 0, 40], [30, 0, 70, 0], [0, 40, 0, 60]]) / 100
    rows = pd.MultiIndex.from_product([names, names], names=["category", "taken for"])
    methods = ["cue: 1", "cue: 2", "cue: 3", "cue: 4", "OMCL-BM"]
    table = pd.DataFrame({method: shares.ravel() for method in methods}, index=rows).reset_index()
    fig = drawn(draw.confusions(table))
    order = "".join(label.get_text() for label in fig.axes[0].get_yticklabels())
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset("ab"), frozenset("cd")}
    recognised = dict(zip(order, fig.axes[1].lines[-1].get_xdata(), strict=True))
    assert_allclose([recognised[name] for name in names], [70, 60, 70, 60])
