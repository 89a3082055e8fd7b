"""Captioned items and their candidate labeling sets (thesis figures 5.1, 5.2, 5.4 and 5.5)."""

import json
from itertools import islice
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle

from companion.plots.common import mosaic, panels
from cuelearn.datasets import load_emoji
from cuelearn.mms import CandidateSet, Region, Vocabulary, candidates_from_caption

#: Of the words a, b, c, d of a caption; of those that indicators exclude.
COLORS = ("#B2D4E7", "#F3CEB3", "#B2E1D5", "#EBCADC")
EXCLUDED = "#DDDDDD"
WIDTH = 4.4  # inches: legible on a phone
#: Rows of labelings that indicators exclude.
N_EXCLUDED = 3
#: Their mark, and that of the true labeling.
OUT, TRUE = "out", "\N{BLACK STAR}"
#: Captions and candidate sets as the thesis prints them; label 0 is null.
THESIS = json.loads(Path(__file__).with_name("captions.json").read_text(encoding="utf-8"))


class Item(NamedTuple):
    """A caption as a learner reads it, and the truth; the sets have one bag, `free` is without indicators."""

    names: list  # of the labels, one array for each attribute
    words: list  # the labels of each word
    positions: dict  # word -> indicator
    candidates: CandidateSet
    free: CandidateSet
    true: np.ndarray | None

    @property
    def n_candidates(self):
        return self.candidates.n_candidates[0]

    @property
    def n_free(self):
        return self.free.n_candidates[0]

    @property
    def is_known(self):
        """Whether the true labeling is a candidate."""
        return self.true is not None and self.candidates.contains(0, self.true)


def read_caption(caption, regions, vocabulary, attributes, true=None):
    """The `Item` of a text, or of a list of mentions."""
    names = [vocabulary.names, vocabulary.verbs][: len(attributes)]
    parsed = []
    sets = []
    for constraints in ("ABCD", "ABC"):
        options = {"attributes": attributes, "constraints": constraints}
        parsed.append(candidates_from_caption(caption, regions, vocabulary, **options))
        sets.append(CandidateSet([parsed[-1].candidates], classes=names, null=(0,) * len(names)))
    return Item(names, parsed[0].words, parsed[0].positions, *sets, true)


def read_item(data, number):
    """The `Item` of a corpus; its instances are the faces, in their order."""
    words = data.vocabulary
    attributes = ("name",) if data.poses is None else ("name", "verb")
    truth = data.truth() if data.poses is None else data.truth(None, words.verbs)
    columns = truth.reshape(len(truth), -1)[data.rows([number])].T
    labels = [words.name_label, words.verb_label]
    true = [[own.get(word, 0) for word in column] for own, column in zip(labels, columns, strict=False)]
    mentioned = data.caption_mentions(number)
    return read_caption(mentioned, data.regions[number], words, attributes, np.transpose(true))


def read_printed(kept):
    """A caption of the thesis with as many faces, and bodies, side by side as its photograph has."""
    places = range(0, 40 * kept["faces"], 40)
    regions = [Region("face", (x + 14, 16, x + 30, 36)) for x in places]
    regions += [Region("body", (x + 4, 8, x + 40, 70)) for x in places if kept["bodies"]]
    vocabulary = Vocabulary(kept["names"], kept["verbs"])
    return read_caption(kept["caption"], regions, vocabulary, tuple(kept["attributes"]))


def examples(data, n_faces, n_names):
    """Numbers and `Item`s of so many faces and known names, the plainest first; the truth is a candidate."""
    n_items = len(data.captions)
    unnamed = np.bincount(data.bag_of[~data.mentioned], minlength=n_items)
    strange = np.bincount(data.bag_of[data.kinds != "identity"], minlength=n_items)
    order = np.lexsort(([len(caption) for caption in data.captions], strange, unnamed))
    for number in order[data.bag_sizes[order] == n_faces].tolist():
        item = read_item(data, number)
        if len(item.words) == n_names and item.is_known:
            yield number, item


def write_below(ax, text, width):
    """A text below a panel without axes, in lines of `width` characters."""
    ax.text(0, -0.03, fill(text, width), transform=ax.transAxes, va="top", fontsize=8)
    ax.set_axis_off()


