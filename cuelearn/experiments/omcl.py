r"""Experiments of the OMCL chapter (thesis chapter 3).

Path of the data: images -> `datasets.cues.image_cues` -> `Task` (samples by cue, distances, permutations) -> `permutation_run`, one
call for each permutation -> a `Sweep` -> DataFrames -> `plots.omcl`. Sizes, grids and rules of choice stand at the top and in
`settings`; they were written down before any learner had been run (with one extension, noted there).

The protocol, the same for every data set and method:

* the training part of each permutation holds back some of itself (objects, a sequence, or samples) for validation;
* kernel widths are chosen for each cue with the Perceptron, the second layer's C with OMCL-PERC; the :math:`\eta` of Projectron++ for each
  cue as the largest one whose validation error on that cue is within one standard error of the best ("sparser": two); Flat's kernel
  and :math:`\eta` are chosen in the same way, over the same grids;
* the chosen parameters learn the whole training part in its order; the averaged predictors are tested.
"""

import time

import numpy as np
import pandas as pd
from sklearn.ensemble import StackingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC

from cuelearn.experiments.cue_tasks import (
    WEATHERS,
    Split,
    choose_widths,
    class_errors,
    common,
    cue_distances,
    fingerprint,
    kernels,
    overall,
    standardised,
)
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


def settings(profile):
    """Sizes of all experiments of the chapter for a profile.

    Parameters
    ----------
    profile : {"smoke", "quick", "full"}

    Returns
    -------
    dict
    """
    sizes = {
        "smoke": {
            "robot": {"frames": 10, "height": 48, "width": 64, "permutations": 2},
            "objects": {"n_objects": 4, "size": 48, "permutations": 2},
            "mfeat": {"n_train": 100, "n_test": 300, "permutations": 2},
            "htad": {"n_train": 200, "n_test": 300, "permutations": 2},
            "timed": 50,
        },
        "quick": {
            "robot": {"frames": 150, "height": 96, "width": 128, "permutations": 6},
            "objects": {"n_objects": 10, "size": 128, "permutations": 6},
            "mfeat": {"n_train": 700, "n_test": 1300, "permutations": 6},
            "htad": {"n_train": 900, "n_test": 486, "permutations": 6},
            "timed": 400,
        },
        "full": {
            "robot": {"frames": 900, "height": 96, "width": 128, "permutations": 12},
            "objects": {"n_objects": 10, "size": 128, "permutations": 20},
            "mfeat": {"n_train": 1000, "n_test": 1000, "permutations": 20},
            "htad": {"n_train": 900, "n_test": 486, "permutations": 20},
            "timed": 2000,
        },
    }
    return sizes[profile]


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


def two_layers(C, n_cues=None, etas=None):
    """OMCL on precomputed kernels: OMCL-PERC on a number of cues, or OMCL-BM with one eta for each cue."""
    if etas is None:
        learners = [KernelPerceptron("precomputed")] * n_cues
    else:
        learners = [ProjectronPlusPlus("precomputed", eta=eta) for eta in etas]
    return WatchedOMCL(
        [(f"cue {j}", learner, j) for j, learner in enumerate(learners)],
        PassiveAggressive(C=C),
        verbose=False,
    )


def choose(distances, cues, y, split, n_classes):
    """Parameters by validation inside the training part.

    Returns
    -------
    chosen : dict
        `factors` by name of distances, `C`, `eta` by method (for OMCL-BM a list, one for each cue), `flat` (name of the distances
        that Flat's long vectors use).
    table : DataFrame
        Validation error of everything tried.
    """
    inner, held = split.inner, split.held
    y_inner, y_held = y[split.train][inner], y[split.train][held]
    rows = []

    def error(model, stack):
        return overall(class_errors(model.predict(stack), y_held, n_classes))

    def fit(model, stack):
        return model.partial_fit(stack, y_inner, classes=np.arange(n_classes))

    factors, tried = choose_widths(distances, y, split, n_classes)
    rows.extend(tried)
    vectors = min(
        ("vectors", "vectors scaled"),
        key=lambda v: min(r["error"] for r in rows if r["what"] == f"width of {v}"),
    )

    inside, across = (kernels(distances, cues, factors, inner, part) for part in (inner, held))
    tried = {}
    for C in C_GRID:
        tried[C] = error(fit(two_layers(C, len(cues)), inside), across)
        rows.append({"what": "C", "value": C, "error": tried[C]})
    C = min(tried, key=lambda c: (tried[c], c))

    def sparsest(what, model_at, learn, validate):
        tried = {eta: error(fit(model_at(eta), learn), validate) for eta in ETAS}
        rows.extend({"what": f"eta of {what}", "value": eta, "error": e} for eta, e in tried.items())
        best = min(tried.values())
        standard_error = np.sqrt(max(best, 1 / held.size) * (1 - best) / held.size)
        return [
            max(eta for eta, e in tried.items() if e <= best + n * standard_error)
            for n in STANDARD_ERRORS.values()
        ]

    def alone(eta):
        return ProjectronPlusPlus("precomputed", eta=eta, verbose=False)

    by_cue = [sparsest(cue, alone, inside[j], across[j]) for j, cue in enumerate(cues)]
    etas = {method: [chosen[i] for chosen in by_cue] for i, method in enumerate(STANDARD_ERRORS)}
    flat = (kernels(distances, [vectors], factors, inner, part) for part in (inner, held))
    etas["Flat"] = sparsest("Flat", lambda eta: Flat(alone(eta)), *flat)[0]
    etas["Flat maps"] = sparsest("Flat maps", lambda eta: Flat(alone(eta)), inside, across)[0]
    return {"factors": factors, "C": C, "eta": etas, "flat": vectors}, pd.DataFrame(rows)


