"""Figures and tables of the OMCL chapter, in the order of its notebook."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd

from companion import cue_tasks, pictures, protocol
from companion import omcl as experiments
from companion.omcl.claims import at_end
from companion.omcl.settings import LEVELS
from companion.plots import omcl as draw
from companion.run.registry import figure
from cuelearn import datasets
from cuelearn.datasets.cues import OBJECT_CUES

METHODS = ("OMCL-BM", "OMCL-BM sparser", "OMCL-PERC", "Flat", "Flat maps", "Vote")
PERCENT = "Percent, every class counts alike; +- is half a 95% interval over permutations."


def streams(run):
    """Names of the data sets whose claims are judged; the second is that of thesis section 3.4.1."""
    places = "HTAD" if cue_tasks.original_images("idol2", run.data_tier) is None else "IDOL2"
    return "objects", places, "categories"


@cache
def images_of(run, name):
    if name == "IDOL2":
        return cue_tasks.original_images("idol2", run.data_tier)
    images = cue_tasks.original_images("eth80", run.data_tier)
    return cue_tasks.emoji_objects(run.size[name]["n_views"], run.seed) if images is None else images


@cache
def tasks_of(run, name):
    """The tasks of a data set: one; of IDOL2 one for each of its two training sets."""
    size = run.size[name.lower()]
    permutations = range(run.permutations or size["permutations"])
    if name == "IDOL2":
        return cue_tasks.idol2_tasks(images_of(run, name), permutations, run.n_jobs)
    if name == "objects":
        return [cue_tasks.object_task(images_of(run, name), permutations, run.seed, run.n_jobs)]
    if name == "things":
        frames = images_of(run, "objects").frames
        return [cue_tasks.thing_task(tasks_of(run, "objects")[0], frames, permutations, run.seed)]
    sizes = {key: value for key, value in size.items() if key != "permutations"}
    if name == "categories":
        return [cue_tasks.category_task(**sizes, permutations=permutations, seed=run.seed, n_jobs=run.n_jobs)]
    data = getattr(datasets, f"load_{name.lower()}")()
    return [cue_tasks.table_task(data, **sizes, permutations=permutations, seed=run.seed)]


@cache
def results_of(run, name):
    """All methods on all permutations of a data set, with what the figures say of it."""
    tasks = tasks_of(run, name)
    task = tasks[0]
    data = images_of(run, name) if name in ("objects", "IDOL2") else task.data
    runs = experiments.run_all(run.sweep(name.lower()), tasks, run.step)
    split = next(iter(task.splits.values()))
    C = runs["chosen"]["C"]
    sizes = (
        f"{split.train.size} training and {split.test.size} test samples, {len(task.data.target_names)} "
        f"classes; C {C.median():g} (median of choices); {len(C)} permutations."
    )
    return SimpleNamespace(
        task=task,
        data=data,
        runs=runs,
        curves=runs["curves"],
        cues=list(task.data.cues),
        classes=task.data.target_names,
        note="; ".join(filter(None, [_origin(run, name), sizes])),
        saved={"provenance": [data], "seeds": runs["chosen"]["permutation"].tolist()},
    )


def _is_emoji(run):
    return images_of(run, "objects").provenance.tier == "bundled"


def _origin(run, name):
    if name == "categories":
        groups = pictures.categories(run.size[name]["n_categories"]).values()
        n_things = sum(map(len, groups))
        return f"Emoji, {len(groups)} categories, {n_things} things, split by thing"
    if name != "objects":
        return ""
    if not _is_emoji(run):
        return "ETH-80, split by object"
    frames = images_of(run, name).frames
    n_drawings = len(experiments.unchanged(frames))
    n_things = len(np.unique(frames["thing"]))
    return f"Emoji, {n_drawings} drawings of {n_things} things, split by drawing"


def _choices(results):
    return f"Of choices, {experiments.edges(results.runs['chosen']) or 'none at an edge'}."


def _learning_curves(run, name, row, suffix=None, paper=None):
    """Errors of all methods and cues against the number of samples seen."""
    results = results_of(run, name)
    drawing = draw.learning_curves(results.curves, results.cues, paper)
    table = results.curves.drop(columns="support")
    note = f"{results.note} {_choices(results)}"
    run.save_figure(drawing, row, table, suffix, note=note, **results.saved)


def _errors(run, name):
    results = results_of(run, name)
    return draw.error_table(results.runs, results.classes, results.cues, METHODS)


def _second_layer(run, name, row):
    """Weights of the second layer, and how far the diagonals stand out in each run."""
    results = results_of(run, name)
    weights = np.stack(results.runs["weights"])
    tables = {
        "": draw.weight_table(weights, results.cues, results.classes),
        "runs": experiments.diagonal_weights(weights, len(results.classes)),
    }
    drawing = draw.second_layer(weights, results.cues, results.classes)
    note = f"Mean over permutations. {results.note}"
    run.save_figure(drawing, row, tables, note=note, **results.saved)


def _support_sizes(run, row, names, columns, note=""):
    """Support sets of some data sets, a panel each, against the number of samples seen."""
    panels = {name: results_of(run, name) for name in names}
    curves = {name: results.curves.assign(data=name) for name, results in panels.items()}
    table = pd.concat(curves.values(), ignore_index=True)[["data", "permutation", "method", *columns]]
    data = [results.data for results in panels.values()]
    note = " ".join([*(f"{name}: {results.note}" for name, results in panels.items()), note]).strip()
    run.save_figure(draw.support_sizes(curves), row, table, provenance=data, note=note)


def _ends(results, name, value="test_error"):
    """A column of saved learning curves after the last sample, in percent."""
    return 100 * at_end(results.table(name), value)


def _cues(methods):
    return [method for method in methods if method.startswith("cue: ")]


def _listed(texts):
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


@figure("thesis-fig-3.1")
def learning_from_sensors(run):
    """Two sensors (with IDOL2 in place: a robot's camera and laser): does OMCL err less than every cue?"""
    name = streams(run)[1]
    paper = protocol.printed("thesis-tab-3.1").set_index("method")["ALL"].drop("Vote, ties")
    _learning_curves(run, name, "thesis-fig-3.1", paper=paper if name == "IDOL2" else None)


@learning_from_sensors.see
def _(results):
    mean = _ends(results, "thesis-fig-3.1").mean()
    cues = _cues(mean.index)
    alone = _listed([f"{cue[5:]} errs on {mean[cue]:.0f}%" for cue in cues])
    return f"""
Of the cues alone, {alone}. With all, OMCL-BM errs on {mean["OMCL-BM"]:.0f}%, OMCL-PERC on
{mean["OMCL-PERC"]:.0f}%, and the plain long vector (Flat) on {mean["Flat"]:.0f}%. One learner on all
sensors can use what they say together; learners whose scores are added cannot."""


@figure("thesis-fig-3.4-objects")
def eight_categories(run):
    """What do the eight categories look like, drawn by different designers?"""
    objects = images_of(run, "objects")
    cells = experiments.sheet(objects, 8)
    table = pd.DataFrame({"image": objects.frames["name"][cells.ravel()]})
    drawing = draw.contact_sheet(objects.images, objects.target_names, cells)
    n_objects = len(experiments.unchanged(objects.frames))
    note = f"Eight of each category's objects ({n_objects} in all), each in one view."
    shows = "the eight categories, as different designers draw them"
    run.save_figure(drawing, "thesis-fig-3.4", table, "objects", provenance=[objects], shows=shows, note=note)


@figure("thesis-fig-2.1")
def what_each_cue_confuses(run):
    """Which two categories does each cue mix up that another cue tells apart?"""
    results = results_of(run, "objects")
    pairs = experiments.confused_pairs(results.runs["confusions"], results.task, results.data)
    names = results.data.frames["name"]
    table = pairs.assign(image=names[pairs["image"]], other=names[pairs["other"]])
    drawing = draw.what_cues_confuse(pairs, results.data.images)
    note = f"Mean of both ways over permutations. {results.note}"
    run.save_figure(drawing, "thesis-fig-2.1", table, note=note, **results.saved)


@what_each_cue_confuses.see
def _(results):
    pairs = results.table("thesis-fig-2.1").set_index("cue")
    cues = list(pairs.index)
    mended = sum(pairs.loc[cue, "OMCL-BM"] < pairs.loc[cue, cue] for cue in cues)
    cue = cues[-1]
    others = pairs.loc[cue, cues[:-1]].astype(float)
    return f"""
Every cue is blind to something that another sees. {cue[0].upper()}{cue[1:]} takes
{pairs.loc[cue, "first"]} and {pairs.loc[cue, "second"]} for each other in {pairs.loc[cue, cue]:.0%} of
their tests (mean of both ways), {others.idxmin()} in {others.min():.0%}. In {mended} of the {len(cues)}
pairs all cues together err less than the cue that is blind."""


@figure("thesis-fig-2.1-confusions")
def all_confusions(run):
    """Which categories are taken for which, by each cue and by all together?"""
    results = results_of(run, "objects")
    confusions = results.runs["confusions"]
    drawing = draw.confusions(confusions, OBJECT_CUES, results.classes)
    table = draw.confusion_table(confusions, OBJECT_CUES, results.classes)
    note = f"Rows: what it is. {results.note}"
    run.save_figure(drawing, "thesis-fig-2.1", table, "confusions", note=note, **results.saved)


@all_confusions.see
def _(results):
    table = results.table("thesis-fig-2.1-confusions")
    right = table[table["category"] == table["taken for"]].set_index("category")["OMCL-BM"]
    return f"""
The diagonals are what is right. With all cues together it is {right.mean():.0%} on the mean, from
{right.min():.0%} ({right.idxmin()}) to {right.max():.0%} ({right.idxmax()})."""


@figure("thesis-fig-3.4")
def learning_curves_on_objects(run):
    """Does OMCL err less on drawings never seen than every single cue, one long vector, and a vote?"""
    paper = protocol.printed("thesis-tab-3.2").set_index("method")["ALL"]
    _learning_curves(run, "objects", "thesis-fig-3.4", paper=paper.drop("Vote, ties"))


@learning_curves_on_objects.see
def _(results):
    mean = _ends(results, "thesis-fig-3.4").mean()
    online = _ends(results, "thesis-fig-3.4", "online_error").mean()
    cues = _cues(mean.index)
    best = mean[cues].idxmin()
    fooled = (mean[cues] - online[cues]).idxmax()
    return f"""
With all cues OMCL-BM errs on {mean["OMCL-BM"]:.0f}%, OMCL-PERC on {mean["OMCL-PERC"]:.0f}%, the best
single cue, {best[5:]}, on {mean[best]:.0f}%. While learning, {fooled[5:]} makes {online[fooled]:.0f}%
mistakes and {best[5:]} {online[best]:.0f}%, since most new pictures are views of a drawing already shown; on
drawings never shown they err on {mean[fooled]:.0f} and {mean[best]:.0f}%. The second layer learns whom to
trust on the first kind of pictures and is tested on the second."""


@figure("thesis-tab-3.2", claims="omcl-6")
def errors_by_category(run):
    """How often does each method err on each of the eight categories?"""
    results = results_of(run, "objects")
    table = _errors(run, "objects")
    paper = protocol.printed("thesis-tab-3.2").set_index("method")
    note = f"{PERCENT} {_origin(run, 'objects')}. Single cues: Projectron++."
    common = {"digits": 3, "note": note, **results.saved}
    run.save_table(table[["ALL", "+-"]], "thesis-tab-3.2", paper=paper[["ALL"]], **common)
    for half in (results.classes[:4], results.classes[4:]):
        run.save_table(table[half], "thesis-tab-3.2", f"{half[0]}-{half[-1]}", paper=paper[half], **common)


@errors_by_category.see
def _(results):
    return _ties(results, "thesis-tab-3.2")


def _ties(results, name):
    table = results.table(name).set_index("method")
    ties = table.loc["Vote, ties"]
    return f"""
Vote leaves {ties["ALL"]:.1f}% of the tests tied; in the thesis it is {ties["paper: ALL"]:.0f}%. A tie
counts as an error, so that Vote errs on {table.loc["Vote", "ALL"]:.1f}%."""


@figure("thesis-fig-3.6")
def trust_on_objects(run):
    """Which cue does the second layer trust, for which category?"""
    _second_layer(run, "objects", "thesis-fig-3.6")


@trust_on_objects.see
def _(results):
    return _trust(results, "thesis-fig-3.6")


def _trust(results, name):
    runs = results.table(f"{name}.runs").mean()
    weights = results.table(name)
    own = weights[weights["combined for"] == weights["score for"]]
    by_cue = own.groupby("cue", sort=False)["weight"].mean()
    values = ", ".join(f"{cue} {weight:.2f}" for cue, weight in by_cue.items())
    return f"""
Divided by the largest weight of its row, a weight on the diagonals is {runs["diagonal"]:.2f} on the mean,
one off them {runs["off"]:.2f}; for {runs["rows"]:.0%} of the classes the largest stands on a diagonal. The
cues' own scores have {values}."""


@figure("thesis-tab-3.2-things")
def errors_on_things_never_seen(run):
    """And if whole things are never seen, a cow's face while learning from cows?"""
    if not _is_emoji(run):
        return
    note = f"{PERCENT} Emoji, split by thing; apple, pear and tomato by drawing."
    table = _errors(run, "things")
    run.save_table(table, "thesis-tab-3.2", "things", digits=3, note=note, **results_of(run, "things").saved)


@errors_on_things_never_seen.see
def _(results):
    table = results.table("thesis-tab-3.2-things").set_index("method")
    mean = table["ALL"]
    return f"""
With whole things held out, shape errs on {table.loc["cue: shape", "cow"]:.0f}% of the cows (a face is no
cow's outline). The best single cue errs on {mean[_cues(mean.index)].min():.0f}%, OMCL-BM on
{mean["OMCL-BM"]:.0f}%, OMCL-PERC on {mean["OMCL-PERC"]:.0f}%, Flat on {mean["Flat"]:.0f}%."""


@figure("thesis-tab-3.1")
def errors_by_class(run):
    """Which activities (with IDOL2: rooms) are hard for each cue, and which for all?"""
    name = streams(run)[1]
    table = _errors(run, name)
    paper = protocol.printed("thesis-tab-3.1").set_index("method")
    note = f"{PERCENT} Single cues: Projectron++."
    if name == "HTAD":
        note += " Activities in place of rooms, random permutations."
    saved = results_of(run, name).saved
    paper = paper[paper.columns.intersection(table.columns)]
    run.save_table(table, "thesis-tab-3.1", paper=paper, digits=3, note=note, **saved)


@errors_by_class.see
def _(results):
    table = results.table("thesis-tab-3.1").set_index("method").drop(columns=["ALL", "+-"])
    table = table[[column for column in table if not column.startswith("paper: ")]]
    hardest = table.idxmax(axis=1)
    error = table.max(axis=1)
    values = _listed(
        [f"{cue[5:]} errs most on {hardest[cue]} ({error[cue]:.0f}%)" for cue in _cues(table.index)]
    )
    return f"""
Alone, {values}; OMCL-BM on {hardest["OMCL-BM"]} ({error["OMCL-BM"]:.0f}%)."""


@figure("thesis-fig-3.3", claims="omcl-5")
def trust_in_sensors(run):
    """Which sensor does the second layer trust, for which class?"""
    _second_layer(run, streams(run)[1], "thesis-fig-3.3")


@trust_in_sensors.see
def _(results):
    return _trust(results, "thesis-fig-3.3")


@figure("thesis-fig-3.2", claims="omcl-4")
def support_where_errors_are_few(run):
    """Where few errors are made while learning, how much smaller is the support set?"""
    names = [name for name in streams(run) if name == "IDOL2"] + ["mfeat"]
    note = _choices(results_of(run, "mfeat"))
    _support_sizes(run, "thesis-fig-3.2", names, ["n_seen", "online_error", "support"], note)


@support_where_errors_are_few.see
def _(results):
    shares = []
    for name, table in results.table("thesis-fig-3.2").groupby("data", sort=False):
        support = at_end(table, "support").mean()
        shares.append(f"{support['OMCL-BM'] / support['OMCL-PERC']:.0%} on {name}")
    return f"""
Of the Perceptrons' support OMCL-BM keeps {_listed(shares)}. Where the kernels that were chosen are narrow,
hardly any update lies in the span of others, whatever $\\eta$ is."""


@figure("thesis-fig-3.4-categories", claims=["omcl-1", "omcl-2"])
def learning_curves_on_categories(run):
    """With many classes and few samples of each, does OMCL still err less?"""
    _learning_curves(run, "categories", "thesis-fig-3.4", "categories")


@learning_curves_on_categories.see
def _(results):
    mean = _ends(results, "thesis-fig-3.4-categories").mean()
    online = _ends(results, "thesis-fig-3.4-categories", "online_error").mean()
    cues = _cues(mean.index)
    best = mean[cues].idxmin()
    return f"""
Here OMCL-BM does not have the lead of the thesis. It errs on {mean["OMCL-BM"]:.0f}%, the best single cue
({best[5:]}) on {mean[best]:.0f}%, Flat in both readings on {mean["Flat"]:.0f} and {mean["Flat maps"]:.0f}%.
So the cues have something to tell each other; but while learning, the second layer makes
{online["OMCL-BM"]:.0f}% mistakes, the median cue {online[cues].median():.0f}%."""


@figure("thesis-tab-3.2-categories")
def errors_on_categories(run):
    """How often does each method err on many categories, and on which least?"""
    results = results_of(run, "categories")
    table = _errors(run, "categories")
    note = f"{PERCENT} {_origin(run, 'categories')}."
    common = {"digits": 3, "note": note, **results.saved}
    run.save_table(table[["ALL", "+-"]], "thesis-tab-3.2", "categories", **common)
    methods = [*(f"cue: {cue}" for cue in results.cues), "OMCL-BM"]
    each = table.drop(columns=["ALL", "+-"]).loc[methods].T.rename_axis("category")
    run.save_table(each, "thesis-tab-3.2", "categories-each", **common)


@errors_on_categories.see
def _(results):
    each = results.table("thesis-tab-3.2-categories-each").set_index("category")
    n = len(each)
    n_cues = len(_cues(each.columns))
    errors = each["OMCL-BM"]
    return f"""
OMCL-BM errs least on {errors.idxmin()} ({errors.min():.0f}%), most on {errors.idxmax()}
({errors.max():.0f}%). Its second layer has {n} x {n_cues * n} weights to learn from few pictures of each
category; the regret of theorem 3.1 grows with the number of classes, and is not paid back yet. The thesis'
sets have five and eight classes, and hundreds of pictures of each."""


@figure("thesis-fig-3.5", claims="omcl-3")
def support_where_errors_are_many(run):
    """Where many errors are made while learning, how much smaller is the support set?"""
    _support_sizes(run, "thesis-fig-3.5", ["objects", "categories"], ["n_seen", "support"])


@support_where_errors_are_many.see
def _(results):
    shares = []
    for name, table in results.table("thesis-fig-3.5").groupby("data", sort=False):
        support = at_end(table, "support").mean()
        share = {method: support[method] / support["OMCL-PERC"] for method in ("OMCL-BM", "OMCL-BM sparser")}
        shares.append(f"{share['OMCL-BM']:.0%} and {share['OMCL-BM sparser']:.0%} on the {name}")
    return f"""
Of the Perceptrons' support OMCL-BM and its sparser form keep {", ".join(shares)}; in the thesis less than
three quarters and less than half."""


@figure("thesis-tab-2.1")
def levels_of_integration(run):
    """At which level are cues best combined: features, kernels, or scores?"""
    results = results_of(run, "categories")
    permutations = list(results.task.splits)[: run.size["integration"]]
    points = [{"permutation": k} for k in permutations]
    common = cue_tasks.handed(results.task)
    runs = run.sweep("integration").frame(experiments.integration_run, points, **common)
    online = runs[runs["learning"] == "online"]
    errors = at_end(results.curves).loc[permutations]
    by_level = {
        "low": ("Flat", errors["Flat"]),
        "middle": ("OM-2", online["test_error"]),
        "high": ("OMCL-BM", errors["OMCL-BM"]),
    }
    table = draw.integration_table(runs[runs["learning"] == "batch"], by_level)
    at_ends = {name: experiments.edges(runs[runs["method"] == name], grid) for name, grid in LEVELS.items()}
    at_ends = "; ".join(f"{name}: {text}" for name, text in at_ends.items() if text)
    note = f"{_origin(run, 'categories')}. One pass online; test error in percent, with half its 95% "
    note += f"interval. Of choices, {at_ends or 'none at an edge'}."
    run.save_table(table, "thesis-tab-2.1", provenance=[results.data], seeds=permutations, note=note)


@levels_of_integration.see
def _(results):
    table = results.table("thesis-tab-2.1")
    errors = {}
    for kind in ("batch", "online"):
        pairs = table[[f"{kind} method", f"{kind} error [%]"]].to_numpy()
        errors[kind] = ", ".join(f"{method} {error:.0f}%" for method, error in pairs)
    return f"""
The low, the middle and the high level in batch: {errors["batch"]}; online, with one look at each picture:
{errors["online"]}."""


@figure("thesis-thm-3.1", claims="omcl-7")
def regret_of_the_second_layer(run):
    """Does the second layer's loss stay below that of the best cue plus the regret?"""
    results = {name: results_of(run, name) for name in (*streams(run), "mfeat")}
    bounds = [part.runs["theorem"].assign(data=name) for name, part in results.items()]
    losses = {name: part.runs["losses"][0] for name, part in results.items()}
    first = [pd.DataFrame(loss).assign(data=name) for name, loss in losses.items()]
    tables = {"": pd.concat(first, ignore_index=True), "bounds": pd.concat(bounds, ignore_index=True)}
    cues = {name: part.cues for name, part in results.items()}
    data = [part.data for part in results.values()]
    note = f"First permutation of each; multiclass hinge losses; gradient steps of {run.step:g}."
    drawing = draw.regret(losses, cues)
    run.save_figure(drawing, "thesis-thm-3.1", tables, provenance=data, note=note)


@regret_of_the_second_layer.see
def _(results):
    bounds = results.table("thesis-thm-3.1.bounds")
    passive = bounds[(bounds["second layer"] == "PA-I") & (bounds["quantity"] == "cumulative loss")]
    steps = bounds[bounds["second layer"] == "gradient descent"]
    mistakes = bounds[bounds["quantity"] == "mistakes"]
    below = (passive["measured"] <= passive["best cue"]).groupby(passive["data"]).agg(["sum", "count"])
    below = ", ".join(f"{name} {row['sum']} of {row['count']}" for name, row in below.iterrows())
    largest = (steps["measured"] / steps["bound"]).max()
    loose = (mistakes["bound"] / mistakes["measured"]).median()
    return f"""
The loss of gradient steps reaches at most {largest:.0%} of its bound. Runs in which PA-I on top stays
below the loss of the best *single* cue itself, which no such theorem promises: {below}. The bound on PA-I's
mistakes is true and useless, {loose:.0f} times what is measured in the median run."""


@figure("thesis-sec-3.3", claims="omcl-8")
def last_hypothesis_and_average(run):
    """Is the averaged predictor better than the last one?"""
    results = {name: results_of(run, name) for name in streams(run)}
    errors = [part.runs["hypotheses"].assign(data=name) for name, part in results.items()]
    table = pd.concat(errors, ignore_index=True)
    drawing = draw.last_against_average(table)
    data = [part.data for part in results.values()]
    note = "Every class alike; a point for each permutation; below the line averages are better."
    run.save_figure(drawing, "thesis-sec-3.3", table, provenance=data, note=note)


@last_hypothesis_and_average.see
def _(results):
    table = results.table("thesis-sec-3.3")
    errors = table[table["method"] == "OMCL-BM"].groupby("data", sort=False)[["last", "average"]]
    mean = 100 * errors.mean()
    texts = [f"{name} {row['last']:.1f} and {row['average']:.1f}%" for name, row in mean.iterrows()]
    return f"""
OMCL-BM's error with the last hypothesis and with the average: {"; ".join(texts)}. The guarantee is for
independent samples in random order."""
