r"""Drawings of captioned items and of their candidate labeling sets (thesis figures 5.1, 5.2, 5.4 and 5.5).

A figure is one axes in points (1/72 inch), y downward, so that words can be set one after the other and
nothing moves when it is printed. A word has the same colour in the caption, in the matrix and in its key: the
colour of the person it belongs to; the symbols say the same without colour.

From top to bottom: symbols, text, the matrix of candidates, the picture of an item, the notation in words,
the figures, and the choice of examples.

References
----------
Jie Luo (2011). Open-ended Learning of Visual and Multi-modal Patterns. EPFL thesis 5233, sections 5.1, 5.3,
5.6.1, 5.7.1.
"""

import json
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from re import finditer
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Circle, Rectangle
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

from cuelearn.book.figures import BLACK, BLUE, RED
from cuelearn.core.checks import check_count
from cuelearn.mms.candidates import CandidateSet, Matching
from cuelearn.mms.captions import Region, Vocabulary, candidates_from_caption, mentions

__all__ = ["THESIS", "item_with_candidates", "items", "pick", "spatial_indicators", "thesis_captions"]

#: Of the persons a, b, c, d of a caption, dark enough for text; further ones are black, told apart by
#: symbols.
COLORS = (BLUE, RED, "#00795A", "#A3447F")
DARK, PALE = "#555555", "#8C8C8C"
#: In points: the widest figure (7.5 inches), its margin, the size of text and of notes.
WIDTH, PAD, TEXT, NOTE = 540.0, 4.0, 7.5, 7.0
INNER = WIDTH - 2 * PAD
#: Of the axes of sections 5.6 (names to faces) and 5.7 (names with verbs to persons).
KINDS = {("name",): "face", ("name", "verb"): "person"}


# --- symbols ------------------------------------------------------------------------------------------------


class Symbols:
    """Short symbols of the labels of a caption, n_a, v_a, ..., and the colours of their persons.

    Parameters
    ----------
    words : list of tuple of int
        Labels of each word, in the order in which letters are given (``ItemCandidates.words``); label 0 is
        null.
    names : list of sequences of str
        Names of the labels, one sequence per attribute.
    attributes : tuple of str
        A key of `KINDS`.
    """

    def __init__(self, words, names, attributes):
        self.names, self.attributes = names, attributes
        self.letters, self.owners = {}, {}
        for word in words:
            for p, label in enumerate(word):
                if label:
                    self.owners.setdefault((p, label), set()).add(word[0])
                    # A verb has the letter of its first subject.
                    next_one = sum(at[0] == p for at in self.letters)
                    letter = next_one if p == 0 else self.letters.get((0, word[0]), next_one)
                    self.letters.setdefault((p, label), letter)

    def symbol(self, p, label):
        if not label:
            return "\N{WHITE CIRCLE}"
        return rf"$\mathbf{{{self.attributes[p][0]}}}_{{{_letter(self.letters[p, label])}}}$"

    def color(self, p, label):
        if not label:
            return DARK
        letter = self.letters[p, label]
        alone = len(self.owners[p, label]) == 1  # a verb of several persons is black
        return COLORS[letter] if alone and letter < len(COLORS) else BLACK

    def key(self, places):
        """Symbol, text, colour of every word, and of null."""
        entries = []
        for p, label in sorted(self.letters, key=lambda at: (self.letters[at], at[0])):
            place = f" ({places[label]})" if p == 0 and label in places else ""
            entries.append((self.symbol(p, label), f"{self.names[p][label]}{place}", self.color(p, label)))
        return [*entries, (self.symbol(0, 0), "null", DARK)]


def _letter(k):
    return chr(ord("a") + k) if k < 26 else str(k + 1)


# --- text and lines -----------------------------------------------------------------------------------------


class _Words(Text):
    """Text as wide as `_width` says: hinting would fit every letter to the pixels, and words would touch."""

    def draw(self, renderer):
        kept = mpl.rcParams["text.hinting"]
        mpl.rcParams["text.hinting"] = "none"
        try:
            super().draw(renderer)
        finally:
            mpl.rcParams["text.hinting"] = kept


@lru_cache(maxsize=4096)
def _width(text, size, weight="normal", style="normal", math=False):
    """Width of a text in points."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight, style=style)
    return text_to_path.get_text_width_height_descent(text, font, ismath=math)[0]


def _say(ax, x, y, text, size=TEXT, **look):
    """One line whose base is at y."""
    look = {"va": "baseline", "color": BLACK, "family": "DejaVu Sans", "clip_on": False, **look}
    ax.add_artist(_Words(x, y, text, fontsize=size, **look))


def _words(caption, found=(), symbols=None, **look):
    """A caption as words, lists of (text, look): names bold, verbs italic too, in the person's colour."""
    looks = [look] * len(caption)
    for mention in found:
        p = symbols.attributes.index(mention.kind) if mention.kind in symbols.attributes else None
        label = None if p is None else list(symbols.names[p]).index(mention.label)
        if (p, label) in symbols.letters:
            style = {"style": "italic"} if mention.kind == "verb" else {}
            known = {"color": symbols.color(p, label), "weight": "bold", **style}
            looks[mention.start : mention.end] = [known] * (mention.end - mention.start)
    words = []
    for word in finditer(r"\S+", caption):
        parts = [[*part] for _, part in groupby(range(*word.span()), key=lambda k: id(looks[k]))]
        words.append([(caption[part[0] : part[-1] + 1], looks[part[0]]) for part in parts])
    return words


