"""Figures and tables of the OMCL chapter, in the order of its notebook."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd

from companion import omcl as experiments
from companion import pictures
from companion.omcl import FEW_LABELS, LEVELS, few_labels_run, shortened
from companion.omcl.claims import at_end, at_half, curves_of, settled
from companion.plots import omcl as draw
from companion.plots.common import curves, facets, legend, matrix, mosaic, panels, show_picture
from companion.protocol import printed, where
from companion.run.figures import (
    BLUE,
    GREY,
    ORANGE,
    certain,
    enumerated,
    extremes,
    method_style,
    name_methods,
    name_of,
    than,
)
from companion.run.registry import figure
from companion.study import interval
from cuelearn import datasets

METHODS = ("OMCL-BM", "OMCL-BM sparser", "OMCL-PERC", "Flat", "Flat maps", "Vote")
PERCENT = "Percent, all classes have equal weight; +- is half a 95% interval over permutations."
SPLITS = {
    "objects": "Split by drawing (ETH-80: by object).",
    "things": "Split by thing; apple, pear and tomato by drawing.",
    "categories": "Split by thing.",
}


def streams(run):
    """Names of the data sets whose claims are judged; the second has the place of IDOL2."""
    places = "HTAD" if pictures.original_images("idol2", run.data_tier) is None else "IDOL2"
    return "objects", places, "mfeat"


@cache
def images_of(run, name):
    if name == "IDOL2":
        return pictures.original_images("idol2", run.data_tier)
    images = pictures.original_images("eth80", run.data_tier)
    return pictures.emoji_objects(run.size[name]["n_views"], run.seed) if images is None else images


@cache
def tasks_of(run, name):
    """The tasks of a data set: one; of IDOL2 one for each of its two training sets."""
    size = dict(run.size[name.lower()])
    permutations = range(run.permutations or size["permutations"])
    if name == "IDOL2":
        return pictures.idol2_tasks(images_of(run, name), permutations, run.n_jobs)
    if name == "objects":
        return [pictures.object_task(images_of(run, name), permutations, run.seed, run.n_jobs)]
    if name == "things":
        frames = images_of(run, "objects").frames
        return [pictures.thing_task(tasks_of(run, "objects")[0], frames, permutations, run.seed)]
    size |= {"permutations": permutations, "seed": run.seed}
    if name == "categories":
        return [pictures.category_task(**size, n_jobs=run.n_jobs)]
    data = getattr(datasets, f"load_{name.lower()}")()
    return [pictures.table_task(data, **size)]


@cache
def results_of(run, name):
    """Results of all methods on all permutations of a data set (`experiments.run_all`), and its records."""
    tasks = tasks_of(run, name)
    task = tasks[0]
    data = images_of(run, name) if name in ("objects", "IDOL2") else task.data
    grids = run.size["grids"]
    results = experiments.run_all(run.sweep(name.lower()), tasks, run.step, grids)
    chosen = results["chosen"]
    split = next(iter(task.splits.values()))
    cues = [f"cue: {cue}" for cue in task.data.cues]
    name_methods(cues)
    note = (
        f"{SPLITS.get(name, '')} {split.train.size} training and {split.test.size} test samples; "
        f"{len(chosen)} permutations; C {chosen['C'].median():g} (median of choices). "
        f"Choices at the edge of a grid: {experiments.edges(chosen, grids) or 'none'}."
    )
    saved = {"provenance": [data], "seeds": chosen["permutation"].tolist(), "note": note.strip()}
    classes = task.data.target_names
    return SimpleNamespace(task=task, data=data, cues=cues, classes=classes, saved=saved, **results)


def _learning_curves(run, name, row, suffix=None):
    """Errors of all methods and cues against the number of samples seen (thesis figures 3.1 and 3.4)."""
    results = results_of(run, name)
    table = results.curves.drop(columns="support")
    run.save_figure(draw.learning_curves(table), row, table, suffix, **results.saved)


def _joined(run, names, kind):
    """A table of the results on several data sets, with a column `data`; and these data sets."""
    results = {name: results_of(run, name) for name in names}
    tables = [getattr(part, kind).assign(data=name) for name, part in results.items()]
    return pd.concat(tables, ignore_index=True), [part.data for part in results.values()]


def _support_sizes(run, row, names, columns):
    """Size of the support set against samples seen, a panel for each data set (thesis figures 3.2, 3.5)."""
    table, data = _joined(run, names, "curves")
    table = table[["data", "permutation", "method", *columns]]
    methods = ("OMCL-PERC", "OMCL-BM", "OMCL-BM sparser", "Flat")
    fig, parts = facets(table, "data", size=(4.2, 3.4))
    for ax, _, rows in parts:
        curves(ax, draw.aligned(rows), "n_seen", "support", methods, runs="permutation", markevery=3)
        ax.set(xlabel=draw.SEEN, ylabel="support vectors, all cues", ylim=(0, None))
    parts[0][0].legend()
    notes = [f"{name}: {results_of(run, name).saved['note']}" for name in names]
    run.save_figure(fig, row, table, provenance=data, note=" ".join(notes))


def _errors(run, name):
    """Test errors by class, over all (ALL), half their 95% interval (+-), and Vote's ties, in percent."""
    results = results_of(run, name)
    rows = {}
    for method in (*results.cues, *METHODS):
        finals = where(results.finals, method=method)
        errors = 100 * finals.pivot(index="permutation", columns="class", values="error")
        mean, _, high = interval(errors.mean(axis=1))
        rows[method] = [*errors.mean(), mean, high - mean]
    ties = 100 * np.array(results.ties)
    rows["Vote, ties"] = [*np.nanmean(ties, axis=0), np.nanmean(ties), np.nan]
    columns = [*results.classes, "ALL", "+-"]
    return pd.DataFrame.from_dict(rows, "index", columns=columns).rename_axis("method")


