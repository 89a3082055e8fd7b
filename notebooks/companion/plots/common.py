"""What the chapters' drawings share: panels, curves with bands, logarithmic axes, legends, forests."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter
from scipy.stats import gmean

from companion.protocol import where
from companion.run.figures import BLACK, BLUE, GREY, RED, band, method_style, name_of
from companion.study import interval

#: Up to so many runs are drawn one by one, more as a band around their mean.
FEW = 6


def distinct(values):
    """The different values, in the order in which they come."""
    return list(dict.fromkeys(values))


def panels(columns, rows=1, *, size, **options):
    """A figure of panels and its axes, an array of shape (rows, columns)."""
    return plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **options)


def facets(table, by, *, size, columns=None, margin=(0.0, 0.0), **options):
    """A figure with a panel for each value of a column, and each panel with the value, its title, and rows.

    `size` is that of a panel; without `columns` they stand side by side.
    """
    values = distinct(table[by])
    n_columns = min(columns or len(values), len(values))
    n_rows = -(-len(values) // n_columns)
    whole = (size[0] * n_columns + margin[0], size[1] * n_rows + margin[1])
    fig, axes = panels(n_columns, n_rows, size=whole, **options)
    for ax in axes.flat[len(values) :]:
        ax.remove()
    parts = [(ax, value, where(table, **{by: value})) for ax, value in zip(axes.flat, values, strict=False)]
    for ax, value, _ in parts:
        ax.set_title(value)
    return fig, parts


def each_run(ax, x, samples, method=None, *, geometric=False, **style):
    """A `band` of many runs; of few each as a thin line, and their mean. `x`: one for all, or a row each."""
    samples = np.atleast_2d(np.asarray(samples, dtype=float))
    x = np.asarray(x, dtype=float)
    middle = x.mean(axis=0) if x.ndim == 2 else x
    if not 1 < len(samples) <= FEW:
        band(ax, middle, samples, method, geometric=geometric, **style)
        return
    mean = gmean(samples) if geometric else samples.mean(axis=0)
    (line,) = ax.plot(middle, mean, **{**(method_style(method) if method else {}), **style})
    thin = {"color": line.get_color(), "linewidth": 0.6, "alpha": 0.55}
    ax.plot(np.broadcast_to(x, samples.shape).T, samples.T, marker="." if len(middle) == 1 else "", **thin)
    ax.cuelearn_band = f"thin: {len(samples)} runs, thick: their {'geometric ' if geometric else ''}mean"


def curve(ax, table, x, y, method=None, *, runs="seed", factor=1.0, draw=band, **style):
    """Mean of `y` over `runs` with its band, against the `x` that all runs have; the drawn grid."""
    grid = factor * table.pivot(index=runs, columns=x, values=y).dropna(axis=1)
    draw(ax, grid.columns, grid.to_numpy(), method, **style)
    return grid


def curves(ax, table, x, y, methods=None, **style):
    """A `curve` for each method."""
    for method in distinct(table["method"]) if methods is None else methods:
        curve(ax, where(table, method=method), x, y, method, **style)


def paired(ax, table, x, y, baseline, methods=None, *, runs="seed", **style):
    """Each other method's `y` minus that of `baseline`, run by run: mean and band, around a line at 0."""
    ax.axhline(0.0, color="#555555", linewidth=0.8)
    base = where(table, method=baseline).set_index([runs, x])[y]
    table = table.join(base.rename("base"), on=[runs, x])
    table[y] = table[y] - table["base"]
    methods = distinct(table["method"]) if methods is None else methods
    curves(ax, table, x, y, [method for method in methods if method != baseline], runs=runs, **style)


#: A curve that ends left of this share of a panel's width ends early.
EARLY = 0.8
#: Largest quotient of the ends of an axis with further ticks.
NARROW = 4.0


def log_axis(*axes, plain=False):
    """Make axes logarithmic with readable ticks: powers of ten, or (`plain`) 1, 2, 5 as numbers, of a narrow
    range also 3, 4, 6, 8."""
    for axis in axes:
        (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
        if plain:
            low, high = getattr(axis.axes.dataLim, f"interval{axis.axis_name}")
            narrow = 0.0 < high < NARROW * low
            subs = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0) if narrow else (1.0, 2.0, 5.0)
            axis.set_major_locator(LogLocator(subs=subs))
            axis.set_major_formatter("{x:,g}")
        axis.set_minor_formatter(NullFormatter())


