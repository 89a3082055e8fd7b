"""The papers' own data, from the files that the user put in place: `load_original`, and the sets that come as
tables.

What there is, and where from, stands in ``originals.json``; `fetch` downloads it. A loader takes the
directory with its files and raises `DataFileError`, which names the file, where one is missing or not of the
form of its source; it warns where a file's sum is not the published one. Image sets stand in `folders`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
import xml.etree.ElementTree
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cuelearn.core.optional import require

from .base import CueData, DataFileError, Provenance, side_by_side
from .folders import load_eth80, load_flowers17, load_idol2, load_image_folder

__all__ = [
    *("AWA_TEST_CLASSES", "Original", "PartialData", "known_originals", "known_sum", "load_awa"),
    "load_birdsong",
    *("load_corel5k", "load_covtype", "load_emotions", "load_lost", "load_msrcv2", "load_original"),
    *("load_partial_labels", "load_scene", "load_scene15", "load_usps", "original_directory"),
    "read_original",
]

#: The ten classes that the authors of Animals with Attributes keep for tests, by name.
AWA_TEST_CLASSES = (
    *("chimpanzee", "giant panda", "hippopotamus", "humpback whale", "leopard"),
    *("persian cat", "pig", "raccoon", "rat", "seal"),
)
#: Files that hold USPS, in the order in which they are looked for.
USPS_FORMS = (("usps.h5",), ("usps.bz2", "usps.t.bz2"), ("usps", "usps.t"))
#: The 15 scenes, in the order of the file's numbers, by which the published sizes of the classes go.
SCENES = (
    *("suburb", "coast", "forest", "highway", "inside city", "mountain", "open country", "street"),
    *("tall building", "office", "bedroom", "industrial", "kitchen", "living room", "store"),
)
_SCENE_LABELS = ("Beach", "Sunset", "FallFoliage", "Field", "Mountain", "Urban")
_EMOTIONS = (
    *("amazed-suprised", "happy-pleased", "relaxing-calm", "quiet-still", "sad-lonely", "angry-aggresive"),
)


class Original(NamedTuple):
    """What ``originals.json`` says of a set.

    `urls` are the addresses of its files by name, none where they have to be taken by hand from `page`;
    `sums` are check sums, such as ``"md5:..."``, empty where not known, by file name; `layout` says what the
    directory of that name in ``CUELEARN_DATA`` holds, `serves` what is made from it.
    """

    name: str
    title: str
    citation: str
    terms: str
    size: str
    page: str
    urls: dict[str, str]
    sums: dict[str, str]
    layout: str
    serves: str


@cache
def known_originals():
    """All sets that the papers use, and further ones like them: `Original` by name.

    Examples
    --------
    >>> from cuelearn.datasets import known_originals
    >>> print(known_originals()["flowers17"].layout)
    jpg/image_0001.jpg to jpg/image_1360.jpg
    """
    table = json.loads(Path(__file__).with_name("originals.json").read_text(encoding="utf-8"))
    return {name: Original(name, **entry) for name, entry in table.items()}


def known_sum(file):
    """The check sum that is known of a file of this name, as "sha256:..." or "md5:...", or None."""
    return next((o.sums[file] for o in known_originals().values() if o.sums.get(file)), None)


def _read(file, what, sha256=None):
    """The bytes of a file, or a `DataFileError` that says what needs it; warns where its sum is another."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise DataFileError(f"{file} is missing; {what} needs it.") from None
    kind, _, known = (f"sha256:{sha256}" if sha256 else known_sum(file.name) or "sha256:").partition(":")
    found = hashlib.new(kind, content).hexdigest()
    if known and found != known.lower():
        warnings.warn(
            f"{file} is damaged or another edition: expected {kind} {known}, found {found}.", stacklevel=3
        )
    return content


