"""From captions to candidate labeling sets: the thesis's figures, a twin of the rules, errors."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from companion.plots.mms_items import THESIS
from cuelearn.mms import (
    CandidateSet,
    ItemCandidates,
    Matching,
    Mention,
    Region,
    Vocabulary,
    candidate_set,
    mentions,
)
from cuelearn.mms import candidates_from_caption as read

FIGURE_5_2, FIGURE_5_4 = (kept["caption"] for kept in THESIS[2:])
# Labels 1, 2, ...; 0 is null.
THE_OBAMAS = Vocabulary(["Barack Obama", "Michelle Obama"], {"wave": [], "stand": ["stood"]})
SWIMMERS = Vocabulary(["Grant Hackett", "Igor Chervynsky", "Erik Vendt"], ["show"])
PEOPLE = ["Ann Archer", "Bob Baker", "Carl Crane", "Dora Dean", "Eve Eaton"]
LETTERS = "ABCDE"
ANYBODY = Vocabulary(PEOPLE)
WAVING = Vocabulary(PEOPLE, ["wave"])
WAVING_POSING = Vocabulary(PEOPLE, ["wave", "pose"])
PAIR = ("name", "verb")


def faces(n, down=False):
    """n faces from left to right (from top to bottom)."""
    boxes = [(100 * k, 20, 100 * k + 40, 60) for k in range(n)]
    return [Region("face", (y0, x0, y1, x1) if down else (x0, y0, x1, y1)) for x0, y0, x1, y1 in boxes]


def bodies(n):
    return [Region("body", (100 * k - 20, 0, 100 * k + 60, 150)) for k in range(n)]


def persons(n):
    """n faces, then the bodies below them."""
    return faces(n) + bodies(n)


def listed(item, attribute=0):
    return item.candidates[:, :, attribute].tolist()


def and_list(names):
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def names_caption(w):
    """A caption with w names and no indicator."""
    return f"A picture taken in Rome shows {and_list(PEOPLE[:w])}."


def named(caption):
    """The caption with the names of A, B, C, ... written out; "(C)" is an indicator."""
    return re.sub(r"(?<!\()\b([A-E])\b(?!-)", lambda found: PEOPLE[LETTERS.index(found[1])], caption)


def reading(caption, vocabulary):
    """Initial, verb and place of every mention of a caption."""
    return [" ".join(filter(None, (m.name[0], *m[1:]))) for m in mentions(named(caption), vocabulary)]


def test_figure_5_2_has_hackett_always_and_only_in_the_middle():
    item = read(FIGURE_5_2, faces(3), SWIMMERS)
    # two persons and two faces, and nobody else
    others = [[2, 3], [2, 0], [0, 3], [3, 2], [0, 2], [3, 0], [0, 0]]
    assert listed(item) == [[left, 1, right] for left, right in others]
    assert item.positions == {0: "middle"} and item.words == [(1,), (2,), (3,)] and item.note == ""
    shuffled = [faces(3)[k] for k in (2, 0, 1)]
    found = {tuple(z) for z in listed(read(FIGURE_5_2, shuffled, SWIMMERS))}
    assert found == {(z[2], z[0], z[1]) for z in listed(item)}


def test_the_caption_of_figure_5_4_makes_both_wave():
    item = read(FIGURE_5_4, persons(2), THE_OBAMAS, attributes=PAIR)
    assert item.words == [(1, 1), (2, 1)] and len(item.candidates) == 6
    alone = read(FIGURE_5_4, bodies(2), THE_OBAMAS, attributes=("verb",))
    assert listed(alone) == [[1, 1], [1, 0], [0, 1]]  # both wave, or one does; distinct vectors once
    assert alone.words == [(1,)]


def brute_force(n, words, *, unique=True, tagged=None, n_null=0):
    """All label vectors of n regions that the rules allow, found by trying everything.

    `tagged` gives words the region that they are at; region `n_null` - 1 and those before belong to nobody.
    """
    tagged = tagged or {}
    found = set()
    for z in itertools.product([0, *words], repeat=n):
        used = [word for word in z if word]
        if not used or (unique and len(set(used)) < len(used)) or any(z[:n_null]):
            continue
        if any(z[m] not in [word for word, at in tagged.items() if at == m] for m in set(tagged.values())):
            continue
        if any(word in tagged and tagged[word] != m for m, word in enumerate(z)):
            continue
        found.add(z)
    return found


def figure_order(n, w):
    """The order of figure 5.4: every full way to assign words, then its parts not met before."""
    found = {}
    k = min(n, w)
    ways = itertools.product([*range(n), n], repeat=w)
    for way in sorted(p for p in ways if len({m for m in p if m < n}) == k == sum(m < n for m in p)):
        used = [word for word in range(w) if way[word] < n]
        for size in range(k, 0, -1):
            for part in itertools.combinations(used, size):
                word_of = {way[word]: word + 1 for word in part}
                found.setdefault(tuple(word_of.get(m, 0) for m in range(n)))
    return list(found)


@pytest.mark.parametrize("w", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_sets_are_those_of_brute_force_and_as_many_as_the_formula_says(n, w):
    item = read(names_caption(w), faces(n), ANYBODY)
    vectors = [tuple(z) for z in listed(item)]
    number = sum(math.comb(n, j) * math.comb(w, j) * math.factorial(j) for j in range(1, min(n, w) + 1))
    assert len(set(vectors)) == len(vectors) == number
    assert set(vectors) == brute_force(n, range(1, w + 1))
    if n <= 4:
        assert vectors == figure_order(n, w)


TAGS = {"(L)": 0, "(R)": -1, "(C)": None, "": "none"}


def some_of(values):
    return st.lists(st.sampled_from(values), min_size=1, max_size=4)


@settings(max_examples=60)
@given(st.integers(2, 4), some_of(sorted(TAGS)), st.booleans(), st.booleans())
def test_indicators_leave_what_brute_force_leaves(n, tags, unique, spread):
    names = [f"{name} {tag}".strip() for name, tag in zip(PEOPLE, tags)]
    caption = f"Pictured here are {and_list(names)}."
    order = list(range(n))[::-1] if spread else list(range(n))  # regions given from right to left
    regions = [faces(n)[k] for k in order]
    constraints = "ABCD" if unique else "ACD"
    item = read(caption, regions, ANYBODY, constraints=constraints)
    tagged, dropped = {}, 0
    for word, tag in enumerate(tags, 1):
        rank = TAGS[tag]
        if rank is None and n % 2 == 0:
            dropped += 1
        elif rank != "none":
            place = n // 2 if rank is None else rank % n
            tagged[word] = order.index(place)
    expected = brute_force(n, range(1, len(tags) + 1), unique=unique, tagged=tagged)
    vectors = [tuple(z) for z in listed(item)]
    assert set(vectors) == expected and len(vectors) == len(expected)
    assert set(item.positions) == {word - 1 for word in tagged}
    assert item.note.count("dropped") == dropped
    assert dropped == 0 or f"{n} regions have no middle" in item.note


@settings(max_examples=60)
@given(st.integers(1, 3), some_of(["waves", "poses", ""]), st.integers(0, 3))
def test_verbs_alone_are_the_pairs_without_their_names(n, actions, at_left):
    """The verbs' vectors are those of the pairs with the names struck out, but for the all-null one."""
    vocabulary = WAVING_POSING
    tags = [" (L)" if k == at_left else "" for k in range(len(actions))]
    caption = " ".join(f"{name}{tag} {verb or 'left'}." for name, tag, verb in zip(PEOPLE, tags, actions))
    pairs = read(caption, persons(n), vocabulary, attributes=PAIR)
    alone = read(caption, bodies(n), vocabulary, attributes=("verb",))
    assert [word[1] for word in pairs.words] == [{"waves": 1, "poses": 2, "": 0}[verb] for verb in actions]
    expected = {tuple(z) for z in listed(pairs, 1)} - {(0,) * n}
    if expected:
        assert {tuple(z) for z in listed(alone)} == expected and len(alone.candidates) == len(expected)
    elif any(actions):  # the only verbs belong to persons whom the indicator leaves no place
        assert "dropped" in alone.note and len(alone.candidates)
    else:
        assert alone.note == "no known word" and listed(alone) == [[0] * n]


