"""Drawings of the MKTL chapter, from the numbers of its experiments."""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from companion.mktl.claims import FEW, WORSE_IN_CLASS
from companion.plots import common
from companion.plots.common import (
    along,
    distinct,
    each_run,
    facets,
    forest,
    intervals,
    legend,
    log_axis,
    matrix,
    mosaic,
    name_ends,
    panels,
    show_picture,
    where,
)
from companion.run.figures import BLACK, BLUE, GREY, PALETTE, band, method_style, name_of, stamp

# bands, but few runs one by one
curve = partial(common.curve, draw=each_run)
curves = partial(common.curves, draw=each_run)
paired = partial(common.paired, draw=each_run)

SMALL = 7.0
#: One for each model of priors.
MARKERS = "os^Dv"


def labels(methods, without=""):
    """The labels of methods, without an ending that all of them would have."""
    return {method: name_of(method).removesuffix(without) for method in methods}


WEIGHTED = ["MKTL weighted", "MultiKT", "AverageTL weighted", "PriorFeatures weighted", "NoTransfer weighted"]
#: Methods of figure 6.2 with equal class weights, by name; the thesis weighs the classes in two of them.
EQUAL = labels(WEIGHTED, ", weighted")
AS_PRINTED = labels(["MKTL weighted", "MultiKT", "MKTL", "AverageTL", "PriorFeatures", "NoTransfer"])


def idea():
    """Kernels of a cue and of three priors' scores; below, the share of each after one step, at several p."""
    y = np.repeat([1.0, -1.0], 3)
    x = np.array([0.0, 0.3, 0.6, 2.4, 2.7, 3.0])
    scores = {
        "prior 1: it is a lion": np.array([1.5, 0.1, 1.2, -0.8, 0.3, -1.0]),
        "prior 2: it is a whale": np.array([-0.4, -1.5, 0.2, -1.3, 0.7, -1.2]),
        "prior 3: it is a bus": np.array([1.0, -0.3, 0.8, 0.6, -0.9, 0.4]),
    }
    kernels = {"cue: shape": np.exp(-0.5 * np.subtract.outer(x, x) ** 2)}
    kernels |= {name: np.outer(s, s) / np.mean(s**2) for name, s in scores.items()}
    norms = np.sqrt([y @ kernel @ y for kernel in kernels.values()])
    fig, axes = panels(4, 2, size=(8.0, 4.0), sharey="row")
    for ax, (name, kernel) in zip(axes[0], kernels.items(), strict=True):
        show_picture(ax, kernel, name, cmap="RdBu", vmin=-1.8, vmax=1.8)
        ax.set_xticks([1, 4], ["tigers", "tulips"])
    for p in (2.0, 1.5, 1.1):
        weights = norms ** (p / (p - 1.0) - 1.0)
        for ax, share in zip(axes[1], weights / weights.sum(), strict=True):
            ax.bar(f"$p$ = {p:g}", share, color=BLUE)
    axes[1, 0].set_ylabel("share of each kernel")
    return fig


def things(known, new, table, methods):
    """Pictures of known and new animals, (things, styles, ...); below, which new one is taken for which."""
    layout = [["known"] * 3 + ["new"] * 3, np.repeat(methods, 2).tolist()]
    fig, axes = plt.subplot_mosaic(layout, figsize=(9.0, 5.4), layout="constrained", height_ratios=(2, 3))
    show_picture(axes["known"], mosaic(known[:, 0], 10), "known animals: a model on colours and words")
    drawings = mosaic(np.concatenate(new.swapaxes(0, 1)), len(new))
    show_picture(axes["new"], drawings, "new ones by shape: five of eight drawings")
    for method in methods:
        share = where(table, method=method).pivot(index="true", columns="said", values="share")
        share = 100.0 * share.reindex(columns=share.index).fillna(0.0)
        matrix(axes[method], share, numbers="{:.0f}", rotation=90, fontsize=SMALL, cmap="Blues")
        title = f"{name_of(method)}: {np.diag(share).mean():.0f}% right"
        axes[method].set(title=title, xlabel="taken for [% of the test pictures]", ylabel="is")
    for name in ("known", "new"):
        axes[name].set_axis_off()
    return fig


