"""Tables 5.1 to 5.4: who is in the picture, from caption text to candidate sets to names."""

from functools import lru_cache

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from companion.data.originals import load_original
from companion.mms.artificial import with_each_search
from companion.mms.methods import (
    DRAWS,
    assigned,
    choose,
    each_search,
    make_mms,
    plain,
    random_share,
    shares_right,
    truth_set,
)
from companion.mms.settings import MIDDLE
from companion.pictures import kept
from companion.protocol import fitted, grid_points, load_set
from companion.study import Study
from cuelearn.datasets import VERBS, make_captioned
from cuelearn.mms import candidate_set, common_objective

#: Protocol I: what the thesis compares; "half" trains on every second item.
PROTOCOL_I = ("RANDOM", "CLSVM", "MIMLSVM", "MMS", "1vA-SVM", "MC-SVM", "MC-SVM half")
PROTOCOL_II = ("RANDOM", "RANDOM positions", "MMS", "MMS positions", "1vA-SVM", "MC-SVM")


@lru_cache(maxsize=16)
def corpus(seed, n_items, n_names, protocol):
    """The composed corpus of a protocol, kept on disk: several sweeps and their processes take the same."""
    return kept(make_captioned, n_items, protocol=protocol, n_names=n_names, random_state=seed)


def provenance_of(**made):
    """Where a `corpus` comes from, for the notes of figures."""
    return corpus(**made).provenance


def labelled_sets(data, occurrences, constraints, attributes=("name",)):
    """Candidate sets of a composed corpus, and the true labels (n, n_attributes); rare names count as
    null."""
    names = data.names_with(occurrences)
    sets = candidate_set(data.items, data.vocabulary.only(names=names), attributes, constraints=constraints)
    truth = data.truth(names, list(VERBS)).T if "verb" in attributes else [data.truth(names)]
    known = zip(sets.classes, truth[-len(attributes) :], strict=True)
    return sets, np.stack([pd.Index(classes).get_indexer(labels) for classes, labels in known], axis=1)


@lru_cache(maxsize=16)
def problem(seed, n_items, n_names, protocol, occurrences, constraints="ABC"):
    """The corpus, its candidate sets, and the names of all faces, null where the caption lacks them."""
    data = corpus(seed, n_items, n_names, protocol)
    sets, labels = labelled_sets(data, occurrences, constraints)
    return data, sets, labels[:, 0]


def made_of(sizes, protocol):
    """The arguments of `problem` for a protocol."""
    occurrences = sizes["occurrences"][protocol]
    shape = {"n_items": sizes["n_items"], "n_names": sizes["n_names"]}
    return {"protocol": protocol, "occurrences": occurrences, **shape}


