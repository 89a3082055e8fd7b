"""The papers' own data: read by `load_original`, listed, verified and fetched by ``make data``.

``originals.json`` describes the sets; there is a reader for each format. A set is installed completely or not
at all; errors of a download are one sentence.
"""

import argparse
import bz2
import contextlib
import hashlib
import io
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import warnings
import xml.etree.ElementTree
import zipfile
import zlib
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.io
from sklearn.datasets import load_svmlight_file

from companion.folders import load_eth80, load_flowers17, load_idol2
from cuelearn import datasets
from cuelearn.datasets import CueData, DataFileError, Provenance, load_image_folder
from cuelearn.datasets.base import data_directory, read_bundled, side_by_side
from cuelearn.datasets.images import Layout
from cuelearn.expect import require, warn_user

#: The ten test classes of Animals with Attributes.
AWA_TEST_CLASSES = (
    *("chimpanzee", "giant panda", "hippopotamus", "humpback whale", "leopard"),
    *("persian cat", "pig", "raccoon", "rat", "seal"),
)


class Original(NamedTuple):
    """The entry of a set in ``originals.json``.

    `urls` and `sums` are by file name (sums such as ``"md5:..."``, empty if unknown); `layout` describes its
    directory in ``CUELEARN_DATA``, `serves` its use. `reading`, empty for bundled sets, has the reader
    (``format``), the alternative lists of files, and their required content.
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
    reading: dict = {}


@cache
def known_originals():
    """All sets of the papers, and similar ones: `Original` by name."""
    table = json.loads(Path(__file__).with_name("originals.json").read_text(encoding="utf-8"))
    return {name: Original(name, **entry) for name, entry in table.items()}


def known_sum(file):
    return next((o.sums[file] for o in known_originals().values() if o.sums.get(file)), None)


def _read(file, what):
    """The bytes of a file; a `DataFileError` if it is missing, a warning if its checksum differs."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise DataFileError(f"{file} is missing; {what} needs it.") from None
    kind, _, known = (known_sum(file.name) or "sha256:").partition(":")
    actual = hashlib.new(kind, content).hexdigest()
    if known and actual != known:
        warn_user(f"{file} is damaged or another edition: expected {kind} {known}, found {actual}.")
    return content


def _parsed(parse, file, content, expected):
    """The parsed content; any error of a parser becomes a `DataFileError`."""
    try:
        return parse(content)
    except ImportError:
        raise
    except Exception as error:
        raise DataFileError(f"{file} does not hold {expected} ({error}).") from error


# ---- tables, a reader per format


class _Part(NamedTuple):
    """The training or test part of a set, or all of it; `cues` and `labels` if the file has them."""

    X: np.ndarray
    y: np.ndarray
    cues: dict[str, slice] | None = None
    labels: list[str] | None = None


def _load_table(entry, path):
    reading = entry.reading
    what = reading["what"]
    expected = f"{what} in {reading['form']}"
    labels = reading.get("labels")
    files = _files_in(path, reading)
    contents = [_read(file, what) for file in files]
    names = []
    if "label_file" in reading:
        file = path / reading["label_file"]
        names = [_read(file, what)]
        labels = _parsed(_label_names, file, names[0], expected)
    parts = []
    for file, content in zip(files, contents, strict=True):
        read = partial(_READERS[reading["format"]], reading)
        for part in _parsed(read, file, content, expected):
            _check_part(file, part, part.labels or labels, reading)
            parts.append(part)
    first = parts[0]
    labels = first.labels or labels
    X = np.concatenate([part.X.astype(np.float32) for part in parts])
    y = np.concatenate([part.y for part in parts])
    n_train = len(first.X) if len(parts) > 1 else reading.get("n_train")
    train = test = None
    if n_train is not None:
        train, test = np.split(np.arange(len(X)), [n_train])
    cues = first.cues or _columns(reading["cues"])
    if "grid" in reading:
        places = [",".join(map(str, place)) for place in np.ndindex(*reading["grid"])]
        features = [f"{name} {place}" for name in reading["names"] for place in places]
    else:
        features = [f"{cue} {k}" for cue, part in cues.items() for k in range(part.stop - part.start)]
    pixels = np.arange(X.shape[1]) if "pixels" in cues else None
    sums = " and ".join(hashlib.sha256(content).hexdigest() for content in contents + names)
    origin = Provenance(entry.name, "original", entry.terms, sums, reading["cited"], reading["source"])
    return CueData(
        X,
        y.astype(np.int8 if y.ndim == 2 else np.int64),
        cues,
        train,
        test,
        features,
        list(labels),
        reading["description"],
        origin,
        pixels,
    )


