"""Figures and tables of the MMS chapter."""

from functools import cache

import pandas as pd
from scipy.stats import gmean

from companion import mms as experiments
from companion.mms import annotators, claims, naming
from companion.mms.naming import GROUPS, by_draw
from companion.plots import mms as draw
from companion.plots.common import intervals
from companion.protocol import grid_points, load_set, original, printed, where
from companion.run.figures import enumerated, extremes, name_of, than
from companion.run.registry import figure
from companion.study import edges, interval
from cuelearn.datasets import Provenance
from cuelearn.datasets.captioned import FACE_CUES

ITEMS = (
    "a face is a drawing of the thing that the person is, a body (dashed) is clothing turned by what the "
    "person does; items with animals were preferred; grey: excluded by indicators; names and captions are "
    "invented"
)


@cache
def names_of(run):
    """The data sets that are made ambiguous: bundled ones, or the thesis's own where they are present."""
    names = list(run.size["artificial"]["names"])
    for bundled, own in {"mnist": "usps", "satimage": "covtype"}.items():
        if original(run, own, f"{bundled} in its place.") is not None:
            names = [own if name == bundled else name for name in names]
    return names


def sets_of(names):
    return [load_set(name) for name in names]


@cache
def real_labels(run):
    """Real ambiguous labels by data set, those that are present; only of original data."""
    found = {name: original(run, name) for name in claims.AMBIGUOUS}
    return {name: data for name, data in found.items() if data is not None}


@cache
def news(run):
    """The composed corpus of protocol I."""
    size = run.size["naming"]
    return naming.corpus(run.seed, size["n_items"], size["n_names"], "I")


@cache
def posed(run):
    """The composed corpus of persons with a face and a body."""
    size = run.size["poses"]
    return naming.posed(run.seed, size["n_items"], size["n_test"], size["n_names"])


def _save_items(run, row, data, *numbers):
    """Items of a corpus: their captions, who is pictured, and how many labelings are candidates."""
    captions = [data.captions[i] for i in numbers]
    truth = [", ".join(data.truth()[data.rows([i])]) for i in numbers]
    table = pd.DataFrame({"item": numbers, "caption": captions, "truth": truth})
    table["candidates"] = [draw.read_item(data, i).n_candidates for i in numbers]
    run.save_figure(draw.items(data, *numbers), row, table, provenance=[data], note=ITEMS)


@cache
def two_persons(run):
    """The first item of two named persons who do different things."""
    for number, item in draw.examples(posed(run), n_faces=2, n_names=2):
        if len({verb for _, verb in item.words if verb}) == 2:
            return number
    raise ValueError("the corpus has no item of two named persons who do different things")


@figure("thesis-fig-5.1")
def captioned_items(run):
    """What are a captioned picture and its candidate labeling set?"""
    singles = draw.examples(posed(run), n_faces=1, n_names=2)
    alone = next(number for number, item in singles if sum(verb > 0 for _, verb in item.words) == 1)
    _save_items(run, "thesis-fig-5.1", posed(run), two_persons(run), alone)


captioned_items.facts(lambda results: {**results.table().iloc[-1]})
captioned_items.title("""
The last caption leaves {candidates} labelings of the face; other faces of {truth} show which is right.""")


@figure("thesis-fig-5.1-people")
def people_of_the_corpus(run):
    """Who is easily taken for whom?"""
    data = posed(run)
    note = "emoji; items are split, not drawings; the animals most often pictured"
    shows = "things in the part of people: several drawings of each"
    table = naming.most_similar(data)
    drawing = draw.people(data)
    run.save_figure(drawing, "thesis-fig-5.1", table, "people", provenance=[data], note=note, shows=shows)


@people_of_the_corpus.facts
def _(results):
    table = results.table()
    colour, shape = [(table[f"like by {cue}"] == table["name"]).mean() for cue in FACE_CUES]
    return {"n": len(table), "colour": colour, "shape": shape}


people_of_the_corpus.title("""
The most similar training face is of the right person for {colour:.0%} of {n} test faces by colour, for
{shape:.0%} by shape.""")


