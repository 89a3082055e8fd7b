"""Times of the MKL solvers: a stack in memory, kernels on demand.

Times are those of training: a run's clock stops while objective and gap are measured; "fit" is the whole
call.
"""

from functools import partial

from runner import Group, main, peak_bytes, promised

# isort: split
import numpy as np
from numba import njit
from sklearn.svm import SVC

from companion import mkl as exp
from companion.protocol import timed
from cuelearn import datasets
from cuelearn.kernels import RBF, ExpDistance, KernelBank
from cuelearn.kernels.rows import combined_kernel
from cuelearn.mkl import OBSCURE, OM2, UFOMKL, MKLProblem, solve_obscure, solve_om2, solve_ufo


@njit(fastmath=True)
def read_flat(values):
    """One plain read: the sum of all entries as they lie in memory."""
    total = values[0]
    for i in range(1, values.size):
        total += values[i]
    return total > 0  # a float would count as seconds


@njit(fastmath=True)
def read_visits(rows, order):
    """The same sum sample by sample: all kernels' rows of each in the order of the visits."""
    total = rows[0, 0, 0] * 0
    for i in order:
        for j in range(rows.shape[1]):
            row = rows[i, j]
            for k in range(row.size):
                total += row[k]
    return total > 0  # a float would count as seconds


def simulated_rows(n, n_kernels, n_classes):
    """Labels and RBF kernels of simulated features, shape (n, n_kernels, n): classes differ, more in some
    kernels than in others."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) * n_classes // n
    X = [
        rng.normal(size=(n_classes, 30))[labels] * rng.uniform(0.3, 1.2) + rng.normal(size=(n, 30))
        for _ in range(n_kernels)
    ]
    kernels = [(f"k{j}", RBF(factor=2.0), slice(30 * j, 30 * j + 30)) for j in range(n_kernels)]
    return labels, KernelBank(kernels, np.hstack(X), memory=4e9).stack.transpose(1, 0, 2)


def training(solver, problem, **options):
    """A call that returns the seconds of a run, without its certificate."""

    def run():
        result = solver(problem, rng=np.random.default_rng(0), certify=False, **options)
        return float(result.history["seconds"].iloc[-1])

    return run


def matlab(seconds_there):
    return lambda seconds, ratio: f"{seconds_there / seconds:.0f} x MATLAB ({seconds_there} s)"


def stack_orders(n, n_kernels, n_classes):
    """Solvers on a stack in either order in memory, beside plain reads of it."""
    labels, rows = simulated_rows(n, n_kernels, n_classes)
    order, ten = np.random.default_rng(1).permutation(n), {"n_epochs": 10, "shuffle": True}
    read = {"plain read": partial(read_flat, rows.reshape(-1))}
    stacks = {"rows of a sample adjacent": rows.transpose(1, 0, 2)}
    stacks["kernel after kernel"] = np.ascontiguousarray(stacks["rows of a sample adjacent"])
    for layout, stack in stacks.items():
        bank = KernelBank.from_stack(stack, validate=False, memory=4e9)
        problem = lambda p, bank=bank: MKLProblem(bank, labels, n_classes, p=p, C=10.0)
        calls, notes = dict(read), {}
        if layout != "kernel after kernel":
            calls["plain read in the order of the visits"] = partial(read_visits, rows, order)
            fit = partial(OM2("precomputed", p=1.05, n_epochs=1).fit, stack, labels)
            calls["OM2().fit, promised <= 6 plain reads"] = fit
        for p in (1.01, 1.05, 1.5, 2.0):
            what = f"OM-2, one epoch, p = {p}, promised <= 2 plain reads"
            calls[what] = training(solve_om2, problem(p), shuffle=True)
            notes[what] = matlab(1.5)
        what = "OM-2, ten epochs, p = 1.01, promised <= 25 plain reads"
        calls[what] = training(solve_om2, problem(1.01), **ten)
        calls["UFO-MKL, two epochs"] = training(solve_ufo, problem(1.05), n_epochs=2)
        notes["UFO-MKL, two epochs"] = matlab(2.6)
        what = "OBSCURE, one online and two batch epochs"
        calls[what] = training(solve_obscure, problem(1.05), n_epochs=2, n_epochs_online=1)
        notes[what] = matlab(14.6)
        yield Group(f"n = {n}, F = {n_kernels}, M = {n_classes}, float32 (simulated), {layout}", calls, notes)


def digits(n):
    task = exp.load_task("mnist-12", n, 1, 0)
    problem = MKLProblem(task.bank, task.labels, 10, p=1.05, C=10.0)
    calls, notes = {}, {}
    for name, solver, cls, options, limit, there in (
        ("OM-2, one pass", solve_om2, OM2, {"n_epochs": 1}, 0.005, 0.12),
        ("OBSCURE, 5 + 20 epochs", solve_obscure, OBSCURE, {"n_epochs": 20, "n_epochs_online": 5}, 0.04, 1.5),
        ("UFO-MKL, 20 epochs", solve_ufo, UFOMKL, {"n_epochs": 20}, 0.04, 1.05),
    ):
        calls[name] = training(solver, problem, **options)
        notes[name] = lambda s, r, a=promised(limit), b=matlab(there): f"{a(s, r)}; {b(s, r)}"
        model = cls("precomputed", p=1.05, C=10.0, random_state=0, **options)
        calls[f"{name}, fit"] = partial(model.fit, task.bank.stack, task.labels)
    yield Group(f"{n} MNIST digits, 12 kernels, C = 10, p = 1.05", calls, notes)


def beside_svc(n, C):
    """Default fits on Pendigits' four kernels in memory, beside SVC on their average; CPU seconds."""
    task = exp.load_task("pendigits-4", n, 1, 0)
    bank = task.bank
    uniform = np.full(bank.n_kernels, 1.0 / bank.n_kernels)
    average = combined_kernel(bank, uniform, 1.0)
    fits = {
        "SVC, average given": lambda: SVC(C=C, kernel="precomputed").fit(average, task.labels),
        "averaging": lambda: combined_kernel(bank, uniform, 1.0),
    }
    for cls in (OBSCURE, UFOMKL):
        fits[cls.__name__] = lambda cls=cls: cls("precomputed", C=C, random_state=0).fit(bank, task.labels)
    calls = {name: lambda fit=fit: timed(fit)[1] for name, fit in fits.items()}
    yield Group(f"Pendigits, n = {n}, C = {C}, CPU seconds", calls)