def _files_in(path, reading):
    forms = [[path / name for name in names] for names in reading["files"]]
    present = [files for files in forms if files[0].is_file()]
    if not present and len(forms) > 1:
        ways = ", or as ".join(" and ".join(names) for names in reading["files"])
        raise DataFileError(f"{forms[0][0]} is missing; {reading['what']} comes as {ways}.")
    return present[0] if present else forms[0]


def _columns(widths):
    ends = np.cumsum([*widths.values()]).tolist()
    return {cue: slice(end - width, end) for (cue, width), end in zip(widths.items(), ends)}


def _check_part(file, part, labels, reading):
    X = part.X
    y = part.y
    low, high = reading.get("range", (-np.inf, np.inf))
    fits = X.ndim == 2 and len(X) == len(y) > 0 and np.isfinite(X).all()
    if fits and part.cues is None:
        fits = X.shape[1] == sum(reading["cues"].values())
    fits = fits and X.min() >= low and X.max() <= high
    if y.ndim == 2:
        fits = fits and y.shape[1] == len(labels) and np.isin(y, (0, 1)).all()
    else:
        classes = np.unique(y)
        fits = fits and np.isin(classes, np.arange(len(labels))).all()
        fits = fits and (len(classes) == len(labels) or not reading.get("complete"))
    if not fits:
        raise DataFileError(f"{file} must hold {reading['holds']}, got shapes {X.shape} and {y.shape}.")


def _label_names(content):
    return [label.get("name") for label in xml.etree.ElementTree.fromstring(content)]


def _read_awa(reading, content):
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        X, cues = side_by_side({cue: archive[cue] for cue in reading["arrays"]}, np.float32)
        names = [str(name).replace("+", " ") for name in archive["classes"].tolist()]
        y = archive["y"]
    if len(set(names)) != 50 or not set(AWA_TEST_CLASSES) <= set(names):
        raise ValueError("it must name 50 different classes, the ten test classes among them")
    return [_Part(X, y, cues, names)]


def _read_corel5k(reading, content):
    """``X``, of which columns after the terms contain the keywords in some files, and ``Y``."""
    arrays = _matlab(content, ("X", "Y"))
    return [_Part(arrays["X"][:, :499], arrays["Y"])]


def _read_mulan(reading, content):
    """Rows of numbers, then labels, in an ARFF file with or without header."""
    lines = [line.strip() for line in content.decode().splitlines()]
    declared = [line.split() for line in lines if line.lower().startswith("@attribute")]
    names = [words[1].strip("'\"") for words in declared if len(words) > 1]
    data = [line for line in lines if line and line[0] not in "@%"]
    if not data:
        raise ValueError("it has no rows")
    last = names[-len(reading["labels"]) :]
    if names and last != reading["labels"]:
        raise ValueError(f"its last attributes are {', '.join(last)}")
    rows = np.loadtxt(data, delimiter=",", comments=None, ndmin=2)
    return [_Part(*np.split(rows, [-len(reading["labels"])], axis=1))]


def _read_scene15(reading, content):
    """``X``, three matrices (d, n), and ``gt``, the class, counted from 1."""
    arrays = _matlab(content, ("X", "gt"))
    views = [np.asarray(view).T for view in arrays["X"].flat]
    X, cues = side_by_side(dict(zip(reading["arrays"], views, strict=True)), np.float32)
    return [_Part(X, arrays["gt"].ravel().astype(np.int64) - 1, cues)]


def _read_covtype(reading, content):
    table = pd.read_csv(io.BytesIO(content), header=None, compression="gzip", dtype=np.float32)
    rows = table.to_numpy()
    return [_Part(rows[:, :-1], rows[:, -1] - 1)]


def _read_usps(reading, content):
    """An HDF5 file with both parts, or one of LIBSVM's two files."""
    if content.startswith(b"BZh"):
        X, y = load_svmlight_file(io.BytesIO(bz2.decompress(content)), n_features=256)
        return [_Part(X.toarray(), y - 1.0)]  # LIBSVM labels digit 0 as 1
    require("originals", "h5py")
    import h5py

    with h5py.File(io.BytesIO(content), "r") as held:  # grey values in [0, 1]
        return [
            _Part(2.0 * held[f"{part}/data"][...].astype(np.float64) - 1.0, held[f"{part}/target"][...])
            for part in ("train", "test")
        ]


def _matlab(content, names):
    return scipy.io.loadmat(io.BytesIO(content), variable_names=names)


