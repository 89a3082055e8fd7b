"""Drawings of the MKTL chapter: every number at its place, axes and methods named, no words upon others."""

import itertools
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color
from matplotlib.patches import Rectangle
from numpy.testing import assert_allclose, assert_array_equal
from pages import apart, check_curve, check_curves, drawn, labels_of, legend, named, shuffled, thin_lines

from companion.mktl.compare import BINARY, MULTICLASS
from companion.mktl.tasks import TASKS
from companion.plots import mktl as draw
from companion.plots.common import where
from companion.run.figures import BLUE, GREY, RED, interval, method_style

pytestmark = pytest.mark.usefixtures("house_style")


def made(columns, points, low=0.4, high=0.9):
    table = pd.DataFrame(list(points), columns=columns)
    return table.assign(accuracy=np.random.default_rng(0).uniform(low, high, len(table)))


# ------------------------------------------------------------------ figure 6.1


GROUPS = [
    ("boosted trees on box, edges", tuple("BCDFJN")),
    ("SVM on box, edges", tuple("OUWY")),
    ("SVM on edges", tuple("AKLSTXZ")),
]
LETTERS = [c for _, classes in GROUPS for c in classes]
ANIMALS = ["antelope", "grizzly bear", "german shepherd", "spider monkey", "rhinoceros", "ox", "ass", "cat"]
MANY = [f"{name} {k}" for k in range(5) for name in ANIMALS]


def parts(names, seed=0, scale=0.5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=len(names)), scale * rng.normal(size=len(names))


def bars(fig, panel):
    """Row's name -> length of its bar in a panel."""
    ax = fig.axes[panel]
    labels = [text.get_text() for text in fig.axes[0].get_yticklabels()]
    patches = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert all(same_color(p.get_facecolor(), BLUE if p.get_width() >= 0 else RED) for p in patches)
    return {labels[round(p.get_y() + p.get_height() / 2)]: p.get_width() for p in patches}


def test_schematic_shows_every_part_of_the_sum():
    scores, weights = parts(LETTERS)
    fig = drawn(draw.schematic("E", LETTERS, scores, weights, 0.62, groups=GROUPS, sample_class="G"))
    apart(fig)
    rows = [text.get_text() for text in fig.axes[0].get_yticklabels()]
    expected = ["kernel"]
    for name, classes in GROUPS:
        expected += [name, *classes]
    assert rows == [*expected, "sum"]
    for panel, values in enumerate((scores, weights, scores * weights)):
        found = bars(fig, panel)
        assert_allclose([found[name] for name in LETTERS], values)
        texts = {text.get_text() for text in fig.axes[panel].texts}
        assert texts >= {f"{v:+.2f}".replace("-", "−") for v in values if abs(v) >= 0.005}
    assert found["kernel"] == 0.62 and found["sum"] == pytest.approx(0.62 + scores @ weights)
    assert "E" in fig.get_suptitle() and "class G" in fig.get_suptitle()


def test_schematic_of_many_priors_says_how_many_it_leaves_out():
    scores, weights = parts(MANY, scale=0.4)
    options = {"groups": [("SVM on rgsift, surf", MANY)], "sample_class": "seal"}
    fig = drawn(draw.schematic("humpback whale", MANY, scores, weights, -0.31, **options))
    apart(fig)
    found = bars(fig, 2)
    largest = np.argsort(-np.abs(scores * weights))[:12]
    assert list(found) == ["kernel", *(MANY[k] for k in sorted(largest)), "28 others", "sum"]
    widths = np.array([*found.values()])
    assert_allclose(widths[:-1].sum(), widths[-1])
    assert_allclose(widths[-1], -0.31 + scores @ weights)


def test_schematic_without_any_weight():
    fig = drawn(draw.schematic("E", list("AB"), [1.0, -1.0], [0.0, 0.0], 0.5))
    assert_allclose([*bars(fig, 2).values()], [0.5, 0.0, 0.0, 0.5])
    assert not any("0.00" in text.get_text() for ax in fig.axes for text in ax.texts)


def test_the_idea_is_what_the_norm_makes_of_it():
    """A kernel of the cue and one for each score; for each p shares that sum to 1, at p near 1 of few."""
    upper, lower = np.array_split(drawn(draw.idea()).axes, 2)
    assert [ax.get_title()[:7] for ax in upper] == ["cue: sh", "prior 1", "prior 2", "prior 3"]
    shares = np.array([[patch.get_height() for patch in ax.patches] for ax in lower])
    assert_allclose(shares.sum(axis=0), 1.0)
    assert (np.diff(shares[1]) > 0).all() and shares[2:, -1].sum() < 0.01


