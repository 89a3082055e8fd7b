r"""From a caption and the regions of its image to the candidate labeling set (thesis sections 5.3, 5.6.1 and
5.7.1): which regions may take which of the words that a caption mentions."""

import itertools
import math
import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from cuelearn.mms.candidates import MOST_LISTED, CandidateSet, Matching
from cuelearn.mms.captions import PLACE, Mention, check_vocabulary, mentions, place_of

__all__ = ["ItemCandidates", "Region", "candidate_set", "candidates_from_caption"]

#: A face belongs to a body if their centres lie at most this share of the body's width apart, horizontally.
NEAR_CENTRE = 0.25
#: Distance of a face from a body that is not its own: far above any number of pairs.
NO_PAIR = 1e6


class Region(NamedTuple):
    """A region that a detector found.

    Examples
    --------
    >>> from cuelearn.mms import Region
    >>> face = Region("face", (10, 10, 30, 40))
    >>> face.kind, face.box[3] - face.box[1]
    ('face', 30)
    """

    kind: str  # "face" or "body": the upper body of a person, its head included
    box: tuple  # (x0, y0, x1, y1) in pixels, y downward, x0 < x1 and y0 < y1


class ItemCandidates(NamedTuple):
    """The candidate labeling set of one image with its caption.

    Attributes
    ----------
    candidates : ndarray of int32, shape (n_candidates, n_instances, n_attributes), or Matching
        In the order of figure 5.4: the first way to assign as many words as possible, then its parts, those
        with more words first, then the second way, and so on. More than 10,000 are a `Matching`.
    words : list of tuple of int
        Labels that come with each word, one per attribute, in the order of the text.
    instances : list of tuple of int
        Region numbers of each instance: a face, a body, or the face and the body of a person.
    positions : dict of int to str
        The indicators that were used: word number to "left", "top", "2nd from left", ...
    note : str
        What was left out or dropped, joined by "; ".

    Examples
    --------
    >>> from cuelearn.mms import ItemCandidates, Region, Vocabulary, candidates_from_caption
    >>> words = Vocabulary(["Ann Lee", "Bo Ray"])
    >>> faces = [Region("face", (10, 10, 30, 30)), Region("face", (50, 10, 70, 30))]
    >>> item = candidates_from_caption("Ann Lee (L) and Bo Ray meet.", faces, words)
    >>> isinstance(item, ItemCandidates), item.words, item.instances, item.positions
    (True, [(1,), (2,)], [(0,), (1,)], {0: 'left'})
    """

    candidates: np.ndarray | Matching
    words: list
    instances: list
    positions: dict
    note: str


def checked_regions(regions):
    """Kinds and boxes."""
    if isinstance(regions, (str, bytes, Region)) or not hasattr(regions, "__len__"):
        raise TypeError(f"regions must be a list of Region, got {regions!r}")
    if len(regions) == 0:
        raise ValueError("regions must hold at least one region, got none")
    kinds = []
    boxes = []
    for number, region in enumerate(regions):
        try:
            kind, (x0, y0, x1, y1) = region
            ordered = -math.inf < x0 < x1 < math.inf and -math.inf < y0 < y1 < math.inf
        except (TypeError, ValueError):
            ordered = False
        if not ordered or kind not in ("face", "body"):
            wanted = "Region('face' or 'body', (x0, y0, x1, y1)) with finite x0 < x1 and y0 < y1"
            raise ValueError(f"regions[{number}] must be a {wanted}, got {region!r}")
        kinds.append(kind)
        boxes.append((float(x0), float(y0), float(x1), float(y1)))
    return kinds, boxes


def centre(box, axis):
    return (box[axis] + box[axis + 2]) / 2.0


def apart(face, body):
    """How far a face lies from the axis of a body that may be its own, as share of the body's width."""
    x0, y0, x1, y1 = body
    off = abs(centre(face, 0) - centre(body, 0)) / (x1 - x0)
    return off if off <= NEAR_CENTRE and y0 <= centre(face, 1) <= y1 else NO_PAIR


