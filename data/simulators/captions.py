"""The world of the composed news items: who is pictured, who is mentioned, what the captions say, where the
faces stand. Words, templates and shares stand in ``captions.json``."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

__all__ = ["compose"]

N_IDENTITIES = 214
# Of Labeled Yahoo! News and of Faces and Poses.
FULL_SIZE, FULL_POSITIONS, TRAIN_PROTOCOL_2 = 20_071, 3_105, 10_000
POSES_SIZE, POSES_TEST = 1_703, 103

WORDS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
#: In templates {a} are the people in the picture, {b} the last of them where a template tells two apart, {x}
#: people mentioned besides. Of the poses, {third}, {base}, {gerund} and {past} are forms of the verb with a
#: complement; {b} are the people of a further clause.
TEMPLATES = WORDS["templates"]
VERBS = [SimpleNamespace(**verb) for verb in WORDS["verbs"]]

MOST_NAMES = 9  # of a caption
_NAME_SEED = 1788  # a person has the same name in every corpus
_OFFICE_EVERY = 10  # every tenth person holds an office and is also called by it

# ---------------------------------------------------------------- names
# Two pieces to a name, chosen so that no surname is an English word or among the 88,799 surnames of the US
# census of 1990, and no first name is a word.


@lru_cache(maxsize=1)
def name_pieces():
    """Surnames and first names in a fixed random order."""
    rng = np.random.default_rng(_NAME_SEED)
    pieces = []
    for part in ("surname", "first"):
        names = [a + b for a in WORDS[f"{part}_starts"].split() for b in WORDS[f"{part}_ends"].split()]
        pieces.append([names[k] for k in rng.permutation(len(names))])
    return pieces


def person_name(k):
    """Name of a person with a surname of their own: the 214 identities, then those mentioned now and then."""
    surnames, firsts = name_pieces()
    return f"{firsts[k % len(firsts)]} {surnames[k]}"


def tail_name(k, reserved):
    """Name of number k of the long tail; surnames are shared within the tail, full names are not."""
    surnames, firsts = name_pieces()
    turn, place = divmod(k, len(surnames) - reserved)
    return f"{firsts[(37 * place + turn) % len(firsts)]} {surnames[reserved + place]}"


# ---------------------------------------------------------------- the composition

PERSON, STRANGER, FALSE = range(3)

# Images by number of faces; the thesis prints the sum, 31,147, and the largest.
_FACES, _POSES_FACES = (dict(enumerate(WORDS[f"{kind}_faces"], start=1)) for kind in ("news", "poses"))
# Of the items with spatial indicators: share with 1, 2, ... 6 faces.
_POSITION_FACES = (0.02, 0.41, 0.34, 0.14, 0.06, 0.03)
# How often the people who are never pictured are named in the training captions, at full size: all at least 3
# times, none 20.
REGULARS, REGULARS_MOST = 246, 18


# How a corpus is put together, in shares: faces that are no face or not mentioned, in images with one face,
# two or three, more (`unnamed`); of these the false detections (`false`); items whose people are all of the
# long tail (`others`), people of it beside an identity (`stranger`), in items with spatial indicators
# `_position`; 0, 1, 2, ... identities that the caption names and the image does not show (`extra`), and names
# of the long tail that it adds (`tail`).
RECIPES = {name: SimpleNamespace(**shares) for name, shares in WORDS["recipes"].items()}
_CROWD = 6  # with more faces than this, most are not mentioned
_UNNAMED_CROWD = 0.5
_PARTNER_EXTRA = 0.3  # a mentioned person who is not pictured is the partner of one who is
_REPEATED_STRANGER = 0.1  # nobody of the long tail is mentioned more than twice
# Chances: a caption says what a mentioned person does; the people of an image do the same; a person does one
# of two usual things; a caption says what a person who is not pictured does.
_STATED, _SAME_VERB, _USUAL, _STATED_EXTRA = 0.85, 0.35, 0.6, 0.5


class Face(NamedTuple):
    """One face of an image. `person` is the rank of an identity, the number of a stranger, or -1."""

    kind: int
    person: int
    mentioned: bool
    verb: int = -1
    stated: bool = False


class Mention(NamedTuple):
    """One name in a caption: its number among all, the face within the image or -1, the verb said or -1."""

    name: int
    face: int
    verb: int = -1
    place: str = ""


class Item(NamedTuple):
    """An image and its caption before the words; `faces` from left to right, or downward."""

    faces: list
    pictured: list
    others: list
    in_order: bool = False
    stacked: bool = False


def _apportion(total, weights):
    """Whole numbers with this sum, proportional to the weights by largest remainders."""
    share = np.asarray(weights, dtype=np.float64)
    share = share * (total / share.sum())
    counts = np.floor(share).astype(int)
    counts[np.argsort(counts - share, kind="stable")[: total - counts.sum()]] += 1
    return counts


def plan(rng, n, poses, protocol, test_share):
    """Faces of each item, whether it tells places, whether it tests: exact numbers at random places."""
    full = POSES_SIZE if poses else FULL_SIZE
    table = _POSES_FACES if poses else _FACES
    n_faces = np.repeat([*table], _apportion(n, [*table.values()]))
    # Rounding the rare sizes moves the sum; images with one and with two faces make up for it.
    missing = round(n * sum(f * count for f, count in table.items()) / full) - int(n_faces.sum())
    few, step = (1, 1) if missing > 0 else (2, -1)
    n_faces[np.flatnonzero(n_faces == few)[: abs(missing)]] += step
    has_position = np.zeros(n, dtype=bool)
    if not poses:
        due = _apportion(round(n * FULL_POSITIONS / FULL_SIZE), _POSITION_FACES)
        for f, count in enumerate(due.tolist(), start=1):
            has_position[np.flatnonzero(n_faces == f)[:count]] = True
        # In a small corpus there may not be enough images with many faces.
        has_position[np.flatnonzero((n_faces == 2) & ~has_position)[: due.sum() - has_position.sum()]] = True
    order = rng.permutation(n)
    n_faces, has_position = n_faces[order], has_position[order]
    may = np.flatnonzero(~has_position) if protocol == "II" else np.arange(n)
    is_test = np.zeros(n, dtype=bool)
    is_test[rng.permutation(may)[: round(n * test_share)]] = True
    return n_faces, has_position, is_test


class Composer:
    """Decides who is in each image and caption; names are numbers: identities by rank, regulars, the tail."""

    def __init__(self, rng, recipe, n_names, exponent, p_correlated, poses):
        self.rng, self.recipe, self.poses = rng, recipe, poses
        self.n_names, self.p_correlated = n_names, p_correlated
        weights = np.arange(1, n_names + 1) ** -exponent
        self.cumulative = np.cumsum(weights / weights.sum())
        self.first_stranger = n_names + (0 if poses else REGULARS)
        self.n_strangers, self.once = 0, []
        self.usual = rng.integers(len(VERBS), size=(n_names, 2))

    def count(self, shares):
        """A number drawn with these probabilities of 0, 1, ..."""
        return min(int(np.searchsorted(np.cumsum(shares), self.rng.random(), side="right")), len(shares) - 1)

    def shuffled(self, items):
        return [items[k] for k in self.rng.permutation(len(items))]

    def identity(self, taken, near=(), chance=0.0):
        """An identity outside `taken`: with this chance the partner of one of `near`, else by frequency."""
        rng = self.rng
        while True:
            if near and rng.random() < chance:  # ranks 0 and 1 are partners, 2 and 3, ...
                person, chance = near[rng.integers(len(near))] ^ 1, 0.0
            else:
                person = int(np.searchsorted(self.cumulative, rng.random(), side="right"))
                person = min(person, self.n_names - 1)
            if person < self.n_names and person not in taken:
                return person

    def stranger(self, taken):
        """Somebody of the long tail, new or met once before."""
        rng = self.rng
        if self.once and rng.random() < _REPEATED_STRANGER:
            at = int(rng.integers(len(self.once)))
            if self.once[at] not in taken:
                self.once[at], self.once[-1] = self.once[-1], self.once[at]
                return self.once.pop()
        self.once.append(self.n_strangers)
        self.n_strangers += 1
        return self.n_strangers - 1

    def item(self, n_faces, position):
        """Faces and mentions of one item."""
        rng, recipe = self.rng, self.recipe
        if position:
            n_unnamed = int(rng.binomial(n_faces - 1, recipe.unnamed_position))
            share_others, share_stranger = recipe.others_position, recipe.stranger_position
        else:
            unnamed = _UNNAMED_CROWD if n_faces > _CROWD else recipe.unnamed[(n_faces > 1) + (n_faces > 3)]
            n_unnamed = int(rng.binomial(n_faces, unnamed))
            share_others, share_stranger = recipe.others, recipe.stranger
        n_named = min(n_faces - n_unnamed, MOST_NAMES)
        only_strangers = rng.random() < share_others
        n_identities = 0
        if n_named and not only_strangers:
            n_identities = 1 + int(rng.binomial(n_named - 1, 1 - share_stranger))

        people, strangers = [], []
        for k in range(n_identities):
            people.append(self.identity(people, people[-1:], self.p_correlated if k % 2 else 0.0))
        for _ in range(n_named - n_identities):
            strangers.append(self.stranger(strangers))
        n_false = int(rng.binomial(n_faces - n_named, recipe.false))
        background = []  # nobody who is known for being in the news
        for _ in range(n_faces - n_named - n_false):
            background.append(self.stranger(strangers + background))

        shares = recipe.extra_others if only_strangers else recipe.extra
        if position:
            shares = recipe.extra_position
        extra = []
        for _ in range(min(self.count(shares), MOST_NAMES - n_named)):
            extra.append(self.identity(people + extra, people, _PARTNER_EXTRA))
        extra_tail = []
        for _ in range(min(self.count(recipe.tail), MOST_NAMES - n_named - len(extra))):
            extra_tail.append(self.stranger(strangers + background + extra_tail))

        named = [Face(PERSON, p, True) for p in people] + [Face(STRANGER, s, True) for s in strangers]
        unnamed = n_false * [Face(FALSE, -1, False)] + [Face(STRANGER, s, False) for s in background]
        others = extra + [self.first_stranger + s for s in extra_tail]
        others = [Mention(name, -1, self._other_verb()) for name in self.shuffled(others)]
        if self.poses:
            named, unnamed = self._act(named), self._act(unnamed, alike=0.0)
        return self._placed(named, unnamed, others) if position else self._loose(named, unnamed, others)

    def _other_verb(self):
        return int(self.rng.integers(len(VERBS))) if self.poses and self.rng.random() < _STATED_EXTRA else -1

    def _act(self, faces, alike=_SAME_VERB):
        """Give every face a verb, and say of which the caption tells."""
        rng, acted = self.rng, []
        same = rng.random() < alike
        for k, face in enumerate(faces):
            if same and k:
                verb = acted[0].verb
            elif face.kind == PERSON and rng.random() < _USUAL:
                verb = int(self.usual[face.person, rng.integers(2)])
            else:
                verb = int(rng.integers(len(VERBS)))
            acted.append(face._replace(verb=verb, stated=face.mentioned and rng.random() < _STATED))
        return acted

    def _mention(self, faces, at, place=""):
        face = faces[at]
        name = face.person if face.kind == PERSON else self.first_stranger + face.person
        return Mention(name, at, face.verb if face.stated else -1, place)

    def _loose(self, named, unnamed, others):
        """Faces in any order; the caption names people in another."""
        faces = self.shuffled(named + unnamed)
        at = [k for k, face in enumerate(faces) if face.mentioned]
        return Item(faces, [self._mention(faces, k) for k in self.shuffled(at)], others)

    def _placed(self, named, unnamed, others):
        """Faces in an order that the caption can tell of, and what it tells."""
        named = self.shuffled(named)
        unnamed = self.shuffled(unnamed)
        n, k = len(named) + len(unnamed), len(named)
        chance = self.rng.random()
        stacked = n == 2 and k == 2 and chance > 0.94
        if n == k and n >= 3 and chance < (0.3 if n == 3 else 0.95):
            return Item(named, [self._mention(named, m, "order") for m in range(n)], others, in_order=True)
        places = self._told_places(n, k, chance, stacked)
        # Whoever has a place is named; the rest fill the other places in any order.
        free = iter(self.shuffled(named[len(places) :] + unnamed))
        placed = iter(named)
        faces = [next(placed) if at in places else next(free) for at in range(n)]
        at = [j for j, face in enumerate(faces) if face.mentioned]
        order = at if self.rng.random() < 0.5 else self.shuffled(at)
        mentions = [self._mention(faces, j, places.get(j, "")) for j in order]
        return Item(faces, mentions, others, stacked=stacked)

    def _told_places(self, n, k, chance, stacked):
        """Which of n places the caption tells of, k of whose people it names."""
        first, last = ("top", "bottom") if stacked else ("left", "right")
        middle = {n // 2: "centre"} if n % 2 and n > 1 else {}
        if n == 1:
            return {0: ("left", "right", "centre")[int(self.rng.integers(3))]}
        if k == 1:
            if middle and chance < 0.5:
                return middle
            return {0: first} if self.rng.random() < 0.5 else {n - 1: last}
        if n == 2 and not stacked and chance >= 0.88:
            return {0: first} if chance < 0.91 else {1: last}
        if k == n and middle and chance > 0.97:
            return middle
        if k >= 3 and middle and chance < 0.95:
            return {0: first, **middle, n - 1: last}
        return {0: first, n - 1: last}


def _add_regulars(rng, items, is_test, first, train_size):
    """Name the people who are never pictured, in as many captions as they are due."""
    due = np.rint(np.geomspace(REGULARS_MOST, 3, REGULARS))
    room = np.array([MOST_NAMES - len(item.pictured) - len(item.others) for item in items])
    for part in (~is_test, is_test):
        rows = np.flatnonzero(part & (room > 0))
        counts = np.minimum(np.floor(due * (part.sum() / train_size) + 0.5).astype(int), rows.size)
        names = np.repeat(np.arange(REGULARS), counts)
        rounds = -(-names.size // max(rows.size, 1))
        captions = np.concatenate([rows[:0], *(rng.permutation(rows) for _ in range(rounds))])
        for name, i in zip((first + names).tolist(), captions.tolist()):
            others = items[i].others
            full = len(items[i].pictured) + len(others) >= MOST_NAMES
            if not full and name not in [other.name for other in others]:
                others.insert(int(rng.integers(len(others) + 1)), Mention(name, -1))


# ---------------------------------------------------------------- captions

_LETTER = {"left": "L", "right": "R", "centre": "C", "top": "top", "bottom": "bottom"}


class Writer:
    """Puts an item into words."""

    def __init__(self, rng, labels, forms):
        self.rng, self.labels, self.forms = rng, labels, forms

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def fields(self):
        day = int(self.rng.integers(1, 29))
        month = self.pick(WORDS["months"])
        year = int(self.rng.integers(2002, 2010))
        fields = {name: self.pick(options) for name, options in WORDS["fields"].items()}
        return fields | {"month": month, "year": year, "date": f"{month} {day}, {year}"}

    def say(self, name, fields, verb=None, again=False, **words):
        """A template of this kind, filled in; `again`: with another place and date."""
        template = self.pick(TEMPLATES[name])
        if verb is not None:
            words |= self.verb(verb)
        return template.format(**words, **(fields | self.fields() if again else fields))

    def verb(self, number):
        """Forms of a verb, all with the same complement."""
        verb = VERBS[number]
        complement = self.pick(verb.complements)
        return {form: f"{getattr(verb, form)} {complement}" for form in ("third", "base", "gerund", "past")}

    def call(self, mention):
        """The name as this caption says it: in one of four cases by the office, where a person has one."""
        forms = self.forms(mention.name)
        return forms[1] if len(forms) > 1 and self.rng.random() < 0.25 else forms[0]

    def tagged(self, mention, style):
        name = self.call(mention)
        if mention.place in ("", "order"):
            return name
        if style == "comma":
            return f"{name}, {mention.place},"
        return f"{name} ({_LETTER[mention.place] if style == 'letter' else mention.place})"

    def caption(self, item):
        chance = self.rng.random()
        style = "letter" if chance < 0.6 else "comma" if chance < 0.85 else "word"
        names = [self.tagged(mention, style) for mention in item.pictured]
        others = [self.call(mention) for mention in item.others]
        fields, taken = self.fields(), 0
        if item.in_order:
            sentences = [self.say("in_order", fields, a=_listed(names))]
        elif not names:
            taken = int(bool(others) and self.rng.random() < 0.7)
            kind = "nobody_but_other" if taken else "nobody"
            sentences = [self.say(kind, fields, x="".join(others[:taken]))]
        elif len(names) == 2 and self.rng.random() < 0.5:
            sentences = [self.say("two", fields, a=names[0], b=names[1])]
        else:
            taken = int(bool(others) and self.rng.random() < 0.5)
            kind = ("one" if len(names) == 1 else "many") + ("_with_other" if taken else "")
            sentences = [self.say(kind, fields, a=_listed(names), x="".join(others[:taken]))]
        while taken < len(others):
            n = int(self.rng.integers(1, 4))
            sentences.append(self.say("others", fields, again=True, x=_listed(others[taken : taken + n])))
            taken += n
        if self.rng.random() < 0.25:
            surname = self.labels[item.pictured[0].name].split()[-1] if item.pictured else "A spokesman"
            sentences.append(self.say("endings", fields, again=True, surname=surname))
        return " ".join(_tidy(sentence, fields["role"]) for sentence in sentences)

    def pose_caption(self, item):
        fields, groups = self.fields(), {}
        for mention in item.pictured:
            groups.setdefault(mention.verb, []).append(self.call(mention))
        silent = groups.pop(-1, [])
        if groups:
            core = ""
            for verb, names in groups.items():
                kind = ("pose_next_" if core else "pose_") + ("one" if len(names) == 1 else "many")
                core += self.say(kind, fields, verb, a=_listed(names), b=_listed(names))
            if silent:
                core += self.say("pose_silent", fields, b=_listed(silent))
            sentences = [core + self.say("pose_where", fields)]
        elif silent:
            kind = "pose_still_one" if len(silent) == 1 else "pose_still_many"
            sentences = [self.say(kind, fields, a=_listed(silent)) + self.say("pose_where", fields)]
        else:
            sentences = [self.say("nobody", fields)]
        for mention in item.others:
            template = self.pick(TEMPLATES["pose_other_silent" if mention.verb < 0 else "pose_other"])
            words = {} if mention.verb < 0 else self.verb(mention.verb)
            words["x"] = self.call(mention)
            sentences.append(template.format(**words, **(fields | self.fields())))
        return " ".join(_tidy(sentence, fields["role"]) for sentence in sentences)


def _listed(names):
    """One or more names as English lists them."""
    if len(names) == 1:
        return names[0]
    head = ", ".join(name.rstrip(",") for name in names[:-1])
    return f"{head}{',' if names[-2].endswith(',') else ''} and {names[-1]}"


def _tidy(sentence, role):
    """A capital at the start, no comma before another mark, no role of somebody called by the office."""
    sentence = sentence.replace(",,", ",").replace(",.", ".")
    if role in sentence:
        for office in WORDS["offices"]:
            sentence = sentence.replace(f"{role} {office} ", f"{office} ")
    return sentence[0].upper() + sentence[1:]


# ---------------------------------------------------------------- boxes

_SLOT = 120.0  # pixels that a person has in width


def lay_out(rng, item, poses):
    """Size of the image, and boxes (x0, y0, x1, y1) of faces and upper bodies."""
    n = len(item.faces)
    across = 1 if item.stacked else n
    width = max(2.6 * _SLOT, across * _SLOT + 60)
    slot = (width - 40) / across
    high = _SLOT * (2.6 if poses else 1.5)
    height = 40 + high * (n if item.stacked else 1)
    u = rng.random((n, 4))
    rank = np.arange(n)
    side = min(slot, _SLOT) * (0.42 + 0.16 * u[:, 0])
    x = 20 + slot * ((0 if item.stacked else rank) + 0.5 + 0.3 * (u[:, 1] - 0.5))
    y = 20 + (high * rank if item.stacked else 0) + 0.35 * high * u[:, 2] + (0.95 if poses else 0.65) * side
    faces = np.column_stack([x - side / 2, y - side * 0.6, x + side / 2, y + side * 0.6])
    if not poses:
        return (round(width), round(height)), np.rint(faces), None
    half = np.minimum(0.46 * min(slot, _SLOT), 1.1 * side)
    middle = x + 0.1 * side * (u[:, 3] - 0.5)
    bodies = np.column_stack([middle - half, y - side * 0.9, middle + half, y + side * 2.1])
    return (round(width), round(height)), np.rint(faces), np.rint(bodies)


# ---------------------------------------------------------------- all together


def ordinal(k, n):
    """The place of number k of n people in a row."""
    if k in (0, n - 1):
        return "left" if k == 0 else "right"
    return f"{k + 1}{ {1: 'nd', 2: 'rd'}.get(k, 'th') } from left"


def compose(streams, n, poses, protocol, n_names, exponent, p_correlated, test_share):
    """Compose n items with captions; a stream of random numbers each for plan, people, words and boxes.

    Mentions are (item, name, face, verb, place); ``forms(name)`` gives the ways in which captions may call a
    person; names from `first_stranger` on are of the long tail.
    """
    plan_rng, people_rng, word_rng, box_rng = streams
    n_faces, has_position, is_test = plan(plan_rng, n, poses, protocol, test_share)
    recipe = RECIPES["poses" if poses else protocol]
    composer = Composer(people_rng, recipe, n_names, exponent, p_correlated, poses)
    items = [composer.item(f, p) for f, p in zip(n_faces.tolist(), has_position.tolist(), strict=True)]
    if not poses:
        train_size = TRAIN_PROTOCOL_2 if protocol == "II" else round(0.8 * FULL_SIZE)
        _add_regulars(people_rng, items, is_test, n_names, train_size)

    # Who of all has this rank; the name goes with the person.
    identity = people_rng.permutation(N_IDENTITIES)[:n_names]
    regulars = [] if poses else range(N_IDENTITIES, N_IDENTITIES + REGULARS)
    labels = [person_name(k) for k in (*identity.tolist(), *regulars)]
    labels += [tail_name(k, N_IDENTITIES + REGULARS) for k in range(composer.n_strangers)]

    def forms(name):
        if name >= n_names or identity[name] % _OFFICE_EVERY:
            return [labels[name]]
        office = WORDS["offices"][identity[name] // _OFFICE_EVERY % len(WORDS["offices"])]
        return [labels[name], f"{office} {labels[name].split()[-1]}"]

    writer = Writer(word_rng, labels, forms)
    captions = [writer.pose_caption(item) if poses else writer.caption(item) for item in items]

    regions, sizes, faces, mentions = [], np.empty((n, 2), dtype=int), [], []
    for i, item in enumerate(items):
        sizes[i], boxes, bodies = lay_out(box_rng, item, poses)
        order = box_rng.permutation(len(item.faces)).tolist()  # a detector's order tells nothing of the place
        row = {at: len(faces) + m for m, at in enumerate(order)}
        ways = {m: "|".join(forms(m.name)) for m in item.pictured + item.others}
        for m in sorted(ways, key=lambda m: re.search(rf"\b({ways[m]})\b", captions[i]).start()):
            place = ordinal(m.face, len(item.faces)) if item.in_order else m.place.replace("centre", "middle")
            mentions.append((i, m.name, row.get(m.face, -1), m.verb, place if m.place else ""))
        faces += [item.faces[at] for at in order]
        own = []
        for at in order:
            own.append(("face", tuple(boxes[at].tolist())))
            if poses:
                own.append(("body", tuple(bodies[at].tolist())))
        regions.append(own)
    return SimpleNamespace(
        n_faces=n_faces,
        has_position=has_position,
        is_test=is_test,
        labels=np.array(labels),
        forms=forms,
        captions=captions,
        sizes=sizes,
        regions=regions,
        faces=faces,
        mentions=mentions,
        identity=identity,
        n_strangers=composer.n_strangers,
        first_stranger=composer.first_stranger,
    )
