"""The book: pages, executed chapters, verdicts and reference as HTML, by Sphinx and myst-nb.

What is written by hand stands in ``notebooks/book/`` (``conf.py``, the pages, ``_static``). Here that, the
executed notebooks and what follows from the tables (verdicts, public names) are put together.
"""

import ast
import inspect
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import pandas as pd
from PIL import Image

from companion import FOLDER
from companion.run.claims import (
    VERDICTS,
    claims,
    first_in_bold,
    judge_of,
    number_text,
    of_units,
    part_by_part,
    with_labels,
)
from companion.run.figures import markdown_table
from companion.run.findings import CARDS, card, failed
from companion.run.gallery import SHOWN, pages_of, times
from companion.run.records import DEFAULTS, PROFILES, read_items, read_parts, read_verdicts
from companion.run.verdicts import count_of, verdict_map
from cuelearn.expect import require

require("book", "nbformat")

import nbformat  # noqa: E402

#: Modules whose public names the reference lists.
PUBLIC = [f"cuelearn.{name}" for name in ("kernels", "omcl", "mkl", "mms", "mktl", "oks", "datasets")]
PUBLIC.append("companion.run.claims")
REFERENCE = """# Reference

Every public name, module by module; each has an example that the tests run. All estimators share:

```{eval-rst}
.. currentmodule:: cuelearn.core.estimator

.. autoclass:: Estimator
   :members: get_params, set_params, save, load
   :no-inherited-members:
```
"""
#: An exercise of a notebook, whose solution is folded.
EXERCISE = re.compile(
    r"^\*\*(Exercise \d+)\.\*\* (.*?)\n\n<details><summary>Solution</summary>\n\n(.*)\n\n</details>\s*$",
    re.DOTALL,
)
#: Under the title of a chapter.
DOWNLOAD = """To run and change it: `make lab CHAPTER={0}` in a clone of the repository *cuelearn*, or
{{download}}`this notebook <_{0}.ipynb>`."""
#: A picture of a page: one of the committed figures, by its name.
PICTURE = re.compile(r"^```\{figure\} _(\S+\.png)$", re.MULTILINE)
#: The call of a chapter's function, in a cell, whose picture is shown but not saved.
DRAWING = re.compile(r"^draw\.(\w+)\(", re.MULTILINE)
#: Links that a repository follows, and what the book has in their place.
OF_REPOSITORY = (
    (re.compile(r"\[([^]]+)\]\(\.\./(\w+)\.ipynb\)"), r"{doc}`\1 <\2>`"),
    (re.compile(r"\[([^]]+)\]\(\.\./\.\./figures/reference/claims\.md\)"), r"{doc}`\1 <map>`"),
    (re.compile(r"^\[.+\]\(\.\./\.\./figures/reference/times\.csv\)$", re.M), "```{include} _times.md\n```"),
)
#: A claim on a page, which is shown with its verdict.
CLAIM = re.compile(r"\{ref\}`([a-z0-9]+-\d+)`")
#: What a notebook needs that is taken from a page.
COPY = (
    "*This copy is yours; its figures go to `figures/` next to it. It needs the package with its extra, "
    '`pip install ".[notebooks]"` in a checkout of cuelearn, and the folder `notebooks/companion` of that '
    "beside it. `make lab` opens copies of all notebooks there.*"
)
#: Bytes above which a picture has photographs in it, which need not be kept to the bit.
LARGE = 100_000
#: Of the theme and its fonts, what no page loads.
UNUSED = ("*.map", "*.ttf", "fa-brands-*", "fa-regular-*", "fontawesome.js", "webpack-macros.html")
#: What is mended in pages of the theme, MyST-NB and docutils: pattern, HTML.
MENDED = (
    (re.compile(r"fab fa-github"), "fas fa-code-branch"),  # of a font that is not kept
    # the pages of a chapter are of one notebook, which Binder and Colab open
    (re.compile(r"(/notebooks/\w+?)_(?:results|appendix)\.ipynb"), r"\1.ipynb"),
    # the theme's style sheet and its font have the icons too
    (re.compile(r"<script [^>]*fontawesome\.js[^>]*></script>"), ""),
    # Sphinx links the PNG where a width is given
    (re.compile(r'<a [^>]*image-reference"[^>]*>(<img [^>]*>)\s*</a>'), r"\1"),
    # for screen readers: names that are missing, or differ from what is seen; roles
    (re.compile(r'>([^<>"]+)(</a><details[^>]*><summary)>'), r'>\1\2 aria-label="Pages of \1">'),
    (re.compile(r'(<summary) aria-label="Toggle hidden content"'), r"\1"),
    (re.compile(r'(search-button-field [^>]*) title="Search" aria-label="Search"'), r"\1"),
    (re.compile(r'(<div id="pst-primary-sidebar")'), r'\1 role="complementary" aria-label="Contents"'),
    (re.compile(r'role="doc-biblioentry"'), 'role="listitem"'),
    (re.compile(r"<th\b[^>]*>(<p></p>)?</th>"), "<td></td>"),
)
#: Colours of a drawing in the book.
COLOURS = 96


