"""What a result was made from: parameters, sources, data and versions, as a short fingerprint."""

import hashlib
import json
import os
from functools import cache
from pathlib import Path

import cuelearn
from companion import CHECKOUT, FOLDER, source_hash
from companion.run.records import versions

#: Modules of the companion whose text has no influence on what a chapter makes.
RUNNER = ("run/runner.py", "run/gallery.py", "run/site.py")


def fingerprint(*parts):
    """SHA-256 of what can be written as JSON, as hexadecimal digits."""
    return hashlib.sha256(json.dumps(parts, default=bytes.hex).encode()).hexdigest()


def made_from(profile, changed, tier, svg, root=CHECKOUT):
    """What every figure of a run is made from (dict): a change of any part makes it stale.

    `changed` are the parameters that differ from the published ones, `tier` is that of the data.
    """
    parts = {
        "package": _sources(),
        "data": _data(root, tier, os.environ.get("CUELEARN_DATA")),
        "parameters": {"profile": profile, **changed},
        "versions": versions(),
        "svg": svg,
    }
    return json.loads(json.dumps(parts))


def short(made_from):
    """The fingerprint that a figure's record holds."""
    return fingerprint(made_from)[:16]


@cache
def _sources():
    """Of the package and the companion, with the tables stored next to their modules."""
    folders = (Path(cuelearn.__file__).parent, FOLDER)
    kinds = ("*.csv", "*.json")
    tables = [file for folder in folders for kind in kinds for file in sorted(folder.rglob(kind))]
    return fingerprint(source_hash(leave_out=RUNNER), [(file.name, file.read_bytes()) for file in tables])


def _data(root, tier, originals):
    """Of the data that may be read: bundled files by content, originals by size and date."""
    parts = []
    for file in sorted((root / "data").rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            parts += [file.relative_to(root).as_posix(), digest]
    if tier == "original" and originals:
        for file in sorted(Path(originals).rglob("*")):
            if file.is_file():
                state = file.stat()
                parts += [file.relative_to(originals).as_posix(), state.st_size, state.st_mtime_ns]
    return fingerprint(parts)
