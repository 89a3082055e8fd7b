"""Figures and tables of the OMCL chapter, in the order of its notebook."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd

from companion import cue_tasks
from companion import omcl as experiments
from companion.intervals import interval
from companion.omcl.claims import at_end, at_half, curves_of, settled
from companion.omcl.few_labels import few_labels_run, shortened
from companion.omcl.settings import FEW_LABELS, LEVELS
from companion.plots import omcl as draw
from companion.plots.common import curves, legend, mosaic, panels
from companion.protocol import printed, where
from companion.run.figures import BLUE, GREY, ORANGE, method_style, name_methods
from companion.run.registry import figure
from companion.run.words import certain, enumerated, than
from cuelearn import datasets

METHODS = ("OMCL-BM", "OMCL-BM sparser", "OMCL-PERC", "Flat", "Flat maps", "Vote")
PERCENT = "Percent, every class counts alike; +- is half a 95% interval over permutations."
SPLITS = {
    "objects": "Split by drawing (ETH-80: by object).",
    "things": "Split by thing; apple, pear and tomato by drawing.",
    "categories": "Split by thing.",
}


def streams(run):
    """Names of the data sets whose claims are judged; the second has the place of IDOL2."""
    places = "HTAD" if cue_tasks.original_images("idol2", run.data_tier) is None else "IDOL2"
    return "objects", places, "mfeat"


@cache
def images_of(run, name):
    if name == "IDOL2":
        return cue_tasks.original_images("idol2", run.data_tier)
    images = cue_tasks.original_images("eth80", run.data_tier)
    return cue_tasks.emoji_objects(run.size[name]["n_views"], run.seed) if images is None else images


@cache
def tasks_of(run, name):
    """The tasks of a data set: one; of IDOL2 one for each of its two training sets."""
    size = dict(run.size[name.lower()])
    permutations = range(run.permutations or size["permutations"])
    if name == "IDOL2":
        return cue_tasks.idol2_tasks(images_of(run, name), permutations, run.n_jobs)
    if name == "objects":
        return [cue_tasks.object_task(images_of(run, name), permutations, run.seed, run.n_jobs)]
    if name == "things":
        frames = images_of(run, "objects").frames
        return [cue_tasks.thing_task(tasks_of(run, "objects")[0], frames, permutations, run.seed)]
    size |= {"permutations": permutations, "seed": run.seed}
    if name == "categories":
        return [cue_tasks.category_task(**size, n_jobs=run.n_jobs)]
    data = getattr(datasets, f"load_{name.lower()}")()
    return [cue_tasks.table_task(data, **size)]


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
        f"Of choices, {experiments.edges(chosen, grids) or 'none at an edge'}."
    )
    saved = {"provenance": [data], "seeds": chosen["permutation"].tolist(), "note": note.strip()}
    classes = task.data.target_names
    return SimpleNamespace(task=task, data=data, cues=cues, classes=classes, saved=saved, **results)


def _learning_curves(run, name, row, suffix=None):
    """Errors of all methods and cues against the number of samples seen (thesis figures 3.1 and 3.4)."""
    results = results_of(run, name)
    table = results.curves.drop(columns="support")
    run.save_figure(draw.learning_curves(table), row, table, suffix, **results.saved)


def _support_sizes(run, row, names, columns):
    """Size of the support set against samples seen, a panel for each data set (thesis figures 3.2, 3.5)."""
    fig, (axes,) = panels(len(names), size=(4.2 * len(names), 3.4))
    methods = ("OMCL-PERC", "OMCL-BM", "OMCL-BM sparser", "Flat")
    tables = []
    notes = []
    for ax, name in zip(axes, names, strict=True):
        results = results_of(run, name)
        table = draw.aligned(results.curves)
        curves(ax, table, "n_seen", "support", methods, runs="permutation", markevery=3)
        ax.set(title=name, xlabel=draw.SEEN, ylabel="support vectors, all cues", ylim=(0, None))
        tables.append(results.curves.assign(data=name))
        notes.append(f"{name}: {results.saved['note']}")
    axes[0].legend()
    table = pd.concat(tables, ignore_index=True)[["data", "permutation", "method", *columns]]
    data = [results_of(run, name).data for name in names]
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


def _second_layer(run, name, row):
    """Weights of the second layer over the largest of their row, and how far the diagonals stand out."""
    results = results_of(run, name)
    classes = results.classes
    cues = list(results.task.data.cues)
    weights = np.stack(results.weights)
    weights = weights / np.abs(weights).max(axis=2, keepdims=True)
    mean = weights.mean(axis=0)
    fig, ((ax,),) = panels(1, size=(8.4, 2.2 + 0.22 * len(classes)))
    image = ax.imshow(mean, aspect="auto", cmap="RdBu", vmin=-1, vmax=1)
    scores = [f"{cue}: {label}" for cue in cues for label in classes]
    _label(ax, classes, scores, ylabel="combined for class", xlabel="score of the cue for class")
    fig.colorbar(image, label="weight / largest of its row")
    places = pd.MultiIndex.from_product([classes, cues, classes], names=["combined for", "cue", "score for"])
    table = pd.Series(mean.ravel(), places, name="weight").reset_index()
    own = np.tile(np.eye(len(classes), dtype=bool), len(cues))
    runs = []
    for of_run, confusions in zip(weights, results.confusions, strict=True):
        top = own[np.arange(len(classes)), of_run.argmax(axis=1)]
        confused = experiments.lowest_on_confused(of_run, confusions, cues)
        means = {"diagonal": of_run[own].mean(), "off": of_run[~own].mean(), "rows": top.mean()}
        runs.append({**means, "confused": confused})
    runs = pd.DataFrame(runs)
    run.save_figure(fig, row, {"": table, "runs": runs}, **results.saved)


def _label(ax, rows, columns, **labels):
    """Name the rows and the columns of an image."""
    ax.set_yticks(range(len(rows)), rows, fontsize=8)
    ax.set_xticks(range(len(columns)), columns, fontsize=7, rotation=90)
    ax.set(**labels)
    ax.grid(False)


def _ends(results, name, value="test_error"):
    """Mean of a column of saved learning curves after the last sample, in percent, by method."""
    return 100 * at_end(results.table(name), value).mean()


def _against_rivals(results, name, data):
    """OMCL-BM's test error against the best cue and Flat in one sentence; below a point is no difference."""
    errors = 100 * at_end(results.table(name))
    mean = errors.mean()
    cue = mean.filter(like="cue: ").idxmin()
    of_cue, of_flat = (certain(errors["OMCL-BM"] - errors[rival], "less", 1.0) for rival in (cue, "Flat"))
    of_flat = "" if of_flat == of_cue else f"{of_flat} "
    return f"""
On {data} OMCL-BM errs on {mean["OMCL-BM"]:.0f}% of the tests, {of_cue} the best cue ({mean[cue]:.0f}%) and
{of_flat}Flat ({mean["Flat"]:.0f}%)."""


