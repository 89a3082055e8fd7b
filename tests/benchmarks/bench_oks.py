"""Times of kernel selection: every method from features on, and the compiled passes beside plain NumPy.

Promised: two passes of OKS over 3,400 samples with 60 kernels in at most a twentieth of MuSVM's time. MuSVM
is given a single C, a twenty-first of what it has to try.
"""

import sys
from functools import partial

from runner import TESTS, Group, main

# isort: split
import numpy as np

from companion.oks import tasks
from companion.oks.compare import warm_up
from cuelearn.oks import OKS, OM1, SOM, AlignmentSVM, MuSVM, MuTron, select_then_fit

sys.path.insert(0, str(TESTS / "oks"))
from oks_twins import make_stack, run_om1, run_selection


def against_musvm(n):
    """Every method from features on, ratios to OKS."""
    (name,) = tasks.pairs("keyword", 1)
    pair = tasks.describe_pairs([name], 0, n, n_views=1 + n // 200)[name]
    X, y, kernels = pair.X_train[:n], pair.y_train[:n], pair.kernels
    warm_up()
    single = {"C": 1.0, "memory": 4e9}
    calls = {"OKS, two passes": lambda: OKS(kernels, random_state=0).fit(X, y)}
    calls["OKS-SVM"] = lambda: select_then_fit(OKS(kernels, random_state=0), X, y, C=1.0, random_state=0)
    for cls, options in ((SOM, {}), (OM1, {}), (MuTron, {}), (AlignmentSVM, single), (MuSVM, single)):
        calls[cls.__name__] = partial(cls(kernels, random_state=0, **options).fit, X, y)
    note = lambda _, ratio: f"promised >= 20 times OKS: {'kept' if ratio >= 20 else 'NOT KEPT'}"
    title = f"{name}: {len(y)} views of emoji, {len(kernels)} kernels, {X.shape[1]} columns, a single C"
    yield Group(title, calls, {"MuSVM": note})


def against_plain(n, n_kernels):
    """Compiled passes beside the plain twins."""
    K, y = make_stack(n, n_kernels, seed=0)
    signs = np.where(y > 0, 1.0, -1.0)
    pairs = {
        "OKS, two passes": (OKS, lambda: run_selection("oks", K, signs, delta=(0.5, 0.2))),
        "SOM, two passes": (SOM, lambda: run_selection("som", K, signs, beta=0.8)),
        "OM-1, one pass": (OM1, lambda: run_om1(K, signs)),
    }
    for name, (cls, plain) in pairs.items():
        compiled = partial(cls("precomputed", random_state=0).fit, K, signs)
        title = f"{name}: {n} samples, {n_kernels} kernel matrices (simulated)"
        yield Group(title, {"compiled": compiled, "plain NumPy": plain})


CASES = {
    "musvm": (against_musvm, [{"n": 3400}], [{"n": 60}]),
    "plain": (against_plain, [{"n": 400, "n_kernels": 12}], [{"n": 60, "n_kernels": 4}]),
}

if __name__ == "__main__":
    main(__doc__, CASES)
