"""Drawings of the MMS chapter, from the numbers of its experiments. Items: `mms_items`."""

from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyBboxPatch, Rectangle

from companion.plots.common import distinct, legend, panels, thin_lines, where
from companion.plots.mms_items import columns, draw_candidates, draw_picture, pick, read_item
from companion.run.figures import BLUE, GREEN, GREY, PURPLE, RED, method_style
from cuelearn.core.intervals import CONFIDENCE, interval

NAMES = ("MNIST", "letter", "Pendigits", "satimage", "usps")
TITLES = {name.lower(): name for name in NAMES}
#: Losses that have a place on a logarithmic axis.
LEAST = 1e-3
#: Solver -> how it is drawn.
SOLVERS = {
    "frank-wolfe": {"label": "dual steps (pairwise Frank-Wolfe)", "color": BLUE, "marker": "o"},
    "pegasos": {"label": "Pegasos (Algorithm 9)", "color": RED, "marker": "s", "linestyle": "--"},
}


def idea():
    """A bag of two faces, its labelings, those that the caption allows, and what a classifier loses."""
    names, meant = ("Ann", "Bob", "Cy", "none"), (0, 1)
    possible = [(0, 1), (1, 0), (0, 3), (1, 3), (3, 0), (3, 1)]
    every = np.stack(np.indices((4, 4)), axis=-1)
    score = np.add.outer([1.6, 1.1, 1.9, 0.2], [1.0, 1.5, 0.2, 0.4])  # of the first face, of the second
    loss = np.array([[min(np.sum(np.not_equal(z, c)) for c in possible) for z in row] for row in every])
    fig, ((bag, grid, bars),) = panels(3, size=(8.0, 2.9), width_ratios=(0.8, 1.2, 1.5))
    bag.add_patch(FancyBboxPatch((0.12, 0.45), 0.76, 0.3, boxstyle="round,pad=0.08", fc="#F2F2F2", ec=GREY))
    for m in (0, 1):
        bag.text(0.3 + 0.4 * m, 0.6, "?", size=20, ha="center", va="center")
        bag.text(0.3 + 0.4 * m, 0.43, f"face {m + 1}", size=8, ha="center")
    bag.text(0.5, 0.16, "\u201cAnn waves to Bob.\u201d", size=9, style="italic", ha="center")
    bag.set(xlim=(0, 1), ylim=(0, 1))
    bag.set_title("a bag: who is who?", fontsize=9)
    bag.set_axis_off()
    for z in np.ndindex(loss.shape):
        allowed = z in possible
        grid.add_patch(Rectangle(z, 1, 1, fc=BLUE if allowed else str(1 - 0.12 * loss[z]), ec="white", lw=2))
        text = "\u2605" if z == meant else loss[z]
        grid.text(
            z[0] + 0.5, z[1] + 0.5, text, color="white" if allowed else "black", ha="center", va="center"
        )
    middle = np.arange(4) + 0.5
    grid.set(xlim=(0, 4), ylim=(4, 0), xlabel="name of face 1", ylabel="name of face 2")
    grid.set_xticks(middle, names)
    grid.set_yticks(middle, names)
    grid.set_title("labelings: candidates (blue), the\none meant (★); else labels in error", fontsize=9)
    best = max(possible, key=lambda z: score[z])
    wrong = sorted((z for z in np.ndindex(loss.shape) if loss[z]), key=lambda z: -(score + loss)[z])[:4]
    for row, z in enumerate([best, *wrong]):
        bars.barh(row, score[z], color=GREY if row else BLUE)
        bars.barh(row, loss[z], left=score[z], color="none", edgecolor=GREY, hatch="////")
    bars.axvline(score[best], color=BLUE, linestyle=":")
    reach = {"arrowstyle": "<->", "color": RED, "lw": 1.5, "shrinkA": 0, "shrinkB": 0}
    bars.annotate("", (score[best], 0.5), ((score + loss)[wrong[0]], 0.5), arrowprops=reach)
    bars.text((score + loss)[wrong[0]], 0.1, r"loss $\ell_A$", color=RED, ha="center", size=9)
    bars.set_yticks(range(5), [" + ".join(names[k] for k in z) for z in (best, *wrong)])
    bars.set(ylim=(4.6, -0.6), xlabel="score (hatched: + labels in error)")
    bars.set_title("the best candidate should beat\nall that cannot be, by their errors", fontsize=9)
    return fig


def runs(ax, grid, style):
    """Each run, a row of `grid`, as a thin line; their mean as a thick one."""
    thin_lines(ax, grid, style["color"])
    ax.plot(grid.columns, grid.mean(), **style)
    ax.cuelearn_band = f"thin: {len(grid)} draws, thick: their mean"


