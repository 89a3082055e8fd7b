r"""Experiments of the MKL chapter (thesis chapter 4, JMLR 2012 section 5).

Path of the data: `load_task` (loader -> cues -> kernel bank, split into train and test) -> one of the point functions
(`training_curve`, `online_run`, ...) -> a `Sweep` -> a DataFrame -> `plots.mkl`. Every point function takes numbers and text only, so
that its results can be stored and resumed; sizes, seeds and grids of a profile stand in `settings` and nowhere else.
"""

import math
import time
import warnings
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split

from cuelearn import datasets
from cuelearn.groupnorm import group_norm, resolve_p
from cuelearn.kernels import ExpDistance, KernelBank, Linear, Poly, RBF
from cuelearn.losses import margins
from cuelearn.mkl.obscure import solve_obscure, solve_pegasos_mkl
from cuelearn.mkl.om2 import solve_om2
from cuelearn.mkl.problem import MKLProblem, combine
from cuelearn.mkl.reference import combined_kernel, solve_reference
from cuelearn.mkl.single import AverageKernelSVM, BestKernelSVM
from cuelearn.mkl.ufo import solve_ufo

# the papers' grids
P_GRID = (1.01, 1.05, 1.10, 1.25, 1.50, 1.75, 2.0)
C_GRID = (0.1, 1.0, 10.0, 100.0, 1000.0)
ALPHA_GRID = (0.0001, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.02)
# bytes of kernels that a task may hold: what does not fit is computed on demand
MEMORY = 2.2e9
MEMORY_MANY = 1.2e9  # the 2.6 GB of 1,400 kernels on 680 samples never fit: rows come from seven distances


def settings(profile):
    """Sizes of all experiments of the chapter for a profile.

    Multiple features trains on 30 samples of each class, as Caltech-101 does in the papers.

    Parameters
    ----------
    profile : {"smoke", "quick", "full"}

    Returns
    -------
    dict
        One entry per experiment; `seeds` is how many splits (or streams) each is repeated over.
    """
    sizes = {
        "smoke": dict(
            seeds=2, three_class=dict(seeds=2), choose=dict(n_folds=2, n_epochs=5, C_grid=(1.0, 100.0), p_grid=(1.05, 2.0)),
            p_sweep=dict(n_train=100, n_test=300, n_epochs=3, most_epochs=30), pendigits=dict(n_train=200, n_test=300, n_epochs=10),
            pendigits_p=dict(n_epochs=5), n_kernels=dict(n_train=100, n_test=300, counts=(5, 20, 39), n_epochs=5, most_epochs=30),
            mnist=dict(n_train=(100, 200, 400), n_test=300, n_epochs=8, svm_up_to=400), ufo=dict(n_train=100, n_test=300, n_epochs=10),
            many=dict(n_train=100, n_test=300, counts=(7, 70), n_epochs=3, alphas=(0.001, 0.01, 0.02)),
            theorems=dict(n_train=80, n_epochs=10, streams=3, counts=(2, 8, 32)),
        ),
        "quick": dict(
            seeds=5, three_class=dict(seeds=10), choose=dict(n_folds=3, n_epochs=20, C_grid=C_GRID, p_grid=(1.05, 1.25, 2.0)),
            p_sweep=dict(n_train=300, n_test=1700, n_epochs=10, most_epochs=300),
            pendigits=dict(n_train=1500, n_test=3498, n_epochs=1500), pendigits_p=dict(n_epochs=100),
            n_kernels=dict(n_train=300, n_test=1700, counts=(1, 3, 6, 12, 24, 39), n_epochs=1000, most_epochs=300),
            mnist=dict(n_train=(500, 1000, 2000, 4000), n_test=2000, n_epochs=40, svm_up_to=1000),
            ufo=dict(n_train=300, n_test=1700, n_epochs=3000), many=dict(
                n_train=680, n_test=1320, counts=(7, 70, 350, 1400), n_epochs=10, alphas=ALPHA_GRID),
            theorems=dict(n_train=300, n_epochs=100, streams=10, counts=(2, 4, 8, 16, 32, 64, 128, 256)),
        ),
        "full": dict(
            seeds=10, three_class=dict(seeds=20), choose=dict(n_folds=5, n_epochs=50, C_grid=C_GRID, p_grid=P_GRID),
            p_sweep=dict(n_train=300, n_test=1700, n_epochs=50, most_epochs=1000),
            pendigits=dict(n_train=7494, n_test=3498, n_epochs=1000), pendigits_p=dict(n_epochs=200),
            n_kernels=dict(n_train=300, n_test=1700, counts=(1, 3, 6, 12, 24, 39), n_epochs=3000, most_epochs=1000),
            mnist=dict(n_train=(1000, 2000, 5000, 10000, 20000), n_test=10000, n_epochs=100, svm_up_to=5000),
            ufo=dict(n_train=300, n_test=1700, n_epochs=10000), many=dict(
                n_train=680, n_test=1320, counts=(7, 70, 350, 700, 1400), n_epochs=50, alphas=ALPHA_GRID),
            theorems=dict(n_train=500, n_epochs=300, streams=30, counts=(2, 4, 8, 16, 32, 64, 128, 256, 512)),
        ),
    }  # fmt: skip
    return sizes[profile]


