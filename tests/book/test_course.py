"""What lecturers get: copies for students, solutions that run, slides."""

import re
from pathlib import Path

import nbformat
import pytest

from companion.run.course import slides, solutions, student_copy
from companion.run.gallery import pages_of

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
LONG = [pytest.param(path, marks=pytest.mark.long) for path in NOTEBOOKS if path.stem != "oks"]


@each_notebook
def test_students_get_no_solution_and_solutions_are_complete(path):
    source, copy, solved = nbformat.read(path, as_version=4), student_copy(path), solutions(path)
    exercises = [cell for cell in source.cells if cell.source.startswith("**Exercise")]
    levels = [
        re.match(r"\*\*Exercise (\d+)\.\*\* \*\((easy|medium|hard)\)\* ", cell.source) for cell in exercises
    ]
    assert [int(level[1]) for level in levels] == list(range(1, len(exercises) + 1))
    for notebook in (copy, solved):
        nbformat.validate(notebook)
        assert sum(cell.source.startswith("**Exercise") for cell in notebook.cells) == len(exercises)
    cells = {cell.id: cell for cell in copy.cells}
    assert all(cells[f"{cell.id}-answer"].source == "" for cell in exercises)
    texts = ["".join(cell.source for cell in notebook.cells) for notebook in (source, copy, solved)]
    assert [text.count("Solution</summary>") for text in texts] == [len(exercises), 0, 0]
    assert "**Solution.**" not in texts[1] and texts[2].count("**Solution.**") == len(exercises)
    assert texts[1].count("<summary>Answer") == texts[0].count("<summary>Answer") == 5  # Check yourself


@pytest.mark.parametrize("path", [ROOT / "notebooks" / "oks.ipynb", *LONG], ids=lambda path: path.stem)
def test_code_of_solutions_runs(path):
    names = {}
    for cell in solutions(path).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, cell.id, "exec"), names)


@each_notebook
def test_slides_have_every_heading_of_the_lecture_and_no_solution(path):
    notebook = nbformat.read(path, as_version=4)
    page = slides(path.stem, notebook)
    lecture = "\n".join(
        c.source for c in pages_of(path.stem, notebook.cells)[path.stem] if c.cell_type == "markdown"
    )
    for heading in re.findall(r"^#+ (.*)$", lecture, flags=re.MULTILINE):
        assert f"<h2>{heading}</h2>" in page
    assert (
        "Solution" not in page
        and "Answer" not in page
        and "http" not in page.replace("http://www.w3.org", "")
    )
