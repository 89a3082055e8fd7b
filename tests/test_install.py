"""The wheel, and the library from it with none of the extras; with and without the bundled data."""

import email
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from processes import printed

from cuelearn.datasets.base import data_file

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "skimage PIL matplotlib h5py pooch dask distributed IPython ipywidgets nbformat nbconvert papermill"
# Every module of the library, bundled data, and what the lack of an extra says.
LEAN = """
import importlib, os, pkgutil
import numpy as np
import cuelearn
from cuelearn import datasets, mkl

def refusal(call):
    try:
        call()
    except ImportError as error:
        return str(error)

for found in pkgutil.walk_packages(cuelearn.__path__, "cuelearn."):
    if not found.name.startswith("cuelearn.data."):
        importlib.import_module(found.name)
images = datasets.ImageData(np.zeros((1, 40, 40, 3), np.uint8), np.zeros(1, int), ["any"])
assert len(datasets.base.simulator("captions").VERBS) == 10
for needs, extra, call in (
    ("skimage", "images", lambda: datasets.image_cues(images, ["shape pyramid"])),
    ("PIL", "images", lambda: datasets.images.read_image("a.png")),
    ("matplotlib", "plots", lambda: mkl.KernelWeightsDisplay(None).plot()),
):
    assert refusal(call) == f'{needs} is not installed: pip install "cuelearn[{extra}]"'
"""
# Restricted sets are not installed, but may be put in place by the user.
DATA = """
digits = datasets.load_mfeat()
assert digits.X.shape == (2000, 649) and "openmoji" in datasets.load_emoji().style
try:
    datasets.load_mnist()
except datasets.DataFileError as error:
    assert "mnist.npz is missing. No package has it" in str(error), error
"""
NO_DATA = """
try:
    datasets.load_mfeat()
except datasets.DataFileError as error:
    assert 'mfeat.npz is missing. Install it by `pip install "cuelearn[data]"`' in str(error), error
else:
    raise AssertionError("found")
"""


def run(python, code, place, **env):
    env = {"PATH": os.environ["PATH"], "NUMBA_CACHE_DIR": str(place / "numba"), **env}
    printed([python, "-c", code], cwd=place, env=env)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy of what is built from."""
    place = tmp_path_factory.mktemp("wheel")
    for name in ("cuelearn", "data/simulators"):
        shutil.copytree(ROOT / name, place / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "build.py", "datasets.json"):  # and nothing that a user has put there
        shutil.copy(ROOT / "data" / name, place / "source" / "data")
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "CITATION.cff", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place / "source")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    printed([*pip, "--wheel-dir", place, place / "source"])
    (built,) = place.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel):
    """A folder with what the wheel holds."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(wheel.parent / "site")
    return wheel.parent / "site"


@pytest.fixture(scope="module")
def data(wheel):
    """A folder with what the wheel of cuelearn-data holds."""
    package = wheel.parent / "data" / "cuelearn_data"
    package.mkdir(parents=True)
    project = tomllib.loads((ROOT / "data" / "pyproject.toml").read_text())
    for name in project["tool"]["hatch"]["build"]["only-include"]:
        shutil.copy(data_file(name), package)
    return package.parent


def test_what_the_wheel_holds_and_needs(wheel):
    source = wheel.parent / "source"
    files = [file.relative_to(source) for file in source.rglob("*") if file.is_file()]
    wanted = {file.as_posix() for file in files if file.parts[0] == "cuelearn"}
    wanted |= {f"cuelearn/{file.as_posix()}" for file in files if file.parts[0] == "data"}
    with zipfile.ZipFile(wheel) as archive:
        held = archive.namelist()
        (metadata,) = (name for name in held if name.endswith(".dist-info/METADATA"))
        stated = email.message_from_bytes(archive.read(metadata))
    assert {name for name in held if ".dist-info/" not in name} == wanted
    requirements = map(Requirement, stated.get_all("Requires-Dist"))
    always = {requirement.name for requirement in requirements if requirement.marker is None}
    assert always == {"numpy", "scipy", "pandas", "numba", "scikit-learn", "joblib", "tqdm"}
    links = re.findall(r"\]\((.*?)\)", stated.get_payload())  # of README.md, on the package index
    assert len(links) > 10 and all(link.startswith("https://") for link in links)