def find_instances(kinds, boxes, attributes):
    """Region numbers of each instance, the boxes that say where it lies, and a note on who has no partner."""
    faces, bodies = ([k for k, kind in enumerate(kinds) if kind == wanted] for wanted in ("face", "body"))
    if len(attributes) == 1:
        chosen, kind = (faces, "face") if attributes[0] == "name" else (bodies, "body")
        if not chosen:
            raise ValueError(f"regions must hold a {kind}, to which a {attributes[0]} belongs, got none")
        return [(k,) for k in chosen], [boxes[k] for k in chosen], ""
    costs = np.array([[apart(boxes[face], boxes[body]) for body in bodies] for face in faces])
    rows, columns = linear_sum_assignment(costs.reshape(len(faces), len(bodies)))
    # as many pairs as possible, then the closest
    pairs = [(faces[a], bodies[b]) for a, b in zip(rows, columns, strict=True) if costs[a, b] < NO_PAIR]
    if not pairs:
        near = "a face near the horizontal centre of a body's box and within it"
        raise ValueError(f"regions must hold {near}, got none")
    alone = len(faces) - len(pairs)
    without = len(bodies) - len(pairs)
    note = f"left out: faces without a body {alone}, bodies without a face {without}"
    return sorted(pairs), [boxes[face] for face, _ in sorted(pairs)], note if alone or without else ""


def instance_at(place, boxes):
    """Number of the instance at a place, or the reason why there is none."""
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
    """Names whose place says which instance they are: {name: (instance, place)}."""
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
    """The mentions of a caption, or those given in its place."""
    if not isinstance(caption, (list, tuple)):
        return mentions(caption, vocabulary)
    check_vocabulary(vocabulary)
    checked = []
    for number, mention in enumerate(caption):
        what = f"caption[{number}] must"
        if not isinstance(mention, Mention):
            raise TypeError(f"{what} be a Mention, got {mention!r}")
        if mention.name not in vocabulary.name_label:
            raise ValueError(f"{what} have a name of the vocabulary, got {mention.name!r}")
        if mention.verb and mention.verb not in vocabulary.verb_label:
            raise ValueError(f"{what} have a verb of the vocabulary, got {mention.verb!r}")
        match = re.fullmatch(PLACE, mention.place)
        place = place_of(match) if match else None
        if mention.place and place is None:
            raise ValueError(f"{what} have a place such as 'left' or '2nd from left', got {mention.place!r}")
        checked.append(mention._replace(place=place or ""))
    return checked


def choices(word_of, placed):
    """What instances may take: at a known place {instance: words, null (0) last if at all}, and elsewhere
    {word: how often}; from every person's word number (0 without one) and known instance."""
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
    """Ways to give n instances at most one word each and word w to at most ``capacities[w - 1]`` of them, 0
    for null, shape (number, n); None if there are more than `most`.

    In the order of figure 5.4, the all-null one last: by what unused copies of words, each put on the first
    place left, complete a labeling to, then by how many copies are left out, then which.
    """
    copies = [w for w, times in enumerate(capacities, 1) for _ in range(min(times, n))]
    ways = [()]  # places of the copies so far, n where one is left out; those of one word ascend
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
    """All candidates as word numbers from 1, shape (count, n); None if they are too many."""
    here = np.array(list(itertools.product(*fixed.values())), dtype=int)
    all_null = all(0 in words for words in fixed.values())  # possible, which is no candidate
    elsewhere = [m for m in range(n) if m not in fixed]
    most = (MOST_LISTED + all_null) // len(here)
    ways = free_labelings(len(elsewhere), tuple(free.values()), most)
    if ways is None:
        return None
    words = np.array([0, *free])[ways]
    labelings = np.empty((len(here) * len(words), n), dtype=int)
    labelings[:, list(fixed)] = np.repeat(here, len(words), axis=0)
    labelings[:, elsewhere] = np.tile(words, (len(here), 1))
    return labelings[: len(labelings) - all_null]  # null comes last everywhere


def mask_of(n, fixed, free, n_words):
    """The instances and words as the mask of a `Matching`."""
    allowed = np.zeros((n, n_words + 1), dtype=bool)
    allowed[:, [0, *free]] = True
    for m, words in fixed.items():
        allowed[m] = False
        allowed[m, list(words)] = True
    return allowed


def checked_attributes(attributes):
    known = tuple(attributes) if isinstance(attributes, (tuple, list)) else ()
    if known not in (("name",), ("verb",), ("name", "verb"), ("verb", "name")):
        wanted = "('name',), ('verb',) or ('name', 'verb')"
        raise ValueError(f"attributes must be {wanted}, got {attributes!r}")
    return known