def _write(ax, words, x, y, width, size=TEXT):
    """Text, wrapped, below y; returns where it ends. `words` is a text or what `_words` gives."""
    words = _words(words, color=DARK) if isinstance(words, str) else words
    blank = _width("a b", size) - _width("ab", size)
    at, y = 0.0, y + 1.32 * size
    for word in words:
        wide = [
            _width(text, size, look.get("weight", "normal"), look.get("style", "normal"))
            for text, look in word
        ]
        if at and at + blank + sum(wide) > width:
            at, y = 0.0, y + 1.32 * size
        at += blank if at else 0.0
        for (text, look), long in zip(word, wide, strict=True):
            _say(ax, x + at, y, text, size, **look)
            at += long
    return y + 0.35 * size


def _rule(ax, x, y, width=0.6, color=PALE, **look):
    ax.plot(x, y, color=color, linewidth=width, **look)


def _box(ax, box, **look):
    x0, y0, x1, y1 = box
    ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, **look))


def _brackets(ax, left, right, top, bottom, tip, width):
    for x, inward in ((left, tip), (right, -tip)):
        _rule(ax, [x + inward, x, x, x + inward], [top, top, bottom, bottom], width, BLACK)


def _sheet():
    """An axes in points, y downward, `WIDTH` wide."""
    fig, ax = plt.subplots(figsize=(WIDTH / 72, 3), layout="constrained")
    fig.get_layout_engine().set(w_pad=0, h_pad=0, wspace=0, hspace=0)
    ax.set_axis_off()
    return ax


def _finish(ax, bottom):
    """The figure of a sheet, as high as what was drawn on it."""
    ax.figure.set_size_inches(WIDTH / 72, (bottom + PAD) / 72)
    ax.set(xlim=(0, WIDTH), ylim=(bottom + PAD, 0))
    return ax.figure


# --- matrix of candidates -----------------------------------------------------------------------------------


def _listed(candidates, names, most):
    """How many candidates there are, and the first `most`."""
    if not isinstance(candidates, Matching):
        return len(candidates), list(candidates[:most])
    one = CandidateSet([candidates], classes=names, null=(0,) * len(names))
    return one.n_candidates[0], list(one.iterate(0, 0, most))


