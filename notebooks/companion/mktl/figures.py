"""Figures and tables of the MKTL chapter."""

from functools import cache

import numpy as np
import pandas as pd

from companion import mktl as experiments
from companion.mktl import claims  # noqa: F401  the verdicts
from companion.plots import mktl as draw
from companion.protocol import grid_points, original, where
from companion.run.figures import enumerated, extremes
from companion.run.registry import figure
from companion.study import interval
from cuelearn.kernels import RBF
from cuelearn.mktl import MKTL

#: All methods of the chapter: those that were added get a style.
METHODS = experiments.METHODS


@cache
def names_of(run):
    """The tasks of figure 6.3: the bundled ones, before them AwA where it is requested and present."""
    names = list(experiments.BUNDLED)
    for name in names:
        experiments.described(name, run.n_jobs)
    if original(run, "awa", "Emoji only.") is not None:
        names = ["awa", *names]
    return names


def data_of(names):
    return [experiments.load_task(name).data for name in names]


@cache
def curves(run):
    """Every method of figure 6.3 on every draw, with the parameters that validation chose."""
    return experiments.multiclass(run, "multiclass", experiments.places_of_figure(run, names_of(run)))


@cache
def binary_runs(run):
    """The same of figure 6.2."""
    experiments.described("binary", run.n_jobs)
    return experiments.binary(run)


def note_on(run, label, table):
    """How the samples of a table were drawn and its parameters chosen, whether at the ends of their grids."""
    size = run.size[label]
    note = f"{experiments.DRAWN}; {size['seeds']} draws; {experiments.VALIDATED}; "
    note += experiments.edges(table, experiments.grids_of(run))
    return f"{note}; gaps of MKTL up to {table['gap'].max():.0e} of its objective"


def percent_right(table, by):
    """Mean accuracy in per cent: a row for each method, a column for each value of `by`."""
    return 100 * table.groupby(["method", by])["accuracy"].mean().unstack()


@figure("thesis-fig-6.1-things")
def new_animals(run):
    """Which of ten new animals is taken for which, without and with the scores of a model of forty others?"""
    animals = experiments.load_task("animals")
    compared = ("NoTransfer", "PriorFeatures", "MKTL")
    confused = experiments.confusion(curves(run), "animals", 5, compared, run.size["effort"])
    known = experiments.faces(animals.prior_names)
    drawing = draw.things(known, experiments.faces(np.unique(animals.y), 5), confused, compared)
    note = note_on(run, "multiclass", curves(run))
    shows = "new animals, and what they are taken for without and with transfer"
    run.save_figure(drawing, "thesis-fig-6.1", confused, "things", [animals.data], note=note, shows=shows)


@new_animals.facts
def _(results):
    table = results.table()
    right = table[table["true"] == table["said"]].pivot(index="true", columns="method", values="share")
    right = right.reindex(table["true"].unique()).fillna(0)
    gain = 100 * (right["MKTL"] - right["NoTransfer"])
    return {"n": len(right), "right": right.mean(), **extremes(gain)}


new_animals.title("""
Accuracy on {n} new animals: {right[NoTransfer]:.0%} by shape alone, {right[PriorFeatures]:.0%} by the
scores of other animals alone, {right[MKTL]:.0%} by both.""")
new_animals.see("""
No-Transfer sees the shapes alone, Prior-Features the scores that the model of forty other animals gives from
colours and patches, MKTL both. From No-Transfer to MKTL the accuracy on the {most_of} changes by
{most:+.1f} points, that on the {least_of} by {least:+.1f}.""")


@figure("thesis-fig-6.1")
def scores_as_features(run):
    """How do the scores of the priors become features when one new class is scored?"""
    task = experiments.load_task("objects")
    X = task.data.X[task.rows]
    models = task.priors[:3]  # plants, animals and vehicles
    priors = [(f"prior {k}", prior.model, prior.columns) for k, prior in enumerate(models, 1)]
    train, test = experiments.draw(task, 5, run.seed)
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
    drawing = draw.schematic(parts, of_kernel, models)
    drawing.suptitle(f"score of new class {new} for one of its test samples")
    note = f"five drawings per class, C = 10, p = {model.p_:.3f}; scores divided by their root mean square"
    run.save_figure(drawing, "thesis-fig-6.1", parts, provenance=[task.data], note=note)


@scores_as_features.facts
def _(results):
    parts = results.table()
    size = parts["weight"].abs()
    return {
        "n": len(parts),
        "sum": parts["part"].sum(),
        "most": parts.loc[parts["part"].abs().idxmax()],
        "n_small": (size < 0.1 * size.max()).sum(),
    }


