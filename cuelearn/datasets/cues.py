r"""From images and laser scans to cues: the papers' (thesis section 3.4, appendix A), and for photographs.

`image_cues` turns an `ImageData` into a `CueData`. Each cue is an entry of `CUES`: a function of a `Picture`.
What is learnt, the vocabularies of visual words and the scale of the laser features, comes from the rows
named ``train``."""

from __future__ import annotations

import os
from functools import partial

import numpy as np
from sklearn.base import clone

from .base import CueData, ImageData, check_integer, check_rows, side_by_side
from .descriptors import (
    FILTERS,
    HSV_BINS,
    SHAPE_CELLS,
    STEP,
    Cue,
    LocalDescriptors,
    Picture,
    centred_mask,
    check_image,
    check_mask,
    dense_descriptors,
    dense_patches,
    field_bins,
    hsv_bins,
    in_the_middle,
    large_patches,
    rgb_bins,
    scaled,
    shape_pyramid,
    shares,
    with_middle,
)
from .grids import GRID_CUES, VALUES
from .laser import LASER_FEATURE_NAMES, laser_features
from .words import BagOfWords, count_words

__all__ = [
    *("CUES", "IMAGE_CUES", "LASER_FEATURE_NAMES", "OBJECT_CUES", "PHOTO_CUES", "ROBOT_CUES"),
    *("cue_kernels", "describe", "image_cues", "in_tasks", "laser_features"),
]

#: The four of table 3.1, in its order (its CRFH is ``LxLy``).
ROBOT_CUES = ("colour", "LxLy", "bow", "laser")
#: The four of table 3.2, in its order.
OBJECT_CUES = ("LxLy", "DirC", "colour", "shape")
#: Seven for photographs: two of colour, two of derivatives, edges in a pyramid, words of two sizes.
PHOTO_CUES = ("RGB", "HSV", "derivatives", "directions", "shape pyramid", "words", "large words")
#: Images handed to one worker at a time.
IMAGES_PER_TASK = 16


def cue_kernels(data, cues=None):
    r"""The thesis's kernel on each cue of a `CueData` made by `image_cues`, or on those named.

    Exponential :math:`\chi^2` for what is counted in images (and for ``shape``, as there), Gaussian for the
    laser and for what is no histogram (HOG, gist, moments, pixels), with ``scale="mean"``: a list of (name,
    kernel, columns). `ValueError` if a cue is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets import ImageData, cue_kernels, image_cues
    >>> images = ImageData(np.zeros((3, 32, 32, 3), dtype=np.uint8), np.array([0, 1, 1]), ["cat", "dog"])
    >>> [(name, kernel.quantity) for name, kernel, _ in cue_kernels(image_cues(images, ["colour", "DirC"]))]
    [('colour', 'chi2'), ('DirC', 'chi2')]
    """
    # Here and not above: it loads compiled code, which describing images does not need.
    from cuelearn.kernels import RBF, Chi2

    wanted = list(data.cues) if cues is None else cues
    plain = ("laser", *VALUES)
    return [triple for cue in wanted for triple in data.triples(RBF() if cue in plain else Chi2(), [cue])]


def _in_middle_too(patches, picture, step):
    """Patches, and which of them have their centres in the middle."""
    descriptors, rows, columns, shape = patches(picture, step)
    return LocalDescriptors(descriptors, in_the_middle(rows, columns, *shape))


def _silhouette(picture):
    return centred_mask(check_mask(picture.mask, picture.image.shape[:2]))


def _fields(filters):
    return lambda picture: shares(field_bins(picture, filters, *FILTERS[filters]), picture.mask)


#: How each cue describes a picture.
CUES = {
    "colour": Cue(lambda picture: shares(rgb_bins(picture), picture.mask), (8, 8, 8)),
    "LxLy": Cue(_fields("LxLy"), (3, 15, 15)),
    "DirC": Cue(_fields("DirC"), (17, 17)),
    "bow": Cue(lambda picture, step: LocalDescriptors(dense_descriptors(picture.grey, step)), words="bow"),
    "shape": Cue(_silhouette, (SHAPE_CELLS, SHAPE_CELLS)),
    "RGB": Cue(lambda picture: with_middle(rgb_bins(picture), picture), (2, 8, 8, 8)),
    "HSV": Cue(lambda picture: with_middle(hsv_bins(picture), picture), (2, *HSV_BINS)),
    "derivatives": Cue(
        lambda picture: with_middle(field_bins(picture, "LxLy", (1.0, 2.0), 15), picture), (2, 2, 15, 15)
    ),
    "directions": Cue(
        lambda picture: with_middle(field_bins(picture, "DirC", (1.0, 4.0), 16), picture), (2, 17, 17)
    ),
    "shape pyramid": Cue(lambda picture: shape_pyramid(picture.image)),
    "words": Cue(partial(_in_middle_too, dense_patches), words="words"),
    "large words": Cue(partial(_in_middle_too, large_patches), words="large words"),
    **GRID_CUES,
}
#: All cues that `image_cues` knows.
IMAGE_CUES = (*CUES, "laser")


