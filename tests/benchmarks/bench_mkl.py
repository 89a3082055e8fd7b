"""How the MKL solvers get their kernel rows: order of a stack in memory, rows on demand, peaks of memory.

``python tests/benchmarks/bench_mkl.py`` (two minutes), ``--scale`` for all 60,000 digits too, ``--smoke`` for
tiny sizes. The table is written to build/bench/mkl.csv as well. What the solvers promise at fixed sizes is
timed in bench_solvers.py; here stands why: where the time of a pass goes, what a smaller budget costs, and
how many kernel rows an epoch computes.

Things to compare run in turn within each round, after one round to warm up; a time is the median of the
rounds with the least in brackets, a ratio the median of the rounds' ratios. One thread unless the environment
says otherwise. Each run on demand has a process of its own, whose peak of memory is shown.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from numba import njit

import cuelearn  # noqa: F401  (places numba's cache)
from companion.mkl import kernel_set
from cuelearn import datasets
from cuelearn.kernels import RBF, ExpDistance, KernelBank
from cuelearn.mkl import OBSCURE, UFOMKL
from cuelearn.mkl.om2 import solve_om2
from cuelearn.mkl.problem import MKLProblem

TABLE = Path(__file__).resolve().parents[2] / "build" / "bench" / "mkl.csv"


def peak_bytes():
    """Largest resident memory of this process since it began.

    On Linux getrusage would count the memory of the process that started this one.
    """
    try:
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class Table:
    """Rows that are printed as they come and written as CSV."""

    def __init__(self):
        self.rows = []

    def add(self, what, seconds, *, least=None, ratio=None, note="", **numbers):
        shown = f"{1e3 * seconds:10.1f} ms" + (f" ({1e3 * least:.1f})" if least is not None else "")
        print(f"  {what:62s} {shown:24s} {'' if ratio is None else f'{ratio:.2f} x'}  {note}", flush=True)
        self.rows.append(
            {"what": what, "seconds": seconds, "least_seconds": least, "ratio": ratio, **numbers}
        )

    def write(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(self.rows).to_csv(path, index=False)


# ------------------------------------------------------------------ a stack in memory


@njit(fastmath=True)
def read_flat(values):
    """One plain read: the sum of all entries as they lie in memory."""
    total = values[0]
    for i in range(1, values.size):
        total += values[i]
    return total


@njit(fastmath=True)
def read_visits(rows, order):
    """The same sum sample by sample: all kernels' rows of one, then of the next in the order of the
    visits."""
    total = rows[0, 0, 0] * 0
    for i in order:
        for j in range(rows.shape[1]):
            row = rows[i, j]
            for k in range(row.size):
                total += row[k]
    return total


def command_line(about, table, arguments=None, repeats=5, **more):
    """What is asked for: options of all benchmarks, and further numbers by (default, help)."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: shows that all of it runs")
    parser.add_argument("--table", type=Path, default=table, help="where the CSV goes (default: %(default)s)")
    for name, (default, text) in more.items():
        kind = {"action": "store_true"} if default is False else {"type": type(default), "default": default}
        parser.add_argument(f"--{name}", help=text, **kind)
    options = parser.parse_args(arguments)
    if options.smoke:
        options.repeats = 1
        options.table = table.with_stem("smoke") if options.table == table else options.table
    return options


def wall(call):
    """`call` as a function that returns its own wall time."""

    def timed():
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    return timed


def in_turn(repeats, calls):
    """Seconds, shape (repeats, number of calls), of calls that return their seconds, after one round to warm
    up."""
    for call in calls:
        call()
    return np.array([[call() for call in calls] for _ in range(repeats)])


