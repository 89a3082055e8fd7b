"""Images: emoji in eight styles, with names, subgroups and keywords by Unicode, and labelled folders.

``data/build.py`` makes the files of emoji; ``data/README.md`` credits every style and lists omitted drawings
and things drawn alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from cuelearn.datasets.base import DataFileError, ImageData, Provenance, data_file, read_bundled
from cuelearn.expect import expect, expect_among, expect_list, expect_word, require
from cuelearn.kernels.types import ArrayLike

__all__ = ["EMOJI_STYLES", "EmojiData", "load_emoji", "load_image_folder", "read_image"]

#: In the order of the pictures. The last two are share-alike, in a separate file.
EMOJI_STYLES = (
    *("noto", "noto-v1", "fxemoji", "emojione", "twemoji", "fluent-emoji"),
    *("emojione-v1", "openmoji"),
)
_FILES = {"emoji": EMOJI_STYLES[:6], "emoji-sharealike": EMOJI_STYLES[6:]}
#: Mild changes: degrees, scale, share of the side, change of light, in both directions.
_TURN = 15.0
_SIZES = (0.75, 1.0)
_SHIFT = 0.06
_LIGHT = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class EmojiData:
    """Drawings of things.

    Attributes
    ----------
    pictures : ndarray of uint8, shape (n, 64, 64, 4)
        Red, green, blue and alpha; by style, in Unicode's order. Unpacked on first access, in a second.
    style : ndarray of str, shape (n,)
        One of `EMOJI_STYLES`.
    thing : ndarray of int64, shape (n,)
        The thing drawn: a row of the arrays that follow.
    names, group, subgroup : ndarray of str, shape (n_things,)
        Such as "red apple", "food-drink", "food-fruit".
    family : ndarray of int64, shape (n_things,)
        Equal for things that some style draws alike, such as red and green apple or the clock faces: a split
        by things keeps a family together, and shape distinguishes at most one of its things.
    keywords : ndarray of int8, shape (n_things, n_keywords)
        1 if Unicode CLDR gives the thing this keyword.
    keyword_names : ndarray of str, shape (n_keywords,)
    description : str
    provenance : Provenance

    Examples
    --------
    >>> from cuelearn.datasets import EmojiData, load_emoji
    >>> emoji = load_emoji(["noto"])
    >>> isinstance(emoji, EmojiData), int((emoji.subgroup[emoji.thing] == "food-fruit").sum())
    (True, 20)
    """

    parts: list  # the files, and the rows taken of each
    style: np.ndarray
    thing: np.ndarray
    names: np.ndarray
    group: np.ndarray
    subgroup: np.ndarray
    family: np.ndarray
    keywords: np.ndarray
    keyword_names: np.ndarray
    description: str
    provenance: Provenance

    @cached_property
    def pictures(self) -> np.ndarray:
        return np.concatenate([read_bundled(file)[1]["pictures"][rows] for file, rows in self.parts])

    def on_backgrounds(
        self,
        target: Literal["name", "family", "subgroup", "group", "style"] = "name",
        rows: ArrayLike | None = None,
        *,
        n_views: int = 1,
        random_state: int = 0,
    ) -> ImageData:
        """Labelled RGB images, each on a plain colour, for `image_cues`.

        The colour is uniform in RGB and depends only on the thing, the style and the seed. Only cues that use
        ``masks`` (shape, moments, colour, LxLy and DirC) know the outline.

        Parameters
        ----------
        target : {"name", "family", "subgroup", "group", "style"}, default="name"
            Target `y`. Classes are those in the rows, in alphabetical order; a family has the name of its
            first thing.
        rows : array of int or of bool, optional
            The pictures, in this order; all by default.
        n_views : int, default=1
            Consecutive pictures of each drawing: itself, then mildly changed ones, rotated by up to 15
            degrees, scaled by 0.75 to 1, moved by up to 6% of the side, with up to 25% less or more light.
            Keep them on one side of a split.
        random_state : int, default=0
            Seed of the colours and the changes.

        Returns
        -------
        ImageData
            With ``masks`` (alpha of a half or more) and ``frames``: ``name`` ("red apple, noto"), ``thing``,
            ``style``, ``family``, ``drawing`` (its row) and ``view`` (0 is the drawing itself).

        Raises
        ------
        ValueError
            For an unknown target or a row out of range.

        Examples
        --------
        >>> from cuelearn.datasets import image_cues, load_emoji
        >>> emoji = load_emoji(["noto", "twemoji"])
        >>> fruit = emoji.on_backgrounds(rows=emoji.subgroup[emoji.thing] == "food-fruit")
        >>> image_cues(fruit, ["colour", "DirC", "shape"])
        <emoji, bundled: X (40, 1377) float32, cues colour (512), DirC (289), shape (576)>
        """
        seed = expect("random_state", random_state, kind="whole", low=0)
        n_views = expect("n_views", n_views, kind="whole", low=1)
        every = np.arange(len(self.thing))
        if rows is None:
            rows = every
        try:
            rows = every[np.asarray(rows)]
        except IndexError as error:
            raise ValueError(f"rows must be rows of {len(every)} pictures or a mask: {error}.") from None
        thing = self.thing[rows]
        style = self.style[rows]
        family = self.family[thing]
        names = self.names[thing]
        values = {"name": names, "family": self.names[family], "subgroup": self.subgroup[thing]}
        values |= {"group": self.group[thing], "style": style}
        expect_word("target", target, values)
        targets, y = np.unique(values[target], return_inverse=True)
        pictures, colours = self._views(rows, n_views, seed)
        names = np.array([f"{name}, {by}" for name, by in zip(names, style, strict=True)])
        frames = {"name": names, "thing": thing, "style": style, "family": family, "drawing": rows}
        frames = {name: np.repeat(values, n_views) for name, values in frames.items()}
        frames["view"] = np.tile(np.arange(n_views), len(rows))
        return ImageData(
            before(pictures, colours[:, None, None]),
            np.repeat(y, n_views),
            targets.tolist(),
            frames,
            pictures[..., 3] >= 128,
            description=f"{self.description.removesuffix('.')}, before plain colours drawn at random.",
            provenance=self.provenance,
        )

    def n_drawings(self) -> np.ndarray:
        return np.bincount(self.thing, minlength=len(self.names))

    def unlike(self, things: ArrayLike) -> np.ndarray:
        """The thing of each family with most drawings (ties: the first), ascending."""
        order = things[np.argsort(-self.n_drawings()[things], kind="stable")]
        return np.sort(order[np.unique(self.family[order], return_index=True)[1]])

    def _views(self, rows, n_views, seed):
        shape = (len(EMOJI_STYLES), len(self.names), 3)
        plain = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
        pictures = np.repeat(self.pictures[rows], n_views, axis=0)
        colours = np.empty((len(pictures), 3), dtype=np.uint8)
        for place, row in enumerate(rows):
            own = EMOJI_STYLES.index(self.style[row]), int(self.thing[row])
            colours[place * n_views] = plain[own]
            rng = None
            if n_views > 1:
                rng = np.random.default_rng([seed, *own])
            for at in range(place * n_views + 1, (place + 1) * n_views):
                colours[at] = rng.integers(0, 256, 3)
                pictures[at] = mildly_changed(pictures[at], rng)
        return pictures, colours

    def __repr__(self):
        styles = ", ".join(dict.fromkeys(self.style.tolist()))
        things = len(np.unique(self.thing))
        return f"<emoji, bundled: {len(self.thing)} pictures of {things} things, styles {styles}>"


def before(pictures, colours):
    """Pictures on plain colours, uint8 RGB (..., 3); `colours` broadcast against the pictures."""
    alpha = pictures[..., 3:].astype(np.uint16)
    return ((pictures[..., :3] * alpha + colours * (255 - alpha) + 127) // 255).astype(np.uint8)


def mildly_changed(picture, rng, turn=0.0):
    """A drawing rotated by `turn` degrees and changed at random as in `EmojiData.on_backgrounds`."""
    more, dx, dy, light = rng.uniform(-1, 1, 4) * (_TURN, _SHIFT, _SHIFT, _LIGHT)
    return changed_picture(picture, turn + more, rng.uniform(*_SIZES), (dx, dy), 1 + light)


def changed_picture(picture, turn=0.0, size=1.0, shift=(0.0, 0.0), light=1.0):
    """A drawing, uint8 (height, width, 4), rotated (degrees), scaled, moved (shares of the side), lit."""
    from scipy.ndimage import affine_transform

    angle = np.deg2rad(turn)
    height, width = picture.shape[:2]
    # maps positions in the new picture to the old one
    back = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]) / size
    centre = np.array([height - 1, width - 1]) / 2
    offset = centre - back @ (centre + np.array([shift[1] * height, shift[0] * width]))
    alpha = picture[..., 3:] / np.float32(255)
    drawn = np.concatenate([picture[..., :3] * alpha, picture[..., 3:]], axis=2, dtype=np.float32)
    moved = np.stack([affine_transform(drawn[..., c], back, offset, order=1) for c in range(4)], axis=2)
    moved[..., :3] *= light * 255 / np.maximum(moved[..., 3:], 1)
    changed = np.clip(np.rint(moved), 0, 255).astype(np.uint8)
    changed[changed[..., 3] == 0] = 0
    return changed


def load_emoji(styles: Sequence[str] | None = None) -> EmojiData:
    """Load emoji: 861 animals, plants, foods, places, activities and objects, drawn in up to eight styles.

    5,513 pictures by six design teams; 841 things in four styles or more, 342 in all eight. Repeated drawings
    of a thing are omitted. No published split: split by ``family`` to test on new things, by ``style`` or
    drawing to test on new pictures of known things. `EmojiData.on_backgrounds` gives labelled images.
    ``data/README.md`` lists authors and licences.

    Parameters
    ----------
    styles : list of str, optional
        Some of `EMOJI_STYLES`; by default all available. ``emojione-v1`` and ``openmoji`` (CC BY-SA 4.0) are
        in ``emoji-sharealike.npz``, which may be missing. `ValueError` for an unknown one, `DataFileError` if
        another file is missing or one is damaged.

    Returns
    -------
    EmojiData

    Examples
    --------
    >>> from cuelearn.datasets import load_emoji
    >>> load_emoji(["noto"])
    <emoji, bundled: 860 pictures of 860 things, styles noto>
    """
    wanted = [styles] if isinstance(styles, str) else list(EMOJI_STYLES if styles is None else styles)
    expect_among("styles", expect_list("styles", wanted, "names of styles"), EMOJI_STYLES)
    main, facts, origin = read_bundled("emoji")
    parts = []
    licences = [origin.licence]
    for file, there in _FILES.items():
        may_lack = styles is None and file != "emoji"
        if not set(there) & set(wanted) or (may_lack and data_file(f"{file}.npz") is None):
            continue
        _, held, origin_of_file = read_bundled(file)
        style = np.array(there)[held["style"]]
        rows = np.flatnonzero(np.isin(style, wanted))
        parts.append(((file, rows), style[rows], held["thing"][rows].astype(np.int64)))
        if file != "emoji":
            licences.append(f"{', '.join(there)}: {origin_of_file.licence}")
    files, style, thing = zip(*parts, strict=True)
    return EmojiData(
        list(files),
        np.concatenate(style),
        np.concatenate(thing),
        *(facts["names"], facts["group"], facts["subgroup"]),
        facts["family"].astype(np.int64),
        facts["keywords"].astype(np.int8),
        facts["keyword_names"],
        main["load"]["description"],
        origin._replace(licence="; ".join(licences)),
    )


#: Suffixes of images, in lower case.
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".gif", ".webp")
#: Directories of a split, in the order of the rows.
_PARTS = ("train", "test")


class Layout(NamedTuple):
    """The layout of a set, `folder` in words."""

    name: str
    folder: str
    citation: str = "the folder's owner"
    source: str = ""

    def refusal(self, wrong):
        return DataFileError(f"{wrong}; expected there: {self.folder}.")

    def open(self, path):
        path = Path(path)
        if not path.is_dir():
            raise self.refusal(f"The folder {path} {'is a file' if path.exists() else 'does not exist'}")
        return path

    def images_in(self, directory):
        files = _images_in(directory)
        if not files:
            raise self.refusal(f"The directory {directory} holds no images")
        return files

    def provenance(self):
        licence = "none stated with the data"
        return Provenance(self.name, "original", licence, None, self.citation, self.source)


def _open_image(path, least=None):
    require("images", "PIL")
    from PIL import Image

    try:
        image = Image.open(path)
        if least is not None:
            image.draft(None, (least, least))
        image.load()
    except Exception as error:  # the kind depends on the format
        raise DataFileError(f"The image {path} cannot be read: {error}") from None
    return image


def read_image(path: str | Path, least: int | None = None) -> np.ndarray:
    """Read an image as RGB bytes: grey becomes three equal channels, transparency is dropped, 16 bits are cut
    to 8.

    A JPEG file is decoded at a half, a quarter or an eighth of its size if that leaves `least` pixels on each
    side, in a tenth of the time for a large photograph.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from cuelearn.datasets import read_image
    >>> with TemporaryDirectory() as directory:
    ...     Image.new("L", (4, 3), 90).save(f"{directory}/grey.png")
    ...     found = read_image(f"{directory}/grey.png")
    >>> found.shape, found[0, 0].tolist()
    ((3, 4, 3), [90, 90, 90])
    """
    image = _open_image(path, least)
    if image.mode.startswith("I"):  # 16 bits, which Pillow would clip to 255
        grey = (np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)
        return np.repeat(grey[:, :, None], 3, axis=2)
    return np.array(image.convert("RGB"))


def read_mask(path):
    """The mask of an object, bool, from a map in which it is bright."""
    grey = np.asarray(_open_image(path).convert("L"))
    return grey > grey.max() / 2


class ImageFiles:
    """Images, read from files at every access; a slice or an array of rows reads nothing."""

    def __init__(self, paths, read=read_image):
        self.paths = list(paths)
        self.read = read

    def __len__(self):
        return len(self.paths)

    def __repr__(self):
        return f"ImageFiles({len(self)} files)"

    def shrunk(self, least):
        """The same images, read with `least`; masks are unchanged."""
        if self.read is read_image:
            return ImageFiles(self.paths, partial(read_image, least=least))
        return self

    def __getitem__(self, i):
        if isinstance(i, slice | np.ndarray):
            return ImageFiles(np.array(self.paths, dtype=object)[i], self.read)
        return self.read(self.paths[i])


def masks_of(files):
    """The masks of images, None if there are no maps."""
    maps = [file.parent / "maps" / f"{file.stem}-map.png" for file in files]
    lacking = [place for place in maps if not place.is_file()]
    if 0 < len(lacking) < len(maps):
        file = files[maps.index(lacking[0])]
        raise DataFileError(f"The image {file} has no mask: {lacking[0]} is missing, other images have one.")
    if lacking:
        return None
    return ImageFiles(maps, read_mask)


def _images_in(directory):
    files = (entry for entry in directory.iterdir() if entry.suffix.lower() in SUFFIXES)
    return sorted(file for file in files if not file.name.startswith(".") and file.is_file())


def subdirectories(path):
    return sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def load_image_folder(path: str | Path) -> ImageData:
    """Load a folder of images, one directory per class, optionally in train/ and test/.

    The layout is ::

        <folder>/<class>/<image>.png             png, jpg, jpeg, bmp, ppm, pgm, tif, tiff, gif or webp
        <folder>/<class>/maps/<image>-map.png    the object is bright; for all images or for none

    or ``<folder>/train/<class>/...`` and ``<folder>/test/<class>/...``, which give ``train`` and ``test`` of
    the `ImageData`. Images are read on access. Classes and their images are in alphabetical order (an online
    learner needs ``shuffle=True``); ``frames["name"]`` is ``<class>/<image>.png``, or
    ``train/<class>/<image>.png``. `DataFileError` names what is missing, empty, or laid out otherwise.

    Examples
    --------
    >>> from cuelearn.datasets import load_image_folder
    >>> load_image_folder("no/such/folder")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    cuelearn.datasets.base.DataFileError: The folder no/such/folder does not exist; expected there: one...
    """
    name = Path(path).name
    layout = Layout(
        name,
        "one directory per class with its images in it, <folder>/<class>/<image>.png (or another image "
        "format), or such directories in <folder>/train and <folder>/test",
        source=f"the folder {name}",
    )
    path = layout.open(path)
    learnt, tested = _class_directories(layout, path)
    targets = sorted(directory.name for directory in learnt)
    paths = []
    y = []
    n_train = 0
    for directory in [*learnt, *tested]:
        if directory.name not in targets:
            raise layout.refusal(f"The class of {directory} has no directory in {path / 'train'}")
        files = layout.images_in(directory)
        paths += files
        y += len(files) * [targets.index(directory.name)]
        n_train += len(files) * (directory in learnt)
    train = test = None
    if tested:
        train, test = np.split(np.arange(len(y)), [n_train])
    return ImageData(
        ImageFiles(paths),
        np.array(y),
        targets,
        {"name": np.array([file.relative_to(path).as_posix() for file in paths])},
        masks_of(paths),
        description=f"{len(paths)} images of {len(targets)} classes from the folder {name}.",
        provenance=layout.provenance(),
        train=train,
        test=test,
    )


def _class_directories(layout, path):
    """Directories of the classes in train and in test, or of all and none."""
    classes = subdirectories(path)
    if not classes:
        raise layout.refusal(f"The folder {path} holds no directories")
    names = [entry.name for entry in classes]
    parts = [path / part for part in _PARTS if part in names and not _images_in(path / part)]
    if len(parts) == 2 and len(classes) == 2:
        return tuple(map(subdirectories, parts))
    if parts and (len(parts) == 2 or subdirectories(parts[0])):
        raise layout.refusal(f"The folder {path} holds {', '.join(names)}, not train and test alone")
    return classes, []
