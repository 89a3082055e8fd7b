"""Drawings of the MMS chapter: captioned items with their candidate labeling sets (thesis figures 5.1, 5.2,
5.4 and 5.5), and the numbers of its experiments.
"""

import json
from itertools import cycle, islice
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle

from companion import pictures
from companion.plots.common import (
    along,
    curve,
    curves,
    distinct,
    facets,
    forest,
    intervals,
    legend,
    matrix,
    mosaic,
    name_ends,
    panels,
    where,
)
from companion.run.figures import BLUE, GREEN, GREY, PURPLE, RED, band, enumerated, method_style, name_of
from companion.study import interval
from cuelearn.mms import CandidateSet, Region, Vocabulary, candidates_from_caption

#: Of the words a, b, c, d of a caption; of those that indicators exclude.
COLORS = ("#B2D4E7", "#F3CEB3", "#DDE9A5", "#EBCADC")
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


def is_animal(things):
    emoji = pictures.emoji()
    return np.isin(things, emoji.names[np.char.startswith(emoji.subgroup, "animal")])


def examples(data, n_faces, n_names):
    """Numbers and `Item`s of so many faces and known names, the plainest first, and of these the ones of
    animals; the truth is a candidate."""
    n_items = len(data.captions)
    unnamed = np.bincount(data.bag_of[~data.mentioned], minlength=n_items)
    strange = np.bincount(data.bag_of[data.kinds != "identity"], minlength=n_items)
    things = np.bincount(data.bag_of[~is_animal(data.things)], minlength=n_items)
    order = np.lexsort(([len(caption) for caption in data.captions], things, strange, unnamed))
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


def draw_animals(ax, below, pictured, caption, names, width, most=12):
    """Faces of animals in one picture, its caption, and below the candidates by the names of the caption."""
    vocabulary = Vocabulary(names)
    boxes = [(10 + 90 * m, 10, 74 + 90 * m, 74) for m in range(len(pictured))]
    regions = [Region("face", box) for box in boxes]
    true = np.array([[vocabulary.name_label.get(name, 0)] for name in pictured])
    item = read_caption(caption, regions, vocabulary, ("name",), true)
    emoji = pictures.emoji()
    for m, (name, box) in enumerate(zip(pictured, boxes, strict=True), start=1):
        drawing = np.flatnonzero(emoji.names[emoji.thing] == f"{name} face")[0]
        draw_box(ax, box, emoji.pictures[drawing], f"face {m}")
    frame_boxes(ax, boxes)
    write_below(ax, caption, width)
    draw_candidates(below, item, width, most=most)


def captioned(pictured, caption, names):
    """Two animals in one picture, its caption, and the names that each may have."""
    fig, ((ax,), (below,)) = panels(1, 2, size=(WIDTH, 4.3))
    draw_animals(ax, below, pictured, caption, names, 62)
    return fig


def draw_faces(ax, data, faces, columns):
    """Faces of a corpus by person, whose name and thing are at the left: name -> rows of the corpus."""
    n_columns = len(columns)
    cells = np.full((len(faces) * n_columns, 64, 64, 3), 255, dtype=np.uint8)
    labels = []
    for place, (name, rows) in enumerate(faces.items()):
        for column, look in enumerate(data.looks(rows)):
            cells[place * n_columns + column] = look
        thing = data.things[rows[0]] if len(rows) else "in no other picture"
        labels.append(f"{name}\n({thing})")
    ax.imshow(mosaic(cells, n_columns, margin=4))
    ax.xaxis.tick_top()
    ax.set_xticks(36 + 72 * np.arange(n_columns), columns)
    ax.set_yticks(36 + 72 * np.arange(len(labels)), labels)
    ax.tick_params(length=0, labelsize=8)
    ax.tick_params("x", labelsize=7)
    ax.spines[:].set_visible(False)
    ax.grid(visible=False)


