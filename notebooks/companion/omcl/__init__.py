"""Experiments of the OMCL chapter (thesis chapter 3): `pictures` -> `permutation_run` -> `omcl.figures`.

A part of each permutation's training part is held back. There kernel widths are chosen for each cue with
the Perceptron, the second layer's C with OMCL-PERC, and the eta of Projectron++ as the largest one whose
error is within one standard error of the best ("sparser": two); Flat's likewise. HTAD takes the place of
KTH-IDOL2, where that is not present; mfeat is a stream with a low online error.
"""

import math
from functools import cache, partial

import numpy as np
import pandas as pd
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC, LinearSVC

from companion import study
from companion.pictures import FACTORS, Distances, Permutation, class_errors, handed, mean_error
from companion.protocol import FIRST_STAGE, grid_points, settings_of
from cuelearn.core.formulas import ROUNDING, first_best
from cuelearn.mkl import OBSCURE, OM2
from cuelearn.omcl import (
    OMCL,
    Flat,
    KernelPerceptron,
    MarginQuery,
    OnlineGradientDescent,
    PassiveAggressive,
    ProjectronPlusPlus,
    RandomQuery,
    ThresholdQuery,
    count_votes,
)

# up to the residual of the first sample, sqrt(2), beyond which every update is projected; close to it, since
# narrow kernels leave 99% of an update outside the span of what is kept
ETAS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.35, 1.38, 1.4, 1.41, 1.413, 1.414, math.sqrt(2.0))
# the thesis gives no grid. Nearest to 1 first, which ties take: where C is so small that no step mends a
# loss, or so large that none is cut, the predictions are the same for all further values
C_GRID = (1.0, 0.1, 10.0, 0.01, 100.0, 1e-3, 1000.0, 1e-4, 1e-5, 1e-6)
#: What is tried of the methods of table 2.1 that learn in batch, and of OM-2.
LEVELS = {
    "SVM on the long vector": {"C": (0.1, 1.0, 10.0, 100.0), "factor": (1 / 8, 0.25, 0.5, 1.0, 2.0, 4.0)},
    "OBSCURE": {"C": (0.01, 0.1, 1.0, 10.0, 100.0), "p": (1.01, 1.25, 2.0)},
    "OM-2": {"p": (1.01, 1.05, 1.25, 1.5, 2.0)},
    "stacked SVMs": {"C": (0.1, 1.0, 10.0, 100.0)},
}
#: Ends that nothing can lie beyond.
NATURAL = {"eta": (math.sqrt(2.0),), "p": (2.0,)}
STANDARD_ERRORS = {"OMCL-BM": 1.0, "OMCL-BM sparser": 2.0}

#: Rules for requesting labels and their grids, fixed after runs on pendigits, satimage and letter.
QUERIES = {
    "margin": (MarginQuery, "b", (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)),
    "threshold": (ThresholdQuery, "threshold", (0.03, 0.1, 0.3, 1.0, 2.0)),
    "random": (RandomQuery, "rate", (0.25, 0.5, 0.75)),
}
#: Data of the few labels.
FEW_LABELS = ("objects", "leaves", "mfeat")

# smoke, quick, full
TABLE = {
    # of what is chosen by validation
    "grids": {
        "C": (C_GRID, C_GRID[:6], C_GRID),
        "eta": (ETAS, ETAS[::2], ETAS),
        "width": (FACTORS, FACTORS[1::2], FACTORS),
    },
    "few labels": {"n_train": (100, 360, 960), "n_test": (100, 500, 1000), "permutations": (2, 3, 30)},
    "idol2": {"permutations": (2, 6, 12)},
    "objects": {"n_views": (3, 10, 41), "permutations": (2, 6, 64)},
    "categories": {"n_categories": (5, 12, 30), "n_learn": (6, 20, 30), "permutations": (2, 3, 6)},
    "things": {"permutations": (2, 3, 10)},
    "integration": (2, 3, 10),  # permutations of the numerals
    "htad": {"n_train": (200, 900, 900), "n_test": (300, 486, 486), "permutations": (2, 4, 60)},
    "mfeat": {"n_train": (200, 800, 1000), "n_test": (300, 700, 1000), "permutations": (2, 4, 30)},
    # in full as many as its training set has: mistakes are rare only after thousands
    "pendigits": {"n_train": (300, 2200, 7494), "n_test": (300, 500, 2000), "permutations": (2, 3, 20)},
}
#: Sizes for a profile, "smoke", "quick" or "full".
settings = partial(settings_of, TABLE)
#: The whole grids.
GRIDS = settings("full")["grids"]


