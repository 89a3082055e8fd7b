"""Oxford Flowers-17 as a task: splits, and kernels on the distances of seven cues."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.svm import SVC

from companion import flowers
from cuelearn.datasets import DataFileError, ImageData, Provenance, load_original
from cuelearn.datasets.cues import PHOTO_CUES, describe, image_cues
from cuelearn.datasets.folders import ImageFiles
from cuelearn.kernels import KernelBank, distance_matrix
from cuelearn.mkl import AverageKernelSVM


def draw(c, seed, height=72, width=88):
    """A flower with c + 3 petals, of the class's colour, on a noisy green ground."""
    rng = np.random.default_rng([c, seed])
    rows, columns = np.mgrid[:height, :width]
    y, x = rows - height / 2 + rng.uniform(-4, 4), columns - width / 2 + rng.uniform(-4, 4)
    image = rng.integers(0, 60, (height, width, 3))
    image[..., 1] += 60
    petals = np.hypot(x, y) < 12 + 16 * np.abs(np.cos((c + 3) / 2 * np.arctan2(y, x) + rng.uniform(0, 3)))
    colour = [(220, 40, 40), (230, 220, 60), (90, 60, 210), (240, 240, 240)][c]
    image[petals] = np.array(colour) - rng.integers(0, 40, 3)
    return image.clip(0, 255).astype(np.uint8)


def drawn_flowers(n_classes=4, n_each=12, **size):
    y = np.repeat(np.arange(n_classes), n_each)
    images = [draw(c, i, **size) for i, c in enumerate(y)]
    origin = Provenance("drawn", "generated", "none", None, "none", "a test")
    names = {"name": np.array([f"image_{i + 1:04d}" for i in range(y.size)])}
    return ImageData(images, y, list("abcd")[:n_classes], names, provenance=origin)


@pytest.fixture(scope="module")
def drawn():
    return drawn_flowers()


@pytest.fixture(scope="module")
def described(drawn):
    return describe(drawn, PHOTO_CUES)


def histograms(described, train, **options):
    """All seven cues."""
    return described | flowers.word_histograms(described, train, n_words=12, **options)


def test_cues_of_an_own_split_are_those_of_image_cues(drawn, described):
    train = np.arange(0, 48, 2)
    found = histograms(described, train)
    made = image_cues(drawn, train=train, n_words=12)
    assert np.array_equal(made.X, np.concatenate([found[cue] for cue in PHOTO_CUES], axis=1))
    with pytest.raises(ValueError, match="at least n_words"):
        flowers.word_histograms(described, [0], n_words=400)


def test_splits():
    y = np.repeat(np.arange(17), 80)
    train, test = flowers.flower_split(y, 3)
    assert (train.size, test.size) == (1020, 340)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(1360))
    assert np.all(np.bincount(y[train]) == 60) and np.all(np.bincount(y[test]) == 20)
    fewer, same = flowers.flower_split(y, 3, 40)
    assert fewer.size == 680 and np.array_equal(same, test) and np.isin(fewer, train).all()
    assert np.all(np.bincount(y[fewer]) == 40) and not np.array_equal(fewer, np.sort(fewer))
    assert not np.array_equal(flowers.flower_split(y, 4)[1], test)
    for size in (0, 61):
        with pytest.raises(ValueError, match=f"n_train_per_class must be from 1 to 60, got {size}"):
            flowers.flower_split(y, 3, size)


