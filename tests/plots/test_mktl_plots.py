"""Drawings of the MKTL chapter: every number at its place, axes and methods named, no words upon others."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color
from matplotlib.patches import FancyArrowPatch, Rectangle
from numpy.testing import assert_allclose, assert_array_equal
from pages import apart, check_curve, check_curves, drawn, labels_of, legend, named, shuffled

from cuelearn.book.figures import BLUE, RED, interval, method_style, use_style
from cuelearn.experiments.mktl.compare import BINARY, MULTICLASS
from cuelearn.experiments.mktl.tasks import TASKS
from cuelearn.plots import mktl as draw
from cuelearn.plots.common import where


@pytest.fixture(autouse=True)
def _style():
    with plt.rc_context():
        use_style()
        yield
    plt.close("all")


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
ANIMALS = [
    "antelope",
    "grizzly bear",
    "german shepherd",
    "spider monkey",
    "rhinoceros",
    "siamese cat",
    "ox",
    "ass",
]
MANY = [f"{name} {k}" for k in range(5) for name in ANIMALS]


def parts(names, seed=0, scale=0.5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=len(names)), scale * rng.normal(size=len(names))


def bars(fig):
    """Row's name -> its bar in the right part."""
    side = fig.axes[1]
    labels = [text.get_text() for text in side.get_yticklabels()]
    patches = [patch for patch in side.patches if isinstance(patch, Rectangle)]
    assert_allclose([patch.get_y() + patch.get_height() / 2 for patch in patches], side.get_yticks())
    return dict(zip(labels, patches, strict=True))


def test_schematic_shows_every_part_of_the_sum():
    scores, weights = parts(LETTERS)
    fig = drawn(draw.schematic("E", LETTERS, scores, weights, 0.62, groups=GROUPS, sample_class="G"))
    apart(fig)
    ax, side = fig.axes
    total = 0.62 + scores @ weights
    found = bars(fig)
    assert list(found) == ["kernel", *LETTERS, "sum"]
    assert_allclose([bar.get_width() for bar in found.values()], [0.62, *(scores * weights), total])
    for name, part in zip(LETTERS, scores * weights, strict=True):
        assert same_color(found[name].get_facecolor(), BLUE if part > 0 else RED)
    assert "E" in ax.get_title() and "class G" in ax.get_title() and "score" in side.get_xlabel()
    texts = [text.get_text() for text in ax.texts]
    for name, score, weight in zip(LETTERS, scores, weights, strict=True):
        assert name in texts
        assert f"{score:+.2f}".replace("-", "−") in texts
        assert f"× {weight:+.2f}".replace("-", "−") in texts
    assert any("y$ = E" in text and f"{total:+.2f}".replace("-", "−") in text for text in texts)
    expected = [name for name, _ in GROUPS]
    assert [" ".join(text.split()) for text in texts if "trees" in text or "SVM" in text] == expected
    # widths of the arrows go with the weights, colours with their signs
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)][-len(LETTERS) :]
    widths = np.array([arrow.get_linewidth() for arrow in arrows])
    assert_array_equal(np.argsort(widths), np.argsort(np.abs(weights)))
    assert all(
        same_color(a.get_edgecolor(), BLUE if w > 0 else RED) for a, w in zip(arrows, weights, strict=True)
    )


@pytest.mark.parametrize("new_class", ["humpback whale", "hippopotamus", "rat"])
def test_schematic_of_many_priors_says_how_many_it_leaves_out(new_class):
    scores, weights = parts(MANY, scale=0.04)
    about = {"groups": [("SVM on rgsift, surf", MANY)], "sample_class": "seal"}
    fig = drawn(draw.schematic(new_class, MANY, scores, weights, -0.31, **about))
    apart(fig)
    found = bars(fig)
    largest = np.argsort(-np.abs(scores * weights))[:12]
    assert list(found) == ["kernel", *(MANY[k] for k in sorted(largest)), "28 others", "sum"]
    widths = np.array([bar.get_width() for bar in found.values()])
    assert_allclose(widths[:-1].sum(), widths[-1])
    assert_allclose(widths[-1], -0.31 + scores @ weights)
    assert "28 others" in [text.get_text() for text in fig.axes[0].texts]


def test_schematic_without_any_weight():
    fig = drawn(draw.schematic("E", list("AB"), [1.0, -1.0], [0.0, 0.0], 0.5))
    assert_allclose([bar.get_width() for bar in bars(fig).values()], [0.5, 0.0, 0.0, 0.5])
    assert not any("−0.00" in text.get_text() for ax in fig.axes for text in ax.texts)


# ------------------------------------------------------------------ figure 6.2


