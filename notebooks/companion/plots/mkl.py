"""Drawings of the MKL chapter, from the numbers of its experiments."""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np

from companion.plots import common
from companion.plots.common import above, distinct, each_run, legend, log_axis, panels, where
from companion.run.figures import GREEN, GREY, RED, TONES, method_style, stamp
from cuelearn.core.intervals import interval

curve, curves, paired = (
    partial(draw, draw=each_run) for draw in (common.curve, common.curves, common.paired)
)

TASK_NAMES = {"different": "categories, one cue of each kind", "pyramid": "categories, four redundant cues"}
TASK_COLORS = {"different": TONES["plum"], "pyramid": TONES["olive"]}  # blue and red are methods
WIDTH = 8.0  # of every figure of panels, inches: its words are read at their size
SMALL = {"fontsize": 7, "handlelength": 3}  # of legends; dashes are seen
TIME, ERROR = "training time [s], one thread", "test error [%]"
ROWS = "rows of single kernels read"
#: A mark at a number that a paper prints.
PRINTED = {"color": "black", "linewidth": 0.8, "linestyle": "-."}


def things(images, table, kernels, errors, labels):
    """Kernels of some cues, and what each takes a drawing for.

    `images` by row of the data; `table` has a column "drawing" and one for each cue, the last the "average".
    """
    cues = list(table.columns[1:])
    fig = plt.figure(figsize=(1.25 * (len(cues) + 1), 1.9 + 1.05 * len(table)), layout="constrained")
    grid = fig.add_gridspec(len(table) + 1, len(cues) + 1, height_ratios=[1.3, *[1] * len(table)])
    for k, cue in enumerate(cues):
        ax = fig.add_subplot(grid[0, k + 1])
        ax.imshow(kernels[cue], vmin=0, vmax=1, interpolation="nearest")
        ax.set_title(f"{labels[cue]}\n{100 * errors[cue]:.0f}% errors", fontsize=9)
        ax.set(xticks=[], yticks=[])
    for i, row in enumerate(table.to_numpy()):
        for k, which in enumerate(row):
            ax = fig.add_subplot(grid[i + 1, k])
            ax.imshow(images[which])
            ax.set(xticks=[], yticks=[])
            if k:
                color = GREEN if cues[k - 1] == "average" or which == row[-1] else RED
                ax.spines[:].set(visible=True, color=color, linewidth=2)
            if i == 0:
                ax.set_title("taken for" if k else "new drawing", fontsize=8)
    return fig


def kernel_weights(bank, labels, weights):
    """Kernel matrices above, kernel weights of each method below (thesis figure 4.1, JMLR figure 1).

    In `weights`, target is the class that a binary problem tells from the rest, 0 for all at once.
    """
    order = np.argsort(labels, kind="stable")
    drawn = distinct(zip(weights["method"], weights["target"], strict=True))
    fig = plt.figure(figsize=(8.6, 4.6), layout="constrained")
    upper, lower = fig.subfigures(2, 1, height_ratios=(1, 1.05))
    axes = upper.subplots(1, bank.n_kernels, sharey=True)
    ticks, kernels = (0, 100, 200), np.arange(1, bank.n_kernels + 1)
    for j, ax in enumerate(axes):
        image = ax.imshow(bank.stack[j][np.ix_(order, order)], vmin=-0.5, vmax=1, interpolation="nearest")
        ax.set(title=f"kernel {j + 1}", xlabel="sample", xticks=ticks, yticks=ticks)
        ax.grid(False)
    axes[0].set_ylabel("sample")
    upper.colorbar(image, ax=axes, shrink=0.9, label="kernel value")
    axes = lower.subplots(1, len(drawn), sharey=True, squeeze=False)[0]
    for ax, (method, target) in zip(axes, drawn, strict=True):
        subset = where(weights, method=method, target=target)
        mean = interval(subset.pivot(index="seed", columns="kernel", values="weight")).mean
        style = method_style(method)
        ax.bar(kernels, mean, color=style["color"], width=0.6)
        for k, value in zip(kernels, mean, strict=True):
            ax.text(k, value + 0.02, f"{value:.2f}", ha="center", fontsize=8)
        ax.cuelearn_band = f"bars: mean of {subset['seed'].nunique()} draws"
        title = f"{style['label']},\np = {subset['p'].iloc[0]:g}"
        title = f"SILP, class {target}\nagainst the rest" if target else title
        ax.set(title=title, xlabel="kernel", ylim=(0, 1.12), xticks=kernels)
    axes[0].set_ylabel(r"weight $d_j / \sum d$")
    return fig