def test_a_release_holds_only_what_a_stated_licence_allows(wheel, tmp_path):
    list_contents = [sys.executable, ROOT / ".ci" / "contents.py"]
    assert "BSD-3-Clause: 8 files in cuelearn/datasets" in printed([*list_contents, wheel])
    altered = tmp_path / wheel.name
    for name, problem in (
        ("mnist.npz", "has no licence that is known"),
        ("emoji.npz", "its metadata say BSD"),
    ):
        shutil.copy(wheel, altered)
        with zipfile.ZipFile(altered, "a") as archive:
            archive.writestr(f"cuelearn_data/{name}", b"")
        assert problem in printed([*list_contents, altered], 1)


def test_the_library_imports_without_extras_and_names_the_one_that_lacks(site, data, tmp_path):
    without = f"import sys\nsys.modules.update(dict.fromkeys('{EXTRAS}'.split()))\n"
    run(sys.executable, without + LEAN + NO_DATA, tmp_path, PYTHONPATH=str(site))
    run(sys.executable, without + LEAN + DATA, tmp_path, PYTHONPATH=f"{site}{os.pathsep}{data}")


COMPILE = """
import os, numpy as np
import cuelearn
from cuelearn.core.formulas import competitor
assert competitor(np.eye(2)[0], 0) == (1, 1.0)
print(os.environ["NUMBA_CACHE_DIR"])
"""


def folders(place):
    return [place, *(file for file in place.rglob("*") if file.is_dir())]


@pytest.fixture
def read_only():
    """Runs code with a package in a folder that is not writable to the user, who has no home directory."""
    place = Path(tempfile.mkdtemp())
    shutil.copytree(ROOT / "cuelearn", place / "site" / "cuelearn")
    (place / "tmp").mkdir()
    (place / "tmp").chmod(0o777)
    for folder in folders(place / "site"):
        folder.chmod(0o555)
    place.chmod(0o555)
    user = []
    if os.getuid() == 0:  # the right to read is kept, because the interpreter may lie in a home directory
        right = "+dac_read_search"
        user = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
        user += [f"--inh-caps={right}", f"--ambient-caps={right}"]
        if shutil.which(user[0]) is None or subprocess.run([*user, "true"]).returncode:
            pytest.skip("another user's rights cannot be taken here")

    def run_there(code, **env):
        home = {} if user else {"HOME": "/nonexistent"}
        places = {"PYTHONPATH": str(place / "site"), "TMPDIR": str(place / "tmp")}
        env = {"PATH": os.environ["PATH"], **places, **home, **env}
        command = [*user, sys.executable, "-c", code]
        return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True)

    yield run_there, place
    for folder in folders(place):
        folder.chmod(0o755)
    shutil.rmtree(place)


def test_where_nobody_may_write_compiled_code_is_cached_for_this_user_alone(read_only):
    run_there, place = read_only
    for env, parent in ({}, "tmp"), ({"XDG_CACHE_HOME": str(place / "tmp" / "home")}, "tmp/home/cuelearn"):
        done = run_there(COMPILE, **env)
        assert done.returncode == 0, done.stderr[-3000:]
        folder = Path(done.stdout.strip())
        assert folder.parent == place / parent and folder.stat().st_mode & 0o777 == 0o700
        assert list(folder.rglob("*competitor*.nbi"))
    own = str(place / "tmp" / "own")
    assert run_there(COMPILE, NUMBA_CACHE_DIR=own).stdout.strip() == own
    # a folder of that name that others can write to is not trusted, and nowhere to write is said
    folder = next((place / "tmp").glob("cuelearn-numba-*"))
    folder.chmod(0o777)
    for code in ("import cuelearn", "import tempfile\ntempfile.tempdir = '/nonexistent'\nimport cuelearn"):
        done = run_there(code)
        assert done.returncode and "OSError: compiled code needs a folder" in done.stderr
        assert "NUMBA_CACHE_DIR" in done.stderr


def test_a_notebook_beside_the_installed_package_keeps_its_results_where_it_lies(site, tmp_path):
    shutil.copytree(ROOT / "notebooks" / "companion", tmp_path / "notebooks" / "companion")
    code = (
        "from companion.run.figures import FigureStore as S; s = S('smoke', chapter='oks', parameters={})\n"
    )
    code += f"assert str(s.directory) == {str(tmp_path / 'figures/smoke')!r}, s.directory\n"
    code += f"assert str(s.cache_dir) == {str(tmp_path / '.cache/sweeps/smoke')!r}, s.cache_dir"
    run(sys.executable, code, tmp_path, PYTHONPATH=f"{site}{os.pathsep}{tmp_path / 'notebooks'}")