def _save_errors(run, name, table, row="thesis-tab-3.2", suffix=None, paper=None):
    """Save columns of `_errors`, beside them the thesis's."""
    note = f"{PERCENT} {SPLITS.get(name, '')}".strip()
    saved = results_of(run, name).saved | {"note": note}
    run.save_table(table, row, suffix, paper=paper, digits=3, **saved)


def _second_layer(run, name, row):
    """Weights of the second layer over the largest of their row, and how far the diagonals stand out."""
    results = results_of(run, name)
    classes = results.classes
    cues = list(results.task.data.cues)
    weights = np.stack(results.weights)
    weights = weights / np.abs(weights).max(axis=2, keepdims=True)
    places = pd.MultiIndex.from_product([classes, cues, classes], names=["combined for", "cue", "score for"])
    table = pd.Series(weights.mean(axis=0).ravel(), places, name="weight").reset_index()
    own = np.tile(np.eye(len(classes), dtype=bool), len(cues))
    runs = []
    for of_run, confusions in zip(weights, results.confusions, strict=True):
        means = {
            "diagonal": of_run[own].mean(),
            "off": of_run[~own].mean(),
            "rows": own[np.arange(len(classes)), of_run.argmax(axis=1)].mean(),
            "confused": experiments.lowest_on_confused(of_run, confusions, cues),
        }
        runs.append(means)
    fig, ((ax,),) = panels(1, size=(8.4, 2.2 + 0.22 * len(classes)))
    scores = [f"{cue}: {label}" for cue in cues for label in classes]
    mean = pd.DataFrame(weights.mean(axis=0), classes, scores)
    image = matrix(ax, mean, rotation=90, aspect="auto", cmap="RdBu", vmin=-1, vmax=1)
    ax.set(ylabel="combined for class", xlabel="score of the cue for class")
    fig.colorbar(image, label="weight / largest of its row")
    run.save_figure(fig, row, {"": table, "runs": pd.DataFrame(runs)}, **results.saved)


def _against_cues(error):
    """Errors in percent by method, and of single cues the least one."""
    single = error.filter(like="cue: ")
    return {"error": error, "cue": single.idxmin().removeprefix("cue: "), "least": single.min()}


