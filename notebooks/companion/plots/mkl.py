"""Drawings of the MKL chapter: of the numbers of its experiments, and of its ideas and sliders."""

from functools import partial
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import NullLocator
from scipy.stats import gmean

from companion.plots import common
from companion.plots.common import (
    along,
    distinct,
    each_run,
    end_labels,
    forest,
    intervals,
    log_axis,
    name_ends,
    paired,
    panels,
    show_picture,
    where,
)
from companion.protocol import grid_points
from companion.run.figures import BLACK, BLUE, GREEN, GREY, ORANGE, RED, band, method_style, name_of, stamp
from cuelearn.mkl import UFOMKL

curve = partial(common.curve, draw=each_run)
legend = partial(common.legend, fontsize=7, handlelength=3)

#: Columns of the tables: names on an axis, and scales; "plain" is logarithmic with numbers for ticks.
AXES = {
    "alpha": (r"$\alpha$", "log"),
    "bound": ("bound", "linear"),
    "epoch": ("epoch", "plain"),
    "error": ("error [%]", "linear"),
    "memory": ("memory [MB]", "log"),
    "mistakes": ("mistakes in one pass", "linear"),
    "n": ("training samples n", "plain"),
    "n_epochs_online": ("online epochs at most", "plain"),
    "n_kernels": ("number of kernels F", "plain"),
    "n_train": ("training samples n", "plain"),
    "n_used": ("kernels with non-zero weight", "linear"),
    "objective": ("objective", "log"),
    "p": ("p", "linear"),
    "radius": (r"radius $R$, a bound on $\|\bar w\|_{2,p}$", "plain"),
    "rows": ("rows of single kernels read", "log"),
    "seconds": ("training time [CPU s]", "log"),
    "step": ("steps", "log"),
    "suboptimality": ("(objective - bound) / bound", "log"),
    "test_error": ("test error [%]", "linear"),
    "updates": ("updates", "plain"),
}
#: Sets of cues by the first word of their tasks.
CUES = {
    "mfeat": "numerals, six cues",
    "htad": "activities, two cues",
    "pendigits": "pen digits, four cues",
    "different": "categories, six cues",
    "objects": "objects, six cues",
    "pyramid": "objects, four levels",
}
#: A line at a number that a paper prints.
PRINTED = {"color": "black", "linewidth": 0.8, "linestyle": "-."}


def beside(columns, height=3.6):
    """A figure of panels side by side, and its axes."""
    fig, axes = panels(columns, size=(8.0, height))
    return fig, axes[0]


def looks(by, values):
    """A style for each value of a column: that of the method, or from dark to light."""
    if by == "method":
        return [method_style(method) for method in values]
    colors = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(values)))
    names = [str(value) if by == "fixed" else f"{by} = {value}".removesuffix(".0") for value in values]
    pairs = zip(names, colors, strict=True)
    return [{"label": name, "color": color, "marker": "."} for name, color in pairs]


def panel(ax, table, x, y, by="method", **style):
    """`y` against `x` for each value of `by`, mean and runs; axes are named and scaled after the columns."""
    label, scale = AXES[y]
    factor = 100 if "%" in label else 1
    values = distinct(table[by])
    for value, look in zip(values, looks(by, values), strict=True):
        draw = over_time if x in ("seconds", "rows", "epoch") else curve
        options = {"factor": factor, "geometric": scale != "linear", **look, **style}
        draw(ax, where(table, **{by: value}), x, y, **options)
    ax.set(xlabel=AXES[x][0], ylabel=label)
    for axis, column in (("x", x), ("y", y)):
        scale = AXES[column][1]
        if scale == "plain":
            log_axis(getattr(ax, f"{axis}axis"), plain=True)
        else:
            ax.set(**{f"{axis}scale": scale})


def over_time(ax, table, x, y, factor=1.0, **style):
    """The mean of runs on one schedule, at the mean `x`; a run that ended keeps its last point."""
    ranked = table.assign(rank=table.groupby("seed").cumcount())
    at, value = (ranked.pivot(index="seed", columns="rank", values=column).ffill(axis=1) for column in (x, y))
    band(ax, at.mean(), factor * value.to_numpy(), **style)


def against(table, *pairs, by="method"):
    """A panel for each pair of columns (x, y); of a single panel curves are named at their ends."""
    if len(pairs) == 1:
        fig, ((ax,),) = panels(1, size=(6.4, 3.2))
        panel(ax, table, *pairs[0], by)
        name_ends(ax)
        return fig
    fig, axes = beside(len(pairs))
    for ax, (x, y) in zip(axes, pairs, strict=True):
        panel(ax, table, x, y, by)
    legend(fig, axes[0], 4)
    return fig


