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
    mixed = verdict("omcl-1", {**GOOD, "mfeat": 0.8})
    assert mixed.verdict == "mixed" and mixed.number == pytest.approx(0.3, abs=0.02)
    rivals = verdict("omcl-2", {**GOOD, "objects": 0.4})
    failing = [what for what, part in rivals.parts if part.verdict == "fails"]
    assert rivals.verdict == "mixed" and failing == ["objects, Flat"]
    assert rivals.text.count("has two cues") == 3


def test_some_ties_are_more_than_a_hundredth(verdict):
    for ties, expected in ((0.005, "fails"), (0.02, "holds")):
        assert verdict("omcl-6", GOOD, ties).verdict == expected
    places = [says for says, _ in verdict("omcl-6", {"objects": 0.2, "IDOL2": 0.1, "mfeat": 0.2}, 0.04).parts]
    assert places == ["objects", "IDOL2", "mfeat"]


@pytest.mark.parametrize(("support", "gap", "expected"), [((60, 40), 0, "holds"), ((60, 90), 0.2, "mixed")])
def test_support_sets_of_the_objects(save_results, tmp_path, support, gap, expected):
    of = dict(zip(("OMCL-BM", "OMCL-BM sparser", "OMCL-PERC"), (*support, 100), strict=True))
    errors = {m: {"test_error": 0.2 + gap * (m != "OMCL-PERC"), "support": n} for m, n in of.items()}
    save_results(CURVES["objects"], curves(errors))
    others = curves({method: {"support": 1} for method in of}).assign(data="other")
    save_results("thesis-fig-3.5", pd.concat([curves(errors).assign(data="objects"), others]))
    assert judge("omcl-3", tmp_path).verdict == expected


@pytest.mark.parametrize(
    ("support", "online", "expected"),
    [(95, 0.05, "holds"), (60, 0.05, "fails"), (95, 0.08, "not testable here")],
)
def test_close_support_sets_where_mistakes_are_few(save_results, tmp_path, support, online, expected):
    sizes = {"OMCL-BM": {"support": support}, "OMCL-PERC": {"support": 100}}
    many = curves(sizes).assign(data="mfeat")
    few = curves(sizes).assign(data="pendigits", online_error=online)
    save_results("thesis-fig-3.2", pd.concat([many, few]), {"mfeat": "bundled", "pendigits": "bundled"})
    found = judge("omcl-4", tmp_path)
    assert found.verdict == expected and "mfeat" in found.text


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


def test_weights_losses_and_averages(verdict, save_results, tmp_path):
    verdict("omcl-1", GOOD)
    runs = {"diagonal": np.linspace(0.5, 0.6, RUNS), "off": 0.1, "rows": np.linspace(0.7, 0.9, RUNS)}
    for figure, name in (("thesis-fig-3.6", "objects"), ("thesis-fig-3.3", "HTAD")):
        save_results(figure, None, {name: "bundled"}, runs=runs)
    assert judge("omcl-5", tmp_path).verdict == "holds"
    bound = {"second layer": "gradient descent", "quantity": "cumulative loss", "best cue": 1.0}
    bound |= {"permutation": 0, "data": "HTAD", "bound": 2.0}
    for measured, expected in ((1.9, "holds"), (2.1, "fails")):
        bounds = [bound | {"measured": measured}]
        save_results("thesis-thm-3.1", None, {"HTAD": "bundled"}, bounds=bounds)
        assert judge("omcl-7", tmp_path).verdict == expected
    errors = {"data": "HTAD", "method": "OMCL-BM", "average": 0.1, "last": np.linspace(0.2, 0.3, RUNS)}
    save_results("thesis-sec-3.3", errors, {"HTAD": "bundled"})
    assert judge("omcl-8", tmp_path).number == pytest.approx(-0.15)


def test_choices_at_the_edge_are_counted():
    chosen = pd.DataFrame({"C": [0.1, 1000.0], "eta a": [0.1, 0.1], "eta b": [exp.GRIDS["eta"][-1], 0.5]})
    text = exp.edges(chosen)
    assert text == "C = 1000 is the largest tried (1 of 2); eta = 0.1 is the smallest tried (2 of 4)"
    assert exp.edges(pd.DataFrame({"p": [2.0, 1.25]}), exp.LEVELS["OM-2"]) == ""
