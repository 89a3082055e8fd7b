"""Multi-label MKL (NIPS 2010): methods on genes and emoji, weights over time, cost against classes.

``**where`` are name, n_train and, where wanted, n_test and n_classes of `multilabel_task`.
"""

import functools
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd

from companion import pictures
from companion.originals import load_original
from companion.protocol import fitted, in_turn, looks, settings_of, timed
from cuelearn import datasets, mkl
from cuelearn.core.formulas import first_best
from cuelearn.kernels import RBF, Chi2, KernelBank, Linear, Poly
from cuelearn.mkl import SharedProblem, mean_auc, saddle_gap
from cuelearn.mkl.mlmkl import solve_mlmkl_sa, solve_mlmkl_sum
from cuelearn.mkl.rivals.perclass import learnable, signs_of

C_GRID = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)

# smoke, quick, full
TABLE = {
    "n_train": {
        "yeast": (60, 150, 500),
        "emoji": (60, 200, 500),
        "scene": (60, 200, 500),
        "corel5k": (410, 450, 600),
    },
    "n_classes": {
        "yeast": (None, None, None),
        "emoji": (20, 40, None),
        "scene": (None, None, None),
        "corel5k": (20, 60, None),
    },
    "n_test": (100, 400, 4000),
    "seeds": (2, 3, 10),
    "C": ((1.0,), C_GRID[3:6], C_GRID),
    "n_iter": (60, 400, 1000),
    "passes": (10, 10, 20),
    "over_time": {"seeds": (2, 3, 8)},
    "steps": {"seeds": (2, 3, 14)},
    "cost": {
        "n_train": {"emoji": (60, 150, 200), "leaves": (60, 150, 200), "corel5k": (410, 450, 600)},
        "n_classes": {
            "emoji": ((4, 6, 8), (4, 16, 64), (4, 8, 16, 32, 64, 131)),
            "leaves": ((4, 6, 8), (4, 16, 64), (4, 8, 16, 32, 64, 100)),
            "corel5k": ((4, 8, 32), (4, 40, 374), (4, 16, 64, 128, 374)),
        },
        "most": (300, 20_000, 100_000),
        "wanted": (0.2, 0.1, 0.05),
        "C": (10.0, 10.0, 10.0),
        "printed": (("emoji", "leaves"), ("emoji",), ("emoji", "leaves")),  # the paper's estimates too
        "seeds": (2, 3, 6),
    },
    "gap": {
        "at": ((15, 30, 60), (50, 100, 200, 400), (100, 200, 400, 800, 1600, 3200)),
        "n_classes": (4, 4, 4),
        "n_train": (60, 150, 300),
        "C": (1.0, 1.0, 1.0),
        "seeds": (2, 3, 12),
    },
}


def settings(profile):
    """Sizes of all experiments for a profile, "smoke", "quick" or "full".

    `n_classes` None are all. `seeds` in full are as many draws as the claims need by the spread of an earlier
    run. At C = 0.001 every coefficient is at C: smaller ones give the same ranking.
    """
    return settings_of(TABLE, profile)


# --- experiments --------------------------------------------------------------------------------------------

#: Samples of the training part that are held back to choose C.
VALIDATION = 1 / 4
#: A label is a keyword of so many things; things are taken as these teams drew them.
LEAST_THINGS = 5
STYLES = ("noto", "twemoji", "fluent-emoji", "openmoji")
#: The cues of emoji, a kernel each, by what they see: colour, texture, parts, edges, silhouette.
GROUPS = (
    ("HSV 2x2", "hue words 2x2"),
    ("LBP 2x2", "derivatives 2x2", "self-similarity 2x2"),
    ("words 2x2", "large words 2x2"),
    ("PHOG 2", "HOG", "gist"),
    ("shape", "moments"),
)


class LabelSet(NamedTuple):
    """`CueData` with indicators (n, n_classes) as y, its kernels as (name, kernel, columns) and their groups;
    rows of one family stay on one side of every split."""

    data: datasets.CueData
    kernels: list
    groups: tuple
    families: np.ndarray | None = None


class MultiLabelTask(NamedTuple):
    """A split of a `LabelSet`: samples, indicators (n, n_classes), families of the training samples."""

    X_train: np.ndarray
    Y_train: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray
    kernels: list
    names: tuple  # of the classes
    groups: tuple
    families: np.ndarray


