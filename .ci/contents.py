"""List what is in wheels and sdists, with the licences of the files.

Exit status 1 if a file is not known or has no stated open licence, if the licence in the metadata is not that
of the files, or if the wheel of cuelearn is too large.
"""

import email
import json
import sys
import tarfile
import zipfile
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_BYTES = 3_000_000
DESCRIBES = (
    *("*.dist-info/*", "*.egg-info/*", "PKG-INFO", "setup.cfg", ".gitignore"),
    *("LICENSE", "LICENSES/*", "NOTICES-emoji.txt"),
)
CODE = (
    *("*.py", "*.ipynb", "*.md", "*.bib", "*.csv", "*.json", "*.css", "*.html", "cuelearn/py.typed"),
    *("notebooks/companion/*.js", "*.toml", "*.yml", "*.cff", "*.in", "*.lock", "Makefile", ".ci/*"),
)


def licences():
    """The licence of every kind of file, by a pattern of its name."""
    known = dict.fromkeys(DESCRIBES, "")
    known["notebooks/book/_static/mathjax-*"] = "Apache-2.0"
    registry = json.loads((ROOT / "data" / "datasets.json").read_text(encoding="utf-8"))
    for entry in registry.values():
        if "spdx" in entry:
            known[f"cuelearn_data/{entry['file']}"] = entry["spdx"]
    return known | dict.fromkeys(CODE, "BSD-3-Clause")


def files_of(archive):
    """``{name: content}``; the names in an sdist are those in the package that is built from it."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            return {name: opened.read(name) for name in opened.namelist()}
    with tarfile.open(archive) as opened:
        content = {entry.name: opened.extractfile(entry).read() for entry in opened if entry.isfile()}
    content = {name.partition("/")[2]: value for name, value in content.items()}
    if not archive.name.startswith("cuelearn_data"):
        return content
    return {f"cuelearn_data/{name}" if name.endswith(".npz") else name: content[name] for name in content}


def problems_of(archive):
    """Print what the archive holds; what is wrong with it."""
    problems = []
    files = files_of(archive)
    size = archive.stat().st_size
    print(f"\n{archive.name}: {size:,} bytes, {len(files)} files")
    if archive.match("cuelearn-*.whl") and size > MOST_BYTES:
        problems.append(f"it is larger than {MOST_BYTES:,} bytes")
    known = licences()
    stated = set()
    sources = Counter()
    for name, content in sorted(files.items()):
        licence = next((known[pattern] for pattern in known if fnmatchcase(name, pattern)), None)
        if archive.name.startswith("cuelearn_data") and licence == "BSD-3-Clause":
            licence = ""  # README.md and pyproject.toml describe the package
        if licence is None:
            problems.append(f"{name} has no licence that is known")
        elif licence == "BSD-3-Clause":
            sources[name.rpartition("/")[0] or "."] += 1
        else:
            print(f"  {licence or 'describes the package':<45} {len(content):>9,}  {name}")
        stated |= set(filter(None, (licence or "").split(" AND ")))
    for folder, number in sorted(sources.items()):
        print(f"  BSD-3-Clause: {number} files in {folder}")
    metadata = next(name for name in files if name == "PKG-INFO" or name.endswith(".dist-info/METADATA"))
    expression = email.message_from_bytes(files[metadata])["License-Expression"]
    if set(expression.split(" AND ")) != stated:
        problems.append(f"its metadata say {expression}, its files {' AND '.join(sorted(stated))}")
    return [f"{archive.name}: {problem}" for problem in problems]


if __name__ == "__main__":
    found = [problem for archive in sys.argv[1:] for problem in problems_of(Path(archive))]
    sys.exit("\n".join(["", *found]) if found else 0)
