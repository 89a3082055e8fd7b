"""Drawings of the OKS chapter, from the numbers of its experiments."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from companion.plots.common import (
    curve,
    curves,
    distinct,
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
LIMITS = ("bound", "comparator", "loss")  # drawn without bands
SYMBOLS = {"delta": r"$\delta$", "radius": "r", "epsilon": r"$\epsilon$"}
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
    """`draw` for `explore`: probabilities of OKS over two passes of a stream, and the shares of its draws."""
    signs = stream.signs
    names = stream.names
    passes = {"n_epochs": 2, "random_state": 0}
    alone = [OKS("precomputed", **passes).fit(stream.stack[[j]], signs) for j in range(len(names))]
    errors = [model.online_errors_.mean() for model in alone]  # of a Perceptron on each kernel

    def draw(axes, delta, eta, n_kernels):
        left, right = axes
        model = OKS("precomputed", delta=delta, eta=eta, **passes).fit(stream.stack[:n_kernels], signs)
        shares = np.bincount(model.drawn_, minlength=n_kernels) / model.drawn_.size
        for j, path in enumerate(model.probability_history_.T):
            color = PALETTE[j // 2]
            left.plot(model.history_["step"], path, color=color, linestyle="-" if j % 2 else "--")
            right.barh(j, shares[j], color=color, hatch="" if j % 2 else "///", edgecolor="white")
            right.text(1.02, j, f"{names[j]}: errs at {errors[j]:.0%}", va="center", fontsize=7)
        left.set(xlabel="visits, two passes", ylabel="kernel probability q", ylim=(0.0, 1.0))
        right.axvline(delta / n_kernels, color="black", linestyle=":", linewidth=0.8)
        right.set(xlabel=r"share of the draws (dotted: $\delta/m$)", xlim=(0.0, 2.2), xticks=(0.0, 0.5, 1.0))
        right.set(ylim=(len(names) - 0.4, -0.6), yticks=[])

    return draw


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


def kinds(quality, pictures, title):
    """Test accuracy by kind of features and kernel, and pictures by title."""
    fig = plt.figure(figsize=(9.6, 4.6), layout="constrained")
    left, right = fig.subfigures(1, 2)
    for ax, (name, images) in zip(right.subplots(len(pictures), 1), pictures.items(), strict=True):
        show_picture(ax, mosaic(images[:24], 12, margin=2), f"{name} ({len(images)})")
        ax.axis("off")
    ax = left.subplots()
    parts = quality["kernel_name"].str.rpartition(" ")
    table = quality.assign(kind=parts[0], kernel=parts[2])
    grid = 100 * table.pivot(index="kind", columns="kernel", values="accuracy")
    grid = grid.loc[distinct(table["kind"]), distinct(table["kernel"])]
    matrix(ax, grid, numbers="{:.0f}", aspect="auto", vmin=50, vmax=100)
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
    """Mean accuracy against CPU seconds: `methods` has seconds and the accuracy in percent, by method."""
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
