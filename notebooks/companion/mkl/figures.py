"""Figures of the MKL chapter on simulated kernels, theorems and losses; with it come all others."""

import numpy as np
from sklearn import datasets as toy

from companion.mkl import (  # noqa: F401
    claims,
    figures_accuracy,
    figures_cluster,
    figures_missing,
    figures_samples,
    figures_time,
    runs,
)
from companion.mkl.figures_accuracy import Place, save
from companion.mkl.rivals import METHODS  # noqa: F401  a method that was added gets a style
from companion.mkl.runs import (
    NOISE,
    PROBABILISTIC,
    PROBABILITY_TASKS,
    TASKS,
    compare_probabilities,
    compare_regressors,
    three_class,
)
from companion.plots import mkl as draw
from companion.protocol import grid_points, load_set, made_here, where
from companion.run.registry import figure
from cuelearn import datasets
from cuelearn.datasets import Provenance
from cuelearn.kernels import KernelBank, Linear


def _three_classes(run, row, methods):
    """Four kernel matrices, and the weights of `methods`; the table has those of all."""
    points = [{"seed": seed, "noise": run.noise} for seed in run.seeds(run.size["three_class"])]
    data = datasets.make_three_class(noise=run.noise, random_state=run.seed)
    weights = run.sweep("three-class").frame(three_class, points, data=data.provenance)
    bank = KernelBank(data.triples(Linear()), data.X)
    drawing = draw.kernel_weights(bank, data.y, weights[weights["method"].isin(methods)])
    note = "thesis: SILP and OM-2, JMLR: SILP and OBSCURE; C = 10"
    save(run, row, Place("three-class", len(data.y), data, "three classes"), weights, note, drawing)


def _weights(results):
    """Over the draws: the least weight of kernel 4, OBSCURE's largest one of another kernel, and how many
    kernels each binary problem of SILP takes, and how many all of them together."""
    table = results.table()
    taken = where(table, method="SILPMKL").query("weight > 0.01")
    return {
        "n": table["seed"].nunique(),
        "least": where(table, kernel=4).groupby("method")["weight"].min(),
        "other": where(table, method="OBSCURE").query("kernel != 4")["weight"].max(),
        "each": taken.groupby(["seed", "target"]).size().mean(),
        "together": taken.groupby("seed")["kernel"].nunique().mean(),
    }


@figure("thesis-fig-4.1")
def silp_and_om2(run):
    """Which kernels do OM-2 and 1-vs-All SILP take where kernel 4 alone tells all classes apart?"""
    _three_classes(run, "thesis-fig-4.1", ["SILPMKL", "OM2"])


silp_and_om2.facts(_weights)
silp_and_om2.title("""
OM-2 puts {least[OM2]:.1%} of the weight on kernel 4 in the worst of {n} draws; SILP uses {each:.1f} kernels
for each class.""")
silp_and_om2.see("""
Kernel 4 is the only matrix with three blocks. On average SILP's binary problems use {each:.1f} kernels each
and {together:.1f} together.""")


@figure("jmlr-fig-1", claims="om2-1")
def silp_and_obscure(run):
    """Which kernels does OBSCURE take where kernel 4 alone tells all classes apart?"""
    _three_classes(run, "jmlr-fig-1", ["SILPMKL", "OBSCURE"])


silp_and_obscure.facts(_weights)
silp_and_obscure.title(
    "OBSCURE puts {least[OBSCURE]:.1%} of the weight on kernel 4 in the worst of {n} draws."
)
silp_and_obscure.see("The largest weight that OBSCURE gives to another kernel is {other:.1%}.")


def digits(run):
    return Place("mfeat", run.size["theorems"]["n_train"], datasets.load_mfeat(), "multiple features")


@figure("thesis-thm-4.1", claims=["om2-7", "om2-8"])
def bound_on_mistakes(run):
    """Do OM-2's mistakes stay under the bound of theorem 4.1, and what do useless kernels cost?"""
    size = run.size["theorems"]
    place = digits(run)
    points = grid_points(
        kind=("mfeat-6", "random"), n_samples=[place.n_train], seed=run.seeds(run.size)[:3], p=size["p_grid"]
    )
    bound = run.sweep("theorem-1").frame(runs.mistake_bound, points, data=place.data)
    points = [
        {"n_kernels": n_kernels, "n_samples": place.n_train, "seed": seed, "p": p}
        for p in ("auto", 2.0)
        for n_kernels in size["counts"]
        for seed in range(run.seed, run.seed + size["streams"])
    ]
    useless = run.sweep("corollary-1").frame(runs.useless_kernels, points)
    streams = made_here("random streams", "companion.mkl.stream_problem")
    tables = {"": bound, "useless": useless}
    drawing = draw.mistake_bounds(bound, useless)
    save(run, "thesis-thm-4.1", place, tables, "one pass", drawing, provenance=[place.data, streams])


