"""The benchmarks: their tables name functions and arguments that exist, and all of them run."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import runner

TABLES = [path.stem for path in sorted(HERE.glob("bench_*.py")) if "CASES = {" in path.read_text("utf-8")]


@pytest.mark.parametrize("name", TABLES)
def test_cases_have_their_arguments(name):
    for function, full, tiny in importlib.import_module(name).CASES.values():
        for sizes in [*full, *tiny]:
            inspect.signature(function).bind(**sizes)


def test_a_group_is_timed_in_turn(capsys):
    order, rows = [], []
    calls = {"own": lambda: order.append("own") or 2.0, "other": lambda: order.append("other") or 1.0}
    notes = {"own": runner.promised(1.0), "other": lambda seconds, ratio: f"{ratio:g}"}
    runner.show(runner.Group("title", calls, notes), 2, rows.append)
    assert order == 3 * ["own", "other"]
    assert rows == [
        ["title", "own", 2.0, 2.0, 1.0, "promised <= 1 s: NOT KEPT"],
        ["title", "other", 1.0, 1.0, 0.5, "0.5"],
    ]
    assert "0.50 x" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize("name", TABLES)
def test_a_file_runs_at_tiny_sizes(name):
    done = subprocess.run([sys.executable, HERE / f"{name}.py", "--smoke"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("peak of memory") == len(importlib.import_module(name).CASES)
