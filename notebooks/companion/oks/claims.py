"""What the claims of the chapter are judged by."""

import numpy as np
import pandas as pd

from companion.run.claims import Part, judges

PENDIGITS, SIMULATED = "pendigits", "random streams"
FEW = 0.03  # "a few points", by how much OKS-SVM may be worse
WIDE = 0.1  # of the best over the worst kernels
LESS = 1 / 15  # "about 1/30", within a factor of two
SPECIES_ONCE = 24  # groups of leaves, after which the species are drawn anew
FULL = 60  # kernels of the paper's tables, of which 1/30 can be had


def _by_data(results, *figures):
    """Tables of some figures, those on the same data together: data, the first figure on it, table."""
    first, tables = {}, {}
    for figure in figures:
        data = results.about(figure)["data"]
        first.setdefault(data, figure)
        tables.setdefault(data, []).append(results.table(figure))
    return [(data, first[data], pd.concat(tables[data], ignore_index=True)) for data in tables]


@judges("oks-1")
def oks_1(results):
    figures = "oks-tab-1-pairs", "oks-tab-2-pairs", "oks-tab-1-leaves"
    for data, figure, table in _by_data(results, *figures):
        oks, musvm = (table[table["method"] == m].set_index("name") for m in ("OKS", "MuSVM"))
        musvm = musvm.loc[oks.index]
        yield Part(
            f"at most 3 points less accurate, {data}",
            "accuracy of OKS-SVM minus MuSVM",
            oks["accuracy"],
            musvm["accuracy"],
            at_least=-FEW,
            figure=figure,
        )
        if (oks["n_kernels"] >= FULL).all():
            for column, counted in (("kernel_values", "kernel values computed"), ("svms", "SVMs solved")):
                yield Part(
                    f"{counted}, at most a fifteenth, {data}",
                    f"{counted} by OKS-SVM over MuSVM",
                    oks[column],
                    musvm[column],
                    ratio=True,
                    at_most=LESS,
                    figure=figure,
                )
            clock = np.exp(np.log(oks["seconds"] / musvm["seconds"]).mean())
    yield f"Beside the counts: by the clock OKS-SVM takes 1/{1 / clock:.0f} of MuSVM's time at these sizes."


@judges("oks-2", "oks-alg-2-passes")
def oks_2(results):
    figure = results.figure
    table = results.table(figure)
    table = table[table["n_epochs"] == 2]
    original = table["name"].str.startswith("corel5k")
    names = {"keyword": "emoji", "category": "emoji", "leaves": "leaves", "corel5k": "corel5k"}
    for rows in (table[~original], table[original]):
        if rows.empty:
            continue
        of = tuple(rows["name"].str.split().str[0].map(names).unique())
        data = results.about(figure, of)["data"]
        by_pair = rows.groupby(["name", "method"])["accuracy"]
        mean = by_pair.mean().unstack()
        spread = by_pair.std().unstack()
        measure = "accuracy of OKS' kernels minus SOM's"
        says = f"better on the mean of pairs, {data}"
        yield Part(says, measure, mean["OKS"], mean["SOM"], at_least=0.0, of=of)
        measure = "standard deviation over seeds, OKS minus SOM"
        yield Part(f"spreading less, {data}", measure, spread["OKS"], spread["SOM"], at_most=0.0, of=of)


def _streams(results):
    """For every stream its rows and what is known of its data."""
    table = results.table(results.figure)
    for kind in table["kind"].unique():
        rows = table[table["kind"] == kind]
        of = PENDIGITS if kind == "pendigits" else SIMULATED
        data = results.about(results.figure, of)["data"] + ("" if kind == "pendigits" else f": {kind}")
        yield kind, rows, {"of": of, "data": data, "n": rows["seed"].nunique()}


