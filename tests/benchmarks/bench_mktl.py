"""Times of transfer learning, from features and scores on.

Promised: 10 new classes, 100 samples each, 40 priors, one RBF kernel, a certified relative gap of 1e-3 in
under 2 seconds; the thesis says under a minute. All samples are simulated.
"""

import inspect
from functools import partial

from runner import Group, main, promised

# isort: split
from companion.mktl import random_problem
from cuelearn.kernels import RBF
from cuelearn.mktl import MKTL, AverageTL, MultiKT, NoTransfer, PriorFeatures

CUES = [("phog", RBF(), slice(None))]


def methods(n_classes, per_class, n_priors):
    X, y, S = random_problem(n_classes, n_priors, per_class, 0)
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


CASES = {
    "methods": (
        methods,
        [{"n_classes": 10, "per_class": 100, "n_priors": 40}],
        [{"n_classes": 3, "per_class": 8, "n_priors": 5}],
    )
}

if __name__ == "__main__":
    main(__doc__, CASES)
