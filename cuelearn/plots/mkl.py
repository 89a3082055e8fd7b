"""Drawings of the MKL chapter. Every function takes the numbers of an experiment and returns a figure."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from cuelearn.book.figures import band, interval, method_style


def log_axis(axis, plain=False):
    """Logarithmic axis with readable ticks: powers of ten, or (`plain`) 1, 2, 5 and so on as numbers.

    Parameters
    ----------
    axis : matplotlib Axis
        ``ax.xaxis`` or ``ax.yaxis``; its scale is set.
    plain : bool
    """
    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    if plain:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(ScalarFormatter())
    axis.set_minor_formatter(NullFormatter())


def kernel_weights(bank, labels, weights):
    """Kernel matrices above, normalised kernel weights of each method below (thesis figure 4.1, JMLR figure 1).

    Parameters
    ----------
    bank : KernelBank
    labels : ndarray of int
    weights : DataFrame
        Columns method, target (the class that a binary problem tells from the rest, 0 for all at once), p, kernel, weight; several
        seeds give the mean.
    """
    order = np.argsort(labels, kind="stable")
    drawn = list(dict.fromkeys(zip(weights["method"], weights["target"], strict=True)))
    fig = plt.figure(figsize=(8.6, 4.6), layout="constrained")
    upper, lower = fig.subfigures(2, 1, height_ratios=(1, 1.05))
    axes = upper.subplots(1, bank.n_kernels, sharey=True)
    for j, ax in enumerate(axes):
        image = ax.imshow(bank.stack[j][np.ix_(order, order)], vmin=-0.5, vmax=1, interpolation="nearest")
        ax.set(title=f"kernel {j + 1}", xlabel="sample", xticks=(0, 100, 200), yticks=(0, 100, 200))
        ax.grid(False)
    axes[0].set_ylabel("sample")
    upper.colorbar(image, ax=axes, shrink=0.9, label="kernel value")
    for ax, (method, target) in zip(
        lower.subplots(1, len(drawn), sharey=True, squeeze=False)[0], drawn, strict=True
    ):
        mine = weights[(weights["method"] == method) & (weights["target"] == target)]
        spread = interval(np.stack([g["weight"].to_numpy() for _, g in mine.groupby("seed")]))
        style = method_style(method)
        ax.bar(np.arange(1, bank.n_kernels + 1), spread.mean, color=style["color"], width=0.6)
        for k, value in enumerate(spread.mean):
            ax.text(k + 1, value + 0.02, f"{value:.2f}", ha="center", fontsize=8)
        if target:
            title = f"SILP, class {target}\nagainst the rest"
        else:
            title = f"{style['label']},\np = {mine['p'].iloc[0]:g}"
        ax.set(title=title, xlabel="kernel", ylim=(0, 1.12), xticks=range(1, bank.n_kernels + 1))
    lower.axes[0].set_ylabel(r"weight $d_j / \sum d$")
    return fig


def above(ax, values, factor=1.0):
    """Lower end of a logarithmic axis: half the smallest positive value, so that bands that reach below 0 do not stretch it."""
    values = np.asarray(values, dtype=float)
    ax.set_ylim(bottom=0.5 * factor * values[values > 0].min())


TASK_NAMES = {
    "robot": "places (simulated), four cues",
    "mfeat-6": "digits, six different cues",
    "mfeat-pyramid": "digits, four redundant cues",
    "mfeat-39": "digits, 39 kernels",
    "pendigits-4": "Pendigits, four views",
    "flowers-7": "Flowers-17, seven cues",
}
TASK_COLORS = {"robot": "#009E73", "mfeat-6": "#0072B2", "mfeat-pyramid": "#D55E00"}


def by_task(ax, table, column, factor=1.0, **style):
    """One band for each task of a table: `column` against p."""
    for task in dict.fromkeys(table["task"]):
        grid = table[table["task"] == task].pivot(index="seed", columns="p", values=column)
        band(
            ax,
            grid.columns,
            factor * grid.to_numpy(),
            geometric=True,
            label=TASK_NAMES[task].split(",")[-1].strip() if task != "robot" else "places (simulated)",
            color=TASK_COLORS[task],
            **{"marker": "o", **style},
        )


def p_sweep(table):
    """Test error of OM-2 against p on each cue set, and the work to convergence (thesis figure 4.2)."""
    tasks = list(dict.fromkeys(table["task"]))
    fig, axes = plt.subplots(1, len(tasks) + 1, figsize=(3.2 * (len(tasks) + 1), 3.2), layout="constrained")
    for ax, task in zip(axes, tasks, strict=False):
        mine = table[table["task"] == task]
        for column, label, line in (
            ("test_error", "after the fixed epochs", "-"),
            ("final_error", "run to convergence", "--"),
        ):
            grid = mine.pivot(index="seed", columns="p", values=column)
            band(ax, grid.columns, 100 * grid.to_numpy(), "OM2", label=label, linestyle=line)
        ax.set(title=TASK_NAMES[task], xlabel="p", ylabel="test error [%]")
    axes[0].legend()
    by_task(axes[-1], table, "seconds", 1e3)
    axes[-1].set(
        title="time to an epoch without update", xlabel="p", ylabel="milliseconds, one thread", yscale="log"
    )
    axes[-1].legend()
    return fig


def obscure_against_p(table):
    """OBSCURE against p: error after the online stage and at the end, and the time of both stages (JMLR figure 4)."""
    tasks = list(dict.fromkeys(table["task"]))
    fig, axes = plt.subplots(1, len(tasks) + 1, figsize=(3.5 * (len(tasks) + 1), 3.3), layout="constrained")
    for ax, task in zip(axes, tasks, strict=False):
        mine = table[table["task"] == task]
        for column, method in (("online_error", "OBSCURE online"), ("test_error", "OBSCURE")):
            grid = mine.pivot(index="seed", columns="p", values=column)
            band(ax, grid.columns, 100 * grid.to_numpy(), method)
        ax.set(title=TASK_NAMES[task], xlabel="p", ylabel="test error [%]")
    axes[0].legend()
    by_task(axes[-1], table, "online_seconds", linestyle="--", marker="s")
    handles, labels = axes[-1].get_legend_handles_labels()
    by_task(axes[-1], table, "seconds")
    axes[-1].plot([], [], "--", color="grey", label="online stage, to an epoch without loss")
    axes[-1].plot([], [], "-", color="grey", label="both, to a certified gap")
    extra = axes[-1].get_legend_handles_labels()
    axes[-1].set(title="time of both stages", xlabel="p", ylabel="seconds, one thread", yscale="log")
    axes[-1].set_ylim(top=10 * axes[-1].get_ylim()[1])  # room for the legend
    axes[-1].legend(handles + extra[0][-2:], labels + extra[1][-2:], fontsize=7, loc="upper right")
    return fig


def online_panels(curves, lines, samples="training samples seen"):
    """Online error against samples, and test error against epochs with the batch methods as lines (thesis figures 4.3 and 4.4).

    Parameters
    ----------
    curves : DataFrame
        Columns method, seed, what, at, error.
    lines : DataFrame
        Columns method, seed, test_error.
    """
    fig, axes = plt.subplots(1, 2, figsize=(9.4, 3.7), layout="constrained")
    for method in dict.fromkeys(curves["method"]):
        for ax, what in zip(axes, ("online", "test"), strict=True):
            mine = curves[(curves["method"] == method) & (curves["what"] == what)]
            grid = mine.pivot(index="seed", columns="at", values="error").dropna(axis=1)
            band(
                ax,
                grid.columns,
                100 * grid.to_numpy(),
                method,
                **({"marker": ""} if what == "online" else {}),
            )
    for method, group in lines.groupby("method", sort=False):
        axes[1].axhline(100 * group["test_error"].mean(), **method_style(method, marker=""))
    for ax, what in zip(axes, ("online", "test"), strict=True):
        log_axis(ax.yaxis, plain=True)
        above(ax, curves.loc[curves["what"] == what, "error"], 100)
        ax.legend(fontsize=7)
    log_axis(axes[1].xaxis, plain=True)
    axes[0].set(xlabel=samples, ylabel="mistakes so far [%]", title="while learning, first pass")
    axes[1].set(xlabel="epochs of the online methods", ylabel="test error [%]", title="on new samples")
    return fig


def against_size(table):
    """Training time and test error of every method against the number of training samples (thesis figure 4.7, JMLR figure 6)."""
    fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained")
    for method in dict.fromkeys(table["method"]):
        mine = table[table["method"] == method]
        for ax, column, factor in ((axes[0], "seconds", 1.0), (axes[1], "test_error", 100.0)):
            grid = mine.pivot(index="seed", columns="n_train", values=column)
            band(ax, grid.columns, factor * grid.to_numpy(), method, geometric=column == "seconds")
    for ax in axes:
        log_axis(ax.yaxis, plain=ax is axes[1])
    above(axes[1], table["test_error"], 100)
    axes[0].set(xlabel="training samples", ylabel="training time [s], one thread", title="kernels at hand")
    axes[1].set(xlabel="training samples", ylabel="test error [%]", title="on new samples")
    axes[1].legend(fontsize=7, ncols=2)
    return fig


def accuracies(table):
    """Test error of every method with its interval over the splits (thesis figure 4.9 right)."""
    methods = list(dict.fromkeys(table["method"]))
    fig, ax = plt.subplots(figsize=(6.6, 0.34 * len(methods) + 1.1), layout="constrained")
    for at, method in enumerate(methods):
        spread = interval(100 * table[table["method"] == method]["test_error"].to_numpy()[:, None])
        style = method_style(method)
        mean, low, high = (float(np.ravel(v)[0]) for v in (spread.mean, spread.low, spread.high))
        ax.errorbar(
            mean,
            at,
            xerr=[[max(0.0, mean - low)], [max(0.0, high - mean)]],
            color=style["color"],
            marker=style["marker"] or "o",
            capsize=3,
        )
        ax.annotate(
            f"{mean:.2f}", (mean, at), xytext=(0, 5), textcoords="offset points", ha="center", fontsize=8
        )
    ax.set(yticks=range(len(methods)), xlabel="test error [%], mean and 95% interval over splits")
    ax.set_yticklabels([method_style(m)["label"] for m in methods])
    ax.set_ylim(len(methods) - 0.4, -0.8)
    return fig


def over_time(ax, table, value, x, *args, factor=1.0, **style):
    """One band of repeated curves on a common schedule, each point at its mean `x`; a run that ended earlier keeps its last point."""
    ranked = table.assign(rank=table.groupby("seed").cumcount())
    y, at = (ranked.pivot(index="seed", columns="rank", values=column).ffill(axis=1) for column in (value, x))
    return band(ax, at.mean(), factor * y.to_numpy(), *args, **style)


def curves(table, value, ax=None, *, x="seconds", log_y=False, methods=None, labels=None, by="method"):
    """Mean curves with 95% bands over a common schedule of epochs; x is the mean time (or updates) of each.

    Parameters
    ----------
    table : DataFrame
        Columns seed, epoch, `by`, `x` and `value`.
    """
    fig = None
    if ax is None:
        fig, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
    for key in methods if methods is not None else dict.fromkeys(table[by]):
        mine = table[table[by] == key]
        if mine.empty:
            continue
        style = {"label": (labels or {}).get(key)} if labels and key in labels else {}
        over_time(ax, mine, value, x, key if by == "method" else None, geometric=log_y, markersize=3, **style)
    log_axis(ax.xaxis)
    ax.set(
        xlabel={
            "seconds": "training time [s], one thread",
            "n_updates": "updates (changes of coefficients)",
        }.get(x, x)
    )
    if log_y:
        log_axis(ax.yaxis)
    return fig if fig is not None else ax


def convergence(table, lines):
    """Test error and certified suboptimality against time and against updates (JMLR figure 2).

    Parameters
    ----------
    table : DataFrame
        Curves with columns method, seed, epoch, seconds, n_updates, test_error, suboptimality.
    lines : DataFrame
        Columns method, test_error: baselines drawn as horizontal lines.
    """
    fig, axes = plt.subplots(1, 3, figsize=(11.4, 4.1), layout="constrained")
    percent = table.assign(test_error=100 * table["test_error"])
    curves(percent, "test_error", axes[0])
    for method, group in lines.groupby("method", sort=False):
        style = method_style(method, marker="")
        axes[0].axhline(100 * group["test_error"].mean(), **style)
    log_axis(axes[0].yaxis, plain=True)
    above(axes[0], percent["test_error"])
    axes[0].set(ylabel="test error [%]", title="generalisation")
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper center", ncols=7, fontsize=7)
    for ax, x in ((axes[1], "seconds"), (axes[2], "n_updates")):
        curves(table, "suboptimality", ax, x=x, log_y=True)
        ax.axhline(0.01, color="black", linewidth=0.8, linestyle=":")
        ax.text(ax.get_xlim()[0] * 1.1, 0.0105, "1%", fontsize=8)
        ax.set(ylabel="(objective - bound) / bound", title="certified suboptimality, each of its own problem")
        ax.title.set_fontsize(9)
    return fig


def p_curves(table):
    """OBSCURE's and p-norm MKL's test error against time for every p, and their final errors (JMLR figure 3)."""
    methods = list(dict.fromkeys(table["method"]))
    fig, axes = plt.subplots(
        1, len(methods) + 1, figsize=(3.6 * (len(methods) + 1), 3.6), layout="constrained"
    )
    grid = sorted(table["p"].unique())
    shades = plt.get_cmap("cividis")(np.linspace(0, 0.9, len(grid)))
    for ax, method in zip(axes, methods, strict=False):
        for p, color in zip(grid, shades, strict=True):
            mine = table[(table["p"] == p) & (table["method"] == method)]
            over_time(
                ax,
                mine,
                "test_error",
                "seconds",
                factor=100,
                label=f"p = {p:g}",
                color=color,
                marker="",
                alpha=0.1,
            )
        log_axis(ax.xaxis)
        log_axis(ax.yaxis, plain=True)
        ax.set(
            xlabel="training time [s], one thread",
            ylabel="test error [%]",
            title=method_style(method)["label"],
        )
        ax.sharey(axes[0])
    above(axes[0], table["test_error"], 100)
    axes[0].legend(ncols=2, fontsize=7)
    for method in methods:
        last = table[table["method"] == method].groupby(["p", "seed"]).last().reset_index()
        final = last.pivot(index="seed", columns="p", values="test_error")
        band(axes[-1], final.columns, 100 * final.to_numpy(), method)
    axes[-1].set(xlabel="p", ylabel="test error [%]", title="at the end")
    axes[-1].legend()
    return fig


def number_of_kernels(table):
    """OBSCURE's test error against epochs for growing numbers of kernels; online stage dashed (thesis figure 4.6)."""
    fig, ax = plt.subplots(figsize=(6.2, 3.8), layout="constrained")
    counts = sorted(table["n_kernels"].unique())
    for n, color in zip(counts, plt.get_cmap("viridis")(np.linspace(0, 0.9, len(counts))), strict=True):
        mine = table[table["n_kernels"] == n]
        for stage, line in (("online", "--"), ("batch", "-")):
            grid = (
                mine[mine["stage"] == stage]
                .pivot_table(index="seed", columns="epoch", values="test_error")
                .dropna(axis=1)
            )
            if grid.size:
                label = f"{n} kernel{'s' if n > 1 else ''}" if stage == "batch" else None
                band(
                    ax,
                    grid.columns,
                    100 * grid.to_numpy(),
                    color=color,
                    linestyle=line,
                    label=label,
                    marker="",
                    alpha=0.1,
                )
    ax.plot([], [], color="grey", linestyle="--", label="online stage")
    log_axis(ax.xaxis)
    log_axis(ax.yaxis, plain=True)
    ax.set(xlabel="epoch", ylabel="test error [%]", ylim=(1, 60))
    ax.legend(ncols=2)
    return fig


