"""Drawings of the OMCL chapter, from the numbers (or images) of its experiments."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patches import Patch

from companion.plots.common import curve, legend, paired, panels, where
from companion.run.figures import BLACK, BLUE, GREEN, GREY, ORANGE, RED, band, method_style
from cuelearn.core.intervals import interval
from cuelearn.omcl import PassiveAggressive, Projectron, ProjectronPlusPlus

# lines of the single cues: muted colours, thin and unmarked, so that the methods stand out
CUE_COLOURS = ("#555555", "#A6761D", "#7B9E6B", "#8C86C7", "#B5838D", "#5F9EA0")
CUE_LINES = ("-", "--", "-.", ":", "-", (0, (4, 1, 1, 1, 1, 1)))


def _cue_style(cue, cues):
    """Line style of a single cue, the same in every figure of a data set."""
    at = list(cues).index(cue) % len(CUE_LINES)
    return {"label": cue, "color": CUE_COLOURS[at], "linestyle": CUE_LINES[at], "linewidth": 1.1}


def idea_layers():
    """Cues, their learners' scores for three classes, and a second layer that weighs them; made up."""
    cues = ("colour", "texture", "edges", "outline")
    classes = {"cow": BLUE, "cup": ORANGE, "car": GREEN}
    scores = np.array([[0.9, 0.2, 0.5], [0.3, 0.5, 0.6], [0.3, 0.8, 0.2], [0.1, 0.9, 0.4]])
    trust = np.array([0.15, 0.35, 0.9, 1.0])
    fig, ((ax,),) = panels(1, size=(8, 2.9))
    box = {"ha": "center", "va": "center", "bbox": {"boxstyle": "round", "fc": "#F2F2F2", "ec": GREY}}
    arrow = {"arrowstyle": "-|>", "color": GREY, "shrinkA": 0, "shrinkB": 0}
    for y, (cue, of_cue, weight) in enumerate(zip(cues, scores, trust, strict=True)):
        ax.text(0.2, y, cue, **box)
        ax.text(2.0, y, f"learner {y + 1}", **box)
        ax.annotate("", (1.45, y), (0.65, y), arrowprops=arrow)
        ax.annotate("", (3.1, y), (2.55, y), arrowprops=arrow)
        ax.barh(y + np.array([-0.22, 0.0, 0.22]), of_cue, 0.2, left=3.2, color=list(classes.values()))
        ax.annotate("", (5.55, 1.5), (4.25, y), arrowprops={**arrow, "lw": 0.5 + 3.5 * weight})
    ax.text(6.25, 1.5, "second layer:\nwhom to trust,\nfor which class", **box)
    ax.annotate("", (7.5, 1.5), (6.95, 1.5), arrowprops=arrow)
    total = trust @ scores / trust.sum()
    for y, (name, colour), value in zip((0.9, 1.5, 2.1), classes.items(), total, strict=True):
        ax.barh(y, 1.4 * value, 0.45, left=7.6, color=colour)
        ax.text(7.7 + 1.4 * value, y, name, va="center", weight="bold" if value == total.max() else None)
    for x, head in ((0.2, "cues"), (2.0, "first layer"), (3.7, "scores"), (8.2, "class")):
        ax.text(x, -0.75, head, ha="center", color="#555555")
    ax.set(xlim=(-0.4, 9.4), ylim=(3.5, -0.95))
    ax.axis("off")
    plt.close(fig)
    return fig


