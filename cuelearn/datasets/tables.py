"""Tables of samples: the bundled sets, as described in ``data/datasets.json``, and a simulated one."""

from __future__ import annotations

import math

import numpy as np
from sklearn.utils import check_random_state

from cuelearn.datasets.base import CueData, Provenance, first_items, read_bundled, side_by_side
from cuelearn.expect import expect
from cuelearn.kernels.types import RandomState

__all__ = [
    *("load_htad", "load_leaves", "load_letter", "load_mfeat", "load_mnist", "load_pendigits"),
    *("load_satimage", "load_yeast", "make_three_class"),
]


def load_bundled(name, add=None, dtype=np.float64):
    """Read a set by its entry; `add` maps its arrays to further matrices by cue and column names."""
    entry, held, origin = read_bundled(name)
    how = entry["load"]
    if "blocks" in how:
        blocks = {cue: held[array] for cue, array in how["blocks"].items()}
        numbered = [f"{cue} {k}" for cue in blocks for k in range(blocks[cue].shape[1])]
        features = how.get("features", numbered)
        if add is not None:
            more, names = add(held)
            blocks = blocks | more
            features = features + names
        X, cues = side_by_side(blocks, dtype)
    else:
        X = held["X"].astype(dtype, copy=False)
        features = how["features"]
        cues = {cue: slice(*columns) for cue, columns in how["cues"].items()}
    y = held["Y"].astype(np.int8) if "Y" in held else held["y"].astype(np.int64)
    if "codes" in how:
        y = np.searchsorted(how["codes"], y)
    train = test = None
    if "train" in held:
        train = np.flatnonzero(held["train"])
        test = np.flatnonzero(~held["train"])
    return CueData(X, y, cues, train, test, features, how["classes"], how["description"], origin)


def load_htad() -> CueData:
    """Load HTAD: home-tasks activities, from a microphone and an accelerometer on the wrist.

    `X` (1386, 52), float64, raw values; cues ``"audio"`` (three frames of 12 mel-frequency cepstral
    coefficients) and ``"accelerometer"`` (16 statistics of the acceleration in g); `y` one of seven
    activities. Split and persons were not published: a random split mixes persons. Open for research and
    education, with a citation; commercial use and competitions need the authors' permission.

    Examples
    --------
    >>> from cuelearn.datasets import load_htad
    >>> load_htad()
    <htad, bundled: X (1386, 52) float64, cues audio (36), accelerometer (16)>
    """
    return load_bundled("htad")


def load_leaves() -> CueData:
    """Load the one-hundred plant species leaves: 1,600 leaves, 16 of each species, three cues of 64 columns.

    `X` (1600, 192), float64: ``"shape"`` (distances of the outline from the centroid), ``"margin"`` and
    ``"texture"`` (histograms of the fine structure of the edge and of the surface, sum 1); `y` the species,
    sorted, numbered as in the file. No published split. The source lacks one texture: that of the first leaf
    is the mean of its species' other fifteen.

    References
    ----------
    C. Mallah, J. Cope and J. Orwell: Plant leaf classification using probabilistic integration of shape,
    texture and margin features, SPPRA 2013.

    Examples
    --------
    >>> from cuelearn.datasets import load_leaves
    >>> load_leaves()
    <leaves, bundled: X (1600, 192) float64, cues shape (64), margin (64), texture (64)>
    """
    return load_bundled("leaves")


def load_letter() -> CueData:
    """Load letter recognition: 20,000 printed capitals in 20 distorted fonts, 16 attributes of the glyph.

    `X` (20000, 16), float64, integers in 0..15; cues, our grouping, ``"box"`` (place and size of the bounding
    box, number of pixels: 5 columns), ``"moments"`` (7) and ``"edges"`` (4); `y` the letter, A = 0; `train`
    the first 15,000 rows, `test` the last 5,000, as in Statlog and LIBSVM.

    Examples
    --------
    >>> from cuelearn.datasets import load_letter
    >>> letters = load_letter()
    >>> letters.target_names[letters.y[0]]
    'Z'
    """
    return load_bundled("letter")


