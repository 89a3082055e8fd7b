"""Verdicts of the MKL chapter on tables whose truth is known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from companion.mkl import settings
from companion.mkl.claims import clearest, weakest
from companion.run.claims import Mean, claims, judge, judge_part


def test_some_of_several_counts_how_many_were_tried():
    noise = np.array([-1.0, 1.0, -1.0, 1.0, 0.5, -0.5])
    shifted = (noise + by for by in (-3.0, -1.1, 3.0, 0.0))
    parts = (Mean("", "", values, np.zeros(6), at_most=0.0) for values in shifted)
    clear, close, worse, open_ = map(judge_part, parts)
    assert clearest([worse, clear, open_])._replace(p=0) == clear._replace(p=0)
    assert clearest([worse, clear])[-1] == clear[-1] and clearest([clear, worse]).p == 2 * clear.p
    assert clearest([close]).verdict == "holds" and clearest([close] + 4 * [worse]).verdict == "undecided"
    assert clearest([worse, worse]).verdict == "fails" and clearest([worse, open_]).verdict == "undecided"
    assert weakest([clear, close]) == close and weakest([clear, open_, worse]) == worse


TWO_SETS = {"mfeat": "bundled", "emoji": "bundled"}


def exponents(n_seeds):
    grid = itertools.product(("mfeat-6", "pyramid-9"), (1.01, 1.25, 1.5, 2.0), range(n_seeds))
    return pd.DataFrame(grid, columns=["task", "p", "seed"])


def test_runs_that_did_not_converge_are_left_out_and_said(save_results):
    table = exponents(n_seeds=3).assign(most_epochs=100)
    table["updates"] = 100 / (table["p"] - 1) + table["seed"]
    table["visits"] = 1000 / (table["p"] - 1)
    table["converged"] = table["p"] > 1.01
    table.loc[~table["converged"], ["updates", "visits"]] = 1  # cut off early, they would look fast
    table["seconds"] = table["visits"] / 1e5
    found = judge("om2-3", save_results("thesis-fig-4.2", table, data=TWO_SETS))
    assert found.verdict == "holds" and found.n == 3 and found.number == pytest.approx(-1, abs=0.05)
    assert "digits, 3 of 12" in found.text and (found.clock, found.count) == ("holds", "holds")
    alone = table.assign(converged=table["converged"] & (table["seed"] == 0))
    assert judge("om2-3", save_results("thesis-fig-4.2", alone, data=TWO_SETS)).verdict == "not testable here"


@pytest.mark.parametrize("profile", ["quick", "full"])
def test_runs_are_as_many_as_planned_for_the_claims(profile):
    size, planned = settings(profile), claims("mkl")[profile]
    for claim in ("om2-5", "obs-6", "obs-13", "ufo-5"):
        assert planned[claim] == str(size["tables"]["seeds"])
    for claim in ("om2-2", "om2-3"):
        assert planned[claim] == str(size["p_sweep"]["seeds"])
    for claim in ("om2-6", "om2-9"):
        assert planned[claim] == str(size["online_cues"]["seeds"])
    assert planned["obs-1"].split()[0] == str(size["flowers"]["seeds"])
    assert planned["obs-12"] == str(size["pendigits"]["seeds"])
    assert planned["ufo-6"] == str(size["many"]["seeds"])
    assert planned["obs-8"] == str(max(size["mnist_all"]["runs"], default=0))
