"""Emoji: the same things drawn in eight styles, with names, subgroups and keywords by Unicode.

``data/build.py`` makes the files; ``data/README.md`` credits every style and lists omitted drawings and
things drawn alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cuelearn.expect import expect, expect_word

from .base import ImageData, Provenance, data_directory, read_bundled

__all__ = ["EMOJI_STYLES", "EmojiData", "before", "changed_picture", "load_emoji", "mildly_changed"]

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
    """Drawings of things, and attributes of the things.

    Attributes
    ----------
    pictures : ndarray of uint8, shape (n, 64, 64, 4)
        Red, green, blue and alpha (0 for background); by style, in Unicode's order. Unpacked on first access,
        in a second.
    style : ndarray of str, shape (n,)
        One of `EMOJI_STYLES`.
    thing : ndarray of int64, shape (n,)
        The thing drawn: a row of the arrays that follow.
    names, group, subgroup : ndarray of str, shape (n_things,)
        Such as "red apple", "food-drink", "food-fruit".
    family : ndarray of int64, shape (n_things,)
        Equal for things that some style draws alike, such as red and green apple or the clock faces. A split
        by things keeps a family together; at most one thing of a family can be a class that shape
        distinguishes.
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
    def pictures(self):
        return np.concatenate([read_bundled(file)[1]["pictures"][rows] for file, rows in self.parts])

    def on_backgrounds(self, target="name", rows=None, *, n_views=1, random_state=0):
        """Labelled RGB images, each on a plain colour, for `image_cues`.

        The colour is uniform in RGB and depends only on the thing, the style and the seed. Only cues that use
        ``masks`` (shape, moments; colour, LxLy and DirC, which count over the object) know the outline.

        Parameters
        ----------
        target : {"name", "family", "subgroup", "group", "style"}, default="name"
            Target `y`. Classes are those in the rows, in alphabetical order; a family has the name of its
            first thing.
        rows : array of int or of bool, optional
            The pictures, in this order; all by default.
        n_views : int, default=1
            Consecutive pictures of each drawing: the drawing, then mildly changed ones, rotated by up to 15
            degrees, scaled by 0.75 to 1, moved by up to 6% of the side, with up to 25% less or more light.
            Keep views of one drawing on one side of a split.
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
        try:
            if rows is None:
                rows = every
            else:
                rows = every[np.asarray(rows)]
        except IndexError as error:
            raise ValueError(f"rows must be rows of {len(every)} pictures or a mask: {error}.") from None
        thing = self.thing[rows]
        style = self.style[rows]
        family = self.family[thing]
        values = {
            "name": self.names[thing],
            "family": self.names[family],
            "subgroup": self.subgroup[thing],
            "group": self.group[thing],
            "style": style,
        }
        expect_word("target", target, values)
        targets, y = np.unique(values[target], return_inverse=True)
        pictures, colours = self._views(rows, n_views, seed)
        names = [f"{self.names[k]}, {one}" for k, one in zip(thing, style, strict=True)]
        frames = {"name": np.array(names), "thing": thing, "style": style, "family": family, "drawing": rows}
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

    def n_drawings(self):
        return np.bincount(self.thing, minlength=len(self.names))

    def unlike(self, things):
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


def load_emoji(styles=None):
    """Load emoji: 861 animals, plants, foods, places, activities and objects, drawn in up to eight styles.

    5,513 pictures by six design teams; 841 things in four styles or more, 342 in all eight. Repeated drawings
    of a thing are omitted. There is no published split: split by ``family`` to test on new things, by
    ``style`` or drawing to test on new pictures of known things. `EmojiData.on_backgrounds` gives labelled
    images. ``data/README.md`` lists authors and licences.

    Parameters
    ----------
    styles : list of str, optional
        Some of `EMOJI_STYLES`; by default all available. ``emojione-v1`` and ``openmoji`` (CC BY-SA 4.0) are
        in ``emoji-sharealike.npz``, which may be missing.

    Returns
    -------
    EmojiData

    Raises
    ------
    ValueError
        For an unknown style.
    DataFileError
        If a required file is damaged or missing.

    Examples
    --------
    >>> from cuelearn.datasets import load_emoji
    >>> emoji = load_emoji(["noto"])
    >>> emoji
    <emoji, bundled: 860 pictures of 860 things, styles noto>
    >>> str(emoji.subgroup[emoji.names == "red apple"][0])
    'food-fruit'
    """
    wanted = [styles] if isinstance(styles, str) else list(EMOJI_STYLES if styles is None else styles)
    if not wanted or not set(wanted) <= set(EMOJI_STYLES):
        raise ValueError(f"styles must be some of {list(EMOJI_STYLES)}, got {wanted}.")
    main, facts, origin = read_bundled("emoji")
    parts = []
    licences = [origin.licence]
    for file, there in _FILES.items():
        may_lack = styles is None and file != "emoji"
        if not set(there) & set(wanted) or (may_lack and not (data_directory() / f"{file}.npz").is_file()):
            continue
        _, held, origin_of_file = read_bundled(file)
        style = np.array(there)[held["style"]]
        rows = np.flatnonzero(np.isin(style, wanted))
        parts.append(((file, rows), style[rows], held["thing"][rows].astype(np.int64)))
        licences += [f"{', '.join(there)}: {origin_of_file.licence}"] if file != "emoji" else []
    files, style, thing = zip(*parts, strict=True)
    known = {name: facts[name] for name in ("names", "group", "subgroup", "keyword_names")}
    return EmojiData(
        list(files),
        np.concatenate(style),
        np.concatenate(thing),
        family=facts["family"].astype(np.int64),
        keywords=facts["keywords"].astype(np.int8),
        description=main["load"]["description"],
        provenance=origin._replace(licence="; ".join(licences)),
        **known,
    )
