"""Drawings of the MMS chapter: each can be drawn, and values that decide a claim are the table's."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.table import Table
from numpy.testing import assert_allclose
from pages import drawn, legend, named

from companion.mms import ARTIFICIAL, METHODS, MODELS
from companion.mms.theorems import CLASSIFIERS
from companion.plots import mms as draw
from companion.plots import mms_items
from companion.run.figures import method_style
from cuelearn.core.intervals import interval
from cuelearn.datasets.captioned import make_captioned
from cuelearn.mms import CandidateSet, Matching


def uniform(columns, rows, values, low=0.3):
    """A table with these rows, and random values below 0.95 in further columns."""
    table = pd.DataFrame(rows, columns=columns)
    rng = np.random.default_rng(0)
    return table.assign(**{value: rng.uniform(low, 0.95, len(table)) for value in values})


def curves():
    points = itertools.product(("mnist", "letter"), range(3), (5, 100), ((0.0, 0.0), (0.25, 0.5)), METHODS)
    rows = [(name, seed, L, *hard, method) for name, seed, L, hard, method in points]
    columns = ["name", "seed", "n_candidates", "p_correlated", "p_ambiguous", "method"]
    return uniform(columns, rows, ["accuracy"])


def by_round():
    lengths = {("frank-wolfe", 0): 2, ("frank-wolfe", 1): 4, ("pegasos", 0): 5, ("pegasos", 1): 1}
    runs = itertools.product(("letter", "satimage"), lengths.items())
    rows = [(name, *run, r) for name, (run, n_rounds) in runs for r in range(1, n_rounds + 1)]
    return uniform(["name", "solver", "seed", "round"], rows, ["objective", "accuracy"])


def bounds():
    rows = list(itertools.product(ARTIFICIAL, CLASSIFIERS, (0, 1)))
    return uniform(["task", "classifier", "seed"], rows, ["true", "bound"])


def joint():
    models = [*MODELS, ("RANDOM", "both")]
    parts = {"both": ("name", "verb"), "name": ("name",), "verb": ("verb",)}
    rows = [(*model, part, seed) for model in models for part in parts[model[1]] for seed in range(3)]
    columns = ["method", "modelled", "attribute", "seed"]
    return uniform(columns, rows, ["assignment", "recognition", "with_caption"])


@pytest.mark.parametrize(
    "make, table, n_axes",
    [
        (draw.accuracy_curves, curves, 4),
        (draw.rounds, by_round, 4),
        (draw.bound, bounds, 1),
        (draw.joint_models, joint, 4),
        (draw.idea, None, 3),
    ],
)
def test_every_figure_is_drawn(make, table, n_axes):
    fig = drawn(make(table()) if table else make(), everything=False)
    assert len(fig.axes) == n_axes
    assert all(ax.lines or ax.patches for ax in fig.axes)
    assert any(ax.get_xlabel() for ax in fig.axes)


def test_curves_are_means_of_the_draws():
    table = curves()
    fig = draw.accuracy_curves(table)
    assert legend(fig) == [method_style(method)["label"] for method in METHODS]
    part = table[(table["name"] == "mnist") & (table["p_correlated"] == 0.0)]
    for method in METHODS:
        mean = part[part["method"] == method].groupby("n_candidates")["accuracy"].mean()
        assert_allclose(named(fig.axes[0], method).get_ydata(), 100.0 * mean)


def test_a_run_stays_where_it_ended():
    table = by_round()
    fig = draw.rounds(table)
    part = table[(table["name"] == "letter") & (table["solver"] == "frank-wolfe")]
    grid = part.pivot(index="seed", columns="round", values="accuracy").ffill(axis=1)
    (line,) = [line for line in fig.axes[2].lines if line.get_label() == draw.SOLVERS["frank-wolfe"]["label"]]
    assert_allclose(line.get_ydata(), 100.0 * grid.mean())


def test_an_endless_bound_does_not_stretch_the_page():
    """An ambiguity degree of 1 allows any loss."""
    table = bounds()
    table.loc[0, "bound"] = np.inf
    (ax,) = drawn(draw.bound(table), everything=False).axes
    assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()


def test_rows_of_joint_models_are_runs_interval_and_mean():
    table = joint()
    ax = draw.joint_models(table).axes[0]
    first = ax.get_yticklabels()[0].get_text()
    method, modelled = MODELS[0]
    assert first.startswith(method_style(method)["label"])
    rows = table[(table["method"] == method) & (table["modelled"] == modelled)]
    values = 100.0 * rows.loc[rows["attribute"] == "name", "assignment"].to_numpy()
    runs, ends, mean = ax.lines[:3]
    assert_allclose(runs.get_xdata(), values)
    assert_allclose(ends.get_xdata(), interval(values)[1:])
    assert_allclose(mean.get_xdata(), values.mean())


def test_drawings_under_sliders():
    fig, axes = plt.subplots(1, 2)
    shares = pd.DataFrame({"MMS": [0.8, 0.9], "CLSVM": [0.4, 0.6]})
    draw.place(axes, shares, pd.DataFrame([[1.0, 0.25], [0.75, 1.0]]))
    assert_allclose([bar.get_width() for bar in axes[0].patches], [85, 50])
    drawn(fig)
    fig, axes = plt.subplots(1, 2)
    table = by_round().query("name == 'letter' and seed == 0")
    draw.objectives(axes, dict(iter(table.groupby("solver"))))
    drawn(fig)


# --------------------------------------------------------------------------- captioned items


@pytest.fixture(scope="module")
def news():
    return make_captioned(240, n_names=30, random_state=0)


@pytest.fixture(scope="module")
def poses():
    return make_captioned(240, kind="poses", random_state=0)


def cells(candidates, names, words, most=12, true=None):
    """Columns of the table of candidates, each its head and its words."""
    item = mms_items.Item(None, names, mms_items.symbols(words, names), [], true)
    _, ax = plt.subplots(figsize=(7.5, 2))
    shown, total = mms_items.columns(item, candidates, most)
    mms_items.draw_candidates(ax, item, shown, f"{total}")
    (table,) = ax.findobj(Table)
    found = table.get_celld()
    n_rows, n_columns = np.max(list(found), axis=0) + 1
    return [[found[r, c].get_text().get_text() for r in range(n_rows)] for c in range(1, n_columns)]


def test_items_are_drawn_whole(news, poses):
    two = mms_items.pick(poses, n_faces=2, n_pairs=2)
    three = mms_items.pick(news, indicators=True, n_faces=3)
    for fig in (
        mms_items.items(poses, [two, mms_items.pick(poses, n_faces=1, n_names=2, n_pairs=1)]),
        mms_items.items(news, np.argsort(-news.bag_sizes, kind="stable")[:2].tolist()),
        mms_items.item_with_candidates(poses, two),
        mms_items.spatial_indicators(news, three),
        mms_items.thesis_captions(),
        mms_items.people(news, 3),
    ):
        drawn(fig, everything=False)
        assert any(ax.images or ax.tables for ax in fig.axes)


def test_the_thesis_sets_are_those_of_its_captions():
    for kept in mms_items.THESIS:
        item = mms_items.read_printed(kept).parsed
        assert item.candidates.tolist() == kept["candidates"] and item.note == ""


def test_the_matrix_of_figure_5_4_as_printed():
    a, b, o = r"$\mathbf{n}_{a}$", r"$\mathbf{n}_{b}$", mms_items.NULL
    printed = np.array([[1, 2], [1, 0], [0, 2], [2, 1], [0, 1], [2, 0]])[:, :, None]
    shown = cells(printed, [["null", "Barack Obama", "Michelle Obama"]], [(1,), (2,)])
    assert [column[1:] for column in shown] == [[a, b], [a, o], [o, b], [b, a], [o, a], [b, o]]


def test_a_matching_is_shown_as_its_first_candidates_and_the_truth():
    matching = Matching(np.arange(1, 9)[:, None], np.ones((8, 9), dtype=bool))
    names = ["null", *"ABCDEFGH"]
    true = np.array([[0]] * 7 + [[1]])
    letter = [mms_items.NULL, *(rf"$\mathbf{{n}}_{{{c}}}$" for c in "abcdefgh")]
    shown = cells(matching, [names], [(k,) for k in range(1, 9)], most=4, true=true)
    whole = CandidateSet([matching], classes=[names], null=(0,))
    expected = [[letter[k] for k in z[:, 0]] for z in [*whole.iterate(0, 0, 4), true]]
    assert [column[1:] for column in [*shown[:4], shown[5]]] == expected


def test_picked_items_are_as_requested(news, poses):
    number = mms_items.pick(news, n_faces=2, n_names=3)
    assert news.bag_sizes[number] == 2 and len(news.caption_mentions(number)) == 3
    assert news.has_position[mms_items.pick(news, indicators=True)]
    verbs = [mention.verb for mention in poses.caption_mentions(mms_items.pick(poses, n_faces=2, n_pairs=2))]
    assert len(verbs) == 2 == len(set(verbs)) and all(verbs)
    with pytest.raises(ValueError, match="n_names=9, n_pairs=None must be met by an item of the data"):
        mms_items.pick(news, n_faces=2, n_names=9)