def _summary(errors):
    """Errors in percent by method, and of single cues the least one."""
    single = errors.filter(like="cue: ")
    best = single.idxmin().removeprefix("cue: ")
    methods = ("OMCL-BM", "OMCL-PERC", "Flat", "Flat maps", "Vote")
    texts = [f"{method} {errors[method]:.0f}%" for method in methods]
    return f"Test errors: {', '.join(texts)}, the best cue alone ({best}) {single.min():.0f}%."


@figure("thesis-fig-3.1", claims=["omcl-1", "omcl-2", "omcl-6"])
def learning_from_sensors(run):
    """With two sensors (with IDOL2: a robot's camera and laser), does OMCL err less than every cue?"""
    _learning_curves(run, streams(run)[1], "thesis-fig-3.1")


@learning_from_sensors.title
def _(results):
    name = list(curves_of(results))[1]
    return _against_rivals(results, "thesis-fig-3.1", {"HTAD": "seven activities"}.get(name, "places"))


@learning_from_sensors.see
def _(results):
    errors = _ends(results, "thesis-fig-3.1")
    return f"""
{_summary(errors)} The last panel shows all differences. Flat is
{than(errors["Flat"], errors["OMCL-BM"], "below")} OMCL-BM: one learner on all sensors can use what they
say jointly; learners whose scores are added cannot."""


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
    height = len(objects.images[0])
    ax.imshow(mosaic(np.stack([objects.images[i] for i in cells]), 8))
    ax.set_yticks(height * (np.arange(len(names)) + 0.5), names)
    ax.set_xticks(())
    ax.grid(False)
    table = pd.DataFrame({"image": objects.frames["name"][cells]})
    shows = "the eight categories, as different designers draw them"
    note = "Eight of each category's objects, each in one view."
    run.save_figure(fig, "thesis-fig-3.4", table, "objects", provenance=[objects], shows=shows, note=note)