def minus(ax, errors, baseline, whose, error="test error"):
    """A `forest` of every other method's errors [%] minus those of the baseline, split by split."""
    mean = errors.mean().sort_values()
    rows = {name_of(other): errors[other] - errors[baseline] for other in mean.drop(baseline).index}
    forest(ax, intervals(rows), f"{error} minus {whose} {mean[baseline]:.1f}% [points]")
    ax.cuelearn_band += f"; {len(errors)} splits"


def above_differences(runs, title, baseline, whose):
    """A figure, and its upper panel; below are the errors of runs minus those of the baseline."""
    errors = 100 * runs.pivot(index="seed", columns="method", values="test_error")
    heights = (3.6, 0.25 + 0.25 * errors.shape[1])
    fig, axes = panels(1, 2, size=(6.4, 0.8 + sum(heights)), height_ratios=heights)
    minus(axes[1, 0], errors, baseline, whose)
    axes[1, 0].set_title(title)
    return fig, axes[0, 0]


def growing_sets(table):
    """CPU seconds on growing sets; errors minus OBSCURE's on the largest of all (thesis 4.7, JMLR 6)."""
    most = table.groupby("method")["n_train"].max().min()
    fig, time = above_differences(where(table, n_train=most), f"{most:,} samples", "OBSCURE", "OBSCURE's")
    panel(time, table, "n_train", "seconds", draw=band)
    own = where(table, method="OBSCURE").groupby("n_train")["test_error"].mean()
    time.set_xticks(own.index, [f"{n:,}\n{error:.0%}" for n, error in own.items()])
    time.xaxis.set_minor_locator(NullLocator())
    time.yaxis.set_major_formatter("{x:g}")
    time.set_xlabel("training samples n, and OBSCURE's test error")
    name_starts(time)
    return fig


#: Share of a panel's width that the names of curves take at its left.
NAMES = 0.36


def name_starts(ax):
    """Name curves that begin at one x, inside of the panel at its left."""
    low, high = np.log(ax.get_xlim())
    ax.set_xlim(left=np.exp(low - NAMES / (1 - NAMES) * (high - low)))
    names = [(*line.get_xydata()[0], fill(line.get_label(), 24), line.get_color()) for line in ax.get_lines()]
    end_labels(ax, names, at=NAMES)


def lines(ax, table):
    """Baselines as horizontal lines at their mean error."""
    for method, error in table.groupby("method", sort=False)["test_error"].mean().items():
        ax.axhline(100 * error, **method_style(method, marker=""))


def convergence(table, svm):
    """Test error, and certified suboptimality against time and work (thesis figure 4.5, JMLR figure 2).

    OBSCURE's stages are two curves. UFO-MKL has hollow marks only, as it may run on Pegasos-MKL's curve.
    """
    table = table.assign(method=table["method"].mask(table["stage"] == "online", "OBSCURE online"))
    fig, axes = panels(1, 3, size=(6.0, 8.4), height_ratios=(1, 1.2, 1.2))
    pairs = (("seconds", "test_error"), ("seconds", "suboptimality"), ("rows", "suboptimality"))
    for ax, (x, y) in zip(axes[:, 0], pairs, strict=True):
        panel(ax, table, x, y, markersize=4)
        log_axis(ax.xaxis, plain=x == "seconds")
        for line in ax.get_lines():
            if line.get_label() == name_of("UFOMKL"):
                line.set(linestyle="none", markerfacecolor="none", markersize=8)
            if line.get_label() == name_of("OBSCURE"):
                line.set_label("OBSCURE, batch stage")
    lines(axes[0, 0], svm)
    legend(fig, axes[0, 0], 2)
    return fig


def first_stages(table):
    """What OBSCURE comes to after first stages of several lengths and step sizes, by data and C."""
    table = table.assign(eta=table["eta"].replace("auto", "$F^{-2/q}$"))
    names = distinct(table["data"])
    measured = ("suboptimality", "test_error", "radius")
    fig, axes = panels(len(names), len(measured), size=(7.0, 7.2))
    for column, name in zip(axes.T, names, strict=True):
        column[0].set_title(name)
        for ax, y in zip(column, measured, strict=True):
            for C, line in zip(distinct(table["C"]), ("--", "-"), strict=True):
                part = where(table, data=name, C=C)
                panel(ax, part, "n_epochs_online", y, "eta", linestyle=line)
                for drawn in ax.get_lines():
                    if drawn.get_label().startswith("eta"):
                        drawn.set_label(f"C = {C:g}, {drawn.get_label()}")
    plt.setp(axes[:-1], xlabel="")
    plt.setp(axes[:, 1:], ylabel="")
    legend(fig, axes[0, 0], 2)
    return fig


