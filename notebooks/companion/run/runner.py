"""The runner: executes the chapters' notebooks and says what came out.

``make figures``, which is ``python -m companion.run.runner``, executes ``notebooks/<chapter>.ipynb`` and
writes, under ``figures/<profile>/`` (``params/<name=value,...>/`` there for other parameters than the
published ones), figures, tables, ``claims.csv``, ``README.md`` and ``notebooks/<chapter>.ipynb`` (only if
all of it succeeded) with ``.json`` (what it was made from: if that is the same, it is not run again), or
``.failed.ipynb`` and ``.log``. A killed run leaves no half-written file; started again, it goes on.
"""

import argparse
import ast
import contextlib
import json
import logging
import os
import re
import sys
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path
from typing import NamedTuple

import cuelearn
from companion import CHECKOUT, FOLDER
from companion.run.records import (
    DEFAULTS,
    NOT_PARAMETERS,
    PROFILES,
    catalogue,
    cpu_seconds,
    expected_seconds,
    files_of_items,
    fingerprint,
    longest_start,
    made_from,
    near,
    read_items,
    read_verdicts,
    results_directory,
    row_of,
    saved_items,
    short,
)
from companion.run.schedule import WORKER, Task, run, serve
from companion.run.sweep import clean_temporaries, connect, file_lock
from cuelearn.core.storage import atomic_write
from cuelearn.expect import require

CHAPTERS = ("omcl", "mkl", "multilabel", "mms", "mktl", "oks")
#: A chapter of the thesis with a second notebook.
WITH = {"mkl": ("multilabel",)}
#: Parameters that the runner sets itself, and the option for each.
OWN = {"profile": "--profile", "data_tier": "--data", "figures_dir": "--root", "n_jobs": "--jobs"}
#: Characters of what a failed kernel wrote to stderr that its log keeps.
MOST_PRINTED = 10_000


class RunError(Exception):
    """Something that the caller can mend: a wrong name or value. Its text is the whole message."""


# --- parameters ---------------------------------------------------------------------------------------------


def notebook_parameters(path):
    """The parameters of a notebook, as papermill reads them: name -> its `default`, its comment `help`.

    A default that is no literal is None. RunError if the notebook has no cell tagged ``parameters``.
    """
    import papermill

    logging.getLogger("papermill").setLevel(logging.ERROR)
    try:
        parameters = papermill.inspect_notebook(str(path))
    except Exception as error:
        raise RunError(f"{path} is not a notebook: {error}") from None
    if not parameters:
        raise RunError(f"{path} has no cell tagged parameters")
    return {name: {**known, "default": _literal(known["default"])} for name, known in parameters.items()}


def _literal(text, otherwise=None):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return otherwise


def check_parameters(path, given):
    """Values for ``-p`` settings of one notebook; every wrong name is an error that lists the right ones."""
    known = notebook_parameters(path)
    settable = [name for name in known if name not in OWN]
    values = {}
    for item in given:
        name, equals, text = (part.strip() for part in item.partition("="))
        if not equals or not name.isidentifier():
            raise RunError(f"-p takes name=value, got {item!r}; {path.stem} has: {', '.join(settable)}")
        if name in OWN:
            raise RunError(f"parameter {name} is set by {OWN[name]}, not by -p")
        if name not in known:
            there = ", ".join(f"{n} (default {known[n]['default']!r})" for n in settable)
            message = f"{path.stem} has no parameter {name!r}{near(name, settable)}"
            raise RunError(f"{message}. Its parameters are: {there}")
        values[name] = _value(name, text, known[name])
    return values


def _value(name, text, parameter):
    """The text of ``-p name=text`` as a value of the type of the parameter's default."""
    value = _literal(text, text)
    default = parameter["default"]
    if isinstance(default, str):
        return value if isinstance(value, str) else text
    if isinstance(default, float) and type(value) is int:
        return float(value)
    if default is None or type(value) is type(default) or (value == "auto" and "auto" in parameter["help"]):
        return value
    kind = type(default).__name__
    raise RunError(f"parameter {name} must be of type {kind} like its default {default!r}, got {text!r}")


