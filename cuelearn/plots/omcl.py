"""Drawings of the OMCL chapter. Every function takes the numbers of an experiment (or images) and returns a figure."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm

from cuelearn.book.figures import GREY, RED, SKY, band, interval, method_style
from cuelearn.experiments.omcl import gather

ROOM_COLOURS = {"OO": "#56B4E9", "CR": "#BBBBBB", "TO": "#009E73", "KT": "#E69F00", "PA": "#CC79A7"}
# lines of the single cues: muted colours, thin and unmarked, so that the methods stand out
CUE_LINES = (
    ("#555555", "-"),
    ("#A6761D", "--"),
    ("#7B9E6B", "-."),
    ("#8C86C7", ":"),
    ("#B5838D", "-"),
    ("#999933", "--"),
)


def cue_style(cue, cues):
    """Line style of a single cue, the same in every figure of a data set."""
    color, line = CUE_LINES[list(cues).index(cue) % len(CUE_LINES)]
    return {"label": cue, "color": color, "linestyle": line, "linewidth": 1.1}


def contact_sheet(images, rows, columns, cells, size=0.9):
    """Images in a grid with labels at its left and top.

    Parameters
    ----------
    images : sequence of ndarray
    rows, columns : list of str
        Labels.
    cells : ndarray of int, shape (len(rows), len(columns))
        Number of the image in each cell; -1 leaves it empty.
    size : float
        Height of a cell in inches.
    """
    height, width = images[int(cells.max())].shape[:2]
    fig, axes = plt.subplots(
        len(rows),
        len(columns),
        figsize=(size * width / height * len(columns) + 0.5, size * len(rows) + 0.3),
        layout="constrained",
        squeeze=False,
    )
    for r, label in enumerate(rows):
        for c, head in enumerate(columns):
            ax = axes[r, c]
            if cells[r, c] >= 0:
                ax.imshow(images[int(cells[r, c])])
            ax.set(xticks=(), yticks=())
            ax.grid(False)
            ax.spines[:].set_visible(False)
            if r == 0:
                ax.set_title(head, fontsize=8)
            if c == 0:
                ax.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
    fig.get_layout_engine().set(w_pad=0.01, h_pad=0.01, wspace=0.0, hspace=0.0)
    return fig


def floor_map(floors, data, sequences=(0, 1), scan_at=()):
    """The robot's floor in both sessions, with its path coloured by room and some laser scans.

    Parameters
    ----------
    floors : dict of str to floor
        Title -> what `robot_floor` returns.
    data : ImageData
    sequences : sequence of int
        The path drawn in each panel.
    scan_at : sequence of int
        Frames whose scan is drawn, in the first panel.
    """
    fig, axes = plt.subplots(
        1, len(floors), figsize=(5.4 * len(floors), 3.6), layout="constrained", squeeze=False
    )
    for ax, (title, floor), sequence in zip(axes[0], floors.items(), sequences, strict=True):
        draw_floor(ax, floor)
        rows = np.flatnonzero(data.frames["sequence"] == sequence)
        colors = [ROOM_COLOURS.get(data.target_names[c], GREY) for c in data.y[rows]]
        ax.scatter(
            data.frames["x"][rows],
            data.frames["y"][rows],
            s=7,
            c=colors,
            edgecolors="black",
            linewidths=0.2,
            zorder=3,
        )
        ax.set(title=title, xlabel="x [m]", ylabel="y [m]", aspect="equal")
        ax.grid(False)
    for i in scan_at:
        angle = data.frames["heading"][i] + data.laser_angles
        x, y = data.frames["x"][i], data.frames["y"][i]
        axes[0][0].fill(
            np.r_[x, x + data.laser[i] * np.cos(angle)],
            np.r_[y, y + data.laser[i] * np.sin(angle)],
            color=RED,
            alpha=0.15,
            lw=0.5,
        )
    return fig


def draw_floor(ax, floor):
    """Walls, furniture and room names of a floor on an axis."""
    for x0, y0, x1, y1 in floor.walls:
        ax.fill([x0, x1, x1, x0], [y0, y0, y1, y1], color="#333333", lw=0)
    for outline in floor.outlines:
        ax.fill(*np.asarray(outline).T, color="#C8A97E", ec="#7A5C36", lw=0.5)
    for name, (x0, y0, x1, y1) in zip(floor.labels, floor.rooms, strict=True):
        ax.text(
            (x0 + x1) / 2,
            (y0 + y1) / 2,
            name,
            ha="center",
            va="center",
            fontsize=13,
            color=ROOM_COLOURS.get(name, GREY),
            weight="bold",
            alpha=0.8,
        )


def pivot(table, method, value):
    """Runs by samples seen: rows are permutations."""
    return table[table["method"] == method].pivot(index="permutation", columns="n_seen", values=value)


def learning_curves(table, cues, methods=("OMCL-BM", "OMCL-PERC", "Flat", "Flat maps", "Vote")):
    """Online error and test error against samples seen (thesis figures 3.1 and 3.4).

    Parameters
    ----------
    table : DataFrame
        Columns permutation, method, n_seen, online_error, test_error.
    cues : list of str
    """
    fig, axes = plt.subplots(1, 2, figsize=(11, 3.7), layout="constrained")
    panels = (
        ("online_error", "online error [%]", "mistakes so far while learning"),
        ("test_error", "test error [%]", "test samples, averaged predictors"),
    )
    for ax, (value, label, head) in zip(axes, panels, strict=True):
        for cue in cues:
            grid = pivot(table, f"cue: {cue}", value)
            band(ax, grid.columns, 100 * grid.to_numpy(), alpha=0.06, marker="", **cue_style(cue, cues))
        for method in methods:
            grid = pivot(table, method, value)
            band(
                ax,
                grid.columns,
                100 * grid.to_numpy(),
                method,
                alpha=0.1,
                markevery=max(1, grid.shape[1] // 7),
            )
        top = max(
            line.get_ydata()[len(line.get_ydata()) // 8 :].max() for line in ax.lines
        )  # the first steps may leave the picture
        ax.set(xlabel="training samples seen", ylabel=label, title=head, ylim=(0, min(100, 1.1 * top)))
    fig.legend(*axes[1].get_legend_handles_labels(), loc="outside right center")
    return fig


def support_sizes(table, methods=("OMCL-PERC", "OMCL-BM", "OMCL-BM sparser", "Flat")):
    """Size of the support set (sum over the cues) against samples seen (thesis figures 3.2 and 3.5)."""
    fig, ax = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
    for method in methods:
        grid = pivot(table, method, "support")
        band(ax, grid.columns, grid.to_numpy(), method, markevery=max(1, grid.shape[1] // 7))
    ax.set(xlabel="training samples seen", ylabel="support vectors, all cues", ylim=(0, None))
    ax.legend()
    return fig


def normalised(weights):
    """Weights of each class's row divided by the largest absolute one; mean over runs, shape (n_classes, n_cues * n_classes)."""
    weights = np.asarray(weights)
    return (weights / np.abs(weights).max(axis=2, keepdims=True)).mean(axis=0)