def test_without_d_indicators_say_nothing():
    caption = "Ann Archer (L) and Bob Baker (L) and Carl Crane (C) meet."
    plain = read(names_caption(3), faces(2), ANYBODY)
    ignored = read(caption, faces(2), ANYBODY, constraints="ABC")
    assert ignored.positions == {} and ignored.note == ""
    assert_array_equal(ignored.candidates, plain.candidates)


def test_c1_names_go_to_faces_and_verbs_to_bodies():
    regions = [bodies(2)[1], faces(2)[0], bodies(2)[0], faces(2)[1]]
    caption, vocabulary = "Ann Archer waves. Bob Baker poses.", WAVING_POSING
    names = read(caption, regions, vocabulary)
    verbs = read(caption, regions, vocabulary, attributes=("verb",))
    both = read(caption, regions, vocabulary, attributes=PAIR)
    turned = read(caption, regions, vocabulary, attributes=("verb", "name"))
    assert names.instances == [(1,), (3,)] and verbs.instances == [(0,), (2,)]
    assert both.instances == [(1, 2), (3, 0)]
    assert_array_equal(turned.candidates, both.candidates[:, :, ::-1])


def test_c1_a_person_is_a_face_near_the_centre_of_a_body_and_within_it():
    body = Region("body", (0, 0, 100, 200))

    def pairs(*regions):
        return read("Ann Archer waves.", [*regions, body], WAVING, attributes=PAIR)

    # centres at 74 and 77 of 100, and below the body
    boxes = [(54, 10, 94, 50), (56, 10, 98, 50), (30, 190, 70, 230)]
    near, off, below = (Region("face", box) for box in boxes)
    assert pairs(near).instances == [(0, 1)] and pairs(near).note == ""
    for lonely in (off, below):
        with pytest.raises(ValueError, match="regions must hold a face near the horizontal centre of a body"):
            pairs(lonely)
    item = pairs(off, Region("face", (40, 10, 60, 30)), near)  # the closest one wins
    assert item.instances == [(1, 3)] and item.candidates.tolist() == [[[1, 1]]]
    assert item.note == "left out: faces without a body 2, bodies without a face 0"


