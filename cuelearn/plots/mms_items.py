r"""Drawings of captioned items and of their candidate labeling sets (thesis figures 5.1, 5.2, 5.4 and 5.5).

A figure is one axes in points (1/72 inch), y downward, so that words can be set one after the other and nothing moves when it is printed.
A word has the same colour in the caption, in the matrix and in its key: the colour of the person it belongs to; the symbols say the same
without colour.

From top to bottom: symbols, text, the matrix of candidates, the picture of an item, the notation in words, the figures, and the choice of
examples.

References
----------
Jie Luo (2011). Open-ended Learning of Visual and Multi-modal Patterns. EPFL thesis 5233, sections 5.1, 5.3, 5.6.1 and 5.7.1.
"""

from functools import lru_cache
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

__all__ = [
    "candidate_matrix",
    "item_with_candidates",
    "items",
    "matrix_size",
    "pick",
    "spatial_indicators",
    "thesis_captions",
]

#: Of the persons a, b, c, d of a caption; further ones are black, and told apart by their symbols. Dark enough for text.
COLORS = (BLUE, RED, "#00795A", "#A3447F")
DARK, PALE = "#555555", "#8C8C8C"
#: Widest figure, in points: 7.5 inches.
WIDTH = 540.0
PAD = 4.0
TEXT = 7.5
#: Of the axes of sections 5.6 (names to faces) and 5.7 (names with verbs to persons).
KINDS = {("name",): "face", ("name", "verb"): "person"}


# ----------------------------------------------------------------------------------------------------------------------- symbols


class _Symbols:
    """Short symbols of the labels, n_a, v_a, ..., and the colours of their persons.

    Parameters
    ----------
    words : list of tuple of int
        Labels of each word, in the order in which letters are given.
    names : list of sequences of str
        Names of the labels, one sequence per attribute; label 0 is null.
    """

    def __init__(self, words, names, attributes):
        self.names, self.attributes = names, attributes
        self.of, self.owners = {}, {}
        for word in words:
            for p, label in enumerate(word):
                if not label:
                    continue
                self.owners.setdefault((p, label), []).append(word[0])
                if (p, label) not in self.of:
                    # A verb has the letter of its first subject.
                    own = p == 0 or (0, word[0]) not in self.of
                    letter = len([key for key in self.of if key[0] == p]) if own else self.of[0, word[0]][1]
                    self.of[p, label] = (attributes[p][0], letter)

    def symbol(self, p, label):
        if not label:
            return "\N{WHITE CIRCLE}"
        kind, letter = self.of[p, label]
        return rf"$\mathbf{{{kind}}}_{{{_letter(letter)}}}$"

    def color(self, p, label):
        if not label:
            return DARK
        if len(set(self.owners[p, label])) > 1:
            return BLACK  # a verb of several persons
        letter = self.of[p, label][1]
        return COLORS[letter] if letter < len(COLORS) else BLACK

    def key(self, places=None):
        """Symbol, text, colour of every word, and of null."""
        places = places or {}
        entries = [
            (
                self.symbol(p, label),
                str(self.names[p][label]) + (f" ({places[label]})" if p == 0 and label in places else ""),
                self.color(p, label),
            )
            for p, label in sorted(self.of, key=lambda at: (self.of[at][1], at[0]))
        ]
        return [*entries, (self.symbol(0, 0), "null", DARK)]


def _letter(k):
    return chr(ord("a") + k) if k < 26 else str(k + 1)


# -------------------------------------------------------------------------------------------------------------------------- text