class CandidateMatrix:
    """The matrix of figures 5.4 and 5.5, measured before it is drawn: a column for each candidate vector.

    It has a row for each region and attribute; sizes are in points.

    Parameters
    ----------
    candidates : ndarray of int, shape (L, M, P), or Matching
        Label 0 is null, drawn as a circle.
    symbols : Symbols
    true : ndarray of int, shape (M, P), optional
        The true vector, which is framed; added as the last column if it is a candidate beyond those shown.
    crossed : collection of int
        Candidates to strike out.
    most : int
        Columns that are shown; "..." stands for the others, whose number is given.
    title : str
    key : bool
        Whether the words are spelled below.
    key_width : float
        Points that the lines of the key may take, if more than the matrix.
    places : dict of int to str
        What the caption says of where a name is, by label, for the key.
    """

    row, gap_width = 15.0, 18.0
    lead = r"$\mathcal{Z}$ :"

    def __init__(
        self,
        candidates,
        symbols,
        *,
        true=None,
        crossed=(),
        most=12,
        title="",
        key=True,
        key_width=0.0,
        places=(),
    ):
        self.symbols, self.crossed = symbols, crossed
        self.total, first = _listed(candidates, symbols.names, most)
        self.gap = len(first) if self.total > len(first) else None
        # (number or None, vector, whether it is the true one)
        self.columns = [(k, z, true is not None and np.array_equal(z, true)) for k, z in enumerate(first)]
        if self.gap is not None and true is not None and not self.has_true:
            self.columns += self._later(candidates, true)
        shown = len(self.columns)
        self.title = title or (f"{shown} of {self.total:,} candidates" if self.gap is not None else "")
        self.size, self.column = (7.5, 13.2) if shown > 12 else (9.0, 21.0)
        self.left = _width(self.lead, 9.0, math=True) + 10.0
        self.inner = shown * self.column + (self.gap_width if self.gap is not None else 0.0)
        self.places = list(np.ndindex(first[0].shape))
        of = KINDS[symbols.attributes]
        parts = ["-face", "-pose"] if len(symbols.attributes) > 1 else [""]
        self.labels = [rf"$\leftarrow$ {of}$_{{{m + 1}}}${parts[p]}" for m, p in self.places]
        self.top = 28.0 if self.title else 16.0
        self.height = self.top + len(self.labels) * self.row
        right = 13.0 + max(_width(label, TEXT, math=True) for label in self.labels)
        self.width = max(self.left + self.inner + right, _width(self.title, TEXT, "bold"))
        self.key = []
        if key:
            self._set_key(symbols.key(dict(places)), key_width)
        else:
            self.height += 17.0 if self.has_true else 8.0

    @classmethod
    def fitting(cls, room, most, *args, **options):
        """The matrix with as many of `most` columns as have room."""
        matrix = cls(*args, most=most, **options)
        return matrix if matrix.width <= room or most == 1 else cls.fitting(room, most - 1, *args, **options)

    @property
    def has_true(self):
        return any(is_true for *_, is_true in self.columns)

    def _later(self, candidates, true):
        """The true vector as a column, if it is a candidate; of a matching without its number."""
        if isinstance(candidates, Matching):
            one = CandidateSet([candidates], classes=self.symbols.names, null=(0,) * true.shape[1])
            return [(None, true, True)] * bool(one.contains(0, true))
        found = np.flatnonzero((candidates == true).all(axis=(1, 2)))
        return [(int(number), true, True) for number in found[:1]]

    def _set_key(self, entries, key_width):
        """Places the words of the key, in as many lines as they take."""
        wide = [_width(symbol, 9.0, math=True) + 3.0 + _width(text, TEXT) for symbol, text, _ in entries]
        room = max(self.width, key_width, *wide)
        x, y = 0.0, self.height + (24.0 if self.has_true else 15.0)
        for entry, long in zip(entries, wide, strict=True):
            if x and x + long > room:
                x, y = 0.0, y + 12.0
            self.key.append((x, y, entry))
            self.width = max(self.width, x + long)
            x += long + 10.0
        self.height = y + 4.0

    def _x(self, k):
        """Left edge of the k-th column drawn."""
        after_gap = self.gap is not None and k >= self.gap
        return self.left + k * self.column + (self.gap_width if after_gap else 0.0)

    def draw(self, ax, x0, y0):
        """Draw it with its upper left corner at (x0, y0) of an axes in points; returns where it ends."""
        top, bottom = y0 + self.top, y0 + self.top + len(self.labels) * self.row
        left, right = x0 + self.left, x0 + self.left + self.inner
        if self.title:
            _say(ax, x0, y0 + 8.0, self.title, weight="bold")
        for k, column in enumerate(self.columns):
            self._draw_column(ax, x0 + self._x(k), top, bottom, *column)
            if k and k != self.gap:
                _rule(ax, [x0 + self._x(k)] * 2, [top, bottom], zorder=1)
        if self.gap is not None:
            x = left + self.gap * self.column
            middle = top + (bottom - top) / 2
            _say(ax, x + self.gap_width / 2, middle + 3.0, r"$\cdots$", 9.0, ha="center")
            for edge in {x, x + self.gap_width} - {right}:
                _rule(ax, [edge] * 2, [top, bottom], zorder=1)
        for r, ((m, p), label) in enumerate(zip(self.places, self.labels, strict=True)):
            _say(ax, right + 9.0, top + (r + 0.5) * self.row + 2.5, label, TEXT)
            if m and not p:
                _rule(ax, [left, right], [top + r * self.row] * 2, zorder=1)
        _brackets(ax, left - 4.0, right + 4.0, top - 1.5, bottom + 1.5, 3.5, 1.1)
        _say(ax, x0, (top + bottom) / 2 + 3.0, self.lead, 9.0)
        for x, y, (symbol, text, color) in self.key:
            _say(ax, x0 + x, y0 + y, symbol, 9.0, color=color)
            _say(ax, x0 + x + _width(symbol, 9.0, math=True) + 3.0, y0 + y, text, color=color)
        return y0 + self.height

    def _draw_column(self, ax, x, top, bottom, number, z, is_true):
        out, middle, end = number in self.crossed, x + self.column / 2, x + self.column
        name = r"$\mathbf{Z}$" if number is None else rf"$\mathbf{{Z}}_{{{number + 1}}}$"
        size = self.size - (1.5 if self.column < 20 else 1.0)
        _say(ax, middle, top - 5.0, name, size, ha="center", color=PALE if out else BLACK)
        for r, (m, p) in enumerate(self.places):
            label, y = int(z[m, p]), top + r * self.row
            color = self.symbols.color(p, label)
            if label and not out:
                _box(ax, (x, y, end, y + self.row), facecolor=color, alpha=0.13, linewidth=0)
            place = middle, y + self.row / 2 + 0.3 * self.size
            symbol = self.symbols.symbol(p, label)
            _say(ax, *place, symbol, self.size, ha="center", color=PALE if out else color)
        if out:
            _rule(ax, [x + 2.0, end - 2.0], [bottom - 1.0, top + 1.0], 0.8)
        if is_true:
            _box(ax, (x, top, end, bottom), fill=False, edgecolor=BLACK, linewidth=1.8, zorder=4)
            _say(ax, middle, bottom + 9.5, r"$\uparrow$ true", NOTE, ha="center")


