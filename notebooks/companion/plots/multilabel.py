"""Drawings of the multi-label chapter, from the numbers of its experiments."""

from itertools import combinations
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.ticker import ScalarFormatter

from companion.multilabel.claims import at_the_end, largest_falls
from companion.plots.common import (
    along,
    curve,
    distinct,
    each_run,
    forest,
    intervals,
    legend,
    log_axis,
    matrix,
    name_ends,
    panels,
    show_picture,
    where,
)
from companion.run.figures import BLACK, BLUE, GREY, PALETTE, RED, method_style, name_of


def short(method):
    """A method's label with its form in brackets, without what all shared ones have in common."""
    name, _, form = name_of(method).removeprefix("ML-MKL-").partition(", ")
    return f"{name} ({form})" if form else name


def idea():
    """Cost of two classes against the weights of two kernels: the worst class, and the sum."""
    p = np.linspace(0.0, 1.0, 101)
    first = 0.8 + 1.6 * (1.0 - p) ** 2
    second = 1.2 + 0.9 * p**2
    worst = np.maximum(first, second)
    at = {"SA": p[worst.argmin()], "Sum": p[(first + second).argmin()]}
    fig, ((ax,),) = panels(1, size=(5.6, 3.4))
    ax.plot(p, first, color=BLUE)
    ax.plot(p, second, color=RED, linestyle="-.")
    ax.plot(p, worst, color="black", linewidth=4, alpha=0.25)
    ax.text(0.03, 2.4, "$H_1$: class 1 wants kernel 1", color=BLUE)
    ax.text(0.03, 1.05, "$H_2$: class 2 wants kernel 2", color=RED)
    ax.text(0.8, 2.15, "grey: the worst\nof the two", ha="center")
    for (name, place), style in zip(at.items(), ("--", ":"), strict=True):
        ax.axvline(place, color=GREY, linestyle=style)
        ax.text(place + 0.01, 0.72, name)
    ax.set(xlabel="weight $p_1$ of kernel 1", ylabel="cost of a class", ylim=(0.65, 2.55))
    return fig


def _weights(ax, table, x, kernels, groups):
    """Weights of kernels; those of a group, up to three, have one colour."""
    dashes = ("-", "--", ":")
    for j, (kernel, group) in enumerate(zip(kernels, groups, strict=True)):
        ax.plot(table[x], table[kernel], dashes[j % 3], color=PALETTE[group % len(PALETTE)], label=kernel)


def weights_over_time(table, kernels):
    """The largest kernel weight of each method against training time, and the weights of all at its end."""
    methods = distinct(table["method"])
    fig, ((top,), (bottom,)) = panels(1, 2, size=(5.8, 6.0), height_ratios=(1.0, 1.1))
    ends = {}
    for method in methods:
        weights = where(table, method=method).set_index("seconds")[kernels]
        ends[short(method)] = weights.iloc[-1]
        largest = weights.max(axis=1)[weights.index > 0]
        label = f"{short(method)}: at most {largest.max():.2f}"
        top.plot(largest, **method_style(method, label=label, markevery=[-1], markersize=7))
    top.axhline(1.0 / len(kernels), color=GREY, linewidth=0.8, linestyle=":", label="equal weights")
    top.set(xlabel="CPU seconds of training (marker: the end)", ylabel="largest kernel weight")
    log_axis(top.xaxis, top.yaxis, plain=True)
    at_end = 100 * pd.DataFrame(ends).sort_values(short(methods[0]), ascending=False)
    matrix(bottom, at_end.T, numbers="{:.0f}", rotation=90, aspect="auto", cmap="Blues")
    bottom.set_title("weights at the end [%]", fontsize=9)
    legend(fig, top, 2)
    return fig


def auc_over_time(table):
    """AUC of the weights in use, gain on equal ones over time, and its largest falls: for each set."""
    names = distinct(table["name"])
    methods = distinct(table["method"])
    colors = [method_style(method)["color"] for method in methods]
    fig, axes = panels(1, 2 * len(names), size=(5.6, 4.6 * len(names)), height_ratios=[2.4, 1.6] * len(names))
    for name, top, bottom in zip(names, axes[::2, 0], axes[1::2, 0], strict=True):
        runs = where(table, name=name)
        means = runs.groupby(["method", "at"])[["seconds", "present"]].mean()
        for method in methods:
            gain = means.loc[method].set_index("seconds")["present"]
            gain = gain.iloc[1:] - gain.iloc[0]
            top.plot(gain, **method_style(method, marker="", label=short(method)))
        top.axhline(0.0, color=GREY, linewidth=0.8)
        top.cuelearn_band = f"curves: means of {runs['seed'].nunique()} runs"
        top.set(title=name, xlabel="CPU seconds of training", ylabel="AUC, gain on equal weights")
        log_axis(top.xaxis, plain=True)
        name_ends(top, gap=0.1)
        falls = largest_falls(runs).unstack("method").rename(columns=short)
        bottom.axvline(0.01, color=GREY, linestyle=":")
        xlabel = "largest fall of AUC between looks (dotted: one point)"
        forest(bottom, intervals(falls[[*map(short, methods)]]).assign(color=colors), xlabel, digits=3)
        bottom.locator_params(axis="x", nbins=5)
    return fig


