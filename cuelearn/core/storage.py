"""Atomic files, and values in them without pickle."""

import dataclasses
import hashlib
import importlib
import json
import math
import os
import secrets
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator

from cuelearn.expect import expect_instance

# 4: kernels have scikit-learn's gamma, formerly a divisor.
FORMAT = 4
KIND = "__kind__"

#: Modules of classes that are not public, by those in older files.
MOVED = {
    "cuelearn.mms.dist": "cuelearn.mms.naming",
    "cuelearn.omcl.perceptron": "cuelearn.omcl.learners",
    "cuelearn.omcl.visits": "cuelearn.omcl.base",
}


def atomic_write(path, content, check=lambda temporary: None):
    """Write text, bytes, or the output of a function of a file, atomically; returns the path. If
    ``check(temporary)`` raises, a file at `path` stays as it was."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with open(temporary, "wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        check(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def pack(value, where="the value"):
    """A part for JSON, and arrays by name; `unpack` is the inverse.

    Named tuples, frozen dataclasses, and objects with ``_state()`` and ``_from_state(dict)`` must be of this
    package. TypeError, with the name `where`, for a value that needs pickle.
    """
    arrays = {}
    return _pack(value, arrays, where), arrays


def _pack(value, arrays, where):
    if value is None or isinstance(value, (bool, int, float, str)) and not isinstance(value, np.generic):
        return value
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        items = [_pack(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]
        if isinstance(value, list):
            return items
        return {KIND: "tuple", "items": items}
    if isinstance(value, dict):
        if all(isinstance(key, str) and key != KIND for key in value):
            return {key: _pack(item, arrays, f"{where}[{key!r}]") for key, item in value.items()}
        return {KIND: "dict", "items": _pack([list(pair) for pair in value.items()], arrays, where)}
    if isinstance(value, (np.ndarray, np.generic)):
        return _pack_array(value, arrays, where)
    if isinstance(value, type) and issubclass(value, np.generic):
        return {KIND: "dtype", "name": np.dtype(value).name}
    if isinstance(value, slice):
        return {KIND: "slice", "items": _pack([value.start, value.stop, value.step], arrays, where)}
    if issparse(value):
        value = value.tocsr()
        parts = [value.data, value.indices, value.indptr, value.shape]
        return {KIND: "csr", "items": _pack(parts, arrays, where)}
    if isinstance(value, pd.DataFrame):
        return _pack_frame(value, arrays, where)
    kind, state = _state_of(value, where)
    return {KIND: kind, "state": _pack(state, arrays, f"{type(value).__name__} in {where}")}


def _pack_array(value, arrays, where):
    if value.dtype == object:
        return {KIND: "objects", "shape": list(value.shape), "items": _pack(list(value.flat), arrays, where)}
    if value.dtype.kind not in "biufcUS":
        raise TypeError(f"{where} has dtype {value.dtype}, which cannot be saved without pickle")
    name = next((name for name, held in arrays.items() if held is value), f"a{len(arrays)}")
    arrays[name] = np.asarray(value)
    return {KIND: "scalar" if isinstance(value, np.generic) else "array", "at": name}


def _pack_frame(value, arrays, where):
    if not isinstance(value.index, pd.RangeIndex) or value.index.start != 0 or value.index.step != 1:
        raise TypeError(f"{where} is a DataFrame with a custom index: make it a column by reset_index()")
    columns = []
    for name, column in value.items():
        expect_instance(f"a column's name in {where}", name, str)
        plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufc"
        column = column.to_numpy() if plain else [None if pd.isna(item) else item for item in column]
        columns.append([name, _pack(column, arrays, f"{where}.{name}")])
    return {KIND: "frame", "rows": len(value), "columns": columns}


def _state_of(value, where):
    cls = type(value)
    kind = f"{cls.__module__}:{cls.__qualname__}"
    if cls.__module__.startswith("cuelearn.") and "<" not in kind:
        if hasattr(cls, "_from_state"):
            return kind, value._state()
        if hasattr(cls, "_fields"):
            return kind, value._asdict()
        if dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen:
            return kind, {field.name: getattr(value, field.name) for field in dataclasses.fields(cls)}
    if _is_transformer(cls):
        return kind, dict(vars(value))
    raise TypeError(f"{where} is a {cls.__name__}, which cannot be saved without pickle")


def _is_transformer(cls):
    """Whether it is a class of scikit-learn such as those in a `FeatureMap`."""
    own = cls.__module__.startswith("sklearn.") and "<" not in cls.__qualname__
    return own and issubclass(cls, BaseEstimator) and hasattr(cls, "transform")


def unpack(plain, arrays):
    if isinstance(plain, list):
        return [unpack(item, arrays) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if KIND not in plain:
        return {key: unpack(item, arrays) for key, item in plain.items()}
    kind = plain[KIND]
    if kind == "array":
        return arrays[plain["at"]]
    if kind == "scalar":
        return arrays[plain["at"]][()]
    if kind == "dtype":
        return np.dtype(plain["name"]).type
    if kind == "frame":
        columns = {name: unpack(column, arrays) for name, column in plain["columns"]}
        return pd.DataFrame(columns, index=pd.RangeIndex(plain["rows"]))
    if "state" in plain:
        return _from_state(kind, unpack(plain["state"], arrays))
    items = unpack(plain["items"], arrays)
    if kind == "csr":
        matrix = csr_array(tuple(items[:3]), shape=items[3])
        matrix.check_format()
        return matrix
    if kind == "objects":
        return np.fromiter(items, dtype=object, count=len(items)).reshape(plain["shape"])
    if kind == "slice":
        return slice(*items)
    return {"tuple": tuple, "dict": dict}[kind](items)


def _class_of(kind):
    """The class that a file names by "module:name", or None; a public one is looked up in its package."""
    module, _, name = kind.partition(":")
    if module.startswith("sklearn."):
        cls = getattr(importlib.import_module(module), name, None)
        if isinstance(cls, type) and _is_transformer(cls):
            return cls
    if not module.startswith("cuelearn."):
        return None
    package = importlib.import_module(".".join(module.split(".")[:2]))
    if name in getattr(package, "__all__", ()):
        return getattr(package, name)
    cls = importlib.import_module(MOVED.get(module, module))
    for part in name.split("."):
        cls = getattr(cls, part)
    return cls


def _from_state(kind, state):
    """An object of this package; floats of objects that are not estimators must be finite."""
    cls = _class_of(kind)
    if cls is not None and cls.__module__.startswith("sklearn."):
        transformer = cls.__new__(cls)
        vars(transformer).update(state)
        return transformer
    plain = isinstance(cls, type) and (hasattr(cls, "_fields") or dataclasses.is_dataclass(cls))
    if not (plain or hasattr(cls, "_from_state")):
        raise ValueError(f"{kind} is not a class of this package that is saved")
    arrays = () if hasattr(cls, "fit") else [v.data if issparse(v) else v for v in state.values()]
    arrays = [array for array in arrays if isinstance(array, np.ndarray)]
    if not all(np.isfinite(array).all() for array in arrays if array.dtype.kind == "f"):
        raise ValueError(f"a {cls.__name__} with NaN or infinite numbers")
    if hasattr(cls, "_from_state"):
        return cls._from_state(state)
    return cls(**state)


def _digest(arrays):
    checksum = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        checksum.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        checksum.update(np.ascontiguousarray(array).data)
    return np.frombuffer(checksum.digest(), dtype=np.uint8)


def _write_npz(file, value, where):
    plain, arrays = pack(value, where)
    header = json.dumps({"format": FORMAT, "value": plain}).encode()
    arrays["header"] = np.frombuffer(header, dtype=np.uint8)
    np.savez_compressed(file, sha256=_digest(arrays), **arrays)


def _read_npz(path, memory):
    with zipfile.ZipFile(path) as archive:  # unpacks at most file_size of a member
        size = sum(member.file_size for member in archive.infolist())
    if size > memory:
        raise ValueError(f"it unpacks to {size:,} bytes, more than memory={memory:g}")
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    digest = arrays.pop("sha256", None)
    header = json.loads(arrays["header"].tobytes())
    if header["format"] != FORMAT:
        raise ValueError(f"its format is {header['format']}, not {FORMAT}: fit the model again")
    if not np.array_equal(digest, _digest(arrays)):
        raise ValueError("its content does not match its sha256")
    return unpack(header["value"], arrays)


def write_model(path, model, try_out=lambda model: None):
    """Write a model to an .npz file; ValueError, and no change of the file, if it cannot be read again or
    ``try_out`` raises."""

    def check(temporary):
        try:
            try_out(_read_npz(temporary, math.inf))
        except Exception as error:
            raise ValueError(f"the {type(model).__name__} was not saved, it is damaged: {error}") from error

    atomic_write(path, lambda file: _write_npz(file, model, "the model"), check)


def read_model(path, memory=4e9, try_out=lambda model: None):
    """ValueError if the file is damaged or too large, or ``try_out`` raises."""
    try:
        model = _read_npz(path, memory)
        try_out(model)
        return model
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(
            f"{os.fspath(path)} is not a model of this version of cuelearn, or is damaged: {error}"
        ) from error
