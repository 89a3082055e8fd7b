"""Drawings of the MMS chapter."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.table import Table
from numpy.testing import assert_allclose
from pages import drawn, named

from companion.mms import ARTIFICIAL, CLASSIFIERS, SUPERVISED, WEAK
from companion.plots import mms as draw
from cuelearn.datasets.captioned import make_captioned

METHODS = (*WEAK, *SUPERVISED)


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


def test_curves_are_means_of_the_draws():
    table = curves()
    fig = draw.accuracy_curves(table)
    part = table[(table["name"] == "mnist") & (table["p_correlated"] == 0.25)]  # the piece with the name
    for method in METHODS:
        mean = part[part["method"] == method].groupby("n_candidates")["accuracy"].mean()
        assert_allclose(named(fig.axes[0], method).get_ydata(), 100.0 * mean)


def test_a_run_stays_where_it_ended():
    table = by_round()
    fig = draw.rounds(table)
    part = table[(table["name"] == "letter") & (table["solver"] == "frank-wolfe")]
    grid = part.pivot(index="seed", columns="round", values="accuracy").ffill(axis=1)
    (line,) = [line for line in fig.axes[1].lines if line.get_label() == "letter"]
    mean = grid.mean().to_numpy()
    assert_allclose(line.get_ydata(), 100.0 * np.pad(mean, (0, 5 - mean.size), mode="edge"))


def test_an_endless_bound_does_not_stretch_the_page():
    """An ambiguity degree of 1 allows any loss."""
    table = bounds()
    table.loc[0, "bound"] = np.inf
    ax = drawn(draw.bound(table), everything=False).axes[0]
    assert np.isfinite([*ax.get_xlim(), *ax.get_ylim()]).all()


# --- captioned items


@pytest.fixture(scope="module")
def news():
    return make_captioned(90, n_names=30, random_state=0)


def rows_of(item, most=34):
    """Rows of the drawn table of candidates, each its mark and its words."""
    _, ax = plt.subplots(figsize=(4.4, 2))
    draw.draw_candidates(ax, item, 62, most=most)
    return rows_in(ax)


def rows_in(ax):
    (table,) = ax.findobj(Table)
    cells = table.get_celld()
    n_rows, n_columns = np.max(list(cells), axis=0) + 1
    return [[cells[r, c].get_text().get_text() for c in range(n_columns)] for r in range(1, n_rows)]


def test_the_thesis_sets_are_those_of_its_captions():
    for kept in draw.THESIS:
        item = draw.read_printed(kept)
        assert np.array_equal(list(item.candidates.iterate(0)), kept["candidates"])


def test_candidates_are_rows_and_the_true_one_has_a_star(news):
    _, item = next(draw.examples(news, 2, 2))
    rows = rows_of(item)
    allowed = [row[1:] for row in rows if row[0] != draw.OUT]
    first_names = np.array([name.split()[0] for name in item.names[0]])
    assert allowed == [first_names[z[:, 0]].tolist() for z in item.candidates.iterate(0)]
    (starred,) = [row[1:] for row in rows if row[0] == draw.TRUE]
    assert starred == first_names[item.true[:, 0]].tolist()
    few = rows_of(item, most=1)
    assert few[0] == rows[0] and starred in [row[1:] for row in few]


def test_what_an_indicator_rules_out_is_marked(news):
    pairs = draw.examples(news, 3, 3)
    item = next(item for _, item in pairs if 0 < item.n_candidates < item.n_free)
    out = [row for row in rows_of(item) if row[0] == draw.OUT]
    assert len(out) == min(draw.N_EXCLUDED, item.n_free - item.n_candidates)


def test_the_animals_of_a_picture_have_their_own_names():
    for faces, names in itertools.product(range(1, 5), repeat=2):
        _, axes = plt.subplots(1, 2)
        draw.animals(axes, faces, names)
        (starred,) = [row[1:] for row in rows_in(axes[1]) if row[0] == draw.TRUE]
        assert starred == [name if k < names else "null" for k, name in enumerate(draw.DO)][:faces][::-1]


def test_people_of_a_caption_are_shown_in_other_items(news):
    number, item = next(draw.examples(news, 2, 2))
    fig = drawn(draw.items(news, number))
    labels = [label.get_text().split("\n") for label in fig.axes[1].get_yticklabels()]
    things = {news.things[row] for row in news.rows([number])}
    assert [name for name, _ in labels] == [item.names[0][word[0]] for word in item.words]
    assert {thing.strip("()") for _, thing in labels} <= things | {"in no other picture"}
