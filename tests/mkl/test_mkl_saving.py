"""Saved models: the same bits after loading, no pickle, and a clear word about a damaged file."""

import json
import os
import zipfile

import numpy as np
import pandas as pd
import pytest
from mkl_data import ALL, COLUMNS, CUES, NAMED, ROUNDS, STOCHASTIC, make, make_data
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import cuelearn.mkl
from cuelearn.kernels import RBF, KernelBank, Linear
from cuelearn.mkl import OBSCURE, OM2, UFOMKL, AverageKernelSVM, KernelPA, load

NEW, _ = make_data(40, seed=1)


def fitted_attributes(model):
    return {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and name not in ("bank_", "bank_support_")
    }


def check_equal(loaded, model):
    assert type(loaded) is type(model)
    wanted, found = fitted_attributes(model), fitted_attributes(loaded)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if isinstance(value, pd.DataFrame):
            pd.testing.assert_frame_equal(found[name], value)
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(found[name], value)
            if value.dtype != object:  # of strings
                assert found[name].dtype == value.dtype
        else:
            assert found[name] == value and type(found[name]) is type(value), name


@pytest.mark.parametrize("labels", ["numbers", "strings", "objects", "two classes"])
@pytest.mark.parametrize("cls", ALL)
def test_round_trip(cls, labels, tmp_path):
    X, y = make_data(60)
    y = {
        "numbers": 10 * y,
        "strings": np.array(["ant", "bee", "cat"])[y],
        "objects": np.array(["ant", "bee", "cat"], dtype=object)[y],
        "two classes": y > 0,
    }[labels]
    model = make(cls, CUES).fit(X, y)
    model.save(tmp_path / "model.npz")
    for loaded in (load(tmp_path / "model.npz"), cls.load(str(tmp_path / "model.npz"))):
        check_equal(loaded, model)
        np.testing.assert_array_equal(loaded.decision_function(NEW), model.decision_function(NEW))
        np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
        assert loaded.predict(NEW).dtype.kind == model.predict(NEW).dtype.kind or labels == "objects"
        cross = KernelBank(CUES, X).cross(NEW)
        np.testing.assert_array_equal(loaded.predict(cross), model.predict(cross))


@pytest.mark.parametrize("cls", ALL)
def test_round_trip_of_precomputed(cls, tmp_path):
    X, y = make_data(60)
    bank = KernelBank(CUES, X)
    cross = np.concatenate([block for _, block in bank.cross(NEW).blocks()], axis=1)
    model = make(cls, "precomputed").fit(bank.stack, y)
    model.save(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]  # the name as given, nothing besides
    loaded = load(tmp_path / "model")
    check_equal(loaded, model)
    np.testing.assert_array_equal(loaded.decision_function(cross), model.decision_function(cross))
    # the file holds the model, not the kernels
    assert (tmp_path / "model").stat().st_size < bank.stack.nbytes / 2
    again = clone(loaded).fit(bank.stack, y)
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)


@pytest.mark.parametrize("cls", ALL)
def test_round_trip_with_named_columns(cls, tmp_path):
    X, y = make_data(60)
    model = make(cls, NAMED).fit(pd.DataFrame(X, columns=COLUMNS), y)
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    frame = pd.DataFrame(NEW, columns=COLUMNS)
    np.testing.assert_array_equal(loaded.decision_function(frame), model.decision_function(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[COLUMNS[::-1]])


@pytest.mark.parametrize("cls", ALL)
def test_parameters_come_back(cls, tmp_path):
    """`kernels` as fitted, so that a clone of the loaded model trains the same one; a callback or a generator is left behind."""
    X, y = make_data(60)
    cues = [("shape", RBF(gamma=2.0), [0, 1]), ("colour", Linear(), [2, 3])]
    options = {"C": np.float32(0.5)} | (
        {"callback": lambda *_: None, "n_epochs": np.int64(3)} if cls in STOCHASTIC else {}
    )
    options |= {"callback": lambda *_: None, "max_iter": np.int64(300)} if cls in ROUNDS else {}
    model = make(cls, cues, **options).fit(X, y)
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    wanted, found = model.get_params(), loaded.get_params()
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if name == "callback":
            assert found[name] is None
        else:
            assert found[name] == value, name
    again = clone(loaded).fit(X, y)
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)
    np.testing.assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))


