"""The comparisons of figures 6.2 and 6.3: methods, how their parameters are chosen, and their accuracies.

A further method takes one line in `METHODS`.
"""

import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.class_weight import compute_sample_weight

from companion import protocol
from companion.mktl.settings import N_NEGATIVE, NATURAL
from companion.mktl.tasks import TASKS, binary_targets, binary_task, draw, load_task, n_most
from companion.protocol import best_of, compared, fitted, grid_points
from cuelearn.core.intervals import interval
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mktl import MKTL, AverageTL, MultiKT, NoTransfer, PriorFeatures

# seeds of the draws that parameters are chosen on begin here, far from those of the figures
FIRST_VALIDATION_SEED = 10_000
# what is chosen for a method, as columns of the results
CHOSEN = ("C", "p", "class_weight")
# first entries of the seeds of useless scores, and of the draws that parameters are picked on
_USELESS = 63
_PICK = 66


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
#: Methods drawn over numbers of priors.
METHODS_OF_PRIORS = ("PriorFeatures", "AverageTL", "MKTL")


def candidates(method, grids):
    """All parameters of a method, in the order in which ties are decided.

    The C nearest to 10, the middle of the thesis's range, so that one at the end of a grid is really better;
    then the largest p ("" where it has none); then class_weight where there is a choice.
    """
    C = sorted(map(float, grids["C"]), key=lambda C: (abs(np.log10(C / 10.0)), C))
    p = sorted(map(float, grids["p"]), reverse=True) if METHODS[method].has_p else [""]
    weights = METHODS[method].weights
    return grid_points(C=C, p=p, **({"class_weight": weights} if weights else {}))


class Trial:
    """One training set (rows `train`) with the kernel that all methods share, and the samples of `judged`.

    `n_priors` takes the first score columns, `replaced` other scores.
    """

    def __init__(self, task, train, judged, n_priors=None, replaced=None):
        self.bank = KernelBank([("new", RBF(scale=task.width), slice(None))], task.X[train])
        self.rows = np.ascontiguousarray(next(iter(self.bank.cross(task.X[judged]).blocks(memory=4e9)))[1])
        self.y = task.y[train]
        self.y_judged = task.y[judged]
        self.weight = compute_sample_weight("balanced", self.y_judged)
        kinds = {False: task.scores, True: task.same}
        if replaced is not None:
            kinds = dict.fromkeys(kinds, replaced)
        self.scores = {same: (s[train, :n_priors], s[judged, :n_priors]) for same, s in kinds.items()}

    def fitted(self, method, chosen, effort, seed=0):
        more = {k: v for k, v in chosen.items() if k == "class_weight"}
        model = METHODS[method].make(chosen["C"], chosen["p"], effort, seed, **more)
        return fitted(model, self.bank, self.y, scores=self.scores[METHODS[method].same][0])

    def share_right(self, method, model):
        """Share of the judged samples that are right, mean over their classes."""
        scores = self.scores[METHODS[method].same][1]
        return float(model.score(self.rows, self.y_judged, sample_weight=self.weight, scores=scores))

    def accuracy(self, method, chosen, effort, seed=0):
        return self.share_right(method, self.fitted(method, chosen, effort, seed))


def multiclass_trial(name, n_per_class, n_priors, useless, seed, others=False):
    """A draw of figure 6.3; `others`: of the task that parameters are chosen on, of so many as it has."""
    task = load_task(name, others)
    n_per_class = min(n_per_class, n_most(task)) if others else n_per_class
    return Trial(task, *draw(task, n_per_class, seed), n_priors, useless_scores(task, useless, seed))


def binary_trial(target, n_positive, seed):
    """A draw of figure 6.2; both sides of the tests, target and background, count the same."""
    task = binary_task(target)
    return Trial(task, *draw(task, {0: N_NEGATIVE, 1: n_positive}, seed))


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


def _tried(method, trials, grids, effort):
    """Accuracies of all candidates, (n, number of trials)."""
    points = candidates(method, grids)
    return {"tried": [[trial.accuracy(method, point, effort) for trial in trials] for point in points]}


def validated(method, name, n_per_class, n_priors, useless, grids, effort, draws, seed):
    """What a method's `candidates` get right on draws of the other classes' task, none of a new class."""
    seeds = [FIRST_VALIDATION_SEED + 100 * seed + k for k in range(draws)]
    trials = [multiclass_trial(name, n_per_class, n_priors, useless, s, others=True) for s in seeds]
    return _tried(method, trials, grids, effort)