@eight_categories.title
def _(results):
    n_drawings = len(results.table("thesis-fig-3.4-objects"))
    return f"The eight categories of the object task: {n_drawings} drawings by different designers."


@figure("thesis-fig-2.1")
def what_each_cue_confuses(run):
    """Which two categories does each cue mix up that another cue tells apart?"""
    results = results_of(run, "objects")
    images = results.data.images
    names = results.data.frames["name"]
    pairs = experiments.confused_pairs(results.confusions, results.task, results.data)
    methods = [*pairs["cue"], "OMCL-BM"]
    fig, axes = panels(3, len(pairs), size=(6.4, 1.6 * len(pairs)), width_ratios=(1, 1, 1.6))
    for (left, right, bars), (_, pair) in zip(axes, pairs.iterrows(), strict=True):
        left.imshow(images[pair["image"]])
        left.set(title=pair["first"], ylabel=f"{pair['cue']}\nconfuses", xticks=(), yticks=())
        right.imshow(images[pair["other"]])
        right.set(title=pair["second"], xticks=(), yticks=())
        colours = [ORANGE if cue == pair["cue"] else GREY for cue in pairs["cue"]]
        bars.barh(methods, 100 * pair[methods].astype(float), color=[*colours, BLUE])
        bars.set_xlim(0, 105 * pairs[methods].to_numpy().max())
    bars.set_xlabel("taken for each other [%]")
    table = pairs.assign(image=names[pairs["image"]], other=names[pairs["other"]])
    run.save_figure(fig, "thesis-fig-2.1", table, **results.saved)


def _told_apart(results):
    """For how many cues another cue takes the pair for each other less often, and the number of cues."""
    pairs = results.table("thesis-fig-2.1").set_index("cue")
    return sum(pairs.loc[cue, pairs.index].min() < pairs.loc[cue, cue] for cue in pairs.index), len(pairs)


@what_each_cue_confuses.title
def _(results):
    told, n_cues = _told_apart(results)
    return (
        f"For {told} of {n_cues} cues, another cue better separates the two categories that the cue confuses."
    )


@what_each_cue_confuses.see
def _(results):
    pairs = results.table("thesis-fig-2.1").set_index("cue")
    pair = pairs.iloc[-1]
    mended = sum(pairs.loc[cue, "OMCL-BM"] < pairs.loc[cue, cue] for cue in pairs.index)
    return f"""
The cue {pair.name} takes {pair["first"]} and {pair["second"]} for each other in {pair[pair.name]:.0%} of
their tests, the best cue in {pair[pairs.index].min():.0%}. On {mended} of the {len(pairs)} pairs all cues
together err less than the cue that confuses them."""


