"""Drawings of captioned items: what they say is what the data say, and nothing covers anything else."""

import itertools
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

from cuelearn.datasets.captioned import make_captioned
from cuelearn.mms import CandidateSet, Matching
from cuelearn.mms.captions import candidates_from_caption, mentions
from cuelearn.plots import mms_items


@pytest.fixture(scope="module")
def news():
    return make_captioned(600, random_state=0)


@pytest.fixture(scope="module")
def poses():
    return make_captioned(600, kind="poses", random_state=0)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def texts(fig):
    return [text for ax in fig.axes for text in ax.texts if text.get_text().strip()]


def words(fig):
    return " ".join(text.get_text() for text in texts(fig))


def at(text):
    return tuple(text.get_position())


def assert_printable(fig, composed=True):
    """Narrow enough, large enough letters, nothing cut off, and no text on another."""
    width, height = fig.get_size_inches()
    assert width <= 7.5 and height <= 9.5 and fig.get_layout_engine() is not None
    assert ("composed" in words(fig)) == composed
    fig.draw_without_rendering()
    page = fig.bbox
    boxes = []
    for text in texts(fig):
        assert text.get_fontsize() >= 5.9
        box = text.get_window_extent()
        assert page.x0 <= box.x0 and box.x1 <= page.x1 + 1 and page.y0 <= box.y0 and box.y1 <= page.y1, (
            text.get_text()
        )
        boxes.append(
            (box.x0, box.x1, box.y0 + 0.15 * box.height, box.y1 - 0.15 * box.height, text.get_text())
        )
    for a, b in itertools.combinations(boxes, 2):
        apart = min(a[1], b[1]) - max(a[0], b[0]) <= 1.0 or min(a[3], b[3]) - max(a[2], b[2]) <= 1.0
        assert apart, (a[-1], b[-1])


def matrix(candidates, names, words, attributes=("name",), **options):
    """A page that holds a matrix of candidates and no more."""
    drawn = mms_items.CandidateMatrix(candidates, mms_items.Symbols(words, names, attributes), **options)
    fig = plt.figure(figsize=(drawn.width / 72, drawn.height / 72))
    ax = fig.add_axes([0, 0, 1, 1], xlim=(0, drawn.width), ylim=(drawn.height, 0))
    ax.set_axis_off()
    drawn.draw(ax, 0.0, 0.0)
    return fig


def columns(fig, n_rows):
    """The symbols of the first matrix of a figure, column after column, read off the page."""
    symbol = re.compile(r"\$\\mathbf\{[nv]\}_\{\w+\}\$|\N{WHITE CIRCLE}")
    cells = [t for t in texts(fig) if symbol.fullmatch(t.get_text()) and t.get_ha() == "center"]
    first = sorted({at(t)[1] for t in cells})[:n_rows]
    by_place = {at(t): t.get_text() for t in cells}
    return [[by_place[x, y] for y in first] for x in sorted({x for x, y in by_place if y == first[0]})]


# --------------------------------------------------------------------------- what is printed


def test_figures_can_be_printed(news, poses):
    two = mms_items.pick(poses, n_faces=2, n_pairs=2)
    assert_printable(mms_items.items(poses, [two, mms_items.pick(poses, n_faces=1, n_names=2, n_pairs=1)]))
    assert_printable(mms_items.items(news, [mms_items.pick(news, n_faces=3, n_names=3)]))
    assert_printable(mms_items.item_with_candidates(poses, two))
    assert_printable(mms_items.thesis_captions(), composed=False)


def test_crowded_items_can_be_printed(news, poses):
    for data in (news, poses):
        crowded = np.argsort(-data.bag_sizes, kind="stable")[:2].tolist()
        assert_printable(mms_items.item_with_candidates(data, crowded[0]))
        assert_printable(mms_items.items(data, crowded))
    assert_printable(mms_items.spatial_indicators(news, mms_items.pick(news, indicators=True, n_faces=3)))


def test_a_caption_is_whole_and_its_known_words_are_bold(poses):
    number = mms_items.pick(poses, n_faces=2, n_pairs=2)
    caption = poses.captions[number]
    fig = mms_items.item_with_candidates(poses, number)
    shown = texts(fig)
    start = next(k for k, t in enumerate(shown) if t.get_text() == caption.split()[0])
    body, k = "", start
    while body != caption.replace(" ", ""):
        body += shown[k].get_text()
        k += 1
        assert caption.replace(" ", "").startswith(body)
    bold = "".join(t.get_text() for t in shown[start:k] if t.get_fontweight() == "bold")
    found = mentions(caption, poses.vocabulary)
    assert bold == "".join(caption[m.start : m.end] for m in found).replace(" ", "")
    slanted = "".join(t.get_text() for t in shown[start:k] if t.get_fontstyle() == "italic")
    assert slanted
    assert slanted == "".join(caption[m.start : m.end] for m in found if m.kind == "verb").replace(" ", "")


