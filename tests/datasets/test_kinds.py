"""Kinds of features of grey images: layouts, invariances, plain twins, determinism, errors; groups of columns
and their kernels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import convolve2d
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cuelearn import datasets
from cuelearn.datasets import kinds as k
from cuelearn.kernels import RBF, Chi2, KernelBank, Linear, Poly

WIDTHS = """lbp 59, lbp-3x1 177, dense-words 40, dense-words-3x1 120, gist 288, directions 37, projections 56,
corner-words 40, corner-words-3x1 120, hog4 288, hog7 294, grey 32, grey-3x1 96, pixels 49, fourier 113"""
COLUMNS = {name: int(width) for name, width in (pair.split() for pair in WIDTHS.split(","))}


def noise(n=12, height=28, width=28, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, height, width), dtype=np.uint8)


@pytest.fixture(scope="module")
def digits():
    data = datasets.load_mnist(n_train=90, n_test=10)
    images = np.empty((100, 784), dtype=np.float32)
    images[:, data.pixels] = data.X
    return images.reshape(-1, 28, 28)


@pytest.fixture(scope="module")
def fitted(digits):
    return k.ImageKinds(n_words=40).fit(digits[:90])


@pytest.fixture(scope="module")
def described(fitted, digits):
    return fitted.transform(digits)


def test_fifteen_kinds_in_order(described):
    assert tuple(described) == k.IMAGE_KINDS == tuple(COLUMNS)
    for name, values in described.items():
        assert values.shape == (100, COLUMNS[name]) and values.dtype == np.float32
        assert np.isfinite(values).all() and values.min() >= 0, name
        assert len(np.unique(values, axis=0)) > 60, name  # they tell images apart


@pytest.mark.parametrize("height, width", [(15, 15), (20, 33), (61, 44)])
def test_other_sizes(height, width):
    images = noise(30, height, width)
    found = k.ImageKinds(n_words=5).fit(images).transform(images)
    widths = {name: values.shape[1] for name, values in found.items()}
    words = {"dense-words": 5, "dense-words-3x1": 15, "corner-words": 5, "corner-words-3x1": 15}
    assert widths == COLUMNS | words | {"projections": height + width}
    assert all(np.isfinite(values).all() and values.min() >= 0 for values in found.values())


@pytest.mark.parametrize("name", ["lbp", "grey", "dense-words", "corner-words"])
def test_bands_add_up_to_the_whole(described, name):
    whole, bands = described[name], described[f"{name}-3x1"].reshape(100, 3, -1)
    assert_allclose(bands.sum(axis=1), whole, atol=1e-6)
    assert_allclose(whole.sum(axis=1), 1, atol=1e-6)
    assert (bands.sum(axis=(0, 2)) > 0).all()


def test_bands_lie_from_top_to_bottom():
    images = noise(30, 30, 24)
    kinds = k.ImageKinds(n_words=5).fit(images)
    turned = np.roll(images, 10, axis=1)  # the bottom band comes to the top
    before, after = (kinds.transform(part)["grey-3x1"].reshape(30, 3, 32) for part in (images, turned))
    assert_array_equal(after, np.roll(before, 1, axis=1))

    square = np.zeros((3, 30, 24), dtype=np.uint8)
    for band in range(3):
        square[band, 10 * band + 2 : 10 * band + 8, 8:16] = 255
    corners = kinds.transform(square)["corner-words-3x1"].reshape(3, 3, 5).sum(axis=2)
    assert_allclose(corners, np.eye(3), atol=1e-6)


def test_grey_histogram_forgets_where_pixels_are(fitted, digits, described):
    shuffled = np.random.default_rng(0).permuted(digits.reshape(100, -1), axis=1).reshape(digits.shape)
    assert_array_equal(fitted.transform(shuffled)["grey"], described["grey"])
    counts, _ = np.histogram(np.rint(255 * digits[7]), bins=32, range=(0, 256))
    assert_allclose(described["grey"][7], counts / 784, atol=1e-6)


def test_projections_keep_one_direction(fitted, digits, described):
    averages = digits.reshape(100, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(100, 49)
    assert_allclose(described["pixels"], averages, atol=1e-6)
    rows, columns = np.split(described["projections"], 2, axis=1)
    assert_allclose(rows, digits.mean(axis=2), atol=1e-6)
    assert_allclose(columns, digits.mean(axis=1), atol=1e-6)
    down = fitted.transform(np.roll(digits, 3, axis=1))["projections"]
    assert_allclose(down[:, 28:], columns, atol=1e-6)
    assert_allclose(down[:, :28], np.roll(rows, 3, axis=1), atol=1e-6)


def test_fourier_magnitudes_forget_shifts(fitted, digits, described):
    for shift in ((3, 0), (-2, 5)):
        moved = fitted.transform(np.roll(digits, shift, axis=(1, 2)))["fourier"]
        assert_allclose(moved, described["fourier"], atol=1e-6)
    full = np.abs(np.fft.fft2(digits[3])) / 784
    low = np.arange(-7, 8)
    full = full[np.ix_(low, low)]
    assert_allclose(described["fourier"][3, 0], digits[3].mean(), atol=1e-6)
    # Every low coefficient once, its conjugate left out.
    twice = np.sort(np.concatenate([described["fourier"][3], described["fourier"][3, 1:]]))
    assert_allclose(twice, np.sort(full.ravel()), atol=1e-6)


def test_gist_equals_a_plain_convolution(digits, described):
    from skimage.filters import gabor_kernel

    image, expected = digits[5], []
    for wavelength in (4, 4 * np.sqrt(2), 8):
        for orientation in range(6):
            values = gabor_kernel(1 / wavelength, theta=np.pi * orientation / 6)
            envelope = np.abs(values)
            values = values - envelope * (values.sum() / envelope.sum())
            energy = np.abs(convolve2d(image, values, mode="same", boundary="symm"))
            expected.append(energy.reshape(4, 7, 4, 7).mean(axis=(1, 3)).ravel())
    assert_allclose(described["gist"][5], np.concatenate(expected), atol=1e-6)


def test_shape_forgets_which_side_is_ink(fitted, digits, described):
    inverse = fitted.transform(1 - digits)
    for name in ("gist", "hog4", "hog7"):
        assert_allclose(inverse[name], described[name], atol=1e-4, err_msg=name)
    # Each direction is turned round; flat pixels stay so. Pixels within rounding of a border may fall on its
    # other side.
    turned = np.roll(described["directions"][:, :36], 18, axis=1)
    assert np.abs(inverse["directions"][:, :36] - turned).sum(axis=1).max() < 0.02
    assert_allclose(inverse["directions"][:, 36], described["directions"][:, 36], atol=1e-6)


def test_word_histograms_equal_a_plain_count(fitted, digits, described):
    words = fitted.dense_vocabulary_.words_
    image = np.rint(255 * digits[8]).astype(np.uint8)
    # a grey image in colour
    patches = datasets.dense_descriptors(np.repeat(image[:, :, None], 3, axis=2), step=2)
    counts = np.zeros((3, 40))
    for number, patch in enumerate(patches):
        row = 2 * (number // 11) + 3.5
        counts[int((row + 0.5) * 3 / 28), np.argmin(((patch - words) ** 2).sum(axis=1))] += 1
    # Grey values of a colour image are rounded otherwise: a few patches may change their word.
    assert np.abs(described["dense-words-3x1"][8] - counts.ravel() / 121).sum() <= 4 / 121


def test_corners_of_a_square(fitted):
    images = np.zeros((2, 28, 28), dtype=np.uint8)
    images[0, 10:18, 10:18] = 255
    square, nothing = k._locally(images)
    assert len(square["corner"][0]) == 4 and len(nothing["corner"][0]) == 0
    assert_array_equal(np.sort(square["corner"][1]), [1, 1, 1, 1])
    assert_allclose(fitted.transform(images)["corner-words"].sum(axis=1), [1, 0], atol=1e-6)


@pytest.mark.parametrize("level", [0, 100, 255])
def test_image_of_one_grey_value(fitted, level):
    found = fitted.transform(np.full((1, 28, 28), level, dtype=np.uint8))
    for name in ("corner-words", "corner-words-3x1", "hog4", "hog7"):
        assert not found[name].any(), name
    assert_allclose(found["gist"], 0, atol=1e-6)
    assert_allclose(found["pixels"], level / 255, atol=1e-6)
    assert found["directions"][0, 36] == found["grey"][0, level // 8] == 1
    assert all(np.isfinite(values).all() and values.min() >= 0 for values in found.values())


def assert_same_bits(found, expected):
    assert list(found) == list(expected)
    for name in expected:
        assert_array_equal(found[name], expected[name], err_msg=name)


def test_same_bits_for_any_number_of_jobs(digits, described):
    for n_jobs in (1, 2):
        kinds = k.ImageKinds(n_words=40, n_jobs=n_jobs).fit(digits[:90])
        assert_same_bits(kinds.transform(digits), described)  # 100 images are two tasks


def test_seed_reaches_the_words_only(digits, described):
    other = k.ImageKinds(n_words=40, random_state=1).fit(digits[:90]).transform(digits)
    for name in k.IMAGE_KINDS:
        assert np.array_equal(other[name], described[name]) == ("words" not in name), name


def test_an_image_is_described_alone(fitted, digits, described):
    for rows in (slice(3, 4), slice(60, 100)):
        part = {name: values[rows] for name, values in described.items()}
        assert_same_bits(fitted.transform(digits[rows]), part)
    assert_same_bits(fitted.transform(np.asfortranarray(digits)), described)


def test_bytes_and_floats_give_the_same_bits(fitted, digits, described):
    images = np.rint(255 * digits).astype(np.uint8)
    assert_same_bits(fitted.transform(images), described)
    assert_same_bits(fitted.transform(images / 255), described)
    assert_same_bits(clone(fitted).fit(images[:90]).transform(images), described)


def test_words_come_from_the_training_rows_only(digits):
    train = np.zeros(100, dtype=bool)
    train[:90] = True
    expected = k.image_kinds(digits, words_from=train)
    assert_same_bits(k.ImageKinds().fit(digits[:90]).transform(digits), expected)
    changed = digits.copy()
    changed[90:] = noise(10) / 255
    found = k.image_kinds(changed, words_from=np.arange(89, -1, -1))
    assert_same_bits(*({name: values[:90] for name, values in made.items()} for made in (found, expected)))
    learnt = k.image_kinds(digits)
    assert not np.array_equal(learnt["dense-words"], expected["dense-words"])


@pytest.mark.parametrize(
    "images, message",
    [
        (noise()[0], r"images must be of shape \(n, height, width\).* got shape \(28, 28\) of uint8"),
        (noise().astype(np.int64), "of uint8 or of floats from 0 to 1, got .* of int64"),
        (noise(0), r"n >= 1, with .* got shape \(0, 28, 28\)"),
        (noise(3, 28, 14), r"with sides of 15 to 128 pixels, .* got shape \(3, 28, 14\)"),
        (noise(3, 130, 28), "with sides of 15 to 128 pixels"),
        (noise().astype(float), "images of floats must have grey values from 0 to 1, got 0 to"),
        (np.full((2, 28, 28), np.nan), "images of floats must have grey values from 0 to 1, got nan"),
        (noise(1), "images must give at least n_words = 100 descriptors for the corner words, got [0-9]+"),
    ],
)
def test_images_that_are_refused(images, message):
    with pytest.raises(ValueError, match=message):
        k.image_kinds(images)


def test_parameters_that_are_refused(fitted):
    for word, wrong in {"n_words": 1, "n_jobs": 1.5}.items():
        with pytest.raises(ValueError, match=f"'{word}' parameter of ImageKinds must be"):
            k.ImageKinds(**{word: wrong}).fit(noise())
    with pytest.raises(TypeError, match="'random_state' parameter of ImageKinds must be an int .* Got None"):
        k.image_kinds(noise(), random_state=None)
    with pytest.raises(ValueError, match="n_jobs == 0"):
        k.image_kinds(noise(), n_jobs=0)
    for wrong in ([], [12], [-1], [[0, 1]], [0.5], np.ones(5, bool)):
        with pytest.raises(ValueError, match=r"words_from must be row numbers from 0 to 11, at least one"):
            k.image_kinds(noise(), words_from=wrong)
    with pytest.raises(ValueError, match="images must be of 28 x 28 pixels as those that were fitted, got"):
        fitted.transform(noise(2, 30))
    with pytest.raises(NotFittedError):
        k.ImageKinds().transform(noise())


@pytest.mark.parametrize("groups, width", [(k.letter_groups(), 16), (k.satimage_groups(), 36)])
def test_groups_differ_and_cover_the_columns(groups, width):
    assert len(groups) == 15
    assert len({tuple(columns) for columns in groups.values()}) == 15
    for columns in groups.values():
        assert len(columns) >= 2 and columns == sorted(set(columns))
    assert groups["all"] == list(range(width))
    assert sorted({c for name, columns in groups.items() if name != "all" for c in columns}) == groups["all"]


def test_letter_groups_follow_the_loader():
    data, groups = datasets.load_letter(), k.letter_groups()
    for name in ("box", "moments", "edges"):
        assert groups[name] == list(range(16))[data.cues[name]]
    elementary = ("position", "size", "centre", "spread", "skew", "edges")
    but_one = [c for c in range(16) if data.feature_names[c] != "onpix"]
    assert sorted(sum((groups[name] for name in elementary), [])) == but_one
    assert sorted(groups["edge-counts"] + groups["edge-correlations"]) == groups["edges"]
    assert [data.feature_names[c] for c in groups["skew"]] == ["x2ybr", "xy2br"]


def test_satimage_groups_follow_the_loader():
    data, groups = datasets.load_satimage(), k.satimage_groups()
    for name, columns in data.cues.items():
        assert groups[name] == list(range(36))[columns]

    def named(words):
        places = [name.split(", ")[0] for name in data.feature_names]
        return [c for c, place in enumerate(places) if any(word in place for word in words)]

    assert groups["centre"] == named(["middle centre"])
    assert groups["cross"] == named(["middle", "centre"])
    for side in ("top", "middle", "bottom"):
        assert groups[f"{side} row"] == named([side])
    for side in ("left", "centre", "right"):
        assert groups[f"{side} column"] == named([side])
    assert sorted(groups["visible"] + groups["infrared"]) == groups["all"]
    assert groups["visible"] == sorted(groups["band 1"] + groups["band 2"])


KERNELS = ("linear", "poly", "chi2", "rbf")


def test_four_kernels_per_group():
    triples = k.kind_kernels(k.satimage_groups())
    assert len(triples) == 60 and len({name for name, _, _ in triples}) == 60
    for number, (name, columns) in enumerate(k.satimage_groups().items()):
        four = triples[4 * number : 4 * number + 4]
        assert [kernel for _, kernel, _ in four] == [Linear(), Poly(degree=2, coef0=0.0), Chi2(), RBF()]
        assert [label for label, _, _ in four] == [f"{name} {kernel}" for kernel in KERNELS]
        assert all(found == columns for _, _, found in four)


def test_a_bank_takes_kinds_and_groups(described):
    X, groups = k.stack_kinds(described)
    assert X.shape == (100, sum(COLUMNS.values())) and X.dtype == np.float32
    for name, columns in groups.items():
        assert_array_equal(X[:, columns], described[name])
    stack = KernelBank(k.kind_kernels(groups), X).rows(np.arange(100))
    assert stack.shape == (60, 100, 100) and np.isfinite(stack).all()
    # homogeneous, of unit length: the cosine squared
    assert_allclose(stack[1::4], stack[0::4] ** 2, atol=1e-5)
    gist = X[:, groups["gist"]] / np.linalg.norm(X[:, groups["gist"]], axis=1, keepdims=True)
    assert_allclose(stack[16], gist @ gist.T, atol=1e-5)
    assert np.ptp(stack, axis=(1, 2)).min() > 1e-3  # none is constant


def test_matrices_that_do_not_fit():
    for wrong in ({}, {"a": np.ones(3)}, {"a": np.ones((3, 1)), "b": np.ones((4, 1))}):
        with pytest.raises(ValueError, match="kinds must hold matrices with equally many rows, got shapes"):
            k.stack_kinds(wrong)