@lru_cache(maxsize=4096)
def _width(text, size, weight="normal", style="normal", math=False):
    """Width of a text in points."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight, style=style)
    return text_to_path.get_text_width_height_descent(text, font, ismath=math)[0]


class _Piece(NamedTuple):
    """Part of a caption between two blanks in one style; `glued` to the one before, without blank."""

    text: str
    color: str
    weight: str
    style: str
    glued: bool

    def width(self, size):
        return _width(self.text, size, self.weight, self.style)


def _pieces(caption, found, symbols):
    """A caption as pieces: names of `symbols` bold, verbs bold and italic, both in the colour of the person."""
    spans = []
    for mention in found:
        p = symbols.attributes.index(mention.kind) if mention.kind in symbols.attributes else None
        label = (
            None
            if p is None
            else next((k for k, name in enumerate(symbols.names[p]) if name == mention.label and k), None)
        )
        if (p, label) in symbols.of:
            spans.append(
                (
                    mention.start,
                    mention.end,
                    symbols.color(p, label),
                    "italic" if mention.kind == "verb" else "normal",
                )
            )
    pieces, at = [], 0
    for start, end, color, style in [*spans, (len(caption), len(caption), BLACK, "normal")]:
        for first, last, ink, weight, slant in (
            (at, start, BLACK, "normal", "normal"),
            (start, end, color, "bold", style),
        ):
            part = caption[first:last]
            words = part.split()
            for k, word in enumerate(words):
                glued = k == 0 and bool(pieces) and not part[0].isspace() and not caption[first - 1].isspace()
                pieces.append(_Piece(word, ink, weight, slant, glued))
        at = max(at, end)
    return pieces


def _lines(pieces, width, size):
    """Pieces as lines of (piece, x), wrapped at blanks."""
    blank = _width("a b", size) - _width("ab", size)
    groups = []
    for piece in pieces:
        if piece.glued and groups:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    lines, x = [[]], 0.0
    for group in groups:
        long = sum(piece.width(size) for piece in group)
        if lines[-1] and x + blank + long > width:
            lines.append([])
            x = 0.0
        x += blank if lines[-1] else 0.0
        for piece in group:
            lines[-1].append((piece, x))
            x += piece.width(size)
    return lines


def _plain(text, color=BLACK, weight="normal", style="normal"):
    return [_Piece(word, color, weight, style, False) for word in text.split()]


class _Sheet:
    """A figure in points, y downward, `width` wide; its height is that of what was drawn on it."""

    def __init__(self, width=WIDTH):
        self.width = width
        self.fig = plt.figure(figsize=(width / 72, 3), layout="constrained")
        self.fig.get_layout_engine().set(w_pad=0, h_pad=0, wspace=0, hspace=0)
        self.ax = self.fig.add_subplot()
        self.ax.set_axis_off()

    def finish(self, height):
        self.fig.set_size_inches(self.width / 72, height / 72)
        self.ax.set(xlim=(0, self.width), ylim=(height, 0))
        return self.fig


class _Words(Text):
    """Text as wide as `_width` says: hinting would fit every letter to the pixels, and words would run into each other."""

    def draw(self, renderer):
        kept = mpl.rcParams["text.hinting"]
        mpl.rcParams["text.hinting"] = "none"
        try:
            super().draw(renderer)
        finally:
            mpl.rcParams["text.hinting"] = kept


def _say(ax, x, y, text, size=TEXT, weight="normal", style="normal", **options):
    """One line whose base is at y."""
    font = FontProperties(family="DejaVu Sans", size=size, weight=weight, style=style)
    words = _Words(
        x,
        y,
        text,
        fontproperties=font,
        **{"va": "baseline", "ha": "left", "color": BLACK, "clip_on": False, **options},
    )
    return ax.add_artist(words)


def _write(ax, pieces, x, y, width, size=TEXT):
    """Wrapped text below y; returns where it ends."""
    for line in _lines(pieces, width, size):
        y += 1.32 * size
        for piece, at in line:
            _say(ax, x + at, y, piece.text, size, color=piece.color, weight=piece.weight, style=piece.style)
    return y + 0.35 * size


# ------------------------------------------------------------------------------------------------------------ matrix of candidates


class _Matrix:
    """The matrix of figures 5.4 and 5.5, measured before it is drawn; sizes in points."""

    def __init__(
        self,
        candidates,
        names,
        *,
        words=None,
        attributes=None,
        true=None,
        crossed=None,
        most=12,
        title="",
        key=True,
        key_width=0.0,
        places=None,
        lead=r"$\mathcal{Z}$ :",
    ):
        listed = not isinstance(candidates, Matching)
        if listed:
            candidates = np.asarray(candidates)
            if candidates.ndim == 2:
                candidates = candidates[:, :, None]
            if candidates.ndim != 3 or candidates.dtype.kind not in "iu" or 0 in candidates.shape:
                raise ValueError(
                    "candidates must be integers of shape (L, M) or (L, M, P), of L vectors of M regions with P attributes"
                )
        shape = candidates.shape[1:] if listed else (candidates.allowed.shape[0], candidates.words.shape[1])
        self.n_regions, n_attributes = shape
        names = [names] if len(names) and isinstance(names[0], str) else [*names]
        if len(names) != n_attributes:
            raise ValueError(
                f"names must hold a list of label names for each of {n_attributes} attributes, got {len(names)}"
            )
        if attributes is None:
            attributes = ("name", "verb")[:n_attributes]
        if tuple(attributes) not in KINDS or len(attributes) != n_attributes:
            raise ValueError(
                f"attributes must be ('name',) or ('name', 'verb') and fit the candidates, got {attributes!r}"
            )
        labels = (candidates if listed else candidates.words).reshape(-1, n_attributes)
        if np.any(labels < 0) or np.any(labels >= [len(name) for name in names]):
            raise ValueError(f"candidates must hold labels 0 to {tuple(len(name) - 1 for name in names)}")
        true = None if true is None else np.asarray(true).reshape(shape)
        self._choose(candidates, listed, names, true, check_count("most", most))
        self.crossed = (
            np.zeros(self.total, dtype=bool) if crossed is None else np.asarray(crossed, dtype=bool)
        )
        if crossed is not None and self.crossed.shape != (self.total,):
            raise ValueError(
                f"crossed must have one value for each of the {self.total} candidates, got shape {self.crossed.shape}"
            )
        if words is None:  # in the order in which the matrix has them
            words = [row for row in dict.fromkeys(map(tuple, labels.tolist())) if any(row)]
        self.symbols = _Symbols(words, names, tuple(attributes))
        self.attributes, self.title, self.lead = tuple(attributes), title, lead
        narrow = len(self.columns) > 12
        self.size = 7.5 if narrow else 9.0
        self.column, self.row, self.head = (13.2 if narrow else 21.0), 15.0, 16.0
        self.left = (_width(lead, 9.0, math=True) + 10.0) if lead else 8.0
        self.gap_width = 18.0
        self.inner = len(self.columns) * self.column + (self.gap_width if self.gap is not None else 0.0)
        of = KINDS[self.attributes]
        parts = ["", "-face", "-pose"][:1] if n_attributes == 1 else ["-face", "-pose"]
        self.labels = [
            rf"$\leftarrow$ {of}$_{{{m + 1}}}${part}" for m in range(self.n_regions) for part in parts
        ]
        note = (
            f"{len(self.columns)} of {self.total:,} candidates" if self.gap is not None and not title else ""
        )
        self.title = self.title or note
        self.grid_top = (12.0 if self.title else 0.0) + self.head
        self.grid_height = len(self.labels) * self.row
        right = 13.0 + max(_width(label, 7.5, math=True) for label in self.labels)
        self.width = max(self.left + self.inner + right, _width(self.title, TEXT, "bold"))
        entries = self.symbols.key(places) if key else []
        self.key, x, y = [], 0.0, self.grid_top + self.grid_height + (13.0 if self.has_true else 4.0)
        room = max(self.width, key_width, *(self._entry(e) for e in entries)) if entries else self.width
        y += 11.0 if entries else 0.0
        for entry in entries:
            if x and x + self._entry(entry) > room:
                x, y = 0.0, y + 12.0
            self.key.append((x, y, entry))
            x += self._entry(entry) + 10.0
        self.width = max([self.width, *(x + self._entry(entry) for x, _, entry in self.key)])
        self.height = y + 4.0

    def _choose(self, candidates, listed, names, true, most):
        """The columns that are shown: (number or None, vector, whether it is the true one)."""
        if listed:
            self.total, first = len(candidates), candidates[:most]
        else:
            one = CandidateSet([candidates], classes=names, null=(0,) * len(names))
            self.total, first = one.n_candidates[0], list(one.iterate(0, 0, most))
        self.columns = [(k, z, true is not None and np.array_equal(z, true)) for k, z in enumerate(first)]
        self.has_true = any(is_true for *_, is_true in self.columns)
        self.gap = len(first) if self.total > len(first) else None
        if self.gap is None or true is None or self.has_true:
            return
        if listed:
            later = np.flatnonzero((candidates == true).all(axis=(1, 2))).tolist()
        else:  # its number would take to list them all
            later = [None] * one.contains(0, true)
        self.columns += [(number, true, True) for number in later[:1]]
        self.has_true = bool(later)

    @staticmethod
    def _entry(entry):
        return _width(entry[0], 9.0, math=True) + 3.0 + _width(entry[1], TEXT)

    def _x(self, k):
        """Left edge of the k-th column drawn."""
        return (
            self.left + k * self.column + (self.gap_width if self.gap is not None and k >= self.gap else 0.0)
        )

    def draw(self, ax, x0, y0):
        """Draw it with its upper left corner at (x0, y0) of an axes in points."""
        top, bottom = y0 + self.grid_top, y0 + self.grid_top + self.grid_height
        if self.title:
            _say(ax, x0, y0 + 8.0, self.title, weight="bold")
        n = len(self.attributes)
        for k, (number, z, is_true) in enumerate(self.columns):
            x = x0 + self._x(k)
            out = number is not None and bool(self.crossed[number])
            name = r"$\mathbf{Z}$" if number is None else rf"$\mathbf{{Z}}_{{{number + 1}}}$"
            size = self.size - (1.5 if self.column < 20 else 1.0)
            _say(ax, x + self.column / 2, top - 5.0, name, size, ha="center", color=PALE if out else BLACK)
            for r, (m, p) in enumerate((m, p) for m in range(self.n_regions) for p in range(n)):
                label, y = int(z[m, p]), top + r * self.row
                color = self.symbols.color(p, label)
                if label and not out:
                    ax.add_patch(
                        Rectangle((x, y), self.column, self.row, facecolor=color, alpha=0.13, linewidth=0)
                    )
                _say(
                    ax,
                    x + self.column / 2,
                    y + self.row / 2 + 0.3 * self.size,
                    self.symbols.symbol(p, label),
                    self.size,
                    ha="center",
                    color=PALE if out else color,
                )
            if out:
                ax.plot(
                    [x + 2.0, x + self.column - 2.0], [bottom - 1.0, top + 1.0], color=PALE, linewidth=0.8
                )
            if is_true:
                ax.add_patch(
                    Rectangle(
                        (x, top),
                        self.column,
                        self.grid_height,
                        fill=False,
                        edgecolor=BLACK,
                        linewidth=1.8,
                        zorder=4,
                    )
                )
                _say(ax, x + self.column / 2, bottom + 9.5, r"$\uparrow$ true", 7.0, ha="center")
        for k in range(1, len(self.columns)):
            if k != self.gap:
                ax.plot([x0 + self._x(k)] * 2, [top, bottom], color=PALE, linewidth=0.6, zorder=1)
        right = x0 + self.left + self.inner
        if self.gap is not None:
            x = x0 + self.left + self.gap * self.column
            _say(ax, x + self.gap_width / 2, top + self.grid_height / 2 + 3.0, r"$\cdots$", 9.0, ha="center")
            for edge in {x, x + self.gap_width} - {right}:
                ax.plot([edge] * 2, [top, bottom], color=PALE, linewidth=0.6, zorder=1)
        for m in range(1, self.n_regions):
            ax.plot(
                [x0 + self.left, right], [top + m * n * self.row] * 2, color=PALE, linewidth=0.6, zorder=1
            )
        for x, inward in ((x0 + self.left - 4.0, 3.5), (right + 4.0, -3.5)):
            ax.plot(
                [x + inward, x, x, x + inward],
                [top - 1.5, top - 1.5, bottom + 1.5, bottom + 1.5],
                color=BLACK,
                linewidth=1.1,
            )
        if self.lead:
            _say(ax, x0, (top + bottom) / 2 + 3.0, self.lead, 9.0)
        for r, label in enumerate(self.labels):
            _say(ax, right + 9.0, top + (r + 0.5) * self.row + 2.5, label, 7.5)
        for x, y, (symbol, text, color) in self.key:
            _say(ax, x0 + x, y0 + y, symbol, 9.0, color=color)
            _say(ax, x0 + x + _width(symbol, 9.0, math=True) + 3.0, y0 + y, text, color=color)
        return y0 + self.height


def matrix_size(candidates, names, **options):
    """Size that `candidate_matrix` takes with these arguments: width and height in inches."""
    matrix = _Matrix(candidates, names, **options)
    return matrix.width / 72, matrix.height / 72


def candidate_matrix(ax, candidates, names, **options):
    r"""The matrix of figures 5.4 and 5.5: a column for each candidate vector, a row for each region and attribute.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Becomes an axes in points; text is legible if it is at least `matrix_size` large.
    candidates : ndarray of int, shape (L, M) or (L, M, P), or Matching
        Label 0 is null, drawn as a circle.
    names : sequence of str, or P of them
        Names of the labels, "null" first, such as ``vocabulary.names``.
    words : list of tuple of int, optional
        Labels of each word in the order in which they are called a, b, c, ... (``ItemCandidates.words``); by default that of the matrix.
    attributes : tuple of str, optional
        ("name",) or ("name", "verb").
    true : array-like of int, shape (M,) or (M, P), optional
        The true vector, which is framed; added as the last column if it is a candidate beyond those shown.
    crossed : array-like of bool, shape (L,), optional
        Candidates to strike out.
    most : int, default 12
        Columns that are shown; "..." stands for the others, whose number is given.
    title : str, optional
    key : bool, default True
        Whether the words are spelled below.
    key_width : float
        Points that the lines of the key may take, if more than the matrix.
    places : dict of int to str, optional
        What the caption says of where a name is, by label, for the key.
    lead : str
        Left of the matrix.

    Raises
    ------
    ValueError
        If shapes or labels do not fit.
    """
    matrix = _Matrix(candidates, names, **options)
    ax.set_axis_off()
    matrix.draw(ax, 0.0, 0.0)
    ax.set(xlim=(0.0, matrix.width), ylim=(matrix.height, 0.0), aspect="equal")
    return ax


# -------------------------------------------------------------------------------------------------------------- picture of an item


class _Read(NamedTuple):
    """An item as a learner gets it, and the truth."""

    picture: object
    item: object  # ItemCandidates
    names: list  # per attribute
    symbols: _Symbols
    pieces: list
    number: dict  # face -> number of its instance
    true: np.ndarray
    mixed: bool  # whether a face is of no person of the data's identities

    @property
    def places(self):
        return {self.item.words[w][0]: place for w, place in self.item.positions.items()}


def _checked(data, number, vocabulary, attributes):
    """Vocabulary and attributes, those of the data by default."""
    if (
        not isinstance(number, (int, np.integer))
        or isinstance(number, bool)
        or not 0 <= number < len(data.captions)
    ):
        raise IndexError(f"number must be an item in 0..{len(data.captions) - 1}, got {number!r}")
    if attributes is None:
        attributes = ("name",) if data.poses is None else ("name", "verb")
    if tuple(attributes) not in KINDS:
        raise ValueError(f"attributes must be ('name',) or ('name', 'verb'), got {attributes!r}")
    if "verb" in attributes and data.poses is None:
        raise ValueError("attributes must be ('name',) for data without poses")
    return data.vocabulary if vocabulary is None else vocabulary, tuple(attributes)


def _read(data, number, vocabulary=None, attributes=None, constraints="ABCD"):
    vocabulary, attributes = _checked(data, number, vocabulary, attributes)
    regions, caption = data.regions[number], data.captions[number]
    item = candidates_from_caption(
        caption, regions, vocabulary, attributes=attributes, constraints=constraints
    )
    names = [vocabulary.names, vocabulary.verbs][: len(attributes)]
    symbols = _Symbols(item.words, names, attributes)
    face = {k: row for row, k in enumerate(k for k, region in enumerate(regions) if region.kind == "face")}
    numbers = {face[k]: m for m, instance in enumerate(item.instances) for k in instance if k in face}
    kept = [
        [word for word in words if word in known]
        for words, known in zip(names, (set(data.labels), {*vocabulary.verbs}), strict=False)
    ]
    truth = data.truth(*kept).reshape(len(data.names), -1)[data.rows([number])]
    order = sorted(numbers, key=numbers.get)
    true = np.array(
        [[names[p].tolist().index(truth[row, p]) for p in range(len(attributes))] for row in order]
    )
    return _Read(
        data.picture(number),
        item,
        names,
        symbols,
        _pieces(caption, mentions(caption, vocabulary), symbols),
        numbers,
        true,
        bool(np.any(data.kinds[data.rows([number])] != "identity")),
    )


_BODY = {"facecolor": "#F4F4F4", "edgecolor": DARK, "linestyle": (0, (3, 2)), "zorder": 2.1}


def _face(ax, box, digit, letter, width=0.8):
    """A face box: the digit on top, the letter's attributes as bars below."""
    x0, y0, x1, y1 = box
    ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, facecolor="white", edgecolor="none", zorder=2.2))
    floor = y0 + 0.70 * (y1 - y0)
    side = min(floor - y0, x1 - x0)
    left = (x0 + x1 - side) / 2
    ax.imshow(
        digit,
        cmap="Greys",
        vmin=0,
        vmax=1,
        extent=(left, left + side, floor, floor - side),
        aspect="auto",
        interpolation="nearest",
        zorder=2.3,
    )
    ax.plot([x0, x1], [floor, floor], color=PALE, linewidth=0.4, zorder=2.4)
    step = (x1 - x0 - 2.0) / 16
    for k, value in enumerate(letter):
        high = float(value) / 15 * (y1 - floor - 2.0)
        ax.add_patch(
            Rectangle(
                (x0 + 1.0 + (k + 0.08) * step, y1 - 0.8 - high),
                0.84 * step,
                high,
                facecolor=BLUE,
                linewidth=0,
                zorder=2.4,
            )
        )
    ax.add_patch(
        Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=BLACK, linewidth=width, zorder=2.5)
    )


