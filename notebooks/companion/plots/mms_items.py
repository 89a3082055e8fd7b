"""Captioned items and their candidate labeling sets (thesis figures 5.1, 5.2, 5.4 and 5.5)."""

import json
from pathlib import Path
from string import ascii_letters
from textwrap import fill
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle

from companion.plots.common import mosaic, panels
from cuelearn.mms import CandidateSet, Region, Vocabulary, candidates_from_caption

#: Of the words a, b, c, d of a caption; of those that indicators exclude.
COLORS = ("#B2D4E7", "#F3CEB3", "#B2E1D5", "#EBCADC")
EXCLUDED = "#DDDDDD"
WIDTH = 7.5  # inches
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
    ax.text(0, -0.05, fill(text, width), transform=ax.transAxes, va="top", fontsize=8)
    ax.set_axis_off()


def draw_picture(ax, data, number, width):
    """The faces of an item with their numbers, and bodies, at their places; below, the caption."""
    rows = data.rows([number])
    looks = {"face": data.looks(rows), "body": data.looks(rows, body=True)}
    n_faces = 0
    for region in data.regions[number]:
        left, top, right, bottom = region.box
        style = {"facecolor": "white", "edgecolor": "black", "linewidth": 1.5}
        if region.kind == "face":
            n_faces += 1
            face_ends = bottom
            look = {"color": "white", "backgroundcolor": "black", "fontsize": 7, "zorder": 4}
            ax.text(left, top, n_faces, **look)
            ax.imshow(next(looks["face"]), extent=(left, right, bottom, top), zorder=3)
        else:
            style["linestyle"] = "--"
            ax.imshow(next(looks["body"]), extent=(left, right, bottom, face_ends), zorder=3)
        ax.add_patch(Rectangle((left, top), right - left, bottom - top, **style))
    columns, lines = data.sizes[number]
    ax.set(xlim=(0, columns), ylim=(lines, 0), aspect="equal", anchor="W")
    ax.add_patch(Rectangle((0, 0), columns, lines, facecolor="#D4D4D4", zorder=0))
    write_below(ax, data.captions[number], width)


def symbols(item):
    """(attribute, label) -> symbol, what it stands for, and the colour of its word."""
    result = {}
    for number, word in enumerate(item.words):
        for p, label in enumerate(word):
            symbol = f"${'nv'[p]}_{ascii_letters[number]}$"
            meaning = str(item.names[p][label])
            if p == 0 and number in item.positions:
                meaning += f" ({item.positions[number]})"
            result.setdefault((p, label), (symbol, meaning, COLORS[number % len(COLORS)]))
    null = ("\N{WHITE CIRCLE}", "null", "white")
    return result | {(p, 0): null for p in range(len(item.names))}


def draw_candidates(ax, item, width, heading="", most=34):
    """Candidate vectors as columns, those that indicators exclude in grey; below, how many, and the words."""
    shown = list(item.free.iterate(0, 0, most))
    if item.is_known and not any(np.array_equal(z, item.true) for z in shown):
        shown.append(item.true)
    known = symbols(item)
    parts = ("face", "pose")[: len(item.names)]
    texts = [[f"{part} {m + 1}" for m in range(len(shown[0])) for part in parts]]
    colors = [["white"] * len(texts[0])]
    heads = [""]
    for number, z in enumerate(shown, start=1):
        cells = [known[p, label] for labels in z.tolist() for p, label in enumerate(labels)]
        allowed = item.candidates.contains(0, z)
        texts.append([symbol for symbol, _, _ in cells])
        colors.append([color if allowed else EXCLUDED for _, _, color in cells])
        heads.append("\N{BLACK STAR}" if np.array_equal(z, item.true) else number)
    table = ax.table(
        np.transpose(texts),
        np.transpose(colors),
        colLabels=heads,
        colWidths=[2.0] + [1.0] * len(shown),
        cellLoc="center",
        bbox=(0, 0, min(1, 0.07 * (len(shown) + 2)), 1),
    )
    table.auto_set_font_size(False)
    table.set_fontsize(7)
    count = f"Candidates: {item.n_candidates:,}"
    if item.n_candidates < item.n_free:
        count += f" of the {item.n_free:,} without indicators"
    if item.n_free > most:
        count += f" (the first {most} are shown)"
    key = ", ".join(dict.fromkeys(f"{symbol} {meaning}" for symbol, meaning, _ in known.values()))
    write_below(ax, f"{heading} {count}; {key}".strip(), width)


def items(data, *numbers):
    """Captioned items; below, the candidate labeling set of the last."""
    rows = [list(numbers), ["candidates"] * len(numbers)]
    options = {"figsize": (WIDTH, 4.6), "height_ratios": (2, 1), "layout": "constrained"}
    fig, axes = plt.subplot_mosaic(rows, **options)
    for number in numbers:
        draw_picture(axes[number], data, number, 110 // len(numbers))
        axes[number].set_title(f"composed item {number}", loc="left", fontsize=8)
    draw_candidates(axes["candidates"], read_item(data, numbers[-1]), 110, f"Item {numbers[-1]}.")
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
    titles = ["training"] * 4 + ["test"] * 2 + [f"most like by\n{cue}" for cue in data.face_cues]
    picture = mosaic(np.stack(list(data.looks(shown))), len(titles), margin=4)
    fig, ((ax,),) = panels(1, size=(WIDTH, 0.9 * n + 0.4))
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
    fig, axes = panels(1, len(THESIS), size=(WIDTH, 8.5))
    for ax, kept in zip(axes[:, 0], THESIS, strict=True):
        draw_candidates(ax, read_printed(kept), 110, f"{kept['caption']} ({kept['note']})")
        ax.set_title(f"thesis, {kept['title']}", loc="left", fontsize=8)
    return fig
