"""Figure 5.6: who is doing what. Faces with names, body poses with verbs, one attribute alone or both jointly, by kernels."""

from functools import lru_cache

import numpy as np
import pandas as pd

from cuelearn.datasets import VERBS, make_captioned
from cuelearn.experiments.mms.methods import VALIDATION, fitted, share_consistent
from cuelearn.experiments.mms.settings import OCCURRENCES
from cuelearn.kernels import RBF
from cuelearn.mms import MMS, DistNaming, GMMNaming, candidate_set

#: (method, modelled): "both" are names and verbs jointly.
MODELS = (
    ("GMMNaming", "name"),
    ("DistNaming", "name"),
    ("MMS", "name"),
    ("DistNaming", "verb"),
    ("MMS", "verb"),
    ("DistNaming", "both"),
    ("MMS", "both"),
)
#: DIST's widths in units of the mean distance; those of the kernels of MMS stand in `settings`.
DIST_WIDTHS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
DRAWS = 20
NONE = {"C": 0.0, "width": 0.0, "components": 0}


def pose_descriptors(poses):
    """Three descriptors of a stroke, as the thesis takes three of a body.

    Parameters
    ----------
    poses : ndarray, shape (n, 16)
        Eight points, x and y in turn.

    Returns
    -------
    dict of ndarray
        positions (n, 16); segments from point to point (n, 14); directions of these, as cosine and sine (n, 14).
    """
    points = poses.reshape(len(poses), 8, 2)
    segments = np.diff(points, axis=1)
    length = np.linalg.norm(segments, axis=2, keepdims=True)
    directions = np.divide(segments, length, out=np.zeros_like(segments), where=length > 0.0)
    return {
        "positions": poses,
        "segments": segments.reshape(len(poses), -1),
        "directions": directions.reshape(len(poses), -1),
    }


@lru_cache(maxsize=2)
def table_of(seed, n_items, n_test, n_names):
    """The composed corpus with poses, and its features; faces have unit length, so that squared distances are twice the cosine distance.

    Returns
    -------
    data : CaptionedData
    X : ndarray of float32
    parts : dict of str to slice
        face, positions, segments, directions, and pose: these three side by side, each over its mean distance among training persons, so
        that squared distances are sums of the three.
    """
    data = make_captioned(
        n_items, kind="poses", test_share=n_test / n_items, n_names=n_names, random_state=seed
    )
    faces = data.faces / np.maximum(np.linalg.norm(data.faces, axis=1, keepdims=True), 1e-12)
    blocks = {"face": faces, **pose_descriptors(data.poses)}
    train = data.rows(~data.is_test)
    blocks["pose"] = np.concatenate(
        [b / np.sqrt(mean_distance(b[train])) for name, b in blocks.items() if name != "face"], axis=1
    )
    ends = np.cumsum([b.shape[1] for b in blocks.values()])
    parts = {
        name: slice(int(end - b.shape[1]), int(end))
        for (name, b), end in zip(blocks.items(), ends, strict=True)
    }
    return data, np.concatenate(list(blocks.values()), axis=1).astype(np.float32), parts


@lru_cache(maxsize=6)
def problem_of(seed, n_items, n_test, n_names, modelled):
    """Candidate sets of all items, from captions, and true labels (n, n_attributes). Names with fewer than 3 occurrences count as null."""
    data, _, _ = table_of(seed, n_items, n_test, n_names)
    attributes = {"name": ("name",), "verb": ("verb",), "both": ("name", "verb")}[modelled]
    kept = data.names_with(OCCURRENCES["II"])
    sets = candidate_set(
        list(zip(data.captions, data.regions, strict=True)), data.vocabulary.only(names=kept), attributes
    )
    known = data.truth(kept, list(VERBS))
    columns = {"name": [0], "verb": [1], "both": [0, 1]}[modelled]
    numbers = [{label: k for k, label in enumerate(classes)} for classes in sets.classes]
    labels = np.stack([[numbers[p][v] for v in known[:, column]] for p, column in enumerate(columns)], axis=1)
    return sets, labels


def kernels_of(modelled, parts, width):
    """Kernels exp(-d / gamma) of each attribute, gamma in units of the mean distance; poses have three, which are averaged."""
    face = [("face", parts["face"])]
    body = [(name, parts[name]) for name in ("positions", "segments", "directions")]
    chosen = {"name": [face], "verb": [body], "both": [face, body]}[modelled]
    return lambda X: [
        [(name, RBF(gamma=width * mean_distance(X[:, columns])), columns) for name, columns in group]
        for group in chosen
    ]


def mean_distance(X):
    """Mean squared distance over pairs of rows."""
    return float(
        2.0 * (np.mean(np.einsum("ij,ij->i", X, X, dtype=float)) - np.sum(X.mean(axis=0, dtype=float) ** 2))
    )