def validated_binary(method, n_positive, grids, effort, draws, seed):
    """The same for a number of positive samples, on draws of the other targets."""
    seeds = [FIRST_VALIDATION_SEED + 100 * seed + k for k in range(draws)]
    trials = [binary_trial(target, n_positive, s) for target in binary_targets(others=True) for s in seeds]
    return _tried(method, trials, grids, effort)


def picked(validation, method, grids, seed):
    """A method's parameters (C, p, a class_weight where there is a choice) for the run of a seed.

    The best on as many of the validation's draws as there are, drawn with replacement by the seed, the same
    for all methods: so the spread over runs has that of the choice in it. Ties: the first of `candidates`.
    """
    tried = np.array(validation["tried"])
    points = candidates(method, grids)
    taken = np.random.default_rng([_PICK, seed]).integers(tried.shape[1], size=tried.shape[1])
    scores = tried[:, taken].mean(axis=1)
    best = best_of(points, scores, digits=12)
    return {**points[best], "validation": float(scores[best])}


def _picker(grids):
    return lambda validation, method, point: picked(validation, method, grids, point["seed"])


def edges(table, grids):
    """Whose C or p lies at an end of its grid, and in how many of its runs, in words for a note."""
    at_ends = protocol.edges(table, grids, NATURAL, by="method")
    return f"at the ends of the grids: {at_ends}" if at_ends else "no choice at an end of its grid"


def _curves(sweep, label, places, seeds, grids, effort, draws):
    """Parameters, then accuracies, of every place (a task, samples, priors) and its methods."""
    data = [load_task(name).data for name in dict.fromkeys(place["name"] for place, _ in places)]
    common = {"grids": grids, "effort": effort, "draws": draws, "seed": seeds[0]}
    requested = [{**place, "method": m, **common} for place, methods in places for m in methods]
    # the longest first
    requested.sort(
        key=lambda point: (-point["n_per_class"], point["method"] not in ("MKTL", "PriorFeatures"))
    )
    points = [({**place, "seed": s, "effort": effort}, methods) for place, methods in places for s in seeds]
    by = ("name", "n_per_class", "n_priors", "useless")
    pick = _picker(grids)
    return compared(sweep, label, validated, requested, accuracies, points, by, CHOSEN, data, pick=pick)


def multiclass(sweep, names, seeds, o, grids, effort, methods=MULTICLASS):
    """All points of figure 6.3; `sweep` makes a Sweep of a name, `o` is `multiclass` of `settings`."""
    places = []
    for name in names:
        sizes = TASKS[name].sizes
        for n, k in itertools.product(o[name], sizes):
            compared_here = [m for m in methods if k == max(sizes) or m != "NoTransfer"]  # it has no priors
            places.append(({"name": name, "n_per_class": n, "n_priors": k, "useless": ""}, compared_here))
    return _curves(sweep, "multiclass", places, seeds, grids, effort, o["draws"])


def number_of_priors(sweep, seeds, o, grids, effort):
    """MKTL on the objects with either number of priors: places and parameters of `multiclass`, more draws."""
    places = itertools.product(o["objects"], TASKS["objects"].sizes)
    places = [{"name": "objects", "n_per_class": n, "n_priors": k, "useless": ""} for n, k in places]
    return _curves(sweep, "multiclass", [(p, ["MKTL"]) for p in places], seeds, grids, effort, o["draws"])


def along_priors(sweep, name, seeds, o, grids, effort):
    """The same over numbers of priors; `o` is `priors` of `settings`."""
    base = {"name": name, "n_per_class": o["n_per_class"], "useless": ""}
    places = [({**base, "n_priors": k}, METHODS_OF_PRIORS) for k in o["n_priors"]]
    return _curves(sweep, "priors", places, seeds, grids, effort, o["draws"])