def permutation_run(permutation, step, task):
    """All methods on one permutation: curves, errors by class, weights, last against averaged hypotheses, the theorem.

    Parameters
    ----------
    permutation : int
    step : float
        Of gradient descent in the second layer, for theorem 3.1.
    task : dict
        From `common`.

    Returns
    -------
    dict of DataFrame and arrays
    """
    data, split = task["data"], Split(*task["splits"][permutation])
    y, n_classes, cues = data["y"], len(data["target_names"]), list(data["cues"])
    distances = cue_distances(data, task["chi2"], task["distances"], split.train, split.test)
    chosen, validation = choose(distances, cues, y, split, n_classes)
    everything = np.arange(split.train.size)
    stacks = {
        name: (
            kernels(distances, names, chosen["factors"], everything, everything),
            kernels(distances, names, chosen["factors"], everything, None),
        )
        for name, names in (("cues", cues), ("flat", [chosen["flat"]]))
    }
    del distances
    labels, truth = y[split.train], y[split.test]
    models = {
        "OMCL-BM": (two_layers(chosen["C"], etas=chosen["eta"]["OMCL-BM"]), "cues"),
        "OMCL-BM sparser": (two_layers(chosen["C"], etas=chosen["eta"]["OMCL-BM sparser"]), "cues"),
        "OMCL-PERC": (two_layers(chosen["C"], len(cues)), "cues"),
        "Flat": (Flat(ProjectronPlusPlus("precomputed", eta=chosen["eta"]["Flat"])), "flat"),
        "Flat maps": (Flat(ProjectronPlusPlus("precomputed", eta=chosen["eta"]["Flat maps"])), "cues"),
    }
    curves, finals, hypotheses = [], [], []

    def note(method, seen, online, errors, support, tied=0.0):
        curves.append(
            {
                "method": method,
                "n_seen": seen,
                "online_error": online,
                "test_error": overall(errors),
                "support": support,
                "tied": tied,
            }
        )
        if seen == labels.size:
            finals.extend({"method": method, "class": c, "error": e} for c, e in enumerate(errors))

    for method, (model, stack) in models.items():
        inside, across = stacks[stack]
        begin = 0
        for end in split.rounds:
            model.partial_fit(inside[:, begin:end, :end], labels[begin:end], classes=np.arange(n_classes))
            seen_part = across[:, :, :end]
            scores = model.decision_function(seen_part) if n_classes > 2 else model._class_scores(seen_part)
            errors = class_errors(scores.argmax(axis=1), truth, n_classes)
            note(method, int(end), model.n_mistakes_ / model.n_seen_, errors, model._n_support())
            if method == "OMCL-BM":
                alone = model.cue_scores(seen_part)
                for cue, learner, mine in zip(cues, model.learners_, alone, strict=True):
                    errors = class_errors(mine.argmax(axis=1), truth, n_classes)
                    note(
                        f"cue: {cue}",
                        int(end),
                        learner.n_mistakes_ / learner.n_seen_,
                        errors,
                        learner._n_support(),
                    )
                votes, tied = count_votes(alone)
                wrong = tied | (votes.argmax(axis=1) != truth)
                online_votes, online_tied = count_votes(model.first_layer_scores())
                online = np.mean(online_tied | (online_votes.argmax(axis=1) != labels[:end]))
                note(
                    "Vote",
                    int(end),
                    online,
                    class_errors(None, truth, n_classes, wrong),
                    model._n_support(),
                    float(tied.mean()),
                )
                if end == labels.size:
                    ties = class_errors(None, truth, n_classes, tied)
            begin = end
        average = overall(class_errors(model.predict(across), truth, n_classes))
        last = overall(class_errors(model.set_params(average=False).predict(across), truth, n_classes))
        model.set_params(average=True)
        hypotheses.append({"method": method, "average": average, "last": last})
    bounded = models["OMCL-BM"][0]
    theorem, losses = regret(bounded, labels, n_classes, chosen["C"], step)
    return {
        "curves": pd.DataFrame(curves),
        "finals": pd.DataFrame(finals),
        "hypotheses": pd.DataFrame(hypotheses),
        "ties": ties,
        "weights": bounded.weights_,
        "theorem": theorem,
        "losses": losses,
        "validation": validation,
        "chosen": {
            "C": chosen["C"],
            "flat": chosen["flat"],
            **{f"eta {m}": e for m, e in chosen["eta"].items() if m.startswith("Flat")},
            **{
                f"eta {c}{word}": e
                for m, word in (("OMCL-BM", ""), ("OMCL-BM sparser", ", sparser"))
                for c, e in zip(cues, chosen["eta"][m], strict=True)
            },
            **{f"width {c}": chosen["factors"][c] for c in cues},
        },
        "sizes": {m: model.support_sizes_.astype(np.int32) for m, (model, _) in models.items()},
        "online": {
            m: np.cumsum(model.online_errors_)[split.rounds - 1] / split.rounds
            for m, (model, _) in models.items()
        },
    }