# --- picture of an item -------------------------------------------------------------------------------------


class _Read(NamedTuple):
    """An item as a learner gets it, and the truth."""

    item: object  # ItemCandidates
    symbols: Symbols
    words: list
    picture: object = None
    number: dict = {}  # face -> number of its instance
    true: np.ndarray = None
    mixed: bool = False  # whether a face is of no person of the data's identities

    @property
    def places(self):
        return {self.item.words[w][0]: place for w, place in self.item.positions.items()}

    @property
    def of(self):
        return KINDS[self.symbols.attributes]


def _read_caption(caption, regions, vocabulary, attributes, constraints="ABCD"):
    item = candidates_from_caption(
        caption, regions, vocabulary, attributes=attributes, constraints=constraints
    )
    symbols = Symbols(item.words, [vocabulary.names, vocabulary.verbs][: len(attributes)], attributes)
    return _Read(item, symbols, _words(caption, mentions(caption, vocabulary), symbols, color=BLACK))


def _read(data, number, attributes=None, constraints="ABCD"):
    whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
    if not whole or not 0 <= number < len(data.captions):
        raise IndexError(f"number must be an item in 0..{len(data.captions) - 1}, got {number!r}")
    if attributes is None:
        attributes = ("name",) if data.poses is None else ("name", "verb")
    regions, vocabulary = data.regions[number], data.vocabulary
    read = _read_caption(data.captions[number], regions, vocabulary, attributes, constraints)
    names = read.symbols.names
    faces = [k for k, region in enumerate(regions) if region.kind == "face"]
    numbers = {faces.index(k): m for m, one in enumerate(read.item.instances) for k in one if k in faces}
    known = (set(data.labels), {*vocabulary.verbs})
    kept = [[word for word in words if word in those] for words, those in zip(names, known, strict=False)]
    rows = data.rows([number])
    truth = data.truth(*kept).reshape(len(data.names), -1)[rows]
    order = sorted(numbers, key=numbers.get)
    true = [[list(names[p]).index(label) for p, label in enumerate(truth[row])] for row in order]
    mixed = bool(np.any(data.kinds[rows] != "identity"))
    return read._replace(picture=data.picture(number), number=numbers, true=np.array(true), mixed=mixed)


_BODY = {"facecolor": "#F4F4F4", "edgecolor": DARK, "linestyle": (0, (3, 2)), "linewidth": 0.9, "zorder": 2.1}
_GROUND = {"facecolor": "#D4D4D4", "edgecolor": DARK, "linewidth": 0.5, "zorder": 2}


def _face(ax, box, digit, letter):
    """A face box: the digit on top, the letter's attributes as bars below."""
    x0, y0, x1, y1 = box
    _box(ax, box, facecolor="white", edgecolor="none", zorder=2.2)
    floor = y0 + 0.70 * (y1 - y0)
    side = min(floor - y0, x1 - x0)
    left = (x0 + x1 - side) / 2
    place = {"extent": (left, left + side, floor, floor - side), "aspect": "auto", "zorder": 2.3}
    ax.imshow(digit, cmap="Greys", vmin=0, vmax=1, interpolation="nearest", **place)
    _rule(ax, [x0, x1], [floor, floor], 0.4, zorder=2.4)
    step = (x1 - x0 - 2.0) / 16
    for k, value in enumerate(letter):
        high, x = float(value) / 15 * (y1 - floor - 2.0), x0 + 1.0 + (k + 0.08) * step
        ax.add_patch(
            Rectangle((x, y1 - 0.8 - high), 0.84 * step, high, facecolor=BLUE, linewidth=0, zorder=2.4)
        )
    _box(ax, box, fill=False, edgecolor=BLACK, linewidth=0.8, zorder=2.5)


def _stroke(ax, box, pen):
    """A pen stroke (x, y in 0..100, y upward) in a box, its start marked."""
    x0, y0, x1, y1 = box
    side = min(x1 - x0, y1 - y0)
    x = (x0 + x1) / 2 + (pen[:, 0] / 100 - 0.5) * side
    y = (y0 + y1) / 2 - (pen[:, 1] / 100 - 0.5) * side
    _rule(ax, x, y, 1.5, BLACK, solid_joinstyle="round", solid_capstyle="round", zorder=2.6)
    dot = {"marker": "o", "markersize": 4.2, "markeredgecolor": "white", "markeredgewidth": 0.5}
    ax.plot(x[:1], y[:1], color=RED, linestyle="", zorder=2.7, **dot)


def _badge(ax, x, y, number):
    ax.add_patch(Circle((x, y), 5.2, facecolor=BLACK, edgecolor="white", linewidth=0.7, zorder=3))
    _say(ax, x, y + 2.4, str(number), 6.5, ha="center", color="white", weight="bold", zorder=3.1)


def _fitted(size, width, height):
    """Scale of a picture that is to fit."""
    return min(width / size[0], height / size[1])


