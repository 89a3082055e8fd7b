r"""News items composed of real samples: pictures with faces, and captions that name some of the people in
them.

The thesis learns names from Labeled Yahoo! News and names with verbs from Idiap/ETHZ Faces and Poses; neither
can be shipped. Here a person is a pair of a letter and a digit, a face a sample of either, a pose a pen
stroke, and the captions are English sentences about invented people. Whatever is shown of it is called
*composed*. Who is pictured and what the captions say is decided in ``data/simulators/captions.py``; here
stand the samples and features, the corpus and its truth (thesis sections 5.6 and 5.7, appendix A)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from cuelearn.core.checks import as_generator, check_count, check_non_negative

from .base import Provenance, read_bundled, simulator

__all__ = ["VERBS", "CaptionedData", "ItemPicture", "make_captioned"]

NULL = "null"
N_LETTERS, N_DIGITS = 26, 10
N_IDENTITIES = N_LETTERS * N_DIGITS
FULL_SIZE, FULL_FACES, FULL_POSITIONS = 20_071, 31_147, 3_105
POSES_SIZE, POSES_TEST = 1_703, 103
TRAIN_PROTOCOL_2 = 10_000

#: What a person of kind ``"poses"`` may do; verb k is posed by samples of digit k of Pendigits.
VERBS = (
    *("wave", "run", "jump", "clap", "kick the ball", "lift the trophy", "hit a backhand"),
    *("shake hands", "give a speech", "sing"),
)
KINDS = ("identity", "stranger", "false detection")
_PERSON, _STRANGER, _FALSE = range(3)


class _Pools(NamedTuple):
    """The real samples (letter, MNIST as 28 x 28, Pendigits), with classes and published splits."""

    letters: np.ndarray
    letter_y: np.ndarray
    letter_train: np.ndarray
    digits: np.ndarray
    digit_y: np.ndarray
    digit_train: np.ndarray
    pens: np.ndarray
    pen_y: np.ndarray
    pen_train: np.ndarray


@lru_cache(maxsize=1)
def _pools():
    """Read the three sets once (55 MB, 2 s)."""
    letter, mnist, pendigits = (read_bundled(name)[1] for name in ("letter", "mnist", "pendigits"))
    digit_y = np.concatenate([mnist["train_labels"], mnist["test_labels"]]).astype(int)
    return _Pools(
        letters=letter["X"].astype(np.float32),
        letter_y=letter["y"].astype(int),
        letter_train=letter["train"].astype(bool),
        digits=np.concatenate([mnist["train_images"], mnist["test_images"]]),
        digit_y=digit_y,
        digit_train=np.arange(digit_y.size) < 60_000,
        pens=pendigits["X"].astype(np.float32),
        pen_y=pendigits["y"].astype(int),
        pen_train=pendigits["train"].astype(bool),
    )


def _deal(rng, wanted, y, rows):
    """A sample of each wanted class from `rows`, all of a class equally often, give or take one."""
    dealt = np.empty(wanted.size, dtype=np.int64)
    for label in np.unique(wanted):
        at, own = np.flatnonzero(wanted == label), rows[y[rows] == label]
        rounds = -(-at.size // own.size)
        dealt[at] = np.concatenate([rng.permutation(own) for _ in range(rounds)])[: at.size]
    return dealt


def _deal_pairs(rng, letters, digits, pools, train):
    """Samples of pairs of classes from either halves of the sets, no pair of samples twice."""
    letter_rows = np.flatnonzero(pools.letter_train == train)
    digit_rows = np.flatnonzero(pools.digit_train == train)
    letter = _deal(rng, letters, pools.letter_y, letter_rows)
    digit = _deal(rng, digits, pools.digit_y, digit_rows)
    each, needed = np.unique(letters * N_DIGITS + digits, return_counts=True)
    of_letter = np.bincount(pools.letter_y[letter_rows], minlength=N_LETTERS)[each // N_DIGITS]
    of_digit = np.bincount(pools.digit_y[digit_rows], minlength=N_DIGITS)[each % N_DIGITS]
    for _ in range(100 if np.all(needed <= of_letter * of_digit) else 0):
        key = letter * len(pools.digit_y) + digit
        order = np.argsort(key, kind="stable")
        again = order[1:][key[order[1:]] == key[order[:-1]]]
        if again.size == 0:
            return letter, digit
        for k in again:  # trade the digit with another face that needs the same class
            alike = np.flatnonzero(digits == digits[k])
            other = alike[rng.integers(alike.size)]
            digit[k], digit[other] = digit[other], digit[k]
    raise ValueError(
        "n_items must be small enough for every face to get a pair of samples of its own, got a corpus that "
        "needs more"
    )


def _letter_features(attributes):
    """The 16 attributes in [0, 1], and their squares and products: 152 columns."""
    a = attributes / np.float32(15)
    rows, columns = np.triu_indices(a.shape[1])
    return np.hstack([a, a[:, rows] * a[:, columns]])


def _digit_features(images, side):
    """Means over blocks of the images, in [0, 1]: side * side columns."""
    cell = 28 // side
    total = np.zeros((len(images), side, side), dtype=np.float32)
    for i in range(cell):
        for j in range(cell):
            total += images[:, i::cell, j::cell]
    return (total / np.float32(255 * cell * cell)).reshape(len(images), -1)


@lru_cache(maxsize=4)
def _scales(side):
    """What brings the root mean square norm of either part to 1 over the training halves of the sets."""
    pools, squares = _pools(), 0.0
    letters = _letter_features(pools.letters[pools.letter_train])
    digits = pools.digits[pools.digit_train]
    for start in range(0, len(digits), 5000):
        block = _digit_features(digits[start : start + 5000], side)
        squares += float(np.sum(block**2, dtype=np.float64))
    of_letters = np.mean(np.sum(letters**2, axis=1, dtype=np.float64))
    return np.float32(1 / math.sqrt(of_letters)), np.float32(1 / math.sqrt(squares / len(digits)))


def _mixed_letters(pools, samples, kind):
    """Attributes of every face: one sample's; the mean of two; or halves of two."""
    a, b = pools.letters[samples[:, 0]], pools.letters[samples[:, 1]]
    cut = np.hstack([a[:, :8], b[:, 8:]])
    return np.where((kind == _FALSE)[:, None], cut, (a + b) / 2)


