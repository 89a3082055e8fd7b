r"""From a caption and the regions of its image to the candidate labeling set (thesis sections 5.3, 5.6.1 and 5.7.1).

Known words (`Vocabulary`) are found in the text, verbs are joined to their subjects and spatial indicators to their names, by the rules
of `cuelearn.mms.caption_text`; `mentions` shows how a caption was read. The constraints then say which regions may take which words.

References
----------
L. Jie (2011). Learning from multiple cues (thesis), sections 5.3, 5.6.1, 5.7.1, figures 5.1, 5.2, 5.4 and 5.5. T. Berg et al. (2004).
Names and faces in the news. CVPR. L. Jie, B. Caputo and V. Ferrari (2009). Who's doing what. NIPS 22.
"""

import itertools
import math
from functools import lru_cache
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from cuelearn.core.checks import check_count
from cuelearn.mms.candidates import CandidateSet, Matching
from cuelearn.mms.caption_text import Mention, Text, Vocabulary, check_caption, mentions

__all__ = [
    "ItemCandidates",
    "Mention",
    "Region",
    "Vocabulary",
    "candidate_set",
    "candidates_from_caption",
    "mentions",
]

#: A face belongs to a body if their centres lie at most this share of the body's width apart, horizontally.
NEAR_CENTRE = 0.25


class Region(NamedTuple):
    """A region that a detector found.

    Attributes
    ----------
    kind : {"face", "body"}
        A body is the upper body of a person, its head included.
    box : tuple of 4 floats
        (x0, y0, x1, y1) in pixels, y downward, x0 < x1 and y0 < y1.
    """

    kind: str
    box: tuple


class ItemCandidates(NamedTuple):
    """The candidate labeling set of one image with its caption.

    Attributes
    ----------
    candidates : ndarray of int32, shape (n_candidates, n_instances, n_attributes), or Matching
        In the order of figure 5.4: the first way to hand out as many words as possible, then its parts, those with more words first,
        then the second way, and so on.
    words : list of tuple of int
        Labels that come with each word, one per attribute, in the order of the text.
    instances : list of tuple of int
        Region numbers of each instance: a face, a body, or the face and the body of a person; in the order of the regions given.
    positions : dict of int to str
        The spatial indicators that were used: word number to "left", "right", "middle", "top", "bottom", "2nd from left", ...
    note : str
        What fallback was taken, "" if none; several are joined by "; ".
    """

    candidates: np.ndarray | Matching
    words: list
    instances: list
    positions: dict
    note: str


# --------------------------------------------------------------------------- regions


def _checked_regions(regions):
    if isinstance(regions, (str, bytes, Region)) or not hasattr(regions, "__len__"):
        raise TypeError(f"regions must be a list of Region, got {regions!r}")
    if len(regions) == 0:
        raise ValueError("regions must hold at least one region, got none")
    checked = []
    for number, region in enumerate(regions):
        try:
            kind, box = region
            x0, y0, x1, y1 = box
        except (TypeError, ValueError):
            raise ValueError(
                f"regions[{number}] must be a Region(kind, (x0, y0, x1, y1)), got {region!r}"
            ) from None
        if kind not in ("face", "body"):
            raise ValueError(f"regions[{number}] must be of kind 'face' or 'body', got {kind!r}")
        if not all(isinstance(v, Real) and math.isfinite(v) for v in (x0, y0, x1, y1)) or not (
            x0 < x1 and y0 < y1
        ):
            raise ValueError(
                f"regions[{number}] must have a box with finite x0 < x1 and y0 < y1, got {box!r}"
            )
        checked.append((kind, float(x0), float(y0), float(x1), float(y1)))
    return checked


