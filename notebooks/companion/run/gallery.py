"""Overviews of what was made: the gallery, and the reference results that are committed."""

import contextlib
import gzip
import json
import os
import re
import textwrap
from html import unescape
from itertools import pairwise

import pandas as pd

from companion.plots.explore import default_picture
from companion.run.claims import files_of, number_text
from companion.run.figures import compressed
from companion.run.findings import between, decision_chart, in_readme
from companion.run.records import (
    DEFAULTS,
    catalogue,
    files_of_items,
    read_items,
    read_parts,
    read_verdicts,
    saved_items,
)
from companion.run.registry import title_of
from companion.run.verdicts import judge_again, verdict_table, write_verdicts
from cuelearn.core.storage import atomic_write
from cuelearn.expect import require

#: Tags of cells that are shown unfolded: the algorithm in a few lines, and calls that a reader copies.
SHOWN = {"algorithm", "call"}
#: Pages of a chapter, in the order of the notebook's headings of the first level: end of the name, title.
PAGES = {"": "lecture", "_results": "the papers' results", "_appendix": "appendix"}
SLIDERS = "*With sliders in the book, and in JupyterLab (`make lab`):*"
#: Characters of a printed line, and of the columns of the table of verdicts, which fit in.
PAGE = 118
WIDTHS = (8, 18, 32, 28, 22)
#: Largest file that is copied to figures/reference, of bundled and of original data.
MOST_BYTES = {"bundled": 4_000_000, "original": 300_000}


def print_summary(directory, status, root):
    """The verdicts, what is not made, the status of each chapter, and where to look."""
    made = {item["id"] for item in saved_items(directory)}
    rows = catalogue()[catalogue()["chapter"].isin(status)]
    verdicts = read_verdicts(directory)
    verdicts = verdicts[verdicts["chapter"].isin(status)]
    judged = verdicts[verdicts["verdict"] != "not judged"]
    if len(judged):
        print()
        for row in judged.itertuples():
            cells = [row.id, row.verdict, number_text(row, " ({} to {})"), row.measure, row.data]
            line = ""
            for cell, width in zip(cells, WIDTHS, strict=True):
                line += textwrap.shorten(cell, width, placeholder=" ...").ljust(width + 2)
            print(line.rstrip())
        undecided = (judged["verdict"] == "open").sum()
        if directory.name == "quick":
            counted = f"{undecided} of {len(judged)} claims are open: quick repeats little."
            where = "The verdicts of full, which decide, are in figures/reference/claims.md."
            print(f"\n{counted}\n{where}")
    absent = rows.index.difference(made, sort=False)
    not_judged = verdicts.loc[verdicts["verdict"] == "not judged", "id"]
    for note, names in (("not made yet", absent), ("claims not judged", not_judged)):
        if len(names):
            print(textwrap.fill(f"{note}: {', '.join(names)}", PAGE, subsequent_indent="    "))
    for chapter, state in status.items():
        print(f"{chapter}: {state}")
    print(f"figures and README.md are in {os.path.relpath(directory, root)}")


def gallery(directory, home):
    """Markdown that shows the figures, tables and verdicts of `directory`, with links relative to `home`."""
    prefix = "" if directory == home else os.path.relpath(directory, home).replace(os.sep, "/") + "/"
    title, writer = ("reference results", "`make gallery`") if prefix else (directory.name, "the runner")
    lines = [f"# Figures and tables: {title}", "", f"Written by {writer} from the files beside it.", ""]
    items = saved_items(directory)
    for chapter in dict.fromkeys(item["chapter"] for item in items):
        lines += [f"## {chapter}", ""]
        for item in items:
            if item["chapter"] == chapter:
                lines += _shown(directory, item, prefix)
    verdicts = read_verdicts(directory)
    if len(verdicts):
        lines += ["## Claims and verdicts", ""]
        if (directory / "original").is_dir():
            lines += [f"On original data: [figures and verdicts]({prefix}original/README.md).", ""]
        lines += [verdict_table(verdicts, directory, home)]
    return "\n".join(lines).rstrip() + "\n"


