"""Verdicts of the MKL chapter on tables whose truth is known."""

import numpy as np
import pandas as pd
import pytest

from companion.mkl.claims import clearest
from companion.run.claims import Part, judge, judge_part


def test_some_of_several_counts_how_many_were_tried():
    noise = np.array([-1.0, 1.0, -1.0, 1.0, 0.5, -0.5])
    shifted = (noise + by for by in (-3.0, -1.1, 3.0, 0.0))
    parts = (Part("", "", values, np.zeros(6), at_most=0.0) for values in shifted)
    clear, close, worse, open_ = map(judge_part, parts)
    assert clearest([worse, clear, open_])._replace(p=0) == clear._replace(p=0)
    assert clearest([worse, clear])[-1] == clear[-1] and clearest([clear, worse]).p == 2 * clear.p
    assert clearest([close]).verdict == "holds" and clearest([close] + 4 * [worse]).verdict == "undecided"
    assert clearest([worse, worse]).verdict == "fails" and clearest([worse, open_]).verdict == "undecided"


def test_runs_that_did_not_converge_are_left_out_and_said(save_results):
    grid = [
        (t, p, s) for t in ("different-30", "pyramid-30") for p in (1.01, 1.25, 1.5, 2.0) for s in range(3)
    ]
    table = pd.DataFrame(grid, columns=["task", "p", "seed"]).assign(most_epochs=100)
    table["updates"] = 100 / (table["p"] - 1) + table["seed"]
    table["visits"] = 1000 / (table["p"] - 1)
    table["converged"] = table["p"] > 1.01
    table.loc[~table["converged"], ["updates", "visits"]] = 1  # cut off early, they would look fast
    found = judge("om2-3", save_results("thesis-fig-4.2", table))
    assert found.verdict == "holds" and found.n == 3 and found.number == pytest.approx(-1, abs=0.05)
    assert "no redundant cue, 3 of 12" in found.text
    alone = table.assign(converged=table["converged"] & (table["seed"] == 0))
    assert judge("om2-3", save_results("thesis-fig-4.2", alone)).verdict == "not testable here"
