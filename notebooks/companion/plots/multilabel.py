"""Drawings of the multi-label chapter, from the numbers of its experiments."""

from textwrap import fill

import numpy as np
from matplotlib.cm import cividis
from matplotlib.colors import to_hex
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from companion.plots.common import curve, distinct, legend, log_axis, panels, where
from companion.run.figures import BLUE, GREY, PALETTE, RED, band, method_style

SET_NAMES = {
    "yeast": "yeast genes",
    "emoji": "keywords of emoji",
    "leaves": "species of leaves",
    "scene": "scenes",
    "corel5k": "Corel5k",
}


def idea():
    """Cost of two classes against the weights of two kernels: the worst class, and the sum."""
    p = np.linspace(0.0, 1.0, 101)
    one, two = 0.8 + 1.6 * (1.0 - p) ** 2, 1.2 + 0.9 * p**2
    fig, ((ax,),) = panels(1, size=(5.0, 3.2))
    ax.plot(p, one, color=BLUE, label="$H_1$: wants kernel 1")
    ax.plot(p, two, color=RED, label="$H_2$: wants kernel 2, harder")
    ax.plot(p, np.maximum(one, two), color="black", linewidth=4, alpha=0.25, label="the worst class")
    for place, text in ((np.maximum(one, two).argmin(), "SA"), ((one + two).argmin(), "Sum")):
        ax.axvline(p[place], color=GREY, linestyle=":")
        ax.text(p[place] + 0.01, 0.6, text, fontsize=8)
    ax.set(xlabel="weight $p_1$ of kernel 1", ylabel="cost of a class", ylim=(0.5, 2.9))
    ax.legend(loc="upper right", fontsize=8)
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
    """Kernel weights against training time, a panel per method; kernels of a group have one colour."""
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
    """What ML-MKL-SA and -Sum gain on equal kernel weights against training time, a column per set."""
    names, table = distinct(table["name"]), gains(table, "name", "method")
    fig, axes = panels(len(names), size=(4.2 * len(names), 3.6))
    for ax, name in zip(axes[0], names, strict=True):
        ax.axhline(0.0, color="0.4", linewidth=0.8)
        for method in distinct(table["method"]):
            subset = where(table, name=name, method=method)
            thin_runs(ax, subset, "seconds", "gain", **method_style(method))
            mean = subset.groupby("iteration")[["seconds", "gain"]].mean()
            ax.plot(mean["seconds"], mean["gain"], **method_style(method, marker=""))
        ax.set(title=SET_NAMES.get(name, name), xlabel="seconds of training")
        ax.cuelearn_band = "thick: means over draws, at the mean time of an iteration; thin: single draws"
    axes[0, 0].set_ylabel("AUC, gain on equal kernel weights")
    legend(fig, axes[0, 0], 2)
    return fig


def auc_over_iterations(table, column, label, base):
    """AUC of SA against iterations for each value of `column`: left what draws (thin) and their means gain on
    equal kernel weights, right the differences from `base`, draw by draw."""
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
    """SVMs until a fixed relative gap, against the classes, a panel for each set."""
    names = distinct(table["name"])
    fig, axes = panels(len(names), size=(4.2 * len(names), 4.0), sharey=True)
    for ax, name in zip(axes[0], names, strict=True):
        for method in distinct(where(table, name=name)["method"]):
            subset, fit = where(table, name=name, method=method), where(powers, name=name, method=method)
            style = method_style(method, linestyle="")
            color, label = style["color"], style.pop("label")
            for reached, marker, size in ((True, ".", 4), (False, "x", 8)):
                part = where(subset, reached=reached)
                look = {"ls": "", "marker": marker, "ms": size, "alpha": 0.6, "color": color}
                ax.plot(part["n_classes"], part["n_solved"], **look)
            means = np.exp(np.log(subset["n_solved"].astype(float)).groupby(subset["n_classes"]).mean())
            m = means.index.to_numpy(dtype=float)
            if len(fit):
                exponent = fit["exponent"].mean()
                ax.plot(m, np.exp(np.log(fit["factor"]).mean()) * m**exponent, color=color, linestyle=":")
                label += f": $m^{{{exponent:.2f}}}$"
            ax.plot(m, means, label=label, **style)
            if method == "MLMKLSA":
                shape = np.cbrt(m) * np.sqrt(np.log(m))
                look = {"color": "0.6", "label": "paper, SA: $m^{1/3} \\sqrt{\\ln m}$"}
                ax.plot(m, means.iloc[0] * shape / shape[0], linewidth=4, zorder=0, **look)
        if not where(table, name=name)["reached"].all():
            ax.plot([], [], ls="", marker="x", ms=8, color="0.4", label="gave up before the gap")
        log_axis(ax.xaxis, plain=True)
        log_axis(ax.yaxis)
        ax.set(title=SET_NAMES.get(name, name), xlabel="classes m")
        ax.legend(fontsize=8, loc="upper left")
    axes[0, 0].set(ylabel="SVMs until the gap is reached", ylim=(None, 50 * table["n_solved"].max()))
    axes[0, 0].cuelearn_band = "small: runs, large: geometric means, lines: mean of each draw's power"
    return fig


def gap_over_iterations(table, fits):
    """Saddle-point gap of ML-MKL-SA's averages against iterations, with the exponent of each method."""
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


def keywords_and_things(images, named):
    """Drawings with their keywords."""
    fig, axes = panels(4, 2, size=(6.0, 4.4))
    for ax, picture, (name, keywords) in zip(axes.flat, images, named, strict=True):
        ax.imshow(picture)
        ax.set_title(name, fontsize=7)
        ax.set_xlabel(fill(", ".join(keywords), 24), fontsize=7.5)
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
    return fig