def _draw_picture(ax, read, x, y, width, height):
    """An item's picture in a room `width` wide, its upper edge at y; returns its lower edge."""
    picture = read.picture
    scale = _fitted(picture.size, width, height)
    w, h = scale * picture.size[0], scale * picture.size[1]
    x += (width - w) / 2
    _box(ax, (x, y, x + w, y + h), **_GROUND)
    faces = scale * picture.boxes + [x, y, x, y]
    if picture.bodies is not None:
        bodies = scale * picture.bodies + [x, y, x, y]
        for body in bodies:
            _box(ax, body, **_BODY)
        for (x0, _, x1, y1), face, pen in zip(bodies, faces, picture.pens, strict=True):
            _stroke(ax, (x0 + 5.0, face[3] + 4.0, x1 - 5.0, y1 - 4.0), pen)
    for k, face in enumerate(faces):
        _face(ax, face, picture.digits[k], picture.letters[k])
        if k in read.number:
            _badge(ax, max(face[0] - 2.5, x + 5.5), max(face[1] - 2.5, y + 5.5), read.number[k] + 1)
    return y + h


def _legend(ax, reads, y, data):
    """What is what in the pictures, once: a face and, with poses, a stroke; returns where it ends."""
    picture, x = reads[0].picture, PAD

    def explain(x, *lines):
        for k, line in enumerate(lines):
            _say(ax, x, y + 9.0 + 9.5 * k, line, NOTE)

    _face(ax, (x, y, x + 30.0, y + 37.0), picture.digits[0], picture.letters[0])
    explain(
        x + 36.0, "face: a handwritten digit, 28 × 28 pixels,", "above the 16 attributes of a letter, 0 to 15"
    )
    _badge(ax, x + 41.0, y + 30.0, 1)
    _say(ax, x + 49.0, y + 32.5, f"number of the {'face' if picture.pens is None else 'person'}", NOTE)
    at, sets = x + 205.0, "letter recognition and MNIST"
    if picture.pens is not None:
        _box(ax, (at, y, at + 34.0, y + 37.0), **_BODY)
        _stroke(ax, (at + 5.0, y + 5.0, at + 29.0, y + 32.0), picture.pens[0])
        explain(at + 40.0, "body: a pen stroke of 8 points,", "the dot is its start")
        at, sets = at + 165.0, "letter recognition, MNIST and Pendigits"
    text = f"Pictures are {_made(data)} of samples of {sets}; names and captions are invented."
    if any(read.mixed for read in reads):
        text += " Strangers and false detections are mixtures of two samples."
    end = _write(ax, _words(text, color=DARK, style="italic"), at, y - 1.0, INNER - (at - x), NOTE)
    return max(y + 40.0, end)


def _made(data):
    return "composed" if data.provenance.tier == "generated" else "of the collection"


# --- notation in words --------------------------------------------------------------------------------------


def _short(word, width, size, weight, style):
    """A name that fits, and its size: in full, or its last word, or that smaller, or cut."""
    for text, tried in ((word, size), (word.split()[-1], size), (word.split()[-1], 6.0)):
        if _width(text, tried, weight, style) <= width:
            return text, tried
    while len(text) > 3 and _width(text + "…", 6.0, weight, style) > width:
        text = text[:-1]
    return text + "…", 6.0


def _vector(ax, read, z, name, x, y, left, cell):
    """A labeling vector with its words spelled; returns where it ends."""
    n, P = z.shape
    line = 9.6
    high = P * line + 4.0
    _say(ax, x, y + high / 2 + 3.0, name, 8.5)
    _brackets(ax, x + left - 1.0, x + left + n * cell + 1.0, y + 1.0, y + high - 1.0, 3.0, 0.9)
    for (m, p), label in np.ndenumerate(z):
        look = {"weight": "bold" if label else "normal", "style": "italic" if p and label else "normal"}
        text, size = _short(str(read.symbols.names[p][label]), cell - 4.0, 6.8, **look)
        place = x + left + (m + 0.5) * cell, y + 2.2 + (p + 0.75) * line
        _say(ax, *place, text, size, ha="center", color=read.symbols.color(p, label), **look)
    for m in range(1, n):
        _rule(ax, [x + left + m * cell] * 2, [y + 3.0, y + high - 3.0], 0.5)
    return y + high + 2.0


