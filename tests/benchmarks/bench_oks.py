"""Times of kernel selection: every method from features on.

Promised: two passes of OKS over 3,400 samples with 60 kernels in at most a twentieth of MuSVM's time. MuSVM
is given a single C, a twenty-first of what it has to try.
"""

from functools import partial

from runner import Group, main

# isort: split

from companion import oks as exp
from companion.oks import warm_up
from cuelearn.oks import OKS, OM1, SOM, AlignmentSVM, MuSVM, MuTron, select_then_fit


def against_musvm(n):
    (name,) = exp.pairs("keyword", 1)
    pair = exp.describe_pairs([name], 0, n, n_views=1 + n // 200)[name]
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


CASES = {"musvm": (against_musvm, [{"n": 3400}], [{"n": 60}])}

if __name__ == "__main__":
    main(__doc__, CASES)
