"""Drawings of the MMS chapter, from the numbers of its experiments. Items: `mms_items`."""

from itertools import cycle

import numpy as np
import pandas as pd

from companion.intervals import interval
from companion.plots.common import curve, distinct, end_labels, forest, intervals, legend, panels, where
from companion.plots.mms_items import draw_candidates, draw_picture, examples
from companion.run.figures import BLUE, GREEN, GREY, PURPLE, RED, band, method_style

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
    ends = []
    for name, rows in table.groupby("name", sort=False):
        grid = rows.pivot(index="seed", columns="round", values=column).reindex(columns=last).ffill(axis=1)
        grid = 100.0 * grid if column == "accuracy" else grid.div(grid[1], axis=0)
        label = TITLES[name].split("\n")[0]
        band(ax, last, grid, label=label, **looks[name])
        ends.append((last[-1], grid.iloc[:, -1].mean(), label, looks[name]["color"]))
    ax.axvspan(3, 5, color="0.9", zorder=0)
    ax.cuelearn_band = "bands: 95% intervals of the mean, grey: the thesis's 3 to 5 rounds"
    end_labels(ax, ends, 0.11)


def bound(table):
    """Proposition 5.2: true loss of classifiers on fresh bags against the bound by their ambiguous loss."""
    tasks = distinct(table["task"])
    most = table["bound"].replace(np.inf, np.nan).max()  # what is infinite stands at the upper end
    columns = min(2, len(tasks))
    n_rows = -(-len(tasks) // columns)
    size = (2.3 * columns + 0.4, 2.2 * n_rows + 1.0)
    fig, axes = panels(columns, n_rows, size=size, sharex=True, sharey=True)
    for ax, task in zip(axes.flat, tasks, strict=False):
        classifiers = where(table, task=task).groupby("classifier", sort=False)
        for classifier, rows in classifiers:
            bounds = rows["bound"].clip(LEAST, most)
            style = method_style(classifier, linestyle="", zorder=3 if classifier == "MMS" else 2)
            ax.plot(rows["true"].clip(lower=LEAST), bounds, **style)
        ax.axline((1, 1), (10, 10), color="black", linewidth=1.0, label="true loss = bound")
        ax.set(xscale="log", yscale="log")
        ax.set_title(TITLES[task], fontsize=9)
    for ax in axes.flat[len(tasks) :]:
        ax.remove()
    fig.supxlabel("true loss per bag, fresh bags", fontsize=9)
    fig.supylabel("ambiguous loss per bag / (1 − ambiguity degree)", fontsize=9)
    legend(fig, axes[0, 0], 2, fontsize=8)
    return fig


def joint_models(table):
    """Figure 5.6: shares of right names (left) and verbs: mean over corpora and its interval."""
    models = distinct(zip(table["method"], table["modelled"] == "both", strict=True))
    models.sort(key=lambda model: model[1])
    names = [f"{method_style(method)['label']}, {'joint' if joint else 'single'}" for method, joint in models]
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


def errors_by(table, x, xlabel):
    """Mean test error of all methods by a column, a panel per data set."""
    names = distinct(table["name"])
    fig, axes = panels(1, len(names), size=(5.0, 2.6 * len(names)), sharex=True)
    for ax, name in zip(axes[:, 0], names, strict=True):
        rows = where(table, name=name)
        ends = []
        for method in distinct(table["method"]):
            style = method_style(method)
            grid = curve(ax, where(rows, method=method), x, "error", method, factor=100.0, draw=_mean)
            ends.append((grid.columns[-1], grid.iloc[:, -1].mean(), style["label"], style["color"]))
        ax.set_xticks(sorted(distinct(table[x])))
        ax.autoscale_view()  # labels are placed within the limits
        end_labels(ax, ends, 0.1)
        ax.set_ylabel("test error (%)")
        ax.set_title(f"{name}, votes simulated", fontsize=9)
    axes[-1, 0].set_xlabel(xlabel)
    return fig


def _mean(ax, x, samples, method):
    ax.plot(x, samples.mean(axis=0), **method_style(method))
    ax.cuelearn_band = f"means of {len(samples)} draws"


def differences(table):
    """Paired differences of test errors with their intervals, a row each, `table` as of `intervals`."""
    fig, axes = panels(1, 1, size=(5.0, 0.26 * len(table) + 0.9))
    forest(axes[0, 0], table, "difference of test errors (points)")
    return fig
