"""Files of values and models, without pickle."""

import json
import math
import os

import numpy as np
import pandas as pd
import pytest

from cuelearn.core import storage
from cuelearn.core.storage import atomic_write, pack, read_model, unpack
from cuelearn.kernels import RBF
from cuelearn.mkl import OBSCURE

X = np.random.default_rng(0).normal(size=(40, 3)) + np.eye(3)[np.arange(40) % 3]
VALUES = {
    "plain": {"a": [1, 2.5, None, True, "x", math.inf], "b": {"c": []}},
    "tuples": [(1, (2,)), ()],
    "keys": {1: "one", (2, "x"): "two", "__kind__": "three"},
    "objects": np.array([["a", None], [3, (1, 2)]], dtype=object),
    "no objects": np.array([], dtype=object),
    "numbers": [np.float32(1.1), np.int8(-3), np.complex128(1j), np.bool_(True), np.str_("word")],
    "arrays": [
        np.arange(6).reshape(2, 3),
        np.zeros((0, 4), np.float32),
        np.array(["ab", "c"]),
        np.array(2.0),
    ],
    "table": pd.DataFrame({"n": [1, 2], "x": [0.5, np.nan], "b": [True, False]}),
    "slices": [slice(None, 3), slice(1, -1, 2)],
    "a kernel": RBF(scale=np.float64(2.0)),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back(name):
    plain, arrays = pack(VALUES[name])
    found = unpack(json.loads(json.dumps(plain)), arrays)
    assert repr(found) == repr(VALUES[name]) and type(found) is type(VALUES[name])


@pytest.mark.parametrize(
    "value",
    [object(), len, {1, 2}, np.array(["2020"], dtype="M8[D]"), pd.DataFrame({"a": [1]}, index=[3]), range(3)],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_stored(value):
    with pytest.raises(TypeError, match=r"^the result\['x'\]\[0\] (is|has)"):
        pack({"x": [value]}, "the result")


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "new" / "file.txt"
    atomic_write(path, "old")

    def half(file):
        file.write(b"half of")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        atomic_write(path, half)
    assert path.read_text() == "old" and os.listdir(path.parent) == ["file.txt"]
    atomic_write(path, b"new")
    assert path.read_bytes() == b"new"


# --- what can go wrong with a model's file


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.npz"
    model = OBSCURE([("a", RBF(), [0, 1]), ("b", RBF(), [2])], random_state=0).fit(X, np.arange(40) % 3)
    model.save(path)
    return path.read_bytes(), model


def refused(path):
    with pytest.raises(
        ValueError, match=f"{path.name} is not a model of this version of cuelearn, or is damaged"
    ):
        read_model(path)


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.999])
def test_truncated_files_are_refused(kept, saved, tmp_path):
    path = tmp_path / "half.npz"
    path.write_bytes(saved[0][: int(kept * len(saved[0]))])
    refused(path)


def fitted_bank(head):
    return head["value"]["state"]["fitted"]["bank_"]["state"]


CHANGES = {
    "another format": lambda head, arrays: head.update(format=99),
    "no format": lambda head, arrays: head.pop("format"),
    "a function for a class": lambda head, arrays: head["value"].update(__kind__="cuelearn.mkl.base:load"),
    "a class that is imported": lambda head, arrays: head["value"].update(
        __kind__="cuelearn.core.storage:Path"
    ),
    "a class of others": lambda head, arrays: head["value"].update(__kind__="fractions:Fraction"),
    "an array missing": lambda head, arrays: arrays.pop("a3"),
    "a part of the bank missing": lambda head, arrays: fitted_bank(head).popitem(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_files_that_do_not_fit_are_refused(name, saved, tmp_path):
    source, path = tmp_path / "source.npz", tmp_path / "other.npz"
    source.write_bytes(saved[0])
    with np.load(source) as archive:
        arrays = {key: archive[key] for key in archive.files}
    head = json.loads(arrays.pop("header").tobytes())
    del arrays["sha256"]
    CHANGES[name](head, arrays)
    arrays["header"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    np.savez(path, sha256=storage._digest(arrays), **arrays)
    refused(path)