def things(images, table, kernels, errors, labels):
    """Kernels of cues; below, drawings of the `table` and in a column for each cue what it takes them for."""
    cues = list(table.columns[1:])
    fig, axes = panels(len(cues) + 1, len(table) + 1, size=(1.25 * len(cues) + 1.25, 1.2 * len(table) + 1.6))
    axes[0, 0].axis("off")
    for ax, cue in zip(axes[0, 1:], cues, strict=True):
        title = f"{labels[cue]}\n{100 * errors[cue]:.0f}% errors"
        show_picture(ax, kernels[cue], title, vmin=0, vmax=1)
    for line, drawings in zip(axes[1:], table.to_numpy(), strict=True):
        for ax, drawing in zip(line, drawings, strict=True):
            show_picture(ax, images[drawing])
            color = GREEN if drawing == drawings[-1] else RED
            ax.spines[:].set(visible=ax is not line[0], color=color, linewidth=2)
    axes[1, 0].set_title("new drawing", fontsize=8)
    return fig


def kernel_weights(bank, labels, weights):
    """Kernel matrices above, mean kernel weights below, target 0 being all classes at once (thesis 4.1)."""
    order = np.argsort(labels, kind="stable")
    drawn = list(weights.groupby(["method", "target", "p"], sort=False))
    fig, axes = panels(max(len(drawn), bank.n_kernels), 2, size=(8.0, 4.6))
    for j, ax in enumerate(axes[0]):
        image = ax.imshow(bank.stack[j][np.ix_(order, order)], vmin=-0.5, vmax=1)
        ax.set(title=f"kernel {j + 1}", xlabel="sample")
        ax.grid(False)
    fig.colorbar(image, ax=axes[0], label="kernel value")
    for ax, ((method, target, p), subset) in zip(axes[1], drawn, strict=True):
        style = method_style(method)
        mean = subset.groupby("kernel")["weight"].mean()
        ax.bar(mean.index, mean, color=style["color"])
        problem = f"class {target}" if target else f"p = {p:g}"
        ax.set(title=f"{style['label']}\n{problem}", xlabel="kernel", ylim=(0, 1))
        ax.cuelearn_band = f"bars: mean of {subset['seed'].nunique()} draws"
    axes[1, 0].set_ylabel(r"weight $d_j / \sum d$")
    return fig


def against_p(table, best):
    """OM-2's errors against p by cues, and its updates for all cues; `best`: the thesis's p (4.2)."""
    tasks = distinct(table["task"])
    heights = [1.9] * len(tasks) + [2.8]
    fig, axes = panels(1, len(heights), size=(6.4, 0.6 + sum(heights)), height_ratios=heights, sharex=True)
    *errors, cost = axes[:, 0]
    for ax, task in zip(errors, tasks, strict=True):
        cues = task.split("-")[0]
        panel(ax, where(table, task=task), "p", "test_error")
        ax.set(title=CUES[cues], xlabel="")
        if cues in best:
            ax.axvline(best[cues], label="best p in the thesis", **PRINTED)
    panel(cost, named_by_cues(table), "p", "updates", "fixed")
    name_ends(cost)
    legend(fig, errors, 3)
    return fig


def named_by_cues(table):
    """The table with a column of the cues' short names, for `panel`."""
    return table.assign(fixed=[CUES[task.split("-")[0]].split(",")[0] for task in table["task"]])


def batch_stage(table):
    """What OBSCURE's batch stage changes, against p: test errors, and kernel rows read (JMLR 4)."""
    table = named_by_cues(table)
    table = table.assign(
        test_error=table["test_error"] - table["online_error"], rows=table["rows"] / table["online_rows"]
    )
    fig, axes = panels(1, 2, size=(6.4, 6.4), height_ratios=(1.4, 1))
    error, cost = axes[:, 0]
    for ax, y in ((error, "test_error"), (cost, "rows")):
        panel(ax, table, "p", y, "fixed", draw=band)
        name_ends(ax)
    error.axhline(0.0, color=BLACK, lw=0.8)
    error.set_ylabel("test error after both stages\nminus that of the online stage [points]")
    log_axis(cost.yaxis, plain=True)
    cost.set_ylabel("kernel rows of both stages\nover those of the online stage")
    return fig


def online_panels(table, batch, level):
    """Mistakes of the first pass minus OM-2's, and test errors; after `level` epochs OM-2 is level with SILP
    in the thesis (4.3)."""
    fig, axes = panels(1, 2, size=(6.4, 4.6))
    online, tests = axes[:, 0]
    table = table.rename(columns={"at": "epoch"})
    first = where(table, what="online")
    paired(online, first, "epoch", "error", "OM2", factor=100, marker="")
    name_ends(online, more={"OM-2": (first["epoch"].max(), 0.0)})
    later = where(table, what="test")
    most = later.groupby(["method", "seed"])["epoch"].transform("max")
    later = later[most == later.groupby("method")["epoch"].transform("max")]
    panel(tests, later, "epoch", "error", markersize=4)
    lines(tests, batch)
    for line in tests.get_lines():
        if len(line.get_xdata()) == 1 and not line.get_marker():
            line.set_marker("x")
    tests.axvline(level, **PRINTED)
    place = {"transform": tests.get_xaxis_transform(), "ha": "right", "fontsize": 8}
    tests.text(level, 0.75, "thesis: level with SILP ", **place)
    name_ends(tests)
    online.set(xlabel="training samples seen", ylabel="mistakes so far\nminus OM-2's [points]")
    online.set_title("objects, 39 cues")
    tests.set(ylabel="test error [%]")
    n = f"{first['seed'].nunique()} runs"
    n_slow = where(first, method="OMCL-PERC")["seed"].nunique()
    online.cuelearn_band = f"mistakes: mean of {n} ({n_slow} of OMCL), band: 95% interval of the mean"
    tests.cuelearn_band = f"test error: {tests.cuelearn_band}"
    return fig


