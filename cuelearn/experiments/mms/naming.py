"""Tables 5.1 to 5.4: who is in the picture, on the composed corpus. From caption text to candidate sets to names."""

from functools import lru_cache

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from cuelearn.datasets import load_original, make_captioned
from cuelearn.experiments.mms.methods import (
    SUPERVISED,
    assigned,
    choose,
    fitted,
    make,
    make_mms,
    predicted,
    truth_set,
)
from cuelearn.mms import candidate_set, most_violating
from cuelearn.mms.solver import objective_of
from cuelearn.mms.spaces import LinearSpace

#: Draws of RANDOM.
DRAWS = 20
#: Protocol I: what the thesis compares; "half" trains on every second item.
PROTOCOL_I = ("RANDOM", "CLSVM", "MIMLSVM", "MMS", "1vA-SVM", "MC-SVM", "MC-SVM half")
PROTOCOL_II = ("RANDOM", "RANDOM positions", "MMS", "MMS positions", "1vA-SVM", "MC-SVM")


@lru_cache(maxsize=2)
def corpus(seed, n_items, n_names, protocol):
    """The composed corpus of a protocol."""
    return make_captioned(n_items, protocol=protocol, n_names=n_names, random_state=seed)


@lru_cache(maxsize=4)
def problem(seed, n_items, n_names, protocol, occurrences, constraints="ABC"):
    """Candidate sets of the whole corpus from its captions, and the true labels.

    Parameters
    ----------
    occurrences : int
        Names that fewer training captions hold count as null.
    constraints : {"ABC", "ABCD"}
        Without or with spatial indicators.

    Returns
    -------
    data : CaptionedData
    sets : CandidateSet
    labels : ndarray of int
        Of all faces, null where the name is not modelled or the caption does not have it.
    """
    data = corpus(seed, n_items, n_names, protocol)
    names = data.names_with(occurrences)
    sets = candidate_set(
        list(zip(data.captions, data.regions, strict=True)),
        data.vocabulary.only(names=names),
        constraints=constraints,
    )
    number = {name: k for k, name in enumerate(sets.classes[0])}
    return data, sets, np.array([number[name] for name in data.truth(names)])


def half_of(name):
    """A method's name without the part that says how it is trained."""
    return name.removesuffix(" half").removesuffix(" positions")


