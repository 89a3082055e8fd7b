"""The comparisons of figures 6.2 and 6.3: methods, how their parameters are chosen, and their accuracies.

A further method takes one line in `METHODS`.
"""

import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd

from cuelearn.experiments.mktl.settings import N_NEGATIVE
from cuelearn.experiments.mktl.tasks import binary_targets, binary_task, draw, draw_binary, load_task
from cuelearn.experiments.protocol import choose, compared, fitted, grid_points
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mktl import MKTL, AverageTL, MultiKT, NoTransfer, PriorFeatures

# seeds of the draws that parameters are chosen on begin here, far from those of the figures
FIRST_VALIDATION_SEED = 10_000
LEAST_HELD = 10
# what is chosen for a method, as columns of the results
CHOSEN = ("C", "p", "class_weight")
_USELESS = 63  # first entry of the seeds of useless scores


class Method(NamedTuple):
    """How a method enters: `make(C, p, effort, seed)` gives its estimator on precomputed kernels."""

    make: object
    has_p: bool = False  # p is chosen too
    same: bool = False  # it needs priors on the new task's features
    weights: tuple = ()  # class weights to choose from, handed to `make`


def _mktl(**options):
    def make(C, p, effort, seed):
        return MKTL("precomputed", C=C, p=p, random_state=seed, **{**effort, **options})

    return make


def _plain(cls, **options):
    return lambda C, p, effort, seed, **chosen: cls("precomputed", C=C, **options, **chosen)


METHODS = {
    "NoTransfer": Method(_plain(NoTransfer)),
    "PriorFeatures": Method(_plain(PriorFeatures)),
    "MultiKT": Method(_plain(MultiKT), same=True, weights=("balanced", None)),
    "AverageTL": Method(_plain(AverageTL)),
    "MKTL": Method(_mktl(), has_p=True),
    "MKTL auto": Method(lambda C, p, effort, seed: METHODS["MKTL"].make(C, "auto", effort, seed)),
    "MKTL weighted": Method(_mktl(class_weight="positive"), has_p=True),
    "NoTransfer weighted": Method(_plain(NoTransfer, class_weight="balanced")),
    "PriorFeatures weighted": Method(_plain(PriorFeatures, class_weight="balanced")),
    "AverageTL weighted": Method(_plain(AverageTL, class_weight="balanced")),
}
#: Methods of figures 6.3 and 6.2. The thesis weighs the classes in Multi-KT and MKTL only.
MULTICLASS = tuple(method for method in METHODS if "weighted" not in method)
BINARY = tuple(method for method in METHODS if method != "MKTL auto")


def candidates(method, grids):
    """All parameters of a method: C, p ("" where it has none), class_weight where there is a choice."""
    values = {"C": map(float, grids["C"]), "p": map(float, grids["p"]) if METHODS[method].has_p else [""]}
    weights = METHODS[method].weights
    return grid_points(**values, **({"class_weight": weights} if weights else {}))


class Trial:
    """One training set with the kernel that all methods share, and the samples that they are judged on.

    `train` and `judged` are rows of the task; `n_priors` takes the first score columns; `replaced` are scores
    in place of the task's.
    """

    def __init__(self, task, train, judged, n_priors=None, replaced=None):
        self.bank = KernelBank([("new", RBF(gamma=task.gamma), slice(None))], task.X[train])
        self.rows = np.ascontiguousarray(next(iter(self.bank.cross(task.X[judged]).blocks(memory=4e9)))[1])
        self.y, self.y_judged = task.y[train], task.y[judged]
        kinds = {False: task.scores, True: task.same}
        if replaced is not None:
            kinds = dict.fromkeys(kinds, replaced)
        self.scores = {same: (s[train, :n_priors], s[judged, :n_priors]) for same, s in kinds.items()}

    def fitted(self, method, chosen, effort, seed=0):
        """A method trained with given parameters; that it does not converge is no news here."""
        more = {k: v for k, v in chosen.items() if k == "class_weight"}
        model = METHODS[method].make(chosen["C"], chosen["p"], effort, seed, **more)
        return fitted(model, self.bank, self.y, scores=self.scores[METHODS[method].same][0])

    def share_right(self, method, model):
        """Share of the judged samples that a fitted model gets right."""
        return float(model.score(self.rows, self.y_judged, scores=self.scores[METHODS[method].same][1]))

    def accuracy(self, method, chosen, effort, seed=0):
        """Share of the judged samples that are right, of a method trained with given parameters."""
        return self.share_right(method, self.fitted(method, chosen, effort, seed))