def test_c1_as_many_persons_as_possible_are_made():
    """The face between two bodies goes to the one that no other face can have."""
    boxes = {"face": [(18, 0, 22, 10), (26, 0, 34, 10)], "body": [(0, 0, 50, 50), (-15, 0, 45, 50)]}
    regions = [Region(kind, box) for kind, two in boxes.items() for box in two]
    item = read("Ann Archer waves.", regions, WAVING, attributes=PAIR)
    assert item.instances == [(0, 3), (1, 2)] and item.note == ""


def test_c2_a_pair_holds_no_verb_of_somebody_else():
    caption = "Ann Archer waves as Bob Baker poses with Carl Crane."
    item = read(caption, persons(3), WAVING_POSING, attributes=PAIR)
    assert set(map(tuple, item.candidates.reshape(-1, 2).tolist())) == {(0, 0), (1, 1), (2, 2), (3, 0)}


def test_c3_no_name_is_on_two_persons():
    caption = "Ann Archer waves. Ann Archer poses."
    item = read(caption, persons(3), WAVING_POSING, attributes=PAIR)
    assert item.words == [(1, 1)]  # one word, with its first verb
    assert listed(item) == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_c4_top_and_bottom_follow_the_vertical_order():
    caption = "Ann Archer (bottom) and Bob Baker (top)."
    item = read(caption, faces(2, down=True), ANYBODY)
    assert listed(item) == [[2, 1]] and item.positions == {0: "bottom", 1: "top"}