scores_as_features.title("""
{n} prior scores add {sum:+.2f} to the score of one test picture, {most[prior]} alone {most[part]:+.2f}.""")
scores_as_features.see("""
The new class is the one that takes most from the priors. Of {n} weights {n_small} are below a tenth of the
largest.""")


@figure("thesis-sec-6.2-weights")
def weights_of_the_priors(run):
    """From which prior does each new class take how much?"""
    for name in names_of(run):
        n = max(run.size["multiclass"][name])
        n_priors = max(experiments.TASKS[name].sizes)
        runs = where(curves(run), name=name, method="MKTL", n_per_class=n, n_priors=n_priors)
        C, p = runs[["C", "p"]].value_counts().index[0]  # the most frequent choice
        effort = run.size["effort"]
        weights = experiments.transfer_weights(name, run.seed, n, {"C": C, "p": p}, effort, n_priors)
        task = experiments.load_task(name)
        drawing = draw.weights(weights, task.priors)
        note = f"{name}: {n} samples per class, C = {C:g}, p = {p:g}, as most runs chose"
        more = {"note": note, "shows": "transfer weights: from which prior, how much, for each new class"}
        run.save_figure(drawing, "thesis-sec-6.2", weights, f"weights-{name}", [task.data], **more)


@weights_of_the_priors.facts
def _(results):
    shares = []
    largest = []
    names = list(experiments.BUNDLED)
    if results.has(f"{results.claim}-awa"):
        names.insert(0, "awa")
    for name in names:
        table = results.table(f"{results.claim}-{name}")
        size = table["weight"].abs().sort_values(ascending=False)
        n_half = 1 + (size.cumsum() < size.sum() / 2).sum()
        shares.append(f"{n_half / len(size):.0%} on {name}")
        rows = table.nlargest(4, "weight").itertuples()
        largest.append(f"on {name} {', '.join(f'{row.new} from {row.prior}' for row in rows)}")
    return {"shares": enumerated(shares), "largest": "; ".join(largest)}


weights_of_the_priors.title("Half of all that is transferred comes from this share of the weights: {shares}.")
weights_of_the_priors.see("""
The largest weights: {largest}. How much a class takes is the sum of its weights without signs.""")


def _save_binary(run, drawing, suffix, **more):
    tables = {"": binary_runs(run), **more}
    data = experiments.binary_task(experiments.binary_targets()[0]).data
    run.save_figure(drawing, "thesis-fig-6.2", tables, suffix, data, note=note_on(run, "binary", tables[""]))


@figure("thesis-fig-6.2-mean", claims=("mktl-1", "mktl-8", "mktl-9"))
def against_a_background(run):
    """How much do priors help when one new class with few samples stands against a background?"""
    wider = experiments.binary(run, ("MultiKT", "MKTL weighted"), "wider C")
    _save_binary(run, draw.binary_mean(binary_runs(run)), "mean", wider=wider)


@against_a_background.facts
def _(results):
    percent = percent_right(results.table(), "n_positive")
    few = percent.loc[:, : claims.FEW].mean(axis=1)
    above = few["MKTL weighted"] - few[[*draw.EQUAL]].drop("MKTL weighted")
    rival = above.idxmin()
    equal = percent.loc["MKTL weighted"] - percent.loc[["PriorFeatures weighted", "AverageTL weighted"]].max()
    most = percent.columns.max()
    return {
        "few": claims.FEW,
        "above": above,
        "rival": draw.EQUAL[rival],
        "above_rival": above[rival],
        "equal": equal.agg(["min", "max"]),
        "n_negative": experiments.N_NEGATIVE,
        "right": few["NoTransfer"],
        "gain": few - few["NoTransfer"],
        "many": most,
        "with_many": percent.loc["MultiKT", most] - percent[most],
    }


against_a_background.title("""
With up to {few} positives and equal class weights MKTL is {above[NoTransfer weighted]:+.1f} points against
No-Transfer, {above_rival:+.1f} against the best rival, {rival}.""")
against_a_background.see("""
Like with like first: at the top **every method has class weights**. There MKTL is, by number of positives,
{equal[min]:+.1f} to {equal[max]:+.1f} points against the better of the plain average and the priors alone.
Below, as in the thesis, only Multi-KT and one MKTL have weights. With up to five positive samples against
{n_negative} of the background Multi-KT is {gain[MultiKT]:+.0f} points against No-Transfer ({right:.0f}%
right), weighted MKTL {gain[MKTL weighted]:+.0f}, MKTL without weights {gain[MKTL]:+.0f}. With {many} Multi-KT
is {with_many[NoTransfer]:+.1f} points against No-Transfer, {with_many[PriorFeatures]:+.1f} against the
priors' scores alone, {with_many[MKTL]:+.1f} against MKTL.""")


