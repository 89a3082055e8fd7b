r"""Experiments of the MMS chapter (thesis chapter 5; Jie and Orabona, NIPS 2010): sizes, methods, made-up
ambiguity (figure 5.3), and the propositions, measured.

*5.2*, :math:`E[\Delta_{01}] \le E[\Delta_A] / (1 - \eta)`, needs the degree eta given the *instance*, and a
classifier that has not seen the candidates. *5.3*, :math:`\ell_A \ge \Delta_A`, needs the exact search.
"""

import itertools
import math
from functools import lru_cache, partial

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from companion import study
from companion.protocol import fitted, grid_points, load_set, made_here, settings_of
from companion.study import CONFIDENCE, Study
from cuelearn.datasets import make_ambiguous
from cuelearn.mms import (
    CLSVM,
    M3MIML,
    MIMLSVM,
    MMS,
    CandidateSet,
    Matching,
    SupervisedSVM,
    best_labelings,
    most_violating,
)

#: Of every method: the thesis's range (5.5), and below it, as 0.1 is often the best of that.
C_RANGE = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
#: The thesis's names: at least 20 occurrences in protocol I, 3 in protocol II.
OCCURRENCES = {"I": 20, "II": 3}
#: Of figure 5.3. MNIST, Pendigits and satimage stand in for usps, news20, covtype; letter is the thesis's
#: own.
ARTIFICIAL = ("mnist", "letter", "pendigits", "satimage")
BAG_SIZE = 5
#: Parameters are validated there, in every draw anew, and then kept along its curves.
MIDDLE = {"n_candidates": 20, "p_correlated": 0.25, "p_ambiguous": 0.25}

#: For the notes of figures.
VALIDATED = "parameters of all methods chosen on held-back training bags, by their candidates"
RANDOM_BAGS = made_here("random bags", "companion.mms.random_bag")

WIDTHS = (0.25, 1.0, 4.0, 16.0)  # of the kernels of faces and poses
_HARD = ((0.0, 0.0), (0.5, 0.5))  # P_c, P_a
# smoke, quick, full; numbers of seeds are those of claims.csv
TABLE = {
    "grid": ((1.0, 100.0), C_RANGE[1:-2], C_RANGE),
    "effort": {"n_epochs": (5, 20, 100), "n_rounds": (3, 5, 6)},  # enough for a small gap at most C
    "artificial": {
        "names": (("letter", "pendigits"), ARTIFICIAL, ARTIFICIAL),
        "seeds": (2, 3, 12),
        # draws and sets, the first ones, with MMS as it comes and MIMLSVM's other rule, at L = 20
        "beside": (1, 1, 2),
        "beside_sets": (2, 1, 4),
        "n_bags": (40, 40, 120),
        "n_test": (300, 1000, 10_000),
        "L": ((5, 20), (5, 20, 100), (5, 20, 100)),
        "hardness": (_HARD, _HARD, ((0.0, 0.0), (0.25, 0.25), (0.5, 0.5))),
    },
    "rounds": {
        "names": (("letter",), ARTIFICIAL, ARTIFICIAL),
        "n_bags": (40, 50, 200),
        "L": (20, 50, 200),
        "n_epochs": (10, 50, 100),
        "seeds": (2, 3, 8),
        "beside": (2, 3, 3),  # of them by Pegasos, and with the exact search
    },
    "naming": {  # identities are fewer in the proportion of the items, so that names occur as often
        "n_items": (300, 450, 3000),
        "n_names": (30, 30, 32),
        "occurrences": ({"I": 4, "II": 2}, {"I": 12, "II": 3}, OCCURRENCES),
        "seeds": (2, 3, 10),
        "placed": (2, 3, 6),  # of them in protocol II
    },
    "poses": {
        "n_items": (150, 450, 1703),
        "n_test": (30, 120, 103),
        "n_names": (30, 30, 60),
        "seeds": (2, 3, 8),
        "widths": ((0.5,), WIDTHS[1:], WIDTHS),
        "C": ((10.0,), (10.0,), (1.0, 10.0, 100.0)),
    },
    "search": {
        "n_bags": (60, 300, 1000),
        "trained": {
            "names": (("letter",), ("letter", "satimage"), ARTIFICIAL),
            "n_bags": (15, 30, 100),
            # corpora of the thesis's size: with fewer items its two hundred names are too rare
            "n_items": (300, 1500, 20_071),
            "n_names": (214, 214, 214),
            "occurrences": (2, 3, OCCURRENCES["I"]),
            "seeds": (2, 3, 6),
            "beside": (1, 1, 3),  # of them of bags made ambiguous, which decide nothing
        },
    },
    "inference": {
        "names": (("letter",), ("letter", "satimage"), ARTIFICIAL),
        "n_bags": (15, 30, 100),
        "n_items": (40, 100, 300),
        "seeds": (2, 3, 8),
    },
    "annotators": {  # votes and links
        "names": (("mfeat",), ("mfeat", "emoji"), ("mfeat", "emoji")),
        "n_items": (60, 100, 240),
        "n_test": (200, 500, 500),
        "n_annotators": ((3, 5), (3, 7), (3, 5, 7)),
        "C": ((1.0, 100.0), C_RANGE[1:-2], C_RANGE[1:-1]),
        "seeds": (2, 3, 48),
    },
    "bound": {"n_bags": (40, 60, 300), "names": (("pendigits",), ARTIFICIAL, ARTIFICIAL), "seeds": (1, 2, 3)},
}
#: Sizes for a profile, "smoke", "quick" or "full".
settings = partial(settings_of, TABLE)