def _of_columns(data, cues):
    """Three kernels for each group of columns."""
    kinds = {"linear": Linear(), "quadratic": Poly(degree=2), "RBF": RBF()}
    kernels = [(f"{cue} {kind}", kinds[kind], columns) for cue, columns in cues.items() for kind in kinds]
    return LabelSet(data, kernels, tuple(np.arange(len(kernels)) // len(kinds)))


def _yeast():
    data = datasets.load_yeast()
    return _of_columns(data, {**data.cues, "both": slice(0, data.X.shape[1])})


def _keywords():
    return np.flatnonzero(pictures.emoji().keywords[pictures.things()].sum(axis=0) >= LEAST_THINGS)


def _emoji():
    """Things with one of these keywords, in the styles of four teams."""
    emoji = pictures.emoji()
    things = pictures.things()
    keywords = _keywords()
    things = things[emoji.keywords[np.ix_(things, keywords)].any(axis=1)]
    rows = pictures.drawings_of(things)
    rows = rows[np.isin(emoji.style[rows], STYLES)]
    group_of = {cue: group for group, cues in enumerate(GROUPS) for cue in cues}
    data = pictures.described(rows, list(group_of), n_jobs=-1)
    thing = emoji.thing[rows]
    names = emoji.keyword_names[keywords].tolist()
    description = f"{len(things)} things in up to four styles, {len(names)} keywords, split by thing"
    y = emoji.keywords[np.ix_(thing, keywords)]
    data = data._replace(y=y, target_names=names, description=description)
    kernels = [(cue, RBF() if cue in pictures.PLAIN else Chi2(), data.cues[cue]) for cue in group_of]
    return LabelSet(data, kernels, tuple(group_of.values()), emoji.family[thing])


def _scene():
    data = load_original("scene")
    return _of_columns(data, data.cues)


def _corel5k():
    """Three groups of terms: rare, middling and frequent ones, of equal mass."""
    data = load_original("corel5k")
    counts = data.X.sum(axis=0)
    order = np.argsort(counts, kind="stable")
    ends = np.searchsorted(np.cumsum(counts[order]), counts.sum() * np.array([1, 2]) / 3)
    parts = [np.sort(part) for part in np.split(order, ends)]
    return _of_columns(data, dict(zip(("rare", "middling", "frequent"), parts, strict=True)))


def _leaves():
    """Each of a hundred species against the others."""
    data = datasets.load_leaves()
    indicators = (data.y[:, None] == np.unique(data.y)).astype(np.int8)
    return _of_columns(data._replace(y=indicators), data.cues)


SETS = {"yeast": _yeast, "emoji": _emoji, "leaves": _leaves, "scene": _scene, "corel5k": _corel5k}


@functools.lru_cache(maxsize=4)
def load_multilabel(name):
    return SETS[name]()


def covering_rows(Y, rng, least=2):
    """Rows with so many positives of every class (or all it has), drawn for rare classes first."""
    chosen = np.zeros(len(Y), dtype=bool)
    for c in np.argsort(Y.sum(axis=0), kind="stable"):
        positive = np.flatnonzero(Y[:, c] > 0)
        missing = least - int(chosen[positive].sum())
        if missing > 0:
            chosen[rng.permutation(positive[~chosen[positive]])[:missing]] = True
    return np.flatnonzero(chosen)


def multilabel_task(name, seed, n_train, n_test=1, n_classes=None):
    """A split with two positives of every class; fewer of `n_classes` are the first of more."""
    data, kernels, groups, families = load_multilabel(name)
    Y, train, test = data.y, data.train, data.test
    classes = np.arange(Y.shape[1])
    if n_classes is not None:
        classes = np.sort(np.random.default_rng([71, seed]).permutation(Y.shape[1])[:n_classes])
    rng = np.random.default_rng([70, seed])
    if families is None:
        families = np.arange(len(Y))
    else:
        train, test = halves(Y, families, rng)
    if train is None:
        train = np.arange(len(Y))
    first = train[covering_rows(Y[train], rng)]
    if first.size > n_train:
        first = rng.permutation(train[covering_rows(Y[np.ix_(train, classes)], rng)])
    rows = np.concatenate([first, rng.permutation(np.setdiff1d(train, first))])
    test = rows[n_train:] if test is None else rng.permutation(test)
    train = rng.permutation(rows[:n_train])
    test = test[:n_test]
    Y_train, Y_test = (Y[np.ix_(part, classes)].astype(np.int64) for part in (train, test))
    names = tuple(str(data.target_names[c]) for c in classes)
    return MultiLabelTask(
        data.X[train], Y_train, data.X[test], Y_test, kernels, names, groups, families[train]
    )


def halves(Y, families, rng):
    """Rows of half of the families, which have every class, and of the others."""
    names, family = np.unique(families, return_inverse=True)
    held = np.zeros((names.size, Y.shape[1]), dtype=Y.dtype)
    np.maximum.at(held, family, Y)
    first = covering_rows(held, rng, least=1)
    order = np.concatenate([first, rng.permutation(np.setdiff1d(np.arange(names.size), first))])
    train = np.isin(family, order[: max(first.size, names.size // 2)])
    return np.flatnonzero(train), np.flatnonzero(~train)


def held_back(families):
    """Places of a quarter of the samples, in whole families, and of the others."""
    sizes = pd.Series(families).groupby(families, sort=False).size()
    few = sizes.index[sizes.cumsum() <= int(VALIDATION * len(families))]
    held = np.isin(families, few)
    return np.flatnonzero(held), np.flatnonzero(~held)


#: The paper's estimates and stopping rule.
ESTIMATES = {"corrected": False, "tol": 0.01}
#: The rule is met at once with the paper's steps, so that the number of iterations would be this project's:
#: those of the paper's figure 3 are run beside, at the same C.
LONG = {"corrected": False, "n_iter": 400, "tol": None}
#: Methods of table 1, and their options. As the paper has ML-MKL-SA it has one of two constant steps;
#: "printed" has AdaHedge's. Of the two forms of Sum one is section 2's, one that of its reference [21].
METHODS = {
    "MLMKLSA 0.001": {**ESTIMATES, "eta": 0.001},
    "MLMKLSA 0.0001": {**ESTIMATES, "eta": 0.0001},
    "MLMKLSA 0.001 long": {**LONG, "eta": 0.001},
    "MLMKLSA printed": ESTIMATES,
    "MLMKLSA": {},
    "GMKL": {},
    "MLMKLSum": {},
    "MLMKLSum planes": {"cutting_planes": True},
    "SimpleMKL": {},
    "VSKL": {},
    "AverageKernelSVM": {},
}


def build(method, C, seed, groups):
    name = method.split()[0]
    own = {"MLMKLSA": {"random_state": seed}, "VSKL": {"groups": groups}}
    return getattr(mkl, name)("precomputed", C=C, **METHODS[method], **own.get(name, {}))


def fitted_method(method, C, seed, groups, bank, Y):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="classes without positive")
        return fitted(build(method, C, seed, groups), bank, Y)


@functools.cache
def warm_up(method):
    """Compile what a timed fit of a method will use."""
    X = np.random.default_rng(0).normal(size=(16, 4))
    bank = KernelBank([(f"k{j}", RBF(), [j]) for j in range(4)], X)
    fitted_method(method, 1.0, 0, (0, 0, 1, 1), bank, np.arange(16)[:, None] % 2 ^ np.arange(2))


def rows_against(bank, X):
    return next(iter(bank.cross(X).blocks(memory=8e9)))[1]


def auc_of(model, cross, Y):
    return mean_auc(model.decision_function(cross), Y, skip=model.skipped_classes_)


def chosen_C(name, method, seed, n_train, grid, n_classes=None):
    """C with the best mean AUC, `validation`, on a quarter of the training samples, families together."""
    task = multilabel_task(name, seed, n_train, 1, n_classes)
    held, rest = held_back(task.families)
    bank = KernelBank(task.kernels, task.X_train[rest])
    cross = rows_against(bank, task.X_train[held])
    models = (fitted_method(method, C, seed, task.groups, bank, task.Y_train[rest]) for C in grid)
    aucs = [auc_of(model, cross, task.Y_train[held]).mean for model in models]
    best = first_best(aucs)
    return {"C": float(grid[best]), "validation": float(aucs[best])}


def compare_multilabel(name, seed, n_train, n_test, chosen, n_classes=None):
    """AUC, CPU seconds (kernels in memory), work and largest weights of all methods, in turn on one draw, on
    every second one the other way round.

    `chosen` has the C of each. `like GMKL`, `like VSKL`: rank correlation of the kernel weights, means over
    classes, with those of the two.
    """
    task = multilabel_task(name, seed, n_train, n_test, n_classes)
    bank = KernelBank(task.kernels, task.X_train)
    cross = rows_against(bank, task.X_test)
    rows = {}
    weights = {}
    fitted_method("AverageKernelSVM", 1.0, seed, task.groups, bank, task.Y_train)  # kernels in memory
    for method, parameters in in_turn(list(chosen.items()), seed):
        C = parameters["C"]
        warm_up(method)
        model, seconds = timed(fitted_method, method, C, seed, task.groups, bank, task.Y_train)
        rows[method] = {"method": method, "C": C, "seconds": seconds, **scored(model, cross, task.Y_test)}
        weights[method] = np.atleast_2d(model.kernel_weights_).mean(axis=0)
        shares = weights[method] / weights[method].sum()
        rows[method]["kernels"] = ", ".join(
            f"{bank.names[a]} {shares[a]:.2f}" for a in np.argsort(-shares)[:3]
        )
    ranks = pd.DataFrame(weights).corr("spearman")
    likeness = ranks[["GMKL", "VSKL"]].add_prefix("like ")
    return pd.DataFrame(rows.values()).join(likeness, on="method")


def scored(model, cross, Y):
    """AUC of a fitted model, the SVMs solved and the combinations of all kernels that it took."""
    auc = auc_of(model, cross, Y)
    n_solved = getattr(model, "n_solved_", 0)
    n_combined = n_solved
    if model.kernel_weights_.ndim == 1:
        n_solved += len(model.classes_) - len(model.skipped_classes_)
        n_combined = getattr(model, "n_iter_", 0) + 1
    return {"auc": auc.mean, "n_solved": n_solved, "n_combined": n_combined, "skipped": len(auc.skipped)}


# ------------------------------------------------------------------ the two that share, step by step


def shared_problem(C, **where):
    """A task without the classes that cannot be learnt, and the SVMs of the others."""
    task = multilabel_task(**where)
    signs = signs_of(task.Y_train, len(task.Y_train))
    usable = learnable(signs)
    names = tuple(np.array(task.names)[usable].tolist())
    task = task._replace(Y_train=task.Y_train[:, usable], Y_test=task.Y_test[:, usable], names=names)
    return task, SharedProblem(KernelBank(task.kernels, task.X_train), signs[usable], C)


def more_exact(problem):
    """The same SVMs, to judge by."""
    return SharedProblem(problem.bank, problem.signs, problem.C, 1e-4)


def solve_shared(problem, method, seed, n_iter, **options):
    """A method that shares, without its stopping rule."""
    options = METHODS[method] | options | {"n_iter": n_iter, "tol": None}
    if method.startswith("MLMKLSum"):
        return solve_mlmkl_sum(problem, **options)
    return solve_mlmkl_sa(problem, rng=np.random.default_rng(seed), **options)


def cost_to_gap(method, seed, C, wanted, most, **where):
    """SVMs until the saddle-point gap (Sum: distance from the least sum) is `wanted`, `most` at most."""
    _, problem = shared_problem(C, seed=seed, **where)
    judge = more_exact(problem)
    m = problem.n_problems
    is_sum = method == "MLMKLSum"
    even = np.full(problem.bank.n_kernels, 1.0 / problem.bank.n_kernels)
    threshold = None if is_sum else wanted  # of SA it is enough to know the side
    tol = 0.05 * wanted
    begin = saddle_gap(judge, even, np.full(m, 1.0 / m), tol=tol, threshold=threshold)

    def gap_of(weights, gamma, threshold=threshold):
        if is_sum:
            svms = [judge.solve(k, weights) for k in range(m)]
            return float(np.mean([svm.value + svm.gap for svm in svms])) / begin.least - 1.0
        saddle = saddle_gap(judge, weights, gamma, tol=tol, threshold=threshold)
        return saddle.gap / saddle.worst

    start = gap_of(even, None) if is_sum else (begin.gap - begin.slack) / begin.worst  # at least
    at_looks = {t for t in looks(1.5) if 4 * t >= m}  # of SA; Sum is measured at each iteration
    gaps = []

    def look(run, step):
        if is_sum or step in at_looks:
            gaps.append(gap_of(run.kernel_weights, run.gamma))
            return gaps[-1] <= wanted
        return False

    n_iter = max(1, most // m) if is_sum else most
    result = solve_shared(problem, method, seed, n_iter, callback=look)
    reached = gaps[-1] <= wanted
    if not reached:
        gaps.append(gap_of(result.kernel_weights, result.gamma, None))
    return {
        "n_solved": result.n_solved,
        "seconds": float(result.history["seconds"].iloc[-1]),
        "n_iter": result.n_iter,
        "start": start,
        "gap": gaps[-1],
        "reached": reached,
    }


def exponents(table, column, against, names):
    """Powers of `against` that `column` follows, the mean over draws with three or more runs."""
    rows = []
    for draw, runs in table.groupby([*names, "seed"], sort=False):
        if runs[against].nunique() > 2:
            slope = np.polyfit(np.log(runs[against]), np.log(runs[column]), 1)[0]
            rows.append([*draw, slope])
    return pd.DataFrame(rows, columns=[*names, "seed", "exponent"]).groupby(names)["exponent"].mean()


def gap_after(method, seed, C, at, **where):
    """Saddle-point gap (equation 11) over the worst class, of ML-MKL-SA's averages along one run."""
    _, problem = shared_problem(C, seed=seed, **where)
    judge = more_exact(problem)
    rows = []

    def look(run, step):
        if step in at:
            saddle = saddle_gap(judge, run.kernel_weights, run.gamma, tol=2e-4)
            rows.append((step, saddle.gap / saddle.worst, saddle.slack / saddle.worst))

    solve_shared(problem, method, seed, max(at), callback=look)
    return pd.DataFrame(rows, columns=["n_iter", "gap", "slack"])


def weight_paths(name, method, seed, n_train, C, n_classes=None):
    """Kernel weights against training time, as shares of their sum; means over classes."""
    warm_up(method)
    task = multilabel_task(name, seed, n_train, 1, n_classes)
    bank = KernelBank(task.kernels, task.X_train)
    model = fitted_method(method, C, seed, task.groups, bank, task.Y_train)
    shares = model.path_ / np.maximum(1e-300, model.path_.sum(axis=-1, keepdims=True))
    if shares.ndim == 3:
        shares = np.delete(shares, model.skipped_classes_, axis=1).mean(axis=1)
    table = pd.DataFrame(shares, columns=bank.names)
    table.insert(0, "seconds", [0.0, *model.history_["seconds"]])
    return table


def over_time(method, seed, C, at, passes=False, options=None, **where):
    """AUC along a run without stopping rule of a method that shares, after the iterations `at` or, with
    `passes`, after as many SVMs of every class.

    `auc` is that of the weights that the method returns (SA averages them), `present` that of the
    iteration's own. `moved` and `swing`: ways of the two since the row before.
    """
    task, problem = shared_problem(C, seed=seed, **where)
    cross = rows_against(problem.bank, task.X_test)
    warm_up(method)
    of_all = passes and not method.startswith("MLMKLSum")
    steps = np.array(at) * (problem.n_problems if of_all else 1)
    result = solve_shared(problem, method, seed, int(steps[-1]), **options or {})
    moved, swung = (np.abs(np.diff(path, axis=0)).sum(axis=1) for path in (result.path, result.iterates))
    seconds = [0.0, *result.history["seconds"]]

    def auc_at(weights):
        coef = [problem.solve(k, weights).alpha * problem.signs[k] for k in range(problem.n_problems)]
        scores = np.tensordot(weights.astype(cross.dtype), cross, axes=1) @ np.stack(coef, axis=1)
        return mean_auc(scores, task.Y_test).mean

    rows = []
    for look, t, last in zip(at, steps, [0, *steps[:-1]], strict=True):
        row = {"at": look, "iteration": t, "seconds": seconds[t], "auc": auc_at(result.path[t])}
        if passes:
            row["present"] = auc_at(result.iterates[t])
        rows.append(row | {"moved": moved[last:t].sum(), "swing": swung[last:t].sum()})
    return pd.DataFrame(rows)


def watch_labels(n_classes, delta, C, method="MLMKLSA", seed=0, name="emoji", n_train=200, n_iter=400):
    """One run of ML-MKL-SA: averaged kernel weights; its classes' gamma and draws; groups of the kernels."""
    task, problem = shared_problem(C, name=name, seed=seed, n_train=n_train, n_classes=n_classes)
    result = solve_shared(problem, method, seed, n_iter, delta=delta)
    draws = np.bincount(result.drawn, minlength=len(task.names))
    classes = pd.DataFrame({"class": task.names, "weight": result.gamma, "draws": draws})
    return pd.DataFrame(result.path, columns=problem.bank.names), classes, task.groups


SHOWN_THINGS = (
    *("soccer ball", "rice ball", "confetti ball", "sport utility vehicle", "spouting whale"),
    *("ice cream", "wine glass", "magnifying glass tilted left"),
)


def keywords_together():
    """Drawings, and what each is and its keywords."""
    emoji = pictures.emoji()
    labels = _keywords()
    rows = []
    named = []
    for name in SHOWN_THINGS:
        thing = emoji.names.tolist().index(name)
        rows.append(np.flatnonzero((emoji.thing == thing) & (emoji.style == STYLES[0]))[0])
        has = labels[emoji.keywords[thing, labels] > 0]
        named.append((name, emoji.keyword_names[has].tolist()))
    return emoji.on_backgrounds(rows=rows).images, named