# --- experiments --------------------------------------------------------------------------------------------

CURVE_POINTS = 200


class WatchedOMCL(OMCL):
    """OMCL that keeps the scores of the first layer, for the theorem and the votes."""

    def _open(self, X, n_classes):
        super()._open(X, n_classes)
        self.seen_ = [[] for _ in self.learners_]

    def _observe_cues(self, X, labels, weights, log=False):
        traces, sizes = super()._observe_cues(X, labels, weights, log)
        for seen, trace in zip(self.seen_, traces, strict=True):
            seen.append(trace.scores)
        return traces, sizes

    def first_layer_scores(self):
        """Scores before each update, shape (n_cues, n_seen, n_classes)."""
        return np.stack([np.concatenate(parts) for parts in self.seen_])


def bounded(eta):
    return ProjectronPlusPlus("precomputed", eta=eta)


def two_layers(C, n_cues=None, etas=None):
    """OMCL-PERC on a number of precomputed kernels, or OMCL-BM with one eta for each."""
    learners = [KernelPerceptron("precomputed")] * n_cues if etas is None else map(bounded, etas)
    named = [(f"cue {j}", learner, j) for j, learner in enumerate(learners)]
    return WatchedOMCL(named, PassiveAggressive(C=C))


def choose_parameters(run, grids=GRIDS):
    """Parameters of all methods, by validation: `factors` and `eta` (one for each cue), `C`, and `flat`, the
    distances of Flat's long vectors."""

    def sparsest(wrap, inside, across):
        errors = {eta: run.validation_error(wrap(bounded(eta)), inside, across) for eta in grids["eta"]}
        best = min(errors.values())
        n_held = run.split.held.size
        standard_error = np.sqrt(max(best, 1 / n_held) * (1 - best) / n_held)
        limits = [best + n * standard_error for n in STANDARD_ERRORS.values()]
        return [max(eta for eta, error in errors.items() if error <= limit + ROUNDING) for limit in limits]

    factors, least = run.choose_widths([*run.cues, "vectors", "vectors scaled"], grids["width"])
    flat = ("vectors", "vectors scaled")[first_best([-least["vectors"], -least["vectors scaled"]])]
    stacks = run.kernels(run.cues, factors, validating=True)
    errors = [run.validation_error(two_layers(C, len(run.cues)), *stacks) for C in grids["C"]]
    C = grids["C"][first_best(np.negative(errors))]
    by_cue = [sparsest(lambda learner: learner, *kernels) for kernels in zip(*stacks, strict=True)]
    etas = {method: [pair[i] for pair in by_cue] for i, method in enumerate(STANDARD_ERRORS)}
    etas["Flat"] = sparsest(Flat, *run.kernels([flat], factors, validating=True))[0]
    etas["Flat maps"] = sparsest(Flat, *stacks)[0]
    return {"factors": factors, "C": C, "eta": etas, "flat": flat}


