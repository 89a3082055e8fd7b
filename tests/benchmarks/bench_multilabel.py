"""Times of multi-label MKL: one SVM without bias, warm starts, one iteration and its parts, whole methods.

The SVM is compared with the same coordinate ascent in plain NumPy (as many sweeps as the compiled one
needed), with SVC (libsvm; its bias makes it another problem) and with LinearSVC without intercept on a
Cholesky factor of the kernel (liblinear; the factor comes on top).
"""

import sys
import warnings
from functools import partial

from runner import TESTS, Group, main

# isort: split
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from companion.multilabel import compare_multilabel, multilabel_task
from cuelearn.kernels import KernelBank
from cuelearn.mkl.mlmkl import SharedProblem
from cuelearn.mkl.problem import combined_kernel, quadratic_forms
from cuelearn.mkl.svm import solve_box_svm

sys.path.insert(0, str(TESTS / "mkl"))
from mlmkl_twins import box_svm

METHODS = ("MLMKLSA", "MLMKLSum", "GMKL", "VSKL", "SimpleMKL", "AverageKernelSVM")


def problem_of(name, n):
    """Kernels of a set's training samples and the signs of its classes, (n_classes, n)."""
    task = multilabel_task(name, 0, n, 1)
    signs = np.where(task.Y_train > 0, 1.0, -1.0).T
    usable = (signs > 0).any(axis=1) & (signs < 0).any(axis=1)
    return KernelBank(task.kernels, task.X_train), np.ascontiguousarray(signs[usable])


def one_svm(n, C):
    """The SVM of the most balanced class on the mean of nine kernels."""
    bank, signs = problem_of("yeast", n)
    y = signs[np.argmin(np.abs(signs.mean(axis=1)))]
    kernel = combined_kernel(bank, np.full(bank.n_kernels, 1.0 / bank.n_kernels), 1.0)
    factor = np.linalg.cholesky(kernel + 1e-8 * np.eye(n))
    result = solve_box_svm(kernel, y, C)
    best = solve_box_svm(kernel, y, C, tol=1e-7, max_sweeps=100_000).value
    linear = LinearSVC(C=C, loss="hinge", dual=True, fit_intercept=False, max_iter=100_000, random_state=0)
    w = linear.fit(factor, y).coef_[0]
    above = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (factor @ w)).sum()
    calls = {
        "without bias, gap <= 1e-3": lambda: solve_box_svm(kernel, y, C),
        "without bias, gap <= 1e-5": lambda: solve_box_svm(kernel, y, C, tol=1e-5),
        "SVC (with bias), tol=1e-3": lambda: SVC(C=C, kernel="precomputed").fit(kernel, y),
        "LinearSVC on the factor, tol=1e-4": lambda: linear.fit(factor, y),
        "Cholesky factor": lambda: np.linalg.cholesky(kernel),
    }
    notes = {
        "without bias, gap <= 1e-3": f"{result.sweeps} sweeps, {1.0 - result.value / best:.0e} below best",
        "LinearSVC on the factor, tol=1e-4": f"objective {above / best - 1.0:.0e} above the best",
    }
    if n <= 300 and result.sweeps <= 1000:
        calls["NumPy twin, as many sweeps"] = lambda: box_svm(kernel, y, C, sweeps=result.sweeps)
    yield Group(f"yeast, n = {n}, C = {C:g}, one SVM from zero", calls, notes)


def starts(n, C):
    """SVMs of all classes from zero, and from the solutions for kernel weights that differ by some 5 %."""
    bank, signs = problem_of("emoji", n)
    rng = np.random.default_rng(0)
    before = rng.dirichlet(np.full(bank.n_kernels, 5.0))
    after = before * np.exp(0.05 * rng.normal(size=before.size))
    old, new = combined_kernel(bank, before, 1.0), combined_kernel(bank, after / after.sum(), 1.0)
    known = [solve_box_svm(old, y, C).alpha for y in signs]
    zeros = [np.zeros(n)] * len(signs)

    def solve(start):
        return [solve_box_svm(new, y, C, alpha=a) for y, a in zip(signs, start, strict=True)]

    calls = {"from zero": partial(solve, zeros), "from the last solution": partial(solve, known)}
    notes = {what: f"{sum(svm.sweeps for svm in call())} sweeps" for what, call in calls.items()}
    yield Group(f"emoji, n = {n}, C = {C:g}: the SVMs of {len(signs)} classes", calls, notes)


def one_iteration(n, C):
    """An iteration of SA for every class in turn and its parts, then that of Sum, which has all classes."""
    bank, signs = problem_of("emoji", n)
    m, rng = len(signs), np.random.default_rng(0)
    problem = SharedProblem(bank, signs, C)
    weights = [w / w.sum() for w in np.exp(0.05 * rng.normal(size=(m, bank.n_kernels)))]
    for k in range(m):
        problem.solve(k, weights[0])
    near, out = problem.alphas.copy(), np.empty((n, n))
    coefs = (near * signs).T

    def iterations_of_sa():
        problem.alphas[...] = near
        for k, w in enumerate(weights):
            problem.solve(k, w)
            problem.quadratics([k])

    def iteration_of_sum():
        problem.alphas[...] = near
        for k in range(m):
            problem.solve(k, weights[1])
        problem.quadratics(np.arange(m))
        problem.kernel(weights[0])  # so that the next round combines again

    calls = {
        "SA: an iteration for each class": iterations_of_sa,
        "  kernels combined": lambda: [combined_kernel(bank, w, 1.0, out=out) for w in weights],
        "  SVMs, from the last solution": lambda: [
            solve_box_svm(out, y, C, alpha=a) for y, a in zip(signs, near, strict=True)
        ],
        "  quadratic forms": lambda: [
            quadratic_forms(bank, np.ascontiguousarray(coefs[:, [k]])) for k in range(m)
        ],
        "  (quadratic forms of all classes at once)": lambda: quadratic_forms(bank, coefs),
        "Sum: one iteration": iteration_of_sum,
    }
    share = np.mean(np.count_nonzero(near, axis=1)) / n
    notes = {"SA: an iteration for each class": f"{share:.0%} of the samples have a coefficient"}
    yield Group(f"emoji, n = {n}, {bank.n_kernels} kernels, {m} classes, C = {C:g}", calls, notes)


def methods(n, C):
    """Training times of six methods; GMKL's C counts as C times the sum of its weights."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", message="classes without positive")
    rows = {}

    def train(method):
        rows[method] = compare_multilabel("emoji", method, 0, n, 100, 0.1 * C if method == "GMKL" else C)
        return float(rows[method]["seconds"])

    def note(method):
        return lambda *_: f"{rows[method]['n_solved']:.0f} SVMs, mean AUC {rows[method]['auc']:.3f}"

    calls = {method: partial(train, method) for method in METHODS}
    yield Group(f"emoji, n = {n}, all classes, C = {C:g}: training", calls, {m: note(m) for m in METHODS})


SIZES = [{"n": n, "C": C} for n in (300, 1000) for C in (1.0, 10.0)]
TINY = [{"n": 80, "C": 1.0}]
CASES = {
    "svm": (one_svm, SIZES, TINY),
    "starts": (starts, SIZES, TINY),
    "iteration": (one_iteration, SIZES[1::2], TINY),
    "methods": (methods, [{"n": 200, "C": 10.0}], TINY),
}

if __name__ == "__main__":
    main(__doc__, CASES)