def in_tasks(describe, sequences, *arguments, rows=None, n_jobs=None, verbose=False, name="cues"):
    """List of what `describe` makes of blocks of the sequences, or of these rows; the same for any n_jobs."""
    from joblib import Parallel, delayed

    from cuelearn.core.progress import progress

    n = len(sequences[0]) if rows is None else len(rows)
    blocks = [slice(start, min(start + IMAGES_PER_TASK, n)) for start in range(0, n, IMAGES_PER_TASK)]
    if rows is not None:
        blocks = [rows[block] for block in blocks]
    parts = ([_taken(items, block) for items in sequences] for block in blocks)
    # mapped as sweeps do: with another mode joblib would start other workers
    done = Parallel(n_jobs=n_jobs, return_as="generator", mmap_mode="c")(
        delayed(describe)(*part, *arguments) for part in parts
    )
    return list(progress(done, name=name, total=len(blocks), verbose=verbose))


def _taken(items, block):
    """The rows of an array, of image files, or of a list; None stays."""
    if isinstance(items, list | tuple) and not isinstance(block, slice):
        return [items[row] for row in block]
    return None if items is None else items[block]


def describe(
    data, cues, *, rows=None, vocabularies=None, step=STEP, size=240, n_jobs=None, verbose=False, name="cues"
):
    """What `CUES` say of images: for each cue an array float32 (n, width).

    Where `vocabularies`, a dict of fitted `BagOfWords`, lacks the words of a cue: a list of
    `LocalDescriptors` of patches `step` pixels apart. `rows` are those described, all by default; the rest is
    as for `image_cues`.
    """
    images, names = data.images, data.frames.get("name")
    if size is not None and data.masks is None and hasattr(images, "shrunk"):  # masks have the full size
        images = images.shrunk(2 * size)
    sequences = np.arange(len(data.y)), images, data.masks, names
    options = {"rows": rows, "n_jobs": n_jobs, "verbose": verbose, "name": name}
    words = vocabularies or {}
    parts = in_tasks(_describe, sequences, cues, words, step, size, **options)
    features = {cue: [one for part in parts for one in part[cue]] for cue in cues}
    counted = [cue for cue in cues if CUES[cue].words is None or CUES[cue].words in words]
    return features | {cue: np.array(features[cue], dtype=np.float32) for cue in counted}


def _describe(rows, images, masks, names, cues, words, step, size):
    """Describe one task's images: by cue, a row or the local descriptors of each image."""
    features = {cue: [] for cue in cues}
    steps = {cue: [] for cue in cues if CUES[cue].words is None}
    steps |= {cue: [words[CUES[cue].words].step] for cue in cues if CUES[cue].words in words}
    for i, row in enumerate(rows):
        try:
            picture = _at_size(images[i], None if masks is None else masks[i], size)
            for cue in cues:
                features[cue].append(CUES[cue].describe(picture, *steps.get(cue, [step])))
        except ValueError as error:
            known = "" if names is None else f" ({names[i]})"
            raise ValueError(f"Image {row}{known} cannot be described: {error}") from None
    known = {name: {} for name in words}
    counted = {cue: CUES[cue].words for cue in cues if CUES[cue].words in words}
    return features | {cue: count_words(words[of], features[cue], known[of]) for cue, of in counted.items()}


def _at_size(image, mask, size):
    """The picture, scaled down with its mask where its shorter side has more than `size` pixels."""
    check_image(image)
    factor = 1 if size is None else size / min(image.shape[:2])
    if factor >= 1:
        return Picture(image, mask)
    if mask is not None:
        mask = scaled(check_mask(mask, image.shape[:2]).astype(np.uint8) * 255, factor) >= 128
    return Picture(scaled(image, factor), mask)