def idea_projection(eta=0.5):
    """An update U, its projection PU on the span of what is kept, and the residual against eta."""
    fig, (axes,) = panels(2, size=(8, 2.7), sharey=True)
    titles = r"$\Delta \leq \eta$: add PU, keep nothing", r"$\Delta > \eta$: add U, keep the sample"
    for ax, height, title, taken in zip(axes, (0.32, 1.15), titles, ("PU", "U"), strict=True):
        ax.axhspan(-eta, eta, color=GREEN, alpha=0.12, lw=0)
        ax.axhline(0.0, color=BLACK, lw=1)
        for name, tip in (("PU", (2.0, 0.0)), ("U", (2.0, height))):
            colour = BLUE if name == taken else GREY
            look = {"arrowstyle": "-|>", "lw": 2.2, "color": colour, "shrinkA": 0, "shrinkB": 0}
            ax.annotate("", tip, (0, 0), arrowprops=look)
            offset = (1.6, -0.16) if name == "PU" else (1.2, 0.72 * height + 0.05)
            ax.text(*offset, name, color=colour, ha="center", va="center", weight="bold")
        ax.plot([2.0, 2.0], [0, height], color=RED, ls="--")
        ax.text(2.07, height / 2, r"$\Delta$", color=RED, va="center", fontsize=11)
        ax.annotate("", (2.75, eta), (2.75, 0), arrowprops={"arrowstyle": "<->", "color": GREEN})
        ax.text(2.82, eta / 2, r"$\eta$", color=GREEN, va="center", fontsize=11)
        ax.text(0.0, -0.38, "span of the samples kept", va="center", fontsize=8)
        ax.set(title=title, xlim=(-0.1, 3.1), ylim=(-0.6, 1.35), xticks=(), yticks=())
        ax.spines[:].set_visible(False)
    plt.close(fig)
    return fig


def verdict_parts(verdicts):
    """Number and 95% interval of each part of verdicts, in percent; right of 0 the claim is wrong."""
    colours = {"holds": GREEN, "fails": RED}
    sizes = [len(verdict.parts) for verdict in verdicts]
    fig, axes = plt.subplots(1, len(sizes), figsize=(8.4, 0.9 + 0.19 * max(sizes)), layout="constrained")
    for ax, verdict in zip(np.atleast_1d(axes), verdicts, strict=True):
        for row, (_, part) in enumerate(verdict.parts):
            colour = colours.get(part.verdict, GREY)
            if part.low is not None:  # a single run has no interval
                ax.plot([100 * part.low, 100 * part.high], [row, row], color=colour, lw=2)
            ax.plot(100 * part.number, row, "o", color=colour)
        ax.axvline(0.0, color=BLACK, lw=0.8)
        names = [what.replace("cue: ", "") for what, _ in verdict.parts]
        ax.set_yticks(range(len(names)), names, fontsize=7.5)
        ax.set(title=verdict.claim, ylim=(max(sizes) - 0.5, -0.5), xlabel="error minus the other's [points]")
    plt.close(fig)
    return fig


def bounded_memory(K, y):
    """For a slider of eta: how many samples the Projectrons keep in one pass, and their mistakes."""
    seen = np.arange(1, y.size + 1)

    def curves(axes, eta):
        for name, learner in (("Projectron", Projectron), ("ProjectronPlusPlus", ProjectronPlusPlus)):
            model = learner("precomputed", eta=eta).fit(K, y)
            style = method_style(name, marker="")
            axes[0].plot(seen, model.support_sizes_, **style)
            axes[1].plot(seen, 100 * np.cumsum(model.online_errors_) / seen, **style)
        axes[0].set(xlabel="samples seen", ylabel="samples kept", ylim=(0, 150))
        axes[1].set(xlabel="samples seen", ylabel="mistakes so far [%]", ylim=(0, 100))
        axes[0].legend(loc="upper left")

    return curves


def trust(first, y, cues):
    """For a slider of C: mistakes of each cue and of PA-I on all, and its weights of the cues' own scores.

    `first` is a `WatchedOMCL` that has seen the samples of `y`.
    """
    S = np.hstack(first.first_layer_scores())
    seen = np.arange(1, y.size + 1)
    alone = [np.cumsum(learner.online_errors_) / seen for learner in first.learners_]
    style = method_style("OMCL-BM", marker="")

    def curves(axes, C):
        top = PassiveAggressive(C=C, average=False).fit(S, y)
        for cue, errors in zip(cues, alone, strict=True):
            axes[0].plot(seen, 100 * errors, **_cue_style(cue, cues))
        axes[0].plot(seen, 100 * np.cumsum(top.online_errors_) / seen, **style)
        axes[0].set(xlabel="samples seen", ylabel="mistakes so far [%]", ylim=(0, 100))
        axes[0].legend(fontsize=7, ncols=2, loc="upper right")
        n_classes = len(top.coef_)
        scaled = top.coef_ / np.abs(top.coef_).max(axis=1, keepdims=True)
        own = np.einsum("mjm->j", scaled.reshape(n_classes, -1, n_classes)) / n_classes
        axes[1].plot(own, range(len(own)), "o", color=style["color"], markersize=8)
        axes[1].set(xlabel="mean weight of a cue's own score / largest", xlim=(0, 1))
        axes[1].set_ylim(len(own) - 0.5, -0.5)
        axes[1].set_yticks(range(len(own)), list(cues))

    return curves


