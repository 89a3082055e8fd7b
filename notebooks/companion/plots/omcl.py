"""Drawings in the text of the OMCL chapter: its two ideas, the parts of verdicts, and what sliders move."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from companion.plots.common import panels
from companion.run.claims import Verdict
from companion.run.figures import BLACK, BLUE, GREEN, GREY, ORANGE, RED, method_style, name_methods
from cuelearn.omcl import PassiveAggressive, Projectron, ProjectronPlusPlus


def idea_layers():
    """Scores that four cues' learners give to three classes, whom a second layer trusts, and its scores."""
    cues = ["outline", "edges", "texture", "colour"]
    scores = {"cow": [0.1, 0.3, 0.3, 0.9], "cup": [0.9, 0.8, 0.5, 0.2], "car": [0.4, 0.2, 0.6, 0.5]}
    scores = pd.DataFrame(scores, index=cues)
    trust = pd.Series([1.0, 0.9, 0.35, 0.15], cues)
    combined = scores.mul(trust, axis=0).sum()
    colours = [BLUE, ORANGE, GREEN]
    fig, (axes,) = panels(3, size=(8, 2.7))
    scores.plot.barh(ax=axes[0], color=colours, title="first layer: one learner a cue", xlabel="score")
    trust.plot.barh(ax=axes[1], color=GREY, title="second layer: whom to trust", xlabel="weight")
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


def verdict_parts(verdicts):
    """Number and 95% interval of each part of verdicts, in percent; right of 0 the claim is wrong."""
    colours = {"holds": GREEN, "holds, smaller": GREEN, "fails": RED}
    fig, (axes,) = panels(len(verdicts), size=(8.4, 4))
    for ax, verdict in zip(axes, verdicts, strict=True):
        names, parts = zip(*verdict.parts, strict=True)
        parts = pd.DataFrame(parts, columns=Verdict._fields)
        color = [colours.get(name, GREY) for name in parts["verdict"]]
        low, number, high = 100 * parts[["low", "number", "high"]].to_numpy(float).T
        ax.hlines(names, low, high, color=color)
        ax.scatter(number, names, color=color)
        ax.axvline(0.0, color=BLACK, lw=0.8)
        ax.invert_yaxis()
        ax.set(title=verdict.claim, xlabel="error minus the other's [points]")
    plt.close(fig)
    return fig


def bounded_memory(K, y):
    """For a slider of eta: how many samples the Projectrons keep in one pass, and their mistakes."""
    seen = np.arange(1, y.size + 1)

    def curves(axes, eta):
        for learner in (Projectron, ProjectronPlusPlus):
            model = learner("precomputed", eta=eta).fit(K, y)
            style = method_style(learner.__name__, marker="")
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
    name_methods(cues)
    style = method_style("OMCL-BM", marker="")

    def curves(axes, C):
        top = PassiveAggressive(C=C, average=False).fit(S, y)
        for cue, learner in zip(cues, first.learners_, strict=True):
            mistakes = 100 * np.cumsum(learner.online_errors_) / seen
            axes[0].plot(seen, mistakes, **method_style(cue, markevery=60))
        axes[0].plot(seen, 100 * np.cumsum(top.online_errors_) / seen, **style)
        axes[0].set(xlabel="samples seen", ylabel="mistakes so far [%]", ylim=(0, 100))
        axes[0].legend(ncols=2, loc="upper right")
        n_classes = len(top.coef_)
        scaled = top.coef_ / np.abs(top.coef_).max(axis=1, keepdims=True)
        own = np.einsum("mjm->j", scaled.reshape(n_classes, -1, n_classes)) / n_classes
        axes[1].plot(own, list(cues), "o", color=style["color"], markersize=8)
        axes[1].set(xlabel="mean weight of a cue's own score / largest", xlim=(0, 1))

    return curves