def multiclass_trial(name, n_per_class, n_priors, useless, seed):
    """A draw of figure 6.3 and all test samples."""
    task = load_task(name)
    replaced = useless_scores(task, useless, seed)
    return Trial(task, draw(task, n_per_class, seed), task.test, n_priors, replaced)


def binary_trial(target, n_positive, seed):
    """A draw of figure 6.2 and all test samples, half of the target, half of the background."""
    task = binary_task(target)
    return Trial(task, draw_binary(task, n_positive, N_NEGATIVE, seed), task.test)


def accuracies(seed, chosen, effort, **place):
    """Methods trained on the same samples, `chosen` by name, at a place of figure 6.3 or 6.2.

    Columns method, accuracy (on test samples), gap (certified, relative to the objective).
    """
    trial = (binary_trial if "target" in place else multiclass_trial)(seed=seed, **place)
    rows = []
    for method, parameters in chosen.items():
        model = trial.fitted(method, parameters, effort, seed)
        gap = model.dual_gap_ / model.objective_ if getattr(model, "objective_", 0.0) else np.nan
        rows.append({"method": method, "accuracy": trial.share_right(method, model), "gap": gap})
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- choice of parameters


def _best(method, trials, grids, effort):
    """The parameters with the best mean accuracy over trials; ties: the smallest C, the largest p."""

    def score(chosen):
        return np.mean([trial.accuracy(method, chosen, effort) for trial in trials])

    best, accuracy = choose(candidates(method, grids), score, smaller=["C"], larger=["p"], digits=12)
    return {**best, "validation": accuracy}


def validated(method, name, n_per_class, n_priors, useless, grids, effort, draws, held, seed):
    """Parameters of a method (C, p, a class_weight where there is a choice) and their `validation` accuracy.

    Trained on draws of the pool, judged on `held` other samples of each class in the pool; no test sample is
    used. Where the pool has too few, fewer are held, but 10, then fewer are trained on.
    """
    task = load_task(name)
    n_classes = np.unique(task.y).size
    available = task.pool.size // n_classes
    held = min(held, max(LEAST_HELD, available - n_per_class))
    n_per_class = min(n_per_class, available - held)
    size, scores = n_per_class * n_classes, useless_scores(task, useless, seed)
    trials = []
    for k in range(draws):
        # class by class in turn
        drawn = draw(task, n_per_class + held, FIRST_VALIDATION_SEED + 100 * seed + k)
        trials.append(Trial(task, drawn[:size], drawn[size:], n_priors, scores))
    return _best(method, trials, grids, effort)


def validated_binary(method, n_positive, targets, grids, effort, draws, seed):
    """Parameters as of `validated` for a number of positive samples: the best on average over targets.

    Judged on the rest of the pools: as many of the target as of the background.
    """
    trials = []
    for target in targets:
        task = binary_task(target)
        for k in range(draws):
            train = draw_binary(task, n_positive, N_NEGATIVE, FIRST_VALIDATION_SEED + 100 * seed + k)
            rest = np.setdiff1d(task.pool, train)
            sides = [rest[task.y[rest] == label] for label in (1, 0)]
            held = min(side.size for side in sides)
            trials.append(Trial(task, train, np.concatenate([side[:held] for side in sides])))
    return _best(method, trials, grids, effort)


# ---------------------------------------------------------------- figures


def _curves(sweep, label, places, seeds, grids, effort, o):
    """Parameters, then accuracies, of every place (a task, samples, priors) and its methods."""
    data = [load_task(name).data for name in dict.fromkeys(place["name"] for place, _ in places)]
    common = {"grids": grids, "effort": effort, "draws": o["draws"], "held": o["held"], "seed": seeds[0]}
    asked = [{**place, "method": m, **common} for place, methods in places for m in methods]
    # the longest first
    asked.sort(key=lambda point: (-point["n_per_class"], point["method"] not in ("MKTL", "PriorFeatures")))
    points = [({**place, "seed": s, "effort": effort}, methods) for place, methods in places for s in seeds]
    by = ("name", "n_per_class", "n_priors", "useless")
    return compared(sweep, label, validated, asked, accuracies, points, by, CHOSEN, data)