def load_satimage() -> CueData:
    """Load the Statlog Landsat image: 6,435 windows of 3x3 pixels in four spectral bands.

    `X` (6435, 36), float64, grey values in 0..255, by pixels from the top left, four bands each; cues ``"band
    1"`` to ``"band 4"`` (green, red, two of near infrared), every fourth column; `y` the ground at the
    central pixel, six classes (UCI's code 7 is 5 here); `train` the official 4,435 windows, `test` the
    official 2,000. Neighbouring windows overlap, also across the split.

    Examples
    --------
    >>> from cuelearn.datasets import load_satimage
    >>> ground = load_satimage()
    >>> len(ground.train), len(ground.test)
    (4435, 2000)
    """
    return load_bundled("satimage")


def load_yeast() -> CueData:
    """Load the yeast genes: 2,417 genes, each with several of 14 functional groups.

    `X` (2417, 103), float64, rows of length 1; cues ``"expression"`` (79 values of micro-array expression)
    and ``"phylogeny"`` (24 of the phylogenetic profile; its first column is inferred from the values, which
    are skewed from there on); `y` (2417, 14), int8, 1 for each function of the gene (1 to 11); `train`
    Mulan's official 1,500 genes, `test` the other 917. No licence is stated.

    References
    ----------
    A. Elisseeff and J. Weston: A kernel method for multi-labelled classification, NIPS 2001.

    Examples
    --------
    >>> from cuelearn.datasets import load_yeast
    >>> genes = load_yeast()
    >>> float(round(genes.y.sum(axis=1).mean(), 2))
    4.24
    """
    return load_bundled("yeast")


def load_mfeat() -> CueData:
    """Load the multiple features of 2,000 handwritten numerals: six cues of the same digits.

    `X` (2000, 649), float64, raw values: ``"fac"`` 216 profile correlations, ``"fou"`` 76 Fourier
    coefficients of the shape, ``"kar"`` 64 Karhunen-Loeve coefficients, ``"mor"`` 6 morphological features
    (up to 17,572), ``"pix"`` 240 averages over 2x3 pixels (integers 0..6, 16 rows of 15), ``"zer"`` 47
    Zernike moments. `y` the digit, 200 of each, sorted. No published split.

    Examples
    --------
    >>> from cuelearn.datasets import load_mfeat
    >>> load_mfeat()
    <mfeat, bundled: X (2000, 649) float64, cues fac (216), fou (76), kar (64), mor (6), pix (240), zer (47)>
    """
    return load_bundled("mfeat")


def load_pendigits() -> CueData:
    """Load Pendigits with the four representations of Gonen and Alpaydin (2010).

    10,992 digits written with a pen on a tablet by 44 people. Published is the *dynamic* form, eight points
    along the trajectory; the papers' *static* forms, bitmaps, are **redrawn from these points**: strokes
    between them are straight, and lifts of the pen are drawn.

    `X` (10992, 352), float32; cues ``"dynamic"`` (x1, y1, ..., x8, y8 in 0..100), ``"static 4x4"``, ``"static
    8x8"`` and ``"static 16x16"``, bitmaps in [0, 1] row by row from the top; `y` the digit; `train` the
    official 7,494 samples (30 writers), `test` the other 3,498 (14 other writers).

    References
    ----------
    M. Gonen and E. Alpaydin: Cost-conscious multiple kernel learning, Pattern Recognition Letters 2010.

    Examples
    --------
    >>> from cuelearn.datasets import load_pendigits
    >>> digits = load_pendigits()
    >>> digits.X[digits.train][:, digits.cues["static 8x8"]].shape
    (7494, 64)
    """
    return load_bundled("pendigits", _bitmaps, np.float32)


