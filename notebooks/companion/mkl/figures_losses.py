"""Figures on losses beyond the hinge: regression, and probabilities."""

from sklearn import datasets as toy

from companion.mkl.losses import (
    NOISE,
    PROBABILISTIC,
    PROBABILITY_TASKS,
    TASKS,
    compare_probabilities,
    compare_regressors,
)
from companion.plots import mkl_losses as draw
from companion.protocol import load_set, made_here
from companion.run.registry import figure
from cuelearn.datasets import Provenance

DIABETES = Provenance(
    "diabetes",
    "bundled",
    "BSD (scikit-learn)",
    None,
    "Efron, Hastie, Johnstone, Tibshirani (2004). Least angle regression. Annals of Statistics 32.",
    f"{toy.load_diabetes.__module__}.load_diabetes",
)


def _points(run, tasks):
    size = run.size["losses"]
    grids = {name: size[name] for name in ("C", "p", "alpha")}
    fixed = {name: size[name] for name in ("n_train", "n_test", "n_folds")} | {"grids": grids}
    return [{"task": task, **fixed, "seed": seed} for task in tasks for seed in run.seeds(size)]


@figure("loss-regression", claims=["loss-1", "loss-2"])
def errors_of_regressors(run):
    """Do learned kernel weights lower the error of regression?"""
    data = [DIABETES, *(made_here(name, f"sklearn.datasets.make_{name}") for name in NOISE)]
    data.append(load_set("mfeat").provenance)
    points = _points(run, TASKS)
    table = run.sweep("losses-regression").frame(compare_regressors, points, data=data)
    table = table.drop(columns="grids")
    n_train = run.size["losses"]["n_train"]
    note = (
        f"{n_train} training samples; all parameters by the same inner folds of each split; a kernel for "
        "each feature and one on all, of mfeat one for each of five cues, from which the digit's fifth "
        "morphological feature is predicted; epsilon is 0.1 standard deviations"
    )
    run.save_figure(draw.regressors(table), "loss-regression", table, provenance=data, note=note)


def _differences(results):
    table = results.table("loss-regression")
    errors = table.pivot(index=["task", "seed"], columns="method", values="error")
    return errors, table.groupby(["task", "method"], sort=False)["error"].mean().unstack()


@errors_of_regressors.title
def _(results):
    _, mean = _differences(results)
    share = mean["OBSCURE, squared"] / mean["kernel ridge, average"]
    return f"""
The error of OBSCURE is {share.min():.1%} (on {share.idxmin()}) to {share.max():.1%} (on {share.idxmax()}) of
that of ridge regression on the average kernel."""


@errors_of_regressors.see
def _(results):
    _, mean = _differences(results)
    listed = "; ".join(
        f"{task}: {row['OBSCURE, squared']:.2f} against {row['kernel ridge, average']:.2f}"
        for task, row in mean.iterrows()
    )
    against = (mean["OBSCURE, insensitive"] - mean["p-norm SVR"]).abs().max()
    return f"""
Errors in standard deviations of y, of OBSCURE (squared loss) and kernel ridge: {listed}. OBSCURE with the
insensitive loss and the p-norm SVR, which minimise the same objective up to the bias, differ by at most
{against:.3f}."""


@figure("loss-reliability", claims=["loss-3"])
def reliability(run):
    """Are the probabilities of the logistic loss right as often as they say?"""
    data = [load_set(name).provenance for name in PROBABILITY_TASKS]
    points = _points(run, PROBABILITY_TASKS)
    table = run.sweep("losses-probabilities").frame(compare_probabilities, points, data=data)
    table = table.drop(columns="grids")
    note = (
        f"{run.size['losses']['n_train']} training samples; parameters by the log loss on the same inner "
        "folds of each split; points: bins of the largest probability, of all splits together, with at "
        "least 20 samples"
    )
    run.save_figure(draw.reliability(table), "loss-reliability", table, provenance=data, note=note)


def _means(results):
    table = results.table("loss-reliability").drop_duplicates(["task", "seed", "method"])
    return table.groupby(["task", "method"], sort=False)[["calibration", "log_loss"]].mean().unstack()


@reliability.title
def _(results):
    mean = _means(results)
    listed = "; ".join(f"{name} {mean['log_loss'][name].mean():.2f}" for name in PROBABILISTIC)
    return f"Mean log loss on {len(mean)} data sets: {listed}."


@reliability.see
def _(results):
    calibration = _means(results)["calibration"]
    listed = "; ".join(
        f"{task}: " + ", ".join(f"{value:.1%} ({method})" for method, value in row.items())
        for task, row in calibration.iterrows()
    )
    return f"Mean calibration errors: {listed}."
