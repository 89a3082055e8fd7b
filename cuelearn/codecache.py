"""numba's files of compiled code, with a checksum: damaged ones are compiled anew."""

import hashlib
import pickle
from pathlib import Path

import numba
from numba.core.caching import IndexDataCacheFile

from cuelearn.warn import warn_user

__all__ = ["njit"]

#: Bytes of a checksum.
LENGTH = hashlib.sha256().digest_size


class SoundFiles(IndexDataCacheFile):
    """Index and code files that begin with the checksum of what follows.

    A killed job or a full disk leaves files that numba cannot read, and bytes changed within code crash the
    process. Here a damaged file is removed with a warning, and its function compiled again.
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
