"""Who is in the picture, from caption text to candidate sets to names (tables 5.1 to 5.4), who is doing what
(figure 5.6), and what a proven search for the most violating labeling changes (thesis 7.2.2).
"""

from functools import lru_cache

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from companion.mms import (
    DRAWS,
    DUAL,
    MIDDLE,
    OCCURRENCES,
    assigned,
    bags_of,
    best_on_held,
    choose,
    each_search,
    make_mms,
    plain,
    predicted,
    random_share,
    shares_right,
    truth_set,
    with_each_search,
)
from companion.originals import load_original
from companion.pictures import kept
from companion.protocol import fitted, grid_points, in_turn, load_set, timed
from companion.study import Study
from cuelearn.datasets import VERBS, make_captioned
from cuelearn.datasets.base import side_by_side
from cuelearn.datasets.captioned import POSE_CUES
from cuelearn.kernels import RBF
from cuelearn.mms import (
    MMS,
    CandidateSet,
    DistNaming,
    GMMNaming,
    candidate_set,
    common_objective,
    most_violating,
)

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


def most_similar(data):
    """Of every test face of an identity the thing, the name, and whose training face is most like it by each
    cue."""
    known = data.kinds == "identity"
    in_test = data.is_test[data.bag_of]
    tests = np.flatnonzero(known & in_test)
    training = np.flatnonzero(known & ~in_test)
    table = pd.DataFrame({"thing": data.things[tests], "name": data.names[tests]})
    for cue, part in data.face_cues.items():
        likeness = data.faces[tests, part] @ data.faces[training, part].T
        table[f"like by {cue}"] = data.names[training[likeness.argmax(axis=1)]]
    return table


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


#: What the exact search can manage.
MOST_FACES = 4
MOST_CANDIDATES = 500


def naming_with_each_search(seed, effort, n_items, n_names, occurrences, C=1.0):
    """`each_search` on the training items that the exact search can manage, of a corpus that is used once."""
    data = make_captioned(n_items, protocol="I", n_names=n_names, random_state=seed)
    sets, labels = labelled_sets(data, occurrences, "ABC")
    labels = labels[:, 0]
    few = (np.asarray(sets.bag_sizes) <= MOST_FACES) & (np.asarray(sets.n_candidates) <= MOST_CANDIDATES)
    items = np.flatnonzero(~data.is_test & few)
    new = sets.rows(np.flatnonzero(data.is_test))
    X = data.faces[sets.rows(items)]
    table = each_search(X, sets.take(items), (data.faces[new], labels[new]), C, seed, effort, step=5)
    return table.assign(n_names=len(sets.classes[0]) - 1)


def searches(sweep, size, seed, effort):
    """`each_search` on bags made ambiguous and on captions."""
    seeds = range(seed, seed + size["seeds"])
    made = {**MIDDLE, "n_candidates": 10, "n_bags": size["n_bags"], "n_test": 2000, "effort": effort}
    points = [point | made for point in grid_points(name=size["names"], seed=seeds[: size["beside"]])]
    bags = sweep("each-search").frame(with_each_search, points, data=[load_set(n) for n in size["names"]])
    made = {name: size[name] for name in ("n_items", "n_names", "occurrences")}
    points = [{"seed": s, **made, "effort": effort} for s in seeds]
    captions = sweep("each-search-names").frame(naming_with_each_search, points).assign(name="names")
    columns = ["name", "seed", "inference", "accuracy", "same", "compared", "n_names"]
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


# --- poses --------------------------------------------------------------------------------------------------

#: (modelled, method): "both" are names and verbs jointly.
MODELS = {
    "name": ("GMMNaming", "DistNaming", "MMS"),
    "verb": ("DistNaming", "MMS"),
    "both": ("DistNaming", "MMS", "RANDOM"),
}
#: DIST's widths in units of the mean distance; those of the kernels of MMS stand in `settings`.
DIST_WIDTHS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
COMPONENTS = (10, 20, 40, 80, 160, 320)  # of GMM
NONE = {"C": 0.0, "width": 0.0, "components": 0}
CUES = {"name": ("face",), "verb": POSE_CUES}
ATTRIBUTES = {"name": ("name",), "verb": ("verb",), "both": ("name", "verb")}


def posed(seed, n_items, n_test, n_names):
    """The composed corpus of persons with a face and a body."""
    shape = {"n_names": n_names, "test_share": n_test / n_items, "n_items": n_items}
    return kept(make_captioned, kind="poses", random_state=seed, **shape)


@lru_cache(maxsize=1)  # a point has one corpus
def table_of(seed, n_items, n_test, n_names):
    """The composed corpus with poses, its features in float32, and the columns of their parts: face (of unit
    length), the cues of bodies, and pose, these side by side, each over its mean distance."""
    data = posed(seed, n_items, n_test, n_names)
    faces = data.faces / np.maximum(np.linalg.norm(data.faces, axis=1, keepdims=True), 1e-12)
    body = {cue: data.poses[:, part] for cue, part in data.pose_cues.items()}
    train = data.rows(~data.is_test)
    scaled = [b / np.sqrt(mean_distance(b[train])) for b in body.values()]
    blocks = {"face": faces, **body, "pose": np.concatenate(scaled, axis=1)}
    return data, *side_by_side(blocks, np.float32)


@lru_cache(maxsize=6)
def problem_of(seed, n_items, n_test, n_names, modelled):
    """Candidate sets of all items, and true labels (n, n_attributes); rare names are null."""
    data, _, _ = table_of(seed=seed, n_items=n_items, n_test=n_test, n_names=n_names)
    return labelled_sets(data, OCCURRENCES["II"], "ABCD", ATTRIBUTES[modelled])


