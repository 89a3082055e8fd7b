"""The runner, on tiny notebooks."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import nbformat
import pytest
from processes import printed

from companion.run import records, runner

ROOT = Path(__file__).resolve().parents[2]
PARAMETERS = """profile = "quick"
seed = 0  # of everything
p = 1.1  # in (1, 2], or auto
label: str = "x"
data_tier = "bundled"
figures_dir = None
n_jobs = 1"""
MEET = """import pathlib, time
here = pathlib.Path(figures_dir)
here.mkdir(parents=True, exist_ok=True)
(here / "{own}").touch()
while not (here / "{other}").exists():
    time.sleep(0.05)"""
DRAW = """import matplotlib.pyplot as plt, pandas as pd
from companion.run.claims import Verdict
from companion.run.verdicts import ClaimBook
from companion.run.figures import FigureStore
store = FigureStore(profile, figures_dir, parameters=dict(seed=seed, p=p))
book = ClaimBook(store)
fig, ax = plt.subplots(figsize=(2, 1)); ax.plot([1, 2]); plt.show()
made = {"name": "three classes", "tier": "generated"}
for name in ("jmlr-fig-1", "jmlr-fig-2"):
    store.save_figure(fig, name, pd.DataFrame({"x": [1]}), provenance=made)
store.save_table(pd.DataFrame({"a": [1.5]}), "jmlr-fig-6", provenance={"name": "yeast", "tier": "bundled"})
part = Verdict("obs-1", "holds", number=1.5, data="three classes")
book.record(part._replace(parts=(part,)));"""


def notebook(root, *codes, chapter="mkl", parameters=PARAMETERS):
    cells = [nbformat.v4.new_markdown_cell("# Tiny")]
    cells.append(nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    cells += [nbformat.v4.new_code_cell(code) for code in codes]
    (root / "notebooks").mkdir(exist_ok=True)
    path = root / "notebooks" / f"{chapter}.ipynb"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
    return path


def command(root, *arguments):
    return [sys.executable, "-m", "companion.run.runner", "--root", str(root), *arguments]


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CUELEARN_", "JUPYTER_", "IPYTHON"))}
    return {**kept, **more}


def refused(root, capsys, *arguments):
    """The message of a call that must not start anything."""
    assert runner.main(["--root", str(root), *arguments]) == 2
    assert not (root / "figures").exists()
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, messages",
    [
        ("-p sed=3", ["no parameter 'sed'", "did you mean seed?", "(default 0), p (default 1.1)"]),
        ("--chapter mkl oks", ["not there yet: oks. Chapters that exist: mkl"]),
        ("-p profile=full", ["set by --profile"]),
        ("-p seed=auto", ["seed must be of type int like its default 0, got 'auto'"]),
        ("--jobs 0", ["--jobs must be at least 1"]),
        ("--figure thesis-fig-9.9", ["there is no figure 'thesis-fig-9.9'; did you mean"]),
        ("--figure jmlr-fig-1 --profile reference", ["figures of the reference are committed"]),
        ("--book", ["no executed chapter"]),
        ("--reference", ["nothing to copy"]),
        ("--gallery", ["no reference results"]),
    ],
)
def test_a_wrong_call_starts_nothing_and_lists_the_right_names(tmp_path, capsys, arguments, messages):
    notebook(tmp_path)
    printed = refused(tmp_path, capsys, *arguments.split())
    assert all(message in printed for message in messages) and "n_jobs" not in printed


def plan(root, *arguments):
    jobs = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_make", lambda plan, options: jobs.extend(plan) or 0)
        assert runner.main(["--root", str(root), *arguments]) == 0
    return jobs


def test_a_chapter_brings_its_second_notebook(tmp_path):
    """Unless it lacks a parameter that is given."""
    notebook(tmp_path)
    notebook(tmp_path, chapter="multilabel", parameters=PARAMETERS.replace("p = ", "q = "))
    for given, made in (("seed=3", ["mkl", "multilabel"]), ("p=2", ["mkl"])):
        assert [job.chapter for job in plan(tmp_path, "--chapter", "mkl", "-p", given)] == made


def test_a_scheduler_is_tried_before_a_chapter_starts(tmp_path, capsys, monkeypatch):
    notebook(tmp_path, "raise SystemExit('started')")
    monkeypatch.setitem(sys.modules, "distributed", None)
    message = refused(tmp_path, capsys, "--scheduler", "tcp://127.0.0.1:1")
    assert "is not installed: pip install" in message
    client = types.SimpleNamespace(Client=lambda address, **_: open(tmp_path / "nobody"))
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, client)
    message = refused(tmp_path, capsys, "--scheduler", "tcp://127.0.0.1:1")
    assert message.startswith("error: no Dask scheduler answers at tcp://127.0.0.1:1: ")


def test_parameters_of_a_notebook(tmp_path):
    """Values take the kind of the default; without a cell of parameters there are none."""
    path = notebook(tmp_path)
    values = runner.check_parameters(path, ["seed=3", "p=2", "label=7"])
    assert values == {"seed": 3, "p": 2.0, "label": "7"} and isinstance(values["p"], float)
    assert runner.check_parameters(path, ["p=auto"]) == {"p": "auto"}  # its comment allows it
    path.write_text(path.read_text().replace('"parameters"', '"others"'))
    with pytest.raises(runner.RunError, match="no cell tagged parameters"):
        runner.notebook_parameters(path)


def test_variant_names():
    assert records.variant({}) == "" and records.variant({"seed": 3, "p": 1.1}) == "p=1.1,seed=3"
    odd = records.variant({"a": "x/../y"})
    assert "/" not in odd and odd != records.variant({"a": "x_.._y"})


def seen(directory):
    return sorted(file.name for file in directory.iterdir() if not file.name.startswith("."))


def test_a_whole_run(tmp_path, capsys, monkeypatch):
    """Two chapters side by side, one of which fails; then what is stale; then the reference."""
    mkl = MEET.format(own="a", other="b") + "\nassert n_jobs == 1"
    notebook(tmp_path, mkl, DRAW)
    other = {"chapter": "oks", "parameters": PARAMETERS.replace("p = ", "q = ")}
    notebook(tmp_path, "print('so far so good')\n" + MEET.format(own="b", other="a"), "1 / 0", **other)
    shutil.copytree(ROOT / "notebooks" / "companion", tmp_path / "notebooks" / "companion")
    pipes = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    env = environment(HOME="/dev/null/home")  # cannot be made, not even by root
    done = subprocess.run(command(tmp_path, "--jobs", "2"), env=env, cwd=ROOT, **pipes)
    assert done.returncode == 1, done.stderr
    assert re.search("mkl: made in .* s\noks: FAILED after .* s\n", done.stdout)
    shown = "obs-1     holds               1.5", "not made yet: thesis-fig-4.1", "claims not judged: om2-1"
    assert all(line in done.stdout for line in (*shown, "0 of 1 claims are open"))
    assert max(map(len, done.stdout.split("\n"))) <= 120 and not re.search("[\r\x1b]", done.stdout)
    assert "ZeroDivisionError" in done.stderr and "1 / 0" in done.stderr
    out = tmp_path / "figures" / "quick"
    executed = out / "notebooks"
    made = "jmlr-fig-1.png jmlr-fig-1.csv jmlr-fig-1.json jmlr-fig-6.md claims.csv claims.md notebooks"
    assert set(seen(out)) >= set(made.split()) and not list(out.rglob("*running*"))
    assert seen(executed) == ["mkl.ipynb", "mkl.json", "oks.failed.ipynb", "oks.log"]
    for file, text in (
        (out / "README.md", "](jmlr-fig-1.png)"),
        (executed / "mkl.ipynb", '"image/png"'),
        (executed / "oks.log", "ZeroDivisionError"),
        (executed / "oks.failed.ipynb", "so far so good"),
    ):
        assert text in file.read_text()

    # A second call does nothing; cells run by hand, with other parameters, write to a folder of their own.
    before = {file: file.stat().st_mtime_ns for file in out.rglob("*") if file.is_file()}
    assert runner.main(["--root", str(tmp_path), "--chapter", "mkl"]) == 0
    assert capsys.readouterr().out == f"up to date: mkl in {Path('figures/quick')}\n"
    by_hand(tmp_path)
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert json.loads((out / "params" / "seed=3" / "jmlr-fig-1.json").read_text())["seeds"] == 3

    # A lost file, open verdicts, figures of another run, new data, another notebook: each makes it stale.
    job = plan(tmp_path)[0]
    assert job.stale() == ""
    (out / "jmlr-fig-1.png").rename(out / "kept.png")
    assert job.stale() == "missing: jmlr-fig-1.png"
    (out / "kept.png").rename(out / "jmlr-fig-1.png")
    os.utime(out / "README.md", (1, 1))  # a killed run comes to it last
    assert job.stale() == "" and not runner._overviews_are_written([job])
    for name, old, new, reason in (
        ("claims.csv", "holds", "fails", "verdicts of another run"),
        ("jmlr-fig-1.json", job.identity(), "another", "made by another run: jmlr-fig-1"),
    ):
        content = (out / name).read_text()
        (out / name).write_text(content.replace(old, new))
        assert job.stale() == reason
        (out / name).write_text(content)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "new.csv").write_text("1")
    notebook(tmp_path, mkl, DRAW, parameters=PARAMETERS.replace("seed = 0", "seed = 4"))
    assert plan(tmp_path)[0].directory == out / "params" / "seed=4"
    notebook(tmp_path, mkl, DRAW.replace('("jmlr-fig-1", "jmlr-fig-2")', '("jmlr-fig-1",)'))
    assert plan(tmp_path)[0].stale() == "changed: data, notebook"

    # Made again, a figure that the notebook no longer makes goes. A kernel that dies leaves what it wrote.
    notebook(tmp_path, "print('until here')", "import os, time; time.sleep(1); os._exit(9)", **other)
    for file in out.glob("jmlr-fig-2*"):
        os.utime(file, (1, 1))
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert runner.main(["--root", str(tmp_path)]) == 1  # one after the other, in this process
    printed = capsys.readouterr()
    assert "changed: data, notebook" in printed.out
    assert "oks: FAILED" in printed.out and "Kernel died" in printed.err
    assert "until here" in (executed / "oks.failed.ipynb").read_text()
    assert (out / "jmlr-fig-1.png").is_file() and not list(out.glob("jmlr-fig-2*"))
    assert not seen(tmp_path / "home")

    # The full profile's results become the reference, with its gallery.
    (tmp_path / "figures" / "full").symlink_to(out)
    assert runner.main(["--root", str(tmp_path), "--reference", "--profile", "full"]) == 0
    assert (tmp_path / "figures" / "reference" / "jmlr-fig-1.png").is_file()
    assert "](reference/jmlr-fig-1.png)" in (tmp_path / "figures" / "README.md").read_text()


def by_hand(root):
    """Run the cells of `DRAW` as in JupyterLab, beside the companion: nobody says where figures go."""
    code = f"profile, seed, p, figures_dir = 'quick', 3, 1.1, None\n{DRAW}"
    env = environment(PYTHONPATH=str(ROOT))
    printed([sys.executable, "-c", code], cwd=root / "notebooks", env=env)


SLOW = """import os, time
from companion.run.sweep import Sweep
from cuelearn.core.storage import atomic_write
from pathlib import Path
def point(x):
    time.sleep(0.8)  # longer than what is left to a notebook kernel whose parent was killed
    return x