def learners(errors):
    """By cues, test errors minus SILP's, and mistakes of the first pass minus OM-2's (thesis 4.4)."""
    sets = distinct(errors["of"])
    fig, axes = panels(len(sets), 2, size=(8.6, 3.8), height_ratios=(4, 3))
    for tests, first, cues in zip(*axes, sets, strict=True):
        own = 100 * where(errors, of=cues).drop(columns=["name", "of"])
        own.columns = own.columns.str.split(" ", n=1, expand=True)
        minus(tests, own["test"], "SILPMKL", "SILP's")
        minus(first, own["online"], "OM2", "OM-2's", "mistakes in one pass")
        tests.set_title(CUES[cues])
    return fig


def accuracies(table):
    """Errors minus OBSCURE's on the same splits, and CPU seconds of a fit (thesis 4.9 right)."""
    errors = 100 * table.pivot(index="seed", columns="method", values="test_error")
    fig, axes = panels(2, size=(9.0, 0.3 * errors.shape[1] + 0.7), width_ratios=(1.6, 1))
    differences, time = axes[0]
    minus(differences, errors, "OBSCURE", "OBSCURE's")
    seconds = table.pivot(index="seed", columns="method", values="seconds")
    own = gmean(seconds["OBSCURE"])
    others = errors.mean().sort_values().index.drop("OBSCURE")
    rows = np.exp(intervals(np.log(seconds[others])))
    forest(time, rows.assign(color=BLACK), "CPU seconds of a fit", digits=2, difference=False)
    time.cuelearn_band = "right: geometric means"
    time.axvline(own, color=BLACK, lw=0.8)
    time.set_title(f"line: OBSCURE's {own:.2f}", fontsize=9)
    time.set_yticklabels([])
    log_axis(time.xaxis)
    time.xaxis.set_major_formatter("{x:g}")
    return fig


def training_sizes(table, gap):
    """Error against time for growing sets, and time to one certified gap (thesis figure 4.8)."""
    fig, (error, time) = beside(2)
    panel(error, table.rename(columns={"n_train": "n"}), "seconds", "test_error", "n", marker="")
    ends = gap.groupby(["fixed", "n_train", "seed"], sort=False).last().reset_index()
    panel(time, ends, "n_train", "seconds", "fixed")
    mean = ends.groupby("n_train")["seconds"].mean()
    growth = mean.index / mean.index[0]
    time.plot(mean.index, mean.iloc[0] * growth, ":", color="grey", label="linear in n")
    time.plot(mean.index, mean.iloc[0] * growth**2, "--", color="grey", label="quadratic")
    legend(fig, (error, time), 4)
    return fig


def many_kernels(counts):
    """Errors against time with the fewest and the most kernels, an arrow for each method; with the most,
    errors minus those of the average kernel (thesis 4.10)."""
    few, many = counts["n_kernels"].agg(["min", "max"])
    with_many, title = where(counts, n_kernels=many), f"{many:,} kernels"
    fig, moves = above_differences(with_many, title, "AverageKernelSVM", "the average kernel's")
    for method in distinct(counts["method"]):
        ends = where(counts, method=method).groupby("n_kernels")[["seconds", "test_error"]]
        ends = ends.agg({"seconds": gmean, "test_error": "mean"}).loc[[few, many]]
        x, y = ends["seconds"].to_numpy(), 100 * ends["test_error"].to_numpy()
        style = method_style(method, linestyle="none", label=None)
        moves.plot(x[:1], y[:1], markerfacecolor="white", **style)
        moves.plot(x[1:], y[1:], **style)
        arrow = {"arrowstyle": "-|>", "color": style["color"], "shrinkA": 4, "shrinkB": 4}
        moves.annotate("", (x[1], y[1]), (x[0], y[0]), arrowprops=arrow)
        offset = {"textcoords": "offset points", "va": "center", "fontsize": 8}
        moves.annotate(name_of(method), (x[1], y[1]), (7, 0), **offset)
    log_axis(moves.xaxis)
    moves.xaxis.set_major_formatter("{x:g}")
    moves.set(xlabel=AXES["seconds"][0], ylabel=AXES["test_error"][0])
    moves.set_title(f"{few:,} kernels (hollow) to {many:,}")
    return fig