def _bitmaps(held):
    fine = redraw_pen_points(held["X"])
    blocks = {}
    names = []
    for size in (4, 8, 16):
        cell = 16 // size
        coarse = fine.reshape(len(fine), size, cell, size, cell).mean(axis=(2, 4))
        blocks[f"static {size}x{size}"] = coarse.reshape(len(fine), -1)
        names += [f"{size}x{size} row {r} column {c}" for r in range(size) for c in range(size)]
    return blocks, names


def redraw_pen_points(points, size=16):
    """Pen trajectories, (n, 2 k) of x1, y1, x2, ... in 0..100, as images, float32 (n, size, size): 1 minus
    the distance from the line, in pixels, clipped to [0, 1]."""
    points = np.asarray(points, dtype=np.float32)
    scale = np.float32((size - 1) / 100)
    x = (points[:, 0::2] * scale)[:, :, None]  # pixel centres have whole coordinates
    y = ((100 - points[:, 1::2]) * scale)[:, :, None]
    rows, columns = (axis.ravel().astype(np.float32) for axis in np.mgrid[:size, :size])

    image = np.empty((len(points), size * size), dtype=np.float32)
    for start in range(0, len(points), 256):  # few enough to stay in cache
        block = slice(start, start + 256)
        nearest = np.full((len(points[block]), size * size), np.inf, dtype=np.float32)
        for k in range(x.shape[1] - 1):
            x0 = x[block, k]
            y0 = y[block, k]
            dx = x[block, k + 1] - x0
            dy = y[block, k + 1] - y0
            length2 = np.maximum(dx * dx + dy * dy, np.float32(1e-12))  # a pen at rest is a point
            along = np.clip(((columns - x0) * dx + (rows - y0) * dy) / length2, 0, 1)
            distance2 = (columns - x0 - along * dx) ** 2 + (rows - y0 - along * dy) ** 2
            np.minimum(nearest, distance2, out=nearest)
        image[block] = np.clip(1 - np.sqrt(nearest), 0, 1)
    return image.reshape(-1, size, size)


def load_mnist(n_train: int | None = None, n_test: int | None = None) -> CueData:
    """Load MNIST, each image cut into four square blocks of 14x14 as in thesis appendix A (JMLR 5.1.5).

    `X` (n_train + n_test, 784), float32, grey values in [0, 1]; cues ``"top left"``, ``"top right"``,
    ``"bottom left"`` and ``"bottom right"`` of 196 columns, by rows of the block; `y` the digit; `train` the
    first n_train rows, `test` the rest, in the official order; `pixels` restores the image order. Licence: CC
    BY-SA 3.0 as usually stated. All 70,000 images take 220 MB and 1 s.

    Parameters
    ----------
    n_train, n_test : int, optional
        Number of the first training and test images to load, of 60,000 and 10,000.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets import load_mnist
    >>> few = load_mnist(n_train=1000, n_test=500)
    >>> images = np.empty((1500, 784), dtype=np.float32)
    >>> images[:, few.pixels] = few.X  # images.reshape(-1, 28, 28) now shows digits
    """
    if n_train is None:
        n_train = 60_000
    if n_test is None:
        n_test = 10_000
    n_train = expect("n_train", n_train, kind="whole", low=0, high=60_000)
    n_test = expect("n_test", n_test, kind="whole", low=0, high=10_000)
    entry, held, origin = read_bundled("mnist")
    # The image's pixels in each quarter.
    quarters = np.arange(784).reshape(2, 14, 2, 14).swapaxes(1, 2).reshape(4, 196)
    names = ("top left", "top right", "bottom left", "bottom right")
    X = np.empty((n_train + n_test, 784), dtype=np.float32)
    labels = []
    for part, n, rows in (("train", n_train, slice(n_train)), ("test", n_test, slice(n_train, None))):
        images = first_items(held, f"{part}_images", n).reshape(-1, 2, 14, 2, 14)
        labels.append(first_items(held, f"{part}_labels", n))
        X[rows].reshape(-1, 2, 2, 14, 14)[:] = images.swapaxes(2, 3)
    X /= np.float32(255)
    y = np.concatenate(labels).astype(np.int64)
    cues = {name: slice(196 * k, 196 * k + 196) for k, name in enumerate(names)}
    train, test = np.split(np.arange(len(y)), [n_train])
    features = [f"row {pixel // 28} column {pixel % 28}" for pixel in quarters.ravel()]
    how = entry["load"]
    return CueData(
        X, y, cues, train, test, features, how["classes"], how["description"], origin, quarters.ravel()
    )