@figure("thesis-fig-5.1-captions")
def captions_of_the_thesis(run):
    """Which candidates do the thesis's own captions allow?"""
    source = "Jie Luo, EPFL thesis 5233 (2011), figures 5.1 to 5.5"
    quoted = Provenance("captions of the thesis", "original", "quoted", None, source, "the thesis")
    shown = [draw.read_printed(kept) for kept in draw.THESIS]
    sizes = [(item.n_candidates, item.n_free) for item in shown]
    table = pd.DataFrame(sizes, columns=["candidates", "without indicators"])
    table.insert(0, "figure", [kept["title"] for kept in draw.THESIS])
    note = "the thesis's captions, read by candidates_from_caption as if faces stood side by side"
    drawing = draw.thesis_captions(shown)
    run.save_figure(drawing, "thesis-fig-5.1", table, "captions", provenance=[quoted], note=note)


@captions_of_the_thesis.facts
def _(results):
    table = results.table()
    allowed = table["candidates"]
    return {"least": allowed.min(), "most": allowed.max(), "free": table["without indicators"].max()}


captions_of_the_thesis.title("""
The thesis's captions allow {least} to {most} labelings; without the indicator "middle" one would allow
{free}.""")


@figure("thesis-fig-5.2")
def caption_indicators(run):
    """Which candidates do spatial indicators such as "(L)" rule out?"""
    examples = draw.examples(news(run), n_faces=3, n_names=3)
    indicated = [(number, item) for number, item in examples if item.n_candidates < item.n_free]
    number, _ = min(indicated, key=lambda example: example[1].n_candidates == 1)
    _save_items(run, "thesis-fig-5.2", news(run), number)


def _people(results):
    """Who is pictured in the first item, how many these are, and the number of candidates."""
    item = results.table().iloc[0]
    people = item["truth"]
    return {**item, "people": people.replace(", ", ", which "), "n": people.count(",") + 1}


caption_indicators.facts(_people)
caption_indicators.title(
    "{n} faces, {n} names and an indicator: it leaves {candidates} candidates and rules out those in grey."
)


@figure("thesis-fig-5.4")
def possible_names(run):
    """Which names may two faces have?"""
    examples = draw.examples(news(run), n_faces=2, n_names=2)
    number = next(number for number, item in examples if item.n_candidates == item.n_free)
    _save_items(run, "thesis-fig-5.4", news(run), number)


possible_names.facts(_people)
possible_names.title(
    "Which face is {people}? {candidates} answers are possible, other faces of the two show which is right."
)


@figure("thesis-fig-5.5")
def possible_names_and_verbs(run):
    """Which names and verbs may two persons have?"""
    _save_items(run, "thesis-fig-5.5", posed(run), two_persons(run))


possible_names_and_verbs.facts(_people)
possible_names_and_verbs.title("""
Which person is {people}, and what do they do? {candidates} answers are possible, other faces of the two show
which is right.""")


@figure("thesis-alg-10-counts")
def number_of_candidates(run):
    """How fast do candidate sets grow with the number of faces and names?"""
    table = experiments.counts(6)
    note = "candidate vectors; the thesis's sum (printed) lacks j! and counts the labeling of null alone"
    run.save_table(table, "thesis-alg-10", "counts", provenance=[experiments.RANDOM_BAGS], note=note)


@number_of_candidates.facts
def _(results):
    table = results.table()
    two = where(table, faces=2, names=2).iloc[0]
    return {"two": two["listed"], "most": table.loc[table["listed"].idxmax()]}


number_of_candidates.title("""
Two faces and two names have {two} candidate labelings, {most[faces]} faces and {most[names]} names
{most[listed]:,}.""")


@figure("thesis-alg-10-shares")
def random_scores(run):
    """How often does Algorithm 10 find the most violating labeling if scores are random?"""
    names = {"kind": "names", "n_labels": 200}
    kinds = {
        "names: 2 faces, 2 of 200 names known": {**names, "n_instances": 2, "n_known": 3},
        "names: 4 faces, 4 of 200 names known": {**names, "n_instances": 4, "n_known": 5},
        "vectors: 3 instances, 6 labels, L = 10": {"n_instances": 3, "n_labels": 6},
        "vectors: 5 instances, 4 of 10 labels, L = 20": {
            "n_instances": 5,
            "n_labels": 10,
            "n_known": 4,
            "n_candidates": 20,
        },
    }
    rows = grid_points(sets=kinds, lead=(0.0, 2.0))
    common = {"n_bags": run.size["search"]["n_bags"], "seed": run.seed}
    points = [{**common, "lead": row["lead"], **kinds[row["sets"]]} for row in rows]
    shares = pd.DataFrame(run.sweep("search").run(experiments.search_shares, points))
    note = (
        "same: share of bags where Algorithm 10 finds the exact value; largest, mean: shortfall; lost: share "
        "of the losses that it does not see; above (impossible): its value is larger; lead: added to the "
        "scores of one candidate's labels"
    )
    table = pd.DataFrame(rows).join(shares)
    run.save_table(table, "thesis-alg-10", "shares", provenance=[experiments.RANDOM_BAGS], note=note)


