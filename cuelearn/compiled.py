"""Compiled functions: decorators, files with a checksum, notices of what is being compiled."""

import functools
import hashlib
import multiprocessing
import os
import pickle
import sys
from pathlib import Path
from time import perf_counter
from types import FunctionType

import numba
from numba.core.caching import IndexDataCacheFile
from numba.core.event import Listener, register
from numba.extending import register_jitable

from cuelearn.expect import warn_user

#: Bytes of a checksum.
LENGTH = hashlib.sha256().digest_size


class SoundFiles(IndexDataCacheFile):
    """Index and code files that begin with the checksum of what follows.

    Damaged code crashes the process. Here such a file is removed with a warning, and its function compiled
    again.
    """

    announced = False

    def _dump(self, obj):
        content = super()._dump(obj)
        return hashlib.sha256(content).digest() + content

    def _load_index(self):
        path = Path(self._index_path)
        try:
            with open(path, "rb") as file:
                version = pickle.load(file)
                content = file.read()
            if version != self._version:
                return {}
            stamp, overloads = pickle.loads(_checked(content))
        except FileNotFoundError:
            return {}
        except Exception as error:  # pickle raises almost any
            self._discard(path, error)
            return {}
        if stamp == self._source_stamp:
            return overloads
        return {}

    def _load_data(self, name):
        path = Path(self._data_path(name))
        try:
            return pickle.loads(_checked(path.read_bytes()))
        except OSError:
            raise
        except Exception as error:
            self._discard(path, error)
            return None

    def save(self, key, data):
        try:
            super().save(key, data)
        except OSError as error:  # a full disk
            self._announce(f"compiled code is not kept, it cannot be written: {error}")

    def _discard(self, path, error):
        try:
            path.unlink(missing_ok=True)
        except OSError as refused:
            raise OSError(
                f"compiled code in {path.parent} is damaged ({error}) and cannot be removed ({refused}): "
                "remove that folder, or set the environment variable NUMBA_CACHE_DIR to another one"
            ) from error
        self._announce(f"damaged files of compiled code in {path.parent} are removed and compiled again")

    def _announce(self, message):
        if not SoundFiles.announced:
            SoundFiles.announced = True
            warn_user(message)


def _checked(content):
    if hashlib.sha256(content[LENGTH:]).digest() != content[:LENGTH]:
        raise ValueError("its checksum is wrong")
    return content[LENGTH:]


def njit(function=None, **options):
    """numba's `njit`; code that it keeps on disk has a checksum."""
    if function is None:
        return lambda function: njit(function, **options)
    compiled = numba.njit(**options)(function)
    if options.get("cache"):
        compiled._cache._cache_file.__class__ = SoundFiles
    return compiled


#: Called from Python. It makes no arrays: without reference counting a loop takes a third of the time.
loop = njit(cache=True, _nrt=False, no_cfunc_wrapper=True)


def inner(function=None, **options):
    """Called by compiled functions only: without a wrapper for Python, where it runs uncompiled; no new
    arrays."""
    decorate = register_jitable(_nrt=False, no_cfunc_wrapper=True, **options)
    if function is None:
        return decorate
    return decorate(function)


@functools.cache
def with_steps(function, steps, compiled=loop):
    """A compiled function with `steps`, a tuple of functions, in place of those of these names, also in
    others that it calls. Both forms share a file of code, where the types of arguments differ."""
    names = {**function.py_func.__globals__, **{step.__name__: step for step in steps}}
    for name in set(function.py_func.__code__.co_names) & names.keys():
        inner = getattr(names[name], "py_func", None)
        if inner and names[name] not in steps and {s.__name__ for s in steps} & set(inner.__code__.co_names):
            names[name] = with_steps(names[name], steps, inlined)
    copied = FunctionType(function.py_func.__code__, names, function.__name__)
    copied.__module__ = function.__module__
    return compiled(copied)


#: For functions with one caller: one level less at which all that they call is compiled again.
inlined = njit(inline="always", _nrt=False, no_cfunc_wrapper=True)


#: Seconds of compilation from one notice to the next.
PATIENCE = 3.0


class CompilationNotice(Listener):
    """Names the function of this package that is being compiled, every `PATIENCE` seconds of compilation.

    It looks at the clock when a function begins or ends, also one that is called by the named one. In a
    notebook it prints to stdout, since Jupyter shows stderr in red. The listener stays registered, because
    numba iterates over its listeners while it notifies them.
    """

    def __init__(self):
        self.names = []  # a function and those that it calls
        self.began = 0.0
        self.seconds = 0.0  # of finished functions
        self.announced = 0.0  # seconds at the last notice

    def on_start(self, event):
        dispatcher = event.data["dispatcher"]
        module = getattr(dispatcher, "__module__", None)
        if not self.names:
            self.began = perf_counter()
        self.names.append(f"{module}.{getattr(dispatcher, '__name__', '')}")
        self.tell()

    def on_end(self, event):
        seconds = self.tell()
        self.names.pop()
        if not self.names:
            self.seconds = seconds

    def tell(self):
        """Seconds so far, after a notice if it is due."""
        if not self.names[0].startswith("cuelearn."):
            return self.seconds
        seconds = self.seconds + perf_counter() - self.began
        if seconds >= self.announced + PATIENCE:
            self.announced = seconds
            message = f"compiling {self.names[0]}, kept on disk for the next start; {seconds:.0f} s so far"
            in_notebook = "ipykernel" in sys.modules
            print(f"cuelearn: {message}", file=sys.stdout if in_notebook else sys.stderr, flush=True)
        return seconds


# not in workers, and not in notebooks run by `make figures`
if multiprocessing.parent_process() is None and "CUELEARN_RUN" not in os.environ:
    register("numba:compile", CompilationNotice())
