"""Corel5k and scene, where the user has them; their form on small files."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from cuelearn import datasets
from cuelearn.datasets import DataFileError

PLACE = Path(os.environ.get("CUELEARN_DATA", "/nowhere"))
LABELS = ["Beach", "Sunset", "FallFoliage", "Field", "Mountain", "Urban"]
#: A header as Mulan writes it.
HEADER = ["@relation MultiLabelData", *(f"@attribute Att{k} numeric" for k in range(1, 295))]
HEADER += [f"@attribute {name} {{0,1}}" for name in LABELS]


def write(path, X, y, names):
    scipy.io.savemat(path / "corel5k.mat", {"X": X, "Y": y})
    labels = "".join(f'<label name="{name}"></label>' for name in names)
    (path / "corel5k_labels.xml").write_text(
        f'<labels xmlns="http://mulan.sourceforge.net/labels">{labels}</labels>'
    )


def test_corel5k_is_cut_before_the_labels_hidden_in_X(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (20, 499)).astype(np.uint8), rng.integers(0, 2, (20, 3)).astype(np.uint8)
    write(tmp_path, np.hstack([X, y]), y, ["sky", "water", "tree"])
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path))
    for data in (datasets.load_corel5k(tmp_path), datasets.load_original("corel5k")):
        assert (
            np.array_equal(data.X, X)
            and np.array_equal(data.y, y)
            and data.target_names == ["sky", "water", "tree"]
        )
        assert data.provenance.tier == "original" and data.train is None


def test_a_missing_or_wrong_file_is_named(tmp_path):
    with pytest.raises(DataFileError, match=r"corel5k\.mat is missing"):
        datasets.load_corel5k(tmp_path)
    write(tmp_path, np.zeros((4, 499)), np.zeros((4, 2)), ["sky"])
    with pytest.raises(DataFileError, match="must hold X"):
        datasets.load_corel5k(tmp_path)
    (tmp_path / "corel5k.mat").write_bytes(b"nothing")
    with pytest.raises(DataFileError, match="does not hold Corel5k"):
        datasets.load_corel5k(tmp_path)


@pytest.mark.skipif(not (PLACE / "corel5k.mat").is_file(), reason="Corel5k is not there")
def test_the_real_file():
    data = datasets.load_original("corel5k")
    assert (
        data.X.shape == (5000, 499) and data.y.shape == (5000, 374) and set(np.unique(data.X)) == {0.0, 1.0}
    )
    assert {"sky", "people", "water", "tree", "grass"} <= set(data.target_names)


# --- scene ------------------------------------------------------------------------------------------------------------------


def write_scene(path, rows, part, header=HEADER):
    lines = [*header, "@data"] if header else [""]
    (path / f"scene-{part}.arff").write_text(
        "\n".join(lines + [",".join(f"{value:g}" for value in row) for row in rows]) + "\n"
    )


def scene_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.hstack([rng.integers(0, 1001, (n, 294)) / 1000, rng.integers(0, 2, (n, 6))])


@pytest.mark.parametrize(
    "header", [HEADER, ["% a comment", *(line.replace("@attribute", "@ATTRIBUTE") for line in HEADER)], []]
)
def test_scene_has_its_training_rows_first(tmp_path, monkeypatch, header):
    rows = scene_rows(8)
    write_scene(tmp_path, rows[:5], "train", header)
    write_scene(tmp_path, rows[5:], "test", header)
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path))
    for data in (datasets.load_scene(tmp_path), datasets.load_original("scene")):
        assert data.X.dtype == np.float32 and np.array_equal(data.X, rows[:, :294].astype(np.float32))
        assert (
            data.y.dtype == np.int8 and np.array_equal(data.y, rows[:, 294:]) and data.target_names == LABELS
        )
        assert data.train.tolist() == [0, 1, 2, 3, 4] and data.test.tolist() == [5, 6, 7]
        assert data.cues == {"L": slice(0, 98), "u": slice(98, 196), "v": slice(196, 294)}
        assert [data.feature_names[k] for k in (0, 48, 49, 105, 293)] == [
            "L mean 0,0",
            "L mean 6,6",
            "L variance 0,0",
            "u mean 1,0",
            "v variance 6,6",
        ]
        assert data.provenance.tier == "original" and data.provenance.sha256.count(" and ") == 1


def changed(rows, column, value):
    rows = rows.copy()
    rows[-1, column] = value
    return rows


def test_a_missing_or_wrong_part_of_scene_is_named(tmp_path):
    rows = scene_rows(3)
    with pytest.raises(DataFileError, match=r"scene-train\.arff is missing"):
        datasets.load_scene(tmp_path)
    write_scene(tmp_path, rows, "train")
    with pytest.raises(DataFileError, match=r"scene-test\.arff is missing"):
        datasets.load_scene(tmp_path)
    for bad in (rows[:, 1:], changed(rows, 0, 1.5), changed(rows, 7, np.nan), changed(rows, 299, 0.5)):
        write_scene(tmp_path, bad, "test", header=[])
        with pytest.raises(
            DataFileError,
            match=r"scene-test\.arff must hold rows of 294 numbers in \[0, 1\] and the 0/1 labels Beach",
        ):
            datasets.load_scene(tmp_path)
    for header in (HEADER[:1] + HEADER[-6:] + HEADER[1:-6], HEADER[:-6] + HEADER[:-7:-1], HEADER[:-1]):
        write_scene(tmp_path, rows, "test", header)
        with pytest.raises(
            DataFileError, match=r"scene-test\.arff must hold .*\(3, 300\) and last attributes "
        ):
            datasets.load_scene(tmp_path)
    broken = {
        b"": "no rows",
        b"@data\n{0 0.5, 294 1}\n": "could not convert",
        b"1,0\n1\n": "columns",
        b"\xff": "decode",
    }
    for content, what in broken.items():
        (tmp_path / "scene-test.arff").write_bytes(content)
        with pytest.raises(DataFileError, match=rf"scene-test\.arff does not hold scene .*{what}"):
            datasets.load_scene(tmp_path)


@pytest.mark.skipif(
    not all((PLACE / f"scene-{part}.arff").is_file() for part in ("train", "test")),
    reason="scene is not there",
)
def test_the_real_scene_and_the_order_of_its_columns():
    data = datasets.load_original("scene")
    assert data.X.shape == (2407, 294) and data.y.sum(axis=0).tolist() == [427, 364, 397, 433, 533, 431]
    assert len(data.train) == 1211 and len(data.test) == 1196
    assert data.y[data.train].sum(axis=0).tolist() == [227, 165, 197, 196, 277, 224]
    # columns follow each other in runs of 49, and within these in rows of seven blocks
    next_one = np.array([np.corrcoef(data.X[:, k], data.X[:, k + 1])[0, 1] for k in range(293)])
    first = np.arange(1, 294)
    assert np.abs(next_one[first % 49 == 0]).max() < 0.11
    assert (
        abs(next_one[first % 7 != 0].mean() - 0.78) < 0.01
        and abs(next_one[(first % 7 == 0) & (first % 49 != 0)].mean() - 0.41) < 0.01
    )
    # a block varies where its mean differs from its neighbours' means in the same channel
    blocks = {cue: data.X[:, columns].reshape(-1, 2, 7, 7) for cue, columns in data.cues.items()}
    agree = np.empty((3, 3))
    for i, means in enumerate(block[:, 0] for block in blocks.values()):
        framed = np.pad(means, ((0, 0), (1, 1), (1, 1)), constant_values=np.nan)
        beside = np.stack(
            [framed[:, 1:-1, :-2], framed[:, 1:-1, 2:], framed[:, :-2, 1:-1], framed[:, 2:, 1:-1]]
        )
        steps = np.nanmean((beside - means) ** 2, axis=0).reshape(-1, 49)
        for j, variances in enumerate(block[:, 1].reshape(-1, 49) for block in blocks.values()):
            agree[i, j] = np.mean([np.corrcoef(steps[:, k], variances[:, k])[0, 1] for k in range(49)])
    assert (
        np.allclose(np.diag(agree), [0.39, 0.56, 0.49], atol=0.01)
        and (agree - np.diag(np.diag(agree))).max() < 0.185
    )
    # black has no colour; fields are green, sunsets red; the sky is blue
    L, u, v = (block[:, 0] for block in blocks.values())
    assert (
        u[L < 0.01].std() < 0.6 * u.std()
        and v[L < 0.01].std() < 0.4 * v.std()
        and L[:, 0].mean() > L[:, -1].mean() + 0.1
    )
    of_class = {name: u[label == 1].mean() for name, label in zip(data.target_names, data.y.T, strict=False)}
    assert min(of_class, key=of_class.get) == "Field" and max(of_class, key=of_class.get) == "Sunset"
    assert v[:, 0].mean() < v[:, -1].mean() - 0.2