@random_scores.facts
def _(results):
    table = results.table()
    of_names = table["sets"].str.startswith("names")
    return {
        "names": table.loc[of_names, "same"].agg(["min", "max"]),
        "vectors": table.loc[~of_names, "same"].agg(["min", "max"]),
        "worst": table.loc[table["same"].idxmin()],
    }


random_scores.title("""
With random scores Algorithm 10 is exact in {names[min]:.1%} to {names[max]:.1%} of the bags with names,
{vectors[min]:.0%} to {vectors[max]:.0%} of the others.""")
random_scores.see("""
A competitor with a name that the caption lacks has the same loss in both searches.
The smallest share, {worst[same]:.0%}, is that of "{worst[sets]}", with a mean shortfall of
{worst[mean]:.2f}.""")


@figure("thesis-alg-10-trained", claims="mms-5")
def trained_scores(run):
    """How often is Algorithm 10 exact once classifiers are trained, and what does a miss cost?"""
    size = run.size["search"]["trained"]
    table = naming.searches(run.sweep, size, run.seed, run.size["effort"])
    made = f"make_captioned({size['n_items']}, n_names={size['n_names']}, random_state={run.seed}) and others"
    data = [*sets_of(size["names"]), news(run).provenance._replace(source=made)]
    note = (
        f"MMS, C = 1, trained and tested with either search; names: protocol I, {size['n_items']:,} items, "
        f"names of {size['occurrences']} occurrences and more, training items of up to {naming.MOST_FACES} "
        f"faces and {naming.MOST_CANDIDATES} candidates; same: of every fifth item"
    )
    run.save_table(table, "thesis-alg-10", "trained", provenance=data, note=note)
    for name, labels in real_labels(run).items():
        points = grid_points(fold=range(len(labels.folds)), name=[name], effort=[run.size["effort"]])
        folds = run.sweep("each-search").frame(naming.partial_with_each_search, points, data=labels)
        table = folds[["fold", "inference", "accuracy", "same", "compared"]]
        note = "real ambiguous labels, bags of one instance, five folds"
        run.save_table(table, "thesis-alg-10", f"trained-{name}", provenance=[labels], note=note)


@trained_scores.facts
def _(results):
    means = results.table().pivot_table(["same", "accuracy"], index="sets", columns="inference")
    same = means["same", "heap"]
    change = 100 * (means["accuracy", "exact"] - means["accuracy", "heap"])
    return {"names": same["names"], "change": change.agg(["min", "max"])}


trained_scores.title("With trained scores Algorithm 10 is exact for {names:.0%} of the items with names.")
trained_scores.see("""
A wrong answer can *swap* labels within the bag: counted slot by slot, a swap has no loss.
The exact search changes test accuracy by {change[min]:+.1f} to {change[max]:+.1f} points.""")


@figure("infer-methods", claims=["infer-1", "infer-2", "infer-3"])
def proven_searches(run):
    """What does a proven search for the most violating labeling bring, and what does it cost?"""
    size = run.size["inference"]
    seeds = run.seeds(size)
    table = naming.inferences(run.sweep, size, run.size["naming"], seeds, run.size["effort"])
    note = (
        f"MMS, C = 1, gap of 5%, at most {run.size['effort']['n_epochs']} passes a round; bags of five with "
        "20 wrong vectors; partial labels: one sample a bag, up to four labels each; captions: protocol I; "
        "missed: at the scores after Algorithm 10; objective of all by the exact search"
    )
    drawing = draw.searches(_by_search(table))
    data = [*sets_of(size["names"]), news(run)]
    run.save_figure(drawing, "infer-methods", table, provenance=data, seeds=seeds, note=note)


