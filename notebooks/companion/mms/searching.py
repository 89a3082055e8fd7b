"""What a proven search for the most violating labeling changes (thesis 7.2.2)."""

import numpy as np
import pandas as pd
from sklearn.base import clone

from companion.mms.artificial import bags_of
from companion.mms.methods import make_mms, predicted
from companion.mms.naming import made_of, problem
from companion.mms.settings import MIDDLE
from companion.protocol import fitted, grid_points, in_turn, load_set, timed
from cuelearn.mms import CandidateSet, common_objective, most_violating

#: The first is the one that others are compared with.
SEARCHES = ("algorithm-10", "lp", "exact")
GROUPS = {"bags": "bags made ambiguous", "singles": "partial labels", "names": "captioned items"}
#: Most labels of each sample with "partial labels" may have.
PARTIAL = 4


def answers(scores, candidates, search):
    """Value and bound of the most violating labeling of every bag, (n_bags, 2)."""
    rows = np.split(scores, candidates.bag_starts[1:-1])
    found = [most_violating(part, candidates, i, search, return_bound=True) for i, part in enumerate(rows)]
    return np.array([pair[1:] for pair in found])


def each_inference(X, candidates, new, C, seed, effort):
    """`MMS` trained with every search. Shares of bags at the scores after Algorithm 10: missed, where a
    search stays below the exact value, and proven, where its bound is its value."""
    models = {}
    seconds = {}
    for search in in_turn(SEARCHES, seed):
        model = make_mms(C, seed, **effort).set_params(inference=search)
        fitted(clone(model).set_params(n_epochs=1, n_rounds=1), X, candidates)  # compiles
        models[search], seconds[search] = timed(lambda model=model: fitted(model, X, candidates))
    scores = models["algorithm-10"].decision_function(X)
    exact = answers(scores, candidates, "exact")[:, 0]
    near = 1e-9 * (1.0 + np.abs(exact))
    rows = []
    for search in SEARCHES:
        value, bound = answers(scores, candidates, search).T
        model = models[search]
        row = {
            "inference": search,
            "objective": common_objective(model, X, candidates, C=C),
            "accuracy": float(np.mean(predicted(model, new[0]) == new[1])),
            "seconds": seconds[search],
            "visits": int(model.history_["n_epochs"].sum() * candidates.n_bags),
            "missed": float(np.mean(value < exact - near)),
            "proven": float(np.mean(bound <= value + near)),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def of_bags(name, seed, n_bags, effort, C=1.0):
    """`each_inference` on bags of five, and on single samples with partial labels."""
    bags, X, y = bags_of(name, seed, n_bags, 2000, **MIDDLE)
    new = X, pd.Index(bags.candidates.classes[0]).get_indexer(y)
    made = each_inference(bags.X, bags.candidates, new, C, seed, effort)
    rng = np.random.default_rng([seed, 58])
    labels = bags.labels()
    drawn = np.arange(len(bags.candidates.classes[0])) < PARTIAL - 1
    possible = rng.permuted(np.tile(drawn, (len(labels), 1)), axis=1)
    possible[np.arange(len(labels)), labels] = True
    singles = each_inference(bags.X, CandidateSet.from_indicator(possible), new, C, seed, effort)
    return pd.concat([made.assign(group="bags"), singles.assign(group="singles")])


def of_names(seed, most_items, effort, C=1.0, **made):
    """`each_inference` on captioned training items of any size."""
    data, sets, labels = problem(seed=seed, **made)
    items = np.flatnonzero(~data.is_test)[:most_items]
    new = sets.rows(np.flatnonzero(data.is_test))
    X = data.faces[sets.rows(items)]
    table = each_inference(X, sets.take(items), (data.faces[new], labels[new]), C, seed, effort)
    return table.assign(group="names")


def inferences(sweep, size, naming, seeds, effort):
    """`of_bags` and `of_names` over the seeds, one table."""
    data = [load_set(name) for name in size["names"]]
    points = grid_points(name=size["names"], seed=seeds, n_bags=[size["n_bags"]], effort=[effort])
    bags = sweep("inference-bags").frame(of_bags, points, data=data)
    made = {**made_of(naming, "I"), "most_items": size["n_items"], "effort": effort}
    names = sweep("inference-names").frame(of_names, [{"seed": s, **made} for s in seeds])
    columns = ["group", "name", "seed", "inference", "objective", "accuracy"]
    columns += ["seconds", "visits", "missed", "proven"]
    return pd.concat([bags, names.assign(name="captions")], ignore_index=True)[columns]


def by_draw(table):
    """Of a group, a row for each draw, columns (measure, inference): means over the data sets, of objectives
    geometric, of seconds and visits the sum."""
    table = table.assign(objective=np.log(table["objective"]))
    means = table.groupby(["seed", "inference"])[["objective", "accuracy", "missed", "proven"]].mean()
    means["objective"] = np.exp(means["objective"])
    sums = table.groupby(["seed", "inference"])[["seconds", "visits"]].sum()
    return means.join(sums).unstack()
