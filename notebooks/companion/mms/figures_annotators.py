"""Figures on annotators who disagree and on links (thesis 5.8)."""

from companion.intervals import interval
from companion.mms import annotators, claims
from companion.plots import mms as draw
from companion.plots.common import intervals
from companion.protocol import where
from companion.run.figures import method_style
from companion.run.registry import figure
from companion.run.words import enumerated
from companion.study import edges

SIMULATED = (
    "real samples, simulated votes: a third of the annotators, rounded down, guesses, the others have "
    "accuracies of "
    f"{annotators.ACCURACY[0]:.0%} to {annotators.ACCURACY[1]:.0%}; each votes on "
    f"{annotators.VOTES_ON:.0%} of the items"
)


def _errors(run, experiment):
    """Test errors of all methods in all draws."""
    size = run.size["annotators"]
    return experiment(run.sweep, size, run.seeds(size), size["C"], run.size["effort"])


def _against_labels(table):
    """In points, by data set: test errors of MMS, in both forms, minus those of the SVMs on labels."""
    paired = {}
    for name in table["name"].unique():
        errors = claims.errors_by_draw(table, name)
        for method in ("MMS", "MMS priors"):
            for rival in claims.LABELLED:
                sides = f"{method_style(method)['label']} − {rival}"
                paired[f"{name}: {sides}"] = 100 * (errors[method] - errors[rival])
    return paired


def _save(run, row, drawing, table, paired, places):
    """Save the curves, and a forest of paired differences."""
    size = run.size["annotators"]
    data = sum((annotators.provenance(name) for name in size["names"]), [])
    at_ends = edges(table, {"C": size["C"]}, by=["method", "name"]) or "no C lies at an end of its grid"
    note = (
        f"{SIMULATED}; {size['n_items']} training items, {size['n_test']} test items at most; {places}; "
        f"C chosen in each draw by the posteriors of held-back items; {at_ends}"
    )
    about = {"provenance": data, "seeds": run.seeds(size)}
    run.save_figure(drawing, row, table, note=note, **about)
    forest = intervals(paired)
    shown = forest.rename_axis("difference").reset_index()
    run.save_figure(draw.differences(forest), row, shown, "differences", note=note, **about)


def _differences(table, method):
    """In words, by data set, test errors minus those of an SVM on Dawid and Skene's labels, in points."""
    listed = []
    for name in table["name"].unique():
        errors = claims.errors_by_draw(table, name)
        mean, low, high = interval(100 * (errors[method] - errors["Dawid-Skene"]))
        listed.append(f"{mean:+.1f} ({low:.1f} to {high:.1f}) on {name}")
    return enumerated(listed)


@figure("annot-labels", claims=["annot-1", "annot-3"])
def labels_of_annotators(run):
    """Do candidate sets of several annotators train better than one label for each item?"""
    table = _errors(run, annotators.errors_of_votes)
    places = f"candidates: labels with at least {annotators.THRESHOLD:.0%} of the largest posterior"
    drawing = draw.errors_by(table, "n_annotators", "number of annotators")
    _save(run, "annot-labels", drawing, table, _against_labels(table), places)


@labels_of_annotators.facts
def _(results):
    table = results.table()
    few = where(table, n_annotators=table["n_annotators"].min())
    return {
        "mms": _differences(table, "MMS"),
        "with_priors": _differences(table, "MMS priors"),
        "n": few["n_annotators"].iloc[0],
        "wrong": 100 * few.groupby("method")["label_error"].mean(),
        "sets": where(few, method="MMS")[["n_candidates", "missing"]].mean(),
    }


labels_of_annotators.title("""
Test error of MMS on the probable labels minus that of an SVM on Dawid and Skene's labels, in points:
{mms}.""")
labels_of_annotators.see("""
With {n} annotators {wrong[majority vote]:.0f}% of the majority votes and {wrong[Dawid-Skene]:.0f}% of Dawid
and Skene's labels are wrong. An item has {sets[n_candidates]:.1f} candidates, and {sets[missing]:.0%} of the
sets lack the true label. With priors as in remark 5.1 the difference of MMS to the SVM on Dawid and Skene's
labels is {with_priors}.""")


@figure("annot-links", claims=["annot-2", "annot-4"])
def links_within_bags(run):
    """What do must-links and cannot-links within bags add to the votes?"""
    table = _errors(run, annotators.errors_of_links)
    places = (
        f"bags of {annotators.BAG_SIZE} items of two classes, {annotators.LINKED} annotators; candidates: "
        f"labelings with at least {annotators.THRESHOLD:.0%} of the largest posterior; Dawid-Skene labels: "
        "the most probable labeling that obeys the links"
    )
    shares = table.assign(known=100 * table["share"])
    drawing = draw.errors_by(shares, "known", "pairs of a bag whose link is known (%)")
    linked, free = (where(table, share=share) for share in (1.0, 0.0))
    paired = _against_labels(linked)
    for name in table["name"].unique():
        gain = claims.errors_by_draw(linked, name)["MMS"] - claims.errors_by_draw(free, name)["MMS"]
        paired[f"{name}: MMS, all links − none"] = 100 * gain
    _save(run, "annot-links", drawing, table, paired, places)


@links_within_bags.facts
def _(results):
    table = results.table()
    rows = where(table, method="MMS")
    errors = 100 * rows.groupby(["name", "share"])["error"].mean().unstack()
    changes = [f"from {row[0.0]:.0f} to {row[1.0]:.0f}% on {name}" for name, row in errors.iterrows()]
    sets = rows.groupby("share")[["n_candidates", "missing"]].mean()
    return {
        "changes": enumerated(changes),
        "free": sets.loc[0.0],
        "linked": sets.loc[1.0],
        "mms": _differences(where(table, share=1.0), "MMS"),
    }


links_within_bags.title("With all links within bags known the test error of MMS goes {changes}.")
links_within_bags.see("""
Links change the candidates of a bag from {free[n_candidates]:.1f} to {linked[n_candidates]:.1f}, and the
share of bags without the true labeling among them from {free[missing]:.0%} to {linked[missing]:.0%}. With all
links, MMS minus the SVM on Dawid and Skene's labelings that obey the links, in points: {mms}.""")