@contextmanager
def _parsing(file, form):
    """Whatever a parser finds wrong becomes a `DataFileError`."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        raise DataFileError(f"{file} does not hold {form} ({error}).") from error


def _require(fits, message):
    if not fits:
        raise DataFileError(message)


def _origin(name, contents, citation, source):
    sums = " and ".join(hashlib.sha256(content).hexdigest() for content in contents)
    return Provenance(name, "original", "not stated; for research", sums, citation, source)


def _in_two_parts(parts):
    """The training part above the test part, and the rows of each."""
    rows = np.arange(sum(map(len, parts)))
    return np.concatenate(parts), *np.split(rows, [len(parts[0])])


def _is_binary(matrix):
    return matrix.ndim == 2 and np.isin(matrix, (0, 1)).all()


def load_awa(path):
    """Load Animals with Attributes, 3,000 photographs of 50 kinds of animals in four cues.

    100 photographs of each of the ten classes in `AWA_TEST_CLASSES`, 50 of each other class, of the 30,475
    published (Lampert, Nickisch and Harmeling, CVPR 2009).

    The directory holds ``awa_subset.npz``: ``phog``, ``surf``, ``rgsift`` and ``lss`` (n, d), of any float
    type, ``y`` (n,) and ``classes`` (50,), names whose words a plus sign or a blank joins. A `CueData`: `X`
    (3000, 6252), float32, cues ``"phog"`` (252 columns), ``"surf"``, ``"rgsift"`` and ``"lss"`` (2000 each),
    histograms of sum 1 up to the rounding of the file's 16 bits; `y` 0..49 in the order of the file's names;
    no split of the images. The published colour histogram is not among the cues.

    Examples
    --------
    >>> from cuelearn.datasets import known_originals, load_awa
    >>> known_originals()["awa"].title
    'Animals with Attributes, 50 kinds of animals, published histograms'
    >>> load_awa("originals/awa")  # doctest: +SKIP
    <awa, original: X (3000, 6252) float32, cues phog (252), surf (2000), rgsift (2000), lss (2000)>
    """
    file = Path(path) / "awa_subset.npz"
    content = _read(file, "Animals with Attributes")
    with (
        _parsing(file, "Animals with Attributes in the expected form"),
        np.load(io.BytesIO(content), allow_pickle=False) as archive,
    ):
        cues = {cue: archive[cue] for cue in ("phog", "surf", "rgsift", "lss")}
        y, names = archive["y"], [str(name).replace("+", " ") for name in archive["classes"].tolist()]
    blocks, shapes = list(cues.values()), {cue: block.shape for cue, block in cues.items()}
    sized = y.ndim == 1 and y.size and all(b.ndim == 2 and len(b) == y.size and b.shape[1] for b in blocks)
    _require(
        sized and all(b.dtype.kind == "f" and np.isfinite(b).all() and (b >= 0).all() for b in blocks),
        f"{file} must hold one histogram per image in each cue, finite floats and none negative, and one "
        f"class per image, got shapes {shapes} and {y.shape}.",
    )
    _require(
        len(set(names)) == 50 and set(AWA_TEST_CLASSES) <= set(names),
        f"{file} must name 50 different classes, the ten test classes among them, got {len(set(names))}.",
    )
    _require(
        y.dtype.kind in "iu" and np.array_equal(np.unique(y), np.arange(50)),
        f"{file} must give every image a class from 0 to 49 and every class an image.",
    )
    X, columns = side_by_side(cues, np.float32)
    features = [f"{cue} {k}" for cue, block in cues.items() for k in range(block.shape[1])]
    what = "Photographs of animals as histograms: PHOG (shape), and words of SURF, rgSIFT and local "
    source = "Animals with Attributes, IST Austria: a part of the published histograms, 16 bits each"
    origin = _origin("awa", [content], "Lampert, Nickisch and Harmeling, CVPR 2009", source)
    return CueData(
        X, y.astype(np.int64), columns, None, None, features, names, f"{what}self-similarity.", origin
    )


def load_corel5k(path):
    """Load Corel5k, 5,000 photographs described by 499 visual terms, with 374 keywords.

    The papers describe these images (Duygulu, Barnard, de Freitas and Forsyth, ECCV 2002) by 15 kinds of
    features; the terms, which images share a kind of region with which, are all that is still to be had.

    The directory holds ``corel5k.mat`` (``X``, whose first 499 columns are the terms: files that hold the
    keywords behind them are cut, and ``Y`` of shape (5000, 374)) and ``corel5k_labels.xml`` (the keywords in
    the order of the columns of Y), as the Mulan and KDIS repositories give them. A `CueData`: `X` (5000,
    499), float32, 0 or 1; one cue, "visual terms"; `y` (5000, 374), int8; no published split: the
    repositories' order does not say which 500 images are the test part.

    Examples
    --------
    >>> from cuelearn.datasets import known_originals, load_corel5k
    >>> known_originals()["corel5k"].title
    'Corel5k, 5,000 photographs with 374 keywords, as 499 visual terms'
    >>> load_corel5k("originals/corel5k")  # doctest: +SKIP
    <corel5k, original: X (5000, 499) float32, cues visual terms (499)>
    """
    import scipy.io

    path = Path(path)
    files = path / "corel5k.mat", path / "corel5k_labels.xml"
    contents = [_read(file, "Corel5k") for file in files]
    with _parsing(path, "Corel5k in the form of the Mulan repository"):
        held = scipy.io.loadmat(io.BytesIO(contents[0]), variable_names=("X", "Y"))
        X, y = np.asarray(held["X"])[:, :499].astype(np.float32), np.asarray(held["Y"]).astype(np.int8)
        names = [label.get("name") for label in xml.etree.ElementTree.fromstring(contents[1])]
    _require(
        X.shape[1] == 499 and _is_binary(y) and y.shape == (len(X), len(names)),
        f"{files[0]} must hold X with 499 or more columns and 0/1 labels Y with {len(names)} columns, "
        f"got {X.shape}, {y.shape}.",
    )
    said = "Photographs with 1 to 5 keywords; term k is 1 where the image has a region of kind k."
    cited = "Duygulu, Barnard, de Freitas and Forsyth, ECCV 2002"
    origin = _origin("corel5k", contents, cited, "Mulan / KDIS multi-label repository, corel5k")
    terms = [f"term {k}" for k in range(499)]
    return CueData(X, y, {"visual terms": slice(0, 499)}, None, None, terms, names, said, origin)


def load_scene(path):
    """Load scene, 2,407 photographs described by the colours of 7 x 7 blocks, with six kinds of scenes.

    The files do not name the columns' meaning; the order follows from the values of all rows, as
    ``tests/datasets/test_originals.py`` measures them. Whether the blocks of a row count from the left cannot
    be seen in the values.

    The directory holds ``scene-train.arff`` and ``scene-test.arff`` as the Mulan repository gives them: a
    line for each photograph with 294 numbers in [0, 1], then six labels, 0 or 1, in the order Beach, Sunset,
    FallFoliage, Field, Mountain, Urban; a header that names the attributes must agree with this. A `CueData`:
    `X` (2407, 294), float32, every column scaled to [0, 1] as published; cues ``"L"``, ``"u"`` and ``"v"``,
    the channels of the CIE Luv colours, 98 columns each: the means of the 49 blocks, then the variances, row
    of blocks after row of blocks from the top; `y` (2407, 6), int8, 1 to 3 labels each; `train` the first
    1,211 rows, `test` the other 1,196, the published split.

    References
    ----------
    M. R. Boutell, J. Luo, X. Shen and C. M. Brown (2004). Learning multi-label scene classification. Pattern
    Recognition 37, 1757-1771.

    Examples
    --------
    >>> from cuelearn.datasets import known_originals, load_scene
    >>> known_originals()["scene"].title
    'Scene, 2,407 photographs with six labels'
    >>> load_scene("originals/scene")  # doctest: +SKIP
    <scene, original: X (2407, 294) float32, cues L (98), u (98), v (98)>
    """
    contents, parts = _read_mulan(path, "scene", 294, _SCENE_LABELS, scaled=True)
    rows, train, test = _in_two_parts(parts)
    moments = [f"{channel} {moment}" for channel in "Luv" for moment in ("mean", "variance")]
    said = (
        "Photographs of six kinds of scenes, some of several; mean and variance of the Luv colours in 7 x 7 "
    )
    cited = "Boutell, Luo, Shen and Brown, Pattern Recognition 37, 2004"
    return CueData(
        rows[:, :294].astype(np.float32),
        rows[:, 294:].astype(np.int8),
        {"L": slice(0, 98), "u": slice(98, 196), "v": slice(196, 294)},
        train,
        test,
        [f"{moment} {row},{column}" for moment in moments for row in range(7) for column in range(7)],
        list(_SCENE_LABELS),
        f"{said}blocks, scaled to [0, 1].",
        _origin("scene", contents, cited, "Mulan multi-label repository, scene"),
    )


def load_emotions(path):
    """Load emotions, 593 pieces of music described by timbre and rhythm, with six labels.

    The directory holds ``emotions-train.arff`` and ``emotions-test.arff`` as the Mulan repository gives them:
    72 numbers, then six labels, 0 or 1. A `CueData`: `X` (593, 72), float32, as published, in units of their
    own; cues ``"timbre"`` (64 columns) and ``"rhythm"`` (8); `y` (593, 6), int8; `train` the first 391 rows,
    `test` the other 202, the published split.

    References
    ----------
    K. Trohidis, G. Tsoumakas, G. Kalliris and I. Vlahavas (2008). Multi-label classification of music into
    emotions. ISMIR.

    Examples
    --------
    >>> from cuelearn.datasets import known_originals, load_emotions
    >>> known_originals()["emotions"].title
    'Emotions, 593 pieces of music with six labels'
    >>> load_emotions("originals/emotions")  # doctest: +SKIP
    <emotions, original: X (593, 72) float32, cues timbre (64), rhythm (8)>
    """
    contents, parts = _read_mulan(path, "emotions", 72, _EMOTIONS)
    rows, train, test = _in_two_parts(parts)
    return CueData(
        rows[:, :72].astype(np.float32),
        rows[:, 72:].astype(np.int8),
        {"timbre": slice(0, 64), "rhythm": slice(64, 72)},
        train,
        test,
        [f"feature {k}" for k in range(72)],
        list(_EMOTIONS),
        "Pieces of music as statistics of their spectra and of their beats, with the moods that they have.",
        _origin(
            "emotions", contents, "Trohidis et al., ISMIR 2008", "Mulan multi-label repository, emotions"
        ),
    )


def _read_mulan(path, name, n_features, labels, scaled=False):
    """Training and test part of a set of the Mulan repository: contents, and rows with their labels.

    `scaled`: its numbers are from 0 to 1.
    """
    contents, parts = [], []
    for file in (Path(path) / f"{name}-train.arff", Path(path) / f"{name}-test.arff"):
        contents.append(_read(file, name))
        with _parsing(file, f"{name} in the form of the Mulan repository"):
            names, rows = _read_arff(contents[-1])
        unit, said = (
            " in [0, 1]" if scaled else "",
            f" and last attributes {', '.join(names[-6:])}" if names else "",
        )
        agrees = not names or (len(names) == rows.shape[1] and tuple(names[n_features:]) == labels)
        fits = np.isfinite(rows).all() and (not scaled or ((rows >= 0) & (rows <= 1)).all())
        _require(
            rows.shape[1] == n_features + len(labels)
            and _is_binary(rows[:, n_features:])
            and agrees
            and fits,
            f"{file} must hold rows of {n_features} numbers{unit} and the 0/1 labels {', '.join(labels)}, "
            f"in this order, got shape {rows.shape}{said}.",
        )
        parts.append(rows)
    return contents, parts


def _read_arff(content):
    """An ARFF file of numbers: the attributes' names, if it has a header, and the rows (n, d) in float64."""
    lines = [line.strip() for line in content.decode().splitlines()]
    declared = [line.split() for line in lines if line.lower().startswith("@attribute")]
    names = [words[1].strip("'\"") for words in declared if len(words) > 1]
    data = [line for line in lines if line and line[0] not in "@%"]
    if not data:
        raise ValueError("it has no rows")
    return names, np.loadtxt(data, delimiter=",", comments=None, ndmin=2)