@bound_on_mistakes.facts
def _(results):
    table = results.table()
    useless = results.table("thesis-thm-4.1.useless")
    n_kernels = useless["n_kernels"].max()
    most = where(useless, n_kernels=n_kernels)
    return {
        "share": (table["mistakes"] / table["bound"]).groupby(table["kind"]).max(),
        "n_kernels": n_kernels,
        "mistakes": most.groupby(most["p"].astype(str))["mistakes"].mean(),
    }


bound_on_mistakes.title("""
OM-2 makes at most {share[mfeat-6]:.0%} of the mistakes that theorem 4.1 allows on real digits,
{share[random]:.0%} on random labels.""")
bound_on_mistakes.see("""
With {n_kernels} kernels, of which one is useful, OM-2 makes {mistakes[auto]:.0f} mistakes at the corollary's
$p$, {mistakes[2.0]:.0f} at $p = 2$.""")


@figure("thesis-thm-4.3", claims=["obs-10", "obs-14"])
def bound_on_updates(run):
    """Do the updates of OBSCURE's online stage and its radius obey theorem 4.3?"""
    place = digits(run)
    points = grid_points(
        n_samples=[place.n_train],
        seed=run.seeds(run.size)[:3],
        p=run.size["theorems"]["p_grid"],
        eta=(0.1, 0.5, 1.0, "auto"),
    )
    table = run.sweep("theorem-3").frame(runs.update_bound, points, data=place.data)
    save(run, "thesis-thm-4.3", place, table, "C = 10", draw.update_bounds(table))


@bound_on_updates.facts
def _(results):
    table = results.table()
    ended = table[table["without_loss"]]
    return {
        "share": (table["updates"] / table["bound"]).max(),
        "work": (table["bound"] / table["updates"]).agg(["min", "max"]),
        "radius": (table["radius"] / table["optimum_norm"]).agg(["min", "max"]),
        "of_bound": (ended["radius"] / ended["separable_radius"]).agg(["min", "max"]),
    }


bound_on_updates.title(
    "OBSCURE's online stage makes at most {share:.0%} of the updates that theorem 4.3 allows."
)
bound_on_updates.see("""
The bound on updates is {work[min]:.1f} to {work[max]:.1f} times their number. The radius $R$ is
{radius[min]:.1f} to {radius[max]:.1f} times the norm of the optimum. Where a run ends without loss, $R$ is
{of_bound[min]:.2f} to {of_bound[max]:.2f} of its bound, $2 + \\eta L^2$ times the norm of a separator.""")


def _suboptimality(run, row, method, cases):
    """Suboptimality of a method over independent draws, and its bound."""
    size = run.size["theorems"]
    place = digits(run)
    fixed = {"method": method, "n_samples": place.n_train, "seed": run.seed}
    more = {"n_epochs": size["n_epochs"], "streams": size["streams"]}
    points = [{**fixed, "C": C, "p": p, **more} for p, C in cases]
    table = run.sweep(f"{row}-bound").frame(runs.suboptimality_bound, points, data=place.data)
    save(run, row, place, table, "independent streams", draw.suboptimality_bounds(table))


def _against_bound(results):
    """Of the mean over the streams the largest share of the bound, and how both go with the steps."""
    table = results.table()
    case = ["p", "C"]
    means = table.groupby([*case, "step"])[["suboptimality", "bound"]].mean()
    runs = np.log(means.reset_index("step")).groupby(level=case)
    way = runs.last() - runs.first()
    return {
        "share": (means["suboptimality"] / means["bound"]).max(),
        "power": way[["suboptimality", "bound"]].div(way["step"], axis=0).median(),
        "times": (table["bound"] / table["suboptimality"]).median(),
    }


OVER_THE_STEPS = """
Over the steps $T$ the measured suboptimality goes like $T^{{{power[suboptimality]:.2f}}}$, the bound like
$T^{{{power[bound]:.2f}}}$ (median of the cases). In the median the bound is {times:.0f} times the measured
value."""


@figure("thesis-thm-4.2", claims="obs-9")
def bound_for_obscure(run):
    """Does OBSCURE's expected suboptimality stay under the bound of theorem 4.2?"""
    cases = [(1.05, 1.0), (1.25, 1.0), (2.0, 1.0), (1.25, 10.0)]
    _suboptimality(run, "thesis-thm-4.2", "OBSCURE", cases)


bound_for_obscure.facts(_against_bound)
bound_for_obscure.title(
    "The mean suboptimality of OBSCURE is at most {share:.1%} of what theorem 4.2 allows."
)
bound_for_obscure.see(OVER_THE_STEPS)