def accuracy_curves(table):
    """Figure 5.3: accuracy over ambiguous vectors, a row per difficulty, a column per data set."""
    names = distinct(table["name"])
    hardness = distinct(zip(table["p_correlated"], table["p_ambiguous"], strict=True))
    size = (1.85 * len(names) + 0.6, 1.75 * len(hardness) + 0.7)
    fig, axes = panels(len(names), len(hardness), size=size, sharex=True, sharey="row")
    table = table.assign(accuracy=100.0 * table["accuracy"])
    for row, (correlated, ambiguous) in zip(axes, hardness, strict=True):
        hard = where(table, p_correlated=correlated, p_ambiguous=ambiguous)
        for ax, name in zip(row, names, strict=True):
            for method, rows in where(hard, name=name).groupby("method", sort=False):
                grid = rows.pivot(index="seed", columns="n_candidates", values="accuracy")
                runs(ax, grid, method_style(method))
            ax.set_ylim(0, 100)
        row[0].set_ylabel(f"$P_c$ = {correlated:g}, $P_a$ = {ambiguous:g}\ntest accuracy (%)")
    values = sorted(table["n_candidates"].unique())
    for top, bottom, name in zip(axes[0], axes[-1], names, strict=True):
        top.set_title(f"{TITLES[name]}\n(made ambiguous)", fontsize=9)
        bottom.set(xscale="log", xlabel="ambiguous vectors L")
        bottom.set_xticks(values, [str(v) for v in values])
        bottom.minorticks_off()
    legend(fig, axes[0, 0], 6, fontsize=8)
    return fig


def rounds(table):
    """Objective over the first round's, and accuracy, after every round."""
    names = distinct(table["name"])
    fig, axes = panels(len(names), 2, size=(1.85 * len(names) + 0.6, 4.2), sharex=True)
    for (upper, lower), name in zip(axes.T, names, strict=True):
        for solver, style in SOLVERS.items():
            rows = where(table, name=name, solver=solver)
            if rows.empty:
                continue
            # runs that stopped earlier keep their last values
            grids = rows.pivot(index="seed", columns="round", values=["objective", "accuracy"])
            objective = grids["objective"].ffill(axis=1)
            runs(upper, objective.div(objective[1], axis=0), {"markersize": 4, **style})
            runs(lower, 100.0 * grids["accuracy"].ffill(axis=1), {"markersize": 4, **style})
        for ax in (upper, lower):
            ax.axvspan(3, 5, color="0.9", zorder=0, label="thesis: converges in 3 to 5 rounds")
        upper.set_title(f"{TITLES[name]}\n(made ambiguous)", fontsize=9)
        lower.set_xlabel("round")
        lower.xaxis.get_major_locator().set_params(integer=True)
    axes[0, 0].set_ylabel("objective (5.3)\nover round 1's")
    axes[1, 0].set_ylabel("test accuracy (%)")
    legend(fig, axes[0, 0], 3)
    return fig


def bound(table):
    """Proposition 5.2: true loss of classifiers on fresh bags against the bound by their ambiguous loss."""
    fig, ((ax,),) = panels(1, size=(5.4, 4.2))
    most = 1.3 * table["bound"].replace(np.inf, np.nan).max()  # what is infinite stands at the upper end
    markers = dict(zip(distinct(table["classifier"]), "osD^vPX", strict=False))
    colors = dict(zip(distinct(table["task"]), (BLUE, RED, GREEN, PURPLE, "#666666"), strict=False))
    for classifier, marker in markers.items():
        for task, color in colors.items():
            rows = where(table, classifier=classifier, task=task)
            places = rows["true"].clip(lower=LEAST), rows["bound"].clip(LEAST, most)
            ax.plot(*places, linestyle="", marker=marker, color=color, markersize=5, alpha=0.8)
    span = np.array([max(LEAST, 0.7 * table["true"].min()), most])
    ax.plot(span, span, color="black", linewidth=1.0)
    middle = np.sqrt(span.prod())
    ax.text(1.1 * middle, middle, "true loss = bound", va="top", fontsize=8)
    ax.set_title("real samples, made ambiguous", fontsize=9)
    ax.set(xscale="log", yscale="log", xlabel="true loss per bag, fresh bags")
    ax.set_ylabel("ambiguous loss per bag / (1 − ambiguity degree)")
    entries = [(c, m, "black") for c, m in markers.items()]
    entries += [(TITLES.get(t, t), "o", c) for t, c in colors.items()]
    handles = [plt.Line2D([], [], linestyle="", marker=m, color=color, label=t) for t, m, color in entries]
    fig.legend(handles=handles, loc="outside right upper", fontsize=8)
    return fig


