"""Oxford Flowers-17 as a task: seven cues, splits, and kernels on their distances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.svm import SVC

from cuelearn.datasets import DataFileError, ImageData, Provenance, load_original
from cuelearn.datasets.folders import ImageFiles
from cuelearn.experiments import flowers
from cuelearn.kernels import KernelBank, distance_matrix
from cuelearn.mkl import AverageKernelSVM

WIDTHS_OF_CUES = {
    "RGB": 1024,
    "HSV": 512,
    "LxLy": 900,
    "DirC": 578,
    "shape pyramid": 336,
    "words": 24,
    "large words": 24,
}
HALVED = [cue for cue in flowers.FLOWER_CUES if cue != "shape pyramid"]


def draw(c, seed, height=72, width=88):
    """A flower with c + 3 petals, of the class's colour, on a noisy green ground."""
    rng = np.random.default_rng([c, seed])
    rows, columns = np.mgrid[:height, :width]
    y, x = rows - height / 2 + rng.uniform(-4, 4), columns - width / 2 + rng.uniform(-4, 4)
    image = rng.integers(0, 60, (height, width, 3))
    image[..., 1] += 60
    petals = np.hypot(x, y) < 12 + 16 * np.abs(np.cos((c + 3) / 2 * np.arctan2(y, x) + rng.uniform(0, 3)))
    image[petals] = np.array(
        [(220, 40, 40), (230, 220, 60), (90, 60, 210), (240, 240, 240)][c]
    ) - rng.integers(0, 40, 3)
    return image.clip(0, 255).astype(np.uint8)


def drawn_flowers(n_classes=4, n_each=12, **size):
    y = np.repeat(np.arange(n_classes), n_each)
    images = [draw(c, i, **size) for i, c in enumerate(y)]
    origin = Provenance("drawn", "generated", "none", None, "none", "a test")
    names = np.array([f"image_{i + 1:04d}" for i in range(y.size)])
    return ImageData(images, y, list("abcd")[:n_classes], {"name": names}, None, None, None, "Drawn.", origin)


@pytest.fixture(scope="module")
def drawn():
    return drawn_flowers()


@pytest.fixture(scope="module")
def described(drawn):
    return flowers.describe_flowers(drawn)


