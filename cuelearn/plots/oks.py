"""Drawings of the OKS chapter, from the numbers of its experiments."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from cuelearn.book.figures import GREEN, GREY, ORANGE, PURPLE, band, method_style, stamp
from cuelearn.plots.common import curve, distinct, legend, log_axis, mosaic, paired, panels, where

DARK = "#666666"
#: Streams of the theorems.
STREAMS = {
    "pendigits": "Pendigits, odd or even",
    "one useful": "one useful kernel",
    "random": "random labels",
}
STREAM_BAND = "means over draws and streams, band: 95% interval over streams"
#: Pairs by the first word of their names.
SETS = {
    "keyword": "keywords of emoji",
    "category": "categories of emoji",
    "corel5k": "keywords of Corel5k",
    "leaves": "species of leaves",
}


def _kinds(table):
    return [kind for kind in STREAMS if (table["kind"] == kind).any()]


def _stream(ax, kind):
    ax.set_title(STREAMS[kind])
    stamp(ax, "real" if kind == "pendigits" else "simulated")


def _looks(cases):
    """(case, style) for up to three values of a parameter."""
    marks = zip((GREEN, PURPLE, ORANGE), "os^", strict=True)
    return [
        (case, {"color": color, "marker": marker, "markersize": 4})
        for case, (color, marker) in zip(cases, marks, strict=False)
    ]


def mistake_bound(table):
    """Theorem 3: expected mistakes of Algorithm 2 and the bound, against T; a panel per stream.

    `table` has means over draws, of `experiments.oks.expectations`.
    """
    kinds = _kinds(table)
    fig, axes = panels(len(kinds), size=(3.5 * len(kinds), 4.3), sharey=True)
    for ax, kind in zip(axes[0], kinds, strict=True):
        mine = where(table, kind=kind)
        for delta, style in _looks(sorted(mine["delta"].unique())):
            part = where(mine, delta=delta)
            said = rf"$\delta$ = {delta:g}"
            curve(ax, part, "n_samples", "mean", label=f"mistakes, {said}", **style)
            ax.cuelearn_band = STREAM_BAND
            limit = part.groupby("n_samples")["bound"].mean()
            ax.plot(limit.index, limit, color=style["color"], linestyle="--", label=f"bound, {said}")
        least, radius = mine.groupby("n_samples")["loss"].mean(), mine["radius"].iloc[0]
        least = least[least >= 1.0]
        look = {"color": DARK, "linestyle": "-.", "marker": "x", "markersize": 4}
        ax.plot(least.index, least, label=rf"best kernel's hinge loss, $\|f\| \leq {radius:g}$", **look)
        visits = np.array(sorted(mine["n_samples"].unique()), dtype=float)
        ax.plot(visits, visits, color="black", linestyle=":", label="all visits")
        first = where(mine, n_samples=visits[0], delta=mine["delta"].min())
        root = 0.6 * first["mean"].mean() * np.sqrt(visits / visits[0])
        ax.plot(visits, root, color=DARK, linewidth=1.0, alpha=0.6, label=r"slope of $\sqrt{T}$")
        log_axis(ax.xaxis, ax.yaxis, plain=True)
        ax.set_xlabel("visits T")
        _stream(ax, kind)
    fewest = table.groupby(["kind", "n_samples", "delta"])["mean"].mean().min()
    # a loss near 0 would stretch the axis
    axes[0, 0].set(ylabel="expected mistakes in one pass", ylim=(0.4 * fewest, None))
    legend(fig, axes[0, 0], 4)
    return fig


def regret_bounds(table):
    """Theorem 1: expected loss of Algorithm 1 per visit, the bound, and the comparator, for three losses.

    A row per loss, a panel per stream; one colour for each pair of delta and r, which sets the step. `table`
    has means over draws, of `experiments.oks.expectations`.
    """
    kinds, losses = _kinds(table), distinct(table["loss"])
    size = (3.5 * len(kinds), 2.2 * len(losses) + 0.9)
    fig, axes = panels(len(kinds), len(losses), size=size, sharex=True, sharey="row")
    cases = _looks(distinct(zip(table["delta"], table["radius"], strict=True)))
    for row, loss in zip(axes, losses, strict=True):
        for ax, kind in zip(row, kinds, strict=True):
            mine = where(table, kind=kind, loss=loss)
            for (delta, radius), style in cases:
                part = where(mine, delta=delta, radius=radius)
                named = rf"$\delta$ = {delta:g}, r = {radius:g}"
                grid = part.pivot(index="seed", columns="n_samples", values="mean")
                T = grid.columns.to_numpy()
                band(ax, T, grid.to_numpy() / T, label=f"algorithm, {named}", **style)
                ax.cuelearn_band = STREAM_BAND
                sides = ("bound", "--", "bound"), ("comparator", "-.", "best kernel, regularised")
                for column, line, label in sides:
                    limit = part.groupby("n_samples")[column].mean() / T
                    ax.plot(T, limit, color=style["color"], linestyle=line, label=f"{label}, {named}")
            log_axis(ax.xaxis, ax.yaxis, plain=True)
        row[0].set_ylabel(f"{loss} loss per visit")
    for ax, kind in zip(axes[0], kinds, strict=True):
        _stream(ax, kind)
    for ax in axes[-1]:
        ax.set_xlabel("visits T")
    legend(fig, axes[0, 0], 3)
    return fig


def selection_quality(table):
    r"""Corollary 2: excess loss passed with probability epsilon, and how often the best kernel is found.

    Left the excess of the kernel drawn from q_T and of the largest in q_T per stream, against T; right the
    shares of runs. `table` is that of `experiments.oks.quantiles`.
    """
    kinds = _kinds(table)
    fig, axes = panels(len(kinds) + 1, size=(3.5 * (len(kinds) + 1), 4.1))
    sides = [
        (column, {"linestyle": line, "marker": marker, "markersize": 4}, rf"{column} {where} $q_T$")
        for column, line, marker, where in (("drawn", "-", "o", "from"), ("largest", "--", "s", "in"))
    ]
    epsilons = sorted(table["epsilon"].unique(), reverse=True)
    for ax, kind in zip(axes[0], kinds, strict=False):
        mine = where(table, kind=kind)
        for epsilon, color in zip(epsilons, (GREEN, ORANGE, PURPLE), strict=False):
            part = where(mine, epsilon=epsilon)
            for column, style, label in sides:
                style = {**style, "color": color, "geometric": bool((part[column] > 0.0).all())}
                curve(ax, part, "n_visits", column, label=rf"{label}, $\epsilon$ = {epsilon:g}", **style)
        visits = np.array(sorted(mine["n_visits"].unique()), dtype=float)
        start = mine.loc[mine["n_visits"] == visits[0], "largest"].mean()
        root = start * np.sqrt(visits[0] / visits)
        ax.plot(visits, root, color=DARK, linestyle=":", label=r"slope of $1/\sqrt{T}$")
        ax.cuelearn_band = "quantiles over draws; means over streams, band: 95% interval over streams"
        log_axis(ax.xaxis, ax.yaxis, plain=True)
        ax.set_xlabel("visits T")
        _stream(ax, kind)
    axes[0, 0].set_ylabel("held-out loss above the best")
    once = where(table, epsilon=table["epsilon"].min())
    ax = axes[0, -1]
    for kind, color in zip(kinds, ("black", GREY), strict=False):
        named = STREAMS[kind] + ("" if kind == "pendigits" else " (simulated)")
        for column, style, label in sides:
            best = where(once, kind=kind).groupby("n_visits")[f"{column}_best"].mean()
            ax.plot(best.index, best, color=color, label=f"{named}: {label}", **style)
    log_axis(ax.xaxis, plain=True)
    ax.set(xlabel="visits T", ylabel="share of runs with the best kernel", ylim=(0.0, 1.03))
    ax.set_title("kernel found")
    stamp(ax, "real" if kinds == ["pendigits"] else "simulated")
    ax.legend(fontsize=7, loc="lower right")
    legend(fig, axes[0, 0], 4)
    return fig


def _page(ax, images, columns, rows, title):
    """Pictures side by side, as many as fit."""
    ax.imshow(mosaic(images[: columns * rows], columns, margin=2), interpolation="antialiased")
    ax.set_title(title, fontsize=9)
    ax.set_anchor("N")
    ax.axis("off")


def kinds(quality, sides, errors, title):
    """Two labels' drawings, test accuracy by kind of features and kernel, and what two kernels mistake.

    `quality` is that of `experiments.oks.every_kernel` for one pair; `sides` and `errors` map titles to
    pictures, uint8 (n, height, width, 3).
    """
    fig = plt.figure(figsize=(13, 5.4), layout="constrained")
    layout = fig.add_gridspec(6, 3, width_ratios=(1.05, 1.0, 1.05))
    for k, (name, images) in enumerate(sides.items()):
        _page(fig.add_subplot(layout[3 * k : 3 * k + 3, 0]), images, 7, 3, name)
    for k, (name, images) in enumerate(errors.items()):
        _page(fig.add_subplot(layout[2 * k : 2 * k + 2, 2]), images, 9, 2, f"{name} ({len(images)})")
    ax = fig.add_subplot(layout[:, 1])
    named = quality["kernel_name"].str.rpartition(" ")
    table = quality.assign(kind=named[0], kernel=named[2])
    grid = 100 * table.pivot(index="kind", columns="kernel", values="accuracy")
    grid = grid.loc[distinct(table["kind"]), distinct(table["kernel"])]
    ax.imshow(grid, aspect="auto", vmin=50, vmax=100)
    for (i, j), value in np.ndenumerate(grid.to_numpy()):
        ax.text(j, i, f"{value:.0f}", ha="center", va="center", color="white" if value < 75 else "black")
    ax.set_xticks(range(grid.shape[1]), grid.columns)
    ax.set_yticks(range(grid.shape[0]), grid.index)
    ax.grid(False)
    ax.set_title(f"{title}: test accuracy [%] of an SVM on each kernel", fontsize=9)
    return fig


def extremes(kernels, chosen):
    """Test accuracy of the five best and the five worst kernels of every pair (OKS figures 1 and 2).

    `kernels` is that of `experiments.oks.every_kernel`, with a column name; `chosen` (name, method, accuracy,
    chance) what methods reach, drawn as lines (means over seeds), dotted what the larger class is.
    """
    names = distinct(kernels["name"])
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    fig, axes = panels(columns, rows, size=(4.3 * columns, 3.5 * rows + 0.4))
    for ax in axes.ravel()[len(names) :]:
        ax.set_visible(False)
    for ax, name in zip(axes.ravel(), names, strict=False):
        mine = where(kernels, name=name).sort_values("accuracy", ascending=False)
        few = min(5, len(mine) // 2)
        shown = pd.concat([mine.head(few), mine.tail(few)])
        places = np.r_[np.arange(few), np.arange(few + 1, 2 * few + 1)]
        ax.bar(places, 100 * shown["accuracy"], color=[GREEN] * few + [GREY] * few, width=0.7)
        for place, value in zip(places, shown["accuracy"], strict=True):
            ax.text(place, 32, f"{100 * value:.0f}", ha="center", color="white", fontsize=7)
        mine = where(chosen, name=name)
        for method in ("MuSVM", "OKS", "SOM"):
            reached = where(mine, method=method)["accuracy"]
            style = method_style(method, marker="", linewidth=1.2)
            style["label"] += "" if len(reached) == 1 else f", mean of {len(reached)}"
            ax.axhline(100 * reached.mean(), **style)
        ax.axhline(100 * mine["chance"].iloc[0], color="black", linestyle=":", label="larger class")
        labels = [f"{k}: {text}" for k, text in zip(shown["kernel"], shown["kernel_name"], strict=True)]
        ax.cuelearn_band = "bars: one SVM on each kernel, the best and the worst on this test"
        ax.set(title=name, ylim=(30, 101), ylabel="test accuracy [%]")
        ax.set_xticks(places, labels, rotation=40, ha="right", rotation_mode="anchor", fontsize=6.5)
        ax.grid(False, axis="x")
    legend(fig, axes[0, 0], 4)
    return fig


def probabilities(tables, quality, best=5):
    """Kernel probabilities of OKS over the visits, one panel for each table.

    Parameters
    ----------
    tables : dict of str to DataFrame
        Title -> table of `experiments.oks.probabilities`.
    quality : DataFrame
        Columns kernel, kernel_name, accuracy of an SVM on each kernel: kernels are coloured by it.
    best : int
        Kernels that are named, those with the largest probability at the end.
    """
    fig, axes = panels(len(tables), size=(4.6 * len(tables), 3.5))
    quality = quality.set_index("kernel")
    percent, names = 100 * quality["accuracy"], quality["kernel_name"]
    shade = plt.cm.ScalarMappable(plt.Normalize(percent.min(), percent.max()), "cividis")
    for ax, (title, table) in zip(axes[0], tables.items(), strict=True):
        grid = table.pivot(index="step", columns="kernel", values="probability")
        for kernel in grid:
            ax.plot(grid.index, grid[kernel], color=shade.to_rgba(percent[kernel]), linewidth=1.0)
        last = grid.iloc[-1].nlargest(best)
        text = "\n".join(f"{names[k]}: {p:.2f} ({percent[k]:.0f}%)" for k, p in last.items())
        ax.text(0.02, 0.98, text, transform=ax.transAxes, va="top", fontsize=7)
        ax.set(title=title, xlabel="visits", ylabel="kernel probability q")
        ax.set_ylim(0, max(0.05, 1.5 * grid.to_numpy().max()))
    fig.colorbar(shade, ax=axes[0, -1], label="accuracy of an SVM on the kernel [%]")
    return fig


def selection_against_passes(table, musvm):
    """Accuracy of an SVM on the kernel that OKS and SOM choose, against passes; below, OKS minus SOM.

    A column for each set of pairs: means over pairs, of means over seeds, and each pair's difference as a
    thin line. `table` has the columns name, method, n_epochs, seed, accuracy; `musvm` the accuracy of MuSVM
    for each name.
    """
    means = table.groupby(["name", "method", "n_epochs"], as_index=False)["accuracy"].mean()
    means["set"] = means["name"].str.split().str[0]
    sets = [one for one in SETS if (means["set"] == one).any()]
    fig, axes = panels(len(sets), 2, size=(3.6 * len(sets), 5.4), sharex=True, sharey="row")
    for column, one in zip(axes.T, sets, strict=True):
        mine, percent = where(means, set=one), {"runs": "name", "factor": 100}
        for method in ("OKS", "SOM"):
            label = f"kernel chosen by {method}"
            curve(
                column[0], where(mine, method=method), "n_epochs", "accuracy", method, label=label, **percent
            )
        line = method_style("MuSVM", marker="", linewidth=1.2, label="MuSVM (all kernels tried)")
        column[0].axhline(100 * np.mean([musvm[name] for name in mine["name"].unique()]), **line)
        each = mine.pivot(index="n_epochs", columns=["method", "name"], values="accuracy")
        column[1].plot(each.index, 100 * (each["OKS"] - each["SOM"]), color=GREY, linewidth=0.5, alpha=0.7)
        paired(column[1], mine, "n_epochs", "accuracy", "SOM", **percent)
        for ax in column:
            ax.cuelearn_band = "means over pairs, band: 95% interval over pairs; thin: each pair"
        passes = sorted(mine["n_epochs"].unique())
        column[0].set_title(f"{mine['name'].nunique()} pairs of {SETS[one]}")
        column[1].set(xlabel="passes", xscale="log", xticks=passes, xticklabels=passes)
        column[1].xaxis.set_minor_formatter("")
    axes[0, 0].set_ylabel("test accuracy [%]")
    axes[1, 0].set_ylabel("OKS minus SOM [points]")
    legend(fig, axes[0, 0], 3)
    return fig
