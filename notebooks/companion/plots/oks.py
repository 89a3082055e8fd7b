"""Drawings of the OKS chapter, from the numbers of its experiments."""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle

from companion.plots.common import (
    along,
    curve,
    curves,
    distinct,
    end_labels,
    legend,
    log_axis,
    matrix,
    mosaic,
    paired,
    panels,
    show_picture,
    where,
)
from companion.run.figures import BLACK, BLUE, GREEN, ORANGE, PALETTE, PURPLE, RED, method_style, stamp
from cuelearn.oks import OKS

COLORS = (GREEN, PURPLE, ORANGE)
LIMITS = ("bound", "loss")  # drawn without bands
#: Drawings side by side, of which there are two rows at most.
DRAWINGS = 5
#: Least probability at the end of a kernel whose curve has its name.
NAMED = 0.1
SYMBOLS = {"delta": r"$\delta$", "epsilon": r"$\epsilon$"}
#: Streams of the theorems.
STREAMS = {
    "pendigits": "Pendigits, odd or even",
    "one useful": "one useful kernel",
    "random": "random labels",
}
#: Pairs by the first word of their names.
SETS = {
    "keyword": "keywords of emoji",
    "category": "categories of emoji",
    "corel5k": "keywords of Corel5k",
    "leaves": "species of leaves",
}


def idea():
    """A bandit over six kernels: weights, the mixture that one kernel is drawn from, what its error does."""
    delta = 0.3
    eta = 0.16
    drawn = 3
    q = pd.Series([0.30, 0.06, 0.22, 0.10, 0.26, 0.06], index=range(1, 7))
    p = (1.0 - delta) * q + delta / q.size
    after = q.copy()
    after[drawn] *= np.exp(-eta / p[drawn])
    steps = {
        "1. weights $q$": q,
        r"2. draw one from $p = (1-\delta)q + \delta/m$": p,
        r"3. it errs: $w_i \leftarrow w_i\, e^{-\eta/p_i}$": after / after.sum(),
    }
    fig, (axes,) = panels(3, size=(8.0, 2.7), sharey=True)
    for ax, (title, values) in zip(axes, steps.items(), strict=True):
        ax.bar(values.index, values, color=GREEN)
        ax.bar(drawn, values[drawn], color=RED, label=f"kernel {drawn} is drawn, no other computed")
        ax.set_title(title, fontsize=9)
        ax.set(xlabel="kernel", xticks=values.index)
    axes[0].set_ylabel("probability")
    legend(fig, axes[0], 1, "outside lower center")
    return fig