@figure("thesis-fig-2.1-confusions")
def all_confusions(run):
    """Which categories are taken for which, by each cue and by all cues together?"""
    results = results_of(run, "objects")
    classes = results.classes
    methods = [*results.cues, "OMCL-BM"]
    fig, (axes,) = panels(len(methods), size=(11, 2.9), sharey=True)
    table = pd.DataFrame(index=pd.MultiIndex.from_product([classes] * 2, names=["category", "taken for"]))
    for ax, method in zip(axes, methods, strict=True):
        shares = np.mean([run[method] for run in results.confusions], axis=0)
        image = ax.imshow(100 * shares, vmin=0, vmax=100)
        _label(ax, classes, classes, title=method, xlabel="taken for")
        table[method] = shares.ravel()
    axes[0].set_ylabel("category")
    fig.colorbar(image, ax=axes, label="share [%]")
    run.save_figure(fig, "thesis-fig-2.1", table.reset_index(), "confusions", **results.saved)


def _right_by_category(results):
    table = results.table("thesis-fig-2.1-confusions")
    return table[table["category"] == table["taken for"]].set_index("category")["OMCL-BM"]


@all_confusions.title
def _(results):
    right = _right_by_category(results)
    return f"""
All cues together recognise {right.mean():.0%} of the drawings, from {right.min():.0%} ({right.idxmin()})
to {right.max():.0%} ({right.idxmax()})."""


@all_confusions.see
def _(results):
    table = results.table("thesis-fig-2.1-confusions").set_index(["category", "taken for"])["OMCL-BM"]
    wrong = table[[one != other for one, other in table.index]]
    category, other = wrong.idxmax()
    return f"""
The diagonals show correct answers. Off the diagonal the largest share with all cues together is
{wrong.max():.0%}: {category} taken for {other}."""


@figure("thesis-fig-3.4")
def learning_curves_on_objects(run):
    """Does OMCL err less on drawings never seen than every single cue, one long vector, and a vote?"""
    _learning_curves(run, "objects", "thesis-fig-3.4")


@learning_curves_on_objects.title
def _(results):
    return _against_rivals(results, "thesis-fig-3.4", "drawings never seen")


@learning_curves_on_objects.see
def _(results):
    errors = _ends(results, "thesis-fig-3.4")
    online = _ends(results, "thesis-fig-3.4", "online_error")
    fooled = (errors - online).filter(like="cue: ").idxmax()
    when = settled(results.table("thesis-fig-3.4")).mean()
    return f"""
{_summary(errors)} While learning, {fooled.removeprefix("cue: ")} alone makes {online[fooled]:.0f}%
mistakes, since most new pictures are views of a drawing already shown; on drawings never shown it errs on
{errors[fooled]:.0f}%. The second layer learns from the first kind of pictures which cue to trust, and is
tested on the second. The test error has settled, within a tenth of its gain, after {when["OMCL-PERC"]:.0%}
of the pictures for OMCL-PERC, {when["OMCL-BM"]:.0%} for OMCL-BM, {when.filter(like="cue: ").mean():.0%} for
single cues."""


@figure("thesis-tab-3.2")
def errors_by_category(run):
    """How often does each method err on each of the eight categories?"""
    results = results_of(run, "objects")
    classes = results.classes
    table = _errors(run, "objects")
    paper = printed("thesis-tab-3.2").set_index("method")
    common = {**results.saved, "digits": 3, "note": f"{PERCENT} {SPLITS['objects']}"}
    run.save_table(table[["ALL", "+-"]], "thesis-tab-3.2", paper=paper[["ALL"]], **common)
    for half in (classes[:4], classes[4:]):
        run.save_table(table[half], "thesis-tab-3.2", f"{half[0]}-{half[-1]}", paper=paper[half], **common)


@errors_by_category.title
def _(results):
    errors = results.table("thesis-tab-3.2").set_index("method")["ALL"]
    return f"""
OMCL-BM errs on {errors["OMCL-BM"]:.0f}% of the drawings never seen, a vote on {errors["Vote"]:.0f}%:
{errors["Vote, ties"]:.0f}% of its tests are tied."""


@errors_by_category.see
def _(results):
    table = results.table("thesis-tab-3.2").set_index("method")
    ties = table.loc["Vote, ties"]
    return f"""
In the thesis a vote leaves {ties["paper: ALL"]:.0f}% of the tests tied. A tie counts as an error."""