def test_c4_ranks_count_from_their_end():
    item = read("Ann Archer (2nd L) and Bob Baker (2nd R).", faces(4), ANYBODY)
    assert {(z[1], z[2]) for z in listed(item)} == {(1, 2)}
    assert item.positions == {0: "2nd from left", 1: "2nd from right"}


def test_mentions_are_taken_in_place_of_a_text():
    said = [Mention("Ann Archer", "wave", "right"), Mention("Bob Baker", place="2nd from right")]
    item = read(said, persons(3), WAVING, attributes=PAIR)
    same = read("Ann Archer (R) waves, Bob Baker (2nd from right).", persons(3), WAVING, attributes=PAIR)
    assert item.words == same.words == [(1, 1), (2, 0)] and item.positions == same.positions
    assert item.candidates.tolist() == same.candidates.tolist() == [[[0, 0], [2, 0], [1, 1]]]


@pytest.mark.parametrize("attributes", [("name",), ("verb",), PAIR])
def test_a_caption_without_known_word_leaves_null_alone(attributes):
    item = read("Nobody (L) waves.", persons(2), WAVING, attributes=attributes)
    assert item.candidates.tolist() == [[[0] * len(attributes)] * 2]
    assert item.note == "no known word" and item.words == [] and item.positions == {}


def test_a_name_without_verb_is_no_word_for_verbs_alone():
    item = read("A crowd waves with Ann Archer.", bodies(2), WAVING, attributes=("verb",))
    assert listed(item) == [[0, 0]] and item.note == "no known word"


@pytest.mark.parametrize(
    "caption, n, reason",
    [
        ("A (C) and B.", 2, 'indicator "middle" of Ann Archer dropped: 2 regions have no middle'),
        ("A (L) and B.", 1, 'indicator "left" of Ann Archer dropped: a single region has no place'),
        ("A (4th L) and B.", 3, 'indicator "4th from left" of Ann Archer dropped: there are only 3 regions'),
        ("A (L), B; A (R).", 2, 'indicators "left" and "right" of Ann Archer dropped: they contradict'),
        ("A (bottom) and B.", 2, 'indicator "bottom" of Ann Archer dropped: two regions lie at the same'),
        ("A (top) and B.", 2, 'indicator "top" of Ann Archer dropped: two regions lie at the same place'),
    ],
)
def test_an_indicator_that_cannot_apply_is_dropped_and_said(caption, n, reason):
    item = read(named(caption), faces(n), ANYBODY)
    assert reason in item.note and item.positions == {}
    without = read(names_caption(2), faces(n), ANYBODY)
    assert_array_equal(item.candidates, without.candidates)
    if n == 2 and "(C)" in caption:  # and leaves the others
        item = read(named("A (C) and B (R)."), faces(2), ANYBODY)
        assert listed(item) == [[1, 2], [0, 2]] and item.positions == {1: "right"} and reason in item.note


def test_a_name_that_counts_as_null_leaves_its_place_to_nobody():
    caption = "Ann Archer (L) and Bob Baker wave with Carl Crane."
    few = WAVING.only(names=["Bob Baker", "Carl Crane"])
    item = read(caption, faces(3), few)
    assert {tuple(z) for z in listed(item)} == brute_force(3, [1, 2], n_null=1)
    assert item.words == [(1,), (2,)] and item.positions == {} and item.note == ""


def test_a_place_that_a_known_name_shares_with_one_counted_as_null_may_be_null():
    caption = "Ann Archer (L) and Bob Baker (L)."
    item = read(caption, faces(2), ANYBODY.only(names=["Bob Baker"]))
    assert listed(item) == [[1, 0]]
    item = read(caption.replace(".", " meet Carl Crane."), faces(2), ANYBODY.only(names=PEOPLE[1:]))
    assert listed(item) == [[1, 2], [1, 0], [0, 2]]


def test_indicators_that_leave_no_candidate_are_all_dropped():
    caption = "Ann Archer (L) and Bob Baker (R) meet Carl Crane."
    item = read(caption, faces(2), ANYBODY.only(names=["Carl Crane"]))
    assert listed(item) == [[1, 0], [0, 1]]
    assert item.note == "all indicators dropped: they leave no candidate" and item.positions == {}


