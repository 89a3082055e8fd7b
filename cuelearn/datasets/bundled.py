"""Loaders of the real data sets that lie in the project's ``data/`` directory.

``data/datasets.json`` says of each set what its columns and classes are (``load``); `load_bundled` reads a
set by that, and the public loaders add what a set has besides. Every loader checks the file's sha256 and
raises `DataFileError` for a damaged or missing one. How to cite a set stands in its ``provenance`` and in
``data/README.md``."""

from __future__ import annotations

import numpy as np

from .base import BundledFile, CueData, check_integer, side_by_side

__all__ = [
    "load_htad",
    "load_letter",
    "load_mfeat",
    "load_mnist",
    "load_pendigits",
    "load_satimage",
    "load_yeast",
    "pooling",
    "redraw_pen_points",
]


def load_bundled(name, add=None, dtype=np.float64):
    """Read a set as its entry in the registry describes it.

    Parameters
    ----------
    name : str
    add : function of the file, optional
        Returns (blocks, names): further matrices by cue, and names for their columns.
    dtype : dtype
        Of `X`.
    """
    file = BundledFile(name)
    how = file.entry["load"]
    if "blocks" in how:
        blocks = {cue: file[array] for cue, array in how["blocks"].items()}
        features = how.get("features") or [
            f"{cue} {k}" for cue in blocks for k in range(blocks[cue].shape[1])
        ]
        if add is not None:
            more, names = add(file)
            blocks, features = blocks | more, features + names
        X, cues = side_by_side(blocks, dtype)
    else:
        X, features = file["X"].astype(dtype, copy=False), how["features"]
        cues = {cue: slice(*columns) for cue, columns in how["cues"].items()}
    y = file["Y"].astype(np.int8) if "Y" in file else file["y"].astype(np.int64)
    if "codes" in how:
        y = np.searchsorted(how["codes"], y)
    train = test = None
    if "train" in file:
        train, test = np.flatnonzero(file["train"]), np.flatnonzero(~file["train"])
    return CueData(X, y, cues, train, test, features, how["classes"], how["description"], file.provenance())


def load_htad():
    """Load HTAD: home-tasks activities heard by a microphone and felt by an accelerometer on the wrist.

    Returns
    -------
    CueData
        `X` of shape (1386, 52), float64, raw values; cues ``"audio"`` (three frames of 12 mel-frequency
        cepstral coefficients) and ``"accelerometer"`` (16 statistics of the acceleration in g); `y` one of
        seven activities in alphabetical order. No split was published. The file does not tell the persons
        apart: a random split mixes them.

    Raises
    ------
    DataFileError
        If the file is missing or damaged.

    Notes
    -----
    Licence: the authors' own terms. Open for research and education; competitions and commercial use need
    their prior written permission; work that uses the data must cite the article.

    Examples
    --------
    >>> from cuelearn.datasets import load_htad
    >>> load_htad()
    <htad, bundled: X (1386, 52) float64, cues audio (36), accelerometer (16)>
    """
    return load_bundled("htad")


def load_letter():
    """Load letter recognition: 20,000 printed capitals in 20 distorted fonts, 16 attributes of the glyph.

    Returns
    -------
    CueData
        `X` of shape (20000, 16), float64, integers in 0..15; cues ``"box"`` (place and size of the bounding
        box and number of pixels: 5 columns), ``"moments"`` (7) and ``"edges"`` (4), our grouping; `y` the
        letter, A = 0 to Z = 25; `train` the first 15,000 rows and `test` the last 5,000, Statlog's split as
        on the LIBSVM page (UCI's own differs).

    Raises
    ------
    DataFileError
        If the file is missing or damaged.

    Notes
    -----
    Licence: CC BY 4.0 (UCI Machine Learning Repository 59).

    Examples
    --------
    >>> from cuelearn.datasets import load_letter
    >>> letters = load_letter()
    >>> letters.target_names[letters.y[0]]
    'Z'
    """
    return load_bundled("letter")


def load_satimage():
    """Load the Statlog Landsat image: 6,435 windows of 3x3 pixels in four spectral bands.

    Returns
    -------
    CueData
        `X` of shape (6435, 36), float64, grey values in 0..255 (27 to 157 occur), pixel after pixel from the
        top left, four bands each; cues ``"band 1"`` to ``"band 4"`` (green, red, two of near infrared) of
        nine columns each, every fourth; `y` the ground at the central pixel, six classes (UCI's code 7 is 5
        here; code 6 does not occur); `train` the official 4,435 windows (sat.trn), `test` the official 2,000
        (sat.tst).

    Raises
    ------
    DataFileError
        If the file is missing or damaged.

    Notes
    -----
    Licence: CC BY 4.0 (UCI Machine Learning Repository 146). Windows overlap their neighbours, also across
    the official split; Statlog asks to train and test once on that split and not to cross-validate. The
    official parts were found again in the package's row order; ``data/build.py`` says how.

    Examples
    --------
    >>> from cuelearn.datasets import load_satimage
    >>> ground = load_satimage()
    >>> len(ground.train), len(ground.test)
    (4435, 2000)
    """
    return load_bundled("satimage")


