r"""News items composed of real samples: pictures with faces, and captions that name some of the people in
them.

The thesis learns names from Labeled Yahoo! News and names with verbs from Idiap/ETHZ Faces and Poses; neither
can be shipped. Here a person is a pair of a letter and a digit, a face of the person a sample of the letter
beside a sample of the digit, a pose a pen stroke, and the captions are English sentences about invented
people. Whatever is shown of it is called *composed*.

From top to bottom: names, words and templates; who is in the picture and who is in the caption (`_Composer`);
the captions; the boxes; the samples and features; the statistics; and the public function.

References
----------
Jie Luo (2011). Open-ended Learning of Visual and Multi-modal Patterns. EPFL thesis 5233, sections 5.6 and
5.7, appendix A."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from cuelearn.core.checks import as_generator, check_count, check_non_negative

from .base import BundledFile, Provenance

__all__ = ["VERBS", "CaptionedData", "ItemPicture", "make_captioned"]

NULL = "null"
N_LETTERS, N_DIGITS = 26, 10
N_IDENTITIES = N_LETTERS * N_DIGITS
MOST_NAMES = 9
FULL_SIZE, FULL_FACES, FULL_POSITIONS = 20_071, 31_147, 3_105
POSES_SIZE, POSES_TEST = 1_703, 103
TRAIN_PROTOCOL_2 = 10_000

# ------------------------------------------------------------------------------------------------------ names
# Two pieces to a name, chosen so that none of the 2,610 surnames is an English word (Webster's second
# edition, the Collaborative International Dictionary, the 300,000 most frequent words of wordfreq) or among
# the 88,799 surnames of the US census of 1990, and no first name is a word. First names may exist; with such
# a surname nobody has them.

_SURNAME_STARTS = (
    "Adr Balt Berv Brod Calv Corm Dask Delv Dorn Drav Eld Ferr Gald Gav Grel Halv Harr Hesk Ild Jask Jorv "
    "Kald Kest Kolv Lask "
    "Lind Lorv Malv Merr Mosk Nald Nev Nost Orv Palt Perv Prel Quin Rald Rask Rov Sald Sorv Stav Tald Tarv "
    "Tol Trev Ulv Vald "
    "Vesk Vorn Wald Welv Yald Yorv Zald Zeml"
).split()
_SURNAME_ENDS = (
    "aker alden amore andel aren arick asson atti avek edal ekov elius enko esku evin iander idge ielsen "
    "ilde imov ingard inov iscott isen "
    "ister itzer oban oden ofer okova oldi omond ontas orath orell orvik osian oswell ovan uchi udin ulak "
    "undsen urelli uvane"
).split()
_FIRST_STARTS = (
    "Ad Al Am Bel Ber Bran Cal Cam Cor Dal Dar El Em Fal Fen Gar Gil Hal Han Hel Il Is Jar Jel Jor Kal Kar "
    "Kel Ler Lor Mal Mel Mir Nad Nel "
    "Nor Ol Pal Per Rav Ren Sel Sim Sor Tam Ul Val Ven Vin Wal Wen Yel Zar"
).split()
_FIRST_ENDS = "arik avin ebeth edith elda emon evan ietta ilda iro itha ivan olin omir onda osia oval ulin urek ynn".split()
_NAME_SEED = 1788  # a person has the same name in every corpus

# Every tenth person holds an office and is also called by it.
_OFFICES = (
    "President",
    "Prime Minister",
    "Senator",
    "Chancellor",
    "Governor",
    "Mayor",
    "Judge",
    "General",
    "Ambassador",
    "Archbishop",
)
_OFFICE_EVERY = 10


@lru_cache(maxsize=1)
def _name_pieces():
    """Surnames and first names in a fixed random order."""
    rng = np.random.default_rng(_NAME_SEED)
    surnames = [a + b for a in _SURNAME_STARTS for b in _SURNAME_ENDS]
    firsts = [a + b for a in _FIRST_STARTS for b in _FIRST_ENDS]
    return [surnames[k] for k in rng.permutation(len(surnames))], [
        firsts[k] for k in rng.permutation(len(firsts))
    ]


def _person_name(k):
    """Name of a person with a surname of their own: the 260 identities, then those who are mentioned now and
    then."""
    surnames, firsts = _name_pieces()
    return f"{firsts[k % len(firsts)]} {surnames[k]}"


def _tail_name(k, reserved):
    """Name of number k of the long tail; surnames are shared within the tail, full names are not."""
    surnames, firsts = _name_pieces()
    surnames = surnames[reserved:]
    turn, place = divmod(k, len(surnames))
    if turn >= len(firsts):
        raise ValueError(
            f"n_items must be small enough for {len(surnames) * len(firsts)} names, got a corpus that needs "
            "more"
        )
    return f"{firsts[(37 * place + turn) % len(firsts)]} {surnames[place]}"


# -------------------------------------------------------------------------------------- words of the captions


class _Verb(NamedTuple):
    """A verb with its forms, as the captions use it, and what may follow it."""

    label: str
    third: str
    base: str
    gerund: str
    past: str
    complements: tuple


_VERBS = (
    _Verb("wave", "waves", "wave", "waving", "waved", ("to supporters", "to the crowd", "to photographers")),
    _Verb(
        "run", "runs", "run", "running", "ran", ("along the beach", "across the field", "through the rain")
    ),
    _Verb("jump", "jumps", "jump", "jumping", "jumped", ("for joy", "over a fence", "into the water")),
    _Verb(
        "clap",
        "claps",
        "clap",
        "clapping",
        "clapped",
        ("after the final whistle", "during the ceremony", "for the winners"),
    ),
    _Verb(
        "kick the ball",
        "kicks the ball",
        "kick the ball",
        "kicking the ball",
        "kicked the ball",
        ("towards the goal", "into the stands", "in training"),
    ),
    _Verb(
        "lift the trophy",
        "lifts the trophy",
        "lift the trophy",
        "lifting the trophy",
        "lifted the trophy",
        ("in front of the fans", "on the podium", "after the final"),
    ),
    _Verb(
        "hit a backhand",
        "hits a backhand",
        "hit a backhand",
        "hitting a backhand",
        "hit a backhand",
        ("in the second set", "from the baseline", "at match point"),
    ),
    _Verb(
        "shake hands",
        "shakes hands",
        "shake hands",
        "shaking hands",
        "shook hands",
        ("with officials", "with guests", "with visitors"),
    ),
    _Verb(
        "give a speech",
        "gives a speech",
        "give a speech",
        "giving a speech",
        "gave a speech",
        ("on the economy", "at a party congress", "in front of students"),
    ),
    _Verb("sing", "sings", "sing", "singing", "sang", ("on stage", "at a charity concert", "for the guests")),
)

#: What a person of kind ``"poses"`` may do; verb k is posed by samples of digit k of Pendigits.
VERBS = tuple(verb.label for verb in _VERBS)

_PLACES = (
    "Barcelona",
    "Prague",
    "Vienna",
    "Lisbon",
    "Oslo",
    "Geneva",
    "Cape Town",
    "Kyoto",
    "Buenos Aires",
    "Montreal",
    "Edinburgh",
    "Melbourne",
    "Helsinki",
    "Athens",
    "Dublin",
    "New Delhi",
    "Seoul",
    "Warsaw",
    "Budapest",
    "Rotterdam",
    "Marseille",
    "Turin",
    "Nairobi",
    "Santiago",
    "Boston",
    "Seattle",
    "Raleigh",
    "Valencia",
    "Krakow",
    "Bergen",
    "Zagreb",
    "Tallinn",
    "Lyon",
    "Hamburg",
    "Salzburg",
    "Toronto",
)
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_EVENTS = (
    "World Rowing Cup",
    "Spring Film Festival",
    "Trade Forum",
    "Winter Games",
    "Open Tennis Championship",
    "City Marathon",
    "Book Fair",
    "European Swimming Championships",
    "Peace Conference",
    "Motor Show",
    "Summer Music Festival",
    "Climate Summit",
    "Indoor Athletics Cup",
    "Nordic Ski Tour",
    "Charity Gala",
    "Fashion Week",
)
_COMPANIES = (
    "Norvane Motors",
    "Belcor Bank",
    "Tessaline Foods",
    "Ostrava Steel",
    "Pelham Air",
    "Vireo Software",
    "Corvid Pictures",
    "Lumen Telecom",
    "Harbour Street Insurance",
    "Atlas Rail",
)
_GROUPS = (
    "National Assembly",
    "Rowing Federation",
    "City Council",
    "Film Academy",
    "Olympic Committee",
    "Chamber of Commerce",
)
_AGENCIES = ("Northern Press", "Meridian Photo", "City Desk", "Allied Images")
_ROLES = (
    "actress",
    "striker",
    "Finance Minister",
    "film director",
    "opposition leader",
    "tennis champion",
    "singer",
    "Foreign Minister",
    "defending champion",
    "coach",
    "union leader",
    "writer",
    "goalkeeper",
    "Italian designer",
    "Australian swimmer",
    "Canadian skater",
    "Spanish captain",
    "Norwegian skier",
    "chief executive",
    "party spokesman",
)

# {a} are the people in the picture, {b} the last of them where a template tells two apart, {x} people
# mentioned besides.
_ONE = (
    "{a} speaks to reporters after a meeting in {place}, {date}.",
    "{a} arrives at the {event} in {place} on {day}.",
    "{role} {a} smiles during a news conference in {place}, {date}.",
    "{a} listens to a question from the audience at the {event} in {place}, {date}.",
    "{a}, shown in this {month} {year} file photo, has agreed to join {company}.",
    "{company} announced on {day} that {a} will lead its office in {place}.",
    "{a} celebrates after winning the {event} in {place}, {date}.",
    "{role} {a} gestures while addressing a rally in {place} on {day}.",
    "File photo of {a}, taken in {place} in {month} {year}.",
    "Under heavy security, {a} enters a hotel in {place}, {date}.",
    "{a} reacts after the final of the {event} in {place}, {date}.",
    "Police in {place} confirmed on {day} that {a} would be questioned again.",
    "{a} signs copies of a new book at a shop in {place}, {date}.",
    "In {place}, {role} {a} answers questions about the budget on {day}.",
)
_ONE_WITH_OTHER = (
    "{a} arrives for talks with {x} in {place}, {date}.",
    "{a} takes part in a match against {x} at the {event} in {place}, {date}.",
    "{a} attends the funeral of {x} in {place} on {day}.",
    "{a} reads out a letter from {x} during a hearing in {place}, {date}.",
    "{a}, who succeeds {x} at the head of {company}, speaks in {place} on {day}.",
)
_TWO = (
    "{a} talks with {b} before a meeting in {place}, {date}.",
    "{a} is congratulated by {b} after winning the {event} in {place}, {date}.",
    "{a} looks on as {b} speaks to the press in {place} on {day}.",
    "{a} presents an award to {b} at the {event} in {place}, {date}.",
    "{a} greets {b} at the airport of {place} on {day}.",
    "{a} and {role} {b} sign an agreement between {company} and the city of {place}, {date}.",
    "{a}, seated next to {b}, follows the debate in {place}, {date}.",
    "{a} battles for the ball with {b} in a match of the {event} in {place}, {date}.",
)
_MANY = (
    "{a} pose for a photograph at the {event} in {place}, {date}.",
    "{a} arrive for the {event} in {place} on {day}.",
    "{a} attend a ceremony in {place}, {date}.",
    "{a} answer questions at a news conference in {place}, {date}.",
    "{a} walk through the streets of {place} on {day}.",
    "{a} are seen at the opening of the {event} in {place}, {date}.",
    "{a} show their medals following the final of the {event} in {place}, {date}.",
    "{company} said on {day} that {a} would share the running of its office in {place}.",
    "Members of the {group}, among them {a}, stand for a minute of silence in {place}, {date}.",
)
_MANY_WITH_OTHER = (
    "{a} wait for the arrival of {x} in {place}, {date}.",
    "{a} leave a memorial service for {x} in {place} on {day}.",
)
_IN_ORDER = (
    "From left to right, {a} pose for a photograph in {place}, {date}.",
    "Seen at the {event} in {place} are, from left to right, {a}.",
    "{a}, from left to right, answer questions in {place}, {date}.",
    "From left to right: {a} at the {event} in {place} on {day}.",
)
_NOBODY = (
    "Fans wait outside the stadium in {place}, {date}.",
    "Rescue workers search a building in {place}, {date}.",
    "Visitors look at a new model by {company} at the {event} in {place}, {date}.",
    "Residents of {place} queue for water on {day}.",
    "Delegates of the {group} follow a debate in {place}, {date}.",
)
_NOBODY_BUT_OTHER = (
    "Supporters of {x} hold up banners in {place} on {day}.",
    "Journalists wait for {x} in front of a court in {place}, {date}.",
    "A portrait of {x} hangs in the town hall of {place}, {date}.",
    "Students in {place} protest against plans of {x} on {day}.",
)
_OTHERS = (
    "{x} could not attend.",
    "The guests also included {x}.",
    "{x} had visited {place} in {month}.",
    "The plan was drawn up with the help of {x}.",
    "{x} left {place} on {day}.",
    "The {event} of {year} was won by {x}.",
    "It was the first appearance since the meeting with {x}.",
    "A human rights group in {place} thanked {x}.",
    "{company} had been in talks with {x} (see {month} {year}).",
    "Critics, led by {x}, called the decision a mistake.",
)
_ENDINGS = (
    "The {event} ends on {day}.",
    "The meeting is expected to last two days.",
    "{company} declined to comment.",
    "(Photo: {agency})",
    "It was the third such visit since {month} {year}.",
    "{surname} said the result came as a surprise.",
    "{surname} returns to {place} on {day}.",
)

# Of kind "poses": {third}, {base}, {gerund} and {past} are forms of the verb with a complement; {b} are the
# people of a further clause.
_POSE_ONE = (
    "{a} {third}",
    "{role} {a} {third}",
    "Here {a} {third}",
    "{a} prepares to {base}",
    "{a} is seen {gerund}",
)
_POSE_MANY = ("{a} {base}", "{a} are seen {gerund}", "Here {a} {base}")
_POSE_NEXT_ONE = (" while {b} {third}", " as {b} {third}", ", with {b} {gerund} nearby", " and {b} {third}")
_POSE_NEXT_MANY = (" while {b} {base}", " as {b} {base}", ", with {b} {gerund} nearby")
_POSE_SILENT = (" in the company of {b}", " next to {b}", " with {b} looking on")
_POSE_WHERE = (
    " at the {event} in {place}, {date}.",
    " during a visit to {place} on {day}.",
    " at the {event} on {day}.",
    " in {place}, {date}.",
)
_POSE_STILL_ONE = ("{a} is pictured", "{role} {a} arrives", "{a} attends a reception")
_POSE_STILL_MANY = ("{a} are pictured", "{a} arrive", "{a} attend a reception")
_POSE_OTHER = (
    "{x} {past} earlier in the week.",
    "A day before, {x} {past} in {place}.",
    "{x} {past} on {day}.",
)
_POSE_OTHER_SILENT = (
    "{x} could not attend.",
    "The guests also included {x}.",
    "{x} had visited {place} in {month}.",
)

# -------------------------------------------------------------------------------------------- the composition

_PERSON, _STRANGER, _FALSE = range(3)

# Images by number of faces, 2 to 15, of the 20,071 (one face: the rest). The thesis prints the sum, 31,147,
# and the largest.
_FACES = {
    2: 4147,
    3: 1440,
    4: 530,
    5: 215,
    6: 110,
    7: 60,
    8: 30,
    9: 20,
    10: 12,
    11: 8,
    12: 5,
    13: 3,
    14: 2,
    15: 1,
}
_POSES_FACES = {2: 520, 3: 100, 4: 23}
# Of the items with spatial indicators: share with 1, 2, ... 6 faces.
_POSITION_FACES = (0.02, 0.41, 0.34, 0.14, 0.06, 0.03)
# How often the people who are never pictured are named in the training captions, at full size: all at least 3
# times, none 20 times.
_REGULARS, _REGULARS_MOST = 200, 18


class _Recipe(NamedTuple):
    """How a corpus is put together; shares unless said otherwise.

    Attributes
    ----------
    unnamed : (float, float, float)
        Faces that are no face or not mentioned, in images with one face, with two or three, with more.
    unnamed_position : float
        The same in items with spatial indicators, apart from one face of each.
    false : float
        Of these: false detections. The others are people, all identities alike.
    others, others_position : float
        Items whose people are all of the long tail, without and with spatial indicators.
    stranger, stranger_position : float
        People of the long tail beside an identity.
    extra, extra_position, extra_others : tuple of float
        0, 1, 2, ... identities that the caption names and the image does not show; the last for `others`.
    tail : tuple of float
        0, 1, ... names of the long tail that the caption adds.
    """

    unnamed: tuple
    unnamed_position: float
    false: float
    others: float
    others_position: float
    stranger: float
    stranger_position: float
    extra: tuple
    extra_position: tuple
    extra_others: tuple
    tail: tuple


_RECIPES = {
    "I": _Recipe(
        (0.08, 0.16, 0.26),
        0.03,
        0.5,
        0.42,
        0.30,
        0.20,
        0.15,
        (0.90, 0.10),
        (0.90, 0.10),
        (0.95, 0.05),
        (0.90, 0.08, 0.02),
    ),
    "II": _Recipe(
        (0.08, 0.16, 0.26),
        0.03,
        0.5,
        0.05,
        0.12,
        0.10,
        0.15,
        (0.23, 0.49, 0.20, 0.08),
        (0.92, 0.08),
        (0.30, 0.50, 0.20),
        (0.60, 0.30, 0.10),
    ),
    "poses": _Recipe(
        (0.10, 0.15, 0.20),
        0.0,
        0.5,
        0.03,
        0.0,
        0.05,
        0.0,
        (0.75, 0.20, 0.05),
        (1.0,),
        (0.75, 0.20, 0.05),
        (0.90, 0.10),
    ),
}
_CROWD = 6  # with more faces than this, most are not mentioned
_UNNAMED_CROWD = 0.5
_PARTNER_EXTRA = 0.3  # a mentioned person who is not pictured is the partner of one who is
_REPEATED_STRANGER = 0.1  # nobody of the long tail is mentioned more than twice
# Chances: a caption says what a mentioned person does; the people of an image do the same; a person does one
# of two usual things; a caption says what a person who is not pictured does.
_STATED, _SAME_VERB, _USUAL, _STATED_EXTRA = 0.85, 0.35, 0.6, 0.5


class _Face(NamedTuple):
    """One face of an image. `person` is the rank of an identity, the number of a stranger, or -1."""

    kind: int
    person: int
    mentioned: bool
    verb: int = -1
    stated: bool = False


class _Mention(NamedTuple):
    """One name in a caption: its number among all names, the face (number within the image) or -1, the verb
    said of it or -1."""

    name: int
    face: int
    verb: int = -1
    place: str = ""


class _Item(NamedTuple):
    """An image and its caption before the words. `faces` stand from left to right (from top to bottom if
    `stacked`)."""

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


class _Composer:
    """Decides who is in each image and who in each caption; names are numbers: identities by rank, regulars,
    the long tail."""

    def __init__(self, rng, recipe, n_names, exponent, p_correlated, poses):
        self.rng, self.recipe, self.n_names, self.p_correlated, self.poses = (
            rng,
            recipe,
            n_names,
            p_correlated,
            poses,
        )
        weights = np.arange(1, n_names + 1) ** -exponent
        self.cumulative = np.cumsum(weights / weights.sum())
        self.first_stranger = n_names + (0 if poses else _REGULARS)
        self.n_strangers, self.once = 0, []
        self.usual = rng.integers(len(_VERBS), size=(n_names, 2))

    def count(self, shares):
        """A number drawn with these probabilities of 0, 1, ..."""
        return min(int(np.searchsorted(np.cumsum(shares), self.rng.random(), side="right")), len(shares) - 1)

    def identity(self, taken, near=(), chance=0.0):
        """An identity outside `taken`: with this chance the partner of one of `near`, else by frequency."""
        rng = self.rng
        while True:
            if near and rng.random() < chance:
                person, chance = (
                    near[rng.integers(len(near))] ^ 1,
                    0.0,
                )  # ranks 0 and 1 are partners, 2 and 3, ...
                if person >= self.n_names:
                    continue
            else:
                person = min(
                    int(np.searchsorted(self.cumulative, rng.random(), side="right")), self.n_names - 1
                )
            if person not in taken:
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
        n_identities = (
            0 if only_strangers or n_named == 0 else 1 + int(rng.binomial(n_named - 1, 1 - share_stranger))
        )

        people, strangers = [], []
        for k in range(n_identities):
            people.append(self.identity(people, people[-1:], self.p_correlated if k % 2 else 0.0))
        for _ in range(n_named - n_identities):
            strangers.append(self.stranger(strangers))
        n_false = int(rng.binomial(n_faces - n_named, recipe.false))
        background = []
        for _ in range(n_faces - n_named - n_false):
            person = int(rng.integers(self.n_names))
            while person in people or person in background:
                person = int(rng.integers(self.n_names))
            background.append(person)

        shares = (
            recipe.extra_position if position else recipe.extra_others if only_strangers else recipe.extra
        )
        extra = []
        for _ in range(min(self.count(shares), MOST_NAMES - n_named)):
            extra.append(self.identity(people + background + extra, people, _PARTNER_EXTRA))
        extra_tail = []
        for _ in range(min(self.count(recipe.tail), MOST_NAMES - n_named - len(extra))):
            extra_tail.append(self.stranger(strangers + extra_tail))

        named = [_Face(_PERSON, p, True) for p in people] + [_Face(_STRANGER, s, True) for s in strangers]
        unnamed = [_Face(_FALSE, -1, False) for _ in range(n_false)] + [
            _Face(_PERSON, p, False) for p in background
        ]
        others = extra + [self.first_stranger + s for s in extra_tail]
        others = [_Mention(others[k], -1, self._other_verb()) for k in rng.permutation(len(others))]
        if self.poses:
            named, unnamed = self._act(named), self._act(unnamed, alike=0.0)
        return self._placed(named, unnamed, others) if position else self._loose(named, unnamed, others)

    def _other_verb(self):
        return int(self.rng.integers(len(_VERBS))) if self.poses and self.rng.random() < _STATED_EXTRA else -1

    def _act(self, faces, alike=_SAME_VERB):
        """Give every face a verb, and say of which the caption tells."""
        rng, acted = self.rng, []
        same = rng.random() < alike
        for k, face in enumerate(faces):
            if same and k:
                verb = acted[0].verb
            elif face.kind == _PERSON and rng.random() < _USUAL:
                verb = int(self.usual[face.person, rng.integers(2)])
            else:
                verb = int(rng.integers(len(_VERBS)))
            acted.append(face._replace(verb=verb, stated=face.mentioned and rng.random() < _STATED))
        return acted

    def name(self, face):
        return face.person if face.kind == _PERSON else self.first_stranger + face.person

    def _mention(self, faces, at, place=""):
        face = faces[at]
        return _Mention(self.name(face), at, face.verb if face.stated else -1, place)

    def _loose(self, named, unnamed, others):
        """Faces in any order; the caption names people in another."""
        faces = named + unnamed
        faces = [faces[k] for k in self.rng.permutation(len(faces))]
        at = [k for k, face in enumerate(faces) if face.mentioned]
        return _Item(faces, [self._mention(faces, at[k]) for k in self.rng.permutation(len(at))], others)

    def _placed(self, named, unnamed, others):
        """Faces in an order that the caption can tell of, and what it tells."""
        rng = self.rng
        named = [named[k] for k in rng.permutation(len(named))]
        unnamed = [unnamed[k] for k in rng.permutation(len(unnamed))]
        n, k = len(named) + len(unnamed), len(named)
        chance = rng.random()
        stacked = n == 2 and k == 2 and chance > 0.94
        if n == k and n >= 3 and chance < (0.3 if n == 3 else 0.95):
            return _Item(named, [self._mention(named, m, "order") for m in range(n)], others, in_order=True)
        first, last, middle = (
            ("top", "bottom", None) if stacked else ("left", "right", n // 2 if n % 2 and n > 1 else None)
        )
        if n == 1:
            places = {0: ("left", "right", "centre")[int(rng.integers(3))]}
        elif k == 1:
            places = (
                {middle: "centre"}
                if middle is not None and chance < 0.5
                else {0: first}
                if rng.random() < 0.5
                else {n - 1: last}
            )
        elif n == 2:
            places = (
                {0: first, 1: last}
                if stacked or chance < 0.88
                else {0: first}
                if chance < 0.91
                else {1: last}
            )
        elif k == n and middle is not None and chance > 0.97:
            places = {middle: "centre"}
        elif k >= 3 and middle is not None and chance < 0.95:
            places = {0: first, middle: "centre", n - 1: last}
        else:
            places = {0: first, n - 1: last}
        # Whoever has a place told is named; the rest fill the other places in any order.
        rest = named[len(places) :] + unnamed
        rest = [rest[j] for j in rng.permutation(len(rest))]
        told = iter(named)
        free = iter(rest)
        faces = [next(told) if at in places else next(free) for at in range(n)]
        at = [j for j, face in enumerate(faces) if face.mentioned]
        order = at if rng.random() < 0.5 else [at[j] for j in rng.permutation(len(at))]
        return _Item(
            faces, [self._mention(faces, j, places.get(j, "")) for j in order], others, stacked=stacked
        )


def _add_regulars(rng, items, is_test, first, train_size):
    """Name the people who are never pictured: in as many training captions as they are due, and in test
    captions in proportion."""
    due = np.rint(np.geomspace(_REGULARS_MOST, 3, _REGULARS))
    room = np.array([MOST_NAMES - len(item.pictured) - len(item.others) for item in items])
    for part in (~is_test, is_test):
        rows = np.flatnonzero(part & (room > 0))
        counts = np.minimum(np.floor(due * (part.sum() / train_size) + 0.5).astype(int), rows.size)
        names = np.repeat(np.arange(_REGULARS), counts)
        rounds = -(-names.size // max(rows.size, 1))
        captions = np.concatenate([rows[:0], *(rng.permutation(rows) for _ in range(rounds))])
        for name, i in zip(names.tolist(), captions.tolist(), strict=False):
            others = items[i].others
            if len(items[i].pictured) + len(others) < MOST_NAMES and all(
                other.name != first + name for other in others
            ):
                others.insert(int(rng.integers(len(others) + 1)), _Mention(first + name, -1))


# --------------------------------------------------------------------------------------------------- captions

_LETTER = {"left": "L", "right": "R", "centre": "C", "top": "top", "bottom": "bottom"}


class _Writer:
    """Puts an item into words."""

    def __init__(self, rng, name_of, forms):
        self.rng, self.name_of, self.forms = rng, name_of, forms

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def fields(self):
        pick = self.pick
        day, month, year = int(self.rng.integers(1, 29)), pick(_MONTHS), int(self.rng.integers(2002, 2010))
        return {
            "place": pick(_PLACES),
            "day": pick(_DAYS),
            "month": month,
            "year": year,
            "date": f"{month} {day}, {year}",
            "event": pick(_EVENTS),
            "company": pick(_COMPANIES),
            "group": pick(_GROUPS),
            "agency": pick(_AGENCIES),
            "role": pick(_ROLES),
        }

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
        told = [self.tagged(mention, style) for mention in item.pictured]
        others = [self.call(mention) for mention in item.others]
        fields, sentences = self.fields(), []
        taken = 0
        if item.in_order:
            sentences.append(self.pick(_IN_ORDER).format(a=_listed(told), **fields))
        elif not told:
            taken = int(bool(others) and self.rng.random() < 0.7)
            sentences.append(
                self.pick(_NOBODY_BUT_OTHER if taken else _NOBODY).format(x="".join(others[:taken]), **fields)
            )
        elif len(told) == 2 and self.rng.random() < 0.5:
            sentences.append(self.pick(_TWO).format(a=told[0], b=told[1], **fields))
        else:
            taken = int(bool(others) and self.rng.random() < 0.5)
            plain, besides = (_ONE, _ONE_WITH_OTHER) if len(told) == 1 else (_MANY, _MANY_WITH_OTHER)
            sentences.append(
                self.pick(besides if taken else plain).format(
                    a=_listed(told), x="".join(others[:taken]), **fields
                )
            )
        while taken < len(others):
            n = int(self.rng.integers(1, 4))
            sentences.append(
                self.pick(_OTHERS).format(x=_listed(others[taken : taken + n]), **{**fields, **self.fields()})
            )
            taken += n
        if self.rng.random() < 0.25:
            surname = "A spokesman" if not item.pictured else self.name_of(item.pictured[0].name).split()[-1]
            sentences.append(self.pick(_ENDINGS).format(surname=surname, **{**fields, **self.fields()}))
        return " ".join(_tidy(sentence, fields["role"]) for sentence in sentences)

    def pose_caption(self, item):
        fields, sentences, groups = self.fields(), [], {}
        for mention in item.pictured:
            groups.setdefault(mention.verb, []).append(self.call(mention))
        silent = groups.pop(-1, [])
        if groups:
            core = ""
            for number, (verb, names) in enumerate(groups.items()):
                one, many = (_POSE_NEXT_ONE, _POSE_NEXT_MANY) if number else (_POSE_ONE, _POSE_MANY)
                core += self.pick(one if len(names) == 1 else many).format(
                    a=_listed(names), b=_listed(names), **self.verb(verb), **fields
                )
            if silent:
                core += self.pick(_POSE_SILENT).format(b=_listed(silent))
            sentences.append(core + self.pick(_POSE_WHERE).format(**fields))
        elif silent:
            still = self.pick(_POSE_STILL_ONE if len(silent) == 1 else _POSE_STILL_MANY)
            sentences.append(
                still.format(a=_listed(silent), **fields) + self.pick(_POSE_WHERE).format(**fields)
            )
        else:
            sentences.append(self.pick(_NOBODY).format(**fields))
        for mention in item.others:
            form = self.pick(_POSE_OTHER_SILENT if mention.verb < 0 else _POSE_OTHER)
            words = {} if mention.verb < 0 else self.verb(mention.verb)
            sentences.append(form.format(x=self.call(mention), **words, **{**fields, **self.fields()}))
        return " ".join(_tidy(sentence, fields["role"]) for sentence in sentences)

    def verb(self, number):
        """Forms of a verb, all with the same complement."""
        verb = _VERBS[number]
        complement = self.pick(verb.complements)
        return {form: f"{getattr(verb, form)} {complement}" for form in ("third", "base", "gerund", "past")}


def _listed(names):
    """One or more names as English lists them."""
    if len(names) == 1:
        return names[0]
    head = ", ".join(name.rstrip(",") for name in names[:-1])
    return f"{head}{',' if names[-2].endswith(',') else ''} and {names[-1]}"


def _tidy(sentence, role):
    """A capital at the start, no comma before another mark, and no role of somebody who is called by the
    office."""
    sentence = sentence.replace(",,", ",").replace(",.", ".")
    if role in sentence:
        for office in _OFFICES:
            sentence = sentence.replace(f"{role} {office} ", f"{office} ")
    return sentence[0].upper() + sentence[1:]


# ------------------------------------------------------------------------------------------------------ boxes

_SLOT = 120.0  # pixels that a person has in width


def _lay_out(rng, item, poses):
    """Size of the image, and boxes (x0, y0, x1, y1) of faces and upper bodies, in the order of
    ``item.faces``."""
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


# --------------------------------------------------------------------------------------- samples and features


class _Pools(NamedTuple):
    """The real samples: letter (20,000 x 16), MNIST (70,000 x 28 x 28) and Pendigits (10,992 x 16), with
    classes and published splits."""

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
    letter, mnist, pendigits = (BundledFile(name) for name in ("letter", "mnist", "pendigits"))
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
    """A sample of each wanted class from `rows`, every one as often as any other of its class, give or take
    one."""
    dealt = np.empty(wanted.size, dtype=np.int64)
    for label in np.unique(wanted):
        at, own = np.flatnonzero(wanted == label), rows[y[rows] == label]
        rounds = -(-at.size // own.size)
        dealt[at] = np.concatenate([rng.permutation(own) for _ in range(rounds)])[: at.size]
    return dealt


def _deal_pairs(rng, letters, digits, pools, train):
    """Samples for pairs of classes from the training (or test) halves of the sets, no pair of samples
    twice."""
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
    pools = _pools()
    letters = _letter_features(pools.letters[pools.letter_train])
    squares, n = 0.0, int(pools.digit_train.sum())
    for start in range(0, n, 5000):
        squares += float(
            np.sum(_digit_features(pools.digits[start : min(start + 5000, n)], side) ** 2, dtype=np.float64)
        )
    return np.float32(1 / math.sqrt(np.mean(np.sum(letters**2, axis=1, dtype=np.float64)))), np.float32(
        1 / math.sqrt(squares / n)
    )


def _mixed_letters(pools, samples, kind):
    """Attributes of every face: one sample's; the mean of two; the first eight of one and the last eight of
    another."""
    a, b = pools.letters[samples[:, 0]], pools.letters[samples[:, 1]]
    cut = np.hstack([a[:, :8], b[:, 8:]])
    return np.where((kind == _FALSE)[:, None], cut, (a + b) / 2)


def _mixed_digits(pools, samples, kind):
    """Images of every face, float32 in 0..255: one sample's; the mean of two; the left half of one and the
    right half of another."""
    a, b = (pools.digits[samples[:, k]].astype(np.float32) for k in (0, 1))
    cut = np.concatenate([a[:, :, :14], b[:, :, 14:]], axis=2)
    return np.where((kind == _FALSE)[:, None, None], cut, (a + b) / 2)


def _mixed_pens(pools, samples, kind):
    """Pen strokes in 0..100: one sample's, or for false detections four points of one and four of another."""
    a, b = pools.pens[samples[:, 0]], pools.pens[samples[:, 1]]
    return np.where((kind == _FALSE)[:, None], np.hstack([a[:, :8], b[:, 8:]]), a)