@figure("thesis-fig-6.2-classes", claims="mktl-2")
def target_by_target(run):
    """Is MKTL clearly worse than the priors' scores alone, with the same weights, on any single target?"""
    _save_binary(run, draw.binary_classes(binary_runs(run)), "classes")


@target_by_target.facts
def _(results):
    table = results.table("thesis-fig-6.2-mean")
    gains = draw.gains_by_target(table)
    right = percent_right(table, "target")
    sentences = []
    for weights, title in ((" weighted", "with class weights"), ("", "without them")):
        above = right.loc[f"MKTL{weights}"] - right.loc[f"PriorFeatures{weights}"]
        sentences.append(
            f"{title}, MKTL is ahead of the priors' scores alone on {(above > 0).sum()} of {above.size} "
            f"targets, from {above.min():+.0f} ({above.idxmin()}) to {above.max():+.0f} points "
            f"({above.idxmax()})"
        )
    return {
        "n": len(gains),
        "below": (gains["high"] < 0).sum(),
        "above": (gains["low"] > 0).sum(),
        "sentences": "; ".join(sentences),
    }


target_by_target.title("""
With equal class weights the 95% interval of MKTL minus Prior-Features is below 0 on {below} of {n} targets,
above 0 on {above}.""")
target_by_target.see("Over all numbers of positives: {sentences}.")


@figure("thesis-fig-6.3", claims=("mktl-4", "mktl-5", "mktl-7"))
def several_new_classes(run):
    """How much do priors help when several new classes are told apart?"""
    # MKTL alone in more draws, to tell 14 from 23 priors
    places = experiments.places_of_figure(run, ["objects"], ["MKTL"])
    seeds = range(run.seed, run.seed + run.size["multiclass"]["more_seeds"])
    draws = experiments.multiclass(run, "multiclass", places, seeds)
    table = curves(run)
    tables = {"": table, "draws": draws[["n_priors", "n_per_class", "seed", "accuracy"]]}
    drawing = draw.multiclass(table[table["method"] != "MKTL auto-priors"])
    note = note_on(run, "multiclass", table)
    run.save_figure(drawing, "thesis-fig-6.3", tables, None, data_of(names_of(run)), note=note)


@several_new_classes.facts
def _(results):
    table = results.table()
    table = table[table["n_priors"] == table.groupby("name")["n_priors"].transform("max")]
    gains = []
    sentences = []
    hurts = []
    for name, runs in table.groupby("name", sort=False):
        percent = percent_right(runs, "n_per_class")
        above = percent.loc["MKTL"] - percent
        enough = above.loc[:, claims.FEW :].mean(axis=1)
        gains.append(f"{enough['NoTransfer']:+.1f} points on {name}")
        sentences.append(
            f"on {name} {above.loc['NoTransfer', 1]:+.1f} points against No-Transfer with a single sample "
            f"per class, and {enough['AverageTL']:+.0f} against the plain average of all kernels from "
            f"{claims.FEW} samples on"
        )
        hurts.append(_hurts(name, runs[runs["n_per_class"] == 1]))
    shown = {"gains": enumerated(gains), "sentences": "; ".join(sentences)}
    return {"few": claims.FEW, "hurts": " ".join(filter(None, hurts)), **shown}


def _hurts(name, runs):
    """In words, by how much MKTL with a single sample per class is certainly behind No-Transfer, if it is."""
    draws = 100 * runs.pivot(index="seed", columns="method", values="accuracy")
    lost = draws.sub(draws.pop("NoTransfer"), axis=0)
    mean, low, high = interval(lost["MKTL"])
    others = lost[[method for method in lost if not method.startswith("MKTL")]].mean()
    if not high < 0.0:
        return ""
    return (
        f"With a single sample per class transfer hurts on {name}: against No-Transfer MKTL is {mean:+.1f} "
        f"points ({low:.1f} to {high:.1f}), other methods {others.min():+.1f} to {others.max():+.1f}."
    )


several_new_classes.title("From {few} samples per class on, MKTL minus No-Transfer is {gains}.")
several_new_classes.see("""
MKTL: {sentences}. {hurts} The spread over draws includes that of the parameters, which each draw chooses on a
resample of the same validation draws.""")