def caption(task, runs):
    """How many samples train and test, of how many classes, with which C, and how many permutations."""
    split = next(iter(task.splits.values()))
    n_classes = len(task.data.target_names)
    C = runs["chosen"]["C"]
    return (
        f"{split.train.size} training and {split.test.size} test samples, {n_classes} classes; "
        f"C {C.median():g} (median of choices); {len(C)} permutations."
    )


def contact_sheet(images, rows, columns, cells, size=0.9):
    """Images in a grid with labels at its left and top.

    `cells`, shape (len(rows), len(columns)), has the number of the image in each cell; -1 leaves it empty. A
    cell is `size` inches high.
    """
    height, width = images[int(cells.max())].shape[:2]
    shape = (size * width / height * len(columns) + 0.5, size * len(rows) + 0.3)
    fig, axes = panels(len(columns), len(rows), size=shape)
    for place, ax in np.ndenumerate(axes):
        if cells[place] >= 0:
            ax.imshow(images[int(cells[place])])
        ax.set(xticks=(), yticks=())
        ax.grid(False)
        ax.spines[:].set_visible(False)
    for ax, head in zip(axes[0], columns, strict=True):
        ax.set_title(head, fontsize=8)
    for ax, label in zip(axes[:, 0], rows, strict=True):
        ax.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
    fig.get_layout_engine().set(w_pad=0.01, h_pad=0.01, wspace=0.0, hspace=0.0)
    return fig


