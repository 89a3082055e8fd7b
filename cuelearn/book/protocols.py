"""Protocols of the experiments: sweeps whose points are kept on disk, atomic files, progress bars.

A figure is drawn from a *sweep*: one function evaluated at a list of points (method, data set, split, ``p``, ...). Points are
independent, so they run in parallel, and each finished point is stored, so that a run that is killed goes on where it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import io
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import cuelearn
from cuelearn.core.storage import atomic_write

__all__ = [
    "Sweep",
    "atomic_write",
    "clean_temporaries",
    "file_lock",
    "map_progress",
    "progress_bar",
    "single_threaded",
]

#: Modules whose text has no influence on what a sweep computes.
_PRESENTATION = ("__init__.py", "figures.py", "claims.py", "run.py", "plots/")
#: Version of the storage format; part of every key, so that files of an older format are recomputed, not misread.
_FORMAT = 1
_DELAY = 2.0  # seconds before a progress bar shows itself


# --- files -------------------------------------------------------------------------------------------------------------------


def clean_temporaries(directory):
    """Remove what killed processes left behind in `directory` (temporary files of `atomic_write`, not of living processes)."""
    for file in Path(directory).glob(".*.tmp-*"):
        try:
            os.kill(int(file.name.rsplit(".tmp-", 1)[1].split("-")[0]), 0)
        except (ValueError, ProcessLookupError):
            file.unlink(missing_ok=True)
        except OSError:  # alive and not ours, or no such question on this system
            pass


@contextlib.contextmanager
def file_lock(path, waiting=None):
    """Hold an exclusive lock on `path` among processes; it is freed with the process, however that ends.

    Parameters
    ----------
    path : str or Path
        The lock file. It stays, empty.
    waiting : callable, optional
        Called without arguments, once, if another process holds the lock.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as file:
        try:
            import fcntl
        except ImportError:  # Windows: runs there are not guarded against each other
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if waiting is not None:
                waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


# --- progress ----------------------------------------------------------------------------------------------------------------