def regret(model, labels, n_classes, C, step):
    r"""Theorem 3.1 measured on the first layer's scores of one run.

    The second layer's comparator is the selector of the best cue, u with :math:`\|u\|^2 = M`. Gradient steps of size :math:`\tau` keep

    .. math:: \sum_t g'_t \le \min_j \sum_t g^j_t + \frac{M}{2\tau} + \tau \sum_{t: g'_t > 0} \|S_t\|^2 ,

    and PA-I keeps its mistakes below :math:`\max\{\max_t 2\|S_t\|^2, 1/C\}\,(M + 2 C \min_j \sum_t g^j_t)`.

    Returns
    -------
    table : DataFrame
        One row for each learner in the second layer: measured, bound, loss of the best cue.
    losses : dict of str to ndarray
        Cumulative losses over the visits, of every cue and of the second layers, thinned to 200 points.
    """
    scores = model.first_layer_scores()
    S = np.concatenate(list(scores), axis=1)
    cue_losses = np.stack([learner.online_losses_ for learner in model.learners_])
    best = float(cue_losses.sum(axis=1).min())
    gradient = OnlineGradientDescent(step=step, verbose=False).partial_fit(
        S, labels, classes=np.arange(n_classes)
    )
    length_sq = (S**2).sum(axis=1)
    running = gradient.online_losses_
    bound = best + n_classes / (2 * step) + step * float(length_sq[running > 0].sum())
    mistakes_bound = max(2 * float(length_sq.max()), 1 / C) * (n_classes + 2 * C * best)
    table = pd.DataFrame(
        [
            {
                "second layer": "gradient descent",
                "quantity": "cumulative loss",
                "measured": float(running.sum()),
                "bound": bound,
                "best cue": best,
            },
            {
                "second layer": "PA-I",
                "quantity": "mistakes",
                "measured": float(model.n_mistakes_),
                "bound": mistakes_bound,
                "best cue": best,
            },
            {
                "second layer": "PA-I",
                "quantity": "cumulative loss",
                "measured": model.cumulative_loss_,
                "bound": np.nan,
                "best cue": best,
            },
        ]
    )
    at = np.unique(np.linspace(0, labels.size - 1, 200).astype(int))
    cumulative = {f"cue {j}": np.cumsum(loss)[at] for j, loss in enumerate(cue_losses)}
    cumulative |= {
        "gradient descent": np.cumsum(running)[at],
        "PA-I": np.cumsum(model.online_losses_)[at],
        "n_seen": at + 1,
    }
    best_so_far = np.cumsum(cue_losses, axis=1)[:, at].min(axis=0)
    terms = np.cumsum(np.where(running > 0, length_sq, 0.0))[at]
    cumulative["bound"] = best_so_far + n_classes / (2 * step) + step * terms
    return table, cumulative


# -------------------------------------------------------- smaller experiments


def eta_run(permutation, eta, task, C=1.0):
    """OMCL-BM at one eta, kernel widths at the mean distance: test error and support size (the chapter's slider)."""
    data, split = task["data"], Split(*task["splits"][permutation])
    distances = cue_distances(data, task["chi2"], task["distances"], split.train, split.test)
    cues, everything = list(data["cues"]), np.arange(split.train.size)
    factors = dict.fromkeys(cues, 1.0)
    labels, n_classes = data["y"][split.train], len(data["target_names"])
    model = two_layers(C, etas=[eta] * len(cues))
    model.partial_fit(
        kernels(distances, cues, factors, everything, everything), labels, classes=np.arange(n_classes)
    )
    predicted = model.predict(kernels(distances, cues, factors, everything, None))
    return {
        "test_error": overall(class_errors(predicted, data["y"][split.test], n_classes)),
        "support": model._n_support(),
    }


def integration_run(permutation, task, n_epochs=20):
    """Low, middle and high-level integration of the same cues, learnt in one batch (thesis table 2.1).

    Low: an SVM on the long vector (standardised), RBF. Middle: OBSCURE. High: an SVM for each cue, and a linear SVM on their
    cross-validated scores (stacking). Parameters come from the same validation part as those of the online methods, which
    `permutation_run` gives.

    Returns
    -------
    DataFrame
        Columns level, learning, method, test_error.
    """
    data, split = task["data"], Split(*task["splits"][permutation])
    y = data["y"]
    columns = {cue: np.arange(data["X"].shape[1])[where] for cue, where in data["cues"].items()}
    X = standardised(data["X"].astype(np.float64), split.train)
    used = np.concatenate(list(columns.values()))

    def svm(C, factor, width):
        return SVC(
            C=C, gamma=1.0 / (factor * 2.0 * width)
        )  # standardised columns lie 2 per column apart in the mean square

    def stacked(C, factor):
        experts = [
            (
                cue,
                make_pipeline(
                    FunctionTransformer(_take, kw_args={"columns": where}), svm(C, factor, where.size)
                ),
            )
            for cue, where in columns.items()
        ]
        return StackingClassifier(experts, LinearSVC(C=0.1), cv=3, stack_method="decision_function")

    def many(C, p):
        return OBSCURE(
            [(cue, RBF(), where) for cue, where in columns.items()],
            C=C,
            p=p,
            n_epochs=n_epochs,
            random_state=0,
            verbose=False,
        )

    grids = {
        ("low", "SVM on the long vector"): [
            lambda C=C, f=f: svm(C, f, used.size) for C in (1.0, 10.0) for f in (0.5, 1.0, 2.0)
        ],
        ("middle", "OBSCURE"): [lambda C=C, p=p: many(C, p) for C in (1.0, 10.0) for p in (1.05, 1.25, 2.0)],
        ("high", "stacked SVMs"): [lambda C=C, f=f: stacked(C, f) for C in (1.0, 10.0) for f in (1.0,)],
    }
    inner, held = split.train[split.inner], split.train[split.held]
    rows = []
    for (level, method), makers in grids.items():
        keep = used if level == "low" else np.arange(X.shape[1])
        errors = [
            np.mean(make().fit(X[inner][:, keep], y[inner]).predict(X[held][:, keep]) != y[held])
            for make in makers
        ]
        model = makers[int(np.argmin(errors))]()
        model.fit(X[split.train][:, keep], y[split.train])
        error = np.mean(model.predict(X[split.test][:, keep]) != y[split.test])
        rows.append({"level": level, "learning": "batch", "method": method, "test_error": error})
    return pd.DataFrame(rows)


def online_middle_run(permutation, task):
    """OM-2 in one pass over the training part: middle-level integration learnt online; p by validation (thesis table 2.1)."""
    data, split = task["data"], Split(*task["splits"][permutation])
    X, y = standardised(data["X"].astype(np.float64), split.train), data["y"]
    cues = [(cue, RBF(), np.arange(X.shape[1])[where]) for cue, where in data["cues"].items()]

    def fit(p, rows):
        return OM2(cues, p=p, verbose=False).fit(X[rows], y[rows])

    inner, held = split.train[split.inner], split.train[split.held]
    best = min((1.01, 1.05, 1.25, 1.5, 2.0), key=lambda p: np.mean(fit(p, inner).predict(X[held]) != y[held]))
    return {
        "p": best,
        "test_error": float(np.mean(fit(best, split.train).predict(X[split.test]) != y[split.test])),
    }


def _take(X, columns):
    return X[:, columns]