# ------------------------------------------------------------------ figure 6.2


POSITIVE, SEEDS = (1, 3, 10, 30), (0, 1, 2)


@pytest.fixture
def binary():
    return made(
        ["target", "seed", "n_positive", "method"], itertools.product("ABCDEFG", SEEDS, POSITIVE, BINARY)
    )


PANELS = {
    "as in the thesis": tuple(m for m in BINARY if m not in draw.REWEIGHTED),
    "both classes weigh the same": ("MultiKT", "MKTL weighted", *draw.REWEIGHTED),
}
#: What the differences below a panel are to.
BASES = ("PriorFeatures", "MKTL weighted")


def check_binary_panel(ax, table, methods):
    """A curve for each of the methods, and for no other; their names are off the curves."""
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "3", "10", "30"]
    assert sorted(line.get_label() for line in ax.lines) == labels_of(methods)
    assert sorted(text.get_text() for text in ax.get_legend().get_texts()) == labels_of(methods)
    each = table.groupby(["target", "n_positive", "method"], as_index=False)["accuracy"].mean()
    check_curves(ax, each, "n_positive", "accuracy", methods, runs="target")  # not over seeds
    assert "7 targets, 3 draws" in ax.cuelearn_band


def check_differences(row, table, methods, base):
    """Below: how far each other method is from `base`, target by target, with the mean and its interval."""
    each = table.groupby(["method", "target", "n_positive"])["accuracy"].mean().unstack()
    others = [m for m in methods if m != base]
    assert sorted(ax.get_title() for ax in row) == labels_of(others)
    for method in others:
        (ax,) = [ax for ax in row if ax.get_title() == method_style(method)["label"]]
        grid = 100.0 * (each.loc[method] - each.loc[base])
        check_curve(ax, named(ax, method), grid)
        assert_allclose(thin_lines(ax, GREY), grid)


def panels_of(fig, n):
    """The upper panels, then a list for each row of differences."""
    upper, rest = fig.axes[:n], fig.axes[n:]
    rows = [[ax for ax in rest if ax.figure is part] for part in dict.fromkeys(ax.figure for ax in rest)]
    return upper, rows


def test_binary_mean(binary):
    """The thesis's methods; beside them, on the same axes, all that weigh both classes equally."""
    fig = drawn(draw.binary_mean(shuffled(binary)))
    apart(fig)
    upper, rows = panels_of(fig, 2)
    assert [ax.get_title() for ax in upper] == list(PANELS)
    assert upper[0].get_ylim() == upper[1].get_ylim()
    for ax, row, methods, base in zip(upper, rows, PANELS.values(), BASES, strict=True):
        check_binary_panel(ax, binary, methods)
        check_differences(row, binary, methods, base)
        assert row[0].figure.get_suptitle() == f"minus {method_style(base)['label']}, target by target"
    (ends,) = {ax.get_ylim() for row in rows for ax in row}
    drawn_from = [ax.dataLim.intervaly for row in rows for ax in row]  # single targets are drawn whole
    assert ends[0] < np.min(drawn_from) and np.max(drawn_from) < ends[1]


def test_binary_mean_of_the_thesis_methods_has_one_column(binary):
    table = binary[~binary["method"].isin(draw.REWEIGHTED)]
    upper, rows = panels_of(drawn(draw.binary_mean(table)), 1)
    assert upper[0].get_title() == ""
    check_binary_panel(upper[0], table, PANELS["as in the thesis"])
    check_differences(rows[0], table, PANELS["as in the thesis"], "PriorFeatures")


def test_binary_classes(binary):
    fig = drawn(draw.binary_classes(binary))
    apart(fig)
    shown = [ax for ax in fig.axes if ax.get_visible()]
    assert [ax.get_title() for ax in shown] == list("ABCDEFG")
    assert sorted(legend(fig)) == labels_of(draw.BY_CLASS)
    assert len({ax.get_ylim() for ax in shown}) == len({ax.get_xlim() for ax in shown}) == 1
    for ax, target in zip(shown, "ABCDEFG", strict=True):
        assert len(ax.lines) == len(draw.BY_CLASS)
        check_curves(ax, binary[binary["target"] == target], "n_positive", "accuracy", draw.BY_CLASS)
        assert ax.cuelearn_band.startswith("means of 3 draws; in the corner: weighted MKTL minus")
        runs = 100.0 * binary[binary["target"] == target].groupby(["method", "seed"])["accuracy"].mean()
        ends = interval((runs["MKTL weighted"] - runs["PriorFeatures"]).to_numpy())
        (text,) = [text.get_text() for text in ax.texts]
        found = [float(number) for number in re.findall(r"-?\d+", text.replace("−", "-"))]
        assert_allclose(found, ends, atol=0.51)
    labelled = [ax for ax in shown if any(t.get_visible() and t.get_text() for t in ax.get_xticklabels())]
    assert [ax.get_title() for ax in labelled] == list("EFG")  # the last of every column


