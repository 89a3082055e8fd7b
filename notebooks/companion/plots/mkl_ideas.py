"""Ideas of the MKL chapter as pictures, from a few numbers; and what its sliders draw."""

import itertools

import numpy as np
import pandas as pd

from companion.plots.common import log_axis, panels
from companion.protocol import where
from companion.run.figures import BLUE, GREEN, GREY, RED, method_style
from cuelearn.mkl import UFOMKL

EXPONENTS = {1.0: RED, 1.25: GREEN, 2.0: BLUE}
#: Values of the sliders of UFO-MKL.
ALPHAS = (0.001, 0.01, 0.02, 0.05, 0.08, 0.1, 0.12, 0.15, 0.2)
LOSS_WEIGHTS = (1.0, 10.0, 100.0)


def norm_balls(theta=(1.0, 0.6)):
    """Balls of the group norm of two blocks, and where theta points to on each; the link of any number."""
    fig, ((ball, link),) = panels(2, size=(8.0, 3.6))
    theta, angle = np.asarray(theta), np.linspace(0.0, np.pi / 2, 201)
    circle = np.maximum(0.0, [np.cos(angle), np.sin(angle)])
    norms = np.linspace(0.0, 1.0, 201)
    for p, color in EXPONENTS.items():
        ball.plot(*circle / (circle**p).sum(axis=0) ** (1.0 / p), color=color, label=f"p = {p:g}")
        if p > 1.0:
            q = p / (p - 1.0)
            w = theta ** (q - 1.0)
            weights = norms ** (q - 2.0)
        else:  # the limit: the largest block alone
            w, weights = 1.0 * (theta == theta.max()), 1.0 * (norms == 1.0)
        ball.plot(*w / (w**p).sum() ** (1.0 / p), "o", color=color, markersize=8, clip_on=False)
        link.plot(norms, weights, color=color, label=f"p = {p:g}", clip_on=False)
    arrow = {"arrowstyle": "-|>", "color": GREY, "linewidth": 1.5}
    ball.annotate("", 0.75 * theta, (0, 0), arrowprops=arrow)
    ball.text(*0.78 * theta, r"$\bar\theta$", color="#555555", va="center")
    ball.set(aspect="equal", title=r"norm 1; the dots agree best with $\bar\theta$")
    ball.set(xlabel=r"norm of the first block, $\|w^1\|$", ylabel=r"of the second, $\|w^2\|$")
    link.set(title="the link: what a kernel counts")
    link.set(xlabel="norm of a dual block over the largest", ylabel=r"its weight $\alpha_j$ over the largest")
    ball.legend(loc="upper right")
    return fig


def two_stages(switch=300.0):
    """OBSCURE's two stages, schematic: distance to the optimum against visits."""
    fig, ((ax,),) = panels(1, size=(8.0, 3.3))
    visits = np.geomspace(1.0, 1e5, 400)

    def online(t):
        return 30.0 / (1.0 + t / 5.0) + 0.3

    before, after = visits[visits <= switch], np.append(switch, visits[visits > switch])
    ax.plot(visits, 30.0 / (1.0 + visits / 300.0), ":", color=GREY, label="shrinking steps from zero")
    ax.plot(after, online(after), "--", color=GREY, label="fixed steps, gone on with")
    early, late = (method_style(method)["color"] for method in ("OBSCURE online", "OBSCURE"))
    ax.plot(before, online(before), color=early, label="online stage: fixed steps, quickly into the region")
    shrinking = online(switch) / (1.0 + (after - switch) / 900.0)
    ax.plot(after, shrinking, color=late, label="batch stage: shrinking steps from there, to the optimum")
    log_axis(ax.xaxis, ax.yaxis)
    ax.set(xlabel="visits", ylabel="distance to the optimum", title="schematic, no data", yticklabels=[])
    ax.legend(loc="lower left")
    return fig


def weights_and_errors(axes, names, weights, mistakes):
    """How much each kernel counts, and the share of mistakes so far in one pass."""
    shares, pass_ = axes
    style = method_style("OM2", marker="")
    shares.bar(names, weights / weights.sum(), color=style["color"], width=0.6)
    shares.set(ylim=(0, 1), ylabel="share of the kernel weights")
    seen = np.arange(1, len(mistakes) + 1)
    pass_.plot(seen, 100.0 * np.cumsum(mistakes) / seen, color=style["color"])
    pass_.set(xlim=(0, len(mistakes)), ylim=(0, 100), xlabel="samples seen", ylabel="online error so far [%]")


def error_and_updates(axes, curves, staged, n_kernels):
    """Runs of OBSCURE with so many kernels; updates of its online stage, these runs among all."""
    error, updates = axes
    for stage, line in (("online", "--"), ("batch", "-")):
        for k, (_, run) in enumerate(where(curves, n_kernels=n_kernels, stage=stage).groupby("seed")):
            label = f"{stage} stage, one line a run" if k == 0 else "_"
            error.plot(run["epoch"], 100 * run["test_error"], line, color=BLUE, linewidth=0.8, label=label)
    log_axis(error.xaxis)
    error.set(xlim=(1, curves["epoch"].max()), ylim=(0, 100), xlabel="epoch", ylabel="test error [%]")
    error.legend(loc="lower left", fontsize=7)
    now = where(staged, n_kernels=n_kernels)
    updates.plot(staged["n_kernels"], staged["updates"], ".", color="#cccccc")
    updates.plot(now["n_kernels"], now["updates"], "o", color=BLUE)
    log_axis(updates.xaxis, updates.yaxis, plain=True)
    updates.set(xlabel="number of kernels", ylabel="updates of the online stage")


def fits_by_alpha(task, seed):
    """UFO-MKL on a task at every alpha and C of the slider: weights of the kernels, and the test error."""
    rows = []
    for C, alpha in itertools.product(LOSS_WEIGHTS, ALPHAS):
        model = UFOMKL("precomputed", C=C, alpha=alpha, random_state=seed).fit(task.bank, task.labels)
        weights = dict(zip(task.bank.names, model.kernel_weights_, strict=True))
        error = 1 - model.score(task.cross, task.test_labels)
        rows.append({**weights, "C": C, "alpha": alpha, "test_error": error})
    return pd.DataFrame(rows)


def kept_and_error(axes, table, C, alpha):
    """UFO-MKL: weights of the kernels at this alpha and C, and test errors at every alpha, from a `table`
    with a column for each kernel besides C, alpha and test_error."""
    weights, error = axes
    subset, color = where(table, C=C), method_style("UFOMKL")["color"]
    now = where(subset, alpha=alpha).iloc[0]
    shares = now.drop(["C", "alpha", "test_error"]).astype(float)
    weights.bar(shares.index, shares / max(1.0e-12, shares.sum()), color=color, width=0.6)
    weights.set(ylim=(0, 1), ylabel="share of the kernel weights")
    weights.set_title(f"{np.count_nonzero(shares)} of {shares.size} kept")
    error.plot(subset["alpha"], 100 * subset["test_error"], color=color)
    error.plot(alpha, 100 * now["test_error"], "o", color=color, markersize=9)
    error.set_title(f"{now['test_error']:.1%}")
    log_axis(error.xaxis)
    log_axis(error.yaxis, plain=True)
    error.set(ylim=(1, 100), xlabel=r"$\alpha$", ylabel="test error [%]")
