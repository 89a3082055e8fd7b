"""The papers' own tables: from small files of their layout, and from the real ones where they are."""

import bz2
import contextlib
import gzip
import hashlib
import io
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from sklearn.datasets import dump_svmlight_file

from cuelearn.datasets import AWA_TEST_CLASSES, DataFileError, load_original, load_partial_labels, originals

#: Small files of the layout have the originals' names, not their sums.
pytestmark = pytest.mark.filterwarnings("ignore:.* is damaged or another edition:UserWarning")
REAL = Path(os.environ.get("CUELEARN_DATA", "/nowhere"))


def real(name, *files):
    """Skip where the original is not there; it may lie in a directory of its own."""
    there = any(all((REAL / place / file).is_file() for file in files) for place in ("", name))
    return pytest.mark.skipif(not there, reason=f"{name} is not there")


def put(path, files):
    for name, content in files.items():
        (path / name).write_bytes(content)


def both(monkeypatch, path, name, files):
    """What is read from files in a directory, and in the directory of ``CUELEARN_DATA``."""
    put(path, files)
    monkeypatch.setenv("CUELEARN_DATA", str(path))
    return load_original(name, path), load_original(name)


def mat(**arrays):
    file = io.BytesIO()
    scipy.io.savemat(file, arrays)
    return file.getvalue()


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def arff(rows, header=("@data",)):
    file = io.BytesIO()
    np.savetxt(file, rows, "%g", ",", header="\n".join(header), comments="")
    return file.getvalue()


def cell(*items):
    """A row of a MATLAB cell array."""
    row = np.empty((1, len(items)), dtype=object)
    for k, item in enumerate(items):
        row[0, k] = item
    return row


def small_images():
    return (np.arange(5 * 256) % 8 / 8).reshape(5, 256)


def check_usps(data):
    assert data.X.dtype == np.float32
    assert np.array_equal(data.X, (2.0 * small_images() - 1.0).astype(np.float32))
    assert data.y.tolist() == [3, 0, 9, 7, 1] and data.y.dtype == np.int64
    assert data.train.tolist() == [0, 1, 2] and data.test.tolist() == [3, 4]
    assert data.cues == {"pixels": slice(0, 256)}
    assert len(data.feature_names) == 256
    assert data.target_names == list("0123456789")
    assert data.provenance.tier == "original" and len(data.provenance.sha256) >= 64


def test_usps_of_hdf5(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    file = tmp_path / "usps.h5"
    parts = {"train": (slice(0, 3), "<f4", [3, 0, 9]), "test": (slice(3, 5), ">f8", [7, 1])}
    with h5py.File(file, "w") as held:
        for part, (rows, dtype, digits) in parts.items():
            held.create_dataset(f"{part}/data", data=small_images()[rows].astype(dtype), compression="gzip")
            held[f"{part}/target"] = np.array(digits, dtype="u1")
    for data in both(monkeypatch, tmp_path, "usps", {}):
        check_usps(data)
    for content in (b"nothing", file.read_bytes()[:1000]):
        file.write_bytes(content)
        with pytest.raises(DataFileError, match=r"usps\.h5 does not hold USPS in the form of its source"):
            load_original("usps", tmp_path)


def test_usps_of_hdf5_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "usps.h5").write_bytes(b"not looked at")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"h5py is not installed: .*\.\[hdf5\].*usps\.t\.bz2"):
        load_original("usps", tmp_path)


def test_usps_of_libsvm(tmp_path, monkeypatch):
    (tmp_path / "two" / "usps").mkdir(parents=True)
    images, digits = 2.0 * small_images() - 1.0, np.array([3, 0, 9, 7, 1])
    for name, rows in (("usps", slice(0, 3)), ("usps.t", slice(3, 5))):
        dump_svmlight_file(images[rows], digits[rows] + 1, str(tmp_path / name), zero_based=False)
        (tmp_path / "two" / "usps" / f"{name}.bz2").write_bytes(bz2.compress((tmp_path / name).read_bytes()))
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path / "two"))
    check_usps(load_original("usps"))
    check_usps(load_original("usps", tmp_path))  # unpacked