# ------------------------------------------------------------------ figure 6.3


@pytest.fixture
def multi():
    tasks = (("objects", (14, 23)), ("animals", (40,)))
    places = itertools.product(POSITIVE, SEEDS, MULTICLASS)
    points = [
        (t, n, k, s, m) for n, s, m in places for t, ks in tasks for k in ks if m != "NoTransfer" or k != 14
    ]
    return made(["name", "n_per_class", "n_priors", "seed", "method"], points)


def test_multiclass(multi):
    fig = drawn(draw.multiclass(shuffled(multi)))
    panels = {ax.get_title(): ax for ax in fig.axes}
    fewer, more = (f"emoji, objects: {n} priors" for n in (14, 23))
    assert set(panels) == {fewer, more, "emoji, animals: 40 priors"}
    assert sorted(legend(fig)) == labels_of(MULTICLASS) and legend(fig)[0] == "MKTL"
    assert panels[fewer].get_ylim() == panels[more].get_ylim()
    for name, n_priors in (("objects", 14), ("objects", 23), ("animals", 40)):
        ax = panels[f"{draw.TITLES[name]}: {n_priors} priors"]
        assert len(ax.lines) == len(MULTICLASS) + (n_priors == 23)
        task = multi[multi["name"] == name]
        for of, methods in ((n_priors, [m for m in MULTICLASS if m != "NoTransfer"]), (23, ["NoTransfer"])):
            mine = task[task["n_priors"] == (of if name == "objects" else n_priors)]
            check_curves(ax, mine, "n_per_class", "accuracy", methods)
    # MKTL with fewer priors again
    ax = panels[more]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["MKTL, 14 priors"]
    assert_allclose(ax.lines[-1].get_ydata(), named(panels[fewer], "MKTL").get_ydata())
    assert all(panel.get_legend() is None for title, panel in panels.items() if panel is not ax)


def test_every_task_has_a_title():
    assert set(TASKS) <= set(draw.TITLES) and len(set(draw.TITLES.values())) == len(draw.TITLES)


def test_along_priors(multi):
    table = shuffled(where(multi, name="objects", n_per_class=10)).query("method != 'NoTransfer'")
    ax = drawn(draw.along_priors(table)).axes[0]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["14", "23"]
    check_curves(ax, table, "n_priors", "accuracy", [m for m in MULTICLASS if m != "NoTransfer"])


def test_slider_of_samples_and_priors(multi):
    """Means of each method at their places; No-Transfer knows of no number of priors."""
    fig, axes = plt.subplots(1, 2)
    draw.samples_and_priors(axes, multi, 10, 14)
    for ax, (name, k) in zip(axes, (("animals", 40), ("objects", 14)), strict=True):
        assert f"{k} priors" in ax.get_xlabel()
        rows = {text.get_text(): text.get_position()[1] for text in ax.texts}
        for method in MULTICLASS:
            mine = where(multi, name=name, n_per_class=10, method=method)
            mine = mine if method == "NoTransfer" else where(mine, n_priors=k)
            row = rows[method_style(method)["label"]]
            (diamond,) = [x for x in ax.lines if x.get_marker() == "D" and x.get_ydata()[0] == row]
            assert diamond.get_xdata()[0] == pytest.approx(100.0 * mine["accuracy"].mean())


# ------------------------------------------------------------------ the things


