"""Drawings of the MKTL chapter, from the numbers of its experiments."""

import textwrap

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FixedLocator, MaxNLocator

from companion.plots.common import curve, curves, distinct, legend, mosaic, panels, thin_lines, where
from companion.run.figures import BLACK, BLUE, GREY, RED, band, method_style, stamp
from cuelearn.core.intervals import CONFIDENCE, interval

TITLES = {"animals": "emoji, animals", "objects": "emoji, objects", "awa": "Animals with Attributes"}
#: Baselines with class weights, which the thesis leaves unweighted.
REWEIGHTED = ("NoTransfer weighted", "PriorFeatures weighted", "AverageTL weighted")
#: The order that methods are drawn in, the chapter's own on top.
ORDER = (
    *("NoTransfer", "NoTransfer weighted", "PriorFeatures", "PriorFeatures weighted", "AverageTL"),
    *("AverageTL weighted", "MultiKT", "MKTL weighted", "MKTL auto", "MKTL"),
)
#: Methods of the panels of single classes in figure 6.2.
BY_CLASS = ("NoTransfer", "PriorFeatures", "MultiKT", "MKTL weighted")
#: Numbers of samples whose ticks have labels, where there are many.
LABELLED = (1, 3, 5, 10, 20, 30, 50)
SMALL = 7.0


def idea():
    """Kernels of a cue and of three priors' scores; below, the weights of blocks at several p."""
    y = np.repeat([1.0, -1.0], 3)
    x = np.array([0.0, 0.3, 0.6, 2.4, 2.7, 3.0])
    scores = {
        "prior 1: it is a lion": np.array([1.5, 0.1, 1.2, -0.8, 0.3, -1.0]),
        "prior 2: it is a whale": np.array([-0.4, -1.5, 0.2, -1.3, 0.7, -1.2]),
        "prior 3: it is a bus": np.array([1.0, -0.3, 0.8, 0.6, -0.9, 0.4]),
    }
    kernels = {"cue: shape": np.exp(-0.5 * np.subtract.outer(x, x) ** 2)}
    kernels |= {name: np.outer(s, s) / np.mean(s**2) for name, s in scores.items()}
    fig, axes = panels(4, 2, size=(8.0, 4.0), height_ratios=(1.0, 0.8), sharey="row")
    for ax, (name, kernel) in zip(axes[0], kernels.items(), strict=True):
        ax.imshow(kernel, cmap="RdBu", vmin=-1.8, vmax=1.8)
        ax.set_xticks([1, 4], ["tigers", "tulips"])
        ax.set_yticks([1, 4], ["tigers", "tulips"], rotation=90, va="center")
        ax.set_title(name, fontsize=8.5)
        ax.tick_params(length=0, labelsize=SMALL)
        ax.grid(False)
    norms = np.sqrt([y @ kernel @ y for kernel in kernels.values()])
    for p, color in ((2.0, GREY), (1.5, "#7FB2D6"), (1.1, BLUE)):
        weights = norms ** (p / (p - 1.0) - 1.0)
        for k, ax in enumerate(axes[1]):
            ax.bar(f"$p$ = {p:g}", weights[k] / weights.sum(), color=color, width=0.7)
    axes[1, 0].set_ylabel("share of the block")
    fig.suptitle("every score is a kernel of its own beside the cue's; the norm picks", fontsize=9.5)
    return fig


def ordered(methods):
    further = [method for method in methods if method not in ORDER]
    return further + [method for method in ORDER if method in set(methods)]


def counts(ax, values, labelled=LABELLED):
    """Logarithmic axis of numbers of samples or priors: a tick at each, labels at some if there are many."""
    values = sorted({int(v) for v in values})
    labelled = values if len(values) <= 5 else labelled
    ax.set_xscale("log")
    ax.set_xticks(values, [str(v) if v in labelled else "" for v in values])
    ax.set_xticks([], minor=True)


def cut_bands(axes, room=0.4):
    """One range of y for all panels: bands are cut at `room` times the means' span beyond the means."""
    means = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for ax in axes for line in ax.lines])
    shades = [path.vertices[:, 1] for ax in axes for shade in ax.collections for path in shade.get_paths()]
    reach = np.concatenate([means, *shades])
    room = room * np.ptp(means) + 1.0
    low = max(reach.min(), means.min() - room)
    high = min(reach.max(), means.max() + room)
    pad = 0.04 * (high - low)
    for ax in axes:
        ax.set_ylim(low - pad, min(101.0, high + pad))