def _by_task(ax, table, column, **style):
    """A curve for each task of a table: `column` against p."""
    for task in distinct(table["task"]):
        word = task.split("-")[0]
        name = TASK_NAMES[word].split(",")[-1].strip()
        look = {"geometric": True, "label": name, "color": TASK_COLORS[word], "marker": "o", **style}
        curve(ax, where(table, task=task), "p", column, **look)


def _errors_against_p(table, drawn, best=()):
    """A panel of error against p for each task, curves being (column, method, style), and one more.

    `best` has the p that the thesis found best on its data, by task.
    """
    tasks = distinct(table["task"])
    fig, axes = panels(len(tasks) + 1, size=(WIDTH, 3.3))
    for ax, task in zip(axes[0], tasks, strict=False):
        for column, method, style in drawn:
            curve(ax, where(table, task=task), "p", column, method, factor=100, **style)
        if task in best:
            ax.axvline(best[task], label="best p in the thesis", **PRINTED)
        kind, cues = TASK_NAMES[task.split("-")[0]].split(", ")
        ax.set(xlabel="p", ylabel=ERROR)
        ax.set_title(f"{kind},\n{cues}", fontsize=9)
    return fig, axes[0, -1]


def _work_against_p(fig, ax, title, ylabel, lines):
    """A panel of work, with what its lines count in grey, and the legend of all panels."""
    for words, line in lines.items():
        ax.plot([], [], line, color="grey", label=words)
    log_axis(ax.yaxis, plain=True)
    ax.set(xlabel="p", ylabel=ylabel)
    ax.set_title(title, fontsize=9)
    legend(fig, fig.axes, 3, **SMALL)
    return fig


def p_sweep(table, best):
    """Test error of OM-2 against p on each cue set, and the work to convergence (thesis figure 4.2).

    Work is drawn where every run converged; `best` as in the thesis, by task.
    """
    least, most = table["n_epochs"].max(), table["most_epochs"].max()
    early = ("test_error", "OM2", {"label": f"OM-2 after {least} epochs"})
    late = ("final_error", "OM2", {"label": f"converged, or after {most} epochs", "linestyle": "--"})
    fig, ax = _errors_against_p(table, (early, late), best)
    done = table[table.groupby(["task", "p"])["converged"].transform("all")]
    _by_task(ax, done, "updates")
    _by_task(ax, done, "visits", linestyle="--", marker="s", label="_")
    ax.set_xlim(table["p"].min() - 0.04, 2.04)
    return _work_against_p(fig, ax, "work until\nconvergence", "count", {"updates": "-", "visits": "--"})


def obscure_against_p(table):
    """OBSCURE against p: error after the online stage and at the end; work of both (JMLR figure 4)."""
    stages = (("online_error", "OBSCURE online", {}), ("test_error", "OBSCURE", {}))
    fig, ax = _errors_against_p(table, stages)
    _by_task(ax, table, "online_rows", linestyle="--", marker="s")
    _by_task(ax, table, "rows", label="_")
    lines = {"online stage, to an epoch without loss": "--", "both, to a certified gap": "-"}
    return _work_against_p(fig, ax, "work of\nboth stages", ROWS, lines)


