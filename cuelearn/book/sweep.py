"""Sweeps: one function evaluated at many points, each finished point kept on disk.

Points are independent, so they run in parallel; a run that is killed goes on where it was. joblib.Memory is
not enough here: it keys on a function's own text and stores where it computes. Here the key holds the
package's sources and the checksums of the data, and what workers of a Dask cluster computed is stored by the
process that asked.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import pickle
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import cuelearn
from cuelearn.core.progress import BAR_AFTER
from cuelearn.core.storage import atomic_write

__all__ = ["Sweep", "clean_temporaries", "file_lock", "progress_bar"]

#: Modules whose text has no influence on what a sweep computes.
PRESENTATION = ("__init__.py", "book/", "plots/")
#: Version of the storage format; part of every key, so that files of an older format are recomputed, not
#: misread.
FORMAT = 2


def clean_temporaries(directory):
    """Remove the temporary files of `atomic_write` that killed processes left in `directory`."""
    for file in Path(directory).glob(".*.tmp-*"):
        try:
            os.kill(int(file.name.rsplit(".tmp-", 1)[1].split("-")[0]), 0)
        except (ValueError, ProcessLookupError):
            file.unlink(missing_ok=True)
        except OSError:  # alive and not ours
            pass


@contextlib.contextmanager
def file_lock(path, waiting=lambda: None):
    """Hold an exclusive lock on the file `path`; it is freed with the process, however that ends.

    Parameters
    ----------
    path : str or Path
        The lock file. It stays, empty.
    waiting : callable
        Called without arguments, once, if another process holds the lock.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as file:
        try:
            import fcntl
        except ImportError:  # Windows: runs there are not guarded against each other
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


class _Relay(contextlib.AbstractContextManager):
    """Stands in for a bar in an executed notebook: tells the runner, leaves nothing in the output."""

    def __init__(self, path, total, desc):
        self.path, self.total, self.desc, self.n, self.told = Path(path), total, desc, 0, 0.0

    def update(self, n=1):
        self.n += n
        if time.monotonic() - self.told > 0.2:
            self.told = time.monotonic()
            atomic_write(self.path, f"{self.desc} {self.n}/{self.total}")

    def __exit__(self, *error):
        self.path.unlink(missing_ok=True)


def progress_bar(total, desc, progress=True):
    """A bar for `total` steps that appears when the work takes more than two seconds.

    On a terminal and in a notebook that is open before a reader it is a tqdm bar; under the runner (which
    sets ``CUELEARN_PROGRESS``) it reports to the runner's own bar; where output goes to a file it prints a
    line every 30 seconds.
    """
    from tqdm.auto import tqdm

    relay = os.environ.get("CUELEARN_PROGRESS")
    if progress and relay:
        return _Relay(relay, total, desc)
    interval = 0.2 if sys.stderr.isatty() or "ipykernel" in sys.modules else 30
    return tqdm(
        total=total, desc=desc, disable=not progress, delay=BAR_AFTER, leave=False, mininterval=interval
    )


# --- what identifies a point --------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def sources():
    """Fingerprint of the sources that can change a result, read once: what was imported is what runs."""
    return cuelearn.source_hash(leave_out=PRESENTATION)


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
        f"{where} is a {type(value).__name__}: the parameters of a point must be numbers, text, "
        "lists or dicts of these; hand arrays over through common="
    )