def _notation(ax, read, x, y, width, title, most=6):
    """X, the candidate vectors with their words spelled, and Y (figure 5.1, right); returns where it ends."""
    n, P = read.true.shape
    left = 21.0
    cell = min((width - left - 3.0) / n, 110.0)
    total, rows = _listed(read.item.candidates, read.symbols.names, most)
    _say(ax, x, y + 8.0, title, weight="bold")
    y += 24.0
    xs = [rf"\mathbf{{x}}_{{{m + 1}}}" for m in range(n)]
    single = ", ".join(xs) if n <= 3 else rf"\mathbf{{x}}_1, \ldots, {xs[-1]}"
    _say(ax, x, y, rf"$\mathcal{{X}} = \{{{single}\}}$", 8.5)
    if P == 2:
        y += 16.0
        _say(ax, x, y, r"$\mathbf{x}_m = [\mathbf{x}_m^{(1)},\ \mathbf{x}_m^{(2)}]$:  face and pose", 8.5)
    y += 18.0
    few = {1: r"\mathbf{Z}_1", 2: r"\mathbf{Z}_1, \mathbf{Z}_2"}
    through = few.get(total, rf"\mathbf{{Z}}_1, \ldots, \mathbf{{Z}}_{{{total}}}")
    _say(ax, x, y, rf"$\mathcal{{Z}} = \{{{through}\}}$", 8.5)
    y += 12.0
    small = {"ha": "center", "color": DARK}
    for m in range(n):
        _say(ax, x + left + (m + 0.5) * cell, y, rf"{read.of}$_{{{m + 1}}}$", NOTE, **small)
    y += 4.0
    for k, z in enumerate(rows):
        y = _vector(ax, read, z, rf"$\mathbf{{Z}}_{{{k + 1}}}$", x, y, left, cell)
    if total > len(rows):
        _say(ax, x + left + n * cell / 2, y + 8.0, f"{len(rows)} of {total:,}", NOTE, **small)
        y += 12.0
    _say(ax, x, y + 11.0, "true, and unknown to the learner:", NOTE, color=DARK)
    return _vector(ax, read, read.true, r"$\mathbf{Y}$", x, y + 15.0, left, cell)


# --- figures ------------------------------------------------------------------------------------------------


def items(data, numbers):
    """Figure 5.1: one or two captioned items; at the right the labeling set of the last in words.

    Parameters
    ----------
    data : CaptionedData
    numbers : sequence of int

    Returns
    -------
    Figure

    Raises
    ------
    ValueError, IndexError
        If there are no or too many items, or an item does not exist.
    """
    n = len(numbers)
    if not 1 <= n <= 2:
        raise ValueError(f"numbers must hold one or two items, got {n}")
    reads = [_read(data, number) for number in numbers]
    ax, gap, side = _sheet(), 14.0, 196.0
    column, top = (INNER - side - gap * n) / n, PAD + 13.0
    tallest = max(_fitted(read.picture.size, column, 240.0) * read.picture.size[1] for read in reads)
    title = f"candidate labeling set of ({_letter(n - 1)})"
    bottom = _notation(ax, reads[-1], WIDTH - PAD - side, PAD, side, title)
    for k, (number, read) in enumerate(zip(numbers, reads, strict=True)):
        x = PAD + k * (column + gap)
        _say(ax, x, PAD + 8.0, f"({_letter(k)}) {_made(data)} item {number}", weight="bold")
        _draw_picture(ax, read, x, top, column, 240.0)
        bottom = max(bottom, _write(ax, read.words, x, top + tallest + 1.0, column))
    verbs = "; bold italic: known verbs, in the colour of who does it"
    ways = f"Bold in a caption: known names{verbs if reads[0].of == 'person' else ''}."
    bottom = _write(ax, ways, PAD, bottom + 4.0, INNER, NOTE)
    return _finish(ax, _legend(ax, reads, bottom + 6.0, data))


def item_with_candidates(data, number):
    """Figures 5.4 and 5.5: an item at the left, its candidate labeling set at the right, the truth framed.

    Parameters
    ----------
    data : CaptionedData
        With poses as in figure 5.5, else as in figure 5.4.
    number : int

    Returns
    -------
    Figure
    """
    read = _read(data, number)
    ax, column, item = _sheet(), 172.0, read.item
    x = PAD + column + 20.0
    room = WIDTH - PAD - x
    options = {"true": read.true, "places": read.places, "key_width": room}
    matrix = CandidateMatrix.fitting(room, 12, item.candidates, read.symbols, **options)
    _say(ax, PAD, PAD + 8.0, f"{_made(data)} item {number}", weight="bold")
    # many faces: the picture over the whole width, the rest below
    crowded = read.picture.size[0] > 2 * read.picture.size[1]
    bottom = _draw_picture(ax, read, PAD, PAD + 13.0, INNER if crowded else column, 200.0)
    top = bottom + 8.0 if crowded else PAD
    bottom = _write(ax, read.words, PAD, bottom + (7.0 if crowded else 1.0), column)
    letters = "[A], [B], [C], [D]" if item.positions else "[A], [B], [C]"
    _say(ax, x, top + 8.0, f"candidate labeling set, constraints {letters}", weight="bold")
    word = "name" if read.of == "face" else "name-verb pair"
    counts = _counted(len(read.true), read.of), _counted(len(item.words), word)
    counts = f"{', '.join(counts)}: {_counted(matrix.total, 'candidate vector')}"
    y = matrix.draw(ax, x, _write(ax, counts, x, top + 10.0, room) + 6.0)
    notes = []
    if not matrix.has_true:
        notes = [f"The true vector{'' if read.true.any() else ', null everywhere,'} is no candidate."]
    # the number of vectors is said already
    said = [note for note in item.note.split("; ") if note and not note.endswith("Matching")]
    notes += [f"{note[0].upper()}{note[1:]}." for note in said]
    if notes:
        y = _write(ax, " ".join(notes), x, y, room, NOTE)
    return _finish(ax, _legend(ax, [read], max(bottom, y) + 8.0, data))