@figure("thesis-fig-3.6", claims="omcl-9")
def trust_on_objects(run):
    """Which cue does the second layer trust, for which category?"""
    _second_layer(run, "objects", "thesis-fig-3.6")


def _trust_title(results, name):
    runs = results.table(f"{name}.runs").mean()
    return f"""
A class gives the cues' scores for itself a mean weight of {runs["diagonal"]:+.2f}, those for other classes
{runs["off"]:+.2f}."""


@trust_on_objects.title
def _(results):
    return _trust_title(results, "thesis-fig-3.6")


@trust_on_objects.see
def _(results):
    return _trust(results, "thesis-fig-3.6")


def _trust(results, name):
    runs = results.table(f"{name}.runs").mean()
    weights = results.table(name)
    own = weights[weights["combined for"] == weights["score for"]].groupby("cue", sort=False)["weight"].mean()
    by_cue = ", ".join(f"{cue} {weight:.2f}" for cue, weight in own.items())
    n_classes = weights["combined for"].nunique()
    return f"""
Each weight is divided by the largest weight of its row. The means on the diagonals are {by_cue}. In
{runs["rows"]:.0%} of the rows the largest weight is on a diagonal. Of the weights that a class gives to
one cue, the lowest is for the class most confused with it in {runs["confused"]:.0%} of all cases, by
chance in {1 / (n_classes - 1):.0%}."""


@figure("thesis-tab-3.2-things")
def errors_on_things_never_seen(run):
    """How often does each method err on whole things that were never seen, such as a cow's face?"""
    if images_of(run, "objects").provenance.tier != "bundled":
        return
    common = {**results_of(run, "things").saved, "digits": 3, "note": f"{PERCENT} {SPLITS['things']}"}
    run.save_table(_errors(run, "things"), "thesis-tab-3.2", "things", **common)


@errors_on_things_never_seen.title
def _(results):
    errors = results.table("thesis-tab-3.2-things").set_index("method")["ALL"]
    single = errors.filter(like="cue: ")
    cue = single.idxmin().removeprefix("cue: ")
    return f"""
On things never seen OMCL-BM errs on {errors["OMCL-BM"]:.0f}%, the best cue ({cue}) on {single.min():.0f}%,
Flat on {errors["Flat"]:.0f}%."""


@errors_on_things_never_seen.see
def _(results):
    table = results.table("thesis-tab-3.2-things").set_index("method")
    return f"""
With whole things held out, shape errs on {table.loc["cue: shape", "cow"]:.0f}% of the cows (a face does not
have the outline of a cow). {_summary(table["ALL"])}"""


@figure("thesis-tab-3.1")
def errors_by_class(run):
    """Which activities (with IDOL2: rooms) are hard for each cue, and which for all?"""
    name = streams(run)[1]
    table = _errors(run, name)
    paper = printed("thesis-tab-3.1").set_index("method")
    paper = paper[paper.columns.intersection(table.columns)]
    common = {**results_of(run, name).saved, "digits": 3, "note": PERCENT}
    run.save_table(table, "thesis-tab-3.1", paper=paper, **common)


@errors_by_class.title
def _(results):
    errors = results.table("thesis-tab-3.1").set_index("method").loc["OMCL-BM"]
    classes = errors[
        [column for column in errors.index if column not in ("ALL", "+-") and "paper" not in column]
    ]
    classes = classes.astype(float)
    return f"""
OMCL-BM errs on {errors["ALL"]:.0f}% of the tests: from {classes.min():.0f}% ({classes.idxmin()}) to
{classes.max():.0f}% ({classes.idxmax()})."""


@figure("thesis-fig-3.3", claims="omcl-5")
def trust_in_sensors(run):
    """Which sensor does the second layer trust, for which class?"""
    _second_layer(run, streams(run)[1], "thesis-fig-3.3")