def _shown(directory, item, prefix):
    """Lines that show a figure or table, with links to its files."""
    name = item["name"]
    data = f"Data: {item['our_data']} (the paper's: {item['papers_data']}). Profile {item['profile']}."
    title = title_of(item["chapter"], name, directory)
    lines = [f"### {name}", ""]
    lines += [f"**{title}**", ""] if title else []
    lines += [f"{item['source']}: {item['shows']}.", data]
    lines += [item["note"], ""] if item["note"] else [""]
    if item["kind"] == "figure":
        lines += [_picture(f"{prefix}{name}.png", title or item["shows"]), ""]
    else:
        text = (directory / f"{name}.md").read_text(encoding="utf-8")
        lines += [*(line for line in text.split("\n") if line.startswith("|")), ""]
    files = [file for file in item["files"] if file.endswith((".csv", ".gz", ".svg"))]
    links = [f"[{file}]({prefix}{file})" for file in files]
    return [*lines, " ".join([*links, f"[provenance]({prefix}{name}.json)"]), ""]


def _picture(path, title):
    """A picture in Markdown; its title is what a reader who does not see it hears."""
    return f"![{title.translate(str.maketrans('[]', '()'))}]({path})"


def times(root):
    """Seconds that each chapter took in each profile: measured in this checkout, or else with the reference
    results. Of a run that went on where another was killed, those of the rest."""
    kept, rows = root / "figures" / "reference" / "times.csv", []
    for stamp in sorted((root / "figures").glob("*/notebooks/*.json")):
        with contextlib.suppress(ValueError, KeyError):  # a damaged one says nothing
            seconds = round(json.loads(stamp.read_text(encoding="utf-8"))["seconds"])
            rows.append((stamp.stem, stamp.parents[1].name, seconds, os.cpu_count()))
    table = pd.DataFrame(rows, columns=["chapter", "profile", "seconds", "cores"])
    if kept.is_file():
        table = pd.concat([table, pd.read_csv(kept)]).drop_duplicates(["chapter", "profile"])
    return table.sort_values(["profile", "chapter"], ignore_index=True)


def figure_seconds(root):
    """CPU seconds of each figure and table of `quick` here, and of the rest of each chapter's notebook; empty
    unless all chapters are finished."""
    quick = root / "figures" / "quick"
    stamps = [quick / "notebooks" / f"{chapter}.json" for chapter in DEFAULTS]
    rows = []
    if all(stamp.is_file() for stamp in stamps):
        rows += [(item["name"], item["seconds"]) for item in saved_items(quick)]
        rows += [(stamp.stem, json.loads(stamp.read_text())["notebook_seconds"]) for stamp in stamps]
    return pd.DataFrame(rows, columns=["name", "seconds"])


def _packed(contents, data):
    """File -> bytes, tables that are too large by gzip, and so named in the records that list them."""
    large = [n for n, content in contents.items() if n.endswith(".csv") and len(content) > MOST_BYTES[data]]
    for name in large:
        contents[f"{name}.gz"] = gzip.compress(contents.pop(name), mtime=0)
        for record in (file for file in contents if file.endswith(".json")):
            contents[record] = contents[record].replace(f'"{name}"'.encode(), f'"{name}.gz"'.encode())
    return contents


