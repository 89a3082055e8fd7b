"""Drawings of the multi-label chapter, from the numbers of its experiments."""

from textwrap import fill

import numpy as np
from matplotlib.cm import cividis
from matplotlib.colors import to_hex
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from companion.plots.common import curve, distinct, legend, log_axis, panels, where
from companion.run.figures import BLACK, BLUE, GREY, PALETTE, RED, band, method_style

SET_NAMES = {
    "yeast": "yeast genes",
    "emoji": "keywords of emoji",
    "leaves": "species of leaves",
    "scene": "scenes",
    "corel5k": "Corel5k",
}


def idea():
    """Weights of two kernels against weights of two classes: the worst class, and the saddle point."""
    p, start = np.linspace(0.0, 1.0, 101), np.array([0.5, 0.5])

    def losses(p):  # one class wants kernel 1, the other, which is harder, kernel 2
        return np.array([0.8 + 1.6 * (1.0 - p) ** 2, 1.2 + 0.9 * p**2])

    def step(weights, gradient):
        raised = weights * np.exp(gradient)
        return raised / raised.sum()

    kernels, classes, path = start, start, []
    for _ in range(1200):
        path.append((kernels[0], classes[0]))
        slope = classes @ np.array([-3.2 * (1.0 - kernels[0]), 1.8 * kernels[0]])
        kernels, classes = (
            step(kernels, -0.1 * slope * np.array([1.0, 0.0])),
            step(classes, 0.1 * losses(kernels[0])),
        )
    path = np.array(path)
    mean = np.cumsum(path, axis=0) / np.arange(1, len(path) + 1)[:, None]
    fig, ((left, right),) = panels(2, size=(8.0, 3.2))
    one, two = losses(p)
    left.plot(p, one, color=BLUE, label="$H_1$: wants kernel 1")
    left.plot(p, two, color=RED, label="$H_2$: wants kernel 2, harder")
    left.plot(p, np.maximum(one, two), color="black", linewidth=4, alpha=0.25, label="the worst class")
    for place, text in ((np.maximum(one, two).argmin(), "SA"), ((one + two).argmin(), "Sum")):
        left.axvline(p[place], color=GREY, linestyle=":")
        left.text(p[place] + 0.01, 0.6, text, fontsize=8)
    left.set(xlabel="weight $p_1$ of kernel 1", ylabel="cost of a class", ylim=(0.5, 2.9))
    left.set_title("the worst class (SA), or all together (Sum)?")
    left.legend(loc="upper right", fontsize=8)
    gamma = np.linspace(0.0, 1.0, 101)[:, None]
    right.contour(p, gamma[:, 0], gamma * one + (1.0 - gamma) * two, 14, colors="#C4C4C4", linewidths=0.7)
    right.plot(*path.T, color=BLACK, linewidth=1.0, linestyle="--", label="steps")
    right.plot(*mean.T, color=BLUE, linewidth=2.0, label="their averages")
    right.plot(*mean[-1], "*", color=RED, ms=11, label="saddle point")
    right.set(xlabel="weight $p_1$ of kernel 1: descends", ylabel=r"weight $\gamma_1$ of class 1: ascends")
    right.set_title(r"$L(p, \gamma) = \gamma_1 H_1 + \gamma_2 H_2$")
    right.legend(loc="upper right", fontsize=8, framealpha=1.0)
    return fig


def _looks(groups):
    """A look for each kernel: colour by its group, dashes by its place there, solid for the last."""
    dashes = ("-", "--", ":", "-.")
    later = [groups[k + 1 :].count(group) for k, group in enumerate(groups)]
    return [
        {"color": PALETTE[group % len(PALETTE)], "linestyle": dashes[place % len(dashes)]}
        for group, place in zip(groups, later, strict=True)
    ]


def _root(seconds):
    return np.sqrt(np.maximum(seconds, 0.0))


