"""Drawings of the OKS chapter, from the numbers of its experiments."""

import matplotlib.pyplot as plt
import numpy as np

from companion.plots.common import curve, distinct, legend, log_axis, mosaic, paired, panels, where
from companion.run.figures import BLUE, GREEN, GREY, ORANGE, PALETTE, PURPLE, RED, band, method_style, stamp
from cuelearn.oks import OKS

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


def idea():
    """A bandit over six kernels: weights, the mixture that one kernel is drawn from, what its error does."""
    delta, eta, drawn, at = 0.3, 0.16, 2, np.arange(1, 7)
    q = np.array([0.30, 0.06, 0.22, 0.10, 0.26, 0.06])
    p = (1.0 - delta) * q + delta / q.size
    after = q * np.exp(-eta / p * (np.arange(q.size) == drawn))
    after /= after.sum()
    fig, ((left, middle, right),) = panels(3, size=(8.0, 2.7), sharey=True)
    left.bar(at, q, color=GREEN)
    left.set(title="1. weights $q$", ylabel="probability", xlabel="kernel")
    middle.bar(at, p - delta / q.size, color=GREEN, label=r"$(1-\delta)\,q$: trust the weights")
    middle.bar(at, delta / q.size, bottom=p - delta / q.size, color=GREY, label=r"$\delta/m$: try all")
    middle.plot(at[drawn], p[drawn] + 0.02, "v", color=RED, ms=8)
    middle.set(title="2. draw one from $p$", xlabel=f"kernel {at[drawn]} is drawn, no other computed")
    middle.legend(loc="upper right", fontsize=7)
    right.bar(at, after, color=[RED if k == drawn else GREEN for k in range(q.size)])
    right.bar(at, q, fill=False, edgecolor="black", linestyle=":", label="before")
    right.set(title=r"3. it errs: $w_i \leftarrow w_i\, e^{-\eta/p_i}$", xlabel="kernel", ylim=(0.0, 0.46))
    right.legend(loc="upper right", fontsize=7)
    for ax in (left, middle, right):
        ax.set_xticks(at)
        ax.grid(False, axis="x")
    return fig