def draw_box(ax, box, picture, word, **style):
    """A region: its picture in a frame, and a word that says what it is."""
    left, top, right, bottom = box
    ax.imshow(picture, extent=(left, right, bottom, top), zorder=3)
    frame = {"facecolor": "none", "edgecolor": "black", "linewidth": 1.2, "zorder": 4, **style}
    ax.add_patch(Rectangle((left, top), right - left, bottom - top, **frame))
    ax.text(left, top, word, color="white", backgroundcolor="black", fontsize=7, va="bottom", zorder=5)


def frame_boxes(ax, boxes):
    """The part of a picture that its regions fill, on grey."""
    left, top, _, _ = np.min(boxes, axis=0) - 14
    _, _, right, bottom = np.max(boxes, axis=0) + 8
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal", anchor="NW")
    ax.add_patch(Rectangle((left, top), right - left, bottom - top, facecolor="#D4D4D4", zorder=0))


def draw_picture(ax, data, number, width):
    """The faces of an item with their numbers, and bodies, at their places; below, the caption."""
    rows = data.rows([number])
    looks = {"face": data.looks(rows), "body": data.looks(rows, body=True)}
    boxes = []
    for region in data.regions[number]:
        left, top, right, bottom = region.box
        if region.kind == "face":
            face = region.box
            n_faces = sum(kind == "face" for kind, _ in boxes) + 1
            draw_box(ax, face, next(looks["face"]), f"face {n_faces}")
        else:  # what is seen of a body is below its face
            below = (left, face[3], right, bottom)
            draw_box(ax, below, next(looks["body"]), "", linestyle="--")
        boxes.append((region.kind, region.box))
    frame_boxes(ax, [box for _, box in boxes])
    write_below(ax, data.captions[number], width)


def words_of(item, z):
    """What a labeling says of each instance: first name, and what the person does; or null."""
    known = [[str(name) for name in names] for names in item.names]
    known[0] = [name.split()[0] for name in known[0]]
    said = [[known[p][label] for p, label in enumerate(labels) if label] for labels in z.tolist()]
    return [", ".join(words) or known[0][0] for words in said]


def shown_candidates(item, most):
    """Labelings with their marks: the first `most` candidates, the true one, and some that are excluded."""
    allowed = list(item.candidates.iterate(0, 0, most))
    if item.is_known and not any(np.array_equal(z, item.true) for z in allowed):
        allowed.append(item.true)
    marks = [TRUE if np.array_equal(z, item.true) else k for k, z in enumerate(allowed, start=1)]
    free = item.free.iterate(0)
    excluded = list(islice((z for z in free if not item.candidates.contains(0, z)), N_EXCLUDED))
    return [*zip(marks, allowed, strict=True), *((OUT, z) for z in excluded)]


def draw_candidates(ax, item, width, heading="", most=12):
    """Candidates as rows, some that indicators exclude in grey; below, how many there are."""
    rows = shown_candidates(item, most)
    colors = {0: "white"}
    for number, word in enumerate(item.words):
        colors.setdefault(word[0], COLORS[number % len(COLORS)])
    texts = [["", *(f"face {m + 1}" for m in range(len(rows[0][1])))]]
    fills = [["white"] * len(texts[0])]
    for mark, z in rows:
        texts.append([mark, *words_of(item, z)])
        own = [colors[label] for label in z[:, 0].tolist()]
        fills.append(["white", *own] if mark != OUT else [EXCLUDED] * len(texts[0]))
    widths = [0.5] + [1.0] * (len(texts[0]) - 1)
    table = ax.table(texts, fills, colWidths=widths, cellLoc="center", bbox=(0, 0, 1, 1))
    table.auto_set_font_size(False)
    table.set_fontsize(8 if len(widths) < 5 else 7)
    count = f"Candidates: {item.n_candidates:,}"
    if item.n_candidates < item.n_free:
        count += f' of {item.n_free:,}; {OUT}: some that "{", ".join(item.positions.values())}" rules out'
    if item.n_candidates > most:
        count += f" (the first {most} are shown)"
    if item.is_known:
        count += f"; {TRUE}: the true labeling"
    write_below(ax, f"{heading} {count}".strip(), width)


