"""Time and memory of kernel rows: computed on demand, kept distances, resident stacks, checks; random data.

GB/s is what is written (or checked, or read) per second.
"""

from functools import partial

from runner import Group, main

# isort: split
import numpy as np

from cuelearn.datasets import load_pendigits
from cuelearn.kernels import RBF, Chi2, ExpDistance, KernelBank, Linear, Poly
from cuelearn.mkl import OBSCURE, UFOMKL, AverageKernelSVM


def group(title, calls):
    """Calls with the bytes that each writes or reads."""
    speed = lambda size: lambda seconds, ratio: f"{size / seconds / 1e9:.2f} GB/s"
    notes = {what: speed(size) for what, (_, size) in calls.items()}
    return Group(title, {what: call for what, (call, _) in calls.items()}, notes)


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
    exponents = -rng.random(out.shape, dtype=np.float32)
    calls = {
        "16 rows, kept distances": (partial(bank.rows_into, rng.permutation(n)[:16], out), out.nbytes),
        "the same number of exponentials in one NumPy call": (lambda: np.exp(exponents, out=out), out.nbytes),
    }
    yield group(f"{bank.n_kernels} kernels of 7 cues, n = {n}", calls)


def mnist_like(n):
    """Twelve kernels of four cues with 196 columns, nothing kept."""
    rng = np.random.default_rng(0)
    X = np.maximum(rng.standard_normal((n, 784), dtype=np.float32), 0)
    kernels = [
        (f"cue{c}-{name}", kernel, slice(196 * c, 196 * c + 196))
        for c in range(4)
        for name, kernel in [("linear", Linear()), ("poly", Poly()), ("rbf", RBF())]
    ]
    bank, rows = KernelBank(kernels, X, memory=1e9), rng.permutation(n)[:64]
    out = np.empty((12, 64, n), np.float32)
    calls = {
        "64 rows into a given array": (lambda: bank.rows_into(rows, out), out.nbytes),
        "64 rows into a new array": (lambda: bank.rows(rows), out.nbytes),
        "1 row": (lambda: bank.rows_into(rows[:1], out[:, :1]), out.nbytes // 64),
        "the four products alone (NumPy)": (
            lambda: [X[rows][:, s] @ X[:, s].T for _, _, s in kernels[::3]],
            out.nbytes // 3,
        ),
        "making the bank": (lambda: KernelBank(kernels, X, memory=1e9), X.nbytes),
    }
    yield group(f"12 kernels of 4 cues x 196, n = {n}", calls)


def resident(n, n_kernels):
    """A resident stack, three kernels to a cue, and the check of a given stack."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 50 * (n_kernels // 3)))
    kernels = [
        (f"cue{c}-{name}", kernel, slice(50 * c, 50 * c + 50))
        for c in range(n_kernels // 3)
        for name, kernel in [("linear", Linear()), ("rbf", RBF()), ("wide", RBF(factor=4.0))]
    ]
    stack = KernelBank(kernels, X, memory=4e9).stack
    bank, rows = KernelBank.from_stack(stack), rng.permutation(n)[:64]
    out = np.empty((len(stack), 64, n), np.float32)
    calls = {
        "one plain read of the stack (sum)": (stack.sum, stack.nbytes),
        "resident stack from X": (lambda: KernelBank(kernels, X, memory=4e9), stack.nbytes),
        "from_stack with validation": (lambda: KernelBank.from_stack(stack), stack.nbytes),
        "64 rows gathered": (lambda: bank.rows_into(rows, out), out.nbytes),
    }
    yield group(f"{len(stack)} kernels, n = {n}", calls)


def distances(n):
    """The distances that BLAS does not help with."""
    X, out = np.random.default_rng(0).random((n, 200)), np.empty((1, 64, n), np.float32)
    calls = {}
    for kernel in (Chi2(), ExpDistance("cityblock"), ExpDistance("euclidean")):
        bank = KernelBank([("k", kernel, slice(None))], X, memory=1e6)
        calls[f"{kernel}: 64 rows"] = partial(bank.rows_into, slice(0, 64), out), out.nbytes
    yield group(f"d = 200, n = {n}", calls)


def definite(n, n_given):
    """The check whether given kernels are positive semidefinite, beside the shortest fits; and for many given
    kernels, of which fewer samples are checked."""
    data = load_pendigits()
    X, y = data.X[data.train[:n]], data.y[data.train[:n]]
    stack = KernelBank([(name, RBF(), columns) for name, columns in data.cues.items()], X, memory=4e9).stack
    calls = {"check": (KernelBank.from_stack(stack)._find_indefinite, stack.nbytes)}
    for cls, options in (
        (OBSCURE, {"random_state": 0}),
        (UFOMKL, {"random_state": 0}),
        (AverageKernelSVM, {}),
    ):
        model = cls("precomputed", **options)
        calls[f"fit of {cls.__name__}"] = partial(model.fit, stack, y), stack.nbytes
    yield group(f"Pendigits, {len(stack)} kernels, n = {n}", calls)
    X = np.random.default_rng(0).normal(size=(680, 5))
    kernels = [(f"{f}", RBF(gamma=1.0 + f), slice(None)) for f in range(n_given)]
    stack = KernelBank(kernels, X, memory=8e9).stack
    check = KernelBank.from_stack(stack, validate=True)._find_indefinite
    yield group(f"{n_given} given kernels, n = 680", {"check": (check, stack.nbytes)})


CASES = {
    "scales": (many_scales, [{"n": 680, "n_scales": 200}], [{"n": 680, "n_scales": 20}]),
    "resident": (resident, [{"n": 3060, "n_kernels": 39}], [{"n": 100, "n_kernels": 6}]),
    "distances": (distances, [{"n": 10_000}], [{"n": 1000}]),
    "definite": (definite, [{"n": 7494, "n_given": 1400}], [{"n": 100, "n_given": 20}]),
    "mnist": (mnist_like, [{"n": 60_000}], [{"n": 1000}]),
}

if __name__ == "__main__":
    main(__doc__, CASES)
