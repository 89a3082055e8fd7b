"""Sweeps: one function evaluated at many points, each finished point kept on disk.

A run that is killed goes on where it was. joblib.Memory is not enough: it keys on a function's own text alone
and stores where it computes. Here the key holds the package's sources and the checksums of the data, and the
process that asked stores what workers, also those of a Dask cluster, have computed.
"""

import contextlib
import hashlib
import inspect
import json
import os
import pickle
import textwrap
import time
import warnings
import zlib
from collections.abc import Mapping
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

import cuelearn
from companion import source_hash
from companion.run.records import DEFAULTS, several
from cuelearn.core.run import Run, progress
from cuelearn.core.storage import atomic_write
from cuelearn.expect import require

try:
    import fcntl
except ImportError:  # Windows: runs there are not guarded against each other
    fcntl = None

#: Modules whose text has no influence on what a sweep computes.
PRESENTATION = ("__init__.py", "run/*", "plots/*", "*/claims*.py", "*/figures*.py")
#: Bytes that a worker may keep from one point to the next.
KEPT = 2_000_000_000
#: Seconds of work from which a second process pays for its start.
WORTH_A_PROCESS = 10.0


def clean_temporaries(directory):
    """Remove the temporary files of `atomic_write` that killed processes left in `directory`."""
    for file in Path(directory).glob(".*.tmp-*"):
        try:
            os.kill(int(file.name.rsplit(".tmp-", 1)[1].split("-")[0]), 0)
        except (ValueError, ProcessLookupError):
            file.unlink(missing_ok=True)
        except OSError:  # alive and not ours
            pass


def try_lock(path):
    """An open file that holds `path` locked until it is closed; None if another one holds it."""
    file = open(path, "a")
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return None
    return file


@contextlib.contextmanager
def file_lock(path, waiting=lambda: None):
    """Hold the file `path` locked; freed with the process. `waiting` is called if another one holds it."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    file = try_lock(path)
    if file is None:
        waiting()
        file = open(path, "a")
        fcntl.flock(file, fcntl.LOCK_EX)
    with file:
        yield


@contextlib.contextmanager
def spare_cores():
    """Hold the cores that no worker of the run uses; their number.

    Each core is a file in ``$CUELEARN_CORES``, locked while a worker makes something.
    """
    place = os.environ.get("CUELEARN_CORES")
    with contextlib.ExitStack() as stack:
        n_cores = 0
        for path in sorted(Path(place).iterdir()) if place and fcntl else ():
            file = try_lock(path)
            if file is not None:
                stack.enter_context(file)
                n_cores += 1
        yield n_cores


class Claims:
    """The points of a sweep that this process computes: what another one is at is left to it."""

    def __init__(self, directory):
        directory.mkdir(parents=True, exist_ok=True)
        self.file = open(directory / ".lock", "w")

    def take(self, key, wait=False):
        """Whether the point is this process's now; with `wait` as soon as no other has it."""
        if fcntl is None:
            return True
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, self._place(key))
        except OSError:
            return False
        return True

    def give_back(self, key):
        if fcntl is not None:
            fcntl.lockf(self.file, fcntl.LOCK_UN, 1, self._place(key))

    @staticmethod
    def _place(key):
        """The byte of the lock file that stands for a point."""
        return int(hashlib.sha256(key.encode()).hexdigest()[:12], 16)


# --- what identifies a point --------------------------------------------------------------------------------


@lru_cache
def sources(module):
    """Fingerprint of the sources that can change what a function of a module returns.

    Read once: what was imported is what runs. The experiments of a chapter use nothing of another's.
    """
    chapter = (module.split(".") + [""])[1]
    others = [f"{name}/*" for name in DEFAULTS if chapter in DEFAULTS and name != chapter]
    return source_hash(leave_out=(*PRESENTATION, *others), code_only=True)


def _plain(value):
    if isinstance(value, np.generic):
        return value.item()
    kind = type(value).__name__
    raise TypeError(f"a point holds a {kind}, not numbers, text, lists or dicts: hand it over by common=")


def _identity(function):
    """Name, code and bound arguments of a function: what its results depend on besides the point."""
    bound = []
    while isinstance(function, partial):
        bound.append([function.args, function.keywords])
        function = function.func
    if getattr(function, "__closure__", None):
        names = ", ".join(function.__code__.co_freevars)
        raise ValueError(f"{function.__qualname__} closes over {names}: pass them in the points")
    text = ""
    with contextlib.suppress(OSError, TypeError, SyntaxError):  # part of a line is no syntax
        text = cuelearn._code(textwrap.dedent(inspect.getsource(function)))
    module = "" if function.__module__ == "__main__" else function.__module__
    return {"function": f"{module}.{function.__qualname__}", "text": text, "bound": bound}


