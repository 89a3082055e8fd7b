"""The runner: executes the chapters' notebooks and says what came out.

``python -m cuelearn.book.run`` (or ``make figures``) executes ``notebooks/<chapter>.ipynb`` through papermill and writes, under
``figures/<profile>/``::

    <id>[-suffix].png .svg .csv .md .json     figures and tables (cuelearn.book.figures)
    claims.csv claims.md                      verdicts (cuelearn.book.claims)
    summary.md README.md                      what was made, on which data, in what time; the gallery
    notebooks/<chapter>.ipynb                 the executed notebook, there only if all of it succeeded
    notebooks/<chapter>.json                  what it was made from: as long as nothing of it changes, it is not run again
    notebooks/<chapter>.failed.ipynb, .log    after a failure: how far it came, and why it ended

A run with parameters other than the notebook's own goes to ``figures/<profile>/params/<name=value,...>/`` with the same content, so
that it never replaces the default results. A killed run leaves no half-written file; started again, it finds the finished
chapters and the finished points of its sweeps.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import hashlib
import json
import os
import re
import sys
import threading
import time
import traceback
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import cuelearn

__all__ = ["RunError", "main", "notebook_parameters"]

PROFILES = ("smoke", "quick", "full")
DATA_TIERS = ("bundled", "original")
CHAPTERS = ("omcl", "mkl", "mms", "mktl", "oks")
#: Parameters that the runner sets itself, and the option for each.
OWN = {"profile": "--profile", "data_tier": "--data", "figures_dir": "--root", "n_jobs": "--jobs"}
#: Parameters that do not change results.
HOW = ("figures_dir", "n_jobs")
_VERSIONED = ("numpy", "scipy", "pandas", "matplotlib", "numba", "scikit-learn", "scikit-image", "joblib")


class RunError(Exception):
    """Something that the caller can mend: a wrong name or value. Its text is the whole message."""


def _near(name, names):
    close = difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)
    return f" Did you mean {' or '.join(close)}?" if close else ""


# --- parameters --------------------------------------------------------------------------------------------------------------


class Parameter(NamedTuple):
    """A name in a notebook's `parameters` cell: its default (None where it is no literal) and the comment beside it."""

    default: Any
    comment: str


def _read_notebook(path):
    try:
        notebook = json.loads(Path(path).read_text(encoding="utf-8"))
        notebook["cells"]
    except (ValueError, KeyError) as error:
        raise RunError(f"{path} is not a notebook: {error}") from None
    return notebook


def notebook_parameters(path):
    """The parameters of a notebook: dict of name -> `Parameter`.

    Raises
    ------
    RunError
        If the notebook has not exactly one cell tagged ``parameters``, or that cell is more than assignments.
    """
    cells = [
        cell
        for cell in _read_notebook(path)["cells"]
        if cell["cell_type"] == "code" and "parameters" in cell.get("metadata", {}).get("tags", [])
    ]
    if len(cells) != 1:
        raise RunError(f"{path} has {len(cells)} cells tagged parameters; it must have one")
    source = cells[0]["source"]
    source = source if isinstance(source, str) else "".join(source)
    lines, found = source.split("\n"), {}
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise RunError(f"the parameters cell of {path} does not parse: {error}") from None
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
        elif isinstance(statement, ast.AnnAssign):
            target = statement.target
        else:
            continue
        if isinstance(target, ast.Name) and statement.value is not None:
            try:
                default = ast.literal_eval(statement.value)
            except ValueError:
                default = None
            found[target.id] = Parameter(
                default, lines[statement.end_lineno - 1][statement.end_col_offset :].strip().lstrip("# ")
            )
    return found


