"""Tasks of the MKL chapter: data set -> kernels -> a bank split into training and test part: `get_task`."""

from functools import cache, lru_cache

import numpy as np
from sklearn.model_selection import train_test_split

from cuelearn import datasets
from cuelearn.experiments import cue_tasks, flowers
from cuelearn.experiments.protocol import MEMORY_MANY, Task
from cuelearn.kernels import RBF, ExpDistance, KernelBank, Linear, Poly
from cuelearn.mkl.problem import combine

# bytes of kernels that a task may hold: what does not fit is computed on demand
MEMORY = 2.2e9


def kernel_set(name, data):
    """The kernels of a named task as (name, kernel, columns) triples.

    "mfeat-6": one RBF (mean rule) per cue. "mfeat-39": per cue four RBF widths, linear and polynomial, and an
    RBF on each of three pairs of cues. "mfeat-pyramid": the pixel image at four resolutions, redundant cues.
    "mfeat-1400": 200 widths for each of seven distances. "pendigits-4": one RBF per representation.
    "mnist-12": linear, polynomial and RBF per quadrant.
    """
    pixels = {c: s for c, s in data.cues.items() if c.startswith("pix-")}
    cues = {c: s for c, s in data.cues.items() if c not in pixels}
    if name in ("mfeat-6", "pendigits-4", "mfeat-pyramid"):
        return [(c, RBF(), s) for c, s in (pixels if name == "mfeat-pyramid" else cues).items()]
    if name == "mfeat-1400":
        factors = np.geomspace(0.01, 100.0, 200).tolist()
        triples = [(f"{c}*{f:.4g}", RBF(factor=f), s) for c, s in cues.items() for f in factors]
        city = [(f"pix-cityblock*{f:.4g}", ExpDistance("cityblock", factor=f), cues["pix"]) for f in factors]
        return triples + city
    if name not in ("mnist-12", "mfeat-39"):
        raise ValueError(f"unknown task {name!r}")
    widths = {f"rbf*{f}": RBF(factor=f) for f in (0.25, 1.0, 4.0, 16.0)}
    kinds = {"linear": Linear(), "poly": Poly(), **({"rbf": RBF()} if name == "mnist-12" else widths)}
    triples = [(f"{c}-{k}", kernel, s) for c, s in cues.items() for k, kernel in kinds.items()]
    if name == "mfeat-39":
        for one, other in (("fac", "mor"), ("fou", "kar"), ("pix", "zer")):
            columns = [i for c in (one, other) for i in range(*cues[c].indices(data.X.shape[1]))]
            triples.append((f"{one}+{other}", RBF(), columns))
    return triples


def evenly(n_kernels):
    """Kernels of "mfeat-1400" that stand for fewer: the same widths, spread evenly, of all distances."""
    if n_kernels >= 1400:
        return np.arange(1400)
    widths = np.unique(np.round(np.linspace(0, 199, max(1, n_kernels // 7) + 2)[1:-1]).astype(int))
    return np.concatenate([200 * group + widths for group in range(7)])


@cache
def load_data(name):
    """Data set of a task, by the task's name."""
    if name.startswith("mfeat"):
        return datasets.load_mfeat(pyramid=name == "mfeat-pyramid")
    return {"pendigits": datasets.load_pendigits, "mnist": datasets.load_mnist}[name.split("-")[0]]()


@lru_cache(maxsize=2)
def load_task(name, n_train, n_test, seed, n_kernels=None):
    """A `Task` of `kernel_set`, split by the seed.

    Multiple features is split stratified, and scaled to mean 0 and deviation 1 of the training part.
    Pendigits and MNIST keep their parts; a random subset of the training part is taken, and the first test
    samples. `n_kernels` takes a random subset of the kernels ("mfeat-39"), or evenly spaced widths
    ("mfeat-1400").
    """
    data = load_data(name)
    rng = np.random.default_rng([seed, 1])
    if data.train is None:
        split = {"train_size": n_train, "stratify": data.y, "random_state": seed}
        train, test = train_test_split(np.arange(data.y.size), **split)
        train, test = rng.permutation(train), test[:n_test]
        X = cue_tasks.standardised(data.X, train)
    else:
        train = data.train if n_train >= data.train.size else rng.choice(data.train, n_train, replace=False)
        test, X = data.test[:n_test], data.X
    triples, many = kernel_set(name, data), name == "mfeat-1400"
    if n_kernels is not None:
        some = evenly(n_kernels) if many else np.sort(rng.choice(len(triples), n_kernels, replace=False))
        triples = [triples[j] for j in some]
    bank = KernelBank(triples, X[train], memory=MEMORY_MANY if many else MEMORY)
    return Task(bank, data.y[train], bank.cross(X[test]), data.y[test], int(data.y.max()) + 1)


def get_task(task, n_train, n_test, seed, n_kernels=None, cues=None):
    """A `Task` by name, or permutation `seed` of a `CueTask`, `cues`.

    Names are those of `kernel_set`, or "flowers-7", "flowers-1400" (the originals, with their own test
    part).
    """
    if cues is not None:
        return permutation_task(seed, cues)
    if task.startswith("flowers"):
        return flowers.load_flowers(n_train // 17, seed, n_kernels or 7)
    return load_task(task, n_train, n_test, seed, n_kernels)


_LAST = {}  # the task made last: consecutive points of a sweep ask for the same one


def permutation_task(permutation, cues):
    """One kernel for each cue, its width chosen as in chapter `omcl`; samples in their order."""
    if _LAST.get("permutation") == permutation and _LAST.get("cues") is cues:
        return _LAST["task"]
    run = cue_tasks.Permutation(cues, cues.splits[permutation])
    inside, across = run.kernels(run.cues, run.choose_widths(run.cues)[0])
    bank = KernelBank.from_stack(inside, names=run.cues, validate=False)
    held = (run.split.inner, run.split.held)
    task = Task(bank, run.labels, bank.cross(across), run.truth, run.n_classes, held)
    _LAST.update(permutation=permutation, cues=cues, task=task)
    return task


def test_error(task, dual_coef, kernel_weights, blocks=None):
    """Share of test samples predicted wrongly; `blocks`: the test kernels where they are at hand."""
    active, support = np.flatnonzero(kernel_weights), np.flatnonzero(np.any(dual_coef != 0.0, axis=1))
    predicted = np.zeros(task.test_labels.size, dtype=np.int64)
    if active.size and support.size:
        if blocks is None:
            blocks = task.cross.select(active, support).blocks(reuse=True)
            kernel_weights, dual_coef = kernel_weights[active], dual_coef[support]
        for rows, block in blocks:
            scores = combine(block, kernel_weights) @ dual_coef.astype(block.dtype)
            predicted[rows] = np.argmax(scores, axis=1)
    return float(np.mean(predicted != task.test_labels))
