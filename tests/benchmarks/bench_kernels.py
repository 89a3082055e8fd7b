"""Time and memory of kernel rows: computed on demand, kept distances, resident stacks, checks.

Run ``python tests/benchmarks/bench_kernels.py`` (half a minute) or with ``--quick`` (smaller sizes).
Every case is warmed up; times are medians of repeated runs on random data of the stated size.  GB/s is
what is written (or checked, or read) per second; the peak of memory is that of the case's own process so
far.  The number of threads is BLAS's (``OPENBLAS_NUM_THREADS``).
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from functools import partial

import numpy as np

from cuelearn.datasets import load_pendigits
from cuelearn.kernels import RBF, Chi2, ExpDistance, KernelBank, Linear, Poly
from cuelearn.mkl import OBSCURE, UFOMKL, AverageKernelSVM


def median_seconds(function, repeats):
    """Return the median time of `function`, after one call that is not counted."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def peak_gigabytes():
    """Return the largest resident memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def many_scales(n, n_scales):
    """1,400 kernels from seven cues: rows from kept distances."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 7 * 40))
    kernels = [
        (f"cue{c}-{g}", RBF(factor=2.0 ** (g / 20 - 5)), slice(40 * c, 40 * c + 40))
        for c in range(7)
        for g in range(n_scales)
    ]
    bank = KernelBank(kernels, X, memory=2e8)
    assert not bank.resident
    out = np.empty((bank.n_kernels, 16, n), np.float32)
    indices = rng.permutation(n)[:16]
    seconds = median_seconds(lambda: bank.rows_into(indices, out), 15)
    exponentials = np.random.default_rng(1).random(out.shape, dtype=np.float32) * -1
    plain = median_seconds(lambda: np.exp(exponentials, out=out), 5)
    return [
        (f"{bank.n_kernels} kernels of 7 cues, n = {n}: 16 rows, kept distances", seconds, out.nbytes),
        ("  the same number of exponentials in one NumPy call, one thread", plain, out.nbytes),
    ]