sweep = Sweep(os.environ["CUELEARN_CACHE"] + "/sweeps", "slow")
result = sweep.run(point, [{"x": x} for x in range(6)])
made = f"{profile} {seed} {p} {label} {n_jobs} {result} {sweep.n_cached_}"
atomic_write(Path(figures_dir) / "result.txt", made)"""


def killed(root, ending, n_points):
    """What a run has printed that is killed when it has stored so many points."""
    heard = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore Ctrl-C
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(
        command(root, "-p", "p=2", "--jobs", "2"),
        env=environment(),
        cwd=ROOT,
        **pipes,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    signal.signal(signal.SIGINT, heard)
    points = root / ".cache" / "sweeps" / "slow"
    deadline = time.monotonic() + 90
    while len(list(points.glob("[!.]*.pkl"))) < n_points and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, ending)  # Ctrl-C reaches the whole group
    return process.communicate()[0]


def test_killed_runs_leave_nothing_half_done_and_go_on(tmp_path, monkeypatch):
    """With a parameter changed: results have a place of their own, and one chapter gets all processes."""
    notebook(tmp_path, SLOW)
    quick = tmp_path / "figures" / "quick"
    for ending, n_points in ((signal.SIGINT, 1), (signal.SIGKILL, 3)):
        printed = killed(tmp_path, ending, n_points)
        if ending == signal.SIGINT:
            assert "Traceback" not in printed
            assert printed.endswith("\ninterrupted: started again, it goes on with what is not finished\n")
        # neither notebook nor stamp nor result
        assert not [file for file in quick.rglob("*") if file.is_file() and not file.name.startswith(".")]
    out = quick / "params" / "p=2.0"
    (out / "notebooks" / "mkl.log").touch()  # of a failed run
    monkeypatch.setenv("CUELEARN_CACHE", str(tmp_path / ".cache"))
    again = ["--root", str(tmp_path), "-p", "p=2", "-p", "seed=0", "--jobs", "2"]  # seed=0 is the default
    assert runner.main(again) == 0
    result, cached = (out / "result.txt").read_text().rsplit(" ", 1)
    assert result == "quick 0 2.0 x 2 [0, 1, 2, 3, 4, 5]" and int(cached) >= 3
    assert seen(out / "notebooks") == ["mkl.ipynb", "mkl.json"] and seen(quick) == ["params"]
    (job,) = plan(tmp_path, "-p", "p=2")
    assert job.stale() == ""
    made = []
    monkeypatch.setattr(runner, "_make_tasks", lambda tasks, *_: made.extend(tasks) or ({}, True))
    again = ["--root", str(tmp_path), "-p", "p=2"]
    assert runner.main(again) == 0 and not made
    assert runner.main([*again, "--force"]) == 1 and [str(task) for task in made] == ["notebook mkl"]
