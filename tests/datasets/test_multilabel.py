"""Corel5k, where the user has it; its form on a small file."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from cuelearn import datasets
from cuelearn.datasets import DataFileError


def write(path, X, y, names):
    scipy.io.savemat(path / "corel5k.mat", {"X": X, "Y": y})
    labels = "".join(f'<label name="{name}"></label>' for name in names)
    (path / "corel5k_labels.xml").write_text(f'<labels xmlns="http://mulan.sourceforge.net/labels">{labels}</labels>')


def test_corel5k_is_cut_before_the_labels_hidden_in_X(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (20, 499)).astype(np.uint8), rng.integers(0, 2, (20, 3)).astype(np.uint8)
    write(tmp_path, np.hstack([X, y]), y, ["sky", "water", "tree"])
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path))
    for data in (datasets.load_corel5k(tmp_path), datasets.load_original("corel5k")):
        assert np.array_equal(data.X, X) and np.array_equal(data.y, y) and data.target_names == ["sky", "water", "tree"]
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


@pytest.mark.skipif(not (Path(os.environ.get("CUELEARN_DATA", "/nowhere")) / "corel5k.mat").is_file(), reason="Corel5k is not there")
def test_the_real_file():
    data = datasets.load_original("corel5k")
    assert data.X.shape == (5000, 499) and data.y.shape == (5000, 374) and set(np.unique(data.X)) == {0.0, 1.0}
    assert {"sky", "people", "water", "tree", "grass"} <= set(data.target_names)
