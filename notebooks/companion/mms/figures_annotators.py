"""Figures on annotators who disagree and on links (thesis 5.8)."""

from companion.mms import annotators, claims
from companion.plots import mms as draw
from companion.protocol import edges, where
from companion.run.registry import figure
from companion.run.words import enumerated
from cuelearn.core.intervals import interval

SIMULATED = (
    "real samples, simulated votes: one of three annotators guesses, the others have accuracies of "
    f"{annotators.ACCURACY[0]:.0%} to {annotators.ACCURACY[1]:.0%}; each votes on "
    f"{annotators.VOTES_ON:.0%} of the items"
)


def _save(run, row, drawing, table, places):
    size = run.size["annotators"]
    data = sum((annotators.provenance(name) for name in size["names"]), [])
    at_ends = (
        edges(table, {"C": run.size["grid"]}, by=["method", "name"]) or "no C lies at an end of its grid"
    )
    note = (
        f"{SIMULATED}; {size['n_items']} training items, {size['n_test']} test items at most; {places}; "
        f"C chosen in each draw by the posteriors of held-back items; {at_ends}"
    )
    run.save_figure(drawing, row, table, provenance=data, seeds=run.seeds(size), note=note)


def _points(errors, method, rival):
    """A paired difference in points with its interval, in words."""
    mean, low, high = interval(100 * (errors[method] - errors[rival]))
    return f"{mean:+.1f} ({low:.1f} to {high:.1f})"


def _differences(table, method, rival):
    names = table["name"].unique()
    return enumerated([f"{_points(claims.by_draw(table, n), method, rival)} on {n}" for n in names])


@figure("annot-labels", claims=["annot-1", "annot-3"])
def labels_of_annotators(run):
    """Do candidate sets of several annotators train better than one label for each item?"""
    size = run.size["annotators"]
    sweep = (run.sweep, size, run.seeds(size), run.size["grid"], run.size["effort"])
    table = annotators.errors_of_votes(*sweep)
    places = f"candidates: labels with at least {annotators.THRESHOLD:.0%} of the largest posterior"
    _save(run, "annot-labels", draw.errors_of_votes(table), table, places)


@labels_of_annotators.title
def _(results):
    table = results.table("annot-labels")
    return f"""
MMS on the probable labels, against an SVM on Dawid and Skene's labels: test error, in points,
{_differences(table, "MMS", "Dawid-Skene")}."""


@labels_of_annotators.see
def _(results):
    table = results.table("annot-labels")
    few = where(table, n_annotators=table["n_annotators"].min())
    wrong = 100 * few.groupby("method")["label_error"].mean()
    sets = where(few, method="MMS")[["n_candidates", "missing"]].mean()
    with_priors = _differences(table, "MMS priors", "Dawid-Skene")
    return f"""
With {few["n_annotators"].iloc[0]} annotators {wrong["majority vote"]:.0f}% of the majority votes and
{wrong["Dawid-Skene"]:.0f}% of Dawid and Skene's labels are wrong. An item has {sets["n_candidates"]:.1f}
candidates, and {sets["missing"]:.0%} of the sets lack the true label. With priors as in remark 5.1 the
difference of MMS to the SVM on Dawid and Skene's labels is {with_priors}."""


@figure("annot-links", claims=["annot-2", "annot-4"])
def links_within_bags(run):
    """What do must-links and cannot-links within bags add to the votes?"""
    size = run.size["annotators"]
    sweep = (run.sweep, size, run.seeds(size), run.size["grid"], run.size["effort"])
    table = annotators.errors_of_links(*sweep)
    places = (
        f"bags of {annotators.BAG_SIZE} items of two classes, {annotators.LINKED} annotators; candidates: "
        f"labelings with at least {annotators.THRESHOLD:.0%} of the largest posterior; Dawid-Skene labels: "
        "the most probable labeling that obeys the links"
    )
    _save(run, "annot-links", draw.errors_of_links(table), table, places)


def _with_links(results, share=1.0):
    return where(results.table("annot-links"), share=share)


@links_within_bags.title
def _(results):
    table = results.table("annot-links")
    means = 100 * where(table, method="MMS").groupby(["name", "share"])["error"].mean().unstack()
    falls = enumerated(
        [f"from {row[0.0]:.0f} to {row[1.0]:.0f}% on {name}" for name, row in means.iterrows()]
    )
    return f"With all links within bags known the test error of MMS goes {falls}."


@links_within_bags.see
def _(results):
    linked = _with_links(results)
    sets = (
        where(results.table("annot-links"), method="MMS").groupby("share")[["n_candidates", "missing"]].mean()
    )
    return f"""
Links cut the candidates of a bag from {sets["n_candidates"][0.0]:.1f} to {sets["n_candidates"][1.0]:.1f}, and
the share of bags without the true labeling among them from {sets["missing"][0.0]:.0%} to
{sets["missing"][1.0]:.0%}. With all links, MMS minus the SVM on the most probable labelings:
{_differences(linked, "MMS", "Dawid-Skene")} points."""