@pytest.mark.parametrize(
    "caption", ["A, B, C and D.", "A, B (C), C and D meet in Rome.", "A (L) and B (L), D, E."]
)
@pytest.mark.parametrize("attributes", [("name",), PAIR])
def test_a_set_too_large_to_list_is_a_matching_of_the_same_content(caption, attributes):
    vocabulary, caption = WAVING.only(names=PEOPLE[:4]), named(caption)

    def item_of(**options):
        return read(caption, persons(3), vocabulary, attributes=attributes, **options)

    full = item_of()
    number = len(full.candidates)
    item = item_of(max_candidates=number - 1)
    assert isinstance(item.candidates, Matching)
    assert "kept as a Matching" in item.note and f"{number} labelings" in item.note
    assert (item.words, item.instances, item.positions) == (full.words, full.instances, full.positions)
    sets = candidate_set([item, full], vocabulary, attributes)
    assert sets.n_candidates == [number] * 2
    assert {z.tobytes() for z in np.asarray(sets.bag(0))} == {z.tobytes() for z in np.asarray(sets.bag(1))}
    assert item_of(max_candidates=number).note == ""


def test_words_that_may_repeat_cannot_be_a_matching():
    for options in ({"constraints": "AC"}, {"attributes": ("verb",)}):
        with pytest.raises(ValueError, match=r"caption must leave at most max_candidates = 2 .* got \d+"):
            read("Ann Archer and Bob Baker wave.", persons(2), WAVING, max_candidates=2, **options)
    caption = "Ann Archer waves. Bob Baker won."  # here no verb has two subjects
    item = read(caption, persons(4), WAVING, max_candidates=2, attributes=("verb",))
    assert isinstance(item.candidates, Matching)


def test_names_are_the_longest_surface_forms_on_whole_words():
    president = "the President of the USA"
    vocabulary = Vocabulary(
        {"George Bush": ["George W. Bush", president], "George Bush Senior": [], "Bo": []}
    )
    caption = f"George Bush Senior, George W. Bush, {president}, GEORGE BUSH, Boston, Bo-Derek and Bo."
    assert [m.name for m in mentions(caption, vocabulary)] == [
        "George Bush Senior",
        "George Bush",
        "George Bush",
        "Bo",
    ]
    assert read(caption, faces(1), vocabulary).words == [(2,), (1,), (3,)]  # one word each


@pytest.mark.parametrize(
    "name, text",
    [
        ("Barack Obama", "Barack Obama's hat"),
        ("Serena Williams", "Serena Williams' hat"),
        ("Jean-Paul Belmondo", "Jean-Paul Belmondo"),
        ("Conan O'Brien", "Conan O'Brien"),
        ("Zo\u00eb Kravitz", "(Zo\u00eb Kravitz)"),
        ("Barack Obama", "Barack\n  Obama"),
        ("Robert Downey Jr.", "Robert Downey Jr. here"),
    ],
)
def test_names_are_found_in_real_spelling(name, text):
    assert [m.name for m in mentions(f"Look: {text} is here.", Vocabulary([name]))] == [name]


@pytest.mark.parametrize(
    "text", ["Obama-style", "Obamas", "pro-Barack Obama", "barack obama", "Barack, Obama", "Barack H. Obama"]
)
def test_parts_of_other_words_are_no_names(text):
    assert mentions(f"Some {text} talk.", Vocabulary(["Barack Obama", "Rome"])) == []


@pytest.mark.parametrize(
    "forms",
    """wave waves waving waved; hit hits hitting; kiss kisses kissing kissed; watch watches watched
    carry carries carrying carried; play plays playing played; go goes going; stop stops stopping stopped
    agree agrees agreeing agreed; visit visits visiting visited; fix fixes fixing fixed
    travel travels traveling travelling travelled""".replace("\n", ";").split(";"),
)
def test_regular_inflections(forms):
    verb = forms.split()[0]
    for form in forms.split():
        assert reading(f"A {form} here.", Vocabulary(PEOPLE, [verb])) == [f"A {verb}"], form