def load_scene15(path):
    """Load fifteen scenes, 4,485 photographs of places in and out of doors, in three cues.

    The directory holds ``scene15_mtv.mat``, which goes round with code for clustering by several views:
    ``X``, three matrices (d, n), and ``gt``, the class from 1. A `CueData`: `X` (4485, 119), float32; cues
    ``"first"``, ``"second"`` and ``"third"`` (20, 59 and 40 columns), histograms with mean 1 of kinds that
    the file does not say; `y` 0..14, named by `SCENES`; no split.

    References
    ----------
    S. Lazebnik, C. Schmid and J. Ponce (2006). Beyond bags of features: spatial pyramid matching for
    recognizing natural scene categories. CVPR.

    Examples
    --------
    >>> from cuelearn.datasets import known_originals, load_scene15
    >>> known_originals()["scene15"].title
    'Fifteen scenes, 4,485 photographs in three cues'
    >>> load_scene15("originals/scene15")  # doctest: +SKIP
    <scene15, original: X (4485, 119) float32, cues first (20), second (59), third (40)>
    """
    import scipy.io

    file = Path(path) / "scene15_mtv.mat"
    content = _read(file, "the set of 15 scenes")
    with _parsing(file, "15 scenes in the expected form"):
        held = scipy.io.loadmat(io.BytesIO(content), variable_names=("X", "gt"))
        views = [np.asarray(view).T for view in held["X"].flat]
        y = np.asarray(held["gt"]).ravel().astype(np.int64) - 1
        cues = dict(zip(("first", "second", "third"), views, strict=True))
    _require(
        all(view.ndim == 2 and len(view) == y.size and np.isfinite(view).all() for view in views)
        and np.array_equal(np.unique(y), np.arange(len(SCENES))),
        f"{file} must hold three matrices X with a column for each of the scenes, and their classes gt from "
        f"1 to 15, got shapes {[view.T.shape for view in views]} and {y.shape}.",
    )
    X, columns = side_by_side(cues, np.float32)
    features = [f"{cue} {k}" for cue, view in cues.items() for k in range(view.shape[1])]
    said = "Photographs of fifteen kinds of places, by three global descriptors."
    origin = _origin("scene15", [content], "Lazebnik, Schmid and Ponce, CVPR 2006", "scene15_mtv.mat")
    return CueData(X, y, columns, None, None, features, list(SCENES), said, origin)


