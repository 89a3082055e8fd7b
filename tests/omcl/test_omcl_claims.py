"""What the chapter's claims are judged by: made-up results in, the verdicts that must follow out."""

import itertools

import numpy as np
import pandas as pd
import pytest

from companion import omcl as exp
from companion.omcl.claims import CURVES, settled
from companion.run.claims import judge

RUNS = 6
#: Data -> OMCL-BM's error, where all others err on 0.3 or more.
GOOD = {"objects": 0.2, "HTAD": 0.1, "mfeat": 0.2}


def curves(values):
    """Two looks in each of some permutations; the second one has `values` (method -> columns), scattered."""
    rng, rows = np.random.default_rng(0), []
    for k in range(RUNS):
        for method, of in values.items():
            row = {"permutation": k, "method": method, "online_error": 0.1, "tied": 0.0}
            rows.append({**row, "n_seen": 10, "test_error": 0.9, "support": 900})
            rows.append({**row, "n_seen": 20} | {key: v * rng.uniform(0.99, 1.01) for key, v in of.items()})
    return pd.DataFrame(rows)


@pytest.fixture
def verdict(save_results, tmp_path):
    """On sets of data whose OMCL-BM errs as `errors` say and all others on 0.5 (Flat on 0.3)."""

    def judged(claim, errors, ties=0.0):
        for name in errors:
            values = {"cue: a": 0.5, "cue: b": 0.5, "Flat": 0.3, "Flat maps": 0.5, "OMCL-BM": errors[name]}
            values = {method: {"test_error": error, "support": 80} for method, error in values.items()}
            values["Vote"] = {"test_error": 0.5, "tied": ties}
            save_results(CURVES[name], curves(values), {name: "bundled"})
        return judge(claim, tmp_path)

    return judged


def test_all_data_decides_on_every_cue_and_rival(verdict):
    holds = verdict("omcl-1", GOOD)
    assert (holds.verdict, holds.bundled) == ("holds", "holds")
    assert holds.unit == "permutation" and holds.n == RUNS and len(holds.parts) == 6
    rivals = verdict("omcl-2", {**GOOD, "objects": 0.4})
    failing = [what for what, part in rivals.parts if part.verdict == "fails"]
    assert rivals.verdict == "mixed" and failing == ["objects, Flat"]
    assert rivals.text.count("has two cues") == 3


def test_ties_are_counted_on_original_data_where_it_is_there(verdict):
    places = [says for says, _ in verdict("omcl-6", {"objects": 0.2, "IDOL2": 0.1, "mfeat": 0.2}, 0.04).parts]
    assert places == ["objects", "IDOL2", "mfeat"]


def test_what_settles_earlier_and_what_overfits(save_results, tmp_path):
    """Errors in four tests each; the lowest weights stand where they are said to stand."""
    errors = {"OMCL-PERC": [0.9, 0.2, 0.2, 0.2], "OMCL-BM": [0.9, 0.5, 0.3, 0.2]}
    errors |= {"cue: shape": [0.9, 0.8, 0.6, 0.3], "cue: colour": [0.9, 0.8, 0.9, 0.6]}
    rng, rows = np.random.default_rng(0), []
    for k, (method, of) in itertools.product(range(RUNS), errors.items()):
        online = 0.05 if method == "cue: colour" else 0.3
        for look, error in enumerate(of, 1):
            row = {"permutation": k, "method": method, "n_seen": 10 * look}
            rows.append({**row, "online_error": online * rng.uniform(0.9, 1), "test_error": error})
    table = pd.DataFrame(rows)
    assert settled(table).loc[0].to_dict() == {
        "OMCL-PERC": 0.5, "OMCL-BM": 1.0, "cue: shape": 1.0, "cue: colour": 1.0
    }  # fmt: skip
    save_results("thesis-fig-3.4", table, {"emoji": "bundled"})
    for share, expected in ((0.6, "holds"), (0.3, "mixed")):
        runs = pd.DataFrame({"confused": share + 0.01 * rng.random(RUNS)})
        save_results("thesis-fig-3.6", None, {"emoji": "bundled"}, runs=runs)
        assert judge("omcl-9", tmp_path).verdict == expected


def test_lowest_weight_of_the_most_confused():
    confusions = {"cue: a": np.array([[0.7, 0.3, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])}
    weights = np.array([[1.0, -0.5, 0.0], [0.2, 1.0, 0.1], [0.0, 0.0, 1.0]])
    assert exp.lowest_on_confused(weights, confusions, ["a"]) == 0.5  # the third is never confused