def _counted(n, word):
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def spatial_indicators(data, number):
    """Figure 5.2: an item whose caption says who stands where, and what constraint [D] leaves of its set.

    Parameters
    ----------
    data : CaptionedData
    number : int

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If no indicator of the caption applies to the item, or there are more than 10,000 candidates.
    """
    read, free = (_read(data, number, ("name",), letters) for letters in ("ABCD", "ABC"))
    kept, free = read.item.candidates, free.item.candidates
    if isinstance(free, Matching):
        raise ValueError("number must be an item of at most 10,000 candidates, got one with more")
    left = {z.tobytes() for z in kept}
    crossed = {k for k, z in enumerate(free) if z.tobytes() not in left}
    if not crossed:
        raise ValueError(
            f"number must be an item whose spatial indicators rule out a candidate, got {number}"
        )
    without = f"without [D]: {_counted(len(free), 'candidate')}; [D] strikes out {len(crossed)}"
    with_d = f"with [D]: {_counted(len(kept), 'candidate')} left"
    ax, column = _sheet(), 200.0
    _say(ax, PAD, PAD + 8.0, f"{_made(data)} item {number}", weight="bold")
    bottom = _draw_picture(ax, read, PAD, PAD + 13.0, column, 210.0)
    x = PAD + column + 18.0
    if len(free) > 12:
        # Picture and caption side by side, the matrices below over the whole width.
        y = _write(ax, read.words, x, PAD + 10.0, WIDTH - PAD - x)
        y = max(bottom, _indicators(ax, read, x, y + 6.0)) + 10.0
        x, most = PAD, 34
    else:
        bottom = _write(ax, read.words, PAD, bottom + 1.0, column)
        y, most = _indicators(ax, read, x, PAD - 2.0) + 8.0, 12
    room, options = WIDTH - PAD - x, {"true": read.true}
    first = {"crossed": crossed, "title": without, "key": False}
    first = CandidateMatrix.fitting(room, most, free, read.symbols, **first, **options)
    most = sum(k is not None for k, *_ in first.columns[: first.gap])
    second = CandidateMatrix(kept, read.symbols, title=with_d, most=most, key_width=room, **options)
    y = second.draw(ax, x, first.draw(ax, x, y) + 2.0)
    return _finish(ax, _legend(ax, [read], max(y, bottom) + 8.0, data))


def _indicators(ax, read, x, y):
    """What the indicators say, a line for each; returns where it ends."""
    y += 10.0
    _say(ax, x, y, "spatial indicators of the caption:", weight="bold")
    for label, place in read.places.items():
        y += 11.0
        name = read.symbols.names[0][label]
        _say(ax, x + 6.0, y, f"{name}: {place}", color=read.symbols.color(0, label))
    if read.item.note:
        y = _write(ax, read.item.note, x + 6.0, y, WIDTH - PAD - x - 6.0, NOTE)
    return y + 3.0


# --- the thesis's own ---------------------------------------------------------------------------------------


class _Printed(NamedTuple):
    """A caption of the thesis with the candidate labeling set that goes with it; label 0 is null."""

    title: str
    caption: str
    vocabulary: Vocabulary
    attributes: tuple
    regions: list
    candidates: np.ndarray
    note: str


def _printed(title, caption, names, verbs, attributes, faces, bodies, candidates, note):
    """Regions are boxes of persons side by side: a sketch in place of the photograph."""
    regions = [Region("face", (40 * k + 14, 16, 40 * k + 30, 36)) for k in range(faces)]
    regions += [Region("body", (40 * k + 4, 8, 40 * k + 40, 70)) for k in range(faces) if bodies]
    vocabulary = Vocabulary(names, verbs)
    return _Printed(title, caption, vocabulary, tuple(attributes), regions, np.array(candidates), note)


#: Captions and sets as printed. Figure 5.1 (left) and figure 5.5 are one item.
THESIS = [
    _printed(**kept)
    for kept in json.loads(Path(__file__).with_name("captions.json").read_text(encoding="utf-8"))
]


def _sketch(ax, printed, x, y, width, height):
    """Boxes without pictures, numbered."""
    boxes = np.array([region.box for region in printed.regions], dtype=float)
    size = boxes[:, 2].max() + boxes[:, 0].min(), boxes[:, 3].max() + 8.0
    scale = min(width / 128.0, height / size[1])
    _box(ax, (x, y, x + scale * size[0], y + scale * size[1]), **_GROUND)
    number = 0
    for region in sorted(printed.regions, key=lambda region: region.kind):  # bodies below faces
        left, top, right, bottom = scale * np.array(region.box) + [x, y, x, y]
        face = {"facecolor": "white", "edgecolor": BLACK, "linewidth": 0.9, "zorder": 2.3}
        _box(ax, (left, top, right, bottom), **(face if region.kind == "face" else _BODY))
        if region.kind == "face":
            number += 1
            place = (left + right) / 2, (top + bottom) / 2 + 2.6
            _say(ax, *place, str(number), NOTE, weight="bold", ha="center", zorder=3)
    return y + scale * size[1]