def load_covtype(path):
    """Load covertype, 581,012 patches of forest by 54 measurements, with the type of their trees.

    The directory holds ``covtype.data.gz`` as UCI gives it. A `CueData`: `X` (581012, 54), float32: ten
    quantities (metres, degrees, hill shade from 0 to 255), four areas and 40 soils, 0 or 1; one cue; `y`
    0..6; `train` the first 15,120 rows (UCI's training and validation parts), `test` all others.

    Examples
    --------
    >>> from cuelearn.datasets import known_originals, load_covtype
    >>> known_originals()["covtype"].title
    'Covertype, 581,012 patches of forest of seven types'
    >>> load_covtype("originals/covtype")  # doctest: +SKIP
    <covtype, original: X (581012, 54) float32, cues map (54)>
    """
    import pandas as pd

    file = Path(path) / "covtype.data.gz"
    content = _read(file, "covertype")
    with _parsing(file, "covertype in the form of UCI"):
        rows = pd.read_csv(io.BytesIO(content), header=None, compression="gzip", dtype=np.float32).to_numpy()
        y = rows[:, -1].astype(np.int64) - 1
    _require(
        rows.shape[1] == 55 and np.isin(y, np.arange(7)).all() and np.isfinite(rows).all(),
        f"{file} must hold rows of 54 numbers and a class from 1 to 7, got shape {rows.shape}.",
    )
    train, test = np.split(np.arange(len(y)), [15_120])
    kinds = "spruce/fir,lodgepole pine,ponderosa pine,cottonwood/willow,aspen,Douglas fir,krummholz".split(
        ","
    )
    names = [f"measurement {k}" for k in range(54)]
    said = "Patches of 30 x 30 m of forest in Colorado, by what maps say of them."
    origin = _origin("covtype", [content], "Blackard, UCI Machine Learning Repository 31, 1998", "UCI 31")
    return CueData(rows[:, :54], y, {"map": slice(0, 54)}, train, test, names, kinds, said, origin)