def permutation_run(permutation, step, task, grids=GRIDS):
    """All methods on one permutation; `step` is that of gradient descent in theorem 3.1."""
    run = Permutation(task, task.splits[permutation])
    labels = run.labels
    truth = run.truth
    n_classes = run.n_classes
    cues = run.cues
    chosen = choose_parameters(run, grids)
    C = chosen["C"]
    etas = chosen["eta"]
    stacks = run.kernels(cues, chosen["factors"])
    flat = run.kernels([chosen["flat"]], chosen["factors"])
    run.computed.clear()  # the kernels are all that is needed of the distances
    models = {method: (two_layers(C, etas=etas[method]), stacks) for method in STANDARD_ERRORS}
    models["OMCL-PERC"] = two_layers(C, len(cues)), stacks
    models["Flat"] = Flat(bounded(etas["Flat"])), flat
    models["Flat maps"] = Flat(bounded(etas["Flat maps"])), stacks
    curves = []
    finals = []
    hypotheses = []
    confusions = {}

    def note(method, model, predicted, end, online=None, tied=0.0):
        errors = class_errors(predicted != truth, truth, n_classes)
        online = model.n_mistakes_ / model.n_seen_ if online is None else online
        row = {"method": method, "n_seen": int(end), "online_error": online}
        curves.append({**row, "test_error": np.nanmean(errors), "support": model._n_support(), "tied": tied})
        if end == labels.size:
            finals.extend({"method": method, "class": c, "error": e} for c, e in enumerate(errors))
            counts = confusion_matrix(truth, predicted, labels=range(n_classes))
            confusions[method] = counts / np.maximum(np.bincount(truth, minlength=n_classes)[:, None], 1)

    def note_cues(model, end, across):
        """Each first layer alone, and their vote; which test samples are tied."""
        alone = model.cue_scores(across)
        for cue, learner, scores in zip(cues, model.learners_, alone, strict=True):
            note(f"cue: {cue}", learner, scores.argmax(axis=1), end)
        votes, tied = count_votes(alone)
        online_votes, online_tied = count_votes(model.first_layer_scores())
        online = np.mean(online_tied | (online_votes.argmax(axis=1) != labels[:end]))
        elected = np.where(tied, -1, votes.argmax(axis=1))
        note("Vote", model, elected, end, online, mean_error(tied, truth, n_classes))
        return tied

    for method, (model, (inside, across)) in models.items():
        begin = 0
        for end in run.split.rounds:
            model.partial_fit(inside[:, begin:end, :end], labels[begin:end], classes=np.arange(n_classes))
            seen = across[:, :, :end]
            scores = model.decision_function(seen) if n_classes > 2 else model._class_scores(seen)
            note(method, model, scores.argmax(axis=1), end)
            if method == "OMCL-BM":
                tied = note_cues(model, end, seen)
            begin = end
        errors = {"method": method}
        for hypothesis, average in (("last", False), ("average", True)):
            wrong = model.set_params(average=average).predict(across) != truth
            errors[hypothesis] = mean_error(wrong, truth, n_classes)
        hypotheses.append(errors)
    model = models["OMCL-BM"][0]
    theorem, losses = regret(model, labels, n_classes, C, step)
    choices = {"C": C, "flat": chosen["flat"], "eta Flat": etas["Flat"], "eta Flat maps": etas["Flat maps"]}
    for j, cue in enumerate(cues):
        choices[f"eta {cue}"] = etas["OMCL-BM"][j]
        choices[f"eta {cue}, sparser"] = etas["OMCL-BM sparser"][j]
        choices[f"width {cue}"] = chosen["factors"][cue]
    return {
        "curves": pd.DataFrame(curves),
        "finals": pd.DataFrame(finals),
        "hypotheses": pd.DataFrame(hypotheses)[["method", "average", "last"]],
        "confusions": confusions,
        "ties": class_errors(tied, truth, n_classes),
        "weights": model.weights_,
        "theorem": theorem,
        "losses": losses,
        "chosen": choices,
    }


def regret(model, labels, n_classes, C, step):
    """Theorem 3.1 measured on one run: its sides at the end, and all losses so far.

    The comparator selects the best cue: its squared length is the number of classes.
    """
    S = np.concatenate(list(model.first_layer_scores()), axis=1)
    cue_losses = np.stack([learner.online_losses_ for learner in model.learners_])
    best = float(cue_losses.sum(axis=1).min())
    gradient = OnlineGradientDescent(step=step)
    running = gradient.partial_fit(S, labels, classes=np.arange(n_classes)).online_losses_
    length_sq = (S**2).sum(axis=1)
    room = n_classes / (2 * step)
    bound = best + room + step * float(length_sq[running > 0].sum())
    mistakes_bound = max(2 * float(length_sq.max()), 1 / C) * (n_classes + 2 * C * best)
    columns = ["second layer", "quantity", "measured", "bound", "best cue"]
    rows = [
        ("gradient descent", "cumulative loss", float(running.sum()), bound, best),
        ("PA-I", "mistakes", float(model.n_mistakes_), mistakes_bound, best),
        ("PA-I", "cumulative loss", model.cumulative_loss_, np.nan, best),
    ]
    at = np.unique(np.linspace(0, labels.size - 1, CURVE_POINTS).astype(int))
    so_far = np.cumsum(cue_losses, axis=1)[:, at]
    cumulative = {f"cue {j}": losses for j, losses in enumerate(so_far)}
    cumulative["gradient descent"] = np.cumsum(running)[at]
    cumulative["PA-I"] = np.cumsum(model.online_losses_)[at]
    cumulative["n_seen"] = at + 1
    terms = np.cumsum(np.where(running > 0, length_sq, 0.0))[at]
    cumulative["bound"] = so_far.min(axis=0) + room + step * terms
    return pd.DataFrame(rows, columns=columns), cumulative


