"""The cached sweep."""

import functools
import os
import re
import subprocess
import sys
from collections import namedtuple

import joblib
import numpy as np
import pandas as pd
import pytest

import cuelearn
from companion import FOLDER
from companion.run import sweep as sweeps
from companion.run.records import DEFAULTS
from companion.run.sweep import Sweep, clean_temporaries, file_lock


def rich(x, scale=1.0):
    return {
        "plain": [3, "ä", True, None, float("inf"), np.float32(0.1), (2.5, "z"), {"set"}],
        "array": np.arange(6.0).reshape(2, 3) * x * scale,
        "frame": pd.DataFrame({"n": np.arange(3), "v": np.float32([0.1, 0.2, x]), "name": ["a", None, "c"]}),
    }


def slow_product(a, b, table):
    import numba
    import threadpoolctl

    matrix = np.random.default_rng(a).standard_normal((60, 60))
    threads = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    threads.append(numba.get_num_threads())
    return {"product": float((matrix @ matrix * b + table).sum()), "threads": max(threads)}


def fails_at_two(x):
    if x == 2:
        raise ZeroDivisionError("two")
    return x


def test_fresh_and_stored_results_are_equal(tmp_path):
    points = [{"x": 1}, {"x": 2.5}, {"x": np.float64(2.5)}]
    first, second = Sweep(tmp_path, "s"), Sweep(tmp_path, "s")
    results = first.run(rich, points)
    assert joblib.hash(second.run(rich, points)) == joblib.hash(results)
    # equal points are computed once
    assert (first.n_computed_, second.n_computed_, second.n_cached_) == (2, 0, 3)
    assert joblib.hash(results[1]) == joblib.hash(results[2]) == joblib.hash(rich(2.5))


def test_order_and_bits_do_not_depend_on_jobs(tmp_path):
    points = [{"a": a, "b": b} for a in range(4) for b in (0.5, 2.0)]
    given = {"common": {"table": np.ones((60, 60))}, "data": ["ones"]}
    one, two = (Sweep(tmp_path / f"{n}", "s", n_jobs=n).run(slow_product, points, **given) for n in (1, 2))
    assert one == two and {result["threads"] for result in one} == {1}


def test_damaged_files_are_computed_anew(tmp_path):
    sweep = Sweep(tmp_path, "s")
    expected = joblib.hash(sweep.run(rich, [{"x": 1}, {"x": 2}]))
    one, two = sorted((tmp_path / "s").glob("*.pkl"))
    content = one.read_bytes()
    altered = content[:200] + bytes([content[200] ^ 1]) + content[201:]
    for damaged in (content[:-7], altered, b"", two.read_bytes()):
        one.write_bytes(damaged)
        assert joblib.hash(sweep.run(rich, [{"x": 1}, {"x": 2}])) == expected
        assert sweep.n_computed_ == 1


def test_key_covers_parameters_data_sources_and_text(tmp_path, monkeypatch):
    def computed(function=rich, data=(), **more):
        """Whether it is computed at the first call, and again at the second."""
        sweeps = [Sweep(tmp_path, "s") for _ in range(2)]
        for sweep in sweeps:
            sweep.run(function, [{"x": 1, **more}], data=data)
        return [sweep.n_computed_ for sweep in sweeps]

    record = namedtuple("Record", "name sha256")("letter", "ab")
    other = functools.partial(rich, scale=3.0)
    for data in ((), ["sum"], record, record._replace(sha256="cd")):
        assert computed(data=data) == [1, 0]
    assert computed(data=[record]) == [0, 0]
    assert computed(scale=2.0) == computed(function=other) == [1, 0]
    monkeypatch.setattr(sweeps, "sources", lambda module: "edited")
    assert computed() == [1, 0]