def _value(name, text, parameter):
    """The text of ``-p name=text`` as a value of the kind of the parameter's default."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = {"true": True, "false": False, "none": None, "null": None}.get(text.lower(), text)
    default = parameter.default
    if isinstance(default, str):
        return text if not isinstance(value, str) else value
    if default is None or (value == "auto" and "auto" in parameter.comment):
        return value
    fits = {
        bool: isinstance(value, bool),
        int: isinstance(value, int) and not isinstance(value, bool),
        float: isinstance(value, (int, float)) and not isinstance(value, bool),
    }.get(type(default), isinstance(value, (list, tuple)) == isinstance(default, (list, tuple)))
    if not fits:
        kind = {bool: "True or False", int: "a whole number", float: "a number"}.get(
            type(default), f"a {type(default).__name__}"
        )
        raise RunError(f"parameter {name} must be {kind} like its default {default!r}, got {text!r}")
    return float(value) if isinstance(default, float) else value


def _check_parameters(path, given):
    """Values for ``-p`` settings of one notebook; every wrong name is an error that lists the right ones."""
    known = notebook_parameters(path)
    settable = [name for name in known if name not in OWN]
    values = {}
    for item in given:
        name, equals, text = item.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise RunError(
                f"-p takes name=value, got {item!r}; the parameters of {path.stem} are: {', '.join(settable)}"
            )
        if name in OWN:
            raise RunError(f"parameter {name} is set by {OWN[name]}, not by -p")
        if name not in known:
            raise RunError(
                f"{path.stem} has no parameter {name!r}.{_near(name, settable)} Its parameters are: "
                + ", ".join(f"{n} (default {known[n].default!r})" for n in settable)
            )
        values[name] = _value(name, text.strip(), known[name])
    return values


def _variant(changed):
    """Directory name for a set of changed parameters; empty for none."""
    if not changed:
        return ""
    plain = ",".join(f"{name}={changed[name]}" for name in sorted(changed))
    safe = re.sub(r"[^A-Za-z0-9_.,=+-]", "_", plain)
    if safe != plain or len(safe) > 80:
        safe = f"{safe[:70]}-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"
    return safe


# --- staleness ---------------------------------------------------------------------------------------------------------------


def _hash(*parts):
    total = hashlib.sha256()
    for part in parts:
        total.update(part if isinstance(part, bytes) else str(part).encode())
        total.update(b"\0")
    return total.hexdigest()


def _notebook_hash(path):
    """Hash of what a notebook says: neither outputs nor counts nor metadata beside tags."""
    said = []
    for cell in _read_notebook(path)["cells"]:
        source = cell["source"]
        said.append(
            [
                cell["cell_type"],
                source if isinstance(source, str) else "".join(source),
                cell.get("metadata", {}).get("tags", []),
            ]
        )
    return _hash(json.dumps(said))


def _package_hash():
    package = Path(cuelearn.__file__).resolve().parent
    return _hash(
        cuelearn._source_hash(leave_out=("book/run.py",)),
        *(file.name + file.read_text() for file in sorted(package.rglob("*.csv"))),
    )


def _data_hash(root, tier):
    """Hash of the data that may be read: by content for the bundled files, by name, size and date for the large originals."""
    parts = []
    for file in sorted(p for p in (root / "data").rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        parts.append(f"{file.relative_to(root).as_posix()} {hashlib.sha256(file.read_bytes()).hexdigest()}")
    place = os.environ.get("CUELEARN_DATA")
    if tier == "original" and place:
        for file in sorted(p for p in Path(place).rglob("*") if p.is_file()):
            stat = file.stat()
            parts.append(f"{file.relative_to(place).as_posix()} {stat.st_size} {stat.st_mtime_ns}")
    return _hash(*parts)


def _versions():
    found = {"python": ".".join(map(str, sys.version_info[:2]))}
    for package in _VERSIONED:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


class _Job(NamedTuple):
    """One chapter to be made."""

    chapter: str
    source: Path
    directory: Path
    parameters: dict
    made_from: dict

    @property
    def notebooks(self):
        return self.directory / "notebooks"

    @property
    def executed(self):
        return self.notebooks / f"{self.chapter}.ipynb"

    @property
    def stamp(self):
        return self.notebooks / f"{self.chapter}.json"

    def stale(self):
        """Why the chapter must be made, or an empty text."""
        try:
            stamp = json.loads(self.stamp.read_text(encoding="utf-8"))
            before, files = stamp["made_from"], stamp["files"]
        except (OSError, ValueError, KeyError, TypeError):
            return "not made yet"
        changed = [name for name in self.made_from if before.get(name) != self.made_from[name]]
        if changed:
            return f"changed: {', '.join(changed)}"
        missing = [file for file in files if not (self.directory / file).is_file()]
        return f"missing: {', '.join(missing[:3])}" if missing else ""


def _plan(root, profile, chapters, given, tier, jobs):
    plan = []
    for chapter in chapters:
        source = root / "notebooks" / f"{chapter}.ipynb"
        known = notebook_parameters(source)
        values = _check_parameters(source, given)
        own = {"profile": profile, "data_tier": tier, "n_jobs": jobs}
        values |= {name: value for name, value in own.items() if name in known}
        if tier != "bundled" and "data_tier" not in known:
            raise RunError(f"{chapter} has no parameter data_tier, so it has bundled data only")
        changed = {
            name: value
            for name, value in values.items()
            if name not in (*HOW, "profile") and value != known[name].default
        }
        variant = _variant(changed)
        directory = root / "figures" / profile
        directory = directory / "params" / variant if variant else directory
        if "figures_dir" in known:
            values["figures_dir"] = str(directory)
        made_from = {
            "notebook": _notebook_hash(source),
            "package": _package_hash(),
            "data": _data_hash(root, tier),
            "parameters": {"profile": profile, **changed},  # the defaults are the notebook's
            "versions": _versions(),
        }
        plan.append(_Job(chapter, source, directory, values, json.loads(json.dumps(made_from))))
    return plan


# --- carrying out ------------------------------------------------------------------------------------------------------------


class _Live:
    """What is going on, on a terminal as a bar, elsewhere as a line now and then."""

    QUIET_SECONDS = 30

    def __init__(self, chapter, relay):
        self.chapter, self.relay, self.start = chapter, relay, time.monotonic()
        self.bar, self.cell, self.n, self.total, self.section, self._said = None, 0, 0, 0, "", self.start
        self.terminal = sys.stderr.isatty()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def begin(self, cells):
        self.total = len(cells)
        if self.terminal:
            from tqdm import tqdm

            self.bar = tqdm(
                total=self.total,
                desc=self.chapter,
                leave=False,
                dynamic_ncols=True,
                bar_format="{desc} {bar:16} {n_fmt}/{total_fmt} cells, {elapsed}{postfix}",
            )
        else:
            print(f"{self.chapter}: {self.total} cells", flush=True)
        self._thread.start()

    def cell_start(self, cell):
        # Headings name the part of the notebook that is being executed.
        if cell["cell_type"] == "markdown":
            heading = re.search(r"^#+ +(.+)$", cell["source"], re.MULTILINE)
            self.section = heading.group(1).strip() if heading else self.section

    def cell_complete(self):
        self.n += 1
        if self.bar is not None:
            self.bar.update(1)

    def _watch(self):
        while not self._stop.wait(0.5):
            sweep = ""
            with contextlib.suppress(OSError, UnicodeDecodeError):
                sweep = self.relay.read_text(encoding="utf-8")
            said = " | ".join(filter(None, [self.section, sweep]))
            if self.bar is not None:
                self.bar.set_postfix_str(said, refresh=True)
            elif time.monotonic() - self._said > self.QUIET_SECONDS:
                self._said = time.monotonic()
                print(
                    f"{self.chapter}: cell {self.n + 1} of {self.total}, {said or '...'}, {self._said - self.start:.0f} s",
                    flush=True,
                )

    def end(self):
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2)
        if self.bar is not None:
            self.bar.close()


def _engine(live):
    """papermill's own engine, with its progress told to `live`."""
    from papermill.engines import NBClientEngine

    class Engine(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man, kernel_name, **kwargs):
            start, complete = nb_man.cell_start, nb_man.cell_complete

            def cell_start(cell, cell_index=None, **more):
                live.cell_start(cell)
                return start(cell, cell_index, **more)

            def cell_complete(cell, cell_index=None, **more):
                live.cell_complete()
                return complete(cell, cell_index, **more)

            nb_man.cell_start, nb_man.cell_complete = cell_start, cell_complete
            live.begin(nb_man.nb.cells)
            return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)

    return Engine