def image_cues(
    data,
    cues=PHOTO_CUES,
    *,
    train=None,
    size=240,
    n_words=300,
    vocabulary=None,
    random_state=0,
    n_jobs=1,
    verbose=False,
):
    """Describe images by several cues.

    =============  ========  =====================================================================
    cue            columns   what it counts
    =============  ========  =====================================================================
    colour         512       red, green and blue jointly, 8 bins each
    LxLy           675       derivatives at the scales 1, 2 and 4 pixels (CRFH), 15 x 15 bins each
    DirC           289       gradient directions at the scales 1 and 4 pixels jointly
    bow            n_words   patches of 32 x 32 pixels, by the nearest visual word
    shape          576       silhouette (`centred_mask`); needs masks
    laser          45        `laser_features`, standardised over the training rows; needs scans
    RGB            1024      as colour
    HSV            512       hue, saturation and value jointly
    derivatives    900       as LxLy, at two scales
    directions     578       as DirC
    shape pyramid  336       edges by orientation, in the image, its quarters and sixteenths
    words          2n_words  as bow
    large words    2n_words  the same with patches of 64 x 64 pixels
    =============  ========  =====================================================================

    The first three count over the object only where masks are known. From RGB on they are for photographs,
    `PHOTO_CUES`: they need no masks; one half of each, besides the pyramid, counts the whole image, the other
    an ellipse in its middle, where most photographers put what they mean.

    Further cues divide the image into cells, and count in each; lengths are in 32ths of the shorter side:
    RGB, HSV, LAB, LBP, derivatives, directions, words, large words, hue words, self-similarity, corner words
    and corner hue words, each with ``" 1x1"``, ``" 3x1"``, ``" 2x2"`` or ``" 4x4"`` after its name; PHOG 0 to
    PHOG 3 (edges by orientation in ``2^level`` cells a side) and PHOG 0 signed to PHOG 3 signed; HOG, gist,
    pixels; and moments, of the silhouette. `EMOJI_CUES` are 39 of these, `KIND_CUES` 15.

    Parameters
    ----------
    data : ImageData
        From `load_image_folder`, `load_original`, or `load_emoji` by its method `on_backgrounds`;
        ``ImageData(images, y, names_of_classes)`` takes images in memory.
    cues : sequence of str, default=PHOTO_CUES
        In the order wanted. The thesis's choices are `ROBOT_CUES` and `OBJECT_CUES`.
    train : array of int or of bool, optional
        Rows from which vocabularies and the scale of ``laser`` are learnt; ``data.train`` by default. Cues
        that learn need it, so that nothing of the test rows enters by oversight; ``np.arange(n)`` takes all.
    size : int or None, default=240
        Images whose shorter side has more pixels are scaled down to it (with their masks); None leaves all.
    n_words : int, default=300
        Size of each vocabulary.
    vocabulary : BagOfWords or dict of str to BagOfWords, optional
        A `BagOfWords` that is not fitted says how they are learnt, such as ``BagOfWords(100, step=4)`` for
        pictures of 64 pixels; fitted ones, by the name of the words (``"hue words"``, whatever the cells), or
        one for all, are taken in place of learning them.
    random_state : int, default=0
        Seed of the vocabularies.
    n_jobs : int, default=1
        Processes that describe images; -1 takes all cores. The result has the same bits for any number.
    verbose : bool, default=False
        Progress bars.

    Returns
    -------
    CueData
        `X` float32 of shape (n, d). The rest is that of `data`.

    Raises
    ------
    TypeError
        If data is no `ImageData`, such as a path.
    ValueError
        If a cue needs masks, laser scans or `train`, which are not there; if an image, a mask or a scan is
        not as it must be, with the name of the frame.

    Notes
    -----
    A photograph of 320 x 240 pixels takes 25 ms with colour, LxLy, DirC and bow, 50 ms with `PHOTO_CUES`, on
    one core. What scales images, looks at hue, counts in cells or makes the pyramid needs the extra
    ``images``.

    Examples
    --------
    >>> from cuelearn.datasets import image_cues, load_emoji
    >>> pictures = load_emoji(["noto"]).on_backgrounds(rows=range(60))
    >>> image_cues(pictures, ["colour", "DirC"])
    <emoji, bundled: X (60, 801) float32, cues colour (512), DirC (289)>
    """
    cues = _check_cues(data, cues)
    if size is not None:
        check_integer("size", size, 16)
    local = {CUES[cue].words: cue for cue in cues if cue in CUES and CUES[cue].words}
    bag, words = BagOfWords(n_words, random_state=random_state), vocabulary or {}
    if not isinstance(words, dict):
        learnt_before = hasattr(words, "words_")
        bag, words = words, dict.fromkeys(local, words) if learnt_before else {}
    unlearnt = [cue for name, cue in local.items() if name not in words]
    options, learnt, blocks = {"size": size, "n_jobs": n_jobs, "verbose": verbose}, [], {}
    scanned = ["laser"] if "laser" in cues else []
    if unlearnt or scanned:
        train = data.train if train is None else train
        if train is None:
            raise ValueError(
                f"train must name the rows that the cues {[*unlearnt, *scanned]} learn from "
                "(np.arange(n) takes all), got None."
            )
        train = check_rows("train", train, len(data.y))
    if unlearnt:
        drawn = bag.drawn(train)
        features = describe(data, unlearnt, rows=drawn, step=bag.step, name="words", **options)
        for cue in unlearnt:
            described = dict(zip(drawn.tolist(), (one.descriptors for one in features[cue]), strict=True))
            try:
                words = words | {CUES[cue].words: clone(bag).fit(described, rows=train)}
            except ValueError as error:
                others = [other for other in cues if other != cue]
                raise ValueError(
                    f"The vocabulary of cue {cue!r} cannot be learnt: {error} Lower n_words, take a step "
                    f"below {bag.step}, as vocabulary=BagOfWords(n_words, step=4), or leave it out: "
                    f"cues={others}."
                ) from None
        learnt.append(f"{bag.n_words} words learnt from {len(train)} images")
    if scanned:
        scans = laser_features(data.laser, data.laser_angles, names=data.frames.get("name"))
        scale = scans[train].std(axis=0)
        blocks["laser"] = (scans - scans[train].mean(axis=0)) / np.where(scale > 0, scale, 1)
        learnt.append(f"laser features standardised over {len(train)} frames")
    drawn = [cue for cue in cues if cue != "laser"]
    if drawn:
        blocks |= describe(data, drawn, vocabularies=words, **options)
    X, columns = side_by_side({cue: blocks[cue] for cue in cues}, np.float32)
    features = []
    for cue in cues:
        if cue == "laser":
            features += [f"laser {name}" for name in LASER_FEATURE_NAMES]
        else:  # by the place in the histogram or on the grid
            places = np.ndindex(CUES[cue].grid or (blocks[cue].shape[1],))
            features += [f"{cue} {','.join(map(str, place))}" for place in places]
    how = f" ({'; '.join(learnt)})" if learnt else ""
    description = f"{data.description.rstrip('. ')}. Described by {', '.join(cues)}{how}."
    split, targets = (data.train, data.test), list(data.target_names)
    return CueData(X, data.y, columns, *split, features, targets, description, data.provenance)