def schematic(parts, kernel_part, models):
    """Figure 6.1: the scores of one sample, by prior model, times the weights of its class are parts."""
    fig, (axes,) = panels(3, size=(8.0, 5.0), sharey=True)
    titles = {"score": "what priors say (scaled)", "weight": "× weight", "part": "= part of the score"}
    for ax, (column, title) in zip(axes, titles.items(), strict=True):
        for model in models:
            own = parts[parts["prior"].isin(model.classes)]
            bars = ax.barh(own["prior"], own[column], label=model.name)
            ax.bar_label(bars, fmt="{:z.2f}", fontsize=SMALL, padding=3)
        ax.axvline(0.0, color=BLACK, linewidth=0.8)
        ax.set_title(title)
        ax.margins(x=0.3)
    total = kernel_part + parts["part"].sum()
    bars = axes[2].barh(["kernel", "sum"], [kernel_part, total], color=GREY)
    axes[2].bar_label(bars, fmt="{:z.2f}", fontsize=SMALL, padding=3)
    axes[2].invert_yaxis()
    legend(fig, axes[:1], 1, "outside lower center")
    return fig


def binary_mean(table):
    """Figure 6.2, left: accuracies, and MKTL's differences to its rivals, paired by target.

    Above every method has class weights, below only those that have them in the thesis.
    """
    each = table.assign(accuracy=100.0 * table["accuracy"])
    each = each.pivot_table(index="target", columns=["method", "n_positive"], values="accuracy")
    parts = {"every method with class weights": EQUAL, "class weights as in the thesis": AS_PRINTED}
    differences = [_minus_rivals(each, names) for names in parts.values()]
    heights = [inches for rows in differences for inches in (2.4, 0.3 + 0.17 * len(rows))]
    fig, axes = panels(1, 4, size=(6.0, 2.4 + sum(heights)), height_ratios=heights)
    upper = axes[::2, 0]
    lower = axes[1::2, 0]
    for ax, (title, names) in zip(upper, parts.items(), strict=True):
        ax.set_title(title)
        _named_curves(ax, each, names)
    minus = "weighted MKTL minus this method [points]\nby number of positives; right of 0: MKTL is better"
    for ax, rows in zip(lower, differences, strict=True):
        forest(ax, rows, minus)
        ax.tick_params(axis="y", labelsize=8)
    return fig


def _minus_rivals(each, names):
    """Weighted MKTL minus each other method, mean and interval over targets, with few and many samples."""
    n_positive = each.columns.get_level_values("n_positive")
    rows = {}
    colors = []
    for rival in names:
        for few in (True, False):
            columns = n_positive[(n_positive <= FEW) == few].unique()
            if rival != "MKTL weighted" and columns.size:
                numbers = " to ".join(map(str, distinct([columns.min(), columns.max()])))
                gain = (each["MKTL weighted"] - each[rival])[columns].mean(axis=1)
                rows[f"{names[rival]}, {numbers}"] = gain
                colors.append(method_style(rival)["color"])
    return intervals(rows).assign(color=colors)


def _named_curves(ax, each, names):
    """Mean over targets of each method, named at its end; weighted MKTL has a band."""
    for method, name in names.items():
        style = method_style(method, label=name)
        if method == "MKTL weighted":
            band(ax, each[method].columns, each[method].to_numpy(), **style)
        else:
            ax.plot(each[method].mean(), **style)
    ax.cuelearn_band = ax.cuelearn_band.replace("runs", "targets")
    ax.set(xlabel="positive training samples", ylabel="test accuracy [%]")
    log_axis(ax.xaxis, plain=True)
    name_ends(ax)


def gains_by_target(table, weights=" weighted"):
    """MKTL minus Prior-Features for each target of figure 6.2, in points: mean and interval over draws."""
    rows = {}
    for target, runs in table.groupby("target"):
        draws = 100.0 * runs.groupby(["seed", "method"])["accuracy"].mean().unstack()
        rows[target] = draws[f"MKTL{weights}"] - draws[f"PriorFeatures{weights}"]
    return intervals(rows).sort_values("number", ascending=False)


