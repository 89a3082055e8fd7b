"""Figures and tables of the MKTL chapter, in the order of its notebook."""

from functools import cache

import numpy as np
import pandas as pd

from companion.mktl import claims, compare, settings, tasks, timing  # noqa: F401  claims: the verdicts
from companion.plots import mktl as draw
from companion.run.figures import name_methods
from companion.run.registry import figure
from cuelearn.datasets import DataFileError, load_original
from cuelearn.kernels import RBF
from cuelearn.mktl import MKTL

name_methods(compare.METHODS)


@cache
def names_of(run):
    """The tasks of figure 6.3: the bundled ones, before them AwA where it is requested and present."""
    names = list(settings.BUNDLED)
    tasks.describe(names, run.n_jobs)
    if run.data_tier == "original":
        try:
            load_original("awa")
            names = ["awa", *names]
        except DataFileError as error:
            print(f"{error} Emoji only.")
    return names


def data_of(names):
    return [tasks.load_task(name).data for name in names]


def grids_of(run, C=None):
    return {"C": list(C or run.size["C"]), "p": list(run.size["p"])}


@cache
def curves(run):
    """Every method of figure 6.3 on every draw, with the parameters that validation chose."""
    names = names_of(run)
    size = run.size["multiclass"]
    return compare.multiclass(run.sweep, names, run.seeds(size), size, grids_of(run), run.size["effort"])


@cache
def binary_runs(run):
    """The same of figure 6.2."""
    tasks.describe(["binary"], run.n_jobs)
    size = run.size["binary"]
    return compare.binary(run.sweep, run.seeds(size), size, grids_of(run, size["C"]), run.size["effort"])


def percent_right(table, by):
    """Mean accuracy in per cent: a row for each method, a column for each value of `by`."""
    return 100 * table.groupby(["method", by])["accuracy"].mean().unstack()


def listed(values, form="+.1f"):
    return ", ".join(format(value, form) for value in values)


@figure("thesis-fig-6.1-things")
def new_animals_and_what_they_are_taken_for(run):
    """Which of ten new animals is taken for which, without and with what a model of forty others says?"""
    animals = tasks.load_task("animals")
    compared = ("NoTransfer", "PriorFeatures", "MKTL")
    confused = compare.confusion(curves(run), "animals", 5, compared, run.size["effort"])
    new = np.unique(animals.y).tolist()
    known = tasks.faces(animals.prior_names)[:, 0]
    pictures = {
        "40 known animals: a model on colours and words": known.reshape(4, 10, *known.shape[1:]),
        "ten new ones by shape: five of eight drawings": tasks.faces(new, 5).swapaxes(0, 1),
    }
    drawing = draw.things(pictures, confused, dict(zip(new, tasks.faces(new)[:, 0], strict=True)))
    n_draws = len(run.seeds(run.size["multiclass"]))
    note = f"{settings.DRAWN}; five drawings per class, {n_draws} draws; {settings.VALIDATED}"
    shows = "new animals, and what they are taken for without and with transfer"
    run.save_figure(
        drawing, "thesis-fig-6.1", confused, "things", provenance=[animals.data], note=note, shows=shows
    )


@new_animals_and_what_they_are_taken_for.see
def _(results):
    table = results.table("thesis-fig-6.1-things")
    right = table[table["true"] == table["said"]].pivot(index="true", columns="method", values="share")
    right = 100 * right.reindex(table["true"].unique()).fillna(0)
    mean = right.mean()
    gain = (right["MKTL"] - right["NoTransfer"]).sort_values()
    end = "most is lost by" if gain.iloc[0] < 0 else "least is gained by"
    return f"""
By shape alone (No-Transfer) {mean["NoTransfer"]:.0f}% of the test pictures are right. What the model of forty
other animals says of colours and patches (Prior-Features) is right for {mean["PriorFeatures"]:.0f}%: it
confuses animals of the same colour. Both together (MKTL) are right for {mean["MKTL"]:.0f}%. Most is gained by
the {gain.index[-1]} ({gain.iloc[-1]:+.0f} points), {end} the {gain.index[0]} ({gain.iloc[0]:+.0f})."""