ACTIONS = Vocabulary(
    PEOPLE,
    {"shake hands": ["shook hands"], "backhand": ["hit a backhand"], "hit": [], "stand": ["stood"]}
    | {verb: [] for verb in ("wave", "hug")},
)


@pytest.mark.parametrize(
    "caption, expected",
    [
        ("A shook hands. B shakes both his hands.", ["A shake hands", "B shake hands"]),
        ("A is hitting a powerful two-handed backhand, B hits.", ["A backhand", "B hit"]),
        ("A and B wave.", ["A wave", "B wave"]),
        ("A (L), Rome's coach B, right, and US star C wave.", ["A wave left", "B wave right", "C wave"]),
        ("A waves and B stands.", ["A wave", "B stand"]),
        ("A waves. B stood.", ["A wave", "B stand"]),
        ("A waves with B standing on the stairs.", ["A wave", "B stand"]),
        ("Waving fans greet A. They wave.", ["A"]),
        ("A (l), B (center) and C (Right).", ["A", "B middle", "C right"]),
        ("A, left, B, at right, and C, in the middle, meet.", ["A left", "B right", "C middle"]),
        ("A on the left and B at right.", ["A left", "B right"]),
        ("A, left and B, right, wave.", ["A wave left", "B wave right"]),
        (
            "A (2nd L), B (3rd from right), C (1st from left).",
            ["A 2nd from left", "B 3rd from right", "C left"],
        ),
        ("A (top) and B (bottom).", ["A top", "B bottom"]),
        ("A left the court.", ["A"]),
        ("A, left-handed, and right wing B left.", ["A", "B"]),
        ("A, right wing of Ajax, on the left wing.", ["A"]),
        ("A walks with John Smith (L). Photo (c) B (2nd from middle).", ["A", "B"]),
    ],
)
def test_reading(caption, expected):
    assert reading(caption, ACTIONS) == expected


def test_a_name_counted_as_null_keeps_its_verb_to_itself():
    caption = "Ann Archer poses. Bob Baker (R) waves."
    vocabulary = WAVING_POSING.only(names=PEOPLE[:1])
    item = read(caption, persons(2), vocabulary, attributes=PAIR)
    assert item.words == [(1, 2)] and item.candidates.tolist() == [[[1, 2], [0, 0]]]
    fewer = vocabulary.only(verbs=["wave"])
    assert read(caption, persons(2), fewer, attributes=PAIR).words == [(1, 0)]


FACE = Region("face", (0, 0, 10, 10))


def test_candidate_set_of_many_items():
    vocabulary = WAVING
    pairs = [(names_caption(2), persons(2)), ("Ann Archer waves.", persons(1)), ("Nobody.", persons(3))]
    sets = candidate_set(pairs, vocabulary, PAIR)
    items = [read(*pair, vocabulary, attributes=PAIR) for pair in pairs]
    same = candidate_set(items, vocabulary, PAIR)
    assert isinstance(sets, CandidateSet) and sets.n_candidates == same.n_candidates == [6, 1, 1]
    assert sets.bag_sizes.tolist() == [2, 1, 3] and sets.null == (0, 0) and sets.n_labels == (6, 2)
    assert [c.tolist() for c in sets.classes] == [["null", *PEOPLE], ["null", "wave"]]
    for i in range(3):
        assert_array_equal(sets.bag(i), items[i].candidates)
    loose = candidate_set(pairs[:1], vocabulary, constraints="AC", max_candidates=8)
    assert loose.n_candidates == [8]
    with pytest.raises(ValueError, match=r"items\[0\] must have the attributes \('name',\), got 2 labels"):
        candidate_set(items, vocabulary)
    with pytest.raises(ValueError, match=r"items\[1\]: regions must hold at least one region, got none"):
        candidate_set([pairs[0], ("Ann Archer.", [])], vocabulary)
    with pytest.raises(TypeError, match=r"items\[0\] must be an ItemCandidates or a pair \(caption"):
        candidate_set(["Ann Archer."], vocabulary)
    with pytest.raises(TypeError, match="items must be a list of ItemCandidates, got ItemCandidates"):
        candidate_set(items[0], vocabulary, PAIR)
    with pytest.raises(TypeError, match="vocabulary must be a Vocabulary, got list"):
        candidate_set(items, PEOPLE)


