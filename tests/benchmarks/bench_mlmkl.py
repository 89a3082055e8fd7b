"""Times of multi-label MKL, one thread, warmed up: `make bench`, or this file alone (a minute); `--smoke` for
tiny sizes.

First the SVM without bias, on the mean of a set's nine kernels: against the same coordinate ascent in plain
NumPy (which runs a fixed number of sweeps, here as many as the compiled one needed), against scikit-learn's
SVC (libsvm; it has a bias, so its problem is another one), and against LinearSVC without intercept on a
Cholesky factor of the kernel (liblinear; the factor comes on top). Then a start at zero against one at the
solution for kernel weights that differ by some five percent; one iteration of ML-MKL-SA and its parts; and
the training of six methods on one small problem.

Things to compare run in turn within each round, after one round to warm up; a time is the median of the
rounds with the least in brackets, a ratio the median of the rounds' ratios, to the first row of its table.
The table is written to build/bench/mlmkl.csv as well.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys
import warnings
from pathlib import Path

import numpy as np
from bench_mkl import Table, command_line, in_turn, wall
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

import cuelearn  # noqa: F401  (places numba's cache)
from companion.multilabel import compare_multilabel, multilabel_task
from cuelearn.kernels import KernelBank
from cuelearn.mkl.mlmkl import SharedProblem
from cuelearn.mkl.problem import combined_kernel, quadratic_forms
from cuelearn.mkl.svm import solve_box_svm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mkl"))
from mlmkl_twins import box_svm  # noqa: E402

TABLE = Path(__file__).resolve().parents[2] / "build" / "bench" / "mlmkl.csv"
METHODS = ("MLMKLSA", "MLMKLSum", "GMKL", "VSKL", "SimpleMKL", "AverageKernelSVM")


def problem_of(name, n):
    """Kernels of a set's training samples and the signs of its classes, (n_classes, n)."""
    task = multilabel_task(name, 0, n, 1)
    signs = np.where(task.Y_train > 0, 1.0, -1.0).T
    usable = (signs > 0).any(axis=1) & (signs < 0).any(axis=1)
    return KernelBank(task.kernels, task.X_train), np.ascontiguousarray(signs[usable])


def show(table, calls, repeats, notes=None):
    """Rows of calls timed in turn, ratios to the first."""
    t = in_turn(repeats, [wall(call) for call in calls.values()])
    for k, what in enumerate(calls):
        note = (notes or {}).get(what, "")
        table.add(
            what,
            float(np.median(t[:, k])),
            least=float(t[:, k].min()),
            ratio=float(np.median(t[:, k] / t[:, 0])),
            note=note,
        )
    return t


def against_the_others(table, name, n, Cs, repeats, twin):
    """The SVM of the most balanced class."""
    bank, signs = problem_of(name, n)
    y = signs[np.argmin(np.abs(signs.mean(axis=1)))]
    kernel = combined_kernel(bank, np.full(bank.n_kernels, 1.0 / bank.n_kernels), 1.0)
    factor = np.linalg.cholesky(kernel + 1e-8 * np.eye(n))
    for C in Cs:
        print(
            f"\n{name}, n = {n}, mean of nine kernels, C = {C:g}, {np.mean(y > 0):.0%} positive: one SVM "
            f"from zero"
        )
        found = solve_box_svm(kernel, y, C)
        best = solve_box_svm(kernel, y, C, tol=1e-7, max_sweeps=100_000).value
        linear = {
            "C": C,
            "loss": "hinge",
            "dual": True,
            "fit_intercept": False,
            "max_iter": 100_000,
            "random_state": 0,
        }
        calls = {
            "without bias, gap <= 1e-3": lambda: solve_box_svm(kernel, y, C),
            "without bias, gap <= 1e-5": lambda: solve_box_svm(kernel, y, C, tol=1e-5),
            "SVC (with bias), tol=1e-3": lambda: SVC(C=C, kernel="precomputed").fit(kernel, y),
            "LinearSVC on the factor, tol=1e-4": lambda: LinearSVC(**linear).fit(factor, y),
            "Cholesky factor": lambda: np.linalg.cholesky(kernel),
        }
        w = LinearSVC(**linear).fit(factor, y).coef_[0]
        above = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (factor @ w)).sum()
        notes = {
            "without bias, gap <= 1e-3": f"{found.sweeps} sweeps, dual value "
            f"{1.0 - found.value / best:.0e} below the best",
            "LinearSVC on the factor, tol=1e-4": f"objective {above / best - 1.0:.0e} above the best",
        }
        if twin and found.sweeps <= 1000:
            calls["NumPy twin, as many sweeps"] = lambda: box_svm(kernel, y, C, sweeps=found.sweeps)
            notes["NumPy twin, as many sweeps"] = (
                f"dual value {1.0 - calls['NumPy twin, as many sweeps']()[1] / best:.0e} below the best"
            )
        show(table, calls, repeats, notes)