#: By ``format`` in ``originals.json``.
_READERS = {
    "awa": _read_awa,
    "corel5k": _read_corel5k,
    "covtype": _read_covtype,
    "mulan": _read_mulan,
    "scene15": _read_scene15,
    "usps": _read_usps,
}


def _load_partial(entry, path):
    """A set with its five folds, or five drawn with a fixed seed if the file has none."""
    reading = entry.reading
    [[name]] = reading["files"]
    _read(path / name, entry.name)
    data = datasets.load_partial_labels(path / name)  # not imported above: it loads a chapter
    rows = np.random.default_rng(0).permutation(len(data.y))
    drawn = [(np.setdiff1d(rows, part), np.sort(part)) for part in np.array_split(rows, 5)]
    noun = reading["noun"]
    return data._replace(
        folds=data.folds or drawn,
        target_names=[f"{noun} {k}" for k in range(len(data.target_names))],
        description=f"{reading['description']} The files do not say which {noun} is which.",
        provenance=data.provenance._replace(name=entry.name, citation=reading["cited"]),
    )


# ---- all sets


def _load_images(entry, path):
    reading = entry.reading
    if entry.name == "caltech101":  # at any depth in the folder
        inner = sorted(path.rglob("101_ObjectCategories"))
        return load_image_folder(inner[0] if inner else path)
    layout = Layout(reading["what"], reading["folder"], entry.citation, reading["source"])
    if entry.name == "flowers17":
        return load_flowers17(layout, path, reading["images"], reading["labels"])
    load = {"eth80": load_eth80, "idol2": load_idol2}[entry.name]
    return load(layout, path, reading["images"])


def original_directory(name):
    """Directory of a set: that of its name in ``CUELEARN_DATA``, or ``CUELEARN_DATA`` itself."""
    place = os.environ.get("CUELEARN_DATA")
    if not place:
        raise DataFileError(
            f"The original data {name!r} was not searched: set CUELEARN_DATA to the directory that holds the "
            f"directory {name}."
        )
    place = Path(place)
    path = place / name
    if path.is_dir():
        return path
    if any((place / files[0]).is_file() for files in known_originals()[name].reading.get("files", [])):
        return place
    raise DataFileError(
        f"The original data {name!r} was not found: CUELEARN_DATA is {place}, and {path} does not exist."
    )


def load_original(name, path=None):
    """Load one of the papers' own data sets.

    `X` is float32, `y` int64, or int8 (n, n_labels) for multi-label sets. `known_originals` gives the files
    of a set and its paper.

    Parameters
    ----------
    name : str
    path : path-like, optional
        The directory of its files; by default `name` in ``CUELEARN_DATA``, or for tables ``CUELEARN_DATA``
        itself. ``make data`` lists the sets, and fetches those with an address.

    Returns
    -------
    ImageData, CueData or PartialData
        Tier ``"original"``.

    Raises
    ------
    DataFileError
        Names the file that is missing or invalid.
    ImportError
        If USPS is in ``usps.h5`` and h5py is not installed.

    Warns
    -----
    UserWarning
        If the checksum of a file differs from ``originals.json``; unpacked images are not checked.

    Notes
    -----
    - awa: histograms of sum 1, cues phog (252 columns), surf, rgsift and lss (2,000 each); 100 photographs of
      each class in `AWA_TEST_CLASSES`, 50 of each other class, of the 30,475 published.
    - birdsong (38 columns), lost (108), msrcv2 (48): 2.2, 2.2 and 3.2 candidates each; five folds, drawn if
      the file has none. Columns of lost are principal components of pixels, in the thousands: standardise
      them; two of its names are true for no face.
    - caltech101: see `load_image_folder`. eth80 (with masks), flowers17 and idol2 (with laser scans): as
      published; ``frames`` has the information in the names of images.
    - corel5k: 499 terms, 0 or 1, the only available one of the papers' 15 kinds of features. The order does
      not show which 500 images are the test part.
    - covtype: ten quantities (metres, degrees, hill shade from 0 to 255), four areas and 40 soils, 0 or 1;
      `train` is the first 15,120 rows, UCI's training and validation parts.
    - emotions: timbre (64) and rhythm (8), in different units; 391 training rows, 202 test rows.
    - scene: L, u and v (98 each) of CIE Luv: the means of 7 x 7 blocks, then the variances, by rows of blocks
      from the top, every column scaled to [0, 1] as published; 1,211 training rows, 1,196 test rows. The
      files do not name the columns; their order is inferred from the values
      (``tests/datasets/test_originals.py``). Whether blocks count from the left is unknown.
    - scene15: first (20), second (59), third (40), histograms with mean 1, of unknown features.
    - usps: grey values in [-1, 1], by rows, as on the LIBSVM page; 7,291 training rows, 2,007 test rows.
    """
    entries = {known: entry for known, entry in known_originals().items() if entry.reading}
    if name not in entries:
        raise ValueError(f"name must be one of {sorted(entries)}, got {name!r}.")
    path = original_directory(name) if path is None else Path(path)
    entry = entries[name]
    if entry.reading["format"] == "folder":
        return _load_images(entry, path)
    load = _load_partial if "noun" in entry.reading else _load_table
    return load(entry, path)