def _surroundings(root, jobs, scheduler):
    """Environment of the kernels: nothing depends on a home directory, and processes times threads stay within the cores."""
    cache = root / ".cache"
    settings = {
        "MPLCONFIGDIR": cache / "matplotlib",
        "IPYTHONDIR": cache / "ipython",
        "JUPYTER_CONFIG_DIR": cache / "jupyter" / "config",
        "JUPYTER_DATA_DIR": cache / "jupyter" / "data",
        "JUPYTER_RUNTIME_DIR": cache / "jupyter" / "runtime",
        "CUELEARN_CACHE": cache,
    }
    for name, place in settings.items():
        os.environ.setdefault(name, str(place))
        with contextlib.suppress(OSError):
            Path(os.environ[name]).mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
    os.environ["JUPYTER_PREFER_ENV_PATH"] = (
        "1"  # the kernel of this environment, whatever the user has registered elsewhere
    )
    os.environ["CUELEARN_RUN"] = "1"  # notebooks skip their sliders
    os.environ.pop("MPLBACKEND", None)  # the kernel then draws into the notebook
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = str(max(1, cores // jobs))
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = threads
    if scheduler:
        os.environ["CUELEARN_SCHEDULER"] = scheduler
    package_root = str(Path(cuelearn.__file__).resolve().parents[1])
    paths = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and p != package_root]
    os.environ["PYTHONPATH"] = os.pathsep.join([package_root, *paths])


def _plain_text(text):
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)


