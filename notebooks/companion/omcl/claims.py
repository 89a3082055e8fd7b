"""What the claims of the chapter are judged by: the figures' numbers at the end of every permutation.

A permutation draws, from one set of data, the training samples and their order; all methods have the same. So
an interval is about other permutations of these samples, not about other drawings or drives.
"""

from companion.protocol import where
from companion.run.claims import Part, judges

#: Data -> the figure that has its learning curves. Each is a part; of HTAD and IDOL2 the one that was there.
CURVES = {
    "objects": "thesis-fig-3.4",
    "HTAD": "thesis-fig-3.1",
    "IDOL2": "thesis-fig-3.1",
    "categories": "thesis-fig-3.4-categories",
}
#: The thesis' share of ties, and the data on which it is compared.
TIES = {"objects": 0.11, "IDOL2": 0.04}


def at_end(table, value="test_error"):
    """A column of learning curves after the last sample: rows permutations, columns methods."""
    last = table[table["n_seen"] == table.groupby("permutation")["n_seen"].transform("max")]
    return last.pivot(index="permutation", columns="method", values=value)


def _curves(results):
    """Data -> figure, as `CURVES`, of the data that was there."""
    absent = "HTAD" if "IDOL2" in results.about(CURVES["IDOL2"])["data"] else "IDOL2"
    return {name: figure for name, figure in CURVES.items() if name != absent}


def _data(name):
    """Which data a part is on, by the name of a data set in a figure of several."""
    return {"data_from": CURVES[name]} if name in CURVES else {"data_from": "thesis-fig-3.2", "of": name}


def _against_rivals(results, rivals):
    """OMCL-BM's error minus that of the rivals, a pattern of their names, on each set of data."""
    for name, figure in _curves(results).items():
        errors = at_end(results.table(figure))
        for rival in errors.filter(regex=rivals):
            measure = f"error of OMCL-BM minus that of {rival}"
            pair = errors["OMCL-BM"], errors[rival]
            yield Part(f"{name}, {rival}", measure, *pair, at_most=0.0, figure=figure)


@judges("omcl-1")
def omcl_1(results):
    yield from _against_rivals(results, "^cue: ")


@judges("omcl-2")
def omcl_2(results):
    yield from _against_rivals(results, "^(Flat|Flat maps|Vote)$")
    yield "Flat in both readings: one long vector, as the thesis says, and the feature maps of equation 2.1."


@judges("omcl-3", "thesis-fig-3.5")
def omcl_3(results):
    support = at_end(where(results.table("thesis-fig-3.5"), data="objects"), "support")
    errors = at_end(results.table(CURVES["objects"]))
    for method, share in (("OMCL-BM", 0.75), ("OMCL-BM sparser", 0.5)):
        pair = support[method], support["OMCL-PERC"]
        measure = f"support of {method} over OMCL-PERC's"
        says = f"{method}, less than {share:g} of the support"
        yield Part(says, measure, *pair, ratio=True, at_most=share)
        pair = errors[method], errors["OMCL-PERC"]
        measure = f"error of {method} minus OMCL-PERC's (1 point allowed)"
        yield Part(f"{method}, error within 1 point", measure, *pair, at_most=0.01)


@judges("omcl-4", "thesis-fig-3.2")
def omcl_4(results):
    for name, table in results.table("thesis-fig-3.2").groupby("data", sort=False):
        support = at_end(table, "support")
        online = at_end(table, "online_error")["OMCL-PERC"].mean()
        says = f"{name}, where OMCL-PERC errs on {online:.0%} while it learns"
        pair = support["OMCL-BM"], support["OMCL-PERC"]
        close = {"ratio": True, "at_least": 0.8, "at_most": 1.2}
        yield Part(says, "support of OMCL-BM over OMCL-PERC's", *pair, **close, **_data(name))
    yield "Close: within a fifth."


@judges("omcl-5")
def omcl_5(results):
    places = list(_curves(results))[1]
    for name, figure in (("objects", "thesis-fig-3.6"), (places, "thesis-fig-3.3")):
        table = results.table(f"{figure}.runs")
        pair = table["diagonal"], table["off"]
        measure = "mean weight on the diagonals minus mean off them"
        above = {"at_least": 0.0, "relevant": 0.0, "figure": figure}
        yield Part(f"{name}, diagonal above the rest", measure, *pair, **above)
        measure = "share of classes whose largest weight is on a diagonal"
        yield Part(f"{name}, most largest weights", measure, table["rows"], at_least=0.5, figure=figure)


@judges("omcl-6")
def omcl_6(results):
    for name, share in TIES.items():
        if name in _curves(results):
            ties = at_end(results.table(CURVES[name]), "tied")["Vote"]
            says = f"{name}, {share:.0%} and no more than half of it more or less"
            measure = f"share of tied test samples minus the thesis' {share:.0%}"
            half = {"at_least": -(share / 2), "at_most": share / 2}
            yield Part(says, measure, ties - share, **half, figure=CURVES[name])


@judges("omcl-7", "thesis-thm-3.1")
def omcl_7(results):
    """Exact: the bound holds on a sequence or fails."""
    bounds = results.table("thesis-thm-3.1.bounds")
    for name, table in bounds.dropna(subset="bound").groupby("data", sort=False):
        n = table["permutation"].nunique()
        yield Part(name, values=table["measured"], bound=table["bound"], n=n, **_data(name))
    passive = where(bounds, **{"second layer": "PA-I", "quantity": "cumulative loss"})
    below = (passive["measured"] <= passive["best cue"]).sum()
    text = "PA-I's own loss, of which no theorem speaks, is below the best cue's in"
    yield f"{text} {below} of {len(passive)}."


@judges("omcl-8", "thesis-sec-3.3")
def omcl_8(results):
    table = where(results.table("thesis-sec-3.3"), method="OMCL-BM")
    for name, runs in table.groupby("data", sort=False):
        measure = "error of OMCL-BM, averaged minus last"
        yield Part(name, measure, runs["average"], runs["last"], at_most=0.0, **_data(name))