def items(data, *numbers):
    """Captioned items; below, other drawings of the people named by the captions, and the candidate labeling
    set of the last item."""
    last = read_item(data, numbers[-1])
    faces = {}
    for number in numbers:
        for mention in data.caption_mentions(number):
            rows = np.flatnonzero((data.names == mention.name) & (data.bag_of != number))
            _, first = np.unique(data.samples[rows, 0, 0], return_index=True)
            faces[mention.name] = rows[first[:4]]
    layout = [[[[*range(len(numbers))]]], ["people"], ["candidates"]]
    heights = (2.5, 0.55 * len(faces), 0.6 + 0.19 * len(shown_candidates(last, 12)))
    options = {"figsize": (WIDTH, 0.9 + sum(heights)), "height_ratios": heights, "layout": "constrained"}
    fig, axes = plt.subplot_mosaic(layout, **options)
    for k, number in enumerate(numbers):
        draw_picture(axes[k], data, number, 62 // len(numbers))
        axes[k].set_title(f"composed item {number}", loc="left", fontsize=8)
    draw_faces(axes["people"], data, faces, [""] * 4)
    axes["people"].set_title("who is who: the same people in other items", fontsize=8)
    draw_candidates(axes["candidates"], last, 62, f"Item {numbers[-1]}.")
    return fig


def people(data, n=6):
    """Faces of the people most often pictured, animals before others; last, for each cue, that of another
    person most like the first."""
    known = data.kinds == "identity"
    in_test = data.is_test[data.bag_of]
    table = pd.DataFrame({"name": data.names, "animal": is_animal(data.things)})[known]
    counts = table.groupby("name")["animal"].agg(["max", "size"])
    faces = {}
    for name in counts.nlargest(n, ["max", "size"]).index:
        own = known & (data.names == name)
        of_training = np.flatnonzero(own & ~in_test)
        others = np.flatnonzero(known & ~own)
        faces[name] = np.resize(of_training, 4).tolist()  # some again, of few
        for cue in data.face_cues.values():
            likeness = data.faces[others, cue] @ data.faces[of_training[0], cue]
            faces[name].append(others[likeness.argmax()])
    columns = ["training"] * 4 + [f"like by\n{cue}" for cue in data.face_cues]
    fig, ((ax,),) = panels(1, size=(WIDTH, 0.55 * n + 0.4))
    draw_faces(ax, data, faces, columns)
    return fig


def thesis_captions(shown):
    """The thesis's captions of figures 5.1, 5.2, 5.4 and 5.5 with their candidate labeling sets."""
    heights = [2 + len(shown_candidates(item, 12)) for item in shown]
    fig, axes = panels(1, len(THESIS), size=(WIDTH, 0.19 * sum(heights) + 5.6), height_ratios=heights)
    for ax, kept, item in zip(axes[:, 0], THESIS, shown, strict=True):
        draw_candidates(ax, item, 68, f"{kept['caption']} ({kept['note']})")
        ax.set_title(f"thesis, {kept['title']}", loc="left", fontsize=8)
    return fig


# --- experiments --------------------------------------------------------------------------------------------

NAMES = ("MNIST", "letter", "Pendigits", "satimage", "usps", "covtype")
TITLES = {name.lower(): f"{name}\n(made ambiguous)" for name in NAMES}
#: Losses that have a place on a logarithmic axis.
LEAST = 1e-3
#: Solver -> how it is drawn.
SOLVERS = {
    "frank-wolfe": {"label": "dual steps (pairwise Frank-Wolfe)", "color": BLUE, "marker": "o"},
    "pegasos": {"label": "Pegasos (Algorithm 9)", "color": RED, "marker": "s", "linestyle": "--"},
}
#: How data sets are drawn, in their order.
LOOKS = [
    {"color": color, "marker": marker, "linestyle": style}
    for color, marker, style in ((BLUE, "o", "-"), (RED, "s", "--"), (GREEN, "^", "-."), (PURPLE, "D", ":"))
]
#: What figure 5.6 measures.
SHARES = {
    "assignment": "right within the caption,\ntraining items (%)",
    "recognition": "right, test items (%)",
    "with_caption": "right within the caption,\ntest items (%)",
}


def idea():
    """A bag of two faces, its labelings, those that the caption allows, and what a classifier loses."""
    names = ("Ann", "Bob", "Cy", "none")
    candidates = [(0, 1), (1, 0), (0, 3), (1, 3), (3, 0), (3, 1)]
    score = pd.Series(np.add.outer([1.6, 1.1, 1.9, 0.2], [1.0, 1.5, 0.2, 0.4]).ravel())
    labelings = list(np.ndindex(4, 4))
    loss = pd.Series([min(np.not_equal(z, c).sum() for c in candidates) for z in labelings])
    fig, ((bag, grid, bars),) = panels(3, size=(8.0, 2.9), width_ratios=(0.8, 1.2, 1.5))
    bag.text(0.5, 0.3, "?        ?\n\nface 1    face 2\n\n\u201cAnn waves to Bob.\u201d", ha="center")
    bag.set_title("a bag: who is who?", fontsize=9)
    bag.set_axis_off()
    grid.imshow(loss.to_numpy().reshape(4, 4).T, cmap="Blues_r", vmax=3)
    for z, errors in zip(labelings, loss, strict=True):
        mark = "\N{BLACK STAR}" if z == (0, 1) else errors
        grid.text(*z, mark, color="black" if errors else "white", ha="center", va="center")
    grid.set_xticks(range(4), names)
    grid.set_yticks(range(4), names)
    grid.set(xlabel="name of face 1", ylabel="name of face 2")
    grid.grid(visible=False)
    grid.set_title("labels in error (0: a candidate,\n\N{BLACK STAR}: the one meant)", fontsize=9)
    best = score[loss == 0].idxmax()
    rivals = (score + loss)[loss > 0].nlargest(4).index
    shown = [best, *rivals]
    bars.barh(range(5), score[shown], color=[BLUE] + 4 * [GREY])
    bars.barh(range(5), loss[shown], left=score[shown], color="none", edgecolor=GREY, hatch="////")
    bars.axvline(score[best], color=BLUE, linestyle=":")
    worst = (score + loss)[rivals[0]]
    bars.annotate("", (score[best], 0.5), (worst, 0.5), arrowprops={"arrowstyle": "<->", "color": RED})
    bars.text(worst, 0.1, r"loss $\ell_A$", color=RED, ha="center")
    bars.set_yticks(range(5), [" + ".join(names[k] for k in labelings[z]) for z in shown])
    bars.invert_yaxis()
    bars.set_xlabel("score (hatched: + labels in error)")
    bars.set_title("the best candidate should beat\nall that cannot be, by their errors", fontsize=9)
    return fig


def accuracy_curves(table):
    """Figure 5.3: accuracy over wrong labelings, a panel per data set, from left to right the difficulties.

    The curves begin anew at each difficulty. MMS is drawn last, in front of those that it meets.
    """
    sizes = sorted(distinct(table["n_candidates"]))
    hardness = distinct(zip(table["p_correlated"], table["p_ambiguous"], strict=True))
    starts = {hard: k * (len(sizes) + 1) for k, hard in enumerate(hardness)}
    fig, parts = facets(table, "name", size=(4.6, 1.8), columns=1, margin=(0, 0.9), sharex=True)
    for ax, name, rows in parts:
        _accuracies(ax, rows, sizes, starts)
        ax.set_title(TITLES[name].replace("\n", " "), fontsize=9)
        ax.set_ylabel("test accuracy (%)")
    last = parts[-1][0]
    last.set_xticks([start + i for start in starts.values() for i in range(len(sizes))], sizes * len(starts))
    last.set_xlabel("wrong labelings L", labelpad=28)
    below = {"xycoords": last.get_xaxis_transform(), "ha": "center", "va": "top", "fontsize": 8}
    for (correlated, ambiguous), start in starts.items():
        chances = f"partners {correlated:.0%}\nlook-alikes {ambiguous:.0%}"
        last.annotate(chances, (start + (len(sizes) - 1) / 2, -0.15), **below)
    return fig


def _accuracies(ax, table, sizes, starts):
    """Curves of all methods on one data set, a piece for each difficulty, from its place in `starts` on."""
    last = max(starts.values())
    for method in sorted(distinct(table["method"]), key="MMS".__eq__):
        style = method_style(method, linewidth=1.2)
        if method == "MMS":
            style.update(linewidth=2.4, zorder=5)
        for (correlated, ambiguous), start in starts.items():
            rows = where(table, method=method, p_correlated=correlated, p_ambiguous=ambiguous)
            rows = rows.assign(place=start + rows["n_candidates"].map(sizes.index))
            name = {} if start == last else {"label": "_"}  # one for all pieces
            curve(ax, rows, "place", "accuracy", factor=100.0, **style | name)
    name_ends(ax, 0.12)


def rounds(table):
    """Objective over the first round's, and accuracy, after every round: two panels for each solver.

    A run that ended earlier keeps its last values.
    """
    solvers = distinct(table["solver"])
    last = range(1, table["round"].max() + 1)
    looks = dict(zip(distinct(table["name"]), cycle(LOOKS)))
    fig, axes = panels(1, 2 * len(solvers), size=(4.6, 4.0 * len(solvers)), sharex=True)
    for (upper, lower), solver in zip(axes.reshape(-1, 2), solvers, strict=True):
        rows = where(table, solver=solver)
        for ax, column in ((upper, "objective"), (lower, "accuracy")):
            _after_rounds(ax, rows, column, last, looks)
        upper.set_title(f"{SOLVERS[solver]['label']}, {rows['seed'].nunique()} draws", fontsize=9)
        upper.set_ylabel("objective (5.3)\nover round 1's")
        lower.set_ylabel("test accuracy (%)")
    axes[-1, 0].set_xlabel("round")
    return fig


def _after_rounds(ax, table, column, last, looks):
    """Means of a column after every round up to `last`, a curve for each data set, named at its end."""
    for name, rows in table.groupby("name", sort=False):
        grid = rows.pivot(index="seed", columns="round", values=column).reindex(columns=last).ffill(axis=1)
        grid = 100.0 * grid if column == "accuracy" else grid.div(grid[1], axis=0)
        band(ax, last, grid, label=TITLES[name].split("\n")[0], **looks[name])
    ax.axvspan(3, 5, color="0.9", zorder=0)
    ax.cuelearn_band = "bands: 95% intervals of the mean, grey: the thesis's 3 to 5 rounds"
    name_ends(ax, 0.11)


def bound(table):
    """Proposition 5.2: true loss of classifiers on fresh bags against the bound by their ambiguous loss."""
    most = table["bound"].replace(np.inf, np.nan).max()  # what is infinite stands at the upper end
    look = {"size": (2.3, 2.2), "margin": (0.4, 1.0), "sharex": True, "sharey": True}
    fig, parts = facets(table, "task", columns=2, **look)
    for ax, task, of_task in parts:
        for classifier, rows in of_task.groupby("classifier", sort=False):
            bounds = rows["bound"].clip(LEAST, most)
            style = method_style(classifier, linestyle="", zorder=3 if classifier == "MMS" else 2)
            ax.plot(rows["true"].clip(lower=LEAST), bounds, **style)
        ax.axline((1, 1), (10, 10), color="black", linewidth=1.0, label="true loss = bound")
        ax.set(xscale="log", yscale="log")
        ax.set_title(TITLES[task], fontsize=9)
    fig.supxlabel("true loss per bag, fresh bags", fontsize=9)
    fig.supylabel("ambiguous loss per bag / (1 − ambiguity degree)", fontsize=9)
    legend(fig, parts[0][0], 2, fontsize=8)
    return fig


def joint_models(table):
    """Figure 5.6: shares of right names (left) and verbs: mean over corpora and its interval."""
    models = distinct(zip(table["method"], table["modelled"] == "both", strict=True))
    models.sort(key=lambda model: model[1])
    names = [f"{name_of(method)}, {'joint' if joint else 'single'}" for method, joint in models]
    rows = len(SHARES)
    fig, axes = panels(2, rows, size=(5.2, 2.2 * rows), sharex=True, sharey=True)
    for column, attribute in zip(axes.T, ("name", "verb"), strict=True):
        own = where(table, attribute=attribute)
        for ax, (share, label) in zip(column, SHARES.items(), strict=True):
            for place, (method, joint) in enumerate(models):
                rows = own[(own["method"] == method) & ((own["modelled"] == "both") == joint)]
                values = 100.0 * rows[share].dropna()
                if len(values) > 1:
                    mean, low, high = interval(values)
                    color = method_style(method)["color"]
                    look = {"color": color, "markerfacecolor": color if joint else "white"}
                    ax.errorbar([mean], [place], xerr=[[mean - low], [high - mean]], fmt="o", **look)
            ax.set_xlabel(f"{attribute}s {label}", fontsize=8)
            ax.cuelearn_band = "lines: 95% intervals of the mean over corpora"
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].invert_yaxis()
    return fig


