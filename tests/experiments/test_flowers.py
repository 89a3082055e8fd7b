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
    colour = [(220, 40, 40), (230, 220, 60), (90, 60, 210), (240, 240, 240)][c]
    image[petals] = np.array(colour) - rng.integers(0, 40, 3)
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


def histograms(described, train, **options):
    """All seven cues."""
    return flowers.plain_histograms(described) | flowers.word_histograms(
        described, train, n_words=12, **options
    )


def test_seven_cues_are_histograms(drawn, described):
    cues = histograms(described, np.arange(0, 48, 2))
    assert tuple(cues) == flowers.FLOWER_CUES
    assert {cue: part.shape[1] for cue, part in cues.items()} == WIDTHS_OF_CUES
    for cue, part in cues.items():
        assert part.dtype == np.float32 and part.shape[0] == 48 and part.min() >= 0
        assert_allclose(part.sum(axis=1), 1, atol=1e-5, err_msg=cue)
        if cue in HALVED:
            assert_allclose(part[:, : part.shape[1] // 2].sum(axis=1), 0.5, atol=1e-5, err_msg=cue)
        else:
            levels = np.split(part, [16, 16 * 5], axis=1)
            assert_allclose([level.sum(axis=1) for level in levels], np.full((3, 48), 1 / 3), atol=1e-5)
    again = histograms(flowers.describe_flowers(drawn), np.arange(0, 48, 2)[::-1])
    assert all(np.array_equal(cues[cue], again[cue]) for cue in cues)


def test_words_are_learnt_from_the_training_rows_alone(drawn, described):
    def X(description, rows):
        return np.concatenate(list(histograms(description, rows).values()), axis=1)

    train = np.arange(0, 48, 2)
    images = list(drawn.images)
    images[1::2] = [255 - image for image in images[1::2]]
    first, other = X(described, train), X(flowers.describe_flowers(drawn._replace(images=images)), train)
    assert np.array_equal(other[train], first[train]) and not np.array_equal(other[1], first[1])
    assert not np.array_equal(X(described, train + 1)[train], first[train])


def test_what_the_cues_see():
    image = np.zeros((96, 120, 3), np.uint8)
    image[40:56, 50:70] = (255, 0, 0)  # red in the middle, black around it
    seen, patches, central = flowers.describe_one(image)
    rgb, hsv, pyramid = seen["RGB"], seen["HSV"], seen["shape pyramid"]
    red = 7 * 64
    assert rgb[red] == pytest.approx(0.5 * 320 / (96 * 120))
    assert rgb[512 + red] == pytest.approx(0.5 * 320 / (np.pi * 32 * 40), rel=0.01)
    assert hsv[15] == pytest.approx(rgb[red])
    assert hsv[256 + 15] == pytest.approx(rgb[512 + red])  # hue 0, saturation and value 1
    assert [len(part) for part in patches.values()] == [9 * 12, 3 * 4]
    assert [inside.shape for inside in central.values()] == [(108,), (12,)]
    assert 0.3 < central["words"].mean() < 0.6

    bars = (np.arange(120) // 10 % 2 * 255).astype(np.uint8)
    stripes = np.broadcast_to(bars[:, None], (96, 120, 3)).copy()
    turned = np.ascontiguousarray(stripes.swapaxes(0, 1))
    upright, lying = (flowers.describe_one(i)[0]["shape pyramid"][:16] for i in (stripes, turned))
    assert max(upright) > 0.99 / 3 and max(lying) > 0.99 / 3 and upright.argmax() != lying.argmax()
    flat = flowers.describe_one(np.full((64, 64, 3), 90, np.uint8))[0]
    assert all(np.isfinite(part).all() and part.sum() == pytest.approx(1, abs=1e-5) for part in flat.values())
    assert np.ptp(pyramid[:16]) > 0 and np.ptp(flat["shape pyramid"][:16]) == 0


def test_large_photographs_are_scaled_down():
    small = flowers.describe_one(draw(1, 0, 240, 300))[0]
    large = flowers.describe_one(np.kron(draw(1, 0, 240, 300), np.ones((2, 2, 1), np.uint8)))[0]
    assert all(np.abs(small[cue] - large[cue]).sum() < 0.35 for cue in flowers.PLAIN_CUES)


def test_patches_in_the_middle_are_never_none():
    for height in range(64, 100):
        found = flowers.describe_one(np.zeros((height, 64 + (height * 7) % 40, 3), np.uint8))
        for cue, inside in found.central.items():
            assert inside.any() and inside.size == len(found.patches[cue])


def test_errors_name_the_image_or_the_argument(drawn, described):
    images = list(drawn.images)
    images[30] = images[30][:60]
    match = "image_0031 cannot be described: it must be at least 64 pixels .*got 60 x 88"
    with pytest.raises(ValueError, match=match):
        flowers.describe_flowers(drawn._replace(images=images))
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
    assert task.bank.names == list(flowers.FLOWER_CUES) and task.bank.resident
    (_, across), *more = task.cross.blocks()
    assert not more
    for j, part in enumerate(histograms(described, train, random_state=2).values()):
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
    described = flowers.describe_flowers(images)
    cues = flowers.plain_histograms(described) | flowers.word_histograms(described, train)
    distances = [distance_matrix(part, "chi2", n_jobs=2) for part in cues.values()]
    for distance in distances:
        assert np.isfinite(distance).all() and distance.max() <= 2 + 1e-5
        assert (distance[~np.eye(len(distance), dtype=bool)] > 0).all()
    inside, across = (
        np.concatenate([d[np.ix_(rows, train)] for d in distances], 1) for rows in (train, test)
    )
    bank = KernelBank(flowers.flower_kernels(train.size), inside)
    stack = bank.rows(np.arange(train.size))
    (_, across), *_ = bank.cross(across).blocks()
    accuracy = []
    for K, L in [*zip(stack, across, strict=True), (stack.mean(axis=0), across.mean(axis=0))]:
        model = SVC(C=100.0, kernel="precomputed").fit(K, images.y[train])
        accuracy.append(model.score(L, images.y[test]))
    assert min(accuracy) > 0.2 and accuracy[-1] > 0.6 and accuracy[-1] > max(accuracy[:-1])  # chance: 1/17
