"""Drawings of the MKTL chapter, from the numbers of its experiments."""

import textwrap
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import TwoSlopeNorm, to_rgba
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from matplotlib.ticker import FixedLocator, MaxNLocator

from cuelearn.book.figures import BLACK, BLUE, GREY, RED, band, method_style, stamp
from cuelearn.core.intervals import CONFIDENCE, interval
from cuelearn.plots.common import curve, curves, distinct, mosaic, paired, panels, where

TITLES = {"animals": "emoji, animals", "objects": "emoji, objects", "awa": "Animals with Attributes"}
#: The order that methods are drawn in, the chapter's own on top; others come first.
ORDER = (
    *("NoTransfer", "NoTransfer weighted", "PriorFeatures", "PriorFeatures weighted", "AverageTL"),
    *("AverageTL weighted", "MultiKT", "MKTL weighted", "MKTL auto", "MKTL"),
)
#: Baselines with class weights, which the thesis leaves unweighted.
REWEIGHTED = ("NoTransfer weighted", "PriorFeatures weighted", "AverageTL weighted")
#: Methods of the panels of single classes in figure 6.2.
BY_CLASS = ("NoTransfer", "PriorFeatures", "MultiKT", "MKTL weighted")
#: Which numbers of samples keep their label where there is no room for all.
_PREFERRED = (1, 10, 100, 3, 30, 5, 50, 20, 2, 15)
_DARK, _TINY, _MIDDLE = "#555555", 1e-300, {"ha": "center", "va": "center"}
#: Of the drawing of weights: width of a cell in inches, and of the gap between models in cells.
_CELL, _GAP = 0.36, 0.35


# --- in common ----------------------------------------------------------------------------------------------


def _methods(table):
    """Methods of a table in the order in which they are drawn."""
    found = distinct(table["method"])
    return [m for m in found if m not in ORDER] + [m for m in ORDER if m in found]


def _counts(ax, values, inches, room=0.21):
    """Logarithmic axis of numbers of samples: a tick at each, labels where there is `room`, in inches."""
    values = sorted({int(v) for v in values})
    least = room * np.log(values[-1] / values[0]) / inches
    kept = []
    for value in sorted(values, key=lambda v: (v not in _PREFERRED, [*_PREFERRED, v].index(v), v)):
        if all(abs(np.log(value / other)) >= least for other in kept):
            kept.append(value)
    ax.set_xscale("log")
    ax.set_xticks(sorted(kept), [str(v) for v in sorted(kept)])
    others = [v for v in values if v not in kept]
    ax.set_xticks(others, [""] * len(others), minor=True)


def _limits(axes, top=None, room=0.4):
    """One range of y for all panels: bands are cut at `room` times the means' span beyond the means."""
    means = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for ax in axes for line in ax.lines])
    shades = [path.vertices[:, 1] for ax in axes for shade in ax.collections for path in shade.get_paths()]
    reach = np.concatenate([means, *shades])
    room = room * np.ptp(means) + 1.0
    low, high = max(reach.min(), means.min() - room), min(reach.max(), means.max() + room)
    pad = 0.04 * (high - low)
    for ax in axes:
        ax.set_ylim(low - pad, high + pad if top is None else min(top, high + pad))