# --- methods ------------------------------------------------------------------------------------------------

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


# --- made-up ambiguity --------------------------------------------------------------------------------------

BESIDE = (DEFAULTS, FARTHEST)
HARD = ["n_candidates", "p_correlated", "p_ambiguous"]  # what makes a set of bags hard


def features(name, data, rows):
    """Features of some samples between -1 and 1 by their range in the training part; MNIST's grey values,
    averaged to 14 x 14 pixels (near the 16 x 16 of usps), from 0 to 1."""
    X, train = data.X, data.train
    if name == "mnist":
        images = np.empty((len(rows), 784), dtype=np.float32)
        images[:, data.pixels] = X[rows]
        small = images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196)
        return small / np.float32(255.0 if X.max() > 1.0 else 1.0)
    if name == "pendigits":  # the pen's 16 coordinates; bundled beside them are bitmaps redrawn from these
        X = X[:, data.cues["dynamic"]]
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    return (2.0 * (X[rows] - low) / np.where(high > low, high - low, 1.0) - 1.0).astype(np.float32)


@lru_cache
def samples(name):
    """A data set with its `features`."""
    data = load_set(name)
    parts = np.array_split(np.arange(len(data.y)), 20)
    return data._replace(X=np.concatenate([features(name, data, part) for part in parts]))


def bags_of(name, seed, n_bags, n_test, n_candidates, p_correlated, p_ambiguous):
    """Training bags (AmbiguousData) of a data set, and test samples X and y; `n_candidates` is L."""
    data = samples(name)
    rows = np.random.default_rng([seed, 50]).permutation(data.train)[: n_bags * BAG_SIZE]
    made = dict(zip(HARD, (n_candidates, p_correlated, p_ambiguous), strict=True)) | {"bag_size": BAG_SIZE}
    rng = np.random.default_rng([seed, 52])
    bags = make_ambiguous(data.X[rows], data.y[rows], random_state=rng, **made)
    test = np.random.default_rng([seed, 57]).permutation(data.test)[:n_test]
    return bags, data.X[test], data.y[test]


def validated(name, method, seed, n_bags, grid, effort):
    """Parameters of a method, as of `choose`, chosen at middle difficulty of the same draw."""
    bags, _, _ = bags_of(name, seed, n_bags, 1, **MIDDLE)
    return choose(method, bags.X, bags.candidates, bags.labels(), grid, seed, effort)


def accuracies(seed, chosen, effort, **made):
    """Test accuracy, and share of training instances that are right within their candidates, by method."""
    bags, X_test, y_test = bags_of(seed=seed, **made)
    train = bags.X, bags.candidates, bags.labels()
    new = X_test, pd.Index(bags.candidates.classes[0]).get_indexer(y_test)
    trained = [shares_right(plain(method), own, seed, effort, train, new) for method, own in chosen.items()]
    shares = pd.DataFrame(trained)
    assignment = shares["assignment"].fillna(1.0)
    return pd.DataFrame({"method": list(chosen), "accuracy": shares["recognition"], "assignment": assignment})


