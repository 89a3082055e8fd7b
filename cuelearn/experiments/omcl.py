r"""Experiments of the OMCL chapter (thesis chapter 3).

Path of the data: images -> `datasets.cues.image_cues` -> `CueTask` (`cue_tasks`: samples by cue, distances,
permutations) -> `permutation_run`, one call for each permutation -> a `Sweep` -> DataFrames -> `plots.omcl`.
Sizes, grids and rules of choice stand at the top and in `settings`; they were written down before any learner
had been run (with one extension, noted in `cue_tasks`).

The protocol, the same for every data set and method:

* the training part of each permutation holds back some of itself (objects, a sequence, or samples) for
validation; * kernel widths are chosen for each cue with the Perceptron, the second layer's C with OMCL-PERC;
the :math:`\eta` of Projectron++ for
  each cue as the largest one whose validation error on that cue is within one standard error of the best
  ("sparser": two); Flat's kernel and :math:`\eta` are chosen in the same way, over the same grids;
* the chosen parameters learn the whole training part in its order; the averaged predictors are tested.
"""

import numpy as np
import pandas as pd
from sklearn.ensemble import StackingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC

from cuelearn.experiments.cue_tasks import (
    WEATHERS,
    Permutation,
    both_kernels,
    choose_widths,
    class_errors,
    common,
    cue_distances,
    fingerprint,
    overall,
)
from cuelearn.experiments.protocol import grid_points, settings_of, timed
from cuelearn.kernels import RBF, distance_matrix, mean_rule
from cuelearn.mkl import OBSCURE, OM2
from cuelearn.omcl import (
    OMCL,
    Flat,
    KernelPerceptron,
    OnlineGradientDescent,
    PassiveAggressive,
    ProjectronPlusPlus,
    count_votes,
)

ETAS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)  # sqrt(2) is the residual of the first sample
C_GRID = (0.01, 0.1, 1.0, 10.0)
STANDARD_ERRORS = {"OMCL-BM": 1.0, "OMCL-BM sparser": 2.0}
CURVE_POINTS = 200

# smoke, quick, full
TABLE = {
    "robot": {
        "frames": (10, 150, 900),
        "height": (48, 96, 96),
        "width": (64, 128, 128),
        "permutations": (2, 6, 12),
    },
    "objects": {"n_objects": (4, 10, 10), "size": (48, 128, 128), "permutations": (2, 6, 20)},
    "mfeat": {"n_train": (100, 700, 1000), "n_test": (300, 1300, 1000), "permutations": (2, 6, 20)},
    "htad": {"n_train": (200, 900, 900), "n_test": (300, 486, 486), "permutations": (2, 6, 20)},
    "timed": (50, 400, 2000),
}


def settings(profile):
    """Sizes of all experiments of the chapter for a profile, "smoke", "quick" or "full"."""
    return settings_of(TABLE, profile)


# ------------------------------------------------------------- one permutation


class WatchedOMCL(OMCL):
    """OMCL that keeps the scores of the first layer, for the theorem and the votes."""

    def _open(self, X, n_classes):
        super()._open(X, n_classes)
        self.seen_ = [[] for _ in self.learners_]

    def _observe_cue(self, X, labels, j, log=False):
        trace = super()._observe_cue(X, labels, j, log)
        self.seen_[j].append(trace.scores)
        return trace

    def first_layer_scores(self):
        """Scores before each update, shape (n_cues, n_seen, n_classes)."""
        return np.stack([np.concatenate(parts) for parts in self.seen_])


def bounded(eta, **more):
    return ProjectronPlusPlus("precomputed", eta=eta, **more)


def two_layers(C, n_cues=None, etas=None):
    """OMCL on precomputed kernels: OMCL-PERC on a number of cues, or OMCL-BM with one eta for each cue."""
    learners = [KernelPerceptron("precomputed")] * n_cues if etas is None else map(bounded, etas)
    named = [(f"cue {j}", learner, j) for j, learner in enumerate(learners)]
    return WatchedOMCL(named, PassiveAggressive(C=C), verbose=False)