def training(method, seed, n_items, n_names, protocol, occurrences):
    """What a method is trained on.

    Returns
    -------
    X : ndarray, shape (n_faces, n_features)
    sets : CandidateSet
        With the truth alone for supervised methods.
    labels : ndarray of int
    """
    constraints = "ABCD" if method.endswith("positions") else "ABC"
    data, sets, labels = problem(seed, n_items, n_names, protocol, occurrences, constraints)
    items = np.flatnonzero(~data.is_test)
    if method.endswith("half"):
        items = np.sort(np.random.default_rng([seed, 53]).permutation(items)[: items.size // 2])
    rows, part = sets.rows(items), sets.take(items)
    return (
        data.faces[rows],
        truth_set(labels[rows], part) if half_of(method) in SUPERVISED else part,
        labels[rows],
    )


def naming_parameters(method, seed, n_items, n_names, protocol, occurrences, grid, effort):
    """Parameters of a method, chosen on held-back training items.

    Returns
    -------
    dict
        C, class_weight.
    """
    X, sets, _ = training(method, seed, n_items, n_names, protocol, occurrences)
    return choose(half_of(method), X, sets, grid, seed, effort)


def naming_run(seed, n_items, n_names, protocol, occurrences, chosen, effort):
    """Name assignment on the training items and recognition on the test items.

    Parameters
    ----------
    chosen : dict
        Of `naming_parameters`, by method; RANDOM needs none.

    Returns
    -------
    DataFrame
        Columns method, assignment (share of the training faces whose name within the caption is right), recognition (share of the test
        faces named right without a caption; RANDOM is given it), n_names, n_train, n_test (faces), null (share of test faces).
    """
    rows = []
    for method, parameters in chosen.items():
        X, sets, labels = training(method, seed, n_items, n_names, protocol, occurrences)
        data, every, truth = problem(seed, n_items, n_names, protocol, occurrences, "ABC")
        test = np.flatnonzero(data.is_test)
        faces, known = every.rows(test), truth[every.rows(test)]
        if half_of(method) == "RANDOM":
            rng, outer = np.random.default_rng([seed, 54]), every.take(test)
            found = np.mean([np.mean(sets.draw(rng)[:, 0] == labels) for _ in range(DRAWS)])
            seen = np.mean([np.mean(outer.draw(rng)[:, 0] == known) for _ in range(DRAWS)])
        else:
            model = fitted(make(half_of(method), parameters, seed, effort), X, sets)
            found = np.nan if half_of(method) in SUPERVISED else np.mean(assigned(model, X, sets) == labels)
            seen = np.mean(predicted(model, data.faces[faces]) == known)
        rows.append(
            {
                "method": method,
                "assignment": float(found),
                "recognition": float(seen),
                "n_names": every.n_labels[0] - 1,
                "n_train": len(labels),
                "n_test": len(known),
                "null": float(np.mean(known == 0)),
            }
        )
    return pd.DataFrame(rows)


def protocols(sweep, o, seeds, grid, effort):
    """Both protocols over all seeds.

    Parameters
    ----------
    sweep : callable(name) -> Sweep
    o : dict
        `naming` of `settings`.
    seeds : sequence of int
        Each composes a corpus of its own.
    grid, effort
        Of `settings`.

    Returns
    -------
    DataFrame
        Columns protocol, seed, those of `naming_run`, C and class_weight.
    """
    size = {"n_items": o["n_items"], "n_names": o["n_names"]}
    methods = {"I": PROTOCOL_I, "II": PROTOCOL_II}
    points = [
        dict(
            method=m,
            seed=seeds[0],
            protocol=p,
            occurrences=o["occurrences"][p],
            grid=list(grid),
            effort=effort,
            **size,
        )
        for p in methods
        for m in methods[p]
        if half_of(m) == m != "RANDOM"
    ]
    found = sweep("naming-parameters").run(naming_parameters, points)
    chosen = {(p["protocol"], p["method"]): r for p, r in zip(points, found, strict=True)}
    none = {"C": np.nan, "class_weight": ""}
    chosen["I", "MC-SVM half"], chosen["II", "MMS positions"] = chosen["I", "MC-SVM"], chosen["II", "MMS"]
    points = [
        dict(
            seed=s,
            protocol=p,
            occurrences=o["occurrences"][p],
            effort=effort,
            **size,
            chosen={m: chosen.get((p, m), {"C": 0.0, "class_weight": ""}) for m in methods[p]},
        )
        for p in methods
        for s in seeds
    ]
    frame = sweep("naming").frame(naming_run, points).drop(columns=["chosen", "effort"])
    for column in ("C", "class_weight"):
        frame[column] = [
            chosen.get((p, m), none)[column] for p, m in zip(frame["protocol"], frame["method"], strict=True)
        ]
    return frame


def naming_with_each_search(
    seed,
    n_items,
    n_names,
    protocol,
    occurrences,
    effort,
    most_items=400,
    most_faces=4,
    most_candidates=500,
    C=1.0,
):
    """Test accuracy of `MMS` with Algorithm 10 and with the exact search, on the training items that the latter can go through.

    Returns
    -------
    DataFrame
        Columns inference, accuracy, same (share of those items for which both searches find the same value at the trained hyperplanes),
        n_items.
    """
    data, sets, labels = problem(seed, n_items, n_names, protocol, occurrences, "ABC")
    small = np.array(
        [
            sets.bag_sizes[i] <= most_faces and sets.n_candidates[i] <= most_candidates
            for i in range(sets.n_bags)
        ]
    )
    items, test = np.flatnonzero(~data.is_test & small)[:most_items], np.flatnonzero(data.is_test)
    rows, new = sets.rows(items), sets.rows(test)
    part, out = sets.take(items), []
    for inference in ("heap", "exact"):
        model = make("MMS", {"C": C, "class_weight": ""}, seed, effort).set_params(inference=inference)
        fitted(model, data.faces[rows], part)
        scores = model.decision_function(data.faces[rows])
        values = [
            [
                most_violating(scores[part.bag_starts[i] : part.bag_starts[i + 1]], part, i, method)[1]
                for method in ("heap", "exact")
            ]
            for i in range(0, part.n_bags, 5)
        ]
        same = np.mean([abs(a - b) <= 1e-9 * (1.0 + abs(b)) for a, b in values])
        right = predicted(model, data.faces[new]) == labels[new]
        out.append(
            {
                "inference": inference,
                "accuracy": float(np.mean(right)),
                "same": float(same),
                "n_items": part.n_bags,
            }
        )
    return pd.DataFrame(out)


def objective_at_truth(seed, n_items, n_names, protocol, occurrences, C=10.0, n_epochs=50):
    """The MMS objective of what `MMS` finds, and of hyperplanes trained with the true labels: which of the two does the criterion prefer?

    Returns
    -------
    dict
        found, truth (objectives on the same candidate sets), assignment_found, assignment_truth (shares of training faces).
    """
    data, sets, labels = problem(seed, n_items, n_names, protocol, occurrences, "ABC")
    items = np.flatnonzero(~data.is_test)
    rows, part = sets.rows(items), sets.take(items)
    X, out = data.faces[rows], {}
    for what, given, n_rounds in (("found", part, 10), ("truth", truth_set(labels[rows], part), 1)):
        model = fitted(make_mms(C, seed, n_epochs, n_rounds), X, given)
        space = LinearSpace(np.column_stack([X, np.ones(len(X), X.dtype)]), part.n_labels)
        space.weights[:] = np.column_stack([model.coef_, model.intercept_])
        out[what] = objective_of(space, part, 1.0 / (C * part.n_bags))
        out[f"assignment_{what}"] = float(np.mean(assigned(model, X, part) == labels[rows]))
    return out


def partial_labels(name, fold, methods, grid, effort):
    """Real ambiguous labels (Lost, MSRCv2; tier original): bags of one instance, one of the published folds.

    Returns
    -------
    DataFrame
        Columns method, assignment (training instances within their candidates), recognition (test instances), C.
    """
    data = load_original(name)
    train, test = data.folds[fold]
    scaler = StandardScaler().fit(data.X[train])
    X = scaler.transform(data.X) / np.sqrt(data.X.shape[1])
    rows, labels = [], data.y
    for method in methods:
        part = data.candidates.take(train)
        if method == "RANDOM":
            found = np.mean([np.mean(part.draw(k)[:, 0] == labels[train]) for k in range(DRAWS)])
            seen = np.mean(
                [np.mean(data.candidates.take(test).draw(k)[:, 0] == labels[test]) for k in range(DRAWS)]
            )
            rows.append(
                {"method": method, "assignment": float(found), "recognition": float(seen), "C": np.nan}
            )
            continue
        sets = truth_set(labels[train], part) if method in SUPERVISED else part
        chosen = choose(method, X[train], sets, grid, fold, effort)
        model = fitted(make(method, chosen, fold, effort), X[train], sets)
        found = np.nan if method in SUPERVISED else np.mean(assigned(model, X[train], part) == labels[train])
        rows.append(
            {
                "method": method,
                "assignment": float(found),
                "recognition": float(np.mean(predicted(model, X[test]) == labels[test])),
                "C": chosen["C"],
            }
        )
    return pd.DataFrame(rows)


def as_printed(table, protocol, column):
    """Mean and standard deviation over seeds, in percent, as tables 5.1 to 5.4 print them.

    Returns
    -------
    DataFrame
        Columns method, accuracy, sd, C, class_weight.
    """
    mine = table[(table["protocol"] == protocol) & table[column].notna()]
    chosen = {name: (name, "first") for name in ("C", "class_weight")}
    out = mine.groupby("method", sort=False).agg(accuracy=(column, "mean"), sd=(column, "std"), **chosen)
    out[["accuracy", "sd"]] *= 100.0
    return out.reset_index()