@figure("thesis-fig-6.1")
def scores_of_priors_as_features(run):
    """How do the scores of the priors become features when one new class is scored?"""
    task = tasks.load_task("objects")
    X = task.data.X[task.rows]
    models = task.priors[:3]  # plants, animals and vehicles
    priors = [(f"prior {k}", prior.model, prior.columns) for k, prior in enumerate(models, 1)]
    train, test = tasks.draw(task, 5, run.seed)
    model = MKTL([("PHOG", RBF(), task.columns)], priors, C=10.0, random_state=run.seed)
    model.fit(X[train], task.y[train])

    takes_most = np.abs(model.transfer_weights_).sum(axis=1).argmax()
    new = str(model.classes_[takes_most])
    sample = test[task.y[test] == new][0]
    weights = model.transfer_weights_[takes_most]
    scores = task.scores[sample, : weights.size] / model.score_scale_
    known = task.prior_names[: weights.size]
    parts = pd.DataFrame({"prior": known, "score": scores, "weight": weights, "part": scores * weights})
    of_kernel = model.decision_function(X[[sample]])[0, takes_most] - scores @ weights
    groups = [(prior.name, prior.classes) for prior in models]
    drawing = draw.schematic(new, known, scores, weights, of_kernel, groups)
    note = f"emoji, objects: a fitted MKTL, five drawings per class, C = 10, p = {model.p_:.3f}; "
    note += "scores divided by their root mean square"
    run.save_figure(drawing, "thesis-fig-6.1", parts, provenance=[task.data], note=note)


@scores_of_priors_as_features.see
def _(results):
    parts = results.table("thesis-fig-6.1")
    most = parts.loc[parts["part"].abs().idxmax()]
    size = parts["weight"].abs()
    n_small = (size < 0.1 * size.max()).sum()
    return f"""
The new class that takes most from the priors is drawn, for one of its test pictures. The priors add
{parts["part"].sum():+.2f} to its score, and most of that is a single score: what a model that never saw this
thing says of {most["prior"]} ({most["part"]:+.2f}). Of the {len(parts)} weights {n_small} are below a tenth
of the largest. With other training samples other priors are used (change `seed`)."""


@figure("thesis-sec-6.2-weights")
def weights_of_the_priors(run):
    """From which prior does each new class take how much?"""
    table = curves(run)
    for name in names_of(run):
        n = max(run.size["multiclass"][name])
        n_priors = max(tasks.TASKS[name].sizes)
        runs = table[(table["name"] == name) & (table["method"] == "MKTL")]
        runs = runs[(runs["n_per_class"] == n) & (runs["n_priors"] == n_priors)]
        C, p = runs[["C", "p"]].value_counts().index[0]  # the most frequent choice
        chosen = {"C": C, "p": p}
        weights = compare.transfer_weights(name, run.seed, n, chosen, run.size["effort"], n_priors)
        task = tasks.load_task(name)
        drawing = draw.weights(weights, [(prior.name, prior.classes) for prior in task.priors])
        note = f"{draw.TITLES[name]}: {n} samples per class, C = {C:g}, p = {p:g}, as most runs chose; "
        note += f"the kernel's block has norm {weights['kernel'].iloc[0]:.2f}; "
        note += "weights of scores of mean square 1"
        shows = "transfer weights: from which prior, how much, for each new class"
        more = {"provenance": [task.data], "note": note, "shows": shows}
        run.save_figure(drawing, "thesis-sec-6.2", weights, f"weights-{name}", **more)


@weights_of_the_priors.see
def _(results):
    tables = {
        name: results.table(f"thesis-sec-6.2-weights-{name}")
        for name in tasks.TASKS
        if results.has(f"thesis-sec-6.2-weights-{name}")
    }
    largest = []
    for name, table in tables.items():
        rows = table.nlargest(4, "weight").itertuples()
        pairs = ", ".join(f"{row.new} from {row.prior}" for row in rows)
        largest.append(f"on {draw.TITLES[name]}: {pairs}")
    taken = tables["animals"]["weight"].abs().groupby(tables["animals"]["new"]).sum()
    kernel = tables["animals"]["kernel"].iloc[0]
    return f"""
No label says which things look alike, and no prior was trained on a new thing. These have the largest
weights: {"; ".join(largest)}. Some pairs have a reason that one sees, others have none. *How much* a class
takes is read at the right, to be compared with the norm of the kernel's block ({kernel:.2f} on the animals):
the {taken.idxmax()} takes most ({taken.max():.2g}), the {taken.idxmin()} least ({taken.min():.2g})."""


