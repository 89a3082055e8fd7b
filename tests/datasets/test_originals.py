"""The papers' own tables: from small files of their layout, and from the real ones where they are."""

import bz2
import contextlib
import gzip
import hashlib
import io
import warnings

import numpy as np
import pytest
import scipy.io
from sklearn.datasets import dump_svmlight_file

from companion import originals
from companion.originals import AWA_TEST_CLASSES, load_original
from cuelearn.datasets import DataFileError, load_partial_labels

#: Small files of the layout have the originals' names, not their sums.
pytestmark = pytest.mark.filterwarnings("ignore:.* is damaged or another edition:UserWarning")


@pytest.fixture
def real(users_originals):
    """Loads a set of the papers' own data whose files lie, as published, in the user's ``CUELEARN_DATA``."""

    def published(file):
        content = file.read_bytes() if file.is_file() else b""
        return hashlib.sha256(content).hexdigest() == originals.known_sum(file.name).removeprefix("sha256:")

    def load(name, *files):
        for directory in (users_originals, users_originals / name):
            if all(published(directory / file) for file in files):
                return load_original(name, directory)
        pytest.skip(f"{name} is not there as it was published")

    return load


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


def put(path, files):
    for name, content in files.items():
        (path / name).write_bytes(content)


def loaded(monkeypatch, path, name, files):
    """What is read from files in the directory of ``CUELEARN_DATA``."""
    put(path, files)
    monkeypatch.setenv("CUELEARN_DATA", str(path))
    return load_original(name)


def cell(*items):
    """A row of a MATLAB cell array."""
    row = np.empty((1, len(items)), dtype=object)
    row[0] = items
    return row


@pytest.mark.parametrize("form", ["hdf5", "libsvm"])
def test_usps(tmp_path, monkeypatch, form):
    images, digits = (np.arange(5 * 256) % 8 / 8).reshape(5, 256), np.array([3, 0, 9, 7, 1])
    parts = {"train": slice(0, 3), "test": slice(3, 5)}
    if form == "hdf5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "usps.h5", "w") as held:
            for part, rows in parts.items():
                held[f"{part}/data"], held[f"{part}/target"] = images[rows], digits[rows]
    else:
        for name, rows in (("usps.bz2", parts["train"]), ("usps.t.bz2", parts["test"])):
            text = io.BytesIO()
            dump_svmlight_file(2.0 * images[rows] - 1.0, digits[rows] + 1, text, zero_based=False)
            (tmp_path / name).write_bytes(bz2.compress(text.getvalue()))
    data = loaded(monkeypatch, tmp_path, "usps", {})
    assert data.X.dtype == np.float32 and np.array_equal(data.X, (2.0 * images - 1.0).astype(np.float32))
    assert data.y.tolist() == digits.tolist() and data.cues == {"pixels": slice(0, 256)}
    assert data.train.tolist() == [0, 1, 2] and data.test.tolist() == [3, 4]
    assert data.provenance.tier == "original" and len(data.provenance.sha256) >= 64


