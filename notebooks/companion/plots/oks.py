"""Drawings of the OKS chapter, from the numbers of its experiments."""

import matplotlib.pyplot as plt
import numpy as np

from companion.plots.common import curve, distinct, legend, log_axis, mosaic, paired, panels, where
from companion.run.figures import BLUE, GREEN, GREY, ORANGE, PALETTE, PURPLE, RED, band, method_style, stamp
from cuelearn.oks import OKS

DARK = "#666666"
COLORS = (GREEN, PURPLE, ORANGE)
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


def idea():
    """A bandit over six kernels: weights, the mixture that one kernel is drawn from, what its error does."""
    delta, eta, drawn, at = 0.3, 0.16, 2, np.arange(1, 7)
    q = np.array([0.30, 0.06, 0.22, 0.10, 0.26, 0.06])
    trusted = (1.0 - delta) * q
    p = trusted + delta / q.size
    after = q * np.exp(-eta / p * (np.arange(q.size) == drawn))
    fig, ((left, middle, right),) = panels(3, size=(8.0, 2.7), sharey=True)
    left.bar(at, q, color=GREEN)
    left.set(title="1. weights $q$", ylabel="probability", xlabel="kernel")
    middle.bar(at, trusted, color=GREEN, label=r"$(1-\delta)\,q$: trust the weights")
    middle.bar(at, delta / q.size, bottom=trusted, color=GREY, label=r"$\delta/m$: try all")
    middle.plot(at[drawn], p[drawn] + 0.02, "v", color=RED, ms=8)
    middle.set(title="2. draw one from $p$", xlabel=f"kernel {at[drawn]} is drawn, no other computed")
    right.bar(at, after / after.sum(), color=[RED if k == drawn else GREEN for k in range(q.size)])
    right.bar(at, q, fill=False, edgecolor="black", linestyle=":", label="before")
    right.set(title=r"3. it errs: $w_i \leftarrow w_i\, e^{-\eta/p_i}$", xlabel="kernel", ylim=(0.0, 0.46))
    for ax in (middle, right):
        ax.legend(loc="upper right", fontsize=7)
    return fig