def _mixed_digits(pools, samples, kind):
    """Images of every face, float32 in 0..255: one sample's, the mean of two, or half of each."""
    a, b = (pools.digits[samples[:, k]].astype(np.float32) for k in (0, 1))
    cut = np.concatenate([a[:, :, :14], b[:, :, 14:]], axis=2)
    return np.where((kind == _FALSE)[:, None, None], cut, (a + b) / 2)


def _mixed_pens(pools, samples, kind):
    """Pen strokes in 0..100: one sample's, or for false detections four points of one and four of another."""
    a, b = pools.pens[samples[:, 0]], pools.pens[samples[:, 1]]
    return np.where((kind == _FALSE)[:, None], np.hstack([a[:, :8], b[:, 8:]]), a)


def _draw_samples(rng, kind, person, identity, n_strangers, verb, in_test):
    """Rows of the samples of every face, int32 (n, 3, 2), of the training or the test halves of the sets."""
    pools = _pools()
    n = kind.size
    letter, digit = np.empty((n, 2), dtype=int), np.empty((n, 2), dtype=int)
    known = kind == _PERSON
    letter[known], digit[known] = (part[:, None] for part in np.divmod(identity[person[known]], N_DIGITS))
    # Two classes that differ, always the same two for one stranger, any two for a false detection.
    for classes, n_classes in ((letter, N_LETTERS), (digit, N_DIGITS)):
        drawn = rng.integers(n_classes, size=n_strangers + int(np.sum(kind == _FALSE)))
        second = (drawn + rng.integers(1, n_classes, size=drawn.size)) % n_classes
        pairs = np.column_stack([drawn, second])
        classes[kind == _STRANGER] = pairs[person[kind == _STRANGER]]
        classes[kind == _FALSE] = pairs[n_strangers:]
    samples = np.full((n, 3, 2), -1, dtype=np.int32)
    for test in (False, True):
        rows = np.flatnonzero(in_test == test)
        mixed = rows[~known[rows]]
        letters, digits = (
            np.concatenate([classes[rows, 0], classes[mixed, 1]]) for classes in (letter, digit)
        )
        for k, dealt in enumerate(_deal_pairs(rng, letters, digits, pools, train=not test)):
            samples[rows, k] = dealt[: rows.size, None]
            samples[mixed, k, 1] = dealt[rows.size :]
        acting = rows[verb[rows] >= 0]
        if acting.size:
            halves = acting[kind[acting] == _FALSE]
            other = (verb[halves] + rng.integers(1, N_DIGITS, size=halves.size)) % N_DIGITS
            wanted, own = np.concatenate([verb[acting], other]), np.flatnonzero(pools.pen_train != test)
            dealt = _deal(rng, wanted, pools.pen_y, own)
            samples[acting, 2] = dealt[: acting.size, None]
            samples[halves, 2, 1] = dealt[acting.size :]
    return samples


