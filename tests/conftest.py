"""What all tests share."""

import json
import os
import re
import sys
import tracemalloc
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Variables of git, of make and of the project, which would lead tests and their processes to other places.
FOREIGN = (
    r"GIT_.*|(GNU)?MAKE.*|MFLAGS|CUELEARN_(?!THREADS$).*|PARAMS|PROFILE|CHAPTER|FIGURE|DATA|SCHEDULER|SVG|"
    "PYTHONDONTWRITEBYTECODE"
)
#: The user's directory of the papers' own data keeps another name, which the workers of pytest-xdist inherit.
ORIGINALS = os.environ.setdefault("ORIGINALS_OF_THE_USER", os.environ.get("CUELEARN_DATA") or "/nowhere")
for name in [name for name in os.environ if re.fullmatch(FOREIGN, name)]:
    del os.environ[name]
os.environ["MPLBACKEND"] = "Agg"
#: Where the processes of tests look first.
PATHS = [str(ROOT / name) for name in ("tests/spared", "", "notebooks")]
os.environ["PYTHONPATH"] = os.pathsep.join(PATHS)
sys.path.insert(0, PATHS[0])

import numba
import pandas as pd
import pytest
from hypothesis import settings

import cuelearn  # noqa: F401  (chooses numba's cache directory)
from companion.run.sweep import Sweep

# The same examples in every run; compilation inside an example must not count as slowness.
settings.register_profile("cuelearn", deadline=None, derandomize=True, database=None)
settings.load_profile("cuelearn")


#: Files of single tests that take long: first, so that the last minutes are not those of one worker alone.
#: Not test_readme.py, which compiles what the other worker compiles at that time.
SLOW = ("test_any_state.py", "test_notebooks.py", "test_install.py", "test_run.py", "test_site.py")


def pytest_addoption(parser):
    parser.addoption("--made", help="a directory of results that a long test compares with the reference")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in SLOW)


#: What only a checkout has, and an sdist or archive, which has no .git, may lack; with how errors name it.
CHECKOUT = (
    *("figures", ".github", "data/restricted/mnist.npz", "data/pendigits_train_mask.npy"),
    "notebooks/book/_static/mathjax-tex-svg.js",
)
LACKING = []
if not (ROOT / ".git").exists():
    LACKING = [str(ROOT / name) for name in CHECKOUT if not (ROOT / name).exists()]
    LACKING.append("No package has it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup():
    """Skip a test if what it has not found is something that only a checkout has."""
    try:
        return (yield)
    except Exception as error:
        if any(name in str(error) for name in LACKING):
            pytest.skip(f"needs a checkout: {error}")
        raise


pytest_pyfunc_call = pytest_runtest_setup  # the same for the test itself


@pytest.fixture(autouse=True)
def _few_threads():
    """Workers of pytest-xdist times numba's threads stay within the cores; a test may set more itself."""
    numba.set_num_threads(min(int(os.environ.get("CUELEARN_THREADS", "1")), numba.config.NUMBA_NUM_THREADS))


@pytest.fixture(autouse=True)
def _same_environment():
    """What a call of the runner sets ends with the test."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """What is kept on disk, such as descriptions of pictures, is shared by the workers of this run alone."""
    place = tmp_path_factory.getbasetemp()
    place = place.parent if "PYTEST_XDIST_WORKER" in os.environ else place
    os.environ["CUELEARN_CACHE"] = str(place / "cache")


@pytest.fixture
def peak_of():
    """Largest memory in use while a function runs, beyond what was in use before, in bytes."""

    def peak(function):
        function()  # what is imported, compiled and kept at the first call does not count
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            function()
            return tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()

    return peak


@pytest.fixture
def users_originals():
    """The user's directory of the papers' own data; for long tests only."""
    return Path(ORIGINALS)


@pytest.fixture
def sweep(tmp_path):
    """Makes a sweep by its name that keeps its points for this test only."""
    return lambda name="sweep": Sweep(tmp_path, name)


@pytest.fixture
def recorded():
    """Models that a function of a module makes, in the order in which they are made."""

    def record(patch, module, name):
        real, models = getattr(module, name), []

        def make(*given):
            models.append(real(*given))
            return models[-1]

        patch.setattr(module, name, make)
        return models

    return record


@pytest.fixture
def save_results(tmp_path):
    """Writes tables of a figure and its record as a run does, on data of these names and tiers."""

    def save(figure, table=None, data=None, **parts):
        tables = {figure: table} if table is not None else {}
        tables |= {f"{figure}.{key}": part for key, part in parts.items()}
        for name, rows in tables.items():
            pd.DataFrame(rows).to_csv(tmp_path / f"{name}.csv", index=False)
        data = data or {"emoji": "bundled"}
        record = {"data": [{"name": name, "tier": tier} for name, tier in data.items()]}
        record |= {"our_data": ", ".join(data), "profile": "full"}
        (tmp_path / f"{figure}.json").write_text(json.dumps(record))
        return tmp_path

    return save
