"""Mentions in captions: names, verbs and places (thesis section 5.3)."""

import re
from collections.abc import Mapping
from copy import copy
from typing import NamedTuple

import numpy as np

from cuelearn.expect import expect_instance, expect_list

__all__ = ["Mention", "Vocabulary", "mentions"]

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
    """Surface forms of each label, the label itself first."""
    given = words
    if not isinstance(words, Mapping):
        given = expect_list(what, words, "words or a dict from a word to its surface forms", least=0)
        words = dict.fromkeys(given, ())
    if NULL in words or len(words) < len(given):
        raise ValueError(f"{what} must hold every word once, none of them {NULL!r}")
    labels = {}
    owner = {}
    for label, forms in words.items():
        for form in (label, *expect_list(f"{what}[{label!r}]", forms, "surface forms", least=0)):
            if not isinstance(form, str) or not WORD.search(form):
                raise TypeError(f"{what} must hold words with at least one letter, got {form!r}")
            if owner.setdefault(form, label) != label:
                raise ValueError(
                    f"{what} must give a surface form to one label, got {form!r} for {owner[form]!r} "
                    f"and {label!r}"
                )
        labels[str(label)] = list(dict.fromkeys([label, *forms]))
    return labels


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


def index_of_verbs(verbs):
    """`index_of` with inflections of first words; up to three words may separate the others."""
    labels = {form: label for label, forms in verbs.items() for form in forms}
    for form, label in list(labels.items()):
        first, *rest = form.split()
        for inflected in inflections(first):
            labels.setdefault(" ".join([inflected, *rest]), label)
    return index_of(labels, gap=r"\s+(?:[\w-]+\s+){0,3}?")


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

    def __init__(self, names, verbs=()):
        people = given_words("names", names)
        actions = given_words("verbs", verbs)
        if not people:
            raise ValueError("names must hold at least one name, got none")
        self.name_forms = index_of({form: name for name, forms in people.items() for form in forms})
        self.verb_forms = index_of_verbs(actions)
        self.name_label = dict.fromkeys(people, 0)
        self.verb_label = dict.fromkeys(actions, 0)
        self._keep(list(people), list(actions))

    def _keep(self, names, verbs):
        self.names = np.array([NULL, *names])
        self.verbs = np.array([NULL, *verbs])
        self.name_label = dict.fromkeys(self.name_label, 0) | {name: k for k, name in enumerate(names, 1)}
        self.verb_label = dict.fromkeys(self.verb_label, 0) | {verb: k for k, verb in enumerate(verbs, 1)}

    def only(self, names=None, verbs=None):
        """The `Vocabulary` of these labels (default: all), in their order. Other words are still recognised,
        so that their places and verbs go to no other name, but count as null."""
        kept = []
        for what, chosen, labels in (("names", names, self.names), ("verbs", verbs, self.verbs)):
            known = labels[1:].tolist()
            if chosen is None:
                chosen = known
            else:
                chosen = expect_list(what, chosen, "labels", least=0)
            unknown = set(chosen) - {NULL, *known}
            if unknown:
                raise ValueError(f"{what} must be labels of the vocabulary, got {min(map(str, unknown))!r}")
            kept.append([label for label in known if label in chosen])
        if not kept[0]:
            raise ValueError("names must keep at least one name, got none")
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
    ending = {2: "nd", 3: "rd"}.get(rank, "th")
    if rank and side != "middle":
        return f"{rank}{ending} from {side}"
    return None


def place_after(caption, end):
    match = PLACE_AFTER.match(caption, end)
    if not match:
        return ""
    return place_of(re.fullmatch(PLACE, match["word"]) if match["word"] else match) or ""


def mentions(caption, vocabulary):
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
    A simple rule for plain captions; `candidates_from_caption` also takes `Mention` lists of other parsers.

    Names are the longest known surface forms, case-sensitive, of whole words: "Obama's" names Obama,
    "Obama-style" does not. A verb belongs to the nearest name before it in its sentence and to names joined
    to that by commas and "and" ("A (L), first lady B and C wave"). Up to three words may separate the words
    of a verb: "hits a two-handed backhand". A place follows a name directly: "(L)", "(R)", "(C)", "(left)",
    "(2nd from left)", ", left," or "at right" before a comma, a full stop or "and".

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