@trust_in_sensors.title
def _(results):
    return _trust_title(results, "thesis-fig-3.3")


@trust_in_sensors.see
def _(results):
    return _trust(results, "thesis-fig-3.3")


@figure("thesis-fig-3.2", claims="omcl-4")
def support_where_errors_are_few(run):
    """Where few errors are made while learning, how much smaller is the support set?"""
    names = [name for name in streams(run) if name == "IDOL2"] + ["mfeat", "pendigits"]
    _support_sizes(run, "thesis-fig-3.2", names, ["n_seen", "online_error", "support"])


def _support_kept(results, name):
    """Shares of the Perceptrons' support: rows data sets, columns methods."""
    shares = {}
    for data, table in results.table(name).groupby("data", sort=False):
        support = at_end(table, "support").mean()
        shares[data] = support / support["OMCL-PERC"]
    return pd.DataFrame(shares).T


def _kept_title(results, name):
    kept = _support_kept(results, name)["OMCL-BM"]
    listed = " and ".join(f"{share:.0%} on {data}" for data, share in kept.items())
    return f"Of the Perceptrons' support vectors OMCL-BM keeps {listed}."


def _kept_sparser(results, name):
    kept = _support_kept(results, name)["OMCL-BM sparser"]
    listed = " and ".join(f"{share:.0%} on {data}" for data, share in kept.items())
    return f"The sparser form keeps {listed}"


@support_where_errors_are_few.title
def _(results):
    return _kept_title(results, "thesis-fig-3.2")


@support_where_errors_are_few.see
def _(results):
    return f"""
{_kept_sparser(results, "thesis-fig-3.2")}. With narrow kernels an update does not lie in the span of
others, whatever $\\eta$ is."""


@figure("thesis-fig-3.1-mfeat")
def learning_from_numerals(run):
    """With six useful cues of handwritten numerals, does OMCL err less than every cue?"""
    _learning_curves(run, "mfeat", "thesis-fig-3.1", "mfeat")


@learning_from_numerals.title
def _(results):
    return _against_rivals(results, "thesis-fig-3.1-mfeat", "handwritten numerals")


@learning_from_numerals.see
def _(results):
    return _summary(_ends(results, "thesis-fig-3.1-mfeat"))


@figure("thesis-fig-3.4-categories")
def learning_curves_on_categories(run):
    """With many classes and few samples of each, does OMCL still err less?"""
    _learning_curves(run, "categories", "thesis-fig-3.4", "categories")


@learning_curves_on_categories.title
def _(results):
    return _against_rivals(results, "thesis-fig-3.4-categories", "many categories")


@learning_curves_on_categories.see
def _(results):
    name = "thesis-fig-3.4-categories"
    errors = _ends(results, name)
    online = _ends(results, name, "online_error")
    best = errors.filter(like="cue: ").min()
    return f"""
{_summary(errors)} OMCL-BM's error is {than(errors["OMCL-BM"], best, "below")} that of the best cue. While
learning, the second layer errs on {online["OMCL-BM"]:.0f}%, the median cue on
{online.filter(like="cue: ").median():.0f}%."""


@figure("thesis-tab-3.2-categories")
def errors_on_categories(run):
    """How often does each method err on many categories, and on which least?"""
    results = results_of(run, "categories")
    table = _errors(run, "categories")
    common = {**results.saved, "digits": 3, "note": f"{PERCENT} {SPLITS['categories']}"}
    run.save_table(table[["ALL", "+-"]], "thesis-tab-3.2", "categories", **common)
    each = table.loc[[*results.cues, "OMCL-BM"], results.classes].T.rename_axis("category")
    run.save_table(each, "thesis-tab-3.2", "categories-each", **common)


@errors_on_categories.title
def _(results):
    errors = results.table("thesis-tab-3.2-categories-each").set_index("category")["OMCL-BM"]
    return f"""
Of {len(errors)} categories OMCL-BM errs least on {errors.idxmin()} ({errors.min():.0f}%), most on
{errors.idxmax()} ({errors.max():.0f}%)."""


