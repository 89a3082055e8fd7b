"""Times of transfer learning, from features and scores on, and the memory that the scores take.

Promised: 10 new classes, 100 samples each, 40 priors, one RBF kernel, a certified relative gap of 1e-3 in
under 2 seconds; the thesis says under a minute. All samples are simulated.
"""

import inspect
import tracemalloc
from functools import partial

from runner import Group, main, promised

# isort: split
import numpy as np

from cuelearn.kernels import RBF, KernelBank
from cuelearn.mktl import MKTL, AverageTL, MultiKT, NoTransfer, PriorFeatures
from cuelearn.mktl.mktl import solve_mktl
from cuelearn.mktl.problem import TransferProblem

CUES = [("phog", RBF(), slice(None))]


def simulated(n_classes, per_class, n_priors, n_columns=252):
    """Features that tell the classes apart a little, and scores of priors of which a third knows something of
    a class."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), per_class)
    X = rng.normal(size=(y.size, n_columns)) + 0.15 * rng.normal(size=(n_classes, n_columns))[y]
    S = rng.normal(size=(y.size, n_priors)) - 1.0
    known = np.arange(0, n_priors, 3)
    S[:, known] += rng.normal(size=(n_classes, known.size))[y]
    return X, y, S


def methods(n_classes, per_class, n_priors):
    """Every method, ratios to MKTL."""
    X, y, S = simulated(n_classes, per_class, n_priors)
    models = {
        "MKTL, gap <= 1e-3": MKTL(CUES),
        "MKTL, OBSCURE alone": MKTL(CUES, tol=None),
        "MKTL, gap <= 1e-3, C = 100": MKTL(CUES, C=100.0),
        "MKTL, gap <= 1e-3, p = 1.01": MKTL(CUES, p=1.01),
        **{cls.__name__: cls(CUES) for cls in (MultiKT, AverageTL, PriorFeatures, NoTransfer)},
    }
    for model in models.values():
        if "random_state" in inspect.signature(type(model)).parameters:
            model.set_params(random_state=0)
    calls = {what: partial(model.fit, X, y, scores=S) for what, model in models.items()}
    gap = lambda model: lambda *_: f"relative gap {model.dual_gap_ / model.objective_:.1e}"
    notes = {what: gap(model) for what, model in models.items() if what.startswith("MKTL")}
    notes["MKTL, gap <= 1e-3"] = promised(2.0)
    yield Group(f"{n_classes} new classes of {per_class} samples, {n_priors} priors", calls, notes)


def growth(n_classes, per_class, counts):
    """OBSCURE alone against the number of priors: time, and the peak of memory besides kernel and scores."""
    X, y, S = simulated(n_classes, per_class, max(counts))
    bank, calls, notes = KernelBank(CUES, X), {}, {}
    for k in counts:
        problem = TransferProblem(bank, y, n_classes, S[:, :k], p="auto", C=1.0, loss="multiclass")
        solve = partial(solve_mktl, problem, n_epochs_online=1, n_epochs=2, tol=0.1)
        solve(rng=np.random.default_rng(0))
        tracemalloc.start()
        solve(rng=np.random.default_rng(0))
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        model = MKTL(CUES, tol=None, random_state=0)
        calls[f"{k} priors"] = partial(model.fit, X, y, scores=S[:, :k] if k else None)
        full = 8e-6 * k * n_classes * y.size
        notes[f"{k} priors"] = f"{peak:.2f} MB; a number for each group and sample would be {full:.1f} MB"
    yield Group(f"{n_classes} new classes of {per_class} samples, OBSCURE alone", calls, notes)


SIZES, TINY = {"n_classes": 10, "per_class": 100}, {"n_classes": 3, "per_class": 8}
CASES = {
    "methods": (methods, [{**SIZES, "n_priors": 40}], [{**TINY, "n_priors": 5}]),
    "growth": (growth, [{**SIZES, "counts": (0, 40, 400)}], [{**TINY, "counts": (0, 4)}]),
}

if __name__ == "__main__":
    main(__doc__, CASES)