def _by_search(table):
    """`by_draw` of each group, by its label."""
    return {label: by_draw(table[table["group"] == group]) for group, label in GROUPS.items()}


@proven_searches.facts
def _(results):
    groups = _by_search(results.table())
    missed = {label: draws["missed", "algorithm-10"].mean() for label, draws in groups.items()}
    objective = groups[GROUPS["bags"]]["objective"]
    lines = []
    for label, draws in groups.items():
        change = 100 * (draws["accuracy", "exact"] - draws["accuracy", "algorithm-10"]).mean()
        times = gmean(draws["seconds", "exact"] / draws["seconds", "algorithm-10"])
        lines.append(f"{label}: accuracy {change:+.1f} points, CPU seconds times {times:.1f}")
    proven = min(draws["proven", "exact"].min() for draws in groups.values())
    return {
        "missed": missed,
        "change": (objective["exact"] / objective["algorithm-10"]).mean() - 1,
        "proven": "all" if proven == 1.0 else f"at least {proven:.1%} of the",
        "lines": "; ".join(lines),
    }


proven_searches.title("""
Algorithm 10 misses the most violating labeling in {missed[bags made ambiguous]:.0%} of the bags made
ambiguous and {missed[captioned items]:.0%} of the captioned items; training with proven ones changes the
objective of the former by {change:+.0%}.""")
proven_searches.see("""
The exact search proves its answer in {proven} bags. Exact search against Algorithm 10: {lines}. With one
sample a bag all searches are the same.""")


@figure("thesis-fig-5.3", claims=["mms-1", "mms-2", "mms-3", "mms-11"])
def growing_ambiguity(run):
    """How close does MMS come to an SVM that knows every label, and do other methods come as close?"""
    size = run.size["artificial"]
    grid = run.size["grid"]
    seeds = run.seeds(size)
    data = sets_of(names_of(run))
    every = experiments.curves(run.sweep, names_of(run), seeds, size, grid, run.size["effort"])
    table = claims.compared(every)
    at_ends = edges(table, {"C": grid}, by=["method", "name"])
    note = (
        f"real samples, made ambiguous; MNIST averaged to 14 x 14 pixels; {size['n_bags']} bags of five; "
        f"{size['n_test']} test samples at most; {experiments.VALIDATED}, at L = 20, partners and "
        f"look-alikes 25%; {at_ends or 'no C lies at an end of its grid'}; in the table alone, at L = 20 in "
        f"{size['beside']} of the draws of {', '.join(names_of(run)[: size['beside_sets']])}: MMS with its "
        "defaults and the same C, MIMLSVM by the farthest instance of each medoid"
    )
    drawing = draw.accuracy_curves(table)
    run.save_figure(drawing, "thesis-fig-5.3", every, provenance=data, seeds=seeds, note=note)


@growing_ambiguity.facts
def _(results):
    every = results.table()
    right = 100 * every.groupby("method")["accuracy"].mean()
    as_run, defaults = 100 * claims.beside(every, "MMS").mean()
    chosen, farthest = 100 * claims.beside(every, "MIMLSVM").mean()
    return {
        "right": right,
        "rival": right[list(claims.RIVALS)].max(),
        "change": -100 * claims.falls(claims.compared(every), "n_candidates").mean(),
        "chosen": chosen,
        "farthest": farthest,
        "defaults": defaults - as_run,
    }


growing_ambiguity.title("""
MMS labels {right[MMS]:.0f}% of the test samples correctly, an SVM that knows all labels
{right[MC-SVM]:.0f}%, the best rival {rival:.0f}%.""")
growing_ambiguity.see("""
Over all settings M3MIML labels {right[M3MIML]:.1f}% correctly, CL-SVM {right[CLSVM]:.1f}%, MIMLSVM
{right[MIMLSVM]:.1f}%. From the smallest $L$ to the largest the accuracy of MMS changes by
{change[MMS]:+.1f} points, that of CL-SVM by {change[CLSVM]:+.1f}. MIMLSVM compares an instance with
typical bags (medoids), by the nearest instance of a bag or, as in its authors' program, by the farthest. We
choose by validation accuracy ({chosen:.1f}% at L = 20; always the farthest: {farthest:.1f}%). Here
MMS stops at a gap of 5% and searches by Algorithm 10. At L = 20 the package's defaults change its accuracy by
{defaults:+.1f} points.""")