def _method(ax, table, method, value, **style):
    """Mean and band over permutations of `value` against samples seen."""
    rows = where(table, method=method)
    every = max(1, rows["n_seen"].nunique() // 7)
    curve(ax, rows, "n_seen", value, method, runs="permutation", markevery=every, **style)


def learning_curves(table, cues, paper=None, methods=("OMCL-BM", "OMCL-PERC", "Flat", "Flat maps", "Vote")):
    """Online error, test error, and how far others' test error is from OMCL-BM's (thesis figures 3.1, 3.4).

    Nine bands would hide each other, so that only the differences have theirs; these begin with the second
    sixth of the samples, since at first everybody errs, now more, now less.

    `table` has the columns permutation, method, n_seen, online_error, test_error; `paper` the thesis' errors
    at the end in percent, by method: open diamonds at the right edge. Of the cues, the best at the end is
    compared with OMCL-BM.
    """
    table = _aligned(table)
    fig, axes = panels(2, 2, size=(8.4, 6.4))
    heads = {"online": "mistakes so far while learning", "test": "test samples, averaged predictors"}
    for ax, (kind, head) in zip(axes[0], heads.items(), strict=True):
        for cue in cues:
            rows = where(table, method=f"cue: {cue}")
            style = {"factor": 100, "alpha": 0.0, "marker": "", **_cue_style(cue, cues)}
            curve(ax, rows, "n_seen", f"{kind}_error", runs="permutation", **style)
        for method in methods:
            _method(ax, table, method, f"{kind}_error", factor=100, alpha=0.0)
        ax.set(xlabel="training samples seen", ylabel=f"{kind} error [%]", title=head)
        low, high = _reach(ax)
        ax.set_ylim(0.95 * low if low > 0.6 * high else 0, min(100, 1.1 * high))
    ax, difference = axes[0, 1], axes[1, 0]
    _end_points(ax, {} if paper is None else paper, cues)
    ends = table.groupby(["permutation", "method"])["test_error"].last().groupby("method").mean()
    best = min(cues, key=lambda cue: ends[f"cue: {cue}"])
    style = {"runs": "permutation", "factor": 100, "marker": "", "alpha": 0.1}
    paired(difference, table, "n_seen", "test_error", "OMCL-BM", methods, **style)
    grids = [
        where(table, method=method).pivot(index="permutation", columns="n_seen", values="test_error")
        for method in (f"cue: {best}", "OMCL-BM")
    ]
    gap = 100 * (grids[0] - grids[1]).dropna(axis=1)
    band(difference, gap.columns, gap.to_numpy(), alpha=0.06, **_cue_style(best, cues))
    title = f"permutation by permutation (cue: {best})"
    difference.set(xlabel="training samples seen", ylabel="test error minus OMCL-BM's [points]", title=title)
    low, high = _reach(difference)
    difference.set_xlim(left=table["n_seen"].max() / 6)
    difference.set_ylim(min(1.3 * low, -2), max(1.3 * high, 2))
    axes[1, 1].axis("off")
    axes[1, 1].legend(*ax.get_legend_handles_labels(), loc="center left", handlelength=3.5)
    return fig


def _aligned(table):
    """The k-th looks of all permutations at their mean `n_seen`: drives that teach differ in length."""
    look = table.groupby(["permutation", "method"]).cumcount()
    return table.assign(n_seen=table["n_seen"].groupby(look).transform("mean"))


def _reach(ax):
    """Least and largest value of a panel's lines but for the first steps, which may leave the picture."""
    lines = [line.get_ydata()[len(line.get_ydata()) // 6 :] for line in ax.lines if len(line.get_ydata()) > 2]
    return min(map(np.min, lines)), max(map(np.max, lines))


def _end_points(ax, paper, cues):
    """The paper's errors at the end, in the colours of their methods, outside the last step."""
    at = 1.03 * ax.dataLim.x1
    for method, percent in paper.items():
        cue = method.removeprefix("cue: ")
        style = _cue_style(cue, cues) if cue in cues else method_style(method)
        ax.plot(at, percent, "D", color=style["color"], markerfacecolor="none", clip_on=False)
    if len(paper):
        ax.plot([], [], "D", color=GREY, markerfacecolor="none", label="the thesis' end points")


def support_sizes(tables, methods=("OMCL-PERC", "OMCL-BM", "OMCL-BM sparser", "Flat")):
    """Size of the support set (sum over the cues) against samples seen (thesis figures 3.2 and 3.5).

    `tables` has for each panel's title its table.
    """
    fig, axes = panels(len(tables), size=(4.2 * len(tables), 3.4))
    for ax, (title, table) in zip(axes[0], tables.items(), strict=True):
        for method in methods:
            _method(ax, _aligned(table), method, "support")
        ax.set(
            title=title, xlabel="training samples seen", ylabel="support vectors, all cues", ylim=(0, None)
        )
    axes[0, 0].legend()
    return fig


def _normalised(weights):
    """Each class's weights over the largest of its row, mean over runs."""
    weights = np.asarray(weights)
    return (weights / np.abs(weights).max(axis=2, keepdims=True)).mean(axis=0)


def second_layer(weights, cues, classes):
    """Weights of the second layer as an image, a block of columns for each cue (thesis figures 3.3 and 3.6).

    `weights` has the shape (n_runs, n_classes, n_cues * n_classes).
    """
    picture, n = _normalised(weights), len(classes)
    limit = np.abs(picture).max()
    fig, ((ax,),) = panels(1, size=(8.4, 1.5 + 0.22 * n))
    shades = {"cmap": "RdBu", "norm": TwoSlopeNorm(0.0, -limit, limit)}
    image = ax.imshow(picture, interpolation="nearest", aspect="auto", **shades)
    for j, cue in enumerate(cues):
        ax.text((j + 0.5) * n - 0.5, -0.8, cue, ha="center", va="bottom", weight="bold")
        if j:
            ax.axvline(j * n - 0.5, color="black", lw=1.2)
    ax.set_xticks(range(picture.shape[1]), list(classes) * len(cues), rotation=90, fontsize=7)
    ax.set_yticks(range(n), classes)
    ax.set(xlabel="score of the cue for class", ylabel="combined for class")
    ax.grid(False)
    fig.colorbar(image, ax=ax, label="weight / largest of its row", fraction=0.03, pad=0.02)
    return fig


def weight_table(weights, cues, classes):
    """The drawn numbers of `second_layer` in long form."""
    places = pd.MultiIndex.from_product([classes, cues, classes], names=["combined for", "cue", "score for"])
    return pd.Series(_normalised(weights).ravel(), places, name="weight").reset_index()


def regret(runs, cues):
    """Mean loss so far of the second layer, of every cue, and the bound of theorem 3.1, divided alike.

    `runs` has the cumulative losses of one run for each title, as from `omcl.regret`,
    `cues` the names of its cues.
    """
    rows = -(-len(runs) // 2)
    fig, axes = panels(2, rows, size=(8.4, 2.7 * rows + 0.3))
    for ax in axes.ravel()[len(runs) :]:
        ax.axis("off")
    for ax, (title, run) in zip(axes.ravel(), runs.items(), strict=False):
        lines = {f"cue {j}": _cue_style(cue, cues[title]) for j, cue in enumerate(cues[title])}
        lines["PA-I"] = method_style("OMCL-BM", marker="", label="OMCL-BM (PA-I on top)")
        lines |= {name: method_style(name) for name in ("gradient descent", "bound")}
        for name, style in lines.items():
            ax.plot(run["n_seen"], run[name] / run["n_seen"], **style)
        ax.set(title=title, xlabel="training samples seen", ylabel="mean loss so far")
        ax.set_ylim(0, 1.3 * max(line.get_ydata()[-1] for line in ax.lines))
        alone = ax.lines[: len(cues[title])]
        ax.legend(handles=alone, fontsize=7.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    fig.legend(handles=ax.lines[len(alone) :], loc="outside upper center", ncols=3, handlelength=3.5)
    return fig


def last_against_average(table):
    """Test error of the last hypothesis and of the averaged one, for every run (thesis 3.3).

    `table` has the columns data, method, permutation, average, last.
    """
    sets = dict(list(table.groupby("data", sort=False)))
    fig, axes = panels(len(sets), size=(2.8 * len(sets), 3.2))
    for ax, (name, rows) in zip(axes[0], sets.items(), strict=True):
        errors = 100 * rows[["last", "average"]].to_numpy()
        ends = (0 if errors.min() < 0.6 * errors.max() else 0.95 * errors.min(), 1.05 * errors.max())
        ax.plot(ends, ends, color="black", lw=0.8)
        for method, group in rows.groupby("method", sort=False):
            style = method_style(method, linestyle="", markersize=3, alpha=0.6)
            ax.plot(100 * group["last"], 100 * group["average"], **style)
        ax.set(title=name, xlabel="last hypothesis [%]", xlim=ends, ylim=ends, aspect="equal")
    axes[0, 0].set_ylabel("test error, averaged [%]")
    legend(fig, axes[0, 0], 5)
    return fig


def what_cues_confuse(pairs, images):
    """For each cue two categories that it confuses, and how often the other cues do (thesis figure 2.1).

    `pairs` is from `omcl.confused_pairs`, `images` holds the rows that it names.
    """
    methods = [*pairs["cue"], "OMCL-BM"]
    all_cues = method_style("OMCL-BM")["color"]
    rows = -(-len(pairs) // 2)
    fig = plt.figure(figsize=(8.4, 1.9 * rows), layout="constrained")
    top = 105 * pairs[methods].to_numpy().max()
    parts = fig.subfigures(rows, 2, squeeze=False).ravel()
    for part, (_, pair) in zip(parts, pairs.iterrows(), strict=False):
        axes = part.subplot_mosaic([["image", "other", "bars"]], width_ratios=(1, 1, 1.6))
        part.suptitle(f"{pair['cue']} confuses", fontsize=10)
        for name, category in (("image", "first"), ("other", "second")):
            axes[name].imshow(images[int(pair[name])])
            axes[name].set_title(pair[category], fontsize=9)
            axes[name].set(xticks=(), yticks=())
            axes[name].grid(False)
        colours = [ORANGE if name == pair["cue"] else GREY for name in pairs["cue"]]
        colours.append(all_cues)
        axes["bars"].barh(methods, 100 * pair[methods].astype(float), color=colours)
        axes["bars"].invert_yaxis()
        axes["bars"].set(xlabel="taken for each other [%]", xlim=(0, top))
    labels = {ORANGE: "this cue alone", GREY: "another cue alone", all_cues: "OMCL-BM, all cues"}
    keys = [Patch(color=colour, label=label) for colour, label in labels.items()]
    fig.legend(handles=keys, loc="outside upper center", ncols=3)
    return fig


def confusions(runs, cues, classes):
    """Share of each class taken for each class, by every cue alone and by OMCL-BM, means over runs.

    `runs` has a dict for each permutation, as from `omcl.permutation_run`.
    """
    methods = {**{cue: f"cue: {cue}" for cue in cues}, "OMCL-BM": "OMCL-BM"}
    rows = len(methods) // 3 + 1
    fig, axes = panels(3, rows, size=(8.4, 2.9 * rows), sharey=True)
    for ax in axes.ravel()[len(methods) :]:
        ax.axis("off")
    for ax, (title, method) in zip(axes.ravel(), methods.items(), strict=False):
        share = 100 * np.mean([run[method] for run in runs], axis=0)
        image = ax.imshow(share, cmap="viridis", vmin=0, vmax=100)
        ax.set_xticks(range(len(classes)), classes, rotation=90, fontsize=8)
        ax.set_yticks(range(len(classes)), classes, fontsize=8)
        ax.set(title=title, xlabel="taken for")
        ax.grid(False)
    axes[0, 0].set_ylabel("category")
    cax = axes[-1, -1].inset_axes((0.05, 0.1, 0.08, 0.8))
    fig.colorbar(image, cax=cax, label="share [%]")
    return fig


def confusion_table(runs, cues, classes):
    """The drawn numbers of `confusions` in long form."""
    index = pd.MultiIndex.from_product([classes, classes], names=["category", "taken for"])
    methods = [*(f"cue: {cue}" for cue in cues), "OMCL-BM"]
    mean = {method: np.mean([run[method] for run in runs], axis=0).ravel() for method in methods}
    return pd.DataFrame(mean, index).reset_index()


def error_table(results, classes, cues, methods):
    """Test error in percent by class and overall, and Vote's ties in percent (thesis tables 3.1 and 3.2).

    Returns
    -------
    DataFrame
        Indexed by method; columns class names, ALL, +- (half the 95% interval of ALL over permutations),
        ties.
    """
    finals = results["finals"]
    rows = {}
    for method in (*(f"cue: {cue}" for cue in cues), *methods):
        grid = 100 * where(finals, method=method).pivot(index="permutation", columns="class", values="error")
        mean, _, high = interval(grid.mean(axis=1))
        rows[method] = [*grid.mean(), mean, high - mean]
    ties = 100 * np.array(results["ties"])
    rows["Vote, ties"] = [*np.nanmean(ties, axis=0), float(np.nanmean(ties)), np.nan]
    return pd.DataFrame.from_dict(rows, "index", columns=[*classes, "ALL", "+-"]).rename_axis("method")


#: Level -> prediction, and what is learnt.
INTEGRATION_FORMS = {
    "low": ("one hyperplane on the long vector: w_y . [phi^1(x), ..., phi^F(x)]", "w_y, jointly"),
    "middle": ("sum_j beta^j alpha^y . [k^j(x_1, x), ..., k^j(x_n, x)]", "beta and alpha^y, jointly"),
    "high": (
        "sum_j beta^j_y s^j(x, .), the scores of one classifier for each cue",
        "the classifiers each on its own, then beta",
    ),
}


def integration_table(batch, online):
    """Forms and test errors of the three levels of integration (thesis table 2.1).

    `batch` is from `omcl.integration_run`, several permutations; `online` has the name of the
    online method and its errors for each level.
    """
    rows = []
    for level, (form, learning) in INTEGRATION_FORMS.items():
        of_level = where(batch, level=level)
        row = {"level": level, "prediction": form, "what is learnt": learning}
        measured = {"online": online[level], "batch": (of_level["method"].iloc[0], of_level["test_error"])}
        for kind, (method, errors) in measured.items():
            mean, _, high = interval(100 * np.asarray(errors))
            row |= {f"{kind} method": method, f"{kind} error [%]": mean, f"{kind} +-": high - mean}
        rows.append(row)
    return pd.DataFrame(rows).set_index("level")