def training(method, seed, **made):
    """What a method is trained on in a `problem`: X, candidates, labels."""
    constraints = "ABCD" if method.endswith("positions") else "ABC"
    data, sets, labels = problem(seed=seed, **made, constraints=constraints)
    items = np.flatnonzero(~data.is_test)
    if method.endswith("half"):
        items = np.sort(np.random.default_rng([seed, 53]).permutation(items)[: items.size // 2])
    rows = sets.rows(items)
    return data.faces[rows], sets.take(items), labels[rows]


def naming_parameters(method, seed, grid, effort, **made):
    """Parameters of a method, as of `choose`, chosen on held-back training items of a `problem`."""
    if method == "RANDOM":
        return {"C": 0.0, "class_weight": "", "instances": ""}
    return choose(method, *training(method, seed, **made), grid, seed, effort)


def naming_run(seed, chosen, effort, **made):
    """Assignment of training faces and recognition of test faces by method; RANDOM is given all captions."""
    data, every, truth = problem(seed=seed, **made, constraints="ABC")
    test = np.flatnonzero(data.is_test)
    faces = every.rows(test)
    known = truth[faces]
    rows = []
    for method, parameters in chosen.items():
        train = X, sets, labels = training(method, seed, **made)
        if plain(method) == "RANDOM":
            rngs = [np.random.default_rng([seed, 54])] * DRAWS
            assignment = random_share(sets, labels, rngs)
            shares = {"assignment": assignment, "recognition": random_share(every.take(test), known, rngs)}
        else:
            shares = shares_right(plain(method), parameters, seed, effort, train, (data.faces[faces], known))
        sizes = {"n_names": every.n_labels[0] - 1, "n_train": len(labels), "n_test": len(known)}
        rows.append({"method": method, **shares, **sizes, "null": float(np.mean(known == 0))})
    return pd.DataFrame(rows)


def protocols(sweep, size, seeds, grid, effort):
    """`naming_run` of both protocols over the seeds, each of which composes a corpus."""
    points = []
    draws = {"I": seeds, "II": seeds[: size["placed"]]}
    for protocol, methods in {"I": PROTOCOL_I, "II": PROTOCOL_II}.items():
        points += [({"seed": s, **made_of(size, protocol)}, methods) for s in draws[protocol]]
    how = {
        "by": tuple(made_of(size, "I")),
        "choosing": {"seed": seeds[0], "grid": list(grid), "effort": effort},
        "comparing": {"effort": effort},
        "columns": ("C", "class_weight", "instances"),
        "plain": plain,
    }
    frame = Study(sweep, "naming", naming_run, naming_parameters, **how).table(points)
    return frame.assign(C=frame["C"].where(frame["C"] > 0.0))  # RANDOM has none


def naming_with_each_search(seed, effort, most_items=400, most_faces=4, most_candidates=500, C=1.0, **made):
    """`each_search` on the training items that the exact search can manage."""
    data, sets, labels = problem(seed=seed, **made, constraints="ABC")
    few = (np.asarray(sets.bag_sizes) <= most_faces) & (np.asarray(sets.n_candidates) <= most_candidates)
    items = np.flatnonzero(~data.is_test & few)[:most_items]
    new = sets.rows(np.flatnonzero(data.is_test))
    X = data.faces[sets.rows(items)]
    return each_search(X, sets.take(items), (data.faces[new], labels[new]), C, seed, effort, step=5)


def searches(sweep, size, naming, seed, effort):
    """`each_search` on bags made ambiguous and on captions."""
    seeds = range(seed, seed + size["seeds"])
    made = {**MIDDLE, "n_candidates": 10, "n_bags": size["n_bags"], "n_test": 2000, "effort": effort}
    points = [point | made for point in grid_points(name=size["names"], seed=seeds[: size["beside"]])]
    bags = sweep("each-search").frame(with_each_search, points, data=[load_set(n) for n in size["names"]])
    made = {**made_of(naming, "I"), "most_items": size["n_items"], "effort": effort}
    points = [{"seed": s, **made} for s in seeds]
    captions = sweep("each-search").frame(naming_with_each_search, points).assign(name="names")
    columns = ["name", "seed", "inference", "accuracy", "same", "compared"]
    return pd.concat([bags, captions], ignore_index=True)[columns].rename(columns={"name": "sets"})


def partial_with_each_search(name, fold, effort, C=1.0):
    """`each_search` on real ambiguous labels."""
    X, part, _, new = partial_fold(name, fold)
    return each_search(X, part, new, C, fold, effort)


def objective_at_truth(seed, C=10.0, n_epochs=50, **made):
    """Objectives on the same candidate sets, and assignments, of `MMS` and of hyperplanes trained with the
    truth."""
    X, part, labels = training("MMS", seed, **made)
    out = {}
    for kind, given, n_rounds in (("found", part, 10), ("truth", truth_set(labels, part), 1)):
        model = fitted(make_mms(C, seed, n_epochs, n_rounds), X, given)
        out[kind] = common_objective(model, X, part, C=C, inference="algorithm-10")
        out[f"assignment_{kind}"] = float(np.mean(assigned(model, X, part) == labels))
    return out


def partial_fold(name, fold):
    """Real ambiguous labels (tier original), one of the published folds, bags of one instance: training
    features, candidates and labels, test features and labels."""
    data = load_original(name)
    train, test = data.folds[fold]
    X = StandardScaler().fit(data.X[train]).transform(data.X) / np.sqrt(data.X.shape[1])
    return X[train], data.candidates.take(train), data.y[train], (X[test], data.y[test])


def partial_labels(name, fold, methods, grid, effort):
    """All methods on a `partial_fold`."""
    X, part, y, new = partial_fold(name, fold)
    rows = []
    for method in methods:
        if method == "RANDOM":
            chosen = {"C": np.nan}
            data = load_original(name)
            shares = {"assignment": random_share(part, y, range(DRAWS))}
            outer = data.candidates.take(data.folds[fold][1])
            shares["recognition"] = random_share(outer, new[1], range(DRAWS))
        else:
            chosen = choose(method, X, part, y, grid, fold, effort)
            shares = shares_right(method, chosen, fold, effort, (X, part, y), new)
        rows.append({"method": method, **shares, "C": chosen["C"]})
    return pd.DataFrame(rows)


def as_printed(table, protocol, column):
    """Mean and sd over seeds, in percent, as tables 5.1 to 5.4: method, accuracy, sd, and what was chosen."""
    rows = table[(table["protocol"] == protocol) & table[column].notna()]
    chosen = {name: (name, "first") for name in ("C", "class_weight", "instances")}
    out = rows.groupby("method", sort=False).agg(accuracy=(column, "mean"), sd=(column, "std"), **chosen)
    out[["accuracy", "sd"]] *= 100.0
    return out.reset_index()