def _identity_of_data(item):
    """Text that identifies a data set, given as text or as its provenance record."""
    return item if isinstance(item, str) else json.dumps(item._asdict(), sort_keys=True, default=str)


# --- one point ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def processor_time():
    """Seconds in histories are those of the processor, whatever runs beside it."""
    before = Run.clock
    Run.clock = time.process_time
    try:
        yield
    finally:
        Run.clock = before


def _evaluate(key, function, point, /, **common):
    """(key, pickled result) of one point; BLAS, OpenMP and numba use one thread."""
    import numba
    from joblib.externals.loky import process_executor
    from threadpoolctl import threadpool_limits

    # A worker that keeps kernels for its next points leaks nothing: loky would start another in its place.
    process_executor._MAX_MEMORY_LEAK_SIZE = KEPT
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        with threadpool_limits(limits=1), processor_time():
            return key, pickle.dumps(function(**point, **common), protocol=5)
    except Exception as error:
        name = getattr(function, "__qualname__", repr(function))
        raise RuntimeError(f"{name} failed at the point {point}: {type(error).__name__}: {error}") from error
    finally:
        numba.set_num_threads(before)


def load(file, key):
    """The pickled result stored under `key`; None if the file is absent, damaged or of another key."""
    try:
        stored, result = pickle.loads(zlib.decompress(Path(file).read_bytes()))
        return result if stored == key else None
    except Exception:  # whatever is wrong with it: it is computed anew, never trusted
        return None


def connect(scheduler):
    """A client of a Dask scheduler; ImportError without dask, ConnectionError where none answers."""
    require("dask", "distributed")
    from distributed import Client

    try:
        return Client(scheduler, set_as_default=False, timeout=10)
    except (OSError, ValueError) as error:
        raise ConnectionError(f"no Dask scheduler answers at {scheduler}: {error}") from error


def beside(point, result):
    """A point's parameters, then its result as further columns, in a row or in as many as it has."""
    if not isinstance(result, (pd.DataFrame, Mapping)):
        result = {"value": result}
    columns = isinstance(result, pd.DataFrame) or any(np.ndim(value) for value in result.values())
    rows = pd.DataFrame(result if columns else [result])
    parameters = {name: [value] * len(rows) for name, value in point.items() if name not in rows}
    return pd.concat([pd.DataFrame(parameters, index=rows.index), rows], axis=1)


# --- the sweep ----------------------------------------------------------------------------------------------


