"""Loaders of the real data sets that lie in the project's ``data/`` directory.

Each loader checks the file's sha256 against ``data/datasets.json`` and refuses a damaged or missing one. Shapes, licences and
citations stand in ``data/README.md``; what each loader adds to the stored values is said in its docstring.
"""

from __future__ import annotations

import numbers

import numpy as np

from ._base import BundledFile, CueData

__all__ = [
    "load_htad",
    "load_letter",
    "load_mfeat",
    "load_mnist",
    "load_pendigits",
    "load_satimage",
    "load_yeast",
    "redraw_pen_points",
]

_LETTER_FEATURES = (
    "x-box y-box width high onpix x-bar y-bar x2bar y2bar xybar x2ybr xy2br x-ege xegvy y-ege yegvx".split()
)
_SATIMAGE_CLASSES = {
    1: "red soil",
    2: "cotton crop",
    3: "grey soil",
    4: "damp grey soil",
    5: "soil with vegetation stubble",
    7: "very damp grey soil",
}
_HTAD_CLASSES = [
    "brush_teeth",
    "eat_chips",
    "mop_floor",
    "sweep",
    "type_on_keyboard",
    "wash_hands",
    "watch_tv",
]
_HTAD_ACCELEROMETER = "meanX meanY meanZ sdX sdY sdZ maxX maxY maxZ corXY corXZ corYZ meanMagnitude sdMagnitude auc meanDif".split()


def _side_by_side(blocks, dtype):
    """Join named blocks of columns; return the matrix and the slice of each block."""
    X = np.hstack([np.asarray(block, dtype=dtype) for block in blocks.values()])
    ends = np.cumsum([block.shape[1] for block in blocks.values()]).tolist()
    return X, {
        name: slice(end - block.shape[1], end)
        for (name, block), end in zip(blocks.items(), ends, strict=False)
    }


def _split(is_train):
    return np.flatnonzero(is_train), np.flatnonzero(~is_train)


# --------------------------------------------------------------------------- Pendigits


def redraw_pen_points(points, size=16, width=1.0):
    """Draw pen trajectories as grey images: straight lines through the points, with soft edges.

    A pixel's ink is ``width/2 + 1/2`` minus the distance of its centre from the line, in pixels, cut to [0, 1]: the share of
    the pixel that a straight stroke of that width covers, to within a tenth.

    Parameters
    ----------
    points : array of shape (n, 2 k)
        ``x1, y1, x2, y2, ...`` in 0..100, with y pointing up; at least two points each.
    size : int, default=16
        Pixels per side. The coordinates 0 and 100 fall on the centres of the outermost pixels.
    width : float, default=1.0
        Width of the stroke in pixels.

    Returns
    -------
    ndarray of shape (n, size, size), float32
        0 for paper, 1 for ink; the first row of an image is its top.

    Raises
    ------
    ValueError
        If `points` is not a matrix of two or more coordinate pairs per row.

    Notes
    -----
    Time and memory are O(n k size^2) and O(n size^2): 0.1 s for the 10,992 trajectories of Pendigits.
    """
    points = np.asarray(points, dtype=np.float32)
    if points.ndim != 2 or points.shape[1] < 4 or points.shape[1] % 2:
        raise ValueError(f"points must have shape (n, 2 k) with k >= 2, got {points.shape}.")
    scale = np.float32((size - 1) / 100)
    x = (points[:, 0::2] * scale)[:, :, None]  # pixel centres have whole coordinates
    y = ((100 - points[:, 1::2]) * scale)[:, :, None]
    rows, columns = (axis.ravel().astype(np.float32) for axis in np.mgrid[:size, :size])

    image = np.empty((len(points), size * size), dtype=np.float32)
    for start in range(0, len(points), 256):  # few enough to stay in cache
        block = slice(start, start + 256)
        nearest = np.full((len(points[block]), size * size), np.inf, dtype=np.float32)
        for k in range(x.shape[1] - 1):
            x0, y0 = x[block, k], y[block, k]
            dx, dy = x[block, k + 1] - x0, y[block, k + 1] - y0
            length2 = np.maximum(dx * dx + dy * dy, np.float32(1e-12))  # a pen at rest is a point
            along = np.clip(((columns - x0) * dx + (rows - y0) * dy) / length2, 0, 1)
            distance2 = (columns - x0 - along * dx) ** 2 + (rows - y0 - along * dy) ** 2
            np.minimum(nearest, distance2, out=nearest)
        image[block] = np.clip(np.float32(width / 2 + 0.5) - np.sqrt(nearest), 0, 1)
    return image.reshape(-1, size, size)


