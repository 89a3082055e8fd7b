"""Drawings of the MKTL chapter, from the numbers of its experiments."""

import textwrap

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FixedLocator, MaxNLocator

from companion.plots.common import curve, curves, distinct, mosaic, panels, thin_lines, where
from companion.run.figures import BLACK, BLUE, GREY, RED, band, method_style, stamp
from cuelearn.core.intervals import CONFIDENCE, interval

TITLES = {"animals": "emoji, animals", "objects": "emoji, objects", "awa": "Animals with Attributes"}
#: The order that methods are drawn in, the chapter's own on top; others come first.
ORDER = (
    *("NoTransfer", "NoTransfer weighted", "PriorFeatures", "PriorFeatures weighted", "AverageTL"),
    *("AverageTL weighted", "MultiKT", "MKTL weighted", "MKTL auto", "MKTL"),
)
#: Baselines with class weights, which the thesis leaves unweighted.
REWEIGHTED = ("NoTransfer weighted", "PriorFeatures weighted", "AverageTL weighted")
#: Methods of the panels of single classes in figure 6.2.
BY_CLASS = ("NoTransfer", "PriorFeatures", "MultiKT", "MKTL weighted")
#: Numbers of samples whose ticks have labels.
_LABELLED = (1, 3, 5, 10, 20, 30, 50)
_SMALL = 7.0
_MIDDLE = {"ha": "center", "va": "center"}


# --- the idea -----------------------------------------------------------------------------------------------


def idea(exponents=(2.0, 1.5, 1.1)):
    """Kernels of the cue and of three priors' scores on six samples, and what a group norm makes of them.

    Below: the blocks' weights where every sample has the same coefficient, for several p.
    """
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
    norms = np.sqrt([y @ kernel @ y for kernel in kernels.values()])
    for ax, (name, kernel) in zip(axes[0], kernels.items(), strict=True):
        ax.imshow(kernel, cmap="RdBu", vmin=-1.8, vmax=1.8)
        ax.set(xticks=[1, 4], yticks=[1, 4])
        ax.set_xticklabels(["tigers", "tulips"])
        ax.set_yticklabels(["tigers", "tulips"], rotation=90, va="center")
        ax.set_title(name, fontsize=8.5, color=GREY if name.startswith("cue") else BLACK)
        ax.tick_params(length=0, labelsize=_SMALL)
        ax.grid(False)
    for p, color in zip(exponents, (GREY, "#7FB2D6", BLUE), strict=False):
        weights = norms ** (p / (p - 1.0) - 1.0)
        for k, ax in enumerate(axes[1]):
            ax.bar(f"$p$ = {p:g}", weights[k] / weights.sum(), color=color, width=0.7)
            ax.tick_params(labelsize=_SMALL)
    axes[1, 0].set_ylabel("share of the block")
    fig.suptitle("every score is a kernel of its own beside the cue's; the norm picks", fontsize=9.5)
    return fig


# --- in common ----------------------------------------------------------------------------------------------


def _methods(table):
    """Methods of a table in the order in which they are drawn."""
    methods = distinct(table["method"])
    return [m for m in methods if m not in ORDER] + [m for m in ORDER if m in methods]


def _counts(ax, values, labelled=_LABELLED):
    """Logarithmic axis of numbers of samples or priors: a tick at each, labels at some if there are many."""
    values = sorted({int(v) for v in values})
    labelled = values if len(values) <= 5 else labelled
    ax.set_xscale("log")
    ax.set_xticks(values, [str(v) if v in labelled else "" for v in values])
    ax.set_xticks([], minor=True)


