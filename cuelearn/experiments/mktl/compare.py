"""The comparisons of figures 6.2 and 6.3: methods, how their parameters are chosen, and their accuracies.

A further method takes one line in `METHODS`.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from cuelearn.experiments.mktl.settings import N_NEGATIVE
from cuelearn.experiments.mktl.tasks import binary_targets, binary_task, draw, draw_binary, load_task
from cuelearn.experiments.protocol import choose, chosen_by, fitted, grid_points, with_chosen
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mktl import MKTL, AverageTL, MultiKT, NoTransfer, PriorFeatures

# seeds of the draws that parameters are chosen on begin here, far from those of the figures
FIRST_VALIDATION_SEED = 10_000
LEAST_HELD = 10
# what is chosen for a method, as columns of the results
CHOSEN = ("C", "p", "class_weight")
_USELESS = 63  # first entry of the seeds of useless scores


class Method(NamedTuple):
    """How a method enters the comparisons.

    `make(C, p, effort, seed)` gives its estimator on precomputed kernels. `has_p` says whether p is chosen
    too, `same` whether it needs priors on the new task's features; `weights` are class weights to choose
    from, and handed to `make` where there are any.
    """

    make: object
    has_p: bool = False
    same: bool = False
    weights: tuple = ()


def _mktl(**options):
    def make(C, p, effort, seed):
        return MKTL("precomputed", C=C, p=p, random_state=seed, verbose=False, **{**effort, **options})

    return make


def _plain(cls, **options):
    return lambda C, p, effort, seed, **chosen: cls("precomputed", C=C, **options, **chosen)


METHODS = {
    "NoTransfer": Method(_plain(NoTransfer)),
    "PriorFeatures": Method(_plain(PriorFeatures)),
    "AverageTL": Method(_plain(AverageTL)),
    "MultiKT": Method(_plain(MultiKT), same=True, weights=("balanced", None)),
    "MKTL": Method(_mktl(), has_p=True),
    "MKTL auto": Method(lambda C, p, effort, seed: METHODS["MKTL"].make(C, "auto", effort, seed)),
    "MKTL weighted": Method(_mktl(class_weight="positive"), has_p=True),
    "NoTransfer weighted": Method(_plain(NoTransfer, class_weight="balanced")),
    "PriorFeatures weighted": Method(_plain(PriorFeatures, class_weight="balanced")),
    "AverageTL weighted": Method(_plain(AverageTL, class_weight="balanced")),
}
#: Methods of figures 6.2 and 6.3. The thesis weighs the classes in Multi-KT and MKTL only; the others are
#: shown both ways.
BINARY = ("NoTransfer", "PriorFeatures", "MultiKT", "AverageTL", "MKTL", "MKTL weighted")
BINARY += ("NoTransfer weighted", "PriorFeatures weighted", "AverageTL weighted")
MULTICLASS = ("NoTransfer", "PriorFeatures", "MultiKT", "AverageTL", "MKTL", "MKTL auto")


def candidates(method, grids):
    """All parameters of a method: C, p ("" where it has none), class_weight where there is a choice."""
    values = {"C": map(float, grids["C"]), "p": map(float, grids["p"]) if METHODS[method].has_p else [""]}
    weights = METHODS[method].weights
    return grid_points(**values, **({"class_weight": weights} if weights else {}))


class Trial:
    """One training set with the kernel that all methods share, and the samples that they are judged on.

    The kernel is that of the priors of the new task's own kind, with its width, as Multi-KT asks. `train` and
    `judged` are rows of the task; `n_priors` takes the first score columns; `replaced` are scores in place of
    the task's.
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

    def results(self, chosen, effort, seed):
        """A row for each method: method, accuracy, gap (certified, relative to the objective)."""
        rows = []
        for method, parameters in chosen.items():
            model = self.fitted(method, parameters, effort, seed)
            gap = model.dual_gap_ / model.objective_ if getattr(model, "objective_", 0.0) else np.nan
            rows.append({"method": method, "accuracy": self.share_right(method, model), "gap": gap})
        return pd.DataFrame(rows)


def _best(method, trials, grids, effort):
    """The parameters with the best mean accuracy over trials; ties: the smallest C, the largest p."""

    def score(chosen):
        return np.mean([trial.accuracy(method, chosen, effort) for trial in trials])

    best, accuracy = choose(candidates(method, grids), score, smaller=["C"], larger=["p"], digits=12)
    return {**best, "validation": accuracy}