# --------------------------------------------------------------------- tasks


class Task(NamedTuple):
    """A training bank with its labels, and test samples.

    Attributes
    ----------
    bank : KernelBank
    labels : ndarray of int, shape (n_train,)
    cross : CrossBank
        Test samples against the training samples.
    test_labels : ndarray of int, shape (n_test,)
    n_classes : int
    """

    bank: KernelBank
    labels: np.ndarray
    cross: object
    test_labels: np.ndarray
    n_classes: int


def kernel_set(name, data):
    """The kernels of a named task as (name, kernel, columns) triples.

    Parameters
    ----------
    name : str
        "mfeat-6": one RBF (mean rule) per cue. "mfeat-39": per cue four RBF widths, linear and polynomial, and an RBF on each of
        three pairs of cues. "mfeat-pyramid": the pixel image at four resolutions, redundant cues. "mfeat-1400": 200 widths for each of
        seven distances. "pendigits-4": one RBF per representation. "mnist-12": linear, polynomial and RBF per quadrant.
    data : CueData

    Returns
    -------
    list of (str, Kernel, columns)
    """
    cues = {c: s for c, s in data.cues.items() if not c.startswith("pix-")}
    if name in ("mfeat-6", "pendigits-4"):
        return [(c, RBF(), s) for c, s in cues.items()]
    if name == "mfeat-pyramid":
        return [(c, RBF(), s) for c, s in data.cues.items() if c.startswith("pix-")]
    if name == "mnist-12":
        kinds = {"linear": Linear(), "poly": Poly(), "rbf": RBF()}
        return [(f"{c}-{k}", kernel, s) for c, s in cues.items() for k, kernel in kinds.items()]
    if name == "mfeat-39":
        kinds = {"linear": Linear(), "poly": Poly(), **{f"rbf*{f}": RBF(factor=f) for f in (0.25, 1.0, 4.0, 16.0)}}
        triples = [(f"{c}-{k}", kernel, s) for c, s in cues.items() for k, kernel in kinds.items()]
        for one, other in (("fac", "mor"), ("fou", "kar"), ("pix", "zer")):
            columns = [i for c in (one, other) for i in range(*cues[c].indices(data.X.shape[1]))]
            triples.append((f"{one}+{other}", RBF(), columns))
        return triples
    if name == "mfeat-1400":
        factors = np.geomspace(0.01, 100.0, 200)
        triples = [(f"{c}*{f:.4g}", RBF(factor=float(f)), s) for c, s in cues.items() for f in factors]
        triples += [(f"pix-cityblock*{f:.4g}", ExpDistance("cityblock", factor=float(f)), cues["pix"]) for f in factors]
        return triples
    raise ValueError(f"unknown task {name!r}")