def online_against_kernels(table):
    """Updates to convergence and test errors of both stages against the number of kernels (JMLR figure 5)."""
    fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained")
    updates = table.pivot(index="seed", columns="n_kernels", values="updates")
    band(
        axes[0],
        updates.columns,
        updates.to_numpy(),
        "OBSCURE online",
        label="updates to an epoch without loss",
    )
    log_axis(axes[0].yaxis)
    axes[0].set(xscale="log", xlabel="number of kernels F", ylabel="updates of the online stage")
    for column, method in (("final_error", "OBSCURE online"), ("batch_error", "OBSCURE")):
        grid = table.pivot(index="seed", columns="n_kernels", values=column)
        band(axes[1], grid.columns, 100 * grid.to_numpy(), method)
    axes[1].set(xscale="log", xlabel="number of kernels F", ylabel="test error [%]", ylim=(0, None))
    above(axes[0], updates)
    for ax in axes:
        ax.set_xticks(updates.columns, [str(n) for n in updates.columns])
        ax.minorticks_off()
        ax.legend()
    return fig


def training_sizes(table, lines, reached):
    """Test error against time for growing training sets, and time to the optimum against their size (thesis figure 4.8)."""
    fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.7), layout="constrained")
    sizes = sorted(table["n_train"].unique())
    for n, color in zip(sizes, plt.get_cmap("viridis")(np.linspace(0, 0.85, len(sizes))), strict=True):
        mine = table[table["n_train"] == n]
        over_time(
            axes[0],
            mine,
            "test_error",
            "seconds",
            factor=100,
            label=f"N = {n:,}",
            color=color,
            marker="",
            alpha=0.15,
        )
        for method, mark in (("AverageKernelSVM", "+"), ("BestKernelSVM", "1")):
            svm = lines[(lines["n_train"] == n) & (lines["method"] == method)]
            if len(svm):
                axes[0].plot(
                    svm["seconds"].mean(), 100 * svm["test_error"].mean(), mark, color=color, markersize=9
                )
    axes[0].plot([], [], "+", color="grey", label="SVM, average kernel")
    axes[0].plot([], [], "1", color="grey", label="SVM, best kernel")
    log_axis(axes[0].xaxis)
    log_axis(axes[0].yaxis, plain=True)
    axes[0].set(xlabel="training time [s], one thread", ylabel="test error [%]")
    axes[0].legend()
    grid = reached.pivot(index="seed", columns="n_train", values="seconds")
    band(axes[1], grid.columns, grid.to_numpy(), "OBSCURE", label="to within 0.5 point of the final error")
    middle = grid.mean().iloc[0]
    axes[1].plot(
        grid.columns,
        middle * np.asarray(grid.columns) / grid.columns[0],
        color="grey",
        linestyle=":",
        label="linear in N",
    )
    log_axis(axes[1].xaxis, plain=True)
    log_axis(axes[1].yaxis)
    axes[1].set(xlabel="training samples N", ylabel="seconds")
    axes[1].legend()
    return fig


