"""What decides the claims of chapter 5, on tables whose truth is known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from companion.mms import claims
from companion.mms.naming import SEARCHES
from companion.run.claims import judge

RNG = np.random.default_rng(0)
BUNDLED = {"letter": "bundled", "satimage": "bundled"}
COMPOSED = {"captioned-news": "generated"}


def noise(n):
    return RNG.normal(0.0, 0.003, n)


def test_searches_by_draw(save_results, tmp_path):
    """Bags made ambiguous decide, by draws and not by data sets; captions stand beside."""
    sets = [("bags", "letter"), ("bags", "satimage"), ("singles", "letter"), ("names", "captions")]
    cells = [(*pair, *rest) for pair in sets for rest in itertools.product(range(5), SEARCHES)]
    table = pd.DataFrame(cells, columns=["group", "name", "seed", "inference"])
    exact = table["inference"] == "exact"
    table["objective"] = np.where(exact, 0.9, 1.0) + noise(len(table))
    table["accuracy"] = np.where(exact & (table["group"] == "names"), 0.6, 0.7) + noise(len(table))
    table["seconds"] = np.where(exact, 3.0, 1.0) + noise(len(table))
    table["visits"] = 1000 + 10 * table["seed"]
    table["missed"] = np.where(table["inference"] == "algorithm-10", 0.5, 0.0) + noise(len(table))
    table["proven"] = 1.0 * exact
    save_results("infer-methods", table, BUNDLED | COMPOSED)
    first, second, third = (judge(f"infer-{number}", tmp_path) for number in (1, 2, 3))
    assert (first.verdict, first.simulated, first.n, first.tier) == ("holds", "holds", 5, "bundled")
    assert (second.verdict, second.simulated) == ("holds", "mixed")
    assert (third.verdict, third.clock, third.count) == ("mixed", "fails", "holds")
    table.loc[exact & (table["seed"] == 3), "proven"] = 0.99
    save_results("infer-methods", table, BUNDLED | COMPOSED)
    assert judge("infer-1", tmp_path).verdict == "mixed"


@pytest.mark.parametrize(
    "objective, round",
    [([5, 2, 1], 3), ([5, 1.005, 1], 2), ([1], 1), ([5, 1, 1.2, 1], 4), ([5, 1.2, 1, 1.009], 3), ([1, 1], 1)],
)
def test_the_round_from_which_on_little_happens(objective, round):
    assert claims.settled(pd.Series(objective, dtype=float)) == round