def evenly(n_kernels, n_groups=7, per_group=200):
    """Kernels of "mfeat-1400" that stand for a smaller number: the same widths, spread over the range, of every distance."""
    widths = np.unique(np.round(np.linspace(0, per_group - 1, max(1, n_kernels // n_groups) + 2)[1:-1]).astype(int))
    return np.concatenate([group * per_group + widths for group in range(n_groups)]) if n_kernels < 1400 else np.arange(1400)


@lru_cache(maxsize=None)
def load_data(name):
    """Data set of a task, by the task's name."""
    if name.startswith("mfeat"):
        return datasets.load_mfeat(pyramid=name == "mfeat-pyramid")
    return {"pendigits": datasets.load_pendigits, "mnist": datasets.load_mnist}[name.split("-")[0]]()


@lru_cache(maxsize=2)
def load_task(name, n_train, n_test, seed, n_kernels=None):
    """A task with kernels computed, split by the seed.

    Multiple features has no published split: a stratified one is drawn, and features are scaled to mean 0 and deviation 1 of the
    training part. Pendigits and MNIST keep theirs; a random subset of the training part is taken, and the first test samples.

    Parameters
    ----------
    name : str
        See `kernel_set`.
    n_train, n_test : int
    seed : int
    n_kernels : int, optional
        Random subset of the kernels ("mfeat-39"), or evenly spaced widths ("mfeat-1400").

    Returns
    -------
    Task
    """
    data = load_data(name)
    rng = np.random.default_rng([seed, 1])
    if data.train is None:
        everything = np.arange(data.y.size)
        train, test = train_test_split(everything, train_size=n_train, stratify=data.y, random_state=seed)
        train, test = rng.permutation(train), test[:n_test]
        mean, deviation = data.X[train].mean(axis=0), data.X[train].std(axis=0)
        X = (data.X - mean) / np.where(deviation > 0, deviation, 1.0)
    else:
        train = rng.choice(data.train, size=min(n_train, data.train.size), replace=False)
        test, X = data.test[:n_test], data.X
    triples = kernel_set(name, data)
    if n_kernels is not None:
        chosen = evenly(n_kernels) if name == "mfeat-1400" else np.sort(rng.choice(len(triples), n_kernels, replace=False))
        triples = [triples[j] for j in chosen]
    bank = KernelBank(triples, X[train], memory=MEMORY_MANY if name == "mfeat-1400" else MEMORY)
    return Task(bank, data.y[train], bank.cross(X[test]), data.y[test], int(data.y.max()) + 1)


@lru_cache(maxsize=1)
def test_blocks(*task_key):
    """The test kernels of a task, held in memory for curves that evaluate often."""
    return [(rows, block) for rows, block in load_task(*task_key).cross.blocks(memory=2e8)]


def test_error(task, dual_coef, kernel_weights, blocks=None):
    """Share of test samples predicted wrongly."""
    active = np.flatnonzero(kernel_weights)
    support = np.flatnonzero(np.any(dual_coef != 0.0, axis=1))
    if active.size == 0 or support.size == 0:
        return float(np.mean(task.test_labels != 0))
    predicted = np.empty(task.test_labels.size, dtype=np.int64)
    if blocks is None:
        for rows, block in task.cross.select(active, support).blocks(reuse=True):
            scores = combine(block, kernel_weights[active]) @ dual_coef[support].astype(block.dtype)
            predicted[rows] = np.argmax(scores, axis=1)
    else:
        for rows, block in blocks:
            scores = combine(block, kernel_weights) @ dual_coef.astype(block.dtype)
            predicted[rows] = np.argmax(scores, axis=1)
    return float(np.mean(predicted != task.test_labels))


SOLVERS = {"OM2": solve_om2, "OBSCURE": solve_obscure, "PegasosMKL": solve_pegasos_mkl, "UFOMKL": solve_ufo}


def solve(method, problem, *, n_epochs, seed, **options):
    """Run a solver by name with its own generator; epochs are whole permutations unless `sampling` says otherwise."""
    return SOLVERS[method](problem, n_epochs=n_epochs, rng=np.random.default_rng([seed, 2]), **options)


@lru_cache(maxsize=1)
def warm_up():
    """Compile every routine that a timed run will use, so that no time contains a compilation."""
    rng = np.random.default_rng(0)
    labels = np.arange(12) % 3
    for memory in (1e6, 0.0):
        bank = KernelBank([("a", RBF(), [0]), ("b", RBF(), [1])], rng.normal(size=(12, 2)), memory=memory)
        for scores in ("recompute", "maintain"):
            for method in SOLVERS:
                solve(method, MKLProblem(bank, labels, 3, p=1.5), n_epochs=2, seed=0, scores=scores, measure="every", shuffle=True)
        solve("UFOMKL", MKLProblem(bank, labels, 3, alpha=0.01), n_epochs=2, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solve_reference(MKLProblem(bank, labels, 3), max_rounds=2)


# ------------------------------------------------------------- point functions


def three_class(seed, p_om2=1.01, p_obscure=1.0001, C=10.0, noise=0.05):
    """Kernel weights, normalised to sum 1, on the simulated three-class problem (thesis figure 4.1, JMLR figure 1)."""
    data = datasets.make_three_class(noise=noise, random_state=seed)
    bank = KernelBank(data.triples(Linear()), data.X)
    options = dict(n_epochs=5, seed=seed, shuffle=True)
    online = solve("OM2", MKLProblem(bank, data.y, 3, p=p_om2), **options)
    batch = solve("OBSCURE", MKLProblem(bank, data.y, 3, p=p_obscure, C=C), n_epochs=50, seed=seed)
    rows = []
    for method, p, result in (("OM2", p_om2, online), ("OBSCURE", p_obscure, batch)):
        share = result.kernel_weights / result.kernel_weights.sum()
        rows += [{"method": method, "p": p, "kernel": j + 1, "weight": w} for j, w in enumerate(share)]
    return pd.DataFrame(rows)


def cross_validation(task, n_train, method, C, p, n_epochs, n_folds, seed):
    """Cross-validated accuracy of one choice of parameters, on the training part only."""
    loaded = load_task(task, n_train, 1, seed)
    bank, labels = loaded.bank, loaded.labels
    correct = 0
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(labels, labels):
        problem = MKLProblem(bank.restrict(train), labels[train], loaded.n_classes, p=p, C=C)
        result = solve(method, problem, n_epochs=n_epochs, seed=seed)
        support = np.flatnonzero(np.any(result.dual_coef != 0.0, axis=1))
        for start in range(0, test.size, 256):
            rows = test[start : start + 256]
            block = bank.rows(rows)[:, :, train[support]]
            scores = combine(block, result.kernel_weights) @ result.dual_coef[support].astype(block.dtype)
            correct += int(np.sum(np.argmax(scores, axis=1) == labels[rows]))
    return {"accuracy": correct / labels.size}


def choose(sweep, task, n_train, method, seed, *, n_folds, n_epochs, C_grid, p_grid):
    """Best C and p over the grid by cross-validation; ties go to the smaller C, then the larger p.

    Returns
    -------
    best : dict
        C and p.
    table : DataFrame
        Accuracy of every grid point.
    """
    points = [
        dict(task=task, n_train=n_train, method=method, C=C, p=p, n_epochs=n_epochs, n_folds=n_folds, seed=seed)
        for C in C_grid
        for p in p_grid
    ]
    table = sweep.frame(cross_validation, points, data=load_data(task).provenance)
    best = table.sort_values(["accuracy", "C", "p"], ascending=[False, True, False]).iloc[0]
    return {"C": float(best.C), "p": float(best.p)}, table


def training_curve(task, n_train, n_test, method, C, p, n_epochs, seed, alpha=0.0, n_kernels=None, hold_test=True, **options):
    """Test error, objective and gap over the training time of one solver.

    The clock of the history stops while objective and test error are measured.
    """
    warm_up()
    key = (task, n_train, n_test, seed, n_kernels)
    loaded = load_task(*key)
    blocks = test_blocks(*key) if hold_test else None
    problem = MKLProblem(loaded.bank, loaded.labels, loaded.n_classes, p=p, C=C, alpha=alpha)
    rows = []

    def watch(training, step):
        row = training.history.rows[-1]
        if np.isfinite(row["objective"]):
            coef, weights = training.stream.point()
            rows.append({**row, "test_error": test_error(loaded, coef, weights, blocks)})

    result = solve(method, problem, n_epochs=n_epochs, seed=seed, measure="geometric", callback=watch, **options)
    if rows[-1]["step"] != result.history.step.iloc[-1]:
        last = dict(result.history.iloc[-1])
        rows.append({**last, "test_error": test_error(loaded, result.dual_coef, result.kernel_weights, blocks)})
    frame = pd.DataFrame(rows)
    frame["n_kernels_used"] = float(np.count_nonzero(result.kernel_weights))
    frame["stage"] = frame["stage"].astype(str)
    return frame


def optimum(task, n_train, seed, C, p, alpha=0.0, n_kernels=None, tol=1e-4, time_limit=60.0):
    """Certified optimum: the best objective known and the lower bound."""
    loaded = load_task(task, n_train, 1, seed, n_kernels)
    problem = MKLProblem(loaded.bank, loaded.labels, loaded.n_classes, p=p, C=C, alpha=alpha)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap itself is reported
        result = solve_reference(problem, tol=tol, time_limit=time_limit)
    return {
        "objective": result.objective, "lower": result.objective - result.dual_gap, "seconds": float(result.history.seconds.iloc[-1])
    }  # fmt: skip


def online_run(task, n_train, n_test, p, n_epochs, most_epochs, seed, n_kernels=None, eta=None, C=1.0):
    """OM-2 (or, with `eta`, OBSCURE's online stage) after some epochs, and run on until an epoch passes without an update.

    Returns
    -------
    dict
        Test errors after `n_epochs` and at the end; epochs, updates and seconds to convergence; whether it converged.
    """
    warm_up()
    loaded = load_task(task, n_train, n_test, seed, n_kernels)
    problem = MKLProblem(loaded.bank, loaded.labels, loaded.n_classes, p=p, C=C)

    def run(epochs):
        if eta is None:
            return solve("OM2", problem, n_epochs=epochs, seed=seed, shuffle=True, until_no_loss=True)
        return solve("OBSCURE", problem, n_epochs=0, n_epochs_online=epochs, seed=seed, eta=eta)

    early, late = run(n_epochs), run(most_epochs)
    updates = np.diff(np.r_[0, late.history.n_updates.to_numpy()])
    return {
        "test_error": test_error(loaded, early.dual_coef, early.kernel_weights),
        "online_error": float(early.online_errors[: loaded.labels.size].mean()),
        "final_error": test_error(loaded, late.dual_coef, late.kernel_weights),
        "epochs": int(late.n_iter), "updates": int(late.n_updates), "seconds": float(late.history.seconds.iloc[-1]),
        "converged": bool(updates[-1] == 0),
    }  # fmt: skip


def single_kernel(task, n_train, n_test, method, C_grid, n_folds, seed):
    """SVM on the average or the best kernel; C (and the kernel) by cross-validation on the training part, like for every method."""
    loaded = load_task(task, n_train, n_test, seed)
    bank = KernelBank.from_stack(combined(loaded.bank)[None], validate=False) if method == "AverageKernelSVM" else loaded.bank
    # on a bank of one kernel, the best kernel's cross-validated accuracy is that of the average
    accuracy = [
        BestKernelSVM("precomputed", C=C, cv=n_folds, random_state=seed).fit(bank, loaded.labels).kernel_accuracy_.max() for C in C_grid
    ]
    C = C_grid[int(np.argmax(accuracy))]
    estimator = {"AverageKernelSVM": AverageKernelSVM, "BestKernelSVM": BestKernelSVM}[method]
    began = time.perf_counter()
    model = estimator("precomputed", C=C).fit(loaded.bank, loaded.labels)
    seconds = time.perf_counter() - began
    return {"C": C, "seconds": seconds, "test_error": float(np.mean(model.predict(loaded.cross) != loaded.test_labels))}


def combined(bank):
    """Unweighted mean of a bank's kernels."""
    return combined_kernel(bank, np.full(bank.n_kernels, 1.0 / bank.n_kernels), 1.0)


def many_kernels(n_kernels, n_train, n_test, method, C, p, alpha, n_epochs, seed):
    """One solver on up to 1,400 kernels: error, seconds, kernels with weight."""
    warm_up()
    loaded = load_task("mfeat-1400", n_train, n_test, seed, n_kernels)
    problem = MKLProblem(loaded.bank, loaded.labels, loaded.n_classes, p=p, C=C, alpha=alpha)
    result = solve(method, problem, n_epochs=n_epochs, seed=seed)
    share = result.kernel_weights / max(result.kernel_weights.max(), 1e-300)
    return {
        "seconds": float(result.history.seconds.iloc[-1]), "test_error": test_error(loaded, result.dual_coef, result.kernel_weights),
        "n_used": int(np.count_nonzero(result.kernel_weights)), "n_above_1e-3": int(np.sum(share > 1e-3)),
        "objective": result.objective, "dual_gap": result.dual_gap, "n_updates": result.n_updates,
    }  # fmt: skip


# ------------------------------------------------------------------- theorems


def comparators(problem, C_grid=(0.1, 1.0, 10.0, 100.0)):
    """Batch optima for several C as comparators u: their norm and their loss on every sample."""
    found = []
    for C in C_grid:
        batch = MKLProblem(problem.bank, problem.labels, problem.n_classes, p=problem.p, C=C)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # any u will do
            result = solve_reference(batch, tol=1e-3, time_limit=10.0)
        norms = result.kernel_weights * np.sqrt(batch.block_norms_sq(result.dual_coef))
        own = margins(batch.training_scores(result.dual_coef, result.kernel_weights), batch.labels)
        for scale in (0.25, 0.5, 1.0, 2.0, 4.0):
            found.append((scale * group_norm(norms, batch.p), np.maximum(0.0, 1.0 - scale * own)))
    return found


def stream_problem(kind, n_samples, seed, n_kernels=6, p="auto", C=1.0):
    """A stream for the mistake bounds: real ("mfeat-6"), random labels ("random"), or one useful kernel among useless ones."""
    if kind == "mfeat-6":
        task = load_task("mfeat-6", n_samples, 1, seed)
        return MKLProblem(task.bank, task.labels, task.n_classes, p=p, C=C)
    rng = np.random.default_rng([seed, 3])
    # "random": labels that no kernel explains; "one useful": only the first kernel does
    labels = rng.integers(5, size=n_samples)
    labels[:5] = np.arange(5)
    features = rng.normal(size=(n_samples, n_kernels, 5))
    if kind == "one useful":
        features[:, 0] = 0.6 * features[:, 0] + 2.0 * np.eye(5)[labels]
    triples = [(f"k{j}", RBF(), slice(5 * j, 5 * j + 5)) for j in range(n_kernels)]
    return MKLProblem(KernelBank(triples, features.reshape(n_samples, -1)), labels, 5, p=p, C=C)


def mistake_bound(kind, n_samples, seed, p):
    """Theorem 4.1 on one pass: mistakes of OM-2 and the bound, at the best comparator."""
    problem = stream_problem(kind, n_samples, seed, p=p)
    result = solve_om2(problem, n_epochs=1, rng=np.random.default_rng(seed), shuffle=False)
    mistakes = int(result.online_errors.sum())
    eta_sum = float(result.dual_coef[np.arange(n_samples), problem.labels].sum())
    lipschitz_sq = float(np.max(2.0 * group_norm(np.ones(problem.bank.n_kernels), problem.q / 2.0)))
    bounds = []
    for norm, losses in comparators(problem):
        c, s = problem.q * lipschitz_sq * norm**2, float(losses.sum())
        bounds.append(c + s + math.sqrt(s * c) - (eta_sum - mistakes))
    return {"mistakes": mistakes, "bound": min(bounds), "updates": result.n_updates}


def useless_kernels(n_kernels, n_samples, seed):
    """Corollary 4.1: mistakes of OM-2 at p = 2 ln F / (2 ln F - 1) with one useful kernel among F."""
    problem = stream_problem("one useful", n_samples, seed, n_kernels=n_kernels, p="auto")
    result = solve_om2(problem, n_epochs=1, rng=np.random.default_rng(seed), shuffle=False)
    return {"mistakes": int(result.online_errors.sum()), "weight": float(result.kernel_weights[0] / result.kernel_weights.sum())}


def update_bound(n_samples, seed, p, eta, C=10.0, most_epochs=200):
    """Theorem 4.3: updates of the online stage until it converges, its R, and both bounds."""
    problem = stream_problem("mfeat-6", n_samples, seed, p=p, C=C)
    result = solve_obscure(problem, n_epochs_online=most_epochs, n_epochs=0, eta=eta, rng=np.random.default_rng(seed))
    strength = problem.q * (2.0 / eta + 2.0 * group_norm(np.ones(problem.bank.n_kernels), problem.q / 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        batch = solve_reference(problem, tol=1e-3, time_limit=20.0)
    optimum_norm = group_norm(batch.kernel_weights * np.sqrt(problem.block_norms_sq(batch.dual_coef)), problem.p)
    bounds = []
    for norm, losses in comparators(problem):
        # losses of the rounds with an update: at most all visits of all epochs, counted at their largest
        total = float(losses.sum()) * result.n_iter
        bounds.append(strength * norm**2 + total + norm * math.sqrt(strength * total))
    return {
        "updates": result.n_updates, "bound": min(bounds), "radius": result.extra["radius_online"], "optimum_norm": optimum_norm,
        "epochs": result.n_iter,
    }  # fmt: skip


def suboptimality_bound(method, n_samples, seed, C, p, n_epochs, streams):
    """Theorems 4.2 and 4.5: mean suboptimality over independent draws (as both assume) and the bound, over the steps.

    The bound of UFO-MKL holds with probability 1 - delta; delta = 1 is the bound of the expectation it is derived from.
    """
    problem = stream_problem("mfeat-6", n_samples, seed, p=p, C=C)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        reference = solve_reference(problem, tol=1e-4, time_limit=20.0)
    rows = []
    for stream in range(streams):
        options = dict(n_epochs_online=2) if method == "OBSCURE" else {}
        result = solve(
            method, problem, n_epochs=n_epochs, seed=1000 * seed + stream, sampling="iid", measure="geometric", **options
        )
        history = result.history[result.history.stage == "batch"].dropna(subset=["objective"])
        steps = (history.epoch - history.epoch.iloc[0] + 1) * n_samples
        radius = result.extra.get("radius", np.inf)
        L = math.sqrt(2.0 * group_norm(np.ones(problem.bank.n_kernels), problem.q / 2.0))
        c, logs = problem.regularization * radius + L, 1.0 + np.log(steps)
        if method == "OBSCURE":
            first = c * np.sqrt(problem.q * logs) / (problem.regularization * steps)
            bound = c * np.sqrt(problem.q * logs) * np.minimum(first, 4.0 * radius / np.sqrt(steps))
        else:
            bound = math.e * 2.0 * logs * max(1.0, math.log(problem.bank.n_kernels)) / (problem.regularization * steps)
        rows.append(pd.DataFrame({
            "stream": stream, "step": steps, "suboptimality": history.objective - (reference.objective - reference.dual_gap),
            "bound": bound,
        }))  # fmt: skip
    return pd.concat(rows, ignore_index=True)


def all_of_mnist(n_test, C, p, n_epochs, seed, memory=1e9):
    """OBSCURE on all 60,000 training digits, kernels computed on the fly (claim obs-8)."""
    warm_up()
    data = load_data("mnist-12")
    bank = KernelBank(kernel_set("mnist-12", data), data.X[data.train], memory=memory)
    test = data.test[:n_test]
    task = Task(bank, data.y[data.train], bank.cross(data.X[test]), data.y[test], 10)
    problem = MKLProblem(bank, task.labels, 10, p=p, C=C)
    rows = []

    def watch(training, step):
        coef, weights = training.stream.point()
        rows.append({**training.history.rows[-1], "test_error": test_error(task, coef, weights)})

    solve("OBSCURE", problem, n_epochs=n_epochs - 1, n_epochs_online=1, seed=seed, callback=watch, certify=False)
    frame = pd.DataFrame(rows).drop(columns=["objective", "dual_gap"])
    return frame.assign(stage=frame["stage"].astype(str))


def time_to(frame, column, level):
    """First second of a curve at which a column is at most a level; NaN if it never is."""
    reached = frame.loc[frame[column] <= level, "seconds"]
    return float(reached.iloc[0]) if len(reached) else np.nan


def suboptimality(curve, lower):
    """Relative distance of a curve's objective from a certified lower bound of the optimum: an upper bound of the true one."""
    return (curve["objective"] - lower) / lower
