"""Cues from images and laser scans: plain twins, invariances, analytic rooms, determinism, errors."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from skimage.color import rgb2hsv
from skimage.feature import hog as skimage_hog
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cuelearn.datasets import ImageData, Provenance
from cuelearn.datasets import cues as c
from cuelearn.datasets import descriptors as d
from cuelearn.datasets.words import BagOfWords
from cuelearn.kernels import RBF, Chi2, KernelBank

ORIGIN = Provenance("patterns", "generated", "that of the project (simulated)", None, "none", "a test")
THESIS_CUES = ("colour", "LxLy", "DirC", "bow", "laser", "shape")
BEAMS = np.deg2rad(np.arange(-90, 91))
ROUND = np.deg2rad(np.arange(-180, 180))


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
    rng = np.random.default_rng(5)
    fields = {
        "images": np.array([texture(i) for i in range(n)]),
        "y": np.arange(n) % 3,
        "target_names": ["a", "b", "c"],
        "frames": {"name": np.array([f"frame {i}" for i in range(n)])},
        "masks": np.array([blob(a=10 + i) for i in range(n)]),
        "laser": rng.uniform(1, 6, (n, 181)).astype(np.float32),
        "laser_angles": BEAMS,
        "description": "Patterns.",
        "provenance": ORIGIN,
    }
    return ImageData(**{**fields, **changes})


def colours(image, mask=None):
    return d.shares(d.rgb_bins(d.Picture(image)), mask)


def fields(image, filters="LxLy", scales=None, mask=None):
    usual, bins = d.FILTERS[filters]
    return d.shares(d.field_bins(d.Picture(image), filters, scales or usual, bins), mask)


def plain_rgb(image, bins, mask):
    counts = np.zeros((bins, bins, bins))
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            if mask is None or mask[i, j]:
                counts[tuple(int(v) * bins // 256 for v in image[i, j])] += 1
    return counts.ravel() / counts.sum()


@pytest.mark.parametrize("mask", [None, blob()])
def test_colours_equal_their_plain_twin(mask):
    found = colours(texture(0), mask)
    assert found.dtype == np.float32 and found.shape == (512,)
    assert_allclose(found, plain_rgb(texture(0), 8, mask), rtol=1e-6)


def plain_derivatives(grey, scale):
    """Lx and Ly by convolution with sampled Gaussians, written as sums."""
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


def plain_grey(image):
    return image @ np.array([0.299, 0.587, 0.114]) / 255


@pytest.mark.parametrize("mask", [None, blob()])
def test_derivative_histograms_equal_their_plain_twin(mask):
    image, bins, scales = texture(2), 15, (1.0, 2.0, 4.0)
    inside = np.ones(image.shape[:2], bool) if mask is None else mask
    expected = []
    for scale in scales:
        counts = np.zeros((bins, bins))
        for x, y in zip(*(r[inside] for r in plain_derivatives(plain_grey(image), scale))):
            i, j = (min(max(math.floor((v + 0.2) / 0.4 * bins), 0), bins - 1) for v in (x, y))
            counts[i, j] += 1
        expected.append(counts.ravel() / counts.sum() / 3)
    found = fields(image, mask=mask)
    assert found.shape == (675,) and found.dtype == np.float32
    # A pixel within rounding of a border may fall on its other side.
    assert np.abs(found - np.concatenate(expected)).sum() <= 4 / inside.sum()


def test_direction_histogram_equals_its_plain_twin():
    image, bins = texture(3), 16
    sectors = []
    for scale in (1.0, 4.0):
        lx, ly = plain_derivatives(plain_grey(image), scale)
        sector = np.round(np.arctan2(ly, lx) / (2 * np.pi / bins)).astype(int) % bins
        sectors.append(np.where(np.hypot(lx, ly) < 0.01, bins, sector))
    counts = np.zeros((bins + 1, bins + 1))
    np.add.at(counts, tuple(sectors), 1)
    found = fields(image, "DirC")
    assert found.shape == (289,)
    assert np.abs(found - counts.ravel() / counts.sum()).sum() <= 4 / counts.sum()


def test_directions_turn_with_the_image():
    image = texture(4)
    upright = fields(image, "DirC").reshape(17, 17)
    turned = fields(np.ascontiguousarray(np.rot90(image)), "DirC").reshape(17, 17)
    # Turned anticlockwise on the screen, where y runs down, directions lose a quarter circle.
    order = [*((np.arange(16) + 4) % 16), 16]
    assert np.abs(turned - upright[np.ix_(order, order)]).sum() < 0.01
    assert np.abs(turned - upright).sum() > 0.1


def test_one_colour_is_a_valid_image():
    for value in (0, 128, 255):
        flat = np.full((40, 40, 3), value, np.uint8)
        for histogram in (colours(flat), fields(flat), fields(flat, "DirC")):
            assert np.isfinite(histogram).all() and histogram.sum() == pytest.approx(1)
        assert fields(flat, "DirC")[-1] == 1
        assert not d.dense_descriptors(flat).any()
        assert not d.foreground_mask(flat).any()


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: colours(np.zeros((4, 4), np.uint8)), ValueError, "image must be .* shape .4, 4.*"),
        (lambda: colours(np.zeros((4, 4, 3))), ValueError, "of uint8, got .* float64"),
        (lambda: colours("apple.png"), ValueError, "got str. read_image.path. opens a file"),
        (
            lambda: c.image_cues("my/flowers"),
            TypeError,
            "the path 'my/flowers': load_image_folder.path. opens",
        ),
        (lambda: c.image_cues(Path("my/flowers")), TypeError, "the path 'my/flowers'"),
        (
            lambda: c.image_cues(np.zeros((2, 9, 9, 3), np.uint8)),
            TypeError,
            "ndarray: .* ImageData.images, y, ",
        ),
        (lambda: colours(texture(0), mask=blob(20, 20)), ValueError, "mask must be .* \\(48, 56\\)"),
        (lambda: colours(texture(0), mask=blob() & False), ValueError, "True on at least one"),
        (lambda: d.dense_descriptors(texture(0, 20, 60)), ValueError, "at least 4 \\* step = 32 .* got 20 x"),
        (lambda: d.centred_mask(np.zeros((5, 5), bool)), ValueError, "True on at least one"),
    ],
)
def test_bad_input_of_descriptors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_words_are_counted_as_the_plain_twin_counts_them():
    images = [texture(i) for i in range(6)] + [texture(9, 64, 40)]
    bag = BagOfWords(n_words=12).fit(images[:4])
    found = bag.transform(images)
    assert found.dtype == np.float32 and found.shape == (7, 12)
    for image, row in zip(images, found):
        counts = np.zeros(12)
        for descriptor in d.dense_descriptors(image).astype(np.float64):
            counts[
                np.argmin([np.sum((descriptor - word) ** 2) for word in bag.words_.astype(np.float64)])
            ] += 1
        assert_allclose(row, counts / counts.sum(), rtol=1e-6)


@pytest.mark.parametrize("shape, step", [((64, 64), 4), ((70, 53), 8)])
def test_patches_are_blocks_of_oriented_gradients(shape, step):
    image = texture(3, *shape)
    blocks = skimage_hog(d.Picture(image).grey, 8, (step, step), cells_per_block=(4, 4), feature_vector=False)
    found = d.dense_descriptors(image, step)
    assert_array_equal(found, np.minimum(np.rint(512 * blocks.reshape(-1, 128)), 255))


def test_vocabulary_same_seed_same_bits_and_from_the_training_images_only():
    images = [texture(i) for i in range(6)]
    bag = BagOfWords(n_words=12).fit(images[:4])
    assert_array_equal(bag.words_, clone(bag).fit(images[:4]).words_)
    assert not np.array_equal(bag.words_, BagOfWords(n_words=12, random_state=1).fit(images[:4]).words_)
    # Descriptors made once serve as well as the images.
    described = [d.dense_descriptors(image) for image in images]
    assert_array_equal(bag.words_, BagOfWords(n_words=12).fit(described[:4]).words_)
    assert_array_equal(bag.transform(images), bag.transform(described))
    assert_array_equal(bag.transform(images)[4:5], bag.transform(images[4:5]))


@pytest.mark.parametrize(
    "options, images, error, words",
    [
        (
            {"max_images": 2, "max_descriptors": 10},
            [texture(0)] * 8,
            ValueError,
            "= 300 descriptors, got 10 from 2",
        ),
        ({}, [], ValueError, "at least one image"),
        ({"n_words": 3.5}, [texture(0)], TypeError, "'n_words' parameter of BagOfWords must be an int"),
        ({"n_words": 2}, [np.zeros((3, 64), np.int32)], ValueError, "descriptors must be of shape"),
    ],
)
def test_bad_input_of_bag_of_words(options, images, error, words):
    with pytest.raises(error, match=words):
        BagOfWords(**options).fit(images)
    with pytest.raises(NotFittedError):
        BagOfWords().transform([texture(0)])


def plain_centred_mask(mask, size, extent=3.0, fine=6):
    i, j = np.nonzero(mask)
    side = extent * math.sqrt(len(i))
    out = np.zeros((size, size))
    for a in range(size * fine):
        for b in range(size * fine):
            y = math.floor(i.mean() + 0.5 + side * ((a + 0.5) / (size * fine) - 0.5))
            x = math.floor(j.mean() + 0.5 + side * ((b + 0.5) / (size * fine) - 0.5))
            if 0 <= y < mask.shape[0] and 0 <= x < mask.shape[1]:
                out[a // fine, b // fine] += mask[y, x]
    return out / fine**2


def test_centred_mask_equals_its_plain_twin():
    mask = blob() | blob(y=14, x=40, a=6, b=6)
    found = d.centred_mask(mask)
    assert found.dtype == np.float32
    assert_allclose(found.reshape(24, 24), plain_centred_mask(mask, 24), atol=0.2)


def test_centred_mask_does_not_change_when_the_object_moves_and_hardly_when_it_grows():
    small = blob(160, 200, 60, 70, 30, 15)
    vector = d.centred_mask(small)
    assert vector.shape == (576,) and vector.min() >= 0 and vector.max() <= 1
    assert_allclose(d.centred_mask(np.roll(small, (31, -17), axis=(0, 1))), vector, atol=1e-6)
    # All of the silhouette is on the grid: its cells add up to the area, 1 / 3^2 of the grid.
    assert vector.mean() == pytest.approx(1 / 3**2, rel=1e-5)
    assert np.abs(d.centred_mask(blob(160, 200, 80, 100, 60, 30)) - vector).mean() < 0.01
    assert np.abs(d.centred_mask(blob(160, 200, 80, 100, 30, 60)) - vector).mean() > 0.05


def test_centred_mask_at_the_border_of_the_image():
    full = np.ones((10, 30), bool)
    vector = d.centred_mask(full)
    assert np.isfinite(vector).all() and vector.mean() == pytest.approx(1 / 3**2, rel=1e-5)
    assert d.centred_mask(np.eye(3, dtype=bool)[:1]).max() == 1


def test_foreground_of_an_object_before_blue():
    image = np.full((128, 128, 3), (40, 80, 190), np.uint8)
    mask = blob(128, 128, 70, 60, 40, 25)
    image[mask] = (170, 40, 30)
    image[blob(128, 128, 70, 60, 6, 6)] = (40, 80, 190)  # a hole of the background's colour
    noise = np.random.default_rng(0).integers(-12, 13, image.shape)
    found = d.foreground_mask((image + noise).clip(0, 255).astype(np.uint8))
    assert found.dtype == np.bool_ and (found != mask).mean() < 0.002
    image[:70][mask[:70]] = (250, 250, 250)  # an object of two colours, one much nearer to the background's
    image[70:][mask[70:]] = (20, 30, 90)
    assert (d.foreground_mask(image) != mask).mean() < 0.002


def features_of(ranges, angles):
    return dict(zip(c.LASER_FEATURE_NAMES, c.laser_features(np.atleast_2d(ranges), angles)[0]))


def test_laser_in_a_round_room():
    found = features_of(np.full(360, 3.0), ROUND)
    assert found["area"] == pytest.approx(9 * math.pi, rel=1e-3)
    assert found["perimeter"] == pytest.approx(6 * math.pi, rel=1e-4)
    assert found["normalised circularity"] == pytest.approx(1, abs=1e-4)
    assert found["compactness"] == pytest.approx(1, abs=1e-4)
    assert found["ellipse major axis"] == pytest.approx(3, rel=1e-3) == found["ellipse minor axis"]
    assert found["centroid distance mean"] == pytest.approx(3) and found["beam length mean"] == 3
    assert found["eccentricity"] < 1e-9 and found["centroid distance std"] < 1e-9
    assert all(found[f"Fourier coefficient {k}"] < 1e-4 for k in (-2, -1, 2, 3))
    assert found["gaps above 0.3 m"] == found["distance of the two nearest minima"] == 0


def rectangle_scan(width, height, x=0.0, y=0.0, n=240):
    """Scan from (x, y) in a rectangle about the origin, a beam into each corner among others."""
    corners = [math.atan2(s * height / 2 - y, r * width / 2 - x) for r in (-1, 1) for s in (-1, 1)]
    angles = np.unique(np.concatenate([np.linspace(-math.pi, math.pi, n, endpoint=False), corners]))
    cos, sin = np.cos(angles), np.sin(angles)
    with np.errstate(divide="ignore"):
        along_x = np.where(cos > 0, (width / 2 - x) / cos, (-width / 2 - x) / cos)
        along_y = np.where(sin > 0, (height / 2 - y) / sin, (-height / 2 - y) / sin)
    return np.minimum(np.abs(along_x), np.abs(along_y)), angles


@pytest.mark.parametrize("place", [(0.0, 0.0), (1.2, -0.4)])
def test_laser_in_a_rectangular_room(place):
    found = features_of(*rectangle_scan(6.0, 4.0, *place))
    assert found["area"] == pytest.approx(24) and found["perimeter"] == pytest.approx(20)
    assert found["area / perimeter"] == pytest.approx(1.2)
    assert found["circularity"] == pytest.approx(400 / 24)
    assert found["normalised circularity"] == pytest.approx(4 * math.pi * 24 / 400)
    second = (6**3 * 4 / 12, 4**3 * 6 / 12)
    assert found["compactness"] == pytest.approx(24**2 / (2 * math.pi * sum(second)))
    assert found["eccentricity"] == pytest.approx((second[0] - second[1]) / sum(second))
    assert found["distance of the two nearest minima"] > 0


def test_fourier_coefficients_equal_a_sum_over_many_points_of_the_boundary():
    rng = np.random.default_rng(2)
    ranges = rng.uniform(1, 4, 30)
    angles = np.linspace(-math.pi / 2, math.pi / 2, 30)
    z = ranges * np.exp(1j * angles)
    corners = np.append(z, z[0])
    travelled = np.concatenate([[0], np.cumsum(np.abs(np.diff(corners)))])
    t = (np.arange(200_000) + 0.5) / 200_000
    walk = np.interp(t * travelled[-1], travelled, corners)
    size = {k: abs(np.mean(walk * np.exp(-2j * math.pi * k * t))) for k in range(-8, 9)}
    found = features_of(ranges, angles)
    for k in (*range(-8, 0), *range(2, 9)):
        assert found[f"Fourier coefficient {k}"] == pytest.approx(size[k] / size[1], abs=1e-6)
    assert found["ellipse major axis"] == pytest.approx(size[1] + size[-1], abs=1e-6)
    ratio = abs(size[1] - size[-1]) / (size[1] + size[-1])
    assert found["ellipse axis ratio"] == pytest.approx(ratio, abs=1e-6)


def test_beam_features_equal_their_plain_twin():
    ranges = np.random.default_rng(3).uniform(0.5, 12, 181)
    found = features_of(ranges, BEAMS)
    differences = [abs(ranges[i + 1] - ranges[i]) for i in range(180)]
    assert found["beam difference mean"] == pytest.approx(np.mean(differences))
    assert found["beam difference std"] == pytest.approx(np.std(differences))
    cut = [min(r, 5.0) for r in ranges]
    steps = [abs(b - a) for a, b in zip(cut, cut[1:])]
    assert found["beam difference mean, cut at 5 m"] == pytest.approx(np.mean(steps))
    assert found["beam length std"] == pytest.approx(np.std(ranges))
    assert found["gaps above 2 m"] == sum(d > 2 for d in differences)
    minima = [i for i in range(181) if ranges[i] == min(ranges[max(i - 5, 0) : i + 6])]
    first, second = sorted(minima, key=lambda i: ranges[i])[:2]
    assert found["angle of the two nearest minima"] == pytest.approx(abs(BEAMS[first] - BEAMS[second]))
    z = ranges * np.exp(1j * BEAMS)
    assert found["distance of the two nearest minima"] == pytest.approx(abs(z[first] - z[second]))


def test_turning_on_the_spot_changes_nothing_in_a_scan_all_round():
    ranges = np.random.default_rng(4).uniform(1, 5, 360)
    a, b = c.laser_features(np.array([ranges, np.roll(ranges, 77)]), ROUND)
    assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_laser_rows_do_not_depend_on_their_company_and_long_ranges_are_cut():
    ranges = np.random.default_rng(6).uniform(0.5, 8, (1100, 61)).astype(np.float32)
    angles = np.linspace(-1.5, 1.5, 61)
    found = c.laser_features(ranges, angles)
    assert found.shape == (1100, len(c.LASER_FEATURE_NAMES))
    assert found.dtype == np.float64
    assert np.isfinite(found).all()
    assert_array_equal(c.laser_features(ranges[1050:], angles), found[1050:])
    far = np.full((1, 61), 81.9)
    assert_array_equal(c.laser_features(far, angles), c.laser_features(np.full((1, 61), 20.0), angles))
    # One return only: a polygon without area.
    far[:, 1:] = 0
    assert np.isfinite(c.laser_features(far, angles)).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 0.0])
def test_a_frame_without_a_scan_is_named(value):
    ranges = np.full((5, 61), 2.0)
    ranges[3] = value
    with pytest.raises(ValueError, match=r"Frame 3 \(dum_3\) has no usable laser scan.*1 of 5 frames"):
        c.laser_features(ranges, np.linspace(-1, 1, 61), names=[f"dum_{i}" for i in range(5)])
    with pytest.raises(ValueError, match="Frame 3 has no usable"):
        c.laser_features(ranges, np.linspace(-1, 1, 61))


@pytest.mark.parametrize(
    "ranges, angles, words",
    [
        (np.ones(5), np.linspace(-1, 1, 5), "ranges must be numbers of shape"),
        (np.ones((2, 2)), np.linspace(-1, 1, 2), "at least 3 beams"),
        (np.ones((2, 5)), np.linspace(-1, 1, 6), r"angles must have one entry per beam, shape \(5,\)"),
        (np.ones((2, 5)), np.linspace(1, -1, 5), "angles must be finite and ascend"),
        (np.ones((2, 5)), np.linspace(-4, 4, 5), "less than a full circle"),
    ],
)
def test_bad_input_of_laser_features(ranges, angles, words):
    with pytest.raises(ValueError, match=words):
        c.laser_features(ranges, angles)


def test_image_cues_form():
    data = image_data()
    made = c.image_cues(data, THESIS_CUES, train=np.arange(6), n_words=20)
    widths = {"colour": 512, "LxLy": 675, "DirC": 289, "bow": 20, "laser": 45, "shape": 576}
    assert {cue: made.X[:, s].shape[1] for cue, s in made.cues.items()} == widths
    assert list(made.cues) == list(THESIS_CUES)
    assert made.X.dtype == np.float32 and np.isfinite(made.X).all()
    assert [column for s in made.cues.values() for column in range(2117)[s]] == list(range(2117))
    assert len(set(made.feature_names)) == len(made.feature_names) == 2117
    assert made.y is data.y and made.target_names == ["a", "b", "c"] and made.train is None
    assert made.provenance == ORIGIN and "20 words learnt from 6 images" in made.description
    # Rows are those of the single functions, histograms within the mask.
    image, mask = data.images[7], data.masks[7]
    assert_array_equal(made.X[7, made.cues["colour"]], colours(image, mask=mask))
    assert_array_equal(made.X[7, made.cues["LxLy"]], fields(image, mask=mask))
    assert_array_equal(made.X[7, made.cues["DirC"]], fields(image, "DirC", mask=mask))
    assert_array_equal(made.X[7, made.cues["shape"]], d.centred_mask(mask))
    unmasked = c.image_cues(data._replace(masks=None), ["colour"])
    assert_array_equal(unmasked.X[7], colours(image))
    # The laser is standardised over the training rows.
    laser = made.X[:6, made.cues["laser"]].astype(np.float64)
    assert_allclose(laser.mean(axis=0), 0, atol=1e-5)
    assert set(np.round(laser.std(axis=0), 4)) <= {0.0, 1.0}
    names = made.feature_names
    assert names[made.cues["laser"]][17] == "laser perimeter"
    assert names[made.cues["LxLy"]][225] == "LxLy 1,0,0"
    assert names[made.cues["DirC"]][-1] == "DirC 16,16" and names[1] == "colour 0,0,1"


def test_the_same_bits_for_any_number_of_jobs(monkeypatch):
    monkeypatch.setattr(c, "IMAGES_PER_TASK", 3)
    data = image_data(7)
    options = {"train": np.arange(1, 7, 2), "n_words": 10, "size": 40}
    cues = [
        cue for cue in c.IMAGE_CUES if not cue.startswith("large words")
    ]  # whose patches are larger than these
    one = c.image_cues(data, cues, **options)
    two = c.image_cues(data, cues, n_jobs=2, **options)
    assert_array_equal(one.X, two.X)
    listed = data._replace(images=list(data.images), masks=list(data.masks))
    assert_array_equal(one.X, c.image_cues(listed, cues, **options).X)


def test_nothing_of_the_test_rows_enters_the_training_rows():
    data = image_data()
    other = data._replace(images=data.images.copy(), laser=data.laser.copy())
    other.images[6:] = 255 - other.images[6:]
    other.laser[6:] *= 0.5
    train = np.arange(12) < 6
    cues = ["bow", "laser", "colour"]
    made, changed = (c.image_cues(d, cues, train=train, n_words=20) for d in (data, other))
    assert_array_equal(made.X[:6], changed.X[:6])
    assert not np.array_equal(made.X[6:], changed.X[6:])


def test_a_vocabulary_of_ones_own():
    data = image_data()
    bag = BagOfWords(n_words=9, step=4).fit(data.images[:3])
    made = c.image_cues(data, ["bow"], vocabulary=bag)
    assert_array_equal(made.X, bag.transform(data.images))
    both = c.image_cues(data, ["bow", "words"], train=np.arange(5), n_words=7, vocabulary={"bow": bag})
    assert_array_equal(both.X[:, both.cues["bow"]], made.X)
    assert both.X[:, both.cues["words"]].shape == (12, 14)


# ------------------------------------------------------------------------------------------ photographs

PHOTO_WIDTHS = dict(zip(c.PHOTO_CUES, (1024, 512, 900, 578, 336, 24, 24), strict=True))


def photographs(n=10, height=80, width=104):
    images = [texture(i, height + i % 3, width) for i in range(n)]
    return ImageData(images, np.arange(n) % 2, ["a", "b"])


def test_cues_of_photographs_are_histograms():
    data = photographs()
    made = c.image_cues(data, train=np.arange(0, 10, 2), n_words=12)
    assert {cue: made.X[:, part].shape[1] for cue, part in made.cues.items()} == PHOTO_WIDTHS
    assert len(set(made.feature_names)) == made.X.shape[1] and made.provenance.tier == "original"
    assert made.feature_names[512:514] == ["RGB 1,0,0,0", "RGB 1,0,0,1"]
    for cue, part in made.cues.items():
        values = made.X[:, part]
        assert values.min() >= 0
        assert_allclose(values.sum(axis=1), 1, atol=1e-5, err_msg=cue)
        if cue == "shape pyramid":
            levels = np.split(values, [16, 16 * 5], axis=1)
            assert_allclose([level.sum(axis=1) for level in levels], np.full((3, 10), 1 / 3), atol=1e-5)
        else:
            half = values.shape[1] // 2
            assert_allclose(values[:, :half].sum(axis=1), 0.5, atol=1e-5, err_msg=cue)
    inside = d.Picture(data.images[3]).middle
    assert_array_equal(made.X[3, :512], colours(data.images[3]) / 2)
    assert_array_equal(made.X[3, 512:1024], colours(data.images[3], inside) / 2)
    assert_array_equal(
        made.X[3, made.cues["derivatives"]][450:], fields(data.images[3], scales=(1, 2), mask=inside) / 2
    )


def test_hue_saturation_and_value_are_those_of_scikit_image():
    levels = [0, 1, 2, 84, 85, 127, 128, 170, 254, 255]
    lattice = np.stack(np.meshgrid(levels, levels, levels), axis=-1).astype(np.uint8).reshape(40, 25, 3)
    for image in (lattice, texture(3)):
        assert_array_equal(np.stack(d.hsv_levels(image), axis=2), rgb2hsv(image))


def test_what_the_cues_of_photographs_see():
    image = np.zeros((96, 120, 3), np.uint8)
    image[40:56, 50:70] = (255, 0, 0)  # red in the middle, black around it
    seen = c.describe(ImageData([image], np.zeros(1, int), ["a"]), c.PHOTO_CUES)
    (rgb,), (hsv,), red = seen["RGB"], seen["HSV"], 7 * 64
    assert rgb[red] == pytest.approx(0.5 * 320 / (96 * 120))
    assert rgb[512 + red] == pytest.approx(0.5 * 320 / (np.pi * 32 * 40), rel=0.01)
    assert hsv[15] == pytest.approx(rgb[red])  # hue 0, saturation and value 1
    assert hsv[256 + 15] == pytest.approx(rgb[512 + red])
    (words,), (large,) = seen["words"], seen["large words"]
    assert words.descriptors.shape == (9 * 12, 128) and large.descriptors.shape == (3 * 4, 128)
    assert words.central.shape == (108,) and large.central.shape == (12,) and large.central.any()
    assert 0.3 < words.central.mean() < 0.6

    bars = (np.arange(120) // 10 % 2 * 255).astype(np.uint8)
    stripes = np.broadcast_to(bars[:, None], (96, 120, 3)).copy()
    turned = np.ascontiguousarray(stripes.swapaxes(0, 1))
    upright, lying = (d.shape_pyramid(i)[:16] for i in (stripes, turned))
    assert max(upright) > 0.99 / 3 and max(lying) > 0.99 / 3 and upright.argmax() != lying.argmax()
    flat = d.shape_pyramid(np.full((64, 64, 3), 90, np.uint8))
    assert flat.sum() == pytest.approx(1, abs=1e-5) and np.ptp(flat[:16]) == 0


def test_patches_in_the_middle_are_never_none():
    for height in range(64, 100):
        picture = d.Picture(np.zeros((height, 64 + (height * 7) % 40, 3), np.uint8))
        for cue in ("words", "large words"):
            found = c.CUES[cue].describe(picture, 8)
            assert found.central.any() and found.central.size == len(found.descriptors)


def test_large_images_are_scaled_down_with_their_masks():
    small = image_data(4, laser=None)
    images, masks = (part.repeat(4, axis=1).repeat(4, axis=2) for part in (small.images, small.masks))
    large, cues = small._replace(images=images, masks=masks), ["LxLy", "shape"]
    same = c.image_cues(small, cues)
    assert_array_equal(c.image_cues(small, cues, size=48).X, same.X)  # at the size nothing is done
    again, whole = c.image_cues(large, cues, size=48), c.image_cues(large, cues, size=None)
    for cue, part in same.cues.items():
        apart = np.abs(again.X[:, part] - same.X[:, part]).sum(axis=1) / same.X[:, part].sum(axis=1)
        assert apart.max() < 0.3, cue
    lxly = same.cues["LxLy"]
    assert np.abs(whole.X[:, lxly] - same.X[:, lxly]).sum(axis=1).min() > 0.5
    assert_array_equal(c.image_cues(large, cues).X, whole.X)  # 192 pixels are not above 240


def test_bars_only_where_they_are_asked_for(capsys, monkeypatch):
    monkeypatch.setattr("cuelearn.core.progress.BAR_AFTER", 0.0)
    for verbose in (False, True):
        c.image_cues(image_data(), ["colour", "bow"], train=np.arange(6), n_words=20, verbose=verbose)
        said = capsys.readouterr().err
        assert ("words" in said and "cues" in said) is verbose


def test_the_thesis_kernels():
    made = c.image_cues(image_data(), c.ROBOT_CUES, train=np.arange(12), n_words=20)
    triples = c.cue_kernels(made)
    assert [name for name, _, _ in triples] == list(c.ROBOT_CUES)
    assert [type(kernel) for _, kernel, _ in triples] == [Chi2, Chi2, Chi2, RBF]
    K = KernelBank(triples, made.X).rows(np.arange(12))
    assert K.shape == (4, 12, 12) and np.isfinite(K).all()
    assert_allclose(np.diagonal(K, axis1=1, axis2=2), 1, atol=1e-5)
    assert [name for name, _, _ in c.cue_kernels(made, ["laser"])] == ["laser"]
    with pytest.raises(ValueError, match="cues must be among"):
        c.cue_kernels(made, ["shape"])


SMALL = {"images": np.zeros((12, 20, 20, 3), np.uint8), "masks": None}


@pytest.mark.parametrize(
    "changes, cues, options, words",
    [
        ({}, ["colour", "smell"], {}, "cues must be some of"),
        ({}, ["colour", "colour"], {}, "each once"),
        ({}, [], {}, "cues must be some of"),
        ({"laser": None}, ["laser"], {}, "needs laser scans with their angles"),
        ({"masks": None}, ["shape"], {}, "needs masks"),
        ({"masks": None}, ["RGB", "moments"], {}, "cue 'moments' needs masks"),
        ({"laser": np.ones((3, 181))}, ["laser"], {}, "data.laser must hold one entry per image, 12, got 3"),
        ({}, ["bow"], {}, "train must name the rows"),
        ({}, ["laser"], {}, "train must name the rows"),
        ({}, ["laser"], {"train": [12]}, "train must be row numbers from 0 to 11"),
        ({}, ["laser"], {"train": []}, "train must be row numbers"),
        ({}, ["colour"], {"n_jobs": 0}, "n_jobs == 0"),
        ({}, ["colour"], {"size": 8}, "size must be at least 16, got 8"),
        ({"images": ["a.png"] * 12}, ["colour"], {}, r"Image 0 \(frame 0\) .* got str. read_image"),
        ({}, ["words"], {}, r"the rows that the cues \['words'\] learn from"),
        ({}, ["large words"], {"train": [0]}, r"\(frame 0\) .* 8 \* step = 64 pixels .* got 48 x 56"),
        ({}, ["bow"], {"train": [0], "n_words": 300}, "'bow' cannot be learnt: .* got 12 .* Lower n_words"),
        ({"laser": np.full((12, 181), np.nan)}, ["laser"], {"train": [0]}, r"Frame 0 \(frame 0\) has no"),
        ({"masks": np.zeros((12, 48, 56), bool)}, ["colour"], {}, r"Image 0 \(frame 0\) cannot be"),
        ({"masks": np.ones((12, 48, 50), bool)}, ["shape"], {}, r"Image 0 \(frame 0\) .* shape \(48, 56\)"),
        (SMALL, ["bow"], {"vocabulary": "fit"}, "at least 4 . step"),
    ],
)
def test_bad_input_of_image_cues(changes, cues, options, words):
    if options.get("vocabulary") == "fit":
        options = {"vocabulary": BagOfWords(n_words=5).fit(image_data().images)}
    with pytest.raises(ValueError, match=words):
        c.image_cues(image_data(**changes), cues, **options)


def test_importing_brings_in_nothing_slow():
    slow = ["skimage", "matplotlib", "cuelearn.kernels", "sklearn.cluster"]
    asked = f"import sys, cuelearn.datasets.cues; print([m for m in {slow} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
