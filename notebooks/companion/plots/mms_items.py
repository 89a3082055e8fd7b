"""Captioned items and their candidate labeling sets (thesis figures 5.1, 5.2, 5.4 and 5.5); a word has the
colour of the person it belongs to."""

import json
from pathlib import Path
from re import finditer
from textwrap import fill, wrap
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, TextArea, VPacker
from matplotlib.patches import Rectangle
from matplotlib.table import Table

from companion.run.figures import BLACK, BLUE, RED
from cuelearn.mms import CandidateSet, Matching, Region, Vocabulary, candidates_from_caption
from cuelearn.mms.captions import find

#: Of the persons a, b, c, d of a caption, dark enough for text; further ones are black.
COLORS = (BLUE, RED, "#00795A", "#A3447F")
PALE, GROUND = "#9A9A9A", "#D4D4D4"
#: Inches: the page, a line of text, a row of a table.
WIDTH, LINE, ROW = 7.5, 0.155, 0.21
NULL = "\N{WHITE CIRCLE}"
#: How to read pictures and captions.
NOTES = """Solid box: a face, here a drawing of the thing that the person is; dashed: a body, clothing turned
by what the person does; disc: number of the face or person. Bold: known names; bold italic: known verbs, in
the colour of who does it. Black head: the true vector. Pictures are composed of emoji; a face of two halves
is a false detection; names and captions are invented."""
#: Captions and candidate sets as the thesis prints them; label 0 is null.
THESIS = json.loads(Path(__file__).with_name("captions.json").read_text(encoding="utf-8"))


class Item(NamedTuple):
    """An item as a learner gets it, and the truth."""

    parsed: tuple  # as of `candidates_from_caption`
    names: list  # of the labels, one list per attribute
    words: dict  # (attribute, label) -> symbol, text, colour
    caption: list  # (word, look)
    true: np.ndarray | None = None
    number: int = 0
    numbers: dict = {}  # face -> number of its instance
    data: object = None

    @property
    def of(self):
        return "face" if len(self.names) == 1 else "person"

    @property
    def key(self):
        """A line for each word: its symbol, what it stands for, where the caption says that it is."""
        places = {(0, self.parsed.words[w][0]): f" ({place})" for w, place in self.parsed.positions.items()}
        return [
            [(symbol, {"color": color}), (text + places.get(at, ""), {"color": color})]
            for at, (symbol, text, color) in self.words.items()
            if at != (1, 0)
        ]

    def is_true(self, z):
        return self.true is not None and np.array_equal(z, self.true)


def symbols(words, names):
    """(attribute, label) -> symbol, text, colour; a verb has its first subject's letter, of several black."""
    letters, owners = {}, {}
    for word in words:
        for p, label in enumerate(word):
            if label:
                owners.setdefault((p, label), set()).add(word[0])
                unused = sum(at[0] == p for at in letters)
                letters.setdefault((p, label), letters.get((0, word[0]), unused))
    result = {}
    for at in sorted(letters, key=lambda at: (letters[at], at[0])):
        k, (p, label) = letters[at], at
        color = COLORS[k] if k < len(COLORS) and len(owners[at]) == 1 else BLACK
        letter = chr(ord("a") + k) if k < 26 else k + 1
        result[at] = rf"$\mathbf{{{'nv'[p]}}}_{{{letter}}}$", str(names[p][label]), color
    return result | {(p, 0): (NULL, "null", "#555555") for p in range(len(names))}


def read_caption(caption, regions, vocabulary, attributes, mentioned=None, constraints="ABCD"):
    """Caption and regions as a learner reads them: known names bold, verbs italic too."""
    parsed = candidates_from_caption(
        mentioned or caption, regions, vocabulary, attributes=attributes, constraints=constraints
    )
    names = [list(labels) for labels in (vocabulary.names, vocabulary.verbs)][: len(attributes)]
    words = symbols(parsed.words, names)
    looks = [{}] * len(caption)
    for p, index in enumerate((vocabulary.name_forms, vocabulary.verb_forms)[: len(attributes)]):
        for start, end, label in find(caption, index):
            at = p, names[p].index(label) if label in names[p] else 0
            if at[1] and at in words:
                style = {"color": words[at][2], "weight": "bold", "style": "italic" if p else "normal"}
                looks[start:end] = [style] * (end - start)
    text = [(word.group(), looks[word.start()]) for word in finditer(r"\S+", caption)]
    return Item(parsed, names, words, text)