@figure("thesis-alg-8", claims="mms-4")
def round_by_round(run):
    """What do the rounds of the concave-convex procedure bring?"""
    size = run.size["rounds"]
    seeds = run.seeds(size)
    beside = seeds[: size["beside"]]
    names = [name for name in names_of(run) if name in (*size["names"], "usps")]
    data = sets_of(names)

    def points(draws, **made):
        hard = {"n_test": 2000, "p_correlated": 0.25, "p_ambiguous": 0.25}
        return [{**draw, **hard, **made} for draw in grid_points(name=names, seed=draws)]

    sweep = run.sweep("rounds")
    many = {"n_bags": size["n_bags"], "n_candidates": size["L"], "n_epochs": size["n_epochs"]}
    every = points(seeds, solver="frank-wolfe", **many) + points(beside, solver="pegasos", **many)
    table = sweep.frame(experiments.by_round, every, data=data)
    n_few = run.size["search"]["trained"]["n_bags"]
    few = {**many, "n_bags": n_few, "n_candidates": 10, "inference": "exact"}
    few = points(beside, solver="frank-wolfe", **few)
    exact = sweep.frame(experiments.by_round, few, data=data)
    note = (
        f"L = {size['L']}, partners and look-alikes 25%, C = 1, at most {size['n_epochs']} passes a "
        f"round; a run that has ended keeps its last values; Pegasos and exact: {size['beside']} of the "
        f"draws; exact: with that search, {n_few} bags, L = 10"
    )
    tables = {"": table, "exact": exact}
    run.save_figure(draw.rounds(table), "thesis-alg-8", tables, provenance=data, seeds=seeds, note=note)


@round_by_round.facts
def _(results):
    rounds = results.table()
    runs = claims.ends(rounds)
    gains = 100 * runs.groupby("name", sort=False)["gain"].mean()
    return {
        "settled": runs["settled"].mean(),
        "gain": 100 * runs["gain"].mean(),
        "wrong": rounds["n_candidates"].iloc[0],
        "gains": ", ".join(f"{gain:+.0f} on {name}" for name, gain in gains.items()),
        "rises": claims.rises(results.table("thesis-alg-8.exact")),
    }


round_by_round.title("""
On average the objective settles after {settled:.1f} rounds; after the first round accuracy changes by
{gain:+.0f} points.""")
round_by_round.see("""
The first round averages over all candidates, {wrong} wrong ones among them. Change of accuracy after the
first round, in points: {gains}. With the answers of Algorithm 10 the objective may rise; with the exact
search {rises}.""")


def _measured(run, label, proposition, **more):
    """A proposition on every data set and seed; `more` are further parameters. And what the runs were of."""
    size = run.size["bound"]
    names = ["usps" if "usps" in names_of(run) and name == "mnist" else name for name in size["names"]]
    options = {"solver": "frank-wolfe", "tol": 0.05, "inference": "algorithm-10", **run.size["effort"]}
    common = {"n_train": 5 * size["n_bags"], "mms": options, **more}
    data = sets_of(names)
    seeds = run.seeds(size)
    points = [point | common for point in grid_points(task=names, seed=seeds)]
    table = run.sweep(label).frame(proposition, points, data=data)
    return table, {"provenance": data, "seeds": seeds}


@figure("thesis-prop-5.2", claims="mms-9")
def true_loss(run):
    """Does the ambiguous loss bound the number of wrong labels, for good and for bad classifiers?"""
    made = {"n_fresh": 3 * run.size["bound"]["n_bags"], "n_candidates": 5, "n_bootstrap": 100}
    table, about = _measured(run, "proposition-5.2", experiments.proposition_5_2, **made)
    table = table.drop(columns="mms")
    note = "L = 5, partners and look-alikes 25%; a point per classifier and seed, fresh bags"
    drawing = draw.bound(where(table, part="fresh"))
    run.save_figure(drawing, "thesis-prop-5.2", table, note=note, **about)


@true_loss.facts
def _(results):
    fresh = where(results.table(), part="fresh")
    ratio = fresh.groupby("classifier")["ratio"].max()
    return {"below": (fresh["ratio"] <= 1).mean(), "ratio": ratio, **extremes(ratio)}