def choose(run):
    """Parameters of all methods, by validation inside the training part.

    A dict with `factors` by name of distances, `C`, `eta` by method (for OMCL-BM a list, one for each cue),
    and `flat`, the name of the distances that Flat's long vectors use.
    """
    inner, held = run.split.inner, run.split.held
    y_inner, y_held = run.labels[inner], run.labels[held]

    def error_of(model, learn, validate):
        model.partial_fit(learn, y_inner, classes=np.arange(run.n_classes))
        return overall(class_errors(model.predict(validate), y_held, run.n_classes))

    def sparsest(wrap, learn, validate):
        tried = {eta: error_of(wrap(bounded(eta, verbose=False)), learn, validate) for eta in ETAS}
        best = min(tried.values())
        standard_error = np.sqrt(max(best, 1 / held.size) * (1 - best) / held.size)
        limits = [best + n * standard_error for n in STANDARD_ERRORS.values()]
        return [max(eta for eta, e in tried.items() if e <= limit) for limit in limits]

    factors, least = choose_widths(run.distances, run.y, run.split, run.n_classes)
    vectors = min(("vectors", "vectors scaled"), key=least.get)
    stacks = both_kernels(run.distances, run.cues, factors, inner, held)
    errors = {C: error_of(two_layers(C, len(run.cues)), *stacks) for C in C_GRID}
    by_cue = [sparsest(lambda m: m, inside, across) for inside, across in zip(*stacks, strict=True)]
    etas = {method: [chosen[i] for chosen in by_cue] for i, method in enumerate(STANDARD_ERRORS)}
    etas["Flat"] = sparsest(Flat, *both_kernels(run.distances, [vectors], factors, inner, held))[0]
    etas["Flat maps"] = sparsest(Flat, *stacks)[0]
    C = min(errors, key=lambda c: (errors[c], c))
    return {"factors": factors, "C": C, "eta": etas, "flat": vectors}


def permutation_run(permutation, step, task):
    """All methods on one permutation: curves, errors, weights, last against averaged hypotheses, theorem.

    `step` is that of gradient descent in the second layer, for theorem 3.1; `task` comes from `common`.
    Returns a dict of DataFrames and arrays.
    """
    run = Permutation(permutation, task)
    labels, truth, n_classes, cues = run.labels, run.truth, run.n_classes, run.cues
    chosen = choose(run)
    stacks = {
        "cues": run.stacks(cues, chosen["factors"]),
        "flat": run.stacks([chosen["flat"]], chosen["factors"]),
    }
    del run.distances  # the kernels are all that is needed of them
    C, etas = chosen["C"], chosen["eta"]
    models = {
        "OMCL-BM": (two_layers(C, etas=etas["OMCL-BM"]), "cues"),
        "OMCL-BM sparser": (two_layers(C, etas=etas["OMCL-BM sparser"]), "cues"),
        "OMCL-PERC": (two_layers(C, len(cues)), "cues"),
        "Flat": (Flat(bounded(etas["Flat"])), "flat"),
        "Flat maps": (Flat(bounded(etas["Flat maps"])), "cues"),
    }
    curves, finals, hypotheses = [], [], []

    def note(method, seen, online, wrong, support, tied=0.0):
        errors = class_errors(None, truth, n_classes, wrong)
        row = {"method": method, "n_seen": int(seen), "online_error": online, "test_error": overall(errors)}
        curves.append({**row, "support": support, "tied": tied})
        if seen == labels.size:
            finals.extend({"method": method, "class": c, "error": e} for c, e in enumerate(errors))

    def note_cues(model, end, across):  # each first layer alone, and their vote
        alone = model.cue_scores(across)
        for cue, learner, mine in zip(cues, model.learners_, alone, strict=True):
            online = learner.n_mistakes_ / learner.n_seen_
            note(f"cue: {cue}", end, online, mine.argmax(axis=1) != truth, learner._n_support())
        votes, tied = count_votes(alone)
        online_votes, online_tied = count_votes(model.first_layer_scores())
        online = np.mean(online_tied | (online_votes.argmax(axis=1) != labels[:end]))
        wrong = tied | (votes.argmax(axis=1) != truth)
        note("Vote", end, online, wrong, model._n_support(), float(tied.mean()))
        return tied

    for method, (model, stack) in models.items():
        (inside, across), begin = stacks[stack], 0
        for end in run.split.rounds:
            model.partial_fit(inside[:, begin:end, :end], labels[begin:end], classes=np.arange(n_classes))
            seen = across[:, :, :end]
            scores = model.decision_function(seen) if n_classes > 2 else model._class_scores(seen)
            online = model.n_mistakes_ / model.n_seen_
            note(method, end, online, scores.argmax(axis=1) != truth, model._n_support())
            if method == "OMCL-BM":
                tied = note_cues(model, end, seen)
            begin = end
        average = overall(class_errors(model.predict(across), truth, n_classes))
        last = overall(class_errors(model.set_params(average=False).predict(across), truth, n_classes))
        model.set_params(average=True)
        hypotheses.append({"method": method, "average": average, "last": last})
    model = models["OMCL-BM"][0]
    theorem, losses = regret(model, labels, n_classes, C, step)
    told = {"C": C, "flat": chosen["flat"], **{f"eta {m}": etas[m] for m in ("Flat", "Flat maps")}}
    for method, word in (("OMCL-BM", ""), ("OMCL-BM sparser", ", sparser")):
        told |= {f"eta {cue}{word}": eta for cue, eta in zip(cues, etas[method], strict=True)}
    return {
        "curves": pd.DataFrame(curves),
        "finals": pd.DataFrame(finals),
        "hypotheses": pd.DataFrame(hypotheses),
        "ties": class_errors(None, truth, n_classes, tied),
        "weights": model.weights_,
        "theorem": theorem,
        "losses": losses,
        "chosen": told | {f"width {cue}": chosen["factors"][cue] for cue in cues},
    }