def equal_regulariser(table):
    """Objective and certified suboptimality of UFO-MKL and OBSCURE on the same problem (thesis figure 4.9 left)."""
    fig, axes = plt.subplots(1, 2, figsize=(8.8, 3.5), layout="constrained")
    curves(table, "objective", axes[0], log_y=True)
    axes[0].axhline(table["optimum"].mean(), **method_style("optimum"))
    axes[0].set(ylabel="objective", title="objective")
    curves(table, "suboptimality", axes[1], log_y=True)
    axes[1].set(ylabel="(objective - bound) / bound", title="certified suboptimality")
    axes[0].legend()
    axes[1].legend()
    return fig


def many_kernels(counts, alphas):
    """Up to 1,400 kernels: accuracy and time against their number; kernels kept and accuracy against alpha (thesis figure 4.10)."""
    fig, grid_of_axes = plt.subplots(2, 2, figsize=(9, 6.6), layout="constrained")
    axes = grid_of_axes.ravel()
    for method in dict.fromkeys(counts["method"]):
        mine = counts[counts["method"] == method]
        for ax, column, factor in ((axes[0], "test_error", 100), (axes[1], "seconds", 1)):
            grid = mine.pivot(index="seed", columns="n_kernels", values=column)
            band(ax, grid.columns, factor * grid.to_numpy(), method, geometric=column == "seconds")
    axes[0].set(xscale="log", xlabel="number of kernels", ylabel="test error [%]")
    axes[1].set(
        xscale="log",
        yscale="log",
        xlabel="number of kernels",
        ylabel="seconds (kernels computed where needed)",
    )
    for (C, mine), style in zip(
        alphas.groupby("C", sort=False),
        ({}, {"color": "#0072B2", "linestyle": "--", "marker": "s"}),
        strict=False,
    ):
        kept, error = (
            mine.pivot(index="seed", columns="alpha", values=column) for column in ("n_used", "test_error")
        )
        style = {**style, "label": f"UFO-MKL, C = {C:g}"}
        band(axes[2], kept.columns, kept.clip(lower=1).to_numpy(), "UFOMKL", geometric=True, **style)
        band(axes[3], error.columns, 100 * error.to_numpy(), "UFOMKL", **style)
    axes[2].set(xscale="log", yscale="log", xlabel=r"$\alpha$", ylabel="kernels with non-zero weight")
    axes[3].set(xscale="log", xlabel=r"$\alpha$", ylabel="test error [%]", ylim=(0, None))
    axes[0].set_ylim(0, 1.35 * axes[0].get_ylim()[1])  # room for the legend
    axes[0].legend(fontsize=7, loc="upper left")
    axes[2].legend()
    return fig


