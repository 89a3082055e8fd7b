"""Figure 5.6: who is doing what; faces with names, body poses with verbs, alone or jointly."""

from functools import lru_cache

import numpy as np
import pandas as pd

from companion.mms.methods import DRAWS, DUAL, best_on_held
from companion.mms.naming import labelled_sets
from companion.mms.settings import OCCURRENCES
from companion.pictures import kept
from companion.protocol import fitted, grid_points
from companion.study import Study
from cuelearn.datasets import make_captioned
from cuelearn.datasets.base import side_by_side
from cuelearn.datasets.captioned import POSE_CUES
from cuelearn.kernels import RBF
from cuelearn.mms import MMS, DistNaming, GMMNaming

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
