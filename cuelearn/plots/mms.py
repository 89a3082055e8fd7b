"""Drawings of the MMS chapter. Every function takes the numbers of an experiment and returns a figure; items are drawn in `mms_items`."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgba

from cuelearn.book.figures import band, method_style

TITLES = {
    "mnist": "MNIST",
    "letter": "letter",
    "pendigits": "Pendigits",
    "satimage": "satimage",
    "usps": "usps",
}
#: Losses that have a place on a logarithmic axis.
LEAST = 1e-3
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"


def accuracy_curves(table):
    """Figure 5.3: test accuracy over the number of ambiguous vectors, a row per difficulty, a column per data set.

    Parameters
    ----------
    table : DataFrame
        Of `experiments.mms.curves`.

    Returns
    -------
    Figure
    """
    names = list(dict.fromkeys(table["name"]))
    hardness = list(dict.fromkeys(zip(table["p_correlated"], table["p_ambiguous"], strict=True)))
    shape = (2.5 * len(names) + 0.6, 1.9 * len(hardness) + 0.9)
    fig, axes = plt.subplots(
        len(hardness),
        len(names),
        figsize=shape,
        layout="constrained",
        sharex=True,
        sharey="col",
        squeeze=False,
    )
    values = sorted(table["n_candidates"].unique())
    for number, (correlated, ambiguous) in enumerate(hardness):
        for ax, name in zip(axes[number], names, strict=True):
            mine = table[
                (table["name"] == name)
                & (table["p_correlated"] == correlated)
                & (table["p_ambiguous"] == ambiguous)
            ]
            for method, part in mine.groupby("method", sort=False):
                grid = part.pivot(index="seed", columns="n_candidates", values="accuracy")
                band(ax, grid.columns, 100.0 * grid.to_numpy(), method, alpha=0.12)
            ax.set_xscale("log")
            ax.set_xticks(values, [str(v) for v in values])
            ax.minorticks_off()
            ax.set_ylim(0, 100)  # bands of few runs reach beyond
            if number == 0:
                ax.set_title(f"{TITLES[name]} (made ambiguous)", fontsize=9)
            if number == len(hardness) - 1:
                ax.set_xlabel("ambiguous vectors L")
        axes[number, 0].set_ylabel(f"$P_c$ = {correlated:g}, $P_a$ = {ambiguous:g}\ntest accuracy (%)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=6, fontsize=8)
    return fig


def rounds(table):
    """The concave-convex procedure: objective and test accuracy after every round.

    Parameters
    ----------
    table : DataFrame
        Of `experiments.mms.by_round`, with columns name, seed, solver.

    Returns
    -------
    Figure
        Upper row the objective over that of the first round, lower row accuracy; a column per data set.
    """
    names = list(dict.fromkeys(table["name"]))
    fig, axes = plt.subplots(
        2, len(names), figsize=(2.5 * len(names) + 0.6, 4.4), layout="constrained", sharex=True, squeeze=False
    )
    looks = {
        "frank-wolfe": ("dual steps (pairwise Frank-Wolfe)", BLUE, "o", "-"),
        "pegasos": ("Pegasos (Algorithm 9)", ORANGE, "s", "--"),
    }
    for column, name in zip(axes.T, names, strict=True):
        for solver, (label, color, marker, line) in looks.items():
            mine = table[(table["name"] == name) & (table["solver"] == solver)]
            if mine.empty:
                continue
            first = mine[mine["round"] == 1].set_index("seed")["objective"]
            longest = int(mine["round"].max())
            for ax, values in (
                (column[0], mine["objective"] / mine["seed"].map(first)),
                (column[1], 100.0 * mine["accuracy"]),
            ):
                # runs that stopped earlier stay where they were
                grid = (
                    mine.assign(value=values)
                    .pivot(index="seed", columns="round", values="value")
                    .reindex(columns=range(1, longest + 1))
                )
                style = {
                    "color": color,
                    "marker": marker,
                    "linestyle": line,
                    "markersize": 4,
                    "label": label,
                    "alpha": 0.15,
                }
                band(ax, grid.columns, grid.ffill(axis=1).to_numpy(), **style)
        column[0].set_title(f"{TITLES[name]} (made ambiguous)", fontsize=9)
        column[1].set_xlabel("round")
        column[1].xaxis.get_major_locator().set_params(integer=True)
    axes[0, 0].set_ylabel("objective (5.3) over round 1's")
    axes[1, 0].set_ylabel("test accuracy (%)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return fig


def bound(table):
    """Proposition 5.2: true loss of classifiers on fresh bags against the bound by their ambiguous loss.

    Parameters
    ----------
    table : DataFrame
        Columns task, classifier, true, bound (of fresh bags).

    Returns
    -------
    Figure
    """
    fig, ax = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
    most = 1.3 * table["bound"].replace(np.inf, np.nan).max()  # what is infinite stands at the upper end
    markers = dict(zip(dict.fromkeys(table["classifier"]), "osD^vPX", strict=False))
    colors = dict(zip(dict.fromkeys(table["task"]), (BLUE, ORANGE, GREEN, "#CC79A7", GREY), strict=False))
    for classifier, marker in markers.items():
        for task, color in colors.items():
            mine = table[(table["classifier"] == classifier) & (table["task"] == task)]
            ax.plot(
                mine["true"].clip(lower=LEAST),
                mine["bound"].clip(LEAST, most),
                linestyle="",
                marker=marker,
                color=color,
                markersize=5,
                alpha=0.8,
            )
    span = np.array([max(LEAST, 0.7 * table["true"].min()), most])
    ax.plot(span, span, color="black", linewidth=1.0)
    ax.text(span[1], span[1], "true loss = bound", ha="right", va="top", rotation=0, fontsize=8)
    ax.set_title("real samples, made ambiguous", fontsize=9)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="true loss per bag, fresh bags",
        ylabel="ambiguous loss per bag / (1 − ambiguity degree)",
    )
    handles = [plt.Line2D([], [], linestyle="", marker=m, color="black", label=c) for c, m in markers.items()]
    handles += [
        plt.Line2D([], [], linestyle="", marker="o", color=c, label=TITLES.get(t, t))
        for t, c in colors.items()
    ]
    fig.legend(handles=handles, loc="outside right upper", fontsize=8)
    return fig


MODELLED = {"name": "single", "verb": "single", "both": "joint"}


def joint_models(table):
    """Figure 5.6: assignment on training items and recognition on test items, for names and for verbs.

    Parameters
    ----------
    table : DataFrame
        Of `experiments.mms.all_models`.

    Returns
    -------
    Figure
        Left the training items, right the test items; bars of single and joint models, hatched where a test caption is given.
    """
    fig, axes = plt.subplots(
        2, 2, figsize=(9.6, 5.6), layout="constrained", sharex="col", width_ratios=(1.0, 1.45)
    )
    for row, attribute in zip(axes, ("name", "verb"), strict=True):
        mine = table[table["attribute"] == attribute]
        cases = list(dict.fromkeys(zip(mine["method"], mine["modelled"], strict=True)))
        for ax, test in zip(row, (False, True), strict=True):
            bars = []
            for method, modelled in cases:
                part = mine[(mine["method"] == method) & (mine["modelled"] == modelled)]
                if not test:
                    bars.append((method, modelled, part["assignment"], False))
                    continue
                if method != "RANDOM":
                    bars.append((method, modelled, part["recognition"], False))
                if method in ("RANDOM", "MMS"):
                    bars.append((method, modelled, part["with_caption"], True))
            for place, (method, modelled, values, captioned) in enumerate(bars):
                style = method_style(method)
                spread = values.std() if len(values) > 1 else 0.0
                face = to_rgba(style["color"], 0.4 if captioned else 1.0) if modelled == "both" else "white"
                hatch = "///" if captioned else None
                style = {
                    "facecolor": face,
                    "edgecolor": style["color"],
                    "hatch": hatch,
                    "linewidth": 1.4,
                    "error_kw": {"ecolor": "black", "linewidth": 1.0},
                }
                ax.barh(place, 100.0 * values.mean(), xerr=100.0 * spread, **style)
            ax.set_yticks(range(len(bars)), [_bar_name(*b) for b in bars], fontsize=8)
            ax.invert_yaxis()
            ax.grid(axis="y", visible=False)
            ax.set_xlim(0, 100)
            ax.set_title(f"{attribute}s, {'test items' if test else 'training items'} (composed)", fontsize=9)
    axes[1, 0].set_xlabel("assigned right within the caption (%)")
    axes[1, 1].set_xlabel("recognised right (%); hatched: with the test caption")
    return fig


def _bar_name(method, modelled, values, captioned):
    label = method_style(method)["label"]
    label = label if method == "RANDOM" else f"{label}, {MODELLED[modelled]}"
    return f"{label} + caption" if captioned else label