# --- staleness ----------------------------------------------------------------------------------------------


class Job(NamedTuple):
    """One chapter to be made."""

    chapter: str
    source: Path
    directory: Path
    parameters: dict
    made_from: dict

    def file(self, end, prefix=""):
        """A file of this chapter beside the executed notebook."""
        return self.directory / "notebooks" / f"{prefix}{self.chapter}{end}"

    def stale(self):
        """Why the chapter must be made, or an empty text."""
        try:
            stamp = json.loads(self.file(".json").read_text(encoding="utf-8"))
            before, files = stamp["made_from"], stamp["files"]
        except (OSError, ValueError, KeyError, TypeError):
            return "not made yet"
        changed = [name for name in self.made_from if before.get(name) != self.made_from[name]]
        if changed:
            return f"changed: {', '.join(changed)}"
        missing = [file for file in files if not (self.directory / file).is_file()]
        if missing:
            return f"missing: {', '.join(missing[:3])}"
        if self.shows_reference():
            return ""
        if stamp.get("verdicts") != self.verdicts():
            return "verdicts of another run"
        others = [item["name"] for item in self.items() if item.get("made_from") != self.identity()]
        return f"made by another run: {', '.join(others[:3])}" if others else ""

    def verdicts(self):
        """The verdicts of the chapter as they are written now: claim -> verdict."""
        table = read_verdicts(self.directory)
        return table[table["chapter"] == self.chapter].set_index("id")["verdict"].to_dict()

    def items(self):
        """Records of the chapter's figures and tables."""
        return [item for item in read_items(self.directory) if item["chapter"] == self.chapter]

    def shows_reference(self):
        """Whether its notebook computes nothing and shows the committed results."""
        return self.made_from["parameters"]["profile"] == "reference"

    def identity(self):
        """What every figure of this job names as what it was made from: all but the notebook's text."""
        return short({name: part for name, part in self.made_from.items() if name != "notebook"})


def _plan(options, chapters):
    """A `Job` for each chapter."""
    plan = []
    for chapter in chapters:
        source = options.root / "notebooks" / f"{chapter}.ipynb"
        defaults = {name: known["default"] for name, known in notebook_parameters(source).items()}
        values = check_parameters(source, options.parameter)
        own = {"profile": options.profile, "data_tier": options.data, "n_jobs": options.jobs}
        values |= {name: value for name, value in own.items() if name in defaults}
        published = defaults | DEFAULTS[chapter]  # the notebook itself may have been edited
        changed = {n: v for n, v in (defaults | values).items() if v != published[n]}
        changed = {name: value for name, value in changed.items() if name not in NOT_PARAMETERS}
        directory = results_directory(options.root / "figures", options.profile, changed)
        if "figures_dir" in defaults:
            values["figures_dir"] = str(directory)
        parts = made_from(options.profile, changed, options.data, options.svg, options.root)
        cells = json.loads(source.read_text(encoding="utf-8"))["cells"]  # without outputs and counts
        cells = [[cell["cell_type"], "".join(cell["source"]), cell["metadata"].get("tags")] for cell in cells]
        parts["notebook"] = fingerprint(cells)
        if options.profile == "reference":
            parts["reference"] = [item["commit"] for item in read_items(directory)]
        plan.append(Job(chapter, source, directory, values, parts))
    return plan


# --- one chapter --------------------------------------------------------------------------------------------