def reference(root, profile="full", data="bundled"):
    """Copy a profile's finished chapters to figures/reference; other chapters stay.

    Tables above 4 MB are kept as ``.csv.gz``; what is larger even so is left out. Of a run with
    ``DATA=original`` the verdicts that rest on original data go to figures/reference/original, with all
    tables they are computed from, and the figures in which original data is and whose files are small.
    """
    source, target = root / "figures" / profile, root / "figures" / "reference"
    if data == "original":
        source, target = source / "params" / "data_tier=original", target / "original"
    finished = {stamp.stem for stamp in source.glob("notebooks/*.json")}
    items = [item for item in saved_items(source) if item["chapter"] in finished]
    verdicts, parts = read_verdicts(source), read_parts(source)
    verdicts = verdicts[verdicts["chapter"].isin(finished)]
    judged = set()
    if data == "original":
        items = [item for item in items if "original" in {record["tier"] for record in item["data"]}]
        original = parts.loc[parts["tier"] == "original", "claim"]
        verdicts = verdicts[verdicts["id"].isin(original)]
        judged = set().union(*(files_of(claim, source) for claim in verdicts["id"]))
    if not items:
        call = f"make figures PROFILE={profile} DATA={data}"
        raise FileNotFoundError(f"nothing to copy: {source} has no finished chapter, {call}")
    names = files_of_items(items) | judged
    taken, kept = times(root), _packed({name: (source / name).read_bytes() for name in names}, data)
    large = {name for name in kept if len(kept[name]) > MOST_BYTES[data]}
    left = sorted(name for name in large if name.removesuffix(".gz") not in judged)
    taking = kept.keys() - set(left)
    for old in files_of_items(item for item in read_items(target) if item["chapter"] in finished) - taking:
        (target / old).unlink(missing_ok=True)
    for name in sorted(taking):
        atomic_write(target / name, kept[name])
    write_verdicts(target, verdicts, parts[parts["claim"].isin(verdicts["id"])], finished)
    note = f"; too large: {', '.join(left)}" if left else ""
    place = os.path.relpath(target, root)
    print(f"{', '.join(sorted(finished))}: {len(taking)} files copied to {place}{note}")
    if data == "original":
        atomic_write(target / "README.md", gallery(target, target))
    else:
        atomic_write(target / "times.csv", taken.to_csv(index=False, lineterminator="\n"))
    write_reference_gallery(root)


def write_reference_gallery(root):
    """Write figures/README.md, and what other pages of the repository take from figures/reference."""
    directory = root / "figures" / "reference"
    if not directory.is_dir():
        raise FileNotFoundError(f"there are no reference results in {directory}: make reference copies them")
    for place in ("original", ""):
        judge_again(directory / place)
    written = atomic_write(root / "figures" / "README.md", gallery(directory, root / "figures"))
    seconds = figure_seconds(root)
    if len(seconds):
        atomic_write(directory / "seconds.csv", seconds.to_csv(index=False, lineterminator="\n"))
    for page in (root / "README.md", root / "paper.md"):
        if page.is_file():
            atomic_write(page, in_readme(page.read_text(encoding="utf-8")))
    chart = root / "notebooks" / "book" / "choose.md"
    if chart.is_file():
        page = between(chart.read_text(encoding="utf-8"), "choices", decision_chart())
        atomic_write(chart, page)
    check = root / "codecheck.yml"
    if check.is_file():
        head, key, _ = check.read_text(encoding="utf-8").partition("\nmanifest:\n")
        atomic_write(check, head + key + manifest(directory))
    print(f"written: {os.path.relpath(written, root)}")


def manifest(directory):
    """The figures and tables of `directory`, with what each shows, as codecheck.yml lists them."""
    entries = [("claims.md", "the verdict on every claim, with number and interval")]
    for item in saved_items(directory):
        end = ".png" if item["kind"] == "figure" else ".md"
        shown = title_of(item["chapter"], item["name"], directory) or item["shows"]
        entries.append((item["name"] + end, f"{item['source']}: {shown}"))
    lines = [
        f"  - file: figures/reference/{file}\n    comment: {json.dumps(comment, ensure_ascii=False)}\n"
        for file, comment in entries
    ]
    return "".join(lines)


def pages_of(chapter, cells):
    """The cells of a notebook by page: the lecture is called like the chapter, the others hang below it."""
    headed = [cell.cell_type == "markdown" and cell.source.startswith("# ") for cell in cells]
    starts = [i for i, is_headed in enumerate(headed) if is_headed]
    names = [f"{chapter}{end}" for end in PAGES]
    bounds = pairwise([0, *starts[1:], len(cells)])
    return {name: cells[start:end] for name, (start, end) in zip(names, bounds, strict=False)}