def binary_classes(table):
    """Figure 6.2, right: MKTL minus Prior-Features for each target, both with class weights, both without."""
    order = gains_by_target(table).index
    fig, (axes,) = panels(2, size=(6.0, 1.2 + 0.19 * len(order)), sharey=True)
    titles = {" weighted": "both with class weights", "": "both without"}
    for ax, (weights, title) in zip(axes, titles.items(), strict=True):
        forest(ax, gains_by_target(table, weights).loc[order], "points")
        ax.axvline(-100.0 * WORSE_IN_CLASS, color=BLACK, linestyle=":")
        ax.set_title(title)
        ax.tick_params(axis="y", labelsize=8)
        ax.cuelearn_band += "; dotted: clearly worse, one test picture"
    fig.supxlabel("MKTL minus Prior-Features, over all numbers of samples", fontsize=10)
    return fig


def multiclass(table):
    """Figure 6.3: a panel for each task and number of priors; No-Transfer needs none, and is in each."""
    groups = table.groupby(["name", "n_priors"], sort=False)
    fig, (axes,) = panels(len(groups), size=(2.7 * len(groups), 3.7))
    for ax, ((name, n_priors), _) in zip(axes, groups, strict=True):
        task = where(table, name=name)
        runs = task[(task["n_priors"] == n_priors) | (task["method"] == "NoTransfer")]
        curves(ax, runs, "n_per_class", "accuracy", factor=100.0)
        ax.set(title=f"{name}: {n_priors} priors", xlabel="training samples per class")
        log_axis(ax.xaxis, plain=True)
    axes[0].set_ylabel("test accuracy [%]")
    legend(fig, axes, 6)
    return fig


def new_classes(table):
    """MKTL minus every other method, a panel for each task; a run is a choice of the new classes."""
    fig, axes = facets(table, "name", size=(4.2, 2.6), columns=1)
    for ax, name, runs in axes:
        percent = 100 * runs.groupby(["split", "method"])["accuracy"].mean().unstack()
        samples = {name_of(other): percent["MKTL"] - percent[other] for other in percent if other != "MKTL"}
        forest(ax, intervals(samples), "accuracy of MKTL minus this one's [points]")
        ax.set_title(name)
    return fig


def along_priors(table):
    """Accuracy over the number of priors, of a table like figure 6.3's with one number of samples."""
    fig, ((ax,),) = panels(1, size=(5.6, 3.6))
    curves(ax, table, "n_priors", "accuracy", factor=100.0)
    log_axis(ax.xaxis, plain=True)
    ax.set(xlabel="priors", ylabel="test accuracy [%]")
    legend(fig, ax, 3)
    return fig


def samples_and_priors(axes, table, n_per_class, n_priors):
    """For a slider: draws at a number of samples and means at all, both tasks of `multiclass`'s table."""
    for ax, (name, k) in zip(axes, (("animals", 40), ("objects", n_priors)), strict=True):
        task = where(table, name=name)
        task = task[(task["n_priors"] == k) | (task["method"] == "NoTransfer")]
        methods = distinct(task["method"])
        for place, method in enumerate(methods):
            runs = where(task, method=method)
            grid = 100.0 * runs.pivot(index="seed", columns="n_per_class", values="accuracy")
            means = grid.mean()
            across = place + np.linspace(-0.3, 0.3, len(means))
            at = across[means.index.get_loc(n_per_class)]
            color = method_style(method)["color"]
            ax.plot(np.full(len(grid), at), grid[n_per_class], ".", color=color, markersize=3)
            along(ax, across, means.to_numpy(), at, color=color)
            ax.text(place, 3.0, f"{means[n_per_class]:.0f}", fontsize=8, ha="center")
        labels = [name_of(method) for method in methods]
        ax.set_xticks(range(len(methods)), labels, fontsize=SMALL, rotation=20)
        ax.set(title=f"{name}, {k} priors", ylabel="test accuracy [%]", ylim=(0.0, 100.0))
        ax.set_xlabel("curves: 1 to 20 samples of each class", fontsize=SMALL, labelpad=0)