def signed(value, digits=2):
    """A number with its sign; without one where it rounds to 0."""
    text = f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return text if text.strip("+\N{MINUS SIGN}0.") else text[1:]


def n_draws(table):
    """How many draws a target has, in words."""
    n = int(table.groupby("target")["seed"].nunique().max())
    return f"{n} draw{'s' * (n > 1)}"


def things(shown, table, faces):
    """What is known, what is new (`shown`: grids of pictures by title), and what is taken for what."""
    methods = ordered(table["method"])
    names = list(faces)
    fig = plt.figure(figsize=(2.5 * len(methods) + 0.5, 5.4), layout="constrained")
    upper, lower = fig.subfigures(2, height_ratios=(2.3, 3.1))
    widths = [grid.shape[1] / grid.shape[0] for grid in shown.values()]
    above = upper.subplots(1, len(shown), width_ratios=widths, squeeze=False)[0]
    for ax, (title, grid) in zip(above, shown.items(), strict=True):
        ax.imshow(mosaic(grid.reshape(-1, *grid.shape[2:]), grid.shape[1]))
        ax.set_axis_off()
        ax.set_title(title, fontsize=8.5)
    row = np.stack([faces[name] for name in names])
    axes = lower.subplots(1, len(methods), squeeze=False)[0]
    for ax, method in zip(axes, methods, strict=True):
        grid = where(table, method=method).pivot(index="true", columns="said", values="share")
        grid = 100.0 * grid.reindex(index=names, columns=names).fillna(0.0).to_numpy()
        ax.imshow(grid, cmap="Blues", vmin=0.0, vmax=100.0)
        for (i, j), value in np.ndenumerate(grid):
            if value >= 5.0:
                color = "white" if value > 55.0 else BLACK
                ax.text(j, i, f"{value:.0f}", color=color, fontsize=SMALL, ha="center", va="center")
        beside = ax.inset_axes([-0.105, 0.0, 0.1, 1.0]), ax.inset_axes([0.0, -0.105, 1.0, 0.1])
        for side, columns in zip(beside, (1, len(row)), strict=True):
            side.imshow(mosaic(row, columns), aspect="auto")
        for side in (ax, *beside):
            side.set(xticks=(), yticks=())
            side.grid(False)
        ax.set_title(f"{method_style(method)['label']}: {np.diag(grid).mean():.0f}% right", fontsize=9)
    axes[0].set_ylabel("is", labelpad=20)
    lower.supxlabel("is taken for (per cent of the test pictures; below 5 empty)", fontsize=8)
    return fig


def schematic(new_class, prior_names, scores, weights, kernel_part, groups):
    """Figure 6.1: what priors say of a sample, times the weights of its class, adds to the class's score.

    Of more than 18 priors, only the 12 that add or take away the most are drawn; the others are one row.
    `scores` are divided by ``score_scale_``; `groups` are prior models and their classes, each with a row.
    """
    parts = scores * weights
    order = np.argsort(-np.abs(parts), kind="stable")
    kept = np.sort(order[:12] if len(parts) > 18 else order)
    rows = [("kernel", np.nan, np.nan, kernel_part)]
    for head, classes in groups:
        own = [k for k in kept if prior_names[k] in classes]
        rows += [(head, np.nan, np.nan, np.nan)] * bool(own)
        rows += [(prior_names[k], scores[k], weights[k], parts[k]) for k in own]
    if len(kept) < len(parts):
        rows.append((f"{len(parts) - len(kept)} others", np.nan, np.nan, parts.sum() - parts[kept].sum()))
    rows.append(("sum", np.nan, np.nan, kernel_part + parts.sum()))
    labels, *columns = zip(*rows, strict=True)

    fig, (axes,) = panels(3, size=(8.0, 1.0 + 0.2 * len(rows)), sharey=True, width_ratios=(5, 4, 4))
    titles = ("what priors say (scaled)", "× weight", "= part of the score")
    for ax, values, title in zip(axes, map(np.array, columns), titles, strict=True):
        at = np.flatnonzero(np.isfinite(values))
        bars = ax.barh(at, values[at], color=np.where(values[at] >= 0.0, BLUE, RED), height=0.7)
        ax.bar_label(bars, [signed(value) for value in values[at]], fontsize=SMALL, padding=3)
        ax.axvline(0.0, color=BLACK, linewidth=0.8)
        ax.set_title(title, fontsize=9)
        ax.margins(x=0.28)
        ax.grid(False, axis="y")
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.tick_params(length=0, labelsize=7.5)
    axes[0].set(yticks=range(len(rows)), yticklabels=labels, ylim=(len(rows) - 0.4, -0.6))
    for text in axes[0].get_yticklabels():
        text.set_style("italic" if text.get_text() in dict(groups) else "normal")
    axes[2].axhline(len(rows) - 1.5, color=GREY, linewidth=0.8)
    fig.suptitle(f"score of new class {new_class} for one of its test samples", fontsize=9.5)
    return fig