def load_yeast():
    """Load the yeast genes: 2,417 genes, each with several of 14 functional groups.

    Returns
    -------
    CueData
        `X` of shape (2417, 103), float64, every row of length 1; cues ``"expression"`` (79 values of
        micro-array expression) and ``"phylogeny"`` (24 values of the phylogenetic profile; where these begin
        follows from the values, which are skewed from there on); `y` of shape (2417, 14), int8, 1 where the
        gene has the function (1 to 11 each, 4.24 on average); `train` Mulan's official 1,500 genes, `test`
        the other 917.

    Raises
    ------
    DataFileError
        If the file is missing or damaged.

    Notes
    -----
    Licence: none is stated by the authors or by Mulan; the set is redistributed by Mulan, OpenML (40597) and
    others.

    References
    ----------
    A. Elisseeff and J. Weston (2001). A kernel method for multi-labelled classification. NIPS 14.
    P. Pavlidis, J. Weston, J. Cai and W. N. Grundy (2001). Gene functional classification from heterogeneous
    data. RECOMB.

    Examples
    --------
    >>> from cuelearn.datasets import load_yeast
    >>> genes = load_yeast()
    >>> float(round(genes.y.sum(axis=1).mean(), 2))
    4.24
    """
    return load_bundled("yeast")


def load_mfeat(pyramid=False):
    """Load the multiple features of 2,000 handwritten numerals: six cues of the same digits.

    200 digits of each class, cut from Dutch utility maps as binary images of 30 x 48 pixels.

    Parameters
    ----------
    pyramid : bool, default=False
        Add the cues ``"pix-1"``, ``"pix-2"``, ``"pix-3"`` and ``"pix-4"``: the pixel averages pooled in 2x2,
        4x4 and 8x8 cells, and at full resolution (the columns of ``"pix"``). They stand in for the four
        levels of a PHOG pyramid (thesis figure 4.2): cues that repeat one another.

    Returns
    -------
    CueData
        `X` of shape (2000, 649), or (2000, 733) with the pyramid, float64, raw values. Cues: ``"fac"`` 216
        profile correlations, ``"fou"`` 76 Fourier coefficients of the shape, ``"kar"`` 64 Karhunen-Loeve
        coefficients, ``"mor"`` 6 morphological features, ``"pix"`` 240 averages over 2x3 pixels (integers
        0..6, 16 rows of 15), ``"zer"`` 47 Zernike moments. `y` the digit, 200 of each, sorted. No split was
        published.

    Raises
    ------
    DataFileError
        If the file is missing or damaged.

    Notes
    -----
    Licence: CC BY 4.0 (UCI Machine Learning Repository 72). The features have very different scales
    (``"mor"`` up to 17,572); kernels per cue with ``gamma="mean"`` take care of the scale of a cue, not of
    the columns within it.

    Examples
    --------
    >>> from cuelearn.datasets import load_mfeat
    >>> load_mfeat()
    <mfeat, bundled: X (2000, 649) float64, cues fac (216), fou (76), kar (64), mor (6), pix (240), zer (47)>
    """
    if not pyramid:
        return load_bundled("mfeat")
    data = load_bundled("mfeat", _pixel_pyramid)
    said = "; pix-1 to pix-4 pool the pixel averages in 2x2, 4x4 and 8x8 cells and leave them whole."
    cues = data.cues | {"pix-4": data.cues["pix"]}
    return data._replace(cues=cues, description=data.description.removesuffix(".") + said)


def _pixel_pyramid(file):
    images = file["pix"].reshape(-1, 16, 15).astype(np.float64)
    blocks, names = {}, []
    for level in (1, 2, 3):
        cells = 2**level
        pooled = pooling(16, cells) @ images @ pooling(15, cells).T
        blocks[f"pix-{level}"] = pooled.reshape(len(images), -1)
        names += [f"pix-{level} row {r} column {c}" for r in range(cells) for c in range(cells)]
    return blocks, names


def pooling(n, cells):
    """The (cells, n) matrix that averages a line of n pixels over equal cells, sharing out pixels at the
    borders.
    """
    edges = np.arange(cells + 1)[:, None] * (n / cells)
    pixel = np.arange(n)
    covered = np.minimum(edges[1:], pixel + 1) - np.maximum(edges[:-1], pixel)
    return np.maximum(covered, 0) * (cells / n)


