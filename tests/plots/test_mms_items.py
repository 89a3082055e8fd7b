"""Drawings of captioned items: what they say is what the data say, and nothing covers anything else."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.table import Table
from matplotlib.text import Text
from numpy.testing import assert_array_equal

from companion.plots import mms_items
from cuelearn.datasets.captioned import make_captioned
from cuelearn.mms import CandidateSet, Matching, candidates_from_caption


@pytest.fixture(scope="module")
def news():
    return make_captioned(240, n_names=30, random_state=0)


@pytest.fixture(scope="module")
def poses():
    return make_captioned(240, kind="poses", random_state=0)


def texts(fig):
    ticks = {text for ax in fig.axes for axis in (ax.xaxis, ax.yaxis) for text in axis.findobj(Text)}
    return [text for text in fig.findobj(Text) if text.get_text().strip() and text not in ticks]


def words(fig):
    return " ".join(text.get_text() for text in texts(fig))


def assert_printable(fig, composed=True):
    """Narrow enough, large enough letters, nothing cut off, and no text on another."""
    width, height = fig.get_size_inches()
    assert width <= 7.5 and height <= 9.5 and fig.get_layout_engine() is not None
    assert ("composed" in words(fig)) == composed
    fig.draw_without_rendering()
    page, boxes = fig.bbox, []
    tables = {text for table in fig.findobj(Table) for text in table.findobj(Text)}
    for text in texts(fig):
        assert text.get_fontsize() >= 5.9
        box = text.get_window_extent()
        inside = page.x0 <= box.x0 and box.x1 <= page.x1 + 1 and page.y0 <= box.y0 and box.y1 <= page.y1
        assert inside, text.get_text()
        slack = 0.15 * box.height
        boxes.append((box.x0, box.x1, box.y0 + slack, box.y1 - slack, text.get_text(), text in tables))
    for a, b in itertools.combinations(boxes, 2):
        apart = min(a[1], b[1]) - max(a[0], b[0]) <= 1.0 or min(a[3], b[3]) - max(a[2], b[2]) <= 1.0
        assert apart, (a, b)


def cells(fig, k=0):
    """Heads and columns of a table of candidates, and the heads' colours."""
    found = fig.findobj(Table)[k].get_celld()
    n_rows, n_columns = np.max(list(found), axis=0) + 1
    text = [[found[r, c].get_text().get_text() for r in range(n_rows)] for c in range(1, n_columns)]
    faces = [found[0, c].get_facecolor() for c in range(1, n_columns)]
    return [column[0] for column in text], [column[1:] for column in text], faces


def table(candidates, names, words, most=12, true=None, **look):
    """A page that holds a table of candidates and no more."""
    item = mms_items.Item(None, names, mms_items.symbols(words, names), [], true)
    fig, ax = plt.subplots(figsize=(7.5, 2))
    shown, total = mms_items.columns(item, candidates, most)
    mms_items.draw_candidates(ax, item, shown, f"{total}", **look)
    return fig


# --------------------------------------------------------------------------- what is printed


def test_figures_can_be_printed(news, poses):
    two = mms_items.pick(poses, n_faces=2, n_pairs=2)
    assert_printable(mms_items.items(poses, [two, mms_items.pick(poses, n_faces=1, n_names=2, n_pairs=1)]))
    assert_printable(mms_items.items(news, [mms_items.pick(news, n_faces=3, n_names=3)]))
    assert_printable(mms_items.item_with_candidates(poses, two))
    assert_printable(mms_items.thesis_captions(), composed=False)
    crowded = np.argsort(-news.bag_sizes, kind="stable")[:2].tolist()
    assert_printable(mms_items.items(news, crowded))
    assert_printable(mms_items.item_with_candidates(poses, int(np.argmax(poses.bag_sizes))))
    assert_printable(mms_items.spatial_indicators(news, mms_items.pick(news, indicators=True, n_faces=3)))


