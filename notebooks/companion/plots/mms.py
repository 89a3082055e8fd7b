"""Drawings of the MMS chapter, from the numbers of its experiments. Items: `mms_items`."""

import numpy as np
import pandas as pd

from companion.plots.common import curve, distinct, end_labels, legend, panels, where
from companion.plots.mms_items import draw_candidates, draw_picture, examples
from companion.run.figures import BLUE, GREY, RED, band, method_style
from cuelearn.core.intervals import CONFIDENCE, interval

NAMES = ("MNIST", "letter", "Pendigits", "satimage", "usps", "covtype")
TITLES = {name.lower(): f"{name}\n(made ambiguous)" for name in NAMES}
#: Losses that have a place on a logarithmic axis.
LEAST = 1e-3
#: Solver -> how it is drawn.
SOLVERS = {
    "frank-wolfe": {"label": "dual steps (pairwise Frank-Wolfe)", "color": BLUE, "marker": "o"},
    "pegasos": {"label": "Pegasos (Algorithm 9)", "color": RED, "marker": "s", "linestyle": "--"},
}
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
    """Figure 5.3: accuracy over ambiguous vectors, a panel per data set, from left to right the difficulties.

    The curves begin anew at each difficulty. MMS is drawn last, in front of those that it meets.
    """
    names = distinct(table["name"])
    sizes = sorted(distinct(table["n_candidates"]))
    hardness = distinct(zip(table["p_correlated"], table["p_ambiguous"], strict=True))
    starts = {hard: k * (len(sizes) + 1) for k, hard in enumerate(hardness)}
    fig, axes = panels(1, len(names), size=(4.6, 1.8 * len(names) + 0.9), sharex=True)
    for ax, name in zip(axes[:, 0], names, strict=True):
        _accuracies(ax, where(table, name=name), sizes, starts)
        ax.set_title(TITLES[name].replace("\n", " "), fontsize=9)
        ax.set_ylabel("test accuracy (%)")
    last = axes[-1, 0]
    last.set_xticks([start + i for start in starts.values() for i in range(len(sizes))], sizes * len(starts))
    last.set_xlabel("ambiguous vectors L", labelpad=28)
    below = {"xycoords": last.get_xaxis_transform(), "ha": "center", "va": "top", "fontsize": 8}
    for (correlated, ambiguous), start in starts.items():
        chances = f"partners {correlated:.0%}\nlook-alikes {ambiguous:.0%}"
        last.annotate(chances, (start + (len(sizes) - 1) / 2, -0.15), **below)
    return fig


def _accuracies(ax, table, sizes, starts):
    """Curves of all methods on one data set, a piece for each difficulty, from its place in `starts` on."""
    ends = []
    for method in sorted(distinct(table["method"]), key="MMS".__eq__):
        style = method_style(method, linewidth=1.2)
        label = style["label"]
        if method == "MMS":
            style.update(linewidth=2.4, zorder=5)
        for (correlated, ambiguous), start in starts.items():
            rows = where(table, method=method, p_correlated=correlated, p_ambiguous=ambiguous)
            rows = rows.assign(place=start + rows["n_candidates"].map(sizes.index))
            grid = curve(ax, rows, "place", "accuracy", factor=100.0, **style)
            style["label"] = "_"  # one for all pieces
        ends.append((grid.columns[-1], grid.iloc[:, -1].mean(), label, style["color"]))
    end_labels(ax, ends, 0.12)


def rounds(table):
    """Objective over the first round's, and accuracy, after every round."""
    names = distinct(table["name"])
    draws = table.groupby("solver", sort=False)["seed"].nunique()
    n_draws = " and ".join(f"{n} draws by {SOLVERS[solver]['label']}" for solver, n in draws.items())
    fig, axes = panels(len(names), 2, size=(1.85 * len(names) + 0.6, 4.2), sharex=True)
    for (upper, lower), name in zip(axes.T, names, strict=True):
        for solver, rows in where(table, name=name).groupby("solver", sort=False):
            # runs that stopped earlier keep their last values
            grids = rows.pivot(index="seed", columns="round", values=["objective", "accuracy"])
            objective = grids["objective"].ffill(axis=1)
            accuracy = 100.0 * grids["accuracy"].ffill(axis=1)
            band(upper, objective.columns, objective.div(objective[1], axis=0), **SOLVERS[solver])
            band(lower, accuracy.columns, accuracy, **SOLVERS[solver])
        for ax in (upper, lower):
            ax.axvspan(3, 5, color="0.9", zorder=0, label="thesis: converges in 3 to 5 rounds")
            ax.cuelearn_band = f"means of {n_draws}, bands: {CONFIDENCE:.0%} intervals of the mean"
        upper.set_title(TITLES[name], fontsize=9)
        lower.set_xlabel("round")
    axes[0, 0].set_ylabel("objective (5.3)\nover round 1's")
    axes[1, 0].set_ylabel("test accuracy (%)")
    legend(fig, axes[0, 0], 3)
    return fig