class _Relay:
    """Stands in for a bar inside an executed notebook: tells the runner, leaves no trace in the notebook's output."""

    def __init__(self, path, total, desc):
        self._path, self.total, self.desc, self.n, self._told = path, total, desc, 0, 0.0

    def update(self, n=1):
        self.n += n
        now = time.monotonic()
        if now - self._told > 0.2:
            self._told = now
            with contextlib.suppress(OSError):
                atomic_write(
                    self._path, f"{self.desc} {self.n}/{self.total if self.total is not None else '?'}"
                )

    def close(self):
        with contextlib.suppress(OSError):
            Path(self._path).unlink(missing_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def progress_bar(total, desc, progress=True):
    """A bar that appears when the work takes more than two seconds.

    Parameters
    ----------
    total : int or None
        Number of steps.
    desc : str
        What is being done.
    progress : bool
        Whether to show anything.

    Returns
    -------
    object
        With ``update(n)`` and ``close()``, usable in a ``with`` statement. On a terminal and in a notebook that is open before
        a reader it is a tqdm bar; under the runner (which sets ``CUELEARN_PROGRESS``) it reports to the runner's own bar; where
        output goes to a file it prints a line every 30 seconds.
    """
    from tqdm.auto import tqdm

    relay = os.environ.get("CUELEARN_PROGRESS")
    if progress and relay:
        return _Relay(relay, total, desc)
    interactive = sys.stderr.isatty() or "ipykernel" in sys.modules
    return tqdm(
        total=total,
        desc=desc,
        disable=not progress,
        delay=_DELAY,
        leave=False,
        mininterval=0.2 if interactive else 30,
    )


def map_progress(iterable, desc, progress=True, total=None):
    """Iterate over `iterable` under a `progress_bar`."""
    if total is None and hasattr(iterable, "__len__"):
        total = len(iterable)
    with progress_bar(total, desc, progress) as bar:
        for item in iterable:
            yield item
            bar.update(1)


# --- threads -----------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def single_threaded(threads=1):
    """Within the block BLAS, OpenMP and numba use at most `threads` threads."""
    import numba
    from threadpoolctl import threadpool_limits

    before = numba.get_num_threads()
    numba.set_num_threads(max(1, min(threads, numba.config.NUMBA_NUM_THREADS)))
    try:
        with threadpool_limits(limits=threads):
            yield
    finally:
        numba.set_num_threads(before)


def _call(function, kwargs, threads):
    """One point, with its wall time; runs in the worker."""
    with single_threaded(threads):
        start = time.perf_counter()
        result = function(**kwargs)
        return _encode(result), time.perf_counter() - start


# --- storage without pickle --------------------------------------------------------------------------------------------------


def _pack(value, arrays, where):
    """Turn `value` into JSON, putting arrays aside into `arrays`."""
    if value is None or isinstance(value, (bool, int, float, str)) and not isinstance(value, np.generic):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        kind = "scalar" if isinstance(value, np.generic) else "array"
        value = np.asarray(value)
        if value.dtype.kind not in "biufcUS":
            raise TypeError(
                f"{where} has dtype {value.dtype}: a sweep stores numbers, booleans and text, without pickle"
            )
        arrays.append(value)
        return {"__kind__": kind, "at": len(arrays) - 1}
    if isinstance(value, pd.DataFrame):
        if not isinstance(value.index, pd.RangeIndex) or value.index.start != 0 or value.index.step != 1:
            raise TypeError(
                f"{where} is a DataFrame with an index of its own: make it a column with reset_index()"
            )
        columns = []
        for name in value.columns:
            if not isinstance(name, str):
                raise TypeError(f"{where} has the column {name!r}: column names must be text")
            column = value[name]
            plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufc"
            packed = _pack(
                column.to_numpy() if plain else [None if pd.isna(v) else v for v in column],
                arrays,
                f"{where}.{name}",
            )
            columns.append([name, packed])
        return {"__kind__": "frame", "rows": len(value), "columns": columns}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) and key != "__kind__" for key in value):
            raise TypeError(f"{where} has keys that are not text: {list(value)}")
        return {key: _pack(item, arrays, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_pack(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]
    raise TypeError(
        f"{where} is a {type(value).__name__}: a sweep stores numbers, text, arrays, DataFrames, lists and dicts of these"
    )


def _unpack(value, arrays):
    if isinstance(value, list):
        return [_unpack(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("__kind__")
    if kind == "array":
        return arrays[value["at"]]
    if kind == "scalar":
        return arrays[value["at"]][()]
    if kind == "frame":
        return pd.DataFrame(
            {name: _unpack(column, arrays) for name, column in value["columns"]},
            index=pd.RangeIndex(value["rows"]),
        )
    return {key: _unpack(item, arrays) for key, item in value.items()}


def _encode(result):
    """Result of one point -> (JSON text, arrays)."""
    arrays: list[np.ndarray] = []
    return json.dumps(_pack(result, arrays, "the result")), arrays


def _to_bytes(key, seconds, encoded):
    text, arrays = encoded
    buffer = io.BytesIO()
    header = json.dumps({"key": key, "seconds": seconds, "result": text, "n_arrays": len(arrays)})
    np.savez_compressed(
        buffer, header=np.frombuffer(header.encode(), np.uint8), **{f"a{i}": a for i, a in enumerate(arrays)}
    )
    body = buffer.getvalue()
    return hashlib.sha256(body).digest() + body


def _from_bytes(content, key):
    """Stored bytes -> (result, seconds); raises ValueError if they are not what was stored under `key`."""
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        raise ValueError("damaged")
    with np.load(io.BytesIO(content[32:]), allow_pickle=False) as file:
        header = json.loads(file["header"].tobytes())
        if header["key"] != key:
            raise ValueError("another key")
        arrays = [file[f"a{i}"] for i in range(header["n_arrays"])]
    return _unpack(json.loads(header["result"]), arrays), header["seconds"]


# --- the sweep ---------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _sources():
    """Fingerprint of the sources that can change a result, read once: what was imported is what runs."""
    return cuelearn._source_hash(leave_out=_PRESENTATION)


def _plain(value, where):
    """A parameter as canonical JSON-able value, or TypeError."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(value[key], where) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(item, where) for item in value]
    raise TypeError(
        f"{where} is a {type(value).__name__}: the parameters of a point must be numbers, text, lists or dicts of these; hand "
        "arrays over through common="
    )


def _identity(function):
    """Name, text and bound arguments of a function: what its results depend on besides the point."""
    bound = []
    while isinstance(function, partial):
        bound.append(
            [
                _plain(list(function.args), "a bound argument"),
                _plain(dict(function.keywords), "a bound argument"),
            ]
        )
        function = function.func
    if getattr(function, "__closure__", None):
        raise ValueError(
            f"function {function.__qualname__} closes over {', '.join(function.__code__.co_freevars)}, whose values the cache cannot "
            "see: pass them in the points"
        )
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = ""
    module = "" if function.__module__ == "__main__" else function.__module__
    return {"function": f"{module}.{function.__qualname__}", "text": text, "bound": bound}


def _data_identity(item):
    """Text that identifies a data set, given as text, as a data set or as its provenance record."""
    item = getattr(item, "provenance", item)
    if isinstance(item, str):
        return item
    if hasattr(item, "_asdict"):
        return json.dumps(item._asdict(), sort_keys=True, default=str)
    raise TypeError(f"data must hold checksums, data sets or provenance records, got {item!r}")


class Sweep:
    """One function at many points: in parallel, resumable, with a progress bar.

    Parameters
    ----------
    cache_dir : str or Path or None
        Directory of the stored points. None: ``$CUELEARN_CACHE/sweeps``, or ``.cache/sweeps`` of the checkout.
    name : str
        Name of the sweep: a sub-directory of `cache_dir` and the label of the progress bar.
    n_jobs : int, default=1
        Processes. -1 means one for each core.
    scheduler : str, optional
        Address of a Dask scheduler (``tcp://host:port``), to which all points are sent instead; default is
        ``$CUELEARN_SCHEDULER``. Needs the extra ``dask``.
    progress : bool, default=True
        Show a bar when the sweep takes more than two seconds.
    threads : int, default=1
        Threads that BLAS and numba may use within one point. The default gives the same bits for any `n_jobs`.

    Attributes
    ----------
    n_computed_, n_cached_ : int
        Points computed by, and found before, the last `run`.
    seconds_ : list of float
        Wall time of each point of the last `run`, in the order of the points, as measured when it was computed.

    Notes
    -----
    A point is stored as soon as it is finished, under a key made of the function's qualified name and text, the point's
    parameters, the sources of this package (without its presentation), the checksums of the data given, and the versions of
    NumPy, SciPy, scikit-learn and numba. If any of them changes, it is computed anew. A damaged file is computed anew too.
    Storage is NumPy's zip of arrays with JSON and a checksum, never pickle; a result is read back from storage even when it was
    just computed, so a first and a second run return equal objects (tuples become lists).

    Wall times measured inside points are comparable only with ``n_jobs=1``: parallel points share caches and memory bandwidth.

    Examples
    --------
    >>> import tempfile
    >>> def square(x): return {"value": x * x}
    >>> with tempfile.TemporaryDirectory() as cache:
    ...     sweep = Sweep(cache, "squares")
    ...     [result["value"] for result in sweep.run(square, [{"x": 2}, {"x": 3}])]
    [4, 9]
    """

    def __init__(self, cache_dir, name, n_jobs=1, scheduler=None, progress=True, threads=1):
        if not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0 or n_jobs < -1:
            raise ValueError(f"n_jobs must be -1 or a positive integer, got {n_jobs!r}")
        if cache_dir is None:
            root = os.environ.get("CUELEARN_CACHE") or Path(cuelearn.__file__).resolve().parents[1] / ".cache"
            cache_dir = Path(root) / "sweeps"
        self.directory = Path(cache_dir) / name
        self.name = name
        self.n_jobs = (
            len(os.sched_getaffinity(0)) if n_jobs == -1 and hasattr(os, "sched_getaffinity") else int(n_jobs)
        )
        if self.n_jobs == -1:
            self.n_jobs = os.cpu_count() or 1
        self.scheduler = scheduler or os.environ.get("CUELEARN_SCHEDULER") or None
        self.progress = progress
        self.threads = threads
        self.n_computed_ = self.n_cached_ = 0
        self.seconds_: list[float] = []

    def run(
        self,
        function: Callable[..., Any],
        points: Sequence[Mapping[str, Any]],
        *,
        common: Mapping[str, Any] | None = None,
        data: Sequence = (),
    ) -> list:
        """Evaluate `function` at all `points`.

        Parameters
        ----------
        function : callable
            Defined at the top level of a module (or a `functools.partial` of such a function) and without side effects. It is
            called as ``function(**point, **common)``.
        points : sequence of dict
            Parameters of each point: numbers, text, and lists or dicts of these.
        common : dict, optional
            Further arguments, the same for all points, of any kind (arrays too). They are not part of the key: `data` must
            identify them.
        data : sequence
            Of the data that the results depend on: checksums (or other identifying text), or the data sets or their
            ``provenance`` records.

        Returns
        -------
        list
            The results, in the order of `points`: whatever `function` returned, made of numbers, text, arrays, DataFrames,
            lists and dicts.

        Raises
        ------
        TypeError, ValueError
            If a point or a result cannot be stored, or `common` is given without `data`.
        RuntimeError
            If `function` raises; the message names the point, and the points finished before are kept.
        """
        points = [dict(point) for point in points]
        alone = isinstance(data, str) or hasattr(data, "_asdict") or hasattr(data, "provenance")
        data = [_data_identity(item) for item in ([data] if alone else data)]
        if common and not data:
            raise ValueError(
                "common is given without data: pass the checksums that identify it, else stale results would be reused"
            )
        keys = [self._key(function, point, data) for point in points]
        files = [self.directory / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.npz" for key in keys]
        clean_temporaries(self.directory)
        found = [self._load(file, key) for file, key in zip(files, keys, strict=False)]
        first = {key: i for i, key in reversed(list(enumerate(keys)))}  # equal points are computed once
        todo = [i for i in range(len(points)) if found[i] is None and first[keys[i]] == i]
        self.n_computed_, self.n_cached_ = len(todo), sum(item is not None for item in found)
        with progress_bar(len(todo), self.name, self.progress and bool(todo)) as bar:
            for i, encoded, seconds in self._compute(function, points, todo, dict(common or {})):
                content = _to_bytes(keys[i], seconds, encoded)
                atomic_write(files[i], content)
                found[i] = _from_bytes(content, keys[i])
                bar.update(1)
        for i, key in enumerate(keys):
            if found[i] is None:
                found[i] = self._load(files[i], key) or found[first[key]]
        self.seconds_ = [seconds for _, seconds in found]
        return [result for result, _ in found]

    def frame(self, function, points, **kwargs):
        """Like `run`, but returns one DataFrame: a row for each point, its parameters and then its results as columns.

        Where the result is a DataFrame itself (or a dict of columns that are arrays of one length), it gives as many rows.
        """
        parts = []
        for point, result in zip(points, self.run(function, points, **kwargs), strict=False):
            if isinstance(result, Mapping):
                rows = (
                    pd.DataFrame(result)
                    if any(np.ndim(v) for v in result.values())
                    else pd.DataFrame([result])
                )
            else:
                rows = result if isinstance(result, pd.DataFrame) else pd.DataFrame([{"value": result}])
            parameters = {k: [v] * len(rows) for k, v in point.items() if k not in rows}
            parts.append(pd.concat([pd.DataFrame(parameters, index=rows.index), rows], axis=1))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def _key(self, function, point, data):
        from importlib.metadata import version

        return json.dumps(
            {
                "format": _FORMAT,
                **_identity(function),
                "point": {
                    name: _plain(point[name], f"parameter {name!r} of a point") for name in sorted(point)
                },
                "sources": _sources(),
                "data": sorted(data),
                "threads": self.threads,
                "versions": {
                    package: version(package) for package in ("numpy", "scipy", "scikit-learn", "numba")
                },
            },
            sort_keys=True,
        )

    @staticmethod
    def _load(file, key):
        try:
            return _from_bytes(file.read_bytes(), key)
        except (
            Exception
        ):  # absent, cut short, altered or of another format: it is computed anew, never trusted
            return None

    def _compute(self, function, points, todo, common):
        """Yield (index, encoded result, seconds) as points finish, in any order."""
        if not todo:
            return
        if self.scheduler:
            yield from self._compute_dask(function, points, todo, common)
            return
        if self.n_jobs == 1 or len(todo) == 1:
            for i in todo:
                yield (i, *_guarded(function, points[i], common, self.threads))
            return
        from joblib import Parallel, delayed, parallel_config

        # mmap_mode "c": workers share large arrays without copying them, and may still write to their own view, so that compiled
        # code sees the same array type as in this process.
        # A worker that held large kernels is replaced by a fresh one between points; nothing is lost, so nobody need be told.
        with warnings.catch_warnings(), parallel_config(backend="loky", inner_max_num_threads=self.threads):
            warnings.filterwarnings(
                "ignore", message="A worker stopped while some jobs were given", category=UserWarning
            )
            results = Parallel(
                n_jobs=min(self.n_jobs, len(todo)),
                return_as="generator_unordered",
                mmap_mode="c",
                pre_dispatch="2*n_jobs",
            )(delayed(_indexed)(i, function, points[i], common, self.threads) for i in todo)
            yield from results

    def _compute_dask(self, function, points, todo, common):
        try:
            from distributed import Client, as_completed
        except ImportError:
            raise ImportError(
                "a scheduler was given, but dask is not installed: pip install 'cuelearn[dask]'"
            ) from None
        with Client(self.scheduler, set_as_default=False) as client, client.as_current():
            client.run(_limit_threads, self.threads)  # dask, unlike loky, does not tell its workers
            shared = {
                f"common_{name}": client.scatter(value, broadcast=True)
                if isinstance(value, np.ndarray)
                else value
                for name, value in common.items()
            }
            futures = [
                client.submit(_indexed_dask, i, function, points[i], self.threads, pure=False, **shared)
                for i in todo
            ]
            for future in as_completed(futures):
                yield future.result()
                future.release()


def _guarded(function, point, common, threads):
    try:
        return _call(function, {**point, **common}, threads)
    except Exception as error:
        name = getattr(function, "__qualname__", repr(function))
        raise RuntimeError(f"{name} failed at the point {point}: {type(error).__name__}: {error}") from error


def _indexed(i, function, point, common, threads):
    return (i, *_guarded(function, point, common, threads))


def _indexed_dask(i, function, point, threads, **common):
    return _indexed(
        i, function, point, {name.removeprefix("common_"): value for name, value in common.items()}, threads
    )


def _limit_threads(threads):
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        # numba refuses a changed value once its threads run; `single_threaded` limits those
        if not (name == "NUMBA_NUM_THREADS" and "numba" in sys.modules):
            os.environ[name] = str(threads)