def mistake_bounds(table, useless):
    """Theorem 4.1: mistakes of OM-2 and their bound; corollary 4.1: mistakes against the number of useless kernels."""
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for kind, marker, color in (("mfeat-6", "o", "#0072B2"), ("random", "s", "#D55E00")):
        mine = table[table["kind"] == kind]
        title = {"mfeat-6": "multiple features", "random": "random labels (simulated)"}[kind]
        for column, line in (("mistakes", "-"), ("bound", "--")):
            grid = mine.pivot(index="seed", columns="p", values=column)
            label = f"{title}: {'measured' if column == 'mistakes' else 'bound'}"
            band(
                axes[0],
                grid.columns,
                grid.to_numpy(),
                color=color,
                marker=marker,
                linestyle=line,
                label=label,
            )
    log_axis(axes[0].yaxis, plain=True)
    axes[0].set(xlabel="p", ylabel="mistakes in one pass", title="theorem 4.1")
    grid = useless.pivot(index="seed", columns="n_kernels", values="mistakes")
    band(axes[1], grid.columns, grid.to_numpy(), "OM2", label="one useful kernel among F (simulated)")
    slope, start = np.polyfit(np.log(useless["n_kernels"]), useless["mistakes"], 1)
    axes[1].plot(
        grid.columns,
        start + slope * np.log(grid.columns),
        color="grey",
        linestyle=":",
        label=f"fit: {start:.0f} {slope:+.1f} ln F",
    )
    axes[1].set(
        xscale="log",
        xlabel="number of kernels F",
        ylabel="mistakes in one pass",
        ylim=(0, None),
        title="corollary 4.1",
    )
    for ax in axes:
        ax.legend()
    return fig