# ----------------------------------------------------------------------------------------------------- public


class ItemPicture(NamedTuple):
    """What it takes to draw one item; faces in the order of the item's regions.

    Attributes
    ----------
    caption : str
    size : (int, int)
        Width and height of the image in pixels.
    boxes : ndarray, shape (M, 4)
        Of the faces: x0, y0, x1, y1, y downward.
    letters : ndarray of float32, shape (M, 16)
        Attributes of the letter in 0..15.
    digits : ndarray of float32, shape (M, 28, 28)
        Grey values in [0, 1].
    bodies : ndarray, shape (M, 4), or None
        Boxes of the upper bodies.
    pens : ndarray of float32, shape (M, 8, 2), or None
        Points x, y of the stroke in 0..100, y upward.
    names, verbs : ndarray of str, shape (M,)
        Truth, as in `CaptionedData`; `verbs` is None without poses.
    mentioned : ndarray of bool, shape (M,)
        Whether the caption has the person's name.
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
        Boxes of each item: its faces in no particular order; of kind ``"poses"`` each face is followed by its
        upper body.
    faces : ndarray of float32, shape (n, d)
        One row per face, item after item, in the order of `regions`: 152 columns of the letter, then those of
        the digit.
    poses : ndarray of float32, shape (n, 16), or None
        The pen stroke of each face's body in [0, 1].
    bag_sizes : ndarray of int, shape (N,)
        Faces of each item.
    names : ndarray of str, shape (n,)
        Who it is, mentioned or not; ``"null"`` for a false detection.
    verbs : ndarray of str, shape (n,), or None
        What the person does, said or not; ``"null"`` for a false detection.
    is_test : ndarray of bool, shape (N,)
        Test items; their samples are of the published test halves, those of the others of the training
        halves.
    has_position : ndarray of bool, shape (N,)
        Whether the caption tells who stands where.
    vocabulary : Vocabulary
        All names of the captions, in the order of `labels`, and all verbs.
    statistics : DataFrame
        Columns what, thesis, ours, note: what the thesis prints of its data, what this corpus has, and what
        could not be matched.
    description : str
    provenance : Provenance
        Of tier ``"generated"``.
    labels : ndarray of str
        All names: the identities from the most to the least frequent, people who are often mentioned and
        never pictured, the long tail.
    mentions : DataFrame
        A row for every name in every caption, items in order: ``item``, ``name`` (number among `labels`),
        ``face`` (row of `faces`, -1 if not pictured), ``verb`` (what the caption says they do; ``"null"`` if
        nothing), ``place`` (``"left"``, ``"centre"``, ``"right"``, ``"top"``, ``"bottom"``, ``"order"`` where
        the text lists people from left to right, or ``""``).
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
        """Rows of `faces` that belong to these items.

        Parameters
        ----------
        items : array of int, or bool mask of shape (N,)

        Returns
        -------
        ndarray of int, ascending
        """
        return np.flatnonzero(_item_mask(items, self.bag_sizes.size)[self.bag_of])

    def occurrences(self, items=None):
        """Number of captions that have each name.

        Parameters
        ----------
        items : array of int, or bool mask of shape (N,), optional
            Items to count in; the training items by default.

        Returns
        -------
        ndarray of int, shape (n_labels,)
            In the order of `labels`.
        """
        counted = _item_mask(~self.is_test if items is None else items, self.bag_sizes.size)
        here = counted[self.mentions["item"].to_numpy()]
        return np.bincount(self.mentions["name"].to_numpy()[here], minlength=self.labels.size)

    def names_with(self, min_count, items=None):
        """Names that occur often enough.

        Parameters
        ----------
        min_count : int
            Fewest captions that must have the name; the thesis takes 20 (protocol I) and 3 (protocol II).
        items : array of int, or bool mask of shape (N,), optional
            Items to count in; the training items by default.

        Returns
        -------
        list of str
            In the order of `labels`.

        Raises
        ------
        ValueError
            If `min_count` is not an integer >= 1.
        """
        return self.labels[self.occurrences(items) >= check_count("min_count", min_count)].tolist()

    def truth(self, names=None, verbs=None):
        """The labels that a learner with these words should give.

        Parameters
        ----------
        names : sequence of str, optional
            Names that are modelled; all by default.
        verbs : sequence of str, optional
            Verbs that are modelled: labels are then pairs.

        Returns
        -------
        ndarray of str, shape (n,), or (n, 2) with `verbs`
            The face's name; ``"null"`` if it is not among `names`, or the item's caption does not have it.
            Second column: the verb that the caption says of that person; ``"null"`` if it says none, or one
            that is not among `verbs`, or the name is ``"null"``.

        Raises
        ------
        ValueError
            If a name or a verb is unknown, or `verbs` is given for a corpus without poses.
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
        said = pictured["verb"].to_numpy(dtype=str)
        out[pictured["face"], 1] = np.where(
            np.isin(said, _known("verbs", verbs, np.array(VERBS))), said, NULL
        )
        return out

    def picture(self, item):
        """What it takes to draw one item.

        Parameters
        ----------
        item : int in 0..N-1

        Returns
        -------
        ItemPicture

        Raises
        ------
        IndexError
            If there is no such item.
        """
        if not 0 <= item < self.bag_sizes.size:
            raise IndexError(f"item must be in 0..{self.bag_sizes.size - 1}, got {item!r}")
        pools, rows = _pools(), self.rows([item])
        kind = np.array([_KINDS.index(word) for word in self.kinds[rows]])
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
        return f"<{self.provenance.name}, composed: {what}, {self.labels.size} names{'' if self.poses is None else ', poses'}>"