def _at_the_end(results):
    """Errors after the last sample, in words also OMCL-BM's test error against the best cue's and Flat's;
    below a point is no difference."""
    errors = 100 * at_end(results.table())
    facts = _against_cues(errors.mean())
    rivals = (f"cue: {facts['cue']}", "Flat")
    of_cue, of_flat = (certain(errors["OMCL-BM"] - errors[rival], "below", 1.0) for rival in rivals)
    of_flat = "" if of_flat == of_cue else f"{of_flat} "
    online = 100 * at_end(results.table(), "online_error").mean()
    return facts | {"of_cue": of_cue, "of_flat": of_flat, "online": online}


AGAINST_RIVALS = """
On {} the test error of OMCL-BM is {{error[OMCL-BM]:.0f}}%, {{of_cue}} that of the best cue
({{least:.0f}}%) and {{of_flat}}that of Flat ({{error[Flat]:.0f}}%)."""
SUMMARY = """
Test errors: OMCL-BM {error[OMCL-BM]:.0f}%, OMCL-PERC {error[OMCL-PERC]:.0f}%, Flat {error[Flat]:.0f}%,
Flat maps {error[Flat maps]:.0f}%, Vote {error[Vote]:.0f}%, the best cue alone ({cue}) {least:.0f}%."""


@figure("thesis-fig-3.1", claims=["omcl-1", "omcl-2", "omcl-6"])
def two_sensors(run):
    """With two sensors (IDOL2: a robot's camera and laser), is the error of OMCL below that of every cue?"""
    _learning_curves(run, streams(run)[1], "thesis-fig-3.1")


@two_sensors.facts
def _(results):
    facts = _at_the_end(results)
    data = "seven activities" if "HTAD" in curves_of(results) else "places"
    flat = than(facts["error"]["Flat"], facts["error"]["OMCL-BM"], "below")
    return facts | {"data": data, "flat": flat}


two_sensors.title(AGAINST_RIVALS.format("{data}"))
two_sensors.see(f"""{SUMMARY} The last panel shows all differences. Flat is {{flat}} OMCL-BM: one
learner on all sensors can use what they say jointly; learners whose scores are added cannot.""")


@figure("thesis-fig-3.4-objects")
def eight_categories(run):
    """What do the eight categories look like, drawn by different designers?"""
    objects = images_of(run, "objects")
    names = objects.target_names
    rows = experiments.one_of_each(objects)
    cells = []
    for category in range(len(names)):
        of_category = rows[objects.y[rows] == category]
        cells += of_category[np.linspace(0, of_category.size - 1, 8).round().astype(int)].tolist()
    fig, ((ax,),) = panels(1, size=(7, 6))
    show_picture(ax, mosaic(np.stack([objects.images[i] for i in cells]), 8))
    ax.set_yticks(len(objects.images[0]) * (np.arange(len(names)) + 0.5), names)
    table = pd.DataFrame({"image": objects.frames["name"][cells]})
    shows = "the eight categories, as different designers draw them"
    note = "Eight of each category's objects, each in one view."
    run.save_figure(fig, "thesis-fig-3.4", table, "objects", provenance=[objects], shows=shows, note=note)


eight_categories.facts(lambda results: {"n": len(results.table())})
eight_categories.title("The eight categories of the object task: {n} drawings by different designers.")


@figure("thesis-fig-2.1")
def pairs_confused(run):
    """Which two categories does each cue mix up that another cue tells apart?"""
    results = results_of(run, "objects")
    images = results.data.images
    names = results.data.frames["name"]
    pairs = experiments.confused_pairs(results.confusions, results.task, results.data)
    methods = [*pairs["cue"], "OMCL-BM"]
    fig, axes = panels(3, len(pairs), size=(6.4, 1.6 * len(pairs)), width_ratios=(1, 1, 1.6))
    for (left, right, bars), (_, pair) in zip(axes, pairs.iterrows(), strict=True):
        show_picture(left, images[pair["image"]], pair["first"])
        show_picture(right, images[pair["other"]], pair["second"])
        left.set_ylabel(f"{pair['cue']}\nconfuses")
        colours = [ORANGE if cue == pair["cue"] else GREY for cue in pairs["cue"]]
        bars.barh(methods, 100 * pair[methods].astype(float), color=[*colours, BLUE])
        bars.set_xlim(0, 105 * pairs[methods].to_numpy().max())
    bars.set_xlabel("taken for each other [%]")
    table = pairs.assign(image=names[pairs["image"]], other=names[pairs["other"]])
    run.save_figure(fig, "thesis-fig-2.1", table, **results.saved)