def build(root, directory):
    """Write ``<directory>/book/`` from the chapters executed there. Returns its first page.

    A chapter that was not executed has a page that says so, and its claims are not judged. FileNotFoundError
    if none was, RuntimeError if Sphinx warns of anything: a link, a name or a formula that is wrong.
    """
    require("book", "sphinx", "myst_nb")
    executed = [c for c in DEFAULTS if (directory / "notebooks" / f"{c}.ipynb").is_file()]
    if not executed:
        raise FileNotFoundError(f"there is no executed chapter in {directory}: run make figures first")
    with tempfile.TemporaryDirectory(dir=directory, prefix=".book-") as scratch:
        source, out = Path(scratch, "source"), Path(scratch, "out")
        verdicts = _all_claims(read_verdicts(directory))
        shutil.copytree(root / "notebooks" / "book", source, ignore=shutil.ignore_patterns(".*", "__*"))
        for page in source.glob("*.md"):
            text = page.read_text(encoding="utf-8")
            for picture in PICTURE.findall(text):
                shutil.copy(root / "figures" / "reference" / picture, source / f"_{picture}")
            for link, target in OF_REPOSITORY:
                text = link.sub(target, text)
            text = CLAIM.sub(lambda claim: _with_verdict(claim[1], verdicts), text)
            page.write_text(text, encoding="utf-8")
        records = {item["name"]: item for item in read_items(directory)}
        named = set()
        for chapter in executed:
            notebook = nbformat.read(directory / "notebooks" / f"{chapter}.ipynb", as_version=4)
            for page, part in _chapter(notebook, chapter, records, named).items():
                nbformat.write(part, source / f"{page}.ipynb")
            nbformat.write(copy_of(root / "notebooks" / f"{chapter}.ipynb"), source / f"_{chapter}.ipynb")
        page = verdict_page(verdicts, read_parts(directory), directory.name)
        pages = reference_pages() | {"verdicts.md": page}
        pages |= {"map.md": map_page(verdicts, named), "_times.md": _times(root)}
        pages["_failed.md"] = failed(verdicts)
        pages |= {f"_{name}.md": card(name) for name in CARDS}
        for chapter in set(DEFAULTS) - set(executed):
            pages[f"{chapter}.md"] = f"# {chapter}\n\nNot executed yet: make figures CHAPTER={chapter}.\n"
        for file, text in pages.items():
            (source / file).write_text(text, encoding="utf-8")
        _sphinx(source, out)
        for file in (file for pattern in UNUSED for file in (out / "_static").rglob(pattern)):
            file.unlink()
        _light_pictures(out, directory)
        for unused in (out / "_sources", out / "_static" / "locales"):
            shutil.rmtree(unused, ignore_errors=True)
        book = directory / "book"
        shutil.rmtree(book, ignore_errors=True)
        os.replace(out, book)
    return book / "index.html"


