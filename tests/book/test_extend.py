"""The recipe of the page "Add a figure", followed to the letter in a copy of the notebooks."""

import os
import re
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest
from processes import printed

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_a_figure_and_its_claim(tmp_path):
    notebooks = shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    for name in ("cuelearn", "data", "pyproject.toml"):
        os.symlink(ROOT / name, tmp_path / name)
    page = (notebooks / "book" / "extend.md").read_text(encoding="utf-8")
    section = page.split("## A figure\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```(?:text|python)\n(.*?)```", section, re.DOTALL)
    files = re.findall(r"`notebooks/(companion/[\w/]+\.(?:csv|py))`", section)
    files = [name for name in files if "catalogue" not in name]
    assert len(blocks) == len(files) == 4
    for name, block in zip(files, blocks, strict=True):
        with open(notebooks / name, "a", encoding="utf-8") as file:
            file.write(block)
    command = [sys.executable, "-m", "companion.run.runner", "--root", tmp_path, "--profile", "smoke"]
    paths = {"PYTHONPATH": os.pathsep.join([str(notebooks), str(ROOT)])}
    printed([*command, "--figure", "thesis-fig-4.9-mine"], env=os.environ | paths, cwd=tmp_path)
    results = tmp_path / "figures" / "smoke"
    assert len(pd.read_csv(results / "thesis-fig-4.9-mine.csv")) == 6
    assert (results / "thesis-fig-4.9-mine.png").stat().st_size > 5000