@pairs_confused.facts
def _(results):
    pairs = results.table().set_index("cue")
    cues = pairs.index
    last = pairs.iloc[-1]
    return {
        "n": len(cues),
        "told": sum(pairs.loc[cue, cues].min() < pairs.loc[cue, cue] for cue in cues),
        "mended": sum(pairs.loc[cue, "OMCL-BM"] < pairs.loc[cue, cue] for cue in cues),
        "pair": last,
        "share": last[last.name],
        "least": last[cues].min(),
    }


pairs_confused.title(
    "For {told} of {n} cues, some other cue separates the pair of categories that the cue confuses most."
)
pairs_confused.see("""
The cue {pair.name} takes {pair[first]} and {pair[second]} for each other in {share:.0%} of their tests, the
best cue in {least:.0%}. On {mended} of the {n} pairs all cues together have a lower error than
the cue that confuses them.""")


@figure("thesis-fig-2.1-confusions")
def all_confusions(run):
    """Which categories are taken for which by all cues together, and what does each cue alone recognise?"""
    results = results_of(run, "objects")
    classes = results.classes
    table = pd.DataFrame(index=pd.MultiIndex.from_product([classes] * 2, names=["category", "taken for"]))
    for method in (*results.cues, "OMCL-BM"):
        table[method] = np.mean([run[method] for run in results.confusions], axis=0).ravel()
    table = table.reset_index()
    run.save_figure(draw.confusions(table), "thesis-fig-2.1", table, "confusions", **results.saved)


@all_confusions.facts
def _(results):
    table = results.table()
    own = table["category"] == table["taken for"]
    right = table[own].set_index("category")["OMCL-BM"]
    wrong = table.loc[table.loc[~own, "OMCL-BM"].idxmax()]
    return {"mean": right.mean(), **extremes(right), "wrong": wrong}


all_confusions.title("""
All cues together recognise {mean:.0%} of the drawings, from {least:.0%} ({least_of}) to {most:.0%}
({most_of}).""")
all_confusions.see("""
What is confused stands side by side. Off the diagonal the largest share with all cues together is
{wrong[OMCL-BM]:.0%}: {wrong[category]} taken for {wrong[taken for]}.""")


@figure("thesis-fig-3.4")
def curves_on_objects(run):
    """On drawings never seen, is the error of OMCL below that of single cues, one long vector, and a vote?"""
    _learning_curves(run, "objects", "thesis-fig-3.4")


@curves_on_objects.facts
def _(results):
    facts = _at_the_end(results)
    error = facts["error"]
    online = facts["online"]
    fooled = (error - online).filter(like="cue: ").idxmax()
    when = settled(results.table()).mean()
    return facts | {
        "fooled": fooled.removeprefix("cue: "),
        "seen": online[fooled],
        "unseen": error[fooled],
        "when": when,
        "cues_settle": when.filter(like="cue: ").mean(),
    }


curves_on_objects.title(AGAINST_RIVALS.format("drawings never seen"))
curves_on_objects.see(f"""{SUMMARY} While learning, {{fooled}} alone makes {{seen:.0f}}% mistakes,
since most new pictures are views of a drawing already shown; on drawings never shown its error is
{{unseen:.0f}}%. The second layer learns from the first kind of pictures which cue to trust, and is
tested on the second. The test error has settled, within a tenth of its gain, after {{when[OMCL-PERC]:.0%}}
of the pictures for OMCL-PERC, {{when[OMCL-BM]:.0%}} for OMCL-BM, {{cues_settle:.0%}} for single cues.""")