def test_a_verb_has_the_colour_of_who_does_it(poses):
    number = mms_items.pick(poses, n_faces=2, n_pairs=2)
    found = mentions(poses.captions[number], poses.vocabulary)
    colors = {
        t.get_text(): t.get_color()
        for t in texts(mms_items.item_with_candidates(poses, number))
        if t.get_fontweight() == "bold"
    }
    color = {m.label: colors[poses.captions[number][m.start : m.end].split()[0]] for m in found}
    verbs = [m for m in found if m.kind == "verb"]
    assert len(verbs) == 2
    assert all(color[m.label] == color[m.subjects[0]] for m in verbs)
    assert len({*color.values()}) == 2


# --------------------------------------------------------------------------- the matrix


def test_the_thesis_sets_are_those_of_its_captions():
    for printed in mms_items.THESIS:
        item = candidates_from_caption(
            printed.caption, printed.regions, printed.vocabulary, attributes=printed.attributes
        )
        assert item.candidates.tolist() == np.array(printed.candidates).tolist() and item.note == ""


def test_the_matrix_of_figure_5_4_as_printed():
    a, b, o = r"$\mathbf{n}_{a}$", r"$\mathbf{n}_{b}$", "\N{WHITE CIRCLE}"
    printed = np.array([[1, 2], [1, 0], [0, 2], [2, 1], [0, 1], [2, 0]])[:, :, None]
    fig = matrix(printed, [["null", "Barack Obama", "Michelle Obama"]], [(1,), (2,)])
    assert columns(fig, 2) == [[a, b], [a, o], [o, b], [b, a], [o, a], [b, o]]
    assert {"Barack Obama", "Michelle Obama", "null"} <= {t.get_text() for t in texts(fig)}


def test_letters_follow_the_words_given_and_a_shared_verb_has_one_symbol():
    names = [["null", "A", "B"], ["null", "wave"]]
    fig = matrix(np.array([[[1, 1]], [[2, 1]]]), names, [(2, 1), (1, 1)], ("name", "verb"))
    n, v = r"$\mathbf{n}_{%s}$", r"$\mathbf{v}_{a}$"
    assert columns(fig, 2) == [[n % "b", v], [n % "a", v]]


def test_the_true_vector_is_framed_and_shown_though_it_comes_late(news):
    number = mms_items.pick(news, n_faces=3, n_names=3)
    item = candidates_from_caption(news.captions[number], news.regions[number], news.vocabulary)
    candidates = item.candidates
    assert len(candidates) == 33
    for true in (3, 32):
        fig = matrix(candidates, [news.vocabulary.names], item.words, true=candidates[true], most=5)
        (arrow,) = [t for t in texts(fig) if "true" in t.get_text()]
        (header,) = [t for t in texts(fig) if t.get_text() == rf"$\mathbf{{Z}}_{{{true + 1}}}$"]
        assert at(arrow)[0] == at(header)[0] and len(columns(fig, 3)) == (5 if true < 5 else 6)
        assert f"{len(columns(fig, 3))} of 33 candidates" in words(fig)


def test_the_frame_of_an_item_is_around_its_truth(news):
    for number in mms_items.pick(news, n_faces=2, n_names=2, count=5):
        fig = mms_items.item_with_candidates(news, number)
        shown = texts(fig)
        (arrow,) = [at(t)[0] for t in shown if "true" in t.get_text()]
        spelled = {}
        for symbol, name in itertools.pairwise(shown):
            if symbol.get_text().startswith(r"$\mathbf{n}") and symbol.get_ha() == "left":
                spelled[symbol.get_text()] = re.sub(r" \(.*\)$", "", name.get_text())  # without its place
        framed = sorted(
            (t for t in shown if at(t)[0] == arrow and t.get_text() in {*spelled, "\N{WHITE CIRCLE}"}),
            key=lambda t: at(t)[1],
        )
        expected = news.truth()[news.rows([number])].tolist()
        assert [spelled.get(t.get_text(), "null") for t in framed] == expected


