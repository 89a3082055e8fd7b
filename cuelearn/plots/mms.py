"""Drawings of the MMS chapter, from the numbers of its experiments. Items: `mms_items`."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgba

from cuelearn.book.figures import BLUE, GREEN, PURPLE, RED, band, method_style
from cuelearn.plots.common import curves, distinct, legend, panels, where

NAMES = ("MNIST", "letter", "Pendigits", "satimage", "usps")
TITLES = {name.lower(): name for name in NAMES}
#: Losses that have a place on a logarithmic axis.
LEAST = 1e-3
#: Solver -> how it is drawn.
SOLVERS = {
    "frank-wolfe": {"label": "dual steps (pairwise Frank-Wolfe)", "color": BLUE, "marker": "o"},
    "pegasos": {"label": "Pegasos (Algorithm 9)", "color": RED, "marker": "s", "linestyle": "--"},
}


def accuracy_curves(table):
    """Figure 5.3: accuracy over ambiguous vectors, a row per difficulty, a column per data set.

    `table` is that of `experiments.mms.curves`.
    """
    names = distinct(table["name"])
    hardness = distinct(zip(table["p_correlated"], table["p_ambiguous"], strict=True))
    size = (2.5 * len(names) + 0.6, 1.9 * len(hardness) + 0.9)
    fig, axes = panels(len(names), len(hardness), size=size, sharex=True, sharey="col")
    values = sorted(table["n_candidates"].unique())
    for row, (correlated, ambiguous) in zip(axes, hardness, strict=True):
        hard = where(table, p_correlated=correlated, p_ambiguous=ambiguous)
        for ax, name in zip(row, names, strict=True):
            curves(ax, where(hard, name=name), "n_candidates", "accuracy", factor=100.0, alpha=0.12)
            ax.set_xscale("log")
            ax.set_xticks(values, [str(v) for v in values])
            ax.minorticks_off()
            ax.set_ylim(0, 100)  # bands of few runs reach beyond
        row[0].set_ylabel(f"$P_c$ = {correlated:g}, $P_a$ = {ambiguous:g}\ntest accuracy (%)")
    for top, bottom, name in zip(axes[0], axes[-1], names, strict=True):
        top.set_title(f"{TITLES[name]} (made ambiguous)", fontsize=9)
        bottom.set_xlabel("ambiguous vectors L")
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

    Bars of single and of joint models, the latter filled; hatched where a test caption is given. `table` is
    that of `experiments.mms.all_models`.
    """
    fig, axes = panels(2, 2, size=(9.6, 5.6), sharex="col", width_ratios=(1.0, 1.45))
    for (left, right), attribute in zip(axes, ("name", "verb"), strict=True):
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
        left.set_title(f"{attribute}s, training items (emoji, composed)", fontsize=9)
        right.set_title(f"{attribute}s, test items (emoji, composed)", fontsize=9)
    left.set_xlabel("assigned right within the caption (%)")
    right.set_xlabel("recognised right (%); hatched: with the test caption")
    return fig


def _bars(ax, bars):
    """Means with standard deviations of (name, method, joint, values, hatch)."""
    for place, (_, method, joint, values, hatch) in enumerate(bars):
        color = method_style(method)["color"]
        face = to_rgba(color, 0.4 if hatch else 1.0) if joint else "white"
        look = {"facecolor": face, "edgecolor": color, "hatch": hatch, "linewidth": 1.4}
        spread = values.std() if len(values) > 1 else 0.0
        error = {"ecolor": "black", "linewidth": 1.0}
        ax.barh(place, 100.0 * values.mean(), xerr=100.0 * spread, error_kw=error, **look)
    ax.set_yticks(range(len(bars)), [name for name, *_ in bars], fontsize=8)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlim(0, 100)
