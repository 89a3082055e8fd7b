"""Drawings of the OMCL chapter, from the numbers (or images) of its experiments."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from companion.plots.common import curve, legend, mosaic, paired, panels, where
from companion.run.figures import BLACK, BLUE, GREEN, GREY, ORANGE, RED, band, method_style
from cuelearn.core.intervals import interval
from cuelearn.omcl import PassiveAggressive, Projectron, ProjectronPlusPlus

# lines of the single cues: muted colours, thin and unmarked, so that the methods stand out
CUE_COLOURS = ("#555555", "#A6761D", "#7B9E6B", "#8C86C7", "#B5838D", "#5F9EA0")
CUE_LINES = ("-", "--", "-.", ":", "-", (0, (4, 1, 1, 1, 1, 1)))
METHODS = ("OMCL-BM", "OMCL-PERC", "Flat", "Flat maps", "Vote")
SEEN = "training samples seen"


def _cue_style(cue, cues):
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
    arrow = {"arrowstyle": "-|>", "color": GREY}
    for y, (cue, of_cue, weight) in enumerate(zip(cues, scores, trust, strict=True)):
        ax.text(0.2, y, cue, **box)
        ax.text(2.0, y, f"learner {y + 1}", **box)
        ax.annotate("", (1.45, y), (0.65, y), arrowprops=arrow)
        ax.barh(y + np.array([-0.22, 0.0, 0.22]), of_cue, 0.2, left=3.0, color=list(classes.values()))
        ax.annotate("", (5.55, 1.5), (4.1, y), arrowprops={**arrow, "lw": 0.5 + 3.5 * weight})
    ax.text(6.25, 1.5, "second layer:\nwhom to trust,\nfor which class", **box)
    total = trust @ scores / trust.sum()
    for y, (name, colour), value in zip((0.9, 1.5, 2.1), classes.items(), total, strict=True):
        ax.barh(y, 1.4 * value, 0.45, left=7.5, color=colour)
        ax.text(7.6 + 1.4 * value, y, name, va="center", weight="bold" if value == total.max() else None)
    for x, head in ((0.2, "cues"), (2.0, "first layer"), (3.5, "scores"), (8.1, "class")):
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
        for name, tip, place in (("PU", 0.0, (1.6, -0.16)), ("U", height, (1.2, 0.72 * height + 0.05))):
            colour = BLUE if name == taken else GREY
            ax.annotate("", (2.0, tip), (0, 0), arrowprops={"arrowstyle": "-|>", "lw": 2.2, "color": colour})
            ax.text(*place, name, color=colour, ha="center", va="center", weight="bold")
        ax.plot([2.0, 2.0], [0, height], color=RED, ls="--")
        ax.text(2.07, height / 2, r"$\Delta$", color=RED, va="center", fontsize=11)
        ax.text(2.82, eta, r"$\eta$", color=GREEN, va="top", fontsize=11)
        ax.text(0.0, -0.38, "span of the samples kept", va="center", fontsize=8)
        ax.set(title=title, xlim=(-0.1, 3.1), ylim=(-0.6, 1.35), xticks=(), yticks=())
    plt.close(fig)
    return fig


def verdict_parts(verdicts):
    """Number and 95% interval of each part of verdicts, in percent; right of 0 the claim is wrong."""
    colours = {"holds": GREEN, "fails": RED}
    tallest = max(len(verdict.parts) for verdict in verdicts)
    fig, (axes,) = panels(len(verdicts), size=(8.4, 0.9 + 0.19 * tallest))
    for ax, verdict in zip(axes, verdicts, strict=True):
        for row, (_, part) in enumerate(verdict.parts):
            colour = colours.get(part.verdict, GREY)
            if part.low is not None:  # a single run has no interval
                ax.plot([100 * part.low, 100 * part.high], [row, row], color=colour, lw=2)
            ax.plot(100 * part.number, row, "o", color=colour)
        ax.axvline(0.0, color=BLACK, lw=0.8)
        names = [name.replace("cue: ", "") for name, _ in verdict.parts]
        ax.set_yticks(range(len(names)), names, fontsize=7.5)
        ax.set(title=verdict.claim, ylim=(tallest - 0.5, -0.5), xlabel="error minus the other's [points]")
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
    """For a slider of C: mistakes of each cue and of PA-I on all, and its weights of the cues' own scores;
    `first` is a `WatchedOMCL` that has seen the samples of `y`."""
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


def contact_sheet(images, names, cells):
    """Images in a grid, a row for each name; `cells` has their numbers."""
    fig, ((ax,),) = panels(1, size=(0.8 * cells.shape[1] + 0.6, 0.75 * len(names)))
    ax.imshow(mosaic(np.stack([images[i] for i in cells.ravel()]), cells.shape[1]))
    height = len(images[cells[0, 0]])
    ax.set_yticks(height * (np.arange(len(names)) + 0.5), names)
    ax.set_xticks(())
    ax.grid(False)
    return fig


def _method(ax, table, method, value, **style):
    """Mean and band over permutations of `value` against samples seen."""
    rows = where(table, method=method)
    every = max(1, rows["n_seen"].nunique() // 7)
    curve(ax, rows, "n_seen", value, method, runs="permutation", markevery=every, **style)


def learning_curves(table, cues, paper=None):
    """Online error, test error, and others' test error minus OMCL-BM's (thesis figures 3.1, 3.4).

    Only the differences, from the second sixth of the samples on, have bands; of the cues the best at the end
    is among them. `paper` has the thesis' errors at the end in percent, by method.
    """
    table = _aligned(table)
    late = table[table["n_seen"] >= table["n_seen"].max() / 6]
    fig, axes = panels(2, 2, size=(8.4, 6.4))
    heads = {"online": "mistakes so far while learning", "test": "test samples, averaged predictors"}
    for ax, (kind, head) in zip(axes[0], heads.items(), strict=True):
        value = f"{kind}_error"
        for cue in cues:
            style = {"factor": 100, "alpha": 0.0, "marker": "", **_cue_style(cue, cues)}
            curve(ax, where(table, method=f"cue: {cue}"), "n_seen", value, runs="permutation", **style)
        for method in METHODS:
            _method(ax, table, method, value, factor=100, alpha=0.0)
        highest = late.groupby(["method", "n_seen"])[value].mean().max()
        ax.set(xlabel=SEEN, ylabel=f"{kind} error [%]", title=head, ylim=(0, min(100, 110 * highest)))
    ax = axes[0, 1]
    for method, percent in ({} if paper is None else paper).items():
        cue = method.removeprefix("cue: ")
        colour = (_cue_style(cue, cues) if cue in cues else method_style(method))["color"]
        end = 1.03 * table["n_seen"].max()
        ax.plot(end, percent, "D", color=colour, markerfacecolor="none", clip_on=False)
    if paper is not None:
        ax.plot([], [], "D", color=GREY, markerfacecolor="none", label="the thesis' end points")
    ends = table.groupby(["permutation", "method"])["test_error"].last().groupby("method").mean()
    best = f"cue: {min(cues, key=lambda cue: ends[f'cue: {cue}'])}"
    style = {"runs": "permutation", "factor": 100, "marker": "", "alpha": 0.1}
    paired(axes[1, 0], late, "n_seen", "test_error", "OMCL-BM", METHODS, **style)
    error = late.pivot(index="permutation", columns=["method", "n_seen"], values="test_error")
    gap = 100 * (error[best] - error["OMCL-BM"]).dropna(axis=1)
    band(axes[1, 0], gap.columns, gap.to_numpy(), alpha=0.06, **_cue_style(best[5:], cues))
    title = f"permutation by permutation ({best})"
    axes[1, 0].set(xlabel=SEEN, ylabel="test error minus OMCL-BM's [points]", title=title)
    axes[1, 1].axis("off")
    axes[1, 1].legend(*ax.get_legend_handles_labels(), loc="center left", handlelength=3.5)
    return fig


def _aligned(table):
    """The k-th looks of all permutations at their mean `n_seen`: drives that teach differ in length."""
    look = table.groupby(["permutation", "method"]).cumcount()
    return table.assign(n_seen=table["n_seen"].groupby(look).transform("mean"))


def support_sizes(tables):
    """Size of the support set against samples seen, a panel for each table (thesis figures 3.2, 3.5)."""
    fig, (axes,) = panels(len(tables), size=(4.2 * len(tables), 3.4))
    for ax, (title, table) in zip(axes, tables.items(), strict=True):
        for method in ("OMCL-PERC", "OMCL-BM", "OMCL-BM sparser", "Flat"):
            _method(ax, _aligned(table), method, "support")
        ax.set(title=title, xlabel=SEEN, ylabel="support vectors, all cues", ylim=(0, None))
    axes[0].legend()
    return fig


def _normalised(weights):
    """Each class's weights over the largest of its row, mean over runs."""
    weights = np.asarray(weights)
    return (weights / np.abs(weights).max(axis=2, keepdims=True)).mean(axis=0)


