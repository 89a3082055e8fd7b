"""List, verify and fetch the papers' own data (``make data``).

A set is installed completely or not at all; errors are one sentence.
"""

import argparse
import contextlib
import hashlib
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import warnings
import zipfile
import zlib
from pathlib import Path

from companion.data.originals import known_originals, known_sum, load_original, original_directory
from cuelearn.datasets import DataFileError
from cuelearn.datasets.base import data_directory, read_bundled
from cuelearn.expect import require

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
    require("data", "pooch")
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
    more = "PYTHONPATH=notebooks python -m companion.data.fetch usps"
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
    parser = argparse.ArgumentParser(
        prog="python -m companion.data.fetch", description=__doc__.split("\n")[0]
    )
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