@pytest.mark.parametrize("n_kernels", [7, 14, 70, 350, 700, 1400])
def test_kernels(n_kernels):
    triples = flowers.distance_kernels(PHOTO_CUES, 20, n_kernels)
    assert len({name for name, _, _ in triples}) == n_kernels == len(triples)
    factors = np.array([kernel.factor for _, kernel, _ in triples]).reshape(7, -1)
    assert (factors == factors[0]).all() and np.isin(factors, [1.0, *flowers.WIDTHS]).all()
    assert [columns.start for _, _, columns in triples[:: n_kernels // 7]] == list(range(0, 140, 20))
    if n_kernels == 7:
        assert np.all(factors == 1) and [name for name, _, _ in triples] == list(PHOTO_CUES)
    if n_kernels == 1400:
        assert np.array_equal(factors[0], flowers.WIDTHS)
        assert flowers.WIDTHS[[0, -1]] == pytest.approx([0.01, 100])


def test_other_numbers_of_kernels_are_refused():
    for n_kernels in (-7, 6, 8, 1407):
        with pytest.raises(ValueError, match="multiple of 7 from 7 to 1400"):
            flowers.distance_kernels(PHOTO_CUES, 20, n_kernels)


@pytest.fixture
def drawn_as_original(drawn, monkeypatch):
    caches = (flowers.described_flowers, flowers.flower_distances)
    monkeypatch.setattr(flowers, "load_original", lambda name: drawn)
    monkeypatch.setattr(flowers, "N_WORDS", 12)
    monkeypatch.setattr(flowers, "N_TEST", 5)
    monkeypatch.setenv("CUELEARN_DATA", "drawn")
    for cache in caches:
        cache.cache_clear()
    yield drawn
    for cache in caches:
        cache.cache_clear()


def test_a_task(drawn_as_original, described):
    y = drawn_as_original.y
    task = flowers.load_flowers(7, 2)
    train, test = flowers.flower_split(y, 2, 7)
    assert np.array_equal(task.labels, y[train]) and np.array_equal(task.test_labels, y[test])
    assert task.n_classes == 4
    assert task.bank.names == list(PHOTO_CUES) and task.bank.resident
    (_, across), *more = task.cross.blocks()
    assert not more
    for j, part in enumerate(histograms(described, train, random_state=2)[cue] for cue in PHOTO_CUES):
        distance = distance_matrix(part.astype(np.float64), "chi2")
        inside = distance[np.ix_(train, train)]
        mean = inside.sum() / (28 * 27)
        assert_allclose(task.bank.rows(np.arange(28))[j], np.exp(-inside / mean), atol=2e-5)
        assert_allclose(across[j], np.exp(-distance[np.ix_(test, train)] / mean), atol=2e-5)
    model = AverageKernelSVM("precomputed", C=100.0).fit(task.bank, task.labels)
    assert np.mean(model.predict(task.cross) == task.test_labels) >= 0.9

    many = flowers.load_flowers(7, 2, 1400)
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
    files = ImageFiles([images.images.paths[i] for i in rows])
    return images._replace(images=files, y=images.y[rows], frames=names)


@pytest.mark.long
@needs_flowers
def test_photographs_are_told_apart(monkeypatch):
    monkeypatch.setattr(flowers, "N_TEST", 10)
    images = some(30)
    train, test = flowers.flower_split(images.y, 0, 20)
    made = image_cues(images, train=train, n_words=400)
    distances = [distance_matrix(made.X[:, part], "chi2", n_jobs=2) for part in made.cues.values()]
    for distance in distances:
        assert np.isfinite(distance).all() and distance.max() <= 2 + 1e-5
        assert (distance[~np.eye(len(distance), dtype=bool)] > 0).all()
    inside, across = (
        np.concatenate([d[np.ix_(rows, train)] for d in distances], 1) for rows in (train, test)
    )
    bank = KernelBank(flowers.distance_kernels(PHOTO_CUES, train.size), inside)
    stack = bank.rows(np.arange(train.size))
    (_, across), *_ = bank.cross(across).blocks()
    accuracy = []
    for K, L in [*zip(stack, across, strict=True), (stack.mean(axis=0), across.mean(axis=0))]:
        model = SVC(C=100.0, kernel="precomputed").fit(K, images.y[train])
        accuracy.append(model.score(L, images.y[test]))
    assert min(accuracy) > 0.2 and accuracy[-1] > 0.6 and accuracy[-1] > max(accuracy[:-1])  # chance: 1/17
