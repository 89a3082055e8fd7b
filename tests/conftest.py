"""What all tests share."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "notebooks")])  # of the processes of tests

import numba
import pytest
from hypothesis import settings

import cuelearn  # noqa: F401  (chooses numba's cache directory)
from companion.run.sweep import Sweep

# The same examples in every run; compilation inside an example must not count as slowness.
settings.register_profile("cuelearn", deadline=None, derandomize=True, database=None)
settings.load_profile("cuelearn")


#: Files of single tests that take long: first, so that the last minutes are not those of one worker alone.
SLOW = ("test_notebooks.py", "test_install.py", "test_run.py", "test_site.py", "test_readme.py")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in SLOW)


@pytest.fixture(autouse=True)
def _few_threads():
    """Workers of pytest-xdist times numba's threads stay within the cores; a test may set more itself."""
    numba.set_num_threads(min(int(os.environ.get("CUELEARN_THREADS", "1")), numba.config.NUMBA_NUM_THREADS))


@pytest.fixture
def sweep(tmp_path):
    """Makes a sweep by its name that keeps its points for this test only."""
    return lambda name="sweep": Sweep(tmp_path, name)