def candidates_from_caption(caption, regions, vocabulary, *, attributes=("name",), constraints="ABCD"):
    r"""The candidate labeling set of an image, from its caption.

    The instances are the faces (for names), the bodies (for verbs), or the persons, a face and a body each
    (for both): constraint C1. A word is a name, a verb, or a name with its verb, null if it has none (C2). A
    candidate gives every instance one word or null [A], of the caption's [C], uses every word at most once
    [B, C3], respects the spatial indicators [D, C4], and is not null everywhere. For f instances and w words
    without indicators there are

    .. math:: L = \sum_{j=1}^{\min(f, w)} \binom f j \binom w j\, j!

    of them: 6 for two and two, 33 for three and three. (Section 5.6.1 prints the sum from j = 0 and without
    :math:`j!`.)

    Parameters
    ----------
    caption : str, or list of Mention
        A text goes through `mentions`, a small rule for plain captions; a list is taken as it is.
    regions : list of Region
        A face and a body are one person if the face's centre lies within the body's box and at most a quarter
        of its width from the box's vertical axis; as many pairs as possible are made, the closest ones. For
        names and verbs together, a region without partner is left out.
    vocabulary : Vocabulary
    attributes : tuple, default ("name",)
        ("name",), ("verb",) or both, in the order of the labels. A verb without a known name as its subject
        is no word. For verbs alone a word may be used as often as it has subjects, equal vectors count once,
        and a name's place is that of its verb's body.
    constraints : {"ABCD", "ABC"}
        Without "D" indicators are ignored.

    Returns
    -------
    ItemCandidates
        Its `candidates` are of shape (n_candidates, n_instances, n_attributes), or a `Matching`.

    Raises
    ------
    ValueError
        If there is no region, face, body or person to label; if there are more than 10,000 labelings in which
        a verb occurs twice, which a `Matching` cannot say.

    Notes
    -----
    An indicated name can only be at its place, and the instance there only that name, or one of several that
    are said to be there; null where the vocabulary counts the name as null. Places are compared by the
    centres of faces (of bodies for verbs alone).

    A caption without known word has one candidate, null everywhere. An indicator that cannot apply is dropped
    (a middle among an even number, a place among a single region, places that two instances share, two places
    for one name), and all of them where they leave no candidate.

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
    if constraints not in ("ABC", "ABCD"):
        raise ValueError(f"constraints must be 'ABCD' or 'ABC', got {constraints!r}")
    if "verb" in attributes and len(vocabulary.verbs) == 1:
        raise ValueError("vocabulary must hold verbs for the attribute 'verb', got none")
    instances, boxes, note = find_instances(*checked_regions(regions), attributes)
    notes = [note] if note else []
    words, word_of = find_words(mentioned, vocabulary, attributes)
    n = len(instances)
    if not words:
        null_alone = np.zeros((1, n, len(attributes)), dtype=np.int32)
        return ItemCandidates(null_alone, [], instances, {}, "; ".join([*notes, "no known word"]))
    placed = placed_names(mentioned, boxes, notes) if "D" in constraints else {}
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
            twice = f"at most {MOST_LISTED} labelings where a word may be used twice"
            raise ValueError(f"caption must leave {twice}, got more: a Matching uses every word once")
        notes.append(f"more than {MOST_LISTED} labelings: kept as a Matching")
        kept = Matching(np.array(words, dtype=np.int32), mask_of(n, *taken, len(words)))
    return ItemCandidates(kept, words, instances, positions, "; ".join(notes))


def find_words(mentioned, vocabulary, attributes):
    """The words in the text's order, and the number, from 1, of every name's (0: none)."""
    label_of = {}
    for mention in mentioned:
        name = vocabulary.name_label[mention.name]
        verb = vocabulary.verb_label.get(mention.verb, 0) if "verb" in attributes else 0
        label_of[mention.name] = {"name": name, "verb": label_of.get(mention.name, {}).get("verb") or verb}
    words = {}
    word_of = {}
    for name, labels in label_of.items():
        known = labels["name"] and (labels["verb"] or "name" in attributes)
        word = tuple(labels[a] for a in attributes)
        word_of[name] = words.setdefault(word, len(words) + 1) if known else 0
    return list(words), word_of


def candidate_set(items, vocabulary, attributes=("name",), *, constraints="ABCD"):
    """The candidate labeling sets of many images.

    Parameters
    ----------
    items : sequence of pairs (caption, regions)
        As of `candidates_from_caption`, and so are the options. An error has the number of the item.
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
    check_vocabulary(vocabulary)
    attributes = checked_attributes(attributes)
    if not hasattr(items, "__iter__"):
        raise TypeError(f"items must be a list of pairs (caption, regions), got {type(items).__name__}")
    options = {"attributes": attributes, "constraints": constraints}
    sets = []
    for number, item in enumerate(items):
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            wanted = "a pair (caption, regions)"
            raise TypeError(f"items[{number}] must be {wanted}, got {type(item).__name__}")
        try:
            sets.append(candidates_from_caption(*item, vocabulary, **options).candidates)
        except (TypeError, ValueError) as error:
            raise type(error)(f"items[{number}]: {error}") from None
    classes = [vocabulary.names if a == "name" else vocabulary.verbs for a in attributes]
    return CandidateSet(sets, classes=classes, null=(0,) * len(attributes))