def load_pendigits():
    """Load Pendigits with the four representations of Gonen and Alpaydin (2010).

    10,992 digits written with a pen on a tablet by 44 people. The published form is the *dynamic* one: eight points,
    equally spaced along the trajectory, scaled so that x and y each span 0 to 100. The papers' *static* forms (bitmaps of
    4x4, 8x8 and 16x16) are published nowhere reachable. They are **redrawn from the eight pen points**: a line of one pixel's
    width through the points at 16x16 (`redraw_pen_points`), averaged in blocks for 8x8 and 4x4. They differ from the originals
    in that strokes between two resampled points are straight and lifts of the pen are drawn.

    Returns
    -------
    CueData
        `X` of shape (10992, 352), float32; cues ``"dynamic"`` (16 coordinates in 0..100: x1, y1, ..., x8, y8),
        ``"static 4x4"`` (16), ``"static 8x8"`` (64) and ``"static 16x16"`` (256), bitmaps in [0, 1] row by row from the top;
        `y` the digit; `train` the official 7,494 samples (30 writers), `test` the other 3,498 (14 other writers).

    Raises
    ------
    DataFileError
        If the file is missing or damaged.

    Notes
    -----
    Licence: CC BY 4.0 (UCI Machine Learning Repository 81). Takes about 0.15 s, for the drawing.

    References
    ----------
    E. Alpaydin and F. Alimoglu (1996). Pen-Based Recognition of Handwritten Digits. UCI Machine Learning Repository.
    https://doi.org/10.24432/C5MG6K
    M. Gonen and E. Alpaydin (2010). Cost-conscious multiple kernel learning. Pattern Recognition Letters 31, 959-965.

    Examples
    --------
    >>> from cuelearn.datasets import load_pendigits
    >>> digits = load_pendigits()
    >>> digits.X[digits.train][:, digits.cues["static 8x8"]].shape
    (7494, 64)
    """
    file = BundledFile("pendigits")
    points = file["X"]
    fine = redraw_pen_points(points, size=16)
    n = len(points)
    blocks = {"dynamic": points}
    for size in (4, 8, 16):
        cell = 16 // size
        blocks[f"static {size}x{size}"] = (
            fine.reshape(n, size, cell, size, cell).mean(axis=(2, 4)).reshape(n, -1)
        )
    X, cues = _side_by_side(blocks, np.float32)
    train, test = _split(file["train"])
    return CueData(
        X=X,
        y=file["y"].astype(np.int64),
        cues=cues,
        train=train,
        test=test,
        feature_names=[f"{axis}{k}" for k in range(1, 9) for axis in "xy"]
        + [
            f"{size}x{size} row {r} column {c}"
            for size in (4, 8, 16)
            for r in range(size)
            for c in range(size)
        ],
        target_names=[str(digit) for digit in range(10)],
        description=(
            "10,992 digits written on a tablet. Dynamic: eight pen points (x, y in 0..100). Static: bitmaps of 4x4, 8x8 and "
            "16x16 redrawn from the eight pen points, because the papers' own bitmaps are not published."
        ),
        provenance=file.provenance(),
    )


# --------------------------------------------------------------------------- MNIST