def binary_mean(table):
    """Figure 6.2, left: means over targets; below, differences target by target."""
    each = table.groupby(["target", "n_positive", "method"], as_index=False)["accuracy"].mean()
    every = ordered(each["method"])
    drawn = (
        ("as in the thesis", [m for m in every if m not in REWEIGHTED], "PriorFeatures"),
        (
            "both classes weigh the same",
            [m for m in every if m in (*REWEIGHTED, "MultiKT", "MKTL weighted")],
            "MKTL weighted",
        ),
    )
    fig = plt.figure(figsize=(8.0, 7.7), layout="constrained")
    top, *below = fig.subfigures(3, height_ratios=(3.9, 1.9, 1.9))
    upper = top.subplots(1, 2, sharey=True)
    lower = []
    for ax, part, (title, methods, base) in zip(upper, below, drawn, strict=True):
        curves(ax, each, "n_positive", "accuracy", methods, runs="target", factor=100.0, alpha=0.0)
        ax.cuelearn_band = f"means of {table['target'].nunique()} targets, {n_draws(table)} of each"
        counts(ax, table["n_positive"])
        ax.set(title=title, xlabel="positive training samples")
        handles, labels = ax.get_legend_handles_labels()
        ax.legend(handles[::-1], labels[::-1], loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
        lower += differences(part, each, [m for m in methods if m != base][::-1], base)
    upper[0].set_ylabel("test accuracy [%]")
    reach = 1.05 * max(np.abs(ax.dataLim.intervaly).max() for ax in lower)  # of single targets, too
    for ax in lower:
        ax.set_ylim(-reach, reach)
    return fig


def differences(part, each, methods, base):
    """A row of panels: each method minus `base`, target by target and on average."""
    row = part.subplots(1, len(methods), sharey=True)
    grids = {
        m: where(each, method=m).pivot(index="target", columns="n_positive", values="accuracy")
        for m in (*methods, base)
    }
    for ax, method in zip(row, methods, strict=True):
        grid = 100.0 * (grids[method] - grids[base]).dropna(axis=1)
        ax.axhline(0.0, color=BLACK, linewidth=0.8)
        thin_lines(ax, grid, GREY)
        band(ax, grid.columns, grid.to_numpy(), method, alpha=0.35, markersize=3.0)
        ax.cuelearn_band = f"below: thin: targets, thick: their mean, band: its {CONFIDENCE:.0%} interval"
        counts(ax, grid.columns)
        ax.set_title(method_style(method)["label"], fontsize=8)
        ax.tick_params(labelsize=SMALL)
    row[0].set_ylabel("difference [points]", fontsize=8)
    part.supxlabel("positive training samples", fontsize=8)
    part.suptitle(f"minus {method_style(base)['label']}, target by target", fontsize=9)
    return [*row]


def binary_classes(table):
    """Figure 6.2, right: a panel for each target; in the corner weighted MKTL minus Prior-Features."""
    targets = distinct(table["target"])
    columns = min(5, len(targets))
    rows = -(-len(targets) // columns)
    fig, axes = panels(columns, rows, size=(8.0, 1.35 * rows + 0.9), sharex=True, sharey=True)
    used, unused = np.split(axes.ravel(), [len(targets)])
    style = {"factor": 100.0, "alpha": 0.0, "markersize": 2.8, "linewidth": 1.1}
    for ax, target in zip(used, targets, strict=True):
        runs = where(table, target=target)
        curves(ax, runs, "n_positive", "accuracy", BY_CLASS, **style)
        ax.set_title(target, fontsize=7.5, pad=2)
        grid = 100.0 * runs.pivot(index=["seed", "n_positive"], columns="method", values="accuracy")
        above = (grid["MKTL weighted"] - grid["PriorFeatures"]).groupby("seed").mean()
        mean, low, high = (signed(value, 0) for value in interval(above.to_numpy()))
        corner = {"fontsize": SMALL, "ha": "right", "va": "bottom", "transform": ax.transAxes}
        ax.text(0.98, 0.03, f"{mean} ({low} to {high})", **corner)
        ax.tick_params(labelsize=7.5)
        ax.cuelearn_band = f"means of {n_draws(runs)}; in the corner: weighted MKTL minus Prior-Features, "
        ax.cuelearn_band += f"points over all numbers of samples, and {CONFIDENCE:.0%} interval over draws"
    counts(axes[0, 0], table["n_positive"])
    cut_bands(used, room=0.05)
    low, high = axes[0, 0].get_ylim()
    axes[0, 0].set_ylim(low - 0.2 * (high - low), high)  # room for the numbers in the corners
    for ax in unused:
        ax.set_visible(False)
    for ax in used[-columns:]:  # the last panel of each column has the numbers
        ax.xaxis.set_tick_params(labelbottom=True)
    fig.supxlabel("positive training samples (panel: target)", fontsize=9)
    fig.supylabel("test accuracy [%]", fontsize=9)
    legend(fig, used[:1], 4)
    return fig


def multiclass(table):
    """Figure 6.3: a panel per task and number of priors; No-Transfer uses none, and is in each."""
    order = distinct(table["name"])
    places = {(name, int(k)) for name, k in zip(table["name"], table["n_priors"], strict=True)}
    places = sorted(places, key=lambda place: (order.index(place[0]), place[1]))
    fig, (axes,) = panels(len(places), size=(2.55 * len(places) + 0.35, 3.7))
    for ax, (name, n_priors) in zip(axes, places, strict=True):
        task = where(table, name=name)
        fewest = int(task["n_priors"].min())
        for method in ordered(task["method"]):
            runs = where(task, method=method)
            shown = n_priors if (runs["n_priors"] == n_priors).any() else runs["n_priors"].max()
            runs = where(runs, n_priors=shown)
            curve(ax, runs, "n_per_class", "accuracy", method, factor=100.0, alpha=0.12)
        if n_priors > fewest:
            less = where(task, method="MKTL", n_priors=fewest)
            mean = 100.0 * less.groupby("n_per_class")["accuracy"].mean()
            (line,) = ax.plot(mean.index, mean, color=method_style("MKTL")["color"], linewidth=0.9)
            ax.legend([line], [f"MKTL, {fewest} priors"], loc="lower right", fontsize=SMALL)
        counts(ax, task["n_per_class"])
        ax.set_xlabel("training samples per class")
        ax.set_title(f"{TITLES[name]}: {n_priors} priors", fontsize=9)
    for name in order:
        cut_bands([ax for ax, place in zip(axes, places, strict=True) if place[0] == name])
    axes[0].set_ylabel("test accuracy [%]")
    legend(fig, axes, 6)
    return fig


def along_priors(table):
    """Accuracy over the number of priors, of a table like figure 6.3's with one number of samples."""
    fig, ((ax,),) = panels(1, size=(5.6, 3.6))
    curves(ax, table, "n_priors", "accuracy", ordered(table["method"]), factor=100.0, alpha=0.12)
    counts(ax, table["n_priors"], set(table["n_priors"]))
    ax.set(xlabel="priors", ylabel="test accuracy [%]")
    cut_bands([ax])
    legend(fig, [ax], 3)
    return fig


def samples_and_priors(axes, table, n_per_class, n_priors):
    """For a slider: single draws and means at a number of samples, both tasks of `multiclass`'s table."""
    table = where(table, n_per_class=n_per_class)
    for ax, (name, k) in zip(axes, (("animals", 40), ("objects", n_priors)), strict=True):
        task = table[(table["name"] == name) & ((table["n_priors"] == k) | (table["method"] == "NoTransfer"))]
        for row, method in enumerate(ordered(task["method"])[::-1]):
            values = 100.0 * where(task, method=method)["accuracy"].to_numpy()
            look = {"color": method_style(method)["color"], "linestyle": "none"}
            beside = row + np.linspace(-0.25, 0.25, len(values))
            ax.plot(values, beside, marker=".", markersize=3, alpha=0.5, **look)
            ax.plot([values.mean()], [row], marker="D", markersize=8, **look)
            ax.text(values.mean(), row - 0.32, f"{values.mean():.0f}", fontsize=8, ha="center")
            ax.text(-38.0, row, method_style(method)["label"], fontsize=8.5, va="center")
        ax.set(xlim=(-40.0, 90.0), ylim=(row + 0.6, -0.7), xticks=range(0, 90, 20), yticks=())
        ax.set_xlabel(f"{TITLES[name]}, {k} priors: test accuracy [%]")


def weights(table, groups):
    """Weights of the priors' scores for every new class; lines set prior models (`groups`) apart."""
    new = distinct(table["new"])
    prior = distinct(table["prior"])
    grid = table.pivot(index="new", columns="prior", values="weight").loc[new, prior].to_numpy()
    span = np.abs(grid).max() or 1.0
    model = {c: name for name, classes in groups for c in classes}
    totals = [f"{total:.2g}" for total in np.abs(grid).sum(axis=1)]
    blocks = np.array_split(np.arange(len(prior)), -(-len(prior) // 20))
    high = 0.21 * len(new) + 0.35 + 0.07 * max(map(len, prior))
    fig, axes = panels(1, len(blocks), size=(8.0, len(blocks) * high + 0.4))
    for ax, block in zip(axes[:, 0], blocks, strict=True):
        shades = ax.imshow(grid[:, block], cmap="RdBu", vmin=-span, vmax=span, aspect="auto")
        of = [model[prior[k]] for k in block]
        starts = [k for k, name in enumerate(of) if k == 0 or name != of[k - 1]]
        for start, end in zip(starts, [*starts[1:], len(of)], strict=True):
            ax.axvline(start - 0.5, color=BLACK, linewidth=1.2)
            name = "\n".join(textwrap.wrap(of[start], max(9, int(4.2 * (end - start)))))
            ax.text(start - 0.4, -0.6, name, fontsize=SMALL, va="bottom")
        ax.set_xticks(range(len(block)), [prior[k] for k in block], rotation=90)
        ax.set_yticks(range(len(new)), new)
        beside = ax.secondary_yaxis("right")
        beside.set_yticks(range(len(new)), totals)
        beside.set_ylabel("sum of $|w|$, all priors", fontsize=7.5)
        for side in (ax, beside):
            side.tick_params(length=0, labelsize=7.5)
        ax.grid(False)
    fig.supxlabel("prior class", fontsize=8.5)
    fig.supylabel("new class", fontsize=8.5)
    fig.colorbar(shades, ax=axes[:, 0], label="transfer weight", aspect=24, pad=0.02)
    return fig


def negative(table):
    """What priors that say nothing cost against No-Transfer on the same samples, a panel per kind of them."""
    kinds = {kind for kind in table["useless"] if kind != "none"}
    kinds = sorted(kinds, key=lambda kind: (kind != "shuffled", len(kind), kind))
    fig, (axes,) = panels(len(kinds), size=(2.6 * len(kinds) + 0.4, 3.6), sharey=True)
    grids = {
        key: 100.0 * runs.pivot(index="seed", columns="n_per_class", values="accuracy")
        for key, runs in table.groupby(["useless", "method"])
    }
    reference = grids["none", "NoTransfer"]
    alone = (grids["none", "MKTL"] - reference).mean()
    thin = {"color": method_style("MKTL")["color"], "linewidth": 0.9}
    for ax, kind in zip(axes, kinds, strict=True):
        ax.axhline(0.0, **method_style("NoTransfer", marker=""))
        ax.plot(alone.index, alone, label="MKTL without priors", **thin)
        for method in ordered(where(table, useless=kind)["method"]):
            grid = grids[kind, method] - reference
            band(ax, grid.columns, grid.to_numpy(), method, alpha=0.15)
        shuffled = kind == "shuffled"
        stamp(ax, "composed" if shuffled else "simulated")
        title = "scores of real priors, shuffled" if shuffled else f"{kind.split()[-1]} columns of noise"
        ax.set_title(title, fontsize=9, pad=14)
        counts(ax, table["n_per_class"])
        ax.set_xlabel("training samples per class")
    cut_bands(axes)
    axes[0].set_ylabel("accuracy − No-Transfer's [points]")
    legend(fig, axes, 2 * len(kinds))
    return fig


def along_p(table, n_priors):
    """Test accuracy and the number of priors in use (of `n_priors`), against p; thin lines are single runs.

    Rows with p "auto" have their p, which is marked in both panels, in p_found.
    """
    automatic = table.loc[table["p"].astype(str) == "auto", "p_found"].iloc[0]
    # the automatic p may be one of the others
    means = table.assign(p=table["p_found"]).groupby(["seed", "p"])[["accuracy", "used"]].mean().reset_index()
    fig, (axes,) = panels(2, size=(8.0, 3.4), sharex=True)
    for ax, column, factor in zip(axes, ("accuracy", "used"), (100.0, 1.0), strict=True):
        thin_lines(ax, curve(ax, means, "p", column, "MKTL", factor=factor, alpha=0.0), GREY)
        ax.cuelearn_band = f"thin: {table['seed'].nunique()} runs, thick: their mean"
        look = {"color": method_style("MKTL auto")["color"], "linestyle": "--", "linewidth": 1.2}
        ax.axvline(automatic, label=f"$p$ auto = {automatic:.3f}", **look)
        p_axis(ax, means["p"])
    axes[0].set_ylabel("test accuracy [%]")
    axes[1].axhline(n_priors, color=BLACK, linestyle=":", linewidth=1.0, label="all priors")
    axes[1].set(ylabel="priors in use per new class", ylim=(0.0, 1.08 * n_priors))
    legend(fig, axes[1:], 3)
    return fig


def to_log(p):
    return np.log(np.maximum(np.asarray(p, dtype=float) - 1.0, 1e-9))


def from_log(place):
    return 1.0 + np.exp(place)


def p_axis(ax, values):
    """Axis of p with most of its room for those near 1."""
    low = min(values)
    high = max(values)
    ax.set_xlim(1.0 + 0.85 * (low - 1.0), 1.0 + 1.18 * (high - 1.0))
    ax.set_xscale("function", functions=(to_log, from_log))
    ticks = [p for p in (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0) if low <= p <= high]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel(r"$p$ (axis: $p - 1$, logarithmic)")


def at_p(axes, fitted, p):
    """For a slider: the groups' shares, largest first, and the accuracy along p, a ring where it stands.

    `fitted` has for each p the norms of all groups, the kernel's first, and the test accuracy.
    """
    left, right = axes
    norms, accuracy = fitted[p]
    share = np.maximum(norms / norms.sum(), 1e-12)
    left.loglog(np.arange(1, len(norms)), np.sort(share[1:])[::-1], color=BLUE, linewidth=2.0)
    left.plot([0.7], [share[0]], marker="s", markersize=8, color=BLACK)
    left.text(0.9, share[0], f"kernel: {share[0]:.0%} of all norms", fontsize=8, va="center")
    left.set(xlim=(0.6, 1.1 * len(norms)), ylim=(1e-5, 2.0), xlabel="priors' weights, largest first")
    left.set_ylabel("share of the sum of norms")
    left.minorticks_off()
    right.plot([*fitted], [a for _, a in fitted.values()], color=GREY, linewidth=1.0)
    right.plot([p], [accuracy], marker="o", markersize=9, color=BLUE)
    right.text(p, accuracy + 2.0, f"{accuracy:.0f}%", ha="center", fontsize=8)
    p_axis(right, fitted)
    right.set(ylim=(0.0, 100.0), ylabel="test accuracy [%]")