def _identity(function):
    """Name, text and bound arguments of a function: what its results depend on besides the point."""
    bound = []
    while isinstance(function, partial):
        bound.append(_plain([function.args, function.keywords], "a bound argument"))
        function = function.func
    if getattr(function, "__closure__", None):
        raise ValueError(
            f"function {function.__qualname__} closes over {', '.join(function.__code__.co_freevars)}, "
            "whose values the cache cannot see: pass them in the points"
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


# --- one point ----------------------------------------------------------------------------------------------


def _evaluate(i, function, point, common, threads):
    """(i, pickled result, seconds) of one point; BLAS, OpenMP and numba use at most `threads` threads."""
    import numba
    from threadpoolctl import threadpool_limits

    before = numba.get_num_threads()
    numba.set_num_threads(max(1, min(threads, numba.config.NUMBA_NUM_THREADS)))
    try:
        with threadpool_limits(limits=threads):
            start = time.perf_counter()
            result = function(**{**point, **common})
            return i, pickle.dumps(result, protocol=5), time.perf_counter() - start
    except Exception as error:
        name = getattr(function, "__qualname__", repr(function))
        raise RuntimeError(f"{name} failed at the point {point}: {type(error).__name__}: {error}") from error
    finally:
        numba.set_num_threads(before)


def _evaluate_for_dask(i, function, point, threads, **common):
    """As `_evaluate`; Dask replaces what it has scattered only among the arguments themselves."""
    return _evaluate(
        i, function, point, {name.removeprefix("common_"): v for name, v in common.items()}, threads
    )


def _limit_threads(threads):
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        # numba refuses a changed value once its threads run
        if not (name == "NUMBA_NUM_THREADS" and "numba" in sys.modules):
            os.environ[name] = str(threads)


def _save(file, key, result, seconds):
    body = zlib.compress(pickle.dumps((key, result, seconds)))
    atomic_write(file, hashlib.sha256(body).digest() + body)


def load(file, key):
    """(result, seconds) stored under `key`; None if the file is absent, damaged or of another key."""
    try:
        content = Path(file).read_bytes()
        if hashlib.sha256(content[32:]).digest() != content[:32]:
            return None
        stored, result, seconds = pickle.loads(zlib.decompress(content[32:]))
        return (pickle.loads(result), seconds) if stored == key else None
    except Exception:  # whatever is wrong with it: it is computed anew, never trusted
        return None


# --- the sweep ----------------------------------------------------------------------------------------------


class Sweep:
    """One function at many points: in parallel, resumable, with a progress bar.

    Parameters
    ----------
    cache_dir : str or Path or None
        Directory of the stored points. None: ``$CUELEARN_CACHE/sweeps``, or ``.cache/sweeps`` of the
        checkout.
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
        Threads that BLAS and numba may use within one point. The default gives the same bits for any
        `n_jobs`.

    Attributes
    ----------
    n_computed_, n_cached_ : int
        Points computed by, and found before, the last `run`.
    seconds_ : list of float
        Wall time of each point of the last `run`, in the order of the points, as measured when it was
        computed.

    Notes
    -----
    A point is stored as soon as it is finished, under a key made of the function's name and text, the point's
    parameters, the sources of this package (without its presentation), the checksums of the data given, and
    the versions of NumPy, SciPy, scikit-learn and numba. If any of them changes, it is computed anew; so is a
    damaged file. A result is read back from storage even when it was just computed, so a first and a second
    run return equal objects.

    Wall times measured inside points are comparable only with ``n_jobs=1``: parallel points share caches and
    memory bandwidth.

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
        self.n_jobs = n_jobs
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
            Defined at the top level of a module (or a `functools.partial` of such a function) and without
            side effects. It is called as ``function(**point, **common)``; what it returns is pickled.
        points : sequence of dict
            Parameters of each point: numbers, text, and lists or dicts of these.
        common : dict, optional
            Further arguments, the same for all points, of any kind (arrays too). They are not part of the
            key: `data` must identify them.
        data : sequence
            Of the data that the results depend on: checksums (or other identifying text), or the data sets or
            their ``provenance`` records.

        Returns
        -------
        list
            What `function` returned, in the order of `points`.

        Raises
        ------
        TypeError, ValueError
            If a point cannot be identified, or `common` is given without `data`.
        RuntimeError
            If `function` raises; the message names the point, and the points finished before are kept.
        """
        points = [dict(point) for point in points]
        alone = isinstance(data, str) or hasattr(data, "_asdict") or hasattr(data, "provenance")
        data = [_data_identity(item) for item in ([data] if alone else data)]
        if common and not data:
            raise ValueError(
                "common is given without data: pass the checksums that identify it, "
                "else stale results would be reused"
            )
        keys = [self._key(function, point, data) for point in points]
        files = [self.directory / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.pkl" for key in keys]
        clean_temporaries(self.directory)
        found = {key: load(file, key) for key, file in dict(zip(keys, files, strict=True)).items()}
        first = dict(
            zip(reversed(keys), reversed(range(len(keys))), strict=True)
        )  # equal points are computed once
        todo = [i for key, i in sorted(first.items(), key=lambda item: item[1]) if found[key] is None]
        self.n_computed_, self.n_cached_ = len(todo), sum(found[key] is not None for key in keys)
        with progress_bar(len(todo), self.name, self.progress and bool(todo)) as bar:
            for i, result, seconds in self._compute(function, points, todo, dict(common or {})):
                _save(files[i], keys[i], result, seconds)
                found[keys[i]] = pickle.loads(result), seconds
                bar.update(1)
        shown = [found[key] if first[key] == i else load(files[i], key) for i, key in enumerate(keys)]
        self.seconds_ = [seconds for _, seconds in shown]
        return [result for result, _ in shown]

    def frame(self, function, points, **kwargs):
        """Like `run`, but one DataFrame: a row for each point, its parameters, then its results as columns.

        Where the result is a DataFrame itself (or a dict of columns that are arrays of one length), it gives
        as many rows.
        """
        parts = []
        for point, result in zip(points, self.run(function, points, **kwargs), strict=True):
            if isinstance(result, pd.DataFrame):
                rows = result
            elif not isinstance(result, Mapping):
                rows = pd.DataFrame([{"value": result}])
            else:
                rows = pd.DataFrame(result if any(np.ndim(v) for v in result.values()) else [result])
            parameters = {k: [v] * len(rows) for k, v in point.items() if k not in rows}
            parts.append(pd.concat([pd.DataFrame(parameters, index=rows.index), rows], axis=1))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def _key(self, function, point, data):
        parts = {
            "format": FORMAT,
            **_identity(function),
            "point": {name: _plain(point[name], f"parameter {name!r} of a point") for name in sorted(point)},
            "sources": sources(),
            "data": sorted(data),
            "threads": self.threads,
            "versions": {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")},
        }
        return json.dumps(parts, sort_keys=True)

    def _compute(self, function, points, todo, common):
        """Yield (index, pickled result, seconds) as points finish, in any order."""
        if not todo:
            return
        if self.scheduler:
            yield from self._compute_dask(function, points, todo, common)
            return
        if self.n_jobs == 1 or len(todo) == 1:
            for i in todo:
                yield _evaluate(i, function, points[i], common, self.threads)
            return
        from joblib import Parallel, delayed, effective_n_jobs, parallel_config

        # mmap_mode "c": workers share large arrays without copying them, and may still write to their own
        # view, so that compiled code sees the same array type as in this process. A worker that held large
        # kernels is replaced by a fresh one between points; nothing is lost, so nobody need be told.
        with warnings.catch_warnings(), parallel_config(backend="loky", inner_max_num_threads=self.threads):
            warnings.filterwarnings(
                "ignore", message="A worker stopped while some jobs were given", category=UserWarning
            )
            workers = min(effective_n_jobs(self.n_jobs), len(todo))
            pool = Parallel(workers, return_as="generator_unordered", mmap_mode="c", pre_dispatch="2*n_jobs")
            yield from pool(delayed(_evaluate)(i, function, points[i], common, self.threads) for i in todo)

    def _compute_dask(self, function, points, todo, common):
        try:
            from distributed import Client, as_completed
        except ImportError:
            raise ImportError(
                "a scheduler was given, but dask is not installed: pip install 'cuelearn[dask]'"
            ) from None
        with Client(self.scheduler, set_as_default=False) as client, client.as_current():
            client.run(_limit_threads, self.threads)  # dask, unlike loky, does not tell its workers
            shared = {f"common_{name}": value for name, value in common.items()}
            for name, value in shared.items():
                if isinstance(value, np.ndarray):
                    shared[name] = client.scatter(value, broadcast=True)
            futures = [
                client.submit(_evaluate_for_dask, i, function, points[i], self.threads, pure=False, **shared)
                for i in todo
            ]
            for future in as_completed(futures):
                yield future.result()
                future.release()
