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


def _runs(run, name, function, tasks, data):
    """All methods on all tasks and seeds."""
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