def update_bounds(table):
    """Theorem 4.3: updates of the online stage and their bound, and its radius against the optimum's norm."""
    fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.5), layout="constrained")
    for eta, color in zip(sorted(table["eta"].unique()), ("#0072B2", "#009E73", "#D55E00"), strict=False):
        mine = table[table["eta"] == eta]
        for column, line in (("updates", "-"), ("bound", "--")):
            grid = mine.pivot(index="seed", columns="p", values=column)
            label = rf"$\eta$ = {eta:g}: {'measured' if column == 'updates' else 'bound'}"
            band(
                axes[0],
                grid.columns,
                grid.to_numpy(),
                color=color,
                linestyle=line,
                label=label,
                marker="o",
                markersize=3,
            )
        grid = mine.pivot(index="seed", columns="p", values="radius")
        band(axes[1], grid.columns, grid.to_numpy(), color=color, marker="o", label=rf"R, $\eta$ = {eta:g}")
    grid = table[table["eta"] == table["eta"].min()].pivot(index="seed", columns="p", values="optimum_norm")
    band(axes[1], grid.columns, grid.to_numpy(), "optimum", label="norm of the optimum")
    axes[0].set(xlabel="p", yscale="log", ylabel="updates of the online stage")
    log_axis(axes[1].yaxis, plain=True)
    axes[1].set(xlabel="p", ylabel=r"$\|\bar w\|_{2,p}$")
    for ax in axes:
        ax.legend()
    return fig


def suboptimality_bounds(table, method):
    """Theorems 4.2 and 4.5: mean suboptimality over independent streams and the bound, against the steps."""
    fig, ax = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    cases = list(dict.fromkeys(zip(table["p"].astype(str), table["C"], strict=True)))
    for (p, C), color in zip(cases, ("#0072B2", "#009E73", "#D55E00", "#CC79A7"), strict=False):
        mine = table[(table["p"].astype(str) == p) & (table["C"] == C)]
        grid = mine.pivot(index="stream", columns="step", values="suboptimality")
        band(
            ax,
            grid.columns,
            grid.to_numpy(),
            color=color,
            marker="o",
            markersize=3,
            label=f"p = {p}, C = {C:g}: measured",
        )
        limit = mine.groupby("step")["bound"].mean()
        ax.plot(limit.index, limit, color=color, linestyle="--", label=f"p = {p}, C = {C:g}: bound")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="steps of the batch stage" if method == "OBSCURE" else "steps",
        ylabel="objective - optimum",
    )
    ax.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig
