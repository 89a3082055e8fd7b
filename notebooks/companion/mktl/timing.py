"""Training time at the size of the thesis's Animals with Attributes: ten new classes, forty priors."""

import tracemalloc

import numpy as np

from companion.mktl.compare import model_of
from companion.mktl.tasks import load_task
from companion.protocol import timed
from cuelearn.kernels import KernelBank


def random_problem(n_classes, n_priors, n_per_class, seed):
    """Classes on random means, and priors of which 15% know something of a class, scores around -1."""
    rng = np.random.default_rng([seed, 64])
    y = np.repeat(np.arange(n_classes), n_per_class)
    X = rng.normal(size=(y.size, 20)) + rng.normal(size=(n_classes, 20))[y]
    known = rng.normal(size=(n_classes, n_priors)) * (rng.random((n_classes, n_priors)) < 0.15)
    return X, y, 0.5 * (known[y] + rng.normal(size=(y.size, n_priors))) - 1.0


def training_time(kind, method, n_per_class, C, p, effort, seed, memory=False):
    """CPU seconds of a training on "random" or "awa", kernel matrix included, after a small one.

    Memory: bytes at the peak of a training beside what went in, NaN where it is not measured.
    """
    if kind == "random":
        X, y, scores = random_problem(10, 40, n_per_class, seed)
    else:  # all images of the ten classes, training and test together: 100 each
        task = load_task("awa")
        rows = np.concatenate([np.flatnonzero(task.y == name)[:n_per_class] for name in np.unique(task.y)])
        X, y, scores = task.X[rows], task.y[rows], task.scores[rows]

    def train(rows=slice(None)):
        model = model_of(method, {"C": C, "p": p}, effort, seed)
        return model.fit(KernelBank(None, X[rows]), y[rows], scores=scores[rows])

    train(slice(None, None, 5))
    model, seconds = timed(train)
    peak = np.nan
    if memory:
        tracemalloc.start()
        train()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    gap = getattr(model, "dual_gap_", np.nan)
    objective = getattr(model, "objective_", np.nan)
    return {"seconds": seconds, "gap": gap, "objective": objective, "memory": peak}