def zeros(alphas):
    """UFO-MKL's kernels, errors minus those at the smallest alpha, and times, against alpha (thesis 4.10)."""
    fig, axes = panels(3, size=(9.6, 3.2))
    kept, error, time = axes[0]
    alphas = alphas.assign(method="UFOMKL")
    first = where(alphas, alpha=alphas["alpha"].min()).set_index("seed")["test_error"]
    alphas["test_error"] -= alphas["seed"].map(first)
    for ax, y in zip(axes[0], ("n_used", "test_error", "seconds"), strict=True):
        panel(ax, alphas, "alpha", y)
        ax.xaxis.set_major_formatter("{x:g}")
    kept.set(ylabel=f"kernels kept of {alphas['n_kernels'].iloc[0]:,}", ylim=(0, None))
    error.axhline(0.0, color=BLACK, lw=0.8)
    error.set_ylabel("test error minus that at the\nsmallest $\\alpha$ [points]")
    time.yaxis.set_major_formatter("{x:g}")
    return fig


def with_bound(ax, table, x, y, by, **style):
    """What was measured for each value of `by`, and dashed its bound."""
    panel(ax, table, x, y, by, **style)
    values = distinct(table[by])
    for value, look in zip(values, looks(by, values), strict=True):
        look |= {"label": "bound" if by == "method" else f"{look['label']}: bound", "linestyle": "--"}
        curve(ax, where(table, **{by: value}), x, "bound", **look, **style)


def mistake_bounds(table, useless):
    """Theorem 4.1: mistakes of OM-2 and their bound; corollary 4.1: mistakes against useless kernels."""
    fig, axes = beside(3)
    titles = {"mfeat-6": "multiple features", "random": "random labels"}
    for ax, (kind, title) in zip(axes, titles.items(), strict=False):
        with_bound(ax, where(table, kind=kind).assign(method="OM2"), "p", "mistakes", "method")
        ax.set_title(f"theorem 4.1:\n{title}")
    useless = useless.astype({"p": str}).replace({"p": {"auto": "the corollary's"}})
    panel(axes[2], useless, "n_kernels", "mistakes", "p")
    axes[2].set(title="corollary 4.1:\none useful of F", ylim=(0, None))
    axes[2].tick_params(axis="x", labelsize=7)
    for ax, word in zip(axes, ("bundled", "simulated", "simulated"), strict=True):
        stamp(ax, word)
    legend(fig, axes, 4)
    return fig


def update_bounds(table):
    """Theorem 4.3: updates of the online stage and their bound, and its radius against the optimum's norm."""
    fig, (updates, radius) = beside(2)
    with_bound(updates, table, "p", "updates", "eta")
    panel(radius, table, "p", "radius", "eta")
    least = where(table, eta=table["eta"].iloc[0])
    curve(radius, least, "p", "optimum_norm", **method_style("optimum", label="norm of the optimum"))
    legend(fig, (updates, radius), 4)
    return fig


def suboptimality_bounds(table):
    """Theorems 4.2 and 4.5: mean suboptimality over independent streams and the bound, against the steps."""
    fig, (ax,) = beside(1)
    table = table.assign(case=table["p"].astype(str) + ", C = " + table["C"].astype(str))
    table = table.rename(columns={"case": "p", "p": "exponent"})  # so that labels begin with p
    with_bound(ax, table, "step", "suboptimality", "p", runs="stream", geometric=False)
    ax.set_ylabel("objective - optimum")
    legend(fig, ax, 4)
    return fig


#: Parts of the time of a fit, from dark to light.
PARTS = {
    "epochs": "epochs",
    "ascent": "dual ascent",
    "rest": "checks, rest",
    "averaging": "averaging",
    "fit": "SVC.fit",
}