def test_only_keeps_the_vocabulary_s_order():
    vocabulary = Vocabulary({name: [] for name in PEOPLE}, ["wave", "stand"])
    few = vocabulary.only(names=[PEOPLE[2], "null", PEOPLE[0]], verbs=[])
    assert few.names.tolist() == ["null", PEOPLE[0], PEOPLE[2]] and few.verbs.tolist() == ["null"]
    assert len(vocabulary.names) == 6 and repr(few) == "<Vocabulary: 2 names, 0 verbs>"
    assert few.only().names.tolist() == few.names.tolist()


WRONG_TYPES = [
    (lambda v: read(None, [FACE], v), "caption must be a str or a list of Mention, got NoneType"),
    (lambda v: read(b"Ann Archer", [FACE], v), "caption must be a str or a list of Mention, got bytes"),
    (lambda v: read("Ann", [FACE], PEOPLE), "vocabulary must be a Vocabulary, got list"),
    (lambda v: read("Ann", FACE, v), "regions must be a list of Region, got"),
    (lambda v: read("Ann", "face", v), "regions must be a list of Region, got 'face'"),
    (lambda v: read(["Ann"], [FACE], v), r"caption\[0\] must be a Mention, got 'Ann'"),
    (lambda v: Vocabulary("Ann"), "names must be a list of words or a dict from a word to its surface"),
    (lambda v: Vocabulary(5), "names must be a list of words or a dict"),
    (lambda v: Vocabulary(["Ann", 3]), "names must hold words as str, got 3"),
    (lambda v: Vocabulary({"Ann": "Anna"}), r"names\['Ann'\] must be a list of surface forms, got 'Anna'"),
    (lambda v: v.only(verbs="wave"), "verbs must be a list of labels, got 'wave'"),
]
WRONG_VALUES = [
    (lambda v: read(" \n", [FACE], v), "caption must hold some text, got an empty one"),
    (lambda v: mentions("", v), "caption must hold some text, got an empty one"),
    (lambda v: read([Mention("Ann")], [FACE], v), r"caption\[0\] must have a name of the vocabulary, got"),
    (lambda v: read([Mention(PEOPLE[0], "sit")], [FACE], v), r"caption\[0\] must have a verb of the vocab"),
    (lambda v: read([Mention(PEOPLE[0], place="up")], [FACE], v), r"caption\[0\] must have a place such as"),
    (lambda v: read("Ann", [], v), "regions must hold at least one region, got none"),
    (lambda v: read("Ann", [FACE, 3], v), r"regions\[1\] must be a Region\(kind, .* got 3"),
    (lambda v: read("Ann", [("face", (0, 0, 1))], v), r"regions\[0\] must be a Region"),
    (lambda v: read("Ann", [("hand", (0, 0, 1, 1))], v), r"regions\[0\] must be of kind 'face' or 'body'"),
    (lambda v: read("Ann", [("face", (5, 0, 5, 1))], v), r"regions\[0\] must have a box with finite x0 < x1"),
    (lambda v: read("Ann", [("face", (0, 0, np.nan, 1))], v), r"regions\[0\] must have a box with finite"),
    (lambda v: read("Ann", [("face", ("a", 0, 1, 1))], v), r"regions\[0\] must have a box with finite"),
    (lambda v: read("Ann", bodies(1), v), "regions must hold a face, to which a name belongs, got none"),
    (lambda v: read("Ann", faces(1), v, attributes=("verb",)), "regions must hold a body, to which a verb"),
    (lambda v: read("Ann", faces(1), v, attributes=PAIR), "regions must hold a face and a body"),
    (lambda v: read("Ann", [FACE], v, attributes=("noun",)), r"attributes must be \('name',\), .* got"),
    (lambda v: read("Ann", [FACE], v, attributes="name"), "attributes must be .* got 'name'"),
    (lambda v: read("Ann", [FACE], v, attributes=("name", "name")), "attributes must be"),
    (lambda v: read("Ann", [FACE], v, attributes=()), "attributes must be"),
    (lambda v: read("Ann", [FACE], v, constraints="ABE"), "constraints must be letters among 'ABCD', got"),
    (lambda v: read("Ann", [FACE], v, constraints="BCD"), "constraints must hold 'A' and 'C'"),
    (lambda v: read("Ann", [FACE], v, constraints=None), "constraints must be letters among 'ABCD', got"),
    (lambda v: read("Ann", [FACE], v, max_candidates=0), "max_candidates must be an integer >= 1, got 0"),
    (lambda v: read("Ann", bodies(1), ANYBODY, attributes=("verb",)), "vocabulary must hold verbs"),
    (lambda v: Vocabulary([]), "names must hold at least one name, got none"),
    (lambda v: Vocabulary(["Ann", "--"]), "names must hold words with at least one letter, got '--'"),
    (lambda v: Vocabulary(["Ann", "Ann"]), "names must hold every word once, got 'Ann' twice"),
    (lambda v: Vocabulary(["null"]), "names must not hold 'null', which stands for none of the words"),
    (lambda v: Vocabulary({"Ann": ["Bea"], "Bea": []}), "names must give a surface form to one label, got"),
    (lambda v: v.only(names=["Nobody"]), "names must be labels of the vocabulary, got 'Nobody'"),
    (lambda v: v.only(names=[]), "names must keep at least one name, got none"),
]