def curves(sweep, names, seeds, size, grid, effort):
    """All points of figure 5.3; `BESIDE` in the first draws of the first sets, at the middle L alone."""
    methods = [*METHODS, FARTHEST]
    draws = grid_points(name=names, seed=seeds)
    first = grid_points(name=names[: size["beside_sets"]], seed=seeds[: size["beside"]])
    places = [dict(zip(HARD, (L, *hard), strict=True)) for L in size["L"] for hard in size["hardness"]]
    points = []
    for draw, place in itertools.product(draws, places):
        # what is given the truth depends on the samples only, so it is trained once
        left_out = () if place is places[0] else SUPERVISED
        if draw not in first or place["n_candidates"] != MIDDLE["n_candidates"]:
            left_out = (*left_out, *BESIDE)
        here = [m for m in methods if m not in left_out]
        points.append(({**draw, "n_bags": size["n_bags"], "n_test": size["n_test"], **place}, here))
    how = {
        "by": ("name", "seed"),
        "choosing": {"n_bags": size["n_bags"], "grid": list(grid), "effort": effort},
        "comparing": {"effort": effort},
        "columns": ("C", "class_weight", "instances"),
        "plain": lambda method: "MMS" if method == DEFAULTS else method,
        "data": [load_set(n) for n in names],
    }
    frame = Study(sweep, "curves", accuracies, validated, **how).table(points)
    given = frame["method"].isin(SUPERVISED)
    truth = frame[given].drop(columns=HARD).merge(pd.DataFrame(places), how="cross")
    return pd.concat([frame[~given], truth], ignore_index=True)[frame.columns]


def by_round(seed, n_epochs, solver, C=1.0, inference="algorithm-10", n_rounds=50, **made):
    """`MMS.history_` and test accuracy after every round; `ended`: before `n_rounds`, other than by
    rising."""
    bags, X_test, y_test = bags_of(seed=seed, **made)
    accuracy = []

    def note(model, step):
        accuracy.append(np.mean(model.predict(X_test) == y_test))

    options = {"C": C, "solver": solver, "inference": inference, "random_state": seed, "callback": note}
    model = fitted(MMS(n_rounds=n_rounds, n_epochs=n_epochs, **options), bags.X, bags.candidates)
    rounds = model.history_["objective"]
    ended = len(rounds) < n_rounds and rounds.iloc[-2:].min() <= rounds.min()
    return model.history_.rename(columns={"step": "round"}).assign(accuracy=accuracy, ended=ended)


def with_each_search(seed, effort, C=1.0, **made):
    """`each_search` on the same bags, `made` by `bags_of`."""
    bags, X_test, y_test = bags_of(seed=seed, **made)
    new = X_test, pd.Index(bags.candidates.classes[0]).get_indexer(y_test)
    return each_search(bags.X, bags.candidates, new, C, seed, effort)


@lru_cache
def one_draw(seed, L, p_correlated, p_ambiguous, n_bags):
    """Test accuracy by method on bags of Pendigits, and how often labels come along with each other."""
    bags, X, y = bags_of("pendigits", seed, n_bags, 500, L, p_correlated, p_ambiguous)
    mms = MMS(tol=0.2, n_rounds=3, n_epochs=10, inference="algorithm-10", random_state=0)
    clsvm = CLSVM(C=0.01, class_weight="balanced")
    models = {
        "MMS": fitted(mms, bags.X, bags.candidates),
        "CLSVM": fitted(clsvm, bags.X, bags.candidates),
        "MC-SVM": fitted(SupervisedSVM(), bags.X, bags.y),
    }
    return {name: np.mean(model.predict(X) == y) for name, model in models.items()}, bags.co_occurrence()


def two_draws(pair, **made):
    """Of `one_draw`: accuracies of a pair of draws, and the mean of what comes along with what."""
    (first, together), (second, as_well) = (one_draw(2 * pair + k, **made) for k in range(2))
    return pd.DataFrame([first, second]), (together + as_well) / 2


@lru_cache
def histories(C, n_epochs=20):
    """`by_round` with either solver, on 40 bags of Pendigits with 20 wrong vectors each."""
    made = {"n_candidates": 20, "p_correlated": 0.25, "p_ambiguous": 0.25, "n_bags": 40, "n_test": 500}
    solvers = ("frank-wolfe", "pegasos")
    return {s: by_round(0, n_epochs, s, C, n_rounds=10, name="pendigits", **made) for s in solvers}