def beside_svc(table, most):
    """Times over those of SVC on the average kernel, averaged or given, and their parts at the largest n."""
    fig, axes = panels(3, size=(10.0, 4.0), width_ratios=(1, 1, 1.25))
    counted, given, parts = axes[0]
    svc = where(table, method="AverageKernelSVM").set_index(["C", "n_train", "seed"])
    whole = svc["seconds"] + svc["averaging"]
    values = distinct(table["C"])
    for ax, base, title in ((counted, whole, "averaging counted"), (given, svc["seconds"], "average given")):
        for method in ("OBSCURE", "UFOMKL"):
            for C, alpha in zip(values, np.linspace(0.35, 1.0, len(values)), strict=True):
                runs = where(table, method=method, C=C).set_index(["C", "n_train", "seed"])
                ratio = (runs["seconds"] / base).rename("ratio").reset_index().dropna()
                ratio = ratio.groupby("n_train")["ratio"].agg(lambda r: np.exp(np.log(r).mean()))
                label = f"{name_of(method)}, C = {C:g}"
                ax.plot(ratio.index, ratio, **method_style(method, alpha=alpha, label=label, markersize=4))
        ax.axhline(most, color=BLACK, lw=0.8, ls="--")
        log_axis(ax.xaxis, ax.yaxis, plain=True)
        ax.set(xlabel=AXES["n_train"][0], title=f"over SVC, {title}")
    counted.set_ylabel("ratio of CPU seconds")
    last = table[table["n_train"] == table["n_train"].max()].assign(fit=np.nan)
    svm = last["method"] == "AverageKernelSVM"
    last = last.assign(fit=last["seconds"].where(svm), rest=last["seconds"] - last["epochs"] - last["ascent"])
    mean = last.groupby(["C", "method"])[list(PARTS)].mean()
    shades = plt.get_cmap("viridis")(np.linspace(0.1, 0.95, len(PARTS)))
    left = np.zeros(len(mean))
    for (part, label), color in zip(PARTS.items(), shades, strict=True):
        width = mean[part].fillna(0.0).to_numpy()
        parts.barh(np.arange(len(mean)), width, left=left, color=color, label=label)
        left += width
    names = {method: name_of(method) for method in ("OBSCURE", "UFOMKL")}
    rows = [f"{names.get(method, 'SVC')}, C = {C:g}" for C, method in mean.index]
    parts.set_yticks(np.arange(len(mean)), rows, fontsize=7)
    parts.invert_yaxis()
    parts.set(xlabel="CPU seconds", ylabel="method", xlim=(0.0, 1.9 * left.max()))
    parts.set_title(f"n = {last['n_train'].iloc[0]:,}")
    parts.legend(fontsize=7, loc="upper right")
    legend(fig, counted, 4)
    return fig


# --- ideas, and what sliders draw ---------------------------------------------------------------------------

EXPONENTS = {1.0: RED, 1.25: GREEN, 2.0: BLUE}
#: Values of the sliders of UFO-MKL.
ALPHAS = (0.001, 0.01, 0.05, 0.1, 0.12, 0.2)
LOSS_WEIGHTS = (1.0, 10.0, 100.0)


def norm_balls(theta=(1.0, 0.6)):
    """Balls of the group norm of two blocks, and where theta points to on each; the link of any number."""
    fig, (ball, link) = beside(2)
    theta = np.asarray(theta) / max(theta)
    angle = np.linspace(0.0, np.pi / 2, 201)
    circle = np.abs([np.cos(angle), np.sin(angle)])
    norms = np.linspace(0.0, 1.0, 201)
    for p, color in EXPONENTS.items():
        q = p / max(p - 1.0, 0.001)  # at p = 1 as near to the limit as can be seen
        w = theta ** (q - 1.0)
        ball.plot(*circle / (circle**p).sum(axis=0) ** (1.0 / p), color=color, label=f"p = {p:g}")
        ball.plot(*w / (w**p).sum() ** (1.0 / p), "o", color=color, markersize=8, clip_on=False)
        link.plot(norms, norms ** (q - 2.0), color=color)
    ball.quiver(0, 0, *0.75 * theta, color=GREY, angles="xy", scale_units="xy", scale=1)
    ball.set(aspect="equal", title=r"unit balls of the p-norm; dots maximise $\langle w, \bar\theta\rangle$")
    ball.set(xlabel=r"norm of the first block, $\|w^1\|$", ylabel=r"of the second, $\|w^2\|$")
    link.set(title="the link: what a kernel counts")
    link.set(xlabel="norm of a dual block over the largest", ylabel=r"its weight $d_j$ over the largest")
    ball.legend(loc="upper right")
    return fig


def two_stages(table):
    """The suboptimality of OBSCURE in both stages of one run, with the jump between them."""
    run = where(table, method="OBSCURE", seed=table["seed"].min())
    online = where(run, stage="online")
    batch = where(run, stage="batch")
    fig, (ax,) = beside(1)
    ax.plot(online["epoch"], online["suboptimality"], **method_style("OBSCURE online", marker="."))
    ends = pd.concat([online.tail(1), batch])
    label = "OBSCURE, batch stage"
    ax.plot(ends["epoch"], ends["suboptimality"], **method_style("OBSCURE", marker=".", label=label))
    points = (
        (online.iloc[-1], "the online stage ends", (-10, 4), "right", "bottom"),
        (batch.iloc[0], "after one epoch of the batch stage", (8, 0), "left", "center"),
        (batch.iloc[-1], "the run ends", (0, 10), "right", "bottom"),
    )
    for row, says, offset, side, height in points:
        text = f"{says}: {row['suboptimality']:.3g}"
        place = {"textcoords": "offset points", "ha": side, "va": height, "fontsize": 8}
        ax.annotate(text, (row["epoch"], row["suboptimality"]), offset, **place)
    ax.set(xscale="log", yscale="log", xlabel="epochs", ylabel=AXES["suboptimality"][0])
    ax.legend(loc="lower left")
    return fig