def load_pendigits():
    """Load Pendigits with the four representations of Gonen and Alpaydin (2010).

    10,992 digits written with a pen on a tablet by 44 people. The published form is the *dynamic* one: eight
    points, equally spaced along the trajectory, scaled so that x and y each span 0 to 100. The papers'
    *static* forms (bitmaps of 4x4, 8x8 and 16x16) are published nowhere reachable. They are **redrawn from
    the eight pen points**: a line of one pixel's width through the points at 16x16 (`redraw_pen_points`),
    averaged in blocks for 8x8 and 4x4. They differ from the originals in that strokes between two resampled
    points are straight and lifts of the pen are drawn.

    Returns
    -------
    CueData
        `X` of shape (10992, 352), float32; cues ``"dynamic"`` (16 coordinates in 0..100: x1, y1, ..., x8,
        y8), ``"static 4x4"`` (16), ``"static 8x8"`` (64) and ``"static 16x16"`` (256), bitmaps in [0, 1] row
        by row from the top; `y` the digit; `train` the official 7,494 samples (30 writers), `test` the other
        3,498 (14 other writers).

    Raises
    ------
    DataFileError
        If the file is missing or damaged.

    Notes
    -----
    Licence: CC BY 4.0 (UCI Machine Learning Repository 81). Takes about 0.15 s, for the drawing.

    References
    ----------
    E. Alpaydin and F. Alimoglu (1996). Pen-Based Recognition of Handwritten Digits. UCI Machine Learning
    Repository. https://doi.org/10.24432/C5MG6K
    M. Gonen and E. Alpaydin (2010). Cost-conscious multiple kernel learning. Pattern Recognition Letters 31,
    959-965.

    Examples
    --------
    >>> from cuelearn.datasets import load_pendigits
    >>> digits = load_pendigits()
    >>> digits.X[digits.train][:, digits.cues["static 8x8"]].shape
    (7494, 64)
    """
    return load_bundled("pendigits", _bitmaps, np.float32)


def _bitmaps(file):
    fine = redraw_pen_points(file["X"], size=16)
    blocks, names = {}, []
    for size in (4, 8, 16):
        cell = 16 // size
        coarse = fine.reshape(len(fine), size, cell, size, cell).mean(axis=(2, 4))
        blocks[f"static {size}x{size}"] = coarse.reshape(len(fine), -1)
        names += [f"{size}x{size} row {r} column {c}" for r in range(size) for c in range(size)]
    return blocks, names


def redraw_pen_points(points, size=16, width=1.0):
    """Draw pen trajectories as grey images: straight lines through the points, with soft edges.

    A pixel's ink is ``width/2 + 1/2`` minus the distance of its centre from the line, in pixels, cut to [0,
    1]: the share of the pixel that a straight stroke of that width covers, to within a tenth.

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


def load_mnist(n_train=None, n_test=None):
    """Load MNIST, each image cut into four square blocks of 14x14 as in thesis appendix A (JMLR 5.1.5).

    Parameters
    ----------
    n_train, n_test : int, optional
        Use the first `n_train` of the 60,000 training images and the first `n_test` of the 10,000 test images
        only.

    Returns
    -------
    CueData
        `X` of shape (n_train + n_test, 784), float32, grey values in [0, 1]; cues ``"top left"``, ``"top
        right"``, ``"bottom left"`` and ``"bottom right"`` of 196 neighbouring columns each, row by row within
        the block; `y` the digit; `train` the first n_train rows, `test` the rest, both in the official order;
        `pixels` puts the columns back in image order.

    Raises
    ------
    DataFileError
        If the file is missing or damaged.
    ValueError, TypeError
        If a number of images is out of range or not an integer.

    Notes
    -----
    Licence: CC BY-SA 3.0 as usually stated, copyright Yann LeCun and Corinna Cortes. All 70,000 images take
    220 MB and about 1 s; the first few thousand a tenth of that.

    Examples
    --------
    >>> from cuelearn.datasets import load_mnist
    >>> few = load_mnist(n_train=1000, n_test=500)
    >>> few.X.shape, list(few.cues)
    ((1500, 784), ['top left', 'top right', 'bottom left', 'bottom right'])
    >>> images = np.empty((1500, 784), dtype=np.float32)
    >>> images[:, few.pixels] = few.X  # images.reshape(-1, 28, 28) now shows digits
    """
    n_train = 60_000 if n_train is None else check_integer("n_train", n_train, 0, 60_000)
    n_test = 10_000 if n_test is None else check_integer("n_test", n_test, 0, 10_000)
    file = BundledFile("mnist")
    how = file.entry["load"]
    # Of each quarter: the image's pixels that it holds.
    quarters = np.arange(784).reshape(2, 14, 2, 14).swapaxes(1, 2).reshape(4, 196)
    names = ("top left", "top right", "bottom left", "bottom right")
    X = np.empty((n_train + n_test, 784), dtype=np.float32)
    parts = (slice(0, n_train), "train", n_train), (slice(n_train, None), "test", n_test)
    for rows, part, n in parts:
        images = file.first(f"{part}_images", n).reshape(-1, 784)
        for k, pixels in enumerate(quarters):
            X[rows, 196 * k : 196 * k + 196] = images[:, pixels]
    X /= np.float32(255)
    return CueData(
        X,
        np.concatenate([file.first(f"{part}_labels", n) for _, part, n in parts]).astype(np.int64),
        {name: slice(196 * k, 196 * k + 196) for k, name in enumerate(names)},
        np.arange(n_train),
        np.arange(n_train, n_train + n_test),
        [f"row {pixel // 28} column {pixel % 28}" for pixel in quarters.ravel()],
        how["classes"],
        how["description"],
        file.provenance(),
        quarters.ravel(),
    )