@pytest.mark.parametrize("kernels", ["cues", "precomputed"])
@pytest.mark.parametrize("cls", ALL)
def test_saved_again_after_loading(cls, kernels, tmp_path):
    X, y = make_data(60)
    bank = KernelBank(CUES, X)
    model = make(cls, CUES).fit(X, y) if kernels == "cues" else make(cls, "precomputed").fit(bank, y)
    model.save(tmp_path / "one.npz")
    load(tmp_path / "one.npz").save(tmp_path / "two.npz")
    check_equal(load(tmp_path / "two.npz"), model)
    new = (
        NEW if kernels == "cues" else np.concatenate([block for _, block in bank.cross(NEW).blocks()], axis=1)
    )
    np.testing.assert_array_equal(
        load(tmp_path / "two.npz").decision_function(new), model.decision_function(new)
    )


def test_generators_are_left_behind(tmp_path):
    X, y = make_data(60)
    for state in (np.random.default_rng(0), np.random.RandomState(0)):
        OBSCURE(CUES, random_state=state).fit(X, y).save(tmp_path / "model.npz")
        assert load(tmp_path / "model.npz").random_state is None


def test_infinite_attributes_and_missing_history_entries(tmp_path):
    X, y = make_data(60)
    model = OBSCURE(CUES, n_epochs=3, random_state=0).fit(X, y)
    model.radius_ = np.inf
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert loaded.radius_ == np.inf
    check_equal(loaded, model)


def test_a_model_without_support(tmp_path):
    """alpha so large that w = 0, and kernels that are all 0."""
    X, y = make_data(60)
    for model in (
        UFOMKL(CUES, alpha=1e6, random_state=0).fit(X, y),
        KernelPA([("zero", Linear(), [0])]).fit(0.0 * X, y),
    ):
        model.save(tmp_path / "model.npz")
        loaded = load(tmp_path / "model.npz")
        check_equal(loaded, model)
        np.testing.assert_array_equal(loaded.decision_function(NEW), np.zeros((40, 3)))


def test_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        OM2().save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


def test_no_pickle_inside(tmp_path):
    X, y = make_data(60)
    names = np.array(list("abc"), dtype=object)
    OBSCURE(NAMED, random_state=0).fit(pd.DataFrame(X, columns=COLUMNS), names[y]).save(
        tmp_path / "model.npz"
    )
    with np.load(tmp_path / "model.npz", allow_pickle=False) as archive:
        for name in archive.files:
            assert archive[name].dtype.kind in "biufU", name


# ------------------------------------------------------------------ what can go wrong


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    X, y = make_data(60)
    path = tmp_path_factory.mktemp("saved") / "model.npz"
    model = OBSCURE(CUES, random_state=0).fit(X, y)
    model.save(path)
    return path, path.read_bytes(), model


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.3, 0.7, 0.99, 0.999])
def test_truncated_files_are_refused(kept, saved, tmp_path):
    _, content, _ = saved
    path = tmp_path / "half.npz"
    path.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(ValueError, match=r"half\.npz is not a model saved by cuelearn, or is damaged"):
        load(path)


def test_flipped_bytes_are_noticed_or_harmless(saved, tmp_path):
    _, content, model = saved
    path = tmp_path / "flipped.npz"
    refused = 0
    for position in np.linspace(0, len(content) - 1, 150).astype(int):
        damaged = bytearray(content)
        damaged[position] ^= 0x55
        path.write_bytes(bytes(damaged))
        try:
            loaded = load(path)
        except ValueError as error:
            assert "flipped.npz is not a model saved by cuelearn, or is damaged" in str(error)
            refused += 1
        else:  # a date or an attribute of the archive
            np.testing.assert_array_equal(loaded.decision_function(NEW), model.decision_function(NEW))
    assert refused > 100