def _shares(ax, names, weights, method):
    """How much each kernel counts."""
    shares = weights / max(1.0e-12, weights.sum())
    ax.bar(names, shares, color=method_style(method)["color"], width=0.6)
    ax.set(ylim=(0, 1), ylabel="share of the kernel weights")


def weights_and_errors(axes, names, models, errors, p):
    """Of OM-2: how much each kernel counts at this p; at every p the mistakes in the pass, and `errors`."""
    shares, right = axes
    _shares(shares, names, models[p].kernel_weights_, "OM2")
    mistakes = [model.online_errors_.mean() for model in models.values()]
    curves = {"in the pass": mistakes, **errors}
    looks = ((GREEN, "--"), (GREEN, "-"), (RED, "-"), (GREY, ":"))
    for (label, values), (color, line) in zip(curves.items(), looks, strict=False):
        along(right, [*models], 100 * np.array(values), p, color=color, linestyle=line, label=label)
    right.set(ylim=(0, 90), xlabel="$p$", ylabel="errors [%]")
    right.legend(fontsize=7, loc="upper right")


def error_and_updates(axes, curves, staged, n_kernels):
    """OBSCURE's mean error with so many kernels; updates of its online stage, these runs among all."""
    error, updates = axes
    now = where(curves, n_kernels=n_kernels)
    for method, stage in (("OBSCURE online", "online"), ("OBSCURE", "batch")):
        style = method_style(method, label=f"{stage} stage", marker="")
        over_time(error, where(now, stage=stage), "epoch", "test_error", factor=100, **style)
    log_axis(error.xaxis, plain=True)
    error.set(xlim=(1, curves["epoch"].max()), ylim=(0, 100), xlabel="epoch", ylabel="test error [%]")
    error.legend(loc="lower left", fontsize=7)
    thousands = staged.assign(updates=staged["updates"] / 1000)
    own = where(thousands, n_kernels=n_kernels)
    updates.plot(thousands["n_kernels"], thousands["updates"], ".", color="#cccccc")
    updates.plot(own["n_kernels"], own["updates"], "o", color=BLUE)
    counts = distinct(staged["n_kernels"])
    updates.set(xscale="log", ylim=(0, None), xlabel="number of kernels")
    updates.set_xticks(counts, counts)
    updates.xaxis.set_minor_locator(NullLocator())
    updates.set_ylabel("online updates [thousands]")


def fits_by_alpha(task, seed):
    """UFO-MKL on a task at every alpha and C of the slider: weights of the kernels, and the test error."""
    rows = []
    for point in grid_points(C=LOSS_WEIGHTS, alpha=ALPHAS):
        model = UFOMKL("precomputed", random_state=seed, **point).fit(task.bank, task.labels)
        weights = dict(zip(task.bank.names, model.kernel_weights_, strict=True))
        error = 1 - model.score(task.cross, task.test_labels)
        rows.append({**weights, **point, "test_error": error})
    return pd.DataFrame(rows)


def kept_and_error(axes, table, C, alpha):
    """UFO-MKL: weights of the kernels at this alpha and C, and test errors at every alpha, from a `table`
    with a column for each kernel besides C, alpha and test_error."""
    shares, error = axes
    subset = where(table, C=C)
    now = where(subset, alpha=alpha).iloc[0]
    weights = now.drop(["C", "alpha", "test_error"]).astype(float)
    _shares(shares, weights.index, weights, "UFOMKL")
    shares.set_title(f"{np.count_nonzero(weights)} of {weights.size} kept")
    errors = 100 * subset["test_error"].to_numpy()
    along(error, subset["alpha"], errors, alpha, color=method_style("UFOMKL")["color"])
    error.set(xscale="log", yscale="log", ylim=(1, 100), xlabel=r"$\alpha$", ylabel="test error [%]")
    error.set_title(f"{now['test_error']:.1%} errors")


# --- losses beyond the hinge --------------------------------------------------------------------------------

LABELS = {
    "diabetes": "diabetes",
    "friedman1": "Friedman 1 (simulated)",
    "friedman2": "Friedman 2 (simulated)",
    "friedman3": "Friedman 3 (simulated)",
    "mfeat": "digits, five cues",
}
#: Least number of samples in a bin that is drawn.
LEAST = 20


def regressors(table):
    """Differences of errors with intervals, a panel for each pair of methods."""
    pairs = (
        ("OBSCURE, squared", "kernel ridge, average"),
        ("UFO-MKL, squared", "kernel ridge, average"),
        ("OBSCURE, insensitive", "SVR, average"),
        ("OBSCURE, insensitive", "p-norm SVR"),
    )
    fig, axes = panels(2, 2, size=(8.6, 4.6), sharex=True)
    for ax, (method, rival) in zip(axes.flat, pairs, strict=True):
        errors = table.pivot(index=["task", "seed"], columns="method", values="error")
        differences = 100 * (errors[method] - errors[rival])
        samples = {LABELS[task]: differences[task] for task in table["task"].unique()}
        forest(ax, intervals(samples), "")
        ax.set_title(f"{method}\nminus {rival}")
    for ax in axes[:, 1]:
        ax.set_yticklabels([])
    fig.supxlabel("difference of test errors [hundredths of y's standard deviation]", fontsize=8)
    return fig