@errors_on_categories.see
def _(results):
    error = results.table("thesis-tab-3.2-categories").set_index("method").loc["OMCL-BM"]
    return f"""
Over all categories OMCL-BM errs on {error["ALL"]:.0f}% (+- {error["+-"]:.0f}).
Its second layer has few pictures of each category to learn from, where the thesis's sets have five and
eight classes and hundreds of pictures of each."""


@figure("thesis-fig-3.5", claims="omcl-3")
def support_where_errors_are_many(run):
    """Where many errors are made while learning, how much smaller is the support set?"""
    _support_sizes(run, "thesis-fig-3.5", ["objects", "categories"], ["n_seen", "support"])


@support_where_errors_are_many.title
def _(results):
    return _kept_title(results, "thesis-fig-3.5")


@support_where_errors_are_many.see
def _(results):
    return f"""
{_kept_sparser(results, "thesis-fig-3.5")}; in the thesis OMCL-BM keeps
less than three quarters and its sparser form less than half."""


@figure("thesis-tab-2.1")
def levels_of_integration(run):
    """At which level are cues best combined: features, kernels, or scores?"""
    results = results_of(run, "mfeat")
    permutations = list(results.task.splits)[: run.size["integration"]]
    points = [{"permutation": k} for k in permutations]
    data = cue_tasks.handed(results.task)
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
    note = "One pass online; test error in percent, with half its 95% interval. Of choices, "
    note += f"{'; '.join(filter(None, at_ends)) or 'none at an edge'}."
    table = pd.DataFrame(rows).set_index("level")
    run.save_table(table, "thesis-tab-2.1", provenance=[results.data], seeds=permutations, note=note)


@levels_of_integration.title
def _(results):
    table = results.table("thesis-tab-2.1").set_index("level")
    batch, online = (
        enumerated([f"{error:.1f}" for error in table[f"{kind} error [%]"]]) for kind in ("batch", "online")
    )
    return f"""
{enumerated(table.index).capitalize()} integration err on {batch}% in batch, on {online}% online."""


@figure("thesis-thm-3.1", claims="omcl-7")
def regret_of_the_second_layer(run):
    """Does the second layer's loss stay below that of the best cue plus the regret?"""
    results = {name: results_of(run, name) for name in (*streams(run), "categories")}
    first = [pd.DataFrame(part.losses[0]).assign(data=name) for name, part in results.items()]
    bounds = [part.theorem.assign(data=name) for name, part in results.items()]
    tables = {"": pd.concat(first, ignore_index=True), "bounds": pd.concat(bounds, ignore_index=True)}
    data = [part.data for part in results.values()]
    note = f"First permutation of each; multiclass hinge losses; gradient steps of {run.step:g}."
    drawing = draw.regret(tables[""], tables["bounds"])
    run.save_figure(drawing, "thesis-thm-3.1", tables, provenance=data, note=note)


@regret_of_the_second_layer.title
def _(results):
    bounds = results.table("thesis-thm-3.1.bounds").dropna(subset="bound")
    share = (bounds["measured"] / bounds["bound"]).max()
    n_runs = bounds.groupby(["data", "permutation"]).ngroups
    return f"In {n_runs} runs the second layer's loss and mistakes reach at most {share:.0%} of their bounds."


@regret_of_the_second_layer.see
def _(results):
    bounds = results.table("thesis-thm-3.1.bounds")
    share = bounds["measured"] / bounds["bound"]
    times = 1 / share[bounds["quantity"] == "mistakes"].median()
    passive = where(bounds, **{"second layer": "PA-I", "quantity": "cumulative loss"})
    below = (passive["measured"] <= passive["best cue"]).mean()
    return f"""
The loss of PA-I stays below that of the best *single* cue in {below:.0%} of the runs, which no theorem
promises. The bound on PA-I's mistakes is {times:.0f} times their number in the median run."""