def _check_cues(data, cues):
    """The cues as a tuple, each known, given once, and with what it needs in the data."""
    if not isinstance(data, ImageData):
        is_path = isinstance(data, str | os.PathLike)
        given = f"the path {os.fspath(data)!r}" if is_path else type(data).__name__
        raise TypeError(
            f"data must be an ImageData, got {given}: load_image_folder(path) opens a folder of images, "
            "ImageData(images, y, names_of_classes) takes arrays."
        )
    cues = (cues,) if isinstance(cues, str) else tuple(cues)
    if not cues or not set(cues) <= set(IMAGE_CUES) or len(set(cues)) < len(cues):
        raise ValueError(f"cues must be some of {list(IMAGE_CUES)}, each once, got {list(cues)}.")
    if "laser" in cues and (data.laser is None or data.laser_angles is None):
        raise ValueError("The cue 'laser' needs laser scans with their angles, but data has none.")
    silhouettes = [cue for cue in cues if cue in ("shape", "moments")]
    if silhouettes and data.masks is None:
        raise ValueError(
            f"The cue {silhouettes[0]!r} needs masks, but data has none; foreground_mask can make them."
        )
    for name in ("images", "masks", "laser"):
        held = getattr(data, name)
        if held is not None and len(held) != len(data.y):
            raise ValueError(f"data.{name} must hold one entry per image, {len(data.y)}, got {len(held)}.")
    return cues
