"""The comparisons of figures 6.2 and 6.3: methods, how their parameters are chosen, and their accuracies.

A further method takes one line in `METHODS`.
"""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from cuelearn.experiments.mktl.settings import N_NEGATIVE
from cuelearn.experiments.mktl.tasks import binary_targets, binary_task, draw, draw_binary, load_task
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

    Attributes
    ----------
    make : callable(C, p, effort, seed) -> estimator
        With precomputed kernels.
    has_p : bool
        Whether p is chosen too.
    same : bool
        Whether it needs priors on the new task's features.
    weights : tuple
        Class weights to choose from; none are handed to `make` where there is nothing to choose.
    """

    make: object
    has_p: bool = False
    same: bool = False
    weights: tuple = ()


def _mktl(**options):
    return lambda C, p, effort, seed: MKTL(
        "precomputed", C=C, p=p, random_state=seed, verbose=False, **{**effort, **options}
    )


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
#: Methods of figures 6.2 and 6.3. The thesis weighs the classes in Multi-KT and MKTL only; the others are shown both ways.
BINARY = (
    "NoTransfer",
    "PriorFeatures",
    "MultiKT",
    "AverageTL",
    "MKTL",
    "MKTL weighted",
    "NoTransfer weighted",
    "PriorFeatures weighted",
    "AverageTL weighted",
)
MULTICLASS = ("NoTransfer", "PriorFeatures", "MultiKT", "AverageTL", "MKTL", "MKTL auto")


def candidates(method, grids):
    """All parameters of a method: list of dict with C and p ("" where it has none), and class_weight where there is a choice."""
    exponents = [float(p) for p in grids["p"]] if METHODS[method].has_p else [""]
    weights = [{"class_weight": w} for w in METHODS[method].weights] or [{}]
    return [{"C": float(C), "p": p, **weight} for C in grids["C"] for p in exponents for weight in weights]


class Trial:
    """One training set with the kernel that all methods share, and the samples that they are judged on.

    The kernel is that of the priors of the new task's own kind, with its width, as Multi-KT asks.

    Parameters
    ----------
    task : TransferTask
    train, judged : ndarray of int
        Rows of the task.
    n_priors : int
        The first so many score columns.
    replaced : ndarray, shape (n, K), optional
        Scores in place of the task's.
    """

    def __init__(self, task, train, judged, n_priors=None, replaced=None):
        self.bank = KernelBank([("new", RBF(gamma=task.gamma), slice(None))], task.X[train])
        self.rows = np.ascontiguousarray(next(iter(self.bank.cross(task.X[judged]).blocks(memory=4e9)))[1])
        self.y, self.y_judged = task.y[train], task.y[judged]
        scores = task.scores if replaced is None else replaced
        same = task.same if replaced is None else replaced
        self.scores = {
            kind: (s[train, :n_priors], s[judged, :n_priors]) for kind, s in ((False, scores), (True, same))
        }

    def fitted(self, method, chosen, effort, seed=0):
        """A method trained with given parameters; that it does not converge is no news here."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            more = {k: v for k, v in chosen.items() if k == "class_weight"}
            model = METHODS[method].make(chosen["C"], chosen["p"], effort, seed, **more)
            return model.fit(self.bank, self.y, scores=self.scores[METHODS[method].same][0])

    def share_right(self, method, model):
        """Share of the judged samples that a fitted model gets right."""
        return float(model.score(self.rows, self.y_judged, scores=self.scores[METHODS[method].same][1]))

    def accuracy(self, method, chosen, effort, seed=0):
        """Share of the judged samples that are right, of a method trained with given parameters."""
        return self.share_right(method, self.fitted(method, chosen, effort, seed))

    def results(self, chosen, effort, seed):
        """A row for each method: accuracy, and the certified gap relative to the objective where a method has one.

        Returns
        -------
        DataFrame
            Columns method, accuracy, gap.
        """
        rows = []
        for method, parameters in chosen.items():
            model = self.fitted(method, parameters, effort, seed)
            gap = model.dual_gap_ / model.objective_ if getattr(model, "objective_", 0.0) else np.nan
            rows.append({"method": method, "accuracy": self.share_right(method, model), "gap": gap})
        return pd.DataFrame(rows)


def _best(method, trials, grids, effort):
    """The parameters with the best mean accuracy over trials; the smallest C and the largest p of equally good ones."""
    tried = candidates(method, grids)
    found = [np.mean([trial.accuracy(method, chosen, effort) for trial in trials]) for chosen in tried]
    order = sorted(
        range(len(tried)), key=lambda k: (-round(found[k], 12), tried[k]["C"], -(tried[k]["p"] or 0.0))
    )
    return {**tried[order[0]], "validation": float(found[order[0]])}


# -------------------------------------------------------------------------------------------------------------- multiclass


