"""Drawings of the MMS chapter, from the numbers of its experiments. Items: `mms_items`."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgba

from cuelearn.book.figures import BLUE, GREEN, PURPLE, RED, band, method_style
from cuelearn.core.intervals import CONFIDENCE, interval
from cuelearn.plots.common import curves, distinct, legend, paired, panels, where

NAMES = ("MNIST", "letter", "Pendigits", "satimage", "usps")
TITLES = {name.lower(): name for name in NAMES}
TOLD = ("MC-SVM", "1vA-SVM")  # know all labels; their curves lie on that of MMS
#: Losses that have a place on a logarithmic axis.
LEAST = 1e-3
#: Solver -> how it is drawn.
SOLVERS = {
    "frank-wolfe": {"label": "dual steps (pairwise Frank-Wolfe)", "color": BLUE, "marker": "o"},
    "pegasos": {"label": "Pegasos (Algorithm 9)", "color": RED, "marker": "s", "linestyle": "--"},
}


def accuracy_curves(table):
    """Figure 5.3: accuracy over ambiguous vectors, a row per difficulty, a column per data set.

    Last row: by how much those who know all labels are above MMS, over all difficulties. `table` is that of
    `experiments.mms.curves`.
    """
    names = distinct(table["name"])
    hardness = distinct(zip(table["p_correlated"], table["p_ambiguous"], strict=True))
    size = (2.5 * len(names) + 0.6, 1.9 * len(hardness) + 2.8)
    fig, axes = panels(len(names), len(hardness) + 1, size=size, sharex=True)
    values = sorted(table["n_candidates"].unique())
    for row, (correlated, ambiguous) in zip(axes, hardness, strict=False):
        hard = where(table, p_correlated=correlated, p_ambiguous=ambiguous)
        for ax, name in zip(row, names, strict=True):
            curves(ax, where(hard, name=name), "n_candidates", "accuracy", factor=100.0, alpha=0.12)
            ax.set_ylim(0, 100)  # bands of few runs reach beyond
        row[0].set_ylabel(f"$P_c$ = {correlated:g}, $P_a$ = {ambiguous:g}\ntest accuracy (%)")
    keys = ["name", "method", "seed", "n_candidates"]
    mean = table[table["method"].isin(("MMS", *TOLD))].groupby(keys, sort=False)["accuracy"].mean()
    for top, bottom, name in zip(axes[0], axes[-1], names, strict=True):
        top.set_title(f"{TITLES[name]} (made ambiguous)", fontsize=9)
        mine = where(mean.reset_index(), name=name)
        paired(bottom, mine, "n_candidates", "accuracy", "MMS", factor=100.0, alpha=0.12)
        bottom.set_xlabel("ambiguous vectors L")
        bottom.set_xscale("log")
        bottom.set_xticks(values, [str(v) for v in values])
        bottom.minorticks_off()
    axes[-1, 0].set_ylabel("accuracy minus MMS's,\nrun by run (points)")
    legend(fig, axes[0, 0], 6, fontsize=8)
    return fig


def rounds(table):
    """The concave-convex procedure: objective over the first round's, and accuracy, after every round.

    `table` is that of `experiments.mms.by_round`, with columns name, seed, solver.
    """
    names = distinct(table["name"])
    fig, axes = panels(len(names), 2, size=(2.5 * len(names) + 0.6, 4.4), sharex=True)
    for (upper, lower), name in zip(axes.T, names, strict=True):
        for solver, style in SOLVERS.items():
            mine = where(table, name=name, solver=solver)
            if mine.empty:
                continue
            objective, accuracy = (
                # runs that stopped earlier stay where they were
                mine.pivot(index="seed", columns="round", values=value).ffill(axis=1)
                for value in ("objective", "accuracy")
            )
            for ax, grid in ((upper, objective.div(objective[1], axis=0)), (lower, 100.0 * accuracy)):
                band(ax, grid.columns, grid.to_numpy(), markersize=4, alpha=0.15, **style)
        upper.set_title(f"{TITLES[name]} (made ambiguous)", fontsize=9)
        lower.set_xlabel("round")
        lower.xaxis.get_major_locator().set_params(integer=True)
    axes[0, 0].set_ylabel("objective (5.3) over round 1's")
    axes[1, 0].set_ylabel("test accuracy (%)")
    legend(fig, axes[0, 0], 2)
    return fig


def bound(table):
    """Proposition 5.2: true loss of classifiers on fresh bags against the bound by their ambiguous loss.

    `table` has the columns task, classifier, true, bound.
    """
    fig, ((ax,),) = panels(1, size=(5.4, 4.2))
    most = 1.3 * table["bound"].replace(np.inf, np.nan).max()  # what is infinite stands at the upper end
    markers = dict(zip(distinct(table["classifier"]), "osD^vPX", strict=False))
    colors = dict(zip(distinct(table["task"]), (BLUE, RED, GREEN, PURPLE, "#666666"), strict=False))
    for classifier, marker in markers.items():
        for task, color in colors.items():
            mine = where(table, classifier=classifier, task=task)
            places = mine["true"].clip(lower=LEAST), mine["bound"].clip(LEAST, most)
            ax.plot(*places, linestyle="", marker=marker, color=color, markersize=5, alpha=0.8)
    span = np.array([max(LEAST, 0.7 * table["true"].min()), most])
    ax.plot(span, span, color="black", linewidth=1.0)
    ax.text(span[1], span[1], "true loss = bound", ha="right", va="top", fontsize=8)
    ax.set_title("real samples, made ambiguous", fontsize=9)
    ax.set(xscale="log", yscale="log", xlabel="true loss per bag, fresh bags")
    ax.set_ylabel("ambiguous loss per bag / (1 − ambiguity degree)")
    said = [(c, m, "black") for c, m in markers.items()] + [
        (TITLES.get(t, t), "o", c) for t, c in colors.items()
    ]
    handles = [plt.Line2D([], [], linestyle="", marker=m, color=color, label=t) for t, m, color in said]
    fig.legend(handles=handles, loc="outside right upper", fontsize=8)
    return fig


def joint_models(table):
    """Figure 5.6: assignment on training items, recognition on test items, for names and for verbs.

    Bars of single and of joint models, the latter filled; hatched where a test caption is given; beside them
    what the claims compare, corpus by corpus. `table` is that of `experiments.mms.all_models`.
    """
    fig, axes = panels(3, 2, size=(13.0, 5.8), sharex="col", width_ratios=(1.0, 1.45, 1.0))
    for (left, right, last), attribute in zip(axes, ("name", "verb"), strict=True):
        training, test = [], []
        mine = where(table, attribute=attribute)
        for (method, modelled), part in mine.groupby(["method", "modelled"], sort=False):
            name = method_style(method)["label"]
            if method != "RANDOM":
                name += ", joint" if modelled == "both" else ", single"
            bar = (method, modelled == "both")
            training.append((name, *bar, part["assignment"], None))
            if method != "RANDOM":
                test.append((name, *bar, part["recognition"], None))
            if method in ("RANDOM", "MMS"):
                test.append((f"{name} + caption", *bar, part["with_caption"], "///"))
        _bars(left, training)
        _bars(right, test)
        _differences(last, mine, attribute)
        left.set_title(f"{attribute}s, training items (emoji, composed)", fontsize=9)
        right.set_title(f"{attribute}s, test items (emoji, composed)", fontsize=9)
        last.set_title(f"{attribute}s, differences (emoji, composed)", fontsize=9)
    left.set_xlabel("assigned right within the caption (%)")
    right.set_xlabel("recognised right (%); hatched: with the test caption")
    last.set_xlabel("difference (points)\nfilled: assigned, hollow: recognised")
    return fig


def _bars(ax, bars):
    """Means with intervals of (name, method, joint, values, hatch)."""
    for place, (_, method, joint, values, hatch) in enumerate(bars):
        color = method_style(method)["color"]
        face = to_rgba(color, 0.4 if hatch else 1.0) if joint else "white"
        look = {"facecolor": face, "edgecolor": color, "hatch": hatch, "linewidth": 1.4}
        error = {"ecolor": "black", "linewidth": 1.0}
        ax.barh(place, 100.0 * values.mean(), xerr=_reach(ax, 100.0 * values), error_kw=error, **look)
    _name_rows(ax, [name for name, *_ in bars])
    ax.set_xlim(0, 100)


def _reach(ax, values):
    """From the mean over corpora to the ends of its interval."""
    if len(values) == 1:
        return None
    ax.cuelearn_band = f"lines: {CONFIDENCE:.0%} intervals of the mean over {len(values)} corpora"
    mean, low, high = interval(values)
    return [[mean - low], [high - mean]]


def _name_rows(ax, names):
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)


def _differences(ax, table, attribute):
    """What the claims compare, a dot for each corpus: assignment above, recognition below in each row."""
    wide = table.pivot(index="seed", columns=["method", "modelled"], values=["assignment", "recognition"])
    pairs = [(method, "both", method, attribute) for method in ("MMS", "DistNaming")]
    pairs += [("MMS", "both", "DistNaming", "both"), ("DistNaming", attribute, "GMMNaming", attribute)]
    pairs = [pair for pair in pairs if pair[2:] in wide["assignment"]]
    ax.axvline(0.0, color="#555555", linewidth=0.8)
    for row, (a, of_a, b, of_b) in enumerate(pairs):
        color = method_style(a)["color"]
        for column, offset, face in (("assignment", -0.15, color), ("recognition", 0.15, "white")):
            values = 100.0 * (wide[column][a, of_a] - wide[column][b, of_b])
            places = np.full(len(values), row + offset)
            ax.plot(values, places, "o", color=color, markerfacecolor=face, markersize=4, alpha=0.7)
            look = {"fmt": "none", "color": "black", "linewidth": 1.5, "capsize": 3}
            ax.errorbar(values.mean(), row + offset, xerr=_reach(ax, values), **look)
    said = [[method_style(method)["label"] for method in (a, b)] for a, _, b, _ in pairs]
    _name_rows(ax, [f"{a}, joint\nminus single" if a == b else f"{a} minus {b}" for a, b in said])
