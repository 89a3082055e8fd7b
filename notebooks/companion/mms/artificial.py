"""Figure 5.3: bags of known samples with made-up ambiguity (section 5.5)."""

import itertools
from functools import lru_cache

import numpy as np
import pandas as pd

from companion.mms.methods import (
    DEFAULTS,
    FARTHEST,
    METHODS,
    SUPERVISED,
    choose,
    each_search,
    plain,
    shares_right,
)
from companion.mms.settings import BAG_SIZE, MIDDLE
from companion.protocol import fitted, grid_points, load_set
from companion.study import Study
from cuelearn.datasets import make_ambiguous
from cuelearn.mms import CLSVM, MMS, SupervisedSVM

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
def one_draw(seed, L, p_correlated, p_ambiguous):
    """Test accuracy by method on 30 bags of Pendigits, and how often labels come along with each other."""
    bags, X, y = bags_of("pendigits", seed, 30, 500, L, p_correlated, p_ambiguous)
    mms = MMS(tol=0.2, n_rounds=3, n_epochs=10, inference="algorithm-10", random_state=0)
    clsvm = CLSVM(C=0.01, class_weight="balanced")
    models = {
        "MMS": fitted(mms, bags.X, bags.candidates),
        "CLSVM": fitted(clsvm, bags.X, bags.candidates),
        "MC-SVM": fitted(SupervisedSVM(), bags.X, bags.y),
    }
    return {name: np.mean(model.predict(X) == y) for name, model in models.items()}, bags.co_occurrence()


def two_draws(**ambiguity):
    """Of `one_draw`: accuracies of two draws, and the mean of what comes along with what."""
    (first, together), (second, as_well) = (one_draw(seed, **ambiguity) for seed in range(2))
    return pd.DataFrame([first, second]), (together + as_well) / 2


@lru_cache
def histories(C, n_epochs=20):
    """`by_round` with either solver, on 40 bags of Pendigits with 20 wrong vectors each."""
    made = {"n_candidates": 20, "p_correlated": 0.25, "p_ambiguous": 0.25, "n_bags": 40, "n_test": 500}
    solvers = ("frank-wolfe", "pegasos")
    return {s: by_round(0, n_epochs, s, C, n_rounds=10, name="pendigits", **made) for s in solvers}