true_loss.title("On fresh bags the true loss is at most {most:.2f} of the bound of proposition 5.2.")
true_loss.see("""
{below:.0%} of the points lie on the side of the line that the bound allows. The nearest to it is one of
{most_of} ({most:.2f} of the bound; MMS {ratio[MMS]:.2f}). The proposition does not cover training bags:
there a memoriser of one candidate per bag has no ambiguous loss at all.""")


@figure("thesis-prop-5.3", claims="mms-10")
def surrogate_loss(run):
    """Is the surrogate loss ever below the ambiguous loss of the prediction?"""
    made = {"n_candidates": 20, "n_bags": run.size["bound"]["n_bags"]}
    table, about = _measured(run, "proposition-5.3", experiments.proposition_5_3, **made)
    counts = ["n_bags", "below_exact", "below_heap", "below_slots"]
    table = table.groupby(["task", "weights"], sort=False)[counts].sum().reset_index()
    note = (
        "bags whose surrogate loss, exact or by Algorithm 10 (heap), is below their ambiguous loss, or by "
        "Algorithm 10 below the loss counted slot by slot (slots); summed over seeds and scales of "
        "the hyperplanes"
    )
    run.save_table(table, "thesis-prop-5.3", note=note, **about)


@surrogate_loss.facts
def _(results):
    counts = results.table().sum(numeric_only=True)
    return {**counts, "slots": counts["below_slots"] or "none"}


surrogate_loss.title(
    "With the exact search the surrogate is below the ambiguous loss in {below_exact} of {n_bags:,} bags."
)
surrogate_loss.see("""
The proposition says none. With Algorithm 10 the surrogate is below it in {below_heap} bags, but below the
loss counted slot by slot, which is what the proof of 5.2 needs, in {slots}.""")


#: Table -> protocol and what is measured.
TABLES = {
    "thesis-tab-5.1": ("I", "assignment"),
    "thesis-tab-5.2": ("I", "recognition"),
    "thesis-tab-5.3": ("II", "assignment"),
    "thesis-tab-5.4": ("II", "recognition"),
}
#: Methods that are compared on real ambiguous labels.
COMPARED = ["RANDOM", "CLSVM", "MIMLSVM", "M3MIML", "MMS", "1vA-SVM", "MC-SVM"]


@cache
def on_every_corpus(run):
    """All methods of both protocols, corpus by corpus."""
    size = run.size["naming"]
    return naming.protocols(run.sweep, size, run.seeds(size), run.size["grid"], run.size["effort"])


def corpora_of(run, *protocols):
    """Where the first corpus of each protocol comes from."""
    size = run.size["naming"]
    common = {"seed": run.seed, "n_items": size["n_items"], "n_names": size["n_names"]}
    points = [{**common, "protocol": protocol} for protocol in protocols]
    return run.sweep("corpora").run(naming.provenance_of, points)


@cache
def partial_labels(run):
    """Of `real_labels` by data set: its data, all methods fold by fold."""
    results = {}
    common = {"methods": COMPARED, "grid": list(run.size["grid"]), "effort": run.size["effort"]}
    for name, data in real_labels(run).items():
        points = [{"fold": fold, "name": name, **common} for fold in range(len(data.folds))]
        results[name] = data, run.sweep("partial").frame(naming.partial_labels, points, data=data)
    return results


def _naming_tables(run, row):
    """Means of a table with the thesis's beside, the runs by which claims are judged, and real labels."""
    protocol, column = TABLES[row]
    size = run.size["naming"]
    table = on_every_corpus(run)
    runs = table[table["protocol"] == protocol]
    seeds = runs["seed"].unique().tolist()
    at_ends = edges(runs, {"C": run.size["grid"]}, by="method")
    note = (
        f"{column} in percent, sd over {len(seeds)} composed corpora (the paper's: over 5 splits); "
        f"{size['n_items']} items and {size['n_names']} identities (the thesis's corpus: 20,071 items); "
        f"{experiments.VALIDATED}; {at_ends or 'no C lies at an end of its grid'}"
    )
    how = {"provenance": corpora_of(run, protocol), "seeds": seeds, "note": note, "digits": 3}
    paper = printed(row).set_index("method")
    means = naming.as_printed(table, protocol, column).set_index("method")
    means = means[means.index.isin(paper.index)]
    run.save_table(means, row, paper=paper.loc[means.index], **how)
    if column == "assignment":
        columns = ["protocol", "seed", "method", "assignment", "recognition"]
        columns += ["n_names", "n_train", "n_test", "null"]
        run.save_table(runs[columns], row, "runs", **how)
    if protocol != "I":
        return
    note = "real ambiguous labels, bags of one instance, five folds; in percent"
    for name, (data, folds) in partial_labels(run).items():
        rows = folds.dropna(subset=column).groupby("method", sort=False)[column]
        means = rows.agg(["mean", "std"]).mul(100).reset_index()
        tables = {"": means, "runs": folds} if column == "assignment" else means
        run.save_table(tables, row, name, provenance=[data], digits=3, note=note)


