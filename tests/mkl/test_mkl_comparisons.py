"""Comparisons of methods."""

import sys
import types

import numpy as np
import pytest
from matplotlib import pyplot as plt
from mkl_data import blocks_of_the_book
from plain_kernels import whole_of

from companion import mkl as exp
from companion.mkl import rivals
from companion.mkl.rivals import OMCLOnKernels
from companion.plots import mkl as draw
from companion.run import figures
from cuelearn import datasets
from cuelearn.omcl import OMCL, KernelPerceptron, PassiveAggressive

GRIDS = {"C": (1.0, 100.0), "p": (1.25, 2.0), "alpha": (0.005,)}


MFEAT = datasets.load_mfeat()


def test_the_choice_is_the_best_of_the_grid_and_shared_where_the_problem_is(sweep):
    methods = ["OBSCURE", "PegasosMKL", "SILPMKL", "SimpleMKL", "LpMKL"]
    chosen, table = rivals.choose(sweep(), "mfeat-6", 60, methods, 0, n_folds=2, grids=GRIDS, data=MFEAT)
    assert chosen["PegasosMKL"] == chosen["OBSCURE"] and chosen["SimpleMKL"] == chosen["SILPMKL"]
    for method, mine in table.groupby("method"):
        (best,) = mine[mine["chosen"]].to_dict("records")
        assert best["accuracy"] == mine["accuracy"].max()
        assert {name: best[name] for name in chosen[method]} == chosen[method]
        assert not mine[list(chosen[method])].duplicated().any()
        if not best["edge"]:  # the papers' neighbours were tried too
            assert mine["C"].min() < best["C"] < mine["C"].max()


def test_a_choice_at_the_end_of_its_grid_goes_on_along_the_papers_values(sweep, monkeypatch):
    def best_at_a_large_C_and_p_of_1_10(params, **point):
        return {"accuracy": -abs(np.log(params["C"] / 100)) - abs(params["p"] - 1.1)}

    monkeypatch.setattr(rivals, "validation_accuracy", best_at_a_large_C_and_p_of_1_10)
    options = {"n_folds": 2, "grids": {"C": (1.0, 10.0), "p": (1.25, 2.0)}, "data": MFEAT}
    chosen, table = rivals.choose(sweep(), "mfeat-6", 60, ["LpMKL"], 0, **options)
    assert chosen["LpMKL"] == {"C": 100.0, "p": 1.1} and len(table) == 4 + 2 + 3 + 2
    assert table["edge"].tolist() == [""] * len(table) and rivals.edges(table) == ""
    ends = {"papers": {"C": (1.0, 10.0)}, "grids": {"C": (1.0,), "p": (1.25,)}}
    chosen, _ = rivals.choose(sweep("one experiment"), "mfeat-6", 60, ["LpMKL"], 0, **options | ends)
    assert chosen["LpMKL"]["C"] == 1.0  # a single value is no grid to go on from
    ends["grids"] = {"C": (1.0, 10.0), "p": (1.25,)}
    chosen, _ = rivals.choose(sweep("two"), "mfeat-6", 60, ["LpMKL"], 0, **options | ends)
    assert chosen["LpMKL"]["C"] == 10.0  # not beyond the values of this experiment
    fixed = {**options, "grids": {"C": (10.0, 1000.0), "p": (1.25,)}}
    monkeypatch.setattr(rivals, "validation_accuracy", lambda params, **point: {"accuracy": params["C"]})
    chosen, table = rivals.choose(sweep("other"), "mfeat-6", 60, ["LpMKL"], 0, **fixed)
    assert chosen["LpMKL"] == {"C": 1000.0, "p": 1.25} and len(table) == 2
    assert rivals.edges(table) == "; at the edge of the grid: LpMKL: C = 1000, the largest tried"


def test_omcl_on_a_bank_is_omcl():
    loaded = exp.load_task("mfeat-6", 60, 40, 0)
    mine = OMCLOnKernels(C=0.1, random_state=0).fit(loaded.bank, loaded.labels)
    learners = [(f"cue {j}", KernelPerceptron("precomputed"), j) for j in range(6)]
    plain = OMCL(learners, PassiveAggressive(C=0.1))
    plain.fit(np.ascontiguousarray(loaded.bank.stack), loaded.labels)
    assert np.array_equal(mine.predict(loaded.cross), plain.predict(whole_of(loaded.cross)))
    assert np.array_equal(mine.online_errors_, plain.online_errors_)


def test_folds_are_parts_that_keep_groups_together():
    groups = np.repeat(np.arange(12), 3)
    labels = groups // 4
    for train, test in rivals.folds_of(labels, groups, 5, 0):
        assert not set(groups[train]) & set(groups[test]) and set(labels[test]) == {0, 1, 2}
    assert len(rivals.folds_of(labels, groups, 5, 0)) == 4  # as many as a class has groups
    folds = rivals.folds_of(labels, None, 3, 0)
    assert len(folds) == 3 and all(not set(a) & set(b) and a.size + b.size == 36 for a, b in folds)
    assert sorted(np.concatenate([b for _, b in folds])) == list(range(36))
    for method in ("LPBeta", "BestKernelSVM", "KernelPA best"):
        model = rivals.build(method, {}, 0, labels, groups)
        assert all(not set(groups[train]) & set(groups[test]) for train, test in model.folds)
    assert rivals.build("LPBeta", {}, 0, labels).folds is None


@pytest.fixture
def added():
    """The book's example of a further method, whose code is run."""
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


def test_an_added_method_is_chosen_timed_and_drawn_by_name(added, sweep):
    new = added
    figures.name_methods(rivals.METHODS)
    methods = ["OBSCURE", new, "AverageKernelSVM"]
    options = {"n_folds": 2, "grids": {"C": (1.0, 100.0), "p": (1.25,)}, "data": MFEAT}
    chosen, table = rivals.choose(sweep("choose"), "mfeat-6", 100, methods, 0, **options)
    assert set(chosen) == set(methods) and chosen[new]["C"] in exp.C_GRID
    assert table[table["method"] == new]["chosen"].sum() == 1
    found = rivals.compare_all(sweep, "c", "mfeat-6", [50, 100], 300, methods, chosen, [0, 1], data=MFEAT)
    error = found.groupby("method")["test_error"].mean()
    assert error[new] < 0.15
    ratios = rivals.with_ratios(found, ["n_train"])
    assert (ratios[ratios["method"] == "OBSCURE"]["times OBSCURE"] == 1.0).all()
    fig = draw.against(found, ("n_train", "seconds"))
    assert new in [text.get_text() for ax in fig.axes for text in ax.texts]
    plt.close(fig)
