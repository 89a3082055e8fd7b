r"""Spatial indicators of a caption: where a name's region lies among the others (thesis 5.3, C4).

"(L)", "(R)", "(C)", "(left)", "(top)", "(2nd L)", "(second from left)" and the like after a name; ", left,"
between commas or before a full stop; "at left", "on the right", "in the middle" after a name where the phrase
ends there (never "on the left wing"); "Left: A", "At right, A", "on the left is A" before one; "(L-R)", "(L
to R)", "from left:", "from left to right," with a list of persons, known or not. "of Australia", "(AUS)" or
an age may stand between a name and its indicator. Other uses of "left" and "right" say nothing.
"""

import re
from typing import NamedTuple

from cuelearn.mms.english import MOST_MODIFIERS, PREPOSITION, TAGS

__all__ = ["ANY_PLACE", "Place", "find_places"]

#: Characters that may stand between a name and its indicator.
NEAREST = 60

RANKS = {"2nd": 1, "second": 1, "3rd": 2, "third": 2, "4th": 3, "fourth": 3, "5th": 4, "fifth": 4}
RANKS |= {"6th": 5, "sixth": 5}
ENDS = {"left": (0, 0), "l": (0, 0), "right": (0, -1), "r": (0, -1), "top": (1, 0), "bottom": (1, -1)}

# ------------------------------------------------------------------ patterns

SIDE = r"(?i:left|right|cent(?:er|re)|middle|top|bottom)"
RANK = rf"(?P<rank>(?i:{'|'.join(RANKS)}))\s*(?:(?i:from\s+(?:the\s+)?))?"
FAR = r"(?i:(?:far|extreme)\s+)?"
PLACE = rf"(?:{RANK}(?P<end>(?i:left|right))|{FAR}(?P<side>{SIDE}))"
LETTER = rf"(?:{RANK}(?P<end>(?i:left|right)|[LRlr])|{FAR}(?P<side>{SIDE}|[LRClr]))"  # "(c)" is a copyright
AT = r"(?:at|on|in|to)\s+(?:the\s+)?"
LINE = (
    r"(?i:from\s+)?(?:(?P<rightward>L-R|(?i:left[\s-]+to[\s-]+right)|L[\s-]+to[\s-]+R)"
    r"|(?P<leftward>R-L|(?i:right[\s-]+to[\s-]+left)|R[\s-]+to[\s-]+L))"
)
FROM = r"(?i:from\s+(?:the\s+)?)(?P<from>(?i:left|right)|[LR])"
LEADS = r"\s*(?=[,.:;]|are\b|is\b|$)"
BEGINS = r"(?:(?:^|(?<=[.!?,;:(])|(?<=\band))\s*)"

ANY_PLACE = re.compile(rf"(?i)\b(?:{SIDE}|[lrc]|\d[lr]|l-r|r-l)\b")
PAREN_LINE = re.compile(rf"\(\s*(?:{LINE}|{FROM})\s*\)")
LINE_BEFORE = re.compile(rf"(?<!\w)(?:{LINE}{LEADS}|{FROM}{LEADS})")
PAREN = re.compile(rf"\(\s*(?:{AT})?{LETTER}\s*(?:,[^()]*)?\)")
COMMA = re.compile(rf",\s*(?:{AT})?{PLACE}\s*(?=[,.;:)]|$|and\s+(?!(?:left|right)\b))")
AT_PLACE = re.compile(rf"\s{AT}{PLACE}(?=(?P<ends>\s*(?:[,.;:)]|$|(?:and|with|while|as|who|but|or)\b))|\s)")
BEFORE = re.compile(
    rf"{BEGINS}(?:{PLACE}(?:\s*[,:]|\s+is\b)"
    rf"|(?P<at>(?i:{AT})){PLACE.replace('P<', 'P<at_')}(?:\s*[,:]|\s+is\b|(?=\s+[A-Z])))"
)
#: What may stand between a name and its indicator: a country, its code, an age.
NEAR = re.compile(
    r"(?:\s*,?\s*(?:of|from)\s+(?:the\s+)?[A-Z][\w.'-]*(?:\s+[A-Z][\w.'-]*){0,3}"
    r"|\s*\([A-Z]{2,3}\)|\s*,\s*\d{1,3})*\s*"
)
LIST_OPENS = re.compile(r"\s*(?:[,:;]|are\b|is\b)?\s*")
NO_LINE = re.compile(rf"(?:clockwise|\b(?:{'|'.join(RANKS)}))\s*$", re.IGNORECASE)
SPLIT = re.compile(r",|;|\band\b|&")
TWO_CAPITALS = re.compile(r"\b[A-Z][\w'.-]*\s+(?:(?:de|del|della|di|van|von|der|bin|al|el|la|le)\s+)*[A-Z]")


class Place(NamedTuple):
    """Where a region lies among the others: number `rank` along an axis, negative from the far end, None in
    the middle."""

    axis: int
    rank: int | None
    of: int | None = None  # length of the list that says so

    def __str__(self):
        if self.rank is None:
            return "middle"
        rank = -1 if self.of is not None and self.rank == self.of - 1 else self.rank
        end = (("left", "right"), ("top", "bottom"))[self.axis][rank < 0]
        number = rank + 1 if rank >= 0 else -rank
        return end if number == 1 else f"{number}{ {2: 'nd', 3: 'rd'}.get(number, 'th') } from {end}"


def place_of(found, prefix=""):
    """The place that a match of `PLACE` says."""
    rank, end, side = (found.group(prefix + group) for group in ("rank", "end", "side"))
    if rank is None:
        return Place(*ENDS.get(side.lower(), (0, None)))
    k = RANKS[rank.lower()]
    return Place(0, k if end.lower() in ("left", "l") else -1 - k)


