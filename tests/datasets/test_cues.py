"""Cues from images."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from skimage.color import rgb2hsv
from skimage.feature import hog as skimage_hog
from sklearn.exceptions import NotFittedError

from cuelearn.datasets import (
    CUES,
    EMOJI_CUES,
    KIND_CUES,
    PHOTO_CUES,
    BagOfWords,
    ImageData,
    cue_kernels,
    image_cues,
    load_emoji,
)
from cuelearn.datasets import cues as cues_module
from cuelearn.datasets.descriptors import Picture, count_words, hsv_levels

GRIDS = tuple(dict.fromkeys([*EMOJI_CUES, *KIND_CUES]))


def texture(seed, height=48, width=56):
    """An image with structure at several scales."""
    rng = np.random.default_rng(seed)
    image = np.zeros((height, width, 3))
    for cell in (2, 6, 12):
        small = rng.uniform(0, 85, (-(-height // cell), -(-width // cell), 3))
        image += np.kron(small, np.ones((cell, cell, 1)))[:height, :width]
    return image.astype(np.uint8)


def blob(height=48, width=56, y=24, x=28, a=16.0, b=8.0):
    """An ellipse."""
    i, j = np.mgrid[:height, :width]
    return ((i - y) / b) ** 2 + ((j - x) / a) ** 2 <= 1


def image_data(n=12, **changes):
    fields = {
        "images": np.array([texture(i) for i in range(n)]),
        "y": np.arange(n) % 3,
        "target_names": ["a", "b", "c"],
        "frames": {"name": np.array([f"frame {i}" for i in range(n)])},
        "masks": np.array([blob(a=10 + i) for i in range(n)]),
    }
    return ImageData(**{**fields, **changes})


def described(cue, image, mask=None, step=4):
    return CUES[cue].describe(Picture(image, mask), *([step] if CUES[cue].words else []))


@pytest.fixture(scope="module")
def pictures():
    """Twelve things on their backgrounds, as `ImageData`."""
    return load_emoji(["noto", "twemoji"]).on_backgrounds(rows=np.arange(0, 1200, 100))


# --- the thesis's cues


@pytest.mark.parametrize("mask", [None, blob()])
def test_colours_equal_their_plain_twin(mask):
    counts = np.zeros((8, 8, 8))
    for place in np.argwhere(np.ones((48, 56)) if mask is None else mask):
        counts[tuple(texture(0)[tuple(place)] // 32)] += 1
    histogram = described("colour", texture(0), mask)
    assert histogram.dtype == np.float32
    assert_allclose(histogram, counts.ravel() / counts.sum(), rtol=1e-6)


def plain_derivatives(image, scale):
    """Lx and Ly by convolution with sampled Gaussians, written as sums."""
    grey = image @ np.array([0.299, 0.587, 0.114]) / 255
    radius = int(4 * scale + 0.5)
    at = np.arange(-radius, radius + 1)
    smooth = np.exp(-(at**2) / (2 * scale**2))
    smooth /= smooth.sum()
    slope = at / scale**2 * smooth

    def along_rows(image, weights):
        padded = np.pad(image, ((0, 0), (radius, radius)), mode="edge")
        return sum(w * padded[:, k : k + image.shape[1]] for k, w in enumerate(weights))

    lx = along_rows(along_rows(grey.T, smooth).T, slope)
    ly = along_rows(along_rows(grey, smooth).T, slope).T
    return scale * lx, scale * ly


@pytest.mark.parametrize("mask", [None, blob()])
def test_derivative_histograms_equal_their_plain_twin(mask):
    image, bins = texture(2), 15
    inside = np.ones(image.shape[:2], bool) if mask is None else mask
    expected = []
    for scale in (1.0, 2.0, 4.0):
        counts = np.zeros((bins, bins))
        for x, y in zip(*(r[inside] for r in plain_derivatives(image, scale))):
            i, j = (min(max(math.floor((v + 0.2) / 0.4 * bins), 0), bins - 1) for v in (x, y))
            counts[i, j] += 1
        expected.append(counts.ravel() / counts.sum() / 3)
    # A pixel within rounding of a border may fall on its other side.
    assert np.abs(described("LxLy", image, mask) - np.concatenate(expected)).sum() <= 4 / inside.sum()


def test_direction_histogram_equals_its_plain_twin():
    image, bins = texture(3), 16
    sectors = []
    for scale in (1.0, 4.0):
        lx, ly = plain_derivatives(image, scale)
        sector = np.round(np.arctan2(ly, lx) / (2 * np.pi / bins)).astype(int) % bins
        sectors.append(np.where(np.hypot(lx, ly) < 0.01, bins, sector))
    counts = np.zeros((bins + 1, bins + 1))
    np.add.at(counts, tuple(sectors), 1)
    assert np.abs(described("DirC", image) - counts.ravel() / counts.sum()).sum() <= 4 / counts.sum()


def test_silhouette_equals_its_plain_twin_and_forgets_place_and_size():
    mask, fine = blob() | blob(y=14, x=40, a=6, b=6), 6
    i, j = np.nonzero(mask)
    side = 3 * math.sqrt(len(i))
    expected = np.zeros((24, 24))
    for a, b in np.ndindex(24 * fine, 24 * fine):
        y = math.floor(i.mean() + 0.5 + side * ((a + 0.5) / (24 * fine) - 0.5))
        x = math.floor(j.mean() + 0.5 + side * ((b + 0.5) / (24 * fine) - 0.5))
        if 0 <= y < mask.shape[0] and 0 <= x < mask.shape[1]:
            expected[a // fine, b // fine] += mask[y, x] / fine**2

    def silhouette(mask):
        return described("shape", np.zeros((*mask.shape, 3), np.uint8), mask)

    assert_allclose(silhouette(mask).reshape(24, 24), expected, atol=0.2)
    small = blob(160, 200, 60, 70, 30, 15)
    vector = silhouette(small)
    assert_allclose(silhouette(np.roll(small, (31, -17), axis=(0, 1))), vector, atol=1e-6)
    # All of the silhouette is on the grid: its cells add up to the area, 1 / 3^2 of the grid.
    assert vector.mean() == pytest.approx(1 / 3**2, rel=1e-5)
    assert np.abs(silhouette(blob(160, 200, 80, 100, 60, 30)) - vector).mean() < 0.01


# --- words


@pytest.mark.parametrize("shape, step", [((64, 64), 4), ((70, 53), 8)])
def test_patches_are_blocks_of_oriented_gradients(shape, step):
    image = texture(3, *shape)
    grey = Picture(image).grey
    blocks = skimage_hog(grey, 8, (step, step), cells_per_block=(4, 4), feature_vector=False)
    patches = described("bow", image, step=step).descriptors
    assert_array_equal(patches, np.minimum(np.rint(512 * blocks.reshape(-1, 128)), 255))


def test_words_are_counted_as_the_plain_twin_counts_them():
    images = [texture(i) for i in range(6)] + [texture(9, 64, 40)]
    patches = [described("bow", image, step=8).descriptors for image in images]
    bag = BagOfWords(n_words=12).fit(images[:4])
    assert_array_equal(bag.words_, BagOfWords(n_words=12).fit(patches[:4]).words_)
    assert not np.array_equal(bag.words_, BagOfWords(n_words=12, random_state=1).fit(images[:4]).words_)
    histograms = bag.transform(images)
    assert_array_equal(histograms[4:5], bag.transform(images[4:5]))
    for own, row in zip(patches, histograms):
        counts = np.zeros(12)
        for patch in own.astype(np.float64):
            counts[np.argmin(np.sum((patch - bag.words_.astype(np.float64)) ** 2, axis=1))] += 1
        assert_allclose(row, counts / counts.sum(), rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["words", "large words", "hue words", "self-similarity", "corner words", "corner hue words"]
)
def test_words_share_a_vocabulary_whatever_the_cells(pictures, name):
    local = {cells: described(f"{name} {cells}", pictures.images[1]) for cells in ("1x1", "2x2", "4x4")}
    bag = BagOfWords(5).fit([local["1x1"].descriptors])
    whole = count_words(bag, [local["1x1"]])[0]
    assert whole.shape == (5,) and whole.sum() == pytest.approx(1, abs=1e-5)
    for cells, n in (("2x2", 4), ("4x4", 16)):
        assert_array_equal(local[cells].descriptors, local["1x1"].descriptors)
        parts = count_words(bag, [local[cells]])[0].reshape(n, 5)
        assert_allclose(parts.sum(axis=0), whole, atol=1e-6)
    assert {CUES[f"{name} {cells}"].words for cells in local} == {name}


def test_self_similarity_equals_its_plain_twin():
    image = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    grey, k = np.pad(Picture(image).grey.astype(float), 10, mode="edge"), 12  # the 12th patch
    i, j = (int(v) for v in (np.arange(5) * 4 + 8)[[k // 5, k % 5]])
    apart = np.empty((4, 12))
    for r, radius in enumerate((2, 3, 4, 5)):
        for a in range(12):
            angle = 2 * math.pi * a / 12
            dy, dx = round(radius * math.sin(angle)), round(radius * math.cos(angle))
            cut = [grey[i + 9 + y : i + 12 + y, j + 9 + x : j + 12 + x] for y, x in ((0, 0), (dy, dx))]
            apart[r, a] = np.mean((cut[0] - cut[1]) ** 2)
    patch = described("self-similarity 1x1", image).descriptors[k]
    assert_allclose(patch, np.exp(-apart / apart[0].mean()).ravel(), rtol=1e-4)


# --- cells


@pytest.mark.parametrize("name", ["RGB", "HSV", "LAB", "LBP", "derivatives", "directions"])
def test_cells_add_up_to_the_whole(pictures, name):
    image = pictures.images[0]
    whole = described(f"{name} 1x1", image)
    assert whole.sum() == pytest.approx(1, abs=1e-5)
    for cells in ("3x1", "2x2", "4x4"):
        parts = described(f"{name} {cells}", image).reshape(-1, whole.size)
        assert_allclose(parts.sum(axis=0), whole, atol=1e-6)


def test_hue_saturation_and_value_are_those_of_scikit_image():
    levels = [0, 1, 2, 84, 85, 127, 128, 170, 254, 255]
    lattice = np.stack(np.meshgrid(levels, levels, levels), axis=-1).astype(np.uint8).reshape(40, 25, 3)
    for image in (lattice, texture(3)):
        assert_array_equal(np.stack(hsv_levels(image), axis=2), rgb2hsv(image))


def test_only_two_cues_of_grids_look_at_the_mask(pictures):
    image, mask = pictures.images[0], pictures.masks[0]
    for name in GRIDS:
        first, second = (described(name, image, m) for m in (mask, ~mask))
        if CUES[name].words:
            first, second = first.descriptors, second.descriptors
        assert np.array_equal(first, second) == (name not in ("moments", "shape")), name


def test_a_picture_of_one_colour_is_described():
    flat = ImageData(np.full((4, 80, 80, 3), 120, np.uint8), np.zeros(4, int), ["a"])
    flat.images[2:, 20:40, 20:30] = (250, 3, 80)  # words need something to be learnt from
    flat = flat._replace(masks=np.ones((4, 80, 80), bool))
    names = [*GRIDS, *PHOTO_CUES, "colour", "LxLy", "DirC"]
    data = image_cues(flat, names, train=np.arange(4), vocabulary=BagOfWords(2, step=4))
    assert np.isfinite(data.X).all()
    for name in names:
        part = data.X[:, data.cues[name]]
        assert name == "moments" or part.min() >= 0, name
        if name.startswith("corner"):
            assert not part[:2].any() and part[2].any()  # no corner, no words
    assert data.X[0, data.cues["DirC"]][-1] == 1


# --- image_cues


def test_rows_are_those_of_the_single_cues():
    data, names = image_data(), ("colour", "LxLy", "DirC", "bow", "shape")
    made = image_cues(data, names, train=np.arange(6), n_words=20)
    widths = {"colour": 512, "LxLy": 675, "DirC": 289, "bow": 20, "shape": 576}
    assert {cue: made.X[:, s].shape[1] for cue, s in made.cues.items()} == widths
    assert list(made.cues) == list(names) and made.y is data.y and made.train is None
    assert made.X.dtype == np.float32 and np.isfinite(made.X).all()
    assert len(set(made.feature_names)) == len(made.feature_names) == 2072
    for cue in ("colour", "LxLy", "DirC", "shape"):  # histograms within the mask
        assert_array_equal(made.X[7, made.cues[cue]], described(cue, data.images[7], data.masks[7]))
    unmasked = image_cues(data._replace(masks=None), ["colour"])
    assert_array_equal(unmasked.X[7], described("colour", data.images[7]))


def test_the_same_bits_for_any_number_of_jobs(monkeypatch):
    monkeypatch.setattr(cues_module, "IMAGES_PER_TASK", 2)
    data = image_data(6)
    options = {"train": np.arange(1, 6, 2), "n_words": 10, "size": 40}
    names = [cue for cue in CUES if not cue.startswith("large words")]  # patches larger than these
    alone = image_cues(data, names, **options)
    assert_array_equal(alone.X, image_cues(data, names, n_jobs=2, **options).X)
    listed = data._replace(images=list(data.images), masks=list(data.masks))
    assert_array_equal(alone.X, image_cues(listed, names, **options).X)


def test_nothing_of_the_test_rows_enters_the_training_rows():
    data = image_data()
    other = data._replace(images=data.images.copy())
    other.images[6:] = 255 - other.images[6:]
    names, train = ["bow", "colour"], np.arange(12) < 6
    made, changed = (image_cues(d, names, train=train, n_words=20) for d in (data, other))
    assert_array_equal(made.X[:6], changed.X[:6])
    assert not np.array_equal(made.X[6:], changed.X[6:])


def test_a_vocabulary_of_ones_own():
    data = image_data()
    bag = BagOfWords(n_words=9, step=4).fit(data.images[:3])
    made = image_cues(data, ["bow"], vocabulary=bag)
    assert_array_equal(made.X, bag.transform(data.images))
    both = image_cues(data, ["bow", "words"], train=np.arange(5), n_words=7, vocabulary={"bow": bag})
    assert_array_equal(both.X[:, both.cues["bow"]], made.X)
    assert both.X[:, both.cues["words"]].shape == (12, 14)


def test_cues_of_photographs_are_histograms_of_the_whole_and_of_its_middle():
    images = [texture(i, 80 + i % 3, 104) for i in range(10)]
    made = image_cues(ImageData(images, np.arange(10) % 2, ["a", "b"]), train=np.arange(0, 10, 2), n_words=12)
    widths = dict(zip(PHOTO_CUES, (1024, 512, 900, 578, 336, 24, 24), strict=True))
    assert {cue: made.X[:, part].shape[1] for cue, part in made.cues.items()} == widths
    assert made.X.min() >= 0
    for cue, part in made.cues.items():
        values = made.X[:, part]
        assert_allclose(values.sum(axis=1), 1, atol=1e-5, err_msg=cue)
        if cue == "shape pyramid":
            levels = np.split(values, [16, 16 * 5], axis=1)
            assert_allclose([level.sum(axis=1) for level in levels], np.full((3, 10), 1 / 3), atol=1e-5)
        else:
            assert_allclose(values[:, : values.shape[1] // 2].sum(axis=1), 0.5, atol=1e-5, err_msg=cue)
    inside = Picture(images[3]).middle
    assert_array_equal(made.X[3, :512], described("colour", images[3]) / 2)
    assert_array_equal(made.X[3, 512:1024], described("colour", images[3], inside) / 2)


def test_kernels_fit_the_cues(pictures):
    grids = image_cues(pictures, ["moments", "HOG", "RGB 2x2", "shape"])
    kinds = [type(kernel).__name__ for _, kernel, _ in cue_kernels(grids)]
    assert kinds == ["RBF", "RBF", "Chi2", "Chi2"]


@pytest.mark.parametrize(
    "changes, cues, options, message",
    [
        ({}, ["colour", "smell"], {}, "cues must be among"),
        ({}, ["colour", "colour"], {}, "cues must be distinct"),
        ({"masks": None}, ["RGB", "moments"], {}, "cue 'moments' needs masks"),
        ({}, ["bow"], {}, "train must name the rows"),
        ({"images": ["a.png"] * 12}, ["colour"], {}, r"Image 0 \(frame 0\) .* got str"),
        ({}, ["large words"], {"train": [0]}, r"\(frame 0\) .* 32 pixels"),
        ({}, ["bow"], {"train": [0], "n_words": 300}, "'bow' cannot be learnt"),
        ({"masks": np.zeros((12, 48, 56), bool)}, ["colour"], {}, "mask must be True on at least one"),
        ({"masks": np.ones((12, 48, 50), bool)}, ["shape"], {}, r"Image 0 \(frame 0\) .* shape \(48, 56\)"),
    ],
)
def test_bad_input_of_image_cues(changes, cues, options, message):
    with pytest.raises(ValueError, match=message):
        image_cues(image_data(**changes), cues, **options)


def test_bad_types():
    with pytest.raises(TypeError, match="the path 'my/flowers': load_image_folder"):
        image_cues("my/flowers")
    with pytest.raises(NotFittedError):
        BagOfWords().transform([texture(0)])
