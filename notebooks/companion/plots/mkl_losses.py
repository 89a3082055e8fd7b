"""Drawings of losses beyond the hinge: differences of errors, and reliability."""

from companion.plots.common import forest, intervals, panels
from companion.run.figures import BLACK, BLUE, GREEN, ORANGE, RED

LABELS = {
    "diabetes": "diabetes",
    "friedman1": "Friedman 1 (simulated)",
    "friedman2": "Friedman 2 (simulated)",
    "friedman3": "Friedman 3 (simulated)",
    "mfeat": "digits, five cues",
}
SETS = {"mfeat": "digits, six cues", "htad": "activities, two cues", "pendigits": "pen digits, four cues"}
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
        above.set(title=SETS[task], xlabel="largest probability", xlim=(0, 1), ylim=(0, 1.02))
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