def _stroke(ax, box, pen):
    """A pen stroke (x, y in 0..100, y upward) in a box, its start marked."""
    x0, y0, x1, y1 = box
    side = min(x1 - x0, y1 - y0)
    x = (x0 + x1) / 2 + (pen[:, 0] / 100 - 0.5) * side
    y = (y0 + y1) / 2 - (pen[:, 1] / 100 - 0.5) * side
    ax.plot(x, y, color=BLACK, linewidth=1.5, solid_joinstyle="round", solid_capstyle="round", zorder=2.6)
    ax.plot(
        x[:1],
        y[:1],
        marker="o",
        color=RED,
        markersize=4.2,
        markeredgecolor="white",
        markeredgewidth=0.5,
        linestyle="",
        zorder=2.7,
    )


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
    ax.add_patch(Rectangle((x, y), w, h, facecolor="#D4D4D4", edgecolor=DARK, linewidth=0.5, zorder=2))
    faces = x + scale * picture.boxes * [1, 0, 1, 0] + (y - x + scale * picture.boxes) * [0, 1, 0, 1]
    if picture.bodies is not None:
        bodies = picture.bodies * scale + [x, y, x, y]
        for x0, y0, x1, y1 in bodies:
            ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, linewidth=0.9, **_BODY))
        for (x0, _, x1, y1), face, pen in zip(bodies, faces, picture.pens, strict=True):
            _stroke(ax, (x0 + 5.0, face[3] + 4.0, x1 - 5.0, y1 - 4.0), pen)
    for k, face in enumerate(faces):
        _face(ax, face, picture.digits[k], picture.letters[k])
        if k in read.number:
            _badge(ax, max(face[0] - 2.5, x + 5.5), max(face[1] - 2.5, y + 5.5), read.number[k] + 1)
    return y + h