def _save_binary(run, drawing, suffix):
    table = binary_runs(run)
    n_targets = table["target"].nunique()
    note = f"{settings.DRAWN}; {settings.N_NEGATIVE} background samples, of as many other things; "
    note += f"{n_targets} targets, {len(run.seeds(run.size['binary']))} draws of each; {settings.VALIDATED}; "
    note += compare.edges(table, grids_of(run, run.size["binary"]["C"]))
    data = tasks.binary_task(tasks.binary_targets()[0]).data
    run.save_figure(drawing, "thesis-fig-6.2", table, suffix, provenance=[data], note=note)


@figure("thesis-fig-6.2-mean", claims="mktl-1")
def one_class_against_a_background(run):
    """How much do priors help when one new class with few samples stands against a background?"""
    _save_binary(run, draw.binary_mean(binary_runs(run)), "mean")


@one_class_against_a_background.see
def _(results):
    table = results.table("thesis-fig-6.2-mean")
    percent = percent_right(table, "n_positive")
    few = percent.columns.min()
    many = percent.columns.max()
    alone = percent.loc["NoTransfer"]
    mean = percent[[n for n in percent.columns if n <= 5]].mean(axis=1)
    gain = mean - mean["NoTransfer"]
    unweighted = percent.loc["MKTL"] - percent.loc["PriorFeatures"]
    rivals = percent.loc[["PriorFeatures weighted", "AverageTL weighted"]].max()
    equal = percent.loc["MKTL weighted"] - rivals
    return f"""
With {few} positive sample among {settings.N_NEGATIVE} of the background No-Transfer gets {alone[few]:.0f}%
right, hardly better than guessing, with {many} it gets {alone[many]:.0f}%. Up to five positives Multi-KT is
{gain["MultiKT"]:.0f} points above it, weighted MKTL {gain["MKTL weighted"]:.0f}, MKTL without weights
{gain["MKTL"]:.0f}; MKTL minus Prior-Features, both without weights, is {listed(unweighted)} points with
{listed(unweighted.index, "d")} positives.

**Most of what weighted MKTL gains are the class weights.** At the right, where every method has them, it is
{equal.min():+.1f} to {equal.max():+.1f} points against the better of the plain average and the priors alone.
The largest certified gap of MKTL, relative to its objective, is {table["gap"].max():.1e}."""


@figure("thesis-fig-6.2-classes", claims="mktl-2")
def target_by_target(run):
    """Is weighted MKTL clearly worse than the priors' scores alone on any single target?"""
    _save_binary(run, draw.binary_classes(binary_runs(run)), "classes")


@target_by_target.see
def _(results):
    table = results.table("thesis-fig-6.2-mean")
    right = 100 * table.groupby(["target", "method"])["accuracy"].mean().unstack()
    above = (right["MKTL weighted"] - right["PriorFeatures"]).sort_values()
    return f"""
Over all numbers of positives weighted MKTL is ahead of the priors' scores alone (Prior-Features without class
weights) on {(above > 0).sum()} of {above.size} targets, by {above.iloc[0]:+.0f} ({above.index[0]}) to
{above.iloc[-1]:+.0f} points ({above.index[-1]})."""


@figure("thesis-fig-6.3", claims=("mktl-3", "mktl-4", "mktl-5"))
def several_new_classes(run):
    """How much do priors help when several new classes are told apart?"""
    size = run.size["multiclass"]
    note = f"{settings.DRAWN}; {len(run.seeds(size))} draws; {settings.VALIDATED}; "
    note += "Multi-KT has priors of its own kind, on the new task's features; "
    note += compare.edges(curves(run), grids_of(run))
    seeds = range(run.seed, run.seed + size["more_seeds"])
    # MKTL alone, to tell 14 from 23 priors
    draws = compare.number_of_priors(run.sweep, seeds, size, grids_of(run), run.size["effort"])
    tables = {"": curves(run), "draws": draws[["n_priors", "n_per_class", "seed", "accuracy"]]}
    data = data_of(names_of(run))
    run.save_figure(draw.multiclass(curves(run)), "thesis-fig-6.3", tables, provenance=data, note=note)