def stacked(n_rows, *, picture=2.0, n_pictures=1):
    """Axes of pictures side by side, and below them of a table of so many rows: narrow, for a phone."""
    height = 0.4 + 0.19 * n_rows
    rows = [[*range(n_pictures)], ["candidates"] * n_pictures]
    size = (WIDTH, 0.9 + picture + height)
    options = {"figsize": size, "height_ratios": (picture, height), "layout": "constrained"}
    return plt.subplot_mosaic(rows, **options)


def captioned(things, caption, names):
    """Drawings of `things` in one picture, its caption, and the names that each may have."""
    vocabulary = Vocabulary(names)
    boxes = [(10 + 90 * m, 10, 74 + 90 * m, 74) for m in range(len(things))]
    regions = [Region("face", box) for box in boxes]
    true = np.array([[vocabulary.name_label[thing.split()[0]]] for thing in things])
    item = read_caption(caption, regions, vocabulary, ("name",), true)
    emoji = load_emoji()
    fig, axes = stacked(item.n_candidates + 1, picture=1.5)
    for m, (thing, box) in enumerate(zip(things, boxes, strict=True), start=1):
        drawing = np.flatnonzero(emoji.names[emoji.thing] == thing)[0]
        draw_box(axes[0], box, emoji.pictures[drawing], f"face {m}")
    frame_boxes(axes[0], boxes)
    write_below(axes[0], caption, 62)
    draw_candidates(axes["candidates"], item, 62)
    return fig


def items(data, *numbers):
    """Captioned items; below, the candidate labeling set of the last."""
    last = read_item(data, numbers[-1])
    fig, axes = stacked(len(shown_candidates(last, 12)) + 1, n_pictures=len(numbers))
    for k, number in enumerate(numbers):
        draw_picture(axes[k], data, number, 62 // len(numbers))
        axes[k].set_title(f"composed item {number}", loc="left", fontsize=8)
    draw_candidates(axes["candidates"], last, 62, f"Item {numbers[-1]}.")
    return fig


def people(data, n=5):
    """Faces of the people most often pictured; last, for each cue, that of another person most like the
    first."""
    known = data.kinds == "identity"
    in_test = data.is_test[data.bag_of]
    names = pd.Series(data.names[known]).value_counts().index[:n]
    shown = []
    for name in names:
        own = known & (data.names == name)
        of_training = np.flatnonzero(own & ~in_test)
        others = np.flatnonzero(known & ~own)
        shown += [*of_training[:4], *np.flatnonzero(own & in_test)[:2]]
        for cue in data.face_cues.values():
            likeness = data.faces[others, cue] @ data.faces[of_training[0], cue]
            shown.append(others[np.argmax(likeness)])
    titles = ["training"] * 4 + ["test"] * 2 + [f"like by\n{cue}" for cue in data.face_cues]
    picture = mosaic(np.stack(list(data.looks(shown))), len(titles), margin=4)
    fig, ((ax,),) = panels(1, size=(WIDTH, 0.5 * n + 0.4))
    ax.imshow(picture)
    ax.xaxis.tick_top()
    ax.set_xticks(36 + 72 * np.arange(len(titles)), titles)
    ax.set_yticks(36 + 72 * np.arange(n), [fill(name, 12) for name in names])
    ax.tick_params(length=0, labelsize=7)
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)
    return fig


def thesis_captions():
    """The thesis's captions of figures 5.1, 5.2, 5.4 and 5.5 with their candidate labeling sets."""
    shown = [read_printed(kept) for kept in THESIS]
    heights = [2 + len(shown_candidates(item, 12)) for item in shown]
    fig, axes = panels(1, len(THESIS), size=(WIDTH, 0.19 * sum(heights) + 5.6), height_ratios=heights)
    for ax, kept, item in zip(axes[:, 0], THESIS, shown, strict=True):
        draw_candidates(ax, item, 68, f"{kept['caption']} ({kept['note']})")
        ax.set_title(f"thesis, {kept['title']}", loc="left", fontsize=8)
    return fig