def partial(X, possible, truth, folds=()):
    held = {"features": X, "p_labels": possible, "logitlabels": truth}
    if folds:
        held["tr"], held["te"] = (
            cell(*(np.array(part)[None] + 1 for part in parts)) for parts in zip(*folds)
        )
    return mat(**held)


def small_partial():
    X = np.random.default_rng(0).normal(size=(4, 3))
    possible = np.array([[1, 1, 0], [0, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=float)
    return X, possible, np.eye(3)[[1, 1, 0, 1]], [([2, 0], [1, 3]), ([1, 3], [0, 2])]


@pytest.mark.parametrize(("name", "file"), [("lost", "lost.mat"), ("msrcv2", "MSRCv2.mat")])
def test_partial_labels(tmp_path, monkeypatch, name, file):
    X, possible, truth, folds = small_partial()
    for data in both(monkeypatch, tmp_path, name, {file: partial(X, possible, truth, folds)}):
        assert data.X.dtype == np.float32 and np.allclose(data.X, X) and data.y.tolist() == [1, 1, 0, 1]
        assert np.array_equal(data.candidates.mask(), possible == 1)
        assert data.candidates.bag_sizes.tolist() == [1] * 4
        found = [[part.tolist() for part in fold] for fold in data.folds]
        assert found == [[[0, 2], [1, 3]], [[1, 3], [0, 2]]]
        assert len(data.target_names) == 3 and data.provenance.tier == "original" and "4, 3" in repr(data)
        assert all(data.candidates.contains(i, [data.y[i]]) for i in range(4))


LABELS = ["Beach", "Sunset", "FallFoliage", "Field", "Mountain", "Urban"]
#: A header as Mulan writes it.
HEADER = ["@relation MultiLabelData", *(f"@attribute Att{k} numeric" for k in range(1, 295))]
HEADER += [*(f"@attribute {name} {{0,1}}" for name in LABELS), "@data"]


def corel5k(X, y, names):
    labels = "".join(f'<label name="{name}"></label>' for name in names)
    names = f'<labels xmlns="http://mulan.sourceforge.net/labels">{labels}</labels>'
    return {"corel5k.mat": mat(X=X, Y=y), "corel5k_labels.xml": names.encode()}


def test_corel5k_is_cut_before_the_labels_hidden_in_X(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (20, 499)).astype(np.uint8), rng.integers(0, 2, (20, 3)).astype(np.uint8)
    names = ["sky", "water", "tree"]
    for data in both(monkeypatch, tmp_path, "corel5k", corel5k(np.hstack([X, y]), y, names)):
        assert np.array_equal(data.X, X)
        assert np.array_equal(data.y, y)
        assert data.target_names == names
        assert data.provenance.tier == "original" and data.train is None


def scene_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.hstack([rng.integers(0, 1001, (n, 294)) / 1000, rng.integers(0, 2, (n, 6))])


@pytest.mark.parametrize(
    "header", [HEADER, ["% a comment", *(line.replace("@attribute", "@ATTRIBUTE") for line in HEADER)], []]
)
def test_scene_has_its_training_rows_first(tmp_path, monkeypatch, header):
    rows = scene_rows(8)
    parts = {"scene-train.arff": arff(rows[:5], header), "scene-test.arff": arff(rows[5:], header)}
    for data in both(monkeypatch, tmp_path, "scene", parts):
        assert data.X.dtype == np.float32 and np.array_equal(data.X, rows[:, :294].astype(np.float32))
        assert data.y.dtype == np.int8 and np.array_equal(data.y, rows[:, 294:])
        assert data.target_names == LABELS
        assert data.train.tolist() == [0, 1, 2, 3, 4] and data.test.tolist() == [5, 6, 7]
        assert data.cues == {"L": slice(0, 98), "u": slice(98, 196), "v": slice(196, 294)}
        names = ["L mean 0,0", "L mean 6,6", "L variance 0,0", "u mean 1,0", "v variance 6,6"]
        assert [data.feature_names[k] for k in (0, 48, 49, 105, 293)] == names
        assert data.provenance.tier == "original" and data.provenance.sha256.count(" and ") == 1


NAMES = [*(name.replace(" ", "+") for name in AWA_TEST_CLASSES), *(f"other+{k}" for k in range(40))]
WIDTHS = {"phog": 3, "surf": 5, "rgsift": 4, "lss": 2}


def small_awa(**changes):
    """Arrays of two images per class; an entry of None is left out."""
    rng = np.random.default_rng(0)
    arrays = {cue: rng.dirichlet(np.ones(width), 100).astype(np.float16) for cue, width in WIDTHS.items()}
    arrays |= {"y": np.repeat(np.arange(50), 2).astype(np.uint8), "classes": np.array(NAMES)} | changes
    return {name: array for name, array in arrays.items() if array is not None}


def test_a_small_awa(tmp_path, monkeypatch):
    arrays = small_awa()
    for data in both(monkeypatch, tmp_path, "awa", {"awa_subset.npz": npz(**arrays)}):
        assert data.X.shape == (100, 14) and data.X.dtype == np.float32
        assert data.y.dtype == np.int64 and np.array_equal(data.y, arrays["y"])
        assert list(data.cues) == ["phog", "surf", "rgsift", "lss"]
        for cue, columns in data.cues.items():
            assert np.array_equal(data.X[:, columns], arrays[cue].astype(np.float32))
        assert data.train is data.test is None
        assert len(data.feature_names) == 14 and data.feature_names[3] == "surf 0"
        assert data.target_names[:10] == list(AWA_TEST_CLASSES) and data.target_names[10] == "other 0"
        assert data.provenance[:2] == ("awa", "original") and len(data.provenance.sha256) == 64


def test_scene15(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    views = [rng.random((d, 30)) for d in (20, 59, 40)]
    gt = np.tile(np.arange(1, 16), 2).astype(np.uint8)[:, None]
    for data in both(monkeypatch, tmp_path, "scene15", {"scene15_mtv.mat": mat(X=cell(*views), gt=gt)}):
        assert data.X.shape == (30, 119) and data.X.dtype == np.float32
        assert np.allclose(data.X[:, data.cues["second"]], views[1].T)
        assert data.y.tolist() == 2 * list(range(15)) and data.target_names[:2] == ["suburb", "coast"]


def test_covtype(tmp_path, monkeypatch):
    rows = np.hstack([np.arange(54 * 4).reshape(4, 54), [[1], [7], [2], [2]]])
    text = "\n".join(",".join(map(str, row)) for row in rows)
    files = {"covtype.data.gz": gzip.compress(text.encode())}
    for data in both(monkeypatch, tmp_path, "covtype", files):
        assert np.array_equal(data.X, rows[:, :54]) and data.y.tolist() == [0, 6, 1, 1]
        assert len(data.target_names) == 7 and [len(data.train), len(data.test)] == [4, 0]
        assert data.provenance.licence == "CC BY 4.0 (stated by UCI)"


def test_emotions_birdsong_and_caltech(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    files = {}
    for part, n in (("train", 3), ("test", 2)):
        rows = np.hstack([rng.normal(size=(n, 72)).round(3), rng.integers(0, 2, (n, 6))])
        files[f"emotions-{part}.arff"] = arff(rows)
    for data in both(monkeypatch, tmp_path, "emotions", files):
        assert data.X.shape == (5, 72) and data.train.tolist() == [0, 1, 2] and data.y.shape == (5, 6)
    X, possible, truth, _ = small_partial()
    files = {"BirdSong.mat": mat(data=X, partial_target=possible.T, target=truth.T)}
    for birds in both(monkeypatch, tmp_path, "birdsong", files):
        assert birds.y.tolist() == [1, 1, 0, 1] and len(birds.folds) == 5  # drawn, as the file has none
        assert sorted(np.concatenate([test for _, test in birds.folds])) == [0, 1, 2, 3]
        assert all(sorted([*train, *test]) == [0, 1, 2, 3] for train, test in birds.folds)
    for name in ("ant", "beaver"):
        place = tmp_path / "caltech101" / "caltech-101" / "101_ObjectCategories" / name
        place.mkdir(parents=True)
        (place / "image_0001.jpg").touch()
    assert load_original("caltech101").target_names == ["ant", "beaver"]


def bad_usps():
    first = {"usps.bz2": bz2.compress(b"3 1:0.5\n")}
    yield {}, r"usps\.h5 is missing; USPS comes as usps\.h5, or as usps\.bz2 and"
    yield first, r"usps\.t\.bz2 is missing"
    eleven = {"usps.t.bz2": bz2.compress(b"12 1:0.5\n")}
    yield first | eleven, r"usps\.t\.bz2 must hold images of 256 grey values and as many digits"
    yield first | {"usps.t.bz2": b"nothing"}, r"does not hold USPS in the form of its source"


def bad_lost():
    X, possible, truth, folds = small_partial()
    hidden = possible.copy()
    hidden[2, 0] = 0.0
    yield {}, r"lost\.mat is missing"
    yield (
        {"lost.mat": b"nothing"},
        r"lost\.mat does not hold lost in the form of the partial-label benchmarks",
    )
    for arrays, message in [
        ((X, hidden, truth, folds), "gives each row one true label that is among its candidates"),
        ((X, possible, np.zeros((4, 3)), folds), "gives each row one true label"),
        ((X[:3], possible, truth, folds), "must hold features"),
        ((X, 2 * possible, truth, folds), "must hold features"),
        ((X, possible, truth, [([0, 1], [2])]), "must give in tr and te, for each fold, two parts that hold"),
        ((X, possible, truth, [([0, 1, 2], [2])]), "must give in tr and te"),
    ]:
        yield {"lost.mat": partial(*arrays)}, rf"lost\.mat.*{message}"


def bad_corel5k():
    files = corel5k(np.zeros((4, 499)), np.zeros((4, 2)), ["sky"])
    yield {}, r"corel5k\.mat is missing"
    yield files, "must hold X"
    yield files | {"corel5k.mat": b"nothing"}, "does not hold Corel5k"


def changed(rows, column, value):
    rows = rows.copy()
    rows[-1, column] = value
    return rows


def bad_scene():
    rows = scene_rows(3)
    train = {"scene-train.arff": arff(rows, HEADER)}
    yield {}, r"scene-train\.arff is missing"
    yield train, r"scene-test\.arff is missing"
    wrong = r"must hold rows of 294 numbers in \[0, 1\] and the"
    for bad in (rows[:, 1:], changed(rows, 0, 1.5), changed(rows, 7, np.nan), changed(rows, 299, 0.5)):
        yield train | {"scene-test.arff": arff(bad, [])}, rf"scene-test\.arff {wrong}"
    attributes = HEADER[1:-1]
    for names in (attributes[-6:] + attributes[:-6], attributes[:-6] + attributes[:-7:-1], attributes[:-1]):
        content = arff(rows, [HEADER[0], *names, "@data"])
        message = r"scene-test\.arff must hold .*\(3, 300\) and last attributes "
        yield train | {"scene-test.arff": content}, message
    broken = {b"": "no rows", b"@data\n{0 0.5, 294 1}\n": "could not convert"}
    broken |= {b"1,0\n1\n": "columns", b"\xff": "decode"}
    for content, reason in broken.items():
        yield train | {"scene-test.arff": content}, rf"scene-test\.arff does not hold scene .*{reason}"


def bad_awa():
    def nan_in(cue, value=np.nan):
        block = small_awa()[cue].copy()
        block[7, 1] = value
        return {cue: block}

    for changes, message in [
        ({"surf": None}, r"does not hold Animals with Attributes in the expected form \(.*surf"),
        ({"classes": np.array(NAMES, dtype=object)}, "does not hold Animals with Attributes"),  # pickled
        ({"lss": np.ones((99, 2), np.float16)}, "must hold one histogram per image in each cue"),
        ({"lss": np.ones((100, 0), np.float16)}, "must hold one histogram per image in each cue"),
        ({"y": np.zeros((100, 1), int)}, "one class per image"),
        (nan_in("phog"), "finite floats and none negative"),
        (nan_in("surf", -0.5), "finite floats"),
        ({"phog": np.full((100, 3), "a")}, "finite floats"),
        ({"classes": np.array([*NAMES[:49], NAMES[0]])}, "must name 50 different classes, .* got 49"),
        ({"classes": np.array(["okapi", *NAMES[1:]])}, "the ten test classes among them"),
        ({"y": np.repeat(np.arange(50), 2) % 49}, "class from 0 to 49 and every class an image"),
        ({"y": np.repeat(np.arange(50), 2) + 1}, "class from 0 to 49"),
    ]:
        yield {"awa_subset.npz": npz(**small_awa(**changes))}, rf"awa_subset\.npz.*{message}"
    whole = npz(**small_awa())
    damaged = bytearray(whole)
    damaged[len(whole) // 3] ^= 255
    array = io.BytesIO()
    np.save(array, np.ones(3))  # where an archive is expected
    for content in (b"", b"nothing", whole[:-50], whole[: len(whole) // 2], bytes(damaged), array.getvalue()):
        yield {"awa_subset.npz": content}, r"awa_subset\.npz does not hold Animals with Attributes"


def bad_tables():
    views = cell(*(np.ones((d, 30)) for d in (20, 59, 40)))
    few = np.tile(np.arange(1, 16), 2)[:-1, None]
    yield "scene15", {"scene15_mtv.mat": mat(X=views, gt=few)}, r"scene15_mtv\.mat must hold three matrices X"
    yield "scene15", {}, r"scene15_mtv\.mat is missing"
    short = gzip.compress(b"1,2,9\n")
    yield "covtype", {"covtype.data.gz": short}, r"covtype\.data\.gz must hold rows of 54 numbers"
    sets = {"usps": bad_usps, "lost": bad_lost, "corel5k": bad_corel5k, "scene": bad_scene, "awa": bad_awa}
    for name, cases in sets.items():
        for files, message in cases():
            yield name, files, message


@pytest.mark.parametrize(("name", "files", "message"), list(bad_tables()), ids=lambda value: str(value)[:40])
def test_what_is_wrong_with_a_file_is_named(tmp_path, name, files, message):
    put(tmp_path, files)
    with pytest.raises(DataFileError, match=message) as caught:
        load_original(name, tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("turned", [False, True])
def test_partial_labels_in_either_form(turned, tmp_path):
    rng = np.random.default_rng(0)
    X, truth = rng.normal(size=(6, 3)), np.eye(2)[[0, 1, 1, 0, 1, 0]]
    possible = np.maximum(truth, [[1, 0]] + [[0, 0]] * 5)
    possible[1] = 1
    held = {"data": X, "partial_target": possible.T, "target": truth.T}
    if not turned:
        held = {"features": X, "p_labels": possible, "logitlabels": truth}
        held |= {"tr": cell(np.arange(1, 5)), "te": cell(np.arange(5, 7))}
    put(tmp_path, {"birds.mat": mat(**held)})
    found = load_partial_labels(tmp_path / "birds.mat")
    assert found.y.tolist() == [0, 1, 1, 0, 1, 0] and found.candidates.n_candidates == [1, 2, 1, 1, 1, 1]
    assert found.provenance.name == "birds" and len(found.folds) == (0 if turned else 1)
    held["target" if turned else "logitlabels"] = 0 * (truth.T if turned else truth)
    put(tmp_path, {"birds.mat": mat(**held)})
    with pytest.raises(DataFileError, match="one true label"):
        load_partial_labels(tmp_path / "birds.mat")


@pytest.mark.parametrize("compressed", [False, True])
def test_damaged_partial_labels_warn_or_are_refused(compressed, tmp_path):
    """Bits flipped anywhere, and cut files: never other numbers without a word."""
    path = tmp_path / "birds.mat"
    X, possible, truth, _ = small_partial()
    held = {"data": X, "partial_target": possible.T, "target": truth.T}
    scipy.io.savemat(path, held, do_compression=compressed)
    whole = path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = load_partial_labels(path).provenance.sha256
        load_partial_labels(path, sha256=known.upper())
    cut = [whole[:k] for k in (0, 100, len(whole) // 2, len(whole) - 1)]
    flipped = [bytearray(whole) for _ in range(60)]
    for k, content in enumerate(flipped):
        content[k * len(whole) // 60] ^= 1 << k % 8
    for content in [*cut, *flipped]:
        path.write_bytes(content)
        with pytest.warns(
            UserWarning, match=rf"birds\.mat is damaged or another edition: expected .*{known}"
        ):
            with contextlib.suppress(DataFileError):
                load_partial_labels(path, sha256=known)


def test_the_known_sums_are_compared(tmp_path, monkeypatch):
    """By the names of the files, in every loader; the real ones have them."""
    put(tmp_path, corel5k(np.zeros((4, 499)), np.zeros((4, 1)), ["sky"]))
    with pytest.warns(UserWarning, match=r"corel5k\.mat is damaged or another edition"):
        load_original("corel5k", tmp_path)
    sums = {f.name: f"md5:{hashlib.md5(f.read_bytes()).hexdigest()}" for f in tmp_path.iterdir()}
    monkeypatch.setattr(originals, "known_sum", sums.get)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_original("corel5k", tmp_path)


def test_the_real_files_have_the_known_sums():
    for entry in originals.known_originals().values():
        for name, known in entry.sums.items():
            if (REAL / name).is_file():
                kind, _, expected = known.partition(":")
                assert hashlib.new(kind, (REAL / name).read_bytes()).hexdigest() == expected


def test_the_table_of_originals_is_complete():
    table = originals.known_originals()
    assert {"idol2", "eth80", "flowers17", "caltech101", "mnist", "usps", "letter", "covtype"} <= set(table)
    assert {"awa", "corel5k", "lost", "msrcv2", "birdsong", "scene", "emotions", "scene15"} <= set(table)
    for entry in table.values():
        assert all([entry.title, entry.citation, entry.terms, entry.size, entry.layout, entry.serves])
        assert entry.page.startswith("http") and all(u.startswith("http") for u in entry.urls.values())
        assert {known.partition(":")[0] for known in entry.sums.values()} <= {"", "md5", "sha256"}


@real("usps", "usps.h5")
def test_the_real_usps():
    data = load_original("usps")
    assert data.X.shape == (9298, 256) and data.X.min() == -1.0 and data.X.max() == 1.0
    # the published class sizes
    assert np.bincount(data.y[data.train]).tolist() == [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    assert np.bincount(data.y[data.test]).tolist() == [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]
    ink = data.X[data.y == 0].mean(axis=0).reshape(16, 16)
    # a zero has a hole: the pixels are where they belong
    assert ink[6:10, 6:10].mean() < ink.mean() < ink[6:10].max()


@real("lost", "lost.mat", "MSRCv2.mat")
def test_the_real_partial_labels():
    for name, shape, n_classes, mean in (("lost", (1122, 108), 16, 2.23), ("msrcv2", (1758, 48), 23, 3.16)):
        data = load_original(name)
        assert data.X.shape == shape and len(data.target_names) == n_classes == data.candidates.n_labels[0]
        assert round(np.mean(data.candidates.n_candidates), 2) == mean
        assert data.candidates.mask()[np.arange(len(data.y)), data.y].all()
        assert len(data.folds) == 5
        assert sorted(np.concatenate([test for _, test in data.folds])) == list(range(len(data.y)))
    assert len(np.unique(load_original("lost").y)) == 14  # two names are only ever wrong


@real("corel5k", "corel5k.mat")
def test_the_real_corel5k():
    data = load_original("corel5k")
    assert data.X.shape == (5000, 499) and data.y.shape == (5000, 374)
    assert set(np.unique(data.X)) == {0.0, 1.0}
    assert {"sky", "people", "water", "tree", "grass"} <= set(data.target_names)


@real("scene", "scene-train.arff", "scene-test.arff")
def test_the_real_scene_and_the_order_of_its_columns():
    data = load_original("scene")
    assert data.X.shape == (2407, 294) and data.y.sum(axis=0).tolist() == [427, 364, 397, 433, 533, 431]
    assert len(data.train) == 1211 and len(data.test) == 1196
    assert data.y[data.train].sum(axis=0).tolist() == [227, 165, 197, 196, 277, 224]
    # columns follow each other in runs of 49, and within these in rows of seven blocks
    next_one = np.array([np.corrcoef(data.X[:, k], data.X[:, k + 1])[0, 1] for k in range(293)])
    first = np.arange(1, 294)
    assert np.abs(next_one[first % 49 == 0]).max() < 0.11
    assert abs(next_one[first % 7 != 0].mean() - 0.78) < 0.01
    assert abs(next_one[(first % 7 == 0) & (first % 49 != 0)].mean() - 0.41) < 0.01
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
    assert np.allclose(np.diag(agree), [0.39, 0.56, 0.49], atol=0.01)
    assert (agree - np.diag(np.diag(agree))).max() < 0.185
    # black has no colour; fields are green, sunsets red; the sky is blue
    L, u, v = (block[:, 0] for block in blocks.values())
    assert u[L < 0.01].std() < 0.6 * u.std()
    assert v[L < 0.01].std() < 0.4 * v.std()
    assert L[:, 0].mean() > L[:, -1].mean() + 0.1
    of_class = {name: u[label == 1].mean() for name, label in zip(data.target_names, data.y.T)}
    assert min(of_class, key=of_class.get) == "Field" and max(of_class, key=of_class.get) == "Sunset"
    assert v[:, 0].mean() < v[:, -1].mean() - 0.2


@real("awa", "awa_subset.npz")
def test_the_real_awa():
    data = load_original("awa")
    assert data.X.shape == (3000, 6252)
    widths = {"phog": 252, "surf": 2000, "rgsift": 2000, "lss": 2000}
    assert {cue: c.stop - c.start for cue, c in data.cues.items()} == widths
    images = dict(zip(data.target_names, np.bincount(data.y).tolist()))
    assert {name for name, n in images.items() if n == 100} == set(AWA_TEST_CLASSES)
    assert sorted(images.values()) == [50] * 40 + [100] * 10
    for columns in data.cues.values():
        assert np.allclose(data.X[:, columns].sum(axis=1, dtype=np.float64), 1.0, atol=1e-3)


@real("scene15", "scene15_mtv.mat")
def test_the_real_scene15():
    data = load_original("scene15")
    # the sizes of the published directories, by which the names of the classes go
    sizes = [241, 360, 328, 260, 308, 374, 410, 292, 356, 215, 216, 311, 210, 289, 315]
    assert np.bincount(data.y).tolist() == sizes and len(data.target_names) == 15
    assert [data.X[:, part].shape[1] for part in data.cues.values()] == [20, 59, 40]