def regret(model, labels, n_classes, C, step):
    r"""Theorem 3.1 measured on the first layer's scores of one run.

    The second layer's comparator is the selector of the best cue, u with :math:`\|u\|^2 = M`. Gradient steps
    of size :math:`\tau` keep

    .. math:: \sum_t g'_t \le \min_j \sum_t g^j_t + \frac{M}{2\tau} + \tau \sum_{t: g'_t > 0} \|S_t\|^2 ,

    and PA-I keeps its mistakes below :math:`\max\{\max_t 2\|S_t\|^2, 1/C\}\,(M + 2 C \min_j \sum_t g^j_t)`.

    Returns
    -------
    table : DataFrame
        One row for each learner in the second layer: measured, bound, loss of the best cue.
    losses : dict of str to ndarray
        Cumulative losses over the visits, of every cue and of the second layers, thinned to 200 points.
    """
    S = np.concatenate(list(model.first_layer_scores()), axis=1)
    cue_losses = np.stack([learner.online_losses_ for learner in model.learners_])
    best = float(cue_losses.sum(axis=1).min())
    gradient = OnlineGradientDescent(step=step, verbose=False)
    running = gradient.partial_fit(S, labels, classes=np.arange(n_classes)).online_losses_
    length_sq, room = (S**2).sum(axis=1), n_classes / (2 * step)
    bound = best + room + step * float(length_sq[running > 0].sum())
    mistakes_bound = max(2 * float(length_sq.max()), 1 / C) * (n_classes + 2 * C * best)
    rows = [
        ("gradient descent", "cumulative loss", float(running.sum()), bound, best),
        ("PA-I", "mistakes", float(model.n_mistakes_), mistakes_bound, best),
        ("PA-I", "cumulative loss", model.cumulative_loss_, np.nan, best),
    ]
    at = np.unique(np.linspace(0, labels.size - 1, CURVE_POINTS).astype(int))
    cumulative = {f"cue {j}": np.cumsum(loss)[at] for j, loss in enumerate(cue_losses)}
    cumulative["gradient descent"] = np.cumsum(running)[at]
    cumulative |= {"PA-I": np.cumsum(model.online_losses_)[at], "n_seen": at + 1}
    best_so_far = np.cumsum(cue_losses, axis=1)[:, at].min(axis=0)
    terms = np.cumsum(np.where(running > 0, length_sq, 0.0))[at]
    cumulative["bound"] = best_so_far + room + step * terms
    columns = ["second layer", "quantity", "measured", "bound", "best cue"]
    return pd.DataFrame(rows, columns=columns), cumulative


# -------------------------------------------------------- smaller experiments


def eta_run(permutation, eta, task, C=1.0):
    """OMCL-BM at one eta, kernel widths at the mean distance: test error and support (the slider)."""
    run = Permutation(permutation, task)
    inside, across = run.stacks(run.cues, dict.fromkeys(run.cues, 1.0))
    model = two_layers(C, etas=[eta] * len(run.cues))
    model.partial_fit(inside, run.labels, classes=np.arange(run.n_classes))
    error = overall(class_errors(model.predict(across), run.truth, run.n_classes))
    return {"test_error": error, "support": model._n_support()}