def auc_over_iterations(table, column, label):
    """AUC for each value of `column`, gain on equal weights, and all differences at the end, draw by draw."""
    values = distinct(table[column])
    pairs = list(combinations(values, 2))
    heights = [2.8, 0.3 * len(pairs) + 0.6]
    fig, ((top,), (bottom,)) = panels(1, 2, size=(5.6, sum(heights) + 0.4), height_ratios=heights)
    for value, color in zip(values, PALETTE, strict=False):
        auc = where(table, **{column: value}).groupby("at")["auc"].mean()
        gain = auc - auc.iloc[0]
        top.plot(gain, color=color, label=label.format(value))
    top.axhline(0.0, color=GREY, linewidth=0.8)
    top.cuelearn_band = f"curves: means of {table['seed'].nunique()} runs"
    top.set_xscale("symlog", linthresh=10)
    top.xaxis.set_major_formatter(ScalarFormatter())
    top.set(xlabel="iterations", xlim=(0, gain.index[-1]), ylabel="AUC, gain on equal weights")
    name_ends(top)
    auc = at_the_end(table, column)
    rows = {f"{label.format(second)} minus {first:g}": auc[second] - auc[first] for first, second in pairs}
    forest(bottom, intervals(rows), "difference of AUC after the last iteration", digits=4)
    bottom.locator_params(axis="x", nbins=5)
    return fig


def cost_against_classes(table, exponents):
    """CPU seconds and SVMs until a fixed relative gap, against the classes, a column of panels for each set.

    `exponents`: column -> (set, method) -> power of the classes.
    """
    names = distinct(table["name"])
    fig, axes = panels(len(names), 2, size=(4.0 * len(names), 5.6), sharex="col", sharey="row")
    for name, column in zip(names, axes.T, strict=True):
        of_set = where(table, name=name)
        for ax, cost in zip(column, ("seconds", "n_solved"), strict=True):
            for method in distinct(of_set["method"]):
                runs = where(of_set, method=method)
                label = short(method)
                if (name, method) in exponents[cost]:
                    label += f":\n$m^{{{exponents[cost][name, method]:.2f}}}$"
                curve(ax, runs, "n_classes", cost, method, geometric=True, draw=each_run, label=label)
                lost = where(runs, reached=False)
                ax.plot(lost["n_classes"], lost[cost], "x", color=method_style(method)["color"])
            m = np.unique(of_set["n_classes"])
            paper = np.cbrt(m) * np.sqrt(np.log(m))
            least = of_set[cost].min()
            label = "paper, SA:\n$m^{1/3} \\sqrt{\\ln m}$"
            ax.plot(m, least * paper / paper[0], color=GREY, linestyle=":", label=label)
            log_axis(ax.xaxis, plain=True)
            log_axis(ax.yaxis)
            ax.autoscale_view()  # labels are placed within the limits
            name_ends(ax, gap=0.18)
        column[0].set_title(name)
        column[1].set_xlabel("classes m")
    axes[0, 0].set_ylabel("CPU seconds until the gap")
    unreached = "" if table["reached"].all() else " (x: abandoned before)"
    axes[1, 0].set_ylabel(f"SVMs until the gap{unreached}")
    return fig


def gap_over_iterations(table, exponents):
    """Saddle-point gap of ML-MKL-SA's averages against iterations."""
    fig, ((ax,),) = panels(1, size=(5.4, 3.8))
    for method, exponent in exponents.items():
        label = f"{name_of(method)}: exponent {exponent:.2f}"
        curve(ax, where(table, method=method), "n_iter", "gap", method, geometric=True, label=label)
    T = np.unique(table["n_iter"])
    ax.plot(T, table["gap"].max() * (T / T[0]) ** -0.5, color=GREY, linestyle=":", label="exponent -0.5")
    log_axis(ax.xaxis, plain=True)
    log_axis(ax.yaxis)
    ax.set(xlabel="iterations T", ylabel="saddle-point gap over the worst loss")
    ax.legend()
    return fig


def weights_and_classes(axes, path, classes, groups, names):
    """For a slider: kernel weights over one run of ML-MKL-SA, and how often it drew each class."""
    left, right = axes
    _weights(left, path.reset_index(), "index", path.columns, groups)
    left.set(xlabel="iterations", ylabel="averaged kernel weight", ylim=(0.0, 1.0))
    left.legend(fontsize=7, loc="upper right", ncols=2)
    at = np.array([names.index(name) for name in classes["class"]])
    draws = classes["draws"] / classes["draws"].sum()
    right.bar(at - 0.2, draws, width=0.4, color=BLUE, label="share of the draws")
    right.bar(at + 0.2, classes["weight"], width=0.4, color=RED, label=r"averaged $\gamma$")
    right.set_xticks(range(len(names)), range(1, len(names) + 1), fontsize=7)
    right.set(xlabel="class", xlim=(-0.6, len(names) - 0.4), ylim=(0.0, 1.0))
    right.legend(fontsize=7)


def largest_weight(ax, weights, delta):
    """For a slider: the largest averaged gamma at every delta; `weights` has those of all classes."""
    along(ax, [*weights], [each.max() for each in weights.values()], delta, color=RED)
    equal = 1.0 / len(weights[delta])
    ax.axhline(equal, color=BLACK, linestyle=":", linewidth=0.8)
    ax.text(1.0, equal + 0.02, "all equal", ha="right", fontsize=8)
    ax.set(ylim=(0.0, 1.0), xlabel=r"$\delta$", ylabel=r"largest averaged $\gamma$")
    ax.set_title(f"largest: {weights[delta].max():.2f}")


def keywords_and_things(images, named):
    """Drawings of things, each with its name and its keywords."""
    fig, axes = panels(4, 2, size=(6.0, 4.4))
    for ax, picture, (name, keywords) in zip(axes.flat, images, named, strict=True):
        show_picture(ax, picture, name)
        ax.set_xlabel(fill(", ".join(keywords), 24), fontsize=7.5)
    return fig