def integration_run(permutation, task, n_epochs=20):
    """Test errors of low, middle and high-level integration of the same cues (thesis table 2.1).

    High: an SVM for each cue, and a linear SVM on their cross-validated scores (stacking).
    """
    run = Permutation(task, task.splits[permutation])

    def svm(C):
        return SVC(C=C, kernel="precomputed")

    @cache
    def kernels(names, factor, validating):
        return run.kernels(names, dict.fromkeys(names, factor), validating)

    def low(y, validating, C, factor):
        (inside,), (across,) = kernels(("vectors scaled",), factor, validating)
        return svm(C).fit(inside, y).predict(across)

    def middle(y, validating, **parameters):
        inside, across = kernels(tuple(run.cues), 1.0, validating)
        if "C" not in parameters:
            return OM2("precomputed", n_epochs=1, **parameters).fit(inside, y).predict(across)
        stages = {**FIRST_STAGE, "n_epochs": n_epochs, "tol": None}
        model = OBSCURE("precomputed", **parameters, **stages, random_state=0)
        return model.fit(inside, y).predict(across)

    def high(y, validating, C):
        inside, across = kernels(tuple(run.cues), 1.0, validating)
        train = [cross_val_predict(svm(C), K, y, cv=3, method="decision_function") for K in inside]
        test = [svm(C).fit(K, y).decision_function(k) for K, k in zip(inside, across, strict=True)]
        return LinearSVC(C=0.1).fit(np.hstack(train), y).predict(np.hstack(test))

    methods = [
        ("low", "batch", "SVM on the long vector", low),
        ("middle", "batch", "OBSCURE", middle),
        ("middle", "online", "OM-2", middle),
        ("high", "batch", "stacked SVMs", high),
    ]
    inner = run.labels[run.split.inner]
    held = run.labels[run.split.held]
    rows = []
    for level, learning, method, predict in methods:

        def score(point, predict=predict):
            return np.mean(predict(inner, True, **point) == held)

        best, _ = study.choose(grid_points(**LEVELS[method]), score)
        wrong = predict(run.labels, False, **best) != run.truth
        row = {"level": level, "learning": learning, "method": method}
        rows.append(row | {"test_error": mean_error(wrong, run.truth, run.n_classes), **best})
    return pd.DataFrame(rows)


def confused_pairs(confusions, task, images):
    """Of each cue the pair of categories that it confuses most often beyond the best other cue.

    With all rates of it (mean of both ways, over permutations), and its two images most alike in this cue.
    """
    cues = list(task.data.cues)
    rates = {}
    for name in (*cues, "OMCL-BM"):
        method = f"cue: {name}" if name in cues else name
        mean = np.mean([run[method] for run in confusions], axis=0)
        rates[name] = (mean + mean.T) / 2
    names = task.data.target_names
    rows = one_of_each(images)
    classes = task.data.y[rows]
    pairs = []
    for cue in cues:
        best = np.min([rates[other] for other in cues if other != cue], axis=0)
        beyond = np.where(np.tri(len(names), dtype=bool), -np.inf, rates[cue] - best)
        a, b = np.unravel_index(first_best(beyond), beyond.shape)
        left = rows[classes == a]
        right = rows[classes == b]
        both = task.data.X[np.concatenate([left, right]), task.data.cues[cue]]
        apart = Distances(both).matrix[: left.size, left.size :]
        i, j = np.unravel_index(apart.argmin(), apart.shape)
        row = {"cue": cue, "first": names[a], "second": names[b], "image": left[i], "other": right[j]}
        pairs.append(row | {name: rate[a, b] for name, rate in rates.items()})
    return pd.DataFrame(pairs)