def load_mnist(n_train=None, n_test=None):
    """Load MNIST, each image cut into four square blocks of 14x14 as in thesis appendix A (JMLR 5.1.5).

    Parameters
    ----------
    n_train : int, optional
        Use the first `n_train` of the 60,000 training images only.
    n_test : int, optional
        Use the first `n_test` of the 10,000 test images only.

    Returns
    -------
    CueData
        `X` of shape (n_train + n_test, 784), float32, grey values in [0, 1]; cues ``"top left"``, ``"top right"``,
        ``"bottom left"`` and ``"bottom right"`` of 196 neighbouring columns each, row by row within the block; `y` the digit;
        `train` the first n_train rows, `test` the rest, both in the official order; `pixels` puts the columns back in image
        order.

    Raises
    ------
    DataFileError
        If the file is missing or damaged.
    ValueError
        If a number of images is out of range.

    Notes
    -----
    Licence: CC BY-SA 3.0 as usually stated, copyright Yann LeCun and Corinna Cortes. All 70,000 images take 220 MB and about
    1 s; the first few thousand a tenth of that.

    References
    ----------
    Y. LeCun, L. Bottou, Y. Bengio and P. Haffner (1998). Gradient-based learning applied to document recognition.
    Proceedings of the IEEE 86, 2278-2324.

    Examples
    --------
    >>> from cuelearn.datasets import load_mnist
    >>> few = load_mnist(n_train=1000, n_test=500)
    >>> few
    <mnist, bundled: X (1500, 784) float32, cues top left (196), top right (196), bottom left (196), bottom right (196)>
    >>> images = np.empty((1500, 784), dtype=np.float32)
    >>> images[:, few.pixels] = few.X  # images.reshape(-1, 28, 28) now shows digits
    """
    n_train = _checked_count("n_train", n_train, 60_000)
    n_test = _checked_count("n_test", n_test, 10_000)
    file = BundledFile("mnist")
    corners = {"top left": (0, 0), "top right": (0, 14), "bottom left": (14, 0), "bottom right": (14, 14)}
    grid = np.arange(784).reshape(28, 28)
    X = np.empty((n_train + n_test, 784), dtype=np.float32)
    cues, pixels = {}, []
    parts = (
        (slice(0, n_train), file.first("train_images", n_train)),
        (slice(n_train, None), file.first("test_images", n_test)),
    )
    for number, (name, (top, left)) in enumerate(corners.items()):
        cues[name] = slice(196 * number, 196 * (number + 1))
        pixels.append(grid[top : top + 14, left : left + 14].ravel())
        for rows, images in parts:
            X[rows, cues[name]] = images[:, top : top + 14, left : left + 14].reshape(-1, 196)
    X /= np.float32(255)
    pixels = np.concatenate(pixels)
    y = np.concatenate([file.first("train_labels", n_train), file.first("test_labels", n_test)])
    return CueData(
        X=X,
        y=y.astype(np.int64),
        cues=cues,
        train=np.arange(n_train),
        test=np.arange(n_train, n_train + n_test),
        feature_names=[f"row {pixel // 28} column {pixel % 28}" for pixel in pixels],
        target_names=[str(digit) for digit in range(10)],
        description=(
            "Handwritten digits, 28x28 grey values in [0, 1], 60,000 for training and 10,000 for testing by other writers. "
            "Each image is cut into four square blocks of 14x14, one cue each."
        ),
        provenance=file.provenance(),
        pixels=pixels,
    )


def _checked_count(name, value, most):
    if value is None:
        return most
    if not isinstance(value, numbers.Integral) or not 0 <= value <= most:
        raise ValueError(f"{name} must be an integer in 0..{most} or None, got {value!r}.")
    return int(value)


# --------------------------------------------------------------------------- letter