_KINDS = ("identity", "stranger", "false detection")


def _item_mask(items, n):
    """Items as a bool mask of shape (n,)."""
    items = np.asarray(items)
    if items.dtype == np.bool_ and items.shape == (n,):
        return items
    if (
        items.ndim != 1
        or (items.size and items.dtype.kind not in "iu")
        or (items.size and (items.min() < 0 or items.max() >= n))
    ):
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


# ------------------------------------------------------------------------------------------------- statistics


@cache
def _labelings(n_faces, n_names):
    """Ways to hand each of some names to at most one of some faces, the empty way among them."""
    return sum(
        math.comb(n_faces, j) * math.comb(n_names, j) * math.factorial(j)
        for j in range(min(n_faces, n_names) + 1)
    )


@cache
def _chance(n_faces, n_names, n_named, n_pinned, n_pinned_null):
    """Expected number of faces that a random candidate labeling has right.

    Of the faces, `n_named` have one of the `n_names` names and the others none; `n_pinned` of the former and
    `n_pinned_null` of the latter are told by their place. Without any of the former the labeling that names
    nobody is no candidate, unless there is no name."""
    if n_names == 0:
        return float(n_faces)
    if (
        n_faces == 1 or n_pinned_null == n_faces
    ):  # a place among one, and places that leave no candidate, say nothing
        n_pinned = n_pinned_null = 0
    free_faces, free_names, free_named = (
        n_faces - n_pinned - n_pinned_null,
        n_names - n_pinned,
        n_named - n_pinned,
    )
    empty = int(n_pinned == 0)
    total = _labelings(free_faces, free_names) - empty
    right = float(n_pinned + n_pinned_null)
    if free_named:
        right += free_named * _labelings(free_faces - 1, free_names - 1) / total
    if free_faces > free_named:
        right += (free_faces - free_named) * (_labelings(free_faces - 1, free_names) - empty) / total
    return right


