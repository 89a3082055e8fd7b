"""The committed notebooks are clean, and each runs from beginning to end in the smoke profile."""

import ast
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from processes import printed

from companion.run.claims import claims
from companion.run.records import DEFAULTS, NOT_PARAMETERS
from companion.run.runner import CHAPTERS, OWN, WITH, notebook_parameters

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


FENCED = re.DOTALL | re.MULTILINE
#: A slider: each position costs a picture. tests/plots/test_explore.py has them; here the default will do.
CONTROL = re.compile(r'(Control\(\s*"[^"]*",\s*)\([^()]*\),\s*([^\s,)]+)')


@each_notebook
def test_notebook_is_clean(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.stem in CHAPTERS
    ids = [cell["id"] for cell in notebook["cells"]]
    assert all(re.fullmatch(rf"{path.stem}-\d{{3}}", name) for name in ids) and len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        assert set(cell["metadata"]) <= {"tags", "jupyter"}, cell["id"]
        if cell["cell_type"] == "code":
            assert not cell["outputs"] and cell["execution_count"] is None, cell["id"]
        if cell["cell_type"] == "markdown":  # a number or a dash that begins a line would make a list
            text = re.sub(r"\$\$.*?\$\$|(```+).*?\1", "", cell["source"], flags=re.DOTALL)
            assert not re.search(r"^[A-Za-z].*\n1\. ", text, flags=re.MULTILINE), cell["id"]
            for solution in re.findall(r"^```(?:python)?\n(.+?)```", cell["source"], flags=FENCED):
                ast.parse(solution)
    assert set(notebook["metadata"]) <= {"kernelspec", "language_info"}
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert set(notebook["metadata"].get("language_info", {})) <= {"name"}  # no version of Python


@each_notebook
def test_notebook_has_the_parameters_that_the_runner_sets(path):
    known = notebook_parameters(path)
    assert {*OWN, "seed"} <= set(known)
    assert known["profile"]["default"] == "quick"
    assert known["data_tier"]["default"] == "bundled"
    assert known["figures_dir"]["default"] is None
    published = {name: parameter["default"] for name, parameter in known.items()}
    assert DEFAULTS[path.stem] == {k: v for k, v in published.items() if k not in NOT_PARAMETERS}
    setups = ("store = FigureStore(", "chapter = Chapter(")
    setup = next(c.source for c in nbformat.read(path, 4).cells if any(text in c.source for text in setups))
    given = re.search(r"dict\((.*?)\)", setup, flags=re.DOTALL)[1].removeprefix("profile=profile, ")
    assert given == ", ".join(f"{name}={name}" for name in DEFAULTS[path.stem])


def test_all_notebooks_fetch_the_checkout_on_colab_by_the_same_cell():
    cells = [cell.source for path in NOTEBOOKS for cell in nbformat.read(path, 4).cells]
    fetching = [source for source in cells if "google.colab" in source]
    assert len(fetching) == len(NOTEBOOKS) and len(set(fetching)) == 1


ALONE = [chapter for chapter in CHAPTERS if chapter not in sum(WITH.values(), ())]
LONG = [pytest.param(chapter, marks=pytest.mark.long) for chapter in ALONE if chapter != "oks"]


@pytest.mark.parametrize("chapter", ["oks", *LONG])
def test_notebook_runs_in_smoke(chapter, tmp_path):
    """In a directory of its own, so that it finds no earlier result but the tests' descriptions of pictures.
    `make figures` runs all notebooks; `make test` one of them."""
    (tmp_path / "notebooks").mkdir()
    for place in ("notebooks/companion", "data"):
        (tmp_path / place).symlink_to(ROOT / place)
    names = chapter, *WITH.get(chapter, ())
    for name in names:
        notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
        for cell in notebook.cells:
            cell.source = CONTROL.sub(r"\1(\2,), \2", cell.source)
        nbformat.write(notebook, tmp_path / "notebooks" / f"{name}.ipynb")
    cues = Path(os.environ["CUELEARN_CACHE"], "cues")
    cues.mkdir(parents=True, exist_ok=True)
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "cues").symlink_to(cues)
    command = [sys.executable, "-m", "companion.run.runner", "--root", str(tmp_path), "--profile", "smoke"]
    kept = {k: v for k, v in os.environ.items() if k not in ("CUELEARN_CACHE", "CUELEARN_SCHEDULER")}
    printed([*command, "--chapter", chapter], env=kept)
    directory = tmp_path / "figures" / "smoke"
    assert (directory / "README.md").is_file() and not list(directory.rglob(".*tmp-*"))
    text = (directory / "claims.csv").read_text(encoding="utf-8")
    for name in names:
        assert (directory / "notebooks" / f"{name}.ipynb").is_file()
        assert all(f"\n{claim}," in text for claim in claims(name).index)