def load_usps(path):
    """Load USPS, 9,298 handwritten digits of 16 x 16 pixels (thesis figure 5.3; Hull, 1994).

    The directory holds ``usps.h5`` (arrays ``train/data``, ``train/target``, ``test/data`` and
    ``test/target``, grey values in [0, 1]; `ImportError` without h5py), or ``usps.bz2`` and ``usps.t.bz2`` as
    the LIBSVM page gives them, or these unpacked. A `CueData`: `X` (9298, 256), float32, grey values in [-1,
    1] as on the LIBSVM page, row by row; one cue, "pixels"; `y` the digit; `train` the first 7,291 rows,
    `test` the other 2,007.

    Examples
    --------
    >>> from cuelearn.datasets import known_originals, load_usps
    >>> known_originals()["usps"].title
    'USPS, 9,298 handwritten digits of 16 x 16 pixels'
    >>> load_usps("originals/usps")  # doctest: +SKIP
    <usps, original: X (9298, 256) float32, cues pixels (256)>
    """
    path = Path(path)
    files = next(([path / name for name in form] for form in USPS_FORMS if (path / form[0]).is_file()), None)
    _require(
        files is not None,
        f"{path / 'usps.h5'} is missing; USPS comes as usps.h5, or as usps.bz2 and usps.t.bz2 of the LIBSVM "
        "page.",
    )
    contents = [_read(file, "USPS") for file in files]
    with _parsing(files[0], "USPS in the form of its source"):
        parts = _usps_of_hdf5(files[0]) if files[0].suffix == ".h5" else _usps_of_libsvm(files)
    for file, (X, y) in zip(files * (3 - len(files)), parts, strict=True):
        fits = X.ndim == 2 and X.shape[1] == 256 and y.shape == (len(X),) and len(X) > 0
        _require(
            fits and np.abs(X).max() <= 1 and np.isin(y, np.arange(10)).all(),
            f"{file} must hold images of 256 grey values and as many digits, "
            f"got shapes {X.shape} and {y.shape}.",
        )
    X, train, test = _in_two_parts([X for X, _ in parts])
    said = (
        "Digits from envelopes of the U.S. Postal Service, 16 x 16 pixels, grey values from -1 (paper) to 1 "
    )
    source = "LIBSVM data page, usps.bz2 and usps.t.bz2; OpenML 41082"
    return CueData(
        X.astype(np.float32),
        np.concatenate([y for _, y in parts]).astype(np.int64),
        {"pixels": slice(0, 256)},
        train,
        test,
        [f"pixel {row},{column}" for row in range(16) for column in range(16)],
        [str(digit) for digit in range(10)],
        f"{said}(ink).",
        _origin("usps", contents, "Hull, PAMI 16, 1994", source),
        np.arange(256),
    )


