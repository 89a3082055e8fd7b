"""For lecturers: copies of the notebooks for students, solutions in copies of their own, slides.

All three follow from the notebooks, which stay the only text. Slides are made from the executed ones: a
heading begins a slide, a picture has one of its own; of a long paragraph the first sentence and the
questions are shown, and the whole of it is among the speaker's notes.
"""

import base64
import html
import io
import math
import re
import shutil
import symtable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from companion.run.gallery import SHOWN, pages_of
from companion.run.site import EXERCISE, copy_of
from cuelearn.expect import require

require("notebooks", "nbformat", "nbconvert")

import nbformat  # noqa: E402
from nbconvert.filters import markdown2html  # noqa: E402
from pygments import highlight  # noqa: E402
from pygments.formatters import HtmlFormatter  # noqa: E402
from pygments.lexers import PythonLexer  # noqa: E402

STUDENTS = (
    "*An empty cell follows each exercise. Solutions are in `solutions/{0}.ipynb`, made by `make course`.*"
)
SOLUTIONS = """# Solutions of chapter {0}

*In the order of the notebook; cells of the notebook that a solution needs come before it. Tables are the
committed ones (`profile = "reference"`).*"""
#: Code in an exercise.
CODE = re.compile(r"^```python\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
PAGE = Path(__file__).with_name("slides.html")
#: Lines of a slide, those that a picture or a slider takes of it, letters of a line; a line of code is lower.
LINES, PICTURE, SLIDER, LETTERS, CODE_LINE = 15, 11, 14, 90, 0.7
#: So few lines are no slide of their own: they join another, in smaller letters.
FEW = 3
FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
#: What divides a text: empty lines, and the beginning of an item of a list.
PART = re.compile(r"\n\s*\n|\n(?=(?:[-*]|\d+\.) )")
#: What a paragraph begins with: the mark of a list, words in bold.
LEAD = re.compile(r"(?:(?:[-*]|\d+\.) )?(?:\*\*[^*]+\*\*)?\s*")
#: What belongs to the paragraph before it: a table, a formula, a list.
FOLLOWS = re.compile(r"\||\$\$|(?:[-*]|1\.) ")
SENTENCE = re.compile(r"(?<=[.?!])(?<!et al\.)\s+(?=[A-Z$*`\"])|(?<=\)\.)\s+")


def write_course(root, chapters):
    """Write ``course/student``, ``course/solutions`` and ``course/slides`` of these chapters, which
    ``PROFILE=reference`` has executed."""
    target = root / "course"
    for part in ("student", "solutions", "slides"):
        (target / part).mkdir(parents=True, exist_ok=True)
    for chapter in chapters:
        source = root / "notebooks" / f"{chapter}.ipynb"
        executed = root / "figures" / "reference" / "notebooks" / source.name
        nbformat.write(student_copy(source), target / "student" / source.name)
        nbformat.write(solutions(source), target / "solutions" / source.name)
        page = slides(chapter, nbformat.read(executed, as_version=4))
        (target / "slides" / f"{chapter}.html").write_text(page, encoding="utf-8")
    shutil.copy(root / "notebooks" / "book" / "_static" / "mathjax-tex-svg.js", target / "slides")
    print(f"written: course/student, course/solutions, course/slides: {', '.join(chapters)}")


# --- notebooks ----------------------------------------------------------------------------------------------


def student_copy(path):
    """A notebook without solutions: an empty cell follows each exercise."""
    copy = copy_of(path)
    copy.cells[0].source += f"\n\n{STUDENTS.format(path.stem)}"
    cells = []
    for cell in copy.cells:
        exercise = EXERCISE.match(cell.source)
        if exercise:
            cells += _opened(cell.id, f"**{exercise[1]}.** {exercise[2]}")
            cells.append(nbformat.v4.new_code_cell(id=f"{cell.id}-answer"))
        else:
            cells.append(cell)
    copy.cells = cells
    return copy


def solutions(path):
    """The exercises of a notebook with their solutions, code in cells that run, and the cells these need."""
    notebook = nbformat.read(path, as_version=4)
    needed = set()
    cells = []
    for cell in reversed(notebook.cells):
        exercise = EXERCISE.match(cell.source)
        if exercise:
            opened = _opened(cell.id, "**{}.** {}\n\n**Solution.**\n\n{}".format(*exercise.groups()))
        elif cell.cell_type == "code" and names_of(cell.source)[0] & needed:
            opened = [cell]
        else:
            continue
        for code in (piece for piece in reversed(opened) if piece.cell_type == "code"):
            needed |= names_of(code.source)[1]
        cells[:0] = opened
    for cell in cells:
        cell.source = cell.source.replace('profile = "quick"', 'profile = "reference"')
    notebook.cells = [nbformat.v4.new_markdown_cell(SOLUTIONS.format(path.stem), id="solutions"), *cells]
    return notebook


def _opened(cell_id, text):
    """A text as cells, its code in cells of their own."""
    cells = []
    for k, piece in enumerate(CODE.split(text)):
        new_cell = nbformat.v4.new_code_cell if k % 2 else nbformat.v4.new_markdown_cell
        if piece.strip():
            cells.append(new_cell(piece.strip(), id=f"{cell_id}-{k}"))
    return cells


def names_of(code):
    """The names that a cell assigns, and the others that it uses."""
    cell = symtable.symtable(code, "cell", "exec")
    assigned = {s.get_name() for s in cell.get_symbols() if s.is_assigned() or s.is_imported()}
    used = {s.get_name() for s in cell.get_symbols() if s.is_referenced()}
    blocks = cell.get_children()
    for block in blocks:
        used |= {s.get_name() for s in block.get_symbols() if s.is_global()}
        blocks += block.get_children()
    return assigned, used - assigned


# --- slides -------------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """A part of a slide that is not divided: HTML, its height in lines, the text for the speaker; whether the
    next block belongs to it."""

    html: str
    lines: float
    notes: str = ""
    leads: bool = False

    def __add__(self, other):
        notes = "\n\n".join(filter(None, [self.notes, other.notes]))
        return Block(self.html + other.html, self.lines + other.lines, notes, other.leads)


def slides(chapter, notebook):
    """The lecture of an executed chapter as one page, a slide for each height of a screen."""
    sheets = []
    for heading, blocks in _sections(pages_of(chapter, notebook.cells)[chapter]):
        sheets += [(heading, sheet) for sheet in _sheets(blocks)]
    title = html.escape(sheets[0][0])
    texts = "\n".join(_slide(heading, sheet) for heading, sheet in sheets)
    return PAGE.read_text(encoding="utf-8").replace("{{title}}", title).replace("{{slides}}", texts)


def _slide(heading, block):
    notes = f"<aside>{markdown2html(block.notes)}</aside>" if block.notes else ""
    return f"<section><h2>{html.escape(heading)}</h2><div>{block.html}</div>{notes}</section>"


def _sections(cells):
    """Each heading with its blocks. An exercise interrupts the section that it is in."""
    heading = ""
    blocks = []
    for cell in cells:
        exercise = EXERCISE.match(cell.source)
        if exercise:
            yield heading, blocks
            yield exercise[1], [Block(markdown2html(exercise[2]), LINES)]
            blocks = []
        elif cell.cell_type == "code":
            blocks += _output(cell, heading)
        else:
            before, *headed = re.split(r"^#+ (.*)$", cell.source, flags=re.MULTILINE)
            blocks += _texts(before)
            for title, text in zip(headed[::2], headed[1::2], strict=True):
                yield heading, blocks
                heading = title
                blocks = _texts(text)
    yield heading, blocks


def _sheets(blocks):
    """Blocks put together to slides, as many as fit."""
    sheets = []
    pending = None
    for block in blocks:
        block = pending + block if pending else block
        pending = block if block.leads else None
        if pending:
            continue
        if sheets and (sheets[-1].lines <= FEW or sheets[-1].lines + block.lines <= LINES):
            block = sheets.pop() + block
        sheets.append(block)
    if len(sheets) > 1 and sheets[-1].lines <= FEW:
        sheets[-2:] = [sheets[-2] + sheets[-1]]
    return sheets


def _texts(text):
    """Blocks of a text, without what is folded."""
    parts = list(filter(None, PART.split(FOLDED.sub("", text).strip())))
    return [_text(part, following) for part, following in zip(parts, [*parts[1:], ""], strict=False)]


def _text(part, following):
    """A paragraph or an item of a list, shortened; a table or a formula as it is."""
    if part.startswith("|"):
        rows = [row.strip("|").split("|") for row in part.splitlines()]
        width = LETTERS / len(rows[0])
        lines = sum(max(math.ceil(len(cell) / width) for cell in row) for row in rows)
        return Block(markdown2html(part), lines)
    if part.startswith("$$"):
        return Block(markdown2html(part), 2.5 + 1.5 * part.count(r"\\"))
    shown = _short(part)
    letters = re.sub(r"\\[A-Za-z]+", "x", re.sub(r"[{}$^_*]", "", shown))
    is_title = re.fullmatch(r"\*\*[^*]+\*\*", shown)
    leads = bool(is_title or FOLLOWS.match(following) and not FOLLOWS.match(part)) or shown.endswith(":")
    notes = part if len(shown) < len(part) else ""
    return Block(markdown2html(shown), math.ceil(len(letters) / LETTERS) + 0.4, notes, leads)


def _short(paragraph):
    """Of more than two lines the first sentence, the questions, and an end that leads on to a formula."""
    paragraph = " ".join(paragraph.split())
    if len(paragraph) <= 2 * LETTERS:
        return paragraph
    lead = LEAD.match(paragraph)[0]
    first, *others = SENTENCE.split(paragraph[len(lead) :])
    kept = [s for s in others if "?" in s or s is others[-1] and not s.endswith((".", "!", ")"))]
    return lead + " ".join([first, *kept])


def _output(cell, heading):
    """Blocks of a code cell: its code where a reader is shown it, and what it has printed and drawn."""
    if SHOWN & set(cell.metadata.get("tags", ())):
        code = highlight(cell.source, PythonLexer(), HtmlFormatter(noclasses=True))
        yield Block(code, CODE_LINE * (cell.source.count("\n") + 2))
    yield from _printed("".join(out.text for out in cell.outputs if out.get("name") == "stdout"))
    for data in (out.data for out in cell.outputs if "data" in out):
        if "image/png" in data:
            yield Block(_picture(base64.b64decode(data["image/png"]), heading), PICTURE)
        elif "text/markdown" in data:
            yield from _texts(data["text/markdown"])
        elif "text/html" in data:
            is_slider = 'class="explore"' in data["text/html"]
            yield Block(data["text/html"], SLIDER if is_slider else data["text/html"].count("<tr"))
        else:
            yield from _printed(data["text/plain"])


def _printed(text):
    if text:
        yield Block(f"<pre>{html.escape(text)}</pre>", CODE_LINE * (text.count("\n") + 1))


def _picture(png, shows):
    """A picture; one much higher than wide is cut in the widest gap near its middle, into two columns."""
    parts = [Image.open(io.BytesIO(png)).convert("RGB")]
    width, height = parts[0].size
    if height > 1.2 * width:
        drawn = np.flatnonzero(np.asarray(parts[0]).min(axis=(1, 2)) < 255)
        gaps = np.diff(drawn) * (np.abs(drawn[1:] - height / 2) < height / 5)
        cut = drawn[gaps.argmax() + 1]
        parts = [parts[0].crop((0, top, width, bottom)) for top, bottom in ((0, cut), (cut, height))]
    images = ""
    for part in parts:
        buffer = io.BytesIO()
        part.save(buffer, "WEBP", lossless=True)
        source = base64.b64encode(buffer.getvalue()).decode()
        images += f'<img src="data:image/webp;base64,{source}" alt="{html.escape(shows)}">'
    return f"<figure>{images}</figure>"