@figure("thesis-fig-6.3-classes", claims="mktl-3")
def new_classes_again(run):
    """Does what figure 6.3 says of ten new classes hold for others?"""
    names = [name for name in names_of(run) if name != "objects"]
    table = experiments.other_classes(run, names)
    size = run.size["classes"]
    edges = experiments.edges(table, experiments.grids_of(run))
    note = (
        f"{size['splits']} splits into new and known classes, each with priors and parameters of its own and "
        f"{size['seeds']} draws of training samples; {edges}"
    )
    data = data_of(f"{name} 1" for name in names)
    run.save_figure(draw.new_classes(table), "thesis-fig-6.3", table, "classes", data, note=note)


@new_classes_again.facts
def _(results):
    by = ["name", "split", "method"]
    percent = 100 * results.table().groupby(by, sort=False)["accuracy"].mean().unstack()
    gain = percent["MKTL"] - percent["NoTransfer"]
    listed = [
        f"{mean:+.1f} points on {name}" for name, mean in gain.groupby("name", sort=False).mean().items()
    ]
    return {"n": percent.index.levels[1].size, "gains": enumerated(listed), **gain.agg(["min", "max"])}


new_classes_again.title("Over {n} choices of the new classes MKTL minus No-Transfer is {gains}.")
new_classes_again.see("""
For single choices of the new classes the gain goes from {min:+.1f} to {max:+.1f} points. Each choice has
models of the other classes, and parameters, of its own.""")


@figure("thesis-fig-6.3-priors")
def more_and_more_priors(run):
    """How does the accuracy on the objects change with more priors?"""
    size = run.size["priors"]
    common = {"name": "objects", "n_per_class": size["n_per_class"], "useless": ""}
    methods = ("PriorFeatures", "AverageTL", "MKTL")
    places = [({**common, "n_priors": k}, methods) for k in size["n_priors"]]
    table = experiments.multiclass(run, "priors", places)
    more = {"note": note_on(run, "priors", table), "shows": "accuracy against the number of priors"}
    run.save_figure(draw.along_priors(table), "thesis-fig-6.3", table, "priors", data_of(["objects"]), **more)


@more_and_more_priors.facts
def _(results):
    percent = percent_right(results.table(), "n_priors")
    above = percent.loc["MKTL"] - percent.loc["AverageTL"]
    return {"first": percent.iloc[:, 0], "last": percent.iloc[:, -1], "above": above.agg(["min", "max"])}


more_and_more_priors.title("""
From {first.name} to {last.name} priors MKTL goes from {first[MKTL]:.0f}% to {last[MKTL]:.0f}% right, the
scores alone from {first[PriorFeatures]:.0f}% to {last[PriorFeatures]:.0f}%.""")
more_and_more_priors.see("""
No prior was trained on a new thing. Against the plain average of the same kernels MKTL is
{above[min]:+.1f} to {above[max]:+.1f} points.""")


@figure("thesis-sec-6.3")
def priors_in_use(run):
    """How many priors does each exponent p use, and what does that do to the accuracy?"""
    size = run.size["path"]
    animals = experiments.load_task("animals")
    common = {"name": "animals", "n_per_class": size["n_per_class"], "C": 10.0, "effort": run.size["effort"]}
    points = [{**common, "seed": seed, "p": p} for p in (*size["p"], "auto") for seed in run.seeds(size)]
    table = run.sweep("path").frame(experiments.along_p, points, data=animals.data).drop(columns="effort")
    drawing = draw.along_p(table, n_priors=len(animals.prior_names))
    note = f"animals: {size['n_per_class']} samples per class, C = 10"
    run.save_figure(drawing, "thesis-sec-6.3", table, provenance=[animals.data], note=note)


@priors_in_use.facts
def _(results):
    table = results.table()
    means = table.groupby("p")[["p_found", "accuracy", "used"]].mean()
    chosen = means.drop(index="auto")
    return {
        "best": chosen.loc[chosen["accuracy"].idxmax()],
        "auto": means.loc["auto"],
        "least": chosen.min(),
        "most": chosen.max(),
        "gap": (table["gap"] / table["objective"]).max(),
    }


priors_in_use.title("""
The best p, {best[p_found]:g}, uses {best[used]:.0f} priors per class and is right on {best[accuracy]:.0%}; p
auto, {auto[p_found]:.2f}, uses {auto[used]:.0f} and is right on {auto[accuracy]:.0%}.""")
priors_in_use.see("""
From $p$ = {least[p_found]} to 2 the number of priors in use goes from {least[used]:.0f} to {most[used]:.0f}.
The largest certified gap, relative to the objective, is {gap:.1e}.""")