def searches(groups):
    """Bags missed by each search, and objective, accuracy and CPU seconds with it, less those with Algorithm
    10; `groups`: label -> a row per draw, columns (measure, search)."""
    fig, axes = panels(2, 2, size=(7.6, 4.6))
    labels = {"algorithm-10": "Algorithm 10", "lp": "relaxation", "exact": "exact"}
    missed = {}
    changes = {"objective": {}, "accuracy": {}, "seconds": {}}
    for group, draws in groups.items():
        for search, label in labels.items():
            row = f"{group}{' (simulated)' * ('captioned' in group)}: {label}"
            if search != "exact":
                missed[row] = 100 * draws["missed", search]
            if search == "algorithm-10":
                continue
            for measure, rows in changes.items():
                pair = draws[measure, search], draws[measure, "algorithm-10"]
                rows[row] = 100 * (pair[0] - pair[1]) if measure == "accuracy" else np.log(pair[0] / pair[1])
    forest(axes[0, 0], intervals(missed), "bags whose exact value is missed [%]")
    forest(axes[1, 0], intervals(changes["accuracy"]), "test accuracy, change [points]")
    for ax, measure in ((axes[0, 1], "objective"), (axes[1, 1], "seconds")):
        percent = 100 * np.expm1(intervals(changes[measure]))
        name = "CPU seconds" if measure == "seconds" else measure
        forest(ax, percent, f"{name}, change [%]")
    for ax in axes[:, 1]:
        ax.set_yticklabels([label.split(": ")[1] for label in changes["objective"]])
    return fig