def _usps_of_hdf5(file):
    require("hdf5", "h5py", instead="; usps.bz2 and usps.t.bz2 of the LIBSVM page need no library")
    import h5py

    with h5py.File(file, "r") as held:  # grey values from 0 to 1 in this form
        return [
            (2.0 * held[f"{part}/data"][...].astype(np.float64) - 1.0, held[f"{part}/target"][...])
            for part in ("train", "test")
        ]


def _usps_of_libsvm(files):
    from sklearn.datasets import load_svmlight_files

    X_train, y_train, X_test, y_test = load_svmlight_files([str(file) for file in files], n_features=256)
    # digits count from 1 there, the zero being 1
    return [(X_train.toarray(), y_train - 1.0), (X_test.toarray(), y_test - 1.0)]


class PartialData(NamedTuple):
    """Instances with a set of candidate labels each, one of them right: bags of a single instance.

    Attributes
    ----------
    X : ndarray of float32, shape (n, d)
    y : ndarray of int64, shape (n,)
        True class of each instance, 0..K-1.
    candidates : CandidateSet
        n bags of one instance, so that bags and rows have the same numbers.
    folds : list of (train, test)
        The published folds: row numbers, ascending; every row is in one test part.
    target_names : list of str
        One per class, of which some may only ever be wrong.
    description : str
    provenance : Provenance

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.datasets import PartialData, Provenance
    >>> from cuelearn.mms import CandidateSet
    >>> origin = Provenance("toy", "original", "none", None, "none", "made here")
    >>> sets = CandidateSet.from_indicator([[1, 1, 0], [0, 1, 1]])
    >>> PartialData(np.eye(2, dtype=np.float32), np.array([0, 2]), sets, [], ["a", "b", "c"], "Two.", origin)
    <toy, original: X (2, 2), 3 classes, 2.0 candidates each>
    """

    X: np.ndarray
    y: np.ndarray
    candidates: object
    folds: list[tuple[np.ndarray, np.ndarray]]
    target_names: list[str]
    description: str
    provenance: Provenance

    def __repr__(self):
        mean = np.mean(self.candidates.n_candidates)
        classes = f"{len(self.target_names)} classes, {mean:.1f} candidates each"
        return f"<{self.provenance.name}, original: X {self.X.shape}, {classes}>"


def load_lost(path):
    """Load Lost, 1,122 faces from a television series, each with the names that a screenplay allows.

    The directory holds ``lost.mat``, in one of the forms that `load_partial_labels` reads; five folds are
    drawn where it has none. A `PartialData`: `X` (1122, 108), principal components of the pixels, as given,
    in the thousands: standardise them; 2.2 names for a face on average; of the 16 names two are right for no
    face (Cour, Sapp, Jordan and Taskar, CVPR 2009).

    Examples
    --------
    >>> from cuelearn.datasets import known_originals, load_lost
    >>> known_originals()["lost"].title
    'Lost, 1,122 faces of a television series, with the names that a screenplay allows'
    >>> load_lost("originals/lost")  # doctest: +SKIP
    <lost, original: X (1122, 108), 16 classes, 2.2 candidates each>
    """
    said = "Faces from the series Lost, with the names that the screenplay has near them."
    cited = "Cour, Sapp, Jordan and Taskar, CVPR 2009"
    return _with_folds(_load_partial(Path(path) / "lost.mat", "lost", "name", said, cited))


