"""Ideas of the MKL chapter as pictures, from a few numbers; and what its sliders draw."""

import numpy as np
import pandas as pd

from companion.plots.mkl import beside
from companion.protocol import grid_points, where
from companion.run.figures import BLUE, GREEN, GREY, RED, method_style
from cuelearn.mkl import UFOMKL

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
    ball.set(aspect="equal", title=r"norm 1; the dots agree best with the arrow $\bar\theta$")
    ball.set(xlabel=r"norm of the first block, $\|w^1\|$", ylabel=r"of the second, $\|w^2\|$")
    link.set(title="the link: what a kernel counts")
    link.set(xlabel="norm of a dual block over the largest", ylabel=r"its weight $d_j$ over the largest")
    ball.legend(loc="upper right")
    return fig


def two_stages(switch=300.0, early=12.0):
    """OBSCURE's two stages, schematic: distance to the optimum against visits; the first cut off as well."""
    fig, (ax,) = beside(1)
    visits = np.geomspace(1.0, 1e5, 400)
    fixed = 30.0 / (1.0 + visits / 5.0) + 0.3
    shrinking = fixed / (1.0 + np.maximum(0.0, visits - switch) / 900.0)
    online = method_style("OBSCURE online", marker="", label="online stage: fixed steps, into the region")
    batch = method_style("OBSCURE", marker="", label="batch stage: shrinking steps, to the optimum")
    ax.plot(visits, 30.0 / (1.0 + visits / 300.0), ":", color=GREY, label="shrinking steps from zero")
    ax.plot(visits, fixed, **online)
    ax.plot(visits[visits > switch], shrinking[visits > switch], **batch)
    thrown = 30.0 / (1.0 + (visits - early) / 900.0)
    cut = method_style("OBSCURE", marker="", linestyle=":", label="batch stage after an online stage cut off")
    ax.plot(visits[visits > early], thrown[visits > early], **cut)
    ax.set(xscale="log", yscale="log", title="schematic, no data")
    ax.set(xlabel="visits", ylabel="distance to the optimum", yticklabels=[])
    ax.legend(loc="lower left")
    return fig


def _shares(ax, names, weights, method):
    """How much each kernel counts."""
    shares = weights / max(1.0e-12, weights.sum())
    ax.bar(names, shares, color=method_style(method)["color"], width=0.6)
    ax.set(ylim=(0, 1), ylabel="share of the kernel weights")


def weights_and_errors(axes, names, weights, mistakes):
    """How much each kernel counts, and the share of mistakes so far in one pass."""
    shares, error = axes
    _shares(shares, names, weights, "OM2")
    seen = np.arange(1, len(mistakes) + 1)
    error.plot(seen, 100.0 * np.cumsum(mistakes) / seen, color=method_style("OM2")["color"])
    error.set(xlim=(0, len(mistakes)), ylim=(0, 100), xlabel="samples seen", ylabel="online error so far [%]")


def error_and_updates(axes, curves, staged, n_kernels):
    """OBSCURE's mean error with so many kernels; updates of its online stage, these runs among all."""
    error, updates = axes
    for stage, line in (("online", "--"), ("batch", "-")):
        for seed, run in where(curves, n_kernels=n_kernels, stage=stage).groupby("seed"):
            label = f"{stage} stage" if seed == curves["seed"].min() else None
            error.plot(run["epoch"], 100 * run["test_error"], line, color=BLUE, linewidth=0.8, label=label)
    error.set(xscale="log", xlim=(1, curves["epoch"].max()), ylim=(0, 100))
    error.set(xlabel="epoch", ylabel="test error [%]")
    error.legend(loc="lower left", fontsize=7)
    now = where(staged, n_kernels=n_kernels)
    updates.plot(staged["n_kernels"], staged["updates"], ".", color="#cccccc")
    updates.plot(now["n_kernels"], now["updates"], "o", color=BLUE)
    updates.set(xscale="log", yscale="log", xlabel="number of kernels", ylabel="updates of the online stage")


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
    color = method_style("UFOMKL")["color"]
    error.plot(subset["alpha"], 100 * subset["test_error"], color=color)
    error.plot(alpha, 100 * now["test_error"], "o", color=color, markersize=9)
    error.set(xscale="log", yscale="log", ylim=(1, 100), xlabel=r"$\alpha$", ylabel="test error [%]")
    error.set_title(f"{now['test_error']:.1%} errors")