def _features(samples, kind, side):
    """Both parts of every face, each of a root mean square norm of about 1: float32 (n, 152 + side**2)."""
    pools, (letter_scale, digit_scale) = _pools(), _scales(side)
    faces = np.empty((len(samples), 152 + side * side), dtype=np.float32)
    for start in range(0, len(samples), 4096):  # few enough images in memory at a time
        rows = slice(start, start + 4096)
        letters = _letter_features(_mixed_letters(pools, samples[rows, 0], kind[rows]))
        digits = _digit_features(_mixed_digits(pools, samples[rows, 1], kind[rows]), side)
        faces[rows, :152], faces[rows, 152:] = letters * letter_scale, digits * digit_scale
    return faces


class ItemPicture(NamedTuple):
    """What it takes to draw one item of M faces, in the order of its regions.

    `size` is width and height in pixels; `boxes` and `bodies` (None without poses) are x0, y0, x1, y1, y
    downward, (M, 4); `letters` (M, 16) in 0..15; `digits` (M, 28, 28) in [0, 1]; `pens` (M, 8, 2) or None,
    points in 0..100, y upward; `names`, `verbs` (None without poses) the truth; `mentioned` whether the
    caption has the person's name.
    """

    caption: str
    size: tuple
    boxes: np.ndarray
    letters: np.ndarray
    digits: np.ndarray
    bodies: np.ndarray | None
    pens: np.ndarray | None
    names: np.ndarray
    verbs: np.ndarray | None
    mentioned: np.ndarray