def weights(table, models, n_named=2):
    """Weights of the priors' scores, a row for each new class, a marker for each model; the largest named."""
    rows = distinct(table["new"])
    fig, ((ax,),) = panels(1, size=(6.0, 0.33 * len(rows) + 1.4))
    ax.axvline(0.0, color=BLACK, linewidth=0.8)
    for model, marker, color in zip(models, MARKERS, PALETTE, strict=False):
        own = table[table["prior"].isin(model.classes)]
        if own.empty:  # the task has more models than were used
            continue
        places = own["new"].map(rows.index)
        style = {"marker": marker, "color": color, "markerfacecolor": "none", "linestyle": ""}
        ax.plot(own["weight"], places, markersize=5, label=model.name, **style)
    for place, new in enumerate(rows):
        own = where(table, new=new)
        largest = own.loc[own["weight"].abs().nlargest(n_named).index]
        named = ", ".join(f"{row.prior} {row.weight:+.2f}" for row in largest.itertuples())
        ax.text(1.02, place, named, transform=ax.get_yaxis_transform(), va="center", fontsize=8)
    ax.set_yticks(range(len(rows)), rows)
    ax.locator_params(axis="x", nbins=5)
    ax.invert_yaxis()
    ax.set(xlabel="transfer weight", ylabel="new class")
    if len(ax.get_legend_handles_labels()[1]) > 1:
        legend(fig, ax, 1, fontsize=8)
    return fig


def negative(table):
    """What priors that say nothing cost against No-Transfer on the same samples, a panel per kind of them."""
    alone = where(table, method="NoTransfer")
    others = table[table["method"] != "NoTransfer"]
    fig, parts = facets(
        others, "useless", size=(3.2, 2.5), columns=2, margin=(0, 0.6), sharex=True, sharey=True
    )
    for ax, kind, runs in parts:
        runs = pd.concat([alone, runs])
        paired(ax, runs, "n_per_class", "accuracy", "NoTransfer", factor=100.0)
        stamp(ax, {"none": "bundled", "shuffled": "composed"}.get(kind, "simulated"))
        ax.set_title(f"scores: {kind}", pad=14)
        log_axis(ax.xaxis, plain=True)
    fig.supxlabel("training samples per class", fontsize="medium")
    fig.supylabel("accuracy minus No-Transfer's [points]", fontsize="medium")
    legend(fig, fig.axes, 4)
    return fig


def along_p(table, n_priors):
    """Test accuracy and the number of priors in use (of `n_priors`), against p; a line where p is "auto"."""
    automatic = table.loc[table["p"].astype(str) == "auto", "p_found"].iloc[0]
    # the automatic p may be one of the others
    means = table.groupby(["seed", "p_found"], as_index=False)[["accuracy", "used"]].mean()
    means = means.assign(distance=means["p_found"] - 1.0)
    fig, (axes,) = panels(2, size=(8.0, 3.4))
    for ax, column, factor in zip(axes, ("accuracy", "used"), (100.0, 1.0), strict=True):
        curve(ax, means, "distance", column, "MKTL", factor=factor)
        color = method_style("MKTL auto")["color"]
        ax.axvline(automatic - 1.0, label=f"$p$ auto = {automatic:.3f}", color=color, linestyle="--")
        ax.set_xlabel("$p - 1$")
        log_axis(ax.xaxis, plain=True)
    axes[0].set_ylabel("test accuracy [%]")
    axes[1].axhline(n_priors, color=BLACK, linestyle=":", label="all priors")
    axes[1].set(ylabel="priors in use per new class", ylim=(0.0, 1.08 * n_priors))
    legend(fig, axes[1], 3)
    return fig


def at_p(axes, fitted, p):
    """For a slider: the groups' shares, largest first, and the accuracy along p, a dot where it stands.

    `fitted` has for each p the norms of all groups, the kernel's first, and the test accuracy.
    """
    left, right = axes
    norms, accuracy = fitted[p]
    share = np.maximum(norms / norms.sum(), 1e-12)
    left.loglog(np.arange(1, len(norms)), np.sort(share[1:])[::-1], color=BLUE)
    left.plot([0.7], [share[0]], "s", color=BLACK)
    left.text(0.9, share[0], f"kernel: {share[0]:.0%} of all norms", fontsize=8, va="center")
    left.set(ylim=(1e-5, 2.0), xlabel="priors' weights, largest first", ylabel="share of all norms")
    accuracies = [a for _, a in fitted.values()]
    along(right, [each - 1.0 for each in fitted], accuracies, p - 1.0, color=BLUE)
    right.text(p - 1.0, accuracy + 2.0, f"{accuracy:.0f}%", ha="center", fontsize=8)
    right.set(xscale="log", ylim=(25.0, 75.0), xlabel="$p - 1$", ylabel="test accuracy [%]")