#: Methods that titles list, by protocol.
LISTED = {
    "I": {"MMS": "MMS", "MIMLSVM": "MIMLSVM", "CLSVM": "CL-SVM"},
    "II": {"MMS": "MMS without indicators", "MMS positions": "with them"},
}
NAMED_RIGHT = "{} faces (emoji) named correctly, in brackets the thesis's: {{shares}}."


def _named_right(results):
    """Our percentages, and in words our number and the thesis's of the methods in `LISTED`."""
    protocol, _ = TABLES[results.claim]
    table = results.table().set_index("method")
    shares = [
        f"{label} {table.loc[method, 'accuracy']:.0f}% ({table.loc[method, 'paper: accuracy']:.0f}%)"
        for method, label in LISTED[protocol].items()
        if method in table.index
    ]
    return {"shares": enumerated(shares), "right": table["accuracy"]}


@figure("thesis-tab-5.1", claims="mms-6")
def names_in_training(run):
    """Protocol I: how many training faces get their right name within the caption?"""
    _naming_tables(run, "thesis-tab-5.1")


names_in_training.facts(_named_right)
names_in_training.title(NAMED_RIGHT.format("Training"))


@figure("thesis-tab-5.2")
def names_of_new_faces(run):
    """Protocol I: how many test faces are recognised without a caption?"""
    _naming_tables(run, "thesis-tab-5.2")


names_of_new_faces.facts(_named_right)
names_of_new_faces.title(NAMED_RIGHT.format("Test"))


@figure("thesis-tab-5.3", claims="mms-7")
def indicators_in_training(run):
    """Protocol II: do spatial indicators help to name the training faces?"""
    _naming_tables(run, "thesis-tab-5.3")


@indicators_in_training.facts
def _(results):
    named = _named_right(results)
    right = named["right"]
    gains = {method: right[f"{method} positions"] - right[method] for method in ("MMS", "RANDOM")}
    return named | {"gain": gains}


indicators_in_training.title(NAMED_RIGHT.format("Training"))
indicators_in_training.see("""
Indicators change the share that MMS names correctly by {gain[MMS]:+.1f} points, that of RANDOM by
{gain[RANDOM]:+.1f}.""")


@figure("thesis-tab-5.4")
def indicators_and_new_faces(run):
    """Protocol II: do indicators in training help to recognise test faces?"""
    _naming_tables(run, "thesis-tab-5.4")


indicators_and_new_faces.facts(_named_right)
indicators_and_new_faces.title(NAMED_RIGHT.format("Test"))


@figure("thesis-tab-5.3-objective")
def objective_of_truth(run):
    """Would a better search for the minimum name more faces right?"""
    size = run.size["naming"]
    points = [
        {"seed": seed, **naming.made_of(size, protocol)}
        for protocol in ("I", "II")
        for seed in run.seeds(size)[:2]
    ]
    table = run.sweep("objective-at-truth").frame(naming.objective_at_truth, points)
    note = (
        "objective (5.3), C = 10, of the hyperplanes that MMS finds and of those trained with the truth, on "
        "the same sets; shares of training faces named correctly by either"
    )
    data = corpora_of(run, "I", "II")
    run.save_table(table, "thesis-tab-5.3", "objective", provenance=data, note=note)


@objective_of_truth.facts
def _(results):
    mean = where(results.table(), protocol="II").mean(numeric_only=True)
    return {**mean, "word": than(mean["found"], mean["truth"], "below")}


