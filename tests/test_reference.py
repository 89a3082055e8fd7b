"""The numbers of a profile against those committed in figures/reference."""

import json
from pathlib import Path

import pandas as pd
import pytest
from numpy.testing import assert_allclose

from companion.run.claims import claims, judge, learnt
from companion.run.records import read_parts, read_verdicts

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "figures" / "reference"
#: Errors may differ by this much between machines: a few test samples change sides.
TOLERANCE = 0.01
#: Columns that say what was tried: the same in every run.
DESIGN = ("n_train", "n_kernels", "p", "C", "seed", "epoch", "method", "task", "name", "kind")


def judged_in(directory):
    params = []
    for row in read_verdicts(directory).itertuples():
        params.append(pytest.param(directory, row.id, id=f"{directory.name}, {row.id}"))
    return params


@pytest.mark.parametrize("directory, claim", judged_in(REFERENCE) + judged_in(REFERENCE / "original"))
def test_every_verdict_is_found_again_from_the_tables(directory, claim):
    """By one call, from nothing but the files beside the figures."""
    written, found = read_verdicts(directory).set_index("id").loc[claim], judge(claim, directory)
    columns = ["verdict", "on", "unit", "figure", "data", "text"]
    assert [getattr(found, column) for column in columns] == written[columns].tolist()
    assert [found.sets(), found.holding()] == written[["sets", "holding"]].tolist()
    assert learnt(found) == written["learnt"]
    parts = read_parts(directory)
    parts = parts[parts["claim"] == claim].reset_index(drop=True)
    again = pd.DataFrame(found.part_rows())
    texts = ["part", "is", "on", "verdict", "standing", "measure"]
    assert again[texts].equals(parts[texts])
    for column in ("number", "low", "high", "count_number"):
        assert_allclose(again[column].astype(float), pd.to_numeric(parts[column]), rtol=1e-9)


def test_every_headline_is_a_part():
    """Of every claim the headline is judged on one of the data sets that are to decide, and the sentence on
    what one learns finds all its numbers."""
    verdicts = read_verdicts(REFERENCE)
    assert (verdicts["verdict"] != "not judged").all()
    sentences = claims().loc[verdicts["id"], "learnt"]
    assert (verdicts["learnt"].ne("").to_numpy() == sentences.ne("").to_numpy()).all()


def test_every_claim_has_a_verdict():
    assert read_verdicts(REFERENCE)["id"].tolist() == claims().index.tolist()


def test_the_units_are_as_many_as_were_planned():
    """Where a plan is a plain number; fewer only where the verdict says what was left out."""
    rows, verdicts = claims(), read_verdicts(REFERENCE).set_index("id")
    for claim, verdict in verdicts.iterrows():
        planned = rows.loc[claim, verdict["profile"]]
        counted = verdict["n"] and verdict["unit"] == rows.loc[claim, "unit"]
        if planned.isdecimal() and counted and "left out" not in verdict["text"].lower():
            assert verdict["n"] == planned, (claim, verdict["n"], planned)


@pytest.mark.long
def test_numbers_agree_with_the_reference(request):
    """Those of a directory that the caller names, as ``make test-long TESTS="--made figures/full"``."""
    made = request.config.getoption("--made")
    if made is None:
        pytest.skip("no results to compare with the reference: --made names their directory")
    compared = []
    for record in (json.loads(file.read_text()) for file in REFERENCE.glob("*.json")):
        for name in (file for file in record["files"] if file.endswith((".csv", ".csv.gz"))):
            file = Path(made, name.removesuffix(".gz"))
            if record["profile"] == Path(made).name and file.is_file():
                compare(pd.read_csv(file), pd.read_csv(REFERENCE / name), name)
                compared.append(name)
    assert compared


def compare(ours, theirs, name):
    assert list(ours.columns) == list(theirs.columns) and len(ours) == len(theirs), name
    for column in theirs.columns.intersection(DESIGN):
        assert ours[column].equals(theirs[column]), (name, column)
    if "test_error" in theirs:
        assert abs(ours["test_error"].mean() - theirs["test_error"].mean()) < TOLERANCE, name