def _legend(ax, reads, x, y, width, what):
    """What is what in the pictures, once: a face and, with poses, a stroke; returns where it ends."""
    picture = reads[0].picture
    _face(ax, (x, y, x + 30.0, y + 37.0), picture.digits[0], picture.letters[0])
    lines = ["face: a handwritten digit, 28 × 28 pixels,", "above the 16 attributes of a letter, 0 to 15"]
    for k, line in enumerate(lines):
        _say(ax, x + 36.0, y + 9.0 + 9.5 * k, line, 7.0)
    _badge(ax, x + 41.0, y + 30.0, 1)
    of = "face" if picture.pens is None else "person"
    _say(ax, x + 49.0, y + 32.5, f"number of the {of}", 7.0)
    at = x + 205.0
    if picture.pens is not None:
        ax.add_patch(Rectangle((at, y), 34.0, 37.0, linewidth=0.9, **_BODY))
        _stroke(ax, (at + 5.0, y + 5.0, at + 29.0, y + 32.0), picture.pens[0])
        for k, line in enumerate(["body: a pen stroke of 8 points,", "the dot is its start"]):
            _say(ax, at + 40.0, y + 9.0 + 9.5 * k, line, 7.0)
        at += 165.0
    sets = (
        "letter recognition and MNIST" if picture.pens is None else "letter recognition, MNIST and Pendigits"
    )
    text = f"Pictures are {what} of samples of {sets}; names and captions are invented."
    if any(read.mixed for read in reads):
        text += " Strangers and false detections are mixtures of two samples."
    end = _write(ax, _plain(text, DARK, style="italic"), at, y - 1.0, width - (at - x), 7.0)
    return max(y + 40.0, end)