def _execute(job):
    """Make one chapter. Returns an empty text, or why it failed."""
    from cuelearn.book.protocols import atomic_write, clean_temporaries

    job.notebooks.mkdir(parents=True, exist_ok=True)
    for directory in (job.directory, job.notebooks):
        clean_temporaries(directory)
    for file in job.notebooks.glob(f".{job.chapter}.running-*"):
        file.unlink(missing_ok=True)  # of a killed run: the lock is ours
    job.stamp.unlink(missing_ok=True)
    failed, log = job.notebooks / f"{job.chapter}.failed.ipynb", job.notebooks / f"{job.chapter}.log"
    partial = job.notebooks / f".{job.chapter}.running-{os.getpid()}.ipynb"
    relay = job.notebooks / f".{job.chapter}.running-{os.getpid()}.progress"
    os.environ["CUELEARN_PROGRESS"] = str(relay)
    live = _Live(job.chapter, relay)
    began, start = time.time(), time.monotonic()
    trouble = ""
    try:
        import logging

        import papermill
        from papermill.engines import papermill_engines

        logging.getLogger("papermill").setLevel(logging.ERROR)
        papermill_engines.register("cuelearn", _engine(live))
        papermill.execute_notebook(
            str(job.source),
            str(partial),
            parameters=job.parameters,
            engine_name="cuelearn",
            kernel_name="python3",
            progress_bar=False,
            start_timeout=120,
            cwd=str(job.source.parent),
            extra_arguments=["--IPKernelApp.log_level=40"],
        )
    except KeyboardInterrupt:
        partial.unlink(missing_ok=True)
        raise
    except Exception as error:
        trouble = _plain_text(
            "\n".join(error.traceback)
            if hasattr(error, "ename")
            else "".join(traceback.format_exception(error))
        )
    finally:
        live.end()
        relay.unlink(missing_ok=True)
    if trouble:
        atomic_write(
            log,
            f"{job.chapter} failed after {time.monotonic() - start:.0f} s\n{json.dumps(job.parameters)}\n\n{trouble}\n",
        )
        if partial.exists():
            os.replace(partial, failed)
        return trouble
    _remove_orphans(job, began)
    os.replace(partial, job.executed)
    failed.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    files = [
        f"notebooks/{job.executed.name}",
        *sorted(file for item in _items(job) for file in [*item["files"], f"{item['name']}.json"]),
    ]
    stamp = {"made_from": job.made_from, "files": files, "seconds": round(time.monotonic() - start, 1)}
    atomic_write(job.stamp, json.dumps(stamp, indent=1) + "\n")
    return ""


def _items(job):
    from cuelearn.book.figures import saved_items

    return [item for item in saved_items(job.directory) if item["chapter"] == job.chapter]


