"""Drawings of the multi-label section of the MKL chapter. Every function takes the numbers of an experiment and returns a figure."""

import matplotlib.pyplot as plt
import numpy as np

from cuelearn.figures import PALETTE, band, method_style
from cuelearn.plots.mkl import log_axis

SET_NAMES = {"yeast": "yeast genes", "letter": "letters", "scene": "scenes", "corel5k": "Corel5k"}


def weights_over_time(table, kernels):
    """Kernel weights against training time, a panel per method (ML-MKL figure 1).

    Parameters
    ----------
    table : DataFrame
        Columns method, seconds, and one for each kernel; per-class methods give the mean over classes.
    kernels : sequence of str
    """
    methods = list(dict.fromkeys(table["method"]))
    fig, axes = plt.subplots(1, len(methods), figsize=(3.1 * len(methods) + 1.2, 3.4), layout="constrained", sharey=True, squeeze=False)
    for ax, method in zip(axes[0], methods, strict=True):
        mine = table[table["method"] == method]
        for k, kernel in enumerate(kernels):
            ax.plot(mine["seconds"], mine[kernel], color=PALETTE[k % len(PALETTE)], linestyle=("-", "--")[k // len(PALETTE)], label=kernel)
        ax.set(title=method_style(method)["label"], xlabel="seconds")
    axes[0, 0].set(ylabel="kernel weight", ylim=(0.0, 1.0))
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center")
    return fig


def auc_over_time(table):
    """Mean AUC against training time for ML-MKL-SA and -Sum, a panel per set (figure 2).

    Parameters
    ----------
    table : DataFrame
        Columns name, method, seed, seconds, auc.
    """
    names = list(dict.fromkeys(table["name"]))
    fig, axes = plt.subplots(1, len(names), figsize=(4.2 * len(names), 3.6), layout="constrained", squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        for method in dict.fromkeys(table["method"]):
            mine = table[(table["name"] == name) & (table["method"] == method)]
            for k, (_, run) in enumerate(mine.groupby("seed")):
                style = method_style(method, marker="")
                style.update(label=style["label"] if k == 0 else None, alpha=0.8, linewidth=1.2)
                ax.plot(run["seconds"], run["auc"], **style)
        ax.set(title=SET_NAMES.get(name, name), xlabel="seconds of training")
    axes[0, 0].set_ylabel("area under precision-recall curve")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return fig


def auc_over_iterations(table, column, label):
    """Mean AUC of SA against iterations, a line for each value of one parameter (figures 3 and 4).

    Parameters
    ----------
    table : DataFrame
        Columns seed, iteration, auc, and `column`.
    column : str
    label : str
        With one place for the value.
    """
    fig, ax = plt.subplots(figsize=(5.0, 3.6), layout="constrained")
    for k, value in enumerate(dict.fromkeys(table[column])):
        grid = table[table[column] == value].pivot(index="seed", columns="iteration", values="auc")
        style = dict(color=PALETTE[k], marker="os^Dv"[k % 5], markersize=3, label=label.format(value))
        band(ax, grid.columns, grid.to_numpy(), alpha=0.12, **style)
    ax.set(xlabel="iterations", ylabel="area under precision-recall curve")
    ax.legend()
    return fig


def cost_against_classes(table, fits):
    """SVMs solved until a fixed relative gap, against the number of classes, with the fitted exponents.

    Parameters
    ----------
    table : DataFrame
        Columns method, n_classes, seed, n_solved.
    fits : dict of str to (float, float)
        Method -> exponent and factor of the fitted power.
    """
    fig, ax = plt.subplots(figsize=(5.2, 3.8), layout="constrained")
    for method in dict.fromkeys(table["method"]):
        grid = table[table["method"] == method].pivot(index="seed", columns="n_classes", values="n_solved")
        exponent, factor = fits[method]
        style = method_style(method, linestyle="-")
        style["label"] = f"{style['label']}: exponent {exponent:.2f}"
        band(ax, grid.columns, grid.to_numpy(), geometric=True, **style)
        m = np.array(grid.columns, dtype=float)
        ax.plot(m, factor * m**exponent, color=style["color"], linestyle=":")
    log_axis(ax.xaxis, plain=True)
    log_axis(ax.yaxis, plain=True)
    ax.set(xlabel="classes m", ylabel="SVMs until the gap is reached")
    ax.legend()
    return fig