# --- propositions -------------------------------------------------------------------------------------------

CLASSIFIERS = ("MMS", "MC-SVM", "constant", "random", "adversary", "memoriser")
SCALES = (0.1, 1.0, 10.0)  # of hyperplanes
MADE = {"p_correlated": 0.25, "p_ambiguous": 0.25, "n_candidates": 10, "bag_size": 5}
#: Differences of sums of scores that count as none, times 1 + their size.
NEAR = 1e-9


def instances(task, n_train, n_fresh, seed):
    """X_train, y_train, X_fresh, y_fresh: `samples` of the two official parts."""
    data = samples(task)
    rng = np.random.default_rng([seed, 21])
    train = rng.permutation(data.train)[:n_train]
    fresh = rng.permutation(data.test)[:n_fresh]
    return data.X[train], data.y[train], data.X[fresh], data.y[fresh]


def predictions(name, train, fresh, shares, seed, mms):
    """What a classifier says of the training instances and of the fresh ones; "adversary" answers the label
    that co-occurs most with the true one, "memoriser" is a nearest neighbour with a random candidate."""
    rng = np.random.default_rng([seed, 22])
    sets = train.candidates
    classes = sets.classes[0]
    parts = (train, fresh)
    if name == "constant":
        values, sizes = np.unique(train.y, return_counts=True)
        return [np.full(part.y.size, values[np.argmax(sizes)]) for part in parts]
    if name == "random":
        return [rng.choice(classes, size=part.y.size) for part in parts]
    if name == "adversary":
        hardest = np.where(np.eye(classes.size, dtype=bool), -1.0, shares).argmax(axis=1)
        return [classes[hardest[part.labels()]] for part in parts]
    if name == "MMS":
        model = fitted(MMS(random_state=seed, **mms), train.X, sets)
    elif name == "MC-SVM":
        model = fitted(LinearSVC(multi_class="crammer_singer", random_state=seed), train.X, train.y)
    else:
        model = KNeighborsClassifier(1).fit(train.X, sets.named(sets.draw(rng)))
    return [model.predict(part.X) for part in parts]


def losses_of(predicted, data):
    """Of every bag the numbers of wrong labels (true) and of labels that are no candidate for their instance
    (slots), and the ambiguous loss (joint): slots <= joint <= true."""
    sets = data.candidates
    answer = np.searchsorted(sets.classes[0], predicted)
    starts = sets.bag_starts[:-1]
    true = np.add.reduceat((answer != data.labels()).astype(int), starts)
    slots = np.add.reduceat(_outside(answer, sets).astype(int), starts)
    return pd.DataFrame({"true": true, "slots": slots, "joint": ambiguous_losses(answer, sets)})


def _outside(answer, sets):
    """Whether labels are no candidate for their instance."""
    return ~sets.mask()[np.arange(answer.size), answer]


def shares_of(y, seed, n_instances=20_000, **made):
    """How often labels co-occur with classes (`AmbiguousData.co_occurrence`), from many bags like `y`."""
    many = np.tile(y, max(1, round(n_instances / len(y))))
    return make_ambiguous(np.empty((many.size, 1)), many, random_state=seed, **made).co_occurrence()