def mean_distance(X):
    """Mean squared distance over pairs of rows."""
    lengths = np.mean(np.einsum("ij,ij->i", X, X, dtype=float))
    return float(2.0 * (lengths - np.sum(X.mean(axis=0, dtype=float) ** 2)))


def build(method, modelled, chosen, X, parts, seed, effort):
    """An unfitted estimator for training features X; MMS averages the three kernels of poses."""
    columns = [parts[{"name": "face", "verb": "pose"}[a]] for a in ATTRIBUTES[modelled]]
    if method == "GMMNaming":
        most = min(X[:, columns[0]].shape)
        return GMMNaming(n_components_pca=min(chosen["components"], most), columns=columns)
    if method == "DistNaming":
        metric = ["cosine" if c == parts["face"] else "sqeuclidean" for c in columns]
        # the cosine distance of unit vectors is half their squared distance
        widths = [chosen["width"] * (0.5 if m == "cosine" else 1.0) for m in metric]
        scale = [w * mean_distance(X[:, c]) for w, c in zip(widths, columns, strict=True)]
        return DistNaming(metric=metric, columns=columns, scale=scale)

    def kernel(cue):
        return (cue, RBF(scale=chosen["width"] * mean_distance(X[:, parts[cue]])), parts[cue])

    kernels = [[kernel(cue) for cue in CUES[a]] for a in ATTRIBUTES[modelled]]
    return MMS(kernels, C=chosen["C"], random_state=seed, **DUAL, **effort)


def choices(method, widths, grid):
    """Parameters to choose from; `widths` and `grid` (of C) are for MMS."""
    own = {
        "GMMNaming": {"components": COMPONENTS},
        "DistNaming": {"width": DIST_WIDTHS},
        "MMS": {"width": widths, "C": map(float, grid)},
        "RANDOM": {},
    }
    return [{**NONE, **point} for point in grid_points(**own[method])]


def scores_of(model, X, P):
    """Scores as a list with one matrix per attribute."""
    scores = model.decision_function(X)
    return scores if P > 1 else [scores]


def recognised(model, X, P):
    """Label numbers of instances, each by itself, (n, P)."""
    return np.stack([np.argmax(scores, axis=1) for scores in scores_of(model, X, P)], axis=1)


def pose_parameters(method, modelled, seed, widths, grid, effort, **size):
    """Parameters (C, width, components), chosen on held-back training items as `methods.choose` does."""
    data, X, parts = table_of(seed=seed, **size)
    sets, _ = problem_of(seed=seed, **size, modelled=modelled)
    tried = choices(method, widths, grid)

    def fit(chosen, rows, candidates):
        return fitted(build(method, modelled, chosen, X[rows], parts, seed, effort), X[rows], candidates)

    def predict(model, rows):
        return recognised(model, X[rows], sets.n_attributes)

    items = np.random.default_rng([seed, 55]).permutation(np.flatnonzero(~data.is_test))
    return tried[0] if len(tried) == 1 else best_on_held(tried, fit, predict, sets, items)


def pose_run(modelled, seed, chosen, effort, **size):
    """Assignment, recognition and naming within captions, by method and attribute."""
    data, X, parts = table_of(seed=seed, **size)
    sets, labels = problem_of(seed=seed, **size, modelled=modelled)
    train = np.flatnonzero(~data.is_test)
    test = np.flatnonzero(data.is_test)
    rows = sets.rows(train)
    new = sets.rows(test)
    inner = sets.take(train)
    outer = sets.take(test)
    named = np.stack([sets.classes[p][labels[:, p]] for p in range(sets.n_attributes)], axis=1)

    def right(answers, rows):
        return np.mean(np.reshape(answers, (len(rows), -1)) == named[rows], axis=0)

    tables = []
    for method, parameters in chosen.items():
        if method == "RANDOM":
            rng = np.random.default_rng([seed, 56])
            assigned = np.mean([inner.draw(rng) == labels[rows] for _ in range(DRAWS)], axis=(0, 1))
            captioned = np.mean([outer.draw(rng) == labels[new] for _ in range(DRAWS)], axis=(0, 1))
            alone = np.nan
        else:
            model = build(method, modelled, parameters, X[rows], parts, seed, effort)
            model = fitted(model, X[rows], inner)
            own = model.assignment_ if hasattr(model, "assignment_") else model.predict(X[rows], inner)
            assigned = right(own, rows)
            alone = np.mean(recognised(model, X[new], sets.n_attributes) == labels[new], axis=0)
            captioned = right(model.predict(X[new], outer), new)
        shares = {"assignment": assigned, "recognition": alone, "with_caption": captioned}
        tables.append(pd.DataFrame({"method": method, "attribute": ATTRIBUTES[modelled], **shares}))
    return pd.concat(tables, ignore_index=True)


def all_models(sweep, size, seeds, effort):
    """Figure 5.6 over all seeds, each of which composes a corpus; parameters are chosen on the first."""
    common = {name: size[name] for name in ("n_items", "n_test", "n_names")}
    grids = {"widths": list(size["widths"]), "grid": list(size["C"])}
    points = [({"seed": s, "modelled": a, **common}, MODELS[a]) for s in seeds for a in MODELS]
    how = {
        "by": ("modelled", *common),
        "choosing": {"seed": seeds[0], **grids, "effort": effort},
        "comparing": {"effort": effort},
        "columns": tuple(NONE),
    }
    frame = Study(sweep, "poses", pose_run, pose_parameters, **how).table(points)
    modelled = frame.pop("modelled")
    frame.insert(frame.columns.get_loc("C"), "modelled", modelled)
    return frame


# --- searches -----------------------------------------------------------------------------------------------

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
