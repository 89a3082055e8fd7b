"""The numbers of a profile against those committed in figures/reference."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "figures" / "reference"
#: Errors may differ by this much between machines: a few test samples change sides.
TOLERANCE = 0.01
#: Columns that say what was tried: the same in every run.
DESIGN = ("n_train", "n_kernels", "p", "C", "seed", "epoch", "method", "task", "name", "kind")


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
