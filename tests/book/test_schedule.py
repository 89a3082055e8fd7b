"""Tasks over worker processes."""

import os
import subprocess
import sys
import time
from pathlib import Path

from companion.run.schedule import Progress, Task, in_order, run
from companion.run.sweep import Sweep, spare_cores

WORKER = """import os, time
from companion.run.schedule import serve
def make(chapter, figure):
    if figure == "dies":
        print("last words", flush=True)
        os._exit(3)
    time.sleep(0.2)
    return {"trouble": ""}
serve(make)"""


def test_the_longest_begin_first_after_the_shortest_figure():
    tasks = [Task("oks", "a", 5.0), Task("oks", "b", 50.0), Task("mkl", "c", 1.0), Task("mkl", "new", None)]
    tasks.append(Task("mkl", "", 7.0))
    assert list(map(str, in_order(tasks))) == ["c", "new", "b", "notebook mkl", "a"]


def test_every_task_is_made_once_and_a_notebook_after_its_figures():
    tasks = [Task("oks", name, 1.0) for name in ("a", "dies", "b")]
    tasks += [Task("oks", "", 9.0), Task("mkl", "c", 2.0), Task("mkl", "", 9.0)]
    finished = []

    def line(task, answer):
        finished.append((str(task), answer["trouble"]))
        return str(task)

    run(tasks, [sys.executable, "-c", WORKER], 2, 1, line)
    names = [name for name, _ in finished]
    assert sorted(names) == sorted(map(str, tasks))
    assert names.index("notebook oks") > max(map(names.index, ("a", "b", "dies")))
    assert names.index("notebook mkl") > names.index("c")
    (trouble,) = filter(None, dict(finished).values())
    assert trouble == "last words\n\nits process ended with status 3"


def test_the_share_that_is_done_counts_seconds(capsys):
    tasks = [Task("oks", "a", 30.0), Task("oks", "b", 10.0), Task("oks", "", None)]
    progress = Progress(tasks)
    progress.began = time.monotonic() - 90.0
    progress.finish(tasks[0])
    progress.line("a", [])
    assert capsys.readouterr().out == "[1/3, 43%, about 2 min left] a\n"
    Progress([*tasks, *tasks[2:] * 3]).line("c", [])
    assert capsys.readouterr().out == "[0/6] c\n"


def slow(x, place=None):
    """After two processes have come to it, where there is a place to meet."""
    deadline = time.monotonic() + 120
    if place:
        Path(place, str(os.getpid())).touch()
        while len(os.listdir(place)) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    time.sleep(0.1)
    return x, os.getpid()


def sweeping(place, points, n_jobs=1, **environment):
    """A process with a sweep that keeps its points there, and prints how many it computed."""
    code = f"""import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_schedule import Sweep, slow
sweep = Sweep({str(place)!r}, "s", {n_jobs})
assert [x for x, _ in sweep.run(slow, {points!r})] == list(range({len(points)}))
print(sweep.n_computed_)"""
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True)


def test_two_processes_share_the_points_of_a_sweep(tmp_path):
    met = tmp_path / "met"
    met.mkdir()
    points = [{"x": x, "place": str(met)} for x in range(6)]
    processes = [sweeping(tmp_path, points) for _ in range(2)]
    n_computed = [int(process.communicate()[0]) for process in processes]
    assert sum(n_computed) == 6 and min(n_computed) >= 1


def test_a_sweep_takes_cores_that_are_free(tmp_path, monkeypatch):
    cores = tmp_path / "cores"
    cores.mkdir()
    for number in range(3):
        (cores / str(number)).touch()
    with spare_cores() as none:
        assert none == 0
    monkeypatch.setenv("CUELEARN_CORES", str(cores))
    with spare_cores() as taken, spare_cores() as left:
        assert (taken, left) == (3, 0)
    monkeypatch.setattr("companion.run.sweep.WORTH_A_PROCESS", 0.0)
    points = [{"x": x} for x in range(4)]
    for alone in (True, False):
        results = Sweep(tmp_path / str(alone), "s", alone=alone).run(slow, points)
        assert [x for x, _ in results] == [0, 1, 2, 3]
        assert ({pid for _, pid in results} == {os.getpid()}) == alone


def test_a_sweep_runs_where_processes_cannot_share_memory(tmp_path):
    process = sweeping(tmp_path, [{"x": 0}, {"x": 1}], n_jobs=2, JOBLIB_MULTIPROCESSING="0")
    assert process.communicate()[0] == "2\n"