def _limits(axes, top=None, room=0.4):
    """One range of y for all panels: bands are cut at `room` times the means' span beyond the means."""
    means = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for ax in axes for line in ax.lines])
    shades = [path.vertices[:, 1] for ax in axes for shade in ax.collections for path in shade.get_paths()]
    reach = np.concatenate([means, *shades])
    room = room * np.ptp(means) + 1.0
    low = max(reach.min(), means.min() - room)
    high = min(reach.max(), means.max() + room)
    pad = 0.04 * (high - low)
    for ax in axes:
        ax.set_ylim(low - pad, high + pad if top is None else min(top, high + pad))


def _legend(fig, axes):
    """One legend above all panels, each label once, the chapter's own first, as wide as the figure."""
    handles = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    inches = sum(0.6 + 0.062 * len(label) for label in handles)
    columns = -(-len(handles) // -int(-inches // fig.get_figwidth()))
    fig.legend([*handles.values()][::-1], [*handles][::-1], loc="outside upper center", ncols=columns)


def _signed(value, digits=2):
    """A number with its sign; without one where it rounds to 0."""
    text = f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return text if text.strip("+\N{MINUS SIGN}0.") else text[1:]


# --- the things ---------------------------------------------------------------------------------------------


def things(shown, table, faces):
    """What is known, what is new, and which new things are taken for which.

    `shown` has by title an array of pictures, (rows, columns, height, width, 4), `faces` a picture of each
    new thing.
    """
    methods = _methods(table)
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
                ax.text(j, i, f"{value:.0f}", color=color, fontsize=_SMALL, **_MIDDLE)
        beside = ax.inset_axes([-0.105, 0.0, 0.1, 1.0]), ax.inset_axes([0.0, -0.105, 1.0, 0.1])
        for side, columns in zip(beside, (1, len(row)), strict=True):
            side.imshow(mosaic(row, columns), aspect="auto")
        for side in (ax, *beside):
            side.set(xticks=(), yticks=())
            side.grid(False)
            side.spines[:].set_visible(False)
        ax.set_title(f"{method_style(method)['label']}: {np.diag(grid).mean():.0f}% right", fontsize=9)
    axes[0].set_ylabel("is", labelpad=20)
    lower.supxlabel("is taken for (per cent of the test pictures; below 5 empty)", fontsize=8)
    return fig


# --- figure 6.1 ---------------------------------------------------------------------------------------------


def schematic(new_class, prior_names, scores, weights, kernel_part, *, groups=(), sample_class=None):
    """Figure 6.1: what priors say of a sample, times the weights of the new class, adds to its score.

    Of more than 18 priors, only the 12 that add or take away the most are drawn; the others are one row.
    `scores` are divided by ``score_scale_``; `groups` are prior models and their classes, each with a row.
    """
    names = [str(name) for name in prior_names]
    scores = np.asarray(scores, dtype=float)
    weights = np.asarray(weights, dtype=float)
    parts = scores * weights
    order = np.argsort(-np.abs(parts), kind="stable")
    kept = np.sort(order[:12] if len(names) > 18 else order)
    heads = {str(c): name for name, classes in groups for c in classes}
    rows = [("kernel", np.nan, np.nan, float(kernel_part))]
    for k in kept:
        head = heads.get(names[k])
        if head and head not in [label for label, *_ in rows]:
            rows.append((head, np.nan, np.nan, np.nan))
        rows.append((names[k], scores[k], weights[k], parts[k]))
    if len(kept) < len(names):
        left = parts.sum() - parts[kept].sum()
        rows.append((f"{len(names) - len(kept)} others", np.nan, np.nan, left))
    rows.append(("sum", np.nan, np.nan, kernel_part + parts.sum()))
    labels, *columns = zip(*rows, strict=True)

    fig, (axes,) = panels(3, size=(8.0, 1.0 + 0.2 * len(rows)), sharey=True, width_ratios=(5, 4, 4))
    titles = ("what priors say (scaled)", "× weight", "= part of the score")
    for ax, values, title in zip(axes, map(np.array, columns), titles, strict=True):
        at = np.flatnonzero(np.isfinite(values))
        ax.barh(at, values[at], color=np.where(values[at] >= 0.0, BLUE, RED), height=0.7)
        for row in at[np.abs(values[at]) >= 0.005]:
            away, ha = (3, "left") if values[row] >= 0.0 else (-3, "right")
            place = {"xytext": (away, 0), "textcoords": "offset points", "ha": ha, "va": "center"}
            ax.annotate(_signed(values[row]), (values[row], row), fontsize=_SMALL, **place)
        ax.axvline(0.0, color=BLACK, linewidth=0.8)
        ax.set_title(title, fontsize=9)
        ax.margins(x=0.28)
        ax.grid(False, axis="y")
        ax.spines["left"].set_visible(False)
        ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.tick_params(length=0, labelsize=7.5)
    axes[0].set(yticks=range(len(rows)), yticklabels=labels, ylim=(len(rows) - 0.4, -0.6))
    for text, (label, *_) in zip(axes[0].get_yticklabels(), rows, strict=True):
        text.set(style="italic" if label in heads.values() else "normal")
    axes[2].axhline(len(rows) - 1.5, color=GREY, linewidth=0.8)
    of_class = "" if sample_class is None else f" of class {sample_class}"
    fig.suptitle(f"score of new class {new_class} for a test sample{of_class}", fontsize=9.5)
    return fig


# --- figure 6.2 ---------------------------------------------------------------------------------------------


def binary_mean(table):
    """Figure 6.2, left: accuracy over the number of positive samples, mean over targets.

    Beside it the methods that weigh both classes equally, if the table has them; below, paired differences to
    Prior-Features and to weighted MKTL: thin lines are targets, bands intervals over targets.
    """
    each = table.groupby(["target", "n_positive", "method"], as_index=False)["accuracy"].mean()
    all_methods = _methods(each)
    drawn = [("as in the thesis", [m for m in all_methods if m not in REWEIGHTED], "PriorFeatures")]
    if len(drawn[0][1]) < len(all_methods):
        equal = [m for m in all_methods if m in (*REWEIGHTED, "MultiKT", "MKTL weighted")]
        drawn.append(("both classes weigh the same", equal, "MKTL weighted"))
    fig = plt.figure(figsize=(8.0, 3.9 + 1.9 * len(drawn)), layout="constrained")
    top, *below = fig.subfigures(1 + len(drawn), height_ratios=(3.9, *[1.9] * len(drawn)))
    upper = top.subplots(1, len(drawn), sharey=True, squeeze=False)[0]
    lower = []
    for ax, part, (title, methods, base) in zip(upper, below, drawn, strict=True):
        style = {"runs": "target", "factor": 100.0, "alpha": 0.0}
        curves(ax, each, "n_positive", "accuracy", methods, **style)
        ax.cuelearn_band = f"means of {table['target'].nunique()} targets, {_draws(table)} of each"
        _counts(ax, table["n_positive"])
        ax.set(title=title if len(drawn) > 1 else "", xlabel="positive training samples")
        handles, labels = ax.get_legend_handles_labels()
        ax.legend(handles[::-1], labels[::-1], loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
        lower += _differences(part, each, [m for m in methods if m != base][::-1], base)
    upper[0].set_ylabel("test accuracy [%]")
    reach = 1.05 * max(np.abs(ax.dataLim.intervaly).max() for ax in lower)  # of single targets, too
    for ax in lower:
        ax.set_ylim(-reach, reach)
    return fig


def _differences(part, each, methods, base):
    """A row of panels: each method minus `base`, target by target and on average."""
    row = part.subplots(1, len(methods), sharey=True, squeeze=False)[0]
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
        _counts(ax, grid.columns)
        ax.set_title(method_style(method)["label"], fontsize=8)
        ax.tick_params(labelsize=_SMALL)
    row[0].set_ylabel("difference [points]", fontsize=8)
    part.supxlabel("positive training samples", fontsize=8)
    part.suptitle(f"minus {method_style(base)['label']}, target by target", fontsize=9)
    return [*row]


def _draws(table):
    """How many draws a target has, in words."""
    n = int(table.groupby("target")["seed"].nunique().max())
    return f"{n} draw{'s' * (n > 1)}"


def binary_classes(table):
    """Figure 6.2, right: the same table, a panel for each target; means of its draws, without bands.

    In the corner what weighted MKTL is above Prior-Features, and its interval over draws.
    """
    targets = distinct(table["target"])
    columns = min(5, int(np.ceil(np.sqrt(len(targets)))))
    rows = -(-len(targets) // columns)
    size = (max(1.55 * columns + 0.25, 4.6), 1.35 * rows + 0.9)
    fig, axes = panels(columns, rows, size=size, sharex=True, sharey=True)
    used, unused = np.split(axes.ravel(), [len(targets)])
    style = {"factor": 100.0, "alpha": 0.0, "markersize": 2.8, "linewidth": 1.1}
    for ax, target in zip(used, targets, strict=True):
        runs = table[table["target"] == target]
        curves(ax, runs, "n_positive", "accuracy", [m for m in _methods(runs) if m in BY_CLASS], **style)
        ax.set_title(target, fontsize=7.5, pad=2)
        grid = 100.0 * runs.pivot(index=["seed", "n_positive"], columns="method", values="accuracy")
        above = (grid["MKTL weighted"] - grid["PriorFeatures"]).groupby("seed").mean()
        ends = [_signed(value, 0) for value in interval(above.to_numpy()) if np.isfinite(value)]
        text = f"{ends[0]} ({' to '.join(ends[1:])})" if len(ends) > 1 else ends[0]
        ax.text(0.98, 0.03, text, fontsize=_SMALL, ha="right", va="bottom", transform=ax.transAxes)
        ax.tick_params(labelsize=7.5)
        ax.cuelearn_band = f"means of {_draws(runs)}; in the corner: weighted MKTL minus Prior-Features, "
        ax.cuelearn_band += f"points over all numbers of samples, and {CONFIDENCE:.0%} interval over draws"
    _counts(axes[0, 0], table["n_positive"])
    _limits(used, top=101.0, room=0.05)
    low, high = axes[0, 0].get_ylim()
    axes[0, 0].set_ylim(low - 0.2 * (high - low), high)  # room for the numbers in the corners
    for ax in unused:
        ax.set_visible(False)
    for ax in used[-columns:]:  # the last panel of each column carries the numbers
        ax.xaxis.set_tick_params(labelbottom=True)
    fig.supxlabel("positive training samples (panel: target)", fontsize=9)
    fig.supylabel("test accuracy [%]", fontsize=9)
    _legend(fig, used[:1])
    return fig


# --- figure 6.3 ---------------------------------------------------------------------------------------------


def multiclass(table):
    """Figure 6.3: accuracy over the samples per class; a panel per task and number of priors.

    Panels with more priors repeat MKTL with the fewest as a thin line; No-Transfer, which uses none, is drawn
    in all panels of its task.
    """
    table = table.astype({"n_priors": int})
    places = table[["name", "n_priors"]].drop_duplicates().itertuples(index=False)
    order = distinct(table["name"])
    shown = sorted(map(tuple, places), key=lambda place: (order.index(place[0]), place[1]))
    fig, (axes,) = panels(len(shown), size=(2.55 * len(shown) + 0.35, 3.7))
    for ax, (name, n_priors) in zip(axes, shown, strict=True):
        task = table[table["name"] == name]
        fewest = task["n_priors"].min()
        for method in _methods(task):
            runs = task[task["method"] == method]
            shown_priors = n_priors if (runs["n_priors"] == n_priors).any() else runs["n_priors"].max()
            runs = runs[runs["n_priors"] == shown_priors]
            curve(ax, runs, "n_per_class", "accuracy", method, factor=100.0, alpha=0.12)
        if n_priors > fewest:
            less = where(task, method="MKTL", n_priors=fewest)
            mean = 100.0 * less.pivot(index="seed", columns="n_per_class", values="accuracy").mean()
            (line,) = ax.plot(mean.index, mean, color=method_style("MKTL")["color"], linewidth=0.9)
            ax.legend([line], [f"MKTL, {fewest} priors"], loc="lower right", fontsize=_SMALL)
        _counts(ax, task["n_per_class"])
        ax.set_xlabel("training samples per class")
        ax.set_title(f"{TITLES.get(name, name)}: {n_priors} priors", fontsize=9)
    for name in order:
        _limits([ax for ax, place in zip(axes, shown, strict=True) if place[0] == name], top=101.0)
    axes[0].set_ylabel("test accuracy [%]")
    _legend(fig, axes)
    return fig


def along_priors(table):
    """Accuracy over the number of priors, of a table like figure 6.3's with one number of samples."""
    fig, ((ax,),) = panels(1, size=(5.6, 3.6))
    curves(ax, table, "n_priors", "accuracy", _methods(table), factor=100.0, alpha=0.12)
    _counts(ax, table["n_priors"], set(table["n_priors"]))
    ax.set(xlabel="priors", ylabel="test accuracy [%]")
    _limits([ax], top=101.0)
    _legend(fig, [ax])
    return fig


def samples_and_priors(axes, table, n_per_class, n_priors):
    """For a slider: single draws and means at a number of samples, both tasks of `multiclass`'s table."""
    table = where(table, n_per_class=n_per_class)
    for ax, (name, k) in zip(axes, (("animals", 40), ("objects", n_priors)), strict=True):
        task = table[(table["name"] == name) & ((table["n_priors"] == k) | (table["method"] == "NoTransfer"))]
        for row, method in enumerate(_methods(task)[::-1]):
            values = 100.0 * where(task, method=method)["accuracy"].to_numpy()
            look = {"color": method_style(method)["color"], "linestyle": "none"}
            beside = row + np.linspace(-0.25, 0.25, len(values))
            ax.plot(values, beside, marker=".", markersize=3, alpha=0.5, **look)
            ax.plot([values.mean()], [row], marker="D", markersize=8, **look)
            ax.text(values.mean(), row - 0.32, f"{values.mean():.0f}", fontsize=8, ha="center")
            ax.text(-38.0, row, method_style(method)["label"], fontsize=8.5, va="center")
        ax.set(xlim=(-40.0, 90.0), ylim=(row + 0.6, -0.7), xticks=range(0, 90, 20), yticks=())
        ax.set_xlabel(f"{TITLES[name]}, {k} priors: test accuracy [%]")


# --- transfer weights ---------------------------------------------------------------------------------------


def _same(place):
    return place


def weights(table, groups=()):
    """From where to where MKTL transfers: weights of the priors' scores for every new class.

    At most 20 priors beside each other, without a number where it is less than a twentieth of the largest; at
    the right the sum of the absolute weights. `groups` are prior models and their classes, which a line sets
    apart.
    """
    new = distinct(table["new"])
    prior = distinct(table["prior"])
    grid = table.pivot(index="new", columns="prior", values="weight").loc[new, prior].to_numpy()
    span = np.abs(grid).max() or 1.0
    model = {str(c): name for name, classes in groups for c in classes}
    totals = np.abs(grid).sum(axis=1)
    unit = 1.0 if span >= 0.05 else 1000.0
    digits = 2 if unit == 1.0 else int(unit * span < 10.0)
    blocks = np.array_split(np.arange(len(prior)), -(-len(prior) // 20))
    high = 0.21 * len(new) + 0.35 + (0.07 * max(len(str(c)) for c in prior) if len(prior) > 9 else 0.2)
    fig, axes = panels(1, len(blocks), size=(8.0, len(blocks) * high + 0.4))
    for ax, block in zip(axes[:, 0], blocks, strict=True):
        shades = ax.imshow(grid[:, block], cmap="RdBu", vmin=-span, vmax=span, aspect="auto")
        for (row, column), value in np.ndenumerate(grid[:, block]):
            if abs(value) >= max(0.05 * span, 0.5 * 10.0**-digits / unit):
                ink = "white" if abs(value) > 0.6 * span else BLACK
                number = f"{unit * value:.{digits}f}"
                number = number.replace("0.", ".", number.lstrip("-").startswith("0."))
                number = number.replace("-", "\N{MINUS SIGN}")
                ax.text(column, row, number, fontsize=_SMALL, color=ink, **_MIDDLE)
        of = [model.get(str(prior[k]), "") for k in block]
        starts = [k for k, name in enumerate(of) if not k or name != of[k - 1]]
        for start, end in zip(starts, [*starts[1:], len(of)], strict=True):
            ax.axvline(start - 0.5, color=BLACK, linewidth=1.2)
            name = "\n".join(textwrap.wrap(of[start], max(9, int(4.2 * (end - start)))))
            ax.text(start - 0.4, -0.6, name, fontsize=_SMALL, va="bottom")
        ax.set_xticks(range(len(block)), [str(prior[k]) for k in block], rotation=90 * (len(prior) > 9))
        ax.set_yticks(range(len(new)), [str(c) for c in new])
        beside = ax.secondary_yaxis("right", functions=(_same, _same))
        beside.set_yticks(range(len(new)), [f"{total:.2g}" for total in totals])
        beside.set_ylabel("sum of $|w|$, all priors", fontsize=7.5)
        for side in (ax, beside):
            side.tick_params(length=0, labelsize=7.5)
            side.spines[:].set_visible(False)
        ax.grid(False)
    fig.supxlabel("prior class", fontsize=8.5)
    fig.supylabel("new class", fontsize=8.5)
    label = "transfer weight" + (" (in cells: thousandths)" if unit > 1.0 else "")
    fig.colorbar(shades, ax=axes[:, 0], label=label, aspect=24, pad=0.02)
    return fig


# --- useless priors -----------------------------------------------------------------------------------------


def negative(table):
    """Negative transfer: what priors that say nothing cost against No-Transfer on the same samples.

    A panel per kind of useless priors; rows with useless "none" are No-Transfer, the reference, and MKTL
    without priors, a thin line in every panel.
    """
    kinds = {kind for kind in table["useless"] if kind != "none"}
    kinds = sorted(kinds, key=lambda kind: (kind != "shuffled", len(kind), kind))
    fig, (axes,) = panels(len(kinds), size=(2.6 * len(kinds) + 0.4, 3.6), sharey=True)
    grids = {
        key: 100.0 * runs.pivot(index="seed", columns="n_per_class", values="accuracy")
        for key, runs in table.groupby(["useless", "method"])
    }
    reference = grids["none", "NoTransfer"]
    alone = (grids["none", "MKTL"] - reference).mean()
    for ax, kind in zip(axes, kinds, strict=True):
        ax.axhline(0.0, **method_style("NoTransfer", marker=""))
        thin = {"color": method_style("MKTL")["color"], "linewidth": 0.9}
        ax.plot(alone.index, alone, label="MKTL without priors", **thin)
        for method in _methods(table[table["useless"] == kind]):
            grid = grids[kind, method] - reference
            band(ax, grid.columns, grid.to_numpy(), method, alpha=0.15)
        shuffled = kind == "shuffled"
        stamp(ax, "composed" if shuffled else "simulated")
        title = "scores of real priors, shuffled" if shuffled else f"{kind.split()[-1]} columns of noise"
        ax.set_title(title, fontsize=9, pad=14)
        _counts(ax, table["n_per_class"])
        ax.set_xlabel("training samples per class")
    _limits(axes)
    axes[0].set_ylabel("accuracy − No-Transfer's [points]")
    _legend(fig, axes)
    return fig


# --- sparsity -----------------------------------------------------------------------------------------------


def along_p(table, n_priors):
    """Test accuracy and the number of priors in use (of `n_priors`), against p; thin lines are single runs.

    Rows with p "auto" have their p, which is marked in both panels, in p_found.
    """
    is_auto = table["p"].astype(str) == "auto"
    automatic = table["p_found"][is_auto].astype(float) if is_auto.any() else ()
    table = table.assign(p=table["p"].mask(is_auto, table.get("p_found"))).astype({"p": float})
    fig, (axes,) = panels(2, size=(8.0, 3.4), sharex=True)
    # the automatic p may be one of the others
    means = table.groupby(["seed", "p"])[["accuracy", "used"]].mean().reset_index()
    for ax, column, factor in zip(axes, ("accuracy", "used"), (100.0, 1.0), strict=True):
        thin_lines(ax, curve(ax, means, "p", column, "MKTL", factor=factor, alpha=0.0), GREY)
        ax.cuelearn_band = f"thin: {table['seed'].nunique()} runs, thick: their mean"
        for p in automatic[:1]:
            look = {"color": method_style("MKTL auto")["color"], "linestyle": "--", "linewidth": 1.2}
            ax.axvline(p, label=f"$p$ auto = {p:.3f}", **look)
        _p_axis(ax, table["p"])
    axes[0].set_ylabel("test accuracy [%]")
    axes[1].axhline(n_priors, color=BLACK, linestyle=":", linewidth=1.0, label="all priors")
    axes[1].set_ylabel("priors in use per new class")
    axes[1].set_ylim(0.0, 1.08 * max(table["used"].max(), n_priors))
    axes[1].yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    _legend(fig, axes[1:])
    return fig


def _p_axis(ax, values):
    """Axis of p with most of its room for those near 1."""
    low = min(values)
    high = max(values)
    ax.set_xlim(1.0 + 0.85 * (low - 1.0), 1.0 + 1.18 * (high - 1.0))
    ax.set_xscale("function", functions=(_to_log, _from_log))
    ticks = [p for p in (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0) if low <= p <= high]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel(r"$p$ (axis: $p - 1$, logarithmic)")


def _to_log(p):
    """Place of p on the axis: ln(p - 1)."""
    return np.log(np.maximum(np.asarray(p, dtype=float) - 1.0, 1e-9))


def _from_log(place):
    return 1.0 + np.exp(place)


def at_p(axes, fitted, p):
    """For a slider: the groups' shares, largest first, and the accuracy along p, a ring where it stands.

    `fitted` has for each p the norms of all groups, the kernel's first, and the test accuracy.
    """
    left, right = axes
    norms, accuracy = fitted[p]
    share = np.maximum(norms / norms.sum(), 1e-12)
    rank = np.arange(1, len(norms))
    left.loglog(rank, np.sort(share[1:])[::-1], color=BLUE, linewidth=2.0)
    left.plot([0.7], [share[0]], marker="s", markersize=8, color=BLACK)
    left.text(0.9, share[0], f"kernel: {share[0]:.0%} of all norms", fontsize=8, va="center")
    left.set(xlim=(0.6, 1.1 * len(norms)), ylim=(1e-5, 2.0), xlabel="priors' weights, largest first")
    left.set_ylabel("share of the sum of norms")
    left.minorticks_off()
    right.plot([*fitted], [a for _, a in fitted.values()], color=GREY, linewidth=1.0)
    right.plot([p], [accuracy], marker="o", markersize=9, color=BLUE)
    right.text(p, accuracy + 2.0, f"{accuracy:.0f}%", ha="center", fontsize=8)
    _p_axis(right, fitted)
    right.set(ylim=(0.0, 100.0), ylabel="test accuracy [%]")
