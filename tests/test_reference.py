"""The numbers of a profile against those committed in figures/reference."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from cuelearn.book.claims import claims, judge, read_verdicts

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "figures" / "reference"
#: Errors may differ by this much between machines: a few test samples change sides.
TOLERANCE = 0.01
#: Columns that say what was tried: the same in every run.
DESIGN = ("n_train", "n_kernels", "p", "C", "seed", "epoch", "method", "task", "name", "kind")


@pytest.mark.parametrize("claim", claims().index)
def test_every_verdict_is_found_again_from_the_tables(claim):
    """By one call, from nothing but the files beside the figures."""
    written, found = read_verdicts(REFERENCE).set_index("id").loc[claim], judge(claim, REFERENCE)
    columns = ["verdict", "real", "simulated", "unit", "figure", "data"]
    assert [getattr(found, column) for column in columns] == written[columns].tolist()
    numbers = [np.nan if value is None else value for value in found[2:5]]
    assert_allclose(numbers, written[["number", "low", "high"]].astype(float), rtol=1e-9)


def test_the_units_are_as_many_as_were_planned():
    """Where a plan is a plain number; fewer only where the verdict says what was left out."""
    rows, verdicts = claims(), read_verdicts(REFERENCE).set_index("id")
    for claim, verdict in verdicts.iterrows():
        planned = rows.loc[claim, verdict["profile"]]
        if planned.isdecimal() and verdict["n"] and "left out" not in verdict["text"].lower():
            assert verdict["n"] == planned, (claim, verdict["n"], planned)


@pytest.mark.long
def test_numbers_agree_with_the_reference():
    names = sorted(file.name for file in REFERENCE.glob("*.csv") if file.name != "claims.csv")
    assert names
    for profile in {json.loads(file.read_text())["profile"] for file in REFERENCE.glob("*.json")}:
        subprocess.run(
            [sys.executable, "-m", "cuelearn.book.run", "--profile", profile], cwd=ROOT, check=True
        )
        for name in names:
            ours, theirs = pd.read_csv(ROOT / "figures" / profile / name), pd.read_csv(REFERENCE / name)
            assert list(ours.columns) == list(theirs.columns) and len(ours) == len(theirs), name
            for column in theirs.columns.intersection(DESIGN):
                assert ours[column].equals(theirs[column]), (name, column)
            if "test_error" in theirs:
                assert abs(ours["test_error"].mean() - theirs["test_error"].mean()) < TOLERANCE, name