@figure("thesis-sec-3.3", claims="omcl-8")
def last_hypothesis_and_average(run):
    """Is the averaged predictor better than the last one?"""
    results = {name: results_of(run, name) for name in streams(run)}
    fig, (axes,) = panels(len(results), size=(2.8 * len(results), 3.2))
    for ax, (name, part) in zip(axes, results.items(), strict=True):
        for method, errors in part.hypotheses.groupby("method", sort=False):
            style = method_style(method, linestyle="", markersize=3, alpha=0.6)
            ax.plot(100 * errors["last"], 100 * errors["average"], **style)
        middle = 100 * part.hypotheses["last"].median()
        ax.axline((middle, middle), slope=1, color="black", lw=0.8, label="equal errors")
        ax.set(title=name, xlabel="last hypothesis [%]")
    axes[0].set_ylabel("test error, averaged [%]")
    legend(fig, axes[0], 5)
    tables = [part.hypotheses.assign(data=name) for name, part in results.items()]
    data = [part.data for part in results.values()]
    note = "Every class alike; a point for each permutation; below the line averages are better."
    table = pd.concat(tables, ignore_index=True)
    run.save_figure(fig, "thesis-sec-3.3", table, provenance=data, note=note)


def _last_and_average(results):
    errors = where(results.table("thesis-sec-3.3"), method="OMCL-BM").groupby("data", sort=False)
    return 100 * errors[["last", "average"]].mean()


@last_hypothesis_and_average.title
def _(results):
    mean = _last_and_average(results)
    fewer = (mean["average"] < mean["last"]).sum()
    difference = (mean["average"] - mean["last"]).mean()
    return f"""
On {fewer} of {len(mean)} data sets OMCL-BM's average errs less than its last hypothesis (mean difference
{difference:+.1f} points)."""


@last_hypothesis_and_average.see
def _(results):
    texts = [
        f"{name} {row['last']:.1f} and {row['average']:.1f}%"
        for name, row in _last_and_average(results).iterrows()
    ]
    return f"""
OMCL-BM's error with the last hypothesis and with the average: {"; ".join(texts)}. The guarantee is for
independent samples in random order."""


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
            task = cue_tasks.table_task(loaded, n_train, n_test, permutations, run.seed)
            data.append(loaded)
        points = [{"permutation": k} for k in permutations]
        frame = run.sweep(f"few-labels-{name}").frame(few_labels_run, points, **cue_tasks.handed(task))
        tables.append(frame.assign(data=name))
    table = pd.concat(tables, ignore_index=True)
    table = table[["data", "permutation", "method", "rule", "value", "requested", "test_error"]]
    note = f"One pass over {n_train} samples; every class counts alike; {len(permutations)} permutations."
    run.save_figure(draw.few_labels(table), "thesis-sec-7.2.1", table, provenance=data, note=note)


def _at_half(results):
    """Errors at half of the labels in points: rows permutations, data and method as keys."""
    groups = results.table("thesis-sec-7.2.1").groupby(["data", "method"], sort=False)
    return {keys: 100 * at_half(table) for keys, table in groups}


@few_labels.title
def _(results):
    errors = _at_half(results).values()
    by_margin, at_random = (
        [(rows[rule] - rows["all"]).mean() for rows in errors] for rule in ("margin", "random")
    )
    return f"""
With half of the labels, requested by the margin, the test error changes by {min(by_margin):+.1f} to
{max(by_margin):+.1f} points; with half at random, by {min(at_random):+.1f} to {max(at_random):+.1f}."""


@few_labels.see
def _(results):
    texts = []
    for (data, method), rows in _at_half(results).items():
        margin, *others = rows.mean()[["margin", "all", "threshold", "random"]]
        beside = "; ".join(f"{error:.1f}" for error in others)
        texts.append(f"{data}, {method_style(method)['label']} {margin:.1f} ({beside})")
    return f"""
Test errors in percent with half of the labels by the margin (with all; with half by a threshold; with half
at random): {"; ".join(texts)}. The numbers at the blue points are the values of $b$."""
