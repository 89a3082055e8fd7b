"""Drawings of the MMS chapter: every number at its place, every axis and every method named, no gaps."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pages
import pandas as pd
import pytest
from matplotlib.colors import same_color
from numpy.testing import assert_allclose, assert_array_equal
from pages import legend, named, shuffled, thin_lines

from companion.mms import ARTIFICIAL, METHODS, MODELS
from companion.mms.theorems import CLASSIFIERS
from companion.plots import mms as draw
from companion.run.figures import method_style
from cuelearn.core.intervals import interval


def drawn(fig):
    return pages.drawn(fig, everything=False)


# ------------------------------------------------------------------ figure 5.3


HARDNESS, VALUES, SEEDS = ((0.0, 0.0), (0.25, 0.5)), (5, 20, 100), (3, 4, 5)


@pytest.fixture
def curves():
    points = itertools.product(("mnist", "letter", "pendigits"), SEEDS, VALUES, HARDNESS, METHODS)
    rows = [(n, s, L, c, a, m) for n, s, L, (c, a), m in points]
    table = pd.DataFrame(
        rows, columns=["name", "seed", "n_candidates", "p_correlated", "p_ambiguous", "method"]
    )
    return table.assign(accuracy=np.random.default_rng(0).uniform(0.3, 0.95, len(table)))


def check_runs(ax, method, grid):
    """A thick line for the mean of the rows of a grid, a thin one for each row."""
    check_line(ax, named(ax, method), grid)


def check_line(ax, line, grid):
    assert_allclose(line.get_ydata(), grid.mean())
    drawn_runs = thin_lines(ax, line.get_color())
    assert all(any(np.allclose(run, row) for run in drawn_runs) for row in grid.to_numpy())


def test_accuracy_curves(curves):
    fig = drawn(draw.accuracy_curves(curves))
    axes = np.array(fig.axes).reshape(3, 3)
    assert legend(fig) == [method_style(m)["label"] for m in METHODS]
    names = ("mnist", "letter", "pendigits")
    for (r, hard), (c, name) in itertools.product(enumerate(HARDNESS), enumerate(names)):
        ax, hardness = axes[r, c], f"$P_c$ = {hard[0]:g}, $P_a$ = {hard[1]:g}"
        assert ax.get_title() == (f"{draw.TITLES[name]}\n(made ambiguous)" if r == 0 else "")
        assert ax.get_ylabel() == (f"{hardness}\ntest accuracy (%)" if c == 0 else "")
        assert ax.get_xscale() == "log" and ax.get_ylim() == (0, 100)
        assert len(ax.lines) == len(METHODS)
        assert sum(len(thin.get_segments()) for thin in ax.collections) == len(METHODS) * len(SEEDS)
        mine = curves[(curves["name"] == name) & (curves["p_correlated"] == hard[0])]
        for method in METHODS:
            of = mine[mine["method"] == method].pivot(index="seed", columns="n_candidates", values="accuracy")
            check_runs(ax, method, 100.0 * of)
    for ax, name in zip(axes[2], names, strict=True):
        assert ax.get_xlabel() == "ambiguous vectors L" and ax.get_xscale() == "log"
        assert [t.get_text() for t in ax.get_xticklabels()] == ["5", "20", "100"]
        mean = curves[curves["name"] == name].groupby(["method", "n_candidates", "seed"])["accuracy"].mean()
        for method in ("MC-SVM", "1vA-SVM"):
            difference = 100.0 * (mean[method] - mean["MMS"])
            check_runs(ax, method, difference.unstack("n_candidates"))
    assert "minus MMS's" in axes[2, 0].get_ylabel()


# ------------------------------------------------------------------ round by round


LENGTHS = {("frank-wolfe", 0): 2, ("frank-wolfe", 1): 4, ("pegasos", 0): 5, ("pegasos", 1): 1}


@pytest.fixture
def by_round():
    rng = np.random.default_rng(1)
    rows = [
        (name, seed, solver, r)
        for name in ("letter", "satimage")
        for (solver, seed), n in LENGTHS.items()
        for r in range(1, n + 1)
    ]
    table = pd.DataFrame(rows, columns=["name", "seed", "solver", "round"])
    return table.assign(objective=rng.uniform(1.0, 3.0, len(table)), accuracy=rng.uniform(size=len(table)))


def test_rounds(by_round):
    fig = drawn(draw.rounds(by_round))
    labels = {"frank-wolfe": "dual steps (pairwise Frank-Wolfe)", "pegasos": "Pegasos (Algorithm 9)"}
    assert legend(fig) == [*labels.values(), "thesis: converges in 3 to 5 rounds"]
    axes = np.array(fig.axes).reshape(2, 2)
    assert [ax.get_title() for ax in axes[0]] == [f"{of}\n(made ambiguous)" for of in ("letter", "satimage")]
    panels = itertools.product(enumerate(("objective", "accuracy")), enumerate(("letter", "satimage")))
    for (row, column), (c, name) in panels:
        for solver, label in labels.items():
            mine = by_round[(by_round["name"] == name) & (by_round["solver"] == solver)]
            grid = mine.pivot(index="seed", columns="round", values=column)
            grid = grid.div(grid[1], axis=0) if column == "objective" else 100.0 * grid
            (line,) = [line for line in axes[row, c].lines if line.get_label() == label]
            check_line(axes[row, c], line, grid.ffill(axis=1))  # a run stays where it ended


# ------------------------------------------------------------------ proposition 5.2


@pytest.fixture
def bounds():
    rng = np.random.default_rng(2)
    rows = [(t, c, s) for t in ARTIFICIAL for c in CLASSIFIERS for s in (0, 1)]
    table = pd.DataFrame(rows, columns=["task", "classifier", "seed"])
    true = rng.uniform(0.05, 4.0, len(table))
    return table.assign(true=true, bound=true * rng.uniform(1.0, 3.0, len(table)))


def test_bound(bounds):
    fig = drawn(draw.bound(bounds))
    (ax,) = fig.axes
    assert legend(fig) == [*CLASSIFIERS, *(draw.TITLES[t] for t in ARTIFICIAL)]
    assert "true loss per bag" in ax.get_xlabel() and "made ambiguous" in ax.get_title()
    assert "1 − ambiguity degree" in ax.get_ylabel()
    assert ax.get_xscale() == ax.get_yscale() == "log"
    *lines, diagonal = ax.lines
    cases = list(itertools.product(CLASSIFIERS, ARTIFICIAL))
    assert len(lines) == len(cases)
    for line, (classifier, task) in zip(lines, cases, strict=True):
        mine = bounds[(bounds["classifier"] == classifier) & (bounds["task"] == task)]
        assert_array_equal(line.get_xydata(), mine[["true", "bound"]].to_numpy())
    # a marker for each classifier, a colour for each data set
    assert len({line.get_marker() for line in lines}) == len(CLASSIFIERS)
    assert len({line.get_color() for line in lines}) == len(ARTIFICIAL)
    assert len({(line.get_marker(), line.get_color()) for line in lines}) == len(cases)
    assert_array_equal(*diagonal.get_data())
    low, high = diagonal.get_xdata()
    assert low < bounds["true"].min() and high > bounds["bound"].max()


def test_an_endless_bound_does_not_stretch_the_page(bounds):
    """An ambiguity degree of 1 allows any loss."""
    bounds.loc[0, "bound"] = np.inf
    fig = draw.bound(bounds)
    fig.canvas.draw()
    assert np.isfinite(fig.axes[0].lines[-1].get_xydata()).all()
    assert all(np.isfinite(lim) for lim in (*fig.axes[0].get_xlim(), *fig.axes[0].get_ylim()))


# ------------------------------------------------------------------ figure 5.6


@pytest.fixture
def joint():
    rng = np.random.default_rng(3)
    cases = [
        (m, a, p, s)
        for m, a in (*MODELS, ("RANDOM", "both"))
        for s in (0, 1, 2)
        for p in (("name", "verb") if a == "both" else (a,))
    ]
    table = pd.DataFrame(cases, columns=["method", "modelled", "attribute", "seed"])
    for column in ("assignment", "recognition", "with_caption"):
        table[column] = rng.uniform(0.1, 0.9, len(table))
    table.loc[table["method"] == "RANDOM", "recognition"] = np.nan
    return table


PARTS = ("training", "test")


def rows_of(ax):
    """Name of each row -> the line of its runs, of its interval and of its mean, from the top."""
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert len(names) == len(set(names)) and ax.yaxis_inverted()
    lines = [line for line in ax.lines if len(line.get_ydata()) and np.ptp(line.get_ydata()) == 0]
    return {
        name: [line for line in lines if line.get_ydata()[0] == place] for place, name in enumerate(names)
    }


def check_row(row, method, values, hollow):
    """Strokes for the runs, a line for the interval, a marker for the mean."""
    strokes, line, marker = row
    assert_allclose(strokes.get_xdata(), 100.0 * np.asarray(values))
    assert_allclose(line.get_xdata(), interval(100.0 * np.asarray(values))[1:])
    assert_allclose(marker.get_xdata(), 100.0 * np.mean(values))
    assert same_color(marker.get_color(), method_style(method)["color"])
    assert same_color(marker.get_markerfacecolor(), "white") == hollow


def test_joint_models(joint):
    joint = shuffled(joint)
    axes = np.array(drawn(draw.joint_models(joint)).axes).reshape(3, 2)
    for (r, attribute), (c, part) in itertools.product(enumerate(("name", "verb")), enumerate(PARTS)):
        ax, mine = axes[r, c], joint[joint["attribute"] == attribute]
        assert ax.get_title() == f"{attribute}s, {part} items (emoji, composed)" and ax.get_xlim() == (0, 102)
        wanted = {}
        for (method, modelled), rows in mine.groupby(["method", "modelled"]):
            kind = "" if method == "RANDOM" else ", joint" if modelled == "both" else ", single"
            label, hollow = f"{method_style(method)['label']}{kind}", modelled != "both"
            if part == "training" or method != "RANDOM":
                column = "assignment" if part == "training" else "recognition"
                wanted[label] = method, rows[column], hollow
            if part == "test" and method in ("MMS", "RANDOM"):
                wanted[f"{label} + caption"] = method, rows["with_caption"], hollow
        found = rows_of(ax)
        assert set(found) == set(wanted) and "3 corpora" in ax.cuelearn_band
        for name, (method, values, hollow) in wanted.items():
            check_row(found[name], method, values, hollow)
            assert found[name][2].get_marker() == ("s" if name.endswith("caption") else "o")


def test_differences_of_joint_models(joint):
    for ax, attribute in zip(draw.joint_models(joint).axes[4:], ("name", "verb"), strict=True):
        found = rows_of(ax)
        kinds = ["MMS, joint − single", "DIST, joint − single", "MMS − DIST", "DIST − GMM"]
        kinds = kinds[: 4 if attribute == "name" else 3]
        assert list(found) == [f"{kind}, {word}" for kind in kinds for word in ("assigned", "recognised")]
        mine = joint[joint["attribute"] == attribute].set_index(["method", "modelled", "seed"]).sort_index()
        of = mine["recognition"]
        gain = of["MMS", "both"] - of["MMS", attribute]
        check_row(found["MMS, joint \u2212 single, recognised"], "MMS", gain, True)
        gain = of["MMS", "both"] - of["DistNaming", "both"]
        check_row(found["MMS \u2212 DIST, recognised"], "MMS", gain, True)


# ------------------------------------------------------------------ the idea, and under sliders


def test_the_idea_shows_every_labeling():
    _, grid, bars = drawn(draw.idea()).axes
    assert [t.get_text() for t in grid.texts].count("0") == 5  # six candidates, one of them the one meant
    assert len(grid.texts) == 16 and bars.get_yticklabels()[0].get_text() == "Ann + Bob"


def test_a_place_has_a_bar_for_each_method_and_says_what_comes_along():
    shares = pd.DataFrame({"MMS": [0.8, 0.9], "CLSVM": [0.4, 0.6]})
    fig, axes = plt.subplots(1, 2)
    draw.place(axes, shares, pd.DataFrame([[1.0, 0.25], [0.75, 1.0]]))
    assert_allclose([bar.get_width() for bar in axes[0].patches], [85, 50])
    assert "0.75" in drawn(fig).axes[1].get_title()


def test_objectives_round_by_round(by_round):
    fig, axes = plt.subplots(1, 2)
    mine = by_round[(by_round["name"] == "letter") & (by_round["seed"] == 0)]
    draw.objectives(axes, dict(iter(mine.groupby("solver"))))
    for line, (_, of) in zip(axes[1].lines, mine.groupby("solver"), strict=True):
        assert_allclose(line.get_ydata(), 100.0 * of["accuracy"])
    drawn(fig)