def _all_claims(verdicts):
    """Verdicts with those claims that were not judged: pages refer to all."""
    rows = claims()
    absent = rows.loc[rows.index.difference(verdicts["id"]), ["id", "chapter", "source", "claim"]]
    table = pd.concat([verdicts, absent.assign(verdict="not judged")])
    table = table.set_index("id", drop=False).loc[rows.index]
    numbers = ["number", "low", "high"]
    return table.assign(**table.drop(columns=numbers).fillna(""), **table[numbers].astype(float))


def _with_verdict(claim, verdicts):
    """A link to a claim, and what became of it."""
    return f"{{ref}}`{claim} <{claim}>`: {verdicts.loc[claim, 'verdict']}"


def _sphinx(source, out):
    """Run Sphinx in a process of its own; what it warns of is an error."""
    options = "-q -W --keep-going -b html".split()
    command = [sys.executable, "-m", "sphinx", *options, "-d", f"{out}.trees", source, out]
    run = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"the book was not built:\n{run.stderr.replace(str(source), 'notebooks/book')}")


def _light_pictures(out, directory):
    """Pages `MENDED`, pictures as WebP, each a link to itself: a phone shows it as wide as the page, a tap
    in full.

    A phone shows panels side by side below each other, where `directory` has such a picture.
    """
    narrow = {_wide(file).read_bytes(): file for file in directory.glob("*.narrow.png")}
    stacked = set()
    for png in list((out / "_images").glob("*.png")):
        content = png.read_bytes()
        _as_webp(content, png.with_suffix(".webp"))
        if content in narrow:
            _as_webp(narrow[content].read_bytes(), png.with_suffix(".narrow.webp"))
            stacked.add(f"_images/{png.stem}")
        png.unlink()

    def linked(image):
        """A picture of a page with its link."""
        shown = image[0].replace(".png", ".webp")
        if image[1] in stacked:
            source = f'<source media="(max-width: 600px)" srcset="{image[1]}.narrow.webp">'
            shown = f"<picture>{source}{shown}</picture>"
        return f'<a class="picture" href="{image[1]}.webp">{shown}</a>'

    for page in out.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        for pattern, html in MENDED:
            text = pattern.sub(html, text)
        text = re.sub(r'<img [^>]*src="(_images/[^"]+)\.png"[^>]*>', linked, text)
        page.write_text(text, encoding="utf-8")


def _wide(file):
    """The picture of which a narrow one is the second layout."""
    return file.with_name(file.name.replace(".narrow.png", ".png"))


def _as_webp(content, file):
    picture = Image.open(io.BytesIO(content)).convert("RGB")
    drawing = len(content) <= LARGE
    if drawing:
        picture = picture.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=1).convert("RGB")
    picture.save(file, lossless=drawing, quality=75, method=6)


# --- chapters -----------------------------------------------------------------------------------------------


def copy_of(path):
    """A notebook to take away, as `make lab` copies it, with what it needs at its top."""
    text = path.read_text(encoding="utf-8").replace("figures_dir = None", r"figures_dir = \"figures\"")
    copy = nbformat.reads(text, as_version=4)
    copy.cells.insert(0, nbformat.v4.new_markdown_cell(COPY, id="copy"))
    return copy


def _chapter(notebook, chapter, records, named):
    """An executed notebook as pages, page -> notebook: code folded, figures numbered and `named`, no state of
    widgets."""
    notebook.metadata.pop("widgets", None)
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = EXERCISE.sub(_admonition, cell.source)
            cells.append(cell)
        else:
            cells += _pieces(cell, records, named)
    pages = pages_of(chapter, cells)
    names = list(pages)[1:]
    below = ["```{toctree}", ":hidden:", "", *names, "```"] if names else []
    where = "\n".join([DOWNLOAD.format(chapter), *below])
    pages[chapter].insert(1, nbformat.v4.new_markdown_cell(where, id="download"))
    return {
        name: nbformat.v4.new_notebook(cells=part, metadata=notebook.metadata) for name, part in pages.items()
    }