def _over(top, bottom):
    """top / bottom; 0 where both are 0, infinite where only `bottom` is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(top) > 0.0, np.divide(top, bottom), 0.0)


def bound_of(predicted, data, shares, n_bootstrap=500, seed=0):
    """The two sides of proposition 5.2 for predicted classes of the rows of `data`, means over bags.

    bound is joint / (1 - eta); slots_bound and label_bound (remark 5.2) are tighter. Ratios are true over
    each, with intervals from bags drawn anew. expected_slots is what slots are if candidates were not seen.
    """
    labels = data.labels()
    shares = shares.to_numpy()
    degrees = np.where(np.eye(len(shares), dtype=bool), 0.0, shares).max(axis=1)
    eta = degrees.max()
    answer = np.searchsorted(data.candidates.classes[0], predicted)
    missed = (answer != labels) * (1.0 - shares[labels, answer])
    of_label = _over(_outside(answer, data.candidates), 1.0 - degrees[labels])
    starts = data.candidates.bag_starts[:-1]
    losses = losses_of(predicted, data)
    bags = losses.assign(
        expected_slots=np.add.reduceat(missed, starts),
        bound=_over(losses["joint"], 1.0 - eta),
        slots_bound=_over(losses["slots"], 1.0 - eta),
        label_bound=np.add.reduceat(of_label, starts),
    )
    result = {**bags.mean(), "eta": eta, "eta_least": degrees.min()}
    N = len(bags)
    drawn = np.random.default_rng([seed, 23]).multinomial(N, np.full(N, 1.0 / N), size=n_bootstrap) / N
    tails = (0.5 * (1.0 - CONFIDENCE), 0.5 * (1.0 + CONFIDENCE))
    for name in ("", "slots_", "label_"):
        bound = bags[f"{name}bound"]
        result[f"{name}ratio"] = float(_over(result["true"], result[f"{name}bound"]))
        # no interpolation, which infinite ratios would not survive
        ratios = _over(drawn @ bags["true"], drawn @ bound if np.isfinite(bound).all() else np.inf)
        low, high = np.quantile(ratios, tails, method="inverted_cdf")
        result |= {f"{name}ratio_low": low, f"{name}ratio_high": high}
    out_of_order = (losses["slots"] > losses["joint"]) | (losses["joint"] > losses["true"])
    return {**result, "out_of_order": int(out_of_order.sum()), "n_bags": N}


def proposition_5_2(task, n_train, n_fresh, seed, n_bootstrap=500, mms=None, **made):
    """`bound_of` by classifier, on the training bags and on fresh ones, of which the proposition speaks."""
    made = {**MADE, **made}
    X_train, y_train, X_fresh, y_fresh = instances(task, n_train, n_fresh, seed)
    # pairs have a stream of their own: one seed, one set of pairs
    train = make_ambiguous(X_train, y_train, random_state=seed, **made)
    fresh = make_ambiguous(X_fresh, y_fresh, random_state=seed, **made)
    shares = shares_of(fresh.y, seed, **made)
    rows = []
    for name in CLASSIFIERS:
        both = predictions(name, train, fresh, shares, seed, dict(mms or {}))
        for part, data, predicted in zip(("training", "fresh"), (train, fresh), both, strict=True):
            bounds = bound_of(predicted, data, shares, n_bootstrap, seed)
            rows.append({"classifier": name, "part": part, **bounds})
    return pd.DataFrame(rows)


def surrogates(scores, candidates):
    """Both sides of proposition 5.3 in every bag: joint and slots, the ambiguous losses of the prediction;
    exact and heap, the surrogate loss by either search; near, what rounding may do."""
    scores = np.asarray(scores, dtype=np.float64)
    answer = scores.argmax(axis=1)
    own = scores[np.arange(len(scores)), best_labelings(scores, candidates)[:, 0]]
    outside = _outside(answer, candidates)
    rows = []
    for i, joint in enumerate(ambiguous_losses(answer, candidates)):
        part = slice(*candidates.bag_starts[i : i + 2])
        row = {"joint": joint, "slots": int(outside[part].sum())}
        n_labelings = candidates.n_labels[0] ** int(candidates.bag_sizes[i])
        for label, method in SEARCHES.items():
            row[label] = 0.0
            if candidates.n_candidates[i] < n_labelings:
                _, value = most_violating(scores[part], candidates, i, method=method)
                row[label] = max(0.0, value - own[part].sum())
        rows.append(row | {"near": NEAR * (1.0 + float(np.abs(scores[part]).max()))})
    return pd.DataFrame(rows)


def proposition_5_3(task, n_train, seed, n_bags=1000, mms=None, **made):
    """Proposition 5.3 for hyperplanes that are zero, random or trained: in how many bags the surrogate loss
    is below the ambiguous loss (exact search, Algorithm 10) and below the slots' losses."""
    X, y, _, _ = instances(task, n_train, 1, seed)
    data = make_ambiguous(X, y, random_state=seed, **{**MADE, **made})
    part = np.arange(min(n_bags, data.candidates.n_bags))
    sets = data.candidates.take(part)
    X = np.asarray(data.X)[data.candidates.rows(part)]
    shape = (2, X.shape[1], sets.n_labels[0])
    random = X @ np.random.default_rng([seed, 24]).normal(size=shape)[1]
    model = fitted(MMS(random_state=seed, **dict(mms or {})), data.X, data.candidates)
    scores = {"zero": np.zeros_like(random), "random": random, "trained": model.decision_function(X)}
    rows = []
    for kind, scale in (("zero", 1.0), *itertools.product(("random", "trained"), SCALES)):
        losses = surrogates(scale * np.asarray(scores[kind], dtype=np.float64), sets)
        row = {"weights": kind, "scale": scale, "n_bags": len(losses)}
        for name, lower in (("exact", "joint"), ("heap", "joint"), ("slots", "slots")):
            upper = losses["heap" if name == "slots" else name]
            row[f"below_{name}"] = int((upper - losses[lower] < -losses["near"]).sum())
        rows.append(row)
    return pd.DataFrame(rows)


