r"""Tasks of the MKL chapter: data set -> kernels -> a bank split into training and test part.

A task is named ("mfeat-39", "pendigits-4", ...) and loaded where it is needed, or made from cues that the caller hands over (places:
simulated images and scans, as chapter `omcl` has them). `get_task` is the one entry.
"""

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from cuelearn import datasets
from cuelearn.experiments import cue_tasks, flowers
from cuelearn.kernels import RBF, ExpDistance, KernelBank, Linear, Poly
from cuelearn.mkl.problem import combine

# bytes of kernels that a task may hold: what does not fit is computed on demand
MEMORY = 2.2e9
MEMORY_MANY = 4e8  # the 2.6 GB of 1,400 kernels on 680 samples never fit: rows come from seven distances


class Task(NamedTuple):
    """A training bank with its labels, and test samples.

    Attributes
    ----------
    bank : KernelBank
    labels : ndarray of int, shape (n_train,)
    cross : CrossBank
        Test samples against the training samples.
    test_labels : ndarray of int, shape (n_test,)
    n_classes : int
    validation : tuple of ndarray or None
        Rows of the training part that learn, and rows that validate, where the task says so (a held-back drive); else parameters are
        chosen over random folds.
    """

    bank: KernelBank
    labels: np.ndarray
    cross: object
    test_labels: np.ndarray
    n_classes: int
    validation: tuple | None = None


def kernel_set(name, data):
    """The kernels of a named task as (name, kernel, columns) triples.

    Parameters
    ----------
    name : str
        "mfeat-6": one RBF (mean rule) per cue. "mfeat-39": per cue four RBF widths, linear and polynomial, and an RBF on each of
        three pairs of cues. "mfeat-pyramid": the pixel image at four resolutions, redundant cues. "mfeat-1400": 200 widths for each of
        seven distances. "pendigits-4": one RBF per representation. "mnist-12": linear, polynomial and RBF per quadrant.
    data : CueData

    Returns
    -------
    list of (str, Kernel, columns)
    """
    cues = {c: s for c, s in data.cues.items() if not c.startswith("pix-")}
    if name in ("mfeat-6", "pendigits-4"):
        return [(c, RBF(), s) for c, s in cues.items()]
    if name == "mfeat-pyramid":
        return [(c, RBF(), s) for c, s in data.cues.items() if c.startswith("pix-")]
    if name == "mnist-12":
        kinds = {"linear": Linear(), "poly": Poly(), "rbf": RBF()}
        return [(f"{c}-{k}", kernel, s) for c, s in cues.items() for k, kernel in kinds.items()]
    if name == "mfeat-39":
        kinds = {
            "linear": Linear(),
            "poly": Poly(),
            **{f"rbf*{f}": RBF(factor=f) for f in (0.25, 1.0, 4.0, 16.0)},
        }
        triples = [(f"{c}-{k}", kernel, s) for c, s in cues.items() for k, kernel in kinds.items()]
        for one, other in (("fac", "mor"), ("fou", "kar"), ("pix", "zer")):
            columns = [i for c in (one, other) for i in range(*cues[c].indices(data.X.shape[1]))]
            triples.append((f"{one}+{other}", RBF(), columns))
        return triples
    if name == "mfeat-1400":
        factors = np.geomspace(0.01, 100.0, 200)
        triples = [(f"{c}*{f:.4g}", RBF(factor=float(f)), s) for c, s in cues.items() for f in factors]
        triples += [
            (f"pix-cityblock*{f:.4g}", ExpDistance("cityblock", factor=float(f)), cues["pix"])
            for f in factors
        ]
        return triples
    raise ValueError(f"unknown task {name!r}")


