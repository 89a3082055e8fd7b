"""Training time at the size of the thesis's Animals with Attributes: ten new classes, forty priors."""

import tracemalloc

import numpy as np

from companion.mktl.compare import model_of
from companion.mktl.tasks import load_task
from companion.protocol import timed
from cuelearn.kernels import KernelBank

# numbers in the class means of random problems, and the share of priors that know something of a class
_DIMENSIONS = 20
_RELATED = 0.15


def random_problem(n_classes, n_priors, n_per_class, seed):
    """Classes on random means, and priors that know something of a few, scores around -1: X, y, scores."""
    rng = np.random.default_rng([seed, 64])
    y = np.repeat(np.arange(n_classes), n_per_class)
    X = rng.normal(size=(y.size, _DIMENSIONS)) + rng.normal(size=(n_classes, _DIMENSIONS))[y]
    known = rng.normal(size=(n_classes, n_priors)) * (rng.random((n_classes, n_priors)) < _RELATED)
    return X, y, 0.5 * (known[y] + rng.normal(size=(y.size, n_priors))) - 1.0


def training_time(kind, method, n_per_class, C, p, effort, repeats, seed, memory=False):
    """Seconds (least of `repeats`) of a training on "random" or "awa", kernel matrix included, after a small
    one; memory: bytes at the peak of a training beside what went in, NaN where it is not measured."""
    X, y, scores = random_problem(10, 40, n_per_class, seed) if kind == "random" else _awa(n_per_class)

    def train(rows=slice(None)):
        model = model_of(method, {"C": C, "p": p}, effort, seed)
        return model.fit(KernelBank(None, X[rows]), y[rows], scores=scores[rows])

    train(slice(None, None, 5))
    runs = [timed(train) for _ in range(repeats)]
    model = runs[-1][0]
    peak = np.nan
    if memory:
        tracemalloc.start()
        train()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    certified = {
        "gap": getattr(model, "dual_gap_", np.nan),
        "objective": getattr(model, "objective_", np.nan),
    }
    return {"seconds": min(seconds for _, seconds in runs), **certified, "memory": peak}


def _awa(n_per_class):
    """All images of the ten classes, training and test together: 100 each."""
    task = load_task("awa")
    rows = np.concatenate([np.flatnonzero(task.y == name)[:n_per_class] for name in np.unique(task.y)])
    return task.X[rows], task.y[rows], task.scores[rows]
