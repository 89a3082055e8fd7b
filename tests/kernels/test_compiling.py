"""The first compilation of a process is told of, once, on stderr."""

import os
import subprocess
import sys

import pytest
from numba.core import event

from cuelearn.kernels.compiling import TEXT, tell_of_compiling

PROGRAM = """
import sys

from joblib import Parallel, delayed


def work(module):
    import numba

    import cuelearn.kernels

    def function(x):
        return x + 1

    function.__module__ = module
    return numba.njit(cache=False)(function)(1)


if __name__ == "__main__":
    if sys.argv[1] == "workers":
        assert Parallel(n_jobs=2)(delayed(work)("cuelearn.some") for _ in range(2)) == [2, 2]
    else:
        for module in ("elsewhere", "cuelearn.one", "cuelearn.other"):
            assert work(module) == 2
            print(module, file=sys.stderr, flush=True)
"""


@pytest.mark.parametrize(
    "process, message", [("main", f"elsewhere\n{TEXT}\ncuelearn.one\ncuelearn.other\n"), ("workers", "")]
)
def test_the_first_is_told_and_no_other(tmp_path, process, message):
    """Of this package's functions, and not by workers."""
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "program.py", process]
    plain = {name: value for name, value in os.environ.items() if name != "CUELEARN_RUN"}
    done = subprocess.run(command, cwd=tmp_path, env=plain, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", message)


def test_not_where_make_figures_runs_a_notebook(monkeypatch):
    monkeypatch.setenv("CUELEARN_RUN", "1")
    before = list(event._registered["numba:compile"])
    tell_of_compiling()
    assert event._registered["numba:compile"] == before
