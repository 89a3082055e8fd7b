"""Descriptors over cells: cells add up, what they are blind to, plain twins, empty pictures."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cuelearn.datasets import (
    CUES,
    EMOJI_CUES,
    KIND_CUES,
    BagOfWords,
    ImageData,
    cue_kernels,
    image_cues,
    load_emoji,
)
from cuelearn.datasets.descriptors import Picture
from cuelearn.datasets.grids import GRID_CUES
from cuelearn.datasets.words import count_words

HISTOGRAMS = ("RGB", "HSV", "LAB", "LBP", "derivatives", "directions")
WORDS = ("words", "large words", "hue words", "self-similarity", "corner words", "corner hue words")


@pytest.fixture(scope="module")
def pictures():
    """Twelve things on their backgrounds, as `ImageData`."""
    return load_emoji(["noto", "twemoji"]).on_backgrounds(rows=np.arange(0, 1200, 100))


def picture(images, i, **changes):
    given = {"image": images.images[i], "mask": images.masks[i], **changes}
    return Picture(given["image"], given["mask"])


def found(name, of, step=4):
    return CUES[name].describe(of, *([step] if CUES[name].words else []))


def test_the_sets():
    assert len(set(EMOJI_CUES)) == 39 and len(set(KIND_CUES)) == 15
    assert set(EMOJI_CUES) | set(KIND_CUES) <= set(CUES)
    assert len({name.split()[0] for name in EMOJI_CUES}) >= 12


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_cells_add_up_to_the_whole(pictures, name):
    one = picture(pictures, 0)
    whole = found(f"{name} 1x1", one)
    assert whole.sum() == pytest.approx(1, abs=1e-5)
    for cells in ("3x1", "2x2", "4x4"):
        parts = found(f"{name} {cells}", one).reshape(-1, whole.size)
        assert_allclose(parts.sum(axis=0), whole, atol=1e-6)
    upper = Picture(pictures.images[0][:32])  # 4x4: the upper half's histogram is that of its cells
    if name in ("RGB", "HSV", "LAB"):
        assert_allclose(parts[:8].sum(axis=0) * 2, found(f"{name} 1x1", upper), atol=1e-6)


@pytest.mark.parametrize("name", WORDS)
def test_words_share_a_vocabulary_whatever_the_cells(pictures, name):
    one = picture(pictures, 1)
    local = {cells: found(f"{name} {cells}", one) for cells in ("1x1", "2x2", "4x4")}
    bag = BagOfWords(5).fit([local["1x1"].descriptors])
    known = {}
    whole = count_words(bag, [local["1x1"]], known)[0]
    assert whole.shape == (5,) and whole.sum() == pytest.approx(1, abs=1e-5)
    for cells, n in (("2x2", 4), ("4x4", 16)):
        assert_array_equal(local[cells].descriptors, local["1x1"].descriptors)
        assert_array_equal(count_words(bag, [local[cells]], known), count_words(bag, [local[cells]]))
        assert len(known) == 1  # the patches are those of the whole
        parts = count_words(bag, [local[cells]])[0].reshape(n, 5)
        assert_allclose(parts.sum(axis=0), whole, atol=1e-6)
    assert {CUES[f"{name} {cells}"].words for cells in local} == {name}


def test_only_two_cues_look_at_the_mask(pictures):
    inverted = picture(pictures, 0, mask=~pictures.masks[0])
    plain = picture(pictures, 0)
    for name in dict.fromkeys([*EMOJI_CUES, *KIND_CUES]):
        first, second = (found(name, one) for one in (plain, inverted))
        if CUES[name].words:
            first, second = first.descriptors, second.descriptors
        assert np.array_equal(first, second) == (name not in ("moments", "shape")), name


def test_moments_forget_place_size_and_light(pictures):
    mask = np.zeros((64, 64), bool)
    mask[10:30, 8:20] = mask[10:16, 20:30] = True
    image = np.zeros((64, 64, 3), np.uint8)
    first = found("moments", Picture(image, mask))
    moved = found("moments", Picture(image + 9, np.roll(mask, (20, 25), axis=(0, 1))))
    assert_allclose(moved, first, atol=1e-5)
    larger = found("moments", Picture(np.zeros((128, 128, 3), np.uint8), np.kron(mask, np.ones((2, 2))) > 0))
    assert_allclose(larger, first, atol=0.02)
    turned = found("moments", Picture(image, np.rot90(mask)))
    assert_allclose(turned[-7:-1], first[-7:-1], atol=1e-5)  # Hu's; the seventh changes sign in mirrors only
    assert np.abs(turned - first)[:12].max() > 0.1


def test_unsigned_edges_fold_the_signed_ones(pictures):
    one = picture(pictures, 2)
    for level in range(4):
        n = 4**level
        signed = found(f"PHOG {level} signed", one).reshape(n, 2, 12)
        assert_allclose(found(f"PHOG {level}", one).reshape(n, 12), signed.sum(axis=1), atol=1e-6)
    assert_allclose(
        found("PHOG 2 signed", one).reshape(16, 24).sum(axis=0), found("PHOG 0 signed", one), atol=1e-5
    )
    dark = Picture(255 - pictures.images[2])  # opposite contrast
    assert_allclose(found("PHOG 1", dark), found("PHOG 1", one), atol=1e-4)


def test_hue_words_see_colour_alone():
    image = np.zeros((32, 32, 3), np.uint8)
    image[..., 0] = 200
    red = found("hue words 1x1", Picture(image)).descriptors
    assert (np.count_nonzero(red, axis=1) == 1).all() and red.max() == pytest.approx(
        200 / 255 * math.sqrt(2 / 3), rel=1e-3
    )
    green = found("hue words 1x1", Picture(np.roll(image, 1, axis=2))).descriptors  # a third of the circle on
    assert_allclose(green, np.roll(red, -12, axis=1), atol=1e-6)
    grey = np.repeat(np.arange(32, dtype=np.uint8)[:, None], 32, axis=1)[..., None].repeat(3, axis=2)
    assert found("hue words 1x1", Picture(grey)).descriptors.max() < 1e-6


def test_self_similarity_equals_its_plain_twin():
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
    one = Picture(image)
    local = found("self-similarity 1x1", one)
    grey, k = np.pad(one.grey.astype(float), 10, mode="edge"), 12  # the 12th patch
    i, j = (int(v) for v in (np.arange(5) * 4 + 8)[[k // 5, k % 5]])
    apart = np.empty((4, 12))
    for r, radius in enumerate((2, 3, 4, 5)):
        for a in range(12):
            angle = 2 * math.pi * a / 12
            dy, dx = round(radius * math.sin(angle)), round(radius * math.cos(angle))
            cut = [grey[i + 9 + y : i + 12 + y, j + 9 + x : j + 12 + x] for y, x in ((0, 0), (dy, dx))]
            apart[r, a] = np.mean((cut[0] - cut[1]) ** 2)
    assert_allclose(local.descriptors[k], np.exp(-apart / apart[0].mean()).ravel(), rtol=1e-4)
    flat = found("self-similarity 1x1", Picture(np.full((32, 32, 3), 90, np.uint8)))
    assert (flat.descriptors == 1).all()


def test_a_picture_of_one_colour_is_described():
    flat = ImageData(np.full((4, 64, 64, 3), 120, np.uint8), np.zeros(4, int), ["a"])
    flat.images[2:, 20:40, 20:30] = (250, 3, 80)  # words need something to be learnt from
    flat = flat._replace(masks=np.ones((4, 64, 64), bool))
    names = [*dict.fromkeys([*EMOJI_CUES, *KIND_CUES])]
    data = image_cues(flat, names, train=np.arange(4), vocabulary=BagOfWords(2, step=4))
    assert np.isfinite(data.X).all()
    for name in names:
        part = data.X[:, data.cues[name]]
        assert name == "moments" or part.min() >= 0, name
        if name.startswith("corner"):
            assert not part[:2].any() and part[2].any()  # no corner, no words


def test_kernels_fit_the_cues(pictures):
    """Chi-squared ones take no negative values."""
    data = image_cues(pictures, ["moments", "HOG", "RGB 2x2", "shape"])
    kinds = {name: type(kernel).__name__ for name, kernel, _ in cue_kernels(data)}
    assert kinds == {"moments": "RBF", "HOG": "RBF", "RGB 2x2": "Chi2", "shape": "Chi2"}


def test_cues_of_larger_pictures_grow_with_them(pictures):
    doubled = Picture(np.kron(pictures.images[3], np.ones((2, 2, 1), np.uint8)))
    plain = picture(pictures, 3)
    for name in ("RGB 2x2", "LBP 1x1", "derivatives 1x1", "PHOG 1", "gist", "pixels"):
        first, second = (found(name, one) for one in (plain, doubled))
        assert np.abs(first - second).sum() < 0.45 * np.abs(first).sum(), name
    assert set(GRID_CUES) >= set(KIND_CUES)
