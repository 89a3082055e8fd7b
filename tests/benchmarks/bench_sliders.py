"""Milliseconds from a slider's move to its new picture, in a kernel: the first slider of each chapter, alive
after the cells above it."""

import statistics
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from companion.run.runner import CHAPTERS

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
MOVE = """
import time
*sliders, picture, _ = box.children
took = []
for slider in sliders:
    for value in [v for _, v in slider.options if v != slider.value]:
        begun = time.perf_counter()
        slider.value = value
        took.append(1000 * (time.perf_counter() - begun))
print(*took)
"""


def moves(chapter):
    """Milliseconds of each move, to a picture that was not drawn before."""
    cells = nbformat.read(NOTEBOOKS / f"{chapter}.ipynb", as_version=4).cells
    at = next(i for i, c in enumerate(cells) if c.cell_type == "code" and "explore(" in c.source)
    above = [c for c in cells[:at] if c.cell_type == "code"]
    slider = nbformat.v4.new_code_cell(cells[at].source.replace("\nexplore(", "\nbox = explore("))
    if slider.source.startswith("explore("):
        slider.source = f"box = {slider.source}"
    notebook = nbformat.v4.new_notebook(cells=[*above, slider, nbformat.v4.new_code_cell(MOVE)])
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
    return [float(ms) for ms in notebook.cells[-1].outputs[0].text.split()]


if __name__ == "__main__":
    for name in sys.argv[1:] or CHAPTERS:
        ms = moves(name)
        print(
            f"{name:<12} median {statistics.median(ms):4.0f} ms, most {max(ms):4.0f} ms, of {len(ms)} moves"
        )