def write_chapters(root):
    """Write the pages of each chapter to ``figures/chapters``, to be read in the repository, from the
    notebooks that ``PROFILE=reference`` executed. FileNotFoundError if one is not there.
    """
    require("notebooks", "nbformat", "nbconvert")
    import nbformat
    from nbconvert import MarkdownExporter
    from nbconvert.preprocessors import TagRemovePreprocessor

    remove = TagRemovePreprocessor(remove_input_tags={"hide-input"}, enabled=True)
    exporter = MarkdownExporter(preprocessors=[remove])
    target = root / "figures" / "chapters"
    directory = root / "figures" / "reference"
    titles = {}
    for item in saved_items(directory):
        titles[item["name"]] = title_of(item["chapter"], item["name"], directory) or item["shows"]
    for chapter in DEFAULTS:
        path = directory / "notebooks" / f"{chapter}.ipynb"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there: make figures PROFILE=reference executes it")
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                _readable(cell, titles)
        for old in target.glob(f"{chapter}_*"):
            old.unlink()
        pages = " · ".join(f"[{title}]({chapter}{end}.md)" for end, title in PAGES.items())
        links = f"Chapter {chapter}: {pages}\n"
        for page, cells in pages_of(chapter, notebook.cells).items():
            part = nbformat.v4.new_notebook(cells=cells, metadata=notebook.metadata)
            text, resources = exporter.from_notebook_node(part, {"unique_key": page})
            for name, content in resources["outputs"].items():
                atomic_write(target / name, compressed(content))
            atomic_write(target / f"{page}.md", f"{links}\n{_plain(text)}\n{links}")


#: A DataFrame as pandas shows it in a notebook, with a style sheet.
FRAME = re.compile(r"<div>\s*<style scoped>.*?</style>\s*<table.*?>(.*?)</table>.*?</div>", re.DOTALL)


def _plain(text):
    """A chapter as a repository shows it: tables in Markdown, pictures named by the heading above them."""
    text = FRAME.sub(lambda frame: _table_of(frame[1]), text)
    lines = []
    heading = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        lines.append(line.replace("![png]", f"![{heading}]").rstrip())
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
    return f"{text.strip()}\n"


def _table_of(html):
    """Rows of an HTML table as Markdown; a second row of the head, with the index's name, joins the first."""
    rows = [re.findall(r"<t[hd]\b.*?>(.*?)</t[hd]>", row, re.DOTALL) for row in html.split("</tr>")[:-1]]
    rows = [[unescape(cell).strip().replace("|", "\\|") for cell in row] for row in rows]
    n_head = html.partition("</thead>")[0].count("</tr>")
    head = ["".join(parts) for parts in zip(*rows[:n_head], strict=True)]
    lines = [head, ["---"] * len(head), *rows[n_head:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _readable(cell, titles):
    """A code cell as a page without a kernel shows it: committed pictures by their links, sliders at rest."""
    import nbformat

    if not SHOWN & set(cell.metadata.get("tags", ())):
        cell.metadata["tags"] = ["hide-input"]
    outputs = []
    for out in cell.outputs:
        name = out.get("metadata", {}).get("cuelearn")
        data = out.get("data", {})
        html = data.get("text/html", "")
        has_slider = 'class="explore"' in html
        if out.get("name") == "stderr" or ('class="predict"' in html and not has_slider):
            continue
        if name and "image/png" in data:
            out.data = {"text/markdown": _picture(f"../reference/{name}.png", titles[name])}
        elif has_slider:
            note = nbformat.v4.new_output("display_data", {"text/markdown": SLIDERS})
            out.data = {"image/png": default_picture(html)}
            outputs.append(note)
        outputs.append(out)
    cell.outputs = outputs
