"""What the claims of the chapter are judged by: the figures' numbers at the end of every permutation.

A permutation draws, from one set of data, the training samples and their order; all methods have the same. So
an interval is about other permutations of these samples, not about other drawings or drives.
"""

from companion.run.claims import combine, judge_bound, judge_mean, judges

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


def _about(results, name):
    """As `Results.about`, of a data set by its name in a figure of several."""
    return results.about(CURVES[name]) if name in CURVES else results.about("thesis-fig-3.2", of=name)


def _against_rivals(results, rivals):
    """OMCL-BM's error minus that of each rival, a part for each set of data; `rivals` of all methods."""
    parts = {}
    for name, figure in _curves(results).items():
        errors = at_end(results.table(figure))
        facts = results.about(figure)
        for rival in rivals(errors.columns):
            facts["measure"] = f"error of OMCL-BM minus that of {rival}"
            difference = judge_mean(results.claim, errors["OMCL-BM"], errors[rival], at_most=0.0, **facts)
            parts[f"{name}, {rival}"] = difference
    return parts


@judges("omcl-1")
def omcl_1(results):
    parts = _against_rivals(results, lambda methods: [m for m in methods if m.startswith("cue: ")])
    return combine("omcl-1", parts)


@judges("omcl-2")
def omcl_2(results):
    parts = _against_rivals(results, lambda methods: ["Flat", "Flat maps", "Vote"])
    note = "Flat in both readings: one long vector, as the thesis says, and the feature maps of equation 2.1."
    return combine("omcl-2", parts, text=note)


@judges("omcl-3")
def omcl_3(results):
    sizes = results.table("thesis-fig-3.5")
    support = at_end(sizes[sizes["data"] == "objects"], "support")
    errors = at_end(results.table(CURVES["objects"]))
    facts = results.about("thesis-fig-3.5")
    perceptron = "OMCL-PERC"
    parts = {}
    for method, share in (("OMCL-BM", 0.75), ("OMCL-BM sparser", 0.5)):
        facts["measure"] = f"support of {method} over OMCL-PERC's"
        ratio = judge_mean("omcl-3", support[method], support[perceptron], ratio=True, at_most=share, **facts)
        parts[f"{method}, less than {share:g} of the support"] = ratio
        facts["measure"] = f"error of {method} minus OMCL-PERC's (1 point allowed)"
        gap = judge_mean("omcl-3", errors[method], errors[perceptron], at_most=0.01, **facts)
        parts[f"{method}, error within 1 point"] = gap
    return combine("omcl-3", parts)


@judges("omcl-4")
def omcl_4(results):
    parts = {}
    for name, table in results.table("thesis-fig-3.2").groupby("data", sort=False):
        support = at_end(table, "support")
        online = at_end(table, "online_error")["OMCL-PERC"].mean()
        facts = _about(results, name) | {"figure": "thesis-fig-3.2"}
        facts["measure"] = "support of OMCL-BM over OMCL-PERC's"
        sizes = support["OMCL-BM"], support["OMCL-PERC"]
        close = judge_mean("omcl-4", *sizes, ratio=True, at_least=0.8, at_most=1.2, **facts)
        parts[f"{name}, where OMCL-PERC errs on {online:.0%} while it learns"] = close
    return combine("omcl-4", parts, text="Close: within a fifth.")


@judges("omcl-5")
def omcl_5(results):
    parts = {}
    places = list(_curves(results))[1]
    for name, figure in (("objects", "thesis-fig-3.6"), (places, "thesis-fig-3.3")):
        table = results.table(f"{figure}.runs")
        facts = results.about(figure, measure="mean weight on the diagonals minus mean off them")
        above = judge_mean("omcl-5", table["diagonal"], table["off"], at_least=0.0, relevant=0.0, **facts)
        parts[f"{name}, diagonal above the rest"] = above
        facts["measure"] = "share of classes whose largest weight is on a diagonal"
        parts[f"{name}, most largest weights"] = judge_mean("omcl-5", table["rows"], at_least=0.5, **facts)
    return combine("omcl-5", parts)


@judges("omcl-6")
def omcl_6(results):
    parts = {}
    for name, share in TIES.items():
        if name not in _curves(results):
            continue
        ties = at_end(results.table(CURVES[name]), "tied")["Vote"]
        measure = f"share of tied test samples minus the thesis' {share:.0%}"
        facts = results.about(CURVES[name], measure=measure)
        close = judge_mean("omcl-6", ties - share, at_least=-(share / 2), at_most=share / 2, **facts)
        parts[f"{name}, {share:.0%} and no more than half of it more or less"] = close
    return combine("omcl-6", parts)


@judges("omcl-7")
def omcl_7(results):
    """Exact: the bound holds on a sequence or fails."""
    bounds = results.table("thesis-thm-3.1.bounds")
    passive = bounds[(bounds["second layer"] == "PA-I") & (bounds["quantity"] == "cumulative loss")]
    below = int((passive["measured"] <= passive["best cue"]).sum())
    parts = {}
    for name, table in bounds.dropna(subset="bound").groupby("data", sort=False):
        facts = _about(results, name) | {"figure": "thesis-thm-3.1", "n": table["permutation"].nunique()}
        parts[name] = judge_bound("omcl-7", table["measured"], table["bound"], **facts)
    n_runs = len(passive)
    note = f"PA-I's own loss, of which no theorem speaks, is below the best cue's in {below} of {n_runs}."
    return combine("omcl-7", parts, text=note)


@judges("omcl-8")
def omcl_8(results):
    parts = {}
    table = results.table("thesis-sec-3.3")
    for name, runs in table[table["method"] == "OMCL-BM"].groupby("data", sort=False):
        facts = results.about(CURVES[name]) | {"figure": "thesis-sec-3.3"}
        facts["measure"] = "error of OMCL-BM, averaged minus last"
        parts[name] = judge_mean("omcl-8", runs["average"], runs["last"], at_most=0.0, **facts)
    return combine("omcl-8", parts)