def many_widths(data):
    """1,400 kernels: 200 widths on each of six cues, and of the city-block distance on pixels."""
    kinds = [(cue, RBF, {}) for cue in data.cues] + [("pix", ExpDistance, {"metric": "cityblock"})]
    return [
        (f"{cue}-{kind.__name__}*{f:.4g}", kind(factor=f, **more), data.cues[cue])
        for cue, kind, more in kinds
        for f in np.geomspace(0.01, 100.0, 200).tolist()
    ]


def on_demand(task, n, memory, method, n_epochs):
    """A run whose kernels are not kept: seconds of the epochs, updates, kernel rows computed, peak of memory
    before it and after it."""
    if task == "mnist-12":
        data = datasets.load_mnist(n_train=n, n_test=1)
        X, y, kernels = data.X[data.train], data.y[data.train], exp.kernel_set(task, data)
    else:
        data = datasets.load_mfeat()
        chosen = np.random.default_rng(0).permutation(len(data.y))[:n]
        X, y, kernels = data.X[chosen], data.y[chosen], many_widths(data)
    counted, seen, rows_into = {"rows": 0}, [], KernelBank.rows_into

    def counting(self, indices, out):
        counted["rows"] += out.shape[1]
        return rows_into(self, indices, out)

    KernelBank.rows_into = counting
    OBSCURE(kernels[:2], n_epochs=1, memory=1e5, tol=None).fit(X[:200], y[:200])  # compiles
    counted["rows"], before = 0, peak_bytes()
    options = {"p": 1.25 if task == "mnist-12" else "auto", "C": 10.0, "memory": memory, "random_state": 0}
    options["tol"] = None  # no more than the epochs
    options["callback"] = lambda _, step: seen.append(counted["rows"])
    if method == "OBSCURE":
        model = OBSCURE(kernels, n_epochs_online=1, n_epochs=n_epochs - 1, **options).fit(X, y)
    else:
        model = UFOMKL(kernels, n_epochs=n_epochs, **options).fit(X, y)
    KernelBank.rows_into = rows_into
    gap = {"objective": model.objective_, "dual_gap": model.dual_gap_, "resident": model.bank_.resident}
    history = {"seconds": model.history_["seconds"].tolist(), "updates": model.history_["n_updates"].tolist()}
    return {**history, **gap, "rows": seen, "peak_before": before, "peak": peak_bytes()}


def demand(**sizes):
    """Time, kernel rows per update and peak of memory of a run with kernels on demand."""
    result = {}

    def run():
        result.update(on_demand(**sizes))
        return result["seconds"][-1]

    note = lambda *_: (
        f"{result['rows'][-1]} rows, {result['updates'][-1]} updates, {result['peak'] / 1e9:.2f} GB"
    )
    yield Group(f"kernels on demand: {sizes}", {"training": run}, {"training": note}, once=True)


MNIST = {"task": "mnist-12", "method": "OBSCURE", "n_epochs": 4}
WIDTHS = {"task": "mfeat-1400", "n": 680, "memory": 2e9, "n_epochs": 4}
CASES = {
    "orders": (
        stack_orders,
        [{"n": 3060, "n_kernels": 39, "n_classes": 102}],
        [{"n": 120, "n_kernels": 3, "n_classes": 4}],
    ),
    "digits": (digits, [{"n": 1000}], [{"n": 60}]),
    "svc": (
        beside_svc,
        [{"n": n, "C": C} for n in (500, 1000, 2000, 4000, 7494) for C in (0.1, 1.0, 10.0, 100.0)],
        [{"n": 100, "C": 1.0}],
    ),
    "budgets": (
        demand,
        [{**MNIST, "n": 10_000, "memory": memory} for memory in (5e7, 2e8, 1e9)],
        [{**MNIST, "n": 600, "memory": 2e6}],
    ),
    "1400_ufo": (demand, [{**WIDTHS, "method": "UFOMKL"}], []),
    "1400_obscure": (demand, [{**WIDTHS, "method": "OBSCURE"}], []),
}

if __name__ == "__main__":
    main(__doc__, CASES)
