"""What the claims of the chapter are judged by."""

import numpy as np
import pandas as pd

from companion.run.claims import combine, judge_bound, judge_mean, judge_slope, judges

PENDIGITS, SIMULATED = "pendigits", "random streams"
FEW = 0.03  # "a few points", by how much OKS-SVM may be worse
WIDE = 0.1  # of the best over the worst kernels
LESS = 1 / 15  # "about 1/30", within a factor of two
SPECIES_ONCE = 24  # groups of leaves, after which the species are drawn anew
FULL = 60  # kernels of the paper's tables, of which 1/30 can be had


def _by_data(found, *figures):
    """The tables of some figures, those on the same data together: pairs of table, and what is said of it."""
    abouts, tables = {}, {}
    for figure in figures:
        about = found.about(figure)
        abouts.setdefault(about["data"], about)
        tables.setdefault(about["data"], []).append(found.table(figure))
    return [(pd.concat(tables[data], ignore_index=True), about) for data, about in abouts.items()]


@judges("oks-1")
def oks_1(found):
    parts = {}
    for table, about in _by_data(found, "oks-tab-1-pairs", "oks-tab-2-pairs", "oks-tab-1-leaves"):
        ours, other = (table[table["method"] == m].set_index("name") for m in ("OKS", "MuSVM"))
        other = other.loc[ours.index]
        parts[f"at most 3 points less accurate, {about['data']}"] = judge_mean(
            "oks-1",
            ours["accuracy"],
            other["accuracy"],
            at_least=-FEW,
            **about,
            measure="accuracy of OKS-SVM minus MuSVM",
        )
        if (ours["n_kernels"] >= FULL).all():
            for column, what in (("kernel_values", "kernel values computed"), ("svms", "SVMs solved")):
                parts[f"{what}, at most a fifteenth, {about['data']}"] = judge_mean(
                    "oks-1",
                    ours[column],
                    other[column],
                    ratio=True,
                    at_most=LESS,
                    **about,
                    measure=f"{what} by OKS-SVM over MuSVM",
                )
            clock = np.exp(np.log(ours["seconds"] / other["seconds"]).mean())
    text = f"Beside the counts: by the clock OKS-SVM takes 1/{1 / clock:.0f} of MuSVM's time at these sizes."
    return combine("oks-1", parts, text=text)


@judges("oks-2")
def oks_2(found):
    table, parts = found.table("oks-alg-2-passes"), {}
    table = table[table["n_epochs"] == 2]
    original = table["name"].str.startswith("corel5k")
    for mine in (table[~original], table[original]):
        if mine.empty:
            continue
        sets = {"keyword": "emoji", "category": "emoji", "leaves": "leaves", "corel5k": "corel5k"}
        sets = mine["name"].str.split().str[0].map(sets).unique()
        about = found.about("oks-alg-2-passes", of=tuple(sets))
        mean, spread = (
            mine.groupby(["name", "method"])["accuracy"].agg(how).unstack() for how in ("mean", "std")
        )
        said = {"measure": "accuracy of OKS' kernels minus SOM's"}
        parts[f"better on the mean of pairs, {about['data']}"] = judge_mean(
            "oks-2", mean["OKS"], mean["SOM"], at_least=0.0, **said, **about
        )
        said = "standard deviation over seeds, OKS minus SOM"
        parts[f"spreading less, {about['data']}"] = judge_mean(
            "oks-2", spread["OKS"], spread["SOM"], at_most=0.0, measure=said, **about
        )
    return combine("oks-2", parts)


def _falling(claim, table, x, y, **about):
    """Whether y times or over a root of x, as the caller has made it, does not rise with x, seed by seed."""
    return judge_slope(claim, table[x], table[y], at_most=0.0, log_y=False, runs=table["seed"], **about)


def _streams(found, figure, table):
    """For every stream its rows and what is said of its data."""
    for kind in table["kind"].unique():
        n = table.loc[table["kind"] == kind, "seed"].nunique()
        about = found.about(figure, of=PENDIGITS if kind == "pendigits" else SIMULATED, n=n)
        about["data"] += "" if kind == "pendigits" else f": {kind}"
        yield kind, table[table["kind"] == kind], about