def load_msrcv2(path):
    """Load MSRCv2, 1,758 image regions of 23 classes, each with the classes that occur in its image.

    From ``MSRCv2.mat``, of the form that `load_lost` describes: a `PartialData` with `X` (1758, 48),
    histogram features in [0, 1], and 3.2 classes for a region on average (Liu and Dietterich, NIPS 2012).

    Examples
    --------
    >>> from cuelearn.datasets import known_originals, load_msrcv2
    >>> known_originals()["msrcv2"].title
    'MSRCv2, 1,758 regions of photographs, with the classes of their image'
    >>> load_msrcv2("originals/msrcv2")  # doctest: +SKIP
    <msrcv2, original: X (1758, 48), 23 classes, 3.2 candidates each>
    """
    said = "Regions of Microsoft Research Cambridge images, with the classes that their image has."
    cited = "Liu and Dietterich, NIPS 2012"
    return _with_folds(_load_partial(Path(path) / "MSRCv2.mat", "msrcv2", "class", said, cited))


def load_birdsong(path):
    """Load BirdSong, 4,998 syllables of 13 species of birds, each with the species of its recording.

    From ``BirdSong.mat``, of a form that `load_partial_labels` reads: a `PartialData` with `X` (4998, 38) and
    2.2 species for a syllable on average (Briggs, Fern and Raich, KDD 2012).

    Examples
    --------
    >>> from cuelearn.datasets import known_originals, load_birdsong
    >>> known_originals()["birdsong"].title
    'BirdSong, 4,998 syllables of 13 birds, with the birds of their recording'
    >>> load_birdsong("originals/birdsong")  # doctest: +SKIP
    <birdsong, original: X (4998, 38), 13 classes, 2.2 candidates each>
    """
    said = "Syllables of birds, with the species that sing in their recording."
    cited = "Briggs, Fern and Raich, KDD 2012"
    return _with_folds(_load_partial(Path(path) / "BirdSong.mat", "birdsong", "species", said, cited))


def _with_folds(data):
    """Five folds, drawn from a fixed seed, where the file has none."""
    rows = np.random.default_rng(0).permutation(len(data.y))
    drawn = [(np.setdiff1d(rows, part), np.sort(part)) for part in np.array_split(rows, 5)]
    return data._replace(folds=data.folds or drawn)


def load_partial_labels(path, sha256=None):
    """Load a .mat file of partial labels: instances, each with the labels that it can have, one of them true.

    Both published forms are read: ``features`` (n, d), ``p_labels`` and ``logitlabels`` (n, n_classes), with
    the rows of folds in ``tr`` and ``te``, counted from 1; and ``data`` (n, d), ``partial_target`` and
    ``target`` (n_classes, n), as the pages of Lost, MSRCv2, BirdSong, Soccer Player and Yahoo! News have
    them. Matrices may be sparse.

    Parameters
    ----------
    path : str or path-like
        The file.
    sha256 : str, optional
        What its sum must be, as ``provenance.sha256`` gave it once; else a warning. Where none is given,
        ``lost.mat`` and ``MSRCv2.mat`` are compared with what is published, and other files with nothing.

    Returns
    -------
    PartialData
        `X` (n, d) float32, `y` (n,), `candidates` a `CandidateSet` with one bag per instance, `folds` as
        given, or empty.

    Raises
    ------
    DataFileError
        If the file is missing, damaged or of another form.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from scipy.io import savemat
    >>> from cuelearn.datasets import load_partial_labels
    >>> arrays = {"features": np.eye(3), "p_labels": np.ones((3, 3)), "logitlabels": np.eye(3)}
    >>> with TemporaryDirectory() as directory:
    ...     savemat(f"{directory}/toy.mat", arrays)
    ...     data = load_partial_labels(f"{directory}/toy.mat")
    >>> data
    <toy, original: X (3, 3), 3 classes, 3.0 candidates each>
    """
    file = Path(path)
    said, cited = f"Partial labels from {file.name}.", "see the file's page"
    return _load_partial(file, file.stem, "class", said, cited, sha256)


