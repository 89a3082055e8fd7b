"""What all benchmarks share: a table of cases, calls timed in turn, one command line.

``python tests/benchmarks/bench_mkl.py`` runs the cases of a file, ``--case NAME`` a single case, ``--smoke``
all at tiny sizes. Calls that are compared run in turn within each round, after a round to warm up; a time is
the median of the rounds with the least in brackets, a ratio the median of the rounds' ratios to the first
call of its group. Every case has a process of its own, whose peak of memory is shown. One thread unless the
environment says otherwise. The table is written to build/bench as well.
"""

import os
import sys

if "numba" not in sys.modules:
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import argparse
import csv
import resource
import subprocess
import time
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

import cuelearn  # noqa: F401  (places numba's cache)

TESTS = Path(__file__).resolve().parents[1]
TABLES = TESTS.parent / "build" / "bench"


class Group(NamedTuple):
    """Calls to compare, by name; a call that returns a float has taken so many seconds.

    `notes` are texts, or functions of the median seconds and of the ratio to the first call. `once` is for
    long runs: neither warmed up nor repeated.
    """

    title: str
    calls: dict
    notes: dict = MappingProxyType({})
    once: bool = False


def promised(limit):
    """A note whether the time is below `limit` seconds."""
    return lambda seconds, ratio: f"promised <= {limit:g} s: {'kept' if seconds <= limit else 'NOT KEPT'}"


def seconds_of(call):
    """Its wall time, or the seconds that it returns."""
    began = time.perf_counter()
    given = call()
    wall = time.perf_counter() - began
    return given if isinstance(given, float) else wall


def show(group, repeats, write=lambda row: None):
    """Time a group, print its rows and hand each to `write`."""
    print(f"\n{group.title}")
    calls = list(group.calls.values())
    if not group.once:
        for call in calls:
            call()
    rounds = 1 if group.once else repeats
    seconds = np.array([[seconds_of(call) for call in calls] for _ in range(rounds)])
    medians, ratios = np.median(seconds, axis=0), np.median(seconds / seconds[:, :1], axis=0)
    for what, median, least, ratio in zip(group.calls, medians, seconds.min(axis=0), ratios, strict=True):
        note = group.notes.get(what, "")
        note = note(median, ratio) if callable(note) else note
        print(f"  {what:64s} {1e3 * median:10.2f} ms ({1e3 * least:.2f}) {ratio:8.2f} x  {note}", flush=True)
        write([group.title, what, median, least, ratio, note])


def peak_bytes():
    """Largest resident memory of this process since it began.

    On Linux getrusage would count the memory of the process that started this one.
    """
    try:
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(about, cases):
    """Run cases, `{name: (function, sizes, tiny sizes)}`: a function yields groups, sizes are a list of dicts
    of its arguments."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: shows that all of it runs")
    parser.add_argument("--case", choices=cases, help="a single case, in this process")
    options = parser.parse_args()
    table = TABLES / f"{Path(sys.argv[0]).stem}{'-smoke' * options.smoke}.csv"
    if options.case is None:
        table.unlink(missing_ok=True)
        for name in cases:
            subprocess.run([sys.executable, *sys.argv, "--case", name], check=True)
        return
    function, full, tiny = cases[options.case]
    table.parent.mkdir(parents=True, exist_ok=True)
    with table.open("a", newline="", encoding="utf-8") as file:
        for sizes in tiny if options.smoke else full:
            for group in function(**sizes):
                show(group, 1 if options.smoke else options.repeats, csv.writer(file).writerow)
    print(f"  peak of memory: {peak_bytes() / 1e9:.2f} GB", flush=True)