def bandit(stream):
    """`draw` for `explore`: probabilities of OKS over two passes of a stream, and the shares of its draws."""
    signs, names = stream.signs, stream.names
    alone = [OKS("precomputed", random_state=0).fit(stream.stack[[j]], signs) for j in range(len(names))]
    errors = [model.online_errors_.mean() for model in alone]  # of a Perceptron on each kernel

    def draw(axes, delta, eta, n_kernels):
        left, right = axes
        model = OKS("precomputed", delta=delta, eta=eta, random_state=0).fit(stream.stack[:n_kernels], signs)
        shares = np.bincount(model.drawn_, minlength=n_kernels) / model.drawn_.size
        for j, path in enumerate(model.probability_history_.T):
            color = PALETTE[j // 2]
            line = "-" if j % 2 else "--"
            left.plot([0, *model.history_["step"]], [1.0 / n_kernels, *path], color=color, linestyle=line)
            right.barh(j, shares[j], color=color, hatch="" if j % 2 else "///", edgecolor="white")
            right.text(1.02, j, f"{names[j]}: errs at {errors[j]:.0%}", va="center", fontsize=7)
        left.set(xlabel="visits, two passes", ylabel="kernel probability q", ylim=(0.0, 1.0))
        left.set_xlim(0, 2 * signs.size)
        right.axvline(delta / n_kernels, color="black", linestyle=":", linewidth=0.8)
        right.set(xlabel=r"share of the draws (dotted: $\delta/m$)", xlim=(0.0, 2.2), yticks=[])
        right.set(xticks=[0.0, 0.5, 1.0], ylim=(len(names) - 0.4, -0.6))

    return draw


def _kinds(table):
    return [kind for kind in STREAMS if (table["kind"] == kind).any()]


def _stream(ax, kind):
    log_axis(ax.xaxis, ax.yaxis, plain=True)
    ax.set(title=STREAMS[kind], xlabel="visits T")
    stamp(ax, "real" if kind == "pendigits" else "simulated")


def _styles(cases):
    """A style for each of up to three cases, whose order gives the colours."""
    looks = zip(COLORS, "os^", strict=True)
    styles = [{"color": color, "marker": marker, "markersize": 4} for color, marker in looks]
    return dict(zip(sorted(cases), styles, strict=False))


def mistake_bound(table):
    """Theorem 3: expected mistakes of Algorithm 2 and the bound, against T; a panel per stream."""
    kinds = _kinds(table)
    fig, (axes,) = panels(len(kinds), size=(3.5 * len(kinds), 4.3), sharey=True)
    for ax, kind in zip(axes, kinds, strict=True):
        subset = where(table, kind=kind)
        for delta, style in _styles(subset["delta"].unique()).items():
            part = where(subset, delta=delta)
            curve(ax, part, "n_samples", "mean", label=rf"mistakes, $\delta$ = {delta:g}", **style)
            limit = part.groupby("n_samples")["bound"].mean()
            ax.plot(limit, color=style["color"], linestyle="--", label=rf"bound, $\delta$ = {delta:g}")
        ax.cuelearn_band = STREAM_BAND
        means = subset.groupby("n_samples")[["loss", "mean"]].mean()
        least = means["loss"][means["loss"] >= 1.0]
        label = rf"best kernel's hinge loss, $\|f\| \leq {subset['radius'].iloc[0]:g}$"
        ax.plot(least, color=DARK, linestyle="-.", marker="x", markersize=4, label=label)
        visits = means.index.to_numpy(dtype=float)
        ax.plot(visits, visits, color="black", linestyle=":", label="all visits")
        root = 0.6 * means["mean"].iloc[0] * np.sqrt(visits / visits[0])
        ax.plot(visits, root, color=DARK, linewidth=1.0, alpha=0.6, label=r"slope of $\sqrt{T}$")
        _stream(ax, kind)
    fewest = table.groupby(["kind", "n_samples", "delta"])["mean"].mean().min()
    # a loss near 0 would stretch the axis
    axes[0].set(ylabel="expected mistakes in one pass", ylim=(0.4 * fewest, None))
    legend(fig, axes[0], 4)
    return fig


def regret_bounds(table):
    """Theorem 1: expected loss of Algorithm 1 per visit, the bound, and the comparator, for three losses.

    One colour for each pair of delta and r, which sets the step.
    """
    kinds, losses = _kinds(table), distinct(table["loss"])
    size = (3.5 * len(kinds), 2.2 * len(losses) + 0.9)
    fig, axes = panels(len(kinds), len(losses), size=size, sharex=True, sharey="row")
    styles = _styles(distinct(zip(table["delta"], table["radius"], strict=True)))
    sides = {"bound": ("--", "bound"), "comparator": ("-.", "best kernel, regularised")}
    for row, loss in zip(axes, losses, strict=True):
        for ax, kind in zip(row, kinds, strict=True):
            for (delta, radius), style in styles.items():
                part = where(table, kind=kind, loss=loss, delta=delta, radius=radius)
                case = rf"$\delta$ = {delta:g}, r = {radius:g}"
                grid = part.pivot(index="seed", columns="n_samples", values="mean")
                T = grid.columns.to_numpy()
                band(ax, T, grid.to_numpy() / T, label=f"algorithm, {case}", **style)
                for column, (line, label) in sides.items():
                    limit = part.groupby("n_samples")[column].mean() / T
                    ax.plot(T, limit, color=style["color"], linestyle=line, label=f"{label}, {case}")
            ax.cuelearn_band = STREAM_BAND
            _stream(ax, kind)
            ax.label_outer()
        row[0].set_ylabel(f"{loss} loss per visit")
    for ax in axes[1:].ravel():
        ax.set_title("")
    legend(fig, axes[0, 0], 3)
    return fig


def selection_quality(table):
    """Corollary 2: excess loss passed with probability epsilon, and how often the best kernel is found.

    Left, per stream, the kernel drawn from q_T and the largest in q_T; right the shares of runs.
    """
    kinds = _kinds(table)
    fig, (axes,) = panels(len(kinds) + 1, size=(3.5 * (len(kinds) + 1), 4.1))
    sides = {
        "drawn": (r"drawn from $q_T$", {"linestyle": "-", "marker": "o", "markersize": 4}),
        "largest": (r"largest in $q_T$", {"linestyle": "--", "marker": "s", "markersize": 4}),
    }
    epsilons = sorted(table["epsilon"].unique(), reverse=True)
    *streams, found = axes
    for ax, kind, shade in zip(streams, kinds, ("black", GREY), strict=True):
        subset = where(table, kind=kind)
        stream = STREAMS[kind] + ("" if kind == "pendigits" else " (simulated)")
        means = where(subset, epsilon=min(epsilons)).groupby("n_visits").mean(numeric_only=True)
        for column, (label, style) in sides.items():
            for epsilon, color in zip(epsilons, COLORS, strict=False):
                part = where(subset, epsilon=epsilon)
                named = rf"{label}, $\epsilon$ = {epsilon:g}"
                curve(ax, part, "n_visits", column, label=named, color=color, **style)
            found.plot(means[f"{column}_best"], color=shade, label=f"{stream}: {label}", **style)
        visits = means.index.to_numpy(dtype=float)
        start = subset.loc[subset["n_visits"] == visits[0], "largest"].mean()
        root = start * np.sqrt(visits[0] / visits)
        ax.plot(visits, root, color=DARK, linestyle=":", label=r"slope of $1/\sqrt{T}$")
        ax.cuelearn_band = "quantiles over draws; means over streams, band: 95% interval over streams"
        _stream(ax, kind)
    axes[0].set_ylabel("held-out loss above the best")
    log_axis(found.xaxis, plain=True)
    found.set(xlabel="visits T", ylabel="share of runs with the best kernel", ylim=(0.0, 1.03))
    found.set_title("kernel found")
    stamp(found, "real and simulated")
    found.legend(fontsize=7, loc="lower right")
    legend(fig, axes[0], 4)
    return fig


def _page(ax, images, columns, rows, title):
    """Pictures side by side, as many as fit."""
    ax.imshow(mosaic(images[: columns * rows], columns, margin=2), interpolation="antialiased")
    ax.set_title(title, fontsize=9)
    ax.set_anchor("N")
    ax.axis("off")


def kinds(quality, sides, errors, title):
    """Two labels' drawings, test accuracy by kind of features and kernel, and what two kernels mistake.

    `sides` and `errors` map titles to pictures.
    """
    fig = plt.figure(figsize=(9.6, 4.6), layout="constrained")
    layout = fig.add_gridspec(6, 3, width_ratios=(1.05, 1.0, 1.05))
    for k, (name, images) in enumerate(sides.items()):
        _page(fig.add_subplot(layout[3 * k : 3 * k + 3, 0]), images, 7, 3, name)
    for k, (name, images) in enumerate(errors.items()):
        _page(fig.add_subplot(layout[2 * k : 2 * k + 2, 2]), images, 9, 2, f"{name} ({len(images)})")
    ax = fig.add_subplot(layout[:, 1])
    parts = quality["kernel_name"].str.rpartition(" ")
    table = quality.assign(kind=parts[0], kernel=parts[2])
    grid = 100 * table.pivot(index="kind", columns="kernel", values="accuracy")
    grid = grid.loc[distinct(table["kind"]), distinct(table["kernel"])]
    ax.imshow(grid, aspect="auto", vmin=50, vmax=100)
    for (i, j), value in np.ndenumerate(grid.to_numpy()):
        color = "white" if value < 75 else "black"
        ax.text(j, i, f"{value:.0f}", ha="center", va="center", fontsize=8, color=color)
    ax.set_xticks(range(grid.shape[1]), grid.columns)
    ax.set_yticks(range(grid.shape[0]), grid.index)
    ax.grid(False)
    ax.set_title(f"{title}: test accuracy [%]", fontsize=9)
    return fig


def extremes(kernels, chosen):
    """Test accuracy of the five best and the five worst kernels of every pair (OKS figures 1 and 2).

    A row for each pair: a dot for every kernel; strokes: what methods reach on the same split, dotted: the
    larger class.
    """
    names = distinct(kernels["name"])
    fig, ((ax,),) = panels(1, size=(8.0, 0.42 * len(names) + 1.2))
    for row, name in enumerate(names):
        subset = where(kernels, name=name).sort_values("accuracy", ascending=False)
        percent, few = 100 * subset["accuracy"].to_numpy(), min(5, len(subset) // 2)
        at = row + np.linspace(-0.3, 0.3, len(subset))
        ax.plot(percent, at, "o", color="#cccccc", ms=2, label="the other kernels")
        ax.plot(percent[:few], at[:few], "o", color=GREEN, ms=4, label="best kernels")
        ax.plot(percent[-few:], at[-few:], "o", color=ORANGE, ms=4, label="worst kernels")
        reached = where(chosen, name=name, seed=chosen["seed"].min()).set_index("method")
        for method in ("MuSVM", "OKS", "SOM"):
            style = method_style(method, marker="", linewidth=1.6, linestyle="-")
            ax.plot([100 * reached.loc[method, "accuracy"]] * 2, [row - 0.42, row + 0.42], **style)
        chance = 100 * reached["chance"].iloc[0]
        ax.plot([chance] * 2, [row - 0.42, row + 0.42], "k:", label="larger class")
    ax.cuelearn_band = "dots: one SVM on each kernel, best and worst on this test; lines: methods, same split"
    lowest = 100 * min(kernels["accuracy"].min(), chosen["accuracy"].min())
    ax.set(xlabel="test accuracy [%]", xlim=(min(lowest - 2, 40), 101), ylim=(len(names) - 0.5, -0.5))
    ax.set_yticks(range(len(names)), [name.partition(" ")[2] for name in names], fontsize=8)
    ax.set_title(f"{len(names)} pairs of {SETS[names[0].split()[0]]}")
    ax.grid(False, axis="y")
    legend(fig, ax, 4)
    return fig


def probabilities(tables, quality):
    """Kernel probabilities of OKS over the visits, a panel for each table.

    The five with the largest probability at the end have a colour and a name.
    """
    fig, (axes,) = panels(len(tables), size=(8.0, 4.0), sharey=True)
    quality = quality.set_index("kernel")
    percent, names = 100 * quality["accuracy"], quality["kernel_name"]
    for (title, table), ax in zip(tables.items(), axes, strict=True):
        grid = table.pivot(index="step", columns="kernel", values="probability")
        last = grid.iloc[-1]
        ax.plot(grid, color="#cccccc", linewidth=0.6)
        for kernel, color in zip(last.nlargest(5).index, (BLUE, RED, GREEN, ORANGE, PURPLE), strict=False):
            label = f"{names[kernel]}: {last[kernel]:.2f} ({percent[kernel]:.0f}%)"
            ax.plot(grid[kernel], color=color, linewidth=1.4, label=label)
        ax.axhline(1.0 / grid.shape[1], color="black", linestyle=":", linewidth=0.8)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("visits")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), fontsize=7, frameon=False)
        ax.cuelearn_band = "named: the five largest at the end; in brackets: accuracy of an SVM on the kernel"
    axes[0].set(ylabel="kernel probability q (dotted: equal)", ylim=(0.0, None))
    return fig


