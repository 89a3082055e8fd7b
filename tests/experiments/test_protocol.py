"""What all chapters' experiments share."""

import importlib

import numpy as np
import pandas as pd
import pytest

from companion import protocol
from companion.study import Study, best_of, choose, edges
from cuelearn.core.formulas import first_best

CHAPTERS = ("omcl", "mkl", "mms", "mktl", "oks")


def test_the_best_point_and_its_ties():
    points = protocol.grid_points(C=(1.0, 0.1), p=(1.5, 2.0))
    assert points[:2] == [{"C": 1.0, "p": 1.5}, {"C": 1.0, "p": 2.0}] and len(points) == 4
    assert best_of(points, [0.5] * 4) == 3  # the smallest C, then the largest p
    for digit in (-1e-14, 0.0, 1e-14):
        assert best_of(points, [0.5, 0.5, 0.5 + digit, 0.5 - digit]) == 3
        assert best_of(points, [0.5, 0.5 + 1e-3, 0.5 + 1e-3 + digit, 0.5]) == 2
        assert first_best([0.9, 0.9 + digit, 0.9], [0.2, 0.1, 0.1 + digit]) == 1
        assert first_best([np.nan, 1.0, 1.0], [np.nan, 0.1 * (1 + 1e-4 + digit), 0.1]) == 1
    assert best_of([{"p": ""}, {"eta": 1.0}], [0.5, 0.5]) == 0
    assert choose(points, lambda point: point["C"] * point["p"]) == ({"C": 1.0, "p": 2.0}, 2.0)


def asked(x, method):
    return {"C": 10.0 * x * len(method)}


def applied(x, seed, chosen, effort):
    return pd.DataFrame([{"method": m, "value": seed + one["C"]} for m, one in chosen.items()])


def test_what_was_chosen_is_used(sweep):
    points = [({"x": x, "seed": s}, ["a", "bb", "a half"]) for x in (1, 2) for s in (5, 6)]
    how = {"by": ("x",), "comparing": {"effort": {}}, "columns": ("C", "none")}
    study = Study(sweep, "t", applied, asked, **how, plain=lambda method: method.removesuffix(" half"))
    table = study.table(points)
    assert list(table) == ["x", "seed", "method", "value", "C", "none"]
    assert table["C"].tolist() == [10.0, 20.0, 10.0] * 2 + [20.0, 40.0, 20.0] * 2
    assert (table["value"] == table["seed"] + table["C"]).all() and (table["none"] == "").all()


def test_choices_at_the_edges_are_counted_by_whose_they_are():
    table = {
        "method": ["a", "a", "b"],
        "C": [10.0, 1.0, 0.1],
        "C colour": [10.0, 10.0, ""],
        "p": [2.0, 2.0, 2.0],
    }
    table, grids = pd.DataFrame(table), {"C": (0.1, 1.0, 10.0), "p": (1.05, 2.0)}
    found = edges(table, grids, {"p": (2.0,)}, by="method")
    of_a, of_b = found.split("; ")
    assert of_a == "a: 3 of 4 choices are C = 10, the largest tried"
    assert of_b == "b: 1 of 1 choices are C = 0.1, the smallest tried"
    assert edges(table, {"width": (1, 2)}) == edges(table, {"p": (2.0,)}) == ""


@pytest.mark.parametrize("name", CHAPTERS)
def test_sizes_grow_with_the_profile(name):
    settings = importlib.import_module(f"companion.{name}")
    smoke, quick, full = (settings.settings(profile) for profile in protocol.PROFILES)

    def check(*sizes):
        for key in sizes[0]:
            values = [size[key] for size in sizes]
            if isinstance(values[0], dict) and key != "grids":
                check(*values)
            elif key in ("seeds", "draws", "n_items", "permutations", "frames", "counts"):
                numbers = [value if isinstance(value, int) else len(value) for value in values]
                assert numbers == sorted(numbers), key

    check(smoke, quick, full)


def test_numbers_of_the_papers():
    oks = [protocol.printed(f"oks-tab-{number}") for number in (1, 2)]
    for table in oks:
        assert table.shape == (24, 6) and table["task"].nunique() == 3
        assert table["accuracy"].between(0.6, 0.91).all() and table["sd"].notna().sum() == 6
    assert oks[0]["seconds"].max() == 190800 and oks[1].loc[0, "seconds"] == 1621
    names = [protocol.printed(f"thesis-tab-5.{number}") for number in (1, 2, 3, 4)]
    assert [len(table) for table in names] == [4, 7, 4, 5]
    assert np.isclose(names[3].set_index("method").loc["MMS", "accuracy"], 83.5)