def build(method, modelled, chosen, parts, seed, effort):
    """A function from training features to an unfitted estimator."""
    columns = {"name": [parts["face"]], "verb": [parts["pose"]], "both": [parts["face"], parts["pose"]]}[
        modelled
    ]
    if method == "GMMNaming":
        return lambda X: GMMNaming(n_components_pca=chosen["components"], columns=columns)
    if method == "DistNaming":
        metric = ["cosine" if c == parts["face"] else "sqeuclidean" for c in columns]
        unit = [
            0.5 if m == "cosine" else 1.0 for m in metric
        ]  # the cosine distance of unit vectors is half their squared distance
        return lambda X: DistNaming(
            metric=metric,
            columns=columns,
            gamma=[chosen["width"] * u * mean_distance(X[:, c]) for u, c in zip(unit, columns, strict=True)],
        )
    kernels = kernels_of(modelled, parts, chosen["width"])
    return lambda X: MMS(
        kernels(X), C=chosen["C"], solver="frank-wolfe", gap_tol=0.05, tol=5e-3, random_state=seed, **effort
    )


def choices(method, widths, grid):
    """Parameters to choose from; `widths` and `grid` (of C) are for MMS."""
    if method == "GMMNaming":
        return [{**NONE, "components": k} for k in (10, 20, 40, 80)]
    if method == "DistNaming":
        return [{**NONE, "width": w} for w in DIST_WIDTHS]
    return [{**NONE, "C": float(C), "width": w} for w in widths for C in grid]


def scores_of(model, X, P):
    """Scores as a list with one matrix per attribute."""
    scores = model.decision_function(X)
    return scores if P > 1 else [scores]


def pose_parameters(method, modelled, seed, n_items, n_test, n_names, widths, grid, effort):
    """Parameters that agree best with the candidates of held-back training items, as `methods.choose` does it.

    Returns
    -------
    dict
        C, width, components.
    """
    data, X, parts = table_of(seed, n_items, n_test, n_names)
    sets, _ = problem_of(seed, n_items, n_test, n_names, modelled)
    items = np.random.default_rng([seed, 55]).permutation(np.flatnonzero(~data.is_test))
    held = int(VALIDATION * items.size)
    inner, outer = np.sort(items[held:]), np.sort(items[:held])
    rows, rows_held = sets.rows(inner), sets.rows(outer)
    tried, found = choices(method, widths, grid), []
    for chosen in tried:
        model = fitted(
            build(method, modelled, chosen, parts, seed, effort)(X[rows]), X[rows], sets.take(inner)
        )
        labels = np.stack(
            [np.argmax(s, axis=1) for s in scores_of(model, X[rows_held], sets.n_attributes)], axis=1
        )
        found.append(share_consistent(labels, sets.take(outer)))
    return tried[int(np.argmax(found))]


def pose_run(method, modelled, seed, n_items, n_test, n_names, chosen, effort):
    """Assignment on training items, recognition on test items without and with their captions.

    Returns
    -------
    DataFrame
        Columns attribute ("name", "verb"), assignment, recognition, with_caption.
    """
    data, X, parts = table_of(seed, n_items, n_test, n_names)
    sets, labels = problem_of(seed, n_items, n_test, n_names, modelled)
    train, test = np.flatnonzero(~data.is_test), np.flatnonzero(data.is_test)
    rows, new = sets.rows(train), sets.rows(test)
    inner, outer = sets.take(train), sets.take(test)
    if method == "RANDOM":
        rng = np.random.default_rng([seed, 56])
        assigned = np.mean([inner.draw(rng) == labels[rows] for _ in range(DRAWS)], axis=(0, 1))
        captioned = np.mean([outer.draw(rng) == labels[new] for _ in range(DRAWS)], axis=(0, 1))
        alone = np.full(captioned.shape, np.nan)
    else:
        model = fitted(build(method, modelled, chosen, parts, seed, effort)(X[rows]), X[rows], inner)
        named = np.stack([sets.classes[p][labels[:, p]] for p in range(sets.n_attributes)], axis=1)
        own = model.assignment_ if hasattr(model, "assignment_") else model.predict(X[rows], inner)
        assigned = np.mean(np.reshape(own, (len(rows), -1)) == named[rows], axis=0)
        scores = scores_of(model, X[new], sets.n_attributes)
        alone = [np.mean(np.argmax(s, axis=1) == labels[new, p]) for p, s in enumerate(scores)]
        captioned = np.mean(np.reshape(model.predict(X[new], outer), (len(new), -1)) == named[new], axis=0)
    attributes = ["name", "verb"] if modelled == "both" else [modelled]
    return pd.DataFrame(
        {"attribute": attributes, "assignment": assigned, "recognition": alone, "with_caption": captioned}
    )


def all_models(sweep, o, seeds, effort):
    """Figure 5.6 over all seeds.

    Returns
    -------
    DataFrame
        Columns method, modelled, seed, those of `pose_run`, C, width, components.
    """
    size = {key: o[key] for key in ("n_items", "n_test", "n_names")}
    grids = {"widths": list(o["widths"]), "grid": list(o["C"])}
    points = [dict(method=m, modelled=a, seed=seeds[0], effort=effort, **grids, **size) for m, a in MODELS]
    chosen = {
        (p["method"], p["modelled"]): r
        for p, r in zip(points, sweep("pose-parameters").run(pose_parameters, points), strict=True)
    }
    points = [
        dict(method=m, modelled=a, seed=s, chosen=chosen.get((m, a), NONE), effort=effort, **size)
        for m, a in (*MODELS, ("RANDOM", "both"))
        for s in seeds
    ]
    frame = sweep("poses").frame(pose_run, points)
    for column in NONE:
        frame[column] = [point[column] for point in frame["chosen"]]
    return frame.drop(columns=["chosen", "effort"])