class Sweep:
    """One function at many points: in parallel, resumable, with a progress bar.

    A point is stored in a folder `name` of `cache_dir` as soon as it is finished, under a key made of the
    function's name and code, the point's parameters, the sources of this package (without its presentation),
    the checksums of the data given, and the versions of NumPy, SciPy, scikit-learn and numba. If any of them
    changes, it is computed anew; so is a damaged file. A result is read back from storage even when it was
    just computed. BLAS and numba use one thread within a point: the same bits for any `n_jobs`, the number of
    processes, -1 for one on each core. A single process starts others on cores that are free, unless it is to
    be `alone`. Two processes that run the same sweep share its points. If ``$CUELEARN_SCHEDULER`` is the
    address of a Dask scheduler, all points are sent there instead.

    `n_computed_` and `n_cached_` are the points computed by, and found before, the last `run`.
    """

    def __init__(self, cache_dir, name, n_jobs=1, alone=False):
        if not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0 or n_jobs < -1:
            raise ValueError(f"n_jobs must be -1 or a positive integer, got {n_jobs!r}")
        self.directory = Path(cache_dir) / name
        self.name = name
        self.n_jobs = n_jobs
        self.alone = alone

    def run(self, function, points, *, common=None, data=()):
        """Evaluate `function` at all `points`: what it returned, in their order.

        It is called as ``function(**point, **common)``, stands at the top level of a module (or is a
        `functools.partial` of such a function), has no side effects, and what it returns is pickled. A point
        is a dict of numbers, text, and lists or dicts of these. `common` are further arguments of any kind
        that `data` must identify, or a function that returns them, called if a point is to be computed.
        `data` are the data sets that results depend on, or their provenance records, or checksums.

        If `function` raises, the RuntimeError names the point, and the points finished before are kept.
        """
        points = [dict(point) for point in points]
        data = sorted(map(_identity_of_data, several(data)))
        if common and not data:
            raise ValueError("common is given without data: stale results would be reused")
        same = _identity(function)
        same |= {"sources": sources(same["function"]), "data": data}
        same["versions"] = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
        keys = [json.dumps(same | {"point": point}, sort_keys=True, default=_plain) for point in points]
        files = {key: self.directory / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.pkl" for key in keys}
        clean_temporaries(self.directory)
        results = {key: load(file, key) for key, file in files.items()}
        todo = {key: point for key, point in zip(keys, points, strict=True) if results[key] is None}
        self.n_computed_ = 0
        relay = os.environ.get("CUELEARN_PROGRESS")  # the runner tells how far it is
        with progress(name=self.name, total=len(todo), verbose=not relay) as bar:
            for done, (key, result) in enumerate(self._results(function, todo, common, files), start=1):
                results[key] = result
                bar.update(1)
                if relay:
                    atomic_write(relay, f"{self.name} {done}/{len(todo)}")
        self.n_cached_ = len(points) - self.n_computed_
        # each of equal points, which are computed once, gets a result of its own
        return [pickle.loads(results[key]) for key in keys]

    def frame(self, function, points, **kwargs):
        """Like `run`, but one DataFrame: for each point its parameters, then its results as columns.

        A result that is a DataFrame, or a dict of columns that are arrays of one length, gives as many rows.
        """
        results = self.run(function, points, **kwargs)
        parts = [beside(point, result) for point, result in zip(points, results, strict=True)]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def _results(self, function, todo, common, files):
        """Yield (key, pickled result) of key -> point in any order; each is computed by one process only."""
        if not todo:
            return
        claims = Claims(self.directory)
        arguments = lru_cache(common) if callable(common) else lambda: common or {}
        elsewhere = {}  # points that another process computes
        ready = {}

        def tasks():
            for key, point in todo.items():
                if not claims.take(key):
                    elsewhere[key] = point
                elif (result := load(files[key], key)) is not None:  # finished by another one just now
                    ready[key] = result
                    claims.give_back(key)
                else:
                    yield key, function, point, arguments()

        def stored(results):
            for key, result in results:
                atomic_write(files[key], zlib.compress(pickle.dumps((key, result))))
                claims.give_back(key)
                self.n_computed_ += 1
                yield key, result

        with claims.file:
            yield from stored(self._compute(tasks(), len(todo)))
            yield from ready.items()
            for key, point in elsewhere.items():
                claims.take(key, wait=True)
                result = load(files[key], key)
                if result is None:  # the other one did not get there
                    yield from stored([_evaluate(key, function, point, **arguments())])
                else:
                    yield key, result

    def _compute(self, tasks, n_tasks):
        """Yield (key, pickled result) of each task (key, function, point, common), in any order."""
        from joblib import Parallel, delayed, effective_n_jobs, parallel_config

        calls = (delayed(_evaluate)(*task, **common) for *task, common in tasks)
        scheduler = os.environ.get("CUELEARN_SCHEDULER")
        if scheduler:
            with connect(scheduler) as client, client.as_current(), parallel_config(backend="dask"):
                yield from Parallel(return_as="generator_unordered")(calls)
            return
        # mmap_mode "c": workers share large arrays without copying them, and may still write to their own
        # view, so that compiled code sees the same array type as in this process.
        options = {"return_as": "generator_unordered", "mmap_mode": "c", "pre_dispatch": "2*n_jobs"}
        n_jobs = min(effective_n_jobs(self.n_jobs), n_tasks)  # 1 where processes cannot share memory
        start = time.monotonic()
        with contextlib.ExitStack() as stack:
            if n_jobs == 1:
                for done, (call, arguments, common) in enumerate(calls, start=1):
                    yield call(*arguments, **common)
                    seconds_left = (time.monotonic() - start) / done * (n_tasks - done)
                    if seconds_left > WORTH_A_PROCESS and not self.alone:
                        n_jobs = effective_n_jobs(1 + stack.enter_context(spare_cores()))
                    if n_jobs > 1:
                        break
                else:
                    return
            stack.enter_context(warnings.catch_warnings())
            # a worker that holds more than `KEPT` is replaced between points; nothing is lost
            warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
            stack.enter_context(parallel_config(backend="loky", inner_max_num_threads=1))
            yield from Parallel(n_jobs, **options)(calls)
