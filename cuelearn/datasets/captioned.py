"""News items composed of real pictures: images with faces, and captions that name some of the people (thesis
sections 5.6 and 5.7, appendix A). ``data/simulators/captions.py`` draws people and captions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from sklearn.preprocessing import normalize

from cuelearn.core.samples import as_generator
from cuelearn.datasets.base import Provenance, side_by_side, simulator
from cuelearn.datasets.cues import CUES
from cuelearn.datasets.descriptors import Picture
from cuelearn.datasets.images import EmojiData, before, load_emoji, mildly_changed
from cuelearn.expect import expect, expect_among, expect_word
from cuelearn.kernels.types import ArrayLike, RandomState
from cuelearn.mms import Mention, Region, Vocabulary

__all__ = ["VERBS", "CaptionedData", "make_captioned"]

NULL = "null"

#: Actions of kind ``"poses"``; the body of verb k is rotated by k times 36 degrees.
VERBS = (
    *("wave", "run", "jump", "clap", "kick the ball", "lift the trophy", "hit a backhand"),
    *("shake hands", "give a speech", "sing"),
)
ANGLE = 360 / len(VERBS)
#: Bodies: things with a top and a bottom.
CLOTHES = ("t-shirt", "woman’s clothes", "dress", "kimono", "lab coat", "coat")
FACE_CUES = ("HSV 2x2", "PHOG 2")
POSE_CUES = ("PHOG 2", "derivatives 2x2", "gist")
KINDS = ("identity", "stranger", "false detection")
_PERSON, _STRANGER, _FALSE = range(3)
#: Least number of styles of an identity and of a stranger.
_STYLES = 7
_STYLES_STRANGER = 4


class _Cast(NamedTuple):
    """Drawings, and things: identities and strangers, which share no family, and bodies."""

    emoji: EmojiData
    people: np.ndarray
    clothes: np.ndarray
    others: np.ndarray


@lru_cache(maxsize=1)
def _cast():
    emoji = load_emoji()
    clothes = np.flatnonzero(np.isin(emoji.names, CLOTHES))

    def among(least, without):
        new = ~np.isin(emoji.family, emoji.family[without])
        return np.flatnonzero(new & (emoji.n_drawings() >= least))

    people = np.random.default_rng(0).permutation(emoji.unlike(among(_STYLES, clothes)))
    people = people[: simulator("captions").N_IDENTITIES]
    return _Cast(emoji, people, clothes, among(_STYLES_STRANGER, np.append(clothes, people)))


def _deal(rng, wanted):
    """Drawings of things, (n, 2) with -1 for none; those of a thing are used equally often."""
    dealt = np.full(wanted.shape, -1, dtype=np.int32)
    for thing in np.unique(wanted[wanted >= 0]):
        own = rng.permutation(np.flatnonzero(_cast().emoji.thing == thing))
        at = wanted == thing
        dealt[at] = rng.permutation(np.resize(own, at.sum()))
    return dealt


def _draw_samples(rng, kind, person, identity, n_strangers, verb):
    """Drawings of faces and bodies, int32 (n, 2, 2), angles of bodies, and seeds of other changes."""
    cast = _cast()
    n = kind.size
    false = kind == _FALSE
    faces, bodies = np.full((2, n, 2), -1)
    faces[kind == _PERSON, 0] = cast.people[identity[person[kind == _PERSON]]]
    strangers = rng.permutation(np.resize(cast.others, n_strangers))
    faces[kind == _STRANGER, 0] = strangers[person[kind == _STRANGER]]
    faces[false] = rng.choice(np.append(cast.people, cast.others), (false.sum(), 2))
    acting = verb >= 0
    bodies[acting] = rng.choice(cast.clothes, (acting.sum(), 2))
    bodies[~false, 1] = -1
    other = (verb + rng.integers(1, len(VERBS), size=n)) % len(VERBS)
    samples = np.stack([_deal(rng, wanted) for wanted in (faces, bodies)], axis=1)
    return samples, ANGLE * np.column_stack([verb, other]), rng.integers(2**32, size=n)


def _looks(samples, angles, seeds, body=False):
    """Pictures, uint8 (64, 64, 3), of faces or bodies; two drawings are joined by their halves."""
    pictures = _cast().emoji.pictures
    part = int(body)
    for drawings, turns, seed in zip(samples[:, part], body * angles, seeds, strict=True):
        rng = np.random.default_rng([part, seed])
        colour = rng.integers(0, 256, 3, dtype=np.uint8)
        drawn = [mildly_changed(pictures[k], rng, turn) for k, turn in zip(drawings, turns) if k >= 0]
        whole = drawn[0]
        if len(drawn) == 2:
            middle = whole.shape[1] // 2
            whole = np.hstack([whole[:, middle:], drawn[1][:, :middle]])
        yield before(whole, colour)


def _described(looks, cues):
    """Square roots of the shares of each cue, scaled to norm 1; the columns of each."""
    described = {cue: [] for cue in cues}
    for look in looks:
        picture = Picture(look)
        for cue, rows in described.items():
            rows.append(CUES[cue].describe(picture))
    return side_by_side({cue: normalize(np.sqrt(rows)) for cue, rows in described.items()}, np.float32)


class CaptionedData(NamedTuple):
    """A composed corpus of pictures with captions: N items with n faces.

    Attributes
    ----------
    captions : list of str
    regions : list of list of Region
        Each item's faces in no particular order; with poses, each is followed by its upper body.
    faces, poses : ndarray of float32, shape (n, d)
        One row per face and per body, in the order of `regions`; poses None without bodies.
    bag_sizes : ndarray of int, shape (N,)
        Faces of each item.
    names, verbs : ndarray of str, shape (n,)
        The person and the action (None without poses), mentioned or not; ``"null"`` for a false detection.
    is_test, has_position : ndarray of bool, shape (N,)
        Test items; items whose caption gives positions.
    vocabulary : Vocabulary
        All names of the captions, in the order of `labels`, and all verbs.
    description : str
    provenance : Provenance
    labels : ndarray of str
        Identities by decreasing frequency, people who are mentioned but never pictured, the long tail.
    mentions : DataFrame
        A row for every name in every caption, in the order of the text: ``item``, ``name`` (index into
        `labels`), ``face`` (row of `faces`, -1 if not pictured), ``verb`` (``"null"`` if none), ``place`` (as
        in `cuelearn.mms.Mention`).
    kinds : ndarray of str, shape (n,)
        ``"identity"``, ``"stranger"`` (of the long tail) or ``"false detection"``.
    things : ndarray of str, shape (n,)
        The thing drawn as each face; for a false detection, in its left half.
    samples : ndarray of int32, shape (n, 2, 2)
        Rows of `load_emoji` of each face and each body: one, or two for a false detection; -1 for none.
    angles : ndarray of float64, shape (n, 2)
        Rotation of the drawings of bodies in degrees.
    seeds : ndarray of int64, shape (n,)
        Of the mild changes and background colours.
    sizes : ndarray of int, shape (N, 2)
        Width and height of each image.
    face_cues, pose_cues : dict of str to slice
        Columns of `faces` and `poses`; the latter None without poses.

    Examples
    --------
    >>> from cuelearn.datasets import CaptionedData, make_captioned
    >>> data = make_captioned(20)
    >>> isinstance(data, CaptionedData), len(data.captions), len(data.faces) == int(data.bag_sizes.sum())
    (True, 20, True)
    """

    captions: list[str]
    regions: list[list[Region]]
    faces: np.ndarray
    poses: np.ndarray | None
    bag_sizes: np.ndarray
    names: np.ndarray
    verbs: np.ndarray | None
    is_test: np.ndarray
    has_position: np.ndarray
    vocabulary: Vocabulary
    description: str
    provenance: Provenance
    labels: np.ndarray
    mentions: pd.DataFrame
    kinds: np.ndarray
    things: np.ndarray
    samples: np.ndarray
    angles: np.ndarray
    seeds: np.ndarray
    sizes: np.ndarray
    face_cues: dict[str, slice]
    pose_cues: dict[str, slice] | None

    @property
    def bag_of(self) -> np.ndarray:
        """Item of each face, (n,)."""
        return np.repeat(np.arange(self.bag_sizes.size), self.bag_sizes)

    @property
    def mentioned(self) -> np.ndarray:
        """Whether the item's caption has the face's name, (n,)."""
        return np.isin(np.arange(self.names.size), self.mentions["face"])

    def caption_mentions(self, item: int) -> list[Mention]:
        """Mentions in an item's caption, in order: list of `cuelearn.mms.Mention`."""
        start, end = np.searchsorted(self.mentions["item"], [item, item + 1])
        rows = self.mentions.iloc[start:end]
        names = self.labels[rows["name"]].tolist()
        return list(map(Mention, names, rows["verb"].replace(NULL, ""), rows["place"]))

    @property
    def items(self) -> list[tuple[list[Mention], list[Region]]]:
        """Mentions and regions of each item, the input of `cuelearn.mms.candidate_set`."""
        return [(self.caption_mentions(i), regions) for i, regions in enumerate(self.regions)]

    def rows(self, items: ArrayLike) -> np.ndarray:
        """Ascending rows of `faces` of these items (numbers or a mask of shape (N,))."""
        chosen = np.zeros(self.bag_sizes.size, dtype=bool)
        chosen[items] = True
        return np.flatnonzero(chosen[self.bag_of])

    def names_with(self, min_count: int) -> list[str]:
        """Names in at least `min_count` training captions; 20 or 3 in the thesis."""
        in_training = ~self.is_test[self.mentions["item"]]
        times = np.bincount(self.mentions["name"][in_training], minlength=self.labels.size)
        return self.labels[times >= expect("min_count", min_count, kind="whole", low=1)].tolist()

    def truth(self, names: Sequence[str] | None = None, verbs: Sequence[str] | None = None) -> np.ndarray:
        """True labels for a learner that models these `names` (all by default) and `verbs`.

        Returns
        -------
        ndarray of str, shape (n,), or (n, 2) with `verbs` (corpora with poses)
            The face's name, and that person's verb; ``"null"`` for words that are not in the item's caption
            or not modelled.
        """
        if verbs is not None and self.poses is None:
            raise ValueError("verbs must be None for a corpus without poses")
        kept = _known("names", self.labels if names is None else names, self.labels)
        pictured = self.mentions[self.mentions["face"] >= 0]
        pictured = pictured[np.isin(self.labels, kept)[pictured["name"].to_numpy()]]
        width = max([len(NULL), *map(len, kept), *map(len, VERBS)])
        out = np.full((self.names.size, 1 if verbs is None else 2), NULL, dtype=f"<U{width}")
        out[pictured["face"], 0] = self.labels[pictured["name"]]
        if verbs is None:
            return out[:, 0]
        stated = pictured["verb"].to_numpy(dtype=str)
        known = _known("verbs", verbs, np.array(VERBS))
        out[pictured["face"], 1] = np.where(np.isin(stated, known), stated, NULL)
        return out

    def looks(self, rows: ArrayLike, body: bool = False) -> Iterator[np.ndarray]:
        """RGB pictures of these faces, or of their bodies: an iterator of uint8 (64, 64, 3)."""
        return _looks(self.samples[rows], self.angles[rows], self.seeds[rows], body)

    def __repr__(self):
        what = f"{self.bag_sizes.size} items, faces {self.faces.shape} {self.faces.dtype}"
        names = f"{self.labels.size} names"
        if self.poses is not None:
            names += ", poses"
        return f"<{self.provenance.name}, composed: {what}, {names}>"