def place(axes, tables, L):
    """Accuracies of methods at every L, and which labels come together with which at this one.

    `tables` has for each L a row of accuracies for each draw, and the shares of labels that come together.
    """
    left, right = axes
    shares, together = tables[L]
    for method in shares:
        means = [100.0 * draws[method].mean() for draws, _ in tables.values()]
        style = method_style(method)
        along(left, [*tables], means, L, **style)
        left.plot([L] * len(shares), 100.0 * shares[method], "_", color=style["color"], markersize=9)
    left.set(xscale="log", ylim=(0, 100), xlabel="L", ylabel="test accuracy (%); strokes: draws")
    left.set_xticks([*tables], [*tables])
    left.minorticks_off()
    left.legend(loc="lower left", fontsize=7)
    matrix(right, together, vmin=0, vmax=1, cmap="Blues")
    most = together.to_numpy()[~np.eye(len(together), dtype=bool)].max()
    right.set(xlabel="label that some candidate gives", ylabel="true label")
    right.set_title(f"largest off the diagonal: {most:.2f}", fontsize=8)  # short: the slider's value is near


def objectives(axes, tables, C):
    """Objective after every round at this C, test accuracy after the last at every C; `tables` maps each C to
    `by_round` of each solver."""
    for solver, table in tables[C].items():
        ends = [100.0 * by_solver[solver]["accuracy"].iloc[-1] for by_solver in tables.values()]
        axes[0].plot(table["round"], table["objective"], **SOLVERS[solver])
        along(axes[1], [*tables], ends, C, **SOLVERS[solver])
    axes[0].set(xlim=(0.5, 10.5), yscale="log", ylim=(0.2, 300), xlabel="round", ylabel="objective (5.3)")
    axes[1].set(xscale="log", ylim=(0, 100), xlabel="$C$", ylabel="test accuracy after the last round (%)")
    axes[0].legend(loc="upper right", fontsize=7)


