"""The first compilation of a process is told of, once."""

import os
import subprocess
import sys

from cuelearn.kernels.compiling import TEXT

PROGRAM = """
import sys

from joblib.externals.loky import ProcessPoolExecutor


def work(module):
    import numba

    import cuelearn.kernels

    def function(x):
        return x + 1

    function.__module__ = module
    return numba.njit(cache=False)(function)(1)


if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool:
        assert pool.submit(work, "cuelearn.some").result() == 2
    for module in ("elsewhere", "cuelearn.one", "cuelearn.other"):
        assert work(module) == 2
        print(module, file=sys.stderr, flush=True)
"""


def test_the_first_is_told_and_no_other(tmp_path):
    """Of this package's functions, and not by workers."""
    (tmp_path / "program.py").write_text(PROGRAM)
    plain = {name: value for name, value in os.environ.items() if name != "CUELEARN_RUN"}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=plain, capture_output=True, text=True
    )
    message = f"elsewhere\n{TEXT}\ncuelearn.one\ncuelearn.other\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", message)