def rewritten(content, path, change):
    """The saved file with its header changed by `change(head, arrays)`."""
    source = path.with_name("source.npz")
    source.write_bytes(content)
    with np.load(source) as archive:
        arrays = {name: archive[name] for name in archive.files}
    head = json.loads(arrays.pop("header").tobytes().decode())
    change(head, arrays)
    np.savez(path, header=np.frombuffer(json.dumps(head).encode(), dtype=np.uint8), **arrays)
    return path


CHANGES = {
    "another format": lambda head, arrays: head.update(format=99),
    "no format": lambda head, arrays: head.pop("format"),
    "an unknown class": lambda head, arrays: head["value"].update(__kind__="cuelearn.mkl.om2:Perceptron"),
    "a function for a class": lambda head, arrays: head["value"].update(__kind__="cuelearn.mkl.base:load"),
    "a class of others": lambda head, arrays: head["value"].update(__kind__="fractions:Fraction"),
    "an unknown parameter": lambda head, arrays: head["value"]["state"]["parameters"].update(depth=3),
    "no value": lambda head, arrays: head.pop("value"),
    "an array missing": lambda head, arrays: arrays.pop("a3"),
    "no arrays of the bank": lambda head, arrays: saved_bank(head).pop("_train"),
    "a kernel of another kind": lambda head, arrays: saved_bank(head)["kernels_"][0].update(
        __kind__="cuelearn.kernels.specifications:Sigmoid"
    ),
}


def saved_bank(head):
    return head["value"]["state"]["fitted"]["bank_"]["state"]


@pytest.mark.parametrize("name", CHANGES)
def test_files_that_do_not_fit_are_refused(name, saved, tmp_path):
    path = rewritten(saved[1], tmp_path / "other.npz", CHANGES[name])
    with pytest.raises(ValueError, match=r"other\.npz is not a model saved by cuelearn, or is damaged"):
        load(path)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, weights=np.zeros(3))
    with pytest.raises(ValueError, match="is not a model saved by cuelearn"):
        load(path)
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="is not a model saved by cuelearn"):
        load(path)
    path.write_text("not a model")
    with pytest.raises(ValueError, match="is not a model saved by cuelearn"):
        load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match="is not a model saved by cuelearn"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.npz")


def test_a_file_of_another_class(saved):
    path, _, _ = saved
    assert isinstance(OBSCURE.load(path), OBSCURE)
    with pytest.raises(ValueError, match=r"model\.npz holds a OBSCURE, not a OM2"):
        OM2.load(path)


def test_a_failed_save_leaves_the_old_file(saved, tmp_path, monkeypatch):
    _, content, model = saved
    path = tmp_path / "model.npz"
    path.write_bytes(content)

    def break_off(file, **arrays):
        file.write(b"half of")
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", break_off)
        with pytest.raises(OSError, match="disk full"):
            model.save(path)
    assert path.read_bytes() == content and os.listdir(tmp_path) == ["model.npz"]

    X, y = make_data(60)
    broken = AverageKernelSVM(CUES).fit(X, y).set_params(n_jobs=object())
    with pytest.raises(TypeError, match="cannot be saved without pickle"):
        broken.save(path)
    assert path.read_bytes() == content and os.listdir(tmp_path) == ["model.npz"]


def test_saving_over_a_file_replaces_it(saved, tmp_path):
    X, y = make_data(60)
    path = tmp_path / "model.npz"
    path.write_bytes(saved[1])
    KernelPA(CUES).fit(X, y).save(path)
    assert isinstance(load(path), KernelPA)
    KernelPA(CUES).fit(X, y).save(tmp_path / "new" / "folder" / "model.npz")
    assert isinstance(load(tmp_path / "new" / "folder" / "model.npz"), KernelPA)


def test_every_estimator_can_be_loaded():
    assert {cls.__name__ for cls in ALL} <= set(cuelearn.mkl.__all__)