def second_layer(weights, cues, classes):
    """Weights of the second layer, (n_runs, n_classes, n_cues * n_classes), as an image (thesis figures 3.3
    and 3.6)."""
    picture, n = _normalised(weights), len(classes)
    limit = np.abs(picture).max()
    fig, ((ax,),) = panels(1, size=(8.4, 1.5 + 0.22 * n))
    image = ax.imshow(picture, interpolation="nearest", aspect="auto", cmap="RdBu", vmin=-limit, vmax=limit)
    for j, cue in enumerate(cues):
        ax.text((j + 0.5) * n - 0.5, -0.8, cue, ha="center", va="bottom", weight="bold")
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
    """Mean loss so far of the second layer, of every cue, and the bound of theorem 3.1, divided alike; `runs`
    has for each title the losses of `omcl.regret`, `cues` the names of its cues."""
    rows = -(-len(runs) // 2)
    fig, axes = panels(2, rows, size=(8.4, 2.7 * rows + 0.3))
    for ax in axes.ravel()[len(runs) :]:
        ax.axis("off")
    for ax, (title, run) in zip(axes.ravel(), runs.items(), strict=False):
        alone = {f"cue {j}": _cue_style(cue, cues[title]) for j, cue in enumerate(cues[title])}
        second = {"PA-I": method_style("OMCL-BM", marker="", label="OMCL-BM (PA-I on top)")}
        second |= {name: method_style(name) for name in ("gradient descent", "bound")}
        for name, style in (alone | second).items():
            ax.plot(run["n_seen"], run[name] / run["n_seen"], **style)
        ax.set(title=title, xlabel=SEEN, ylabel="mean loss so far")
        ax.set_ylim(0, 1.3 * max(line.get_ydata()[-1] for line in ax.lines))
        ax.legend(handles=ax.lines[: len(alone)], fontsize=7.5, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    fig.legend(handles=ax.lines[len(alone) :], loc="outside upper center", ncols=3, handlelength=3.5)
    return fig


def last_against_average(table):
    """Test error of the last hypothesis and of the averaged one, for every run (thesis 3.3)."""
    sets = dict(list(table.groupby("data", sort=False)))
    fig, (axes,) = panels(len(sets), size=(2.8 * len(sets), 3.2))
    for ax, (name, rows) in zip(axes, sets.items(), strict=True):
        ends = (0, 105 * rows[["last", "average"]].to_numpy().max())
        ax.plot(ends, ends, color="black", lw=0.8)
        for method, group in rows.groupby("method", sort=False):
            style = method_style(method, linestyle="", markersize=3, alpha=0.6)
            ax.plot(100 * group["last"], 100 * group["average"], **style)
        ax.set(title=name, xlabel="last hypothesis [%]", xlim=ends, ylim=ends, aspect="equal")
    axes[0].set_ylabel("test error, averaged [%]")
    legend(fig, axes[0], 5)
    return fig


def what_cues_confuse(pairs, images):
    """For each cue two categories that it confuses, and how often the other cues do (thesis figure 2.1)."""
    methods = [*pairs["cue"], "OMCL-BM"]
    fig, axes = panels(3, len(pairs), size=(6.4, 1.5 * len(pairs)), width_ratios=(1, 1, 1.6))
    for (*places, bars), (_, pair) in zip(axes, pairs.iterrows(), strict=True):
        for ax, image, category in zip(places, ("image", "other"), ("first", "second"), strict=True):
            ax.imshow(images[int(pair[image])])
            ax.set(title=pair[category], xticks=(), yticks=())
            ax.grid(False)
        places[0].set_ylabel(f"{pair['cue']}\nconfuses")
        colours = [ORANGE if name == pair["cue"] else GREY for name in pairs["cue"]]
        bars.barh(methods, 100 * pair[methods].astype(float), color=[*colours, BLUE])
        bars.invert_yaxis()
        bars.set_xlim(0, 105 * pairs[methods].to_numpy().max())
    bars.set_xlabel("taken for each other [%]")
    return fig


def confusions(runs, cues, classes):
    """Share of each class taken for each class, by every cue alone and by OMCL-BM, means over runs."""
    table = confusion_table(runs, cues, classes)
    methods = table.columns[2:]
    rows = len(methods) // 3 + 1
    fig, axes = panels(3, rows, size=(8.4, 2.9 * rows), sharey=True)
    for ax in axes.ravel()[len(methods) :]:
        ax.axis("off")
    for ax, method in zip(axes.ravel(), methods, strict=False):
        shares = 100 * table[method].to_numpy().reshape(len(classes), -1)
        image = ax.imshow(shares, cmap="viridis", vmin=0, vmax=100)
        ax.set_xticks(range(len(classes)), classes, rotation=90, fontsize=8)
        ax.set_yticks(range(len(classes)), classes, fontsize=8)
        ax.set(title=method.removeprefix("cue: "), xlabel="taken for")
        ax.grid(False)
    axes[0, 0].set_ylabel("category")
    fig.colorbar(image, cax=axes[-1, -1].inset_axes((0.05, 0.1, 0.08, 0.8)), label="share [%]")
    return fig


def confusion_table(runs, cues, classes):
    """The drawn numbers of `confusions` in long form; `runs` has a dict for each permutation."""
    index = pd.MultiIndex.from_product([classes, classes], names=["category", "taken for"])
    methods = [*(f"cue: {cue}" for cue in cues), "OMCL-BM"]
    mean = {method: np.mean([run[method] for run in runs], axis=0).ravel() for method in methods}
    return pd.DataFrame(mean, index).reset_index()


def error_table(results, classes, cues, methods):
    """Test error in percent by class, overall (ALL) and half its 95% interval over permutations (+-); and
    Vote's ties (thesis tables 3.1 and 3.2)."""
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
    """Forms and test errors of the three levels of integration (thesis table 2.1): `batch` from
    `omcl.integration_run`, `online` the name of the online method and its errors for each level."""
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