def test_experiments_of_a_chapter_do_not_hang_on_those_of_another():
    for file in FOLDER.rglob("*.py"):
        mine = file.parent.name
        if mine in ("run", "plots"):
            continue
        for other in set(DEFAULTS) - {mine}:
            assert not re.search(rf"companion(\.| import .*\b){other}\b", file.read_text()), (file, other)
    one, other, own = map(sweeps.sources, ("companion.oks.f", "companion.omcl.f", "f"))
    assert len({one, other, own}) == 3 and sweeps.sources("companion.protocol.f") == own


def test_texts_and_comments_change_no_result():
    code = cuelearn._code
    plain = code('def f(x):\n    "What it does."\n    y = 0\n    return x + y\n')
    assert code('"New."\ndef f(x):\n    """Now told."""\n    y = 0  # why\n\n    return (x + y)\n') == plain
    assert code("def f(x):\n    y = 1\n    return x + y\n") != plain
    assert code("def f(x):\n    y = 0\n    return 0\n") != plain


def test_what_the_key_cannot_see_is_refused(tmp_path):
    captured = 3
    sweep = Sweep(tmp_path, "s")
    assert sweep.run(rich, []) == []
    for n_jobs in (0, -2, 1.5):
        with pytest.raises(ValueError, match="n_jobs"):
            Sweep(tmp_path, "s", n_jobs=n_jobs)
    with pytest.raises(ValueError, match="closes over captured"):
        sweep.run(lambda x: x + captured, [{"x": 1}])
    with pytest.raises(ValueError, match="common is given without data"):
        sweep.run(rich, [{"x": 1}], common={"scale": 2})
    with pytest.raises(TypeError, match="a point holds a ndarray"):
        sweep.run(rich, [{"x": np.ones(3)}])


def generates(x):
    return (y for y in range(x))


def test_failing_point_is_named_and_the_others_are_kept(tmp_path):
    match = r"generates failed at the point \{'x': 1\}: TypeError: cannot pickle"
    with pytest.raises(RuntimeError, match=match):
        Sweep(tmp_path, "s").run(generates, [{"x": 1}])
    with pytest.raises(RuntimeError, match="point {'x': 2}: ZeroDivisionError: two"):
        Sweep(tmp_path, "s").run(fails_at_two, [{"x": x} for x in (0, 1, 2)])
    again = Sweep(tmp_path, "s")
    again.run(fails_at_two, [{"x": 0}])
    assert again.n_computed_ == 0


def test_dask_gives_the_same(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(1, **options) as cluster:
        points, common = [{"a": a, "b": 0.5} for a in range(3)], {"table": np.ones((60, 60))}
        here = Sweep(tmp_path / "b", "s").run(slow_product, points, common=common, data=["ones"])
        monkeypatch.setenv("CUELEARN_SCHEDULER", cluster.scheduler_address)
        remote = Sweep(tmp_path / "a", "s")
        assert remote.run(fails_at_two, [{"x": 0}, {"x": 1}]) == [0, 1]
        assert remote.run(slow_product, points, common=common, data=["ones"]) == here
        with pytest.raises(RuntimeError, match="failed at the point {'x': 2}"):
            remote.run(fails_at_two, [{"x": 2}])


def test_leftovers_of_dead_processes_are_removed(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    gone, alive = (tmp_path / f".a.png.tmp-{pid}-ab" for pid in (dead.pid, os.getpid()))
    gone.touch()
    alive.touch()
    clean_temporaries(tmp_path)
    assert not gone.exists() and alive.exists()


def test_file_lock_excludes(tmp_path):
    said = "lambda: print('waits', flush=True)"
    lock = f"with file_lock({str(tmp_path / 'l')!r}, {said}): print('in')"
    code = f"from companion.run.sweep import file_lock\n{lock}"
    with file_lock(tmp_path / "l"):
        other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert other.stdout.readline() == "waits\n"
        assert other.poll() is None
    assert other.stdout.read() == "in\n" and other.wait() == 0
    other.stdout.close()