def joint_models(table):
    """Figure 5.6: assignment on training items, recognition on test items, for names and for verbs."""
    fig, axes = panels(2, 2, size=(8.0, 5.4), sharex="row", height_ratios=(8, 7))
    for (left, right), attribute in zip(axes, ("name", "verb"), strict=True):
        training, test = [], []
        of_attribute = where(table, attribute=attribute)
        for (method, modelled), part in of_attribute.groupby(["method", "modelled"], sort=False):
            style, joint = method_style(method), modelled == "both"
            name, face = style["label"], style["color"] if joint else "white"
            if method != "RANDOM":
                name += ", joint" if joint else ", single"
                test.append((name, style["color"], face, "o", part["recognition"]))
            training.append((name, style["color"], face, "o", part["assignment"]))
            if method in ("RANDOM", "MMS"):
                test.append((f"{name} + caption", style["color"], face, "s", part["with_caption"]))
        for ax, rows, kind in ((left, training, "training"), (right, test, "test")):
            _rows(ax, rows)
            ax.set_xlim(0, 102)
            ax.set_title(f"{attribute}s, {kind} items (emoji, composed)", fontsize=8)
        left.set_xlabel("assigned right within the caption (%)")
        right.set_xlabel("recognised right (%)")
    return fig


def _rows(ax, rows):
    """Corpora, their mean and its interval in each row: (name, color, face, marker, values)."""
    for place, (_, color, face, marker, values) in enumerate(rows):
        values = 100.0 * np.asarray(values)
        ax.plot(values, np.full(len(values), place), "|", color=color, markersize=5, alpha=0.7)
        mean, low, high = interval(values) if len(values) > 1 else 3 * [values.mean()]
        ax.plot([low, high], [place, place], color="black", linewidth=1.2)
        look = {"markeredgecolor": color, "markerfacecolor": face, "markersize": 6}
        ax.plot(mean, place, marker, color=color, **look)
        ax.cuelearn_band = f"strokes: {len(values)} corpora; lines: {CONFIDENCE:.0%} intervals of their mean"
    ax.set_yticks(range(len(rows)), [name for name, *_ in rows], fontsize=7.5)
    ax.set_ylim(len(rows) - 0.4, -0.6)


def place(axes, shares, together):
    """Accuracies of methods, a row of `shares` for each draw, and which labels came `together` with which."""
    left, right = axes
    for row, method in enumerate(shares):
        style = method_style(method)
        left.barh(row, 100.0 * shares[method].mean(), color=style["color"], height=0.6)
        left.plot(100.0 * shares[method], np.full(len(shares), row), "|", color="black", markersize=9)
    left.set_yticks(
        range(shares.shape[1]), [method_style(m)["label"].removesuffix(" (all labels)") for m in shares]
    )
    left.set(xlim=(0, 100), ylim=(shares.shape[1] - 0.5, -0.5), xlabel="test accuracy (%); strokes: draws")
    right.imshow(together, vmin=0, vmax=1, cmap="Blues")
    right.grid(visible=False)
    most = together.to_numpy()[~np.eye(len(together), dtype=bool)].max()
    right.set(xlabel="label that some candidate gives", ylabel="true label")
    right.set_title(f"largest off the diagonal: {most:.2f}", fontsize=8)  # short: the slider's value is near


def objectives(axes, tables):
    """Objective and test accuracy after every round, by solver; `tables` maps solver to `by_round`."""
    for solver, table in tables.items():
        for ax, values in zip(axes, (table["objective"], 100.0 * table["accuracy"]), strict=True):
            ax.plot(table["round"], values, markersize=4, **SOLVERS[solver])
    axes[0].set(xlim=(0.5, 10.5), yscale="log", ylim=(0.2, 300), xlabel="round", ylabel="objective (5.3)")
    axes[1].set(xlim=(0.5, 10.5), ylim=(0, 100), xlabel="round", ylabel="test accuracy (%)")
    axes[0].legend(loc="upper right", fontsize=7)


def item(axes, data, faces, names):
    """An item of a composed corpus with so many faces and known names, and its candidate labeling set."""
    for ax in axes:
        ax.clear()  # pictures and tables have no ghost
        ax.set_axis_off()
    try:
        number = pick(data, n_faces=faces, n_names=names)
    except ValueError:
        axes[0].text(0.5, 0.5, "no such item", ha="center", transform=axes[0].transAxes)
        return
    shown = read_item(data, number)
    draw_picture(axes[0], shown)
    caption = fill(data.captions[number], 62)
    axes[0].text(0, -0.05, caption, transform=axes[0].transAxes, va="top", fontsize=8)
    vectors, total = columns(shown, shown.parsed.candidates, 8)
    draw_candidates(axes[1], shown, vectors, "", width=3.6)
    counted = f"{total:,} candidate{'' if total == 1 else 's'}"  # no title: the slider's value stands there
    axes[1].text(0, -0.05, counted, transform=axes[1].transAxes, va="top", fontsize=8, weight="bold")