def _admonition(exercise):
    """An exercise as a box of the page, its solution as one that opens."""
    title, question, solution = exercise.groups()
    solution = f":::{{dropdown}} Solution\n{solution}\n:::"
    return f"::::{{admonition}} {title}\n:class: tip\n{question}\n\n{solution}\n::::"


def _pieces(cell, records, named):
    """A code cell as cells of the page; names of its figures are added to `named`.

    A caption holds for all outputs of a cell, so that what stands beneath a figure gets a cell of its own;
    long notes are folded between them.
    """
    outputs, cell.outputs = [out for out in cell.outputs if not _is_progress(out)], []
    tags = set(cell.metadata.get("tags", []))
    if not tags & SHOWN:
        cell.metadata["tags"] = sorted(tags | {"hide-input"})
    cells = [cell]
    for out in outputs:
        name, last = out.get("metadata", {}).get("cuelearn"), cells[-1]
        named_here = name in records and name not in named
        if last.cell_type == "markdown" or last.outputs and (named_here or "mystnb" in last.metadata):
            more = {"id": f"{cell.id}-{len(cells)}", "metadata": {"tags": ["remove-input"]}}
            last = nbformat.v4.new_code_cell("...", **more)  # an empty one would be dropped
            cells.append(last)
        last.outputs.append(out)
        if "image/png" in out.get("data", {}):
            shown = records.get(name, {}).get("shows") or _drawn(cell)
            last.metadata["mystnb"] = {"image": {"alt": shown}}
        if named_here:
            named.add(name)
            figure = {"caption": _caption(records[name]), "name": f"fig-{name}"}
            last.metadata.setdefault("mystnb", {})["figure"] = figure
    return cells


def _drawn(cell):
    """What a picture shows that is not among the figures: the summary of the function that draws it."""
    call = DRAWING.search(cell.source)
    if call is None:
        return "a drawing"
    functions = import_module(f"companion.plots.{cell.id.rpartition('-')[0]}")
    return inspect.getdoc(getattr(functions, call[1])).partition("\n\n")[0]


def _is_progress(out):
    return out.output_type == "stream" and out.name == "stderr"


def _caption(record):
    """Source, what is shown and data in one line."""
    source, shows = (record[key][0].upper() + record[key][1:] for key in ("source", "shows"))
    return f"{source}. {shows}. Data: {record['our_data']}."


def _times(root):
    """What each chapter took in each profile."""
    taken = times(root).pivot(index="chapter", columns="profile", values="seconds")
    taken = taken[[profile for profile in PROFILES if profile in taken]].add_suffix(" [s]")
    return markdown_table(taken.reset_index())


# --- pages made from tables ---------------------------------------------------------------------------------


def map_page(verdicts, named):
    """One row a claim, with a tile for its verdict; figures that are `named` on a page are linked."""

    def tile(verdict):
        return f"[{verdict}]{{.tile .{verdict.replace(', ', '-').replace(' ', '-')}}}"

    def links(row):
        if row.figure:
            yield f"[{row.figure}](#fig-{row.figure})" if row.figure in named else row.figure
        if judge_of(row.id):
            yield f"[how it is judged](#judge-{row.id})"

    claim = "[{0.id}](#{0.id}) {0.claim} *({0.source})*".format
    head = [
        "---",
        "html_theme.sidebar_secondary.remove: true",
        "---",
        "# Verdict map",
        "",
        count_of(verdicts["verdict"]),
        "",
        "```{include} _map.md",
        "```",
        "",
    ]
    table = verdict_map(verdicts, links, tile, claim)
    return "\n".join([*head, "::::{div} verdict-map", table, "::::", ""])