@figure("thesis-thm-4.5", claims="ufo-4")
def bound_for_ufo(run):
    """Does UFO-MKL's suboptimality stay under the bound of theorem 4.5?"""
    _suboptimality(run, "thesis-thm-4.5", "UFOMKL", [("auto", 0.1), ("auto", 1.0), ("auto", 10.0)])


bound_for_ufo.facts(_against_bound)
bound_for_ufo.title("The mean suboptimality of UFO-MKL is at most {share:.1%} of what theorem 4.5 allows.")
bound_for_ufo.see(OVER_THE_STEPS)


# --- losses beyond the hinge --------------------------------------------------------------------------------

DIABETES = Provenance(
    "diabetes",
    "bundled",
    "BSD (scikit-learn)",
    None,
    "Efron, Hastie, Johnstone, Tibshirani (2004). Least angle regression. Annals of Statistics 32.",
    f"{toy.load_diabetes.__module__}.load_diabetes",
)


def _runs(run, name, function, tasks, data):
    size = run.size["losses"]
    fixed = {key: size[key] for key in ("n_train", "n_test", "n_folds")}
    fixed["grids"] = {key: size[key] for key in ("C", "p", "alpha")}
    points = [{"task": task, **fixed, "seed": seed} for task in tasks for seed in run.seeds(size)]
    return run.sweep(f"losses-{name}").frame(function, points, data=data).drop(columns="grids")


@figure("loss-regression", claims=["loss-1", "loss-2"])
def errors_of_regressors(run):
    """Do learned kernel weights lower the error of regression?"""
    data = [DIABETES, *(made_here(name, f"sklearn.datasets.make_{name}") for name in NOISE)]
    data.append(load_set("mfeat").provenance)
    table = _runs(run, "regression", compare_regressors, TASKS, data)
    note = (
        f"{run.size['losses']['n_train']} training samples; all parameters by the same inner folds of each "
        "split; a kernel for each feature and one on all, of mfeat one for each of five cues, from which the "
        "digit's fifth morphological feature is predicted; epsilon is 0.1 standard deviations"
    )
    run.save_figure(draw.regressors(table), "loss-regression", table, provenance=data, note=note)


@errors_of_regressors.facts
def _(results):
    mean = results.table().groupby(["task", "method"], sort=False)["error"].mean().unstack()
    obscure = mean["OBSCURE, squared"]
    ridge = mean["kernel ridge, average"]
    share = obscure / ridge
    pairs = zip(mean.index, obscure, ridge, strict=True)
    return {
        "share": share.agg(["min", "idxmin", "max", "idxmax"]),
        "errors": "; ".join(f"{task}: {ours:.2f} against {theirs:.2f}" for task, ours, theirs in pairs),
        "difference": (mean["OBSCURE, insensitive"] - mean["p-norm SVR"]).abs().max(),
    }


errors_of_regressors.title("""
The error of OBSCURE is {share[min]:.1%} (on {share[idxmin]}) to {share[max]:.1%} (on {share[idxmax]}) of that
of ridge regression on the average kernel.""")
errors_of_regressors.see("""
Errors in standard deviations of y, of OBSCURE (squared loss) and kernel ridge: {errors}. OBSCURE with the
insensitive loss and the p-norm SVR, which minimise the same objective up to the bias, differ by at most
{difference:.3f}.""")


@figure("loss-reliability", claims=["loss-3"])
def reliability(run):
    """Are the probabilities of the logistic loss right as often as they say?"""
    data = [load_set(name).provenance for name in PROBABILITY_TASKS]
    table = _runs(run, "probabilities", compare_probabilities, PROBABILITY_TASKS, data)
    note = (
        f"{run.size['losses']['n_train']} training samples; parameters by the log loss on the same inner "
        "folds of each split; points: bins of the largest probability, of all splits together, with at "
        "least 20 samples"
    )
    run.save_figure(draw.reliability(table), "loss-reliability", table, provenance=data, note=note)


@reliability.facts
def _(results):
    runs = results.table().drop_duplicates(["task", "seed", "method"])
    mean = runs.groupby(["task", "method"], sort=False)[["calibration", "log_loss"]].mean().unstack()
    calibration = []
    for task, row in mean["calibration"].iterrows():
        values = ", ".join(f"{value:.1%} ({method})" for method, value in row.items())
        calibration.append(f"{task}: {values}")
    return {
        "n": len(mean),
        "log_loss": "; ".join(f"{name} {mean['log_loss'][name].mean():.2f}" for name in PROBABILISTIC),
        "calibration": "; ".join(calibration),
    }


reliability.title("Mean log loss on {n} data sets: {log_loss}.")
reliability.see("Mean calibration errors: {calibration}.")