@several_new_classes.see
def _(results):
    table = results.table("thesis-fig-6.3")
    most = table[table["n_priors"] == table.groupby("name")["n_priors"].transform("max")]
    sentences = []
    for name, runs in most.groupby("name", sort=False):
        percent = percent_right(runs, "n_per_class")
        enough = percent[[n for n in percent.columns if n >= 5]].mean(axis=1)
        gain = enough["MKTL"] - enough
        sentences.append(
            f"on {name} MKTL is {gain['NoTransfer']:+.1f} points against No-Transfer and "
            f"{gain['AverageTL']:+.0f} against the plain average of all kernels (the priors alone reach "
            f"{enough['PriorFeatures']:.0f}%), Multi-KT {enough['MultiKT'] - enough['NoTransfer']:+.1f} "
            "against No-Transfer"
        )
    first = percent_right(most[most["name"] == "objects"], "n_per_class")[1]
    return f"""
With five samples per class and more, {"; ".join(sentences)}. With a single drawing of each object MKTL is
{first["MKTL"] - first["NoTransfer"]:+.1f} points against No-Transfer: a single drawing does not show which
priors help. Every run chooses its parameters on its own sample of the validation's draws, so that the bands
contain the spread of that choice. The largest certified gap of MKTL, relative to its objective, is
{table["gap"].max():.1e}."""


@figure("thesis-fig-6.3-priors")
def more_and_more_priors(run):
    """How does the accuracy on the objects go on with more priors?"""
    size = run.size["priors"]
    seeds = run.seeds(size)
    table = compare.along_priors(run.sweep, "objects", seeds, size, grids_of(run), run.size["effort"])
    note = f"emoji, objects, {size['n_per_class']} samples per class; {len(seeds)} draws; "
    note += f"{settings.VALIDATED}; {compare.edges(table, grids_of(run))}"
    more = {"provenance": data_of(["objects"]), "shows": "accuracy against the number of priors"}
    run.save_figure(draw.along_priors(table), "thesis-fig-6.3", table, "priors", note=note, **more)


@more_and_more_priors.see
def _(results):
    table = results.table("thesis-fig-6.3-priors")
    percent = percent_right(table, "n_priors")
    first = percent.columns.min()
    last = percent.columns.max()
    alone = percent.loc["PriorFeatures"]
    both = percent.loc["MKTL"]
    return f"""
The more priors there are, the more they say alone: {alone[first]:.0f}% are right with {first},
{alone[last]:.0f}% with {last}, though none knows a new thing. MKTL goes from {both[first]:.0f}% to
{both[last]:.0f}%: with {table["n_per_class"].iloc[0]} pictures of each new thing the number of priors matters
much less, and those that do not help do little harm."""


@figure("thesis-sec-6.3")
def accuracy_and_priors_in_use(run):
    """How many priors does each exponent p use, and what does that do to the accuracy?"""
    size = run.size["path"]
    animals = tasks.load_task("animals")
    common = {"name": "animals", "n_per_class": size["n_per_class"], "C": 10.0, "effort": run.size["effort"]}
    points = [{**common, "seed": seed, "p": p} for p in (*size["p"], "auto") for seed in run.seeds(size)]
    table = run.sweep("path").frame(compare.along_p, points, data=animals.data).drop(columns="effort")
    note = f"emoji, animals: {size['n_per_class']} samples per class, C = 10, {size['seeds']} draws"
    drawing = draw.along_p(table, n_priors=len(animals.prior_names))
    run.save_figure(drawing, "thesis-sec-6.3", table, provenance=[animals.data], note=note)


@accuracy_and_priors_in_use.see
def _(results):
    table = results.table("thesis-sec-6.3")
    gap = (table["gap"] / table["objective"]).max()
    means = table.groupby("p")[["accuracy", "used", "p_found"]].mean()
    means["accuracy"] *= 100
    auto = means.loc["auto"]
    chosen = means.drop(index="auto").sort_values("p_found")
    least = chosen.iloc[0]
    most = chosen.iloc[-1]
    best = chosen.loc[chosen["accuracy"].idxmax()]
    return f"""
The number of priors in use grows from {least["used"]:.0f} to {most["used"]:.0f} of
{max(tasks.TASKS["animals"].sizes)}. The accuracy is {least["accuracy"]:.0f}% where next to none is in
use, highest at $p$ = {best["p_found"]:g} ({best["accuracy"]:.0f}%, {best["used"]:.0f} in use), and
{most["accuracy"]:.0f}% at $p$ = {most["p_found"]:g}: there the norm no longer protects from what does not
help. p auto is {auto["p_found"]:.2f}, with {auto["used"]:.0f} in use and {auto["accuracy"]:.0f}%. The largest
certified gap, relative to the objective, is {gap:.1e}."""