def test_a_matching_is_shown_as_its_first_candidates():
    matching = Matching(np.arange(1, 9)[:, None], np.ones((8, 9), dtype=bool))
    names = ["null", *"ABCDEFGH"]
    whole = CandidateSet([matching], classes=[names], null=(0,))
    true = np.array([[0]] * 7 + [[1]])
    fig = matrix(matching, [names], [(k,) for k in range(1, 9)], most=4, true=true)
    assert f"5 of {whole.n_candidates[0]:,} candidates" in words(fig)
    letter = ["\N{WHITE CIRCLE}", *(rf"$\mathbf{{n}}_{{{c}}}$" for c in "abcdefgh")]
    assert columns(fig, 8) == [[letter[k] for k in z[:, 0]] for z in [*whole.iterate(0, 0, 4), true]]


def test_its_size_is_enough_for_the_matrix(news):
    item = candidates_from_caption(news.captions[0], news.regions[0], news.vocabulary)
    wide = np.array([[1, 2, 3]] * 12)[:, :, None]
    for shown, words in ((item.candidates, item.words), (wide, [(1,), (2,), (3,)]), (wide[:1, :1], [(1,)])):
        fig = matrix(shown, [news.vocabulary.names], words)
        fig.draw_without_rendering()
        for text in texts(fig):
            box = text.get_window_extent()
            assert min(box.x0, box.y0) >= -1 and box.x1 <= fig.bbox.x1 + 1, text.get_text()
            assert box.y1 <= fig.bbox.y1 + 1, text.get_text()


def test_indicators_strike_out_what_they_rule_out(news):
    number = mms_items.pick(news, n_faces=2, n_names=2, indicators=True)
    fig = mms_items.spatial_indicators(news, number)
    item = news.captions[number], news.regions[number], news.vocabulary
    free, kept = (
        candidates_from_caption(*item, constraints=constraints).candidates for constraints in ("ABC", "ABCD")
    )
    assert len(kept) < len(free) == 6
    assert f"without [D]: 6 candidates; [D] strikes out {6 - len(kept)}" in words(fig)
    assert f"with [D]: {len(kept)} candidate" in words(fig)
    headers = [t for t in texts(fig) if t.get_text().startswith(r"$\mathbf{Z}_")]
    line = min(at(t)[1] for t in headers)
    grey = [
        t.get_color() == mms_items.PALE for t in sorted(headers, key=lambda t: at(t)[0]) if at(t)[1] == line
    ]
    assert grey == [z.tolist() not in kept.tolist() for z in free]


# --------------------------------------------------------------------------- choosing


def test_picked_items_are_as_asked_and_always_the_same(news, poses):
    for number in mms_items.pick(news, n_faces=2, n_names=3, count=4):
        assert news.bag_sizes[number] == 2
        assert len({m.label for m in mentions(news.captions[number], news.vocabulary)}) == 3
    assert not news.has_position[mms_items.pick(news, n_faces=2, indicators=False)]
    assert news.has_position[mms_items.pick(news, indicators=True)]
    number = mms_items.pick(poses, n_faces=2, n_pairs=2)
    item = candidates_from_caption(
        poses.captions[number], poses.regions[number], poses.vocabulary, attributes=("name", "verb")
    )
    assert len(item.words) == 2 == len({verb for _, verb in item.words})
    assert all(verb for _, verb in item.words)
    assert mms_items.pick(make_captioned(600, kind="poses", random_state=0), n_faces=2, n_pairs=2) == number
    assert mms_items.pick(news, n_faces=2, count=3)[0] == mms_items.pick(news, n_faces=2)


def test_errors(news, poses):
    match = "n_faces=2, n_names=9 must be met by 1 item of the data, got 0 of 600"
    with pytest.raises(ValueError, match=match):
        mms_items.pick(news, n_faces=2, n_names=9)
    with pytest.raises(ValueError, match="n_pairs must be None for data without poses"):
        mms_items.pick(news, n_pairs=1)
    with pytest.raises(ValueError, match="numbers must hold one or two items, got 3"):
        mms_items.items(news, [0, 1, 2])
    with pytest.raises(IndexError, match="number must be an item in 0..599, got 600"):
        mms_items.items(news, [600])
    with pytest.raises(ValueError, match="spatial indicators rule out a candidate"):
        mms_items.spatial_indicators(news, mms_items.pick(news, n_faces=2, indicators=False))
