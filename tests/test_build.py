"""pyproject.toml, requirements.lock, environment.yml, Makefile and .ci hold what they promise."""

import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from processes import printed

import cuelearn

ROOT = Path(__file__).resolve().parents[1]
PYTHON = shlex.quote(sys.executable)  # in a script
CONDA_NAMES = {"matplotlib": "matplotlib-base"}


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def extra(project, name):
    """Requirements of an extra, those of the extras that it names too."""
    found = [Requirement(text) for text in project["optional-dependencies"][name]]
    inner = [extra(project, name) for r in found if r.name == "cuelearn" for name in r.extras]
    return sum(inner, [r for r in found if r.name != "cuelearn"])


def core(project):
    return [Requirement(text) for text in project["dependencies"]]


@pytest.fixture(scope="module")
def wanted(project):
    """Requirements that the lock and environment.yml must hold: the core's and, with all else, the tests'."""
    return core(project) + extra(project, "test")


@pytest.fixture(scope="module")
def lock():
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return [Requirement(line) for line in lines if line.strip() and not line.lstrip().startswith("#")]


def environment(python, platform="linux"):
    versions = {"python_version": python.rpartition(".")[0], "python_full_version": python}
    system = {"sys_platform": platform, "platform_system": platform.capitalize()}
    return default_environment() | versions | system


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("python", ["3.11.0", "3.14.3"])
def test_lock_gives_one_version_of_all_that_is_wanted(lock, wanted, python, platform):
    chosen = {}
    for line in lock:
        if line.marker is None or line.marker.evaluate(environment(python, platform)):
            name = canonicalize_name(line.name)
            assert name not in chosen, f"{name} is locked twice for {python}"
            (pin,) = line.specifier
            assert pin.operator == "=="
            chosen[name] = pin.version
    for requirement in wanted:
        assert requirement.specifier.contains(chosen[canonicalize_name(requirement.name)]), str(requirement)


def test_environment_yml_follows_pyproject(project, wanted):
    content = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert content["channels"] == ["conda-forge", "nodefaults"]
    theirs = dict(re.fullmatch(r"([A-Za-z0-9_-]+)(.*)", line).groups() for line in content["dependencies"])
    assert SpecifierSet(theirs.pop("python")) == SpecifierSet(project["requires-python"])
    theirs.pop("pip")
    ours = {CONDA_NAMES.get(r.name, r.name): str(r.specifier) for r in wanted}
    assert theirs == ours


#: An import, or the beginning of one, and the spaces before it.
IMPORTED = re.compile(r"^( *)(?:from (?=[\w.]+ import )|import )(\w+)", re.MULTILINE)


def test_dependencies_of_the_package_are_declared(project):
    """The companion may need extras; the package does inside a function only, and never the companion."""
    comes_with = {
        "sklearn": "scikit-learn",
        "skimage": "scikit-image",
        "threadpoolctl": "scikit-learn",
        "pygments": "nbconvert",
        "llvmlite": "numba",
        "distributed": "dask",
        "PIL": "scikit-image",
        "requests": "pooch",
        "IPython": "ipykernel",
        "jupyter_client": "ipykernel",
    }
    always = {canonicalize_name(requirement.name) for requirement in core(project)}
    extras = [r for name in project["optional-dependencies"] for r in extra(project, name)]
    declared = always | {canonicalize_name(requirement.name) for requirement in extras}
    package, companion = (sorted((ROOT / name).rglob("*.py")) for name in ("cuelearn", "notebooks/companion"))
    assert package and companion
    for file in (*package, *companion):
        own = {"cuelearn"} if file in package else {"cuelearn", "companion"}
        for indent, name in IMPORTED.findall(file.read_text()):
            known = canonicalize_name(comes_with.get(name, name))
            lean = not indent and file in package
            if name not in sys.stdlib_module_names | own:
                assert known in (always if lean else declared), f"{name} in {file}"


def odd_checkout(tmp_path, *names):
    """Files of the project under a path that a shell would take apart."""
    checkout = tmp_path / "my thesis" / 'it\'s a [new] "$HOME"; `x` * #1' / "cuelearn"
    for name in (".ci", "Makefile", *names):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, checkout / name)
    return checkout


def test_clean_removes_what_was_generated_and_nothing_else(tmp_path):
    checkout = odd_checkout(tmp_path)
    kept = [checkout / name for name in ("data/a.csv", "figures/reference/a.csv", "notebooks/a.ipynb")]
    kept += [checkout / "lab" / name for name in ("oks.ipynb", ".ipynb_checkpoints/oks-checkpoint.ipynb")]
    kept += [tmp_path / name for name in ("my/a", "thesis/a", "home/a", "cuelearn/a", "my thesis/.cache/a")]
    full = [checkout / name for name in ("figures/full/a", ".cache/sweeps/full/a", ".venv/__pycache__/a")]
    quick = [checkout / name for name in ("figures/quick/a", ".cache/numba/x/a", "cuelearn/__pycache__/a")]
    quick.append(checkout / "course/student/a")
    for file in (*kept, *full, *quick):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    before = {file for file in tmp_path.rglob("*") if file.is_file()}
    env = {**os.environ, "HOME": str(tmp_path / "home")}
    for target, gone in (("clean", quick), ("distclean", quick + full)):
        printed(["make", target], cwd=checkout, env=env)
        assert before - {file for file in tmp_path.rglob("*") if file.is_file()} == {*gone}
    elsewhere = ["make", "-f", checkout / "Makefile", "clean"]
    assert "make must be run in the checkout" in printed(elsewhere, 2, cwd=tmp_path / "home")