def _surroundings(options):
    """Environment of the kernels: no home directory is needed; processes times threads fit the cores."""
    places = {"MPLCONFIGDIR": "matplotlib", "IPYTHONDIR": "ipython", "CUELEARN_CACHE": ""}
    places |= {f"JUPYTER_{kind.upper()}_DIR": f"jupyter/{kind}" for kind in ("config", "data", "runtime")}
    for name, place in places.items():
        os.environ.setdefault(name, str(options.root / ".cache" / place))
        with contextlib.suppress(OSError):
            Path(os.environ[name]).mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("JUPYTER_PLATFORM_DIRS", "1")
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # the kernel of this environment, whatever else is registered
    os.environ["CUELEARN_RUN"] = "1"  # sliders are stored as frames
    os.environ.pop("MPLBACKEND", None)  # the kernel then draws into the notebook
    if options.svg:
        os.environ["CUELEARN_SVG"] = "1"
    if options.scheduler:
        os.environ["CUELEARN_SCHEDULER"] = options.scheduler
    if WORKER not in os.environ:  # else as the run has set them
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
            os.environ[name] = str(max(1, cores // options.jobs))
    package = str(Path(cuelearn.__file__).resolve().parents[1])
    paths = [package, str(FOLDER.parent), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))


def _kernels(stderr):
    """Class of managers whose kernels write to the file `stderr`, not to the terminal of the runner.

    An interrupted kernel has much to say there, after the runner's own last line.
    """
    from jupyter_client import AsyncKernelManager

    class Kernels(AsyncKernelManager):
        async def _async_launch_kernel(self, kernel_cmd, **options):
            await super()._async_launch_kernel(kernel_cmd, **{**options, "stderr": stderr})

    return Kernels


def _run_notebook(job, partial):
    """Execute the notebook of a chapter into `partial`. Returns an empty text, or why it failed."""
    import papermill

    os.environ["CUELEARN_MADE_FROM"] = job.identity()  # for the notebook's kernel
    options = {
        "kernel_name": "python3",
        "progress_bar": False,
        "start_timeout": 120,
        "cwd": str(job.source.parent),
        "extra_arguments": ["--IPKernelApp.log_level=40"],
        "autosave_cell_every": 0,
    }
    # A cell that Ctrl-C left waiting would say, after the runner's last line, that its kernel died.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    with tempfile.TemporaryFile("w+", errors="replace") as stderr:
        options["kernel_manager_class"] = _kernels(stderr)
        try:
            papermill.execute_notebook(str(job.source), str(partial), job.parameters, **options)
        except KeyboardInterrupt:
            partial.unlink(missing_ok=True)
            raise
        except Exception:
            stderr.seek(0)
            trouble = f"{stderr.read()[-MOST_PRINTED:]}\n{traceback.format_exc()}".lstrip()
            return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", trouble)  # without colours
    return ""


def _execute(job):
    """Make one chapter. Returns an empty text, or why it failed."""
    partial = job.file(".running.ipynb", ".")
    partial.parent.mkdir(parents=True, exist_ok=True)
    for directory in (job.directory, partial.parent):
        clean_temporaries(directory)
    for file in (partial, job.file(".json")):
        file.unlink(missing_ok=True)  # of a killed run: the lock is ours
    began, start = time.time(), cpu_seconds()
    trouble = _run_notebook(job, partial)
    if trouble:
        message = f"{job.chapter} failed\n{json.dumps(job.parameters)}\n\n{trouble}\n"
        atomic_write(job.file(".log"), message)
        if partial.exists():
            os.replace(partial, job.file(".failed.ipynb"))
        return trouble
    stamp = {"made_from": job.made_from, "files": [f"notebooks/{job.chapter}.ipynb"]}
    if not job.shows_reference():
        _remove_orphans(job, began)
        stamp["files"] += sorted(files_of_items(job.items()))
        stamp["verdicts"] = job.verdicts()
    os.replace(partial, job.file(".ipynb"))
    for end in (".failed.ipynb", ".log"):
        job.file(end).unlink(missing_ok=True)
    stamp["notebook_seconds"] = round(cpu_seconds() - start, 2)
    stamp["seconds"] = round(stamp["notebook_seconds"] + sum(item["seconds"] for item in job.items()), 2)
    atomic_write(job.file(".json"), json.dumps(stamp, indent=1) + "\n")
    return ""


def _remove_orphans(job, began):
    """Remove figures of this chapter that the notebook, now finished, did not show."""
    kept, gone = set(), set()
    for item in read_items(job.directory):
        sidecar = job.directory / f"{item['name']}.json"
        old = item["chapter"] == job.chapter and sidecar.stat().st_mtime < began - 2
        (gone if old else kept).update(item["files"])
        if old:
            sidecar.unlink()
    for file in gone - kept:
        (job.directory / file).unlink(missing_ok=True)


# --- all of them --------------------------------------------------------------------------------------------


def shown_figures(job):
    """Names of the figures and tables that a notebook shows, in its order."""
    cells = json.loads(job.source.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return list(dict.fromkeys(re.findall(r'\bshow\("([^"]+)"\)', code)))


def not_current(job, names):
    """Those of some figures and tables that this job has not made yet."""
    made_from = {}
    for item in saved_items(job.directory):
        made_from.setdefault(longest_start(item["name"], names), set()).add(item.get("made_from"))
    return [name for name in names if made_from.get(name) != {job.identity()}]


def _tasks(job, names, options, notebook=False):
    """What is to be made of a chapter: figures and tables that are not current, and its notebook."""
    took = expected_seconds(options.root, options.profile, names)
    tasks = [Task(job.chapter, name, took.get(name)) for name in not_current(job, names)]
    if notebook:
        tasks.append(Task(job.chapter, "", took.get(job.chapter)))
    return tasks


def _chapter(job, options):
    from companion.run.registry import Chapter

    parameters = {name: value for name, value in job.parameters.items() if name in DEFAULTS[job.chapter]}
    return Chapter(job.chapter, options.profile, job.directory, options.jobs, **parameters)


def _serve(plan, options):
    """Make figures and notebooks as another process asks for them."""
    import matplotlib

    matplotlib.use("Agg")  # of this process; a notebook's kernel draws into the notebook
    jobs = {job.chapter: job for job in plan}
    chapters = {}

    def make(chapter, figure):
        job = jobs[chapter]
        if not figure:
            return {"file": _shown_path(job.file(".ipynb"), options), "trouble": _execute(job)}
        if chapter not in chapters:
            chapters[chapter] = _chapter(job, options)
        try:
            chapters[chapter].make(figure)
            file = chapters[chapter].file(figure)
            place = _shown_path(file, options) if file else f"{figure} is of other data than {options.data}"
            return {"file": place, "title": chapters[chapter].title(figure), "trouble": ""}
        except Exception:
            return {"trouble": traceback.format_exc()}

    serve(make)


def _shown_path(path, options):
    return os.path.relpath(path, options.root)


def _make_tasks(tasks, plan, options):
    """Make tasks in processes of their own. Returns what became of each chapter whose notebook was executed,
    and whether a task failed."""
    jobs = {job.chapter: job for job in plan}
    seconds = dict.fromkeys(jobs, 0.0)
    status = {}
    failed = []

    def finished(task, answer):
        """The line that says so."""
        seconds[task.chapter] += answer["seconds"]
        trouble = answer["trouble"].rstrip().split("\n")
        spent = f"({answer['seconds']:.0f} CPU s)"
        if answer["trouble"]:
            failed.append(task)
            end = "\n".join(f"    {line}" for line in trouble[-25:])
            log = jobs[task.chapter].file(".log")
            where = task.figure or f"the end of {_shown_path(log, options)}"
            print(f"\n{task} failed; {where}:\n\n{end}\n", file=sys.stderr)
        if task.figure and answer["trouble"]:
            return f"{task.figure} FAILED: {trouble[-1]} {spent}"
        if task.figure:
            return " ".join([f"{answer['file']}:", answer["title"], spent])
        word = "FAILED after" if answer["trouble"] else "made in"
        status[task.chapter] = f"{word} {seconds[task.chapter]:.0f} CPU s"
        return f"chapter {task.chapter} {status[task.chapter]}"

    n_workers = max(1, min(options.jobs, len(tasks)))
    command = [sys.executable, "-m", "companion.run.runner", *options.argv]
    run(tasks, command, n_workers, max(1, options.jobs // n_workers), finished)
    return status, bool(failed)


def _overviews_are_written(plan):
    """Whether the README.md of each folder is not older than its chapters: a killed run comes to it last."""
    for job in plan:
        overview = job.directory / "README.md"
        written = overview.stat().st_mtime if overview.is_file() else 0.0
        if written < job.file(".json").stat().st_mtime and not job.shows_reference():
            return False
    return True


@contextlib.contextmanager
def _locked(plan):
    """Hold the chapters of a plan: no other run makes them."""
    with contextlib.ExitStack() as stack:
        for job in plan:
            waiting = partial(print, f"{job.chapter}: another run is making it; waiting", flush=True)
            stack.enter_context(file_lock(job.file(".lock", "."), waiting))
        yield


def _connect(options):
    """Try the scheduler before anything starts."""
    scheduler = options.scheduler or os.environ.get("CUELEARN_SCHEDULER")
    if scheduler:
        connect(scheduler).close()


def _make(plan, options):
    """Make what is stale. Returns whether a chapter failed."""
    stale = options.force or any(job.stale() for job in plan)
    if not stale and _overviews_are_written(plan):
        places = ", ".join(dict.fromkeys(os.path.relpath(job.directory, options.root) for job in plan))
        print(f"up to date: {', '.join(job.chapter for job in plan)} in {places}")
        return False
    _connect(options)
    _surroundings(options)
    with _locked(plan):
        tasks = []
        for job in plan:
            why = job.stale() or ("forced" if options.force else "")
            if why:
                names = [] if job.shows_reference() else shown_figures(job)
                tasks += _tasks(job, names, options, notebook=True)
                print(f"{job.chapter}: making it, profile {options.profile} ({why})", flush=True)
        status, failed = _make_tasks(tasks, plan, options)
    if plan[0].shows_reference():
        return failed
    from companion.run.gallery import (
        gallery,
        print_summary,  # matplotlib: now it has a place
    )

    for directory in dict.fromkeys(job.directory for job in plan):
        chapters = [job.chapter for job in plan if job.directory == directory]
        states = {chapter: status.get(chapter, "up to date") for chapter in chapters}
        with file_lock(directory / ".overview.lock"):
            atomic_write(directory / "README.md", gallery(directory, directory))
        print_summary(directory, states, options.root)
    return failed


def _chapters_of_figures(options):
    """The chapters of single figures or tables that are requested by their names."""
    rows = {name: row_of(name) for name in options.figure}
    unknown = [name for name, row in rows.items() if row is None]
    if unknown:
        raise RunError(f"there is no figure {unknown[0]!r}{near(unknown[0], catalogue().index)}")
    if options.profile == "reference":
        raise RunError("figures of the reference are committed; make them with another PROFILE")
    return list(dict.fromkeys(catalogue().loc[list(rows.values()), "chapter"]))


def _make_figures(chapters, options):
    """Make the figures or tables that are requested by their names. Returns whether one failed."""
    _connect(options)
    _surroundings(options)
    from companion.run.registry import entries

    plan = _plan(options, chapters)
    with _locked(plan):
        tasks = []
        for job in plan:
            names = [name for name in entries(job.chapter) if {name, row_of(name)} & set(options.figure)]
            tasks += _tasks(job, names, options)
            for name in set(names) - {task.figure for task in tasks}:
                print(f"{name}: up to date, in {_shown_path(job.directory, options)}", flush=True)
        _, failed = _make_tasks(tasks, plan, options)
        for job in plan:
            _chapter(job, options).judge_what_is_current()
    return failed


# --- command line -------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise RunError(message)


def _arguments(argv):
    description = __doc__.split("\n\n")[0]
    parser = _Parser(prog="python -m companion.run.runner", description=description, allow_abbrev=False)
    add = parser.add_argument
    several = {"action": "extend", "nargs": "+", "default": []}
    add("--profile", default="quick", choices=PROFILES)
    add("--chapter", **several, choices=CHAPTERS, help="default: all that exist")
    add("--figure", **several, help="make figures or tables by name, nothing else")
    changed = "change a parameter of the notebook; results go to figures/PROFILE/params/NAME=VALUE"
    add("-p", "--parameter", action="append", default=[], metavar="NAME=VALUE", help=changed)
    add("--data", default="bundled", choices=("bundled", "original"))
    add("--jobs", type=int, default=1, help="processes of a sweep (default: 1)")
    add("--scheduler", help="address of a Dask scheduler for the sweeps, tcp://host:port")
    add("--root", type=Path, default=CHECKOUT, help="checkout to work in")
    for switch, text in {
        "--svg": "draw every figure as SVG too",
        "--force": "make chapters even if nothing changed",
        "--book": "write the book, figures/PROFILE/book/, from what was made",
        "--reference": "copy finished chapters of the profile to figures/reference",
        "--gallery": "write figures/README.md and figures/chapters from figures/reference",
        "--course": "write course/, for lecturers, from the chapters executed by the profile reference",
    }.items():
        add(switch, action="store_true", help=text)
    options = parser.parse_args(argv)
    options.argv = argv
    options.root = options.root.resolve()
    if options.jobs < 1:
        raise RunError(f"--jobs must be at least 1, got {options.jobs}")
    options.jobs = int(os.environ.get(WORKER, options.jobs))
    return options


def main(argv=None):
    """Entry point. Returns the exit status: 0, 1 if a chapter failed, 2 if the call was wrong."""
    try:
        return int(bool(_main(_arguments(sys.argv[1:] if argv is None else argv))))
    except (RunError, FileNotFoundError, ImportError, ConnectionError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if WORKER not in os.environ:
            print("\ninterrupted: started again, it goes on with what is not finished", file=sys.stderr)
        return 130


def _chapters(options):
    """The chapters to be made: those of the call, or all; second notebooks that have the parameters given."""
    notebooks = {chapter: options.root / "notebooks" / f"{chapter}.ipynb" for chapter in CHAPTERS}
    existing = [chapter for chapter, path in notebooks.items() if path.is_file()]
    absent = [chapter for chapter in options.chapter if chapter not in existing]
    if absent or not existing:
        there = ", ".join(existing) or "none"
        raise RunError(f"not there yet: {', '.join(absent)}. Chapters that exist: {there}")
    require("notebooks", "papermill", "nbformat")
    requested = set(options.chapter or existing)
    given = {item.partition("=")[0].strip() for item in options.parameter}
    for second in (second for chapter in options.chapter for second in WITH.get(chapter, ())):
        if second in existing and given <= set(notebook_parameters(notebooks[second])):
            requested.add(second)
    return [chapter for chapter in existing if chapter in requested]


def _main(options):
    root = options.root
    if options.reference or options.gallery:
        from companion.run.gallery import reference, write_chapters, write_reference_gallery

        if options.reference:
            return reference(root, options.profile, options.data)
        write_reference_gallery(root)
        return write_chapters(root)
    chapters = _chapters(options)
    if options.course:
        from companion.run.course import write_course

        return write_course(root, chapters)
    if options.figure:
        chapters = _chapters_of_figures(options)
    if WORKER in os.environ:
        _surroundings(options)
        return _serve(_plan(options, chapters), options)
    if options.figure:
        return _make_figures(chapters, options)
    plan = _plan(options, chapters)
    if not options.book:
        return _make(plan, options)
    from companion.run.site import build

    for directory in dict.fromkeys(job.directory for job in plan):
        page = build(root, directory)
        size = sum(file.stat().st_size for file in page.parent.rglob("*") if file.is_file())
        print(f"written: {os.path.relpath(page, root)} ({size / 1e6:.1f} MB)")


if __name__ == "__main__":
    # So that the module has one name, also for what it pickles and registers.
    from companion.run.runner import main as _entry

    sys.exit(_entry())
