"""The numbers of a profile against those committed in figures/reference."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "figures" / "reference"
#: Columns that depend on the machine's speed.
TIMES = ("seconds", "batch_seconds", "optimum_seconds")
#: Errors may differ by this much between machines: float32 sums round differently, and a few test samples change sides.
TOLERANCE = 0.01


def tables():
    """Tables of the reference whose name carries an error."""
    return sorted(f.name for f in REFERENCE.glob("*.csv") if "test_error" in f.read_text().splitlines()[0])


@pytest.mark.long
def test_errors_agree_with_the_reference():
    assert tables(), "figures/reference has no table with test errors"
    for profile in {json.loads(file.read_text())["profile"] for file in REFERENCE.glob("*.json")}:
        subprocess.run(
            [sys.executable, "-m", "cuelearn.book.run", "--profile", profile], cwd=ROOT, check=True
        )
        for name in tables():
            ours, theirs = pd.read_csv(ROOT / "figures" / profile / name), pd.read_csv(REFERENCE / name)
            assert list(ours.columns) == list(theirs.columns) and len(ours) == len(theirs), name
            assert abs(ours["test_error"].mean() - theirs["test_error"].mean()) < TOLERANCE, name
            for column in theirs.columns.difference([*TIMES, "test_error"]):
                if column in ("n_train", "n_kernels", "p", "C", "seed", "epoch"):
                    assert np.array_equal(ours[column], theirs[column]), (name, column)