class CaptionedData(NamedTuple):
    """A composed corpus of pictures with captions: N items with n faces in all.

    Attributes
    ----------
    captions : list of str
        N texts.
    regions : list of list of Region
        Boxes of each item: its faces in no particular order; with poses each is followed by its upper body.
    faces : ndarray of float32, shape (n, d)
        One row per face, item after item, in the order of `regions`: 152 columns of the letter, then those of
        the digit.
    poses : ndarray of float32, shape (n, 16), or None
        The pen stroke of each face's body in [0, 1].
    bag_sizes : ndarray of int, shape (N,)
        Faces of each item.
    names, verbs : ndarray of str, shape (n,)
        Who it is, mentioned or not, and what the person does (None without poses), said or not; ``"null"``
        for a false detection.
    is_test, has_position : ndarray of bool, shape (N,)
        Test items, whose samples are of the published test halves; whether the caption tells who stands
        where.
    vocabulary : Vocabulary
        All names of the captions, in the order of `labels`, and all verbs.
    statistics : DataFrame
        Columns what, thesis, ours, note: what the thesis prints of its data, what this corpus has, and what
        could not be matched.
    description : str
    provenance : Provenance
    labels : ndarray of str
        All names: the identities from the most to the least frequent, people who are often mentioned and
        never pictured, the long tail.
    mentions : DataFrame
        A row for every name in every caption: ``item``, ``name`` (number among `labels`), ``face`` (row of
        `faces`, -1 if not pictured), ``verb`` (what the caption says they do; ``"null"`` if nothing),
        ``place`` (``"left"``, ``"centre"``, ``"right"``, ``"top"``, ``"bottom"``, ``"order"`` where the text
        lists people from left to right, or ``""``).
    kinds : ndarray of str, shape (n,)
        ``"identity"``, ``"stranger"`` (of the long tail) or ``"false detection"``.
    samples : ndarray of int32, shape (n, 3, 2)
        Row numbers of the letter, MNIST (60,000 and over: test images) and Pendigits samples that make each
        face, twice the same where it takes one; -1 for no sample.
    sizes : ndarray of int, shape (N, 2)
        Width and height of each image.
    """

    captions: list
    regions: list
    faces: np.ndarray
    poses: np.ndarray | None
    bag_sizes: np.ndarray
    names: np.ndarray
    verbs: np.ndarray | None
    is_test: np.ndarray
    has_position: np.ndarray
    vocabulary: object
    statistics: pd.DataFrame
    description: str
    provenance: Provenance
    labels: np.ndarray
    mentions: pd.DataFrame
    kinds: np.ndarray
    samples: np.ndarray
    sizes: np.ndarray

    @property
    def bag_of(self):
        """Item of each face, ints of shape (n,)."""
        return np.repeat(np.arange(self.bag_sizes.size), self.bag_sizes)

    @property
    def mentioned(self):
        """Whether the item's caption has the face's name, bool of shape (n,)."""
        seen = np.zeros(self.names.size, dtype=bool)
        seen[self.mentions["face"][self.mentions["face"] >= 0]] = True
        return seen

    def rows(self, items):
        """Rows of `faces` that belong to these items, numbers or a bool mask of shape (N,); ascending."""
        return np.flatnonzero(item_mask(items, self.bag_sizes.size)[self.bag_of])

    def occurrences(self, items=None):
        """Number of captions of these items, by default the training items, that have each label."""
        counted = item_mask(~self.is_test if items is None else items, self.bag_sizes.size)
        here = counted[self.mentions["item"].to_numpy()]
        return np.bincount(self.mentions["name"].to_numpy()[here], minlength=self.labels.size)

    def names_with(self, min_count):
        """Names in at least so many training captions; the thesis takes 20 or 3."""
        return self.labels[self.occurrences() >= check_count("min_count", min_count)].tolist()

    def truth(self, names=None, verbs=None):
        """The labels that a learner with these words should give.

        Parameters
        ----------
        names : sequence of str, optional
            Names that are modelled; all by default.
        verbs : sequence of str, optional
            Verbs that are modelled, for a corpus with poses: labels are then pairs.

        Returns
        -------
        ndarray of str, shape (n,), or (n, 2) with `verbs`
            The face's name; ``"null"`` if it is not among `names`, or the item's caption does not have it.
            Second column: the verb that the caption says of that person; ``"null"`` if it says none, or one
            that is not among `verbs`, or the name is ``"null"``.
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
        said, known = pictured["verb"].to_numpy(dtype=str), _known("verbs", verbs, np.array(VERBS))
        out[pictured["face"], 1] = np.where(np.isin(said, known), said, NULL)
        return out

    def picture(self, item):
        """The `ItemPicture` of item number 0..N-1."""
        if not 0 <= item < self.bag_sizes.size:
            raise IndexError(f"item must be in 0..{self.bag_sizes.size - 1}, got {item!r}")
        pools, rows = _pools(), self.rows([item])
        kind = np.array([KINDS.index(word) for word in self.kinds[rows]])
        of_kind = {
            kind: np.array([r.box for r in self.regions[item] if r.kind == kind], dtype=float)
            for kind in ("face", "body")
        }
        letter, digit, pen = (self.samples[rows, k] for k in range(3))
        return ItemPicture(
            caption=self.captions[item],
            size=tuple(self.sizes[item].tolist()),
            boxes=of_kind["face"],
            letters=_mixed_letters(pools, letter, kind),
            digits=_mixed_digits(pools, digit, kind) / np.float32(255),
            bodies=None if self.poses is None else of_kind["body"],
            pens=None if self.poses is None else _mixed_pens(pools, pen, kind).reshape(-1, 8, 2),
            names=self.names[rows],
            verbs=None if self.verbs is None else self.verbs[rows],
            mentioned=self.mentioned[rows],
        )

    def __repr__(self):
        what = f"{self.bag_sizes.size} items, faces {self.faces.shape} {self.faces.dtype}"
        poses = "" if self.poses is None else ", poses"
        return f"<{self.provenance.name}, composed: {what}, {self.labels.size} names{poses}>"


def item_mask(items, n):
    """Items as a bool mask of shape (n,)."""
    items = np.asarray(items)
    if items.dtype == np.bool_ and items.shape == (n,):
        return items
    whole = items.size == 0 or (items.dtype.kind in "iu" and items.min() >= 0 and items.max() < n)
    if items.ndim != 1 or not whole:
        raise ValueError(f"items must be item numbers in 0..{n - 1} or a mask of shape ({n},)")
    mask = np.zeros(n, dtype=bool)
    mask[items.astype(int)] = True
    return mask


def _known(what, words, known):
    """The words without "null", or an error that names one that is not known."""
    words = [str(word) for word in words if str(word) != NULL]
    unknown = sorted(set(words) - set(known.tolist()))
    if unknown:
        raise ValueError(f"{what} must be among those of the corpus, got {unknown[0]!r}")
    return words


def _share(name, value, most):
    if check_non_negative(name, value) > most:
        raise ValueError(f"{name} must be at most {most}, got {value}")
    return float(value)


def make_captioned(
    n_items=None,
    *,
    kind="news",
    protocol="I",
    n_names=None,
    exponent=0.76,
    p_correlated=0.4,
    test_share=None,
    digit_side=14,
    random_state=0,
):
    r"""Compose a corpus of pictures with captions from real samples (thesis sections 5.6 and 5.7).

    **People.** An identity is a pair of a letter class and a digit class (260 of them) with an invented name;
    some are also called by an office ("President ..."). The identity of rank r is drawn with a weight
    :math:`r^{-\text{exponent}}`; ranks 1 and 2, 3 and 4, ... are partners who are often pictured together.
    Then there are 200 people who are mentioned now and then and never pictured, and a long tail of people who
    are mentioned once or twice.

    **Faces.** A face of an identity is a sample of its letter (letter recognition) beside a sample of its
    digit (MNIST). A *stranger*, a person of the long tail, is the mean of the samples of two identities; a
    *false detection* is cut from two. Columns: the letter's 16 attributes in [0, 1], their squares and
    pairwise products (152); the digit's grey values in [0, 1], averaged over blocks; either part times a
    constant that brings its root mean square norm to 1.

    **Poses** (``kind="poses"``). A body is a sample of Pendigits: eight pen points in [0, 1]. Its class is
    what the person does, one of the ten `VERBS`. Everybody has two usual verbs, taken in 60 of 100 cases.

    **Pictures and captions.** Some faces are of people who are not mentioned, some names of people who are
    not pictured. A name occurs at most once in an image and in a caption. Captions come from some 70
    templates. Items with spatial indicators say "(L)", "(C)", "(R)", ", left,", "(left)", "(top)" or "from
    left to right", in agreement with the boxes. With poses a caption says of most people what they do, and
    also what people did who are not in the picture.

    **Shares.** Number of items, faces and items with spatial indicators, most faces of an image and most
    names of a caption are those of Labeled Yahoo! News (or Faces+Poses); other shares were set so that
    RANDOM, which draws one of the candidate labelings and sees no face, is as often right as in tables 5.1
    and 5.3. No learner had a part in it. ``statistics`` has all of it beside the printed numbers.

    Parameters
    ----------
    n_items : int, optional
        Images with captions, at least 20; by default 20,071, or 1,703 with poses. Whatever is a share stays
        so.
    kind : {"news", "poses"}, default="news"
    protocol : {"I", "II"}, default="I"
        Of kind ``"news"``: which of the thesis's protocols the ambiguity is set for. I: names of 20 or more
        occurrences, any item may be a test item. II: names of 3 or more, more names per caption, all items
        with spatial indicators in the training set. By their printed numbers the two cannot be had from one
        corpus (see ``statistics``).
    n_names : int, optional
        Identities, from 30 to 260; 260 by default, 60 with poses.
    exponent : float >= 0, default=0.76
        Of the weights of identities; 0.76 leaves about 214 names with 20 or more occurrences at full size.
    p_correlated : float in [0, 1], default=0.4
        Chance that the second of two identities in an image is the partner of the first.
    test_share : float in [0, 0.9], optional
        Share of test items, at most 0.8 for protocol II; by default 0.2, 10,071/20,071 for protocol II,
        103/1,703 with poses. Test items take samples of the test halves of the three sets.
    digit_side : {28, 14, 7, 4}, default=14
        Pixels per side of the averaged digit.
    random_state : int, Generator or None, default=0
        Names do not depend on it.

    Returns
    -------
    CaptionedData

    Notes
    -----
    No pair of a letter sample and a digit sample is used twice; single samples are, all of a class equally
    often; `ValueError` if the corpus is larger than they allow. 20,071 items take about 3 s and 430 MB,
    besides 2 s for reading MNIST the first time.

    References
    ----------
    M. Guillaumin, J. Verbeek and C. Schmid (2010). Multiple instance metric learning from automatically
    labeled bags of faces. ECCV. Jie Luo, B. Caputo and V. Ferrari (2009). Who's doing what: joint modeling of
    names and verbs for simultaneous face and pose annotation. NIPS.

    Examples
    --------
    >>> from cuelearn.datasets.captioned import make_captioned
    >>> data = make_captioned(200)
    >>> data.faces.shape[1], int(data.bag_sizes.sum())
    (348, 310)
    """
    # Not at the top: data sets can be had without compiling a chapter's algorithms.
    from cuelearn.mms import Region, Vocabulary

    if kind not in ("news", "poses"):
        raise ValueError(f"kind must be 'news' or 'poses', got {kind!r}")
    poses = kind == "poses"
    if protocol not in ("I", "II") or (poses and protocol != "I"):
        raise ValueError(f"protocol must be 'I' or 'II', and 'I' with poses, got {protocol!r}")
    full = POSES_SIZE if poses else FULL_SIZE
    n = full if n_items is None else check_count("n_items", n_items, 20)
    n_names = (60 if poses else N_IDENTITIES) if n_names is None else check_count("n_names", n_names, 30)
    if n_names > N_IDENTITIES:
        raise ValueError(f"n_names must be at most {N_IDENTITIES}, pairs of letter and digit, got {n_names}")
    if test_share is None:
        usual = {"I": 0.2, "II": 1 - TRAIN_PROTOCOL_2 / FULL_SIZE}[protocol]
        test_share = POSES_TEST / POSES_SIZE if poses else usual
    exponent = check_non_negative("exponent", exponent)
    p_correlated = _share("p_correlated", p_correlated, 1)
    test_share = _share("test_share", test_share, 0.9 if protocol == "I" else 0.8)
    if digit_side not in (28, 14, 7, 4):
        raise ValueError(f"digit_side must be 28, 14, 7 or 4, got {digit_side!r}")
    # One stream each, so that a change of words or boxes leaves people and samples alone.
    *streams, sample_rng = as_generator(random_state).spawn(5)
    world = simulator("captions")
    made = world.compose(streams, n, poses, protocol, n_names, exponent, p_correlated, test_share)

    spelled = np.array([*VERBS, NULL])
    mentions = pd.DataFrame(made.mentions, columns=["item", "name", "face", "verb", "place"])
    mentions["verb"] = spelled[mentions["verb"]]
    kind_of, person, verb = (
        np.array([getattr(face, field) for face in made.faces]) for field in ("kind", "person", "verb")
    )
    numbers = np.where(kind_of == _STRANGER, made.first_stranger + person, person)
    numbers[kind_of == _FALSE] = -1
    in_test = np.repeat(made.is_test, made.n_faces)
    samples = _draw_samples(sample_rng, kind_of, person, made.identity, made.n_strangers, verb, in_test)
    words, pen = {}, ""
    if poses:
        words = {v.label: list(dict.fromkeys([v.base, v.third, v.gerund, v.past])) for v in world.VERBS}
        pen = ", a pose a stroke of Pendigits"
    what = "name-verb pairs" if poses else f"names, with the ambiguity of protocol {protocol}"
    named = {str(made.labels[k]): made.forms(k) for k in np.unique(mentions["name"]).tolist()}
    data = CaptionedData(
        captions=made.captions,
        regions=[[Region(what, box) for what, box in found] for found in made.regions],
        faces=_features(samples, kind_of, digit_side),
        poses=_mixed_pens(_pools(), samples[:, 2], kind_of) / np.float32(100) if poses else None,
        bag_sizes=made.n_faces,
        names=np.append(made.labels, NULL)[numbers],
        verbs=np.where(kind_of == _FALSE, NULL, spelled[verb]) if poses else None,
        is_test=made.is_test,
        has_position=made.has_position,
        vocabulary=Vocabulary(named, words),
        statistics=None,
        description=(
            f"{n} news-like items composed of real samples for {what}: a person is a pair of a letter and a "
            f"digit, a face a sample of letter recognition beside one of MNIST{pen}; names and captions are "
            "invented."
        ),
        provenance=Provenance(
            f"captioned-{kind}",
            "generated",
            "composed of letter recognition and Pendigits (CC BY 4.0) and MNIST (CC BY-SA 3.0 as usually "
            "stated)",
            None,
            "composed after Jie Luo (2011), EPFL thesis 5233, sections 5.6 and 5.7 and appendix A",
            f"make_captioned({n}, kind={kind!r}, protocol={protocol!r}, n_names={n_names}, "
            f"exponent={exponent}, p_correlated={p_correlated}, test_share={test_share}, "
            f"digit_side={digit_side}, random_state={random_state})",
            "composed",
        ),
        labels=made.labels,
        mentions=mentions,
        kinds=np.array(KINDS)[kind_of],
        samples=samples,
        sizes=made.sizes,
    )
    return data._replace(statistics=world.statistics(data, protocol, n_names))