def test_a_caption_is_whole_and_its_known_words_are_bold_in_the_colour_of_their_person(poses):
    number = mms_items.pick(poses, n_faces=2, n_pairs=2)
    caption = poses.captions[number]
    shown = texts(mms_items.item_with_candidates(poses, number))
    start = next(k for k, text in enumerate(shown) if text.get_text() == caption.split()[0])
    shown = shown[start : start + len(caption.split())]
    assert [text.get_text() for text in shown] == caption.split()
    bold = [text for text in shown if text.get_fontweight() == "bold"]
    verbs = [text for text in bold if text.get_fontstyle() == "italic"]
    names = [text for text in bold if text not in verbs]
    mentioned = poses.caption_mentions(number)
    assert [text.get_text().strip(",.") for text in names] == " ".join(m.name for m in mentioned).split()
    colors = [text.get_color() for text in names[::2]]
    assert colors == [text.get_color() for text in names[1::2]] and len(set(colors)) == 2
    for mention, color in zip(mentioned, colors, strict=True):
        assert any(v.get_color() == color and v.get_text()[:2] == mention.verb[:2] for v in verbs)


def test_people_and_who_is_most_like_them(news):
    """A row holds one person's faces of both parts, then, cue by cue, the nearest face of somebody else."""
    fig = mms_items.people(news, 3)
    rows = np.reshape(fig.axes, (3, -1))
    known = news.kinds == "identity"
    names, counts = np.unique(news.names[known], return_counts=True)
    for row, name in zip(rows, names[np.argsort(-counts, kind="stable")], strict=False):
        assert row[0].get_ylabel().replace("\n", " ") == name
        own = known & (news.names == name)
        test = news.is_test[news.bag_of]
        shown = [ax.images[0].get_array() for ax in row]
        for part, drawn in ((own & ~test, shown[:4]), (own & test, shown[4:6])):
            for look, expected in zip(drawn, news.looks(np.flatnonzero(part)), strict=False):
                assert_array_equal(look, expected)
        first, others = np.flatnonzero(own & ~test)[0], np.flatnonzero(known & ~own)
        for look, part in zip(shown[6:], news.face_cues.values(), strict=True):
            apart = np.linalg.norm(news.faces[others, part] - news.faces[first, part], axis=1)
            assert_array_equal(look, next(news.looks([others[np.argmin(apart)]])))
    assert_printable(fig)


def test_faces_and_bodies_stand_in_their_boxes(news, poses):
    for data in (news, poses):
        number = int(np.argmax(data.bag_sizes))
        ax, rows = mms_items.item_with_candidates(data, number).axes[0], data.rows([number])
        found = list(data.looks(rows))
        if data is poses:
            found = [look for pair in zip(data.looks(rows, body=True), found, strict=True) for look in pair]
        boxes = [region.box for region in data.regions[number]]
        for image, look in zip(ax.images, found, strict=True):
            assert_array_equal(image.get_array(), look)
            x0, x1, y1, y0 = image.get_extent()
            inside = [b[0] <= x0 < x1 <= b[2] and b[1] <= y0 < y1 <= b[3] for b in boxes]
            assert any(inside) and x1 - x0 == y1 - y0


# --------------------------------------------------------------------------- the table


def test_the_thesis_sets_are_those_of_its_captions():
    for kept in mms_items.THESIS:
        found = mms_items.read_printed(kept).parsed
        assert found.candidates.tolist() == kept["candidates"] and found.note == ""


def test_the_matrix_of_figure_5_4_as_printed():
    a, b, o = r"$\mathbf{n}_{a}$", r"$\mathbf{n}_{b}$", mms_items.NULL
    printed = np.array([[1, 2], [1, 0], [0, 2], [2, 1], [0, 1], [2, 0]])[:, :, None]
    names = [["null", "Barack Obama", "Michelle Obama"]]
    heads, shown, _ = cells(table(printed, names, [(1,), (2,)]))
    assert shown == [[a, b], [a, o], [o, b], [b, a], [o, a], [b, o]]
    assert heads == [rf"$\mathbf{{Z}}_{{{k}}}$" for k in range(1, 7)]
    _, shown, _ = cells(table(printed, names, [(1,), (2,)], spelled=True))
    assert shown[1] == ["Barack Obama", "null"]


def test_letters_follow_the_words_given_and_a_shared_verb_has_one_symbol():
    names = [["null", "A", "B"], ["null", "wave"]]
    fig = table(np.array([[[1, 1]], [[2, 1]]]), names, [(2, 1), (1, 1)])
    n, v = r"$\mathbf{n}_{%s}$", r"$\mathbf{v}_{a}$"
    assert cells(fig)[1] == [[n % "b", v], [n % "a", v]]