def _instances(regions, attributes):
    """Region numbers of each instance, the centres that say where it lies, and how many faces and bodies found no partner (C1)."""
    faces = [k for k, region in enumerate(regions) if region[0] == "face"]
    bodies = [k for k, region in enumerate(regions) if region[0] == "body"]
    centres = [((x0 + x1) / 2.0, (y0 + y1) / 2.0) for _, x0, y0, x1, y1 in regions]
    if len(attributes) == 1:
        chosen, kind = (faces, "face") if attributes[0] == "name" else (bodies, "body")
        if not chosen:
            raise ValueError(f"regions must hold a {kind}, to which a {attributes[0]} belongs, got none")
        return [(k,) for k in chosen], [centres[k] for k in chosen], ""
    if not faces or not bodies:
        raise ValueError(
            f"regions must hold a face and a body, to which a name and its verb belong, got {len(faces)} and {len(bodies)}"
        )
    apart = np.full(
        (len(faces), len(bodies)), 1e6
    )  # far above any number of pairs: as many pairs as possible, then the closest
    for a, face in enumerate(faces):
        x, y = centres[face]
        for b, body in enumerate(bodies):
            _, x0, y0, x1, y1 = regions[body]
            off = abs(x - centres[body][0]) / (x1 - x0)
            if off <= NEAR_CENTRE and y0 <= y <= y1:
                apart[a, b] = off
    rows, columns = linear_sum_assignment(apart)
    pairs = sorted((faces[a], bodies[b]) for a, b in zip(rows, columns, strict=True) if apart[a, b] < 1e6)
    if not pairs:
        raise ValueError(
            "regions must hold a face near the horizontal centre of a body's box and within it, got none"
        )
    lonely = (len(faces) - len(pairs), len(bodies) - len(pairs))
    note = (
        f"left out: faces without a body {lonely[0]}, bodies without a face {lonely[1]}"
        if any(lonely)
        else ""
    )
    return pairs, [centres[face] for face, _ in pairs], note


def _region_at(place, centres):
    """Number of the instance at a place, or the reason why there is none."""
    n = len(centres)
    if n < 2:
        return None, "a single region has no place among others"
    if place.of is not None and place.of != n:
        return None, f"a list of {place.of} persons for {n} regions"
    if place.rank is None and n % 2 == 0:
        return None, f"{n} regions have no middle"
    rank = n // 2 if place.rank is None else place.rank if place.rank >= 0 else n + place.rank
    if not 0 <= rank < n:
        return None, f"there are only {n} regions"
    order = sorted(range(n), key=lambda k: centres[k][place.axis])
    along = [centres[k][place.axis] for k in order]
    if (rank > 0 and along[rank - 1] == along[rank]) or (rank + 1 < n and along[rank + 1] == along[rank]):
        return None, "two regions lie at the same place"
    return order[rank], ""


def _placed(text, centres, notes):
    """Persons whose place says which instance they are: {person: (instance, place)}."""
    placed = {}
    for person, places in text.places.items():
        name = text.vocabulary._people[person]
        at = {}
        for place in dict.fromkeys(places):
            instance, reason = _region_at(place, centres)
            if instance is None:
                notes.append(f'indicator "{place}" of {name} dropped: {reason}')
            else:
                at.setdefault(instance, place)
        if len(at) > 1:
            said = '" and "'.join(str(place) for place in at.values())
            notes.append(f'indicators "{said}" of {name} dropped: they contradict each other')
        elif at:
            placed[person] = next(iter(at.items()))
    return placed


# --------------------------------------------------------------------------- labelings


def _count_free(n_regions, capacities):
    """Ways to give regions at most one word each and word w to at most capacities[w] regions, the all-null one included."""
    ways = [1] + [0] * n_regions  # by the number of regions that have a word
    for most in capacities:
        ways = [
            sum(ways[k - t] * math.comb(n_regions - k + t, t) for t in range(min(most, k) + 1))
            for k in range(n_regions + 1)
        ]
    return sum(ways)