def load_letter():
    """Load letter recognition: 20,000 printed capitals in 20 distorted fonts, 16 attributes of the glyph.

    Returns
    -------
    CueData
        `X` of shape (20000, 16), float64, integers in 0..15; cues ``"box"`` (place and size of the bounding box and number of
        pixels: 5 columns), ``"moments"`` (7) and ``"edges"`` (4); `y` the letter, A = 0 to Z = 25; `train` the first 15,000
        rows and `test` the last 5,000, Statlog's split as on the LIBSVM page.

    Raises
    ------
    DataFileError
        If the file is missing or damaged.

    Notes
    -----
    Licence: CC BY 4.0 (UCI Machine Learning Repository 59). The three cues are our grouping of UCI's attributes. UCI's own
    order of rows, of which the first 16,000 train, is another.

    References
    ----------
    D. Slate (1991). Letter Recognition. UCI Machine Learning Repository. https://doi.org/10.24432/C5ZP40
    P. W. Frey and D. J. Slate (1991). Letter recognition using Holland-style adaptive classifiers. Machine Learning 6, 161-182.

    Examples
    --------
    >>> from cuelearn.datasets import load_letter
    >>> letters = load_letter()
    >>> letters.target_names[letters.y[0]]
    'Z'
    """
    file = BundledFile("letter")
    train, test = _split(file["train"])
    return CueData(
        X=file["X"].astype(np.float64),
        y=file["y"].astype(np.int64),
        cues={"box": slice(0, 5), "moments": slice(5, 12), "edges": slice(12, 16)},
        train=train,
        test=test,
        feature_names=list(_LETTER_FEATURES),
        target_names=[chr(ord("A") + letter) for letter in range(26)],
        description="20,000 images of printed capitals, described by 16 attributes scaled to the integers 0..15.",
        provenance=file.provenance(),
    )


# --------------------------------------------------------------------------- multiple features


def load_mfeat(pyramid=False):
    """Load the multiple features of 2,000 handwritten numerals: six cues of the same digits.

    200 digits of each class, cut from Dutch utility maps as binary images of 30 x 48 pixels.

    Parameters
    ----------
    pyramid : bool, default=False
        Add the cues ``"pix-1"``, ``"pix-2"``, ``"pix-3"`` and ``"pix-4"``: the pixel averages pooled in 2x2, 4x4 and 8x8 cells,
        and at full resolution. They stand in for the four levels of a PHOG pyramid (thesis figure 4.2): cues that repeat one
        another. ``"pix-4"`` names the same columns as ``"pix"``.

    Returns
    -------
    CueData
        `X` of shape (2000, 649), or (2000, 733) with the pyramid, float64, raw values. Cues: ``"fac"`` 216 profile
        correlations, ``"fou"`` 76 Fourier coefficients of the shape, ``"kar"`` 64 Karhunen-Loeve coefficients, ``"mor"`` 6
        morphological features, ``"pix"`` 240 averages over 2x3 pixels (integers 0..6, 16 rows of 15), ``"zer"`` 47 Zernike
        moments. `y` the digit, 200 of each, sorted. No split was published: `train` and `test` are None.

    Raises
    ------
    DataFileError
        If the file is missing or damaged.

    Notes
    -----
    Licence: CC BY 4.0 (UCI Machine Learning Repository 72). The features have very different scales (``"mor"`` up to 17,572);
    kernels per cue with ``gamma="mean"`` take care of the scale of a cue, not of the columns within it. Where a pooling cell
    ends inside a pixel (15 columns do not halve evenly), the pixel counts by the share that lies in the cell.

    References
    ----------
    R. Duin (1998). Multiple Features. UCI Machine Learning Repository. https://doi.org/10.24432/C5HC70
    A. Jain, R. Duin and J. Mao (2000). Statistical pattern recognition: a review. IEEE PAMI 22, 4-37.

    Examples
    --------
    >>> from cuelearn.datasets import load_mfeat
    >>> load_mfeat()
    <mfeat, bundled: X (2000, 649) float64, cues fac (216), fou (76), kar (64), mor (6), pix (240), zer (47)>
    """
    file = BundledFile("mfeat")
    blocks = {cue: file[cue] for cue in ("fac", "fou", "kar", "mor", "pix", "zer")}
    names = [f"{cue} {k}" for cue, block in blocks.items() for k in range(block.shape[1])]
    if pyramid:
        images = blocks["pix"].reshape(-1, 16, 15).astype(np.float64)
        for level in (1, 2, 3):
            cells = 2**level
            blocks[f"pix-{level}"] = (_pooling(16, cells) @ images @ _pooling(15, cells).T).reshape(
                len(images), -1
            )
            names += [f"pix-{level} row {r} column {c}" for r in range(cells) for c in range(cells)]
    X, cues = _side_by_side(blocks, np.float64)
    if pyramid:
        cues["pix-4"] = cues["pix"]
    return CueData(
        X=X,
        y=file["y"].astype(np.int64),
        cues=cues,
        train=None,
        test=None,
        feature_names=names,
        target_names=[str(digit) for digit in range(10)],
        description=(
            "2,000 handwritten numerals from Dutch utility maps in six feature sets"
            + (
                "; pix-1 to pix-4 pool the pixel averages in 2x2, 4x4 and 8x8 cells and leave them whole."
                if pyramid
                else "."
            )
        ),
        provenance=file.provenance(),
    )