@judges("oks-3")
def oks_3(found):
    table = found.table("oks-thm-3")
    table["excess"] = (table["mean"] - table["loss"]) / np.sqrt(table["n_samples"])
    parts = {}
    for kind, mine, about in _streams(found, "oks-thm-3", table):
        parts[f"upper end of the mean's interval under the bound ({kind})"] = judge_bound(
            "oks-3", mine["high"], mine["bound"], **about
        )
        parts[f"its excess over the best kernel's loss, under the theorem's sum ({kind})"] = judge_bound(
            "oks-3", mine["high"] - mine["loss"], mine["allowed"], **about
        )
        for delta, some in mine.groupby("delta"):
            if some["excess"].min() <= 0.0:  # below the comparator's loss there is no rate to see
                continue
            parts[f"excess over sqrt T not rising ({kind}, delta = {delta:g})"] = _falling(
                "oks-3", some, "n_samples", "excess", measure="slope of excess / sqrt T on ln T", **about
            )
    text = (
        f"The best kernel's predictor has norm 4 at most. At {(table['excess'] <= 0).mean():.0%} of the "
        "points mistakes are fewer than its hinge loss, and a stream that has such points tells nothing "
        "of the rate; the bound is below the number of visits at "
        f"{(table['bound'] < table['n_samples']).mean():.0%}."
    )
    return combine("oks-3", parts, text=text)


@judges("oks-4")
def oks_4(found):
    parts = {}
    for kind, mine, about in _streams(found, "oks-thm-1", found.table("oks-thm-1")):
        for loss, some in mine.groupby("loss", sort=False):
            parts[f"{loss} loss ({kind})"] = judge_bound("oks-4", some["high"], some["bound"], **about)
    return combine("oks-4", parts)


@judges("oks-5")
def oks_5(found):
    parts, printed = {}, []
    for table, about in _by_data(found, "oks-fig-1", "oks-fig-2", "oks-fig-1-leaves"):
        gaps, as_drawn = _gaps(table), _gaps(table, "accuracy", "accuracy")
        printed.append(f"{np.mean(as_drawn):.3f} on {about['data']}")
        few, draws = min(5, table["kernel"].max() // 2), _drawn_together(table["name"].unique())
        about["unit"] = about["unit"] if len(set(draws)) == len(draws) else "draw of species"
        parts[f"{few} best above {few} worst, {about['data']}"] = judge_mean(
            "oks-5",
            gaps,
            np.zeros(len(gaps)),
            at_least=WIDE,
            measure="accuracy of the best minus the worst, ranked on one half of the test, seen on the other",
            blocks=draws,
            **about,
        )
    text = (
        f"Ranked and seen on the same test, as the paper's figures are, it is {', '.join(printed)}, in part "
        "by luck; ranked on half a test it is too little rather than too much."
    )
    return combine("oks-5", parts, text=text)


def _drawn_together(names):
    """What one draw is: a pair, or the pairs of leaves among which no species is twice."""
    draws = [name.split()[1].split("/")[0] if name.startswith("leaves") else name for name in names]
    return [str((int(draw) - 1) // SPECIES_ONCE) if draw.isdecimal() else draw for draw in draws]


def _gaps(table, *columns):
    """What `_gap` is of each pair, in the mean over its splits."""
    splits = table.groupby(["name", "seed"], sort=False)
    each = pd.Series({of: _gap(mine, *columns) for of, mine in splits})
    return each.groupby(level=0, sort=False).mean().to_numpy()


def _gap(kernels, first="accuracy_0", second="accuracy_1"):
    """Accuracy of the best minus the worst on one split, ranked on a half of its test, seen on the other."""
    few, gaps = min(5, len(kernels) // 2), []
    for ranked, seen in ((first, second), (second, first)):
        order = np.argsort(-kernels[ranked].to_numpy(), kind="stable")
        seen = kernels[seen].to_numpy()
        gaps.append(seen[order[:few]].mean() - seen[order[-few:]].mean())
    return np.mean(gaps)


@judges("oks-6")
def oks_6(found):
    table, parts = found.table("oks-cor-2"), {}
    for kind, mine, about in _streams(found, "oks-cor-2", table):
        largest = mine[["drawn", "largest"]].max(axis=1)
        parts[f"excess under b / eps, the constant that the proof gives ({kind})"] = judge_bound(
            "oks-6", largest, mine["bound"], **about
        )
        some = mine[np.isclose(mine["epsilon"], 0.1)]
        for side in ("drawn", "largest"):
            scaled = some.assign(scaled=some[side] * np.sqrt(some["n_visits"]))
            said = {"measure": "slope of sqrt T times the 90% quantile of the excess on ln T", **about}
            parts[f"sqrt T times its 90% quantile not rising ({kind}, {side})"] = _falling(
                "oks-6", scaled, "n_visits", "scaled", **said
            )
    least = (table["bound"] * table["epsilon"]).min()
    text = f"b, which an O hides, is {least:.1f} at least, more than the loss of f = 0."
    return combine("oks-6", parts, text=text)