@lru_cache(maxsize=256)
def _free_labelings(n_regions, capacities):
    """Those ways as an array, shape (n, n_regions): 0 for null, w + 1 for word w; in the order of figure 5.4, the all-null one last.

    Copies of the words are placed one after the other, in all places that are left; a word's copies from left to right, so that no
    labeling comes twice. A labeling that does not use all that it could belongs to the one that the unused copies, each put on the first
    place left, complete it to; by these complete ones the labelings are sorted, then by how many copies are left out, then which.
    """
    copies = [w for w, most in enumerate(capacities) for _ in range(min(most, n_regions))]
    places = np.zeros((1, 0), dtype=np.int8)
    free = np.ones((1, n_regions), dtype=bool)
    absent = n_regions
    for c, w in enumerate(copies):
        rows, at = np.nonzero(free)
        if c and copies[c - 1] == w:
            later = at > places[rows, c - 1]
            rows, at = rows[later], at[later]
        left_out = np.arange(len(places))
        new = np.empty((len(rows) + len(left_out), c + 1), dtype=np.int8)
        new[: len(rows), :c], new[: len(rows), c] = places[rows], at
        new[len(rows) :, :c], new[len(rows) :, c] = places, absent
        free = np.concatenate([free[rows], free])
        free[np.arange(len(rows)), at] = False
        places = new
    labelings = np.zeros((len(places), n_regions + 1), dtype=np.int8)
    for c, w in enumerate(copies):
        labelings[np.arange(len(places)), places[:, c]] = w + 1
    labelings = labelings[:, :n_regions]
    whole = places.copy()
    for c in range(len(copies)):
        rows = np.flatnonzero((places[:, c] == absent) & free.any(axis=1))
        whole[rows, c] = free[rows].argmax(axis=1)
        free[rows, whole[rows, c]] = False
    left_out = places == absent
    keys = [*left_out.T[::-1], left_out.sum(axis=1), *whole.T[::-1], ~labelings.any(axis=1)]
    labelings = np.ascontiguousarray(labelings[np.lexsort(keys)])
    labelings.flags.writeable = False
    return labelings


class _Choices(NamedTuple):
    """What the instances may take: `fixed` {instance: words, null (0) last if at all}, `free` {word: how often elsewhere}."""

    n: int
    fixed: dict
    free: dict

    def count(self):
        total = math.prod(len(words) for words in self.fixed.values()) * _count_free(
            self.n - len(self.fixed), tuple(self.free.values())
        )
        return total - all(0 in words for words in self.fixed.values())

    def listed(self):
        """Labelings as word numbers from 1, shape (count, n)."""
        elsewhere = [m for m in range(self.n) if m not in self.fixed]
        free = _free_labelings(len(elsewhere), tuple(self.free.values()))
        words = np.array([0, *self.free], dtype=np.int16)
        fixed = list(itertools.product(*self.fixed.values()))
        fixed = np.array(fixed, dtype=np.int16).reshape(len(fixed), len(self.fixed))
        labelings = np.empty((len(fixed) * len(free), self.n), dtype=np.int16)
        labelings[:, list(self.fixed)] = np.repeat(fixed, len(free), axis=0)
        labelings[:, elsewhere] = np.tile(words[free], (len(fixed), 1))
        if all(0 in words for words in self.fixed.values()):
            labelings = labelings[:-1]  # all null: null comes last everywhere
        return labelings

    def mask(self, n_words):
        """The regions and words as the mask of a `Matching`."""
        allowed = np.zeros((self.n, n_words + 1), dtype=bool)
        allowed[:, [0, *self.free]] = True
        for m, words in self.fixed.items():
            allowed[m] = False
            allowed[m, list(words)] = True
        return allowed


def _choices(n, words_of, placed, repeat):
    """What the instances may take.

    Parameters
    ----------
    n : int
        Instances.
    words_of : dict of int to int
        Word number, from 1, of every person of the caption; 0 for a person without one.
    placed : dict of int to int
        Instance of every person whose place is known.
    repeat : bool
        Whether a word may be used any number of times.
    """
    fixed = {}
    for person, m in placed.items():
        fixed.setdefault(m, set()).add(words_of[person])
    fixed = {
        m: tuple(sorted(words, key=lambda word: (word == 0, word))) for m, words in sorted(fixed.items())
    }
    free = {}
    for person, word in words_of.items():
        if word and person not in placed:
            free[word] = n if repeat else free.get(word, 0) + 1
    return _Choices(n, fixed, dict(sorted(free.items())))


def _checked_attributes(attributes):
    known = attributes if isinstance(attributes, (tuple, list)) else ()
    if not known or any(a not in ("name", "verb") for a in known) or len(set(known)) != len(known):
        raise ValueError(f"attributes must be ('name',), ('verb',) or ('name', 'verb'), got {attributes!r}")
    return tuple(known)


def _checked_constraints(constraints):
    if not isinstance(constraints, str) or not set(constraints) <= set("ABCD"):
        raise ValueError(f"constraints must be letters among 'ABCD', got {constraints!r}")
    if not {"A", "C"} <= set(constraints):
        raise ValueError(
            f"constraints must hold 'A' and 'C', without which a caption gives no labeling vectors, got {constraints!r}"
        )
    return constraints