def mnist_like(n):
    """Twelve kernels of four cues with 196 columns, nothing kept."""
    rng = np.random.default_rng(0)
    X = np.maximum(rng.standard_normal((n, 784), dtype=np.float32), 0)
    kernels = [
        (f"cue{c}-{name}", kernel, slice(196 * c, 196 * c + 196))
        for c in range(4)
        for name, kernel in [("linear", Linear()), ("poly", Poly()), ("rbf", RBF())]
    ]
    start = time.perf_counter()
    bank = KernelBank(kernels, X, memory=1e9)
    made = time.perf_counter() - start
    out = np.empty((12, 64, n), np.float32)
    indices = rng.permutation(n)[:64]
    seconds = median_seconds(lambda: bank.rows_into(indices, out), 7)
    fresh = median_seconds(lambda: bank.rows(indices), 7)
    one = median_seconds(lambda: bank.rows_into(indices[:1], out[:, :1]), 7)
    product = median_seconds(lambda: [X[indices][:, s] @ X[:, s].T for _, _, s in kernels[::3]], 5)
    return [
        (f"12 kernels of 4 cues x 196, n = {n}: making the bank", made, X.nbytes),
        ("  64 rows into a given array", seconds, out.nbytes),
        ("  64 rows into a new array", fresh, out.nbytes),
        ("  1 row", one, out.nbytes // 64),
        ("  the four products alone (NumPy, all threads)", product, out.nbytes // 3),
    ]


def resident(n, F):
    """A resident stack of F kernels, three of them to a cue, and the check of a given one."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 50 * (F // 3)))
    kernels = [
        (f"cue{c}-{name}", kernel, slice(50 * c, 50 * c + 50))
        for c in range(F // 3)
        for name, kernel in [("linear", Linear()), ("rbf", RBF()), ("wide", RBF(factor=4.0))]
    ]
    made = median_seconds(lambda: KernelBank(kernels, X, memory=4e9), 3)
    stack = KernelBank(kernels, X, memory=4e9).stack
    check = median_seconds(lambda: KernelBank.from_stack(stack), 3)
    read = median_seconds(lambda: stack.sum(), 3)
    rows = KernelBank.from_stack(stack)
    out = np.empty((len(stack), 64, n), np.float32)
    indices = rng.permutation(n)[:64]
    gather = median_seconds(lambda: rows.rows_into(indices, out), 15)
    return [
        (f"{len(stack)} kernels, n = {n}: resident stack from X", made, stack.nbytes),
        ("  from_stack with validation", check, stack.nbytes),
        ("  one plain read of the stack (sum, one thread)", read, stack.nbytes),
        ("  64 rows gathered", gather, out.nbytes),
    ]


def distances(n):
    """The distances that BLAS does not help with."""
    X = np.random.default_rng(0).random((n, 200))
    rows = []
    for kernel in (Chi2(), ExpDistance("cityblock"), ExpDistance("euclidean")):
        bank = KernelBank([("k", kernel, slice(None))], X, memory=1e6)
        out = np.empty((1, 64, n), np.float32)
        seconds = median_seconds(lambda: bank.rows_into(slice(0, 64), out), 7)
        rows.append((f"{kernel}, d = 200, n = {n}: 64 rows", seconds, out.nbytes))
    return rows


def definite(n):
    """How long it takes to see that given kernels are kernels, beside the shortest fits on Pendigits."""
    data = load_pendigits()
    chosen = data.train[:n]
    X, y = data.X[chosen], data.y[chosen]
    triples = [(name, RBF(), columns) for name, columns in data.cues.items()]
    stack = KernelBank(triples, X, memory=4e9).stack
    bank = KernelBank.from_stack(stack)
    check = median_seconds(bank._find_indefinite, 7)
    rows = [
        (f"Pendigits, {len(stack)} kernels, n = {n}: are they positive semidefinite?", check, stack.nbytes)
    ]
    for model in (OBSCURE(random_state=0), UFOMKL(random_state=0), AverageKernelSVM()):
        seconds = median_seconds(partial(model.set_params(kernels="precomputed").fit, stack, y), 1)
        share = f"  fit of {type(model).__name__}, of which that is {check / seconds:.2%}"
        rows.append((share, seconds, stack.nbytes))
    return rows


def many_given(n, F):
    """The same for many given kernels, of which fewer samples are looked at."""
    X = np.random.default_rng(0).normal(size=(n, 5))
    stack = KernelBank([(f"{f}", RBF(gamma=1.0 + f), slice(None)) for f in range(F)], X, memory=8e9).stack
    check = median_seconds(KernelBank.from_stack(stack, validate=True)._find_indefinite, 3)
    return [(f"{F} given kernels, n = {n}: are they positive semidefinite?", check, stack.nbytes)]


CASES = {
    "scales": (many_scales, (680, 20), (680, 200)),
    "resident": (resident, (500, 39), (3060, 39)),
    "distances": (distances, (1000,), (10_000,)),
    "definite": (definite, (1000,), (7494,)),
    "many given": (many_given, (680, 200), (680, 1400)),
    "mnist": (mnist_like, (6_000,), (60_000,)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--case", choices=CASES, help="one case only, in this process")
    arguments = parser.parse_args()
    if arguments.case is None:  # a process each: the peak of memory is then the case's own
        print(f"{'case':80s} {'ms':>9s} {'GB/s':>6s} {'peak GB':>8s}", flush=True)
        for name in CASES:
            command = [sys.executable, __file__, "--case", name]
            subprocess.run(command + ["--quick"] * arguments.quick, check=True)
        return
    case, quick, full = CASES[arguments.case]
    for what, seconds, size in case(*(quick if arguments.quick else full)):
        speed = size / seconds / 1e9
        print(f"{what:80s} {1e3 * seconds:9.2f} {speed:6.2f} {peak_gigabytes():8.2f}", flush=True)


if __name__ == "__main__":
    main()