def starts(table, name, n, Cs, repeats):
    """SVMs of all classes from zero, and from the solutions for kernel weights that differ a little."""
    bank, signs = problem_of(name, n)
    rng = np.random.default_rng(0)
    before = rng.dirichlet(np.full(bank.n_kernels, 5.0))
    after = before * np.exp(0.05 * rng.normal(size=before.size))
    old, new = combined_kernel(bank, before, 1.0), combined_kernel(bank, after / after.sum(), 1.0)
    for C in Cs:
        print(
            f"\n{name}, n = {n}, C = {C:g}: the SVMs of {len(signs)} classes after a change of the kernel "
            f"weights by some 5 %"
        )
        known = [solve_box_svm(old, y, C).alpha for y in signs]
        cold = lambda: [solve_box_svm(new, y, C) for y in signs]  # noqa: B023, E731
        # noqa: B023, E731
        warm = lambda: [solve_box_svm(new, y, C, alpha=a) for y, a in zip(signs, known, strict=True)]
        notes = {
            what: f"{sum(f.sweeps for f in call())} sweeps"
            for what, call in (("from zero", cold), ("from the last solution", warm))
        }
        show(table, {"from zero": cold, "from the last solution": warm}, repeats, notes)


def one_iteration(table, name, n, C, repeats):
    """An iteration of SA and its parts, then the iteration of Sum, which has all classes."""
    bank, signs = problem_of(name, n)
    m, s = len(signs), bank.n_kernels
    print(
        f"\n{name}, n = {n}, {s} kernels, {m} classes, C = {C:g}: one iteration, mean over the classes, "
        f"from near solutions"
    )
    problem, rng = SharedProblem(bank, signs, C), np.random.default_rng(0)
    weights = [w / w.sum() for w in np.exp(0.05 * rng.normal(size=(m, s)))]
    everyone = np.arange(m)
    for k in everyone:
        problem.solve(k, weights[0])
    near = problem.alphas.copy()
    coefs = (near * signs).T
    out = np.empty((n, n))

    def combine():
        for w in weights:
            combined_kernel(bank, w, 1.0, out=out)

    def svm():
        for k in everyone:
            solve_box_svm(out, signs[k], C, alpha=near[k])

    def forms():
        for k in everyone:
            quadratic_forms(bank, np.ascontiguousarray(coefs[:, [k]]))

    def iterations_of_sa():
        problem.alphas[...] = near
        for k, w in zip(everyone, weights, strict=True):
            problem.solve(k, w)
            problem.quadratics([k])

    def iteration_of_sum():
        problem.alphas[...] = near
        for k in everyone:
            problem.solve(k, weights[1])
        problem.quadratics(everyone)
        problem.kernel(weights[0])  # so that the next one combines again

    calls = {
        "SA: one iteration": iterations_of_sa,
        "  kernels combined": combine,
        "  SVM of one class, from the last solution": svm,
        "  quadratic forms of one class": forms,
        "  (quadratic forms of all classes at once)": lambda: quadratic_forms(bank, coefs),
        "Sum: one iteration": iteration_of_sum,
    }
    t = in_turn(repeats, [wall(call) for call in calls.values()])
    t[:, :4] /= m
    share = np.mean(np.count_nonzero(near, axis=1)) / n
    for k, what in enumerate(calls):
        note = f"{share:.0%} of the samples have a coefficient" if k == 0 else ""
        table.add(
            what,
            float(np.median(t[:, k])),
            least=float(t[:, k].min()),
            ratio=float(np.median(t[:, k] / t[:, 0])),
            note=note,
        )


def methods(table, name, n, C, repeats):
    """Training times of six methods; kernels are at hand."""
    print(
        f"\n{name}, n = {n}, all classes, C = {C:g} (GMKL's counts as C times the sum of its weights): "
        f"training, defaults"
    )
    found = {}

    def seconds_of(method):
        found[method] = compare_multilabel(name, method, 0, n, 100, 0.1 * C if method == "GMKL" else C)
        return found[method]["seconds"]

    t = in_turn(repeats, [lambda method=method: seconds_of(method) for method in METHODS])
    for k, method in enumerate(METHODS):
        solved = found[method]["n_solved"]  # NaN where it is not counted
        note = ("" if np.isnan(solved) else f"{solved:.0f} SVMs, ") + f"mean AUC {found[method]['auc']:.3f}"
        table.add(
            method,
            float(np.median(t[:, k])),
            least=float(t[:, k].min()),
            ratio=float(np.median(t[:, k] / t[:, 0])),
            note=note,
        )


def main(arguments=None):
    """Print the table and write it."""
    options = command_line(__doc__, TABLE, arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", message="classes without positive")
    table = Table()
    sizes, Cs = ((80,), (1.0,)) if options.smoke else ((300, 1000), (1.0, 10.0))
    for n in sizes:
        against_the_others(table, "yeast", n, Cs, options.repeats, twin=n == sizes[0])
    for n in sizes:
        starts(table, "emoji", n, Cs, options.repeats)
    for n in sizes:
        one_iteration(table, "emoji", n, 10.0, options.repeats)
    methods(table, "emoji", 100 if options.smoke else 200, 10.0, min(options.repeats, 3))
    table.write(options.table)


if __name__ == "__main__":
    main()