# --- downloads ----------------------------------------------------------------------------------------------

#: Suffixes of archives.
ARCHIVES = (".tgz", ".tar.gz", ".tar.bz2", ".tar", ".zip", ".rar")
#: Programs that unpack .rar, with their options.
UNPACKERS = {"bsdtar": ["-xf"], "unar": ["-D", "-q"], "unrar": ["x", "-idq"], "7z": ["x"]}
#: Starts of web pages that are sent instead of a file.
PAGE = (b"<!doctype", b"<html", b"<head", b"<?xml")
SECONDS = 30.0  # without an answer


def _entry(name):
    if name not in known_originals():
        raise DataFileError(f"There is no set {name!r}, only {', '.join(known_originals())}.")
    return known_originals()[name]


def _sum_differs(file):
    """Whether the checksum of a file differs from the known one; None if none is known."""
    known = known_sum(file.name)
    if known is None:
        return None
    kind, _, expected = known.partition(":")
    with file.open("rb") as content:
        return hashlib.file_digest(content, kind).hexdigest() != expected


def verify_original(name, path=None):
    """Verify a set: its known checksums, and that its loader reads it; returns a summary."""
    entry = _entry(name)
    path = original_directory(name) if path is None else Path(path)
    files = [path / file for file in {**entry.sums, **entry.urls} if (path / file).is_file()]
    differs = [_sum_differs(file) for file in files]
    if True in differs:
        wrong = files[differs.index(True)]
        raise DataFileError(f"{wrong} is damaged or another edition: its sum is not {known_sum(wrong.name)}.")
    if entry.reading:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            load_original(name, path)
    elif not files:
        raise DataFileError(f"{path} holds none of the files of {name}: {entry.layout}.")
    all_known = bool(files) and None not in differs
    return "whole, sums as known" if all_known else "of the right form, sums not known"


@contextlib.contextmanager
def _in_one_sentence(entry, url, place):
    """Convert any error of fetching to a `DataFileError` of one sentence."""
    import requests

    page = f"look at {entry.page}"
    try:
        yield
    except DataFileError:
        raise
    except requests.HTTPError as error:
        code = error.response.status_code
        raise DataFileError(f"{url} answers {code}: the file has moved or is refused, {page}.") from None
    except (requests.ConnectionError, requests.Timeout):
        raise DataFileError(f"{url} cannot be reached: there is no network, or its server is down.") from None
    except requests.RequestException as error:
        raise DataFileError(f"{url} broke off ({type(error).__name__}): try again.") from None
    except (tarfile.TarError, zipfile.BadZipFile, shutil.ReadError, EOFError, zlib.error, lzma.LZMAError):
        raise DataFileError(f"What {url} sends is no whole archive: try again, or {page}.") from None
    except OSError as error:
        reason = f"{place}: {error.strerror or error}"
        raise DataFileError(f"{entry.name} was not fetched, and nothing is kept: {reason}.") from None


def _download(url, file):
    from pooch import HTTPDownloader

    headers = {"Accept-Encoding": "identity"}  # otherwise a server may unpack .gz files
    fetch = HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=SECONDS, headers=headers)
    fetch(url, str(file), None)
    with file.open("rb") as content:
        if content.read(512).lstrip().lower().startswith(PAGE):
            raise DataFileError(f"{url} sends a web page in place of {file.name}: the file has moved.")
    if _sum_differs(file):
        differs = f"the sum of {file.name} is not {known_sum(file.name)}"
        raise DataFileError(f"What {url} sends is damaged or another edition: {differs}.")


def _unpack(archive, directory):
    """Unpack an archive and the archives in it (Caltech-101), and remove them."""
    if archive.name.endswith(".rar"):
        tool = next((tool for tool in UNPACKERS if shutil.which(tool)), None)
        if tool is None:
            tools = ", ".join(UNPACKERS)
            raise DataFileError(f"{archive.name} needs one of {tools} to be unpacked: install one.")
        command = [tool, *UNPACKERS[tool], archive]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
        if done.returncode:
            raise shutil.ReadError(done.stderr)
    else:
        filtered = hasattr(tarfile, "data_filter") and not archive.name.endswith(".zip")
        safe = {"filter": "data"} if filtered else {}
        shutil.unpack_archive(archive, directory, **safe)
    archive.unlink()
    shutil.rmtree(directory / "__MACOSX", ignore_errors=True)
    for inner in sorted(directory.rglob("*")):
        if inner.is_file() and inner.name.endswith(ARCHIVES):
            _unpack(inner, inner.parent)