@figure("thesis-sec-6.2-negative")
def useless_priors(run):
    """What do priors that say nothing cost against No-Transfer?"""
    size = run.size["negative"]
    kinds = {"none": ["NoTransfer", "MKTL"]}
    for kind in ("shuffled", *(f"noise {k}" for k in size["n_noise"] if k)):
        kinds[kind] = ["AverageTL", "MultiKT", "MKTL", "MKTL auto"]
    points = grid_points(name=["animals"], n_per_class=size["n_per_class"], n_priors=[None], useless=kinds)
    table = experiments.multiclass(run, "negative", [(point, kinds[point["useless"]]) for point in points])
    data = [*data_of(["animals"]), experiments.USELESS]
    note = f"difference: in points, mean and 95% interval; {note_on(run, 'negative', table)}"
    more = {"note": note, "shows": "what useless priors cost against No-Transfer"}
    run.save_figure(draw.negative(table), "thesis-sec-6.2", table, "negative", data, **more)
    run.save_table(experiments.lost(table), "thesis-sec-6.2", "negative-table", data, **more)


@useless_priors.facts
def _(results):
    table = results.table("thesis-sec-6.2-negative-table")
    with_five = where(table, method="MKTL", n_per_class=5).itertuples()
    return {
        "worst": table.groupby("method")["difference"].min(),
        "listed": ", ".join(f"{row.useless} {row.difference:+.1f}" for row in with_five),
    }


useless_priors.title("""
With uninformative priors the accuracy, less No-Transfer's, is at worst {worst[MKTL]:+.0f} points (MKTL),
{worst[MKTL auto]:+.0f} (p auto), {worst[MultiKT]:+.0f} (Multi-KT), {worst[AverageTL]:+.0f} (Average-TL).""")
useless_priors.see("""
MKTL minus No-Transfer with 5 samples, in points, by kind of scores: {listed}. Every $p > 1$ leaves each group
a little weight, and some of many numbers fit few samples by chance.""")


@figure("thesis-sec-6.5", claims="mktl-6")
def training_time(run):
    """How long does training take at the thesis's size, and how much memory?"""
    size = run.size["timing"]
    kinds = ["random", *(["awa"] if "awa" in names_of(run) else [])]
    data = [experiments.SIMULATED, *data_of(kinds[1:])]
    cases = [("MKTL", C, p) for C in experiments.C_RANGE for p in ("auto", 1.5)]
    cases += [("MKTL", C, 1.01) for C in size["sparse"]]
    cases += [(method, 1.0, "") for method in ("MultiKT", "AverageTL", "PriorFeatures", "NoTransfer")]
    fixed = {"effort": {"n_epochs": 20, "tol": 1e-3}, "seed": run.seed}
    points = [
        {**fixed, "kind": kind, "method": method, "n_per_class": n, "C": C, "p": p, "memory": C == 1.0}
        for kind in kinds
        for n in size["n_per_class"]
        for method, C, p in cases
    ]
    times = run.sweep("timing", 1).frame(experiments.training_time, points, data=data)
    times = times.drop(columns=list(fixed))
    note = (
        "seconds: CPU seconds, one thread, kernel matrix included; gap: certified, absolute; "
        "memory: peak in bytes, without the inputs"
    )
    printed = np.where((times["method"] == "MKTL") & (times["n_per_class"] == 100), "< 60", "")
    run.save_table(times, "thesis-sec-6.5", provenance=data, note=note, paper={"seconds": printed})


@training_time.facts
def _(results):
    times = where(results.table(), method="MKTL")
    times = where(times, n_per_class=times["n_per_class"].max())
    usual = where(times, C=1, p="auto").iloc[0]
    return {
        "n": len(times),
        "fastest": times["seconds"].min(),
        "usual": usual,
        "megabytes": usual["memory"] / 1e6,
        "slowest": times.loc[times["seconds"].idxmax()],
    }


training_time.title("""
Ten classes of {usual[n_per_class]} samples with 40 priors train in {fastest:.1f} to {slowest[seconds]:.1f} s
({n} settings).""")
training_time.see("""
Forty priors for ten classes are 400 groups of one number: with $C$ = 1 and p auto training takes
{usual[seconds]:.1f} s and {megabytes:.0f} MB, for the kernel matrix and its copies. The slowest setting takes
{slowest[seconds]:.1f} s: $C$ = {slowest[C]:g}, $p$ = {slowest[p]}.""")
