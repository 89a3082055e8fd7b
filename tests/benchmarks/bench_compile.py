"""CPU seconds of the first fits, compilation included: README's blocks one after another in a fresh process
with an empty cache, then each by itself, with the first one's names. `make bench`, or this file alone.

Wanted: at most 10 s for each block.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What blocks use of the first one.
COMMON = """
from cuelearn.datasets import load_mfeat
from cuelearn.kernels import RBF, KernelStack, Linear
from cuelearn.mkl import OBSCURE
digits = load_mfeat()
"""


def run_blocks(numbers):
    """Run blocks in this process; prints the CPU seconds of each."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    names = {}
    exec(COMMON, names)
    for number in numbers:
        start = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(blocks[number], "README.md", "exec"), names)
        print(f"block {number + 1}: {time.process_time() - start:5.1f} s", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run_blocks(map(int, sys.argv[2:]))
        sys.exit()
    for numbers in "01234", *"01234":
        print("\none after another" if len(numbers) > 1 else "by itself", flush=True)
        with tempfile.TemporaryDirectory() as cache:
            env = os.environ | {"NUMBA_CACHE_DIR": cache}
            subprocess.run([sys.executable, __file__, "--run", *numbers], env=env, check=True)