def online_panels(table, lines, level=None):
    """Online error, its differences from OM-2's, and test error beside batch methods (thesis 4.3, 4.4).

    After `level` epochs the thesis's OM-2 was level with SILP.
    """
    fig, ((online, apart, tests),) = panels(3, size=(WIDTH, 3.3))
    first, later = (where(table, what=what) for what in ("online", "test"))
    curves(online, first, "at", "error", factor=100, marker="")
    for method in distinct(table["method"]):  # OMCL is slow and has fewer splits
        splits = where(first, method=method)["seed"].unique()
        subset = first[first["seed"].isin(splits)]
        paired(apart, subset, "at", "error", "OM2", [method], factor=100, marker="")
    most = later.groupby(["method", "seed"])["at"].transform("max")
    later = later[most == later.groupby("method")["at"].transform("max")]  # others have the first pass alone
    curves(tests, later, "at", "error", factor=100)
    _lines(tests, lines)
    if level:
        tests.axvline(level, label=f"thesis: level with SILP ({level} epochs)", **PRINTED)
    log_axis(tests.xaxis, plain=True)
    legend(fig, (online, tests), 4, **SMALL)
    seen, slow = "training samples seen", first[first["method"] == "OMCL-PERC"]["seed"].nunique()
    online.set(xlabel=seen, ylabel="mistakes so far [%]", title="first pass")
    apart.set(xlabel=seen, ylabel="minus OM-2's [points]", title="split by split")
    tests.set(xlabel="epochs", ylabel=ERROR, title="on new samples")
    text = f"{first['seed'].nunique()} splits (bands: 95% intervals of the mean)"
    text = f"first pass: {text}" + (f", {slow} of OMCL" if slow < first["seed"].nunique() else "")
    online.cuelearn_band = apart.cuelearn_band = text
    tests.cuelearn_band = f"new samples: {tests.cuelearn_band}"
    return fig


def _lines(ax, lines):
    """Baselines as horizontal lines at their mean error."""
    for method, group in lines.groupby("method", sort=False):
        ax.axhline(100 * group["test_error"].mean(), **method_style(method, marker=""))


def against_size(table):
    """Training time and test error against the training samples (thesis figure 4.7, JMLR figure 6)."""
    fig, ((time, error),) = panels(2, size=(WIDTH, 3.6))
    curves(time, table, "n_train", "seconds", geometric=True)
    curves(error, table, "n_train", "test_error", factor=100)
    log_axis(time.yaxis, time.xaxis, error.xaxis)
    time.set(xlabel="training samples", ylabel=TIME, title="kernels at hand")
    error.set(xlabel="training samples", ylabel=ERROR, title="on new samples")
    sizes = distinct(table["n_train"])
    for ax in (time, error):
        ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
        ax.minorticks_off()
    legend(fig, error, 4, **SMALL)
    return fig


def accuracies(table):
    """Test error of every method with its interval over the splits (thesis figure 4.9 right)."""
    methods = distinct(table["method"])
    fig, ((ax,),) = panels(1, size=(6.6, 0.34 * len(methods) + 1.1))
    for at, method in enumerate(methods):
        mean, low, high = interval(100 * where(table, method=method)["test_error"].to_numpy())
        style = method_style(method)
        look = {"color": style["color"], "marker": style["marker"] or "o", "capsize": 3}
        ax.errorbar(mean, at, xerr=[[max(0.0, mean - low)], [max(0.0, high - mean)]], **look)
        place = {"xytext": (0, 5), "textcoords": "offset points", "ha": "center"}
        ax.annotate(f"{mean:.2f}", (mean, at), fontsize=8, **place)
    ax.set(xlabel="test error [%]", ylim=(len(methods) - 0.4, -0.8))
    ax.cuelearn_band = f"bars: 95% intervals of the mean over {table['seed'].nunique()} splits"
    ax.set_yticks(range(len(methods)), [method_style(m)["label"] for m in methods])
    return fig


def _over_time(ax, table, value, x, method=None, factor=1.0, draw=each_run, **style):
    """Runs on one schedule and their mean, at the mean `x`; a run that ended keeps its last point."""
    ranked = table.assign(rank=table.groupby("seed").cumcount())
    y, at = (ranked.pivot(index="seed", columns="rank", values=column).ffill(axis=1) for column in (value, x))
    if at.shape[1] == 1:
        style["markersize"] = 7  # one point, and others may end there too
    draw(ax, at.to_numpy(), factor * y.to_numpy(), method, **style)


