"""The comparisons of figures 6.2 and 6.3: methods, how their parameters are chosen, and their accuracies.

A further method takes one line in `METHODS`.
"""

import itertools

import numpy as np
import pandas as pd
from sklearn.utils.class_weight import compute_sample_weight

from companion import protocol, study
from companion.intervals import interval
from companion.mktl.settings import N_NEGATIVE, NATURAL
from companion.mktl.tasks import TASKS, binary_targets, binary_task, draw, load_task
from companion.protocol import fitted, grid_points
from companion.study import Study
from cuelearn.core.formulas import first_best
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mktl import MKTL, AverageTL, MultiKT, NoTransfer, PriorFeatures

FIRST_VALIDATION_SEED = 10_000  # far from those of the figures
CHOSEN = ("C", "p", "class_weight")  # as columns of the results

#: The estimator of each method, and its options.
METHODS = {
    "NoTransfer": (NoTransfer, {}),
    "PriorFeatures": (PriorFeatures, {}),
    "MultiKT": (MultiKT, {}),
    "AverageTL": (AverageTL, {}),
    "MKTL": (MKTL, {}),
    "MKTL auto": (MKTL, {"p": "auto"}),
    "MKTL auto-priors": (MKTL, {"p": "auto-priors"}),
    "MKTL weighted": (MKTL, {"class_weight": "positive"}),
    "NoTransfer weighted": (NoTransfer, {"class_weight": "balanced"}),
    "PriorFeatures weighted": (PriorFeatures, {"class_weight": "balanced"}),
    "AverageTL weighted": (AverageTL, {"class_weight": "balanced"}),
}
#: Methods of figures 6.3 and 6.2. The thesis weighs the classes in Multi-KT and MKTL only.
MULTICLASS = tuple(method for method in METHODS if "weighted" not in method)
BINARY = tuple(method for method in METHODS if "auto" not in method)
#: Methods whose p is chosen, too.
HAVE_P = ("MKTL", "MKTL weighted")


def model_of(method, chosen, effort, seed):
    """A method's estimator on precomputed kernels, with the parameters that were chosen for it."""
    cls, options = METHODS[method]
    chosen = {name: chosen[name] for name in CHOSEN if chosen.get(name, "") != ""}
    if cls is MKTL:
        options = {"random_state": seed, **effort, **options}
    return cls("precomputed", **chosen, **options)


def candidates(method, grids):
    """All parameters of a method, in the order in which ties are decided: the C nearest to 10, the middle of
    the thesis's range; the largest p ("" where it has none); class_weight where there is a choice."""
    C = sorted(map(float, grids["C"]), key=lambda C: (abs(np.log10(C / 10.0)), C))
    p = sorted(map(float, grids["p"]), reverse=True) if method in HAVE_P else [""]
    weights = {"class_weight": ("balanced", None)} if method == "MultiKT" else {}
    return grid_points(C=C, p=p, **weights)


class Trial:
    """One training set (rows `train`) with the kernel that all methods share, and the samples of `judged`; of
    the scores the first `n_priors` columns, or those `replaced` by others."""

    def __init__(self, task, train, judged, n_priors=None, replaced=None):
        self.bank = KernelBank([("new", RBF(scale=task.width), slice(None))], task.X[train])
        self.rows = np.ascontiguousarray(next(iter(self.bank.cross(task.X[judged]).blocks(memory=4e9)))[1])
        self.y = task.y[train]
        self.y_judged = task.y[judged]
        self.weight = compute_sample_weight("balanced", self.y_judged)
        self.train = train, slice(n_priors)
        self.judged = judged, slice(n_priors)
        self.scores = task.scores if replaced is None else replaced
        self.same = task.same if replaced is None else replaced

    def scores_for(self, method):
        """Scores of the training samples and of the judged: of Multi-KT those of priors of its own kind."""
        scores = self.same if method == "MultiKT" else self.scores
        return scores[self.train], scores[self.judged]

    def fitted(self, method, chosen, effort, seed=0):
        model = model_of(method, chosen, effort, seed)
        return fitted(model, self.bank, self.y, scores=self.scores_for(method)[0])

    def share_right(self, method, model):
        """Share of the judged samples that are right, mean over their classes."""
        scores = self.scores_for(method)[1]
        return float(model.score(self.rows, self.y_judged, sample_weight=self.weight, scores=scores))

    def accuracy(self, method, chosen, effort, seed=0):
        return self.share_right(method, self.fitted(method, chosen, effort, seed))