def _pooling(n, cells):
    """Return the (cells, n) matrix that averages a line of n pixels over equal cells, sharing out pixels at the borders."""
    edges = np.arange(cells + 1)[:, None] * (n / cells)
    pixel = np.arange(n)
    covered = np.minimum(edges[1:], pixel + 1) - np.maximum(edges[:-1], pixel)
    return np.maximum(covered, 0) * (cells / n)


# --------------------------------------------------------------------------- satimage


def load_satimage():
    """Load the Statlog Landsat image: 6,435 windows of 3x3 pixels in four spectral bands.

    Returns
    -------
    CueData
        `X` of shape (6435, 36), float64, grey values in 0..255 (27 to 157 occur), pixel after pixel from the top left, four
        bands each; cues ``"band 1"`` to ``"band 4"`` (green, red, two of near infrared) of nine columns each, every fourth;
        `y` the ground at the central pixel, six classes (UCI's code 7 is 5 here; code 6 does not occur); `train` the official
        4,435 windows (sat.trn), `test` the official 2,000 (sat.tst).

    Raises
    ------
    DataFileError
        If the file is missing or damaged.

    Notes
    -----
    Licence: CC BY 4.0 (UCI Machine Learning Repository 146). Windows overlap their neighbours, also across the official split;
    Statlog asks to train and test once on that split and not to cross-validate. The official parts were found again in the
    package's row order; ``data/build.py`` says how.

    References
    ----------
    A. Srinivasan (1993). Statlog (Landsat Satellite). UCI Machine Learning Repository. https://doi.org/10.24432/C55887

    Examples
    --------
    >>> from cuelearn.datasets import load_satimage
    >>> ground = load_satimage()
    >>> len(ground.train), len(ground.test)
    (4435, 2000)
    """
    file = BundledFile("satimage")
    train, test = _split(file["train"])
    places = [
        f"{row} {column}" for row in ("top", "middle", "bottom") for column in ("left", "centre", "right")
    ]
    return CueData(
        X=file["X"].astype(np.float64),
        y=np.searchsorted(list(_SATIMAGE_CLASSES), file["y"]).astype(np.int64),
        cues={f"band {band + 1}": slice(band, 36, 4) for band in range(4)},
        train=train,
        test=test,
        feature_names=[f"{place}, band {band}" for place in places for band in range(1, 5)],
        target_names=list(_SATIMAGE_CLASSES.values()),
        description="Landsat multi-spectral windows of 3x3 pixels; the class is the ground at the central pixel.",
        provenance=file.provenance(),
    )