def random_bag(rng, kind, n_instances, n_labels, n_candidates):
    """A bag's candidates at random, (n, n_instances): distinct vectors of independent labels, or matchings of
    faces with `n_labels` - 1 names."""
    if kind == "names":
        words = np.arange(1, n_labels)[:, None]
        faces = [Matching(words, np.ones((n_instances, n_labels), dtype=bool))]
        vectors = np.stack(list(CandidateSet(faces, n_labels=n_labels, null=0).iterate(0)))[:, :, 0]
    elif n_labels**n_instances <= 4 * n_candidates:
        vectors = np.array(list(itertools.product(range(n_labels), repeat=n_instances)))
    else:
        vectors = np.unique(rng.integers(n_labels, size=(2 * n_candidates, n_instances)), axis=0)
    return rng.permutation(vectors)[:n_candidates]


def search_shares(
    n_bags=1000, kind="vectors", n_instances=3, n_labels=6, n_candidates=10, n_known=None, lead=0.0, seed=0
):
    """How often, and by how much, Algorithm 10 misses the most violating labeling in bags of `random_bag`,
    whose candidates have `n_known` labels; `lead` is added to the normal scores of one candidate's labels."""
    rng = np.random.default_rng([seed, 25])
    n_known = n_known or n_labels
    instances = np.arange(n_instances)
    rows = []
    for _ in range(n_bags):
        vectors = random_bag(rng, kind, n_instances, n_known, n_candidates)
        if n_known < n_labels:
            # null stays null
            vectors = np.append(0, 1 + rng.permutation(n_labels - 1)[: n_known - 1])[vectors]
        sets = CandidateSet([vectors], n_labels=n_labels)
        scores = rng.normal(size=(n_instances, n_labels))
        scores[instances, vectors[0]] += lead
        if len(vectors) < n_labels**n_instances:
            _, heap = most_violating(scores, sets, method="algorithm-10")
            _, exact = most_violating(scores, sets, method="exact")
            best = scores[instances, best_labelings(scores, sets)[:, 0]].sum()
            rows.append((exact, heap, best, NEAR * (1.0 + np.abs(scores).sum())))
    exact, heap, best, near = np.transpose(rows)
    shortfalls = np.where(exact - heap > near, exact - heap, 0.0)
    losses = np.maximum(0.0, np.column_stack([exact, heap]) - best[:, None])
    of_exact, of_heap = losses.sum(axis=0)
    return {
        "n_bags": len(rows),
        "same": float(1.0 - (shortfalls > 0.0).mean()),
        "largest": float(shortfalls.max()),
        "mean": float(shortfalls.mean()),
        "lost": float(1.0 - of_heap / of_exact) if of_exact > 0.0 else 0.0,
        "above": int((heap > exact + near).sum()),
    }


def counts(most=6):
    """Number of candidate vectors for faces and names: printed (section 5.6.1), corrected, and listed."""
    rows = []
    for f, w in itertools.product(range(1, most + 1), repeat=2):
        terms = [math.comb(f, j) * math.comb(w, j) for j in range(min(f, w) + 1)]
        corrected = sum(t * math.factorial(j) for j, t in enumerate(terms) if j)
        pairs = Matching(np.arange(1, w + 1)[:, None], np.ones((f, w + 1), dtype=bool))
        listed = sum(1 for _ in CandidateSet([pairs], null=0).iterate(0))
        rows.append((f, w, sum(terms), corrected, listed))
    return pd.DataFrame(rows, columns=["faces", "names", "printed", "corrected", "listed"])