def weights_over_time(table, kernels, groups):
    """Kernel weights against training time, a panel per method (ML-MKL figure 1).

    Per-class methods give the mean over classes; kernels of one of the `groups` have one colour.
    """
    methods = distinct(table["method"])
    fig, axes = panels(2, -(-len(methods) // 2), size=(8.0, 5.0), sharex=True, sharey=True)
    for ax, method in zip(axes.flat, methods, strict=True):
        subset = where(table, method=method)
        for kernel, look in zip(kernels, _looks(groups), strict=True):
            ax.plot(subset["seconds"], subset[kernel], label=kernel, **look)
        end = subset["seconds"].max()
        ax.axvline(end, color="0.4", linewidth=0.8, linestyle=":")
        ax.set_title(f"{method_style(method)['label']}: {end:.2f} s")
    ax.set_xscale("function", functions=(_root, np.square))
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.set(xlim=(0.0, None), ylim=(0.0, None))
    for ax in axes[-1]:
        ax.set_xlabel("seconds of training (square-root axis)")
    for ax in axes[:, 0]:
        ax.set_ylabel("kernel weight (share)")
    legend(fig, axes[0, 0], 1, "outside right center")
    return fig


def thin_runs(ax, table, x, y, **style):
    """Each draw as a thin line."""
    for _, run in table.groupby("seed"):
        ax.plot(run[x], run[y], **{"linewidth": 0.7, "alpha": 0.35, **style, "label": None, "marker": ""})


def gains(table, *names):
    """A table with `gain`: AUC minus that of the same run at equal kernel weights, where it begins."""
    first = table.groupby([*names, "seed"])["auc"].transform("first")
    return table.assign(gain=table["auc"] - first)


def auc_over_time(table):
    """Mean AUC against training time for ML-MKL-SA and -Sum, a column per set (figure 2).

    Above single draws, below what they gain on equal kernel weights, where all begin.
    """
    names, table = distinct(table["name"]), gains(table, "name", "method")
    fig, axes = panels(len(names), 2, size=(4.2 * len(names), 5.8), sharex="col")
    for (top, low), name in zip(axes.T, names, strict=True):
        low.axhline(0.0, color="0.4", linewidth=0.8)
        for method in distinct(table["method"]):
            subset = where(table, name=name, method=method)
            thin_runs(top, subset, "seconds", "auc", **method_style(method, alpha=0.8, linewidth=1.0))
            thin_runs(low, subset, "seconds", "gain", **method_style(method))
            mean = subset.groupby("iteration")[["seconds", "gain"]].mean()
            low.plot(mean["seconds"], mean["gain"], **method_style(method, marker=""))
        top.set(title=SET_NAMES.get(name, name))
        low.set(xlabel="seconds of training")
        low.cuelearn_band = "thick: means over draws, at the mean time of an iteration; thin: single draws"
    axes[0, 0].set_ylabel("area under precision-recall curve")
    axes[1, 0].set_ylabel("gain on equal kernel weights")
    legend(fig, axes[1, 0], 2)
    return fig


def auc_over_iterations(table, column, label, base):
    """Mean AUC of SA against iterations, a line for each value of `column` (figures 3 and 4).

    Left what draws (thin) and their means gain on equal kernel weights, right the differences from `base`,
    draw by draw; `label` has one place for the value.
    """
    fig, ((left, right),) = panels(2, size=(8.0, 3.7))
    fig.get_layout_engine().set(wspace=0.05)
    values, table = distinct(table[column]), gains(table, column)
    shades = cividis(np.linspace(0.0, 0.9, len(values)))
    grids = {
        v: where(table, **{column: v}).pivot(index="seed", columns="iteration", values="auc") for v in values
    }
    for value, shade, marker in zip(values, shades, "os^D", strict=False):
        subset = where(table, **{column: value})
        style = {"color": to_hex(shade), "marker": marker, "markersize": 4, "label": label.format(value)}
        thin_runs(left, subset, "iteration", "gain", color=style["color"])
        mean = subset.groupby("iteration")["gain"].mean()
        left.plot(mean.index, mean, **style)
        if value != base:
            differences = grids[value] - grids[base]
            band(right, differences.columns, differences.to_numpy(), alpha=0.15, **style)
    left.cuelearn_band = "left: means of all draws, thin: single draws; right, draw by draw"
    start = table.loc[table["iteration"] == 0].groupby("seed")["auc"].first().mean()
    left.set(ylabel=f"AUC, gain on equal kernel weights ({start:.3f})")
    right.set(ylabel=f"AUC minus that of {label.format(base)}")
    legend(fig, left, len(values))
    for ax in (left, right):
        ax.axhline(0.0, color="0.4", linewidth=0.8)
        ax.set_xscale("symlog", linthresh=10)
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.set(xlabel="iterations", xlim=(0, 1.15 * table["iteration"].max()))
    return fig


def cost_against_classes(table, powers):
    """SVMs until a fixed relative gap, against the classes, a panel for each set.

    Small: runs, large: their geometric means, lines: the mean power of all draws; hollow: how often Sum
    combines kernels (SA does for every SVM).
    """
    names = distinct(table["name"])
    fig, axes = panels(len(names), size=(4.2 * len(names), 4.0), sharey=True)
    for ax, name in zip(axes[0], names, strict=True):
        for k, method in enumerate(distinct(table["method"])):
            subset, fit = where(table, name=name, method=method), where(powers, name=name, method=method)
            if subset.empty:
                continue
            subset = subset.assign(at=subset["n_classes"] * 1.05 ** (k - 1))  # beside each other
            style = method_style(method, linestyle="")
            color, label = style["color"], style.pop("label")
            for reached, marker, size in ((True, ".", 4), (False, "x", 8)):
                part = where(subset, reached=reached)
                ax.plot(part["at"], part["n_solved"], ls="", marker=marker, ms=size, alpha=0.6, color=color)
            means = geometric_means(subset, "n_solved")
            if len(fit):
                m, exponent = np.array(sorted(set(subset["n_classes"])), dtype=float), fit["exponent"].mean()
                ax.plot(m, np.exp(np.log(fit["factor"]).mean()) * m**exponent, color=color, linestyle=":")
                label += f": $m^{{{exponent:.2f}}}$"
            ax.plot(means["at"], means["n_solved"], label=label, **style)
            if method == "MLMKLSA":
                m = np.array(sorted(set(subset["n_classes"])), dtype=float)
                shape = np.cbrt(m) * np.sqrt(np.log(m))
                look = {"color": "0.6", "label": "paper, SA: $m^{1/3} \\sqrt{\\ln m}$"}
                ax.plot(m, means["n_solved"].iloc[0] * shape / shape[0], linewidth=4, zorder=0, **look)
            if method == "MLMKLSum":
                means = geometric_means(subset, "n_iter")
                hollow = {**style, "markerfacecolor": "white", "label": "Sum's combinations of kernels"}
                ax.plot(means["at"], means["n_iter"], **hollow)
        if not where(table, name=name)["reached"].all():
            ax.plot([], [], ls="", marker="x", ms=8, color="0.4", label="gave up before the gap")
        log_axis(ax.xaxis, plain=True)
        log_axis(ax.yaxis)
        ax.set(title=SET_NAMES.get(name, name), xlabel="classes m")
        ax.legend(fontsize=8, loc="upper left")
    axes[0, 0].set(ylabel="SVMs until the gap is reached", ylim=(None, 50 * table["n_solved"].max()))
    axes[0, 0].cuelearn_band = "small: runs, large: geometric means, lines: mean of each draw's power"
    return fig


def geometric_means(table, column):
    """Of `column` and `at`, for each number of classes."""
    return np.exp(np.log(table[["at", column]].astype(float)).groupby(table["n_classes"]).mean())


def gap_over_iterations(table, fits):
    """Saddle-point gap of ML-MKL-SA's averages against iterations, with fitted exponents.

    `table` has the columns method, seed, n_iter, gap; `fits` the exponent of each method.
    """
    fig, ((ax,),) = panels(1, size=(5.4, 3.8))
    for method in distinct(table["method"]):
        label = f"{method_style(method)['label']}: exponent {fits[method]:.2f}"
        subset = where(table, method=method)
        thin_runs(ax, subset, "n_iter", "gap", **method_style(method))
        grid = curve(ax, subset, "n_iter", "gap", method, geometric=True, label=label)
    T = np.array(grid.columns, dtype=float)
    ax.plot(T, table["gap"].max() * (T / T[0]) ** -0.5, color="0.4", linestyle=":", label="exponent -0.5")
    log_axis(ax.xaxis, plain=True)
    log_axis(ax.yaxis)
    ax.set(xlabel="iterations T", ylabel="saddle-point gap over the worst loss")
    ax.cuelearn_band += "; thin: single draws"
    ax.legend()
    return fig


def weights_and_classes(axes, path, classes, groups, names):
    """For a slider: kernel weights over one run of ML-MKL-SA, and how often it drew each class."""
    left, right = axes
    for kernel, look in zip(path.columns, _looks(groups), strict=True):
        left.plot(path.index, path[kernel], label=kernel, **look)
    left.set(xlabel="iterations", ylabel="averaged kernel weight")
    left.set(xlim=(0, 2.0 * path.index[-1]), ylim=(0.0, 1.0))
    left.set_xticks(np.linspace(0, path.index[-1], 5).astype(int))
    left.legend(fontsize=7, loc="center right")
    at = np.array([names.index(name) for name in classes["class"]])
    draws = classes["draws"] / classes["draws"].sum()
    drawn = right.bar(at - 0.2, draws, width=0.4, color=BLUE, label="share of the draws")
    weight = right.bar(at + 0.2, classes["weight"], width=0.4, color=RED, label=r"averaged $\gamma$")
    right.set_xticks(range(len(names)), range(1, len(names) + 1), fontsize=7)
    right.set(xlabel="class", xlim=(-0.6, len(names) - 0.4), ylim=(0.0, 1.0))
    right.legend(handles=[drawn, weight], loc="upper right", fontsize=7)


def keywords_and_things(images, named, share):
    """Drawings with their keywords, beside the share of a keyword's things that have another one, too."""
    fig, axes = panels(6, 2, size=(8.2, 5.1), gridspec_kw={"width_ratios": [1.2] * 4 + [1.5] * 2})
    for ax, picture, (name, keywords) in zip(axes[:, :4].flat, images, named, strict=True):
        ax.imshow(picture)
        ax.set_title(name, fontsize=7)
        ax.set_xlabel(fill(", ".join(keywords), 15), fontsize=7.5)
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
    grid = axes[0, 0].get_gridspec()
    for ax in axes[:, 4:].flat:
        ax.remove()
    ax = fig.add_subplot(grid[:, 4:])
    shown = ax.imshow(np.where(np.eye(len(share)), np.nan, share), cmap="cividis", vmin=0.0)
    ax.set_xticks(range(len(share)), share.columns, rotation=90, fontsize=8)
    ax.set_yticks(range(len(share)), share.index, fontsize=8)
    ax.grid(False)
    fig.colorbar(
        shown,
        ax=ax,
        shrink=0.7,
        location="top",
        label="of the row's things, share\nthat have the column's keyword, too",
    )
    return fig
