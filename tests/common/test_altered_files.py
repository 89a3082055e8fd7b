"""Saved models that were altered: refused by name, never a wrong score or an IndexError later."""

import json

import numpy as np
import pytest
from estimators import ESTIMATORS, attached, outputs

from cuelearn.core import storage
from cuelearn.core.estimator import load


def altered(array):
    """What an array may be after a hand has been at it: cut, turned, with NaN, with numbers out of range."""
    if array.ndim and len(array):
        yield array[:-1]
    if array.ndim > 1 and array.shape[-1]:
        yield array[..., :-1]
    if array.ndim == 2:
        yield array.T
    for kinds, value in (("f", np.nan), ("i", 10**6), ("i", -(10**6))):
        if array.size and array.dtype.kind in kinds:
            changed = array.copy()
            changed.flat[0] = value
            yield changed


def arrays_of(path):
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_other_arrays_are_refused_or_harmless(name, fitted, tmp_path):
    """With the sum as it was, each is refused; with a sum of its own, what `predict` cannot take is."""
    model, X, given = fitted(name)
    path, n_refused = tmp_path / "model.npz", 0
    model.save(path)
    arrays = arrays_of(path)
    arrays.pop("sha256")
    plain = json.loads(arrays.pop("header").tobytes())["value"]
    for key, array in arrays.items():
        for changed in altered(array):
            try:
                found = storage.unpack(plain, {**arrays, key: changed})
                found._try_out()
            except Exception:
                n_refused += 1
                continue
            for scores in outputs(attached(found, model), name, X, given):
                assert scores.dtype.kind != "f" or not np.isnan(scores).any(), key
    assert n_refused >= 5


def test_nothing_is_unpacked_that_is_too_large(tmp_path, monkeypatch):
    path = tmp_path / "large.npz"
    np.savez_compressed(path, header=np.zeros(10**8, np.uint8))
    monkeypatch.setattr(np, "load", None)
    assert path.stat().st_size < 10**6
    with pytest.raises(
        ValueError, match=r"large\.npz .* unpacks to 100,000,128 bytes, more than memory=1e\+07"
    ):
        load(path, memory=1e7)