def make_three_class(n_per_class: int = 100, noise: float = 0.05, random_state: RandomState = 0) -> CueData:
    r"""Make the three-class problem of thesis section 4.3.4 and figure 4.1 (simulated).

    Cue 1 separates class 3, cue 2 class 1, cue 3 class 2 (`y` counts from 0), and cue 4 all three, **each
    from the rest exactly as well as its own cue.** (The thesis prints only the kernel matrices.) Each cue is
    a sample's prototype in three dimensions plus noise,

    .. math:: x^j_i = m^j_{y_i} + \sigma \varepsilon, \qquad \varepsilon \sim N(0, I_3) .

    In cue 4 the prototypes are the unit vectors :math:`e_1, e_2, e_3`, a triangle of height
    :math:`\sqrt{3/2}`. In cues 1 to 3 a unit vector *u* is that of the separated class, *v* of both others;
    :math:`u \cdot v = 1/4` gives the same distance. So, with linear kernels, a one-against-rest
    problem with the l1 norm uses its own cue and cue 4; a multiclass problem costs :math:`\sqrt 2` with cue 4
    alone and 2 with cues 1 to 3, so with p near 1 it keeps only cue 4, until `noise` outweighs that
    difference (from about 0.06).

    Parameters
    ----------
    n_per_class : int >= 1, default=100
    noise : float >= 0, default=0.05
        Standard deviation :math:`\sigma` in every feature; prototypes have length 1.
    random_state : int, RandomState or None, default=0

    Returns
    -------
    CueData
        `X` of shape (3 * n_per_class, 12), float64, sorted by class as in the figure; cues ``"cue 1"`` to
        ``"cue 4"`` of three columns; no split; tier ``"generated"``.

    References
    ----------
    F. Orabona, Jie Luo and B. Caputo: Multi Kernel Learning with Online-Batch Optimization, JMLR 2012,
    section 5.2 and figure 1.

    Examples
    --------
    >>> from cuelearn.datasets import make_three_class
    >>> make_three_class()
    <three-class, generated: X (300, 12) float64, cues cue 1 (3), cue 2 (3), cue 3 (3), cue 4 (3)>
    """
    expect("n_per_class", n_per_class, kind="whole", low=1)
    expect("noise", noise, low=0)
    rng = check_random_state(random_state)

    y = np.repeat(np.arange(3), n_per_class)
    u = np.array([1.0, 0.0, 0.0])
    v = np.array([1.0, math.sqrt(15.0), 0.0]) / 4
    separated = (2, 0, 1)  # by cues 1 to 3
    prototypes = [np.where(np.arange(3)[:, None] == single, u, v) for single in separated] + [np.eye(3)]
    X = np.hstack([means[y] for means in prototypes])
    X += noise * rng.standard_normal(X.shape)

    names = [f"cue {j}" for j in range(1, 5)]
    origin = Provenance(
        "three-class",
        "generated",
        "that of the project (simulated)",
        None,
        "simulated after Jie Luo (2011), EPFL thesis 5233, section 4.3.4",
        f"make_three_class(n_per_class={n_per_class}, noise={noise}, random_state={random_state})",
    )
    cues = {name: slice(3 * j, 3 * j + 3) for j, name in enumerate(names)}
    features = [f"{name}, x{i}" for name in names for i in (1, 2, 3)]
    classes = ["class 1", "class 2", "class 3"]
    description = (
        "Simulated three-class problem after thesis figure 4.1. Cues 1, 2 and 3 tell class 3, class 1 and "
        "class 2 from the other two; cue 4 tells all three apart, each as well as the cue made for it."
    )
    return CueData(X, y, cues, None, None, features, classes, description, origin)
