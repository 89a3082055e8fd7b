"""Bundled data: sizes, published facts, splits, cues, and refusal of damaged or missing files."""

import functools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cuelearn import datasets
from cuelearn.datasets import DataFileError
from cuelearn.datasets.bundled import redraw_pen_points

DATA = Path(__file__).parents[2] / "data"
REGISTRY = json.loads((DATA / "datasets.json").read_text(encoding="utf-8"))

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
    """Load a set once for all tests that only read it."""
    return getattr(datasets, name)()


@pytest.fixture(params=sorted(SIZES))
def loaded(request):
    return request.param, load(request.param)


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A data directory of its own with the registry and the smallest set."""
    for file in ("datasets.json", "satimage.npz"):
        shutil.copy(DATA / file, tmp_path / file)
    monkeypatch.setenv("CUELEARN_BUNDLED", str(tmp_path))
    return tmp_path


def test_leaves():
    data = load("load_leaves")
    assert np.bincount(data.y).tolist() == [16] * 100 and (np.diff(data.y) >= 0).all()
    margin, texture = (data.X[:, data.cues[cue]] for cue in ("margin", "texture"))
    assert_allclose(margin.sum(axis=1), 1, atol=1e-4)
    assert_allclose(texture[0], texture[1:16].mean(axis=0))  # which UCI lacks
    assert_allclose(np.round(margin * 1e6), margin * 1e6, rtol=1e-12)  # six decimals


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


def test_cues_cover_every_column_once(loaded):
    _, data = loaded
    columns = np.concatenate([np.arange(data.X.shape[1])[columns] for columns in data.cues.values()])
    assert_array_equal(np.sort(columns), np.arange(data.X.shape[1]))


def test_provenance(loaded):
    name, data = loaded
    short = name.removeprefix("load_")
    entry = REGISTRY[short]
    assert entry["loader"] == name
    assert data.provenance.name == short and data.provenance.tier == "bundled"
    assert data.provenance.sha256 == entry["sha256"] and data.provenance.citation == entry["citation"]
    assert entry["licence"] in data.provenance.licence
    assert short in repr(data) and "bundled" in repr(data)


def test_values_have_not_been_rescaled():
    pendigits, satimage, letter = load("load_pendigits"), load("load_satimage"), load("load_letter")
    first = [47, 100, 27, 81, 57, 37, 26, 0, 0, 23, 56, 53, 100, 90, 40, 98]  # first line of pendigits.tra
    assert_array_equal(pendigits.X[pendigits.train[0], :16], first)
    assert_array_equal(satimage.X[satimage.train[0], :4], [92, 115, 120, 94])  # sat.trn
    # second line of sat.tst
    assert_array_equal(satimage.X[satimage.test[0], :4], [76, 102, 102, 79])
    assert satimage.X.min() == 27 and satimage.X.max() == 157
    assert letter.X.min() == 0 and letter.X.max() == 15
    assert np.array_equal(letter.X, np.round(letter.X))


def test_mnist_first_images_are_those_of_the_whole():
    few, whole = datasets.load_mnist(n_train=30, n_test=20), load("load_mnist")
    assert_array_equal(few.X[few.train], whole.X[:30])
    assert_array_equal(few.X[few.test], whole.X[60000:60020])
    assert_array_equal(few.y, np.concatenate([whole.y[:30], whole.y[60000:60020]]))
    assert datasets.load_mnist(n_train=5, n_test=0).X.shape == (5, 784)


def test_mnist_blocks_are_quarters_of_the_image():
    with np.load(DATA / "mnist.npz") as archive:
        image = archive["train_images"][7]
    data = load("load_mnist")
    restored = np.empty(784, dtype=np.float32)
    restored[data.pixels] = data.X[7]
    assert_allclose(restored.reshape(28, 28), image / 255, atol=1e-7)
    assert_allclose(data.X[7, data.cues["bottom left"]].reshape(14, 14), image[14:, :14] / 255, atol=1e-7)
    assert all(cue.stop - cue.start == 196 for cue in data.cues.values())
    assert 0 <= data.X.min() and data.X.max() == 1


@pytest.mark.parametrize("wrong", [-1, 60001, 2.5, "all"])
def test_mnist_refuses_a_wrong_number(wrong):
    with pytest.raises((ValueError, TypeError), match="n_train must be (an integer|at least 0 and at most)"):
        datasets.load_mnist(n_train=wrong)


def test_redrawn_points_are_inked_and_a_resting_pen_is_a_dot():
    rng = np.random.default_rng(0)
    points = rng.integers(0, 101, size=(40, 16))
    drawn = redraw_pen_points(points, size=101)
    for i, (x, y) in enumerate(points.reshape(40, 8, 2).transpose(0, 2, 1)):
        assert_allclose(drawn[i, 100 - y, x], 1, atol=1e-5)
    dot = redraw_pen_points([[0, 0, 0, 0]], size=4)[0]
    assert dot[3, 0] == pytest.approx(1) and dot.sum() == pytest.approx(1)


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


def test_coarse_bitmaps_are_averages_of_the_fine():
    data = load("load_pendigits")
    fine = data.X[:50, data.cues["static 16x16"]].reshape(50, 16, 16)
    coarse = data.X[:50, data.cues["static 4x4"]].reshape(50, 4, 4)
    assert_allclose(coarse[:, 1, 2], fine[:, 4:8, 8:12].mean(axis=(1, 2)), atol=1e-6)
    assert "redrawn from the eight pen points" in data.description
    assert 0 <= fine.min() and fine.max() <= 1


@pytest.mark.parametrize("wrong", [[1, 2, 3, 4], [[1, 2]], [[1, 2, 3, 4, 5]]])
def test_redraw_refuses_wrong_shapes(wrong):
    with pytest.raises(ValueError, match="points must have shape"):
        redraw_pen_points(wrong)


def test_triples():
    data = load("load_satimage")
    assert data.triples("k") == [(f"band {b + 1}", "k", slice(b, 36, 4)) for b in range(4)]
    named = data.triples({"a": 1, "b": 2}, cues=["band 2"])
    assert [name for name, _, _ in named] == ["band 2-a", "band 2-b"]
    with pytest.raises(ValueError, match="cues must be among"):
        data.triples("k", cues=["band 9"])


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


def test_missing_file_is_refused(copied):
    (copied / "satimage.npz").unlink()
    with pytest.raises(DataFileError, match=r"satimage\.npz is missing .*python data/build\.py satimage"):
        datasets.load_satimage()


def test_missing_directory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("CUELEARN_BUNDLED", str(tmp_path / "nowhere"))
    with pytest.raises(DataFileError, match="Set CUELEARN_BUNDLED"):
        datasets.load_letter()