def verdict_page(verdicts, parts, profile):
    """Every claim: what the paper says, the verdict, ours, on what it rests."""
    counts = pd.crosstab(verdicts["chapter"], verdicts["verdict"], margins=True, margins_name="all")
    columns = [verdict for verdict in VERDICTS if verdict in counts]
    counts = counts.loc[[*verdicts["chapter"].unique(), "all"], columns]
    head = ["# Verdicts", "", f"Profile {profile}.", "", markdown_table(counts.reset_index())]
    head += ["", "```{include} _verdicts.md", "```"]
    lines = []
    for chapter, rows in verdicts.groupby("chapter", sort=False):
        lines += ["", f"## {chapter}"]
        for row in rows.itertuples():
            lines += _verdict(row, parts[parts["claim"] == row.id])
    text = [line if line.startswith("|") else line.replace("|", "\\|") for line in lines]
    return "\n".join(head + text) + "\n"


def _verdict(row, parts):
    """Lines on one claim: whose it is, our number with its interval and unit, by data, part by part."""
    claim = row.claim[0].upper() + row.claim[1:]
    verdict = f"**{row.verdict.capitalize()}** ({row.source}; {row.id})"
    lines = ["", f"({row.id})=", f"### {claim}", "", verdict, ""]
    number = number_text(row)
    if number:
        units = f"; {of_units(row.n, row.unit)}" if row.n else ""
        wanted = f" (wanted: {row.wanted})" if row.wanted else ""
        lines += [f"**Ours:** {with_labels(row.measure)}: {number}{wanted}{units}. Data: {row.data}.", ""]
        sets = first_in_bold(row.sets, row.id)
        lines += [f"**On each data set:** {sets}. Parts that hold: {row.holding}.", ""]
    if row.learnt:
        lines += [f"**What one learns.** {row.learnt}", ""]
    lines += [":::{dropdown} Part by part", part_by_part(parts.to_dict("records"), row.text), ":::"]
    judged_by = judge_of(row.id)
    if judged_by is not None:
        place = Path(judged_by.file).relative_to(FOLDER.parent).as_posix()
        code = ["```python", code_of(row.id, judged_by.file), "```"]
        lines += ["", f"(judge-{row.id})=", f':::{{dropdown}} How it is judged: `judge("{row.id}")`, {place}']
        lines += [*code, ":::"]
    return lines


def code_of(claim, file):
    """The code that judges a claim, after what is assigned for it."""
    text = Path(file).read_text(encoding="utf-8")
    assigned = {}
    for statement in ast.parse(text).body:
        nodes = list(ast.walk(statement))
        first = min(node.lineno for node in (statement, *getattr(statement, "decorator_list", ())))
        lines = "\n".join(text.splitlines()[first - 1 : statement.end_lineno])
        named = [node for node in nodes if isinstance(node, ast.Name)]
        stored = [name.id for name in named if isinstance(name.ctx, ast.Store)]
        is_assignment = isinstance(statement, ast.Assign)
        own = () if is_assignment else stored  # a function's, of which one above may have the name
        loaded = [name.id for name in named if isinstance(name.ctx, ast.Load) and name.id not in own]
        used = [code for name in loaded for code in assigned.get(name, ())]
        if any(getattr(node, "value", "") == claim for node in nodes):
            return "\n".join(dict.fromkeys([*used, lines]))
        if is_assignment:
            assigned |= dict.fromkeys(stored, [*used, lines])
    return ""


def reference_pages():
    """File -> text: a page for each module with all its public names, and one that lists them."""
    pages = {}
    for module in PUBLIC:
        lines = [f"# {module}", "", "```{eval-rst}", f".. automodule:: {module}", "```", ""]
        pages[f"api_{module.removeprefix('cuelearn.').replace('.', '_')}.md"] = "\n".join(lines)
    toctree = ["```{toctree}", ":maxdepth: 2", "", *(file.removesuffix(".md") for file in pages), "```", ""]
    return pages | {"reference.md": "\n".join([REFERENCE, *toctree])}