def multiclass(sweep, names, seeds, o, grids, effort, methods=MULTICLASS):
    """All points of figure 6.3: both numbers of priors where the task has two.

    `sweep` makes a Sweep of a name; `o` is `multiclass` of `settings`. Columns name, n_per_class, n_priors,
    useless (empty), seed, method, accuracy, gap, C, p, class_weight.
    """
    places = []
    for name in names:
        task = load_task(name)
        most = len(task.prior_names)
        for n, k in itertools.product(o[name], dict.fromkeys((task.n_first, most))):
            some = [m for m in methods if k == most or m != "NoTransfer"]  # which knows of no priors
            places.append(({"name": name, "n_per_class": n, "n_priors": k, "useless": ""}, some))
    return _curves(sweep, "multiclass", places, seeds, grids, effort, o)


def useless_scores(task, kind, seed):
    """Scores, (n, K), that say nothing of a sample, in place of a task's; None where `kind` is "".

    "shuffled" deals the task's own out at random; "noise K" is K normal columns; "none" no columns.
    """
    if not kind:
        return None
    rng, n = np.random.default_rng([_USELESS, seed]), len(task.y)
    if kind == "none":
        return np.zeros((n, 0))
    if kind == "shuffled":
        return task.scores[rng.permutation(n)]
    return rng.normal(size=(n, int(kind.split()[1])))


def negative(sweep, name, seeds, o, grids, effort, multiclass):
    """Like `multiclass`, with priors that are useless on purpose; n_priors is empty."""
    kinds = ["shuffled", *(f"noise {k}" for k in o["n_noise"] if k)]
    some = dict.fromkeys(kinds, ["AverageTL", "MultiKT", "MKTL", "MKTL auto"])
    some = {"none": ["NoTransfer", "MKTL"], **some}
    base = {"name": name, "n_per_class": 0, "n_priors": None}
    places = itertools.product(o["n_per_class"], some.items())
    places = [({**base, "n_per_class": n, "useless": kind}, methods) for n, (kind, methods) in places]
    return _curves(sweep, "negative", places, seeds, grids, effort, multiclass)


def binary(sweep, seeds, o, grids, effort, methods=BINARY):
    """All points of figure 6.2; `sweep` makes a Sweep of a name, `o` is `binary` of `settings`.

    Columns target, seed, n_positive, method, accuracy, gap, C, p, class_weight.
    """
    targets = binary_targets()
    spread, some = (targets[:: max(1, len(targets) // n)][:n] for n in (o["targets"], o["validated"]))
    common = {"targets": some, "grids": grids, "effort": effort, "draws": o["draws"], "seed": seeds[0]}
    asked = [{"method": m, "n_positive": n, **common} for n in o["n_positive"] for m in methods]
    points = itertools.product(spread, seeds, o["n_positive"])
    points = [({"target": t, "seed": s, "n_positive": n, "effort": effort}, methods) for t, s, n in points]
    data = binary_task(targets[0]).data
    return compared(
        sweep, "binary", validated_binary, asked, accuracies, points, ["n_positive"], CHOSEN, data
    )


# ---------------------------------------------------------------- what one fitted model says


def transfer_weights(name, seed, n_per_class, chosen, effort, n_priors=None):
    """From where MKTL transfers to which class, and how much; also the fitted MKTL and its `Trial`.

    Columns new, prior, weight (for the scaled scores), kernel (norm of its block).
    """
    trial = multiclass_trial(name, n_per_class, n_priors, "", seed)
    model = trial.fitted("MKTL", chosen, effort, seed)
    pairs = grid_points(new=model.classes_.tolist(), prior=load_task(name).prior_names[:n_priors])
    weights = model.transfer_weights_.ravel()
    return pd.DataFrame(pairs).assign(weight=weights, kernel=float(model.block_norms_[0])), model, trial


def along_p(name, seed, n_per_class, p, C, effort):
    """Accuracy, certified gap and number of priors in use for one p, "auto" or a number.

    Returns a dict: accuracy, used (mean number of priors per new class whose weight is at least a hundredth
    of the largest), gap, objective, p_found.
    """
    trial = multiclass_trial(name, n_per_class, None, "", seed)
    model = trial.fitted("MKTL", {"C": C, "p": p}, {**effort, "tol": min(effort["tol"], 1e-3)}, seed)
    weights = np.abs(model.transfer_weights_)
    used = float(np.mean((weights >= 0.01 * weights.max()).sum(axis=1))) if weights.max() > 0.0 else 0.0
    ends = {"gap": float(model.dual_gap_), "objective": float(model.objective_), "p_found": model.p_}
    return {"accuracy": trial.share_right("MKTL", model), "used": used, **ends}