def test_lab_works_on_copies_that_stay(tmp_path):
    checkout = odd_checkout(tmp_path, "requirements.lock", "environment.yml", "pyproject.toml", "notebooks")
    python = checkout / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\npwd; echo $*\n")
    python.chmod(0o755)
    (checkout / ".venv" / ".ready-notebooks").touch()
    original = (checkout / "notebooks" / "oks.ipynb").read_text()
    make = ["make", "lab", "CHAPTER=oks", "LAB=--no-browser"]
    copy = checkout / "lab" / "oks.ipynb"
    for _ in range(2):
        assert printed(make, cwd=checkout) == f"{checkout}/lab\n-m jupyterlab --no-browser oks.ipynb\n"
        assert copy.read_text() != original  # results go to the checkout's figures, or it was changed
        copy.write_text("changed")
    assert copy.read_text() == "changed" and (checkout / "notebooks" / "oks.ipynb").read_text() == original


#: An interpreter that notes what pip is to do, and stops there where the file "killed" is.
INTERPRETER = f"""#!/bin/sh
case "$*" in
    "-m venv "*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo "venv by ${{0##*/}}" >> log ;;
    "-m pip "*) echo "$*" >> log; [ ! -e killed ] ;;
    "-c import numpy"*) ;;
    *) exec {PYTHON} "$@" ;;
esac
"""
#: Those that cannot be used: a version manager's stub, one that is too old, one that is taken apart.
STUB = "#!/bin/sh\necho not found >&2; exit 127\n"
OLD = f"""#!/bin/sh
exec {PYTHON} -c "import sys; sys.version_info = (3, 10, 4); $2"
"""
WITHOUT_VENV = f"""#!/bin/sh
exec {PYTHON} -c "import sys; sys.version_info = (3, 13, 1); sys.modules['ensurepip'] = None; $2"
"""
CONDA = """#!/bin/sh
[ "$1" = info ] && exit
mkdir -p .venv/conda-meta .venv/bin; cp "${0%/*}/python3.12" .venv/bin/python; echo conda >> log
"""
UV = """#!/bin/sh
echo "uv $*" >> log; [ ! -e killed ] && mkdir -p .venv/bin && cp "${0%/*}/interpreter" .venv/bin/python
"""


@pytest.fixture
def install(tmp_path):
    """Runs the installer in a checkout, with a PATH that has the given programs only; then its log."""
    checkout = odd_checkout(tmp_path, "requirements.lock")
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("bash", "cp", "dirname", "mkdir", "rm", "flock"):
        if shutil.which(tool):
            (tools / tool).symlink_to(shutil.which(tool))

    def run(layer, killed=False, status=0, env=(), **programs):
        for name, text in programs.items():
            file = tools / name.replace("_", ".")
            file.write_text(text)
            file.chmod(0o755)
        (checkout / "log").write_text("")
        (checkout / "killed").unlink(missing_ok=True)
        if killed:
            (checkout / "killed").touch()
        env = {"PATH": str(tools), "HOME": str(tmp_path), **dict(env)}
        output = printed(["bash", ".ci/env", layer], status, cwd=checkout, env=env)
        return (checkout / "log").read_text().splitlines(), output

    return run


def test_a_layer_is_an_extra_in_the_versions_of_the_lock(install):
    log, _ = install("notebooks", python3_11=STUB, python3_12=INTERPRETER)
    assert log[0] == "venv by python3.12"
    assert [line.split("--quiet --no-compile ")[1] for line in log[1:]] == [
        "--constraint requirements.lock setuptools",
        "--no-deps --no-build-isolation --editable .",
        "--constraint requirements.lock cuelearn[notebooks]",
    ]
    log, _ = install("test")
    assert len(log) == 3 and log[-1].endswith("cuelearn[test]")


def test_an_interrupted_installation_is_started_over(install):
    install("notebooks", python3_12=INTERPRETER)
    install("test", killed=True, status=1)
    log, output = install("notebooks")
    assert log[0] == "venv by python3.12" and "starting over" in output
    log, _ = install("test")
    assert len(log) == 3