def _convergence(ax, table, value, x="seconds", factor=1.0, log_y=False):
    """Runs of each method over a schedule of epochs, against time or work."""
    for method in distinct(table["method"]):
        _over_time(ax, where(table, method=method), value, x, method, factor, geometric=log_y, markersize=3)
    log_axis(ax.xaxis, *([ax.yaxis] if log_y else []))
    ax.set_xlabel(TIME if x == "seconds" else ROWS)


def _mean(ax, at, samples, method=None, **style):
    """The mean of runs alone, where curves are many."""
    ax.plot(at.mean(axis=0), samples.mean(axis=0), marker="o" if at.shape[1] == 1 else "", **style)
    ax.cuelearn_band = f"against time: means of {len(samples)} runs"


def _at_equal_work(ax, table, value, base, methods):
    """Each method's `value` over that of `base` after equally many kernel rows, split by split."""
    ax.set_yscale("log")
    ax.axhline(1.0, **method_style(base, marker=""))
    for method in methods:
        runs = [dict(list(where(table, method=m).groupby("seed"))) for m in (base, method)]
        logs = [
            {s: np.log(run[["rows", value]].to_numpy(float)) for s, run in by_seed.items()}
            for by_seed in runs
        ]
        ends = [(log[0, 0], log[-1, 0]) for by_seed in logs for log in by_seed.values()]
        grid = np.linspace(max(a for a, _ in ends), min(b for _, b in ends), 60)
        a, b = ([np.interp(grid, *log.T) for log in by_seed.values()] for by_seed in logs)
        width = 3.5 if method != methods[-1] else 1.6  # where curves coincide both are seen
        style = {"geometric": True, "marker": "", "linewidth": width}
        each_run(ax, np.exp(grid), np.exp(np.subtract(b, a)), method, **style)
    log_axis(ax.xaxis)
    low, high = ax.get_ylim()
    log_axis(ax.yaxis, plain=high < 1000 * low)
    ax.set(xlabel=ROWS, ylabel=f"over {method_style(base)['label']}'s, same split", title="after equal work")


def convergence(table, lines):
    """Test error, and certified suboptimality against time and work (thesis figure 4.5, JMLR figure 2)."""
    fig, ((error, time), (work, ratio)) = panels(2, 2, size=(WIDTH, 6.4))
    _convergence(error, table, "test_error", factor=100)
    _lines(error, lines)
    error.set(ylabel=ERROR, title="generalisation", ylim=(0, None))
    legend(fig, error, 4, **SMALL)
    for ax, x in ((time, "seconds"), (work, "rows")):
        _convergence(ax, table, "suboptimality", x, log_y=True)
        ax.axhline(0.01, color="black", linewidth=0.8, linestyle=":")
        ax.annotate("1%", (0.01, 0.01), (0, 2), ("axes fraction", "data"), "offset points", fontsize=8)
        ax.set_ylabel("(objective - bound) / bound")
        ax.set_title("certified suboptimality, each of its own problem", fontsize=9)
    error.sharex(time)
    same = [m for m in ("PegasosMKL", "UFOMKL") if m in set(table["method"])]
    _at_equal_work(ratio, table, "suboptimality", "OBSCURE", same)
    ratio.set_title("suboptimality after equal work, same problem", fontsize=9)
    return fig


def _shades(values, name="cividis", most=0.9):
    """(value, colour) of sorted values, from dark to light."""
    values = sorted(values)
    return zip(values, plt.get_cmap(name)(np.linspace(0, most, len(values))), strict=True)


def p_curves(table):
    """Test error of OBSCURE and p-norm MKL against time for every p; final errors (JMLR figure 3)."""
    methods = distinct(table["method"])
    fig, axes = panels(len(methods) + 1, size=(WIDTH, 3.5))
    *axes, end = axes[0]
    for ax, method in zip(axes, methods, strict=True):
        if ax is not axes[0]:  # before anything is drawn, so that the limits hold all
            ax.sharex(axes[0])
            ax.sharey(axes[0])
        subset = where(table, method=method)
        for p, color in _shades(table["p"].unique()):
            style = {"label": f"p = {p:g}", "color": color, "draw": _mean}
            _over_time(ax, where(subset, p=p), "test_error", "seconds", factor=100, **style)
        log_axis(ax.xaxis)
        ax.set(xlabel=TIME, ylabel=ERROR, title=method_style(method)["label"])
        last = subset.groupby(["p", "seed"]).last().reset_index()
        curve(end, last, "p", "test_error", method, factor=100)
    axes[0].set_ylim(bottom=0)
    end.set(xlabel="p", ylabel=ERROR, title="at the end")
    legend(fig, (axes[0], end), 5, **SMALL)
    return fig