def mosaic(images, columns, margin=0):
    """One picture of many, (n, height, width, channels), row by row, white between them and where none is."""
    n_rows = max(1, -(-len(images) // columns))
    blank = n_rows * columns - len(images)
    edge = (margin, margin)
    cells = np.pad(images, ((0, blank), edge, edge, (0, 0)), constant_values=255)
    rows = [np.concatenate(list(row), axis=1) for row in np.split(cells, n_rows)]
    return np.concatenate(rows)


def legend(fig, axes, ncols, place="outside upper center", **options):
    """The legend of one panel, or of several, for all of the figure."""
    known = {}
    for ax in np.ravel(axes):
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    fig.legend(known.values(), known.keys(), loc=place, ncols=ncols, **options)


def along(ax, values, numbers, at, **style):
    """Numbers at all values of a slider as a thin curve, and a dot at its present value."""
    (line,) = ax.plot(values, numbers, **{"linewidth": 1.0, **style, "marker": ""})
    ax.plot(at, numbers[list(values).index(at)], "o", color=line.get_color(), markersize=7)


def end_labels(ax, curves, gap=0.065, at=1.07):
    """Name curves at their ends: (x, y, text, color) of each, moved apart by a share of the axis.

    `at` is where the names begin, as a share of the width; in the left half they end there.
    """
    is_right = at > 0.5
    curves = sorted(curves, key=lambda curve: curve[1])
    ends = ax.transScale.transform([curve[:2] for curve in curves])  # logarithms where the axis has these
    places = ax.transLimits.transform(ends)[:, 1]
    for _ in range(100):
        short = np.maximum(gap - np.diff(places), 0.0) / 2
        places[:-1] -= short
        places[1:] += short
    arrow = {"arrowstyle": "-", "relpos": (0.0 if is_right else 1.0, 0.5), "shrinkA": 0, "shrinkB": 1}
    for (x, y, text, color), place in zip(curves, places, strict=True):
        ax.annotate(
            text,
            (x, y),
            xytext=(at, place),
            textcoords="axes fraction",
            ha="left" if is_right else "right",
            va="center",
            fontsize=8,
            arrowprops=arrow | {"color": color},
            annotation_clip=False,
        )


def name_ends(ax, gap=0.065, more=()):
    """Name curves by their labels at their ends, lines across a panel at its right; `more`: name -> place.

    From a curve that ends early a grey line leads to its name. Of curves with one label the first is named.
    """
    right = ax.get_xlim()[1]
    ends = {name: (*place, name, BLACK) for name, place in dict(more).items()}
    for line in ax.get_lines():
        label = line.get_label()
        if not label.startswith("_") and len(line.get_xdata()):
            x, y = line.get_xydata()[-1]
            across = line.get_transform() == ax.get_yaxis_transform()
            ends.setdefault(label, (right if across else x, y, label, line.get_color()))
    named = []
    for x, y, name, color in ends.values():
        share, _ = ax.transLimits.transform(ax.transScale.transform((x, y)))  # of the width, left of the end
        named.append((x, y, name, color if share >= EARLY else "#BBBBBB"))
    if named:
        end_labels(ax, named, gap)


def show_picture(ax, picture, title="", **options):
    """A picture, or a matrix as one, without ticks and lines."""
    ax.imshow(picture, **options)
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.set_title(title, fontsize=9)


def matrix(ax, table, *, numbers="", rotation=0, fontsize=8, **options):
    """A table as an image, which is returned, with the names of rows and columns; `numbers`: their form."""
    image = ax.imshow(table, **options)
    ax.grid(visible=False)
    ax.set_xticks(range(table.shape[1]), table.columns, rotation=rotation, fontsize=fontsize)
    ax.set_yticks(range(table.shape[0]), table.index, fontsize=fontsize)
    for (i, j), value in np.ndenumerate(table.to_numpy() if numbers else np.empty((0, 0))):
        red, green, blue, _ = image.cmap(image.norm(value))
        is_dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
        text = {"ha": "center", "va": "center", "fontsize": fontsize}
        ax.text(j, i, numbers.format(value), color="white" if is_dark else "black", **text)
    return image


def intervals(samples):
    """The table of a `forest`: mean and 95% interval of samples, a dict or the columns of a table."""
    rows = {name: interval(values) for name, values in samples.items()}
    return pd.DataFrame.from_dict(rows, "index", columns=["number", "low", "high"])


def forest(ax, table, xlabel, *, digits=1, difference=True):
    """Numbers with 95% intervals, a row each: `table` has number, low and high, and a color or none.

    The number stands at the right. Of a `difference` filled: the interval lies on one side of 0.
    """
    rows = np.arange(len(table))[::-1]
    sided = (table["low"] > 0.0) | (table["high"] < 0.0)
    signs = np.where(table["number"] < 0.0, BLUE, RED)
    colors = table["color"] if "color" in table else np.where(sided, signs, GREY)
    for y, color, certain, row in zip(rows, colors, sided, table.itertuples(), strict=True):
        ax.plot([row.low, row.high], [y, y], color=color)
        ax.plot(
            row.number, y, "o", color=color, markerfacecolor="white" if difference and not certain else color
        )
        number = f"{row.number:+z.{digits}f}" if difference else f"{row.number:.{digits}f}"
        ax.text(1.02, y, number, transform=ax.get_yaxis_transform(), va="center", fontsize=8)
    ax.set_yticks(rows, table.index)
    ax.set(xlabel=xlabel, ylim=(-0.7, len(table) - 0.3))
    ax.cuelearn_band = "lines: 95% intervals of means"
    if difference:
        ax.axvline(0.0, color=BLACK, lw=0.8)
        ax.cuelearn_band += ", filled: 0 lies outside"


def minus_others(ax, errors, method, xlabel):
    """A `forest` of a method's errors minus every other one's, the least of these first, run by run."""
    others = errors.mean().drop(method).sort_values().index
    rows = {name_of(other): errors[method] - errors[other] for other in others}
    forest(ax, intervals(rows), xlabel)