@figure("thesis-sec-6.2-negative")
def useless_priors(run):
    """What do priors that say nothing cost against No-Transfer?"""
    size = run.size["negative"]
    seeds = run.seeds(size)
    table = compare.negative(run.sweep, "animals", seeds, size, grids_of(run), run.size["effort"])
    data = [*data_of(["animals"]), settings.USELESS]
    shows = "what useless priors cost against No-Transfer"
    note = f"emoji, animals with useless scores (shuffled, or simulated noise); {len(seeds)} draws; "
    note += f"{settings.VALIDATED}; {compare.edges(table, grids_of(run))}"
    more = {"provenance": data, "shows": shows}
    run.save_figure(draw.negative(table), "thesis-sec-6.2", table, "negative", note=note, **more)
    note = "difference: accuracy minus No-Transfer's on the same samples, in points, mean and "
    note += "95% interval over draws; none: no scores at all"
    run.save_table(compare.lost(table), "thesis-sec-6.2", "negative-table", note=note, **more)


@useless_priors.see
def _(results):
    table = results.table("thesis-sec-6.2-negative-table")
    difference = table.set_index(["method", "useless", "n_per_class"])["difference"].sort_index()
    few = table["n_per_class"].min()
    kinds = [kind for kind in table["useless"].unique() if kind != "none"]
    with_five = ", ".join(f"{difference['MKTL', kind, 5]:+.1f} ({kind})" for kind in kinds)
    with_few = listed(difference["MKTL", kind, few] for kind in kinds)
    rivals = -difference[["AverageTL", "MultiKT"]]
    return f"""
Shuffled scores cost MKTL little, many columns of noise more. With 5 samples the difference of MKTL to
No-Transfer is {with_five} points, with {few} it is {with_few}; with no scores at all (the thin line)
{difference["MKTL", "none", few]:+.1f}, since its solver and loss are not those of No-Transfer. For every
$p > 1$ each group keeps a little weight, and among hundreds of numbers a few fit few samples by chance. p
auto, which knows only how many columns there are, is {-difference["MKTL auto"].min():.0f} points below at
worst, Average-TL and Multi-KT {rivals.min():.0f} to {rivals.max():.0f}."""


@figure("thesis-sec-6.5", claims="mktl-6")
def training_time(run):
    """How long does training take at the thesis's size, and how much memory?"""
    size = run.size["timing"]
    kinds = ["random", *(["awa"] if "awa" in names_of(run) else [])]
    data = [settings.SIMULATED, *data_of(kinds[1:])]
    cases = [("MKTL", C, p) for C in settings.C_RANGE for p in ("auto", 1.5)]
    cases += [("MKTL", C, 1.01) for C in size["sparse"]]
    cases += [(method, 1.0, "") for method in ("MultiKT", "AverageTL", "PriorFeatures", "NoTransfer")]
    effort = {"n_epochs": 20, "tol": 1e-3}
    fixed = {"effort": effort, "repeats": size["repeats"], "seed": run.seed}
    points = [
        {**fixed, "kind": kind, "method": method, "n_per_class": n, "C": C, "p": p, "memory": C == 1.0}
        for kind in kinds
        for n in size["n_per_class"]
        for method, C, p in cases
    ]
    times = run.sweep("timing", 1).frame(timing.training_time, points, data=data)
    times = times.drop(columns=list(fixed))
    note = (
        "10 new classes, 40 priors; seconds: best of several trainings, one thread, kernel matrix included; "
    )
    note += "gap: certified, absolute; memory: peak in bytes, without the inputs"
    printed = np.where((times["method"] == "MKTL") & (times["n_per_class"] == 100), "< 60", "")
    run.save_table(times, "thesis-sec-6.5", provenance=data, note=note, paper={"seconds": printed})


@training_time.see
def _(results):
    times = results.table("thesis-sec-6.5")
    times = times[(times["method"] == "MKTL") & (times["n_per_class"] == times["n_per_class"].max())]
    slowest = times.loc[times["seconds"].idxmax()]
    usual = times[(times["C"] == 1) & (times["p"] == "auto")].iloc[0]
    return f"""
Forty priors for ten classes are 400 groups and 400 numbers: with $C$ = 1 and p auto training takes
{usual["seconds"]:.1f} s and {usual["memory"] / 1e6:.0f} MB. Large $C$ and $p$ near 1
take longest, since the certificate is harder to reach: {slowest["seconds"]:.1f} s with $C$ =
{slowest["C"]:g} and $p$ = {slowest["p"]}. Memory is the kernel matrix and its copies."""
