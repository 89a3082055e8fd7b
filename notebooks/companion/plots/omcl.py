"""Drawings of the OMCL chapter: its two ideas, learning curves, theorem 3.1, parts of verdicts, sliders."""

import itertools
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from companion.omcl.claims import at_end, at_half
from companion.plots.common import (
    along,
    distinct,
    end_labels,
    forest,
    intervals,
    legend,
    log_axis,
    matrix,
    minus_others,
    name_ends,
    panels,
)
from companion.protocol import where
from companion.run.claims import Verdict, claims
from companion.run.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    band,
    method_style,
    name_methods,
    name_of,
)
from cuelearn.omcl import PassiveAggressive, Projectron, ProjectronPlusPlus

SEEN = "training samples seen"
#: Rivals whose curves are drawn; single cues besides.
RIVALS = ("Flat", "OMCL-PERC", "Vote")
#: Rules for requesting labels: their names and styles.
RULES = {
    "margin": ("margin rule, at its b", {"color": BLUE, "marker": "o"}),
    "threshold": ("margin below a threshold", {"color": ORANGE, "marker": "s", "linestyle": "--"}),
    "random": ("at random", {"color": GREY, "marker": "^", "linestyle": "-."}),
}
#: Of the drawn samples, after which a curve is shown: before it every method guesses.
WARM = 1 / 6


def idea_layers():
    """Scores of four cues' learners for three classes, the weights of a second layer, and its scores."""
    cues = ["outline", "edges", "texture", "colour"]
    scores = {"cow": [0.1, 0.3, 0.3, 0.9], "cup": [0.9, 0.8, 0.5, 0.2], "car": [0.4, 0.2, 0.6, 0.5]}
    scores = pd.DataFrame(scores, index=cues)
    trust = pd.Series([1.0, 0.9, 0.35, 0.15], cues)
    combined = scores.mul(trust, axis=0).sum()
    colours = [BLUE, ORANGE, GREEN]
    fig, (axes,) = panels(3, size=(8, 2.7))
    scores.plot.barh(ax=axes[0], color=colours, title="first layer: one learner a cue", xlabel="score")
    trust.plot.barh(ax=axes[1], color=GREY, title="second layer: which cue to trust", xlabel="weight")
    combined.plot.barh(ax=axes[2], color=colours, title="class: the largest sum", xlabel="weighted sum")
    axes[0].set_xlim(0, 1.5)
    plt.close(fig)
    return fig


def idea_projection(eta=0.5):
    """An update U, its projection PU on the span of what is kept, and the residual against eta."""
    fig, (axes,) = panels(2, size=(8, 2.7), sharey=True)
    titles = r"$\Delta \leq \eta$: add PU, keep nothing", r"$\Delta > \eta$: add U, keep the sample"
    for ax, height, title, colours in zip(
        axes, (0.32, 1.15), titles, ((BLUE, GREY), (GREY, BLUE)), strict=True
    ):
        ax.axhspan(-eta, eta, color=GREEN, alpha=0.12, lw=0)
        ax.quiver([0, 0], [0, 0], [2, 2], [0, height], color=colours, angles="xy", scale_units="xy", scale=1)
        ax.plot([2, 2], [0, height], color=RED, ls="--")
        ax.text(1.5, -0.2, "PU", color=colours[0])
        ax.text(1.0, 0.55 * height + 0.1, "U", color=colours[1])
        ax.text(2.07, height / 2, r"$\Delta$", color=RED)
        ax.text(2.7, eta - 0.15, r"$\eta$", color=GREEN)
        ax.set(title=title, xlim=(-0.1, 3), ylim=(-0.6, 1.35), xlabel="span of the samples kept")
    plt.close(fig)
    return fig


def aligned(table):
    """The k-th looks of all permutations at their mean `n_seen`: drives that teach differ in length."""
    look = table.groupby(["permutation", "method"]).cumcount()
    return table.assign(n_seen=table["n_seen"].groupby(look).transform("mean"))


