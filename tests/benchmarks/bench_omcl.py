"""Times of the online learners: sample by sample, and by the size of the support set.

Promised: learning one sample at a time costs at most 1 ms per sample on six cues of numerals together.
"""

import time
from functools import partial

from runner import Group, main, promised

# isort: split
import numpy as np

from cuelearn.datasets import load_mfeat
from cuelearn.kernels import RBF, Chi2
from cuelearn.omcl import (
    OMCL,
    Flat,
    KernelPerceptron,
    OnlineGradientDescent,
    PassiveAggressive,
    Projectron,
    ProjectronPlusPlus,
    Vote,
)


def numerals(n):
    """Six cues of handwritten numerals in random order, in float32."""
    data = load_mfeat()
    rows = np.random.default_rng(0).permutation(data.y.size)[:n]
    X = data.X[rows] / data.X.std(axis=0)
    return X.astype(np.float32), data.y[rows], dict(data.cues)


def learners(cues, eta):
    """Every learner of the chapter, on the first cue where it takes a single one."""
    first, columns = next(iter(cues.items()))
    each = lambda make: [(cue, make(RBF()), c) for cue, c in cues.items()]
    projectron = partial(ProjectronPlusPlus, eta=eta)
    return {
        f"KernelPerceptron, {first}": (KernelPerceptron(RBF()), columns),
        f"Projectron, {first}": (Projectron(RBF(), eta=eta), columns),
        f"ProjectronPlusPlus, {first}": (projectron(RBF()), columns),
        "PassiveAggressive, all columns": (PassiveAggressive(), slice(None)),
        "OnlineGradientDescent, all columns": (OnlineGradientDescent(), slice(None)),
        "OMCL-BM, all cues": (OMCL(each(projectron)), slice(None)),
        "OMCL-PERC, all cues": (OMCL(each(KernelPerceptron)), slice(None)),
        "Vote, all cues": (Vote(each(projectron)), slice(None)),
        "Flat, Projectron++ on all columns": (Flat(projectron(RBF())), slice(None)),
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
    for name, (model, columns) in learners(cues, eta).items():

        def run(name=name, model=model, columns=columns):
            part = np.ascontiguousarray(X[:, columns])
            model.partial_fit(part[:half], y[:half], classes=np.unique(y))
            times[name] = one_by_one(model, part[half:], y[half:])[1:]  # the first compiles
            return float(times[name].mean())

        def note(seconds, ratio, name=name, model=model):
            text = f"99% {1e3 * np.percentile(times[name], 99):.2f} ms, support {model._n_support()}"
            return f"{text}; {promised(1e-3)(seconds, ratio)}" if "OMCL" in name else text

        calls[name], notes[name] = run, note
    yield Group(f"{y.size} numerals, eta = {eta}: one sample, mean", calls, notes, once=True)


def support_sizes(sizes, d=512):
    """Cost of a sample against the size of the support set, at its dearest: every sample is a mistake that is
    projected or joins; labels at random."""
    rng, calls, notes = np.random.default_rng(0), {}, {}
    for size in sizes:
        X, y = rng.dirichlet(np.full(d, 0.05), 2 * size).astype(np.float32), rng.integers(0, 5, 2 * size)
        new = rng.dirichlet(np.full(d, 0.05), 50).astype(np.float32)
        for make in (KernelPerceptron, partial(ProjectronPlusPlus, eta=0.3)):
            model, start = make(Chi2(scale=1.0), record=False), 0
            while start < len(X) and (start == 0 or len(model.support_) < size):
                model.partial_fit(X[start : start + 50], y[start : start + 50], classes=range(5))
                start += 50
            name = f"{type(model).__name__}, {model._n_support()} support samples"
            calls[name] = lambda model=model, new=new, y=y: float(np.median(one_by_one(model, new, y[:50])))
    yield Group(f"one sample of {d} columns, chi-squared kernel, median of 50", calls, notes, once=True)


CASES = {
    "samples": (sample_by_sample, [{"n": 1200, "eta": 0.5}], [{"n": 96, "eta": 0.5}]),
    "support": (support_sizes, [{"sizes": (125, 250, 500, 1000, 2000)}], [{"sizes": (60,)}]),
}

if __name__ == "__main__":
    main(__doc__, CASES)
