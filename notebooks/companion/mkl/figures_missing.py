"""Cues that samples lack: zero blocks, imputation by the mean, or dropping incomplete training samples."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, train_test_split

from companion import pictures
from companion.mkl import DIFFERENT, MEMORY, described_pictures, picture_split
from companion.mkl.rivals import NATURAL
from companion.plots import mkl as draw
from companion.protocol import fitted, grid_points, load_set
from companion.run.registry import figure
from companion.study import choose, edges
from cuelearn.kernels import RBF, Chi2, KernelBank
from cuelearn.mkl import OBSCURE, AverageKernelSVM

TASKS = ("mfeat", "htad", "objects")
WAYS = ("zero blocks", "imputed", "dropped")
#: With the parameters that are chosen.
METHODS = {"OBSCURE": ("C", "p"), "SVM": ("C",)}
#: Drawings of each object to train from.
DRAWINGS = 5


def samples_of(task, n_train, n_test, n_objects, n_described, seed):
    """Features, labels, (name, kernel, columns) triples, training and test rows of a split; the first
    `n_objects` of those that other figures describe."""
    if task == "objects":
        data, shown = described_pictures("objects", n_described)
        rows = picture_split(shown, "objects", DRAWINGS, seed)
        train, test = (part[shown.labels[part] < n_objects] for part in rows)
        kernels = {cue: RBF() if cue in pictures.PLAIN else Chi2() for cue in DIFFERENT}
        triples = [(cue, kernel, data.cues[cue]) for cue, kernel in kernels.items()]
        return data.X, shown.labels, triples, train, test[:n_test]
    data = load_set(task)
    split = {"train_size": n_train, "test_size": n_test, "stratify": data.y, "random_state": seed}
    train, test = train_test_split(np.arange(data.y.size), **split)
    triples = [(cue, RBF(), columns) for cue, columns in data.cues.items()]
    return data.X, data.y, triples, train, test


def absent_cues(n, n_cues, share, rng):
    """Which samples lack which cue, (n, n_cues): each with probability `share`, but never all."""
    absent = rng.random((n, n_cues)) < share
    left = rng.integers(n_cues, size=n)
    empty = np.flatnonzero(absent.all(axis=1))
    absent[empty, left[empty]] = False
    return absent


def without(X, triples, absent):
    """A copy of X with NaN in the columns of absent cues."""
    X = np.array(X, dtype=np.float64)
    for (_, _, columns), lacks in zip(triples, absent.T, strict=True):
        part = X[:, columns]
        part[lacks] = np.nan
        X[:, columns] = part
    return X


class Kernels(NamedTuple):
    """Kernels of all training, and of all test samples, with the training samples that are `used`."""

    inside: np.ndarray  # (n_kernels, n, n_used)
    across: np.ndarray  # (n_kernels, n_test, n_used)
    used: np.ndarray  # (n_used,): places among the training samples


def kernels_by(way, triples, train, test, absent):
    """`Kernels` of the rows `train`, of which some lack cues, and `test`."""
    used = np.arange(len(train))
    options = {"memory": MEMORY}
    if way == "zero blocks":
        options["missing"] = "zero"
    if way == "dropped":
        used = np.flatnonzero(~absent.any(axis=1))
        if used.size < 2:
            nothing = np.zeros((len(triples), len(train) + len(test), 0))
            return Kernels(*np.split(nothing, [len(train)], axis=1), used[:0])
    if way != "zero blocks":
        means = np.nanmean(train[used], axis=0)
        train = np.where(np.isnan(train), means, train)
        test = np.where(np.isnan(test), means, test)
    bank = KernelBank(triples, train[used], **options)
    blocks = [block for _, block in bank.cross(np.concatenate([train, test])).blocks()]
    inside, across = np.split(np.concatenate(blocks, axis=1), [len(train)], axis=1)
    inside[:, used] = bank.stack
    return Kernels(inside, across, used)


def accuracy(method, params, kernels, labels, rows, new, new_labels, seed):
    """Of a method trained on those of the training samples `rows` that are used, on `new` kernels; of the
    most frequent class where they are of fewer than two classes."""
    columns = np.flatnonzero(np.isin(kernels.used, rows))
    kept = kernels.used[columns]
    if np.unique(labels[kept]).size < 2:
        return float(np.mean(new_labels == np.bincount(labels[rows]).argmax()))
    if method == "SVM":
        model = AverageKernelSVM("precomputed", **params)
    else:
        model = OBSCURE("precomputed", random_state=seed, **params)
    square = np.ascontiguousarray(kernels.inside[:, kept[:, None], columns])
    predicted = fitted(model, square, labels[kept]).predict(np.ascontiguousarray(new[:, :, columns]))
    return float(np.mean(predicted == new_labels))


def chosen_by_folds(method, grid, kernels, labels, folds, seed):
    """The parameters with the highest accuracy on held-back samples, which lack cues as well."""
    points = grid_points(**grid)
    if len(points) == 1:
        return points[0]

    def score(params):
        parts = []
        for fit, held in folds:
            new = kernels.inside[:, held], labels[held]
            parts.append(accuracy(method, params, kernels, labels, fit, *new, seed))
        return np.mean(parts)

    return choose(points, score)[0]


def compare_missing(task, share, sizes, n_folds, grids, seed):
    """Test errors of both methods, in each way, on one split with one draw of absent cues."""
    X, y, triples, train, test = samples_of(task, seed=seed, **sizes)
    rng = np.random.default_rng([seed, 8, round(100 * share)])
    absent = absent_cues(len(X), len(triples), share, rng)
    X = without(X, triples, absent)
    if task != "objects":
        deviation = np.nanstd(X[train], axis=0)
        X = (X - np.nanmean(X[train], axis=0)) / np.where(deviation > 0, deviation, 1.0)
    labels = y[train]
    every = np.arange(labels.size)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    folds = list(folds.split(labels, labels))
    ways = WAYS
    if share == 0:  # nothing is missing: all ways are one
        ways = WAYS[:1]
    rows = []
    for way in ways:
        kernels = kernels_by(way, triples, X[train], X[test], absent[train])
        for method, names in METHODS.items():
            grid = {name: grids[name] for name in names}
            params = chosen_by_folds(method, grid, kernels, labels, folds, seed)
            right = accuracy(method, params, kernels, labels, every, kernels.across, y[test], seed)
            row = {"error": 1.0 - right, "n_used": kernels.used.size, **params}
            for name in [way] if share > 0 else WAYS:
                rows.append({"method": f"{method}, {name}", **row})
    return pd.DataFrame(rows).assign(absent=absent.mean(), of="emoji" if task == "objects" else task)


@figure("missing-cues", claims=["miss-1", "miss-2", "miss-3"])
def missing_cues(run):
    """What becomes of accuracy where samples lack cues?"""
    size = run.size["missing"]
    sizes = {key: size[key] for key in ("n_train", "n_test", "n_objects")}
    sizes["n_described"] = run.size["objects"]["n_classes"]
    grids = {key: size[key] for key in ("C", "p")}
    fixed = {"sizes": sizes, "n_folds": size["n_folds"], "grids": grids}
    points = [
        {"task": task, "share": share, **fixed, "seed": seed}
        for task in TASKS
        for share in size["shares"]
        for seed in run.seeds(size)
    ]
    data = [load_set(name).provenance for name in TASKS[:2]] + [pictures.emoji().provenance]
    table = run.sweep("missing-cues").frame(compare_missing, points, data=data)
    table = table.drop(columns=["sizes", "n_folds", "grids"])
    at_edges = edges(table, grids, NATURAL) or "nothing"
    note = (
        f"{size['n_train']} training samples, of emoji {DRAWINGS} drawings of each of "
        f"{size['n_objects']} things. Each sample lacks each cue with the same probability, at random, in "
        "training and test, but keeps at least one. Imputed: the mean of the training samples that have the "
        "column; dropped: incomplete training samples, test samples imputed, the most frequent class where "
        f"none are left. C and p by the same inner folds of each split; at the edge of the grid: {at_edges}"
    )
    run.save_figure(draw.missing_cues(table), "missing-cues", table, provenance=data, note=note)


@missing_cues.facts
def _(results):
    table = results.table()
    most = table["share"].max()
    half = table[table["share"] == 0.5]
    error = half.groupby(["task", "method"])["error"].mean().unstack()
    lines = []
    for task in TASKS:
        ways = ", ".join(f"{error[f'OBSCURE, {way}'][task]:.1%} ({way})" for way in WAYS)
        lines.append(f"{task}: {ways}")
    whole = table[(table["share"] == 0) & (table["method"] == "OBSCURE, zero blocks")]
    return {
        "zero": error["OBSCURE, zero blocks"],
        "imputed": error["OBSCURE, imputed"],
        "whole": whole.groupby("task")["error"].mean(),
        "errors": "; ".join(lines),
        "most": most,
        "absent": table[table["share"] == most].groupby("task")["absent"].mean(),
    }


missing_cues.title("""
On numerals with half of the cues missing the error of OBSCURE is {zero[mfeat]:.1%} with zero blocks and
{imputed[mfeat]:.1%} with means in their place; with all cues it is {whole[mfeat]:.1%}.""")
missing_cues.see("""
Errors of OBSCURE with half of the cues missing: {errors}. Since one cue is always left, HTAD with its two
cues lacks {absent[htad]:.0%} of them at the largest share, {most:.0%}.""")