def test_things():
    """Pictures at their places, per cent of each row, the right ones' mean in the title."""
    rng = np.random.default_rng(0)
    names = ["cow", "bat", "ant"]
    faces = {name: rng.integers(0, 256, (8, 8, 4), dtype=np.uint8) for name in names}
    known = rng.integers(0, 256, (2, 5, 8, 8, 4), dtype=np.uint8)
    share = {"NoTransfer": np.eye(3), "MKTL": np.array([[0.5, 0.5, 0.0], [0.04, 0.96, 0.0], [0.0, 0.0, 1.0]])}
    rows = [
        (m, names[i], names[j], v) for m, grid in share.items() for (i, j), v in np.ndenumerate(grid) if v
    ]
    table = pd.DataFrame(rows, columns=["method", "true", "said", "share"])
    fig = drawn(draw.things({"known": known}, shuffled(table), faces))
    upper, *panels = fig.axes
    assert upper.get_title() == "known"
    shown = upper.images[0].get_array()
    assert shown.shape == (16, 40, 4)
    assert_array_equal(shown[8:, 16:24], known[1, 2])
    assert [ax.get_title() for ax in panels] == ["No-Transfer: 100% right", "MKTL: 82% right"]
    for ax, method in zip(panels, share, strict=True):
        assert_allclose(ax.images[0].get_array(), 100.0 * share[method])
        found = {text.get_position()[::-1]: text.get_text() for text in ax.texts}
        wanted = {place: f"{100 * v:.0f}" for place, v in np.ndenumerate(share[method]) if v >= 0.05}
        assert found == wanted  # row by row: what is true
        left, below = (side.images[0].get_array() for side in ax.child_axes)
        assert_array_equal(left[8:16], faces["bat"])
        assert_array_equal(below[:, 16:], faces["ant"])


# ------------------------------------------------------------------ weights


def weights_table(new, prior, scale=1.0):
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        [{"new": a, "prior": b, "weight": scale * rng.normal(), "kernel": 1.0} for a in new for b in prior]
    )


def cells(ax):
    """The colours' values, and (row, column) -> number in the cell."""
    numbers = {text.get_position()[::-1]: text.get_text() for text in ax.texts if text.get_va() == "center"}
    return ax.images[0].get_array(), numbers


@pytest.mark.parametrize("largest", [5.0, 5e-3])
def test_weights(largest):
    table = weights_table("EGHIMPQRV", LETTERS)
    table["weight"] *= largest / np.abs(table["weight"]).max()
    fig = drawn(draw.weights(table, GROUPS))
    apart(fig)
    ax, bar = fig.axes
    values = table.pivot(index="new", columns="prior", values="weight").loc[list("EGHIMPQRV"), LETTERS]
    values = values.to_numpy()
    assert [text.get_text() for text in ax.get_xticklabels()] == LETTERS
    assert [text.get_text() for text in ax.get_yticklabels()] == list("EGHIMPQRV") and ax.yaxis_inverted()
    shown, numbers = cells(ax)
    assert_allclose(shown, values)
    assert set(numbers) == {place for place, v in np.ndenumerate(values) if abs(v) >= 0.05 * largest}
    unit = 1.0 if largest > 0.05 else 1000.0  # small ones in thousandths
    for place, text in numbers.items():
        assert float(text.replace("−", "-")) / unit == pytest.approx(values[place], abs=0.051 * largest)
    assert ("thousandths" in bar.get_ylabel()) == (unit > 1.0)
    expected = [name for name, _ in GROUPS]
    assert [" ".join(text.get_text().split()) for text in ax.texts if text.get_va() == "bottom"] == expected
    assert [line.get_xdata()[0] for line in ax.lines] == [-0.5, 5.5, 9.5]  # between two models
    (beside,) = ax.child_axes
    totals = [float(text.get_text()) for text in beside.get_yticklabels()]
    assert_allclose(totals, np.abs(values).sum(axis=1), rtol=0.06)
    assert_allclose(bar.get_ylim(), (-largest, largest))


def test_weights_of_many_of_few_and_of_no_priors():
    """More than 20 priors stand in two rows; models without a column are not named; all may be zero."""
    table = weights_table(["chimpanzee", "giant panda", "humpback whale"], MANY)
    fig = drawn(draw.weights(table, [("SVM on rgsift, surf", MANY)]))
    apart(fig)
    upper, lower, _ = fig.axes
    assert [text.get_text() for ax in (upper, lower) for text in ax.get_xticklabels()] == MANY
    assert cells(upper)[0].shape == cells(lower)[0].shape == (3, 20)
    ax = drawn(draw.weights(weights_table("EG", LETTERS[:10]), GROUPS)).axes[0]
    expected = [name for name, _ in GROUPS[:2]]
    assert [" ".join(text.get_text().split()) for text in ax.texts if text.get_va() == "bottom"] == expected
    ax, _ = drawn(draw.weights(weights_table("3589", "012467", 0.0))).axes
    assert not np.any(cells(ax)[0])