@figure("thesis-tab-3.2")
def errors_by_category(run):
    """What is the error of each method on each of the eight categories?"""
    classes = results_of(run, "objects").classes
    table = _errors(run, "objects")
    paper = printed("thesis-tab-3.2").set_index("method")
    _save_errors(run, "objects", table[["ALL", "+-"]], paper=paper[["ALL"]])
    for half in (classes[:4], classes[4:]):
        _save_errors(run, "objects", table[half], suffix=f"{half[0]}-{half[-1]}", paper=paper[half])


@errors_by_category.facts
def _(results):
    table = results.table().set_index("method")
    return {"error": table["ALL"], "printed": table["paper: ALL"]}


errors_by_category.title("""
On drawings never seen the error of OMCL-BM is {error[OMCL-BM]:.0f}%, that of a vote {error[Vote]:.0f}%:
{error[Vote, ties]:.0f}% of its tests are tied.""")
errors_by_category.see("""
In the thesis a vote leaves {printed[Vote, ties]:.0f}% of the tests tied. A tie counts as an error.""")


@figure("thesis-fig-3.6", claims="omcl-9")
def trust_on_objects(run):
    """Which cue does the second layer trust, for which category?"""
    _second_layer(run, "objects", "thesis-fig-3.6")


def _trust(results):
    """Means over the runs, and of the weights on the diagonals by cue."""
    weights = results.table()
    own = weights[weights["combined for"] == weights["score for"]].groupby("cue", sort=False)["weight"].mean()
    return {
        **results.table(f"{results.claim}.runs").mean(),
        "by_cue": ", ".join(f"{cue} {weight:.2f}" for cue, weight in own.items()),
        "chance": 1 / (weights["combined for"].nunique() - 1),
    }


TRUST_TITLE = """
On average the second layer gives a cue's score for the same class a weight of {diagonal:+.2f}, its scores for
other classes {off:+.2f}."""
TRUST = """
Each weight is divided by the largest weight of its row. The means on the diagonals are {by_cue}. In
{rows:.0%} of the rows the largest weight is on a diagonal. Within a cue, the lowest weight is that of the
most confused class in {confused:.0%} of all cases; chance would give {chance:.0%}."""

trust_on_objects.facts(_trust)
trust_on_objects.title(TRUST_TITLE)
trust_on_objects.see(TRUST)


@figure("thesis-tab-3.2-things")
def unseen_things(run):
    """What is the error of each method on whole things that were never seen, such as a cow's face?"""
    if images_of(run, "objects").provenance.tier == "bundled":
        _save_errors(run, "things", _errors(run, "things"), suffix="things")


@unseen_things.facts
def _(results):
    table = results.table().set_index("method")
    return {**_against_cues(table["ALL"]), "cow": table.loc["cue: shape", "cow"]}


unseen_things.title("""
On things never seen the error of OMCL-BM is {error[OMCL-BM]:.0f}%, that of the best cue ({cue})
{least:.0f}%, that of Flat {error[Flat]:.0f}%.""")
unseen_things.see(f"""
With whole things held out, shape misclassifies {{cow:.0f}}% of the cows (a face does not have the outline
of a cow). {SUMMARY}""")


@figure("thesis-tab-3.1")
def errors_by_class(run):
    """Which activities (with IDOL2: rooms) are hard for each cue, and which for all?"""
    name = streams(run)[1]
    table = _errors(run, name)
    paper = printed("thesis-tab-3.1").set_index("method")
    paper = paper[paper.columns.intersection(table.columns)]
    _save_errors(run, name, table, "thesis-tab-3.1", paper=paper)


@errors_by_class.facts
def _(results):
    errors = results.table().set_index("method").loc["OMCL-BM"]
    classes = errors.drop(["ALL", "+-"]).astype(float)
    classes = classes[~classes.index.str.contains("paper")]
    return {"all": errors["ALL"], **extremes(classes)}


errors_by_class.title("""
The error of OMCL-BM is {all:.0f}%: from {least:.0f}% ({least_of}) to {most:.0f}% ({most_of}).""")