def test_without_a_usable_python_the_message_names_what_there_is(install):
    no_conda = "#!/bin/sh\nexit 1\n"
    programs = {"python3_13": STUB, "python3_12": WITHOUT_VENV, "python3": OLD, "conda": no_conda}
    _, output = install("notebooks", status=1, **programs)
    assert "(found: python3.12 is Python 3.13 without the module venv, python3 is Python 3.10)" in output
    assert "make env PYTHON=" in output and "install uv" in output
    log, output = install("notebooks", status=1, killed=True, uv=UV)
    assert "uv run" in log[0] and "python3 is Python 3.10" in output  # it got none
    assert "why uv could not get Python 3.13" in output and "install uv" not in output
    log, _ = install("notebooks", interpreter=INTERPRETER)
    assert log[0] == "uv run --quiet --no-project --python 3.13 python -m venv .venv" and len(log) == 4


def numba_cache(checkout, **env):
    code = "import cuelearn, os; print(os.environ['NUMBA_CACHE_DIR'])"
    kept = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "HOME")}
    env = {**kept, "PYTHONPATH": str(checkout), **env}
    return printed([sys.executable, "-c", code], env=env, cwd=checkout).strip()


def test_numba_cache_is_keyed_by_the_sources(tmp_path):
    (tmp_path / "cuelearn").mkdir()
    shutil.copy(ROOT / "cuelearn" / "__init__.py", tmp_path / "cuelearn")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "cuelearn" / "a.py").write_text("x = 1\n")
    first = numba_cache(tmp_path)
    assert Path(first).parent == tmp_path / ".cache" / "numba" and Path(first).is_dir()
    assert numba_cache(tmp_path, HOME="/nonexistent") == first  # no home is needed
    (tmp_path / "cuelearn" / "a.py").write_text("x = 2\n")
    assert numba_cache(tmp_path) != first
    assert numba_cache(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "mine")) == str(tmp_path / "mine")


def test_a_release_has_one_version_date_and_address(project):
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == citation["preferred-citation"]["version"] == cuelearn.__version__
    check = yaml.safe_load((ROOT / "codecheck.yml").read_text())
    assert check["source"] == check["paper"]["reference"] == citation["repository-code"]
    heading = f"\n## {citation['version']} ({citation['date-released']})\n"
    assert heading in (ROOT / "CHANGELOG.md").read_text()
    data = tomllib.loads((ROOT / "data" / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"]["data"] == [f"{data['name']}=={data['version']}"]


#: The files of each version of cuelearn-data: an index keeps what it has of a version.
FILES_OF_DATA = {"0.1.0": "46453428962a33b8"}


def test_other_files_of_data_need_a_new_version():
    registry = json.loads((ROOT / "data" / "datasets.json").read_text())
    sums = sorted(entry["sha256"] for entry in registry.values() if "spdx" in entry)
    version = tomllib.loads((ROOT / "data" / "pyproject.toml").read_text())["project"]["version"]
    assert hashlib.sha256("".join(sums).encode()).hexdigest()[:16] == FILES_OF_DATA[version]


def test_a_step_of_a_workflow_is_a_script_or_one_command():
    workflows = [yaml.safe_load(file.read_text()) for file in (ROOT / ".github" / "workflows").iterdir()]
    jobs = [job for workflow in workflows for job in workflow["jobs"].values()]
    commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    assert len(commands) > 4
    for command in commands:
        program = command.split()[0]
        assert "\n" not in command and not re.search(r"[;|&]", command)
        assert program in ("make", "gh") or os.access(ROOT / program, os.X_OK), command


@pytest.mark.long
def test_a_release_can_be_made_and_tested(tmp_path):
    """From the last commit; needs the network."""
    clone = tmp_path / "clone"
    printed(["git", "clone", "--quiet", ROOT, clone])
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    env["PYTHON"] = sys.executable
    assert "the tag v9 is not that" in printed(["bash", ".ci/release", "v9"], 1, cwd=clone, env=env)
    assert "runs from the installed wheels" in printed(["bash", ".ci/release"], cwd=clone, env=env)
    versions = "newest"
    if sys.version_info < (3, 12):  # the oldest have no wheels for later ones
        versions = "oldest"
    printed(["bash", ".ci/try", versions, "tests/datasets/test_bundled.py"], cwd=clone, env=env)


@pytest.mark.parametrize("command", [("format", "--check"), ("check",)], ids=" ".join)
def test_sources_are_formatted(command):
    places = [
        "cuelearn",
        "notebooks",
        "tests",
        "data/build.py",
        "data/simulators",
        "setup.py",
        ".ci/contents.py",
    ]
    printed([sys.executable, "-m", "ruff", *command, "--no-cache", *places], cwd=ROOT)


def test_conda_brings_all_layers_at_once(install):
    install("notebooks", killed=True, status=1, python3_12=INTERPRETER, conda=CONDA)
    log, output = install("notebooks")
    assert log[0] == "conda" and len(log) == 2 and "starting over" in output
    log, _ = install("test")
    assert len(log) == 1 and log[0].endswith("--no-deps --no-build-isolation --editable .")
    install("notebooks", killed=True, status=1)
    log, _ = install("notebooks", env={"USE_CONDA": "no"})
    assert log[0] == "venv by python3.12"