def bound(table):
    """Proposition 5.2: true loss of classifiers on fresh bags against the bound by their ambiguous loss."""
    tasks = distinct(table["task"])
    most = table["bound"].replace(np.inf, np.nan).max()  # what is infinite stands at the upper end
    fig, axes = panels(len(tasks), size=(1.9 * len(tasks) + 0.8, 3.2), sharex=True, sharey=True)
    for ax, task in zip(axes[0], tasks, strict=True):
        classifiers = where(table, task=task).groupby("classifier", sort=False)
        for classifier, rows in classifiers:
            bounds = rows["bound"].clip(LEAST, most)
            style = method_style(classifier, linestyle="")
            ax.plot(rows["true"].clip(lower=LEAST), bounds, **style)
        ax.axline((1, 1), (10, 10), color="black", linewidth=1.0, label="true loss = bound")
        ax.set(xscale="log", yscale="log", xlabel="true loss per bag,\nfresh bags")
        ax.set_title(TITLES[task], fontsize=9)
    axes[0, 0].set_ylabel("ambiguous loss per bag\n/ (1 − ambiguity degree)")
    legend(fig, axes[0, 0], 4)
    return fig


def joint_models(table):
    """Figure 5.6: shares of right names (above) and verbs: mean over corpora and its interval."""
    fig, axes = panels(3, 2, size=(8.0, 5.2), sharex=True, sharey="row")
    for row, attribute in zip(axes, ("name", "verb"), strict=True):
        models = where(table, attribute=attribute).groupby(["method", "modelled"], sort=False)
        for ax, (share, label) in zip(row, SHARES.items(), strict=True):
            for (method, modelled), rows in models:
                style = method_style(method)
                joint = modelled == "both"
                values = 100.0 * rows[share].dropna()
                if len(values) > 1:
                    mean, low, high = interval(values)
                    face = style["color"] if joint else "white"
                    look = {"color": style["color"], "markerfacecolor": face}
                    place = f"{style['label']}, {'joint' if joint else 'single'}"
                    ax.errorbar([mean], [place], xerr=[[mean - low], [high - mean]], fmt="o", **look)
            ax.set(xlim=(0, 100), xlabel=f"{attribute}s {label}")
            ax.cuelearn_band = "lines: 95% intervals of the mean over corpora"
        row[0].invert_yaxis()
    return fig


def place(axes, shares, together):
    """Accuracies of methods, a row of `shares` for each draw, and which labels came `together` with which."""
    left, right = axes
    styles = [method_style(method) for method in shares]
    names = [style["label"].removesuffix(" (all labels)") for style in styles]
    left.barh(names, 100.0 * shares.mean(), color=[style["color"] for style in styles], height=0.6)
    for name, values in zip(names, 100.0 * shares.to_numpy().T, strict=True):
        left.plot(values, [name] * len(values), "|", color=RED, markersize=9)
    left.set(xlim=(0, 100), ylim=(len(names) - 0.5, -0.5), xlabel="test accuracy (%); strokes: draws")
    right.imshow(together, vmin=0, vmax=1, cmap="Blues")
    right.grid(visible=False)
    most = together.to_numpy()[~np.eye(len(together), dtype=bool)].max()
    right.set(xlabel="label that some candidate gives", ylabel="true label")
    right.set_title(f"largest off the diagonal: {most:.2f}", fontsize=8)  # short: the slider's value is near


def objectives(axes, tables):
    """Objective and test accuracy after every round, by solver; `tables` maps solver to `by_round`."""
    for solver, table in tables.items():
        axes[0].plot(table["round"], table["objective"], **SOLVERS[solver])
        axes[1].plot(table["round"], 100.0 * table["accuracy"], **SOLVERS[solver])
    axes[0].set(xlim=(0.5, 10.5), yscale="log", ylim=(0.2, 300), xlabel="round", ylabel="objective (5.3)")
    axes[1].set(xlim=(0.5, 10.5), ylim=(0, 100), xlabel="round", ylabel="test accuracy (%)")
    axes[0].legend(loc="upper right", fontsize=7)


def item(axes, data, faces, names):
    """An item of a composed corpus with so many faces and known names, and its candidate labeling set."""
    for ax in axes:
        ax.clear()  # pictures and tables have no ghost
        ax.set_axis_off()
    number, shown = next(examples(data, faces, names), (None, None))
    if number is None:
        axes[0].text(0.5, 0.5, "no such item", ha="center")
        return
    draw_picture(axes[0], data, number, 60)
    draw_candidates(axes[1], shown, 60, most=8)