@figure("thesis-fig-3.3", claims="omcl-5")
def trust_in_sensors(run):
    """Which sensor does the second layer trust, for which class?"""
    _second_layer(run, streams(run)[1], "thesis-fig-3.3")


trust_in_sensors.facts(_trust)
trust_in_sensors.title(TRUST_TITLE)
trust_in_sensors.see(TRUST)


@figure("thesis-fig-3.2", claims="omcl-4")
def support_with_few_errors(run):
    """Where few errors are made while learning, how much smaller is the support set?"""
    names = [name for name in streams(run) if name == "IDOL2"] + ["mfeat", "pendigits"]
    _support_sizes(run, "thesis-fig-3.2", names, ["n_seen", "online_error", "support"])


def _support_kept(results):
    """In words, the shares of the Perceptrons' support that the forms of OMCL-BM keep, by data set."""
    shares = {"OMCL-BM": [], "OMCL-BM sparser": []}
    for data, table in results.table().groupby("data", sort=False):
        support = at_end(table, "support").mean()
        for method, listed in shares.items():
            listed.append(f"{support[method] / support['OMCL-PERC']:.0%} on {data}")
    kept, sparser = (" and ".join(listed) for listed in shares.values())
    return {"kept": kept, "sparser": sparser}


KEPT = "Of the Perceptrons' support vectors OMCL-BM keeps {kept}."

support_with_few_errors.facts(_support_kept)
support_with_few_errors.title(KEPT)
support_with_few_errors.see("""
The sparser form keeps {sparser}. With narrow kernels an update does not lie in the span of others, whatever
$\\eta$ is.""")


@figure("thesis-fig-3.1-mfeat")
def learning_from_numerals(run):
    """With six useful cues of handwritten numerals, is the error of OMCL below that of every cue?"""
    _learning_curves(run, "mfeat", "thesis-fig-3.1", "mfeat")


learning_from_numerals.facts(_at_the_end)
learning_from_numerals.title(AGAINST_RIVALS.format("handwritten numerals"))
learning_from_numerals.see(SUMMARY)


@figure("thesis-fig-3.4-categories")
def curves_on_categories(run):
    """With many classes and few samples of each, is the error of OMCL still below that of every cue?"""
    _learning_curves(run, "categories", "thesis-fig-3.4", "categories")


@curves_on_categories.facts
def _(results):
    facts = _at_the_end(results)
    word = than(facts["error"]["OMCL-BM"], facts["least"], "below")
    return facts | {"word": word, "median": facts["online"].filter(like="cue: ").median()}


curves_on_categories.title(AGAINST_RIVALS.format("many categories"))
curves_on_categories.see(f"""{SUMMARY} OMCL-BM's error is {{word}} that of the best cue. While
learning, the second layer makes {{online[OMCL-BM]:.0f}}% mistakes, the median cue {{median:.0f}}%.""")


@figure("thesis-tab-3.2-categories")
def errors_on_categories(run):
    """What is the error of each method on many categories, and on which is it lowest?"""
    results = results_of(run, "categories")
    table = _errors(run, "categories")
    _save_errors(run, "categories", table[["ALL", "+-"]], suffix="categories")
    each = table.loc[[*results.cues, "OMCL-BM"], results.classes].T.rename_axis("category")
    _save_errors(run, "categories", each, suffix="categories-each")


@errors_on_categories.facts
def _(results):
    errors = results.table("thesis-tab-3.2-categories-each").set_index("category")["OMCL-BM"]
    over_all = results.table().set_index("method").loc["OMCL-BM"]
    return {"n": len(errors), **extremes(errors), "all": over_all}


errors_on_categories.title("""
Of {n} categories {least_of} has the lowest error with OMCL-BM ({least:.0f}%), {most_of} the highest
({most:.0f}%).""")
errors_on_categories.see("""
Over all categories the error of OMCL-BM is {all[ALL]:.0f}% (+- {all[+-]:.0f}).
Its second layer has few pictures of each category to learn from, where the thesis's sets have five and
eight classes and hundreds of pictures of each.""")