# ------------------------------------------------------------------------------------------------------------- notation in words


def _short(word, width, size, weight, style):
    """A name that fits, and its size: in full, or its last word, or that smaller, or cut."""
    for text, tried in ((word, size), (word.split()[-1], size), (word.split()[-1], 6.0)):
        if _width(text, tried, weight, style) <= width:
            return text, tried
    while len(text) > 3 and _width(text + "…", 6.0, weight, style) > width:
        text = text[:-1]
    return text + "…", 6.0


def _notation(ax, read, x, y, width, title, most=6, beside=False):
    """X, the candidate vectors with their words spelled, and Y (figure 5.1, right); returns where it ends.

    With `beside` the vectors stand right of the definitions.
    """
    n, P = read.true.shape
    of = KINDS[read.symbols.attributes]
    left = 21.0
    cell = min(((0.52 * width if beside else width) - left - 3.0) / n, 110.0)
    size, line = 6.8, 9.6

    def vector(z, name, x, y):
        high = P * line + 4.0
        _say(ax, x, y + high / 2 + 3.0, name, 8.5)
        for at, inward in ((x + left - 1.0, 3.0), (x + left + n * cell + 1.0, -3.0)):
            ax.plot(
                [at + inward, at, at, at + inward],
                [y + 1.0, y + 1.0, y + high - 1.0, y + high - 1.0],
                color=BLACK,
                linewidth=0.9,
            )
        for m in range(n):
            for p in range(P):
                label = int(z[m][p])
                weight, style = ("bold" if label else "normal"), ("italic" if p and label else "normal")
                text, fitting = _short(str(read.names[p][label]), cell - 4.0, size, weight, style)
                _say(
                    ax,
                    x + left + (m + 0.5) * cell,
                    y + 2.2 + (p + 0.75) * line,
                    text,
                    fitting,
                    weight,
                    style,
                    ha="center",
                    color=read.symbols.color(p, label),
                )
            if m:
                ax.plot([x + left + m * cell] * 2, [y + 3.0, y + high - 3.0], color=PALE, linewidth=0.5)
        return y + high + 2.0

    candidates = read.item.candidates
    if isinstance(candidates, Matching):
        one = CandidateSet([candidates], classes=read.names, null=(0,) * P)
        total, rows = one.n_candidates[0], list(one.iterate(0, 0, most))
    else:
        total, rows = len(candidates), list(candidates[:most])
    _say(ax, x, y + 8.0, title, weight="bold")
    top = y + 24.0
    y = top
    single = (
        ", ".join(rf"\mathbf{{x}}_{{{m + 1}}}" for m in range(n))
        if n <= 3
        else rf"\mathbf{{x}}_1, \ldots, \mathbf{{x}}_{{{n}}}"
    )
    _say(ax, x, y, rf"$\mathcal{{X}} = \{{{single}\}}$", 8.5)
    if P == 2:
        y += 16.0
        _say(ax, x, y, r"$\mathbf{x}_m = [\mathbf{x}_m^{(1)},\ \mathbf{x}_m^{(2)}]$:  face and pose", 8.5)
    y += 18.0
    through = {1: r"\mathbf{Z}_1", 2: r"\mathbf{Z}_1, \mathbf{Z}_2"}.get(
        total, rf"\mathbf{{Z}}_1, \ldots, \mathbf{{Z}}_{{{total}}}"
    )
    _say(ax, x, y, rf"$\mathcal{{Z}} = \{{{through}\}}$", 8.5)

    def truth(y):
        _say(ax, x, y + 11.0, "true, and unknown to the learner:", 7.0, color=DARK)
        return vector(read.true, r"$\mathbf{Y}$", x, y + 15.0)

    end = truth(y + 10.0) if beside else y
    x_listed, y = (x + 0.48 * width, top - 12.0) if beside else (x, y + 4.0)
    y += 8.0
    for m in range(n):
        _say(ax, x_listed + left + (m + 0.5) * cell, y, rf"{of}$_{{{m + 1}}}$", 7.0, ha="center", color=DARK)
    y += 4.0
    for k, z in enumerate(rows):
        y = vector(z, rf"$\mathbf{{Z}}_{{{k + 1}}}$", x_listed, y)
    if total > len(rows):
        y += 8.0
        _say(ax, x_listed + left + n * cell / 2, y, f"{len(rows)} of {total:,}", 7.0, ha="center", color=DARK)
        y += 4.0
    return max(end, y) if beside else truth(y)


# ------------------------------------------------------------------------------------------------------------------------ figures


def _word_for(data):
    return "composed" if data.provenance.tier == "generated" else "of the collection"