def _random_accuracy(data, names, items, positions):
    """Expected accuracy of RANDOM: a candidate drawn from constraints [A] to [C], with `positions` also
    [D]."""
    n = data.bag_sizes.size
    mentions = data.mentions
    kept = np.isin(data.labels, names)[mentions["name"].to_numpy()]
    item, pictured = mentions["item"].to_numpy(), mentions["face"].to_numpy() >= 0
    placed = mentions["place"].to_numpy() != ""
    told = pictured & placed & positions
    counts = [
        np.bincount(item[rows], minlength=n) for rows in (kept, kept & pictured, kept & told, ~kept & told)
    ]
    chosen = np.flatnonzero(_item_mask(items, n))
    right = sum(_chance(*row) for row in np.column_stack([data.bag_sizes, *counts])[chosen].tolist())
    return right / data.bag_sizes[chosen].sum()


_TWO_PROTOCOLS = (
    "counted in captions, names cannot give both: from 20 to 3 occurrences 246 names come in, each in fewer "
    "than 20 captions, so at most "
    "4,674 of 20,071 captions change, and for the printed fall each would have to lose two right faces; "
    "hence a composition for each "
    "protocol"
)


def _statistics(data, protocol, n_names):
    """What the thesis prints of its data beside what the corpus has."""
    n = data.bag_sizes.size
    train, test = ~data.is_test, data.is_test
    mentions = data.mentions
    poses = data.poses is not None
    share = n / (POSES_SIZE if poses else FULL_SIZE)
    per_caption = np.bincount(mentions["item"], minlength=n)
    occurrences = data.occurrences()
    kinds, mentioned = data.kinds, data.mentioned
    rows = []

    def add(what, thesis, ours, note=""):
        rows.append((what, thesis, round(float(ours), 4), note))

    def percent(values):
        return 100 * float(np.mean(values)) if np.size(values) else math.nan

    if poses:
        add("items", 1703, n)
        add("training items", 1600, train.sum())
        add("test items", 103, test.sum())
        add(
            "faces",
            math.nan,
            data.bag_sizes.sum(),
            "not printed; images with one to four people are our choice",
        )
        add("names of which people are pictured", math.nan, n_names, "not printed")
        add("verbs", math.nan, len(VERBS), "not printed; ten, one for each digit of Pendigits")
        stated = mentions["verb"].to_numpy() != NULL
        telling = np.unique(mentions["item"][stated & (mentions["face"] >= 0)]).size
        add(
            "% of captions that tell an action of somebody pictured",
            math.nan,
            100 * telling / n,
            "the thesis: typically at least one",
        )
        add("% of named people in a caption with a verb", math.nan, percent(stated))
    else:
        add("items", FULL_SIZE, n)
        scaling = "" if n == FULL_SIZE else "in proportion to the items"
        add("faces", FULL_FACES, data.bag_sizes.sum(), scaling)
        add("items with spatial indicators", FULL_POSITIONS, data.has_position.sum(), scaling)
        add(
            "training items",
            16057 if protocol == "I" else TRAIN_PROTOCOL_2,
            train.sum(),
            f"protocol {protocol}",
        )
        add(
            "test items",
            FULL_SIZE - (16057 if protocol == "I" else TRAIN_PROTOCOL_2),
            test.sum(),
            f"protocol {protocol}",
        )
        add(
            "most faces in an image",
            15,
            data.bag_sizes.max(),
            "" if n == FULL_SIZE else "images with many faces are few",
        )
        add("most names in a caption", 9, per_caption.max())
        add(
            "different names in captions",
            10_000,
            np.unique(mentions["name"]).size,
            "the thesis: more than 10,000",
        )
        scaled = max(3, round(20 * share))
        frequent, known = data.names_with(scaled), data.names_with(3)
        threshold = "" if scaled == 20 else f"{scaled} or more, {scaling}"
        add("names in 20 or more training captions", 214, len(frequent), threshold)
        add(
            "names in 3 or more training captions",
            460,
            len(known),
            "thesis: occurrences of unnamed kind; ours count captions",
        )
        add(
            "of these, of people who are pictured",
            math.nan,
            np.isin(known, data.labels[:n_names]).sum(),
            f"{n_names} identities cannot make 460 names; the others are mentioned and never pictured",
        )
        unlike = "train and test items are composed alike, so that RANDOM cannot differ by the 7 points that the thesis prints"
        other = f"composed for protocol {protocol}"
        first, second = (threshold, other) if protocol == "I" else (other, "")
        chance = [
            100 * _random_accuracy(data, *which)
            for which in ((frequent, train, False), (known, train, False), (known, train, True))
        ]
        add("RANDOM, training, 20 occurrences (%)", 73.1, chance[0], first)
        if test.any():
            both = "; ".join(filter(None, [first, unlike]))
            add(
                "RANDOM, test, 20 occurrences (%)",
                66.0,
                100 * _random_accuracy(data, frequent, test, False),
                both,
            )
        add("RANDOM, training, 3 occurrences (%)", 37.0, chance[1], second)
        within = 100 * data.bag_sizes[train & data.has_position].sum() / data.bag_sizes[train].sum()
        limits = f"{within:.0f}% of the training faces are in items with spatial indicators; on the others RANDOM is as on test items"
        add("RANDOM, training, 3 occurrences, with positions (%)", 70.8, chance[2], second or limits)
        if test.any():
            add(
                "RANDOM, test, 3 occurrences (%)",
                39.5,
                100 * _random_accuracy(data, known, test, False),
                second,
            )
        add("RANDOM, training, 20 less 3 occurrences (points)", 36.1, chance[0] - chance[1], _TWO_PROTOCOLS)
        truth = data.truth(frequent)
        add("% of faces whose label is null, 20 occurrences", math.nan, percent(truth == NULL), "not printed")
        expressible = np.bincount(data.bag_of, weights=truth != NULL, minlength=n) > 0
        here = (
            np.bincount(
                mentions["item"], weights=np.isin(data.labels, frequent)[mentions["name"]], minlength=n
            )
            > 0
        )
        add(
            "% of items whose true labeling is no candidate, 20 occurrences",
            math.nan,
            percent(here & ~expressible),
            "the caption has a name, and nobody pictured has one: the labeling that names nobody is excluded "
            "(thesis 5.6.1)",
        )
    add("names in a caption, mean", math.nan, per_caption.mean())
    add(
        "captions with the most frequent name in training, %", math.nan, 100 * occurrences.max() / train.sum()
    )
    add("% of faces that are false detections", math.nan, percent(kinds == _KINDS[2]))
    add("% of faces of people of the long tail", math.nan, percent(kinds == _KINDS[1]))
    add("% of faces of people who are not mentioned", math.nan, percent(~mentioned & (kinds != _KINDS[2])))
    add("% of mentioned names of people who are not pictured", math.nan, percent(mentions["face"] < 0))
    for pool, chosen in (("training", train), ("test", test)):
        faces = data.samples[data.rows(chosen)]
        for k, what in enumerate(("letter", "digit", "pen stroke")[: 3 if poses else 2]):
            used = np.concatenate([faces[:, k, 0], faces[faces[:, k, 1] != faces[:, k, 0], k, 1]])
            if used.size:
                counts = np.unique(used, return_counts=True)[1]
                add(
                    f"uses of a {what} sample, {pool}: mean over those used",
                    math.nan,
                    counts.mean(),
                    f"most: {counts.max()}",
                )
    add(
        "columns of a face",
        1664 if not poses else math.nan,
        data.faces.shape[1],
        "152 of the letter, the rest of the digit",
    )
    return pd.DataFrame(rows, columns=["what", "thesis", "ours", "note"])


