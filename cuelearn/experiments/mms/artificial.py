"""Figure 5.3: bags of known samples with made-up ambiguity (section 5.5), and what the propositions say of them."""

import time
from functools import lru_cache

import numpy as np
import pandas as pd

from cuelearn import datasets
from cuelearn.datasets import make_ambiguous
from cuelearn.experiments.mms.methods import (
    METHODS,
    SUPERVISED,
    assigned,
    choose,
    fitted,
    make,
    make_mms,
    predicted,
    truth_set,
)
from cuelearn.experiments.mms.settings import BAG_SIZE, MIDDLE
from cuelearn.mms import MMS

LOADERS = {
    "mnist": datasets.load_mnist,
    "letter": datasets.load_letter,
    "pendigits": datasets.load_pendigits,
    "satimage": datasets.load_satimage,
}


@lru_cache(maxsize=1)
def load_set(name):
    """Data set of figure 5.3 by its name; "usps" is the thesis's own (tier original)."""
    return datasets.load_original("usps") if name == "usps" else LOADERS[name]()


def features(name, data, rows):
    """Features of some samples between -1 and 1 by their range in the training part, as on the thesis's source; grey values 0 to 1.

    MNIST's 28 x 28 pixels are averaged to 14 x 14, which is near the 16 x 16 of usps.

    Returns
    -------
    ndarray of float32
    """
    X, train = data.X, data.train
    if name == "mnist":
        images = np.empty((len(rows), 784), dtype=np.float32)
        images[:, data.pixels] = X[rows]
        return images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196) / np.float32(
            255.0 if X.max() > 1.0 else 1.0
        )
    if name == "pendigits":  # the pen's 16 coordinates; bundled beside them are bitmaps redrawn from these
        X = X[:, data.cues["dynamic"]]
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    return (2.0 * (X[rows] - low) / np.where(high > low, high - low, 1.0) - 1.0).astype(np.float32)


def bags_of(name, seed, n_bags, n_test, n_candidates, p_correlated, p_ambiguous):
    """Training bags of a data set, and test samples.

    Parameters
    ----------
    name : str
    seed : int
        Of the training samples, the pairs of classes, the bags and their candidates.
    n_bags, n_test : int
    n_candidates : int
        L.
    p_correlated, p_ambiguous : float

    Returns
    -------
    bags : AmbiguousData
    X_test, y_test : ndarrays
    """
    data = load_set(name)
    rows = np.random.default_rng([seed, 50]).permutation(data.train)[: n_bags * BAG_SIZE]
    bags = make_ambiguous(
        features(name, data, rows),
        data.y[rows],
        bag_size=BAG_SIZE,
        n_candidates=n_candidates,
        p_correlated=p_correlated,
        p_ambiguous=p_ambiguous,
        random_state=np.random.default_rng([seed, 52]),
    )
    test = np.random.default_rng([seed, 57]).permutation(data.test)[:n_test]
    return bags, features(name, data, test), data.y[test]


def validated(name, method, seed, n_bags, grid, effort):
    """Parameters of a method, chosen at middle difficulty.

    Returns
    -------
    dict
        C, class_weight.
    """
    bags, _, _ = bags_of(name, seed, n_bags, 1, **MIDDLE)
    sets = truth_set(bags.labels(), bags.candidates) if method in SUPERVISED else bags.candidates
    return choose(method, bags.X, sets, grid, seed, effort)


def accuracies(name, seed, n_bags, n_test, n_candidates, p_correlated, p_ambiguous, chosen, effort):
    """Test accuracy of methods trained on the same bags.

    Parameters
    ----------
    chosen : dict
        Of `validated`, by method.

    Returns
    -------
    DataFrame
        Columns method, accuracy, assignment (share of the training instances whose label within the candidates is right; 1 where the
        truth is given).
    """
    bags, X_test, y_test = bags_of(name, seed, n_bags, n_test, n_candidates, p_correlated, p_ambiguous)
    labels, rows = bags.labels(), []
    for method, parameters in chosen.items():
        given = method in SUPERVISED
        model = fitted(
            make(method, parameters, seed, effort),
            bags.X,
            truth_set(labels, bags.candidates) if given else bags.candidates,
        )
        found = 1.0 if given else float(np.mean(assigned(model, bags.X, bags.candidates) == labels))
        right = bags.candidates.classes[0][predicted(model, X_test)] == y_test
        rows.append({"method": method, "accuracy": float(np.mean(right)), "assignment": found})
    return pd.DataFrame(rows)