def second_layer(weights, cues, classes):
    """Weights of the second layer as an image, a block of columns for each cue (thesis figures 3.3 and 3.6).

    Parameters
    ----------
    weights : ndarray, shape (n_runs, n_classes, n_cues * n_classes)
    cues, classes : list of str
    """
    picture, n = normalised(weights), len(classes)
    limit = np.abs(picture).max()
    fig, ax = plt.subplots(figsize=(2.2 + 0.28 * picture.shape[1], 1.5 + 0.3 * n), layout="constrained")
    image = ax.imshow(
        picture, cmap="RdBu_r", norm=TwoSlopeNorm(0.0, -limit, limit), interpolation="nearest", aspect="auto"
    )
    for j, cue in enumerate(cues):
        ax.text((j + 0.5) * n - 0.5, -0.8, cue, ha="center", va="bottom", weight="bold")
        if j:
            ax.axvline(j * n - 0.5, color="black", lw=1.2)
    ax.set(
        xticks=range(picture.shape[1]),
        yticks=range(n),
        yticklabels=classes,
        xlabel="score of the cue for class",
        ylabel="combined for class",
    )
    ax.set_xticklabels(list(classes) * len(cues), rotation=90, fontsize=7)
    ax.grid(False)
    fig.colorbar(image, ax=ax, label="weight / largest of its row", fraction=0.03, pad=0.02)
    return fig