POSITIVE, SEEDS = (1, 3, 10, 30), (0, 1, 2)


@pytest.fixture
def binary():
    return made(
        ["target", "seed", "n_positive", "method"], itertools.product("ABCDEFG", SEEDS, POSITIVE, BINARY)
    )


REWEIGHTED = ("NoTransfer weighted", "PriorFeatures weighted", "AverageTL weighted")
PANELS = {
    "as in the thesis": tuple(m for m in BINARY if m not in REWEIGHTED),
    "both classes weigh the same": ("MultiKT", "MKTL weighted", *REWEIGHTED),
}


#: What the differences below a panel are to.
BASES = ("PriorFeatures", "MKTL weighted")


def check_binary_panel(ax, table, methods):
    """A curve and a band for each of the methods, and for no other."""
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "3", "10", "30"]
    assert sorted(line.get_label() for line in ax.lines) == labels_of(methods)
    assert len(ax.collections) == len(methods)
    each = table.groupby(["target", "n_positive", "method"], as_index=False)["accuracy"].mean()
    check_curves(ax, each, "n_positive", "accuracy", methods, runs="target")  # not over seeds
    assert "7 targets, 3 draws" in ax.cuelearn_band and "over targets" in ax.cuelearn_band


def check_differences(ax, table, methods, base):
    """Below: how far each other method is from `base`, with the interval of the targets' differences."""
    assert ax.get_xlabel() == "positive training samples"
    assert ax.get_title() == f"minus {method_style(base)['label']} (target by target)"
    each = table.groupby(["method", "target", "n_positive"])["accuracy"].mean().unstack()
    assert len(ax.collections) == len(methods) - 1 and "over targets" in ax.cuelearn_band
    for method in set(methods) - {base}:
        check_curve(ax, named(ax, method), 100.0 * (each.loc[method] - each.loc[base]))


@pytest.mark.parametrize("mixed", [False, True])
def test_binary_mean(binary, mixed):
    """The thesis's methods; beside them, on the same axes, all that weigh both classes equally."""
    fig = drawn(draw.binary_mean(shuffled(binary) if mixed else binary))
    apart(fig)
    assert sorted(legend(fig)) == labels_of(BINARY)
    upper, lower = fig.axes[:2], fig.axes[2:]
    assert [ax.get_title() for ax in upper] == list(PANELS)
    for ax, below, methods, base in zip(upper, lower, PANELS.values(), BASES, strict=True):
        check_binary_panel(ax, binary, methods)
        check_differences(below, binary, methods, base)
        assert ax.get_position().y0 > below.get_position().y1
    for row, label in ((upper, "test accuracy [%]"), (lower, "difference in accuracy [points]")):
        assert [ax.get_ylabel() for ax in row] == [label, ""]
        assert row[0].get_ylim() == row[1].get_ylim() and row[0].get_xlim() == row[1].get_xlim()
        shown = [any(tick.label1.get_visible() for tick in ax.yaxis.get_major_ticks()) for ax in row]
        assert shown == [True, False]  # one scale for both


@pytest.mark.parametrize("kept", [(), REWEIGHTED[:1]])
def test_binary_mean_of_fewer_methods(binary, kept):
    """Without reweighted baselines one column, and no title; one of them is enough for the second."""
    methods = [m for m in BINARY if m not in REWEIGHTED or m in kept]
    some = binary[binary["method"].isin(methods)]
    fig = drawn(draw.binary_mean(some))
    assert sorted(legend(fig)) == labels_of(methods)
    assert fig.axes[0].get_ylabel() == "test accuracy [%]"
    if kept:
        assert [ax.get_title() for ax in fig.axes[:2]] == list(PANELS)
        check_binary_panel(fig.axes[1], some, ("MultiKT", "MKTL weighted", *kept))
    else:
        ax, below = fig.axes
        assert ax.get_title() == "" and legend(fig)[0] == "MKTL"
        check_differences(below, some, PANELS["as in the thesis"], "PriorFeatures")
    check_binary_panel(fig.axes[0], some, PANELS["as in the thesis"])


def test_binary_classes(binary):
    fig = drawn(draw.binary_classes(binary))
    apart(fig)
    shown = [ax for ax in fig.axes if ax.get_visible()]
    assert [ax.get_title() for ax in shown] == list("ABCDEFG")
    assert sorted(legend(fig)) == labels_of(draw.BY_CLASS)
    assert fig.get_supylabel() == "test accuracy [%]" and "target" in fig.get_supxlabel()
    assert len({ax.get_ylim() for ax in shown}) == len({ax.get_xlim() for ax in shown}) == 1
    for ax, target in zip(shown, "ABCDEFG", strict=True):
        assert len(ax.lines) == len(draw.BY_CLASS)
        check_curves(ax, binary[binary["target"] == target], "n_positive", "accuracy", draw.BY_CLASS)
        assert ax.cuelearn_band.startswith("means of 3 draws; in the corner: weighted MKTL minus")
        runs = 100.0 * binary[binary["target"] == target].groupby(["method", "seed"])["accuracy"].mean()
        ends = interval((runs["MKTL weighted"] - runs["PriorFeatures"]).to_numpy())
        (said,) = [text.get_text() for text in ax.texts]
        found = [
            float(word)
            for word in said.replace("−", "-").replace("(", "").rstrip(")").split(" ")
            if word != "to"
        ]
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