def number_of_kernels(table):
    """OBSCURE's error against epochs, a panel for each number of kernels (thesis figure 4.6)."""
    counts = sorted(table["n_kernels"].unique())
    columns = 3
    fig, grid = panels(columns, -(-len(counts) // columns), size=(WIDTH, 4.8), sharex=True, sharey=True)
    stages = {"online": "OBSCURE online", "batch": "OBSCURE"}
    means = table.groupby(["stage", "n_kernels", "epoch"])["test_error"].mean()
    for ax, n in zip(grid.flat, counts, strict=False):
        for stage, method in stages.items():
            for other in (m for m in counts if m != n and (stage, m) in means):
                ax.plot(
                    100 * means[stage, other],
                    color=GREY,
                    alpha=0.5,
                    linewidth=0.8,
                    label="mean of the others",
                )
            subset = where(table, n_kernels=n, stage=stage)
            if len(subset):
                curve(ax, subset, "epoch", "test_error", method, factor=100, marker="")
        ax.set_title(f"{n} kernel{'s' if n > 1 else ''}", fontsize=9)
    log_axis(grid[0, 0].xaxis)
    for ax in grid.flat[len(counts) :]:
        ax.set_visible(False)
    for ax in grid[-1]:
        ax.set_xlabel("epoch")
    for ax in grid[:, 0]:
        ax.set(ylabel=ERROR, ylim=(0, 100))
    legend(fig, grid[0, 0], 3, **SMALL)
    return fig


def online_against_kernels(table):
    """Updates to convergence and test errors of both stages against the number of kernels (JMLR figure 5).

    Updates are drawn where every run converged.
    """
    fig, ((work, error),) = panels(2, size=(WIDTH, 3.4))
    done = table[table.groupby("n_kernels")["converged"].transform("all")]
    log_axis(work.yaxis, plain=True)
    work.set_ylabel("updates to an epoch without loss,\nwhere every run has one")
    if len(done):
        above(work, curve(work, done, "n_kernels", "updates", "OBSCURE online"))
    for column, method in (("final_error", "OBSCURE online"), ("batch_error", "OBSCURE")):
        curve(error, table, "n_kernels", column, method, factor=100)
    error.set(ylabel=ERROR, ylim=(0, min(100, error.get_ylim()[1])))
    counts = np.unique(table["n_kernels"])
    for ax in (work, error):
        ax.set(xscale="log", xlabel="number of kernels F")
        ax.set_xticks(counts, [str(n) for n in counts])
        ax.minorticks_off()
    work.set_xlim(error.get_xlim())
    first = table.iloc[0]
    work.set_title(f"online stage, n = {first['n_train']}, p = {first['p']:g}", fontsize=9)
    error.set_title(f"at the end of each stage, n = {first['n_train']}", fontsize=9)
    legend(fig, error, 2)
    return fig


def training_sizes(table, lines, reached, printed):
    """Error against time for growing sets, and work to the final error (thesis figure 4.8).

    `printed` are the paper's errors by what they are of.
    """
    fig, ((error, work),) = panels(2, size=(WIDTH, 3.7))
    svms = {"AverageKernelSVM": "+", "BestKernelSVM": "1"}
    for n, color in _shades(table["n_train"].unique(), "viridis", 0.85):
        style = {"label": f"N = {n:,}", "color": color, "marker": ""}
        _over_time(error, where(table, n_train=n), "test_error", "seconds", factor=100, **style)
        for method, mark in svms.items():
            svm = where(lines, n_train=n, method=method)
            if len(svm):
                at = svm["seconds"].mean(), 100 * svm["test_error"].mean()
                error.plot(*at, mark, color=color, markersize=9)
    for method, mark in svms.items():
        error.plot([], [], mark, color="grey", label=method_style(method)["label"])
    for (text, value), line in zip(printed.items(), ("-.", ":"), strict=True):
        error.axhline(100 * value, label=f"the paper: {text}", **{**PRINTED, "linestyle": line})
    log_axis(error.xaxis, work.yaxis)
    log_axis(error.yaxis, work.xaxis, plain=True)
    first = table.iloc[0]
    error.set(xlabel=TIME, ylabel=ERROR)
    error.set_title(f"OBSCURE, C = {first['C']:g}, p = {first['p']:g}", fontsize=9)
    work.set_title("work until the error is near its final value", fontsize=9)
    label = "to within 0.5 point of the final error"
    grid = curve(work, reached, "n_train", "values", "OBSCURE", label=label, geometric=True)
    sizes = np.asarray(grid.columns)
    for power, line, word in ((1, ":", "linear in N"), (2, "--", "quadratic")):
        grown = grid.mean().iloc[0] * (sizes / sizes[0]) ** power
        work.plot(sizes, grown, color="grey", linestyle=line, label=word)
    work.set(xlabel="training samples N", ylabel="kernel values read")
    legend(fig, (error, work), 3, **SMALL)
    return fig


def equal_regulariser(table):
    """Objective and suboptimality of UFO-MKL and OBSCURE on one problem (thesis figure 4.9 left)."""
    fig, ((objective, gap),) = panels(2, size=(WIDTH, 3.4))
    _convergence(objective, table, "objective", log_y=True)
    objective.axhline(table["optimum"].mean(), **method_style("optimum"))
    objective.set(ylabel="objective", title="objective, against time")
    _convergence(gap, table, "suboptimality", "rows", log_y=True)
    gap.set(ylabel="(objective - bound) / bound", title="certified suboptimality, against work")
    legend(fig, objective, 3)
    return fig


def many_kernels(counts, alphas):
    """Up to 1,400 kernels: accuracy and time against their number; kernels kept and accuracy against alpha.

    Thesis figure 4.10.
    """
    fig, ((error, time), (kept, sparse)) = panels(2, 2, size=(WIDTH, 6.2), sharex="row")
    curves(error, counts, "n_kernels", "test_error", factor=100)
    curves(time, counts, "n_kernels", "seconds", geometric=True)
    base = where(counts, method="OBSCURE").groupby("n_kernels")["seconds"].mean()
    text = "thesis: UFO-MKL, 3 to 5 times faster than OBSCURE"
    time.fill_between(base.index, base / 5, base / 3, color=GREY, alpha=0.25, linewidth=0, label=text)
    log_axis(error.xaxis, time.yaxis)
    error.set(xlabel="number of kernels", ylabel=ERROR, ylim=(0, None))
    time.set(xlabel="number of kernels", ylabel=TIME)
    epochs = counts["n_epochs"].iloc[0]
    error.set_title(f"n = {counts['n_train'].iloc[0]}, after {epochs} epochs", fontsize=9)
    time.set_title(f"the whole fit, {epochs} epochs", fontsize=9)
    for ax in (kept, sparse):
        ax.set_title(f"n = {alphas['n_train'].iloc[0]}, {alphas['n_kernels'].iloc[0]:,} kernels", fontsize=9)
    legend(fig, time, 4, **SMALL)
    looks = ({}, {"linestyle": "--", "marker": "s", "markerfacecolor": "white"})
    for (C, subset), look in zip(alphas.groupby("C", sort=False), looks, strict=False):
        style = {**look, "label": f"UFO-MKL, C = {C:g}"}
        kept_rows = subset.assign(n_used=subset["n_used"].clip(lower=1))
        curve(kept, kept_rows, "alpha", "n_used", "UFOMKL", geometric=True, **style)
        curve(sparse, subset, "alpha", "test_error", "UFOMKL", factor=100, **style)
    log_axis(kept.xaxis)
    log_axis(kept.yaxis, plain=True)
    kept.set(xlabel=r"$\alpha$", ylabel="kernels with non-zero weight")
    sparse.set(xlabel=r"$\alpha$", ylabel=ERROR, ylim=(0, None))
    kept.legend(loc="lower left")
    return fig


def _with_bound(ax, table, x, measured, title, **style):
    """What was measured, and dashed its bound."""
    for column, text, line in ((measured, "measured", "-"), ("bound", "bound", "--")):
        curve(ax, table, x, column, linestyle=line, label=f"{title}: {text}", **style)


def _below(ax, ncols=1):
    """The legend of a panel, under it."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=ncols, **SMALL)


def mistake_bounds(table, useless):
    """Theorem 4.1: mistakes of OM-2 and their bound; corollary 4.1: mistakes against useless kernels."""
    fig, ((real, random, price),) = panels(3, size=(WIDTH, 3.9))
    om2_color = method_style("OM2")["color"]
    for kind, ax, title in (("mfeat-6", real, "multiple features"), ("random", random, "random labels")):
        _with_bound(ax, where(table, kind=kind), "p", "mistakes", "OM-2", color=om2_color, marker="o")
        log_axis(ax.yaxis, plain=True)
        ax.set(xlabel="p", ylabel="mistakes in one pass")
        ax.set_title(f"theorem 4.1:\n{title}", loc="left", fontsize=9)
    rules = {"auto": ("p of the corollary", om2_color), "2.0": ("p = 2", TONES["plum"])}
    for p, (text, color) in rules.items():
        subset = useless[useless["p"].astype(str) == p]
        look = {"color": color, "marker": "o"}
        grid = curve(price, subset, "n_kernels", "mistakes", label=f"OM-2, {text}", **look)
        slope, start = np.polyfit(np.log(subset["n_kernels"]), subset["mistakes"], 1)
        fit = {"color": color, "linestyle": ":", "label": f"fit: {start:.0f} {slope:+.1f} ln F"}
        price.plot(grid.columns, start + slope * np.log(grid.columns), **fit)
    price.set(xscale="log", xlabel="number of kernels F", ylabel="mistakes in one pass", ylim=(0, None))
    price.set_title("corollary 4.1:\none of F is useful", loc="left", fontsize=9)
    for ax, word in ((real, "real"), (random, "simulated"), (price, "simulated")):
        _below(ax)
        stamp(ax, word)
    return fig


def update_bounds(table):
    """Theorem 4.3: updates of the online stage and their bound, and its radius against the optimum's norm."""
    fig, ((updates, radius),) = panels(2, size=(WIDTH, 4.0))
    for eta, color in _shades(table["eta"].unique(), "viridis", 0.85):
        subset = where(table, eta=eta)
        style = {"color": color, "marker": "o", "markersize": 3}
        _with_bound(updates, subset, "p", "updates", rf"$\eta$ = {eta:g}", **style)
        curve(radius, subset, "p", "radius", color=color, marker="o", label=rf"R, $\eta$ = {eta:g}")
    least = table[table["eta"] == table["eta"].min()]
    curve(radius, least, "p", "optimum_norm", "optimum", label="norm of the optimum")
    updates.set(xlabel="p", yscale="log", ylabel="updates of the online stage")
    log_axis(radius.yaxis, plain=True)
    radius.set(xlabel="p", ylabel=r"$\|\bar w\|_{2,p}$")
    _below(updates, 2)
    _below(radius, 2)
    return fig


def suboptimality_bounds(table, method):
    """Theorems 4.2 and 4.5: mean suboptimality over independent streams and the bound, against the steps."""
    fig, ((ax,),) = panels(1, size=(WIDTH, 3.6))
    cases = list(table.groupby([table["p"].astype(str), "C"], sort=False))
    for k, color in _shades(range(len(cases)), "viridis", 0.85):
        (p, C), subset = cases[k]
        style = {"color": color, "marker": "o", "markersize": 3, "label": f"p = {p}, C = {C:g}: measured"}
        curve(ax, subset, "step", "suboptimality", runs="stream", **style)
        limit = subset.groupby("step")["bound"].mean()
        ax.plot(limit.index, limit, color=color, linestyle="--", label=f"p = {p}, C = {C:g}: bound")
    steps = "steps of the batch stage" if method == "OBSCURE" else "steps"
    ax.set(xscale="log", yscale="log", xlabel=steps, ylabel="objective - optimum")
    ax.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig
