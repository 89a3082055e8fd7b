"""Drawings of the multi-label chapter, from the numbers of its experiments."""

import numpy as np
from matplotlib.ticker import ScalarFormatter

from cuelearn.book.figures import PALETTE, band, method_style
from cuelearn.plots.common import curve, distinct, legend, log_axis, panels, where

SET_NAMES = {"yeast": "yeast genes", "emoji": "keywords of emoji", "scene": "scenes", "corel5k": "Corel5k"}


def _looks(groups):
    """A look for each kernel: colour by its group, dashes by its place there, solid for the last."""
    dashes = ("-", "--", ":", "-.")
    later = [groups[k + 1 :].count(group) for k, group in enumerate(groups)]
    return [
        {"color": PALETTE[group % len(PALETTE)], "linestyle": dashes[place % len(dashes)]}
        for group, place in zip(groups, later, strict=True)
    ]


def weights_over_time(table, kernels, groups):
    """Kernel weights against training time, a panel per method (ML-MKL figure 1).

    `table` has the columns method, seconds, and one for each kernel; per-class methods give the mean over
    classes. Kernels of one of the `groups` have one colour.
    """
    methods = distinct(table["method"])
    fig, axes = panels(len(methods), size=(3.1 * len(methods) + 1.2, 3.4), sharey=True)
    for ax, method in zip(axes[0], methods, strict=True):
        mine = where(table, method=method)
        for kernel, look in zip(kernels, _looks(groups), strict=True):
            ax.plot(mine["seconds"], mine[kernel], label=kernel, **look)
        ax.set(title=method_style(method)["label"], xlabel="seconds")
    axes[0, 0].set(ylabel="kernel weight (share)", ylim=(0.0, 1.0))
    legend(fig, axes[0, 0], 1, "outside right center")
    return fig


def auc_over_time(table):
    """Mean AUC against training time for ML-MKL-SA and -Sum, a panel per set (figure 2).

    `table` has the columns name, method, seed, seconds, auc.
    """
    names = distinct(table["name"])
    fig, axes = panels(len(names), size=(4.2 * len(names), 3.6))
    for ax, name in zip(axes[0], names, strict=True):
        for method in distinct(table["method"]):
            mine = where(table, name=name, method=method)
            style = method_style(method, marker="", alpha=0.8, linewidth=1.2)
            for _, run in mine.groupby("seed"):
                ax.plot(run["seconds"], run["auc"], **style)
                style["label"] = None
        ax.set(title=SET_NAMES.get(name, name), xlabel="seconds of training")
    axes[0, 0].set_ylabel("area under precision-recall curve")
    legend(fig, axes[0, 0], 2)
    return fig


def auc_over_iterations(table, column, label):
    """Mean AUC of SA against iterations, a line for each value of `column` (figures 3 and 4).

    Drawn is the difference from equal kernel weights in the same draw: draws differ by more than parameters
    do. `table` has the columns seed, iteration (0 is equal weights), auc, and `column`; `label` has one place
    for its value.
    """
    fig, ((ax,),) = panels(1, size=(5.0, 3.6))
    for k, value in enumerate(distinct(table[column])):
        grid = where(table, **{column: value}).pivot(index="seed", columns="iteration", values="auc")
        style = {"color": PALETTE[k], "marker": "os^Dv"[k % 5], "markersize": 3, "label": label.format(value)}
        band(ax, grid.columns, grid.sub(grid[0], axis=0).to_numpy(), alpha=0.12, **style)
    start = table.loc[table["iteration"] == 0].groupby("seed")["auc"].first().mean()
    ax.axhline(0.0, color="0.4", linewidth=0.8)
    ax.set_xscale("symlog", linthresh=10)
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.set(xlabel="iterations", ylabel=f"AUC, gain on equal kernel weights ({start:.3f})", xlim=(0, None))
    ax.legend()
    return fig


def cost_against_classes(table, fits):
    """SVMs and seconds until a fixed relative gap, against the classes: runs, means, fitted powers.

    `table` has the columns method, n_classes, seed, n_solved, seconds, reached; `fits` gives, for method and
    column, exponent and factor of the fitted power, and the largest number of classes that it was fitted to.
    """
    fig, axes = panels(2, size=(9.2, 3.9))
    for ax, column, what in zip(axes[0], ("n_solved", "seconds"), ("SVMs", "seconds"), strict=True):
        for k, method in enumerate(distinct(table["method"])):
            mine = where(table, method=method)
            mine = mine.assign(at=mine["n_classes"] * 1.04 ** (k - 1))  # beside each other
            exponent, factor, most = fits[method, column]
            style = method_style(method, linestyle="")
            style["label"] += f": exponent {exponent:.2f}"
            means = np.exp(np.log(mine[["at", column]]).groupby(mine["n_classes"]).mean())
            ax.plot(means["at"], means[column], **style)
            for reached, marker, size in ((True, ".", 4), (False, "x", 8)):
                part = where(mine, reached=reached)
                dots = {"linestyle": "", "marker": marker, "markersize": size, "alpha": 0.6}
                ax.plot(part["at"], part[column], color=style["color"], **dots)
            m = np.array([mine["n_classes"].min(), most], dtype=float)
            ax.plot(m, factor * m**exponent, color=style["color"], linestyle=":")
        log_axis(ax.xaxis, plain=True)
        log_axis(ax.yaxis)
        ax.set(xlabel="classes m", ylabel=f"{what} until the gap is reached")
        ax.legend()
    if not table["reached"].all():
        missed = {"marker": "x", "markersize": 8, "color": "0.4", "label": "gave up before the gap"}
        axes[0, 0].plot([], [], linestyle="", **missed)
        axes[0, 0].legend()
    return fig


def gap_over_iterations(table, fits):
    """Saddle-point gap of ML-MKL-SA's averages against iterations, with fitted exponents.

    `table` has the columns method, seed, n_iter, gap; `fits` the exponent of each method.
    """
    fig, ((ax,),) = panels(1, size=(5.4, 3.8))
    for method in distinct(table["method"]):
        label = f"{method_style(method)['label']}: exponent {fits[method]:.2f}"
        mine = where(table, method=method)
        grid = curve(ax, mine, "n_iter", "gap", method, geometric=True, label=label)
    T = np.array(grid.columns, dtype=float)
    ax.plot(T, table["gap"].max() * (T / T[0]) ** -0.5, color="0.4", linestyle=":", label="exponent -0.5")
    log_axis(ax.xaxis, plain=True)
    log_axis(ax.yaxis)
    ax.set(xlabel="iterations T", ylabel="saddle-point gap over the worst loss")
    ax.legend()
    return fig


def weights_and_classes(path, classes, groups):
    """Kernel weights over the iterations of one run of ML-MKL-SA, and how often it drew each class.

    `path` has a column for each kernel and a row for each iteration, `classes` the columns class, weight,
    draws.
    """
    fig, ((left, right),) = panels(2, size=(10.0, 3.6))
    for kernel, look in zip(path.columns, _looks(groups), strict=True):
        left.plot(path.index, path[kernel], label=kernel, **look)
    left.set(xlabel="iterations", ylabel="averaged kernel weight", ylim=(0.0, 1.0))
    left.legend(ncols=2, fontsize=7)
    at = np.arange(len(classes))
    right.bar(at - 0.2, classes["draws"] / classes["draws"].sum(), width=0.4, label="share of the draws")
    right.bar(at + 0.2, classes["weight"], width=0.4, label=r"averaged $\gamma$")
    right.set_xticks(at, classes["class"], rotation=90, fontsize=7)
    right.set(xlabel="class")
    right.legend()
    return fig
