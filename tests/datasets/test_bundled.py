"""Bundled data."""

import functools
import json
import shutil

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cuelearn import datasets
from cuelearn.datasets import DataFileError
from cuelearn.datasets.base import data_file
from cuelearn.datasets.tables import redraw_pen_points

REGISTRY = json.loads(data_file("datasets.json").read_text(encoding="utf-8"))

# Loader: shape of X, number of classes or labels, sizes of the official parts.
SIZES = {
    "load_htad": ((1386, 52), 7, None),
    "load_leaves": ((1600, 192), 100, None),
    "load_letter": ((20000, 16), 26, (15000, 5000)),
    "load_mfeat": ((2000, 649), 10, None),
    "load_mnist": ((70000, 784), 10, (60000, 10000)),
    "load_pendigits": ((10992, 352), 10, (7494, 3498)),
    "load_satimage": ((6435, 36), 6, (4435, 2000)),
    "load_yeast": ((2417, 103), 14, (1500, 917)),
}


@functools.cache
def load(name):
    return getattr(datasets, name)()


@pytest.fixture(params=sorted(SIZES))
def loaded(request):
    return request.param, load(request.param)


@pytest.fixture
def copied(tmp_path, monkeypatch):
    for file in ("datasets.json", "satimage.npz"):
        shutil.copy(data_file(file), tmp_path / file)
    monkeypatch.setenv("CUELEARN_BUNDLED", str(tmp_path))
    return tmp_path


def test_sizes_types_and_names(loaded):
    name, data = loaded
    shape, n_classes, _ = SIZES[name]
    assert data.X.shape == shape and data.X.flags.c_contiguous
    assert data.X.dtype == (np.float32 if name in ("load_mnist", "load_pendigits") else np.float64)
    assert np.isfinite(data.X).all()
    assert len(data.y) == len(data.X)
    assert len(data.target_names) == len(set(data.target_names)) == n_classes
    assert len(data.feature_names) == len(set(data.feature_names)) == shape[1]
    if name == "load_yeast":
        assert data.y.shape == (2417, 14) and data.y.dtype == np.int8
    else:
        assert data.y.dtype == np.int64
        assert_array_equal(np.unique(data.y), np.arange(n_classes))


def test_split_is_a_partition(loaded):
    name, data = loaded
    parts = SIZES[name][2]
    if parts is None:
        assert data.train is None and data.test is None
        return
    assert (len(data.train), len(data.test)) == parts
    assert_array_equal(np.sort(np.concatenate([data.train, data.test])), np.arange(len(data.X)))
    assert (np.diff(data.train) > 0).all() and (np.diff(data.test) > 0).all()
    for part, counts in REGISTRY[name.removeprefix("load_")]["counts"].items():  # as published
        labels = data.y[{"all": slice(None), "train": data.train, "test": data.test}[part]]
        found = labels.sum(axis=0) if labels.ndim == 2 else np.bincount(labels)
        assert found.tolist() == counts


def test_mnist_first_images_are_those_of_the_whole():
    few, whole = datasets.load_mnist(n_train=30, n_test=20), load("load_mnist")
    assert_array_equal(few.X[few.train], whole.X[:30])
    assert_array_equal(few.X[few.test], whole.X[60000:60020])
    assert_array_equal(few.y, np.concatenate([whole.y[:30], whole.y[60000:60020]]))
    with pytest.raises(ValueError, match="n_train must be an integer from 0 to 60000"):
        datasets.load_mnist(n_train=60001)


def test_mnist_blocks_are_quarters_of_the_image():
    data = load("load_mnist")
    with np.load(data_file("mnist.npz")) as archive:
        image = archive["train_images"][7]
    restored = np.empty(784, dtype=np.float32)
    restored[data.pixels] = data.X[7]
    assert_allclose(restored.reshape(28, 28), image / 255, atol=1e-7)
    assert_allclose(data.X[7, data.cues["bottom left"]].reshape(14, 14), image[14:, :14] / 255, atol=1e-7)
    assert all(cue.stop - cue.start == 196 for cue in data.cues.values())
    assert 0 <= data.X.min() and data.X.max() == 1


def test_redraw_equals_a_plain_loop():
    points = load("load_pendigits").X[:3, :16].astype(float)
    size = 16
    expected = np.zeros((3, size, size))
    for i, trajectory in enumerate(points.reshape(3, 8, 2)):
        pen = np.column_stack([trajectory[:, 0], 100 - trajectory[:, 1]]) * (size - 1) / 100
        for r in range(size):
            for c in range(size):
                distances = []
                for a, b in zip(pen, pen[1:]):
                    t = np.clip((np.array([c, r]) - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
                    distances.append(np.linalg.norm(np.array([c, r]) - a - t * (b - a)))
                expected[i, r, c] = np.clip(1 - min(distances), 0, 1)
    assert_allclose(redraw_pen_points(points), expected, atol=2e-5)


@pytest.mark.parametrize("name, way", [("mfeat", "cuelearn[data]"), ("mnist", "its files state no")])
def test_a_missing_file_is_named_with_the_way_to_it(copied, monkeypatch, name, way):
    monkeypatch.setattr(datasets.base, "data_folders", lambda: [copied])
    with pytest.raises(DataFileError, match=rf"{name}\.npz is missing") as caught:
        getattr(datasets, f"load_{name}")()
    message = str(caught.value)
    assert way in message and f"python data/build.py {name}" in message
    assert (REGISTRY[name]["source"] in message) == ("restricted" in REGISTRY[name])


@pytest.mark.parametrize("place", [40, -1])
def test_damaged_file_is_refused(copied, place):
    path = copied / "satimage.npz"
    assert datasets.load_satimage().X.shape == (6435, 36)  # a second load looks again
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataFileError) as caught:
        datasets.load_satimage()
    message = str(caught.value)
    assert str(path) in message and "damaged" in message
    assert REGISTRY["satimage"]["sha256"] in message and "found " in message
    assert "python data/build.py satimage" in message