@figure("thesis-fig-3.5", claims="omcl-3")
def support_with_many_errors(run):
    """Where many errors are made while learning, how much smaller is the support set?"""
    _support_sizes(run, "thesis-fig-3.5", ["objects", "categories"], ["n_seen", "support"])


support_with_many_errors.facts(_support_kept)
support_with_many_errors.title(KEPT)
support_with_many_errors.see("""
The sparser form keeps {sparser}; in the thesis OMCL-BM keeps less than three quarters and its sparser form
less than half.""")


@figure("thesis-tab-2.1")
def levels_of_integration(run):
    """At which level are cues best combined: features, kernels, or scores?"""
    results = results_of(run, "mfeat")
    permutations = list(results.task.splits)[: run.size["integration"]]
    points = [{"permutation": k} for k in permutations]
    data = pictures.handed(results.task)
    runs = run.sweep("integration").frame(experiments.integration_run, points, **data)
    online = where(runs, learning="online")
    errors = at_end(results.curves).loc[permutations]
    one_pass = {
        "low": ("Flat", errors["Flat"]),
        "middle": ("OM-2", online["test_error"]),
        "high": ("OMCL-BM", errors["OMCL-BM"]),
    }
    rows = []
    for row in printed("thesis-tab-2.1").to_dict("records"):
        level = row["level"]
        batch = where(runs, learning="batch", level=level)
        measured = {"online": one_pass[level], "batch": (batch["method"].iloc[0], batch["test_error"])}
        for kind, (method, level_errors) in measured.items():
            mean, _, high = interval(100 * level_errors.to_numpy())
            row |= {f"{kind} method": method, f"{kind} error [%]": mean, f"{kind} +-": high - mean}
        rows.append(row)
    at_ends = [
        experiments.edges(where(runs, method=name), grid, by="method") for name, grid in LEVELS.items()
    ]
    note = "One pass online; test error in percent, with half its 95% interval. Choices at "
    note += f"the edge of a grid: {'; '.join(filter(None, at_ends)) or 'none'}."
    table = pd.DataFrame(rows).set_index("level")
    run.save_table(table, "thesis-tab-2.1", provenance=[results.data], seeds=permutations, note=note)


@levels_of_integration.facts
def _(results):
    table = results.table()
    facts = {"levels": enumerated(table["level"])}
    for kind in ("batch", "online"):
        facts[kind] = enumerated([f"{error:.1f}" for error in table[f"{kind} error [%]"]])
    return facts


levels_of_integration.title("The errors of {levels} integration are {batch}% in batch and {online}% online.")


@figure("thesis-thm-3.1", claims="omcl-7")
def second_layer_regret(run):
    """Does the second layer's loss stay below that of the best cue plus the regret?"""
    names = (*streams(run), "categories")
    bounds, data = _joined(run, names, "theorem")
    losses = [pd.DataFrame(results_of(run, name).losses[0]).assign(data=name) for name in names]
    losses = pd.concat(losses, ignore_index=True)
    tables = {"": losses, "bounds": bounds}
    note = f"First permutation of each; multiclass hinge losses; gradient steps of {run.step:g}."
    drawing = draw.regret(losses, bounds)
    run.save_figure(drawing, "thesis-thm-3.1", tables, provenance=data, note=note)


@second_layer_regret.facts
def _(results):
    bounds = results.table("thesis-thm-3.1.bounds")
    share = bounds["measured"] / bounds["bound"]  # no theorem bounds the loss of PA-I
    passive = where(bounds, **{"second layer": "PA-I", "quantity": "cumulative loss"})
    return {
        "n": bounds.groupby(["data", "permutation"]).ngroups,
        "most": share.max(),
        "times": 1 / share[bounds["quantity"] == "mistakes"].median(),
        "below": (passive["measured"] <= passive["best cue"]).mean(),
    }


second_layer_regret.title(
    "In {n} runs the second layer's loss and mistakes reach at most {most:.0%} of their bounds."
)
second_layer_regret.see("""
The loss of PA-I stays below that of the best *single* cue in {below:.0%} of the runs, which no theorem
promises. The bound on PA-I's mistakes is {times:.0f} times their number in the median run.""")


