"""The methods of the chapter's comparisons, and how their C is chosen: for all in the same way."""

import numpy as np
import pandas as pd

from companion import study
from companion.protocol import fitted, grid_points
from cuelearn.mms import (
    CLSVM,
    M3MIML,
    MIMLSVM,
    MMS,
    CandidateSet,
    SupervisedSVM,
    best_labelings,
    most_violating,
)

#: Share of the training bags that is held back to choose C.
VALIDATION = 1 / 3
#: Draws of RANDOM.
DRAWS = 20


# Dual steps, which at large C come much closer to the optimum than Pegasos in the same time; Algorithm 10
DUAL = {"solver": "frank-wolfe", "tol": 0.05, "inference": "algorithm-10"}
#: Searches by their labels in the tables.
SEARCHES = {"heap": "algorithm-10", "exact": "exact"}


def make_mms(C, seed, n_epochs=20, n_rounds=6):
    """`MMS` as the experiments use it."""
    return MMS(C=C, n_epochs=n_epochs, n_rounds=n_rounds, random_state=seed, **DUAL)


#: Learn from candidate sets: a function of C, the class weights and a seed.
WEAK = {
    "MMS": lambda C, weight, seed, effort: make_mms(C, seed, **effort),
    "CLSVM": lambda C, weight, seed, effort: CLSVM(C=C, class_weight=weight),
    "MIMLSVM": lambda C, weight, seed, effort: MIMLSVM(C=C, class_weight=weight, random_state=seed),
    "M3MIML": lambda C, weight, seed, effort: M3MIML(C=C, class_weight=weight),
}
#: Are given the labels of all instances.
SUPERVISED = {
    "MC-SVM": lambda C, weight, seed, effort: SupervisedSVM(C=C, random_state=seed),
    "1vA-SVM": lambda C, weight, seed, effort: SupervisedSVM(C=C, multi_class="ovr", random_state=seed),
}
#: `MMS` as it comes, beside `make_mms` and with its C.
DEFAULTS = "MMS defaults"
METHODS = {**WEAK, **SUPERVISED, DEFAULTS: lambda C, weight, seed, effort: MMS(C=C, random_state=seed)}
#: The distance of a single instance to a medoid is left to held-back bags, like C, or as the authors' program
#: has it for a bag of one.
FARTHEST = "MIMLSVM farthest"
RULES = {"MIMLSVM": ("nearest", "farthest"), FARTHEST: ("farthest",)}
#: One label against all others: without weights "none" is often the best answer for every label, so these may
#: weigh the two sides equally.
BALANCED = ("CLSVM", "MIMLSVM", "M3MIML")


def plain(name):
    """A method's name without the part that says how it is trained or tested."""
    return name if name in METHODS else name.split()[0]


def make(name, chosen, seed, effort):
    """A method with the parameters that `choose` gave."""
    model = METHODS[name](chosen["C"], chosen["class_weight"] or None, seed, effort)
    rule = chosen.get("instances")
    return model.set_params(instances=rule) if rule else model


def truth_set(y, candidates):
    """The candidate set of someone who knows the labels: one vector per bag."""
    return CandidateSet.from_labels(y, candidates.bag_sizes, classes=candidates.classes, null=candidates.null)


def predicted(model, X):
    """Label numbers of instances, each by itself."""
    return np.argmax(model.decision_function(X), axis=1)


def assigned(model, X, candidates):
    """Label numbers of the best candidates: the assignment within captions."""
    return best_labelings(model.decision_function(X), candidates)[:, 0]


def shares_right(name, chosen, seed, effort, train, new):
    """A trained method's shares of right labels: assignment (NaN where it is given the truth) of training
    instances `train` (X, candidates, labels), recognition of `new` ones (X, labels)."""
    X, candidates, labels = train
    given = truth_set(labels, candidates) if name in SUPERVISED else candidates
    model = fitted(make(name, chosen, seed, effort), X, given)
    right = np.nan if name in SUPERVISED else float(np.mean(assigned(model, X, candidates) == labels))
    return {"assignment": right, "recognition": float(np.mean(predicted(model, new[0]) == new[1]))}


def each_search(X, candidates, new, C, seed, effort, step=1):
    """`MMS` with either search, tested on `new` X and label numbers; same: share of every `step`-th bag where
    both find the same value at the trained scores."""
    rows = []
    for label, inference in SEARCHES.items():
        model = fitted(make_mms(C, seed, **effort).set_params(inference=inference), X, candidates)
        scores = model.decision_function(X)
        same = []
        for i in range(0, candidates.n_bags, step):
            bag = scores[slice(*candidates.bag_starts[i : i + 2])]
            _, heap = most_violating(bag, candidates, i, "algorithm-10")
            _, exact = most_violating(bag, candidates, i, "exact")
            same.append(abs(heap - exact) <= 1e-9 * (1.0 + abs(exact)))
        accuracy = float(np.mean(predicted(model, new[0]) == new[1]))
        shares = {"accuracy": accuracy, "same": float(np.mean(same)), "compared": len(same)}
        rows.append({"inference": label, **shares})
    return pd.DataFrame(rows)


def random_share(candidates, labels, rngs):
    """Share of right labels when every bag draws a candidate: mean over draws by generators or seeds."""
    return float(np.mean([np.mean(candidates.draw(rng)[:, 0] == labels) for rng in rngs]))


def ambiguous_losses(labels, candidates):
    """The ambiguous loss of every bag, from labels of all instances."""
    starts = candidates.bag_starts
    return [candidates.loss(i, labels[starts[i] : starts[i + 1]]) for i in range(candidates.n_bags)]


def share_consistent(labels, candidates):
    """One minus the ambiguous loss per slot: what can be known of an accuracy without the truth."""
    labels = labels.reshape(candidates.n_instances, -1)
    return 1.0 - sum(ambiguous_losses(labels, candidates)) / labels.size


def best_on_held(tried, fit, predict, candidates, order):
    """Of the parameters `tried`, those whose predictions of held-back bags, the first third of `order`, agree
    best with the candidates."""
    held, train = (np.sort(part) for part in np.split(order, [max(1, int(VALIDATION * order.size))]))
    rows, rows_held = candidates.rows(train), candidates.rows(held)
    inner, outer = candidates.take(train), candidates.take(held)

    def score(chosen):
        return share_consistent(predict(fit(chosen, rows, inner), rows_held), outer)

    return study.choose(tried, score)[0]


def choose(name, X, candidates, labels, grid, seed, effort):
    """C, class_weight and rule of `RULES` with which a method agrees best with held-back bags."""
    candidates = truth_set(labels, candidates) if name in SUPERVISED else candidates
    weights = ("", "balanced") if plain(name) in BALANCED else ("",)
    rules = RULES.get(name, ("",))
    name = plain(name)
    return best_on_held(
        grid_points(C=map(float, grid), class_weight=weights, instances=rules),
        lambda chosen, rows, sets: fitted(make(name, chosen, seed, effort), X[rows], sets),
        lambda model, rows: predicted(model, X[rows]),
        candidates,
        np.random.default_rng([seed, 51]).permutation(candidates.n_bags),
    )