def evenly(n_kernels, n_groups=7, per_group=200):
    """Kernels of "mfeat-1400" that stand for a smaller number: the same widths, spread over the range, of every distance."""
    widths = np.unique(
        np.round(np.linspace(0, per_group - 1, max(1, n_kernels // n_groups) + 2)[1:-1]).astype(int)
    )
    return (
        np.concatenate([group * per_group + widths for group in range(n_groups)])
        if n_kernels < 1400
        else np.arange(1400)
    )


@cache
def load_data(name):
    """Data set of a task, by the task's name."""
    if name.startswith("mfeat"):
        return datasets.load_mfeat(pyramid=name == "mfeat-pyramid")
    return {"pendigits": datasets.load_pendigits, "mnist": datasets.load_mnist}[name.split("-")[0]]()


@lru_cache(maxsize=2)
def load_task(name, n_train, n_test, seed, n_kernels=None):
    """A task with kernels computed, split by the seed.

    Multiple features has no published split: a stratified one is drawn, and features are scaled to mean 0 and deviation 1 of the
    training part. Pendigits and MNIST keep theirs; a random subset of the training part is taken, and the first test samples.

    Parameters
    ----------
    name : str
        See `kernel_set`.
    n_train, n_test : int
    seed : int
    n_kernels : int, optional
        Random subset of the kernels ("mfeat-39"), or evenly spaced widths ("mfeat-1400").

    Returns
    -------
    Task
    """
    data = load_data(name)
    rng = np.random.default_rng([seed, 1])
    if data.train is None:
        everything = np.arange(data.y.size)
        train, test = train_test_split(everything, train_size=n_train, stratify=data.y, random_state=seed)
        train, test = rng.permutation(train), test[:n_test]
        mean, deviation = data.X[train].mean(axis=0), data.X[train].std(axis=0)
        X = (data.X - mean) / np.where(deviation > 0, deviation, 1.0)
    else:
        train = rng.choice(data.train, size=min(n_train, data.train.size), replace=False)
        test, X = data.test[:n_test], data.X
    triples = kernel_set(name, data)
    if n_kernels is not None:
        chosen = (
            evenly(n_kernels)
            if name == "mfeat-1400"
            else np.sort(rng.choice(len(triples), n_kernels, replace=False))
        )
        triples = [triples[j] for j in chosen]
    bank = KernelBank(triples, X[train], memory=MEMORY_MANY if name == "mfeat-1400" else MEMORY)
    return Task(bank, data.y[train], bank.cross(X[test]), data.y[test], int(data.y.max()) + 1)


def get_task(task, n_train, n_test, seed, n_kernels=None, cues=None):
    """A task by name, or permutation `seed` of the cues handed over.

    Parameters
    ----------
    task : str
        Of `kernel_set`; or "flowers-7", "flowers-1400": `flowers.load_flowers`.
    n_train, n_test : int
        Not used with `cues`, whose permutations say what learns and what tests; the flowers have their own test part.
    seed : int
    n_kernels : int, optional
    cues : dict, optional
        Of `handed`.

    Returns
    -------
    Task
    """
    if cues is not None:
        return permutation_task(seed, cues)
    if task.startswith("flowers"):  # the originals, where they are present
        return flowers.load_flowers(n_train // 17, seed, n_kernels or 7)
    return load_task(task, n_train, n_test, seed, n_kernels)


def handed(task):
    """A task of `cue_tasks` in the form in which the experiments take it.

    Returns
    -------
    dict
        `cues` for `get_task`, and `data`, which identifies them for the store of results.
    """
    return {"cues": cue_tasks.common(task)["task"], "data": [cue_tasks.fingerprint(task)]}


_LAST = {}  # the task made last, with the cues it came from: consecutive points of a sweep ask for the same one


def permutation_task(permutation, cues):
    """One kernel for each cue, its width chosen with the Perceptron on the validation part as in chapter `omcl`; samples in their order."""
    if _LAST.get("permutation") == permutation and _LAST.get("cues") is cues:
        return _LAST["task"]
    data, split = cues["data"], cue_tasks.Split(*cues["splits"][permutation])
    names, n_classes = list(data["cues"]), len(data["target_names"])
    found = cue_tasks.cue_distances(data, cues["chi2"], cues["distances"], split.train, split.test)
    found = cue_tasks.Distances({c: found.train[c] for c in names}, {c: found.test[c] for c in names})
    factors, _ = cue_tasks.choose_widths(found, data["y"], split, n_classes)
    everything = np.arange(split.train.size)
    inside, across = (
        cue_tasks.kernels(found, names, factors, everything, rows) for rows in (everything, None)
    )
    bank = KernelBank.from_stack(inside, names=names, validate=False)
    task = Task(
        bank,
        data["y"][split.train],
        bank.cross(across),
        data["y"][split.test],
        n_classes,
        (split.inner, split.held),
    )
    _LAST.update(permutation=permutation, cues=cues, task=task)
    return task


def test_error(task, dual_coef, kernel_weights, blocks=None):
    """Share of test samples predicted wrongly."""
    active = np.flatnonzero(kernel_weights)
    support = np.flatnonzero(np.any(dual_coef != 0.0, axis=1))
    if active.size == 0 or support.size == 0:
        return float(np.mean(task.test_labels != 0))
    predicted = np.empty(task.test_labels.size, dtype=np.int64)
    if blocks is None:
        for rows, block in task.cross.select(active, support).blocks(reuse=True):
            scores = combine(block, kernel_weights[active]) @ dual_coef[support].astype(block.dtype)
            predicted[rows] = np.argmax(scores, axis=1)
    else:
        for rows, block in blocks:
            scores = combine(block, kernel_weights) @ dual_coef.astype(block.dtype)
            predicted[rows] = np.argmax(scores, axis=1)
    return float(np.mean(predicted != task.test_labels))
