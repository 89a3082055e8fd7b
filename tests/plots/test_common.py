"""The forms that the chapters' drawings share."""

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
from matplotlib.colors import to_hex

from companion.plots.common import facets, forest, intervals, matrix, minus_others, name_ends, panels


def test_each_value_has_a_panel_with_its_rows():
    table = pd.DataFrame({"data": ["a", "b", "a", "c"], "error": range(4)})
    fig, parts = facets(table, "data", size=(2.0, 1.0), columns=2, margin=(0.5, 0.0))
    assert [value for _, value, _ in parts] == [ax.get_title() for ax, _, _ in parts] == ["a", "b", "c"]
    assert [rows["error"].tolist() for _, _, rows in parts] == [[0, 2], [1], [3]]
    assert len(fig.axes) == 3 and fig.get_size_inches().tolist() == [4.5, 2.0]


def test_numbers_are_legible_on_their_colours():
    table = pd.DataFrame([[0.0, 100.0]], ["row"], ["few", "many"])
    _, ((ax,),) = panels(1, size=(2, 2))
    image = matrix(ax, table, numbers="{:.0f}", cmap="gray")
    assert image.get_array().tolist() == [[0.0, 100.0]]
    assert [(text.get_text(), text.get_color()) for text in ax.texts] == [("0", "white"), ("100", "black")]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["few", "many"]


def test_curves_are_named_once_at_their_ends():
    _, ((ax,),) = panels(1, size=(3, 3))
    ax.plot([0, 1], [0, 1], color="red", label="whole")
    ax.plot([0, 1], [0, 2], color="green", label="whole")
    ax.plot([0, 0.2], [1, 1], color="blue", label="early")
    ax.plot([0, 1], [3, 3])
    name_ends(ax)
    colors = {text.get_text(): to_hex(text.arrow_patch.get_edgecolor()) for text in ax.texts}
    assert colors == {"whole": "#ff0000", "early": "#bbbbbb"}


def test_a_difference_is_filled_where_it_is_certain_and_a_number_always():
    table = intervals({"none": [-1.0, 1.0, 0.2], "certain": [1.0, 1.1, 1.2]})
    filled = []
    for difference in (True, False):
        _, ((ax,),) = panels(1, size=(3, 3))
        forest(ax, table, "", difference=difference)
        filled.append([to_hex(line.get_markerfacecolor()) != "#ffffff" for line in ax.lines[1:4:2]])
    assert filled == [[False, True], [True, True]]


def test_all_others_are_below_each_other_the_least_first():
    errors = pd.DataFrame({"OM2": [1.0, 2.0], "UFOMKL": [5.0, 5.0], "SILPMKL": [3.0, 3.0]})
    _, ((ax,),) = panels(1, size=(3, 3))
    minus_others(ax, errors, "OM2", "points")
    numbers = [text.get_text() for text in ax.texts]
    assert numbers == ["-1.5", "-3.5"] and np.diff(ax.get_yticks()) == -1