# ------------------------------------------------------------------ useless priors


SILLY = ("AverageTL", "MultiKT", "MKTL", "MKTL auto")


@pytest.fixture
def useless():
    kinds = (("none", ("NoTransfer", "MKTL")), ("noise 100", SILLY), ("shuffled", SILLY), ("noise 17", SILLY))
    points = [
        ("animals", n, k, s, m) for n in POSITIVE for k, methods in kinds for s in SEEDS for m in methods
    ]
    return made(["name", "n_per_class", "useless", "seed", "method"], points)


def test_negative(useless):
    fig = drawn(draw.negative(shuffled(useless)))
    apart(fig)
    noise = [f"{n} columns of noise" for n in (17, 100)]
    assert [ax.get_title() for ax in fig.axes] == ["scores of real priors, shuffled", *noise]
    assert [ax.cuelearn_stamp.get_text() for ax in fig.axes] == ["composed", "simulated", "simulated"]
    expected = {*(method_style(m)["label"] for m in (*SILLY, "NoTransfer")), "MKTL without priors"}
    assert set(legend(fig)) == expected

    def grid(kind, method):
        mine = useless[(useless["useless"] == kind) & (useless["method"] == method)]
        return 100.0 * mine.pivot(index="seed", columns="n_per_class", values="accuracy")

    reference = grid("none", "NoTransfer")
    for ax, kind in zip(fig.axes, ("shuffled", "noise 17", "noise 100"), strict=True):
        assert_array_equal(named(ax, "NoTransfer").get_ydata(), 0.0)
        (alone,) = [line for line in ax.lines if line.get_label() == "MKTL without priors"]
        assert_allclose(alone.get_ydata(), (grid("none", "MKTL") - reference).mean())
        for method in SILLY:
            check_curve(ax, named(ax, method), grid(kind, method) - reference)  # seed by seed


# ------------------------------------------------------------------ p


def path():
    table = made(["p", "seed"], itertools.product((1.01, 1.1, 1.5, 2.0), SEEDS))
    return table.assign(used=np.random.default_rng(1).uniform(2.0, 17.0, len(table)))


def test_along_p():
    table = path()
    upper, lower = drawn(draw.along_p(shuffled(table), n_priors=17)).axes
    for ax, column, factor in ((upper, "accuracy", 100.0), (lower, "used", 1.0)):
        assert "thin: 3 runs" in ax.cuelearn_band
        check_curve(ax, named(ax, "MKTL"), factor * table.pivot(index="seed", columns="p", values=column))
        assert not any("auto" in str(line.get_label()) for line in ax.lines)
    assert any(np.allclose(line.get_ydata(), 17) for line in lower.lines) and lower.get_ylim()[0] == 0.0
    low, high = upper.get_xlim()
    assert 1.0 < low < 1.01 and high > 2.0
    # p near 1 has its room
    place = lower.transData.transform([(p, 1.0) for p in (1.01, 1.1, 2.0)])[:, 0]
    assert place[1] - place[0] == pytest.approx(place[2] - place[1], rel=0.02)


def test_along_p_takes_rows_with_the_automatic_p():
    table = path().assign(p_found=lambda t: t["p"])
    auto = pd.DataFrame({"p": "auto", "seed": SEEDS, "accuracy": 0.5, "used": 7.0, "p_found": 1.1104})
    fig = drawn(draw.along_p(pd.concat([table.astype({"p": object}), auto]), n_priors=17))
    line = named(fig.axes[0], "MKTL")
    assert_array_equal(line.get_xdata(), [1.01, 1.1, 1.1104, 1.5, 2.0])
    assert line.get_ydata()[2] == pytest.approx(50.0)
    assert [x.get_xdata()[0] for x in fig.axes[1].lines if "auto" in str(x.get_label())] == [1.1104]


def test_slider_along_p():
    norms = np.array([3.0, 0.5, 0.0, 0.5])
    fig, axes = plt.subplots(1, 2)
    draw.at_p(axes, {1.01: (norms, 40.0), 2.0: (norms, 60.0)}, 1.01)
    assert_allclose(axes[0].lines[0].get_ydata()[:2], 0.125)
    assert "75%" in axes[0].texts[0].get_text()
    assert_allclose(axes[1].lines[-1].get_xydata(), [[1.01, 40.0]])