X_PARTIAL = np.random.default_rng(0).normal(size=(4, 3))
POSSIBLE = np.array([[1, 1, 0], [0, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=float)
TRUTH = np.eye(3)[[1, 1, 0, 1]]


def partial(X=X_PARTIAL, possible=POSSIBLE, truth=TRUTH, folds=(([2, 0], [1, 3]), ([1, 3], [0, 2]))):
    parts = {
        key: cell(*(np.array(part)[None] + 1 for part in part))
        for key, part in zip(("tr", "te"), zip(*folds))
    }
    return mat(features=X, p_labels=possible, logitlabels=truth, **parts)


def test_partial_labels(tmp_path, monkeypatch):
    data = loaded(monkeypatch, tmp_path, "lost", {"lost.mat": partial()})
    assert data.X.dtype == np.float32 and np.allclose(data.X, X_PARTIAL) and data.y.tolist() == [1, 1, 0, 1]
    assert np.array_equal(data.candidates.mask(), POSSIBLE == 1)
    assert data.candidates.bag_sizes.tolist() == [1] * 4
    folds = [[part.tolist() for part in fold] for fold in data.folds]
    assert folds == [[[0, 2], [1, 3]], [[1, 3], [0, 2]]]
    turned = mat(data=X_PARTIAL, partial_target=POSSIBLE.T, target=TRUTH.T)
    birds = loaded(monkeypatch, tmp_path, "birdsong", {"BirdSong.mat": turned})
    assert birds.y.tolist() == [1, 1, 0, 1] and len(birds.folds) == 5  # drawn, as the file has none
    assert sorted(np.concatenate([test for _, test in birds.folds])) == [0, 1, 2, 3]
    own = load_partial_labels(tmp_path / "BirdSong.mat")
    assert own.folds == [] and np.array_equal(own.candidates.mask(), POSSIBLE == 1)


def test_damaged_partial_labels_warn_or_are_refused(tmp_path, monkeypatch):
    """Bits flipped anywhere, and cut files: never other numbers without a word."""
    path = tmp_path / "BirdSong.mat"
    whole = partial()
    path.write_bytes(whole)
    known = hashlib.sha256(whole).hexdigest()
    monkeypatch.setattr(originals, "known_sum", lambda file: f"sha256:{known}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_original("birdsong", tmp_path).provenance.sha256 == known
    altered = [whole[:k] for k in (0, 100, len(whole) - 1)]
    for k in range(0, len(whole), len(whole) // 40):
        altered.append(whole[:k] + bytes([whole[k] ^ 1 << k % 8]) + whole[k + 1 :])
    for content in altered:
        path.write_bytes(content)
        with pytest.warns(
            UserWarning, match=rf"BirdSong\.mat is damaged or another edition: expected .*{known}"
        ):
            with contextlib.suppress(DataFileError):
                load_original("birdsong", tmp_path)


def corel5k(X, y, names=("sky", "water", "tree")):
    labels = "".join(f'<label name="{name}"></label>' for name in names)
    return {"corel5k.mat": mat(X=X, Y=y), "corel5k_labels.xml": f"<labels>{labels}</labels>".encode()}


def test_corel5k_is_cut_before_the_labels_hidden_in_X(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (20, 499)).astype(np.uint8), rng.integers(0, 2, (20, 3)).astype(np.uint8)
    data = loaded(monkeypatch, tmp_path, "corel5k", corel5k(np.hstack([X, y]), y))
    assert np.array_equal(data.X, X) and np.array_equal(data.y, y)
    assert data.target_names == ["sky", "water", "tree"] and data.train is None


LABELS = ["Beach", "Sunset", "FallFoliage", "Field", "Mountain", "Urban"]
#: A header as Mulan writes it.
HEADER = ["@relation MultiLabelData", *(f"@attribute Att{k} numeric" for k in range(1, 295))]
HEADER += [*(f"@attribute {name} {{0,1}}" for name in LABELS), "@data"]
SCENES = np.random.default_rng(0).integers(0, 1001, (8, 300)) / 1000
SCENES[:, 294:] = np.round(SCENES[:, 294:])


def scene(rows=SCENES[5:], header=HEADER):
    return {"scene-train.arff": arff(SCENES[:5], HEADER), "scene-test.arff": arff(rows, header)}


@pytest.mark.parametrize("header", [HEADER, ["% a comment", *HEADER], []])
def test_scene_has_its_training_rows_first(tmp_path, monkeypatch, header):
    data = loaded(monkeypatch, tmp_path, "scene", scene(header=header))
    assert data.X.dtype == np.float32 and np.array_equal(data.X, SCENES[:, :294].astype(np.float32))
    assert data.y.dtype == np.int8 and np.array_equal(data.y, SCENES[:, 294:])
    assert data.target_names == LABELS
    assert data.train.tolist() == [0, 1, 2, 3, 4] and data.test.tolist() == [5, 6, 7]
    assert data.cues == {"L": slice(0, 98), "u": slice(98, 196), "v": slice(196, 294)}
    names = ["L mean 0,0", "L mean 6,6", "L variance 0,0", "u mean 1,0", "v variance 6,6"]
    assert [data.feature_names[k] for k in (0, 48, 49, 105, 293)] == names


CLASSES = [*(name.replace(" ", "+") for name in AWA_TEST_CLASSES), *(f"other+{k}" for k in range(40))]


def awa(**changes):
    """Arrays of two images per class; an entry of None is left out."""
    rng, widths = np.random.default_rng(0), {"phog": 3, "surf": 5, "rgsift": 4, "lss": 2}
    arrays = {cue: rng.dirichlet(np.ones(width), 100).astype(np.float16) for cue, width in widths.items()}
    arrays |= {"y": np.repeat(np.arange(50), 2), "classes": np.array(CLASSES)} | changes
    return {"awa_subset.npz": npz(**{name: array for name, array in arrays.items() if array is not None})}


def test_awa(tmp_path, monkeypatch):
    data = loaded(monkeypatch, tmp_path, "awa", awa())
    assert data.X.shape == (100, 14) and data.X.dtype == np.float32
    assert np.array_equal(data.y, np.repeat(np.arange(50), 2))
    assert data.cues == {
        "phog": slice(0, 3),
        "surf": slice(3, 8),
        "rgsift": slice(8, 12),
        "lss": slice(12, 14),
    }
    assert data.target_names[:10] == list(AWA_TEST_CLASSES) and data.target_names[10] == "other 0"


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def usps(test):
    return {"usps.bz2": bz2.compress(b"3 1:0.5\n"), "usps.t.bz2": test}


VIEWS = cell(*(np.ones((d, 30)) for d in (20, 59, 40)))
BAD = [
    ("usps", {}, r"usps\.h5 is missing"),
    ("usps", usps(bz2.compress(b"12 1:0.5\n")), "must hold images of 256 grey values"),
    ("lost", {"lost.mat": b"nothing"}, "does not hold lost"),
    ("lost", {"lost.mat": partial(possible=changed(POSSIBLE, (2, 0), 0))}, "one true label per row"),
    ("lost", {"lost.mat": partial(folds=[([0, 1], [2])])}, "must give in tr and te"),
    ("corel5k", corel5k(np.zeros((4, 499)), np.zeros((4, 2))), "must hold X"),
    ("scene", scene() | {"scene-train.arff": b""}, r"scene-train\.arff does not hold scene"),
    ("scene", scene(changed(SCENES, (2, 299), 0.5)), "must hold rows of 294 numbers"),
    ("scene", scene(header=[*HEADER[:1], *HEADER[7:-1], *HEADER[1:7], "@data"]), "last attributes"),
    ("awa", awa(surf=None), "does not hold Animals with Attributes .*surf"),
    ("awa", awa(phog=np.full((100, 3), np.nan)), "finite floats and none negative"),
    ("awa", awa(classes=np.array(["okapi", *CLASSES[1:]])), "the ten test classes among them"),
    ("scene15", {"scene15_mtv.mat": mat(X=VIEWS, gt=np.ones((29, 1)))}, "must hold three matrices X"),
    ("covtype", {"covtype.data.gz": gzip.compress(b"1,2,9\n")}, "must hold rows of 54 numbers"),
]


@pytest.mark.parametrize(("name", "files", "message"), BAD, ids=range(len(BAD)))
def test_what_is_wrong_with_a_file_is_named(tmp_path, name, files, message):
    put(tmp_path, files)
    with pytest.raises(DataFileError, match=message) as caught:
        load_original(name, tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.long
def test_the_real_usps(real):
    data = real("usps", "usps.h5")
    assert data.X.shape == (9298, 256) and data.X.min() == -1.0 and data.X.max() == 1.0
    # the published class sizes
    assert np.bincount(data.y[data.train]).tolist() == [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    assert np.bincount(data.y[data.test]).tolist() == [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]


@pytest.mark.long
def test_the_real_partial_labels(real):
    lost, msrcv2 = real("lost", "lost.mat"), real("msrcv2", "MSRCv2.mat")
    for data, shape, n_classes, mean in ((lost, (1122, 108), 16, 2.23), (msrcv2, (1758, 48), 23, 3.16)):
        assert data.X.shape == shape and len(data.target_names) == n_classes == data.candidates.n_labels[0]
        assert round(np.mean(data.candidates.n_candidates), 2) == mean
        assert data.candidates.mask()[np.arange(len(data.y)), data.y].all()
        assert len(data.folds) == 5
        assert sorted(np.concatenate([test for _, test in data.folds])) == list(range(len(data.y)))
    assert len(np.unique(lost.y)) == 14  # two names are only ever wrong


@pytest.mark.long
def test_the_real_corel5k(real):
    data = real("corel5k", "corel5k.mat")
    assert data.X.shape == (5000, 499) and data.y.shape == (5000, 374)
    assert set(np.unique(data.X)) == {0.0, 1.0}
    assert {"sky", "people", "water", "tree", "grass"} <= set(data.target_names)


@pytest.mark.long
def test_the_real_scene_and_the_order_of_its_columns(real):
    data = real("scene", "scene-train.arff", "scene-test.arff")
    assert data.X.shape == (2407, 294) and data.y.sum(axis=0).tolist() == [427, 364, 397, 433, 533, 431]
    assert len(data.train) == 1211 and len(data.test) == 1196
    assert data.y[data.train].sum(axis=0).tolist() == [227, 165, 197, 196, 277, 224]
    L, u, v = (data.X[:, columns].reshape(-1, 2, 7, 7)[:, 0] for columns in data.cues.values())
    # black has no colour; fields are green, sunsets red; the sky is blue
    assert u[L < 0.01].std() < 0.6 * u.std()
    assert v[L < 0.01].std() < 0.4 * v.std()
    assert L[:, 0].mean() > L[:, -1].mean() + 0.1
    of_class = {name: u[label == 1].mean() for name, label in zip(data.target_names, data.y.T)}
    assert min(of_class, key=of_class.get) == "Field" and max(of_class, key=of_class.get) == "Sunset"
    assert v[:, 0].mean() < v[:, -1].mean() - 0.2


@pytest.mark.long
def test_the_real_awa(real):
    data = real("awa", "awa_subset.npz")
    assert data.X.shape == (3000, 6252)
    widths = {"phog": 252, "surf": 2000, "rgsift": 2000, "lss": 2000}
    assert {cue: c.stop - c.start for cue, c in data.cues.items()} == widths
    assert sorted(np.bincount(data.y)) == [50] * 40 + [100] * 10
    for columns in data.cues.values():
        assert np.allclose(data.X[:, columns].sum(axis=1, dtype=np.float64), 1.0, atol=1e-3)


@pytest.mark.long
def test_the_real_scene15(real):
    data = real("scene15", "scene15_mtv.mat")
    # the sizes of the published directories, by which the names of the classes go
    sizes = [241, 360, 328, 260, 308, 374, 410, 292, 356, 215, 216, 311, 210, 289, 315]
    assert np.bincount(data.y).tolist() == sizes and len(data.target_names) == 15
    assert [data.X[:, part].shape[1] for part in data.cues.values()] == [20, 59, 40]