# ------------------------------------------------------------------ names near an indicator


def name_before(text, at):
    """The name that ends where an indicator begins, or None."""
    for name in reversed(text.names):
        end = text.ends[name.last - 1]
        if end <= at:
            return name if at - end <= NEAREST and NEAR.fullmatch(text.caption, end, at) else None
    return None


def name_after(text, at, touching=False):
    """The name that an indicator before it leads to, modifiers between, or None."""
    for name in text.names:
        if text.starts[name.first] >= at and not name.possessive:
            between = [i for i in range(name.first) if text.starts[i] >= at]
            if len(between) > MOST_MODIFIERS * (not touching):
                return None
            fits = (text.modifies(i) and text.tags[i] not in "&V" for i in between)
            return name if all(fits) else None
    return None


# ------------------------------------------------------------------ kinds of indicators: names, their places


def in_brackets(text, found):
    name = name_before(text, found.start()) or name_after(text, found.end(), touching=True)
    return [(name, place_of(found))]


def after_comma(text, found):
    return [(name_before(text, found.start()), place_of(found))]


def after_name(text, found):
    """ "at left", where the phrase ends or a verb follows."""
    follows = len(text.caption) - len(text.caption[found.end() :].lstrip())
    verbs = {text.starts[verb.first] for verb in text.verbs}
    return after_comma(text, found) if found.group("ends") is not None or follows in verbs else []


def before_name(text, found):
    return [(name_after(text, found.end()), place_of(found, "at_" if found.group("at") else ""))]


def in_line(text, found):
    """A list of persons in a line: before the indicator, after it, or around it ("A, from left, B and C")."""
    caption, start = text.caption, found.start()
    if NO_LINE.search(caption[:start]):
        return []
    near = name_before(text, len(caption[:start].rstrip(" ,")))
    persons, closed = line_before(text, start) if near else ([], False)
    if not closed:
        rest = line_after(text, found.end())
        persons = rest if near is None else [near, *rest] if rest else persons
    if len(persons) < 2:
        return []
    groups = found.groupdict()
    if groups["leftward"] is not None or (groups["from"] or "").lower() in ("right", "r"):
        persons = persons[::-1]
    return [(name, Place(0, rank, len(persons))) for rank, name in enumerate(persons)]


#: Patterns in the order in which they take text, and what makes places of a match.
INDICATORS = (
    (PAREN_LINE, in_line),
    (LINE_BEFORE, in_line),
    (PAREN, in_brackets),
    (COMMA, after_comma),
    (AT_PLACE, after_name),
    (BEFORE, before_name),
)


def find_places(text):
    """Fill `text.places` and `text.blank` from the caption's spatial indicators."""
    taken = []
    for pattern, read in INDICATORS:
        for found in pattern.finditer(text.caption):
            if any(found.end() > start and found.start() < end for start, end in taken):
                continue
            placed = read(text, found)
            if len(placed) > 1 or any(name is not None for name, _ in placed):
                taken.append(found.span())
            for name, place in placed:
                if name is not None:
                    text.places.setdefault(name.person, []).append(place)
    text.blank.update(i for i, at in enumerate(text.starts) if any(start <= at < end for start, end in taken))


# ------------------------------------------------------------------ lists of persons


def item_of(text, start, end):
    """The name of one item of a list, None if unknown, and whether it is a person at all."""
    for name in text.names:
        if start <= text.starts[name.first] < end and not name.possessive:
            return name, True
    item = text.caption[start:end].strip()
    first = item.split(" ", 1)[0].lower()
    return None, TAGS.get(first, "x") not in PREPOSITION and TWO_CAPITALS.search(item) is not None


def cuts_of(text, start, end):
    """Commas and "and"s that are no part of a name: where each begins and ends, whether it is an "and"."""
    spans = [(text.starts[name.first], text.ends[name.last - 1]) for name in text.names]
    cuts = SPLIT.finditer(text.caption, start, end)
    cuts = [cut for cut in cuts if not any(a <= cut.start() < b for a, b in spans)]
    return [(*cut.span(), cut.group() in ("and", "&")) for cut in cuts]


def line_before(text, end):
    """Names of the list that ends at a place of the text, and whether an "and" closes it."""
    before = [i for i, start in enumerate(text.starts) if start < end]
    sentence = text.sentence[before[-1]]
    start = next(text.starts[i] for i in before if text.sentence[i] == sentence)
    stop = len(text.caption[:end].rstrip(" ,"))
    names, closed = [], False
    for cut, begin, is_and in [*reversed(cuts_of(text, start, stop)), (start, start, True)]:
        name, is_person = item_of(text, begin, stop)
        if is_person:
            names.insert(0, name)
        elif text.caption[begin:stop].strip():  # not ", and"
            break
        if begin == start or (closed and is_and):
            break
        closed, stop = closed or is_and, cut
    return names, closed


def line_after(text, start):
    """Names of the list that begins at a place: to the item after "and", or while items are persons."""
    start = LIST_OPENS.match(text.caption, start).end()
    after = [i for i, at in enumerate(text.starts) if at >= start]
    if not after:
        return []
    end = text.ends[max(i for i in after if text.sentence[i] == text.sentence[after[0]])]
    cuts = cuts_of(text, start, end)
    closes = next((k for k, (_, _, is_and) in enumerate(cuts) if is_and), None)
    names, at = [], start
    for k, (cut, then, _) in enumerate([*cuts, (end, end, False)]):
        name, is_person = item_of(text, at, cut)
        if is_person:
            names.append(name)
        if (not is_person) if closes is None else k == closes + 1:
            break
        at = then
    return names
