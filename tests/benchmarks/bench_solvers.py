"""Times of the MKL solvers, one thread, warmed up: `make bench`, or this file with `--scale` for the large
runs too.

Every row is the median of several runs; a ratio is formed within each round, in which the two things it
compares run one after the other, and its median is shown. Times are those of training: a run's clock stops
while objective and gap are measured, and the whole call, with its certificate, stands beside it.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import subprocess
import sys
import time

import numpy as np
from bench_mkl import in_turn, peak_bytes, read_flat, simulated_rows, wall

import cuelearn  # noqa: F401  (places numba's cache)
from companion import mkl as experiments
from cuelearn import datasets
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import (
    OBSCURE,
    OM2,
    UFOMKL,
    MKLProblem,
    solve_obscure,
    solve_om2,
    solve_reference,
    solve_ufo,
)


def row(what, seconds, promised="", other=""):
    """Print one row of the table."""
    print(f"  {what:66s} {seconds:>12s}   {promised:24s} {other}", flush=True)


def caltech_sized(repeats, n=3060, n_kernels=39, n_classes=102):
    """OM-2, UFO-MKL and OBSCURE at the size of Caltech-101; simulated features with classes of differing
    difficulty per kernel."""
    labels, rows = simulated_rows(n, n_kernels, n_classes)
    bank = KernelBank.from_stack(rows.transpose(1, 0, 2), validate=False, memory=4e9)
    flat = rows.reshape(-1)
    read = wall(lambda: read_flat(flat))
    print(f"\nn = {n}, F = {n_kernels}, M = {n_classes}, float32, one thread (simulated features)")

    def epochs(solver, p, n_epochs, **options):
        problem = MKLProblem(bank, labels, n_classes, p=p, C=10.0)

        def run():
            result = solver(
                problem, n_epochs=n_epochs, rng=np.random.default_rng(0), certify=False, **options
            )
            return result.history.seconds.iloc[-1]

        return run

    for p in (1.01, 1.05, 1.5, 2.0):
        t = in_turn(repeats, [read, epochs(solve_om2, p, 1, shuffle=True)])
        ratio = np.median(t[:, 1] / t[:, 0])
        row(
            f"OM-2, one epoch, p = {p}",
            f"{np.median(t[:, 1]):.4f} s",
            "<= 2 plain reads",
            f"{ratio:.2f} plain reads; {1.5 / np.median(t[:, 1]):.0f} x MATLAB",
        )
    row("one plain read of the stack", f"{np.median(t[:, 0]):.4f} s")
    whole = wall(lambda: OM2("precomputed", p=1.05).fit(rows.transpose(1, 0, 2), labels))
    t = in_turn(repeats, [read, whole])
    ratio = np.median(t[:, 1] / t[:, 0])
    row(
        "OM2().fit with checks and certificate",
        f"{np.median(t[:, 1]):.4f} s",
        "<= 6 plain reads",
        f"{ratio:.2f}",
    )
    t = in_turn(repeats, [read, epochs(solve_om2, 1.01, 10, shuffle=True)])
    row(
        "OM-2, mean of ten epochs, p = 1.01",
        f"{np.median(t[:, 1]) / 10:.4f} s",
        "<= 2.5 plain reads",
        f"{np.median(t[:, 1] / t[:, 0]) / 10:.2f} plain reads",
    )
    for name, solver, matlab, options in (
        ("UFO-MKL, two epochs", solve_ufo, 2.6, {"n_epochs": 2}),
        (
            "OBSCURE, one online and two batch epochs",
            solve_obscure,
            14.6,
            {"n_epochs": 2, "n_epochs_online": 1},
        ),
    ):
        t = in_turn(max(3, repeats // 2), [epochs(solver, 1.05, **options)])
        row(name, f"{np.median(t):.4f} s", "", f"{matlab / np.median(t):.0f} x MATLAB ({matlab} s)")


def fit(estimator, bank, labels):
    """A fit that gives its seconds, ended at its tolerance."""
    seconds = wall(lambda: estimator.fit(bank, labels))()
    assert estimator.converged_
    return seconds


def certified(repeats):
    """Whole fits of OBSCURE with its defaults: epochs, then ascent in the dual to a gap of at most 1%."""
    print("\nOBSCURE().fit to a certified relative gap of 1%, one thread")
    digits, pens = datasets.load_mfeat(), datasets.load_pendigits()
    chosen = np.random.default_rng(0).permutation(2000)[:600]
    cues = [(name, RBF(), columns) for name, columns in list(digits.cues.items())[:4]]
    bank = KernelBank(cues, digits.X[chosen])
    times = {}
    for C in (0.1, 1, 10, 100, 1000):
        for p in (1.05, 1.25, 2.0, "auto"):
            model = OBSCURE("precomputed", C=C, p=p, random_state=0)
            times[C, p] = np.median([fit(model, bank, digits.y[chosen]) for _ in range(repeats)])
    (C, p), slowest = max(times.items(), key=lambda item: item[1])
    row("600 digits, 4 kernels, slowest of 5 C and 4 p", f"{slowest:.3f} s", "<= 0.3 s", f"C = {C}, p = {p}")

    whole = KernelBank(experiments.kernel_set("pendigits-4", pens), pens.X[pens.train])
    sizes, labels = (937, 1873, 3747, 7494), pens.y[pens.train]
    for C in (10, 100):
        model = OBSCURE("precomputed", C=C, p=1.05, random_state=0)
        seconds = [fit(model, whole.restrict(np.arange(n)), labels[:n]) for n in sizes]
        slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        row(
            f"7,494 pen digits, 4 kernels, C = {C}",
            f"{seconds[-1]:.2f} s",
            "",
            f"as n^{slope:.2f} from 937 on",
        )

    labels, rows = simulated_rows(3060, 39, 102)
    bank = KernelBank.from_stack(rows.transpose(1, 0, 2), validate=False, memory=4e9)
    seconds = fit(OBSCURE("precomputed", C=10, p=1.25, random_state=0), bank, labels)
    row("n = 3060, F = 39, M = 102, C = 10, p = 1.25", f"{seconds:.1f} s", "<= 60 s")


def digits(repeats, n=1000):
    """Digits of MNIST, 12 kernels."""
    task = experiments.load_task("mnist-12", n, 1, 0)
    stack = task.bank.stack
    print(f"\n{n:,} MNIST digits, 12 kernels, C = 10, p = 1.05, eta = 0.5, one thread")
    cases = (
        ("OM-2, one pass", solve_om2, OM2, {"n_epochs": 1}, 5, 120),
        (
            "OBSCURE, 5 + 20 epochs",
            solve_obscure,
            OBSCURE,
            {"n_epochs": 20, "n_epochs_online": 5, "eta": 0.5},
            40,
            1500,
        ),
        ("UFO-MKL, 20 epochs", solve_ufo, UFOMKL, {"n_epochs": 20}, 40, 1050),
    )
    for name, solver, estimator, options, promised, matlab in cases:
        problem = MKLProblem(task.bank, task.labels, 10, p=1.05, C=10.0)

        def train(solver=solver, problem=problem, options=options):
            return solver(
                problem, rng=np.random.default_rng(0), certify=False, **options
            ).history.seconds.iloc[-1]

        whole = wall(lambda s=solver, q=problem, o=options: s(q, rng=np.random.default_rng(0), **o))
        fit = wall(
            lambda e=estimator, o=options: e("precomputed", p=1.05, C=10.0, random_state=0, **o).fit(
                stack, task.labels
            )
        )
        t = 1e3 * np.median(in_turn(repeats, [train, whole, fit]), axis=0)
        row(
            name,
            f"{t[0]:.1f} ms",
            f"<= {promised} ms",
            f"with certificate {t[1]:.1f} ms, estimator.fit {t[2]:.1f} ms; {matlab / t[0]:.0f} x MATLAB "
            f"({matlab} ms)",
        )


def reference():
    """The certified optimum at C = 100."""
    task = experiments.load_task("mnist-12", 1000, 1, 0)
    print("\nsolve_reference, 1,000 MNIST digits, 12 kernels, C = 100, tol = 1e-4, one thread")
    for p in (1.05, 1.25, 2.0):
        began = time.perf_counter()
        result = solve_reference(MKLProblem(task.bank, task.labels, 10, p=p, C=100.0), tol=1e-4)
        seconds = time.perf_counter() - began
        row(
            f"p = {p}",
            f"{seconds:.1f} s",
            "< 60 s",
            f"relative gap {result.dual_gap / result.objective:.1e}, {result.n_iter} rounds",
        )


def many_kernels(method, n_epochs=10):
    """1,400 kernels on 510 samples."""
    p = "auto" if method == "UFOMKL" else 1.01
    found = experiments.many_kernels(
        method, 1000.0, p, n_epochs, 0, task="objects-102-1400", n_kernels=1400, n_train=510, n_test=306
    )
    print(
        f"{found['seconds']:.1f} s, test error {100 * found['test_error']:.1f}%, peak "
        f"{peak_bytes() / 1e9:.2f} GB"
    )


def all_digits(n_epochs=2):
    """OBSCURE on all 60,000 digits, nothing precomputed."""
    curve = experiments.all_of_mnist(60000, 10000, 10.0, 1.25, n_epochs, 0)
    print(
        f"{curve.seconds.iloc[-1]:.0f} s, test error {100 * curve.test_error.iloc[-1]:.2f}%, peak "
        f"{peak_bytes() / 1e9:.2f} GB"
    )


def in_process(call):
    """Run one of the functions above in a process of its own, for its peak memory."""
    done = subprocess.run([sys.executable, __file__, "--only", call], capture_output=True, text=True)
    return (
        done.stdout.strip().splitlines()[-1] if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
    )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--scale", action="store_true", help="also OBSCURE on all 60,000 digits (minutes)")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        name, _, argument = options.only.partition(":")
        {"many": many_kernels, "all": lambda _: all_digits()}[name](argument)
        return
    datasets.load_mnist(n_train=1)
    caltech_sized(options.repeats)
    certified(options.repeats)
    digits(options.repeats)
    reference()
    print("\nscale, each in a process of its own")
    for method in ("UFOMKL", "OBSCURE"):
        row(f"{method}, 1,400 kernels on 680 samples, 10 epochs", "", "< 2 GB", in_process(f"many:{method}"))
    if options.scale:
        row("OBSCURE, 60,000 digits, 12 kernels, 1 + 1 epochs", "", "< 3 GB", in_process("all:"))


if __name__ == "__main__":
    main()