def lowest_on_confused(weights, confusions, cues):
    """Share of cues and classes in whose weights the lowest is that of the class most confused with it.

    `weights` of one run, (n_classes, n_cues * n_classes), `confusions` as `permutation_run` gives them, from
    both ways of which the mean counts; of equally confused classes each is right, a class without any
    left out.
    """
    hits = []
    n_classes = len(weights)
    for cue, of_cue in zip(cues, np.split(weights, len(cues), axis=1), strict=True):
        rates = confusions[f"cue: {cue}"]
        rates = np.where(np.eye(n_classes, dtype=bool), 0.0, rates + rates.T)
        most = rates.max(axis=1)
        lowest = rates[np.arange(n_classes), of_cue.argmin(axis=1)]
        hits.append((lowest >= most - ROUNDING)[most > 0.0])
    return np.concatenate(hits).mean()


def one_of_each(images):
    """Rows of the first image of each object: an emoji's drawing itself."""
    objects = np.stack([images.y, images.frames["object"]])  # ETH-80 counts those of a category
    return np.sort(np.unique(objects, axis=1, return_index=True)[1])


def run_all(sweep, tasks, step, grids=GRIDS):
    """`permutation_run` at all permutations of some tasks: joined tables, lists of the rest."""
    runs = {}
    for task in tasks:
        points = [{"permutation": k, "step": step, "grids": grids} for k in task.splits]
        runs |= zip(task.splits, sweep.run(permutation_run, points, **handed(task)), strict=True)
    results = {name: [run[name] for run in runs.values()] for name in next(iter(runs.values()))}
    for name in ("curves", "finals", "hypotheses", "theorem"):
        numbered = [table.assign(permutation=k) for k, table in zip(runs, results[name], strict=True)]
        results[name] = pd.concat(numbered, ignore_index=True)
    chosen = pd.DataFrame(results["chosen"])
    return results | {"chosen": chosen.set_axis(pd.Index(list(runs), name="permutation")).reset_index()}


def edges(chosen, grids=GRIDS, by=()):
    """Which choices lie at the edge of their grid, and how often, as a text."""
    return study.edges(chosen, grids, NATURAL, by)


def shortened(split, n_train, n_test):
    """The first training samples of a split, and as many tests, evenly chosen."""
    tests = np.linspace(0, split.test.size - 1, min(n_test, split.test.size)).astype(int)
    inner = split.inner[split.inner < n_train]
    held = split.held[split.held < n_train]
    return split._replace(train=split.train[:n_train], test=split.test[tests], inner=inner, held=held)


def queries(seed):
    """Rule, value of its parameter, query; first the one that requests all labels."""
    yield "all", 1.0, None
    for rule, (query, name, grid) in QUERIES.items():
        draws = {} if rule == "threshold" else {"seed": seed}
        for value in grid:
            yield rule, value, query(**{name: value}, **draws)


def few_labels_run(permutation, task):
    """Share of labels requested and test error of both methods under all rules, on one permutation."""
    run = Permutation(task, task.splits[permutation])
    factors, _ = run.choose_widths(run.cues)
    inside, across = run.kernels(run.cues, factors)
    cues = [(cue, KernelPerceptron("precomputed"), j) for j, cue in enumerate(run.cues)]
    rows = []
    for rule, value, query in queries(permutation):
        for method, model in {"OM2": OM2("precomputed", n_epochs=1), "OMCL": OMCL(cues)}.items():
            model.set_params(query=query).fit(inside, run.labels)
            error = mean_error(model.predict(across) != run.truth, run.truth, run.n_classes)
            row = {"permutation": permutation, "method": method, "rule": rule, "value": value}
            rows.append(row | {"requested": model.n_queries_ / run.labels.size, "test_error": error})
    return pd.DataFrame(rows)
