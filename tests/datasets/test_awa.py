"""Animals with Attributes: from a small file of its layout, and from the real one where it is."""

import os
from pathlib import Path

import numpy as np
import pytest

from cuelearn import datasets
from cuelearn.datasets import AWA_TEST_CLASSES, DataFileError, load_awa

REAL = Path(os.environ.get("CUELEARN_DATA", "/nowhere"))
NAMES = [*(name.replace(" ", "+") for name in AWA_TEST_CLASSES), *(f"other+{k}" for k in range(40))]
WIDTHS = {"phog": 3, "surf": 5, "rgsift": 4, "lss": 2}


def small_awa(**changes):
    """Arrays of two images per class; an entry of None is left out."""
    rng = np.random.default_rng(0)
    arrays = {cue: rng.dirichlet(np.ones(width), 100).astype(np.float16) for cue, width in WIDTHS.items()}
    arrays |= {"y": np.repeat(np.arange(50), 2).astype(np.uint8), "classes": np.array(NAMES)} | changes
    return {name: array for name, array in arrays.items() if array is not None}


def test_a_small_file(tmp_path, monkeypatch):
    arrays = small_awa()
    np.savez(tmp_path / "awa_subset.npz", **arrays)
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path))
    for data in (load_awa(tmp_path), datasets.load_original("awa")):
        assert data.X.shape == (100, 14) and data.X.dtype == np.float32
        assert data.y.dtype == np.int64 and np.array_equal(data.y, arrays["y"])
        assert list(data.cues) == ["phog", "surf", "rgsift", "lss"]
        for cue, columns in data.cues.items():
            assert np.array_equal(data.X[:, columns], arrays[cue].astype(np.float32))
        assert (
            data.train is None
            and data.test is None
            and len(data.feature_names) == 14
            and data.feature_names[3] == "surf 0"
        )
        assert data.target_names[:10] == list(AWA_TEST_CLASSES) and data.target_names[10] == "other 0"
        assert (
            data.provenance.name == "awa"
            and data.provenance.tier == "original"
            and len(data.provenance.sha256) == 64
        )


def test_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path))
    with pytest.raises(DataFileError, match="'awa' was not found"):
        datasets.load_original("awa")
    (tmp_path / "awa").mkdir()
    with pytest.raises(DataFileError, match=r"awa_subset\.npz is missing"):
        datasets.load_original("awa")
    np.savez_compressed(tmp_path / "awa" / "awa_subset.npz", **small_awa())
    assert datasets.load_original("awa").X.shape == (100, 14)


def nan_in(cue, value=np.nan):
    block = small_awa()[cue].copy()
    block[7, 1] = value
    return {cue: block}


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"surf": None}, r"does not hold Animals with Attributes in the expected form \(.*surf"),
        ({"y": None}, "does not hold Animals with Attributes"),
        ({"classes": None}, "does not hold Animals with Attributes"),
        ({"classes": np.array(NAMES, dtype=object)}, "does not hold Animals with Attributes"),  # pickled
        ({"lss": np.ones((99, 2), np.float16)}, "must hold one row per image in each cue"),
        ({"lss": np.ones(100, np.float16)}, "must hold one row per image in each cue"),
        ({"lss": np.ones((100, 0), np.float16)}, "must hold one row per image in each cue"),
        ({"y": np.zeros((100, 1), int)}, "one class per image"),
        (nan_in("phog"), "finite floats and none negative; phog is not"),
        (nan_in("rgsift", np.inf), "rgsift is not"),
        (nan_in("surf", -0.5), "surf is not"),
        ({"phog": np.full((100, 3), "a")}, "phog is not"),
        ({"classes": np.array(NAMES[:49])}, "must name 50 different classes, .* got 49"),
        ({"classes": np.array([*NAMES[:49], NAMES[0]])}, "must name 50 different classes, .* got 49"),
        ({"classes": np.array(["okapi", *NAMES[1:]])}, "the ten test classes among them"),
        ({"y": np.repeat(np.arange(50), 2) % 49}, "class from 0 to 49 and every class an image"),
        ({"y": np.repeat(np.arange(50), 2) + 1}, "class from 0 to 49"),
        ({"y": np.repeat(np.arange(50), 2) + 0.5}, "class from 0 to 49"),
    ],
)
def test_files_that_are_not(tmp_path, changes, words):
    np.savez(tmp_path / "awa_subset.npz", **small_awa(**changes))
    with pytest.raises(DataFileError, match=words) as caught:
        load_awa(tmp_path)
    assert "awa_subset.npz" in str(caught.value) and "\n" not in str(caught.value)


def test_damaged_files(tmp_path):
    file = tmp_path / "awa_subset.npz"
    np.savez(file, **small_awa())
    whole = file.read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) // 3] ^= 255
    for content in (b"", b"nothing", whole[:-50], whole[: len(whole) // 2], bytes(damaged)):
        file.write_bytes(content)
        with pytest.raises(DataFileError, match=r"awa_subset\.npz does not hold Animals with Attributes"):
            load_awa(tmp_path)
    np.save(tmp_path / "one.npy", np.ones(3))
    file.write_bytes((tmp_path / "one.npy").read_bytes())  # an array where an archive is expected
    with pytest.raises(DataFileError, match="does not hold"):
        load_awa(tmp_path)


@pytest.mark.skipif(
    not any((REAL / place / "awa_subset.npz").is_file() for place in ("", "awa")), reason="AwA is not there"
)
def test_the_real_awa():
    data = datasets.load_original("awa")
    assert data.X.shape == (3000, 6252) and {cue: c.stop - c.start for cue, c in data.cues.items()} == {
        "phog": 252,
        "surf": 2000,
        "rgsift": 2000,
        "lss": 2000,
    }
    images = dict(zip(data.target_names, np.bincount(data.y).tolist(), strict=False))
    assert {name for name, n in images.items() if n == 100} == set(AWA_TEST_CLASSES)
    assert sorted(images.values()) == [50] * 40 + [100] * 10
    for columns in data.cues.values():
        assert np.allclose(data.X[:, columns].sum(axis=1, dtype=np.float64), 1.0, atol=1e-3)