def curves(sweep, names, seeds, o, grid, effort, methods=tuple(METHODS)):
    """All points of figure 5.3.

    Parameters
    ----------
    sweep : callable(name) -> Sweep
    names : sequence of str
    seeds : sequence of int
    o : dict
        `artificial` of `settings`.
    grid : sequence of float
    effort : dict
    methods : sequence of str

    Returns
    -------
    DataFrame
        Columns name, seed, n_candidates, p_correlated, p_ambiguous, method, accuracy, assignment, C, class_weight.
    """
    data = [load_set(n) for n in names]
    points = [
        {
            "name": n,
            "method": m,
            "seed": seeds[0],
            "n_bags": o["n_bags"],
            "grid": list(grid),
            "effort": effort,
        }
        for n in names
        for m in methods
    ]
    found = sweep("validated").run(validated, points, data=data)
    chosen = {(p["name"], p["method"]): r for p, r in zip(points, found, strict=True)}
    weak = [m for m in methods if m not in SUPERVISED]
    points = []
    for n in names:
        for seed in seeds:
            for L in o["L"]:
                for hard in o["hardness"]:
                    # what is given the truth depends on the samples only, so it is trained once
                    some = methods if (L, hard) == (o["L"][0], o["hardness"][0]) else weak
                    points.append(
                        {
                            "name": n,
                            "seed": seed,
                            "n_bags": o["n_bags"],
                            "n_test": o["n_test"],
                            "n_candidates": L,
                            "p_correlated": hard[0],
                            "p_ambiguous": hard[1],
                            "chosen": {m: chosen[n, m] for m in some},
                            "effort": effort,
                        }
                    )
    frame = sweep("curves").frame(accuracies, points, data=data).drop(columns=["chosen", "effort"])
    for column in ("C", "class_weight"):
        frame[column] = [chosen[n, m][column] for n, m in zip(frame["name"], frame["method"], strict=True)]
    given = frame["method"].isin(SUPERVISED)
    where = ["n_candidates", "p_correlated", "p_ambiguous"]
    truth = frame[given].drop(columns=where)
    places = pd.DataFrame([(L, *hard) for L in o["L"] for hard in o["hardness"]], columns=where)
    return pd.concat([frame[~given], truth.merge(places, how="cross")], ignore_index=True)[frame.columns]


def by_round(
    name,
    seed,
    n_bags,
    n_test,
    n_candidates,
    p_correlated,
    p_ambiguous,
    n_epochs,
    solver,
    C=1.0,
    inference="heap",
):
    """Objective and test accuracy after every round of the concave-convex procedure.

    Returns
    -------
    DataFrame
        Columns of `MMSResult.history`, and accuracy.
    """
    bags, X_test, y_test = bags_of(name, seed, n_bags, n_test, n_candidates, p_correlated, p_ambiguous)
    seen = []
    model = MMS(
        C=C,
        n_rounds=10,
        n_epochs=n_epochs,
        solver=solver,
        gap_tol=1e-2,
        inference=inference,
        random_state=seed,
        callback=lambda m, r: seen.append(np.mean(m.predict(X_test) == y_test)) or False,
    )
    fitted(model, bags.X, bags.candidates)
    return model.history_.assign(accuracy=seen)


def with_each_search(name, seed, n_bags, n_test, n_candidates, p_correlated, p_ambiguous, effort, C=1.0):
    """Test accuracy of `MMS` trained with Algorithm 10 and with the exact search, on the same bags.

    Returns
    -------
    DataFrame
        Columns inference, accuracy, seconds.
    """
    bags, X_test, y_test = bags_of(name, seed, n_bags, n_test, n_candidates, p_correlated, p_ambiguous)
    rows = []
    for inference in ("heap", "exact"):
        model = make_mms(C, seed, **effort).set_params(inference=inference)
        begun = time.perf_counter()
        fitted(model, bags.X, bags.candidates)
        seconds = time.perf_counter() - begun
        rows.append(
            {
                "inference": inference,
                "accuracy": float(np.mean(model.predict(X_test) == y_test)),
                "seconds": seconds,
            }
        )
    return pd.DataFrame(rows)
