"""Folders of real images."""

import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

from companion.originals import load_original
from cuelearn.datasets import DataFileError, image_cues, load_image_folder, read_image
from cuelearn.datasets.images import ImageFiles


def picture(seed, height=40, width=44):
    small = np.random.default_rng(seed).integers(0, 256, (-(-height // 4), -(-width // 4), 3), dtype=np.uint8)
    return np.kron(small, np.ones((4, 4, 1), dtype=np.uint8))[:height, :width]


def save(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def write_folder(root, masks=False):
    for number, name in enumerate(("barn", "Attic", "cellar")):
        for k in range(3):
            save(root / name / f"{k}.png", picture(10 * number + k, 40 + 4 * k))
            if masks:
                mask = np.zeros((40 + 4 * k, 44), np.uint8)
                mask[8:30, 5 : 20 + 3 * k] = 255
                save(root / name / "maps" / f"{k}-map.png", mask)
    return root


def write_eth80(root):
    for directory in ("apple1", "apple2", "car1", "car14", "car2"):
        for k, view in enumerate(("000-000", "090-045", "066-117")):
            image = np.full((128, 128, 3), (30, 70, 200), np.uint8)
            image[40:90, 30 : 80 + 5 * k] = (180, 60, 40)
            save(root / directory / f"{directory}-{view}.png", image)
            mask = np.zeros((128, 128), np.uint8)
            mask[40:90, 30 : 80 + 5 * k] = 255
            save(root / directory / "maps" / f"{directory}-{view}-map.png", mask)
    return root


def write_idol2(root, sequences=("dum_cloudy1", "dum_cloudy3", "dum_night2")):
    for s, sequence in enumerate(sequences):
        start = 1152902094.641331 + 1000 * s
        lines = ["# a comment"]
        for k, room in enumerate(("BO", "CR", "EO", "KT", "PA")):
            time = start + 0.2 * k
            name = f"t{time:.6f}_r{room}_x{0.5 * k}_y-0.25_a{-1.5 + k:.4f}.png"
            save(root / sequence / "png" / name, picture(100 * s + k))
            # Half a scan period off, and a scan in between that is nearer to no image.
            for delay, distance in ((0.04, 2.0 + k), (0.1, 9.0)):
                seconds = math.floor(time + delay)
                numbers = [12, 0, 181, seconds, round((time + delay - seconds) * 1e6), 0, 0, 0]
                lines.append(" ".join(map(str, numbers + 181 * [distance])))
        (root / sequence / "scans.tdf").write_text("\n".join(lines) + "\n\n")
    return root


def write_flowers17(directory):
    directory.mkdir(parents=True)
    for i in range(1, 1361):
        Image.new("RGB", (16 + (i - 1) // 80, 12)).save(directory / f"image_{i:04d}.jpg")
    (directory / "files.txt").write_text("as in the archive")
    return directory.parent


def test_image_files_read_what_they_are_asked_for(tmp_path):
    colour = picture(0)
    grey = colour[..., 0]
    made = {"rgb.png": colour, "grey.png": grey}
    made["rgba.png"] = np.dstack([colour, np.full(grey.shape, 128, np.uint8)])
    made["deep.png"] = grey.astype(np.uint16) * 257
    for name, array in made.items():
        save(tmp_path / name, array)
    images = ImageFiles([tmp_path / name for name in (*made, "missing.png")])
    for i in (0, np.int64(2)):
        assert_array_equal(images[i], colour)
    for i in (1, 3):
        assert_array_equal(images[i], np.repeat(grey[..., None], 3, axis=2))
    part = pickle.loads(pickle.dumps(images[1:3]))
    assert isinstance(part, ImageFiles) and len(part) == 2
    assert images[np.array([3, 0])].paths == [images.paths[3], images.paths[0]]
    with pytest.raises(DataFileError, match=r"missing\.png cannot be read: .*No such file"):
        images[4]


def test_large_photographs_are_unpacked_to_what_is_needed(tmp_path):
    smooth = np.kron(picture(3, 25, 30), np.ones((40, 40, 1), np.uint8))  # 1000 x 1200
    for name in ("a.jpg", "b.png"):
        save(tmp_path / "dog" / name, smooth)
    data = load_image_folder(tmp_path)
    for least, height in ((240, 250), (251, 500), (None, 1000)):
        assert read_image(data.images.paths[0], least).shape == (height, height * 6 // 5, 3)
    made = image_cues(data, ["LxLy"], size=100)
    assert np.abs(made.X[0] - made.X[1]).sum() < 0.2


def test_a_folder_of_classes(tmp_path):
    root = write_folder(tmp_path / "house", masks=True)
    (root / ".cache").mkdir()
    (root / "barn" / "notes.txt").write_text("not an image")
    data = load_image_folder(str(root))
    assert repr(data) == "<house, original: 9 images of 3 classes, masks>"
    assert data.target_names == ["Attic", "barn", "cellar"] and data.y.tolist() == [0] * 3 + [1] * 3 + [2] * 3
    assert data.frames["name"].tolist()[2:5] == ["Attic/2.png", "barn/0.png", "barn/1.png"]
    assert_array_equal(data.images[4], picture(1, 44))
    assert data.masks[2].dtype == np.bool_ and data.masks[2].sum() == 22 * 21
    assert str(tmp_path) not in "".join(map(str, data.provenance)) + data.description


def test_a_folder_with_train_and_test(tmp_path):
    rows = ["train/cat/2.png", "train/cat/3.png", "train/dog/1.png", "test/cat/5.png", "test/dog/6.png"]
    for k, name in enumerate(rows):
        save(tmp_path / name, picture(k))
    data = load_image_folder(tmp_path)
    assert data.frames["name"].tolist() == rows
    assert data.target_names == ["cat", "dog"] and data.y.tolist() == [0, 0, 1, 0, 1]
    assert data.train.tolist() == [0, 1, 2] and data.test.tolist() == [3, 4]
    made = image_cues(data, ["colour", "bow"], n_words=10)  # learns from data.train
    assert_array_equal(made.X, image_cues(data, ["colour", "bow"], train=[0, 1, 2], n_words=10).X)
    assert made.train is data.train and made.test is data.test


def test_eth80(tmp_path, monkeypatch):
    write_eth80(tmp_path / "eth80" / "eth80-cropped-close128")
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path))
    data = load_original("eth80")
    assert data.target_names == ["apple", "car"] and data.y.tolist() == [0] * 6 + [1] * 9
    assert data.frames["object"].tolist() == [1] * 3 + [2] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    names = ["apple1-000-000", "apple2-066-117", "car2-090-045", "car14-000-000"]
    assert data.frames["name"][[0, 4, 11, 12]].tolist() == names
    assert data.frames["elevation"][:3].tolist() == [90, 24, 0]
    assert data.frames["azimuth"][:3].tolist() == [0, 117, 45]
    for i in range(3):
        assert data.masks[i].sum() == 50 * (50 + 5 * [0, 2, 1][i])


def test_idol2(tmp_path):
    write_idol2(tmp_path, ["dum_cloudy1", "dum_cloudy3", "dum_night2", "min_sunny1"])
    data = load_original("idol2", tmp_path)
    frames = data.frames
    assert len(data.images) == 15 and data.target_names == ["OO", "CR", "TO", "KT", "PA"]
    assert data.y.tolist() == [0, 1, 2, 3, 4] * 3 and data.y.dtype == np.int64
    assert frames["sequence"][::5].tolist() == [0, 5, 6]
    assert frames["weather"][::5].tolist() == ["cloudy", "night", "cloudy"]
    assert frames["session"][::5].tolist() == [1, 1, 2] and frames["repeat"][::5].tolist() == [1, 2, 1]
    assert_allclose(frames["time"][:5], [0, 0.2, 0.4, 0.6, 0.8], atol=1e-5)
    assert frames["x"][:3].tolist() == [0, 0.5, 1] and frames["heading"][1] == -0.5
    assert frames["name"][0] == "t1152902094.641331_rBO_x0.0_y-0.25_a-1.5000"
    assert frames["laser"].shape == (15, 181) and frames["laser"].dtype == np.float32
    assert_array_equal(frames["laser"][:, 0], [2, 3, 4, 5, 6] * 3)
    assert_array_equal(data.images[6], picture(201))  # written third, driven second
    for sequence in ("dum_cloudy1", "dum_cloudy3", "dum_night2"):
        (tmp_path / sequence / "scans.tdf").unlink()
    assert "laser" not in load_original("idol2", tmp_path).frames


def test_flowers17(tmp_path):
    data = load_original("flowers17", write_flowers17(tmp_path / "flowers17" / "jpg"))
    assert len(data.images) == 1360 and data.masks is None
    assert np.array_equal(np.bincount(data.y), np.full(17, 80))
    assert data.target_names[0] == "Daffodil" and data.target_names[-1] == "Pansy"
    for i in (0, 79, 80, 1359):
        assert data.frames["name"][i] == f"image_{i + 1:04d}" and data.y[i] == i // 80
        assert data.images[i].shape == (12, 16 + data.y[i], 3)


def spoil(path, place, content=None):
    """Write a file in place of another, take it away, or make an empty directory."""
    if content is None and (path / place).exists():
        (path / place).unlink()
    elif content is None:
        (path / place).mkdir(parents=True)
    else:
        (path / place).parent.mkdir(parents=True, exist_ok=True)
        (path / place).write_text(content)


CLOUDY = "dum_cloudy1/png/t1152902094.641331_rBO_x0.0_y-0.25_a-1.5000.png"
SCANS = "dum_cloudy1/scans.tdf"


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("house", ("empty",), "empty holds no images"),
        ("house", ("barn/maps/1-map.png",), r"barn.1\.png has no mask"),
        ("eth80", ("car2/side.png", ""), r"car2.side\.png is not named"),
        ("idol2", (SCANS, ""), "rBO.* has no laser scan"),
        ("idol2", (SCANS, "1 2 3"), r"scans\.tdf does not hold scans"),
        ("idol2", ("dum_cloudy1/png/image7.png", ""), r"image7\.png is not named"),
        ("idol2", (CLOUDY.replace("rBO", "rXX"), ""), "names the room XX"),
        ("flowers17", ("jpg/image_0081.jpg",), r"jpg.image_0081\.jpg is missing"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, name, change, message):
    root = tmp_path / name
    if name == "house":
        write_folder(root, masks=True)
    elif name == "flowers17":
        write_flowers17(root / "jpg")
    else:
        {"eth80": write_eth80, "idol2": write_idol2}[name](root)
    spoil(root, *change)
    with pytest.raises(DataFileError, match=message):
        load_image_folder(root) if name == "house" else load_original(name, root)


def test_what_is_not_there_or_no_image_is_named(tmp_path, monkeypatch):
    with pytest.raises(DataFileError, match="nowhere does not exist"):
        load_image_folder(tmp_path / "nowhere")
    for name, wanted in (("eth80", "one directory per object"), ("idol2", "no sequence of Dumbo")):
        with pytest.raises(DataFileError, match=wanted):
            load_original(name, tmp_path)
    spoil(write_folder(tmp_path), "barn/0.png", "no image at all")
    for n_jobs in (1, 2):
        with pytest.raises(DataFileError, match=r"barn.0\.png cannot be read"):
            image_cues(load_image_folder(tmp_path), ["colour"], n_jobs=n_jobs)
    with pytest.raises(ValueError, match="name must be one of .*eth80.*got 'mnist'"):
        load_original("mnist")
    monkeypatch.delenv("CUELEARN_DATA", raising=False)
    with pytest.raises(DataFileError, match="set CUELEARN_DATA"):
        load_original("eth80")
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path))
    with pytest.raises(DataFileError, match="'idol2' was not found"):
        load_original("idol2")