def bandit(stream):
    """`draw` for `explore`: probabilities of OKS over two passes of a stream, and the shares of its draws."""
    signs, quiet = stream.signs, {"random_state": 0, "verbose": False}
    alone = [OKS("precomputed", **quiet).fit(stream.stack[[j]], signs) for j in range(len(stream.names))]
    errors = [model.online_errors_.mean() for model in alone]  # of a Perceptron on each kernel

    def draw(axes, delta, eta, n_kernels):
        left, right = axes
        model = OKS("precomputed", delta=delta, eta=eta, **quiet).fit(stream.stack[:n_kernels], signs)
        shares = np.bincount(model.drawn_, minlength=n_kernels) / model.drawn_.size
        for j, path in enumerate(model.probability_history_.T):
            look = {"color": PALETTE[j // 2], "linestyle": "--" if j % 2 == 0 else "-"}
            left.plot([0, *model.history_["step"]], [1.0 / n_kernels, *path], **look)
            right.barh(j, shares[j], color=look["color"], hatch="" if j % 2 else "///", edgecolor="white")
            text = f"{stream.names[j]}: errs at {errors[j]:.0%}"
            right.text(1.02, j, text, va="center", fontsize=7)
        left.set(xlabel="visits, two passes", ylabel="kernel probability q", ylim=(0.0, 1.0))
        left.set_xlim(0, 2 * signs.size)
        right.axvline(delta / n_kernels, color="black", linestyle=":", linewidth=0.8)
        right.set(xlabel=r"share of the draws (dotted: $\delta/m$)", xlim=(0.0, 2.2), yticks=[])
        right.set_xticks([0.0, 0.5, 1.0])
        right.set_ylim(len(stream.names) - 0.4, -0.6)

    return draw


def _kinds(table):
    return [kind for kind in STREAMS if (table["kind"] == kind).any()]


def _stream(ax, kind):
    ax.set_title(STREAMS[kind])
    stamp(ax, "real" if kind == "pendigits" else "simulated")


def _looks(cases):
    """(case, style) for up to three values of a parameter, whose order gives the colours."""
    marks = dict(zip(sorted(cases), zip((GREEN, PURPLE, ORANGE), "os^", strict=True), strict=False))
    return [(case, {"color": marks[case][0], "marker": marks[case][1], "markersize": 4}) for case in cases]


def mistake_bound(table):
    """Theorem 3: expected mistakes of Algorithm 2 and the bound, against T; a panel per stream."""
    kinds = _kinds(table)
    fig, axes = panels(len(kinds), size=(3.5 * len(kinds), 4.3), sharey=True)
    for ax, kind in zip(axes[0], kinds, strict=True):
        subset = where(table, kind=kind)
        for delta, style in _looks(sorted(subset["delta"].unique())):
            part = where(subset, delta=delta)
            text = rf"$\delta$ = {delta:g}"
            curve(ax, part, "n_samples", "mean", label=f"mistakes, {text}", **style)
            ax.cuelearn_band = STREAM_BAND
            limit = part.groupby("n_samples")["bound"].mean()
            ax.plot(limit.index, limit, color=style["color"], linestyle="--", label=f"bound, {text}")
        least, radius = subset.groupby("n_samples")["loss"].mean(), subset["radius"].iloc[0]
        least = least[least >= 1.0]
        look = {"color": DARK, "linestyle": "-.", "marker": "x", "markersize": 4}
        ax.plot(least.index, least, label=rf"best kernel's hinge loss, $\|f\| \leq {radius:g}$", **look)
        visits = np.array(sorted(subset["n_samples"].unique()), dtype=float)
        ax.plot(visits, visits, color="black", linestyle=":", label="all visits")
        first = where(subset, n_samples=visits[0], delta=subset["delta"].min())
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

    One colour for each pair of delta and r, which sets the step.
    """
    kinds, losses = _kinds(table), distinct(table["loss"])
    size = (3.5 * len(kinds), 2.2 * len(losses) + 0.9)
    fig, axes = panels(len(kinds), len(losses), size=size, sharex=True, sharey="row")
    cases = _looks(distinct(zip(table["delta"], table["radius"], strict=True)))
    for row, loss in zip(axes, losses, strict=True):
        for ax, kind in zip(row, kinds, strict=True):
            subset = where(table, kind=kind, loss=loss)
            for (delta, radius), style in cases:
                part = where(subset, delta=delta, radius=radius)
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
    """Corollary 2: excess loss passed with probability epsilon, and how often the best kernel is found.

    Left, per stream, the kernel drawn from q_T and the largest in q_T; right the shares of runs.
    """
    kinds = _kinds(table)
    fig, axes = panels(len(kinds) + 1, size=(3.5 * (len(kinds) + 1), 4.1))
    sides = [
        (column, {"linestyle": line, "marker": marker, "markersize": 4}, rf"{column} {where} $q_T$")
        for column, line, marker, where in (("drawn", "-", "o", "from"), ("largest", "--", "s", "in"))
    ]
    epsilons = sorted(table["epsilon"].unique(), reverse=True)
    for ax, kind in zip(axes[0], kinds, strict=False):
        subset = where(table, kind=kind)
        for epsilon, color in zip(epsilons, (GREEN, ORANGE, PURPLE), strict=False):
            part = where(subset, epsilon=epsilon)
            for column, style, label in sides:
                style = {**style, "color": color, "geometric": bool((part[column] > 0.0).all())}
                curve(ax, part, "n_visits", column, label=rf"{label}, $\epsilon$ = {epsilon:g}", **style)
        visits = np.array(sorted(subset["n_visits"].unique()), dtype=float)
        start = subset.loc[subset["n_visits"] == visits[0], "largest"].mean()
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
    stamp(ax, "real" if kinds == ["pendigits"] else "real and simulated")
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

    `sides` and `errors` map titles to pictures.
    """
    fig = plt.figure(figsize=(9.6, 4.6), layout="constrained")
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
        ax.text(
            j,
            i,
            f"{value:.0f}",
            ha="center",
            va="center",
            fontsize=8,
            color="white" if value < 75 else "black",
        )
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
    beside = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
    beside |= {"fontsize": 7, "va": "center"}
    lowest = 100 * min(kernels["accuracy"].min(), chosen["accuracy"].min())
    for row, name in enumerate(names):
        subset = where(kernels, name=name).sort_values("accuracy", ascending=False)
        percent, few = 100 * subset["accuracy"].to_numpy(), min(5, len(subset) // 2)
        at = row + np.linspace(-0.3, 0.3, len(subset))
        ax.plot(percent, at, "o", color="#cccccc", ms=2, label="the other kernels")
        ax.plot(percent[:few], at[:few], "o", color=GREEN, ms=4, label="best kernels")
        ax.plot(percent[-few:], at[-few:], "o", color=ORANGE, ms=4, label="worst kernels")
        for right, k in ((6, 0), (120, -1)):
            text = f"{subset['kernel_name'].iloc[k]} {percent[k]:.0f}"
            ax.annotate(text, (1.0, row), (right, 0), **beside)
        subset = where(chosen, name=name, seed=chosen["seed"].min())
        for method in ("MuSVM", "OKS", "SOM"):
            style = method_style(method, marker="", linewidth=1.6, linestyle="-")
            reached = 100 * where(subset, method=method)["accuracy"].iloc[0]
            ax.plot([reached] * 2, [row - 0.42, row + 0.42], **style)
        chance = 100 * subset["chance"].iloc[0]
        ax.plot([chance] * 2, [row - 0.42, row + 0.42], "k:", label="larger class")
    for right, text in ((6, "best kernel [%]"), (120, "worst kernel [%]")):
        ax.annotate(text, (1.0, -0.75), (right, 0), fontweight="bold", **beside)
    ax.cuelearn_band = (
        "dots: one SVM on each kernel, the best and the worst on this test; lines: methods on the same split"
    )
    ax.set(xlabel="test accuracy [%]", xlim=(min(lowest - 2, 40), 101), ylim=(len(names) - 0.5, -0.5))
    ax.set_yticks(range(len(names)), [name.partition(" ")[2] for name in names], fontsize=8)
    ax.set_title(f"{len(names)} pairs of {SETS.get(names[0].split()[0], 'labels')}", pad=14)
    ax.grid(False, axis="y")
    legend(fig, ax, 4)
    return fig


def probabilities(tables, quality, best=5):
    """Kernel probabilities of OKS over the visits, a panel for each table; at the end, against the accuracy.

    The `best` kernels, with the largest probability at the end, have a colour and a name.
    """
    sides = [1.25] * len(tables) + [1.0]
    fig, (axes,) = panels(len(sides), size=(8.0, 4.0), sharey=True, width_ratios=sides)
    quality = quality.set_index("kernel")
    percent, names = 100 * quality["accuracy"], quality["kernel_name"]
    under = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "fontsize": 7, "frameon": False}
    for (title, table), ax, shade in zip(tables.items(), axes[:-1], ("white", BLUE), strict=False):
        grid = table.pivot(index="step", columns="kernel", values="probability")
        last = grid.iloc[-1]
        ax.plot(grid.index, grid, color="#cccccc", linewidth=0.6)
        for kernel, color in zip(last.nlargest(best).index, (BLUE, RED, GREEN, ORANGE, PURPLE), strict=False):
            label = f"{names[kernel]}: {last[kernel]:.2f} ({percent[kernel]:.0f}%)"
            ax.plot(grid.index, grid[kernel], color=color, linewidth=1.4, label=label)
        ax.axhline(1.0 / grid.shape[1], color="black", linestyle=":", linewidth=0.8)
        ax.set_title(title, fontsize=9)
        ax.set(xlabel="visits")
        ax.legend(**under)
        look = {"color": BLUE, "markerfacecolor": shade, "markersize": 4, "linestyle": ""}
        axes[-1].plot(percent[last.index], last, "o", **look, label=title.rpartition(", ")[2])
    axes[0].set(ylabel="kernel probability q (dotted: equal)", ylim=(0.0, None))
    axes[0].cuelearn_band = "named: the largest at the end, with it and the accuracy of an SVM on the kernel"
    axes[-1].set_title("at the end, all kernels", fontsize=9)
    axes[-1].set_xlabel("accuracy of an SVM\non the kernel [%]")
    axes[-1].legend(**under | {"bbox_to_anchor": (0.5, -0.3)})
    return fig


def selection_against_passes(table, musvm):
    """Accuracy of an SVM on the kernel that OKS and SOM choose, against passes; below, OKS minus SOM.

    A column for each set of pairs, thin lines: pairs; `musvm` has the accuracy of MuSVM for each.
    """
    means = table.groupby(["name", "method", "n_epochs"], as_index=False)["accuracy"].mean()
    means["set"] = means["name"].str.split().str[0]
    sets = [pair_set for pair_set in SETS if (means["set"] == pair_set).any()]
    fig, axes = panels(len(sets), 2, size=(8.0, 4.6), sharex=True, sharey="row")
    for column, pair_set in zip(axes.T, sets, strict=True):
        subset, percent = where(means, set=pair_set), {"runs": "name", "factor": 100}
        for method in ("OKS", "SOM"):
            mean = 100 * where(subset, method=method).groupby("n_epochs")["accuracy"].mean()
            column[0].plot(mean.index, mean, **method_style(method, label=f"kernel chosen by {method}"))
        line = method_style("MuSVM", marker="", linewidth=1.2, label="MuSVM (all kernels tried)")
        column[0].axhline(100 * np.mean([musvm[name] for name in subset["name"].unique()]), **line)
        each = subset.pivot(index="n_epochs", columns=["method", "name"], values="accuracy")
        column[1].plot(each.index, 100 * (each["OKS"] - each["SOM"]), color=GREY, linewidth=0.5, alpha=0.7)
        paired(column[1], subset, "n_epochs", "accuracy", "SOM", **percent)
        column[1].cuelearn_band = "means over pairs; below, pair by pair, band: 95% interval; thin: each pair"
        passes = sorted(subset["n_epochs"].unique())
        column[0].set_title(f"{subset['name'].nunique()} pairs of {SETS[pair_set]}", fontsize=9)
        column[1].set(xlabel="passes", xscale="log", xticks=passes, xticklabels=passes)
        column[1].xaxis.set_minor_formatter("")
    axes[0, 0].set_ylabel("test accuracy [%]")
    axes[1, 0].set_ylabel("OKS minus SOM [points]")
    legend(fig, axes[0, 0], 3)
    return fig