def items(data, numbers, *, vocabulary=None, attributes=None, notation=-1):
    """Figure 5.1: captioned items, and the candidate labeling set of one of them in words.

    Parameters
    ----------
    data : CaptionedData
    numbers : sequence of int
        One to three items.
    vocabulary : Vocabulary, optional
        Known words; those of the data by default.
    attributes : tuple of str, optional
        ("name",) or ("name", "verb"); by default what the data has.
    notation : int or None, default -1
        Which of `numbers` is written out: at the right, or below if there are three items.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError, IndexError
        If there are no or too many items, or an item does not exist.
    """
    numbers = [*numbers]
    if not 1 <= len(numbers) <= 3:
        raise ValueError(f"numbers must hold one to three items, got {len(numbers)}")
    if notation is not None and not -len(numbers) <= notation < len(numbers):
        raise IndexError(f"notation must be None or a place among the {len(numbers)} items, got {notation!r}")
    reads = [_read(data, number, vocabulary, attributes) for number in numbers]
    sheet = _Sheet()
    gap, side = 14.0, 196.0
    beside = notation is not None and len(numbers) < 3
    room = WIDTH - 2 * PAD - (side + gap if beside else 0.0)
    column = (room - gap * (len(numbers) - 1)) / len(numbers)
    top = PAD + 13.0
    tallest = max(_fitted(read.picture.size, column, 240.0) * read.picture.size[1] for read in reads)
    bottoms = []
    for k, (number, read) in enumerate(zip(numbers, reads, strict=True)):
        x = PAD + k * (column + gap)
        _say(sheet.ax, x, PAD + 8.0, f"({_letter(k)}) {_word_for(data)} item {number}", weight="bold")
        _draw_picture(sheet.ax, read, x, top, column, 240.0)
        bottoms.append(_write(sheet.ax, read.pieces, x, top + tallest + 1.0, column))
    bottom = max(bottoms)
    if beside:
        title = f"candidate labeling set of ({_letter(notation % len(numbers))})"
        after = _notation(sheet.ax, reads[notation], WIDTH - PAD - side, PAD, side, title)
    elif notation is not None:
        title = f"candidate labeling set of ({_letter(notation % len(numbers))})"
        bottom = _notation(sheet.ax, reads[notation], PAD, bottom + 8.0, room, title, beside=True)
    # The legend stands below the captions, and below the notation where it would come too near.
    bottom = max(bottom, after) if beside else bottom
    verbs = "; bold italic: known verbs, in the colour of who does it" if len(reads[0].names) == 2 else ""
    ways = f"Bold in a caption: known names{verbs}."
    bottom = _write(sheet.ax, _plain(ways, DARK), PAD, bottom + 4.0, WIDTH - 2 * PAD, 7.0)
    bottom = _legend(sheet.ax, reads, PAD, bottom + 6.0, WIDTH - 2 * PAD, _word_for(data))
    return sheet.finish(bottom + PAD)


def item_with_candidates(data, number, vocabulary=None, attributes=None, constraints="ABCD", most=12):
    """Figures 5.4 and 5.5: an item at the left, its candidate labeling set at the right, the true vector framed.

    Parameters
    ----------
    data : CaptionedData
    number : int
    vocabulary : Vocabulary, optional
        Those of the data by default.
    attributes : tuple of str, optional
        ("name",) for figure 5.4, ("name", "verb") for figure 5.5; by default what the data has.
    constraints : str
        As in `candidates_from_caption`.
    most : int
        Columns that are shown.

    Returns
    -------
    Figure
    """
    read = _read(data, number, vocabulary, attributes, constraints)
    options = {
        "words": read.item.words,
        "attributes": read.symbols.attributes,
        "true": read.true,
        "places": read.places,
    }
    column, gap = 172.0, 20.0
    options["key_width"] = WIDTH - 2 * PAD - column - gap
    matrix = _Matrix(read.item.candidates, read.names, most=most, **options)
    while matrix.width > WIDTH - 2 * PAD - column - gap and most > 1:
        most -= 1
        matrix = _Matrix(read.item.candidates, read.names, most=most, **options)
    sheet = _Sheet()
    x = PAD + column + gap
    _say(sheet.ax, PAD, PAD + 8.0, f"{_word_for(data)} item {number}", weight="bold")
    top = PAD
    if (
        read.picture.size[0] > 2 * read.picture.size[1]
    ):  # many faces: the picture over the whole width, the rest below
        bottom = _draw_picture(sheet.ax, read, PAD, PAD + 13.0, WIDTH - 2 * PAD, 200.0)
        top = bottom + 8.0
    else:
        bottom = _draw_picture(sheet.ax, read, PAD, PAD + 13.0, column, 200.0)
    bottom = _write(sheet.ax, read.pieces, PAD, bottom + (7.0 if top > PAD else 1.0), column)
    L, (n, _) = matrix.total, read.true.shape
    of, word = KINDS[read.symbols.attributes], "name" if len(read.names) == 1 else "name-verb pair"
    letters = [c for c in "ABCD" if c in constraints and (c != "D" or read.item.positions)]
    _say(
        sheet.ax,
        x,
        top + 8.0,
        f"candidate labeling set, constraints {', '.join(f'[{c}]' for c in letters)}",
        weight="bold",
    )
    y = top + 22.0
    counts = f"{_counted(n, of)}, {_counted(len(read.item.words), word)}: {_counted(L, 'candidate vector')}"
    y = _write(sheet.ax, _plain(counts, DARK), x, y - 12.0, WIDTH - PAD - x)
    y = matrix.draw(sheet.ax, x, y + 6.0)
    notes = (
        []
        if matrix.has_true
        else [
            "The true vector, null everywhere, is no candidate."
            if not read.true.any()
            else "The true vector is no candidate."
        ]
    )
    said = [
        note for note in read.item.note.split("; ") if note and not note.endswith("Matching")
    ]  # the number of vectors is said already
    notes += [note[0].upper() + note[1:] + "." for note in said]
    if notes:
        y = _write(sheet.ax, _plain(" ".join(notes), DARK), x, y, WIDTH - PAD - x, 7.0)
    bottom = _legend(sheet.ax, [read], PAD, max(bottom, y) + 8.0, WIDTH - 2 * PAD, _word_for(data))
    return sheet.finish(bottom + PAD)