def test_the_true_vector_is_shown_though_it_comes_late(news):
    number = mms_items.pick(news, n_faces=3, n_names=3)
    item = candidates_from_caption(*news.items[number], news.vocabulary, constraints="ABC")
    assert len(item.candidates) == 33
    names = [list(news.vocabulary.names)]
    for true, n_columns in ((3, 6), (32, 7)):
        drawn = table(item.candidates, names, item.words, most=5, true=item.candidates[true])
        heads, shown, faces = cells(drawn)
        black = [k for k, face in enumerate(faces) if same_color(face, "black")]
        assert black == [3 if true == 3 else 6] and len(shown) == n_columns and heads[5] == "…"


def test_the_black_head_of_an_item_is_its_truth(news):
    numbers = {mms_items.pick(news, n_faces=2, n_names=n) for n in (1, 2, 3)}
    assert len(numbers) == 3
    for number in numbers:
        _, shown, faces = cells(mms_items.items(news, [number]))
        (at,) = [k for k, face in enumerate(faces) if same_color(face, "black")]
        expected = news.truth()[news.rows([number])].tolist()
        assert [name.replace("\n", " ") for name in shown[at]] == expected


def test_a_matching_is_shown_as_its_first_candidates():
    matching = Matching(np.arange(1, 9)[:, None], np.ones((8, 9), dtype=bool))
    names = ["null", *"ABCDEFGH"]
    whole = CandidateSet([matching], classes=[names], null=(0,))
    true = np.array([[0]] * 7 + [[1]])
    fig = table(matching, [names], [(k,) for k in range(1, 9)], most=4, true=true)
    letter = [mms_items.NULL, *(rf"$\mathbf{{n}}_{{{c}}}$" for c in "abcdefgh")]
    first, later = cells(fig)[1][:4], cells(fig)[1][5]
    assert [*first, later] == [[letter[k] for k in z[:, 0]] for z in [*whole.iterate(0, 0, 4), true]]


def test_indicators_strike_out_what_they_rule_out(news):
    number = mms_items.pick(news, n_faces=2, n_names=2, indicators=True)
    fig = mms_items.spatial_indicators(news, number)
    item = *news.items[number], news.vocabulary
    free, kept = (candidates_from_caption(*item, constraints=c).candidates for c in ("ABC", "ABCD"))
    assert len(kept) < len(free) == 6
    assert f"without [D]: 6 candidates; [D] strikes out {6 - len(kept)}" in words(fig)
    assert f"with [D]: {len(kept)} candidate" in words(fig)
    found = fig.findobj(Table)[0].get_celld()
    grey = [found[0, k].get_text().get_color() == mms_items.PALE for k in range(1, 7)]
    assert grey == [z.tolist() not in kept.tolist() for z in free]


# --------------------------------------------------------------------------- choosing


def test_picked_items_are_as_asked_and_always_the_same(news, poses):
    number = mms_items.pick(news, n_faces=2, n_names=3)
    assert news.bag_sizes[number] == 2
    assert len(news.caption_mentions(number)) == 3
    assert news.has_position[mms_items.pick(news, indicators=True)]
    number = mms_items.pick(poses, n_faces=2, n_pairs=2)
    verbs = [mention.verb for mention in poses.caption_mentions(number)]
    assert len(verbs) == 2 == len(set(verbs)) and all(verbs)
    assert mms_items.pick(poses, n_faces=2, n_pairs=2) == number


def test_errors(news):
    match = "n_faces=2, n_names=9 must be met by an item of the data, got 0 of 240"
    with pytest.raises(ValueError, match=match):
        mms_items.pick(news, n_faces=2, n_names=9)
    with pytest.raises(ValueError, match="n_pairs must be None for data without poses"):
        mms_items.pick(news, n_pairs=1)
    with pytest.raises(ValueError, match="numbers must hold one or two items, got 3"):
        mms_items.items(news, [0, 1, 2])
    with pytest.raises(ValueError, match=r"items must be item numbers in 0\.\.239"):
        mms_items.items(news, [240])
    without = next(i for i in range(240) if not news.has_position[i])
    with pytest.raises(ValueError, match="indicators rule out a candidate"):
        mms_items.spatial_indicators(news, without)