@figure("thesis-sec-3.3", claims="omcl-8")
def last_and_average(run):
    """Is the averaged predictor better than the last one?"""
    names = streams(run)
    table, data = _joined(run, names, "hypotheses")
    fig, parts = facets(table, "data", size=(2.8, 3.2))
    for ax, _, rows in parts:
        for method, errors in rows.groupby("method", sort=False):
            style = method_style(method, linestyle="", markersize=3, alpha=0.6)
            ax.plot(100 * errors["last"], 100 * errors["average"], **style)
        middle = 100 * rows["last"].median()
        ax.axline((middle, middle), slope=1, color="black", lw=0.8, label="equal errors")
        ax.set_xlabel("last hypothesis [%]")
    first = parts[0][0]
    first.set_ylabel("test error, averaged [%]")
    legend(fig, first, 5)
    note = "Every class alike; a point for each permutation; below the line averages are better."
    run.save_figure(fig, "thesis-sec-3.3", table, provenance=data, note=note)


@last_and_average.facts
def _(results):
    errors = where(results.table(), method="OMCL-BM").groupby("data", sort=False)
    mean = 100 * errors[["last", "average"]].mean()
    change = mean["average"] - mean["last"]
    texts = [f"{row.Index} {row.last:.1f} and {row.average:.1f}%" for row in mean.itertuples()]
    return {"fewer": (change < 0).sum(), "n": len(mean), "change": change.mean(), "errors": "; ".join(texts)}


last_and_average.title("""
On {fewer} of {n} data sets the average of OMCL-BM has a lower error than its last hypothesis (mean
difference {change:+.1f} points).""")
last_and_average.see("""
OMCL-BM's error with the last hypothesis and with the average: {errors}. The guarantee is for independent
samples in random order.""")


@figure("thesis-sec-7.2.1", claims=["ask-1", "ask-2"])
def few_labels(run):
    """How many labels must be requested for the error that all labels give?"""
    n_train, n_test, permutations = run.size["few labels"].values()
    permutations = range(run.permutations or permutations)
    tables = []
    data = []
    for name in FEW_LABELS:
        if name == "objects":
            task = tasks_of(run, name)[0]
            task = task._replace(splits={k: shortened(task.splits[k], n_train, n_test) for k in permutations})
            data.append(images_of(run, name))
        else:
            loaded = getattr(datasets, f"load_{name}")()
            task = pictures.table_task(loaded, n_train, n_test, permutations, run.seed)
            data.append(loaded)
        points = [{"permutation": k} for k in permutations]
        frame = run.sweep(f"few-labels-{name}").frame(few_labels_run, points, **pictures.handed(task))
        tables.append(frame.assign(data=name))
    table = pd.concat(tables, ignore_index=True)
    table = table[["data", "permutation", "method", "rule", "value", "requested", "test_error"]]
    note = (
        f"One pass over {n_train} samples; all classes have equal weight; {len(permutations)} permutations."
    )
    run.save_figure(draw.few_labels(table), "thesis-sec-7.2.1", table, provenance=data, note=note)


@few_labels.facts
def _(results):
    changes = []
    texts = []
    for (data, method), table in results.table().groupby(["data", "method"], sort=False):
        errors = 100 * at_half(table)
        changes.append(errors.sub(errors["all"], axis=0).mean())
        margin, *others = errors.mean()[["margin", "all", "threshold", "random"]]
        beside = "; ".join(f"{error:.1f}" for error in others)
        texts.append(f"{data}, {name_of(method)} {margin:.1f} ({beside})")
    changes = pd.DataFrame(changes)
    return {"least": changes.min(), "most": changes.max(), "errors": "; ".join(texts)}


few_labels.title("""
With half of the labels, requested by the margin, the test error changes by {least[margin]:+.1f} to
{most[margin]:+.1f} points; with half at random, by {least[random]:+.1f} to {most[random]:+.1f}.""")
few_labels.see("""
Test errors in percent with half of the labels by the margin (with all; with half by a threshold; with half
at random): {errors}. The numbers at the blue points are the values of $b$.""")