def _counted(n, word):
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def spatial_indicators(data, number, vocabulary=None):
    """Figure 5.2: an item whose caption says who stands where, and what constraint [D] leaves of its candidate labeling set.

    Parameters
    ----------
    data : CaptionedData
    number : int
    vocabulary : Vocabulary, optional
        Those of the data by default.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If no indicator of the caption applies to the item, or there are more than 10,000 candidates.
    """
    vocabulary, _ = _checked(data, number, vocabulary, ("name",))
    read = _read(data, number, vocabulary, ("name",))
    free = candidates_from_caption(data.captions[number], data.regions[number], vocabulary, constraints="ABC")
    if isinstance(free.candidates, Matching):
        raise ValueError("number must be an item of at most 10,000 candidates, got one with more")
    left = {z.tobytes() for z in read.item.candidates}
    crossed = np.array([z.tobytes() not in left for z in free.candidates])
    if not crossed.any():
        raise ValueError(
            f"number must be an item whose spatial indicators rule out a candidate, got {number}"
        )
    options = {"words": read.item.words, "attributes": ("name",), "true": read.true}
    total = len(free.candidates)
    without = f"without [D]: {_counted(total, 'candidate')}; [D] strikes out {int(crossed.sum())}"
    with_d = f"with [D]: {_counted(len(read.item.candidates), 'candidate')} left"
    column, gap = 200.0, 18.0
    sheet = _Sheet()
    _say(sheet.ax, PAD, PAD + 8.0, f"{_word_for(data)} item {number}", weight="bold")
    wide = total > 12
    picture = _draw_picture(sheet.ax, read, PAD, PAD + 13.0, column, 210.0)
    x = PAD + column + gap
    if wide:
        # Picture and caption side by side, the matrices below over the whole width.
        y = _write(sheet.ax, read.pieces, x, PAD + 10.0, WIDTH - PAD - x)
        y = _places(sheet.ax, read, x, y + 6.0)
        y = max(picture, y) + 10.0
        x, most = PAD, 34
    else:
        below = _write(sheet.ax, read.pieces, PAD, picture + 1.0, column)
        y, most = _places(sheet.ax, read, x, PAD - 2.0) + 8.0, 12
    room = WIDTH - PAD - x
    first = _Matrix(
        free.candidates, read.names, crossed=crossed, title=without, most=most, key=False, **options
    )
    while first.width > room:
        most -= 1
        first = _Matrix(
            free.candidates, read.names, crossed=crossed, title=without, most=most, key=False, **options
        )
    y = first.draw(sheet.ax, x, y) + 2.0
    y = _Matrix(read.item.candidates, read.names, title=with_d, most=most, key_width=room, **options).draw(
        sheet.ax, x, y
    )
    bottom = max(y, picture if wide else below)
    bottom = _legend(sheet.ax, [read], PAD, bottom + 8.0, WIDTH - 2 * PAD, _word_for(data))
    return sheet.finish(bottom + PAD)


def _places(ax, read, x, y):
    """What the indicators say, a line for each; returns where it ends."""
    y += 10.0
    _say(ax, x, y, "spatial indicators of the caption:", TEXT, weight="bold")
    for label, place in read.places.items():
        y += 11.0
        _say(ax, x + 6.0, y, f"{read.names[0][label]}: {place}", TEXT, color=read.symbols.color(0, label))
    if read.item.note:
        y = _write(ax, _plain(read.item.note, DARK), x + 6.0, y, WIDTH - PAD - x - 6.0, 7.0)
    return y + 3.0


# -------------------------------------------------------------------------------------------------------------- the thesis's own

THE_OBAMAS = Vocabulary(["Barack Obama", "Michelle Obama"], {"wave": [], "stand": ["stood"]})
_A, _B, _NULL = (1, 1), (2, 2), (0, 0)


class _Printed(NamedTuple):
    """A caption of the thesis with the candidate labeling set that goes with it; label 0 is null."""

    title: str
    caption: str
    vocabulary: Vocabulary
    attributes: tuple
    regions: list
    candidates: list
    note: str


def _people(n, bodies):
    """Boxes of n persons side by side, on a canvas 100 high: a sketch, the photographs are not part of the text."""
    found = [Region("face", (40 * k + 14, 16, 40 * k + 30, 36)) for k in range(n)]
    return found + [Region("body", (40 * k + 4, 8, 40 * k + 40, 70)) for k in range(n) if bodies]


#: Captions and sets as printed. Figure 5.1 (left) and figure 5.5 are one item.
THESIS = (
    _Printed(
        "figures 5.1 (left) and 5.5",
        "US Democratic presidential candidate Senator Barack Obama waves to supporters together with his wife Michelle Obama standing "
        "beside him at his North Carolina and Indiana primary election night rally in Raleigh.",
        THE_OBAMAS,
        ("name", "verb"),
        _people(2, True),
        [[_A, _B], [_A, _NULL], [_NULL, _B], [_B, _A], [_NULL, _A], [_B, _NULL]],
        "the set as printed in figure 5.5",
    ),
    _Printed(
        "figure 5.1 (middle, right)",
        "Four sets ... Roger Federer prepares to hit a backhand in a quarter-final match with Andy Roddick at the US Open.",
        Vocabulary(["Roger Federer", "Andy Roddick"], {"backhand": ["hit a backhand"]}),
        ("name", "verb"),
        _people(1, True),
        [[(1, 1)], [(2, 0)]],
        "the set as printed in figure 5.1 (right)",
    ),
    _Printed(
        "figure 5.2",
        "Australia's gold medalist Grant Hackett (C), Ukraine's silver medalist Igor Chervynsky and USA's bronze medalist Erik Vendt show "
        "their medals following the 1500 metres freestyle race at the 10th World Swimming Championships in Barcelona July 27, 2003. "
        "Hackett clocked fourteen minutes 43.14 seconds.",
        Vocabulary(["Grant Hackett", "Igor Chervynsky", "Erik Vendt"]),
        ("name",),
        _people(3, False),
        [[[a], [1], [b]] for a, b in ((2, 3), (2, 0), (0, 3), (3, 2), (0, 2), (3, 0), (0, 0))],
        "the set is not printed; section 5.6.1: Hackett in the middle, the others as two persons and two faces. Our seventh vector has "
        "no name for either",
    ),
    _Printed(
        "figure 5.4",
        "President Barack Obama and first lady Michelle Obama wave from the steps of Air Force One as they arrive in Prague, Czech "
        "Republic.",
        Vocabulary(["Barack Obama", "Michelle Obama"]),
        ("name",),
        _people(2, False),
        [[[1], [2]], [[1], [0]], [[0], [2]], [[2], [1]], [[0], [1]], [[2], [0]]],
        "the set as printed in figure 5.4",
    ),
)