# ----------------------------------------------------------------
# multiclass


def validated(name, method, n_per_class, n_priors, useless, grids, effort, draws, held, seed):
    """Parameters of a method (C, p, a class_weight where there is a choice) and their `validation` accuracy.

    Trained on draws of the pool, judged on `held` other samples of each class in the pool; no test sample is
    used. Where the pool has too few, fewer are held, but 10, and where these are missing too, fewer are
    trained on. `useless` is "" for the task's own scores, otherwise see `useless_scores`.
    """
    task = load_task(name)
    n_classes = np.unique(task.y).size
    available = task.pool.size // n_classes
    held = min(held, max(LEAST_HELD, available - n_per_class))
    if available <= held:
        wanted = f"name must be a task with more than {held} samples of each class in its pool"
        raise ValueError(f"{wanted}, {name!r} has {available}")
    n_per_class = min(n_per_class, available - held)
    size, scores = n_per_class * n_classes, useless_scores(task, useless, seed)
    trials = []
    for k in range(draws):
        # class by class in turn
        drawn = draw(task, n_per_class + held, FIRST_VALIDATION_SEED + 100 * seed + k)
        trials.append(Trial(task, drawn[:size], drawn[size:], n_priors, scores))
    return _best(method, trials, grids, effort)


def accuracies(name, n_per_class, n_priors, useless, seed, chosen, effort):
    """Test accuracies of methods trained on the same samples, `chosen` by method.

    Returns a DataFrame with columns method, accuracy, gap, C, p, class_weight.
    """
    task = load_task(name)
    scores = useless_scores(task, useless, seed)
    table = Trial(task, draw(task, n_per_class, seed), task.test, n_priors, scores).results(
        chosen, effort, seed
    )
    return with_chosen(table, {(m,): c for m, c in chosen.items()}, ["method"], CHOSEN)


def multiclass(sweep, names, seeds, o, grids, effort, methods=MULTICLASS):
    """All points of figure 6.3: both numbers of priors where the task has two.

    `sweep` makes a Sweep of a name; `o` is `multiclass` of `settings`.

    Returns a DataFrame with columns name, n_per_class, n_priors, useless (empty), seed, method, accuracy,
    gap, C, p, class_weight.
    """
    places = []
    for name in names:
        task = load_task(name)
        most = len(task.prior_names)
        # NoTransfer knows of no priors
        some = {n: [m for m in methods if n == most or m != "NoTransfer"] for n in (task.n_first, most)}
        for n in o[name]:
            asked = {"name": name, "n_per_class": n, "useless": ""}
            places += [({**asked, "n_priors": k}, some[k]) for k in some]
    return _curves(sweep, "multiclass", places, seeds, grids, effort, o)


def _curves(sweep, label, places, seeds, grids, effort, o):
    """Parameters, then accuracies, of every place (a task, samples, priors) and its methods."""
    names = ("name", "n_per_class", "n_priors", "useless")
    data = [load_task(name).data for name in dict.fromkeys(place["name"] for place, _ in places)]
    common = {"grids": grids, "effort": effort, "draws": o["draws"], "held": o["held"], "seed": seeds[0]}
    asked = [{**place, "method": m, **common} for place, methods in places for m in methods]
    # the longest first
    asked.sort(key=lambda point: (-point["n_per_class"], point["method"] not in ("MKTL", "PriorFeatures")))
    found = chosen_by(sweep(f"{label}-validated"), validated, asked, *names, "method", data=data)
    points = []
    for place, methods in places:
        place = {name: place[name] for name in names}
        chosen = {m: found[(*place.values(), m)] for m in methods}
        points += [{**place, "seed": seed, "effort": effort, "chosen": chosen} for seed in seeds]
    return sweep(label).frame(accuracies, points, data=data).drop(columns=["chosen", "effort"])


# ----------------------------------------------------------------
# useless priors