def validated(name, method, n_per_class, n_priors, useless, grids, effort, draws, held, seed):
    """Parameters of a method for a task and a number of samples.

    Trained on draws of the pool, judged on `held` other samples of each class in the pool; no test sample is used. Where the pool has too
    few, fewer are held, but 10, and where these are missing too, fewer are trained on.

    Parameters
    ----------
    name : str
        Of `load_task`.
    method : str
    n_per_class, n_priors : int
    useless : str
        "" for the task's own scores, otherwise see `useless_scores`.
    grids, effort : dict
    draws, held : int
    seed : int

    Returns
    -------
    dict
        C, p, class_weight where there was a choice, validation (the accuracy).
    """
    task = load_task(name)
    n_classes = np.unique(task.y).size
    available = task.pool.size // n_classes
    held = min(held, max(LEAST_HELD, available - n_per_class))
    if available <= held:
        raise ValueError(
            f"name must be a task with more than {held} samples of each class in its pool, {name!r} has {available}"
        )
    size = min(n_per_class, available - held) * n_classes
    trials = []
    for k in range(draws):
        drawn = draw(
            task, size // n_classes + held, FIRST_VALIDATION_SEED + 100 * seed + k
        )  # class by class in turn
        trials.append(Trial(task, drawn[:size], drawn[size:], n_priors, useless_scores(task, useless, seed)))
    return _best(method, trials, grids, effort)


def accuracies(name, n_per_class, n_priors, useless, seed, chosen, effort):
    """Test accuracies of methods trained on the same samples.

    Parameters
    ----------
    chosen : dict
        Method -> parameters.

    Returns
    -------
    DataFrame
        Columns method, accuracy, gap, C, p, class_weight.
    """
    task = load_task(name)
    trial = Trial(
        task, draw(task, n_per_class, seed), task.test, n_priors, useless_scores(task, useless, seed)
    )
    return trial.results(chosen, effort, seed).assign(
        **{k: [c.get(k, "") for c in chosen.values()] for k in CHOSEN}
    )


def multiclass(sweep, names, seeds, o, grids, effort, methods=MULTICLASS):
    """All points of figure 6.3: both numbers of priors where the task has two.

    Parameters
    ----------
    sweep : callable(name) -> Sweep
    names : sequence of str
    seeds : sequence of int
    o : dict
        `multiclass` of `settings`.
    grids, effort : dict

    Returns
    -------
    DataFrame
        Columns name, n_per_class, n_priors, useless (empty), seed, method, accuracy, gap, C, p, class_weight.
    """
    places = []
    for name in names:
        task = load_task(name)
        most = len(task.prior_names)
        for n in o[name]:
            for n_priors in dict.fromkeys((task.n_first, most)):
                some = (
                    methods if n_priors == most else [m for m in methods if m != "NoTransfer"]
                )  # which knows of no priors
                places.append(
                    {"name": name, "n_per_class": n, "n_priors": n_priors, "useless": "", "methods": some}
                )
    return _curves(sweep, "multiclass", places, seeds, grids, effort, o)


def _curves(sweep, label, places, seeds, grids, effort, o):
    """Parameters, then accuracies, of every place (a task, samples, priors, methods)."""
    data = [load_task(name).data for name in dict.fromkeys(place["name"] for place in places)]
    common = {"grids": grids, "effort": effort, "draws": o["draws"], "held": o["held"], "seed": seeds[0]}
    asked = [
        {**{k: v for k, v in place.items() if k != "methods"}, "method": m, **common}
        for place in places
        for m in place["methods"]
    ]
    asked.sort(
        key=lambda point: (-point["n_per_class"], point["method"] not in ("MKTL", "PriorFeatures"))
    )  # the longest first
    found = sweep(f"{label}-validated").run(validated, asked, data=data)
    chosen = {_key(point): result for point, result in zip(asked, found, strict=True)}
    points = [
        {
            **{k: v for k, v in place.items() if k != "methods"},
            "seed": seed,
            "effort": effort,
            "chosen": {m: chosen[_key({**place, "method": m})] for m in place["methods"]},
        }
        for place in places
        for seed in seeds
    ]
    return sweep(label).frame(accuracies, points, data=data).drop(columns=["chosen", "effort"])


def _key(point):
    return tuple(point[k] for k in ("name", "n_per_class", "n_priors", "useless", "method"))


# --------------------------------------------------------------------------------------------------------- useless priors


def useless_scores(task, kind, seed):
    """Scores that say nothing of a sample, in place of a task's.

    Parameters
    ----------
    task : TransferTask
    kind : str
        "": None, the task keeps its own. "shuffled": its own scores, dealt out to the samples at random. "noise K" with a number: K
        columns of standard normal numbers. "none": no columns.
    seed : int

    Returns
    -------
    ndarray, shape (n, K), or None
    """
    if not kind:
        return None
    rng = np.random.default_rng([_USELESS, seed])
    n = len(task.y)
    if kind == "none":
        return np.zeros((n, 0))
    if kind == "shuffled":
        return task.scores[rng.permutation(n)]
    return rng.normal(size=(n, int(kind.split()[1])))