# --------------------------------------------------------------------------- yeast


def load_yeast():
    """Load the yeast genes: 2,417 genes, each with several of 14 functional groups.

    Returns
    -------
    CueData
        `X` of shape (2417, 103), float64, every row of length 1; cues ``"expression"`` (79 values of micro-array expression)
        and ``"phylogeny"`` (24 values of the phylogenetic profile); `y` of shape (2417, 14), int8, 1 where the gene has the
        function (1 to 11 each, 4.24 on average); `train` Mulan's official 1,500 genes, `test` the other 917.

    Raises
    ------
    DataFileError
        If the file is missing or damaged.

    Notes
    -----
    Licence: none is stated by the authors or by Mulan; the set is redistributed by Mulan, OpenML (40597) and others. Where the
    expression ends follows from the values: the last 24 columns are skewed, the first 79 are not.

    References
    ----------
    A. Elisseeff and J. Weston (2001). A kernel method for multi-labelled classification. NIPS 14.
    P. Pavlidis, J. Weston, J. Cai and W. N. Grundy (2001). Gene functional classification from heterogeneous data. RECOMB.

    Examples
    --------
    >>> from cuelearn.datasets import load_yeast
    >>> genes = load_yeast()
    >>> float(round(genes.y.sum(axis=1).mean(), 2))
    4.24
    """
    file = BundledFile("yeast")
    train, test = _split(file["train"])
    return CueData(
        X=file["X"],
        y=file["Y"].astype(np.int8),
        cues={"expression": slice(0, 79), "phylogeny": slice(79, 103)},
        train=train,
        test=test,
        feature_names=[f"Att{k}" for k in range(1, 104)],
        target_names=[f"Class{k}" for k in range(1, 15)],
        description=(
            "Yeast genes described by micro-array expression and phylogenetic profile; 14 functional groups, several per gene."
        ),
        provenance=file.provenance(),
    )


# --------------------------------------------------------------------------- HTAD


def load_htad():
    """Load HTAD: home-tasks activities heard by a microphone and felt by an accelerometer on the wrist.

    Returns
    -------
    CueData
        `X` of shape (1386, 52), float64, raw values; cues ``"audio"`` (three frames of 12 mel-frequency cepstral coefficients)
        and ``"accelerometer"`` (16 statistics of the acceleration in g); `y` one of seven activities in alphabetical order. No
        split was published: `train` and `test` are None. The file does not tell the persons apart, so a random split mixes
        them.

    Raises
    ------
    DataFileError
        If the file is missing or damaged.

    Notes
    -----
    Licence: the authors' own terms. Open for research and education; competitions and commercial use need their prior
    written permission; work that uses the data must cite the article.

    References
    ----------
    E. Garcia-Ceja, V. Thambawita, S. A. Hicks, D. Jha, P. Jakobsen, H. L. Hammer, P. Halvorsen and M. A. Riegler (2021).
    HTAD: A home-tasks activities dataset with wrist-accelerometer and audio features. MultiMedia Modeling, LNCS 12573, 196-205.
    https://doi.org/10.1007/978-3-030-67835-7_17

    Examples
    --------
    >>> from cuelearn.datasets import load_htad
    >>> load_htad()
    <htad, bundled: X (1386, 52) float64, cues audio (36), accelerometer (16)>
    """
    file = BundledFile("htad")
    X, cues = _side_by_side({"audio": file["audio"], "accelerometer": file["accelerometer"]}, np.float64)
    return CueData(
        X=X,
        y=file["y"].astype(np.int64),
        cues=cues,
        train=None,
        test=None,
        feature_names=[f"mfcc{k}" for k in range(1, 37)] + list(_HTAD_ACCELEROMETER),
        target_names=list(_HTAD_CLASSES),
        description="Seven household activities, each sample described by what is heard and by how the wrist moves.",
        provenance=file.provenance(),
    )