#: What animals do in the captions of the tour.
DO = {"dog": "barks", "cat": "jumps onto the sofa", "pig": "eats", "rabbit": "runs"}


def animals(axes, faces, names):
    """For a slider: a picture of so many animals, so many names in its caption, and the candidates."""
    for ax in axes:
        ax.clear()  # pictures and tables have no ghost
        ax.set_axis_off()
    known = list(DO)[:names]
    caption = f"{enumerated([f'a {name} {DO[name]}' for name in known])}.".capitalize()
    draw_animals(*axes, list(DO)[:faces][::-1], caption, known, 60, most=8)


def errors_by(table, x, xlabel):
    """Mean test error of all methods by a column, a panel per data set."""
    fig, parts = facets(table, "name", size=(5.0, 2.6), columns=1, sharex=True)
    for ax, name, rows in parts:
        curves(ax, rows, x, "error", factor=100.0, draw=_mean)
        ax.set_xticks(sorted(distinct(table[x])))
        ax.autoscale_view()  # labels are placed within the limits
        name_ends(ax, 0.1)
        ax.set_ylabel("test error (%)")
        ax.set_title(f"{name}, votes simulated", fontsize=9)
    parts[-1][0].set_xlabel(xlabel)
    return fig


def _mean(ax, x, samples, method):
    ax.plot(x, samples.mean(axis=0), **method_style(method))
    ax.cuelearn_band = f"means of {len(samples)} draws"


def differences(table):
    """Paired differences of test errors with their intervals, a row each, `table` as of `intervals`."""
    fig, axes = panels(1, 1, size=(5.0, 0.26 * len(table) + 0.9))
    forest(axes[0, 0], table, "difference of test errors (points)")
    return fig
