"""From captions to candidate labeling sets."""

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from cuelearn.mms import CandidateSet, Matching, Mention, Region, Vocabulary, captions, mentions
from cuelearn.mms.captions import candidate_set
from cuelearn.mms.captions import candidates_from_caption as read

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
    return faces(n) + bodies(n)


def listed(item, attribute=0):
    return item.candidates[:, :, attribute].tolist()


def and_list(names):
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def names_caption(w):
    return f"A picture taken in Rome shows {and_list(PEOPLE[:w])}."


def named(caption):
    """The caption with the names of A, B, C, ... written out; "(C)" is an indicator."""
    return re.sub(r"(?<!\()\b([A-E])\b(?!-)", lambda found: PEOPLE[LETTERS.index(found[1])], caption)


def reading(caption, vocabulary):
    return [" ".join(filter(None, (m.name[0], *m[1:]))) for m in mentions(named(caption), vocabulary)]


def brute_force(n, words, *, tagged=None, n_null=0):
    """All label vectors of n regions that the rules allow, found by trying everything.

    `tagged` gives words the region that they are at; region `n_null` - 1 and those before belong to nobody.
    """
    tagged = tagged or {}
    found = set()
    for z in itertools.product([0, *words], repeat=n):
        used = [word for word in z if word]
        if not used or len(set(used)) < len(used) or any(z[:n_null]):
            continue
        if any(z[m] not in [word for word, at in tagged.items() if at == m] for m in set(tagged.values())):
            continue
        if any(word in tagged and tagged[word] != m for m, word in enumerate(z)):
            continue
        found.add(z)
    return found


def some_of(values):
    return st.lists(st.sampled_from(values), min_size=1, max_size=4)


TAGS = {"(L)": 0, "(R)": -1, "(C)": None, "": "none"}


@settings(max_examples=60)
@given(st.integers(2, 5), some_of(sorted(TAGS)), st.booleans())
def test_indicators_leave_what_brute_force_leaves(n, tags, spread):
    names = [f"{name} {tag}".strip() for name, tag in zip(PEOPLE, tags)]
    caption = f"Pictured here are {and_list(names)}."
    order = list(range(n))[::-1] if spread else list(range(n))  # regions given from right to left
    regions = [faces(n)[k] for k in order]
    item = read(caption, regions, ANYBODY)
    tagged, dropped = {}, 0
    for word, tag in enumerate(tags, 1):
        rank = TAGS[tag]
        if rank is None and n % 2 == 0:
            dropped += 1
        elif rank != "none":
            place = n // 2 if rank is None else rank % n
            tagged[word] = order.index(place)
    expected = brute_force(n, range(1, len(tags) + 1), tagged=tagged)
    vectors = [tuple(z) for z in listed(item)]
    assert set(vectors) == expected and len(vectors) == len(expected)
    assert set(item.positions) == {word - 1 for word in tagged}
    assert item.note.count("dropped") == dropped
    assert dropped == 0 or f"{n} regions have no middle" in item.note


@settings(max_examples=60)
@given(st.integers(1, 3), some_of(["waves", "poses", ""]), st.integers(0, 3))
def test_verbs_alone_are_the_pairs_without_their_names(n, actions, at_left):
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


def test_indicators_that_leave_no_candidate_are_all_dropped():
    caption = "Ann Archer (L) and Bob Baker (R) meet Carl Crane."
    item = read(caption, faces(2), ANYBODY.only(names=["Carl Crane"]))
    assert listed(item) == [[1, 0], [0, 1]]
    assert item.note == "all indicators dropped: they leave no candidate" and item.positions == {}


@pytest.mark.parametrize("caption", ["A, B (C), C and D meet in Rome.", "A (L) and B (L), D, E."])
@pytest.mark.parametrize("attributes", [("name",), PAIR])
def test_a_set_too_large_to_list_is_a_matching_of_the_same_content(monkeypatch, caption, attributes):
    given = named(caption), persons(3), WAVING.only(names=PEOPLE[:4])
    full = read(*given, attributes=attributes)
    number = len(full.candidates)
    monkeypatch.setattr(captions, "MOST_LISTED", number - 1)
    item = read(*given, attributes=attributes)
    assert isinstance(item.candidates, Matching) and "kept as a Matching" in item.note
    assert (item.words, item.instances, item.positions) == (full.words, full.instances, full.positions)
    sets = CandidateSet([item.candidates, full.candidates], null=0)
    assert sets.n_candidates == [number] * 2
    assert {z.tobytes() for z in sets.bag(0)} == {z.tobytes() for z in sets.bag(1)}


