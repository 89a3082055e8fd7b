"""Cues of images: those of the papers (thesis section 3.4, appendix A) and of photographs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from cuelearn.core.run import progress
from cuelearn.datasets.base import CueData, ImageData, check_rows, side_by_side
from cuelearn.datasets.descriptors import (
    BagOfWords,
    LocalDescriptors,
    Picture,
    at_corners,
    check_image,
    check_mask,
    count_words,
    dense_patches,
    derivative_bins,
    direction_bins,
    field_bins,
    gist,
    hog,
    hsv_bins,
    hue_patches,
    in_cells,
    in_middle_too,
    lab_bins,
    large_patches,
    lbp_bins,
    moments,
    patches_in_cells,
    phog,
    pixels,
    rgb_bins,
    scaled,
    self_similarity,
    shape_pyramid,
    shares,
    silhouette,
    with_middle,
)
from cuelearn.expect import expect, expect_among, expect_distinct, expect_list
from cuelearn.kernels import RBF, Chi2
from cuelearn.kernels.types import ArrayLike, KernelSpec

__all__ = [*("CUES", "EMOJI_CUES", "KIND_CUES", "OBJECT_CUES", "PHOTO_CUES"), *("cue_kernels", "image_cues")]

#: The four of table 3.2, in its order (its CRFH is ``LxLy``).
OBJECT_CUES = ("LxLy", "DirC", "colour", "shape")
#: Seven for photographs: colour, derivatives, edges in a pyramid, words of two sizes.
PHOTO_CUES = ("RGB", "HSV", "derivatives", "directions", "shape pyramid", "words", "large words")
SILHOUETTE_CUES = ("shape", "moments")
#: Images per task.
IMAGES_PER_TASK = 16


def cue_kernels(data: CueData, cues: Sequence[str] | None = None) -> list[tuple[str, KernelSpec, slice]]:
    r"""The thesis's kernel on each cue of a `CueData` made by `image_cues`, or on the cues named.

    Exponential :math:`\chi^2` for histograms (and for ``shape``, as in the thesis), Gaussian for HOG, gist,
    moments and pixels, with ``scale="mean"``. Returns a list of (name, kernel, columns); `ValueError` for an
    unknown cue.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets import ImageData, cue_kernels, image_cues
    >>> images = ImageData(np.zeros((3, 32, 32, 3), dtype=np.uint8), np.array([0, 1, 1]), ["cat", "dog"])
    >>> [(name, kernel.quantity) for name, kernel, _ in cue_kernels(image_cues(images, ["colour", "DirC"]))]
    [('colour', 'chi2'), ('DirC', 'chi2')]
    """
    kernels = data.triples(Chi2(), cues)
    return [(cue, RBF() if cue in VALUES else kernel, columns) for cue, kernel, columns in kernels]


class Cue(NamedTuple):
    """`describe` maps a `Picture` to float32 (width,), or, with the step of patches, to `LocalDescriptors`,
    which the vocabulary `words` turns into a histogram."""

    describe: Callable
    words: str | None = None


def _counted(bins, *arguments):
    """Over the object if its mask is known."""
    return Cue(lambda picture: shares(bins(picture, *arguments), picture.mask))


def _counted_twice(bins, *arguments):
    return Cue(lambda picture: with_middle(bins(picture, *arguments), picture))


_PIXEL_BINS = {
    "RGB": rgb_bins,
    "HSV": partial(hsv_bins, bins=(8, 3, 3)),
    "LAB": lab_bins,
    "LBP": lbp_bins,
    "derivatives": derivative_bins,
    "directions": direction_bins,
}
_PATCHES = {
    "words": dense_patches,
    "large words": large_patches,
    "hue words": hue_patches,
    "self-similarity": self_similarity,
    "corner words": partial(at_corners, dense_patches),
    "corner hue words": partial(at_corners, hue_patches),
}


def _all_cues():
    cues = {
        "colour": _counted(rgb_bins),
        "LxLy": _counted(field_bins, "LxLy", (1.0, 2.0, 4.0), 15),
        "DirC": _counted(field_bins, "DirC", (1.0, 4.0), 16),
        "bow": Cue(lambda picture, step: LocalDescriptors(dense_patches(picture, step)[0]), "bow"),
        "shape": Cue(silhouette),
        "RGB": _counted_twice(rgb_bins),
        "HSV": _counted_twice(hsv_bins),
        "derivatives": _counted_twice(field_bins, "LxLy", (1.0, 2.0), 15),
        "directions": _counted_twice(field_bins, "DirC", (1.0, 4.0), 16),
        "shape pyramid": Cue(shape_pyramid),
        "words": Cue(partial(in_middle_too, dense_patches), "words"),
        "large words": Cue(partial(in_middle_too, large_patches), "large words"),
    }
    for cells in ((1, 1), (3, 1), (2, 2), (4, 4)):
        where = f"{cells[0]}x{cells[1]}"
        for name, bins in _PIXEL_BINS.items():
            cues[f"{name} {where}"] = Cue(partial(in_cells, bins, cells))
        for name, patches in _PATCHES.items():
            cues[f"{name} {where}"] = Cue(partial(patches_in_cells, patches, cells), name)
    for level in range(4):
        for signed in (False, True):
            cues[f"PHOG {level}{' signed' * signed}"] = Cue(partial(phog, level, signed))
    return cues | {"HOG": Cue(hog), "gist": Cue(gist), "moments": Cue(moments), "pixels": Cue(pixels)}


def _with_cells(names, cells):
    return [f"{name} {where}" for name in names for where in cells]


#: All cues of pictures.
CUES = _all_cues()
#: Cues that are not histograms.
VALUES = ("HOG", "gist", "moments", "pixels")
#: 39 cues of 18 descriptors, as many as the papers' kernels of Caltech-101.
EMOJI_CUES = (
    *_with_cells(
        ["HSV", "hue words", "LBP", "self-similarity", "words", "large words", "derivatives"],
        ["1x1", "2x2", "4x4"],
    ),
    *(name for name in CUES if name.startswith("PHOG")),
    *("RGB 1x1", "LAB 1x1", "directions 1x1", "corner words 1x1", "corner hue words 1x1"),
    *("HOG", "gist", "moments", "shape", "pixels"),
)
#: The 15 features of TagProp (Guillaumin et al., ICCV 2009), the basis of online kernel selection: three
#: colour histograms and four kinds of words, each also in three bands, and gist.
KIND_CUES = (
    *_with_cells(
        ["RGB", "LAB", "HSV", "words", "hue words", "corner words", "corner hue words"], ["1x1", "3x1"]
    ),
    "gist",
)


def describe(
    data, cues, *, rows=None, vocabularies=None, step=8, size=240, n_jobs=None, verbose=False, name="cues"
):
    """Values of cues, a dict of float32 arrays (n, width), for all images or `rows`. Cues whose words are not
    in `vocabularies`, a dict of fitted `BagOfWords`, give lists of `LocalDescriptors`."""
    from joblib import Parallel, delayed

    images = data.images
    names = data.frames.get("name")
    if size is not None and data.masks is None and hasattr(images, "shrunk"):  # masks have full size
        images = images.shrunk(2 * size)
    if rows is None:
        rows = np.arange(len(data.y))
    blocks = [rows[start : start + IMAGES_PER_TASK] for start in range(0, len(rows), IMAGES_PER_TASK)]
    words = vocabularies or {}

    def tasks():  # lazily, so that images are copied only when needed
        for block in blocks:
            parts = [_taken(items, block) for items in (images, data.masks, names)]
            yield delayed(_describe)(block, *parts, cues, words, step, size)

    # the memory mapping of sweeps: with another mode joblib would start new workers
    done = Parallel(n_jobs=n_jobs, return_as="generator", mmap_mode="c")(tasks())
    parts = list(progress(done, name=name, total=len(blocks), verbose=verbose))
    features = {cue: [row for part in parts for row in part[cue]] for cue in cues}
    for cue in cues:
        if CUES[cue].words is None or CUES[cue].words in words:
            features[cue] = np.array(features[cue], dtype=np.float32)
    return features


def _taken(items, rows):
    if isinstance(items, list | tuple):
        return [items[row] for row in rows]
    if items is None:
        return None
    return items[rows]


def _describe(rows, images, masks, names, cues, words, step, size):
    features = {cue: [] for cue in cues}
    for i, row in enumerate(rows):
        try:
            picture = _at_size(images[i], None if masks is None else masks[i], size)
            for cue in cues:
                if cue in SILHOUETTE_CUES and picture.mask is None:
                    raise ValueError(f"the cue {cue!r} needs a mask, got None.")
                name = CUES[cue].words
                own_step = step
                if name in words:
                    own_step = words[name].step
                features[cue].append(CUES[cue].describe(picture, *([own_step] if name else [])))
        except ValueError as error:
            known = ""
            if names is not None:
                known = f" ({names[i]})"
            raise ValueError(f"Image {row}{known} cannot be described: {error}") from None
    known = {name: {} for name in words}
    for cue in cues:
        name = CUES[cue].words
        if name in words:
            features[cue] = count_words(words[name], features[cue], known[name])
    return features


def _at_size(image, mask, size):
    """The picture, scaled down if the shorter side exceeds `size` pixels."""
    check_image(image)
    factor = 1
    if size is not None:
        factor = size / min(image.shape[:2])
    if factor >= 1:
        return Picture(image, mask)
    if mask is not None:
        mask = scaled(check_mask(mask, image.shape[:2]).astype(np.uint8) * 255, factor) >= 128
    return Picture(scaled(image, factor), mask)


def image_cues(
    data: ImageData,
    cues: Sequence[str] = PHOTO_CUES,
    *,
    train: ArrayLike | None = None,
    size: int | None = 240,
    n_words: int = 300,
    vocabulary: BagOfWords | Mapping[str, BagOfWords] | None = None,
    random_state: int = 0,
    n_jobs: int = 1,
    verbose: bool = False,
) -> CueData:
    """Describe images by several cues.

    =============  ========  =====================================================================
    cue            columns   content
    =============  ========  =====================================================================
    colour         512       red, green and blue jointly, 8 bins each
    LxLy           675       derivatives at the scales 1, 2 and 4 pixels (CRFH), 15 x 15 bins each
    DirC           289       gradient directions at the scales 1 and 4 pixels jointly
    bow            n_words   nearest visual words of patches of 32 x 32 pixels
    shape          576       silhouette, centred, of unit area; needs masks
    RGB            1024      as colour
    HSV            512       hue, saturation and value jointly
    derivatives    900       as LxLy, at two scales
    directions     578       as DirC
    shape pyramid  336       edges by orientation, in the image, its quarters and sixteenths
    words          2n_words  as bow
    large words    2n_words  as bow, with patches of 64 x 64 pixels
    =============  ========  =====================================================================

    The first three count over the object if masks are known. Those from RGB on, `PHOTO_CUES`, are for
    photographs: but for the pyramid, one half describes the whole image, one an ellipse in its middle.

    Further cues are computed per cell of the image, with lengths in 32ths of the shorter side: RGB, HSV, LAB,
    LBP, derivatives, directions, words, large words, hue words, self-similarity, corner words and corner hue
    words, each with ``" 1x1"``, ``" 3x1"``, ``" 2x2"`` or ``" 4x4"`` after its name; PHOG 0 to PHOG 3 (edges
    by orientation in ``2^level`` cells a side), also with ``" signed"``; HOG, gist, pixels; and moments, of
    the silhouette. `EMOJI_CUES` are 39 of these, `KIND_CUES` 15.

    Parameters
    ----------
    data : ImageData
        From `load_image_folder` or `EmojiData.on_backgrounds`, or ``ImageData(images, y, names_of_classes)``.
    cues : sequence of str, default=PHOTO_CUES
        The thesis uses colour, LxLy and bow for places, and `OBJECT_CUES`.
    train : array of int or of bool, optional
        Rows from which vocabularies are learnt; ``data.train`` by default. Cues of words need it, so that
        test rows are not used by mistake; ``np.arange(n)`` selects all.
    size : int or None, default=240
        Images (with masks) whose shorter side has more pixels are scaled down to it; None keeps all sizes.
    n_words : int, default=300
        Size of each vocabulary.
    vocabulary : BagOfWords or dict of str to BagOfWords, optional
        How vocabularies are learnt, such as ``BagOfWords(100, step=4)`` for pictures of 64 pixels; or fitted
        ones, by the name of the words (``"hue words"``, for all cells), or one for all.
    random_state : int, default=0
        Seed of the vocabularies.
    n_jobs : int, default=1
        Processes; -1 uses all cores. Results are bitwise equal.
    verbose : bool, default=False
        Show progress bars.

    Returns
    -------
    CueData
        `X` float32 of shape (n, d); the rest is that of `data`.

    Raises
    ------
    TypeError
        If data is not an `ImageData`.
    ValueError
        If masks or `train` are missing for a cue, or an image or mask is invalid (with the frame's name).

    Notes
    -----
    On one core a photograph of 320 x 240 pixels takes 25 ms with colour, LxLy, DirC and bow, 50 ms with
    `PHOTO_CUES`. Most cues need the extra ``images``.

    Examples
    --------
    >>> from cuelearn.datasets import image_cues, load_emoji
    >>> pictures = load_emoji(["noto"]).on_backgrounds(rows=range(60))
    >>> image_cues(pictures, ["colour", "DirC"])
    <emoji, bundled: X (60, 801) float32, cues colour (512), DirC (289)>
    """
    cues = _check_cues(data, cues)
    if size is not None:
        expect("size", size, kind="whole", low=16)
    options = {"size": size, "n_jobs": n_jobs, "verbose": verbose}
    local = {CUES[cue].words: cue for cue in cues if CUES[cue].words}
    bag = BagOfWords(n_words, random_state=random_state)
    words = vocabulary or {}
    if hasattr(words, "words_"):
        words = dict.fromkeys(local, words)
    elif not isinstance(words, dict):
        bag = words
        words = {}
    unlearnt = [cue for name, cue in local.items() if name not in words]
    learnt = ""
    if unlearnt:
        if train is None:
            train = data.train
        if train is None:
            raise ValueError(
                f"train must name the rows that the cues {unlearnt} learn from (np.arange(n) takes all), "
                "got None."
            )
        train = check_rows("train", train, len(data.y))
        words = words | _learnt_words(data, unlearnt, bag, train, options)
        learnt = f" ({bag.n_words} words learnt from {len(train)} images)"
    blocks = describe(data, cues, vocabularies=words, **options)
    X, columns = side_by_side(blocks, np.float32)
    features = [f"{cue} {column}" for cue in cues for column in range(blocks[cue].shape[1])]
    description = f"{data.description.rstrip('. ')}. Described by {', '.join(cues)}{learnt}."
    split = (data.train, data.test)
    targets = list(data.target_names)
    return CueData(X, data.y, columns, *split, features, targets, description, data.provenance)


def _learnt_words(data, cues, bag, train, options):
    drawn = bag.drawn(train)
    features = describe(data, cues, rows=drawn, step=bag.step, name="words", **options)
    words = {}
    for cue in cues:
        described = dict(zip(drawn.tolist(), (one.descriptors for one in features[cue]), strict=True))
        try:
            words[CUES[cue].words] = clone(bag).fit(described, rows=train)
        except ValueError as error:
            raise ValueError(
                f"The vocabulary of cue {cue!r} cannot be learnt: {error} Lower n_words, take a step below "
                f"{bag.step}, as vocabulary=BagOfWords(n_words, step=4), or leave the cue out."
            ) from None
    return words


def _check_cues(data, cues):
    """The cues as a tuple: known, unique, and with the data that they need."""
    if not isinstance(data, ImageData):
        given = type(data).__name__
        if isinstance(data, str | os.PathLike):
            given = f"the path {os.fspath(data)!r}"
        raise TypeError(
            f"data must be an ImageData, got {given}: load_image_folder(path) opens a folder of images, "
            "ImageData(images, y, names_of_classes) takes arrays."
        )
    cues = (cues,) if isinstance(cues, str) else tuple(cues)
    expect_list("cues", cues, "names of cues")
    expect_among("cues", cues, CUES)
    expect_distinct("cues", cues)
    for cue in cues:
        if cue in SILHOUETTE_CUES and data.masks is None:
            raise ValueError(f"The cue {cue!r} needs masks, but data has none.")
    for name in ("images", "masks"):
        held = getattr(data, name)
        if held is not None and len(held) != len(data.y):
            raise ValueError(f"data.{name} must hold one entry per image, {len(data.y)}, got {len(held)}.")
    return cues
