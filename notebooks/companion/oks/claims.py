"""What the claims of the chapter are judged by."""

import numpy as np
import pandas as pd

from companion.run.claims import combine, judges

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
    parts = {}
    figures = "oks-tab-1-pairs", "oks-tab-2-pairs", "oks-tab-1-leaves"
    for data, figure, table in _by_data(results, *figures):
        oks, musvm = (table[table["method"] == m].set_index("name") for m in ("OKS", "MuSVM"))
        musvm = musvm.loc[oks.index]
        options = {"at_least": -FEW, "measure": "accuracy of OKS-SVM minus MuSVM"}
        part = results.mean(figure, oks["accuracy"], musvm["accuracy"], **options)
        parts[f"at most 3 points less accurate, {data}"] = part
        if (oks["n_kernels"] >= FULL).all():
            for column, what in (("kernel_values", "kernel values computed"), ("svms", "SVMs solved")):
                options = {"ratio": True, "at_most": LESS, "measure": f"{what} by OKS-SVM over MuSVM"}
                part = results.mean(figure, oks[column], musvm[column], **options)
                parts[f"{what}, at most a fifteenth, {data}"] = part
            clock = np.exp(np.log(oks["seconds"] / musvm["seconds"]).mean())
    text = f"Beside the counts: by the clock OKS-SVM takes 1/{1 / clock:.0f} of MuSVM's time at these sizes."
    return combine("oks-1", parts, text=text)


@judges("oks-2")
def oks_2(results):
    figure = "oks-alg-2-passes"
    table, parts = results.table(figure), {}
    table = table[table["n_epochs"] == 2]
    original = table["name"].str.startswith("corel5k")
    names = {"keyword": "emoji", "category": "emoji", "leaves": "leaves", "corel5k": "corel5k"}
    for rows in (table[~original], table[original]):
        if rows.empty:
            continue
        of = tuple(rows["name"].str.split().str[0].map(names).unique())
        data = results.about(figure, of)["data"]
        by_pair = rows.groupby(["name", "method"])["accuracy"]
        mean, spread = by_pair.mean().unstack(), by_pair.std().unstack()
        options = {"of": of, "at_least": 0.0, "measure": "accuracy of OKS' kernels minus SOM's"}
        parts[f"better on the mean of pairs, {data}"] = results.mean(
            figure, mean["OKS"], mean["SOM"], **options
        )
        options = {"of": of, "at_most": 0.0, "measure": "standard deviation over seeds, OKS minus SOM"}
        parts[f"spreading less, {data}"] = results.mean(figure, spread["OKS"], spread["SOM"], **options)
    return combine("oks-2", parts)


def _falling(results, figure, table, x, y, **options):
    """Whether y times or over a root of x, as the caller has made it, does not rise with x, seed by seed."""
    options |= {"at_most": 0.0, "log_y": False, "runs": table["seed"]}
    return results.slope(figure, table[x], table[y], **options)


def _streams(results, figure, table):
    """For every stream its rows and what is known of its data."""
    for kind in table["kind"].unique():
        rows = table[table["kind"] == kind]
        of = PENDIGITS if kind == "pendigits" else SIMULATED
        data = results.about(figure, of)["data"] + ("" if kind == "pendigits" else f": {kind}")
        yield kind, rows, {"of": of, "data": data, "n": rows["seed"].nunique()}


@judges("oks-3")
def oks_3(results):
    figure = "oks-thm-3"
    table = results.table(figure)
    table["excess"] = (table["mean"] - table["loss"]) / np.sqrt(table["n_samples"])
    parts = {}
    for kind, rows, facts in _streams(results, figure, table):
        says = f"upper end of the mean's interval under the bound ({kind})"
        parts[says] = results.bound(figure, rows["high"], rows["bound"], **facts)
        says = f"its excess over the best kernel's loss, under the theorem's sum ({kind})"
        parts[says] = results.bound(figure, rows["high"] - rows["loss"], rows["allowed"], **facts)
        for delta, runs in rows.groupby("delta"):
            if runs["excess"].min() <= 0.0:  # below the comparator's loss there is no rate to see
                continue
            says = f"excess over sqrt T not rising ({kind}, delta = {delta:g})"
            measure = "slope of excess / sqrt T on ln T"
            parts[says] = _falling(results, figure, runs, "n_samples", "excess", measure=measure, **facts)
    text = (
        f"The best kernel's predictor has norm 4 at most. At {(table['excess'] <= 0).mean():.0%} of the "
        "points mistakes are fewer than its hinge loss, and a stream that has such points tells nothing "
        "of the rate; the bound is below the number of visits at "
        f"{(table['bound'] < table['n_samples']).mean():.0%}."
    )
    return combine("oks-3", parts, text=text)


@judges("oks-4")
def oks_4(results):
    parts = {}
    for kind, rows, facts in _streams(results, "oks-thm-1", results.table("oks-thm-1")):
        for loss, runs in rows.groupby("loss", sort=False):
            part = results.bound("oks-thm-1", runs["high"], runs["bound"], **facts)
            parts[f"{loss} loss ({kind})"] = part
    return combine("oks-4", parts)


@judges("oks-5")
def oks_5(results):
    parts, printed = {}, []
    for data, figure, table in _by_data(results, "oks-fig-1", "oks-fig-2", "oks-fig-1-leaves"):
        gaps, as_drawn = _gaps(table), _gaps(table, "accuracy", "accuracy")
        printed.append(f"{np.mean(as_drawn):.3f} on {data}")
        few, draws = min(5, table["kernel"].max() // 2), _drawn_together(table["name"].unique())
        options = {} if len(set(draws)) == len(draws) else {"unit": "draw of species"}
        options |= {"at_least": WIDE, "blocks": draws}
        options["measure"] = "accuracy of the best minus the worst, ranked on one half of the test, "
        options["measure"] += "seen on the other"
        part = results.mean(figure, gaps, np.zeros(len(gaps)), **options)
        parts[f"{few} best above {few} worst, {data}"] = part
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


@judges("oks-6")
def oks_6(results):
    figure = "oks-cor-2"
    table, parts = results.table(figure), {}
    for kind, rows, facts in _streams(results, figure, table):
        largest = rows[["drawn", "largest"]].max(axis=1)
        says = f"excess under b / eps, the constant that the proof gives ({kind})"
        parts[says] = results.bound(figure, largest, rows["bound"], **facts)
        rows = rows[np.isclose(rows["epsilon"], 0.1)]
        facts["measure"] = "slope of sqrt T times the 90% quantile of the excess on ln T"
        for side in ("drawn", "largest"):
            scaled = rows.assign(scaled=rows[side] * np.sqrt(rows["n_visits"]))
            part = _falling(results, figure, scaled, "n_visits", "scaled", **facts)
            parts[f"sqrt T times its 90% quantile not rising ({kind}, {side})"] = part
    least = (table["bound"] * table["epsilon"]).min()
    text = f"b, which an O hides, is {least:.1f} at least, more than the loss of f = 0."
    return combine("oks-6", parts, text=text)