@judges("oks-3", "oks-thm-3")
def oks_3(results):
    table = results.table("oks-thm-3")
    for kind, rows, facts in _streams(results):
        says = f"upper end of the mean's interval under the bound ({kind})"
        yield Part(says, values=rows["high"], bound=rows["bound"], **facts)
        says = f"its excess over the best kernel's loss, under the theorem's sum ({kind})"
        yield Part(says, values=rows["high"] - rows["loss"], bound=rows["allowed"], **facts)
        for delta, runs in rows.groupby("delta"):
            excess = (runs["mean"] - runs["loss"]) / np.sqrt(runs["n_samples"])
            if excess.min() <= 0.0:  # below the comparator's loss there is no rate to see
                continue
            says = f"excess over sqrt T not rising ({kind}, delta = {delta:g})"
            measure = "slope of excess / sqrt T on ln T"
            facts |= {"x": runs["n_samples"], "units": runs["seed"], "log_y": False}
            yield Part(says, measure, excess, at_most=0.0, **facts)
    below = (table["mean"] <= table["loss"]).mean()
    yield (
        f"The best kernel's predictor has norm 4 at most. At {below:.0%} of the "
        "points mistakes are fewer than its hinge loss, and a stream that has such points tells nothing "
        "of the rate; the bound is below the number of visits at "
        f"{(table['bound'] < table['n_samples']).mean():.0%}."
    )


@judges("oks-4", "oks-thm-1")
def oks_4(results):
    for kind, rows, facts in _streams(results):
        for loss, runs in rows.groupby("loss", sort=False):
            yield Part(f"{loss} loss ({kind})", values=runs["high"], bound=runs["bound"], **facts)


@judges("oks-5")
def oks_5(results):
    printed = []
    for data, figure, table in _by_data(results, "oks-fig-1", "oks-fig-2", "oks-fig-1-leaves"):
        gaps = _gaps(table)
        printed.append(f"{np.mean(_gaps(table, 'accuracy', 'accuracy')):.3f} on {data}")
        few = min(5, table["kernel"].max() // 2)
        draws = _drawn_together(table["name"].unique())
        yield Part(
            f"{few} best above {few} worst, {data}",
            "accuracy of the best minus the worst, ranked on one half of the test, seen on the other",
            gaps,
            np.zeros(len(gaps)),
            at_least=WIDE,
            units=draws,
            unit="" if len(set(draws)) == len(draws) else "draw of species",
            figure=figure,
        )
    yield (
        f"Ranked and seen on the same test, as the paper's figures are, it is {', '.join(printed)}, in part "
        "by luck; ranked on half a test it is too little rather than too much."
    )


def _drawn_together(names):
    """What one draw is: a pair, or the pairs of leaves among which no species is twice."""
    draws = [name.split()[1].split("/")[0] if name.startswith("leaves") else name for name in names]
    return [str((int(draw) - 1) // SPECIES_ONCE) if draw.isdecimal() else draw for draw in draws]


def _gaps(table, *columns):
    """What `_gap` is of each pair, in the mean over its splits."""
    splits = table.groupby(["name", "seed"], sort=False)
    each = pd.Series({split: _gap(kernels, *columns) for split, kernels in splits})
    return each.groupby(level=0, sort=False).mean().to_numpy()


def _gap(kernels, first="accuracy_0", second="accuracy_1"):
    """Accuracy of the best minus the worst on one split, ranked on a half of its test, seen on the other."""
    few, gaps = min(5, len(kernels) // 2), []
    for ranked, seen in ((first, second), (second, first)):
        order = np.argsort(-kernels[ranked].to_numpy(), kind="stable")
        seen = kernels[seen].to_numpy()
        gaps.append(seen[order[:few]].mean() - seen[order[-few:]].mean())
    return np.mean(gaps)


@judges("oks-6", "oks-cor-2")
def oks_6(results):
    table = results.table("oks-cor-2")
    for kind, rows, facts in _streams(results):
        largest = rows[["drawn", "largest"]].max(axis=1)
        says = f"excess under b / eps, the constant that the proof gives ({kind})"
        yield Part(says, values=largest, bound=rows["bound"], **facts)
        rows = rows[np.isclose(rows["epsilon"], 0.1)]
        facts |= {"x": rows["n_visits"], "units": rows["seed"], "log_y": False}
        measure = "slope of sqrt T times the 90% quantile of the excess on ln T"
        for side in ("drawn", "largest"):
            scaled = rows[side] * np.sqrt(rows["n_visits"])
            says = f"sqrt T times its 90% quantile not rising ({kind}, {side})"
            yield Part(says, measure, scaled, at_most=0.0, **facts)
    least = (table["bound"] * table["epsilon"]).min()
    yield f"b, which an O hides, is {least:.1f} at least, more than the loss of f = 0."