def fetch_original(name, place=None):
    """Download a set, verify it, and install it for `load_original`.

    Parameters
    ----------
    name : str
        A set of ``originals.json``.
    place : path-like, optional
        Parent of the set's directory `name`, which is returned as a Path; by default ``CUELEARN_DATA``.

    Raises
    ------
    DataFileError
        If the set is unknown, has no address or exists already; if the network, the server or the disk fails;
        or if the content is not as expected. Nothing is kept then.
    ImportError
        Without pooch, in the extra ``data``.
    """
    entry = _entry(name)
    place = place or os.environ.get("CUELEARN_DATA")
    if not place:
        raise DataFileError("Set CUELEARN_DATA to the directory for original data.")
    target = Path(place) / name
    if target.exists():
        raise DataFileError(f"{target} is there already: remove it to fetch {name} again.")
    if not entry.urls:
        raise DataFileError(
            f"{name} has no address: see {entry.page}, and store in {target}: {entry.layout}."
        )
    require("originals", "pooch")
    url = next(iter(entry.urls.values()))
    work = Path(place) / f".{name}.part"
    try:
        with _in_one_sentence(entry, url, place):
            shutil.rmtree(work, ignore_errors=True)  # of a killed run
            work.mkdir(parents=True)
        for file, url in entry.urls.items():
            with _in_one_sentence(entry, url, place):
                _download(url, work / file)
                if file.endswith(ARCHIVES):
                    _unpack(work / file, work)
        for file in {*entry.sums} - {*entry.urls}:  # of an archive's directory
            for inner in work.rglob(file):
                inner.replace(work / file)
        verify_original(name, work)
        work.replace(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _list():
    """Print all sets and their state; exit status 1 if a present set is incomplete."""
    failed = False
    bundled = json.loads((data_directory() / "datasets.json").read_text(encoding="utf-8"))
    print(f"bundled, in {data_directory()}: {', '.join(bundled)}")
    for name in bundled:
        try:
            read_bundled(name)
        except DataFileError as error:
            print(f"  NOT WHOLE: {error}")
            failed = True
    place = os.environ.get("CUELEARN_DATA")
    place = f"in {place} (CUELEARN_DATA)" if place else "CUELEARN_DATA is not set"
    print(f"\noriginals, {place}:")
    for name, entry in known_originals().items():
        try:
            original_directory(name)
        except DataFileError:
            state = "absent" if entry.urls else "absent, by hand"
        else:
            try:
                state = verify_original(name)
            except (DataFileError, ImportError) as error:
                state = f"NOT WHOLE: {error}"
                failed = True
        print(f"  {name:11s} {state:34s} {entry.serves}")
    more = "PYTHONPATH=notebooks python -m companion.originals usps"
    print(f'\nmake data FETCH="usps eth80" fetches; {more} shows more')
    return int(failed)


def _tell(entry):
    sums = [f"{file} {known}" for file, known in entry.sums.items() if known]
    facts = {name: getattr(entry, name) for name in ("citation", "terms", "size", "page", "layout", "serves")}
    facts["address"] = ", ".join(entry.urls.values()) or "none: by hand, from its page"
    facts["sums"] = ", ".join(sums) or "none known"
    print(f"{entry.name}: {entry.title}")
    for fact, text in facts.items():
        print(f"  {fact:8s} {text}")


def main(argv=None):
    """The exit status: 0, 1 if something failed or is damaged, 2 for an unknown name."""
    parser = argparse.ArgumentParser(prog="python -m companion.originals", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="sets to tell about; default: list all")
    parser.add_argument("--fetch", nargs="+", default=[], metavar="NAME", help="sets to download")
    options = parser.parse_args(argv)
    failed = 0
    try:
        entries = [_entry(name) for name in (*options.names, *options.fetch)]
    except DataFileError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for entry in entries[: len(options.names)]:
        _tell(entry)
    for name in options.fetch:
        try:
            print(f"{name}: fetched to {fetch_original(name)}")
        except (DataFileError, ImportError) as error:
            print(f"error: {error}", file=sys.stderr)
            failed = 1
    return failed if entries else _list()


if __name__ == "__main__":
    sys.exit(main())