objective_of_truth.title("""
In protocol II the objective of MMS ({found:.2f}) is {word} that of hyperplanes trained on the truth
({truth:.2f}).""")
objective_of_truth.see("""
On protocol II MMS names {assignment_found:.0%} of the training faces right, the hyperplanes trained on the
truth {assignment_truth:.0%}.""")


@figure("thesis-fig-5.6", claims="mms-8")
def names_and_verbs(run):
    """Do names and verbs help each other if they are modelled jointly?"""
    size = run.size["poses"]
    seeds = run.seeds(size)
    table = naming.all_models(run.sweep, size, seeds, run.size["effort"])
    by = ["method", "modelled"]
    grids = {
        "MMS": {"C": size["C"], "width": size["widths"]},
        "DistNaming": {"width": naming.DIST_WIDTHS},
        "GMMNaming": {"components": naming.COMPONENTS},
    }
    at_ends = [edges(where(table, method=method), grid, by=by) for method, grid in grids.items()]
    note = (
        f"{size['n_items']} items, {size['n_test']} of them test items, of {size['n_names']} emoji things; "
        f"hollow: one attribute alone, filled: both; {experiments.VALIDATED}; "
        f"{'; '.join(filter(None, at_ends)) or 'none at an end of its grid'}"
    )
    drawing = draw.joint_models(table)
    run.save_figure(drawing, "thesis-fig-5.6", table, provenance=[posed(run)], seeds=seeds, note=note)


@names_and_verbs.facts
def _(results):
    table = results.table()
    table["joint"] = table["modelled"] == "both"
    percent = 100 * table.pivot_table(["assignment", "recognition"], ["joint", "method"])
    single, joint = percent.loc[False], percent.loc[True]
    mms = joint.loc["MMS"]
    return {"mms": mms, "gain": mms - single.loc["MMS"], "dist": joint.loc["DistNaming"]}


names_and_verbs.title("""
Modelling names and verbs jointly changes the assignment of MMS by {gain[assignment]:+.1f} points, its
recognition by {gain[recognition]:+.1f}.""")
names_and_verbs.see("""
DIST assigns {dist[assignment]:.0f}% of the training items right, MMS {mms[assignment]:.0f}%. DIST compares
with single drawings: of drawings never seen it recognises {dist[recognition]:.0f}%, MMS
{mms[recognition]:.0f}%.""")


# --- annotators who disagree, and links (thesis 5.8) --------------------------------------------------------

SIMULATED = (
    "real samples, simulated votes: a third of the annotators, rounded down, guesses, the others have "
    f"accuracies of {annotators.ACCURACY[0]:.0%} to {annotators.ACCURACY[1]:.0%}; each votes on "
    f"{annotators.VOTES_ON:.0%} of the items"
)


def _errors(run, experiment):
    size = run.size["annotators"]
    return experiment(run.sweep, size, run.seeds(size), size["C"], run.size["effort"])


def _against_labels(table):
    """In points, by data set: test errors of MMS, in both forms, minus those of the SVMs on labels."""
    paired = {}
    for name in table["name"].unique():
        errors = claims.errors_by_draw(table, name)
        for method in ("MMS", "MMS priors"):
            for rival in claims.LABELLED:
                sides = f"{name_of(method)} − {rival}"
                paired[f"{name}: {sides}"] = 100 * (errors[method] - errors[rival])
    return paired


def _save_votes(run, row, drawing, table, paired, places):
    """Save the curves, and a forest of paired differences."""
    size = run.size["annotators"]
    data = sum((annotators.provenance(name) for name in size["names"]), [])
    at_ends = edges(table, {"C": size["C"]}, by=["method", "name"]) or "no C lies at an end of its grid"
    note = (
        f"{SIMULATED}; {size['n_items']} training items, {size['n_test']} test items at most; {places}; "
        f"C chosen in each draw by the posteriors of held-back items; {at_ends}"
    )
    about = {"provenance": data, "seeds": run.seeds(size), "note": note}
    run.save_figure(drawing, row, table, **about)
    forest = intervals(paired)
    shown = forest.rename_axis("difference").reset_index()
    run.save_figure(draw.differences(forest), row, shown, "differences", **about)


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
    _save_votes(run, "annot-labels", drawing, table, _against_labels(table), places)


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
    _save_votes(run, "annot-links", drawing, table, paired, places)


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