def read_item(data, number, attributes=None, constraints="ABCD"):
    """An item of a corpus."""
    rows = data.rows([number])
    attributes = attributes or (("name",) if data.poses is None else ("name", "verb"))
    mentioned = data.caption_mentions(number)
    regions = data.regions[number]
    item = read_caption(data.captions[number], regions, data.vocabulary, attributes, mentioned, constraints)
    faces = [k for k, region in enumerate(regions) if region.kind == "face"]
    parts = enumerate(item.parsed.instances)
    numbers = {faces.index(k): m for m, instance in parts for k in instance if k in faces}
    truth = data.truth(None, *item.names[1:]).reshape(len(data.names), -1)[rows]
    order = sorted(numbers, key=numbers.get)
    true = [[item.names[p].index(label) for p, label in enumerate(truth[face])] for face in order]
    return item._replace(true=np.array(true), number=number, numbers=numbers, data=data)


def wrapped(words, width, size=8.0):
    """Lines of (word, look) that fit `width` inches."""
    words = [(word, {}) for word in words.split()] if isinstance(words, str) else list(words)
    text, most = " ".join(word for word, _ in words), int(width * 72 / (0.61 * size))
    lines = wrap(text, most, break_long_words=False, break_on_hyphens=False)
    return [[words.pop(0) for _ in line.split()] for line in lines]


def write(ax, lines, size=8.0):
    """Lines of (text, look) from the upper left corner of an empty panel."""
    parts = [[TextArea(text, textprops={"size": size, **look}) for text, look in line] for line in lines]
    rows = [HPacker(children=line, pad=0, sep=0.32 * size) for line in parts]
    place = {"bbox_to_anchor": (0, 1), "bbox_transform": ax.transAxes, "pad": 0, "borderpad": 0}
    text = VPacker(children=rows, pad=0, sep=0.28 * size)
    ax.add_artist(AnchoredOffsetbox("upper left", child=text, frameon=False, **place)).set_in_layout(False)


def draw_picture(ax, item):
    """Faces, bodies below them, and numbers, at their places."""
    data, numbers, rows = item.data, item.numbers, item.data.rows([item.number])
    width, height = data.sizes[item.number]
    ax.add_patch(Rectangle((0, 0), width, height, facecolor=GROUND, zorder=0))
    regions, posed = data.regions[item.number], data.poses is not None
    bodies = data.looks(rows, body=True) if posed else None
    for k, (region, face) in enumerate(zip(regions[:: 1 + posed], data.looks(rows), strict=True)):
        x0, y0, x1, y1 = region.box
        if posed:
            left, top, right, bottom = regions[2 * k + 1].box
            body = {"facecolor": "#F4F4F4", "edgecolor": "#555555", "linestyle": "--"}
            ax.add_patch(Rectangle((left, top), right - left, bottom - top, zorder=1, **body))
            put(ax, next(bodies), left, y1, right, bottom)
        ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, facecolor=face[0, 0] / 255, zorder=2))
        put(ax, face, x0, y0, x1, y1)
        ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, zorder=2.5))
        if k in numbers:
            disc = {"boxstyle": "circle,pad=0.2", "facecolor": BLACK, "edgecolor": "white"}
            look = {"color": "white", "size": 6.5, "weight": "bold", "ha": "center", "va": "center"}
            ax.text(x0, y0, f"{numbers[k] + 1}", bbox=disc, zorder=4, **look)
    ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal", anchor="NW")


def put(ax, image, x0, y0, x1, y1):
    """A square image as large as it can be, in the middle of a box."""
    x, y, half = (x0 + x1) / 2, (y0 + y1) / 2, min(x1 - x0, y1 - y0) / 2
    ax.imshow(image, extent=(x - half, x + half, y + half, y - half), zorder=2.2, interpolation="antialiased")


def columns(item, candidates, most):
    """Head and vector of the first `most` candidates, then of the true one; how many there are in all."""
    bag = CandidateSet([candidates], classes=item.names, null=(0,) * len(item.names))
    total = bag.n_candidates[0]
    shown = [(rf"$\mathbf{{Z}}_{{{k + 1}}}$", z) for k, z in enumerate(bag.iterate(0, 0, most))]
    if total > most:
        shown.append(("…", None))
        if not any(item.is_true(z) for _, z in shown) and bag.contains(0, item.true):
            shown.append((r"$\mathbf{Z}$", item.true))
    return shown, total