def reliability(table):
    """Share of right predictions against the probability, and differences of the log loss."""
    fig, axes = panels(3, 2, size=(8.6, 5.2), height_ratios=(3.0, 1.2))
    methods = list(table["method"].unique())
    colors = dict(zip(methods, (BLUE, GREEN, RED, ORANGE), strict=True))
    for (above, below), (task, runs) in zip(axes.T, table.groupby("task", sort=False), strict=True):
        above.plot([0, 1], [0, 1], color=BLACK, lw=0.8)
        for method, marker in zip(methods, "os^v", strict=True):
            bins = runs[runs["method"] == method].groupby("bin")[["count", "confidence", "right"]].sum()
            bins = bins[bins["count"] >= LEAST]
            x = bins["confidence"] / bins["count"]
            y = bins["right"] / bins["count"]
            above.plot(x, y, marker=marker, color=colors[method], label=method)
        above.set(title=CUES[task], xlabel="largest probability", xlim=(0, 1), ylim=(0, 1.02))
        losses = runs.drop_duplicates(["seed", "method"])
        losses = losses.pivot(index="seed", columns="method", values="log_loss")
        samples = {f"minus {rival}": losses[methods[0]] - losses[rival] for rival in methods[1:]}
        forest(below, intervals(samples), "log loss, logistic minus rival", digits=2)
    for ax in axes[1, 1:]:
        ax.set_yticklabels([])
    axes[1, 0].set_yticklabels(["minus Platt's", "minus softmax", "minus temperature"])
    axes[0, 0].set_ylabel("share that is right")
    axes[0, 0].legend(fontsize=7, loc="lower right")
    return fig


#: Looks of methods on samples that lack cues, by the second part of their names.
WAYS = {"zero blocks": BLUE, "imputed": ORANGE, "dropped": GREY}


def missing_cues(table):
    """Accuracy against the share of missing cues, a panel for each data set."""
    tasks = distinct(table["task"])
    fig, axes = panels(len(tasks), size=(8.6, 3.4))
    accuracy = table.assign(accuracy=1.0 - table["error"])
    for ax, task in zip(axes[0], tasks, strict=True):
        rows = where(accuracy, task=task)
        for method in distinct(rows["method"]):
            kind, _, way = method.partition(", ")
            look = {"color": WAYS[way], "label": method, "linestyle": "-" if kind == "OBSCURE" else "--"}
            own = where(rows, method=method)
            curve(ax, own, "share", "accuracy", factor=100, marker=".", **look)
        ax.set(title=CUES[task], xlabel="share of missing cues", ylim=(0, 101))
    axes[0, 0].set_ylabel("test accuracy [%]")
    legend(fig, axes, 3)
    return fig


def many_samples(table):
    """CPU seconds, memory and test error against the number of samples: means of the draws there are."""
    means = table.groupby(["method", "n"], sort=False)[["seconds", "memory", "error"]].mean().reset_index()
    means = means.assign(memory=means["memory"] / 1e6, seed=0)
    fig, axes = panels(3, size=(9.6, 3.8))
    for ax, y in zip(axes[0], ("seconds", "memory", "error"), strict=True):
        panel(ax, means, "n", y)
        log_axis(ax.xaxis)
        ax.set_ylabel("test error [%]" if y == "error" else AXES[y][0])
    log_axis(axes[0, 2].yaxis, plain=True)
    legend(fig, axes, 3)
    return fig


def cluster_rounds(table):
    """Rounds and megabytes against the number of partitions, a curve for each C and gap."""
    fig, axes = panels(2, size=(7.0, 3.2))
    for C in distinct(table["C"]):
        for gap in distinct(table["gap"]):
            rows = where(table, C=C, gap=gap)
            look = {"color": f"C{distinct(table['C']).index(C)}", "marker": "."}
            look |= {"linestyle": "--" if gap < 0.05 else "-", "label": f"C = {C:g}, gap {gap:.0%}"}
            for ax, column in zip(axes[0], ("rounds", "megabytes"), strict=True):
                curve(ax, rows, "n_partitions", column, **look)
    for ax, label in zip(axes[0], ("rounds", "megabytes sent"), strict=True):
        ticks = distinct(table["n_partitions"])
        ax.set(xscale="log", yscale="log", xlabel="partitions", ylabel=label)
        ax.set_xticks(ticks, ticks)
        ax.minorticks_off()
    legend(fig, axes, 4)
    return fig