def learning_curves(table):
    """Errors against the samples seen, and below OMCL-BM's at the end minus those of all others.

    `table` is as thesis figures 3.1 and 3.4 save it: permutation, method, n_seen, online_error, test_error.
    """
    ends = 100 * at_end(table)
    table = aligned(table)
    cues = ends.filter(like="cue: ").mean().sort_values().index
    name_methods(cues)
    n_rows = ends.shape[1] - 1
    heights = (2.4, 2.4, 0.5 + 0.2 * n_rows)
    fig, axes = panels(1, 3, size=(6.0, 1.4 + sum(heights)), height_ratios=heights)
    online, test, differences = axes[:, 0]
    for ax, column in ((online, "online_error"), (test, "test_error")):
        _few_curves(ax, table, column, cues)
    online.set_ylabel("online error [%]")
    test.set(ylabel="test error [%]", xlabel=SEEN)
    xlabel = "OMCL-BM's test error minus this one's [points]\nleft of 0: OMCL-BM is better"
    minus_others(differences, ends, "OMCL-BM", xlabel)
    return fig


def _few_curves(ax, table, column, cues):
    """OMCL-BM with its band, its rivals and the best cue, named at their ends; the other cues in grey."""
    begin = WARM * table["n_seen"].max()
    late = table[table["n_seen"] >= begin]
    lines = {cue: {"label": "other cues", "color": "#BBBBBB", "marker": ""} for cue in cues[:0:-1]}
    lines |= {method: method_style(method, markevery=3) for method in (*RIVALS, cues[0], "OMCL-BM")}
    lines[cues[0]] |= {"label": f"best {cues[0]}", "color": BLACK, "marker": "", "linestyle": ":"}
    for method, style in lines.items():
        rows = where(late, method=method)
        grid = 100 * rows.pivot(index="permutation", columns="n_seen", values=column).dropna(axis=1)
        if method == "OMCL-BM":
            band(ax, grid.columns, grid.to_numpy(), **style)
        else:
            ax.plot(grid.mean(), **style)
    ax.set_xlim(begin, table["n_seen"].max())
    name_ends(ax)


def confusions(table):
    """What every category is taken for by all cues together, and how often each cue alone recognises it.

    `table` has the shares by "category" and "taken for", a column for each method, OMCL-BM the last.
    """
    *cues, everything = table.columns[2:]
    shares = 100 * table.pivot(index="category", columns="taken for", values=everything)
    confused = shares.to_numpy() + shares.to_numpy().T
    apart = squareform(confused.max() - confused, checks=False)
    order = shares.index[leaves_list(linkage(apart, "average"))]  # what is confused is side by side
    fig, ((top,), (below,)) = panels(1, 2, size=(5.2, 6.4))
    matrix(top, shares.loc[order, order], numbers="{:.0f}", aspect="auto", cmap="Blues")
    top.set_title(f"{everything}: a category (row) is taken for [%]")
    recognised = table[table["category"] == table["taken for"]].set_index("category").loc[order]
    rows = range(len(order))
    for cue, color, marker in zip(cues, (ORANGE, GREEN, PURPLE, BLACK), "sv^D", strict=True):
        below.plot(100 * recognised[cue], rows, marker, color=color, mfc="none", label=cue)
    below.plot(100 * recognised[everything], rows, "o", color=BLUE, markersize=8, label=everything)
    below.set(title="recognised, by each cue alone too [%]", xlim=(0, 100), ylim=top.get_ylim())
    below.set_yticks(rows, order)
    below.legend(loc="lower left")
    return fig


