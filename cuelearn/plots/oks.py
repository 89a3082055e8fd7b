"""Drawings of the OKS chapter. Every function takes the numbers of an experiment and returns a figure."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from cuelearn.book.figures import band, method_style
from cuelearn.plots.mkl import log_axis

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
#: Streams of the theorems.
STREAMS = {
    "pendigits": "Pendigits, odd or even",
    "one useful": "one useful kernel (simulated)",
    "random": "random labels (simulated)",
}


def _over_runs(ax, table, value, scale=None, **style):
    """Mean over runs (and streams) against T, and its interval as a band; divided by T where `scale` says so."""
    grid = table.pivot(index=["seed", "run"], columns="n_samples", values=value)
    values = grid.to_numpy() / (grid.columns.to_numpy() if scale == "visit" else 1.0)
    return band(ax, grid.columns, values, **style)


def mistake_bound(table):
    """Theorem 3: expected mistakes of Algorithm 2 and the bound, against the length of the stream.

    Parameters
    ----------
    table : DataFrame
        Of `experiments.oks.mistakes_against_bound`, with columns kind, n_samples and seed.

    Returns
    -------
    Figure
        A panel per stream.
    """
    kinds = [kind for kind in STREAMS if (table["kind"] == kind).any()]
    fig, axes = plt.subplots(
        1, len(kinds), figsize=(3.5 * len(kinds), 4.3), layout="constrained", sharey=True, squeeze=False
    )
    for ax, kind in zip(axes[0], kinds, strict=True):
        mine = table[table["kind"] == kind]
        for delta, color, marker in zip(
            sorted(mine["delta"].unique()), (BLUE, ORANGE, GREEN), "os^", strict=False
        ):
            part = mine[mine["delta"] == delta]
            _over_runs(
                ax,
                part,
                "mistakes",
                color=color,
                marker=marker,
                markersize=4,
                label=rf"mistakes, $\delta$ = {delta:g}",
            )
            limit = part.groupby("n_samples")["bound"].mean()
            ax.plot(limit.index, limit, color=color, linestyle="--", label=rf"bound, $\delta$ = {delta:g}")
        least, radius = mine.groupby("n_samples")["loss"].mean(), mine["radius"].iloc[0]
        least = least[least >= 1.0]
        label = rf"best kernel's hinge loss, $\|f\| \leq {radius:g}$"
        ax.plot(least.index, least, color=GREY, linestyle="-.", marker="x", markersize=4, label=label)
        visits = np.array(sorted(mine["n_samples"].unique()), dtype=float)
        ax.plot(visits, visits, color="black", linestyle=":", label="all visits")
        first = mine.loc[
            (mine["n_samples"] == visits[0]) & (mine["delta"] == mine["delta"].min()), "mistakes"
        ].mean()
        ax.plot(
            visits,
            0.6 * first * np.sqrt(visits / visits[0]),
            color=GREY,
            linewidth=1.0,
            alpha=0.6,
            label=r"slope of $\sqrt{T}$",
        )
        log_axis(ax.xaxis, plain=True)
        log_axis(ax.yaxis, plain=True)
        ax.set(xlabel="visits T", title=STREAMS[kind])
    fewest = table.groupby(["kind", "n_samples", "delta"])["mistakes"].mean().min()
    axes[0, 0].set(
        ylabel="expected mistakes in one pass", ylim=(0.4 * fewest, None)
    )  # a loss near 0 would stretch the axis
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return fig


def regret_bounds(table):
    """Theorem 1: expected loss of Algorithm 1 per visit, the bound, and the comparator, for three losses.

    One colour for each pair of delta and r, which sets the step.

    Parameters
    ----------
    table : DataFrame
        Of `experiments.oks.regret_against_bound`, with columns kind, loss, n_samples and seed.

    Returns
    -------
    Figure
        A row per loss, a panel per stream.
    """
    kinds = [kind for kind in STREAMS if (table["kind"] == kind).any()]
    losses = list(dict.fromkeys(table["loss"]))
    shape = (3.5 * len(kinds), 2.2 * len(losses) + 0.9)
    fig, axes = plt.subplots(
        len(losses), len(kinds), figsize=shape, layout="constrained", sharex=True, sharey="row", squeeze=False
    )
    cases = list(dict.fromkeys(zip(table["delta"], table["radius"], strict=True)))
    for row, loss in zip(axes, losses, strict=True):
        for ax, kind in zip(row, kinds, strict=True):
            mine = table[(table["kind"] == kind) & (table["loss"] == loss)]
            for (delta, radius), color, marker in zip(cases, (BLUE, ORANGE, GREEN), "os^", strict=False):
                part = mine[(mine["delta"] == delta) & (mine["radius"] == radius)]
                named = rf"$\delta$ = {delta:g}, r = {radius:g}"
                _over_runs(
                    ax,
                    part,
                    "losses",
                    scale="visit",
                    color=color,
                    marker=marker,
                    markersize=4,
                    label=f"algorithm, {named}",
                )
                for column, line, label in (
                    ("bound", "--", "bound"),
                    ("comparator", "-.", "best kernel, regularised"),
                ):
                    limit = part.groupby("n_samples")[column].mean()
                    ax.plot(
                        limit.index,
                        limit / limit.index,
                        color=color,
                        linestyle=line,
                        label=f"{label}, {named}",
                    )
            log_axis(ax.xaxis, plain=True)
            log_axis(ax.yaxis, plain=True)
            if loss == losses[0]:
                ax.set_title(STREAMS[kind])
            if loss == losses[-1]:
                ax.set_xlabel("visits T")
        row[0].set_ylabel(f"{loss} loss per visit")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return fig


def selection_quality(table):
    r"""Corollary 2: excess loss that is not passed with probability 1 - epsilon, and how often the best kernel is found.

    Parameters
    ----------
    table : DataFrame
        Of `experiments.oks.quantiles`.

    Returns
    -------
    Figure
        Left the excess of the kernel drawn from q_T and of the largest in q_T per stream, against T; right the shares of runs.
    """
    kinds = [kind for kind in STREAMS if (table["kind"] == kind).any()]
    fig, axes = plt.subplots(
        1, len(kinds) + 1, figsize=(3.5 * (len(kinds) + 1), 4.1), layout="constrained", squeeze=False
    )
    sides = (("drawn", "-", "o", r"drawn from $q_T$"), ("largest", "--", "s", r"largest in $q_T$"))
    for ax, kind in zip(axes[0], kinds, strict=False):
        mine = table[table["kind"] == kind]
        for epsilon, color in zip(
            sorted(mine["epsilon"].unique(), reverse=True), (BLUE, GREEN, ORANGE), strict=False
        ):
            part = mine[mine["epsilon"] == epsilon]
            for column, line, marker, label in sides:
                grid = part.pivot(index="seed", columns="n_visits", values=column)
                positive = bool((grid.to_numpy() > 0.0).all())
                style = {
                    "color": color,
                    "linestyle": line,
                    "marker": marker,
                    "markersize": 4,
                    "label": rf"{label}, $\epsilon$ = {epsilon:g}",
                }
                band(ax, grid.columns, grid.to_numpy(), geometric=positive, **style)
        visits = np.array(sorted(mine["n_visits"].unique()), dtype=float)
        start = mine.loc[mine["n_visits"] == visits[0], "largest"].mean()
        ax.plot(
            visits,
            start * np.sqrt(visits[0] / visits),
            color=GREY,
            linestyle=":",
            label=r"slope of $1/\sqrt{T}$",
        )
        log_axis(ax.xaxis, plain=True)
        log_axis(ax.yaxis, plain=True)
        ax.set(xlabel="visits T", title=STREAMS[kind])
    axes[0, 0].set_ylabel("held-out loss above the best")
    once = table[table["epsilon"] == table["epsilon"].min()]
    ax = axes[0, -1]
    for kind, color in zip(kinds, ("#000000", "#CC79A7", GREEN), strict=False):
        for column, line, marker, label in sides:
            grid = once[once["kind"] == kind].pivot(index="seed", columns="n_visits", values=f"{column}_best")
            ax.plot(
                grid.columns,
                grid.mean(),
                color=color,
                linestyle=line,
                marker=marker,
                markersize=4,
                label=f"{STREAMS[kind]}: {label}",
            )
    log_axis(ax.xaxis, plain=True)
    ax.set(
        xlabel="visits T", ylabel="share of runs with the best kernel", ylim=(0.0, 1.03), title="kernel found"
    )
    ax.legend(fontsize=7, loc="lower right")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return fig


def extremes(kernels, chosen, titles=None):
    """Test accuracy of the five best and the five worst kernels of every pair (OKS figures 1 and 2).

    Parameters
    ----------
    kernels : DataFrame
        Of `experiments.oks.every_kernel`, with a column name.
    chosen : DataFrame
        Columns name, method, accuracy: what methods reach, drawn as lines (means over seeds).
    """
    names = list(dict.fromkeys(kernels["name"]))
    fig, axes = plt.subplots(
        1, len(names), figsize=(3.9 * len(names), 3.7), layout="constrained", squeeze=False
    )
    for ax, name in zip(axes[0], names, strict=True):
        mine = kernels[kernels["name"] == name].sort_values("accuracy", ascending=False)
        few = min(5, len(mine) // 2)
        shown = pd.concat([mine.head(few), mine.tail(few)])
        places = np.r_[np.arange(few), np.arange(few + 1, 2 * few + 1)]
        ax.bar(places, 100 * shown["accuracy"], color=[GREEN] * few + ["#7F7F7F"] * few, width=0.7)
        for place, value in zip(places, shown["accuracy"], strict=True):
            ax.text(place, 41, f"{100 * value:.1f}", ha="center", color="white", fontsize=6)
        for method in ("MuSVM", "OKS", "SOM"):
            reached = chosen[(chosen["name"] == name) & (chosen["method"] == method)]["accuracy"]
            style = method_style(method)
            label = style["label"] + ("" if len(reached) == 1 else f", mean of {len(reached)}")
            ax.axhline(
                100 * reached.mean(),
                color=style["color"],
                linestyle=style["linestyle"],
                linewidth=1.2,
                label=label,
            )
        labels = [f"{k}: {text}" for k, text in zip(shown["kernel"], shown["kernel_name"], strict=True)]
        ax.set(title=name, ylim=(40, 101), xticks=places, ylabel="test accuracy [%]")
        ax.set_xticklabels(labels, rotation=60, ha="right", fontsize=7)
        ax.grid(False, axis="x")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
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
    fig, axes = plt.subplots(
        1, len(tables), figsize=(4.6 * len(tables), 3.5), layout="constrained", squeeze=False
    )
    accuracy = quality.set_index("kernel")["accuracy"]
    colors = plt.get_cmap("cividis")
    low, high = accuracy.min(), accuracy.max()
    for ax, (title, table) in zip(axes[0], tables.items(), strict=True):
        grid = table.pivot(index="step", columns="kernel", values="probability")
        for kernel in grid:
            ax.plot(
                grid.index, grid[kernel], color=colors((accuracy[kernel] - low) / (high - low)), linewidth=1.0
            )
        last = grid.iloc[-1].nlargest(best)
        names = quality.set_index("kernel")["kernel_name"]
        text = "\n".join(f"{names[k]}: {p:.2f} ({100 * accuracy[k]:.0f}%)" for k, p in last.items())
        ax.text(0.02, 0.98, text, transform=ax.transAxes, va="top", fontsize=7)
        ax.set(
            title=title,
            xlabel="visits",
            ylabel="kernel probability q",
            ylim=(0, max(0.05, 1.5 * grid.to_numpy().max())),
        )
    shade = plt.cm.ScalarMappable(plt.Normalize(100 * low, 100 * high), colors)
    fig.colorbar(shade, ax=axes[0, -1], label="accuracy of an SVM on the kernel [%]")
    return fig


def selection_against_passes(table, musvm):
    """Accuracy of an SVM on the kernel that OKS and SOM choose, against the number of passes, one panel per pair.

    Parameters
    ----------
    table : DataFrame
        Columns name, method, n_epochs, seed, accuracy. Drawn are the seeds that every number of passes has.
    musvm : dict of str to float
        Accuracy of MuSVM, a line.
    """
    names = list(dict.fromkeys(table["name"]))
    fig, axes = plt.subplots(
        2,
        (len(names) + 1) // 2,
        figsize=(3.4 * ((len(names) + 1) // 2), 6),
        layout="constrained",
        squeeze=False,
    )
    for ax, name in zip(axes.ravel(), names, strict=False):
        for method in ("OKS", "SOM"):
            mine = table[(table["name"] == name) & (table["method"] == method)]
            grid = mine.pivot(
                index="seed", columns="n_epochs", values="accuracy"
            ).dropna()  # some numbers of passes have more seeds
            band(ax, grid.columns, 100 * grid.to_numpy(), method, label=f"kernel chosen by {method}")
        style = method_style("MuSVM")
        ax.axhline(
            100 * musvm[name],
            color=style["color"],
            linestyle=style["linestyle"],
            linewidth=1.2,
            label="MuSVM (all kernels tried)",
        )
        ax.set(title=name, xlabel="passes", ylabel="test accuracy [%]", xticks=list(grid.columns))
    axes[0, 0].legend(loc="lower right")
    return fig