def regret(runs, cues):
    """Cumulative loss of the second layer, of every cue, and the bound of theorem 3.1.

    Parameters
    ----------
    runs : dict of str to dict
        Title -> cumulative losses of one run, as `experiments.omcl.regret` gives them.
    cues : dict of str to list of str
    """
    rows = -(-len(runs) // 2)
    fig, axes = plt.subplots(rows, 2, figsize=(10, 3.6 * rows), layout="constrained", squeeze=False)
    for ax, (title, run) in zip(axes.ravel(), runs.items(), strict=False):
        x = run["n_seen"]
        for j, cue in enumerate(cues[title]):
            ax.plot(x, run[f"cue {j}"], **cue_style(cue, cues[title]))
        ax.plot(x, run["PA-I"], **method_style("OMCL-BM", marker="", label="OMCL-BM (PA-I on top)"))
        ax.plot(x, run["gradient descent"], **method_style("gradient descent"))
        ax.plot(x, run["bound"], **method_style("bound"))
        ax.set(
            title=title,
            xlabel="training samples seen",
            ylabel="cumulative loss",
            ylim=(0, 1.45 * max(line.get_ydata()[-1] for line in ax.lines)),
        )
        ax.legend(fontsize=7, ncols=2, loc="upper left")
    return fig


def last_against_average(table, names):
    """Test error of the last hypothesis and of the averaged one, for every run (thesis 3.3).

    Parameters
    ----------
    table : DataFrame
        Columns data, method, permutation, average, last.
    names : list of str
        Data sets, in order.
    """
    fig, axes = plt.subplots(
        1, len(names), figsize=(2.9 * len(names), 3.1), layout="constrained", squeeze=False
    )
    for ax, name in zip(axes[0], names, strict=True):
        mine = table[table["data"] == name]
        top = 105 * max(mine["last"].max(), mine["average"].max())
        ax.plot([0, top], [0, top], color="black", lw=0.8)
        for method, group in mine.groupby("method", sort=False):
            ax.plot(
                100 * group["last"],
                100 * group["average"],
                **method_style(method, linestyle="", markersize=5, alpha=0.8),
            )
        ax.set(title=name, xlabel="last hypothesis [%]", xlim=(0, top), ylim=(0, top), aspect="equal")
    axes[0][0].set_ylabel("test error, averaged [%]")
    axes[0][0].legend(fontsize=7)
    return fig


def why_several_cues(pairs, distances):
    """Pairs of objects, and how far apart each cue sees them (thesis figure 2.1).

    Parameters
    ----------
    pairs : list of (str, list of ndarray)
        Title and its two images.
    distances : list of dict of str to float
        For each pair, chi-squared distance by cue, in units of its mean over all images.
    """
    fig = plt.figure(figsize=(4.3 * len(pairs), 3.7), layout="constrained")
    for part, (title, images), apart in zip(fig.subfigures(1, len(pairs)), pairs, distances, strict=True):
        axes = part.subplot_mosaic([["a", "b"], ["bars", "bars"]], height_ratios=(1.5, 1))
        part.suptitle(title, fontsize=10)
        for name, image in zip("ab", images, strict=True):
            axes[name].imshow(image)
            axes[name].set(xticks=(), yticks=())
            axes[name].grid(False)
        ax = axes["bars"]
        ax.barh(list(apart), list(apart.values()), color=[SKY] * len(apart))
        ax.axvline(1.0, color="black", lw=0.8, ls=":")
        ax.invert_yaxis()
        ax.set(
            xlabel="distance of the two (1: mean over all pairs of images)",
            xlim=(0, max(1.6, 1.05 * max(apart.values()))),
        )
    return fig


def eta_curves(table):
    """Test error and support size of OMCL-BM against eta (the chapter's slider)."""
    fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for ax, value, label, factor in (
        (axes[0], "test_error", "test error [%]", 100.0),
        (axes[1], "support", "support vectors, all cues", 1.0),
    ):
        grid = table.pivot(index="permutation", columns="eta", values=value)
        band(ax, grid.columns, factor * grid.to_numpy(), "OMCL-BM")
        ax.set(xlabel=r"$\eta$", ylabel=label, ylim=(0, None))
    return fig


def error_table(results, classes, cues, methods):
    """Test error in percent by class and overall, and Vote's ties in percent (thesis tables 3.1 and 3.2).

    Parameters
    ----------
    results : dict
    classes, cues, methods : list of str

    Returns
    -------
    DataFrame
        Indexed by method; columns class names, ALL, +- (half the 95% interval of ALL over permutations), ties.
    """
    finals = gather(results, "finals")
    rows = {}
    for method in [f"cue: {cue}" for cue in cues] + list(methods):
        grid = 100 * finals[finals["method"] == method].pivot(
            index="permutation", columns="class", values="error"
        )
        drawn = interval(grid.mean(axis=1))
        rows[method] = dict(zip(classes, grid.mean(), strict=True)) | {
            "ALL": drawn.mean,
            "+-": drawn.high - drawn.mean,
        }
    ties = 100 * np.array([result["ties"] for result in results.values()])
    rows["Vote, ties"] = dict(zip(classes, np.nanmean(ties, axis=0), strict=True)) | {
        "ALL": float(np.nanmean(ties)),
        "+-": np.nan,
    }
    table = pd.DataFrame(rows).T
    table.index.name = "method"
    return table


# the thesis' own numbers, percent, in its order of classes and then overall
PAPER_TABLES = {
    "thesis-tab-3.1": (
        ("OO", "CR", "TO", "KT", "PA", "ALL"),
        {
            "cue: colour": (28.4, 9.5, 8.1, 9.9, 31.4, 17.4),
            "cue: LxLy": (14.2, 4.1, 15.4, 15.4, 11.1, 12.0),
            "cue: bow": (21.5, 6.9, 17.5, 11.4, 8.4, 13.1),
            "cue: laser": (7.6, 3.7, 8.5, 10.7, 12.9, 8.7),
            "OMCL-BM": (7.6, 2.5, 1.9, 6.7, 13.3, 6.4),
            "Flat": (5.7, 2.7, 7.5, 8.5, 11.8, 7.2),
            "Vote": (11.7, 3.3, 5.3, 5.2, 9.1, 6.9),
            "Vote, ties": (6, 2, 3, 3, 7, 4),
        },
    ),
    "thesis-tab-3.2": (
        ("apple", "car", "cow", "cup", "dog", "horse", "pear", "tomato", "ALL"),
        {
            "cue: LxLy": (24.0, 3.41, 53.4, 29.4, 29.6, 49.1, 7.11, 9.4, 25.6),
            "cue: DirC": (22.4, 21.9, 57.0, 40.4, 63.9, 56.4, 31.0, 3.6, 37.1),
            "cue: colour": (37.8, 20.1, 13.7, 19.2, 46.5, 63.5, 32.6, 0.6, 29.2),
            "cue: shape": (30.9, 1.5, 28.5, 2.3, 32.2, 28.1, 3.6, 35.9, 20.3),
            "OMCL-BM": (4.1, 5.2, 25.3, 1.7, 33.1, 39.5, 6.6, 6.5, 15.2),
            "Flat": (29.3, 1.5, 28.2, 2.0, 32.1, 28.0, 3.3, 35.1, 20.0),
            "Vote": (24.2, 1.3, 30.1, 11.3, 34.0, 41.2, 3.6, 6.1, 19.0),
            "Vote, ties": (19, 1, 15, 9, 18, 20, 3, 5, 11),
        },
    ),
}


def paper_table(id):
    """The thesis' table 3.1 or 3.2 as a DataFrame indexed by method."""
    columns, rows = PAPER_TABLES[id]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(columns))
    table.index.name = "method"
    return table


def weight_table(weights, cues, classes):
    """The drawn numbers of `second_layer` in long form."""
    picture = normalised(weights)
    return pd.DataFrame(
        [
            {"combined for": row, "cue": cue, "score for": column, "weight": picture[i, j * len(classes) + k]}
            for i, row in enumerate(classes)
            for j, cue in enumerate(cues)
            for k, column in enumerate(classes)
        ]
    )


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

    Parameters
    ----------
    batch : DataFrame
        From `experiments.omcl.integration_run`, several permutations.
    online : dict of str to (str, array)
        Level -> name of the online method and its errors.
    """
    rows = []
    for level, (form, learning) in INTEGRATION_FORMS.items():
        mine = batch[batch["level"] == level]
        name, errors = online[level]
        row = {"level": level, "prediction": form, "what is learnt": learning}
        for kind, method, values in (
            ("online", name, errors),
            ("batch", mine["method"].iloc[0], mine["test_error"]),
        ):
            drawn = interval(100 * np.asarray(values))
            row |= {
                f"{kind} method": method,
                f"{kind} error [%]": drawn.mean,
                f"{kind} +-": drawn.high - drawn.mean,
            }
        rows.append(row)
    return pd.DataFrame(rows).set_index("level")