def integration_run(permutation, task, n_epochs=20):
    """Low, middle and high-level integration of the same cues, learnt in one batch (thesis table 2.1).

    Low: an SVM on the long vector (standardised), RBF. Middle: OBSCURE. High: an SVM for each cue, and a
    linear SVM on their cross-validated scores (stacking). Parameters come from the same validation part as
    those of the online methods, which `permutation_run` gives.

    Returns a DataFrame with columns level, learning, method, test_error.
    """
    run = Permutation(permutation, task)
    X, y, split, columns = run.scaled(), run.y, run.split, run.columns
    used = np.concatenate(list(columns.values()))

    def svm(C, factor, width=used.size):
        # standardised columns lie 2 per column apart in the mean square
        return SVC(C=C, gamma=1.0 / (factor * 2.0 * width))

    def many(C, p):
        cues = [(cue, RBF(), where) for cue, where in columns.items()]
        return OBSCURE(cues, C=C, p=p, n_epochs=n_epochs, random_state=0, verbose=False)

    def stacked(C):
        experts = []
        for cue, where in columns.items():
            own = FunctionTransformer(_take, kw_args={"columns": where})
            experts.append((cue, make_pipeline(own, svm(C, 1.0, where.size))))
        return StackingClassifier(experts, LinearSVC(C=0.1), cv=3, stack_method="decision_function")

    def error(model, keep, learn, test):
        predicted = model.fit(X[learn][:, keep], y[learn]).predict(X[test][:, keep])
        return np.mean(predicted != y[test])

    everything, Cs = np.arange(X.shape[1]), (1.0, 10.0)
    methods = [
        ("low", "SVM on the long vector", svm, grid_points(C=Cs, factor=(0.5, 1.0, 2.0))),
        ("middle", "OBSCURE", many, grid_points(C=Cs, p=(1.05, 1.25, 2.0))),
        ("high", "stacked SVMs", stacked, grid_points(C=Cs)),
    ]
    inner, held, rows = split.train[split.inner], split.train[split.held], []
    for level, method, make, grid in methods:
        keep = used if level == "low" else everything
        best = grid[int(np.argmin([error(make(**point), keep, inner, held) for point in grid]))]
        found = error(make(**best), keep, split.train, split.test)
        rows.append({"level": level, "learning": "batch", "method": method, "test_error": found})
    return pd.DataFrame(rows)


def online_middle_run(permutation, task):
    """OM-2 in one pass: middle-level integration learnt online; p by validation (thesis table 2.1)."""
    run = Permutation(permutation, task)
    X, y, split = run.scaled(), run.y, run.split
    cues = [(cue, RBF(), where) for cue, where in run.columns.items()]

    def error(p, learn, test):
        model = OM2(cues, p=p, verbose=False).fit(X[learn], y[learn])
        return float(np.mean(model.predict(X[test]) != y[test]))

    inner, held = split.train[split.inner], split.train[split.held]
    best = min((1.01, 1.05, 1.25, 1.5, 2.0), key=lambda p: error(p, inner, held))
    return {"p": best, "test_error": error(best, split.train, split.test)}


def _take(X, columns):
    return X[:, columns]


def milliseconds_per_sample(data, order, n_first, n_timed, learners):
    """Time of `partial_fit` with one sample at a time, kernels computed from the features.

    The first `n_first` rows of `order` set the kernels' widths, the next one compiles what a single sample
    needs, and `n_timed` after it are timed, each in its own call.

    Returns a DataFrame with columns method, mean, p99 (99th percentile) in milliseconds, support.
    """
    X, y = data.X[order], data.y[order]
    rows = []
    for name, model in learners.items():
        model.partial_fit(X[:n_first], y[:n_first], classes=np.arange(len(data.target_names)))
        model.partial_fit(X[n_first : n_first + 1], y[n_first : n_first + 1])
        single = range(n_first + 1, min(n_first + 1 + n_timed, y.size))
        times = [1e3 * timed(model.partial_fit, X[i : i + 1], y[i : i + 1])[1] for i in single]
        spent = {"mean": np.mean(times), "p99": np.percentile(times, 99)}
        rows.append({"method": name, **spent, "support": model._n_support()})
    return pd.DataFrame(rows)