def _sketch(ax, printed, x, y, width, height):
    """Boxes without pictures, numbered."""
    x1 = max(region.box[2] for region in printed.regions) + min(region.box[0] for region in printed.regions)
    y1 = max(region.box[3] for region in printed.regions) + 8.0
    scale = min(width / 128.0, height / y1)
    ax.add_patch(
        Rectangle(
            (x, y), scale * x1, scale * y1, facecolor="#D4D4D4", edgecolor=DARK, linewidth=0.5, zorder=2
        )
    )
    number = 0
    for region in sorted(printed.regions, key=lambda region: region.kind):  # bodies below faces
        left, top, right, bottom = (scale * v for v in region.box)
        face = region.kind == "face"
        style = {"facecolor": "white", "edgecolor": BLACK, "zorder": 2.3} if face else _BODY
        ax.add_patch(Rectangle((x + left, y + top), right - left, bottom - top, linewidth=0.9, **style))
        if face:
            number += 1
            _say(
                ax,
                x + (left + right) / 2,
                y + (top + bottom) / 2 + 2.6,
                str(number),
                7.0,
                "bold",
                ha="center",
                zorder=3,
            )
    return y + scale * y1


def thesis_captions():
    """The thesis's captions of figures 5.1, 5.2, 5.4 and 5.5 with their candidate labeling sets.

    The photographs are not shown: boxes are a sketch with as many faces and bodies as the figures have, from left to right.

    Returns
    -------
    Figure
    """
    sheet = _Sheet()
    y, text, boxes = PAD, 180.0, 76.0
    for k, printed in enumerate(THESIS):
        item = candidates_from_caption(
            printed.caption, printed.regions, printed.vocabulary, attributes=printed.attributes
        )
        names = [printed.vocabulary.names, printed.vocabulary.verbs][: len(printed.attributes)]
        symbols = _Symbols(item.words, names, printed.attributes)
        places = {item.words[w][0]: place for w, place in item.positions.items()}
        matrix = _Matrix(
            np.array(printed.candidates),
            names,
            words=item.words,
            attributes=printed.attributes,
            places=places,
            key_width=WIDTH - 2 * PAD - text - boxes - 26.0,
        )
        if k:
            sheet.ax.plot([PAD, WIDTH - PAD], [y, y], color=PALE, linewidth=0.6)
            y += 5.0
        _say(sheet.ax, PAD, y + 9.0, f"({_letter(k)}) thesis, {printed.title}", weight="bold")
        top = y + 15.0
        ends = [_sketch(sheet.ax, printed, PAD, top, boxes, 90.0)]
        x = PAD + boxes + 12.0
        end = _write(
            sheet.ax,
            _pieces(printed.caption, mentions(printed.caption, printed.vocabulary), symbols),
            x,
            top - 3.0,
            text,
        )
        ends.append(
            _write(
                sheet.ax,
                _plain(printed.note[0].upper() + printed.note[1:] + ".", DARK, style="italic"),
                x,
                end,
                text,
                7.0,
            )
        )
        ends.append(matrix.draw(sheet.ax, x + text + 14.0, y + 2.0))
        y = max(ends) + 5.0
    sheet.ax.plot([PAD, WIDTH - PAD], [y, y], color=PALE, linewidth=0.6)
    note = (
        "Boxes are sketched: the photographs are not shown. Solid: a face; dashed: an upper body; numbers from left to right. Bold: "
        "known names; bold italic: known verbs, in the colour of who does it."
    )
    y = _write(sheet.ax, _plain(note, DARK), PAD, y + 1.0, WIDTH - 2 * PAD, 7.0)
    return sheet.finish(y + PAD)


# ---------------------------------------------------------------------------------------------------------------- choosing items


def pick(data, *, n_faces=None, n_names=None, n_pairs=None, indicators=None, vocabulary=None, count=None):
    """Good examples among the items, the same ones every time.

    Of the items that meet the conditions, those come first whose faces are all of people whom the caption names, then those without
    strangers, then those with short captions. An item whose true vector is no candidate is not picked.

    Parameters
    ----------
    data : CaptionedData
    n_faces : int, optional
        Faces in the picture.
    n_names : int, optional
        Different known names in the caption.
    n_pairs : int, optional
        Different known names in the caption with a known verb; of two or more, the verbs are not all the same. Only for data with poses.
    indicators : bool, optional
        Whether spatial indicators must rule out candidates (True), or there must be none (False). Items of which more than one
        candidate is left come before the others.
    vocabulary : Vocabulary, optional
        Those of the data by default.
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
    vocabulary = data.vocabulary if vocabulary is None else vocabulary
    chosen = np.ones(len(data.captions), dtype=bool)
    if n_faces is not None:
        chosen &= data.bag_sizes == n_faces
    if indicators is not None:
        chosen &= data.has_position == bool(indicators)
    unnamed = np.bincount(data.bag_of[~data.mentioned], minlength=chosen.size)
    strange = np.bincount(data.bag_of[data.kinds != "identity"], minlength=chosen.size)
    order = sorted(
        np.flatnonzero(chosen).tolist(), key=lambda i: (unnamed[i], strange[i], len(data.captions[i]), i)
    )
    found, decided = [], []  # decided: by indicators, down to one candidate
    for i in order:
        if len(found) == wanted:
            break
        read = _read(data, i, vocabulary)
        words = read.item.words
        verbs = [word[1] for word in words if len(word) == 2 and word[0] and word[1]]
        if n_names is not None and len({word[0] for word in words}) != n_names:
            continue
        if n_pairs is not None and (len(verbs) != n_pairs or (n_pairs > 1 and len(set(verbs)) == 1)):
            continue
        candidates = read.item.candidates
        if isinstance(candidates, Matching) or not (candidates == read.true).all(axis=(1, 2)).any():
            continue
        if indicators:
            free = candidates_from_caption(
                data.captions[i], data.regions[i], vocabulary, constraints="ABC"
            ).candidates
            if read.item.note or isinstance(free, Matching) or len(free) == len(candidates):
                continue
            if len(candidates) == 1:
                decided.append(i)
                continue
        found.append(i)
    found += decided[: wanted - len(found)]
    if len(found) < wanted:
        if indicators is not None:
            asked["indicators"] = bool(indicators)
        said = ", ".join(f"{what}={value}" for what, value in asked.items()) or "the vocabulary"
        raise ValueError(
            f"{said} must be met by {_counted(wanted, 'item')} of the data, got {len(found)} of {chosen.size}"
        )
    return found[0] if count is None else found