def test_seven_cues_are_histograms(drawn, described):
    train = np.arange(0, 48, 2)
    data = flowers.flower_cues(described, train, n_words=12)
    assert tuple(data.cues) == flowers.FLOWER_CUES and data.X.dtype == np.float32 and data.X.shape[0] == 48
    assert {cue: columns.stop - columns.start for cue, columns in data.cues.items()} == WIDTHS_OF_CUES
    assert data.X.min() >= 0
    assert len(data.feature_names) == data.X.shape[1]
    assert np.array_equal(data.y, drawn.y)
    for cue, columns in data.cues.items():
        part = data.X[:, columns]
        assert_allclose(part.sum(axis=1), 1, atol=1e-5, err_msg=cue)
        if cue in HALVED:
            assert_allclose(part[:, : part.shape[1] // 2].sum(axis=1), 0.5, atol=1e-5, err_msg=cue)
        else:
            levels = np.split(part, [16, 16 * 5], axis=1)
            assert_allclose([level.sum(axis=1) for level in levels], np.full((3, 48), 1 / 3), atol=1e-5)
    again = flowers.flower_cues(drawn, train[::-1], n_words=12, n_jobs=2)
    assert again.X.tobytes() == data.X.tobytes()


def test_words_are_learnt_from_the_training_rows_alone(drawn, described):
    train = np.arange(0, 48, 2)
    first = flowers.flower_cues(described, train, n_words=12)
    images = list(drawn.images)
    images[1::2] = [255 - image for image in images[1::2]]
    other = flowers.flower_cues(drawn._replace(images=images), train, n_words=12)
    assert other.X[train].tobytes() == first.X[train].tobytes()
    assert not np.array_equal(other.X[1], first.X[1])
    assert not np.array_equal(flowers.flower_cues(described, train + 1, n_words=12).X[train], first.X[train])


def test_what_the_cues_see():
    image = np.zeros((96, 120, 3), np.uint8)
    image[40:56, 50:70] = (255, 0, 0)  # red in the middle, black around it
    histograms, patches, central = flowers._describe_one(image)
    rgb, hsv, pyramid = histograms[0], histograms[1], histograms[4]
    red = 7 * 64
    assert rgb[red] == pytest.approx(0.5 * 320 / (96 * 120))
    assert rgb[512 + red] == pytest.approx(0.5 * 320 / (np.pi * 32 * 40), rel=0.01)
    assert hsv[15] == pytest.approx(rgb[red])
    assert hsv[256 + 15] == pytest.approx(rgb[512 + red])  # hue 0, saturation and value 1
    assert [len(part) for part in patches] == [9 * 12, 3 * 4]
    assert [inside.shape for inside in central] == [(108,), (12,)] and 0.3 < central[0].mean() < 0.6

    stripes = np.repeat((np.arange(120) // 10 % 2 * 255).astype(np.uint8)[None, :, None], 96, axis=0).repeat(
        3, axis=2
    )
    upright = flowers._describe_one(stripes)[0][4][:16]
    lying = flowers._describe_one(np.ascontiguousarray(stripes.swapaxes(0, 1)))[0][4][:16]
    assert max(upright) > 0.99 / 3 and max(lying) > 0.99 / 3 and upright.argmax() != lying.argmax()
    flat = flowers._describe_one(np.full((64, 64, 3), 90, np.uint8))[0]
    assert all(np.isfinite(part).all() and part.sum() == pytest.approx(1, abs=1e-5) for part in flat)
    assert np.ptp(pyramid[:16]) > 0 and np.ptp(flat[4][:16]) == 0


def test_large_photographs_are_scaled_down():
    small = flowers._describe_one(draw(1, 0, 240, 300))[0]
    large = np.kron(draw(1, 0, 240, 300), np.ones((2, 2, 1), np.uint8))
    for one, other in zip(small, flowers._describe_one(large)[0], strict=False):
        assert one.shape == other.shape and np.abs(one - other).sum() < 0.35


def test_patches_in_the_middle_are_never_none():
    for height in range(64, 100):
        _, patches, central = flowers._describe_one(np.zeros((height, 64 + (height * 7) % 40, 3), np.uint8))
        assert all(
            inside.any() and inside.size == len(part) for part, inside in zip(patches, central, strict=False)
        )


def test_errors_name_the_image_or_the_argument(drawn, described):
    images = list(drawn.images)
    images[30] = images[30][:60]
    for n_jobs in (1, 2):
        match = "image_0031 cannot be described: it must be at least 64 pixels .*got 60 x 88"
        with pytest.raises(ValueError, match=match):
            flowers.describe_flowers(drawn._replace(images=images), n_jobs)
    for train in ([], [48], [-1], [0.5], np.ones(48, bool)):
        with pytest.raises(ValueError, match="train must be row numbers from 0 to 47, at least one"):
            flowers.flower_cues(described, train)
    with pytest.raises(ValueError, match="at least n_words"):
        flowers.flower_cues(described, [0], n_words=400)


def test_splits():
    y = np.repeat(np.arange(17), 80)
    train, test = flowers.flower_split(y, 3)
    assert (train.size, test.size) == (1020, 340)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(1360))
    assert np.all(np.bincount(y[train]) == 60) and np.all(np.bincount(y[test]) == 20)
    fewer, same = flowers.flower_split(y, 3, 40)
    assert fewer.size == 680
    assert np.array_equal(same, test)
    assert np.isin(fewer, train).all()
    assert np.all(np.bincount(y[fewer]) == 40)
    assert not np.array_equal(fewer, np.sort(fewer))
    assert not np.array_equal(flowers.flower_split(y, 4)[1], test)
    for sizes in ((61, 20), (0, 20), (20, 0)):
        with pytest.raises(ValueError, match="at least one sample of each class, together at most 80"):
            flowers.flower_split(y, 3, *sizes)


@pytest.mark.parametrize("n_kernels", [7, 14, 70, 350, 700, 1400])
def test_kernels(n_kernels):
    triples = flowers.flower_kernels(20, n_kernels)
    assert len({name for name, _, _ in triples}) == n_kernels == len(triples)
    factors = np.array([kernel.factor for _, kernel, _ in triples]).reshape(7, -1)
    assert (factors == factors[0]).all() and np.isin(factors, [1.0, *flowers.WIDTHS]).all()
    assert [columns.start for _, _, columns in triples[:: n_kernels // 7]] == list(range(0, 140, 20))
    if n_kernels == 7:
        assert np.all(factors == 1) and [name for name, _, _ in triples] == list(flowers.FLOWER_CUES)
    if n_kernels == 1400:
        assert np.array_equal(factors[0], flowers.WIDTHS)
        assert flowers.WIDTHS[[0, -1]] == pytest.approx([0.01, 100])


def test_other_numbers_of_kernels_are_refused():
    for n_kernels in (0, 6, 8, 1407):
        with pytest.raises(ValueError, match="multiple of 7 from 7 to 1400"):
            flowers.flower_kernels(20, n_kernels)


@pytest.fixture
def drawn_as_original(drawn, monkeypatch):
    caches = (flowers._described, flowers._plain_distances, flowers._distances)
    monkeypatch.setattr(flowers, "load_original", lambda name: drawn)
    monkeypatch.setattr(flowers, "N_WORDS", 12)
    monkeypatch.setenv("CUELEARN_DATA", "drawn")
    for cache in caches:
        cache.cache_clear()
    yield drawn
    for cache in caches:
        cache.cache_clear()


def test_a_task(drawn_as_original):
    y = drawn_as_original.y
    task = flowers.load_flowers(7, 2, n_test_per_class=5)
    train, test = flowers.flower_split(y, 2, 7, 5)
    assert np.array_equal(task.labels, y[train])
    assert np.array_equal(task.test_labels, y[test])
    assert task.n_classes == 4
    assert task.bank.names == list(flowers.FLOWER_CUES) and task.bank.resident
    data = flowers.flower_cues(drawn_as_original, train, n_words=12, random_state=2)
    (_, across), *more = task.cross.blocks()
    assert not more
    for j, columns in enumerate(data.cues.values()):
        distance = distance_matrix(data.X[:, columns].astype(np.float64), "chi2")
        inside = distance[np.ix_(train, train)]
        mean = inside.sum() / (28 * 27)
        assert_allclose(task.bank.rows(np.arange(28))[j], np.exp(-inside / mean), atol=2e-5)
        assert_allclose(across[j], np.exp(-distance[np.ix_(test, train)] / mean), atol=2e-5)
    model = AverageKernelSVM("precomputed", C=100.0).fit(task.bank, task.labels)
    assert np.mean(model.predict(task.cross) == task.test_labels) >= 0.9

    many = flowers.load_flowers(7, 2, 1400, n_test_per_class=5)
    middle = np.abs(np.log(flowers.WIDTHS)).argmin()
    assert many.bank.n_kernels == 1400 and np.array_equal(many.test_labels, task.test_labels)
    exponent = np.log(many.bank.rows([3])[middle, 0, :]) * flowers.WIDTHS[middle]
    assert_allclose(exponent, np.log(task.bank.rows([3])[0, 0]), rtol=1e-3, atol=1e-5)


def test_without_the_data(monkeypatch, tmp_path):
    monkeypatch.delenv("CUELEARN_DATA", raising=False)
    assert not flowers.have_flowers()
    match = "set CUELEARN_DATA to the directory that holds the directory flowers17"
    with pytest.raises(DataFileError, match=match):
        flowers.load_flowers()
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path))
    assert not flowers.have_flowers()
    with pytest.raises(DataFileError, match="'flowers17' was not found"):
        flowers.load_flowers()
    (tmp_path / "flowers17").mkdir()
    assert flowers.have_flowers()


# --- the photographs ----------------------------------------

needs_flowers = pytest.mark.skipif(
    not flowers.have_flowers(), reason="CUELEARN_DATA names no directory with flowers17/ in it"
)


def some(n_each):
    """The first photographs of each class."""
    images = load_original("flowers17")
    rows = np.flatnonzero(np.arange(1360) % 80 < n_each)
    names = {"name": images.frames["name"][rows]}
    return images._replace(
        images=ImageFiles([images.images.paths[i] for i in rows]), y=images.y[rows], frames=names
    )


@pytest.mark.long
@needs_flowers
def test_cues_of_a_few_photographs():
    images = some(5)
    train, test = flowers.flower_split(images.y, 0, 3, 2)
    data = flowers.flower_cues(images, train, n_jobs=2)
    assert data.X.shape[0] == 85 and tuple(data.cues) == flowers.FLOWER_CUES
    for columns in data.cues.values():
        distance = distance_matrix(data.X[:, columns], "chi2")
        assert np.isfinite(distance).all()
        assert (distance[~np.eye(85, dtype=bool)] > 0).all()
        assert distance.max() <= 2 + 1e-5


@pytest.mark.long
@needs_flowers
def test_photographs_are_told_apart():
    images = some(30)
    train, test = flowers.flower_split(images.y, 0, 20, 10)
    data = flowers.flower_cues(images, train, n_jobs=2)
    distances = [distance_matrix(data.X[:, columns], "chi2", n_jobs=2) for columns in data.cues.values()]
    bank = KernelBank(
        flowers.flower_kernels(train.size),
        np.concatenate([d[np.ix_(train, train)] for d in distances], axis=1),
    )
    stack = bank.rows(np.arange(train.size))
    (_, across), *_ = bank.cross(np.concatenate([d[np.ix_(test, train)] for d in distances], axis=1)).blocks()
    accuracy = []
    for K, L in [*zip(stack, across, strict=False), (stack.mean(axis=0), across.mean(axis=0))]:
        accuracy.append(
            np.mean(SVC(C=100.0, kernel="precomputed").fit(K, images.y[train]).predict(L) == images.y[test])
        )
    assert min(accuracy) > 0.2 and accuracy[-1] > 0.6 and accuracy[-1] > max(accuracy[:-1])  # chance: 1/17