def bandit(stream):
    """`draw` for `explore`: probabilities of OKS over two passes of a stream, and the shares of its draws.

    A representation has a colour, its linear kernel dashes; the kernel that errs least is bold.
    """
    signs = stream.signs
    names = stream.names
    passes = {"n_epochs": 2, "random_state": 0}
    alone = [OKS("precomputed", **passes).fit(stream.stack[[j]], signs) for j in range(len(names))]
    errors = np.array([model.online_errors_.mean() for model in alone])  # of a Perceptron on each kernel

    def draw(axes, delta, eta, n_kernels):
        left, right = axes
        model = OKS("precomputed", delta=delta, eta=eta, **passes).fit(stream.stack[:n_kernels], signs)
        shares = np.bincount(model.drawn_, minlength=n_kernels) / model.drawn_.size
        paths = model.probability_history_.T
        best = errors[:n_kernels].argmin()
        top = 0.42 if paths.max() <= 0.4 else 1.05
        most = 0.4 if shares.max() <= 0.4 else 0.8
        visits = model.history_["step"].to_numpy()
        left.set(xlabel="visits, two passes", ylabel="kernel probability q", ylim=(0.0, top))
        left.set(xlim=(0, 1.6 * visits[-1]), xticks=range(0, visits[-1] + 1, 200))
        ends = []
        for j, path in enumerate(paths):
            color = PALETTE[j // 2]
            bold = j == best
            left.plot(
                visits, path, color=color, linestyle="-" if j % 2 else "--", linewidth=3 if bold else 1.3
            )
            if bold or path[-1] >= NAMED:
                ends.append((visits[-1], path[-1], names[j], color))
            right.barh(j, shares[j], color=color, hatch="" if j % 2 else "///", edgecolor="white")
            text = {"va": "center", "ha": "right", "fontsize": 8, "weight": "bold" if bold else "normal"}
            right.text(-0.02 * most, j, names[j], **text)
            right.text(1.25 * most, j, f"{errors[j]:.0%}", **text)
        end_labels(left, ends, at=0.68)
        right.text(1.25 * most, -0.8, "mistakes", ha="right", fontsize=8)
        right.axvline(delta / n_kernels, ymax=0.92, color="black", linestyle=":", linewidth=0.8)
        right.set(xlabel=r"share of the draws (dotted: $\delta/m$)", xlim=(-0.75 * most, 1.25 * most))
        right.set(ylim=(len(names) - 0.4, -1.2), yticks=[], xticks=np.linspace(0.0, most, 3))
        right.spines["left"].set_visible(False)
        last = paths[:, -1]
        left.set_title(f"largest q at the end: {last.max():.2f}, {names[last.argmax()]}")
        right.set_title(f"{names[best]}, the best: {shares[best]:.0%} of the draws")

    return draw


def choosing(ax, chosen, eta):
    """For a slider: of 50 runs those that choose the best kernel, at every eta."""
    along(ax, [*chosen], [*chosen.values()], eta, color=BLACK)
    ax.set(xscale="log", ylim=(0, 52), yticks=range(0, 51, 10))
    ax.set(xlabel=r"$\eta$", ylabel="runs that choose dynamic rbf")
    ax.set_title(f"{chosen[eta]} of 50 runs")


def streams(rows, x, guides=()):
    """Against the visits, a column of panels for each stream.

    A row of panels for each label of `rows`: a table, the names of its columns that are drawn, and the
    columns whose values have colours. `guides`: a name, a colour and a function of the visits for each line
    to compare with.
    """
    kinds = [kind for kind in STREAMS if any((table["kind"] == kind).any() for table, _, _ in rows.values())]
    size = (3.5 * len(kinds), 2.2 * len(rows) + 1.5)
    fig, axes = panels(len(kinds), len(rows), size=size, sharex=True, sharey="row")
    for panel_row, (label, (table, columns, by)) in zip(axes, rows.items(), strict=True):
        for ax, kind in zip(panel_row, kinds, strict=True):
            runs = where(table, kind=kind)
            cases = runs.groupby(by) if by else [((), runs)]
            for (values, part), color in zip(cases, COLORS if by else (BLACK,), strict=False):
                case = [f"{SYMBOLS[name]} = {value:g}" for name, value in zip(by, values, strict=True)]
                for (column, name), line in zip(columns.items(), ("-", "--", "-."), strict=False):
                    style = {"label": ", ".join([name, *case]), "color": color, "linestyle": line}
                    if column in LIMITS:
                        ax.plot(part.groupby(x)[column].mean(), **style)
                    else:
                        curve(ax, part, x, column, **style)
            visits = np.unique(runs[x])
            for name, color, function in guides:
                ax.plot(visits, function(visits), color=color, linestyle=":", label=name)
            log_axis(ax.xaxis, *([ax.yaxis] if by else []), plain=True)
        panel_row[0].set_ylabel(label)
    for ax, kind in zip(axes[0], kinds, strict=True):
        ax.set_title(STREAMS[kind])
        stamp(ax, "bundled" if kind == "pendigits" else "simulated")
    for ax in axes[-1]:
        ax.set_xlabel("visits T")
    legend(fig, axes[:, 0], 3 if guides else 2)
    return fig


def shares_of_bound(table):
    """Theorem 1: how much of its bound the loss reaches, a row for each loss and stream, a line for the runs
    of one setting with ever more visits."""
    table = table.assign(share=100 * table["high"] / table["bound"])
    rows = list(product(distinct(table["loss"]), distinct(table["kind"])))
    fig, ((ax,),) = panels(1, size=(5.8, 0.42 * len(rows) + 1.4))
    for place, (loss, kind) in enumerate(rows):
        settings = where(table, loss=loss, kind=kind).groupby(["delta", "radius"])
        for ((delta, radius), of_setting), color, shift in zip(settings, COLORS, (-0.17, 0.17), strict=False):
            label = rf"$\delta$ = {delta:g}, r = {radius:g}" if place == 0 else "_"
            for _, of_seed in of_setting.sort_values("n_samples").groupby("seed"):
                at = np.full(len(of_seed), place + shift)
                ax.plot(of_seed["share"], at, color=color, linewidth=0.8, label=label)
                ax.scatter(of_seed["share"], at, np.sqrt(of_seed["n_samples"]), color=color)
                label = "_"
    ax.axvline(100, **method_style("bound"))
    sizes = ", ".join(f"{visits:,}" for visits in np.unique(table["n_samples"]))
    ax.set(xlim=(0, 103), xlabel=f"share of the bound reached [%]; small to large: {sizes} visits")
    ax.set_yticks(range(len(rows)), [f"{loss} loss,\n{STREAMS[kind]}" for loss, kind in rows], fontsize=8)
    ax.invert_yaxis()
    ax.cuelearn_band = "upper end of the 95% interval of the expected loss, a line for each stream"
    stamp(ax, "bundled and simulated")
    legend(fig, ax, 3)
    return fig


def kinds(quality, chance, pictures, title):
    """Test accuracy by kind of features and kernel, framed where a method has "taken" the kernel; pictures by
    title."""
    fig = plt.figure(figsize=(7.2, 6.0), layout="constrained")
    left, right = fig.subfigures(1, 2)
    shown = {name: images[: 2 * DRAWINGS] for name, images in pictures.items()}
    heights = [-(-len(images) // DRAWINGS) for images in shown.values()]
    rows = right.subplots(len(shown), 1, height_ratios=heights)
    for ax, (name, images) in zip(rows, shown.items(), strict=True):
        number = f"{len(images)} of {len(pictures[name])}"
        show_picture(ax, mosaic(images, DRAWINGS, margin=2), f"{name}: {number}")
        ax.axis("off")
    ax = left.subplots()
    parts = quality["kernel_name"].str.rpartition(" ")
    table = quality.assign(kind=parts[0], kernel=parts[2], right=100 * quality["accuracy"])
    grid = table.pivot(index="kind", columns="kernel", values="right")[distinct(table["kernel"])]
    grid = grid.loc[grid.mean(axis=1).sort_values(ascending=False).index]
    far = np.abs(grid - 100 * chance).max(axis=None)
    scale = {"vmin": 100 * chance - far, "vmax": 100 * chance + far, "cmap": "RdBu"}
    matrix(ax, grid, numbers="{:.0f}", aspect="auto", **scale)
    taken = table[table["taken"] != ""]
    for kind, kernel in zip(taken["kind"], taken["kernel"], strict=True):
        corner = grid.columns.get_loc(kernel) - 0.5, grid.index.get_loc(kind) - 0.5
        ax.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=GREEN, linewidth=3))
    frames = [f"{row.kernel_name}, taken by {row.taken}" for row in taken.itertuples()]
    white = f"white: always the larger class ({chance:.0%}); framed:"
    ax.set_xlabel("\n".join([white, *frames]), fontsize=8)
    ax.set_title(f"{title}: test accuracy [%]", fontsize=9)
    return fig


def extremes(kernels, chosen):
    """Test accuracy of every kernel and of three methods, a row for each pair (OKS figures 1 and 2).

    A row has the kernels on one line and the methods on the next. The first row has the means over pairs, of
    each pair's five best, mean and five worst kernel.
    """
    names = distinct(kernels["name"])
    chosen = chosen[(chosen["seed"] == chosen["seed"].min()) & chosen["name"].isin(names)]
    few = min(5, kernels["kernel"].nunique() // 2)
    by_pair = kernels.sort_values("accuracy").groupby("name")
    groups = {
        f"{few} worst": (by_pair.head(few), ORANGE, "v"),
        "mean kernel": (kernels, "#BBBBBB", "."),
        f"{few} best": (by_pair.tail(few), GREEN, "^"),
    }
    rows = {name: row + 1 for row, name in enumerate(names)}
    fig, ((ax,),) = panels(1, size=(6.0, 0.36 * len(names) + 1.9))
    for label in ("mean kernel", f"{few} worst", f"{few} best"):
        group, color, marker = groups[label]
        ax.plot(100 * group["accuracy"], group["name"].map(rows), marker, color=color, ms=4.5)
        mean = 100 * group.groupby("name")["accuracy"].mean().mean()
        ax.plot(mean, 0, marker if marker != "." else "o", color=color, ms=7)
        height, side = {"v": (0.4, "right"), ".": (0.9, "center"), "^": (0.4, "left")}[marker]
        ax.text(mean, -height, label, ha=side, va="center", fontsize=8)
    for method, (marker, size) in {"SOM": ("D", 7.5), "OKS": ("o", 6), "MuSVM": ("P", 4.5)}.items():
        reached = where(chosen, method=method)
        accuracy = 100 * reached["accuracy"]
        style = method_style(method, marker=marker, markersize=size, linestyle="")
        ax.plot(accuracy, reached["name"].map(rows) + 0.38, **style)
        ax.plot(accuracy.mean(), 0.38, **style | {"label": "_"})
    ax.cuelearn_band = (
        "first line of a row: an SVM on each kernel, best and worst on this test; second: methods, same split"
    )
    ax.set_yticks(range(len(names) + 1), ["mean over pairs", *(name.partition(" ")[2] for name in names)])
    ax.axhline(0.7, color=BLACK, lw=0.8)
    ax.set(xlabel="test accuracy [%]", ylim=(len(names) + 0.7, -1.3))
    low, high = 100 * chosen["chance"].min(), 100 * chosen["chance"].max()
    pairs = f"{len(names)} pairs of {SETS[names[0].split()[0]]}"
    ax.set_title(f"{pairs} (larger class: {low:.0f} to {high:.0f}%)")
    legend(fig, ax, 3)
    return fig


def price(methods):
    """Mean accuracy against CPU seconds, by method.

    `methods` has a row for each method: seconds, and right in percent.
    """
    fig, ((ax,),) = panels(1, size=(6.0, 3.2))
    for method, row in methods.iterrows():
        style = method_style(method, linestyle="", markersize=8)
        ax.plot(row["seconds"], row["right"], **style)
        left = method == "OKS"
        place = {"xytext": (-8 if left else 8, 0), "ha": "right" if left else "left", "va": "center"}
        label = style["label"].removesuffix(" (1-vs-All)")
        ax.annotate(label, (row["seconds"], row["right"]), textcoords="offset points", **place)
    log_axis(ax.xaxis, plain=True)
    ax.margins(x=0.3, y=0.15)
    ax.set(xlabel="CPU seconds of tuning and training", ylabel="test accuracy [%]")
    ax.set_title("accurate and fast: upper left")
    return fig


def probabilities(tables, quality):
    """Kernel probabilities of OKS over the visits, a panel for each number of passes."""
    fig, (axes,) = panels(len(tables), size=(8.0, 4.0), sharey=True)
    quality = quality.set_index("kernel")
    for (n_passes, table), ax in zip(tables.items(), axes, strict=True):
        grid = table.pivot(index="step", columns="kernel", values="probability")
        ax.plot(grid, color="#cccccc", linewidth=0.6)
        largest = grid.iloc[-1].nlargest(5)
        for (kernel, value), color in zip(largest.items(), (BLUE, RED, *COLORS), strict=False):
            accuracy = quality.loc[kernel, "accuracy"]
            label = f"{quality.loc[kernel, 'kernel_name']}: {value:.2f} ({accuracy:.0%})"
            ax.plot(grid[kernel], color=color, label=label)
        ax.axhline(1.0 / grid.shape[1], color="black", linestyle=":", linewidth=0.8)
        ax.set_title(f"{quality['name'].iloc[0]}, {n_passes} passes", fontsize=9)
        ax.set_xlabel("visits")
        ax.legend(loc="upper left", fontsize=7)
        ax.cuelearn_band = "named: the five largest at the end; in brackets: accuracy of an SVM on the kernel"
    axes[0].set_ylabel("kernel probability q (dotted: equal)")
    return fig


def selection_against_passes(table, musvm):
    """Accuracy of an SVM on the kernel that OKS and SOM choose, against passes; below, OKS minus SOM.

    A column for each set of pairs; `musvm` has the accuracy of MuSVM for each pair.
    """
    means = table.groupby(["name", "method", "n_epochs"], as_index=False)["accuracy"].mean()
    means["set"] = means["name"].str.split().str[0]
    sets = [pair_set for pair_set in SETS if pair_set in set(means["set"])]
    fig, axes = panels(len(sets), 2, size=(8.0, 4.6), sharex=True, sharey="row")
    for (top, below), pair_set in zip(axes.T, sets, strict=True):
        subset = where(means, set=pair_set)
        names = distinct(subset["name"])
        curves(top, subset, "n_epochs", "accuracy", runs="name", factor=100)
        top.axhline(100 * musvm[names].mean(), **method_style("MuSVM", marker=""))
        paired(below, subset, "n_epochs", "accuracy", "SOM", runs="name", factor=100)
        top.cuelearn_band = "means over pairs, band: 95% interval; below, of their differences"
        below.cuelearn_band = top.cuelearn_band
        top.set_title(f"{len(names)} pairs of {SETS[pair_set]}", fontsize=9)
        below.set_xlabel("passes")
        log_axis(below.xaxis, plain=True)
    axes[0, 0].set(ylabel="test accuracy [%]", ylim=(40, 102))
    axes[1, 0].set_ylabel("OKS minus SOM [points]")
    legend(fig, axes[0, 0], 3)
    return fig