@pytest.mark.parametrize("mixed", [False, True])
def test_multiclass(multi, mixed):
    fig = drawn(draw.multiclass(shuffled(multi) if mixed else multi))
    panels = {ax.get_title(): ax for ax in fig.axes}
    assert set(panels) == {
        "emoji, objects: 14 priors",
        "emoji, objects: 23 priors",
        "emoji, animals: 40 priors",
    }
    assert sorted(legend(fig)) == labels_of(MULTICLASS) and legend(fig)[0] == "MKTL"
    assert fig.axes[0].get_ylabel() == "test accuracy [%]"
    assert panels["emoji, objects: 14 priors"].get_ylim() == panels["emoji, objects: 23 priors"].get_ylim()
    for name, n_priors in (("objects", 14), ("objects", 23), ("animals", 40)):
        ax = panels[f"{draw.TITLES[name]}: {n_priors} priors"]
        assert ax.get_xlabel() == "training samples per class" and ax.get_xscale() == "log"
        assert len(ax.lines) == len(MULTICLASS) + (n_priors == 23)
        task = multi[multi["name"] == name]
        for of, methods in ((n_priors, [m for m in MULTICLASS if m != "NoTransfer"]), (23, ["NoTransfer"])):
            mine = task[task["n_priors"] == (of if name == "objects" else n_priors)]
            check_curves(ax, mine, "n_per_class", "accuracy", methods)
    # MKTL with fewer priors again
    ax = panels["emoji, objects: 23 priors"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["MKTL, 14 priors"]
    assert_allclose(ax.lines[-1].get_ydata(), named(panels["emoji, objects: 14 priors"], "MKTL").get_ydata())
    assert all(panel.get_legend() is None for title, panel in panels.items() if panel is not ax)


def test_every_task_has_a_title():
    assert set(TASKS) <= set(draw.TITLES) and len(set(draw.TITLES.values())) == len(draw.TITLES)


def test_along_priors(multi):
    table = shuffled(where(multi, name="objects", n_per_class=10)).query("method != 'NoTransfer'")
    ax = drawn(draw.along_priors(table)).axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("priors", "test accuracy [%]")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["14", "23"]
    check_curves(ax, table, "n_priors", "accuracy", [m for m in MULTICLASS if m != "NoTransfer"])


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
    """(column, row) -> number in the cell, and the cell's colour."""
    numbers = {text.get_position(): text.get_text() for text in ax.texts if text.get_va() == "center"}
    colors = {(p.get_x() + 0.5, p.get_y() + 0.5): p.get_facecolor() for p in ax.patches}
    assert set(numbers) == set(colors)
    return numbers, colors


@pytest.mark.parametrize("largest, power", [(5.0, 0), (0.4, 0), (5e-3, -3), (700.0, 2)])
def test_weights(largest, power):
    table = weights_table("EGHIMPQRV", LETTERS)
    table["weight"] *= largest / np.abs(table["weight"]).max()
    fig = drawn(draw.weights(table, GROUPS))
    apart(fig)
    ax, side, bar = fig.axes
    values = (
        table.pivot(index="new", columns="prior", values="weight").loc[list("EGHIMPQRV"), LETTERS].to_numpy()
    )
    shown = values / 10.0**power
    assert [text.get_text() for text in ax.get_xticklabels()] == LETTERS
    assert [text.get_text() for text in ax.get_yticklabels()] == list("EGHIMPQRV") and ax.yaxis_inverted()
    assert ax.get_xlabel() == "prior class" and ax.get_ylabel() == "new class"
    numbers, colors = cells(ax)
    assert len(numbers) == values.size
    for (row, column), value in np.ndenumerate(shown):
        key = ax.get_xticks()[column], row
        assert float(numbers[key].replace("−", "-")) == pytest.approx(value, abs=0.00501)
        red, _, blue, _ = colors[key]
        assert abs(value) < 0.1 * np.abs(shown).max() or (blue > red) == (value > 0)
    expected = [name for name, _ in GROUPS]
    assert [" ".join(text.get_text().split()) for text in ax.texts if text.get_va() == "bottom"] == expected
    steps = np.diff(ax.get_xticks())  # a gap between two models
    assert [LETTERS[k + 1] for k in np.flatnonzero(steps > 1.01)] == ["O", "A"]
    assert_allclose([patch.get_width() for patch in side.patches], np.abs(shown).sum(axis=1))
    low, high = bar.get_ylim()
    assert low == pytest.approx(-high) and high == pytest.approx(np.abs(shown).max())
    assert ("10^" in bar.get_ylabel()) == ("10^" in side.get_title()) == (power != 0)


def test_weights_of_many_priors_stand_in_two_rows_of_panels():
    new = ["chimpanzee", "giant panda", "humpback whale"]
    fig = drawn(draw.weights(weights_table(new, MANY), [("SVM on rgsift, surf", MANY)]))
    apart(fig)
    upper, side, lower, empty, _ = fig.axes
    assert [text.get_text() for ax in (upper, lower) for text in ax.get_xticklabels()] == MANY
    assert len(cells(upper)[0]) == len(cells(lower)[0]) == 20 * 3
    assert not empty.axison
    assert len(side.patches) == 3


def test_weights_without_groups_and_all_zero():
    table = weights_table("3589", "012467", 0.0)
    ax, side, _ = drawn(draw.weights(table)).axes
    assert set(cells(ax)[0].values()) == {"0"} and not any(patch.get_width() for patch in side.patches)


def test_weights_of_the_first_priors_alone():
    """Models without a column in the table are not named."""
    ax = drawn(draw.weights(weights_table("EG", LETTERS[:10]), GROUPS)).axes[0]
    expected = [name for name, _ in GROUPS[:2]]
    assert [" ".join(text.get_text().split()) for text in ax.texts if text.get_va() == "bottom"] == expected


# ------------------------------------------------------------------ useless priors


SILLY = ("AverageTL", "MultiKT", "MKTL", "MKTL auto")


@pytest.fixture
def useless():
    kinds = (("none", ("NoTransfer", "MKTL")), ("noise 100", SILLY), ("shuffled", SILLY), ("noise 17", SILLY))
    points = [
        ("animals", n, k, s, m) for n in POSITIVE for k, methods in kinds for s in SEEDS for m in methods
    ]
    return made(["name", "n_per_class", "useless", "seed", "method"], points)


@pytest.mark.parametrize("mixed", [False, True])
def test_negative(useless, mixed):
    fig = drawn(draw.negative(shuffled(useless) if mixed else useless))
    apart(fig)
    noise = [f"{n} columns of noise" for n in (17, 100)]
    assert [ax.get_title() for ax in fig.axes] == ["scores of real priors, shuffled", *noise]
    assert [ax.cuelearn_stamp.get_text() for ax in fig.axes] == ["composed", "simulated", "simulated"]
    expected = {*(method_style(m)["label"] for m in (*SILLY, "NoTransfer")), "MKTL without priors"}
    assert set(legend(fig)) == expected
    assert fig.axes[0].get_ylabel() == "accuracy − No-Transfer's [points]"

    def grid(kind, method):
        mine = useless[(useless["useless"] == kind) & (useless["method"] == method)]
        return 100.0 * mine.pivot(index="seed", columns="n_per_class", values="accuracy")

    reference = grid("none", "NoTransfer")
    for ax, kind in zip(fig.axes, ("shuffled", "noise 17", "noise 100"), strict=True):
        assert ax.get_xlabel() == "training samples per class"
        assert_array_equal(named(ax, "NoTransfer").get_ydata(), 0.0)
        (alone,) = [line for line in ax.lines if line.get_label() == "MKTL without priors"]
        assert_allclose(alone.get_ydata(), (grid("none", "MKTL") - reference).mean())
        for method in SILLY:
            check_curve(ax, named(ax, method), grid(kind, method) - reference)  # seed by seed


# ------------------------------------------------------------------ p


def path():
    table = made(["p", "seed"], itertools.product((1.01, 1.1, 1.5, 2.0), SEEDS))
    return table.assign(used=np.random.default_rng(1).uniform(2.0, 17.0, len(table)))


@pytest.mark.parametrize("mixed", [False, True])
def test_along_p(mixed):
    table = path()
    fig = drawn(draw.along_p(shuffled(table) if mixed else table, n_priors=17))
    upper, lower = fig.axes
    assert upper.get_ylabel() == "test accuracy [%]"
    assert lower.get_ylabel() == "priors in use per new class"
    assert "p" in lower.get_xlabel()
    for ax, column, factor in ((upper, "accuracy", 100.0), (lower, "used", 1.0)):
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