def regret(losses, bounds):
    """Theorem 3.1: cumulative losses of a first permutation, and all runs' shares of their bounds.

    `losses` has the cues' cumulative losses, those of two second layers and the bound; `bounds` has what is
    measured and the bound, a row for each run, second layer and quantity.
    """
    names = distinct(losses["data"])
    n_rows = -(-len(names) // 2)
    fig = plt.figure(figsize=(6.4, 2.3 * n_rows + 2.6), layout="constrained")
    upper, lower = fig.subfigures(2, 1, height_ratios=(2.3 * n_rows + 0.3, 2.3))
    tops = [upper.add_subplot(n_rows, 2, k + 1) for k in range(len(names))]
    for ax, name in zip(tops, names, strict=True):
        rows = where(losses, data=name).set_index("n_seen")
        cues = rows.filter(like="cue").dropna(axis=1)
        ax.plot(cues, color="#BBBBBB", lw=0.8)
        ax.plot(cues.min(axis=1), color=BLACK, ls=":", label="best cue (grey: the others)")
        ax.plot(rows["bound"], **method_style("bound", label="bound of gradient descent"))
        ax.plot(rows["gradient descent"], **method_style("gradient descent", label="gradient descent on top"))
        ax.plot(rows["PA-I"], **method_style("OMCL-BM", marker="", label="PA-I on top (OMCL-BM)"))
        highest = 1.05 * rows[["bound", "gradient descent", "PA-I"]].max(axis=None)
        ax.set(title=name, ylim=(0, highest), xlabel=SEEN, ylabel="cumulative loss")
    legend(upper, tops[:1], 2)
    below = lower.add_subplot()
    bounded = bounds.dropna(subset="bound")
    kinds = {
        "gradient descent": ("loss, gradient descent", method_style("gradient descent")["color"], "^"),
        "PA-I": ("mistakes, PA-I", BLUE, "o"),
    }
    labels = []
    for layer, (label, color, marker) in kinds.items():
        for name in names:
            rows = where(bounded, data=name, **{"second layer": layer})
            shares = 100 * rows["measured"] / rows["bound"]
            style = {"color": color, "marker": marker, "ls": "", "mfc": "none"}
            below.plot(shares, np.full(len(shares), len(labels)), **style)
            labels.append(f"{name}: {label}")
    below.axvline(100, **method_style("bound"))
    below.text(99, 0, "bound", ha="right", va="center", fontsize=8)
    below.set_yticks(range(len(labels)), labels)
    below.invert_yaxis()
    below.set(xlim=(0, 104), xlabel="share of the bound reached [%], a point for each permutation")
    return fig


def few_labels(table):
    """Errors against the share of labels requested, a panel for each method and data set, and below them the
    differences at half of the labels."""
    names = distinct(table["data"])
    methods = distinct(table["method"])
    fig = plt.figure(figsize=(7.4, 2.3 * len(methods) + 2.6), layout="constrained")
    upper, lower = fig.subfigures(2, 1, height_ratios=(2.3 * len(methods) + 0.4, 2.2))
    axes = upper.subplots(len(methods), len(names), squeeze=False)
    differences = {"all": {}, "random": {}}
    for (method, name), ax in zip(itertools.product(methods, names), axes.flat, strict=True):
        part = where(table, method=method, data=name)
        _requested(ax, part)
        errors = 100 * at_half(part)
        for other, rows in differences.items():
            rows[f"{name}, {name_of(method)}"] = errors["margin"] - errors[other]
    for ax, name in zip(axes[0], names, strict=True):
        ax.set_title(name)
    for ax, method in zip(axes[:, 0], methods, strict=True):
        ax.set_ylabel(f"{name_of(method)}, test error [%]")
    for ax in axes[-1]:
        ax.set_xlabel("labels requested [%]")
    legend(upper, axes[0, 0], 4)
    left, right = lower.subplots(1, 2, sharey=True)
    forest(left, intervals(differences["all"]), "half by the margin minus all labels [points]")
    forest(right, intervals(differences["random"]), "half by the margin minus half at random [points]")
    return fig


def _requested(ax, table):
    """The curves of all rules; dotted: half of the labels."""
    for rule, (label, style) in RULES.items():
        of_rule = where(table, rule=rule)
        share = 100 * of_rule.groupby("value")["requested"].mean()
        errors = 100 * of_rule.pivot(index="permutation", columns="value", values="test_error")
        band(ax, share, errors, label=label, markersize=4, **style)
        for value in share.index if rule == "margin" else ():
            point = share[value], errors[value].mean()
            ax.annotate(f"{value:g}", point, (3, 4), textcoords="offset points", fontsize=7, color=BLUE)
    with_all = 100 * where(table, rule="all")["test_error"].mean()
    ax.axhline(with_all, color=BLACK, lw=0.8, label="all labels")
    ax.axvline(50, color=GREY, lw=0.8, ls=":")
    ax.set(xlim=(0, 100), yscale="log", ylim=(0.7 * with_all, 100))
    log_axis(ax.yaxis, plain=True)


def verdict_parts(verdicts):
    """Number and 95% interval of each part of verdicts, in percent; right of 0 the claim is wrong."""
    colours = {"holds": GREEN, "holds, smaller": GREEN, "fails": RED}
    heights = [1.0 + len(verdict.parts) for verdict in verdicts]
    size = (6.0, 0.9 * len(verdicts) + 0.2 * sum(heights))
    fig, axes = panels(1, len(verdicts), size=size, height_ratios=heights)
    for ax, verdict in zip(axes[:, 0], verdicts, strict=True):
        names = [f"{part.on}, {part.says}" for part in verdict.parts]
        rows = pd.DataFrame(verdict.parts, columns=Verdict._fields, index=names)
        numbers = 100 * rows[["number", "low", "high"]].astype(float)
        table = numbers.assign(color=[colours.get(name, GREY) for name in rows["verdict"]])
        forest(ax, table, "OMCL-BM's test error minus the other's [points]")
        sentence = re.sub(r" \(.*?\)", "", claims().loc[verdict.claim, "claim"])
        ax.set_title(f"{sentence}: {verdict.verdict}", fontsize=9)
    plt.close(fig)
    return fig


def bounded_memory(K, y, etas):
    """For a slider of eta: samples kept in one pass; at every eta their number, and that of the mistakes."""
    models = {}
    for learner in (Projectron, ProjectronPlusPlus):
        models[learner.__name__] = [learner("precomputed", eta=eta).fit(K, y) for eta in etas]

    def curves(axes, eta):
        left, right = axes
        kept = []
        errors = []
        for name, passes in models.items():
            style = method_style(name, marker="")
            model = passes[etas.index(eta)]
            left.plot(np.arange(1, y.size + 1), model.support_sizes_, **style)
            mistakes = [100 * model.online_errors_.mean() for model in passes]
            shares = [100 * len(model.support_) / y.size for model in passes]
            along(right, etas, mistakes, eta, color=style["color"])
            along(right, etas, shares, eta, color=style["color"], linestyle=":")
            kept.append(f"{style['label']} {model.support_sizes_[-1]}")
            errors.append(f"{style['label']} {model.online_errors_.mean():.0%}")
        left.set(xlabel=SEEN, ylabel="samples kept", ylim=(0, 150))
        right.set(xlabel=r"$\eta$", ylabel="share of the samples [%]", ylim=(0, 100))
        left.legend(loc="upper left")
        right.legend(right.get_lines()[-4::2], ("mistakes", "kept"), loc="upper left")
        left.set_title(f"kept: {', '.join(kept)}")
        right.set_title(f"mistakes: {', '.join(errors)}")

    return curves


def trust(first, y, cues):
    """For a slider of C: mistakes of each cue and of PA-I on all, and its weights of the cues' own scores;
    `first` is a `WatchedOMCL` that has seen the samples of `y`."""
    S = np.hstack(first.first_layer_scores())
    wrong = pd.DataFrame(np.transpose([learner.online_errors_ for learner in first.learners_]), columns=cues)
    best_first = wrong.mean().sort_values().index
    colors = (GREEN, RED, PURPLE, ORANGE, SKY, GREY, BLUE)
    colors = dict(zip([*wrong.columns, "OMCL-BM"], colors, strict=True))

    def curves(axes, C):
        left, right = axes
        top = PassiveAggressive(C=C, average=False).fit(S, y)
        shares = 100 * wrong.assign(**{"OMCL-BM": top.online_errors_}).expanding().mean()
        last = shares.iloc[-1]
        left.set(xlabel=SEEN, ylabel="mistakes so far [%]", ylim=(0, 100))
        left.set(xlim=(0, 1.45 * y.size), xticks=range(0, y.size + 1, 200))
        for name, share in shares.items():
            left.plot(share, color=colors[name], linewidth=3 if name == "OMCL-BM" else 1.3)
        ends = [(y.size, end, f"{name}: {end:.0f}%", colors[name]) for name, end in last.items()]
        end_labels(left, ends, at=0.73)
        n_classes = len(top.coef_)
        scaled = top.coef_ / np.abs(top.coef_).max(axis=1, keepdims=True)
        own = np.einsum("mjm->j", scaled.reshape(n_classes, -1, n_classes)) / n_classes
        own = pd.Series(own, wrong.columns)[best_first]
        bars = right.barh(own.index, own, color=[colors[cue] for cue in own.index])
        right.bar_label(bars, fmt="{:.2f}", fontsize=8, padding=3)
        right.set(xlabel="mean weight of a cue's own score / largest", xlim=(0, 1))
        right.set_ylim(len(own) - 0.4, -0.6)
        best = best_first[0]
        left.set_title(f"mistakes: OMCL-BM {last['OMCL-BM']:.0f}%, {best} alone {last[best]:.0f}%")
        right.set_title(f"fewest mistakes at the top; largest weight: {own.idxmax()}")

    return curves