def _legend(fig, axes):
    """One legend above all panels, each label once, the chapter's own first, as wide as the figure."""
    handles = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    inches = sum(0.6 + 0.062 * len(label) for label in handles)
    columns = -(-len(handles) // -int(-inches // fig.get_figwidth()))
    labels, shown = [*handles][::-1], [*handles.values()][::-1]
    fig.legend(shown, labels, loc="outside upper center", ncols=columns)


def _digits(values):
    """Decimals that show the largest of some values with two or more figures."""
    largest = max(np.abs(values).max(initial=0.0), _TINY)
    return 2 if largest >= 0.1 or largest < 1e-6 else 1 - int(np.floor(np.log10(largest)))


def _signed(value, digits):
    """A number with its sign; without one where it rounds to 0."""
    text = f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return text if text.strip("+\N{MINUS SIGN}0.") else text[1:]


# --- the things ---------------------------------------------------------------------------------------------


def things(shown, table, faces):
    """What is known, what is new, and which new things are taken for which.

    `shown` has by title an array of pictures, (rows, columns, height, width, 4); `table` the columns method,
    true, said, share of `experiments.mktl.compare.confusion`, a panel for each method; `faces` a picture of
    each new thing, in the panels' order.
    """
    methods, names = _methods(table), list(faces)
    fig = plt.figure(figsize=(3.1 * len(methods) + 0.6, 6.2), layout="constrained")
    upper, lower = fig.subfigures(2, height_ratios=(2.6, 3.6))
    widths = [grid.shape[1] / grid.shape[0] for grid in shown.values()]
    for ax, (title, grid) in zip(
        upper.subplots(1, len(shown), width_ratios=widths, squeeze=False)[0], shown.items(), strict=True
    ):
        ax.imshow(mosaic(grid.reshape(-1, *grid.shape[2:]), grid.shape[1]))
        ax.set_axis_off()
        ax.set_title(title, fontsize=9)
    row = np.stack([faces[name] for name in names])
    axes = lower.subplots(1, len(methods), squeeze=False)[0]
    for ax, method in zip(axes, methods, strict=True):
        grid = where(table, method=method).pivot(index="true", columns="said", values="share")
        grid = 100.0 * grid.reindex(index=names, columns=names).fillna(0.0).to_numpy()
        ax.imshow(grid, cmap="Blues", vmin=0.0, vmax=100.0)
        for (i, j), value in np.ndenumerate(grid):
            if value >= 5.0:
                color = "white" if value > 55.0 else BLACK
                ax.text(j, i, f"{value:.0f}", color=color, fontsize=6.5, **_MIDDLE)
        beside = ax.inset_axes([-0.105, 0.0, 0.1, 1.0]), ax.inset_axes([0.0, -0.105, 1.0, 0.1])
        for side, columns in zip(beside, (1, len(row)), strict=True):
            side.imshow(mosaic(row, columns), aspect="auto")
        for side in (ax, *beside):
            side.set(xticks=(), yticks=())
            side.grid(False)
            side.spines[:].set_visible(False)
        ax.set_title(f"{method_style(method)['label']}: {np.diag(grid).mean():.0f}% right", fontsize=9)
    axes[0].set_ylabel("is", labelpad=24)
    lower.supxlabel("is taken for (per cent of the test pictures; below 5 empty)", fontsize=8)
    return fig


# --- figure 6.1 ---------------------------------------------------------------------------------------------


def schematic(new_class, prior_names, scores, weights, kernel_part, *, groups=None, sample_class=None):
    """Figure 6.1: how outputs of prior models become features when a new class is scored.

    From left to right: the sample, the prior models, what they say of the sample, the weights that the new
    class gives to it, and the score, equation (6.1); beside it the parts of the sum. Of more than 18 priors,
    only the 12 that add or take away the most are drawn; the others become one row.

    Parameters
    ----------
    new_class : str
        The class that is scored.
    prior_names : sequence of K str
    scores, weights : array-like, shape (K,)
        One sample's scores divided by ``score_scale_``, and the new class's row of ``transfer_weights_``.
    kernel_part : float
        What the sample's own features add: its decision value less ``scores @ weights``.
    groups : sequence of (str, sequence of str), optional
        Prior models: name, and its classes among `prior_names`. By default all are one model's.
    sample_class : str, optional
        The sample's true class, for the title.
    """
    names = np.array([str(name) for name in prior_names])
    scores, weights = np.asarray(scores, dtype=float), np.asarray(weights, dtype=float)
    parts = scores * weights
    order = np.argsort(-np.abs(parts), kind="stable")
    kept = np.sort(order[:12] if len(names) > 18 else order)
    n_left = len(names) - len(kept)
    others = [parts.sum() - parts[kept].sum()] if n_left else []
    bars = [float(kernel_part), *parts[kept], *others, float(kernel_part + parts.sum())]
    labels = ["kernel", *names[kept], *([f"{n_left} others"] if n_left else []), "sum"]
    # a little air below the kernel's row and above the sum
    rows = np.r_[0.0, 1.4 + np.arange(len(bars) - 2), len(bars) + 0.0]

    fig, ((ax, side),) = panels(2, size=None, sharey=True)
    priors = list(zip(names[kept], scores[kept], weights[kept], strict=True))
    digits = _digits(scores), _digits(weights)
    largest = [max(np.abs(values).max(), _TINY) for values in (scores, weights)]
    groups = groups if groups is not None else [("prior models", names)]
    width = _diagram(ax, new_class, priors, digits, largest, n_left, bars, rows, groups)
    fig.set_size_inches(width + 2.7, 1.15 + 0.27 * rows[-1])
    ax.get_gridspec().set_width_ratios((width, 2.7))
    of_class = "" if sample_class is None else f" of class {sample_class}"
    ax.set_title(f"score of new class {new_class} for a test sample{of_class}", fontsize=9)

    colors = [_DARK, *(BLUE if part >= 0.0 else RED for part in bars[1:-1]), BLACK]
    side.barh(rows, bars, color=colors, height=0.62)
    for row, value in zip(rows, bars, strict=True):
        away, ha = (3, "left") if value >= 0 else (-3, "right")
        place = {"xytext": (away, 0), "textcoords": "offset points", "ha": ha, "va": "center"}
        side.annotate(_signed(value, _digits(bars)), (value, row), fontsize=7, **place)
    low, high = min(0.0, *bars), max(0.0, *bars)
    side.set_xlim(low - 0.27 * (high - low) * (low < 0.0), high + 0.27 * (high - low) * (high > 0.0))
    side.axvline(0.0, color=BLACK, linewidth=0.8)
    side.axhline((rows[-1] + rows[-2]) / 2, color=_DARK, linewidth=0.8)
    side.set_yticks(rows, labels, fontsize=7.5)
    side.tick_params(axis="y", length=0, labelleft=True)
    side.grid(False, axis="y")
    side.spines["left"].set_visible(False)
    side.xaxis.set_major_locator(MaxNLocator(5))
    side.set(ylim=(rows[-1] + 0.7, -0.8), xlabel="part of the score")
    side.set_title("what adds up to the score", fontsize=9)
    return fig


def _diagram(ax, new_class, priors, digits, largest, n_left, bars, rows, groups):
    """The left part of figure 6.1; x in inches, of which it returns how many it takes."""
    box = 0.62 + 0.062 * max(2, *(len(name) for name, *_ in priors))
    models, first = 0.95, 2.2
    last = first + box
    start = last + 0.56
    node = start + 1.25
    whom = textwrap.wrap(f"y = {new_class}", 14)
    end = node + max(1.0, 0.2 + 0.09 * max(map(len, whom)))
    middle = (rows[0] + rows[-2]) / 2
    ax.set_axis_off()
    ax.set_xlim(-0.05, end + 0.05)
    _box(ax, 0.0, middle, 0.42, 1.6, r"$\mathbf{x}$", fontsize=11)

    place = {name: row for (name, *_), row in zip(priors, rows[1:], strict=False)}
    for name, classes in groups:
        mine = [place[str(c)] for c in classes if str(c) in place]
        if not mine:
            continue
        center, high = (mine[0] + mine[-1]) / 2, mine[-1] - mine[0] + 0.78
        lines = textwrap.wrap(name, 15, max_lines=max(1, int(high / 0.45)), placeholder=" …")
        _box(ax, models, center, 1.0, high, "\n".join(lines), fontsize=7, face="#F1F1F1")
        _arrow(ax, (0.42, middle), (models, center), GREY, 0.9)
        line = {"color": GREY, "linewidth": 0.9, "solid_capstyle": "butt", "zorder": 1}
        for row in mine:
            ax.plot([models + 1.0, first], [row, row], **line)

    count = len(priors) + 1 + bool(n_left)
    spread = 0.5 if count > 6 else 0.7
    ends = middle + spread * (np.arange(count) - (count - 1) / 2)
    # the sample's own features
    text = r"kernel part  $\mathbf{w}^{(0)}\cdot\phi^{(0)}(\mathbf{x}, y)$"
    _box(ax, models, rows[0], last - models, 0.9, text, width=2.2)
    small = {"va": "center", "fontsize": 6.5}
    kernel = _signed(bars[0], _digits(np.array(bars[0])))
    ax.text(last + 0.07, rows[0], f"= {kernel}", color=_DARK, **small)
    _arrow(ax, (0.42, middle), (models, rows[0]), GREY, 0.9)
    _arrow(ax, (start, rows[0]), (node, ends[0]), _DARK, 4.5)

    for (name, score, weight), row, arrival in zip(priors, rows[1:], ends[1:], strict=False):
        tint = to_rgba(BLUE if score >= 0.0 else RED, 0.30 * min(1.0, abs(score) / largest[0]))
        _box(ax, first, row, box, 0.78, "", face=tint)
        ax.text(first + 0.07, row, name, va="center", fontsize=7.5)
        ax.text(last - 0.06, row, _signed(score, digits[0]), ha="right", va="center", fontsize=7)
        color = BLUE if weight >= 0.0 else RED
        ax.text(last + 0.05, row, f"× {_signed(weight, digits[1])}", color=color, **small)
        _arrow(ax, (start, row), (node, arrival), color, 0.35 + 4.15 * abs(weight) / largest[1])
    if n_left:
        look = {"fontsize": 7.5, "color": _DARK, "style": "italic", **_MIDDLE}
        ax.text((first + last) / 2, rows[-2], f"{n_left} others", **look)
        _arrow(ax, (start, rows[-2]), (node, ends[-1]), _DARK, 0.8, linestyle=(0, (3, 2)))
    total = f"= {_signed(bars[-1], _digits(np.array(bars[-1])))}"
    text = "\n".join([r"$s(\mathbf{x}, y)$", total, "", *whom]).replace("y = ", "$y$ = ")
    _box(ax, node, middle, end - node, spread * (count - 1) + 1.0, text, fontsize=8.5, width=1.6)
    heads = {models + 0.5: "prior models", (first + last) / 2: "scaled scores", last + 0.35: "weights"}
    for x, text in heads.items():
        ax.text(x, rows[-1] - 0.15, text, fontsize=7, color=_DARK, **_MIDDLE)
    signs = {"positive": BLUE, "negative": RED}
    handles = [plt.Line2D([], [], color=color, linewidth=3, label=sign) for sign, color in signs.items()]
    small = {"title_fontsize": 7, "fontsize": 7, "borderaxespad": 0.0}
    title = "colour: sign\nwidth of arrows: |weight|"
    ax.legend(handles=handles, title=title, loc="lower right", **small)
    return end + 0.1


def _box(ax, x, y, width_inches, height, text, fontsize=8, face="white", width=0.9):
    """A rounded box from x to x + width_inches, with its middle at y."""
    shape = {"boxstyle": "round,pad=0,rounding_size=0.06", "mutation_aspect": 4.0}
    look = {"facecolor": face, "edgecolor": _DARK, "linewidth": width, "zorder": 3}
    ax.add_patch(FancyBboxPatch((x, y - height / 2), width_inches, height, **shape, **look))
    ax.text(x + width_inches / 2, y, text, fontsize=fontsize, zorder=4, linespacing=1.15, **_MIDDLE)


def _arrow(ax, start, end, color, width, linestyle="-"):
    """A curve that leaves and arrives level."""
    bend = 0.5 * (end[0] - start[0])
    points = [start, (start[0] + bend, start[1]), (end[0] - bend, end[1]), end]
    path = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    tip = f"-|>,head_length={0.35 + 0.05 * width:g},head_width={0.14 + 0.05 * width:g}"
    look = {"color": color, "linewidth": width, "linestyle": linestyle, "joinstyle": "miter"}
    shape = {"arrowstyle": tip, "mutation_scale": 8, "capstyle": "butt"}
    ax.add_patch(FancyArrowPatch(path=path, zorder=2, **shape, **look))


# --- figure 6.2 ---------------------------------------------------------------------------------------------


def binary_mean(table):
    """Figure 6.2, left: accuracy over the number of positive samples, mean over targets.

    Beside it the methods that weigh both classes equally, if the table has more of them than the thesis;
    below paired differences, target by target: to Prior-Features alone and to weighted MKTL. Bands are
    intervals over targets, of the means over draws. `table` has the columns target, seed, n_positive, method,
    accuracy of `experiments.mktl.compare.binary`.
    """
    each = table.groupby(["target", "n_positive", "method"], as_index=False)["accuracy"].mean()
    found = _methods(each)
    drawn = [("as in the thesis", [m for m in found if m not in REWEIGHTED], "PriorFeatures")]
    if len(drawn[0][1]) < len(found):
        equal = [m for m in found if m in (*REWEIGHTED, "MultiKT", "MKTL weighted")]
        drawn.append(("both classes weigh the same", equal, "MKTL weighted"))
    fig, axes = panels(len(drawn), 2, size=(5.4 * len(drawn), 7.6), sharex=True, sharey="row")
    mean = f"means of {table['target'].nunique()} targets, {_draws(table)} of each"
    style = {"runs": "target", "factor": 100.0, "alpha": 0.10}
    for (upper, lower), (title, methods, base) in zip(axes.T, drawn, strict=True):
        curves(upper, each, "n_positive", "accuracy", methods, **style)
        paired(lower, each, "n_positive", "accuracy", base, methods, **style)
        against = method_style(base)["label"]
        for ax in (upper, lower):
            ax.cuelearn_band = f"{mean}; band: {CONFIDENCE:.0%} interval over targets"
        _counts(lower, table["n_positive"], 4.5)
        upper.set(title=title if len(drawn) > 1 else "")
        lower.set(xlabel="positive training samples", title=f"minus {against} (target by target)")
        upper.xaxis.set_tick_params(labelbottom=True)
    axes[0, 0].set_ylabel("test accuracy [%]")
    axes[1, 0].set_ylabel("difference in accuracy [points]")
    _limits(axes[0], top=101.0)
    _legend(fig, axes[0])
    return fig


def _draws(table):
    """How many draws a target has, in words."""
    n = int(table.groupby("target")["seed"].nunique().max())
    return f"{n} draw{'s' * (n > 1)}"


def binary_classes(table):
    """Figure 6.2, right: the same table, a panel for each target; means of its draws, without bands.

    In the corner what weighted MKTL is above Prior-Features, mean over numbers of samples, and its interval
    over draws.
    """
    targets = distinct(table["target"])
    columns = min(5, int(np.ceil(np.sqrt(len(targets)))))
    rows = -(-len(targets) // columns)
    size = (max(1.75 * columns + 0.5, 4.6), 1.5 * rows + 0.9)
    fig, axes = panels(columns, rows, size=size, sharex=True, sharey=True)
    used, unused = np.split(axes.ravel(), [len(targets)])
    style = {"factor": 100.0, "alpha": 0.0, "markersize": 3.2, "linewidth": 1.2}
    for ax, target in zip(used, targets, strict=True):
        mine = table[table["target"] == target]
        curves(ax, mine, "n_positive", "accuracy", [m for m in _methods(mine) if m in BY_CLASS], **style)
        ax.set_title(target, fontsize=7.5, pad=2)
        grid = 100.0 * mine.pivot(index=["seed", "n_positive"], columns="method", values="accuracy")
        above = (grid["MKTL weighted"] - grid["PriorFeatures"]).groupby("seed").mean()
        ends = [_signed(value, 0) for value in interval(above.to_numpy()) if np.isfinite(value)]
        said = f"{ends[0]} ({' to '.join(ends[1:])})" if len(ends) > 1 else ends[0]
        ax.text(0.98, 0.03, said, fontsize=6.5, ha="right", va="bottom", transform=ax.transAxes)
        ax.cuelearn_band = f"means of {_draws(mine)}; in the corner: weighted MKTL minus Prior-Features, "
        ax.cuelearn_band += f"points over all numbers of samples, and {CONFIDENCE:.0%} interval over draws"
    _counts(axes[0, 0], table["n_positive"], 1.4)
    _limits(used, top=101.0, room=0.05)
    for ax in unused:
        ax.set_visible(False)
    for ax in used[-columns:]:  # the last panel of each column carries the numbers
        ax.xaxis.set_tick_params(labelbottom=True)
    fig.supxlabel("positive training samples (panel: target)", fontsize=9)
    fig.supylabel("test accuracy [%]", fontsize=9)
    _legend(fig, used[:1])
    return fig


# --- figure 6.3 ---------------------------------------------------------------------------------------------


def multiclass(table):
    """Figure 6.3: accuracy over the samples per class; a panel per task and number of priors.

    Panels of one task have the same y limits; those with more priors repeat MKTL with the fewest as a thin
    line. `table` has the columns name, n_per_class, n_priors, seed, method, accuracy of
    `experiments.mktl.compare.multiclass`; methods that a task has for one number of priors alone
    (No-Transfer, which uses none) are drawn in all its panels.
    """
    table = table.astype({"n_priors": int})
    shown = [
        (name, n_priors)
        for name in distinct(table["name"])
        for n_priors in sorted(where(table, name=name)["n_priors"].unique())
    ]
    fig, axes = panels(len(shown), size=(3.1 * len(shown) + 0.4, 3.9))
    for ax, (name, n_priors) in zip(axes[0], shown, strict=True):
        task = table[table["name"] == name]
        fewest = task["n_priors"].min()
        for method in _methods(task):
            mine = task[task["method"] == method]
            there = n_priors if (mine["n_priors"] == n_priors).any() else mine["n_priors"].max()
            mine = mine[mine["n_priors"] == there]
            curve(ax, mine, "n_per_class", "accuracy", method, factor=100.0, alpha=0.12)
        if n_priors > fewest:
            less = where(task, method="MKTL", n_priors=fewest)
            mean = 100.0 * less.pivot(index="seed", columns="n_per_class", values="accuracy").mean()
            (line,) = ax.plot(mean.index, mean, color=method_style("MKTL")["color"], linewidth=0.9)
            ax.legend([line], [f"MKTL, {fewest} priors"], loc="lower right")
        _counts(ax, task["n_per_class"], 2.6)
        ax.set(xlabel="training samples per class", title=f"{TITLES.get(name, name)}: {n_priors} priors")
    for name in distinct(table["name"]):
        _limits([ax for ax, panel in zip(axes[0], shown, strict=True) if panel[0] == name], top=101.0)
    axes[0, 0].set_ylabel("test accuracy [%]")
    _legend(fig, axes[0])
    return fig


def along_priors(table):
    """Accuracy over the number of priors, of a table like figure 6.3's with one number of samples."""
    fig, ((ax,),) = panels(1, size=(5.0, 3.9))
    curves(ax, table, "n_priors", "accuracy", _methods(table), factor=100.0, alpha=0.12)
    _counts(ax, table["n_priors"], 4.2)
    ax.set(xlabel="priors", ylabel="test accuracy [%]")
    _limits([ax], top=101.0)
    _legend(fig, [ax])
    return fig


# --- transfer weights ---------------------------------------------------------------------------------------


def weights(table, groups=()):
    """From where to where MKTL transfers: weights of the priors' scores for every new class.

    A row per new class, a column per prior, at most 20 beside each other; at the right the sum of the
    absolute weights of the row.

    Parameters
    ----------
    table : DataFrame
        Columns new, prior, weight, of `experiments.mktl.compare.transfer_weights`.
    groups : sequence of (str, sequence of str), optional
        Prior models: name, and its classes, which are set apart by a gap and named above.
    """
    new, prior = distinct(table["new"]), distinct(table["prior"])
    grid = table.pivot(index="new", columns="prior", values="weight").loc[new, prior]
    largest = np.abs(grid.to_numpy()).max()
    power = int(np.floor(np.log10(largest))) if largest > 0.0 else 0
    power, unit = (0, "") if -1 <= power <= 0 else (power, rf" [$10^{{{power}}}$]")
    grid = grid / 10.0**power
    span = largest / 10.0**power or 1.0
    shades = plt.cm.ScalarMappable(TwoSlopeNorm(0.0, -span, span), "RdBu")

    model = {str(c): name for name, classes in groups for c in classes}
    blocks = np.array_split(np.array(prior, dtype=object), -(-len(prior) // 20))
    places = []  # with a gap before each further model of a block
    for block in blocks:
        new_model = [0, *(model.get(str(a)) != model.get(str(b)) for a, b in pairwise(block))]
        places.append(np.arange(len(block)) + _GAP * np.cumsum(new_model))
    wide = _CELL * (max(place[-1] for place in places) + 1.0)
    longest = max(len(str(c)) for c in prior)
    turned = longest > 3
    high = 0.29 * len(new) + (0.11 + 0.075 * longest if turned else 0.25) + 0.35
    size = (wide + 0.075 * max(len(str(c)) for c in new) + 2.1, len(blocks) * high + 0.4)
    fig, axes = panels(2, len(blocks), size=size, width_ratios=(wide, 0.8))
    for ax, block, place in zip(axes[:, 0], blocks, places, strict=True):
        _cells(ax, grid[block].to_numpy(), place, shades)
        for name in distinct(model[str(c)] for c in block if str(c) in model):
            _above(ax, name, [x for x, c in zip(place, block, strict=True) if model.get(str(c)) == name])
        standing = {"rotation": 90, "ha": "center", "va": "top"} if turned else {}
        ax.set_xticks(place, [str(c) for c in block], **standing)
        ax.set_yticks(range(len(new)), [str(c) for c in new])
        ax.set(xlim=(-0.5, wide / _CELL - 0.5), ylim=(len(new) - 0.5, -0.5), ylabel="new class")
    axes[-1, 0].set_xlabel("prior class")
    side = axes[0, 1]
    totals = np.abs(grid.to_numpy()).sum(axis=1)
    side.barh(range(len(new)), totals, color=GREY, height=0.7)
    for row, total in enumerate(totals):
        beside = {"xytext": (2, 0), "textcoords": "offset points", "va": "center"}
        side.annotate(f"{total:.2f}", (total, row), fontsize=6.5, **beside)
    side.set(xlim=(0.0, 1.6 * totals.max() or 1.0), ylim=(len(new) - 0.5, -0.5), yticks=())
    side.set_title(f"sum of $|w|${unit}\nover all priors", fontsize=7.5, y=1.0, pad=3)
    for ax in axes[:, 1]:
        ax.set_xticks(())
    for ax in axes[1:, 1]:
        ax.set_axis_off()
    for ax in axes.ravel():
        ax.tick_params(length=0)
        ax.grid(False)
        ax.spines[:].set_visible(False)
    fig.colorbar(shades, ax=axes[:, 1], label=f"transfer weight{unit}", aspect=18, pad=0.08)
    return fig


def _cells(ax, values, places, shades):
    """Coloured cells with their numbers; a column at each place."""
    colors = shades.to_rgba(values)
    for (row, column), value in np.ndenumerate(values):
        color, x = colors[row, column], places[column]
        look = {"facecolor": color, "edgecolor": "white", "linewidth": 0.5}
        ax.add_patch(plt.Rectangle((x - 0.5, row - 0.5), 1.0, 1.0, **look))
        ink = "white" if np.dot(color[:3], (0.299, 0.587, 0.114)) < 0.5 else "black"
        ax.text(x, row, _short(value), fontsize=6.5, color=ink, **_MIDDLE)


def _above(ax, name, places):
    """A line above some columns, and the name of their model, in as many lines as their width needs."""
    ax.plot([places[0] - 0.4, places[-1] + 0.4], [-0.72, -0.72], color=_DARK, linewidth=1.0, clip_on=False)
    letters = max(8, int(_CELL * (places[-1] - places[0] + 1.0 + _GAP) / 0.068))
    text = "\n".join(textwrap.wrap(name, letters))
    ax.text((places[0] + places[-1]) / 2, -0.85, text, ha="center", va="bottom", fontsize=7.5)


def _short(value):
    """Two decimals without the zero before the point; what rounds to zero is 0."""
    text = f"{abs(value):.2f}".removeprefix("0")
    return "0" if text == ".00" else ("\N{MINUS SIGN}" if value < 0.0 else "") + text


# --- useless priors -----------------------------------------------------------------------------------------


def negative(table):
    """Negative transfer: what priors that say nothing cost against No-Transfer on the same samples.

    A panel per kind of useless priors (a row per task); differences in points of accuracy, bands over seeds.
    `table` has the columns name, n_per_class, useless, seed, method, accuracy of
    `experiments.mktl.compare.negative`; rows with useless "none" are No-Transfer, the reference, and MKTL
    without priors, a thin line in every panel.
    """
    names = distinct(table["name"])
    kinds = {kind for kind in table["useless"] if kind != "none"}
    kinds = sorted(kinds, key=lambda kind: (kind != "shuffled", len(kind), kind))
    size = (3.1 * len(kinds) + 0.4, 2.9 * len(names) + 0.9)
    fig, axes = panels(len(kinds), len(names), size=size, sharex="row", sharey="row")
    for row, name in zip(axes, names, strict=True):
        task = where(table, name=name)

        def percent(useless, method, task=task):
            mine = where(task, useless=useless, method=method)
            return 100.0 * mine.pivot(index="seed", columns="n_per_class", values="accuracy")

        reference, alone = percent("none", "NoTransfer"), percent("none", "MKTL")
        for ax, kind in zip(row, kinds, strict=True):
            ax.axhline(0.0, **method_style("NoTransfer", marker=""))
            if not alone.empty:
                without = (alone - reference).mean()
                thin = {"color": method_style("MKTL")["color"], "linewidth": 0.9}
                ax.plot(without.index, without, label="MKTL without priors", **thin)
            for method in _methods(task[task["useless"] == kind]):
                grid = percent(kind, method) - reference
                band(ax, grid.columns, grid.to_numpy(), method, alpha=0.15)
            said = f"{kind.split()[-1]} columns of noise"
            said = "scores of real priors, shuffled" if kind == "shuffled" else said
            stamp(ax, "composed" if kind == "shuffled" else "simulated")
            ax.set_title(said if len(names) == 1 else f"{TITLES.get(name, name)}: {said}", fontsize=9)
            _counts(ax, task["n_per_class"], 2.6)
            ax.set_xlabel("training samples per class")
        _limits(row)
        row[0].set_ylabel("accuracy − No-Transfer's [points]")
    _legend(fig, axes.ravel())
    return fig


# --- sparsity -----------------------------------------------------------------------------------------------


def along_p(table, n_priors):
    """Test accuracy and the number of priors in use (of `n_priors`), against p.

    `table` has the columns p, seed, accuracy, used of `experiments.mktl.compare.along_p`. Rows with p "auto"
    have their p, which is marked in both panels, in p_found.
    """
    is_auto = table["p"].astype(str) == "auto"
    automatic = table["p_found"][is_auto].astype(float) if is_auto.any() else ()
    table = table.assign(p=table["p"].mask(is_auto, table.get("p_found"))).astype({"p": float})
    fig, axes = panels(1, 2, size=(5.0, 4.9), sharex=True)
    upper, lower = axes[:, 0]
    # the automatic p may be one of the others
    means = table.groupby(["seed", "p"])[["accuracy", "used"]].mean().reset_index()
    curve(upper, means, "p", "accuracy", "MKTL", factor=100.0)
    curve(lower, means, "p", "used", "MKTL")
    for p in automatic[:1]:
        look = {"color": method_style("MKTL auto")["color"], "linestyle": "--", "linewidth": 1.2}
        for ax in (upper, lower):
            ax.axvline(p, label=f"$p$ auto = {p:.3f}", **look)
    lower.axhline(n_priors, color=BLACK, linestyle=":", linewidth=1.0, label="all priors")
    upper.set_ylabel("test accuracy [%]")
    lower.set(xlabel=r"$p$ (axis: $p - 1$, logarithmic)", ylabel="priors in use per new class")
    lower.set_ylim(0.0, 1.08 * max(table["used"].max(), n_priors))
    lower.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    low, high = table["p"].min(), table["p"].max()
    lower.set_xlim(1.0 + 0.85 * (low - 1.0), 1.0 + 1.18 * (high - 1.0))
    lower.set_xscale("function", functions=(_to_log, lambda place: 1.0 + np.exp(place)))
    ticks = [p for p in (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0) if low <= p <= high]
    lower.xaxis.set_major_locator(FixedLocator(ticks))
    lower.xaxis.set_major_formatter(lambda p, _: f"{p:g}")
    lower.legend(loc="best")
    return fig


def _to_log(p):
    """Place of p on the axis: ln(p - 1), for p from 1 to 2 most of the room goes to those near 1."""
    return np.log(np.maximum(np.asarray(p, dtype=float) - 1.0, 1e-9))
