"""Drawings of the MMS chapter: every number at its place, every axis and every method named, no gaps."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pages
import pandas as pd
import pytest
from matplotlib.colors import same_color, to_rgba
from matplotlib.container import BarContainer
from numpy.testing import assert_allclose, assert_array_equal
from pages import check_curve, check_curves, legend, shuffled

from cuelearn.book.figures import method_style
from cuelearn.core.intervals import interval
from cuelearn.experiments.mms import ARTIFICIAL, METHODS, MODELS
from cuelearn.experiments.mms.theorems import CLASSIFIERS
from cuelearn.plots import mms as draw


def drawn(fig):
    return pages.drawn(fig, everything=False)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


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


def test_accuracy_curves(curves):
    fig = drawn(draw.accuracy_curves(curves))
    axes = np.array(fig.axes).reshape(3, 3)
    assert legend(fig) == [method_style(m)["label"] for m in METHODS]
    names = ("mnist", "letter", "pendigits")
    for (r, hard), (c, name) in itertools.product(enumerate(HARDNESS), enumerate(names)):
        ax, hardness = axes[r, c], f"$P_c$ = {hard[0]:g}, $P_a$ = {hard[1]:g}"
        assert ax.get_title() == (f"{draw.TITLES[name]} (made ambiguous)" if r == 0 else "")
        assert ax.get_ylabel() == (f"{hardness}\ntest accuracy (%)" if c == 0 else "")
        assert ax.get_xscale() == "log" and ax.get_ylim() == (0, 100)
        assert len(ax.lines) == len(ax.collections) == len(METHODS)
        mine = curves[(curves["name"] == name) & (curves["p_correlated"] == hard[0])]
        check_curves(ax, mine, "n_candidates", "accuracy", METHODS)
    for ax, name in zip(axes[2], names, strict=True):
        assert ax.get_xlabel() == "ambiguous vectors L" and ax.get_xscale() == "log"
        assert [t.get_text() for t in ax.get_xticklabels()] == ["5", "20", "100"]
        mean = curves[curves["name"] == name].groupby(["method", "n_candidates", "seed"])["accuracy"].mean()
        zero, *lines = ax.lines
        for line, method in zip(lines, ("MC-SVM", "1vA-SVM"), strict=True):
            difference = 100.0 * (mean[method] - mean["MMS"]).groupby("n_candidates").mean()
            assert line.get_label() == method_style(method)["label"]
            assert_allclose(line.get_ydata(), difference)
    assert "minus MMS's" in axes[2, 0].get_ylabel()


def test_every_data_set_has_a_title():
    assert {*ARTIFICIAL, "usps"} <= set(draw.TITLES) and len(set(draw.TITLES.values())) == len(draw.TITLES)


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
    assert legend(fig) == list(labels.values())
    axes = np.array(fig.axes).reshape(2, 2)
    assert [ax.get_title() for ax in axes[0]] == ["letter (made ambiguous)", "satimage (made ambiguous)"]
    assert [ax.get_xlabel() for ax in axes[1]] == ["round", "round"]
    assert [ax.get_ylabel() for ax in axes[:, 0]] == ["objective (5.3) over round 1's", "test accuracy (%)"]
    panels = itertools.product(enumerate(("objective", "accuracy")), enumerate(("letter", "satimage")))
    for (row, column), (c, name) in panels:
        for solver, label in labels.items():
            mine = by_round[(by_round["name"] == name) & (by_round["solver"] == solver)]
            grid = mine.pivot(index="seed", columns="round", values=column)
            grid = grid.div(grid[1], axis=0) if column == "objective" else 100.0 * grid
            (line,) = [line for line in axes[row, c].lines if line.get_label() == label]
            check_curve(axes[row, c], line, grid.ffill(axis=1))  # a run stays where it ended


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
    handles = dict(zip(legend(fig), fig.legends[0].legend_handles, strict=True))
    for line, (classifier, task) in zip(lines, cases, strict=True):
        assert handles[classifier].get_marker() == line.get_marker()
        assert same_color(handles[draw.TITLES[task]].get_color(), line.get_color())


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


def bars_of(ax):
    """Name of each bar, and the bar, from the top."""
    bars = [c.patches[0] for c in ax.containers if isinstance(c, BarContainer)]
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert len(names) == len(set(names)) == len(bars)
    assert ax.yaxis_inverted()
    assert_allclose([bar.get_y() + bar.get_height() / 2 for bar in bars], ax.get_yticks())
    return dict(zip(names, bars, strict=True))


@pytest.mark.parametrize("mixed", [False, True])
def test_joint_models(joint, mixed):
    fig = drawn(draw.joint_models(shuffled(joint) if mixed else joint))
    axes = np.array(fig.axes).reshape(2, 3)
    parts = itertools.product(enumerate(("name", "verb")), enumerate(("training items", "test items")))
    for (r, attribute), (c, part) in parts:
        ax = axes[r, c]
        assert ax.get_title() == f"{attribute}s, {part} (emoji, composed)" and ax.get_xlim() == (0, 100)
        assert ("(%)" in ax.get_xlabel()) == (r == 1)
        wanted = {}
        mine = joint[joint["attribute"] == attribute]
        for (method, modelled), rows in mine.groupby(["method", "modelled"]):
            kind = "" if method == "RANDOM" else ", joint" if modelled == "both" else ", single"
            label = f"{method_style(method)['label']}{kind}"
            if c == 0:
                wanted[label] = method, modelled, rows["assignment"]
            elif method != "RANDOM":
                wanted[label] = method, modelled, rows["recognition"]
            if c == 1 and method in ("MMS", "RANDOM"):
                wanted[f"{label} + caption"] = method, modelled, rows["with_caption"]
        found = bars_of(ax)
        assert set(found) == set(wanted)
        spreads = dict(zip(found, [x for x in ax.containers if isinstance(x, BarContainer)], strict=True))
        for name, (method, modelled, values) in wanted.items():
            bar, captioned = found[name], name.endswith("caption")
            color = method_style(method)["color"]
            assert bar.get_width() == pytest.approx(100.0 * values.mean())
            (error,) = [child.get_segments()[0] for child in spreads[name].errorbar.lines[2]]
            assert_allclose(error[:, 0], 100.0 * np.array(interval(values)[1:]))
            assert same_color(bar.get_edgecolor(), color) and bool(bar.get_hatch()) == captioned
            assert same_color(bar.get_facecolor(), "white") == (modelled != "both")
            # strokes show on what they are drawn on
            assert not captioned or not np.allclose(bar.get_facecolor(), to_rgba(color))
    assert "hatched" in axes[1, 1].get_xlabel() and "3 corpora" in axes[1, 1].cuelearn_band
    for ax, attribute in zip(axes[:, 2], ("name", "verb"), strict=True):
        rows = ["MMS, joint\nminus single", "DIST, joint\nminus single", "MMS minus DIST", "DIST minus GMM"]
        assert [t.get_text() for t in ax.get_yticklabels()] == rows[: 4 if attribute == "name" else 3]
        wide = (
            joint[joint["attribute"] == attribute]
            .set_index(["method", "modelled", "seed"])
            .sort_index()["recognition"]
        )
        dots = [
            line for line in ax.lines if line.get_marker() == "o" and line.get_markerfacecolor() == "white"
        ]
        assert_allclose(dots[0].get_xdata(), 100.0 * (wide["MMS", "both"] - wide["MMS", attribute]))
        assert_allclose(dots[2].get_xdata(), 100.0 * (wide["MMS", "both"] - wide["DistNaming", "both"]))