def test_a_name_counted_as_null_keeps_its_place_and_its_verb():
    caption = "Ann Archer (L) poses and Bob Baker waves with Carl Crane."
    item = read(caption, faces(3), ANYBODY.only(names=["Bob Baker", "Carl Crane"]))
    assert {tuple(z) for z in listed(item)} == brute_force(3, [1, 2], n_null=1)
    assert item.words == [(1,), (2,)] and item.positions == {}
    few = WAVING_POSING.only(names=["Bob Baker"], verbs=["wave"])
    assert read(caption, persons(2), few, attributes=PAIR).words == [(1, 1)]


@pytest.mark.parametrize(
    "caption, n, reason",
    [
        ("A (4th L) and B.", 3, 'indicator "4th from left" of Ann Archer dropped: there are only 3 regions'),
        ("A (L), B; A (R).", 2, 'indicators "left" and "right" of Ann Archer dropped: they contradict'),
        ("A (top) and B.", 2, 'indicator "top" of Ann Archer dropped: two regions lie at the same place'),
    ],
)
def test_an_indicator_that_cannot_apply_is_dropped_and_said(caption, n, reason):
    item = read(named(caption), faces(n), ANYBODY)
    assert reason in item.note and item.positions == {}
    assert_array_equal(item.candidates, read(names_caption(2), faces(n), ANYBODY).candidates)


ACTIONS = Vocabulary(
    dict.fromkeys(PEOPLE, ()) | {"Bob Baker": ["the President"]},
    {"shake hands": ["shook hands"], "backhand": ["hit a backhand"], "hit": [], "stand": ["stood"]}
    | {verb: [] for verb in ("wave", "carry", "stop")},
)


@pytest.mark.parametrize(
    "caption, expected",
    [
        ("A shook hands. B shakes both his hands.", ["A shake hands", "B shake hands"]),
        ("A is hitting a powerful two-handed backhand, B hits.", ["A backhand", "B hit"]),
        ("A stopped, B carries.", ["A stop", "B carry"]),
        ("A (L), Rome's coach B, right, and US star C wave.", ["A wave left", "B wave right", "C wave"]),
        ("A waves with B standing on the stairs.", ["A wave", "B stand"]),
        ("Waving fans greet A. They wave.", ["A"]),
        ("A, left, B, at right, and C, in the middle, meet.", ["A left", "B right", "C middle"]),
        ("A (2nd L), B (3rd from right), C (top).", ["A 2nd from left", "B 3rd from right", "C top"]),
        ("A, left-handed, and right wing B left.", ["A", "B"]),
        ("B-side, A's hat, the President, and C", ["A", "B", "C"]),
        ("A walks with John Smith (L). Photo (c) B (2nd from middle).", ["A", "B"]),
    ],
)
def test_reading(caption, expected):
    assert reading(caption, ACTIONS) == expected


def test_candidate_set_of_many_items():
    pairs = [(names_caption(2), persons(2)), ("Ann Archer waves.", persons(1)), ("Nobody.", persons(3))]
    items = [read(*pair, WAVING, attributes=PAIR) for pair in pairs]
    assert items[2].note == "no known word" and items[2].candidates.tolist() == [[[0, 0]] * 3]
    sets = candidate_set(pairs, WAVING, PAIR)
    assert sets.bag_sizes.tolist() == [2, 1, 3] and sets.null == (0, 0)
    assert [c.tolist() for c in sets.classes] == [["null", *PEOPLE], ["null", "wave"]]
    turned = candidate_set(pairs, WAVING, PAIR[::-1])
    for i in range(3):
        assert_array_equal(sets.bag(i), items[i].candidates)
        assert_array_equal(turned.bag(i), items[i].candidates[:, :, ::-1])


FACE = Region("face", (0, 0, 10, 10))


@pytest.mark.parametrize(
    "error, call, message",
    [
        (ValueError, lambda v: read("Ann", FACE, v), r"regions\[0\] must be a Region"),
        (TypeError, lambda v: Vocabulary("Ann"), "names must be a list of words or a dict from a word to"),
        (ValueError, lambda v: read([Mention("Ann")], [FACE], v), r"caption\[0\] must have words of the"),
        (ValueError, lambda v: read("Ann", [("hand", (0, 0, 1, 1))], v), r"regions\[0\] must be a Region"),
        (ValueError, lambda v: read("Ann", [("face", (5, 0, 5, 1))], v), r"regions\[0\] must be a Region"),
        (ValueError, lambda v: read("Ann", bodies(1), v), "regions must hold a face, to which a name"),
        (ValueError, lambda v: read("Ann", [FACE], v, attributes=["noun"]), "attributes must be"),
        (ValueError, lambda v: Vocabulary(["null"]), "names must hold every word once, none of them 'null'"),
        (ValueError, lambda v: v.only(names=["Bo"]), "names must be labels of the vocabulary, got 'Bo'"),
        (ValueError, lambda v: candidate_set([("Ann", [])], v), r"items\[0\]: regions .* at least 1"),
    ],
)
def test_errors_name_the_argument(error, call, message):
    with pytest.raises(error, match=message):
        call(WAVING)