@pytest.mark.parametrize(
    "error, call, message",
    [(TypeError, *case) for case in WRONG_TYPES] + [(ValueError, *case) for case in WRONG_VALUES],
)
def test_errors_name_the_argument_in_one_sentence(error, call, message):
    with pytest.raises(error, match=message) as raised:
        call(WAVING)
    assert "\n" not in str(raised.value) and raised.value.__class__ is error


PIECES = st.sampled_from(
    PEOPLE
    + (
        "waves/waving/wave/hits a/backhand/and/,/./:/&/\n/(L)/(R)/(C)/(2nd L)/left/right,/on the left/at/(/)"
        "/top/who/with/his wife/President/of/the/'s/is/Zo\u00eb/..."
    ).split("/")
)


@settings(max_examples=100)
@given(
    st.lists(PIECES, min_size=1, max_size=40),
    st.integers(1, 4),
    st.sampled_from([("name",), ("verb",), PAIR]),
)
def test_any_text_gives_candidates_that_keep_the_rules(pieces, n, attributes):
    caption = "x " + " ".join(pieces)
    vocabulary = Vocabulary(PEOPLE, {"wave": [], "backhand": ["hit a backhand"], "hit": []})
    item = read(caption, persons(n), vocabulary, attributes=attributes)
    assert isinstance(item, ItemCandidates) and item.candidates.shape[1:] == (n, len(attributes))
    assert len(item.candidates) == len({z.tobytes() for z in item.candidates}) > 0
    known = {(0,) * len(attributes), *item.words}
    assert all(tuple(word) in known for z in item.candidates.tolist() for word in z)
    assert item.candidates.any(axis=(1, 2)).all() == (item.note != "no known word")
    if attributes[0] == "name":
        assert {vocabulary.names[word[0]] for word in item.words} == {p for p in PEOPLE if p in caption}
        for z in item.candidates[:, :, 0].tolist():
            used = [label for label in z if label]
            assert len(set(used)) == len(used)
        for word in item.positions:  # in every candidate, or shares its place, always the same one
            at = np.argwhere(item.candidates[:, :, 0] == item.words[word][0])[:, 1]
            assert len(set(at.tolist())) <= 1
