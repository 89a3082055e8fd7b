"""Times of kernel selection, one thread, warmed up: `make bench`, or this file alone (a minute); `--smoke`
for tiny sizes.

What is promised: two passes of OKS over 3,400 samples with 60 kernels in at most a twentieth of MuSVM's time.
MuSVM is given a single C, a twenty-first of what it has to try. Then the compiled pass beside plain NumPy on
the same kernel matrices, in turn within a round. The table is written to build/bench/oks.csv as well.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys
from pathlib import Path

import numpy as np
from bench_mkl import Table, command_line, in_turn, wall

import cuelearn  # noqa: F401  (places numba's cache)
from companion.oks import tasks
from cuelearn.oks import OKS, OM1, SOM, AlignmentSVM, MuSVM, MuTron, select_then_fit

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oks"))
from oks_twins import make_stack, run_om1, run_selection

TABLE = Path(__file__).resolve().parents[2] / "build" / "bench" / "oks.csv"
QUIET = {"random_state": 0}


def against_musvm(table, n, repeats):
    """Every method from features on, ratios to OKS."""
    (name,) = tasks.pairs("keyword", 1)
    pair = tasks.describe_pairs([name], 0, n, n_views=1 + n // 200)[name]
    X, y, kernels = pair.X_train[:n], pair.y_train[:n], pair.kernels
    tasks.warm_up()
    print(
        f"\n{name}: {len(y)} views of emoji, {len(kernels)} kernels on {X.shape[1]} columns; "
        "from the features on, a single C"
    )
    calls = {
        "OKS, two passes": lambda: OKS(kernels, **QUIET).fit(X, y),
        "SOM, two passes": lambda: SOM(kernels, **QUIET).fit(X, y),
        "OKS-SVM": lambda: select_then_fit(OKS(kernels, **QUIET), X, y, C=1.0, random_state=0),
        "OM-1, one pass": lambda: OM1(kernels, **QUIET).fit(X, y),
        "MuTron, one pass": lambda: MuTron(kernels, **QUIET).fit(X, y),
        "AlSVM": lambda: AlignmentSVM(kernels, C=1.0, memory=4e9, random_state=0).fit(X, y),
        "MuSVM": lambda: MuSVM(kernels, C=1.0, memory=4e9, random_state=0).fit(X, y),
    }
    t = in_turn(repeats, [wall(call) for call in calls.values()])
    for k, what in enumerate(calls):
        ratio = float(np.median(t[:, k] / t[:, 0]))
        note = f"promised >= 20 times OKS: {'kept' if ratio >= 20 else 'NOT KEPT'}" if what == "MuSVM" else ""
        table.add(what, float(np.median(t[:, k])), least=float(t[:, k].min()), ratio=ratio, note=note)


def against_plain(table, n, m, repeats):
    """Compiled passes beside the plain twins."""
    print(f"\n{n} samples, {m} kernel matrices (simulated), compiled and plain NumPy")
    K, y = make_stack(n, m, seed=0)
    signs = np.where(y > 0, 1.0, -1.0)
    pairs = {
        "OKS, two passes": (
            lambda: OKS("precomputed", **QUIET).fit(K, signs),
            lambda: run_selection("oks", K, signs, delta=(0.5, 0.2)),
        ),
        "SOM, two passes": (
            lambda: SOM("precomputed", **QUIET).fit(K, signs),
            lambda: run_selection("som", K, signs, beta=0.8),
        ),
        "OM-1, one pass": (lambda: OM1("precomputed", **QUIET).fit(K, signs), lambda: run_om1(K, signs)),
    }
    for name, (compiled, plain) in pairs.items():
        t = in_turn(repeats, [wall(compiled), wall(plain)])
        ratio = float(np.median(t[:, 1] / t[:, 0]))
        table.add(
            f"{name}, compiled",
            float(np.median(t[:, 0])),
            least=float(t[:, 0].min()),
            note=f"plain takes {ratio:.0f} times as long",
        )
        table.add(f"{name}, plain", float(np.median(t[:, 1])), least=float(t[:, 1].min()), ratio=ratio)


def main(arguments=None):
    """Print the table and write it."""
    options = command_line(__doc__, TABLE, arguments, 3, samples=(3400, "training samples"))
    table = Table()
    against_musvm(table, 60 if options.smoke else options.samples, options.repeats)
    against_plain(table, 60 if options.smoke else 400, 4 if options.smoke else 12, options.repeats)
    table.write(options.table)


if __name__ == "__main__":
    main()