def multiclass_trial(name, n_per_class, n_priors, useless, seed, others=False):
    """A draw of figure 6.3; `others`: of the task that parameters are chosen on."""
    task = load_task(name, others)
    return Trial(task, *draw(task, n_per_class, seed), n_priors, useless_scores(task, useless, seed))


def binary_trial(target, n_positive, seed):
    """A draw of figure 6.2; both sides of the tests, target and background, count the same."""
    task = binary_task(target)
    return Trial(task, *draw(task, {0: N_NEGATIVE, 1: n_positive}, seed))


def accuracies(seed, chosen, effort, **place):
    """Test accuracies and relative gaps of methods trained on the same samples, `chosen` by name."""
    make_trial = binary_trial if "target" in place else multiclass_trial
    trial = make_trial(seed=seed, **place)
    rows = []
    for method, parameters in chosen.items():
        model = trial.fitted(method, parameters, effort, seed)
        gap = model.dual_gap_ / model.objective_ if getattr(model, "objective_", 0.0) else np.nan
        rows.append({"method": method, "accuracy": trial.share_right(method, model), "gap": gap})
    return pd.DataFrame(rows)


def validated(method, grids, effort, draws, seed, **place):
    """Accuracies of a method's `candidates` on draws of other things, none of a new class, (n, draws)."""
    seeds = [FIRST_VALIDATION_SEED + 100 * seed + k for k in range(draws)]
    if "n_positive" in place:
        targets = binary_targets(others=True)
        trials = [binary_trial(target, seed=s, **place) for target in targets for s in seeds]
    else:
        trials = [multiclass_trial(seed=s, others=True, **place) for s in seeds]
    points = candidates(method, grids)
    return {"tried": [[trial.accuracy(method, point, effort) for trial in trials] for point in points]}


def picked(validation, method, grids, seed):
    """A method's parameters for the run of a seed: the best on a sample of the validation's draws with
    replacement, so that the spread over runs has that of the choice in it."""
    tried = np.array(validation["tried"])
    points = candidates(method, grids)
    taken = np.random.default_rng([66, seed]).integers(tried.shape[1], size=tried.shape[1])
    best = first_best(tried[:, taken].mean(axis=1))
    return points[best]


def edges(table, grids):
    """Whose C or p lies at an end of its grid, and in how many of its runs, in words for a note."""
    at_ends = study.edges(table, grids, NATURAL, by="method")
    return f"at the ends of the grids: {at_ends}" if at_ends else "no choice at an end of its grid"


def grids_of(run, C="C"):
    return {"C": list(run.size[C]), "p": list(run.size["p"])}


def _compared(run, label, points, by, data, C="C"):
    """Accuracies at `points`, pairs with their methods; parameters are chosen once for the values `by`."""
    size = run.size[label]
    grids = grids_of(run, C)
    effort = run.size["effort"]
    choosing = {"grids": grids, "effort": effort, "draws": size["draws"], "seed": run.seed}

    def pick(validation, method, point):
        return picked(validation, method, grids, point["seed"])

    how = {"by": by, "choosing": choosing, "comparing": {"effort": effort}, "columns": CHOSEN, "pick": pick}
    return Study(run.sweep, label, accuracies, validated, **how, data=data).table(points)


