"""Captions: mentions of names, verbs and places, and candidate sets from them and image regions (thesis 5.3,
5.6.1, 5.7.1)."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Literal, NamedTuple, Self

import numpy as np
from scipy.optimize import linear_sum_assignment

from cuelearn.expect import expect_among, expect_distinct, expect_instance, expect_list, expect_word
from cuelearn.mms.candidates import MOST_LISTED, CandidateSet, Matching

__all__ = [
    *("ItemCandidates", "Mention", "Region", "Vocabulary"),
    *("candidate_set", "candidates_from_caption", "mentions"),
]

#: Name of label 0 of every attribute.
NULL = "null"
WORD = re.compile(r"\w+")
#: Between names with the same verb: "(L), first lady", "and her coach".
JOINED = re.compile(r"(?:\s*\([^()]*\))?(?:,?\s+and\b|\s*&|,)(?:\s+[\w'\u2019.,-]+){0,4}\s+")
SENTENCE_ENDS = re.compile(r"[.!?;]\s+[A-Z]")

SIDE = r"(?:(?i:left|right|top|bottom|middle|cent(?:er|re))|[LRC])"
PLACE = rf"(?:(?P<rank>\d)(?:st|nd|rd|th)\s+(?:from\s+)?(?:the\s+)?)?(?P<side>{SIDE})"
#: Place right after a name: "(L)", "(2nd from left)", ", left,", " at right.".
PLACE_AFTER = re.compile(
    rf"\s*\(\s*{PLACE}\s*\)"
    rf"|(?:,\s*|\s+(?=at|on|in))(?:(?:at|on|in)\s+(?:the\s+)?)?(?P<word>{SIDE})\s*(?=[,.;:)]|$|and\b)"
)
SIDES = {"l": "left", "r": "right", "c": "middle", "center": "middle", "centre": "middle"}


class Mention(NamedTuple):
    """A name in a caption, with its verb and place.

    Examples
    --------
    >>> from cuelearn.mms import Mention, Vocabulary, mentions
    >>> mentions("Ann Lee (L) waves.", Vocabulary(["Ann Lee"], ["wave"]))
    [Mention(name='Ann Lee', verb='wave', place='left')]
    """

    name: str
    verb: str = ""  # "" if none is known
    place: str = ""  # "left", "right", "middle", "top", "bottom", or e.g. "2nd from left"


def given_words(what, words):
    """The labels, and the label of each surface form; a label is its own first form."""
    given = words
    if not isinstance(words, Mapping):
        given = expect_list(what, words, "words or a dict from a word to its surface forms", least=0)
        words = dict.fromkeys(given, ())
    if NULL in words or len(words) < len(given):
        raise ValueError(f"{what} must hold every word once, none of them {NULL!r}")
    owner = {}
    for label, forms in words.items():
        for form in (label, *expect_list(f"{what}[{label!r}]", forms, "surface forms", least=0)):
            if not isinstance(form, str) or not WORD.search(form):
                raise TypeError(f"{what} must hold words with at least one letter, got {form!r}")
            if owner.setdefault(form, str(label)) != label:
                owners = f"{owner[form]!r} and {label!r}"
                raise ValueError(f"{what} must give a surface form to one label, got {form!r} for {owners}")
    return list(map(str, words)), owner


def inflections(verb):
    """Regular inflections of a base form."""
    if re.search(r"[^aeiou]y$", verb):
        stem = verb[:-1]
        return [f"{verb}ing", f"{stem}ies", f"{stem}ied"]
    stem = re.sub(r"(?<!e)e$", "", verb)
    stems = [stem]
    if re.search(r"[aeiou][bdglmnprt]$", verb):
        stems = [stem, stem + stem[-1]]
    third = verb + ("es" if re.search(r"([sxzo]|ch|sh)$", verb) else "s")
    return [third, *(s + ending for s in stems for ending in ("ing", "d" if s.endswith("e") else "ed"))]


def index_of(labels, gap=r"\s+"):
    """First word of a form -> [(pattern, label)], longest first."""
    index = {}
    for form, label in sorted(labels.items(), key=lambda item: -len(item[0])):
        words = gap.join(map(re.escape, form.split()))
        index.setdefault(WORD.search(form)[0], []).append((rf"(?<![\w-]){words}(?![\w-])", label))
    return index


def index_of_verbs(labels):
    """`index_of` with inflections of first words; up to three words may separate the others."""
    inflected = dict(labels)
    for form, label in labels.items():
        first, *rest = form.split()
        for start in inflections(first):
            inflected.setdefault(" ".join([start, *rest]), label)
    return index_of(inflected, gap=r"\s+(?:[\w-]+\s+){0,3}?")


class Vocabulary:
    """Names and verbs that serve as labels.

    Parameters
    ----------
    names : list of str, or dict of str to list of str
        Labels, or labels with further surface forms: ``{"Barack Obama": ["President of the USA"]}``.
    verbs : list of str, or dict of str to list of str, default ()
        Base forms, or labels with further forms (irregular ones, synonyms): ``{"shake hands": ["shook
        hands"]}``. Regular inflections of the first word are added: waves, waving, waved.

    Attributes
    ----------
    names, verbs : ndarray of str
        The labels, "null" first: label k of the attribute is ``names[k]`` (``verbs[k]``).

    Raises
    ------
    ValueError
        If a word is "null" or repeated, or two labels share a surface form.

    Examples
    --------
    >>> from cuelearn.mms import Vocabulary
    >>> words = Vocabulary(["Roger Federer", "Andy Roddick"], {"backhand": ["hit a backhand"]})
    >>> words.names.tolist(), words.verbs.tolist()
    (['null', 'Roger Federer', 'Andy Roddick'], ['null', 'backhand'])
    >>> words.only(names=["Andy Roddick"]).names.tolist()
    ['null', 'Andy Roddick']
    """

    def __init__(
        self,
        names: Sequence[str] | Mapping[str, Sequence[str]],
        verbs: Sequence[str] | Mapping[str, Sequence[str]] = (),
    ):
        names, name_of = given_words("names", names)
        verbs, verb_of = given_words("verbs", verbs)
        expect_list("names", names, "names")
        self.name_forms = index_of(name_of)
        self.verb_forms = index_of_verbs(verb_of)
        self.name_label = dict.fromkeys(names, 0)
        self.verb_label = dict.fromkeys(verbs, 0)
        self._keep(names, verbs)

    def _keep(self, names, verbs):
        self.names = np.array([NULL, *names])
        self.verbs = np.array([NULL, *verbs])
        self.name_label = dict.fromkeys(self.name_label, 0) | {name: k for k, name in enumerate(names, 1)}
        self.verb_label = dict.fromkeys(self.verb_label, 0) | {verb: k for k, verb in enumerate(verbs, 1)}

    def only(self, names: Sequence[str] | None = None, verbs: Sequence[str] | None = None) -> Self:
        """The `Vocabulary` of these labels (default: all), in their order. Other words are still recognised,
        so that their places and verbs go to no other name, but count as null."""
        kept = []
        for what, chosen, labels in (("names", names, self.names), ("verbs", verbs, self.verbs)):
            known = labels[1:].tolist()
            if chosen is None:
                chosen = known
            chosen = expect_list(what, chosen, "labels", least=0)
            expect_among(what, chosen, [NULL, *known])
            kept.append([label for label in known if label in chosen])
        expect_list("names", kept[0], "names")
        smaller = copy(self)
        smaller._keep(*kept)
        return smaller

    def __repr__(self):
        return f"<Vocabulary: {len(self.names) - 1} names, {len(self.verbs) - 1} verbs>"


def find(caption, index):
    """Start, end and label of every surface form in a caption."""
    end = 0
    for word in WORD.finditer(caption):
        for pattern, label in index.get(word[0], ()) if word.start() >= end else ():
            match = re.compile(pattern).match(caption, word.start())
            if match:
                end = match.end()
                yield word.start(), end, label
                break


def place_of(match):
    """The place of a `PLACE` match, None if invalid."""
    side = match["side"].lower()
    side = SIDES.get(side, side)
    rank = int(match["rank"] or 1)
    if rank == 1:
        return side
    if rank == 0 or side == "middle":
        return None
    ending = {2: "nd", 3: "rd"}.get(rank, "th")
    return f"{rank}{ending} from {side}"


def place_after(caption, end):
    match = PLACE_AFTER.match(caption, end)
    if not match:
        return ""
    return place_of(re.fullmatch(PLACE, match["word"]) if match["word"] else match) or ""


def mentions(caption: str, vocabulary: Vocabulary) -> list[Mention]:
    """Names in a caption, in text order, with their verbs and places.

    Parameters
    ----------
    caption : str
    vocabulary : Vocabulary

    Returns
    -------
    list of Mention

    Notes
    -----
    A rule for plain captions; `candidates_from_caption` also takes `Mention` lists of other parsers.

    Names are the longest known surface forms, case-sensitive, of whole words: "Obama's" names Obama,
    "Obama-style" does not. A verb belongs to the nearest name before it in its sentence and to names joined
    to that by commas and "and" ("A (L), first lady B and C wave"); up to three words may separate its words:
    "hits a two-handed backhand". A place follows a name: "(L)", "(R)", "(C)", "(left)", "(2nd from left)",
    ", left," or "at right" before a comma, a full stop or "and".

    Examples
    --------
    >>> from cuelearn.mms import Vocabulary, mentions
    >>> words = Vocabulary(["Barack Obama", "Michelle Obama"], ["wave", "stand"])
    >>> caption = "Barack Obama (L) waves with his wife Michelle Obama (R) standing beside him."
    >>> for mention in mentions(caption, words):
    ...     print(*mention)
    Barack Obama wave left
    Michelle Obama stand right
    """
    if not isinstance(caption, str):
        raise TypeError(f"caption must be a str or a list of Mention, got {type(caption).__name__}")
    if not caption.strip():
        raise ValueError("caption must hold some text, got an empty one")
    expect_instance("vocabulary", vocabulary, Vocabulary)
    names = list(find(caption, vocabulary.name_forms))
    verb_of = [""] * len(names)
    for start, _, verb in find(caption, vocabulary.verb_forms):
        nearest = sum(end <= start for _, end, _ in names) - 1
        if nearest < 0 or SENTENCE_ENDS.search(caption, names[nearest][1], start):
            continue
        group = [nearest]
        while group[-1] and JOINED.fullmatch(caption, names[group[-1] - 1][1], names[group[-1]][0]):
            group.append(group[-1] - 1)
        for k in group:
            verb_of[k] = verb_of[k] or verb
    return [
        Mention(name, verb, place_after(caption, end))
        for (_, end, name), verb in zip(names, verb_of, strict=True)
    ]


#: Largest horizontal offset of a face from its body, over the body's width.
NEAR_CENTRE = 0.25
NO_PAIR = 1e6


class Region(NamedTuple):
    """A detected region.

    Examples
    --------
    >>> from cuelearn.mms import Region
    >>> Region("face", (10, 10, 30, 40)).kind
    'face'
    """

    kind: Literal["face", "body"]  # "face" or "body": a person's upper body, head included
    box: tuple[float, float, float, float]  # (x0, y0, x1, y1) in pixels, y downward, x0 < x1 and y0 < y1


class ItemCandidates(NamedTuple):
    """The candidate labeling set of one image with its caption.

    Attributes
    ----------
    candidates : ndarray of int32, shape (n_candidates, n_instances, n_attributes), or Matching
        In the order of figure 5.4: the first way to assign as many words as possible, then its parts, those
        with more words first, then the second way, and so on.
    words : list of tuple of int
        Labels of each word, one per attribute, in text order.
    instances : list of tuple of int
        Region numbers of each instance: a face, a body, or a person's face and body.
    positions : dict of int to str
        The indicators used: word number to "left", "top", "2nd from left", ...
    note : str
        What was left out or dropped, joined by "; ".

    Examples
    --------
    >>> from cuelearn.mms import ItemCandidates, Region, Vocabulary, candidates_from_caption
    >>> face = Region("face", (10, 10, 30, 30))
    >>> item = candidates_from_caption("Ann Lee smiles.", [face], Vocabulary(["Ann Lee"]))
    >>> isinstance(item, ItemCandidates), item.words, item.instances
    (True, [(1,)], [(0,)])
    """

    candidates: np.ndarray | Matching
    words: list
    instances: list
    positions: dict
    note: str


def checked_regions(regions):
    kinds = []
    boxes = []
    for number, region in enumerate(expect_list("regions", regions, "Region")):
        try:
            kind, (x0, y0, x1, y1) = region
            ordered = -math.inf < x0 < x1 < math.inf and -math.inf < y0 < y1 < math.inf
        except (TypeError, ValueError):
            ordered = False
        if not ordered or kind not in ("face", "body"):
            raise ValueError(
                f"regions[{number}] must be a Region('face' or 'body', (x0, y0, x1, y1)) with finite x0 < x1 "
                f"and y0 < y1, got {region!r}"
            )
        kinds.append(kind)
        boxes.append((float(x0), float(y0), float(x1), float(y1)))
    return kinds, boxes


def centre(box, axis):
    return (box[axis] + box[axis + 2]) / 2.0


def apart(face, body):
    """A face's offset from the axis of a body over its width; `NO_PAIR` if not its own."""
    x0, y0, x1, y1 = body
    off = abs(centre(face, 0) - centre(body, 0)) / (x1 - x0)
    if off <= NEAR_CENTRE and y0 <= centre(face, 1) <= y1:
        return off
    return NO_PAIR


def find_instances(kinds, boxes, attributes):
    """Region numbers of each instance, the boxes that give its place, and a note."""
    faces, bodies = ([k for k, kind in enumerate(kinds) if kind == wanted] for wanted in ("face", "body"))
    if len(attributes) == 1:
        chosen, kind = (faces, "face") if attributes[0] == "name" else (bodies, "body")
        if not chosen:
            raise ValueError(f"regions must hold a {kind}, to which a {attributes[0]} belongs, got none")
        return [(k,) for k in chosen], [boxes[k] for k in chosen], ""
    costs = np.array([[apart(boxes[face], boxes[body]) for body in bodies] for face in faces])
    rows, columns = linear_sum_assignment(costs.reshape(len(faces), len(bodies)))
    # as many pairs as possible, with the least total distance
    pairs = [(faces[a], bodies[b]) for a, b in zip(rows, columns, strict=True) if costs[a, b] < NO_PAIR]
    if not pairs:
        raise ValueError(
            "regions must hold a face near the horizontal centre of a body's box and within it, got none"
        )
    alone = len(faces) - len(pairs)
    without = len(bodies) - len(pairs)
    note = f"left out: faces without a body {alone}, bodies without a face {without}"
    return sorted(pairs), [boxes[face] for face, _ in sorted(pairs)], note if alone or without else ""


def instance_at(place, boxes):
    """Number of the instance at a place, or None and the reason."""
    n = len(boxes)
    if n < 2:
        return None, "a single region has no place among others"
    number, _, side = place.rpartition(" from ")
    if side == "middle" and n % 2 == 0:
        return None, f"{n} regions have no middle"
    rank = n // 2 if side == "middle" else int(number[:-2]) - 1 if number else 0
    if rank >= n:
        return None, f"there are only {n} regions"
    axis = int(side in ("top", "bottom"))
    along = [centre(box, axis) for box in boxes]
    ascending = sorted(range(n), key=along.__getitem__)
    instance = ascending[n - 1 - rank if side in ("right", "bottom") else rank]
    if along.count(along[instance]) > 1:
        return None, "two regions lie at the same place"
    return instance, ""


def placed_names(mentioned, boxes, notes):
    """{name: (instance, place)} of names with a usable place."""
    places = {}
    for mention in mentioned:
        if mention.place:
            places.setdefault(mention.name, []).append(mention.place)
    placed = {}
    for name, own in places.items():
        at = {}
        for place in dict.fromkeys(own):
            instance, reason = instance_at(place, boxes)
            if instance is None:
                notes.append(f'indicator "{place}" of {name} dropped: {reason}')
            else:
                at.setdefault(instance, place)
        if len(at) > 1:
            both = '" and "'.join(at.values())
            notes.append(f'indicators "{both}" of {name} dropped: they contradict each other')
        elif at:
            [placed[name]] = at.items()
    return placed


def checked_mentions(caption, vocabulary):
    if not isinstance(caption, (list, tuple)):
        return mentions(caption, vocabulary)
    expect_instance("vocabulary", vocabulary, Vocabulary)
    checked = []
    for number, mention in enumerate(caption):
        expect_instance(f"caption[{number}]", mention, Mention)
        expect_among(f"caption[{number}].name", [mention.name], vocabulary.name_label)
        expect_among(f"caption[{number}].verb", [mention.verb], ["", *vocabulary.verb_label])
        match = re.fullmatch(PLACE, mention.place)
        place = None
        if match:
            place = place_of(match)
        if mention.place and place is None:
            wanted = "a place such as '2nd from left'"
            raise ValueError(f"caption[{number}] must have {wanted}, got {mention.place!r}")
        checked.append(mention._replace(place=place or ""))
    return checked


def choices(word_of, placed):
    """Words of instances at known places, {instance: words, null (0) last}, and of others, {word: uses}."""
    fixed = {}
    free = {}
    for person, word in word_of.items():
        if person in placed:
            fixed.setdefault(placed[person], set()).add(word)
        elif word:
            free[word] = free.get(word, 0) + 1
    fixed = {m: (*sorted(words - {0}), *(words & {0})) for m, words in sorted(fixed.items())}
    return fixed, dict(sorted(free.items()))


@lru_cache(maxsize=256)
def free_labelings(n, capacities, most):
    """Ways to give n instances at most one word each, word w at most ``capacities[w - 1]`` times, 0 for null;
    shape (number, n), or None above `most`.

    In the order of figure 5.4, all-null last: by the completion (unused copies go to the first free places),
    then by the copies left out.
    """
    copies = [w for w, times in enumerate(capacities, 1) for _ in range(min(times, n))]
    ways = [()]  # places of the copies so far, n if left out; ascending for copies of one word
    for c, w in enumerate(copies):
        alike = c > 0 and copies[c - 1] == w
        longer = []
        for way in ways:
            for place in range(n + 1):
                if place == n or (place not in way and not (alike and place <= way[-1])):
                    longer.append((*way, place))
        ways = longer
        if len(ways) > most:
            return None

    def rank(way):
        whole = list(way)
        for c, place in enumerate(way):
            if place == n:
                whole[c] = next(free for free in range(n + 1) if free == n or free not in whole)
        out = [place == n for place in way]
        return all(out), whole, sum(out), out

    labelings = np.zeros((len(ways), n + 1), dtype=np.int16)
    for row, way in zip(labelings, sorted(ways, key=rank), strict=True):
        row[list(way)] = copies
    return labelings[:, :n]


def list_labelings(n, fixed, free):
    """All candidates as word numbers from 1, shape (count, n); None if too many."""
    here = np.array(list(itertools.product(*fixed.values())), dtype=int)
    all_null = all(0 in words for words in fixed.values())  # all null is not a candidate
    elsewhere = [m for m in range(n) if m not in fixed]
    most = (MOST_LISTED + all_null) // len(here)
    ways = free_labelings(len(elsewhere), tuple(free.values()), most)
    if ways is None:
        return None
    words = np.array([0, *free])[ways]
    labelings = np.empty((len(here) * len(words), n), dtype=int)
    labelings[:, list(fixed)] = np.repeat(here, len(words), axis=0)
    labelings[:, elsewhere] = np.tile(words, (len(here), 1))
    return labelings[: len(labelings) - all_null]  # all null is last


def mask_of(n, fixed, free, n_words):
    allowed = np.zeros((n, n_words + 1), dtype=bool)
    allowed[:, [0, *free]] = True
    for m, words in fixed.items():
        allowed[m] = False
        allowed[m, list(words)] = True
    return allowed


def checked_attributes(attributes):
    names = expect_list("attributes", attributes, "'name' and 'verb'")
    expect_among("attributes", names, ("name", "verb"))
    return tuple(expect_distinct("attributes", names))


def candidates_from_caption(
    caption: str | Sequence[Mention],
    regions: Sequence[Region],
    vocabulary: Vocabulary,
    *,
    attributes: Sequence[str] = ("name",),
    constraints: Literal["ABCD", "ABC"] = "ABCD",
) -> ItemCandidates:
    r"""The candidate labeling set of an image, from its caption.

    The instances are faces (for names), bodies (for verbs), or persons, each a face and a body (for both):
    constraint C1. A word is a name, a verb, or a name with its verb, which is null if unknown (C2). A
    candidate gives every instance one word or null [A] from the caption [C], uses every word at most once [B,
    C3], respects the spatial indicators [D, C4], and is not all null. For f instances and w words without
    indicators there are

    .. math:: L = \sum_{j=1}^{\min(f, w)} \binom f j \binom w j\, j!

    candidates: 6 for two and two, 33 for three and three. (Section 5.6.1 prints the sum from j = 0 and
    without :math:`j!`.)

    Parameters
    ----------
    caption : str, or list of Mention
        A text is parsed by `mentions`.
    regions : list of Region
        A face and a body form a person if the face's centre lies within the body's box and at most a quarter
        of its width from its vertical axis; as many pairs as possible are formed, the closest ones. For names
        and verbs together, others are left out.
    vocabulary : Vocabulary
    attributes : tuple, default ("name",)
        ("name",), ("verb",) or both, in the order of the labels. A verb without a known name is no word. For
        verbs alone, a word may be used once per subject, equal vectors count once, and a name's place is that
        of its verb's body.
    constraints : {"ABCD", "ABC"}
        Without "D" indicators are ignored.

    Returns
    -------
    ItemCandidates
        More than 10,000 candidates are a `Matching`.

    Raises
    ------
    ValueError
        If no region, face, body or person can be labeled, or a verb may be repeated in more than 10,000
        labelings, which a `Matching` cannot represent.

    Notes
    -----
    A name with an indicator is only at its place, and the instance there only takes names indicated there, or
    null if the vocabulary counts the name as null. Places are those of the centres of faces (of bodies for
    verbs alone). Inapplicable indicators are dropped: the middle of an even number, a place of a single
    region, a place shared by two instances, two places of one name; all, if they leave no candidate. A
    caption without known word has one candidate, all null.

    Examples
    --------
    As in figure 5.4; 1 is Barack Obama, 2 Michelle Obama, 0 null.

    >>> from cuelearn.mms import Region, Vocabulary, candidates_from_caption
    >>> caption = "President Barack Obama and first lady Michelle Obama wave from the steps of Air Force One."
    >>> faces = [Region("face", (10, 10, 30, 30)), Region("face", (50, 10, 70, 30))]
    >>> item = candidates_from_caption(caption, faces, Vocabulary(["Barack Obama", "Michelle Obama"]))
    >>> item.candidates[:, :, 0].tolist()
    [[1, 2], [1, 0], [0, 2], [2, 1], [0, 1], [2, 0]]
    """
    mentioned = checked_mentions(caption, vocabulary)
    attributes = checked_attributes(attributes)
    expect_word("constraints", constraints, ("ABCD", "ABC"))
    if "verb" in attributes:
        expect_list("vocabulary.verbs", vocabulary.verbs[1:], "verbs")
    instances, boxes, note = find_instances(*checked_regions(regions), attributes)
    notes = []
    if note:
        notes = [note]
    words, word_of = find_words(mentioned, vocabulary, attributes)
    n = len(instances)
    if not words:
        null_alone = np.zeros((1, n, len(attributes)), dtype=np.int32)
        return ItemCandidates(null_alone, [], instances, {}, "; ".join([*notes, "no known word"]))
    placed = {}
    if "D" in constraints:
        placed = placed_names(mentioned, boxes, notes)
    taken = choices(word_of, {name: at for name, (at, _) in placed.items()})
    labelings = list_labelings(n, *taken)
    if labelings is not None and len(labelings) == 0:
        notes.append("all indicators dropped: they leave no candidate")
        placed = {}
        taken = choices(word_of, placed)
        labelings = list_labelings(n, *taken)
    places = {}
    for name, (_, place) in placed.items():
        if word_of[name]:
            places.setdefault(word_of[name] - 1, []).append(place)
    positions = {word: ", ".join(places[word]) for word in sorted(places)}
    if labelings is not None:
        kept = np.array([(0,) * len(attributes), *words], dtype=np.int32)[labelings]
    else:
        used = [word for word in word_of.values() if word]
        if len(set(used)) < len(used):
            wanted = f"at most {MOST_LISTED} labelings where a word may be used twice"
            raise ValueError(f"caption must leave {wanted}, got more: a Matching uses every word once")
        notes.append(f"more than {MOST_LISTED} labelings: kept as a Matching")
        kept = Matching(np.array(words, dtype=np.int32), mask_of(n, *taken, len(words)))
    return ItemCandidates(kept, words, instances, positions, "; ".join(notes))


def find_words(mentioned, vocabulary, attributes):
    """The words in text order, and each name's word number (0: none)."""
    verb_of = {}  # the first known
    for mention in mentioned:
        verb = vocabulary.verb_label.get(mention.verb, 0)
        verb_of[mention.name] = verb_of.get(mention.name) or verb
    words = {}
    word_of = {}
    for name, verb in verb_of.items():
        labels = {"name": vocabulary.name_label[name], "verb": verb}
        known = labels["name"] and (verb or "name" in attributes)
        word = tuple(labels[a] for a in attributes)
        word_of[name] = words.setdefault(word, len(words) + 1) if known else 0
    return list(words), word_of


def candidate_set(
    items: Sequence[tuple[str | Sequence[Mention], Sequence[Region]]],
    vocabulary: Vocabulary,
    attributes: Sequence[str] = ("name",),
    *,
    constraints: Literal["ABCD", "ABC"] = "ABCD",
) -> CandidateSet:
    """The candidate labeling sets of many images.

    Parameters
    ----------
    items : sequence of pairs (caption, regions)
        As in `candidates_from_caption`, like the options. Errors give the item's number.
    vocabulary : Vocabulary
    attributes : tuple, default ("name",)

    Returns
    -------
    CandidateSet
        One bag per item, with the vocabulary's labels as classes and label 0 as null.

    Examples
    --------
    >>> from cuelearn.mms import Region, Vocabulary, candidate_set
    >>> words = Vocabulary(["Ann Lee", "Bo Ray"])
    >>> faces = [Region("face", (10, 10, 30, 30)), Region("face", (50, 10, 70, 30))]
    >>> sets = candidate_set([("Ann Lee and Bo Ray meet.", faces), ("Bo Ray waves.", faces[:1])], words)
    >>> sets.n_candidates, sets.classes[0].tolist()
    ([6, 1], ['null', 'Ann Lee', 'Bo Ray'])
    """
    expect_instance("vocabulary", vocabulary, Vocabulary)
    attributes = checked_attributes(attributes)
    options = {"attributes": attributes, "constraints": constraints}
    sets = []
    for number, item in enumerate(expect_list("items", items, "pairs (caption, regions)")):
        pair = expect_list(f"items[{number}]", item, "entries, caption and regions", 2)
        try:
            sets.append(candidates_from_caption(*pair, vocabulary, **options).candidates)
        except (TypeError, ValueError) as error:
            raise type(error)(f"items[{number}]: {error}") from None
    classes = [vocabulary.names if a == "name" else vocabulary.verbs for a in attributes]
    return CandidateSet(sets, classes=classes, null=(0,) * len(attributes))