def useless_scores(task, kind, seed):
    """Scores, (n, K), that say nothing of a sample, in place of a task's; None where `kind` is "".

    "shuffled": the task's own, dealt out at random; "noise K": K normal columns; "none": no columns.
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


def negative(sweep, name, seeds, o, grids, effort):
    """Like `multiclass`, with priors that are useless on purpose; n_priors is empty."""
    kinds = ["shuffled", *(f"noise {k}" for k in o["n_noise"] if k)]
    methods = {"none": ["NoTransfer", "MKTL"]}
    methods |= dict.fromkeys(kinds, ["AverageTL", "MultiKT", "MKTL", "MKTL auto"])
    base = {"name": name, "n_per_class": 0, "n_priors": None}
    places = [
        ({**base, "n_per_class": n, "useless": kind}, methods[kind])
        for n in o["n_per_class"]
        for kind in methods
    ]
    return _curves(sweep, "negative", places, seeds, grids, effort, o["draws"])


def lost(table):
    """What each method of `negative`'s table loses to No-Transfer on the same samples, in points."""
    runs = 100.0 * table.pivot(index="seed", columns=["useless", "method", "n_per_class"], values="accuracy")
    runs = runs.sort_index(axis=1)
    alone = runs["none", "NoTransfer"]
    rows = []
    for (useless, method, n), accuracy in runs.items():
        if method != "NoTransfer":
            difference = interval((accuracy - alone[n]).to_numpy())
            rows.append((useless, method, n, *difference))
    return pd.DataFrame(rows, columns=["useless", "method", "n_per_class", "difference", "low", "high"])


def binary(sweep, seeds, o, grids, effort, methods=BINARY):
    """All points of figure 6.2; `o` is `binary` of `settings`.

    Every target has seeds of its own (`seeds` are those of the first), so that targets share neither samples
    of the background nor a choice of parameters: the draws are nested in the targets.
    """
    targets = binary_targets()[: o["targets"]]
    common = {"grids": grids, "effort": effort, "draws": o["draws"], "seed": seeds[0]}
    requested = [{"method": m, "n_positive": n, **common} for n in o["n_positive"] for m in methods]
    runs = [(t, s + k * len(seeds)) for k, t in enumerate(targets) for s in seeds]
    points = [
        ({"target": t, "seed": s, "n_positive": n, "effort": effort}, methods)
        for (t, s), n in itertools.product(runs, o["n_positive"])
    ]
    data = binary_task(targets[0]).data
    run = (validated_binary, requested, accuracies, points, ["n_positive"], CHOSEN, data)
    return compared(sweep, "binary", *run, pick=_picker(grids))


def transfer_weights(name, seed, n_per_class, chosen, effort, n_priors=None):
    """From where MKTL transfers to which class: weight, for scaled scores; kernel, the norm of its block."""
    trial = multiclass_trial(name, n_per_class, n_priors, "", seed)
    model = trial.fitted("MKTL", chosen, effort, seed)
    pairs = grid_points(new=model.classes_.tolist(), prior=load_task(name).prior_names[:n_priors])
    weights = model.transfer_weights_.ravel()
    return pd.DataFrame(pairs).assign(weight=weights, kernel=float(model.block_norms_[0]))


def along_p(name, seed, n_per_class, p, C, effort):
    """Accuracy and certified gap for one p, and how many priors each new class uses (of a weight of at least
    a hundredth of the largest), on average."""
    trial = multiclass_trial(name, n_per_class, None, "", seed)
    model = trial.fitted("MKTL", {"C": C, "p": p}, {**effort, "tol": min(effort["tol"], 1e-3)}, seed)
    weights = np.abs(model.transfer_weights_)
    used = float(np.mean((weights >= 0.01 * weights.max()).sum(axis=1))) if weights.max() > 0.0 else 0.0
    ends = {"gap": float(model.dual_gap_), "objective": float(model.objective_), "p_found": model.p_}
    return {"accuracy": trial.share_right("MKTL", model), "used": used, **ends}


def confusion(curves, name, n_per_class, methods, effort):
    """How often the pictures of a class are called which, in all runs of a place of `multiclass`'s table."""
    tables = []
    place = protocol.where(curves, name=name, n_per_class=n_per_class)
    for (seed, n_priors), runs in place.groupby(["seed", "n_priors"]):
        trial = multiclass_trial(name, n_per_class, n_priors, "", seed)
        for run in runs[runs["method"].isin(methods)].to_dict("records"):
            scores = trial.scores[METHODS[run["method"]].same][1]
            model = trial.fitted(run["method"], {"C": run["C"], "p": run["p"]}, effort, seed)
            predicted = model.predict(trial.rows, scores=scores)
            tables.append(pd.DataFrame({"method": run["method"], "true": trial.y_judged, "said": predicted}))
    share = pd.concat(tables).groupby(["method", "true"])["said"].value_counts(normalize=True)
    return share.rename("share").reset_index()