def milliseconds_per_sample(data, order, n_first, n_timed, learners):
    """Time of `partial_fit` with one sample at a time, kernels computed from the features.

    Parameters
    ----------
    data : CueData
    order : ndarray of int
        Rows in the order of learning.
    n_first : int
        Samples of the first batch, which sets the kernels' widths.
    n_timed : int
        Samples timed after it, each in its own call.
    learners : dict of str to estimator

    Returns
    -------
    DataFrame
        Columns method, mean, p99 (99th percentile) in milliseconds, support.
    """
    X, y = data.X[order], data.y[order]
    rows = []
    for name, model in learners.items():
        model.partial_fit(X[:n_first], y[:n_first], classes=np.arange(len(data.target_names)))
        model.partial_fit(
            X[n_first : n_first + 1], y[n_first : n_first + 1]
        )  # compiles the path of a single sample
        times = []
        for i in range(n_first + 1, min(n_first + 1 + n_timed, y.size)):
            begun = time.perf_counter()
            model.partial_fit(X[i : i + 1], y[i : i + 1])
            times.append(1e3 * (time.perf_counter() - begun))
        rows.append(
            {
                "method": name,
                "mean": np.mean(times),
                "p99": np.percentile(times, 99),
                "support": model._n_support(),
            }
        )
    return pd.DataFrame(rows)


def telling_pairs(images, data):
    """Two pairs of objects of different categories: one that colour tells apart and shape does not, and the reverse.

    Among the images taken from one direction (elevation and azimuth nearest to 35 and 45 degrees): the two that are most alike in
    the one cue while further apart than average in the other, by chi-squared distances.

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
        out.append(
            ((int(rows[i]), int(rows[j])), {cue: float(distance[i, j]) for cue, distance in scaled.items()})
        )
    return out


def light_run(learnt, task, frames):
    """How each cue bears a change of light: learn one weather's drive, test on the other drives of the same session.

    An SVM (C = 10) takes the place of the online learners, so that the order of the frames plays no part.

    Returns
    -------
    DataFrame
        Columns cue, learnt, tested, error (mean over the rooms).
    """
    data = task["data"]
    of = {key: np.asarray(frames[key]) for key in ("weather", "session", "repeat")}
    train = np.flatnonzero((of["weather"] == learnt) & (of["session"] == 1) & (of["repeat"] == 1))
    test = np.flatnonzero((of["session"] == 1) & (of["repeat"] == 2))
    distances = cue_distances(data, task["chi2"], task["distances"], train, test)
    rows, y, everything = [], data["y"], np.arange(train.size)
    for cue in data["cues"]:
        inside, across = (
            kernels(distances, [cue], {cue: 1.0}, everything, rows_)[0] for rows_ in (everything, None)
        )
        predicted = SVC(C=10.0, kernel="precomputed").fit(inside, y[train]).predict(across)
        for weather in WEATHERS:
            part = of["weather"][test] == weather
            error = overall(class_errors(predicted[part], y[test][part], len(data["target_names"])))
            rows.append({"cue": cue, "learnt": learnt, "tested": weather, "error": error})
    return pd.DataFrame(rows)


# ------------------------------------------------------------------ collecting


def run_all(sweep, tasks, step):
    """`permutation_run` at all permutations of one or several tasks, in their order."""
    results = {}
    for task in tasks:
        points = [{"permutation": k, "step": step} for k in task.splits]
        results |= dict(
            zip(
                task.splits,
                sweep.run(permutation_run, points, common=common(task), data=[fingerprint(task)]),
                strict=True,
            )
        )
    return results


def gather(results, name, **columns):
    """The table `name` of all permutations, one below the other, with a column `permutation`."""
    return pd.concat(
        [result[name].assign(permutation=k, **columns) for k, result in results.items()], ignore_index=True
    )


def choices(results):
    """Chosen parameters, one row for each permutation."""
    return pd.DataFrame([{"permutation": k, **result["chosen"]} for k, result in results.items()])


def final_errors(results):
    """Overall test error of every method after the last round: rows permutations, columns methods."""
    curves = gather(results, "curves")
    last = curves[curves["n_seen"] == curves.groupby("permutation")["n_seen"].transform("max")]
    return last.pivot(index="permutation", columns="method", values="test_error"), last.pivot(
        index="permutation", columns="method", values="support"
    )


def diagonal_weights(results, n_classes):
    """Mean weight of the second layer on the per-cue diagonals and off them, rows scaled by their largest; one row per permutation."""
    rows = []
    for k, result in results.items():
        weights = result["weights"] / np.abs(result["weights"]).max(axis=1, keepdims=True)
        diagonal = np.tile(np.eye(n_classes, dtype=bool), weights.shape[1] // n_classes)
        top = diagonal[np.arange(n_classes), weights.argmax(axis=1)]
        rows.append(
            {
                "permutation": k,
                "diagonal": weights[diagonal].mean(),
                "off": weights[~diagonal].mean(),
                "rows": top.mean(),
            }
        )
    return pd.DataFrame(rows)