def draw_candidates(ax, item, shown, title, width=WIDTH, crossed=(), spelled=False):
    """Candidate vectors as columns of a table; the true one has a black head, crossed ones are grey."""
    shape = shown[0][1].shape
    cell = min(0.8 if spelled else 0.4, (width - 0.9) / len(shown))
    table = Table(ax, bbox=(0, 0, (0.9 + cell * len(shown)) / width, 1))

    def put(row, column, text, color=BLACK, face="white"):
        wide = cell if column else 0.9
        drawn = table.add_cell(row, column, wide, 1.0, text=text, loc="center", facecolor=face)
        drawn.set(edgecolor=PALE if column else "none", linewidth=0.5)
        drawn.set_text_props(color=color)

    for row, (m, p) in enumerate(np.ndindex(shape), start=1):
        part = "" if shape[1] == 1 else (", face", ", pose")[p]
        put(row, 0, f"{item.of} {m + 1}{part}")
        for column, (_, z) in enumerate(shown, start=1):
            label = None if z is None else int(z[m, p])
            symbol, text, color = item.words.get((p, label), ("…", "…", BLACK))
            grey = column - 1 in crossed
            face = to_rgba(color, 0.13) if label and not grey else "white"
            put(row, column, fill(text, 12) if spelled else symbol, PALE if grey else color, face)
    for column, (head, z) in enumerate(shown, start=1):
        heads = ("white", BLACK) if item.is_true(z) else (PALE if column - 1 in crossed else BLACK, "white")
        put(0, column, head, *heads)
    table.auto_set_font_size(False)
    table.set_fontsize(6.5 if spelled or cell < 0.3 else 8.0)
    ax.add_table(table)
    ax.set_title(title, loc="left", fontsize=8, weight="bold")


def page(mosaic, heights):
    """A page of empty panels, heights in inches."""
    size = (WIDTH, sum(heights) + 0.25 * len(heights))
    fig, axes = plt.subplot_mosaic(mosaic, figsize=size, height_ratios=heights, layout="constrained")
    for ax in axes.values():
        ax.set_axis_off()
    return fig, axes


def draw_items(items, key, tables):
    """Pictures above captions, tables of candidates (title, item, vectors and look), and how to read them."""
    width = WIDTH / len(items) - 0.1
    sizes = [item.data.sizes[item.number] for item in items]
    high = max(min(2.2, width * tall / wide) for wide, tall in sizes)
    texts = [wrapped(item.caption, width) for item in items]
    texts[-1] += key
    pictures = [f"picture {item.number}" for item in items]
    captions = [f"caption {item.number}" for item in items]
    mosaic = [pictures, captions]
    heights = [high, LINE * max(map(len, texts))]
    for title, _, shown, look in tables:
        mosaic.append([title] * len(items))
        heights.append((0.32 if look.get("spelled") else ROW) * (1 + shown[0][1].size))
    notes = wrapped(NOTES, WIDTH, 7.0)
    fig, axes = page([*mosaic, ["notes"] * len(items)], [*heights, LINE * len(notes)])
    for item, picture, caption, lines in zip(items, pictures, captions, texts, strict=True):
        axes[picture].set_title(f"composed item {item.number}", loc="left", fontsize=8, weight="bold")
        draw_picture(axes[picture], item)
        write(axes[caption], lines)
    for title, item, shown, look in tables:
        draw_candidates(axes[title], item, shown, title, **look)
    write(axes["notes"], notes, 7.0)
    return fig


def items(data, numbers):
    """Figure 5.1: one or two captioned items; below, the candidate labeling set of the last in words."""
    shown = [read_item(data, number) for number in numbers]
    last = shown[-1]
    vectors, total = columns(last, last.parsed.candidates, 6)
    few = rf"\mathbf{{Z}}_1, \ldots, \mathbf{{Z}}_{{{total}}}" if total > 1 else r"\mathbf{Z}_1"
    title = rf"candidate labeling set of item {last.number}: $\mathcal{{Z}} = \{{{few}\}}$"
    return draw_items(shown, [], [(title, last, vectors, {"spelled": True})])


def people(data, n=5):
    """Figure 5.1: faces of the `n` people most often pictured, and, for each cue, the face of somebody else
    that is most like the first one."""
    in_test, known = data.is_test[data.bag_of], data.kinds == "identity"
    names, counts = np.unique(data.names[known], return_counts=True)
    titles = ["training items"] * 4 + ["test items"] * 2
    titles += [f"most like it by\n{cue}" for cue in data.face_cues]
    size = (WIDTH, 0.3 + 1.05 * n)
    fig, axes = plt.subplots(n, len(titles), figsize=size, layout="constrained", squeeze=False)
    for row, name in zip(axes, names[np.argsort(-counts, kind="stable")[:n]], strict=True):
        own = np.flatnonzero(known & (data.names == name))
        shown = [*own[~in_test[own]][:4], *own[in_test[own]][:2]]
        others = np.flatnonzero(known & (data.names != name))
        for part in data.face_cues.values():
            shown.append(others[np.argmax(data.faces[others, part] @ data.faces[shown[0], part])])
        for ax, face, look in zip(row, shown, data.looks(shown), strict=True):
            ax.imshow(look, interpolation="antialiased")
            ax.set_xlabel(fill(str(data.things[face]), 14), fontsize=6.5)
            ax.set(xticks=[], yticks=[])
        row[0].set_ylabel(fill(str(name), 12), fontsize=7)
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(title, fontsize=6.5)
    fig.suptitle("faces of a composed corpus of emoji", fontsize=8)
    return fig


