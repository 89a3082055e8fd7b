"""Drawings of the MKL chapter, from the numbers of its experiments."""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np

from companion.plots import common
from companion.plots.common import above, distinct, each_run, legend, log_axis, panels, where
from companion.run.figures import GREEN, RED, TONES, method_style, stamp
from cuelearn.core.intervals import interval

curve, curves, paired = (
    partial(draw, draw=each_run) for draw in (common.curve, common.curves, common.paired)
)

TASK_NAMES = {"different": "one cue of each kind", "pyramid": "four redundant cues"}  # of categories
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
    upper, lower = fig.subfigures(2, 1)
    axes = upper.subplots(1, bank.n_kernels, sharey=True)
    for j, ax in enumerate(axes):
        image = ax.imshow(bank.stack[j][np.ix_(order, order)], vmin=-0.5, vmax=1, interpolation="nearest")
        ax.set(title=f"kernel {j + 1}", xlabel="sample")
        ax.grid(False)
    upper.colorbar(image, ax=axes, shrink=0.9, label="kernel value")
    axes = lower.subplots(1, len(drawn), sharey=True, squeeze=False)[0]
    for ax, (method, target) in zip(axes, drawn, strict=True):
        subset = where(weights, method=method, target=target)
        mean = interval(subset.pivot(index="seed", columns="kernel", values="weight")).mean
        style = method_style(method)
        ax.bar(np.arange(1, bank.n_kernels + 1), mean, color=style["color"], width=0.6)
        ax.cuelearn_band = f"bars: mean of {subset['seed'].nunique()} draws"
        title = f"{style['label']},\np = {subset['p'].iloc[0]:g}"
        title = f"SILP, class {target}\nagainst the rest" if target else title
        ax.set(title=title, xlabel="kernel", ylim=(0, 1))
    axes[0].set_ylabel(r"weight $d_j / \sum d$")
    return fig


def _by_task(ax, table, column, **style):
    """A curve for each task of a table: `column` against p."""
    for task in distinct(table["task"]):
        word = task.split("-")[0]
        look = {"geometric": True, "label": TASK_NAMES[word], "color": TASK_COLORS[word], "marker": "o"}
        curve(ax, where(table, task=task), "p", column, **{**look, **style})


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
        ax.set(xlabel="p", ylabel=ERROR, title=TASK_NAMES[task.split("-")[0]])
    return fig, axes[0, -1]


def _work_against_p(fig, ax, ylabel, lines):
    """A panel of work, with what its lines count in grey, and the legend of all panels."""
    for words, line in lines.items():
        ax.plot([], [], line, color="grey", label=words)
    log_axis(ax.yaxis, plain=True)
    ax.set(xlabel="p", ylabel=ylabel, title="work")
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
    return _work_against_p(fig, ax, "count, until convergence", {"updates": "-", "visits": "--"})


def obscure_against_p(table):
    """OBSCURE against p: error after the online stage and at the end; work of both (JMLR figure 4)."""
    stages = (("online_error", "OBSCURE online", {}), ("test_error", "OBSCURE", {}))
    fig, ax = _errors_against_p(table, stages)
    _by_task(ax, table, "online_rows", linestyle="--", marker="s")
    _by_task(ax, table, "rows", label="_")
    lines = {"online stage, to an epoch without loss": "--", "both, to a certified gap": "-"}
    return _work_against_p(fig, ax, ROWS, lines)


def online_panels(table, lines, level=None):
    """Online error, its differences from OM-2's, and test error beside batch methods (thesis 4.3, 4.4).

    After `level` epochs the thesis's OM-2 was level with SILP.
    """
    fig, ((online, apart, tests),) = panels(3, size=(WIDTH, 3.3))
    first, later = (where(table, what=what) for what in ("online", "test"))
    curves(online, first, "at", "error", factor=100, marker="")
    for method in distinct(table["method"]):  # OMCL has fewer splits
        splits = where(first, method=method)["seed"]
        shared = first[first["seed"].isin(splits)]
        paired(apart, shared, "at", "error", "OM2", [method], factor=100, marker="")
    most = later.groupby(["method", "seed"])["at"].transform("max")
    later = later[most == later.groupby("method")["at"].transform("max")]  # others have the first pass alone
    curves(tests, later, "at", "error", factor=100)
    _lines(tests, lines)
    if level:
        tests.axvline(level, label=f"thesis: level with SILP ({level} epochs)", **PRINTED)
    log_axis(tests.xaxis, plain=True)
    legend(fig, (online, tests), 4, **SMALL)
    seen = "training samples seen"
    online.set(xlabel=seen, ylabel="mistakes so far [%]", title="first pass")
    apart.set(xlabel=seen, ylabel="minus OM-2's [points]", title="split by split")
    tests.set(xlabel="epochs", ylabel=ERROR, title="on new samples")
    n_splits = first["seed"].nunique()
    n_slow = where(first, method="OMCL-PERC")["seed"].nunique()
    text = f"first pass: {n_splits} splits (bands: 95% intervals of the mean)"
    if n_slow < n_splits:
        text += f", {n_slow} of OMCL"
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
    log_axis(time.yaxis)
    log_axis(time.xaxis, error.xaxis, plain=True)
    time.set(xlabel="training samples", ylabel=TIME, title="kernels in memory")
    error.set(xlabel="training samples", ylabel=ERROR, title="on new samples")
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


def _over_time(ax, table, value, x, method=None, factor=1.0, **style):
    """Runs on one schedule and their mean, at the mean `x`; a run that ended keeps its last point."""
    ranked = table.assign(rank=table.groupby("seed").cumcount())
    y, at = (ranked.pivot(index="seed", columns="rank", values=column).ffill(axis=1) for column in (value, x))
    if at.shape[1] == 1:
        style["markersize"] = 7  # one point, and others may end there too
    each_run(ax, at.to_numpy(), factor * y.to_numpy(), method, **style)