# ---------------------------------------------------------------------------------------- the public function


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
    r"""Compose a corpus of pictures with captions from real samples (the stand-in for the thesis's two sets
    of captioned news pictures).

    **People.** An identity is a pair of a letter class and a digit class (260 of them) with an invented name;
    some are also called by an office ("President ..."). The identity of rank r is drawn with a weight
    :math:`r^{-\text{exponent}}`; ranks 1 and 2, 3 and 4, ... are partners who are often pictured together.
    Then there are 200 people who are mentioned now and then and never pictured, and a long tail of people who
    are mentioned once or twice.

    **Faces.** A face of an identity is a sample of its letter (letter recognition) beside a sample of its
    digit (MNIST). A *stranger*, a person of the long tail, is the mean of the samples of two identities with
    different letters and digits, so that it lies between them. A *false detection* is cut from two people:
    the first eight attributes of one letter and the last eight of another, the left half of one digit and the
    right half of another. Columns: the letter's 16 attributes scaled to [0, 1], their squares and pairwise
    products (152), times a constant; the digit's grey values in [0, 1], averaged over blocks, times another.
    The constants bring the root mean square norm of either part to 1 over the training halves of the two
    sets, so that neither part outweighs the other.

    **Poses** (``kind="poses"``). A body is a sample of Pendigits: eight pen points scaled to [0, 1]. Its
    class is what the person does, one of the ten `VERBS`. Everybody has two usual verbs, taken in 60 of 100
    cases. A stranger's stroke is a plain sample, a false detection's is joined from the halves of two.

    **Pictures and captions.** Some faces are of people who are not mentioned, some names of people who are
    not pictured. A name occurs at most once in an image and in a caption, but a second sentence may bring the
    surname again. Captions come from some 70 templates with lists, dates, places, companies and parentheses.
    Items with spatial indicators say "(L)", "(C)", "(R)", ", left,", "(left)", "(top)" or "from left to
    right"; these agree with the order of the centres of all faces. With poses a caption says of most people
    what they do ("A waves to supporters while B claps"), of some nothing, and also what people did who are
    not in the picture.

    **Shares.** Number of items, faces and items with spatial indicators, most faces of an image and most
    names of a caption are those of Labeled Yahoo! News (or Faces+Poses); the shares of strangers, of names
    that are not pictured and so on were set so that RANDOM, which draws one of the candidate labelings and
    sees no face, is as often right as in tables 5.1 and 5.3. No learner had a part in it. ``statistics`` has
    all of it beside the printed numbers, with what could not be matched.

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
        103/1,703 with poses. Test items take samples of the test halves of letter (5,000), MNIST (10,000) and
        Pendigits (3,498), training items of the training halves (15,000, 60,000, 7,494).
    digit_side : {28, 14, 7, 4}, default=14
        Pixels per side of the averaged digit.
    random_state : int, Generator or None, default=0
        Names do not depend on it.

    Returns
    -------
    CaptionedData

    Raises
    ------
    ValueError
        If a parameter is out of range, or the corpus is larger than the samples and names allow.

    Notes
    -----
    No pair of a letter sample and a digit sample is used twice; single samples are, all of a class equally
    often (see ``statistics``). Time and memory grow as n_items: 20,071 items take about 3 s and 430 MB, 4,000
    items 0.6 s, besides 2 s for reading MNIST the first time.

    References
    ----------
    Jie Luo (2011). Open-ended Learning of Visual and Multi-modal Patterns. EPFL thesis 5233, sections 5.6.1,
    5.6.3 and 5.7, appendix A.
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
    from ..mms.captions import Region, Vocabulary

    if kind not in ("news", "poses"):
        raise ValueError(f"kind must be 'news' or 'poses', got {kind!r}")
    poses = kind == "poses"
    if protocol not in ("I", "II") or (poses and protocol != "I"):
        raise ValueError(f"protocol must be 'I' or 'II', and 'I' with poses, got {protocol!r}")
    full = POSES_SIZE if poses else FULL_SIZE
    n = full if n_items is None else check_count("n_items", n_items, 20)
    n_names = (60 if poses else N_IDENTITIES) if n_names is None else check_count("n_names", n_names, 30)
    if n_names > N_IDENTITIES:
        raise ValueError(
            f"n_names must be at most {N_IDENTITIES}, the pairs of a letter and a digit, got {n_names}"
        )
    exponent = check_non_negative("exponent", exponent)
    p_correlated = check_non_negative("p_correlated", p_correlated)
    if p_correlated > 1:
        raise ValueError(f"p_correlated must be at most 1, got {p_correlated}")
    if test_share is None:
        test_share = (
            POSES_TEST / POSES_SIZE if poses else 0.2 if protocol == "I" else 1 - TRAIN_PROTOCOL_2 / FULL_SIZE
        )
    test_share = check_non_negative("test_share", test_share)
    if test_share > (0.9 if protocol == "I" else 0.8):
        raise ValueError(f"test_share must be at most {0.9 if protocol == 'I' else 0.8}, got {test_share}")
    if digit_side not in (28, 14, 7, 4):
        raise ValueError(f"digit_side must be 28, 14, 7 or 4, got {digit_side!r}")
    # One stream each, so that a change of words or boxes leaves people and samples alone.
    plan_rng, people_rng, word_rng, box_rng, sample_rng = as_generator(random_state).spawn(5)

    n_faces, has_position, is_test = _plan(plan_rng, n, poses, protocol, test_share)
    recipe = _RECIPES["poses" if poses else protocol]
    composer = _Composer(people_rng, recipe, n_names, exponent, p_correlated, poses)
    items = [composer.item(f, p) for f, p in zip(n_faces.tolist(), has_position.tolist(), strict=False)]
    if not poses:
        _add_regulars(
            people_rng,
            items,
            is_test,
            n_names,
            TRAIN_PROTOCOL_2 if protocol == "II" else round(0.8 * FULL_SIZE),
        )

    # Which pair of classes an identity of this rank is; its name goes with the pair.
    identity = people_rng.permutation(N_IDENTITIES)[:n_names]
    reserved = N_IDENTITIES + _REGULARS
    labels = [_person_name(k) for k in identity.tolist()]
    labels += [] if poses else [_person_name(N_IDENTITIES + k) for k in range(_REGULARS)]
    labels = np.array(labels + [_tail_name(k, reserved) for k in range(composer.n_strangers)])

    def forms(name):
        if name >= n_names or identity[name] % _OFFICE_EVERY:
            return [str(labels[name])]
        office = _OFFICES[identity[name] // _OFFICE_EVERY % len(_OFFICES)]
        return [str(labels[name]), f"{office} {labels[name].split()[-1]}"]

    writer = _Writer(word_rng, lambda name: str(labels[name]), forms)
    captions = [writer.pose_caption(item) if poses else writer.caption(item) for item in items]

    regions, sizes, faces, mentions = [], np.empty((n, 2), dtype=int), [], []
    for i, item in enumerate(items):
        size, boxes, bodies = _lay_out(box_rng, item, poses)
        sizes[i] = size
        order = box_rng.permutation(len(item.faces)).tolist()  # a detector's order tells nothing of the place
        row = {at: len(faces) + m for m, at in enumerate(order)}
        mentions += [
            (i, mention.name, row.get(mention.face, -1), mention.verb, mention.place)
            for mention in item.pictured + item.others
        ]
        faces += [item.faces[at] for at in order]
        found = []
        for at in order:
            found.append(Region("face", tuple(boxes[at].tolist())))
            if poses:
                found.append(Region("body", tuple(bodies[at].tolist())))
        regions.append(found)
    mentions = pd.DataFrame(mentions, columns=["item", "name", "face", "verb", "place"])
    spelled = np.array([*VERBS, NULL])
    mentions["verb"] = spelled[mentions["verb"]]

    kind_of = np.array([face.kind for face in faces])
    person = np.array([face.person for face in faces])
    verb = np.array([face.verb for face in faces])
    numbers = np.where(
        kind_of == _PERSON, person, np.where(kind_of == _STRANGER, composer.first_stranger + person, -1)
    )
    names = np.append(labels, NULL)[numbers]
    in_test = np.repeat(is_test, n_faces)
    samples = _draw_samples(sample_rng, kind_of, person, identity, composer.n_strangers, verb, in_test)

    used = np.zeros(labels.size, dtype=bool)
    used[mentions["name"]] = True
    vocabulary = Vocabulary(
        {str(labels[k]): forms(k) for k in np.flatnonzero(used).tolist()},
        {v.label: list(dict.fromkeys([v.base, v.third, v.gerund, v.past])) for v in _VERBS} if poses else (),
    )
    what = "name-verb pairs" if poses else f"names, with the ambiguity of protocol {protocol}"
    data = CaptionedData(
        captions=captions,
        regions=regions,
        faces=_features(samples, kind_of, digit_side),
        poses=_mixed_pens(_pools(), samples[:, 2], kind_of) / np.float32(100) if poses else None,
        bag_sizes=n_faces,
        names=names,
        verbs=np.where(kind_of == _FALSE, NULL, spelled[verb]) if poses else None,
        is_test=is_test,
        has_position=has_position,
        vocabulary=vocabulary,
        statistics=None,
        description=(
            f"{n} news-like items composed of real samples for {what}: a person is a pair of a letter and a "
            "digit, a face a sample of "
            f"letter recognition beside one of MNIST{', a pose a stroke of Pendigits' if poses else ''}; "
            "names and captions are invented."
        ),
        provenance=Provenance(
            name=f"captioned-{kind}",
            tier="generated",
            licence="composed of letter recognition and Pendigits (CC BY 4.0) and MNIST (CC BY-SA 3.0 as usually stated)",
            sha256=None,
            citation="composed after Jie Luo (2011), EPFL thesis 5233, sections 5.6 and 5.7 and appendix A",
            source=(
                f"make_captioned({n}, kind={kind!r}, protocol={protocol!r}, n_names={n_names}, "
                f"exponent={exponent}, "
                f"p_correlated={p_correlated}, test_share={test_share}, digit_side={digit_side}, "
                f"random_state={random_state})"
            ),
            word="composed",
        ),
        labels=labels,
        mentions=mentions,
        kinds=np.array(_KINDS)[kind_of],
        samples=samples,
        sizes=sizes,
    )
    return data._replace(statistics=_statistics(data, protocol, n_names))


def _plan(rng, n, poses, protocol, test_share):
    """Faces of each item, whether it has spatial indicators, whether it is a test item: exact numbers at
    random places."""
    full = POSES_SIZE if poses else FULL_SIZE
    table = _POSES_FACES if poses else _FACES
    table = {1: full - sum(table.values()), **table}
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


def _draw_samples(rng, kind, person, identity, n_strangers, verb, in_test):
    """Row numbers of the samples of every face, int32 of shape (n, 3, 2); training and test faces draw from
    the halves of the sets."""
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
            dealt = _deal(
                rng,
                np.concatenate([verb[acting], other]),
                pools.pen_y,
                np.flatnonzero(pools.pen_train != test),
            )
            samples[acting, 2] = dealt[: acting.size, None]
            samples[halves, 2, 1] = dealt[acting.size :]
    return samples


def _features(samples, kind, side):
    """Both parts of every face, each at a root mean square norm of about 1: float32 of shape (n, 152 + side *
    side)."""
    pools, (letter_scale, digit_scale) = _pools(), _scales(side)
    faces = np.empty((len(samples), 152 + side * side), dtype=np.float32)
    for start in range(0, len(samples), 4096):  # few enough images in memory at a time
        block = slice(start, start + 4096)
        faces[block, :152] = (
            _letter_features(_mixed_letters(pools, samples[block, 0], kind[block])) * letter_scale
        )
        faces[block, 152:] = (
            _digit_features(_mixed_digits(pools, samples[block, 1], kind[block]), side) * digit_scale
        )
    return faces