def _known(what, words, known):
    """The words without "null"; ValueError for an unknown one."""
    words = [str(word) for word in words if str(word) != NULL]
    return expect_among(what, words, known.tolist())


def make_captioned(
    n_items: int | None = None,
    *,
    kind: Literal["news", "poses"] = "news",
    protocol: Literal["I", "II"] = "I",
    n_names: int | None = None,
    exponent: float = 0.7,
    p_correlated: float = 0.4,
    test_share: float | None = None,
    random_state: RandomState = 0,
) -> CaptionedData:
    r"""Compose a corpus of captioned images from emoji (thesis sections 5.6 and 5.7).

    It replaces Labeled Yahoo! News and Idiap/ETHZ Faces and Poses, which cannot be redistributed.

    **People.** An identity is a thing with at least seven drawings (214 things, no two alike in any style)
    and an invented name. The identity of rank r has weight :math:`r^{-\text{exponent}}`; ranks 1 and 2, 3 and
    4, ... are partners who are often pictured together. Another 246 people are mentioned occasionally but
    never pictured, and a long tail once or twice.

    **Faces.** A face is a mildly changed drawing on a plain colour, as in `EmojiData.on_backgrounds`. A
    *stranger*, of the long tail, is a thing that no identity uses; a *false detection* joins the right half
    of one drawing and the left half of another. Items are split at random: test faces are other changes of
    the training drawings. Columns: ``"HSV 2x2"`` (288) and ``"PHOG 2"`` (192) of `image_cues`: square roots
    of shares, each cue of norm 1.

    **Poses** (``kind="poses"``). A body is a piece of clothing, rotated by k times 36 degrees for verb k of
    the ten `VERBS`, plus up to 15 degrees of scatter; its cues are ``"PHOG 2"``, ``"derivatives 2x2"`` (256)
    and ``"gist"`` (288).

    **Captions**, from about 70 templates. Strangers are not mentioned, some names are of people who are not
    pictured; a name occurs once in an image and in a caption. Spatial indicators, such as "(L)", ", left," or
    "from left to right", agree with the boxes.

    **Shares.** Numbers of items, faces and items with spatial indicators, and most faces per image and names
    per caption are those of the thesis's data. Other shares were set so that RANDOM, which draws a candidate
    labeling without seeing a face, has the accuracy of tables 5.1 and 5.3 (with each protocol for its own
    names).

    Parameters
    ----------
    n_items : int >= 20, optional
        Images with captions; by default 20,071, or 1,703 with poses. Shares do not depend on it.
    kind : {"news", "poses"}, default="news"
    protocol : {"I", "II"}, default="I"
        Protocol of the thesis that sets the ambiguity, for kind ``"news"``. I: names of 20 or more
        occurrences, test items drawn from all. II: names of 3 or more, more names per caption, all items with
        spatial indicators in the training set.
    n_names : int, optional
        Identities, from 30 to 214; 214 by default, 60 with poses.
    exponent : float >= 0, default=0.7
        Of the weights of identities; with 0.7 nearly all have 20 or more occurrences at full size.
    p_correlated : float in [0, 1], default=0.4
        Probability that the second of two identities in an image is the partner of the first.
    test_share : float in [0, 0.9], optional
        Share of test items, at most 0.8 for protocol II; by default 0.2, 10,071/20,071 for protocol II,
        103/1,703 with poses.
    random_state : int, Generator or None, default=0
        Names do not depend on it.

    Returns
    -------
    CaptionedData

    Notes
    -----
    A face takes 1.3 ms, a body 1.4 ms: 20,071 items 45 s and 250 MB.

    References
    ----------
    Guillaumin, Verbeek and Schmid: Multiple instance metric learning from automatically labeled bags of
    faces, ECCV 2010. Jie Luo, Caputo and Ferrari: Who's doing what, NIPS 2009.

    Examples
    --------
    >>> from cuelearn.datasets import make_captioned
    >>> data = make_captioned(20)
    >>> data.faces.shape[1], int(data.bag_sizes.sum())
    (480, 31)
    """
    expect_word("kind", kind, ("news", "poses"))
    poses = kind == "poses"
    expect_word("protocol", protocol, ("I",) if poses else ("I", "II"))
    world = simulator("captions")
    most_names = world.N_IDENTITIES
    if poses:
        defaults = world.POSES_SIZE, 60, world.POSES_TEST / world.POSES_SIZE
    elif protocol == "I":
        defaults = world.FULL_SIZE, most_names, 0.2
    else:
        defaults = world.FULL_SIZE, most_names, 1 - world.TRAIN_PROTOCOL_2 / world.FULL_SIZE
    given = n_items, n_names, test_share
    n, n_names, test_share = (d if value is None else value for value, d in zip(given, defaults))
    n = expect("n_items", n, kind="whole", low=20)
    n_names = expect("n_names", n_names, kind="whole", low=30, high=most_names)
    exponent = expect("exponent", exponent, low=0)
    p_correlated = expect("p_correlated", p_correlated, low=0, high=1)
    test_share = expect("test_share", test_share, low=0, high={"I": 0.9, "II": 0.8}[protocol])
    # Separate streams: a change of words or boxes does not change people and samples.
    *streams, sample_rng = as_generator(random_state).spawn(5)
    emoji = _cast().emoji
    made = world.compose(streams, n, poses, protocol, n_names, exponent, p_correlated, test_share)

    spelled = np.array([*VERBS, NULL])
    mentions = pd.DataFrame(made.mentions, columns=["item", "name", "face", "verb", "place"])
    mentions["verb"] = spelled[mentions["verb"]]
    people = pd.DataFrame(made.faces)
    kind_of, person, verb = (people[field].to_numpy() for field in ("kind", "person", "verb"))
    numbers = np.where(kind_of == _STRANGER, made.first_stranger + person, person)
    numbers[kind_of == _FALSE] = -1
    drawn = _draw_samples(sample_rng, kind_of, person, made.identity, made.n_strangers, verb)
    faces, face_cues = _described(_looks(*drawn), FACE_CUES)
    bodies = None
    pose_cues = None
    words = {}
    if poses:
        bodies, pose_cues = _described(_looks(*drawn, body=True), POSE_CUES)
        words = {v.label: list(dict.fromkeys([v.base, v.third, v.gerund, v.past])) for v in world.VERBS}
    what = "name-verb pairs"
    if not poses:
        what = f"names, with the ambiguity of protocol {protocol}"
    named = {str(made.labels[k]): made.forms(k) for k in np.unique(mentions["name"]).tolist()}
    return CaptionedData(
        captions=made.captions,
        regions=[[Region(*region) for region in regions] for regions in made.regions],
        faces=faces,
        poses=bodies,
        bag_sizes=made.n_faces,
        names=np.append(made.labels, NULL)[numbers],
        verbs=np.where(kind_of == _FALSE, NULL, spelled[verb]) if poses else None,
        is_test=made.is_test,
        has_position=made.has_position,
        vocabulary=Vocabulary(named, words),
        description=(
            f"{n} news-like items composed of emoji for {what}: a person is a thing, a face one of its "
            "drawings, mildly changed; names and captions are invented."
        ),
        provenance=Provenance(
            f"captioned-{kind}",
            "generated",
            f"composed of emoji: {emoji.provenance.licence}",
            None,
            "composed after Jie Luo (2011), EPFL thesis 5233, sections 5.6 and 5.7 and appendix A",
            f"make_captioned({n}, kind={kind!r}, protocol={protocol!r}, n_names={n_names}, "
            f"exponent={exponent}, p_correlated={p_correlated}, test_share={test_share}, "
            f"random_state={random_state})",
            "composed",
        ),
        labels=made.labels,
        mentions=mentions,
        kinds=np.array(KINDS)[kind_of],
        things=emoji.names[emoji.thing[drawn[0][:, 0, 0]]],
        samples=drawn[0],
        angles=drawn[1],
        seeds=drawn[2],
        sizes=made.sizes,
        face_cues=face_cues,
        pose_cues=pose_cues,
    )