def multiclass(run, label, places, seeds=None):
    """Methods' accuracies in all draws at places of figure 6.3, pairs with the methods there; `label` names
    their sizes in `settings`."""
    seeds = run.seeds(run.size[label]) if seeds is None else seeds
    points = [({**place, "seed": seed}, methods) for place, methods in places for seed in seeds]
    data = [load_task(name).data for name in dict.fromkeys(place["name"] for place, _ in places)]
    return _compared(run, label, points, ["name", "n_per_class", "n_priors", "useless"], data)


def places_of_figure(run, names, methods=MULTICLASS):
    """Places of figure 6.3 and the methods there; No-Transfer needs no priors, and is there once."""
    places = []
    for name in names:
        for n, k in itertools.product(run.size["multiclass"][name], TASKS[name].sizes):
            compared_here = [m for m in methods if k == max(TASKS[name].sizes) or m != "NoTransfer"]
            places.append(({"name": name, "n_per_class": n, "n_priors": k, "useless": ""}, compared_here))
    return places


def useless_scores(task, kind, seed):
    """Scores, (n, K), that say nothing of a sample, in place of a task's; None where `kind` is "".

    "shuffled": the task's own, dealt out at random; "noise K": K normal columns; "none": no columns.
    """
    if not kind:
        return None
    rng = np.random.default_rng([63, seed])
    n = len(task.y)
    if kind == "none":
        return np.zeros((n, 0))
    if kind == "shuffled":
        return task.scores[rng.permutation(n)]
    return rng.normal(size=(n, int(kind.split()[1])))


def lost(table):
    """What each method loses to No-Transfer on the same samples, in points, with useless priors."""
    places = ["useless", "method", "n_per_class"]
    runs = 100.0 * table.pivot(index="seed", columns=places, values="accuracy").sort_index(axis=1)
    alone = runs["none", "NoTransfer"]
    others = [place for place in runs if place[1] != "NoTransfer"]
    rows = [(*place, *interval((runs[place] - alone[place[2]]).to_numpy())) for place in others]
    return pd.DataFrame(rows, columns=[*places, "difference", "low", "high"])


def binary(run, methods=BINARY, C="C"):
    """All points of figure 6.2, C chosen from the grid of this name; every target has seeds of its own, so
    that targets share neither samples of the background nor a choice of parameters."""
    size = run.size["binary"]
    seeds = run.seeds(size)
    targets = binary_targets()[: size["targets"]]
    points = [
        ({"target": target, "seed": seed + k * len(seeds), "n_positive": n}, methods)
        for k, target in enumerate(targets)
        for seed in seeds
        for n in size["n_positive"]
    ]
    return _compared(run, "binary", points, ["n_positive"], binary_task(targets[0]).data, C)


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
    used = (weights > 0.0) & (weights >= 0.01 * weights.max())
    return {
        "accuracy": trial.share_right("MKTL", model),
        "used": float(used.sum(axis=1).mean()),
        "gap": float(model.dual_gap_),
        "objective": float(model.objective_),
        "p_found": model.p_,
    }


def confusion(curves, name, n_per_class, methods, effort):
    """How often the pictures of a class are called which, in all runs of a place of figure 6.3's table."""
    tables = []
    place = protocol.where(curves, name=name, n_per_class=n_per_class)
    for (seed, n_priors), runs in place.groupby(["seed", "n_priors"]):
        trial = multiclass_trial(name, n_per_class, n_priors, "", seed)
        for run in runs[runs["method"].isin(methods)].to_dict("records"):
            model = trial.fitted(run["method"], run, effort, seed)
            predicted = model.predict(trial.rows, scores=trial.scores_for(run["method"])[1])
            tables.append(pd.DataFrame({"method": run["method"], "true": trial.y_judged, "said": predicted}))
    share = pd.concat(tables).groupby(["method", "true"])["said"].value_counts(normalize=True)
    return share.rename("share").reset_index()