def _convergence(ax, table, value, x="seconds", factor=1.0, log_y=False):
    """Runs of each method over a schedule of epochs, against time or work."""
    for method in distinct(table["method"]):
        _over_time(ax, where(table, method=method), value, x, method, factor, geometric=log_y, markersize=3)
    log_axis(ax.xaxis, *([ax.yaxis] if log_y else []))
    ax.set_xlabel(TIME if x == "seconds" else ROWS)


def convergence(table, lines):
    """Test error, and certified suboptimality against time and work (thesis figure 4.5, JMLR figure 2)."""
    fig, ((error, time, work),) = panels(3, size=(WIDTH, 3.6))
    _convergence(error, table, "test_error", factor=100)
    _lines(error, lines)
    error.set(ylabel=ERROR, title="generalisation", ylim=(0, None))
    legend(fig, error, 4, **SMALL)
    for ax, x in ((time, "seconds"), (work, "rows")):
        _convergence(ax, table, "suboptimality", x, log_y=True)
        ax.set(ylabel="(objective - bound) / bound, of its own problem", title="suboptimality")
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
            style = {"label": f"p = {p:g}", "color": color, "marker": ""}
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
    """OBSCURE's error against epochs, a colour for each number of kernels (thesis figure 4.6)."""
    fig, axes = panels(2, size=(WIDTH, 3.6), sharey=True)
    for ax, stage in zip(axes[0], ("online", "batch"), strict=True):
        for n, color in _shades(table["n_kernels"].unique()):
            subset = where(table, n_kernels=n, stage=stage)
            if len(subset):
                style = {"label": f"{n} kernel{'s' if n > 1 else ''}", "color": color, "marker": ""}
                curve(ax, subset, "epoch", "test_error", factor=100, **style)
        log_axis(ax.xaxis, plain=True)
        ax.set(xlabel="epoch", ylabel=ERROR, ylim=(0, 100), title=f"{stage} stage")
    legend(fig, axes[0], 6, **SMALL)
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
    log_axis(work.xaxis, error.xaxis, plain=True)
    work.set(xlabel="number of kernels F", title="online stage")
    error.set(xlabel="number of kernels F", title="at the end of each stage")
    legend(fig, error, 2)
    return fig


def training_sizes(table, reached, printed):
    """Error against time for growing sets, and work to the final error (thesis figure 4.8).

    `printed` are the paper's errors by what they are of.
    """
    fig, ((error, work),) = panels(2, size=(WIDTH, 3.7))
    for n, color in _shades(table["n_train"].unique(), "viridis", 0.85):
        style = {"label": f"N = {n:,}", "color": color, "marker": ""}
        _over_time(error, where(table, n_train=n), "test_error", "seconds", factor=100, **style)
    for (text, value), line in zip(printed.items(), ("-.", ":"), strict=True):
        error.axhline(100 * value, label=f"the paper: {text}", **{**PRINTED, "linestyle": line})
    log_axis(error.xaxis, work.yaxis)
    log_axis(error.yaxis, work.xaxis, plain=True)
    error.set(xlabel=TIME, ylabel=ERROR, title="OBSCURE")
    grid = curve(work, reached, "n_train", "values", "OBSCURE", geometric=True)
    sizes = np.asarray(grid.columns)
    for power, line, word in ((1, ":", "linear in N"), (2, "--", "quadratic")):
        grown = grid.mean().iloc[0] * (sizes / sizes[0]) ** power
        work.plot(sizes, grown, color="grey", linestyle=line, label=word)
    work.set(xlabel="training samples N", ylabel="kernel values read", title="to near the final error")
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
    log_axis(error.xaxis, time.yaxis)
    error.set(xlabel="number of kernels", ylabel=ERROR, ylim=(0, None))
    time.set(xlabel="number of kernels", ylabel=TIME)
    for ax in (kept, sparse):
        ax.set_title(f"{alphas['n_kernels'].iloc[0]:,} kernels")
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


def mistake_bounds(table, useless):
    """Theorem 4.1: mistakes of OM-2 and their bound; corollary 4.1: mistakes against useless kernels."""
    fig, ((real, random, price),) = panels(3, size=(WIDTH, 3.9))
    om2_color = method_style("OM2")["color"]
    for kind, ax, title in (("mfeat-6", real, "multiple features"), ("random", random, "random labels")):
        _with_bound(ax, where(table, kind=kind), "p", "mistakes", "OM-2", color=om2_color, marker="o")
        log_axis(ax.yaxis, plain=True)
        ax.set(xlabel="p", ylabel="mistakes in one pass")
        ax.set_title(f"theorem 4.1:\n{title}")
    rules = {"auto": ("p of the corollary", om2_color), "2.0": ("p = 2", TONES["plum"])}
    for p, (text, color) in rules.items():
        subset = useless[useless["p"].astype(str) == p]
        look = {"color": color, "marker": "o"}
        curve(price, subset, "n_kernels", "mistakes", label=f"OM-2, {text}", **look)
    price.set(xscale="log", xlabel="number of kernels F", ylabel="mistakes in one pass", ylim=(0, None))
    price.set_title("corollary 4.1:\none of F is useful")
    for ax, word in ((real, "real"), (random, "simulated"), (price, "simulated")):
        stamp(ax, word)
    legend(fig, (real, price), 3, **SMALL)
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
    legend(fig, (updates, radius), 4, **SMALL)
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
    legend(fig, ax, 3, **SMALL)
    return fig
