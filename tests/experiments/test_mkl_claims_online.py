"""Verdicts of the MKL chapter on tables whose truth is known."""

import numpy as np
import pandas as pd
import pytest

from companion.mkl.claims import clearest, weakest
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
    assert weakest([clear, close]) == close and weakest([clear, open_, worse]) == worse


def test_a_p_inside_has_to_beat_both_ends(save_results):
    rng = np.random.default_rng(0)
    grid = [(t, p, s) for t in ("mfeat-6", "pyramid-9") for p in (1.01, 1.25, 1.5, 2.0) for s in range(6)]
    table = pd.DataFrame(grid, columns=["task", "p", "seed"])
    inside = {1.01: 0.5, 1.25: 0.3, 1.5: 0.4, 2.0: 0.6}
    sparse = table["task"] == "pyramid-9"
    table["test_error"] = np.where(sparse, table["p"].map(inside), 0.6 - 0.1 * table["p"])
    table["test_error"] += rng.normal(0, 0.001, len(table))
    data = {"mfeat": "bundled", "emoji": "bundled"}
    verdict = judge("om2-2", save_results("thesis-fig-4.2", table, data=data))
    assert verdict.verdict == "holds" and len(verdict.parts) == 5
    redundant = dict(verdict.parts)["redundant cues: some p inside beats both ends"]
    assert redundant.measure == "redundant cues: error at p = 1.25 minus at 1.01"  # the closer of both ends
    table.loc[sparse & (table["p"] == 1.01), "test_error"] = 0.2
    verdict = judge("om2-2", save_results("thesis-fig-4.2", table, data=data))
    assert (
        verdict.verdict == "mixed" and dict(verdict.parts)[list(dict(verdict.parts))[-1]].verdict == "fails"
    )


def test_runs_that_did_not_converge_are_left_out_and_said(save_results):
    grid = [(t, p, s) for t in ("mfeat-6", "pyramid-9") for p in (1.01, 1.25, 1.5, 2.0) for s in range(3)]
    table = pd.DataFrame(grid, columns=["task", "p", "seed"]).assign(most_epochs=100)
    table["updates"] = 100 / (table["p"] - 1) + table["seed"]
    table["visits"] = 1000 / (table["p"] - 1)
    table["converged"] = table["p"] > 1.01
    table.loc[~table["converged"], ["updates", "visits"]] = 1  # cut off early, they would look fast
    table["seconds"] = table["visits"] / 1e5
    data = {"mfeat": "bundled", "emoji": "bundled"}
    found = judge("om2-3", save_results("thesis-fig-4.2", table, data=data))
    assert found.verdict == "holds" and found.n == 3 and found.number == pytest.approx(-1, abs=0.05)
    assert "digits, 3 of 12" in found.text and (found.clock, found.count) == ("holds", "holds")
    alone = table.assign(converged=table["converged"] & (table["seed"] == 0))
    assert judge("om2-3", save_results("thesis-fig-4.2", alone, data=data)).verdict == "not testable here"


def test_the_time_of_om2_is_that_of_the_epochs_after_which_its_error_is_judged(save_results):
    """It is first level after one epoch, at a tenth of SILP's time; all epochs take twice that time."""
    looks = pd.DataFrame({"at": [1, 20], "error": [0.2, 0.18], "seconds": [0.1, 2.0], "rows": [1, 20]})
    seeds = pd.DataFrame({"seed": range(4)})
    online = looks.merge(seeds, how="cross").assign(method="OM2", what="test")
    silp = {"method": "SILPMKL", "test_error": 0.2, "seconds": 1.0, "rows": 10, "n_used": 3, "chosen": "C=1"}
    verdict = judge("om2-5", save_results("thesis-fig-4.3", online, batch=seeds.assign(**silp)))
    assert (verdict.verdict, verdict.clock, verdict.count) == ("mixed", "fails", "fails")
    assert verdict.number == pytest.approx(2.0) and "first level with SILP at epoch 1," in verdict.text