def selection_against_passes(table, musvm):
    """Accuracy of an SVM on the kernel that OKS and SOM choose, against passes; below, OKS minus SOM.

    A column for each set of pairs, thin lines: pairs; `musvm` has the accuracy of MuSVM for each.
    """
    means = table.groupby(["name", "method", "n_epochs"], as_index=False)["accuracy"].mean()
    means["set"] = means["name"].str.split().str[0]
    sets = [pair_set for pair_set in SETS if (means["set"] == pair_set).any()]
    fig, axes = panels(len(sets), 2, size=(8.0, 4.6), sharex=True, sharey="row")
    for (top, below), pair_set in zip(axes.T, sets, strict=True):
        subset = where(means, set=pair_set)
        for method in ("OKS", "SOM"):
            mean = 100 * where(subset, method=method).groupby("n_epochs")["accuracy"].mean()
            top.plot(mean, **method_style(method, label=f"kernel chosen by {method}"))
        line = method_style("MuSVM", marker="", linewidth=1.2, label="MuSVM (all kernels tried)")
        top.axhline(100 * np.mean([musvm[name] for name in subset["name"].unique()]), **line)
        each = subset.pivot(index="n_epochs", columns=["method", "name"], values="accuracy")
        below.plot(100 * (each["OKS"] - each["SOM"]), color=GREY, linewidth=0.5, alpha=0.7)
        paired(below, subset, "n_epochs", "accuracy", "SOM", runs="name", factor=100)
        below.cuelearn_band = "means over pairs; below, pair by pair, band: 95% interval; thin: each pair"
        passes = sorted(subset["n_epochs"].unique())
        top.set_title(f"{subset['name'].nunique()} pairs of {SETS[pair_set]}", fontsize=9)
        below.set(xlabel="passes", xscale="log", xticks=passes, xticklabels=passes)
        below.xaxis.set_minor_formatter("")
    axes[0, 0].set_ylabel("test accuracy [%]")
    axes[1, 0].set_ylabel("OKS minus SOM [points]")
    legend(fig, axes[0, 0], 3)
    return fig