def negative(sweep, name, seeds, o, grids, effort, multiclass):
    """Accuracies with priors that are useless on purpose, parameters chosen with them as in figure 6.3.

    Returns
    -------
    DataFrame
        Columns name, n_per_class, n_priors (empty: all), useless, seed, method, accuracy, gap, C, p, class_weight.
    """
    kinds = ["shuffled", *(f"noise {k}" for k in o["n_noise"] if k)]
    places = []
    for n in o["n_per_class"]:
        base = {"name": name, "n_per_class": n, "n_priors": None}
        places.append({**base, "useless": "none", "methods": ["NoTransfer", "MKTL"]})
        places += [
            {**base, "useless": kind, "methods": ["AverageTL", "MultiKT", "MKTL", "MKTL auto"]}
            for kind in kinds
        ]
    return _curves(sweep, "negative", places, seeds, grids, effort, multiclass)


# ------------------------------------------------------------------------------------------------------------------ binary


def validated_binary(method, n_positive, targets, grids, effort, draws, seed):
    """Parameters of a method for a number of positive samples: the best on average over some targets.

    Trained on draws of the pools, judged on the rest of the pools: as many of the target as of the background.

    Returns
    -------
    dict
        C, p, class_weight where there was a choice, validation.
    """
    trials = []
    for target in targets:
        task = binary_task(target)
        for k in range(draws):
            train = draw_binary(task, n_positive, N_NEGATIVE, FIRST_VALIDATION_SEED + 100 * seed + k)
            rest = np.setdiff1d(task.pool, train)
            positive, negative = (rest[task.y[rest] == label] for label in (1, 0))
            held = min(positive.size, negative.size)
            trials.append(Trial(task, train, np.concatenate([positive[:held], negative[:held]])))
    return _best(method, trials, grids, effort)


def accuracies_binary(target, seed, n_positive, chosen, effort):
    """Test accuracies (half target, half background) of methods trained on the same samples.

    Returns
    -------
    DataFrame
        Columns method, accuracy, gap.
    """
    task = binary_task(target)
    return Trial(task, draw_binary(task, n_positive, N_NEGATIVE, seed), task.test).results(
        chosen, effort, seed
    )


def binary(sweep, seeds, o, grids, effort, methods=BINARY):
    """All points of figure 6.2.

    Parameters
    ----------
    sweep : callable(name) -> Sweep
    seeds : sequence of int
    o : dict
        `binary` of `settings`.
    grids, effort : dict

    Returns
    -------
    DataFrame
        Columns target, seed, n_positive, method, accuracy, gap, C, p, class_weight.
    """
    targets = binary_targets()
    spread = targets[:: max(1, len(targets) // o["targets"])][: o["targets"]]
    some = targets[:: max(1, len(targets) // o["validated"])][: o["validated"]]
    data = binary_task(targets[0]).data
    asked = [
        {
            "method": m,
            "n_positive": n,
            "targets": some,
            "grids": grids,
            "effort": effort,
            "draws": o["draws"],
            "seed": seeds[0],
        }
        for n in o["n_positive"]
        for m in methods
    ]
    found = sweep("binary-validated").run(validated_binary, asked, data=data)
    chosen = {
        (point["n_positive"], point["method"]): result for point, result in zip(asked, found, strict=True)
    }
    points = [
        {
            "target": t,
            "seed": s,
            "n_positive": n,
            "chosen": {m: chosen[n, m] for m in methods},
            "effort": effort,
        }
        for t in spread
        for s in seeds
        for n in o["n_positive"]
    ]
    frame = sweep("binary").frame(accuracies_binary, points, data=data).drop(columns=["chosen", "effort"])
    for column in CHOSEN:
        frame[column] = [
            chosen[n, m].get(column, "") for n, m in zip(frame["n_positive"], frame["method"], strict=True)
        ]
    return frame


# --------------------------------------------------------------------------------------- what one fitted model says


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
    names = task.prior_names[:n_priors]
    rows = [
        {
            "new": new,
            "prior": prior,
            "weight": float(model.transfer_weights_[c, z]),
            "kernel": float(model.block_norms_[0]),
        }
        for c, new in enumerate(model.classes_.tolist())
        for z, prior in enumerate(names)
    ]
    return pd.DataFrame(rows), model, trial


def along_p(name, seed, n_per_class, p, C, effort):
    """Accuracy, certified gap and number of priors in use for one p.

    A prior counts as used where its weight is at least a hundredth of the largest.

    Returns
    -------
    dict
        accuracy, used (mean number of priors per new class), gap, objective, p_found (what "auto" came to).
    """
    task = load_task(name)
    trial = Trial(task, draw(task, n_per_class, seed), task.test)
    chosen = {"C": C, "p": p}
    model = trial.fitted("MKTL", chosen, {**effort, "tol": min(effort["tol"], 1e-3)}, seed)
    weights = np.abs(model.transfer_weights_)
    right = model.score(trial.rows, trial.y_judged, scores=trial.scores[False][1])
    used = float(np.mean((weights >= 0.01 * weights.max()).sum(axis=1))) if weights.max() > 0.0 else 0.0
    gap, value = float(model.dual_gap_), float(model.objective_)
    return {"accuracy": float(right), "used": used, "gap": gap, "objective": value, "p_found": model.p_}
