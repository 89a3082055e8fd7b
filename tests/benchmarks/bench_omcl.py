"""Times of the online learners, sample by sample.

Promised: learning one sample at a time costs at most 1 ms per sample on six cues of numerals together.
"""

import time
from functools import partial

from runner import Group, main, promised

# isort: split
import numpy as np

from cuelearn.datasets import load_mfeat
from cuelearn.kernels import RBF
from cuelearn.omcl import OMCL, Flat, KernelPerceptron, ProjectronPlusPlus, Vote


def numerals(n):
    data = load_mfeat()
    rows = np.random.default_rng(0).permutation(data.y.size)[:n]
    X = data.X[rows] / data.X.std(axis=0)
    return X.astype(np.float32), data.y[rows], dict(data.cues)


def learners(cues, eta):
    each = lambda make: [(cue, make(RBF()), c) for cue, c in cues.items()]
    bounded = partial(ProjectronPlusPlus, eta=eta)
    return {
        "Flat, Projectron++ on all columns": Flat(bounded(RBF())),
        "OMCL-BM, all cues": OMCL(each(bounded)),
        "OMCL-PERC, all cues": OMCL(each(KernelPerceptron)),
        "Vote, all cues": Vote(each(bounded)),
    }


def one_by_one(model, X, y):
    """Seconds of each `partial_fit` with a single sample."""
    times = []
    for i in range(len(y)):
        began = time.perf_counter()
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        times.append(time.perf_counter() - began)
    return np.array(times)


def sample_by_sample(n, eta):
    """`partial_fit` with a sample at a time, after half of the samples has been learnt."""
    X, y, cues = numerals(n)
    half, calls, notes, times = y.size // 2, {}, {}, {}
    for name, model in learners(cues, eta).items():

        def run(name=name, model=model):
            model.partial_fit(X[:half], y[:half], classes=np.unique(y))
            times[name] = one_by_one(model, X[half:], y[half:])[1:]  # the first compiles
            return float(times[name].mean())

        def note(seconds, ratio, name=name, model=model):
            text = f"99% {1e3 * np.percentile(times[name], 99):.2f} ms, support {model._n_support()}"
            return f"{text}; {promised(1e-3)(seconds, ratio)}" if "OMCL" in name else text

        calls[name], notes[name] = run, note
    yield Group(f"{y.size} numerals, eta = {eta}: one sample, mean", calls, notes, once=True)


CASES = {"samples": (sample_by_sample, [{"n": 1200, "eta": 0.5}], [{"n": 96, "eta": 0.5}])}

if __name__ == "__main__":
    main(__doc__, CASES)
