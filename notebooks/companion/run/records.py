"""What is known without drawing: the catalogue, what has been saved, and what a result was made from
(parameters, sources, data and versions) as a short fingerprint.
"""

import contextlib
import difflib
import hashlib
import json
import os
import platform
import re
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path

import pandas as pd

import cuelearn
from companion import CHECKOUT, FOLDER, source_hash

PROFILES = ("smoke", "quick", "full", "reference")
#: Parameters that say how a run is carried out, not what it computes.
NOT_PARAMETERS = ("figures_dir", "n_jobs", "scheduler", "profile")
#: Of the files of verdicts.
PARTS = (
    "claim part is on verdict standing number low high wanted n unit needed tier measure data figure text "
    "counted count_verdict count_number count_low count_high"
).split()
COLUMNS = (
    "id chapter source claim verdict number low high wanted n unit measure sets holding learnt on data "
    "profile text figure"
).split()
#: Parameters of each notebook with which the published figures are made; the notebooks' own defaults.
DEFAULTS = {
    "omcl": {"seed": 0, "permutations": None, "step": 0.01, "data_tier": "bundled"},
    "mkl": {"seed": 0, "noise": 0.05, "data_tier": "bundled"},
    "multilabel": {"seed": 0, "data_tier": "bundled"},
    "mms": {"seed": 0, "data_tier": "bundled"},
    "mktl": {"seed": 0, "data_tier": "bundled"},
    "oks": {"seed": 0, "delta": [0.5, 0.2], "eta": "auto", "data_tier": "bundled"},
}


def changed_parameters(chapter, parameters):
    """Those of a notebook's parameters that are not its `DEFAULTS`."""
    known = DEFAULTS[chapter]
    return {name: value for name, value in parameters.items() if known.get(name, value) != value}


def results_directory(figures, profile, changed):
    """Where results go, however the notebook is run: parameters that were changed have a folder of their own,
    ``figures/profile/params/<name=value,...>``."""
    directory = Path(figures) / profile
    return directory / "params" / variant(changed) if changed else directory


def variant(changed):
    """Directory name for a set of changed parameters; empty for none."""
    plain = ",".join(f"{name}={changed[name]}" for name in sorted(changed))
    safe = re.sub(r"[^A-Za-z0-9_.,=+-]", "_", plain)
    if safe != plain or len(safe) > 80:
        safe = f"{safe[:70]}-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"
    return safe


def near(name, names):
    """What to say after a wrong name: the right one, or all that there are."""
    close = difflib.get_close_matches(str(name), list(names), n=4, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else f"; there are: {', '.join(names)}"


def read_rows(file, chapter=None):
    """One of the tables that stand beside this module, indexed by id; of one chapter, or all."""
    path = Path(__file__).with_name(file)
    rows = _read_rows(path, path.stat().st_mtime_ns).copy()
    return rows if chapter is None else rows[rows["chapter"] == chapter]


@lru_cache(maxsize=4)
def _read_rows(path, changed):
    """The rows of a table since it was last changed: claims and figures look there a thousand times."""
    return pd.read_csv(path, keep_default_na=False).set_index("id", drop=False)


def catalogue(chapter=None):
    """Figures and tables: id, chapter, source, shows, papers_data, bundled_data (indexed by id)."""
    return read_rows("catalogue.csv", chapter)


def row_of(name):
    """The row of the catalogue that an entry, with or without a suffix, belongs to; None for no row."""
    return longest_start(name, catalogue().index)


def longest_start(name, names):
    """The longest of some names that is `name`, or that `name` continues after a hyphen; None for none."""
    starts = [start for start in names if name == start or name.startswith(f"{start}-")]
    return max(starts, key=len, default=None)


def versions():
    """Of what results depend on."""
    packages = "numpy scipy pandas matplotlib numba scikit-learn scikit-image joblib".split()
    return {"python": platform.python_version(), **{package: version(package) for package in packages}}


def expected_seconds(root, profile, names):
    """CPU seconds that figures and tables took before, by those of `names` that they belong to; those of
    notebooks by the chapter.

    Known are those of the committed results, for `full`, and those of `quick`, which smaller profiles share
    in proportion.
    """
    reference = Path(root) / "figures" / "reference"
    if profile == "full":
        took = [(item["name"], item["seconds"]) for item in read_items(reference)]
    else:
        took = _read(reference, "seconds.csv", ["name", "seconds"]).itertuples(index=False)
    total = {}
    for name, seconds in took:
        entry = name if name in DEFAULTS else longest_start(name, names)
        total[entry] = total.get(entry, 0.0) + float(seconds)
    return total


def cpu_seconds():
    """User and system time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def read_verdicts(directory):
    """The verdicts written in `directory` (DataFrame with `COLUMNS`; empty if there are none)."""
    table = _read(directory, "claims.csv", COLUMNS)
    for column in ("number", "low", "high"):
        table[column] = [float(value or "nan") for value in table[column]]
    return table.astype(object)


def read_parts(directory):
    """The parts written in `directory` (DataFrame with `PARTS`; empty if there are none)."""
    return _read(directory, "claims-parts.csv", PARTS)


def _read(directory, file, columns):
    try:
        return pd.read_csv(Path(directory) / file, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        return pd.DataFrame(columns=columns, dtype=object)


def read_items(directory):
    """Records of all figures and tables in `directory`, finished or not, in catalogue order."""
    items = []
    for sidecar in Path(directory).glob("*.json"):
        with contextlib.suppress(OSError, ValueError):
            record = json.loads(sidecar.read_text(encoding="utf-8"))
            if isinstance(record, dict) and {"id", "files", "chapter"} <= set(record):
                items.append({**record, "name": sidecar.stem})
    order = {name: place for place, name in enumerate(catalogue().index)}
    return sorted(items, key=lambda item: (order.get(item["id"], -1), item["name"]))


def saved_items(directory):
    """What is finished in `directory`: the records of all figures and tables whose files are all there."""
    there = Path(directory)
    return [item for item in read_items(directory) if all((there / file).is_file() for file in item["files"])]


def files_of_items(items):
    """Names of all files of some figures and tables (set), with those of their records."""
    return {file for item in items for file in (*item["files"], f"{item['name']}.json")}


def several(data):
    """One or several data sets, or their provenance, or texts, as a list of provenance records or texts."""
    alone = isinstance(data, (str, dict)) or hasattr(data, "_asdict") or hasattr(data, "provenance")
    return [getattr(item, "provenance", item) for item in ([data] if alone else data)]


# --- what a result was made from ----------------------------------------------------------------------------

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