def useless_scores(task, kind, seed):
    """Scores, (n, K), that say nothing of a sample, in place of a task's.

    `kind` is "" for None, the task keeps its own; "shuffled" for its own scores, dealt out to the samples at
    random; "noise K" with a number for K columns of standard normal numbers; "none" for no columns.
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
    """Accuracies with priors that are useless on purpose, parameters chosen with them as in figure 6.3.

    Returns a DataFrame with columns name, n_per_class, n_priors (empty: all), useless, seed, method,
    accuracy, gap, C, p, class_weight.
    """
    kinds = ["shuffled", *(f"noise {k}" for k in o["n_noise"] if k)]
    some = dict.fromkeys(kinds, ["AverageTL", "MultiKT", "MKTL", "MKTL auto"])
    some = {"none": ["NoTransfer", "MKTL"], **some}
    places = []
    for n in o["n_per_class"]:
        base = {"name": name, "n_per_class": n, "n_priors": None}
        places += [({**base, "useless": kind}, methods) for kind, methods in some.items()]
    return _curves(sweep, "negative", places, seeds, grids, effort, multiclass)


# ----------------------------------------------------------------
# binary


def validated_binary(method, n_positive, targets, grids, effort, draws, seed):
    """Parameters as of `validated` for a number of positive samples: the best on average over targets.

    Trained on draws of the pools, judged on the rest of the pools: as many of the target as of the
    background.
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


def accuracies_binary(target, seed, n_positive, chosen, effort):
    """Test accuracies (half target, half background) after training on the same samples; gaps."""
    task = binary_task(target)
    train = draw_binary(task, n_positive, N_NEGATIVE, seed)
    return Trial(task, train, task.test).results(chosen, effort, seed)


def binary(sweep, seeds, o, grids, effort, methods=BINARY):
    """All points of figure 6.2; `sweep` makes a Sweep of a name, `o` is `binary` of `settings`.

    Returns a DataFrame with columns target, seed, n_positive, method, accuracy, gap, C, p, class_weight.
    """
    targets = binary_targets()
    spread, some = (targets[:: max(1, len(targets) // n)][:n] for n in (o["targets"], o["validated"]))
    data = binary_task(targets[0]).data
    common = {"targets": some, "grids": grids, "effort": effort, "draws": o["draws"], "seed": seeds[0]}
    asked = [{"method": m, "n_positive": n, **common} for n in o["n_positive"] for m in methods]
    names = ("n_positive", "method")
    found = chosen_by(sweep("binary-validated"), validated_binary, asked, *names, data=data)
    chosen = {n: {m: found[n, m] for m in methods} for n in o["n_positive"]}
    places = [{"target": t, "seed": s, "n_positive": n} for t in spread for s in seeds for n in chosen]
    points = [{**place, "chosen": chosen[place["n_positive"]], "effort": effort} for place in places]
    frame = sweep("binary").frame(accuracies_binary, points, data=data).drop(columns=["chosen", "effort"])
    return with_chosen(frame, found, names, CHOSEN)


# ---------------------------------------------------------------- what one fitted
# model says


def transfer_weights(name, seed, n_per_class, chosen, effort, n_priors=None):
    """From where MKTL transfers to which class, and how much.

    Returns
    -------
    weights : DataFrame
        Columns new, prior, weight (for the scaled scores), norm of the kernel's block in `kernel`.
    model : MKTL
    trial : Trial
        What it was trained on, and the test samples.
    """
    task = load_task(name)
    trial = Trial(task, draw(task, n_per_class, seed), task.test, n_priors)
    model = trial.fitted("MKTL", chosen, effort, seed)
    pairs = grid_points(new=model.classes_.tolist(), prior=task.prior_names[:n_priors])
    table = pd.DataFrame(pairs, columns=["new", "prior"])
    weights = model.transfer_weights_.ravel()
    return table.assign(weight=weights, kernel=float(model.block_norms_[0])), model, trial


def along_p(name, seed, n_per_class, p, C, effort):
    """Accuracy, certified gap and number of priors in use for one p.

    A prior counts as used where its weight is at least a hundredth of the largest.

    Returns a dict: accuracy, used (mean number of priors per new class), gap, objective, p_found (what "auto"
    came to).
    """
    task = load_task(name)
    trial = Trial(task, draw(task, n_per_class, seed), task.test)
    model = trial.fitted("MKTL", {"C": C, "p": p}, {**effort, "tol": min(effort["tol"], 1e-3)}, seed)
    weights = np.abs(model.transfer_weights_)
    used = float(np.mean((weights >= 0.01 * weights.max()).sum(axis=1))) if weights.max() > 0.0 else 0.0
    ends = {"gap": float(model.dual_gap_), "objective": float(model.objective_), "p_found": model.p_}
    return {"accuracy": trial.share_right("MKTL", model), "used": used, **ends}