def candidates_from_caption(
    caption, regions, vocabulary, *, attributes=("name",), constraints="ABCD", max_candidates=10_000
):
    r"""The candidate labeling set of an image, from its caption.

    The instances are the faces (for names), the bodies (for verbs), or the persons, a face and a body each (for both): constraint C1. A
    word is a name, a verb, or a name with its verb, null if it has none (C2). A candidate gives every instance one word or null [A], of
    the caption's [C], uses every word at most once [B, C3], respects the spatial indicators [D, C4], and is not null everywhere. For f
    instances and w words without indicators there are

    .. math:: L = \sum_{j=1}^{\min(f, w)} \binom f j \binom w j\, j!

    of them: 6 for two and two, 33 for three and three. (Section 5.6.1 prints the sum from j = 0 and without :math:`j!`.)

    Parameters
    ----------
    caption : str
    regions : list of Region
        A face and a body are one person if the face's centre lies within the body's box and at most a quarter of its width from the
        box's vertical axis; as many pairs as possible are made, the closest ones. For names and verbs together, a region without partner is
        left out, which `note` says; bodies do not count for names alone, nor faces for verbs alone.
    vocabulary : Vocabulary
    attributes : tuple, default ("name",)
        ("name",), ("verb",) or ("name", "verb"). A verb without a known name as its subject is no word in any of them. For verbs alone a
        word may be used as often as it has subjects, equal vectors count once, and a name's place is that of its verb's body.
    constraints : str, default "ABCD"
        Without "B" a word may be used any number of times, without "D" indicators are ignored. "A" and "C" cannot be left out.
    max_candidates : int, default 10,000
        More labelings than that are not listed but kept as a `Matching`, which `note` says.

    Returns
    -------
    ItemCandidates

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described; if there is no region, face, body or person to label; if there are more than `max_candidates`
        labelings in which a word occurs twice (verbs with several subjects, or without "B"), which a `Matching` cannot say.

    Notes
    -----
    An indicated name can only be at its place, and the instance there only that name, or, where several names are said to be at one
    place, one of them. Instances are compared by the centres of their faces (of their bodies for verbs alone). A name that the vocabulary
    counts as null can be indicated too: the instance is null.

    Fallbacks, said in `note`:

    - a caption without known word has one candidate, null everywhere, as labels come from captions only: "no known word";
    - an indicator that cannot apply is dropped: a middle among an even number, a place among a single region (which may as well be the
      only detected one of several persons), places that two instances share, a list of more or fewer persons than instances, two different
      places for one name;
    - indicators that leave no candidate are all dropped.

    A caption of 40 words takes about 0.2 ms, whatever the vocabulary's size; a caption's time grows with the square of its names.

    References
    ----------
    Thesis sections 5.3 (C1 to C4), 5.6.1 (A to D) and 5.7.1; figures 5.1, 5.2, 5.4 and 5.5.

    Examples
    --------
    The caption of figure 5.4; 1 is Barack Obama, 2 Michelle Obama, 0 null.

    >>> caption = ("President Barack Obama and first lady Michelle Obama wave from the steps of Air Force One "
    ...            "as they arrive in Prague, Czech Republic.")
    >>> faces = [Region("face", (10, 10, 30, 30)), Region("face", (50, 10, 70, 30))]
    >>> item = candidates_from_caption(caption, faces, Vocabulary(["Barack Obama", "Michelle Obama"]))
    >>> item.candidates[:, :, 0].tolist()
    [[1, 2], [1, 0], [0, 2], [2, 1], [0, 1], [2, 0]]
    """
    check_caption(caption, vocabulary)
    attributes, constraints = _checked_attributes(attributes), _checked_constraints(constraints)
    max_candidates = check_count("max_candidates", max_candidates)
    if "verb" in attributes and len(vocabulary.verbs) == 1:
        raise ValueError("vocabulary must hold verbs for the attribute 'verb', got none")
    instances, centres, note = _instances(_checked_regions(regions), attributes)
    notes = [note] if note else []
    text = Text(caption, vocabulary, subjects="verb" in attributes)
    words, word_of = _words(text, attributes)
    n, repeat = len(instances), "B" not in constraints
    null = (0,) * len(attributes)
    if not words:
        return ItemCandidates(
            np.zeros((1, n, len(attributes)), dtype=np.int32),
            [],
            instances,
            {},
            "; ".join([*notes, "no known word"]),
        )
    placed = _placed(text, centres, notes) if "D" in constraints else {}
    choices = _choices(n, word_of, {person: at for person, (at, _) in placed.items()}, repeat)
    count = choices.count()
    if count == 0:
        notes.append("all indicators dropped: they leave no candidate")
        placed = {}
        choices = _choices(n, word_of, {}, repeat)
        count = choices.count()
    said = {}
    for person, (_, place) in placed.items():
        if word_of[person]:
            said.setdefault(word_of[person] - 1, []).append(str(place))
    positions = {word: ", ".join(said[word]) for word in sorted(said)}
    if count <= max_candidates:
        labels = np.array([null, *words], dtype=np.int32)
        return ItemCandidates(labels[choices.listed()], words, instances, positions, "; ".join(notes))
    used = [word for word in word_of.values() if word]
    if repeat or len(set(used)) < len(used):
        raise ValueError(
            f"caption must leave at most max_candidates = {max_candidates} labelings where a word may be used twice, got {count}: "
            f"a Matching uses every word once"
        )
    notes.append(f"{count} labelings, more than max_candidates = {max_candidates}: kept as a Matching")
    kept = Matching(np.array(words, dtype=np.int32), choices.mask(len(words)))
    return ItemCandidates(kept, words, instances, positions, "; ".join(notes))