def simulated_rows(n, n_kernels, n_classes):
    """Labels and RBF kernels of simulated features, shape (n, n_kernels, n): classes differ, more in some
    kernels than in others."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) * n_classes // n
    rows = np.empty((n, n_kernels, n), np.float32)
    for j in range(n_kernels):
        X = rng.normal(size=(n_classes, 30))[labels] * rng.uniform(0.3, 1.2) + rng.normal(size=(n, 30))
        squares = (X**2).sum(axis=1)
        d = np.maximum(squares[:, None] + squares - 2.0 * X @ X.T, 0.0)
        rows[:, j] = np.exp(-0.5 * (d + d.T) / d.mean())
        rows[np.arange(n), j, np.arange(n)] = 1.0
    return labels, rows


def stack_orders(table, repeats, n, n_kernels, n_classes):
    """OM-2 on a stack in either order in memory, beside plain reads of it."""
    print(
        f"\nn = {n}, F = {n_kernels}, M = {n_classes}, float32 (simulated features); ratios to the plain read"
    )
    labels, rows = simulated_rows(n, n_kernels, n_classes)
    order = np.random.default_rng(1).permutation(n)
    reads = {
        "plain read": wall(lambda: read_flat(rows.reshape(-1))),
        "plain read in the order of the visits": wall(lambda: read_visits(rows, order)),
    }

    def epochs(bank, p, n_epochs, shuffle=True):
        problem = MKLProblem(bank, labels, n_classes, p=p)

        def run():
            result = solve_om2(
                problem, n_epochs=n_epochs, shuffle=shuffle, rng=np.random.default_rng(0), certify=False
            )
            return result.history["seconds"].iloc[-1] / n_epochs

        return run

    by_sample = KernelBank.from_stack(rows.transpose(1, 0, 2), validate=False, memory=4e9)
    cases = {
        f"OM-2, one epoch, rows of a sample adjacent, p = {p}": epochs(by_sample, p, 1)
        for p in (1.01, 1.05, 1.5, 2.0)
    }
    cases["OM-2, mean of ten epochs, rows of a sample adjacent, p = 1.01"] = epochs(by_sample, 1.01, 10)
    calls = {**reads, **cases}
    show(table, calls, in_turn(repeats, calls.values()))
    del by_sample

    by_kernel = KernelBank.from_stack(
        np.ascontiguousarray(rows.transpose(1, 0, 2)), validate=False, memory=4e9
    )
    calls = {"plain read, again": reads["plain read"]}
    calls["OM-2, one epoch, kernel after kernel, p = 1.01"] = epochs(by_kernel, 1.01, 1)
    calls["OM-2, one epoch in the given order, kernel after kernel"] = epochs(
        by_kernel, 1.01, 1, shuffle=False
    )
    calls["OM-2, mean of ten epochs, kernel after kernel, p = 1.01"] = epochs(by_kernel, 1.01, 10)
    show(table, calls, in_turn(repeats, calls.values()))


def show(table, calls, seconds):
    ratios = np.median(seconds / seconds[:, :1], axis=0)
    for what, column, ratio in zip(calls, seconds.T, ratios, strict=True):
        table.add(what, float(np.median(column)), least=float(column.min()), ratio=float(ratio))


# ------------------------------------------------------------------ on demand


def many_widths(data):
    """1,400 kernels: 200 widths on each of six cues, and of the city-block distance on pixels."""
    kinds = [(cue, RBF, {}) for cue in data.cues] + [("pix", ExpDistance, {"metric": "cityblock"})]
    return [
        (f"{cue}-{kind.__name__}*{f:.4g}", kind(factor=f, **more), data.cues[cue])
        for cue, kind, more in kinds
        for f in np.geomspace(0.01, 100.0, 200).tolist()
    ]


def on_demand(task, n, memory, method, n_epochs):
    """One run whose kernels are not kept; called in a process of its own.

    Returns
    -------
    dict
        Seconds of the epochs, updates, kernel rows computed, peak of memory, before the run and after it.
    """
    if task == "mnist-12":
        data = datasets.load_mnist(n_train=n, n_test=1)
        X, y = data.X[data.train], data.y[data.train]
    else:
        data = datasets.load_mfeat()
        chosen = np.random.default_rng(0).permutation(len(data.y))[:n]
        X, y = data.X[chosen], data.y[chosen]
    counted = {"rows": 0}
    rows_into = KernelBank.rows_into

    def counting(self, indices, out):
        counted["rows"] += out.shape[1]
        return rows_into(self, indices, out)

    KernelBank.rows_into = counting
    kernels = many_widths(data) if task == "mfeat-1400" else kernel_set(task, data)
    options = {
        "p": "auto" if task == "mfeat-1400" else 1.25,
        "C": 10.0,
        "n_epochs": n_epochs - (method == "OBSCURE"),
        "memory": memory,
        "random_state": 0,
        "tol": None,  # no more than the epochs
    }
    estimator = (
        OBSCURE(kernels, n_epochs_online=1, **options) if method == "OBSCURE" else UFOMKL(kernels, **options)
    )
    seen = []
    estimator.callback = lambda _, step: seen.append(counted["rows"]) and None
    warm = OBSCURE(kernels[:2], n_epochs=1, memory=1e5, tol=None)
    warm.fit(X[:200], y[:200])
    counted["rows"] = 0
    before = peak_bytes()
    began = time.perf_counter()
    estimator.fit(X, y)
    whole = time.perf_counter() - began
    history = estimator.history_
    return {
        "resident": estimator.bank_.resident,
        "whole_seconds": whole,
        "seconds": history["seconds"].tolist(),
        "updates": history["n_updates"].tolist(),
        "rows": seen,
        "peak_before": before,
        "peak": peak_bytes(),
        "objective": estimator.objective_,
        "dual_gap": estimator.dual_gap_,
    }


def in_process(*arguments):
    """`on_demand` in a process of its own, for its peak of memory."""
    command = [sys.executable, __file__, "--run", json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def on_demand_rows(table, cases, each_epoch=False):
    """Runs with kernels on demand: time per epoch, kernel rows per update, peak of memory."""
    print(
        "\nkernels on demand, a process each: seconds of training, kernel rows computed in it, updates, "
        "peak of memory"
    )
    for task, n, memory, method, n_epochs in cases:
        found = in_process(task, n, memory, method, n_epochs)
        assert not found["resident"]
        what = f"{method}, {task}, n = {n}, budget {memory / 1e9:g} GB, {n_epochs} epochs"
        note = (
            f"{found['rows'][-1]} rows, {found['updates'][-1]} updates, {found['peak'] / 1e9:.2f} GB; with "
            f"certificate {found['whole_seconds']:.1f} s"
        )
        table.add(
            what,
            found["seconds"][-1],
            note=note,
            rows=found["rows"][-1],
            updates=found["updates"][-1],
            peak_bytes=found["peak"],
        )
        if each_epoch:
            steps = np.diff([found["seconds"], found["rows"], found["updates"]], prepend=0).T
            for number, (seconds, rows, updates) in enumerate(steps, start=1):
                table.add(
                    f"  epoch {number}",
                    float(seconds),
                    note=f"{rows:.0f} rows, {updates:.0f} updates",
                    rows=rows,
                    updates=updates,
                )


def main(arguments=None):
    """Print the table and write it."""
    more = {"scale": (False, "OBSCURE on all 60,000 digits too (minutes)"), "run": ("", argparse.SUPPRESS)}
    options = command_line(__doc__, TABLE, arguments, **more)
    if options.run:
        print(json.dumps(on_demand(*json.loads(options.run))))
        return
    table = Table()
    if options.smoke:
        stack_orders(table, 1, n=120, n_kernels=3, n_classes=4)
        on_demand_rows(table, [("mnist-12", 600, 2e6, "OBSCURE", 2)], each_epoch=True)
    else:
        stack_orders(table, options.repeats, n=3060, n_kernels=39, n_classes=102)
        cases = [("mnist-12", 10_000, memory, "OBSCURE", 4) for memory in (5e7, 2e8, 1e9)]
        cases += [("mfeat-1400", 680, 2e9, method, 4) for method in ("UFOMKL", "OBSCURE")]
        on_demand_rows(table, cases)
    if options.scale:
        on_demand_rows(table, [("mnist-12", 60_000, 1e9, "OBSCURE", 10)], each_epoch=True)
    table.write(options.table)


if __name__ == "__main__":
    main()