def thesis_captions():
    """The thesis's captions of figures 5.1, 5.2, 5.4 and 5.5 with their candidate labeling sets.

    The photographs are not shown: boxes are a sketch with as many faces and bodies as the figures have.
    """
    ax, y, text, boxes = _sheet(), PAD, 180.0, 76.0
    x = PAD + boxes + 12.0
    room = INNER - text - boxes - 26.0
    for k, printed in enumerate(THESIS):
        read = _read_caption(printed.caption, printed.regions, printed.vocabulary, printed.attributes)
        matrix = CandidateMatrix(printed.candidates, read.symbols, places=read.places, key_width=room)
        if k:
            _rule(ax, [PAD, WIDTH - PAD], [y, y])
            y += 5.0
        _say(ax, PAD, y + 9.0, f"({_letter(k)}) thesis, {printed.title}", weight="bold")
        sketch = _sketch(ax, printed, PAD, y + 15.0, boxes, 90.0)
        end = _write(ax, read.words, x, y + 12.0, text)
        note = _words(f"{printed.note[0].upper()}{printed.note[1:]}.", color=DARK, style="italic")
        end = _write(ax, note, x, end, text, NOTE)
        y = max(sketch, end, matrix.draw(ax, x + text + 14.0, y + 2.0)) + 5.0
    _rule(ax, [PAD, WIDTH - PAD], [y, y])
    note = (
        "Boxes are sketched: the photographs are not shown. Solid: a face; dashed: an upper body; numbers "
        "from left to right. Bold: known names; bold italic: known verbs, in the colour of who does it."
    )
    return _finish(ax, _write(ax, note, PAD, y + 1.0, INNER, NOTE))


# --- choosing items -----------------------------------------------------------------------------------------


def pick(data, *, n_faces=None, n_names=None, n_pairs=None, indicators=None, count=None):
    """Good examples among the items, the same ones every time.

    Of the items that meet the conditions, those come first whose faces are all of people whom the caption
    names, then those without strangers, then those with short captions. An item whose true vector is no
    candidate is not picked.

    Parameters
    ----------
    data : CaptionedData
    n_faces : int, optional
        Faces in the picture.
    n_names : int, optional
        Different known names in the caption.
    n_pairs : int, optional
        Different known names in the caption with a known verb; of two or more, the verbs are not all the
        same. Only for data with poses.
    indicators : bool, optional
        Whether spatial indicators must rule out candidates (True), or there must be none (False). Items of
        which more than one candidate is left come before the others.
    count : int, optional
        Number of items.

    Returns
    -------
    int, or list of int with `count`

    Raises
    ------
    ValueError
        If there are not as many items that meet the conditions.
    """
    asked = {"n_faces": n_faces, "n_names": n_names, "n_pairs": n_pairs}
    asked = {what: check_count(what, value) for what, value in asked.items() if value is not None}
    wanted = 1 if count is None else check_count("count", count)
    if n_pairs is not None and data.poses is None:
        raise ValueError("n_pairs must be None for data without poses")
    chosen = np.ones(len(data.captions), dtype=bool)
    if n_faces is not None:
        chosen &= data.bag_sizes == n_faces
    if indicators is not None:
        chosen &= data.has_position == bool(indicators)
        asked["indicators"] = bool(indicators)
    unnamed = np.bincount(data.bag_of[~data.mentioned], minlength=chosen.size)
    strange = np.bincount(data.bag_of[data.kinds != "identity"], minlength=chosen.size)
    lengths = np.array([len(caption) for caption in data.captions])
    order = np.lexsort((lengths, strange, unnamed))
    found, decided = [], []  # decided: by indicators, down to one candidate
    for i in order[chosen[order]].tolist():
        if len(found) == wanted:
            break
        read = _read(data, i)
        words, candidates = read.item.words, read.item.candidates
        verbs = [word[1] for word in words if len(word) == 2 and word[0] and word[1]]
        if n_names is not None and len({word[0] for word in words}) != n_names:
            continue
        if n_pairs is not None and (len(verbs) != n_pairs or (n_pairs > 1 and len(set(verbs)) == 1)):
            continue
        if isinstance(candidates, Matching) or not (candidates == read.true).all(axis=(1, 2)).any():
            continue
        if indicators:
            free = _read(data, i, ("name",), "ABC").item.candidates
            if read.item.note or isinstance(free, Matching) or len(free) == len(candidates):
                continue
            if len(candidates) == 1:
                decided.append(i)
                continue
        found.append(i)
    found += decided[: wanted - len(found)]
    if len(found) < wanted:
        said = ", ".join(f"{what}={value}" for what, value in asked.items()) or "the vocabulary"
        raise ValueError(
            f"{said} must be met by {_counted(wanted, 'item')} of the data, got {len(found)} of {chosen.size}"
        )
    return found[0] if count is None else found