def _words(text, attributes):
    """The words of a caption in the order of the text, and the number, from 1, of every person's (0 for none)."""
    vocabulary = text.vocabulary
    verb_of = {}
    if "verb" in attributes:
        for verb in text.verbs:
            label = vocabulary._verb_label[verb.verb]
            if label:
                for person in verb.subjects:
                    verb_of.setdefault(person, label)
    words, word_of = {}, {}
    for name in text.names:
        if name.person in word_of:
            continue
        labels = {"name": vocabulary._name_label[name.person], "verb": verb_of.get(name.person, 0)}
        known = labels["name"] and (labels["verb"] or "name" in attributes)
        word = tuple(labels[a] for a in attributes)
        word_of[name.person] = words.setdefault(word, len(words) + 1) if known else 0
    return list(words), word_of


def candidate_set(items, vocabulary, attributes=("name",), *, constraints="ABCD", max_candidates=10_000):
    """The candidate labeling sets of many images.

    Parameters
    ----------
    items : sequence of ItemCandidates, or of pairs (caption, regions)
        Pairs go through `candidates_from_caption`.
    vocabulary : Vocabulary
        The one that the items were made with.
    attributes : tuple, default ("name",)
    constraints, max_candidates
        For pairs.

    Returns
    -------
    CandidateSet
        One bag per item, in their order, with the vocabulary's labels as classes and label 0 as null.

    Raises
    ------
    TypeError, ValueError
        On the first item that is not as described, with its number.
    """
    if not isinstance(vocabulary, Vocabulary):
        raise TypeError(f"vocabulary must be a Vocabulary, got {type(vocabulary).__name__}")
    attributes = _checked_attributes(attributes)
    if isinstance(items, (str, bytes, ItemCandidates)) or not hasattr(items, "__iter__"):
        raise TypeError(f"items must be a list of ItemCandidates, got {type(items).__name__}")
    sets = []
    for number, item in enumerate(items):
        if not isinstance(item, ItemCandidates):
            if not isinstance(item, (tuple, list)) or len(item) != 2:
                raise TypeError(
                    f"items[{number}] must be an ItemCandidates or a pair (caption, regions), got {type(item).__name__}"
                )
            try:
                item = candidates_from_caption(
                    *item,
                    vocabulary,
                    attributes=attributes,
                    constraints=constraints,
                    max_candidates=max_candidates,
                )
            except (TypeError, ValueError) as error:
                raise type(error)(f"items[{number}]: {error}") from None
        candidates = item.candidates
        width = candidates.words.shape[1] if isinstance(candidates, Matching) else candidates.shape[2]
        if width != len(attributes):
            raise ValueError(
                f"items[{number}] must have the attributes {attributes}, got {width} labels per instance"
            )
        sets.append(candidates)
    return CandidateSet(
        sets, classes=[vocabulary.labels_of(a) for a in attributes], null=(0,) * len(attributes)
    )
