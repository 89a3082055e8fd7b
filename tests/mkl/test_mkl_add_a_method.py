"""The book's example of a further method: its code runs, and the comparisons take the method by name."""

import sys
import types

import pytest
from matplotlib import pyplot as plt
from mkl_data import blocks_of_the_book

from companion.mkl import rivals, settings
from companion.plots import mkl as draw
from companion.run import figures
from companion.run.sweep import Sweep
from cuelearn import datasets


@pytest.fixture
def added():
    blocks = blocks_of_the_book("A method")
    assert len(blocks) == 2  # one file, one line
    names, styles = set(rivals.METHODS), set(figures.METHOD_STYLE)
    # the first block is this file, the second a line of the registry's
    file = types.ModuleType("cuelearn.mkl.aligned")
    exec(compile(blocks[0], "extend.md", "exec"), vars(file))
    sys.modules[file.__name__] = file
    exec(compile(blocks[1], "extend.md", "exec"), vars(rivals))
    (new,) = set(rivals.METHODS) - names
    assert rivals.METHODS[new].estimator is vars(file)[new]
    yield new
    del rivals.METHODS[new], sys.modules[file.__name__]
    for name in set(figures.METHOD_STYLE) - styles:
        del figures.METHOD_STYLE[name]


def test_it_is_chosen_timed_and_drawn_by_name(added, tmp_path):
    new = added
    mfeat = datasets.load_mfeat()
    figures.name_methods(rivals.METHODS)
    methods = ["OBSCURE", new, "AverageKernelSVM"]
    choose, compare = (Sweep(tmp_path, name) for name in ("choose", "compare"))
    options = {"n_folds": 2, "grids": {"C": (1.0, 100.0), "p": (1.25,)}, "data": mfeat}
    chosen, table = rivals.choose(choose, "mfeat-6", 100, methods, 0, **options)
    assert set(chosen) == set(methods) and chosen[new]["C"] in settings.C_GRID
    assert table[table["method"] == new]["chosen"].sum() == 1
    found = rivals.compare_all(compare, "mfeat-6", [50, 100], 300, methods, chosen, [0, 1], data=mfeat)
    error = found.groupby("method")["test_error"].mean()
    assert error[new] < 0.15
    ratios = rivals.with_ratios(found, ["n_train"])
    assert (ratios[ratios["method"] == "OBSCURE"]["times OBSCURE"] == 1.0).all()
    fig = draw.against(found, ("n_train", "seconds"))
    assert new in [text.get_text() for text in fig.legends[0].get_texts()]
    plt.close(fig)