def telling_pairs(images, data):
    """Two pairs of objects: one that colour tells apart and shape does not, and the reverse.

    Among the images taken from one direction (elevation and azimuth nearest to 35 and 45 degrees): the two
    that are most alike in the one cue while further apart than average in the other, by chi-squared
    distances.

    Returns
    -------
    list of (tuple of int, dict of str to float)
        Row numbers of the pair, and its distance by cue.
    """
    frames = images.frames
    apart = np.abs(frames["elevation"] - 35.0) + np.abs((frames["azimuth"] - 45.0 + 180.0) % 360.0 - 180.0)
    rows = np.flatnonzero(np.isclose(apart, apart.min()))
    scaled = {cue: distance_matrix(data.X[rows][:, columns], "chi2") for cue, columns in data.cues.items()}
    scaled = {cue: distance / mean_rule(distance) for cue, distance in scaled.items()}
    other = data.y[rows][:, None] != data.y[rows][None, :]
    out = []
    for tells, fails in (("colour", "shape"), ("shape", "colour")):
        alike = np.where(other & (scaled[tells] > 1.0), scaled[fails], np.inf)
        i, j = np.unravel_index(alike.argmin(), alike.shape)
        distances = {cue: float(distance[i, j]) for cue, distance in scaled.items()}
        out.append(((int(rows[i]), int(rows[j])), distances))
    return out


def light_run(learnt, task, frames):
    """How each cue bears a change of light: learn one weather's drive, test on others of its session.

    An SVM (C = 10) takes the place of the online learners, so that the order of the frames plays no part.

    Returns a DataFrame with columns cue, learnt, tested, error (mean over the rooms).
    """
    data, y = task["data"], task["data"]["y"]
    weather, session, repeat = (np.asarray(frames[key]) for key in ("weather", "session", "repeat"))
    train = np.flatnonzero((weather == learnt) & (session == 1) & (repeat == 1))
    test = np.flatnonzero((session == 1) & (repeat == 2))
    distances = cue_distances(data, task["chi2"], task["distances"], train, test)
    rows = []
    for cue in data["cues"]:
        inside, across = both_kernels(distances, [cue], {cue: 1.0}, np.arange(train.size), None)
        predicted = SVC(C=10.0, kernel="precomputed").fit(inside[0], y[train]).predict(across[0])
        for tested in WEATHERS:
            part = weather[test] == tested
            error = overall(class_errors(predicted[part], y[test][part], len(data["target_names"])))
            rows.append({"cue": cue, "learnt": learnt, "tested": tested, "error": error})
    return pd.DataFrame(rows)


# ------------------------------------------------------------------ collecting


def run_all(sweep, tasks, step):
    """`permutation_run` at all permutations of one or several tasks, in their order."""
    results = {}
    for task in tasks:
        points = [{"permutation": k, "step": step} for k in task.splits]
        found = sweep.run(permutation_run, points, common=common(task), data=[fingerprint(task)])
        results |= dict(zip(task.splits, found, strict=True))
    return results


def gather(results, name, **columns):
    """The table `name` of all permutations, one below the other, with a column `permutation`."""
    tables = [result[name].assign(permutation=k, **columns) for k, result in results.items()]
    return pd.concat(tables, ignore_index=True)


def choices(results):
    """Chosen parameters, one row for each permutation."""
    return pd.DataFrame([{"permutation": k, **result["chosen"]} for k, result in results.items()])


def final_errors(results):
    """Test error of every method at the end, and its support: rows permutations, columns methods."""
    curves = gather(results, "curves")
    last = curves[curves["n_seen"] == curves.groupby("permutation")["n_seen"].transform("max")]
    at_end = last.pivot(index="permutation", columns="method")
    return at_end["test_error"], at_end["support"]


def diagonal_weights(results, n_classes):
    """Mean weight of the second layer on and off the per-cue diagonals, rows scaled by their largest."""
    rows = []
    for k, result in results.items():
        weights = result["weights"] / np.abs(result["weights"]).max(axis=1, keepdims=True)
        on = np.tile(np.eye(n_classes, dtype=bool), weights.shape[1] // n_classes)
        top = on[np.arange(n_classes), weights.argmax(axis=1)].mean()
        means = {"diagonal": weights[on].mean(), "off": weights[~on].mean()}
        rows.append({"permutation": k, **means, "rows": top})
    return pd.DataFrame(rows)