def item_with_candidates(data, number):
    """Figures 5.4 (faces) and 5.5 (data with poses): an item and its candidate labeling set."""
    item = read_item(data, number)
    vectors, total = columns(item, item.parsed.candidates, 16)
    letters = "[A], [B], [C], [D]" if item.parsed.positions else "[A], [B], [C]"
    word = "name" if item.of == "face" else "name-verb pair"
    counts = f"{counted(len(item.true), item.of)}, {counted(len(item.parsed.words), word)}"
    title = f"candidate labeling set by {letters}: {counts}, {counted(total, 'candidate vector')}"
    return draw_items([item], item.key, [(title, item, vectors, {})])


def spatial_indicators(data, number):
    """Figure 5.2: an item whose caption says who stands where, and what constraint [D] leaves of its set."""
    item = read_item(data, number, ("name",))
    kept, free = item.parsed.candidates, read_item(data, number, ("name",), "ABC").parsed.candidates
    crossed = {k for k, z in enumerate(free) if not (kept == z).all(axis=(1, 2)).any()}
    without = f"without [D]: {counted(len(free), 'candidate')}; [D] strikes out {len(crossed)} (grey)"
    with_d = f"with [D]: {counted(len(kept), 'candidate')} left"
    tables = [
        (without, item, columns(item, free, 34)[0], {"crossed": crossed}),
        (with_d, item, columns(item, kept, 34)[0], {}),
    ]
    return draw_items([item], item.key, tables)


def thesis_captions():
    """The thesis's captions of figures 5.1, 5.2, 5.4 and 5.5 with their candidate labeling sets."""
    items, width = [read_printed(kept) for kept in THESIS], WIDTH / 2 - 0.1
    texts = [
        [*wrapped(item.caption, width), *item.key, *wrapped(f"({kept['note']})", width)]
        for kept, item in zip(THESIS, items, strict=True)
    ]
    mosaic = [[kept["title"], f"table {kept['title']}"] for kept in THESIS]
    fig, axes = page(mosaic, [LINE * len(lines) for lines in texts])
    for kept, item, lines, (left, right) in zip(THESIS, items, texts, mosaic, strict=True):
        write(axes[left], lines)
        axes[left].set_title(f"thesis, {left}", loc="left", fontsize=8, weight="bold")
        vectors, _ = columns(item, np.array(kept["candidates"]), 12)
        draw_candidates(axes[right], item, vectors, "", width=width)
    return fig


def read_printed(kept):
    """A caption of the thesis with as many faces, and bodies, side by side as its photograph has."""
    faces = range(0, 40 * kept["faces"], 40)
    regions = [Region("face", (x + 14, 16, x + 30, 36)) for x in faces]
    regions += [Region("body", (x + 4, 8, x + 40, 70)) for x in faces if kept["bodies"]]
    vocabulary = Vocabulary(kept["names"], kept["verbs"])
    return read_caption(kept["caption"], regions, vocabulary, tuple(kept["attributes"]))


def counted(n, word):
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def pick(data, *, n_faces=None, n_names=None, n_pairs=None, indicators=False):
    """The best example among the items, or a ValueError: `n_names` known names, `n_pairs` with different
    known verbs, `indicators` that rule out candidates; its true vector is a candidate."""
    allowed = np.ones(len(data.captions), dtype=bool) if n_faces is None else data.bag_sizes == n_faces
    if indicators:
        allowed &= data.has_position
    unnamed = np.bincount(data.bag_of[~data.mentioned], minlength=allowed.size)
    strange = np.bincount(data.bag_of[data.kinds != "identity"], minlength=allowed.size)
    order = np.lexsort(([len(caption) for caption in data.captions], strange, unnamed))
    decided = []  # by indicators, down to one candidate
    for i in order[allowed[order]].tolist():
        item = read_item(data, i)
        words, candidates = item.parsed.words, item.parsed.candidates
        verbs = [word[1] for word in words if len(word) == 2 and word[0] and word[1]]
        if n_names is not None and len({word[0] for word in words}) != n_names:
            continue
        if n_pairs is not None and (len(verbs) != n_pairs or (n_pairs > 1 and len(set(verbs)) == 1)):
            continue
        if isinstance(candidates, Matching) or not any(map(item.is_true, candidates)):
            continue
        if not indicators:
            return i
        free = read_item(data, i, ("name",), "ABC").parsed.candidates
        if item.parsed.note or isinstance(free, Matching) or len(free) == len(candidates):
            continue
        if len(candidates) > 1:
            return i
        decided.append(i)
    if decided:
        return decided[0]
    wanted = f"n_faces={n_faces}, n_names={n_names}, n_pairs={n_pairs}"
    raise ValueError(f"{wanted} must be met by an item of the data, got 0 of {allowed.size}")