def _load_partial(file, name, noun, description, citation, sha256=None):
    import scipy.io
    from scipy import sparse

    # Here and not above: it loads compiled code, which most data sets do not need.
    from cuelearn.mms import CandidateSet

    content = _read(file, name, sha256)
    with _parsing(file, f"{name} in the form of the partial-label benchmarks"):
        held = scipy.io.loadmat(io.BytesIO(content))
        turned = "partial_target" in held
        keys = ("data", "partial_target", "target") if turned else ("features", "p_labels", "logitlabels")
        X, possible, truth = (
            held[key].toarray() if sparse.issparse(held[key]) else np.asarray(held[key]) for key in keys
        )
        if turned:
            possible, truth = possible.T, truth.T
        folds = [
            tuple(np.sort(np.asarray(part, dtype=np.int64).ravel() - 1) for part in fold)
            for fold in (zip(held["tr"].flat, held["te"].flat) if "tr" in held else [])
        ]
        fits = X.ndim == 2 and np.isfinite(X).all() and _is_binary(possible) and _is_binary(truth)
    fits = fits and possible.shape == truth.shape and len(possible) == len(X) > 0
    one = fits and (truth.sum(axis=1) == 1).all() and (truth <= possible).all()
    _require(
        one,
        f"{file} must hold {keys[0]} (n, d), and 0/1 matrices {keys[1]} and {keys[2]}, of which the latter "
        "gives each row one true label that is among its candidates in the former.",
    )
    rows = np.arange(len(X))
    _require(
        all(np.array_equal(np.sort(np.concatenate(fold)), rows) for fold in folds),
        f"{file} must give in tr and te, for each fold, two parts that hold each of the {len(X)} rows once.",
    )
    source = f"pages of the partial-label learning benchmarks, {file.name}"
    return PartialData(
        X.astype(np.float32),
        truth.argmax(axis=1),
        CandidateSet.from_indicator(possible),
        folds,
        [f"{noun} {k}" for k in range(possible.shape[1])],
        f"{description} The files do not say which {noun} is which.",
        _origin(name, [content], citation, source),
    )


def _load_caltech101(path):
    """The folder of photographs of Caltech-101, wherever below `path` it was unpacked."""
    inner = sorted(Path(path).rglob("101_ObjectCategories"))
    return load_image_folder(inner[0] if inner else path)


#: What reads each set, and the files by any of which it is known where it lies in the directory itself.
_LOADERS = {
    "awa": (load_awa, ("awa_subset.npz",)),
    "birdsong": (load_birdsong, ("BirdSong.mat",)),
    "caltech101": (_load_caltech101, ()),
    "corel5k": (load_corel5k, ("corel5k.mat",)),
    "covtype": (load_covtype, ("covtype.data.gz",)),
    "emotions": (load_emotions, ("emotions-train.arff",)),
    "eth80": (load_eth80, ()),
    "flowers17": (load_flowers17, ()),
    "idol2": (load_idol2, ()),
    "lost": (load_lost, ("lost.mat",)),
    "msrcv2": (load_msrcv2, ("MSRCv2.mat",)),
    "scene": (load_scene, ("scene-train.arff",)),
    "scene15": (load_scene15, ("scene15_mtv.mat",)),
    "usps": (load_usps, tuple(form[0] for form in USPS_FORMS)),
}


def read_original(name, path):
    """What the loader of a set finds in a directory, or None: some are bundled and have no loader here."""
    return _LOADERS[name][0](path) if name in _LOADERS else None


def original_directory(name):
    """Where a set is: the directory of its name in ``CUELEARN_DATA``, or that itself; `DataFileError` if not
    there."""
    files, place = _LOADERS.get(name, (None, ()))[1], os.environ.get("CUELEARN_DATA")
    if not place:
        raise DataFileError(
            f"The original data {name!r} was not looked for: set CUELEARN_DATA to the directory that holds "
            f"the directory {name}."
        )
    path = Path(place) / name
    if not path.is_dir() and any((Path(place) / file).is_file() for file in files):
        path = Path(place)
    if not path.is_dir():
        raise DataFileError(
            f"The original data {name!r} was not found: CUELEARN_DATA is {place}, and {path} does not exist."
        )
    return path


def load_original(name):
    """Load one of the papers' own data sets from the directory that ``CUELEARN_DATA`` names.

    Parameters
    ----------
    name : str
        One of "awa", "birdsong", "caltech101", "corel5k", "covtype", "emotions", "eth80", "flowers17",
        "idol2", "lost", "msrcv2", "scene", "scene15", "usps". It is looked for in the directory of that name
        there; the files of the sets that come as tables may lie in ``CUELEARN_DATA`` itself. ``make data``
        lists them, and fetches those that have an address.

    Returns
    -------
    ImageData, CueData or PartialData
        Tier ``"original"``.

    Warns
    -----
    UserWarning
        If a file has another sum than the published one, where ``originals.json`` knows it; of images, once
        unpacked, nothing is compared.

    Examples
    --------
    >>> from cuelearn.datasets import known_originals, load_original
    >>> sorted(known_originals())[:4]
    ['awa', 'birdsong', 'caltech101', 'corel5k']
    >>> load_original("usps")  # doctest: +SKIP
    <usps, original: X (9298, 256) float32, cues pixels (256)>
    """
    if name not in _LOADERS:
        raise ValueError(f"name must be one of {sorted(_LOADERS)}, got {name!r}.")
    return read_original(name, original_directory(name))
