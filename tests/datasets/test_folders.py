"""Folders of real images: layouts, what comes of them, and errors that name the file."""

import math
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

from cuelearn.datasets import DataFileError, load_original
from cuelearn.datasets import folders as f
from cuelearn.datasets.cues import cue_kernels, image_cues
from cuelearn.kernels import KernelBank


def refused(words, load, *args, **options):
    with pytest.raises(DataFileError, match=words):
        load(*args, **options)


def picture(seed, height=40, width=44):
    small = np.random.default_rng(seed).integers(0, 256, (-(-height // 4), -(-width // 4), 3), dtype=np.uint8)
    return np.kron(small, np.ones((4, 4, 1), dtype=np.uint8))[:height, :width]


def save(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def write_folder(root, masks=False, scans=False):
    for number, name in enumerate(("barn", "Attic", "cellar")):
        for k in range(3):
            save(root / name / f"{k}.png", picture(10 * number + k, 40 + 4 * k))
            if masks:
                mask = np.zeros((40 + 4 * k, 44), np.uint8)
                mask[8:30, 5 : 20 + 3 * k] = 255
                save(root / name / "maps" / f"{k}-map.png", mask)
            if scans:
                angles = np.linspace(-1.5, 1.5, 31)
                np.savetxt(root / name / f"{k}.scan", np.column_stack([angles, 2 + k + np.cos(3 * angles)]))
    return root


def write_eth80(root, maps=True):
    for directory in ("apple1", "apple2", "car1", "car14", "car2"):
        for k, view in enumerate(("000-000", "090-045", "066-117")):
            image = np.full((128, 128, 3), (30, 70, 200), np.uint8)
            image[40:90, 30 : 80 + 5 * k] = (180, 60, 40)
            save(root / directory / f"{directory}-{view}.png", image)
            if maps:
                mask = np.zeros((128, 128), np.uint8)
                mask[40:90, 30 : 80 + 5 * k] = 255
                save(root / directory / "maps" / f"{directory}-{view}-map.png", mask)
    return root


def scan_line(time, ranges):
    seconds = math.floor(time)
    numbers = [12, 0, len(ranges), seconds, round((time - seconds) * 1e6), 0, 0, 0, *ranges]
    return " ".join(str(number) for number in numbers)


def write_idol2(root, sequences=("dum_cloudy1", "dum_cloudy3", "dum_night2")):
    for s, sequence in enumerate(sequences):
        start = 1152902094.641331 + 1000 * s
        lines = ["# a comment"]
        for k, room in enumerate(("BO", "CR", "EO", "KT", "PA")):
            time = start + 0.2 * k
            name = f"t{time:.6f}_r{room}_x{0.5 * k}_y-0.25_a{-1.5 + k:.4f}.png"
            save(root / sequence / "png" / name, picture(100 * s + k))
            # Half a scan period off, and a scan in between that is nearer to no image.
            lines += [scan_line(time + 0.04, np.full(181, 2.0 + k)), scan_line(time + 0.1, np.full(181, 9.0))]
        (root / sequence / "scans.tdf").write_text("\n".join(lines) + "\n\n")
    return root


def write_flowers17(directory):
    directory.mkdir(parents=True)
    for c in range(17):
        save(directory / "drawn.jpg", np.full((12, 16 + c, 3), 10 * c, np.uint8))
        drawn = (directory / "drawn.jpg").read_bytes()
        for i in range(80 * c + 1, 80 * c + 81):
            (directory / f"image_{i:04d}.jpg").write_bytes(drawn)
    (directory / "drawn.jpg").unlink()
    (directory / "files.txt").write_text("as in the archive")


def test_image_files_read_what_they_are_asked_for(tmp_path):
    colour = picture(0)
    grey = colour[..., 0]
    made = {"rgb.png": colour, "grey.png": grey, "photo.JPG": colour, "old.ppm": colour}
    made["rgba.png"] = np.dstack([colour, np.full(grey.shape, 128, np.uint8)])
    made["deep.png"] = grey.astype(np.uint16) * 257
    for name, array in made.items():
        save(tmp_path / name, array)
    Image.fromarray(colour).quantize(200).save(tmp_path / "palette.png")
    names = "rgb.png grey.png rgba.png deep.png photo.JPG old.ppm palette.png missing.png".split()
    images = f.ImageFiles([tmp_path / name for name in names])
    assert len(images) == 8 and repr(images) == "ImageFiles(8 files)"
    for i in range(7):
        assert images[i].shape == (40, 44, 3) and images[i].dtype == np.uint8
    for i in (0, np.int64(2), 5):
        assert_array_equal(images[i], colour)
    for i in (1, 3):
        assert_array_equal(images[i], np.repeat(grey[..., None], 3, axis=2))
    part = pickle.loads(pickle.dumps(images[1:3]))
    assert isinstance(part, f.ImageFiles) and len(part) == 2
    assert images[np.array([5, 0])].paths == [images.paths[5], images.paths[0]]
    assert_array_equal(part[-1], colour)
    refused(r"missing\.png cannot be read: .*No such file", images.__getitem__, 7)
    with pytest.raises(IndexError):
        images[8]
    assert len(list(images[:7])) == 7  # iteration ends


def test_an_unreadable_or_empty_image_is_named(tmp_path):
    write_folder(tmp_path / "house")
    whole = (tmp_path / "house/barn/1.png").read_bytes()
    for k, content in enumerate((b"", whole[: len(whole) // 2], b"no image at all")):
        (tmp_path / f"house/barn/{k}.png").write_bytes(content)
    data = f.load_image_folder(tmp_path / "house")
    for k in range(3):
        refused(rf"barn.{k}\.png cannot be read", data.images.__getitem__, 3 + k)
    for n_jobs in (1, 2):
        refused(r"barn.0\.png cannot be read", image_cues, data, ["colour"], n_jobs=n_jobs)


def test_large_photographs_are_unpacked_to_what_is_needed(tmp_path):
    smooth = np.kron(picture(3, 25, 30), np.ones((40, 40, 1), np.uint8))  # 1000 x 1200
    for name in ("a.jpg", "b.png"):
        save(tmp_path / "pets" / "dog" / name, smooth)
    data = f.load_image_folder(tmp_path / "pets")
    for least, height in ((240, 250), (251, 500), (600, 1000), (None, 1000)):
        assert f.read_image(data.images.paths[0], least).shape == (height, height * 6 // 5, 3)
    shrunk = data.images.shrunk(240)
    assert [len(image) for image in shrunk[np.array([1, 0])]] == [1000, 250]
    made = image_cues(data, ["LxLy"], size=100)
    assert np.abs(made.X[0] - made.X[1]).sum() < 0.2
    save(tmp_path / "pets/dog/maps/a-map.png", np.full((1000, 1200), 255, np.uint8))
    save(tmp_path / "pets/dog/maps/b-map.png", np.full((1000, 1200), 255, np.uint8))
    masked = image_cues(f.load_image_folder(tmp_path / "pets"), ["LxLy"], size=100)
    assert np.abs(masked.X - made.X).sum(axis=1).max() < 0.2


def test_masks_from_files_or_segmented(tmp_path):
    write_eth80(tmp_path)
    paths = sorted((tmp_path / "apple1").glob("*.png"))
    mask = np.zeros((128, 128), bool)
    mask[40:90, 30:80] = True
    maps = [tmp_path / "apple1/maps/apple1-000-000-map.png", None]
    masks = f.ImageFiles([(path, paths[0]) for path in maps], f.read_mask)
    for i in range(2):
        assert masks[i].dtype == np.bool_
        assert_array_equal(masks[i], mask)
        assert_array_equal(masks[i:][0], mask)


def test_a_folder_of_classes(tmp_path):
    root = write_folder(tmp_path / "house")
    (root / ".cache").mkdir()
    (root / "barn" / "notes.txt").write_text("not an image")
    save(root / "barn" / "3.BMP", picture(50))
    data = f.load_image_folder(str(root))
    assert data.target_names == ["Attic", "barn", "cellar"] and data.y.tolist() == [0] * 3 + [1] * 4 + [2] * 3
    assert data.y.dtype == np.int64 and data.masks is None and data.laser is None
    names = ["Attic/2.png", "barn/0.png", "barn/1.png", "barn/2.png", "barn/3.BMP"]
    assert data.frames["name"].tolist()[2:7] == names
    assert_array_equal(data.images[4], picture(1, 44))
    assert data.provenance.tier == "original" and data.provenance.name == "house"
    assert str(tmp_path) not in "".join(map(str, data.provenance)) + data.description


def test_a_folder_with_train_and_test(tmp_path):
    root = tmp_path / "pets"
    for k, name in enumerate(
        ("train/dog/1", "train/cat/2", "train/cat/3", "train/emu/4", "test/cat/5", "test/dog/6")
    ):
        save(root / f"{name}.png", picture(k))
    data = f.load_image_folder(root)
    names = ["train/cat/2.png", "train/cat/3.png", "train/dog/1.png", "train/emu/4.png"]
    assert data.frames["name"].tolist() == [*names, "test/cat/5.png", "test/dog/6.png"]
    assert data.target_names == ["cat", "dog", "emu"] and data.y.tolist() == [0, 0, 1, 2, 0, 1]
    assert data.train.tolist() == [0, 1, 2, 3] and data.test.tolist() == [4, 5]
    made = image_cues(data, ["colour", "bow"], n_words=10)  # learns from data.train
    assert_array_equal(made.X, image_cues(data, ["colour", "bow"], train=[0, 1, 2, 3], n_words=10).X)
    assert made.train is data.train and made.test is data.test
    save(root / "test/gnu/7.png", picture(7))
    refused(r"test.gnu has no directory in .*train; expected there: one", f.load_image_folder, root)
    (root / "test/gnu").rename(root / "val")
    refused(r"pets holds val besides train and test", f.load_image_folder, root)
    (root / "test").rename(root / "evaluation")
    refused(r"has a directory train of classes, but none named test", f.load_image_folder, root)
    (root / "evaluation").rename(root / "test")
    for part in ("train", "test"):  # classes of their own: images of trains and of tests
        save(root / part / "a.png", picture(8))
    assert f.load_image_folder(root).target_names == ["test", "train", "val"]
    assert f.load_image_folder(root).train is None


def test_from_a_folder_to_kernels(tmp_path):
    data = f.load_image_folder(write_folder(tmp_path / "house", masks=True, scans=True))
    assert repr(data) == "<house, original: 9 images of 3 classes, masks, laser>"
    assert data.laser.shape == (9, 31) and data.laser.dtype == np.float32 and data.laser_angles.shape == (31,)
    assert data.masks[2].sum() == 22 * 21
    rows, cues = [0, 1, 3, 4, 6, 7], ["colour", "LxLy", "DirC", "bow", "laser", "shape"]
    made = image_cues(data, cues, train=rows, n_words=10)
    assert made.provenance.tier == "original"
    bank = KernelBank(cue_kernels(made), made.X[rows])
    assert bank.cross(made.X[[2, 5, 8]]) is not None
    K = bank.rows(np.arange(6))
    assert K.shape == (6, 6, 6) and np.isfinite(K).all()
    assert np.linalg.eigvalsh(K[0].astype(float)).min() > -1e-5


def test_errors_of_a_folder_name_the_folder_or_the_file(tmp_path):
    refused(r"nowhere does not exist; expected there: one", f.load_image_folder, tmp_path / "nowhere")
    save(tmp_path / "flat" / "a.png", picture(0))
    refused(r"a.png is a file; expected there: one", f.load_image_folder, tmp_path / "flat" / "a.png")
    refused(r"flat holds no directories; expected there: one", f.load_image_folder, tmp_path / "flat")
    root = write_folder(tmp_path / "house", masks=True, scans=True)
    (root / "empty").mkdir()
    refused(r"empty holds no images; expected there: one directory", f.load_image_folder, root)
    (root / "empty").rmdir()
    (root / "barn/maps/1-map.png").unlink()
    refused(r"barn.1\.png has no mask: .*1-map\.png is missing", f.load_image_folder, root)
    save(root / "barn/maps/1-map.png", np.zeros((44, 44), np.uint8))
    with pytest.raises(ValueError, match=r"Image 4 \(barn/1.png\) cannot be described: mask must be True"):
        image_cues(f.load_image_folder(root), ["shape"])
    (root / "cellar/2.scan").unlink()
    refused(r"cellar.2\.png has no laser scan: .*2\.scan is missing", f.load_image_folder, root)
    for text, words in (("far\n", "must hold two numbers per line"), ("0 1\n1 1\n", "other directions than")):
        (root / "cellar/2.scan").write_text(text)
        refused(rf"cellar.2\.scan {words}|cellar.2\.scan has {words}", f.load_image_folder, root)


@pytest.mark.parametrize("maps", [True, False])
def test_eth80(tmp_path, maps):
    data = f.load_eth80(write_eth80(tmp_path, maps))
    assert data.target_names == ["apple", "car"] and data.y.tolist() == [0] * 6 + [1] * 9
    assert data.frames["object"].tolist() == [1] * 3 + [2] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    names = ["apple1-000-000", "apple2-066-117", "car2-090-045", "car14-000-000"]
    assert data.frames["name"][[0, 4, 11, 12]].tolist() == names
    assert data.frames["elevation"][:3].tolist() == [90, 24, 0]
    assert data.frames["azimuth"][:3].tolist() == [0, 117, 45]
    for i in range(3):
        assert data.masks[i].sum() == 50 * (50 + 5 * [0, 2, 1][i])
    assert data.provenance.tier == "original" and ("segmented" in data.description) is not maps


def test_errors_of_eth80(tmp_path):
    refused("one directory per object", f.load_eth80, tmp_path / "nowhere")
    (tmp_path / "contours").mkdir()
    refused("is not ETH-80; expected there: one directory per object", f.load_eth80, tmp_path)
    root = write_eth80(tmp_path / "eth80-cropped-close128").parent
    assert len(f.load_eth80(root).y) == 15  # found one level down
    save(root / "eth80-cropped-close128/car2/side.png", picture(0))
    refused(r"car2.side\.png is not named as in ETH-80", f.load_eth80, root)
    (root / "eth80-cropped-close128/car2/side.png").unlink()
    (root / "eth80-cropped-close128/pear1").mkdir()
    refused("pear1 holds no images", f.load_eth80, root)


def test_idol2(tmp_path):
    data = f.load_idol2(write_idol2(tmp_path, ["dum_cloudy1", "dum_cloudy3", "dum_night2", "min_sunny1"]))
    assert "in 3 sequences" in data.description
    frames = data.frames
    assert len(data.y) == len(data.images) == 15 and data.target_names == ["OO", "CR", "TO", "KT", "PA"]
    assert data.y.tolist() == [0, 1, 2, 3, 4] * 3 and data.y.dtype == np.int64
    assert frames["sequence"][::5].tolist() == [0, 5, 6]
    assert frames["weather"][::5].tolist() == ["cloudy", "night", "cloudy"]
    assert frames["session"][::5].tolist() == [1, 1, 2] and frames["repeat"][::5].tolist() == [1, 2, 1]
    assert_allclose(frames["time"][:5], [0, 0.2, 0.4, 0.6, 0.8], atol=1e-5)
    assert frames["x"][:3].tolist() == [0, 0.5, 1] and frames["y"][0] == -0.25
    assert frames["heading"][1] == -0.5
    assert frames["name"][0] == "t1152902094.641331_rBO_x0.0_y-0.25_a-1.5000"
    assert data.laser.shape == (15, 181) and data.laser.dtype == np.float32
    assert_array_equal(data.laser[:, 0], [2, 3, 4, 5, 6] * 3)
    assert_allclose(data.laser_angles, np.deg2rad(np.arange(-90, 91)))
    assert_array_equal(data.images[6], picture(201))  # written third, driven second


def test_idol2_without_laser_and_with_other_places_of_the_files(tmp_path):
    write_idol2(tmp_path, ["dum_sunny2"])
    directory = tmp_path / "dum_sunny2"
    for image in list((directory / "png").iterdir()):
        image.rename(directory / image.name)
    (directory / "png").rmdir()
    assert f.load_idol2(tmp_path).laser.shape == (5, 181)
    (directory / "scans.tdf").unlink()
    assert f.load_idol2(tmp_path).laser is None


def test_errors_of_idol2_name_the_file(tmp_path):
    refused("holds no sequence of Dumbo; expected there: one directory per", f.load_idol2, tmp_path)
    root = write_idol2(tmp_path / "idol2", ["dum_cloudy1"])
    first = "t1152902094.641331_rBO_x0.0_y-0.25_a-1.5000.png"
    scans = root / "dum_cloudy1" / "scans.tdf"
    text = scans.read_text()

    lines = text.splitlines()
    scans.write_text("\n".join(lines[:1] + lines[-2:]))  # the first two images are too far from what is left
    without = rf"{re.escape(first)} has no laser scan: "
    refused(without + r"none in .*scans\.tdf was taken within 0\.5 s of it \(2 of 5", f.load_idol2, root)
    scans.write_text("")
    refused(without + r"none in .*scans\.tdf", f.load_idol2, root)
    scans.unlink()
    write_idol2(root, ["dum_sunny1"])
    refused(without + r".*scans\.tdf is missing", f.load_idol2, root)
    for bad in ("1 2 3", lines[1].replace(" 181 ", " 180 ") + "\n" + lines[2], lines[1] + " far"):
        scans.write_text("# first\n" + bad)
        refused(r"scans\.tdf does not hold scans", f.load_idol2, root)
    scans.write_text(text)

    odd = root / "dum_cloudy1" / "png" / "image7.png"
    save(odd, picture(0))
    refused(r"image7\.png is not named as in KTH-IDOL2", f.load_idol2, root)
    odd.rename(odd.with_name("t1152902094.0_rXX_x0_y0_a0.png"))
    refused("names the room XX; known are BO, CR", f.load_idol2, root)
    odd.with_name("t1152902094.0_rXX_x0_y0_a0.png").unlink()
    (root / "dum_night1" / "png").mkdir(parents=True)
    refused("dum_night1.png holds no images", f.load_idol2, root)


@pytest.mark.parametrize("inner", ["jpg", "."])
def test_flowers17(tmp_path, inner):
    write_flowers17(tmp_path / "flowers" / inner)
    data = f.load_flowers17(tmp_path / "flowers")
    assert isinstance(data.images, f.ImageFiles) and len(data.images) == 1360 and data.masks is None
    assert np.array_equal(np.bincount(data.y), np.full(17, 80)) and data.y.dtype == np.int64
    assert data.target_names[0] == "Daffodil"
    assert data.target_names[-1] == "Pansy"
    assert len(set(data.target_names)) == 17
    for i in (0, 79, 80, 1359):
        assert data.frames["name"][i] == f"image_{i + 1:04d}" and data.y[i] == i // 80
        assert data.images[i].shape == (12, 16 + data.y[i], 3)
    assert data.provenance.name == "Flowers-17" and data.provenance.tier == "original"


def test_errors_of_flowers17_name_the_file(tmp_path):
    refused("flowers does not exist; expected there: the images", f.load_flowers17, tmp_path / "flowers")
    refused("holds no images; expected there: .*image_0001.jpg", f.load_flowers17, tmp_path)
    directory = tmp_path / "flowers" / "jpg"
    write_flowers17(directory)
    first = directory / "image_0081.jpg"
    for other in ("image_1361.jpg", "image_0000.jpg", "image_81.jpg", "rose.jpg"):
        first.rename(directory / other)
        refused(rf"jpg.{re.escape(other)} is not named as in", f.load_flowers17, tmp_path / "flowers")
        (directory / other).rename(first)
    whole = first.read_bytes()
    (directory / "image_0900.jpg").unlink()
    first.unlink()
    refused(r"jpg.image_0081\.jpg is missing \(2 of 1360 are\)", f.load_flowers17, tmp_path / "flowers")
    (directory / "image_0900.jpg").write_bytes(b"no image at all")
    first.write_bytes(whole[:100])
    data = f.load_flowers17(tmp_path / "flowers")  # reads nothing
    for i in (80, 899):
        refused(rf"image_{i + 1:04d}\.jpg cannot be read", data.images.__getitem__, i)
    first.write_bytes(b"")
    refused(r"image_0081\.jpg cannot be read", data.images.__getitem__, 80)


def test_load_original(tmp_path, monkeypatch):
    monkeypatch.delenv("CUELEARN_DATA", raising=False)
    with pytest.raises(ValueError, match="name must be one of .*eth80.*flowers17.*idol2.*got 'mnist'"):
        load_original("mnist")
    refused("set CUELEARN_DATA to the directory that holds the directory eth80", load_original, "eth80")
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path))
    refused(r"'idol2' was not found: CUELEARN_DATA is .* does not exist", load_original, "idol2")
    write_eth80(tmp_path / "eth80")
    write_idol2(tmp_path / "idol2")
    assert len(load_original("eth80").y) == 15
    assert load_original("idol2").laser.shape == (15, 181)
    write_flowers17(tmp_path / "flowers17" / "jpg")
    assert len(load_original("flowers17").y) == 1360