def _remove_orphans(job, began):
    """Remove figures of this chapter that the notebook, now finished, did not make again: it no longer has them."""
    for sidecar in job.directory.glob("*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            record = json.loads(sidecar.read_text(encoding="utf-8"))
            if record["chapter"] == job.chapter and sidecar.stat().st_mtime < began - 2:
                sidecar.unlink()
                for file in record["files"]:
                    (job.directory / file).unlink(missing_ok=True)


# --- what was made -----------------------------------------------------------------------------------------------------------


def _summary_rows(directory, chapters):
    """One row for each figure or table made, and one for each row of the catalogue that is not."""
    from cuelearn.book.figures import catalogue, saved_items

    rows, items = [], saved_items(directory)
    for chapter in chapters:
        mine = [item for item in items if item["chapter"] == chapter]
        for item in mine:
            kinds = sorted({file.rsplit(".", 1)[1] for file in item["files"]})
            rows.append(
                {
                    "figure": item["name"],
                    "files": " ".join(kinds),
                    "data": item["our_data"],
                    "seconds": item["seconds"],
                    "status": "made",
                }
            )
        done = {item["id"] for item in mine}
        rows += [
            {"figure": figure, "files": "", "data": "", "seconds": None, "status": "not made yet"}
            for figure in catalogue(chapter).index
            if figure not in done
        ]
    return rows


def _verdicts(directory, chapters):
    from cuelearn.book.claims import read_verdicts

    table = read_verdicts(directory)
    return table[table["chapter"].isin(chapters)]


def _write_overviews(directory, chapters):
    """summary.md and the gallery of one directory."""
    import pandas as pd

    from cuelearn.book.claims import verdict_table
    from cuelearn.book.figures import markdown_table
    from cuelearn.book.protocols import atomic_write

    parts = [
        f"# What was made: {directory.name}\n",
        markdown_table(pd.DataFrame(_summary_rows(directory, chapters))),
    ]
    verdicts = _verdicts(directory, chapters)
    if len(verdicts):
        parts += ["\n## Claims\n", verdict_table(verdicts)]
    atomic_write(directory / "summary.md", "\n".join(parts))
    atomic_write(directory / "README.md", gallery(directory, directory))


def gallery(directory, home):
    """Markdown that shows the figures, tables and verdicts of `directory`, with links relative to `home`."""
    from cuelearn.book.claims import read_verdicts, verdict_table
    from cuelearn.book.figures import saved_items

    prefix = os.path.relpath(directory, home).replace(os.sep, "/")
    prefix = "" if prefix == "." else prefix + "/"
    items = saved_items(directory)
    lines = [
        f"# Figures and tables: {'reference results' if prefix else directory.name}",
        "",
        "Written by `make gallery` from the files beside it."
        if prefix
        else "Written by the runner from the files beside it.",
        "",
    ]
    for chapter in dict.fromkeys(item["chapter"] for item in items):
        lines += [f"## {chapter}", ""]
        for item in (item for item in items if item["chapter"] == chapter):
            lines += [
                f"### {item['name']}",
                "",
                f"{item['source']}: {item['shows']}.",
                f"Data: {item['our_data']} (the paper's: {item['papers_data']}). Profile {item['profile']}.",
            ]
            if item["note"]:
                lines.append(item["note"])
            lines.append("")
            if item["kind"] == "figure":
                lines += [f"![{item['name']}]({prefix}{item['name']}.png)", ""]
            else:
                text = (directory / f"{item['name']}.md").read_text(encoding="utf-8")
                lines += [*(line for line in text.split("\n") if line.startswith("|")), ""]
            numbers = [
                f"[{file}]({prefix}{file})" for file in item["files"] if file.endswith((".csv", ".svg"))
            ]
            lines += [" ".join([*numbers, f"[provenance]({prefix}{item['name']}.json)"]), ""]
    verdicts = read_verdicts(directory)
    if len(verdicts):
        lines += ["## Claims and verdicts", "", verdict_table(verdicts)]
    return "\n".join(lines).rstrip() + "\n"


def _print_summary(directory, chapters, status, root):
    rows = _summary_rows(directory, chapters)
    made = [row for row in rows if row["status"] == "made"]
    if made:
        widths = {
            key: max(len(key), *(len(str(row[key])) for row in made))
            for key in ("figure", "files", "data", "seconds")
        }
        print(
            "  ".join(key.rjust(w) if key == "seconds" else key.ljust(w) for key, w in widths.items())
            + "  status"
        )
        for row in made:
            print(
                "  ".join(
                    str(row[key]).rjust(w) if key == "seconds" else str(row[key]).ljust(w)
                    for key, w in widths.items()
                )
                + f"  {row['status']}"
            )
    missing = [row["figure"] for row in rows if row["status"] != "made"]
    if missing:
        print(f"not made yet: {', '.join(missing)}")
    verdicts = _verdicts(directory, chapters)
    for row in verdicts[verdicts["verdict"] != "open"].itertuples():
        number = "" if row.number != row.number else f" {row.number:.4g}"
        spread = "" if row.low != row.low else f" [{row.low:.4g}, {row.high:.4g}]"
        print(
            f"claim {row.id}: {row.verdict}{number}{spread}{' ' + row.measure if row.measure and number else ''}"
            f"{' on ' + row.data if row.data else ''}"
        )
    unjudged = list(verdicts[verdicts["verdict"] == "open"]["id"])
    if unjudged:
        print(f"claims open: {', '.join(unjudged)}")
    for chapter, state in status.items():
        print(f"{chapter}: {state}")
    print(f"figures and summary.md are in {os.path.relpath(directory, root)}")


# --- the book ----------------------------------------------------------------------------------------------------------------

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>cuelearn: {profile}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<script>window.MathJax = {{tex: {{inlineMath: [["$", "$"], ["\\\\(", "\\\\)"]]}}}};</script>
<script async src="https://cdn.jsdelivr.net/npm/mathjax@3/es5/tex-mml-chtml.js"></script>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }}
pre {{ background: #f6f6f6; padding: .6rem; overflow-x: auto; font-size: 13px; line-height: 1.35; }}
table {{ border-collapse: collapse; font-size: 14px; display: block; overflow-x: auto; }}
td, th {{ border-bottom: 1px solid #ddd; padding: .25rem .6rem; text-align: left; vertical-align: top; }}
img, svg {{ max-width: 100%; height: auto; }}
nav {{ border-bottom: 1px solid #ddd; padding-bottom: 1rem; }}
.jp-InputPrompt, .jp-OutputPrompt, .prompt, .anchor-link {{ display: none; }}
{highlighting}
</style></head><body>
<h1>Learning from many cues</h1>
<p>Profile {profile}. Executed chapters, then all figures and tables, then the verdicts on the papers' claims.</p>
<nav><ul>{contents}</ul></nav>
{body}
</body></html>
"""


def report(directory, chapters):
    """One HTML file with the executed chapters, the figures and tables, and the verdicts. Returns its path."""
    import base64

    import nbformat
    from nbconvert import HTMLExporter
    from nbconvert.filters.markdown_mistune import markdown2html_mistune
    from pygments.formatters import HtmlFormatter

    from cuelearn.book.protocols import atomic_write

    contents, body = [], []
    for chapter in chapters:
        executed = directory / "notebooks" / f"{chapter}.ipynb"
        if executed.is_file():
            exporter = HTMLExporter(template_name="basic", embed_images=True)
            html, _ = exporter.from_notebook_node(
                nbformat.read(executed, as_version=4), {"metadata": {"path": str(executed.parent)}}
            )
            contents.append(f'<li><a href="#chapter-{chapter}">chapter {chapter}</a></li>')
            body.append(f'<section id="chapter-{chapter}">{html}</section>')
    if not body:
        raise RunError(f"there is no executed chapter in {directory}: run make figures first")

    def embedded(match):
        file = directory / match.group(2)
        kind = "svg+xml" if file.suffix == ".svg" else "png"
        return (
            f'{match.group(1)}data:image/{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"'
            if file.is_file()
            else match.group(0)
        )

    figures = markdown2html_mistune(gallery(directory, directory))
    figures = re.sub(r'(<img src=")([^":]+)"', embedded, figures)
    contents.append('<li><a href="#gallery">all figures, tables and verdicts</a></li>')
    body.append(f'<section id="gallery">{figures}</section>')
    page = _PAGE.format(
        profile=directory.name,
        highlighting=HtmlFormatter().get_style_defs(".highlight"),
        contents="".join(contents),
        body="\n".join(body),
    )
    return atomic_write(directory / "report.html", page)


def reference(root, profile="full"):
    """Copy the results of a profile (figures, tables, verdicts; no notebooks, no file above 2 MB) to figures/reference."""
    from cuelearn.book.figures import saved_items
    from cuelearn.book.protocols import atomic_write

    source, target = root / "figures" / profile, root / "figures" / "reference"
    items = saved_items(source)
    if not items:
        raise RunError(
            f"there is nothing to copy: {source} has no finished figure. Run make figures PROFILE={profile} first"
        )
    names = [file for item in items for file in [*item["files"], f"{item['name']}.json"]]
    names += [name for name in ("claims.csv", "claims.md") if (source / name).is_file()]
    left = [name for name in names if (source / name).stat().st_size > 2_000_000]
    for old in target.glob("*"):
        if old.is_file() and old.name not in names:
            old.unlink()
    for name in names:
        if name not in left:
            atomic_write(target / name, (source / name).read_bytes())
    print(
        f"{len(names) - len(left)} files copied to {os.path.relpath(target, root)}"
        + (f"; too large: {', '.join(left)}" if left else "")
    )
    write_reference_gallery(root)


def write_reference_gallery(root):
    """Write figures/README.md from figures/reference."""
    from cuelearn.book.protocols import atomic_write

    directory = root / "figures" / "reference"
    if not directory.is_dir():
        raise RunError(
            f"there are no reference results in {directory}: make reference copies them from the full profile"
        )
    print(
        f"written: {os.path.relpath(atomic_write(root / 'figures' / 'README.md', gallery(directory, root / 'figures')), root)}"
    )


def list_data(root):
    """Print the data files that are there."""
    for title, place in (("bundled", root / "data"), ("original", os.environ.get("CUELEARN_DATA"))):
        if not place or not Path(place).is_dir():
            print(
                f"{title}: none"
                + (" (set CUELEARN_DATA to the directory that holds them)" if title == "original" else "")
            )
            continue
        print(f"{title}: {os.path.relpath(place, root)}")
        for file in sorted(p for p in Path(place).iterdir() if not p.name.startswith((".", "__"))):
            size = (
                sum(p.stat().st_size for p in file.rglob("*") if p.is_file())
                if file.is_dir()
                else file.stat().st_size
            )
            print(f"  {file.name + ('/' if file.is_dir() else ''):40s} {size / 1e6:8.2f} MB")


# --- command line ------------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise RunError(message)


def _arguments(argv):
    parser = _Parser(
        prog="python -m cuelearn.book.run", description=__doc__.split("\n\n")[0], allow_abbrev=False
    )
    parser.add_argument("--profile", default="quick", help=f"one of {', '.join(PROFILES)} (default: quick)")
    parser.add_argument(
        "--chapter", action="extend", nargs="+", default=[], help="chapters to make (default: all that exist)"
    )
    parser.add_argument(
        "-p",
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change a parameter of the notebook; results go to figures/PROFILE/params/NAME=VALUE",
    )
    parser.add_argument(
        "--data", default="bundled", help=f"one of {', '.join(DATA_TIERS)} (default: bundled)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes of a sweep (default: 1)")
    parser.add_argument("--scheduler", help="address of a Dask scheduler for the sweeps, tcp://host:port")
    parser.add_argument("--force", action="store_true", help="make chapters even if nothing changed")
    parser.add_argument("--list", action="store_true", help="list chapters, their state and their parameters")
    parser.add_argument("--list-data", action="store_true", help="list the data files that are there")
    parser.add_argument(
        "--report", action="store_true", help="write figures/PROFILE/report.html from what was made"
    )
    parser.add_argument(
        "--reference", action="store_true", help="copy results of the profile to figures/reference"
    )
    parser.add_argument(
        "--gallery", action="store_true", help="write figures/README.md from figures/reference"
    )
    parser.add_argument(
        "--root", type=Path, default=Path(cuelearn.__file__).resolve().parents[1], help="checkout to work in"
    )
    options = parser.parse_args(argv)
    options.root = options.root.resolve()
    for value, names, what in (
        (options.profile, PROFILES, "profile"),
        (options.data, DATA_TIERS, "data tier"),
    ):
        if value not in names:
            raise RunError(
                f"there is no {what} {value!r}.{_near(value, names)} There are: {', '.join(names)}"
            )
    if options.jobs < 1:
        raise RunError(f"--jobs must be at least 1, got {options.jobs}")
    for chapter in options.chapter:
        if chapter not in CHAPTERS:
            raise RunError(
                f"there is no chapter {chapter!r}.{_near(chapter, CHAPTERS)} There are: {', '.join(CHAPTERS)}"
            )
    return options


def main(argv=None):
    """Entry point. Returns the exit status: 0, 1 if a chapter failed, 2 if the call was wrong."""
    try:
        return _main(_arguments(argv))
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted: started again, it goes on with what is not finished", file=sys.stderr)
        return 130


def _main(options):
    root = options.root
    if options.list_data:
        list_data(root)
        return 0
    if options.reference or options.gallery:
        reference(root, options.profile) if options.reference else write_reference_gallery(root)
        return 0
    existing = [chapter for chapter in CHAPTERS if (root / "notebooks" / f"{chapter}.ipynb").is_file()]
    absent = [chapter for chapter in options.chapter if chapter not in existing]
    if absent:
        raise RunError(
            f"not there yet: {', '.join(absent)}. Chapters that exist: {', '.join(existing) or 'none'}"
        )
    chapters = [chapter for chapter in existing if not options.chapter or chapter in options.chapter]
    plan = _plan(root, options.profile, chapters, options.parameter, options.data, options.jobs)
    if options.list:
        for job in plan:
            print(f"{job.chapter}: {job.stale() or 'up to date'}")
            for name, parameter in notebook_parameters(job.source).items():
                print(
                    f"    {name} = {parameter.default!r}"
                    + (f"  # {parameter.comment}" if parameter.comment else "")
                )
        for chapter in CHAPTERS:
            if chapter not in existing:
                print(f"{chapter}: not there yet")
        return 0
    if options.report:
        for directory in dict.fromkeys(job.directory for job in plan):
            print(f"written: {os.path.relpath(report(directory, chapters), root)}")
        return 0
    if not plan:
        print("there is no chapter to make")
        return 0
    return _make(plan, options)


def _make(plan, options):
    root, status, failures = options.root, {}, 0
    if not options.force and not any(job.stale() for job in plan):
        places = ", ".join(dict.fromkeys(os.path.relpath(job.directory, root) for job in plan))
        print(f"up to date: {', '.join(job.chapter for job in plan)} in {places}")
        return 0

    from cuelearn.book.protocols import file_lock

    _surroundings(root, options.jobs, options.scheduler)
    for job in plan:
        waiting = lambda chapter=job.chapter: print(
            f"{chapter}: another run is making it; waiting", flush=True
        )  # noqa: E731
        with file_lock(job.notebooks / f".{job.chapter}.lock", waiting):
            why = job.stale()
            if not why and not options.force:
                status[job.chapter] = "up to date"
                continue
            print(f"{job.chapter}: making it, profile {options.profile} ({why or 'forced'})", flush=True)
            start = time.monotonic()
            trouble = _execute(job)
            took = time.monotonic() - start
            if trouble:
                failures += 1
                status[job.chapter] = f"FAILED after {took:.0f} s"
                log = os.path.relpath(job.notebooks / f"{job.chapter}.log", root)
                lines = trouble.rstrip().split("\n")
                print(
                    f"\n{job.chapter} failed; the end of {log}:\n",
                    *(f"    {line}" for line in lines[-25:]),
                    "",
                    sep="\n",
                    file=sys.stderr,
                    flush=True,
                )
            else:
                status[job.chapter] = f"made in {took:.0f} s"
    for directory in dict.fromkeys(job.directory for job in plan):
        mine = [job.chapter for job in plan if job.directory == directory]
        with file_lock(directory / ".overview.lock"):
            # the overviews show all chapters that are there, the printed summary those of this call
            everything = [
                c for c in CHAPTERS if c in mine or (directory / "notebooks" / f"{c}.json").is_file()
            ]
            _write_overviews(directory, everything)
        _print_summary(directory, mine, {c: s for c, s in status.items() if c in mine}, root)
    return 1 if failures else 0


if __name__ == "__main__":
    # So that the module has one name, also for what it pickles and registers.
    from cuelearn.book.run import main as _entry

    sys.exit(_entry())
